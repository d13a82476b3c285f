// SPDX-License-Identifier: Apache-2.0
// Random numbers within traced functions: those of rand(), on any layout, in graphs, and on the host.
#include "cases/random.hpp"

#include "graph/backends.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <array>
#include <numeric>

namespace clutch::testing { namespace {

TEST(MapRandom, NumbersAreThoseOfRandAtAnyShapeAndLayout) {
  CLUTCH_EACH_DEVICE(device) {
    for (const Dims& sizes : {Dims{1}, Dims{63}, Dims{64}, Dims{65}, Dims{5, 7, 9}, Dims{3, 40000}, Dims{}})
      for (DType dtype : {DType::f32, DType::f64}) {
        if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
        const Tensor want = rand(sizes, {.dtype = dtype, .device = device, .seed = 0x123456789ABCDEFull});
        auto f = [&](Expr x) { return random_uniform(0x123456789ABCDEFull, dtype) + cast(x, dtype) * 0; };
        const Tensor x = zeros(sizes, {.dtype = dtype, .device = device});
        ASSERT_EQ(map(f, {x}, {.dtype = {dtype}}).to_bytes(), want.to_bytes()) << sizes << ' ' << name(dtype);
        for (const char* implementation : {"map_contiguous", "map_rows", "map_strided"}) {
          const Tensor got = empty(sizes, {.dtype = dtype, .device = device});
          const ErrorCode code = code_of([&] { map_out(got, f, {x}, {.implementation = implementation}); });
          if (code == ErrorCode::not_supported) continue;
          ASSERT_EQ(code, ErrorCode::ok) << implementation;
          ASSERT_EQ(got.to_bytes(), want.to_bytes()) << implementation << sizes;
        }
        // Places count in row-major order, whatever the strides are.
        if (sizes.rank() == 0) continue;
        Dims strides = Dims::filled(sizes.rank(), 0);
        std::int64_t stride = 2;
        for (int d = 0; d < sizes.rank(); ++d) strides[d] = stride, stride *= sizes[d];
        Guarded out(device, dtype, sizes, strides);
        map_out(out.view(), f, {x});
        ASSERT_EQ(out.get(), want.to_bytes()) << sizes << " first dimension innermost";
      }
  }
}

TEST(MapRandom, AGeneratorIsReadAndAdvancedAsByRand) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    const Generator mine(device, 7, stream), other(device, 7, stream);
    const Tensor x = full({1000}, 2, {.device = device}, stream);
    auto dropout = [&](Expr v) { return select(random_uniform(mine) < 0.25, Expr(0), v / 0.75); };
    for (int call = 0; call < 3; ++call) {
      const Tensor got = map(dropout, {x}, {}, stream), u = rand({1000}, {.device = device, .generator = other}, stream);
      const Tensor want = map([](Expr v, Expr r) { return select(r < 0.25, Expr(0), v / 0.75); }, {x, u}, {}, stream);
      ASSERT_EQ(got.to_bytes(stream), want.to_bytes(stream)) << call;
      ASSERT_EQ(mine.state(stream), other.state(stream));
    }
    // f64 takes twice as many blocks; a call without elements takes none.
    if (!device.traits().fp64) continue;
    map([&](Expr v) { return random_uniform(mine, DType::f64) + v; }, {x}, {}, stream);
    rand({1000}, {.dtype = DType::f64, .device = device, .generator = other}, stream);
    map(dropout, {zeros({0}, {.device = device}, stream)}, {}, stream);
    EXPECT_EQ(mine.state(stream), other.state(stream));
  }
}

TEST(MapRandom, TheDefaultGeneratorIsTheDevices) {
  CLUTCH_EACH_DEVICE(device) {
    const DeviceGuard guard(device);
    const Tensor x = zeros({500}, {.device = device});
    manual_seed(99, device);
    const Tensor want = rand({500}, {.device = device}), second = rand({500}, {.device = device});
    manual_seed(99, device);
    auto f = [](Expr v) { return random_uniform() + v; };
    EXPECT_EQ(map(f, {x}).to_bytes(), want.to_bytes());
    const ExprFunction parsed = ExprFunction::parse(trace(f, std::array{DType::f32}).text());
    EXPECT_EQ(map(parsed, std::span(&x, 1))[0].to_bytes(), second.to_bytes()) << "a parsed function draws from it, too";
    synchronize(device);
  }
}

