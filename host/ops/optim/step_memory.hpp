// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Bytes of a buffer that a tensor of a call spans; empty for an undefined or empty tensor.
struct MemoryRange {
  static constexpr std::uint32_t kNoNumber = UINT32_MAX;
  MemoryRange() = default;
  MemoryRange(const Tensor& tensor, const char* name, std::size_t index = kNoNumber);
  bool empty() const { return begin == end; }
  bool same_bytes(const MemoryRange& other) const { return memory == other.memory && begin == other.begin && end == other.end; }
  std::string text() const;

  const void* memory = nullptr;
  std::uint64_t begin = 0, end = 0;
  const char* what = "";             ///< a literal
  std::uint32_t number = kNoNumber;  ///< index of the tensor in its list
};

/// Finds memory that a call over lists of tensors would both write and use otherwise. Memory that every call writes is sorted once. A gradient at the same
/// address as in the last call costs one comparison; another one costs a look next to the previous gradient's place, and a binary search if that fails.
class StepMemory {
 public:
  /// Sets what every call writes, except gradients. Errors: invalid_overlap if two ranges share memory.
  void set_written(std::vector<MemoryRange> ranges, const char* op);
  /// Sets the number of gradients of the next call, then each gradient by its index in the list. `number` is used in messages.
  void set_count(std::size_t gradients);
  void set_gradient(std::size_t i, const Tensor& gradient, std::size_t number);
  /// Errors: invalid_overlap if a gradient or a range of `reads` shares memory with what is written; if `writes_gradients`, gradients count as written.
  void check(bool writes_gradients, std::span<const MemoryRange> reads, const char* op);

 private:
  std::vector<MemoryRange> written_, gradients_, sorted_gradients_;
  bool apart_ = false;   ///< no gradient shares memory with what is written
  bool sorted_ = false;  ///< sorted_gradients_ is current, and no two gradients share memory
};

}}}  // namespace clutch::v0::detail
