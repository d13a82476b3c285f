// SPDX-License-Identifier: Apache-2.0
#include "dist/group_calls.hpp"
#include "dist/layout.hpp"
#include "dist/sharded_checks.hpp"

#include <clutch/dist/attention.hpp>
#include <clutch/ops/cat.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/pointwise.hpp>

#include <algorithm>
#include <limits>
#include <map>

namespace clutch { inline namespace v0 { namespace dist {

namespace {

using namespace detail;
using attention::Index;

constexpr int kBatches = 0, kHeads = 1, kRows = 2;
/// Of messages of the ring, which must not meet those of functional::send_recv().
constexpr int kKeysTag = Group::kMaxTag - 1, kGradientsTag = Group::kMaxTag - 2;

/// Entries of the whole in the order of to_balanced().
Ranges balanced_order(std::int64_t size, std::int64_t ranks) {
  const std::vector<std::int64_t> sizes = chunk_sizes(size, 2 * ranks);
  std::vector<Range> chunks;
  std::int64_t at = 0;
  for (const std::int64_t n : sizes) chunks.push_back({at, at + n}), at += n;
  Ranges order;
  for (std::size_t i = 0; i < static_cast<std::size_t>(ranks); ++i)
    for (const Range& chunk : {chunks[i], chunks[chunks.size() - 1 - i]}) append(order, {chunk}, 0, chunk.end - chunk.begin);
  return order;
}

/// Where each entry of the whole stands among those that the ranges have.
Ranges inverse_of(const Ranges& order) {
  std::map<std::int64_t, Range> by_begin;
  std::int64_t at = 0;
  for (const Range& r : order) by_begin[r.begin] = {at, at + r.end - r.begin}, at += r.end - r.begin;
  Ranges inverse;
  for (const auto& [begin, place] : by_begin) inverse.push_back(place);
  return inverse;
}

Tensor taken(const Tensor& x, int dim, const Ranges& ranges, const Stream& stream) {
  if (ranges.size() < 2) return x.contiguous(stream);
  std::vector<Tensor> parts;
  for (const Range& r : ranges) parts.push_back(x.slice(dim, r.begin, r.end));
  return cat(parts, dim, {}, stream);
}

/// Where the entries of a part stand in the whole's dimension.
struct Axis {
  std::int64_t count = 0, begin = 0;
  bool is_whole = true;
  Tensor table = {};  ///< i32, where they are not one range

  Axis(const Ranges& ranges, std::int64_t size, bool wants_table, const Device& device, const Stream& stream)
      : count(length(ranges)), begin(ranges.empty() ? 0 : ranges[0].begin), is_whole(count == 0 || (count == size && !wants_table)) {
    if (is_whole || (ranges.size() == 1 && !wants_table)) return;
    std::vector<std::int32_t> places;
    for (const Range& r : ranges)
      for (std::int64_t i = r.begin; i < r.end; ++i) places.push_back(static_cast<std::int32_t>(i));
    table = from_host(places, {count}, device, stream);
  }
  Index operator()(const Index& i) const { return is_whole ? i : table.defined() ? Index(captured(table)[i]) : Index(i + param(begin)); }
};

/// Those of a call of flex(): mods are to see the whole's indices.
struct Places {
  Axis batches, heads, queries, keys;

