// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/flex.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/reduce.hpp>

#include "ops/block_mask_plan.hpp"
#include "ops/flex_plan.hpp"
#include "runtime/generator.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace clutch::inline v0 {
namespace detail {
namespace {

constexpr std::string_view kOp = "flex";

// validate ----------------------------------------------------------------------------------------------------------

void refuse(ErrorCode code, std::string_view why) { throw Error(code, kOp, why); }

struct Checked {
  Runtime* runtime = nullptr;
  std::int64_t batch = 0, heads = 0, group = 1, q_len = 0, kv_len = 0, e = 0, ev = 0;  ///< with Varlen: sequences, and the longest ones
  std::int64_t q_batch = 0, q_rows = 0, kv_batch = 0, kv_rows = 0;                     ///< as the tensors have them
  bool ragged = false, packed_kv = false;
  attention::MaskMod mask;  ///< the block mask's and the one beside it
  Dims lines() const { return {q_batch, heads, q_rows}; }
  Dims result() const { return {q_batch, heads, q_rows, ev}; }
  /// Queries of several batches read the same keys.
  bool shared() const { return batch > 1 && kv_batch == 1 && !packed_kv; }
};

/// The sequences' number and lengths.
void measure(Checked& c, const attention::Varlen& o) {
  c.ragged = o.cu_seq_q.defined() || o.cu_seq_kv.defined() || o.seqused_kv.defined() || o.page_table.defined();
  c.packed_kv = o.cu_seq_kv.defined();
  if (!c.ragged) return;
  if (o.cu_seq_q.defined() && o.cu_seq_q.numel() == 0) refuse(ErrorCode::invalid_shape, "cu_seq_q has n + 1 numbers, of no sequences one");
  if (o.cu_seq_q.defined()) c.batch = o.cu_seq_q.numel() - 1, c.q_len = o.max_q > 0 ? std::min(o.max_q, c.q_rows) : c.q_rows;
  if (o.cu_seq_kv.defined()) c.kv_len = o.max_kv > 0 ? std::min(o.max_kv, c.kv_rows) : c.kv_rows;
  auto check = [](const Tensor& t, const Dims& sizes, std::string_view what) {
    if (!t.defined()) return;
    check_is(t, sizes, DType::i32, what, kOp);
    if (!t.is_contiguous()) refuse(ErrorCode::invalid_shape, fmt::format("{} is to be contiguous", what));
  };
  check(o.cu_seq_q, {c.batch + 1}, "cu_seq_q"), check(o.cu_seq_kv, {c.batch + 1}, "cu_seq_kv"), check(o.seqused_kv, {c.batch}, "seqused_kv");
  if (o.cu_seq_q.defined() && c.q_batch != 1) refuse(ErrorCode::invalid_shape, fmt::format("{} batches of queries beside cu_seq_q", c.q_batch));
  if ((o.cu_seq_kv.defined() || o.page_table.defined()) && c.kv_batch != 1)
    refuse(ErrorCode::invalid_shape, fmt::format("{} batches of keys beside cu_seq_kv or page_table", c.kv_batch));
  if (!o.page_table.defined()) return;
  if (o.cu_seq_kv.defined()) refuse(ErrorCode::invalid_argument, "cu_seq_kv and page_table exclude each other");
  if (o.page_size < 1) refuse(ErrorCode::invalid_argument, fmt::format("pages of {} keys", o.page_size));
  check(o.page_table, {c.batch, o.page_table.rank() == 2 ? o.page_table.size(1) : 0}, "page_table");
  c.kv_len = o.page_table.size(1) * o.page_size;
  if (o.max_kv > 0) c.kv_len = std::min(c.kv_len, o.max_kv);
}

Checked validate(const attention::FlexResult* results, const Tensor& q, const Tensor& k, const Tensor& v, const attention::FlexOptions& options) {
  std::vector<const Tensor*> all{&q, &k, &v};
  const attention::BlockMask::State* blocks = options.block_mask.state().get();
  Checked c;
  if (blocks) all.push_back(&blocks->kinds);
  for (const Tensor* t : {&options.varlen.cu_seq_q, &options.varlen.cu_seq_kv, &options.varlen.seqused_kv, &options.varlen.page_table})
    if (t->defined()) all.push_back(t);
  c.mask = !blocks ? options.mask_mod : blocks->mask & options.mask_mod;
  for (const ExprFunction* f : {&options.score_mod.function(DType::f32), &c.mask.function()})
    if (!f->empty()) {
      check_captured(*f->body(), kOp);
      for (const Tensor& t : f->body()->tensors) all.push_back(&t);
    }
  if (results)
    for (const Tensor* t : {&results->out, &results->lse, &results->max_scores, &results->dropout_state})
      if (t == &results->out || t->defined()) all.push_back(t);
  c.runtime = &common_runtime(all, kOp);
  check_plain_float(q.dtype(), "q", kOp);
  if (!(options.dropout_p >= 0 && options.dropout_p <= 1)) refuse(ErrorCode::invalid_argument, fmt::format("a dropout probability of {}", options.dropout_p));
  if (options.dropout_p > 0 && !options.generator.empty() && &options.generator.impl()->runtime() != c.runtime)
    refuse(ErrorCode::device_mismatch, "the generator is of another device or context than q");
  for (const Tensor* t : {&k, &v})
    if (t->dtype() != q.dtype()) refuse(ErrorCode::invalid_dtype, fmt::format("k or v of {} beside q of {}", name(t->dtype()), name(q.dtype())));
  for (const Tensor* t : {&q, &k, &v})
    if (t->rank() != 4) refuse(ErrorCode::invalid_shape, fmt::format("a tensor of shape {}, not (batch, heads, length, size)", to_string(t->sizes())));
  c.batch = q.size(0), c.heads = q.size(1), c.q_len = q.size(2), c.e = q.size(3), c.kv_len = k.size(2), c.ev = v.size(3);
  c.q_batch = c.batch, c.q_rows = c.q_len, c.kv_batch = k.size(0), c.kv_rows = c.kv_len;
  const std::int64_t shared = k.size(1);
  if (k.size(3) != c.e || c.e < 1) refuse(ErrorCode::invalid_shape, fmt::format("keys of {} elements for queries of {}", k.size(3), c.e));
  if (v.size(0) != k.size(0) || v.size(1) != shared || v.size(2) != c.kv_rows)
    refuse(ErrorCode::invalid_shape, fmt::format("v of shape {} beside k of {}", to_string(v.sizes()), to_string(k.sizes())));
  measure(c, options.varlen);
  if (c.kv_batch != c.batch && c.kv_batch != 1) refuse(ErrorCode::invalid_shape, fmt::format("keys of {} batches for queries of {}", c.kv_batch, c.batch));
  if (shared != c.heads) {
    if (!options.enable_gqa) refuse(ErrorCode::invalid_argument, fmt::format("{} heads of keys for {} of queries without enable_gqa", shared, c.heads));
    if (shared < 1 || c.heads % shared != 0) refuse(ErrorCode::invalid_argument, fmt::format("{} heads of keys do not divide {} of queries", shared, c.heads));
    c.group = c.heads / shared;
  }
  for (std::int64_t length : {c.q_rows, c.kv_rows, c.q_len, c.kv_len, c.batch, c.heads})
    if (length > INT32_MAX) refuse(ErrorCode::invalid_shape, fmt::format("a length of {}, past 2^31 - 1", length));
  if (blocks) {
    const Dims& kinds = blocks->kinds.sizes();
    if (blocks->q_len != c.q_len || blocks->kv_len != c.kv_len)
      refuse(ErrorCode::invalid_argument, fmt::format("a block mask of lengths {} and {} for {} and {}", blocks->q_len, blocks->kv_len, c.q_len, c.kv_len));
    if ((kinds[0] != 1 && kinds[0] != c.batch) || (kinds[1] != 1 && kinds[1] != c.heads))
      refuse(ErrorCode::invalid_argument, fmt::format("a block mask of {} batches and {} heads for {} and {}", kinds[0], kinds[1], c.batch, c.heads));
    if (options.varlen.page_table.defined() && options.varlen.page_size % blocks->block.kv != 0)
      refuse(ErrorCode::invalid_argument, fmt::format("blocks of {} keys in pages of {}", blocks->block.kv, options.varlen.page_size));
  }
  if (!results) return c;
  const DType sums = compute_dtype(q.dtype(), kOp);
  auto check = [&](const Tensor& t, const Dims& sizes, DType dtype) {
    if (!(t.sizes() == sizes)) refuse(ErrorCode::invalid_shape, fmt::format("output with shape {} instead of {}", to_string(t.sizes()), to_string(sizes)));
    if (t.dtype() != dtype) refuse(ErrorCode::invalid_dtype, fmt::format("output of {} instead of {}", name(t.dtype()), name(dtype)));
    check_no_self_overlap(t, kOp);
    for (const Tensor* other : all)
      if (other != &t) check_apart(t, *other, kOp);
  };
  check(results->out, c.result(), q.dtype());
  if (results->dropout_state.defined()) check(results->dropout_state, {2}, DType::i64);
  for (const Tensor* t : {&results->lse, &results->max_scores})
    if (t->defined()) {
      check(*t, c.lines(), sums);
      if (!t->is_contiguous()) refuse(ErrorCode::invalid_shape, "lse and max_scores are to be contiguous");
    }
  return c;
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const FlexProblem& p) { return refuses_fp64(traits, p.types.has_f64 || p.dtype == DType::f64); }

std::string fits_lanes(const DeviceTraits& traits, const FlexProblem& p) {
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (p.size_class >= kFlexClasses.size()) return fmt::format("rows have more than {} elements", kFlexClasses.back().most);
  return computes(traits, p);
}

std::string fits_wide(const DeviceTraits& traits, const FlexProblem& p) {
  return row_tuning(traits).local != 1 ? std::string("its vectors are those of wide-vector devices") : fits_lanes(traits, p);
}
std::string fits_split(const DeviceTraits& traits, const FlexProblem& p) {
  return p.part != FlexPart::forward ? std::string("it makes no gradients") : fits_lanes(traits, p);
}

constexpr std::array<Implementation<FlexProblem>, 3> kImplementations{{
    {"flex_split",
     [](const DeviceTraits& t, const FlexProblem& p) {
       if (std::string why = fits_split(t, p); !why.empty()) return why;
       return p.few ? fits_wide(t, p) : fmt::format("there are more than {} queries", kFewQueries);
     }},
    {"flex_lanes", fits_wide},
    {"flex_items", computes},
}};
constexpr std::array<Implementation<FlexProblem>, 3> kForced{{{"flex_split", fits_split}, {"flex_lanes", fits_lanes}, {"flex_items", computes}}};
/// Of what computes gradients the same names choose.
std::string_view entry_of(FlexPart part, std::string_view chosen) {
  switch (part) {
    case FlexPart::forward: return chosen;
    case FlexPart::combine: return "flex_combine";
    case FlexPart::assign: return "flex_assign";
    case FlexPart::backward: return chosen == "flex_lanes" ? "flex_lanes_backward" : "flex_items_dq";
    case FlexPart::keys: return "flex_items_dkv";
  }
  return {};
}

/// Rows of queries of one head of keys that an item of flex_split takes at a time.
int split_rows(const FlexClass& c) { return std::clamp(2048 / c.most, 2, 16); }

/// Keys lie along the lanes; else queries do.
bool keys_along(std::string_view entry) { return entry == "flex_lanes_backward" || entry == "flex_split"; }

}  // namespace

void check_flex(const Tensor& q, const Tensor& k, const Tensor& v, const attention::FlexOptions& options) { validate(nullptr, q, k, v, options); }

KernelPlan select(const DeviceTraits& traits, const FlexProblem& p, std::string_view forced) {
  const bool wide = p.dtype == DType::f64;
  const bool helps = p.part == FlexPart::combine || p.part == FlexPart::assign;
  if (helps) forced = "flex_items";
  const std::string_view chosen = choose<FlexProblem>(forced.empty() ? kImplementations : kForced, traits, p, forced, kOp).name;
  const bool lanes = chosen != "flex_items";
  KernelPlan plan{.stem = kOp, .entry = entry_of(p.part, chosen), .tuning = row_tuning(traits)};
  if (lanes) plan.tuning.local = 1;  // an item holds more than a group of them could
  if (!lanes) plan.tuning.width = 1;
  // As many sums as there are registers beside what they are made of.
  const bool many = plan.tuning.width >= 16;
  set_lanes(plan, traits, wide || p.types.has_f64, 1, true, 4);
  plan.options = "-cl-denorms-are-zero";
  Defines& d = plan.defines;
  d.set_text("S_NAME", name(p.dtype))
      .set(wide ? "A_IS_F64" : "A_IS_F32", 1)
      .set("SCORE", p.score != 0)
      .set("MASK", p.mask != 0)
      .set("RAGGED", p.ragged)
      .set("SKIP_MASKED", p.skip_masked)
      .set("DROPOUT", p.dropout)
      .set("KEYS_ALONG", keys_along(plan.entry))
      .set("BACKWARD", p.part == FlexPart::backward || p.part == FlexPart::keys);
  if (!lanes) {
    d.set("CHUNK", 16);
    return plan;
  }
  const FlexClass& c = kFlexClasses[p.size_class];
  plan.tuning.tile = static_cast<std::uint64_t>(c.tile_vectors * plan.tuning.width);
  d.set("DIRECT", p.direct && (p.dtype == DType::f32 || wide || plan.entry == "flex_split"))
      .set("DMAX", c.most)
      .set("KEYS", plan.entry == "flex_split" ? std::max(4096 / c.most, 16) : c.keys)  // of few queries, so that both stay in the nearest cache
      .set("TILE_VECTORS", c.tile_vectors + c.tile_vectors % 2)
      .set("S_BYTES", static_cast<std::int64_t>(bytes_for(p.dtype, 1)))
      .set("SPLIT_ROWS", split_rows(c))
      .set("ROWS", many ? 8 : 4)
      .set("VECTORS", many ? 3 : 2);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// As the kernels declare it.
struct FlexShape {
  std::int64_t q[4], k[4], v[4], out[4];
  std::int64_t heads, group, q_len, kv_len, e, ev;
  std::int64_t tiles, tile, per_row;
  std::int64_t rows, columns, block_row, block_listed, mask_batch, mask_head, listed;
  std::int64_t mask_all, wants_lse, wants_top;
  std::int64_t batch, shared, chunks, splits, per_split, part_row;
  std::int64_t q_rows, kv_rows, packed_q, packed_kv, used, page_size, page_columns;
};

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

void bind_scale(Encoder& encoder, DType dtype, double scale) {
  if (dtype == DType::f64)
    encoder.value(scale);
  else
    encoder.value(static_cast<float>(scale));
}

/// Philox blocks of a row of dropout.
std::int64_t quads_of(std::int64_t kv_len) { return blocks_of(kv_len, 4); }

/// What becomes of scores and weights, as one call has it.
struct Mods {
  const ExprFunction &score, &mask;
  const attention::ScoreMod::Text* text = nullptr;  ///< the score mod's, where it is no function
  ExprFunction back = {};                           ///< of gradients: the score mod's derivative
  double dropout_p = 0;
  Tensor dropout_state = {};
  std::int64_t heads = 0, q_len = 0, kv_len = 0;
  Mods(const Checked& c, const attention::FlexOptions& o, DType dtype, const Tensor& state)
      : score(o.score_mod.function(dtype)),
        mask(c.mask.function()),
        text(o.score_mod.text().get()),
        dropout_p(o.dropout_p),
        dropout_state(state),
        heads(c.heads),
        q_len(c.q_len),
        kv_len(c.kv_len) {}
  FlexProblem problem(const Checked& c, const attention::FlexOptions& o, DType dtype) const {
    FlexProblem p{.score = text ? text->id : id_of(score),
                  .mask = id_of(mask),
                  .dtype = dtype,
                  .size_class = size_class(c),
                  .ragged = c.ragged,
                  .skip_masked = o.skip_masked,
                  .dropout = dropout_p > 0};
    for (const ExprFunction* f : {&score, &mask, &back})
      if (!f->empty()) p.types.note(*f);
    return p;
  }
  void bind(Encoder& encoder, DType dtype) const {
    if (text)
      for (double x : text->params) bind_scale(encoder, dtype, x);
    for (const ExprFunction* f : {&score, &mask, &back})
      if (!f->empty()) bind_extra(encoder, *f->body(), f->body()->param_values);
    if (dropout_p == 0) return;
    encoder.input(dropout_state).value(static_cast<std::uint32_t>(std::min(dropout_p * 0x1p32, 0x1p32 - 1)));
    bind_scale(encoder, dtype, dropout_p == 1 ? 0 : 1 / (1 - dropout_p));
    encoder.value(heads).value(q_len).value(quads_of(kv_len));
  }
};

const BuiltPlan& plan_of(Runtime& runtime, const FlexProblem& p, const Mods& mods, std::string_view forced) {
  const BuiltPlan& plan = runtime.plans().find<BuiltPlan>(kOp, p, forced, [&] {
    KernelPlan selected = select(runtime.traits(), p, forced);
    const DType i32 = DType::i32, number = compute_dtype(p.dtype, kOp), truth = DType::boolean;
    const DType of_score[] = {number, i32, i32, i32, i32, number}, of_mask[] = {i32, i32, i32, i32};
    std::array<LaneKind, 6> lanes{LaneKind::any, LaneKind::same, LaneKind::same, LaneKind::consecutive, LaneKind::same, LaneKind::any};
    if (keys_along(selected.entry)) std::swap(lanes[3], lanes[4]);
    const auto mask_lanes = std::span<const LaneKind>(lanes).subspan(1, 4);
    auto print = [&](const ExprFunction& f, const DType& output, std::span<const DType> inputs, const PrintNames& names) {
      if (!f.empty()) selected.expression += print_opencl(f, std::span(&output, 1), inputs, names).text;
    };
    const PrintNames of_masks{.macro = "MASK", .extra = "MASK_EXTRA", .param = 'm', .captured = 'd', .first_input = 2, .lanes = mask_lanes};
    if (mods.text) selected.expression += print_opencl(*mods.text, number);
    print(mods.score, number, std::span(of_score).first(5), {.macro = "SCORE", .lanes = std::span(lanes).first(5)});
    print(mods.mask, truth, of_mask, of_masks);
    if (!mods.mask.empty()) selected.expression += print_ranges(mods.mask, of_masks);
    print(mods.back, number, of_score, {.macro = "BACK", .extra = "BACK_EXTRA", .param = 'w', .captured = 'e', .lanes = lanes});
    return build_plan(runtime, selected);
  });
  note_plan(plan.text);
  return plan;
}

double scale_of(const attention::FlexOptions& options, const Checked& c) {
  return std::isnan(options.scale) ? 1 / std::sqrt(static_cast<double>(c.e)) : options.scale;
}

/// Keys of a part of flex_split: of the device and the lengths alone, so that a sequence has the same bits in any batch.
constexpr std::int64_t kSplitKeys = 512;

/// Shape, tiles of rows of queries or keys, and lists of the others' blocks.
FlexShape shape_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Checked& c, const attention::FlexOptions& options,
                   const BuiltPlan& plan, bool by_keys) {
  FlexShape s{.heads = c.heads, .group = c.group, .q_len = c.q_len, .kv_len = c.kv_len, .e = c.e, .ev = c.ev};
  set_strides(s.q, q), set_strides(s.k, k), set_strides(s.v, v), set_strides(s.out, out);
  const attention::BlockMask::State* blocks = options.block_mask.state().get();
  const auto most = static_cast<std::int64_t>(plan.tuning.tile), lanes = std::int64_t{plan.tuning.width};
  const std::int64_t length = by_keys ? c.kv_len : c.q_len, others = by_keys ? c.q_len : c.kv_len;
  s.block_row = !blocks ? most : by_keys ? blocks->block.kv : blocks->block.q;
  const attention::Varlen& varlen = options.varlen;
  const bool paged = varlen.page_table.defined(), split = plan.entry == "flex_split";
  s.block_listed = blocks ? (by_keys ? blocks->block.q : blocks->block.kv) : paged ? varlen.page_size : split ? kSplitKeys : std::max<std::int64_t>(others, 1);
  s.per_row = blocks_of(std::min(s.block_row, length), most), s.tile = blocks_of(blocks_of(std::min(s.block_row, length), s.per_row), lanes) * lanes;
  s.rows = blocks_of(length, s.block_row), s.columns = blocks_of(others, s.block_listed);
  s.tiles = s.rows * s.per_row;
  s.listed = blocks != nullptr;
  if (blocks) {
    s.mask_head = blocks->kinds.size(1) > 1 ? s.rows : 0;
    s.mask_batch = blocks->kinds.size(0) > 1 ? s.rows * blocks->kinds.size(1) : 0;
  }
  s.mask_all = !options.mask_mod.empty();
  s.batch = c.batch, s.shared = c.shared();
  s.per_split = std::max<std::int64_t>(kSplitKeys / s.block_listed, 1), s.splits = blocks_of(s.columns, s.per_split);
  s.q_rows = c.q_rows, s.kv_rows = c.kv_rows, s.packed_q = varlen.cu_seq_q.defined(), s.packed_kv = c.packed_kv;
  s.used = varlen.seqused_kv.defined();
  if (paged) s.page_size = varlen.page_size, s.page_columns = varlen.page_table.size(1);
  return s;
}

/// Errors: not_supported where an item's loops would end early.
void check_loops(const Runtime& runtime, std::int64_t rows, std::int64_t elements, std::int64_t longest) {
  if (!(runtime.traits().quirks & kQuirkLoopsEndEarly)) return;
  const std::int64_t iterations = rows * (elements + 32) * blocks_of(longest, 16);
  if (iterations > 60000)
    refuse(ErrorCode::not_supported, fmt::format("{} iterations of a work-item on a device that ends loops after 65535 (quirk loops_end_early)", iterations));
}

void bind_lists(Encoder& encoder, const attention::FlexOptions& options, const Tensor& other, bool ragged, bool by_keys) {
  const attention::BlockMask::State* b = options.block_mask.state().get();
  using Lists = std::array<const Tensor*, 4>;
  const Lists lists = !b        ? Lists{&other, &other, &other, &other}
                      : by_keys ? Lists{&b->q_num, &b->q_indices, &b->full_q_num, &b->full_q_indices}
                                : Lists{&b->kv_num, &b->kv_indices, &b->full_kv_num, &b->full_kv_indices};
  for (const Tensor* t : lists) encoder.input(*t);
  if (!ragged) return;
  const attention::Varlen& o = options.varlen;
  for (const Tensor* t : {&o.cu_seq_q, &o.cu_seq_kv, &o.seqused_kv, &o.page_table}) encoder.input(t->defined() ? *t : other);
}

/// Results, the optional ones as the shape says whether they are wanted.
void bind_results(Encoder& encoder, const FlexShape& s, const attention::FlexResult& r) {
  encoder.output(r.out).output(s.wants_lse ? r.lse : r.out).output(s.wants_top ? r.max_scores : r.out);
}
FlexShape forward_shape(const attention::FlexResult& r, const Tensor& q, const Tensor& k, const Tensor& v, const Checked& c,
                        const attention::FlexOptions& options, const BuiltPlan& plan) {
  FlexShape s = shape_of(q, k, v, r.out, c, options, plan, false);
  s.wants_lse = r.lse.defined(), s.wants_top = r.max_scores.defined();
  return s;
}

/// The results of parts of the keys, then what they make together.
void run_split(const BuiltPlan& plan, FlexProblem p, const Mods& mods, const attention::FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v,
               const Checked& c, const attention::FlexOptions& options, const Stream& stream) {
  FlexShape s = forward_shape(results, q, k, v, c, options, plan);
  s.part_row = blocks_of(c.ev, plan.tuning.width) * plan.tuning.width;
  const std::int64_t lines = numel(c.lines()), rows = split_rows(kFlexClasses[p.size_class]);
  const TensorOptions sums{.dtype = compute_dtype(q.dtype(), kOp), .device = stream.device()};
  const Tensor parts = empty({s.splits, lines, s.part_row}, sums, stream), tops = empty({s.splits, lines, 2}, sums, stream);
  const auto items = static_cast<std::uint64_t>(s.splits * c.batch * (c.heads / c.group) * blocks_of(c.group * c.q_len, rows));
  {
    Encoder encoder(stream, "flex");
    encoder.value(items).value(s);
    bind_scale(encoder, q.dtype(), scale_of(options, c));
    encoder.input(q).input(k).input(v).output(parts).output(tops);
    bind_lists(encoder, options, q, c.ragged, false);
    mods.bind(encoder, q.dtype());
    encoder.dispatch(plan.kernel, item_geometry(items, plan.tuning.local));
  }
  const FlexProblem together{.dtype = p.dtype, .part = FlexPart::combine};
  const BuiltPlan& combine = plan_for(*c.runtime, kOp, together, {});
  Encoder encoder(stream, "flex");
  encoder.value(static_cast<std::uint64_t>(lines)).value(s).input(parts).input(tops);
  bind_results(encoder, s, results);
  encoder.dispatch(combine.kernel, item_geometry(static_cast<std::uint64_t>(lines), combine.tuning.local));
  note_plan(plan.text);
}

/// Seed and offset of this call's dropout, from which the generator moves on.
Tensor drawn_state(const attention::FlexResult& results, const Checked& c, const attention::FlexOptions& options, const Stream& stream) {
  if (options.dropout_p == 0) return {};
  const Generator generator = options.generator.empty() ? default_generator({}, stream) : options.generator;
  const Tensor state = results.dropout_state.defined() ? results.dropout_state : empty({2}, {.dtype = DType::i64, .device = stream.device()}, stream);
  copy_(state, generator.impl()->state(), {}, stream);
  generator.impl()->advance(static_cast<std::uint64_t>(c.batch * c.heads * c.q_len * quads_of(c.kv_len)), stream, "flex");
  return state;
}

void run(const attention::FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v, const Checked& c, const attention::FlexOptions& options,
         const Stream& stream) {
  if (c.batch == 0 || c.heads == 0 || c.q_len == 0) return;
  const Mods mods(c, options, q.dtype(), drawn_state(results, c, options, stream));
  FlexProblem p = mods.problem(c, options, q.dtype());
  p.few = c.q_len <= kFewQueries;
  // Whole vectors of values; of few queries of keys, too, and their 16 bits are widened once for many rows.
  p.direct = (k.strides()[3] == 1 || c.e == 1) && (v.strides()[3] == 1 || c.ev == 1) && c.ev % 8 == 0;
  if (p.few) p.direct = p.direct && c.e % 16 == 0 && c.ev % 16 == 0 && (compute_dtype(q.dtype(), kOp) == q.dtype() || c.group * c.q_len <= 2);
  const BuiltPlan& plan = plan_of(*c.runtime, p, mods, options.implementation);
  if (plan.entry == "flex_items") check_loops(*c.runtime, c.kv_len, c.e, c.ev);
  if (plan.entry == "flex_split") return run_split(plan, p, mods, results, q, k, v, c, options, stream);
  const FlexShape s = forward_shape(results, q, k, v, c, options, plan);
  const auto items = static_cast<std::uint64_t>(c.batch * c.heads * (plan.entry == "flex_lanes" ? s.tiles : c.q_len));
  Encoder encoder(stream, "flex");
  encoder.value(items).value(s);
  bind_scale(encoder, q.dtype(), scale_of(options, c));
  encoder.input(q).input(k).input(v);
  bind_results(encoder, s, results);
  bind_lists(encoder, options, q, c.ragged, false);
  mods.bind(encoder, q.dtype());
  encoder.dispatch(plan.kernel, item_geometry(items, plan.tuning.local));
}

attention::FlexGradients differentiate(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const attention::FlexResult& results,
                                       const Checked& c, const attention::FlexOptions& options, const Stream& stream) {
  const TensorOptions stored{.dtype = q.dtype(), .device = stream.device()};
  const DType sums = compute_dtype(q.dtype(), kOp);
  attention::FlexGradients made{.q = empty(q.sizes(), stored, stream), .k = empty(k.sizes(), stored, stream), .v = empty(v.sizes(), stored, stream)};
  if (c.q_len == 0 || c.kv_len == 0 || c.batch == 0 || c.heads == 0 || c.ev == 0) {
    for (const Tensor* t : {&made.q, &made.k, &made.v}) fill_(*t, 0, {}, stream);
    if (const ExprFunction& f = options.score_mod.function(q.dtype()); options.captured_gradients && !f.empty())
      for (const Tensor& t : f.body()->tensors)
        if (is_floating(t.dtype())) made.captured.push_back(zeros(t.sizes(), {.dtype = t.dtype(), .device = stream.device()}, stream));
    return made;
  }
  // What a row's weights are compared with: the sum of its gradient times its result, less lse's gradient.
  Tensor delta = reduce(
      Reduce::sum, [](Expr g, Expr o) { return g * o; }, {grad, results.out}, {.dims = {-1}, .dtype = {sums}}, stream);
  if (options.grad_lse.defined()) delta = map([](Expr d, Expr g) { return d - g; }, {delta, options.grad_lse}, {}, stream);
  if (options.captured_gradients && !options.score_mod.function(q.dtype()).empty()) {
    const attention::BlockMask::State* blocks = options.block_mask.state().get();
    auto allowed = [&](const Expr& b, const Expr& h, const Expr& i, const Expr& j) {
      if (!blocks) return options.mask_mod(b, h, i, j);
      const Expr kind = captured(blocks->kinds)[{b, h, trunc_div(i, param(blocks->block.q)), trunc_div(j, param(blocks->block.kv))}];
      return options.mask_mod(b, h, i, j) & ((kind == 2) | ((kind == 1) & blocks->mask(b, h, i, j)));
    };
    made.captured = captured_gradients({.score = options.score_mod.function(q.dtype()),
                                        .allowed = allowed,
                                        .q = q,
                                        .k = k,
                                        .v = v,
                                        .grad = grad,
                                        .lse = results.lse,
                                        .delta = delta,
                                        .scale = scale_of(options, c),
                                        .sums = sums},
                                       stream);
  }
  Mods mods(c, options, q.dtype(), results.dropout_state);
  if (!mods.score.empty()) mods.back = mods.score.backward();
  FlexProblem p = mods.problem(c, options, q.dtype());
  p.direct = (q.strides()[3] == 1 || c.e == 1) && (grad.strides()[3] == 1 || c.ev == 1) && c.e % 8 == 0 && c.ev % 8 == 0;
  const std::int64_t key_heads = (c.shared() ? 1 : c.batch) * (c.heads / c.group);
  auto built = [&](FlexPart part) -> const BuiltPlan& {
    p.part = part;
    return plan_of(*c.runtime, p, mods, options.implementation);
  };
  auto send = [&](const BuiltPlan& plan, const FlexShape& s, bool by_keys, const Tensor* dq, std::int64_t count) {
    const auto items = static_cast<std::uint64_t>(count);
    Encoder encoder(stream, "flex_backward");
    encoder.value(items).value(s);
    bind_scale(encoder, q.dtype(), scale_of(options, c));
    encoder.input(q).input(k).input(v).input(grad).input(results.lse).input(delta).output(made.k).output(made.v);
    if (dq) encoder.output(*dq);
    bind_lists(encoder, options, q, c.ragged, by_keys);
    mods.bind(encoder, q.dtype());
    encoder.dispatch(plan.kernel, item_geometry(items, plan.tuning.local));
  };
  auto shape = [&](const BuiltPlan& plan, bool by_keys) { return shape_of(q, k, v, grad, c, options, plan, by_keys); };
  const BuiltPlan& plan = built(FlexPart::backward);
  if (plan.entry == "flex_items_dq") {
    check_loops(*c.runtime, c.kv_len, c.e + c.ev, c.e);
    check_loops(*c.runtime, c.q_len * c.group * (c.shared() ? c.batch : 1), c.e + c.ev, std::max(c.e, c.ev));
    const BuiltPlan& of_keys = built(FlexPart::keys);
    send(of_keys, shape(of_keys, true), true, nullptr, key_heads * c.kv_len);
    send(plan, shape(plan, false), false, &made.q, c.batch * c.heads * c.q_len);
    note_plan(plan.text);
    return made;
  }
  FlexShape s = shape(plan, true);
  s.part_row = blocks_of(c.e, std::int64_t{2} * plan.tuning.width) * 2 * plan.tuning.width;
  // Several items for each core, of which those of a head have sums of their own of the queries' gradients.
  s.chunks = std::clamp<std::int64_t>(blocks_of(4 * std::int64_t{c.runtime->traits().compute_units}, key_heads), 1, s.tiles);
  const bool in_place = s.chunks == 1 && s.part_row == c.e && q.dtype() == sums;
  const Tensor parts_of_q = in_place ? made.q : empty({s.chunks, c.q_batch, c.heads, c.q_rows, s.part_row}, {.dtype = sums, .device = stream.device()}, stream);
  send(plan, s, true, &parts_of_q, key_heads * s.chunks);
  if (!in_place) {
    const Tensor all = parts_of_q.slice(4, 0, c.e);
    if (s.chunks == 1)
      copy_(made.q, all.squeeze(0), {}, stream);
    else
      reduce_out(made.q, Reduce::sum, identity(sums), std::span(&all, 1), {.dims = {0}}, stream);
  }
  note_plan(plan.text);
  return made;
}

}  // namespace
}  // namespace detail

