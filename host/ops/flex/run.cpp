// SPDX-License-Identifier: Apache-2.0
// Attention on the device: plans, arguments of the kernels, and the forward pass.
#include "encode/cost.hpp"
#include "ops/flex/call.hpp"
#include "ops/flex/matrix.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

void set_strides(std::int64_t (&strides)[4], const Tensor& t) {
  for (int d = 0; d < 4; ++d) strides[d] = t.sizes()[d] == 1 ? 0 : t.strides()[d];
  if (t.sizes()[3] == 1) strides[3] = 1;
}

std::uint64_t id_of(const ExprFunction& f) { return f.empty() ? 0 : f.body()->id; }

std::uint8_t size_class(const Checked& c) {
  std::uint8_t i = 0;
  while (i < kFlexClasses.size() && kFlexClasses[i].most < std::max(c.e, c.ev)) ++i;
  return i;
}

/// True if numbers of tasks, of which a line has 16 at most, or rows of a block or of a page may need more than 32 bits.
bool needs_wide_tasks(const Checked& c, const attention::FlexOptions& o) {
  constexpr std::int64_t kMost = std::int64_t{1} << 28;
  const double lines = static_cast<double>(c.batch) * static_cast<double>(c.heads) * static_cast<double>(std::max(c.q_len, c.kv_len));
  const attention::BlockMask::State* blocks = o.block_mask.state().get();
  const std::int64_t rows = std::max(blocks ? std::max(blocks->block.q, blocks->block.kv) : std::int64_t{0}, o.varlen.page_size);
  return the_settings().index64.on() || lines >= static_cast<double>(kMost) || rows >= kMost;
}

/// Most keys of a part. The division depends on neither the device nor the batch, so that a sequence has the same bits in any batch. 256 would give GPUs more
/// groups for short contexts, but the combining launch, whose sums go part by part, twice the time for long ones (estimated, scripts/gpu-cost).
constexpr std::int64_t kSplitKeys = 512;

}  // namespace

void bind_scale(Encoder& encoder, DType dtype, double scale, const char* name) {
  if (dtype == DType::f64)
    encoder.value(scale, name);
  else
    encoder.value(static_cast<float>(scale), name);
}

Mods::Mods(const Checked& c, const attention::FlexOptions& o, DType dtype, const FlexDropout& drawn)
    : score(o.score_mod.function(dtype)), mask(c.mask.function()), dropout(drawn) {}

FlexProblem Mods::problem(const Checked& c, const attention::FlexOptions& o, DType dtype) const {
  FlexProblem p{.score = id_of(score),
                .mask = id_of(mask),
                .dtype = dtype,
                .size_class = size_class(c),
                .ragged = c.ragged,
                .skip_masked = o.skip_masked,
                .dropout = dropout.p > 0,
                .wide_tasks = needs_wide_tasks(c, o)};
  for (const ExprFunction* f : {&score, &mask, &back})
    if (!f->empty()) p.types.note(*f);
  return p;
}

void Mods::bind(Encoder& encoder, DType dtype) const {
  for (const ExprFunction* f : {&score, &mask, &back})
    if (!f->empty()) bind_extra(encoder, *f->body(), f->body()->param_values);
  if (dropout.p > 0) bind_dropout(encoder, dropout, dtype);
}