  attention::MaskMod moved(const attention::MaskMod& mask) const {
    if (mask.empty()) return {};
    return [&](Index b, Index h, Index q, Index kv) { return mask(batches(b), heads(h), queries(q), keys(kv)); };
  }
  /// `shift`, where it is defined, is subtracted from each row's scores.
  attention::ScoreMod moved(const attention::ScoreMod& mod, const Tensor& shift) const {
    if (mod.empty() && !shift.defined()) return {};
    return [&](attention::Score s, Index b, Index h, Index q, Index kv) {
      const Expr score = mod(s, batches(b), heads(h), queries(q), keys(kv));
      return shift.defined() ? score - captured(shift)[{b, h, q}] : score;
    };
  }
};

Layout layout_of(const Sharded& x) { return {.sizes = x.sizes(), .mesh_shape = x.mesh().shape(), .placements = x.placements()}; }

std::vector<Dims> cells_of(const Dims& mesh_shape) {
  std::vector<Dims> cells{{}};
  for (const std::int64_t n : mesh_shape) {
    std::vector<Dims> longer;
    for (const Dims& cell : cells)
      for (std::int64_t i = 0; i < n; ++i) longer.push_back(cell), longer.back().push_back(i);
    cells = longer;
  }
  return cells;
}

/// True if each rank's query heads are those of its key heads; `wants_equal`: and all ranks have as many.
bool are_heads_together(const Layout& q, const Layout& k, bool wants_equal) {
  const std::int64_t factor = k.sizes[kHeads] > 0 ? q.sizes[kHeads] / k.sizes[kHeads] : 1;
  const std::vector<Dims> cells = cells_of(q.mesh_shape);
  const std::int64_t count = k.local_sizes(cells[0])[kHeads];
  return std::all_of(cells.begin(), cells.end(), [&](const Dims& cell) {
    Ranges of_keys = k.ranges(cell)[kHeads];
    for (Range& r : of_keys) r.begin *= factor, r.end *= factor;
    const Ranges of_queries = q.ranges(cell)[kHeads];
    return std::equal(of_keys.begin(), of_keys.end(), of_queries.begin(), of_queries.end(),
                      [](const Range& a, const Range& b) { return a.begin == b.begin && a.end == b.end; }) &&
           (!wants_equal || k.local_sizes(cell)[kHeads] == count);
  });
}

/// A call's tensors, and how it goes about them.
class Attention {
 public:
  Attention(const char* op, const Sharded& of_q, const Sharded& of_k, const Sharded& of_v, const FlexOptions& of_options, const CallOptions& of_call)
      : op_(op), q_(of_q), k_(of_k), v_(of_v), options_(of_options), call_(of_call) {
    check_async(op, call_);
    check();
    if (call_.stream.empty()) call_.stream = current_stream(q_.local().device());
    method_ = options_.method;
    if (cut_ < 0) return;
    const bool are_enough = are_heads_together(by_heads(q_), by_heads(k_), true);
    if (method_ == SequenceMethod::ulysses && !are_enough)
      refuse(op, fmt::format("ulysses must have as many key heads on each of {} ranks, got {} of the whole", ranks(), k_.sizes()[kHeads]));
    if (method_ == SequenceMethod::automatic) method_ = are_enough ? SequenceMethod::ulysses : SequenceMethod::gather;
    if (method_ == SequenceMethod::ring && (ranks() == 1 || k_.sizes()[kRows] == 0)) method_ = SequenceMethod::gather;
  }

  FlexResult forward() const {
    if (is_ring()) return ring();
    const Sharded q = queries(q_), k = keys(k_), v = keys(v_);
    const attention::FlexResult local = attention::flex(q.local(), k.local(), v.local(), options_of(places_of(q, k)), call_.stream);
    return result_of(local.out, local.lse, q.placements());
  }

  FlexGradients backward(const Sharded& grad_out, const FlexResult& result) const {
    check_placed(grad_out, "the gradient"), check_placed(result.out, "the result");
    if (result.lse.empty()) refuse(op_, "the result must have lse, got none");
    check_placed(result.lse, "lse");
    if (is_ring()) return ring_backward(grad_out, result);
    const Sharded q = queries(q_), k = keys(k_), v = keys(v_), grad = queries(grad_out), out = queries(result.out), lse = queries(result.lse);
    const attention::FlexGradients local = attention::flex_backward(grad.local(), q.local(), k.local(), v.local(), {.out = out.local(), .lse = lse.local()},
                                                                    options_of(places_of(q, k)), {}, call_.stream);
    auto of_keys = [&](const Tensor& gradient, const Sharded& of) {
      std::vector<Placement> placements = q.placements();
      if (method_ == SequenceMethod::gather && cut_ >= 0) placements[cut()] = partial();
      return restored(gradient, of.sizes(), placements, true);
    };
    return {restored(local.q, q_.sizes(), q.placements(), is_ulysses()), of_keys(local.k, k_), of_keys(local.v, v_)};
  }

