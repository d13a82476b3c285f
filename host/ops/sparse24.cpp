// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/sparse24.hpp>

#include "encode/args.hpp"
#include "ops/out_form.hpp"
#include "ops/sparse24_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"
#include "sparse24/args.h"

#include <algorithm>
#include <array>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

using sparse::PruneRule;
using sparse::SemiStructured;

// validate ----------------------------------------------------------------------------------------------------------

/// The unsigned type of a number's size, the mask of all bits but the sign, and the largest magnitude that is not NaN.
struct NumberBits {
  const char* type;
  std::uint64_t magnitude, largest;
};
NumberBits bits_of(DType d, std::string_view op) {
  switch (d) {
    case DType::f64: return {"ulong", 0x7fffffffffffffff, 0x7ff0000000000000};
    case DType::f32: return {"uint", 0x7fffffff, 0x7f800000};
    case DType::f16: return {"ushort", 0x7fff, 0x7c00};
    case DType::bf16: return {"ushort", 0x7fff, 0x7f80};
    case DType::f8e4m3fn: return {"uchar", 0x7f, 0x7e};
    case DType::f8e5m2: return {"uchar", 0x7f, 0x7c};
    case DType::i8: return {"uchar", 0xff, 0xff};
    default: throw Error(ErrorCode::invalid_dtype, op, fmt::format("the matrix must be f64, f32, f16, bf16, f8e4m3fn, f8e5m2 or i8, got {}", name(d)));
  }
}

Runtime& check_matrix(const Tensor& w, const char* op) {
  const Tensor* all[] = {&w};
  Runtime& runtime = common_runtime(all, op);
  bits_of(w.dtype(), op);
  if (w.rank() != 2) throw Error(ErrorCode::invalid_shape, op, fmt::format("the matrix must be of rank 2, got shape {}", to_string(w.sizes())));
  return runtime;
}

static_assert(static_cast<int>(PruneRule::groups) == SPARSE24_GROUPS && static_cast<int>(PruneRule::tile_values) == SPARSE24_VALUES &&
              static_cast<int>(PruneRule::tile_magnitudes) == SPARSE24_MAGNITUDES && static_cast<int>(PruneRule::causal1122) == SPARSE24_CAUSAL);

std::uint64_t u(std::int64_t v) { return static_cast<std::uint64_t>(v); }
std::int64_t parts_of(std::int64_t size, std::int64_t part) { return static_cast<std::int64_t>(sparse24_parts(u(size), u(part))); }
std::int64_t quads_of(std::int64_t k) { return static_cast<std::int64_t>(sparse24_row_groups(u(k))); }
/// Quads of a row that an item takes. Few where items share memory transactions, so that adjacent items access adjacent quads.
std::int64_t chunk_of(const DeviceTraits& traits) { return row_tuning(traits).local == 1 ? 512 : 2; }

}  // namespace

// select ------------------------------------------------------------------------------------------------------------