const BuiltPlan& flex_plan(Runtime& runtime, const FlexProblem& p, const Mods& mods, std::string_view forced) {
  auto build = [&](const DeviceTraits& traits, std::uint64_t& items) {
    KernelPlan selected = select(traits, p, forced);
    items = by_groups(selected.entry) ? selected.tuning.local : 0;
    const DType i32 = DType::i32, number = compute_dtype(p.dtype, kFlex), truth = DType::boolean;
    const DType of_score[] = {number, i32, i32, i32, i32, number}, of_mask[] = {i32, i32, i32, i32};
    std::array<LaneKind, 6> lanes{LaneKind::any, LaneKind::same, LaneKind::same, LaneKind::consecutive, LaneKind::same, LaneKind::any};
    if (keys_along(selected.entry)) std::swap(lanes[3], lanes[4]);
    const auto mask_lanes = std::span<const LaneKind>(lanes).subspan(1, 4);
    auto print = [&](const ExprFunction& f, const DType& output, std::span<const DType> inputs, const PrintNames& names) {
      if (!f.empty()) selected.expression += print_opencl(f, std::span(&output, 1), inputs, names).text;
    };
    const PrintNames of_masks{.macro = "MASK", .extra = "MASK_EXTRA", .param = 'm', .captured = 'd', .first_input = 2, .lanes = mask_lanes};
    print(mods.score, number, std::span(of_score).first(5), {.macro = "SCORE", .lanes = std::span(lanes).first(5)});
    print(mods.mask, truth, of_mask, of_masks);
    if (!mods.mask.empty()) selected.expression += print_ranges(mods.mask, of_masks);
    print(mods.back, number, of_score, {.macro = "BACK", .extra = "BACK_EXTRA", .param = 'w', .captured = 'e', .lanes = lanes});
    return build_plan(runtime, selected);
  };
  return runtime.plans().find<BuiltPlan>(kFlex, p, forced, [&] {
    DeviceTraits traits = runtime.traits();
    // Tiles need exactly their items. If the driver allows fewer in a group of their kernel, the device counts as one that has so few.
    for (;;) {
      std::uint64_t items = 0;
      BuiltPlan built = build(traits, items);
      if (built.tuning.local >= items) return built;
      traits.max_work_group = built.tuning.local;
    }
  });
}

bool builds_matrix(const std::function<void()>& build) {
  try {
    build();
    return true;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::build_failure) throw;
    log_once(LogLevel::warn, fmt::format("attention goes without matrix instructions: {}", e.what()));
    return false;
  }
}

double scale_of(const attention::FlexOptions& options, const Checked& c) {
  return std::isnan(options.scale) ? 1 / std::sqrt(static_cast<double>(c.e)) : options.scale;
}

FlexArgs args_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Checked& c, const attention::FlexOptions& options,
                 const BuiltPlan& plan, bool by_keys) {
  FlexArgs args{.batch = c.batch, .heads = c.heads, .gqa_factor = c.gqa_factor, .q_len = c.q_len, .kv_len = c.kv_len, .e = c.e, .ev = c.ev};
  set_strides(args.q_stride, q), set_strides(args.k_stride, k), set_strides(args.v_stride, v), set_strides(args.out_stride, out);
  const attention::BlockMask::State* blocks = options.block_mask.state().get();
  const auto most = static_cast<std::int64_t>(plan.tuning.tile), lanes = std::int64_t{plan.tuning.width};
  const std::int64_t length = by_keys ? c.kv_len : c.q_len, others = by_keys ? c.q_len : c.kv_len;
  args.block_rows = !blocks ? most : by_keys ? blocks->block.kv : blocks->block.q;
  const attention::Varlen& varlen = options.varlen;
  const bool paged = varlen.page_table.defined(), split = by_parts(plan.entry);
  args.block_columns = blocks  ? (by_keys ? blocks->block.q : blocks->block.kv)
                       : paged ? varlen.page_size
                       : split ? kSplitKeys
                               : std::max<std::int64_t>(others, 1);
  const std::int64_t rows = blocks_of(length, args.block_rows), rows_of_block = std::min(args.block_rows, length);
  args.block_tiles = blocks_of(rows_of_block, most), args.tile_rows = blocks_of(blocks_of(rows_of_block, args.block_tiles), lanes) * lanes;
  args.tiles = rows * args.block_tiles, args.columns = blocks_of(others, args.block_columns);
  args.listed = blocks != nullptr;
  if (blocks) {
    args.list_head_stride = blocks->kinds.size(1) > 1 ? rows : 0;
    args.list_batch_stride = blocks->kinds.size(0) > 1 ? rows * blocks->kinds.size(1) : 0;
  }
  args.mask_all = !options.mask_mod.empty();
  args.shared_kv = c.shared();
  args.split_blocks = std::max<std::int64_t>(kSplitKeys / args.block_columns, 1), args.splits = blocks_of(args.columns, args.split_blocks);
  args.q_rows = c.q_rows, args.kv_rows = c.kv_rows, args.packed_q = varlen.cu_seq_q.defined(), args.packed_kv = c.packed_kv;
  args.used = varlen.seqused_kv.defined(), args.dropout_below = dropout_below(options.dropout_p);
  if (paged) args.page_size = varlen.page_size, args.page_stride = varlen.page_table.size(1);
  return args;
}

