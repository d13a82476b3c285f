// SPDX-License-Identifier: Apache-2.0
#include "encode/generator.hpp"
#include "ops/flex/call.hpp"
#include "ops/flex/matrix.hpp"
#include "ops/flex/stored.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

constexpr std::string_view kOp = kFlex;

// validate ----------------------------------------------------------------------------------------------------------

void refuse(ErrorCode code, std::string_view why) { throw Error(code, kOp, why); }

/// Sets the number of sequences and their largest lengths.
void measure(Checked& c, const attention::Varlen& o) {
  c.ragged = o.cu_seq_q.defined() || o.cu_seq_kv.defined() || o.seqused_kv.defined() || o.page_table.defined();
  c.packed_kv = o.cu_seq_kv.defined();
  if (o.max_q != 0 && !o.cu_seq_q.defined()) refuse(ErrorCode::invalid_argument, fmt::format("max_q must be 0 without cu_seq_q, got {}", o.max_q));
  if (o.max_kv != 0 && !o.cu_seq_kv.defined() && !o.page_table.defined())
    refuse(ErrorCode::invalid_argument, fmt::format("max_kv must be 0 without cu_seq_kv or page_table, got {}", o.max_kv));
  if (!c.ragged) return;
  if (o.cu_seq_q.defined() && o.cu_seq_q.numel() == 0) refuse(ErrorCode::invalid_shape, "cu_seq_q must have n_sequences + 1 elements, at least 1, got 0");
  if (o.cu_seq_q.defined()) c.batch = o.cu_seq_q.numel() - 1, c.q_len = o.max_q > 0 ? std::min(o.max_q, c.q_rows) : c.q_rows;
  if (o.cu_seq_kv.defined()) c.kv_len = o.max_kv > 0 ? std::min(o.max_kv, c.kv_rows) : c.kv_rows;
  auto check = [](const Tensor& t, const Dims& sizes, std::string_view what) {
    if (!t.defined()) return;
    check_is(t, sizes, DType::i32, what, kOp);
    if (!t.is_contiguous()) refuse(ErrorCode::invalid_shape, fmt::format("{} must be contiguous, got strides {}", what, to_string(t.strides())));
  };
  check(o.cu_seq_q, {c.batch + 1}, "cu_seq_q"), check(o.cu_seq_kv, {c.batch + 1}, "cu_seq_kv"), check(o.seqused_kv, {c.batch}, "seqused_kv");
  if (o.cu_seq_q.defined() && c.q_batch != 1) refuse(ErrorCode::invalid_shape, fmt::format("queries must have one batch with cu_seq_q, got {}", c.q_batch));
  if ((o.cu_seq_kv.defined() || o.page_table.defined()) && c.kv_batch != 1)
    refuse(ErrorCode::invalid_shape, fmt::format("keys must have one batch with cu_seq_kv or page_table, got {}", c.kv_batch));
  if (!o.page_table.defined()) return;
  if (o.cu_seq_kv.defined()) refuse(ErrorCode::invalid_argument, "at most one of cu_seq_kv and page_table must be given, got both");
  if (o.page_size < 1 || o.page_size > INT32_MAX) refuse(ErrorCode::invalid_argument, fmt::format("page_size must be from 1 to 2^31 - 1, got {}", o.page_size));
  check(o.page_table, {c.batch, o.page_table.rank() == 2 ? o.page_table.size(1) : 0}, "page_table");
  // Past the longest sequence one more stands for all.
  constexpr std::int64_t kTooLong = std::int64_t{INT32_MAX} + 1;
  c.kv_len = o.page_table.size(1) > INT32_MAX / o.page_size ? kTooLong : o.page_table.size(1) * o.page_size;
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
  if (!(options.dropout_p >= 0 && options.dropout_p <= 1))
    refuse(ErrorCode::invalid_argument, fmt::format("dropout_p must be in [0, 1], got {}", options.dropout_p));
  if (options.dropout_p > 0 && !options.generator.empty() && &options.generator.impl()->runtime() != c.runtime)
    refuse(ErrorCode::device_mismatch, "the generator must be of q's device and context, got one of another");
  for (const Tensor* t : {&k, &v})
    if (t->dtype() != q.dtype()) refuse(ErrorCode::invalid_dtype, fmt::format("k and v must be {} as q, got {}", name(q.dtype()), name(t->dtype())));
  for (const Tensor* t : {&q, &k, &v})
    if (t->rank() != 4) refuse(ErrorCode::invalid_shape, fmt::format("tensors must be (batch, heads, length, size), got shape {}", to_string(t->sizes())));
  c.batch = q.size(0), c.heads = q.size(1), c.q_len = q.size(2), c.e = q.size(3), c.kv_len = k.size(2), c.ev = v.size(3);
  c.q_batch = c.batch, c.q_rows = c.q_len, c.kv_batch = k.size(0), c.kv_rows = c.kv_len;
  const std::int64_t shared = k.size(1);
  if (k.size(3) != c.e || c.e < 1)
    refuse(ErrorCode::invalid_shape, fmt::format("keys must have the size of queries, {} and at least 1, got {}", c.e, k.size(3)));
  if (v.size(0) != k.size(0) || v.size(1) != shared || v.size(2) != c.kv_rows)
    refuse(ErrorCode::invalid_shape, fmt::format("v must have the batches, heads and length of k {}, got {}", to_string(k.sizes()), to_string(v.sizes())));
  measure(c, options.varlen);
  if (c.kv_batch != c.batch && c.kv_batch != 1) refuse(ErrorCode::invalid_shape, fmt::format("keys must have 1 or {} batches, got {}", c.batch, c.kv_batch));
  if (shared != c.heads) {
    if (!options.enable_gqa)
      refuse(ErrorCode::invalid_argument, fmt::format("keys must have the {} heads of queries without enable_gqa, got {}", c.heads, shared));
    if (shared < 1 || c.heads % shared != 0)
      refuse(ErrorCode::invalid_argument, fmt::format("heads of keys must divide the {} of queries, got {}", c.heads, shared));
    c.gqa_factor = c.heads / shared;
  }
  for (std::int64_t length : {c.q_rows, c.kv_rows, c.q_len, c.kv_len, c.batch, c.heads})
    if (length > INT32_MAX) refuse(ErrorCode::invalid_shape, fmt::format("lengths must be at most 2^31 - 1, got {}", length));
  if (blocks) {
    const Dims& kinds = blocks->kinds.sizes();
    if (blocks->q_len != c.q_len || blocks->kv_len != c.kv_len)
      refuse(ErrorCode::invalid_argument,
             fmt::format("the block mask must have the lengths {} and {}, got {} and {}", c.q_len, c.kv_len, blocks->q_len, blocks->kv_len));
    if ((kinds[0] != 1 && kinds[0] != c.batch) || (kinds[1] != 1 && kinds[1] != c.heads))
      refuse(ErrorCode::invalid_argument,
             fmt::format("the block mask must have 1 or {} batches and 1 or {} heads, got {} and {}", c.batch, c.heads, kinds[0], kinds[1]));
    if (options.varlen.page_table.defined() && options.varlen.page_size % blocks->block.kv != 0)
      refuse(ErrorCode::invalid_argument,
             fmt::format("blocks must have a divisor of the {} keys of a page, got {}", options.varlen.page_size, blocks->block.kv));
  }
  if (!results) return c;
  const DType sums = compute_dtype(q.dtype(), kOp);
  auto check = [&](const Tensor& t, const Dims& sizes, DType dtype) {
    if (!(t.sizes() == sizes))
      refuse(ErrorCode::invalid_shape, fmt::format("the output must have the shape {}, got {}", to_string(sizes), to_string(t.sizes())));
    if (t.dtype() != dtype) refuse(ErrorCode::invalid_dtype, fmt::format("the output must be {}, got {}", name(dtype), name(t.dtype())));
    check_no_self_overlap(t, kOp);
    for (const Tensor* other : all)
      if (other != &t) check_apart(t, *other, kOp);
  };
  check(results->out, c.result(), q.dtype());
  if (results->dropout_state.defined()) check(results->dropout_state, {2}, DType::i64);
  for (const Tensor* t : {&results->lse, &results->max_scores})
    if (t->defined()) {
      check(*t, c.lines(), sums);
      if (!t->is_contiguous()) refuse(ErrorCode::invalid_shape, fmt::format("lse and max_scores must be contiguous, got strides {}", to_string(t->strides())));
    }
  return c;
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const FlexProblem& p) { return refuses_fp64(traits, p.types.has_f64 || p.dtype == DType::f64); }

