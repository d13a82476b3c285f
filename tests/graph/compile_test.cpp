// SPDX-License-Identifier: Apache-2.0
// compile(): classes, aliasing, host reads, errors, and bits that equal those of eager calls.
#include <clutch/interop_cl.hpp>

#include "runtime/settings.hpp"
#include "support/fixture.hpp"

#include "backends.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <variant>

using namespace clutch;
using namespace clutch::testing;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Values = std::vector<float>;

Values values_of(const Tensor& t) { return t.to_host<float>(); }
Tensor numbers(const Device& device, const Dims& sizes, std::uint64_t seed, DType dtype = DType::f32) {
  return randn(sizes, {.dtype = dtype, .device = device, .seed = seed});
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

struct Weights {
  Tensor w1, b1, w2, b2;
  double scale = 1;
};
Tensor layer(const Tensor& x, const Weights& w) {
  const Tensor hidden = gelu(linalg::matmul(x, w.w1) + w.b1);
  return nn::softmax(x + (linalg::matmul(hidden, w.w2) + w.b2) * w.scale);
}
Weights weights_of(const Device& device, std::uint64_t seed) {
  return {numbers(device, {24, 40}, seed), numbers(device, {40}, seed + 1), numbers(device, {40, 24}, seed + 2), numbers(device, {24}, seed + 3), 0.5};
}

}  // namespace

TEST(Compile, TheFirstCallCapturesAndLaterOnesReplay) {
  CLUTCH_EACH_BACKEND(device, backend) {
    int runs = 0;
    auto f = compile(
        [&](const Tensor& x, const Tensor& y) {
          ++runs;
          return sum(nn::softmax(x * 2 + y), {.dims = {-1}}) - x;
        },
        {.graph = {.backend = backend}});
    std::vector<Tensor> results;
    std::vector<Bytes> wanted;
    for (std::uint64_t seed = 1; seed < 30; seed += 2) {
      const Tensor x = numbers(device, {33, 33}, seed), y = numbers(device, {33, 33}, seed + 1);
      results.push_back(f(x, y));
      wanted.push_back((sum(nn::softmax(x * 2 + y), {.dims = {-1}}) - x).to_bytes());
    }
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].to_bytes(), wanted[i]) << i;
    EXPECT_EQ(runs, 1);
    const CompileReport report = f.explain();
    EXPECT_EQ(report.calls, 15U);
    EXPECT_EQ(report.replays, 14U);
    EXPECT_EQ(report.captures, 1U);
    EXPECT_EQ(report.recompiles, 0U);
    ASSERT_EQ(report.classes.size(), 1U);
    EXPECT_EQ(report.classes[0].why, "first call");
    EXPECT_GT(report.classes[0].nodes, 2U);
    if (backend == "fused")  // fills of memory that nobody reads any more go, too
      EXPECT_LE(report.classes[0].launches, report.classes[0].nodes - 3) << report.to_string();
    else
      EXPECT_EQ(report.classes[0].launches, report.classes[0].nodes) << report.to_string();
    EXPECT_EQ(report.classes[0].groups, backend == "fused" ? 1U : 0U);
    f.reset();
    EXPECT_EQ(f.explain().calls, 0U);
    const Tensor x = numbers(device, {33, 33}, 1), y = numbers(device, {33, 33}, 2);
    EXPECT_EQ(f(x, y).to_bytes(), wanted[0]);
    EXPECT_EQ(runs, 2);
  }
}

TEST(Compile, ALayerIsCapturedOnceForAllWeights) {
  CLUTCH_EACH_BACKEND(device, backend) {
    int runs = 0;
    auto one = compile(
        [&](const Tensor& x, const Weights& w) {
          ++runs;
          return layer(x, w);
        },
        {.graph = {.backend = backend}});
    Tensor x = numbers(device, {7, 24}, 5), y = x;
    for (int pass = 0; pass < 2; ++pass)
      for (std::uint64_t i = 0; i < 12; ++i) {
        const Weights w = weights_of(device, 100 + 10 * i);
        x = one(x, w);
        y = layer(y, w);
        ASSERT_EQ(x.to_bytes(), y.to_bytes()) << i;
      }
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(one.explain().captures, 1U);
    Weights other = weights_of(device, 1);
    other.scale = 0.25;
    EXPECT_EQ(one(y, other).to_bytes(), layer(y, other).to_bytes());
    EXPECT_EQ(runs, 2) << "a number of a struct is part of the class";
    EXPECT_TRUE(contains(one.explain().reasons.back(), "argument 1.4 must be 0.5, got 0.25")) << one.explain().to_string();
  }
}

TEST(Compile, ClassesAreGuardedAndRecompilesExplained) {
  CLUTCH_EACH_DEVICE(device) {
    auto f = compile([](const Tensor& x, int times, std::string_view how) { return how == "add" ? x + times : x * times; }, {.name = "scaled"});
    const Tensor x = numbers(device, {4, 6}, 1);
    auto expect = [&](const Tensor& t, int times, std::string_view how, std::string_view reason) {
      const std::uint64_t before = f.explain().recompiles;
      EXPECT_EQ(f(t, times, how).to_bytes(), (how == "add" ? t + times : t * times).to_bytes());
      const CompileReport report = f.explain();
      EXPECT_EQ(report.recompiles, before + 1);
      EXPECT_TRUE(contains(report.reasons.back(), reason)) << report.reasons.back();
      EXPECT_EQ(f(t, times, how).to_bytes(), (how == "add" ? t + times : t * times).to_bytes());
      EXPECT_EQ(f.explain().recompiles, before + 1);
    };
    f(x, 2, "mul");
    EXPECT_EQ(f.explain().recompiles, 0U);
    expect(x, 3, "mul", "argument 1 must be 2, got 3");
    expect(x, 2, "add", "argument 2 must be \"mul\", got \"add\"");
    expect(cast(x, DType::f16), 2, "mul", "argument 0: dtype must be f32, got f16");
    expect(numbers(device, {4, 5}, 2), 2, "mul", "argument 0: size 1 must be 6, got 5");
    expect(x.unsqueeze(0), 2, "mul", "argument 0: rank must be 2, got 3");
    expect(numbers(device, {6, 4}, 2).transpose(0, 1), 2, "mul", "argument 0: strides must be contiguous, got (1, 4)");
    expect(numbers(device, {25}, 2).slice(0, 1, 25).reshape({4, 6}), 2, "mul", "argument 0: begin, bytes past a multiple of 16 must be 0, got 4");
    const std::string text = f.explain().to_string();
    EXPECT_TRUE(contains(text, "scaled: 15 calls: 7 replayed")) << text;
    EXPECT_TRUE(contains(text, "  argument 0: defined true, dtype f16, rank 2, size 0 4, size 1 6, strides contiguous, ")) << text;
    EXPECT_TRUE(contains(text, "device " + device.selector())) << text;
  }
}

TEST(Compile, ArgumentsOfAnyStrides) {
  CLUTCH_EACH_BACKEND(device, backend) {
    auto eager = [](const Tensor& x, const Tensor& y) { return linalg::matmul(x, y) + x.select(0, 0).select(0, 0); };
    auto f = compile(eager, {.graph = {.backend = backend}});
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
      const Tensor a = numbers(device, {9, 12}, seed), b = numbers(device, {12, 12}, seed + 10), row = numbers(device, {1, 12}, seed + 20);
      const std::vector<std::pair<Tensor, Tensor>> all{
          {a.slice(0, 1, 9, 2), b.mT()}, {a.slice(1, 2, 6), b.slice(0, 4, 8)}, {row.expand({5, 12}), b},
          {a, b.slice(1, 0, 12, 3)},     {b.select(0, 3).unsqueeze(0), b},
      };
      for (const auto& [x, y] : all) {
        const Bytes wanted = eager(x, y).to_bytes();
        EXPECT_EQ(f(x, y).to_bytes(), wanted);
      }
    }
    EXPECT_EQ(f.explain().captures, 5U) << f.explain().to_string();
    EXPECT_EQ(f.explain().replays, 10U);
  }
}

