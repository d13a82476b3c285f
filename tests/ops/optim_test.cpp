// SPDX-License-Identifier: Apache-2.0
#include "cases/optim.hpp"

#include "graph/backends.hpp"
#include "ops/optim_plan.hpp"
#include "support/compare.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

namespace clutch::testing { namespace {

using cases::OptimCase;
using cases::OptimModel;
using Kind = OptimModel::Kind;
using optim::Numerics;
using optim::StateType;

constexpr Numerics kNumerics[] = {Numerics::source, Numerics::torch_cpu, Numerics::f32, Numerics::composed};

/// Every option on and off.
std::vector<OptimModel> models() {
  std::vector<OptimModel> all;
  for (int bits = 0; bits < 16; ++bits) {
    bool decay = bits & 1, maximize = bits & 2, third = bits & 4, fourth = bits & 8;
    double wd = decay ? 0.04 : 0;
    all.push_back({.kind = Kind::sgd,
                   .lr = 0.05,
                   .a = third ? 0.9 : 0,
                   .b = third && !fourth ? 0.3 : 0,
                   .eps = 0,
                   .weight_decay = wd,
                   .nesterov = third && fourth,
                   .maximize = maximize,
                   .buffer = third});
    all.push_back(
        {.kind = Kind::adam, .lr = 0.01, .a = third ? 0.3 : 0.9, .b = 0.97, .weight_decay = wd, .maximize = maximize, .decoupled = third, .extra = fourth});
    all.push_back({.kind = Kind::adagrad, .lr = 0.05, .a = third ? 0.01 : 0, .eps = 1e-10, .weight_decay = wd, .maximize = maximize});
    all.push_back({.kind = Kind::rmsprop,
                   .lr = 0.01,
                   .a = 0.95,
                   .b = third ? 0.7 : 0,
                   .eps = 1e-3,
                   .weight_decay = wd,
                   .maximize = maximize,
                   .extra = fourth,
                   .buffer = third});
  }
  return all;
}

std::string describe(const OptimModel& m, DType dtype) {
  return fmt::format("kind {} numerics {} {} a {} b {} decay {} nesterov {} maximize {} decoupled {} extra {} buffer {}", static_cast<int>(m.kind),
                     static_cast<int>(m.numerics), name(dtype), m.a, m.b, m.weight_decay, m.nesterov, m.maximize, m.decoupled, m.extra, m.buffer);
}

bool offered(const Device& device, Numerics numerics, DType dtype) {
  if (dtype == DType::f64) return device.traits().fp64 && numerics != Numerics::f32;
  return device.traits().fp64 || numerics == Numerics::f32;
}

/// A parameter with its gradients for several steps, and what a model makes of it.
struct Course {
  static constexpr std::size_t kGradients = 4;
  OptimModel model;
  DType dtype;
  std::size_t n;
  std::vector<std::uint8_t> all;  ///< the model's: row 0 the parameter, then states
  std::vector<std::uint8_t> grads[kGradients];
  Tensor param;
  std::vector<Tensor> given[kGradients];
  std::unique_ptr<optim::Optimizer> optimizer;

  Course(const Device& device, const OptimModel& m, DType type, std::size_t count) : model(m), dtype(type), n(count) {
    auto size = static_cast<std::int64_t>(n);
    std::vector<std::uint8_t> start = model::make_values(n, dtype, seed(), false);
    all.resize(bytes_for(dtype, n * static_cast<std::size_t>(1 + m.states())));
    std::copy(start.begin(), start.end(), all.begin());
    param = from_bytes(start.data(), start.size(), {size}, {.dtype = dtype, .device = device});
    for (std::size_t k = 0; k < kGradients; ++k) {
      grads[k] = model::make_values(n, dtype, seed() + 1 + k, false);
      given[k] = {from_bytes(grads[k].data(), grads[k].size(), {size}, {.dtype = dtype, .device = device})};
    }
    optimizer = OptimCase::make(m, {param});
  }

  void steps(int from, int end) {
    for (int t = from; t < end; ++t) {
      const auto k = static_cast<std::size_t>(t) % kGradients;
      optimizer->step(given[k]);
      OptimCase::reference({model, dtype}, t, all.data(), grads[k].data(), std::array{static_cast<std::int64_t>(n)});
    }
  }

