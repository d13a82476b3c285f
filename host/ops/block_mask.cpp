// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/block_mask.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/map.hpp>

#include "block_mask/args.h"
#include "encode/args.hpp"
#include "ops/block_mask_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

constexpr std::string_view kOp = "block_mask";

// validate ----------------------------------------------------------------------------------------------------------

void refuse(ErrorCode code, std::string_view why) { throw Error(code, kOp, why); }

void check_shape(const attention::BlockMaskOptions& o) {
  for (std::int64_t length : {o.q_len, o.kv_len, o.batch, o.heads})
    if (length < 1 || length > INT32_MAX)
      refuse(ErrorCode::invalid_argument, fmt::format("batch, heads and lengths must be from 1 to 2^31 - 1, got {}", length));
  for (std::int64_t block : {o.block.q, o.block.kv})
    if (block < 1 || block > INT32_MAX) refuse(ErrorCode::invalid_argument, fmt::format("blocks must be of 1 to 2^31 - 1, got {}", block));
}

/// Returns the given stream; if none is given, the current stream of the captured tensors' runtime, or of the device without captured tensors.
/// Errors: device_mismatch.
Stream stream_for_mask(const attention::MaskMod& mask, const Device& device, const Stream& given) {
  const std::vector<Tensor>& tensors = mask.function().body()->tensors;
  Stream stream = given;
  if (!tensors.empty()) {
    std::vector<const Tensor*> all;
    for (const Tensor& t : tensors) all.push_back(&t);
    stream = resolve_stream(given, common_runtime(all, kOp), kOp);
  } else if (given.empty()) {
    stream = current_stream(device);
  }
  if (!device.empty() && !(stream.device() == device))
    throw Error(ErrorCode::device_mismatch, kOp, "stream and captured tensors must be of the mask's device and context, got another");
  return stream;
}