TEST(Compile, WritesHitTheCallersTensorsHoweverTheyOverlap) {
  CLUTCH_EACH_BACKEND(device, backend) {
    auto eager = [](const Tensor& x, const Tensor& y) {
      add_(x, y);
      mul_(y, 2);
      add_(x, 1);
    };
    int runs = 0;
    auto f = compile(
        [&](const Tensor& x, const Tensor& y) {
          ++runs;
          eager(x, y);
        },
        {.graph = {.backend = backend}});
    struct Views {
      std::int64_t x, y;
    };
    // Apart, the same, apart in other memory order, apart again.
    int known = 0;
    for (const auto& [views, runs_wanted] : std::vector<std::pair<Views, int>>{{{0, 8}, 1}, {{0, 0}, 2}, {{8, 0}, 2}, {{8, 8}, 2}, {{16, 4}, 2}}) {
      const Tensor ours = numbers(device, {64}, 7), theirs = ours.clone();
      f(ours.slice(0, views.x, views.x + 4), ours.slice(0, views.y, views.y + 4));
      eager(theirs.slice(0, views.x, views.x + 4), theirs.slice(0, views.y, views.y + 4));
      EXPECT_EQ(ours.to_bytes(), theirs.to_bytes()) << known++;
      EXPECT_EQ(runs, runs_wanted) << views.x << ' ' << views.y;
    }
    EXPECT_TRUE(contains(f.explain().to_string(), ", begins in the memory of argument 0 0 bytes")) << f.explain().to_string();
    // Views that overlap in part are of a class of their own.
    auto reads = compile([](const Tensor& x, const Tensor& y, const Tensor& out) { add_out(out, x, y); }, {.graph = {.backend = backend}});
    for (const std::int64_t by : {4, 4, 8, 0}) {
      const Tensor whole = numbers(device, {40}, 9), out = numbers(device, {16}, 10);
      reads(whole.slice(0, 0, 16), whole.slice(0, by, by + 16), out);
      EXPECT_EQ(out.to_bytes(), (whole.slice(0, 0, 16) + whole.slice(0, by, by + 16)).to_bytes());
    }
    EXPECT_EQ(reads.explain().captures, 3U);
  }
}

TEST(Compile, ResultsKeepTheirIdentity) {
  CLUTCH_EACH_BACKEND(device, backend) {
    struct Results {
      Tensor argument, view, twice, again, half, other_half, kept, constant, empty, none;
      int number = 0;
    };
    const Tensor kept = full({3}, 5, {.device = device});
    auto f = compile(
        [&](const Tensor& x) {
          const Tensor y = x + 1, c = from_host<float>({1, 2, 3}, x.device());
          return Results{x, x.slice(0, 1, 3), y, y, y.slice(0, 0, 2), y.slice(0, 2, 4), kept, c, zeros({0, 3}, {.device = x.device()}), {}, 7};
        },
        {.graph = {.backend = backend}});
    for (int call = 0; call < 3; ++call) {
      const Tensor x = full({4}, call, {.device = device});
      const Results r = f(x);
      EXPECT_TRUE(r.argument.shares_storage(x));
      EXPECT_EQ(r.argument.byte_offset(), x.byte_offset());
      EXPECT_TRUE(r.view.shares_storage(x));
      EXPECT_EQ(values_of(r.view), Values(2, static_cast<float>(call)));
      EXPECT_TRUE(r.twice.shares_storage(r.again));
      EXPECT_TRUE(r.twice.shares_storage(r.half));
      EXPECT_TRUE(r.twice.shares_storage(r.other_half));
      EXPECT_FALSE(r.twice.shares_storage(x));
      EXPECT_TRUE(r.kept.shares_storage(kept));
      EXPECT_EQ(values_of(r.constant), (Values{1, 2, 3}));
      fill_(r.constant, 9);  // is the caller's
      EXPECT_EQ(r.empty.sizes(), (Dims{0, 3}));
      EXPECT_FALSE(r.none.defined());
      EXPECT_EQ(r.number, 7);
      fill_(r.half, 10);
      EXPECT_EQ(values_of(r.twice), (Values{10, 10, static_cast<float>(call) + 1, static_cast<float>(call) + 1}));
      fill_(r.view, 20);
      EXPECT_EQ(values_of(x)[1], 20);
      EXPECT_EQ(values_of(x)[3], static_cast<float>(call));
    }
    EXPECT_EQ(f.explain().captures, 1U);
    // The same at each call: reused memory.
    auto again = compile([](const Tensor& x) { return x * 3; }, {.graph = {.backend = backend}, .results = CompiledResults::reused});
    const Tensor first = again(full({4}, 1, {.device = device})), second = again(full({4}, 2, {.device = device}));
    EXPECT_TRUE(first.shares_storage(second));
    EXPECT_EQ(values_of(first), Values(4, 6));
    // As an argument of the next call such memory would be read and written at once.
    auto next = compile([](const Tensor& x) { return (x + 1) * 2 + x; }, {.graph = {.backend = backend}, .results = CompiledResults::reused});
    Tensor x = full({4}, 1, {.device = device}), y = x;
    for (int i = 0; i < 4; ++i) {
      x = next(x), y = (y + 1) * 2 + y;
      EXPECT_EQ(x.to_bytes(), y.to_bytes()) << i;
    }
    EXPECT_EQ(next.explain().eager_calls, 2U) << "every second call";
  }
}

namespace {

/// A class that tells compile() of its parts.
class Pair {
 public:
  Pair(Tensor a, Tensor b) : a_(std::move(a)), b_(std::move(b)) {}
  const Tensor& a() const { return a_; }
  const Tensor& b() const { return b_; }
  friend auto compiled_fields(Pair& p) { return std::tie(p.a_, p.b_); }
  friend auto compiled_fields(const Pair& p) { return std::tie(p.a_, p.b_); }

 private:
  Tensor a_, b_;
};

enum class Kind { plain, doubled };

struct Nested {
  Weights weights;
  std::optional<Tensor> maybe;
  std::vector<Tensor> list;
  std::array<Tensor, 2> two;
  std::map<std::string, Tensor> by_name;
  std::pair<int, Tensor> pair;
  std::variant<int, Tensor> either;
  std::tuple<Tensor, bool> tuple;
  Kind kind = Kind::plain;
  Dims sizes;
  std::complex<float> complex;
};

}  // namespace

TEST(Compile, ArgumentsAndResultsAreStructsAndContainers) {
  CLUTCH_EACH_DEVICE(device) {
    auto eager = [](const Nested& n, std::span<const Tensor> more, const Pair& p) {
      Tensor all = n.weights.w1 + n.two[0] - n.two[1] + n.pair.second * n.pair.first + std::get<0>(n.tuple);
      if (n.maybe) all += *n.maybe;
      for (const Tensor& t : n.list) all += t;
      for (const auto& [name, t] : n.by_name) all += t * static_cast<double>(name.size());
      if (const Tensor* t = std::get_if<Tensor>(&n.either)) all += *t;
      for (const Tensor& t : more) all += t;
      all = all.reshape(n.sizes) * (n.kind == Kind::doubled ? 2 : 1);
      return std::pair(std::vector<Tensor>{all, all.select(0, 0)}, std::map<std::string, Pair>{{"pair", Pair(p.b(), p.a() + 1)}});
    };
    int runs = 0;
    auto f = compile([&](const Nested& n, std::span<const Tensor> more, const Pair& p) {
      ++runs;
      return eager(n, more, p);
    });
    std::uint64_t seed = 1;
    auto t = [&] { return numbers(device, {2, 3}, seed++); };
    auto nested = [&] {
      return Nested{{.w1 = t(), .b1 = {}, .w2 = {}, .b2 = {}, .scale = 2},
                    t(),
                    {t(), t()},
                    {t(), t()},
                    {{"one", t()}, {"four", t()}},
                    {3, t()},
                    t(),
                    {t(), true},
                    Kind::doubled,
                    {3, 2},
                    {1, 2}};
    };
    for (int call = 0; call < 3; ++call) {
      const Nested n = nested();
      const std::vector<Tensor> more{t(), t()};
      const Pair p(t(), t());
      const auto [list, map] = f(n, std::span<const Tensor>(more), p);
      const auto [wanted, wanted_map] = eager(n, more, p);
      ASSERT_EQ(list.size(), 2U);
      EXPECT_EQ(list[0].to_bytes(), wanted[0].to_bytes());
      EXPECT_TRUE(list[0].shares_storage(list[1]));
      EXPECT_TRUE(map.at("pair").a().shares_storage(p.b()));
      EXPECT_EQ(map.at("pair").b().to_bytes(), wanted_map.at("pair").b().to_bytes());
    }
    EXPECT_EQ(runs, 1);
    const std::vector<Tensor> more{t()};
    const Pair p(t(), t());
    auto changed = [&](auto change) {
      Nested n = nested();
      change(n);
      EXPECT_EQ(f(n, std::span<const Tensor>(more), p).first[0].to_bytes(), eager(n, more, p).first[0].to_bytes());
      return runs;
    };
    EXPECT_EQ(changed([](Nested&) {}), 2) << "a shorter list";
    EXPECT_EQ(changed([](Nested& n) { n.maybe.reset(); }), 3);
    EXPECT_EQ(changed([](Nested& n) { n.kind = Kind::plain; }), 4);
    EXPECT_EQ(changed([](Nested& n) { n.either = 3; }), 5);
    EXPECT_EQ(changed([](Nested& n) { n.either = 4; }), 6);
    EXPECT_EQ(changed([](Nested& n) { n.sizes = {6}; }), 7);
    EXPECT_EQ(changed([&](Nested& n) { n.by_name["fourth"] = t(); }), 8);
    EXPECT_EQ(changed([](Nested&) {}), 8);
  }
}

