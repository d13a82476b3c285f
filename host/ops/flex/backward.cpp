// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/scatter.hpp>

#include "block_mask/args.h"
#include "ops/flex/matrix.hpp"
#include "runtime/quirks.hpp"

#include <algorithm>
#include <array>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// Sequences of packed rows: for each, the first row and the length, (n, 1) each.
struct Sequences {
  std::int64_t rows, longest;
  Tensor first = {}, length = {}, index = {};  ///< undefined if batches are sequences; index: (n longest), the row at each position of each sequence

  Sequences(const Tensor& starts, std::int64_t of_rows, std::int64_t of_longest, const Stream& stream) : rows(of_rows), longest(of_longest) {
    if (!starts.defined()) return;
    const Tensor begin = starts.slice(0, 0, starts.numel() - 1).unsqueeze(1), end = starts.slice(0, 1, starts.numel()).unsqueeze(1);
    first = map([&](Expr x) { return clamp(x, 0, param(rows)); }, {begin}, {}, stream);
    length = map([&](Expr x, Expr at) { return clamp(x - at, 0, min(param(longest), param(rows) - at)); }, {end, first}, {}, stream);
    const Tensor places = arange(0, static_cast<double>(longest), 1, {.dtype = DType::i32, .device = starts.device()}, stream).unsqueeze(0);
    index = map([&](Expr at, Expr i) { return min(at + i, param(rows - 1)); }, {first, places}, {}, stream).reshape({first.size(0) * longest});
  }
  /// (1, h, rows, d) as (n, h, longest, d). Positions after a sequence's end hold rows of other sequences.
  Tensor spread(const Tensor& t, const Stream& stream) const {
    if (!first.defined()) return t;
    const Tensor all = index_select(t.squeeze(0), 1, index, stream);
    return all.reshape({t.size(1), first.size(0), longest, t.size(3)}).transpose(0, 1);
  }
  /// True if sequence b has a row i.
  Expr has(const Expr& b, const Expr& i) const { return first.defined() ? i < captured(length)[{b, 0}] : i >= 0; }
};

/// Sums of each row, with which a weight is e^(score - max - log_sum).
struct RowSums {
  Tensor max, log_sum;
};
RowSums row_sums(const BuiltPlan& plan, const Mods& mods, const Tensor& q, const Tensor& k, const attention::FlexResult& results, const Checked& c,
                 const attention::FlexOptions& options, const Stream& stream) {
  const TensorOptions sums{.dtype = results.lse.dtype(), .device = stream.device()};
  const RowSums made{empty(c.lines(), sums, stream), empty(c.lines(), sums, stream)};
  FlexArgs args = args_of(q, k, k, q, c, options, plan, false);
  // Rows may be gone through twice from given maxima, for which loops that end early have no time.
  args.wants_max = results.max_scores.defined() && !(c.runtime->traits().quirks & kQuirkLoopsEndEarly);
  args.tasks = static_cast<std::uint64_t>(c.batch * c.heads * (plan.entry == "flex_items" ? c.q_len : args.tiles));
  Encoder encoder(stream, "flex_backward");
  encoder.moves(bytes_of({&made.max, &made.log_sum, &q, &k, &results.lse}));
  encoder.output(made.max).output(made.log_sum).input(q).input(k).input(results.lse).input(args.wants_max ? results.max_scores : k);
  bind_rest(encoder, args, options, q, c, mods, q.dtype(), false);
  encoder.dispatch(plan.kernel, geometry_of(plan, args.tasks));
  return made;
}

}  // namespace

