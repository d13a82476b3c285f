// SPDX-License-Identifier: Apache-2.0
#include "runtime/allocator.hpp"
#include "runtime/block.hpp"
#include "runtime/device.hpp"
#include "runtime/generator.hpp"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

namespace torch_clutch { namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override { return maybeExchangeDevice(index); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex former = current_device();
    set_current_device(index);
    return former;
  }
  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &host_allocator(); }
  at::Device getDeviceFromPtr(void* address) const override {
    const Block* block = find_block(address);
    TORCH_CHECK(block != nullptr, "clutch: the address is not of a clutch device's memory, which lies in ", address_range());
    return {kDevice, block->device};
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    const CurrentDevice current(storage.device().index());
    c10::DataPtr fresh = allocator().allocate(size);
    const size_t kept = std::min(size, storage.nbytes());
    if (kept > 0) allocator().copy_data(fresh.get(), storage.data(), kept);
    storage.set_data_ptr_noswap(std::move(fresh));
    storage.set_nbytes(size);
  }
};

const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}}  // namespace torch_clutch