TEST(Compile, TensorsThatFRefersToAreConstantsByAddress) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Tensor w = full({8}, 2, {.device = device}), total = zeros({8}, {.device = device});
    auto f = compile(
        [&](const Tensor& x) {
          add_(total, x);
          return x * w;
        },
        {.graph = {.backend = backend}});
    const Tensor x = full({8}, 3, {.device = device});
    EXPECT_EQ(values_of(f(x)), Values(8, 6));
    fill_(w, 5);
    EXPECT_EQ(values_of(f(x)), Values(8, 15));
    EXPECT_EQ(values_of(total), Values(8, 6));
    // An argument that is one of them: only reads share a graph.
    EXPECT_EQ(values_of(f(w)), Values(8, 25));
    EXPECT_EQ(f.explain().eager_calls, 0U);
    EXPECT_EQ(values_of(total), Values(8, 11));
    EXPECT_EQ(values_of(f(total)), Values(8, 110)) << "total is written before it is read";
    EXPECT_EQ(f.explain().eager_calls, 1U) << f.explain().to_string();
    EXPECT_EQ(values_of(f(x)), Values(8, 15));
    EXPECT_EQ(f.explain().captures, 1U);
    // The first call is such a one: the class runs eagerly.
    auto g = compile([&](const Tensor& t) { mul_(t, w); }, {.graph = {.backend = backend}});
    g(w);
    EXPECT_EQ(values_of(w), Values(8, 25));
    g(x);
    EXPECT_EQ(values_of(x), Values(8, 75));
    EXPECT_EQ(g.explain().eager_calls, 2U);
    ASSERT_EQ(g.explain().classes.size(), 1U);
    EXPECT_TRUE(contains(g.explain().classes[0].eager, "shares memory")) << g.explain().to_string();
  }
}

TEST(Compile, ElementsPastAnArgumentMakeItRunEagerly) {
  CLUTCH_EACH_DEVICE(device) {
    auto f = compile([](const Tensor& x) { return x.as_strided({4}, {1}, 4) + 1; });
    const Tensor a = arange(0, 12, 1, {.device = device}), b = arange(50, 62, 1, {.device = device});
    EXPECT_EQ(values_of(f(a.slice(0, 0, 4))), (Values{5, 6, 7, 8}));
    EXPECT_EQ(values_of(f(b.slice(0, 0, 4))), (Values{55, 56, 57, 58}));
    EXPECT_EQ(f.explain().eager_calls, 2U);
    EXPECT_TRUE(contains(f.explain().to_string(), "uses elements past those of an argument")) << f.explain().to_string();
    auto view = compile([](const Tensor& x) { return x.as_strided({4}, {1}, 4); });
    EXPECT_EQ(values_of(view(a.slice(0, 0, 4))), (Values{4, 5, 6, 7}));
    EXPECT_EQ(values_of(view(b.slice(0, 0, 4))), (Values{54, 55, 56, 57}));
  }
}

TEST(Compile, RandomNumbersAdvanceAsTheyDoEagerly) {
  CLUTCH_EACH_BACKEND(device, backend) {
    auto eager = [](const Tensor& x, const Generator& g) { return x + randn(x.sizes(), {.device = x.device(), .generator = g}); };
    auto f = compile(eager, {.graph = {.backend = backend}});
    const Tensor x = zeros({50}, {.device = device});
    const Generator ours(device, 3), theirs(device, 3), other(device, 4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(f(x, ours).to_bytes(), eager(x, theirs).to_bytes()) << i;
    EXPECT_EQ(ours.state(), theirs.state());
    EXPECT_EQ(f.explain().captures, 1U);
    EXPECT_EQ(f(x, other).to_bytes(), eager(x, Generator(device, 4)).to_bytes()) << "another generator is another class";
    EXPECT_EQ(f.explain().captures, 2U);
    manual_seed(5, device);
    auto g = compile([](const Tensor& t) { return t + rand(t.sizes(), {.device = t.device()}); }, {.graph = {.backend = backend}});
    std::vector<Bytes> got, wanted;
    for (int i = 0; i < 3; ++i) got.push_back(g(x).to_bytes());
    manual_seed(5, device);
    for (int i = 0; i < 3; ++i) wanted.push_back((x + rand(x.sizes(), {.device = device})).to_bytes());
    EXPECT_EQ(got, wanted);
  }
}

TEST(Compile, AFailedCaptureLeavesStreamsAndTensorsAsTheyWere) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device);
    const StreamGuard guard(stream);
    const Tensor x = full({5}, 2, {.device = device});
    int fail = 1;
    auto f = compile(
        [&](const Tensor& t) {
          add_(t, 1);
          if (fail == 1) t.select(0, 0).item();
          if (fail == 2) throw std::runtime_error("mine");
          if (fail == 3) linalg::matmul(t, t.unsqueeze(0));
          if (fail == 4) current_stream(t.device()).synchronize();
          if (fail == 5) {
            try {
              t.to_host<float>();
            } catch (const Error&) {  // the capture stays invalid
            }
          }
          if (fail == 6) {
            Event forked;
            const Stream side(t.device());
            forked.record();
            side.wait(forked);
            add_(t, 1, {}, side);
          }
          return t * 2;
        },
        {.graph = {.backend = backend}});
    auto refused = [&](int how, ErrorCode code, std::string_view text) {
      fail = how;
      EXPECT_EQ(code_of([&] { f(x); }), code) << how;
      const std::string message = message_of([&] { f(x); });
      EXPECT_TRUE(contains(message, text)) << message;
      EXPECT_EQ(values_of(x), Values(5, 2)) << how;
      EXPECT_FALSE(stream.is_capturing());
      EXPECT_EQ(current_stream(device), stream);
    };
    refused(1, ErrorCode::capturing, "Tensor::item: illegal in a capture: the stream must run its work");
    refused(3, ErrorCode::invalid_shape, "linalg::matmul: ");
    refused(4, ErrorCode::capturing, "Stream::synchronize: illegal in a capture");
    refused(5, ErrorCode::capturing, "Tensor::to_host: illegal in a capture");
    refused(6, ErrorCode::capturing, "must be joined");
    fail = 2;
    EXPECT_THROW(f(x), std::runtime_error);
    EXPECT_EQ(f.explain().failures, 11U);
    EXPECT_EQ(f.explain().captures, 0U);
    fail = 0;
    EXPECT_EQ(values_of(f(x)), Values(5, 6));
    EXPECT_EQ(values_of(f(x)), Values(5, 8));
    EXPECT_EQ(values_of(x), Values(5, 4));
    EXPECT_EQ(f.explain().replays, 1U);
  }
}