KernelPlan select(const DeviceTraits& traits, const Sparse24Problem& p) {
  constexpr std::array<std::string_view, 7> kEntries{"sparse24_groups", "sparse24_tiles",      "sparse24_compress", "sparse24_decompress",
                                                     "sparse24_pack",   "sparse24_pack_words", "sparse24_cutlass"};
  KernelPlan plan{.stem = "sparse24", .entry = kEntries[static_cast<std::size_t>(p.part)], .tuning = row_tuning(traits)};
  const bool wide = p.dtype == DType::f64;
  if (p.part == Sparse24Part::pack)
    if (std::string why = refuses_fp64(traits, p.computed == DType::f64); !why.empty()) throw Error(ErrorCode::not_supported, "sparse", why);
  set_lanes(plan, traits, wide, 2, true, 4);
  const NumberBits bits = p.part == Sparse24Part::cutlass ? NumberBits{wide ? "uint" : "ushort", 0, 0} : bits_of(p.dtype, "sparse");
  Defines& d = plan.defines;
  d.set_text("T", bits.type)
      .set_text("K", wide ? "long" : "int")
      .set_text("A_NAME", name(p.dtype))
      .set_type("ACC", p.panel_bytes == 0 ? DType::f32 : p.computed);
  d.set_text("CLUTCH_MAGNITUDE", fmt::format("0x{:x}{}", bits.magnitude, wide ? "ul" : ""))
      .set_text("CLUTCH_LARGEST", fmt::format("0x{:x}{}", bits.largest, wide ? "l" : ""));
  d.set("CLUTCH_BYTES", p.part == Sparse24Part::cutlass ? 0 : clutch::bits(p.dtype) / 8).set("CLUTCH_IS_INTEGER", p.dtype == DType::i8);
  d.set("CLUTCH_CHUNK", chunk_of(traits));
  if (wide) d.set("CLUTCH_WIDE", 1);
  if (p.part == Sparse24Part::groups || p.part == Sparse24Part::tiles) d.set("CLUTCH_RULE", static_cast<int>(p.rule)).set("CLUTCH_WRITES_MASK", p.mask);
  if (p.part == Sparse24Part::pack) d.set("CLUTCH_ROWS", p.rows).set("CLUTCH_PANEL_BYTES", p.panel_bytes).set("CLUTCH_PACKS_CODES", p.panel_bytes == 0);
  if (p.part == Sparse24Part::pack_words) d.set("CLUTCH_ROWS", p.rows);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

const BuiltPlan& plan_of(Runtime& runtime, const Sparse24Problem& p) {
  return runtime.plans().find<BuiltPlan>("sparse24", p, "", [&] { return build_plan(runtime, select(runtime.traits(), p)); });
}
std::int64_t chunks_of(std::int64_t k, const Runtime& runtime) { return parts_of(quads_of(k), chunk_of(runtime.traits())); }
/// The arguments for w (m, k).
Sparse24Args args_of(const Tensor& w, bool flag) {
  return {.m = u(w.sizes()[0]), .k = u(w.sizes()[1]), .w_row = w.strides()[0], .w_k = w.strides()[1], .flag = flag, .unused = 0};
}

Tensor pruned(const Tensor& w, PruneRule rule, bool mask, const char* op, const Stream& given) {
  Runtime& runtime = check_matrix(w, op);
  Stream stream = resolve_stream(given, runtime, op);
  Tensor out = empty(w.sizes(), {.dtype = mask ? DType::boolean : w.dtype(), .device = stream.device()}, stream);
  if (out.numel() == 0) return out;
  const bool tiles = rule != PruneRule::groups;
  const BuiltPlan& plan = plan_of(runtime, {.dtype = w.dtype(), .part = tiles ? Sparse24Part::tiles : Sparse24Part::groups, .rule = rule, .mask = mask});
  const std::int64_t m = w.sizes()[0], k = w.sizes()[1];
  Encoder encoder(stream, op);
  encoder.output(out, "out").input(w, "w");
  bind_args(encoder, args_of(w, !tiles && worth_streaming(runtime.traits(), 2 * w.nbytes())));
  encoder.dispatch(plan.kernel, item_geometry(u(tiles ? quads_of(m) * quads_of(k) : m * chunks_of(k, runtime)), plan.tuning.local));
  return out;
}

const SemiStructured::State& state_of(const SemiStructured& s, const char* op) {
  if (s.empty()) throw Error(ErrorCode::invalid_argument, op, "the SemiStructured must be a made one, got an empty one");
  return *s.state();
}

std::int64_t metadata_bytes(std::int64_t k) { return static_cast<std::int64_t>(sparse24_row_metadata(u(quads_of(k)))); }

Tensor minus_one(const Stream& stream) { return full({}, -1, {.dtype = DType::i32, .device = stream.device()}, stream); }

/// Converts words of metadata to or (`back`) from CUTLASS's order.
Tensor reordered(const Tensor& from, const Dims& sizes, DType to, std::int64_t m, std::int64_t columns, bool four_bytes, bool back, const char* op,
                 const Stream& stream) {
  Tensor out = empty(sizes, {.dtype = to, .device = stream.device()}, stream);
  if (out.numel() == 0) return out;
  Runtime& runtime = from.storage()->runtime();
  const BuiltPlan& plan = plan_of(runtime, {.dtype = four_bytes ? DType::f64 : DType::f32, .part = Sparse24Part::cutlass});
  Encoder encoder(stream, op);
  encoder.output(out, "out").input(from, "metadata");
  bind_args(encoder, Sparse24CutlassArgs{.m = u(m), .columns = u(columns), .rows_of_group = four_bytes ? 16u : 32u, .back = back, .unused = 0});
  encoder.dispatch(plan.kernel, item_geometry(u(m * columns), plan.tuning.local));
  return out;
}

/// True if CUTLASS's order for this dtype has sets of 16 rows with words of four bytes, false for 32 rows with words of two. Errors: invalid_dtype,
/// invalid_shape.
bool cutlass_words(DType d, std::int64_t m, std::int64_t k, const char* op) {
  if (d != DType::f16 && d != DType::bf16 && d != DType::i8)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("the dtype must be f16, bf16 or i8 in CUTLASS's order, got {}", name(d)));
  const bool bytes = d == DType::i8;
  if (m % (bytes ? 16 : 32) != 0 || k % (bytes ? 64 : 32) != 0)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("rows of {} must be multiples of {} and columns of {}, got {} x {}", name(d), bytes ? 16 : 32, bytes ? 64 : 32, m, k));
  return bytes;
}

