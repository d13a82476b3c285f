// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors to and from other libraries by DLPack. Include <dlpack/dlpack.h> yourself to look inside: only its names are
// used here.
#include <clutch/tensor.hpp>

#include <cstdint>

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace clutch { inline namespace v0 { namespace interop {

enum class DlpackMemory : std::uint8_t {
  device,  ///< kDLOpenCL: data is the cl_mem, byte_offset the place of element 0; no copy
  host,    ///< kDLCPU: a contiguous copy in host memory
};

/// Hands a tensor out; the receiver calls its deleter, on any thread. Memory of the device stays alive until then.
/// device_id is the Device's index. Packed dtypes are handed out packed (no padding of sub-byte elements).
/// Waits for the stream (empty: the current one): the receiver knows no queue of ours.
/// Errors: invalid_argument for an undefined tensor; invalid_shape for packed dtypes that are not contiguous.
CLUTCH_API DLManagedTensor* to_dlpack(const Tensor& tensor, DlpackMemory memory = DlpackMemory::device,
                                      const Stream& stream = {});
/// The same in the layout of DLPack 1.0 and later, with its flags (a copy is flagged as one).
CLUTCH_API DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor,
                                                         DlpackMemory memory = DlpackMemory::device,
                                                         const Stream& stream = {});

/// Takes a tensor over. Memory of kDLOpenCL is used in place, as interop::wrap() of its buffer would be, and its
/// deleter is called once no work of ours uses it; the producer's work must be done. Memory of kDLCPU (any strides) is
/// copied to `device` (empty: the stream's, then the current one) and its deleter called before the call returns. When
/// it throws, the tensor is still the caller's.
/// Errors: invalid_argument for null; not_supported for other memory, for a version other than 1 and for padded
///   sub-byte elements; invalid_dtype for types that clutch has not; invalid_shape for more than 12 dimensions,
///   negative sizes, strides that are negative in memory of a device, or elements past the end of its buffer;
///   device_mismatch as interop::wrap().
CLUTCH_API Tensor from_dlpack(DLManagedTensor* managed, const Device& device = {}, const Stream& stream = {});
CLUTCH_API Tensor from_dlpack(DLManagedTensorVersioned* managed, const Device& device = {}, const Stream& stream = {});

}}}  // namespace clutch::v0::interop
