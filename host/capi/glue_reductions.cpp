// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/hand.hpp"

using namespace clutch;        // NOLINT(google-build-using-namespace)
using namespace clutch::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

void clutch_row_function_release(const clutch_row_function_t* row_function) { release(row_function); }
clutch_status_t clutch_reduce_out(const clutch_tensor_t* out, clutch_reduce_t op, const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs,
    size_t inputs_count, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_reduce_out", [&] { clutch::reduce_out(capi::ref(out), capi::enumerator<Reduce>(op, "op"), capi::ref(function), capi::tensors(inputs,
    inputs_count, "inputs"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sum_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sum_out", [&] { clutch::sum_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_mean_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_mean_out", [&] { clutch::mean_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_prod_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_prod_out", [&] { clutch::prod_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_amin_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_amin_out", [&] { clutch::amin_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_amax_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_amax_out", [&] { clutch::amax_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_any_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_any_out", [&] { clutch::any_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_all_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_all_out", [&] { clutch::all_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_argmin_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_argmin_out", [&] { clutch::argmin_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_argmax_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_argmax_out", [&] { clutch::argmax_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_logsumexp_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_logsumexp_out", [&] { clutch::logsumexp_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_count_nonzero_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_count_nonzero_out", [&] { clutch::count_nonzero_out(capi::ref(out), capi::ref(x), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_var_out(const clutch_tensor_t* out, const clutch_tensor_t* x, double correction, const clutch_reduce_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_var_out", [&] { clutch::var_out(capi::ref(out), capi::ref(x), correction, capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_norm_out(const clutch_tensor_t* out, const clutch_tensor_t* x, double p, const clutch_reduce_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_norm_out", [&] { clutch::norm_out(capi::ref(out), capi::ref(x), p, capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sum_to_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_stream_t* stream) {
  return guarded("clutch_sum_to_out", [&] { clutch::sum_to_out(capi::ref(out), capi::ref(x), capi::ref(stream)); });
}
clutch_status_t clutch_row_function_create(const clutch_dtype_t* inputs, size_t inputs_count, const clutch_reduce_t* ops, size_t ops_count,
    const clutch_expr_function_t* const* values, size_t values_count, const clutch_expr_function_t* elements, const clutch_expr_function_t* results,
    clutch_row_function_t** result) {
  return guarded("clutch_row_function_create", [&] { clear(result); *result = new clutch_row_function_t{capi::row_function_create(capi::dtypes(inputs,
    inputs_count, "inputs"), capi::reduces(ops, ops_count, "ops"), capi::functions(values, values_count, "values"), capi::ref(elements),
    capi::ref(results))}; });
}
clutch_status_t clutch_row_function_parse(const char* text, clutch_row_function_t** result) {
  return guarded("clutch_row_function_parse", [&] { clear(result); *result = new clutch_row_function_t{clutch::RowFunction::parse(capi::text(text))}; });
}
clutch_status_t clutch_row_function_text(const clutch_row_function_t* row_function, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_row_function_text", [&] { put_text(need(row_function, "row_function").text(), text, capacity, length); });
}
clutch_status_t clutch_row_function_input_count(const clutch_row_function_t* row_function, int64_t* result) {
  return guarded("clutch_row_function_input_count", [&] { *cleared(result) = need(row_function, "row_function").input_count(); });
}
clutch_status_t clutch_row_function_element_count(const clutch_row_function_t* row_function, int64_t* result) {
  return guarded("clutch_row_function_element_count", [&] { *cleared(result) = need(row_function, "row_function").element_count(); });
}
clutch_status_t clutch_row_function_result_count(const clutch_row_function_t* row_function, int64_t* result) {
  return guarded("clutch_row_function_result_count", [&] { *cleared(result) = need(row_function, "row_function").result_count(); });
}
clutch_status_t clutch_row_function_param_count(const clutch_row_function_t* row_function, int64_t* result) {
  return guarded("clutch_row_function_param_count", [&] { *cleared(result) = need(row_function, "row_function").param_count(); });
}
clutch_status_t clutch_row_function_param_value(const clutch_row_function_t* row_function, int64_t i, double* result) {
  return guarded("clutch_row_function_param_value", [&] { *cleared(result) = need(row_function, "row_function").param_value(capi::narrow<int>(i, "i")); });
}
clutch_status_t clutch_row_function_with_params(const clutch_row_function_t* row_function, const double* values, size_t values_count,
    clutch_row_function_t** result) {
  return guarded("clutch_row_function_with_params", [&] { clear(result); *result = new clutch_row_function_t{need(row_function,
    "row_function").with_params(capi::f64s(values, values_count, "values"))}; });
}
clutch_status_t clutch_rowwise_out(const clutch_tensor_t* const* outputs, size_t outputs_count, const clutch_row_function_t* function,
    const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_rowwise_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_rowwise_out", [&] { clutch::rowwise_out(capi::tensors(outputs, outputs_count, "outputs"), capi::ref(function), capi::tensors(inputs,
    inputs_count, "inputs"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_softmax_out(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim, const clutch_stream_t* stream) {
  return guarded("clutch_nn_softmax_out", [&] { clutch::nn::softmax_out(capi::ref(out), capi::ref(x), capi::narrow<int>(dim, "dim"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_log_softmax_out(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim, const clutch_stream_t* stream) {
  return guarded("clutch_nn_log_softmax_out", [&] { clutch::nn::log_softmax_out(capi::ref(out), capi::ref(x), capi::narrow<int>(dim, "dim"),
    capi::ref(stream)); });
}
clutch_status_t clutch_nn_softmax_backward_out(const clutch_tensor_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* y, int64_t dim,
    const clutch_stream_t* stream) {
  return guarded("clutch_nn_softmax_backward_out", [&] { clutch::nn::softmax_backward_out(capi::ref(out), capi::ref(grad), capi::ref(y), capi::narrow<int>(dim,
    "dim"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_log_softmax_backward_out(const clutch_tensor_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* y, int64_t dim,
    const clutch_stream_t* stream) {
  return guarded("clutch_nn_log_softmax_backward_out", [&] { clutch::nn::log_softmax_backward_out(capi::ref(out), capi::ref(grad), capi::ref(y),
    capi::narrow<int>(dim, "dim"), capi::ref(stream)); });
}
clutch_status_t clutch_selective_scan_out(const clutch_selective_scan_result_t* out, const clutch_tensor_t* x, const clutch_tensor_t* delta,
    const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_tensor_t* c, const clutch_selective_scan_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_selective_scan_out", [&] { clutch::selective_scan_out(capi::read(out, "out"), capi::ref(x), capi::ref(delta), capi::ref(a),
    capi::ref(b), capi::ref(c), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_selective_scan_backward_out(const clutch_selective_scan_gradients_t* out, const clutch_selective_scan_result_t* grad,
    const clutch_tensor_t* x, const clutch_tensor_t* delta, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_tensor_t* c,
    const clutch_selective_scan_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_selective_scan_backward_out", [&] { clutch::selective_scan_backward_out(capi::read(out, "out"), capi::read(grad, "grad"), capi::ref(x),
    capi::ref(delta), capi::ref(a), capi::ref(b), capi::ref(c), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_layer_norm_out(const clutch_nn_layer_norm_result_t* out, const clutch_tensor_t* x, const clutch_tensor_t* weight,
    const clutch_tensor_t* bias, const clutch_nn_norm_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_nn_layer_norm_out", [&] { clutch::nn::layer_norm_out(capi::read(out, "out"), capi::ref(x), capi::ref(weight), capi::ref(bias),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_layer_norm_backward_out(const clutch_nn_layer_norm_gradients_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* x,
    const clutch_tensor_t* mean, const clutch_tensor_t* rstd, const clutch_tensor_t* weight, const clutch_nn_norm_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_nn_layer_norm_backward_out", [&] { clutch::nn::layer_norm_backward_out(capi::read(out, "out"), capi::ref(grad), capi::ref(x),
    capi::ref(mean), capi::ref(rstd), capi::ref(weight), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_rms_norm_out(const clutch_nn_rms_norm_result_t* out, const clutch_tensor_t* x, const clutch_tensor_t* weight,
    const clutch_nn_norm_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_nn_rms_norm_out", [&] { clutch::nn::rms_norm_out(capi::read(out, "out"), capi::ref(x), capi::ref(weight), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_rms_norm_backward_out(const clutch_nn_rms_norm_gradients_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* x,
    const clutch_tensor_t* rrms, const clutch_tensor_t* weight, const clutch_nn_norm_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_nn_rms_norm_backward_out", [&] { clutch::nn::rms_norm_backward_out(capi::read(out, "out"), capi::ref(grad), capi::ref(x),
    capi::ref(rrms), capi::ref(weight), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_cross_entropy_out(const clutch_nn_cross_entropy_result_t* out, const clutch_tensor_t* logits, const clutch_tensor_t* target,
    const clutch_nn_cross_entropy_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_nn_cross_entropy_out", [&] { clutch::nn::cross_entropy_out(capi::read(out, "out"), capi::ref(logits), capi::ref(target),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_cross_entropy_backward_out(const clutch_tensor_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* logits,
    const clutch_tensor_t* target, const clutch_nn_cross_entropy_result_t* result, const clutch_nn_cross_entropy_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_nn_cross_entropy_backward_out", [&] { clutch::nn::cross_entropy_backward_out(capi::ref(out), capi::ref(grad), capi::ref(logits),
    capi::ref(target), capi::read(result, "result"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_nn_embedding_out(const clutch_tensor_t* out, const clutch_tensor_t* weight, const clutch_tensor_t* index,
    const clutch_stream_t* stream) {
  return guarded("clutch_nn_embedding_out", [&] { clutch::nn::embedding_out(capi::ref(out), capi::ref(weight), capi::ref(index), capi::ref(stream)); });
}
clutch_status_t clutch_nn_embedding_backward_out(const clutch_tensor_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* index, int64_t rows,
    const clutch_nn_embedding_backward_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_nn_embedding_backward_out", [&] { clutch::nn::embedding_backward_out(capi::ref(out), capi::ref(grad), capi::ref(index), rows,
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sort_out(const clutch_sorted_t* out, const clutch_tensor_t* x, int64_t dim, const clutch_sort_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_sort_out", [&] { clutch::sort_out(capi::read(out, "out"), capi::ref(x), capi::narrow<int>(dim, "dim"), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_argsort_out(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim, const clutch_sort_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_argsort_out", [&] { clutch::argsort_out(capi::ref(out), capi::ref(x), capi::narrow<int>(dim, "dim"), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_topk_out(const clutch_sorted_t* out, const clutch_tensor_t* x, int64_t k, int64_t dim, const clutch_topk_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_topk_out", [&] { clutch::topk_out(capi::read(out, "out"), capi::ref(x), k, capi::narrow<int>(dim, "dim"), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_kthvalue_out(const clutch_sorted_t* out, const clutch_tensor_t* x, int64_t k, int64_t dim, const clutch_kthvalue_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_kthvalue_out", [&] { clutch::kthvalue_out(capi::read(out, "out"), capi::ref(x), k, capi::narrow<int>(dim, "dim"), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_unique(const clutch_tensor_t* x, const clutch_unique_options_t* options, const clutch_stream_t* stream, clutch_unique_t* result) {
  return guarded("clutch_unique", [&] { write(clutch::unique(capi::ref(x), capi::read(options, "options"), capi::ref(stream)), result, "result"); });
}
clutch_status_t clutch_unique_consecutive(const clutch_tensor_t* x, const clutch_unique_options_t* options, const clutch_stream_t* stream,
    clutch_unique_t* result) {
  return guarded("clutch_unique_consecutive", [&] { write(clutch::unique_consecutive(capi::ref(x), capi::read(options, "options"), capi::ref(stream)), result,
    "result"); });
}
clutch_status_t clutch_nonzero(const clutch_tensor_t* x, const clutch_nonzero_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_nonzero", [&] { clear(result); *result = new clutch_tensor_t{clutch::nonzero(capi::ref(x), capi::read(options, "options"),
    capi::ref(stream))}; });
}
clutch_status_t clutch_nonzero_static_out(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t size, const clutch_nonzero_static_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_nonzero_static_out", [&] { clutch::nonzero_static_out(capi::ref(out), capi::ref(x), size, capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_masked_select(const clutch_tensor_t* x, const clutch_tensor_t* mask, const clutch_nonzero_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_masked_select", [&] { clear(result); *result = new clutch_tensor_t{clutch::masked_select(capi::ref(x), capi::ref(mask),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_index_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_tensor_t* const* indices, size_t indices_count,
    const clutch_stream_t* stream) {
  return guarded("clutch_index_out", [&] { clutch::index_out(capi::ref(out), capi::ref(x), capi::tensors(indices, indices_count, "indices"),
    capi::ref(stream)); });
}
clutch_status_t clutch_index_put_out(const clutch_tensor_t* out, const clutch_tensor_t* self, const clutch_tensor_t* const* indices, size_t indices_count,
    const clutch_tensor_t* values, const clutch_index_put_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_index_put_out", [&] { clutch::index_put_out(capi::ref(out), capi::ref(self), capi::tensors(indices, indices_count, "indices"),
    capi::ref(values), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_index_put_(const clutch_tensor_t* self, const clutch_tensor_t* const* indices, size_t indices_count, const clutch_tensor_t* values,
    const clutch_index_put_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_index_put_", [&] { clutch::index_put_(capi::ref(self), capi::tensors(indices, indices_count, "indices"), capi::ref(values),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_gather_out(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim, const clutch_tensor_t* index,
    const clutch_stream_t* stream) {
  return guarded("clutch_gather_out", [&] { clutch::gather_out(capi::ref(out), capi::ref(x), capi::narrow<int>(dim, "dim"), capi::ref(index),
    capi::ref(stream)); });
}
clutch_status_t clutch_gather_backward_out(const clutch_tensor_t* out, const clutch_tensor_t* grad, int64_t dim, const clutch_tensor_t* index,
    const clutch_stream_t* stream) {
  return guarded("clutch_gather_backward_out", [&] { clutch::gather_backward_out(capi::ref(out), capi::ref(grad), capi::narrow<int>(dim, "dim"),
    capi::ref(index), capi::ref(stream)); });
}
clutch_status_t clutch_index_select_out(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim, const clutch_tensor_t* index,
    const clutch_stream_t* stream) {
  return guarded("clutch_index_select_out", [&] { clutch::index_select_out(capi::ref(out), capi::ref(x), capi::narrow<int>(dim, "dim"), capi::ref(index),
    capi::ref(stream)); });
}
clutch_status_t clutch_scatter_reduce_out(const clutch_tensor_t* out, const clutch_tensor_t* self, int64_t dim, const clutch_tensor_t* index,
    const clutch_tensor_t* src, const clutch_scatter_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_scatter_reduce_out", [&] { clutch::scatter_reduce_out(capi::ref(out), capi::ref(self), capi::narrow<int>(dim, "dim"), capi::ref(index),
    capi::ref(src), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_scatter_reduce_(const clutch_tensor_t* self, int64_t dim, const clutch_tensor_t* index, const clutch_tensor_t* src,
    const clutch_scatter_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_scatter_reduce_", [&] { clutch::scatter_reduce_(capi::ref(self), capi::narrow<int>(dim, "dim"), capi::ref(index), capi::ref(src),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_scatter_reduce_backward_out(const clutch_scatter_gradients_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* result,
    const clutch_tensor_t* self, int64_t dim, const clutch_tensor_t* index, const clutch_tensor_t* src, const clutch_scatter_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_scatter_reduce_backward_out", [&] { clutch::scatter_reduce_backward_out(capi::read(out, "out"), capi::ref(grad), capi::ref(result),
    capi::ref(self), capi::narrow<int>(dim, "dim"), capi::ref(index), capi::ref(src), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_segment_reduce_out(const clutch_tensor_t* out, const clutch_tensor_t* data, const clutch_tensor_t* offsets,
    const clutch_segment_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_segment_reduce_out", [&] { clutch::segment_reduce_out(capi::ref(out), capi::ref(data), capi::ref(offsets), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_segment_reduce_backward_out(const clutch_tensor_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* result,
    const clutch_tensor_t* data, const clutch_tensor_t* offsets, const clutch_segment_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_segment_reduce_backward_out", [&] { clutch::segment_reduce_backward_out(capi::ref(out), capi::ref(grad), capi::ref(result),
    capi::ref(data), capi::ref(offsets), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_group_by_out(const clutch_groups_t* out, const clutch_tensor_t* index, int64_t groups, const clutch_group_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_group_by_out", [&] { clutch::group_by_out(capi::read(out, "out"), capi::ref(index), groups, capi::read(options, "options"),
    capi::ref(stream)); });
}

}  // extern "C"
