// SPDX-License-Identifier: Apache-2.0
#include "dist/group_calls.hpp"
#include "dist/row_kernels.hpp"

#include <clutch/dist/moe.hpp>

#include <array>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {

/// What the ranks show each other of their calls with one memory: two calls are under way at most.
struct RowNotes {
  Symmetric words;
  std::int64_t each = 0;  ///< words of a call
  std::uint64_t calls = 0;
  std::array<Work, 2> last;
};

}  // namespace detail

namespace {

using namespace detail;

struct RowCall {
  GroupCalls call;
  RowOrder order;
  Tensor out, out_splits_offsets, in, splits;
  std::int64_t row = 1;  ///< elements
};

/// Also for tensors of rank 1, whose rows are elements.
std::int64_t row_of(const GroupCalls& call, const Tensor& tensor, const char* what) {
  call.check(tensor.rank() >= 1, ErrorCode::invalid_shape, "{} must have rows, got rank 0", what);
  return call.row_of(tensor, tensor.size(0), what);
}

void check_splits(const GroupCalls& call, const Tensor& tensor, const Tensor& in, const char* what) {
  call.check_tensor(tensor, what);
  call.check(tensor.dtype() == DType::i64, ErrorCode::invalid_dtype, "{} must be i64, got {}", what, clutch::name(tensor.dtype()));
  call.check(tensor.device() == in.device(), ErrorCode::device_mismatch, "{} must be on the input's device, got one on another", what);
}

RowCall checked(const char* op, const Group& group, const Tensor& out, const Tensor& out_splits_offsets, const Tensor& in, const Tensor& splits, RowOrder order,
                bool one_expert) {
  const GroupCalls call{op, group};
  order.ranks = call.impl().size();
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in);
  const char* const splits_name = order.has_offsets ? "in_splits_offsets" : "in_splits";
  check_splits(call, splits, in, splits_name), check_splits(call, out_splits_offsets, in, "out_splits_offsets");
  const std::int64_t row = row_of(call, in, "the input");
  bool is_alike = out.rank() == in.rank();
  for (int d = 1; is_alike && d < in.rank(); ++d) is_alike = out.size(d) == in.size(d);
  call.check(is_alike, ErrorCode::invalid_shape, "rows of out must have the sizes of the input's, {}, got {}", to_string(in.sizes()), to_string(out.sizes()));
  call.check(in.is_contiguous() && out.is_contiguous() && out_splits_offsets.is_contiguous(), ErrorCode::invalid_argument,
             "the input, out and out_splits_offsets must be contiguous, got strided ones");
  call.units(in, row);
  const int rank = order.has_offsets ? 2 : 1;
  const bool has_shape = splits.rank() == rank && (rank == 1 || splits.size(0) == 2) && splits.size(-1) > 0 && splits.size(-1) % order.ranks == 0;
  call.check(has_shape && (!one_expert || splits.size(-1) == order.ranks), ErrorCode::invalid_shape, "{} must have shape ({}{}) for {} ranks, got {}",
             splits_name, rank == 2 ? "2, " : "", one_expert ? "ranks" : "ranks x experts", order.ranks, to_string(splits.sizes()));
  order.experts = splits.size(-1) / order.ranks;
  call.check(out_splits_offsets.sizes() == Dims{2, order.blocks()}, ErrorCode::invalid_shape, "out_splits_offsets must have shape (2, {}), got {}",
             order.blocks(), to_string(out_splits_offsets.sizes()));
  call.check(order.align >= 0, ErrorCode::invalid_argument, "major_align must be 0 or more, got {}", order.align);
  call.check_overlap(out, in, false, -1), call.check_overlap(out_splits_offsets, splits, false, -1);
  return {.call = call, .order = order, .out = out, .out_splits_offsets = out_splits_offsets, .in = in, .splits = splits, .row = row};
}

/// A plan that agrees among ranks where they make one call, whatever their rows.
std::shared_ptr<CallPlan> plan_of(const RowCall& c, const CallOptions& options) {
  const auto plan = c.call.plan(CallKind::all_to_all, c.in, options);
  const std::int64_t facts[] = {c.order.experts, c.order.align, c.row, c.order.in_by_rank, c.order.out_by_rank, c.order.has_offsets};
  plan->header.rows = hash_of(facts);
  return plan;
}

