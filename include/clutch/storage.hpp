// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <memory>

namespace clutch { inline namespace v0 {

/// The memory behind tensors, for those who keep sizes and strides themselves: a framework's own tensors, or an arena.
/// A cheap value: copies, and the tensors made of it, share the memory, which lives as long as one of them.
/// Stream order: as with tensors, the memory goes back to its stream's pool when the last one goes.
/// Captures: memory that a capture made has a handle, and no address until the capture ends.
class CLUTCH_API StorageHandle {
 public:
  StorageHandle() = default;
  /// The memory of a tensor, all of it. Errors: invalid_argument for an undefined tensor.
  explicit StorageHandle(const Tensor& tensor);
  /// New memory from the stream's pool, whose contents are undefined. Errors: as empty().
  explicit StorageHandle(std::uint64_t bytes, const Device& device = {}, const Stream& stream = {});

  bool defined() const noexcept { return storage_ != nullptr; }
  /// Bytes that views may reach; those that were asked for. Errors: invalid_argument if it is empty, as all below.
  std::uint64_t bytes() const;
  Device device() const;
  /// False for memory of a capture that has not ended, or failed: only that capture's calls may use it.
  bool has_memory() const;
  /// A tensor of any dtype, sizes and strides whose element 0 begins at a byte: Tensor::as_strided() without a tensor.
  /// Errors: invalid_shape past the end of the memory or past kMaxNumel; invalid_argument for a negative stride, or
  ///   where the byte is no multiple of the element's size.
  Tensor view(const Dims& sizes, const Dims& strides, DType dtype, std::uint64_t byte_offset = 0) const;
  /// A contiguous tensor.
  Tensor view(const Dims& sizes, DType dtype, std::uint64_t byte_offset = 0) const;

  friend bool operator==(const StorageHandle&, const StorageHandle&) = default;
  const std::shared_ptr<detail::Storage>& storage() const noexcept { return storage_; }

 private:
  detail::Storage& need(const char* op) const;

  std::shared_ptr<detail::Storage> storage_;
};

}}  // namespace clutch::v0
