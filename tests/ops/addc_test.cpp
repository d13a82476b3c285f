// SPDX-License-Identifier: Apache-2.0
#include "cases/addc.hpp"

#include "ops/addc_plan.hpp"
#include "support/fixture.hpp"
#include "support/mutation.hpp"

#include <array>
#include <thread>

namespace clutch::testing { namespace {

using cases::Addc;
using cases::AddcCase;

/// One layout of the operands: sizes of the result, sizes and strides of each operand (output, input, tensor1, tensor2).
struct LayoutCase {
  const char* name;
  Dims sizes[4];
  Dims strides[4];
};

std::vector<LayoutCase> layouts() {
  return {
      {"contiguous", {{5, 7, 33}, {5, 7, 33}, {5, 7, 33}, {5, 7, 33}}, {{}, {}, {}, {}}},
      {"broadcast", {{5, 7, 33}, {5, 1, 33}, {7, 33}, {1}}, {{}, {}, {}, {}}},
      {"rows apart", {{9, 40}, {9, 40}, {9, 40}, {9, 1}}, {{64, 1}, {50, 1}, {40, 1}, {}}},
      {"transposed", {{31, 18}, {31, 18}, {31, 18}, {31, 18}}, {{1, 31}, {18, 1}, {1, 31}, {18, 1}}},
      {"all transposed", {{31, 18}, {31, 18}, {31, 18}, {31, 18}}, {{1, 31}, {1, 31}, {1, 31}, {1, 31}}},
      {"every third", {{500}, {500}, {500}, {500}}, {{3}, {2}, {1}, {5}}},
      {"long rows", {{3, 9001}, {9001}, {3, 1}, {3, 9001}}, {{9010, 1}, {}, {}, {}}},
      {"rank 0", {{}, {}, {}, {}}, {{}, {}, {}, {}}},
      {"rank 6", {{2, 3, 2, 3, 2, 5}, {2, 1, 2, 3, 1, 5}, {3, 2, 3, 2, 5}, {2, 3, 2, 3, 2, 1}}, {{}, {}, {}, {}}},
  };
}

struct Settings {
  Addc op = Addc::quotient;
  AddcOrder order = AddcOrder::fma_of_quotient;
  DType dtype = DType::f32;
  double value = -0.1;
  std::string implementation = {};
};

/// Runs one case on guarded operands and compares with the host model; returns what is wrong.
std::string run_case(const Device& device, const LayoutCase& layout, const Settings& s, const Stream& stream = {}) {
  auto count = [](const Dims& d) { return static_cast<std::size_t>(numel(d)); };
  std::vector<std::uint8_t> raw[3];
  std::vector<Guarded> operands;
  operands.reserve(4);
  operands.emplace_back(device, s.dtype, layout.sizes[0], layout.strides[0]);
  for (std::size_t k = 0; k < 3; ++k) {
    raw[k] = model::make_values(count(layout.sizes[k + 1]), s.dtype, seed() + k);
    operands.emplace_back(device, s.dtype, layout.sizes[k + 1], layout.strides[k + 1], 5 + static_cast<std::int64_t>(k));
    operands.back().set(raw[k]);
  }
  auto f = s.op == Addc::quotient ? addcdiv_out : addcmul_out;
  AddcOptions options{.value = s.value, .order = s.order, .implementation = s.implementation};
  f(operands[0].view(), operands[1].view(), operands[2].view(), operands[3].view(), options, stream);
  if (!s.implementation.empty() && count(layout.sizes[0]) > 0 && !last_plan().starts_with(s.implementation)) return "ran " + last_plan();
  std::vector<std::uint8_t> want(bytes_for(s.dtype, count(layout.sizes[0])));
  for (std::size_t i = 0; i < count(layout.sizes[0]); ++i) {
    auto at = [&](std::size_t k) { return cases::operand_index(i, layout.sizes[0], layout.sizes[k]); };
    AddcCase::reference(s.op, s.order, s.dtype, s.value, want.data(), i, raw[0].data(), at(1), raw[1].data(), at(2), raw[2].data(), at(3));
  }
  return compare_bits(operands[0].get(), want, s.dtype, !device.traits().denormals);
}

LayoutCase flat(std::int64_t n) { return {"flat", {{n}, {n}, {n}, {n}}, {{}, {}, {}, {}}}; }

TEST(Addc, LengthsOrdersAndDtypesMatchTheModelBitForBit) {
  CLUTCH_EACH_DEVICE(device) {
    for (Addc op : {Addc::quotient, Addc::product})
      for (DType dtype : AddcCase::kFloats) {
        if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
        for (AddcOrder order : AddcCase::kOrders)
          for (std::int64_t n : AddcCase::lengths(level())) {
            if (n > 9000 && level() == "smoke" && order != AddcOrder::fma_of_quotient) continue;
            std::string wrong = run_case(device, flat(n), {op, order, dtype});
            ASSERT_EQ(wrong, "") << name(dtype) << " order " << static_cast<int>(order) << " op " << static_cast<int>(op) << " n " << n;
          }
      }
  }
}

TEST(Addc, EveryLayoutRunsOnEveryImplementationThatAccepts) {
  CLUTCH_EACH_DEVICE(device) {
    for (const LayoutCase& layout : layouts())
      for (DType dtype : {DType::f32, DType::bf16}) {
        ASSERT_EQ(run_case(device, layout, {.dtype = dtype}), "") << layout.name;
        int accepted = 0;
        for (const auto& row : detail::addc_implementations()) {
          std::string wrong;
          ErrorCode code = code_of([&] { wrong = run_case(device, layout, {.dtype = dtype, .implementation = std::string(row.name)}); });
          if (code == ErrorCode::not_supported) continue;
          ASSERT_EQ(code, ErrorCode::ok);
          ASSERT_EQ(wrong, "") << layout.name << " forced to " << row.name;
          ++accepted;
        }
        EXPECT_GE(accepted, 1);
      }
  }
}

TEST(Addc, ValueOneAndZeroKeepTheContract) {
  CLUTCH_EACH_DEVICE(device) {
    for (double value : {1.0, 0.0, 1e30, std::numeric_limits<double>::quiet_NaN()})
      for (Addc op : {Addc::quotient, Addc::product}) ASSERT_EQ(run_case(device, flat(1000), {.op = op, .value = value}), "") << value;
  }
}

TEST(Addc, OrdersDifferWhereTheyShould) {
  CLUTCH_EACH_DEVICE(device) {
    // value 2.75 and t1 = t2 = -2.8e38: the product overflows first, the quotient is 1.
    Tensor x = full({1}, 0, {.device = device}), t = full({1}, -2.8e38, {.device = device});
    EXPECT_EQ(addcdiv(x, t, t, {.value = 2.75}).item(), 2.75);
    EXPECT_TRUE(std::isinf(addcdiv(x, t, t, {.value = 2.75, .order = AddcOrder::product_first}).item()));
  }
}

TEST(Addc, IntegersWrap) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : AddcCase::kIntegers)
      for (double value : {3.9, -1.0, 0.5}) {
        std::string wrong = run_case(device, flat(777), {.op = Addc::product, .dtype = dtype, .value = value});
        ASSERT_EQ(wrong, "") << name(dtype) << " value " << value;
      }
  }
}

