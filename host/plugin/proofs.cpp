// SPDX-License-Identifier: Apache-2.0
#include "plugin/proofs.hpp"

#include <clutch/attention.hpp>
#include <clutch/error.hpp>
#include <clutch/ops/addc.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/cumsum.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/ops/random.hpp>
#include <clutch/ops/sort.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// A tensor that an implementation writes: its elements, and whether they have gaps between them.
struct Output {
  DType dtype;
  Dims sizes;
  bool gaps = false;
};

/// A call of the op by an implementation's name; empty: the library's own.
struct Case {
  std::string name;
  std::vector<Tensor> inputs;
  std::vector<Output> outputs;
  std::function<void(std::span<const Tensor> out, const std::string& implementation, const Stream& stream)> run;
  bool any_nan = false;  ///< the op does not say which NaN
  /// Of ops whose implementations may round differently: computes the outputs in the widest type, which those of the implementation are compared with.
  std::function<void(std::span<const Tensor> out, const Stream& stream)> exact = {};
  DType widest = DType::f64;
  struct Bound {
    double absolute = 0, relative = 0;
  };
  std::vector<Bound> bounds = {};  ///< of each output
};

/// Random tensors and the cases made of them.
class Cases {
 public:
  explicit Cases(const Stream& stream)
      : stream_(stream), seed_(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())), fp64_(stream.device().traits().fp64) {}

  const Stream& stream() const { return stream_; }
  std::vector<DType> floats() const {
    std::vector<DType> all{DType::f32, DType::f16, DType::bf16};
    if (fp64_) all.push_back(DType::f64);
    return all;
  }
  /// Numbers of a normal distribution, of integers whole ones, of them every third one several times.
  Tensor random(DType dtype, const Dims& sizes) {
    const Tensor wide = randn(sizes, {.device = stream_.device(), .seed = seed_++}, stream_);
    if (is_floating(dtype)) return wide.to(dtype, {}, stream_);
    Tensor whole = empty(sizes, {.dtype = dtype, .device = stream_.device()}, stream_);
    random_(whole, dtype == DType::u8 ? 0 : -40, 40, {.seed = seed_++}, stream_);
    return whole;
  }
  /// Zeros and infinities of both signs, the largest numbers and, where the device has them, subnormal ones.
  Tensor special(DType dtype, std::int64_t n) {
    std::vector<float> values{0.0f, -0.0f, INFINITY, -INFINITY, 1.0f, -3.0f, 60000.0f, 3e38f};
    if (stream_.device().traits().denormals) values.insert(values.end(), {1e-40f, -6e-8f});
    std::vector<float> all;
    std::uint64_t state = seed_++;
    for (std::int64_t i = 0; i < n; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      all.push_back(values[(state >> 33) % values.size()]);
    }
    return from_host(all, {n}, stream_.device(), stream_).to(dtype, {}, stream_);
  }
  void add(Case one) { list.push_back(std::move(one)); }
  std::vector<Case> list;

 private:
  Stream stream_;
  std::uint64_t seed_;
  bool fp64_;
};

