// SPDX-License-Identifier: Apache-2.0
#include "cases/segment.hpp"

#include "ops/segment_plan.hpp"
#include "support/differences.hpp"
#include "support/op_runner.hpp"

#include <cmath>

namespace clutch::testing { namespace {

using cases::SegmentCase;

TEST(Segment, ReductionsShapesAndDtypesHaveTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::amin, Reduce::amax, Reduce::prod})
        for (std::int64_t features : {1, 7, 16, 63, 64, 65, 200}) {
          // Programs differ by dtype and reduction, not by shape.
          if (level() == "smoke" && dtype != DType::f32 && reduce != Reduce::sum) continue;
          for (bool is_product : {true, false})
            for (std::string_view entry : {"segment_groups", "segment_rows", "segment_strided"}) {
              if (entry == "segment_groups" && known_bug(device, "loops_end_early")) continue;  // refused
              ASSERT_EQ(
                  run_problem(device, SegmentCase::problem("", entry, dtype, reduce, 23, features, is_product, seed() + static_cast<std::uint64_t>(features))),
                  "")
                  << name(dtype) << " reduction " << static_cast<int>(reduce) << ", " << features << " features, product " << is_product << " " << entry;
            }
        }
    }
  }
}

TEST(Segment, EmptySegmentsAndBadContents) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor data = from_host<float>({1, 2, 3, 4}, device), offsets = from_host<std::int64_t>({0, 0, 3, 4}, device);
    auto with = [&](Reduce r) { return segment_reduce(data, offsets, {.reduce = r}).to_host<float>(); };
    EXPECT_EQ(with(Reduce::sum), (std::vector<float>{0, 6, 4}));
    EXPECT_EQ(with(Reduce::prod), (std::vector<float>{1, 6, 4}));
    EXPECT_EQ(with(Reduce::amax), (std::vector<float>{-INFINITY, 3, 4}));
    EXPECT_EQ(with(Reduce::amin), (std::vector<float>{INFINITY, 1, 4}));
    EXPECT_TRUE(std::isnan(with(Reduce::mean)[0]));
    EXPECT_EQ(with(Reduce::mean)[1], 2);
    Tensor b = full({3, 2}, 2, {.device = device});
    sparse::Csr a{.offsets = from_host<std::int32_t>({0, 0, 2}, device), .columns = from_host<std::int32_t>({0, 2}, device), .width = 3};
    for (Reduce r : {Reduce::sum, Reduce::mean, Reduce::amin, Reduce::amax, Reduce::prod}) {
      std::vector<float> got = sparse::spmm(a, b, {.reduce = r}).to_host<float>();
      EXPECT_EQ(got[0], 0) << "an empty row";
      EXPECT_EQ(got[3], r == Reduce::sum || r == Reduce::prod ? 4 : 2);
    }
    a.columns = from_host<std::int32_t>({0, 3}, device);
    EXPECT_TRUE(std::isnan(sparse::spmm(a, b).to_host<float>()[2])) << "no column 3";
    if (!known_bug(device, "loops_end_early")) {  // else refused
      EXPECT_TRUE(std::isnan(sparse::spmm(a, b, {.implementation = "segment_groups"}).to_host<float>()[2]));
      const sparse::Csr none{.offsets = a.offsets, .columns = a.columns, .width = 0};
      EXPECT_TRUE(std::isnan(sparse::spmm(none, zeros({0, 2}, {.device = device}), {.implementation = "segment_groups"}).to_host<float>()[2]))
          << "no row at all";
    }
    a.columns = from_host<std::int32_t>({0, -1}, device);
    EXPECT_TRUE(std::isnan(sparse::spmm(a, b, {.implementation = "segment_strided"}).to_host<float>()[2]));
    EXPECT_EQ(segment_reduce(data, from_host<std::int64_t>({-5, 2, 1 << 20}, device)).to_host<float>(), (std::vector<float>{3, 7})) << "clamped";
    const float nan = std::nanf("");
    Tensor bad = from_host<float>({1, nan, 3, 4}, device);
    EXPECT_TRUE(std::isnan(segment_reduce(bad, offsets, {.reduce = Reduce::amax}).to_host<float>()[1]));
    EXPECT_EQ(segment_reduce(zeros({0, 3}, {.device = device}), from_host<std::int64_t>({0, 0}, device)).to_host<float>(), (std::vector<float>{0, 0, 0}));
    EXPECT_EQ(segment_reduce(data, from_host<std::int64_t>({0}, device)).numel(), 0);
  }
}

