// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/stream.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 {

namespace detail {
class PartitionImpl;
}

/// Isolation is what keeps a partition's kernels off the compute units of other partitions.
enum class Isolation : std::uint8_t {
  none,     ///< nothing: kernels keep to a number of units, anywhere on the device, or wait for those of others
  threads,  ///< a sub-device with threads of its own, which the operating system may run on any core
  cores,    ///< a sub-device whose threads stay on cores of their own (PoCL with POCL_AFFINITY=1 in the environment)
};

/// Returns "none", "threads" or "cores".
CLUTCH_API std::string_view name(Isolation isolation) noexcept;

struct PartitionOptions {
  int units = 0;            ///< compute units wanted; 0: the whole device, for a workqueue limit alone
  int workqueue_limit = 0;  ///< most streams of the partition whose commands run at once; 0: no limit
  bool soft = false;        ///< no sub-device, where the driver has them, too: Isolation::none
};

/// Compute units of one device for some of its streams, as a green context has. A cheap value: copies share the
/// partition. Its units are free again once its last handle and its last stream are gone and their work is done;
/// tensors that were made on them do not keep them.
/// Tensors, kernels and plans are the device's: they work on streams of any partition and of none.
class CLUTCH_API Partition {
 public:
  Partition() = default;
  /// Takes units of the device (empty: the current device) that no other living partition has.
  /// Units: granted may be more than wanted where the driver demands that sub-devices are known when its context is
  ///   made: there a device is halved up to four times, and a partition gets the smallest part that is large enough.
  ///   Where a driver has no sub-devices the partition is soft: its streams start no more work-groups of the library's
  ///   kernels than so many units hold. Callers' own kernels run as they ask.
  /// Workqueue limit: a command of a further stream waits on the device until a stream of the partition has done what
  ///   it was given. The host never waits.
  /// Errors: invalid_argument if units or the limit are negative, both are 0, or fewer units are free, which names the
  ///   wanted and the free ones; no_device, opencl.
  static Partition create(const Device& device, const PartitionOptions& options);
  /// Partitions of so many units each, in this order: all or, on an error, none. Errors: as create().
  static std::vector<Partition> split(const Device& device, std::span<const int> units);
  static std::vector<Partition> split(const Device& device, std::initializer_list<int> units) {
    return split(device, std::span<const int>(units.begin(), units.size()));
  }

  bool empty() const noexcept { return impl_ == nullptr; }
  /// Errors: invalid_argument on an empty Partition (so for all below).
  Device device() const;
  /// Compute units that were granted.
  int units() const;
  /// Number of the first of them; the others follow. With Isolation::none a count alone, as no unit is meant by it.
  int first_unit() const;
  Isolation isolation() const;
  int workqueue_limit() const;
  /// The device's traits with compute_units of the partition.
  const DeviceTraits& traits() const;
  /// The stream of the partition that PartitionGuard makes current, the same for all threads.
  Stream stream() const;
  /// A stream with a queue of its own. Errors: opencl.
  Stream make_stream(const StreamOptions& options = {}) const;

  friend bool operator==(const Partition& a, const Partition& b) noexcept { return a.impl_ == b.impl_; }
  const std::shared_ptr<detail::PartitionImpl>& impl() const noexcept { return impl_; }
  explicit Partition(std::shared_ptr<detail::PartitionImpl> impl);

 private:
  std::shared_ptr<detail::PartitionImpl> impl_;
  std::shared_ptr<void> stream_;  ///< what keeps stream() between calls, shared by all handles
};

/// Compute units of the device (empty: the current device) that no living partition has. Errors: no_device, opencl.
CLUTCH_API int free_units(const Device& device = {});

/// For this thread, until it ends: the partition's stream is current on its device, streams that are made on that
/// device are the partition's, and ops choose kernels and sizes for its number of units. Guards nest.
/// Errors: invalid_argument if the partition is empty.
class CLUTCH_API PartitionGuard {
 public:
  explicit PartitionGuard(const Partition& partition);
  ~PartitionGuard();
  PartitionGuard(const PartitionGuard&) = delete;
  PartitionGuard& operator=(const PartitionGuard&) = delete;

 private:
  StreamGuard stream_;
  std::shared_ptr<detail::PartitionImpl> partition_;
  detail::PartitionImpl* former_;
};

}}  // namespace clutch::v0
