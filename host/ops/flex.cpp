// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/flex.hpp>
#include <clutch/ops/map.hpp>

#include "ops/block_mask_plan.hpp"
#include "ops/flex_plan.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <cmath>

namespace clutch::inline v0 {
namespace detail {
namespace {

constexpr std::string_view kOp = "flex";

// validate ----------------------------------------------------------------------------------------------------------

void refuse(ErrorCode code, std::string_view why) { throw Error(code, kOp, why); }

struct Checked {
  Runtime* runtime = nullptr;
  std::int64_t batch = 0, heads = 0, group = 1, q_len = 0, kv_len = 0, e = 0, ev = 0;
  attention::MaskMod mask;  ///< the block mask's and the one beside it
  Dims lines() const { return {batch, heads, q_len}; }
  Dims result() const { return {batch, heads, q_len, ev}; }
};

Checked validate(const attention::FlexResult* results, const Tensor& q, const Tensor& k, const Tensor& v, const attention::FlexOptions& options) {
  std::vector<const Tensor*> all{&q, &k, &v};
  const attention::BlockMask::State* blocks = options.block_mask.empty() ? nullptr : options.block_mask.state().get();
  Checked c;
  if (blocks) all.push_back(&blocks->kinds);
  c.mask = !blocks ? options.mask_mod : blocks->mask & options.mask_mod;
  for (const ExprFunction* f : {&options.score_mod.function(DType::f32), &c.mask.function()})
    if (!f->empty()) {
      check_captured(*f->body(), kOp);
      for (const Tensor& t : f->body()->tensors) all.push_back(&t);
    }
  if (results)
    for (const Tensor* t : {&results->out, &results->lse, &results->max_scores})
      if (t == &results->out || t->defined()) all.push_back(t);
  c.runtime = &common_runtime(all, kOp);
  check_plain_float(q.dtype(), "q", kOp);
  for (const Tensor* t : {&k, &v})
    if (t->dtype() != q.dtype()) refuse(ErrorCode::invalid_dtype, fmt::format("k or v of {} beside q of {}", name(t->dtype()), name(q.dtype())));
  for (const Tensor* t : {&q, &k, &v})
    if (t->rank() != 4) refuse(ErrorCode::invalid_shape, fmt::format("a tensor of shape {}, not (batch, heads, length, size)", to_string(t->sizes())));
  c.batch = q.size(0), c.heads = q.size(1), c.q_len = q.size(2), c.e = q.size(3), c.kv_len = k.size(2), c.ev = v.size(3);
  const std::int64_t shared = k.size(1);
  if (k.size(3) != c.e || c.e < 1) refuse(ErrorCode::invalid_shape, fmt::format("keys of {} elements for queries of {}", k.size(3), c.e));
  if (v.size(0) != k.size(0) || v.size(1) != shared || v.size(2) != c.kv_len)
    refuse(ErrorCode::invalid_shape, fmt::format("v of shape {} beside k of {}", to_string(v.sizes()), to_string(k.sizes())));
  if (k.size(0) != c.batch && k.size(0) != 1) refuse(ErrorCode::invalid_shape, fmt::format("keys of {} batches for queries of {}", k.size(0), c.batch));
  if (shared != c.heads) {
    if (!options.enable_gqa) refuse(ErrorCode::invalid_argument, fmt::format("{} heads of keys for {} of queries without enable_gqa", shared, c.heads));
    if (shared < 1 || c.heads % shared != 0) refuse(ErrorCode::invalid_argument, fmt::format("{} heads of keys do not divide {} of queries", shared, c.heads));
    c.group = c.heads / shared;
  }
  for (std::int64_t length : {c.q_len, c.kv_len, c.batch, c.heads})
    if (length > INT32_MAX) refuse(ErrorCode::invalid_shape, fmt::format("a length of {}, past 2^31 - 1", length));
  if (blocks) {
    const Dims& kinds = blocks->kinds.sizes();
    if (blocks->q_len != c.q_len || blocks->kv_len != c.kv_len)
      refuse(ErrorCode::invalid_argument, fmt::format("a block mask of lengths {} and {} for {} and {}", blocks->q_len, blocks->kv_len, c.q_len, c.kv_len));
    if ((kinds[0] != 1 && kinds[0] != c.batch) || (kinds[1] != 1 && kinds[1] != c.heads))
      refuse(ErrorCode::invalid_argument, fmt::format("a block mask of {} batches and {} heads for {} and {}", kinds[0], kinds[1], c.batch, c.heads));
  }
  if (!results) return c;
  const DType sums = q.dtype() == DType::f64 ? DType::f64 : DType::f32;
  auto check = [&](const Tensor& t, const Dims& sizes, DType dtype) {
    if (!(t.sizes() == sizes)) refuse(ErrorCode::invalid_shape, fmt::format("output with shape {} instead of {}", to_string(t.sizes()), to_string(sizes)));
    if (t.dtype() != dtype) refuse(ErrorCode::invalid_dtype, fmt::format("output of {} instead of {}", name(t.dtype()), name(dtype)));
    check_no_self_overlap(t, kOp);
    for (const Tensor* other : all)
      if (other != &t) check_apart(t, *other, kOp);
  };
  check(results->out, c.result(), q.dtype());
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
  if (p.size_class >= kFlexClasses.size()) return fmt::format("rows have more than {} elements", kFlexClasses.back().most);
  return computes(traits, p);
}

constexpr std::array<Implementation<FlexProblem>, 2> kImplementations{{
    {"flex_lanes",
     [](const DeviceTraits& t, const FlexProblem& p) {
       return row_tuning(t).local != 1 ? std::string("its vectors are those of wide-vector devices") : fits_lanes(t, p);
     }},
    {"flex_items", computes},
}};
constexpr std::array<Implementation<FlexProblem>, 2> kForced{{{"flex_lanes", fits_lanes}, {"flex_items", computes}}};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const FlexProblem& p, std::string_view forced) {
  const bool wide = p.dtype == DType::f64;
  KernelPlan plan{
      .stem = kOp, .entry = choose<FlexProblem>(forced.empty() ? kImplementations : kForced, traits, p, forced, kOp).name, .tuning = row_tuning(traits)};
  const bool lanes = plan.entry == "flex_lanes";
  if (lanes) plan.tuning.local = 1;  // an item holds more than a group of them could
  if (!lanes) plan.tuning.width = 1;
  // As many sums as there are registers beside what they are made of.
  const bool many = plan.tuning.width >= 16;
  set_lanes(plan, traits, wide || p.types.has_f64, 1, true, 4);
  plan.options = "-cl-denorms-are-zero";
  Defines& d = plan.defines;
  d.set_text("S_NAME", name(p.dtype)).set(wide ? "A_IS_F64" : "A_IS_F32", 1).set("SCORE", p.score != 0).set("MASK", p.mask != 0);
  if (!lanes) {
    d.set("CHUNK", 16);
    return plan;
  }
  const FlexClass& c = kFlexClasses[p.size_class];
  plan.tuning.tile = static_cast<std::uint64_t>(c.tile_vectors * plan.tuning.width);
  d.set("DIRECT", p.direct && (p.dtype == DType::f32 || wide))
      .set("DMAX", c.most)
      .set("KEYS", c.keys)
      .set("TILE_VECTORS", c.tile_vectors)
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
  std::int64_t rows, columns, block_q, block_kv, mask_batch, mask_head, listed;
  std::int64_t mask_all, wants_lse, wants_top;
};

void set_strides(std::int64_t (&strides)[4], const Tensor& t) {
  for (int d = 0; d < 4; ++d) strides[d] = t.sizes()[d] == 1 ? 0 : t.strides()[d];
  if (t.sizes()[3] == 1) strides[3] = 1;
}

std::uint64_t id_of(const ExprFunction& f) { return f.empty() ? 0 : f.body()->id; }

const BuiltPlan& plan_of(Runtime& runtime, const FlexProblem& p, const ExprFunction& score, const ExprFunction& mask, std::string_view forced) {
  const BuiltPlan& plan = runtime.plans().find<BuiltPlan>(kOp, p, forced, [&] {
    KernelPlan selected = select(runtime.traits(), p, forced);
    const DType i32 = DType::i32, number = p.dtype == DType::f64 ? DType::f64 : DType::f32, truth = DType::boolean;
    const DType of_score[] = {number, i32, i32, i32, i32}, of_mask[] = {i32, i32, i32, i32};
    std::vector<LaneKind> lanes{LaneKind::any};
    lanes.insert(lanes.end(), kMaskLanes.begin(), kMaskLanes.end());
    if (!score.empty()) selected.expression += print_opencl(score, std::span(&number, 1), of_score, {.macro = "SCORE", .lanes = lanes}).text;
    if (!mask.empty()) {
      const PrintNames names{.macro = "MASK", .extra = "MASK_EXTRA", .param = 'm', .captured = 'd', .first_input = 2, .lanes = kMaskLanes};
      selected.expression += print_opencl(mask, std::span(&truth, 1), of_mask, names).text + print_ranges(mask, names);
    }
    return build_plan(runtime, selected);
  });
  note_plan(plan.text);
  return plan;
}

void run(const attention::FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v, const Checked& c, const attention::FlexOptions& options,
         const Stream& stream) {
  if (c.batch == 0 || c.heads == 0 || c.q_len == 0) return;
  const ExprFunction &score = options.score_mod.function(q.dtype()), &mask = c.mask.function();
  FlexProblem p{.score = id_of(score), .mask = id_of(mask), .dtype = q.dtype()};
  while (p.size_class < kFlexClasses.size() && kFlexClasses[p.size_class].most < std::max(c.e, c.ev)) ++p.size_class;
  for (const ExprFunction* f : {&score, &mask})
    if (!f->empty()) p.types.note(*f);
  p.direct = (k.strides()[3] == 1 || c.e == 1) && (v.strides()[3] == 1 || c.ev == 1) && c.ev % 8 == 0;
  const BuiltPlan& plan = plan_of(*c.runtime, p, score, mask, options.implementation);

  FlexShape s{.heads = c.heads, .group = c.group, .q_len = c.q_len, .kv_len = c.kv_len, .e = c.e, .ev = c.ev};
  set_strides(s.q, q), set_strides(s.k, k), set_strides(s.v, v), set_strides(s.out, results.out);
  const attention::BlockMask::State* blocks = options.block_mask.empty() ? nullptr : options.block_mask.state().get();
  const auto most = static_cast<std::int64_t>(plan.tuning.tile), lanes = std::int64_t{plan.tuning.width};
  auto parts = [](std::int64_t n, std::int64_t size) { return (n + size - 1) / size; };
  s.block_q = blocks ? blocks->block.q : most, s.block_kv = blocks ? blocks->block.kv : c.kv_len;
  s.per_row = parts(std::min(s.block_q, c.q_len), most), s.tile = parts(parts(std::min(s.block_q, c.q_len), s.per_row), lanes) * lanes;
  s.rows = parts(c.q_len, s.block_q), s.columns = blocks ? blocks->kinds.size(3) : c.kv_len > 0;
  s.tiles = s.rows * s.per_row;
  s.listed = blocks != nullptr;
  if (blocks) {
    s.mask_head = blocks->kinds.size(1) > 1 ? s.rows : 0;
    s.mask_batch = blocks->kinds.size(0) > 1 ? s.rows * blocks->kinds.size(1) : 0;
  }
  s.mask_all = !options.mask_mod.empty(), s.wants_lse = results.lse.defined(), s.wants_top = results.max_scores.defined();
  const bool by_tiles = plan.entry == "flex_lanes";
  const auto items = static_cast<std::uint64_t>(c.batch * c.heads * (by_tiles ? s.tiles : c.q_len));
  const double scale = std::isnan(options.scale) ? 1 / std::sqrt(static_cast<double>(c.e)) : options.scale;
  Encoder encoder(stream, "flex");
  encoder.value(items).value(s);
  if (q.dtype() == DType::f64)
    encoder.value(scale);
  else
    encoder.value(static_cast<float>(scale));
  encoder.input(q).input(k).input(v).output(results.out);
  encoder.output(s.wants_lse ? results.lse : results.out).output(s.wants_top ? results.max_scores : results.out);
  for (const Tensor* t : blocks ? std::array{&blocks->kv_num, &blocks->kv_indices, &blocks->full_kv_num, &blocks->full_kv_indices} : std::array{&q, &q, &q, &q})
    encoder.input(*t);
  for (const ExprFunction* f : {&score, &mask})
    if (!f->empty()) bind_extra(encoder, *f->body(), f->body()->param_values);
  encoder.dispatch(plan.kernel, item_geometry(items, plan.tuning.local));
}

}  // namespace
}  // namespace detail

