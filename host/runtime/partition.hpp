// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>
#include <clutch/partition.hpp>

#include "runtime/cl_api.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;
class StreamEnd;
class StreamImpl;
struct DeviceRecord;

/// Neighbouring compute units.
struct UnitRange {
  int first = 0;
  int count = 0;
  int end() const noexcept { return first + count; }
  friend bool operator==(const UnitRange&, const UnitRange&) = default;
};

/// A sub-device and the units that it has.
struct SubDevice {
  UnitRange units;
  cl_device_id id = nullptr;
};

/// Halves of the device, halves of these and so on, at most kHalvings times: what a context names whose driver demands that it names each sub-device that
/// queues will be made for. Empty where a device has one unit, or its driver no sub-devices by counts, or one that takes others (kQuirkSubDevicesUnnamed).
std::vector<SubDevice> named_sub_devices(const DeviceRecord& device);

/// Which compute units of a device living partitions have.
class UnitAccount {
 public:
  UnitAccount(const DeviceRecord& device, std::vector<SubDevice> named) noexcept : device_(device), named_(std::move(named)) {}

  struct Taken {
    UnitRange units;
    cl_device_id sub_device = nullptr;  ///< null: a soft partition
  };
  /// Takes a range for each number. All are taken or none. Errors: invalid_argument if there are not as many free units.
  std::vector<Taken> take(std::span<const int> numbers, bool soft, std::string_view op);
  /// They are free once the work before all of `ends` is done.
  void give_back(const UnitRange& units, std::vector<ClEvent> ends) noexcept;
  int free();

 private:
  struct Unit {
    bool is_free() const noexcept { return !is_taken && !ends; }
    bool is_taken = false;
    std::shared_ptr<const std::vector<ClEvent>> ends;  ///< before which work of a former partition may run on it
  };
  Taken take_one(int number, bool soft);
  cl_device_id sub_device(const UnitRange& units);
  bool is_free(const UnitRange& units) const;
  /// The units, without ends that are done.
  std::vector<Unit>& settled();

  const DeviceRecord& device_;
  std::vector<SubDevice> named_;
  std::mutex mutex_;
  std::vector<SubDevice> made_;  ///< on demand. Never released, since events of their queues may outlive a partition
  std::vector<Unit> units_;
};

class PartitionImpl : public std::enable_shared_from_this<PartitionImpl> {
 public:
  PartitionImpl(Runtime& runtime, const UnitAccount::Taken& taken, const PartitionOptions& options);
  ~PartitionImpl();
  PartitionImpl(const PartitionImpl&) = delete;
  PartitionImpl& operator=(const PartitionImpl&) = delete;

  Runtime& runtime() const noexcept { return runtime_; }
  /// The device to make queues for.
  cl_device_id device() const noexcept;
  const UnitRange& units() const noexcept { return taken_.units; }
  Isolation isolation() const;
  int workqueue_limit() const noexcept { return limit_; }
  const DeviceTraits& traits();
  /// The stream of all threads. It lives in a holder that the handles of the partition keep, since each stream keeps its partition.
  struct StreamHolder {
    std::mutex mutex;
    std::shared_ptr<StreamImpl> stream;
  };
  std::shared_ptr<StreamHolder> stream_holder();
  /// The geometry with no more work-groups than the units of a soft partition hold.
  Geometry within_units(const Geometry& geometry) const noexcept;

  /// To be held from before the stream's next command is enqueued until it is, if the number of streams is limited: lets no further stream run meanwhile.
  /// Makes the command wait for the work of another stream where one more would run than may.
  std::unique_lock<std::mutex> turn_of(StreamImpl& stream);
  /// Notes that a stream is gone whose work may run until `end`.
  void stream_ends(ClEvent end);

 private:
  struct Slot {
    std::uint64_t stream = 0;
    std::weak_ptr<StreamImpl> impl;
    std::shared_ptr<StreamEnd> end;  ///< tells of work once the stream is gone
    std::uint64_t used = 0;          ///< number of the last command
  };

  Runtime& runtime_;
  const UnitAccount::Taken taken_;
  const bool whole_;  ///< of all units, which other partitions may have, too
  const int limit_;
  std::once_flag traits_once_;
  DeviceTraits traits_;
  std::mutex holder_mutex_;
  std::weak_ptr<StreamHolder> holder_;
  std::mutex slots_mutex_;
  std::vector<Slot> slots_;
  std::uint64_t commands_ = 0;
  std::mutex ends_mutex_;
  std::vector<ClEvent> ends_;  ///< of streams that are gone, whose work may run
};

/// The partition of the innermost PartitionGuard of this thread; null if there is none.
PartitionImpl* current_partition() noexcept;

}}}  // namespace clutch::v0::detail
