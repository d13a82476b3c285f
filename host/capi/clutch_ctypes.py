# SPDX-License-Identifier: Apache-2.0
# Made by scripts/c_abi of host/capi/abi.def. Do not edit.
"""The C ABI of clutch for ctypes: load(path) gives the library with its functions' types; structs begin with their defaults."""
import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p

ABI = 1

OK = 0
INVALID_ARGUMENT = 1
INVALID_SHAPE = 2
INVALID_DTYPE = 3
DEVICE_MISMATCH = 4
INVALID_OVERLAP = 5
INVALID_SETTING = 6
NO_PLATFORM = 7
NO_DEVICE = 8
NOT_SUPPORTED = 9
OUT_OF_MEMORY = 10
BUILD_FAILURE = 11
OPENCL = 12
STREAM_FAILED = 13
DEVICE_LOST = 14
STRICT = 15
IO = 16
CAPTURING = 17
INTERNAL = 18
NOT_CONVERGED = 19
TIMED_OUT = 20
PEER_FAILED = 21
MISMATCH = 22
DTYPE_F64 = 0
DTYPE_F32 = 1
DTYPE_F16 = 2
DTYPE_BF16 = 3
DTYPE_F8E4M3FN = 4
DTYPE_F8E5M2 = 5
DTYPE_F8E8M0FNU = 6
DTYPE_F6E2M3 = 7
DTYPE_F6E3M2 = 8
DTYPE_F4E2M1 = 9
DTYPE_I8 = 10
DTYPE_U8 = 11
DTYPE_I16 = 12
DTYPE_I32 = 13
DTYPE_I64 = 14
DTYPE_BOOLEAN = 15
DTYPE_C64 = 16
DTYPE_C128 = 17
DTYPE_U16 = 18
DTYPE_U32 = 19
DTYPE_U64 = 20
DEVICE_TYPE_CPU = 0
DEVICE_TYPE_GPU = 1
DEVICE_TYPE_ACCELERATOR = 2
DEVICE_TYPE_OTHER = 3
STREAM_PRIORITY_NORMAL = 0
STREAM_PRIORITY_LOW = 1
STREAM_PRIORITY_HIGH = 2
ISOLATION_NONE = 0
ISOLATION_THREADS = 1
ISOLATION_CORES = 2
OVERFLOW_NONFINITE = 0
OVERFLOW_SATURATE = 1
INTEROP_DLPACK_MEMORY_DEVICE = 0
INTEROP_DLPACK_MEMORY_HOST = 1
MAP_ACCESS_READ = 0
MAP_ACCESS_WRITE = 1
MAP_ACCESS_READ_WRITE = 2
ADDC_ORDER_FMA_OF_QUOTIENT = 0
ADDC_ORDER_PRODUCT_FIRST = 1
ADDC_ORDER_UNFUSED = 2
GELU_FORM_ERF = 0
GELU_FORM_TANH = 1
REDUCE_SUM = 0
REDUCE_PROD = 1
REDUCE_AMIN = 2
REDUCE_AMAX = 3
REDUCE_MEAN = 4
REDUCE_ANY = 5
REDUCE_ALL = 6
NN_REDUCTION_MEAN = 0
NN_REDUCTION_SUM = 1
NN_REDUCTION_NONE = 2
NN_ACTIVATION_NONE = 0
NN_ACTIVATION_RELU = 1
NN_ACTIVATION_GELU = 2
NN_ACTIVATION_GELU_TANH = 3
NN_ACTIVATION_SILU = 4
LINALG_NUMERICS_CHAIN = 0
LINALG_NUMERICS_BLOCKS = 1
LINALG_NUMERICS_TF32 = 2
LINALG_NUMERICS_F8 = 3
LINALG_UPLO_LOWER = 0
LINALG_UPLO_UPPER = 1
LINALG_EIGH_DRIVER_AUTOMATIC = 0
LINALG_EIGH_DRIVER_CLOSED = 1
LINALG_EIGH_DRIVER_JACOBI_LANES = 2
LINALG_EIGH_DRIVER_JACOBI_GROUP = 3
LINALG_EIGH_DRIVER_QR_LANES = 4
LINALG_EIGH_DRIVER_QR_GROUP = 5
LINALG_EIGH_DRIVER_DEVICE_WIDE = 6
LINALG_EIGH_DRIVER_JACOBI_ITEMS = 7
LINALG_EIGH_DRIVER_QR_ITEMS = 8
LINALG_EIGH_DRIVER_HOST = 9
LINALG_EIGH_ACCURACY_NORM = 0
LINALG_EIGH_ACCURACY_RELATIVE = 1
LINALG_EIGH_PHASE_FREE = 0
LINALG_EIGH_PHASE_POSITIVE = 1
SPARSE_PRUNE_RULE_GROUPS = 0
SPARSE_PRUNE_RULE_TILE_VALUES = 1
SPARSE_PRUNE_RULE_TILE_MAGNITUDES = 2
SPARSE_PRUNE_RULE_CAUSAL1122 = 3
ATTENTION_CAUSAL_NO = 0
ATTENTION_CAUSAL_UPPER_LEFT = 1
ATTENTION_CAUSAL_LOWER_RIGHT = 2
ATTENTION_SDPA_BACKEND_FLASH = 0
ATTENTION_SDPA_BACKEND_MATH = 1
OPTIM_NUMERICS_AUTOMATIC = 0
OPTIM_NUMERICS_SOURCE = 1
OPTIM_NUMERICS_TORCH_CPU = 2
OPTIM_NUMERICS_F32 = 3
OPTIM_NUMERICS_COMPOSED = 4
OPTIM_STATE_TYPE_SAME = 0
OPTIM_STATE_TYPE_F32 = 1
OPTIM_STATE_TYPE_BF16 = 2
OPTIM_ROUNDING_NEAREST = 0
OPTIM_ROUNDING_STOCHASTIC = 1
OPTIM_ROUNDING_KAHAN = 2
OPTIM_NORM_TYPE_TWO = 0
OPTIM_NORM_TYPE_ONE = 1
OPTIM_NORM_TYPE_INF = 2
OPTIM_DECAY_CONSTANT = 0
OPTIM_DECAY_LINEAR = 1
OPTIM_DECAY_COSINE = 2
CAPTURE_MODE_GLOBAL = 0
CAPTURE_MODE_THREAD_LOCAL = 1
CAPTURE_MODE_RELAXED = 2
GRAPH_DUMP_JSON = 0
GRAPH_DUMP_DOT = 1
GRAPH_DUMP_HTML = 2
GRAPH_NODE_KIND_KERNEL = 0
GRAPH_NODE_KIND_COPY = 1
GRAPH_NODE_KIND_FILL = 2
GRAPH_NODE_KIND_HOST_TASK = 3
GRAPH_NODE_KIND_OPAQUE = 4
ADDRESSING_POINTER = 0
ADDRESSING_BASE_AND_OFFSET = 1
ARGUMENT_KIND_INPUT = 0
ARGUMENT_KIND_OUTPUT = 1
ARGUMENT_KIND_INOUT = 2
ARGUMENT_KIND_VALUE = 3
ARGUMENT_KIND_LOCAL = 4
PROFILER_TRACE_NAMES_OPENCL = 0
PROFILER_TRACE_NAMES_HTA = 1
PROFILER_ACTION_NONE = 0
PROFILER_ACTION_WARMUP = 1
PROFILER_ACTION_RECORD = 2
PROFILER_ACTION_RECORD_AND_SAVE = 3


class Number(ctypes.Structure):
    _fields_ = [("value", c_double), ("is_whole", c_int64)]


class Sized(ctypes.Structure):
    """A struct whose first field is its size."""
    _defaults_ = {}

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(self), **{**self._defaults_, **fields})


class DeviceTraits(Sized):
    _fields_ = [("size", c_size_t), ("type", c_int64), ("opencl_c", c_int64), ("address_bits", c_int64), ("compute_units", c_int64), ("max_work_group", c_uint64), ("local_bytes", c_uint64), ("local_memory_real", c_int64), ("global_bytes", c_uint64), ("max_alloc_bytes", c_uint64), ("max_argument_bytes", c_uint64), ("cache_bytes", c_uint64), ("base_align_bits", c_uint64), ("native_width_f32", c_int64), ("native_width_f64", c_int64), ("native_width_f16", c_int64), ("fp64", c_int64), ("fp16", c_int64), ("sub_groups", c_int64), ("native_atomics64", c_int64), ("out_of_order", c_int64), ("priority_hints", c_int64), ("register_limits", c_int64), ("large_registers", c_int64), ("least_sub_group", c_int64), ("command_buffer", c_int64), ("fma_exact", c_int64), ("divide_exact", c_int64), ("sqrt_exact", c_int64), ("denormals", c_int64), ("device_timer", c_int64), ("args_by_value", c_int64), ("simulator", c_int64), ("quirks", c_uint64)]
    _defaults_ = {"type": DEVICE_TYPE_OTHER, "opencl_c": 120, "address_bits": 64, "compute_units": 1, "max_work_group": 1, "native_width_f32": 1, "args_by_value": 1}


class StreamOptions(Sized):
    _fields_ = [("size", c_size_t), ("priority", c_int64)]


class TensorOptions(Sized):
    _fields_ = [("size", c_size_t), ("dtype", c_int64), ("device", c_void_p)]
    _defaults_ = {"dtype": DTYPE_F32}


class CastOptions(Sized):
    _fields_ = [("size", c_size_t), ("overflow", c_int64)]


class CopyOptions(Sized):
    _fields_ = [("size", c_size_t), ("overflow", c_int64), ("implementation", c_char_p)]


class FillOptions(Sized):
    _fields_ = [("size", c_size_t), ("implementation", c_char_p)]


class GeneratorState(Sized):
    _fields_ = [("size", c_size_t), ("seed", c_uint64), ("offset", c_uint64)]


class PartitionOptions(Sized):
    _fields_ = [("size", c_size_t), ("units", c_int64), ("workqueue_limit", c_int64), ("soft", c_int64)]


class MemPoolOptions(Sized):
    _fields_ = [("size", c_size_t), ("use_on_oom", c_int64), ("no_split", c_int64)]


class PoolId(Sized):
    _fields_ = [("size", c_size_t), ("first", c_uint64), ("second", c_uint64)]


class MemoryInfo(Sized):
    _fields_ = [("size", c_size_t), ("free", c_uint64), ("total", c_uint64), ("estimated", c_int64)]
    _defaults_ = {"estimated": 1}


class MemoryHistoryOptions(Sized):
    _fields_ = [("size", c_size_t), ("max_entries", c_uint64), ("clear_history", c_int64)]
    _defaults_ = {"max_entries": 1000000}


class CacheUsage(Sized):
    _fields_ = [("size", c_size_t), ("files", c_uint64), ("bytes", c_uint64), ("limit", c_uint64)]


class BuildCounters(Sized):
    _fields_ = [("size", c_size_t), ("built", c_uint64), ("loaded", c_uint64), ("saved", c_uint64), ("packed", c_uint64)]


class Cost(Sized):
    _fields_ = [("size", c_size_t), ("flops", c_double), ("bytes", c_double), ("flops64", c_double)]


class AddcOptions(Sized):
    _fields_ = [("size", c_size_t), ("value", c_double), ("order", c_int64), ("implementation", c_char_p)]
    _defaults_ = {"value": 1}


