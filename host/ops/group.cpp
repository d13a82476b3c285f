// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/group.hpp>

#include "encode/args.hpp"
#include "group/args.h"
#include "ops/group_plan.hpp"
#include "ops/out_form.hpp"
#include "runtime/op_name.hpp"
#include "runtime/settings.hpp"

#include <array>
#include <bit>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

constexpr unsigned kBits = 11;  ///< most bits of a digit: the output positions of a pass fit in a core's cache

// validate ----------------------------------------------------------------------------------------------------------

Runtime& validate(const Tensor& index, std::int64_t groups) {
  const Tensor* tensors[] = {&index};
  Runtime& runtime = common_runtime(tensors, "group_by");
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    throw Error(ErrorCode::invalid_dtype, "group_by", fmt::format("index must be i32 or i64, got {}", name(index.dtype())));
  if (index.rank() != 1) throw Error(ErrorCode::invalid_shape, "group_by", fmt::format("index must be of rank 1, got shape {}", to_string(index.sizes())));
  if (groups < 0 || groups >= UINT32_MAX) throw Error(ErrorCode::invalid_argument, "group_by", fmt::format("groups must be in [0, 2^32 - 1), got {}", groups));
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 5> kEntries{"group_count", "group_scan", "group_base", "group_place", "group_offsets"};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const GroupProblem& p, std::string_view) {
  KernelPlan plan{.stem = "group", .entry = kEntries[static_cast<std::size_t>(p.stage)], .tuning = row_tuning(traits)};
  if (p.stage == GroupStage::base) plan.tuning.local = 1;
  plan.defines.set_text("ID", p.wide_id ? "long" : "int");
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// How n entries are divided into parts.
struct Parts {
  std::uint64_t chunk = 1, count = 1;
  Parts(std::int64_t n, bool one_item_a_group, std::uint64_t most = 16384) {
    // More parts if many items run at once. They get little each, as one driver ends loops early (quirk loops_end_early).
    auto entries = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1));
    chunk = one_item_a_group ? std::max<std::uint64_t>((entries + 15) / 16, 256) : std::clamp<std::uint64_t>((entries + 511) / 512, 256, most);
    count = (entries + chunk - 1) / chunk;
  }
};

Groups run(Runtime& runtime, const Tensor& given, std::int64_t groups, const Stream& stream) {
  const std::int64_t n = given.numel();
  Tensor index = given.contiguous(stream);
  const bool wide_result = n > INT32_MAX, wide = wide_result || the_settings().index64.on();
  TensorOptions ids{.dtype = wide ? DType::i64 : DType::i32, .device = stream.device()};
  Groups result{empty({groups + 1}, ids, stream), empty({n}, ids, stream)};
  auto plan_of = [&](GroupStage stage) -> const BuiltPlan& { return plan_for(runtime, "group_by", GroupProblem{stage, wide}, {}); };
  Encoder encoder(stream, "group_by");
  const Parts parts(n, row_tuning(runtime.traits()).local == 1);
  unsigned passes = 1;
  while (passes * kBits < 32 && static_cast<std::uint64_t>(groups) >> (passes * kBits) != 0) ++passes;
  // Digits of similar size, so that a pass has fewer output positions.
  const unsigned bits_each = (static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(groups))) + passes - 1) / passes;
  const std::uint32_t digits = 1u << bits_each;
  Tensor counts = encoder.scratch({static_cast<std::int64_t>(parts.count), std::int64_t{digits}}, ids.dtype),
         totals = encoder.scratch({std::int64_t{digits}}, ids.dtype);
  Tensor keys[2], order[2];
  for (unsigned k = 0; k < 2; ++k) keys[k] = encoder.scratch({std::max<std::int64_t>(n, 1)}, DType::i32);
  order[passes % 2] = encoder.scratch({std::max<std::int64_t>(n, 1)}, ids.dtype), order[(passes + 1) % 2] = result.order;
  GroupArgs args{.n = static_cast<std::uint64_t>(n),
                 .chunk = parts.chunk,
                 .parts = parts.count,
                 .groups = static_cast<std::uint64_t>(groups),
                 .keys = index.dtype() == DType::i32 ? KEYS_I32 : KEYS_I64,
                 .digits = digits};
  // The struct comes after the tensors.
  auto send = [&](const BuiltPlan& plan, std::uint64_t items) {
    bind_args(encoder, args);
    encoder.dispatch(plan.kernel, item_geometry(items, plan.tuning.local));
  };
  Tensor source = index;
  // Pass k writes buffer k % 2, numbered so that the last pass writes the result.
  for (unsigned pass = 0; n > 0 && pass < passes; ++pass) {
    args.shift = pass * bits_each;
    const Tensor &from = order[(pass + 1) % 2], &to = order[pass % 2];
    const BuiltPlan &count = plan_of(GroupStage::count), &scan = plan_of(GroupStage::scan), &base = plan_of(GroupStage::base);
    encoder.output(counts).input(source);
    send(count, parts.count);
    encoder.inout(counts).output(totals);
    send(scan, digits);
    encoder.inout(totals);
    send(base, 1);
    const BuiltPlan& place = plan_of(GroupStage::place);
    encoder.output(keys[pass % 2]).output(to).inout(counts).input(source).input(from).input(totals);
    send(place, parts.count);
    source = keys[pass % 2], args.keys = KEYS_PACKED;
  }
  // Each offset is found by a binary search of up to 64 steps.
  const Parts places(groups + 1, row_tuning(runtime.traits()).local == 1, runtime.traits().quirks & kQuirkLoopsEndEarly ? 512 : 16384);
  const BuiltPlan& offsets = plan_of(GroupStage::offsets);
  args.chunk = places.chunk, args.parts = places.count;
  encoder.output(result.offsets).input(keys[(passes + 1) % 2]);
  send(offsets, places.count);
  // CLUTCH_INDEX64 sets the index type of kernels, not the dtype of the results.
  if (wide && !wide_result) return {result.offsets.to(DType::i32, {}, stream), result.order.to(DType::i32, {}, stream)};
  return result;
}

}  // namespace
}  // namespace detail

Groups group_by(const Tensor& index, std::int64_t groups, const Stream& given) {
  detail::OpName named("group_by");
  detail::Runtime& runtime = detail::validate(index, groups);
  return detail::run(runtime, index, groups, detail::resolve_stream(given, runtime, "group_by"));
}
void group_by_out(const Groups& out, const Tensor& index, std::int64_t groups, const Stream& stream) {
  detail::OpName named("group_by_out");
  const Groups made = group_by(index, groups, stream);
  const detail::Stored all[] = {{out.offsets, made.offsets, "out.offsets"}, {out.order, made.order, "out.order"}};
  detail::store(all, "group_by", stream);
}

}}  // namespace clutch::v0