 private:
  std::size_t cut() const { return static_cast<std::size_t>(cut_); }
  std::int64_t ranks() const { return q_.mesh().shape()[cut_]; }
  bool is_ulysses() const { return cut_ >= 0 && method_ == SequenceMethod::ulysses; }
  bool is_ring() const { return cut_ >= 0 && method_ == SequenceMethod::ring; }

  void check() {
    const attention::FlexOptions& flex = options_.flex;
    auto lack = [&](const char* what) { throw Error(ErrorCode::not_supported, op_, fmt::format("options must be without {}, got some", what)); };
    const attention::Varlen& varlen = flex.varlen;
    if (varlen.cu_seq_q.defined() || varlen.cu_seq_kv.defined() || varlen.seqused_kv.defined() || varlen.page_table.defined()) lack("varlen");
    if (flex.dropout_p > 0) lack("dropout");
    if (flex.return_max_scores) lack("return_max_scores");
    if (!flex.block_mask.empty() && flex.block_mask.mask_mod().empty()) lack("a block mask of lists alone");
    for (const Sharded* x : {&q_, &k_, &v_}) {
      if (x->sizes().rank() != 4)
        throw Error(ErrorCode::invalid_shape, op_, fmt::format("tensors must be (batch, heads, length, size), got shape {}", to_string(x->sizes())));
      check_mesh(op_, q_.mesh(), *x);
      if (x->placements() != q_.placements()) refuse(op_, "q, k and v must have the same placements, got others");
    }
    for (int d = 0; d < 3; ++d)
      if (k_.sizes()[d] != v_.sizes()[d])
        throw Error(ErrorCode::invalid_shape, op_,
                    fmt::format("v must have the batches, heads and length of k {}, got {}", to_string(k_.sizes()), to_string(v_.sizes())));
    const attention::BlockMask& blocks = flex.block_mask;
    if (!blocks.empty() && (blocks.q_len() != q_.sizes()[kRows] || blocks.kv_len() != k_.sizes()[kRows]))
      refuse(op_, fmt::format("the block mask must have the lengths {} and {}, got {} and {}", q_.sizes()[kRows], k_.sizes()[kRows], blocks.q_len(),
                              blocks.kv_len()));
    bool are_batches_cut = false;
    for (std::size_t i = 0; i < q_.placements().size(); ++i) {
      const Placement& p = q_.placements()[i];
      if (p.is_partial() || (p.is_shard() && p.dim > kRows))
        refuse(op_, fmt::format("placements must be replicated, or shards of batches, heads or rows, got {}", to_string(p)));
      are_batches_cut |= p.is_shard() && p.dim == kBatches;
      if (!p.is_shard() || p.dim != kRows) continue;
      if (cut_ >= 0) refuse(op_, "one dimension of the mesh at most must cut rows, got several");
      cut_ = static_cast<int>(i);
    }
    if (are_batches_cut && q_.sizes()[kBatches] != k_.sizes()[kBatches])
      refuse(op_, fmt::format("batches that are cut must be as many of q and k, got {} and {}", q_.sizes()[kBatches], k_.sizes()[kBatches]));
    if (options_.balanced && cut_ < 0) refuse(op_, "balanced tensors must be cut into shards of rows, got whole ones");
    if (!are_heads_together(layout_of(q_), layout_of(k_), false))
      refuse(op_, fmt::format("each rank's query heads must be those of its key heads, got {} and {} heads", q_.sizes()[kHeads], k_.sizes()[kHeads]));
  }
  void check_placed(const Sharded& x, const char* what) const {
    check_mesh(op_, q_.mesh(), x);
    if (x.placements() != q_.placements()) refuse(op_, fmt::format("{} must be placed as q, got another one", what));
  }