TEST(Compile, HostReadsSplitTheGraph) {
  CLUTCH_EACH_BACKEND(device, backend) {
    int runs = 0;
    // Writes its argument before and behind the reads, so that a part that ran twice would show.
    auto eager = [](const Tensor& x, const Tensor& count) {
      add_(count, 1);
      const Tensor doubled = x * 2, kept = x + 100;
      const double first = sum(doubled).item();
      add_(count, 10);
      if (first > 10) return std::pair(doubled + 1, kept);
      const Values all = values_of(x * 3);
      add_(count, 100);
      return std::pair(doubled * static_cast<double>(all[1]), kept);
    };
    auto f = compile(
        [&](const Tensor& x, const Tensor& count) {
          ++runs;
          return eager(x, count);
        },
        {.graph = {.backend = backend}, .graph_breaks = GraphBreaks::allowed});
    const Tensor ours = zeros({3}, {.device = device}), theirs = zeros({3}, {.device = device});
    std::vector<std::pair<Tensor, Tensor>> results, wanted;
    std::vector<int> runs_wanted{1, 1, 2, 2, 3, 3, 4, 4, 4};
    std::size_t call = 0;
    for (const float value : {4.0F, 4.0F, 1.0F, 1.0F, 5.0F, 4.0F, 0.5F, 1.0F, 0.5F}) {
      const Tensor x = full({2}, value, {.device = device});
      results.push_back(f(x, ours));
      wanted.push_back(eager(x, theirs));
      EXPECT_EQ(runs, runs_wanted[call]) << call;
      EXPECT_EQ(values_of(ours), values_of(theirs)) << call;
      ++call;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].first.to_bytes(), wanted[i].first.to_bytes()) << i;
      EXPECT_EQ(results[i].second.to_bytes(), wanted[i].second.to_bytes()) << i << ": a result of a part before the last";
    }
    const CompileReport report = f.explain();
    EXPECT_EQ(report.replays, 5U);
    EXPECT_EQ(report.breaks, 14U) << report.to_string();
    EXPECT_EQ(report.captures, 7U) << "the first part, two ends, and twice a part with its end";
    EXPECT_EQ(report.classes.at(0).parts, 7U);
    EXPECT_EQ(report.recompiles, 0U);
  }
}

TEST(Compile, HostReadsOfArgumentsWaitsAndRandomNumbers) {
  CLUTCH_EACH_BACKEND(device, backend) {
    // A read of an argument, which a later part overwrites, and a wait.
    int runs = 0;
    auto eager = [](const Tensor& x, const Generator& g) {
      const double before = x.select(0, 1).item();
      fill_(x, before + 1);
      current_stream(x.device()).synchronize();
      const Tensor noise = rand({2}, {.device = x.device(), .generator = g});
      const double after = x.select(0, 1).item();
      return std::tuple(x, x.slice(0, 0, 2) * after + noise, zeros({0}, {.device = x.device()}).to_host<float>().size());
    };
    auto f = compile(
        [&](const Tensor& x, const Generator& g) {
          ++runs;
          return eager(x, g);
        },
        {.graph = {.backend = backend}, .graph_breaks = GraphBreaks::allowed});
    const Generator ours(device, 1), theirs(device, 1);
    for (const auto& [value, wanted] : std::vector<std::pair<float, int>>{{1, 1}, {2, 2}, {1, 2}, {3, 3}, {2, 3}}) {
      const Tensor x = arange(value - 1, value + 3, 1, {.device = device}), y = x.clone();
      const auto [same, result, none] = f(x, ours);
      const auto [y_same, y_result, y_none] = eager(y, theirs);
      EXPECT_TRUE(same.shares_storage(x));
      EXPECT_EQ(result.to_bytes(), y_result.to_bytes()) << value;
      EXPECT_EQ(x.to_bytes(), y.to_bytes()) << value;
      EXPECT_EQ(none, y_none);
      EXPECT_EQ(runs, wanted);
    }
    EXPECT_EQ(ours.state(), theirs.state());
  }
}

/// Ops whose results have sizes that they read on the host.
TEST(Compile, SizesThatOpsReadSplitTheGraph) {
  CLUTCH_EACH_BACKEND(device, backend) {
    auto eager = [](const Tensor& x, const Tensor& mask) {
      const Tensor places = nonzero(x + 1), kept = masked_select(x, mask);
      return std::pair(places * 2, kept * 3);
    };
    auto f = compile(eager, {.graph = {.backend = backend}, .graph_breaks = GraphBreaks::allowed});
    for (const int ones : {3, 5, 3, 0, 5, 0, 3}) {
      const Tensor x = arange(-4, 6, 1, {.device = device}), mask = arange(0, 10, 1, {.device = device});
      const Tensor chosen = lt(mask, ones);
      fill_(x.slice(0, 0, ones), -1);
      const auto [places, sums] = f(x, chosen);
      const auto [wanted_places, wanted_sums] = eager(x, chosen);
      EXPECT_EQ(places.sizes(), wanted_places.sizes());
      EXPECT_EQ(places.to_bytes(), wanted_places.to_bytes()) << ones;
      EXPECT_EQ(sums.to_bytes(), wanted_sums.to_bytes()) << ones;
    }
    EXPECT_EQ(f.explain().replays, 4U) << f.explain().to_string();
    auto refused = compile(eager, {.graph = {.backend = backend}});
    const Tensor x = zeros({4}, {.device = device});
    const std::string message = message_of([&] { refused(x, x + 1); });
    EXPECT_TRUE(message.starts_with("nonzero: ")) << message;
    EXPECT_EQ(code_of([&] { refused(x, x + 1); }), ErrorCode::capturing);
  }
}

TEST(Compile, HostReadsThatFail) {
  CLUTCH_EACH_DEVICE(device) {
    int how = 0, runs = 0;
    auto f = compile(
        [&](const Tensor& x) {
          ++runs;
          add_(x, 1);
          const double v = sum(x).item();
          add_(x, 1);
          if (how == 1) throw std::runtime_error("mine");
          if (how == 3) sum(x).item();
          return x * v;
        },
        {.graph_breaks = GraphBreaks::allowed});
    const Tensor x = zeros({2}, {.device = device});
    how = 1;
    EXPECT_THROW(f(x), std::runtime_error);
    EXPECT_EQ(values_of(x), Values(2, 1)) << "what comes before the read has run, as in an eager call; what comes after has not";
    how = 0;
    fill_(x, 0);
    EXPECT_EQ(values_of(f(x)), Values(2, 4));
    EXPECT_EQ(runs, 2);
    fill_(x, 0);
    EXPECT_EQ(values_of(f(x)), Values(2, 4));
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(f.explain().captures, 2U) << "the first part was kept";
    fill_(x, 5);
    how = 3;
    EXPECT_EQ(values_of(f(x)), Values(2, 84)) << "another value, behind which there is another read";
    // Another value of a function that does something else than before.
    auto other = compile([&](const Tensor& t) { return how == 3 ? t * sum(t).item() : t * 2 + 1; }, {.graph_breaks = GraphBreaks::allowed});
    fill_(x, 1);
    EXPECT_EQ(values_of(other(x)), Values(2, 2));
    how = 0;
    fill_(x, 2);
    EXPECT_EQ(code_of([&] { other(x); }), ErrorCode::invalid_argument);
    EXPECT_TRUE(contains(message_of([&] { other(x); }), "compile: the function must do the same for equal arguments"));
    fill_(x, 1);
    EXPECT_EQ(values_of(other(x)), Values(2, 2));
    // A function that catches the error of a read: nothing runs that it does then.
    how = 4;
    auto catches = compile(
        [&](const Tensor& t) {
          const Stream side(t.device());
          if (how == 4) {
            Event forked;
            forked.record(current_stream(t.device()));
            side.wait(forked);
            add_(t, 1, {}, side);
          }
          try {
            sum(t).item();
          } catch (const Error&) {
            how = 5;
          }
          if (how == 5) fill_(t, 7);
        },
        {.graph_breaks = GraphBreaks::allowed});
    EXPECT_EQ(code_of([&] { catches(x); }), ErrorCode::capturing) << "later calls are refused";
    EXPECT_EQ(how, 5);
    auto goes_on = compile(
        [&](const Tensor& t) {
          const Stream side(t.device());
          Event forked;
          forked.record(current_stream(t.device()));
          side.wait(forked);
          add_(t, 1, {}, side);
          try {
            sum(t).item();
          } catch (const Error&) {
          }
          return t;
        },
        {.graph_breaks = GraphBreaks::allowed});
    EXPECT_TRUE(contains(message_of([&] { goes_on(x); }),
                         "compile: the function must pass on the error of its host read, got one that goes on after Tensor::item failed"));
    EXPECT_EQ(values_of(x), Values(2, 1));
    how = 0;
    // Waits that no recording can do stay errors.
    Event event;
    auto waits = compile(
        [&](const Tensor& t) {
          const Tensor y = t + 1;
          event.record();
          event.wait();
          return y;
        },
        {.graph_breaks = GraphBreaks::allowed});
    EXPECT_EQ(code_of([&] { waits(x); }), ErrorCode::capturing);
    EXPECT_EQ(values_of(x), Values(2, 1));
  }
}