TEST(Segment, BeginsWithAnInitialValue) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor offsets = from_host<std::int64_t>({0, 0, 3, 4}, device);
    for (std::int64_t features : {1, 70, 8})
      for (std::string entry : {"segment_groups", "segment_rows", "segment_strided"}) {
        if (entry == "segment_groups" && known_bug(device, "loops_end_early")) continue;  // refused
        Tensor data = from_host<float>({1, 2, 3, 5}, device).reshape({4, 1}).expand({4, features}).contiguous();
        auto with = [&](Reduce r, double initial) {
          Tensor out = segment_reduce(data, offsets, {.reduce = r, .initial = initial, .implementation = entry});
          EXPECT_EQ(out.slice(1, 0, 1).expand({3, features}).contiguous().to_bytes(), out.to_bytes());
          return out.slice(1, 0, 1).contiguous().to_host<float>();
        };
        EXPECT_EQ(with(Reduce::sum, 10), (std::vector<float>{10, 16, 15}));
        EXPECT_EQ(with(Reduce::mean, 9), (std::vector<float>{9, 5, 14})) << "the initial value is not counted";
        EXPECT_EQ(with(Reduce::prod, -2), (std::vector<float>{-2, -12, -10}));
        EXPECT_EQ(with(Reduce::amax, 4), (std::vector<float>{4, 4, 5}));
        EXPECT_EQ(with(Reduce::amin, 1.5), (std::vector<float>{1.5, 1, 1.5}));
      }
    // Gradients: a product's carries the factor, an extremum that is the initial value's has none.
    Tensor data = from_host<float>({1, 2, 3, 5}, device), ones = full({3}, 1, {.device = device});
    auto gradient = [&](Reduce r, double initial) {
      SegmentOptions options{.reduce = r, .initial = initial};
      return segment_reduce_backward(ones, segment_reduce(data, offsets, options), data, offsets, options).to_host<float>();
    };
    EXPECT_EQ(gradient(Reduce::prod, -2), (std::vector<float>{-12, -6, -4, -2}));
    EXPECT_EQ(gradient(Reduce::amax, 4), (std::vector<float>{0, 0, 0, 1}));
    EXPECT_EQ(gradient(Reduce::sum, 4), (std::vector<float>{1, 1, 1, 1}));
    sparse::Csr a{.offsets = offsets, .columns = from_host<std::int64_t>({0, 1, 2, 3}, device), .width = 4};
    EXPECT_EQ(code_of([&] { sparse::spmm(a, data.reshape({4, 1}), {.reduce = Reduce::any}); }), ErrorCode::invalid_argument);
  }
}

TEST(Segment, LongSegmentsAreWholeOrNaN) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor ones = full({70000}, 1, {.device = device}), offsets = from_host<std::int64_t>({0, 3, 70000}, device);
    for (std::string entry : {"segment_groups", "segment_rows", "segment_strided"}) {
      if (entry == "segment_groups" && known_bug(device, "loops_end_early")) continue;  // refused
      std::vector<float> got = segment_reduce(ones, offsets, {.implementation = entry}).to_host<float>();
      EXPECT_EQ(got[0], 3);
      if (known_bug(device, "loops_end_early"))
        EXPECT_TRUE(std::isnan(got[1]));
      else
        EXPECT_EQ(got[1], 69997);
    }
  }
}