// select ------------------------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 3> kEntries{"", "block_mask_lists", "block_mask_from_lists"};
constexpr std::string_view kGroups = "block_mask_groups";
std::string computes(const DeviceTraits& t, const BlockMaskProblem& p) { return refuses_fp64(t, p.types.has_f64); }
std::string fits_groups(const DeviceTraits& t, const BlockMaskProblem& p) {
  // Loops that hold barriers must not end for one item alone.
  if (std::string why = refuses_long_loops(t); !why.empty()) return why;
  if (std::string why = refuses_local_bytes(t, (BLOCK_MASK_ITEMS + 1) * 4); !why.empty()) return why;
  return computes(t, p);
}
constexpr std::array<Implementation<BlockMaskProblem>, 2> kImplementations{{{kGroups, fits_groups, of_groups<fits_groups>}, {"block_mask_kinds", computes}}};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const BlockMaskProblem& p, std::string_view forced) {
  KernelPlan plan{.stem = kOp, .entry = kEntries[static_cast<std::size_t>(p.stage)], .tuning = row_tuning(traits)};
  if (p.stage == BlockMaskStage::kinds) plan.entry = choose<BlockMaskProblem>(kImplementations, traits, p, forced, kOp).name;
  if (plan.entry == kGroups) plan.tuning.width = 1, plan.tuning.set_items(std::min<std::uint64_t>(traits.max_work_group, BLOCK_MASK_ITEMS));
  if (p.stage == BlockMaskStage::kinds) set_lanes(plan, traits, p.types.has_f64, 1, true, 4);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// How a mask mod's inputs (b, h, q, kv) differ between the lanes of a vector: consecutive lanes have consecutive queries.
constexpr std::array<LaneKind, 4> kMaskLanes{LaneKind::same, LaneKind::same, LaneKind::consecutive, LaneKind::same};

/// Most iterations of a work-item's loops for one block of kinds_of(): keys, in steps of eight, times vectors of queries.
double loops_of_block(const attention::BlockSize& block, int width) {
  const auto whole = block.q / width;
  const auto vectors = static_cast<double>(whole), keys = static_cast<double>(block.kv);
  return keys * (vectors + 2) + keys / 4 + 4;
}

/// Computes the kinds (B, H, rows, columns) of blocks from the mask.
Tensor kinds_of(const attention::MaskMod& mask, const attention::BlockMaskOptions& o, Runtime& runtime, const Stream& stream) {
  const ExprFunction& f = mask.function();
  BlockMaskProblem p{.function = f.body()->id};
  p.types.note(f);
  const BuiltPlan& plan = runtime.plans().find<BuiltPlan>(kOp, p, o.implementation, [&] {
    KernelPlan selected = select(runtime.traits(), p, o.implementation);
    const DType i32 = DType::i32, out = DType::boolean;
    const DType inputs[] = {i32, i32, i32, i32};
    PrintNames names{.macro = "MASK", .lanes = kMaskLanes};
    selected.expression = print_opencl(f, std::span(&out, 1), inputs, names).text + print_ranges(f, names);
    return build_plan(runtime, selected);
  });
  BlockMaskKindsArgs s{.heads = o.heads,
                       .rows = blocks_of(o.q_len, o.block.q),
                       .columns = blocks_of(o.kv_len, o.block.kv),
                       .q_len = o.q_len,
                       .kv_len = o.kv_len,
                       .block_q = o.block.q,
                       .block_kv = o.block.kv,
                       .columns_per_task = 64};
  // Blocks longer than the sequences are read up to the end of the sequences.
  const attention::BlockSize looked_at{std::min(o.block.q, o.q_len), std::min(o.block.kv, o.kv_len)};
  const double loops = loops_of_block(looked_at, plan.tuning.width);
  const bool groups = plan.entry == kGroups;
  // A group takes one block, so that few fill the device; of many, as many as it has items, most of which ranges decide.
  if (groups) {
    const std::int64_t enough = 8 * static_cast<std::int64_t>(runtime.traits().compute_units), all = o.batch * o.heads * s.rows * s.columns;
    s.columns_per_task = std::clamp<std::int64_t>(all / std::max<std::int64_t>(enough, 1), 1, BLOCK_MASK_ITEMS);
  }
  while (!groups && s.columns_per_task > 1 && !refuses_long_loops(runtime.traits(), static_cast<double>(s.columns_per_task) * loops + 16).empty())
    s.columns_per_task /= 2;
  Tensor kinds = empty({o.batch, o.heads, s.rows, s.columns}, {.dtype = DType::u8, .device = stream.device()}, stream);
  s.tasks = static_cast<std::uint64_t>(o.batch * o.heads * s.rows * blocks_of(s.columns, s.columns_per_task));
  const Geometry geometry = groups ? tile_geometry(s.tasks, plan.tuning.local) : item_geometry(s.tasks, plan.tuning.local);
  if (!groups) check_loops(runtime.traits(), kOp, s.tasks, geometry, static_cast<double>(s.columns_per_task) * loops + 1);
  Encoder encoder(stream, "block_mask");
  encoder.output(kinds);
  bind_args(encoder, s);
  bind_extra(encoder, *f.body(), f.body()->param_values);
  encoder.flops(f.body()->operations * static_cast<double>(o.batch * o.heads) * static_cast<double>(o.q_len) * static_cast<double>(o.kv_len));
  encoder.dispatch(plan.kernel, geometry);
  return kinds;
}

/// Makes the lists of blocks: by rows for the forward pass, by columns for gradients.
void make_lists(attention::BlockMask::State& state, Runtime& runtime, const Stream& stream) {
  const BlockMaskProblem p{.stage = BlockMaskStage::lists};
  const BuiltPlan& plan = runtime.plans().find<BuiltPlan>(kOp, p, "", [&] { return build_plan(runtime, select(runtime.traits(), p)); });
  const Dims& sizes = state.kinds.sizes();
  const TensorOptions i32{.dtype = DType::i32, .device = stream.device()};
  auto lists = [&](std::int64_t lines, std::int64_t length, std::int64_t line_stride, std::int64_t stride, Tensor* num, Tensor* list, Tensor* full_num,
                   Tensor* full_list) {
    for (Tensor* t : {num, full_num}) *t = empty({sizes[0], sizes[1], lines}, i32, stream);
    for (Tensor* t : {list, full_list}) *t = empty({sizes[0], sizes[1], lines, length}, i32, stream);
    const auto tasks = static_cast<std::uint64_t>(sizes[0] * sizes[1] * lines);
    const Geometry geometry = item_geometry(tasks, plan.tuning.local);
    check_loops(runtime.traits(), kOp, tasks, geometry, 4 * (static_cast<double>(length) + 1));
    Encoder encoder(stream, "block_mask");
    encoder.output(*num).output(*list).output(*full_num).output(*full_list).input(state.kinds);
    bind_args(encoder, BlockMaskListsArgs{tasks, lines, length, line_stride, stride});
    encoder.dispatch(plan.kernel, geometry);
  };
  lists(sizes[2], sizes[3], sizes[3], 1, &state.kv_num, &state.kv_indices, &state.full_kv_num, &state.full_kv_indices);
  lists(sizes[3], sizes[2], 1, sizes[3], &state.q_num, &state.q_indices, &state.full_q_num, &state.full_q_indices);
}

/// Completes a mask whose kinds are set. last_plan() names the plan that made the kinds, not the lists.
attention::BlockMask finished(attention::BlockMask::State state, Runtime& runtime, const Stream& stream) {
  const Aside lists;
  make_lists(state, runtime, stream);
  return attention::BlockMask(std::make_shared<const attention::BlockMask::State>(std::move(state)));
}

double sparsity_of(const attention::BlockMask::State& s, const std::vector<std::uint8_t>& kinds) {
  const double computed = static_cast<double>(kinds.size()) - static_cast<double>(std::count(kinds.begin(), kinds.end(), 0));
  const double scores = static_cast<double>(s.kinds.size(0) * s.kinds.size(1)) * static_cast<double>(s.q_len) * static_cast<double>(s.kv_len);
  return 100 * (1 - computed * static_cast<double>(s.block.q) * static_cast<double>(s.block.kv) / scores);
}

const attention::BlockMask::State& state_of(const attention::BlockMask& mask) {
  if (mask.empty()) refuse(ErrorCode::invalid_argument, "the block mask must be a made one, got an empty one");
  return *mask.state();
}

}  // namespace
}  // namespace detail

