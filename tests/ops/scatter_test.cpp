// SPDX-License-Identifier: Apache-2.0
#include "cases/scatter.hpp"
#include "cases/group.hpp"

#include <clutch/nn.hpp>
#include <clutch/ops/random.hpp>

#include "ops/scatter_plan.hpp"
#include "support/differences.hpp"
#include "support/op_runner.hpp"

#include <cmath>

namespace clutch::testing { namespace {

using cases::ScatterCase;

constexpr Reduce kAll[] = {Reduce::sum, Reduce::mean, Reduce::amin, Reduce::amax, Reduce::prod};

TEST(Scatter, ReductionsDtypesAndDimensionsHaveTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::u8, DType::u64}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (Reduce reduce : kAll)
        for (bool include : {true, false}) {
          // Programs differ by dtype, reduction and whether self counts.
          if (level() == "smoke" && dtype != DType::f32 && reduce != (dtype == DType::i32 ? Reduce::mean : Reduce::sum)) continue;
          for (int dim = 0; dim < 3; ++dim)
            ASSERT_EQ(run_problem(device, ScatterCase::problem("", "scatter_lines", dtype, {.reduce = reduce, .include_self = include}, dim, {9, 8, 13},
                                                               {9, 8, 12}, seed() + static_cast<std::uint64_t>(dim), dim == 1)),
                      "")
                << name(dtype) << " reduction " << static_cast<int>(reduce) << " including self: " << static_cast<int>(include) << ", dimension " << dim;
        }
    }
  }
}

TEST(Scatter, RepeatedIndicesGoByRowsWithTheBitsOfLines) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor line = from_host(cases::GroupCase::indices(300, 40, seed()), {300}, device);
    for (DType dtype : {DType::f32, DType::bf16}) {
      Tensor self = randn({40, 6, 5}, {.device = device, .seed = 1}).to(dtype), src = randn({300, 6, 5}, {.device = device, .seed = 2}).to(dtype);
      Tensor index = line.reshape({300, 1, 1}).expand({300, 6, 5});
      for (Reduce reduce : kAll)
        for (bool include : {true, false}) {
          if (level() == "smoke" && dtype != DType::f32 && reduce != Reduce::mean) continue;
          ScatterOptions rows{.reduce = reduce, .include_self = include, .implementation = "segment_rows"},
              lines{.reduce = reduce, .include_self = include, .implementation = "scatter_lines"};
          std::vector<std::uint8_t> want = scatter_reduce(self, 0, index, src, lines).to_bytes();
          ASSERT_EQ(scatter_reduce(self, 0, index, src, rows).to_bytes(), want) << static_cast<int>(reduce);
          ASSERT_EQ(scatter_reduce(self, 0, index, src, {.reduce = reduce, .include_self = include}).to_bytes(), want) << static_cast<int>(reduce);
          // Panels accumulate in place.
          ScatterOptions panels{.reduce = reduce, .include_self = include, .implementation = "scatter_panels"};
          std::vector<std::uint8_t> got;
          ErrorCode code = code_of([&] { got = scatter_reduce(self, 0, index, src, panels).to_bytes(); });
          bool takes = dtype == DType::f32 && reduce != Reduce::mean && include;
          ASSERT_EQ(code, takes ? ErrorCode::ok : ErrorCode::not_supported);
          if (takes) {
            ASSERT_EQ(got, want) << static_cast<int>(reduce);
          }
        }
    }
    // Along another dimension than the first.
    Tensor self = randn({6, 40, 5}, {.device = device, .seed = 1}), src = randn({6, 300, 5}, {.device = device, .seed = 2}),
           index = line.reshape({1, 300, 1}).expand({6, 300, 5});
    ASSERT_EQ(scatter_reduce(self, 1, index, src, {.implementation = "segment_rows"}).to_bytes(),
              scatter_reduce(self, 1, index, src, {.implementation = "scatter_lines"}).to_bytes());
    EXPECT_EQ(code_of([&] { scatter_reduce(self.to(DType::i32), 1, index, src.to(DType::i32), {.implementation = "segment_rows"}); }),
              ErrorCode::not_supported);
    // Elements of a row that lie apart: what is forced refuses, rather than be another; what is not takes them.
    Tensor transposed = randn({40, 9}, {.device = device, .seed = 1}).mT(), wide = randn({300, 9}, {.device = device, .seed = 2}).mT(),
           columns = line.reshape({1, 300}).expand({9, 300});
    EXPECT_EQ(code_of([&] { scatter_reduce(transposed.contiguous(), 1, columns, wide.contiguous(), {.implementation = "segment_rows"}); }),
              ErrorCode::not_supported);
    ASSERT_EQ(scatter_reduce(transposed.contiguous(), 1, columns, wide.contiguous()).to_bytes(),
              scatter_reduce(transposed.contiguous(), 1, columns, wide.contiguous(), {.implementation = "scatter_lines"}).to_bytes());
  }
}