attention::FlexGradients differentiate_flex(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const attention::FlexResult& results,
                                            const Checked& c, const attention::FlexOptions& options, const attention::FlexBackwardOptions& backward,
                                            const Stream& stream) {
  check_flex_implementation(options.implementation);
  const TensorOptions stored{.dtype = q.dtype(), .device = stream.device()};
  const DType sums = compute_dtype(q.dtype(), kFlex);
  attention::FlexGradients made{.q = empty(q.sizes(), stored, stream), .k = empty(k.sizes(), stored, stream), .v = empty(v.sizes(), stored, stream)};
  const ExprFunction& score = options.score_mod.function(q.dtype());
  const bool wants_captured = backward.captured_gradients && !score.empty();
  if (c.q_len == 0 || c.kv_len == 0 || c.batch == 0 || c.heads == 0 || c.ev == 0) {
    for (const Tensor* t : {&made.q, &made.k, &made.v}) fill_(*t, 0, {}, stream);
    if (wants_captured)
      for (const Tensor& t : score.body()->tensors)
        if (is_floating(t.dtype())) made.captured.push_back(zeros(t.sizes(), {.dtype = t.dtype(), .device = stream.device()}, stream));
    return made;
  }
  const FlexDropout dropout{.p = options.dropout_p, .state = results.dropout_state, .batch = c.batch, .heads = c.heads, .q_len = c.q_len, .kv_len = c.kv_len};
  // delta of FlashAttention-2: for each row the sum of gradient times result, minus the gradient of its lse.
  Tensor delta = reduce(
      Reduce::sum, [](Expr g, Expr o) { return g * o; }, {grad, results.out}, {.dims = {-1}, .dtype = {sums}}, stream);
  if (backward.grad_lse.defined()) delta = map([](Expr d, Expr g) { return d - g; }, {delta, backward.grad_lse}, {}, stream);
  const Mods of_sums(c, options, q.dtype(), {});
  Mods mods(c, options, q.dtype(), dropout);
  if (!mods.score.empty()) mods.back = mods.score.backward();
  const bool direct = (q.strides()[3] == 1 || c.e == 1) && (grad.strides()[3] == 1 || c.ev == 1) && c.e % 8 == 0 && c.ev % 8 == 0;
  FlexProblem matrix;
  if (c.q_len > kFewQueries) note_matrix_instructions(matrix, c, options, {&q, &k, &v, &grad});
  auto problem_of = [&](FlexPart part) {
    const bool sums_only = part == FlexPart::sums;
    FlexProblem p = (sums_only ? of_sums : mods).problem(c, options, q.dtype());
    p.part = part, p.direct = direct && !sums_only, p.numbers = matrix.numbers, p.layout = matrix.layout, p.stand_in = matrix.stand_in;
    note_matrix_tiles(p, c);
    return p;
  };
  auto built = [&](FlexPart part) -> const BuiltPlan& {
    return flex_plan(*c.runtime, problem_of(part), part == FlexPart::sums ? of_sums : mods, options.implementation);
  };
  auto build_all = [&] {
    if (built(FlexPart::backward).entry == "flex_matrix_dq") built(FlexPart::keys), built(FlexPart::sums);
  };
  if (matrix.layout != MatrixLayout::none && options.implementation.empty() && !builds_matrix(build_all)) matrix = {};
  const RowSums of_rows = row_sums(built(FlexPart::sums), of_sums, q, k, results, c, options, stream);
  if (wants_captured) {
    const attention::BlockMask::State* blocks = options.block_mask.state().get();
    const Sequences queries(options.varlen.cu_seq_q, c.q_rows, c.q_len, stream), keys(options.varlen.cu_seq_kv, c.kv_rows, c.kv_len, stream);
    auto allowed = [&](const Expr& b, const Expr& h, const Expr& i, const Expr& j) {
      Expr there = options.mask_mod(b, h, i, j);
      if (c.ragged) there = there & queries.has(b, i) & keys.has(b, j);
      if (options.varlen.seqused_kv.defined()) there = there & (j < captured(options.varlen.seqused_kv)[b]);
      if (!blocks) return there;
      const Expr kind = captured(blocks->kinds)[{b, h, trunc_div(i, param(blocks->block.q)), trunc_div(j, param(blocks->block.kv))}];
      return there & ((kind == int{KIND_FULL}) | ((kind == int{KIND_PARTIAL}) & blocks->mask(b, h, i, j)));
    };
    auto of_lines = [&](const Tensor& t) { return t.defined() ? queries.spread(t.unsqueeze(-1), stream).squeeze(-1) : t; };
    made.captured = captured_gradients({.score = score,
                                        .allowed = allowed,
                                        .q = queries.spread(q, stream),
                                        .k = keys.spread(k, stream),
                                        .v = keys.spread(v, stream),
                                        .grad = queries.spread(grad, stream),
                                        .grad_lse = of_lines(backward.grad_lse),
                                        .scale = scale_of(options, c),
                                        .sums = sums,
                                        .dropout = dropout},
                                       stream);
  }
  const std::int64_t key_heads = (c.shared() ? 1 : c.batch) * (c.heads / c.gqa_factor);
  // The kernels' loops skip keys that no sequence reads, so their gradients are set to 0 here.
  if (c.ragged)
    for (const Tensor* t : {&made.k, &made.v}) fill_(*t, 0, {}, stream);
  auto launch = [&](const BuiltPlan& plan, FlexArgs& args, bool by_keys, std::initializer_list<const Tensor*> gradients, std::int64_t tasks, double flops) {
    args.tasks = static_cast<std::uint64_t>(tasks);
    Encoder encoder(stream, "flex_backward");
    encoder.moves(bytes_of(gradients) + bytes_of({&q, &k, &v, &grad, &of_rows.max, &of_rows.log_sum, &delta}));
    for (const Tensor* t : gradients) encoder.output(*t);
    encoder.input(q).input(k).input(v).input(grad).input(of_rows.max).input(of_rows.log_sum).input(delta);
    bind_rest(encoder, args, options, q, c, mods, q.dtype(), by_keys);
    encoder.flops(flops).dispatch(plan.kernel, geometry_of(plan, args.tasks));
  };
  auto args_for = [&](const BuiltPlan& plan, bool by_keys) { return args_of(q, k, v, grad, c, options, plan, by_keys); };
  const BuiltPlan& plan = built(FlexPart::backward);
  if (plan.entry != "flex_lanes_backward") {
    // Computes the gradients of keys, then of queries. Scores are computed twice, but no sum spans several items.
    const bool tiles = by_groups(plan.entry);
    if (!tiles) {
      check_items(c, plan, c.batch * c.heads * c.q_len, c.kv_len, c.e + c.ev, c.e);
      check_items(c, plan, key_heads * c.kv_len, c.q_len * c.gqa_factor * (c.shared() ? c.batch : 1), c.e + c.ev, std::max(c.e, c.ev));
    }
    const BuiltPlan& of_keys = built(FlexPart::keys);
    auto tasks_of = [&](const FlexArgs& args, FlexPart part) {
      return args.tiles * (plan.entry == "flex_matrix_dq" ? flex_matrix_slices(problem_of(part), c.e, c.ev) : 1);
    };
    FlexArgs by_keys = args_for(of_keys, true), by_queries = args_for(plan, false);
    // The second launch makes the scores and their gradients again; of the algorithm's five products it counts the one that is its own.
    launch(of_keys, by_keys, true, {&made.k, &made.v}, key_heads * (tiles ? tasks_of(by_keys, FlexPart::keys) : c.kv_len), c.flops(2, 2));
    launch(plan, by_queries, false, {&made.q}, c.batch * c.heads * (tiles ? tasks_of(by_queries, FlexPart::backward) : c.q_len), c.flops(1, 0));
    return made;
  }
  FlexArgs args = args_for(plan, true);
  args.part_stride = blocks_of(c.e, std::int64_t{2} * plan.tuning.width) * 2 * plan.tuning.width;
  // Several items for each core. Items of one head have partial sums of the queries' gradients, which are added afterwards.
  args.chunks = std::clamp<std::int64_t>(blocks_of(4 * std::int64_t{c.runtime->traits().compute_units}, key_heads), 1, args.tiles);
  const bool in_place = args.chunks == 1 && args.part_stride == c.e && q.dtype() == sums;
  const Tensor parts_of_q =
      in_place ? made.q : empty({args.chunks, c.q_batch, c.heads, c.q_rows, args.part_stride}, {.dtype = sums, .device = stream.device()}, stream);
  launch(plan, args, true, {&parts_of_q, &made.k, &made.v}, key_heads * args.chunks, c.flops(3, 2));
  if (!in_place) {
    const Aside sums_parts;
    const Tensor all = parts_of_q.slice(4, 0, c.e);
    if (args.chunks == 1)
      copy_(made.q, all.squeeze(0), {}, stream);
    else
      reduce_out(made.q, Reduce::sum, identity(sums), std::span(&all, 1), {.dims = {0}}, stream);
  }
  return made;
}

}}}  // namespace clutch::v0::detail
