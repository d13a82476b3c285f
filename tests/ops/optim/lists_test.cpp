// SPDX-License-Identifier: Apache-2.0
// Steps over the caller's lists: bits of the classes, steps as a list of tensors, what skips a step.
#include "cases/optim.hpp"

#include "graph/backends.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <algorithm>
#include <vector>

namespace clutch::testing { namespace {

using cases::OptimCase;
using cases::OptimModel;
using Kind = OptimModel::Kind;
using List = std::vector<Tensor>;
using optim::StepOptions;

/// A caller's states of an Adam, as PyTorch keeps them: steps of rank 0, counted before each call.
struct AdamLists {
  List params, avgs, squares, largest, steps;
  explicit AdamLists(const List& given, bool amsgrad = false) {
    for (const Tensor& p : given) {
      params.push_back(p.clone());
      avgs.push_back(zeros(p.sizes(), {.dtype = p.dtype(), .device = p.device()}));
      squares.push_back(zeros(p.sizes(), {.dtype = p.dtype(), .device = p.device()}));
      if (amsgrad) largest.push_back(zeros(p.sizes(), {.dtype = p.dtype(), .device = p.device()}));
      steps.push_back(zeros({}, {.device = p.device()}));
    }
  }
  void count(double by, const Stream& stream = {}) const {
    for (const Tensor& s : steps) add_(s, by, {}, stream);
  }
};

List some_tensors(const Device& device, std::initializer_list<Dims> sizes, std::uint64_t seed, DType dtype = DType::f32) {
  List all;
  for (const Dims& size : sizes) all.push_back(randn(size, {.dtype = dtype, .device = device, .seed = seed++}));
  return all;
}

std::vector<std::uint8_t> bytes_of(const List& list, const Stream& stream = {}) {
  std::vector<std::uint8_t> all;
  for (const Tensor& t : list) {
    const std::vector<std::uint8_t> bytes = t.to_bytes(stream);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

TEST(OptimLists, ListedStepsHaveTheBitsOfTheModel) {
  static constexpr std::int64_t kSizes[] = {5, 0, 1, 16, 8200, 33};
  constexpr std::int64_t kCount = 5 + 1 + 16 + 8200 + 33;
  const OptimModel models[] = {
      {.kind = Kind::sgd, .a = 0.9, .b = 0, .nesterov = true, .buffer = true},
      {.kind = Kind::sgd, .weight_decay = 0.01, .maximize = true},
      {.kind = Kind::adam, .weight_decay = 0.02, .decoupled = true, .extra = true},
      {.kind = Kind::adagrad, .a = 0.1, .eps = 1e-10},
      {.kind = Kind::rmsprop, .a = 0.99, .b = 0.5, .eps = 1e-3, .extra = true, .buffer = true},
  };
  CLUTCH_EACH_DEVICE(device) {
    const DeviceTraits traits = device.traits();
    for (const OptimModel& model : models)
      for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
        if (!traits.fp64 || (level() == "smoke" && dtype != (model.kind == Kind::rmsprop ? DType::bf16 : DType::f32))) continue;
        std::vector<std::uint8_t> rows = OptimCase::make_rows(model, dtype, kCount, seed()), grads = model::make_values(kCount, dtype, seed() + 1, false);
        Tensor all = from_bytes(rows.data(), rows.size(), {1 + model.states(), kCount}, {.dtype = dtype, .device = device});
        Tensor given = from_bytes(grads.data(), grads.size(), {kCount}, {.dtype = dtype, .device = device});
        // Numbers of steps of one tensor each, of several ranks, in memory of their own.
        List steps;
        for (std::size_t i = 0; i < std::size(kSizes); ++i) steps.push_back(full(i % 2 ? Dims{1, 1} : Dims{}, 7, {.device = device}));
        OptimCase::step(model, all, given, kSizes, steps, {});
        OptimCase::reference({model, dtype}, 7, rows.data(), grads.data(), kSizes);
        EXPECT_EQ(compare_bits(all.to_bytes(), rows, dtype, !traits.denormals), "") << "kind " << static_cast<int>(model.kind) << ' ' << name(dtype);
        for (const Tensor& s : steps) EXPECT_EQ(s.item(), 7) << "steps are only read";
      }
  }
}

TEST(OptimLists, EachParameterIsAtItsOwnStep) {
  CLUTCH_EACH_DEVICE(device) {
    const List params = some_tensors(device, {{300}, {9000}, {7}}, 1), grads = some_tensors(device, {{300}, {9000}, {7}}, 11);
    AdamLists one(params, true), other(params, true);
    const float numbers[] = {1, 5, 1000};
    for (std::size_t i = 0; i < 3; ++i) fill_(one.steps[i], numbers[i]);
    optim::adamw_(one.params, grads, one.avgs, one.squares, one.largest, one.steps, {.amsgrad = true});
    optim::adamw_(other.params, grads, other.avgs, other.squares, other.largest, from_host({1.0f, 5.0f, 1000.0f}, device), {.amsgrad = true});
    EXPECT_EQ(bytes_of(one.params), bytes_of(other.params));
    EXPECT_EQ(bytes_of(one.largest), bytes_of(other.largest));
    // The order of a list decides, not where its tensors are.
    AdamLists reversed(params, true);
    for (std::size_t i = 0; i < 3; ++i) fill_(reversed.steps[2 - i], numbers[i]);
    optim::adamw_(reversed.params, grads, reversed.avgs, reversed.squares, reversed.largest, reversed.steps, {.amsgrad = true});
    EXPECT_NE(reversed.params[0].to_bytes(), one.params[0].to_bytes());
    EXPECT_EQ(reversed.params[1].to_bytes(), one.params[1].to_bytes());
  }
}

TEST(OptimLists, HundredsOfTensorsAreOneLaunchWithTheBitsOfTheClass) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Stream stream(device);
    List params, grads;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const Dims size{static_cast<std::int64_t>(i % 7), static_cast<std::int64_t>(i % 11 + 1)};
      params.push_back(randn(size, {.device = device, .seed = i}, stream));
      grads.push_back(i % 17 == 3 ? Tensor() : randn(size, {.device = device, .seed = 1000 + i}, stream));
    }
    stream.synchronize();
    AdamLists mine(params);
    synchronize(device);
    List theirs;
    for (const Tensor& p : params) theirs.push_back(p.clone(stream));
    optim::AdamW adamw(theirs, {.lr = 0.01}, stream);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      optim::adamw_(mine.params, grads, mine.avgs, mine.squares, {}, mine.steps, {.lr = 0.01}, {}, stream);
    }
    EXPECT_EQ(graph.find("optim::adamw_").size(), 1u) << "one launch";
    for (int t = 0; t < 3; ++t) {
      mine.count(1, stream);
      graph.replay(stream);
      adamw.step(grads, stream);
    }
    EXPECT_EQ(bytes_of(mine.params, stream), bytes_of(theirs, stream));
    EXPECT_NE(bytes_of(mine.params, stream), bytes_of(params, stream));
  }
}

