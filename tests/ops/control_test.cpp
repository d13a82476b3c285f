// SPDX-License-Identifier: Apache-2.0
// cond(), switch_() and while_loop() as eager calls. Graphs of them: graph/control_test.cpp.
#include "support/messages.hpp"
#include "support/op_runner.hpp"

#include <clutch/interop_cl.hpp>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>
#include <stdexcept>
#include <thread>

namespace clutch::testing { namespace {

using List = std::vector<Tensor>;

Tensor number(const Device& device, double value, DType dtype = DType::i32) { return full({}, value, {.dtype = dtype, .device = device}); }
List nothing() { return {}; }

TEST(Cond, ReturnsWhatTheBranchGivesThatThePredicateTakes) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = from_host<float>({1, 2, 3, 4}, device);
    for (const int p : {0, 1}) {
      const List made = cond(
          number(device, p),
          [&] {
            return List{mul(x, 2), x};
          },
          [&] {
            return List{neg(x), add(x, 1)};
          });
      ASSERT_EQ(made.size(), 2u);
      EXPECT_EQ(made[0].to_host<float>(), (p ? std::vector<float>{2, 4, 6, 8} : std::vector<float>{-1, -2, -3, -4}));
      EXPECT_EQ(made[1].to_host<float>(), (p ? std::vector<float>{1, 2, 3, 4} : std::vector<float>{2, 3, 4, 5}));
      EXPECT_FALSE(made[1].shares_storage(x)) << "results are new tensors";
      EXPECT_TRUE(made[0].is_contiguous() && made[1].is_contiguous());
      fill_(made[1], 9);
      EXPECT_EQ(x.to_host<float>()[0], 1);
    }
  }
}

TEST(Cond, TakesPredicatesOfEveryDtype) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = from_host<float>({1}, device);
    auto taken = [&](const Tensor& predicate) {
      const std::vector<float> got = cond(
                                         predicate, [&] { return List{add(x, 1)}; }, [&] { return List{add(x, 2)}; })[0]
                                         .to_host<float>();
      EXPECT_TRUE(got[0] == 2 || got[0] == 3);
      return got[0] == 2;
    };
    for (int d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      const std::uint64_t bytes = is_packed(dtype) ? 0 : static_cast<std::uint64_t>(bits(dtype)) / 8;
      if (bytes == 0) {
        const std::array<std::uint8_t, 3> raw{1, 1, 1};
        const Dims four{dtype == DType::f4e2m1 ? 2 : 4};
        const Tensor packed = from_bytes(raw.data(), bytes_for(dtype, static_cast<std::uint64_t>(four[0])), four, {.dtype = dtype, .device = device});
        EXPECT_NE(code_of([&] { taken(packed); }), ErrorCode::ok) << name(dtype);
        continue;
      }
      // Each byte alone decides, too, as do subnormals and NaN; the sign of a zero does not.
      for (std::uint64_t at = 0; at <= bytes; ++at) {
        std::vector<std::uint8_t> raw(bytes + 1);
        raw[at + (at < bytes ? 1 : 0)] = at < bytes ? 1 : 0;  // element 0 begins at byte 1 of memory
        const Tensor bytes_tensor = from_bytes(raw.data(), raw.size(), {static_cast<std::int64_t>(raw.size())}, {.dtype = DType::u8, .device = device});
        const Tensor predicate(bytes_tensor.storage(), 1, {1, 1}, {1, 1}, dtype);
        EXPECT_EQ(taken(predicate), at < bytes || dtype == DType::f8e8m0fnu) << name(dtype) << " byte " << at;
      }
      std::vector<std::uint8_t> minus(bytes);
      minus.back() = 0x80;
      EXPECT_EQ(taken(from_bytes(minus.data(), bytes, {}, {.dtype = dtype, .device = device})),
                (!is_floating(dtype) && !is_complex(dtype)) || dtype == DType::f8e8m0fnu)
          << name(dtype);
      std::vector<std::uint8_t> ones(bytes, 0xFF);
      EXPECT_TRUE(taken(from_bytes(ones.data(), bytes, {1, 1, 1}, {.dtype = dtype, .device = device}))) << name(dtype);
    }
  }
}

TEST(Cond, WritesInPlaceOnlyWhereTaken) {
  CLUTCH_EACH_DEVICE(device) {
    for (const int p : {0, 1}) {
      const Tensor a = zeros({300}, {.device = device}), b = zeros({3, 5}, {.device = device}), c = zeros({7}, {.dtype = DType::u8, .device = device});
      const Tensor big = zeros({300000}, {.device = device}), from = full({300000}, 3, {.device = device}), other = full({3, 5}, 4, {.device = device});
      const std::vector<float> host(300, 5), more(300000, 6);
      const List none = cond(
          number(device, p),
          [&] {
            fill_(a, 1);
            copy_(b.slice(1, 1, 4), other.slice(1, 0, 3));
            Encoder(current_stream(device), "bytes").copy(c.slice(0, 1, 6), full({5}, 9, {.dtype = DType::u8, .device = device}));
            copy_(big, from);
            return List{};
          },
          [&] {
            a.write(std::as_bytes(std::span(host)));
            big.write(std::as_bytes(std::span(more)));
            b.slice(0, 2, 3).slice(1, 0, 4, 3).write(std::as_bytes(std::span(host).first(2)));
            add_(b, 8);
            return List{};
          });
      EXPECT_TRUE(none.empty());
      EXPECT_EQ(a.to_host<float>()[299], p ? 1 : 5);
      EXPECT_EQ(b.to_host<float>()[0], p ? 0 : 8);
      EXPECT_EQ(b.to_host<float>()[1], p ? 4 : 8);
      EXPECT_EQ(b.to_host<float>()[13], p ? 4 : 13);
      EXPECT_EQ(c.to_host<std::uint8_t>(), (p ? std::vector<std::uint8_t>{0, 9, 9, 9, 9, 9, 0} : std::vector<std::uint8_t>(7)));
      EXPECT_EQ(big.to_host<float>()[299999], p ? 3 : 6);
    }
  }
}

