// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

struct Meaning;

/// A tensor that a command uses.
struct Operand {
  Tensor tensor;
  Argument::Kind access;
};

/// An argument of a kernel by position. A tensor takes two: memory and offset.
struct BoundArgument {
  enum class Kind : std::uint8_t { memory, offset, bytes, local };
  Kind kind = Kind::bytes;
  std::uint16_t size = 0;
  std::uint16_t at = 0;     ///< index of the argument's first byte in Launch::bytes
  int use = -1;             ///< index of the operand that a memory or offset argument belongs to; -1: none
  std::uint32_t local = 0;  ///< bytes of local memory
  const char* type = "";    ///< OpenCL C name of a number's type, empty for structs
  const char* name = "";    ///< name given by the op; empty: named by kind and order
};

/// Operands that a kernel reads through a TensorTable.
struct LaunchTable {
  int first_base = -1;       ///< index of the first of TensorTable::kBases memory arguments, which the table's argument follows; -1: no table
  std::vector<int> entries;  ///< indices of operands; -1: none
};

/// List of up to N numbers, or structs of numbers, without heap memory. A copy moves only the elements in use.
template <class T, std::size_t N>
class InPlace {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  std::size_t size() const noexcept { return size_; }
  bool fits(std::size_t more) const noexcept { return more <= N - size_; }
  T& push_back(const T& value) noexcept { return *new (memory_ + sizeof(T) * size_++) T(value); }
  T* data() noexcept { return std::launder(reinterpret_cast<T*>(memory_)); }
  const T* data() const noexcept { return std::launder(reinterpret_cast<const T*>(memory_)); }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  void clear() noexcept { size_ = 0; }

 private:
  std::size_t size_ = 0;
  alignas(T) unsigned char memory_[sizeof(T) * N];
};

/// All data of one kernel launch, as a value. An Encoder fills a Launch and passes it to the stream's Recorder.
struct Launch {
  static constexpr std::size_t kMaxArguments = 64;
  static constexpr std::size_t kMaxBytes = 1024;

  const char* op = "";  ///< name that lives as long as the process
  KernelHandle kernel;  ///< holds the text of its plan
  Geometry geometry;
  std::vector<Operand> operands;  ///< in a recording alone, which keeps these tensors alive
  InPlace<BoundArgument, kMaxArguments> arguments;
  LaunchTable table;
  std::shared_ptr<const Meaning> meaning;  ///< what it computes; null if the op does not say
  std::vector<Tensor> kept;                ///< memory that the launch alone uses, until the recorder has taken it
  Cost cost;                               ///< bytes of the tensors bound so far, unless moves() stated them
  bool states_bytes = false;
  double bytes64 = 0, other_bytes = 0;  ///< of tensors bound so far: of f64 and c128, and of other dtypes
  /// The cost of what was bound, with the kind of its flops.
  Cost whole_cost() const noexcept { return {cost.flops, cost.bytes, bytes64 > other_bytes ? cost.flops : 0}; }

  std::span<const unsigned char> bytes() const noexcept { return {bytes_, used_}; }  ///< of the arguments
  /// Binds bytes as the next argument. Errors: invalid_argument past kMaxArguments or kMaxBytes, or if `size` is 0.
  void bind(const void* data, std::size_t size, const char* type, const char* name) {
    const std::size_t begin = (used_ + 7) / 8 * 8;
    if (!data || size == 0 || !type || !name || !arguments.fits(1) || size > kMaxBytes || begin + size > kMaxBytes) [[unlikely]]
      refuse(data, size, type, name);
    std::memcpy(bytes_ + begin, data, size);
    arguments.push_back({.size = static_cast<std::uint16_t>(size), .at = static_cast<std::uint16_t>(begin), .type = type, .name = name});
    used_ = begin + size;
  }
  /// Errors: invalid_argument if `more` arguments would exceed kMaxArguments.
  void check_fits(std::size_t more) const {
    if (!arguments.fits(more)) [[unlikely]]
      refuse_more();
  }
  /// Binds the arguments and operands of another launch behind these. Errors: invalid_argument past kMaxArguments or kMaxBytes.
  void append(const Launch& other);
  void clear_cost() noexcept { cost = {}, states_bytes = false, bytes64 = other_bytes = 0; }
  /// Removes operands and arguments.
  void clear() noexcept;

  // Each call of an op makes an Encoder with a Launch, so each thread reuses the memory of its last launches.
  static void* operator new(std::size_t size);
  static void operator delete(void* memory) noexcept;

 private:
  [[noreturn]] void refuse_more() const;
  [[noreturn]] void refuse(const void* data, std::size_t size, const char* type, const char* name) const;

  std::size_t used_ = 0;
  alignas(16) unsigned char bytes_[kMaxBytes];
};

}}}  // namespace clutch::v0::detail