  std::string compare() const {
    std::vector<std::uint8_t> got = param.to_bytes();
    std::map<std::string, Tensor> state = optimizer->state();
    static constexpr std::string_view kOrder[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "sum", "square_avg", "momentum_buffer", "grad_avg"};
    for (std::string_view key : kOrder)
      if (auto found = state.find(fmt::format("0.{}", key)); found != state.end()) {
        std::vector<std::uint8_t> raw = found->second.to_bytes();
        got.insert(got.end(), raw.begin(), raw.end());
      }
    return compare_bits(got, all, dtype, !param.device().traits().denormals);
  }
};

TEST(Optim, EveryOptionIsTheModelBitForBit) {
  const int last = level() == "smoke" ? 60 : 1000;
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f64})
      for (Numerics numerics : kNumerics) {
        if (!offered(device, numerics, dtype)) continue;
        if (dtype == DType::f64 && level() == "smoke" && numerics != Numerics::source) continue;
        for (OptimModel m : models()) {
          m.numerics = numerics;
          Course run(device, m, dtype, 37);
          run.steps(1, last + 1);
          ASSERT_EQ(run.compare(), "") << describe(m, dtype);
        }
      }
  }
}

TEST(Optim, LengthsAndDtypesAreTheModelBitForBit) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : OptimCase::kDtypes)
      for (Kind kind : {Kind::sgd, Kind::adam, Kind::adagrad, Kind::rmsprop})
        for (std::size_t n : {1u, 15u, 16u, 33u, 8191u, 8193u, 40001u}) {
          OptimModel m{.kind = kind, .eps = 1e-3, .weight_decay = 0.1};
          m.buffer = kind == Kind::sgd, m.b = kind == Kind::sgd ? 0 : kind == Kind::rmsprop ? 0 : 0.99;
          m.numerics = device.traits().fp64 ? Numerics::source : Numerics::f32;
          if (!offered(device, m.numerics, dtype)) continue;
          Course run(device, m, dtype, n);
          run.steps(1, 4);
          ASSERT_EQ(run.compare(), "") << describe(m, dtype) << " n " << n;
        }
  }
}

/// What `composed` promises: the ops one after another.
TEST(Optim, ComposedStepsAreTheOpsBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f64}) {
      if (!offered(device, Numerics::composed, dtype)) continue;
      const double lr = 0.01, wd = 0.1;
      TensorOptions like{.dtype = dtype, .device = device};
      Tensor p = randn({777}, {.dtype = dtype, .device = device, .seed = 3}), g = randn({777}, {.dtype = dtype, .device = device, .seed = 4});
      optim::Precision composed{.numerics = Numerics::composed};
      {
        Tensor mine = p.clone(), q = p.clone(), m = zeros({777}, like), v = zeros({777}, like);
        optim::AdamW adamw({mine}, {.lr = lr, .weight_decay = wd, .precision = composed});
        for (int t = 1; t <= 5; ++t) {
          adamw.step(std::span(&g, 1));
          q = mul(q, 1 - lr * wd);
          m = lerp(m, g, 1 - 0.9);
          v = mul(v, 0.999);
          addcmul_(v, g, g, {.value = 1 - 0.999});
          Tensor root = add(div(sqrt(v), std::sqrt(1 - OptimModel::power(0.999, t))), 1e-8);
          addcdiv_(q, m, root, {.value = -(lr / (1 - OptimModel::power(0.9, t)))});
        }
        EXPECT_EQ(mine.to_bytes(), q.to_bytes()) << "AdamW " << name(dtype);
      }
      {
        Tensor mine = p.clone(), q = p.clone(), buffer;
        optim::SGD sgd({mine}, {.lr = lr, .momentum = 0.9, .weight_decay = wd, .nesterov = true, .precision = composed});
        for (int t = 1; t <= 5; ++t) {
          sgd.step(std::span(&g, 1));
          Tensor d = add_scaled(g, q, wd);
          buffer = t == 1 ? d.clone() : add_scaled(mul(buffer, 0.9), d, 1);
          add_scaled_(q, add_scaled(d, buffer, 0.9), -lr);
        }
        EXPECT_EQ(mine.to_bytes(), q.to_bytes()) << "SGD " << name(dtype);
      }
      {
        Tensor mine = p.clone(), q = p.clone(), sum = zeros({777}, like);
        optim::Adagrad adagrad({mine}, {.lr = lr, .lr_decay = 0.01, .precision = composed});
        for (int t = 1; t <= 5; ++t) {
          adagrad.step(std::span(&g, 1));
          addcmul_(sum, g, g);
          addcdiv_(q, g, add(sqrt(sum), 1e-10), {.value = -(lr / (1 + (t - 1) * 0.01))});
        }
        EXPECT_EQ(mine.to_bytes(), q.to_bytes()) << "Adagrad " << name(dtype);
      }
      {
        Tensor mine = p.clone(), q = p.clone(), square = zeros({777}, like), buffer = zeros({777}, like), mean = zeros({777}, like);
        optim::RMSprop rmsprop({mine}, {.lr = lr, .momentum = 0.8, .centered = true, .precision = composed});
        for (int t = 1; t <= 5; ++t) {
          rmsprop.step(std::span(&g, 1));
          square = mul(square, 0.99);
          addcmul_(square, g, g, {.value = 1 - 0.99});
          mean = lerp(mean, g, 1 - 0.99);
          Tensor root = add(sqrt(addcmul(square, mean, mean, {.value = -1})), 1e-8);
          buffer = mul(buffer, 0.8);
          addcdiv_(buffer, g, root);
          add_scaled_(q, buffer, -lr);
        }
        EXPECT_EQ(mine.to_bytes(), q.to_bytes()) << "RMSprop " << name(dtype);
      }
    }
  }
}