class MapOptions(Sized):
    _fields_ = [("size", c_size_t), ("dtype", c_void_p), ("dtype_count", c_size_t), ("implementation", c_char_p)]


class CatOptions(Sized):
    _fields_ = [("size", c_size_t), ("implementation", c_char_p)]


class CumsumOptions(Sized):
    _fields_ = [("size", c_size_t), ("reverse", c_int64), ("dtype", c_void_p), ("dtype_count", c_size_t), ("implementation", c_char_p)]


class UniformOptions(Sized):
    _fields_ = [("size", c_size_t), ("low", c_double), ("high", c_double), ("has_seed", c_int64), ("seed", c_uint64), ("generator", c_void_p)]
    _defaults_ = {"high": 1}


class NormalOptions(Sized):
    _fields_ = [("size", c_size_t), ("mean", c_double), ("stddev", c_double), ("has_seed", c_int64), ("seed", c_uint64), ("generator", c_void_p)]
    _defaults_ = {"stddev": 1}


class RandomOptions(Sized):
    _fields_ = [("size", c_size_t), ("dtype", c_int64), ("device", c_void_p), ("has_seed", c_int64), ("seed", c_uint64), ("generator", c_void_p)]
    _defaults_ = {"dtype": DTYPE_F32}


class DrawOptions(Sized):
    _fields_ = [("size", c_size_t), ("has_seed", c_int64), ("seed", c_uint64), ("generator", c_void_p)]


class PermutationOptions(Sized):
    _fields_ = [("size", c_size_t), ("dtype", c_int64), ("device", c_void_p), ("has_seed", c_int64), ("seed", c_uint64), ("generator", c_void_p)]
    _defaults_ = {"dtype": DTYPE_I64}


class ReduceOptions(Sized):
    _fields_ = [("size", c_size_t), ("dims", c_void_p), ("dims_count", c_size_t), ("keepdim", c_int64), ("dtype", c_void_p), ("dtype_count", c_size_t), ("after", c_void_p), ("implementation", c_char_p)]


class RowwiseOptions(Sized):
    _fields_ = [("size", c_size_t), ("dims", c_void_p), ("dims_count", c_size_t), ("dtype", c_void_p), ("dtype_count", c_size_t), ("implementation", c_char_p)]


class SortOptions(Sized):
    _fields_ = [("size", c_size_t), ("descending", c_int64), ("implementation", c_char_p)]


class TopkOptions(Sized):
    _fields_ = [("size", c_size_t), ("largest", c_int64), ("implementation", c_char_p)]
    _defaults_ = {"largest": 1}


class KthvalueOptions(Sized):
    _fields_ = [("size", c_size_t), ("keepdim", c_int64), ("implementation", c_char_p)]


class Sorted(Sized):
    _fields_ = [("size", c_size_t), ("values", c_void_p), ("indices", c_void_p)]


class GroupOptions(Sized):
    _fields_ = [("size", c_size_t), ("implementation", c_char_p)]


class Groups(Sized):
    _fields_ = [("size", c_size_t), ("offsets", c_void_p), ("order", c_void_p)]


class IndexPutOptions(Sized):
    _fields_ = [("size", c_size_t), ("accumulate", c_int64)]


class NonzeroOptions(Sized):
    _fields_ = [("size", c_size_t), ("implementation", c_char_p)]


class NonzeroStaticOptions(Sized):
    _fields_ = [("size", c_size_t), ("fill_value", c_int64), ("implementation", c_char_p)]
    _defaults_ = {"fill_value": -1}


class UniqueOptions(Sized):
    _fields_ = [("size", c_size_t), ("return_inverse", c_int64), ("return_counts", c_int64), ("implementation", c_char_p)]


class Unique(Sized):
    _fields_ = [("size", c_size_t), ("values", c_void_p), ("inverse", c_void_p), ("counts", c_void_p)]


class SegmentOptions(Sized):
    _fields_ = [("size", c_size_t), ("reduce", c_int64), ("has_initial", c_int64), ("initial", c_double), ("implementation", c_char_p)]


class ScatterOptions(Sized):
    _fields_ = [("size", c_size_t), ("reduce", c_int64), ("include_self", c_int64), ("implementation", c_char_p)]
    _defaults_ = {"include_self": 1}


class ScatterGradients(Sized):
    _fields_ = [("size", c_size_t), ("self", c_void_p), ("src", c_void_p)]


class SelectiveScanOptions(Sized):
    _fields_ = [("size", c_size_t), ("skip", c_void_p), ("gate", c_void_p), ("delta_bias", c_void_p), ("delta_softplus", c_int64), ("initial_state", c_void_p), ("implementation", c_char_p)]


class SelectiveScanResult(Sized):
    _fields_ = [("size", c_size_t), ("y", c_void_p), ("state", c_void_p)]


class SelectiveScanGradients(Sized):
    _fields_ = [("size", c_size_t), ("x", c_void_p), ("delta", c_void_p), ("a", c_void_p), ("b", c_void_p), ("c", c_void_p), ("skip", c_void_p), ("gate", c_void_p), ("delta_bias", c_void_p), ("initial_state", c_void_p)]


class NormOptions(Sized):
    _fields_ = [("size", c_size_t), ("normalized_rank", c_int64), ("eps", c_double)]
    _defaults_ = {"normalized_rank": 1, "eps": 1e-5}


class LayerNormResult(Sized):
    _fields_ = [("size", c_size_t), ("y", c_void_p), ("mean", c_void_p), ("rstd", c_void_p)]


class LayerNormGradients(Sized):
    _fields_ = [("size", c_size_t), ("x", c_void_p), ("weight", c_void_p), ("bias", c_void_p)]


class RmsNormResult(Sized):
    _fields_ = [("size", c_size_t), ("y", c_void_p), ("rrms", c_void_p)]


class RmsNormGradients(Sized):
    _fields_ = [("size", c_size_t), ("x", c_void_p), ("weight", c_void_p)]


class CrossEntropyOptions(Sized):
    _fields_ = [("size", c_size_t), ("weight", c_void_p), ("ignore_index", c_int64), ("reduction", c_int64), ("label_smoothing", c_double)]
    _defaults_ = {"ignore_index": -100}


class CrossEntropyResult(Sized):
    _fields_ = [("size", c_size_t), ("loss", c_void_p), ("max", c_void_p), ("log_sum", c_void_p)]


class EmbeddingBackwardOptions(Sized):
    _fields_ = [("size", c_size_t), ("padding_index", c_int64), ("scale_by_frequency", c_int64)]
    _defaults_ = {"padding_index": -1}


class MatmulOptions(Sized):
    _fields_ = [("size", c_size_t), ("alpha", c_double), ("beta", c_double), ("dtype", c_void_p), ("dtype_count", c_size_t), ("implementation", c_char_p), ("numerics", c_int64)]
    _defaults_ = {"alpha": 1}


class LinearOptions(Sized):
    _fields_ = [("size", c_size_t), ("activation", c_int64), ("dtype", c_void_p), ("dtype_count", c_size_t), ("numerics", c_int64)]


class MatmulGradients(Sized):
    _fields_ = [("size", c_size_t), ("a", c_void_p), ("b", c_void_p), ("inputs", c_void_p), ("inputs_count", c_size_t)]


class MatmulBackwardOptions(Sized):
    _fields_ = [("size", c_size_t), ("numerics", c_int64)]


class LinearGradients(Sized):
    _fields_ = [("size", c_size_t), ("x", c_void_p), ("weight", c_void_p), ("bias", c_void_p)]


class ScaledMatmulOptions(Sized):
    _fields_ = [("size", c_size_t), ("bias", c_void_p), ("dtype", c_void_p), ("dtype_count", c_size_t), ("numerics", c_int64)]


class Quantization(Sized):
    _fields_ = [("size", c_size_t), ("scale", c_void_p), ("zero_point", c_void_p)]


class QuantizedMatmulOptions(Sized):
    _fields_ = [("size", c_size_t), ("bias", c_void_p), ("dtype", c_void_p), ("dtype_count", c_size_t), ("result", c_void_p)]


class EighOptions(Sized):
    _fields_ = [("size", c_size_t), ("uplo", c_int64), ("driver", c_int64), ("phase", c_int64), ("accuracy", c_int64), ("first", c_int64), ("count", c_int64), ("tolerance", c_double), ("max_sweeps", c_int64)]
    _defaults_ = {"count": -1}


class EighStatus(Sized):
    _fields_ = [("size", c_size_t), ("info", c_void_p), ("sweeps", c_void_p)]


class EighBackwardOptions(Sized):
    _fields_ = [("size", c_size_t), ("broadening", c_double)]


class EighGradient(Sized):
    _fields_ = [("size", c_size_t), ("grad_a", c_void_p), ("gauge", c_void_p)]


class PruneOptions(Sized):
    _fields_ = [("size", c_size_t), ("rule", c_int64)]


class CompressOptions(Sized):
    _fields_ = [("size", c_size_t), ("strict", c_int64)]
    _defaults_ = {"strict": 1}


class CutlassLayout(Sized):
    _fields_ = [("size", c_size_t), ("values", c_void_p), ("metadata", c_void_p)]


class LinearBackwardOptions(Sized):
    _fields_ = [("size", c_size_t), ("activation", c_int64), ("transposed", c_void_p), ("masked", c_int64), ("numerics", c_int64)]
    _defaults_ = {"masked": 1}


class Csr(Sized):
    _fields_ = [("size", c_size_t), ("offsets", c_void_p), ("columns", c_void_p), ("values", c_void_p), ("width", c_int64)]


class SpmmOptions(Sized):
    _fields_ = [("size", c_size_t), ("reduce", c_int64), ("implementation", c_char_p)]


class SpmmGradients(Sized):
    _fields_ = [("size", c_size_t), ("values", c_void_p), ("b", c_void_p)]


class BlockSize(Sized):
    _fields_ = [("size", c_size_t), ("q", c_int64), ("kv", c_int64)]
    _defaults_ = {"q": 128, "kv": 128}


class BlockMaskOptions(Sized):
    _fields_ = [("size", c_size_t), ("batch", c_int64), ("heads", c_int64), ("q_len", c_int64), ("kv_len", c_int64), ("block", c_void_p), ("device", c_void_p), ("implementation", c_char_p)]
    _defaults_ = {"batch": 1, "heads": 1}


class Varlen(Sized):
    _fields_ = [("size", c_size_t), ("cu_seq_q", c_void_p), ("cu_seq_kv", c_void_p), ("seqused_kv", c_void_p), ("page_table", c_void_p), ("page_size", c_int64), ("max_q", c_int64), ("max_kv", c_int64)]


class FlexOptions(Sized):
    _fields_ = [("size", c_size_t), ("score_mod", c_void_p), ("mask_mod", c_void_p), ("block_mask", c_void_p), ("has_scale", c_int64), ("scale", c_double), ("enable_gqa", c_int64), ("return_lse", c_int64), ("return_max_scores", c_int64), ("varlen", c_void_p), ("dropout_p", c_double), ("generator", c_void_p), ("skip_masked", c_int64), ("implementation", c_char_p), ("numerics", c_int64)]


class FlexResult(Sized):
    _fields_ = [("size", c_size_t), ("out", c_void_p), ("lse", c_void_p), ("max_scores", c_void_p), ("dropout_state", c_void_p)]