std::string fits_lanes(const DeviceTraits& traits, const FlexProblem& p) {
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (p.size_class >= kFlexClasses.size()) return fmt::format("rows must have at most {} elements, got longer ones", kFlexClasses.back().most);
  return computes(traits, p);
}

std::string fits_wide(const DeviceTraits& traits, const FlexProblem& p) {
  return row_tuning(traits).local != 1 ? std::string(kNeedsVectors) : fits_lanes(traits, p);
}
/// True if flex_lanes and flex_split read keys and values in the tensors.
bool reads_in_place(const FlexProblem& p, bool split) { return p.direct && (p.dtype == DType::f32 || p.dtype == DType::f64 || split); }
/// Keys of a block of flex_split. If keys are read in place, long contiguous reads of keys and then of values, which memory serves fast (128 KiB of f32); if
/// they are loaded first, as many as stay in the L1 cache until they are used (16 KiB).
int split_keys(const FlexClass& c, bool direct) { return std::max((direct ? 32768 : 4096) / c.most, 16); }
int tile_vectors(const FlexClass& c) { return c.tile_vectors + c.tile_vectors % 2; }

/// The arrays of a work-item of flex_lanes or flex_split in bytes (kernels/flex/forward.clh, split.clh), where vectors have 16: on devices whose groups have
/// several items.
std::uint64_t private_bytes(const FlexProblem& p, bool split) {
  constexpr std::uint64_t kVector = 16, kVectors = 2, kPadding = 16;
  const FlexClass& c = kFlexClasses[p.size_class];
  const bool direct = reads_in_place(p, split);
  const std::uint64_t size = p.dtype == DType::f64 ? 8 : 4, most = static_cast<std::uint64_t>(c.most);
  const auto keys = static_cast<std::uint64_t>(split ? split_keys(c, direct) : c.keys);
  const auto rows = static_cast<std::uint64_t>(split_rows(c)), vectors = static_cast<std::uint64_t>(tile_vectors(c));
  const std::uint64_t loaded = direct ? 0 : 2 * keys * (most + kPadding) * size;
  return loaded + (split ? rows * (2 * most + keys) * size : kVector * (2 * vectors * (most + 1) + keys * kVectors));
}

