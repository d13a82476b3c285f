// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/plugin_calls.hpp"

#include "capi/types.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 { namespace capi {
namespace {

using TensorList = std::span<const Tensor>;

/// Objects and structs of C for the length of a call.
class Lent {
 public:
  template <class H, class V>
  const H* object(const V& value) {
    return is_empty(value) ? nullptr : kept(H{value});
  }
  template <class T>
  const T* kept(T value) {
    auto made = std::make_shared<T>(std::move(value));
    kept_.push_back(made);
    return made.get();
  }
  const clutch_tensor_t* const* list(std::span<const Tensor> tensors) {
    std::vector<const clutch_tensor_t*> all;
    for (const Tensor& t : tensors) all.push_back(object<clutch_tensor_t>(t));
    return kept(std::move(all))->data();
  }

 private:
  std::vector<std::shared_ptr<void>> kept_;
};

const clutch_addc_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const AddcOptions& value) {
  clutch_addc_options_t c = CLUTCH_ADDC_OPTIONS_INIT;
  c.value = value.value;
  c.order = static_cast<std::int64_t>(value.order);
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_cumsum_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const CumsumOptions& value) {
  clutch_cumsum_options_t c = CLUTCH_CUMSUM_OPTIONS_INIT;
  c.reverse = value.reverse;
  std::vector<std::int64_t> dtype;
  for (int i = 0; i < value.dtype.size(); ++i) dtype.push_back(static_cast<std::int64_t>(value.dtype[i]));
  c.dtype_count = dtype.size();
  c.dtype = lent.kept(std::move(dtype))->data();
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_sorted_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const Sorted& value) {
  clutch_sorted_t c = CLUTCH_SORTED_INIT;
  c.values = lent.object<clutch_tensor_t>(value.values);
  c.indices = lent.object<clutch_tensor_t>(value.indices);
  return lent.kept(c);
}
const clutch_sort_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const SortOptions& value) {
  clutch_sort_options_t c = CLUTCH_SORT_OPTIONS_INIT;
  c.descending = value.descending;
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_linalg_matmul_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const linalg::MatmulOptions& value) {
  clutch_linalg_matmul_options_t c = CLUTCH_LINALG_MATMUL_OPTIONS_INIT;
  c.alpha = value.alpha;
  c.beta = value.beta;
  std::vector<std::int64_t> dtype;
  for (int i = 0; i < value.dtype.size(); ++i) dtype.push_back(static_cast<std::int64_t>(value.dtype[i]));
  c.dtype_count = dtype.size();
  c.dtype = lent.kept(std::move(dtype))->data();
  c.implementation = value.implementation.c_str();
  c.numerics = static_cast<std::int64_t>(value.numerics);
  return lent.kept(c);
}
const clutch_attention_flex_result_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const attention::FlexResult& value) {
  clutch_attention_flex_result_t c = CLUTCH_ATTENTION_FLEX_RESULT_INIT;
  c.out = lent.object<clutch_tensor_t>(value.out);
  c.lse = lent.object<clutch_tensor_t>(value.lse);
  c.max_scores = lent.object<clutch_tensor_t>(value.max_scores);
  c.dropout_state = lent.object<clutch_tensor_t>(value.dropout_state);
  return lent.kept(c);
}
const clutch_attention_varlen_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const attention::Varlen& value) {
  clutch_attention_varlen_t c = CLUTCH_ATTENTION_VARLEN_INIT;
  c.cu_seq_q = lent.object<clutch_tensor_t>(value.cu_seq_q);
  c.cu_seq_kv = lent.object<clutch_tensor_t>(value.cu_seq_kv);
  c.seqused_kv = lent.object<clutch_tensor_t>(value.seqused_kv);
  c.page_table = lent.object<clutch_tensor_t>(value.page_table);
  c.page_size = value.page_size;
  c.max_q = value.max_q;
  c.max_kv = value.max_kv;
  return lent.kept(c);
}
const clutch_attention_flex_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const attention::FlexOptions& value) {
  clutch_attention_flex_options_t c = CLUTCH_ATTENTION_FLEX_OPTIONS_INIT;
  c.score_mod = lent.object<clutch_attention_score_mod_t>(value.score_mod);
  c.mask_mod = lent.object<clutch_attention_mask_mod_t>(value.mask_mod);
  c.block_mask = lent.object<clutch_attention_block_mask_t>(value.block_mask);
  if (value.scale == value.scale) c.has_scale = 1, c.scale = value.scale;
  c.enable_gqa = value.enable_gqa;
  c.return_lse = value.return_lse;
  c.return_max_scores = value.return_max_scores;
  c.varlen = lend(lent, value.varlen);
  c.dropout_p = value.dropout_p;
  c.generator = lent.object<clutch_generator_t>(value.generator);
  c.skip_masked = value.skip_masked;
  c.implementation = value.implementation.c_str();
  c.numerics = static_cast<std::int64_t>(value.numerics);
  return lent.kept(c);
}
const clutch_fill_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const FillOptions& value) {
  clutch_fill_options_t c = CLUTCH_FILL_OPTIONS_INIT;
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_cat_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const CatOptions& value) {
  clutch_cat_options_t c = CLUTCH_CAT_OPTIONS_INIT;
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_reduce_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const ReduceOptions& value) {
  clutch_reduce_options_t c = CLUTCH_REDUCE_OPTIONS_INIT;
  c.dims = value.dims.begin(), c.dims_count = static_cast<std::size_t>(value.dims.rank());
  c.keepdim = value.keepdim;
  std::vector<std::int64_t> dtype;
  for (int i = 0; i < value.dtype.size(); ++i) dtype.push_back(static_cast<std::int64_t>(value.dtype[i]));
  c.dtype_count = dtype.size();
  c.dtype = lent.kept(std::move(dtype))->data();
  c.after = lent.object<clutch_expr_function_t>(value.after);
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_copy_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const CopyOptions& value) {
  clutch_copy_options_t c = CLUTCH_COPY_OPTIONS_INIT;
  c.overflow = static_cast<std::int64_t>(value.overflow);
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_map_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const MapOptions& value) {
  clutch_map_options_t c = CLUTCH_MAP_OPTIONS_INIT;
  std::vector<std::int64_t> dtype;
  for (int i = 0; i < value.dtype.size(); ++i) dtype.push_back(static_cast<std::int64_t>(value.dtype[i]));
  c.dtype_count = dtype.size();
  c.dtype = lent.kept(std::move(dtype))->data();
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_topk_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const TopkOptions& value) {
  clutch_topk_options_t c = CLUTCH_TOPK_OPTIONS_INIT;
  c.largest = value.largest;
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_nonzero_static_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const NonzeroStaticOptions& value) {
  clutch_nonzero_static_options_t c = CLUTCH_NONZERO_STATIC_OPTIONS_INIT;
  c.fill_value = value.fill_value;
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_groups_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const Groups& value) {
  clutch_groups_t c = CLUTCH_GROUPS_INIT;
  c.offsets = lent.object<clutch_tensor_t>(value.offsets);
  c.order = lent.object<clutch_tensor_t>(value.order);
  return lent.kept(c);
}
const clutch_group_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const GroupOptions& value) {
  clutch_group_options_t c = CLUTCH_GROUP_OPTIONS_INIT;
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_scatter_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const ScatterOptions& value) {
  clutch_scatter_options_t c = CLUTCH_SCATTER_OPTIONS_INIT;
  c.reduce = static_cast<std::int64_t>(value.reduce);
  c.include_self = value.include_self;
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_index_put_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const IndexPutOptions& value) {
  clutch_index_put_options_t c = CLUTCH_INDEX_PUT_OPTIONS_INIT;
  c.accumulate = value.accumulate;
  return lent.kept(c);
}
const clutch_segment_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const SegmentOptions& value) {
  clutch_segment_options_t c = CLUTCH_SEGMENT_OPTIONS_INIT;
  c.reduce = static_cast<std::int64_t>(value.reduce);
  if (value.initial) c.has_initial = 1, c.initial = *value.initial;
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_sparse_csr_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const sparse::Csr& value) {
  clutch_sparse_csr_t c = CLUTCH_SPARSE_CSR_INIT;
  c.offsets = lent.object<clutch_tensor_t>(value.offsets);
  c.columns = lent.object<clutch_tensor_t>(value.columns);
  c.values = lent.object<clutch_tensor_t>(value.values);
  c.width = value.width;
  return lent.kept(c);
}
const clutch_sparse_spmm_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const sparse::SpmmOptions& value) {
  clutch_sparse_spmm_options_t c = CLUTCH_SPARSE_SPMM_OPTIONS_INIT;
  c.reduce = static_cast<std::int64_t>(value.reduce);
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_linalg_eigh_status_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const linalg::EighStatus& value) {
  clutch_linalg_eigh_status_t c = CLUTCH_LINALG_EIGH_STATUS_INIT;
  c.info = lent.object<clutch_tensor_t>(value.info);
  c.sweeps = lent.object<clutch_tensor_t>(value.sweeps);
  return lent.kept(c);
}
const clutch_linalg_eigh_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const linalg::EighOptions& value) {
  clutch_linalg_eigh_options_t c = CLUTCH_LINALG_EIGH_OPTIONS_INIT;
  c.uplo = static_cast<std::int64_t>(value.uplo);
  c.driver = static_cast<std::int64_t>(value.driver);
  c.phase = static_cast<std::int64_t>(value.phase);
  c.accuracy = static_cast<std::int64_t>(value.accuracy);
  c.first = value.first;
  c.count = value.count;
  c.tolerance = value.tolerance;
  c.max_sweeps = value.max_sweeps;
  return lent.kept(c);
}
const clutch_uniform_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const UniformOptions& value) {
  clutch_uniform_options_t c = CLUTCH_UNIFORM_OPTIONS_INIT;
  c.low = value.low;
  c.high = value.high;
  if (value.seed) c.has_seed = 1, c.seed = *value.seed;
  c.generator = lent.object<clutch_generator_t>(value.generator);
  return lent.kept(c);
}
const clutch_normal_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const NormalOptions& value) {
  clutch_normal_options_t c = CLUTCH_NORMAL_OPTIONS_INIT;
  c.mean = value.mean;
  c.stddev = value.stddev;
  if (value.seed) c.has_seed = 1, c.seed = *value.seed;
  c.generator = lent.object<clutch_generator_t>(value.generator);
  return lent.kept(c);
}
const clutch_optim_precision_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const optim::Precision& value) {
  clutch_optim_precision_t c = CLUTCH_OPTIM_PRECISION_INIT;
  c.numerics = static_cast<std::int64_t>(value.numerics);
  c.state = static_cast<std::int64_t>(value.state);
  c.master = value.master;
  c.rounding = static_cast<std::int64_t>(value.rounding);
  c.seed = value.seed;
  return lent.kept(c);
}
const clutch_optim_sgd_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const optim::SGDOptions& value) {
  clutch_optim_sgd_options_t c = CLUTCH_OPTIM_SGD_OPTIONS_INIT;
  c.lr = value.lr;
  c.momentum = value.momentum;
  c.dampening = value.dampening;
  c.weight_decay = value.weight_decay;
  c.nesterov = value.nesterov;
  c.maximize = value.maximize;
  c.precision = lend(lent, value.precision);
  return lent.kept(c);
}
const clutch_optim_step_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const optim::StepOptions& value) {
  clutch_optim_step_options_t c = CLUTCH_OPTIM_STEP_OPTIONS_INIT;
  c.lr = lent.object<clutch_tensor_t>(value.lr);
  c.grad_scale = lent.object<clutch_tensor_t>(value.grad_scale);
  c.found_inf = lent.object<clutch_tensor_t>(value.found_inf);
  c.grad_factor = lent.object<clutch_tensor_t>(value.grad_factor);
  if (value.max_norm) c.has_max_norm = 1, c.max_norm = *value.max_norm;
  c.norm_type = static_cast<std::int64_t>(value.norm_type);
  return lent.kept(c);
}
const clutch_optim_adam_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const optim::AdamOptions& value) {
  clutch_optim_adam_options_t c = CLUTCH_OPTIM_ADAM_OPTIONS_INIT;
  c.lr = value.lr;
  c.beta1 = value.beta1;
  c.beta2 = value.beta2;
  c.eps = value.eps;
  c.weight_decay = value.weight_decay;
  c.amsgrad = value.amsgrad;
  c.maximize = value.maximize;
  c.decoupled_weight_decay = value.decoupled_weight_decay;
  c.precision = lend(lent, value.precision);
  return lent.kept(c);
}
const clutch_optim_adamw_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const optim::AdamWOptions& value) {
  clutch_optim_adamw_options_t c = CLUTCH_OPTIM_ADAMW_OPTIONS_INIT;
  c.lr = value.lr;
  c.beta1 = value.beta1;
  c.beta2 = value.beta2;
  c.eps = value.eps;
  c.weight_decay = value.weight_decay;
  c.amsgrad = value.amsgrad;
  c.maximize = value.maximize;
  c.precision = lend(lent, value.precision);
  return lent.kept(c);
}
const clutch_optim_adagrad_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const optim::AdagradOptions& value) {
  clutch_optim_adagrad_options_t c = CLUTCH_OPTIM_ADAGRAD_OPTIONS_INIT;
  c.lr = value.lr;
  c.lr_decay = value.lr_decay;
  c.weight_decay = value.weight_decay;
  c.initial_accumulator_value = value.initial_accumulator_value;
  c.eps = value.eps;
  c.maximize = value.maximize;
  c.precision = lend(lent, value.precision);
  return lent.kept(c);
}
const clutch_optim_rmsprop_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const optim::RMSpropOptions& value) {
  clutch_optim_rmsprop_options_t c = CLUTCH_OPTIM_RMSPROP_OPTIONS_INIT;
  c.lr = value.lr;
  c.alpha = value.alpha;
  c.eps = value.eps;
  c.weight_decay = value.weight_decay;
  c.momentum = value.momentum;
  c.centered = value.centered;
  c.maximize = value.maximize;
  c.precision = lend(lent, value.precision);
  return lent.kept(c);
}
const clutch_selective_scan_result_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const SelectiveScanResult& value) {
  clutch_selective_scan_result_t c = CLUTCH_SELECTIVE_SCAN_RESULT_INIT;
  c.y = lent.object<clutch_tensor_t>(value.y);
  c.state = lent.object<clutch_tensor_t>(value.state);
  return lent.kept(c);
}
const clutch_selective_scan_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const SelectiveScanOptions& value) {
  clutch_selective_scan_options_t c = CLUTCH_SELECTIVE_SCAN_OPTIONS_INIT;
  c.skip = lent.object<clutch_tensor_t>(value.skip);
  c.gate = lent.object<clutch_tensor_t>(value.gate);
  c.delta_bias = lent.object<clutch_tensor_t>(value.delta_bias);
  c.delta_softplus = value.delta_softplus;
  c.initial_state = lent.object<clutch_tensor_t>(value.initial_state);
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_selective_scan_gradients_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const SelectiveScanGradients& value) {
  clutch_selective_scan_gradients_t c = CLUTCH_SELECTIVE_SCAN_GRADIENTS_INIT;
  c.x = lent.object<clutch_tensor_t>(value.x);
  c.delta = lent.object<clutch_tensor_t>(value.delta);
  c.a = lent.object<clutch_tensor_t>(value.a);
  c.b = lent.object<clutch_tensor_t>(value.b);
  c.c = lent.object<clutch_tensor_t>(value.c);
  c.skip = lent.object<clutch_tensor_t>(value.skip);
  c.gate = lent.object<clutch_tensor_t>(value.gate);
  c.delta_bias = lent.object<clutch_tensor_t>(value.delta_bias);
  c.initial_state = lent.object<clutch_tensor_t>(value.initial_state);
  return lent.kept(c);
}
const clutch_nn_layer_norm_gradients_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const nn::LayerNormGradients& value) {
  clutch_nn_layer_norm_gradients_t c = CLUTCH_NN_LAYER_NORM_GRADIENTS_INIT;
  c.x = lent.object<clutch_tensor_t>(value.x);
  c.weight = lent.object<clutch_tensor_t>(value.weight);
  c.bias = lent.object<clutch_tensor_t>(value.bias);
  return lent.kept(c);
}
const clutch_nn_norm_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const nn::NormOptions& value) {
  clutch_nn_norm_options_t c = CLUTCH_NN_NORM_OPTIONS_INIT;
  c.normalized_rank = value.normalized_rank;
  c.eps = value.eps;
  return lent.kept(c);
}
const clutch_nn_rms_norm_gradients_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const nn::RmsNormGradients& value) {
  clutch_nn_rms_norm_gradients_t c = CLUTCH_NN_RMS_NORM_GRADIENTS_INIT;
  c.x = lent.object<clutch_tensor_t>(value.x);
  c.weight = lent.object<clutch_tensor_t>(value.weight);
  return lent.kept(c);
}
const clutch_rowwise_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const RowwiseOptions& value) {
  clutch_rowwise_options_t c = CLUTCH_ROWWISE_OPTIONS_INIT;
  c.dims = value.dims.begin(), c.dims_count = static_cast<std::size_t>(value.dims.rank());
  std::vector<std::int64_t> dtype;
  for (int i = 0; i < value.dtype.size(); ++i) dtype.push_back(static_cast<std::int64_t>(value.dtype[i]));
  c.dtype_count = dtype.size();
  c.dtype = lent.kept(std::move(dtype))->data();
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_nn_layer_norm_result_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const nn::LayerNormResult& value) {
  clutch_nn_layer_norm_result_t c = CLUTCH_NN_LAYER_NORM_RESULT_INIT;
  c.y = lent.object<clutch_tensor_t>(value.y);
  c.mean = lent.object<clutch_tensor_t>(value.mean);
  c.rstd = lent.object<clutch_tensor_t>(value.rstd);
  return lent.kept(c);
}
const clutch_nn_rms_norm_result_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const nn::RmsNormResult& value) {
  clutch_nn_rms_norm_result_t c = CLUTCH_NN_RMS_NORM_RESULT_INIT;
  c.y = lent.object<clutch_tensor_t>(value.y);
  c.rrms = lent.object<clutch_tensor_t>(value.rrms);
  return lent.kept(c);
}
const clutch_nn_cross_entropy_result_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const nn::CrossEntropyResult& value) {
  clutch_nn_cross_entropy_result_t c = CLUTCH_NN_CROSS_ENTROPY_RESULT_INIT;
  c.loss = lent.object<clutch_tensor_t>(value.loss);
  c.max = lent.object<clutch_tensor_t>(value.max);
  c.log_sum = lent.object<clutch_tensor_t>(value.log_sum);
  return lent.kept(c);
}
const clutch_nn_cross_entropy_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const nn::CrossEntropyOptions& value) {
  clutch_nn_cross_entropy_options_t c = CLUTCH_NN_CROSS_ENTROPY_OPTIONS_INIT;
  c.weight = lent.object<clutch_tensor_t>(value.weight);
  c.ignore_index = value.ignore_index;
  c.reduction = static_cast<std::int64_t>(value.reduction);
  c.label_smoothing = value.label_smoothing;
  return lent.kept(c);
}
const clutch_kthvalue_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const KthvalueOptions& value) {
  clutch_kthvalue_options_t c = CLUTCH_KTHVALUE_OPTIONS_INIT;
  c.keepdim = value.keepdim;
  c.implementation = value.implementation.c_str();
  return lent.kept(c);
}
const clutch_nn_embedding_backward_options_t* lend([[maybe_unused]] Lent& lent, [[maybe_unused]] const nn::EmbeddingBackwardOptions& value) {
  clutch_nn_embedding_backward_options_t c = CLUTCH_NN_EMBEDDING_BACKWARD_OPTIONS_INIT;
  c.padding_index = value.padding_index;
  c.scale_by_frequency = value.scale_by_frequency;
  return lent.kept(c);
}
void tell(std::string& text, const Tensor& value) { text += fmt::format("{}{}", text.empty() ? "" : " ", value.defined() ? name(value.dtype()) : "none"); }
/// Each dtype once, and none where a list has undefined tensors or is empty.
void tell(std::string& text, TensorList list) {
  std::vector<std::string> seen;
  for (const Tensor& t : list) {
    std::string one;
    tell(one, t);
    if (std::find(seen.begin(), seen.end(), one) == seen.end()) seen.push_back(one), tell(text, t);
  }
  if (list.empty()) tell(text, Tensor());
}
/// Each dtype.
void tell_all(std::string& text, TensorList list) {
  for (const Tensor& t : list) tell(text, t);
}
void tell(std::string& text, const sparse::SemiStructured& value) { text += fmt::format(" {}", value.empty() ? "none" : name(value.dtype())); }
/// All of a function but the values of its params.
void tell(std::string& text, const ExprFunction& value) { text += fmt::format(" {}", value.text()); }
void tell(std::string& text, const RowFunction& value) { text += fmt::format(" {}", value.text()); }
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const AddcOptions& value) {
  text += fmt::format(" order {}", static_cast<int>(value.order));
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const CumsumOptions& value) {
  if (value.reverse) text += " reverse";
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const Sorted& value) {
  tell(text, value.values);
  tell(text, value.indices);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const SortOptions& value) {
  if (value.descending) text += " descending";
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const linalg::MatmulOptions& value) {
  text += fmt::format(" numerics {}", static_cast<int>(value.numerics));
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const attention::FlexResult& value) {
  tell(text, value.out);
  tell(text, value.lse);
  tell(text, value.max_scores);
  tell(text, value.dropout_state);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const attention::Varlen& value) {
  tell(text, value.cu_seq_q);
  tell(text, value.cu_seq_kv);
  tell(text, value.seqused_kv);
  tell(text, value.page_table);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const attention::FlexOptions& value) {
  if (!is_empty(value.score_mod)) text += " score_mod";
  if (!is_empty(value.mask_mod)) text += " mask_mod";
  if (!is_empty(value.block_mask)) text += " block_mask";
  if (value.scale == value.scale) text += " scale";
  if (value.enable_gqa) text += " enable_gqa";
  if (value.return_lse) text += " return_lse";
  if (value.return_max_scores) text += " return_max_scores";
  tell(text, value.varlen);
  if (value.skip_masked) text += " skip_masked";
  text += fmt::format(" numerics {}", static_cast<int>(value.numerics));
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const FillOptions& value) {
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const CatOptions& value) {
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const ReduceOptions& value) {
  if (value.keepdim) text += " keepdim";
  if (!is_empty(value.after)) text += fmt::format(" after {}", (value.after).text());
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const CopyOptions& value) {
  text += fmt::format(" overflow {}", static_cast<int>(value.overflow));
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const MapOptions& value) {
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const TopkOptions& value) {
  if (value.largest) text += " largest";
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const NonzeroStaticOptions& value) {
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const Groups& value) {
  tell(text, value.offsets);
  tell(text, value.order);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const GroupOptions& value) {
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const ScatterOptions& value) {
  text += fmt::format(" reduce {}", static_cast<int>(value.reduce));
  if (value.include_self) text += " include_self";
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const IndexPutOptions& value) {
  if (value.accumulate) text += " accumulate";
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const SegmentOptions& value) {
  text += fmt::format(" reduce {}", static_cast<int>(value.reduce));
  if (value.initial.has_value()) text += " initial";
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const sparse::Csr& value) {
  tell(text, value.offsets);
  tell(text, value.columns);
  tell(text, value.values);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const sparse::SpmmOptions& value) {
  text += fmt::format(" reduce {}", static_cast<int>(value.reduce));
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const linalg::EighStatus& value) {
  tell(text, value.info);
  tell(text, value.sweeps);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const linalg::EighOptions& value) {
  text += fmt::format(" uplo {}", static_cast<int>(value.uplo));
  text += fmt::format(" driver {}", static_cast<int>(value.driver));
  text += fmt::format(" phase {}", static_cast<int>(value.phase));
  text += fmt::format(" accuracy {}", static_cast<int>(value.accuracy));
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const UniformOptions& value) {
  if (value.seed.has_value()) text += " seed";
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const NormalOptions& value) {
  if (value.seed.has_value()) text += " seed";
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const optim::Precision& value) {
  text += fmt::format(" numerics {}", static_cast<int>(value.numerics));
  text += fmt::format(" state {}", static_cast<int>(value.state));
  if (value.master) text += " master";
  text += fmt::format(" rounding {}", static_cast<int>(value.rounding));
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const optim::SGDOptions& value) {
  if (value.nesterov) text += " nesterov";
  if (value.maximize) text += " maximize";
  tell(text, value.precision);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const optim::StepOptions& value) {
  tell(text, value.lr);
  tell(text, value.grad_scale);
  tell(text, value.found_inf);
  tell(text, value.grad_factor);
  if (value.max_norm.has_value()) text += " max_norm";
  text += fmt::format(" norm_type {}", static_cast<int>(value.norm_type));
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const optim::AdamOptions& value) {
  if (value.amsgrad) text += " amsgrad";
  if (value.maximize) text += " maximize";
  if (value.decoupled_weight_decay) text += " decoupled_weight_decay";
  tell(text, value.precision);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const optim::AdamWOptions& value) {
  if (value.amsgrad) text += " amsgrad";
  if (value.maximize) text += " maximize";
  tell(text, value.precision);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const optim::AdagradOptions& value) {
  if (value.maximize) text += " maximize";
  tell(text, value.precision);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const optim::RMSpropOptions& value) {
  if (value.centered) text += " centered";
  if (value.maximize) text += " maximize";
  tell(text, value.precision);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const SelectiveScanResult& value) {
  tell(text, value.y);
  tell(text, value.state);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const SelectiveScanOptions& value) {
  tell(text, value.skip);
  tell(text, value.gate);
  tell(text, value.delta_bias);
  if (value.delta_softplus) text += " delta_softplus";
  tell(text, value.initial_state);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const SelectiveScanGradients& value) {
  tell(text, value.x);
  tell(text, value.delta);
  tell(text, value.a);
  tell(text, value.b);
  tell(text, value.c);
  tell(text, value.skip);
  tell(text, value.gate);
  tell(text, value.delta_bias);
  tell(text, value.initial_state);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const nn::LayerNormGradients& value) {
  tell(text, value.x);
  tell(text, value.weight);
  tell(text, value.bias);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const nn::NormOptions& value) {
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const nn::RmsNormGradients& value) {
  tell(text, value.x);
  tell(text, value.weight);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const RowwiseOptions& value) {
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const nn::LayerNormResult& value) {
  tell(text, value.y);
  tell(text, value.mean);
  tell(text, value.rstd);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const nn::RmsNormResult& value) {
  tell(text, value.y);
  tell(text, value.rrms);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const nn::CrossEntropyResult& value) {
  tell(text, value.loss);
  tell(text, value.max);
  tell(text, value.log_sum);
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const nn::CrossEntropyOptions& value) {
  tell(text, value.weight);
  text += fmt::format(" reduction {}", static_cast<int>(value.reduction));
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const KthvalueOptions& value) {
  if (value.keepdim) text += " keepdim";
}
void tell([[maybe_unused]] std::string& text, [[maybe_unused]] const nn::EmbeddingBackwardOptions& value) {
  if (value.scale_by_frequency) text += " scale_by_frequency";
}
std::string tell_addcdiv_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const AddcOptions*>(a[4]));
  return text;
}
std::string tell_addcmul_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const AddcOptions*>(a[4]));
  return text;
}
std::string tell_cumsum_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const CumsumOptions*>(a[3]));
  return text;
}
std::string tell_sort_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Sorted*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const SortOptions*>(a[3]));
  return text;
}
std::string tell_linalg_matmul_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *(*static_cast<const linalg::MatrixOperand*>(a[2])).tensor());
  tell(text, *static_cast<const linalg::MatmulOptions*>(a[3]));
  return text;
}
std::string tell_attention_flex_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const attention::FlexResult*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const attention::FlexOptions*>(a[4]));
  return text;
}
std::string tell_fill_(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const FillOptions*>(a[2]));
  return text;
}
std::string tell_cat_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const TensorList*>(a[1]));
  tell(text, *static_cast<const CatOptions*>(a[3]));
  return text;
}
std::string tell_sum_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const ReduceOptions*>(a[2]));
  return text;
}
std::string tell_nn_softmax_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  return text;
}
std::string tell_copy_(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const CopyOptions*>(a[2]));
  return text;
}
std::string tell_map_out(const void* const* a) {
  std::string text;
  tell_all(text, *static_cast<const TensorList*>(a[0]));
  tell(text, *static_cast<const ExprFunction*>(a[1]));
  tell_all(text, *static_cast<const TensorList*>(a[2]));
  tell(text, *static_cast<const MapOptions*>(a[3]));
  return text;
}
std::string tell_prod_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const ReduceOptions*>(a[2]));
  return text;
}
std::string tell_amin_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const ReduceOptions*>(a[2]));
  return text;
}
std::string tell_amax_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const ReduceOptions*>(a[2]));
  return text;
}
std::string tell_mean_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const ReduceOptions*>(a[2]));
  return text;
}
std::string tell_nn_log_softmax_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  return text;
}
std::string tell_topk_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Sorted*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const TopkOptions*>(a[4]));
  return text;
}
std::string tell_nonzero_static_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const NonzeroStaticOptions*>(a[3]));
  return text;
}
std::string tell_group_by_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Groups*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const GroupOptions*>(a[3]));
  return text;
}
std::string tell_gather_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  return text;
}
std::string tell_scatter_reduce_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const Tensor*>(a[4]));
  tell(text, *static_cast<const ScatterOptions*>(a[5]));
  return text;
}
std::string tell_index_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const TensorList*>(a[2]));
  return text;
}
std::string tell_index_put_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const TensorList*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const IndexPutOptions*>(a[4]));
  return text;
}
std::string tell_segment_reduce_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const SegmentOptions*>(a[3]));
  return text;
}
std::string tell_sparse_spmm_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const sparse::Csr*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const sparse::SpmmOptions*>(a[3]));
  return text;
}
std::string tell_sparse_matmul_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const sparse::SemiStructured*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const linalg::MatmulOptions*>(a[3]));
  return text;
}
std::string tell_linalg_eigh_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const linalg::EighStatus*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const linalg::EighOptions*>(a[4]));
  return text;
}
std::string tell_uniform_(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const UniformOptions*>(a[1]));
  return text;
}
std::string tell_normal_(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const NormalOptions*>(a[1]));
  return text;
}
std::string tell_optim_sgd_(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const TensorList*>(a[0]));
  tell(text, *static_cast<const TensorList*>(a[1]));
  tell(text, *static_cast<const TensorList*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const optim::SGDOptions*>(a[4]));
  tell(text, *static_cast<const optim::StepOptions*>(a[5]));
  return text;
}
std::string tell_optim_adam_(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const TensorList*>(a[0]));
  tell(text, *static_cast<const TensorList*>(a[1]));
  tell(text, *static_cast<const TensorList*>(a[2]));
  tell(text, *static_cast<const TensorList*>(a[3]));
  tell(text, *static_cast<const TensorList*>(a[4]));
  tell(text, *static_cast<const Tensor*>(a[5]));
  tell(text, *static_cast<const optim::AdamOptions*>(a[6]));
  tell(text, *static_cast<const optim::StepOptions*>(a[7]));
  return text;
}
std::string tell_optim_adamw_(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const TensorList*>(a[0]));
  tell(text, *static_cast<const TensorList*>(a[1]));
  tell(text, *static_cast<const TensorList*>(a[2]));
  tell(text, *static_cast<const TensorList*>(a[3]));
  tell(text, *static_cast<const TensorList*>(a[4]));
  tell(text, *static_cast<const Tensor*>(a[5]));
  tell(text, *static_cast<const optim::AdamWOptions*>(a[6]));
  tell(text, *static_cast<const optim::StepOptions*>(a[7]));
  return text;
}
std::string tell_optim_adagrad_(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const TensorList*>(a[0]));
  tell(text, *static_cast<const TensorList*>(a[1]));
  tell(text, *static_cast<const TensorList*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const optim::AdagradOptions*>(a[4]));
  tell(text, *static_cast<const optim::StepOptions*>(a[5]));
  return text;
}
std::string tell_optim_rmsprop_(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const TensorList*>(a[0]));
  tell(text, *static_cast<const TensorList*>(a[1]));
  tell(text, *static_cast<const TensorList*>(a[2]));
  tell(text, *static_cast<const TensorList*>(a[3]));
  tell(text, *static_cast<const TensorList*>(a[4]));
  tell(text, *static_cast<const Tensor*>(a[5]));
  tell(text, *static_cast<const optim::RMSpropOptions*>(a[6]));
  tell(text, *static_cast<const optim::StepOptions*>(a[7]));
  return text;
}
std::string tell_reduce_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  text += fmt::format(" op {}", static_cast<int>(*static_cast<const Reduce*>(a[1])));
  tell(text, *static_cast<const ExprFunction*>(a[2]));
  tell_all(text, *static_cast<const TensorList*>(a[3]));
  tell(text, *static_cast<const ReduceOptions*>(a[4]));
  return text;
}
std::string tell_linalg_matmul_function_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *(*static_cast<const linalg::MatrixOperand*>(a[2])).tensor());
  tell(text, *static_cast<const ExprFunction*>(a[3]));
  tell_all(text, *static_cast<const TensorList*>(a[4]));
  tell(text, *static_cast<const linalg::MatmulOptions*>(a[5]));
  return text;
}
std::string tell_selective_scan_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const SelectiveScanResult*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const Tensor*>(a[4]));
  tell(text, *static_cast<const Tensor*>(a[5]));
  tell(text, *static_cast<const SelectiveScanOptions*>(a[6]));
  return text;
}
std::string tell_selective_scan_backward_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const SelectiveScanGradients*>(a[0]));
  tell(text, *static_cast<const SelectiveScanResult*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const Tensor*>(a[4]));
  tell(text, *static_cast<const Tensor*>(a[5]));
  tell(text, *static_cast<const Tensor*>(a[6]));
  tell(text, *static_cast<const SelectiveScanOptions*>(a[7]));
  return text;
}
std::string tell_nn_softmax_backward_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  return text;
}
std::string tell_nn_log_softmax_backward_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  return text;
}
std::string tell_nn_layer_norm_backward_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const nn::LayerNormGradients*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const Tensor*>(a[4]));
  tell(text, *static_cast<const Tensor*>(a[5]));
  tell(text, *static_cast<const nn::NormOptions*>(a[6]));
  return text;
}
std::string tell_nn_rms_norm_backward_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const nn::RmsNormGradients*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const Tensor*>(a[4]));
  tell(text, *static_cast<const nn::NormOptions*>(a[5]));
  return text;
}
std::string tell_rowwise_out(const void* const* a) {
  std::string text;
  tell_all(text, *static_cast<const TensorList*>(a[0]));
  tell(text, *static_cast<const RowFunction*>(a[1]));
  tell_all(text, *static_cast<const TensorList*>(a[2]));
  tell(text, *static_cast<const RowwiseOptions*>(a[3]));
  return text;
}
std::string tell_nn_layer_norm_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const nn::LayerNormResult*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const nn::NormOptions*>(a[4]));
  return text;
}
std::string tell_nn_rms_norm_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const nn::RmsNormResult*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const nn::NormOptions*>(a[3]));
  return text;
}
std::string tell_nn_cross_entropy_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const nn::CrossEntropyResult*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const nn::CrossEntropyOptions*>(a[3]));
  return text;
}
std::string tell_nn_cross_entropy_backward_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const Tensor*>(a[3]));
  tell(text, *static_cast<const nn::CrossEntropyResult*>(a[4]));
  tell(text, *static_cast<const nn::CrossEntropyOptions*>(a[5]));
  return text;
}
std::string tell_kthvalue_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Sorted*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const KthvalueOptions*>(a[4]));
  return text;
}
std::string tell_nn_embedding_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  return text;
}
std::string tell_nn_embedding_backward_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const Tensor*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const nn::EmbeddingBackwardOptions*>(a[4]));
  return text;
}
std::string tell_linalg_eigvalsh_out(const void* const* a) {
  std::string text;
  tell(text, *static_cast<const Tensor*>(a[0]));
  tell(text, *static_cast<const linalg::EighStatus*>(a[1]));
  tell(text, *static_cast<const Tensor*>(a[2]));
  tell(text, *static_cast<const linalg::EighOptions*>(a[3]));
  return text;
}
clutch_status_t call_addcdiv_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_addcdiv_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lend(lent, *static_cast<const AddcOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_addcmul_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_addcmul_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lend(lent, *static_cast<const AddcOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_cumsum_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_cumsum_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const int*>(a[2]), lend(lent, *static_cast<const CumsumOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_sort_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_sort_out)>(function)(lend(lent, *static_cast<const Sorted*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const int*>(a[2]), lend(lent, *static_cast<const SortOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_linalg_matmul_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_linalg_matmul_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const linalg::MatrixOperand*>(a[2])->tensor()), lend(lent, *static_cast<const linalg::MatmulOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_attention_flex_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_attention_flex_out)>(function)(lend(lent, *static_cast<const attention::FlexResult*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lend(lent, *static_cast<const attention::FlexOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_fill_(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_fill_)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), *static_cast<const double*>(a[1]), lend(lent, *static_cast<const FillOptions*>(a[2])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_cat_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_cat_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.list(*static_cast<const TensorList*>(a[1])), static_cast<const TensorList*>(a[1])->size(), *static_cast<const int*>(a[2]), lend(lent, *static_cast<const CatOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_sum_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_sum_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lend(lent, *static_cast<const ReduceOptions*>(a[2])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_nn_softmax_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_softmax_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const int*>(a[2]), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_copy_(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_copy_)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lend(lent, *static_cast<const CopyOptions*>(a[2])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_map_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_map_out)>(function)(lent.list(*static_cast<const TensorList*>(a[0])), static_cast<const TensorList*>(a[0])->size(), lent.object<clutch_expr_function_t>(*static_cast<const ExprFunction*>(a[1])), lent.list(*static_cast<const TensorList*>(a[2])), static_cast<const TensorList*>(a[2])->size(), lend(lent, *static_cast<const MapOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_prod_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_prod_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lend(lent, *static_cast<const ReduceOptions*>(a[2])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_amin_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_amin_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lend(lent, *static_cast<const ReduceOptions*>(a[2])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_amax_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_amax_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lend(lent, *static_cast<const ReduceOptions*>(a[2])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_mean_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_mean_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lend(lent, *static_cast<const ReduceOptions*>(a[2])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_nn_log_softmax_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_log_softmax_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const int*>(a[2]), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_topk_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_topk_out)>(function)(lend(lent, *static_cast<const Sorted*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const std::int64_t*>(a[2]), *static_cast<const int*>(a[3]), lend(lent, *static_cast<const TopkOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_nonzero_static_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nonzero_static_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const std::int64_t*>(a[2]), lend(lent, *static_cast<const NonzeroStaticOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_group_by_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_group_by_out)>(function)(lend(lent, *static_cast<const Groups*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const std::int64_t*>(a[2]), lend(lent, *static_cast<const GroupOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_gather_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_gather_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const int*>(a[2]), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_scatter_reduce_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_scatter_reduce_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const int*>(a[2]), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[4])), lend(lent, *static_cast<const ScatterOptions*>(a[5])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[6])));
}
clutch_status_t call_index_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_index_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.list(*static_cast<const TensorList*>(a[2])), static_cast<const TensorList*>(a[2])->size(), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_index_put_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_index_put_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.list(*static_cast<const TensorList*>(a[2])), static_cast<const TensorList*>(a[2])->size(), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lend(lent, *static_cast<const IndexPutOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_segment_reduce_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_segment_reduce_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lend(lent, *static_cast<const SegmentOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_sparse_spmm_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_sparse_spmm_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lend(lent, *static_cast<const sparse::Csr*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lend(lent, *static_cast<const sparse::SpmmOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_sparse_matmul_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_sparse_matmul_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_sparse_semi_structured_t>(*static_cast<const sparse::SemiStructured*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lend(lent, *static_cast<const linalg::MatmulOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_linalg_eigh_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_linalg_eigh_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lend(lent, *static_cast<const linalg::EighStatus*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lend(lent, *static_cast<const linalg::EighOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_uniform_(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_uniform_)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lend(lent, *static_cast<const UniformOptions*>(a[1])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[2])));
}
clutch_status_t call_normal_(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_normal_)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lend(lent, *static_cast<const NormalOptions*>(a[1])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[2])));
}
clutch_status_t call_optim_sgd_(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_optim_sgd_)>(function)(lent.list(*static_cast<const TensorList*>(a[0])), static_cast<const TensorList*>(a[0])->size(), lent.list(*static_cast<const TensorList*>(a[1])), static_cast<const TensorList*>(a[1])->size(), lent.list(*static_cast<const TensorList*>(a[2])), static_cast<const TensorList*>(a[2])->size(), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lend(lent, *static_cast<const optim::SGDOptions*>(a[4])), lend(lent, *static_cast<const optim::StepOptions*>(a[5])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[6])));
}
clutch_status_t call_optim_adam_(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_optim_adam_)>(function)(lent.list(*static_cast<const TensorList*>(a[0])), static_cast<const TensorList*>(a[0])->size(), lent.list(*static_cast<const TensorList*>(a[1])), static_cast<const TensorList*>(a[1])->size(), lent.list(*static_cast<const TensorList*>(a[2])), static_cast<const TensorList*>(a[2])->size(), lent.list(*static_cast<const TensorList*>(a[3])), static_cast<const TensorList*>(a[3])->size(), lent.list(*static_cast<const TensorList*>(a[4])), static_cast<const TensorList*>(a[4])->size(), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[5])), lend(lent, *static_cast<const optim::AdamOptions*>(a[6])), lend(lent, *static_cast<const optim::StepOptions*>(a[7])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[8])));
}
clutch_status_t call_optim_adamw_(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_optim_adamw_)>(function)(lent.list(*static_cast<const TensorList*>(a[0])), static_cast<const TensorList*>(a[0])->size(), lent.list(*static_cast<const TensorList*>(a[1])), static_cast<const TensorList*>(a[1])->size(), lent.list(*static_cast<const TensorList*>(a[2])), static_cast<const TensorList*>(a[2])->size(), lent.list(*static_cast<const TensorList*>(a[3])), static_cast<const TensorList*>(a[3])->size(), lent.list(*static_cast<const TensorList*>(a[4])), static_cast<const TensorList*>(a[4])->size(), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[5])), lend(lent, *static_cast<const optim::AdamWOptions*>(a[6])), lend(lent, *static_cast<const optim::StepOptions*>(a[7])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[8])));
}
clutch_status_t call_optim_adagrad_(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_optim_adagrad_)>(function)(lent.list(*static_cast<const TensorList*>(a[0])), static_cast<const TensorList*>(a[0])->size(), lent.list(*static_cast<const TensorList*>(a[1])), static_cast<const TensorList*>(a[1])->size(), lent.list(*static_cast<const TensorList*>(a[2])), static_cast<const TensorList*>(a[2])->size(), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lend(lent, *static_cast<const optim::AdagradOptions*>(a[4])), lend(lent, *static_cast<const optim::StepOptions*>(a[5])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[6])));
}
clutch_status_t call_optim_rmsprop_(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_optim_rmsprop_)>(function)(lent.list(*static_cast<const TensorList*>(a[0])), static_cast<const TensorList*>(a[0])->size(), lent.list(*static_cast<const TensorList*>(a[1])), static_cast<const TensorList*>(a[1])->size(), lent.list(*static_cast<const TensorList*>(a[2])), static_cast<const TensorList*>(a[2])->size(), lent.list(*static_cast<const TensorList*>(a[3])), static_cast<const TensorList*>(a[3])->size(), lent.list(*static_cast<const TensorList*>(a[4])), static_cast<const TensorList*>(a[4])->size(), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[5])), lend(lent, *static_cast<const optim::RMSpropOptions*>(a[6])), lend(lent, *static_cast<const optim::StepOptions*>(a[7])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[8])));
}
clutch_status_t call_reduce_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_reduce_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), static_cast<std::int64_t>(*static_cast<const Reduce*>(a[1])), lent.object<clutch_expr_function_t>(*static_cast<const ExprFunction*>(a[2])), lent.list(*static_cast<const TensorList*>(a[3])), static_cast<const TensorList*>(a[3])->size(), lend(lent, *static_cast<const ReduceOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_linalg_matmul_function_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_linalg_matmul_function_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const linalg::MatrixOperand*>(a[2])->tensor()), lent.object<clutch_expr_function_t>(*static_cast<const ExprFunction*>(a[3])), lent.list(*static_cast<const TensorList*>(a[4])), static_cast<const TensorList*>(a[4])->size(), lend(lent, *static_cast<const linalg::MatmulOptions*>(a[5])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[6])));
}
clutch_status_t call_selective_scan_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_selective_scan_out)>(function)(lend(lent, *static_cast<const SelectiveScanResult*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[4])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[5])), lend(lent, *static_cast<const SelectiveScanOptions*>(a[6])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[7])));
}
clutch_status_t call_selective_scan_backward_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_selective_scan_backward_out)>(function)(lend(lent, *static_cast<const SelectiveScanGradients*>(a[0])), lend(lent, *static_cast<const SelectiveScanResult*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[4])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[5])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[6])), lend(lent, *static_cast<const SelectiveScanOptions*>(a[7])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[8])));
}
clutch_status_t call_nn_softmax_backward_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_softmax_backward_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), *static_cast<const int*>(a[3]), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_nn_log_softmax_backward_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_log_softmax_backward_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), *static_cast<const int*>(a[3]), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_nn_layer_norm_backward_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_layer_norm_backward_out)>(function)(lend(lent, *static_cast<const nn::LayerNormGradients*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[4])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[5])), lend(lent, *static_cast<const nn::NormOptions*>(a[6])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[7])));
}
clutch_status_t call_nn_rms_norm_backward_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_rms_norm_backward_out)>(function)(lend(lent, *static_cast<const nn::RmsNormGradients*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[4])), lend(lent, *static_cast<const nn::NormOptions*>(a[5])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[6])));
}
clutch_status_t call_rowwise_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_rowwise_out)>(function)(lent.list(*static_cast<const TensorList*>(a[0])), static_cast<const TensorList*>(a[0])->size(), lent.object<clutch_row_function_t>(*static_cast<const RowFunction*>(a[1])), lent.list(*static_cast<const TensorList*>(a[2])), static_cast<const TensorList*>(a[2])->size(), lend(lent, *static_cast<const RowwiseOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_nn_layer_norm_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_layer_norm_out)>(function)(lend(lent, *static_cast<const nn::LayerNormResult*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lend(lent, *static_cast<const nn::NormOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_nn_rms_norm_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_rms_norm_out)>(function)(lend(lent, *static_cast<const nn::RmsNormResult*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lend(lent, *static_cast<const nn::NormOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_nn_cross_entropy_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_cross_entropy_out)>(function)(lend(lent, *static_cast<const nn::CrossEntropyResult*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lend(lent, *static_cast<const nn::CrossEntropyOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}
clutch_status_t call_nn_cross_entropy_backward_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_cross_entropy_backward_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[3])), lend(lent, *static_cast<const nn::CrossEntropyResult*>(a[4])), lend(lent, *static_cast<const nn::CrossEntropyOptions*>(a[5])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[6])));
}
clutch_status_t call_kthvalue_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_kthvalue_out)>(function)(lend(lent, *static_cast<const Sorted*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), *static_cast<const std::int64_t*>(a[2]), *static_cast<const int*>(a[3]), lend(lent, *static_cast<const KthvalueOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_nn_embedding_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_embedding_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[3])));
}
clutch_status_t call_nn_embedding_backward_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_nn_embedding_backward_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), *static_cast<const std::int64_t*>(a[3]), lend(lent, *static_cast<const nn::EmbeddingBackwardOptions*>(a[4])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[5])));
}
clutch_status_t call_linalg_eigvalsh_out(void (*function)(void), const void* const* a) {
  Lent lent;
  return reinterpret_cast<decltype(&clutch_linalg_eigvalsh_out)>(function)(lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[0])), lend(lent, *static_cast<const linalg::EighStatus*>(a[1])), lent.object<clutch_tensor_t>(*static_cast<const Tensor*>(a[2])), lend(lent, *static_cast<const linalg::EighOptions*>(a[3])), lent.object<clutch_stream_t>(*static_cast<const Stream*>(a[4])));
}

}  // namespace