namespace attention {

// The op ------------------------------------------------------------------------------------------------------------

FlexResult flex(const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options, const Stream& given) {
  detail::Checked c = detail::validate(nullptr, q, k, v, options);
  const Stream stream = detail::resolve_stream(given, *c.runtime, detail::kOp);
  const DType sums = detail::compute_dtype(q.dtype(), detail::kOp);
  FlexResult results;
  results.out = empty(c.result(), {.dtype = q.dtype(), .device = stream.device()}, stream);
  if (options.return_lse) results.lse = empty(c.lines(), {.dtype = sums, .device = stream.device()}, stream);
  if (options.return_max_scores) results.max_scores = empty(c.lines(), {.dtype = sums, .device = stream.device()}, stream);
  if (options.dropout_p > 0) results.dropout_state = empty({2}, {.dtype = DType::i64, .device = stream.device()}, stream);
  detail::run(results, q, k, v, c, options, stream);
  return results;
}

void flex_out(const FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options, const Stream& given) {
  detail::Checked c = detail::validate(&results, q, k, v, options);
  detail::run(results, q, k, v, c, options, detail::resolve_stream(given, *c.runtime, detail::kOp));
}

FlexGradients flex_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const FlexResult& results, const FlexOptions& options,
                            const Stream& given) {
  if (!results.lse.defined()) detail::refuse(ErrorCode::invalid_argument, "the forward call's lse is needed: return_lse");
  detail::Checked c = detail::validate(nullptr, q, k, v, options);
  std::vector<const Tensor*> all{&q, &grad_out, &results.out, &results.lse};
  if (options.grad_lse.defined()) all.push_back(&options.grad_lse);
  detail::common_runtime(all, detail::kOp);
  const DType sums = detail::compute_dtype(q.dtype(), detail::kOp);
  auto check = [](const Tensor& t, const Dims& sizes, DType dtype, std::string_view what) { detail::check_is(t, sizes, dtype, what, detail::kOp); };
  check(grad_out, c.result(), q.dtype(), "the result's gradient"), check(results.out, c.result(), q.dtype(), "the result");
  check(results.lse, c.lines(), sums, "lse");
  if (options.grad_lse.defined()) check(options.grad_lse, c.lines(), sums, "lse's gradient");
  if (options.dropout_p > 0 && (!results.dropout_state.defined() || !(results.dropout_state.sizes() == Dims{2}) || results.dropout_state.dtype() != DType::i64))
    detail::refuse(ErrorCode::invalid_argument, "the forward call's dropout_state is needed");
  if (const auto& text = options.score_mod.text(); text && text->derivative.empty())
    detail::refuse(ErrorCode::not_supported, "the score mod is OpenCL C without derivative");
  if (options.captured_gradients && (c.ragged || options.dropout_p > 0))
    detail::refuse(ErrorCode::not_supported, "captured tensors have no gradients beside varlen or dropout");
  if (options.varlen.page_table.defined() || options.varlen.seqused_kv.defined())
    detail::refuse(ErrorCode::not_supported, "caches (page_table, seqused_kv) have no gradient");
  const Stream stream = detail::resolve_stream(given, *c.runtime, detail::kOp);
  FlexResult dense = results;
  dense.lse = results.lse.contiguous(stream);
  return detail::differentiate(grad_out, q, k, v, dense, c, options, stream);
}

}  // namespace attention
}  // namespace clutch::inline v0