TEST(Compile, BranchesAreBounded) {
  CLUTCH_EACH_DEVICE(device) {
    int runs = 0;
    auto eager = [](const Tensor& x) { return x * sum(x).item(); };
    auto f = compile(
        [&](const Tensor& x) {
          ++runs;
          return eager(x);
        },
        {.graph_breaks = GraphBreaks::allowed, .max_branches = 3});
    for (int i = 0; i < 7; ++i) {
      const Tensor x = full({3}, i, {.device = device});
      EXPECT_EQ(f(x).to_bytes(), eager(x).to_bytes()) << i;
    }
    EXPECT_EQ(runs, 7);
    const CompileReport report = f.explain();
    EXPECT_EQ(report.eager_calls, 3U) << report.to_string();
    EXPECT_TRUE(contains(report.classes.at(0).eager, "more than 3 values"));
    EXPECT_EQ(report.classes.at(0).parts, 0U);
  }
}

TEST(Compile, DynamicDimensionsHaveAGraphForEachSize) {
  CLUTCH_EACH_BACKEND(device, backend) {
    auto eager = [](const Tensor& x, const Tensor& w) { return nn::softmax(linalg::matmul(x, w)); };
    auto f = compile(eager, {.graph = {.backend = backend}, .dynamic = {{.tensor = 0, .dim = -2}}, .max_sizes = 3});
    const Tensor w = numbers(device, {6, 10}, 3);
    for (const std::int64_t rows : {4, 1, 7, 4, 0, 9, 7, 4}) {
      const Tensor x = numbers(device, {rows, 6}, static_cast<std::uint64_t>(rows) + 20);
      EXPECT_EQ(f(x, w).to_bytes(), eager(x, w).to_bytes()) << rows;
    }
    CompileReport report = f.explain();
    EXPECT_EQ(report.recompiles, 0U) << report.to_string();
    EXPECT_EQ(report.evictions, 4U) << report.to_string();
    EXPECT_EQ(report.sizes, 6U);
    EXPECT_EQ(report.classes.size(), 3U);
    EXPECT_TRUE(contains(report.to_string(), "size 0 4 (dynamic)")) << report.to_string();
    EXPECT_TRUE(contains(report.reasons.back(), "evicted the least recently used class: max_sizes is 3"));
    f(numbers(device, {4, 6}, 1), numbers(device, {6, 11}, 1));
    EXPECT_EQ(f.explain().recompiles, 1U);
    EXPECT_EQ(code_of([&] { f(numbers(device, {4}, 1), w); }), ErrorCode::invalid_argument);
    EXPECT_TRUE(contains(message_of([&] { f(numbers(device, {4}, 1), w); }), "compile: dynamic dimension -2 of tensor 0 must be one of its 1"));
  }
}

TEST(Compile, TheLeastRecentlyUsedClassGoes) {
  CLUTCH_EACH_DEVICE(device) {
    int runs = 0;
    auto f = compile(
        [&](const Tensor& x) {
          ++runs;
          return x + 1;
        },
        {.max_classes = 2});
    auto call = [&](std::int64_t n) {
      EXPECT_EQ(values_of(f(full({n}, 1, {.device = device}))), Values(static_cast<std::size_t>(n), 2));
      return runs;
    };
    EXPECT_EQ(call(1), 1);
    EXPECT_EQ(call(2), 2);
    EXPECT_EQ(call(1), 2);
    EXPECT_EQ(call(3), 3) << "2 goes";
    EXPECT_EQ(call(1), 3);
    EXPECT_EQ(call(2), 4) << "3 goes";
    EXPECT_EQ(call(1), 4);
    EXPECT_EQ(f.explain().evictions, 2U);
    EXPECT_EQ(f.explain().classes.size(), 2U);
    EXPECT_EQ(f.explain().classes[0].guards[3].value, "1") << "the last used first";
  }
}

TEST(Compile, CapturesAndOtherCompiledFunctionsRecordIt) {
  CLUTCH_EACH_BACKEND(device, backend) {
    int inner_runs = 0;
    auto inner = compile(
        [&](const Tensor& x) {
          ++inner_runs;
          return x * 2;
        },
        {.graph = {.backend = backend}});
    auto outer = compile([&](const Tensor& x) { return inner(inner(x)) + 1; }, {.graph = {.backend = backend}});
    const Tensor x = full({4}, 3, {.device = device});
    EXPECT_EQ(values_of(outer(x)), Values(4, 13));
    EXPECT_EQ(values_of(outer(x)), Values(4, 13));
    EXPECT_EQ(inner_runs, 2);
    EXPECT_EQ(inner.explain().inline_calls, 2U);
    EXPECT_EQ(inner.explain().captures, 0U);
    EXPECT_EQ(values_of(inner(x)), Values(4, 6));
    const Stream stream(device);
    Graph graph({.backend = backend});
    Tensor y;
    {
      GraphCapture capture(graph, stream);
      y = inner(x);
    }
    EXPECT_EQ(inner.explain().inline_calls, 3U);
    fill_(x, 5);
    default_stream(device).synchronize();
    graph.replay(stream);
    EXPECT_EQ(y.to_host<float>(stream), Values(4, 10));
    // A function that calls itself.
    std::function<Tensor(const Tensor&, int)> step;
    auto down = compile([&](const Tensor& t, int n) -> Tensor { return n == 0 ? t + 0 : step(t + 1, n - 1); }, {.graph = {.backend = backend}});
    step = [&](const Tensor& t, int n) { return down(t, n); };
    EXPECT_EQ(values_of(down(x, 3)), Values(4, 8));
    EXPECT_EQ(values_of(down(x, 3)), Values(4, 8));
    EXPECT_EQ(down.explain().captures, 1U);
  }
}

TEST(Compile, ThreadsAndStreamsTakeTurns) {
  CLUTCH_EACH_BACKEND(device, backend) {
    auto eager = [](const Tensor& x, const Tensor& y) { return nn::softmax(x * 2 + y) - sum(y, {.dims = {-1}, .keepdim = true}); };
    auto f = compile(eager, {.graph = {.backend = backend}});
    std::atomic<int> wrong{0};
    auto work = [&](std::uint64_t seed) {
      const Stream stream(device);
      const StreamGuard guard(stream);
      for (std::uint64_t i = 0; i < 12; ++i) {
        const auto rows = static_cast<std::int64_t>(1 + (i + seed) % 3);
        const Tensor x = numbers(device, {rows, 64}, seed + i), y = numbers(device, {rows, 64}, seed + i + 50);
        const Tensor a = f(x, y), b = f(a, y);
        if (b.to_bytes() != eager(eager(x, y), y).to_bytes()) ++wrong;
      }
    };
    std::thread other(work, 1000);
    // A call waits for the one before it, on the other thread's stream: two threads at one queue.
    if (known_bug(device, "shared_queue_hangs")) other.join();
    work(2000);
    if (other.joinable()) other.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(f.explain().captures, 3U);
    EXPECT_EQ(f.explain().calls, 48U);
    // One thread, two streams: the calls' temporaries lie in the same memory.
    const Stream first(device), second(device);
    const Tensor x = numbers(device, {300, 64}, 1), y = numbers(device, {300, 64}, 2);
    default_stream(device).synchronize();
    std::vector<Tensor> got;
    for (int i = 0; i < 6; ++i) {
      const StreamGuard guard(i % 2 == 0 ? first : second);
      got.push_back(f(x, y));
    }
    first.synchronize();
    second.synchronize();
    const Bytes wanted = eager(x, y).to_bytes();
    for (const Tensor& t : got) EXPECT_EQ(t.to_bytes(), wanted);
  }
}

