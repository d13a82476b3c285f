// SPDX-License-Identifier: Apache-2.0
// Attention by matrix instructions. On devices without them plain code stands in, which finds operands where the instructions' manuals say that they lie; so
// whole numbers prove each layout of lanes. On a device that has them, CLUTCH_MATRIX_INSTRUCTIONS=on lets the same calls run the instructions.
#include "ops/flex/matrix.hpp"
#include "ops/flex/matrix_calls.hpp"
#include "program/program.hpp"
#include "runtime/runtime.hpp"
#include "support/op_runner.hpp"

#include <array>

namespace clutch::testing { namespace {

using detail::MatrixStandIn;
using linalg::Numerics;

TEST(FlexMatrix, LanesExchangeAndRound) {
  CLUTCH_EACH_DEVICE(device) {
    for (const MatrixLayout layout : kLayouts) {
      if (device.traits().max_work_group < static_cast<std::uint64_t>(MATMUL_SUB_GROUP(static_cast<int>(layout)))) continue;
      for (int kind = MATMUL_NUMBERS_F16; kind <= MATMUL_NUMBERS_TF32; ++kind) {
        if (!detail::multiplies(layout, {.kind = kind})) continue;
        if (level() == "smoke" && kind != 1 + static_cast<int>(layout) % 2) continue;  // each is a program
        EXPECT_TRUE(detail::lanes_exchange(detail::runtime_for(device), {.layout = layout, .stand_in = true}, {.kind = kind, .exchange = true}))
            << name(layout) << " of kind " << kind;
      }
    }
  }
}

/// What lanes told each other wrongly, or rounded wrongly, would be noticed.
TEST(FlexMatrix, WrongExchangesAreNoticed) {
  const Device& device = test_devices().front();
  if (!runs_flex_matrix(device)) GTEST_SKIP() << "the device runs no groups of the layouts' sub-groups";
  constexpr std::array<std::array<std::string_view, 2>, 4> kEdits{{{"#define LAST_BIT 2", "#define LAST_BIT 4"},
                                                                   {"other > x ? other : x;", "other < x ? other : x;"},
                                                                   {"return native_exp2(x);", "return native_exp2(x) * 1.00001f;"},
                                                                   {"(low + 0x7fff + (low >> 16 & 1)) >> 16", "(low + 0x8000) >> 16"}}};
  for (const auto& [from, to] : kEdits) {
    if (level() == "smoke" && from != kEdits[0][0]) continue;
    FreshDevice fresh(device);
    detail::SourceMutation mutation(from, to);
    EXPECT_FALSE(detail::lanes_exchange(detail::runtime_for(fresh.device()), {.layout = MatrixLayout::mma, .stand_in = true},
                                        {.kind = MATMUL_NUMBERS_BF16, .exchange = true}))
        << to;
    EXPECT_EQ(mutation.applied(), 1) << to;
  }
}

/// Where a device has sub-groups but no matrix instructions, what lanes tell each other is the device's own all the same, between plain products; wrong lanes
/// would be noticed.
TEST(FlexMatrix, LanesOfSubGroupsExchange) {
  constexpr std::string_view kFrom = "#define EXCHANGE_STANDS_IN CLUTCH_STAND_IN", kTo = "#define EXCHANGE_STANDS_IN 0",
                             kWrong = "#define EXCHANGE_STANDS_IN 0\n#define intel_sub_group_shuffle_xor(x, bit) intel_sub_group_shuffle_xor(x, bit ^ 3)";
  CLUTCH_EACH_DEVICE(device) {
    if (skip_without(device, "shuffles of sub-groups", device.record()->has_extension("cl_intel_subgroups"))) continue;
    for (const MatrixLayout layout : {MatrixLayout::dpas_8, MatrixLayout::dpas_16}) {
      const auto exchange = [&](std::string_view to, int kind) {
        FreshDevice fresh(device);
        detail::SourceMutation mutation(kFrom, to);
        const bool right = detail::lanes_exchange(detail::runtime_for(fresh.device()), {.layout = layout, .stand_in = true}, {.kind = kind, .exchange = true});
        EXPECT_EQ(mutation.applied(), 1) << name(layout);
        return right;
      };
      for (int kind = MATMUL_NUMBERS_F16; kind <= MATMUL_NUMBERS_TF32; ++kind) {
        if (!detail::multiplies(layout, {.kind = kind})) continue;
        EXPECT_TRUE(exchange(kTo, kind)) << name(layout) << " of kind " << kind;
      }
      EXPECT_FALSE(exchange(kWrong, MATMUL_NUMBERS_BF16)) << name(layout);
      FreshDevice fresh(device);
      detail::SourceMutation mutation(kFrom, kTo);
      const MatrixStandIn stand_in(layout);
      const FlexCase::Shape forward{.batch = 1, .heads = 2, .q_len = 40, .kv_len = 75, .e = 19, .ev = 11, .kv_heads = 1};
      EXPECT_EQ(run_once(fresh.device(), FlexCase::problem("", "flex_matrix", DType::bf16, forward, seed(), true, false)), "") << name(layout);
      for (const std::string_view entry : {"flex_matrix_dq", "flex_matrix_dkv"})
        EXPECT_EQ(run_once(fresh.device(), FlexCase::gradient_problem(entry, DType::bf16, forward, 0, seed(), true)), "") << name(layout) << " " << entry;
      EXPECT_GE(mutation.applied(), 3) << name(layout);
    }
  }
}

/// Weights of 0 and 1 and whole values: lengths around tiles, heads that share keys, rows of quads and others, block masks.
TEST(FlexMatrix, WholeNumbersAreExact) {
  CLUTCH_EACH_DEVICE(device) {
    if (!runs_flex_matrix(device)) continue;
    constexpr std::array kShapes{FlexCase::Shape{.batch = 1, .heads = 2, .q_len = 40, .kv_len = 75, .e = 19, .ev = 11, .kv_heads = 1},
                                 FlexCase::Shape{.batch = 2, .heads = 1, .q_len = 33, .kv_len = 129, .e = 64, .ev = 64, .kv_batch = 1},
                                 FlexCase::Shape{.batch = 1, .heads = 1, .q_len = 150, .kv_len = 70, .e = 128, .ev = 72},
                                 FlexCase::Shape{.batch = 1, .heads = 1, .q_len = 17, .kv_len = 40, .e = 40, .ev = 128}};
    int turn = 0;
    for (std::size_t i = 0; i < kShapes.size(); ++i)
      for (const MatrixLayout layout : kLayouts) {
        const MatrixStandIn stand_in(layout);
        for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
          if (dtype == DType::f32 && !detail::multiplies(layout, {.kind = MATMUL_NUMBERS_TF32})) continue;
          // Each is a program. Which lane has what does not depend on the shape.
          ++turn;
          if (level() == "smoke" && (i > 0 || dtype != DType::bf16 || (layout != MatrixLayout::mma && layout != MatrixLayout::wmma))) continue;
          const std::string wrong =
              run_once(device, FlexCase::problem("", "flex_matrix", dtype, kShapes[i], seed() + i, turn % 2 == 0, i == 1 && turn % 4 < 2));
          EXPECT_EQ(wrong, "") << name(layout) << " " << name(dtype) << " shape " << i;
        }
      }
  }
}

struct Bounds {
  std::vector<double> out, lse;
};
/// The contract's, of each result: `sizes` is a call's model of |v| in the place of v.
Bounds bounds_of(const Given& given, DType dtype, const FlexCase::Result& want, const FlexCase::Result& sizes, double scale) {
  const auto keys = static_cast<double>(given.shape.kv_len);
  double values_most = 0;
  for (double x : values(given.v)) values_most = std::max(values_most, std::fabs(x));
  const double d = score_error(given, dtype, scale, want.largest), sums = 4 * (keys + 64) * 0x1p-23;
  Bounds bounds;
  for (std::size_t i = 0; i < want.out.size(); ++i)
    bounds.out.push_back((matrix_unit(dtype) + 2 * d + sums) * sizes.out[i] + (dtype == DType::f16 ? keys * 0x1p-25 * values_most : 0) +
                         stored_unit(dtype, want.out[i]));
  for (double x : want.lse) bounds.lse.push_back(d + sums + 0x1p-22 * std::fabs(x));
  return bounds;
}

/// Random tensors stay within the contract's bound, on the device's own instructions where it has them: masks, mods with captured tensors, dropout, sequences.
TEST(FlexMatrix, RandomNumbersKeepTheBound) {
  const auto by_day = [](DType dtype, const MatrixCall& call) { return dtype == DType::f16 && call.blocks && !call.drops; };
  each_random_matrix_call(by_day, [](const Device&, const Given& given, DType dtype, const MatrixCall& call, const FlexOptions& options) {
    const FlexResult got = flex(given.q, given.k, given.v, options);
    std::vector<double> q = values(given.q), k = values(given.k), v = values(given.v);
    const FlexCase::HostDropout drops = call.host_dropout(given.shape);
    const FlexCase::Result want = FlexCase::model(given.shape, q, k, v, MatrixCall::kScale, call.host_score, call.host_mask, drops);
    for (double& x : v) x = std::fabs(x);
    const FlexCase::Result sizes = FlexCase::model(given.shape, q, k, v, MatrixCall::kScale, call.host_score, call.host_mask, drops);
    const Bounds bounds = bounds_of(given, dtype, want, sizes, MatrixCall::kScale);
    const std::vector<double> out = values(got.out), lse = values(got.lse), top = values(got.max_scores);
    const std::string where = fmt::format("{} of {}", call.name, name(dtype));
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_LE(std::fabs(out[i] - want.out[i]), bounds.out[i]) << where << " at " << i;
    for (std::size_t i = 0; i < lse.size(); ++i) {
      if (std::isinf(want.lse[i])) {
        ASSERT_EQ(lse[i], want.lse[i]) << where << " lse at " << i;
        ASSERT_EQ(top[i], want.top[i]) << where << " max at " << i;
        continue;
      }
      ASSERT_LE(std::fabs(lse[i] - want.lse[i]), bounds.lse[i]) << where << " lse at " << i;
      ASSERT_LE(std::fabs(top[i] - want.top[i]), bounds.lse[i]) << where << " max at " << i;
    }
  });
}

/// A permission: without instructions the bits are those of other calls, and naming the implementation is an Error. So are options that it does not have.
TEST(FlexMatrix, DevicesWithoutInstructionsGoAsBefore) {
  CLUTCH_EACH_DEVICE(device) {
    const Given given({.batch = 1, .heads = 1, .q_len = 20, .kv_len = 30, .e = 8, .ev = 8}, device, DType::bf16);
    auto code = [&](FlexOptions o) {
      o.implementation = "flex_matrix";
      return code_of([&] { flex(given.q, given.k, given.v, o); });
    };
    if (detail::matrix_instructions(detail::runtime_for(device), {.kind = MATMUL_NUMBERS_BF16, .exchange = true}, true).layout == MatrixLayout::none) {
      EXPECT_EQ(flex(given.q, given.k, given.v, {.numerics = Numerics::blocks}).out.to_bytes(), flex(given.q, given.k, given.v).out.to_bytes());
      EXPECT_EQ(code({}), ErrorCode::not_supported);
    }
    if (!runs_flex_matrix(device)) continue;
    const MatrixStandIn stand_in(MatrixLayout::mma);
    EXPECT_EQ(code({.skip_masked = true}), ErrorCode::not_supported);
    const Tensor wide = full({1, 1, 20, 136}, 1, {.dtype = DType::bf16, .device = device}), f32 = wide.to(DType::f32).slice(3, 0, 8);
    EXPECT_EQ(code_of([&] { flex(wide, wide, wide, {.implementation = "flex_matrix"}); }), ErrorCode::not_supported);
    EXPECT_EQ(code_of([&] { flex(f32, f32, f32, {.implementation = "flex_matrix", .numerics = Numerics::blocks}); }), ErrorCode::not_supported);
  }
}

}}  // namespace clutch::testing
