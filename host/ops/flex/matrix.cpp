// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/matrix.hpp"

#include <algorithm>
#include <cstdlib>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

bool queries_are_rows(MatrixLayout layout) { return layout == MatrixLayout::mma || layout == MatrixLayout::dpas_8 || layout == MatrixLayout::dpas_16; }
int query_lines(MatrixLayout layout) {
  const int number = static_cast<int>(layout);
  return queries_are_rows(layout) ? MATMUL_FRAGMENT_ROWS(number) : MATMUL_FRAGMENT_COLUMNS(number);
}
int numbers_of_word(const FlexProblem& p) { return p.numbers == MATMUL_NUMBERS_TF32 ? 1 : 2; }
int elements(std::uint8_t parts) { return parts * FLEX_MATRIX_ELEMENTS; }

/// Most elements of values at a time: items of these sub-groups have no registers for more results.
std::int64_t most_values(MatrixLayout layout) { return layout == MatrixLayout::dpas_8 || layout == MatrixLayout::dpas_16 ? 64 : kFlexMatrixMost; }
bool is_backward(const FlexProblem& p) { return p.part == FlexPart::backward || p.part == FlexPart::keys; }

/// The tile before it is halved. Keys change bits, so they depend on the layout and the sizes alone.
FlexMatrixTile largest_tile(const FlexProblem& p) {
  const bool wide = std::max(p.key_parts, p.value_parts) > 2, words = p.numbers == MATMUL_NUMBERS_TF32;
  const int keys = (wide ? 32 : 64) / (words ? 2 : 1);
  switch (p.layout) {
    case MatrixLayout::mma: return {wide || words ? 4 : 8, 1, keys};
    case MatrixLayout::mfma: return {4, wide && words ? 1 : 2, keys};
    case MatrixLayout::dpas_8:
    case MatrixLayout::dpas_16: return {16, 1, 32};
    default: return {8, 1, keys};
  }
}
/// The same of gradients.
FlexMatrixTile largest_back_tile(const FlexProblem& p) {
  const bool wide = p.key_parts > 2, words = p.numbers == MATMUL_NUMBERS_TF32;
  const int others = words ? 16 : 32;
  switch (p.layout) {
    case MatrixLayout::mma: return {(wide ? 4 : 8) / (words ? 2 : 1), 1, others, wide || words ? 1 : 2};
    case MatrixLayout::mfma: return {4, wide || words ? 1 : 2, others, wide && words ? 1 : 2};
    case MatrixLayout::dpas_8:
    case MatrixLayout::dpas_16: return {wide ? 8 : 16, 1, 16, 2};
    default: return {wide ? 4 : 8, 1, others, 2};
  }
}
/// True if a work-item has registers for results of keys and of values at the same time. Operands of wmma's lanes take twice those of the others, so that a
/// score mod needs the rest.
bool has_both_sums(const FlexProblem& p) {
  if (most_values(p.layout) != kFlexMatrixMost || (p.layout == MatrixLayout::wmma && p.score != 0)) return false;
  return p.layout == MatrixLayout::mfma || p.key_parts <= 2;
}

/// Least sub-groups of a tile.
constexpr int kLeastSubGroups = 2;

/// True if offsets inside of a tile have at most 31 bits.
bool is_near(const Tensor& t) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30, kMostRows = 512;
  return (t.sizes()[2] < 2 || std::abs(t.strides()[2]) < kMost / kMostRows) && (t.sizes()[3] < 2 || std::abs(t.strides()[3]) < kMost / kFlexMatrixMost);
}

std::uint8_t parts_of(std::int64_t elements, std::int64_t most = kFlexMatrixMost) {
  return static_cast<std::uint8_t>(blocks_of(std::clamp<std::int64_t>(elements, 1, most), FLEX_MATRIX_ELEMENTS));
}

}  // namespace

std::int64_t FlexMatrixTile::rows(MatrixLayout layout) const { return std::int64_t{sub_groups} * fragments * query_lines(layout); }
std::uint64_t FlexMatrixTile::items(MatrixLayout layout) const {
  return static_cast<std::uint64_t>(sub_groups) * static_cast<std::uint64_t>(MATMUL_SUB_GROUP(static_cast<int>(layout)));
}
std::uint64_t FlexMatrixTile::local_bytes(const FlexProblem& p) const {
  const int of_word = numbers_of_word(p), results = sub_groups * query_lines(p.layout), e = elements(p.key_parts), ev = elements(p.value_parts);
  const int all = static_cast<int>(rows(p.layout)), states = p.part == FlexPart::keys ? others : all;
  const int words =
      is_backward(p) ? FLEX_MATRIX_BACK_WORDS(all, others, e, ev, of_word, steps, states, results) : FLEX_MATRIX_WORDS(all, others, e, ev, of_word, results);
  return 4 * (static_cast<std::uint64_t>(words) + (p.stand_in ? items(p.layout) * MATMUL_MODEL_WORDS : 0));
}

std::int64_t flex_matrix_slices(const FlexProblem& p, std::int64_t e, std::int64_t ev) {
  const std::int64_t length = elements(p.value_parts), of_e = blocks_of(e, length), of_ev = blocks_of(ev, length);
  switch (p.part) {
    case FlexPart::forward: return of_ev;
    case FlexPart::backward: return of_e;
    case FlexPart::keys: return has_both_sums(p) ? 1 : of_ev + of_e;
    default: return 1;
  }
}

