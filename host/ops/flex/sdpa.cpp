// SPDX-License-Identifier: Apache-2.0
// sdpa: flex(), or its steps one by one with all scores in memory.
#include <clutch/attention.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/ops/rowwise.hpp>

#include "ops/flex/stored.hpp"
#include "ops/flex_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace clutch { inline namespace v0 {
namespace attention { namespace {

constexpr std::string_view kOp = "sdpa";
constexpr std::uint8_t kNone = 255;

void refuse(ErrorCode code, std::string_view why) { throw Error(code, kOp, why); }

/// Enabled backends of this thread, in order.
std::array<std::uint8_t, 2>& enabled() {
  thread_local std::array<std::uint8_t, 2> order{static_cast<std::uint8_t>(SdpaBackend::flash), static_cast<std::uint8_t>(SdpaBackend::math)};
  return order;
}

/// The tensor with batch and heads before its last two dimensions.
Tensor with_heads(const Tensor& t, int rank) {
  if (!t.defined()) refuse(ErrorCode::invalid_argument, "a tensor must be defined, got an undefined one");
  if (t.rank() != rank || rank < 2 || rank > 4)
    refuse(ErrorCode::invalid_shape, fmt::format("q, k and v must be of one rank, 2 to 4, got shape {}", to_string(t.sizes())));
  return rank == 4 ? t : rank == 3 ? t.unsqueeze(1) : t.unsqueeze(0).unsqueeze(0);
}
Tensor without_heads(const Tensor& t, int missing) { return missing == 0 ? t : missing == 1 ? t.squeeze(1) : t.squeeze(0).squeeze(0); }

struct Call {
  Tensor q, k, v, mask;  ///< of rank 4; the mask's dimensions are the scores' or 1
  int missing = 0;       ///< number of leading dimensions that q lacked
  FlexOptions flex;
  std::int64_t offset = 0;  ///< of causal
};

Call arrange(const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& o, const Stream& stream) {
  if (!q.defined()) refuse(ErrorCode::invalid_argument, "a tensor must be defined, got an undefined one");
  const int rank = q.rank();
  Call c{.q = with_heads(q, rank), .k = with_heads(k, rank), .v = with_heads(v, rank), .missing = 4 - rank};
  c.flex.scale = o.scale, c.flex.enable_gqa = o.enable_gqa, c.flex.return_lse = true;
  c.flex.dropout_p = o.dropout_p, c.flex.generator = o.generator, c.flex.numerics = o.numerics;
  const std::int64_t q_len = c.q.size(2), kv_len = c.k.size(2);
  if (o.attn_mask.defined()) {
    if (o.causal != Causal::no) refuse(ErrorCode::invalid_argument, "at most one of attn_mask and causal must be given, got both; put the one into the other");
    const DType dtype = o.attn_mask.dtype();
    if (dtype != DType::boolean && dtype != DType::f32 && dtype != q.dtype())
      refuse(ErrorCode::invalid_dtype, fmt::format("attn_mask must be boolean, f32 or {}, got {}", name(q.dtype()), name(dtype)));
    c.mask = o.attn_mask;
    if (rank == 3 && c.mask.rank() == 3) c.mask = c.mask.unsqueeze(1);
    if (c.mask.rank() > 4) refuse(ErrorCode::invalid_shape, fmt::format("attn_mask must have at most four dimensions, got {}", to_string(c.mask.sizes())));
    while (c.mask.rank() < 4) c.mask = c.mask.unsqueeze(0);
    const Dims scores{c.q.size(0), c.q.size(1), q_len, kv_len};
    for (int d = 0; d < 4; ++d)
      if (c.mask.size(d) != 1 && c.mask.size(d) != scores[d])
        refuse(ErrorCode::invalid_shape, fmt::format("attn_mask must broadcast to {}, got {}", to_string(scores), to_string(o.attn_mask.sizes())));
    if (c.mask.numel() == 0) return c;
    // Indices are clamped, so dimensions of size 1 are broadcast.
    const Captured at = captured(c.mask);
    if (dtype == DType::boolean)
      c.flex.mask_mod = [&](Index b, Index h, Index i, Index j) { return at[{b, h, i, j}]; };
    else
      c.flex.score_mod = [&](Score s, Index b, Index h, Index i, Index j) { return s + at[{b, h, i, j}]; };
  }
  c.offset = o.causal == Causal::lower_right ? kv_len - q_len : 0;
  if (o.causal != Causal::no && q_len > 0 && kv_len > 0)
    c.flex.block_mask = create_block_mask(causal(c.offset), {.q_len = q_len, .kv_len = kv_len, .device = c.q.device()}, stream);
  return c;
}

SdpaResult by_math(const Call& c, const SdpaOptions& o, const Stream& stream) {
  detail::check_flex(c.q, c.k, c.v, c.flex);
  const Device device = stream.device();
  const DType sums = detail::compute_dtype(c.q.dtype(), kOp);
  const detail::FlexDropout dropout = detail::draw_dropout(o.dropout_p, o.generator, {}, {c.q.size(0), c.q.size(1), c.q.size(2), c.k.size(2)}, stream);
  if (c.k.size(2) == 0)
    return {.out = zeros({c.q.size(0), c.q.size(1), c.q.size(2), c.v.size(3)}, {.dtype = c.q.dtype(), .device = device}, stream),
            .lse = full({c.q.size(0), c.q.size(1), c.q.size(2)}, -std::numeric_limits<double>::infinity(), {.dtype = sums, .device = device}, stream),
            .dropout_state = dropout.state};
  const std::int64_t heads = c.q.size(1), shared = c.k.size(1), gqa_factor = shared > 0 ? heads / shared : 1;
  auto repeated = [&](const Tensor& t) {
    if (gqa_factor == 1) return t;
    const Dims& s = t.sizes();
    return t.unsqueeze(2).expand({s[0], shared, gqa_factor, s[2], s[3]}).contiguous(stream).reshape({s[0], heads, s[2], s[3]});
  };
  const double scale = std::isnan(o.scale) ? 1 / std::sqrt(static_cast<double>(c.q.size(3))) : o.scale;
  Tensor scores = linalg::matmul(c.q, repeated(c.k).mT(), {.alpha = scale, .dtype = {sums}}, stream);
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  if (c.mask.defined() && c.mask.dtype() == DType::boolean)
    scores = map([](Expr s, Expr m) { return select(m, s, kNever); }, {scores, c.mask}, {}, stream);
  else if (c.mask.defined())
    scores = map([&](Expr s, Expr m) { return s + cast(m, sums); }, {scores, c.mask}, {}, stream);
  if (o.causal != Causal::no) scores = map([&](Expr s) { return select(position(-2) + param(c.offset) >= position(-1), s, kNever); }, {scores}, {}, stream);
  auto soft = [](Row& row, Expr s) {
    const Expr row_max = row.max(s), shift = select(row_max == kNever, 0.0f, row_max), p = exp(s - shift), row_sum = row.sum(p);
    row.result(select(row_sum == 0, kNever, shift + log(row_sum)));
    return p / select(row_sum == 0, 1.0f, row_sum);
  };
  const std::vector<Tensor> made = rowwise(soft, {scores}, {.dims = {-1}, .dtype = {sums, sums}}, stream);
  Tensor weights = made[0];
  if (o.dropout_p > 0) {
    const Tensor factors = dropout_factors(dropout, sums, 0, scores.size(2), stream);
    weights = map([](Expr w, Expr factor) { return w * factor; }, {weights, factors}, {.dtype = {sums}}, stream);
  }
  const Tensor out = linalg::matmul(weights, repeated(c.v).to(sums, {}, stream), {.dtype = {c.q.dtype()}}, stream);
  return {.out = out, .lse = made[1].squeeze(-1), .dropout_state = dropout.state};
}

}}  // namespace attention