TEST(Addc, InPlaceAndAliasedInputs) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = arange(1, 1001, 1, {.device = device});
    addcdiv_(x, x, x, {.value = 0.5});
    std::vector<float> got = x.to_host<float>();
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], static_cast<float>(i + 1) + 0.5f);
    Tensor y = full({4, 8}, 2, {.device = device});
    addcmul_(y.mT(), y.mT(), y.mT());
    EXPECT_EQ(y.select(0, 0).select(0, 3).item(), 6);
  }
}

TEST(Addc, PromotesAsPyTorch) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor h = full({3}, 1.0, {.dtype = DType::f16, .device = device}), f = full({3}, 3.0, {.device = device}),
           i = full({3}, 7, {.dtype = DType::i32, .device = device});
    EXPECT_EQ(addcdiv(h, f, f).dtype(), DType::f32);
    EXPECT_EQ(addcdiv(i, h, h).dtype(), DType::f16);
    EXPECT_EQ(addcdiv(i, h, h).to(DType::f32).select(0, 1).item(), 8.0);
    EXPECT_EQ(addcmul(i, i, i).dtype(), DType::i32);
    Tensor b = full({3}, 1.0, {.dtype = DType::bf16, .device = device});
    EXPECT_EQ(addcdiv(h, b, b).dtype(), DType::f32);
    if (!skip_without(device, "fp64", device.traits().fp64)) {
      Tensor zero_dim = full({}, 2.0, {.dtype = DType::f64, .device = device});
      EXPECT_EQ(addcdiv(f, f, zero_dim).dtype(), DType::f32);
      EXPECT_EQ(addcdiv(f, f, zero_dim).select(0, 0).item(), 4.5);
      Tensor wide = full({3}, 2.0, {.dtype = DType::f64, .device = device});
      EXPECT_EQ(addcdiv(f, f, wide).dtype(), DType::f64);
    }
    Tensor out = empty({3}, {.dtype = DType::f16, .device = device});
    addcdiv_out(out, f, f, f, {.value = 2});
    EXPECT_EQ(out.select(0, 2).item(), 5.0);
  }
}