std::span<const PluginCall> plugin_calls() {
  static constexpr PluginCall kCalls[] = {
      {"addcdiv_out", "addcdiv", call_addcdiv_out, tell_addcdiv_out},
      {"addcmul_out", "addcmul", call_addcmul_out, tell_addcmul_out},
      {"cumsum_out", "cumsum", call_cumsum_out, tell_cumsum_out},
      {"sort_out", "sort", call_sort_out, tell_sort_out},
      {"linalg_matmul_out", "linalg::matmul", call_linalg_matmul_out, tell_linalg_matmul_out},
      {"attention_flex_out", "attention::flex", call_attention_flex_out, tell_attention_flex_out},
      {"fill_", "fill_", call_fill_, tell_fill_},
      {"cat_out", "cat", call_cat_out, tell_cat_out},
      {"sum_out", "sum", call_sum_out, tell_sum_out},
      {"nn_softmax_out", "nn::softmax", call_nn_softmax_out, tell_nn_softmax_out},
      {"copy_", "copy_", call_copy_, tell_copy_},
      {"map_out", "map", call_map_out, tell_map_out},
      {"prod_out", "prod", call_prod_out, tell_prod_out},
      {"amin_out", "amin", call_amin_out, tell_amin_out},
      {"amax_out", "amax", call_amax_out, tell_amax_out},
      {"mean_out", "mean", call_mean_out, tell_mean_out},
      {"nn_log_softmax_out", "nn::log_softmax", call_nn_log_softmax_out, tell_nn_log_softmax_out},
      {"topk_out", "topk", call_topk_out, tell_topk_out},
      {"nonzero_static_out", "nonzero_static", call_nonzero_static_out, tell_nonzero_static_out},
      {"group_by_out", "group_by", call_group_by_out, tell_group_by_out},
      {"gather_out", "gather", call_gather_out, tell_gather_out},
      {"scatter_reduce_out", "scatter_reduce", call_scatter_reduce_out, tell_scatter_reduce_out},
      {"index_out", "index", call_index_out, tell_index_out},
      {"index_put_out", "index_put", call_index_put_out, tell_index_put_out},
      {"segment_reduce_out", "segment_reduce", call_segment_reduce_out, tell_segment_reduce_out},
      {"sparse_spmm_out", "sparse::spmm", call_sparse_spmm_out, tell_sparse_spmm_out},
      {"sparse_matmul_out", "sparse::matmul", call_sparse_matmul_out, tell_sparse_matmul_out},
      {"linalg_eigh_out", "linalg::eigh", call_linalg_eigh_out, tell_linalg_eigh_out},
      {"uniform_", "uniform_", call_uniform_, tell_uniform_},
      {"normal_", "normal_", call_normal_, tell_normal_},
      {"optim_sgd_", "optim::sgd_", call_optim_sgd_, tell_optim_sgd_},
      {"optim_adam_", "optim::adam_", call_optim_adam_, tell_optim_adam_},
      {"optim_adamw_", "optim::adamw_", call_optim_adamw_, tell_optim_adamw_},
      {"optim_adagrad_", "optim::adagrad_", call_optim_adagrad_, tell_optim_adagrad_},
      {"optim_rmsprop_", "optim::rmsprop_", call_optim_rmsprop_, tell_optim_rmsprop_},
      {"reduce_out", "reduce", call_reduce_out, tell_reduce_out},
      {"linalg_matmul_function_out", "linalg::matmul_function", call_linalg_matmul_function_out, tell_linalg_matmul_function_out},
      {"selective_scan_out", "selective_scan", call_selective_scan_out, tell_selective_scan_out},
      {"selective_scan_backward_out", "selective_scan_backward", call_selective_scan_backward_out, tell_selective_scan_backward_out},
      {"nn_softmax_backward_out", "nn::softmax_backward", call_nn_softmax_backward_out, tell_nn_softmax_backward_out},
      {"nn_log_softmax_backward_out", "nn::log_softmax_backward", call_nn_log_softmax_backward_out, tell_nn_log_softmax_backward_out},
      {"nn_layer_norm_backward_out", "nn::layer_norm_backward", call_nn_layer_norm_backward_out, tell_nn_layer_norm_backward_out},
      {"nn_rms_norm_backward_out", "nn::rms_norm_backward", call_nn_rms_norm_backward_out, tell_nn_rms_norm_backward_out},
      {"rowwise_out", "rowwise", call_rowwise_out, tell_rowwise_out},
      {"nn_layer_norm_out", "nn::layer_norm", call_nn_layer_norm_out, tell_nn_layer_norm_out},
      {"nn_rms_norm_out", "nn::rms_norm", call_nn_rms_norm_out, tell_nn_rms_norm_out},
      {"nn_cross_entropy_out", "nn::cross_entropy", call_nn_cross_entropy_out, tell_nn_cross_entropy_out},
      {"nn_cross_entropy_backward_out", "nn::cross_entropy_backward", call_nn_cross_entropy_backward_out, tell_nn_cross_entropy_backward_out},
      {"kthvalue_out", "kthvalue", call_kthvalue_out, tell_kthvalue_out},
      {"nn_embedding_out", "nn::embedding", call_nn_embedding_out, tell_nn_embedding_out},
      {"nn_embedding_backward_out", "nn::embedding_backward", call_nn_embedding_backward_out, tell_nn_embedding_backward_out},
      {"linalg_eigvalsh_out", "linalg::eigvalsh", call_linalg_eigvalsh_out, tell_linalg_eigvalsh_out},
  };
  return kCalls;
}

}}}  // namespace clutch::v0::capi