/// Single elements that are sorted, as GPUs do with few long lines: bad indices, an index that is shorter than self, self in place and of any strides.
TEST(Scatter, ElementsGoBySegmentsWithTheBitsOfLines) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      const Tensor src = randn({5, 700, 3}, {.device = device, .seed = 2}).to(dtype);
      for (int dim : {0, 1, 2}) {
        Dims sizes{6, 41, 4};
        const Tensor index =
            from_host(cases::GroupCase::indices(4 * 600 * 2, sizes[dim], seed(), 2), {4, 600, 2}, device).to(dim == 1 ? DType::i32 : DType::i64);
        if (dim != 1) sizes[1] = 640;
        for (bool transposed : {false, true}) {
          const Tensor contiguous = randn(sizes, {.device = device, .seed = 1}).to(dtype);
          const Tensor self = transposed ? contiguous.transpose(0, 2).contiguous().transpose(0, 2) : contiguous;
          for (Reduce reduce : kAll)
            for (bool include : {true, false}) {
              if (level() == "smoke" && dtype != DType::f32 && reduce != Reduce::mean) continue;
              const ScatterOptions lines{.reduce = reduce, .include_self = include, .implementation = "scatter_lines"};
              ScatterOptions segments = lines, any = lines;
              segments.implementation = "segment_rows", any.implementation.clear();
              const std::vector<std::uint8_t> want = scatter_reduce(self, dim, index, src, lines).to_bytes();
              ASSERT_EQ(scatter_reduce(self, dim, index, src, segments).to_bytes(), want) << static_cast<int>(reduce) << " along " << dim;
              ASSERT_EQ(scatter_reduce(self, dim, index, src, any).to_bytes(), want) << static_cast<int>(reduce) << " along " << dim;
              const Tensor in_place = self.clone().transpose(0, 1).contiguous().transpose(0, 1);
              scatter_reduce_(in_place, dim, index, src, segments);
              ASSERT_EQ(in_place.contiguous().to_bytes(), want) << static_cast<int>(reduce) << " along " << dim;
            }
        }
      }
    }
  }
}

