// SPDX-License-Identifier: Apache-2.0
#include "cases/optim.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/omp.hpp"
#include "peers/omp_optim.hpp"
#include "peers/torch.hpp"
#include "support/compare.hpp"

#include <clutch/clutch.hpp>

#include <array>
#include <chrono>
#include <cmath>

namespace clutch::bench {

void register_optim(Rows& rows);
void sweep_optim(SweptOps& ops);

namespace {

using cases::OptimCase;
using cases::OptimModel;
using Kind = OptimModel::Kind;

struct Subject {
  std::string_view name;
  OptimModel model;
  std::string_view torch;  ///< its constructor's arguments
};
constexpr double kLr = 1e-3;
const Subject kSubjects[] = {
    {"sgd", {.kind = Kind::sgd, .lr = kLr, .a = 0.9, .b = 0, .buffer = true}, "SGD(ps, lr=1e-3, momentum=0.9, fused=True)"},
    {"adam", {.kind = Kind::adam, .lr = kLr}, "Adam(ps, lr=1e-3, fused=True)"},
    {"adamw", {.kind = Kind::adam, .lr = kLr, .weight_decay = 1e-2, .decoupled = true}, "AdamW(ps, lr=1e-3, fused=True)"},
    {"adagrad", {.kind = Kind::adagrad, .lr = kLr, .a = 0, .eps = 1e-10}, "Adagrad(ps, lr=1e-3, fused=True)"},
    {"rmsprop", {.kind = Kind::rmsprop, .lr = kLr, .a = 0.99, .b = 0}, "RMSprop(ps, lr=1e-3, foreach=True)"},
};
const Subject& kAdamW = kSubjects[2];

struct Types {
  std::string_view name;
  DType dtype;
  optim::Precision precision;
  omp::OptimTypes peer;  ///< rounds to nearest
};
constexpr Types kTypes[] = {{"f32", DType::f32, {}, omp::OptimTypes::f32},
                            {"bf16", DType::bf16, {}, omp::OptimTypes::bf16},
                            {"bf16_master", DType::bf16, {.state = optim::StateType::f32, .master = true}, omp::OptimTypes::bf16_master},
                            {"bf16_stochastic", DType::bf16, {.rounding = optim::Rounding::stochastic, .seed = 7}, omp::OptimTypes::bf16},
                            {"bf16_kahan", DType::bf16, {.rounding = optim::Rounding::kahan}, omp::OptimTypes::bf16}};

struct List {
  std::string_view name;
  std::vector<std::int64_t> sizes;
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (std::int64_t n : sizes) sum += n;
    return sum;
  }
};

/// The tensors of GPT-2's smallest model.
std::vector<std::int64_t> gpt2() {
  constexpr std::int64_t d = 768;
  std::vector<std::int64_t> sizes{50257 * d, 1024 * d};
  for (int layer = 0; layer < 12; ++layer) sizes.insert(sizes.end(), {d, d, 3 * d * d, 3 * d, d * d, d, d, d, 4 * d * d, 4 * d, 4 * d * d, d});
  sizes.insert(sizes.end(), {d, d});
  return sizes;
}
std::vector<std::int64_t> mixed() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < 300; ++i) sizes.push_back(i % 50 == 0 ? 0 : i % 3 == 0 ? 1 + i % 7 : i % 3 == 1 ? 100 * i + 7 : 3000 + i * i);
  return sizes;
}
std::vector<List> lists() {
  return {{"one_16M", {1 << 24}}, {"small_1000x4096", std::vector<std::int64_t>(1000, 4096)}, {"gpt2_124M", gpt2()}, {"mixed", mixed()}};
}

cases::PreciseStep step_of(const Subject& subject, const Types& types) { return {subject.model, types.dtype, types.precision}; }

std::unique_ptr<optim::Optimizer> make(OptimModel m, std::vector<Tensor> params, const optim::Precision& precision) {
  m.numerics = optim::Numerics::automatic;
  return OptimCase::make(m, std::move(params), precision);
}

/// Parameters, gradients and their optimizer.
struct Model {
  std::vector<Tensor> params, grads;
  std::unique_ptr<optim::Optimizer> optimizer;
};
std::shared_ptr<Model> make_model(const Device& device, const Subject& subject, const Types& types, const std::vector<std::int64_t>& sizes) {
  auto model = std::make_shared<Model>();
  std::uint64_t seed = 1;
  for (std::int64_t n : sizes) {
    model->params.push_back(randn({n}, {.dtype = types.dtype, .device = device, .seed = seed++}));
    model->grads.push_back(randn({n}, {.dtype = types.dtype, .device = device, .seed = seed++}));
  }
  model->optimizer = make(subject.model, model->params, types.precision);
  return model;
}

