// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/hand.hpp"

using namespace clutch;        // NOLINT(google-build-using-namespace)
using namespace clutch::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

void clutch_linalg_packed_matrix_release(const clutch_linalg_packed_matrix_t* packed_matrix) { release(packed_matrix); }
void clutch_sparse_semi_structured_release(const clutch_sparse_semi_structured_t* semi_structured) { release(semi_structured); }
clutch_status_t clutch_linalg_packed_matrix_create(const clutch_tensor_t* b, const clutch_stream_t* stream, clutch_linalg_packed_matrix_t** result) {
  return guarded("clutch_linalg_packed_matrix_create", [&] { clear(result); *result = new clutch_linalg_packed_matrix_t{linalg::PackedMatrix(capi::ref(b),
    capi::ref(stream))}; });
}
clutch_status_t clutch_linalg_packed_matrix_sizes(const clutch_linalg_packed_matrix_t* packed_matrix, int64_t* values, size_t capacity, size_t* count) {
  return guarded("clutch_linalg_packed_matrix_sizes", [&] { put_numbers(need(packed_matrix, "packed_matrix").sizes(), values, capacity, count); });
}
clutch_status_t clutch_linalg_packed_matrix_dtype(const clutch_linalg_packed_matrix_t* packed_matrix, clutch_dtype_t* result) {
  return guarded("clutch_linalg_packed_matrix_dtype", [&] { *cleared(result) = static_cast<std::int64_t>(need(packed_matrix, "packed_matrix").dtype()); });
}
clutch_status_t clutch_linalg_packed_matrix_nbytes(const clutch_linalg_packed_matrix_t* packed_matrix, uint64_t* result) {
  return guarded("clutch_linalg_packed_matrix_nbytes", [&] { *cleared(result) = need(packed_matrix, "packed_matrix").nbytes(); });
}
clutch_status_t clutch_linalg_matmul_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
    const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_matmul_out", [&] { clutch::linalg::matmul_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_linalg_matmul_packed_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_linalg_packed_matrix_t* b,
    const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_matmul_packed_out", [&] { clutch::linalg::matmul_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_linalg_matmul_function_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
    const clutch_expr_function_t* f, const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_linalg_matmul_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_linalg_matmul_function_out", [&] { clutch::linalg::matmul_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::ref(f),
    capi::tensors(inputs, inputs_count, "inputs"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_matmul_packed_function_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_linalg_packed_matrix_t* b,
    const clutch_expr_function_t* f, const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_linalg_matmul_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_linalg_matmul_packed_function_out", [&] { clutch::linalg::matmul_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::ref(f),
    capi::tensors(inputs, inputs_count, "inputs"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_product_dtype(clutch_dtype_t a, clutch_dtype_t b, const char* op, clutch_dtype_t* result) {
  return guarded("clutch_linalg_product_dtype", [&] { *cleared(result) = static_cast<std::int64_t>(clutch::linalg::product_dtype(capi::enumerator<DType>(a,
    "a"), capi::enumerator<DType>(b, "b"), capi::text(op))); });
}
clutch_status_t clutch_linalg_linear_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_tensor_t* weight, const clutch_tensor_t* bias,
    const clutch_linalg_linear_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_linear_out", [&] { clutch::linalg::linear_out(capi::ref(out), capi::ref(x), capi::ref(weight), capi::ref(bias),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_linear_packed_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_linalg_packed_matrix_t* weight,
    const clutch_tensor_t* bias, const clutch_linalg_linear_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_linear_packed_out", [&] { clutch::linalg::linear_out(capi::ref(out), capi::ref(x), capi::ref(weight), capi::ref(bias),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_matmul_backward_out(const clutch_linalg_matmul_gradients_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_linalg_matmul_backward_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_matmul_backward_out", [&] { clutch::linalg::matmul_backward_out(capi::read(out, "out"), capi::ref(grad), capi::ref(a),
    capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_matmul_function_backward_out(const clutch_linalg_matmul_gradients_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_expr_function_t* f, const clutch_tensor_t* const* inputs, size_t inputs_count,
    const clutch_linalg_matmul_backward_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_matmul_function_backward_out", [&] { clutch::linalg::matmul_backward_out(capi::read(out, "out"), capi::ref(grad), capi::ref(a),
    capi::ref(b), capi::ref(f), capi::tensors(inputs, inputs_count, "inputs"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_linear_backward_out(const clutch_linalg_linear_gradients_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* x,
    const clutch_tensor_t* weight, const clutch_tensor_t* bias, const clutch_linalg_linear_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_linear_backward_out", [&] { clutch::linalg::linear_backward_out(capi::read(out, "out"), capi::ref(grad), capi::ref(x),
    capi::ref(weight), capi::ref(bias), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_scaled_matmul_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_tensor_t* scale_a,
    const clutch_tensor_t* scale_b, const clutch_linalg_scaled_matmul_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_scaled_matmul_out", [&] { clutch::linalg::scaled_matmul_out(capi::ref(out), capi::ref(a), capi::ref(b), capi::ref(scale_a),
    capi::ref(scale_b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_scaled_matmul_packed_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_linalg_packed_matrix_t* b,
    const clutch_tensor_t* scale_a, const clutch_tensor_t* scale_b, const clutch_linalg_scaled_matmul_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_scaled_matmul_packed_out", [&] { clutch::linalg::scaled_matmul_out(capi::ref(out), capi::ref(a), capi::ref(b),
    capi::ref(scale_a), capi::ref(scale_b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_quantized_matmul_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_linalg_quantization_t* of_a,
    const clutch_tensor_t* b, const clutch_linalg_quantization_t* of_b, const clutch_linalg_quantized_matmul_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_linalg_quantized_matmul_out", [&] { clutch::linalg::quantized_matmul_out(capi::ref(out), capi::ref(a), capi::read(of_a, "of_a"),
    capi::ref(b), capi::read(of_b, "of_b"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_eigh_out(const clutch_tensor_t* w, const clutch_tensor_t* v, const clutch_linalg_eigh_status_t* status, const clutch_tensor_t* a,
    const clutch_linalg_eigh_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_eigh_out", [&] { clutch::linalg::eigh_out(capi::ref(w), capi::ref(v), capi::read(status, "status"), capi::ref(a),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_eigvalsh_out(const clutch_tensor_t* w, const clutch_linalg_eigh_status_t* status, const clutch_tensor_t* a,
    const clutch_linalg_eigh_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_eigvalsh_out", [&] { clutch::linalg::eigvalsh_out(capi::ref(w), capi::read(status, "status"), capi::ref(a), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_eigh_backward_out(const clutch_linalg_eigh_gradient_t* out, const clutch_tensor_t* grad_w, const clutch_tensor_t* grad_v,
    const clutch_tensor_t* w, const clutch_tensor_t* v, const clutch_linalg_eigh_backward_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_eigh_backward_out", [&] { clutch::linalg::eigh_backward_out(capi::read(out, "out"), capi::ref(grad_w), capi::ref(grad_v),
    capi::ref(w), capi::ref(v), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_linalg_require_gauge(const clutch_tensor_t* gauge, double tolerance, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_require_gauge", [&] { clutch::linalg::require_gauge(capi::ref(gauge), tolerance, capi::ref(stream)); });
}
clutch_status_t clutch_linalg_require_converged(const clutch_linalg_eigh_status_t* status, const clutch_stream_t* stream) {
  return guarded("clutch_linalg_require_converged", [&] { clutch::linalg::require_converged(capi::read(status, "status"), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_prune_2_4_out(const clutch_tensor_t* out, const clutch_tensor_t* w, const clutch_sparse_prune_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_sparse_prune_2_4_out", [&] { clutch::sparse::prune_2_4_out(capi::ref(out), capi::ref(w), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_sparse_mask_2_4_out(const clutch_tensor_t* out, const clutch_tensor_t* w, const clutch_sparse_prune_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_sparse_mask_2_4_out", [&] { clutch::sparse::mask_2_4_out(capi::ref(out), capi::ref(w), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_sparse_apply_mask_out(const clutch_tensor_t* out, const clutch_tensor_t* w, const clutch_tensor_t* mask, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_apply_mask_out", [&] { clutch::sparse::apply_mask_out(capi::ref(out), capi::ref(w), capi::ref(mask), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_to_bitmask_out(const clutch_tensor_t* out, const clutch_tensor_t* mask, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_to_bitmask_out", [&] { clutch::sparse::to_bitmask_out(capi::ref(out), capi::ref(mask), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_from_bitmask_out(const clutch_tensor_t* out, const clutch_tensor_t* bits, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_from_bitmask_out", [&] { clutch::sparse::from_bitmask_out(capi::ref(out), capi::ref(bits), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_is_2_4_out(const clutch_tensor_t* out, const clutch_tensor_t* w, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_is_2_4_out", [&] { clutch::sparse::is_2_4_out(capi::ref(out), capi::ref(w), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_require_2_4(const clutch_tensor_t* w, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_require_2_4", [&] { clutch::sparse::require_2_4(capi::ref(w), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_semi_structured_create(const clutch_tensor_t* values, const clutch_tensor_t* metadata, int64_t k,
    clutch_sparse_semi_structured_t** result) {
  return guarded("clutch_sparse_semi_structured_create",
    [&] { clear(result); *result = new clutch_sparse_semi_structured_t{sparse::SemiStructured(capi::ref(values), capi::ref(metadata), k)}; });
}
clutch_status_t clutch_sparse_compress(const clutch_tensor_t* w, const clutch_sparse_compress_options_t* options, const clutch_stream_t* stream,
    clutch_sparse_semi_structured_t** result) {
  return guarded("clutch_sparse_compress", [&] { clear(result); *result = new clutch_sparse_semi_structured_t{clutch::sparse::compress(capi::ref(w),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_sparse_semi_structured_sizes(const clutch_sparse_semi_structured_t* semi_structured, int64_t* values, size_t capacity, size_t* count) {
  return guarded("clutch_sparse_semi_structured_sizes", [&] { put_numbers(need(semi_structured, "semi_structured").sizes(), values, capacity, count); });
}
clutch_status_t clutch_sparse_semi_structured_dtype(const clutch_sparse_semi_structured_t* semi_structured, clutch_dtype_t* result) {
  return guarded("clutch_sparse_semi_structured_dtype", [&] { *cleared(result) = static_cast<std::int64_t>(need(semi_structured,
    "semi_structured").dtype()); });
}
clutch_status_t clutch_sparse_semi_structured_nbytes(const clutch_sparse_semi_structured_t* semi_structured, uint64_t* result) {
  return guarded("clutch_sparse_semi_structured_nbytes", [&] { *cleared(result) = need(semi_structured, "semi_structured").nbytes(); });
}
clutch_status_t clutch_sparse_semi_structured_values(const clutch_sparse_semi_structured_t* semi_structured, clutch_tensor_t** result) {
  return guarded("clutch_sparse_semi_structured_values", [&] { clear(result); *result = new clutch_tensor_t{need(semi_structured,
    "semi_structured").values()}; });
}
clutch_status_t clutch_sparse_semi_structured_metadata(const clutch_sparse_semi_structured_t* semi_structured, clutch_tensor_t** result) {
  return guarded("clutch_sparse_semi_structured_metadata", [&] { clear(result); *result = new clutch_tensor_t{need(semi_structured,
    "semi_structured").metadata()}; });
}
clutch_status_t clutch_sparse_semi_structured_info(const clutch_sparse_semi_structured_t* semi_structured, clutch_tensor_t** result) {
  return guarded("clutch_sparse_semi_structured_info", [&] { clear(result); *result = new clutch_tensor_t{need(semi_structured, "semi_structured").info()}; });
}
clutch_status_t clutch_sparse_decompress_out(const clutch_tensor_t* out, const clutch_sparse_semi_structured_t* s, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_decompress_out", [&] { clutch::sparse::decompress_out(capi::ref(out), capi::ref(s), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_to_cutlass_out(const clutch_sparse_cutlass_layout_t* out, const clutch_sparse_semi_structured_t* s,
    const clutch_stream_t* stream) {
  return guarded("clutch_sparse_to_cutlass_out", [&] { clutch::sparse::to_cutlass_out(capi::read(out, "out"), capi::ref(s), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_from_cutlass(const clutch_sparse_cutlass_layout_t* layout, const clutch_stream_t* stream,
    clutch_sparse_semi_structured_t** result) {
  return guarded("clutch_sparse_from_cutlass",
    [&] { clear(result); *result = new clutch_sparse_semi_structured_t{clutch::sparse::from_cutlass(capi::read(layout, "layout"), capi::ref(stream))}; });
}
clutch_status_t clutch_sparse_matmul_out(const clutch_tensor_t* out, const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* b,
    const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_matmul_out", [&] { clutch::sparse::matmul_out(capi::ref(out), capi::ref(w), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_sparse_matmul_function_out(const clutch_tensor_t* out, const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* b,
    const clutch_expr_function_t* f, const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_linalg_matmul_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_sparse_matmul_function_out", [&] { clutch::sparse::matmul_out(capi::ref(out), capi::ref(w), capi::ref(b), capi::ref(f),
    capi::tensors(inputs, inputs_count, "inputs"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_matmul_transposed_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_sparse_semi_structured_t* w,
    const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_matmul_transposed_out", [&] { clutch::sparse::matmul_transposed_out(capi::ref(out), capi::ref(a), capi::ref(w),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_matmul_transposed_function_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_sparse_semi_structured_t* w,
    const clutch_expr_function_t* f, const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_linalg_matmul_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_sparse_matmul_transposed_function_out", [&] { clutch::sparse::matmul_transposed_out(capi::ref(out), capi::ref(a), capi::ref(w),
    capi::ref(f), capi::tensors(inputs, inputs_count, "inputs"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_scaled_matmul_out(const clutch_tensor_t* out, const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* b,
    const clutch_tensor_t* scale_w, const clutch_tensor_t* scale_b, const clutch_linalg_scaled_matmul_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_scaled_matmul_out", [&] { clutch::sparse::scaled_matmul_out(capi::ref(out), capi::ref(w), capi::ref(b), capi::ref(scale_w),
    capi::ref(scale_b), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_scaled_matmul_transposed_out(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_sparse_semi_structured_t* w,
    const clutch_tensor_t* scale_a, const clutch_tensor_t* scale_w, const clutch_linalg_scaled_matmul_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_scaled_matmul_transposed_out", [&] { clutch::sparse::scaled_matmul_transposed_out(capi::ref(out), capi::ref(a), capi::ref(w),
    capi::ref(scale_a), capi::ref(scale_w), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_linear_out(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_sparse_semi_structured_t* w,
    const clutch_tensor_t* bias, const clutch_linalg_linear_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_linear_out", [&] { clutch::sparse::linear_out(capi::ref(out), capi::ref(x), capi::ref(w), capi::ref(bias), capi::read(options,
    "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_linear_backward_out(const clutch_linalg_linear_gradients_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* x,
    const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* bias, const clutch_sparse_linear_backward_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_sparse_linear_backward_out", [&] { clutch::sparse::linear_backward_out(capi::read(out, "out"), capi::ref(grad), capi::ref(x),
    capi::ref(w), capi::ref(bias), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_mask_of_out(const clutch_tensor_t* out, const clutch_sparse_semi_structured_t* w, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_mask_of_out", [&] { clutch::sparse::mask_of_out(capi::ref(out), capi::ref(w), capi::ref(stream)); });
}
clutch_status_t clutch_sparse_spmm_out(const clutch_tensor_t* out, const clutch_sparse_csr_t* a, const clutch_tensor_t* b,
    const clutch_sparse_spmm_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_spmm_out", [&] { clutch::sparse::spmm_out(capi::ref(out), capi::read(a, "a"), capi::ref(b), capi::read(options, "options"),
    capi::ref(stream)); });
}
clutch_status_t clutch_sparse_spmm_backward_out(const clutch_sparse_spmm_gradients_t* out, const clutch_tensor_t* grad, const clutch_tensor_t* result,
    const clutch_sparse_csr_t* a, const clutch_tensor_t* b, const clutch_sparse_spmm_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_sparse_spmm_backward_out", [&] { clutch::sparse::spmm_backward_out(capi::read(out, "out"), capi::ref(grad), capi::ref(result),
    capi::read(a, "a"), capi::ref(b), capi::read(options, "options"), capi::ref(stream)); });
}

}  // extern "C"