/// Reason why a device refuses the private memory of flex_lanes or flex_split; empty if it accepts. Where groups have several items, compilers give an item up
/// to 128 KiB, of which these kernels use some for other numbers. Gradients need some 200 KB. Simulators provide all of it.
std::string refuses_private(const DeviceTraits& traits, const FlexProblem& p, bool split) {
  if (row_tuning(traits).local == 1 || traits.simulator) return {};
  constexpr std::uint64_t kMost = 127;
  const bool gradients = p.part == FlexPart::backward || p.part == FlexPart::keys || p.part == FlexPart::sums;
  const std::uint64_t needs = gradients ? 200 : (private_bytes(p, split) + 1023) / 1024;
  return needs > kMost
             ? fmt::format("a work-item of a group must need at most {} KiB of private memory, got some {} KiB, where the device has groups of several", kMost,
                           needs)
             : std::string();
}
std::string fits_forced_lanes(const DeviceTraits& traits, const FlexProblem& p) {
  std::string why = fits_lanes(traits, p);
  return why.empty() ? refuses_private(traits, p, false) : why;
}
constexpr std::string_view kNoGradients = "the pass must be the forward one, got gradients";
std::string fits_split(const DeviceTraits& traits, const FlexProblem& p) {
  return p.part != FlexPart::forward ? std::string(kNoGradients) : fits_lanes(traits, p);
}
std::string fits_forced_split(const DeviceTraits& traits, const FlexProblem& p) {
  std::string why = fits_split(traits, p);
  return why.empty() ? refuses_private(traits, p, true) : why;
}