/// Packs for products that read two numbers of each quad.
void pack_numbers(const SemiStructured::State& state, SparsePacking& p, const Stream& stream) {
  const auto& [kind, kept, rows, block, panel_bytes] = p.form;
  const bool codes = kind == SparseForm::Kind::codes;
  const std::int64_t m = state.sizes[0], k = state.sizes[1], tiles = parts_of(m, rows), blocks = parts_of(k, block);
  const std::uint64_t quads = std::max<std::uint64_t>(sparse24_packed_group(u(blocks), 0, u(tiles), u(block / 4)), 1);
  p.numbers = empty({static_cast<std::int64_t>(sparse24_packed_numbers(quads, u(rows)))}, {.dtype = kept, .device = stream.device()}, stream);
  p.places = empty({static_cast<std::int64_t>(sparse24_packed_places(quads, u(rows), codes))}, {.dtype = DType::i32, .device = stream.device()}, stream);
  // Codes are packed in their stored dtype.
  const Tensor values = codes && state.values.dtype() != kept ? state.values.to(kept, {}, stream) : state.values;
  const BuiltPlan& plan = plan_of(state.values.storage()->runtime(), {.dtype = values.dtype(),
                                                                      .part = Sparse24Part::pack,
                                                                      .computed = kept,
                                                                      .rows = static_cast<std::uint8_t>(rows),
                                                                      .panel_bytes = static_cast<std::uint16_t>(panel_bytes)});
  Encoder encoder(stream, "sparse::matmul");
  encoder.output(p.numbers, "numbers").output(p.places, "places").input(values, "values").input(state.metadata, "metadata");
  bind_args(encoder, Sparse24PackArgs{.m = u(m), .k = u(k), .block_groups = u(block / 4)});
  encoder.dispatch(plan.kernel, item_geometry(u(tiles * parts_of(blocks, SPARSE24_PACK_BLOCKS)), plan.tuning.local));
}

/// Packs for products that sum words of bytes.
void pack_words(const SemiStructured::State& state, SparsePacking& p, const Stream& stream) {
  const std::int64_t m = state.sizes[0], k = state.sizes[1], rows = p.form.rows, tiles = parts_of(m, rows);
  const std::uint64_t tile_words = sparse24_dot_words(sparse24_dot_blocks(u(k)), u(rows));
  p.numbers = empty({std::max<std::int64_t>(tiles * static_cast<std::int64_t>(tile_words), 1)}, {.dtype = DType::i32, .device = stream.device()}, stream);
  const BuiltPlan& plan =
      plan_of(state.values.storage()->runtime(), {.dtype = DType::i8, .part = Sparse24Part::pack_words, .rows = static_cast<std::uint8_t>(rows)});
  Encoder encoder(stream, "sparse::matmul");
  encoder.output(p.numbers, "words").input(state.values, "values").input(state.metadata, "metadata");
  bind_args(encoder, Sparse24PackArgs{.m = u(m), .k = u(k), .block_groups = 0});
  encoder.dispatch(plan.kernel, item_geometry(u(tiles), plan.tuning.local));
}

}  // namespace