void check_items(const Checked& c, const BuiltPlan& plan, std::int64_t items, std::int64_t rows, std::int64_t elements, std::int64_t longest) {
  const DeviceTraits& traits = c.runtime->traits();
  const std::int64_t chunk = flex_chunk(traits, size_class(c)), each = rows * (elements + chunk + 8) + 3 * chunk + 8;
  const auto count = static_cast<std::uint64_t>(items);
  check_loops(traits, kFlex, count, item_geometry(count, plan.tuning.local),
              static_cast<double>(each) * static_cast<double>(blocks_of(std::max<std::int64_t>(longest, 1), chunk)));
}

double bytes_of(std::initializer_list<const Tensor*> tensors) {
  double bytes = 0;
  for (const Tensor* t : tensors)
    if (t->defined()) bytes += distinct_bytes(*t);
  return bytes;
}

void bind_rest(Encoder& encoder, const FlexArgs& args, const attention::FlexOptions& options, const Tensor& other, const Checked& c, const Mods& mods,
               DType dtype, bool by_keys) {
  const attention::BlockMask::State* b = options.block_mask.state().get();
  using Lists = std::array<const Tensor*, 4>;
  const Lists lists = !b        ? Lists{&other, &other, &other, &other}
                      : by_keys ? Lists{&b->q_num, &b->q_indices, &b->full_q_num, &b->full_q_indices}
                                : Lists{&b->kv_num, &b->kv_indices, &b->full_kv_num, &b->full_kv_indices};
  for (const Tensor* t : lists) encoder.input(*t);
  const attention::Varlen& o = options.varlen;
  if (c.ragged)
    for (const Tensor* t : {&o.cu_seq_q, &o.cu_seq_kv, &o.seqused_kv, &o.page_table}) encoder.input(t->defined() ? *t : other);
  bind_args(encoder, args);
  bind_scale(encoder, dtype, scale_of(options, c), "scale");
  mods.bind(encoder, dtype);
}

namespace {

/// Binds the results; `out` replaces results that are not wanted.
void bind_results(Encoder& encoder, const FlexArgs& args, const attention::FlexResult& r) {
  encoder.output(r.out).output(args.wants_lse ? r.lse : r.out).output(args.wants_max ? r.max_scores : r.out);
}
FlexArgs forward_args(const attention::FlexResult& r, const Tensor& q, const Tensor& k, const Tensor& v, const Checked& c,
                      const attention::FlexOptions& options, const BuiltPlan& plan) {
  FlexArgs args = args_of(q, k, v, r.out, c, options, plan, false);
  args.wants_lse = r.lse.defined(), args.wants_max = r.max_scores.defined();
  return args;
}

/// The plan of the forward pass.
const BuiltPlan& forward_plan(FlexProblem& p, const Mods& mods, const Checked& c, const attention::FlexOptions& options) {
  const BuiltPlan* plan = nullptr;
  auto find = [&] { plan = &flex_plan(*c.runtime, p, mods, options.implementation); };
  if (p.layout != MatrixLayout::none && options.implementation.empty()) {
    if (builds_matrix(find)) return *plan;
    p.layout = MatrixLayout::none, p.numbers = 0;
  }
  find();
  return *plan;
}

/// Computes results of parts of the keys, then combines them.
void run_split(const BuiltPlan& plan, FlexProblem p, const Mods& mods, const attention::FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v,
               const Checked& c, const attention::FlexOptions& options, const Stream& stream) {
  FlexArgs args = forward_args(results, q, k, v, c, options, plan);
  args.part_stride = blocks_of(c.ev, plan.tuning.width) * plan.tuning.width;
  const auto block_m = static_cast<std::int64_t>(plan.tuning.tile);
  const std::int64_t lines = flex_lines(args.packed_q, c.batch, c.heads, c.q_rows);
  const std::int64_t slices = plan.entry == "flex_tiles_split" ? flex_readers(c.gqa_factor, c.q_len) * flex_tile_slices(c.gqa_factor, c.q_len, block_m)
                                                               : flex_slices(c.gqa_factor, c.q_len, split_rows(kFlexClasses[p.size_class]));
  const TensorOptions sums{.dtype = compute_dtype(q.dtype(), kFlex), .device = stream.device()};
  const Tensor parts = empty({args.splits, lines, args.part_stride}, sums, stream), part_sums = empty({args.splits, lines, 2}, sums, stream);
  args.tasks = static_cast<std::uint64_t>(args.splits * c.batch * (c.heads / c.gqa_factor) * slices);
  {
    Encoder encoder(stream, "flex");
    encoder.moves(bytes_of({&parts, &part_sums, &q, &k, &v})).output(parts).output(part_sums).input(q).input(k).input(v);
    bind_rest(encoder, args, options, q, c, mods, q.dtype(), false);
    encoder.flops(c.flops(1, 1)).dispatch(plan.kernel, geometry_of(plan, args.tasks));
  }
  const Aside combines;
  const FlexProblem together{.dtype = p.dtype, .part = FlexPart::combine};
  const BuiltPlan& combine = plan_for(*c.runtime, kFlex, together, {});
  args.tasks = static_cast<std::uint64_t>(lines * (combines_by_pieces(c.runtime->traits()) ? flex_pieces(c.ev, kPieceElements) : 1));
  Encoder encoder(stream, "flex");
  encoder.moves(bytes_of({&results.out, &results.lse, &results.max_scores, &parts, &part_sums}));
  bind_results(encoder, args, results);
  encoder.input(parts).input(part_sums);
  bind_args(encoder, args);
  encoder.dispatch(combine.kernel, item_geometry(args.tasks, combine.tuning.local));
}

}  // namespace

