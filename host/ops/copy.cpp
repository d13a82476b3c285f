// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>

#include "copy/args.h"
#include "encode/meaning.hpp"
#include "encode/plugin_ops.hpp"
#include "expr/node.hpp"
#include "ops/copy_plan.hpp"
#include "ops/map_plan.hpp"
#include "program/cl_type.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

// validate ----------------------------------------------------------------------------------------------------------

Runtime& validate(const Tensor& to, const Tensor& from, const char* op) {
  std::array<const Tensor*, 2> tensors{&to, &from};
  Runtime& runtime = common_runtime(tensors, op);
  if (!(to.sizes() == from.sizes())) {
    std::array<Dims, 2> shapes{to.sizes(), from.sizes()};
    if (!(broadcast_shapes(shapes, op) == to.sizes()))
      throw Error(ErrorCode::invalid_shape, op, fmt::format("the source must broadcast to {}, got {}", to_string(to.sizes()), to_string(from.sizes())));
  }
  bool packed = is_packed(to.dtype()) || is_packed(from.dtype());
  if (packed && to.dtype() != from.dtype())
    throw Error(ErrorCode::invalid_dtype, op,
                fmt::format("a packed dtype must stay as it is, which {} is, got a cast from {} to {}", name(is_packed(to.dtype()) ? to.dtype() : from.dtype()),
                            name(from.dtype()), name(to.dtype())));
  if (packed && (!to.is_contiguous() || !from.is_contiguous() || !(to.sizes() == from.sizes())))
    throw Error(ErrorCode::invalid_shape, op, fmt::format("tensors of {} must be contiguous and of equal shape to be copied, got others", name(to.dtype())));
  check_no_self_overlap(to, op);
  check_overlap(to, from, op);
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

bool is_f64_kind(DType d) { return d == DType::f64 || d == DType::c128; }

std::string moves(const DeviceTraits&, const CopyProblem& p) {
  return p.from == p.to ? "" : fmt::format("the dtypes must be the same, got {} to {}", name(p.from), name(p.to));
}
std::string transposes(const DeviceTraits& t, const CopyProblem& p) {
  if (!p.transposes) return "the output must be adjacent along one dimension and the source along another one, got other strides";
  if (std::string why = refuses_local_bytes(t, std::uint64_t{COPY_SQUARE} * (COPY_SQUARE + 1) * 16); !why.empty()) return why;
  return moves(t, p);
}
std::string casts(const DeviceTraits& t, const CopyProblem& p) {
  if (p.from == p.to) return fmt::format("the dtypes must differ, got {} for both", name(p.from));
  if (std::string why = refuses_fp64(t, is_f64_kind(p.from) || is_f64_kind(p.to)); !why.empty()) return why;
  return {};
}

constexpr std::array<Implementation<CopyProblem>, 6> kImplementations{{
    {"copy_bytes", [](const DeviceTraits& t, const CopyProblem& p) { return p.layout == Layout::contiguous ? moves(t, p) : needs_contiguous(p.layout); }},
    {"copy_rows", [](const DeviceTraits& t, const CopyProblem& p) { return p.layout == Layout::strided ? std::string(kNeedsRows) : moves(t, p); }},
    {"copy_transposed", transposes},
    {"copy_strided", moves},
    {"copy_cast_contiguous",
     [](const DeviceTraits& t, const CopyProblem& p) { return p.layout == Layout::contiguous ? casts(t, p) : needs_contiguous(p.layout); }},
    {"copy_cast_strided", casts},
}};

DType real_part(DType d) { return d == DType::c64 ? DType::f32 : d == DType::c128 ? DType::f64 : d; }
int compute_kind(DType d) {
  if (d == DType::u64) return COPY_KIND_UNSIGNED;
  return is_f64_kind(d) ? COPY_KIND_F64 : is_integral(d) || kind(d) == DTypeKind::boolean ? COPY_KIND_INTEGER : COPY_KIND_F32;
}
bool has_vectors(DType d) { return d == DType::f32 || d == DType::f16 || d == DType::bf16; }

void set_cast(Defines& d, const CopyProblem& p, bool vectors) {
  DType from = real_part(p.from), to = real_part(p.to);
  d.set_text("S_NAME", name(from)).set_text("D_NAME", name(to));
  d.set("CLUTCH_S_KIND", compute_kind(from)).set("CLUTCH_D_KIND", compute_kind(to));
  d.set("CLUTCH_S_COMPLEX", is_complex(p.from)).set("CLUTCH_D_COMPLEX", is_complex(p.to));
  d.set("CLUTCH_BOOLEAN", p.to == DType::boolean).set("CLUTCH_SATURATE", p.overflow == Overflow::saturate);
  d.set("CLUTCH_D_BYTES", bits(to) / 8);
  d.set("CLUTCH_VECTOR", vectors && has_vectors(p.from) && has_vectors(p.to));
}

}  // namespace