TEST(Cond, NestsAndAnInnerBranchNeedsTheOuterOne) {
  CLUTCH_EACH_DEVICE(device) {
    for (const int p : {0, 1})
      for (const int q : {0, 1}) {
        const Tensor outer = number(device, p), inner = number(device, q, DType::f32), calls = zeros({4}, {.dtype = DType::i32, .device = device});
        auto count = [&](int i) { add_(calls.slice(0, i, i + 1), 1); };
        auto within = [&](int first, const Tensor& predicate) {
          return cond(
              predicate, [&, first] { return count(first), List{number(device, first)}; },
              [&, first] { return count(first + 1), List{number(device, first + 1)}; });
        };
        // The inner predicate is made in the branch: where that is not taken it holds what memory holds.
        const Tensor got = cond(
            outer, [&] { return within(0, mul(inner, 1)); }, [&] { return within(2, mul(inner, 1)); })[0];
        const int branch = (p ? 0 : 2) + (q ? 0 : 1);
        EXPECT_EQ(got.item(), branch);
        std::vector<std::int32_t> want(4);
        want[static_cast<std::size_t>(branch)] = 1;
        EXPECT_EQ(calls.to_host<std::int32_t>(), want) << p << q;
      }
  }
}

TEST(Cond, DrawsAdvanceOnlyWhereTaken) {
  CLUTCH_EACH_DEVICE(device) {
    const Generator generator(device, 7);
    const Stream stream = current_stream(device);
    auto draw = [&] { return List{rand({100}, {.device = device, .generator = generator}), randn({3}, {.device = device})}; };
    manual_seed(3, device);
    const GeneratorState before = generator.state(), before_default = default_generator(device).state();
    cond(number(device, 0), draw, [&] { return List{zeros({100}, {.device = device}), zeros({3}, {.device = device})}; });
    EXPECT_EQ(generator.state(), before);
    EXPECT_EQ(default_generator(device).state(), before_default);
    const List taken = cond(number(device, 1), draw, [&] { return List{zeros({100}, {.device = device}), zeros({3}, {.device = device})}; });
    const GeneratorState after = generator.state();
    EXPECT_EQ(after.offset, before.offset + 32);
    generator.set_state(before);
    EXPECT_EQ(taken[0].to_host<float>(), rand({100}, {.device = device, .generator = generator}).to_host<float>());
    EXPECT_EQ(generator.state(), after);
    EXPECT_NE(default_generator(device).state(), before_default);
  }
}

TEST(Cond, MakesADefaultGeneratorThatStays) {
  CLUTCH_EACH_DEVICE(device) {
    const FreshDevice fresh(device);
    {
      const Stream stream(fresh.device());
      const StreamGuard guard(stream);
      cond(
          number(fresh.device(), 0), [&] { return List{rand({8}, {.device = fresh.device()})}; }, [&] { return List{zeros({8}, {.device = fresh.device()})}; });
      EXPECT_EQ(default_generator(fresh.device()).state(), (GeneratorState{Generator::kDefaultSeed, 0})) << "made in a branch that was not taken";
    }
  }
}

TEST(Cond, OpsOfEveryKindGiveTheirBits) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = randn({33, 40}, {.device = device, .seed = 1}), w = randn({40, 17}, {.device = device, .seed = 2});
    auto all = [&] {
      const Tensor product = linalg::matmul(x, w), constant = from_host(std::vector<float>(17, 0.5f), {17}, device);
      return List{product,
                  sum(x, {.dims = {1}}),
                  nn::softmax(x, -1),
                  sort(x, 1).values,
                  cumsum(x, 0),
                  cat(List{x, x}, 1),
                  add(product, constant),
                  x.transpose(0, 1),
                  x.to(DType::f16),
                  map([](Expr a) { return sqrt(abs(a)); }, {x}),
                  index_select(x, 0, from_host<std::int64_t>({3, 0, 3}, device))};
    };
    const List want = all();
    const List got = cond(number(device, 1), all, [&] {
      List zeroes;
      for (const Tensor& t : want) zeroes.push_back(zeros(t.sizes(), {.dtype = t.dtype(), .device = device}));
      return zeroes;
    });
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i].to_bytes(), want[i].to_bytes()) << i;
  }
}

