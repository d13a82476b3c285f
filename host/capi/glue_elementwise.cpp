// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/hand.hpp"

using namespace clutch;        // NOLINT(google-build-using-namespace)
using namespace clutch::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

void clutch_expr_function_release(const clutch_expr_function_t* expr_function) { release(expr_function); }
clutch_status_t clutch_expr_function_parse(const char* text, clutch_expr_function_t** result) {
  return guarded("clutch_expr_function_parse", [&] { clear(result); *result = new clutch_expr_function_t{clutch::ExprFunction::parse(capi::text(text))}; });
}
clutch_status_t clutch_expr_function_text(const clutch_expr_function_t* expr_function, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_expr_function_text", [&] { put_text(need(expr_function, "expr_function").text(), text, capacity, length); });
}
clutch_status_t clutch_expr_function_input_count(const clutch_expr_function_t* expr_function, int64_t* result) {
  return guarded("clutch_expr_function_input_count", [&] { *cleared(result) = need(expr_function, "expr_function").input_count(); });
}
clutch_status_t clutch_expr_function_output_count(const clutch_expr_function_t* expr_function, int64_t* result) {
  return guarded("clutch_expr_function_output_count", [&] { *cleared(result) = need(expr_function, "expr_function").output_count(); });
}
clutch_status_t clutch_expr_function_param_count(const clutch_expr_function_t* expr_function, int64_t* result) {
  return guarded("clutch_expr_function_param_count", [&] { *cleared(result) = need(expr_function, "expr_function").param_count(); });
}
clutch_status_t clutch_expr_function_captured_count(const clutch_expr_function_t* expr_function, int64_t* result) {
  return guarded("clutch_expr_function_captured_count", [&] { *cleared(result) = need(expr_function, "expr_function").captured_count(); });
}
clutch_status_t clutch_expr_function_floating_inputs(const clutch_expr_function_t* expr_function, int64_t* result) {
  return guarded("clutch_expr_function_floating_inputs", [&] { *cleared(result) = need(expr_function, "expr_function").floating_inputs(); });
}
clutch_status_t clutch_expr_function_input_dtype(const clutch_expr_function_t* expr_function, int64_t i, clutch_dtype_t* result) {
  return guarded("clutch_expr_function_input_dtype", [&] { *cleared(result) = static_cast<std::int64_t>(need(expr_function,
    "expr_function").input_dtype(capi::narrow<int>(i, "i"))); });
}
clutch_status_t clutch_expr_function_output_dtype(const clutch_expr_function_t* expr_function, int64_t i, clutch_dtype_t* result) {
  return guarded("clutch_expr_function_output_dtype", [&] { *cleared(result) = static_cast<std::int64_t>(need(expr_function,
    "expr_function").output_dtype(capi::narrow<int>(i, "i"))); });
}
clutch_status_t clutch_expr_function_param_value(const clutch_expr_function_t* expr_function, int64_t i, double* result) {
  return guarded("clutch_expr_function_param_value", [&] { *cleared(result) = need(expr_function, "expr_function").param_value(capi::narrow<int>(i, "i")); });
}
clutch_status_t clutch_expr_function_captured_tensor(const clutch_expr_function_t* expr_function, int64_t i, clutch_tensor_t** result) {
  return guarded("clutch_expr_function_captured_tensor", [&] { clear(result); *result = new clutch_tensor_t{need(expr_function,
    "expr_function").captured_tensor(capi::narrow<int>(i, "i"))}; });
}
clutch_status_t clutch_expr_function_with_params(const clutch_expr_function_t* expr_function, const double* values, size_t values_count,
    clutch_expr_function_t** result) {
  return guarded("clutch_expr_function_with_params", [&] { clear(result); *result = new clutch_expr_function_t{need(expr_function,
    "expr_function").with_params(capi::f64s(values, values_count, "values"))}; });
}
clutch_status_t clutch_expr_function_with_captured(const clutch_expr_function_t* expr_function, const clutch_tensor_t* const* tensors, size_t tensors_count,
    clutch_expr_function_t** result) {
  return guarded("clutch_expr_function_with_captured", [&] { clear(result); *result = new clutch_expr_function_t{need(expr_function,
    "expr_function").with_captured(capi::tensors(tensors, tensors_count, "tensors"))}; });
}
clutch_status_t clutch_expr_function_backward(const clutch_expr_function_t* expr_function, clutch_expr_function_t** result) {
  return guarded("clutch_expr_function_backward", [&] { clear(result); *result = new clutch_expr_function_t{need(expr_function,
    "expr_function").backward()}; });
}
clutch_status_t clutch_map_out(const clutch_tensor_t* const* outputs, size_t outputs_count, const clutch_expr_function_t* function,
    const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_map_out", [&] { clutch::map_out(capi::tensors(outputs, outputs_count, "outputs"), capi::ref(function), capi::tensors(inputs,
    inputs_count, "inputs"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_map_dtype(const clutch_expr_function_t* function, int64_t output, const clutch_tensor_t* const* inputs, size_t inputs_count,
    clutch_dtype_t* result) {
  return guarded("clutch_map_dtype", [&] { *cleared(result) = static_cast<std::int64_t>(clutch::map_dtype(capi::ref(function), capi::narrow<int>(output,
    "output"), capi::tensors(inputs, inputs_count, "inputs"))); });
}
clutch_status_t clutch_map_backward_out(const clutch_tensor_t* const* outs, size_t outs_count, const clutch_tensor_t* const* grad_outputs,
    size_t grad_outputs_count, const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
    const clutch_stream_t* stream) {
  return guarded("clutch_map_backward_out", [&] { clutch::map_backward_out(capi::tensors(outs, outs_count, "outs"), capi::tensors(grad_outputs,
    grad_outputs_count, "grad_outputs"), capi::ref(function), capi::tensors(inputs, inputs_count, "inputs"), capi::ref(stream)); });
}
clutch_status_t clutch_captured_backward_out(const clutch_tensor_t* const* outs, size_t outs_count, const clutch_tensor_t* const* grad_outputs,
    size_t grad_outputs_count, const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
    const clutch_stream_t* stream) {
  return guarded("clutch_captured_backward_out", [&] { clutch::captured_backward_out(capi::tensors(outs, outs_count, "outs"), capi::tensors(grad_outputs,
    grad_outputs_count, "grad_outputs"), capi::ref(function), capi::tensors(inputs, inputs_count, "inputs"), capi::ref(stream)); });
}
clutch_status_t clutch_foreach_map_out(const clutch_tensor_t* const* const* outputs, const size_t* outputs_sizes, size_t outputs_count,
    const clutch_expr_function_t* function, const clutch_tensor_t* const* const* inputs, const size_t* inputs_sizes, size_t inputs_count,
    const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_foreach_map_out", [&] { clutch::foreach_map_out(capi::TensorLists(outputs, outputs_sizes, outputs_count, "outputs"),
    capi::ref(function), capi::TensorLists(inputs, inputs_sizes, inputs_count, "inputs"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_addcdiv_out(const clutch_tensor_t* out, const clutch_tensor_t* input, const clutch_tensor_t* tensor1, const clutch_tensor_t* tensor2,
    const clutch_addc_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_addcdiv_out", [&] { clutch::addcdiv_out(capi::ref(out), capi::ref(input), capi::ref(tensor1), capi::ref(tensor2), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_addcmul_out(const clutch_tensor_t* out, const clutch_tensor_t* input, const clutch_tensor_t* tensor1, const clutch_tensor_t* tensor2,
    const clutch_addc_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_addcmul_out", [&] { clutch::addcmul_out(capi::ref(out), capi::ref(input), capi::ref(tensor1), capi::ref(tensor2), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_addcdiv_(const clutch_tensor_t* self, const clutch_tensor_t* tensor1, const clutch_tensor_t* tensor2,
    const clutch_addc_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_addcdiv_", [&] { clutch::addcdiv_(capi::ref(self), capi::ref(tensor1), capi::ref(tensor2), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_addcmul_(const clutch_tensor_t* self, const clutch_tensor_t* tensor1, const clutch_tensor_t* tensor2,
    const clutch_addc_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_addcmul_", [&] { clutch::addcmul_(capi::ref(self), capi::ref(tensor1), capi::ref(tensor2), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_neg_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_neg_out", [&] { clutch::neg_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_conj_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_conj_out", [&] { clutch::conj_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_abs_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_abs_out", [&] { clutch::abs_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sign_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sign_out", [&] { clutch::sign_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_square_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_square_out", [&] { clutch::square_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_reciprocal_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_reciprocal_out", [&] { clutch::reciprocal_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sqrt_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sqrt_out", [&] { clutch::sqrt_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_rsqrt_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_rsqrt_out", [&] { clutch::rsqrt_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_exp_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_exp_out", [&] { clutch::exp_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_exp2_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_exp2_out", [&] { clutch::exp2_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_expm1_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_expm1_out", [&] { clutch::expm1_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_log_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_log_out", [&] { clutch::log_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_log2_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_log2_out", [&] { clutch::log2_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_log1p_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_log1p_out", [&] { clutch::log1p_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_tanh_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_tanh_out", [&] { clutch::tanh_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sigmoid_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sigmoid_out", [&] { clutch::sigmoid_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_erf_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_erf_out", [&] { clutch::erf_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sin_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sin_out", [&] { clutch::sin_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_cos_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_cos_out", [&] { clutch::cos_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_floor_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_floor_out", [&] { clutch::floor_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_ceil_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_ceil_out", [&] { clutch::ceil_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_trunc_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_trunc_out", [&] { clutch::trunc_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_round_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_round_out", [&] { clutch::round_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_relu_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_relu_out", [&] { clutch::relu_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_silu_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_silu_out", [&] { clutch::silu_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_softplus_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_softplus_out", [&] { clutch::softplus_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_not_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_not_out", [&] { clutch::bitwise_not_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_logical_not_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_logical_not_out", [&] { clutch::logical_not_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_isnan_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_isnan_out", [&] { clutch::isnan_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_isinf_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_isinf_out", [&] { clutch::isinf_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_isfinite_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_isfinite_out", [&] { clutch::isfinite_out(capi::ref(out), capi::ref(x), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_neg_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_neg_", [&] { clutch::neg_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_conj_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_conj_", [&] { clutch::conj_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_abs_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_abs_", [&] { clutch::abs_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sign_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sign_", [&] { clutch::sign_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_square_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_square_", [&] { clutch::square_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_reciprocal_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_reciprocal_", [&] { clutch::reciprocal_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sqrt_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sqrt_", [&] { clutch::sqrt_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_rsqrt_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_rsqrt_", [&] { clutch::rsqrt_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_exp_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_exp_", [&] { clutch::exp_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_exp2_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_exp2_", [&] { clutch::exp2_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_expm1_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_expm1_", [&] { clutch::expm1_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_log_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_log_", [&] { clutch::log_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_log2_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_log2_", [&] { clutch::log2_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_log1p_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_log1p_", [&] { clutch::log1p_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_tanh_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_tanh_", [&] { clutch::tanh_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sigmoid_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sigmoid_", [&] { clutch::sigmoid_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_erf_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_erf_", [&] { clutch::erf_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sin_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sin_", [&] { clutch::sin_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_cos_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_cos_", [&] { clutch::cos_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_floor_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_floor_", [&] { clutch::floor_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_ceil_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_ceil_", [&] { clutch::ceil_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_trunc_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_trunc_", [&] { clutch::trunc_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_round_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_round_", [&] { clutch::round_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_relu_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_relu_", [&] { clutch::relu_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_silu_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_silu_", [&] { clutch::silu_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_softplus_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_softplus_", [&] { clutch::softplus_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_not_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_not_", [&] { clutch::bitwise_not_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_logical_not_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_logical_not_", [&] { clutch::logical_not_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_isnan_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_isnan_", [&] { clutch::isnan_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_isinf_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_isinf_", [&] { clutch::isinf_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_isfinite_(const clutch_tensor_t* self, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_isfinite_", [&] { clutch::isfinite_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_add_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_add_out", [&] { clutch::add_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sub_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_sub_out", [&] { clutch::sub_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_mul_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_mul_out", [&] { clutch::mul_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_div_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_div_out", [&] { clutch::div_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_floor_divide_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_floor_divide_out", [&] { clutch::floor_divide_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_trunc_divide_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_trunc_divide_out", [&] { clutch::trunc_divide_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_remainder_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_remainder_out", [&] { clutch::remainder_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_fmod_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_fmod_out", [&] { clutch::fmod_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_pow_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_pow_out", [&] { clutch::pow_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_minimum_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_minimum_out", [&] { clutch::minimum_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_maximum_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_maximum_out", [&] { clutch::maximum_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_eq_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_eq_out", [&] { clutch::eq_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_ne_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_ne_out", [&] { clutch::ne_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_lt_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_lt_out", [&] { clutch::lt_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_le_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_le_out", [&] { clutch::le_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_gt_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_gt_out", [&] { clutch::gt_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_ge_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_ge_out", [&] { clutch::ge_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_and_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_and_out", [&] { clutch::bitwise_and_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_or_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_or_out", [&] { clutch::bitwise_or_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_xor_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_xor_out", [&] { clutch::bitwise_xor_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_logical_and_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_logical_and_out", [&] { clutch::logical_and_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_logical_or_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_logical_or_out", [&] { clutch::logical_or_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_logical_xor_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_logical_xor_out", [&] { clutch::logical_xor_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_add_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_add_", [&] { clutch::add_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sub_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sub_", [&] { clutch::sub_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_mul_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_mul_", [&] { clutch::mul_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_div_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_div_", [&] { clutch::div_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_floor_divide_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_floor_divide_", [&] { clutch::floor_divide_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_trunc_divide_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_trunc_divide_", [&] { clutch::trunc_divide_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_remainder_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_remainder_", [&] { clutch::remainder_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_fmod_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_fmod_", [&] { clutch::fmod_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_pow_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_pow_", [&] { clutch::pow_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_minimum_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_minimum_", [&] { clutch::minimum_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_maximum_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_maximum_", [&] { clutch::maximum_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_eq_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_eq_", [&] { clutch::eq_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_ne_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_ne_", [&] { clutch::ne_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_lt_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_lt_", [&] { clutch::lt_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_le_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_le_", [&] { clutch::le_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_gt_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_gt_", [&] { clutch::gt_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_ge_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_ge_", [&] { clutch::ge_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_and_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_and_", [&] { clutch::bitwise_and_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_or_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_or_", [&] { clutch::bitwise_or_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_xor_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_xor_", [&] { clutch::bitwise_xor_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_logical_and_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_logical_and_", [&] { clutch::logical_and_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_logical_or_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_logical_or_", [&] { clutch::logical_or_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_logical_xor_(const clutch_tensor_t* self, const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_logical_xor_", [&] { clutch::logical_xor_(capi::ref(self), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_add_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_add_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::add(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_sub_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_sub_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::sub(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_mul_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_mul_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::mul(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_div_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_div_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::div(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_floor_divide_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_floor_divide_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::floor_divide(capi::ref(a), capi::number(b),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_trunc_divide_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_trunc_divide_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::trunc_divide(capi::ref(a), capi::number(b),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_remainder_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_remainder_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::remainder(capi::ref(a), capi::number(b),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_fmod_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_fmod_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::fmod(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_pow_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_pow_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::pow(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_minimum_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_minimum_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::minimum(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_maximum_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_maximum_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::maximum(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_eq_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_eq_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::eq(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_ne_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_ne_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::ne(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_lt_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_lt_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::lt(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_le_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_le_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::le(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_gt_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_gt_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::gt(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_ge_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_ge_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::ge(capi::ref(a), capi::number(b), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_bitwise_and_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_bitwise_and_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::bitwise_and(capi::ref(a), capi::number(b),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_bitwise_or_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_bitwise_or_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::bitwise_or(capi::ref(a), capi::number(b),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_bitwise_xor_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_bitwise_xor_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::bitwise_xor(capi::ref(a), capi::number(b),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_logical_and_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_logical_and_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::logical_and(capi::ref(a), capi::number(b),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_logical_or_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_logical_or_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::logical_or(capi::ref(a), capi::number(b),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_logical_xor_number(const clutch_tensor_t* a, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_logical_xor_number", [&] { clear(result); *result = new clutch_tensor_t{clutch::logical_xor(capi::ref(a), capi::number(b),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_add_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_add_number_", [&] { clutch::add_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sub_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sub_number_", [&] { clutch::sub_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_mul_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_mul_number_", [&] { clutch::mul_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_div_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_div_number_", [&] { clutch::div_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_floor_divide_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_floor_divide_number_", [&] { clutch::floor_divide_(capi::ref(self), capi::number(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_trunc_divide_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_trunc_divide_number_", [&] { clutch::trunc_divide_(capi::ref(self), capi::number(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_remainder_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_remainder_number_", [&] { clutch::remainder_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_fmod_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_fmod_number_", [&] { clutch::fmod_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_pow_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_pow_number_", [&] { clutch::pow_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_minimum_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_minimum_number_", [&] { clutch::minimum_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_maximum_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_maximum_number_", [&] { clutch::maximum_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_eq_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_eq_number_", [&] { clutch::eq_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_ne_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_ne_number_", [&] { clutch::ne_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_lt_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_lt_number_", [&] { clutch::lt_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_le_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_le_number_", [&] { clutch::le_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_gt_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_gt_number_", [&] { clutch::gt_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_ge_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_ge_number_", [&] { clutch::ge_(capi::ref(self), capi::number(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_and_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_and_number_", [&] { clutch::bitwise_and_(capi::ref(self), capi::number(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_or_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_or_number_", [&] { clutch::bitwise_or_(capi::ref(self), capi::number(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_bitwise_xor_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_bitwise_xor_number_", [&] { clutch::bitwise_xor_(capi::ref(self), capi::number(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_logical_and_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_logical_and_number_", [&] { clutch::logical_and_(capi::ref(self), capi::number(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_logical_or_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_logical_or_number_", [&] { clutch::logical_or_(capi::ref(self), capi::number(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_logical_xor_number_(const clutch_tensor_t* self, clutch_number_t b, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_logical_xor_number_", [&] { clutch::logical_xor_(capi::ref(self), capi::number(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_add_scaled_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, clutch_number_t alpha,
    const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_add_scaled_out", [&] { clutch::add_scaled_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::number(alpha), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_add_scaled_(const clutch_tensor_t* self, const clutch_tensor_t* b, clutch_number_t alpha, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_add_scaled_", [&] { clutch::add_scaled_(capi::ref(self), capi::ref(b), capi::number(alpha), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_gelu_out(const clutch_tensor_t* out, const clutch_tensor_t* x, clutch_gelu_form_t form, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_gelu_out", [&] { clutch::gelu_out(capi::ref(out), capi::ref(x), capi::enumerator<GeluForm>(form, "form"), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_leaky_relu_out(const clutch_tensor_t* out, const clutch_tensor_t* x, clutch_number_t slope, const clutch_map_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_leaky_relu_out", [&] { clutch::leaky_relu_out(capi::ref(out), capi::ref(x), capi::number(slope), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_clamp_number_out(const clutch_tensor_t* out, const clutch_tensor_t* x, clutch_number_t low, clutch_number_t high,
    const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_clamp_number_out", [&] { clutch::clamp_out(capi::ref(out), capi::ref(x), capi::number(low), capi::number(high), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_clamp_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_tensor_t* low, const clutch_tensor_t* high,
    const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_clamp_out", [&] { clutch::clamp_out(capi::ref(out), capi::ref(x), capi::ref(low), capi::ref(high), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_where_out(const clutch_tensor_t* out, const clutch_tensor_t* condition, const clutch_tensor_t* a, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_where_out", [&] { clutch::where_out(capi::ref(out), capi::ref(condition), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_lerp_number_out(const clutch_tensor_t* out, const clutch_tensor_t* start, const clutch_tensor_t* end, clutch_number_t weight,
    const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_lerp_number_out", [&] { clutch::lerp_out(capi::ref(out), capi::ref(start), capi::ref(end), capi::number(weight), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_lerp_out(const clutch_tensor_t* out, const clutch_tensor_t* start, const clutch_tensor_t* end, const clutch_tensor_t* weight,
    const clutch_map_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_lerp_out", [&] { clutch::lerp_out(capi::ref(out), capi::ref(start), capi::ref(end), capi::ref(weight), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_cat_out(const clutch_tensor_t* out, const clutch_tensor_t* const* tensors, size_t tensors_count, int64_t dim,
    const clutch_cat_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_cat_out", [&] { clutch::cat_out(capi::ref(out), capi::tensors(tensors, tensors_count, "tensors"), capi::narrow<int>(dim, "dim"),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_stack_out(const clutch_tensor_t* out, const clutch_tensor_t* const* tensors, size_t tensors_count, int64_t dim,
    const clutch_cat_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_stack_out", [&] { clutch::stack_out(capi::ref(out), capi::tensors(tensors, tensors_count, "tensors"), capi::narrow<int>(dim, "dim"),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_real(const clutch_tensor_t* x, clutch_tensor_t** result) {
  return guarded("clutch_real", [&] { clear(result); *result = new clutch_tensor_t{clutch::real(capi::ref(x))}; });
}
clutch_status_t clutch_imag(const clutch_tensor_t* x, clutch_tensor_t** result) {
  return guarded("clutch_imag", [&] { clear(result); *result = new clutch_tensor_t{clutch::imag(capi::ref(x))}; });
}
clutch_status_t clutch_view_as_real(const clutch_tensor_t* x, clutch_tensor_t** result) {
  return guarded("clutch_view_as_real", [&] { clear(result); *result = new clutch_tensor_t{clutch::view_as_real(capi::ref(x))}; });
}
clutch_status_t clutch_view_as_complex(const clutch_tensor_t* x, clutch_tensor_t** result) {
  return guarded("clutch_view_as_complex", [&] { clear(result); *result = new clutch_tensor_t{clutch::view_as_complex(capi::ref(x))}; });
}
clutch_status_t clutch_complex_out(const clutch_tensor_t* out, const clutch_tensor_t* re, const clutch_tensor_t* im, const clutch_stream_t* stream) {
  return guarded("clutch_complex_out", [&] { clutch::complex_out(capi::ref(out), capi::ref(re), capi::ref(im), capi::ref(stream)); });
}
clutch_status_t clutch_split(const clutch_tensor_t* tensor, int64_t size, int64_t dim, clutch_tensor_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_split", [&] { put_objects(clutch::split(capi::ref(tensor), size, capi::narrow<int>(dim, "dim")), results, capacity, count); });
}
clutch_status_t clutch_split_sizes(const clutch_tensor_t* tensor, const int64_t* sizes, size_t sizes_count, int64_t dim, clutch_tensor_t** results,
    size_t capacity, size_t* count) {
  return guarded("clutch_split_sizes", [&] { put_objects(clutch::split(capi::ref(tensor), capi::i64s(sizes, sizes_count, "sizes"), capi::narrow<int>(dim,
    "dim")), results, capacity, count); });
}
clutch_status_t clutch_split_copy_out(const clutch_tensor_t* const* outs, size_t outs_count, const clutch_tensor_t* tensor, int64_t dim,
    const clutch_cat_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_split_copy_out", [&] { clutch::split_copy_out(capi::tensors(outs, outs_count, "outs"), capi::ref(tensor), capi::narrow<int>(dim,
    "dim"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_foreach_copy_(const clutch_tensor_t* const* destinations, size_t destinations_count, const clutch_tensor_t* const* sources,
    size_t sources_count, const clutch_cat_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_foreach_copy_", [&] { clutch::foreach_copy_(capi::tensors(destinations, destinations_count, "destinations"), capi::tensors(sources,
    sources_count, "sources"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_cumsum_out(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim, const clutch_cumsum_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_cumsum_out", [&] { clutch::cumsum_out(capi::ref(out), capi::ref(x), capi::narrow<int>(dim, "dim"), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_generator_create(const clutch_device_t* device, uint64_t seed, const clutch_stream_t* stream, clutch_generator_t** result) {
  return guarded("clutch_generator_create", [&] { clear(result); *result = new clutch_generator_t{Generator(capi::ref(device), seed, capi::ref(stream))}; });
}
clutch_status_t clutch_default_generator(const clutch_device_t* device, const clutch_stream_t* stream, clutch_generator_t** result) {
  return guarded("clutch_default_generator", [&] { clear(result); *result = new clutch_generator_t{clutch::default_generator(capi::ref(device),
    capi::ref(stream))}; });
}
clutch_status_t clutch_manual_seed(uint64_t seed, const clutch_device_t* device, const clutch_stream_t* stream) {
  return guarded("clutch_manual_seed", [&] { clutch::manual_seed(seed, capi::ref(device), capi::ref(stream)); });
}
clutch_status_t clutch_generator_device(const clutch_generator_t* generator, clutch_device_t** result) {
  return guarded("clutch_generator_device", [&] { clear(result); *result = new clutch_device_t{need(generator, "generator").device()}; });
}
clutch_status_t clutch_generator_manual_seed(const clutch_generator_t* generator, uint64_t seed, const clutch_stream_t* stream) {
  return guarded("clutch_generator_manual_seed", [&] { need(generator, "generator").manual_seed(seed, capi::ref(stream)); });
}
clutch_status_t clutch_generator_set_state(const clutch_generator_t* generator, const clutch_generator_state_t* state, const clutch_stream_t* stream) {
  return guarded("clutch_generator_set_state", [&] { need(generator, "generator").set_state(capi::read(state, "state"), capi::ref(stream)); });
}
clutch_status_t clutch_generator_state(const clutch_generator_t* generator, const clutch_stream_t* stream, clutch_generator_state_t* result) {
  return guarded("clutch_generator_state", [&] { write(need(generator, "generator").state(capi::ref(stream)), result, "result"); });
}
clutch_status_t clutch_generator_state_tensor(const clutch_generator_t* generator, clutch_tensor_t** result) {
  return guarded("clutch_generator_state_tensor", [&] { clear(result); *result = new clutch_tensor_t{need(generator, "generator").state_tensor()}; });
}
clutch_status_t clutch_uniform_(const clutch_tensor_t* self, const clutch_uniform_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_uniform_", [&] { clutch::uniform_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_normal_(const clutch_tensor_t* self, const clutch_normal_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_normal_", [&] { clutch::normal_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_random_range_(const clutch_tensor_t* self, int64_t from, int64_t to, const clutch_draw_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_random_range_", [&] { clutch::random_(capi::ref(self), from, to, capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_random_(const clutch_tensor_t* self, const clutch_draw_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_random_", [&] { clutch::random_(capi::ref(self), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_bernoulli_(const clutch_tensor_t* self, double p, const clutch_draw_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_bernoulli_", [&] { clutch::bernoulli_(capi::ref(self), p, capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_bernoulli_tensor_(const clutch_tensor_t* self, const clutch_tensor_t* p, const clutch_draw_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_bernoulli_tensor_", [&] { clutch::bernoulli_(capi::ref(self), capi::ref(p), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_exponential_(const clutch_tensor_t* self, double lambda, const clutch_draw_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_exponential_", [&] { clutch::exponential_(capi::ref(self), lambda, capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_randperm(int64_t n, const clutch_permutation_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_randperm", [&] { clear(result); *result = new clutch_tensor_t{clutch::randperm(n, capi::read(options, "options"),
    capi::ref(stream))}; });
}
clutch_status_t clutch_rand(const int64_t* sizes, size_t sizes_count, const clutch_random_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_rand", [&] { clear(result); *result = new clutch_tensor_t{clutch::rand(capi::dims(sizes, sizes_count, "sizes"), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_randn(const int64_t* sizes, size_t sizes_count, const clutch_random_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_randn", [&] { clear(result); *result = new clutch_tensor_t{clutch::randn(capi::dims(sizes, sizes_count, "sizes"), capi::read(options,
    "options"), capi::ref(stream))}; });
}

}  // extern "C"