  std::vector<Placement> with_cut(const Placement& p) const {
    std::vector<Placement> placements = q_.placements();
    placements[cut()] = p;
    return placements;
  }
  Layout by_heads(const Sharded& x) const {
    Layout layout = layout_of(x);
    layout.placements = with_cut(shard(kHeads));
    return layout;
  }
  /// With whole sequences, in their own order.
  Sharded whole(const Sharded& x, const Placement& p) const {
    const Sharded made = x.redistribute(with_cut(p), call_);
    if (!options_.balanced) return made;
    return Sharded::from_local(from_balanced(made.local(), kRows, static_cast<int>(ranks()), call_.stream), made.mesh(), made.placements(), made.sizes());
  }
  Sharded queries(const Sharded& x) const { return is_ulysses() ? whole(x, shard(kHeads)) : x; }
  Sharded keys(const Sharded& x) const { return is_ulysses() ? whole(x, shard(kHeads)) : cut_ < 0 ? x : whole(x, replicate()); }
  /// What was computed with these placements, placed as q; `was_whole`: it has whole sequences.
  Sharded restored(const Tensor& local, const Dims& sizes, const std::vector<Placement>& placements, bool was_whole) const {
    const bool reorders = was_whole && options_.balanced;
    const Tensor ordered = reorders ? to_balanced(local, kRows, static_cast<int>(ranks()), call_.stream) : local;
    return Sharded::from_local(ordered, q_.mesh(), placements, sizes).redistribute(q_.placements(), call_);
  }
  FlexResult result_of(const Tensor& out, const Tensor& lse, const std::vector<Placement>& placements) const {
    Dims sizes = q_.sizes();
    sizes[3] = v_.sizes()[3];
    FlexResult result{.out = restored(out, sizes, placements, is_ulysses()), .lse = {}};
    if (options_.flex.return_lse) result.lse = restored(lse, {sizes[0], sizes[1], sizes[2]}, placements, is_ulysses());
    return result;
  }

  bool is_balanced(const Layout& layout) const { return options_.balanced && layout.placements[cut()].is_shard() && layout.placements[cut()].dim == kRows; }
  /// Rows of the whole that a cell has.
  Ranges rows_of(const Layout& layout, const Dims& cell) const {
    const Ranges given = layout.ranges(cell)[kRows];
    if (!is_balanced(layout)) return given;
    const Ranges order = balanced_order(layout.sizes[kRows], ranks());
    Ranges rows;
    for (const Range& r : given) append(rows, order, r.begin, r.end);
    return rows;
  }
  Places places_of(const Sharded& q, const Sharded& k) const { return places_of(layout_of(q), layout_of(k), q_.mesh().coordinate()); }
  /// `of_keys`: the cell whose keys they are.
  Places places_of(const Layout& q, const Layout& k, const Dims& of_keys) const {
    const Dims& cell = q_.mesh().coordinate();
    const std::vector<Ranges> ranges = q.ranges(cell);
    auto axis = [&](const Ranges& of, std::int64_t size, bool wants_table) { return Axis(of, size, wants_table, q_.local().device(), call_.stream); };
    // All ranks of balanced sequences have tables, so that their programs are the same.
    return {axis(ranges[kBatches], q.sizes[kBatches], false), axis(ranges[kHeads], q.sizes[kHeads], false),
            axis(rows_of(q, cell), q.sizes[kRows], is_balanced(q)), axis(rows_of(k, of_keys), k.sizes[kRows], is_balanced(k))};
  }
  attention::FlexOptions options_of(const Places& places, const Tensor& shift = {}) const {
    attention::FlexOptions flex = options_.flex;
    flex.score_mod = places.moved(flex.score_mod, shift), flex.mask_mod = places.moved(flex.mask_mod);
    if (flex.block_mask.empty()) return flex;
    const attention::BlockMask& blocks = options_.flex.block_mask;
    const attention::BlockMaskOptions of_part{.batch = blocks.kinds().size(0) == 1 ? 1 : places.batches.count,
                                              .heads = blocks.kinds().size(1) == 1 ? 1 : places.heads.count,
                                              .q_len = places.queries.count,
                                              .kv_len = places.keys.count,
                                              .block = blocks.block(),
                                              .device = q_.local().device()};
    const bool is_empty = std::min({of_part.batch, of_part.heads, of_part.q_len, of_part.kv_len}) == 0;
    flex.block_mask = is_empty ? attention::BlockMask() : create_block_mask(places.moved(blocks.mask_mod()), of_part, call_.stream);
    return flex;
  }

  // ring ------------------------------------------------------------------------------------------------------------

  const Group& group() const { return q_.mesh().group(cut_); }
  std::int64_t me() const { return q_.mesh().coordinate()[cut_]; }
  /// The cell that differs from this one in whose keys it has.
  Dims cell_of(std::int64_t rank) const {
    Dims cell = q_.mesh().coordinate();
    cell[cut_] = rank;
    return cell;
  }
  std::int64_t key_rows(std::int64_t rank) const { return layout_of(k_).local_sizes(cell_of(rank))[kRows]; }

