// SPDX-License-Identifier: Apache-2.0
#include "runtime/block.hpp"

#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <clutch/allocator.hpp>

#include <sys/mman.h>

#include <bit>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_clutch {
namespace {

class Addresses {
 public:
  Addresses() {
    // Address space may be limited (ulimit -v): ask for less then.
    for (range_ = std::uint64_t{1} << 44; range_ >= std::uint64_t{1} << 32; range_ /= 2) {
      void* reserved = mmap(nullptr, range_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (reserved != MAP_FAILED) {
        begin_ = next_ = reinterpret_cast<std::uintptr_t>(reserved);
        return;
      }
    }
    TORCH_CHECK(false, "clutch: the system reserves no address space for device memory");
  }

  void take(Block& block) {
    block.reserved = rounded(block.size);
    std::lock_guard lock(mutex_);
    std::vector<std::uintptr_t>& free = free_[block.reserved];
    if (!free.empty()) {
      block.address = free.back();
      free.pop_back();
    } else {
      TORCH_CHECK(block.reserved <= begin_ + range_ - next_, "clutch: the address space for device memory, ", range_, " bytes, is used up");
      block.address = std::exchange(next_, next_ + block.reserved);
    }
    live_.emplace(block.address, &block);
  }

  void give(const Block& block) {
    std::lock_guard lock(mutex_);
    live_.erase(block.address);
    free_[block.reserved].push_back(block.address);
  }

  Block* find(std::uintptr_t address) {
    std::lock_guard lock(mutex_);
    auto after = live_.upper_bound(address);
    if (after == live_.begin()) return nullptr;
    Block* block = std::prev(after)->second;
    return address <= block->address + block->size ? block : nullptr;
  }

  std::pair<std::uintptr_t, std::uintptr_t> range() const { return {begin_, begin_ + range_}; }

 private:
  // Four sizes between powers of two, so that a range is soon taken again, and always some bytes more: the end of a block is not the begin of another one.
  static std::uint64_t rounded(std::uint64_t size) {
    constexpr std::uint64_t kLeast = 512;
    size += kLeast;
    const std::uint64_t step = std::max(kLeast, std::bit_floor(size) / 4);
    return (size + step - 1) / step * step;
  }

  std::mutex mutex_;
  std::uint64_t range_ = 0;
  std::uintptr_t begin_ = 0, next_ = 0;
  std::unordered_map<std::uint64_t, std::vector<std::uintptr_t>> free_;  // by reserved size
  std::map<std::uintptr_t, Block*> live_;
};

Addresses& addresses() {
  static auto* all = new Addresses;
  return *all;
}

// For profile_memory of PyTorch's profiler.
void report(const Block& block, bool taken) {
  if (!c10::memoryProfilingEnabled()) return;
  const clutch::Device& of = device(block.device);
  const auto size = static_cast<std::int64_t>(block.size);
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(block.address), taken ? size : -size, clutch::memory_allocated(of), clutch::memory_reserved(of),
                                   c10::Device(kDevice, block.device));
}

}  // namespace

c10::DataPtr adopt(clutch::Tensor bytes, c10::DeviceIndex device) {
  const std::uint64_t size = bytes.nbytes();
  auto block = std::make_unique<Block>(Block{.bytes = std::move(bytes), .device = device, .size = size});
  addresses().take(*block);
  report(*block, true);
  void* address = reinterpret_cast<void*>(block.release()->address);
  return {address, address, &free_block, c10::Device(kDevice, device)};
}

c10::DataPtr empty_pointer(c10::DeviceIndex device) { return {nullptr, nullptr, &free_block, c10::Device(kDevice, device)}; }

void free_block(void* address) {
  if (address == nullptr) return;
  std::unique_ptr<Block> freed(find_block(address));
  if (freed == nullptr) return;
  report(*freed, false);
  addresses().give(*freed);
}

Block* find_block(const void* address) { return addresses().find(reinterpret_cast<std::uintptr_t>(address)); }

Block* block_of(const c10::DataPtr& pointer) { return pointer.get() == nullptr ? nullptr : find_block(pointer.get()); }

std::string address_range() {
  auto [begin, end] = addresses().range();
  return c10::str("[", reinterpret_cast<void*>(begin), ", ", reinterpret_cast<void*>(end), ")");
}

}  // namespace torch_clutch
