// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of the C ABI whose C++ form C cannot have as it is: the `hand` rows of abi.def.
#include "capi/types.hpp"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace clutch { inline namespace v0 { namespace capi {

Tensor from_bytes(std::span<const std::byte> data, const Dims& sizes, const TensorOptions& options, const Stream& stream);
/// Another object for the same tensor.
inline Tensor tensor_share(const Tensor& tensor) { return tensor; }
DType result_type(const std::vector<Tensor>& tensors);

DLManagedTensor* interop_to_dlpack(const Tensor& tensor, interop::DlpackMemory memory, const Stream& stream);
DLManagedTensorVersioned* interop_to_dlpack_versioned(const Tensor& tensor, interop::DlpackMemory memory, const Stream& stream);
Tensor interop_from_dlpack(DLManagedTensor* managed, const Device& device, const Stream& stream);
Tensor interop_from_dlpack_versioned(DLManagedTensorVersioned* managed, const Device& device, const Stream& stream);
// OpenCL's handles as void*.
Stream interop_wrap_queue(void* queue);
Tensor interop_wrap_buffer(void* buffer, const Dims& sizes, DType dtype, const Device& device, std::uint64_t byte_offset);
Event interop_wrap_event(void* event);
void* interop_mem(const Tensor& tensor);
std::uint64_t interop_offset(const Tensor& tensor);
void* interop_queue(const Stream& stream);
void* interop_context(const Stream& stream);
void* interop_event(const Event& event);
void* interop_device_id(const Device& device);
void* interop_platform_id(const Device& device);
void interop_release(void* context);

std::uint64_t memory_stat(const char* key, const Device& device);
std::uint64_t memory_stat_of_pool(const PoolId& pool, const char* key, const Device& device);
std::vector<std::string> memory_stat_keys(const Device& device);
PoolGuard pool_guard_create(const PoolId& pool);
MemoryLabelGuard memory_label_guard_create(const char* label);

std::vector<std::string> safetensors_names(const Safetensors& file);
void save_safetensors(const char* path, const std::vector<std::string>& names, const std::vector<Tensor>& tensors, const Stream& stream);

/// Totals of a row: number k is ops[k] over values[k], a function of the inputs and of the totals before it. `elements` and `results`, which may be empty, are
/// functions of the inputs and of all totals.
RowFunction row_function_create(const std::vector<DType>& inputs, const std::vector<Reduce>& ops, const std::vector<ExprFunction>& values,
                                const ExprFunction& elements, const ExprFunction& results);

attention::SdpaBackends attention_sdpa_backends_create(const std::vector<attention::SdpaBackend>& order);

void graph_replay_with(Graph& graph, const std::vector<Tensor>& captured, const std::vector<Tensor>& bound, const Stream& stream);
void graph_rebind(Graph& graph, const std::vector<Tensor>& captured, const std::vector<Tensor>& bound);
/// The times are in graph_to_string()'s JSON afterwards.
void graph_measure(Graph& graph, int replays, const Stream& stream);
void graph_update_number(Graph& graph, int node, const char* name, double value);
void graph_update_integer(Graph& graph, int node, const char* name, std::int64_t value);
void graph_update_tensor(Graph& graph, int node, const char* name, const Tensor& tensor);
void graph_save(const Graph& graph, const char* path, const std::vector<std::string>& names, const std::vector<Tensor>& tensors,
                const GraphSaveOptions& options);
GraphAnnotation graph_annotation_create(const char* name);
void launch(const clutch_kernel_source_t* source, const Geometry& geometry, const clutch_argument_t* const* arguments, std::size_t count, const Stream& stream);

}}}  // namespace clutch::v0::capi
