// SPDX-License-Identifier: Apache-2.0
#pragma once
// Row ops of networks, forward and backward: rowwise(), reduce() and map() of a few lines each, whose words on layouts,
// aliases, determinism and waiting hold. Floats are f64 f32 f16 bf16; f16 and bf16 compute in f32. Gradients have their
// tensor's dtype.
// A row is read as often as it has totals, and once more, but from memory only once if it fits in a core's cache.
#include <clutch/ops/rowwise.hpp>

#include <cstdint>

namespace clutch { inline namespace v0 { namespace nn {

/// e^(x - max) / sum e^(x - max) over one dimension. A row of -inf alone, and one with +inf or NaN, is NaN, as in
/// PyTorch.
/// Accuracy: relative error of an element <= (|x - max| + 46) eps, eps being 2^-24 (2^-53 for f64), for rows of up to
///   2048.
/// Errors: invalid_argument for `dim`; invalid_dtype for integers.
/// Empty: nothing.
/// Source: torch.softmax.
CLUTCH_API Tensor softmax(const Tensor& x, int dim = -1, const Stream& stream = {});
CLUTCH_API void softmax_out(const Tensor& out, const Tensor& x, int dim = -1, const Stream& stream = {});
/// x - max - log(sum e^(x - max)).
CLUTCH_API Tensor log_softmax(const Tensor& x, int dim = -1, const Stream& stream = {});
CLUTCH_API void log_softmax_out(const Tensor& out, const Tensor& x, int dim = -1, const Stream& stream = {});
/// Gradients from the result `y` of the forward op: y (g - sum g y), and g - e^y sum g.
CLUTCH_API Tensor softmax_backward(const Tensor& grad, const Tensor& y, int dim = -1, const Stream& stream = {});
CLUTCH_API void softmax_backward_out(const Tensor& out, const Tensor& grad, const Tensor& y, int dim = -1,
                                     const Stream& stream = {});
CLUTCH_API Tensor log_softmax_backward(const Tensor& grad, const Tensor& y, int dim = -1, const Stream& stream = {});
CLUTCH_API void log_softmax_backward_out(const Tensor& out, const Tensor& grad, const Tensor& y, int dim = -1,
                                         const Stream& stream = {});

struct NormOptions {
  int normalized_rank = 1;  ///< how many last dimensions make a row
  double eps = 1e-5;        ///< added to the mean square
};
struct LayerNormResult {
  Tensor y;
  Tensor mean, rstd;  ///< of each row, with size 1 in the normalized dimensions; f32, f64 for f64
};
struct LayerNormGradients {
  Tensor x, weight, bias;  ///< weight undefined where the forward op had none; bias, which costs one sum, always made
};
/// (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions; the variance is the biased one, in two
/// passes.
/// Accuracy: mean and variance as mean() and var(). A row whose sum, or whose sum of squared distances, overflows f32
///   (f64 for f64) gives NaN or zeros.
/// Shapes: weight and bias, each may be undefined, have the normalized dimensions.
/// Errors: invalid_argument for the rank; invalid_shape; invalid_dtype for integers.
/// Source: torch.nn.functional.layer_norm.
CLUTCH_API LayerNormResult layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                                      const NormOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensors, which rowwise_out() writes: all three are needed, and y may be x, element for element.
CLUTCH_API void layer_norm_out(const LayerNormResult& out, const Tensor& x, const Tensor& weight = {},
                               const Tensor& bias = {}, const NormOptions& options = {}, const Stream& stream = {});
CLUTCH_API LayerNormGradients layer_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& mean,
                                                  const Tensor& rstd, const Tensor& weight = {},
                                                  const NormOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes; an undefined one is not asked for. They may share memory with
/// inputs. So do the out forms below.
CLUTCH_API void layer_norm_backward_out(const LayerNormGradients& out, const Tensor& grad, const Tensor& x,
                                        const Tensor& mean, const Tensor& rstd, const Tensor& weight = {},
                                        const NormOptions& options = {}, const Stream& stream = {});

struct RmsNormResult {
  Tensor y;
  Tensor rrms;  ///< 1 / sqrt(mean of squares + eps) of each row
};
struct RmsNormGradients {
  Tensor x, weight;
};
/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions. PyTorch's default eps is the dtype's epsilon: give it
/// if you want its results. A row whose sum of squares overflows f32 (f64 for f64) gives zeros, as in PyTorch.
CLUTCH_API RmsNormResult rms_norm(const Tensor& x, const Tensor& weight = {}, const NormOptions& options = {},
                                  const Stream& stream = {});
/// As layer_norm_out().
CLUTCH_API void rms_norm_out(const RmsNormResult& out, const Tensor& x, const Tensor& weight = {},
                             const NormOptions& options = {}, const Stream& stream = {});
CLUTCH_API RmsNormGradients rms_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& rrms,
                                              const Tensor& weight = {}, const NormOptions& options = {},
                                              const Stream& stream = {});
CLUTCH_API void rms_norm_backward_out(const RmsNormGradients& out, const Tensor& grad, const Tensor& x,
                                      const Tensor& rrms, const Tensor& weight = {}, const NormOptions& options = {},
                                      const Stream& stream = {});

enum class Reduction : std::uint8_t { mean, sum, none };
struct CrossEntropyOptions {
  Tensor weight = {};  ///< of each class; undefined: 1
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;  ///< mean: over the weights of the targets
  double label_smoothing = 0;
};
struct CrossEntropyResult {
  Tensor loss = {};  ///< of rank 0, or of the target's shape for Reduction::none; in the logits' dtype
  /// The largest logit of each row, of the logits' shape with size 1 in the classes' dimension; f32, f64 for f64
  Tensor max = {};
  /// log(sum e^(logits - max)), likewise, NaN in a row with +inf or of -inf alone: log(sum e^logits) is max + log_sum,
  /// which rounds
  Tensor log_sum = {};
};
/// Computes -log softmax(logits)[target], weighted and smoothed.
/// Shapes: logits (classes), (n, classes) or (n, classes, d1, ...); target of integers, the same without the classes'
///   dimension; or target of floats, of the logits' shape.
/// Probabilities: a target of floats has each class's probability: -sum of weight * target * log softmax(logits).
///   ignore_index has no part in it, and the mean is over the losses.
/// Bad contents: targets outside of the classes that are not ignore_index give NaN.
/// Infinities: logits of +inf make their row's loss NaN, on the target or off it, and so does a row of -inf alone; -inf
///   on the target gives +inf.
/// Accuracy: for up to 2048 classes and weights of 1, whatever the logits have in common, eps being 2^-24 (2^-53 for
///   f64): a row's loss is within (2 loss + log(classes) + 50) eps of the exact one, and the gradient of a logit, for a
///   gradient of 1 of the loss, within (2 |logit - max| + 2 log(classes) + 50) eps p + 2 eps, p being its softmax. Both
///   are rounded besides where they are stored.
/// Empty: the sum of no losses is 0, their mean NaN.
/// Errors: invalid_shape; invalid_dtype; invalid_argument for a smoothing outside of [0, 1].
/// Source: torch.nn.functional.cross_entropy.
CLUTCH_API CrossEntropyResult cross_entropy(const Tensor& logits, const Tensor& target,
                                            const CrossEntropyOptions& options = {}, const Stream& stream = {});
CLUTCH_API void cross_entropy_out(const CrossEntropyResult& out, const Tensor& logits, const Tensor& target,
                                  const CrossEntropyOptions& options = {}, const Stream& stream = {});
/// Gradient of the logits; `grad` has the loss's shape, `result` is what cross_entropy gave, whose max and log_sum are
/// read.
CLUTCH_API Tensor cross_entropy_backward(const Tensor& grad, const Tensor& logits, const Tensor& target,
                                         const CrossEntropyResult& result, const CrossEntropyOptions& options = {},
                                         const Stream& stream = {});
CLUTCH_API void cross_entropy_backward_out(const Tensor& out, const Tensor& grad, const Tensor& logits,
                                           const Tensor& target, const CrossEntropyResult& result,
                                           const CrossEntropyOptions& options = {}, const Stream& stream = {});

struct EmbeddingBackwardOptions {
  std::int64_t padding_index = -1;  ///< rows of this index get no gradient; -1: none
  bool scale_by_frequency = false;  ///< divides a row's gradient by how often the row occurs
};
/// Rows of a table: out[..., :] = weight[index[...], :].
/// Shapes: weight (rows, features); index any; out the index's, then features.
/// Dtypes: f64 f32 f16 bf16; index i32 or i64.
/// Bad contents: an index that is no row gives NaN.
/// Errors: invalid_shape; invalid_dtype; device_mismatch.
/// Source: torch.nn.functional.embedding.
CLUTCH_API Tensor embedding(const Tensor& weight, const Tensor& index, const Stream& stream = {});
CLUTCH_API void embedding_out(const Tensor& out, const Tensor& weight, const Tensor& index, const Stream& stream = {});
/// The gradient of a table of `rows` rows: for each, the gradients of its occurrences summed in their order, in f32
/// (f64 for f64). Bit-equal on every device; no atomics. Occurrences that are no row are left out. A row that occurs
/// too often gives NaN where segment_reduce does.
CLUTCH_API Tensor embedding_backward(const Tensor& grad, const Tensor& index, std::int64_t rows,
                                     const EmbeddingBackwardOptions& options = {}, const Stream& stream = {});
CLUTCH_API void embedding_backward_out(const Tensor& out, const Tensor& grad, const Tensor& index, std::int64_t rows,
                                       const EmbeddingBackwardOptions& options = {}, const Stream& stream = {});

}}}  // namespace clutch::v0::nn
