// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/dtype.hpp>
#include <clutch/export.hpp>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 {

namespace detail {
struct DeviceRecord;
}

enum class DeviceType : std::uint8_t { cpu, gpu, accelerator, other };

/// Returns "cpu", "gpu", "accelerator" or "other".
CLUTCH_API std::string_view name(DeviceType type) noexcept;

/// Properties of a device, by claim and, where bits hang on it, by self-test. Ops decide by these and by nothing else.
/// Sizes are in bytes, widths in lanes.
struct DeviceTraits {
  DeviceType type = DeviceType::other;
  int opencl_c = 120;  ///< newest OpenCL C version times 100: 120, 300
  int address_bits = 64;
  int compute_units = 1;             ///< never steers selection; for information
  std::uint64_t max_work_group = 1;  ///< work-items in a work-group
  std::uint64_t local_bytes = 0;     ///< local memory of a work-group
  bool local_memory_real = false;    ///< dedicated on-chip memory rather than cached global memory
  std::uint64_t global_bytes = 0;
  std::uint64_t max_alloc_bytes = 0;     ///< largest single buffer
  std::uint64_t max_argument_bytes = 0;  ///< all arguments of one kernel together
  std::uint64_t cache_bytes = 0;         ///< last-level cache; 0 if not said
  std::uint32_t base_align_bits = 0;
  int native_width_f32 = 1;  ///< lanes of the native vector; 0 where the type is not supported
  int native_width_f64 = 0;
  int native_width_f16 = 0;
  bool fp64 = false;
  bool fp16 = false;  ///< arithmetic in half; storage of f16 and bf16 works everywhere
  bool sub_groups = false;
  bool native_atomics64 = false;
  bool out_of_order = false;
  bool priority_hints = false;
  bool register_limits = false;  ///< programs may be built for a number of registers (cl_nv_compiler_options)
  bool large_registers = false;  ///< programs may be built for twice as many registers of each item, of which fewer run
                                 ///< (-cl-intel-256-GRF-per-thread)
  int least_sub_group = 0;       ///< items of the smallest sub-group that a kernel may ask for
                                 ///< (CL_DEVICE_SUB_GROUP_SIZES_INTEL); 0: kernels cannot ask
  int command_buffer = 0;        ///< revision of cl_khr_command_buffer times 10000 as 0x major minor patch; 0 = absent
  bool fma_exact = false;        ///< self-test: fma() is rounded once
  bool divide_exact = false;     ///< self-test: f32 '/' is correctly rounded, subnormal results too
  bool sqrt_exact = false;       ///< self-test: f32 sqrt() is correctly rounded
  bool denormals = false;        ///< self-test: f32 subnormals are kept
  bool device_timer = false;     ///< self-test: event times grow and agree with the host's clock
  /// Self-test: kernels get structs by value as the host lays them out; where not, in memory
  bool args_by_value = true;
  bool simulator = false;    ///< claims several device types at once
  std::uint32_t quirks = 0;  ///< bits of the quirk table that apply
};

// Threads and processes, for the whole library:
// Threads: free functions may run in any threads at once, and threads may use one Device, Stream, Event, Tensor or
//   Generator at once. An object that one thread changes (a handle that is assigned to, and any Graph, Optimizer,
//   GradScaler, PagedCache, TensorTable or Encoder) needs the caller's lock. Work that threads enqueue on one stream
//   runs in the order of their calls; the current device and stream are each thread's own.
// fork(): a child may use clutch if its parent had not used it before. Otherwise its calls give an Error
//   (not_supported), since drivers' threads do not survive a fork; what the child inherited may be destroyed there,
//   which calls no driver.
// exec(), posix_spawn(): allowed at any time.

/// Identity of an OpenCL device: a cheap value, equal for equal devices. Empty means "the current device" to whom it is
/// passed. Devices are numbered over all platforms in a stable order, after CLUTCH_VISIBLE_DEVICES.
class CLUTCH_API Device {
 public:
  Device() = default;
  /// Resolves a selector (README, "Selecting a device") to its first match.
  /// Errors: no_device lists the choices; invalid_argument for bad grammar; no_platform.
  explicit Device(std::string_view selector);

  bool empty() const noexcept { return record_ == nullptr; }
  /// Number among the visible devices. Errors: invalid_argument on an empty Device (so for all below).
  int index() const;
  DeviceType type() const;
  const std::string& name() const;
  const std::string& vendor() const;
  const std::string& platform() const;
  const std::string& driver_version() const;
  const std::string& extensions() const;
  /// CL_DEVICE_UUID_KHR in hexadecimal; empty where the driver does not tell.
  const std::string& uuid() const;
  /// The string that selects exactly this device again, "0:0" as platform:device.
  std::string selector() const;
  /// Traits with self-tests. The first call may build and run small kernels (kept on disk afterwards), so it may wait.
  /// Errors: those of the driver while it tests; a later call tests again.
  const DeviceTraits& traits() const;
  /// One line per row of the quirk table that applies to this device, with its reason. Tests the device as traits()
  /// does.
  std::vector<std::string> quirks() const;
  /// True if tensors of the dtype can be made on this device and copy_() casts between it and every other such dtype:
  /// all but the packed dtypes, and but f64 and c128 without fp64. Errors: as traits().
  /// Source: torch.accelerator.get_device_capability (PyTorch 2.12), whose supported_dtypes these are.
  bool supports(DType dtype) const;

  friend bool operator==(const Device& a, const Device& b) noexcept { return a.record_ == b.record_; }
  const detail::DeviceRecord* record() const noexcept { return record_; }
  explicit Device(const detail::DeviceRecord* record) noexcept : record_(record) {}

 private:
  const detail::DeviceRecord* record_ = nullptr;
};

CLUTCH_API std::ostream& operator<<(std::ostream& out, const Device& device);

/// Number of visible devices; 0 when there is no platform or all are hidden. Errors: invalid_setting.
CLUTCH_API int device_count();
/// The visible device of that number. Errors: no_device, no_platform.
CLUTCH_API Device device(int index);
CLUTCH_API std::vector<Device> devices();
/// All devices that a selector accepts, in the selector's order. Errors: as Device's constructor.
CLUTCH_API std::vector<Device> select_devices(std::string_view selector);

/// set_default_device()'s choice, else the first match of CLUTCH_DEVICE, else the first GPU, else the first CPU, else
/// what is left; simulators come last.
/// Errors: no_device (never a silent CPU), no_platform.
CLUTCH_API Device default_device();
/// Changes the default for all threads; an empty Device restores the rule above.
CLUTCH_API void set_default_device(const Device& device);
/// This thread's current device: a guard's, else set_current_device()'s, else default_device().
CLUTCH_API Device current_device();
/// An empty Device restores the default.
CLUTCH_API void set_current_device(const Device& device);

/// Makes a device current for this thread and restores the former one; guards nest. An empty Device changes nothing.
class CLUTCH_API DeviceGuard {
 public:
  explicit DeviceGuard(const Device& device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device former_;
};

/// Waits for all work on all streams of the device (empty: the current device). Errors: stream_failed, device_lost.
CLUTCH_API void synchronize(const Device& device = {});

}}  // namespace clutch::v0