class FlexBackwardOptions(Sized):
    _fields_ = [("size", c_size_t), ("grad_lse", c_void_p), ("captured_gradients", c_int64)]


class FlexGradients(Sized):
    _fields_ = [("size", c_size_t), ("q", c_void_p), ("k", c_void_p), ("v", c_void_p), ("captured", c_void_p), ("captured_count", c_size_t)]


class SdpaOptions(Sized):
    _fields_ = [("size", c_size_t), ("attn_mask", c_void_p), ("causal", c_int64), ("has_scale", c_int64), ("scale", c_double), ("enable_gqa", c_int64), ("dropout_p", c_double), ("generator", c_void_p), ("numerics", c_int64)]


class SdpaResult(Sized):
    _fields_ = [("size", c_size_t), ("out", c_void_p), ("lse", c_void_p), ("dropout_state", c_void_p)]


class MultiHeadWeights(Sized):
    _fields_ = [("size", c_size_t), ("in_weight", c_void_p), ("in_bias", c_void_p), ("out_weight", c_void_p), ("out_bias", c_void_p), ("heads", c_int64), ("kv_heads", c_int64)]
    _defaults_ = {"heads": 1}


class MultiHeadResult(Sized):
    _fields_ = [("size", c_size_t), ("out", c_void_p), ("projected", c_void_p), ("attended", c_void_p), ("lse", c_void_p), ("dropout_state", c_void_p)]


class MultiHeadGradients(Sized):
    _fields_ = [("size", c_size_t), ("x", c_void_p), ("in_weight", c_void_p), ("in_bias", c_void_p), ("out_weight", c_void_p), ("out_bias", c_void_p)]


class PagedCacheOptions(Sized):
    _fields_ = [("size", c_size_t), ("pages", c_int64), ("page_size", c_int64), ("max_batch", c_int64), ("max_pages", c_int64), ("heads", c_int64), ("key_size", c_int64), ("value_size", c_int64), ("dtype", c_int64), ("device", c_void_p)]
    _defaults_ = {"page_size": 128, "max_batch": 1, "heads": 1, "dtype": DTYPE_F32}


class Precision(Sized):
    _fields_ = [("size", c_size_t), ("numerics", c_int64), ("state", c_int64), ("master", c_int64), ("rounding", c_int64), ("seed", c_uint64)]


class SGDOptions(Sized):
    _fields_ = [("size", c_size_t), ("lr", c_double), ("momentum", c_double), ("dampening", c_double), ("weight_decay", c_double), ("nesterov", c_int64), ("maximize", c_int64), ("precision", c_void_p)]
    _defaults_ = {"lr": 1e-3}


class AdamOptions(Sized):
    _fields_ = [("size", c_size_t), ("lr", c_double), ("beta1", c_double), ("beta2", c_double), ("eps", c_double), ("weight_decay", c_double), ("amsgrad", c_int64), ("maximize", c_int64), ("decoupled_weight_decay", c_int64), ("precision", c_void_p)]
    _defaults_ = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}


class AdamWOptions(Sized):
    _fields_ = [("size", c_size_t), ("lr", c_double), ("beta1", c_double), ("beta2", c_double), ("eps", c_double), ("weight_decay", c_double), ("amsgrad", c_int64), ("maximize", c_int64), ("precision", c_void_p)]
    _defaults_ = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 1e-2}


class AdagradOptions(Sized):
    _fields_ = [("size", c_size_t), ("lr", c_double), ("lr_decay", c_double), ("weight_decay", c_double), ("initial_accumulator_value", c_double), ("eps", c_double), ("maximize", c_int64), ("precision", c_void_p)]
    _defaults_ = {"lr": 1e-2, "eps": 1e-10}


class RMSpropOptions(Sized):
    _fields_ = [("size", c_size_t), ("lr", c_double), ("alpha", c_double), ("eps", c_double), ("weight_decay", c_double), ("momentum", c_double), ("centered", c_int64), ("maximize", c_int64), ("precision", c_void_p)]
    _defaults_ = {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8}


class StepOptions(Sized):
    _fields_ = [("size", c_size_t), ("lr", c_void_p), ("grad_scale", c_void_p), ("found_inf", c_void_p), ("grad_factor", c_void_p), ("has_max_norm", c_int64), ("max_norm", c_double), ("norm_type", c_int64)]


class ClipOptions(Sized):
    _fields_ = [("size", c_size_t), ("norm_type", c_int64), ("grad_scale", c_void_p)]


class GradNorm(Sized):
    _fields_ = [("size", c_size_t), ("norm", c_void_p), ("factor", c_void_p)]


class GradScalerOptions(Sized):
    _fields_ = [("size", c_size_t), ("init_scale", c_double), ("growth_factor", c_double), ("backoff_factor", c_double), ("growth_interval", c_int64), ("enabled", c_int64)]
    _defaults_ = {"init_scale": 65536, "growth_factor": 2, "backoff_factor": 0.5, "growth_interval": 2000, "enabled": 1}


class LRSchedulerOptions(Sized):
    _fields_ = [("size", c_size_t), ("warmup_steps", c_int64), ("warmup_start", c_double), ("decay", c_int64), ("decay_steps", c_int64), ("end", c_double)]


class GraphOptions(Sized):
    _fields_ = [("size", c_size_t), ("keep_graph", c_int64), ("backend", c_char_p), ("relaxed_rounding", c_int64)]


class CaptureOptions(Sized):
    _fields_ = [("size", c_size_t), ("mode", c_int64), ("pool", c_void_p)]


class GraphSaveOptions(Sized):
    _fields_ = [("size", c_size_t), ("binaries", c_int64)]


class Geometry(Sized):
    _fields_ = [("size", c_size_t), ("global", c_uint64), ("local", c_uint64), ("global_y", c_uint64), ("local_y", c_uint64), ("global_z", c_uint64), ("local_z", c_uint64)]
    _defaults_ = {"global": 1, "global_y": 1, "local_y": 1, "global_z": 1, "local_z": 1}


class KernelSource(Sized):
    _fields_ = [("size", c_size_t), ("text", c_char_p), ("entry", c_char_p), ("defines", c_void_p), ("defines_count", c_size_t), ("options", c_char_p), ("file", c_char_p), ("addressing", c_int64), ("binary", c_void_p), ("binary_size", c_size_t), ("spirv", c_void_p), ("spirv_size", c_size_t)]


class Argument(Sized):
    _fields_ = [("size", c_size_t), ("kind", c_int64), ("tensor", c_void_p), ("value", c_void_p), ("value_size", c_size_t), ("type", c_char_p), ("name", c_char_p)]


class ProfilerOptions(Sized):
    _fields_ = [("size", c_size_t), ("cpu_activity", c_int64), ("device_activity", c_int64), ("profile_memory", c_int64), ("record_shapes", c_int64), ("graph_nodes", c_int64), ("max_events", c_int64)]
    _defaults_ = {"cpu_activity": 1, "device_activity": 1, "graph_nodes": 1, "max_events": 1048576}


class ProfileTotals(Sized):
    _fields_ = [("size", c_size_t), ("events", c_uint64), ("dropped", c_uint64), ("untimed", c_uint64), ("wall_us", c_double), ("overhead_us", c_double), ("command_cost_us", c_double)]


class TraceOptions(Sized):
    _fields_ = [("size", c_size_t), ("names", c_int64), ("rank", c_int64), ("world_size", c_int64)]
    _defaults_ = {"world_size": 1}


class TableOptions(Sized):
    _fields_ = [("size", c_size_t), ("sort_by", c_char_p), ("row_limit", c_int64), ("group_by_input_shape", c_int64)]
    _defaults_ = {"row_limit": 100}