SparsePacking sparse_packing(const std::shared_ptr<SemiStructured::State>& state, const SparseForm& form, const Stream& stream) {
  std::lock_guard lock(state->mutex);
  auto found = std::find_if(state->packings.begin(), state->packings.end(), [&](const auto& p) { return p.first == form; });
  if (found == state->packings.end()) found = state->packings.insert(found, {form, {}});
  return found->second.get(stream, [&] {
    SparsePacking p{.form = form};
    form.kind == SparseForm::Kind::words ? pack_words(*state, p, stream) : pack_numbers(*state, p, stream);
    return p;
  });
}

}  // namespace detail

namespace sparse {

using detail::quads_of;

Tensor prune_2_4(const Tensor& w, const PruneOptions& options, const Stream& stream) {
  detail::OpName named("sparse::prune_2_4");
  return detail::pruned(w, options.rule, false, "sparse::prune_2_4", stream);
}
void prune_2_4_out(const Tensor& out, const Tensor& w, const PruneOptions& options, const Stream& stream) {
  detail::OpName named("sparse::prune_2_4_out");
  detail::store(out, prune_2_4(w, options, stream), "sparse::prune_2_4", stream);
}
Tensor mask_2_4(const Tensor& w, const PruneOptions& options, const Stream& stream) {
  detail::OpName named("sparse::mask_2_4");
  return detail::pruned(w, options.rule, true, "sparse::mask_2_4", stream);
}
void mask_2_4_out(const Tensor& out, const Tensor& w, const PruneOptions& options, const Stream& stream) {
  detail::OpName named("sparse::mask_2_4_out");
  detail::store(out, mask_2_4(w, options, stream), "sparse::mask_2_4", stream);
}
Tensor apply_mask(const Tensor& w, const Tensor& mask, const Stream& stream) {
  detail::OpName named("sparse::apply_mask");
  if (mask.defined() && mask.dtype() != DType::boolean)
    throw Error(ErrorCode::invalid_dtype, "sparse::apply_mask", fmt::format("the mask must be boolean, got {}", name(mask.dtype())));
  const bool narrow = w.defined() && (w.dtype() == DType::f8e4m3fn || w.dtype() == DType::f8e5m2);
  const Tensor numbers = narrow ? w.to(DType::f32, {}, stream) : w;
  const Tensor kept = map([](Expr x, Expr keep) { return select(keep, x, cast(0.0f, x.dtype())); }, {numbers, mask}, {.dtype = {numbers.dtype()}}, stream);
  return narrow ? kept.to(w.dtype(), {}, stream) : kept;
}
void apply_mask_out(const Tensor& out, const Tensor& w, const Tensor& mask, const Stream& stream) {
  detail::OpName named("sparse::apply_mask_out");
  detail::store(out, apply_mask(w, mask, stream), "sparse::apply_mask", stream);
}

namespace {
/// View of an (m, k) matrix in the order of a bitmask's bytes: (m / 8, k / 8, two rows of tiles, two tiles, two bytes, two rows, four bits).
Tensor by_tiles(const Tensor& mask) {
  const std::int64_t m = mask.sizes()[0], k = mask.sizes()[1];
  return mask.as_strided({m / 8, k / 8, 2, 2, 2, 2, 4}, {8 * k, 8, 4 * k, 4, 2 * k, k, 1});
}
Tensor bits_of_byte(const Stream& stream) { return from_host(std::vector<std::int32_t>{1, 2, 4, 8, 16, 32, 64, 128}, {2, 4}, stream.device(), stream); }
}  // namespace

Tensor to_bitmask(const Tensor& mask, const Stream& given) {
  detail::OpName named("sparse::to_bitmask");
  constexpr const char* kOp = "sparse::to_bitmask";
  const Tensor* all[] = {&mask};
  Stream stream = detail::resolve_stream(given, detail::common_runtime(all, kOp), kOp);
  if (mask.dtype() != DType::boolean) throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("the mask must be boolean, got {}", name(mask.dtype())));
  if (mask.rank() != 2 || mask.sizes()[0] % 8 != 0 || mask.sizes()[1] % 8 != 0)
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("the mask must be of rank 2 and of whole tiles of 8 x 8, got shape {}", to_string(mask.sizes())));
  const Tensor bytes = reduce(
      Reduce::sum, [](Expr kept, Expr bit) { return select(kept, bit, 0); }, {by_tiles(mask.contiguous(stream)), bits_of_byte(stream)}, {.dims = {-2, -1}},
      stream);
  return bytes.to(DType::u8, {}, stream).reshape({mask.sizes()[0] / 8, mask.sizes()[1] / 8, 8});
}
void to_bitmask_out(const Tensor& out, const Tensor& mask, const Stream& stream) {
  detail::OpName named("sparse::to_bitmask_out");
  detail::store(out, to_bitmask(mask, stream), "sparse::to_bitmask", stream);
}
Tensor from_bitmask(const Tensor& bits, const Stream& given) {
  detail::OpName named("sparse::from_bitmask");
  constexpr const char* kOp = "sparse::from_bitmask";
  const Tensor* all[] = {&bits};
  Stream stream = detail::resolve_stream(given, detail::common_runtime(all, kOp), kOp);
  if (bits.dtype() != DType::u8) throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("bits must be u8, got {}", name(bits.dtype())));
  if (bits.rank() != 3 || bits.sizes()[2] != 8)
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("bits must be of rank 3 with 8 as the last size, got {}", to_string(bits.sizes())));
  const std::int64_t m = bits.sizes()[0], k = bits.sizes()[1];
  Tensor mask = empty({8 * m, 8 * k}, {.dtype = DType::boolean, .device = stream.device()}, stream);
  map_out(
      by_tiles(mask), [](Expr byte, Expr bit) { return (cast(byte, DType::i32) & bit) != 0; },
      {bits.contiguous(stream).reshape({m, k, 2, 2, 2, 1, 1}), bits_of_byte(stream)}, {}, stream);
  return mask;
}

