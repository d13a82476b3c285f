// SPDX-License-Identifier: Apache-2.0
#include <clutch/device.hpp>

#include "runtime/op_name.hpp"
#include "runtime/quirks.hpp"
#include "runtime/recorder.hpp"
#include "runtime/registry.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <atomic>
#include <ostream>

namespace clutch { inline namespace v0 {

namespace {

using detail::DeviceRecord;
using detail::Registry;

const DeviceRecord& need(const DeviceRecord* record, std::string_view what) {
  if (!record) throw Error(ErrorCode::invalid_argument, what, "the Device must be one of devices(), got an empty one");
  return *record;
}

[[noreturn]] void throw_no_device(std::string_view op) {
  const Registry& r = detail::registry();
  if (r.no_platform)
    throw Error(ErrorCode::no_platform, op,
                "no OpenCL driver is installed; on Debian pocl-opencl-icd runs on any CPU, and the plugin clutch_threads.so needs a C++ compiler alone "
                "(docs/plugins.md)");
  const auto& visible = detail::the_settings().visible_devices;
  throw Error(ErrorCode::no_device, op,
              visible.from_environment ? fmt::format("CLUTCH_VISIBLE_DEVICES='{}' hides every device", visible.value)
                                       : std::string("no OpenCL driver offers a device"));
}

std::atomic<const DeviceRecord*> g_default{nullptr};
thread_local const DeviceRecord* t_current = nullptr;

}  // namespace

std::string_view name(DeviceType type) noexcept {
  switch (type) {
    case DeviceType::cpu: return "cpu";
    case DeviceType::gpu: return "gpu";
    case DeviceType::accelerator: return "accelerator";
    case DeviceType::other: break;
  }
  return "other";
}

std::vector<Device> select_devices(std::string_view selector) {
  const Registry& r = detail::registry();
  if (r.records.empty()) throw_no_device("select_devices");
  std::vector<Device> result;
  for (int i : detail::match_selector(selector, r.facts())) result.push_back(device(i));
  return result;
}

Device::Device(std::string_view selector) {
  detail::OpName named("Device");
  record_ = select_devices(selector).front().record_;
}

int Device::index() const { return need(record_, "Device::index").index; }
DeviceType Device::type() const { return need(record_, "Device::type").facts.type; }
const std::string& Device::name() const { return need(record_, "Device::name").facts.name; }
const std::string& Device::vendor() const { return need(record_, "Device::vendor").facts.vendor; }
const std::string& Device::platform() const { return need(record_, "Device::platform").facts.platform_name; }
const std::string& Device::driver_version() const { return need(record_, "Device::driver_version").driver_version; }
const std::string& Device::extensions() const { return need(record_, "Device::extensions").extensions; }
const std::string& Device::uuid() const { return need(record_, "Device::uuid").facts.uuid; }

std::string Device::selector() const {
  const DeviceRecord& d = need(record_, "Device::selector");
  return fmt::format("{}:{}", d.facts.platform, d.facts.device);
}

const DeviceTraits& Device::traits() const {
  detail::OpName named("Device::traits");
  return detail::tested_traits(need(record_, "Device::traits"));
}

bool Device::supports(DType dtype) const {
  detail::OpName named("Device::supports");
  const DeviceTraits& traits = detail::tested_traits(need(record_, "Device::supports"));
  return !is_packed(dtype) && (traits.fp64 || (dtype != DType::f64 && dtype != DType::c128));
}

std::vector<std::string> Device::quirks() const {
  const DeviceRecord& d = need(record_, "Device::quirks");
  std::uint32_t bits = 0;
  try {
    bits = detail::tested_traits(d).quirks;
  } catch (const Error&) {  // thrown by a device whose self-tests fail
    bits = detail::claimed_traits(d).quirks;
  }
  std::vector<std::string> lines;
  for (const auto& row : detail::quirk_table())
    if (bits & row.bit) lines.push_back(fmt::format("{}: {} [{}]", row.name, row.reason, row.source));
  return lines;
}

std::ostream& operator<<(std::ostream& out, const Device& device) {
  if (device.empty()) return out << "(no device)";
  return out << device.index() << ": " << device.name() << " (" << name(device.type()) << ", " << device.platform() << ' ' << device.driver_version()
             << ", select with " << device.selector() << ')';
}

int device_count() { return static_cast<int>(detail::registry().records.size()); }

Device device(int index) {
  const Registry& r = detail::registry();
  if (r.records.empty()) throw_no_device("device");
  if (index < 0 || index >= static_cast<int>(r.records.size()))
    throw Error(ErrorCode::no_device, "device", fmt::format("index {} of {} visible devices:{}", index, r.records.size(), detail::list_choices(r.facts())));
  return Device(r.records[static_cast<std::size_t>(index)].get());
}

std::vector<Device> devices() {
  std::vector<Device> result;
  for (int i = 0; i < device_count(); ++i) result.push_back(device(i));
  return result;
}

Device default_device() {
  detail::OpName named("default_device");
  if (const DeviceRecord* chosen = g_default.load(std::memory_order_acquire)) return Device(chosen);
  static std::atomic<const DeviceRecord*> by_rule{nullptr};
  if (const DeviceRecord* known = by_rule.load(std::memory_order_acquire)) return Device(known);
  const Registry& r = detail::registry();
  if (r.records.empty()) throw_no_device("default_device");
  const std::string& wanted = detail::the_settings().device.value;
  Device chosen = wanted.empty() ? device(detail::default_choice(r.facts())) : Device(wanted);
  by_rule.store(chosen.record(), std::memory_order_release);
  return chosen;
}

void set_default_device(const Device& device) { g_default.store(device.record(), std::memory_order_release); }

Device current_device() {
  detail::OpName named("current_device");
  return t_current ? Device(t_current) : default_device();
}

void set_current_device(const Device& device) { t_current = device.record(); }

DeviceGuard::DeviceGuard(const Device& device) : former_(t_current) {
  if (!device.empty()) t_current = device.record();
}
DeviceGuard::~DeviceGuard() { t_current = former_.record(); }

void synchronize(const Device& device) {
  detail::OpName named("synchronize");
  if (detail::illegal_beside("synchronize")) return;
  const Device target = device.empty() ? current_device() : device;
  detail::Runtime& runtime = detail::runtime_of(*target.record());
  detail::check_outside_branches("synchronize", runtime);
  runtime.synchronize();
}

}}  // namespace clutch::v0
