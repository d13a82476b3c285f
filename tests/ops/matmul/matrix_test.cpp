// SPDX-License-Identifier: Apache-2.0
// Products by matrix instructions. On devices without them plain code stands in, which finds operands where the instructions' manuals say that they lie; so
// whole numbers prove each layout of lanes. On a device that has them, CLUTCH_MATRIX_INSTRUCTIONS=on lets the same calls run the instructions.
#include "encode/matrix_instructions.hpp"
#include "ops/matmul/call.hpp"
#include "ops/matmul_plan.hpp"
#include "program/program.hpp"
#include "runtime/runtime.hpp"
#include "support/fixture.hpp"
#include "support/matrix_layouts.hpp"
#include "support/op_runner.hpp"

#include <clutch/clutch.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace clutch::testing { namespace {

using detail::MatrixStandIn;
using linalg::matmul;
using linalg::Numerics;

const linalg::MatmulOptions kForced{.implementation = "matmul_matrix", .numerics = Numerics::tf32};

/// The fraction of f32, f16 or bf16 that instructions keep is whole at these sizes, so that all sums are exact and equal the chain's.
TEST(Matrix, FragmentsLieWhereTheManualsSay) {
  CLUTCH_EACH_DEVICE(device) {
    detail::Runtime& runtime = detail::runtime_for(device);
    for (const MatrixLayout layout : kLayouts) {
      if (device.traits().max_work_group < static_cast<std::uint64_t>(MATMUL_SUB_GROUP(static_cast<int>(layout)))) continue;
      for (int kind = MATMUL_NUMBERS_F16; kind <= MATMUL_NUMBERS_F8; ++kind)
        for (int others = 0; others < (kind >= MATMUL_NUMBERS_BYTES ? 4 : 1); ++others) {
          const bool f8 = kind == MATMUL_NUMBERS_F8, a_other = others / 2 == 1, b_other = others % 2 == 1;
          const detail::MatrixNumbers numbers{kind, !f8 && a_other, !f8 && b_other, f8 && a_other, f8 && b_other};
          if (!detail::multiplies(layout, numbers)) continue;
          // Each is a program.
          if (level() == "smoke" && (kind == MATMUL_NUMBERS_BF16 || others % 3 != 0)) continue;
          EXPECT_TRUE(detail::matrix_instructions_work(runtime, {.layout = layout, .stand_in = true}, numbers)) << name(layout) << " of kind " << kind;
        }
    }
  }
}

/// A lane that took another's words, or gave its results another place, would be noticed: by each layout's own edit.
TEST(Matrix, WrongPlacesAreNoticed) {
  struct Edit {
    MatrixLayout layout;
    std::string_view from, to;
  };
  constexpr std::array kEdits{Edit{MatrixLayout::mma, "TAKE_PAIR(y, 1, lane / 4,", "TAKE_PAIR(y, 1, lane / 8,"},
                              Edit{MatrixLayout::mma, "of_words = is_a ? high : low, row", "of_words = is_a ? low : high, row"},
                              Edit{MatrixLayout::mfma, "return lane / 16 * 4 + r;", "return lane / 16 + r * 4;"},
                              Edit{MatrixLayout::wmma, "return 2 * r + lane / 16;", "return r + lane / 16 * 8;"},
                              Edit{MatrixLayout::wmma_halves, "return lane / 16 * 8 + r;", "return lane / 16 + 2 * r;"},
                              Edit{MatrixLayout::dpas_8, "LINE_PLACE(i, 8 * part + lane)]", "LINE_PLACE(lane, 8 * part + i)]"},
                              Edit{MatrixLayout::dpas_16, "+ lane % 2]", "+ lane / 8 % 2]"}};
  const Device& device = test_devices().front();
  for (const Edit& edit : kEdits) {
    if (device.traits().max_work_group < static_cast<std::uint64_t>(MATMUL_SUB_GROUP(static_cast<int>(edit.layout)))) continue;
    FreshDevice fresh(device);
    detail::SourceMutation mutation(edit.from, edit.to);
    EXPECT_FALSE(detail::matrix_instructions_work(detail::runtime_for(fresh.device()), {.layout = edit.layout, .stand_in = true}, {.kind = MATMUL_NUMBERS_F16}))
        << name(edit.layout);
    EXPECT_EQ(mutation.applied(), 1) << name(edit.layout);
  }
}

