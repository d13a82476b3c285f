// SPDX-License-Identifier: Apache-2.0
// What is around an optimizer's step: norms and clipping, the gradients' scaler, learning rates that change.
#include "cases/optim.hpp"

#include "graph/backends.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>

namespace clutch::testing { namespace {

using cases::OptimCase;

bool has_source(const Device& device) { return device.traits().fp64; }

TEST(Optim, NormsAndClippedGradients) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : OptimCase::kDtypes) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      const DType real = dtype == DType::f64 ? DType::f64 : DType::f32;
      for (optim::NormType type : {optim::NormType::two, optim::NormType::one, optim::NormType::inf}) {
        const std::vector<std::int64_t> sizes{1, 0, 63, 64, 8192, 65, 20000};
        std::size_t count = 0;
        for (std::int64_t n : sizes) count += static_cast<std::size_t>(n);
        std::vector<std::uint8_t> raw = model::make_values(count, dtype, seed(), false);
        Tensor flat = from_bytes(raw.data(), raw.size(), {static_cast<std::int64_t>(count)}, {.dtype = dtype, .device = device});
        std::vector<Tensor> grads = OptimCase::cut(flat, sizes);
        grads.insert(grads.begin() + 2, Tensor());
        auto [norm, factor] = optim::grad_norm(grads, 2, {.norm_type = type});
        double want = real == DType::f64 ? OptimCase::norm<double>(type, dtype, raw.data(), sizes)
                                         : static_cast<double>(OptimCase::norm<float>(type, dtype, raw.data(), sizes));
        EXPECT_TRUE(norm.item() == want || (std::isnan(want) && std::isnan(norm.item()))) << name(dtype) << " " << norm.item() << " " << want;
        EXPECT_EQ(norm.dtype(), real);
        EXPECT_EQ(flat.to_bytes(), raw) << "gradients stay";
        // Of each: what it has alone, 0 of one that is not there.
        const Tensor each = optim::grad_norms(grads, {.norm_type = type});
        ASSERT_EQ(each.sizes(), Dims{static_cast<std::int64_t>(grads.size())});
        ASSERT_EQ(each.dtype(), real);
        for (std::size_t i = 0; i < grads.size(); ++i) {
          const Tensor got = each.slice(0, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1);
          if (grads[i].defined())
            EXPECT_EQ(got.to_bytes(), optim::grad_norm(std::span(&grads[i], 1), 1, {.norm_type = type}).norm.to_bytes()) << i;
          else
            EXPECT_EQ(got.item(), 0);
        }
        long double exact = 0;
        for (std::size_t i = 0; i < count; ++i) {
          auto x = std::fabs(static_cast<long double>(model::value_at(raw.data(), i, dtype)));
          exact = type == optim::NormType::two ? exact + x * x : type == optim::NormType::one ? exact + x : std::max(exact, x);
        }
        if (type == optim::NormType::two) exact = std::sqrt(exact);
        if (!std::isfinite(exact)) continue;
        double eps = real == DType::f64 ? 0x1p-53 : 0x1p-24;
        EXPECT_LE(std::fabs(want - static_cast<double>(exact)), (256 + static_cast<double>(count) / (1 << 19)) * eps * static_cast<double>(exact));
        // The factor within the step is the clipped step.
        if (dtype != DType::f32 || !has_source(device)) continue;
        Tensor p = randn({20000}, {.device = device, .seed = 1}), q = p.clone(), clipped = grads.back().clone();
        optim::SGD fused({p}, {.lr = 1}), apart({q}, {.lr = 1});
        fused.step(std::span(&grads.back(), 1), {.grad_factor = optim::grad_norm(std::span(&clipped, 1), 0.5, {.norm_type = type}).factor});
        optim::clip_grad_norm_(std::span(&clipped, 1), 0.5, {.norm_type = type});
        apart.step(std::span(&clipped, 1));
        EXPECT_EQ(p.to_bytes(), q.to_bytes());
      }
    }
    Tensor g = full({100}, 3, {.device = device}), bad = full({3}, std::nan(""), {.device = device});
    EXPECT_EQ(optim::clip_grad_norm_(std::span(&g, 1), 100).item(), 30);
    const Tensor long_one = randn({65 * 8192 + 1}, {.device = device, .seed = 3});
    EXPECT_EQ(optim::grad_norms(std::vector<Tensor>{g, long_one}).slice(0, 1, 2).to_bytes(), optim::grad_norm(std::span(&long_one, 1), 1).norm.to_bytes());
    EXPECT_EQ(g.to_host<float>()[99], 3) << "shorter than that: as it was";
    for (optim::NormType type : {optim::NormType::two, optim::NormType::one, optim::NormType::inf})
      EXPECT_TRUE(std::isnan(optim::grad_norm(std::vector<Tensor>{g, bad}, 1, {.norm_type = type}).norm.item()));
    EXPECT_EQ(code_of([&] { optim::grad_norm({}, 1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { optim::grad_norms(std::vector<Tensor>{Tensor()}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { optim::grad_norm(std::span(&g, 1), -1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { optim::grad_norm(std::vector<Tensor>{g, g.to(DType::f16)}, 1); }), ErrorCode::invalid_dtype);
  }
}

TEST(Optim, ClippingWithinTheStepIsClippingBeforeIt) {
  CLUTCH_EACH_DEVICE(device) {
    std::vector<std::int64_t> sizes{5, 20000, 0, 77};
    std::vector<Tensor> start, grads;
    for (std::int64_t n : sizes) {
      start.push_back(randn({n}, {.device = device, .seed = static_cast<std::uint64_t>(n) + 1}));
      grads.push_back(randn({n}, {.device = device, .seed = static_cast<std::uint64_t>(n) + 2}));
    }
    auto copies = [](const std::vector<Tensor>& all) {
      std::vector<Tensor> copy;
      for (const Tensor& t : all) copy.push_back(t.clone());
      return copy;
    };
    auto halves = [&](std::vector<Tensor> p) {
      auto adam = std::make_unique<optim::AdamW>(std::vector<Tensor>{p[0], p[1]});
      adam->add_param_group({p[2], p[3]}, {.lr = 0.1});
      return adam;
    };
    std::vector<Tensor> a = copies(start), b = copies(start), c = copies(start), clipped = copies(grads), scaled = copies(grads);
    auto within = halves(a), before = halves(b), with_scale = halves(c);
    for (Tensor& t : scaled) mul_(t, 1024);
    Tensor scale = full({1}, 1024, {.device = device});
    for (int t = 0; t < 3; ++t) {
      Tensor norm = within->step(grads, {.max_norm = 0.5});
      for (std::size_t i = 0; i < grads.size(); ++i) copy_(clipped[i], grads[i]);
      EXPECT_EQ(norm.item(), optim::clip_grad_norm_(clipped, 0.5).item());
      EXPECT_FALSE(before->step(clipped).defined());
      std::vector<Tensor> again = copies(scaled);
      EXPECT_EQ(with_scale->step(again, {.grad_scale = scale, .max_norm = 0.5}).item(), norm.item()) << "of the gradients over the scale, a power of two";
      for (std::size_t i = 0; i < grads.size(); ++i) EXPECT_EQ(again[i].to_bytes(), grads[i].to_bytes());
    }
    for (std::size_t i = 0; i < grads.size(); ++i) {
      EXPECT_EQ(a[i].to_bytes(), b[i].to_bytes());
      EXPECT_EQ(a[i].to_bytes(), c[i].to_bytes());
    }
  }
}

/// What torch.amp.GradScaler does with its numbers.
struct ScalerModel {
  optim::GradScalerOptions options;
  float scale = 0;
  int tracker = 0;
  void update(bool found) {
    if (found) {
      scale *= static_cast<float>(options.backoff_factor), tracker = 0;
    } else if (++tracker == options.growth_interval) {
      float grown = scale * static_cast<float>(options.growth_factor);
      if (std::isfinite(grown)) scale = grown;
      tracker = 0;
    }
  }
};

TEST(Optim, ScalerFollowsItsModel) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      optim::GradScalerOptions options{.init_scale = 5, .growth_factor = 3, .backoff_factor = 0.7, .growth_interval = 3};
      optim::GradScaler scaler(options, device);
      ScalerModel model{options, 5};
      TensorOptions like{.dtype = dtype, .device = device};
      Tensor p = full({100}, 1, like), q = full({10}, 1, like);
      optim::SGD first({p}, {.lr = 0x1p-4}), second({q}, {.lr = 0x1p-4});
      int skipped = 0;
      const float bad_ones[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
      for (int t = 0; t < 24; ++t) {
        std::vector<float> values(100, 2 * model.scale);
        bool bad = t % 7 == 2 || t == 10;
        if (bad) values[t == 10 ? 99 : 16 * static_cast<std::size_t>(t / 7)] = bad_ones[t % 3];
        Tensor g = from_host(values, {100}, device).to(dtype), h = full({10}, 1, like);
        std::vector<std::uint8_t> before = p.to_bytes();
        float seventh = g.to(DType::f32).to_host<float>()[7];
        bool apart = t % 2 == 1;
        if (apart) {
          scaler.unscale_(first, std::span(&g, 1));
          float inverse = 1 / model.scale;
          EXPECT_EQ(g.to(DType::f32).to_host<float>()[7], full({1}, seventh * inverse, like).to(DType::f32).item());
        }
        scaler.step(first, std::span(&g, 1));
        scaler.step(second, std::span(&h, 1));
        scaler.update();
        EXPECT_EQ(p.to_bytes() == before, bad) << t;
        skipped += bad;
        model.update(bad);
        ASSERT_EQ(scaler.get_scale(), static_cast<double>(model.scale)) << t;
        ASSERT_EQ(scaler.state().at("growth_tracker").item(), model.tracker) << t;
      }
      EXPECT_EQ(first.state().at("0.step").item(), 24 - skipped) << "skipped steps do not count";
      EXPECT_EQ(second.state().at("0.step").item(), 24) << "each optimizer skips by its own gradients";
      auto saved = scaler.state();
      optim::GradScaler other({}, device);
      other.load_state(saved);
      EXPECT_EQ(other.get_scale(), scaler.get_scale());
      scaler.update(16);
      EXPECT_EQ(scaler.get_scale(), 16);
      Tensor loss = full({2}, 3, like), scaled = scaler.scale(loss);
      EXPECT_EQ(scaled.dtype(), dtype);
      EXPECT_EQ(scaled.to(DType::f32).to_host<float>()[1], 48);
    }
    // Growth stops before infinity.
    optim::GradScaler huge({.init_scale = 0x1p127, .growth_interval = 1}, device);
    Tensor p = full({3}, 1, {.device = device}), g = full({3}, 1, {.device = device});
    optim::SGD sgd({p});
    huge.step(sgd, std::span(&g, 1));
    huge.update();
    EXPECT_EQ(huge.get_scale(), 0x1p127);
    optim::GradScaler off({.enabled = false}, device);
    EXPECT_EQ(off.get_scale(), 1);
    off.unscale_(sgd, std::span(&g, 1)), off.step(sgd, std::span(&g, 1)), off.update();
    EXPECT_EQ(sgd.state().at("0.step").item(), 2);
  }
}

TEST(Optim, ScalerRefusesWhatIsOutOfOrder) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor p = full({3}, 1, {.device = device}), g = full({3}, 1, {.device = device});
    optim::SGD sgd({p});
    optim::GradScaler scaler({}, device);
    auto refused = [&](auto&& f) { return code_of(f); };
    EXPECT_EQ(refused([&] { scaler.update(); }), ErrorCode::invalid_argument);
    scaler.unscale_(sgd, std::span(&g, 1));
    EXPECT_EQ(refused([&] { scaler.unscale_(sgd, std::span(&g, 1)); }), ErrorCode::invalid_argument);
    scaler.step(sgd, std::span(&g, 1));
    EXPECT_EQ(refused([&] { scaler.step(sgd, std::span(&g, 1)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { scaler.unscale_(sgd, std::span(&g, 1)); }), ErrorCode::invalid_argument);
    scaler.update();
    EXPECT_EQ(refused([&] { scaler.step(sgd, std::span(&g, 1), {.found_inf = g}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { scaler.step(sgd, std::vector<Tensor>(1)); }), ErrorCode::invalid_argument) << "no gradient at all";
    EXPECT_EQ(refused([&] { optim::GradScaler({.growth_factor = 1}, device); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::GradScaler({.backoff_factor = 1}, device); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::GradScaler({.growth_interval = 0}, device); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::GradScaler({.init_scale = std::nan("")}, device); }), ErrorCode::invalid_argument);
    Tensor one = full({1}, 1, {.device = device});
    EXPECT_EQ(refused([&] { optim::update_scale_(one, one, one); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(refused([&] { optim::update_scale_(g, one, one); }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([&] { optim::check_and_unscale_(std::span(&g, 1), {}); }), ErrorCode::invalid_argument);
    std::vector<std::unique_ptr<optim::SGD>> many;
    for (int i = 0; i < 17; ++i) many.push_back(std::make_unique<optim::SGD>(std::vector<Tensor>{full({3}, 1, {.device = device})}));
    for (int i = 0; i < 16; ++i) scaler.step(*many[static_cast<std::size_t>(i)], std::span(&g, 1));
    EXPECT_EQ(refused([&] { scaler.step(*many[16], std::span(&g, 1)); }), ErrorCode::invalid_argument);
    scaler.update();
    EXPECT_EQ(refused([&] { scaler.step(*many[16], std::span(&g, 1)); }), ErrorCode::ok);
    Stream stream(device);
    Graph graph;
    EXPECT_EQ(refused([&] {
                GraphCapture capture(graph, stream);
                optim::GradScaler inside({}, device, stream);
              }),
              ErrorCode::capturing);
  }
}

TEST(Optim, ScalerKnowsAnOptimizerThatMoves) {
  CLUTCH_EACH_DEVICE(device) {
    auto value_of = [](const Tensor& t) { return t.to_host<float>()[2]; };
    auto one = [&](double value) { return full({3}, value, {.device = device}); };
    optim::GradScaler scaler({.init_scale = 1024}, device);
    // Moved between unscale_() and step(): the gradients are 2, not 2 / 1024.
    Tensor p = one(1), g = one(2 * 1024);
    optim::SGD first({p}, {.lr = 1});
    scaler.unscale_(first, std::span(&g, 1));
    optim::SGD moved = std::move(first);
    EXPECT_EQ(code_of([&] { scaler.unscale_(moved, std::span(&g, 1)); }), ErrorCode::invalid_argument);
    scaler.step(moved, std::span(&g, 1));
    EXPECT_EQ(value_of(p), -1);
    EXPECT_EQ(code_of([&] { scaler.step(moved, std::span(&g, 1)); }), ErrorCode::invalid_argument);
    scaler.update();
    // Another optimizer in its place, at the same address: its gradients are not unscaled yet.
    std::optional<optim::SGD> place(std::in_place, std::vector<Tensor>{p}, optim::SGDOptions{.lr = 1});
    g = one(1024);
    scaler.unscale_(*place, std::span(&g, 1));
    const optim::Optimizer* address = &*place;
    Tensor q = one(1), h = one(2 * 1024);
    place.emplace(std::vector<Tensor>{q}, optim::SGDOptions{.lr = 1});
    ASSERT_EQ(&*place, address);
    EXPECT_EQ(code_of([&] { scaler.unscale_(*place, std::span(&h, 1)); }), ErrorCode::ok);
    scaler.step(*place, std::span(&h, 1));
    EXPECT_EQ(value_of(q), -1);
    scaler.update();
    // The same by assignment, and by a swap of two that are at different stages.
    optim::SGD a({p}, {.lr = 1}), b({q}, {.lr = 1});
    fill_(p, 1), fill_(q, 1), fill_(g, 2 * 1024), fill_(h, 3 * 1024);
    scaler.unscale_(a, std::span(&g, 1));
    std::swap(a, b);
    scaler.step(a, std::span(&h, 1));
    scaler.step(b, std::span(&g, 1));
    EXPECT_EQ(value_of(p), -1);
    EXPECT_EQ(value_of(q), -2);
    scaler.update();
    // What was moved from refuses. NOLINTBEGIN(bugprone-use-after-move)
    optim::SGD taken = std::move(a);
    auto refused = [&](auto&& f) { return code_of(f); };
    EXPECT_EQ(refused([&] { a.step(std::span(&h, 1)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { a.state(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { a.lr(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { a.groups(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { a.add_param_group({p}, {}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { scaler.step(a, std::span(&h, 1)); }), ErrorCode::invalid_argument);
    optim::GradScaler other = std::move(scaler);
    EXPECT_EQ(refused([&] { scaler.update(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { scaler.get_scale(); }), ErrorCode::invalid_argument);
    // NOLINTEND(bugprone-use-after-move)
    other.step(taken, std::span(&h, 1));
    a = std::move(taken);
    EXPECT_EQ(a.groups(), 1u) << "and takes another one in";
  }
}

TEST(Optim, NumbersAreCheckedAsTheyAreUsed) {
  CLUTCH_EACH_DEVICE(device) {
    using Options = optim::GradScalerOptions;
    auto scaler = [&](const Options& o) { return code_of([&] { optim::GradScaler(o, device); }); };
    const Options bad[] = {{.init_scale = 1e39},    {.init_scale = 1e-50},         {.init_scale = 1e-40},     {.growth_factor = 1 + 1e-12},
                           {.growth_factor = 1e39}, {.backoff_factor = 1 - 1e-12}, {.backoff_factor = 1e-50}, {.backoff_factor = 1e-40}};
    Tensor scale = full({1}, 1, {.device = device}), tracker = zeros({1}, {.dtype = DType::i32, .device = device}), found = zeros({1}, {.device = device});
    for (const Options& o : bad) {
      EXPECT_EQ(scaler(o), ErrorCode::invalid_argument) << o.init_scale << ' ' << o.growth_factor << ' ' << o.backoff_factor;
      if (o.init_scale != Options().init_scale) continue;
      EXPECT_EQ(code_of([&] { optim::update_scale_(scale, tracker, found, o); }), ErrorCode::invalid_argument) << o.growth_factor << ' ' << o.backoff_factor;
    }
    EXPECT_EQ(scaler({.init_scale = 0x1p-126, .growth_factor = 1 + 0x1p-23, .backoff_factor = 1 - 0x1p-24}), ErrorCode::ok);
    optim::GradScaler fine({}, device);
    for (double number : {1e39, 1e-50, 0.0, -1.0}) EXPECT_EQ(code_of([&] { fine.update(number); }), ErrorCode::invalid_argument) << number;
    EXPECT_EQ(fine.get_scale(), 65536);
    // An optimizer's betas, in the type of its scalars.
    Tensor p = full({3}, 1, {.device = device});
    auto refused = [&](auto&& f) { return code_of(f); };
    EXPECT_EQ(refused([&] { optim::Adam({p}, {.beta1 = 1 - 1e-12}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::AdamW({p}, {.beta2 = 1 - 1e-12}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::Adam({p}, {.beta1 = 1 - 0x1p-24, .beta2 = 1 - 0x1p-24}); }), ErrorCode::ok);
    if (device.traits().fp64) {
      EXPECT_EQ(refused([&] { optim::Adam({p.to(DType::f64)}, {.beta1 = 1 - 1e-12, .beta2 = 1 - 1e-12}); }), ErrorCode::ok);
    }
    // Learning rates and their factors: a finite number that f32 has not.
    for (double rate : {1e39, -1e-50, std::nan("")})
      EXPECT_EQ(refused([&] { optim::LRScheduler(std::span(&rate, 1), {}, device); }), ErrorCode::invalid_argument) << rate;
    const double one = 1;
    EXPECT_EQ(refused([&] { optim::LRScheduler(std::span(&one, 1), {.warmup_steps = 3, .warmup_start = 1e39}, device); }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([&] { optim::LRScheduler(std::span(&one, 1), {.decay = optim::Decay::linear, .decay_steps = 3, .end = 1e39}, device); }),
              ErrorCode::invalid_argument);
  }
}

/// The factor in double.
double factor_at(const optim::LRSchedulerOptions& o, std::int64_t t) {
  if (t < o.warmup_steps) return o.warmup_start + (1 - o.warmup_start) * static_cast<double>(t) / static_cast<double>(o.warmup_steps);
  if (o.decay == optim::Decay::constant) return 1;
  double x = std::min(1.0, static_cast<double>(t - o.warmup_steps) / static_cast<double>(o.decay_steps));
  return o.decay == optim::Decay::linear ? 1 + (o.end - 1) * x : o.end + (1 - o.end) * (1 + std::cos(std::numbers::pi * x)) / 2;
}

TEST(Optim, SchedulesFollowTheirFormulas) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor p = full({3}, 1, {.device = device}), q = full({3}, 1, {.device = device});
    optim::SGD sgd({p}, {.lr = 0.5});
    sgd.add_param_group({q}, {.lr = 0.25});
    for (std::int64_t warmup : {0, 7})
      for (optim::Decay decay : {optim::Decay::constant, optim::Decay::linear, optim::Decay::cosine})
        for (double end : {0.0, 0.1, 1.0}) {
          optim::LRSchedulerOptions options{.warmup_steps = warmup, .warmup_start = end / 2, .decay = decay, .decay_steps = 23, .end = end};
          optim::LRScheduler scheduler(sgd, options);
          for (std::int64_t t = 0; t < 40; ++t) {
            std::vector<float> lr = scheduler.lr().to_host<float>();
            double want = factor_at(options, t);
            ASSERT_EQ(lr.size(), 2u);
            EXPECT_LE(std::fabs(static_cast<double>(lr[0]) / 0.5 - want), 4 * 0x1p-24)
                << "warm-up " << warmup << " decay " << static_cast<int>(decay) << " t " << t;
            EXPECT_EQ(lr[1], lr[0] / 2);
            scheduler.step();
          }
          EXPECT_EQ(scheduler.state().at("step").item(), 40);
        }
    // Ends that are exact, long schedules, and a state that is loaded.
    const double one[] = {1.0};
    optim::LRSchedulerOptions longer{.warmup_steps = 1'000'000, .decay = optim::Decay::cosine, .decay_steps = 100'000'000, .end = 0.125};
    optim::LRScheduler scheduler(one, longer, device);
    EXPECT_EQ(scheduler.lr().item(), 0);
    for (std::int64_t t : {1'000'000LL, 51'000'000LL, 101'000'000LL, 4'000'000'000'000LL, 500'000LL, 7'654'321LL}) {
      Tensor at = full({1}, static_cast<double>(t), {.dtype = DType::i64, .device = device});
      scheduler.load_state({{"step", at}});
      EXPECT_LE(std::fabs(scheduler.lr().item() - factor_at(longer, t)), 4 * 0x1p-24) << t;
      if (t == 1'000'000) {
        EXPECT_EQ(scheduler.lr().item(), 1);
      }
      if (t > 101'000'000) {
        EXPECT_EQ(scheduler.lr().item(), 0.125);
      }
    }
    // Each group steps with its own.
    optim::LRScheduler both(sgd, {.decay = optim::Decay::linear, .decay_steps = 2});
    std::vector<Tensor> grads{full({3}, 1, {.device = device}), full({3}, 1, {.device = device})};
    for (int t = 0; t < 3; ++t) sgd.step(grads, {.lr = both.lr()}), both.step();
    EXPECT_EQ(p.to_host<float>()[2], 1 - 0.5f - 0.25f);
    EXPECT_EQ(q.to_host<float>()[2], 1 - 0.25f - 0.125f);
    auto refused = [&](const optim::LRSchedulerOptions& o) { return code_of([&] { optim::LRScheduler(one, o, device); }); };
    EXPECT_EQ(refused({.decay = optim::Decay::linear}), ErrorCode::invalid_argument);
    EXPECT_EQ(refused({.warmup_steps = -1}), ErrorCode::invalid_argument);
    EXPECT_EQ(refused({.end = std::nan("")}), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { optim::LRScheduler(std::span<const double>(), {}, device); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sgd.step(grads, {.lr = full({3}, 1, {.device = device})}); }), ErrorCode::invalid_shape);
  }
}

/// Scale, norm, clip, step, growth and learning rate: the graph's replays are the eager calls.
TEST(Optim, AllAroundTheStepIsCaptured) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    auto run = [&](bool captured) {
      Tensor p = randn({3000}, {.device = device, .seed = 1}, stream), x = randn({3000}, {.device = device, .seed = 2}, stream);
      optim::AdamW adamw({p}, {.lr = 0.1}, stream);
      optim::GradScaler scaler({.init_scale = 0x1p20, .growth_interval = 2}, device, stream);
      optim::LRScheduler schedule(adamw, {.warmup_steps = 3, .decay = optim::Decay::cosine, .decay_steps = 5}, stream);
      auto once = [&] {
        Tensor grad = mul(x, 0x1p110, {}, stream);  // overflows while the scale is large
        mul_(grad, scaler.scale_tensor(), {}, stream);
        scaler.step(adamw, std::span(&grad, 1), {.lr = schedule.lr(), .max_norm = 1}, stream);
        scaler.update(stream), schedule.step(stream);
      };
      if (!captured) {
        for (int t = 0; t < 12; ++t) once();
      } else {
        Graph graph({.backend = backend});
        {
          GraphCapture capture(graph, stream);
          once();
        }
        for (int t = 0; t < 12; ++t) graph.replay(stream);
      }
      return std::tuple(p.to_bytes(stream), scaler.get_scale(stream), schedule.lr().item(stream), adamw.state().at("0.step").item(stream));
    };
    auto eager = run(false), replayed = run(true);
    EXPECT_EQ(replayed, eager);
    EXPECT_LT(std::get<3>(eager), 12) << "some steps overflowed";
    EXPECT_GT(std::get<3>(eager), 3) << "others did not";
  }
}

}}  // namespace clutch::testing
