// SPDX-License-Identifier: Apache-2.0
// foreach_map: the bits of map() for each place of lists, in one launch.
#include "graph/backends.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <array>
#include <vector>

namespace clutch::testing { namespace {

using List = std::vector<Tensor>;

List randoms(const Device& device, std::initializer_list<Dims> sizes, std::uint64_t number, DType dtype = DType::f32) {
  List all;
  for (const Dims& size : sizes) all.push_back(randn(size, {.dtype = dtype, .device = device, .seed = number++}));
  return all;
}

TEST(MapList, GivesTheBitsOfMapForEachPlace) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      const std::initializer_list<Dims> sizes{{7}, {3, 100}, {0, 4}, {}, {40, 500}, {1, 1}};
      const List x = randoms(device, sizes, 1, dtype), y = randoms(device, sizes, 11, dtype);
      auto f = [](Expr a, Expr b) { return std::array{a / sqrt(abs(b) + 0.5), select(a > b, a, b) * 2}; };
      const auto [quotients, larger] = foreach_map(f, {x, y});
      ASSERT_EQ(quotients.size(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto want = map(f, {x[i].unsqueeze(0), y[i].unsqueeze(0)});
        ASSERT_EQ(quotients[i].sizes(), x[i].sizes());
        ASSERT_EQ(quotients[i].dtype(), dtype);
        ASSERT_EQ(quotients[i].to_bytes(), want[0].to_bytes()) << name(dtype) << ' ' << i;
        ASSERT_EQ(larger[i].to_bytes(), want[1].to_bytes()) << name(dtype) << ' ' << i;
      }
    }
  }
}

TEST(MapList, ListsOfNumbersGoWithAnyShape) {
  CLUTCH_EACH_DEVICE(device) {
    const List x = randoms(device, {{70}, {3, 5}, {1}}, 1);
    const Tensor all = from_host({2.0f, 3.0f, 5.0f}, device);
    const List numbers{all.select(0, 0), all.slice(0, 1, 2), all.select(0, 2)};
    const List got = foreach_map([](Expr a, Expr s) { return a * s; }, {x, numbers});
    for (std::size_t i = 0; i < 3; ++i) {
      const std::vector<float> from = x[i].to_host<float>(), to = got[i].to_host<float>();
      EXPECT_EQ(got[i].sizes(), x[i].sizes());
      for (std::size_t k = 0; k < from.size(); ++k) ASSERT_EQ(to[k], from[k] * (i == 0 ? 2.0f : i == 1 ? 3.0f : 5.0f)) << i << ' ' << k;
    }
    // All of one element: shapes broadcast.
    EXPECT_EQ(foreach_map([](Expr a, Expr s) { return a + s; }, {numbers, numbers})[1].sizes(), (Dims{1}));
    // A param and a captured tensor serve all places.
    const Captured table = captured(all);
    const List added = foreach_map([&](Expr a) { return a + table[Expr(1)] * param(10); }, {numbers});
    EXPECT_EQ(added[2].item(), 35);
  }
}

TEST(MapList, WorksInPlaceOnViewsAndOnSeveralDtypes) {
  CLUTCH_EACH_DEVICE(device) {
    const List x{arange(0, 6, 1, {.device = device}).reshape({2, 3}).mT(), arange(0, 40, 1, {.device = device}).slice(0, 1, 40, 2),
                 full({5}, 3, {.dtype = DType::bf16, .device = device})};
    std::vector<std::vector<double>> before;
    for (const Tensor& t : x) before.push_back(values(t.clone()));
    foreach_map_out(x, [](Expr a) { return a * a + 1; }, {x});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::vector<double> after = values(x[i].clone());
      for (std::size_t k = 0; k < after.size(); ++k) ASSERT_EQ(after[k], before[i][k] * before[i][k] + 1) << i << ' ' << k;
    }
    EXPECT_EQ(x[2].dtype(), DType::bf16);
    // Results of another dtype.
    const List wide = foreach_map([](Expr a) { return a; }, {x}, {.dtype = {DType::f16}});
    EXPECT_EQ(wide[0].dtype(), DType::f16);
    EXPECT_EQ(foreach_map([](Expr a) { return a; }, {List{}}).size(), 0u);
    foreach_map_out(List{}, [](Expr a) { return a; }, {List{}});
  }
}

TEST(MapList, HundredsOfTensorsAreOneLaunchThatGraphsReplay) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device);
    List p, g, m;
    for (std::uint64_t i = 0; i < 400; ++i) {
      const Dims size{static_cast<std::int64_t>(i % 9), 3};
      p.push_back(randn(size, {.device = device, .seed = i}, stream));
      g.push_back(randn(size, {.device = device, .seed = 1000 + i}, stream));
      m.push_back(zeros(size, {.device = device}, stream));
    }
    List want_m, want_p;
    for (std::size_t i = 0; i < p.size(); ++i) {
      Tensor mean = lerp(lerp(m[i], g[i], 0.1, {}, stream), g[i], 0.1, {}, stream);
      want_m.push_back(mean);
    }
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      foreach_map_out(
          m, [](Expr a, Expr b) { return lerp(a, b, 0.1); }, {m, g}, {}, stream);
    }
    EXPECT_EQ(graph.find("foreach_map_out").size(), 1u);
    graph.replay(stream), graph.replay(stream);
    for (std::size_t i = 0; i < p.size(); ++i) ASSERT_EQ(m[i].to_bytes(stream), want_m[i].to_bytes(stream)) << i;
  }
}

TEST(MapList, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    auto make = [&](const Dims& sizes, DType dtype = DType::f32) { return zeros(sizes, {.dtype = dtype, .device = device}); };
    auto add = [](Expr a, Expr b) { return a + b; };
    const Tensor a = make({4}), b = make({4}), whole = make({8});
    EXPECT_EQ(code_of([&] { foreach_map(add, {List{a}, List{a, b}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { foreach_map(add, {List{a, make({5})}, List{a, b}}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { foreach_map(add, {List{a, make({4}, DType::i32)}, List{a, b}}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { foreach_map(add, {List{a, make({4}, DType::c64)}, List{a, b}}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { foreach_map([](Expr x) { return x + position(0); }, {List{a}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { foreach_map(add, {List{a}, List{Tensor()}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { foreach_map(add, {List{a}, List{b}}, {.dtype = {DType::f32, DType::f32}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { foreach_map(add, {List{a}, List{b}}, {.implementation = "map_rows"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { foreach_map_out(List{a}, add, {List{a}, List{b}}); }), ErrorCode::ok) << "in place";
    EXPECT_EQ(code_of([&] {
                foreach_map_out(List{a, b}, add, {List{b, a}, List{make({4}), make({4})}});
              }),
              ErrorCode::invalid_overlap)
        << "another place's tensor";
    EXPECT_EQ(code_of([&] { foreach_map_out(List{a, a}, add, {List{b, b}, List{b, b}}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { foreach_map_out(List{whole.slice(0, 0, 4)}, add, {List{whole.slice(0, 1, 5)}, List{b}}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { foreach_map_out(List{make({5})}, add, {List{a}, List{b}}); }), ErrorCode::invalid_shape);
    const Captured table = captured(whole);
    EXPECT_EQ(code_of([&] { foreach_map_out(List{whole.slice(0, 0, 4)}, [&](Expr x) { return x + table[Expr(0)]; }, {List{a}}); }), ErrorCode::invalid_overlap);
  }
}

}}  // namespace clutch::testing