TEST(OptimLists, FoundInfSkipsAndLrAndScaleComeFromTheDevice) {
  CLUTCH_EACH_DEVICE(device) {
    const List params = some_tensors(device, {{40}, {3, 5}}, 1);
    List grads = some_tensors(device, {{40}, {3, 5}}, 5);
    AdamLists mine(params), plain(params);
    const Tensor found = zeros({}, {.device = device}), lr = full({}, 0.25, {.device = device}), scale = full({}, 8, {.device = device});
    List scaled;
    for (const Tensor& g : grads) scaled.push_back(mul(g, 8.0));
    mine.count(1), plain.count(1);
    optim::adam_(mine.params, scaled, mine.avgs, mine.squares, {}, mine.steps, {.lr = 7}, {.lr = lr, .grad_scale = scale, .found_inf = found});
    optim::adam_(plain.params, grads, plain.avgs, plain.squares, {}, plain.steps, {.lr = 0.25});
    EXPECT_EQ(bytes_of(mine.params), bytes_of(plain.params));
    EXPECT_EQ(bytes_of(scaled), bytes_of(grads)) << "unscaled gradients are stored back";
    const std::vector<std::uint8_t> before = bytes_of(mine.params), moments = bytes_of(mine.squares);
    fill_(found, 1);
    mine.count(1);
    optim::adam_(mine.params, scaled, mine.avgs, mine.squares, {}, mine.steps, {.lr = 7}, {.lr = lr, .grad_scale = scale, .found_inf = found});
    EXPECT_EQ(bytes_of(mine.params), before) << "the step is skipped";
    EXPECT_EQ(bytes_of(mine.squares), moments);
    EXPECT_EQ(bytes_of(scaled), bytes_of(grads)) << "and gradients stay";
  }
}

