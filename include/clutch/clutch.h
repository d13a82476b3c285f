/* SPDX-License-Identifier: Apache-2.0 */
/* Made by scripts/c_abi of host/capi/abi.def. Do not edit. */
#ifndef CLUTCH_CLUTCH_H
#define CLUTCH_CLUTCH_H
/*
 * The C ABI of clutch, for C99, C++ and every language that calls C. docs/c.md is its guide.
 *
 * Functions: clutch_NAME() is clutch::NAME() of the C++ headers with `_` for `::`, in its out form, and has its contract: shapes, dtypes, errors, streams and
 *   determinism are told there. Functions of a class begin with the class: clutch_tensor_slice() is clutch::Tensor::slice().
 * Result: each returns CLUTCH_OK, or the code of an error. Values come back through the last parameters.
 * Errors: clutch_error_message() is the text of this thread's last error, "addcdiv_out: ...", which says what must be and what was given. It is valid until
 *   another function of this thread fails. Nothing is thrown across the border, and a function that fails leaves the caller's objects as they were.
 * Objects: a pointer to a clutch_NAME_t stands for a C++ object and is made by the function that gives it back through `clutch_NAME_t** result`. The caller
 *   releases each once, by clutch_NAME_release(); NULL is released without effect. An object may go while work that uses it runs: the library keeps what the
 *   work needs. On an error the result is NULL.
 * NULL: in the place of a tensor an undefined one (an output that is not asked for, no bias), of a device the current one, of a stream the current one of
 *   the tensors' device, of options the defaults. A function of an object needs one.
 * Structs: begin with their size. Begin each as CLUTCH_NAME_INIT, which sets size and defaults, then set fields:
 *     clutch_reduce_options_t options = CLUTCH_REDUCE_OPTIONS_INIT;
 *     options.keepdim = 1;
 *   The library reads the fields within `size`, others have their defaults, so that programs of an older header work. Fields are only ever added, at the end;
 *   those that an older library does not know must be 0. All fields are of 8 bytes, so that no struct has padding. Pointers in a struct are read during the call.
 * Structs of results: the library writes the fields within `size`; objects in them are new ones, NULL for undefined ones.
 * Numbers: enums, yes and no (0 and 1), sizes and indices are int64_t. Dtypes of several results, dims and lists are a pointer and a count.
 * Text: UTF-8 that ends in 0. A function that gives text writes at most `capacity` bytes, the 0 among them, and the whole length without it to `*length`, which
 *   may be NULL. Several texts are lines of one. Lists are written if `capacity` is enough for all, else invalid_argument; with values NULL and capacity 0 the
 *   count alone.
 * Threads: as in C++ (clutch/device.hpp): free functions in any threads at once; one object that a function changes needs the caller's lock. Guards
 *   (clutch_pool_guard_t, clutch_memory_label_guard_t, clutch_partition_guard_t, clutch_graph_annotation_t, clutch_profiler_range_t,
 *   clutch_attention_sdpa_backends_t) are released on the thread that made them, in reverse order.
 * Traced functions: clutch_expr_function_parse() takes the text that clutch::ExprFunction::text() gives: "inputs f32 f32\n%2 = mul %0 %1\noutputs %2\n".
 * Versions: functions carry the symbol version CLUTCH_C_1, later ones CLUTCH_C_2 and so on, where the linker has such; none is ever changed or removed.
 *   CLUTCH_C_ABI is this header's, clutch_abi_version() the library's. Before 1.0 the name of the library still changes with its minor version.
 */
#include <stddef.h>
#include <stdint.h>

#if defined(CLUTCH_STATIC)
#define CLUTCH_C_API
#elif defined(_WIN32)
#if defined(CLUTCH_BUILDING)
#define CLUTCH_C_API __declspec(dllexport)
#else
#define CLUTCH_C_API __declspec(dllimport)
#endif
#else
#define CLUTCH_C_API __attribute__((visibility("default")))
#endif

#define CLUTCH_C_ABI 1

#ifdef __cplusplus
extern "C" {
#endif

/* clutch::ErrorCode */
typedef int32_t clutch_status_t;
enum {
  CLUTCH_OK = 0,
  CLUTCH_INVALID_ARGUMENT = 1,
  CLUTCH_INVALID_SHAPE = 2,
  CLUTCH_INVALID_DTYPE = 3,
  CLUTCH_DEVICE_MISMATCH = 4,
  CLUTCH_INVALID_OVERLAP = 5,
  CLUTCH_INVALID_SETTING = 6,
  CLUTCH_NO_PLATFORM = 7,
  CLUTCH_NO_DEVICE = 8,
  CLUTCH_NOT_SUPPORTED = 9,
  CLUTCH_OUT_OF_MEMORY = 10,
  CLUTCH_BUILD_FAILURE = 11,
  CLUTCH_OPENCL = 12,
  CLUTCH_STREAM_FAILED = 13,
  CLUTCH_DEVICE_LOST = 14,
  CLUTCH_STRICT = 15,
  CLUTCH_IO = 16,
  CLUTCH_CAPTURING = 17,
  CLUTCH_INTERNAL = 18,
  CLUTCH_NOT_CONVERGED = 19,
  CLUTCH_TIMED_OUT = 20,
  CLUTCH_PEER_FAILED = 21,
  CLUTCH_MISMATCH = 22
};

/* The library's CLUTCH_C_ABI. */
CLUTCH_C_API int64_t clutch_abi_version(void);
/* This thread's last error: its text, the public function that refused, and the status of OpenCL behind it, or 0. */
CLUTCH_C_API const char* clutch_error_message(void);
CLUTCH_C_API const char* clutch_error_op(void);
CLUTCH_C_API int32_t clutch_error_cl_code(void);
/* "invalid_shape"; "unknown" for a number that is none. */
CLUTCH_C_API const char* clutch_status_name(clutch_status_t status);

/* Objects. */
typedef struct clutch_device_t clutch_device_t;
typedef struct clutch_stream_t clutch_stream_t;
typedef struct clutch_event_t clutch_event_t;
typedef struct clutch_tensor_t clutch_tensor_t;
typedef struct clutch_storage_handle_t clutch_storage_handle_t;
typedef struct clutch_generator_t clutch_generator_t;
typedef struct clutch_partition_t clutch_partition_t;
typedef struct clutch_partition_guard_t clutch_partition_guard_t;
typedef struct clutch_mem_pool_t clutch_mem_pool_t;
typedef struct clutch_pool_guard_t clutch_pool_guard_t;
typedef struct clutch_memory_label_guard_t clutch_memory_label_guard_t;
typedef struct clutch_host_mapping_t clutch_host_mapping_t;
typedef struct clutch_safetensors_t clutch_safetensors_t;
typedef struct clutch_expr_function_t clutch_expr_function_t;
typedef struct clutch_row_function_t clutch_row_function_t;
typedef struct clutch_linalg_packed_matrix_t clutch_linalg_packed_matrix_t;
typedef struct clutch_sparse_semi_structured_t clutch_sparse_semi_structured_t;
typedef struct clutch_attention_mask_mod_t clutch_attention_mask_mod_t;
typedef struct clutch_attention_score_mod_t clutch_attention_score_mod_t;
typedef struct clutch_attention_block_mask_t clutch_attention_block_mask_t;
typedef struct clutch_attention_paged_cache_t clutch_attention_paged_cache_t;
typedef struct clutch_attention_sdpa_backends_t clutch_attention_sdpa_backends_t;
typedef struct clutch_optim_sgd_t clutch_optim_sgd_t;
typedef struct clutch_optim_adam_t clutch_optim_adam_t;
typedef struct clutch_optim_adamw_t clutch_optim_adamw_t;
typedef struct clutch_optim_adagrad_t clutch_optim_adagrad_t;
typedef struct clutch_optim_rmsprop_t clutch_optim_rmsprop_t;
typedef struct clutch_optim_grad_scaler_t clutch_optim_grad_scaler_t;
typedef struct clutch_optim_lr_scheduler_t clutch_optim_lr_scheduler_t;
typedef struct clutch_graph_t clutch_graph_t;
typedef struct clutch_graph_annotation_t clutch_graph_annotation_t;
typedef struct clutch_profiler_t clutch_profiler_t;
typedef struct clutch_profiler_range_t clutch_profiler_range_t;
typedef struct clutch_graph_program_t clutch_graph_program_t;

/* A number for an op of a tensor and a number: a whole one keeps integer tensors integer. This struct never grows. */
typedef struct clutch_number_t {
  double value;
  int64_t is_whole;
} clutch_number_t;

struct DLManagedTensor;
struct DLManagedTensorVersioned;

typedef struct clutch_device_traits_t clutch_device_traits_t;
typedef struct clutch_stream_options_t clutch_stream_options_t;
typedef struct clutch_tensor_options_t clutch_tensor_options_t;
typedef struct clutch_cast_options_t clutch_cast_options_t;
typedef struct clutch_copy_options_t clutch_copy_options_t;
typedef struct clutch_fill_options_t clutch_fill_options_t;
typedef struct clutch_generator_state_t clutch_generator_state_t;
typedef struct clutch_partition_options_t clutch_partition_options_t;
typedef struct clutch_mem_pool_options_t clutch_mem_pool_options_t;
typedef struct clutch_pool_id_t clutch_pool_id_t;
typedef struct clutch_memory_info_t clutch_memory_info_t;
typedef struct clutch_memory_history_options_t clutch_memory_history_options_t;
typedef struct clutch_cache_usage_t clutch_cache_usage_t;
typedef struct clutch_build_counters_t clutch_build_counters_t;
typedef struct clutch_cost_t clutch_cost_t;
typedef struct clutch_addc_options_t clutch_addc_options_t;
typedef struct clutch_map_options_t clutch_map_options_t;
typedef struct clutch_cat_options_t clutch_cat_options_t;
typedef struct clutch_cumsum_options_t clutch_cumsum_options_t;
typedef struct clutch_uniform_options_t clutch_uniform_options_t;
typedef struct clutch_normal_options_t clutch_normal_options_t;
typedef struct clutch_random_options_t clutch_random_options_t;
typedef struct clutch_draw_options_t clutch_draw_options_t;
typedef struct clutch_permutation_options_t clutch_permutation_options_t;
typedef struct clutch_reduce_options_t clutch_reduce_options_t;
typedef struct clutch_rowwise_options_t clutch_rowwise_options_t;
typedef struct clutch_sort_options_t clutch_sort_options_t;
typedef struct clutch_topk_options_t clutch_topk_options_t;
typedef struct clutch_kthvalue_options_t clutch_kthvalue_options_t;
typedef struct clutch_sorted_t clutch_sorted_t;
typedef struct clutch_group_options_t clutch_group_options_t;
typedef struct clutch_groups_t clutch_groups_t;
typedef struct clutch_index_put_options_t clutch_index_put_options_t;
typedef struct clutch_nonzero_options_t clutch_nonzero_options_t;
typedef struct clutch_nonzero_static_options_t clutch_nonzero_static_options_t;
typedef struct clutch_unique_options_t clutch_unique_options_t;
typedef struct clutch_unique_t clutch_unique_t;
typedef struct clutch_segment_options_t clutch_segment_options_t;
typedef struct clutch_scatter_options_t clutch_scatter_options_t;
typedef struct clutch_scatter_gradients_t clutch_scatter_gradients_t;
typedef struct clutch_selective_scan_options_t clutch_selective_scan_options_t;
typedef struct clutch_selective_scan_result_t clutch_selective_scan_result_t;
typedef struct clutch_selective_scan_gradients_t clutch_selective_scan_gradients_t;
typedef struct clutch_nn_norm_options_t clutch_nn_norm_options_t;
typedef struct clutch_nn_layer_norm_result_t clutch_nn_layer_norm_result_t;
typedef struct clutch_nn_layer_norm_gradients_t clutch_nn_layer_norm_gradients_t;
typedef struct clutch_nn_rms_norm_result_t clutch_nn_rms_norm_result_t;
typedef struct clutch_nn_rms_norm_gradients_t clutch_nn_rms_norm_gradients_t;
typedef struct clutch_nn_cross_entropy_options_t clutch_nn_cross_entropy_options_t;
typedef struct clutch_nn_cross_entropy_result_t clutch_nn_cross_entropy_result_t;
typedef struct clutch_nn_embedding_backward_options_t clutch_nn_embedding_backward_options_t;
typedef struct clutch_linalg_matmul_options_t clutch_linalg_matmul_options_t;
typedef struct clutch_linalg_linear_options_t clutch_linalg_linear_options_t;
typedef struct clutch_linalg_matmul_gradients_t clutch_linalg_matmul_gradients_t;
typedef struct clutch_linalg_matmul_backward_options_t clutch_linalg_matmul_backward_options_t;
typedef struct clutch_linalg_linear_gradients_t clutch_linalg_linear_gradients_t;
typedef struct clutch_linalg_scaled_matmul_options_t clutch_linalg_scaled_matmul_options_t;
typedef struct clutch_linalg_quantization_t clutch_linalg_quantization_t;
typedef struct clutch_linalg_quantized_matmul_options_t clutch_linalg_quantized_matmul_options_t;
typedef struct clutch_linalg_eigh_options_t clutch_linalg_eigh_options_t;
typedef struct clutch_linalg_eigh_status_t clutch_linalg_eigh_status_t;
typedef struct clutch_linalg_eigh_backward_options_t clutch_linalg_eigh_backward_options_t;
typedef struct clutch_linalg_eigh_gradient_t clutch_linalg_eigh_gradient_t;
typedef struct clutch_sparse_prune_options_t clutch_sparse_prune_options_t;
typedef struct clutch_sparse_compress_options_t clutch_sparse_compress_options_t;
typedef struct clutch_sparse_cutlass_layout_t clutch_sparse_cutlass_layout_t;
typedef struct clutch_sparse_linear_backward_options_t clutch_sparse_linear_backward_options_t;
typedef struct clutch_sparse_csr_t clutch_sparse_csr_t;
typedef struct clutch_sparse_spmm_options_t clutch_sparse_spmm_options_t;
typedef struct clutch_sparse_spmm_gradients_t clutch_sparse_spmm_gradients_t;
typedef struct clutch_attention_block_size_t clutch_attention_block_size_t;
typedef struct clutch_attention_block_mask_options_t clutch_attention_block_mask_options_t;
typedef struct clutch_attention_varlen_t clutch_attention_varlen_t;
typedef struct clutch_attention_flex_options_t clutch_attention_flex_options_t;
typedef struct clutch_attention_flex_result_t clutch_attention_flex_result_t;
typedef struct clutch_attention_flex_backward_options_t clutch_attention_flex_backward_options_t;
typedef struct clutch_attention_flex_gradients_t clutch_attention_flex_gradients_t;
typedef struct clutch_attention_sdpa_options_t clutch_attention_sdpa_options_t;
typedef struct clutch_attention_sdpa_result_t clutch_attention_sdpa_result_t;
typedef struct clutch_attention_multi_head_weights_t clutch_attention_multi_head_weights_t;
typedef struct clutch_attention_multi_head_result_t clutch_attention_multi_head_result_t;
typedef struct clutch_attention_multi_head_gradients_t clutch_attention_multi_head_gradients_t;
typedef struct clutch_attention_paged_cache_options_t clutch_attention_paged_cache_options_t;
typedef struct clutch_optim_precision_t clutch_optim_precision_t;
typedef struct clutch_optim_sgd_options_t clutch_optim_sgd_options_t;
typedef struct clutch_optim_adam_options_t clutch_optim_adam_options_t;
typedef struct clutch_optim_adamw_options_t clutch_optim_adamw_options_t;
typedef struct clutch_optim_adagrad_options_t clutch_optim_adagrad_options_t;
typedef struct clutch_optim_rmsprop_options_t clutch_optim_rmsprop_options_t;
typedef struct clutch_optim_step_options_t clutch_optim_step_options_t;
typedef struct clutch_optim_clip_options_t clutch_optim_clip_options_t;
typedef struct clutch_optim_grad_norm_t clutch_optim_grad_norm_t;
typedef struct clutch_optim_grad_scaler_options_t clutch_optim_grad_scaler_options_t;
typedef struct clutch_optim_lr_scheduler_options_t clutch_optim_lr_scheduler_options_t;
typedef struct clutch_graph_options_t clutch_graph_options_t;
typedef struct clutch_capture_options_t clutch_capture_options_t;
typedef struct clutch_graph_save_options_t clutch_graph_save_options_t;
typedef struct clutch_geometry_t clutch_geometry_t;
typedef struct clutch_kernel_source_t clutch_kernel_source_t;
typedef struct clutch_argument_t clutch_argument_t;
typedef struct clutch_profiler_options_t clutch_profiler_options_t;
typedef struct clutch_profiler_profile_totals_t clutch_profiler_profile_totals_t;
typedef struct clutch_profiler_trace_options_t clutch_profiler_trace_options_t;
typedef struct clutch_profiler_table_options_t clutch_profiler_table_options_t;

/* ---- Enums ---- */

/* clutch::DType */
typedef int64_t clutch_dtype_t;
enum { CLUTCH_DTYPE_F64 = 0, CLUTCH_DTYPE_F32 = 1, CLUTCH_DTYPE_F16 = 2, CLUTCH_DTYPE_BF16 = 3,
  CLUTCH_DTYPE_F8E4M3FN = 4, CLUTCH_DTYPE_F8E5M2 = 5, CLUTCH_DTYPE_F8E8M0FNU = 6, CLUTCH_DTYPE_F6E2M3 = 7,
  CLUTCH_DTYPE_F6E3M2 = 8, CLUTCH_DTYPE_F4E2M1 = 9, CLUTCH_DTYPE_I8 = 10, CLUTCH_DTYPE_U8 = 11,
  CLUTCH_DTYPE_I16 = 12, CLUTCH_DTYPE_I32 = 13, CLUTCH_DTYPE_I64 = 14, CLUTCH_DTYPE_BOOLEAN = 15,
  CLUTCH_DTYPE_C64 = 16, CLUTCH_DTYPE_C128 = 17, CLUTCH_DTYPE_U16 = 18, CLUTCH_DTYPE_U32 = 19,
  CLUTCH_DTYPE_U64 = 20 };
/* clutch::DeviceType */
typedef int64_t clutch_device_type_t;
enum { CLUTCH_DEVICE_TYPE_CPU = 0, CLUTCH_DEVICE_TYPE_GPU = 1, CLUTCH_DEVICE_TYPE_ACCELERATOR = 2,
  CLUTCH_DEVICE_TYPE_OTHER = 3 };
/* clutch::StreamPriority */
typedef int64_t clutch_stream_priority_t;
enum { CLUTCH_STREAM_PRIORITY_NORMAL = 0, CLUTCH_STREAM_PRIORITY_LOW = 1, CLUTCH_STREAM_PRIORITY_HIGH = 2 };
/* clutch::Isolation */
typedef int64_t clutch_isolation_t;
enum { CLUTCH_ISOLATION_NONE = 0, CLUTCH_ISOLATION_THREADS = 1, CLUTCH_ISOLATION_CORES = 2 };
/* clutch::Overflow */
typedef int64_t clutch_overflow_t;
enum { CLUTCH_OVERFLOW_NONFINITE = 0, CLUTCH_OVERFLOW_SATURATE = 1 };
/* clutch::interop::DlpackMemory */
typedef int64_t clutch_interop_dlpack_memory_t;
enum { CLUTCH_INTEROP_DLPACK_MEMORY_DEVICE = 0, CLUTCH_INTEROP_DLPACK_MEMORY_HOST = 1 };
/* clutch::MapAccess */
typedef int64_t clutch_map_access_t;
enum { CLUTCH_MAP_ACCESS_READ = 0, CLUTCH_MAP_ACCESS_WRITE = 1, CLUTCH_MAP_ACCESS_READ_WRITE = 2 };
/* clutch::AddcOrder */
typedef int64_t clutch_addc_order_t;
enum { CLUTCH_ADDC_ORDER_FMA_OF_QUOTIENT = 0, CLUTCH_ADDC_ORDER_PRODUCT_FIRST = 1,
  CLUTCH_ADDC_ORDER_UNFUSED = 2 };
/* clutch::GeluForm */
typedef int64_t clutch_gelu_form_t;
enum { CLUTCH_GELU_FORM_ERF = 0, CLUTCH_GELU_FORM_TANH = 1 };
/* clutch::Reduce */
typedef int64_t clutch_reduce_t;
enum { CLUTCH_REDUCE_SUM = 0, CLUTCH_REDUCE_PROD = 1, CLUTCH_REDUCE_AMIN = 2, CLUTCH_REDUCE_AMAX = 3,
  CLUTCH_REDUCE_MEAN = 4, CLUTCH_REDUCE_ANY = 5, CLUTCH_REDUCE_ALL = 6 };
/* clutch::nn::Reduction */
typedef int64_t clutch_nn_reduction_t;
enum { CLUTCH_NN_REDUCTION_MEAN = 0, CLUTCH_NN_REDUCTION_SUM = 1, CLUTCH_NN_REDUCTION_NONE = 2 };
/* clutch::nn::Activation */
typedef int64_t clutch_nn_activation_t;
enum { CLUTCH_NN_ACTIVATION_NONE = 0, CLUTCH_NN_ACTIVATION_RELU = 1, CLUTCH_NN_ACTIVATION_GELU = 2,
  CLUTCH_NN_ACTIVATION_GELU_TANH = 3, CLUTCH_NN_ACTIVATION_SILU = 4 };
/* clutch::linalg::Numerics */
typedef int64_t clutch_linalg_numerics_t;
enum { CLUTCH_LINALG_NUMERICS_CHAIN = 0, CLUTCH_LINALG_NUMERICS_BLOCKS = 1, CLUTCH_LINALG_NUMERICS_TF32 = 2,
  CLUTCH_LINALG_NUMERICS_F8 = 3 };
/* clutch::linalg::Uplo */
typedef int64_t clutch_linalg_uplo_t;
enum { CLUTCH_LINALG_UPLO_LOWER = 0, CLUTCH_LINALG_UPLO_UPPER = 1 };
/* clutch::linalg::EighDriver */
typedef int64_t clutch_linalg_eigh_driver_t;
enum { CLUTCH_LINALG_EIGH_DRIVER_AUTOMATIC = 0, CLUTCH_LINALG_EIGH_DRIVER_CLOSED = 1,
  CLUTCH_LINALG_EIGH_DRIVER_JACOBI_LANES = 2, CLUTCH_LINALG_EIGH_DRIVER_JACOBI_GROUP = 3,
  CLUTCH_LINALG_EIGH_DRIVER_QR_LANES = 4, CLUTCH_LINALG_EIGH_DRIVER_QR_GROUP = 5,
  CLUTCH_LINALG_EIGH_DRIVER_DEVICE_WIDE = 6, CLUTCH_LINALG_EIGH_DRIVER_JACOBI_ITEMS = 7,
  CLUTCH_LINALG_EIGH_DRIVER_QR_ITEMS = 8, CLUTCH_LINALG_EIGH_DRIVER_HOST = 9 };
/* clutch::linalg::EighAccuracy */
typedef int64_t clutch_linalg_eigh_accuracy_t;
enum { CLUTCH_LINALG_EIGH_ACCURACY_NORM = 0, CLUTCH_LINALG_EIGH_ACCURACY_RELATIVE = 1 };
/* clutch::linalg::EighPhase */
typedef int64_t clutch_linalg_eigh_phase_t;
enum { CLUTCH_LINALG_EIGH_PHASE_FREE = 0, CLUTCH_LINALG_EIGH_PHASE_POSITIVE = 1 };
/* clutch::sparse::PruneRule */
typedef int64_t clutch_sparse_prune_rule_t;
enum { CLUTCH_SPARSE_PRUNE_RULE_GROUPS = 0, CLUTCH_SPARSE_PRUNE_RULE_TILE_VALUES = 1,
  CLUTCH_SPARSE_PRUNE_RULE_TILE_MAGNITUDES = 2, CLUTCH_SPARSE_PRUNE_RULE_CAUSAL1122 = 3 };
/* clutch::attention::Causal */
typedef int64_t clutch_attention_causal_t;
enum { CLUTCH_ATTENTION_CAUSAL_NO = 0, CLUTCH_ATTENTION_CAUSAL_UPPER_LEFT = 1,
  CLUTCH_ATTENTION_CAUSAL_LOWER_RIGHT = 2 };
/* clutch::attention::SdpaBackend */
typedef int64_t clutch_attention_sdpa_backend_t;
enum { CLUTCH_ATTENTION_SDPA_BACKEND_FLASH = 0, CLUTCH_ATTENTION_SDPA_BACKEND_MATH = 1 };
/* clutch::optim::Numerics */
typedef int64_t clutch_optim_numerics_t;
enum { CLUTCH_OPTIM_NUMERICS_AUTOMATIC = 0, CLUTCH_OPTIM_NUMERICS_SOURCE = 1,
  CLUTCH_OPTIM_NUMERICS_TORCH_CPU = 2, CLUTCH_OPTIM_NUMERICS_F32 = 3, CLUTCH_OPTIM_NUMERICS_COMPOSED = 4 };
/* clutch::optim::StateType */
typedef int64_t clutch_optim_state_type_t;
enum { CLUTCH_OPTIM_STATE_TYPE_SAME = 0, CLUTCH_OPTIM_STATE_TYPE_F32 = 1, CLUTCH_OPTIM_STATE_TYPE_BF16 = 2 };
/* clutch::optim::Rounding */
typedef int64_t clutch_optim_rounding_t;
enum { CLUTCH_OPTIM_ROUNDING_NEAREST = 0, CLUTCH_OPTIM_ROUNDING_STOCHASTIC = 1,
  CLUTCH_OPTIM_ROUNDING_KAHAN = 2 };
/* clutch::optim::NormType */
typedef int64_t clutch_optim_norm_type_t;
enum { CLUTCH_OPTIM_NORM_TYPE_TWO = 0, CLUTCH_OPTIM_NORM_TYPE_ONE = 1, CLUTCH_OPTIM_NORM_TYPE_INF = 2 };
/* clutch::optim::Decay */
typedef int64_t clutch_optim_decay_t;
enum { CLUTCH_OPTIM_DECAY_CONSTANT = 0, CLUTCH_OPTIM_DECAY_LINEAR = 1, CLUTCH_OPTIM_DECAY_COSINE = 2 };
/* clutch::CaptureMode */
typedef int64_t clutch_capture_mode_t;
enum { CLUTCH_CAPTURE_MODE_GLOBAL = 0, CLUTCH_CAPTURE_MODE_THREAD_LOCAL = 1,
  CLUTCH_CAPTURE_MODE_RELAXED = 2 };
/* clutch::GraphDump */
typedef int64_t clutch_graph_dump_t;
enum { CLUTCH_GRAPH_DUMP_JSON = 0, CLUTCH_GRAPH_DUMP_DOT = 1, CLUTCH_GRAPH_DUMP_HTML = 2 };
/* clutch::GraphNodeKind */
typedef int64_t clutch_graph_node_kind_t;
enum { CLUTCH_GRAPH_NODE_KIND_KERNEL = 0, CLUTCH_GRAPH_NODE_KIND_COPY = 1, CLUTCH_GRAPH_NODE_KIND_FILL = 2,
  CLUTCH_GRAPH_NODE_KIND_HOST_TASK = 3, CLUTCH_GRAPH_NODE_KIND_OPAQUE = 4 };
/* clutch::Addressing */
typedef int64_t clutch_addressing_t;
enum { CLUTCH_ADDRESSING_POINTER = 0, CLUTCH_ADDRESSING_BASE_AND_OFFSET = 1 };
/* clutch::Argument::Kind */
typedef int64_t clutch_argument_kind_t;
enum { CLUTCH_ARGUMENT_KIND_INPUT = 0, CLUTCH_ARGUMENT_KIND_OUTPUT = 1, CLUTCH_ARGUMENT_KIND_INOUT = 2,
  CLUTCH_ARGUMENT_KIND_VALUE = 3, CLUTCH_ARGUMENT_KIND_LOCAL = 4 };
/* clutch::profiler::TraceNames */
typedef int64_t clutch_profiler_trace_names_t;
enum { CLUTCH_PROFILER_TRACE_NAMES_OPENCL = 0, CLUTCH_PROFILER_TRACE_NAMES_HTA = 1 };
/* clutch::profiler::ProfilerAction */
typedef int64_t clutch_profiler_action_t;
enum { CLUTCH_PROFILER_ACTION_NONE = 0, CLUTCH_PROFILER_ACTION_WARMUP = 1, CLUTCH_PROFILER_ACTION_RECORD = 2,
  CLUTCH_PROFILER_ACTION_RECORD_AND_SAVE = 3 };

/* ---- Devices, streams, memory and tensors ---- */

/* clutch::DeviceTraits */
struct clutch_device_traits_t {
  size_t size;
  clutch_device_type_t type;
  int64_t opencl_c;
  int64_t address_bits;
  int64_t compute_units;
  uint64_t max_work_group;
  uint64_t local_bytes;
  int64_t local_memory_real;
  uint64_t global_bytes;
  uint64_t max_alloc_bytes;
  uint64_t max_argument_bytes;
  uint64_t cache_bytes;
  uint64_t base_align_bits;
  int64_t native_width_f32;
  int64_t native_width_f64;
  int64_t native_width_f16;
  int64_t fp64;
  int64_t fp16;
  int64_t sub_groups;
  int64_t native_atomics64;
  int64_t out_of_order;
  int64_t priority_hints;
  int64_t register_limits;
  int64_t large_registers;
  int64_t least_sub_group;
  int64_t command_buffer;
  int64_t fma_exact;
  int64_t divide_exact;
  int64_t sqrt_exact;
  int64_t denormals;
  int64_t device_timer;
  int64_t args_by_value;
  int64_t simulator;
  uint64_t quirks;
};
#define CLUTCH_DEVICE_TRAITS_INIT {sizeof(clutch_device_traits_t), CLUTCH_DEVICE_TYPE_OTHER, 120, 64, 1, 1, \
  0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}