void from_bitmask_out(const Tensor& out, const Tensor& bits, const Stream& stream) {
  detail::OpName named("sparse::from_bitmask_out");
  detail::store(out, from_bitmask(bits, stream), "sparse::from_bitmask", stream);
}

SemiStructured compress(const Tensor& w, const CompressOptions& options, const Stream& given) {
  detail::OpName named("sparse::compress");
  constexpr const char* kOp = "sparse::compress";
  detail::Runtime& runtime = detail::check_matrix(w, kOp);
  Stream stream = detail::resolve_stream(given, runtime, kOp);
  const std::int64_t m = w.sizes()[0], k = w.sizes()[1];
  if (m * quads_of(k) >= INT32_MAX)
    throw Error(ErrorCode::not_supported, kOp,
                fmt::format("w must have fewer than {} quads, four numbers along a row each, got {}", INT32_MAX, m * quads_of(k)));
  const TensorOptions of_values{.dtype = w.dtype(), .device = stream.device()}, of_codes{.dtype = DType::u8, .device = stream.device()};
  auto state = std::make_shared<SemiStructured::State>();
  state->sizes = w.sizes();
  state->values = empty({m, 2 * quads_of(k)}, of_values, stream);
  state->metadata = empty({m, detail::metadata_bytes(k)}, of_codes, stream);
  state->info = detail::minus_one(stream);
  if (w.numel() > 0) {
    const detail::BuiltPlan& plan = detail::plan_of(runtime, {.dtype = w.dtype(), .part = detail::Sparse24Part::compress});
    Encoder encoder(stream, kOp);
    encoder.output(state->values, "values").output(state->metadata, "metadata").inout(state->info, "info").input(w, "w");
    detail::bind_args(encoder, detail::args_of(w, options.strict));
    encoder.dispatch(plan.kernel, detail::item_geometry(detail::u(m * detail::chunks_of(k, runtime)), plan.tuning.local));
  }
  return SemiStructured(std::move(state));
}

