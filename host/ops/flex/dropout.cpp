// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>

#include "encode/args.hpp"
#include "encode/generator.hpp"
#include "flex/args.h"
#include "ops/flex_plan.hpp"
#include "runtime/storage.hpp"

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {

FlexDropout draw_dropout(double p, const Generator& given, const Tensor& to, const Dims& scores, const Stream& stream) {
  FlexDropout d{.p = p, .batch = scores[0], .heads = scores[1], .q_len = scores[2], .kv_len = scores[3]};
  if (p == 0) return d;
  const Generator generator = given.empty() ? default_generator({}, stream) : given;
  d.state = to.defined() ? to : empty({2}, {.dtype = DType::i64, .device = stream.device()}, stream);
  copy_(d.state, generator.impl()->state(), {}, stream);
  generator.impl()->advance(static_cast<std::uint64_t>(d.batch * d.heads * d.q_len * flex_quads(d.kv_len)), stream, "flex");
  return d;
}

namespace {

/// Binds the factor of weights that are kept.
void bind_kept(Encoder& encoder, const FlexDropout& d, DType dtype) { bind_scale(encoder, dtype, d.p == 1 ? 0 : 1 / (1 - d.p), "kept"); }

}  // namespace

std::uint32_t dropout_below(double p) { return static_cast<std::uint32_t>(std::min(p * 0x1p32, 0x1p32 - 1)); }

void bind_dropout(Encoder& encoder, const FlexDropout& d, DType dtype) {
  encoder.input(d.state);
  bind_kept(encoder, d, dtype);
}

Tensor dropout_factors(const FlexDropout& d, DType dtype, std::int64_t begin, std::int64_t end, const Stream& stream) {
  const Tensor factors = empty({d.batch, d.heads, end - begin, d.kv_len}, {.dtype = dtype, .device = stream.device()}, stream);
  const FlexDropoutArgs args{.tasks = static_cast<std::uint64_t>(d.batch * d.heads * (end - begin) * flex_quads(d.kv_len)),
                             .first = begin,
                             .count = end - begin,
                             .q_len = d.q_len,
                             .kv_len = d.kv_len,
                             .dropout_below = dropout_below(d.p)};
  if (args.tasks == 0) return factors;
  const Tensor* states[] = {&d.state};
  const BuiltPlan& plan = plan_for(common_runtime(states, "flex"), "flex", FlexProblem{.dtype = dtype, .part = FlexPart::dropout, .dropout = true}, {});
  Encoder encoder(stream, "flex");
  encoder.output(factors).input(d.state);
  bind_args(encoder, args);
  bind_kept(encoder, d, dtype);
  encoder.dispatch(plan.kernel, item_geometry(args.tasks, plan.tuning.local));
  return factors;
}

}}}  // namespace clutch::v0::detail
