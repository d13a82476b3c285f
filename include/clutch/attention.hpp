// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/flex.hpp>

#include <initializer_list>
#include <string_view>

namespace clutch { inline namespace v0 {

/// Attention as PyTorch's scaled_dot_product_attention has it, on flex().
namespace attention {

enum class Causal : std::uint8_t {
  no,
  upper_left,   ///< query i attends to keys up to i, whatever the lengths: PyTorch's is_causal
  lower_right,  ///< the last query attends to all keys: PyTorch's causal_lower_right
};

enum class SdpaBackend : std::uint8_t {
  flash,  ///< flex(): scores stay in caches
  math,   ///< products with all scores in memory and softmax between them
};

struct SdpaOptions {
  /// Boolean (true: attends), or numbers that are added, of f32 or q's dtype; broadcasts to (B, Hq, L, S).
  Tensor attn_mask = {};
  Causal causal = Causal::no;
  double scale = kDefaultScale;
  bool enable_gqa = false;  ///< query head h reads key head h / (Hq / Hkv)
  double dropout_p = 0;     ///< as FlexOptions', the same weights by either backend
  Generator generator = {};
  linalg::Numerics numerics = linalg::Numerics::chain;  ///< as FlexOptions'; the backend math goes without
};

struct SdpaResult {
  Tensor out;                 ///< like q, with v's last size
  Tensor lse;                 ///< f32 (f64 of f64), of q's sizes but the last: what sdpa_backward() needs
  Tensor dropout_state = {};  ///< of dropout, and what sdpa_backward() needs then
};

/// softmax(q k^T scale + mask) v for q (B, Hq, L, E), k (Bk, Hkv, S, E), v (Bk, Hkv, S, Ev); without heads (B, L, E),
/// or (L, E). Dtypes and strides as flex(). By the first enabled backend that accepts, flash before math unless a
/// SdpaBackends says otherwise. Rows that attend to nothing are 0.
/// Accuracy: flash as flex(), math within 4e-6 of the exact result under the same conditions.
/// Errors: as flex(); invalid_argument for attn_mask with causal; invalid_dtype and invalid_shape of attn_mask;
///   not_supported naming each enabled backend's reason if none accepts.
/// Stream: never waits.
/// Source: torch.nn.functional.scaled_dot_product_attention of PyTorch 2.12.
CLUTCH_API SdpaResult sdpa(const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& options = {},
                           const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes and any strides; an undefined one is not asked for. They may
/// share memory with inputs. So do all out forms here.
CLUTCH_API void sdpa_out(const SdpaResult& out, const Tensor& q, const Tensor& k, const Tensor& v,
                         const SdpaOptions& options = {}, const Stream& stream = {});
/// Gradients of q, k and v, and with captured_gradients of an attn_mask of numbers (`captured`, of its shape and dtype;
/// none of a boolean one). By flex_backward(), whichever backend was forward's.
CLUTCH_API FlexGradients sdpa_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                                       const SdpaResult& result, const SdpaOptions& options = {},
                                       const FlexBackwardOptions& backward = {}, const Stream& stream = {});
CLUTCH_API void sdpa_backward_out(const FlexGradients& out, const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                  const Tensor& v, const SdpaResult& result, const SdpaOptions& options = {},
                                  const FlexBackwardOptions& backward = {}, const Stream& stream = {});

/// Attention of sequences one after another: flex() for q (T, Hq, E), k (S, Hkv, E) and v (S, Hkv, Ev) with
/// options.varlen's cu_seq_q and cu_seq_kv, whose masks and mods see each sequence by itself. out is (T, Hq, Ev), lse
/// and max_scores are (Hq, T).
/// Errors: as flex(); invalid_argument without them.
/// Source: torch.nn.attention.varlen.varlen_attn of PyTorch 2.12.
CLUTCH_API FlexResult varlen_attn(const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options,
                                  const Stream& stream = {});
CLUTCH_API void varlen_attn_out(const FlexResult& out, const Tensor& q, const Tensor& k, const Tensor& v,
                                const FlexOptions& options, const Stream& stream = {});
/// Its gradients, (T, Hq, E), (S, Hkv, E) and (S, Hkv, Ev); rows of no sequence are undefined.
CLUTCH_API FlexGradients varlen_attn_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                                              const FlexResult& results, const FlexOptions& options,
                                              const FlexBackwardOptions& backward = {}, const Stream& stream = {});
CLUTCH_API void varlen_attn_backward_out(const FlexGradients& out, const Tensor& grad_out, const Tensor& q,
                                         const Tensor& k, const Tensor& v, const FlexResult& results,
                                         const FlexOptions& options, const FlexBackwardOptions& backward = {},
                                         const Stream& stream = {});
/// Each sequence's last query attends to all of its keys, one before it to all but the last one, and so on; q_len and
/// kv_len are the lengths where `varlen` has none. Rows past max_q and max_kv do not count, nor used keys past a
/// sequence's end.
CLUTCH_API MaskMod causal_lower_right(const Varlen& varlen, std::int64_t q_len = 0, std::int64_t kv_len = 0);

/// Weights of multi_head_attention(), as linear() has them. A head has in_weight.size(0) / (heads + 2 kv_heads)
/// elements.
struct MultiHeadWeights {
  Tensor in_weight;                      ///< ((heads + 2 kv_heads) D, E): those of all heads of q, then of k, then of v
  Tensor in_bias = {};                   ///< of as many, or undefined
  Tensor out_weight = {};                ///< (E', heads D)
  Tensor out_bias = {};                  ///< (E'), or undefined
  std::int64_t heads = 1, kv_heads = 0;  ///< 0: as many as heads
};
struct MultiHeadResult {
  Tensor out;  ///< (B, L, E')
  /// Tensors that the backward call needs: (B, L, (heads + 2 kv_heads) D), (B, L, heads D), and flex()'s
  Tensor projected, attended, lse, dropout_state;
};
struct MultiHeadGradients {
  Tensor x, in_weight, in_bias, out_weight, out_bias;  ///< of a bias: undefined where there is none
};
/// Self-attention of x (B, L, E) with its projections: linear(), flex(), linear(); nothing is copied between them.
/// options: as flex()'s, `numerics` of the projections, too; heads that share keys need no enable_gqa.
/// Errors: as those; invalid_shape where the weights do not fit the heads.
/// Source: torch.nn.functional.multi_head_attention_forward of PyTorch 2.12, whose packed weights these are for
///   kv_heads = heads.
CLUTCH_API MultiHeadResult multi_head_attention(const Tensor& x, const MultiHeadWeights& weights,
                                                const FlexOptions& options = {}, const Stream& stream = {});
CLUTCH_API void multi_head_attention_out(const MultiHeadResult& out, const Tensor& x, const MultiHeadWeights& weights,
                                         const FlexOptions& options = {}, const Stream& stream = {});
CLUTCH_API MultiHeadGradients multi_head_attention_backward(const Tensor& grad_out, const Tensor& x,
                                                            const MultiHeadWeights& weights,
                                                            const MultiHeadResult& result,
                                                            const FlexOptions& options = {}, const Stream& stream = {});
CLUTCH_API void multi_head_attention_backward_out(const MultiHeadGradients& out, const Tensor& grad_out,
                                                  const Tensor& x, const MultiHeadWeights& weights,
                                                  const MultiHeadResult& result, const FlexOptions& options = {},
                                                  const Stream& stream = {});

/// Enables these backends alone on this thread, in this order, for as long as it lives. Guards nest and are destroyed
/// in reverse order.
/// Errors: invalid_argument for none or the same twice.
class CLUTCH_API SdpaBackends {
 public:
  SdpaBackends(std::initializer_list<SdpaBackend> order);
  ~SdpaBackends();
  SdpaBackends(const SdpaBackends&) = delete;
  SdpaBackends& operator=(const SdpaBackends&) = delete;

 private:
  std::uint8_t before_[2];
};

}  // namespace attention
}}  // namespace clutch::v0
