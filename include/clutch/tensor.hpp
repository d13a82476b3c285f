// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/dtype.hpp>
#include <clutch/error.hpp>
#include <clutch/stream.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 {

namespace detail {
class Storage;
}

/// The most dimensions a tensor may have.
inline constexpr int kMaxRank = 12;

/// Sizes or strides of up to kMaxRank dimensions, held inline.
class CLUTCH_API Dims {
 public:
  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<std::int64_t> values) { assign(values.begin(), values.size()); }
  constexpr explicit Dims(std::span<const std::int64_t> values) { assign(values.data(), values.size()); }
  static constexpr Dims filled(int rank, std::int64_t value) {
    if (rank < 0) no_dimension(rank, 0);
    Dims result;
    for (int i = 0; i < rank; ++i) result.push_back(value);
    return result;
  }

  constexpr int rank() const noexcept { return rank_; }
  constexpr bool empty() const noexcept { return rank_ == 0; }
  constexpr std::int64_t operator[](int i) const noexcept { return values_[static_cast<std::size_t>(i)]; }
  constexpr std::int64_t& operator[](int i) noexcept { return values_[static_cast<std::size_t>(i)]; }
  constexpr const std::int64_t* begin() const noexcept { return values_.data(); }
  constexpr const std::int64_t* end() const noexcept { return values_.data() + rank_; }
  constexpr void push_back(std::int64_t value) {
    if (rank_ == kMaxRank) too_many();
    values_[static_cast<std::size_t>(rank_++)] = value;
  }
  /// Errors: invalid_argument without such a dimension.
  constexpr void erase(int i) {
    if (i < 0 || i >= rank_) no_dimension(i, rank_);
    for (int k = i; k + 1 < rank_; ++k) (*this)[k] = (*this)[k + 1];
    values_[static_cast<std::size_t>(--rank_)] = 0;
  }
  friend constexpr bool operator==(const Dims& a, const Dims& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a[i] != b[i]) return false;
    return true;
  }

 private:
  constexpr void assign(const std::int64_t* values, std::size_t count) {
    if (count > static_cast<std::size_t>(kMaxRank)) too_many();
    for (std::size_t i = 0; i < count; ++i) values_[i] = values[i];
    rank_ = static_cast<int>(count);
  }
  [[noreturn]] static void too_many();
  [[noreturn]] static void no_dimension(int i, int rank);
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> values_{};
};

/// "(2, 3)"
CLUTCH_API std::string to_string(const Dims& dims);
CLUTCH_API std::ostream& operator<<(std::ostream& out, const Dims& dims);
/// The most elements a tensor may have, beyond any device's memory. Strides and offsets have the same limit, so that no
/// count of bytes wraps around.
inline constexpr std::int64_t kMaxNumel = std::int64_t{1} << 50;
/// Product of the sizes; 1 for rank 0.
/// Errors: invalid_shape on a negative size, or if the sizes other than 0 multiply to more than kMaxNumel.
CLUTCH_API std::int64_t numel(const Dims& sizes);
/// The shape that the shapes broadcast to, by PyTorch's rule. Errors: invalid_shape, naming `op`.
CLUTCH_API Dims broadcast_shapes(std::span<const Dims> shapes, std::string_view op = "broadcast_shapes");

struct TensorOptions {
  DType dtype = DType::f32;
  Device device = {};  ///< empty: the current device
};

struct CastOptions {
  Overflow overflow = Overflow::nonfinite;  ///< for f8e4m3fn and f8e5m2
};

/// A strided view of shared storage on one device. A cheap value; strides are in elements, may be 0 and are never
/// negative.
class CLUTCH_API Tensor {
 public:
  Tensor() = default;

  bool defined() const noexcept { return storage_ != nullptr; }
  DType dtype() const noexcept { return dtype_; }
  /// Errors: invalid_argument on an undefined tensor.
  Device device() const;
  int rank() const noexcept { return sizes_.rank(); }
  const Dims& sizes() const noexcept { return sizes_; }
  const Dims& strides() const noexcept { return strides_; }
  /// Negative `dim` counts from the end. Errors: invalid_argument.
  std::int64_t size(int dim) const;
  std::int64_t stride(int dim) const;
  std::int64_t numel() const noexcept { return numel_; }
  /// Bytes of numel() elements, packed types rounded up.
  std::uint64_t nbytes() const noexcept { return bytes_for(dtype_, static_cast<std::uint64_t>(numel_)); }
  /// Bytes from the begin of the storage to element 0.
  std::uint64_t byte_offset() const noexcept { return offset_; }
  bool is_contiguous() const noexcept { return contiguous_; }
  /// True when both are views of one storage.
  bool shares_storage(const Tensor& other) const noexcept { return storage_ == other.storage_; }