namespace attention {

// Score mods --------------------------------------------------------------------------------------------------------

ScoreMod::ScoreMod(const ExprFunction& f32, const ExprFunction& f64) : f32_(f32), f64_(f64) {
  for (const ExprFunction* f : {&f32, &f64}) {
    if (f->empty() || f->input_count() != 5 || f->output_count() != 1 || f->input_dtype(0) != (f == &f32 ? DType::f32 : DType::f64))
      detail::refuse(ErrorCode::invalid_argument, "a score mod takes a score and four indices and gives one number");
    for (int i = 1; i < 5; ++i)
      if (f->input_dtype(i) != DType::i32) detail::refuse(ErrorCode::invalid_argument, "a score mod's indices are i32");
    if (f->output_dtype(0) == DType::boolean) detail::refuse(ErrorCode::invalid_dtype, "a score mod gives booleans: make it a mask");
    if (detail::has_positions(*f)) detail::refuse(ErrorCode::invalid_argument, "positions are map's; a score mod has indices");
  }
}

Expr ScoreMod::operator()(const Score& score, const Index& b, const Index& h, const Index& q, const Index& kv) const {
  if (empty()) return score;
  const Expr inputs[] = {score, b, h, q, kv};
  return detail::applied(function(score.dtype()), inputs)[0];
}

ScoreMod alibi(const Tensor& slopes) {
  Captured of = captured(slopes);
  return [&](Score s, Index, Index h, Index q, Index kv) { return s + of[h] * (kv - q); };
}
Tensor alibi_slopes(std::int64_t heads, const Device& device, const Stream& stream) {
  if (heads < 1) detail::refuse(ErrorCode::invalid_argument, fmt::format("slopes of {} heads", heads));
  std::vector<float> slopes;
  for (std::int64_t h = 0; h < heads; ++h) slopes.push_back(static_cast<float>(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads))));
  return from_host(slopes, {heads}, device, stream);
}
ScoreMod softcap(double cap) {
  if (!(cap > 0)) detail::refuse(ErrorCode::invalid_argument, fmt::format("a cap of {}", cap));
  return [&](Score s, Index, Index, Index, Index) { return param(cap) * tanh(s * param(1 / cap)); };
}
ScoreMod relative_bias() {
  return [](Score s, Index, Index, Index q, Index kv) { return s + (q - kv); };
}
ScoreMod relative_bias(const Tensor& table) {
  if (table.rank() != 1 && table.rank() != 2) detail::refuse(ErrorCode::invalid_shape, fmt::format("a table of shape {}", to_string(table.sizes())));
  Captured of = captured(table);
  const std::int64_t middle = (table.size(-1) - 1) / 2;
  return [&, rank = table.rank()](Score s, Index, Index h, Index q, Index kv) {
    Expr at = q - kv + param(middle);
    return s + (rank == 1 ? of[at] : of[{h, at}]);
  };
}

// The op ------------------------------------------------------------------------------------------------------------

FlexResult flex(const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options, const Stream& given) {
  detail::Checked c = detail::validate(nullptr, q, k, v, options);
  const Stream stream = detail::resolve_stream(given, *c.runtime, detail::kOp);
  const DType sums = q.dtype() == DType::f64 ? DType::f64 : DType::f32;
  FlexResult results;
  results.out = empty(c.result(), {.dtype = q.dtype(), .device = stream.device()}, stream);
  if (options.return_lse) results.lse = empty(c.lines(), {.dtype = sums, .device = stream.device()}, stream);
  if (options.return_max_scores) results.max_scores = empty(c.lines(), {.dtype = sums, .device = stream.device()}, stream);
  detail::run(results, q, k, v, c, options, stream);
  return results;
}

void flex_out(const FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options, const Stream& given) {
  detail::Checked c = detail::validate(&results, q, k, v, options);
  detail::run(results, q, k, v, c, options, detail::resolve_stream(given, *c.runtime, detail::kOp));
}

}  // namespace attention
}  // namespace clutch::inline v0