TEST(Cond, TakesEmptyTensorsViewsAndSharedResults) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, device).reshape({2, 3}), none = empty({0, 4}, {.device = device});
    for (const int p : {0, 1}) {
      const List got = cond(
          number(device, p),
          [&] {
            const Tensor y = add(x, 1);
            return List{none, y, y, y.transpose(0, 1), y.select(0, 1), sum(none, {.dims = {0}})};
          },
          [&] {
            return List{zeros({0, 4}, {.device = device}), x, x, x.transpose(0, 1), x.select(0, 0), zeros({4}, {.device = device})};
          });
      const float more = p ? 1 : 0;
      EXPECT_EQ(got[0].sizes(), (Dims{0, 4}));
      EXPECT_EQ(got[1].to_host<float>(), (std::vector<float>{1 + more, 2 + more, 3 + more, 4 + more, 5 + more, 6 + more}));
      EXPECT_EQ(got[2].to_host<float>(), got[1].to_host<float>());
      EXPECT_EQ(got[3].to_host<float>(), (std::vector<float>{1 + more, 4 + more, 2 + more, 5 + more, 3 + more, 6 + more}));
      EXPECT_EQ(got[4].to_host<float>(), (p ? std::vector<float>{5, 6, 7} : std::vector<float>{1, 2, 3}));
      EXPECT_EQ(got[5].to_host<float>(), std::vector<float>(4));
      EXPECT_FALSE(got[1].shares_storage(got[2]));
      fill_(got[1], 0);
      EXPECT_EQ(got[2].to_host<float>()[0], 1 + more);
    }
    EXPECT_TRUE(cond(number(device, 1), nothing, nothing).empty());
    EXPECT_TRUE(cond(number(device, 1), {}, {}).empty());
    const Tensor y = zeros({2}, {.device = device});
    cond(number(device, 0), {}, [&] { return fill_(y, 1), nothing(); });
    EXPECT_EQ(y.to_host<float>()[1], 1);
  }
}

TEST(Cond, IsAGradientOfItself) {
  // y = p ? x^3 : sin(x), by the branches' own gradients.
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = from_host<float>({0.5f, -1, 2}, device), w = from_host<float>({3, 3, 3}, device), g = from_host<float>({1, 2, 3}, device);
    for (const int p : {0, 1}) {
      const Tensor predicate = number(device, p);
      auto cube = [](Expr a, Expr b) { return a * a * a * b; };
      auto sine = [](Expr a) { return sin(a); };
      const List grads = cond(
          predicate,
          [&] {
            return List{map_backward({g}, cube, {x, w})[0], map_backward({g}, cube, {x, w})[1]};
          },
          [&] {
            return List{map_backward({g}, sine, {x})[0], zeros({3}, {.device = device})};
          });
      const std::vector<float> at = x.to_host<float>(), grad = g.to_host<float>(), got = grads[0].to_host<float>(), of_w = grads[1].to_host<float>();
      const double h = 1e-4;
      for (std::size_t i = 0; i < 3; ++i) {
        auto f = [&](double v, double k) { return p ? v * v * v * k : std::sin(v); };
        EXPECT_NEAR(got[i], grad[i] * (f(at[i] + h, 3) - f(at[i] - h, 3)) / (2 * h), 1e-4);
        EXPECT_NEAR(of_w[i], grad[i] * (f(at[i], 3 + h) - f(at[i], 3 - h)) / (2 * h), 1e-4);
      }
    }
  }
}

TEST(Cond, SkipsAnOptimizersStep) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor skipped = from_host<float>({1, 2, 3}, device), stepped = skipped.clone(), grad = from_host<float>({0.1f, INFINITY, 0.3f}, device);
    const Tensor fine = from_host<float>({0.1f, 0.2f, 0.3f}, device);
    optim::AdamW guarded({skipped}), plain({stepped});
    for (const Tensor& g : {grad, fine, grad, fine}) {
      const Tensor finite = all(map([](Expr a) { return abs(a) < 1e30; }, {g}));
      cond(finite, [&] { return guarded.step(std::span(&g, 1)), nothing(); }, {});
    }
    for (int i = 0; i < 2; ++i) plain.step(std::span(&fine, 1));
    EXPECT_EQ(skipped.to_host<float>(), stepped.to_host<float>()) << "neither the parameters nor the count of steps moved";
  }
}

TEST(Cond, KeepsNothingThatABranchMadeForLaterCalls) {
  CLUTCH_EACH_DEVICE(device) {
    // A compressed matrix is packed at its first product; a list of gradients is described at its first norm.
    const Tensor w = sparse::prune_2_4(randn({64, 64}, {.device = device, .seed = 1})), b = randn({64, 48}, {.device = device, .seed = 2});
    const Tensor p = full({3}, 1, {.device = device}), g = full({3}, 2, {.device = device});
    const sparse::SemiStructured compressed = sparse::compress(w), other = sparse::compress(w);
    optim::SGD guarded({p}, {.lr = 1.0});
    const optim::StepOptions clipped{.max_norm = 1.0};
    for (const int taken : {0, 1})
      cond(
          number(device, taken), [&] { return guarded.step(std::span(&g, 1), clipped), List{sparse::matmul(compressed, b)}; },
          [&] {
            return List{zeros({64, 48}, {.device = device})};
          });
    EXPECT_EQ(sparse::matmul(compressed, b).to_bytes(), sparse::matmul(other, b).to_bytes());
    guarded.step(std::span(&g, 1), clipped);
    EXPECT_NEAR(p.to_host<float>()[0], 1 - 2 / std::sqrt(3.0), 1e-5) << "one step within, one outside";
  }
}