TEST(OptimLists, OneTensorMayBeTheStepOfAll) {
  CLUTCH_EACH_DEVICE(device) {
    const List params = some_tensors(device, {{40}, {3, 5}, {0}}, 1), grads = some_tensors(device, {{40}, {3, 5}, {0}}, 5);
    AdamLists one(params), three(params);
    three.count(1);
    const Tensor step = full({1}, 1, {.device = device});
    optim::adam_(one.params, grads, one.avgs, one.squares, {}, List{step, step, step});
    optim::adam_(three.params, grads, three.avgs, three.squares, {}, three.steps);
    EXPECT_EQ(bytes_of(one.params), bytes_of(three.params));
  }
}

TEST(OptimLists, ListsWithoutATensorDoNothing) {
  CLUTCH_EACH_DEVICE(device) {
    optim::adamw_({}, {}, {}, {}, {}, List{});
    optim::sgd_({}, {}, {}, List{});
    optim::adagrad_({}, {}, {}, List{});
    optim::rmsprop_({}, {}, {}, {}, {}, List{});
    synchronize(device);
  }
}

TEST(OptimLists, ErrorsOfListedSteps) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor p = full({4}, 1, {.device = device}), g = full({4}, 1, {.device = device}), m = zeros({4}, {.device = device}), v = zeros({4}, {.device = device});
    Tensor step = full({}, 1, {.device = device});
    auto adam = [&](const List& steps) { return code_of([&] { optim::adam_(List{p}, List{g}, List{m}, List{v}, {}, steps); }); };
    EXPECT_EQ(adam({step, step}), ErrorCode::invalid_argument);
    EXPECT_EQ(adam({}), ErrorCode::invalid_argument);
    EXPECT_EQ(adam({Tensor()}), ErrorCode::invalid_argument);
    EXPECT_EQ(adam({full({2}, 1, {.device = device})}), ErrorCode::invalid_shape);
    EXPECT_EQ(adam({full({}, 1, {.dtype = DType::i64, .device = device})}), ErrorCode::invalid_dtype);
    EXPECT_EQ(adam({p.select(0, 2)}), ErrorCode::invalid_overlap);
    EXPECT_EQ(adam({v.select(0, 3)}), ErrorCode::invalid_overlap);
    EXPECT_EQ(p.to_host<float>(), std::vector<float>(4, 1.0f)) << "nothing ran";
    EXPECT_EQ(adam({g.select(0, 0)}), ErrorCode::ok) << "both are only read";
    EXPECT_NE(message_of([&] {
                optim::adamw_(List{p}, List{g}, List{m}, List{v}, {}, List{step, step});
              }).find("optim::adamw_: each of 1 parameters must have a tensor of its step, got 2"),
              std::string::npos);
  }
}

}}  // namespace clutch::testing
