// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/cat.hpp>
#include <clutch/ops/copy.hpp>

#include "cat/args.h"
#include "encode/args.hpp"
#include "ops/cat_plan.hpp"
#include "ops/out_form.hpp"
#include "program/cl_type.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

static_assert(CAT_MAX_RANK == kMaxRank);

// select ------------------------------------------------------------------------------------------------------------

constexpr std::array<Implementation<CatProblem>, 2> kImplementations{{
    {"cat_rows",
     [](const DeviceTraits&, const CatProblem& p) {
       return p.layout == Layout::strided ? std::string("each piece must be rows of unit stride or elements at one distance, got other strides")
                                          : std::string();
     }},
    {"cat_strided", [](const DeviceTraits&, const CatProblem&) { return std::string(); }},
}};

}  // namespace

std::span<const Implementation<CatProblem>> cat_implementations() { return kImplementations; }

KernelPlan select(const DeviceTraits& traits, const CatProblem& p, std::string_view forced) {
  const auto& chosen = choose<CatProblem>(kImplementations, traits, p, forced, "cat");
  KernelPlan plan{
      .stem = "cat", .entry = chosen.name, .layout = &chosen == kImplementations.data() ? Layout::rows : Layout::strided, .tuning = elementwise_tuning(traits)};
  // A tile has the bytes of one of f32.
  const auto size = static_cast<std::uint64_t>(bits(p.dtype) / 8);
  plan.tuning.tile = std::max<std::uint64_t>(plan.tuning.tile * 4 / size, 1);
  set_common(plan.defines, traits, plan.tuning, 2, false);
  plan.defines.set_text("T", unsigned_cl_type(p.dtype)).set("CLUTCH_SIZE", static_cast<std::int64_t>(size));
  if (plan.tuning.local > 1) plan.defines.set("CLUTCH_GROUPED", 1);
  return plan;
}

namespace {

// validate ----------------------------------------------------------------------------------------------------------

int wrapped_dim(int dim, int rank, const char* op) {
  const int d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank) throw Error(ErrorCode::invalid_argument, op, fmt::format("a dimension must be in [-{}, {}), got {}", rank, rank, dim));
  return d;
}

void check_unpacked(DType dtype, const char* op) {
  if (is_packed(dtype)) throw Error(ErrorCode::invalid_dtype, op, fmt::format("a tensor must be of a dtype of whole bytes, got {}", name(dtype)));
}

Runtime& check_list(std::span<const Tensor> tensors, const char* op) {
  if (tensors.empty()) throw Error(ErrorCode::invalid_argument, op, "there must be a tensor, got none");
  std::vector<const Tensor*> all;
  for (const Tensor& t : tensors) all.push_back(&t);
  Runtime& runtime = common_runtime(all, op);
  for (const Tensor& t : tensors) check_unpacked(t.dtype(), op);
  return runtime;
}

DType joint_dtype(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> all;
  for (const Tensor& t : tensors) all.push_back(&t);
  return result_type(all);
}

// encode ------------------------------------------------------------------------------------------------------------

/// A copy of `from` into `to`, as both are walked over.
struct Piece {
  Tensor to, from;
  ElementwiseWalk<2> walk;
};

bool has_unit_strides(const ElementwiseShape<2>& s) { return s.stride[0][0] == 1 && s.stride[1][0] == 1; }

/// Rows of unit stride, or elements at one distance, which are rows of one element each.
bool is_rows(const ElementwiseWalk<2>& walk) {
  const std::int64_t rank = walk.shape.size[CLUTCH_SHAPE_RANK];
  return rank == 1 || (rank == 2 && has_unit_strides(walk.shape));
}

/// The words that tell the kernel a piece's layout.
void add_words(std::vector<std::int64_t>& words, const Piece& piece, bool rows) {
  const auto& s = piece.walk.shape;
  const auto count = static_cast<std::int64_t>(piece.walk.numel), rank = s.size[CLUTCH_SHAPE_RANK];
  const std::size_t at = words.size();
  words.resize(at + (rows ? std::size_t{CAT_ROW_WORDS} : std::size_t{CAT_STRIDED_WORDS}));
  std::int64_t* w = words.data() + at;
  if (rows) {
    const int outer = has_unit_strides(s) ? 1 : 0;
    w[CAT_ROW_COUNT] = count, w[CAT_ROW_LENGTH] = outer ? s.size[0] : 1;
    w[CAT_TO_STRIDE] = rank > outer ? s.stride[0][outer] : 0, w[CAT_FROM_STRIDE] = rank > outer ? s.stride[1][outer] : 0;
    return;
  }
  w[CAT_COUNT] = count, w[CAT_RANK] = rank;
  for (int d = 0; d < static_cast<int>(rank); ++d)
    w[CAT_SIZES + d] = s.size[d], w[CAT_TO_STRIDES + d] = s.stride[0][d], w[CAT_FROM_STRIDES + d] = s.stride[1][d];
}

