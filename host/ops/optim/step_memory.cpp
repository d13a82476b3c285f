// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/step_memory.hpp"

#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

bool before(const MemoryRange& x, const MemoryRange& y) { return x.memory != y.memory ? std::less<>()(x.memory, y.memory) : x.begin < y.begin; }

[[noreturn]] void refuse(const MemoryRange& x, const MemoryRange& y, const char* op) {
  throw Error(ErrorCode::invalid_overlap, op,
              fmt::format("tensors that the call writes must have memory of their own, got: {} shares memory with {}; clone() one", x.text(), y.text()));
}

/// Sorts ranges by begin, without empty ones. Errors: invalid_overlap; if ranges overlap, two adjacent ones do.
void sort_apart(std::vector<MemoryRange>& ranges, const char* op) {
  std::erase_if(ranges, [](const MemoryRange& r) { return r.empty(); });
  if (!std::is_sorted(ranges.begin(), ranges.end(), before)) std::sort(ranges.begin(), ranges.end(), before);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].memory == ranges[i - 1].memory && ranges[i].begin < ranges[i - 1].end) refuse(ranges[i], ranges[i - 1], op);
}

/// Errors: invalid_overlap if one of the sorted ranges shares memory with `r`. `place` is the result of the last search, at or near which this one often ends.
void check_against(const std::vector<MemoryRange>& sorted, const MemoryRange& r, std::size_t& place, const char* op) {
  if (r.empty() || sorted.empty()) return;
  auto begins_before_end = [&r](const MemoryRange& s) { return s.memory == r.memory ? s.begin < r.end : std::less<>()(s.memory, r.memory); };
  // A place is the number of ranges that begin before r ends. Sorted ranges do not overlap, so only the last of these can reach into r.
  auto is_place = [&](std::size_t i) {
    return i <= sorted.size() && (i == 0 || begins_before_end(sorted[i - 1])) && (i == sorted.size() || !begins_before_end(sorted[i]));
  };
  if (is_place(place + 1)) {
    ++place;
  } else if (!is_place(place)) {
    place = static_cast<std::size_t>(std::partition_point(sorted.begin(), sorted.end(), begins_before_end) - sorted.begin());
  }
  if (place > 0 && sorted[place - 1].memory == r.memory && sorted[place - 1].end > r.begin) refuse(r, sorted[place - 1], op);
}

}  // namespace

MemoryRange::MemoryRange(const Tensor& tensor, const char* name, std::size_t index) : what(name), number(static_cast<std::uint32_t>(index)) {
  if (!tensor.defined()) return;
  const Storage& storage = *tensor.storage();
  const std::uint64_t bytes = extent_bytes(tensor);
  if (bytes == 0) return;
  memory = storage.unplaced() ? static_cast<const void*>(&storage) : storage.mem();
  begin = storage.offset() + tensor.byte_offset(), end = begin + bytes;
}

std::string MemoryRange::text() const { return number == kNoNumber ? what : fmt::format("{} {}", what, number); }

void StepMemory::set_written(std::vector<MemoryRange> ranges, const char* op) {
  sort_apart(ranges, op);
  written_ = std::move(ranges);
  apart_ = false;
}

void StepMemory::set_count(std::size_t gradients) {
  if (gradients == gradients_.size()) return;
  gradients_.assign(gradients, {});
  apart_ = sorted_ = false;
}

void StepMemory::set_gradient(std::size_t i, const Tensor& gradient, std::size_t number) {
  const MemoryRange now(gradient, "gradient", number);
  MemoryRange& known = gradients_[i];
  known.number = now.number;
  if (now.same_bytes(known)) return;
  known = now;
  apart_ = sorted_ = false;
}

void StepMemory::check(bool writes_gradients, std::span<const MemoryRange> reads, const char* op) {
  std::size_t place = 0;
  if (!apart_)
    for (const MemoryRange& gradient : gradients_) check_against(written_, gradient, place, op);
  apart_ = true;
  if (writes_gradients && !sorted_) {
    sorted_gradients_ = gradients_;
    sort_apart(sorted_gradients_, op);
    sorted_ = true;
  }
  for (const MemoryRange& read : reads) {
    check_against(written_, read, place, op);
    if (writes_gradients) check_against(sorted_gradients_, read, place, op);
  }
}

}}}  // namespace clutch::v0::detail
