// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/matmul.hpp>

#include "encode/matrix_instructions.hpp"
#include "encode/plan.hpp"
#include "matmul/args.h"

#include <array>

namespace clutch { inline namespace v0 { namespace detail {

/// Most tensors that an epilogue reads in the kernel.
inline constexpr std::size_t kMatmulInputs = 5;

/// How the kernels that work on panels read b.
enum class MatmulPlace : std::uint8_t { packed = MATMUL_B_PACKED, direct = MATMUL_B_DIRECT, inside = MATMUL_B_INSIDE, across = MATMUL_B_ACROSS };

/// Floating-point operations of a batch of products. A complex multiply-add counts as four real ones.
constexpr double matmul_flops(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1, bool complex = false) {
  return (complex ? 8.0 : 2.0) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch);
}

/// Inputs of the selection of matmul; also the key of its cached plans.
struct MatmulProblem {
  std::uint64_t function = 0;   ///< ExprBody::id of the epilogue
  std::int16_t tile = 64;       ///< rows and columns of a tile of matmul_tiles; of matmul_matrix its number among matrix_tiles()
  std::int16_t tile_side = 16;  ///< items along each side of such a tile
  /// sparse_transposed: the rows of the result, not its columns, have stride 1.
  enum class Left : std::uint32_t { dense, sparse, sparse_transposed } left = Left::dense;
  DType a = DType::f32, b = DType::f32, output = DType::f32;
  std::array<DType, kMatmulInputs> inputs{};
  std::uint8_t input_count = 0, position_count = 0;
  enum class Part : std::uint8_t { product, pack, rows } part = Part::product;  ///< rows: packs rows of a into words of bytes
  bool wide = false;                                                            ///< the epilogue has 64-bit values
  bool dots = false;                                                            ///< a trial has shown that the device has dot products of bytes
  MatmulPlace place = MatmulPlace::packed;
  std::uint8_t rows = 6, vectors = 4;         ///< of a register tile
  bool a_along_k = false, b_along_k = false;  ///< tiles: neighbouring elements of a, or of b, lie along k
  bool narrow = false;                        ///< tiles: offsets inside of a tile have at most 31 bits
  bool few_rows = false;                      ///< matmul_few: the few are rows, not columns
  std::uint8_t few_each = 1;                  ///< matmul_few: results of an item, 1, 2 or 4
  std::uint8_t numbers = 0;                   ///< matmul_matrix: what its instructions multiply, MATMUL_NUMBERS_...; 0: they do not multiply these operands
  MatrixLayout layout = MatrixLayout::none;   ///< of the device's instructions for them
  bool stand_in = false;                      ///< tests: plain code in their place
  bool sparse_instruction = false;            ///< matmul_sparse_matrix: they take 2:4 matrices as they are; else these get their zeros back
  /// tiles: neighbours of a, of b and of the result come in quads, strides and sizes being multiples of four
  bool a_quads = false, b_quads = false, out_quads = false;
  bool in_panels = false;  ///< the call allows instructions that cannot read b, since it is a PackedMatrix in panels
  std::uint8_t unused = 0;
  std::int16_t a_depth = 0;  ///< panels: most numbers of a row of a that items convert at a time; 0: a is of the compute type
};

/// Compute type of products: f32 or f64, also for integers and complex numbers.
DType matmul_compute(const MatmulProblem& problem);

/// Vectors of columns of a panel.
inline constexpr std::int64_t kMatmulVectors = 4;
/// Most tiles of an item, so that their sums stay in a core's caches.
inline constexpr std::int64_t kMatmulAccumulatorTiles = 64;
/// Most numbers of a row of a that items convert at a time, and so the longest block along k.
inline constexpr std::int16_t kMatmulDepth = 512;
/// Most elements along k with which items take whole rows of results.
inline constexpr std::int64_t kMatmulShortDepth = 16;
/// Least number of small matrices that are multiplied one in each lane.
inline constexpr std::int64_t kMatmulLanesBatch = 64;
/// Most columns of products of bytes that are computed as rows of the transposed product.
inline constexpr std::int64_t kMatmulFewByteColumns = 16;
/// Most rows of a, one tile, of products that read b across.
inline constexpr std::int64_t kMatmulAcrossRows = 4;
/// Most vectors of a block that items pack into private memory.
inline constexpr std::int64_t kMatmulBlockVectors = 1024;
/// Most numbers of a matrix in one lane.
inline constexpr std::int64_t kMatmulLaneNumbers = MATMUL_LANE_NUMBERS;
/// Tiles of matmul_tiles: rows and columns in local memory, the items of a group along each side, and elements along k. Items of the first have 8 x 8 sums,
/// others 4 x 4.
struct MatmulTile {
  std::int16_t size, side, depth;
  constexpr std::uint64_t items() const { return static_cast<std::uint64_t>(side) * static_cast<std::uint64_t>(side); }
};
inline constexpr std::array<MatmulTile, 3> kMatmulTiles{{{128, 16, 16}, {64, 16, 16}, {32, 8, 16}}};
/// Numbers of padding behind each step along k of a tile of single numbers, if local memory has the capacity for them.
inline constexpr std::int64_t kMatmulTilePad = 4;

/// Tile of matmul_matrix, and the part of it that a sub-group computes.
struct MatrixTile {
  std::int64_t rows, columns, part_rows, part_columns;
  constexpr std::uint64_t items(MatrixLayout layout) const {
    return static_cast<std::uint64_t>(rows / part_rows * (columns / part_columns) * MATMUL_SUB_GROUP(static_cast<int>(layout)));
  }
  std::uint64_t local_bytes(MatrixLayout layout, bool stand_in) const {
    return matmul_matrix_bytes(static_cast<std::uint64_t>(rows + columns), stand_in ? items(layout) : 0);
  }
};
/// Those of a layout, from the largest to the smallest. Parts are as large as registers allow, since what a sub-group reads of local memory serves all of its
/// part.
constexpr std::array<MatrixTile, 3> matrix_tiles(MatrixLayout layout) {
  switch (layout) {
    case MatrixLayout::mma: return {{{256, 128, 64, 64}, {128, 128, 64, 32}, {64, 64, 32, 32}}};
    case MatrixLayout::mfma: return {{{128, 128, 64, 64}, {128, 128, 64, 64}, {64, 64, 32, 32}}};
    case MatrixLayout::dpas_8: return {{{128, 128, 32, 16}, {128, 128, 32, 16}, {64, 64, 16, 8}}};
    case MatrixLayout::dpas_16: return {{{128, 128, 32, 32}, {128, 128, 32, 32}, {64, 64, 16, 16}}};
    default: return {{{128, 128, 64, 32}, {128, 128, 64, 32}, {64, 64, 32, 16}}};
  }
}

/// Work-items of a group of matmul_few.
inline constexpr std::uint64_t kMatmulFewItems = std::uint64_t{MATMUL_FEW} * MATMUL_FEW_LINES;
/// Bytes of local memory that the tiles of both matrices take.
std::uint64_t matmul_tile_bytes(const MatmulProblem& problem, const MatmulTile& tile, std::int64_t pad);
/// Most columns of a product with a 2:4 matrix for matmul_sparse_rows, on devices with vectors of 16 lanes. For matmul_sparse_rows and matmul_sparse_dot
/// `vectors` is 0, and `rows` is the number of columns that they take at a time.
inline constexpr std::int64_t kMatmulFewTokens = 16;
/// Most bytes of the columns that an item of matmul_sparse_dot takes. Adjacent items read the same columns.
inline constexpr std::int64_t kMatmulWordBytes = 1 << 19;
/// Rows of a panel that an item packs.
inline constexpr std::int64_t kMatmulPackRows = 64;

/// Pure function. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const MatmulProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
