// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/cumsum.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/nonzero.hpp>
#include <clutch/ops/sort.hpp>

#include "encode/args.hpp"
#include "encode/plugin_ops.hpp"
#include "nonzero/args.h"
#include "ops/nonzero_plan.hpp"
#include "ops/out_form.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"

#include <array>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

constexpr const char* kOp = "nonzero";
static_assert(NONZERO_PAIR_BYTES == bits(DType::c128) / 8);

// validate ----------------------------------------------------------------------------------------------------------

Runtime& validate(const Tensor& x) {
  const Tensor* tensors[] = {&x};
  Runtime& runtime = common_runtime(tensors, kOp);
  if (!is_plain_float(x.dtype()) && !is_integral(x.dtype()) && x.dtype() != DType::boolean && !is_complex(x.dtype()))
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("x must be f64, f32, f16, bf16, an integer, bool or complex, got {}", name(x.dtype())));
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

constexpr std::string_view kTiles = "nonzero_tiles", kItems = "nonzero_items";
/// By stage.
constexpr std::array<std::string_view, 2> kEntries{"nonzero_count", "nonzero_place"}, kTileEntries{"nonzero_tile_count", "nonzero_tile_place"};

std::string computes(const DeviceTraits&, const NonzeroProblem&) { return ""; }

std::string fits_tiles(const DeviceTraits& traits, const NonzeroProblem&) {
  // Loops that hold barriers must not end for one item alone.
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (std::string why = refuses_group_items(traits, NONZERO_ITEMS); !why.empty()) return why;
  return refuses_local_bytes(traits, 3 * NONZERO_ITEMS * sizeof(std::uint64_t) + NONZERO_ITEMS * NONZERO_OWN * sizeof(std::uint16_t));
}

constexpr std::array<Implementation<NonzeroProblem>, 2> kImplementations{{{kTiles, fits_tiles, of_groups<fits_tiles>}, {kItems, computes}}};

/// Bits of an element, or of a half of one of c128, that are 0 if it is; and those of infinity.
struct ElementBits {
  std::string_view mask, infinity;
};
ElementBits bits_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return {"0x7ffffffffffffffful", "0x7ff0000000000000ul"};
    case DType::f32: return {"0x7fffffffu", "0x7f800000u"};
    case DType::bf16: return {"0x7fffu", "0x7f80u"};
    case DType::f16: return {"0x7fffu", "0x7c00u"};
    case DType::c64: return {"0x7fffffff7ffffffful", "0x7fffffff7ffffffful"};
    case DType::c128: return {"0x7ffffffffffffffful", "0x7ffffffffffffffful"};
    default: return {"0xfffffffffffffffful", "0xfffffffffffffffful"};
  }
}

}  // namespace

