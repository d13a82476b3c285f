// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention: scores stay in caches, forward and backward.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <clutch/attention.hpp>

#include <algorithm>
#include <array>

namespace torch_clutch {
namespace {

using clutch::attention::SdpaOptions;

// PyTorch's own formula takes what clutch does not: other ranks, dtypes that differ.
int64_t sdp_choice(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& mask, double, bool causal,
                   std::optional<double>, bool) {
  const auto math = static_cast<int64_t>(at::SDPBackend::math);
  const bool has_mask = mask.has_value() && mask->defined();
  if (!at::globalContext().userEnabledOverrideableSDP()) return math;
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4 || !at::isFloatingType(q.scalar_type())) return math;
  if (q.is_nested() || k.is_nested() || q.scalar_type() != k.scalar_type() || k.scalar_type() != v.scalar_type()) return math;
  if (q.numel() == 0 || k.numel() == 0 || v.numel() == 0 || k.size(1) == 0 || q.size(1) % k.size(1) != 0) return math;
  if (has_mask && causal) return math;
  return static_cast<int64_t>(at::SDPBackend::overrideable);
}

SdpaOptions options_of(const at::Tensor& q, const at::Tensor& k, const std::optional<at::Tensor>& bias, double dropout, bool causal,
                       std::optional<double> scale) {
  SdpaOptions options;
  if (bias.has_value() && bias->defined()) {
    const bool read = bias->scalar_type() == at::kBool || bias->scalar_type() == at::kFloat || bias->scalar_type() == q.scalar_type();
    options.attn_mask = wrap(read ? *bias : bias->to(q.scalar_type()));
  }
  options.causal = causal ? clutch::attention::Causal::upper_left : clutch::attention::Causal::no;
  if (scale.has_value()) options.scale = *scale;
  options.enable_gqa = q.size(1) != k.size(1);
  options.dropout_p = dropout;
  return options;
}

// The result in the order of memory that PyTorch's shape functions promise, which compiled code counts on: that of `like`.
at::Tensor in_order_of(const clutch::Tensor& result, const at::Tensor& like) {
  at::Tensor made = unwrap(result);
  at::Tensor wanted;
  if (made.sizes() == like.sizes()) {
    wanted = at::empty_like(like, made.options());
  } else {
    std::array<std::int64_t, 4> order{0, 1, 2, 3}, back{};
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return like.stride(a) > like.stride(b); });
    std::array<std::int64_t, 4> sizes{};
    for (std::size_t i = 0; i < order.size(); ++i) {
      sizes[i] = made.size(order[i]);
      back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    }
    wanted = at::empty(sizes, made.options()).permute(back);
  }
  return wanted.strides() == made.strides() ? made : wanted.copy_(made);
}

using Forward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;
Forward sdpa(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& bias, double dropout, bool causal, bool,
             std::optional<double> scale) {
  const clutch::attention::SdpaResult result = clutch::attention::sdpa(wrap(q), wrap(k), wrap(v), options_of(q, k, bias, dropout, causal, scale));
  const at::Tensor none = at::empty({0}, q.options().dtype(at::kLong));
  const at::Tensor state = result.dropout_state.defined() ? unwrap(result.dropout_state) : none;  // its seed and offset
  return {in_order_of(result.out, q), unwrap(result.lse), none, none, q.size(2), k.size(2), state, none, none};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> sdpa_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                                         const at::Tensor& bias, std::array<bool, 4> wanted, const at::Tensor& out,
                                                                         const at::Tensor& lse, const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt,
                                                                         double dropout, bool causal, const at::Tensor& state, const at::Tensor&,
                                                                         std::optional<double> scale) {
  const clutch::attention::SdpaResult result{.out = wrap(out), .lse = wrap(lse), .dropout_state = dropout > 0 ? wrap(state) : clutch::Tensor()};
  const clutch::attention::FlexGradients grads = clutch::attention::sdpa_backward(
      wrap(grad), wrap(q), wrap(k), wrap(v), result, options_of(q, k, bias, dropout, causal, scale), {.captured_gradients = wanted[3] && bias.defined()});
  const at::Tensor of_bias = grads.captured.empty() ? at::Tensor() : unwrap(grads.captured[0]).to(bias.scalar_type());
  return {in_order_of(grads.q, q), in_order_of(grads.k, k), in_order_of(grads.v, v), of_bias};
}

int64_t choice(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::optional<at::Tensor>& mask, double dropout, bool causal,
               std::optional<double> scale, bool gqa) {
  return sdp_choice(q, k, v, mask, dropout, causal, scale, gqa);
}

}  // namespace

void add_attention(OpTable& table) {
  table.family("attention");
  table.add<"_fused_sdp_choice", &choice>("attention::sdpa where it can");
  table.add<"_scaled_dot_product_fused_attention_overrideable", &sdpa>("attention::sdpa");
  table.add<"_scaled_dot_product_fused_attention_overrideable_backward", &sdpa_backward>("attention::sdpa_backward");
}

}  // namespace torch_clutch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_clutch::sdp_choice)
}  // namespace at::native