namespace attention {

// Masks -------------------------------------------------------------------------------------------------------------

MaskMod::MaskMod(const ExprFunction& function) : function_(function) {
  detail::OpName named("attention::MaskMod");
  if (function.empty() || function.input_count() != 4 || function.output_count() != 1)
    detail::refuse(ErrorCode::invalid_argument, fmt::format("a mask must take four indices and give one boolean, got {} inputs and {} outputs",
                                                            function.input_count(), function.output_count()));
  for (int i = 0; i < 4; ++i)
    if (function.input_dtype(i) != DType::i32)
      detail::refuse(ErrorCode::invalid_argument, fmt::format("a mask's indices must be i32, got {}", name(function.input_dtype(i))));
  if (function.output_dtype(0) != DType::boolean)
    detail::refuse(ErrorCode::invalid_dtype, fmt::format("a mask must give booleans, got {}", name(function.output_dtype(0))));
  if (detail::has_positions(function)) detail::refuse(ErrorCode::invalid_argument, "a mask must have indices and no positions, got a position");
}

Expr MaskMod::operator()(const Index& b, const Index& h, const Index& q, const Index& kv) const {
  detail::OpName named("attention::MaskMod::operator()");
  if (empty()) return Expr(true);
  const Expr inputs[] = {b, h, q, kv};
  return detail::applied(function_, inputs)[0];
}

MaskMod operator&(const MaskMod& a, const MaskMod& b) {
  detail::OpName named("attention::operator&");
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  return [&](Index i, Index h, Index q, Index kv) { return a(i, h, q, kv) & b(i, h, q, kv); };
}
MaskMod operator|(const MaskMod& a, const MaskMod& b) {
  detail::OpName named("attention::operator|");
  if (a.empty() || b.empty()) return {};
  return [&](Index i, Index h, Index q, Index kv) { return a(i, h, q, kv) | b(i, h, q, kv); };
}
MaskMod operator!(const MaskMod& a) {
  detail::OpName named("attention::operator!");
  return [&](Index b, Index h, Index q, Index kv) { return a.empty() ? kv < kv : !a(b, h, q, kv); };
}

MaskMod causal(std::int64_t offset) {
  detail::OpName named("attention::causal");
  if (offset == 0) return [](Index, Index, Index q, Index kv) { return q >= kv; };
  return [&](Index, Index, Index q, Index kv) { return q + param(offset) >= kv; };
}
MaskMod sliding_window(std::int64_t window) {
  detail::OpName named("attention::sliding_window");
  return [&](Index, Index, Index q, Index kv) { return (q >= kv) & (q - kv <= param(window)); };
}
MaskMod prefix_lm(const Tensor& prefix) {
  detail::OpName named("attention::prefix_lm");
  // Indices are clamped, so one number applies to all batches.
  Captured lengths = captured(prefix.numel() == 1 ? prefix.reshape({1}) : prefix);
  return [&](Index b, Index, Index q, Index kv) { return (kv < lengths[b]) | (q >= kv); };
}
MaskMod prefix_lm(std::int64_t prefix) {
  detail::OpName named("attention::prefix_lm");
  return [&](Index, Index, Index q, Index kv) { return (kv < param(prefix)) | (q >= kv); };
}
MaskMod document(const Tensor& ids) {
  detail::OpName named("attention::document");
  Captured of = captured(ids);
  if (ids.rank() == 2) return [&](Index b, Index, Index q, Index kv) { return of[{b, q}] == of[{b, kv}]; };
  return [&](Index, Index, Index q, Index kv) { return of[q] == of[kv]; };
}
MaskMod dilated(std::int64_t window, std::int64_t dilation) {
  detail::OpName named("attention::dilated");
  if (dilation < 1) detail::refuse(ErrorCode::invalid_argument, fmt::format("dilation must be at least 1, got {}", dilation));
  return [&](Index, Index, Index q, Index kv) {
    Expr away = abs(q - kv);
    return (away <= param(window)) & (trunc_mod(away, param(dilation)) == 0);
  };
}

// BlockMask ---------------------------------------------------------------------------------------------------------

std::int64_t BlockMask::q_len() const {
  detail::OpName named("attention::BlockMask::q_len");
  return detail::state_of(*this).q_len;
}
std::int64_t BlockMask::kv_len() const {
  detail::OpName named("attention::BlockMask::kv_len");
  return detail::state_of(*this).kv_len;
}
const BlockSize& BlockMask::block() const {
  detail::OpName named("attention::BlockMask::block");
  return detail::state_of(*this).block;
}
const MaskMod& BlockMask::mask_mod() const {
  detail::OpName named("attention::BlockMask::mask_mod");
  return detail::state_of(*this).mask;
}
const Tensor& BlockMask::kinds() const {
  detail::OpName named("attention::BlockMask::kinds");
  return detail::state_of(*this).kinds;
}
const Tensor& BlockMask::kv_num_blocks() const {
  detail::OpName named("attention::BlockMask::kv_num_blocks");
  return detail::state_of(*this).kv_num;
}
const Tensor& BlockMask::kv_indices() const {
  detail::OpName named("attention::BlockMask::kv_indices");
  return detail::state_of(*this).kv_indices;
}
const Tensor& BlockMask::full_kv_num_blocks() const {
  detail::OpName named("attention::BlockMask::full_kv_num_blocks");
  return detail::state_of(*this).full_kv_num;
}
const Tensor& BlockMask::full_kv_indices() const {
  detail::OpName named("attention::BlockMask::full_kv_indices");
  return detail::state_of(*this).full_kv_indices;
}
const Tensor& BlockMask::q_num_blocks() const {
  detail::OpName named("attention::BlockMask::q_num_blocks");
  return detail::state_of(*this).q_num;
}
const Tensor& BlockMask::q_indices() const {
  detail::OpName named("attention::BlockMask::q_indices");
  return detail::state_of(*this).q_indices;
}
const Tensor& BlockMask::full_q_num_blocks() const {
  detail::OpName named("attention::BlockMask::full_q_num_blocks");
  return detail::state_of(*this).full_q_num;
}
const Tensor& BlockMask::full_q_indices() const {
  detail::OpName named("attention::BlockMask::full_q_indices");
  return detail::state_of(*this).full_q_indices;
}

Tensor BlockMask::to_dense(const Stream& stream) const {
  detail::OpName named("attention::BlockMask::to_dense");
  return map([](Expr kind) { return select(kind != int{detail::KIND_NONE}, cast(Expr(1), DType::i32), cast(Expr(0), DType::i32)); }, {kinds()},
             {.dtype = {DType::i32}}, stream);
}

BlockMask BlockMask::slice(std::int64_t batch_begin, std::int64_t batch_end, std::int64_t head_begin, std::int64_t head_end, const Stream& given) const {
  detail::OpName named("attention::BlockMask::slice");
  const State& s = detail::state_of(*this);
  if (batch_begin < 0 || batch_end > s.kinds.size(0) || batch_begin >= batch_end || head_begin < 0 || head_end > s.kinds.size(1) || head_begin >= head_end)
    detail::refuse(ErrorCode::invalid_argument, fmt::format("batches and heads must be within {}, got {} to {} and {} to {}",
                                                            clutch::to_string(s.kinds.sizes()), batch_begin, batch_end, head_begin, head_end));
  detail::Runtime& runtime = s.kinds.storage()->runtime();
  const Stream stream = detail::resolve_stream(given, runtime, detail::kOp);
  State part = s;
  part.kinds = s.kinds.slice(0, batch_begin, batch_end).slice(1, head_begin, head_end).contiguous(stream);
  if (!s.mask.empty() && (batch_begin > 0 || head_begin > 0))
    part.mask = [&](Index b, Index h, Index q, Index kv) { return s.mask(b + param(batch_begin), h + param(head_begin), q, kv); };
  return detail::finished(std::move(part), runtime, stream);
}

BlockMask BlockMask::adjust(std::int64_t q_len, std::int64_t kv_len, const Stream& given) const {
  detail::OpName named("attention::BlockMask::adjust");
  const State& s = detail::state_of(*this);
  detail::check_shape({.q_len = q_len, .kv_len = kv_len});
  detail::Runtime& runtime = s.kinds.storage()->runtime();
  const Stream stream = detail::resolve_stream(given, runtime, detail::kOp);
  State part = s;
  part.q_len = q_len, part.kv_len = kv_len;
  auto upper = [&](const Tensor& kinds, std::int64_t q, std::int64_t kv) {
    return kinds.slice(2, 0, detail::blocks_of(q, s.block.q)).slice(3, 0, detail::blocks_of(kv, s.block.kv));
  };
  if (q_len <= s.q_len && kv_len <= s.kv_len) {
    part.kinds = upper(s.kinds, q_len, kv_len).contiguous(stream);
  } else {
    if (s.mask.empty()) detail::refuse(ErrorCode::invalid_argument, "a mask must have its mask function to grow, got one without");
    const std::int64_t batch = s.kinds.size(0), heads = s.kinds.size(1), q = std::min(q_len, s.q_len), kv = std::min(kv_len, s.kv_len);
    part.kinds = detail::kinds_of(s.mask, {.batch = batch, .heads = heads, .q_len = q_len, .kv_len = kv_len, .block = s.block}, runtime, stream);
    copy_(upper(part.kinds, q, kv), upper(s.kinds, q, kv), {}, stream);
  }
  return detail::finished(std::move(part), runtime, stream);
}

double BlockMask::sparsity(const Stream& stream) const {
  detail::OpName named("attention::BlockMask::sparsity");
  const State& s = detail::state_of(*this);
  return detail::sparsity_of(s, s.kinds.to_bytes(stream));
}

std::string BlockMask::to_string(const Stream& stream) const {
  detail::OpName named("attention::BlockMask::to_string");
  const State& s = detail::state_of(*this);
  const std::vector<std::uint8_t> kinds = s.kinds.to_bytes(stream);
  const auto rows = static_cast<std::size_t>(s.kinds.size(2)), columns = static_cast<std::size_t>(s.kinds.size(3));
  constexpr std::size_t kMost = 32;  // characters of a line, and lines
  const std::size_t down = (rows + kMost - 1) / kMost, across = (columns + kMost - 1) / kMost;
  std::string text = fmt::format("BlockMask(shape={}, q_len={}, kv_len={}, block=({}, {}), sparsity={:.2f}%)\n", clutch::to_string(s.kinds.sizes()), s.q_len,
                                 s.kv_len, s.block.q, s.block.kv, detail::sparsity_of(s, kinds));
  for (std::size_t of = 0; of < kinds.size() / (rows * columns); ++of) {
    if (kinds.size() > rows * columns)
      text += fmt::format("({}, {})\n", of / static_cast<std::size_t>(s.kinds.size(1)), of % static_cast<std::size_t>(s.kinds.size(1)));
    for (std::size_t r = 0; r < rows; r += down) {
      for (std::size_t c = 0; c < columns; c += across) {
        bool any = false, all = true;
        for (std::size_t y = r; y < std::min(r + down, rows); ++y)
          for (std::size_t x = c; x < std::min(c + across, columns); ++x) {
            const std::uint8_t kind = kinds[(of * rows + y) * columns + x];
            any = any || kind != detail::KIND_NONE, all = all && kind == detail::KIND_FULL;
          }
        text += all ? "##" : any ? "::" : "  ";
      }
      text += "\n";
    }
  }
  return text;
}

BlockMask create_block_mask(const MaskMod& mask, const BlockMaskOptions& options, const Stream& given) {
  detail::OpName named("attention::create_block_mask");
  if (mask.empty()) detail::refuse(ErrorCode::invalid_argument, "the mask must be a traced one, got an empty one");
  detail::check_shape(options);
  detail::check_captured(*mask.function().body(), detail::kOp);
  const Stream stream = detail::stream_for_mask(mask, options.device, given);
  detail::Runtime& runtime = stream.impl()->runtime();
  BlockMask::State state{.mask = mask, .q_len = options.q_len, .kv_len = options.kv_len, .block = options.block};
  state.kinds = detail::kinds_of(mask, options, runtime, stream);
  return detail::finished(std::move(state), runtime, stream);
}

BlockMask block_mask_from_lists(const Tensor& kv_num_blocks, const Tensor& kv_indices, const Tensor& full_kv_num_blocks, const Tensor& full_kv_indices,
                                const MaskMod& mask, const BlockMaskOptions& options, const Stream& given) {
  detail::OpName named("attention::block_mask_from_lists");
  if (full_kv_num_blocks.defined() != full_kv_indices.defined())
    detail::refuse(ErrorCode::invalid_argument, "full blocks must have their count and their list, got one of the two");
  std::vector<const Tensor*> all{&kv_num_blocks, &kv_indices};
  if (full_kv_num_blocks.defined()) all.push_back(&full_kv_num_blocks), all.push_back(&full_kv_indices);
  detail::Runtime& runtime = detail::common_runtime(all, detail::kOp);
  detail::check_shape(options);
  const Dims lists{options.batch, options.heads, detail::blocks_of(options.q_len, options.block.q), detail::blocks_of(options.kv_len, options.block.kv)},
      counts{lists[0], lists[1], lists[2]};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->dtype() != DType::i32) detail::refuse(ErrorCode::invalid_dtype, fmt::format("lists must be i32, got {}", name(all[i]->dtype())));
    const Dims& wanted = i % 2 == 0 ? counts : lists;
    if (!(all[i]->sizes() == wanted))
      detail::refuse(ErrorCode::invalid_shape,
                     fmt::format("lists must have the shape {}, got {}", clutch::to_string(wanted), clutch::to_string(all[i]->sizes())));
  }
  const Stream stream = detail::resolve_stream(given, runtime, detail::kOp);
  std::vector<Tensor> dense;
  for (const Tensor* t : all) dense.push_back(t->contiguous(stream));
  if (dense.size() == 2) dense.push_back(zeros(counts, {.dtype = DType::i32, .device = stream.device()}, stream)), dense.push_back(dense[1]);
  BlockMask::State state{.mask = mask, .q_len = options.q_len, .kv_len = options.kv_len, .block = options.block};
  state.kinds = empty(lists, {.dtype = DType::u8, .device = stream.device()}, stream);
  const detail::BuiltPlan& plan = detail::plan_for(runtime, detail::kOp, detail::BlockMaskProblem{.stage = detail::BlockMaskStage::from_lists}, {});
  const auto tasks = static_cast<std::uint64_t>(numel(counts));
  const Geometry geometry = detail::item_geometry(tasks, plan.tuning.local);
  detail::check_loops(runtime.traits(), detail::kOp, tasks, geometry, 3 * (static_cast<double>(lists[3]) + 1));
  Encoder encoder(stream, "block_mask");
  encoder.output(state.kinds);
  for (const Tensor& t : dense) encoder.input(t);
  detail::bind_args(encoder, detail::BlockMaskFromListsArgs{tasks, lists[3]});
  encoder.dispatch(plan.kernel, geometry);
  return detail::finished(std::move(state), runtime, stream);
}

}  // namespace attention
}}  // namespace clutch::v0