Error refused(const char* op, const std::string& why) { return {ErrorCode::invalid_shape, op, why}; }

// ---- by kernels ----

RowNotes& notes_of(const RowCall& c, SymmetricImpl& memory, std::int64_t words) {
  std::shared_ptr<RowNotes>& notes = memory.row_notes();
  if (!notes || notes->each < words) {
    // Calls that read the former one have ended when all ranks have come here.
    if (notes)
      for (const Work& work : notes->last)
        if (work.status() == Work::Status::waiting || work.status() == Work::Status::running) work.synchronize();
    const auto calls = static_cast<std::int64_t>(std::tuple_size_v<decltype(RowNotes::last)>);
    notes =
        std::make_shared<RowNotes>(RowNotes{.words = named(c.call.op,
                                                           [&] {
                                                             return Symmetric({calls, words}, c.call.group, {.dtype = DType::i64, .device = c.in.device()}, 1);
                                                           }),
                                            .each = words,
                                            .calls = 0,
                                            .last = {}});
  }
  return *notes;
}

Work by_kernels(const RowCall& c, const std::shared_ptr<SymmetricImpl>& memory, const CallOptions& options) {
  const RowWords places{c.order};
  const auto n = static_cast<int>(c.order.ranks), me = c.call.impl().rank();
  const auto plan = plan_of(c, options);
  RowNotes& notes = notes_of(c, *memory, places.all());
  const SymmetricImpl& shared = *notes.words.impl();
  if (!shared.all_direct()) c.call.refuse(ErrorCode::not_supported, "kernels of the ranks must reach each other's memory, got ranks whose do not any more");
  const auto slot = static_cast<std::size_t>(notes.calls++ % notes.last.size());
  Work& last = notes.last[slot];
  // Another stream's call may still be under way.
  if (const Work::Status status = last.status(); status == Work::Status::waiting || status == Work::Status::running) last.wait(options.stream);
  auto words_of = [&](int rank, std::int64_t begin, std::int64_t end) {
    return shared.part(rank).select(0, static_cast<std::int64_t>(slot)).slice(0, begin, end);
  };
  const Tensor own = words_of(me, 0, places.all());
  std::vector<Tensor> shown, sources;
  for (int r = 0; r < n; ++r) shown.push_back(words_of(r, 0, places.shown())), sources.push_back(memory->same_view(c.in, r));

  named(c.call.op, [&] { show_rows(c.order, own, c.splits.contiguous(options.stream), c.in.size(0), c.out.size(0), options.stream); });
  c.call.launch_by(*plan, *memory, c.in,
                   [order = c.order, out = c.out, out_splits_offsets = c.out_splits_offsets, own, places, shown, sources, me](const Stream& stream) {
                     place_rows(order, own, out_splits_offsets, shown, me, stream);
                     const Tensor table = own.slice(0, places.table(), places.all()), verdicts = own.slice(0, places.verdicts(), places.table());
                     copy_rows(order, out, table, verdicts, sources, stream);
                   });
  plan->verdict = [op = c.call.op, n, words = notes.words.impl(), at = own.byte_offset() / 8 + static_cast<std::uint64_t>(places.verdicts())] {
    std::optional<Error> why;
    for (int r = 0; r < n && !why; ++r)
      if (const auto text = refusal_of(words->read_word(at + static_cast<std::uint64_t>(r)), r)) why = refused(op, *text);
    return why;
  };
  last = c.call.run(plan, c.out, c.in, options);
  return last;
}

// ---- by messages ----

/// What rank `of` shows, as show_rows() writes it.
struct Shown {
  const RowOrder& order;
  std::span<const std::int64_t> words;  ///< of all ranks
  std::size_t at(std::int64_t rank) const { return static_cast<std::size_t>(rank * RowWords{order}.shown()); }
  std::int64_t capacity(std::int64_t of) const { return words[at(of)]; }
  std::int64_t rows(std::int64_t of, std::int64_t to, std::int64_t expert) const { return words[pair(of, to, expert)]; }
  std::int64_t first(std::int64_t of, std::int64_t to, std::int64_t expert) const { return words[pair(of, to, expert) + 1]; }