/// The last elements of a parameter and what belongs to it.
struct Sample {
  static constexpr std::int64_t kMost = 5000;
  std::size_t first = 0;
  std::vector<float> rows[6];  ///< parameter, gradient, states, f32 weight or compensation
};
Sample sample_of(const Model& m, std::size_t i) {
  Sample s;
  std::int64_t n = std::min(m.params[i].numel(), Sample::kMost);
  s.first = static_cast<std::size_t>(m.params[i].numel() - n);
  auto state = m.optimizer->state();
  auto add = [&](std::size_t row, const Tensor& t) {
    std::vector<std::uint8_t> raw = t.reshape({t.numel()}).slice(0, t.numel() - n, t.numel()).to_bytes();
    for (std::size_t e = 0; e < static_cast<std::size_t>(n); ++e) s.rows[row].push_back(static_cast<float>(model::value_at(raw.data(), e, t.dtype())));
  };
  add(0, m.params[i]), add(1, m.grads[i]);
  std::size_t row = 2;
  for (const char* name : {"exp_avg", "exp_avg_sq", "sum", "square_avg", "momentum_buffer"})
    if (auto found = state.find(fmt::format("{}.{}", i, name)); found != state.end()) add(row++, found->second);
  for (const char* name : {"master", "compensation"})
    if (auto found = state.find(fmt::format("{}.{}", i, name)); found != state.end()) add(5, found->second);
  for (auto& values : s.rows) values.resize(static_cast<std::size_t>(n));
  return s;
}

/// One more step of all, compared with the model's in bits on the last elements of some parameters.
std::string check(const Model& m, cases::PreciseStep step, const Device& device) {
  step.model.numerics = device.traits().fp64 ? optim::Numerics::source : optim::Numerics::f32;
  std::vector<std::size_t> looked_at;
  for (std::size_t i = 0; i < m.params.size(); i += std::max<std::size_t>(1, m.params.size() / 10))
    if (m.params[i].numel() > 0) looked_at.push_back(i);
  std::vector<Sample> before;
  for (std::size_t i : looked_at) before.push_back(sample_of(m, i));
  auto t = static_cast<std::int64_t>(m.optimizer->state().at("0.step").item()) + 1;
  m.optimizer->step(m.grads);
  for (std::size_t k = 0; k < looked_at.size(); ++k) {
    Sample after = sample_of(m, looked_at[k]), &from = before[k];
    for (std::size_t e = 0; e < from.rows[0].size(); ++e) {
      float p = from.rows[0][e], s[3] = {from.rows[2][e], from.rows[3][e], from.rows[4][e]}, last = from.rows[5][e];
      step.step(t, static_cast<std::uint32_t>(looked_at[k]), from.first + e, from.rows[1][e], p, s, last);
      if (p != after.rows[0][e] || s[0] != after.rows[2][e] || last != after.rows[5][e])
        return fmt::format("element {} of parameter {} is {}, the model's {}", e, looked_at[k], after.rows[0][e], p);
    }
  }
  return {};
}

/// The step as a chain of ops, one parameter after another; f32 alone.
void composed_step(const OptimModel& m, const std::vector<Tensor>& params, const std::vector<Tensor>& grads, std::vector<std::array<Tensor, 2>>& s, int t,
                   const Stream& stream) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Tensor &p = params[i], &g = grads[i];
    Tensor &s0 = s[i][0], &s1 = s[i][1];
    if (m.kind == Kind::sgd) {
      mul_(s0, m.a, {}, stream);
      add_scaled_(s0, g, 1, {}, stream);
      add_scaled_(p, s0, -m.lr, {}, stream);
    } else if (m.kind == Kind::adam) {
      if (m.decoupled) mul_(p, 1 - m.lr * m.weight_decay, {}, stream);
      copy_(s0, lerp(s0, g, 1 - m.a, {}, stream), {}, stream);
      mul_(s1, m.b, {}, stream);
      addcmul_(s1, g, g, {.value = 1 - m.b}, stream);
      Tensor root = sqrt(s1, {}, stream);
      div_(root, std::sqrt(1 - OptimModel::power(m.b, t)), {}, stream);
      add_(root, m.eps, {}, stream);
      addcdiv_(p, s0, root, {.value = -(m.lr / (1 - OptimModel::power(m.a, t)))}, stream);
    } else {
      if (m.kind == Kind::rmsprop) mul_(s0, m.a, {}, stream);
      addcmul_(s0, g, g, {.value = m.kind == Kind::rmsprop ? 1 - m.a : 1}, stream);
      Tensor root = sqrt(s0, {}, stream);
      add_(root, m.eps, {}, stream);
      addcdiv_(p, g, root, {.value = -m.lr}, stream);
    }
  }
}

