// SPDX-License-Identifier: Apache-2.0
// Pages of keys and values: allocated on the host, found by tables on the device.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/scatter.hpp>
#include <clutch/paged_cache.hpp>

#include "encode/args.hpp"
#include "flex/args.h"
#include "ops/block_mask_plan.hpp"
#include "ops/flex_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <span>

namespace clutch { inline namespace v0 { namespace attention {

struct PagedCache::State {
  PagedCacheOptions options;
  Tensor keys, values, table, inverse;
  std::vector<std::int32_t> free;                ///< last element: the next page to be taken
  std::vector<std::vector<std::int32_t>> taken;  ///< pages of each sequence
};

namespace {

constexpr std::string_view kOp = "PagedCache";

void refuse(ErrorCode code, std::string_view why) { throw Error(code, kOp, why); }

void check(const Tensor& t, const Dims& sizes, DType dtype, std::string_view what) { detail::check_is(t, sizes, dtype, what, kOp); }

}  // namespace

PagedCache::PagedCache(const PagedCacheOptions& options, const Stream& stream) : state_(std::make_shared<State>()) {
  detail::OpName named("attention::PagedCache");
  State& s = *state_;
  s.options = options;
  PagedCacheOptions& o = s.options;
  if (o.max_pages == 0) o.max_pages = o.pages;
  if (o.value_size == 0) o.value_size = o.key_size;
  for (std::int64_t size : {o.pages, o.page_size, o.max_batch, o.max_pages, o.heads, o.key_size, o.value_size})
    if (size < 1 || size > INT32_MAX) refuse(ErrorCode::invalid_argument, fmt::format("sizes must be from 1 to 2^31 - 1, got {}", size));
  if (o.pages > INT32_MAX / o.page_size || o.max_pages > INT32_MAX / o.page_size)
    refuse(ErrorCode::invalid_argument, fmt::format("all pages must have at most 2^31 - 1 keys, got {} of {}", o.pages, o.page_size));
  detail::check_plain_float(o.dtype, "the cache", kOp);
  const TensorOptions stored{.dtype = o.dtype, .device = o.device};
  // Kernels may read keys that were never assigned with weight 0, and 0 times NaN would be NaN.
  s.keys = zeros({1, o.heads, o.pages * o.page_size, o.key_size}, stored, stream);
  s.values = zeros({1, o.heads, o.pages * o.page_size, o.value_size}, stored, stream);
  s.table = full({o.max_batch, o.max_pages}, -1, {.dtype = DType::i32, .device = o.device}, stream);
  s.inverse = full({o.max_batch, o.pages}, -1, {.dtype = DType::i32, .device = o.device}, stream);
  for (std::int64_t page = o.pages; page-- > 0;) s.free.push_back(static_cast<std::int32_t>(page));
  s.taken.resize(static_cast<std::size_t>(o.max_batch));
}

PagedCache::State& PagedCache::state() const {
  if (!state_) refuse(ErrorCode::invalid_argument, "the cache must be a made one, got an empty one");
  return *state_;
}
const PagedCacheOptions& PagedCache::options() const {
  detail::OpName named("attention::PagedCache::options");
  return state().options;
}
const Tensor& PagedCache::keys() const {
  detail::OpName named("attention::PagedCache::keys");
  return state().keys;
}
const Tensor& PagedCache::values() const {
  detail::OpName named("attention::PagedCache::values");
  return state().values;
}
const Tensor& PagedCache::page_table() const {
  detail::OpName named("attention::PagedCache::page_table");
  return state().table;
}
const Tensor& PagedCache::physical_to_logical() const {
  detail::OpName named("attention::PagedCache::physical_to_logical");
  return state().inverse;
}
std::int64_t PagedCache::free_pages() const {
  detail::OpName named("attention::PagedCache::free_pages");
  return static_cast<std::int64_t>(state().free.size());
}

namespace {

void check_sequence(std::int64_t sequence, const PagedCacheOptions& o) {
  if (sequence < 0 || sequence >= o.max_batch)
    refuse(ErrorCode::invalid_argument, fmt::format("the sequence must be in [0, {}), got {}", o.max_batch, sequence));
}

/// Writes one sequence's rows of both tables.
void write_tables(const Tensor& table, const Tensor& inverse, std::int64_t sequence, std::span<const std::int32_t> pages, const Stream& stream) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(table.size(1)), -1), logical(static_cast<std::size_t>(inverse.size(1)), -1);
  for (std::size_t i = 0; i < pages.size(); ++i) places[i] = pages[i], logical[static_cast<std::size_t>(pages[i])] = static_cast<std::int32_t>(i);
  auto write = [&](const Tensor& to, const std::vector<std::int32_t>& row) {
    copy_(to.slice(0, sequence, sequence + 1), from_host(row, {1, to.size(1)}, to.device(), stream), {}, stream);
  };
  write(table, places), write(inverse, logical);
}

}  // namespace

std::int64_t PagedCache::capacity(std::int64_t sequence) const {
  detail::OpName named("attention::PagedCache::capacity");
  check_sequence(sequence, options());
  return static_cast<std::int64_t>(state().taken[static_cast<std::size_t>(sequence)].size()) * options().page_size;
}

void PagedCache::reserve(std::int64_t sequence, std::int64_t length, const Stream& given) {
  detail::OpName named("attention::PagedCache::reserve");
  State& s = state();
  check_sequence(sequence, s.options);
  std::vector<std::int32_t>& taken = s.taken[static_cast<std::size_t>(sequence)];
  const std::int64_t wanted = detail::blocks_of(std::max<std::int64_t>(length, 0), s.options.page_size), has = static_cast<std::int64_t>(taken.size());
  if (wanted <= has) return;
  if (wanted > s.options.max_pages)
    refuse(ErrorCode::invalid_argument, fmt::format("a sequence must have at most {} pages, got {} keys, which take {}", s.options.max_pages, length, wanted));
  if (wanted - has > free_pages())
    refuse(ErrorCode::out_of_memory, fmt::format("sequence {} wants {} more pages, {} are free", sequence, wanted - has, free_pages()));
  std::vector<std::int32_t> next = taken;
  next.insert(next.end(), s.free.rbegin(), s.free.rbegin() + (wanted - has));
  write_tables(s.table, s.inverse, sequence, next, given);
  taken = std::move(next);
  s.free.resize(s.free.size() - static_cast<std::size_t>(wanted - has));
}

void PagedCache::erase(std::int64_t sequence, const Stream& given) {
  detail::OpName named("attention::PagedCache::erase");
  State& s = state();
  check_sequence(sequence, s.options);
  std::vector<std::int32_t>& taken = s.taken[static_cast<std::size_t>(sequence)];
  if (taken.empty()) return;
  write_tables(s.table, s.inverse, sequence, {}, given);
  s.free.insert(s.free.end(), taken.rbegin(), taken.rend());
  taken.clear();
}

void PagedCache::assign(const Tensor& sequences, const Tensor& positions, const Tensor& k, const Tensor& v, const Stream& given) const {
  detail::OpName named("attention::PagedCache::assign");
  const State& s = state();
  const PagedCacheOptions& o = s.options;
  const Tensor* all[] = {&s.keys, &sequences, &positions, &k, &v};
  detail::Runtime& runtime = detail::common_runtime(all, kOp);
  if (positions.rank() != 2) refuse(ErrorCode::invalid_shape, fmt::format("positions must be (n, S), got shape {}", to_string(positions.sizes())));
  const std::int64_t n = positions.size(0), length = positions.size(1);
  check(sequences, {n}, DType::i32, "sequences"), check(positions, {n, length}, DType::i32, "positions");
  check(k, {n, o.heads, length, o.key_size}, o.dtype, "keys"), check(v, {n, o.heads, length, o.value_size}, o.dtype, "values");
  for (const Tensor* t : {&k, &v})
    for (const Tensor* cache : {&s.keys, &s.values}) detail::check_apart(*cache, *t, kOp);
  if (n * length == 0) return;
  const Stream stream = detail::resolve_stream(given, runtime, kOp);
  const detail::BuiltPlan& plan = detail::plan_for(runtime, "flex", detail::FlexProblem{.dtype = o.dtype, .part = detail::FlexPart::assign}, {});
  detail::FlexAssignArgs args{.tasks = static_cast<std::uint64_t>(n * o.heads * length),
                              .length = length,
                              .heads = o.heads,
                              .e = o.key_size,
                              .ev = o.value_size,
                              .sequences = o.max_batch,
                              .page_stride = o.max_pages,
                              .page_size = o.page_size,
                              .cache_rows = o.pages * o.page_size};
  for (int d = 0; d < 4; ++d) args.k_stride[d] = k.strides()[d], args.v_stride[d] = v.strides()[d];
  Encoder encoder(stream, "PagedCache::assign");
  encoder.output(s.keys).output(s.values);
  encoder.input(sequences.contiguous(stream)).input(positions.contiguous(stream)).input(s.table).input(k).input(v);
  detail::bind_args(encoder, args);
  encoder.dispatch(plan.kernel, detail::item_geometry(args.tasks, plan.tuning.local));
}

Varlen PagedCache::varlen(const Tensor& lengths, const Tensor& sequences, const Stream& stream) const {
  detail::OpName named("attention::PagedCache::varlen");
  return {.seqused_kv = lengths,
          .page_table = sequences.defined() ? index_select(state().table, 0, sequences, stream) : state().table,
          .page_size = options().page_size};
}

namespace {

/// The logical key at a physical one, and whether that key belongs to the sequence.
struct Logical {
  Expr key, valid;
};
Logical logical_at(const Captured& inverse, const Captured& sequences, const Index& b, const Index& kv, std::int64_t page_size) {
  const Expr size = param(page_size), page = trunc_div(kv, size), logical = inverse[{sequences[b], page}];
  return {logical * size + trunc_mod(kv, size), logical >= 0};
}

}  // namespace

MaskMod PagedCache::physical(const MaskMod& logical, const Tensor& sequences) const {
  detail::OpName named("attention::PagedCache::physical");
  const Captured inverse = captured(state().inverse), of = captured(sequences);
  return [&](Index b, Index h, Index q, Index kv) {
    const Logical at = logical_at(inverse, of, b, kv, options().page_size);
    return at.valid & logical(b, h, q, at.key);
  };
}
ScoreMod PagedCache::physical(const ScoreMod& logical, const Tensor& sequences) const {
  detail::OpName named("attention::PagedCache::physical");
  const Captured inverse = captured(state().inverse), of = captured(sequences);
  return [&](Score s, Index b, Index h, Index q, Index kv) {
    const Logical at = logical_at(inverse, of, b, kv, options().page_size);
    return select(at.valid, logical(s, b, h, q, at.key), -std::numeric_limits<float>::infinity());
  };
}
BlockMask PagedCache::physical(const BlockMask& logical, const Tensor& sequences, const Stream& given) const {
  detail::OpName named("attention::PagedCache::physical");
  const PagedCacheOptions& o = options();
  if (logical.block().kv != o.page_size)
    refuse(ErrorCode::invalid_argument, fmt::format("blocks must have the {} keys of a page, got {}", o.page_size, logical.block().kv));
  const Tensor* all[] = {&state().table, &sequences, &logical.kinds()};
  const Stream stream = detail::resolve_stream(given, detail::common_runtime(all, kOp), kOp);
  const std::int64_t n = sequences.numel(), heads = logical.kinds().size(1), rows = logical.kinds().size(2), columns = logical.kinds().size(3);
  check(sequences, {n}, DType::i32, "sequences");
  if (logical.kinds().size(0) != 1 && logical.kinds().size(0) != n)
    refuse(ErrorCode::invalid_argument, fmt::format("the block mask must have 1 or {} batches, got {}", n, logical.kinds().size(0)));
  // Lists of pages in the cache: those of the logical lists, then -1, which is no block.
  const Captured table = captured(state().table), of = captured(sequences);
  auto pages = [&](const Tensor& list) {
    Tensor made = full({n, heads, rows, o.pages}, -1, {.dtype = DType::i32, .device = stream.device()}, stream);
    const std::int64_t count = std::min(columns, o.pages);
    copy_(made.slice(3, 0, count),
          map(
              [&](Expr i) {
                return select(i < param(o.max_pages), table[{of[cast(position(0), DType::i32)], i}], cast(Expr(-1), DType::i32));
              },
              {list.slice(3, 0, count).expand({n, heads, rows, count})}, {}, stream),
          {}, stream);
    return made;
  };
  auto counts = [&](const Tensor& num) { return num.expand({n, heads, rows}); };
  return block_mask_from_lists(
      counts(logical.kv_num_blocks()), pages(logical.kv_indices()), counts(logical.full_kv_num_blocks()), pages(logical.full_kv_indices()),
      physical(logical.mask_mod(), sequences),
      {.batch = n, .heads = heads, .q_len = logical.q_len(), .kv_len = o.pages * o.page_size, .block = {logical.block().q, o.page_size}}, stream);
}

}}}  // namespace clutch::v0::attention