/// The same where operands lie across in local memory.
TEST(Matrix, WrongPlacesAcrossAreNoticed) {
  struct Edit {
    MatrixLayout layout;
    std::string_view from, to;
  };
  constexpr std::array kEdits{
      Edit{MatrixLayout::mma, "across_place(8 * of_words + row, mine / 8 + of_lines, tile)", "across_place(8 * of_lines + row, mine / 8 + of_words, tile)"},
      Edit{MatrixLayout::mma, "[lane / 4] | (uint)second", "[lane / 8] | (uint)second"},
      Edit{MatrixLayout::mfma, "+ 2 * w + e, line / 8, tile)", "+ w + 4 * e, line / 8, tile)"},
      Edit{MatrixLayout::mfma, "((count) * (l) + (i))", "((side) * (i) + (l))"}};
  CLUTCH_EACH_DEVICE(device) {
    if (!can_run(device)) continue;
    // As they are, they are right, whichever operand lies so.
    for (const MatrixLayout layout : {MatrixLayout::mma, MatrixLayout::mfma}) {
      const MatrixStandIn stand_in(layout);
      const Tensor a = whole_numbers({64, 96}, DType::bf16, device, 1), b = whole_numbers({96, 128}, DType::bf16, device, 2);
      const Tensor other_a = a.mT().contiguous().mT(), other_b = b.mT().contiguous().mT();
      const auto want = matmul(a, b, {.implementation = "matmul_items"}).to_bytes();
      for (const auto& [x, y] : {std::pair(a, b), std::pair(other_a, b), std::pair(other_a, other_b)})
        EXPECT_EQ(matmul(x, y, kForced).to_bytes(), want) << name(layout);
    }
    for (const Edit& edit : kEdits) {
      FreshDevice fresh(device);
      const Tensor a = whole_numbers({64, 64}, DType::bf16, fresh.device(), 1), b = whole_numbers({64, 64}, DType::bf16, fresh.device(), 2);
      const auto want = matmul(a, b, {.implementation = "matmul_items"}).to_bytes();
      // Only b lies across: how lines are cut along k makes no difference where both do.
      detail::SourceMutation mutation(edit.from, edit.to);
      const MatrixStandIn stand_in(edit.layout);
      EXPECT_NE(matmul(a, b, kForced).to_bytes(), want) << edit.from;
      EXPECT_GT(mutation.applied(), 0) << edit.from;
    }
  }
}

struct Operands {
  DType a, b;
};

/// Sizes around fragments, tiles and blocks, all ways to lie, batches, alpha, beta, an epilogue.
TEST(Matrix, WholeNumbersAreExact) {
  CLUTCH_EACH_DEVICE(device) {
    if (!can_run(device)) continue;
    constexpr std::array kOperands{
        Operands{DType::bf16, DType::bf16},       Operands{DType::f16, DType::f16}, Operands{DType::f32, DType::f32}, Operands{DType::i8, DType::i8},
        Operands{DType::f8e4m3fn, DType::f8e5m2}, Operands{DType::u8, DType::i8},   Operands{DType::i8, DType::u8},   Operands{DType::u8, DType::u8}};
    struct Sizes {
      std::int64_t m, n, k;
    };
    constexpr std::array kSizes{Sizes{70, 130, 67}, Sizes{64, 64, 64}, Sizes{1, 5, 3}, Sizes{129, 65, 32}, Sizes{33, 200, 129}};
    int turn = 0;
    for (const MatrixLayout layout : kLayouts) {
      const MatrixStandIn stand_in(layout);
      for (const Operands& of : kOperands) {
        // Each pair of dtypes and ways to lie is a program. How lines are loaded does not depend on the layout.
        const bool some = level() == "smoke", both_ways = !some || of.a == DType::bf16;
        if (some && (of.a != of.b || of.a == DType::f16 || of.a == DType::u8 || (layout != MatrixLayout::mma && (layout != MatrixLayout::mfma || both_ways))))
          continue;
        const bool bytes = of.a == DType::i8 || of.a == DType::u8;
        const int kind = of.a == DType::f32 ? MATMUL_NUMBERS_TF32 : bytes ? MATMUL_NUMBERS_BYTES : MATMUL_NUMBERS_F16;
        if (!detail::multiplies(layout, {.kind = kind, .a_unsigned = of.a == DType::u8, .b_unsigned = of.b == DType::u8})) continue;
        for (const Sizes& s : kSizes) {
          ++turn;
          const bool a_transposed = both_ways && turn % 2 == 0, b_transposed = some ? a_transposed : turn % 4 < 2;
          Tensor a = whole_numbers(a_transposed ? Dims{2, s.k, s.m} : Dims{2, s.m, s.k}, of.a, device, 1);
          Tensor b = whole_numbers(b_transposed ? Dims{s.n, s.k} : Dims{s.k, s.n}, of.b, device, 2);
          if (a_transposed) a = a.mT();
          if (b_transposed) b = b.mT();
          const auto where = [&] {
            return fmt::format("{} {} {}: {} {} {}{}{}", name(layout), name(of.a), name(of.b), s.m, s.n, s.k, a_transposed, b_transposed);
          };
          const Tensor got = matmul(a, b, kForced);
          EXPECT_EQ(got.to_bytes(), matmul(a, b, {.implementation = "matmul_items"}).to_bytes()) << where();
          if (s.m != 70 || of.a == DType::i8 || of.a == DType::u8) continue;
          const Tensor before = whole_numbers({2, s.m, s.n}, got.dtype(), device, 3);
          Tensor out = before.clone(), want = before.clone();
          linalg::matmul_out(out, a, b, {.alpha = 0.5, .beta = 2, .implementation = "matmul_matrix", .numerics = Numerics::tf32});
          linalg::matmul_out(want, a, b, {.alpha = 0.5, .beta = 2, .implementation = "matmul_items"});
          EXPECT_EQ(out.to_bytes(), want.to_bytes()) << where();
        }
      }
    }
  }
}

