// SPDX-License-Identifier: Apache-2.0
// multi_head_attention: flex() between two linear layers, on views of the projections.
#include <clutch/attention.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/matmul.hpp>

#include "ops/flex_plan.hpp"
#include "ops/out_form.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

namespace clutch { inline namespace v0 { namespace attention {
namespace {

constexpr std::string_view kOp = "multi_head_attention";

/// The parts of a packed projection as views, (B, heads, L, D) each.
struct Heads {
  Tensor q, k, v;
};
struct HeadSplit {
  std::int64_t heads, kv_heads, size;
  HeadSplit(const Tensor& x, const MultiHeadWeights& w) : heads(w.heads), kv_heads(w.kv_heads == 0 ? w.heads : w.kv_heads), size(0) {
    auto refuse = [](std::string_view why) { throw Error(ErrorCode::invalid_shape, kOp, why); };
    if (!x.defined() || !w.in_weight.defined() || !w.out_weight.defined())
      throw Error(ErrorCode::invalid_argument, kOp, "x, in_weight and out_weight must be given, got an undefined one");
    if (x.rank() != 3) refuse(fmt::format("x must be (B, L, E), got shape {}", to_string(x.sizes())));
    const std::int64_t parts = heads + 2 * kv_heads;
    if (w.in_weight.rank() != 2 || heads < 1 || kv_heads < 1 || w.in_weight.size(0) % parts != 0 || w.in_weight.size(0) == 0)
      refuse(fmt::format("in_weight must be one of {} heads of queries and {} of keys, got shape {}", heads, kv_heads, to_string(w.in_weight.sizes())));
    size = w.in_weight.size(0) / parts;
    if (w.out_weight.rank() != 2 || w.out_weight.size(1) != heads * size)
      refuse(fmt::format("out_weight must be one of {} heads of {}, got shape {}", heads, size, to_string(w.out_weight.sizes())));
  }
  Tensor by_heads(const Tensor& t, std::int64_t first, std::int64_t count) const {
    return t.slice(2, first * size, (first + count) * size).reshape({t.size(0), t.size(1), count, size}).transpose(1, 2);
  }
  Heads of(const Tensor& projected) const {
    return {by_heads(projected, 0, heads), by_heads(projected, heads, kv_heads), by_heads(projected, heads + kv_heads, kv_heads)};
  }
};

FlexOptions with_lse(const FlexOptions& options) {
  FlexOptions o = options;
  o.enable_gqa = o.return_lse = true;
  return o;
}

}  // namespace

MultiHeadResult multi_head_attention(const Tensor& x, const MultiHeadWeights& weights, const FlexOptions& options, const Stream& given) {
  detail::OpName named("attention::multi_head_attention");
  const HeadSplit split(x, weights);
  const Tensor* all[] = {&x, &weights.in_weight, &weights.out_weight};
  const Stream stream = detail::resolve_stream(given, detail::common_runtime(all, kOp), kOp);
  const TensorOptions stored{.dtype = x.dtype(), .device = stream.device()};
  MultiHeadResult made{.projected = linalg::linear(x, weights.in_weight, weights.in_bias, {.numerics = options.numerics}, stream)};
  made.attended = empty({x.size(0), x.size(1), split.heads * split.size}, stored, stream);
  made.lse = empty({x.size(0), split.heads, x.size(1)}, {.dtype = detail::compute_dtype(x.dtype(), kOp), .device = stream.device()}, stream);
  if (options.dropout_p > 0) made.dropout_state = empty({2}, {.dtype = DType::i64, .device = stream.device()}, stream);
  const Heads h = split.of(made.projected);
  flex_out({.out = split.by_heads(made.attended, 0, split.heads), .lse = made.lse, .dropout_state = made.dropout_state}, h.q, h.k, h.v, with_lse(options),
           stream);
  made.out = linalg::linear(made.attended, weights.out_weight, weights.out_bias, {.numerics = options.numerics}, stream);
  return made;
}

MultiHeadGradients multi_head_attention_backward(const Tensor& grad_out, const Tensor& x, const MultiHeadWeights& weights, const MultiHeadResult& result,
                                                 const FlexOptions& options, const Stream& given) {
  detail::OpName named("attention::multi_head_attention_backward");
  const HeadSplit split(x, weights);
  const Tensor* all[] = {&grad_out, &x, &weights.in_weight, &weights.out_weight, &result.projected, &result.attended, &result.lse};
  const Stream stream = detail::resolve_stream(given, detail::common_runtime(all, kOp), kOp);
  const linalg::LinearGradients out =
      linalg::linear_backward(grad_out, result.attended, weights.out_weight, weights.out_bias, {.numerics = options.numerics}, stream);
  const Heads h = split.of(result.projected);
  auto whole = [&](const Tensor& t) { return split.by_heads(t, 0, split.heads); };
  const FlexGradients made =
      flex_backward(whole(out.x.contiguous(stream)), h.q, h.k, h.v, {.out = whole(result.attended), .lse = result.lse, .dropout_state = result.dropout_state},
                    with_lse(options), {}, stream);
  const Tensor projected = empty(result.projected.sizes(), {.dtype = x.dtype(), .device = stream.device()}, stream);
  const Heads to = split.of(projected);
  copy_(to.q, made.q, {}, stream), copy_(to.k, made.k, {}, stream), copy_(to.v, made.v, {}, stream);
  const linalg::LinearGradients in = linalg::linear_backward(projected, x, weights.in_weight, weights.in_bias, {.numerics = options.numerics}, stream);
  return {.x = in.x, .in_weight = in.weight, .in_bias = in.bias, .out_weight = out.weight, .out_bias = out.bias};
}

void multi_head_attention_out(const MultiHeadResult& out, const Tensor& x, const MultiHeadWeights& weights, const FlexOptions& options, const Stream& stream) {
  detail::OpName named("attention::multi_head_attention_out");
  const MultiHeadResult made = multi_head_attention(x, weights, options, stream);
  const detail::Stored all[] = {{out.out, made.out, "out.out"},
                                {out.projected, made.projected, "out.projected"},
                                {out.attended, made.attended, "out.attended"},
                                {out.lse, made.lse, "out.lse"},
                                {out.dropout_state, made.dropout_state, "out.dropout_state"}};
  detail::store(all, kOp, stream);
}
void multi_head_attention_backward_out(const MultiHeadGradients& out, const Tensor& grad_out, const Tensor& x, const MultiHeadWeights& weights,
                                       const MultiHeadResult& result, const FlexOptions& options, const Stream& stream) {
  detail::OpName named("attention::multi_head_attention_backward_out");
  const MultiHeadGradients made = multi_head_attention_backward(grad_out, x, weights, result, options, stream);
  const detail::Stored all[] = {{out.x, made.x, "out.x"},
                                {out.in_weight, made.in_weight, "out.in_weight"},
                                {out.in_bias, made.in_bias, "out.in_bias"},
                                {out.out_weight, made.out_weight, "out.out_weight"},
                                {out.out_bias, made.out_bias, "out.out_bias"}};
  detail::store(all, kOp, stream);
}

}}}  // namespace clutch::v0::attention