/* clutch::StreamOptions */
struct clutch_stream_options_t {
  size_t size;
  clutch_stream_priority_t priority;
};
#define CLUTCH_STREAM_OPTIONS_INIT {sizeof(clutch_stream_options_t), 0}

/* clutch::TensorOptions */
struct clutch_tensor_options_t {
  size_t size;
  clutch_dtype_t dtype;
  const clutch_device_t* device;
};
#define CLUTCH_TENSOR_OPTIONS_INIT {sizeof(clutch_tensor_options_t), CLUTCH_DTYPE_F32, NULL}

/* clutch::CastOptions */
struct clutch_cast_options_t {
  size_t size;
  clutch_overflow_t overflow;
};
#define CLUTCH_CAST_OPTIONS_INIT {sizeof(clutch_cast_options_t), 0}

/* clutch::CopyOptions */
struct clutch_copy_options_t {
  size_t size;
  clutch_overflow_t overflow;
  const char* implementation;
};
#define CLUTCH_COPY_OPTIONS_INIT {sizeof(clutch_copy_options_t), 0, NULL}

/* clutch::FillOptions */
struct clutch_fill_options_t {
  size_t size;
  const char* implementation;
};
#define CLUTCH_FILL_OPTIONS_INIT {sizeof(clutch_fill_options_t), NULL}

/* clutch::GeneratorState */
struct clutch_generator_state_t {
  size_t size;
  uint64_t seed;
  uint64_t offset;
};
#define CLUTCH_GENERATOR_STATE_INIT {sizeof(clutch_generator_state_t), 0, 0}

/* clutch::PartitionOptions */
struct clutch_partition_options_t {
  size_t size;
  int64_t units;
  int64_t workqueue_limit;
  int64_t soft;
};
#define CLUTCH_PARTITION_OPTIONS_INIT {sizeof(clutch_partition_options_t), 0, 0, 0}

/* clutch::MemPoolOptions */
struct clutch_mem_pool_options_t {
  size_t size;
  int64_t use_on_oom;
  int64_t no_split;
};
#define CLUTCH_MEM_POOL_OPTIONS_INIT {sizeof(clutch_mem_pool_options_t), 0, 0}

/* clutch::PoolId */
struct clutch_pool_id_t {
  size_t size;
  uint64_t first;
  uint64_t second;
};
#define CLUTCH_POOL_ID_INIT {sizeof(clutch_pool_id_t), 0, 0}

/* clutch::MemoryInfo */
struct clutch_memory_info_t {
  size_t size;
  uint64_t free;
  uint64_t total;
  int64_t estimated;
};
#define CLUTCH_MEMORY_INFO_INIT {sizeof(clutch_memory_info_t), 0, 0, 1}

/* clutch::MemoryHistoryOptions */
struct clutch_memory_history_options_t {
  size_t size;
  uint64_t max_entries;
  int64_t clear_history;
};
#define CLUTCH_MEMORY_HISTORY_OPTIONS_INIT {sizeof(clutch_memory_history_options_t), 1000000, 0}

/* clutch::CacheUsage */
struct clutch_cache_usage_t {
  size_t size;
  uint64_t files;
  uint64_t bytes;
  uint64_t limit;
};
#define CLUTCH_CACHE_USAGE_INIT {sizeof(clutch_cache_usage_t), 0, 0, 0}

/* clutch::BuildCounters */
struct clutch_build_counters_t {
  size_t size;
  uint64_t built;
  uint64_t loaded;
  uint64_t saved;
  uint64_t packed;
};
#define CLUTCH_BUILD_COUNTERS_INIT {sizeof(clutch_build_counters_t), 0, 0, 0, 0}

/* clutch::Cost */
struct clutch_cost_t {
  size_t size;
  double flops;
  double bytes;
  double flops64;
};
#define CLUTCH_COST_INIT {sizeof(clutch_cost_t), 0, 0, 0}

