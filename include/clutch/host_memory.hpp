// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that the host and a device both reach: tensors that are mapped for the host, and buffers that begin there.
#include <clutch/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace clutch { inline namespace v0 {

enum class MapAccess : std::uint8_t {
  read,
  write,  ///< what is not written is undefined
  read_write,
};

/// The elements of a contiguous tensor as host memory, until unmap() or the end of the object.
/// Copies: none on devices that compute in the host's memory, as CPU devices do; others copy when it is mapped and, if
///   it may be written, when it is unmapped.
/// While mapped: no work may write the elements, nor read them unless the access is `read`; other elements of the same
///   storage are as free as ever. The pointer is aligned as the tensor's first byte in the device's memory is.
/// Streams: the constructor waits for the stream's work so far; unmap() is in the stream's order and does not wait.
/// Errors: invalid_argument for an undefined tensor, one that is not contiguous or is mapped already; capturing while
///   the stream captures; the errors of OpenCL.
/// Threads: one at a time.
class CLUTCH_API HostMapping {
 public:
  HostMapping();
  explicit HostMapping(const Tensor& tensor, MapAccess access = MapAccess::read_write, const Stream& stream = {});
  /// Unmaps on the stream of the constructor; what fails then shows on the stream.
  ~HostMapping();
  HostMapping(HostMapping&&) noexcept;
  HostMapping& operator=(HostMapping&&) noexcept;

  bool mapped() const noexcept { return state_ != nullptr; }
  /// Errors: invalid_argument if it is not mapped.
  std::span<std::byte> bytes() const;
  /// Errors: also invalid_dtype if T is not the tensor's type.
  template <class T>
  std::span<T> as() const {
    check_type(dtype_of<T>);
    const std::span<std::byte> all = bytes();
    return {reinterpret_cast<T*>(all.data()), all.size() / sizeof(T)};
  }
  /// Gives the memory back to the device. Does nothing if it is not mapped. Errors: the errors of OpenCL.
  void unmap();

 private:
  struct State;
  void check_type(DType type) const;
  std::unique_ptr<State> state_;
};

/// Memory that drivers can copy to and from without a copy of their own (pinned memory), and that tensors can be made
/// of. It begins with the host.
/// With the host: bytes() is what Tensor::write_kept() and read_bytes() are fastest with; no work may use tensor()s.
/// With the device: tensor()s are as any others, in the host's memory on devices that compute there; bytes() is an
///   Error.
/// Accounting: the memory is no pool's and counts nowhere.
/// Errors: invalid_argument for 0 bytes; out_of_memory; no_device.
/// Threads: one at a time.
class CLUTCH_API HostBuffer {
 public:
  HostBuffer();
  explicit HostBuffer(std::uint64_t bytes, const Device& device = {}, const Stream& stream = {});
  ~HostBuffer();
  HostBuffer(HostBuffer&&) noexcept;
  HostBuffer& operator=(HostBuffer&&) noexcept;

  bool defined() const noexcept { return whole_.defined(); }
  std::uint64_t size() const noexcept { return whole_.nbytes(); }
  bool with_host() const noexcept { return mapping_.mapped(); }
  /// Errors: invalid_argument while it is with the device.
  std::span<std::byte> bytes() const;
  /// A contiguous tensor of the memory. It may outlive the HostBuffer, which then must be with the device.
  /// Errors: as StorageHandle::view().
  Tensor tensor(const Dims& sizes, DType dtype = DType::u8, std::uint64_t byte_offset = 0) const;
  /// Lends the memory to the device, in the order of the stream that the constructor or to_host() was given. Does not
  /// wait. Does nothing if it is there.
  void to_device();
  /// Takes it back: waits for the stream's work so far. Does nothing if it is there.
  void to_host(const Stream& stream = {});

 private:
  Tensor whole_;
  HostMapping mapping_;
};

}}  // namespace clutch::v0