/// f8 by instructions of their own: whole numbers, of which sums need few bits, subnormal ones, zeros with a sign, and NaN.
TEST(Matrix, EightBitNumbersAreExact) {
  CLUTCH_EACH_DEVICE(device) {
    if (!can_run(device)) continue;
    const linalg::MatmulOptions f8{.dtype = DType::f32, .implementation = "matmul_matrix", .numerics = Numerics::f8},
        items{.dtype = DType::f32, .implementation = "matmul_items"};
    int turn = 0;
    for (const MatrixLayout layout : {MatrixLayout::mma, MatrixLayout::mfma, MatrixLayout::wmma_halves})
      for (const DType of_a : {DType::f8e4m3fn, DType::f8e5m2})
        for (const DType of_b : {DType::f8e4m3fn, DType::f8e5m2}) {
          if (!detail::multiplies(layout, {.kind = MATMUL_NUMBERS_F8, .a_e5m2 = of_a == DType::f8e5m2, .b_e5m2 = of_b == DType::f8e5m2})) continue;
          ++turn;
          if (level() == "smoke" && turn % 3 != 1 && layout != MatrixLayout::mfma) continue;
          const MatrixStandIn stand_in(layout);
          // Sizes of whole blocks and of ends, lines that lie along k and that do not.
          for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{64, 64, 128}, std::array<std::int64_t, 3>{70, 67, 150}}) {
            const auto where = [&, m = m] { return fmt::format("{} {} {} {}", name(layout), name(of_a), name(of_b), m); };
            const Tensor a = whole_numbers({m, k}, of_a, device, 1),
                         b = turn % 2 ? whole_numbers({k, n}, of_b, device, 2) : whole_numbers({n, k}, of_b, device, 2).mT();
            EXPECT_EQ(matmul(a, b, f8).to_bytes(), matmul(a, b, items).to_bytes()) << where();
            // Subnormal numbers, and zeros of both signs.
            const Tensor small = mul(whole_numbers({m, k}, DType::f32, device, 3), of_a == DType::f8e4m3fn ? 0x1p-9 : 0x1p-16).to(of_a);
            const Tensor zero = mul(whole_numbers({m, k}, DType::f32, device, 4), 0.0).to(of_a);
            for (const Tensor& x : {small, zero}) EXPECT_EQ(matmul(x, b, f8).to_bytes(), matmul(x, b, items).to_bytes()) << where();
            // NaN of both signs reach their rows and columns alone.
            Tensor with = a.clone(), other = b.clone();
            fill_(with.slice(0, 5, 6).slice(1, k - 1, k), std::numeric_limits<double>::quiet_NaN());
            fill_(other.slice(0, 2, 3).slice(1, 7, 8), -std::numeric_limits<double>::quiet_NaN());
            const std::vector<float> got = matmul(with, other, f8).to_host<float>(), want = matmul(with, other, items).to_host<float>();
            for (std::size_t i = 0; i < got.size(); ++i) {
              const bool is_nan = std::isnan(want[i]);
              EXPECT_EQ(is_nan, static_cast<std::int64_t>(i) / n == 5 || static_cast<std::int64_t>(i) % n == 7) << where();
              ASSERT_TRUE(is_nan ? std::isnan(got[i]) : got[i] == want[i]) << where() << " " << i << " " << got[i] << " " << want[i];
            }
          }
        }
    // What is particular to them is noticed.
    struct Edit {
      MatrixLayout layout;
      std::string_view from, to;
    };
    for (const Edit& edit : {Edit{MatrixLayout::mfma, "(4 * (sum))", "(2 * (sum))"}, Edit{MatrixLayout::mfma, "(no_zero | 0x7f7f7f7f)", "0xffffffff"},
                             Edit{MatrixLayout::mma, "(int)max(exponent, 1u)", "(int)exponent"}}) {
      FreshDevice fresh(device);
      const Tensor ones = full({8, 64}, 0x1p-9, {.dtype = DType::f8e4m3fn, .device = fresh.device()});
      const Tensor a = edit.to == "0xffffffff" ? full({8, 64}, -0.0, {.dtype = DType::f8e4m3fn, .device = fresh.device()}) : ones;
      const auto want = matmul(a, ones.mT(), items).to_bytes();
      detail::SourceMutation mutation(edit.from, edit.to);
      const MatrixStandIn stand_in(edit.layout);
      EXPECT_NE(matmul(a, ones.mT(), f8).to_bytes(), want) << edit.from;
      EXPECT_GT(mutation.applied(), 0) << edit.from;
    }
  }
}