/// The contract's bound beside the formulas in double.
TEST(Optim, OneStepIsNearTheDoubleModel) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::size_t kCount = 300;
    const std::int64_t sizes[] = {kCount};
    constexpr std::int64_t kStep = 4;
    constexpr double eps = 0x1p-24;
    for (Numerics numerics : kNumerics)
      for (OptimModel m : models()) {
        m.numerics = numerics;
        if (!offered(device, numerics, DType::f32)) continue;
        std::vector<std::uint8_t> all(4 * kCount * static_cast<std::size_t>(1 + m.states())), grads(4 * kCount);
        // Parameters and gradients of size 1, second moments that are no less than first ones squared.
        std::mt19937_64 random(seed());
        std::normal_distribution<double> normal;
        for (std::size_t i = 0; i < kCount; ++i) {
          double mean = normal(random) / 8;
          auto put = [&](int row, double v) { model::store_at(all.data(), static_cast<std::size_t>(row) * kCount + i, DType::f32, v); };
          put(0, normal(random));
          for (int k = 1; k <= m.states(); ++k) put(k, mean * mean + 0.1 + std::fabs(normal(random)));
          if (m.kind == Kind::adam) put(1, mean);
          if (m.kind == Kind::rmsprop && m.extra) put(m.states(), mean);
          model::store_at(grads.data(), i, DType::f32, normal(random));
        }
        Tensor rows = from_bytes(all.data(), all.size(), {1 + m.states(), kCount}, {.device = device});
        Tensor g = from_bytes(grads.data(), grads.size(), {kCount}, {.device = device});
        OptimCase::step(m, rows, g, sizes, full({1}, kStep, {.device = device}), {});
        std::vector<float> got = rows.reshape({(1 + m.states()) * static_cast<std::int64_t>(kCount)}).to_host<float>();
        OptimModel exact = m;
        exact.numerics = numerics == Numerics::f32 ? Numerics::source : numerics;  // they differ in what maximize and decay mean
        if (numerics == Numerics::source || numerics == Numerics::f32)
          for (double* scalar : {&exact.lr, &exact.a, &exact.b, &exact.eps, &exact.weight_decay}) {
            bool wide = numerics == Numerics::source && (m.kind == Kind::sgd || m.kind == Kind::adagrad);
            if (!wide) *scalar = static_cast<double>(static_cast<float>(*scalar));
          }
        for (std::size_t i = 0; i < kCount; ++i) {
          double before = model::value_at(all.data(), i, DType::f32), p = before, of[3] = {};
          for (std::size_t k = 0; k < static_cast<std::size_t>(m.states()); ++k) of[k] = model::value_at(all.data(), (k + 1) * kCount + i, DType::f32);
          exact.step<double>(kStep, model::value_at(grads.data(), i, DType::f32), p, of);
          double way = std::fabs(p - before), bound = 16 * eps * (std::fabs(before) + way);
          if (m.kind == Kind::adam) bound += eps * way / (1 - OptimModel::power(m.b, kStep));
          if (m.kind == Kind::rmsprop && m.extra) {
            double mean = of[m.states() - 1];
            bound += 16 * eps * way * (of[0] + mean * mean) / (of[0] - mean * mean);
          }
          ASSERT_LE(std::fabs(static_cast<double>(got[i]) - p), bound) << describe(m, DType::f32) << " element " << i;
          for (std::size_t k = 0; k < static_cast<std::size_t>(m.states()); ++k)
            ASSERT_LE(std::fabs(static_cast<double>(got[(k + 1) * kCount + i]) - of[k]), 16 * eps * (std::fabs(of[k]) + 4)) << describe(m, DType::f32);
        }
      }
  }
}

