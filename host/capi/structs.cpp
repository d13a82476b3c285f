// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/types.hpp"

namespace clutch { inline namespace v0 { namespace capi {

DeviceTraits read(const clutch_device_traits_t* given, std::string_view what) {
  DeviceTraits r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31, m32] = r;
  if (!given) return r;
  const clutch_device_traits_t c = sized(given, what);
  r.type = enumerator<DeviceType>(c.type, at(what, "type"));
  r.opencl_c = narrow<int>(c.opencl_c, at(what, "opencl_c"));
  r.address_bits = narrow<int>(c.address_bits, at(what, "address_bits"));
  r.compute_units = narrow<int>(c.compute_units, at(what, "compute_units"));
  r.max_work_group = c.max_work_group;
  r.local_bytes = c.local_bytes;
  r.local_memory_real = flag(c.local_memory_real, at(what, "local_memory_real"));
  r.global_bytes = c.global_bytes;
  r.max_alloc_bytes = c.max_alloc_bytes;
  r.max_argument_bytes = c.max_argument_bytes;
  r.cache_bytes = c.cache_bytes;
  r.base_align_bits = narrow<std::uint32_t>(c.base_align_bits, at(what, "base_align_bits"));
  r.native_width_f32 = narrow<int>(c.native_width_f32, at(what, "native_width_f32"));
  r.native_width_f64 = narrow<int>(c.native_width_f64, at(what, "native_width_f64"));
  r.native_width_f16 = narrow<int>(c.native_width_f16, at(what, "native_width_f16"));
  r.fp64 = flag(c.fp64, at(what, "fp64"));
  r.fp16 = flag(c.fp16, at(what, "fp16"));
  r.sub_groups = flag(c.sub_groups, at(what, "sub_groups"));
  r.native_atomics64 = flag(c.native_atomics64, at(what, "native_atomics64"));
  r.out_of_order = flag(c.out_of_order, at(what, "out_of_order"));
  r.priority_hints = flag(c.priority_hints, at(what, "priority_hints"));
  r.register_limits = flag(c.register_limits, at(what, "register_limits"));
  r.large_registers = flag(c.large_registers, at(what, "large_registers"));
  r.least_sub_group = narrow<int>(c.least_sub_group, at(what, "least_sub_group"));
  r.command_buffer = narrow<int>(c.command_buffer, at(what, "command_buffer"));
  r.fma_exact = flag(c.fma_exact, at(what, "fma_exact"));
  r.divide_exact = flag(c.divide_exact, at(what, "divide_exact"));
  r.sqrt_exact = flag(c.sqrt_exact, at(what, "sqrt_exact"));
  r.denormals = flag(c.denormals, at(what, "denormals"));
  r.device_timer = flag(c.device_timer, at(what, "device_timer"));
  r.args_by_value = flag(c.args_by_value, at(what, "args_by_value"));
  r.simulator = flag(c.simulator, at(what, "simulator"));
  r.quirks = narrow<std::uint32_t>(c.quirks, at(what, "quirks"));
  return r;
}
StreamOptions read(const clutch_stream_options_t* given, std::string_view what) {
  StreamOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_stream_options_t c = sized(given, what);
  r.priority = enumerator<StreamPriority>(c.priority, at(what, "priority"));
  return r;
}
TensorOptions read(const clutch_tensor_options_t* given, std::string_view what) {
  TensorOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_tensor_options_t c = sized(given, what);
  r.dtype = enumerator<DType>(c.dtype, at(what, "dtype"));
  r.device = ref(c.device);
  return r;
}
CastOptions read(const clutch_cast_options_t* given, std::string_view what) {
  CastOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_cast_options_t c = sized(given, what);
  r.overflow = enumerator<Overflow>(c.overflow, at(what, "overflow"));
  return r;
}
CopyOptions read(const clutch_copy_options_t* given, std::string_view what) {
  CopyOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_copy_options_t c = sized(given, what);
  r.overflow = enumerator<Overflow>(c.overflow, at(what, "overflow"));
  r.implementation = text(c.implementation);
  return r;
}
FillOptions read(const clutch_fill_options_t* given, std::string_view what) {
  FillOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_fill_options_t c = sized(given, what);
  r.implementation = text(c.implementation);
  return r;
}
GeneratorState read(const clutch_generator_state_t* given, std::string_view what) {
  GeneratorState r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_generator_state_t c = sized(given, what);
  r.seed = c.seed;
  r.offset = c.offset;
  return r;
}
PartitionOptions read(const clutch_partition_options_t* given, std::string_view what) {
  PartitionOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_partition_options_t c = sized(given, what);
  r.units = narrow<int>(c.units, at(what, "units"));
  r.workqueue_limit = narrow<int>(c.workqueue_limit, at(what, "workqueue_limit"));
  r.soft = flag(c.soft, at(what, "soft"));
  return r;
}
MemPoolOptions read(const clutch_mem_pool_options_t* given, std::string_view what) {
  MemPoolOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_mem_pool_options_t c = sized(given, what);
  r.use_on_oom = flag(c.use_on_oom, at(what, "use_on_oom"));
  r.no_split = flag(c.no_split, at(what, "no_split"));
  return r;
}
PoolId read(const clutch_pool_id_t* given, std::string_view what) {
  PoolId r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_pool_id_t c = sized(given, what);
  r.first = c.first;
  r.second = c.second;
  return r;
}
MemoryInfo read(const clutch_memory_info_t* given, std::string_view what) {
  MemoryInfo r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_memory_info_t c = sized(given, what);
  r.free = c.free;
  r.total = c.total;
  r.estimated = flag(c.estimated, at(what, "estimated"));
  return r;
}
MemoryHistoryOptions read(const clutch_memory_history_options_t* given, std::string_view what) {
  MemoryHistoryOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_memory_history_options_t c = sized(given, what);
  r.max_entries = c.max_entries;
  r.clear_history = flag(c.clear_history, at(what, "clear_history"));
  return r;
}
CacheUsage read(const clutch_cache_usage_t* given, std::string_view what) {
  CacheUsage r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_cache_usage_t c = sized(given, what);
  r.files = c.files;
  r.bytes = c.bytes;
  r.limit = c.limit;
  return r;
}
BuildCounters read(const clutch_build_counters_t* given, std::string_view what) {
  BuildCounters r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_build_counters_t c = sized(given, what);
  r.built = c.built;
  r.loaded = c.loaded;
  r.saved = c.saved;
  r.packed = c.packed;
  return r;
}
Cost read(const clutch_cost_t* given, std::string_view what) {
  Cost r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_cost_t c = sized(given, what);
  r.flops = c.flops;
  r.bytes = c.bytes;
  r.flops64 = c.flops64;
  return r;
}
AddcOptions read(const clutch_addc_options_t* given, std::string_view what) {
  AddcOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_addc_options_t c = sized(given, what);
  r.value = c.value;
  r.order = enumerator<AddcOrder>(c.order, at(what, "order"));
  r.implementation = text(c.implementation);
  return r;
}
MapOptions read(const clutch_map_options_t* given, std::string_view what) {
  MapOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_map_options_t c = sized(given, what);
  r.dtype = dtype_list(c.dtype, c.dtype_count, at(what, "dtype"));
  r.implementation = text(c.implementation);
  return r;
}
CatOptions read(const clutch_cat_options_t* given, std::string_view what) {
  CatOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_cat_options_t c = sized(given, what);
  r.implementation = text(c.implementation);
  return r;
}
CumsumOptions read(const clutch_cumsum_options_t* given, std::string_view what) {
  CumsumOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_cumsum_options_t c = sized(given, what);
  r.reverse = flag(c.reverse, at(what, "reverse"));
  r.dtype = dtype_list(c.dtype, c.dtype_count, at(what, "dtype"));
  r.implementation = text(c.implementation);
  return r;
}
UniformOptions read(const clutch_uniform_options_t* given, std::string_view what) {
  UniformOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_uniform_options_t c = sized(given, what);
  r.low = c.low;
  r.high = c.high;
  if (flag(c.has_seed, at(what, "has_seed"))) r.seed = c.seed;
  r.generator = ref(c.generator);
  return r;
}
NormalOptions read(const clutch_normal_options_t* given, std::string_view what) {
  NormalOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_normal_options_t c = sized(given, what);
  r.mean = c.mean;
  r.stddev = c.stddev;
  if (flag(c.has_seed, at(what, "has_seed"))) r.seed = c.seed;
  r.generator = ref(c.generator);
  return r;
}
RandomOptions read(const clutch_random_options_t* given, std::string_view what) {
  RandomOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_random_options_t c = sized(given, what);
  r.dtype = enumerator<DType>(c.dtype, at(what, "dtype"));
  r.device = ref(c.device);
  if (flag(c.has_seed, at(what, "has_seed"))) r.seed = c.seed;
  r.generator = ref(c.generator);
  return r;
}
DrawOptions read(const clutch_draw_options_t* given, std::string_view what) {
  DrawOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_draw_options_t c = sized(given, what);
  if (flag(c.has_seed, at(what, "has_seed"))) r.seed = c.seed;
  r.generator = ref(c.generator);
  return r;
}
PermutationOptions read(const clutch_permutation_options_t* given, std::string_view what) {
  PermutationOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_permutation_options_t c = sized(given, what);
  r.dtype = enumerator<DType>(c.dtype, at(what, "dtype"));
  r.device = ref(c.device);
  if (flag(c.has_seed, at(what, "has_seed"))) r.seed = c.seed;
  r.generator = ref(c.generator);
  return r;
}
ReduceOptions read(const clutch_reduce_options_t* given, std::string_view what) {
  ReduceOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4] = r;
  if (!given) return r;
  const clutch_reduce_options_t c = sized(given, what);
  r.dims = dims(c.dims, c.dims_count, at(what, "dims"));
  r.keepdim = flag(c.keepdim, at(what, "keepdim"));
  r.dtype = dtype_list(c.dtype, c.dtype_count, at(what, "dtype"));
  r.after = ref(c.after);
  r.implementation = text(c.implementation);
  return r;
}
RowwiseOptions read(const clutch_rowwise_options_t* given, std::string_view what) {
  RowwiseOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_rowwise_options_t c = sized(given, what);
  if (c.dims_count > 0) r.dims = dims(c.dims, c.dims_count, at(what, "dims"));
  r.dtype = dtype_list(c.dtype, c.dtype_count, at(what, "dtype"));
  r.implementation = text(c.implementation);
  return r;
}
SortOptions read(const clutch_sort_options_t* given, std::string_view what) {
  SortOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_sort_options_t c = sized(given, what);
  r.descending = flag(c.descending, at(what, "descending"));
  r.implementation = text(c.implementation);
  return r;
}
TopkOptions read(const clutch_topk_options_t* given, std::string_view what) {
  TopkOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_topk_options_t c = sized(given, what);
  r.largest = flag(c.largest, at(what, "largest"));
  r.implementation = text(c.implementation);
  return r;
}
KthvalueOptions read(const clutch_kthvalue_options_t* given, std::string_view what) {
  KthvalueOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_kthvalue_options_t c = sized(given, what);
  r.keepdim = flag(c.keepdim, at(what, "keepdim"));
  r.implementation = text(c.implementation);
  return r;
}
Sorted read(const clutch_sorted_t* given, std::string_view what) {
  Sorted r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_sorted_t c = sized(given, what);
  r.values = ref(c.values);
  r.indices = ref(c.indices);
  return r;
}
GroupOptions read(const clutch_group_options_t* given, std::string_view what) {
  GroupOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_group_options_t c = sized(given, what);
  r.implementation = text(c.implementation);
  return r;
}
Groups read(const clutch_groups_t* given, std::string_view what) {
  Groups r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_groups_t c = sized(given, what);
  r.offsets = ref(c.offsets);
  r.order = ref(c.order);
  return r;
}
IndexPutOptions read(const clutch_index_put_options_t* given, std::string_view what) {
  IndexPutOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_index_put_options_t c = sized(given, what);
  r.accumulate = flag(c.accumulate, at(what, "accumulate"));
  return r;
}
NonzeroOptions read(const clutch_nonzero_options_t* given, std::string_view what) {
  NonzeroOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_nonzero_options_t c = sized(given, what);
  r.implementation = text(c.implementation);
  return r;
}
NonzeroStaticOptions read(const clutch_nonzero_static_options_t* given, std::string_view what) {
  NonzeroStaticOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_nonzero_static_options_t c = sized(given, what);
  r.fill_value = c.fill_value;
  r.implementation = text(c.implementation);
  return r;
}
UniqueOptions read(const clutch_unique_options_t* given, std::string_view what) {
  UniqueOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_unique_options_t c = sized(given, what);
  r.return_inverse = flag(c.return_inverse, at(what, "return_inverse"));
  r.return_counts = flag(c.return_counts, at(what, "return_counts"));
  r.implementation = text(c.implementation);
  return r;
}
Unique read(const clutch_unique_t* given, std::string_view what) {
  Unique r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_unique_t c = sized(given, what);
  r.values = ref(c.values);
  r.inverse = ref(c.inverse);
  r.counts = ref(c.counts);
  return r;
}
SegmentOptions read(const clutch_segment_options_t* given, std::string_view what) {
  SegmentOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_segment_options_t c = sized(given, what);
  r.reduce = enumerator<Reduce>(c.reduce, at(what, "reduce"));
  if (flag(c.has_initial, at(what, "has_initial"))) r.initial = c.initial;
  r.implementation = text(c.implementation);
  return r;
}
ScatterOptions read(const clutch_scatter_options_t* given, std::string_view what) {
  ScatterOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_scatter_options_t c = sized(given, what);
  r.reduce = enumerator<Reduce>(c.reduce, at(what, "reduce"));
  r.include_self = flag(c.include_self, at(what, "include_self"));
  r.implementation = text(c.implementation);
  return r;
}
ScatterGradients read(const clutch_scatter_gradients_t* given, std::string_view what) {
  ScatterGradients r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_scatter_gradients_t c = sized(given, what);
  r.self = ref(c.self);
  r.src = ref(c.src);
  return r;
}
SelectiveScanOptions read(const clutch_selective_scan_options_t* given, std::string_view what) {
  SelectiveScanOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5] = r;
  if (!given) return r;
  const clutch_selective_scan_options_t c = sized(given, what);
  r.skip = ref(c.skip);
  r.gate = ref(c.gate);
  r.delta_bias = ref(c.delta_bias);
  r.delta_softplus = flag(c.delta_softplus, at(what, "delta_softplus"));
  r.initial_state = ref(c.initial_state);
  r.implementation = text(c.implementation);
  return r;
}
SelectiveScanResult read(const clutch_selective_scan_result_t* given, std::string_view what) {
  SelectiveScanResult r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_selective_scan_result_t c = sized(given, what);
  r.y = ref(c.y);
  r.state = ref(c.state);
  return r;
}
SelectiveScanGradients read(const clutch_selective_scan_gradients_t* given, std::string_view what) {
  SelectiveScanGradients r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = r;
  if (!given) return r;
  const clutch_selective_scan_gradients_t c = sized(given, what);
  r.x = ref(c.x);
  r.delta = ref(c.delta);
  r.a = ref(c.a);
  r.b = ref(c.b);
  r.c = ref(c.c);
  r.skip = ref(c.skip);
  r.gate = ref(c.gate);
  r.delta_bias = ref(c.delta_bias);
  r.initial_state = ref(c.initial_state);
  return r;
}
nn::NormOptions read(const clutch_nn_norm_options_t* given, std::string_view what) {
  nn::NormOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_nn_norm_options_t c = sized(given, what);
  r.normalized_rank = narrow<int>(c.normalized_rank, at(what, "normalized_rank"));
  r.eps = c.eps;
  return r;
}
nn::LayerNormResult read(const clutch_nn_layer_norm_result_t* given, std::string_view what) {
  nn::LayerNormResult r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_nn_layer_norm_result_t c = sized(given, what);
  r.y = ref(c.y);
  r.mean = ref(c.mean);
  r.rstd = ref(c.rstd);
  return r;
}
nn::LayerNormGradients read(const clutch_nn_layer_norm_gradients_t* given, std::string_view what) {
  nn::LayerNormGradients r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_nn_layer_norm_gradients_t c = sized(given, what);
  r.x = ref(c.x);
  r.weight = ref(c.weight);
  r.bias = ref(c.bias);
  return r;
}
nn::RmsNormResult read(const clutch_nn_rms_norm_result_t* given, std::string_view what) {
  nn::RmsNormResult r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_nn_rms_norm_result_t c = sized(given, what);
  r.y = ref(c.y);
  r.rrms = ref(c.rrms);
  return r;
}
nn::RmsNormGradients read(const clutch_nn_rms_norm_gradients_t* given, std::string_view what) {
  nn::RmsNormGradients r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_nn_rms_norm_gradients_t c = sized(given, what);
  r.x = ref(c.x);
  r.weight = ref(c.weight);
  return r;
}
nn::CrossEntropyOptions read(const clutch_nn_cross_entropy_options_t* given, std::string_view what) {
  nn::CrossEntropyOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_nn_cross_entropy_options_t c = sized(given, what);
  r.weight = ref(c.weight);
  r.ignore_index = c.ignore_index;
  r.reduction = enumerator<nn::Reduction>(c.reduction, at(what, "reduction"));
  r.label_smoothing = c.label_smoothing;
  return r;
}
nn::CrossEntropyResult read(const clutch_nn_cross_entropy_result_t* given, std::string_view what) {
  nn::CrossEntropyResult r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_nn_cross_entropy_result_t c = sized(given, what);
  r.loss = ref(c.loss);
  r.max = ref(c.max);
  r.log_sum = ref(c.log_sum);
  return r;
}
nn::EmbeddingBackwardOptions read(const clutch_nn_embedding_backward_options_t* given, std::string_view what) {
  nn::EmbeddingBackwardOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_nn_embedding_backward_options_t c = sized(given, what);
  r.padding_index = c.padding_index;
  r.scale_by_frequency = flag(c.scale_by_frequency, at(what, "scale_by_frequency"));
  return r;
}
linalg::MatmulOptions read(const clutch_linalg_matmul_options_t* given, std::string_view what) {
  linalg::MatmulOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4] = r;
  if (!given) return r;
  const clutch_linalg_matmul_options_t c = sized(given, what);
  r.alpha = c.alpha;
  r.beta = c.beta;
  r.dtype = dtype_list(c.dtype, c.dtype_count, at(what, "dtype"));
  r.implementation = text(c.implementation);
  r.numerics = enumerator<linalg::Numerics>(c.numerics, at(what, "numerics"));
  return r;
}
linalg::LinearOptions read(const clutch_linalg_linear_options_t* given, std::string_view what) {
  linalg::LinearOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_linalg_linear_options_t c = sized(given, what);
  r.activation = enumerator<nn::Activation>(c.activation, at(what, "activation"));
  r.dtype = dtype_list(c.dtype, c.dtype_count, at(what, "dtype"));
  r.numerics = enumerator<linalg::Numerics>(c.numerics, at(what, "numerics"));
  return r;
}
linalg::MatmulGradients read(const clutch_linalg_matmul_gradients_t* given, std::string_view what) {
  linalg::MatmulGradients r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_linalg_matmul_gradients_t c = sized(given, what);
  r.a = ref(c.a);
  r.b = ref(c.b);
  r.inputs = tensors(c.inputs, c.inputs_count, at(what, "inputs"));
  return r;
}
linalg::MatmulBackwardOptions read(const clutch_linalg_matmul_backward_options_t* given, std::string_view what) {
  linalg::MatmulBackwardOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_linalg_matmul_backward_options_t c = sized(given, what);
  r.numerics = enumerator<linalg::Numerics>(c.numerics, at(what, "numerics"));
  return r;
}
linalg::LinearGradients read(const clutch_linalg_linear_gradients_t* given, std::string_view what) {
  linalg::LinearGradients r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_linalg_linear_gradients_t c = sized(given, what);
  r.x = ref(c.x);
  r.weight = ref(c.weight);
  r.bias = ref(c.bias);
  return r;
}
linalg::ScaledMatmulOptions read(const clutch_linalg_scaled_matmul_options_t* given, std::string_view what) {
  linalg::ScaledMatmulOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_linalg_scaled_matmul_options_t c = sized(given, what);
  r.bias = ref(c.bias);
  r.dtype = dtype_list(c.dtype, c.dtype_count, at(what, "dtype"));
  r.numerics = enumerator<linalg::Numerics>(c.numerics, at(what, "numerics"));
  return r;
}
linalg::Quantization read(const clutch_linalg_quantization_t* given, std::string_view what) {
  linalg::Quantization r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_linalg_quantization_t c = sized(given, what);
  r.scale = ref(c.scale);
  r.zero_point = ref(c.zero_point);
  return r;
}
linalg::QuantizedMatmulOptions read(const clutch_linalg_quantized_matmul_options_t* given, std::string_view what) {
  linalg::QuantizedMatmulOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_linalg_quantized_matmul_options_t c = sized(given, what);
  r.bias = ref(c.bias);
  r.dtype = dtype_list(c.dtype, c.dtype_count, at(what, "dtype"));
  r.result = read(c.result, "result");
  return r;
}
linalg::EighOptions read(const clutch_linalg_eigh_options_t* given, std::string_view what) {
  linalg::EighOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6, m7] = r;
  if (!given) return r;
  const clutch_linalg_eigh_options_t c = sized(given, what);
  r.uplo = enumerator<linalg::Uplo>(c.uplo, at(what, "uplo"));
  r.driver = enumerator<linalg::EighDriver>(c.driver, at(what, "driver"));
  r.phase = enumerator<linalg::EighPhase>(c.phase, at(what, "phase"));
  r.accuracy = enumerator<linalg::EighAccuracy>(c.accuracy, at(what, "accuracy"));
  r.first = c.first;
  r.count = c.count;
  r.tolerance = c.tolerance;
  r.max_sweeps = narrow<int>(c.max_sweeps, at(what, "max_sweeps"));
  return r;
}
linalg::EighStatus read(const clutch_linalg_eigh_status_t* given, std::string_view what) {
  linalg::EighStatus r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_linalg_eigh_status_t c = sized(given, what);
  r.info = ref(c.info);
  r.sweeps = ref(c.sweeps);
  return r;
}
linalg::EighBackwardOptions read(const clutch_linalg_eigh_backward_options_t* given, std::string_view what) {
  linalg::EighBackwardOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_linalg_eigh_backward_options_t c = sized(given, what);
  r.broadening = c.broadening;
  return r;
}
linalg::EighGradient read(const clutch_linalg_eigh_gradient_t* given, std::string_view what) {
  linalg::EighGradient r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_linalg_eigh_gradient_t c = sized(given, what);
  r.grad_a = ref(c.grad_a);
  r.gauge = ref(c.gauge);
  return r;
}
sparse::PruneOptions read(const clutch_sparse_prune_options_t* given, std::string_view what) {
  sparse::PruneOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_sparse_prune_options_t c = sized(given, what);
  r.rule = enumerator<sparse::PruneRule>(c.rule, at(what, "rule"));
  return r;
}
sparse::CompressOptions read(const clutch_sparse_compress_options_t* given, std::string_view what) {
  sparse::CompressOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_sparse_compress_options_t c = sized(given, what);
  r.strict = flag(c.strict, at(what, "strict"));
  return r;
}
sparse::CutlassLayout read(const clutch_sparse_cutlass_layout_t* given, std::string_view what) {
  sparse::CutlassLayout r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_sparse_cutlass_layout_t c = sized(given, what);
  r.values = ref(c.values);
  r.metadata = ref(c.metadata);
  return r;
}
sparse::LinearBackwardOptions read(const clutch_sparse_linear_backward_options_t* given, std::string_view what) {
  sparse::LinearBackwardOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_sparse_linear_backward_options_t c = sized(given, what);
  r.activation = enumerator<nn::Activation>(c.activation, at(what, "activation"));
  r.transposed = ref(c.transposed);
  r.masked = flag(c.masked, at(what, "masked"));
  r.numerics = enumerator<linalg::Numerics>(c.numerics, at(what, "numerics"));
  return r;
}
sparse::Csr read(const clutch_sparse_csr_t* given, std::string_view what) {
  sparse::Csr r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_sparse_csr_t c = sized(given, what);
  r.offsets = ref(c.offsets);
  r.columns = ref(c.columns);
  r.values = ref(c.values);
  r.width = c.width;
  return r;
}
sparse::SpmmOptions read(const clutch_sparse_spmm_options_t* given, std::string_view what) {
  sparse::SpmmOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_sparse_spmm_options_t c = sized(given, what);
  r.reduce = enumerator<Reduce>(c.reduce, at(what, "reduce"));
  r.implementation = text(c.implementation);
  return r;
}
sparse::SpmmGradients read(const clutch_sparse_spmm_gradients_t* given, std::string_view what) {
  sparse::SpmmGradients r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_sparse_spmm_gradients_t c = sized(given, what);
  r.values = ref(c.values);
  r.b = ref(c.b);
  return r;
}
attention::BlockSize read(const clutch_attention_block_size_t* given, std::string_view what) {
  attention::BlockSize r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_attention_block_size_t c = sized(given, what);
  r.q = c.q;
  r.kv = c.kv;
  return r;
}
attention::BlockMaskOptions read(const clutch_attention_block_mask_options_t* given, std::string_view what) {
  attention::BlockMaskOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6] = r;
  if (!given) return r;
  const clutch_attention_block_mask_options_t c = sized(given, what);
  r.batch = c.batch;
  r.heads = c.heads;
  r.q_len = c.q_len;
  r.kv_len = c.kv_len;
  r.block = read(c.block, "block");
  r.device = ref(c.device);
  r.implementation = text(c.implementation);
  return r;
}
attention::Varlen read(const clutch_attention_varlen_t* given, std::string_view what) {
  attention::Varlen r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6] = r;
  if (!given) return r;
  const clutch_attention_varlen_t c = sized(given, what);
  r.cu_seq_q = ref(c.cu_seq_q);
  r.cu_seq_kv = ref(c.cu_seq_kv);
  r.seqused_kv = ref(c.seqused_kv);
  r.page_table = ref(c.page_table);
  r.page_size = c.page_size;
  r.max_q = c.max_q;
  r.max_kv = c.max_kv;
  return r;
}
attention::FlexOptions read(const clutch_attention_flex_options_t* given, std::string_view what) {
  attention::FlexOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = r;
  if (!given) return r;
  const clutch_attention_flex_options_t c = sized(given, what);
  r.score_mod = ref(c.score_mod);
  r.mask_mod = ref(c.mask_mod);
  r.block_mask = ref(c.block_mask);
  if (flag(c.has_scale, at(what, "has_scale"))) r.scale = c.scale;
  r.enable_gqa = flag(c.enable_gqa, at(what, "enable_gqa"));
  r.return_lse = flag(c.return_lse, at(what, "return_lse"));
  r.return_max_scores = flag(c.return_max_scores, at(what, "return_max_scores"));
  r.varlen = read(c.varlen, "varlen");
  r.dropout_p = c.dropout_p;
  r.generator = ref(c.generator);
  r.skip_masked = flag(c.skip_masked, at(what, "skip_masked"));
  r.implementation = text(c.implementation);
  r.numerics = enumerator<linalg::Numerics>(c.numerics, at(what, "numerics"));
  return r;
}
attention::FlexResult read(const clutch_attention_flex_result_t* given, std::string_view what) {
  attention::FlexResult r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_attention_flex_result_t c = sized(given, what);
  r.out = ref(c.out);
  r.lse = ref(c.lse);
  r.max_scores = ref(c.max_scores);
  r.dropout_state = ref(c.dropout_state);
  return r;
}
attention::FlexBackwardOptions read(const clutch_attention_flex_backward_options_t* given, std::string_view what) {
  attention::FlexBackwardOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_attention_flex_backward_options_t c = sized(given, what);
  r.grad_lse = ref(c.grad_lse);
  r.captured_gradients = flag(c.captured_gradients, at(what, "captured_gradients"));
  return r;
}
attention::FlexGradients read(const clutch_attention_flex_gradients_t* given, std::string_view what) {
  attention::FlexGradients r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3] = r;
  if (!given) return r;
  const clutch_attention_flex_gradients_t c = sized(given, what);
  r.q = ref(c.q);
  r.k = ref(c.k);
  r.v = ref(c.v);
  r.captured = tensors(c.captured, c.captured_count, at(what, "captured"));
  return r;
}
attention::SdpaOptions read(const clutch_attention_sdpa_options_t* given, std::string_view what) {
  attention::SdpaOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6] = r;
  if (!given) return r;
  const clutch_attention_sdpa_options_t c = sized(given, what);
  r.attn_mask = ref(c.attn_mask);
  r.causal = enumerator<attention::Causal>(c.causal, at(what, "causal"));
  if (flag(c.has_scale, at(what, "has_scale"))) r.scale = c.scale;
  r.enable_gqa = flag(c.enable_gqa, at(what, "enable_gqa"));
  r.dropout_p = c.dropout_p;
  r.generator = ref(c.generator);
  r.numerics = enumerator<linalg::Numerics>(c.numerics, at(what, "numerics"));
  return r;
}
attention::SdpaResult read(const clutch_attention_sdpa_result_t* given, std::string_view what) {
  attention::SdpaResult r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_attention_sdpa_result_t c = sized(given, what);
  r.out = ref(c.out);
  r.lse = ref(c.lse);
  r.dropout_state = ref(c.dropout_state);
  return r;
}
attention::MultiHeadWeights read(const clutch_attention_multi_head_weights_t* given, std::string_view what) {
  attention::MultiHeadWeights r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5] = r;
  if (!given) return r;
  const clutch_attention_multi_head_weights_t c = sized(given, what);
  r.in_weight = ref(c.in_weight);
  r.in_bias = ref(c.in_bias);
  r.out_weight = ref(c.out_weight);
  r.out_bias = ref(c.out_bias);
  r.heads = c.heads;
  r.kv_heads = c.kv_heads;
  return r;
}
attention::MultiHeadResult read(const clutch_attention_multi_head_result_t* given, std::string_view what) {
  attention::MultiHeadResult r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4] = r;
  if (!given) return r;
  const clutch_attention_multi_head_result_t c = sized(given, what);
  r.out = ref(c.out);
  r.projected = ref(c.projected);
  r.attended = ref(c.attended);
  r.lse = ref(c.lse);
  r.dropout_state = ref(c.dropout_state);
  return r;
}
attention::MultiHeadGradients read(const clutch_attention_multi_head_gradients_t* given, std::string_view what) {
  attention::MultiHeadGradients r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4] = r;
  if (!given) return r;
  const clutch_attention_multi_head_gradients_t c = sized(given, what);
  r.x = ref(c.x);
  r.in_weight = ref(c.in_weight);
  r.in_bias = ref(c.in_bias);
  r.out_weight = ref(c.out_weight);
  r.out_bias = ref(c.out_bias);
  return r;
}
attention::PagedCacheOptions read(const clutch_attention_paged_cache_options_t* given, std::string_view what) {
  attention::PagedCacheOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = r;
  if (!given) return r;
  const clutch_attention_paged_cache_options_t c = sized(given, what);
  r.pages = c.pages;
  r.page_size = c.page_size;
  r.max_batch = c.max_batch;
  r.max_pages = c.max_pages;
  r.heads = c.heads;
  r.key_size = c.key_size;
  r.value_size = c.value_size;
  r.dtype = enumerator<DType>(c.dtype, at(what, "dtype"));
  r.device = ref(c.device);
  return r;
}
optim::Precision read(const clutch_optim_precision_t* given, std::string_view what) {
  optim::Precision r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4] = r;
  if (!given) return r;
  const clutch_optim_precision_t c = sized(given, what);
  r.numerics = enumerator<optim::Numerics>(c.numerics, at(what, "numerics"));
  r.state = enumerator<optim::StateType>(c.state, at(what, "state"));
  r.master = flag(c.master, at(what, "master"));
  r.rounding = enumerator<optim::Rounding>(c.rounding, at(what, "rounding"));
  r.seed = c.seed;
  return r;
}
optim::SGDOptions read(const clutch_optim_sgd_options_t* given, std::string_view what) {
  optim::SGDOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6] = r;
  if (!given) return r;
  const clutch_optim_sgd_options_t c = sized(given, what);
  r.lr = c.lr;
  r.momentum = c.momentum;
  r.dampening = c.dampening;
  r.weight_decay = c.weight_decay;
  r.nesterov = flag(c.nesterov, at(what, "nesterov"));
  r.maximize = flag(c.maximize, at(what, "maximize"));
  r.precision = read(c.precision, "precision");
  return r;
}
optim::AdamOptions read(const clutch_optim_adam_options_t* given, std::string_view what) {
  optim::AdamOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = r;
  if (!given) return r;
  const clutch_optim_adam_options_t c = sized(given, what);
  r.lr = c.lr;
  r.beta1 = c.beta1;
  r.beta2 = c.beta2;
  r.eps = c.eps;
  r.weight_decay = c.weight_decay;
  r.amsgrad = flag(c.amsgrad, at(what, "amsgrad"));
  r.maximize = flag(c.maximize, at(what, "maximize"));
  r.decoupled_weight_decay = flag(c.decoupled_weight_decay, at(what, "decoupled_weight_decay"));
  r.precision = read(c.precision, "precision");
  return r;
}
optim::AdamWOptions read(const clutch_optim_adamw_options_t* given, std::string_view what) {
  optim::AdamWOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6, m7] = r;
  if (!given) return r;
  const clutch_optim_adamw_options_t c = sized(given, what);
  r.lr = c.lr;
  r.beta1 = c.beta1;
  r.beta2 = c.beta2;
  r.eps = c.eps;
  r.weight_decay = c.weight_decay;
  r.amsgrad = flag(c.amsgrad, at(what, "amsgrad"));
  r.maximize = flag(c.maximize, at(what, "maximize"));
  r.precision = read(c.precision, "precision");
  return r;
}
optim::AdagradOptions read(const clutch_optim_adagrad_options_t* given, std::string_view what) {
  optim::AdagradOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6] = r;
  if (!given) return r;
  const clutch_optim_adagrad_options_t c = sized(given, what);
  r.lr = c.lr;
  r.lr_decay = c.lr_decay;
  r.weight_decay = c.weight_decay;
  r.initial_accumulator_value = c.initial_accumulator_value;
  r.eps = c.eps;
  r.maximize = flag(c.maximize, at(what, "maximize"));
  r.precision = read(c.precision, "precision");
  return r;
}
optim::RMSpropOptions read(const clutch_optim_rmsprop_options_t* given, std::string_view what) {
  optim::RMSpropOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6, m7] = r;
  if (!given) return r;
  const clutch_optim_rmsprop_options_t c = sized(given, what);
  r.lr = c.lr;
  r.alpha = c.alpha;
  r.eps = c.eps;
  r.weight_decay = c.weight_decay;
  r.momentum = c.momentum;
  r.centered = flag(c.centered, at(what, "centered"));
  r.maximize = flag(c.maximize, at(what, "maximize"));
  r.precision = read(c.precision, "precision");
  return r;
}
optim::StepOptions read(const clutch_optim_step_options_t* given, std::string_view what) {
  optim::StepOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5] = r;
  if (!given) return r;
  const clutch_optim_step_options_t c = sized(given, what);
  r.lr = ref(c.lr);
  r.grad_scale = ref(c.grad_scale);
  r.found_inf = ref(c.found_inf);
  r.grad_factor = ref(c.grad_factor);
  if (flag(c.has_max_norm, at(what, "has_max_norm"))) r.max_norm = c.max_norm;
  r.norm_type = enumerator<optim::NormType>(c.norm_type, at(what, "norm_type"));
  return r;
}
optim::ClipOptions read(const clutch_optim_clip_options_t* given, std::string_view what) {
  optim::ClipOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_optim_clip_options_t c = sized(given, what);
  r.norm_type = enumerator<optim::NormType>(c.norm_type, at(what, "norm_type"));
  r.grad_scale = ref(c.grad_scale);
  return r;
}
optim::GradNorm read(const clutch_optim_grad_norm_t* given, std::string_view what) {
  optim::GradNorm r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_optim_grad_norm_t c = sized(given, what);
  r.norm = ref(c.norm);
  r.factor = ref(c.factor);
  return r;
}
optim::GradScalerOptions read(const clutch_optim_grad_scaler_options_t* given, std::string_view what) {
  optim::GradScalerOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4] = r;
  if (!given) return r;
  const clutch_optim_grad_scaler_options_t c = sized(given, what);
  r.init_scale = c.init_scale;
  r.growth_factor = c.growth_factor;
  r.backoff_factor = c.backoff_factor;
  r.growth_interval = narrow<int>(c.growth_interval, at(what, "growth_interval"));
  r.enabled = flag(c.enabled, at(what, "enabled"));
  return r;
}
optim::LRSchedulerOptions read(const clutch_optim_lr_scheduler_options_t* given, std::string_view what) {
  optim::LRSchedulerOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4] = r;
  if (!given) return r;
  const clutch_optim_lr_scheduler_options_t c = sized(given, what);
  r.warmup_steps = c.warmup_steps;
  r.warmup_start = c.warmup_start;
  r.decay = enumerator<optim::Decay>(c.decay, at(what, "decay"));
  r.decay_steps = c.decay_steps;
  r.end = c.end;
  return r;
}
GraphOptions read(const clutch_graph_options_t* given, std::string_view what) {
  GraphOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_graph_options_t c = sized(given, what);
  r.keep_graph = flag(c.keep_graph, at(what, "keep_graph"));
  r.backend = text(c.backend);
  r.relaxed_rounding = flag(c.relaxed_rounding, at(what, "relaxed_rounding"));
  return r;
}
CaptureOptions read(const clutch_capture_options_t* given, std::string_view what) {
  CaptureOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1] = r;
  if (!given) return r;
  const clutch_capture_options_t c = sized(given, what);
  r.mode = enumerator<CaptureMode>(c.mode, at(what, "mode"));
  r.pool = read(c.pool, "pool");
  return r;
}
GraphSaveOptions read(const clutch_graph_save_options_t* given, std::string_view what) {
  GraphSaveOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0] = r;
  if (!given) return r;
  const clutch_graph_save_options_t c = sized(given, what);
  r.binaries = flag(c.binaries, at(what, "binaries"));
  return r;
}
Geometry read(const clutch_geometry_t* given, std::string_view what) {
  Geometry r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5] = r;
  if (!given) return r;
  const clutch_geometry_t c = sized(given, what);
  r.global = c.global;
  r.local = c.local;
  r.global_y = c.global_y;
  r.local_y = c.local_y;
  r.global_z = c.global_z;
  r.local_z = c.local_z;
  return r;
}
profiler::ProfilerOptions read(const clutch_profiler_options_t* given, std::string_view what) {
  profiler::ProfilerOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5, m6, m7, m8] = r;
  if (!given) return r;
  const clutch_profiler_options_t c = sized(given, what);
  r.cpu_activity = flag(c.cpu_activity, at(what, "cpu_activity"));
  r.device_activity = flag(c.device_activity, at(what, "device_activity"));
  r.profile_memory = flag(c.profile_memory, at(what, "profile_memory"));
  r.record_shapes = flag(c.record_shapes, at(what, "record_shapes"));
  r.graph_nodes = flag(c.graph_nodes, at(what, "graph_nodes"));
  r.max_events = c.max_events;
  return r;
}
profiler::ProfileTotals read(const clutch_profiler_profile_totals_t* given, std::string_view what) {
  profiler::ProfileTotals r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2, m3, m4, m5] = r;
  if (!given) return r;
  const clutch_profiler_profile_totals_t c = sized(given, what);
  r.events = c.events;
  r.dropped = c.dropped;
  r.untimed = c.untimed;
  r.wall_us = c.wall_us;
  r.overhead_us = c.overhead_us;
  r.command_cost_us = c.command_cost_us;
  return r;
}
profiler::TraceOptions read(const clutch_profiler_trace_options_t* given, std::string_view what) {
  profiler::TraceOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_profiler_trace_options_t c = sized(given, what);
  r.names = enumerator<profiler::TraceNames>(c.names, at(what, "names"));
  r.rank = narrow<int>(c.rank, at(what, "rank"));
  r.world_size = narrow<int>(c.world_size, at(what, "world_size"));
  return r;
}
profiler::TableOptions read(const clutch_profiler_table_options_t* given, std::string_view what) {
  profiler::TableOptions r;
  // Another count of members does not compile.
  [[maybe_unused]] auto& [m0, m1, m2] = r;
  if (!given) return r;
  const clutch_profiler_table_options_t c = sized(given, what);
  r.sort_by = text(c.sort_by);
  r.row_limit = narrow<int>(c.row_limit, at(what, "row_limit"));
  r.group_by_input_shape = flag(c.group_by_input_shape, at(what, "group_by_input_shape"));
  return r;
}
void write(const DeviceTraits& value, clutch_device_traits_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_device_traits_t> c(result, what);
  c.made.type = static_cast<std::int64_t>(value.type);
  c.made.opencl_c = value.opencl_c;
  c.made.address_bits = value.address_bits;
  c.made.compute_units = value.compute_units;
  c.made.max_work_group = value.max_work_group;
  c.made.local_bytes = value.local_bytes;
  c.made.local_memory_real = value.local_memory_real;
  c.made.global_bytes = value.global_bytes;
  c.made.max_alloc_bytes = value.max_alloc_bytes;
  c.made.max_argument_bytes = value.max_argument_bytes;
  c.made.cache_bytes = value.cache_bytes;
  c.made.base_align_bits = value.base_align_bits;
  c.made.native_width_f32 = value.native_width_f32;
  c.made.native_width_f64 = value.native_width_f64;
  c.made.native_width_f16 = value.native_width_f16;
  c.made.fp64 = value.fp64;
  c.made.fp16 = value.fp16;
  c.made.sub_groups = value.sub_groups;
  c.made.native_atomics64 = value.native_atomics64;
  c.made.out_of_order = value.out_of_order;
  c.made.priority_hints = value.priority_hints;
  c.made.register_limits = value.register_limits;
  c.made.large_registers = value.large_registers;
  c.made.least_sub_group = value.least_sub_group;
  c.made.command_buffer = value.command_buffer;
  c.made.fma_exact = value.fma_exact;
  c.made.divide_exact = value.divide_exact;
  c.made.sqrt_exact = value.sqrt_exact;
  c.made.denormals = value.denormals;
  c.made.device_timer = value.device_timer;
  c.made.args_by_value = value.args_by_value;
  c.made.simulator = value.simulator;
  c.made.quirks = value.quirks;
  c.commit();
}
void write(const MemoryInfo& value, clutch_memory_info_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_memory_info_t> c(result, what);
  c.made.free = value.free;
  c.made.total = value.total;
  c.made.estimated = value.estimated;
  c.commit();
}
void write(const PoolId& value, clutch_pool_id_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_pool_id_t> c(result, what);
  c.made.first = value.first;
  c.made.second = value.second;
  c.commit();
}
void write(const CacheUsage& value, clutch_cache_usage_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_cache_usage_t> c(result, what);
  c.made.files = value.files;
  c.made.bytes = value.bytes;
  c.made.limit = value.limit;
  c.commit();
}
void write(const BuildCounters& value, clutch_build_counters_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_build_counters_t> c(result, what);
  c.made.built = value.built;
  c.made.loaded = value.loaded;
  c.made.saved = value.saved;
  c.made.packed = value.packed;
  c.commit();
}
void write(const Cost& value, clutch_cost_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_cost_t> c(result, what);
  c.made.flops = value.flops;
  c.made.bytes = value.bytes;
  c.made.flops64 = value.flops64;
  c.commit();
}
void write(const GeneratorState& value, clutch_generator_state_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_generator_state_t> c(result, what);
  c.made.seed = value.seed;
  c.made.offset = value.offset;
  c.commit();
}
void write(const Unique& value, clutch_unique_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_unique_t> c(result, what);
  if (c.has(offsetof(clutch_unique_t, values))) c.made.values = share<clutch_tensor_t>(value.values);
  if (c.has(offsetof(clutch_unique_t, inverse))) c.made.inverse = share<clutch_tensor_t>(value.inverse);
  if (c.has(offsetof(clutch_unique_t, counts))) c.made.counts = share<clutch_tensor_t>(value.counts);
  c.commit();
}
void write(const attention::BlockSize& value, clutch_attention_block_size_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_attention_block_size_t> c(result, what);
  c.made.q = value.q;
  c.made.kv = value.kv;
  c.commit();
}
void write(const attention::PagedCacheOptions& value, clutch_attention_paged_cache_options_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_attention_paged_cache_options_t> c(result, what);
  c.made.pages = value.pages;
  c.made.page_size = value.page_size;
  c.made.max_batch = value.max_batch;
  c.made.max_pages = value.max_pages;
  c.made.heads = value.heads;
  c.made.key_size = value.key_size;
  c.made.value_size = value.value_size;
  c.made.dtype = static_cast<std::int64_t>(value.dtype);
  if (c.has(offsetof(clutch_attention_paged_cache_options_t, device))) c.made.device = share<clutch_device_t>(value.device);
  c.commit();
}
void write(const attention::Varlen& value, clutch_attention_varlen_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_attention_varlen_t> c(result, what);
  if (c.has(offsetof(clutch_attention_varlen_t, cu_seq_q))) c.made.cu_seq_q = share<clutch_tensor_t>(value.cu_seq_q);
  if (c.has(offsetof(clutch_attention_varlen_t, cu_seq_kv))) c.made.cu_seq_kv = share<clutch_tensor_t>(value.cu_seq_kv);
  if (c.has(offsetof(clutch_attention_varlen_t, seqused_kv))) c.made.seqused_kv = share<clutch_tensor_t>(value.seqused_kv);
  if (c.has(offsetof(clutch_attention_varlen_t, page_table))) c.made.page_table = share<clutch_tensor_t>(value.page_table);
  c.made.page_size = value.page_size;
  c.made.max_q = value.max_q;
  c.made.max_kv = value.max_kv;
  c.commit();
}
void write(const profiler::ProfileTotals& value, clutch_profiler_profile_totals_t* result, std::string_view what) {
  // What the caller's struct has no place for is not made.
  Result<clutch_profiler_profile_totals_t> c(result, what);
  c.made.events = value.events;
  c.made.dropped = value.dropped;
  c.made.untimed = value.untimed;
  c.made.wall_us = value.wall_us;
  c.made.overhead_us = value.overhead_us;
  c.made.command_cost_us = value.command_cost_us;
  c.commit();
}

}}}  // namespace clutch::v0::capi