  /// Memory for the keys and values of any rank, or for their gradients: what goes round. The largest part's rows are there.
  struct Block {
    Tensor all, k, v;
    Block rows(std::int64_t n) const { return {all, k.slice(kRows, 0, n), v.slice(kRows, 0, n)}; }
  };
  Block block(DType dtype) const {
    std::int64_t most = 0;
    for (std::int64_t r = 0; r < ranks(); ++r) most = std::max(most, key_rows(r));
    Dims of_k = k_.local().sizes(), of_v = v_.local().sizes();
    of_k[kRows] = of_v[kRows] = most;
    const std::int64_t keys = numel(of_k);
    const Tensor all = clutch::empty({keys + numel(of_v)}, {.dtype = dtype, .device = k_.local().device()}, call_.stream);
    return {all, all.slice(0, 0, keys).reshape(of_k), all.slice(0, keys, all.numel()).reshape(of_v)};
  }
  Block own_keys() const {
    const Block made = block(k_.dtype()), mine = made.rows(key_rows(me()));
    copy_(mine.k, k_.local(), {}, call_.stream), copy_(mine.v, v_.local(), {}, call_.stream);
    return made;
  }
  /// Begins to send a block to the next rank and to get that of the one before, while the stream goes on.
  Work pass(const Block& out, const Block& in, int tag) const {
    CallOptions at{.stream = call_.stream, .async = true, .timeout = call_.timeout, .where = call_.where};
    Batch batch(group(), at);
    at.async = false;
    group().send(out.all, static_cast<int>((me() + 1) % ranks()), tag, at);
    group().recv(in.all, static_cast<int>((me() + ranks() - 1) % ranks()), tag, at);
    return batch.end();
  }
  /// Calls f with the number of the step and, of each rank from this one on downwards, the places and the keys, while those of the next one come.
  template <class F>
  void go_round(F&& f) const {
    const Layout of_q = layout_of(q_), of_k = layout_of(k_);
    Block here = own_keys();
    for (std::int64_t step = 0; step < ranks(); ++step) {
      const bool goes_on = step + 1 < ranks();
      const Block next = goes_on ? block(k_.dtype()) : Block{};
      const Work passing = goes_on ? pass(here, next, kKeysTag) : Work();
      const std::int64_t rank = (me() - step + ranks()) % ranks();
      f(step, places_of(of_q, of_k, cell_of(rank)), here.rows(key_rows(rank)));
      passing.wait(call_.stream);
      here = next;
    }
  }

  FlexResult ring() const {
    Tensor out, lse;
    go_round([&](std::int64_t, const Places& places, const Block& keys) {
      if (out.defined() && keys.k.size(kRows) == 0) return;
      attention::FlexOptions flex = options_of(places);
      flex.return_lse = true;
      const attention::FlexResult part = attention::flex(q_.local(), keys.k, keys.v, flex, call_.stream);
      const Stream& stream = call_.stream;
      if (!out.defined()) {
        out = part.out.to(part.lse.dtype(), {}, stream), lse = part.lse;
        return;
      }
      // A row without keys has the lse -inf, and counts for nothing.
      const auto finite = [](const Expr& x) { return select(x == -std::numeric_limits<double>::infinity(), Expr(0), x); };
      const Tensor both = clutch::map(
          [&](const Expr& a, const Expr& b) {
            const Expr most = finite(max(a, b));
            return log(exp(a - most) + exp(b - most)) + most;
          },
          {lse, part.lse}, {}, stream);
      map_out(
          out, [&](const Expr& x, const Expr& a, const Expr& y, const Expr& b, const Expr& all) { return x * exp(a - finite(all)) + y * exp(b - finite(all)); },
          {out, lse.unsqueeze(-1), part.out, part.lse.unsqueeze(-1), both.unsqueeze(-1)}, {}, stream);
      lse = both;
    });
    return result_of(out.to(q_.dtype(), {}, call_.stream), lse, q_.placements());
  }

