// SPDX-License-Identifier: Apache-2.0
#include "runtime/allocator.hpp"
#include "runtime/device.hpp"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

namespace torch_clutch {
namespace {

class HostAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    constexpr size_t kPage = 4096;
    if (size == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    void* memory = std::aligned_alloc(kPage, (size + kPage - 1) / kPage * kPage);
    TORCH_CHECK_WITH(OutOfMemoryError, memory != nullptr, "clutch: the host has no ", size, " bytes");
    {
      std::lock_guard lock(mutex_);
      sizes_.emplace(reinterpret_cast<std::uintptr_t>(memory), size);
      stats_.allocations.increase(1);
      stats_.active_requests.increase(1);
      stats_.allocated_bytes.increase(static_cast<std::int64_t>(size));
      stats_.active_bytes.increase(static_cast<std::int64_t>(size));
    }
    return {memory, memory, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, std::size_t size) const override { std::memcpy(destination, source, size); }

  // A copy that does not wait keeps the memory until it is done.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    change([](auto& stat) { stat.reset_accumulated(); });
  }
  void reset_peak_stats() override {
    change([](auto& stat) { stat.reset_peak(); });
  }

  bool owns(const void* address) {
    std::lock_guard lock(mutex_);
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    auto after = sizes_.upper_bound(wanted);
    return after != sizes_.begin() && wanted < std::prev(after)->first + std::prev(after)->second;
  }

 private:
  template <class F>
  void change(F f) {
    std::lock_guard lock(mutex_);
    f(stats_.allocations), f(stats_.active_requests), f(stats_.allocated_bytes), f(stats_.active_bytes);
  }
  static void release(void* memory);
  void forget(void* memory) {
    std::lock_guard lock(mutex_);
    auto found = sizes_.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == sizes_.end()) return;
    const auto size = static_cast<std::int64_t>(found->second);
    stats_.allocations.decrease(1);
    stats_.active_requests.decrease(1);
    stats_.allocated_bytes.decrease(size);
    stats_.active_bytes.decrease(size);
    sizes_.erase(found);
  }

  std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> sizes_;
  at::HostStats stats_;
};

HostAllocator& memory() {
  static auto* made = new HostAllocator;
  return *made;
}

void HostAllocator::release(void* freed) {
  if (freed == nullptr) return;
  memory().forget(freed);
  std::free(freed);
}

// Without one torch.accelerator.Graph of PyTorch 2.12 reads a null pointer.
const bool registered = [] {
  at::setHostAllocator(kDevice, &memory());
  return true;
}();

}  // namespace

at::HostAllocator& host_allocator() { return memory(); }
bool is_pinned(const void* address) { return registered && memory().owns(address); }

}  // namespace torch_clutch