 private:
  std::size_t pair(std::int64_t of, std::int64_t to, std::int64_t expert) const {
    return at(of) + static_cast<std::size_t>(RowWords::kPairs + 2 * (to * order.experts + expert));
  }
};

std::vector<std::int64_t> shown_of(const RowCall& c, const Stream& stream) {
  const std::vector<std::int64_t> splits = c.splits.to_host<std::int64_t>(stream);
  const RowOrder& order = c.order;
  std::vector<std::int64_t> words(static_cast<std::size_t>(RowWords{order}.shown()));
  words[0] = c.out.size(0);
  std::int64_t first = 0;
  const std::int64_t in_rows = c.in.size(0), blocks = order.blocks();
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t rows = splits[static_cast<std::size_t>(i)], to = order.in_by_rank ? i : i % order.ranks * order.experts + i / order.ranks;
    if (order.has_offsets) first = splits[static_cast<std::size_t>(blocks + i)];
    const bool fits = rows == 0 || (rows > 0 && first >= 0 && first <= in_rows && rows <= in_rows - first);
    words[static_cast<std::size_t>(RowWords::kPairs + 2 * to)] = fits ? rows : -1;
    words[static_cast<std::size_t>(RowWords::kPairs + 2 * to + 1)] = first;
    if (fits) first += rows;
  }
  return words;
}

/// Where the rows for a rank go, and the verdict of it.
struct Placed {
  std::vector<std::int64_t> rows, begins;  ///< of blocks of the output
  std::int64_t verdict = 0;
};
Placed placed(const RowOrder& order, const Shown& shown, std::int64_t to) {
  Placed result;
  std::int64_t at = 0, wrong = 0;
  for (std::int64_t major = 0; major < (order.out_by_rank ? order.ranks : order.experts); ++major) {
    std::int64_t taken = 0;
    for (std::int64_t minor = 0; minor < (order.out_by_rank ? order.experts : order.ranks); ++minor) {
      const std::int64_t from = order.out_by_rank ? major : minor, rows = shown.rows(from, to, order.out_by_rank ? minor : major);
      if (rows < 0 && wrong == 0) wrong = from + 1;
      result.rows.push_back(std::max<std::int64_t>(rows, 0)), result.begins.push_back(at + taken);
      taken += result.rows.back();
    }
    at += order.align > 0 ? std::max((taken + order.align - 1) / order.align * order.align, order.align) : taken;
  }
  result.verdict = wrong != 0 ? wrong : at > shown.capacity(to) ? -at : 0;
  return result;
}

/// A table as place_rows() writes it.
Tensor table_of(std::span<const std::int64_t> rows, std::span<const std::int64_t> from, std::span<const std::int64_t> to, const Stream& stream) {
  std::vector<std::int64_t> table;
  std::int64_t dense = 0;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    table.insert(table.end(), {dense, from[b], to[b]});
    dense += rows[b];
  }
  table.push_back(dense);
  const auto words = static_cast<std::int64_t>(table.size());
  return from_host(table, {words}, stream.device(), stream);
}

Tensor rows_like(const Tensor& tensor, std::int64_t rows, const Stream& stream) {
  Dims sizes = tensor.sizes();
  sizes[0] = rows;
  return clutch::empty(sizes, {.dtype = tensor.dtype(), .device = tensor.device()}, stream);
}

