/* SPDX-License-Identifier: Apache-2.0 */
/* Made by scripts/c_abi of host/capi/abi.def. Do not edit. */
#ifndef CLUTCH_PLUGIN_H
#define CLUTCH_PLUGIN_H
/*
 * Plugins of clutch: shared libraries in C that bring implementations of ops, graph backends and devices. docs/plugins.md is the guide.
 *
 * Loading: the files that CLUTCH_PLUGINS names, and those of the folder lib/clutch/plugins next to the library unless CLUTCH_PLUGIN_AUTOLOAD=0, in the order of
 *   their names, when the process first asks for devices, an op, a graph or clutch::plugins(). A plugin is never unloaded. One that fails is an Error of that
 *   call and of later ones, which names the file and the setting.
 * Query: a plugin exports one function, clutch_plugin_query(). The library calls it with its own CLUTCH_PLUGIN_ABI; the plugin gives its description, whose
 *   `abi` is that number or an earlier one that it was made for, or NULL and a text by host->set_error(). The description lives as long as the process.
 * Structs: begin with their size; the library reads the fields within it, so that a plugin of an older header works. Fields are only ever added, at the end.
 * Host: what a plugin calls, all of the C ABI among it (clutch/clutch.h), so that it links nothing. A plugin that needs libclutch as a library of its own is
 *   refused where that is another one.
 * Errors: functions return CLUTCH_OK or a code. The text is the one given by host->set_error() during the call, else that of the C function that failed last.
 *   No exception and no longjmp leaves a plugin.
 * Threads: any thread may call a plugin's functions, several at once.
 */
#include <clutch/clutch.h>

#define CLUTCH_PLUGIN_ABI 1