Work work_of(const Device& device, const Subject& subject, const Types& types, const List& list) {
  auto model = make_model(device, subject, types, list.sizes);
  Work work;
  work.run = [model, device](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) model->optimizer->step(model->grads, stream);
    stream.synchronize();
  };
  work.check = [model, &subject, &types, device] { return check(*model, step_of(subject, types), device); };

  struct Host {
    std::vector<omp::Buffer> buffers;
    std::vector<omp::OptimArrays> arrays;
    int t = 0;
  };
  auto host = std::make_shared<Host>();
  auto width = static_cast<std::uint64_t>(bits(types.dtype) / 8), state_width = types.precision.master ? 4 : width;
  for (std::int64_t n : list.sizes) {
    auto count = static_cast<std::uint64_t>(n);
    auto take = [&](std::uint64_t bytes) {
      host->buffers.emplace_back(std::max<std::uint64_t>(bytes, 64));
      return host->buffers.back().data();
    };
    omp::OptimArrays a{take(count * width), nullptr, {take(count * state_width), take(count * state_width)}, nullptr, n};
    a.g = take(count * width);
    if (types.precision.master) a.master = static_cast<float*>(take(count * 4));
    host->arrays.push_back(a);
  }
  const OptimModel& m = subject.model;
  work.peers.push_back({omp::name(), [host, &subject, &types, &m](int reps) {
                          for (int i = 0; i < reps; ++i) {
                            omp::OptimScalars k{static_cast<float>(m.lr),
                                                static_cast<float>(m.a),
                                                static_cast<float>(m.b),
                                                static_cast<float>(m.eps),
                                                static_cast<float>(m.weight_decay),
                                                ++host->t};
                            for (const omp::OptimArrays& a : host->arrays) omp::optim_step(subject.name, types.peer, a, k);
                          }
                        }});
  if (types.dtype == DType::f32 && list.total() < (1 << 25)) {
    struct Chain {
      std::vector<Tensor> params;
      std::vector<std::array<Tensor, 2>> states;
      int t = 0;
    };
    auto chain = std::make_shared<Chain>();
    for (const Tensor& p : model->params) {
      chain->params.push_back(p.clone());
      chain->states.push_back({zeros(p.sizes(), {.device = device}), zeros(p.sizes(), {.device = device})});
    }
    work.peers.push_back({.name = "composed",
                          .run =
                              [chain, model, &m, device](int reps) {
                                Stream stream = current_stream(device);
                                for (int i = 0; i < reps; ++i) composed_step(m, chain->params, model->grads, chain->states, ++chain->t, stream);
                                stream.synchronize();
                              },
                          .rival = false});
  }
  double bytes = OptimCase::bytes(list.total(), step_of(subject, types));
  if (bytes > 1e8) work.peers.push_back(triad_peer(device, bytes));
  if (!types.precision.master && types.precision.rounding == optim::Rounding::nearest) {
    std::string setup =
        fmt::format("ps = [torch.nn.Parameter(torch.randn(n).to(device, {})) for n in [{}]]\n", torch_dtype(types.dtype), fmt::join(list.sizes, ", "));
    setup += "for p in ps: p.grad = torch.randn_like(p)\n";
    setup += fmt::format("opt = torch.optim.{}", subject.torch);
    add_torch_peer(work, device, setup, "opt.step()");
  }
  synchronize(device);
  return work;
}

/// Enqueueing alone: a thousand tensors that hold nothing to speak of.
Work host_work(const Device& device) {
  auto model = make_model(device, kAdamW, kTypes[0], std::vector<std::int64_t>(1000, 4));
  Work work;
  work.measure = [model, device] {
    Stream stream = current_stream(device);
    stream.synchronize();
    constexpr int kSteps = 20;
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps; ++i) model->optimizer->step(model->grads, stream);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kSteps;
    stream.synchronize();
    return seconds;
  };
  work.check = [model, device] { return check(*model, step_of(kAdamW, kTypes[0]), device); };
  return work;
}

