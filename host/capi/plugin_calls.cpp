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
void tell(std::string& text, const Tensor& value) { text += fmt::format("{}{}", text.empty() ? "" : " ", value.defined() ? name(value.dtype()) : "none"); }
/// Each dtype once.
void tell(std::string& text, TensorList list) {
  std::vector<DType> seen;
  for (const Tensor& t : list)
    if (std::find(seen.begin(), seen.end(), t.dtype()) == seen.end()) seen.push_back(t.dtype()), tell(text, t);
}
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
  if (!is_empty(value.after)) text += " after";
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
  };
  return kCalls;
}

}}}  // namespace clutch::v0::capi