TEST(Switch, TakesTheBranchOfTheIndexAndClampsIt) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = from_host<float>({1, 2}, device), calls = zeros({3}, {.dtype = DType::i32, .device = device});
    std::vector<BranchFunction> branches;
    for (int b = 0; b < 3; ++b)
      branches.emplace_back([&, b] {
        add_(calls.slice(0, b, b + 1), 1);
        return List{mul(x, 10 * b + 1)};
      });
    std::vector<std::int32_t> want(3);
    auto taken = [&](const Tensor& index, std::size_t branch) {
      ++want[branch];
      EXPECT_EQ(switch_(index, branches)[0].to_host<float>(), (std::vector<float>{static_cast<float>(10 * branch + 1), static_cast<float>(20 * branch + 2)}));
    };
    for (const DType d : {DType::i8, DType::i16, DType::i32, DType::i64})
      for (const int i : {-128, -1, 0, 1, 2, 3, 127}) taken(number(device, i, d), static_cast<std::size_t>(std::clamp(i, 0, 2)));
    for (const DType d : {DType::u8, DType::u16, DType::u32, DType::u64})
      for (const int i : {0, 1, 2, 3, 200}) taken(number(device, i, d), static_cast<std::size_t>(std::clamp(i, 0, 2)));
    taken(from_host<std::uint64_t>({~0ull}, device), 2);
    taken(from_host<std::int64_t>({INT64_MIN}, device), 0);
    taken(from_host<std::int64_t>({std::int64_t{1} << 32}, device), 2);
    taken(number(device, 0, DType::boolean), 0);
    taken(number(device, 1, DType::boolean), 1);
    EXPECT_EQ(calls.to_host<std::int32_t>(), want);
    EXPECT_EQ(switch_(number(device, 5), std::span(branches).first(1))[0].to_host<float>()[0], 1);
  }
}

/// Iterations of Collatz's rule to 1, by the host.
std::int64_t collatz(std::int64_t n) {
  std::int64_t steps = 0;
  for (; n != 1; ++steps) n = n % 2 ? 3 * n + 1 : n / 2;
  return steps;
}

TEST(WhileLoop, CountsAsAHostLoopDoes) {
  CLUTCH_EACH_DEVICE(device) {
    auto goes_on = [](std::span<const Tensor> s) { return map([](Expr n) { return n != 1; }, {s[0]}); };
    auto body = [](std::span<const Tensor> s) { return List{map([](Expr n) { return select((n & 1) != 0, n * 3 + 1, n >> 1); }, {s[0]})}; };
    for (const std::int64_t n : {1, 2, 6, 9}) {
      const Tensor start = from_host<std::int64_t>({n}, device);
      const LoopResult r = while_loop(goes_on, body, std::span(&start, 1), {.max_iterations = 25});
      EXPECT_EQ(r.iterations.dtype(), DType::i64);
      EXPECT_EQ(r.iterations.rank(), 0);
      EXPECT_EQ(r.iterations.item(), static_cast<double>(collatz(n)));
      EXPECT_EQ(r.state[0].item(), 1);
      EXPECT_EQ(start.item(), static_cast<double>(n)) << "the given state stays";
    }
    const Tensor start = from_host<std::int64_t>({9}, device);
    const LoopResult bounded = while_loop(goes_on, body, std::span(&start, 1), {.max_iterations = 3});  // 28, 14, 7
    EXPECT_EQ(bounded.iterations.item(), 3);
    EXPECT_EQ(bounded.state[0].item(), 7);
    const LoopResult none = while_loop(goes_on, body, std::span(&start, 1), {.max_iterations = 0});
    EXPECT_EQ(none.iterations.item(), 0);
    EXPECT_EQ(none.state[0].item(), 9);
    EXPECT_FALSE(none.state[0].shares_storage(start));
  }
}

TEST(WhileLoop, IteratesNewtonAndPowersAsAHostLoop) {
  CLUTCH_EACH_DEVICE(device) {
    // Newton's square root, until the change is small; the host loop reads the same predicate.
    const Tensor a = from_host<float>({2, 3, 1000, 0.25f}, device);
    auto step = [&](const Tensor& x) { return map([](Expr v, Expr of) { return (v + of / v) * 0.5; }, {x, a}); };
    auto far = [&](const Tensor& x) { return any(map([](Expr v, Expr of) { return abs(v * v - of) > of * 1e-5; }, {x, a})); };
    const Tensor one = full({4}, 1, {.device = device});
    const LoopResult r = while_loop([&](std::span<const Tensor> s) { return far(s[0]); }, [&](std::span<const Tensor> s) { return List{step(s[0])}; },
                                    std::span(&one, 1), {.max_iterations = 30});
    Tensor x = one.clone();
    int count = 0;
    while (count < 30 && far(x).item() != 0) x = step(x), ++count;
    EXPECT_GT(count, 5);
    EXPECT_LT(count, 30);
    EXPECT_EQ(r.iterations.item(), count);
    EXPECT_EQ(r.state[0].to_bytes(), x.to_bytes());
    // The power iteration, whose product, norm and two states are of several launches.
    const Tensor m = randn({12, 12}, {.device = device, .seed = 4}), square = linalg::matmul(m, m.mT());
    auto next = [&](const Tensor& v) {
      const Tensor w = linalg::matmul(square, v);
      return div(w, norm(w));
    };
    const List start{full({12, 1}, 1, {.device = device}), full({}, 1, {.device = device})};
    const LoopResult power = while_loop([&](std::span<const Tensor> s) { return map([](Expr d) { return d > 1e-3; }, {s[1]}); },
                                        [&](std::span<const Tensor> s) {
                                          const Tensor v = next(s[0]);
                                          return List{v, norm(sub(v, s[0]))};
                                        },
                                        start, {.max_iterations = 40});
    Tensor v = start[0].clone(), change = start[1].clone();
    int turns = 0;
    while (turns < 40 && change.item() > 1e-3) {
      const Tensor w = next(v);
      change = norm(sub(w, v)), v = w, ++turns;
    }
    EXPECT_EQ(power.iterations.item(), turns);
    EXPECT_EQ(power.state[0].to_bytes(), v.to_bytes());
    EXPECT_EQ(power.state[1].to_bytes(), change.to_bytes());
  }
}

