// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "program/program.hpp"
#include "runtime/host_mappings.hpp"
#include "runtime/partition.hpp"
#include "runtime/plan_cache.hpp"
#include "runtime/registry.hpp"
#include "runtime/stream.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class GeneratorImpl;
class Pool;

/// State of one context: pool, programs, plans and streams. A device's own runtime lives as long as the process, an adopted one until interop::release().
class Runtime {
 public:
  Runtime(const DeviceRecord& device, ClContext context, bool adopted, std::vector<SubDevice> named = {});
  ~Runtime();

  const DeviceRecord& device() const noexcept { return device_; }
  cl_context context() const noexcept { return context_.get(); }
  bool adopted() const noexcept { return adopted_; }
  /// Those of the thread's current partition of this device, else the device's.
  const DeviceTraits& traits() const {
    PartitionImpl* partition = own_partition();
    return partition ? partition->traits() : tested_traits(device_);
  }

  Pool& pool() noexcept { return *pool_; }
  ProgramStore& programs() noexcept { return programs_; }
  /// Plans depend on the number of units: those of the thread's current partition of this device, else the device's.
  PlanCache& plans() {
    PartitionImpl* partition = own_partition();
    return partition ? plans_of(partition->units().count) : plans_;
  }
  HostMappings& mappings() noexcept { return mappings_; }
  UnitAccount& units() noexcept { return units_; }
  /// Notes that there are partitions: before that, nothing looks for the current one.
  void has_partitions() noexcept { has_partitions_.store(true, std::memory_order_relaxed); }
  /// The thread's current partition if it is of this runtime; else null.
  PartitionImpl* own_partition() const noexcept {
    if (!has_partitions_.load(std::memory_order_relaxed)) [[likely]]
      return nullptr;
    PartitionImpl* partition = current_partition();
    return partition && &partition->runtime() == this ? partition : nullptr;
  }

  /// A stream with a new queue, of the partition if one is given. Errors: opencl.
  std::shared_ptr<StreamImpl> make_stream(StreamPriority priority, const std::shared_ptr<PartitionImpl>& partition = {});
  std::shared_ptr<StreamImpl> default_stream();
  /// The stream of a caller's queue: the same one for each call while that stream lives.
  std::shared_ptr<StreamImpl> wrap_queue(cl_command_queue queue);
  void synchronize();
  /// One event for each stream with unfinished work, which completes when the work so far has ended.
  std::vector<ClEvent> marks();
  /// Notes that the host has waited for the commands in `seen`, so that they are ordered before all later commands of any stream. Used by the race checker.
  void host_waited(const Clock& seen);
  /// The last ticket of a stream that the host has waited for.
  std::uint64_t host_has_seen(std::uint64_t stream) const;
  /// The default generator. Its first use makes it, on `stream`.
  std::shared_ptr<GeneratorImpl> default_generator(const Stream& stream);

  /// Reason why command buffers must not be used on this device; empty if they may. The first call runs `test`.
  std::string command_buffers_refuse(const std::function<std::string()>& test);
  /// True if kernels may use dot products of bytes. The first call runs `test`.
  bool dot_products(const std::function<bool()>& test);
  /// True if matrix instructions of this kind work. The first call for the kind runs `test`.
  bool matrix_instructions(std::size_t kind, const std::function<bool()>& test);

  void add_live(int n) noexcept { live_.fetch_add(n, std::memory_order_relaxed); }
  /// Number of live tensors, plus live streams other than the default one.
  int live() const;

 private:
  void add_stream(const std::shared_ptr<StreamImpl>& stream);
  PlanCache& plans_of(int units);

  const DeviceRecord& device_;
  ClContext context_;
  bool adopted_;
  std::unique_ptr<Pool> pool_;
  ProgramStore programs_;
  PlanCache plans_;
  std::map<int, PlanCache> plans_of_units_;
  UnitAccount units_;
  std::atomic<bool> has_partitions_{false};
  HostMappings mappings_;
  std::atomic<int> live_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<StreamImpl> default_stream_;
  std::vector<std::weak_ptr<StreamImpl>> streams_;
  std::vector<std::shared_ptr<StreamEnd>> ends_;  ///< of all streams whose work may not be done
  std::shared_ptr<GeneratorImpl> default_generator_;
  mutable std::mutex host_clock_mutex_;
  Clock host_clock_;
  std::mutex command_buffers_mutex_;
  std::optional<std::string> command_buffers_refused_;
  std::once_flag dot_products_tested_;
  bool dot_products_ = false;
  static constexpr std::size_t kMatrixKinds = 96;
  std::array<std::once_flag, kMatrixKinds> matrix_tested_;
  std::array<bool, kMatrixKinds> matrix_works_{};
};

/// The device's own runtime, made at first use. Errors: opencl, invalid_setting.
Runtime& runtime_of(const DeviceRecord& record);
/// The device's own runtime; of the current device if `device` is empty. Errors: as runtime_of().
Runtime& runtime_for(const Device& device);
/// The runtime of a caller's context, adopted at first use. The device's own runtime if the context is its context.
Runtime& adopt_context(cl_context context, const DeviceRecord& record);
/// The runtime of a context; null if the context was never adopted.
Runtime* find_runtime(cl_context context);
void release_context(cl_context context);
/// Calls `visit` with each runtime that there is now: the devices' by index, then adopted ones, which are not released meanwhile.
void each_runtime(const std::function<void(Runtime&)>& visit);

}}}  // namespace clutch::v0::detail