FUNCTIONS = {
    "clutch_device_count": [c_void_p],
    "clutch_device_at": [c_int64, c_void_p],
    "clutch_select_devices": [c_char_p, c_void_p, c_size_t, c_void_p],
    "clutch_device_create": [c_char_p, c_void_p],
    "clutch_default_device": [c_void_p],
    "clutch_set_default_device": [c_void_p],
    "clutch_current_device": [c_void_p],
    "clutch_set_current_device": [c_void_p],
    "clutch_device_index": [c_void_p, c_void_p],
    "clutch_device_type": [c_void_p, c_void_p],
    "clutch_device_name": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_device_vendor": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_device_platform": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_device_driver_version": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_device_extensions": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_device_uuid": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_device_selector": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_device_quirks": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_device_traits": [c_void_p, POINTER(DeviceTraits)],
    "clutch_device_supports": [c_void_p, c_int64, c_void_p],
    "clutch_synchronize": [c_void_p],
    "clutch_stream_create": [c_void_p, POINTER(StreamOptions), c_void_p],
    "clutch_default_stream": [c_void_p, c_void_p],
    "clutch_current_stream": [c_void_p, c_void_p],
    "clutch_set_current_stream": [c_void_p],
    "clutch_stream_device": [c_void_p, c_void_p],
    "clutch_stream_id": [c_void_p, c_void_p],
    "clutch_stream_priority": [c_void_p, c_void_p],
    "clutch_stream_partition": [c_void_p, c_void_p],
    "clutch_stream_query": [c_void_p, c_void_p],
    "clutch_stream_synchronize": [c_void_p],
    "clutch_stream_wait": [c_void_p, c_void_p],
    "clutch_stream_flush": [c_void_p],
    "clutch_stream_is_capturing": [c_void_p, c_void_p],
    "clutch_stream_reset": [c_void_p],
    "clutch_event_create": [c_void_p],
    "clutch_event_record": [c_void_p, c_void_p],
    "clutch_event_query": [c_void_p, c_void_p],
    "clutch_event_wait": [c_void_p],
    "clutch_elapsed_ms": [c_void_p, c_void_p, c_void_p],
    "clutch_partition_create": [c_void_p, POINTER(PartitionOptions), c_void_p],
    "clutch_partition_split": [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p],
    "clutch_partition_device": [c_void_p, c_void_p],
    "clutch_partition_units": [c_void_p, c_void_p],
    "clutch_partition_first_unit": [c_void_p, c_void_p],
    "clutch_partition_isolation": [c_void_p, c_void_p],
    "clutch_partition_workqueue_limit": [c_void_p, c_void_p],
    "clutch_partition_traits": [c_void_p, POINTER(DeviceTraits)],
    "clutch_partition_stream": [c_void_p, c_void_p],
    "clutch_partition_make_stream": [c_void_p, POINTER(StreamOptions), c_void_p],
    "clutch_free_units": [c_void_p, c_void_p],
    "clutch_partition_guard_create": [c_void_p, c_void_p],
    "clutch_empty": [c_void_p, c_size_t, POINTER(TensorOptions), c_void_p, c_void_p],
    "clutch_zeros": [c_void_p, c_size_t, POINTER(TensorOptions), c_void_p, c_void_p],
    "clutch_full": [c_void_p, c_size_t, c_double, POINTER(TensorOptions), c_void_p, c_void_p],
    "clutch_arange": [c_double, c_double, c_double, POINTER(TensorOptions), c_void_p, c_void_p],
    "clutch_from_bytes": [c_void_p, c_size_t, c_void_p, c_size_t, POINTER(TensorOptions), c_void_p, c_void_p],
    "clutch_tensor_dtype": [c_void_p, c_void_p],
    "clutch_tensor_device": [c_void_p, c_void_p],
    "clutch_tensor_rank": [c_void_p, c_void_p],
    "clutch_tensor_sizes": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_tensor_strides": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_tensor_size": [c_void_p, c_int64, c_void_p],
    "clutch_tensor_stride": [c_void_p, c_int64, c_void_p],
    "clutch_tensor_numel": [c_void_p, c_void_p],
    "clutch_tensor_nbytes": [c_void_p, c_void_p],
    "clutch_tensor_byte_offset": [c_void_p, c_void_p],
    "clutch_tensor_is_contiguous": [c_void_p, c_void_p],
    "clutch_tensor_shares_storage": [c_void_p, c_void_p, c_void_p],
    "clutch_tensor_slice": [c_void_p, c_int64, c_int64, c_int64, c_int64, c_void_p],
    "clutch_tensor_select": [c_void_p, c_int64, c_int64, c_void_p],
    "clutch_tensor_transpose": [c_void_p, c_int64, c_int64, c_void_p],
    "clutch_tensor_mt": [c_void_p, c_void_p],
    "clutch_tensor_reshape": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_tensor_expand": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_tensor_unsqueeze": [c_void_p, c_int64, c_void_p],
    "clutch_tensor_squeeze": [c_void_p, c_int64, c_void_p],
    "clutch_tensor_as_strided": [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_int64, c_void_p],
    "clutch_tensor_contiguous": [c_void_p, c_void_p, c_void_p],
    "clutch_tensor_clone": [c_void_p, c_void_p, c_void_p],
    "clutch_tensor_to": [c_void_p, c_int64, POINTER(CastOptions), c_void_p, c_void_p],
    "clutch_tensor_to_device": [c_void_p, c_void_p, c_void_p],
    "clutch_tensor_read_bytes": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_tensor_write": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_tensor_item": [c_void_p, c_void_p, c_void_p],
    "clutch_tensor_to_string": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_tensor_share": [c_void_p, c_void_p],
    "clutch_promote_types": [c_int64, c_int64, c_void_p],
    "clutch_dtype_from_name": [c_char_p, c_void_p],
    "clutch_result_type": [c_void_p, c_size_t, c_void_p],
    "clutch_copy_": [c_void_p, c_void_p, POINTER(CopyOptions), c_void_p],
    "clutch_fill_": [c_void_p, c_double, POINTER(FillOptions), c_void_p],
    "clutch_arange_": [c_void_p, c_double, c_double, POINTER(FillOptions), c_void_p],
    "clutch_storage_handle_create": [c_void_p, c_void_p],
    "clutch_storage_handle_create_bytes": [c_uint64, c_void_p, c_void_p, c_void_p],
    "clutch_storage_handle_bytes": [c_void_p, c_void_p],
    "clutch_storage_handle_device": [c_void_p, c_void_p],
    "clutch_storage_handle_has_memory": [c_void_p, c_void_p],
    "clutch_storage_handle_view": [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_int64, c_uint64, c_void_p],
    "clutch_host_mapping_create": [c_void_p, c_int64, c_void_p, c_void_p],
    "clutch_host_mapping_bytes": [c_void_p, c_void_p, c_void_p],
    "clutch_host_mapping_unmap": [c_void_p],
    "clutch_interop_to_dlpack": [c_void_p, c_int64, c_void_p, c_void_p],
    "clutch_interop_to_dlpack_versioned": [c_void_p, c_int64, c_void_p, c_void_p],
    "clutch_interop_from_dlpack": [c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_interop_from_dlpack_versioned": [c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_interop_wrap_queue": [c_void_p, c_void_p],
    "clutch_interop_wrap_buffer": [c_void_p, c_void_p, c_size_t, c_int64, c_void_p, c_uint64, c_void_p],
    "clutch_interop_wrap_event": [c_void_p, c_void_p],
    "clutch_interop_mem": [c_void_p, c_void_p],
    "clutch_interop_offset": [c_void_p, c_void_p],
    "clutch_interop_queue": [c_void_p, c_void_p],
    "clutch_interop_context": [c_void_p, c_void_p],
    "clutch_interop_event": [c_void_p, c_void_p],
    "clutch_interop_device_id": [c_void_p, c_void_p],
    "clutch_interop_platform_id": [c_void_p, c_void_p],
    "clutch_interop_release": [c_void_p],
    "clutch_memory_stat": [c_char_p, c_void_p, c_void_p],
    "clutch_memory_stat_keys": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_memory_stat_of_pool": [POINTER(PoolId), c_char_p, c_void_p, c_void_p],
    "clutch_memory_allocated": [c_void_p, c_void_p],
    "clutch_max_memory_allocated": [c_void_p, c_void_p],
    "clutch_memory_reserved": [c_void_p, c_void_p],
    "clutch_max_memory_reserved": [c_void_p, c_void_p],
    "clutch_reset_peak_memory_stats": [c_void_p],
    "clutch_reset_accumulated_memory_stats": [c_void_p],
    "clutch_empty_cache": [c_void_p],
    "clutch_get_memory_info": [c_void_p, POINTER(MemoryInfo)],
    "clutch_set_memory_limit": [c_uint64, c_void_p],
    "clutch_set_per_process_memory_fraction": [c_double, c_void_p],
    "clutch_get_per_process_memory_fraction": [c_void_p, c_void_p],
    "clutch_memory_address": [c_void_p, c_void_p],
    "clutch_set_allocator_settings": [c_char_p],
    "clutch_record_memory_history": [POINTER(MemoryHistoryOptions)],
    "clutch_stop_memory_history": [],
    "clutch_dump_memory_snapshot": [c_char_p],
    "clutch_new_pool_id": [POINTER(PoolId)],
    "clutch_mem_pool_create": [POINTER(MemPoolOptions), c_void_p],
    "clutch_mem_pool_id": [c_void_p, POINTER(PoolId)],
    "clutch_pool_guard_create": [POINTER(PoolId), c_void_p],
    "clutch_memory_label_guard_create": [c_char_p, c_void_p],
    "clutch_version": [c_void_p, c_size_t, c_void_p],
    "clutch_build_info": [c_void_p, c_size_t, c_void_p],
    "clutch_check_settings": [],
    "clutch_cache_directory": [c_void_p, c_size_t, c_void_p],
    "clutch_cache_usage": [POINTER(CacheUsage)],
    "clutch_clear_cache": [POINTER(CacheUsage)],
    "clutch_build_counters": [POINTER(BuildCounters)],
    "clutch_enqueued_cost": [POINTER(Cost)],
    "clutch_fallback_count": [c_char_p, c_void_p],
    "clutch_last_plan": [c_void_p, c_size_t, c_void_p],
    "clutch_load_npy": [c_char_p, c_void_p, c_void_p, c_void_p],
    "clutch_read_npy": [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p],
    "clutch_save_npy": [c_char_p, c_void_p, c_void_p],
    "clutch_safetensors_open": [c_char_p, c_void_p],
    "clutch_safetensors_names": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_safetensors_load": [c_void_p, c_char_p, c_void_p, c_void_p, c_void_p],
    "clutch_save_safetensors": [c_char_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p],
    "clutch_tune_clear": [],
    "clutch_tune_load": [c_char_p],
    "clutch_tune_save": [c_char_p],
    "clutch_tune_file": [c_void_p, c_size_t, c_void_p],
    "clutch_expr_function_parse": [c_char_p, c_void_p],
    "clutch_expr_function_text": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_expr_function_input_count": [c_void_p, c_void_p],
    "clutch_expr_function_output_count": [c_void_p, c_void_p],
    "clutch_expr_function_param_count": [c_void_p, c_void_p],
    "clutch_expr_function_captured_count": [c_void_p, c_void_p],
    "clutch_expr_function_floating_inputs": [c_void_p, c_void_p],
    "clutch_expr_function_input_dtype": [c_void_p, c_int64, c_void_p],
    "clutch_expr_function_output_dtype": [c_void_p, c_int64, c_void_p],
    "clutch_expr_function_param_value": [c_void_p, c_int64, c_void_p],
    "clutch_expr_function_captured_tensor": [c_void_p, c_int64, c_void_p],
    "clutch_expr_function_with_params": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_expr_function_with_captured": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_expr_function_backward": [c_void_p, c_void_p],
    "clutch_map_out": [c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, POINTER(MapOptions), c_void_p],
    "clutch_map_dtype": [c_void_p, c_int64, c_void_p, c_size_t, c_void_p],
    "clutch_map_backward_out": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_captured_backward_out": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_foreach_map_out": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_size_t, POINTER(MapOptions), c_void_p],
    "clutch_addcdiv_out": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(AddcOptions), c_void_p],
    "clutch_addcmul_out": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(AddcOptions), c_void_p],
    "clutch_addcdiv_": [c_void_p, c_void_p, c_void_p, POINTER(AddcOptions), c_void_p],
    "clutch_addcmul_": [c_void_p, c_void_p, c_void_p, POINTER(AddcOptions), c_void_p],
    "clutch_neg_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_conj_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_abs_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sign_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_square_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_reciprocal_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sqrt_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_rsqrt_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_exp_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_exp2_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_expm1_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_log_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_log2_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_log1p_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_tanh_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sigmoid_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_erf_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sin_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_cos_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_floor_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_ceil_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_trunc_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_round_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_relu_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_silu_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_softplus_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_not_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_logical_not_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_isnan_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_isinf_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_isfinite_out": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_neg_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_conj_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_abs_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sign_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_square_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_reciprocal_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sqrt_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_rsqrt_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_exp_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_exp2_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_expm1_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_log_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_log2_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_log1p_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_tanh_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sigmoid_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_erf_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sin_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_cos_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_floor_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_ceil_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_trunc_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_round_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_relu_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_silu_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_softplus_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_not_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_logical_not_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_isnan_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_isinf_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_isfinite_": [c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_add_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sub_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_mul_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_div_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_floor_divide_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_trunc_divide_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_remainder_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_fmod_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_pow_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_minimum_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_maximum_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_eq_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_ne_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_lt_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_le_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_gt_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_ge_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_and_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_or_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_xor_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_logical_and_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_logical_or_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_logical_xor_out": [c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_add_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_sub_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_mul_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_div_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_floor_divide_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_trunc_divide_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_remainder_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_fmod_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_pow_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_minimum_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_maximum_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_eq_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_ne_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_lt_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_le_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_gt_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_ge_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_and_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_or_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_xor_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_logical_and_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_logical_or_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_logical_xor_": [c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_add_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_sub_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_mul_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_div_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_floor_divide_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_trunc_divide_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_remainder_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_fmod_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_pow_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_minimum_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_maximum_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_eq_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_ne_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_lt_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_le_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_gt_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_ge_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_bitwise_and_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_bitwise_or_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_bitwise_xor_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_logical_and_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_logical_or_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_logical_xor_number": [c_void_p, Number, POINTER(MapOptions), c_void_p, c_void_p],
    "clutch_add_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_sub_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_mul_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_div_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_floor_divide_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_trunc_divide_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_remainder_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_fmod_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_pow_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_minimum_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_maximum_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_eq_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_ne_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_lt_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_le_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_gt_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_ge_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_and_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_or_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_bitwise_xor_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_logical_and_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_logical_or_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_logical_xor_number_": [c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_add_scaled_out": [c_void_p, c_void_p, c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_add_scaled_": [c_void_p, c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_gelu_out": [c_void_p, c_void_p, c_int64, POINTER(MapOptions), c_void_p],
    "clutch_leaky_relu_out": [c_void_p, c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_clamp_number_out": [c_void_p, c_void_p, Number, Number, POINTER(MapOptions), c_void_p],
    "clutch_clamp_out": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_where_out": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_lerp_number_out": [c_void_p, c_void_p, c_void_p, Number, POINTER(MapOptions), c_void_p],
    "clutch_lerp_out": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(MapOptions), c_void_p],
    "clutch_cat_out": [c_void_p, c_void_p, c_size_t, c_int64, POINTER(CatOptions), c_void_p],
    "clutch_stack_out": [c_void_p, c_void_p, c_size_t, c_int64, POINTER(CatOptions), c_void_p],
    "clutch_real": [c_void_p, c_void_p],
    "clutch_imag": [c_void_p, c_void_p],
    "clutch_view_as_real": [c_void_p, c_void_p],
    "clutch_view_as_complex": [c_void_p, c_void_p],
    "clutch_complex_out": [c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_split": [c_void_p, c_int64, c_int64, c_void_p, c_size_t, c_void_p],
    "clutch_split_sizes": [c_void_p, c_void_p, c_size_t, c_int64, c_void_p, c_size_t, c_void_p],
    "clutch_split_copy_out": [c_void_p, c_size_t, c_void_p, c_int64, POINTER(CatOptions), c_void_p],
    "clutch_foreach_copy_": [c_void_p, c_size_t, c_void_p, c_size_t, POINTER(CatOptions), c_void_p],
    "clutch_cumsum_out": [c_void_p, c_void_p, c_int64, POINTER(CumsumOptions), c_void_p],
    "clutch_generator_create": [c_void_p, c_uint64, c_void_p, c_void_p],
    "clutch_default_generator": [c_void_p, c_void_p, c_void_p],
    "clutch_manual_seed": [c_uint64, c_void_p, c_void_p],
    "clutch_generator_device": [c_void_p, c_void_p],
    "clutch_generator_manual_seed": [c_void_p, c_uint64, c_void_p],
    "clutch_generator_set_state": [c_void_p, POINTER(GeneratorState), c_void_p],
    "clutch_generator_state": [c_void_p, c_void_p, POINTER(GeneratorState)],
    "clutch_generator_state_tensor": [c_void_p, c_void_p],
    "clutch_uniform_": [c_void_p, POINTER(UniformOptions), c_void_p],
    "clutch_normal_": [c_void_p, POINTER(NormalOptions), c_void_p],
    "clutch_random_range_": [c_void_p, c_int64, c_int64, POINTER(DrawOptions), c_void_p],
    "clutch_random_": [c_void_p, POINTER(DrawOptions), c_void_p],
    "clutch_bernoulli_": [c_void_p, c_double, POINTER(DrawOptions), c_void_p],
    "clutch_bernoulli_tensor_": [c_void_p, c_void_p, POINTER(DrawOptions), c_void_p],
    "clutch_exponential_": [c_void_p, c_double, POINTER(DrawOptions), c_void_p],
    "clutch_randperm": [c_int64, POINTER(PermutationOptions), c_void_p, c_void_p],
    "clutch_rand": [c_void_p, c_size_t, POINTER(RandomOptions), c_void_p, c_void_p],
    "clutch_randn": [c_void_p, c_size_t, POINTER(RandomOptions), c_void_p, c_void_p],
    "clutch_reduce_out": [c_void_p, c_int64, c_void_p, c_void_p, c_size_t, POINTER(ReduceOptions), c_void_p],
    "clutch_sum_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_mean_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_prod_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_amin_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_amax_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_any_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_all_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_argmin_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_argmax_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_logsumexp_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_count_nonzero_out": [c_void_p, c_void_p, POINTER(ReduceOptions), c_void_p],
    "clutch_var_out": [c_void_p, c_void_p, c_double, POINTER(ReduceOptions), c_void_p],
    "clutch_norm_out": [c_void_p, c_void_p, c_double, POINTER(ReduceOptions), c_void_p],
    "clutch_sum_to_out": [c_void_p, c_void_p, c_void_p],
    "clutch_row_function_create": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p],
    "clutch_row_function_parse": [c_char_p, c_void_p],
    "clutch_row_function_text": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_row_function_input_count": [c_void_p, c_void_p],
    "clutch_row_function_element_count": [c_void_p, c_void_p],
    "clutch_row_function_result_count": [c_void_p, c_void_p],
    "clutch_row_function_param_count": [c_void_p, c_void_p],
    "clutch_row_function_param_value": [c_void_p, c_int64, c_void_p],
    "clutch_row_function_with_params": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_rowwise_out": [c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, POINTER(RowwiseOptions), c_void_p],
    "clutch_nn_softmax_out": [c_void_p, c_void_p, c_int64, c_void_p],
    "clutch_nn_log_softmax_out": [c_void_p, c_void_p, c_int64, c_void_p],
    "clutch_nn_softmax_backward_out": [c_void_p, c_void_p, c_void_p, c_int64, c_void_p],
    "clutch_nn_log_softmax_backward_out": [c_void_p, c_void_p, c_void_p, c_int64, c_void_p],
    "clutch_selective_scan_out": [POINTER(SelectiveScanResult), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(SelectiveScanOptions), c_void_p],
    "clutch_selective_scan_backward_out": [POINTER(SelectiveScanGradients), POINTER(SelectiveScanResult), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(SelectiveScanOptions), c_void_p],
    "clutch_nn_layer_norm_out": [POINTER(LayerNormResult), c_void_p, c_void_p, c_void_p, POINTER(NormOptions), c_void_p],
    "clutch_nn_layer_norm_backward_out": [POINTER(LayerNormGradients), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(NormOptions), c_void_p],
    "clutch_nn_rms_norm_out": [POINTER(RmsNormResult), c_void_p, c_void_p, POINTER(NormOptions), c_void_p],
    "clutch_nn_rms_norm_backward_out": [POINTER(RmsNormGradients), c_void_p, c_void_p, c_void_p, c_void_p, POINTER(NormOptions), c_void_p],
    "clutch_nn_cross_entropy_out": [POINTER(CrossEntropyResult), c_void_p, c_void_p, POINTER(CrossEntropyOptions), c_void_p],
    "clutch_nn_cross_entropy_backward_out": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(CrossEntropyResult), POINTER(CrossEntropyOptions), c_void_p],
    "clutch_nn_embedding_out": [c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_nn_embedding_backward_out": [c_void_p, c_void_p, c_void_p, c_int64, POINTER(EmbeddingBackwardOptions), c_void_p],
    "clutch_sort_out": [POINTER(Sorted), c_void_p, c_int64, POINTER(SortOptions), c_void_p],
    "clutch_argsort_out": [c_void_p, c_void_p, c_int64, POINTER(SortOptions), c_void_p],
    "clutch_topk_out": [POINTER(Sorted), c_void_p, c_int64, c_int64, POINTER(TopkOptions), c_void_p],
    "clutch_kthvalue_out": [POINTER(Sorted), c_void_p, c_int64, c_int64, POINTER(KthvalueOptions), c_void_p],
    "clutch_unique": [c_void_p, POINTER(UniqueOptions), c_void_p, POINTER(Unique)],
    "clutch_unique_consecutive": [c_void_p, POINTER(UniqueOptions), c_void_p, POINTER(Unique)],
    "clutch_nonzero": [c_void_p, POINTER(NonzeroOptions), c_void_p, c_void_p],
    "clutch_nonzero_static_out": [c_void_p, c_void_p, c_int64, POINTER(NonzeroStaticOptions), c_void_p],
    "clutch_masked_select": [c_void_p, c_void_p, POINTER(NonzeroOptions), c_void_p, c_void_p],
    "clutch_index_out": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_index_put_out": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, POINTER(IndexPutOptions), c_void_p],
    "clutch_index_put_": [c_void_p, c_void_p, c_size_t, c_void_p, POINTER(IndexPutOptions), c_void_p],
    "clutch_gather_out": [c_void_p, c_void_p, c_int64, c_void_p, c_void_p],
    "clutch_gather_backward_out": [c_void_p, c_void_p, c_int64, c_void_p, c_void_p],
    "clutch_index_select_out": [c_void_p, c_void_p, c_int64, c_void_p, c_void_p],
    "clutch_scatter_reduce_out": [c_void_p, c_void_p, c_int64, c_void_p, c_void_p, POINTER(ScatterOptions), c_void_p],
    "clutch_scatter_reduce_": [c_void_p, c_int64, c_void_p, c_void_p, POINTER(ScatterOptions), c_void_p],
    "clutch_scatter_reduce_backward_out": [POINTER(ScatterGradients), c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p, POINTER(ScatterOptions), c_void_p],
    "clutch_segment_reduce_out": [c_void_p, c_void_p, c_void_p, POINTER(SegmentOptions), c_void_p],
    "clutch_segment_reduce_backward_out": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(SegmentOptions), c_void_p],
    "clutch_group_by_out": [POINTER(Groups), c_void_p, c_int64, POINTER(GroupOptions), c_void_p],
    "clutch_linalg_packed_matrix_create": [c_void_p, c_void_p, c_void_p],
    "clutch_linalg_packed_matrix_sizes": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_linalg_packed_matrix_dtype": [c_void_p, c_void_p],
    "clutch_linalg_packed_matrix_nbytes": [c_void_p, c_void_p],
    "clutch_linalg_matmul_out": [c_void_p, c_void_p, c_void_p, POINTER(MatmulOptions), c_void_p],
    "clutch_linalg_matmul_packed_out": [c_void_p, c_void_p, c_void_p, POINTER(MatmulOptions), c_void_p],
    "clutch_linalg_matmul_function_out": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, POINTER(MatmulOptions), c_void_p],
    "clutch_linalg_matmul_packed_function_out": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, POINTER(MatmulOptions), c_void_p],
    "clutch_linalg_product_dtype": [c_int64, c_int64, c_char_p, c_void_p],
    "clutch_linalg_linear_out": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(LinearOptions), c_void_p],
    "clutch_linalg_linear_packed_out": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(LinearOptions), c_void_p],
    "clutch_linalg_matmul_backward_out": [POINTER(MatmulGradients), c_void_p, c_void_p, c_void_p, POINTER(MatmulBackwardOptions), c_void_p],
    "clutch_linalg_matmul_function_backward_out": [POINTER(MatmulGradients), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, POINTER(MatmulBackwardOptions), c_void_p],
    "clutch_linalg_linear_backward_out": [POINTER(LinearGradients), c_void_p, c_void_p, c_void_p, c_void_p, POINTER(LinearOptions), c_void_p],
    "clutch_linalg_scaled_matmul_out": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(ScaledMatmulOptions), c_void_p],
    "clutch_linalg_scaled_matmul_packed_out": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(ScaledMatmulOptions), c_void_p],
    "clutch_linalg_quantized_matmul_out": [c_void_p, c_void_p, POINTER(Quantization), c_void_p, POINTER(Quantization), POINTER(QuantizedMatmulOptions), c_void_p],
    "clutch_linalg_eigh_out": [c_void_p, c_void_p, POINTER(EighStatus), c_void_p, POINTER(EighOptions), c_void_p],
    "clutch_linalg_eigvalsh_out": [c_void_p, POINTER(EighStatus), c_void_p, POINTER(EighOptions), c_void_p],
    "clutch_linalg_eigh_backward_out": [POINTER(EighGradient), c_void_p, c_void_p, c_void_p, c_void_p, POINTER(EighBackwardOptions), c_void_p],
    "clutch_linalg_require_gauge": [c_void_p, c_double, c_void_p],
    "clutch_linalg_require_converged": [POINTER(EighStatus), c_void_p],
    "clutch_sparse_prune_2_4_out": [c_void_p, c_void_p, POINTER(PruneOptions), c_void_p],
    "clutch_sparse_mask_2_4_out": [c_void_p, c_void_p, POINTER(PruneOptions), c_void_p],
    "clutch_sparse_apply_mask_out": [c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_sparse_to_bitmask_out": [c_void_p, c_void_p, c_void_p],
    "clutch_sparse_from_bitmask_out": [c_void_p, c_void_p, c_void_p],
    "clutch_sparse_is_2_4_out": [c_void_p, c_void_p, c_void_p],
    "clutch_sparse_require_2_4": [c_void_p, c_void_p],
    "clutch_sparse_semi_structured_create": [c_void_p, c_void_p, c_int64, c_void_p],
    "clutch_sparse_compress": [c_void_p, POINTER(CompressOptions), c_void_p, c_void_p],
    "clutch_sparse_semi_structured_sizes": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_sparse_semi_structured_dtype": [c_void_p, c_void_p],
    "clutch_sparse_semi_structured_nbytes": [c_void_p, c_void_p],
    "clutch_sparse_semi_structured_values": [c_void_p, c_void_p],
    "clutch_sparse_semi_structured_metadata": [c_void_p, c_void_p],
    "clutch_sparse_semi_structured_info": [c_void_p, c_void_p],
    "clutch_sparse_decompress_out": [c_void_p, c_void_p, c_void_p],
    "clutch_sparse_to_cutlass_out": [POINTER(CutlassLayout), c_void_p, c_void_p],
    "clutch_sparse_from_cutlass": [POINTER(CutlassLayout), c_void_p, c_void_p],
    "clutch_sparse_matmul_out": [c_void_p, c_void_p, c_void_p, POINTER(MatmulOptions), c_void_p],
    "clutch_sparse_matmul_function_out": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, POINTER(MatmulOptions), c_void_p],
    "clutch_sparse_matmul_transposed_out": [c_void_p, c_void_p, c_void_p, POINTER(MatmulOptions), c_void_p],
    "clutch_sparse_matmul_transposed_function_out": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, POINTER(MatmulOptions), c_void_p],
    "clutch_sparse_scaled_matmul_out": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(ScaledMatmulOptions), c_void_p],
    "clutch_sparse_scaled_matmul_transposed_out": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(ScaledMatmulOptions), c_void_p],
    "clutch_sparse_linear_out": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(LinearOptions), c_void_p],
    "clutch_sparse_linear_backward_out": [POINTER(LinearGradients), c_void_p, c_void_p, c_void_p, c_void_p, POINTER(LinearBackwardOptions), c_void_p],
    "clutch_sparse_mask_of_out": [c_void_p, c_void_p, c_void_p],
    "clutch_sparse_spmm_out": [c_void_p, POINTER(Csr), c_void_p, POINTER(SpmmOptions), c_void_p],
    "clutch_sparse_spmm_backward_out": [POINTER(SpmmGradients), c_void_p, c_void_p, POINTER(Csr), c_void_p, POINTER(SpmmOptions), c_void_p],
    "clutch_attention_mask_mod_create": [c_void_p, c_void_p],
    "clutch_attention_causal": [c_int64, c_void_p],
    "clutch_attention_sliding_window": [c_int64, c_void_p],
    "clutch_attention_prefix_lm": [c_void_p, c_void_p],
    "clutch_attention_prefix_lm_number": [c_int64, c_void_p],
    "clutch_attention_document": [c_void_p, c_void_p],
    "clutch_attention_dilated": [c_int64, c_int64, c_void_p],
    "clutch_attention_causal_lower_right": [POINTER(Varlen), c_int64, c_int64, c_void_p],
    "clutch_attention_mask_mod_and": [c_void_p, c_void_p, c_void_p],
    "clutch_attention_mask_mod_or": [c_void_p, c_void_p, c_void_p],
    "clutch_attention_mask_mod_not": [c_void_p, c_void_p],
    "clutch_attention_mask_mod_function": [c_void_p, c_void_p],
    "clutch_attention_score_mod_create": [c_void_p, c_void_p, c_void_p],
    "clutch_attention_alibi": [c_void_p, c_void_p],
    "clutch_attention_alibi_slopes": [c_int64, c_void_p, c_void_p, c_void_p],
    "clutch_attention_softcap": [c_double, c_void_p],
    "clutch_attention_relative_bias": [c_void_p],
    "clutch_attention_relative_bias_table": [c_void_p, c_void_p],
    "clutch_attention_create_block_mask": [c_void_p, POINTER(BlockMaskOptions), c_void_p, c_void_p],
    "clutch_attention_block_mask_from_lists": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(BlockMaskOptions), c_void_p, c_void_p],
    "clutch_attention_block_mask_q_len": [c_void_p, c_void_p],
    "clutch_attention_block_mask_kv_len": [c_void_p, c_void_p],
    "clutch_attention_block_mask_block": [c_void_p, POINTER(BlockSize)],
    "clutch_attention_block_mask_mask_mod": [c_void_p, c_void_p],
    "clutch_attention_block_mask_kv_num_blocks": [c_void_p, c_void_p],
    "clutch_attention_block_mask_kv_indices": [c_void_p, c_void_p],
    "clutch_attention_block_mask_full_kv_num_blocks": [c_void_p, c_void_p],
    "clutch_attention_block_mask_full_kv_indices": [c_void_p, c_void_p],
    "clutch_attention_block_mask_q_num_blocks": [c_void_p, c_void_p],
    "clutch_attention_block_mask_q_indices": [c_void_p, c_void_p],
    "clutch_attention_block_mask_full_q_num_blocks": [c_void_p, c_void_p],
    "clutch_attention_block_mask_full_q_indices": [c_void_p, c_void_p],
    "clutch_attention_block_mask_kinds": [c_void_p, c_void_p],
    "clutch_attention_block_mask_to_dense": [c_void_p, c_void_p, c_void_p],
    "clutch_attention_block_mask_slice": [c_void_p, c_int64, c_int64, c_int64, c_int64, c_void_p, c_void_p],
    "clutch_attention_block_mask_adjust": [c_void_p, c_int64, c_int64, c_void_p, c_void_p],
    "clutch_attention_block_mask_sparsity": [c_void_p, c_void_p, c_void_p],
    "clutch_attention_block_mask_to_string": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_attention_flex_out": [POINTER(FlexResult), c_void_p, c_void_p, c_void_p, POINTER(FlexOptions), c_void_p],
    "clutch_attention_flex_backward_out": [POINTER(FlexGradients), c_void_p, c_void_p, c_void_p, c_void_p, POINTER(FlexResult), POINTER(FlexOptions), POINTER(FlexBackwardOptions), c_void_p],
    "clutch_attention_varlen_attn_out": [POINTER(FlexResult), c_void_p, c_void_p, c_void_p, POINTER(FlexOptions), c_void_p],
    "clutch_attention_varlen_attn_backward_out": [POINTER(FlexGradients), c_void_p, c_void_p, c_void_p, c_void_p, POINTER(FlexResult), POINTER(FlexOptions), POINTER(FlexBackwardOptions), c_void_p],
    "clutch_attention_sdpa_out": [POINTER(SdpaResult), c_void_p, c_void_p, c_void_p, POINTER(SdpaOptions), c_void_p],
    "clutch_attention_sdpa_backward_out": [POINTER(FlexGradients), c_void_p, c_void_p, c_void_p, c_void_p, POINTER(SdpaResult), POINTER(SdpaOptions), POINTER(FlexBackwardOptions), c_void_p],
    "clutch_attention_sdpa_backends_create": [c_void_p, c_size_t, c_void_p],
    "clutch_attention_multi_head_attention_out": [POINTER(MultiHeadResult), c_void_p, POINTER(MultiHeadWeights), POINTER(FlexOptions), c_void_p],
    "clutch_attention_multi_head_attention_backward_out": [POINTER(MultiHeadGradients), c_void_p, c_void_p, POINTER(MultiHeadWeights), POINTER(MultiHeadResult), POINTER(FlexOptions), c_void_p],
    "clutch_attention_paged_cache_create": [POINTER(PagedCacheOptions), c_void_p, c_void_p],
    "clutch_attention_paged_cache_keys": [c_void_p, c_void_p],
    "clutch_attention_paged_cache_values": [c_void_p, c_void_p],
    "clutch_attention_paged_cache_page_table": [c_void_p, c_void_p],
    "clutch_attention_paged_cache_physical_to_logical": [c_void_p, c_void_p],
    "clutch_attention_paged_cache_options": [c_void_p, POINTER(PagedCacheOptions)],
    "clutch_attention_paged_cache_capacity": [c_void_p, c_int64, c_void_p],
    "clutch_attention_paged_cache_free_pages": [c_void_p, c_void_p],
    "clutch_attention_paged_cache_reserve": [c_void_p, c_int64, c_int64, c_void_p],
    "clutch_attention_paged_cache_erase": [c_void_p, c_int64, c_void_p],
    "clutch_attention_paged_cache_assign": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_attention_paged_cache_varlen": [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(Varlen)],
    "clutch_attention_paged_cache_physical": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_attention_paged_cache_physical_mask": [c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_attention_paged_cache_physical_score": [c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_optim_sgd_create": [c_void_p, c_size_t, POINTER(SGDOptions), c_void_p, c_void_p],
    "clutch_optim_adam_create": [c_void_p, c_size_t, POINTER(AdamOptions), c_void_p, c_void_p],
    "clutch_optim_adamw_create": [c_void_p, c_size_t, POINTER(AdamWOptions), c_void_p, c_void_p],
    "clutch_optim_adagrad_create": [c_void_p, c_size_t, POINTER(AdagradOptions), c_void_p, c_void_p],
    "clutch_optim_rmsprop_create": [c_void_p, c_size_t, POINTER(RMSpropOptions), c_void_p, c_void_p],
    "clutch_optim_sgd_add_param_group": [c_void_p, c_void_p, c_size_t, POINTER(SGDOptions), c_void_p],
    "clutch_optim_adam_add_param_group": [c_void_p, c_void_p, c_size_t, POINTER(AdamOptions), c_void_p],
    "clutch_optim_adamw_add_param_group": [c_void_p, c_void_p, c_size_t, POINTER(AdamWOptions), c_void_p],
    "clutch_optim_adagrad_add_param_group": [c_void_p, c_void_p, c_size_t, POINTER(AdagradOptions), c_void_p],
    "clutch_optim_rmsprop_add_param_group": [c_void_p, c_void_p, c_size_t, POINTER(RMSpropOptions), c_void_p],
    "clutch_optim_sgd_step": [c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_adam_step": [c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_adamw_step": [c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_adagrad_step": [c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_rmsprop_step": [c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_sgd_groups": [c_void_p, c_void_p],
    "clutch_optim_adam_groups": [c_void_p, c_void_p],
    "clutch_optim_adamw_groups": [c_void_p, c_void_p],
    "clutch_optim_adagrad_groups": [c_void_p, c_void_p],
    "clutch_optim_rmsprop_groups": [c_void_p, c_void_p],
    "clutch_optim_sgd_lr": [c_void_p, c_uint64, c_void_p],
    "clutch_optim_adam_lr": [c_void_p, c_uint64, c_void_p],
    "clutch_optim_adamw_lr": [c_void_p, c_uint64, c_void_p],
    "clutch_optim_adagrad_lr": [c_void_p, c_uint64, c_void_p],
    "clutch_optim_rmsprop_lr": [c_void_p, c_uint64, c_void_p],
    "clutch_optim_sgd_set_lr": [c_void_p, c_double, c_uint64],
    "clutch_optim_adam_set_lr": [c_void_p, c_double, c_uint64],
    "clutch_optim_adamw_set_lr": [c_void_p, c_double, c_uint64],
    "clutch_optim_adagrad_set_lr": [c_void_p, c_double, c_uint64],
    "clutch_optim_rmsprop_set_lr": [c_void_p, c_double, c_uint64],
    "clutch_optim_sgd_params": [c_void_p, c_uint64, c_void_p, c_size_t, c_void_p],
    "clutch_optim_adam_params": [c_void_p, c_uint64, c_void_p, c_size_t, c_void_p],
    "clutch_optim_adamw_params": [c_void_p, c_uint64, c_void_p, c_size_t, c_void_p],
    "clutch_optim_adagrad_params": [c_void_p, c_uint64, c_void_p, c_size_t, c_void_p],
    "clutch_optim_rmsprop_params": [c_void_p, c_uint64, c_void_p, c_size_t, c_void_p],
    "clutch_optim_sgd_save": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_adam_save": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_adamw_save": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_adagrad_save": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_rmsprop_save": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_sgd_load": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_adam_load": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_adamw_load": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_adagrad_load": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_rmsprop_load": [c_void_p, c_char_p, c_void_p],
    "clutch_optim_sgd_state": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_adam_state": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_adamw_state": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_adagrad_state": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_rmsprop_state": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_sgd_load_state": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_adam_load_state": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_adamw_load_state": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_adagrad_load_state": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_rmsprop_load_state": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_lr_scheduler_create_sgd": [c_void_p, POINTER(LRSchedulerOptions), c_void_p, c_void_p],
    "clutch_optim_lr_scheduler_create_adam": [c_void_p, POINTER(LRSchedulerOptions), c_void_p, c_void_p],
    "clutch_optim_lr_scheduler_create_adamw": [c_void_p, POINTER(LRSchedulerOptions), c_void_p, c_void_p],
    "clutch_optim_lr_scheduler_create_adagrad": [c_void_p, POINTER(LRSchedulerOptions), c_void_p, c_void_p],
    "clutch_optim_lr_scheduler_create_rmsprop": [c_void_p, POINTER(LRSchedulerOptions), c_void_p, c_void_p],
    "clutch_optim_lr_scheduler_create": [c_void_p, c_size_t, POINTER(LRSchedulerOptions), c_void_p, c_void_p, c_void_p],
    "clutch_optim_lr_scheduler_lr": [c_void_p, c_void_p],
    "clutch_optim_lr_scheduler_step": [c_void_p, c_void_p],
    "clutch_optim_lr_scheduler_state": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_lr_scheduler_load_state": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_grad_scaler_create": [POINTER(GradScalerOptions), c_void_p, c_void_p, c_void_p],
    "clutch_optim_grad_scaler_scale": [c_void_p, c_void_p, c_void_p, c_void_p],
    "clutch_optim_grad_scaler_unscale_sgd": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_grad_scaler_unscale_adam": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_grad_scaler_unscale_adamw": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_grad_scaler_unscale_adagrad": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_grad_scaler_unscale_rmsprop": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_grad_scaler_step_sgd": [c_void_p, c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_grad_scaler_step_adam": [c_void_p, c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_grad_scaler_step_adamw": [c_void_p, c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_grad_scaler_step_adagrad": [c_void_p, c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_grad_scaler_step_rmsprop": [c_void_p, c_void_p, c_void_p, c_size_t, POINTER(StepOptions), c_void_p, c_void_p],
    "clutch_optim_grad_scaler_update": [c_void_p, c_void_p],
    "clutch_optim_grad_scaler_update_scale": [c_void_p, c_double, c_void_p],
    "clutch_optim_grad_scaler_scale_tensor": [c_void_p, c_void_p],
    "clutch_optim_grad_scaler_get_scale": [c_void_p, c_void_p, c_void_p],
    "clutch_optim_grad_scaler_enabled": [c_void_p, c_void_p],
    "clutch_optim_grad_scaler_state": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_grad_scaler_load_state": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_optim_grad_norm_out": [POINTER(GradNorm), c_void_p, c_size_t, c_double, POINTER(ClipOptions), c_void_p],
    "clutch_optim_grad_norms_out": [c_void_p, c_void_p, c_size_t, POINTER(ClipOptions), c_void_p],
    "clutch_optim_clip_grad_norm_": [c_void_p, c_size_t, c_double, POINTER(ClipOptions), c_void_p, c_void_p],
    "clutch_optim_schedule_": [c_void_p, c_void_p, c_void_p, c_int64, POINTER(LRSchedulerOptions), c_void_p],
    "clutch_optim_check_and_unscale_": [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p],
    "clutch_optim_update_scale_": [c_void_p, c_void_p, c_void_p, POINTER(GradScalerOptions), c_void_p],
    "clutch_optim_sgd_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, POINTER(SGDOptions), POINTER(StepOptions), c_void_p],
    "clutch_optim_sgd_steps_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(SGDOptions), POINTER(StepOptions), c_void_p],
    "clutch_optim_adam_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, POINTER(AdamOptions), POINTER(StepOptions), c_void_p],
    "clutch_optim_adam_steps_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(AdamOptions), POINTER(StepOptions), c_void_p],
    "clutch_optim_adamw_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, POINTER(AdamWOptions), POINTER(StepOptions), c_void_p],
    "clutch_optim_adamw_steps_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(AdamWOptions), POINTER(StepOptions), c_void_p],
    "clutch_optim_adagrad_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, POINTER(AdagradOptions), POINTER(StepOptions), c_void_p],
    "clutch_optim_adagrad_steps_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(AdagradOptions), POINTER(StepOptions), c_void_p],
    "clutch_optim_rmsprop_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, POINTER(RMSpropOptions), POINTER(StepOptions), c_void_p],
    "clutch_optim_rmsprop_steps_": [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(RMSpropOptions), POINTER(StepOptions), c_void_p],
    "clutch_graph_create": [POINTER(GraphOptions), c_void_p],
    "clutch_graph_capture_begin": [c_void_p, c_void_p, POINTER(CaptureOptions)],
    "clutch_graph_capture_end": [c_void_p],
    "clutch_graph_capture_abandon": [c_void_p],
    "clutch_graph_is_capturing": [c_void_p, c_void_p],
    "clutch_graph_instantiate": [c_void_p],
    "clutch_graph_replay": [c_void_p, c_void_p],
    "clutch_graph_replay_with": [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p],
    "clutch_graph_rebind": [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t],
    "clutch_graph_reset": [c_void_p],
    "clutch_graph_pool": [c_void_p, POINTER(PoolId)],
    "clutch_graph_find": [c_void_p, c_char_p, c_void_p, c_size_t, c_void_p],
    "clutch_graph_to_string": [c_void_p, c_int64, c_void_p, c_size_t, c_void_p],
    "clutch_graph_debug_dump": [c_void_p, c_char_p, c_int64],
    "clutch_graph_measure": [c_void_p, c_int64, c_void_p],
    "clutch_graph_update_number": [c_void_p, c_int64, c_char_p, c_double],
    "clutch_graph_update_integer": [c_void_p, c_int64, c_char_p, c_int64],
    "clutch_graph_update_tensor": [c_void_p, c_int64, c_char_p, c_void_p],
    "clutch_graph_save": [c_void_p, c_char_p, c_void_p, c_size_t, c_void_p, c_size_t, POINTER(GraphSaveOptions)],
    "clutch_graph_load": [c_char_p, c_void_p, POINTER(GraphOptions), c_void_p],
    "clutch_graph_tensor": [c_void_p, c_char_p, c_void_p],
    "clutch_graph_tensor_names": [c_void_p, c_void_p, c_size_t, c_void_p],
    "clutch_graph_annotation_create": [c_char_p, c_void_p],
    "clutch_graph_backends": [c_void_p, c_size_t, c_void_p],
    "clutch_graph_program_device": [c_void_p, c_void_p],
    "clutch_graph_program_size": [c_void_p, c_void_p],
    "clutch_graph_program_kind": [c_void_p, c_int64, c_void_p],
    "clutch_graph_program_enqueue": [c_void_p, c_int64, c_void_p],
    "clutch_launch": [POINTER(KernelSource), POINTER(Geometry), c_void_p, c_size_t, c_void_p],
    "clutch_profiler_create": [POINTER(ProfilerOptions), c_void_p],
    "clutch_profiler_start": [c_void_p],
    "clutch_profiler_stop": [c_void_p],
    "clutch_profiler_step": [c_void_p],
    "clutch_profiler_step_num": [c_void_p, c_void_p],
    "clutch_profiler_add_metadata": [c_void_p, c_char_p, c_char_p],
    "clutch_profiler_add_metadata_json": [c_void_p, c_char_p, c_char_p],
    "clutch_profiler_table": [c_void_p, POINTER(TableOptions), c_void_p, c_size_t, c_void_p],
    "clutch_profiler_totals": [c_void_p, POINTER(ProfileTotals)],
    "clutch_profiler_export_chrome_trace": [c_void_p, c_char_p, POINTER(TraceOptions)],
    "clutch_profiler_export_html": [c_void_p, c_char_p],
    "clutch_profiler_export_kernel_annotations": [c_void_p, c_char_p],
    "clutch_profiler_range_create": [c_char_p, c_void_p],
    "clutch_profiler_range_end": [c_void_p],
}
# Those whose last parameter is the place of a result.
RESULTS = {"clutch_device_count", "clutch_device_at", "clutch_select_devices", "clutch_device_create", "clutch_default_device", "clutch_current_device", "clutch_device_index", "clutch_device_type", "clutch_device_name", "clutch_device_vendor", "clutch_device_platform", "clutch_device_driver_version", "clutch_device_extensions", "clutch_device_uuid", "clutch_device_selector", "clutch_device_quirks", "clutch_device_traits", "clutch_device_supports", "clutch_stream_create", "clutch_default_stream", "clutch_current_stream", "clutch_stream_device", "clutch_stream_id", "clutch_stream_priority", "clutch_stream_partition", "clutch_stream_query", "clutch_stream_is_capturing", "clutch_event_create", "clutch_event_query", "clutch_elapsed_ms", "clutch_partition_create", "clutch_partition_split", "clutch_partition_device", "clutch_partition_units", "clutch_partition_first_unit", "clutch_partition_isolation", "clutch_partition_workqueue_limit", "clutch_partition_traits", "clutch_partition_stream", "clutch_partition_make_stream", "clutch_free_units", "clutch_partition_guard_create", "clutch_empty", "clutch_zeros", "clutch_full", "clutch_arange", "clutch_from_bytes", "clutch_tensor_dtype", "clutch_tensor_device", "clutch_tensor_rank", "clutch_tensor_sizes", "clutch_tensor_strides", "clutch_tensor_size", "clutch_tensor_stride", "clutch_tensor_numel", "clutch_tensor_nbytes", "clutch_tensor_byte_offset", "clutch_tensor_is_contiguous", "clutch_tensor_shares_storage", "clutch_tensor_slice", "clutch_tensor_select", "clutch_tensor_transpose", "clutch_tensor_mt", "clutch_tensor_reshape", "clutch_tensor_expand", "clutch_tensor_unsqueeze", "clutch_tensor_squeeze", "clutch_tensor_as_strided", "clutch_tensor_contiguous", "clutch_tensor_clone", "clutch_tensor_to", "clutch_tensor_to_device", "clutch_tensor_item", "clutch_tensor_to_string", "clutch_tensor_share", "clutch_promote_types", "clutch_dtype_from_name", "clutch_result_type", "clutch_storage_handle_create", "clutch_storage_handle_create_bytes", "clutch_storage_handle_bytes", "clutch_storage_handle_device", "clutch_storage_handle_has_memory", "clutch_storage_handle_view", "clutch_host_mapping_create", "clutch_host_mapping_bytes", "clutch_interop_to_dlpack", "clutch_interop_to_dlpack_versioned", "clutch_interop_from_dlpack", "clutch_interop_from_dlpack_versioned", "clutch_interop_wrap_queue", "clutch_interop_wrap_buffer", "clutch_interop_wrap_event", "clutch_interop_mem", "clutch_interop_offset", "clutch_interop_queue", "clutch_interop_context", "clutch_interop_event", "clutch_interop_device_id", "clutch_interop_platform_id", "clutch_memory_stat", "clutch_memory_stat_keys", "clutch_memory_stat_of_pool", "clutch_memory_allocated", "clutch_max_memory_allocated", "clutch_memory_reserved", "clutch_max_memory_reserved", "clutch_get_memory_info", "clutch_get_per_process_memory_fraction", "clutch_memory_address", "clutch_new_pool_id", "clutch_mem_pool_create", "clutch_mem_pool_id", "clutch_pool_guard_create", "clutch_memory_label_guard_create", "clutch_version", "clutch_build_info", "clutch_cache_directory", "clutch_cache_usage", "clutch_clear_cache", "clutch_build_counters", "clutch_enqueued_cost", "clutch_fallback_count", "clutch_last_plan", "clutch_load_npy", "clutch_read_npy", "clutch_safetensors_open", "clutch_safetensors_names", "clutch_safetensors_load", "clutch_tune_file", "clutch_expr_function_parse", "clutch_expr_function_text", "clutch_expr_function_input_count", "clutch_expr_function_output_count", "clutch_expr_function_param_count", "clutch_expr_function_captured_count", "clutch_expr_function_floating_inputs", "clutch_expr_function_input_dtype", "clutch_expr_function_output_dtype", "clutch_expr_function_param_value", "clutch_expr_function_captured_tensor", "clutch_expr_function_with_params", "clutch_expr_function_with_captured", "clutch_expr_function_backward", "clutch_map_dtype", "clutch_add_number", "clutch_sub_number", "clutch_mul_number", "clutch_div_number", "clutch_floor_divide_number", "clutch_trunc_divide_number", "clutch_remainder_number", "clutch_fmod_number", "clutch_pow_number", "clutch_minimum_number", "clutch_maximum_number", "clutch_eq_number", "clutch_ne_number", "clutch_lt_number", "clutch_le_number", "clutch_gt_number", "clutch_ge_number", "clutch_bitwise_and_number", "clutch_bitwise_or_number", "clutch_bitwise_xor_number", "clutch_logical_and_number", "clutch_logical_or_number", "clutch_logical_xor_number", "clutch_real", "clutch_imag", "clutch_view_as_real", "clutch_view_as_complex", "clutch_split", "clutch_split_sizes", "clutch_generator_create", "clutch_default_generator", "clutch_generator_device", "clutch_generator_state", "clutch_generator_state_tensor", "clutch_randperm", "clutch_rand", "clutch_randn", "clutch_row_function_create", "clutch_row_function_parse", "clutch_row_function_text", "clutch_row_function_input_count", "clutch_row_function_element_count", "clutch_row_function_result_count", "clutch_row_function_param_count", "clutch_row_function_param_value", "clutch_row_function_with_params", "clutch_unique", "clutch_unique_consecutive", "clutch_nonzero", "clutch_masked_select", "clutch_linalg_packed_matrix_create", "clutch_linalg_packed_matrix_sizes", "clutch_linalg_packed_matrix_dtype", "clutch_linalg_packed_matrix_nbytes", "clutch_linalg_product_dtype", "clutch_sparse_semi_structured_create", "clutch_sparse_compress", "clutch_sparse_semi_structured_sizes", "clutch_sparse_semi_structured_dtype", "clutch_sparse_semi_structured_nbytes", "clutch_sparse_semi_structured_values", "clutch_sparse_semi_structured_metadata", "clutch_sparse_semi_structured_info", "clutch_sparse_from_cutlass", "clutch_attention_mask_mod_create", "clutch_attention_causal", "clutch_attention_sliding_window", "clutch_attention_prefix_lm", "clutch_attention_prefix_lm_number", "clutch_attention_document", "clutch_attention_dilated", "clutch_attention_causal_lower_right", "clutch_attention_mask_mod_and", "clutch_attention_mask_mod_or", "clutch_attention_mask_mod_not", "clutch_attention_mask_mod_function", "clutch_attention_score_mod_create", "clutch_attention_alibi", "clutch_attention_alibi_slopes", "clutch_attention_softcap", "clutch_attention_relative_bias", "clutch_attention_relative_bias_table", "clutch_attention_create_block_mask", "clutch_attention_block_mask_from_lists", "clutch_attention_block_mask_q_len", "clutch_attention_block_mask_kv_len", "clutch_attention_block_mask_block", "clutch_attention_block_mask_mask_mod", "clutch_attention_block_mask_kv_num_blocks", "clutch_attention_block_mask_kv_indices", "clutch_attention_block_mask_full_kv_num_blocks", "clutch_attention_block_mask_full_kv_indices", "clutch_attention_block_mask_q_num_blocks", "clutch_attention_block_mask_q_indices", "clutch_attention_block_mask_full_q_num_blocks", "clutch_attention_block_mask_full_q_indices", "clutch_attention_block_mask_kinds", "clutch_attention_block_mask_to_dense", "clutch_attention_block_mask_slice", "clutch_attention_block_mask_adjust", "clutch_attention_block_mask_sparsity", "clutch_attention_block_mask_to_string", "clutch_attention_sdpa_backends_create", "clutch_attention_paged_cache_create", "clutch_attention_paged_cache_keys", "clutch_attention_paged_cache_values", "clutch_attention_paged_cache_page_table", "clutch_attention_paged_cache_physical_to_logical", "clutch_attention_paged_cache_options", "clutch_attention_paged_cache_capacity", "clutch_attention_paged_cache_free_pages", "clutch_attention_paged_cache_varlen", "clutch_attention_paged_cache_physical", "clutch_attention_paged_cache_physical_mask", "clutch_attention_paged_cache_physical_score", "clutch_optim_sgd_create", "clutch_optim_adam_create", "clutch_optim_adamw_create", "clutch_optim_adagrad_create", "clutch_optim_rmsprop_create", "clutch_optim_sgd_step", "clutch_optim_adam_step", "clutch_optim_adamw_step", "clutch_optim_adagrad_step", "clutch_optim_rmsprop_step", "clutch_optim_sgd_groups", "clutch_optim_adam_groups", "clutch_optim_adamw_groups", "clutch_optim_adagrad_groups", "clutch_optim_rmsprop_groups", "clutch_optim_sgd_lr", "clutch_optim_adam_lr", "clutch_optim_adamw_lr", "clutch_optim_adagrad_lr", "clutch_optim_rmsprop_lr", "clutch_optim_sgd_params", "clutch_optim_adam_params", "clutch_optim_adamw_params", "clutch_optim_adagrad_params", "clutch_optim_rmsprop_params", "clutch_optim_sgd_state", "clutch_optim_adam_state", "clutch_optim_adamw_state", "clutch_optim_adagrad_state", "clutch_optim_rmsprop_state", "clutch_optim_lr_scheduler_create_sgd", "clutch_optim_lr_scheduler_create_adam", "clutch_optim_lr_scheduler_create_adamw", "clutch_optim_lr_scheduler_create_adagrad", "clutch_optim_lr_scheduler_create_rmsprop", "clutch_optim_lr_scheduler_create", "clutch_optim_lr_scheduler_lr", "clutch_optim_lr_scheduler_state", "clutch_optim_grad_scaler_create", "clutch_optim_grad_scaler_scale", "clutch_optim_grad_scaler_step_sgd", "clutch_optim_grad_scaler_step_adam", "clutch_optim_grad_scaler_step_adamw", "clutch_optim_grad_scaler_step_adagrad", "clutch_optim_grad_scaler_step_rmsprop", "clutch_optim_grad_scaler_scale_tensor", "clutch_optim_grad_scaler_get_scale", "clutch_optim_grad_scaler_enabled", "clutch_optim_grad_scaler_state", "clutch_optim_clip_grad_norm_", "clutch_graph_create", "clutch_graph_is_capturing", "clutch_graph_pool", "clutch_graph_find", "clutch_graph_to_string", "clutch_graph_load", "clutch_graph_tensor", "clutch_graph_tensor_names", "clutch_graph_annotation_create", "clutch_graph_backends", "clutch_graph_program_device", "clutch_graph_program_size", "clutch_graph_program_kind", "clutch_profiler_create", "clutch_profiler_step_num", "clutch_profiler_table", "clutch_profiler_totals", "clutch_profiler_range_create"}
HANDLES = ["device", "stream", "event", "tensor", "storage_handle", "generator", "partition", "partition_guard", "mem_pool", "pool_guard", "memory_label_guard", "host_mapping", "safetensors", "expr_function", "row_function", "linalg_packed_matrix", "sparse_semi_structured", "attention_mask_mod", "attention_score_mod", "attention_block_mask", "attention_paged_cache", "attention_sdpa_backends", "optim_sgd", "optim_adam", "optim_adamw", "optim_adagrad", "optim_rmsprop", "optim_grad_scaler", "optim_lr_scheduler", "graph", "graph_annotation", "profiler", "profiler_range", "graph_program"]


def load(path):
    library = ctypes.CDLL(path)
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, c_int32
    for name in HANDLES:
        function = getattr(library, "clutch_%s_release" % name)
        function.argtypes, function.restype = [c_void_p], None
    for name, result in (("abi_version", c_int64), ("error_message", c_char_p), ("error_op", c_char_p), ("error_cl_code", c_int32)):
        function = getattr(library, "clutch_" + name)
        function.argtypes, function.restype = [], result
    library.clutch_status_name.argtypes, library.clutch_status_name.restype = [c_int32], c_char_p
    return library
