// SPDX-License-Identifier: Apache-2.0
// What nn.TransformerEncoderLayer and nn.MultiheadAttention call in evaluation instead of their own formulas: the same formulas by clutch's ops.
#include "ops/table.hpp"

#include <ATen/ATen.h>

namespace torch_clutch {
namespace {

using MaybeTensor = const std::optional<at::Tensor>&;

// Kinds of masks, in which true, or a number other than 0, leaves a key out.
enum MaskType : int64_t { kOfScores = 0, kOfKeys = 1, kOfHeads = 2 };

// True for the keys that are seen, in a shape that broadcasts to (batch, heads, length, length).
std::optional<at::Tensor> seen(MaybeTensor mask, std::optional<int64_t> type, const at::Tensor& x) {
  if (!mask.has_value() || !mask->defined()) return std::nullopt;
  const at::Tensor kept = mask->to(at::kBool).logical_not();
  TORCH_CHECK(type.has_value(), "a mask needs its type");
  switch (*type) {
    case kOfScores: return kept.view({1, 1, x.size(1), x.size(1)});
    case kOfKeys: return kept.view({x.size(0), 1, 1, x.size(1)});
    case kOfHeads: return kept;
    default: refuse("a mask of type ", *type);
  }
}

struct Heads {
  at::Tensor q, k, v;  // (batch, heads, length, size)
  Heads(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t heads) {
    if (x.is_nested() || x.dim() != 3) refuse("a nested or unbatched input");
    const at::Tensor rows = at::linear(x, weight, bias);
    const at::Tensor all = rows.view({x.size(0), x.size(1), 3, heads, rows.size(2) / (3 * heads)}).permute({2, 0, 3, 1, 4});
    q = all[0], k = all[1], v = all[2];
  }
};
at::Tensor joined(const at::Tensor& of_heads) { return of_heads.transpose(1, 2).flatten(2); }

at::Tensor encoder_layer(const at::Tensor& source, int64_t, int64_t heads, const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
                         const at::Tensor& out_weight, const at::Tensor& out_bias, bool gelu, bool norm_first, double eps, const at::Tensor& norm_weight_1,
                         const at::Tensor& norm_bias_1, const at::Tensor& norm_weight_2, const at::Tensor& norm_bias_2, const at::Tensor& up_weight,
                         const at::Tensor& up_bias, const at::Tensor& down_weight, const at::Tensor& down_bias, const std::optional<at::Tensor>& mask,
                         std::optional<int64_t> mask_type) {
  auto attended = [&](const at::Tensor& x) {
    const Heads h(x, qkv_weight, qkv_bias, heads);
    return at::linear(joined(at::scaled_dot_product_attention(h.q, h.k, h.v, seen(mask, mask_type, x))), out_weight, out_bias);
  };
  auto fed_forward = [&](const at::Tensor& x) {
    const at::Tensor inner = at::linear(x, up_weight, up_bias);
    return at::linear(gelu ? at::gelu(inner) : at::relu(inner), down_weight, down_bias);
  };
  auto norm = [&](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) { return at::layer_norm(x, {x.size(-1)}, weight, bias, eps); };
  if (norm_first) {
    const at::Tensor x = source + attended(norm(source, norm_weight_1, norm_bias_1));
    return x + fed_forward(norm(x, norm_weight_2, norm_bias_2));
  }
  const at::Tensor x = norm(source + attended(source), norm_weight_1, norm_bias_1);
  return norm(x + fed_forward(x), norm_weight_2, norm_bias_2);
}

std::tuple<at::Tensor, at::Tensor> multi_head_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, int64_t, int64_t heads,
                                                        const at::Tensor& qkv_weight, const at::Tensor& qkv_bias, const at::Tensor& out_weight,
                                                        const at::Tensor& out_bias, const std::optional<at::Tensor>& mask, bool need_weights,
                                                        bool average_weights, std::optional<int64_t> mask_type) {
  if (!query.is_same(key) || !key.is_same(value)) refuse("attention of one tensor to another");
  const Heads h(query, qkv_weight, qkv_bias, heads);
  const std::optional<at::Tensor> kept = seen(mask, mask_type, query);
  if (!need_weights) return {at::linear(joined(at::scaled_dot_product_attention(h.q, h.k, h.v, kept)), out_weight, out_bias), at::Tensor()};
  at::Tensor scores = at::matmul(h.q * (1 / std::sqrt(static_cast<double>(h.q.size(-1)))), h.k.mT());
  if (kept) scores.masked_fill_(kept->logical_not(), -std::numeric_limits<double>::infinity());
  const at::Tensor weights = scores.softmax(-1);
  return {at::linear(joined(at::matmul(weights, h.v)), out_weight, out_bias), average_weights ? weights.mean(1) : weights};
}

// There are no nested tensors on clutch: an encoder that asks keeps its padded batch, with the mask.
bool left_aligned(const at::Tensor&, const at::Tensor&) { return false; }

}  // namespace

void add_encoders(OpTable& table) {
  table.family("encoders");
  table.add<"_transformer_encoder_layer_fwd", &encoder_layer>("attention::sdpa, linalg::linear, nn::layer_norm");
  table.add<"_native_multi_head_attention", &multi_head_attention>("attention::sdpa, linalg::linear");
  table.add<"_nested_tensor_from_mask_left_aligned", &left_aligned>("none: padded batches stay padded");
}

}  // namespace torch_clutch