/// Copies sources, which have their destinations' sizes, and are cast where their dtypes differ. Empty ones are left out.
void copy_pieces(Runtime& runtime, std::span<const Tensor> destinations, std::span<const Tensor> sources, const CatOptions& options, const Stream& stream,
                 const char* op) {
  check_implementation(options.implementation, op, kImplementations);
  std::vector<Piece> pieces;
  pieces.reserve(sources.size());
  bool rows = true;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Tensor& to = destinations[i];
    if (to.numel() == 0) continue;
    const Tensor from = sources[i].to(to.dtype(), {}, stream);
    pieces.push_back({to, from, walk_of<2>(to.sizes(), {to.strides(), broadcast_strides(from, to.sizes())})});
    rows = rows && is_rows(pieces.back().walk);
  }
  if (pieces.empty()) return;
  const BuiltPlan& plan =
      plan_for(runtime, "cat", CatProblem{dtype_of_size(pieces[0].to.dtype()), rows ? Layout::rows : Layout::strided}, options.implementation);
  rows = plan.layout == Layout::rows;
  std::vector<const Tensor*> entries;
  std::vector<std::int64_t> words, chunks, first_chunk;
  double bytes = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    entries.insert(entries.end(), {&pieces[i].to, &pieces[i].from});
    add_words(words, pieces[i], rows);
    first_chunk.push_back(static_cast<std::int64_t>(chunks.size()));
    for (std::uint64_t chunk = 0; chunk * plan.tuning.tile < pieces[i].walk.numel; ++chunk) chunks.push_back(static_cast<std::int64_t>(i | chunk << 32));
    bytes += static_cast<double>(pieces[i].to.nbytes());
  }
  first_chunk.push_back(static_cast<std::int64_t>(chunks.size()));
  words.insert(words.end(), chunks.begin(), chunks.end());
  const auto streaming = static_cast<std::uint32_t>(worth_streaming(claimed_traits(runtime.device()), static_cast<std::uint64_t>(2 * bytes)));
  const Tensor placed = from_host(words, {static_cast<std::int64_t>(words.size())}, stream.device(), stream);
  std::size_t first = 0;
  for (std::size_t end : TensorTable::split(entries, CAT_COLUMNS)) {
    TensorTable table({{.access = Argument::Kind::output}, {.access = Argument::Kind::input}});
    const std::int64_t from = first_chunk[first], count = first_chunk[end] - from;
    Encoder encoder(stream, op);
    encoder.moves(2 * bytes * static_cast<double>(count) / static_cast<double>(chunks.size()));
    encoder.table(table, std::span(entries).subspan(first * CAT_COLUMNS, (end - first) * CAT_COLUMNS)).input(placed);
    bind_args(encoder, CatArgs{static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(first),
                               static_cast<std::uint32_t>(pieces.size()), streaming});
    encoder.dispatch(plan.kernel, tile_geometry(static_cast<std::uint64_t>(count), plan.tuning.local));
    first = end;
  }
}

/// What cat() joins, its dimension and its result.
struct Joined {
  Runtime* runtime = nullptr;
  std::vector<Tensor> tensors;  ///< without those of shape (0,)
  int dim = 0;
  Dims sizes;
  DType dtype = DType::f32;
};

Joined joined_by_cat(std::span<const Tensor> tensors, int dim, const char* op) {
  Joined j{.runtime = &check_list(tensors, op), .dtype = joint_dtype(tensors)};
  for (const Tensor& t : tensors) {
    if (t.rank() == 0) throw Error(ErrorCode::invalid_argument, op, "a tensor must have a dimension, got one of rank 0; use stack");
    if (!(t.sizes() == Dims{0})) j.tensors.push_back(t);
  }
  if (j.tensors.empty()) {
    j.dim = wrapped_dim(dim, 1, op), j.sizes = {0};
    return j;
  }
  j.sizes = j.tensors[0].sizes();
  j.dim = wrapped_dim(dim, j.sizes.rank(), op);
  std::int64_t sum = 0;
  for (const Tensor& t : j.tensors) {
    Dims wanted = j.sizes;
    if (t.rank() == wanted.rank()) wanted[j.dim] = t.sizes()[j.dim];
    if (!(t.sizes() == wanted))
      throw Error(ErrorCode::invalid_shape, op,
                  fmt::format("tensors must have equal sizes but for dimension {}, got {} and {}", j.dim, to_string(j.sizes), to_string(t.sizes())));
    sum += t.sizes()[j.dim];
  }
  j.sizes[j.dim] = sum;
  numel(j.sizes);  // refuses what is too large
  return j;
}