TEST(WhileLoop, CarriesStatesThatAreSwappedWrittenInPlaceOrEmpty) {
  CLUTCH_EACH_DEVICE(device) {
    const List start{from_host<std::int64_t>({0}, device), from_host<std::int64_t>({1}, device), zeros({3, 2}, {.device = device}).transpose(0, 1),
                     empty({0}, {.device = device}), zeros({}, {.dtype = DType::i32, .device = device})};
    // Fibonacci by a swap; state 2 in place; state 4 counts.
    const LoopResult r = while_loop([](std::span<const Tensor> s) { return map([](Expr n) { return n < 10; }, {s[4]}); },
                                    [](std::span<const Tensor> s) {
                                      const Tensor sum = add(s[0], s[1]);
                                      add_(s[2], 1);
                                      return List{s[1], sum, s[2], s[3], add(s[4], 1)};
                                    },
                                    start, {.max_iterations = 12});
    EXPECT_EQ(r.state[0].item(), 55);
    EXPECT_EQ(r.state[1].item(), 89);
    EXPECT_EQ(r.state[2].to_host<float>(), std::vector<float>(6, 10));
    EXPECT_EQ(r.state[2].sizes(), (Dims{2, 3}));
    EXPECT_EQ(r.state[3].numel(), 0);
    EXPECT_EQ(r.iterations.item(), 10);
    EXPECT_EQ(start[2].to_host<float>(), std::vector<float>(6));
    // Two states change places.
    const List pair{from_host<float>({1, 2}, device), from_host<float>({3, 4}, device)};
    const Tensor yes = number(device, 1);
    const LoopResult swapped = while_loop([&](std::span<const Tensor>) { return yes; },
                                          [](std::span<const Tensor> s) {
                                            return List{s[1], s[0]};
                                          },
                                          pair, {.max_iterations = 3});
    EXPECT_EQ(swapped.state[0].to_host<float>(), (std::vector<float>{3, 4}));
    EXPECT_EQ(swapped.state[1].to_host<float>(), (std::vector<float>{1, 2}));
    const Tensor square = from_host<float>({1, 2, 3, 4}, device).reshape({2, 2});
    const LoopResult transposed = while_loop([&](std::span<const Tensor>) { return yes; }, [](std::span<const Tensor> s) { return List{s[0].transpose(0, 1)}; },
                                             std::span(&square, 1), {.max_iterations = 3});
    EXPECT_EQ(transposed.state[0].to_host<float>(), (std::vector<float>{1, 3, 2, 4}));
    // No state: what the body writes in place counts.
    const Tensor left = number(device, 4);
    const LoopResult bare = while_loop([&](std::span<const Tensor>) { return left; }, [&](std::span<const Tensor>) { return sub_(left, 1), nothing(); }, {},
                                       {.max_iterations = 9}, current_stream(device));
    EXPECT_EQ(left.item(), 0);
    EXPECT_EQ(bare.iterations.item(), 4);
  }
}

TEST(WhileLoop, NestsInBranchesAndLoops) {
  CLUTCH_EACH_DEVICE(device) {
    // The sum of i j over 0 <= j < i < n, whose inner loop ends at another place each time.
    const Tensor calls = number(device, 0);
    auto sums = [&](const Tensor& n) {
      const List start{number(device, 0), number(device, 0)};
      return while_loop(
          [&](std::span<const Tensor> s) {
            return map([](Expr i, Expr end) { return i < end; }, {s[0], n});
          },
          [&](std::span<const Tensor> s) {
            const List inner{number(device, 0), s[1]};
            const LoopResult r = while_loop(
                [&](std::span<const Tensor> t) {
                  return map([](Expr j, Expr i) { return j < i; }, {t[0], s[0]});
                },
                [&](std::span<const Tensor> t) {
                  add_(calls, 1);
                  return List{add(t[0], 1), map([](Expr sum, Expr i, Expr j) { return sum + i * j; }, {t[1], s[0], t[0]})};
                },
                inner, {.max_iterations = 6});
            return List{add(s[0], 1), r.state[1]};
          },
          start, {.max_iterations = 6});
    };
    auto want = [](int n) {
      int total = 0;
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j) total += i * j;
      return total;
    };
    for (const int n : {0, 1, 3, 5}) {
      fill_(calls, 0);
      EXPECT_EQ(sums(number(device, n)).state[1].item(), want(n)) << n;
      EXPECT_EQ(calls.item(), n * (n - 1) / 2) << n;
    }
    for (const int p : {0, 1}) {
      fill_(calls, 0);
      const List got = cond(
          number(device, p),
          [&] {
            const LoopResult r = sums(number(device, 4));
            return List{r.state[1], r.iterations};
          },
          [&] {
            return List{number(device, -1), number(device, -2, DType::i64)};
          });
      EXPECT_EQ(got[0].item(), p ? want(4) : -1);
      EXPECT_EQ(got[1].item(), p ? 4 : -2);
      EXPECT_EQ(calls.item(), p ? 6 : 0);
    }
  }
}