/// Tiles of flex_tiles*: rows and columns of a work-group, its work-items along both, the elements loaded into local memory at a time, and the shares of
/// columns in the second product (kernels/flex/tiles.clh).
struct FlexTiles {
  int block_m, block_n, threads_m, threads_n, block_k, shares = 1;
  std::uint64_t numbers(int most) const {  ///< numbers in local memory
    const int all = FLEX_TILE_NUMBERS(block_m, block_n, block_k, threads_m, threads_n, shares, most) + FLEX_STATE_NUMBERS(block_m);
    return static_cast<std::uint64_t>(all);
  }
  std::uint64_t items() const {
    const int all = threads_m * threads_n;
    return static_cast<std::uint64_t>(all);
  }
};
/// Tiles by class of sizes (kFlexClasses) for forward, gradients of queries, of keys and values, and few queries; then the same for devices with less local
/// memory or fewer items in a group, and for f64, which has one class less. Chosen by registers, local memory and the model of scripts/gpu-cost, not by time:
/// these tiles have not run on a GPU. For f32, with at most E elements in a row and local memory L:
///   forward    E 64 and 128: 256 items with 8 x 8 scores and 8 x 8 results each, L = 26,624 B; E 256: 128 with 4 x 4 and 4 x 16
///   backward   256 items; dq with 8 x 4 scores and 8 x 4 (E 64) or 8 x 8 results; dk and dv, which are accumulated at the same time, with 8 x 4 and 8 x 4
///              (E 64) or with 4 x 4 and 4 x 8; E 256: 128 with 4 x 4 and 4 x 16
///   few        BLOCK_M 16: filled by one query of 16 heads, or by up to 8 queries less
/// For f64 all have 4 x 4 scores and 4 x 4 results an item; chunks are shorter for dk and dv, as registers hold what is loaded ahead.
/// To tune a GPU: run `scripts/bench --filter '^flex/' --device N` for each row and set the row by hand.
using TilesBySize = std::array<std::array<FlexTiles, 4>, 3>;
constexpr TilesBySize kTiles{{{{{128, 128, 16, 16, 8, 2}, {128, 64, 16, 16, 8}, {128, 64, 16, 16, 8}, {16, 64, 4, 16, 16}}},
                              {{{128, 128, 16, 16, 8}, {128, 64, 16, 16, 8}, {64, 64, 16, 16, 8}, {16, 64, 4, 16, 16}}},
                              {{{32, 64, 8, 16, 4}, {32, 64, 8, 16, 16}, {32, 64, 8, 16, 16}, {16, 64, 4, 16, 8}}}}};
constexpr TilesBySize kSmallTiles{{{{{32, 32, 8, 8, 8}, {32, 32, 8, 8, 8}, {32, 32, 8, 8, 8}, {16, 32, 4, 8, 8}}},
                                   {{{16, 32, 4, 8, 8}, {32, 32, 8, 8, 8}, {32, 32, 8, 8, 8}, {16, 32, 4, 8, 8}}},
                                   {{{16, 64, 4, 16, 4}, {16, 64, 4, 16, 8}, {16, 64, 4, 16, 8}, {16, 64, 4, 16, 4}}}}};
constexpr TilesBySize kWideTiles{{{{{16, 64, 4, 16, 8}, {16, 64, 4, 16, 8}, {16, 64, 4, 16, 4}, {16, 64, 4, 16, 8}}},
                                  {{{16, 128, 4, 32, 8}, {16, 128, 4, 32, 8}, {16, 128, 4, 32, 4}, {16, 128, 4, 32, 8}}},
                                  {}}};
constexpr TilesBySize kSmallWideTiles{{{{{16, 32, 4, 8, 8}, {16, 32, 4, 8, 8}, {16, 32, 4, 8, 8}, {16, 32, 4, 8, 8}}},
                                       {{{16, 32, 4, 8, 4}, {16, 32, 4, 8, 8}, {16, 32, 4, 8, 8}, {16, 32, 4, 8, 4}}},
                                       {}}};
/// Gradients on devices whose smallest sub-groups have 16 items, whose compiler finds registers for fewer numbers than the largest tiles have: 128.
constexpr FlexTiles kFewerNumbers{64, 64, 16, 16, 8};
/// Rows, columns and results of an item are quads: kernels have no other loops.
constexpr bool is_of_quads(const FlexTiles& t, int most) {
  return t.block_m % (4 * t.threads_m) == 0 && t.block_n % (4 * t.threads_n) == 0 && most % (4 * t.threads_n) == 0;
}
constexpr bool are_of_quads(const TilesBySize& all, std::size_t classes) {
  for (std::size_t c = 0; c < classes; ++c)
    for (const FlexTiles& t : all[c])
      if (!is_of_quads(t, kFlexClasses[c].most)) return false;
  return true;
}
static_assert(are_of_quads(kTiles, 3) && are_of_quads(kSmallTiles, 3) && are_of_quads(kWideTiles, 2) && are_of_quads(kSmallWideTiles, 2));
static_assert(is_of_quads(kFewerNumbers, 64));

