// SPDX-License-Identifier: Apache-2.0
#pragma once
// PyTorch's CUDA caching allocator as its sources of 2.12 describe it, written again in the plainest way: lists that are searched from end to end. No segment
// grows and nothing runs on a device. Segments get the lowest free addresses, 2 MiB between them.
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace clutch::testing {

class TorchAllocatorModel {
 public:
  std::uint64_t large_segment = 20ull << 20, max_split = UINT64_MAX, max_non_split_rounding = 20ull << 20;
  std::uint64_t divisions[16] = {};

  std::uint64_t reserved = 0, allocated = 0, active = 0, requested = 0, blocks = 0, active_blocks = 0, split_blocks = 0, split_bytes = 0, segments_made = 0;
  std::uint64_t reserved_peak = 0, requested_peak = 0, oversize = 0;

  std::uint64_t round(std::uint64_t n) const {
    if (n < 512) return 512;
    int log = 63;
    while (!(n >> log)) --log;
    const std::uint64_t d = divisions[std::clamp(log - 20, 0, 15)];
    if (d <= 1 || n <= 512 * d) return (n + 511) / 512 * 512;
    if ((n & (n - 1)) == 0) return n;
    const std::uint64_t floor = std::uint64_t{1} << log, step = floor / d;
    return step == 0 ? 2 * floor : (n + step - 1) / step * step;
  }

  /// Address of a new block.
  std::uint64_t malloc(std::uint64_t bytes, int stream) {
    const std::uint64_t size = round(bytes);
    const bool small = size <= 1u << 20;
    auto best = all_.end();
    for (auto at = all_.begin(); at != all_.end(); ++at) {
      const Piece& p = at->second;
      if (p.state != 0 || p.stream != stream || p.small != small || p.size < size) continue;
      if (best == all_.end() || p.size < best->second.size) best = at;  // equal ones: the lowest address
    }
    if (best != all_.end() && !small) {
      const std::uint64_t has = best->second.size;
      if ((size < max_split && has >= max_split) || (size >= max_split && has >= size + max_non_split_rounding)) best = all_.end();
    }
    if (best == all_.end()) {
      const std::uint64_t whole = small ? 2u << 20 : size < 10u << 20 ? large_segment : (size + (2u << 20) - 1) / (2u << 20) * (2u << 20);
      best = add(whole, stream, small);
    }
    Piece& p = best->second;
    const std::uint64_t rest = p.size - size;
    if (small ? rest >= 512 : size < max_split && rest > 1u << 20) {
      all_[best->first + size] = {p.segment, rest, 0, stream, small, 0};
      p.size = size;
    }
    p.state = 1;
    p.requested = bytes;
    count();
    return best->first;
  }

  /// Ends the block's use by its owner; other streams still use it.
  void request_free(std::uint64_t address) {
    all_.at(address).state = 2;
    count();
  }
  /// Frees a block that nothing uses.
  void complete_free(std::uint64_t address) {
    auto at = all_.find(address);
    at->second.state = 0;
    auto next = std::next(at);
    if (next != all_.end() && next->second.segment == at->second.segment && next->second.state == 0) {
      at->second.size += next->second.size;
      all_.erase(next);
    }
    if (at != all_.begin()) {
      auto former = std::prev(at);
      if (former->second.segment == at->second.segment && former->second.state == 0) {
        former->second.size += at->second.size;
        all_.erase(at);
      }
    }
    count();
  }

  /// Gives all segments back that are one free block.
  void empty_cache() {
    for (auto at = segments_.begin(); at != segments_.end();) {
      const Piece& p = all_.at(at->first);
      if (p.state == 0 && p.size == at->second) {
        all_.erase(at->first);
        at = segments_.erase(at);
      } else {
        ++at;
      }
    }
    count();
  }

 private:
  struct Piece {
    std::uint64_t segment, size, requested;
    int stream;
    bool small;
    int state;  ///< 0 free, 1 allocated, 2 awaiting other streams
  };

  std::map<std::uint64_t, Piece>::iterator add(std::uint64_t whole, int stream, bool small) {
    constexpr std::uint64_t kGap = 2u << 20;
    std::uint64_t address = 1ull << 32;
    for (const auto& [begin, bytes] : segments_) {
      if (begin >= address + whole + kGap) break;
      address = (begin + bytes + kGap - 1) / kGap * kGap + kGap;
    }
    segments_[address] = whole;
    ++segments_made;
    return all_.insert({address, {address, whole, 0, stream, small, 0}}).first;
  }

  void count() {
    reserved = allocated = active = requested = blocks = active_blocks = split_blocks = split_bytes = oversize = 0;
    for (const auto& [begin, bytes] : segments_) reserved += bytes;
    for (const auto& [address, p] : all_) {
      if (p.state == 1) allocated += p.size, requested += p.requested, ++blocks, oversize += p.size >= max_split;
      if (p.state != 0) active += p.size, ++active_blocks;
      if (p.state == 0 && p.size < segments_.at(p.segment)) split_bytes += p.size, ++split_blocks;
    }
    reserved_peak = std::max(reserved_peak, reserved);
    requested_peak = std::max(requested_peak, requested);
  }

  std::map<std::uint64_t, Piece> all_;
  std::map<std::uint64_t, std::uint64_t> segments_;  ///< bytes by address
};

}  // namespace clutch::testing