  /// Views: no copy, no wait.
  /// Errors: invalid_argument or invalid_shape; invalid_argument where the view of a packed type would begin inside a
  ///   byte.
  Tensor slice(int dim, std::int64_t begin, std::int64_t end, std::int64_t step = 1) const;
  Tensor select(int dim, std::int64_t index) const;
  Tensor transpose(int dim0, int dim1) const;
  /// The last two dimensions swapped. Errors: invalid_shape below rank 2.
  Tensor mT() const;
  /// One size may be -1. A view where the strides allow it, else a copy on the current stream.
  Tensor reshape(const Dims& sizes) const;
  /// Broadcasts size-1 dimensions with stride 0; -1 keeps a size.
  Tensor expand(const Dims& sizes) const;
  Tensor unsqueeze(int dim) const;
  Tensor squeeze(int dim) const;
  /// Any view of the same storage. `offset` in elements from this tensor's element 0.
  /// Errors: invalid_shape past the storage or past kMaxNumel.
  Tensor as_strided(const Dims& sizes, const Dims& strides, std::int64_t offset = 0) const;

  /// This tensor if contiguous, else a contiguous copy.
  Tensor contiguous(const Stream& stream = {}) const;
  /// A contiguous copy with storage of its own.
  Tensor clone(const Stream& stream = {}) const;
  /// This tensor if it has that dtype, else a cast copy (clutch::cast).
  Tensor to(DType dtype, const CastOptions& options = {}, const Stream& stream = {}) const;
  /// This tensor if on that device, else a copy there. Waits: devices share no queue.
  Tensor to(const Device& device) const;

  /// Copies the elements, in row-major order, to host memory. Waits for the stream (empty: the current one).
  /// Errors: invalid_dtype if T is not the dtype's type; invalid_argument for packed types (use to_bytes).
  template <class T>
  std::vector<T> to_host(const Stream& stream = {}) const {
    check_host_type(dtype_of<T>, "Tensor::to_host");
    std::vector<T> result(static_cast<std::size_t>(numel_));
    read(result.data(), stream, "Tensor::to_host");
    return result;
  }
  /// As to_host, into the caller's memory.
  /// Errors: also invalid_argument unless it has numel() elements, or where it is null.
  template <class T>
  void read_into(std::span<T> destination, const Stream& stream = {}) const {
    check_host_type(dtype_of<T>, "Tensor::read_into");
    check_host_memory(destination.data(), destination.size());
    read(destination.data(), stream, "Tensor::read_into");
  }
  /// The stored bytes in row-major order. Waits.
  std::vector<std::uint8_t> to_bytes(const Stream& stream = {}) const;
  /// As to_bytes, into the caller's memory. Errors: invalid_argument unless it has nbytes() bytes, or where it is null.
  void read_bytes(std::span<std::byte> destination, const Stream& stream = {}) const;
  /// Copies bytes of row-major elements from host memory into the elements, in the stream's order.
  /// Shapes: nbytes() bytes; any strides, for packed types contiguous.
  /// Host memory: may be changed as soon as the call returns. Up to kPutAside bytes are put aside, and nothing waits;
  ///   more are copied once, and the call waits until the stream has read them.
  /// Capturable: the bytes of the capture are put aside, and each replay writes them.
  /// Scratch: a contiguous copy where the tensor is not contiguous.
  /// Errors: invalid_argument for another count of bytes, or null; invalid_overlap if elements share memory;
  ///   invalid_shape for packed types that are not contiguous.
  void write(std::span<const std::byte> bytes, const Stream& stream = {}) const;
  /// The same for any number of bytes without waiting, and without any copy but that to the device.
  /// Host memory: must stay as it is until the stream has run the call, which an Event behind it tells; `keep`, if
  ///   given, is released then. In a capture as write().
  void write_kept(std::span<const std::byte> bytes, std::shared_ptr<const void> keep, const Stream& stream = {}) const;
  /// Bytes up to which write() never waits.
  static constexpr std::uint64_t kPutAside = 64 << 10;
  /// The only element as double; real part of complex ones. Waits. Errors: invalid_shape unless numel() is 1.
  double item(const Stream& stream = {}) const;
  /// The tensor as text: "tensor([[1, 2], [3, 4]], f32)". Waits.
  std::string to_string(const Stream& stream = {}) const;