TEST(Segment, TrailingDimensionsOfAnyStrides) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = randn({6, 4, 5}, {.device = device, .seed = 1}), offsets = from_host<std::int32_t>({0, 2, 6}, device);
    std::vector<std::uint8_t> want = segment_reduce(x, offsets).to_bytes();
    Tensor transposed = randn({6, 5, 4}, {.device = device, .seed = 2}).transpose(1, 2);
    EXPECT_EQ(segment_reduce(transposed, offsets).to_bytes(), segment_reduce(transposed.contiguous(), offsets).to_bytes());
    Tensor out = zeros({2, 5, 4}, {.device = device}).transpose(1, 2);
    segment_reduce_out(out, x, offsets);
    EXPECT_EQ(out.contiguous().to_bytes(), want);
    EXPECT_EQ(segment_reduce(x, offsets).sizes(), (Dims{2, 4, 5}));
  }
}

TEST(Segment, GradientsAreThoseOfDifferences) {
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<std::int64_t> offsets{0, 3, 3, 7}, columns{0, 3, 1, 2, 2, 0, 3};
    model::Random random(seed());
    auto numbers = [&](std::size_t n) {
      std::vector<double> v;
      while (v.size() < n) v.push_back(random.uniform(-2, 2));
      return v;
    };
    auto tensor = [&](const std::vector<double>& v, const Dims& s) { return from_host(std::vector<float>(v.begin(), v.end()), s, device); };
    std::vector<double> data = numbers(14), b = numbers(8), values = numbers(7), weights = numbers(6);
    data[0] = 0, data[6] = 0, data[8] = 0, b[3] = 0;
    Tensor grad = tensor(weights, {3, 2}), of = from_host(offsets, {4}, device);
    for (Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::amin, Reduce::amax, Reduce::prod}) {
      auto loss = [&](const std::vector<double>& result) {
        double total = 0;
        for (std::size_t k = 0; k < result.size(); ++k)
          if (std::isfinite(result[k])) total += result[k] * weights[k];
        return total;
      };
      Tensor x = tensor(data, {7, 2});
      Tensor got = segment_reduce_backward(grad, segment_reduce(x, of, {.reduce = reduce}), x, of, {.reduce = reduce});
      EXPECT_EQ(compare_gradient([&](const std::vector<double>& v) { return loss(SegmentCase::model<double>(reduce, v, 2, offsets, {}, {}, false)); }, data,
                                 got.to_host<float>()),
                "")
          << "data, reduction " << static_cast<int>(reduce);
      sparse::Csr a{.offsets = of, .columns = from_host(columns, {7}, device), .values = tensor(values, {7}), .width = 4};
      Tensor dense = tensor(b, {4, 2});
      sparse::SpmmGradients made = sparse::spmm_backward(grad, sparse::spmm(a, dense, {.reduce = reduce}), a, dense, {.reduce = reduce});
      EXPECT_EQ(compare_gradient([&](const std::vector<double>& v) { return loss(SegmentCase::model<double>(reduce, b, 2, offsets, columns, v, true)); },
                                 values, made.values.to_host<float>()),
                "")
          << "values, reduction " << static_cast<int>(reduce);
      EXPECT_EQ(compare_gradient([&](const std::vector<double>& v) { return loss(SegmentCase::model<double>(reduce, v, 2, offsets, columns, values, true)); },
                                 b, made.b.to_host<float>()),
                "")
          << "b, reduction " << static_cast<int>(reduce);
    }
    // Ties: shared evenly among a segment's entries, the first's alone in a product.
    Tensor tied = from_host<float>({2, 2, 1}, device), all = from_host<std::int64_t>({0, 3}, device), one = from_host<float>({6}, device);
    EXPECT_EQ(segment_reduce_backward(one, from_host<float>({2}, device), tied, all, {.reduce = Reduce::amax}).to_host<float>(), (std::vector<float>{3, 3, 0}));
    // NaN is the extremum, as torch.segment_reduce has it; where the initial value is, no entry has a part.
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (Reduce reduce : {Reduce::amin, Reduce::amax})
      EXPECT_EQ(
          segment_reduce_backward(one, from_host<float>({nan}, device), from_host<float>({nan, 2, nan}, device), all, {.reduce = reduce}).to_host<float>(),
          (std::vector<float>{3, 0, 3}));
    EXPECT_EQ(segment_reduce_backward(one, from_host<float>({5}, device), tied, all, {.reduce = Reduce::amax, .initial = 5}).to_host<float>(),
              (std::vector<float>{0, 0, 0}));
    sparse::Csr ones{.offsets = all, .columns = from_host<std::int64_t>({0, 1, 2}, device), .width = 3};
    EXPECT_EQ(sparse::spmm_backward(one.reshape({1, 1}), from_host<float>({2}, device).reshape({1, 1}), ones, tied.reshape({3, 1}), {.reduce = Reduce::amax})
                  .b.to_host<float>(),
              (std::vector<float>{6, 0, 0}));
    EXPECT_EQ(code_of([&] { segment_reduce_backward(one, one, tied.reshape({3, 1}), all); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { segment_reduce_backward(one, one, tied, zeros({2}, {.device = device})); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sparse::spmm_backward(one, one, ones, tied.reshape({3, 1})); }), ErrorCode::invalid_shape);
  }
}