KernelPlan select(const DeviceTraits& traits, const NonzeroProblem& p, std::string_view forced) {
  const bool tiles = choose<NonzeroProblem>(kImplementations, traits, p, forced, kOp).name == kTiles;
  KernelPlan plan{.stem = "nonzero", .entry = (tiles ? kTileEntries : kEntries)[static_cast<std::size_t>(p.stage)], .tuning = row_tuning(traits)};
  if (tiles) plan.tuning.set_items(NONZERO_ITEMS);
  plan.defines.set("CLUTCH_FIND", p.firsts ? NONZERO_FIRSTS : NONZERO_ELEMENTS)
      .set("CLUTCH_X_BYTES", bits(p.dtype) / 8)
      .set("CLUTCH_V_BYTES", p.value_bytes)
      .set_text("CLUTCH_MASK", bits_of(p.dtype).mask)
      .set_text("CLUTCH_INFINITY", p.firsts ? bits_of(p.dtype).infinity : "0u")
      .set("CLUTCH_RANK_LANES", p.rank_lanes);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// A search of a contiguous tensor, in which parts were counted.
class Search {
 public:
  /// `firsts`: finds elements that differ from the one before them, not those that are not 0.
  Search(Runtime& runtime, const Tensor& x, bool firsts, std::string_view implementation, const Stream& stream)
      : runtime_(runtime), x_(x), stream_(stream), implementation_(implementation) {
    problem_ = {.dtype = x.dtype(), .firsts = firsts};
    check_implementation(implementation, kOp, kImplementations);
    args_.n = static_cast<std::uint64_t>(x.numel());
    if (args_.n == 0) return;
    const BuiltPlan& plan = of(NonzeroStage::count);
    tiles_ = plan.entry == kTileEntries[0];
    const bool core_each = plan.tuning.local == 1;
    // A few parts for each core; few elements for each of many items; or a tile.
    const std::uint64_t share = args_.n / (4 * static_cast<std::uint64_t>(std::max(runtime.traits().compute_units, 1))) + 1;
    args_.chunk = tiles_ ? NONZERO_ITEMS * NONZERO_OWN : core_each ? std::clamp<std::uint64_t>(share / NONZERO_LIST * NONZERO_LIST, 4096, 1 << 20) : 256;
    if (runtime.traits().quirks & kQuirkLoopsEndEarly) args_.chunk = 4096;
    args_.parts = (args_.n + args_.chunk - 1) / args_.chunk;
    Encoder encoder(stream, kOp);
    const Tensor counts = encoder.scratch({static_cast<std::int64_t>(args_.parts)}, DType::i64);
    encoder.output(counts).input(x);
    bind_args(encoder, args_);
    dispatch(encoder, plan);
    sums_ = cumsum(counts, 0, {}, stream);
  }

  /// How many elements are found. Waits. Errors: capturing.
  std::int64_t count() const try {
    return args_.n == 0 ? 0 : sums_.slice(0, sums_.numel() - 1, sums_.numel()).to_host<std::int64_t>(stream_)[0];
  } catch (const Error& e) {
    if (e.code() != ErrorCode::capturing) throw;
    throw Error(
        ErrorCode::capturing, kOp,
        "the call must not be captured, as it waits for the size of its result, which is a count, got a capture; nonzero_static() has a size of its own");
  }

  /// Writes up to `capacity` of what is found: indices in a tensor of these sizes, elements of `source` (or those of x), and for each element the number of
  /// the last one found up to it, at the place that `order` names. Tensors that are not defined are not written.
  void place(const Tensor& places, const Dims& sizes, const Tensor& values, const Tensor& source, const Tensor& inverse, const Tensor& order,
             std::int64_t capacity) {
    if (args_.n == 0) return;
    problem_.value_bytes = static_cast<std::uint8_t>(source.defined() ? bits(source.dtype()) / 8 : 1);
    problem_.rank_lanes = rank_lanes(sizes.rank());
    const BuiltPlan& plan = of(NonzeroStage::place);
    args_.capacity = static_cast<std::uint64_t>(capacity);
    args_.rank = static_cast<std::uint32_t>(sizes.rank());
    args_.writes = (places.defined() && sizes.rank() > 0 ? NONZERO_PLACES : 0) | (values.defined() ? NONZERO_VALUES : 0) |
                   (inverse.defined() ? NONZERO_INVERSE : 0) | (order.defined() ? NONZERO_ORDERED : 0);
    std::int64_t size[16] = {};
    for (int d = 0; d < sizes.rank(); ++d) size[d] = sizes[sizes.rank() - 1 - d];
    Encoder encoder(stream_, kOp);
    const Tensor nothing = encoder.scratch({1}, DType::i64);
    for (const Tensor* t : {&places, &values, &inverse}) encoder.output(t->defined() ? *t : nothing);
    // What is not read is a small tensor, so that the call counts no bytes for it.
    encoder.input(sums_).input(x_).input(source.defined() ? source : sums_).input(order.defined() ? order : sums_);
    bind_args(encoder, args_);
    encoder.bytes(size, sizeof size);
    dispatch(encoder, plan);
  }

 private:
  const BuiltPlan& of(NonzeroStage stage) {
    problem_.stage = stage;
    return plan_for(runtime_, kOp, problem_, implementation_);
  }
  void dispatch(Encoder& encoder, const BuiltPlan& plan) const {
    const Geometry geometry = item_geometry(args_.parts * (tiles_ ? NONZERO_ITEMS : 1), plan.tuning.local);
    // An element is looked at up to four times.
    check_loops(runtime_.traits(), kOp, args_.parts, geometry, 4.5 * static_cast<double>(args_.chunk));
    encoder.dispatch(plan.kernel, geometry);
  }

  Runtime& runtime_;
  Tensor x_, sums_;
  Stream stream_;
  std::string_view implementation_;
  NonzeroProblem problem_;
  NonzeroArgs args_{};
  bool tiles_ = false;
};

TensorOptions ids(const Stream& stream) { return {.dtype = DType::i64, .device = stream.device()}; }

Unique unique_of(const Tensor& x, bool sorts, const UniqueOptions& options, const Stream& given) {
  Runtime& runtime = validate(x);
  if (is_complex(x.dtype())) throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("x must have a dtype that sort takes, got {}", name(x.dtype())));
  const Stream stream = resolve_stream(given, runtime, kOp);
  const Tensor flat = x.contiguous(stream).reshape({x.numel()});
  Sorted sorted{flat, {}};
  if (sorts) sorted = sort(flat, 0, {}, stream);
  // Bytes of bool that are not 0 are all true.
  if (!sorts && x.dtype() == DType::boolean) sorted.values = map([](Expr e) { return e != 0; }, {flat}, {}, stream);
  Search search(runtime, sorted.values, true, options.implementation, stream);
  const std::int64_t count = search.count(), n = x.numel();
  Unique made{.values = empty({count}, {.dtype = x.dtype(), .device = stream.device()}, stream)};
  if (options.return_inverse) made.inverse = empty({n}, ids(stream), stream);
  // Where each one begins, and the end.
  Tensor starts;
  if (options.return_counts) starts = full({count + 1}, static_cast<double>(n), ids(stream), stream);
  search.place(starts, {n}, made.values, sorted.values, made.inverse, options.return_inverse && sorts ? sorted.indices : Tensor(), count);
  if (options.return_counts)
    made.counts = map([](Expr end, Expr begin) { return end - begin; }, {starts.slice(0, 1, count + 1), starts.slice(0, 0, count)}, {}, stream);
  if (options.return_inverse) made.inverse = made.inverse.reshape(x.sizes());
  return made;
}

}  // namespace
}  // namespace detail