/// A list of parameters: views into one tensor at odd places, and tensors of their own.
std::vector<Tensor> many(const Device& device, int count, std::uint64_t from) {
  Tensor flat = randn({64 * count}, {.device = device, .seed = from});
  std::vector<Tensor> all;
  for (int i = 0; i < count; ++i) {
    std::int64_t n = i % 7 == 0 ? 0 : i % 50;
    all.push_back(i % 3 == 0 ? randn({n}, {.device = device, .seed = from + static_cast<std::uint64_t>(i)})
                             : flat.slice(0, 64 * i + i % 5, 64 * i + i % 5 + n));
  }
  return all;
}

TEST(Optim, OneCallOverAThousandTensorsIsAThousandCalls) {
  CLUTCH_EACH_DEVICE(device) {
    std::vector<Tensor> params = many(device, 1000, 5), grads = many(device, 1000, 9), copies;
    for (const Tensor& p : params) copies.push_back(p.clone());
    optim::AdamW together(params, {.lr = 0.1});
    std::vector<std::unique_ptr<optim::AdamW>> alone;
    for (const Tensor& p : copies) alone.push_back(std::make_unique<optim::AdamW>(std::vector<Tensor>{p}, optim::AdamWOptions{.lr = 0.1}));
    std::uint64_t built = build_counters().built;
    for (int t = 0; t < 3; ++t) {
      together.step(grads);
      for (std::size_t i = 0; i < alone.size(); ++i) alone[i]->step(std::span(&grads[i], 1));
    }
    EXPECT_EQ(build_counters().built, built) << "no size builds anything";
    for (std::size_t i = 0; i < params.size(); ++i) ASSERT_EQ(params[i].to_bytes(), copies[i].to_bytes()) << i;
    EXPECT_EQ(together.state().at("999.step").item(), 3);
    EXPECT_EQ(together.state().at("0.step").item(), 3) << "a parameter of no elements, too";
  }
}

TEST(Optim, TensorsOfManyBuffersTakeSeveralLaunches) {
  CLUTCH_EACH_DEVICE(device) {
    std::vector<Tensor> params, grads, copies;
    for (int i = 0; i < 30; ++i) {
      PoolGuard apart(new_pool());
      params.push_back(randn({100 + i}, {.device = device, .seed = 11u + static_cast<std::uint64_t>(i)}));
      grads.push_back(randn({100 + i}, {.device = device, .seed = 77u + static_cast<std::uint64_t>(i)}));
      copies.push_back(params.back().clone());
    }
    optim::SGD many(params, {.lr = 0.5, .momentum = 0.9});
    for (int t = 0; t < 3; ++t) many.step(grads);
    for (std::size_t i = 0; i < params.size(); ++i) {
      optim::SGD one({copies[i]}, {.lr = 0.5, .momentum = 0.9});
      for (int t = 0; t < 3; ++t) one.step(std::span(&grads[i], 1));
      ASSERT_EQ(params[i].to_bytes(), copies[i].to_bytes()) << i;
      ASSERT_EQ(many.state().at(fmt::format("{}.step", i)).item(), 3);
    }
  }
}