TEST(Segment, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = zeros({4, 3}, {.device = device}), offsets = from_host<std::int64_t>({0, 4}, device);
    EXPECT_EQ(code_of([&] { segment_reduce(x, x); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { segment_reduce(x.to(DType::i32), offsets); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { segment_reduce(x, offsets.reshape({1, 2})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { segment_reduce(x, zeros({0}, {.dtype = DType::i64, .device = device})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { segment_reduce(Tensor(), offsets); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { segment_reduce_out(zeros({2, 3}, {.device = device}), x, offsets); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { segment_reduce_out(zeros({1, 3}, {.dtype = DType::f16, .device = device}), x, offsets); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { segment_reduce_out(x.slice(0, 1, 2), x, offsets); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { segment_reduce(x, offsets, {.implementation = "segment_best"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { segment_reduce(x.mT(), offsets, {.implementation = "segment_rows"}); }), ErrorCode::not_supported);
    sparse::Csr a{.offsets = offsets, .columns = zeros({4}, {.dtype = DType::i64, .device = device}), .width = 5};
    EXPECT_EQ(code_of([&] { sparse::spmm(a, x); }), ErrorCode::invalid_shape);
    a.width = 4, a.values = zeros({3}, {.device = device});
    EXPECT_EQ(code_of([&] { sparse::spmm(a, x); }), ErrorCode::invalid_shape);
    a.values = zeros({4}, {.dtype = DType::bf16, .device = device});
    EXPECT_EQ(code_of([&] { sparse::spmm(a, x); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sparse::spmm({.offsets = offsets}, x); }), ErrorCode::invalid_argument);
  }
}

TEST(Segment, ShapesOfAClassBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    auto run_on = [&](std::int64_t rows, std::int64_t features) {
      segment_reduce(full({rows, features}, 1, {.device = device}), from_host<std::int64_t>({0, rows / 2, rows}, device));
    };
    run_on(40, 100);
    auto before = build_counters();
    for (auto [rows, features] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 64}, {3, 1000}, {5000, 3}}) run_on(rows, features);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

/// Bad columns, empty rows, NaN and equal terms, of rows that may and may not be loaded four features at once.
TEST(Segment, GradientsOfProductsByGroupsHaveTheBitsOfItems) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // refused
    const sparse::Csr a{.offsets = from_host<std::int32_t>({0, 3, 3, 4, 11, 12}, device),
                        .columns = from_host<std::int64_t>({2, 2, 0, 5, 1, -1, 3, 3, 4, 0, 6, 7}, device),
                        .values = randn({12}, {.device = device, .seed = seed()}),
                        .width = 6};
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t features : {1, 3, 4, 16, 37, 64, 68}) {
        Tensor b = randn({6, features}, {.device = device, .seed = seed() + 1}).to(dtype);
        fill_(b.slice(0, 3, 4).slice(1, 0, 1), std::nan(""));
        const Tensor grad = randn({5, features}, {.device = device, .seed = seed() + 2}).to(dtype);
        sparse::Csr typed = a;
        typed.values = a.values.to(dtype);
        for (Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::amax, Reduce::amin}) {
          const Tensor result = sparse::spmm(typed, b, {.reduce = reduce});
          auto made = [&](const char* way) {
            const sparse::SpmmGradients g = sparse::spmm_backward(grad, result, typed, b, {.reduce = reduce, .implementation = way});
            std::vector<std::uint8_t> all = g.values.to_bytes(), of_b = g.b.to_bytes();
            all.insert(all.end(), of_b.begin(), of_b.end());
            return all;
          };
          try {
            EXPECT_EQ(made("segment_groups"), made("segment_rows")) << name(dtype) << " " << features << " features, reduction " << static_cast<int>(reduce);
          } catch (const Error& e) {
            if (!skip_without(device, "groups of 128 items", e.code() != ErrorCode::not_supported)) throw;
          }
        }
      }
    }
  }
}

TEST(Segment, SelectionByTraitsAlone) {
  DeviceTraits cpu = wide_cpu();
  detail::SegmentProblem problem;
  EXPECT_EQ(detail::select(cpu, problem).entry, "segment_rows");
  problem.rows = false;
  EXPECT_EQ(detail::select(cpu, problem).entry, "segment_strided");
  EXPECT_NE(message_of([&] { detail::select(cpu, problem, "segment_groups"); }).find("features of a row must have stride 1"), std::string::npos);
  cpu.fp64 = false, problem.dtype = DType::f64;
  EXPECT_EQ(code_of([&] { detail::select(cpu, problem); }), ErrorCode::not_supported);
  // Groups of several items.
  DeviceTraits gpu{.type = DeviceType::gpu, .max_work_group = 1024, .fp64 = true};
  gpu.fma_exact = gpu.divide_exact = gpu.sqrt_exact = true;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const detail::KernelPlan plan = detail::select(gpu, {.dtype = dtype});
    EXPECT_EQ(plan.entry, "segment_groups");
    EXPECT_EQ(plan.tuning.width, 4);
    EXPECT_EQ(plan.tuning.local, 128u);
  }
  EXPECT_EQ(detail::select(gpu, {.rows = false}).entry, "segment_strided");
  gpu.local_bytes = 32 << 10;
  EXPECT_EQ(detail::select(gpu, {.stage = detail::SegmentStage::dots}).entry, "segment_dot_groups");
  EXPECT_EQ(detail::select(gpu, {.stage = detail::SegmentStage::first}).entry, "segment_first_groups");
  EXPECT_EQ(detail::select(wide_cpu(), {.stage = detail::SegmentStage::dots}).entry, "segment_dots");
  gpu.local_bytes = 1 << 10;
  EXPECT_EQ(detail::select(gpu, {.stage = detail::SegmentStage::dots}).entry, "segment_dots");
  gpu.fma_exact = false;
  EXPECT_EQ(detail::select(gpu, detail::SegmentProblem{}).tuning.width, 1) << "rounding is emulated";
  gpu.quirks = detail::kQuirkLoopsEndEarly;
  EXPECT_EQ(detail::select(gpu, detail::SegmentProblem{}).entry, "segment_rows");
  EXPECT_NE(message_of([&] { detail::select(gpu, detail::SegmentProblem{}, "segment_groups"); }).find("loops_end_early"), std::string::npos);
}

}}  // namespace clutch::testing