/// Numbers of all sizes stay within the bound of the contract, on the device's own instructions where it has them; infinite and NaN ones reach their rows and
/// columns alone, and nothing behind the end of k, or of a matrix, reaches a result.
TEST(Matrix, RandomNumbersKeepTheBound) {
  CLUTCH_EACH_DEVICE(device) {
    if (!can_run(device)) continue;
    const bool own = detail::matrix_instructions(detail::runtime_for(device), {.kind = MATMUL_NUMBERS_BF16}, true).layout != MatrixLayout::none;
    std::optional<MatrixStandIn> stand_in;
    if (!own) stand_in.emplace(MatrixLayout::mma);
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      const std::int64_t m = 70, n = 67, k = 200;
      // Memory around the operands is NaN. Rows of 16 bytes times a whole number, at an address that is one and at one that is not.
      for (const std::int64_t before : {8, 3}) {
        Tensor memory = full({m + 1, k + 24}, std::numeric_limits<double>::quiet_NaN(), {.dtype = dtype, .device = device});
        Tensor a = memory.slice(1, before, before + k).slice(0, 0, m), b = randn({k, n}, {.dtype = dtype, .device = device, .seed = 4});
        copy_(a, randn({m, k}, {.dtype = dtype, .device = device, .seed = 3}));
        const Tensor got = matmul(a, b, {.dtype = DType::f32, .implementation = "matmul_matrix", .numerics = Numerics::tf32});
        auto wide = [](const Tensor& t) { return t.to(DType::f32).contiguous().to_host<float>(); };
        const std::vector<float> x = wide(a), y = wide(b), z = wide(got);
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            double exact = 0, size = 0;
            for (std::int64_t l = 0; l < k; ++l) {
              const double product = double{x[static_cast<std::size_t>(i * k + l)]} * double{y[static_cast<std::size_t>(l * n + j)]};
              exact += product, size += std::fabs(product);
            }
            const double bound = (2 * static_cast<double>(k + 16) * 0x1p-23 + (dtype == DType::f32 ? 0x1p-10 : 0)) * size;
            ASSERT_LE(std::fabs(z[static_cast<std::size_t>(i * n + j)] - exact), bound) << name(dtype) << " " << i << " " << j << " at " << before;
          }
      }
      Tensor a = full({m, k}, 1, {.dtype = dtype, .device = device}), b = full({k, n}, 1, {.dtype = dtype, .device = device});
      fill_(a.slice(0, 5, 6).slice(1, 150, 151), std::numeric_limits<double>::infinity());
      fill_(b.slice(0, 199, 200).slice(1, 66, 67), std::numeric_limits<double>::quiet_NaN());
      const std::vector<float> z = matmul(a, b, {.dtype = DType::f32, .implementation = "matmul_matrix", .numerics = Numerics::tf32}).to_host<float>();
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const float is = z[static_cast<std::size_t>(i * n + j)];
          if (j == 66)
            EXPECT_TRUE(std::isnan(is)) << i;
          else
            EXPECT_EQ(is, i == 5 ? std::numeric_limits<float>::infinity() : static_cast<float>(k)) << i << " " << j;
        }
    }
  }
}