TEST(Optim, WhatIsOnTheDeviceNeedsNoWait) {
  CLUTCH_EACH_DEVICE(device) {
    auto scalar = [&](float v) { return full({1}, v, {.device = device}); };
    Tensor start = randn({50}, {.device = device, .seed = 1}), grad = randn({50}, {.device = device, .seed = 2});
    auto run = [&](const optim::StepOptions& options, double lr, const Tensor& g) {
      Tensor p = start.clone();
      optim::Adam adam({p}, {.lr = lr});
      adam.step(std::span(&g, 1), options);
      return std::pair(p.to_bytes(), adam.state().at("0.step").item());
    };
    auto plain = run({}, 0.25, grad);
    EXPECT_EQ(run({.lr = scalar(0.25f)}, 0.5, grad), plain) << "lr as a tensor";
    EXPECT_EQ(run({.found_inf = scalar(0)}, 0.25, grad), plain);
    auto skipped = run({.found_inf = scalar(1)}, 0.25, grad);
    EXPECT_EQ(skipped.first, start.to_bytes()) << "a skipped step changes nothing";
    EXPECT_EQ(skipped.second, 0) << "nor does it count";
    Tensor scaled = mul(grad, 8);
    EXPECT_EQ(run({.grad_scale = scalar(8)}, 0.25, scaled), plain);
    EXPECT_EQ(scaled.to_bytes(), grad.to_bytes()) << "the quotients are stored";
    Tensor doubled = mul(grad, 2);
    EXPECT_EQ(run({.grad_factor = scalar(0.5f)}, 0.25, doubled), plain);
    EXPECT_EQ(doubled.to_bytes(), mul(grad, 2).to_bytes()) << "a factor leaves gradients alone";
    // A first step that was skipped leaves the first one to come.
    Tensor p = start.clone(), inf = scalar(1);
    optim::SGD sgd({p}, {.lr = 1, .momentum = 0.9, .dampening = 0.5});
    sgd.step(std::span(&grad, 1), {.found_inf = inf});
    fill_(inf, 0);
    sgd.step(std::span(&grad, 1), {.found_inf = inf});
    EXPECT_EQ(sgd.state().at("0.momentum_buffer").to_bytes(), grad.to_bytes());
  }
}

TEST(Optim, NaNStaysInItsElement) {
  CLUTCH_EACH_DEVICE(device) {
    std::vector<float> values(40, 1.0f);
    values[3] = std::numeric_limits<float>::quiet_NaN(), values[20] = std::numeric_limits<float>::infinity(), values[39] = -values[20];
    Tensor grad = from_host(values, {40}, device);
    for (Kind kind : {Kind::sgd, Kind::adam, Kind::adagrad, Kind::rmsprop}) {
      Tensor p = full({40}, 1, {.device = device});
      OptimModel m{.kind = kind, .numerics = Numerics::automatic, .lr = 0.1, .a = 0.5, .b = kind == Kind::adam ? 0.5 : 0};
      auto optimizer = OptimCase::make(m, {p});
      optimizer->step(std::span(&grad, 1));
      std::vector<float> got = p.to_host<float>();
      for (std::size_t i = 0; i < 40; ++i) {
        if (i == 3)
          EXPECT_TRUE(std::isnan(got[i]));
        else if (i == 20 || i == 39)
          EXPECT_FALSE(std::isfinite(got[i])) << static_cast<int>(kind) << " " << i;
        else
          EXPECT_EQ(got[i], got[0]);
      }
    }
  }
}

TEST(Optim, AMillionSteps) {
  CLUTCH_EACH_DEVICE(device) {
    for (Numerics numerics : {Numerics::source, Numerics::torch_cpu, Numerics::f32})
      for (std::int64_t t : {10LL, 1000LL, 65535LL, 1000000LL}) {
        if (!offered(device, numerics, DType::f32)) continue;
        OptimModel m{.kind = Kind::adam, .numerics = numerics, .lr = 0.5, .a = 0.9, .b = 0.9999};
        constexpr std::size_t kCount = 20;
        std::vector<std::uint8_t> all = OptimCase::make_rows(m, DType::f32, kCount, seed()), grads = model::make_values(kCount, DType::f32, seed() + 1, false);
        Tensor rows = from_bytes(all.data(), all.size(), {3, kCount}, {.device = device}),
               g = from_bytes(grads.data(), grads.size(), {kCount}, {.device = device});
        Tensor steps = full({1}, static_cast<double>(t), {.device = device});
        const std::int64_t sizes[] = {kCount};
        OptimCase::step(m, rows, g, sizes, steps, {});
        OptimCase::reference({m, DType::f32}, t, all.data(), grads.data(), std::array{static_cast<std::int64_t>(kCount)});
        EXPECT_EQ(compare_bits(rows.to_bytes(), all, DType::f32, !device.traits().denormals), "") << t << " numerics " << static_cast<int>(numerics);
        EXPECT_EQ(steps.item(), static_cast<double>(t)) << "the callers count";
      }
  }
  // The powers themselves, against long double.
  for (double beta : {0.9, 0.999, 0.9999, 0.999999})
    for (std::int64_t t : {1, 2, 3, 10, 1000, 65535, 1000000}) {
      long double exact = std::pow(static_cast<long double>(beta), static_cast<long double>(t));
      double error = std::fabs(static_cast<double>((static_cast<long double>(OptimModel::power(beta, t)) - exact) / exact));
      if (exact < 1e-290L) continue;
      EXPECT_LE(error, 2 * static_cast<double>(t) * 0x1p-53) << beta << "^" << t;
    }
}

