// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of selective_scan: what tests and benches share. The model follows the orders that clutch/ops/selective_scan.hpp states; its elementary functions
// are those of the host, which tests/expr/math_test.cpp holds against libm and MPFR.
#include <clutch/ops/selective_scan.hpp>

#include "cases/reduce.hpp"
#include "expr/host_math.hpp"
#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cmath>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct SelectiveScanCase {
  static constexpr std::string_view kStem = "selective_scan";

  /// x, delta and gate are read, y written; b and c are read by all channels.
  static double bytes(std::int64_t batch, std::int64_t length, std::int64_t channels, std::int64_t states, bool gate) {
    return 4.0 * static_cast<double>(batch * length) * static_cast<double>(channels * (gate ? 4 : 3) + 2 * states);
  }

  struct Shape {
    std::int64_t batch, length, channels, states;
    bool softplus = true, skip = true, gate = true, bias = true, initial = true, of_state = true;
  };
  enum class Part { y, state, x, delta, a, b, c, skip, gate, bias, initial };
  static constexpr int kParts = 11;

  /// A call's numbers in f32, row after row; of options that are not given, nothing.
  struct Call {
    Shape s;
    std::vector<float> x, delta, a, b, c, skip, gate, bias, initial, of_y, of_state;
  };

  static std::size_t places(const Shape& s, Part part) {
    const auto elements = static_cast<std::size_t>(s.batch * s.length), channels = static_cast<std::size_t>(s.channels),
               states = static_cast<std::size_t>(s.states);
    switch (part) {
      case Part::a: return channels * states;
      case Part::b:
      case Part::c: return elements * states;
      case Part::skip:
      case Part::bias: return channels;
      case Part::state:
      case Part::initial: return static_cast<std::size_t>(s.batch) * channels * states;
      default: return elements * channels;
    }
  }
  static Dims sizes(const Shape& s, Part part) {
    switch (part) {
      case Part::a: return {s.channels, s.states};
      case Part::b:
      case Part::c: return {s.batch, s.length, s.states};
      case Part::skip:
      case Part::bias: return {s.channels};
      case Part::state:
      case Part::initial: return {s.batch, s.channels, s.states};
      default: return {s.batch, s.length, s.channels};
    }
  }

  /// The functions that the contract is made of, with the bits of devices.
  struct HostMath {
    static float exp(float x) { return detail::host_math::exp(x); }
    static float log1p(float x) { return detail::host_math::log1p(x); }
    static float sigmoid(float x) { return detail::host_math::sigmoid(x); }
  };
  /// The same from the standard library, for results within a bound.
  struct StandardMath {
    static double exp(double x) { return std::exp(x); }
    static double log1p(double x) { return std::log1p(x); }
    static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  };

  /// All results, each as its part's numbers before they are rounded to their dtype.
  template <class Real = float, class Math = HostMath>
  static std::vector<std::vector<Real>> model(const Call& call) {
    const Shape& s = call.s;
    const auto length = static_cast<std::size_t>(s.length), channels = static_cast<std::size_t>(s.channels), states = static_cast<std::size_t>(s.states),
               batch = static_cast<std::size_t>(s.batch), blocks = (channels + 15) / 16;
    std::vector<std::vector<Real>> all;
    for (int p = 0; p < kParts; ++p) all.emplace_back(places(s, static_cast<Part>(p)));
    auto of = [&](Part p) -> std::vector<Real>& { return all[static_cast<std::size_t>(p)]; };
    auto number = [](const std::vector<float>& numbers, std::size_t place) { return static_cast<Real>(numbers[place]); };
    // Of each channel and sequence, what is summed over them: b and c by blocks of channels, a, skip and bias by sequences.
    std::vector<std::vector<Real>> by_block[2];
    for (auto& one : by_block) one.assign(batch * length * states, std::vector<Real>(blocks));
    std::vector<std::vector<Real>> by_a(channels * states, std::vector<Real>(batch)), by_skip(channels, std::vector<Real>(batch)), by_bias = by_skip;
    for (std::size_t i = 0; i < batch; ++i)
      for (std::size_t d = 0; d < channels; ++d) {
        const Real skip = s.skip ? number(call.skip, d) : 0, bias = s.bias ? number(call.bias, d) : 0;
        std::vector<std::vector<Real>> h(length + 1, std::vector<Real>(states));
        auto at = [&](std::size_t t) { return (i * length + t) * channels + d; };
        auto raw = [&](std::size_t t) { return number(call.delta, at(t)) + bias; };
        auto step = [&](std::size_t t) { return !s.softplus || raw(t) > 20 ? raw(t) : Math::log1p(Math::exp(raw(t))); };
        std::vector<Real> ungated(length);
        for (std::size_t n = 0; n < states; ++n) h[0][n] = s.initial ? number(call.initial, (i * channels + d) * states + n) : 0;
        for (std::size_t t = 0; t < length; ++t) {
          const Real moved = step(t) * number(call.x, at(t));
          Real sum = 0;
          for (std::size_t n = 0; n < states; ++n) {
            h[t + 1][n] = std::fma(Math::exp(step(t) * number(call.a, d * states + n)), h[t][n], moved * number(call.b, (i * length + t) * states + n));
            sum = std::fma(h[t + 1][n], number(call.c, (i * length + t) * states + n), sum);
          }
          ungated[t] = s.skip ? std::fma(skip, number(call.x, at(t)), sum) : sum;
          of(Part::y)[at(t)] = s.gate ? ungated[t] * (number(call.gate, at(t)) * Math::sigmoid(number(call.gate, at(t)))) : ungated[t];
        }
        std::vector<Real> g(states), to_a(states);
        Real to_skip = 0, to_bias = 0;
        for (std::size_t n = 0; n < states; ++n) {
          of(Part::state)[(i * channels + d) * states + n] = h[length][n];
          g[n] = s.of_state ? number(call.of_state, (i * channels + d) * states + n) : 0;
        }
        for (std::size_t t = length; t-- > 0;) {
          Real of_y = number(call.of_y, at(t));
          if (s.gate) {
            const Real z = number(call.gate, at(t)), sigmoid = Math::sigmoid(z);
            of(Part::gate)[at(t)] = of_y * (ungated[t] * (sigmoid * std::fma(z, Real{1} - sigmoid, Real{1})));
            of_y = of_y * (z * sigmoid);
          }
          const Real moved = step(t) * number(call.x, at(t));
          Real by_x = 0, by_step = 0;
          for (std::size_t n = 0; n < states; ++n) {
            const std::size_t shared = (i * length + t) * states + n;
            const Real here = std::fma(of_y, number(call.c, shared), g[n]);
            const Real to[2] = {here * moved, of_y * h[t + 1][n]};
            for (int k = 0; k < 2; ++k) {
              Real& sum = by_block[k][shared][d / 16];
              sum = d % 16 == 0 ? to[k] : sum + to[k];
            }
            by_x = std::fma(here, number(call.b, shared), by_x);
            g[n] = here * Math::exp(step(t) * number(call.a, d * states + n));
            const Real faded = g[n] * h[t][n];
            by_step = std::fma(faded, number(call.a, d * states + n), by_step);
            to_a[n] = std::fma(faded, step(t), to_a[n]);
          }
          to_skip = std::fma(of_y, number(call.x, at(t)), to_skip);
          const Real slope = !s.softplus || raw(t) > 20 ? Real{1} : Math::sigmoid(raw(t)), by_raw = std::fma(by_x, number(call.x, at(t)), by_step) * slope;
          to_bias = to_bias + by_raw;
          of(Part::delta)[at(t)] = by_raw;
          of(Part::x)[at(t)] = std::fma(by_x, step(t), s.skip ? of_y * skip : Real{0});
        }
        for (std::size_t n = 0; n < states; ++n) {
          of(Part::initial)[(i * channels + d) * states + n] = g[n];
          by_a[d * states + n][i] = to_a[n];
        }
        by_skip[d][i] = to_skip, by_bias[d][i] = to_bias;
      }
    auto sums = [](const std::vector<std::vector<Real>>& terms, std::vector<Real>& to) {
      for (std::size_t i = 0; i < terms.size(); ++i) to[i] = ReduceCase::in_order<Real>(terms[i], 0, ReduceCase::combine<Real>(Reduce::sum));
    };
    sums(by_block[0], of(Part::b)), sums(by_block[1], of(Part::c));
    sums(by_a, of(Part::a)), sums(by_skip, of(Part::skip)), sums(by_bias, of(Part::bias));
    return all;
  }

  static bool is_state(Part part) { return part == Part::state || part == Part::a || part == Part::skip || part == Part::bias || part == Part::initial; }

  /// Strides of rows with gaps, channels side by side or not.
  static Dims strides_of(const Dims& sizes, bool apart) {
    if (sizes.rank() == 1) return {1};
    if (sizes.rank() == 2) return apart ? Dims{1, sizes[0] + 1} : Dims{sizes[1] + 1, 1};
    return apart ? Dims{sizes[1] * (sizes[2] + 1), 1, sizes[1]} : Dims{sizes[1] * (sizes[2] + 3), sizes[2] + 3, 1};
  }

  /// One part of the results, of x and others in `dtype`, with b and c in `shared`.
  static Problem problem(std::string_view what, std::string_view entry, DType dtype, DType shared, const Shape& s, Part part, std::uint64_t seed,
                         bool apart = false) {
    Problem p{.name = std::string(what), .entry = entry};
    model::Random random(seed);
    Call call{.s = s};
    // Inputs in the order of the call; gradients of results behind them.
    auto add = [&](Part of, DType d, std::vector<float>& numbers, double low, double high, bool is_given = true) {
      if (!is_given) return;
      const std::size_t n = places(s, of);
      std::vector<std::uint8_t> raw(bytes_for(d, n));
      for (std::size_t i = 0; i < n; ++i) {
        model::store_at(raw.data(), i, d, random.uniform(low, high));
        numbers.push_back(static_cast<float>(model::value_at(raw.data(), i, d)));
      }
      p.inputs.push_back({d, sizes(s, of), strides_of(sizes(s, of), apart), raw});
    };
    add(Part::x, dtype, call.x, -1, 1);
    add(Part::delta, dtype, call.delta, s.softplus ? -3 : 0, s.softplus ? 3 : 1);
    add(Part::a, DType::f32, call.a, -2, 0);
    add(Part::b, shared, call.b, -1, 1);
    add(Part::c, shared, call.c, -1, 1);
    add(Part::skip, DType::f32, call.skip, -1, 1, s.skip);
    add(Part::gate, dtype, call.gate, -3, 3, s.gate);
    add(Part::bias, DType::f32, call.bias, -1, 1, s.bias);
    add(Part::initial, DType::f32, call.initial, -1, 1, s.initial);
    add(Part::y, dtype, call.of_y, -1, 1);
    add(Part::state, DType::f32, call.of_state, -1, 1, s.of_state);
    const DType result = is_state(part) ? DType::f32 : part == Part::b || part == Part::c ? shared : dtype;
    p.output = {result, sizes(s, part), strides_of(sizes(s, part), apart), std::vector<std::uint8_t>(bytes_for(result, places(s, part)))};
    const std::vector<float> want = model(call)[static_cast<std::size_t>(part)];
    for (std::size_t i = 0; i < want.size(); ++i) model::store_at(p.output.raw.data(), i, result, static_cast<double>(want[i]));
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      std::size_t next = 5;
      SelectiveScanOptions o{.delta_softplus = s.softplus, .implementation = std::string(entry)};
      if (s.skip) o.skip = in[next++];
      if (s.gate) o.gate = in[next++];
      if (s.bias) o.delta_bias = in[next++];
      if (s.initial) o.initial_state = in[next++];
      const Tensor& of_y = in[next++];
      const SelectiveScanResult grad{of_y, s.of_state ? in[next] : Tensor()};
      SelectiveScanGradients to;
      switch (part) {
        case Part::y: return selective_scan_out({out, {}}, in[0], in[1], in[2], in[3], in[4], o, stream);
        case Part::state:
          return selective_scan_out({empty(in[0].sizes(), {.dtype = dtype, .device = out.device()}, stream), out}, in[0], in[1], in[2], in[3], in[4], o,
                                    stream);
        case Part::x: to.x = out; break;
        case Part::delta: to.delta = out; break;
        case Part::a: to.a = out; break;
        case Part::b: to.b = out; break;
        case Part::c: to.c = out; break;
        case Part::skip: to.skip = out; break;
        case Part::gate: to.gate = out; break;
        case Part::bias: to.delta_bias = out; break;
        case Part::initial: to.initial_state = out; break;
      }
      selective_scan_backward_out(to, grad, in[0], in[1], in[2], in[3], in[4], o, stream);
    };
    p.is_helper = apart || part != Part::y;  // a copy or a sum comes behind the kernel
    return p;
  }

  static constexpr const char* kNames[kParts] = {"y", "state", "x", "delta", "a", "b", "c", "skip", "gate", "bias", "initial"};

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    const Shape full{2, 13, 37, 5}, plain{.batch = 1,
                                          .length = 9,
                                          .channels = 70,
                                          .states = 16,
                                          .softplus = false,
                                          .skip = false,
                                          .gate = false,
                                          .bias = false,
                                          .initial = false,
                                          .of_state = false};
    constexpr std::string_view kForward = "selective_scan_forward";
    all.push_back(problem("y", kForward, DType::f32, DType::f32, full, Part::y, seed));
    all.push_back(problem("y, plain", kForward, DType::f32, DType::f32, plain, Part::y, seed + 1));
    all.push_back(problem("y of bf16", kForward, DType::bf16, DType::bf16, full, Part::y, seed + 2, true));
    all.push_back(problem("y of f16", kForward, DType::f16, DType::f32, {1, 3, 20, 33}, Part::y, seed + 3));
    all.push_back(problem("state", kForward, DType::f32, DType::bf16, full, Part::state, seed + 4));
    for (std::string_view entry : {"selective_scan_backward", "selective_scan_backward_groups"}) {
      for (int p = static_cast<int>(Part::x); p < kParts; ++p)
        all.push_back(problem(kNames[p], entry, DType::f32, DType::f32, full, static_cast<Part>(p), seed + 5, p % 2 == 1));
      all.push_back(problem("x, plain", entry, DType::bf16, DType::f32, plain, Part::x, seed + 6));
      all.push_back(problem("b, plain", entry, DType::f32, DType::bf16, plain, Part::b, seed + 7));
    }
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"selective_scan_forward", Edit::tail, "t < length; ++t) {\n      const VF of_x", "t + 1 < length; ++t) {\n      const VF of_x"},
      {"selective_scan_forward", Edit::stride, "x_first + t * x_step, count), step", "x_first + t / 2 * x_step, count), step"},
      {"selective_scan_forward", Edit::offset, "b_first + t * b_step);\n      VF result", "b_first);\n      VF result"},
      {"selective_scan_forward", Edit::arithmetic, "result * (of_gate * sigmoid_f32(of_gate))", "result * sigmoid_f32(of_gate)"},
      {"selective_scan_backward", Edit::tail, "l < count) sum = sum + lanes[l];", "l + 1 < count) sum = sum + lanes[l];"},
      {"selective_scan_backward", Edit::stride, "add_lanes(here + CLUTCH_STATES, to_c", "add_lanes(here, to_c"},
      {"selective_scan_backward", Edit::offset, "x_first + t * x_step, count), moved", "x_first, count), moved"},
      {"selective_scan_backward", Edit::arithmetic, "g[n + k] = here * exp_f32(", "g[n + k] = here * (1.0f - "},
      {"selective_scan_backward_groups", Edit::tail, "l < there) sum = sum + tile[first_of_row + l];", "l + 1 < there) sum = sum + tile[first_of_row + l];"},
      {"selective_scan_backward_groups", Edit::stride, "first_of_row = row * SELECTIVE_SCAN_ROW", "first_of_row = row / 2 * SELECTIVE_SCAN_ROW"},
      {"selective_scan_backward_groups", Edit::offset, "delta_first + t * delta_step, count) + of_bias, step = step_of",
       "delta_first, count) + of_bias, step = step_of"},
      {"selective_scan_backward_groups", Edit::arithmetic, "to_skip = fma_rn(of_y, of_x, to_skip);", "to_skip = of_y * of_x;"},
  };
};

}  // namespace clutch::cases
