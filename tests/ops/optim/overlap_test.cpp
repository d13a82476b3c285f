// SPDX-License-Identifier: Apache-2.0
// Which tensors of a call may share memory.
#include "cases/optim.hpp"

#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <fmt/format.h>

namespace clutch::testing { namespace {

using optim::StepOptions;
using List = std::vector<Tensor>;

ErrorCode refused(const std::function<void()>& f) { return code_of(f); }

TEST(OptimOverlap, GradientsAreApartFromAllThatAStepWrites) {
  CLUTCH_EACH_DEVICE(device) {
    TensorOptions like{.device = device};
    Tensor all = full({300}, 1, like), g = full({100}, 2, like), first = all.slice(0, 0, 100), second = all.slice(0, 100, 200);
    const std::vector<std::uint8_t> before = all.to_bytes();
    optim::Adam adam({first});
    adam.add_param_group({second}, {.lr = 0.5});
    auto step = [&](const Tensor& a, const Tensor& b, const StepOptions& options = {}) { return refused([&] { adam.step(List{a, b}, options); }); };
    const Tensor state = adam.state().at("0.exp_avg"), other = adam.state().at("1.exp_avg_sq"), count = adam.state().at("1.step");
    const Tensor beside = all.slice(0, 200, 300);
    EXPECT_EQ(step(all.slice(0, 50, 150), g), ErrorCode::invalid_overlap) << "shifted, over two parameters";
    EXPECT_EQ(step(g, all.slice(0, 199, 299)), ErrorCode::invalid_overlap) << "an element of its own";
    EXPECT_EQ(step(first, g), ErrorCode::invalid_overlap) << "exactly its parameter";
    EXPECT_EQ(step(second, g), ErrorCode::invalid_overlap) << "exactly another one";
    EXPECT_EQ(step(g, second), ErrorCode::invalid_overlap);
    EXPECT_EQ(step(state, g), ErrorCode::invalid_overlap) << "its state";
    EXPECT_EQ(step(other, g), ErrorCode::invalid_overlap) << "the state of another group";
    EXPECT_EQ(step(first, Tensor()), ErrorCode::invalid_overlap);
    for (const Tensor& t : {all.slice(0, 7, 8), state.slice(0, 99, 100), count}) {
      EXPECT_EQ(step(g, g, {.lr = t}), ErrorCode::invalid_overlap);
      EXPECT_EQ(step(g, g, {.found_inf = t}), ErrorCode::invalid_overlap);
      EXPECT_EQ(step(g, g, {.grad_factor = t}), ErrorCode::invalid_overlap);
      EXPECT_EQ(step(g, g.clone(), {.grad_scale = t}), ErrorCode::invalid_overlap);
    }
    // Gradients that are divided by a scale are written.
    Tensor scale = full({1}, 1, like), wide = full({150}, 2, like), h = full({100}, 2, like);
    EXPECT_EQ(step(g, g, {.grad_scale = scale}), ErrorCode::invalid_overlap);
    EXPECT_EQ(step(wide.slice(0, 0, 100), wide.slice(0, 50, 150), {.grad_scale = scale}), ErrorCode::invalid_overlap);
    for (const Tensor& t : {g.slice(0, 99, 100), h.slice(0, 0, 1)}) {
      EXPECT_EQ(step(g, h, {.grad_scale = t}), ErrorCode::invalid_overlap);
      EXPECT_EQ(step(g, h, {.lr = t, .grad_scale = scale}), ErrorCode::invalid_overlap);
      EXPECT_EQ(step(g, h, {.grad_scale = scale, .found_inf = t}), ErrorCode::invalid_overlap);
      EXPECT_EQ(step(g, h, {.grad_scale = scale, .grad_factor = t}), ErrorCode::invalid_overlap);
    }
    EXPECT_EQ(all.to_bytes(), before) << "nothing ran";
    EXPECT_EQ(adam.state().at("0.step").item(), 0);
    // What is only read may be shared, and memory beside parameters is free.
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(step(g, g), ErrorCode::ok);
      EXPECT_EQ(step(g, g, {.lr = g.slice(0, 0, 1), .found_inf = zeros({1}, like), .grad_factor = g.slice(0, 0, 1)}), ErrorCode::ok);
      EXPECT_EQ(step(wide.slice(0, 0, 100), wide.slice(0, 50, 150)), ErrorCode::ok);
      EXPECT_EQ(step(beside, g), ErrorCode::ok);
      EXPECT_EQ(step(g, h, {.lr = scale, .grad_scale = scale, .grad_factor = scale}), ErrorCode::ok);
      EXPECT_EQ(step(g, g, {.grad_scale = scale}), ErrorCode::invalid_overlap) << "though these gradients passed without a scale";
      EXPECT_EQ(step(first, g), ErrorCode::invalid_overlap) << "though others passed";
    }
    // A group that comes later is looked at with gradients that are where they were.
    EXPECT_EQ(step(beside, g), ErrorCode::ok);
    adam.add_param_group({beside}, {});
    EXPECT_EQ(refused([&] { adam.step(List{beside, g, g}); }), ErrorCode::invalid_overlap);
    EXPECT_NE(message_of([&] {
                adam.step(List{g, g, second});
              }).find("gradient 2 shares memory with parameter 1"),
              std::string::npos)
        << message_of([&] {
             adam.step(List{g, g, second});
           });
  }
}

TEST(OptimOverlap, MasterWeightsAndCompensationAreWritten) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor p = full({64}, 1, {.dtype = DType::bf16, .device = device}), g = full({64}, 1, {.dtype = DType::bf16, .device = device});
    optim::SGD kahan({p}, {.precision = {.rounding = optim::Rounding::kahan}});
    EXPECT_EQ(refused([&] { kahan.step(List{kahan.state().at("0.compensation")}); }), ErrorCode::invalid_overlap);
    optim::SGD master({p}, {.precision = {.master = true}});
    EXPECT_EQ(refused([&] { master.step(List{g}, {.lr = master.state().at("0.master").slice(0, 3, 4)}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { master.step(List{g}); }), ErrorCode::ok);
  }
}

TEST(OptimOverlap, ListsOfTheCallers) {
  CLUTCH_EACH_DEVICE(device) {
    TensorOptions like{.device = device};
    Tensor all = full({100}, 1, like), p = all.slice(0, 0, 10), m = all.slice(0, 20, 30), v = all.slice(0, 40, 50), g = all.slice(0, 60, 70);
    Tensor steps = all.slice(0, 90, 91);
    auto adam = [&](const Tensor& param, const Tensor& grad, const Tensor& avg, const Tensor& count, const StepOptions& options = {}) {
      return refused([&] { optim::adam_(List{param}, List{grad}, List{avg}, List{v}, {}, count, {}, options); });
    };
    EXPECT_EQ(adam(p, g, m, steps), ErrorCode::ok);
    EXPECT_EQ(adam(p, g, all.slice(0, 9, 19), steps), ErrorCode::invalid_overlap) << "a state over its parameter";
    EXPECT_EQ(adam(p, all.slice(0, 5, 15), m, steps), ErrorCode::invalid_overlap);
    EXPECT_EQ(adam(p, all.slice(0, 15, 25), m, steps), ErrorCode::invalid_overlap);
    EXPECT_EQ(adam(p, p, m, steps), ErrorCode::invalid_overlap);
    EXPECT_EQ(adam(p, g, m, all.slice(0, 3, 4)), ErrorCode::invalid_overlap) << "steps in a parameter";
    EXPECT_EQ(adam(p, g, m, all.slice(0, 49, 50)), ErrorCode::invalid_overlap) << "steps in a state";
    EXPECT_EQ(adam(p, g, m, steps, {.lr = all.slice(0, 45, 46)}), ErrorCode::invalid_overlap);
    EXPECT_EQ(adam(p, g, m, steps, {.grad_scale = all.slice(0, 65, 66)}), ErrorCode::invalid_overlap);
    EXPECT_EQ(adam(p, g, m, all.slice(0, 65, 66), {.grad_scale = steps}), ErrorCode::invalid_overlap);
    EXPECT_EQ(adam(p, g, m, all.slice(0, 65, 66)), ErrorCode::ok) << "both are only read";
    EXPECT_EQ(refused([&] { optim::sgd_(List{p}, List{m}, List{m}, steps, {.momentum = 0.5}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::adagrad_(List{p}, List{v}, List{v}, steps); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::rmsprop_(List{p}, List{p}, List{v}, {}, {}, steps); }), ErrorCode::invalid_overlap);
  }
}

TEST(OptimOverlap, NormsScalesAndSchedules) {
  CLUTCH_EACH_DEVICE(device) {
    TensorOptions like{.device = device};
    Tensor all = full({100}, 1, like), a = all.slice(0, 0, 30), b = all.slice(0, 29, 59), c = all.slice(0, 60, 90), one = all.slice(0, 95, 96);
    const std::vector<std::uint8_t> before = all.to_bytes();
    EXPECT_EQ(refused([&] { optim::clip_grad_norm_(List{a, b}, 1); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::clip_grad_norm_(List{a, a}, 1); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::clip_grad_norm_(List{a, c}, 1, {.grad_scale = all.slice(0, 60, 61)}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::check_and_unscale_(List{a, b}, one, all.slice(0, 99, 100)); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::check_and_unscale_(List{a, c}, all.slice(0, 0, 1)); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::check_and_unscale_(List{a, c}, one, one); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::check_and_unscale_(List{a, c}, one, all.slice(0, 60, 61)); }), ErrorCode::invalid_overlap);
    optim::GradScaler scaler({}, device);
    optim::SGD sgd({c});
    EXPECT_EQ(refused([&] { scaler.unscale_(sgd, List{a, b}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { scaler.unscale_(sgd, List{scaler.scale_tensor()}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(all.to_bytes(), before) << "nothing ran";
    EXPECT_EQ(refused([&] { optim::grad_norm(List{a, b, a}, 1, {.grad_scale = all.slice(0, 3, 4)}); }), ErrorCode::ok) << "all is read";
    EXPECT_EQ(refused([&] { optim::check_and_unscale_(List{a, b, a}, one); }), ErrorCode::ok) << "without a scale gradients are read";
    EXPECT_EQ(refused([&] { optim::check_and_unscale_(List{a, c}, one, all.slice(0, 99, 100)); }), ErrorCode::ok);

    Tensor tracker = zeros({4}, {.dtype = DType::i32, .device = device}), count = tracker.slice(0, 1, 2);
    EXPECT_EQ(refused([&] { optim::update_scale_(one, count, all.slice(0, 90, 96)); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { optim::update_scale_(one, count, all.slice(0, 90, 95)); }), ErrorCode::ok);

    Tensor rates = all.slice(0, 10, 14), step = zeros({1}, {.dtype = DType::i64, .device = device});
    auto schedule = [&](const Tensor& lr) { return refused([&] { optim::schedule_(lr, rates, step, 1, {}); }); };
    EXPECT_EQ(schedule(rates), ErrorCode::invalid_overlap) << "onto its own input";
    EXPECT_EQ(schedule(all.slice(0, 12, 16)), ErrorCode::invalid_overlap);
    EXPECT_EQ(schedule(all.slice(0, 14, 18)), ErrorCode::ok);
  }
}

TEST(OptimOverlap, StatesThatAreLoaded) {
  CLUTCH_EACH_DEVICE(device) {
    TensorOptions like{.device = device};
    Tensor p = full({30000}, 1, like), q = full({30000}, 2, like);
    optim::SGD sgd({p, q}, {.lr = 1, .momentum = 0.5});
    List grads{full({30000}, 3, like), full({30000}, 5, like)};
    sgd.step(grads);
    // Its own state onto itself changes nothing; exchanged states would be written before they are read.
    std::map<std::string, Tensor> state = sgd.state();
    EXPECT_EQ(refused([&] { sgd.load_state(state); }), ErrorCode::ok);
    EXPECT_EQ(sgd.state().at("1.momentum_buffer").to_host<float>()[29999], 5);
    EXPECT_EQ(sgd.state().at("0.step").item(), 1);
    std::swap(state.at("0.momentum_buffer"), state.at("1.momentum_buffer"));
    EXPECT_EQ(refused([&] { sgd.load_state(state); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(sgd.state().at("0.momentum_buffer").to_host<float>()[0], 3);
    // Counters of every chunk follow.
    fill_(sgd.state().at("0.step"), 0);
    sgd.load_state(sgd.state());
    sgd.step(grads);
    const std::vector<float> buffer = sgd.state().at("0.momentum_buffer").to_host<float>();
    EXPECT_EQ(buffer.front(), 3) << "a first step again";
    EXPECT_EQ(buffer.back(), 3);
  }
}

}}  // namespace clutch::testing