TEST(Compile, DonatedArgumentsGiveTheirMemory) {
  CLUTCH_EACH_BACKEND(device, backend) {
    // x is last read by the product, the result is written behind it.
    auto eager = [](const Tensor& x, const Tensor& w) { return gelu(linalg::matmul(x, w)); };
    auto f = compile(eager, {.graph = {.backend = backend}, .donate = {0}});
    auto plain = compile(eager, {.graph = {.backend = backend}});
    const Tensor w = numbers(device, {16, 16}, 1);
    for (std::uint64_t i = 0; i < 3; ++i) {
      const Tensor x = numbers(device, {5, 16}, i + 2), y = x.clone();
      const Bytes before = x.to_bytes();
      const Tensor result = f(x, w);
      EXPECT_TRUE(result.shares_storage(x));
      EXPECT_EQ(result.to_bytes(), eager(y, w).to_bytes());
      EXPECT_FALSE(plain(y, w).shares_storage(y));
      EXPECT_EQ(y.to_bytes(), before);
    }
    EXPECT_EQ(f.explain().classes.at(0).donated_bytes, 5U * 16U * 4U);
    EXPECT_EQ(plain.explain().classes.at(0).donated_bytes, 0U);
    // The last reader is the writer; the result is larger; the argument is returned; another argument lies in its memory.
    auto alone = compile([](const Tensor& x) { return x + 1; }, {.graph = {.backend = backend}, .donate = {0}});
    auto larger = compile([](const Tensor& x) { return cat(std::array{x + 1, x + 1}, 0) * 2; }, {.graph = {.backend = backend}, .donate = {0}});
    auto returned = compile([](const Tensor& x) { return std::pair(x, (x + 1) * 2); }, {.graph = {.backend = backend}, .donate = {0}});
    auto shared = compile([](const Tensor& x, const Tensor& y) { return (x + 1) * 2 + y * 0; }, {.graph = {.backend = backend}, .donate = {0}});
    for (int i = 0; i < 2; ++i) {
      const Tensor x = full({8}, 3, {.device = device});
      EXPECT_FALSE(alone(x).shares_storage(x));
      EXPECT_EQ(values_of(larger(x)), Values(16, 8));
      EXPECT_EQ(values_of(returned(x).second), Values(8, 8));
      EXPECT_EQ(values_of(shared(x, x)), Values(8, 8));
      EXPECT_EQ(values_of(x), Values(8, 3));
    }
  }
}

TEST(Compile, MemoryIsThatOfTheResultsAndTheGraph) {
  CLUTCH_EACH_BACKEND(device, backend) {
    constexpr std::int64_t kN = 1 << 18;
    auto f = compile([](const Tensor& x, const Tensor& y) { return (x + y) * 2; }, {.graph = {.backend = backend}});
    const std::uint64_t before = memory_allocated(device);
    {
      const Tensor x = full({kN}, 1, {.device = device}), y = full({kN}, 2, {.device = device});
      const Tensor a = f(x, y), b = f(x, y);
      EXPECT_EQ(b.to_host<float>().back(), 6);
      EXPECT_LE(memory_allocated(device), before + 5 * kN * 4 + (1 << 16)) << "two arguments, two results, a temporary";
    }
    default_stream(device).synchronize();
    EXPECT_LE(memory_allocated(device), before + kN * 4 + (1 << 16)) << "the graph keeps a temporary alone";
    f.reset();
    default_stream(device).synchronize();
    EXPECT_LE(memory_allocated(device), before + (1 << 16));
  }
}

TEST(Compile, WhatTheFunctionKeepsStaysValid) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Tensor kept_argument, kept_result;
    auto f = compile(
        [&](const Tensor& x) {
          kept_argument = x;
          kept_result = x * 2;
          return kept_result;
        },
        {.graph = {.backend = backend}});
    {
      const Tensor x = full({1000}, 1, {.device = device});
      EXPECT_EQ(values_of(f(x)), Values(1000, 2));
    }
    std::vector<Tensor> others;
    for (int i = 0; i < 8; ++i) others.push_back(full({1000}, 50 + i, {.device = device}));
    EXPECT_EQ(values_of(kept_argument), Values(1000, 1)) << "as in an eager call";
    const Tensor y = f(full({1000}, 4, {.device = device}));
    EXPECT_EQ(values_of(y), Values(1000, 8));
    EXPECT_FALSE(y.shares_storage(kept_result));
    fill_(kept_result, 0);
    EXPECT_EQ(values_of(y), Values(1000, 8));
    for (int i = 0; i < 8; ++i) EXPECT_EQ(values_of(others[static_cast<std::size_t>(i)]), Values(1000, static_cast<float>(50 + i)));
  }
}

TEST(Compile, WarmUpsRunFunctionsThatMakeState) {
  CLUTCH_EACH_BACKEND(device, backend) {
    Tensor ours = full({20}, 1, {.device = device}), theirs = full({20}, 1, {.device = device});
    optim::AdamW our_adamw({ours}, {.lr = 0.1}), their_adamw({theirs}, {.lr = 0.1});
    auto step = compile([&](const Tensor& grad) { our_adamw.step(std::span(&grad, 1), {.max_norm = 1}); }, {.graph = {.backend = backend}, .warm_ups = 1});
    for (std::uint64_t i = 0; i < 5; ++i) {
      const Tensor grad = numbers(device, {20}, i + 1);
      step(grad);
      their_adamw.step(std::span(&grad, 1), {.max_norm = 1});
      EXPECT_EQ(ours.to_bytes(), theirs.to_bytes()) << i;
    }
    EXPECT_EQ(step.explain().eager_calls, 1U);
    EXPECT_EQ(step.explain().captures, 1U);
    EXPECT_EQ(step.explain().replays, 3U);
  }
}

TEST(Compile, SettingsTurnItOffOrLogIt) {
  CLUTCH_EACH_DEVICE(device) {
    int runs = 0;
    auto f = compile(
        [&](const Tensor& x) {
          ++runs;
          return x + 1;
        },
        {.name = "logged"});
    const Tensor x = full({2}, 1, {.device = device});
    std::vector<std::string> lines;
    set_log_sink([&](LogLevel, std::string_view text) { lines.emplace_back(text); });
    {
      const detail::SettingsOverride off(detail::parse_settings({{"CLUTCH_COMPILE", "off"}}));
      for (int i = 0; i < 3; ++i) EXPECT_EQ(values_of(f(x)), Values(2, 2));
      EXPECT_EQ(runs, 3);
      EXPECT_EQ(f.explain().eager_calls, 3U);
      EXPECT_EQ(f.explain().captures, 0U);
      EXPECT_TRUE(lines.empty());
    }
    {
      const detail::SettingsOverride log(detail::parse_settings({{"CLUTCH_COMPILE", "log"}}));
      f(x);
      f(x.slice(0, 0, 1));
      f(x);
    }
    set_log_sink({});
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[0], "compile: logged: captured 1 nodes: first call");
    EXPECT_TRUE(contains(lines[1], "compile: logged: recompiled: argument 0: size 0 must be 2, got 1")) << lines[1];
    EXPECT_TRUE(contains(lines[2], "compile: logged: captured 1 nodes: ")) << lines[2];
    EXPECT_EQ(code_of([] { detail::parse_settings({{"CLUTCH_COMPILE", "yes"}}); }), ErrorCode::invalid_setting);
  }
}