TEST(Scatter, ValuesThatPyTorchGives) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor self = from_host<float>({10, 20, 30}, device), index = from_host<std::int64_t>({0, 0, 2}, device), src = from_host<float>({1, 2, 3}, device);
    auto with = [&](Reduce reduce, bool include) { return scatter_reduce(self, 0, index, src, {.reduce = reduce, .include_self = include}).to_host<float>(); };
    EXPECT_EQ(with(Reduce::sum, true), (std::vector<float>{13, 20, 33}));
    EXPECT_EQ(with(Reduce::sum, false), (std::vector<float>{3, 20, 3}));
    EXPECT_EQ(with(Reduce::mean, true), (std::vector<float>{13.0f / 3, 20, 16.5f}));
    EXPECT_EQ(with(Reduce::mean, false), (std::vector<float>{1.5f, 20, 3}));
    EXPECT_EQ(with(Reduce::amax, false), (std::vector<float>{2, 20, 3}));
    Tensor whole = from_host<std::int64_t>({10, 20}, device), parts = from_host<std::int64_t>({1, -2}, device), both = from_host<std::int64_t>({0, 0}, device);
    EXPECT_EQ(scatter_reduce(whole, 0, both, parts, {.reduce = Reduce::mean}).to_host<std::int64_t>(), (std::vector<std::int64_t>{3, 20}));
    EXPECT_EQ(scatter_reduce(whole, 0, both, parts, {.reduce = Reduce::mean, .include_self = false}).to_host<std::int64_t>(),
              (std::vector<std::int64_t>{-1, 20}))
        << "rounded down";
    Tensor bad = from_host<float>({1, std::nanf(""), 3}, device);
    EXPECT_TRUE(std::isnan(scatter_reduce(self, 0, index, bad, {.reduce = Reduce::amin}).to_host<float>()[0]));
    EXPECT_EQ(scatter_reduce(self, 0, from_host<std::int64_t>({-1, 3, 1}, device), src).to_host<float>(), (std::vector<float>{10, 23, 30})) << "left out";
    EXPECT_EQ(scatter_reduce(self, 0, zeros({0}, {.dtype = DType::i64, .device = device}), src).to_host<float>(), (std::vector<float>{10, 20, 30}));
  }
}