std::span<const Implementation<CopyProblem>> copy_implementations() { return kImplementations; }

bool lengthen_runs(std::int64_t rank, std::int64_t* size, std::int64_t* stride, std::size_t operands) {
  constexpr std::int64_t kLeast = 16;
  // Each cache line is read as often as the short dimension has elements: of more than a few only where all lines stay in a cache.
  constexpr std::int64_t kTimes = 4, kCached = 1 << 16;
  std::int64_t n = 1;
  for (std::int64_t d = 0; d < rank; ++d) n *= size[d];
  if (size[0] > kTimes && n > kCached) return false;
  const auto* longer = std::find_if(size, size + rank, [](std::int64_t of_one) { return of_one >= kLeast; });
  const auto d = longer - size;
  if (d == 0 || d == rank) return false;
  std::swap(size[0], size[d]);
  for (std::size_t k = 0; k < operands; ++k) std::swap(stride[k * CLUTCH_SHAPE_LANES], stride[k * CLUTCH_SHAPE_LANES + static_cast<std::size_t>(d)]);
  return true;
}

KernelPlan select(const DeviceTraits& traits, const CopyProblem& p, std::string_view forced) {
  const auto& chosen = choose<CopyProblem>(kImplementations, traits, p, forced, "copy_");
  auto row = &chosen - kImplementations.data();
  constexpr Layout kLayouts[] = {Layout::contiguous, Layout::rows, Layout::strided, Layout::strided, Layout::contiguous, Layout::strided};
  KernelPlan plan{.stem = "copy", .entry = chosen.name, .layout = kLayouts[row], .tuning = elementwise_tuning(traits)};
  const bool move = row < 4;
  if (row == 0) plan.tuning.tile *= 4;  // the tile of this entry counts bytes
  set_common(plan.defines, traits, plan.tuning, 2, p.wide_index);
  if (row == 2) plan.defines.set("CLUTCH_ITEMS", plan.tuning.local);
  if (row > 0 && move) plan.defines.set_text("T", unsigned_cl_type(p.from));
  if (!move) set_cast(plan.defines, p, plan.tuning.width > 1);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// What a copy computes, as a function of values; null where such a function has other bits: it makes NaNs quiet, one byte of all true ones, and rounds twice
/// from 64 bits to 16.
std::shared_ptr<const Meaning> meaning_of(const Tensor& to, const Tensor& from, const CopyOptions& options) {
  auto is_read = [](DType d) { return !is_complex(d) && !is_packed(d) && (!is_floating(d) || bits(d) >= 16); };
  const DType source = from.dtype(), target = to.dtype();
  if (!is_read(source) || !is_read(target) || options.overflow != Overflow::nonfinite) return nullptr;
  const bool narrow = target == DType::f16 || target == DType::bf16;
  if (source == target && (narrow || kind(target) == DTypeKind::boolean)) return nullptr;
  const DType traced = compute_dtype(source, "copy_");
  if (narrow && is_wide(traced)) return nullptr;
  const bool as_it_is = compute_dtype(target, "copy_") == target && target == traced;
  return pointwise_meaning(as_it_is ? identity(traced) : conversion(traced, target), {}, 1, 1, to.sizes());
}

/// Makes the dimension along which the output is adjacent the innermost one, and that of the source the next; false, with another order, if there are none. By
/// cores, the next is the dimension along which the source is nearest, then the one along which it goes on from there (copy_joins), then those of near outputs.
bool transpose(ElementwiseShape<2>& shape, bool by_cores) {
  const auto rank = static_cast<int>(shape.rank());
  auto exchange = [&](int a, int b) {
    std::swap(shape.size[a], shape.size[b]);
    for (auto& of_operand : shape.stride) std::swap(of_operand[a], of_operand[b]);
  };
  auto is_adjacent = [&](int operand, int d) { return shape.stride[operand][d] == 1 && shape.size[d] > 1; };
  int inner = 0;
  while (inner < rank && !is_adjacent(0, inner)) ++inner;
  if (inner == rank) return false;
  exchange(0, inner);
  auto goes_on = [&](int d) {
    for (int e = 1; e < rank; ++e)
      if (e != d && shape.stride[1][e] == shape.stride[1][d] * shape.size[d]) return e;
    return d;
  };
  auto run = [&](int d) { return goes_on(d) == d ? shape.size[d] : shape.size[d] * shape.size[goes_on(d)]; };
  // Blocks of a few elements each would take longer than the elements one by one, and so would runs of a few.
  constexpr std::int64_t kLeast = 32, kShort = 4;
  int next = 0;
  for (int d = 1; d < rank; ++d) {
    const std::int64_t length = by_cores ? run(d) : shape.size[d];
    if (shape.size[0] * length < kLeast || !(by_cores ? shape.stride[1][d] > 0 && shape.stride[1][d] < shape.stride[1][0] : is_adjacent(1, d))) continue;
    const bool is_short = length < kShort;
    const bool was_short = next != 0 && run(next) < kShort;
    if (next == 0 || (is_short != was_short ? was_short : shape.stride[1][d] < shape.stride[1][next])) next = d;
  }
  if (next == 0) return false;
  exchange(1, next);
  if (!by_cores) return true;
  if (const int after = goes_on(1); after > 1) exchange(2, after);
  for (int d = 2 + copy_joins(rank, shape.size, shape.stride[1]), first = d; d < rank; ++d)
    for (int e = d; e > first && shape.stride[0][e] < shape.stride[0][e - 1]; --e) exchange(e, e - 1);
  return true;
}

/// Elements that an item moves at once: those of 16 bytes where all rows are made of blocks of 16 aligned bytes, else one.
std::int64_t unit_of_rows(const ElementwiseShape<2>& shape, const Tensor& to, const Tensor& from) {
  constexpr std::int64_t kBlock = 16;
  const std::int64_t each = kBlock * 8 / bits(to.dtype());
  auto begins_block = [&](const Tensor& t) { return (t.storage()->offset() + t.byte_offset()) % kBlock == 0; };
  if (each <= 1 || shape.stride[1][0] == 0 || shape.size[0] % each != 0 || !begins_block(to) || !begins_block(from)) return 1;
  for (std::int64_t d = 1; d < shape.size[CLUTCH_SHAPE_RANK]; ++d)
    if (shape.stride[0][d] % each != 0 || shape.stride[1][d] % each != 0) return 1;
  return each;
}

/// Items that copy_transposed has work for.
std::uint64_t transposed_tiles(ElementwiseWalk<2>& walk, const DeviceTraits& traits) {
  auto count = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const bool by_cores = elementwise_tuning(traits).local == 1;
  ElementwiseShape<2>& shape = walk.shape;
  const bool joined = by_cores && copy_joins(shape.rank(), shape.size, shape.stride[1]);
  const std::uint64_t width = count(shape.size[0]), height = count(shape.size[1] * (joined ? shape.size[2] : 1)), matrices = walk.numel / (width * height);
  auto blocks = [&](std::uint64_t wide, std::uint64_t high) { return matrices * ((width + wide - 1) / wide) * ((height + high - 1) / high); };
  if (!by_cores) return blocks(COPY_SQUARE, COPY_SQUARE);
  // An item takes at least about two blocks' elements: then what it costs to schedule is little. Rows side by side stay together where there are enough others.
  const std::uint64_t moves = blocks(copy_block_width(width, height), copy_block_height(width, height));
  const bool inside = copy_is_inside(shape.rank(), joined, shape.stride[0]);
  const std::uint64_t apart = inside ? moves / count(shape.size[2 + joined]) : moves;
  return std::max<std::uint64_t>(1, std::min(apart >= 4 * count(traits.compute_units) ? apart : moves, walk.numel / (2 * COPY_BLOCK)));
}

void run(Runtime& runtime, const Tensor& to, const Tensor& from, const CopyOptions& options, const Stream& stream, const char* op) {
  check_implementation(options.implementation, "copy_", kImplementations);
  if (to.numel() == 0) return;
  if (by_plugin("copy_", options.implementation, {&to, &from, &options, &stream}, stream)) return;
  const bool by_cores = elementwise_tuning(runtime.traits()).local == 1;
  ElementwiseWalk<2> walk = walk_of<2>(to.sizes(), {to.strides(), broadcast_strides(from, to.sizes())});
  if (ElementwiseShape<2> shape = walk.shape; from.dtype() != to.dtype() && walk.layout == Layout::strided && options.implementation.empty() &&
                                              to.is_contiguous() && from.sizes() == to.sizes() && copies_pay(runtime.traits(), to.numel()) &&
                                              transpose(shape, by_cores))
    return run(runtime, to, from.contiguous(stream), options, stream, op);
  CopyProblem problem{from.dtype(), to.dtype(), walk.layout, walk.wide_index, options.overflow};
  if (from.dtype() == to.dtype()) {  // copies of elements of equal size share a plan
    problem.from = problem.to = dtype_of_size(to.dtype());
    problem.overflow = Overflow::nonfinite;
    ElementwiseShape<2> shape = walk.shape;
    problem.transposes = walk.layout == Layout::strided && transpose(shape, by_cores);
    if (problem.transposes) walk.shape = shape;
  }
  if (walk.layout == Layout::strided && !problem.transposes && copies_pay(runtime.traits(), to.numel()))
    lengthen_runs(walk.shape.rank(), walk.shape.size, &walk.shape.stride[0][0], 2);
  const BuiltPlan& plan = plan_for(runtime, "copy", problem, options.implementation);
  if (plan.layout == Layout::rows) walk.shape.set_units(unit_of_rows(walk.shape, to, from));
  bool bytes = plan.layout == Layout::contiguous && from.dtype() == to.dtype();
  if (bytes) walk.numel = to.nbytes();
  Encoder encoder(stream, op);
  encoder.output(to).input(from).value(walk.numel);
  if (plan.layout == Layout::contiguous)
    encoder.value(static_cast<std::uint32_t>(worth_streaming(claimed_traits(runtime.device()), to.nbytes() + from.nbytes())));
  else
    walk.shape.bind(encoder);
  if (encoder.asks_for_meaning()) {
    std::shared_ptr<const Meaning> meaning = meaning_of(to, from, options);
    encoder.means(meaning || from.dtype() != to.dtype() ? std::move(meaning) : meaning_of(Meaning::Known::copy));
  }
  std::uint64_t tiles = tile_count(plan, walk);
  if (plan.entry == "copy_transposed")
    tiles = transposed_tiles(walk, runtime.traits());
  else if (by_cores && plan.layout == Layout::rows)
    tiles = (walk.numel + plan.tuning.tile - 1) / plan.tuning.tile;
  encoder.dispatch(plan.kernel, tile_geometry(tiles, plan.tuning.local));
}

}  // namespace
}  // namespace detail

void copy_(const Tensor& destination, const Tensor& source, const CopyOptions& options, const Stream& stream) {
  detail::OpName named("copy_");
  detail::Runtime& runtime = detail::validate(destination, source, "copy_");
  detail::run(runtime, destination, source, options, detail::resolve_stream(stream, runtime, "copy_"), "copy_");
}

Tensor cast(const Tensor& source, DType dtype, const CopyOptions& options, const Stream& stream) {
  detail::OpName named("cast");
  std::array<const Tensor*, 1> tensors{&source};
  detail::Runtime& runtime = detail::common_runtime(tensors, "cast");
  Stream on = detail::resolve_stream(stream, runtime, "cast");
  if (is_packed(dtype) != is_packed(source.dtype()))
    throw Error(ErrorCode::invalid_dtype, "cast",
                fmt::format("a packed dtype must stay as it is, got a cast from {} to {}", name(source.dtype()), name(dtype)));
  Tensor result = empty(source.sizes(), {.dtype = dtype, .device = on.device()}, on);
  detail::validate(result, source, "cast");
  detail::run(runtime, result, source, options, on, "cast");
  return result;
}

}}  // namespace clutch::v0
