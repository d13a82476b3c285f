// SPDX-License-Identifier: Apache-2.0
#include "runtime/allocator.hpp"

#include "runtime/block.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <ATen/Context.h>
#include <clutch/allocator.hpp>
#include <clutch/ops/copy.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace torch_clutch {
namespace {

using Counters = std::map<std::string, std::uint64_t>;

std::int64_t count(const Counters& counters, const std::string& key) {
  auto found = counters.find(key);
  return found == counters.end() ? 0 : static_cast<std::int64_t>(found->second);
}

c10::CachingAllocator::Stat stat(const Counters& counters, const std::string& prefix) {
  c10::CachingAllocator::Stat made;
  made.current = count(counters, prefix + ".current");
  made.peak = count(counters, prefix + ".peak");
  made.allocated = count(counters, prefix + ".allocated");
  made.freed = count(counters, prefix + ".freed");
  return made;
}

c10::CachingAllocator::StatArray stats(const Counters& counters, const std::string& prefix) {
  return {stat(counters, prefix + ".all"), stat(counters, prefix + ".small_pool"), stat(counters, prefix + ".large_pool")};
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    const c10::DeviceIndex index = current_device();
    if (size == 0) return empty_pointer(index);
    return translated([&] {
      try {
        return adopt(clutch::empty({static_cast<std::int64_t>(size)}, {.dtype = clutch::DType::u8, .device = device(index)}), index);
      } catch (const clutch::Error& error) {
        TORCH_CHECK_WITH(OutOfMemoryError, error.code() != clutch::ErrorCode::invalid_shape, "clutch: ", error.what());
        throw;
      }
    });
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* destination, const void* source, std::size_t size) const override {
    Block *to = find_block(destination), *from = find_block(source);
    TORCH_CHECK(to != nullptr && from != nullptr, "clutch: copy_data() of memory that is not of a clutch device");
    auto part = [size](const Block& block, const void* address) {
      const auto begin = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) - block.address);
      return block.bytes.slice(0, begin, begin + static_cast<std::int64_t>(size));
    };
    translated([&] { clutch::copy_(part(*to, destination), part(*from, source)); });
  }

  bool initialized() override { return device_count() > 0; }
  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) translated([&] { clutch::empty_cache(device(i)); });
  }
  // Clutch notes by itself each stream that uses memory.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    const Counters counters = translated([&] { return clutch::memory_stats(device(index)); });
    c10::CachingDeviceAllocator::DeviceStats made;
    made.allocation = stats(counters, "allocation");
    made.segment = stats(counters, "segment");
    made.active = stats(counters, "active");
    made.inactive_split = stats(counters, "inactive_split");
    made.allocated_bytes = stats(counters, "allocated_bytes");
    made.reserved_bytes = stats(counters, "reserved_bytes");
    made.active_bytes = stats(counters, "active_bytes");
    made.inactive_split_bytes = stats(counters, "inactive_split_bytes");
    made.requested_bytes = stats(counters, "requested_bytes");
    made.oversize_allocations = stat(counters, "oversize_allocations");
    made.oversize_segments = stat(counters, "oversize_segments");
    made.num_alloc_retries = count(counters, "num_alloc_retries");
    made.num_ooms = count(counters, "num_ooms");
    made.num_oom_rejections = count(counters, "num_oom_rejections");
    made.num_sync_all_streams = count(counters, "num_sync_all_streams");
    made.num_device_alloc = count(counters, "num_device_alloc");
    made.num_device_free = count(counters, "num_device_free");
    made.max_split_size = count(counters, "max_split_size");
    return made;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    translated([&] { clutch::reset_accumulated_memory_stats(device(index)); });
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    translated([&] { clutch::reset_peak_memory_stats(device(index)); });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    const clutch::MemoryInfo info = translated([&] { return clutch::get_memory_info(device(index)); });
    return {info.free, info.total};
  }
};

}  // namespace

bool fills_memory() { return at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicFillUninitializedMemory(); }

c10::DeviceAllocator& allocator() {
  static auto* made = new Allocator;
  return *made;
}

namespace {
const bool registered = [] {
  c10::SetAllocator(kDevice, &allocator());
  return true;
}();
}  // namespace

}  // namespace torch_clutch