TEST(Scatter, GatherAndSelectTakeElements) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = from_host<float>({0, 1, 2, 10, 11, 12}, device).reshape({2, 3}), index = from_host<std::int64_t>({1, 0, 1, 0}, device).reshape({2, 2});
    EXPECT_EQ(gather(x, 0, index).to_host<float>(), (std::vector<float>{10, 1, 10, 1}));
    EXPECT_EQ(gather(x, -1, index).to_host<float>(), (std::vector<float>{1, 0, 11, 10}));
    EXPECT_EQ(gather(x.to(DType::i16), 1, index.to(DType::i32)).to_host<std::int16_t>(), (std::vector<std::int16_t>{1, 0, 11, 10}));
    Tensor out_of_range = from_host<std::int64_t>({-1, 3}, device).reshape({2, 1});
    EXPECT_TRUE(std::isnan(gather(x, 1, out_of_range).to_host<float>()[1]));
    EXPECT_EQ(gather(x.to(DType::i32), 1, out_of_range).to_host<std::int32_t>(), (std::vector<std::int32_t>{0, 0}));
    EXPECT_EQ(gather_backward(full({2, 2}, 1, {.device = device}), {2, 3}, 1, from_host<std::int64_t>({1, 1, 2, 0}, device).reshape({2, 2})).to_host<float>(),
              (std::vector<float>{0, 2, 0, 1, 0, 1}));
    // Rows, bits kept: wide ones go another way.
    Tensor wide = randn({7, 33}, {.device = device, .seed = 3}), rows = from_host<std::int32_t>({6, 0, 6, 3}, device);
    std::vector<float> all = wide.to_host<float>(), got = index_select(wide, 0, rows).to_host<float>(),
                       transposed = index_select(wide.mT(), 1, rows).mT().contiguous().to_host<float>();
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t f = 0; f < 33; ++f) {
        float want = all[std::array<std::size_t, 4>{6, 0, 6, 3}[i] * 33 + f];
        ASSERT_EQ(got[i * 33 + f], want);
        ASSERT_EQ(transposed[i * 33 + f], want);
      }
    EXPECT_EQ(index_select(x, 1, from_host<std::int64_t>({2}, device)).to_host<float>(), (std::vector<float>{2, 12}));
    EXPECT_EQ(code_of([&] { index_select(x, 1, index); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { gather(x, 2, index); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { gather(x, 0, x); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { gather(x, 0, zeros({1, 4}, {.dtype = DType::i64, .device = device})); }), ErrorCode::invalid_shape);
  }
}

TEST(Scatter, GradientsAreThoseOfDifferences) {
  CLUTCH_EACH_DEVICE(device) {
    const Dims self_sizes{1, 3, 2}, sizes{1, 5, 2};
    std::vector<std::int64_t> index{0, 2, 0, 2, 1, 2, 0, 0, 3, 2};
    model::Random random(seed());
    std::vector<double> self, src, weights;
    for (int i = 0; i < 6; ++i) self.push_back(random.uniform(0.5, 2)), weights.push_back(random.uniform(-1, 1));
    for (int i = 0; i < 10; ++i) src.push_back(random.uniform(-2, 2));
    auto tensor = [&](const std::vector<double>& v, const Dims& s) { return from_host(std::vector<float>(v.begin(), v.end()), s, device); };
    for (int zeros = 0; zeros < 2; ++zeros) {
      if (zeros) src[0] = 0, src[3] = 0, src[5] = 0;
      for (Reduce reduce : kAll)
        for (bool include : {true, false}) {
          ScatterOptions o{.reduce = reduce, .include_self = include};
          Tensor a = tensor(self, self_sizes), b = tensor(src, sizes), i = from_host(index, sizes, device);
          ScatterGradients got = scatter_reduce_backward(tensor(weights, self_sizes), scatter_reduce(a, 1, i, b, o), a, 1, i, b, o);
          auto loss = [&](const std::vector<double>& of_self, const std::vector<double>& of_src) {
            std::vector<double> r = ScatterCase::model<double>(of_self, self_sizes, 1, index, sizes, of_src, sizes, o);
            double total = 0;
            for (std::size_t k = 0; k < r.size(); ++k) total += r[k] * weights[k];
            return total;
          };
          EXPECT_EQ(compare_gradient([&](const std::vector<double>& v) { return loss(v, src); }, self, got.self.to_host<float>()), "")
              << "self, reduction " << static_cast<int>(reduce) << " including self: " << static_cast<int>(include) << " zeros " << zeros;
          if (zeros && (reduce == Reduce::amin || reduce == Reduce::amax)) continue;  // ties have no difference
          EXPECT_EQ(compare_gradient([&](const std::vector<double>& v) { return loss(self, v); }, src, got.src.to_host<float>()), "")
              << "src, reduction " << static_cast<int>(reduce) << " including self: " << static_cast<int>(include) << " zeros " << zeros;
        }
    }
    // Ties share evenly, self among them.
    Tensor s = from_host<float>({2, 5}, device), i = from_host<std::int64_t>({0, 0, 0}, device), x = from_host<float>({2, 2, 1}, device),
           g = from_host<float>({3, 1}, device);
    ScatterGradients tied = scatter_reduce_backward(g, scatter_reduce(s, 0, i, x, {.reduce = Reduce::amax}), s, 0, i, x, {.reduce = Reduce::amax});
    EXPECT_EQ(tied.self.to_host<float>(), (std::vector<float>{1, 1}));
    EXPECT_EQ(tied.src.to_host<float>(), (std::vector<float>{1, 1, 0}));
    // All of a slot with NaN, as torch.scatter_reduce has it: the second is without.
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Tensor places = from_host<std::int64_t>({0, 0, 1}, device), some = from_host<float>({nan, 2, 7}, device);
    for (bool include : {true, false}) {
      const ScatterOptions o{.reduce = Reduce::amax, .include_self = include};
      const ScatterGradients of_nan = scatter_reduce_backward(g, scatter_reduce(s, 0, places, some, o), s, 0, places, some, o);
      const std::vector<float> of_src = of_nan.src.to_host<float>(), of_self = of_nan.self.to_host<float>();
      EXPECT_TRUE(std::isnan(of_src[0]) && std::isnan(of_src[1]));
      EXPECT_EQ(of_src[2], 1);
      EXPECT_EQ(std::isnan(of_self[0]), include);
      EXPECT_EQ(of_self[1], 0);
    }
  }
}

TEST(Scatter, EmbeddingsForwardAndBackward) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor weight = randn({11, 20}, {.device = device, .seed = 5}), index = from_host<std::int64_t>({3, 0, 3, 10, 3, 7}, device).reshape({2, 3});
    Tensor out = nn::embedding(weight, index);
    ASSERT_EQ(out.sizes(), (Dims{2, 3, 20}));
    EXPECT_EQ(out.select(0, 1).select(0, 0).to_bytes(), weight.select(0, 10).to_bytes());
    Tensor grad = randn({2, 3, 20}, {.device = device, .seed = 6});
    std::vector<float> g = grad.to_host<float>(), got = nn::embedding_backward(grad, index, 11).to_host<float>();
    for (std::size_t f = 0; f < 20; ++f) {
      EXPECT_EQ(got[3 * 20 + f], (g[f] + g[40 + f]) + g[80 + f]);
      EXPECT_EQ(got[1 * 20 + f], 0);
    }
    std::vector<float> options = nn::embedding_backward(grad, index, 11, {.padding_index = 0, .scale_by_frequency = true}).to_host<float>();
    EXPECT_EQ(options[5], 0) << "padding";
    EXPECT_EQ(options[3 * 20], ((g[0] + g[40]) + g[80]) / 3);
    EXPECT_TRUE(std::isnan(nn::embedding(weight, from_host<std::int64_t>({11}, device)).to_host<float>()[0]));
    EXPECT_EQ(nn::embedding(weight, zeros({0}, {.dtype = DType::i64, .device = device})).sizes(), (Dims{0, 20}));
    EXPECT_EQ(code_of([&] { nn::embedding(weight, weight); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { nn::embedding(weight.select(0, 1), index); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { nn::embedding_backward(grad, index.select(0, 0), 11); }), ErrorCode::invalid_shape);
  }
}

TEST(Scatter, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor self = zeros({4, 3}, {.device = device}), index = zeros({2, 3}, {.dtype = DType::i64, .device = device}), src = zeros({2, 3}, {.device = device});
    EXPECT_EQ(code_of([&] { scatter_reduce(Tensor(), 0, index, src); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { scatter_reduce(self, 2, index, src); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { scatter_reduce(self, 0, src, src); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { scatter_reduce(self, 0, index, src.to(DType::f16)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { scatter_reduce(self.to(DType::boolean), 0, index, src.to(DType::boolean)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { scatter_reduce(self, 0, index, src.slice(0, 0, 1)); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { scatter_reduce(self.slice(1, 0, 2), 0, index, src); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { scatter_reduce(self, 0, index, src, {.implementation = "scatter_best"}); }), ErrorCode::invalid_argument);
    // Nor is an unknown name overlooked where the index names rows, or nothing.
    Tensor wide = zeros({3, 16}, {.device = device}), row = zeros({3, 1}, {.dtype = DType::i64, .device = device}).expand({3, 16});
    EXPECT_EQ(code_of([&] { scatter_reduce(wide, 0, row, wide, {.implementation = "scatter_best"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                scatter_reduce_(wide, 0, row.slice(0, 0, 0), zeros({0, 16}, {.device = device}), {.implementation = "segment_strided"});
              }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { scatter_reduce_(self, 0, index, self.slice(0, 0, 2)); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { scatter_reduce_(self.slice(0, 0, 1).expand({4, 3}), 0, index, src); }), ErrorCode::invalid_overlap);
  }
}

TEST(Scatter, ShapesOfAClassBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    auto run_on = [&](std::int64_t rows, std::int64_t columns) {
      scatter_reduce(zeros({rows, columns}, {.device = device}), 0, zeros({rows, columns}, {.dtype = DType::i64, .device = device}),
                     zeros({rows, columns}, {.device = device}));
    };
    run_on(20, 30);
    auto before = build_counters();
    for (auto [rows, columns] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 64}, {3, 1000}, {5000, 3}}) run_on(rows, columns);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

TEST(Scatter, SelectionByTraitsAlone) {
  DeviceTraits cpu = wide_cpu();
  detail::ScatterProblem problem;
  EXPECT_EQ(detail::select(cpu, problem).entry, "scatter_lines");
  problem.rows = true;
  EXPECT_EQ(detail::select(cpu, problem).entry, "scatter_panels");
  problem.rows = false;
  cpu.fp64 = false, problem.dtype = DType::f64;
  EXPECT_EQ(code_of([&] { detail::select(cpu, problem); }), ErrorCode::not_supported);
}

}}  // namespace clutch::testing