/// Sets `tiles` for the device, or returns the reason why it has none.
std::string tiles_of(const DeviceTraits& traits, const FlexProblem& p, bool split, FlexTiles* tiles = nullptr) {
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  const bool wide = p.dtype == DType::f64;
  const bool keys = p.part == FlexPart::keys;
  const std::size_t classes = wide ? 2 : 3, which = split ? 3 : p.part == FlexPart::forward || p.part == FlexPart::sums ? 0 : keys ? 2 : 1;
  if (p.size_class >= classes) return fmt::format("rows must have at most {} elements, got longer ones", kFlexClasses[classes - 1].most);
  std::string why;
  for (const TilesBySize* all : {wide ? &kWideTiles : &kTiles, wide ? &kSmallWideTiles : &kSmallTiles}) {
    const int most = kFlexClasses[p.size_class].most;
    FlexTiles t = (*all)[p.size_class][which];
    if (all == &kTiles && traits.least_sub_group >= 16 && (which == 1 || which == 2) && most < 256) t = kFewerNumbers;
    why = refuses_local_bytes(traits, t.numbers(most) * (wide ? 8 : 4));
    if (why.empty()) why = refuses_group_items(traits, t.items());
    if (!why.empty()) continue;
    if (tiles) *tiles = t;
    return computes(traits, p);
  }
  return why;
}
std::string fits_tiles(const DeviceTraits& traits, const FlexProblem& p) { return tiles_of(traits, p, false); }
std::string fits_tiles_split(const DeviceTraits& traits, const FlexProblem& p) {
  if (p.part != FlexPart::forward) return std::string(kNoGradients);
  return p.joint ? tiles_of(traits, p, true) : std::string("queries must visit the same blocks, got different ones");
}

constexpr std::array<Implementation<FlexProblem>, 6> kImplementations{{
    {"flex_split",
     [](const DeviceTraits& t, const FlexProblem& p) {
       if (std::string why = fits_split(t, p); !why.empty()) return why;
       return p.few ? fits_wide(t, p) : fmt::format("queries must be at most {}, got more", kFewQueries);
     }},
    {"flex_lanes", fits_wide},
    {"flex_tiles_split",
     [](const DeviceTraits& t, const FlexProblem& p) {
       return p.few ? of_groups<fits_tiles_split>(t, p) : fmt::format("queries must be at most {}, got more", kFewQueries);
     }},
    {"flex_matrix", of_groups<fits_flex_matrix>},
    {"flex_tiles", of_groups<fits_tiles>},
    {"flex_items", computes},
}};
constexpr std::array<Implementation<FlexProblem>, 6> kForced{{{"flex_split", fits_forced_split},
                                                              {"flex_lanes", fits_forced_lanes},
                                                              {"flex_tiles_split", fits_tiles_split},
                                                              {"flex_matrix", fits_flex_matrix},
                                                              {"flex_tiles", fits_tiles},
                                                              {"flex_items", computes}}};
/// Entry of a part. The names of the forward entries also choose the kernels of gradients.
std::string_view entry_of(FlexPart part, std::string_view chosen) {
  switch (part) {
    case FlexPart::forward:
    case FlexPart::sums: return chosen;
    case FlexPart::combine: return "flex_combine";
    case FlexPart::assign: return "flex_assign";
    case FlexPart::dropout: return "flex_dropout";
    case FlexPart::backward:
      return chosen == "flex_lanes"    ? "flex_lanes_backward"
             : chosen == "flex_tiles"  ? "flex_tiles_dq"
             : chosen == "flex_matrix" ? "flex_matrix_dq"
                                       : "flex_items_dq";
    case FlexPart::keys: return chosen == "flex_tiles" ? "flex_tiles_dkv" : chosen == "flex_matrix" ? "flex_matrix_dkv" : "flex_items_dkv";
  }
  return {};
}

}  // namespace

void check_flex_implementation(std::string_view forced) { check_implementation(forced, kOp, kForced); }
int split_rows(const FlexClass& c) { return std::clamp(2048 / c.most, 2, 16); }
bool keys_along(std::string_view entry) { return entry == "flex_lanes_backward" || entry == "flex_split"; }