namespace detail {
std::array<std::uint8_t, 2> sdpa_backends() { return attention::enabled(); }
}  // namespace detail

namespace attention {

SdpaBackends::SdpaBackends(std::initializer_list<SdpaBackend> order) {
  detail::OpName named("attention::SdpaBackends");
  std::array<std::uint8_t, 2> next{kNone, kNone};
  std::size_t count = 0;
  for (SdpaBackend b : order) {
    if (count == 2 || next[0] == static_cast<std::uint8_t>(b)) refuse(ErrorCode::invalid_argument, "a backend must be named once, got it twice");
    next[count++] = static_cast<std::uint8_t>(b);
  }
  if (count == 0) refuse(ErrorCode::invalid_argument, "a backend must be named, got none");
  for (std::size_t i = 0; i < 2; ++i) before_[i] = enabled()[i];
  enabled() = next;
}
SdpaBackends::~SdpaBackends() { enabled() = {before_[0], before_[1]}; }

SdpaResult sdpa(const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& options, const Stream& given) {
  detail::OpName named("attention::sdpa");
  const Tensor* all[] = {&q, &k, &v};
  Stream stream = detail::resolve_stream(given, detail::common_runtime(all, kOp), kOp);
  const Call c = arrange(q, k, v, options, stream);
  std::string reasons;
  for (std::uint8_t backend : enabled()) {
    if (backend == kNone) continue;
    try {
      SdpaResult made;
      if (backend == static_cast<std::uint8_t>(SdpaBackend::flash)) {
        FlexResult r = flex(c.q, c.k, c.v, c.flex, stream);
        made = {.out = r.out, .lse = r.lse, .dropout_state = r.dropout_state};
      } else {
        made = by_math(c, options, stream);
      }
      return {.out = without_heads(made.out, c.missing), .lse = without_heads(made.lse, c.missing), .dropout_state = made.dropout_state};
    } catch (const Error& e) {
      if (e.code() != ErrorCode::not_supported) throw;
      reasons += fmt::format("\n  {}: {}", backend == static_cast<std::uint8_t>(SdpaBackend::flash) ? "flash" : "math", e.what());
    }
  }
  throw Error(ErrorCode::not_supported, kOp, fmt::format("no enabled backend accepts:{}", reasons));
}

FlexGradients sdpa_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const SdpaResult& result, const SdpaOptions& options,
                            const FlexBackwardOptions& backward, const Stream& given) {
  detail::OpName named("attention::sdpa_backward");
  const Tensor* all[] = {&q, &k, &v};
  Stream stream = detail::resolve_stream(given, detail::common_runtime(all, kOp), kOp);
  const Call c = arrange(q, k, v, options, stream);
  auto lines = [&](const Tensor& t) { return c.missing == 0 ? t : c.missing == 1 ? t.unsqueeze(1) : t.unsqueeze(0).unsqueeze(0); };
  const FlexResult results{.out = with_heads(result.out, q.rank()), .lse = lines(result.lse), .dropout_state = result.dropout_state};
  FlexBackwardOptions with_lines = backward;
  if (backward.grad_lse.defined()) with_lines.grad_lse = lines(backward.grad_lse);
  FlexGradients made = flex_backward(with_heads(grad_out, q.rank()), c.q, c.k, c.v, results, c.flex, with_lines, stream);
  for (Tensor* t : {&made.q, &made.k, &made.v}) *t = without_heads(*t, c.missing);
  // The mask that the score mod captured has dimensions that the caller's may lack.
  const bool numbers = options.attn_mask.defined() && options.attn_mask.dtype() != DType::boolean;
  if (backward.captured_gradients && numbers && made.captured.empty())  // a mask without elements
    made.captured.push_back(zeros(options.attn_mask.sizes(), {.dtype = options.attn_mask.dtype(), .device = stream.device()}, stream));
  for (Tensor& t : made.captured) t = t.reshape(options.attn_mask.sizes());
  return made;
}

void sdpa_out(const SdpaResult& out, const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& options, const Stream& stream) {
  detail::OpName named("attention::sdpa_out");
  const SdpaResult made = sdpa(q, k, v, options, stream);
  const detail::Stored all[] = {{out.out, made.out, "out.out"}, {out.lse, made.lse, "out.lse"}, {out.dropout_state, made.dropout_state, "out.dropout_state"}};
  detail::store(all, kOp, stream);
}
void sdpa_backward_out(const FlexGradients& out, const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const SdpaResult& result,
                       const SdpaOptions& options, const FlexBackwardOptions& backward, const Stream& stream) {
  detail::OpName named("attention::sdpa_backward_out");
  detail::store_gradients(out, sdpa_backward(grad_out, q, k, v, result, options, backward, stream), kOp, stream);
}

}  // namespace attention
}}  // namespace clutch::v0