/// Callers' own kernels.
constexpr std::string_view kOwn = R"(
__kernel void add_to(__global float* x, float by, __local float* all) {
  all[get_local_id(0)] = by;
  barrier(CLK_LOCAL_MEM_FENCE);
  x[get_global_id(0)] += all[get_local_size(0) - 1 - get_local_id(0)];
}
__kernel void bare() {}
)";
constexpr std::string_view kOwnBase = R"(
#ifdef CLUTCH_PREDICATED
__kernel void add_base(__global const uchar* predicate, ulong predicate_offset, float by, __global uchar* x, ulong x_offset) {
  if (*(__global const uint*)(predicate + predicate_offset) == 0) return;
#else
__kernel void add_base(float by, __global uchar* x, ulong x_offset) {
#endif
  ((__global float*)(x + x_offset))[get_global_id(0)] += by;
}
)";

TEST(Branches, RunCallersKernelsThatTakeAPredicate) {
  CLUTCH_EACH_DEVICE(device) {
    for (const int p : {0, 1}) {
      const Tensor x = zeros({8}, {.device = device});
      cond(number(device, p),
           [&] {
             launch({.text = kOwn, .entry = "add_to"}, {.global = 8, .local = 4}, {inout(x), value(2.0f), local_memory(16)});
             launch({.text = kOwn, .entry = "bare"}, {.global = 1, .local = 1}, {}, current_stream(device));
             launch({.text = kOwnBase, .entry = "add_base", .addressing = Addressing::base_and_offset}, {.global = 8, .local = 8}, {value(0.5f), inout(x)});
             return nothing();
           },
           {});
      EXPECT_EQ(x.to_host<float>(), std::vector<float>(8, p ? 2.5f : 0));
      launch({.text = kOwn, .entry = "add_to"}, {.global = 8, .local = 4}, {inout(x), value(1.0f), local_memory(16)});
      EXPECT_EQ(x.to_host<float>()[7], p ? 3.5f : 1) << "outside as ever";
    }
    constexpr std::string_view kPlain = "__kernel void set_base(__global uchar* x, ulong x_offset) { x[x_offset] = 1; }\n";
    const Tensor y = zeros({1}, {.dtype = DType::u8, .device = device});
    const std::string why = message_of([&] {
      cond(number(device, 1),
           [&] {
             launch({.text = kPlain, .entry = "set_base", .addressing = Addressing::base_and_offset}, {.global = 1, .local = 1}, {inout(y)});
             return nothing();
           },
           {});
    });
    EXPECT_EQ(why, "set_base: kernel set_base must take a predicate to run in a branch of cond, got one whose source has none with CLUTCH_PREDICATED");
    EXPECT_EQ(y.item(), 0);
  }
}

TEST(Branches, RefuseWhatTheDeviceCannotSkipByItsName) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    const StreamGuard guard(stream);
    const Tensor yes = number(device, 1), x = from_host<float>({1, 2}, device), state = number(device, 3);
    Graph graph;
    {
      GraphCapture capture(graph, stream);
      add_(x, 0);
    }
    Event event;
    event.record(stream);
    const std::vector<std::pair<std::string, std::function<void()>>> calls{
        {"Tensor::item", [&] { yes.item(); }},
        {"Tensor::to_host", [&] { x.to_host<float>(); }},
        {"Tensor::to_bytes", [&] { x.to_bytes(); }},
        {"Stream::synchronize", [&] { stream.synchronize(); }},
        {"Stream::query", [&] { stream.query(); }},
        {"Event::wait", [&] { event.wait(); }},
        {"Event::query", [&] { event.query(); }},
        {"synchronize", [&] { synchronize(device); }},
        {"nonzero", [&] { nonzero(x); }},
        {"Generator::state", [&] { default_generator(device).state(); }},
        {"Graph::replay", [&] { graph.replay(stream); }},
        {"Graph::capture_begin",
         [&] {
           Graph other;
           other.capture_begin(stream);
         }},
        {"dry_run", [&] { dry_run([] {}, stream); }},
        {"interop::queue", [&] { interop::queue(stream); }},
        {"optim::SGD", [&] { optim::SGD made({x}); }},
        {"opaque_task", [&] { Encoder(stream, "opaque_task").opaque([](void*) {}, {}, {}); }},
        {"host_task", [&] { Encoder(stream, "host_task").host_task([](auto) {}, {}, {}); }},
    };
    for (const auto& [op, call] : calls) {
      for (const bool in_loop : {false, true}) {
        try {
          if (in_loop)
            while_loop([&, &call = call](std::span<const Tensor>) { return call(), yes; }, [](std::span<const Tensor> s) { return List{s[0]}; },
                       std::span(&state, 1), {.max_iterations = 2});
          else
            cond(yes, {}, [&, &call = call] { return call(), nothing(); });
          ADD_FAILURE() << op << " was not refused";
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), ErrorCode::not_supported) << e.what();
          EXPECT_EQ(e.op(), op);
          EXPECT_NE(e.message().find(in_loop ? "while_loop" : "cond"), std::string::npos) << e.what();
        }
      }
      EXPECT_EQ(code_of([&, &call = call] { call(); }), ErrorCode::ok) << op << " works outside again";
    }
    EXPECT_EQ(x.to_host<float>(), (std::vector<float>{1, 2}));
  }
}