TEST(Optim, ParametersWithoutGradientsStay) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor a = full({20}, 1, {.device = device}), b = full({20}, 1, {.device = device}), c = full({20}, 1, {.device = device});
    Tensor g = full({20}, 2, {.device = device});
    optim::SGD sgd({a, b, c}, {.lr = 1, .momentum = 0.5});
    std::vector<Tensor> grads{g, Tensor(), g};
    sgd.step(grads);
    EXPECT_EQ(a.to_host<float>()[19], -1);
    EXPECT_EQ(b.to_host<float>()[19], 1);
    EXPECT_EQ(c.to_host<float>()[0], -1);
    auto state = sgd.state();
    EXPECT_EQ(state.at("0.step").item(), 1);
    EXPECT_EQ(state.at("1.step").item(), 0);
    grads[1] = g;
    sgd.step(grads);
    EXPECT_EQ(sgd.state().at("1.momentum_buffer").to_host<float>()[0], 2) << "its first step";
    EXPECT_EQ(b.to_host<float>()[7], -1);
  }
}

TEST(Optim, GroupsHaveOptionsOfTheirOwn) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor a = full({3}, 1, {.device = device}), b = full({2}, 1, {.dtype = DType::bf16, .device = device});
    optim::SGD sgd({a}, {.lr = 1});
    sgd.add_param_group({b}, {.lr = 0.5, .momentum = 0.5});
    std::vector<Tensor> grads{full({3}, 1, {.device = device}), full({2}, 1, {.dtype = DType::bf16, .device = device})};
    sgd.step(grads);
    EXPECT_EQ(a.to_host<float>()[2], 0);
    EXPECT_EQ(b.to(DType::f32).to_host<float>()[1], 0.5f);
    sgd.set_lr(0.25, 1);
    EXPECT_EQ(sgd.lr(1), 0.25);
    sgd.step(grads);
    EXPECT_EQ(b.to(DType::f32).to_host<float>()[1], 0.125f) << "0.5 - 0.25 * (0.5 + 1)";
    EXPECT_EQ(sgd.groups(), 2u);
    EXPECT_EQ(sgd.state().count("1.momentum_buffer"), 1u);
    EXPECT_EQ(code_of([&] { sgd.set_lr(1, 2); }), ErrorCode::invalid_argument);
  }
}

TEST(Optim, SavedStateGoesOn) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor p = randn({1000}, {.device = device, .seed = 1}), q = randn({3, 5}, {.device = device, .seed = 2});
    std::vector<Tensor> grads{randn({1000}, {.device = device, .seed = 3}), randn({3, 5}, {.device = device, .seed = 4})};
    optim::AdamW first({p, q}, {.amsgrad = true});
    for (int t = 0; t < 3; ++t) first.step(grads);
    std::string path = (std::filesystem::temp_directory_path() / fmt::format("clutch_optim_{}.safetensors", ::getpid())).string();
    first.save(path);
    Tensor p2 = p.clone(), q2 = q.clone();
    optim::AdamW second({p2, q2}, {.amsgrad = true});
    second.load(path);
    std::filesystem::remove(path);
    for (int t = 0; t < 3; ++t) first.step(grads), second.step(grads);
    EXPECT_EQ(p.to_bytes(), p2.to_bytes());
    EXPECT_EQ(q.to_bytes(), q2.to_bytes());
    auto state = first.state();
    EXPECT_EQ(state.size(), 8u) << "step, exp_avg, exp_avg_sq, max_exp_avg_sq of two";
    state.erase("1.exp_avg");
    EXPECT_NE(message_of([&] { second.load_state(state); }).find("1.exp_avg"), std::string::npos);
    optim::AdamW other({p2, q2}, {});
    EXPECT_EQ(code_of([&] { other.load_state(first.state()); }), ErrorCode::invalid_argument) << "max_exp_avg_sq is too many";
  }
}

