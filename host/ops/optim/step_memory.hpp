// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Bytes of a buffer that a tensor of a call spans, none if it is undefined or empty.
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
  std::uint32_t number = kNoNumber;  ///< of it among its like
};

/// Finds what a call over lists of tensors would write and use otherwise besides. What it writes each time is sorted once; gradients that lie where they
/// lay at the last call cost a comparison each, others a look beside the place of the one before, and a binary search if it is not there.
class StepMemory {
 public:
  /// What every call writes besides gradients. Errors: invalid_overlap if two of them share memory.
  void set_written(std::vector<MemoryRange> ranges, const char* op);
  /// Gradients of the next call: their count, then each by its place in the list. `number` stands in messages.
  void set_count(std::size_t gradients);
  void set_gradient(std::size_t i, const Tensor& gradient, std::size_t number);
  /// Errors: invalid_overlap if a gradient or what is read shares memory with what is written; where the call writes gradients they are among that.
  void check(bool writes_gradients, std::initializer_list<MemoryRange> reads, const char* op);

 private:
  std::vector<MemoryRange> written_, gradients_, sorted_gradients_;
  bool apart_ = false;   ///< gradients are, from what is written
  bool sorted_ = false;  ///< gradients are, and apart from each other
};

}}}  // namespace clutch::v0::detail