TEST(Branches, RefuseOtherDevices) {
  const auto& devices = test_devices();
  if (devices.size() < 2) return;
  const Tensor here = number(devices[0], 1), there = number(devices[1], 1);
  auto message = [&](const BranchFunction& f) { return message_of([&] { cond(here, f, {}); }); };
  EXPECT_NE(message([&] { return List{add(there, 1)}; }).find("must be of the predicate's device and context"), std::string::npos);
  EXPECT_NE(message([&] { return cond(there, {}, {}); }).find("must be on the device and context of the predicate of cond"), std::string::npos);
  EXPECT_EQ(code_of([&] {
              cond(
                  here, [&] { return List{there}; }, [&] { return List{there}; });
            }),
            ErrorCode::device_mismatch);
  EXPECT_EQ(code_of([&] { cond(here, {}, {}, Stream(devices[1])); }), ErrorCode::device_mismatch);
  EXPECT_EQ(code_of([&] { cond(here, [&] { return there.item(), List{}; }, {}); }), ErrorCode::ok) << "another device's work is not the branch's";
}

TEST(Branches, NameOpAndCallOfWhatIsWrong) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor yes = number(device, 1), x = zeros({2, 3}, {.device = device}), none;
    auto gives = [](List l) { return BranchFunction([l] { return l; }); };
    const List state{x};
    auto on = [&](std::span<const Tensor>) { return yes; };
    auto same = [](std::span<const Tensor> s) { return List(s.begin(), s.end()); };
    struct Row {
      std::string op;
      ErrorCode code;
      std::string says;
      std::function<void()> call;
    };
    const std::vector<Row> rows{
        {"cond", ErrorCode::invalid_argument, "must be defined", [&] { cond(none, {}, {}); }},
        {"cond", ErrorCode::invalid_shape, "the predicate must have one element, got (2, 3)", [&] { cond(x, {}, {}); }},
        {"cond", ErrorCode::invalid_shape, "got (0,)", [&] { cond(empty({0}, {.device = device}), {}, {}); }},
        {"cond", ErrorCode::invalid_argument, "otherwise must return 1 tensors, as then, got 0", [&] { cond(yes, gives({x}), {}); }},
        {"cond", ErrorCode::invalid_argument, "otherwise must return 0 tensors, as then, got 1", [&] { cond(yes, {}, gives({x})); }},
        {"cond", ErrorCode::invalid_shape, "result 0 of otherwise must have the sizes (2, 3), as then, got (3, 2)",
         [&] { cond(yes, gives({x}), gives({x.transpose(0, 1)})); }},
        {"cond", ErrorCode::invalid_dtype, "result 1 of otherwise must be f32, as then, got i32",
         [&] {
           cond(yes, gives({x, x}), gives({x, x.to(DType::i32)}));
         }},
        {"cond", ErrorCode::invalid_argument, "result 0 of then must be defined", [&] { cond(yes, gives({none}), gives({x})); }},
        {"switch_", ErrorCode::invalid_argument, "at least one branch", [&] { switch_(yes, {}); }},
        {"switch_", ErrorCode::invalid_dtype, "the index must be an integer or bool, got f32", [&] { switch_(full({}, 1, {.device = device}), {}); }},
        {"switch_", ErrorCode::invalid_shape, "the index must have one element", [&] { switch_(zeros({2}, {.dtype = DType::i32, .device = device}), {}); }},
        {"while_loop", ErrorCode::invalid_argument, "must have a bound", [&] { while_loop(on, same, state, {}); }},
        {"while_loop", ErrorCode::invalid_argument, "must be functions", [&] { while_loop({}, same, state, {.max_iterations = 1}); }},
        {"while_loop", ErrorCode::invalid_argument, "must be functions", [&] { while_loop(on, {}, state, {.max_iterations = 1}); }},
        {"while_loop", ErrorCode::invalid_shape, "the condition's result must have one element, got (2, 3)",
         [&] { while_loop([&](std::span<const Tensor>) { return x; }, same, state, {.max_iterations = 1}); }},
        {"while_loop", ErrorCode::invalid_argument, "the condition's result must be defined",
         [&] { while_loop([&](std::span<const Tensor>) { return none; }, same, state, {.max_iterations = 1}); }},
        {"while_loop", ErrorCode::invalid_argument, "the body must return 1 tensors, as the state, got 0",
         [&] { while_loop(on, [](std::span<const Tensor>) { return List{}; }, state, {.max_iterations = 1}); }},
        {"while_loop", ErrorCode::invalid_shape, "result 0 of the body must have the sizes (2, 3), as the state, got (6,)",
         [&] { while_loop(on, [](std::span<const Tensor> s) { return List{s[0].reshape({6})}; }, state, {.max_iterations = 1}); }},
        {"while_loop", ErrorCode::invalid_dtype, "result 0 of the body must be f32, as the state, got f64",
         [&] { while_loop(on, [](std::span<const Tensor> s) { return List{s[0].to(DType::f64)}; }, state, {.max_iterations = 1}); }},
        {"while_loop", ErrorCode::invalid_argument, "must be defined", [&] { while_loop(on, same, List{none}, {.max_iterations = 1}); }},
        {"add", ErrorCode::invalid_shape, "broadcast", [&] { cond(yes, [&] { return List{add(x, zeros({7}, {.device = device}))}; }, {}); }},
    };
    for (const Row& row : rows) {
      try {
        row.call();
        ADD_FAILURE() << row.says;
      } catch (const Error& e) {
        EXPECT_EQ(e.op(), row.op) << e.what();
        EXPECT_EQ(e.code(), row.code) << e.what();
        EXPECT_NE(e.message().find(row.says), std::string::npos) << e.what();
      }
      fill_(x, 2);  // the thread is in no branch
      EXPECT_EQ(x.to_host<float>()[5], 2);
      fill_(x, 0);
    }
    EXPECT_THROW(cond(yes, [&]() -> List { throw std::runtime_error("a caller's"); }, {}), std::runtime_error);
    EXPECT_EQ(add(x, 1).to_host<float>()[0], 1);
  }
}