void addc_cases(Cases& cases, bool quotient) {
  auto add = [&](DType dtype, const Tensor& x, const Tensor& a, const Tensor& b, bool gaps, AddcOrder order, double value) {
    Case one{.name = fmt::format("{} {}{} order {}", name(dtype), to_string(x.sizes()), gaps ? " with gaps" : "", static_cast<int>(order)),
             .inputs = {x, a, b},
             .outputs = {{dtype, broadcast_shapes(std::vector<Dims>{x.sizes(), a.sizes(), b.sizes()}), gaps}}};
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      (quotient ? addcdiv_out : addcmul_out)(out[0], x, a, b, {.value = value, .order = order, .implementation = implementation}, stream);
    };
    cases.add(std::move(one));
  };
  std::vector<DType> dtypes = cases.floats();
  if (!quotient) dtypes.insert(dtypes.end(), {DType::i32, DType::i64, DType::u8});
  auto in_place = [&](DType dtype) {
    const Tensor x = cases.random(dtype, {4, 100}), a = cases.random(dtype, {4, 100}), b = cases.random(dtype, {100});
    Case one{.name = fmt::format("{} (4, 100) in place", name(dtype)), .inputs = {x, a, b}, .outputs = {{dtype, x.sizes()}}};
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      copy_(out[0], x, {}, stream);
      (quotient ? addcdiv_ : addcmul_)(out[0], a, b, {.value = 1.5, .implementation = implementation}, stream);
    };
    cases.add(std::move(one));
  };
  for (const DType dtype : dtypes) {
    in_place(dtype);
    if (is_floating(dtype)) {
      add(dtype, cases.special(dtype, 500), cases.special(dtype, 500), cases.special(dtype, 500), false, AddcOrder::fma_of_quotient, 2);
      cases.list.back().any_nan = true;
    }
    for (const AddcOrder order : {AddcOrder::fma_of_quotient, AddcOrder::product_first, AddcOrder::unfused})
      add(dtype, cases.random(dtype, {1237}), cases.random(dtype, {1237}), cases.random(dtype, {1237}), false, order, -3);
    add(dtype, cases.random(dtype, {5, 67}), cases.random(dtype, {67}), cases.random(dtype, {5, 1}), true, AddcOrder::fma_of_quotient, 1);
    add(dtype, cases.random(dtype, {31, 9}).mT(), cases.random(dtype, {9, 31}), cases.random(dtype, {31}), false, AddcOrder::fma_of_quotient, 0.75);
  }
  add(DType::f32, cases.random(DType::f32, {1}), cases.random(DType::f32, {1}), cases.random(DType::f32, {1}), false, AddcOrder::fma_of_quotient, 2);
}

