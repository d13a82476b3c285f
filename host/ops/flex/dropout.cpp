// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>

#include "ops/block_mask_plan.hpp"
#include "ops/flex_plan.hpp"
#include "runtime/generator.hpp"
#include "runtime/storage.hpp"

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// Philox blocks of a query.
std::int64_t quads_of(const FlexDropout& d) { return blocks_of(d.kv_len, 4); }

}  // namespace

FlexDropout draw_dropout(double p, const Generator& given, const Tensor& to, const Dims& scores, const Stream& stream) {
  FlexDropout d{.p = p, .batch = scores[0], .heads = scores[1], .q_len = scores[2], .kv_len = scores[3]};
  if (p == 0) return d;
  const Generator generator = given.empty() ? default_generator({}, stream) : given;
  d.state = to.defined() ? to : empty({2}, {.dtype = DType::i64, .device = stream.device()}, stream);
  copy_(d.state, generator.impl()->state(), {}, stream);
  generator.impl()->advance(static_cast<std::uint64_t>(d.batch * d.heads * d.q_len * quads_of(d)), stream, "flex");
  return d;
}

void bind_dropout(Encoder& encoder, const FlexDropout& d, DType dtype) {
  encoder.input(d.state).value(static_cast<std::uint32_t>(std::min(d.p * 0x1p32, 0x1p32 - 1)));
  bind_scale(encoder, dtype, d.p == 1 ? 0 : 1 / (1 - d.p));
  encoder.value(d.heads).value(d.q_len).value(quads_of(d));
}

Tensor dropout_factors(const FlexDropout& d, DType dtype, std::int64_t begin, std::int64_t end, const Stream& stream) {
  const Tensor factors = empty({d.batch, d.heads, end - begin, d.kv_len}, {.dtype = dtype, .device = stream.device()}, stream);
  const auto items = static_cast<std::uint64_t>(d.batch * d.heads * (end - begin) * quads_of(d));
  if (items == 0) return factors;
  const Tensor* states[] = {&d.state};
  const BuiltPlan& plan = plan_for(common_runtime(states, "flex"), "flex", FlexProblem{.dtype = dtype, .part = FlexPart::dropout, .dropout = true}, {});
  Encoder encoder(stream, "flex");
  encoder.value(items).value(begin).value(end - begin).value(d.kv_len).output(factors);
  bind_dropout(encoder, d, dtype);
  encoder.dispatch(plan.kernel, item_geometry(items, plan.tuning.local));
  return factors;
}

}}}  // namespace clutch::v0::detail