TEST(Optim, StepsAreCaptured) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    Tensor p = randn({500}, {.device = device, .seed = 1}, stream), q = p.clone(stream), x = randn({500}, {.device = device, .seed = 2}, stream);
    Tensor other = randn({500}, {.device = device, .seed = 3}, stream);
    optim::AdamW captured({p}, {.lr = 0.1}, stream), eager({q}, {.lr = 0.1}, stream);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      Tensor grad = mul(x, 2, {}, stream);  // memory that has no address yet
      captured.step(std::span(&grad, 1), stream);
    }
    auto step_eager = [&](const Tensor& from) {
      Tensor grad = mul(from, 2, {}, stream);
      eager.step(std::span(&grad, 1), stream);
    };
    for (int i = 0; i < 3; ++i) graph.replay(stream), step_eager(x);
    EXPECT_EQ(p.to_bytes(stream), q.to_bytes(stream)) << "each replay is a step";
    EXPECT_EQ(captured.state().at("0.step").item(stream), 3);
    graph.replay({{x, other}}, stream), step_eager(other);
    EXPECT_EQ(p.to_bytes(stream), q.to_bytes(stream)) << "another input";
    graph.update(graph.find("optim::AdamW::step").at(0), {value(0.5, "lr")});
    eager.set_lr(0.5);
    graph.replay(stream), step_eager(x);
    EXPECT_EQ(p.to_bytes(stream), q.to_bytes(stream)) << "another learning rate";
    // The parameter itself lies elsewhere: a word of the table changes.
    Tensor elsewhere = p.clone(stream), before = p.clone(stream);
    graph.replay({{p, elsewhere}}, stream), step_eager(x);
    EXPECT_EQ(elsewhere.to_bytes(stream), q.to_bytes(stream)) << "another parameter";
    EXPECT_EQ(p.to_bytes(stream), before.to_bytes(stream));
    graph.replay(stream);
    EXPECT_NE(p.to_bytes(stream), before.to_bytes(stream)) << "for that replay alone";
    // By a process without the code.
    std::string path = (std::filesystem::temp_directory_path() / fmt::format("clutch_optim_graph_{}", ::getpid())).string();
    graph.save(path, {{"p", p}, {"x", x}});
    Graph loaded = Graph::load(path, device, {.backend = backend});
    std::filesystem::remove(path);
    graph.replay(stream), loaded.replay(stream);
    EXPECT_EQ(loaded.tensor("p").to_bytes(stream), p.to_bytes(stream)) << "a saved graph";
    EXPECT_EQ(code_of([&] {
                Graph wrong({.backend = backend});
                GraphCapture capture(wrong, stream);
                optim::SGD inside({p}, {}, stream);
              }),
              ErrorCode::capturing);
  }
}

TEST(Optim, TwoStreamsWithTwoOptimizers) {
  CLUTCH_EACH_DEVICE(device) {
    Stream a(device), b(device);
    std::vector<std::vector<std::uint8_t>> results;
    Tensor start = randn({30000}, {.device = device, .seed = 1}), grad = randn({30000}, {.device = device, .seed = 2});
    synchronize(device);
    Tensor p = start.clone(a), q = start.clone(b);
    optim::Adam on_a({p}, {}, a), on_b({q}, {}, b);
    for (int t = 0; t < 20; ++t) on_a.step(std::span(&grad, 1), a), on_b.step(std::span(&grad, 1), b);
    EXPECT_EQ(p.to_bytes(a), q.to_bytes(b));
  }
}

