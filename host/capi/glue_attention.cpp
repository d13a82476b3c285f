// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/hand.hpp"

using namespace clutch;        // NOLINT(google-build-using-namespace)
using namespace clutch::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

void clutch_attention_mask_mod_release(const clutch_attention_mask_mod_t* mask_mod) { release(mask_mod); }
void clutch_attention_score_mod_release(const clutch_attention_score_mod_t* score_mod) { release(score_mod); }
void clutch_attention_block_mask_release(const clutch_attention_block_mask_t* block_mask) { release(block_mask); }
void clutch_attention_paged_cache_release(const clutch_attention_paged_cache_t* paged_cache) { release(paged_cache); }
void clutch_attention_sdpa_backends_release(const clutch_attention_sdpa_backends_t* sdpa_backends) { release(sdpa_backends); }
clutch_status_t clutch_attention_mask_mod_create(const clutch_expr_function_t* function, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_mask_mod_create",
    [&] { clear(result); *result = new clutch_attention_mask_mod_t{attention::MaskMod(capi::ref(function))}; });
}
clutch_status_t clutch_attention_causal(int64_t offset, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_causal", [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::causal(offset)}; });
}
clutch_status_t clutch_attention_sliding_window(int64_t window, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_sliding_window",
    [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::sliding_window(window)}; });
}
clutch_status_t clutch_attention_prefix_lm(const clutch_tensor_t* prefix, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_prefix_lm",
    [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::prefix_lm(capi::ref(prefix))}; });
}
clutch_status_t clutch_attention_prefix_lm_number(int64_t prefix, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_prefix_lm_number", [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::prefix_lm(prefix)}; });
}
clutch_status_t clutch_attention_document(const clutch_tensor_t* ids, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_document", [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::document(capi::ref(ids))}; });
}
clutch_status_t clutch_attention_dilated(int64_t window, int64_t dilation, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_dilated", [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::dilated(window, dilation)}; });
}
clutch_status_t clutch_attention_causal_lower_right(const clutch_attention_varlen_t* varlen, int64_t q_len, int64_t kv_len,
    clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_causal_lower_right",
    [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::causal_lower_right(capi::read(varlen, "varlen"), q_len, kv_len)}; });
}
clutch_status_t clutch_attention_mask_mod_and(const clutch_attention_mask_mod_t* a, const clutch_attention_mask_mod_t* b,
    clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_mask_mod_and", [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::operator&(capi::ref(a),
    capi::ref(b))}; });
}
clutch_status_t clutch_attention_mask_mod_or(const clutch_attention_mask_mod_t* a, const clutch_attention_mask_mod_t* b, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_mask_mod_or", [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::operator|(capi::ref(a),
    capi::ref(b))}; });
}
clutch_status_t clutch_attention_mask_mod_not(const clutch_attention_mask_mod_t* a, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_mask_mod_not",
    [&] { clear(result); *result = new clutch_attention_mask_mod_t{clutch::attention::operator!(capi::ref(a))}; });
}
clutch_status_t clutch_attention_mask_mod_function(const clutch_attention_mask_mod_t* mask_mod, clutch_expr_function_t** result) {
  return guarded("clutch_attention_mask_mod_function", [&] { clear(result); *result = new clutch_expr_function_t{need(mask_mod, "mask_mod").function()}; });
}
clutch_status_t clutch_attention_score_mod_create(const clutch_expr_function_t* f32, const clutch_expr_function_t* f64, clutch_attention_score_mod_t** result) {
  return guarded("clutch_attention_score_mod_create", [&] { clear(result); *result = new clutch_attention_score_mod_t{attention::ScoreMod(capi::ref(f32),
    capi::ref(f64))}; });
}
clutch_status_t clutch_attention_alibi(const clutch_tensor_t* slopes, clutch_attention_score_mod_t** result) {
  return guarded("clutch_attention_alibi", [&] { clear(result); *result = new clutch_attention_score_mod_t{clutch::attention::alibi(capi::ref(slopes))}; });
}
clutch_status_t clutch_attention_alibi_slopes(int64_t heads, const clutch_device_t* device, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_attention_alibi_slopes", [&] { clear(result); *result = new clutch_tensor_t{clutch::attention::alibi_slopes(heads, capi::ref(device),
    capi::ref(stream))}; });
}
clutch_status_t clutch_attention_softcap(double cap, clutch_attention_score_mod_t** result) {
  return guarded("clutch_attention_softcap", [&] { clear(result); *result = new clutch_attention_score_mod_t{clutch::attention::softcap(cap)}; });
}
clutch_status_t clutch_attention_relative_bias(clutch_attention_score_mod_t** result) {
  return guarded("clutch_attention_relative_bias", [&] { clear(result); *result = new clutch_attention_score_mod_t{clutch::attention::relative_bias()}; });
}
clutch_status_t clutch_attention_relative_bias_table(const clutch_tensor_t* table, clutch_attention_score_mod_t** result) {
  return guarded("clutch_attention_relative_bias_table",
    [&] { clear(result); *result = new clutch_attention_score_mod_t{clutch::attention::relative_bias(capi::ref(table))}; });
}
clutch_status_t clutch_attention_create_block_mask(const clutch_attention_mask_mod_t* mask, const clutch_attention_block_mask_options_t* options,
    const clutch_stream_t* stream, clutch_attention_block_mask_t** result) {
  return guarded("clutch_attention_create_block_mask",
    [&] { clear(result); *result = new clutch_attention_block_mask_t{clutch::attention::create_block_mask(capi::ref(mask), capi::read(options, "options"),
    capi::ref(stream))}; });
}
clutch_status_t clutch_attention_block_mask_from_lists(const clutch_tensor_t* kv_num_blocks, const clutch_tensor_t* kv_indices,
    const clutch_tensor_t* full_kv_num_blocks, const clutch_tensor_t* full_kv_indices, const clutch_attention_mask_mod_t* mask,
    const clutch_attention_block_mask_options_t* options, const clutch_stream_t* stream, clutch_attention_block_mask_t** result) {
  return guarded("clutch_attention_block_mask_from_lists",
    [&] { clear(result); *result = new clutch_attention_block_mask_t{clutch::attention::block_mask_from_lists(capi::ref(kv_num_blocks), capi::ref(kv_indices),
    capi::ref(full_kv_num_blocks), capi::ref(full_kv_indices), capi::ref(mask), capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_attention_block_mask_q_len(const clutch_attention_block_mask_t* block_mask, int64_t* result) {
  return guarded("clutch_attention_block_mask_q_len", [&] { *cleared(result) = need(block_mask, "block_mask").q_len(); });
}
clutch_status_t clutch_attention_block_mask_kv_len(const clutch_attention_block_mask_t* block_mask, int64_t* result) {
  return guarded("clutch_attention_block_mask_kv_len", [&] { *cleared(result) = need(block_mask, "block_mask").kv_len(); });
}
clutch_status_t clutch_attention_block_mask_block(const clutch_attention_block_mask_t* block_mask, clutch_attention_block_size_t* result) {
  return guarded("clutch_attention_block_mask_block", [&] { write(need(block_mask, "block_mask").block(), result, "result"); });
}
clutch_status_t clutch_attention_block_mask_mask_mod(const clutch_attention_block_mask_t* block_mask, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_block_mask_mask_mod", [&] { clear(result); *result = new clutch_attention_mask_mod_t{need(block_mask,
    "block_mask").mask_mod()}; });
}
clutch_status_t clutch_attention_block_mask_kv_num_blocks(const clutch_attention_block_mask_t* block_mask, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_kv_num_blocks", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask,
    "block_mask").kv_num_blocks()}; });
}
clutch_status_t clutch_attention_block_mask_kv_indices(const clutch_attention_block_mask_t* block_mask, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_kv_indices", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask, "block_mask").kv_indices()}; });
}
clutch_status_t clutch_attention_block_mask_full_kv_num_blocks(const clutch_attention_block_mask_t* block_mask, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_full_kv_num_blocks", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask,
    "block_mask").full_kv_num_blocks()}; });
}
clutch_status_t clutch_attention_block_mask_full_kv_indices(const clutch_attention_block_mask_t* block_mask, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_full_kv_indices", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask,
    "block_mask").full_kv_indices()}; });
}
clutch_status_t clutch_attention_block_mask_q_num_blocks(const clutch_attention_block_mask_t* block_mask, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_q_num_blocks", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask,
    "block_mask").q_num_blocks()}; });
}
clutch_status_t clutch_attention_block_mask_q_indices(const clutch_attention_block_mask_t* block_mask, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_q_indices", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask, "block_mask").q_indices()}; });
}
clutch_status_t clutch_attention_block_mask_full_q_num_blocks(const clutch_attention_block_mask_t* block_mask, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_full_q_num_blocks", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask,
    "block_mask").full_q_num_blocks()}; });
}
clutch_status_t clutch_attention_block_mask_full_q_indices(const clutch_attention_block_mask_t* block_mask, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_full_q_indices", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask,
    "block_mask").full_q_indices()}; });
}
clutch_status_t clutch_attention_block_mask_kinds(const clutch_attention_block_mask_t* block_mask, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_kinds", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask, "block_mask").kinds()}; });
}
clutch_status_t clutch_attention_block_mask_to_dense(const clutch_attention_block_mask_t* block_mask, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_attention_block_mask_to_dense", [&] { clear(result); *result = new clutch_tensor_t{need(block_mask,
    "block_mask").to_dense(capi::ref(stream))}; });
}
clutch_status_t clutch_attention_block_mask_slice(const clutch_attention_block_mask_t* block_mask, int64_t batch_begin, int64_t batch_end, int64_t head_begin,
    int64_t head_end, const clutch_stream_t* stream, clutch_attention_block_mask_t** result) {
  return guarded("clutch_attention_block_mask_slice", [&] { clear(result); *result = new clutch_attention_block_mask_t{need(block_mask,
    "block_mask").slice(batch_begin, batch_end, head_begin, head_end, capi::ref(stream))}; });
}
clutch_status_t clutch_attention_block_mask_adjust(const clutch_attention_block_mask_t* block_mask, int64_t q_len, int64_t kv_len,
    const clutch_stream_t* stream, clutch_attention_block_mask_t** result) {
  return guarded("clutch_attention_block_mask_adjust", [&] { clear(result); *result = new clutch_attention_block_mask_t{need(block_mask,
    "block_mask").adjust(q_len, kv_len, capi::ref(stream))}; });
}
clutch_status_t clutch_attention_block_mask_sparsity(const clutch_attention_block_mask_t* block_mask, const clutch_stream_t* stream, double* result) {
  return guarded("clutch_attention_block_mask_sparsity", [&] { *cleared(result) = need(block_mask, "block_mask").sparsity(capi::ref(stream)); });
}
clutch_status_t clutch_attention_block_mask_to_string(const clutch_attention_block_mask_t* block_mask, const clutch_stream_t* stream, char* text,
    size_t capacity, size_t* length) {
  return guarded("clutch_attention_block_mask_to_string", [&] { put_text(need(block_mask, "block_mask").to_string(capi::ref(stream)), text, capacity,
    length); });
}
clutch_status_t clutch_attention_flex_out(const clutch_attention_flex_result_t* results, const clutch_tensor_t* q, const clutch_tensor_t* k,
    const clutch_tensor_t* v, const clutch_attention_flex_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_attention_flex_out", [&] { clutch::attention::flex_out(capi::read(results, "results"), capi::ref(q), capi::ref(k), capi::ref(v),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_attention_flex_backward_out(const clutch_attention_flex_gradients_t* out, const clutch_tensor_t* grad_out, const clutch_tensor_t* q,
    const clutch_tensor_t* k, const clutch_tensor_t* v, const clutch_attention_flex_result_t* results, const clutch_attention_flex_options_t* options,
    const clutch_attention_flex_backward_options_t* backward, const clutch_stream_t* stream) {
  return guarded("clutch_attention_flex_backward_out", [&] { clutch::attention::flex_backward_out(capi::read(out, "out"), capi::ref(grad_out), capi::ref(q),
    capi::ref(k), capi::ref(v), capi::read(results, "results"), capi::read(options, "options"), capi::read(backward, "backward"), capi::ref(stream)); });
}
clutch_status_t clutch_attention_varlen_attn_out(const clutch_attention_flex_result_t* out, const clutch_tensor_t* q, const clutch_tensor_t* k,
    const clutch_tensor_t* v, const clutch_attention_flex_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_attention_varlen_attn_out", [&] { clutch::attention::varlen_attn_out(capi::read(out, "out"), capi::ref(q), capi::ref(k), capi::ref(v),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_attention_varlen_attn_backward_out(const clutch_attention_flex_gradients_t* out, const clutch_tensor_t* grad_out,
    const clutch_tensor_t* q, const clutch_tensor_t* k, const clutch_tensor_t* v, const clutch_attention_flex_result_t* results,
    const clutch_attention_flex_options_t* options, const clutch_attention_flex_backward_options_t* backward, const clutch_stream_t* stream) {
  return guarded("clutch_attention_varlen_attn_backward_out", [&] { clutch::attention::varlen_attn_backward_out(capi::read(out, "out"), capi::ref(grad_out),
    capi::ref(q), capi::ref(k), capi::ref(v), capi::read(results, "results"), capi::read(options, "options"), capi::read(backward, "backward"),
    capi::ref(stream)); });
}
clutch_status_t clutch_attention_sdpa_out(const clutch_attention_sdpa_result_t* out, const clutch_tensor_t* q, const clutch_tensor_t* k,
    const clutch_tensor_t* v, const clutch_attention_sdpa_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_attention_sdpa_out", [&] { clutch::attention::sdpa_out(capi::read(out, "out"), capi::ref(q), capi::ref(k), capi::ref(v),
    capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_attention_sdpa_backward_out(const clutch_attention_flex_gradients_t* out, const clutch_tensor_t* grad_out, const clutch_tensor_t* q,
    const clutch_tensor_t* k, const clutch_tensor_t* v, const clutch_attention_sdpa_result_t* result, const clutch_attention_sdpa_options_t* options,
    const clutch_attention_flex_backward_options_t* backward, const clutch_stream_t* stream) {
  return guarded("clutch_attention_sdpa_backward_out", [&] { clutch::attention::sdpa_backward_out(capi::read(out, "out"), capi::ref(grad_out), capi::ref(q),
    capi::ref(k), capi::ref(v), capi::read(result, "result"), capi::read(options, "options"), capi::read(backward, "backward"), capi::ref(stream)); });
}
clutch_status_t clutch_attention_sdpa_backends_create(const clutch_attention_sdpa_backend_t* order, size_t order_count,
    clutch_attention_sdpa_backends_t** result) {
  return guarded("clutch_attention_sdpa_backends_create",
    [&] { clear(result); *result = new clutch_attention_sdpa_backends_t{capi::attention_sdpa_backends_create(capi::backends(order, order_count, "order"))}; });
}
clutch_status_t clutch_attention_multi_head_attention_out(const clutch_attention_multi_head_result_t* out, const clutch_tensor_t* x,
    const clutch_attention_multi_head_weights_t* weights, const clutch_attention_flex_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_attention_multi_head_attention_out", [&] { clutch::attention::multi_head_attention_out(capi::read(out, "out"), capi::ref(x),
    capi::read(weights, "weights"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_attention_multi_head_attention_backward_out(const clutch_attention_multi_head_gradients_t* out, const clutch_tensor_t* grad_out,
    const clutch_tensor_t* x, const clutch_attention_multi_head_weights_t* weights, const clutch_attention_multi_head_result_t* result,
    const clutch_attention_flex_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_attention_multi_head_attention_backward_out", [&] { clutch::attention::multi_head_attention_backward_out(capi::read(out, "out"),
    capi::ref(grad_out), capi::ref(x), capi::read(weights, "weights"), capi::read(result, "result"), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_attention_paged_cache_create(const clutch_attention_paged_cache_options_t* options, const clutch_stream_t* stream,
    clutch_attention_paged_cache_t** result) {
  return guarded("clutch_attention_paged_cache_create",
    [&] { clear(result); *result = new clutch_attention_paged_cache_t{attention::PagedCache(capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_attention_paged_cache_keys(const clutch_attention_paged_cache_t* paged_cache, clutch_tensor_t** result) {
  return guarded("clutch_attention_paged_cache_keys", [&] { clear(result); *result = new clutch_tensor_t{need(paged_cache, "paged_cache").keys()}; });
}
clutch_status_t clutch_attention_paged_cache_values(const clutch_attention_paged_cache_t* paged_cache, clutch_tensor_t** result) {
  return guarded("clutch_attention_paged_cache_values", [&] { clear(result); *result = new clutch_tensor_t{need(paged_cache, "paged_cache").values()}; });
}
clutch_status_t clutch_attention_paged_cache_page_table(const clutch_attention_paged_cache_t* paged_cache, clutch_tensor_t** result) {
  return guarded("clutch_attention_paged_cache_page_table", [&] { clear(result); *result = new clutch_tensor_t{need(paged_cache,
    "paged_cache").page_table()}; });
}
clutch_status_t clutch_attention_paged_cache_physical_to_logical(const clutch_attention_paged_cache_t* paged_cache, clutch_tensor_t** result) {
  return guarded("clutch_attention_paged_cache_physical_to_logical", [&] { clear(result); *result = new clutch_tensor_t{need(paged_cache,
    "paged_cache").physical_to_logical()}; });
}
clutch_status_t clutch_attention_paged_cache_options(const clutch_attention_paged_cache_t* paged_cache, clutch_attention_paged_cache_options_t* result) {
  return guarded("clutch_attention_paged_cache_options", [&] { write(need(paged_cache, "paged_cache").options(), result, "result"); });
}
clutch_status_t clutch_attention_paged_cache_capacity(const clutch_attention_paged_cache_t* paged_cache, int64_t sequence, int64_t* result) {
  return guarded("clutch_attention_paged_cache_capacity", [&] { *cleared(result) = need(paged_cache, "paged_cache").capacity(sequence); });
}
clutch_status_t clutch_attention_paged_cache_free_pages(const clutch_attention_paged_cache_t* paged_cache, int64_t* result) {
  return guarded("clutch_attention_paged_cache_free_pages", [&] { *cleared(result) = need(paged_cache, "paged_cache").free_pages(); });
}
clutch_status_t clutch_attention_paged_cache_reserve(clutch_attention_paged_cache_t* paged_cache, int64_t sequence, int64_t length,
    const clutch_stream_t* stream) {
  return guarded("clutch_attention_paged_cache_reserve", [&] { need(paged_cache, "paged_cache").reserve(sequence, length, capi::ref(stream)); });
}
clutch_status_t clutch_attention_paged_cache_erase(clutch_attention_paged_cache_t* paged_cache, int64_t sequence, const clutch_stream_t* stream) {
  return guarded("clutch_attention_paged_cache_erase", [&] { need(paged_cache, "paged_cache").erase(sequence, capi::ref(stream)); });
}
clutch_status_t clutch_attention_paged_cache_assign(const clutch_attention_paged_cache_t* paged_cache, const clutch_tensor_t* sequences,
    const clutch_tensor_t* positions, const clutch_tensor_t* k, const clutch_tensor_t* v, const clutch_stream_t* stream) {
  return guarded("clutch_attention_paged_cache_assign", [&] { need(paged_cache, "paged_cache").assign(capi::ref(sequences), capi::ref(positions), capi::ref(k),
    capi::ref(v), capi::ref(stream)); });
}
clutch_status_t clutch_attention_paged_cache_varlen(const clutch_attention_paged_cache_t* paged_cache, const clutch_tensor_t* lengths,
    const clutch_tensor_t* sequences, const clutch_stream_t* stream, clutch_attention_varlen_t* result) {
  return guarded("clutch_attention_paged_cache_varlen", [&] { write(need(paged_cache, "paged_cache").varlen(capi::ref(lengths), capi::ref(sequences),
    capi::ref(stream)), result, "result"); });
}
clutch_status_t clutch_attention_paged_cache_physical(const clutch_attention_paged_cache_t* paged_cache, const clutch_attention_block_mask_t* logical,
    const clutch_tensor_t* sequences, const clutch_stream_t* stream, clutch_attention_block_mask_t** result) {
  return guarded("clutch_attention_paged_cache_physical", [&] { clear(result); *result = new clutch_attention_block_mask_t{need(paged_cache,
    "paged_cache").physical(capi::ref(logical), capi::ref(sequences), capi::ref(stream))}; });
}
clutch_status_t clutch_attention_paged_cache_physical_mask(const clutch_attention_paged_cache_t* paged_cache, const clutch_attention_mask_mod_t* logical,
    const clutch_tensor_t* sequences, clutch_attention_mask_mod_t** result) {
  return guarded("clutch_attention_paged_cache_physical_mask", [&] { clear(result); *result = new clutch_attention_mask_mod_t{need(paged_cache,
    "paged_cache").physical(capi::ref(logical), capi::ref(sequences))}; });
}
clutch_status_t clutch_attention_paged_cache_physical_score(const clutch_attention_paged_cache_t* paged_cache, const clutch_attention_score_mod_t* logical,
    const clutch_tensor_t* sequences, clutch_attention_score_mod_t** result) {
  return guarded("clutch_attention_paged_cache_physical_score", [&] { clear(result); *result = new clutch_attention_score_mod_t{need(paged_cache,
    "paged_cache").physical(capi::ref(logical), capi::ref(sequences))}; });
}

}  // extern "C"