  const std::shared_ptr<detail::Storage>& storage() const noexcept { return storage_; }
  Tensor(std::shared_ptr<detail::Storage> storage, std::uint64_t offset, const Dims& sizes, const Dims& strides,
         DType dtype);

 private:
  void check_host_type(DType wanted, const char* op) const;
  void check_host_memory(const void* destination, std::size_t elements) const;
  void read(void* destination, const Stream& stream, const char* op) const;
  Stream checked_write(std::span<const std::byte> bytes, const Stream& stream, const char* op) const;
  void write_strided(std::span<const std::byte> bytes, const std::shared_ptr<const void>* keep, const Stream& stream,
                     const char* op) const;
  void put(std::span<const std::byte> bytes, const std::shared_ptr<const void>* keep, const Stream& stream,
           const char* op) const;

  std::shared_ptr<detail::Storage> storage_;
  std::uint64_t offset_ = 0;
  std::int64_t numel_ = 0;
  Dims sizes_;
  Dims strides_;
  DType dtype_ = DType::f32;
  bool contiguous_ = true;
};
// std::vector<bool> has no data(): read boolean tensors as uint8_t through to_bytes().
template <>
CLUTCH_API std::vector<bool> Tensor::to_host<bool>(const Stream& stream) const;

/// Prints the tensor; waits.
CLUTCH_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// Factories: contiguous tensors from the current stream's pool.
/// Errors: invalid_shape on negative sizes or sizes past the device's limit on one buffer (with wanted and had),
///   out_of_memory, no_device.
CLUTCH_API Tensor empty(const Dims& sizes, const TensorOptions& options = {}, const Stream& stream = {});
CLUTCH_API Tensor zeros(const Dims& sizes, const TensorOptions& options = {}, const Stream& stream = {});
/// Every element is `value`, cast by the rules of clutch::cast. Errors: also invalid_dtype for packed types.
CLUTCH_API Tensor full(const Dims& sizes, double value, const TensorOptions& options = {}, const Stream& stream = {});
/// ceil((end - start) / step) elements start + i * step: exact in i64 for integer dtypes (bounds are truncated), one
/// fma in f32 (f64 for f64) and one rounding for floating ones.
/// Errors: invalid_argument for a step of 0 or of the wrong sign, and for numbers that are not finite, in the type that
///   computes.
CLUTCH_API Tensor arange(double start, double end, double step = 1, const TensorOptions& options = {},
                         const Stream& stream = {});
/// Copies `bytes` of row-major elements to the device; `data` may be changed as soon as the call returns.
/// Errors: invalid_argument if `bytes` is not what sizes and dtype need, or where `data` is null and `bytes` is not 0.
CLUTCH_API Tensor from_bytes(const void* data, std::uint64_t bytes, const Dims& sizes,
                             const TensorOptions& options = {}, const Stream& stream = {});

/// Copies host values to a tensor of that shape.
template <class T>
Tensor from_host(std::span<const T> values, const Dims& sizes, const Device& device = {}, const Stream& stream = {}) {
  return from_bytes(values.data(), values.size_bytes(), sizes, {.dtype = dtype_of<T>, .device = device}, stream);
}
template <class T>
Tensor from_host(const std::vector<T>& values, const Dims& sizes, const Device& device = {},
                 const Stream& stream = {}) {
  return from_host(std::span<const T>(values), sizes, device, stream);
}
/// Copies host values to a tensor of rank 1.
template <class T>
Tensor from_host(std::initializer_list<T> values, const Device& device = {}, const Stream& stream = {}) {
  return from_host(std::span<const T>(values.begin(), values.size()), {static_cast<std::int64_t>(values.size())},
                   device, stream);
}

/// The dtype of a result of these tensors by PyTorch's rules: tensors of rank 0 count only by their kind.
CLUTCH_API DType result_type(std::span<const Tensor* const> tensors);

}}  // namespace clutch::v0