Tensor is_2_4(const Tensor& w, const Stream& given) {
  detail::OpName named("sparse::is_2_4");
  const SemiStructured s = compress(w, {}, given);
  return map([](Expr first) { return first < 0; }, {s.info()}, {}, given);
}
void is_2_4_out(const Tensor& out, const Tensor& w, const Stream& stream) {
  detail::OpName named("sparse::is_2_4_out");
  detail::store(out, is_2_4(w, stream), "sparse::is_2_4", stream);
}
void require_2_4(const Tensor& w, const Stream& given) {
  detail::OpName named("sparse::require_2_4");
  const SemiStructured s = compress(w, {}, given);
  const std::int32_t first = s.info().to_host<std::int32_t>(given)[0];
  if (first < 0) return;
  const std::int64_t each = quads_of(w.sizes()[1]);
  throw Error(ErrorCode::invalid_argument, "sparse::require_2_4",
              fmt::format("at most two of four numbers must not be zero, got more in row {}, columns {} to {}", first / each, first % each * 4,
                          std::min(first % each * 4 + 3, w.sizes()[1] - 1)));
}

SemiStructured::SemiStructured(const Tensor& values, const Tensor& metadata, std::int64_t k) {
  detail::OpName named("sparse::SemiStructured");
  constexpr const char* kOp = "sparse::SemiStructured";
  detail::check_matrix(values, kOp);
  const Tensor* all[] = {&values, &metadata};
  detail::common_runtime(all, kOp);
  if (metadata.dtype() != DType::u8) throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("metadata must be u8, got {}", name(metadata.dtype())));
  const std::int64_t m = values.sizes()[0];
  if (k < 0 || !(values.sizes() == Dims{m, 2 * quads_of(k)}) || !(metadata.sizes() == Dims{m, detail::metadata_bytes(k)}) || !values.is_contiguous() ||
      !metadata.is_contiguous())
    throw Error(ErrorCode::invalid_shape, kOp,
                fmt::format("values and metadata must be those of k = {}, got {} and {}", k, to_string(values.sizes()), to_string(metadata.sizes())));
  state_ = std::make_shared<State>();
  state_->sizes = {m, k}, state_->values = values, state_->metadata = metadata;
  state_->info = detail::minus_one(detail::resolve_stream({}, values.storage()->runtime(), kOp));
}
const Dims& SemiStructured::sizes() const {
  detail::OpName named("sparse::SemiStructured::sizes");
  return detail::state_of(*this, "sparse::SemiStructured").sizes;
}
DType SemiStructured::dtype() const {
  detail::OpName named("sparse::SemiStructured::dtype");
  return values().dtype();
}
const Tensor& SemiStructured::values() const {
  detail::OpName named("sparse::SemiStructured::values");
  return detail::state_of(*this, "sparse::SemiStructured").values;
}
const Tensor& SemiStructured::metadata() const {
  detail::OpName named("sparse::SemiStructured::metadata");
  return detail::state_of(*this, "sparse::SemiStructured").metadata;
}
const Tensor& SemiStructured::info() const {
  detail::OpName named("sparse::SemiStructured::info");
  return detail::state_of(*this, "sparse::SemiStructured").info;
}
std::uint64_t SemiStructured::nbytes() const {
  detail::OpName named("sparse::SemiStructured::nbytes");
  return values().nbytes() + metadata().nbytes();
}