TEST(MapRandom, DrawsOfOneFunctionDiffer) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = zeros({20000}, {.device = device});
    const auto [a, b, same] = map(
        [](Expr) {
          const Expr first = random_uniform(5), second = random_uniform(5);
          return std::array{first, second, first - first};
        },
        {x});
    EXPECT_EQ(a.to_bytes(), rand({20000}, {.device = device, .seed = 5}).to_bytes());
    const std::vector<float> va = a.to_host<float>(), vb = b.to_host<float>();
    double product = 0;
    int equal = 0;
    for (std::size_t i = 0; i < va.size(); ++i) product += (va[i] - 0.5) * (vb[i] - 0.5), equal += va[i] == vb[i];
    EXPECT_LT(std::fabs(product / 20000), 5 / 12.0 / std::sqrt(20000)) << "not correlated";
    EXPECT_LT(equal, 5);
    EXPECT_EQ(same.to_host<float>(), std::vector<float>(20000, 0.0f)) << "one Expr is one draw";
  }
}

TEST(MapRandom, GraphsDrawAnewAtEachReplay) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device);
    const Generator mine(device, 3, stream), other(device, 3, stream);
    const Tensor x = zeros({300}, {.device = device}, stream), out = zeros({300}, {.device = device}, stream);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      map_out(
          out, [&](Expr v) { return random_uniform(mine) + v; }, {x}, {}, stream);
    }
    for (int replay = 0; replay < 3; ++replay) {
      graph.replay(stream);
      const Tensor want = rand({300}, {.device = device, .generator = other}, stream);
      EXPECT_EQ(out.to_bytes(stream), want.to_bytes(stream)) << replay;
    }
  }
}

TEST(MapRandom, TheHostEvaluatesTheSameBits) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = zeros({200}, {.dtype = DType::i64, .device = device});
    const ExprFunction f = trace([](Expr) { return std::array{random_bits(41), cast(random_uniform(41), DType::f32)}; }, std::array{DType::i64});
    const std::vector<Tensor> got = map(f, std::span(&x, 1));
    const std::vector<std::int64_t> bits = got[0].to_host<std::int64_t>();
    const std::vector<float> numbers = got[1].to_host<float>();
    const ExprValue zero = ExprValue::of(DType::i64, 0);
    for (std::int64_t i = 0; i < 200; ++i) {
      const std::vector<ExprValue> want = f.evaluate(std::span(&zero, 1), std::array{i});
      ASSERT_EQ(static_cast<std::uint64_t>(bits[static_cast<std::size_t>(i)]), want[0].bits) << i;
      ASSERT_EQ(static_cast<double>(numbers[static_cast<std::size_t>(i)]), want[1].number()) << i;
    }
    EXPECT_EQ(code_of([&] { f.evaluate(std::span(&zero, 1), std::array<std::int64_t, 2>{1, 2}); }), ErrorCode::invalid_argument);
    const std::string& text = f.text();
    EXPECT_EQ(ExprFunction::parse(text).text(), text);
    EXPECT_NE(text.find("philox_wide 0"), std::string::npos) << text;
    EXPECT_NE(text.find("philox 1"), std::string::npos) << text;
  }
}

TEST(MapRandom, GradientsComeFromSeedsAlone) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = randn({1000}, {.device = device, .seed = 1}), g = full({1000}, 1, {.device = device});
    auto by_seed = [](Expr v) { return select(random_uniform(8) < 0.5, Expr(0.0f), v * random_uniform(8)); };
    const Tensor grad = map_backward({g}, by_seed, {x})[0];
    const auto [mask, factor] = map([](Expr) { return std::array{random_uniform(8), random_uniform(8)}; }, {x});
    const Tensor want = map([](Expr m, Expr r) { return select(m < 0.5, Expr(0.0f), r); }, {mask, factor});
    EXPECT_EQ(grad.to_bytes(), want.to_bytes()) << "draws keep their numbers though the first is behind the second there";
    const Generator generator(device);
    auto drawn = [&](Expr v) { return v * random_uniform(generator); };
    EXPECT_EQ(code_of([&] { map_backward({g}, drawn, {x}); }), ErrorCode::not_supported);
  }
}

TEST(MapRandom, OtherOpsRefuse) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = zeros({4, 4}, {.device = device});
    EXPECT_EQ(code_of([&] { reduce(Reduce::sum, [](Expr v) { return v + random_uniform(1); }, {x}); }), ErrorCode::not_supported);
    EXPECT_NE(code_of([&] { rowwise([](Row& row, Expr v) { return v + random_uniform(1) + row.sum(v); }, {x}); }), ErrorCode::ok);
    EXPECT_EQ(code_of([&] { foreach_map([](Expr v) { return v + random_uniform(1); }, {std::vector{x}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { random_uniform(1, DType::f16); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { map([](Expr v) { return v + random_uniform(1); }, {x}, {.implementation = "no"}); }), ErrorCode::invalid_argument);
  }
}

}}  // namespace clutch::testing