TEST(Addc, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    auto make = [&](const Dims& sizes, DType dtype = DType::f32) { return full(sizes, 1, {.dtype = dtype, .device = device}); };
    Tensor a = make({3, 4});
    EXPECT_EQ(code_of([&] { addcdiv(a, make({5}), a); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { addcdiv_(make({3, 1}), a, a); }), ErrorCode::invalid_shape);
    EXPECT_NE(message_of([&] { addcdiv_(make({3, 1}), a, a); }).find("must have the broadcast shape (3, 4), got (3, 1)"), std::string::npos);
    EXPECT_EQ(code_of([&] { addcdiv(a, make({4}, DType::i32), make({4}, DType::boolean)); }), ErrorCode::invalid_dtype);
    EXPECT_NE(message_of([&] { addcdiv(a, make({4}, DType::i32), make({4}, DType::i8)); }).find("integer division is not offered"), std::string::npos);
    EXPECT_EQ(code_of([&] {
                Tensor t = make({4}, DType::boolean);
                addcmul(t, t, t);
              }),
              ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] {
                Tensor t = make({4}, DType::c64);
                addcmul(t, t, t);
              }),
              ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] {
                Tensor t = make({4}, DType::f8e5m2);
                addcmul(t, t, t);
              }),
              ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { addcdiv_out(make({3, 4}, DType::i32), a, a, a); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { addcdiv(Tensor(), a, a); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { addcdiv(a, a, a, {.implementation = "addc_fastest"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                addcdiv(a.mT(), a.mT(), a.slice(0, 0, 1).expand({4, 4}).slice(1, 0, 3), {.implementation = "addc_contiguous"});
              }),
              ErrorCode::not_supported);
    Tensor line = make({100});
    EXPECT_EQ(code_of([&] { addcdiv_out(line.slice(0, 1, 100), line.slice(0, 0, 99), make({99}), make({99})); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { addcdiv_out(make({1}).expand({5}), make({5}), make({5}), make({5})); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { addcdiv_out(line.slice(0, 0, 100, 2), line.slice(0, 1, 100, 2), make({50}), make({50})); }), ErrorCode::ok);
    for (const Device& other : test_devices())
      if (!(other == device)) {
        EXPECT_EQ(code_of([&] { addcdiv(a, full({3, 4}, 1, {.device = other}), a); }), ErrorCode::device_mismatch);
      }
  }
}

TEST(Addc, ShapesOfAClassBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    auto run = [&](std::int64_t n) {
      Tensor t = full({n}, 2, {.device = device});
      addcdiv(t, t, t);
    };
    run(100);
    auto before = build_counters();
    for (std::int64_t n : {1, 7, 4096, 100000}) run(n);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

TEST(Addc, TwoThreadsGetTheirOwnResults) {
  CLUTCH_EACH_DEVICE(device) {
    std::array<std::string, 4> wrong;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        Stream stream(device);
        StreamGuard guard(stream);
        for (int i = 0; i < 20 && wrong[t].empty(); ++i)
          wrong[t] = run_case(device, flat(3000 + static_cast<std::int64_t>(t)), {.value = static_cast<double>(t) + 0.5});
      });
    for (auto& thread : threads) thread.join();
    for (const auto& w : wrong) EXPECT_EQ(w, "");
  }
}

TEST(Addc, SelectionByTraitsAlone) {
  DeviceTraits cpu = wide_cpu();
  detail::AddcProblem problem;
  auto plan = detail::select(cpu, problem);
  EXPECT_EQ(plan.entry, "addc_contiguous");
  EXPECT_EQ(plan.tuning.local, 1u);
  EXPECT_NE(plan.to_string().find("WIDTH=16"), std::string::npos);
  problem.layout = detail::Layout::rows;
  EXPECT_EQ(detail::select(cpu, problem).entry, "addc_rows");
  problem.layout = detail::Layout::strided;
  EXPECT_EQ(detail::select(cpu, problem).entry, "addc_strided");
  problem.wide_index = true;
  EXPECT_NE(detail::select(cpu, problem).to_string().find("IDX=long"), std::string::npos);
  DeviceTraits small{.type = DeviceType::gpu, .max_work_group = 64, .local_bytes = 16384};
  problem = {};
  plan = detail::select(small, problem);
  EXPECT_EQ(plan.tuning.local, 64u);
  EXPECT_NE(plan.to_string().find("DIV_RN=2"), std::string::npos) << "quotient by integers without fp64";
  EXPECT_NE(plan.to_string().find("FMA_RN=2"), std::string::npos) << "and fma likewise";
  problem.dtype = DType::f64;
  EXPECT_EQ(code_of([&] { detail::select(small, problem); }), ErrorCode::not_supported);
}

TEST(Addc, EmulatedRoundingGivesTheSameBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (auto [from, to] : {std::pair{"#define CLUTCH_DIV_RN 0", "#define CLUTCH_DIV_RN 2"}, std::pair{"#define CLUTCH_DIV_RN 0", "#define CLUTCH_DIV_RN 1"},
                            std::pair{"#define CLUTCH_FMA_RN 0", "#define CLUTCH_FMA_RN 1"}, std::pair{"#define CLUTCH_FMA_RN 0", "#define CLUTCH_FMA_RN 2"}}) {
      if (std::string_view(to).ends_with("1") && skip_without(device, "fp64", device.traits().fp64)) continue;
      bool native = std::string_view(from).find("FMA") != std::string_view::npos ? device.traits().fma_exact : device.traits().divide_exact;
      if (!native) continue;  // all its other tests run the emulation
      ForeignContext context(device);
      detail::SourceMutation emulate(from, to);
      // The emulations are scalar: the strided kernel has no vectors.
      Settings s{.implementation = "addc_strided"};
      EXPECT_EQ(context.run([&](const Stream&) { return run_case(device, flat(5000), s); }), "") << to;
      EXPECT_GE(emulate.applied(), 1);
    }
  }
}

}}  // namespace clutch::testing