TEST(Matrix, FarStridesAndEmptySums) {
  CLUTCH_EACH_DEVICE(device) {
    if (!can_run(device)) continue;
    const MatrixStandIn stand_in(MatrixLayout::mma);
    constexpr std::int64_t kFar = (std::int64_t{1} << 24) + 8;
    const Tensor memory = whole_numbers({kFar + 100}, DType::bf16, device, 1), b = whole_numbers({67, 5}, DType::bf16, device, 2);
    const Tensor a = memory.as_strided({2, 67}, {kFar, 1}, 8);
    EXPECT_EQ(matmul(a, b, kForced).to_bytes(), matmul(a.contiguous(), b, {.implementation = "matmul_items"}).to_bytes());
    const Tensor none = matmul(empty({3, 0}, {.dtype = DType::bf16, .device = device}), empty({0, 4}, {.dtype = DType::bf16, .device = device}), kForced);
    EXPECT_EQ(none.to_bytes(), zeros({3, 4}, {.dtype = DType::bf16, .device = device}).to_bytes());
    EXPECT_EQ(matmul(empty({0, 3}, {.dtype = DType::bf16, .device = device}), empty({3, 4}, {.dtype = DType::bf16, .device = device}), kForced).numel(), 0);
  }
}

/// Numerics is a permission: without instructions the bits are the chain's, and naming the implementation is an Error.
TEST(Matrix, DevicesWithoutInstructionsMultiplyInChains) {
  CLUTCH_EACH_DEVICE(device) {
    if (detail::matrix_instructions(detail::runtime_for(device), {.kind = MATMUL_NUMBERS_BF16}, true).layout != MatrixLayout::none) continue;
    const Tensor a = randn({70, 100}, {.dtype = DType::bf16, .device = device}), b = randn({100, 66}, {.dtype = DType::bf16, .device = device});
    EXPECT_EQ(matmul(a, b, {.numerics = Numerics::blocks}).to_bytes(), matmul(a, b).to_bytes());
    EXPECT_EQ(linalg::linear(a, b.mT(), {}, {.numerics = Numerics::blocks}).to_bytes(), matmul(a, b).to_bytes());
    EXPECT_EQ(code_of([&] { matmul(a, b, kForced); }), ErrorCode::not_supported);
    EXPECT_EQ(code_of([&] { matmul(a.to(DType::f64), b.to(DType::f64), kForced); }), ErrorCode::not_supported);
    auto same = [](const std::vector<Tensor>& x, const std::vector<Tensor>& y) {
      for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i].to_bytes(), y[i].to_bytes()) << i;
    };
    const Tensor grad = randn({70, 66}, {.dtype = DType::bf16, .device = device}), bias = randn({66}, {.dtype = DType::bf16, .device = device});
    const linalg::MatmulGradients of = linalg::matmul_backward(grad, a, b), allowed = linalg::matmul_backward(grad, a, b, {.numerics = Numerics::blocks});
    same({of.a, of.b}, {allowed.a, allowed.b});
    const linalg::LinearOptions relu{.activation = nn::Activation::relu}, by_blocks{.activation = nn::Activation::relu, .numerics = Numerics::blocks};
    const linalg::LinearGradients layer = linalg::linear_backward(grad, a, b.mT(), bias, relu);
    const linalg::LinearGradients layer_by_blocks = linalg::linear_backward(grad, a, b.mT(), bias, by_blocks);
    same({layer.x, layer.weight, layer.bias}, {layer_by_blocks.x, layer_by_blocks.weight, layer_by_blocks.bias});
    // Panels are no matrix as instructions read them; where a PackedMatrix keeps it as it is, they read it.
    const linalg::PackedMatrix packed(b);
    const bool in_panels = packed.state()->panels.defined();
    matmul(a, packed, {.numerics = Numerics::blocks});
    EXPECT_EQ(last_plan().find("# numerics chain: matrix instructions read no PackedMatrix in panels") != std::string::npos, in_panels) << last_plan();
    if (!in_panels || !can_run(device)) continue;
    const MatrixStandIn stand_in(MatrixLayout::mma);
    EXPECT_EQ(matmul(a, packed, {.numerics = Numerics::blocks}).to_bytes(), matmul(a, b).to_bytes());
    EXPECT_EQ(code_of([&] { matmul(a, packed, kForced); }), ErrorCode::not_supported);
  }
}

}}  // namespace clutch::testing