Work by_messages(const RowCall& c, const CallOptions& options) {
  GroupImpl& g = c.call.impl();
  const RowOrder& order = c.order;
  const std::int64_t n = order.ranks, me = g.rank();
  const Stream& stream = options.stream;
  const auto plan = plan_of(c, options);
  plan->rows = shown_of(c, stream);
  const std::vector<std::int64_t> words = g.exchange_rows(*plan);
  const Shown shown{order, words};
  for (std::int64_t r = 0; r < n; ++r)
    if (const auto why = refusal_of(placed(order, shown, r).verdict, static_cast<int>(r))) throw refused(c.call.op, *why);
  const Placed mine = placed(order, shown, me);

  std::vector<std::int64_t> in_rows(static_cast<std::size_t>(n)), out_rows(in_rows), sent, sent_from, sent_to, come_from(mine.rows.size());
  std::int64_t behind = 0, received = 0;
  bool is_dense = true;
  for (std::int64_t p = 0; p < n; ++p)
    for (std::int64_t e = 0; e < order.experts; ++e) {
      const std::int64_t rows = shown.rows(me, p, e), come = shown.rows(p, me, e), block = order.out_by_rank ? p * order.experts + e : e * n + p;
      is_dense = is_dense && (rows == 0 || shown.first(me, p, e) == behind);
      sent.push_back(rows), sent_from.push_back(rows == 0 ? 0 : shown.first(me, p, e)), sent_to.push_back(behind);
      come_from[static_cast<std::size_t>(block)] = received;
      in_rows[static_cast<std::size_t>(p)] += rows, out_rows[static_cast<std::size_t>(p)] += come;
      behind += rows, received += come;
    }
  return named(c.call.op, [&] {
    // Blocks that are one behind the other need no copy.
    Tensor outgoing = c.in.slice(0, 0, std::min(behind, c.in.size(0)));
    if (!is_dense) {
      outgoing = rows_like(c.in, behind, stream);
      copy_rows(order, outgoing, table_of(sent, sent_from, sent_to, stream), {}, {c.in}, stream);
    }
    const bool lands = mine.begins == come_from;
    const Tensor incoming = lands ? c.out.slice(0, 0, received) : rows_like(c.out, received, stream);
    const Work work =
        c.call.group.all_to_all_v_out(incoming, outgoing, out_rows, in_rows, {.stream = stream, .timeout = options.timeout, .where = options.where});
    if (!lands) copy_rows(order, c.out, table_of(mine.rows, come_from, mine.begins, stream), {}, {incoming}, stream);
    std::vector<std::int64_t> both = mine.rows;
    both.insert(both.end(), mine.begins.begin(), mine.begins.end());
    c.out_splits_offsets.write(std::as_bytes(std::span(both)), stream);
    work.synchronize(), stream.synchronize();
    return work;
  });
}

Work exchange(const RowCall& c, const CallOptions& options) {
  CallOptions at = options;
  if (at.stream.empty()) at.stream = current_stream(c.in.device());
  const bool is_asked = at.algorithm == Algorithm::kernel;
  c.call.check(is_asked || at.algorithm == Algorithm::automatic || at.algorithm == Algorithm::direct, ErrorCode::invalid_argument,
               "the algorithm must be automatic, kernel or direct, got another");
  c.call.check(!at.stream.is_capturing(), ErrorCode::invalid_argument,
               "the stream must not be capturing, got one that is: splits are read when the call is made");
  c.call.check(at.stream.device() == c.in.device(), ErrorCode::device_mismatch, "the stream must be of the tensors' device, got one of another");
  const auto memory = at.algorithm == Algorithm::direct ? nullptr : c.call.impl().find(c.in);
  if (memory && memory->all_direct()) return by_kernels(c, memory, at);
  c.call.check(!is_asked, ErrorCode::invalid_argument,
               "Algorithm::kernel must have an input in Symmetric memory that all ranks reach, got one in other memory");
  return by_messages(c, at);
}

}  // namespace

Work all_to_all_v(const Tensor& out, const Tensor& out_splits_offsets, const Tensor& in, const Tensor& in_splits, const Group& group,
                  const CallOptions& options) {
  return exchange(checked("dist::all_to_all_v", group, out, out_splits_offsets, in, in_splits, {}, true), options);
}

Work dispatch(const Tensor& out, const Tensor& out_splits_offsets, const Tensor& in, const Tensor& in_splits, const Group& group, std::int64_t major_align,
              const CallOptions& options) {
  const RowOrder order{.align = major_align, .in_by_rank = true, .out_by_rank = false};
  return exchange(checked("dist::dispatch", group, out, out_splits_offsets, in, in_splits, order, false), options);
}

Work combine(const Tensor& out, const Tensor& out_splits_offsets, const Tensor& in, const Tensor& in_splits_offsets, const Group& group,
             const CallOptions& options) {
  const RowOrder order{.in_by_rank = false, .out_by_rank = true, .has_offsets = true};
  return exchange(checked("dist::combine", group, out, out_splits_offsets, in, in_splits_offsets, order, false), options);
}

}}}  // namespace clutch::v0::dist