#if defined(_WIN32)
#define CLUTCH_PLUGIN_EXPORT __declspec(dllexport)
#else
#define CLUTCH_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The functions of clutch/clutch.h by their names without clutch_, in an order that only grows. */
typedef struct clutch_api_t {
  size_t size;
  int64_t (*abi_version)(void);
  const char* (*error_message)(void);
  const char* (*error_op)(void);
  int32_t (*error_cl_code)(void);
  const char* (*status_name)(clutch_status_t status);
  void (*device_release)(const clutch_device_t* device);
  void (*stream_release)(const clutch_stream_t* stream);
  void (*event_release)(const clutch_event_t* event);
  void (*tensor_release)(const clutch_tensor_t* tensor);
  void (*storage_handle_release)(const clutch_storage_handle_t* storage_handle);
  void (*generator_release)(const clutch_generator_t* generator);
  void (*partition_release)(const clutch_partition_t* partition);
  void (*partition_guard_release)(const clutch_partition_guard_t* partition_guard);
  void (*mem_pool_release)(const clutch_mem_pool_t* mem_pool);
  void (*pool_guard_release)(const clutch_pool_guard_t* pool_guard);
  void (*memory_label_guard_release)(const clutch_memory_label_guard_t* memory_label_guard);
  void (*host_mapping_release)(const clutch_host_mapping_t* host_mapping);
  void (*safetensors_release)(const clutch_safetensors_t* safetensors);
  void (*expr_function_release)(const clutch_expr_function_t* expr_function);
  void (*row_function_release)(const clutch_row_function_t* row_function);
  void (*linalg_packed_matrix_release)(const clutch_linalg_packed_matrix_t* packed_matrix);
  void (*sparse_semi_structured_release)(const clutch_sparse_semi_structured_t* semi_structured);
  void (*attention_mask_mod_release)(const clutch_attention_mask_mod_t* mask_mod);
  void (*attention_score_mod_release)(const clutch_attention_score_mod_t* score_mod);
  void (*attention_block_mask_release)(const clutch_attention_block_mask_t* block_mask);
  void (*attention_paged_cache_release)(const clutch_attention_paged_cache_t* paged_cache);
  void (*attention_sdpa_backends_release)(const clutch_attention_sdpa_backends_t* sdpa_backends);
  void (*optim_sgd_release)(const clutch_optim_sgd_t* sgd);
  void (*optim_adam_release)(const clutch_optim_adam_t* adam);
  void (*optim_adamw_release)(const clutch_optim_adamw_t* adamw);
  void (*optim_adagrad_release)(const clutch_optim_adagrad_t* adagrad);
  void (*optim_rmsprop_release)(const clutch_optim_rmsprop_t* rmsprop);
  void (*optim_grad_scaler_release)(const clutch_optim_grad_scaler_t* grad_scaler);
  void (*optim_lr_scheduler_release)(const clutch_optim_lr_scheduler_t* lr_scheduler);
  void (*graph_release)(const clutch_graph_t* graph);
  void (*graph_annotation_release)(const clutch_graph_annotation_t* graph_annotation);
  void (*profiler_release)(const clutch_profiler_t* profiler);
  void (*profiler_range_release)(const clutch_profiler_range_t* range);
  void (*graph_program_release)(const clutch_graph_program_t* graph_program);
  clutch_status_t (*device_count)(int64_t* result);
  clutch_status_t (*device_at)(int64_t index, clutch_device_t** result);
  clutch_status_t (*select_devices)(const char* selector, clutch_device_t** results, size_t capacity,
      size_t* count);
  clutch_status_t (*device_create)(const char* selector, clutch_device_t** result);
  clutch_status_t (*default_device)(clutch_device_t** result);
  clutch_status_t (*set_default_device)(const clutch_device_t* device);
  clutch_status_t (*current_device)(clutch_device_t** result);
  clutch_status_t (*set_current_device)(const clutch_device_t* device);
  clutch_status_t (*device_index)(const clutch_device_t* device, int64_t* result);
  clutch_status_t (*device_type)(const clutch_device_t* device, clutch_device_type_t* result);
  clutch_status_t (*device_name)(const clutch_device_t* device, char* text, size_t capacity, size_t* length);
  clutch_status_t (*device_vendor)(const clutch_device_t* device, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*device_platform)(const clutch_device_t* device, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*device_driver_version)(const clutch_device_t* device, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*device_extensions)(const clutch_device_t* device, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*device_uuid)(const clutch_device_t* device, char* text, size_t capacity, size_t* length);
  clutch_status_t (*device_selector)(const clutch_device_t* device, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*device_quirks)(const clutch_device_t* device, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*device_traits)(const clutch_device_t* device, clutch_device_traits_t* result);
  clutch_status_t (*device_supports)(const clutch_device_t* device, clutch_dtype_t dtype, int64_t* result);
  clutch_status_t (*synchronize)(const clutch_device_t* device);
  clutch_status_t (*stream_create)(const clutch_device_t* device, const clutch_stream_options_t* options,
      clutch_stream_t** result);
  clutch_status_t (*default_stream)(const clutch_device_t* device, clutch_stream_t** result);
  clutch_status_t (*current_stream)(const clutch_device_t* device, clutch_stream_t** result);
  clutch_status_t (*set_current_stream)(const clutch_stream_t* stream);
  clutch_status_t (*stream_device)(const clutch_stream_t* stream, clutch_device_t** result);
  clutch_status_t (*stream_id)(const clutch_stream_t* stream, uint64_t* result);
  clutch_status_t (*stream_priority)(const clutch_stream_t* stream, clutch_stream_priority_t* result);
  clutch_status_t (*stream_partition)(const clutch_stream_t* stream, clutch_partition_t** result);
  clutch_status_t (*stream_query)(const clutch_stream_t* stream, int64_t* result);
  clutch_status_t (*stream_synchronize)(const clutch_stream_t* stream);
  clutch_status_t (*stream_wait)(const clutch_stream_t* stream, const clutch_event_t* event);
  clutch_status_t (*stream_flush)(const clutch_stream_t* stream);
  clutch_status_t (*stream_is_capturing)(const clutch_stream_t* stream, int64_t* result);
  clutch_status_t (*stream_reset)(const clutch_stream_t* stream);
  clutch_status_t (*event_create)(clutch_event_t** result);
  clutch_status_t (*event_record)(clutch_event_t* event, const clutch_stream_t* stream);
  clutch_status_t (*event_query)(const clutch_event_t* event, int64_t* result);
  clutch_status_t (*event_wait)(const clutch_event_t* event);
  clutch_status_t (*elapsed_ms)(const clutch_event_t* start, const clutch_event_t* end, double* result);
  clutch_status_t (*partition_create)(const clutch_device_t* device,
      const clutch_partition_options_t* options, clutch_partition_t** result);
  clutch_status_t (*partition_split)(const clutch_device_t* device, const int64_t* units, size_t units_count,
      clutch_partition_t** results, size_t capacity, size_t* count);
  clutch_status_t (*partition_device)(const clutch_partition_t* partition, clutch_device_t** result);
  clutch_status_t (*partition_units)(const clutch_partition_t* partition, int64_t* result);
  clutch_status_t (*partition_first_unit)(const clutch_partition_t* partition, int64_t* result);
  clutch_status_t (*partition_isolation)(const clutch_partition_t* partition, clutch_isolation_t* result);
  clutch_status_t (*partition_workqueue_limit)(const clutch_partition_t* partition, int64_t* result);
  clutch_status_t (*partition_traits)(const clutch_partition_t* partition, clutch_device_traits_t* result);
  clutch_status_t (*partition_stream)(const clutch_partition_t* partition, clutch_stream_t** result);
  clutch_status_t (*partition_make_stream)(const clutch_partition_t* partition,
      const clutch_stream_options_t* options, clutch_stream_t** result);
  clutch_status_t (*free_units)(const clutch_device_t* device, int64_t* result);
  clutch_status_t (*partition_guard_create)(const clutch_partition_t* partition,
      clutch_partition_guard_t** result);
  clutch_status_t (*empty)(const int64_t* sizes, size_t sizes_count, const clutch_tensor_options_t* options,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*zeros)(const int64_t* sizes, size_t sizes_count, const clutch_tensor_options_t* options,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*full)(const int64_t* sizes, size_t sizes_count, double value,
      const clutch_tensor_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*arange)(double start, double end, double step, const clutch_tensor_options_t* options,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*from_bytes)(const void* data, size_t data_size, const int64_t* sizes, size_t sizes_count,
      const clutch_tensor_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*tensor_dtype)(const clutch_tensor_t* tensor, clutch_dtype_t* result);
  clutch_status_t (*tensor_device)(const clutch_tensor_t* tensor, clutch_device_t** result);
  clutch_status_t (*tensor_rank)(const clutch_tensor_t* tensor, int64_t* result);
  clutch_status_t (*tensor_sizes)(const clutch_tensor_t* tensor, int64_t* values, size_t capacity,
      size_t* count);
  clutch_status_t (*tensor_strides)(const clutch_tensor_t* tensor, int64_t* values, size_t capacity,
      size_t* count);
  clutch_status_t (*tensor_size)(const clutch_tensor_t* tensor, int64_t dim, int64_t* result);
  clutch_status_t (*tensor_stride)(const clutch_tensor_t* tensor, int64_t dim, int64_t* result);
  clutch_status_t (*tensor_numel)(const clutch_tensor_t* tensor, int64_t* result);
  clutch_status_t (*tensor_nbytes)(const clutch_tensor_t* tensor, uint64_t* result);
  clutch_status_t (*tensor_byte_offset)(const clutch_tensor_t* tensor, uint64_t* result);
  clutch_status_t (*tensor_is_contiguous)(const clutch_tensor_t* tensor, int64_t* result);
  clutch_status_t (*tensor_shares_storage)(const clutch_tensor_t* tensor, const clutch_tensor_t* other,
      int64_t* result);
  clutch_status_t (*tensor_slice)(const clutch_tensor_t* tensor, int64_t dim, int64_t begin, int64_t end,
      int64_t step, clutch_tensor_t** result);
  clutch_status_t (*tensor_select)(const clutch_tensor_t* tensor, int64_t dim, int64_t index,
      clutch_tensor_t** result);
  clutch_status_t (*tensor_transpose)(const clutch_tensor_t* tensor, int64_t dim0, int64_t dim1,
      clutch_tensor_t** result);
  clutch_status_t (*tensor_mt)(const clutch_tensor_t* tensor, clutch_tensor_t** result);
  clutch_status_t (*tensor_reshape)(const clutch_tensor_t* tensor, const int64_t* sizes, size_t sizes_count,
      clutch_tensor_t** result);
  clutch_status_t (*tensor_expand)(const clutch_tensor_t* tensor, const int64_t* sizes, size_t sizes_count,
      clutch_tensor_t** result);
  clutch_status_t (*tensor_unsqueeze)(const clutch_tensor_t* tensor, int64_t dim, clutch_tensor_t** result);
  clutch_status_t (*tensor_squeeze)(const clutch_tensor_t* tensor, int64_t dim, clutch_tensor_t** result);
  clutch_status_t (*tensor_as_strided)(const clutch_tensor_t* tensor, const int64_t* sizes,
      size_t sizes_count, const int64_t* strides, size_t strides_count, int64_t offset,
      clutch_tensor_t** result);
  clutch_status_t (*tensor_contiguous)(const clutch_tensor_t* tensor, const clutch_stream_t* stream,
      clutch_tensor_t** result);
  clutch_status_t (*tensor_clone)(const clutch_tensor_t* tensor, const clutch_stream_t* stream,
      clutch_tensor_t** result);
  clutch_status_t (*tensor_to)(const clutch_tensor_t* tensor, clutch_dtype_t dtype,
      const clutch_cast_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*tensor_to_device)(const clutch_tensor_t* tensor, const clutch_device_t* device,
      clutch_tensor_t** result);
  clutch_status_t (*tensor_read_bytes)(const clutch_tensor_t* tensor, void* destination,
      size_t destination_size, const clutch_stream_t* stream);
  clutch_status_t (*tensor_write)(const clutch_tensor_t* tensor, const void* bytes, size_t bytes_size,
      const clutch_stream_t* stream);
  clutch_status_t (*tensor_item)(const clutch_tensor_t* tensor, const clutch_stream_t* stream,
      double* result);
  clutch_status_t (*tensor_to_string)(const clutch_tensor_t* tensor, const clutch_stream_t* stream,
      char* text, size_t capacity, size_t* length);
  clutch_status_t (*tensor_share)(const clutch_tensor_t* tensor, clutch_tensor_t** result);
  clutch_status_t (*promote_types)(clutch_dtype_t a, clutch_dtype_t b, clutch_dtype_t* result);
  clutch_status_t (*dtype_from_name)(const char* name, clutch_dtype_t* result);
  clutch_status_t (*result_type)(const clutch_tensor_t* const* tensors, size_t tensors_count,
      clutch_dtype_t* result);
  clutch_status_t (*copy_)(const clutch_tensor_t* destination, const clutch_tensor_t* source,
      const clutch_copy_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*fill_)(const clutch_tensor_t* self, double value, const clutch_fill_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*arange_)(const clutch_tensor_t* self, double start, double step,
      const clutch_fill_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*storage_handle_create)(const clutch_tensor_t* tensor, clutch_storage_handle_t** result);
  clutch_status_t (*storage_handle_create_bytes)(uint64_t bytes, const clutch_device_t* device,
      const clutch_stream_t* stream, clutch_storage_handle_t** result);
  clutch_status_t (*storage_handle_bytes)(const clutch_storage_handle_t* storage_handle, uint64_t* result);
  clutch_status_t (*storage_handle_device)(const clutch_storage_handle_t* storage_handle,
      clutch_device_t** result);
  clutch_status_t (*storage_handle_has_memory)(const clutch_storage_handle_t* storage_handle,
      int64_t* result);
  clutch_status_t (*storage_handle_view)(const clutch_storage_handle_t* storage_handle, const int64_t* sizes,
      size_t sizes_count, const int64_t* strides, size_t strides_count, clutch_dtype_t dtype,
      uint64_t byte_offset, clutch_tensor_t** result);
  clutch_status_t (*host_mapping_create)(const clutch_tensor_t* tensor, clutch_map_access_t access,
      const clutch_stream_t* stream, clutch_host_mapping_t** result);
  clutch_status_t (*host_mapping_bytes)(const clutch_host_mapping_t* host_mapping, void** result,
      size_t* size);
  clutch_status_t (*host_mapping_unmap)(clutch_host_mapping_t* host_mapping);
  clutch_status_t (*interop_to_dlpack)(const clutch_tensor_t* tensor, clutch_interop_dlpack_memory_t memory,
      const clutch_stream_t* stream, struct DLManagedTensor** result);
  clutch_status_t (*interop_to_dlpack_versioned)(const clutch_tensor_t* tensor,
      clutch_interop_dlpack_memory_t memory, const clutch_stream_t* stream,
      struct DLManagedTensorVersioned** result);
  clutch_status_t (*interop_from_dlpack)(struct DLManagedTensor* managed, const clutch_device_t* device,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*interop_from_dlpack_versioned)(struct DLManagedTensorVersioned* managed,
      const clutch_device_t* device, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*interop_wrap_queue)(void* queue, clutch_stream_t** result);
  clutch_status_t (*interop_wrap_buffer)(void* buffer, const int64_t* sizes, size_t sizes_count,
      clutch_dtype_t dtype, const clutch_device_t* device, uint64_t byte_offset, clutch_tensor_t** result);
  clutch_status_t (*interop_wrap_event)(void* event, clutch_event_t** result);
  clutch_status_t (*interop_mem)(const clutch_tensor_t* tensor, void** result);
  clutch_status_t (*interop_offset)(const clutch_tensor_t* tensor, uint64_t* result);
  clutch_status_t (*interop_queue)(const clutch_stream_t* stream, void** result);
  clutch_status_t (*interop_context)(const clutch_stream_t* stream, void** result);
  clutch_status_t (*interop_event)(const clutch_event_t* event, void** result);
  clutch_status_t (*interop_device_id)(const clutch_device_t* device, void** result);
  clutch_status_t (*interop_platform_id)(const clutch_device_t* device, void** result);
  clutch_status_t (*interop_release)(void* context);
  clutch_status_t (*memory_stat)(const char* key, const clutch_device_t* device, uint64_t* result);
  clutch_status_t (*memory_stat_keys)(const clutch_device_t* device, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*memory_stat_of_pool)(const clutch_pool_id_t* pool, const char* key,
      const clutch_device_t* device, uint64_t* result);
  clutch_status_t (*memory_allocated)(const clutch_device_t* device, uint64_t* result);
  clutch_status_t (*max_memory_allocated)(const clutch_device_t* device, uint64_t* result);
  clutch_status_t (*memory_reserved)(const clutch_device_t* device, uint64_t* result);
  clutch_status_t (*max_memory_reserved)(const clutch_device_t* device, uint64_t* result);
  clutch_status_t (*reset_peak_memory_stats)(const clutch_device_t* device);
  clutch_status_t (*reset_accumulated_memory_stats)(const clutch_device_t* device);
  clutch_status_t (*empty_cache)(const clutch_device_t* device);
  clutch_status_t (*get_memory_info)(const clutch_device_t* device, clutch_memory_info_t* result);
  clutch_status_t (*set_memory_limit)(uint64_t bytes, const clutch_device_t* device);
  clutch_status_t (*set_per_process_memory_fraction)(double fraction, const clutch_device_t* device);
  clutch_status_t (*get_per_process_memory_fraction)(const clutch_device_t* device, double* result);
  clutch_status_t (*memory_address)(const clutch_tensor_t* tensor, uint64_t* result);
  clutch_status_t (*set_allocator_settings)(const char* text);
  clutch_status_t (*record_memory_history)(const clutch_memory_history_options_t* options);
  clutch_status_t (*stop_memory_history)(void);
  clutch_status_t (*dump_memory_snapshot)(const char* path);
  clutch_status_t (*new_pool_id)(clutch_pool_id_t* result);
  clutch_status_t (*mem_pool_create)(const clutch_mem_pool_options_t* options, clutch_mem_pool_t** result);
  clutch_status_t (*mem_pool_id)(const clutch_mem_pool_t* mem_pool, clutch_pool_id_t* result);
  clutch_status_t (*pool_guard_create)(const clutch_pool_id_t* pool, clutch_pool_guard_t** result);
  clutch_status_t (*memory_label_guard_create)(const char* label, clutch_memory_label_guard_t** result);
  clutch_status_t (*version)(char* text, size_t capacity, size_t* length);
  clutch_status_t (*build_info)(char* text, size_t capacity, size_t* length);
  clutch_status_t (*check_settings)(void);
  clutch_status_t (*cache_directory)(char* text, size_t capacity, size_t* length);
  clutch_status_t (*cache_usage)(clutch_cache_usage_t* result);
  clutch_status_t (*clear_cache)(clutch_cache_usage_t* result);
  clutch_status_t (*build_counters)(clutch_build_counters_t* result);
  clutch_status_t (*enqueued_cost)(clutch_cost_t* result);
  clutch_status_t (*fallback_count)(const char* kind, uint64_t* result);
  clutch_status_t (*last_plan)(char* text, size_t capacity, size_t* length);
  clutch_status_t (*load_npy)(const char* path, const clutch_device_t* device, const clutch_stream_t* stream,
      clutch_tensor_t** result);
  clutch_status_t (*read_npy)(const void* bytes, size_t bytes_size, const clutch_device_t* device,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*save_npy)(const char* path, const clutch_tensor_t* tensor, const clutch_stream_t* stream);
  clutch_status_t (*safetensors_open)(const char* path, clutch_safetensors_t** result);
  clutch_status_t (*safetensors_names)(const clutch_safetensors_t* file, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*safetensors_load)(const clutch_safetensors_t* safetensors, const char* name,
      const clutch_device_t* device, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*save_safetensors)(const char* path, const char* const* names, size_t names_count,
      const clutch_tensor_t* const* tensors, size_t tensors_count, const clutch_stream_t* stream);
  clutch_status_t (*tune_clear)(void);
  clutch_status_t (*tune_load)(const char* path);
  clutch_status_t (*tune_save)(const char* path);
  clutch_status_t (*tune_file)(char* text, size_t capacity, size_t* length);
  clutch_status_t (*expr_function_parse)(const char* text, clutch_expr_function_t** result);
  clutch_status_t (*expr_function_text)(const clutch_expr_function_t* expr_function, char* text,
      size_t capacity, size_t* length);
  clutch_status_t (*expr_function_input_count)(const clutch_expr_function_t* expr_function, int64_t* result);
  clutch_status_t (*expr_function_output_count)(const clutch_expr_function_t* expr_function, int64_t* result);
  clutch_status_t (*expr_function_param_count)(const clutch_expr_function_t* expr_function, int64_t* result);
  clutch_status_t (*expr_function_captured_count)(const clutch_expr_function_t* expr_function,
      int64_t* result);
  clutch_status_t (*expr_function_floating_inputs)(const clutch_expr_function_t* expr_function,
      int64_t* result);
  clutch_status_t (*expr_function_input_dtype)(const clutch_expr_function_t* expr_function, int64_t i,
      clutch_dtype_t* result);
  clutch_status_t (*expr_function_output_dtype)(const clutch_expr_function_t* expr_function, int64_t i,
      clutch_dtype_t* result);
  clutch_status_t (*expr_function_param_value)(const clutch_expr_function_t* expr_function, int64_t i,
      double* result);
  clutch_status_t (*expr_function_captured_tensor)(const clutch_expr_function_t* expr_function, int64_t i,
      clutch_tensor_t** result);
  clutch_status_t (*expr_function_with_params)(const clutch_expr_function_t* expr_function,
      const double* values, size_t values_count, clutch_expr_function_t** result);
  clutch_status_t (*expr_function_with_captured)(const clutch_expr_function_t* expr_function,
      const clutch_tensor_t* const* tensors, size_t tensors_count, clutch_expr_function_t** result);
  clutch_status_t (*expr_function_backward)(const clutch_expr_function_t* expr_function,
      clutch_expr_function_t** result);
  clutch_status_t (*map_out)(const clutch_tensor_t* const* outputs, size_t outputs_count,
      const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*map_dtype)(const clutch_expr_function_t* function, int64_t output,
      const clutch_tensor_t* const* inputs, size_t inputs_count, clutch_dtype_t* result);
  clutch_status_t (*map_backward_out)(const clutch_tensor_t* const* outs, size_t outs_count,
      const clutch_tensor_t* const* grad_outputs, size_t grad_outputs_count,
      const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
      const clutch_stream_t* stream);
  clutch_status_t (*captured_backward_out)(const clutch_tensor_t* const* outs, size_t outs_count,
      const clutch_tensor_t* const* grad_outputs, size_t grad_outputs_count,
      const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
      const clutch_stream_t* stream);
  clutch_status_t (*foreach_map_out)(const clutch_tensor_t* const* const* outputs,
      const size_t* outputs_sizes, size_t outputs_count, const clutch_expr_function_t* function,
      const clutch_tensor_t* const* const* inputs, const size_t* inputs_sizes, size_t inputs_count,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*addcdiv_out)(const clutch_tensor_t* out, const clutch_tensor_t* input,
      const clutch_tensor_t* tensor1, const clutch_tensor_t* tensor2, const clutch_addc_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*addcmul_out)(const clutch_tensor_t* out, const clutch_tensor_t* input,
      const clutch_tensor_t* tensor1, const clutch_tensor_t* tensor2, const clutch_addc_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*addcdiv_)(const clutch_tensor_t* self, const clutch_tensor_t* tensor1,
      const clutch_tensor_t* tensor2, const clutch_addc_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*addcmul_)(const clutch_tensor_t* self, const clutch_tensor_t* tensor1,
      const clutch_tensor_t* tensor2, const clutch_addc_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*neg_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*conj_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*abs_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sign_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*square_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*reciprocal_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sqrt_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*rsqrt_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*exp_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*exp2_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*expm1_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*log_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*log2_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*log1p_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*tanh_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sigmoid_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*erf_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sin_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*cos_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*floor_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*ceil_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*trunc_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*round_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*relu_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*silu_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*softplus_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_not_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_not_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*isnan_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*isinf_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*isfinite_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*neg_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*conj_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*abs_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*sign_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*square_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*reciprocal_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*sqrt_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*rsqrt_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*exp_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*exp2_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*expm1_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*log_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*log2_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*log1p_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*tanh_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*sigmoid_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*erf_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*sin_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*cos_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*floor_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*ceil_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*trunc_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*round_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*relu_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*silu_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*softplus_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*bitwise_not_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*logical_not_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*isnan_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*isinf_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*isfinite_)(const clutch_tensor_t* self, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*add_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sub_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*mul_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*div_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*floor_divide_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*trunc_divide_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*remainder_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*fmod_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*pow_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*minimum_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*maximum_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*eq_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*ne_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*lt_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*le_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*gt_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*ge_out)(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_and_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_or_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_xor_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_and_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_or_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_xor_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*add_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sub_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*mul_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*div_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*floor_divide_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*trunc_divide_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*remainder_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*fmod_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*pow_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*minimum_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*maximum_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*eq_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*ne_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*lt_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*le_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*gt_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*ge_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_and_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_or_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_xor_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_and_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_or_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_xor_)(const clutch_tensor_t* self, const clutch_tensor_t* b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*add_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*sub_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*mul_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*div_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*floor_divide_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*trunc_divide_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*remainder_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*fmod_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*pow_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*minimum_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*maximum_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*eq_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*ne_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*lt_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*le_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*gt_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*ge_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*bitwise_and_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*bitwise_or_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*bitwise_xor_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*logical_and_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*logical_or_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*logical_xor_number)(const clutch_tensor_t* a, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*add_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sub_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*mul_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*div_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*floor_divide_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*trunc_divide_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*remainder_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*fmod_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*pow_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*minimum_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*maximum_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*eq_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*ne_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*lt_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*le_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*gt_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*ge_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_and_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_or_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*bitwise_xor_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_and_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_or_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logical_xor_number_)(const clutch_tensor_t* self, clutch_number_t b,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*add_scaled_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, clutch_number_t alpha, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*add_scaled_)(const clutch_tensor_t* self, const clutch_tensor_t* b, clutch_number_t alpha,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*gelu_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, clutch_gelu_form_t form,
      const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*leaky_relu_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      clutch_number_t slope, const clutch_map_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*clamp_number_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      clutch_number_t low, clutch_number_t high, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*clamp_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_tensor_t* low, const clutch_tensor_t* high, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*where_out)(const clutch_tensor_t* out, const clutch_tensor_t* condition,
      const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*lerp_number_out)(const clutch_tensor_t* out, const clutch_tensor_t* start,
      const clutch_tensor_t* end, clutch_number_t weight, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*lerp_out)(const clutch_tensor_t* out, const clutch_tensor_t* start,
      const clutch_tensor_t* end, const clutch_tensor_t* weight, const clutch_map_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*cat_out)(const clutch_tensor_t* out, const clutch_tensor_t* const* tensors,
      size_t tensors_count, int64_t dim, const clutch_cat_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*stack_out)(const clutch_tensor_t* out, const clutch_tensor_t* const* tensors,
      size_t tensors_count, int64_t dim, const clutch_cat_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*real)(const clutch_tensor_t* x, clutch_tensor_t** result);
  clutch_status_t (*imag)(const clutch_tensor_t* x, clutch_tensor_t** result);
  clutch_status_t (*view_as_real)(const clutch_tensor_t* x, clutch_tensor_t** result);
  clutch_status_t (*view_as_complex)(const clutch_tensor_t* x, clutch_tensor_t** result);
  clutch_status_t (*complex_out)(const clutch_tensor_t* out, const clutch_tensor_t* re,
      const clutch_tensor_t* im, const clutch_stream_t* stream);
  clutch_status_t (*split)(const clutch_tensor_t* tensor, int64_t size, int64_t dim,
      clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*split_sizes)(const clutch_tensor_t* tensor, const int64_t* sizes, size_t sizes_count,
      int64_t dim, clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*split_copy_out)(const clutch_tensor_t* const* outs, size_t outs_count,
      const clutch_tensor_t* tensor, int64_t dim, const clutch_cat_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*foreach_copy_)(const clutch_tensor_t* const* destinations, size_t destinations_count,
      const clutch_tensor_t* const* sources, size_t sources_count, const clutch_cat_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*cumsum_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim,
      const clutch_cumsum_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*generator_create)(const clutch_device_t* device, uint64_t seed,
      const clutch_stream_t* stream, clutch_generator_t** result);
  clutch_status_t (*default_generator)(const clutch_device_t* device, const clutch_stream_t* stream,
      clutch_generator_t** result);
  clutch_status_t (*manual_seed)(uint64_t seed, const clutch_device_t* device, const clutch_stream_t* stream);
  clutch_status_t (*generator_device)(const clutch_generator_t* generator, clutch_device_t** result);
  clutch_status_t (*generator_manual_seed)(const clutch_generator_t* generator, uint64_t seed,
      const clutch_stream_t* stream);
  clutch_status_t (*generator_set_state)(const clutch_generator_t* generator,
      const clutch_generator_state_t* state, const clutch_stream_t* stream);
  clutch_status_t (*generator_state)(const clutch_generator_t* generator, const clutch_stream_t* stream,
      clutch_generator_state_t* result);
  clutch_status_t (*generator_state_tensor)(const clutch_generator_t* generator, clutch_tensor_t** result);
  clutch_status_t (*uniform_)(const clutch_tensor_t* self, const clutch_uniform_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*normal_)(const clutch_tensor_t* self, const clutch_normal_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*random_range_)(const clutch_tensor_t* self, int64_t from, int64_t to,
      const clutch_draw_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*random_)(const clutch_tensor_t* self, const clutch_draw_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*bernoulli_)(const clutch_tensor_t* self, double p, const clutch_draw_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*bernoulli_tensor_)(const clutch_tensor_t* self, const clutch_tensor_t* p,
      const clutch_draw_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*exponential_)(const clutch_tensor_t* self, double lambda,
      const clutch_draw_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*randperm)(int64_t n, const clutch_permutation_options_t* options,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*rand)(const int64_t* sizes, size_t sizes_count, const clutch_random_options_t* options,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*randn)(const int64_t* sizes, size_t sizes_count, const clutch_random_options_t* options,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*reduce_out)(const clutch_tensor_t* out, clutch_reduce_t op,
      const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sum_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*mean_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*prod_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*amin_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*amax_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*any_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*all_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*argmin_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*argmax_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*logsumexp_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*count_nonzero_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*var_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, double correction,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*norm_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, double p,
      const clutch_reduce_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sum_to_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_stream_t* stream);
  clutch_status_t (*row_function_create)(const clutch_dtype_t* inputs, size_t inputs_count,
      const clutch_reduce_t* ops, size_t ops_count, const clutch_expr_function_t* const* values,
      size_t values_count, const clutch_expr_function_t* elements, const clutch_expr_function_t* results,
      clutch_row_function_t** result);
  clutch_status_t (*row_function_input_count)(const clutch_row_function_t* row_function, int64_t* result);
  clutch_status_t (*row_function_element_count)(const clutch_row_function_t* row_function, int64_t* result);
  clutch_status_t (*row_function_result_count)(const clutch_row_function_t* row_function, int64_t* result);
  clutch_status_t (*rowwise_out)(const clutch_tensor_t* const* outputs, size_t outputs_count,
      const clutch_row_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
      const clutch_rowwise_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*nn_softmax_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim,
      const clutch_stream_t* stream);
  clutch_status_t (*nn_log_softmax_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim,
      const clutch_stream_t* stream);
  clutch_status_t (*nn_softmax_backward_out)(const clutch_tensor_t* out, const clutch_tensor_t* grad,
      const clutch_tensor_t* y, int64_t dim, const clutch_stream_t* stream);
  clutch_status_t (*nn_log_softmax_backward_out)(const clutch_tensor_t* out, const clutch_tensor_t* grad,
      const clutch_tensor_t* y, int64_t dim, const clutch_stream_t* stream);
  clutch_status_t (*nn_layer_norm_out)(const clutch_nn_layer_norm_result_t* out, const clutch_tensor_t* x,
      const clutch_tensor_t* weight, const clutch_tensor_t* bias, const clutch_nn_norm_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*nn_layer_norm_backward_out)(const clutch_nn_layer_norm_gradients_t* out,
      const clutch_tensor_t* grad, const clutch_tensor_t* x, const clutch_tensor_t* mean,
      const clutch_tensor_t* rstd, const clutch_tensor_t* weight, const clutch_nn_norm_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*nn_rms_norm_out)(const clutch_nn_rms_norm_result_t* out, const clutch_tensor_t* x,
      const clutch_tensor_t* weight, const clutch_nn_norm_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*nn_rms_norm_backward_out)(const clutch_nn_rms_norm_gradients_t* out,
      const clutch_tensor_t* grad, const clutch_tensor_t* x, const clutch_tensor_t* rrms,
      const clutch_tensor_t* weight, const clutch_nn_norm_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*nn_cross_entropy_out)(const clutch_nn_cross_entropy_result_t* out,
      const clutch_tensor_t* logits, const clutch_tensor_t* target,
      const clutch_nn_cross_entropy_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*nn_cross_entropy_backward_out)(const clutch_tensor_t* out, const clutch_tensor_t* grad,
      const clutch_tensor_t* logits, const clutch_tensor_t* target,
      const clutch_nn_cross_entropy_result_t* result, const clutch_nn_cross_entropy_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*nn_embedding_out)(const clutch_tensor_t* out, const clutch_tensor_t* weight,
      const clutch_tensor_t* index, const clutch_stream_t* stream);
  clutch_status_t (*nn_embedding_backward_out)(const clutch_tensor_t* out, const clutch_tensor_t* grad,
      const clutch_tensor_t* index, int64_t rows, const clutch_nn_embedding_backward_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*sort_out)(const clutch_sorted_t* out, const clutch_tensor_t* x, int64_t dim,
      const clutch_sort_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*argsort_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim,
      const clutch_sort_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*topk_out)(const clutch_sorted_t* out, const clutch_tensor_t* x, int64_t k, int64_t dim,
      const clutch_topk_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*kthvalue_out)(const clutch_sorted_t* out, const clutch_tensor_t* x, int64_t k,
      int64_t dim, const clutch_kthvalue_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*unique)(const clutch_tensor_t* x, const clutch_unique_options_t* options,
      const clutch_stream_t* stream, clutch_unique_t* result);
  clutch_status_t (*unique_consecutive)(const clutch_tensor_t* x, const clutch_unique_options_t* options,
      const clutch_stream_t* stream, clutch_unique_t* result);
  clutch_status_t (*nonzero)(const clutch_tensor_t* x, const clutch_nonzero_options_t* options,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*nonzero_static_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t size,
      const clutch_nonzero_static_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*masked_select)(const clutch_tensor_t* x, const clutch_tensor_t* mask,
      const clutch_nonzero_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*index_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_tensor_t* const* indices, size_t indices_count, const clutch_stream_t* stream);
  clutch_status_t (*index_put_out)(const clutch_tensor_t* out, const clutch_tensor_t* self,
      const clutch_tensor_t* const* indices, size_t indices_count, const clutch_tensor_t* values,
      const clutch_index_put_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*index_put_)(const clutch_tensor_t* self, const clutch_tensor_t* const* indices,
      size_t indices_count, const clutch_tensor_t* values, const clutch_index_put_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*gather_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim,
      const clutch_tensor_t* index, const clutch_stream_t* stream);
  clutch_status_t (*gather_backward_out)(const clutch_tensor_t* out, const clutch_tensor_t* grad, int64_t dim,
      const clutch_tensor_t* index, const clutch_stream_t* stream);
  clutch_status_t (*index_select_out)(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim,
      const clutch_tensor_t* index, const clutch_stream_t* stream);
  clutch_status_t (*scatter_reduce_out)(const clutch_tensor_t* out, const clutch_tensor_t* self, int64_t dim,
      const clutch_tensor_t* index, const clutch_tensor_t* src, const clutch_scatter_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*scatter_reduce_)(const clutch_tensor_t* self, int64_t dim, const clutch_tensor_t* index,
      const clutch_tensor_t* src, const clutch_scatter_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*scatter_reduce_backward_out)(const clutch_scatter_gradients_t* out,
      const clutch_tensor_t* grad, const clutch_tensor_t* result, const clutch_tensor_t* self, int64_t dim,
      const clutch_tensor_t* index, const clutch_tensor_t* src, const clutch_scatter_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*segment_reduce_out)(const clutch_tensor_t* out, const clutch_tensor_t* data,
      const clutch_tensor_t* offsets, const clutch_segment_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*segment_reduce_backward_out)(const clutch_tensor_t* out, const clutch_tensor_t* grad,
      const clutch_tensor_t* result, const clutch_tensor_t* data, const clutch_tensor_t* offsets,
      const clutch_segment_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*group_by_out)(const clutch_groups_t* out, const clutch_tensor_t* index, int64_t groups,
      const clutch_group_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_packed_matrix_create)(const clutch_tensor_t* b, const clutch_stream_t* stream,
      clutch_linalg_packed_matrix_t** result);
  clutch_status_t (*linalg_packed_matrix_sizes)(const clutch_linalg_packed_matrix_t* packed_matrix,
      int64_t* values, size_t capacity, size_t* count);
  clutch_status_t (*linalg_packed_matrix_dtype)(const clutch_linalg_packed_matrix_t* packed_matrix,
      clutch_dtype_t* result);
  clutch_status_t (*linalg_packed_matrix_nbytes)(const clutch_linalg_packed_matrix_t* packed_matrix,
      uint64_t* result);
  clutch_status_t (*linalg_matmul_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_matmul_packed_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_linalg_packed_matrix_t* b, const clutch_linalg_matmul_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*linalg_matmul_function_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_expr_function_t* f, const clutch_tensor_t* const* inputs,
      size_t inputs_count, const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_matmul_packed_function_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_linalg_packed_matrix_t* b, const clutch_expr_function_t* f,
      const clutch_tensor_t* const* inputs, size_t inputs_count,
      const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_product_dtype)(clutch_dtype_t a, clutch_dtype_t b, const char* op,
      clutch_dtype_t* result);
  clutch_status_t (*linalg_linear_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_tensor_t* weight, const clutch_tensor_t* bias,
      const clutch_linalg_linear_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_linear_packed_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_linalg_packed_matrix_t* weight, const clutch_tensor_t* bias,
      const clutch_linalg_linear_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_matmul_backward_out)(const clutch_linalg_matmul_gradients_t* out,
      const clutch_tensor_t* grad, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_linalg_matmul_backward_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_matmul_function_backward_out)(const clutch_linalg_matmul_gradients_t* out,
      const clutch_tensor_t* grad, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_expr_function_t* f, const clutch_tensor_t* const* inputs, size_t inputs_count,
      const clutch_linalg_matmul_backward_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_linear_backward_out)(const clutch_linalg_linear_gradients_t* out,
      const clutch_tensor_t* grad, const clutch_tensor_t* x, const clutch_tensor_t* weight,
      const clutch_tensor_t* bias, const clutch_linalg_linear_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*linalg_scaled_matmul_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_tensor_t* b, const clutch_tensor_t* scale_a, const clutch_tensor_t* scale_b,
      const clutch_linalg_scaled_matmul_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_scaled_matmul_packed_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_linalg_packed_matrix_t* b, const clutch_tensor_t* scale_a, const clutch_tensor_t* scale_b,
      const clutch_linalg_scaled_matmul_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_quantized_matmul_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_linalg_quantization_t* of_a, const clutch_tensor_t* b,
      const clutch_linalg_quantization_t* of_b, const clutch_linalg_quantized_matmul_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*linalg_eigh_out)(const clutch_tensor_t* w, const clutch_tensor_t* v,
      const clutch_linalg_eigh_status_t* status, const clutch_tensor_t* a,
      const clutch_linalg_eigh_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_eigvalsh_out)(const clutch_tensor_t* w, const clutch_linalg_eigh_status_t* status,
      const clutch_tensor_t* a, const clutch_linalg_eigh_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*linalg_eigh_backward_out)(const clutch_linalg_eigh_gradient_t* out,
      const clutch_tensor_t* grad_w, const clutch_tensor_t* grad_v, const clutch_tensor_t* w,
      const clutch_tensor_t* v, const clutch_linalg_eigh_backward_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*linalg_require_gauge)(const clutch_tensor_t* gauge, double tolerance,
      const clutch_stream_t* stream);
  clutch_status_t (*linalg_require_converged)(const clutch_linalg_eigh_status_t* status,
      const clutch_stream_t* stream);
  clutch_status_t (*sparse_prune_2_4_out)(const clutch_tensor_t* out, const clutch_tensor_t* w,
      const clutch_sparse_prune_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sparse_mask_2_4_out)(const clutch_tensor_t* out, const clutch_tensor_t* w,
      const clutch_sparse_prune_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sparse_apply_mask_out)(const clutch_tensor_t* out, const clutch_tensor_t* w,
      const clutch_tensor_t* mask, const clutch_stream_t* stream);
  clutch_status_t (*sparse_to_bitmask_out)(const clutch_tensor_t* out, const clutch_tensor_t* mask,
      const clutch_stream_t* stream);
  clutch_status_t (*sparse_from_bitmask_out)(const clutch_tensor_t* out, const clutch_tensor_t* bits,
      const clutch_stream_t* stream);
  clutch_status_t (*sparse_is_2_4_out)(const clutch_tensor_t* out, const clutch_tensor_t* w,
      const clutch_stream_t* stream);
  clutch_status_t (*sparse_require_2_4)(const clutch_tensor_t* w, const clutch_stream_t* stream);
  clutch_status_t (*sparse_semi_structured_create)(const clutch_tensor_t* values,
      const clutch_tensor_t* metadata, int64_t k, clutch_sparse_semi_structured_t** result);
  clutch_status_t (*sparse_compress)(const clutch_tensor_t* w,
      const clutch_sparse_compress_options_t* options, const clutch_stream_t* stream,
      clutch_sparse_semi_structured_t** result);
  clutch_status_t (*sparse_semi_structured_sizes)(const clutch_sparse_semi_structured_t* semi_structured,
      int64_t* values, size_t capacity, size_t* count);
  clutch_status_t (*sparse_semi_structured_dtype)(const clutch_sparse_semi_structured_t* semi_structured,
      clutch_dtype_t* result);
  clutch_status_t (*sparse_semi_structured_nbytes)(const clutch_sparse_semi_structured_t* semi_structured,
      uint64_t* result);
  clutch_status_t (*sparse_semi_structured_values)(const clutch_sparse_semi_structured_t* semi_structured,
      clutch_tensor_t** result);
  clutch_status_t (*sparse_semi_structured_metadata)(const clutch_sparse_semi_structured_t* semi_structured,
      clutch_tensor_t** result);
  clutch_status_t (*sparse_semi_structured_info)(const clutch_sparse_semi_structured_t* semi_structured,
      clutch_tensor_t** result);
  clutch_status_t (*sparse_decompress_out)(const clutch_tensor_t* out,
      const clutch_sparse_semi_structured_t* s, const clutch_stream_t* stream);
  clutch_status_t (*sparse_to_cutlass_out)(const clutch_sparse_cutlass_layout_t* out,
      const clutch_sparse_semi_structured_t* s, const clutch_stream_t* stream);
  clutch_status_t (*sparse_from_cutlass)(const clutch_sparse_cutlass_layout_t* layout,
      const clutch_stream_t* stream, clutch_sparse_semi_structured_t** result);
  clutch_status_t (*sparse_matmul_out)(const clutch_tensor_t* out, const clutch_sparse_semi_structured_t* w,
      const clutch_tensor_t* b, const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sparse_matmul_function_out)(const clutch_tensor_t* out,
      const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* b, const clutch_expr_function_t* f,
      const clutch_tensor_t* const* inputs, size_t inputs_count,
      const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sparse_matmul_transposed_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_sparse_semi_structured_t* w, const clutch_linalg_matmul_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*sparse_matmul_transposed_function_out)(const clutch_tensor_t* out,
      const clutch_tensor_t* a, const clutch_sparse_semi_structured_t* w, const clutch_expr_function_t* f,
      const clutch_tensor_t* const* inputs, size_t inputs_count,
      const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sparse_scaled_matmul_out)(const clutch_tensor_t* out,
      const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* b, const clutch_tensor_t* scale_w,
      const clutch_tensor_t* scale_b, const clutch_linalg_scaled_matmul_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*sparse_scaled_matmul_transposed_out)(const clutch_tensor_t* out, const clutch_tensor_t* a,
      const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* scale_a,
      const clutch_tensor_t* scale_w, const clutch_linalg_scaled_matmul_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*sparse_linear_out)(const clutch_tensor_t* out, const clutch_tensor_t* x,
      const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* bias,
      const clutch_linalg_linear_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sparse_linear_backward_out)(const clutch_linalg_linear_gradients_t* out,
      const clutch_tensor_t* grad, const clutch_tensor_t* x, const clutch_sparse_semi_structured_t* w,
      const clutch_tensor_t* bias, const clutch_sparse_linear_backward_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*sparse_mask_of_out)(const clutch_tensor_t* out, const clutch_sparse_semi_structured_t* w,
      const clutch_stream_t* stream);
  clutch_status_t (*sparse_spmm_out)(const clutch_tensor_t* out, const clutch_sparse_csr_t* a,
      const clutch_tensor_t* b, const clutch_sparse_spmm_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*sparse_spmm_backward_out)(const clutch_sparse_spmm_gradients_t* out,
      const clutch_tensor_t* grad, const clutch_tensor_t* result, const clutch_sparse_csr_t* a,
      const clutch_tensor_t* b, const clutch_sparse_spmm_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*attention_mask_mod_create)(const clutch_expr_function_t* function,
      clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_causal)(int64_t offset, clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_sliding_window)(int64_t window, clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_prefix_lm)(const clutch_tensor_t* prefix, clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_prefix_lm_number)(int64_t prefix, clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_document)(const clutch_tensor_t* ids, clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_dilated)(int64_t window, int64_t dilation,
      clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_causal_lower_right)(const clutch_attention_varlen_t* varlen, int64_t q_len,
      int64_t kv_len, clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_mask_mod_and)(const clutch_attention_mask_mod_t* a,
      const clutch_attention_mask_mod_t* b, clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_mask_mod_or)(const clutch_attention_mask_mod_t* a,
      const clutch_attention_mask_mod_t* b, clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_mask_mod_not)(const clutch_attention_mask_mod_t* a,
      clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_mask_mod_function)(const clutch_attention_mask_mod_t* mask_mod,
      clutch_expr_function_t** result);
  clutch_status_t (*attention_score_mod_create)(const clutch_expr_function_t* f32,
      const clutch_expr_function_t* f64, clutch_attention_score_mod_t** result);
  clutch_status_t (*attention_alibi)(const clutch_tensor_t* slopes, clutch_attention_score_mod_t** result);
  clutch_status_t (*attention_alibi_slopes)(int64_t heads, const clutch_device_t* device,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*attention_softcap)(double cap, clutch_attention_score_mod_t** result);
  clutch_status_t (*attention_relative_bias)(clutch_attention_score_mod_t** result);
  clutch_status_t (*attention_relative_bias_table)(const clutch_tensor_t* table,
      clutch_attention_score_mod_t** result);
  clutch_status_t (*attention_create_block_mask)(const clutch_attention_mask_mod_t* mask,
      const clutch_attention_block_mask_options_t* options, const clutch_stream_t* stream,
      clutch_attention_block_mask_t** result);
  clutch_status_t (*attention_block_mask_from_lists)(const clutch_tensor_t* kv_num_blocks,
      const clutch_tensor_t* kv_indices, const clutch_tensor_t* full_kv_num_blocks,
      const clutch_tensor_t* full_kv_indices, const clutch_attention_mask_mod_t* mask,
      const clutch_attention_block_mask_options_t* options, const clutch_stream_t* stream,
      clutch_attention_block_mask_t** result);
  clutch_status_t (*attention_block_mask_q_len)(const clutch_attention_block_mask_t* block_mask,
      int64_t* result);
  clutch_status_t (*attention_block_mask_kv_len)(const clutch_attention_block_mask_t* block_mask,
      int64_t* result);
  clutch_status_t (*attention_block_mask_block)(const clutch_attention_block_mask_t* block_mask,
      clutch_attention_block_size_t* result);
  clutch_status_t (*attention_block_mask_mask_mod)(const clutch_attention_block_mask_t* block_mask,
      clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_block_mask_kv_num_blocks)(const clutch_attention_block_mask_t* block_mask,
      clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_kv_indices)(const clutch_attention_block_mask_t* block_mask,
      clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_full_kv_num_blocks)(const clutch_attention_block_mask_t* block_mask,
      clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_full_kv_indices)(const clutch_attention_block_mask_t* block_mask,
      clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_q_num_blocks)(const clutch_attention_block_mask_t* block_mask,
      clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_q_indices)(const clutch_attention_block_mask_t* block_mask,
      clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_full_q_num_blocks)(const clutch_attention_block_mask_t* block_mask,
      clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_full_q_indices)(const clutch_attention_block_mask_t* block_mask,
      clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_kinds)(const clutch_attention_block_mask_t* block_mask,
      clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_to_dense)(const clutch_attention_block_mask_t* block_mask,
      const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*attention_block_mask_slice)(const clutch_attention_block_mask_t* block_mask,
      int64_t batch_begin, int64_t batch_end, int64_t head_begin, int64_t head_end,
      const clutch_stream_t* stream, clutch_attention_block_mask_t** result);
  clutch_status_t (*attention_block_mask_adjust)(const clutch_attention_block_mask_t* block_mask,
      int64_t q_len, int64_t kv_len, const clutch_stream_t* stream, clutch_attention_block_mask_t** result);
  clutch_status_t (*attention_block_mask_sparsity)(const clutch_attention_block_mask_t* block_mask,
      const clutch_stream_t* stream, double* result);
  clutch_status_t (*attention_block_mask_to_string)(const clutch_attention_block_mask_t* block_mask,
      const clutch_stream_t* stream, char* text, size_t capacity, size_t* length);
  clutch_status_t (*attention_flex_out)(const clutch_attention_flex_result_t* results,
      const clutch_tensor_t* q, const clutch_tensor_t* k, const clutch_tensor_t* v,
      const clutch_attention_flex_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*attention_flex_backward_out)(const clutch_attention_flex_gradients_t* out,
      const clutch_tensor_t* grad_out, const clutch_tensor_t* q, const clutch_tensor_t* k,
      const clutch_tensor_t* v, const clutch_attention_flex_result_t* results,
      const clutch_attention_flex_options_t* options,
      const clutch_attention_flex_backward_options_t* backward, const clutch_stream_t* stream);
  clutch_status_t (*attention_varlen_attn_out)(const clutch_attention_flex_result_t* out,
      const clutch_tensor_t* q, const clutch_tensor_t* k, const clutch_tensor_t* v,
      const clutch_attention_flex_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*attention_varlen_attn_backward_out)(const clutch_attention_flex_gradients_t* out,
      const clutch_tensor_t* grad_out, const clutch_tensor_t* q, const clutch_tensor_t* k,
      const clutch_tensor_t* v, const clutch_attention_flex_result_t* results,
      const clutch_attention_flex_options_t* options,
      const clutch_attention_flex_backward_options_t* backward, const clutch_stream_t* stream);
  clutch_status_t (*attention_sdpa_out)(const clutch_attention_sdpa_result_t* out, const clutch_tensor_t* q,
      const clutch_tensor_t* k, const clutch_tensor_t* v, const clutch_attention_sdpa_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*attention_sdpa_backward_out)(const clutch_attention_flex_gradients_t* out,
      const clutch_tensor_t* grad_out, const clutch_tensor_t* q, const clutch_tensor_t* k,
      const clutch_tensor_t* v, const clutch_attention_sdpa_result_t* result,
      const clutch_attention_sdpa_options_t* options,
      const clutch_attention_flex_backward_options_t* backward, const clutch_stream_t* stream);
  clutch_status_t (*attention_sdpa_backends_create)(const clutch_attention_sdpa_backend_t* order,
      size_t order_count, clutch_attention_sdpa_backends_t** result);
  clutch_status_t (*attention_multi_head_attention_out)(const clutch_attention_multi_head_result_t* out,
      const clutch_tensor_t* x, const clutch_attention_multi_head_weights_t* weights,
      const clutch_attention_flex_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*attention_multi_head_attention_backward_out)(const clutch_attention_multi_head_gradients_t* out,
      const clutch_tensor_t* grad_out, const clutch_tensor_t* x,
      const clutch_attention_multi_head_weights_t* weights,
      const clutch_attention_multi_head_result_t* result, const clutch_attention_flex_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*attention_paged_cache_create)(const clutch_attention_paged_cache_options_t* options,
      const clutch_stream_t* stream, clutch_attention_paged_cache_t** result);
  clutch_status_t (*attention_paged_cache_keys)(const clutch_attention_paged_cache_t* paged_cache,
      clutch_tensor_t** result);
  clutch_status_t (*attention_paged_cache_values)(const clutch_attention_paged_cache_t* paged_cache,
      clutch_tensor_t** result);
  clutch_status_t (*attention_paged_cache_page_table)(const clutch_attention_paged_cache_t* paged_cache,
      clutch_tensor_t** result);
  clutch_status_t (*attention_paged_cache_physical_to_logical)(const clutch_attention_paged_cache_t* paged_cache,
      clutch_tensor_t** result);
  clutch_status_t (*attention_paged_cache_options)(const clutch_attention_paged_cache_t* paged_cache,
      clutch_attention_paged_cache_options_t* result);
  clutch_status_t (*attention_paged_cache_capacity)(const clutch_attention_paged_cache_t* paged_cache,
      int64_t sequence, int64_t* result);
  clutch_status_t (*attention_paged_cache_free_pages)(const clutch_attention_paged_cache_t* paged_cache,
      int64_t* result);
  clutch_status_t (*attention_paged_cache_reserve)(clutch_attention_paged_cache_t* paged_cache,
      int64_t sequence, int64_t length, const clutch_stream_t* stream);
  clutch_status_t (*attention_paged_cache_erase)(clutch_attention_paged_cache_t* paged_cache,
      int64_t sequence, const clutch_stream_t* stream);
  clutch_status_t (*attention_paged_cache_assign)(const clutch_attention_paged_cache_t* paged_cache,
      const clutch_tensor_t* sequences, const clutch_tensor_t* positions, const clutch_tensor_t* k,
      const clutch_tensor_t* v, const clutch_stream_t* stream);
  clutch_status_t (*attention_paged_cache_varlen)(const clutch_attention_paged_cache_t* paged_cache,
      const clutch_tensor_t* lengths, const clutch_tensor_t* sequences, const clutch_stream_t* stream,
      clutch_attention_varlen_t* result);
  clutch_status_t (*attention_paged_cache_physical)(const clutch_attention_paged_cache_t* paged_cache,
      const clutch_attention_block_mask_t* logical, const clutch_tensor_t* sequences,
      const clutch_stream_t* stream, clutch_attention_block_mask_t** result);
  clutch_status_t (*attention_paged_cache_physical_mask)(const clutch_attention_paged_cache_t* paged_cache,
      const clutch_attention_mask_mod_t* logical, const clutch_tensor_t* sequences,
      clutch_attention_mask_mod_t** result);
  clutch_status_t (*attention_paged_cache_physical_score)(const clutch_attention_paged_cache_t* paged_cache,
      const clutch_attention_score_mod_t* logical, const clutch_tensor_t* sequences,
      clutch_attention_score_mod_t** result);
  clutch_status_t (*optim_sgd_create)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_optim_sgd_options_t* options, const clutch_stream_t* stream, clutch_optim_sgd_t** result);
  clutch_status_t (*optim_adam_create)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_optim_adam_options_t* options, const clutch_stream_t* stream,
      clutch_optim_adam_t** result);
  clutch_status_t (*optim_adamw_create)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_optim_adamw_options_t* options, const clutch_stream_t* stream,
      clutch_optim_adamw_t** result);
  clutch_status_t (*optim_adagrad_create)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_optim_adagrad_options_t* options, const clutch_stream_t* stream,
      clutch_optim_adagrad_t** result);
  clutch_status_t (*optim_rmsprop_create)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_optim_rmsprop_options_t* options, const clutch_stream_t* stream,
      clutch_optim_rmsprop_t** result);
  clutch_status_t (*optim_sgd_add_param_group)(clutch_optim_sgd_t* sgd, const clutch_tensor_t* const* params,
      size_t params_count, const clutch_optim_sgd_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*optim_adam_add_param_group)(clutch_optim_adam_t* adam,
      const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_adam_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_adamw_add_param_group)(clutch_optim_adamw_t* adamw,
      const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_adamw_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_adagrad_add_param_group)(clutch_optim_adagrad_t* adagrad,
      const clutch_tensor_t* const* params, size_t params_count,
      const clutch_optim_adagrad_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*optim_rmsprop_add_param_group)(clutch_optim_rmsprop_t* rmsprop,
      const clutch_tensor_t* const* params, size_t params_count,
      const clutch_optim_rmsprop_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*optim_sgd_step)(clutch_optim_sgd_t* sgd, const clutch_tensor_t* const* grads,
      size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream,
      clutch_tensor_t** result);
  clutch_status_t (*optim_adam_step)(clutch_optim_adam_t* adam, const clutch_tensor_t* const* grads,
      size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream,
      clutch_tensor_t** result);
  clutch_status_t (*optim_adamw_step)(clutch_optim_adamw_t* adamw, const clutch_tensor_t* const* grads,
      size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream,
      clutch_tensor_t** result);
  clutch_status_t (*optim_adagrad_step)(clutch_optim_adagrad_t* adagrad, const clutch_tensor_t* const* grads,
      size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream,
      clutch_tensor_t** result);
  clutch_status_t (*optim_rmsprop_step)(clutch_optim_rmsprop_t* rmsprop, const clutch_tensor_t* const* grads,
      size_t grads_count, const clutch_optim_step_options_t* options, const clutch_stream_t* stream,
      clutch_tensor_t** result);
  clutch_status_t (*optim_sgd_groups)(const clutch_optim_sgd_t* sgd, uint64_t* result);
  clutch_status_t (*optim_adam_groups)(const clutch_optim_adam_t* adam, uint64_t* result);
  clutch_status_t (*optim_adamw_groups)(const clutch_optim_adamw_t* adamw, uint64_t* result);
  clutch_status_t (*optim_adagrad_groups)(const clutch_optim_adagrad_t* adagrad, uint64_t* result);
  clutch_status_t (*optim_rmsprop_groups)(const clutch_optim_rmsprop_t* rmsprop, uint64_t* result);
  clutch_status_t (*optim_sgd_lr)(const clutch_optim_sgd_t* sgd, uint64_t group, double* result);
  clutch_status_t (*optim_adam_lr)(const clutch_optim_adam_t* adam, uint64_t group, double* result);
  clutch_status_t (*optim_adamw_lr)(const clutch_optim_adamw_t* adamw, uint64_t group, double* result);
  clutch_status_t (*optim_adagrad_lr)(const clutch_optim_adagrad_t* adagrad, uint64_t group, double* result);
  clutch_status_t (*optim_rmsprop_lr)(const clutch_optim_rmsprop_t* rmsprop, uint64_t group, double* result);
  clutch_status_t (*optim_sgd_set_lr)(clutch_optim_sgd_t* sgd, double lr, uint64_t group);
  clutch_status_t (*optim_adam_set_lr)(clutch_optim_adam_t* adam, double lr, uint64_t group);
  clutch_status_t (*optim_adamw_set_lr)(clutch_optim_adamw_t* adamw, double lr, uint64_t group);
  clutch_status_t (*optim_adagrad_set_lr)(clutch_optim_adagrad_t* adagrad, double lr, uint64_t group);
  clutch_status_t (*optim_rmsprop_set_lr)(clutch_optim_rmsprop_t* rmsprop, double lr, uint64_t group);
  clutch_status_t (*optim_sgd_params)(const clutch_optim_sgd_t* sgd, uint64_t group,
      clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_adam_params)(const clutch_optim_adam_t* adam, uint64_t group,
      clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_adamw_params)(const clutch_optim_adamw_t* adamw, uint64_t group,
      clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_adagrad_params)(const clutch_optim_adagrad_t* adagrad, uint64_t group,
      clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_rmsprop_params)(const clutch_optim_rmsprop_t* rmsprop, uint64_t group,
      clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_sgd_save)(const clutch_optim_sgd_t* sgd, const char* path,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_adam_save)(const clutch_optim_adam_t* adam, const char* path,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_adamw_save)(const clutch_optim_adamw_t* adamw, const char* path,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_adagrad_save)(const clutch_optim_adagrad_t* adagrad, const char* path,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_rmsprop_save)(const clutch_optim_rmsprop_t* rmsprop, const char* path,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_sgd_load)(clutch_optim_sgd_t* sgd, const char* path, const clutch_stream_t* stream);
  clutch_status_t (*optim_adam_load)(clutch_optim_adam_t* adam, const char* path,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_adamw_load)(clutch_optim_adamw_t* adamw, const char* path,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_adagrad_load)(clutch_optim_adagrad_t* adagrad, const char* path,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_rmsprop_load)(clutch_optim_rmsprop_t* rmsprop, const char* path,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_sgd_state)(const clutch_optim_sgd_t* sgd, char* names, size_t names_capacity,
      size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_adam_state)(const clutch_optim_adam_t* adam, char* names, size_t names_capacity,
      size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_adamw_state)(const clutch_optim_adamw_t* adamw, char* names, size_t names_capacity,
      size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_adagrad_state)(const clutch_optim_adagrad_t* adagrad, char* names,
      size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_rmsprop_state)(const clutch_optim_rmsprop_t* rmsprop, char* names,
      size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_sgd_load_state)(clutch_optim_sgd_t* sgd, const char* const* names,
      const clutch_tensor_t* const* tensors, size_t count, const clutch_stream_t* stream);
  clutch_status_t (*optim_adam_load_state)(clutch_optim_adam_t* adam, const char* const* names,
      const clutch_tensor_t* const* tensors, size_t count, const clutch_stream_t* stream);
  clutch_status_t (*optim_adamw_load_state)(clutch_optim_adamw_t* adamw, const char* const* names,
      const clutch_tensor_t* const* tensors, size_t count, const clutch_stream_t* stream);
  clutch_status_t (*optim_adagrad_load_state)(clutch_optim_adagrad_t* adagrad, const char* const* names,
      const clutch_tensor_t* const* tensors, size_t count, const clutch_stream_t* stream);
  clutch_status_t (*optim_rmsprop_load_state)(clutch_optim_rmsprop_t* rmsprop, const char* const* names,
      const clutch_tensor_t* const* tensors, size_t count, const clutch_stream_t* stream);
  clutch_status_t (*optim_lr_scheduler_create_sgd)(const clutch_optim_sgd_t* optimizer,
      const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
      clutch_optim_lr_scheduler_t** result);
  clutch_status_t (*optim_lr_scheduler_create_adam)(const clutch_optim_adam_t* optimizer,
      const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
      clutch_optim_lr_scheduler_t** result);
  clutch_status_t (*optim_lr_scheduler_create_adamw)(const clutch_optim_adamw_t* optimizer,
      const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
      clutch_optim_lr_scheduler_t** result);
  clutch_status_t (*optim_lr_scheduler_create_adagrad)(const clutch_optim_adagrad_t* optimizer,
      const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
      clutch_optim_lr_scheduler_t** result);
  clutch_status_t (*optim_lr_scheduler_create_rmsprop)(const clutch_optim_rmsprop_t* optimizer,
      const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
      clutch_optim_lr_scheduler_t** result);
  clutch_status_t (*optim_lr_scheduler_create)(const double* rates, size_t rates_count,
      const clutch_optim_lr_scheduler_options_t* options, const clutch_device_t* device,
      const clutch_stream_t* stream, clutch_optim_lr_scheduler_t** result);
  clutch_status_t (*optim_lr_scheduler_lr)(const clutch_optim_lr_scheduler_t* lr_scheduler,
      clutch_tensor_t** result);
  clutch_status_t (*optim_lr_scheduler_step)(clutch_optim_lr_scheduler_t* lr_scheduler,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_lr_scheduler_state)(const clutch_optim_lr_scheduler_t* lr_scheduler, char* names,
      size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_lr_scheduler_load_state)(clutch_optim_lr_scheduler_t* lr_scheduler,
      const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_scaler_create)(const clutch_optim_grad_scaler_options_t* options,
      const clutch_device_t* device, const clutch_stream_t* stream, clutch_optim_grad_scaler_t** result);
  clutch_status_t (*optim_grad_scaler_scale)(const clutch_optim_grad_scaler_t* grad_scaler,
      const clutch_tensor_t* loss, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*optim_grad_scaler_unscale_sgd)(clutch_optim_grad_scaler_t* grad_scaler,
      const clutch_optim_sgd_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_scaler_unscale_adam)(clutch_optim_grad_scaler_t* grad_scaler,
      const clutch_optim_adam_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_scaler_unscale_adamw)(clutch_optim_grad_scaler_t* grad_scaler,
      const clutch_optim_adamw_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_scaler_unscale_adagrad)(clutch_optim_grad_scaler_t* grad_scaler,
      const clutch_optim_adagrad_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_scaler_unscale_rmsprop)(clutch_optim_grad_scaler_t* grad_scaler,
      const clutch_optim_rmsprop_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_scaler_step_sgd)(clutch_optim_grad_scaler_t* grad_scaler,
      clutch_optim_sgd_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*optim_grad_scaler_step_adam)(clutch_optim_grad_scaler_t* grad_scaler,
      clutch_optim_adam_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*optim_grad_scaler_step_adamw)(clutch_optim_grad_scaler_t* grad_scaler,
      clutch_optim_adamw_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*optim_grad_scaler_step_adagrad)(clutch_optim_grad_scaler_t* grad_scaler,
      clutch_optim_adagrad_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*optim_grad_scaler_step_rmsprop)(clutch_optim_grad_scaler_t* grad_scaler,
      clutch_optim_rmsprop_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
  clutch_status_t (*optim_grad_scaler_update)(clutch_optim_grad_scaler_t* grad_scaler,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_scaler_update_scale)(clutch_optim_grad_scaler_t* grad_scaler, double new_scale,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_scaler_scale_tensor)(const clutch_optim_grad_scaler_t* grad_scaler,
      clutch_tensor_t** result);
  clutch_status_t (*optim_grad_scaler_get_scale)(const clutch_optim_grad_scaler_t* grad_scaler,
      const clutch_stream_t* stream, double* result);
  clutch_status_t (*optim_grad_scaler_enabled)(const clutch_optim_grad_scaler_t* grad_scaler,
      int64_t* result);
  clutch_status_t (*optim_grad_scaler_state)(const clutch_optim_grad_scaler_t* grad_scaler, char* names,
      size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
  clutch_status_t (*optim_grad_scaler_load_state)(clutch_optim_grad_scaler_t* grad_scaler,
      const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_norm_out)(const clutch_optim_grad_norm_t* out,
      const clutch_tensor_t* const* grads, size_t grads_count, double max_norm,
      const clutch_optim_clip_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*optim_grad_norms_out)(const clutch_tensor_t* out, const clutch_tensor_t* const* grads,
      size_t grads_count, const clutch_optim_clip_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*optim_clip_grad_norm_)(const clutch_tensor_t* const* grads, size_t grads_count,
      double max_norm, const clutch_optim_clip_options_t* options, const clutch_stream_t* stream,
      clutch_tensor_t** result);
  clutch_status_t (*optim_schedule_)(const clutch_tensor_t* lr, const clutch_tensor_t* rates,
      const clutch_tensor_t* step, int64_t advance, const clutch_optim_lr_scheduler_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_check_and_unscale_)(const clutch_tensor_t* const* grads, size_t grads_count,
      const clutch_tensor_t* found_inf, const clutch_tensor_t* scale, const clutch_stream_t* stream);
  clutch_status_t (*optim_update_scale_)(const clutch_tensor_t* scale, const clutch_tensor_t* growth_tracker,
      const clutch_tensor_t* found_inf, const clutch_optim_grad_scaler_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_sgd_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* momentum_buffers,
      size_t momentum_buffers_count, const clutch_tensor_t* steps, const clutch_optim_sgd_options_t* options,
      const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
  clutch_status_t (*optim_sgd_steps_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* momentum_buffers,
      size_t momentum_buffers_count, const clutch_tensor_t* const* steps, size_t steps_count,
      const clutch_optim_sgd_options_t* options, const clutch_optim_step_options_t* step_options,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_adam_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* exp_avgs,
      size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
      const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count,
      const clutch_tensor_t* steps, const clutch_optim_adam_options_t* options,
      const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
  clutch_status_t (*optim_adam_steps_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* exp_avgs,
      size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
      const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count,
      const clutch_tensor_t* const* steps, size_t steps_count, const clutch_optim_adam_options_t* options,
      const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
  clutch_status_t (*optim_adamw_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* exp_avgs,
      size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
      const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count,
      const clutch_tensor_t* steps, const clutch_optim_adamw_options_t* options,
      const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
  clutch_status_t (*optim_adamw_steps_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* exp_avgs,
      size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
      const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count,
      const clutch_tensor_t* const* steps, size_t steps_count, const clutch_optim_adamw_options_t* options,
      const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
  clutch_status_t (*optim_adagrad_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* sums,
      size_t sums_count, const clutch_tensor_t* steps, const clutch_optim_adagrad_options_t* options,
      const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
  clutch_status_t (*optim_adagrad_steps_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* sums,
      size_t sums_count, const clutch_tensor_t* const* steps, size_t steps_count,
      const clutch_optim_adagrad_options_t* options, const clutch_optim_step_options_t* step_options,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_rmsprop_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* square_avgs,
      size_t square_avgs_count, const clutch_tensor_t* const* momentum_buffers, size_t momentum_buffers_count,
      const clutch_tensor_t* const* grad_avgs, size_t grad_avgs_count, const clutch_tensor_t* steps,
      const clutch_optim_rmsprop_options_t* options, const clutch_optim_step_options_t* step_options,
      const clutch_stream_t* stream);
  clutch_status_t (*optim_rmsprop_steps_)(const clutch_tensor_t* const* params, size_t params_count,
      const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* square_avgs,
      size_t square_avgs_count, const clutch_tensor_t* const* momentum_buffers, size_t momentum_buffers_count,
      const clutch_tensor_t* const* grad_avgs, size_t grad_avgs_count, const clutch_tensor_t* const* steps,
      size_t steps_count, const clutch_optim_rmsprop_options_t* options,
      const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
  clutch_status_t (*graph_create)(const clutch_graph_options_t* options, clutch_graph_t** result);
  clutch_status_t (*graph_capture_begin)(clutch_graph_t* graph, const clutch_stream_t* stream,
      const clutch_capture_options_t* options);
  clutch_status_t (*graph_capture_end)(clutch_graph_t* graph);
  clutch_status_t (*graph_capture_abandon)(clutch_graph_t* graph);
  clutch_status_t (*graph_is_capturing)(const clutch_graph_t* graph, int64_t* result);
  clutch_status_t (*graph_instantiate)(clutch_graph_t* graph);
  clutch_status_t (*graph_replay)(clutch_graph_t* graph, const clutch_stream_t* stream);
  clutch_status_t (*graph_replay_with)(clutch_graph_t* graph, const clutch_tensor_t* const* captured,
      size_t captured_count, const clutch_tensor_t* const* bound, size_t bound_count,
      const clutch_stream_t* stream);
  clutch_status_t (*graph_rebind)(clutch_graph_t* graph, const clutch_tensor_t* const* captured,
      size_t captured_count, const clutch_tensor_t* const* bound, size_t bound_count);
  clutch_status_t (*graph_reset)(clutch_graph_t* graph);
  clutch_status_t (*graph_pool)(const clutch_graph_t* graph, clutch_pool_id_t* result);
  clutch_status_t (*graph_find)(const clutch_graph_t* graph, const char* op_kernel_or_label, int64_t* values,
      size_t capacity, size_t* count);
  clutch_status_t (*graph_to_string)(const clutch_graph_t* graph, clutch_graph_dump_t format, char* text,
      size_t capacity, size_t* length);
  clutch_status_t (*graph_debug_dump)(const clutch_graph_t* graph, const char* path,
      clutch_graph_dump_t format);
  clutch_status_t (*graph_update_number)(clutch_graph_t* graph, int64_t node, const char* name, double value);
  clutch_status_t (*graph_update_integer)(clutch_graph_t* graph, int64_t node, const char* name,
      int64_t value);
  clutch_status_t (*graph_update_tensor)(clutch_graph_t* graph, int64_t node, const char* name,
      const clutch_tensor_t* tensor);
  clutch_status_t (*graph_save)(const clutch_graph_t* graph, const char* path, const char* const* names,
      size_t names_count, const clutch_tensor_t* const* tensors, size_t tensors_count,
      const clutch_graph_save_options_t* options);
  clutch_status_t (*graph_load)(const char* path, const clutch_device_t* device,
      const clutch_graph_options_t* options, clutch_graph_t** result);
  clutch_status_t (*graph_tensor)(const clutch_graph_t* graph, const char* name, clutch_tensor_t** result);
  clutch_status_t (*graph_tensor_names)(const clutch_graph_t* graph, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*graph_annotation_create)(const char* name, clutch_graph_annotation_t** result);
  clutch_status_t (*graph_backends)(char* text, size_t capacity, size_t* length);
  clutch_status_t (*graph_program_device)(const clutch_graph_program_t* graph_program,
      clutch_device_t** result);
  clutch_status_t (*graph_program_size)(const clutch_graph_program_t* graph_program, int64_t* result);
  clutch_status_t (*graph_program_kind)(const clutch_graph_program_t* graph_program, int64_t node,
      clutch_graph_node_kind_t* result);
  clutch_status_t (*graph_program_enqueue)(const clutch_graph_program_t* graph_program, int64_t node,
      const clutch_stream_t* stream);
  clutch_status_t (*launch)(const clutch_kernel_source_t* source, const clutch_geometry_t* geometry,
      const clutch_argument_t* const* arguments, size_t arguments_count, const clutch_stream_t* stream);
  clutch_status_t (*profiler_create)(const clutch_profiler_options_t* options, clutch_profiler_t** result);
  clutch_status_t (*profiler_start)(clutch_profiler_t* profiler);
  clutch_status_t (*profiler_stop)(clutch_profiler_t* profiler);
  clutch_status_t (*profiler_step)(clutch_profiler_t* profiler);
  clutch_status_t (*profiler_step_num)(const clutch_profiler_t* profiler, int64_t* result);
  clutch_status_t (*profiler_add_metadata)(clutch_profiler_t* profiler, const char* key, const char* value);
  clutch_status_t (*profiler_add_metadata_json)(clutch_profiler_t* profiler, const char* key,
      const char* json);
  clutch_status_t (*profiler_table)(const clutch_profiler_t* profiler,
      const clutch_profiler_table_options_t* options, char* text, size_t capacity, size_t* length);
  clutch_status_t (*profiler_totals)(const clutch_profiler_t* profiler,
      clutch_profiler_profile_totals_t* result);
  clutch_status_t (*profiler_export_chrome_trace)(const clutch_profiler_t* profiler, const char* path,
      const clutch_profiler_trace_options_t* options);
  clutch_status_t (*profiler_export_html)(const clutch_profiler_t* profiler, const char* path);
  clutch_status_t (*profiler_export_kernel_annotations)(const clutch_profiler_t* profiler, const char* path);
  clutch_status_t (*profiler_range_create)(const char* name, clutch_profiler_range_t** result);
  clutch_status_t (*profiler_range_end)(clutch_profiler_range_t* range);
  clutch_status_t (*selective_scan_out)(const clutch_selective_scan_result_t* out, const clutch_tensor_t* x,
      const clutch_tensor_t* delta, const clutch_tensor_t* a, const clutch_tensor_t* b,
      const clutch_tensor_t* c, const clutch_selective_scan_options_t* options,
      const clutch_stream_t* stream);
  clutch_status_t (*selective_scan_backward_out)(const clutch_selective_scan_gradients_t* out,
      const clutch_selective_scan_result_t* grad, const clutch_tensor_t* x, const clutch_tensor_t* delta,
      const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_tensor_t* c,
      const clutch_selective_scan_options_t* options, const clutch_stream_t* stream);
  clutch_status_t (*graph_measure)(clutch_graph_t* graph, int64_t replays, const clutch_stream_t* stream);
  clutch_status_t (*row_function_parse)(const char* text, clutch_row_function_t** result);
  clutch_status_t (*row_function_text)(const clutch_row_function_t* row_function, char* text, size_t capacity,
      size_t* length);
  clutch_status_t (*row_function_param_count)(const clutch_row_function_t* row_function, int64_t* result);
  clutch_status_t (*row_function_param_value)(const clutch_row_function_t* row_function, int64_t i,
      double* result);
  clutch_status_t (*row_function_with_params)(const clutch_row_function_t* row_function, const double* values,
      size_t values_count, clutch_row_function_t** result);
} clutch_api_t;

typedef struct clutch_host_t {
  size_t size;
  int64_t abi;             /* CLUTCH_PLUGIN_ABI of the library */
  const char* version;     /* of the library, "0.2.0" */
  const clutch_api_t* api; /* fields within api->size are there */
  /* Sets the text of the failure that this thread's running function of a plugin is about to return. */
  void (*set_error)(const char* text);
  /* Logs a line: 1 error, 2 warning, 3 information, 4 debug. */
  void (*log)(int64_t level, const char* text);
} clutch_host_t;

/*
 * An implementation of an op, chosen by options.implementation, or before the library's own where its score is above 0, the highest first.
 *
 * Function: of the type of the C function that it stands for, with its contract, cast to this pointer. Arguments are valid, outputs have the results' shapes
 *   and dtypes, options are never NULL, the stream is the one that work goes to. Within it options.implementation of the same op is the library's own.
 * Refusal: CLUTCH_NOT_SUPPORTED before anything was done: the call goes to the next implementation, or fails with the text where this one was named.
 * Proof: before it is chosen for the first time on a device it computes the op's problems, fresh random ones in each process, whose results have to be the bits
 *   of the library's own (attention, softmax and cross entropy: within the contract's error of results in f64; eigenpairs: with the contract's residuals), with no
 *   byte written outside of the outputs and none of the inputs. One that fails is never chosen. Later calls have dtypes of tensors, enumerators and set options of a problem
 *   that it took. Each function of map_out, reduce_out, rowwise_out and linalg_matmul_function_out is proved by problems of its own when it is first called.
 */
typedef struct clutch_plugin_op_t {
  size_t size;
  const char* op;             /* the C function without clutch_: "addcdiv_out", "addcmul_out", "cumsum_out", "sort_out", "linalg_matmul_out", "attention_flex_out", "fill_", "cat_out", "sum_out", "nn_softmax_out", "copy_", "map_out", "prod_out", "amin_out", "amax_out", "mean_out", "nn_log_softmax_out", "topk_out", "nonzero_static_out", "group_by_out", "gather_out", "scatter_reduce_out", "index_out", "index_put_out", "segment_reduce_out", "sparse_spmm_out", "sparse_matmul_out", "linalg_eigh_out", "uniform_", "normal_", "optim_sgd_", "optim_adam_", "optim_adamw_", "optim_adagrad_", "optim_rmsprop_", "reduce_out", "linalg_matmul_function_out", "selective_scan_out", "selective_scan_backward_out", "nn_softmax_backward_out", "nn_log_softmax_backward_out", "nn_layer_norm_backward_out", "nn_rms_norm_backward_out", "rowwise_out", "nn_layer_norm_out", "nn_rms_norm_out", "nn_cross_entropy_out", "nn_cross_entropy_backward_out", "kthvalue_out", "nn_embedding_out", "nn_embedding_backward_out", "linalg_eigvalsh_out" */
  const char* implementation; /* unlike the library's own names and other plugins' */
  int64_t score;              /* above 0: chosen unless the caller names another */
  void (*function)(void);
} clutch_plugin_op_t;

/*
 * A way to replay graphs, named by clutch_graph_options_t.backend. `state` is what create() gave, one for each captured graph; calls on it come one at a time:
 * instantiate(), then replay() any number of times, at last reset() and destroy(). The program is valid during a call.
 */
typedef struct clutch_graph_backend_t {
  size_t size;
  const char* name;
  clutch_status_t (*create)(void** state);
  /* Also when arguments of nodes changed. */
  clutch_status_t (*instantiate)(void* state, const clutch_graph_program_t* program);
  /* Enqueues all nodes on the stream. */
  clutch_status_t (*replay)(void* state, const clutch_graph_program_t* program, const clutch_stream_t* stream);
  void (*reset)(void* state);
  void (*destroy)(void* state);
} clutch_graph_backend_t;

/*
 * Devices without an OpenCL driver. The library makes queues, events and OpenCL's objects of them, so that all of it works on them as on a driver's devices:
 * they come after those of drivers. It runs a command on a thread that it has for each queue, so that no function has to be asynchronous.
 *
 * Errors: a function returns CLUTCH_OUT_OF_MEMORY, CLUTCH_BUILD_FAILURE, CLUTCH_DEVICE_LOST or another code, with the text by host->set_error(). A command that
 *   fails makes its event, and what waits for that, fail.
 * Threads: any thread may call, several at once; commands of one queue, and functions of one program or kernel before it is used, come one at a time.
 */
typedef struct clutch_device_facts_t {
  size_t size; /* set by the library; the fields within it may be set */
  /* Texts that live as long as the process. */
  const char* name;
  const char* vendor;
  const char* driver_version;
  const char* extensions; /* OpenCL's names of what the compiler knows, joined by blanks: "cl_khr_fp64" for double */
  clutch_device_type_t type;
  int64_t compute_units;    /* work-groups that run at once */
  int64_t max_group_items;  /* work-items of a group, at most */
  int64_t group_multiple;   /* the items of a group are best a multiple of it */
  int64_t vector_bytes;     /* of a register that one item's vectors use; 4 if items are lanes of one */
  int64_t alignment;        /* of memory, in bytes: a power of two of 128 at least */
  uint64_t memory_bytes;
  uint64_t largest_buffer_bytes;
  uint64_t cache_bytes;
  uint64_t local_bytes;     /* of a work-group, 32 KiB at least */
  uint64_t argument_bytes;  /* of a launch, 1 KiB at least */
  int64_t local_is_near;    /* nonzero: local memory is nearer than memory */
  int64_t shares_memory;    /* nonzero: the host's own, so that memory_adopt() may take the host's */
  /* Nonzero: f32 arithmetic that OpenCL leaves to devices. */
  int64_t fma_is_one_rounding, divide_is_exact, has_subnormals;
} clutch_device_facts_t;

typedef int64_t clutch_device_argument_kind_t;
enum { CLUTCH_DEVICE_ARGUMENT_VALUE = 0, CLUTCH_DEVICE_ARGUMENT_MEMORY = 1, CLUTCH_DEVICE_ARGUMENT_LOCAL = 2 };

typedef struct clutch_device_kernel_facts_t {
  size_t size; /* set by the library */
  size_t arguments_count;
  const clutch_device_argument_kind_t* argument_kinds; /* live as long as the kernel */
  const size_t* argument_bytes;                 /* of values */
  uint64_t local_bytes;                         /* of the text's own local memory */
  int64_t max_group_items;
  size_t required_items[3]; /* of a group, by reqd_work_group_size; 0 without */
} clutch_device_kernel_facts_t;

typedef struct clutch_device_argument_t {
  const void* value; /* the bytes of a value, at a multiple of 128; of memory what memory_allocate() or memory_adopt() gave, or NULL; of local memory NULL */
  size_t bytes;      /* of a value or of local memory */
} clutch_device_argument_t;

typedef struct clutch_device_launch_t {
  size_t size;
  size_t groups[3], items[3]; /* work-groups, and items of one, in each dimension */
  size_t dimensions;
  size_t offset[3]; /* of global ids */
  const clutch_device_argument_t* arguments;
  size_t arguments_count;
} clutch_device_launch_t;

typedef struct clutch_device_backend_t {
  size_t size;
  const char* name;    /* of the platform, by which CLUTCH_DEVICE can select */
  const char* version; /* a part of the key of cached programs */
  clutch_status_t (*device_count)(int64_t* result);
  clutch_status_t (*device_facts)(int64_t device, clutch_device_facts_t* result);
  clutch_status_t (*memory_allocate)(int64_t device, uint64_t bytes, void** result);
  /* Memory of the host, aligned as the facts say, which stays until the release. NULL where devices take none. */
  clutch_status_t (*memory_adopt)(int64_t device, void* host, uint64_t bytes, void** result);
  void (*memory_release)(int64_t device, void* memory);
  /* An address of the host for those bytes until the unmap, which hands them to the device. */
  clutch_status_t (*memory_map)(int64_t device, void* memory, uint64_t offset, uint64_t bytes, void** result);
  void (*memory_unmap)(int64_t device, void* memory, void* host);
  /* Builds OpenCL C 1.2, with options of clBuildProgram. The log is the text of the error. */
  clutch_status_t (*program_build)(int64_t device, const char* text, size_t bytes, const char* options, void** result);
  /* Takes what program_binary() gave in another process; CLUTCH_NOT_SUPPORTED for anything else, and the program is built anew. */
  clutch_status_t (*program_load)(int64_t device, const char* binary, size_t bytes, const char* options, void** result);
  /* The bytes up to `capacity`, and how many there are. */
  clutch_status_t (*program_binary)(void* program, char* binary, size_t capacity, size_t* bytes);
  void (*program_release)(void* program);
  /* CLUTCH_INVALID_ARGUMENT if the program has no kernel of that name. */
  clutch_status_t (*kernel_create)(void* program, const char* name, clutch_device_kernel_facts_t* facts, void** result);
  void (*kernel_release)(void* kernel);
  clutch_status_t (*queue_create)(int64_t device, void** result);
  void (*queue_release)(void* queue);
  /* Commands: done when they return. Bytes are within the memory. */
  clutch_status_t (*launch)(void* queue, void* kernel, const clutch_device_launch_t* launch);
  clutch_status_t (*write)(void* queue, void* to, uint64_t offset, const void* from, uint64_t bytes);
  clutch_status_t (*read)(void* queue, const void* from, uint64_t offset, void* to, uint64_t bytes);
  clutch_status_t (*copy)(void* queue, void* to, uint64_t to_offset, const void* from, uint64_t from_offset, uint64_t bytes);
  clutch_status_t (*fill)(void* queue, void* to, uint64_t offset, uint64_t bytes, const void* pattern, size_t pattern_bytes);
} clutch_device_backend_t;

typedef struct clutch_plugin_t {
  size_t size;
  int64_t abi;         /* the CLUTCH_PLUGIN_ABI that the plugin was made for */
  const char* name;    /* of several files whose plugins have one name that of the highest score is used */
  const char* version; /* the plugin's own */
  int64_t score;       /* how well it suits this machine; 0: not at all, and it is left out */
  /* May be NULL. Called once, before anything else of the plugin that is used. Devices are not known yet: to ask for them is an error. */
  clutch_status_t (*init)(const clutch_host_t* host);
  const clutch_plugin_op_t* const* ops;
  size_t ops_count;
  const clutch_graph_backend_t* const* graph_backends;
  size_t graph_backends_count;
  const clutch_device_backend_t* const* device_backends;
  size_t device_backends_count;
} clutch_plugin_t;

/* A plugin exports this. */
CLUTCH_PLUGIN_EXPORT const clutch_plugin_t* clutch_plugin_query(int64_t abi, const clutch_host_t* host);

#ifdef __cplusplus
}
#endif
#endif