void check_flex(const Tensor& q, const Tensor& k, const Tensor& v, const attention::FlexOptions& options) { validate(nullptr, q, k, v, options); }

KernelPlan select(const DeviceTraits& traits, const FlexProblem& p, std::string_view forced) {
  const bool wide = p.dtype == DType::f64;
  const bool helps = p.part == FlexPart::combine || p.part == FlexPart::assign || p.part == FlexPart::dropout;
  if (helps) forced = "flex_items";
  const std::string_view chosen = choose<FlexProblem>(forced.empty() ? kImplementations : kForced, traits, p, forced, kOp).name;
  const bool tiles = chosen.starts_with("flex_tiles"), matrix = chosen == "flex_matrix", lanes = chosen != "flex_items" && !tiles && !matrix;
  KernelPlan plan{.stem = kOp, .entry = entry_of(p.part, chosen), .tuning = row_tuning(traits)};
  if (lanes) plan.tuning.set_items(1);  // a work-item uses too much private memory for groups of several
  if (!lanes) plan.tuning.width = 1;
  // Register tiles of ROWS x VECTORS sums: 8 x 3 if there are 32 vector registers, 4 x 2 if 16. The other registers hold operands.
  const bool many = plan.tuning.width >= 16;
  set_lanes(plan, traits, wide || p.types.has_f64, 1, true, 4);
  plan.options = "-cl-denorms-are-zero";
  Defines& d = plan.defines;
  d.set_text("S_NAME", name(p.dtype))
      .set(wide ? "A_IS_F64" : "A_IS_F32", 1)
      .set("CLUTCH_HAS_SCORE", p.score != 0)
      .set("CLUTCH_HAS_MASK", p.mask != 0)
      .set("CLUTCH_RAGGED", p.ragged)
      .set("CLUTCH_WIDE_TASKS", p.wide_tasks)
      .set("CLUTCH_SKIP_MASKED", p.skip_masked)
      .set("CLUTCH_DROPOUT", p.dropout)
      .set("CLUTCH_KEYS_ALONG", keys_along(plan.entry))
      .set("CLUTCH_BACKWARD", p.part == FlexPart::backward || p.part == FlexPart::keys)
      .set("CLUTCH_SUMS_ONLY", p.part == FlexPart::sums);
  if (matrix) {
    set_flex_matrix(plan, traits, p);
    return plan;
  }
  if (!lanes && !tiles) {
    const bool pieces = p.part == FlexPart::combine && combines_by_pieces(traits);
    d.set("CLUTCH_CHUNK", pieces ? kPieceElements : flex_chunk(traits, p.size_class));
    if (p.part == FlexPart::combine) d.set("CLUTCH_PIECES", pieces);
    return plan;
  }
  const FlexClass& c = kFlexClasses[p.size_class];
  if (tiles) {
    FlexTiles t;
    tiles_of(traits, p, chosen == "flex_tiles_split", &t);
    plan.tuning.tile = static_cast<std::uint64_t>(t.block_m), plan.tuning.set_items(t.items());
    // The next tile's first loads come ahead where the compiler keeps to a number of registers, as others do not; on CPUs, too, where tests run it.
    plan.registers = 255;  // most tiles have 128 numbers and as many addresses, operands and numbers to come
    d.set("CLUTCH_BLOCK_M", t.block_m)
        .set("CLUTCH_BLOCK_N", t.block_n)
        .set("CLUTCH_THREADS_M", t.threads_m)
        .set("CLUTCH_THREADS_N", t.threads_n)
        .set("CLUTCH_BLOCK_K", t.block_k)
        .set("CLUTCH_SHARES", t.shares)
        .set("CLUTCH_AHEAD", traits.register_limits || traits.type == DeviceType::cpu);
    d.set("CLUTCH_DMAX", c.most).set("CLUTCH_S_BYTES", static_cast<std::int64_t>(bytes_for(p.dtype, 1)));
    return plan;
  }
  const int tile_rows = c.tile_vectors * plan.tuning.width;
  plan.tuning.tile = static_cast<std::uint64_t>(tile_rows);
  const bool split = plan.entry == "flex_split", direct = reads_in_place(p, split);
  d.set("CLUTCH_DIRECT", direct)
      .set("CLUTCH_DMAX", c.most)
      .set("CLUTCH_KEYS", split ? split_keys(c, direct) : c.keys)
      .set("CLUTCH_TILE_VECTORS", tile_vectors(c))
      .set("CLUTCH_S_BYTES", static_cast<std::int64_t>(bytes_for(p.dtype, 1)))
      .set("CLUTCH_SPLIT_ROWS", split_rows(c))
      .set("CLUTCH_ROWS", many ? 8 : 4)
      .set("CLUTCH_VECTORS", many ? 3 : 2);
  return plan;
}

}  // namespace detail