FlexMatrixTile flex_matrix_tile(const FlexProblem& p) {
  FlexMatrixTile tile = is_backward(p) ? largest_back_tile(p) : largest_tile(p);
  tile.sub_groups >>= p.halvings;
  if (tile.sub_groups < kLeastSubGroups) tile.sub_groups = 0;
  return tile;
}

void note_matrix_instructions(FlexProblem& p, const Checked& c, const attention::FlexOptions& options, std::initializer_list<const Tensor*> tensors) {
  using linalg::Numerics;
  const bool asked = options.implementation == "flex_matrix";
  if (options.numerics == Numerics::chain && !asked) return;
  const DType dtype = (*tensors.begin())->dtype();
  int kind = 0;
  if (dtype == DType::f16) kind = MATMUL_NUMBERS_F16;
  if (dtype == DType::bf16) kind = MATMUL_NUMBERS_BF16;
  if (dtype == DType::f32 && options.numerics == Numerics::tf32) kind = MATMUL_NUMBERS_TF32;
  if (kind == 0 || std::max(c.e, c.ev) > kFlexMatrixMost || !std::all_of(tensors.begin(), tensors.end(), [](const Tensor* t) { return is_near(*t); })) return;
  const MatrixInstructions found = matrix_instructions(*c.runtime, {.kind = kind, .exchange = true}, asked);
  p.numbers = static_cast<std::uint8_t>(kind), p.layout = found.layout, p.stand_in = found.stand_in;
}

void note_matrix_tiles(FlexProblem& p, const Checked& c) {
  if (p.layout == MatrixLayout::none) return;
  const std::int64_t most = most_values(p.layout);
  p.key_parts = parts_of(is_backward(p) ? std::max(c.e, c.ev) : c.e), p.value_parts = parts_of(is_backward(p) ? std::max(c.e, c.ev) : c.ev, most);
  p.halvings = 0;
  const bool keys = p.part == FlexPart::keys;
  const std::int64_t heads = keys ? (c.shared() ? 1 : c.batch) * (c.heads / c.gqa_factor) : c.batch * c.heads, rows = keys ? c.kv_len : c.q_len;
  const auto units = static_cast<std::int64_t>(c.runtime->traits().compute_units);
  for (;; ++p.halvings) {
    if (heads * blocks_of(rows, flex_matrix_tile(p).rows(p.layout)) >= units) return;
    FlexProblem half = p;
    half.halvings += 1;
    if (flex_matrix_tile(half).sub_groups == 0) return;
  }
}

std::string fits_flex_matrix(const DeviceTraits& traits, const FlexProblem& given) {
  FlexProblem p = given;
  if (p.skip_masked) return "skip_masked must be false, got true";
  if (p.numbers == 0)
    return fmt::format("tensors must be f16, bf16, or f32 with Numerics::tf32, of rows of at most {} elements and of strides of at most 2^20, got {}",
                       kFlexMatrixMost, name(p.dtype));
  if (p.layout == MatrixLayout::none) return "needs matrix instructions for these tensors that were seen to work, the device has none";
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  std::string why;
  for (; flex_matrix_tile(p).sub_groups > 0; ++p.halvings) {
    const FlexMatrixTile tile = flex_matrix_tile(p);
    why = refuses_local_bytes(traits, tile.local_bytes(p));
    if (why.empty()) why = refuses_group_items(traits, tile.items(p.layout));
    if (why.empty()) return refuses_fp64(traits, p.types.has_f64);
  }
  return why;
}

void set_flex_matrix(KernelPlan& plan, const DeviceTraits& traits, const FlexProblem& given) {
  FlexProblem p = given;
  FlexMatrixTile tile = flex_matrix_tile(p);
  while (tile.local_bytes(p) > traits.local_bytes || tile.items(p.layout) > traits.max_work_group) p.halvings += 1, tile = flex_matrix_tile(p);
  plan.tuning.tile = static_cast<std::uint64_t>(tile.rows(p.layout)), plan.tuning.set_items(tile.items(p.layout));
  // A unit of 65536 registers has two groups of 256 work-items, three of 128, or two where words are single numbers, which take more of them.
  if (is_backward(p))
    plan.registers = 255;
  else if (p.layout != MatrixLayout::mma || tile.items(p.layout) > 128)
    plan.registers = 128;
  else if (tile.items(p.layout) == 128)
    plan.registers = numbers_of_word(p) == 1 ? 200 : 168;
  plan.defines.set("CLUTCH_LAYOUT", static_cast<int>(p.layout))
      .set("CLUTCH_NUMBERS", p.numbers)
      .set("CLUTCH_STAND_IN", p.stand_in)
      .set("CLUTCH_E", elements(p.key_parts))
      .set("CLUTCH_EV", elements(p.value_parts))
      .set("CLUTCH_BLOCK_N", tile.others)
      .set("CLUTCH_QUERY_FRAGMENTS", tile.fragments)
      .set("CLUTCH_SUB_GROUPS", tile.sub_groups);
  if (is_backward(p)) plan.defines.set("CLUTCH_STEPS", tile.steps).set("CLUTCH_BOTH_SUMS", has_both_sums(p));
}

}}}  // namespace clutch::v0::detail