void cumsum_cases(Cases& cases) {
  auto add = [&](const Tensor& x, int dim, bool reverse, DTypeList dtype, bool gaps) {
    const DType out = dtype.value_or(is_floating(x.dtype()) ? x.dtype() : DType::i64);
    Case one{.name = fmt::format("{} to {}, {} along {}{}{}", name(x.dtype()), name(out), to_string(x.sizes()), dim, reverse ? " in reverse" : "",
                                 gaps ? " with gaps" : ""),
             .inputs = {x},
             .outputs = {{out, x.sizes(), gaps}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      cumsum_out(to[0], x, dim, {.reverse = reverse, .dtype = dtype, .implementation = implementation}, stream);
    };
    cases.add(std::move(one));
  };
  std::vector<DType> dtypes = cases.floats();
  dtypes.insert(dtypes.end(), {DType::i64, DType::i32, DType::u8});
  for (const DType dtype : dtypes) {
    add(cases.random(dtype, {2500}), 0, false, {}, false);
    add(cases.random(dtype, {3, 41, 5}), 1, true, {}, true);
    add(cases.random(dtype, {17, 33}).mT(), 0, false, {}, false);
  }
  for (const DType dtype : {DType::f32, DType::i64}) {
    const Tensor x = cases.random(dtype, {6, 90});
    Case one{.name = fmt::format("{} (6, 90) in place", name(dtype)), .inputs = {x}, .outputs = {{dtype, x.sizes()}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      copy_(to[0], x, {}, stream);
      cumsum_out(to[0], to[0], 1, {.implementation = implementation}, stream);
    };
    cases.add(std::move(one));
  }
  add(cases.random(DType::f16, {700}), 0, false, DType::f32, false);
  add(cases.random(DType::f32, {1}), 0, true, {}, false);
}

void sort_cases(Cases& cases) {
  auto add = [&](const Tensor& x, int dim, bool descending) {
    Case one{.name = fmt::format("{} {} along {}{}", name(x.dtype()), to_string(x.sizes()), dim, descending ? ", descending" : ""),
             .inputs = {x},
             .outputs = {{x.dtype(), x.sizes()}, {DType::i64, x.sizes()}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      sort_out({to[0], to[1]}, x, dim, {.descending = descending, .implementation = implementation}, stream);
    };
    cases.add(std::move(one));
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16, DType::i8}) {
    if (dtype == DType::f64 && !cases.stream().device().traits().fp64) continue;
    add(cases.random(dtype, {3, 301}), 1, false);
    add(cases.random(dtype, {40, 7}), 0, true);
  }
  // NaN, zeros of both signs and infinities.
  std::vector<float> special;
  for (int i = 0; i < 200; ++i) special.push_back(i % 5 == 0 ? NAN : i % 5 == 1 ? 0.0f : i % 5 == 2 ? -0.0f : i % 5 == 3 ? INFINITY : -INFINITY);
  const Tensor x = from_host(special, {200}, cases.stream().device(), cases.stream());
  add(x, 0, false);
  add(x, 0, true);
  add(cases.random(DType::f32, {9000}), 0, false);
}

void matmul_cases(Cases& cases) {
  auto add = [&](const Tensor& a, const Tensor& b, double alpha, double beta, DType out) {
    Dims sizes = a.sizes();
    sizes[sizes.rank() - 1] = b.size(-1);
    const Tensor before = cases.random(out, sizes);
    Case one{.name = fmt::format("{} {} {} to {}, alpha {} beta {}", name(a.dtype()), to_string(a.sizes()), to_string(b.sizes()), name(out), alpha, beta),
             .inputs = {a, b, before},
             .outputs = {{out, sizes}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      if (beta != 0) copy_(to[0], before, {}, stream);
      linalg::matmul_out(to[0], a, b, {.alpha = alpha, .beta = beta, .implementation = implementation}, stream);
    };
    cases.add(std::move(one));
  };
  for (const DType dtype : cases.floats()) {
    add(cases.random(dtype, {37, 53}), cases.random(dtype, {53, 29}), 1, 0, dtype);
    add(cases.random(dtype, {53, 37}).mT(), cases.random(dtype, {29, 53}).mT(), -0.5, 2, dtype);
    add(cases.random(dtype, {3, 8, 16}), cases.random(dtype, {3, 16, 8}), 1, 0, dtype);
    add(cases.random(dtype, {1, 300}), cases.random(dtype, {300, 65}), 1, 0, dtype);
    add(cases.random(dtype, {130, 140}), cases.random(dtype, {140, 150}), 1, 0, dtype);
  }
  add(cases.random(DType::f16, {16, 40}), cases.random(DType::f16, {40, 24}), 1, 0, DType::f32);
  add(cases.random(DType::i8, {21, 36}), cases.random(DType::i8, {36, 12}), 1, 0, DType::i32);
}

void flex_cases(Cases& cases) {
  const bool fp64 = cases.stream().device().traits().fp64;
  const DType widest = fp64 ? DType::f64 : DType::f32;
  auto add = [&](const Tensor& q, const Tensor& k, const Tensor& v, attention::FlexOptions options, bool lse) {
    Dims sizes = q.sizes(), lines = q.sizes();
    sizes[3] = v.size(3), lines.erase(3);
    const DType dtype = q.dtype();
    Case one{.name = fmt::format("{} q {} k {}{}", name(dtype), to_string(q.sizes()), to_string(k.sizes()), lse ? " with lse" : ""),
             .inputs = {q, k, v},
             .outputs = {{dtype, sizes}}};
    if (lse) one.outputs.push_back({dtype == DType::f64 ? DType::f64 : DType::f32, lines});
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      attention::FlexOptions by = options;
      by.implementation = implementation;
      attention::flex_out({out[0], lse ? out[1] : Tensor(), {}, {}}, q, k, v, by, stream);
    };
    one.exact = [=](std::span<const Tensor> out, const Stream& stream) {
      const auto wide = [&](const Tensor& t) { return t.to(widest, {}, stream); };
      attention::flex_out({out[0], lse ? out[1] : Tensor(), {}, {}}, wide(q), wide(k), wide(v), options, stream);
    };
    one.widest = widest;
    // The contract's 2e-6 of unit-normal tensors at E = 64, growing with E's root, and the store's rounding; without fp64 the own result may be as far off.
    const double own = (fp64 ? 1 : 2) * (dtype == DType::f64 ? 1e-14 : 2e-6) * std::sqrt(std::max<double>(1, static_cast<double>(q.size(3)) / 64));
    one.bounds = {{own + (dtype == DType::f16 ? 0x1p-25 : 0), dtype == DType::f16    ? 0x1p-11
                                                              : dtype == DType::bf16 ? 0x1p-8
                                                                                     : 0},
                  {2 * own, dtype == DType::f64 ? 0x1p-50 : 0x1p-22}};
    cases.add(std::move(one));
  };
  for (const DType dtype : cases.floats()) {
    add(cases.random(dtype, {2, 3, 37, 64}), cases.random(dtype, {2, 3, 53, 64}), cases.random(dtype, {2, 3, 53, 64}), {}, false);
    add(cases.random(dtype, {1, 2, 1, 64}), cases.random(dtype, {1, 2, 700, 64}), cases.random(dtype, {1, 2, 700, 64}), {}, true);
    add(cases.random(dtype, {2, 4, 20, 32}), cases.random(dtype, {2, 2, 33, 32}), cases.random(dtype, {2, 2, 33, 48}), {.enable_gqa = true}, false);
    add(cases.random(dtype, {1, 25, 3, 64}).transpose(1, 2), cases.random(dtype, {1, 40, 3, 64}).transpose(1, 2),
        cases.random(dtype, {1, 40, 3, 64}).transpose(1, 2), {.scale = 0.3}, true);
  }
}

/// An output amid bytes that nobody may write.
class Guarded {
 public:
  Guarded(const Output& output, const Stream& stream) : stream_(stream) {
    constexpr std::int64_t kAround = 64;
    Dims strides = Dims::filled(output.sizes.rank(), 0);
    std::int64_t step = output.gaps ? 2 : 1;
    for (int d = output.sizes.rank() - 1; d >= 0; --d) strides[d] = step, step *= output.sizes[d];
    whole_ = empty({step + 2 * kAround}, {.dtype = output.dtype, .device = stream.device()}, stream);
    before_.assign(whole_.nbytes(), 0);
    for (std::size_t i = 0; i < before_.size(); ++i) before_[i] = static_cast<std::uint8_t>(0xA5 ^ (7 * i));
    whole_.write(std::as_bytes(std::span(before_)), stream);
    view = whole_.as_strided(output.sizes, strides, kAround);
  }
  /// True if all but the elements is as before.
  bool is_intact() const {
    // The elements as they were, so that what is beside them shows.
    std::vector<std::uint8_t> now = whole_.to_bytes(stream_);
    const Tensor mask = zeros(whole_.sizes(), {.dtype = DType::u8, .device = stream_.device()}, stream_);
    fill_(mask.as_strided(view.sizes(), view.strides(), 64), 1, {}, stream_);
    const std::vector<std::uint8_t> is_element = mask.to_bytes(stream_);
    const std::size_t size = now.size() / is_element.size();
    for (std::size_t i = 0; i < now.size(); ++i)
      if (is_element[i / size] == 0 && now[i] != before_[i]) return false;
    return true;
  }
  Tensor view;

 private:
  Stream stream_;
  Tensor whole_;
  std::vector<std::uint8_t> before_;
};

/// What is outside of the bounds.
std::string out_of_bounds(const Case& one, std::span<const Tensor> got, const Stream& stream) {
  std::vector<Tensor> exact;
  for (const Output& output : one.outputs) exact.push_back(empty(output.sizes, {.dtype = one.widest, .device = stream.device()}, stream));
  {
    const WithoutPlugins own;
    one.exact(exact, stream);
  }
  const auto numbers = [&](const Tensor& t) {
    std::vector<double> all;
    if (one.widest == DType::f64) return t.to(DType::f64, {}, stream).to_host<double>(stream);
    for (const float x : t.to(DType::f32, {}, stream).to_host<float>(stream)) all.push_back(static_cast<double>(x));
    return all;
  };
  for (std::size_t k = 0; k < got.size(); ++k) {
    const std::vector<double> is = numbers(got[k]), must = numbers(exact[k]);
    for (std::size_t i = 0; i < is.size(); ++i) {
      const double bound = one.bounds[k].absolute + one.bounds[k].relative * std::abs(must[i]);
      if (!(std::abs(is[i] - must[i]) <= bound))
        return fmt::format("problem '{}': element {} of output {} must be within {} of {}, got {}", one.name, i, k, bound, must[i], is[i]);
    }
  }
  return {};
}

/// What a case finds: nothing where the results are equal. `taken` counts those that the implementation does not refuse.
std::string compare(const Case& one, const PluginImplementation& implementation, const Stream& stream, int& taken) {
  std::vector<Guarded> wanted, got;
  std::vector<Tensor> wanted_views, got_views;
  for (const Output& output : one.outputs) {
    wanted_views.push_back(wanted.emplace_back(output, stream).view);
    got_views.push_back(got.emplace_back(output, stream).view);
  }
  std::vector<std::vector<std::uint8_t>> inputs;
  for (const Tensor& input : one.inputs) inputs.push_back(input.to_bytes(stream));
  if (!one.exact) {
    const WithoutPlugins own;
    one.run(wanted_views, {}, stream);
  }
  try {
    const Proving proved(implementation);
    one.run(got_views, implementation.name, stream);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_supported) return {};
    return fmt::format("problem '{}' must be computed, got {}", one.name, error.what());
  }
  ++taken;
  if (one.exact)
    if (std::string wrong = out_of_bounds(one, got_views, stream); !wrong.empty()) return wrong;
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (!got[k].is_intact()) return fmt::format("problem '{}' must be computed within output {}, got bytes written outside of its elements", one.name, k);
    if (one.exact) continue;
    const std::vector<std::uint8_t> is = got_views[k].to_bytes(stream), must = wanted_views[k].to_bytes(stream);
    const auto size = static_cast<std::size_t>(bits(one.outputs[k].dtype) / 8);
    for (std::size_t i = 0; i < is.size(); ++i)
      if (is[i] != must[i]) {
        const auto at = static_cast<std::int64_t>(i / size);
        const Tensor element = got_views[k].contiguous(stream).reshape({-1}).slice(0, at, at + 1);
        const Tensor right = wanted_views[k].contiguous(stream).reshape({-1}).slice(0, at, at + 1);
        if (one.any_nan && std::isnan(element.item(stream)) && std::isnan(right.item(stream))) continue;
        return fmt::format("problem '{}': element {} of output {} must have the bits of the library's own, {}, got {}", one.name, i / size, k,
                           right.item(stream), element.item(stream));
      }
  }
  for (std::size_t k = 0; k < one.inputs.size(); ++k)
    if (one.inputs[k].to_bytes(stream) != inputs[k]) return fmt::format("problem '{}' must leave its inputs as they are, got another input {}", one.name, k);
  return {};
}

}  // namespace

std::string prove(const PluginImplementation& implementation, const Device& device) {
  const Stream stream(device);
  Cases cases(stream);
  {
    const WithoutPlugins own;
    if (implementation.op == "addcdiv") addc_cases(cases, true);
    if (implementation.op == "addcmul") addc_cases(cases, false);
    if (implementation.op == "cumsum") cumsum_cases(cases);
    if (implementation.op == "sort") sort_cases(cases);
    if (implementation.op == "linalg::matmul") matmul_cases(cases);
    if (implementation.op == "attention::flex") flex_cases(cases);
  }
  if (cases.list.empty()) return fmt::format("there are no problems of {}", implementation.op);
  int taken = 0;
  for (const Case& one : cases.list)
    if (std::string wrong = compare(one, implementation, stream, taken); !wrong.empty()) return wrong;
  return taken == 0 ? fmt::format("one of the {} problems must be computed, got a refusal of each", cases.list.size()) : std::string();
}

}}}  // namespace clutch::v0::detail