TEST(Compile, TheThreadsStateIsPartOfTheClass) {
  CLUTCH_EACH_DEVICE(device) {
    int runs = 0;
    auto f = compile([&](const Tensor& q) {
      ++runs;
      return attention::sdpa(q, q, q).out;
    });
    const Tensor q = numbers(device, {1, 2, 5, 8}, 3);
    const Bytes wanted = attention::sdpa(q, q, q).out.to_bytes();
    EXPECT_EQ(f(q).to_bytes(), wanted);
    {
      const attention::SdpaBackends math({attention::SdpaBackend::math});
      EXPECT_EQ(f(q).to_bytes(), attention::sdpa(q, q, q).out.to_bytes());
      EXPECT_EQ(runs, 2);
    }
    EXPECT_EQ(f(q).to_bytes(), wanted);
    EXPECT_EQ(runs, 2);
    EXPECT_TRUE(contains(f.explain().reasons.at(0), "attention::SdpaBackends must be flash, math, got math")) << f.explain().reasons.at(0);
    const Partition partition = Partition::create(device, {.units = 1, .soft = true});
    {
      const PartitionGuard part(partition);
      EXPECT_EQ(f(q).to_bytes(), wanted);
      EXPECT_EQ(f(q).to_bytes(), wanted);
      EXPECT_EQ(runs, 3);
    }
    EXPECT_EQ(f(q).to_bytes(), wanted);
    EXPECT_EQ(runs, 3);
    // A profile has the name of the function, and the graph's nodes have it as their label.
    profiler::Profiler profiler;
    profiler.start();
    f(q);
    default_stream(device).synchronize();
    profiler.stop();
    bool named = false;
    for (const auto& event : profiler.events()) named = named || event.name == "compiled";
    EXPECT_TRUE(named);
  }
}

TEST(Compile, FunctionsWithoutArgumentsOrResults) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const DeviceGuard current(device);
    auto make = compile([] { return full({3}, 4); }, {.graph = {.backend = backend}});
    EXPECT_EQ(values_of(make()), Values(3, 4));
    const Tensor second = make();
    fill_(second, 1);
    EXPECT_EQ(values_of(make()), Values(3, 4));
    EXPECT_EQ(make.explain().captures, 1U);
    auto nothing = compile([](const Tensor&) {}, {.graph = {.backend = backend}});
    nothing(second);
    nothing(second);
    nothing(Tensor());
    nothing(zeros({0}));
    nothing(zeros({0}));
    EXPECT_EQ(nothing.explain().replays, 2U);
    auto id = compile([](const Tensor& x, const Tensor& y) { return std::pair(y, x); }, {.graph = {.backend = backend}});
    for (int i = 0; i < 2; ++i) {
      const auto [y, x] = id(second, Tensor());
      EXPECT_TRUE(x.shares_storage(second));
      EXPECT_FALSE(y.defined());
    }
    EXPECT_EQ(id.explain().replays, 1U);
  }
}

TEST(Compile, OptionsAreChecked) {
  auto refused = [](const CompileOptions& options, std::string_view text) {
    auto make = [&] { compile([](const Tensor& x) { return x; }, options); };
    EXPECT_EQ(code_of(make), ErrorCode::invalid_argument) << text;
    EXPECT_TRUE(contains(message_of(make), text)) << message_of(make);
  };
  refused({.warm_ups = -1}, "compile: warm_ups must be at least 0, got -1");
  refused({.max_classes = 0}, "compile: max_classes must be at least 1, got 0");
  refused({.max_sizes = 0}, "compile: max_sizes must be at least 1, got 0");
  refused({.max_branches = 0}, "compile: max_branches must be at least 1, got 0");
  refused({.donate = {-1}}, "compile: a number of `donate` must be");
  refused({.dynamic = {{.tensor = -1, .dim = 0}}}, "compile: a number of `dynamic` must be");
  refused({.graph = {.keep_graph = true}}, "compile: graph.keep_graph must be false");
  refused({.graph = {.backend = "none"}}, "compile: the backend must be a registered one, got 'none'");
}

TEST(Compile, TensorsOfAnotherDeviceRunEagerly) {
  if (test_devices().size() < 2) return;
  auto f = compile([](const Tensor& x, const Tensor& y) { return x.to(y.device()) + y; });
  const Tensor x = full({2}, 1, {.device = test_devices()[0]}), y = full({2}, 2, {.device = test_devices()[1]});
  EXPECT_EQ(values_of(f(x, y)), Values(2, 3));
  EXPECT_EQ(f.explain().eager_calls, 1U);
}

namespace {

/// A program of a few calls on views, chosen by a seed: in place, into others, copies, sums, products, casts.
std::vector<Tensor> random_program(std::uint32_t seed, std::span<const Tensor> in, bool reads) {
  std::mt19937 random(seed);
  auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<Tensor> all(in.begin(), in.end());
  for (int step = 0; step < 9; ++step) {
    const Tensor a = all[below(all.size())], b = all[below(all.size())];
    switch (below(reads ? 10 : 9)) {
      case 0: all.push_back(a + b); break;
      case 1: all.push_back(a * b + 1); break;
      case 2: fill_(in[below(in.size())], static_cast<double>(below(5))); break;
      case 3: add_(in[below(in.size())], 1); break;
      case 4: all.push_back(cast(cast(a, DType::f16), DType::f32)); break;
      case 5: all.push_back(a.clone()); break;
      case 6: all.push_back(sum(a, {.dims = {0}, .keepdim = true}).expand(b.sizes()) - b); break;
      case 7: all.push_back(a); break;
      case 8: all.push_back(a.contiguous() * 0.5); break;
      default: all.push_back(b * (std::abs(a.select(0, 0).item()) > 3 ? 2 : 3)); break;
    }
  }
  std::vector<Tensor> results;
  for (int i = 0; i < 3; ++i) results.push_back(all[below(all.size())]);
  return results;
}

}  // namespace

/// Arguments are random views of two pieces of memory, which overlap as they happen to. A call has the results of the eager one, and leaves memory as that
/// does.
TEST(Compile, RandomProgramsOnRandomViews) {
  // By night as many as fit, those of the date, so that nights go through many.
  const bool is_night = level() == "nightly";
  const int programs = is_night ? 1500 : 20;
  const auto most = std::chrono::seconds(120);
  const auto first_seed = static_cast<std::uint32_t>(seed()) + (is_night ? static_cast<std::uint32_t>(today()) : 0);
  CLUTCH_EACH_BACKEND(device, backend) {
    for (const bool reads : {false, true}) {
      const auto begin = std::chrono::steady_clock::now();
      auto f = compile([](std::uint32_t program, std::span<const Tensor> in, bool with_reads) { return random_program(program, in, with_reads); },
                       {.graph = {.backend = backend}, .graph_breaks = reads ? GraphBreaks::allowed : GraphBreaks::forbidden, .max_classes = 40});
      std::seed_seq seeds{first_seed, reads ? 1U : 0U};
      std::mt19937 random(seeds);
      auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(n)); };
      for (int i = 0; i < programs && (i < 20 || std::chrono::steady_clock::now() - begin < most); ++i) {
        const auto program = static_cast<std::uint32_t>(random());
        const std::int64_t n = 1 + below(6);
        std::vector<std::pair<Dims, std::int64_t>> views;  // strides and offset
        for (std::int64_t v = 1 + below(4); v > 0; --v) views.emplace_back(Dims{1 + 3 * below(2)}, 4 * below(6));
        for (int call = 0; call < 4; ++call) {
          const Tensor whole = numbers(device, {80}, random()), other = numbers(device, {80}, random());
          const Tensor whole_copy = whole.clone(), other_copy = other.clone();
          // The same relative to each other, elsewhere and in other memory; then perhaps otherwise.
          const std::int64_t moved = call == 1 ? 16 : 0;
          if (call == 3) views.back().second = 4 * below(6);
          std::vector<Tensor> ours, theirs;
          for (std::size_t v = 0; v < views.size(); ++v) {
            const bool first = v % 3 != 2;
            ours.push_back((first ? whole : other).as_strided({n}, views[v].first, views[v].second + moved));
            theirs.push_back((first ? whole_copy : other_copy).as_strided({n}, views[v].first, views[v].second + moved));
          }
          std::string error, wanted_error;
          std::vector<Tensor> got, wanted;
          wanted_error = message_of([&] { wanted = random_program(program, theirs, reads); });
          error = message_of([&] { got = f(program, std::span<const Tensor>(ours), reads); });
          ASSERT_EQ(error, wanted_error) << "program " << program << ", views " << i << ", call " << call;
          if (!error.empty()) break;  // an eager call may have run in part
          ASSERT_EQ(got.size(), wanted.size());
          for (std::size_t r = 0; r < got.size(); ++r) {
            ASSERT_EQ(got[r].to_bytes(), wanted[r].to_bytes()) << "program " << program << ", views " << i << ", call " << call << ", result " << r;
            for (std::size_t v = 0; v < ours.size(); ++v) ASSERT_EQ(got[r].shares_storage(ours[v]), wanted[r].shares_storage(theirs[v]));
            for (std::size_t q = 0; q < r; ++q) ASSERT_EQ(got[r].shares_storage(got[q]), wanted[r].shares_storage(wanted[q]));
          }
          ASSERT_EQ(whole.to_bytes(), whole_copy.to_bytes()) << "program " << program << ", views " << i << ", call " << call;
          ASSERT_EQ(other.to_bytes(), other_copy.to_bytes()) << "program " << program << ", views " << i << ", call " << call;
        }
      }
      const CompileReport report = f.explain();
      EXPECT_GT(report.replays, report.calls / 4) << report.to_string();
      EXPECT_EQ(report.eager_calls, 0U) << report.to_string();
      EXPECT_GE(report.breaks, reads ? 10U : 0U);
    }
  }
}