void run_flex(const attention::FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v, const Checked& c, const attention::FlexOptions& options,
              const Stream& stream) {
  check_flex_implementation(options.implementation);
  if (c.batch == 0 || c.heads == 0 || c.q_len == 0) return;
  const bool is_plain = options.score_mod.empty() && c.mask.empty() && options.block_mask.empty() && !c.ragged && options.dropout_p == 0 &&
                        !options.skip_masked && options.numerics == linalg::Numerics::chain && !results.max_scores.defined() && c.kv_len > 0 && c.ev > 0;
  if (is_plain && by_plugin("attention::flex", options.implementation, {&results, &q, &k, &v, &options, &stream}, stream)) return;
  const Mods mods(c, options, q.dtype(), draw_dropout(options.dropout_p, options.generator, results.dropout_state, c.scores(), stream));
  FlexProblem p = mods.problem(c, options, q.dtype());
  p.few = c.q_len <= kFewQueries;
  const attention::BlockMask::State* blocks = options.block_mask.state().get();
  p.joint = !blocks || (blocks->kinds.size(1) == 1 && blocks->block.q >= c.q_len);
  // Values must be whole vectors; for few queries, keys as well.
  p.direct = (k.strides()[3] == 1 || c.e == 1) && (v.strides()[3] == 1 || c.ev == 1) && c.ev % 8 == 0;
  if (p.few) p.direct = p.direct && c.e % 16 == 0 && c.ev % 16 == 0 && (compute_dtype(q.dtype(), kFlex) == q.dtype() || c.gqa_factor * c.q_len <= kDirectRows);
  if (!p.few) note_matrix_instructions(p, c, options, {&q, &k, &v}), note_matrix_tiles(p, c);
  const BuiltPlan& plan = forward_plan(p, mods, c, options);
  if (plan.entry == "flex_items") check_items(c, plan, c.batch * c.heads * c.q_len, c.kv_len, c.e, c.ev);
  if (by_parts(plan.entry)) return run_split(plan, p, mods, results, q, k, v, c, options, stream);
  FlexArgs args = forward_args(results, q, k, v, c, options, plan);
  args.tasks = static_cast<std::uint64_t>(c.batch * c.heads * (plan.entry == "flex_items" ? c.q_len : args.tiles));
  if (plan.entry == "flex_matrix") args.tasks *= static_cast<std::uint64_t>(flex_matrix_slices(p, c.e, c.ev));
  Encoder encoder(stream, "flex");
  encoder.moves(bytes_of({&results.out, &results.lse, &results.max_scores, &q, &k, &v}));
  bind_results(encoder, args, results);
  encoder.input(q).input(k).input(v);
  bind_rest(encoder, args, options, q, c, mods, q.dtype(), false);
  encoder.flops(c.flops(1, 1)).dispatch(plan.kernel, geometry_of(plan, args.tasks));
}

}}}  // namespace clutch::v0::detail
