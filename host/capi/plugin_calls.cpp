// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/plugin_calls.hpp"

#include "capi/types.hpp"

namespace clutch { inline namespace v0 { namespace capi {
namespace {

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

}  // namespace

std::span<const PluginCall> plugin_calls() {
  static constexpr PluginCall kCalls[] = {
      {"addcdiv_out", "addcdiv", call_addcdiv_out},
      {"addcmul_out", "addcmul", call_addcmul_out},
      {"cumsum_out", "cumsum", call_cumsum_out},
      {"sort_out", "sort", call_sort_out},
      {"linalg_matmul_out", "linalg::matmul", call_linalg_matmul_out},
      {"attention_flex_out", "attention::flex", call_attention_flex_out},
  };
  return kCalls;
}

}}}  // namespace clutch::v0::capi