Tensor nonzero(const Tensor& x, const NonzeroOptions& options, const Stream& given) {
  detail::OpName named("nonzero");
  detail::Runtime& runtime = detail::validate(x);
  const Stream stream = detail::resolve_stream(given, runtime, detail::kOp);
  detail::Search search(runtime, x.contiguous(stream), false, options.implementation, stream);
  const std::int64_t count = search.count();
  Tensor out = empty({count, x.rank()}, detail::ids(stream), stream);
  if (out.numel() > 0) search.place(out, x.sizes(), {}, {}, {}, {}, count);
  return out;
}

Tensor nonzero_static(const Tensor& x, std::int64_t size, const NonzeroStaticOptions& options, const Stream& given) {
  detail::OpName named("nonzero_static");
  detail::Runtime& runtime = detail::validate(x);
  if (size < 0) throw Error(ErrorCode::invalid_argument, detail::kOp, fmt::format("size must not be negative, got {}", size));
  const Stream stream = detail::resolve_stream(given, runtime, detail::kOp);
  Tensor out = empty({size, x.rank()}, detail::ids(stream), stream);
  if (out.numel() > 0 && x.numel() > 0 && detail::by_plugin("nonzero_static", options.implementation, {&out, &x, &size, &options, &stream}, stream)) return out;
  if (out.numel() > 0) fill_(out, static_cast<double>(options.fill_value), {}, stream);
  detail::Search search(runtime, x.contiguous(stream), false, options.implementation, stream);
  if (out.numel() > 0) search.place(out, x.sizes(), {}, {}, {}, {}, size);
  return out;
}
void nonzero_static_out(const Tensor& out, const Tensor& x, std::int64_t size, const NonzeroStaticOptions& options, const Stream& stream) {
  detail::OpName named("nonzero_static_out");
  detail::store(out, nonzero_static(x, size, options, stream), detail::kOp, stream);
}

Tensor count_nonzero(const Tensor& x, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named("count_nonzero");
  return reduce(
      Reduce::sum, [](Expr e) { return e != 0; }, {x}, options, stream);
}
void count_nonzero_out(const Tensor& out, const Tensor& x, const ReduceOptions& options, const Stream& stream) {
  detail::OpName named("count_nonzero_out");
  reduce_out(
      out, Reduce::sum, [](Expr e) { return e != 0; }, {x}, options, stream);
}

Tensor masked_select(const Tensor& x, const Tensor& mask, const NonzeroOptions& options, const Stream& given) {
  detail::OpName named("masked_select");
  const Tensor* tensors[] = {&x, &mask};
  detail::Runtime& runtime = detail::common_runtime(tensors, detail::kOp);
  if (mask.dtype() != DType::boolean) throw Error(ErrorCode::invalid_dtype, detail::kOp, fmt::format("mask must be bool, got {}", name(mask.dtype())));
  if (is_packed(x.dtype())) throw Error(ErrorCode::invalid_dtype, detail::kOp, fmt::format("x must have elements of whole bytes, got {}", name(x.dtype())));
  const Dims both[] = {x.sizes(), mask.sizes()}, sizes = broadcast_shapes(both, detail::kOp);
  const Stream stream = detail::resolve_stream(given, runtime, detail::kOp);
  detail::Search search(runtime, mask.expand(sizes).contiguous(stream), false, options.implementation, stream);
  const std::int64_t count = search.count();
  Tensor out = empty({count}, {.dtype = x.dtype(), .device = stream.device()}, stream);
  if (count > 0) search.place({}, {}, out, x.expand(sizes).contiguous(stream), {}, {}, count);
  return out;
}

Unique unique(const Tensor& x, const UniqueOptions& options, const Stream& stream) {
  detail::OpName named("unique");
  return detail::unique_of(x, true, options, stream);
}
Unique unique_consecutive(const Tensor& x, const UniqueOptions& options, const Stream& stream) {
  detail::OpName named("unique_consecutive");
  return detail::unique_of(x, false, options, stream);
}

}}  // namespace clutch::v0