Joined joined_by_stack(std::span<const Tensor> tensors, int dim, const char* op) {
  Joined j{.runtime = &check_list(tensors, op), .dtype = joint_dtype(tensors)};
  const Dims& first = tensors[0].sizes();
  if (first.rank() == kMaxRank)
    throw Error(ErrorCode::invalid_shape, op, fmt::format("the tensors must have at most {} dimensions, got {}", kMaxRank - 1, to_string(first)));
  j.dim = wrapped_dim(dim, first.rank() + 1, op);
  for (const Tensor& t : tensors) {
    if (!(t.sizes() == first))
      throw Error(ErrorCode::invalid_shape, op, fmt::format("tensors must have equal sizes, got {} and {}", to_string(first), to_string(t.sizes())));
    j.tensors.push_back(t.unsqueeze(j.dim));
  }
  j.sizes = j.tensors[0].sizes();
  j.sizes[j.dim] = static_cast<std::int64_t>(tensors.size());
  return j;
}

void check_device(const Tensor& out, const Runtime& runtime, const char* op) {
  if (&out.storage()->runtime() != &runtime)
    throw Error(ErrorCode::device_mismatch, op, "the output must be of the tensors' device and context, got one of another");
}

/// Joins by a plugin's cat(), which gets tensors of the result's dtype that have elements. False if none takes them.
bool joined_by_plugin(const Tensor& out, const Joined& j, const CatOptions& options, const Stream& stream) {
  if (!has_plugin_implementations("cat") || out.numel() == 0) return false;
  std::vector<Tensor> tensors;
  for (const Tensor& t : j.tensors)
    if (t.numel() > 0) tensors.push_back(t.to(j.dtype, {}, stream));
  const std::span<const Tensor> list(tensors);
  return by_plugin("cat", options.implementation, {&out, &list, &j.dim, &options, &stream}, stream);
}

void join_into(const Tensor& out, const Joined& j, const CatOptions& options, const Stream& given, const char* op) {
  check_out(out, j.sizes, j.dtype, "out", op);
  check_device(out, *j.runtime, op);
  for (const Tensor& t : j.tensors) check_apart(out, t, op);
  const Stream stream = resolve_stream(given, *j.runtime, op);
  if (op == std::string_view("cat") && joined_by_plugin(out, j, options, stream)) return;
  std::vector<Tensor> parts;
  std::int64_t at = 0;
  for (const Tensor& t : j.tensors) parts.push_back(out.slice(j.dim, at, at + t.sizes()[j.dim])), at += t.sizes()[j.dim];
  copy_pieces(*j.runtime, parts, j.tensors, options, stream, op);
}

Tensor join(const Joined& j, const CatOptions& options, const Stream& given, const char* op) {
  const Stream stream = resolve_stream(given, *j.runtime, op);
  Tensor out = empty(j.sizes, {.dtype = j.dtype, .device = stream.device()}, stream);
  join_into(out, j, options, stream, op);
  return out;
}

std::vector<Tensor> parts_of(const Tensor& tensor, std::span<const std::int64_t> sizes, int dim, const char* op) {
  storage_of(tensor, op);
  const int d = wrapped_dim(dim, tensor.rank(), op);
  const std::int64_t have = tensor.sizes()[d];
  std::int64_t at = 0;
  std::vector<Tensor> parts;
  for (std::int64_t size : sizes) {
    if (size < 0 || size > have - at)
      throw Error(ErrorCode::invalid_argument, op, fmt::format("sizes must not be negative and add up to {}, got {} behind {}", have, size, at));
    parts.push_back(tensor.slice(d, at, at + size));
    at += size;
  }
  if (at != have) throw Error(ErrorCode::invalid_argument, op, fmt::format("the sizes must add up to {}, got {}", have, at));
  return parts;
}

}  // namespace
}  // namespace detail

Tensor cat(std::span<const Tensor> tensors, int dim, const CatOptions& options, const Stream& stream) {
  detail::OpName named("cat");
  return detail::join(detail::joined_by_cat(tensors, dim, "cat"), options, stream, "cat");
}
void cat_out(const Tensor& out, std::span<const Tensor> tensors, int dim, const CatOptions& options, const Stream& stream) {
  detail::OpName named("cat_out");
  detail::join_into(out, detail::joined_by_cat(tensors, dim, "cat"), options, stream, "cat");
}

Tensor stack(std::span<const Tensor> tensors, int dim, const CatOptions& options, const Stream& stream) {
  detail::OpName named("stack");
  return detail::join(detail::joined_by_stack(tensors, dim, "stack"), options, stream, "stack");
}
void stack_out(const Tensor& out, std::span<const Tensor> tensors, int dim, const CatOptions& options, const Stream& stream) {
  detail::OpName named("stack_out");
  detail::join_into(out, detail::joined_by_stack(tensors, dim, "stack"), options, stream, "stack");
}

