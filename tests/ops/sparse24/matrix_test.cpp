// SPDX-License-Identifier: Apache-2.0
// Products with 2:4 matrices by matrix instructions: by those that take such matrices, and by those for dense ones, to which zeros are given back. As in
// tests/ops/matmul/matrix_test.cpp plain code stands in for instructions.
#include "encode/matrix_instructions.hpp"
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
#include <vector>

namespace clutch::testing { namespace {

using detail::MatrixStandIn;
using linalg::Numerics;
using sparse::SemiStructured;

const linalg::MatmulOptions kForced{.implementation = "matmul_sparse_matrix", .numerics = Numerics::tf32};
const linalg::MatmulOptions kReference{.implementation = "matmul_sparse_items"};

Tensor sparse_numbers(const Dims& sizes, DType dtype, const Device& device, std::uint64_t seed) {
  return sparse::prune_2_4(whole_numbers(sizes, dtype, device, seed));
}

TEST(SparseMatrix, FragmentsLieWhereTheManualsSay) {
  CLUTCH_EACH_DEVICE(device) {
    for (const MatrixLayout layout : kLayouts) {
      if (device.traits().max_work_group < static_cast<std::uint64_t>(MATMUL_SUB_GROUP(static_cast<int>(layout)))) continue;
      int tried = 0;
      for (int kind = MATMUL_NUMBERS_F16; kind <= MATMUL_NUMBERS_BYTES; ++kind)
        for (const bool b_unsigned : {false, true}) {
          const detail::MatrixNumbers numbers{.kind = kind, .b_unsigned = b_unsigned, .sparse = true};
          if ((b_unsigned && kind != MATMUL_NUMBERS_BYTES) || !detail::multiplies(layout, numbers)) continue;
          ++tried;
          if (level() == "smoke" && (kind == MATMUL_NUMBERS_BF16 || b_unsigned)) continue;  // each is a program
          EXPECT_TRUE(detail::matrix_instructions_work(detail::runtime_for(device), {.layout = layout, .stand_in = true}, numbers))
              << name(layout) << " of kind " << kind;
        }
      EXPECT_EQ(tried, layout == MatrixLayout::mma || layout == MatrixLayout::wmma_halves ? 4 : layout == MatrixLayout::mfma ? 3 : 0) << name(layout);
    }
  }
}

/// A lane that took other numbers or other places would be noticed.
TEST(SparseMatrix, WrongPlacesAreNoticed) {
  struct Edit {
    MatrixLayout layout;
    int kind;
    std::string_view from, to;
  };
  constexpr std::array kEdits{
      Edit{MatrixLayout::mma, MATMUL_NUMBERS_F16, "lane % 4 + i / 2 * 4)", "lane % 4 * 2 + i / 2)"},
      Edit{MatrixLayout::mma, MATMUL_NUMBERS_F16, "lane / 4 + 8, lane % 2) << 16", "lane / 4, lane % 2) << 16"},
      Edit{MatrixLayout::mma, MATMUL_NUMBERS_BYTES, "lane / 4 + lane % 2 * 8, lane / 2 % 2)", "lane / 4 + lane / 2 % 2 * 8, lane % 2)"},
      Edit{MatrixLayout::mma, MATMUL_NUMBERS_BYTES, "lane % 4 + 4 * i)]", "lane % 4 * 4 + i)]"},
      Edit{MatrixLayout::mfma, MATMUL_NUMBERS_F16, "PLACES_OF(uchar, lane % 16, lane / 16)", "PLACES_OF(uchar, lane % 16, 0)"},
      Edit{MatrixLayout::mfma, MATMUL_NUMBERS_BYTES, "TAKE_FOUR(y, lane % 16, lane / 16)", "TAKE_FOUR(y, lane % 16, lane / 32)"},
      Edit{MatrixLayout::wmma_halves, MATMUL_NUMBERS_F16, "TAKE_FOUR(y + 4, lane % 16, lane / 16 * 2 + 1)", "TAKE_FOUR(y + 4, lane % 16, lane / 16 + 2)"},
      Edit{MatrixLayout::wmma_halves, MATMUL_NUMBERS_BYTES, "PLACES_OF(uint, lane % 16, lane / 16)", "PLACES_OF(uint, lane % 16, lane / 16 ^ 1)"}};
  const Device& device = test_devices().front();
  for (const Edit& edit : kEdits) {
    if (device.traits().max_work_group < static_cast<std::uint64_t>(MATMUL_SUB_GROUP(static_cast<int>(edit.layout)))) continue;
    FreshDevice fresh(device);
    detail::SourceMutation mutation(edit.from, edit.to);
    const detail::MatrixNumbers numbers{.kind = edit.kind, .sparse = true};
    EXPECT_FALSE(detail::matrix_instructions_work(detail::runtime_for(fresh.device()), {.layout = edit.layout, .stand_in = true}, numbers)) << edit.to;
    EXPECT_EQ(mutation.applied(), 1) << edit.from;
  }
}

struct Operands {
  DType a, b;
};

/// Sizes around fragments, tiles, blocks and quads, all ways for b to lie, batches, alpha and beta, the matrix on the right, and an epilogue.
TEST(SparseMatrix, WholeNumbersAreExact) {
  CLUTCH_EACH_DEVICE(device) {
    if (!can_run(device)) continue;
    constexpr std::array kOperands{Operands{DType::bf16, DType::bf16}, Operands{DType::i8, DType::i8},           Operands{DType::f16, DType::f16},
                                   Operands{DType::f32, DType::f32},   Operands{DType::f8e4m3fn, DType::f8e5m2}, Operands{DType::i8, DType::u8}};
    struct Sizes {
      std::int64_t m, n, k;
    };
    // k: of whole blocks, with a last one, with rows whose places end within a byte, and whose last quad is short.
    constexpr std::array kSizes{Sizes{128, 64, 128}, Sizes{70, 130, 67}, Sizes{64, 65, 144}, Sizes{1, 5, 3}, Sizes{65, 40, 100}};
    int turn = 0;
    for (const MatrixLayout layout : kLayouts) {
      const MatrixStandIn stand_in(layout);
      for (const Operands& of : kOperands) {
        // Each pair of dtypes and way to lie is a program.
        const bool some = level() == "smoke", bytes = of.a == DType::i8;
        if (some && (of.a != of.b || of.a == DType::f16 || of.a == DType::f32)) continue;
        if (some && layout != MatrixLayout::mma && (layout != MatrixLayout::wmma || bytes)) continue;
        const int kind = of.a == DType::f32 ? MATMUL_NUMBERS_TF32 : bytes ? MATMUL_NUMBERS_BYTES : MATMUL_NUMBERS_F16;
        if (!detail::multiplies(layout, {.kind = kind, .b_unsigned = of.b == DType::u8})) continue;
        for (const Sizes& s : kSizes) {
          if (some && s.m < 70 && s.k != 144) continue;
          const bool transposed = !some && ++turn % 2 == 0;
          const SemiStructured w = sparse::compress(sparse_numbers({s.m, s.k}, of.a, device, 1));
          Tensor b = whole_numbers(transposed ? Dims{2, s.n, s.k} : Dims{2, s.k, s.n}, of.b, device, 2);
          if (transposed) b = b.mT();
          const auto where = [&] { return fmt::format("{} {} {}: {} {} {} {}", name(layout), name(of.a), name(of.b), s.m, s.n, s.k, transposed); };
          const Tensor got = sparse::matmul(w, b, kForced);
          EXPECT_EQ(got.to_bytes(), sparse::matmul(w, b, kReference).to_bytes()) << where();
          if (s.m != 70 || (some && layout != MatrixLayout::mma)) continue;
          const Tensor before = whole_numbers({2, s.m, s.n}, got.dtype(), device, 3);
          Tensor out = before.clone(), want = before.clone();
          const double alpha = bytes ? 3 : 0.5;
          sparse::matmul_out(out, w, b, {.alpha = alpha, .beta = 2, .implementation = "matmul_sparse_matrix", .numerics = Numerics::tf32});
          sparse::matmul_out(want, w, b, {.alpha = alpha, .beta = 2, .implementation = "matmul_sparse_items"});
          EXPECT_EQ(out.to_bytes(), want.to_bytes()) << where();
          const Tensor bias = whole_numbers({s.m}, DType::f32, device, 4);
          auto layer = [&](const linalg::MatmulOptions& options) {
            return sparse::matmul_transposed(
                       b.mT(), w, [](Expr x, Expr y) { return relu(cast(x, DType::f32) + y); }, {bias}, options)
                .to_bytes();
          };
          EXPECT_EQ(layer(kForced), layer(kReference)) << where();
        }
      }
    }
  }
}

/// Values and places at addresses that allow no wide access, and with memory around them that no result may depend on.
TEST(SparseMatrix, AnyAddressWillDo) {
  CLUTCH_EACH_DEVICE(device) {
    if (!can_run(device)) continue;
    const std::int64_t m = 64, k = 128;
    for (const MatrixLayout layout : {MatrixLayout::mma, MatrixLayout::wmma}) {
      const MatrixStandIn stand_in(layout);
      const SemiStructured w = sparse::compress(sparse_numbers({m, k}, DType::bf16, device, 1));
      const Tensor b = whole_numbers({k, 64}, DType::bf16, device, 2);
      for (const std::int64_t before : {4, 1}) {
        const Tensor numbers = full({m * k / 2 + 8}, std::numeric_limits<double>::quiet_NaN(), {.dtype = DType::bf16, .device = device});
        const Tensor codes = full({m * k / 8 + 8}, 255, {.dtype = DType::u8, .device = device});
        const Tensor values = numbers.as_strided({m, k / 2}, {k / 2, 1}, before), places = codes.as_strided({m, k / 8}, {k / 8, 1}, before);
        copy_(values, w.values()), copy_(places, w.metadata());
        EXPECT_EQ(sparse::matmul(SemiStructured(values, places, k), b, kForced).to_bytes(), sparse::matmul(w, b, kReference).to_bytes()) << before;
      }
    }
  }
}

TEST(SparseMatrix, MatricesThatAreNotSparseGiveNaN) {
  CLUTCH_EACH_DEVICE(device) {
    if (!can_run(device)) continue;
    for (const MatrixLayout layout : {MatrixLayout::mma, MatrixLayout::wmma}) {
      const MatrixStandIn stand_in(layout);
      for (const DType dtype : {DType::bf16, DType::i8}) {
        const SemiStructured w = sparse::compress(full({64, 64}, 1, {.dtype = dtype, .device = device}));
        const Tensor b = full({64, 64}, 1, {.dtype = dtype, .device = device});
        EXPECT_EQ(sparse::matmul(w, b, kForced).to_bytes(), sparse::matmul(w, b, kReference).to_bytes()) << name(layout) << " " << name(dtype);
        if (dtype == DType::bf16) {
          EXPECT_TRUE(std::isnan(sparse::matmul(w, b, kForced).to(DType::f32).to_host<float>()[5]));
        }
      }
    }
  }
}

/// Layers hand the permission on. Without it, or with few columns, products are chains with their bits.
TEST(SparseMatrix, CallsThatAllowThemUseThem) {
  CLUTCH_EACH_DEVICE(device) {
    if (!can_run(device)) continue;
    const SemiStructured w = sparse::compress(sparse::prune_2_4(randn({64, 64}, {.dtype = DType::bf16, .device = device, .seed = 1})));
    const Tensor b = randn({64, 64}, {.dtype = DType::bf16, .device = device, .seed = 2}), few = b.slice(1, 0, 4).contiguous();
    const std::vector<std::uint8_t> chain = sparse::matmul(w, b).to_bytes();
    if (detail::matrix_instructions(detail::runtime_for(device), {.kind = MATMUL_NUMBERS_BF16}, true).layout == MatrixLayout::none) {
      EXPECT_EQ(sparse::matmul(w, b, {.numerics = Numerics::blocks}).to_bytes(), chain);
      EXPECT_EQ(code_of([&] { sparse::matmul(w, b, kForced); }), ErrorCode::not_supported);
    }
    const MatrixStandIn stand_in(MatrixLayout::mma);
    EXPECT_EQ(sparse::matmul(w, b).to_bytes(), chain);
    if (detail::select(device.traits(), detail::MatmulProblem{.left = detail::MatmulProblem::Left::sparse}).entry != "matmul_sparse_tiles") continue;
    auto uses = [&](const auto& call) {
      call();
      return last_plan().starts_with("matmul_sparse_matrix");
    };
    EXPECT_FALSE(uses([&] { sparse::matmul(w, b); }));
    EXPECT_TRUE(uses([&] { sparse::matmul(w, b, {.numerics = Numerics::blocks}); }));
    EXPECT_FALSE(uses([&] { sparse::matmul(w, few, {.numerics = Numerics::blocks}); }));
    EXPECT_TRUE(uses([&] { sparse::linear(b, w, {}, {.activation = nn::Activation::relu, .numerics = Numerics::blocks}); }));
    const Tensor one = full({1, 1}, 1, {.device = device}), f8 = b.to(DType::f8e4m3fn);
    EXPECT_TRUE(uses([&] { sparse::scaled_matmul(sparse::compress(sparse::prune_2_4(f8)), f8, one, one, {.numerics = Numerics::blocks}); }));
    const Tensor f32 = b.to(DType::f32), i8 = full({64, 64}, 1, {.dtype = DType::i8, .device = device});
    const SemiStructured of_f32 = sparse::compress(sparse::prune_2_4(f32));
    EXPECT_FALSE(uses([&] { sparse::matmul(of_f32, f32, {.numerics = Numerics::blocks}); }));
    EXPECT_TRUE(uses([&] { sparse::matmul(of_f32, f32, {.numerics = Numerics::tf32}); }));
    EXPECT_TRUE(uses([&] { sparse::matmul(sparse::compress(sparse::prune_2_4(i8)), i8); }));
  }
}

}}  // namespace clutch::testing
