// SPDX-License-Identifier: Apache-2.0
// The devices `clutch:N`: numbered as clutch numbers them, after CLUTCH_VISIBLE_DEVICES.
#pragma once
#include "runtime/export.hpp"

#include <c10/core/Device.h>
#include <clutch/device.hpp>

#include <string>

namespace torch_clutch {

inline constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

/// Devices are looked for at the first call, so that a process may fork before it. 0 where there is none, a driver fails, or in a forked child.
c10::DeviceIndex device_count() noexcept;
/// Why device_count() is 0; empty where it is not.
const std::string& why_no_device();
/// True in a child of fork() whose parent had looked for devices: drivers do not survive that.
bool in_bad_fork() noexcept;

/// Waits for all devices that were used: drivers end badly with work underway. Never throws.
void finish_all() noexcept;

/// Errors: RuntimeError, saying why, without such a device.
TORCH_CLUTCH_EXPORT const clutch::Device& device(c10::DeviceIndex index);
/// This thread's current one; at first clutch's default device.
TORCH_CLUTCH_EXPORT c10::DeviceIndex current_device();
/// Does nothing for a negative index. Errors: as device().
void set_current_device(c10::DeviceIndex index);
/// A negative index stands for the current device.
inline c10::DeviceIndex or_current(c10::DeviceIndex index) { return index < 0 ? current_device() : index; }

/// Makes a device the current one while it lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(c10::DeviceIndex index) : former_(current_device()) { set_current_device(index); }
  ~CurrentDevice() { set_current_device(former_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  c10::DeviceIndex former_;
};

}  // namespace torch_clutch