namespace attention {

// The op ------------------------------------------------------------------------------------------------------------

FlexResult flex(const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options, const Stream& given) {
  detail::OpName named("attention::flex");
  detail::Checked c = detail::validate(nullptr, q, k, v, options);
  const Stream stream = detail::resolve_stream(given, *c.runtime, detail::kOp);
  const DType sums = detail::compute_dtype(q.dtype(), detail::kOp);
  FlexResult results;
  results.out = empty(c.result(), {.dtype = q.dtype(), .device = stream.device()}, stream);
  if (options.return_lse) results.lse = empty(c.lines(), {.dtype = sums, .device = stream.device()}, stream);
  if (options.return_max_scores) results.max_scores = empty(c.lines(), {.dtype = sums, .device = stream.device()}, stream);
  if (options.dropout_p > 0) results.dropout_state = empty({2}, {.dtype = DType::i64, .device = stream.device()}, stream);
  detail::run_flex(results, q, k, v, c, options, stream);
  return results;
}

void flex_out(const FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options, const Stream& given) {
  detail::OpName named("attention::flex_out");
  detail::Checked c = detail::validate(&results, q, k, v, options);
  detail::run_flex(results, q, k, v, c, options, detail::resolve_stream(given, *c.runtime, detail::kOp));
}

FlexGradients flex_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const FlexResult& results, const FlexOptions& options,
                            const FlexBackwardOptions& backward, const Stream& given) {
  detail::OpName named("attention::flex_backward");
  if (!results.lse.defined()) detail::refuse(ErrorCode::invalid_argument, "the forward call's lse must be given, got none; ask for it by return_lse");
  detail::Checked c = detail::validate(nullptr, q, k, v, options);
  std::vector<const Tensor*> all{&q, &grad_out, &results.out, &results.lse};
  for (const Tensor* t : {&backward.grad_lse, &results.max_scores})
    if (t->defined()) all.push_back(t);
  detail::common_runtime(all, detail::kOp);
  const DType sums = detail::compute_dtype(q.dtype(), detail::kOp);
  auto check = [](const Tensor& t, const Dims& sizes, DType dtype, std::string_view what) { detail::check_is(t, sizes, dtype, what, detail::kOp); };
  check(grad_out, c.result(), q.dtype(), "the result's gradient"), check(results.out, c.result(), q.dtype(), "the result");
  check(results.lse, c.lines(), sums, "lse");
  if (results.max_scores.defined()) check(results.max_scores, c.lines(), sums, "max_scores");
  if (backward.grad_lse.defined()) check(backward.grad_lse, c.lines(), sums, "lse's gradient");
  if (options.dropout_p > 0 && (!results.dropout_state.defined() || !(results.dropout_state.sizes() == Dims{2}) || results.dropout_state.dtype() != DType::i64))
    detail::refuse(ErrorCode::invalid_argument, "the forward call's dropout_state must be given, got none");
  if (options.varlen.page_table.defined())
    throw Error(ErrorCode::not_supported, "flex_backward",
                fmt::format("varlen.page_table must be undefined, since keys in pages have no gradient, got one of shape {}",
                            to_string(options.varlen.page_table.sizes())));
  const Stream stream = detail::resolve_stream(given, *c.runtime, detail::kOp);
  FlexResult dense = results;
  dense.lse = results.lse.contiguous(stream);
  if (results.max_scores.defined()) dense.max_scores = results.max_scores.contiguous(stream);
  return detail::differentiate_flex(grad_out, q, k, v, dense, c, options, backward, stream);
}
void flex_backward_out(const FlexGradients& out, const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const FlexResult& results,
                       const FlexOptions& options, const FlexBackwardOptions& backward, const Stream& stream) {
  detail::OpName named("attention::flex_backward_out");
  detail::store_gradients(out, flex_backward(grad_out, q, k, v, results, options, backward, stream), detail::kFlex, stream);
}

}  // namespace attention
}}  // namespace clutch::v0
