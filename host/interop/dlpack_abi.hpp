// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C ABI of DLPack 0.8 and 1.x, written from its specification (dmlc.github.io/dlpack).
#include <cstdint>

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null: contiguous
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

namespace clutch { inline namespace v0 { namespace detail {

inline constexpr std::int32_t kDlCpu = 1, kDlOpenCl = 4;
inline constexpr std::uint64_t kDlCopied = 2, kDlPadded = 4;

}}}  // namespace clutch::v0::detail