Tensor decompress(const SemiStructured& s, const Stream& given) {
  detail::OpName named("sparse::decompress");
  constexpr const char* kOp = "sparse::decompress";
  const SemiStructured::State& state = detail::state_of(s, kOp);
  detail::Runtime& runtime = state.values.storage()->runtime();
  Stream stream = detail::resolve_stream(given, runtime, kOp);
  const std::int64_t m = state.sizes[0], k = state.sizes[1];
  Tensor out = empty(state.sizes, {.dtype = state.values.dtype(), .device = stream.device()}, stream);
  if (out.numel() == 0) return out;
  const detail::BuiltPlan& plan = detail::plan_of(runtime, {.dtype = out.dtype(), .part = detail::Sparse24Part::decompress});
  Encoder encoder(stream, kOp);
  encoder.output(out, "out").input(state.values, "values").input(state.metadata, "metadata");
  detail::bind_args(encoder, detail::Sparse24PackArgs{.m = detail::u(m), .k = detail::u(k), .block_groups = 0});
  encoder.dispatch(plan.kernel, detail::item_geometry(detail::u(m * detail::chunks_of(k, runtime)), plan.tuning.local));
  return out;
}

void decompress_out(const Tensor& out, const SemiStructured& s, const Stream& stream) {
  detail::OpName named("sparse::decompress_out");
  detail::store(out, decompress(s, stream), "sparse::decompress", stream);
}

CutlassLayout to_cutlass(const SemiStructured& s, const Stream& given) {
  detail::OpName named("sparse::to_cutlass");
  constexpr const char* kOp = "sparse::to_cutlass";
  const SemiStructured::State& state = detail::state_of(s, kOp);
  const std::int64_t m = state.sizes[0], k = state.sizes[1];
  const bool bytes = detail::cutlass_words(s.dtype(), m, k, kOp);
  Stream stream = detail::resolve_stream(given, state.values.storage()->runtime(), kOp);
  const std::int64_t columns = k / (bytes ? 32 : 16);
  return {state.values, detail::reordered(state.metadata, {m, columns}, bytes ? DType::i32 : DType::i16, m, columns, bytes, false, kOp, stream)};
}
void to_cutlass_out(const CutlassLayout& out, const SemiStructured& s, const Stream& stream) {
  detail::OpName named("sparse::to_cutlass_out");
  const CutlassLayout made = to_cutlass(s, stream);
  const detail::Stored all[] = {{out.values, made.values, "out.values"}, {out.metadata, made.metadata, "out.metadata"}};
  detail::store(all, "sparse::to_cutlass", stream);
}
SemiStructured from_cutlass(const CutlassLayout& layout, const Stream& given) {
  detail::OpName named("sparse::from_cutlass");
  constexpr const char* kOp = "sparse::from_cutlass";
  const Tensor* all[] = {&layout.values, &layout.metadata};
  detail::Runtime& runtime = detail::common_runtime(all, kOp);
  if (layout.values.rank() != 2) throw Error(ErrorCode::invalid_shape, kOp, fmt::format("values must be of rank 2, got {}", to_string(layout.values.sizes())));
  const std::int64_t m = layout.values.sizes()[0], k = 2 * layout.values.sizes()[1];
  const bool bytes = detail::cutlass_words(layout.values.dtype(), m, k, kOp);
  const std::int64_t columns = k / (bytes ? 32 : 16);
  if (layout.metadata.dtype() != (bytes ? DType::i32 : DType::i16) || !(layout.metadata.sizes() == Dims{m, columns}))
    throw Error(ErrorCode::invalid_shape, kOp,
                fmt::format("metadata must be {} of {}, got {} of {}", bytes ? "i32" : "i16", to_string(Dims{m, columns}), name(layout.metadata.dtype()),
                            to_string(layout.metadata.sizes())));
  Stream stream = detail::resolve_stream(given, runtime, kOp);
  Tensor metadata = detail::reordered(layout.metadata.contiguous(stream), {m, k / 8}, DType::u8, m, columns, bytes, true, kOp, stream);
  return SemiStructured(layout.values.contiguous(stream), metadata, k);
}

}  // namespace sparse
}}  // namespace clutch::v0