CLUTCH_C_API void clutch_device_release(const clutch_device_t* device);
CLUTCH_C_API void clutch_stream_release(const clutch_stream_t* stream);
CLUTCH_C_API void clutch_event_release(const clutch_event_t* event);
CLUTCH_C_API void clutch_tensor_release(const clutch_tensor_t* tensor);
CLUTCH_C_API void clutch_storage_handle_release(const clutch_storage_handle_t* storage_handle);
CLUTCH_C_API void clutch_generator_release(const clutch_generator_t* generator);
CLUTCH_C_API void clutch_partition_release(const clutch_partition_t* partition);
CLUTCH_C_API void clutch_partition_guard_release(const clutch_partition_guard_t* partition_guard);
CLUTCH_C_API void clutch_mem_pool_release(const clutch_mem_pool_t* mem_pool);
CLUTCH_C_API void clutch_pool_guard_release(const clutch_pool_guard_t* pool_guard);
CLUTCH_C_API void clutch_memory_label_guard_release(const clutch_memory_label_guard_t* memory_label_guard);
CLUTCH_C_API void clutch_host_mapping_release(const clutch_host_mapping_t* host_mapping);
CLUTCH_C_API void clutch_safetensors_release(const clutch_safetensors_t* safetensors);
CLUTCH_C_API clutch_status_t clutch_device_count(int64_t* result);
/* clutch::device(int) */
CLUTCH_C_API clutch_status_t clutch_device_at(int64_t index, clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_select_devices(const char* selector, clutch_device_t** results,
    size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_device_create(const char* selector, clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_default_device(clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_set_default_device(const clutch_device_t* device);
CLUTCH_C_API clutch_status_t clutch_current_device(clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_set_current_device(const clutch_device_t* device);
CLUTCH_C_API clutch_status_t clutch_device_index(const clutch_device_t* device, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_device_type(const clutch_device_t* device, clutch_device_type_t* result);
CLUTCH_C_API clutch_status_t clutch_device_name(const clutch_device_t* device, char* text, size_t capacity,
    size_t* length);
CLUTCH_C_API clutch_status_t clutch_device_vendor(const clutch_device_t* device, char* text, size_t capacity,
    size_t* length);
CLUTCH_C_API clutch_status_t clutch_device_platform(const clutch_device_t* device, char* text,
    size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_device_driver_version(const clutch_device_t* device, char* text,
    size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_device_extensions(const clutch_device_t* device, char* text,
    size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_device_uuid(const clutch_device_t* device, char* text, size_t capacity,
    size_t* length);
CLUTCH_C_API clutch_status_t clutch_device_selector(const clutch_device_t* device, char* text,
    size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_device_quirks(const clutch_device_t* device, char* text, size_t capacity,
    size_t* length);
CLUTCH_C_API clutch_status_t clutch_device_traits(const clutch_device_t* device,
    clutch_device_traits_t* result);
CLUTCH_C_API clutch_status_t clutch_device_supports(const clutch_device_t* device, clutch_dtype_t dtype,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_synchronize(const clutch_device_t* device);
CLUTCH_C_API clutch_status_t clutch_stream_create(const clutch_device_t* device,
    const clutch_stream_options_t* options, clutch_stream_t** result);
CLUTCH_C_API clutch_status_t clutch_default_stream(const clutch_device_t* device, clutch_stream_t** result);
CLUTCH_C_API clutch_status_t clutch_current_stream(const clutch_device_t* device, clutch_stream_t** result);
CLUTCH_C_API clutch_status_t clutch_set_current_stream(const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_stream_device(const clutch_stream_t* stream, clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_stream_id(const clutch_stream_t* stream, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_stream_priority(const clutch_stream_t* stream,
    clutch_stream_priority_t* result);
CLUTCH_C_API clutch_status_t clutch_stream_partition(const clutch_stream_t* stream,
    clutch_partition_t** result);
CLUTCH_C_API clutch_status_t clutch_stream_query(const clutch_stream_t* stream, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_stream_synchronize(const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_stream_wait(const clutch_stream_t* stream, const clutch_event_t* event);
CLUTCH_C_API clutch_status_t clutch_stream_flush(const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_stream_is_capturing(const clutch_stream_t* stream, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_stream_reset(const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_event_create(clutch_event_t** result);
CLUTCH_C_API clutch_status_t clutch_event_record(clutch_event_t* event, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_event_query(const clutch_event_t* event, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_event_wait(const clutch_event_t* event);
CLUTCH_C_API clutch_status_t clutch_elapsed_ms(const clutch_event_t* start, const clutch_event_t* end,
    double* result);
CLUTCH_C_API clutch_status_t clutch_partition_create(const clutch_device_t* device,
    const clutch_partition_options_t* options, clutch_partition_t** result);
CLUTCH_C_API clutch_status_t clutch_partition_split(const clutch_device_t* device, const int64_t* units,
    size_t units_count, clutch_partition_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_partition_device(const clutch_partition_t* partition,
    clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_partition_units(const clutch_partition_t* partition, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_partition_first_unit(const clutch_partition_t* partition,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_partition_isolation(const clutch_partition_t* partition,
    clutch_isolation_t* result);
CLUTCH_C_API clutch_status_t clutch_partition_workqueue_limit(const clutch_partition_t* partition,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_partition_traits(const clutch_partition_t* partition,
    clutch_device_traits_t* result);
CLUTCH_C_API clutch_status_t clutch_partition_stream(const clutch_partition_t* partition,
    clutch_stream_t** result);
CLUTCH_C_API clutch_status_t clutch_partition_make_stream(const clutch_partition_t* partition,
    const clutch_stream_options_t* options, clutch_stream_t** result);
CLUTCH_C_API clutch_status_t clutch_free_units(const clutch_device_t* device, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_partition_guard_create(const clutch_partition_t* partition,
    clutch_partition_guard_t** result);
CLUTCH_C_API clutch_status_t clutch_empty(const int64_t* sizes, size_t sizes_count,
    const clutch_tensor_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_zeros(const int64_t* sizes, size_t sizes_count,
    const clutch_tensor_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_full(const int64_t* sizes, size_t sizes_count, double value,
    const clutch_tensor_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_arange(double start, double end, double step,
    const clutch_tensor_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_from_bytes(const void* data, size_t data_size, const int64_t* sizes,
    size_t sizes_count, const clutch_tensor_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_dtype(const clutch_tensor_t* tensor, clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_tensor_device(const clutch_tensor_t* tensor, clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_rank(const clutch_tensor_t* tensor, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_tensor_sizes(const clutch_tensor_t* tensor, int64_t* values,
    size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_tensor_strides(const clutch_tensor_t* tensor, int64_t* values,
    size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_tensor_size(const clutch_tensor_t* tensor, int64_t dim, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_tensor_stride(const clutch_tensor_t* tensor, int64_t dim,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_tensor_numel(const clutch_tensor_t* tensor, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_tensor_nbytes(const clutch_tensor_t* tensor, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_tensor_byte_offset(const clutch_tensor_t* tensor, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_tensor_is_contiguous(const clutch_tensor_t* tensor, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_tensor_shares_storage(const clutch_tensor_t* tensor,
    const clutch_tensor_t* other, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_tensor_slice(const clutch_tensor_t* tensor, int64_t dim, int64_t begin,
    int64_t end, int64_t step, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_select(const clutch_tensor_t* tensor, int64_t dim, int64_t index,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_transpose(const clutch_tensor_t* tensor, int64_t dim0,
    int64_t dim1, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_mt(const clutch_tensor_t* tensor, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_reshape(const clutch_tensor_t* tensor, const int64_t* sizes,
    size_t sizes_count, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_expand(const clutch_tensor_t* tensor, const int64_t* sizes,
    size_t sizes_count, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_unsqueeze(const clutch_tensor_t* tensor, int64_t dim,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_squeeze(const clutch_tensor_t* tensor, int64_t dim,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_as_strided(const clutch_tensor_t* tensor, const int64_t* sizes,
    size_t sizes_count, const int64_t* strides, size_t strides_count, int64_t offset,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_contiguous(const clutch_tensor_t* tensor,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_clone(const clutch_tensor_t* tensor, const clutch_stream_t* stream,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_to(const clutch_tensor_t* tensor, clutch_dtype_t dtype,
    const clutch_cast_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::Tensor::to(Device const&) */
CLUTCH_C_API clutch_status_t clutch_tensor_to_device(const clutch_tensor_t* tensor,
    const clutch_device_t* device, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_tensor_read_bytes(const clutch_tensor_t* tensor, void* destination,
    size_t destination_size, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_tensor_write(const clutch_tensor_t* tensor, const void* bytes,
    size_t bytes_size, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_tensor_item(const clutch_tensor_t* tensor, const clutch_stream_t* stream,
    double* result);
CLUTCH_C_API clutch_status_t clutch_tensor_to_string(const clutch_tensor_t* tensor,
    const clutch_stream_t* stream, char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_tensor_share(const clutch_tensor_t* tensor, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_promote_types(clutch_dtype_t a, clutch_dtype_t b, clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_dtype_from_name(const char* name, clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_result_type(const clutch_tensor_t* const* tensors, size_t tensors_count,
    clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_copy_(const clutch_tensor_t* destination, const clutch_tensor_t* source,
    const clutch_copy_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_fill_(const clutch_tensor_t* self, double value,
    const clutch_fill_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_arange_(const clutch_tensor_t* self, double start, double step,
    const clutch_fill_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_storage_handle_create(const clutch_tensor_t* tensor,
    clutch_storage_handle_t** result);
/* clutch::StorageHandle::StorageHandle(unsigned long, Device const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_storage_handle_create_bytes(uint64_t bytes, const clutch_device_t* device,
    const clutch_stream_t* stream, clutch_storage_handle_t** result);
CLUTCH_C_API clutch_status_t clutch_storage_handle_bytes(const clutch_storage_handle_t* storage_handle,
    uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_storage_handle_device(const clutch_storage_handle_t* storage_handle,
    clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_storage_handle_has_memory(const clutch_storage_handle_t* storage_handle,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_storage_handle_view(const clutch_storage_handle_t* storage_handle,
    const int64_t* sizes, size_t sizes_count, const int64_t* strides, size_t strides_count,
    clutch_dtype_t dtype, uint64_t byte_offset, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_host_mapping_create(const clutch_tensor_t* tensor,
    clutch_map_access_t access, const clutch_stream_t* stream, clutch_host_mapping_t** result);
CLUTCH_C_API clutch_status_t clutch_host_mapping_bytes(const clutch_host_mapping_t* host_mapping,
    void** result, size_t* size);
CLUTCH_C_API clutch_status_t clutch_host_mapping_unmap(clutch_host_mapping_t* host_mapping);
CLUTCH_C_API clutch_status_t clutch_interop_to_dlpack(const clutch_tensor_t* tensor,
    clutch_interop_dlpack_memory_t memory, const clutch_stream_t* stream, struct DLManagedTensor** result);
CLUTCH_C_API clutch_status_t clutch_interop_to_dlpack_versioned(const clutch_tensor_t* tensor,
    clutch_interop_dlpack_memory_t memory, const clutch_stream_t* stream,
    struct DLManagedTensorVersioned** result);
CLUTCH_C_API clutch_status_t clutch_interop_from_dlpack(struct DLManagedTensor* managed,
    const clutch_device_t* device, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_interop_from_dlpack_versioned(struct DLManagedTensorVersioned* managed,
    const clutch_device_t* device, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_interop_wrap_queue(void* queue, clutch_stream_t** result);
CLUTCH_C_API clutch_status_t clutch_interop_wrap_buffer(void* buffer, const int64_t* sizes,
    size_t sizes_count, clutch_dtype_t dtype, const clutch_device_t* device, uint64_t byte_offset,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_interop_wrap_event(void* event, clutch_event_t** result);
CLUTCH_C_API clutch_status_t clutch_interop_mem(const clutch_tensor_t* tensor, void** result);
CLUTCH_C_API clutch_status_t clutch_interop_offset(const clutch_tensor_t* tensor, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_interop_queue(const clutch_stream_t* stream, void** result);
CLUTCH_C_API clutch_status_t clutch_interop_context(const clutch_stream_t* stream, void** result);
CLUTCH_C_API clutch_status_t clutch_interop_event(const clutch_event_t* event, void** result);
CLUTCH_C_API clutch_status_t clutch_interop_device_id(const clutch_device_t* device, void** result);
CLUTCH_C_API clutch_status_t clutch_interop_platform_id(const clutch_device_t* device, void** result);
CLUTCH_C_API clutch_status_t clutch_interop_release(void* context);
CLUTCH_C_API clutch_status_t clutch_memory_stat(const char* key, const clutch_device_t* device,
    uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_memory_stat_keys(const clutch_device_t* device, char* text,
    size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_memory_stat_of_pool(const clutch_pool_id_t* pool, const char* key,
    const clutch_device_t* device, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_memory_allocated(const clutch_device_t* device, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_max_memory_allocated(const clutch_device_t* device, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_memory_reserved(const clutch_device_t* device, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_max_memory_reserved(const clutch_device_t* device, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_reset_peak_memory_stats(const clutch_device_t* device);
CLUTCH_C_API clutch_status_t clutch_reset_accumulated_memory_stats(const clutch_device_t* device);
CLUTCH_C_API clutch_status_t clutch_empty_cache(const clutch_device_t* device);
CLUTCH_C_API clutch_status_t clutch_get_memory_info(const clutch_device_t* device,
    clutch_memory_info_t* result);
CLUTCH_C_API clutch_status_t clutch_set_memory_limit(uint64_t bytes, const clutch_device_t* device);
CLUTCH_C_API clutch_status_t clutch_set_per_process_memory_fraction(double fraction,
    const clutch_device_t* device);
CLUTCH_C_API clutch_status_t clutch_get_per_process_memory_fraction(const clutch_device_t* device,
    double* result);
CLUTCH_C_API clutch_status_t clutch_memory_address(const clutch_tensor_t* tensor, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_set_allocator_settings(const char* text);
CLUTCH_C_API clutch_status_t clutch_record_memory_history(const clutch_memory_history_options_t* options);
CLUTCH_C_API clutch_status_t clutch_stop_memory_history(void);
CLUTCH_C_API clutch_status_t clutch_dump_memory_snapshot(const char* path);
/* clutch::new_pool() */
CLUTCH_C_API clutch_status_t clutch_new_pool_id(clutch_pool_id_t* result);
CLUTCH_C_API clutch_status_t clutch_mem_pool_create(const clutch_mem_pool_options_t* options,
    clutch_mem_pool_t** result);
CLUTCH_C_API clutch_status_t clutch_mem_pool_id(const clutch_mem_pool_t* mem_pool, clutch_pool_id_t* result);
CLUTCH_C_API clutch_status_t clutch_pool_guard_create(const clutch_pool_id_t* pool,
    clutch_pool_guard_t** result);
CLUTCH_C_API clutch_status_t clutch_memory_label_guard_create(const char* label,
    clutch_memory_label_guard_t** result);
CLUTCH_C_API clutch_status_t clutch_version(char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_build_info(char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_check_settings(void);
CLUTCH_C_API clutch_status_t clutch_cache_directory(char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_cache_usage(clutch_cache_usage_t* result);
CLUTCH_C_API clutch_status_t clutch_clear_cache(clutch_cache_usage_t* result);
CLUTCH_C_API clutch_status_t clutch_build_counters(clutch_build_counters_t* result);
CLUTCH_C_API clutch_status_t clutch_enqueued_cost(clutch_cost_t* result);
CLUTCH_C_API clutch_status_t clutch_fallback_count(const char* kind, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_last_plan(char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_load_npy(const char* path, const clutch_device_t* device,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_read_npy(const void* bytes, size_t bytes_size,
    const clutch_device_t* device, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_save_npy(const char* path, const clutch_tensor_t* tensor,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_safetensors_open(const char* path, clutch_safetensors_t** result);
CLUTCH_C_API clutch_status_t clutch_safetensors_names(const clutch_safetensors_t* file, char* text,
    size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_safetensors_load(const clutch_safetensors_t* safetensors,
    const char* name, const clutch_device_t* device, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_save_safetensors(const char* path, const char* const* names,
    size_t names_count, const clutch_tensor_t* const* tensors, size_t tensors_count,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_tune_clear(void);
CLUTCH_C_API clutch_status_t clutch_tune_load(const char* path);
CLUTCH_C_API clutch_status_t clutch_tune_save(const char* path);
CLUTCH_C_API clutch_status_t clutch_tune_file(char* text, size_t capacity, size_t* length);

/* ---- Element by element: traced functions, arithmetic, copies of parts ---- */

/* clutch::AddcOptions */
struct clutch_addc_options_t {
  size_t size;
  double value;
  clutch_addc_order_t order;
  const char* implementation;
};
#define CLUTCH_ADDC_OPTIONS_INIT {sizeof(clutch_addc_options_t), 1, 0, NULL}

/* clutch::MapOptions */
struct clutch_map_options_t {
  size_t size;
  const clutch_dtype_t* dtype;
  size_t dtype_count;
  const char* implementation;
};
#define CLUTCH_MAP_OPTIONS_INIT {sizeof(clutch_map_options_t), NULL, 0, NULL}

/* clutch::CatOptions */
struct clutch_cat_options_t {
  size_t size;
  const char* implementation;
};
#define CLUTCH_CAT_OPTIONS_INIT {sizeof(clutch_cat_options_t), NULL}

/* clutch::CumsumOptions */
struct clutch_cumsum_options_t {
  size_t size;
  int64_t reverse;
  const clutch_dtype_t* dtype;
  size_t dtype_count;
  const char* implementation;
};
#define CLUTCH_CUMSUM_OPTIONS_INIT {sizeof(clutch_cumsum_options_t), 0, NULL, 0, NULL}

/* clutch::UniformOptions */
struct clutch_uniform_options_t {
  size_t size;
  double low;
  double high;
  int64_t has_seed;
  uint64_t seed;
  const clutch_generator_t* generator;
};
#define CLUTCH_UNIFORM_OPTIONS_INIT {sizeof(clutch_uniform_options_t), 0, 1, 0, 0, NULL}

/* clutch::NormalOptions */
struct clutch_normal_options_t {
  size_t size;
  double mean;
  double stddev;
  int64_t has_seed;
  uint64_t seed;
  const clutch_generator_t* generator;
};
#define CLUTCH_NORMAL_OPTIONS_INIT {sizeof(clutch_normal_options_t), 0, 1, 0, 0, NULL}

/* clutch::RandomOptions */
struct clutch_random_options_t {
  size_t size;
  clutch_dtype_t dtype;
  const clutch_device_t* device;
  int64_t has_seed;
  uint64_t seed;
  const clutch_generator_t* generator;
};
#define CLUTCH_RANDOM_OPTIONS_INIT {sizeof(clutch_random_options_t), CLUTCH_DTYPE_F32, NULL, 0, 0, NULL}

/* clutch::DrawOptions */
struct clutch_draw_options_t {
  size_t size;
  int64_t has_seed;
  uint64_t seed;
  const clutch_generator_t* generator;
};
#define CLUTCH_DRAW_OPTIONS_INIT {sizeof(clutch_draw_options_t), 0, 0, NULL}

/* clutch::PermutationOptions */
struct clutch_permutation_options_t {
  size_t size;
  clutch_dtype_t dtype;
  const clutch_device_t* device;
  int64_t has_seed;
  uint64_t seed;
  const clutch_generator_t* generator;
};
#define CLUTCH_PERMUTATION_OPTIONS_INIT {sizeof(clutch_permutation_options_t), CLUTCH_DTYPE_I64, NULL, 0, 0, \
  NULL}

CLUTCH_C_API void clutch_expr_function_release(const clutch_expr_function_t* expr_function);
CLUTCH_C_API clutch_status_t clutch_expr_function_parse(const char* text, clutch_expr_function_t** result);
CLUTCH_C_API clutch_status_t clutch_expr_function_text(const clutch_expr_function_t* expr_function,
    char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_expr_function_input_count(const clutch_expr_function_t* expr_function,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_expr_function_output_count(const clutch_expr_function_t* expr_function,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_expr_function_param_count(const clutch_expr_function_t* expr_function,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_expr_function_captured_count(const clutch_expr_function_t* expr_function,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_expr_function_floating_inputs(const clutch_expr_function_t* expr_function,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_expr_function_input_dtype(const clutch_expr_function_t* expr_function,
    int64_t i, clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_expr_function_output_dtype(const clutch_expr_function_t* expr_function,
    int64_t i, clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_expr_function_param_value(const clutch_expr_function_t* expr_function,
    int64_t i, double* result);
CLUTCH_C_API clutch_status_t clutch_expr_function_captured_tensor(const clutch_expr_function_t* expr_function,
    int64_t i, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_expr_function_with_params(const clutch_expr_function_t* expr_function,
    const double* values, size_t values_count, clutch_expr_function_t** result);
CLUTCH_C_API clutch_status_t clutch_expr_function_with_captured(const clutch_expr_function_t* expr_function,
    const clutch_tensor_t* const* tensors, size_t tensors_count, clutch_expr_function_t** result);
CLUTCH_C_API clutch_status_t clutch_expr_function_backward(const clutch_expr_function_t* expr_function,
    clutch_expr_function_t** result);
CLUTCH_C_API clutch_status_t clutch_map_out(const clutch_tensor_t* const* outputs, size_t outputs_count,
    const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_map_dtype(const clutch_expr_function_t* function, int64_t output,
    const clutch_tensor_t* const* inputs, size_t inputs_count, clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_map_backward_out(const clutch_tensor_t* const* outs, size_t outs_count,
    const clutch_tensor_t* const* grad_outputs, size_t grad_outputs_count,
    const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_captured_backward_out(const clutch_tensor_t* const* outs,
    size_t outs_count, const clutch_tensor_t* const* grad_outputs, size_t grad_outputs_count,
    const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_foreach_map_out(const clutch_tensor_t* const* const* outputs,
    const size_t* outputs_sizes, size_t outputs_count, const clutch_expr_function_t* function,
    const clutch_tensor_t* const* const* inputs, const size_t* inputs_sizes, size_t inputs_count,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_addcdiv_out(const clutch_tensor_t* out, const clutch_tensor_t* input,
    const clutch_tensor_t* tensor1, const clutch_tensor_t* tensor2, const clutch_addc_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_addcmul_out(const clutch_tensor_t* out, const clutch_tensor_t* input,
    const clutch_tensor_t* tensor1, const clutch_tensor_t* tensor2, const clutch_addc_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_addcdiv_(const clutch_tensor_t* self, const clutch_tensor_t* tensor1,
    const clutch_tensor_t* tensor2, const clutch_addc_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_addcmul_(const clutch_tensor_t* self, const clutch_tensor_t* tensor1,
    const clutch_tensor_t* tensor2, const clutch_addc_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_neg_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_conj_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_abs_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sign_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_square_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_reciprocal_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sqrt_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_rsqrt_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_exp_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_exp2_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_expm1_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_log_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_log2_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_log1p_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_tanh_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sigmoid_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_erf_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sin_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_cos_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_floor_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_ceil_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_trunc_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_round_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_relu_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_silu_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_softplus_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_bitwise_not_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_logical_not_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_isnan_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_isinf_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_isfinite_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_neg_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_conj_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_abs_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sign_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_square_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_reciprocal_(const clutch_tensor_t* self,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sqrt_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_rsqrt_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_exp_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_exp2_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_expm1_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_log_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_log2_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_log1p_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_tanh_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sigmoid_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_erf_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sin_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_cos_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_floor_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_ceil_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_trunc_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_round_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_relu_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_silu_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_softplus_(const clutch_tensor_t* self,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_bitwise_not_(const clutch_tensor_t* self,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_logical_not_(const clutch_tensor_t* self,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_isnan_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_isinf_(const clutch_tensor_t* self, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_isfinite_(const clutch_tensor_t* self,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_add_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sub_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_mul_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_div_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_floor_divide_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_trunc_divide_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_remainder_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_fmod_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_pow_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_minimum_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_maximum_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_eq_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_ne_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_lt_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_le_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_gt_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_ge_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_bitwise_and_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_bitwise_or_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_bitwise_xor_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_logical_and_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_logical_or_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_logical_xor_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_add_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sub_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_mul_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_div_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_floor_divide_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_trunc_divide_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_remainder_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_fmod_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_pow_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_minimum_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_maximum_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_eq_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_ne_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_lt_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_le_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_gt_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_ge_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_bitwise_and_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_bitwise_or_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_bitwise_xor_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_logical_and_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_logical_or_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_logical_xor_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::add(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_add_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::sub(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_sub_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::mul(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_mul_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::div(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_div_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::floor_divide(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_floor_divide_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::trunc_divide(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_trunc_divide_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::remainder(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_remainder_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::fmod(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_fmod_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::pow(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_pow_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::minimum(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_minimum_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::maximum(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_maximum_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::eq(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_eq_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::ne(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_ne_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::lt(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_lt_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::le(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_le_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::gt(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_gt_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::ge(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_ge_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::bitwise_and(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_bitwise_and_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::bitwise_or(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_bitwise_or_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::bitwise_xor(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_bitwise_xor_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::logical_and(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_logical_and_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::logical_or(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_logical_or_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::logical_xor(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_logical_xor_number(const clutch_tensor_t* a, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::add_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_add_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::sub_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_sub_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::mul_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_mul_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::div_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_div_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::floor_divide_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_floor_divide_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::trunc_divide_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_trunc_divide_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::remainder_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_remainder_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::fmod_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_fmod_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::pow_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_pow_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::minimum_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_minimum_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::maximum_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_maximum_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::eq_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_eq_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::ne_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_ne_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::lt_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_lt_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::le_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_le_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::gt_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_gt_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::ge_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_ge_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::bitwise_and_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_bitwise_and_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::bitwise_or_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_bitwise_or_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::bitwise_xor_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_bitwise_xor_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::logical_and_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_logical_and_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::logical_or_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_logical_or_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::logical_xor_(Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_logical_xor_number_(const clutch_tensor_t* self, clutch_number_t b,
    const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_add_scaled_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, clutch_number_t alpha, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_add_scaled_(const clutch_tensor_t* self, const clutch_tensor_t* b,
    clutch_number_t alpha, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_gelu_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    clutch_gelu_form_t form, const clutch_map_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_leaky_relu_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    clutch_number_t slope, const clutch_map_options_t* options, const clutch_stream_t* stream);
/* clutch::clamp_out(Tensor const&, Tensor const&, Scalar const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_clamp_number_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    clutch_number_t low, clutch_number_t high, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_clamp_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_tensor_t* low, const clutch_tensor_t* high, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_where_out(const clutch_tensor_t* out, const clutch_tensor_t* condition,
    const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
/* clutch::lerp_out(Tensor const&, Tensor const&, Tensor const&, Scalar const&, MapOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_lerp_number_out(const clutch_tensor_t* out, const clutch_tensor_t* start,
    const clutch_tensor_t* end, clutch_number_t weight, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_lerp_out(const clutch_tensor_t* out, const clutch_tensor_t* start,
    const clutch_tensor_t* end, const clutch_tensor_t* weight, const clutch_map_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_cat_out(const clutch_tensor_t* out, const clutch_tensor_t* const* tensors,
    size_t tensors_count, int64_t dim, const clutch_cat_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_stack_out(const clutch_tensor_t* out,
    const clutch_tensor_t* const* tensors, size_t tensors_count, int64_t dim,
    const clutch_cat_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_real(const clutch_tensor_t* x, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_imag(const clutch_tensor_t* x, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_view_as_real(const clutch_tensor_t* x, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_view_as_complex(const clutch_tensor_t* x, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_complex_out(const clutch_tensor_t* out, const clutch_tensor_t* re,
    const clutch_tensor_t* im, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_split(const clutch_tensor_t* tensor, int64_t size, int64_t dim,
    clutch_tensor_t** results, size_t capacity, size_t* count);
/* clutch::split(Tensor const&, std::span<long const>, int) */
CLUTCH_C_API clutch_status_t clutch_split_sizes(const clutch_tensor_t* tensor, const int64_t* sizes,
    size_t sizes_count, int64_t dim, clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_split_copy_out(const clutch_tensor_t* const* outs, size_t outs_count,
    const clutch_tensor_t* tensor, int64_t dim, const clutch_cat_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_foreach_copy_(const clutch_tensor_t* const* destinations,
    size_t destinations_count, const clutch_tensor_t* const* sources, size_t sources_count,
    const clutch_cat_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_cumsum_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    int64_t dim, const clutch_cumsum_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_generator_create(const clutch_device_t* device, uint64_t seed,
    const clutch_stream_t* stream, clutch_generator_t** result);
CLUTCH_C_API clutch_status_t clutch_default_generator(const clutch_device_t* device,
    const clutch_stream_t* stream, clutch_generator_t** result);
CLUTCH_C_API clutch_status_t clutch_manual_seed(uint64_t seed, const clutch_device_t* device,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_generator_device(const clutch_generator_t* generator,
    clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_generator_manual_seed(const clutch_generator_t* generator, uint64_t seed,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_generator_set_state(const clutch_generator_t* generator,
    const clutch_generator_state_t* state, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_generator_state(const clutch_generator_t* generator,
    const clutch_stream_t* stream, clutch_generator_state_t* result);
CLUTCH_C_API clutch_status_t clutch_generator_state_tensor(const clutch_generator_t* generator,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_uniform_(const clutch_tensor_t* self,
    const clutch_uniform_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_normal_(const clutch_tensor_t* self,
    const clutch_normal_options_t* options, const clutch_stream_t* stream);
/* clutch::random_(Tensor const&, long, long, DrawOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_random_range_(const clutch_tensor_t* self, int64_t from, int64_t to,
    const clutch_draw_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_random_(const clutch_tensor_t* self, const clutch_draw_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_bernoulli_(const clutch_tensor_t* self, double p,
    const clutch_draw_options_t* options, const clutch_stream_t* stream);
/* clutch::bernoulli_(Tensor const&, Tensor const&, DrawOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_bernoulli_tensor_(const clutch_tensor_t* self, const clutch_tensor_t* p,
    const clutch_draw_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_exponential_(const clutch_tensor_t* self, double lambda,
    const clutch_draw_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_randperm(int64_t n, const clutch_permutation_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_rand(const int64_t* sizes, size_t sizes_count,
    const clutch_random_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_randn(const int64_t* sizes, size_t sizes_count,
    const clutch_random_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);

/* ---- Reductions, rows, order, indices and segments ---- */

/* clutch::ReduceOptions */
struct clutch_reduce_options_t {
  size_t size;
  const int64_t* dims;
  size_t dims_count;
  int64_t keepdim;
  const clutch_dtype_t* dtype;
  size_t dtype_count;
  const clutch_expr_function_t* after;
  const char* implementation;
};
#define CLUTCH_REDUCE_OPTIONS_INIT {sizeof(clutch_reduce_options_t), NULL, 0, 0, NULL, 0, NULL, NULL}

/* clutch::RowwiseOptions */
struct clutch_rowwise_options_t {
  size_t size;
  const int64_t* dims;
  size_t dims_count;
  const clutch_dtype_t* dtype;
  size_t dtype_count;
  const char* implementation;
};
#define CLUTCH_ROWWISE_OPTIONS_INIT {sizeof(clutch_rowwise_options_t), NULL, 0, NULL, 0, NULL}

/* clutch::SortOptions */
struct clutch_sort_options_t {
  size_t size;
  int64_t descending;
  const char* implementation;
};
#define CLUTCH_SORT_OPTIONS_INIT {sizeof(clutch_sort_options_t), 0, NULL}

/* clutch::TopkOptions */
struct clutch_topk_options_t {
  size_t size;
  int64_t largest;
  const char* implementation;
};
#define CLUTCH_TOPK_OPTIONS_INIT {sizeof(clutch_topk_options_t), 1, NULL}

/* clutch::KthvalueOptions */
struct clutch_kthvalue_options_t {
  size_t size;
  int64_t keepdim;
  const char* implementation;
};
#define CLUTCH_KTHVALUE_OPTIONS_INIT {sizeof(clutch_kthvalue_options_t), 0, NULL}

/* clutch::Sorted */
struct clutch_sorted_t {
  size_t size;
  const clutch_tensor_t* values;
  const clutch_tensor_t* indices;
};
#define CLUTCH_SORTED_INIT {sizeof(clutch_sorted_t), NULL, NULL}

/* clutch::GroupOptions */
struct clutch_group_options_t {
  size_t size;
  const char* implementation;
};
#define CLUTCH_GROUP_OPTIONS_INIT {sizeof(clutch_group_options_t), NULL}

/* clutch::Groups */
struct clutch_groups_t {
  size_t size;
  const clutch_tensor_t* offsets;
  const clutch_tensor_t* order;
};
#define CLUTCH_GROUPS_INIT {sizeof(clutch_groups_t), NULL, NULL}

/* clutch::IndexPutOptions */
struct clutch_index_put_options_t {
  size_t size;
  int64_t accumulate;
};
#define CLUTCH_INDEX_PUT_OPTIONS_INIT {sizeof(clutch_index_put_options_t), 0}

/* clutch::NonzeroOptions */
struct clutch_nonzero_options_t {
  size_t size;
  const char* implementation;
};
#define CLUTCH_NONZERO_OPTIONS_INIT {sizeof(clutch_nonzero_options_t), NULL}

/* clutch::NonzeroStaticOptions */
struct clutch_nonzero_static_options_t {
  size_t size;
  int64_t fill_value;
  const char* implementation;
};
#define CLUTCH_NONZERO_STATIC_OPTIONS_INIT {sizeof(clutch_nonzero_static_options_t), -1, NULL}

/* clutch::UniqueOptions */
struct clutch_unique_options_t {
  size_t size;
  int64_t return_inverse;
  int64_t return_counts;
  const char* implementation;
};
#define CLUTCH_UNIQUE_OPTIONS_INIT {sizeof(clutch_unique_options_t), 0, 0, NULL}

/* clutch::Unique */
struct clutch_unique_t {
  size_t size;
  const clutch_tensor_t* values;
  const clutch_tensor_t* inverse;
  const clutch_tensor_t* counts;
};
#define CLUTCH_UNIQUE_INIT {sizeof(clutch_unique_t), NULL, NULL, NULL}

/* clutch::SegmentOptions */
struct clutch_segment_options_t {
  size_t size;
  clutch_reduce_t reduce;
  int64_t has_initial;
  double initial;
  const char* implementation;
};
#define CLUTCH_SEGMENT_OPTIONS_INIT {sizeof(clutch_segment_options_t), 0, 0, 0, NULL}

/* clutch::ScatterOptions */
struct clutch_scatter_options_t {
  size_t size;
  clutch_reduce_t reduce;
  int64_t include_self;
  const char* implementation;
};
#define CLUTCH_SCATTER_OPTIONS_INIT {sizeof(clutch_scatter_options_t), 0, 1, NULL}

/* clutch::ScatterGradients */
struct clutch_scatter_gradients_t {
  size_t size;
  const clutch_tensor_t* self;
  const clutch_tensor_t* src;
};
#define CLUTCH_SCATTER_GRADIENTS_INIT {sizeof(clutch_scatter_gradients_t), NULL, NULL}

/* clutch::SelectiveScanOptions */
struct clutch_selective_scan_options_t {
  size_t size;
  const clutch_tensor_t* skip;
  const clutch_tensor_t* gate;
  const clutch_tensor_t* delta_bias;
  int64_t delta_softplus;
  const clutch_tensor_t* initial_state;
  const char* implementation;
};
#define CLUTCH_SELECTIVE_SCAN_OPTIONS_INIT {sizeof(clutch_selective_scan_options_t), NULL, NULL, NULL, 0, \
  NULL, NULL}

/* clutch::SelectiveScanResult */
struct clutch_selective_scan_result_t {
  size_t size;
  const clutch_tensor_t* y;
  const clutch_tensor_t* state;
};
#define CLUTCH_SELECTIVE_SCAN_RESULT_INIT {sizeof(clutch_selective_scan_result_t), NULL, NULL}

/* clutch::SelectiveScanGradients */
struct clutch_selective_scan_gradients_t {
  size_t size;
  const clutch_tensor_t* x;
  const clutch_tensor_t* delta;
  const clutch_tensor_t* a;
  const clutch_tensor_t* b;
  const clutch_tensor_t* c;
  const clutch_tensor_t* skip;
  const clutch_tensor_t* gate;
  const clutch_tensor_t* delta_bias;
  const clutch_tensor_t* initial_state;
};
#define CLUTCH_SELECTIVE_SCAN_GRADIENTS_INIT {sizeof(clutch_selective_scan_gradients_t), NULL, NULL, NULL, \
  NULL, NULL, NULL, NULL, NULL, NULL}

/* clutch::nn::NormOptions */
struct clutch_nn_norm_options_t {
  size_t size;
  int64_t normalized_rank;
  double eps;
};
#define CLUTCH_NN_NORM_OPTIONS_INIT {sizeof(clutch_nn_norm_options_t), 1, 1e-5}

/* clutch::nn::LayerNormResult */
struct clutch_nn_layer_norm_result_t {
  size_t size;
  const clutch_tensor_t* y;
  const clutch_tensor_t* mean;
  const clutch_tensor_t* rstd;
};
#define CLUTCH_NN_LAYER_NORM_RESULT_INIT {sizeof(clutch_nn_layer_norm_result_t), NULL, NULL, NULL}

/* clutch::nn::LayerNormGradients */
struct clutch_nn_layer_norm_gradients_t {
  size_t size;
  const clutch_tensor_t* x;
  const clutch_tensor_t* weight;
  const clutch_tensor_t* bias;
};
#define CLUTCH_NN_LAYER_NORM_GRADIENTS_INIT {sizeof(clutch_nn_layer_norm_gradients_t), NULL, NULL, NULL}

/* clutch::nn::RmsNormResult */
struct clutch_nn_rms_norm_result_t {
  size_t size;
  const clutch_tensor_t* y;
  const clutch_tensor_t* rrms;
};
#define CLUTCH_NN_RMS_NORM_RESULT_INIT {sizeof(clutch_nn_rms_norm_result_t), NULL, NULL}

/* clutch::nn::RmsNormGradients */
struct clutch_nn_rms_norm_gradients_t {
  size_t size;
  const clutch_tensor_t* x;
  const clutch_tensor_t* weight;
};
#define CLUTCH_NN_RMS_NORM_GRADIENTS_INIT {sizeof(clutch_nn_rms_norm_gradients_t), NULL, NULL}

/* clutch::nn::CrossEntropyOptions */
struct clutch_nn_cross_entropy_options_t {
  size_t size;
  const clutch_tensor_t* weight;
  int64_t ignore_index;
  clutch_nn_reduction_t reduction;
  double label_smoothing;
};
#define CLUTCH_NN_CROSS_ENTROPY_OPTIONS_INIT {sizeof(clutch_nn_cross_entropy_options_t), NULL, -100, 0, 0}

/* clutch::nn::CrossEntropyResult */
struct clutch_nn_cross_entropy_result_t {
  size_t size;
  const clutch_tensor_t* loss;
  const clutch_tensor_t* max;
  const clutch_tensor_t* log_sum;
};
#define CLUTCH_NN_CROSS_ENTROPY_RESULT_INIT {sizeof(clutch_nn_cross_entropy_result_t), NULL, NULL, NULL}

/* clutch::nn::EmbeddingBackwardOptions */
struct clutch_nn_embedding_backward_options_t {
  size_t size;
  int64_t padding_index;
  int64_t scale_by_frequency;
};
#define CLUTCH_NN_EMBEDDING_BACKWARD_OPTIONS_INIT {sizeof(clutch_nn_embedding_backward_options_t), -1, 0}

CLUTCH_C_API void clutch_row_function_release(const clutch_row_function_t* row_function);
CLUTCH_C_API clutch_status_t clutch_reduce_out(const clutch_tensor_t* out, clutch_reduce_t op,
    const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sum_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_mean_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_prod_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_amin_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_amax_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_any_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_all_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_argmin_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_argmax_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_logsumexp_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_count_nonzero_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_var_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    double correction, const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_norm_out(const clutch_tensor_t* out, const clutch_tensor_t* x, double p,
    const clutch_reduce_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sum_to_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_row_function_create(const clutch_dtype_t* inputs, size_t inputs_count,
    const clutch_reduce_t* ops, size_t ops_count, const clutch_expr_function_t* const* values,
    size_t values_count, const clutch_expr_function_t* elements, const clutch_expr_function_t* results,
    clutch_row_function_t** result);
CLUTCH_C_API clutch_status_t clutch_row_function_parse(const char* text, clutch_row_function_t** result);
CLUTCH_C_API clutch_status_t clutch_row_function_text(const clutch_row_function_t* row_function, char* text,
    size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_row_function_input_count(const clutch_row_function_t* row_function,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_row_function_element_count(const clutch_row_function_t* row_function,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_row_function_result_count(const clutch_row_function_t* row_function,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_row_function_param_count(const clutch_row_function_t* row_function,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_row_function_param_value(const clutch_row_function_t* row_function,
    int64_t i, double* result);
CLUTCH_C_API clutch_status_t clutch_row_function_with_params(const clutch_row_function_t* row_function,
    const double* values, size_t values_count, clutch_row_function_t** result);
CLUTCH_C_API clutch_status_t clutch_rowwise_out(const clutch_tensor_t* const* outputs, size_t outputs_count,
    const clutch_row_function_t* function, const clutch_tensor_t* const* inputs, size_t inputs_count,
    const clutch_rowwise_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_softmax_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    int64_t dim, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_log_softmax_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    int64_t dim, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_softmax_backward_out(const clutch_tensor_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* y, int64_t dim, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_log_softmax_backward_out(const clutch_tensor_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* y, int64_t dim, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_selective_scan_out(const clutch_selective_scan_result_t* out,
    const clutch_tensor_t* x, const clutch_tensor_t* delta, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_tensor_t* c, const clutch_selective_scan_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_selective_scan_backward_out(const clutch_selective_scan_gradients_t* out,
    const clutch_selective_scan_result_t* grad, const clutch_tensor_t* x, const clutch_tensor_t* delta,
    const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_tensor_t* c,
    const clutch_selective_scan_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_layer_norm_out(const clutch_nn_layer_norm_result_t* out,
    const clutch_tensor_t* x, const clutch_tensor_t* weight, const clutch_tensor_t* bias,
    const clutch_nn_norm_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_layer_norm_backward_out(const clutch_nn_layer_norm_gradients_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* x, const clutch_tensor_t* mean,
    const clutch_tensor_t* rstd, const clutch_tensor_t* weight, const clutch_nn_norm_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_rms_norm_out(const clutch_nn_rms_norm_result_t* out,
    const clutch_tensor_t* x, const clutch_tensor_t* weight, const clutch_nn_norm_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_rms_norm_backward_out(const clutch_nn_rms_norm_gradients_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* x, const clutch_tensor_t* rrms,
    const clutch_tensor_t* weight, const clutch_nn_norm_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_cross_entropy_out(const clutch_nn_cross_entropy_result_t* out,
    const clutch_tensor_t* logits, const clutch_tensor_t* target,
    const clutch_nn_cross_entropy_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_cross_entropy_backward_out(const clutch_tensor_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* logits, const clutch_tensor_t* target,
    const clutch_nn_cross_entropy_result_t* result, const clutch_nn_cross_entropy_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_embedding_out(const clutch_tensor_t* out,
    const clutch_tensor_t* weight, const clutch_tensor_t* index, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_nn_embedding_backward_out(const clutch_tensor_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* index, int64_t rows,
    const clutch_nn_embedding_backward_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sort_out(const clutch_sorted_t* out, const clutch_tensor_t* x,
    int64_t dim, const clutch_sort_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_argsort_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    int64_t dim, const clutch_sort_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_topk_out(const clutch_sorted_t* out, const clutch_tensor_t* x, int64_t k,
    int64_t dim, const clutch_topk_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_kthvalue_out(const clutch_sorted_t* out, const clutch_tensor_t* x,
    int64_t k, int64_t dim, const clutch_kthvalue_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_unique(const clutch_tensor_t* x, const clutch_unique_options_t* options,
    const clutch_stream_t* stream, clutch_unique_t* result);
CLUTCH_C_API clutch_status_t clutch_unique_consecutive(const clutch_tensor_t* x,
    const clutch_unique_options_t* options, const clutch_stream_t* stream, clutch_unique_t* result);
CLUTCH_C_API clutch_status_t clutch_nonzero(const clutch_tensor_t* x, const clutch_nonzero_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_nonzero_static_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    int64_t size, const clutch_nonzero_static_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_masked_select(const clutch_tensor_t* x, const clutch_tensor_t* mask,
    const clutch_nonzero_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_index_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_tensor_t* const* indices, size_t indices_count, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_index_put_out(const clutch_tensor_t* out, const clutch_tensor_t* self,
    const clutch_tensor_t* const* indices, size_t indices_count, const clutch_tensor_t* values,
    const clutch_index_put_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_index_put_(const clutch_tensor_t* self,
    const clutch_tensor_t* const* indices, size_t indices_count, const clutch_tensor_t* values,
    const clutch_index_put_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_gather_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    int64_t dim, const clutch_tensor_t* index, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_gather_backward_out(const clutch_tensor_t* out,
    const clutch_tensor_t* grad, int64_t dim, const clutch_tensor_t* index, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_index_select_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    int64_t dim, const clutch_tensor_t* index, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_scatter_reduce_out(const clutch_tensor_t* out,
    const clutch_tensor_t* self, int64_t dim, const clutch_tensor_t* index, const clutch_tensor_t* src,
    const clutch_scatter_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_scatter_reduce_(const clutch_tensor_t* self, int64_t dim,
    const clutch_tensor_t* index, const clutch_tensor_t* src, const clutch_scatter_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_scatter_reduce_backward_out(const clutch_scatter_gradients_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* result, const clutch_tensor_t* self, int64_t dim,
    const clutch_tensor_t* index, const clutch_tensor_t* src, const clutch_scatter_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_segment_reduce_out(const clutch_tensor_t* out,
    const clutch_tensor_t* data, const clutch_tensor_t* offsets, const clutch_segment_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_segment_reduce_backward_out(const clutch_tensor_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* result, const clutch_tensor_t* data,
    const clutch_tensor_t* offsets, const clutch_segment_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_group_by_out(const clutch_groups_t* out, const clutch_tensor_t* index,
    int64_t groups, const clutch_group_options_t* options, const clutch_stream_t* stream);

/* ---- Products, eigenpairs and sparse matrices ---- */

/* clutch::linalg::MatmulOptions */
struct clutch_linalg_matmul_options_t {
  size_t size;
  double alpha;
  double beta;
  const clutch_dtype_t* dtype;
  size_t dtype_count;
  const char* implementation;
  clutch_linalg_numerics_t numerics;
};
#define CLUTCH_LINALG_MATMUL_OPTIONS_INIT {sizeof(clutch_linalg_matmul_options_t), 1, 0, NULL, 0, NULL, 0}

/* clutch::linalg::LinearOptions */
struct clutch_linalg_linear_options_t {
  size_t size;
  clutch_nn_activation_t activation;
  const clutch_dtype_t* dtype;
  size_t dtype_count;
  clutch_linalg_numerics_t numerics;
};
#define CLUTCH_LINALG_LINEAR_OPTIONS_INIT {sizeof(clutch_linalg_linear_options_t), 0, NULL, 0, 0}

/* clutch::linalg::MatmulGradients */
struct clutch_linalg_matmul_gradients_t {
  size_t size;
  const clutch_tensor_t* a;
  const clutch_tensor_t* b;
  const clutch_tensor_t* const* inputs;
  size_t inputs_count;
};
#define CLUTCH_LINALG_MATMUL_GRADIENTS_INIT {sizeof(clutch_linalg_matmul_gradients_t), NULL, NULL, NULL, 0}

/* clutch::linalg::MatmulBackwardOptions */
struct clutch_linalg_matmul_backward_options_t {
  size_t size;
  clutch_linalg_numerics_t numerics;
};
#define CLUTCH_LINALG_MATMUL_BACKWARD_OPTIONS_INIT {sizeof(clutch_linalg_matmul_backward_options_t), 0}

/* clutch::linalg::LinearGradients */
struct clutch_linalg_linear_gradients_t {
  size_t size;
  const clutch_tensor_t* x;
  const clutch_tensor_t* weight;
  const clutch_tensor_t* bias;
};
#define CLUTCH_LINALG_LINEAR_GRADIENTS_INIT {sizeof(clutch_linalg_linear_gradients_t), NULL, NULL, NULL}

/* clutch::linalg::ScaledMatmulOptions */
struct clutch_linalg_scaled_matmul_options_t {
  size_t size;
  const clutch_tensor_t* bias;
  const clutch_dtype_t* dtype;
  size_t dtype_count;
  clutch_linalg_numerics_t numerics;
};
#define CLUTCH_LINALG_SCALED_MATMUL_OPTIONS_INIT {sizeof(clutch_linalg_scaled_matmul_options_t), NULL, NULL, \
  0, 0}

/* clutch::linalg::Quantization */
struct clutch_linalg_quantization_t {
  size_t size;
  const clutch_tensor_t* scale;
  const clutch_tensor_t* zero_point;
};
#define CLUTCH_LINALG_QUANTIZATION_INIT {sizeof(clutch_linalg_quantization_t), NULL, NULL}

/* clutch::linalg::QuantizedMatmulOptions */
struct clutch_linalg_quantized_matmul_options_t {
  size_t size;
  const clutch_tensor_t* bias;
  const clutch_dtype_t* dtype;
  size_t dtype_count;
  const clutch_linalg_quantization_t* result;
};
#define CLUTCH_LINALG_QUANTIZED_MATMUL_OPTIONS_INIT {sizeof(clutch_linalg_quantized_matmul_options_t), NULL, \
  NULL, 0, NULL}

/* clutch::linalg::EighOptions */
struct clutch_linalg_eigh_options_t {
  size_t size;
  clutch_linalg_uplo_t uplo;
  clutch_linalg_eigh_driver_t driver;
  clutch_linalg_eigh_phase_t phase;
  clutch_linalg_eigh_accuracy_t accuracy;
  int64_t first;
  int64_t count;
  double tolerance;
  int64_t max_sweeps;
};
#define CLUTCH_LINALG_EIGH_OPTIONS_INIT {sizeof(clutch_linalg_eigh_options_t), 0, 0, 0, 0, 0, -1, 0, 0}

/* clutch::linalg::EighStatus */
struct clutch_linalg_eigh_status_t {
  size_t size;
  const clutch_tensor_t* info;
  const clutch_tensor_t* sweeps;
};
#define CLUTCH_LINALG_EIGH_STATUS_INIT {sizeof(clutch_linalg_eigh_status_t), NULL, NULL}

/* clutch::linalg::EighBackwardOptions */
struct clutch_linalg_eigh_backward_options_t {
  size_t size;
  double broadening;
};
#define CLUTCH_LINALG_EIGH_BACKWARD_OPTIONS_INIT {sizeof(clutch_linalg_eigh_backward_options_t), 0}

/* clutch::linalg::EighGradient */
struct clutch_linalg_eigh_gradient_t {
  size_t size;
  const clutch_tensor_t* grad_a;
  const clutch_tensor_t* gauge;
};
#define CLUTCH_LINALG_EIGH_GRADIENT_INIT {sizeof(clutch_linalg_eigh_gradient_t), NULL, NULL}

/* clutch::sparse::PruneOptions */
struct clutch_sparse_prune_options_t {
  size_t size;
  clutch_sparse_prune_rule_t rule;
};
#define CLUTCH_SPARSE_PRUNE_OPTIONS_INIT {sizeof(clutch_sparse_prune_options_t), 0}

/* clutch::sparse::CompressOptions */
struct clutch_sparse_compress_options_t {
  size_t size;
  int64_t strict;
};
#define CLUTCH_SPARSE_COMPRESS_OPTIONS_INIT {sizeof(clutch_sparse_compress_options_t), 1}

/* clutch::sparse::CutlassLayout */
struct clutch_sparse_cutlass_layout_t {
  size_t size;
  const clutch_tensor_t* values;
  const clutch_tensor_t* metadata;
};
#define CLUTCH_SPARSE_CUTLASS_LAYOUT_INIT {sizeof(clutch_sparse_cutlass_layout_t), NULL, NULL}

/* clutch::sparse::LinearBackwardOptions */
struct clutch_sparse_linear_backward_options_t {
  size_t size;
  clutch_nn_activation_t activation;
  const clutch_sparse_semi_structured_t* transposed;
  int64_t masked;
  clutch_linalg_numerics_t numerics;
};
#define CLUTCH_SPARSE_LINEAR_BACKWARD_OPTIONS_INIT {sizeof(clutch_sparse_linear_backward_options_t), 0, \
  NULL, 1, 0}

/* clutch::sparse::Csr */
struct clutch_sparse_csr_t {
  size_t size;
  const clutch_tensor_t* offsets;
  const clutch_tensor_t* columns;
  const clutch_tensor_t* values;
  int64_t width;
};
#define CLUTCH_SPARSE_CSR_INIT {sizeof(clutch_sparse_csr_t), NULL, NULL, NULL, 0}

/* clutch::sparse::SpmmOptions */
struct clutch_sparse_spmm_options_t {
  size_t size;
  clutch_reduce_t reduce;
  const char* implementation;
};
#define CLUTCH_SPARSE_SPMM_OPTIONS_INIT {sizeof(clutch_sparse_spmm_options_t), 0, NULL}

/* clutch::sparse::SpmmGradients */
struct clutch_sparse_spmm_gradients_t {
  size_t size;
  const clutch_tensor_t* values;
  const clutch_tensor_t* b;
};
#define CLUTCH_SPARSE_SPMM_GRADIENTS_INIT {sizeof(clutch_sparse_spmm_gradients_t), NULL, NULL}

CLUTCH_C_API void clutch_linalg_packed_matrix_release(const clutch_linalg_packed_matrix_t* packed_matrix);
CLUTCH_C_API void clutch_sparse_semi_structured_release(const clutch_sparse_semi_structured_t* semi_structured);
CLUTCH_C_API clutch_status_t clutch_linalg_packed_matrix_create(const clutch_tensor_t* b,
    const clutch_stream_t* stream, clutch_linalg_packed_matrix_t** result);
CLUTCH_C_API clutch_status_t clutch_linalg_packed_matrix_sizes(const clutch_linalg_packed_matrix_t* packed_matrix,
    int64_t* values, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_linalg_packed_matrix_dtype(const clutch_linalg_packed_matrix_t* packed_matrix,
    clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_linalg_packed_matrix_nbytes(const clutch_linalg_packed_matrix_t* packed_matrix,
    uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_linalg_matmul_out(const clutch_tensor_t* out, const clutch_tensor_t* a,
    const clutch_tensor_t* b, const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
/* clutch::linalg::matmul_out(Tensor const&, Tensor const&, linalg::MatrixOperand const&, linalg::MatmulOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_linalg_matmul_packed_out(const clutch_tensor_t* out,
    const clutch_tensor_t* a, const clutch_linalg_packed_matrix_t* b,
    const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
/* clutch::linalg::matmul_out(Tensor const&, Tensor const&, linalg::MatrixOperand const&, ExprFunction const&, std::span<Tensor const>, linalg::MatmulOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_linalg_matmul_function_out(const clutch_tensor_t* out,
    const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_expr_function_t* f,
    const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_linalg_matmul_options_t* options,
    const clutch_stream_t* stream);
/* clutch::linalg::matmul_out(Tensor const&, Tensor const&, linalg::MatrixOperand const&, ExprFunction const&, std::span<Tensor const>, linalg::MatmulOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_linalg_matmul_packed_function_out(const clutch_tensor_t* out,
    const clutch_tensor_t* a, const clutch_linalg_packed_matrix_t* b, const clutch_expr_function_t* f,
    const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_linalg_matmul_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_product_dtype(clutch_dtype_t a, clutch_dtype_t b, const char* op,
    clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_linalg_linear_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_tensor_t* weight, const clutch_tensor_t* bias, const clutch_linalg_linear_options_t* options,
    const clutch_stream_t* stream);
/* clutch::linalg::linear_out(Tensor const&, Tensor const&, linalg::PackedMatrix const&, Tensor const&, linalg::LinearOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_linalg_linear_packed_out(const clutch_tensor_t* out,
    const clutch_tensor_t* x, const clutch_linalg_packed_matrix_t* weight, const clutch_tensor_t* bias,
    const clutch_linalg_linear_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_matmul_backward_out(const clutch_linalg_matmul_gradients_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* a, const clutch_tensor_t* b,
    const clutch_linalg_matmul_backward_options_t* options, const clutch_stream_t* stream);
/* clutch::linalg::matmul_backward_out(linalg::MatmulGradients const&, Tensor const&, Tensor const&, Tensor const&, ExprFunction const&, std::span<Tensor const>, linalg::MatmulBackwardOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_linalg_matmul_function_backward_out(const clutch_linalg_matmul_gradients_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* a, const clutch_tensor_t* b,
    const clutch_expr_function_t* f, const clutch_tensor_t* const* inputs, size_t inputs_count,
    const clutch_linalg_matmul_backward_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_linear_backward_out(const clutch_linalg_linear_gradients_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* x, const clutch_tensor_t* weight,
    const clutch_tensor_t* bias, const clutch_linalg_linear_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_scaled_matmul_out(const clutch_tensor_t* out,
    const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_tensor_t* scale_a,
    const clutch_tensor_t* scale_b, const clutch_linalg_scaled_matmul_options_t* options,
    const clutch_stream_t* stream);
/* clutch::linalg::scaled_matmul_out(Tensor const&, Tensor const&, linalg::MatrixOperand const&, Tensor const&, Tensor const&, linalg::ScaledMatmulOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_linalg_scaled_matmul_packed_out(const clutch_tensor_t* out,
    const clutch_tensor_t* a, const clutch_linalg_packed_matrix_t* b, const clutch_tensor_t* scale_a,
    const clutch_tensor_t* scale_b, const clutch_linalg_scaled_matmul_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_quantized_matmul_out(const clutch_tensor_t* out,
    const clutch_tensor_t* a, const clutch_linalg_quantization_t* of_a, const clutch_tensor_t* b,
    const clutch_linalg_quantization_t* of_b, const clutch_linalg_quantized_matmul_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_eigh_out(const clutch_tensor_t* w, const clutch_tensor_t* v,
    const clutch_linalg_eigh_status_t* status, const clutch_tensor_t* a,
    const clutch_linalg_eigh_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_eigvalsh_out(const clutch_tensor_t* w,
    const clutch_linalg_eigh_status_t* status, const clutch_tensor_t* a,
    const clutch_linalg_eigh_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_eigh_backward_out(const clutch_linalg_eigh_gradient_t* out,
    const clutch_tensor_t* grad_w, const clutch_tensor_t* grad_v, const clutch_tensor_t* w,
    const clutch_tensor_t* v, const clutch_linalg_eigh_backward_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_require_gauge(const clutch_tensor_t* gauge, double tolerance,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_linalg_require_converged(const clutch_linalg_eigh_status_t* status,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_prune_2_4_out(const clutch_tensor_t* out, const clutch_tensor_t* w,
    const clutch_sparse_prune_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_mask_2_4_out(const clutch_tensor_t* out, const clutch_tensor_t* w,
    const clutch_sparse_prune_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_apply_mask_out(const clutch_tensor_t* out,
    const clutch_tensor_t* w, const clutch_tensor_t* mask, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_to_bitmask_out(const clutch_tensor_t* out,
    const clutch_tensor_t* mask, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_from_bitmask_out(const clutch_tensor_t* out,
    const clutch_tensor_t* bits, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_is_2_4_out(const clutch_tensor_t* out, const clutch_tensor_t* w,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_require_2_4(const clutch_tensor_t* w,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_semi_structured_create(const clutch_tensor_t* values,
    const clutch_tensor_t* metadata, int64_t k, clutch_sparse_semi_structured_t** result);
CLUTCH_C_API clutch_status_t clutch_sparse_compress(const clutch_tensor_t* w,
    const clutch_sparse_compress_options_t* options, const clutch_stream_t* stream,
    clutch_sparse_semi_structured_t** result);
CLUTCH_C_API clutch_status_t clutch_sparse_semi_structured_sizes(const clutch_sparse_semi_structured_t* semi_structured,
    int64_t* values, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_sparse_semi_structured_dtype(const clutch_sparse_semi_structured_t* semi_structured,
    clutch_dtype_t* result);
CLUTCH_C_API clutch_status_t clutch_sparse_semi_structured_nbytes(const clutch_sparse_semi_structured_t* semi_structured,
    uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_sparse_semi_structured_values(const clutch_sparse_semi_structured_t* semi_structured,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_sparse_semi_structured_metadata(const clutch_sparse_semi_structured_t* semi_structured,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_sparse_semi_structured_info(const clutch_sparse_semi_structured_t* semi_structured,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_sparse_decompress_out(const clutch_tensor_t* out,
    const clutch_sparse_semi_structured_t* s, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_to_cutlass_out(const clutch_sparse_cutlass_layout_t* out,
    const clutch_sparse_semi_structured_t* s, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_from_cutlass(const clutch_sparse_cutlass_layout_t* layout,
    const clutch_stream_t* stream, clutch_sparse_semi_structured_t** result);
CLUTCH_C_API clutch_status_t clutch_sparse_matmul_out(const clutch_tensor_t* out,
    const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* b,
    const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
/* clutch::sparse::matmul_out(Tensor const&, sparse::SemiStructured const&, Tensor const&, ExprFunction const&, std::span<Tensor const>, linalg::MatmulOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_sparse_matmul_function_out(const clutch_tensor_t* out,
    const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* b, const clutch_expr_function_t* f,
    const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_linalg_matmul_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_matmul_transposed_out(const clutch_tensor_t* out,
    const clutch_tensor_t* a, const clutch_sparse_semi_structured_t* w,
    const clutch_linalg_matmul_options_t* options, const clutch_stream_t* stream);
/* clutch::sparse::matmul_transposed_out(Tensor const&, Tensor const&, sparse::SemiStructured const&, ExprFunction const&, std::span<Tensor const>, linalg::MatmulOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_sparse_matmul_transposed_function_out(const clutch_tensor_t* out,
    const clutch_tensor_t* a, const clutch_sparse_semi_structured_t* w, const clutch_expr_function_t* f,
    const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_linalg_matmul_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_scaled_matmul_out(const clutch_tensor_t* out,
    const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* b, const clutch_tensor_t* scale_w,
    const clutch_tensor_t* scale_b, const clutch_linalg_scaled_matmul_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_scaled_matmul_transposed_out(const clutch_tensor_t* out,
    const clutch_tensor_t* a, const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* scale_a,
    const clutch_tensor_t* scale_w, const clutch_linalg_scaled_matmul_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_linear_out(const clutch_tensor_t* out, const clutch_tensor_t* x,
    const clutch_sparse_semi_structured_t* w, const clutch_tensor_t* bias,
    const clutch_linalg_linear_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_linear_backward_out(const clutch_linalg_linear_gradients_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* x, const clutch_sparse_semi_structured_t* w,
    const clutch_tensor_t* bias, const clutch_sparse_linear_backward_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_mask_of_out(const clutch_tensor_t* out,
    const clutch_sparse_semi_structured_t* w, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_spmm_out(const clutch_tensor_t* out, const clutch_sparse_csr_t* a,
    const clutch_tensor_t* b, const clutch_sparse_spmm_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_sparse_spmm_backward_out(const clutch_sparse_spmm_gradients_t* out,
    const clutch_tensor_t* grad, const clutch_tensor_t* result, const clutch_sparse_csr_t* a,
    const clutch_tensor_t* b, const clutch_sparse_spmm_options_t* options, const clutch_stream_t* stream);

/* ---- Attention ---- */

/* clutch::attention::BlockSize */
struct clutch_attention_block_size_t {
  size_t size;
  int64_t q;
  int64_t kv;
};
#define CLUTCH_ATTENTION_BLOCK_SIZE_INIT {sizeof(clutch_attention_block_size_t), 128, 128}

/* clutch::attention::BlockMaskOptions */
struct clutch_attention_block_mask_options_t {
  size_t size;
  int64_t batch;
  int64_t heads;
  int64_t q_len;
  int64_t kv_len;
  const clutch_attention_block_size_t* block;
  const clutch_device_t* device;
  const char* implementation;
};
#define CLUTCH_ATTENTION_BLOCK_MASK_OPTIONS_INIT {sizeof(clutch_attention_block_mask_options_t), 1, 1, 0, 0, \
  NULL, NULL, NULL}

/* clutch::attention::Varlen */
struct clutch_attention_varlen_t {
  size_t size;
  const clutch_tensor_t* cu_seq_q;
  const clutch_tensor_t* cu_seq_kv;
  const clutch_tensor_t* seqused_kv;
  const clutch_tensor_t* page_table;
  int64_t page_size;
  int64_t max_q;
  int64_t max_kv;
};
#define CLUTCH_ATTENTION_VARLEN_INIT {sizeof(clutch_attention_varlen_t), NULL, NULL, NULL, NULL, 0, 0, 0}

/* clutch::attention::FlexOptions */
struct clutch_attention_flex_options_t {
  size_t size;
  const clutch_attention_score_mod_t* score_mod;
  const clutch_attention_mask_mod_t* mask_mod;
  const clutch_attention_block_mask_t* block_mask;
  int64_t has_scale;
  double scale;
  int64_t enable_gqa;
  int64_t return_lse;
  int64_t return_max_scores;
  const clutch_attention_varlen_t* varlen;
  double dropout_p;
  const clutch_generator_t* generator;
  int64_t skip_masked;
  const char* implementation;
  clutch_linalg_numerics_t numerics;
};
#define CLUTCH_ATTENTION_FLEX_OPTIONS_INIT {sizeof(clutch_attention_flex_options_t), NULL, NULL, NULL, 0, 0, \
  0, 0, 0, NULL, 0, NULL, 0, NULL, 0}

/* clutch::attention::FlexResult */
struct clutch_attention_flex_result_t {
  size_t size;
  const clutch_tensor_t* out;
  const clutch_tensor_t* lse;
  const clutch_tensor_t* max_scores;
  const clutch_tensor_t* dropout_state;
};
#define CLUTCH_ATTENTION_FLEX_RESULT_INIT {sizeof(clutch_attention_flex_result_t), NULL, NULL, NULL, NULL}

/* clutch::attention::FlexBackwardOptions */
struct clutch_attention_flex_backward_options_t {
  size_t size;
  const clutch_tensor_t* grad_lse;
  int64_t captured_gradients;
};
#define CLUTCH_ATTENTION_FLEX_BACKWARD_OPTIONS_INIT {sizeof(clutch_attention_flex_backward_options_t), NULL, \
  0}

/* clutch::attention::FlexGradients */
struct clutch_attention_flex_gradients_t {
  size_t size;
  const clutch_tensor_t* q;
  const clutch_tensor_t* k;
  const clutch_tensor_t* v;
  const clutch_tensor_t* const* captured;
  size_t captured_count;
};
#define CLUTCH_ATTENTION_FLEX_GRADIENTS_INIT {sizeof(clutch_attention_flex_gradients_t), NULL, NULL, NULL, \
  NULL, 0}

/* clutch::attention::SdpaOptions */
struct clutch_attention_sdpa_options_t {
  size_t size;
  const clutch_tensor_t* attn_mask;
  clutch_attention_causal_t causal;
  int64_t has_scale;
  double scale;
  int64_t enable_gqa;
  double dropout_p;
  const clutch_generator_t* generator;
  clutch_linalg_numerics_t numerics;
};
#define CLUTCH_ATTENTION_SDPA_OPTIONS_INIT {sizeof(clutch_attention_sdpa_options_t), NULL, 0, 0, 0, 0, 0, \
  NULL, 0}

/* clutch::attention::SdpaResult */
struct clutch_attention_sdpa_result_t {
  size_t size;
  const clutch_tensor_t* out;
  const clutch_tensor_t* lse;
  const clutch_tensor_t* dropout_state;
};
#define CLUTCH_ATTENTION_SDPA_RESULT_INIT {sizeof(clutch_attention_sdpa_result_t), NULL, NULL, NULL}

/* clutch::attention::MultiHeadWeights */
struct clutch_attention_multi_head_weights_t {
  size_t size;
  const clutch_tensor_t* in_weight;
  const clutch_tensor_t* in_bias;
  const clutch_tensor_t* out_weight;
  const clutch_tensor_t* out_bias;
  int64_t heads;
  int64_t kv_heads;
};
#define CLUTCH_ATTENTION_MULTI_HEAD_WEIGHTS_INIT {sizeof(clutch_attention_multi_head_weights_t), NULL, NULL, \
  NULL, NULL, 1, 0}

/* clutch::attention::MultiHeadResult */
struct clutch_attention_multi_head_result_t {
  size_t size;
  const clutch_tensor_t* out;
  const clutch_tensor_t* projected;
  const clutch_tensor_t* attended;
  const clutch_tensor_t* lse;
  const clutch_tensor_t* dropout_state;
};
#define CLUTCH_ATTENTION_MULTI_HEAD_RESULT_INIT {sizeof(clutch_attention_multi_head_result_t), NULL, NULL, \
  NULL, NULL, NULL}

/* clutch::attention::MultiHeadGradients */
struct clutch_attention_multi_head_gradients_t {
  size_t size;
  const clutch_tensor_t* x;
  const clutch_tensor_t* in_weight;
  const clutch_tensor_t* in_bias;
  const clutch_tensor_t* out_weight;
  const clutch_tensor_t* out_bias;
};
#define CLUTCH_ATTENTION_MULTI_HEAD_GRADIENTS_INIT {sizeof(clutch_attention_multi_head_gradients_t), NULL, \
  NULL, NULL, NULL, NULL}

/* clutch::attention::PagedCacheOptions */
struct clutch_attention_paged_cache_options_t {
  size_t size;
  int64_t pages;
  int64_t page_size;
  int64_t max_batch;
  int64_t max_pages;
  int64_t heads;
  int64_t key_size;
  int64_t value_size;
  clutch_dtype_t dtype;
  const clutch_device_t* device;
};
#define CLUTCH_ATTENTION_PAGED_CACHE_OPTIONS_INIT {sizeof(clutch_attention_paged_cache_options_t), 0, 128, \
  1, 0, 1, 0, 0, CLUTCH_DTYPE_F32, NULL}

CLUTCH_C_API void clutch_attention_mask_mod_release(const clutch_attention_mask_mod_t* mask_mod);
CLUTCH_C_API void clutch_attention_score_mod_release(const clutch_attention_score_mod_t* score_mod);
CLUTCH_C_API void clutch_attention_block_mask_release(const clutch_attention_block_mask_t* block_mask);
CLUTCH_C_API void clutch_attention_paged_cache_release(const clutch_attention_paged_cache_t* paged_cache);
CLUTCH_C_API void clutch_attention_sdpa_backends_release(const clutch_attention_sdpa_backends_t* sdpa_backends);
CLUTCH_C_API clutch_status_t clutch_attention_mask_mod_create(const clutch_expr_function_t* function,
    clutch_attention_mask_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_causal(int64_t offset, clutch_attention_mask_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_sliding_window(int64_t window,
    clutch_attention_mask_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_prefix_lm(const clutch_tensor_t* prefix,
    clutch_attention_mask_mod_t** result);
/* clutch::attention::prefix_lm(long) */
CLUTCH_C_API clutch_status_t clutch_attention_prefix_lm_number(int64_t prefix,
    clutch_attention_mask_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_document(const clutch_tensor_t* ids,
    clutch_attention_mask_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_dilated(int64_t window, int64_t dilation,
    clutch_attention_mask_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_causal_lower_right(const clutch_attention_varlen_t* varlen,
    int64_t q_len, int64_t kv_len, clutch_attention_mask_mod_t** result);
/* clutch::attention::operator&(attention::MaskMod const&, attention::MaskMod const&) */
CLUTCH_C_API clutch_status_t clutch_attention_mask_mod_and(const clutch_attention_mask_mod_t* a,
    const clutch_attention_mask_mod_t* b, clutch_attention_mask_mod_t** result);
/* clutch::attention::operator|(attention::MaskMod const&, attention::MaskMod const&) */
CLUTCH_C_API clutch_status_t clutch_attention_mask_mod_or(const clutch_attention_mask_mod_t* a,
    const clutch_attention_mask_mod_t* b, clutch_attention_mask_mod_t** result);
/* clutch::attention::operator!(attention::MaskMod const&) */
CLUTCH_C_API clutch_status_t clutch_attention_mask_mod_not(const clutch_attention_mask_mod_t* a,
    clutch_attention_mask_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_mask_mod_function(const clutch_attention_mask_mod_t* mask_mod,
    clutch_expr_function_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_score_mod_create(const clutch_expr_function_t* f32,
    const clutch_expr_function_t* f64, clutch_attention_score_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_alibi(const clutch_tensor_t* slopes,
    clutch_attention_score_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_alibi_slopes(int64_t heads, const clutch_device_t* device,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_softcap(double cap, clutch_attention_score_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_relative_bias(clutch_attention_score_mod_t** result);
/* clutch::attention::relative_bias(Tensor const&) */
CLUTCH_C_API clutch_status_t clutch_attention_relative_bias_table(const clutch_tensor_t* table,
    clutch_attention_score_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_create_block_mask(const clutch_attention_mask_mod_t* mask,
    const clutch_attention_block_mask_options_t* options, const clutch_stream_t* stream,
    clutch_attention_block_mask_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_from_lists(const clutch_tensor_t* kv_num_blocks,
    const clutch_tensor_t* kv_indices, const clutch_tensor_t* full_kv_num_blocks,
    const clutch_tensor_t* full_kv_indices, const clutch_attention_mask_mod_t* mask,
    const clutch_attention_block_mask_options_t* options, const clutch_stream_t* stream,
    clutch_attention_block_mask_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_q_len(const clutch_attention_block_mask_t* block_mask,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_kv_len(const clutch_attention_block_mask_t* block_mask,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_block(const clutch_attention_block_mask_t* block_mask,
    clutch_attention_block_size_t* result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_mask_mod(const clutch_attention_block_mask_t* block_mask,
    clutch_attention_mask_mod_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_kv_num_blocks(const clutch_attention_block_mask_t* block_mask,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_kv_indices(const clutch_attention_block_mask_t* block_mask,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_full_kv_num_blocks(const clutch_attention_block_mask_t* block_mask,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_full_kv_indices(const clutch_attention_block_mask_t* block_mask,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_q_num_blocks(const clutch_attention_block_mask_t* block_mask,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_q_indices(const clutch_attention_block_mask_t* block_mask,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_full_q_num_blocks(const clutch_attention_block_mask_t* block_mask,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_full_q_indices(const clutch_attention_block_mask_t* block_mask,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_kinds(const clutch_attention_block_mask_t* block_mask,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_to_dense(const clutch_attention_block_mask_t* block_mask,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_slice(const clutch_attention_block_mask_t* block_mask,
    int64_t batch_begin, int64_t batch_end, int64_t head_begin, int64_t head_end,
    const clutch_stream_t* stream, clutch_attention_block_mask_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_adjust(const clutch_attention_block_mask_t* block_mask,
    int64_t q_len, int64_t kv_len, const clutch_stream_t* stream, clutch_attention_block_mask_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_sparsity(const clutch_attention_block_mask_t* block_mask,
    const clutch_stream_t* stream, double* result);
CLUTCH_C_API clutch_status_t clutch_attention_block_mask_to_string(const clutch_attention_block_mask_t* block_mask,
    const clutch_stream_t* stream, char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_attention_flex_out(const clutch_attention_flex_result_t* results,
    const clutch_tensor_t* q, const clutch_tensor_t* k, const clutch_tensor_t* v,
    const clutch_attention_flex_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_flex_backward_out(const clutch_attention_flex_gradients_t* out,
    const clutch_tensor_t* grad_out, const clutch_tensor_t* q, const clutch_tensor_t* k,
    const clutch_tensor_t* v, const clutch_attention_flex_result_t* results,
    const clutch_attention_flex_options_t* options, const clutch_attention_flex_backward_options_t* backward,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_varlen_attn_out(const clutch_attention_flex_result_t* out,
    const clutch_tensor_t* q, const clutch_tensor_t* k, const clutch_tensor_t* v,
    const clutch_attention_flex_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_varlen_attn_backward_out(const clutch_attention_flex_gradients_t* out,
    const clutch_tensor_t* grad_out, const clutch_tensor_t* q, const clutch_tensor_t* k,
    const clutch_tensor_t* v, const clutch_attention_flex_result_t* results,
    const clutch_attention_flex_options_t* options, const clutch_attention_flex_backward_options_t* backward,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_sdpa_out(const clutch_attention_sdpa_result_t* out,
    const clutch_tensor_t* q, const clutch_tensor_t* k, const clutch_tensor_t* v,
    const clutch_attention_sdpa_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_sdpa_backward_out(const clutch_attention_flex_gradients_t* out,
    const clutch_tensor_t* grad_out, const clutch_tensor_t* q, const clutch_tensor_t* k,
    const clutch_tensor_t* v, const clutch_attention_sdpa_result_t* result,
    const clutch_attention_sdpa_options_t* options, const clutch_attention_flex_backward_options_t* backward,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_sdpa_backends_create(const clutch_attention_sdpa_backend_t* order,
    size_t order_count, clutch_attention_sdpa_backends_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_multi_head_attention_out(const clutch_attention_multi_head_result_t* out,
    const clutch_tensor_t* x, const clutch_attention_multi_head_weights_t* weights,
    const clutch_attention_flex_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_multi_head_attention_backward_out(const clutch_attention_multi_head_gradients_t* out,
    const clutch_tensor_t* grad_out, const clutch_tensor_t* x,
    const clutch_attention_multi_head_weights_t* weights, const clutch_attention_multi_head_result_t* result,
    const clutch_attention_flex_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_create(const clutch_attention_paged_cache_options_t* options,
    const clutch_stream_t* stream, clutch_attention_paged_cache_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_keys(const clutch_attention_paged_cache_t* paged_cache,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_values(const clutch_attention_paged_cache_t* paged_cache,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_page_table(const clutch_attention_paged_cache_t* paged_cache,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_physical_to_logical(const clutch_attention_paged_cache_t* paged_cache,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_options(const clutch_attention_paged_cache_t* paged_cache,
    clutch_attention_paged_cache_options_t* result);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_capacity(const clutch_attention_paged_cache_t* paged_cache,
    int64_t sequence, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_free_pages(const clutch_attention_paged_cache_t* paged_cache,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_reserve(clutch_attention_paged_cache_t* paged_cache,
    int64_t sequence, int64_t length, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_erase(clutch_attention_paged_cache_t* paged_cache,
    int64_t sequence, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_assign(const clutch_attention_paged_cache_t* paged_cache,
    const clutch_tensor_t* sequences, const clutch_tensor_t* positions, const clutch_tensor_t* k,
    const clutch_tensor_t* v, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_varlen(const clutch_attention_paged_cache_t* paged_cache,
    const clutch_tensor_t* lengths, const clutch_tensor_t* sequences, const clutch_stream_t* stream,
    clutch_attention_varlen_t* result);
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_physical(const clutch_attention_paged_cache_t* paged_cache,
    const clutch_attention_block_mask_t* logical, const clutch_tensor_t* sequences,
    const clutch_stream_t* stream, clutch_attention_block_mask_t** result);
/* clutch::attention::PagedCache::physical(attention::MaskMod const&, Tensor const&) */
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_physical_mask(const clutch_attention_paged_cache_t* paged_cache,
    const clutch_attention_mask_mod_t* logical, const clutch_tensor_t* sequences,
    clutch_attention_mask_mod_t** result);
/* clutch::attention::PagedCache::physical(attention::ScoreMod const&, Tensor const&) */
CLUTCH_C_API clutch_status_t clutch_attention_paged_cache_physical_score(const clutch_attention_paged_cache_t* paged_cache,
    const clutch_attention_score_mod_t* logical, const clutch_tensor_t* sequences,
    clutch_attention_score_mod_t** result);

/* ---- Optimizers ---- */

/* clutch::optim::Precision */
struct clutch_optim_precision_t {
  size_t size;
  clutch_optim_numerics_t numerics;
  clutch_optim_state_type_t state;
  int64_t master;
  clutch_optim_rounding_t rounding;
  uint64_t seed;
};
#define CLUTCH_OPTIM_PRECISION_INIT {sizeof(clutch_optim_precision_t), 0, 0, 0, 0, 0}

/* clutch::optim::SGDOptions */
struct clutch_optim_sgd_options_t {
  size_t size;
  double lr;
  double momentum;
  double dampening;
  double weight_decay;
  int64_t nesterov;
  int64_t maximize;
  const clutch_optim_precision_t* precision;
};
#define CLUTCH_OPTIM_SGD_OPTIONS_INIT {sizeof(clutch_optim_sgd_options_t), 1e-3, 0, 0, 0, 0, 0, NULL}

/* clutch::optim::AdamOptions */
struct clutch_optim_adam_options_t {
  size_t size;
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  int64_t amsgrad;
  int64_t maximize;
  int64_t decoupled_weight_decay;
  const clutch_optim_precision_t* precision;
};
#define CLUTCH_OPTIM_ADAM_OPTIONS_INIT {sizeof(clutch_optim_adam_options_t), 1e-3, 0.9, 0.999, 1e-8, 0, 0, \
  0, 0, NULL}

/* clutch::optim::AdamWOptions */
struct clutch_optim_adamw_options_t {
  size_t size;
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  int64_t amsgrad;
  int64_t maximize;
  const clutch_optim_precision_t* precision;
};
#define CLUTCH_OPTIM_ADAMW_OPTIONS_INIT {sizeof(clutch_optim_adamw_options_t), 1e-3, 0.9, 0.999, 1e-8, 1e-2, \
  0, 0, NULL}

/* clutch::optim::AdagradOptions */
struct clutch_optim_adagrad_options_t {
  size_t size;
  double lr;
  double lr_decay;
  double weight_decay;
  double initial_accumulator_value;
  double eps;
  int64_t maximize;
  const clutch_optim_precision_t* precision;
};
#define CLUTCH_OPTIM_ADAGRAD_OPTIONS_INIT {sizeof(clutch_optim_adagrad_options_t), 1e-2, 0, 0, 0, 1e-10, 0, \
  NULL}

/* clutch::optim::RMSpropOptions */
struct clutch_optim_rmsprop_options_t {
  size_t size;
  double lr;
  double alpha;
  double eps;
  double weight_decay;
  double momentum;
  int64_t centered;
  int64_t maximize;
  const clutch_optim_precision_t* precision;
};
#define CLUTCH_OPTIM_RMSPROP_OPTIONS_INIT {sizeof(clutch_optim_rmsprop_options_t), 1e-2, 0.99, 1e-8, 0, 0, \
  0, 0, NULL}

/* clutch::optim::StepOptions */
struct clutch_optim_step_options_t {
  size_t size;
  const clutch_tensor_t* lr;
  const clutch_tensor_t* grad_scale;
  const clutch_tensor_t* found_inf;
  const clutch_tensor_t* grad_factor;
  int64_t has_max_norm;
  double max_norm;
  clutch_optim_norm_type_t norm_type;
};
#define CLUTCH_OPTIM_STEP_OPTIONS_INIT {sizeof(clutch_optim_step_options_t), NULL, NULL, NULL, NULL, 0, 0, \
  0}

/* clutch::optim::ClipOptions */
struct clutch_optim_clip_options_t {
  size_t size;
  clutch_optim_norm_type_t norm_type;
  const clutch_tensor_t* grad_scale;
};
#define CLUTCH_OPTIM_CLIP_OPTIONS_INIT {sizeof(clutch_optim_clip_options_t), 0, NULL}

/* clutch::optim::GradNorm */
struct clutch_optim_grad_norm_t {
  size_t size;
  const clutch_tensor_t* norm;
  const clutch_tensor_t* factor;
};
#define CLUTCH_OPTIM_GRAD_NORM_INIT {sizeof(clutch_optim_grad_norm_t), NULL, NULL}

/* clutch::optim::GradScalerOptions */
struct clutch_optim_grad_scaler_options_t {
  size_t size;
  double init_scale;
  double growth_factor;
  double backoff_factor;
  int64_t growth_interval;
  int64_t enabled;
};
#define CLUTCH_OPTIM_GRAD_SCALER_OPTIONS_INIT {sizeof(clutch_optim_grad_scaler_options_t), 65536, 2, 0.5, \
  2000, 1}

/* clutch::optim::LRSchedulerOptions */
struct clutch_optim_lr_scheduler_options_t {
  size_t size;
  int64_t warmup_steps;
  double warmup_start;
  clutch_optim_decay_t decay;
  int64_t decay_steps;
  double end;
};
#define CLUTCH_OPTIM_LR_SCHEDULER_OPTIONS_INIT {sizeof(clutch_optim_lr_scheduler_options_t), 0, 0, 0, 0, 0}

CLUTCH_C_API void clutch_optim_sgd_release(const clutch_optim_sgd_t* sgd);
CLUTCH_C_API void clutch_optim_adam_release(const clutch_optim_adam_t* adam);
CLUTCH_C_API void clutch_optim_adamw_release(const clutch_optim_adamw_t* adamw);
CLUTCH_C_API void clutch_optim_adagrad_release(const clutch_optim_adagrad_t* adagrad);
CLUTCH_C_API void clutch_optim_rmsprop_release(const clutch_optim_rmsprop_t* rmsprop);
CLUTCH_C_API void clutch_optim_grad_scaler_release(const clutch_optim_grad_scaler_t* grad_scaler);
CLUTCH_C_API void clutch_optim_lr_scheduler_release(const clutch_optim_lr_scheduler_t* lr_scheduler);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_create(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_optim_sgd_options_t* options, const clutch_stream_t* stream,
    clutch_optim_sgd_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_adam_create(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_optim_adam_options_t* options, const clutch_stream_t* stream,
    clutch_optim_adam_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_create(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_optim_adamw_options_t* options, const clutch_stream_t* stream,
    clutch_optim_adamw_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_create(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_optim_adagrad_options_t* options, const clutch_stream_t* stream,
    clutch_optim_adagrad_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_create(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_optim_rmsprop_options_t* options, const clutch_stream_t* stream,
    clutch_optim_rmsprop_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_add_param_group(clutch_optim_sgd_t* sgd,
    const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_sgd_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adam_add_param_group(clutch_optim_adam_t* adam,
    const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_adam_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_add_param_group(clutch_optim_adamw_t* adamw,
    const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_adamw_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_add_param_group(clutch_optim_adagrad_t* adagrad,
    const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_adagrad_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_add_param_group(clutch_optim_rmsprop_t* rmsprop,
    const clutch_tensor_t* const* params, size_t params_count, const clutch_optim_rmsprop_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_step(clutch_optim_sgd_t* sgd,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_optim_step_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_adam_step(clutch_optim_adam_t* adam,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_optim_step_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_step(clutch_optim_adamw_t* adamw,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_optim_step_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_step(clutch_optim_adagrad_t* adagrad,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_optim_step_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_step(clutch_optim_rmsprop_t* rmsprop,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_optim_step_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_groups(const clutch_optim_sgd_t* sgd, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_optim_adam_groups(const clutch_optim_adam_t* adam, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_groups(const clutch_optim_adamw_t* adamw, uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_groups(const clutch_optim_adagrad_t* adagrad,
    uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_groups(const clutch_optim_rmsprop_t* rmsprop,
    uint64_t* result);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_lr(const clutch_optim_sgd_t* sgd, uint64_t group,
    double* result);
CLUTCH_C_API clutch_status_t clutch_optim_adam_lr(const clutch_optim_adam_t* adam, uint64_t group,
    double* result);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_lr(const clutch_optim_adamw_t* adamw, uint64_t group,
    double* result);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_lr(const clutch_optim_adagrad_t* adagrad, uint64_t group,
    double* result);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_lr(const clutch_optim_rmsprop_t* rmsprop, uint64_t group,
    double* result);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_set_lr(clutch_optim_sgd_t* sgd, double lr, uint64_t group);
CLUTCH_C_API clutch_status_t clutch_optim_adam_set_lr(clutch_optim_adam_t* adam, double lr, uint64_t group);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_set_lr(clutch_optim_adamw_t* adamw, double lr,
    uint64_t group);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_set_lr(clutch_optim_adagrad_t* adagrad, double lr,
    uint64_t group);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_set_lr(clutch_optim_rmsprop_t* rmsprop, double lr,
    uint64_t group);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_params(const clutch_optim_sgd_t* sgd, uint64_t group,
    clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_adam_params(const clutch_optim_adam_t* adam, uint64_t group,
    clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_params(const clutch_optim_adamw_t* adamw, uint64_t group,
    clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_params(const clutch_optim_adagrad_t* adagrad,
    uint64_t group, clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_params(const clutch_optim_rmsprop_t* rmsprop,
    uint64_t group, clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_save(const clutch_optim_sgd_t* sgd, const char* path,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adam_save(const clutch_optim_adam_t* adam, const char* path,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_save(const clutch_optim_adamw_t* adamw, const char* path,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_save(const clutch_optim_adagrad_t* adagrad,
    const char* path, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_save(const clutch_optim_rmsprop_t* rmsprop,
    const char* path, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_load(clutch_optim_sgd_t* sgd, const char* path,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adam_load(clutch_optim_adam_t* adam, const char* path,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_load(clutch_optim_adamw_t* adamw, const char* path,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_load(clutch_optim_adagrad_t* adagrad, const char* path,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_load(clutch_optim_rmsprop_t* rmsprop, const char* path,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_state(const clutch_optim_sgd_t* sgd, char* names,
    size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_adam_state(const clutch_optim_adam_t* adam, char* names,
    size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_state(const clutch_optim_adamw_t* adamw, char* names,
    size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_state(const clutch_optim_adagrad_t* adagrad, char* names,
    size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_state(const clutch_optim_rmsprop_t* rmsprop, char* names,
    size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_load_state(clutch_optim_sgd_t* sgd, const char* const* names,
    const clutch_tensor_t* const* tensors, size_t count, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adam_load_state(clutch_optim_adam_t* adam, const char* const* names,
    const clutch_tensor_t* const* tensors, size_t count, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_load_state(clutch_optim_adamw_t* adamw,
    const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_load_state(clutch_optim_adagrad_t* adagrad,
    const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_load_state(clutch_optim_rmsprop_t* rmsprop,
    const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream);
/* clutch::optim::LRScheduler::LRScheduler(optim::Optimizer const&, optim::LRSchedulerOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_create_sgd(const clutch_optim_sgd_t* optimizer,
    const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
    clutch_optim_lr_scheduler_t** result);
/* clutch::optim::LRScheduler::LRScheduler(optim::Optimizer const&, optim::LRSchedulerOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_create_adam(const clutch_optim_adam_t* optimizer,
    const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
    clutch_optim_lr_scheduler_t** result);
/* clutch::optim::LRScheduler::LRScheduler(optim::Optimizer const&, optim::LRSchedulerOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_create_adamw(const clutch_optim_adamw_t* optimizer,
    const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
    clutch_optim_lr_scheduler_t** result);
/* clutch::optim::LRScheduler::LRScheduler(optim::Optimizer const&, optim::LRSchedulerOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_create_adagrad(const clutch_optim_adagrad_t* optimizer,
    const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
    clutch_optim_lr_scheduler_t** result);
/* clutch::optim::LRScheduler::LRScheduler(optim::Optimizer const&, optim::LRSchedulerOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_create_rmsprop(const clutch_optim_rmsprop_t* optimizer,
    const clutch_optim_lr_scheduler_options_t* options, const clutch_stream_t* stream,
    clutch_optim_lr_scheduler_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_create(const double* rates, size_t rates_count,
    const clutch_optim_lr_scheduler_options_t* options, const clutch_device_t* device,
    const clutch_stream_t* stream, clutch_optim_lr_scheduler_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_lr(const clutch_optim_lr_scheduler_t* lr_scheduler,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_step(clutch_optim_lr_scheduler_t* lr_scheduler,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_state(const clutch_optim_lr_scheduler_t* lr_scheduler,
    char* names, size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity,
    size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_lr_scheduler_load_state(clutch_optim_lr_scheduler_t* lr_scheduler,
    const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_create(const clutch_optim_grad_scaler_options_t* options,
    const clutch_device_t* device, const clutch_stream_t* stream, clutch_optim_grad_scaler_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_scale(const clutch_optim_grad_scaler_t* grad_scaler,
    const clutch_tensor_t* loss, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::optim::GradScaler::unscale_(optim::Optimizer const&, std::span<Tensor const>, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_unscale_sgd(clutch_optim_grad_scaler_t* grad_scaler,
    const clutch_optim_sgd_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_stream_t* stream);
/* clutch::optim::GradScaler::unscale_(optim::Optimizer const&, std::span<Tensor const>, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_unscale_adam(clutch_optim_grad_scaler_t* grad_scaler,
    const clutch_optim_adam_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_stream_t* stream);
/* clutch::optim::GradScaler::unscale_(optim::Optimizer const&, std::span<Tensor const>, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_unscale_adamw(clutch_optim_grad_scaler_t* grad_scaler,
    const clutch_optim_adamw_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_stream_t* stream);
/* clutch::optim::GradScaler::unscale_(optim::Optimizer const&, std::span<Tensor const>, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_unscale_adagrad(clutch_optim_grad_scaler_t* grad_scaler,
    const clutch_optim_adagrad_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_stream_t* stream);
/* clutch::optim::GradScaler::unscale_(optim::Optimizer const&, std::span<Tensor const>, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_unscale_rmsprop(clutch_optim_grad_scaler_t* grad_scaler,
    const clutch_optim_rmsprop_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_stream_t* stream);
/* clutch::optim::GradScaler::step(optim::Optimizer&, std::span<Tensor const>, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_step_sgd(clutch_optim_grad_scaler_t* grad_scaler,
    clutch_optim_sgd_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::optim::GradScaler::step(optim::Optimizer&, std::span<Tensor const>, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_step_adam(clutch_optim_grad_scaler_t* grad_scaler,
    clutch_optim_adam_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::optim::GradScaler::step(optim::Optimizer&, std::span<Tensor const>, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_step_adamw(clutch_optim_grad_scaler_t* grad_scaler,
    clutch_optim_adamw_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::optim::GradScaler::step(optim::Optimizer&, std::span<Tensor const>, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_step_adagrad(clutch_optim_grad_scaler_t* grad_scaler,
    clutch_optim_adagrad_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
/* clutch::optim::GradScaler::step(optim::Optimizer&, std::span<Tensor const>, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_step_rmsprop(clutch_optim_grad_scaler_t* grad_scaler,
    clutch_optim_rmsprop_t* optimizer, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_optim_step_options_t* options, const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_update(clutch_optim_grad_scaler_t* grad_scaler,
    const clutch_stream_t* stream);
/* clutch::optim::GradScaler::update(double, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_update_scale(clutch_optim_grad_scaler_t* grad_scaler,
    double new_scale, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_scale_tensor(const clutch_optim_grad_scaler_t* grad_scaler,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_get_scale(const clutch_optim_grad_scaler_t* grad_scaler,
    const clutch_stream_t* stream, double* result);
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_enabled(const clutch_optim_grad_scaler_t* grad_scaler,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_state(const clutch_optim_grad_scaler_t* grad_scaler,
    char* names, size_t names_capacity, size_t* names_length, clutch_tensor_t** results, size_t capacity,
    size_t* count);
CLUTCH_C_API clutch_status_t clutch_optim_grad_scaler_load_state(clutch_optim_grad_scaler_t* grad_scaler,
    const char* const* names, const clutch_tensor_t* const* tensors, size_t count,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_grad_norm_out(const clutch_optim_grad_norm_t* out,
    const clutch_tensor_t* const* grads, size_t grads_count, double max_norm,
    const clutch_optim_clip_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_grad_norms_out(const clutch_tensor_t* out,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_optim_clip_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_clip_grad_norm_(const clutch_tensor_t* const* grads,
    size_t grads_count, double max_norm, const clutch_optim_clip_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_optim_schedule_(const clutch_tensor_t* lr, const clutch_tensor_t* rates,
    const clutch_tensor_t* step, int64_t advance, const clutch_optim_lr_scheduler_options_t* options,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_check_and_unscale_(const clutch_tensor_t* const* grads,
    size_t grads_count, const clutch_tensor_t* found_inf, const clutch_tensor_t* scale,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_update_scale_(const clutch_tensor_t* scale,
    const clutch_tensor_t* growth_tracker, const clutch_tensor_t* found_inf,
    const clutch_optim_grad_scaler_options_t* options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_sgd_(const clutch_tensor_t* const* params, size_t params_count,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* momentum_buffers,
    size_t momentum_buffers_count, const clutch_tensor_t* steps, const clutch_optim_sgd_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
/* clutch::optim::sgd_(std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, optim::SGDOptions const&, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_sgd_steps_(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* momentum_buffers, size_t momentum_buffers_count,
    const clutch_tensor_t* const* steps, size_t steps_count, const clutch_optim_sgd_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adam_(const clutch_tensor_t* const* params, size_t params_count,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* exp_avgs,
    size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
    const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count, const clutch_tensor_t* steps,
    const clutch_optim_adam_options_t* options, const clutch_optim_step_options_t* step_options,
    const clutch_stream_t* stream);
/* clutch::optim::adam_(std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, optim::AdamOptions const&, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_adam_steps_(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* exp_avgs, size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs,
    size_t exp_avg_sqs_count, const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count,
    const clutch_tensor_t* const* steps, size_t steps_count, const clutch_optim_adam_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adamw_(const clutch_tensor_t* const* params, size_t params_count,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* exp_avgs,
    size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs, size_t exp_avg_sqs_count,
    const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count, const clutch_tensor_t* steps,
    const clutch_optim_adamw_options_t* options, const clutch_optim_step_options_t* step_options,
    const clutch_stream_t* stream);
/* clutch::optim::adamw_(std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, optim::AdamWOptions const&, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_adamw_steps_(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* exp_avgs, size_t exp_avgs_count, const clutch_tensor_t* const* exp_avg_sqs,
    size_t exp_avg_sqs_count, const clutch_tensor_t* const* max_exp_avg_sqs, size_t max_exp_avg_sqs_count,
    const clutch_tensor_t* const* steps, size_t steps_count, const clutch_optim_adamw_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_(const clutch_tensor_t* const* params, size_t params_count,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* sums,
    size_t sums_count, const clutch_tensor_t* steps, const clutch_optim_adagrad_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
/* clutch::optim::adagrad_(std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, optim::AdagradOptions const&, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_adagrad_steps_(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* sums, size_t sums_count, const clutch_tensor_t* const* steps,
    size_t steps_count, const clutch_optim_adagrad_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_(const clutch_tensor_t* const* params, size_t params_count,
    const clutch_tensor_t* const* grads, size_t grads_count, const clutch_tensor_t* const* square_avgs,
    size_t square_avgs_count, const clutch_tensor_t* const* momentum_buffers, size_t momentum_buffers_count,
    const clutch_tensor_t* const* grad_avgs, size_t grad_avgs_count, const clutch_tensor_t* steps,
    const clutch_optim_rmsprop_options_t* options, const clutch_optim_step_options_t* step_options,
    const clutch_stream_t* stream);
/* clutch::optim::rmsprop_(std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, std::span<Tensor const>, optim::RMSpropOptions const&, optim::StepOptions const&, Stream const&) */
CLUTCH_C_API clutch_status_t clutch_optim_rmsprop_steps_(const clutch_tensor_t* const* params,
    size_t params_count, const clutch_tensor_t* const* grads, size_t grads_count,
    const clutch_tensor_t* const* square_avgs, size_t square_avgs_count,
    const clutch_tensor_t* const* momentum_buffers, size_t momentum_buffers_count,
    const clutch_tensor_t* const* grad_avgs, size_t grad_avgs_count, const clutch_tensor_t* const* steps,
    size_t steps_count, const clutch_optim_rmsprop_options_t* options,
    const clutch_optim_step_options_t* step_options, const clutch_stream_t* stream);

/* ---- Graphs, kernels of the caller's and profiles ---- */

/* clutch::GraphOptions */
struct clutch_graph_options_t {
  size_t size;
  int64_t keep_graph;
  const char* backend;
  int64_t relaxed_rounding;
};
#define CLUTCH_GRAPH_OPTIONS_INIT {sizeof(clutch_graph_options_t), 0, NULL, 0}

/* clutch::CaptureOptions */
struct clutch_capture_options_t {
  size_t size;
  clutch_capture_mode_t mode;
  const clutch_pool_id_t* pool;
};
#define CLUTCH_CAPTURE_OPTIONS_INIT {sizeof(clutch_capture_options_t), 0, NULL}

/* clutch::GraphSaveOptions */
struct clutch_graph_save_options_t {
  size_t size;
  int64_t binaries;
};
#define CLUTCH_GRAPH_SAVE_OPTIONS_INIT {sizeof(clutch_graph_save_options_t), 0}

/* clutch::Geometry */
struct clutch_geometry_t {
  size_t size;
  uint64_t global;
  uint64_t local;
  uint64_t global_y;
  uint64_t local_y;
  uint64_t global_z;
  uint64_t local_z;
};
#define CLUTCH_GEOMETRY_INIT {sizeof(clutch_geometry_t), 1, 0, 1, 1, 1, 1}

/* clutch::KernelSource */
struct clutch_kernel_source_t {
  size_t size;
  const char* text;
  const char* entry;
  const char* const* defines;
  size_t defines_count;
  const char* options;
  const char* file;
  clutch_addressing_t addressing;
  const void* binary;
  size_t binary_size;
  const void* spirv;
  size_t spirv_size;
};
#define CLUTCH_KERNEL_SOURCE_INIT {sizeof(clutch_kernel_source_t), NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, \
  0, NULL, 0}

/* clutch::Argument */
struct clutch_argument_t {
  size_t size;
  clutch_argument_kind_t kind;
  const clutch_tensor_t* tensor;
  const void* value;
  size_t value_size;
  const char* type;
  const char* name;
};
#define CLUTCH_ARGUMENT_INIT {sizeof(clutch_argument_t), 0, NULL, NULL, 0, NULL, NULL}

/* clutch::profiler::ProfilerOptions */
struct clutch_profiler_options_t {
  size_t size;
  int64_t cpu_activity;
  int64_t device_activity;
  int64_t profile_memory;
  int64_t record_shapes;
  int64_t graph_nodes;
  int64_t max_events;
};
#define CLUTCH_PROFILER_OPTIONS_INIT {sizeof(clutch_profiler_options_t), 1, 1, 0, 0, 1, 1048576}

/* clutch::profiler::ProfileTotals */
struct clutch_profiler_profile_totals_t {
  size_t size;
  uint64_t events;
  uint64_t dropped;
  uint64_t untimed;
  double wall_us;
  double overhead_us;
  double command_cost_us;
};
#define CLUTCH_PROFILER_PROFILE_TOTALS_INIT {sizeof(clutch_profiler_profile_totals_t), 0, 0, 0, 0, 0, 0}

/* clutch::profiler::TraceOptions */
struct clutch_profiler_trace_options_t {
  size_t size;
  clutch_profiler_trace_names_t names;
  int64_t rank;
  int64_t world_size;
};
#define CLUTCH_PROFILER_TRACE_OPTIONS_INIT {sizeof(clutch_profiler_trace_options_t), 0, 0, 1}

/* clutch::profiler::TableOptions */
struct clutch_profiler_table_options_t {
  size_t size;
  const char* sort_by;
  int64_t row_limit;
  int64_t group_by_input_shape;
};
#define CLUTCH_PROFILER_TABLE_OPTIONS_INIT {sizeof(clutch_profiler_table_options_t), NULL, 100, 0}

CLUTCH_C_API void clutch_graph_release(const clutch_graph_t* graph);
CLUTCH_C_API void clutch_graph_annotation_release(const clutch_graph_annotation_t* graph_annotation);
CLUTCH_C_API void clutch_profiler_release(const clutch_profiler_t* profiler);
CLUTCH_C_API void clutch_profiler_range_release(const clutch_profiler_range_t* range);
CLUTCH_C_API void clutch_graph_program_release(const clutch_graph_program_t* graph_program);
CLUTCH_C_API clutch_status_t clutch_graph_create(const clutch_graph_options_t* options,
    clutch_graph_t** result);
CLUTCH_C_API clutch_status_t clutch_graph_capture_begin(clutch_graph_t* graph, const clutch_stream_t* stream,
    const clutch_capture_options_t* options);
CLUTCH_C_API clutch_status_t clutch_graph_capture_end(clutch_graph_t* graph);
CLUTCH_C_API clutch_status_t clutch_graph_capture_abandon(clutch_graph_t* graph);
CLUTCH_C_API clutch_status_t clutch_graph_is_capturing(const clutch_graph_t* graph, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_graph_instantiate(clutch_graph_t* graph);
CLUTCH_C_API clutch_status_t clutch_graph_replay(clutch_graph_t* graph, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_graph_replay_with(clutch_graph_t* graph,
    const clutch_tensor_t* const* captured, size_t captured_count, const clutch_tensor_t* const* bound,
    size_t bound_count, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_graph_rebind(clutch_graph_t* graph,
    const clutch_tensor_t* const* captured, size_t captured_count, const clutch_tensor_t* const* bound,
    size_t bound_count);
CLUTCH_C_API clutch_status_t clutch_graph_reset(clutch_graph_t* graph);
CLUTCH_C_API clutch_status_t clutch_graph_pool(const clutch_graph_t* graph, clutch_pool_id_t* result);
CLUTCH_C_API clutch_status_t clutch_graph_find(const clutch_graph_t* graph, const char* op_kernel_or_label,
    int64_t* values, size_t capacity, size_t* count);
CLUTCH_C_API clutch_status_t clutch_graph_to_string(const clutch_graph_t* graph, clutch_graph_dump_t format,
    char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_graph_debug_dump(const clutch_graph_t* graph, const char* path,
    clutch_graph_dump_t format);
CLUTCH_C_API clutch_status_t clutch_graph_measure(clutch_graph_t* graph, int64_t replays,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_graph_update_number(clutch_graph_t* graph, int64_t node, const char* name,
    double value);
CLUTCH_C_API clutch_status_t clutch_graph_update_integer(clutch_graph_t* graph, int64_t node,
    const char* name, int64_t value);
CLUTCH_C_API clutch_status_t clutch_graph_update_tensor(clutch_graph_t* graph, int64_t node, const char* name,
    const clutch_tensor_t* tensor);
CLUTCH_C_API clutch_status_t clutch_graph_save(const clutch_graph_t* graph, const char* path,
    const char* const* names, size_t names_count, const clutch_tensor_t* const* tensors, size_t tensors_count,
    const clutch_graph_save_options_t* options);
CLUTCH_C_API clutch_status_t clutch_graph_load(const char* path, const clutch_device_t* device,
    const clutch_graph_options_t* options, clutch_graph_t** result);
CLUTCH_C_API clutch_status_t clutch_graph_tensor(const clutch_graph_t* graph, const char* name,
    clutch_tensor_t** result);
CLUTCH_C_API clutch_status_t clutch_graph_tensor_names(const clutch_graph_t* graph, char* text,
    size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_graph_annotation_create(const char* name,
    clutch_graph_annotation_t** result);
CLUTCH_C_API clutch_status_t clutch_graph_backends(char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_graph_program_device(const clutch_graph_program_t* graph_program,
    clutch_device_t** result);
CLUTCH_C_API clutch_status_t clutch_graph_program_size(const clutch_graph_program_t* graph_program,
    int64_t* result);
CLUTCH_C_API clutch_status_t clutch_graph_program_kind(const clutch_graph_program_t* graph_program,
    int64_t node, clutch_graph_node_kind_t* result);
CLUTCH_C_API clutch_status_t clutch_graph_program_enqueue(const clutch_graph_program_t* graph_program,
    int64_t node, const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_launch(const clutch_kernel_source_t* source,
    const clutch_geometry_t* geometry, const clutch_argument_t* const* arguments, size_t arguments_count,
    const clutch_stream_t* stream);
CLUTCH_C_API clutch_status_t clutch_profiler_create(const clutch_profiler_options_t* options,
    clutch_profiler_t** result);
CLUTCH_C_API clutch_status_t clutch_profiler_start(clutch_profiler_t* profiler);
CLUTCH_C_API clutch_status_t clutch_profiler_stop(clutch_profiler_t* profiler);
CLUTCH_C_API clutch_status_t clutch_profiler_step(clutch_profiler_t* profiler);
CLUTCH_C_API clutch_status_t clutch_profiler_step_num(const clutch_profiler_t* profiler, int64_t* result);
CLUTCH_C_API clutch_status_t clutch_profiler_add_metadata(clutch_profiler_t* profiler, const char* key,
    const char* value);
CLUTCH_C_API clutch_status_t clutch_profiler_add_metadata_json(clutch_profiler_t* profiler, const char* key,
    const char* json);
CLUTCH_C_API clutch_status_t clutch_profiler_table(const clutch_profiler_t* profiler,
    const clutch_profiler_table_options_t* options, char* text, size_t capacity, size_t* length);
CLUTCH_C_API clutch_status_t clutch_profiler_totals(const clutch_profiler_t* profiler,
    clutch_profiler_profile_totals_t* result);
CLUTCH_C_API clutch_status_t clutch_profiler_export_chrome_trace(const clutch_profiler_t* profiler,
    const char* path, const clutch_profiler_trace_options_t* options);
CLUTCH_C_API clutch_status_t clutch_profiler_export_html(const clutch_profiler_t* profiler, const char* path);
CLUTCH_C_API clutch_status_t clutch_profiler_export_kernel_annotations(const clutch_profiler_t* profiler,
    const char* path);
CLUTCH_C_API clutch_status_t clutch_profiler_range_create(const char* name, clutch_profiler_range_t** result);
CLUTCH_C_API clutch_status_t clutch_profiler_range_end(clutch_profiler_range_t* range);

#ifdef __cplusplus
}
#endif
#endif