  FlexGradients ring_backward(const Sharded& grad_out, const FlexResult& result) const {
    const Stream& stream = call_.stream;
    const Tensor& lse = result.lse.local();
    const DType sums = lse.dtype();
    // Scores less lse have an lse of 0, which flex_backward() takes as it is: it makes sums of rows whose lse is large again, of these keys alone.
    const Tensor shift = clutch::map([](const Expr& x) { return select(isinf(x), Expr(0), x); }, {lse}, {}, stream);
    const attention::FlexResult shifted{.out = result.out.local(), .lse = zeros(lse.sizes(), {.dtype = sums, .device = lse.device()}, stream)};
    const auto add_to = [&](const Tensor& sum, const Tensor& x) {
      map_out(
          sum, [](const Expr& a, const Expr& b) { return a + b; }, {sum, x}, {}, stream);
    };
    const Tensor of_q = zeros(q_.local().sizes(), {.dtype = sums, .device = lse.device()}, stream);
    // The keys' gradients go round behind them; the sums that a rank passes on come home at the end.
    Block gradients = block(sums), coming{};
    fill_(gradients.all, 0, {}, stream);
    Work passing;
    go_round([&](std::int64_t step, const Places& places, const Block& keys) {
      const bool has_work = keys.k.size(kRows) > 0 && q_.local().numel() > 0;
      const attention::FlexGradients part =
          !has_work ? attention::FlexGradients{}
                    : attention::flex_backward(grad_out.local(), q_.local(), keys.k, keys.v, shifted, options_of(places, shift), {}, stream);
      if (step > 0) passing.wait(stream), gradients = coming;
      if (has_work) {
        const Block mine = gradients.rows(keys.k.size(kRows));
        add_to(of_q, part.q), add_to(mine.k, part.k), add_to(mine.v, part.v);
      }
      coming = block(sums);
      passing = pass(gradients, coming, kGradientsTag);
    });
    passing.wait(stream);
    const Block mine = coming.rows(key_rows(me()));
    const auto made = [&](const Tensor& local, const Sharded& like) {
      return Sharded::from_local(local.to(like.dtype(), {}, stream).contiguous(stream), like.mesh(), like.placements(), like.sizes());
    };
    return {made(of_q, q_), made(mine.k, k_), made(mine.v, v_)};
  }

  const char* op_;
  const Sharded &q_, &k_, &v_;
  const FlexOptions& options_;
  CallOptions call_;
  int cut_ = -1;  ///< the dimension of the mesh that cuts sequences; -1: none
  SequenceMethod method_ = SequenceMethod::automatic;
};

Tensor reordered(const char* op, const Tensor& tensor, int dim, int ranks, bool back, const Stream& stream) {
  return named(op, [&] {
    if (ranks < 1) refuse(op, fmt::format("ranks must be 1 or more, got {}", ranks));
    const int rank = tensor.rank(), at = dim < 0 ? dim + rank : dim;
    if (at < 0 || at >= rank) refuse(op, fmt::format("the dimension must be one of {}, got {}", rank, dim));
    const Ranges order = balanced_order(tensor.size(at), ranks);
    return taken(tensor, at, back ? inverse_of(order) : order, stream);
  });
}

}  // namespace

FlexResult flex(const Sharded& q, const Sharded& k, const Sharded& v, const FlexOptions& options, const CallOptions& call) {
  constexpr const char* kOp = "dist::flex";
  return named(kOp, [&] { return Attention(kOp, q, k, v, options, call).forward(); });
}

FlexGradients flex_backward(const Sharded& grad_out, const Sharded& q, const Sharded& k, const Sharded& v, const FlexResult& result, const FlexOptions& options,
                            const CallOptions& call) {
  constexpr const char* kOp = "dist::flex_backward";
  return named(kOp, [&] { return Attention(kOp, q, k, v, options, call).backward(grad_out, result); });
}

Tensor to_balanced(const Tensor& tensor, int dim, int ranks, const Stream& stream) { return reordered("dist::to_balanced", tensor, dim, ranks, false, stream); }
Tensor from_balanced(const Tensor& tensor, int dim, int ranks, const Stream& stream) {
  return reordered("dist::from_balanced", tensor, dim, ranks, true, stream);
}

}}}  // namespace clutch::v0::dist