TEST(Branches, AreOfOneThreadAndStream) {
  CLUTCH_EACH_DEVICE(device) {
    // A thread's branches are not those of another one, on one stream and on two.
    const Stream shared(device);
    const Tensor seen = zeros({2}, {.device = device}, shared), no = full({}, 0, {.device = device}, shared);
    cond(
        no,
        [&] {
          fill_(seen.slice(0, 0, 1), 1, {}, shared);
          std::thread([&] { fill_(seen.slice(0, 1, 2), 1, {}, shared); }).join();
          return nothing();
        },
        {}, shared);
    EXPECT_EQ(seen.to_host<float>(shared), (std::vector<float>{0, 1}));
    std::vector<std::thread> threads;
    std::array<std::vector<float>, 2> got;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        const Stream own(device);
        const StreamGuard guard(own);
        const Tensor x = zeros({16}, {.device = device});
        for (int i = 0; i < 50; ++i)
          cond(
              number(device, (i + t) % 2), [&] { return add_(x, 1), nothing(); }, [&] { return add_(x, 100), nothing(); });
        got[static_cast<std::size_t>(t)] = x.to_host<float>();
      });
    for (std::thread& t : threads) t.join();
    for (const auto& values : got) EXPECT_EQ(values, std::vector<float>(16, 25 + 2500));
    // Another stream that waits for this one and is waited for.
    for (const int p : {0, 1}) {
      const Stream side(device), main(device);
      const StreamGuard guard(main);
      const Tensor x = zeros({8}, {.device = device});
      const List r = cond(
          number(device, p),
          [&] {
            Event fork, join;
            fork.record(main);
            side.wait(fork);
            add_(x, 1, {}, side);
            const Tensor y = mul(x, 3, {}, side);
            join.record(side);
            main.wait(join);
            return List{y};
          },
          [&] { return List{neg(x)}; });
      EXPECT_EQ(r[0].to_host<float>(main)[7], p ? 3 : 0);
      EXPECT_EQ(x.to_host<float>(main)[7], p);
    }
  }
}

TEST(Branches, CountNoCopyWhereThenMakesItsResults) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    const StreamGuard guard(stream);
    const Tensor x = zeros({8}, {.device = device}), yes = number(device, 1);
    auto launches = [&](const BranchFunction& then, const BranchFunction& otherwise) {
      Graph graph({.backend = "host"});
      GraphCapture capture(graph, stream);
      const List kept = cond(yes, then, otherwise);
      graph.capture_end();
      const std::vector<GraphNode> nodes = graph.nodes();
      return std::count_if(nodes.begin(), nodes.end(), [](const GraphNode& n) { return n.kind == GraphNodeKind::kernel; });
    };
    EXPECT_EQ(launches([&] { return List{add(x, 1)}; }, [&] { return List{add(x, 2)}; }), 4) << "the predicates, two sums, one copy";
    EXPECT_EQ(launches([&] { return List{x}; }, [&] { return List{add(x, 2)}; }), 4);
    EXPECT_EQ(launches(
                  [&] {
                    return cond(
                        yes, [&] { return List{add(x, 1)}; }, [&] { return List{add(x, 2)}; });
                  },
                  [&] { return List{x}; }),
              6)
        << "results of inner branches are kept, too";
  }
}

/// Every kernel that the library has, in a branch that is taken and in one that is not.
TEST(Branches, EveryOpsProblemsRunWhereTakenAlone) {
  const auto& device = test_devices().front();
  const bool by_day = level() == "smoke" && tested_entries().empty();
  std::set<std::string> seen;
  std::int64_t turn = 0;
  for (const NamedProblem& p : all_problems()) {
    if (!seen.insert(std::string(p.problem->entry)).second && level() != "nightly") continue;
    if (by_day && turn++ % 24 != today() % 24) continue;
    if (p.problem->needs_fp64 && !device.traits().fp64) continue;
    // Host tasks are refused by name.
    if (p.problem->entry == "eigh_host") continue;
    const cases::Problem& problem = *p.problem;
    for (const int taken : {1, 0}) {
      cases::Problem within = problem;
      if (!taken) within.entry = {};  // the last plan is that of the copy of canaries
      within.run = [&](const Tensor& out, std::span<const Tensor> inputs, const Stream& stream) {
        cond(
            number(device, taken), [&] { return problem.run(out, inputs, stream), nothing(); }, {}, stream);
      };
      std::vector<std::uint8_t> got, before;
      if (!taken) {
        // What the output holds before any call.
        cases::Problem idle = problem;
        idle.entry = {};
        idle.run = [](const Tensor&, std::span<const Tensor>, const Stream&) {};
        run_once(device, idle, {}, &before);
      }
      try {
        const std::string wrong = run_once(device, within, {}, &got);
        if (taken)
          EXPECT_EQ(wrong, "") << p.name;
        else
          EXPECT_TRUE(got == before) << p.name << " wrote in a branch that was not taken";
      } catch (const Error& e) {
        const std::string plain = message_of([&] { run_once(device, problem); });
        EXPECT_TRUE(!plain.empty() || (e.code() == ErrorCode::not_supported && std::string_view(e.what()).find("branch") != std::string_view::npos))
            << p.name << ": " << e.what();
        std::cout << p.name << ": " << e.what() << "\n";
      }
    }
  }
}

}}  // namespace clutch::testing