TEST(Compile, OwnKernelsHostTasksAndOpaqueTasks) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const KernelSource twice{.text =
                                 "__kernel void twice(__global float* y, ulong y_at, __global const float* x, ulong x_at) {\n"
                                 "  y += y_at / 4, x += x_at / 4;\n  y[get_global_id(0)] = 2 * x[get_global_id(0)];\n}\n",
                             .entry = "twice"};
    auto f = compile(
        [&](const Tensor& x) {
          const Tensor y = empty({16}, {.device = x.device()}), z = empty({16}, {.device = x.device()});
          const Stream stream = current_stream(x.device());
          Encoder encoder(stream, "mine");
          encoder.host_task(
              [](std::span<void* const> p) {
                for (int i = 0; i < 16; ++i) static_cast<float*>(p[1])[i] = 1 + static_cast<float*>(p[0])[i];
              },
              std::array{x}, std::array{y});
          encoder.opaque(
              [](void* queue, std::span<const Encoder::Place> places) {
                clEnqueueCopyBuffer(static_cast<cl_command_queue>(queue), static_cast<cl_mem>(places[0].mem), static_cast<cl_mem>(places[1].mem),
                                    places[0].offset, places[1].offset, 64, 0, nullptr, nullptr);
              },
              std::array{x}, std::array{z});
          return y + z;
        },
        {.graph = {.backend = backend}});
    // An opaque task that has the tensors' memory by itself.
    auto g = compile(
        [](const Tensor& x) {
          const Tensor z = empty({16}, {.device = x.device()});
          Encoder(current_stream(x.device()), "mine")
              .opaque(
                  [x, z](void* queue) {
                    clEnqueueCopyBuffer(static_cast<cl_command_queue>(queue), interop::mem(x), interop::mem(z), interop::offset(x), interop::offset(z), 64, 0,
                                        nullptr, nullptr);
                  },
                  std::array{x}, std::array{z});
          return z;
        },
        {.graph = {.backend = backend}});
    for (int i = 0; i < 3; ++i) {
      const Tensor x = full({16}, i, {.device = device});
      EXPECT_EQ(values_of(f(x)), Values(16, static_cast<float>(2 * i + 1)));
      EXPECT_EQ(values_of(g(x)), Values(16, static_cast<float>(i)));
    }
    EXPECT_EQ(f.explain().replays, 2U);
    EXPECT_EQ(g.explain().eager_calls, 3U);
    EXPECT_TRUE(contains(g.explain().to_string(), "mine is an opaque task without places")) << g.explain().to_string();
  }
}

/// Lists of tensors in a table may lie in other buffers at each call, up to 8; past that a call runs eagerly.
TEST(Compile, ListsOfTensorsInManyBuffers) {
  CLUTCH_EACH_BACKEND(device, backend) {
    auto eager = [](std::span<const Tensor> xs, std::span<const Tensor> ys) { foreach_copy_(xs, ys); };
    auto f = compile(eager, {.graph = {.backend = backend}});
    auto wrapped = [&](float value) {
      cl_int status = CL_SUCCESS;
      const auto context = static_cast<cl_context>(interop::context(default_stream(device)));
      const Tensor made = interop::wrap(clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &status), {16}, DType::f32, device);
      EXPECT_EQ(status, CL_SUCCESS);
      fill_(made, value);
      return made;
    };
    for (const int buffers : {0, 3, 7, 12, 4, 12, 0}) {
      std::vector<Tensor> xs, ys;
      for (int i = 0; i < 6; ++i) {
        ys.push_back(i < buffers ? wrapped(static_cast<float>(i)) : full({16}, i, {.device = device}));
        xs.push_back(6 + i < buffers ? wrapped(-1) : full({16}, -1, {.device = device}));
      }
      f(std::span<const Tensor>(xs), std::span<const Tensor>(ys));
      for (std::size_t i = 0; i < xs.size(); ++i) EXPECT_EQ(values_of(xs[i]), Values(16, static_cast<float>(i))) << buffers << ' ' << i;
    }
    EXPECT_EQ(f.explain().captures, 1U) << f.explain().to_string();
    EXPECT_EQ(f.explain().eager_calls, 2U) << f.explain().to_string();
  }
}

TEST(Compile, CallsWithoutMemoryLeaveAllAsItWas) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kN = 4 << 20;
    auto f = compile([](const Tensor& x, const Tensor& count) {
      add_(count, 1);
      return x * 2;
    });
    const Tensor x = full({kN}, 1, {.device = device}), count = zeros({1}, {.device = device});
    f(x, count);
    empty_cache(device);
    {
      // Nothing is left for the result, which is the first thing that a call makes.
      const Tensor all = empty({kN / 2}, {.device = device});
      const double fraction = get_per_process_memory_fraction(device);
      std::uint64_t held = 0;  // devices that compute in the host's memory share one limit
      for (const Device& d : devices()) held += memory_reserved(d);
      set_memory_limit(held, device);
      EXPECT_EQ(code_of([&] { f(x, count); }), ErrorCode::out_of_memory);
      EXPECT_EQ(count.item(), 1);
      set_per_process_memory_fraction(fraction, device);
    }
    EXPECT_EQ(f(x, count).to_host<float>().back(), 2);
    EXPECT_EQ(count.item(), 2);
  }
}

TEST(Compile, GraphsOutliveNothing) {
  CLUTCH_EACH_BACKEND(device, backend) {
    std::vector<Tensor> results;
    for (int i = 0; i < 5; ++i) {
      auto f = compile([](const Tensor& x) { return (x + 1) * 2; }, {.graph = {.backend = backend}});
      for (int call = 0; call < 3; ++call) results.push_back(f(full({1 << 16}, i, {.device = device})));
    }  // work may still run while its graph goes
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].to_host<float>().back(), static_cast<float>(2 * static_cast<int>(i / 3) + 2));
  }
}

/// Never destroyed before the end of the process, when the driver may be gone.
TEST(Compile, StaticFunctionsEndWithTheProcess) {
  static auto f = compile([](const Tensor& x) { return x + 1; });
  CLUTCH_EACH_DEVICE(device) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(values_of(f(full({3}, i, {.device = device}))), Values(3, static_cast<float>(i + 1)));
  }
}