/// The whole step with its clip, beside the step alone.
Work clip_work(const Device& device, const List& list) {
  auto model = make_model(device, kAdamW, kTypes[0], list.sizes), alone = make_model(device, kAdamW, kTypes[0], list.sizes);
  auto run = [device](const std::shared_ptr<Model>& m, const optim::StepOptions& options) {
    return [m, device, options](int reps) {
      Stream stream = current_stream(device);
      for (int i = 0; i < reps; ++i) m->optimizer->step(m->grads, options, stream);
      stream.synchronize();
    };
  };
  Work work;
  work.run = run(model, {.max_norm = 1});
  work.peers.push_back({"step", run(alone, {})});
  work.check = [model, device]() -> std::string {
    double norm = model->optimizer->step(model->grads, {.max_norm = 1}).item(), exact = 0;
    for (const Tensor& g : model->grads)
      if (g.numel() > 0) exact += reduce(Reduce::sum, [](Expr x) { return x * x; }, {g}).item();
    exact = std::sqrt(exact);
    if (std::fabs(norm - exact) > 1e-4 * exact) return fmt::format("norm {}, wanted {}", norm, exact);
    return check(*model, step_of(kAdamW, kTypes[0]), device);
  };
  synchronize(device);
  return work;
}

/// `tensors` sizes up to `most`, with equal chances for each factor of two.
std::vector<std::int64_t> random_sizes(std::int64_t tensors, std::int64_t most) {
  model::Random random(17);
  std::vector<std::int64_t> sizes{most};
  while (static_cast<std::int64_t>(sizes.size()) < tensors)
    sizes.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(std::exp(random.uniform(0, std::log(static_cast<double>(most) + 1)))), 1, most));
  return sizes;
}

}  // namespace

void sweep_optim(SweptOps& ops) {
  SweptOp op{.name = "optim",
             .parameters = {{.name = "optimizer", .words = {}},
                            {.name = "types", .words = {}},
                            {.name = "tensors", .most = 2000, .often_least = 0.2},
                            {.name = "most", .most = 1 << 23}},
             .load =
                 [](const RandomShape& s) {
                   double elements = 0;
                   for (std::int64_t n : random_sizes(s.number("tensors"), s.number("most"))) elements += static_cast<double>(n);
                   // Parameters, gradients, two states, a master, here and at peers; about 1 ns an element.
                   return Load{40 * elements, 100 * elements};
                 },
             .prepare =
                 [](const Device& device, const RandomShape& s) {
                   const auto& subject =
                       *std::find_if(std::begin(kSubjects), std::end(kSubjects), [&](const Subject& x) { return x.name == s.word("optimizer"); });
                   const auto& types = *std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Types& x) { return x.name == s.word("types"); });
                   return work_of(device, subject, types, {"random", random_sizes(s.number("tensors"), s.number("most"))});
                 }};
  for (const Subject& subject : kSubjects) op.parameters[0].words.emplace_back(subject.name);
  for (const Types& types : kTypes) op.parameters[1].words.emplace_back(types.name);
  ops.push_back(std::move(op));
}

void register_optim(Rows& rows) {
  for (const Subject& subject : kSubjects)
    for (const Types& types : kTypes)
      for (const List& list : lists()) {
        rows.push_back({.name = fmt::format("{}/{}/{}", subject.name, types.name, list.name),
                        .bytes = kStated,
                        .in_default = subject.name == "adamw" || (types.name == "f32" && list.name != "gpt2_124M"),
                        .in_quick = subject.name == "adamw" && types.name == "f32" && list.name == "small_1000x4096",
                        .prepare = [&subject, &types, list](const Device& device) { return work_of(device, subject, types, list); }});
      }
  for (const List& list : lists()) {
    // The plans of the norm state its partial sums, too.
    double bytes = OptimCase::bytes(list.total(), step_of(kAdamW, kTypes[0])) + 4.0 * static_cast<double>(list.total());
    rows.push_back(
        {.name = fmt::format("adamw_clip/f32/{}", list.name), .bytes = bytes, .in_default = list.name != "gpt2_124M", .prepare = [list](const Device& device) {
           return clip_work(device, list);
         }});
  }
  rows.push_back({.name = "adamw/f32/host_1000", .in_default = true, .prepare = host_work});
}

}  // namespace clutch::bench