std::vector<Tensor> split(const Tensor& tensor, std::int64_t size, int dim) {
  detail::OpName named("split");
  detail::storage_of(tensor, "split");
  const std::int64_t have = tensor.sizes()[detail::wrapped_dim(dim, tensor.rank(), "split")];
  if (size < 0 || (size == 0 && have != 0))
    throw Error(ErrorCode::invalid_argument, "split", fmt::format("the size of a part must be above 0, or 0 for an empty dimension, got {} of {}", size, have));
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < have; at += size) sizes.push_back(std::min(size, have - at));
  if (have == 0) sizes.push_back(0);
  return detail::parts_of(tensor, sizes, dim, "split");
}
std::vector<Tensor> split(const Tensor& tensor, std::span<const std::int64_t> sizes, int dim) {
  detail::OpName named("split");
  return detail::parts_of(tensor, sizes, dim, "split");
}

std::vector<Tensor> split_copy(const Tensor& tensor, std::span<const std::int64_t> sizes, int dim, const CatOptions& options, const Stream& given) {
  detail::OpName named("split_copy");
  const std::vector<Tensor> parts = detail::parts_of(tensor, sizes, dim, "split_copy");
  detail::Runtime& runtime = detail::storage_of(tensor, "split_copy").runtime();
  detail::check_unpacked(tensor.dtype(), "split_copy");
  const Stream stream = detail::resolve_stream(given, runtime, "split_copy");
  std::vector<Tensor> outs;
  for (const Tensor& part : parts) outs.push_back(empty(part.sizes(), {.dtype = part.dtype(), .device = stream.device()}, stream));
  detail::copy_pieces(runtime, outs, parts, options, stream, "split_copy");
  return outs;
}
void split_copy_out(std::span<const Tensor> outs, const Tensor& tensor, int dim, const CatOptions& options, const Stream& stream) {
  detail::OpName named("split_copy_out");
  constexpr const char* op = "split_copy";
  detail::Runtime& runtime = detail::storage_of(tensor, op).runtime();
  detail::check_unpacked(tensor.dtype(), op);
  const int d = detail::wrapped_dim(dim, tensor.rank(), op);
  std::vector<std::int64_t> sizes;
  for (const Tensor& out : outs) {
    detail::storage_of(out, op);
    sizes.push_back(d < out.rank() ? out.sizes()[d] : 0);
  }
  const std::vector<Tensor> parts = detail::parts_of(tensor, sizes, d, op);
  for (std::size_t i = 0; i < outs.size(); ++i) {
    detail::check_out(outs[i], parts[i].sizes(), tensor.dtype(), "an output", op);
    detail::check_device(outs[i], runtime, op);
    detail::check_apart(outs[i], tensor, op);
  }
  detail::check_lists_apart(outs, {}, outs.size(), op);
  detail::copy_pieces(runtime, outs, parts, options, detail::resolve_stream(stream, runtime, op), op);
}

void foreach_copy_(std::span<const Tensor> destinations, std::span<const Tensor> sources, const CatOptions& options, const Stream& stream) {
  detail::OpName named("foreach_copy_");
  constexpr const char* op = "foreach_copy_";
  if (destinations.size() != sources.size())
    throw Error(ErrorCode::invalid_argument, op, fmt::format("each of {} destinations must have a source, got {}", destinations.size(), sources.size()));
  if (destinations.empty()) return;
  std::vector<Tensor> all(destinations.begin(), destinations.end());
  all.insert(all.end(), sources.begin(), sources.end());
  detail::Runtime& runtime = detail::check_list(all, op);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (!(destinations[i].sizes() == sources[i].sizes()))
      throw Error(ErrorCode::invalid_shape, op,
                  fmt::format("a source must have its destination's sizes {}, got {}", to_string(destinations[i].sizes()), to_string(sources[i].sizes())));
  detail::check_lists_apart(destinations, sources, sources.size(), op);
  // A launch takes elements of one size.
  std::vector<bool> done(sources.size());
  const Stream on = detail::resolve_stream(stream, runtime, op);
  for (std::size_t first = 0; first < sources.size(); ++first) {
    if (done[first]) continue;
    std::vector<Tensor> to, from;
    for (std::size_t i = first; i < sources.size(); ++i)
      if (!done[i] && bits(destinations[i].dtype()) == bits(destinations[first].dtype()))
        to.push_back(destinations[i]), from.push_back(sources[i]), done[i] = true;
    detail::copy_pieces(runtime, to, from, options, on, op);
  }
}

}}  // namespace clutch::v0