TEST(Optim, ErrorsAreFoundAtTheCall) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor p = full({4}, 1, {.device = device}), g = full({4}, 1, {.device = device}), whole = full({8}, 1, {.device = device});
    using std::vector;
    auto refused = [&](auto&& f) { return code_of(f); };
    EXPECT_EQ(refused([&] { optim::SGD({}, {}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::SGD({p}, {.lr = -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::SGD({p}, {.nesterov = true}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::SGD({p}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); }), ErrorCode::invalid_argument);
    EXPECT_NE(message_of([&] { optim::Adam({p}, {.beta2 = 1}); }).find("beta2 must be in [0, 1), got 1"), std::string::npos);
    EXPECT_EQ(refused([&] { optim::AdamW({p}, {.weight_decay = -0.1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::AdamW({p}, {.eps = std::nan("")}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::Adagrad({p}, {.initial_accumulator_value = -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::RMSprop({p}, {.alpha = -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::SGD({full({4}, 1, {.dtype = DType::i32, .device = device})}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(refused([&] { optim::SGD({p, full({4}, 1, {.dtype = DType::f16, .device = device})}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(refused([&] { optim::SGD({full({4, 4}, 1, {.device = device}).mT()}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([&] { optim::SGD({p, p}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::SGD({whole.slice(0, 0, 5), whole.slice(0, 4, 8)}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::SGD({whole.slice(0, 0, 4), whole.slice(0, 4, 8)}); }), ErrorCode::ok);
    EXPECT_EQ(refused([&] { optim::SGD({p}, {.precision = {.master = true}}); }), ErrorCode::not_supported);
    EXPECT_EQ(refused([&] { optim::SGD({full({4}, 1, {.dtype = DType::bf16, .device = device})}, {.precision = {.numerics = Numerics::composed}}); }),
              ErrorCode::not_supported);
    optim::Precision kahan{.rounding = optim::Rounding::kahan}, by_chance{.rounding = optim::Rounding::stochastic};
    Tensor small = full({4}, 1, {.dtype = DType::bf16, .device = device});
    EXPECT_EQ(refused([&] { optim::SGD({p}, {.precision = kahan}); }), ErrorCode::not_supported);
    EXPECT_EQ(refused([&] { optim::SGD({p}, {.precision = by_chance}); }), ErrorCode::not_supported);
    EXPECT_EQ(refused([&] { optim::SGD({small}, {.precision = {.master = true, .rounding = optim::Rounding::kahan}}); }), ErrorCode::not_supported);
    EXPECT_EQ(refused([&] { optim::sgd_(vector<Tensor>{small}, vector<Tensor>{small.clone()}, {}, full({1}, 1, {.device = device}), {.precision = kahan}); }),
              ErrorCode::not_supported);
    optim::SGD sgd({p});
    EXPECT_EQ(refused([&] { sgd.step(vector<Tensor>{g}, {.grad_factor = full({1}, 1, {.device = device}), .max_norm = 1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { sgd.step(vector<Tensor>{g}, {.max_norm = -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { sgd.step(vector<Tensor>{g, g}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { sgd.step(vector<Tensor>{whole}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([&] { sgd.step(vector<Tensor>{full({4}, 1, {.dtype = DType::f16, .device = device})}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(refused([&] { sgd.step(vector<Tensor>{g}, {.lr = whole}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(p.to_host<float>()[0], 1) << "nothing ran";
    EXPECT_EQ(refused([&] { optim::sgd_(vector<Tensor>{p}, vector<Tensor>{g}, {}, full({2}, 0, {.device = device})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([&] { optim::sgd_(vector<Tensor>{p}, vector<Tensor>{g}, {}, full({1}, 0, {.device = device}), {.momentum = 0.5}); }),
              ErrorCode::invalid_argument);
  }
}

TEST(Optim, SelectionNamesWhatIsMissing) {
  DeviceTraits traits;
  traits.native_width_f32 = 8, traits.type = DeviceType::cpu, traits.fma_exact = traits.divide_exact = traits.sqrt_exact = true;
  detail::OptimProblem problem{.numerics = Numerics::automatic};
  EXPECT_NE(detail::select(traits, problem).to_string().find("numerics f32: the device has no fp64"), std::string::npos);
  problem.numerics = Numerics::source;
  EXPECT_NE(message_of([&] { detail::select(traits, problem); }).find("fp64"), std::string::npos);
  traits.fp64 = true;
  EXPECT_EQ(detail::select(traits, problem).entry, "optim_step");
}

}}  // namespace clutch::testing
