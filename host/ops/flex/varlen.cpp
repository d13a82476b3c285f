// SPDX-License-Identifier: Apache-2.0
// varlen_attn: flex() over packed sequences, in PyTorch's layout.
#include <clutch/attention.hpp>

#include "ops/flex/stored.hpp"
#include "ops/flex_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

namespace clutch { inline namespace v0 { namespace attention {
namespace {

constexpr std::string_view kOp = "varlen_attn";

/// (rows, heads, size) as (1, heads, rows, size).
Tensor by_heads(const Tensor& t) {
  if (!t.defined()) throw Error(ErrorCode::invalid_argument, kOp, "a tensor must be defined, got an undefined one");
  if (t.rank() != 3) throw Error(ErrorCode::invalid_shape, kOp, fmt::format("tensors must be (rows, heads, size), got shape {}", to_string(t.sizes())));
  return t.transpose(0, 1).unsqueeze(0);
}
Tensor by_rows(const Tensor& t) { return t.squeeze(0).transpose(0, 1); }
Tensor lines(const Tensor& t) { return t.defined() ? t.unsqueeze(0) : t; }

void check_packed(const FlexOptions& o) {
  if (!o.varlen.cu_seq_q.defined() || !o.varlen.cu_seq_kv.defined())
    throw Error(ErrorCode::invalid_argument, kOp, "varlen.cu_seq_q and varlen.cu_seq_kv must be given, got none or one");
}

}  // namespace

FlexResult varlen_attn(const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options, const Stream& given) {
  detail::OpName named("attention::varlen_attn");
  check_packed(options);
  const Tensor* all[] = {&q, &k, &v};
  const Tensor transposed[] = {by_heads(q), by_heads(k), by_heads(v)};
  const Stream stream = detail::resolve_stream(given, detail::common_runtime(all, kOp), kOp);
  const TensorOptions sums{.dtype = detail::compute_dtype(q.dtype(), kOp), .device = stream.device()};
  FlexResult made{.out = empty({q.size(0), q.size(1), v.size(2)}, {.dtype = q.dtype(), .device = stream.device()}, stream)};
  if (options.return_lse) made.lse = empty({q.size(1), q.size(0)}, sums, stream);
  if (options.return_max_scores) made.max_scores = empty({q.size(1), q.size(0)}, sums, stream);
  if (options.dropout_p > 0) made.dropout_state = empty({2}, {.dtype = DType::i64, .device = stream.device()}, stream);
  flex_out({.out = by_heads(made.out), .lse = lines(made.lse), .max_scores = lines(made.max_scores), .dropout_state = made.dropout_state}, transposed[0],
           transposed[1], transposed[2], options, stream);
  return made;
}

FlexGradients varlen_attn_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const FlexResult& results,
                                   const FlexOptions& options, const FlexBackwardOptions& backward, const Stream& stream) {
  detail::OpName named("attention::varlen_attn_backward");
  check_packed(options);
  const FlexGradients made =
      flex_backward(by_heads(grad_out), by_heads(q), by_heads(k), by_heads(v),
                    {.out = by_heads(results.out), .lse = lines(results.lse), .max_scores = lines(results.max_scores), .dropout_state = results.dropout_state},
                    options, {.grad_lse = lines(backward.grad_lse), .captured_gradients = backward.captured_gradients}, stream);
  return {by_rows(made.q), by_rows(made.k), by_rows(made.v), made.captured};
}

void varlen_attn_out(const FlexResult& out, const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options, const Stream& stream) {
  detail::OpName named("attention::varlen_attn_out");
  FlexOptions asked = options;
  asked.return_lse = out.lse.defined(), asked.return_max_scores = out.max_scores.defined();
  const FlexResult made = varlen_attn(q, k, v, asked, stream);
  const detail::Stored all[] = {{out.out, made.out, "out.out"},
                                {out.lse, made.lse, "out.lse"},
                                {out.max_scores, made.max_scores, "out.max_scores"},
                                {out.dropout_state, made.dropout_state, "out.dropout_state"}};
  detail::store(all, kOp, stream);
}
void varlen_attn_backward_out(const FlexGradients& out, const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const FlexResult& results,
                              const FlexOptions& options, const FlexBackwardOptions& backward, const Stream& stream) {
  detail::OpName named("attention::varlen_attn_backward_out");
  detail::store_gradients(out, varlen_attn_backward(grad_out, q, k, v, results, options, backward, stream), kOp, stream);
}

MaskMod causal_lower_right(const Varlen& varlen, std::int64_t q_len, std::int64_t kv_len) {
  detail::OpName named("attention::causal_lower_right");
  // As the kernels count: cut at the longest length, and no more used keys than there are.
  auto length = [](const Tensor& starts, const Tensor& used, std::int64_t longest, std::int64_t otherwise, const Index& b) -> Expr {
    Expr n = param(otherwise);
    if (starts.defined()) {
      const Captured at = captured(starts);
      n = at[b + 1] - at[b];
      if (longest > 0) n = min(n, param(longest));
    }
    if (!used.defined()) return n;
    const Expr some = max(captured(used)[b], 0);
    return starts.defined() || otherwise > 0 ? min(some, n) : some;
  };
  return [&](Index b, Index, Index q, Index kv) {
    return q + length(varlen.cu_seq_kv, varlen.seqused_kv, varlen.max_kv, kv_len, b) >= kv + length(varlen.cu_seq_q, {}, varlen.max_q, q_len, b);
  };
}

}}}  // namespace clutch::v0::attention
