// SPDX-License-Identifier: Apache-2.0
#include "runtime/partition.hpp"

#include "runtime/op_name.hpp"
#include "runtime/quirks.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace clutch { inline namespace v0 {
namespace detail {

namespace {

constexpr int kHalvings = 4;
/// What one compute unit of a GPU holds at once, in work-items: as many as the largest present ones, so that a soft partition keeps its units busy.
constexpr std::uint64_t kItemsOfUnit = 2048;

constinit thread_local PartitionImpl* t_partition = nullptr;

bool splits_by_counts(const DeviceRecord& device) {
  std::array<cl_device_partition_property, 16> kinds{};
  std::size_t bytes = 0;
  if (clGetDeviceInfo(device.id, CL_DEVICE_PARTITION_PROPERTIES, sizeof kinds, kinds.data(), &bytes) != CL_SUCCESS) return false;
  const auto end = kinds.begin() + static_cast<std::ptrdiff_t>(std::min(bytes / sizeof kinds[0], kinds.size()));
  return std::find(kinds.begin(), end, CL_DEVICE_PARTITION_BY_COUNTS) != end;
}

/// Cores that some thread of this process may not leave, each counted once: what a driver leaves of a pool with a core for each thread.
std::size_t pinned_cores() {
  std::set<std::string> cores;
  std::error_code failed;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", failed)) {
    std::ifstream file(thread.path() / "status");
    constexpr std::string_view kKey = "Cpus_allowed_list:\t";
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(kKey) && line.find_first_of(",-") == std::string::npos) cores.insert(line.substr(kKey.size()));
  }
  return cores.size();
}

/// Whether the driver has a thread on each of so many cores. Its threads pin themselves as they start, so that the first look may come before some of them.
bool has_pinned(int units) {
  if (!std::filesystem::exists("/proc/self/task")) return true;
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongest(100), kStep(1);
  for (const Clock::time_point end = Clock::now() + kLongest;; std::this_thread::sleep_for(kStep)) {
    if (pinned_cores() >= static_cast<std::size_t>(units)) return true;
    if (Clock::now() >= end) return false;
  }
}

int units_of(const DeviceRecord& device) { return claimed_traits(device).compute_units; }

/// Sub-devices of these numbers of units, in order; empty if the driver refuses.
std::vector<cl_device_id> split_by_counts(cl_device_id device, const std::vector<int>& counts) {
  std::vector<cl_device_partition_property> wanted{CL_DEVICE_PARTITION_BY_COUNTS};
  for (const int count : counts) wanted.push_back(count);
  wanted.push_back(CL_DEVICE_PARTITION_BY_COUNTS_LIST_END), wanted.push_back(0);
  std::vector<cl_device_id> made(counts.size());
  cl_uint number = 0;
  if (clCreateSubDevices(device, wanted.data(), static_cast<cl_uint>(made.size()), made.data(), &number) != CL_SUCCESS || number != made.size()) return {};
  return made;
}

void halve(const SubDevice& whole, int times, std::vector<SubDevice>& into) {
  if (times == 0 || whole.units.count < 2) return;
  const int second = whole.units.count / 2, first = whole.units.count - second;
  const std::vector<cl_device_id> halves = split_by_counts(whole.id, {first, second});
  if (halves.empty()) return;
  const SubDevice parts[] = {{{whole.units.first, first}, halves[0]}, {{whole.units.first + first, second}, halves[1]}};
  for (const SubDevice& part : parts) {
    into.push_back(part);
    halve(part, times - 1, into);
  }
}

}  // namespace

std::vector<SubDevice> named_sub_devices(const DeviceRecord& device) {
  std::vector<SubDevice> all;
  if (!(claimed_traits(device).quirks & kQuirkSubDevicesUnnamed) && splits_by_counts(device)) halve({{0, units_of(device)}, device.id}, kHalvings, all);
  return all;
}

std::vector<UnitAccount::Unit>& UnitAccount::settled() {
  if (units_.empty()) units_.resize(static_cast<std::size_t>(units_of(device_)));
  for (Unit& unit : units_)
    if (unit.ends && std::all_of(unit.ends->begin(), unit.ends->end(), [](const ClEvent& end) { return is_done(end.get()); })) unit.ends.reset();
  return units_;
}

bool UnitAccount::is_free(const UnitRange& units) const {
  return std::all_of(units_.begin() + units.first, units_.begin() + units.end(), [](const Unit& unit) { return unit.is_free(); });
}

int UnitAccount::free() {
  std::lock_guard lock(mutex_);
  const std::vector<Unit>& all = settled();
  return static_cast<int>(std::count_if(all.begin(), all.end(), [](const Unit& unit) { return unit.is_free(); }));
}

cl_device_id UnitAccount::sub_device(const UnitRange& units) {
  for (const SubDevice& known : made_)
    if (known.units == units) return known.id;
  std::vector<int> counts;
  for (const int count : {units.first, units.count, units_of(device_) - units.end()})
    if (count > 0) counts.push_back(count);
  const std::vector<cl_device_id> parts = split_by_counts(device_.id, counts);
  if (parts.empty()) return nullptr;
  int first = 0;
  for (std::size_t i = 0; i < parts.size(); first += counts[i++])
    if (std::none_of(made_.begin(), made_.end(), [&](const SubDevice& known) { return known.units == UnitRange{first, counts[i]}; }))
      made_.push_back({{first, counts[i]}, parts[i]});
    else
      clReleaseDevice(parts[i]);
  return sub_device(units);
}

UnitAccount::Taken UnitAccount::take_one(int number, bool soft) {
  Taken result;
  if (!soft && !named_.empty()) {
    const SubDevice* best = nullptr;
    for (const SubDevice& part : named_)
      if (part.units.count >= number && is_free(part.units) && (!best || part.units.count < best->units.count)) best = &part;
    if (best) return {best->units, best->id};
  }
  const int all = static_cast<int>(units_.size());
  for (UnitRange range{0, number}; range.end() <= all && result.units.count == 0; ++range.first)
    if (is_free(range)) result.units = range;
  // All units are the device itself.
  if (result.units.count > 0 && !soft && number < all && named_.empty() && (claimed_traits(device_).quirks & kQuirkSubDevicesUnnamed))
    result.sub_device = sub_device(result.units);
  return result;
}

std::vector<UnitAccount::Taken> UnitAccount::take(std::span<const int> numbers, bool soft, std::string_view op) {
  std::lock_guard lock(mutex_);
  const std::vector<Unit> before = settled();
  std::vector<Taken> result;
  for (const int number : numbers) {
    Taken one = take_one(number, soft);
    if (one.units.count == 0) {
      units_ = before;
      const auto free = std::count_if(before.begin(), before.end(), [](const Unit& unit) { return unit.is_free(); });
      const std::int64_t wanted = std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
      throw Error(ErrorCode::invalid_argument, op,
                  fmt::format("partitions must have at most the units that no other one has, side by side: {} of {} are free on device {}, got {}", free,
                              before.size(), device_.index, wanted));
    }
    std::fill(units_.begin() + one.units.first, units_.begin() + one.units.end(), Unit{.is_taken = true});
    result.push_back(one);
  }
  return result;
}

void UnitAccount::give_back(const UnitRange& units, std::vector<ClEvent> ends) noexcept {
  std::lock_guard lock(mutex_);
  Unit given;
  if (!ends.empty()) given.ends = std::make_shared<const std::vector<ClEvent>>(std::move(ends));
  std::fill(units_.begin() + units.first, units_.begin() + units.end(), given);
}

PartitionImpl::PartitionImpl(Runtime& runtime, const UnitAccount::Taken& taken, const PartitionOptions& options)
    : runtime_(runtime), taken_(taken), whole_(options.units == 0), limit_(options.workqueue_limit) {}

PartitionImpl::~PartitionImpl() {
  if (!whole_) runtime_.units().give_back(taken_.units, std::move(ends_));
}

cl_device_id PartitionImpl::device() const noexcept { return taken_.sub_device ? taken_.sub_device : runtime_.device().id; }

Isolation PartitionImpl::isolation() const {
  if (!taken_.sub_device || (claimed_traits(runtime_.device()).quirks & kQuirkQueuesTakeTurns)) return Isolation::none;
  if (!runtime_.device().pins_threads) return Isolation::threads;
  // The variable may have been set after another library started the driver, which has read it then.
  static const bool pinned = has_pinned(units_of(runtime_.device()));
  return pinned ? Isolation::cores : Isolation::threads;
}

const DeviceTraits& PartitionImpl::traits() {
  std::call_once(traits_once_, [&] {
    traits_ = tested_traits(runtime_.device());
    traits_.compute_units = taken_.units.count;
  });
  return traits_;
}

std::shared_ptr<PartitionImpl::StreamHolder> PartitionImpl::stream_holder() {
  std::lock_guard lock(holder_mutex_);
  std::shared_ptr<StreamHolder> holder = holder_.lock();
  if (!holder) holder_ = holder = std::make_shared<StreamHolder>();
  return holder;
}

Geometry PartitionImpl::within_units(const Geometry& geometry) const noexcept {
  if (taken_.sub_device || whole_) return geometry;
  Geometry result = geometry;
  const std::uint64_t local = std::max<std::uint64_t>(geometry.local, 1), units = static_cast<std::uint64_t>(taken_.units.count);
  const std::uint64_t groups = runtime_.device().facts.type == DeviceType::cpu ? units : units * std::max<std::uint64_t>(kItemsOfUnit / local, 1);
  result.global = std::min(geometry.global, groups * local);
  return result;
}

std::unique_lock<std::mutex> PartitionImpl::turn_of(StreamImpl& stream) {
  if (limit_ == 0) return {};
  std::unique_lock lock(slots_mutex_);
  ++commands_;
  for (Slot& slot : slots_)
    if (slot.stream == stream.id()) {
      slot.used = commands_;
      return lock;
    }
  const Slot mine{stream.id(), stream.weak_from_this(), stream.end(), commands_};
  if (static_cast<int>(slots_.size()) < limit_) {
    slots_.push_back(mine);
    return lock;
  }
  // A stream without work, else the one whose last command is the oldest. One that is gone may still have work.
  Slot* chosen = nullptr;
  std::shared_ptr<StreamImpl> holder;
  for (Slot& slot : slots_) {
    std::shared_ptr<StreamImpl> of_slot = slot.impl.lock();
    const bool idle = of_slot ? of_slot->idle() : slot.end->over();
    if (!chosen || idle || slot.used < chosen->used) chosen = &slot, holder = std::move(of_slot);
    if (idle) break;
  }
  if (const ClEvent end = holder ? holder->last() : chosen->end->mark()) stream.wait_for(end.get(), "Partition", chosen->stream);
  *chosen = mine;
  return lock;
}

void PartitionImpl::stream_ends(ClEvent end) {
  std::lock_guard lock(ends_mutex_);
  std::erase_if(ends_, [](const ClEvent& one) { return is_done(one.get()); });
  ends_.push_back(std::move(end));
}

PartitionImpl* current_partition() noexcept { return t_partition; }

namespace {

constexpr const char* kCreate = "Partition::create";

PartitionImpl& need(const std::shared_ptr<PartitionImpl>& impl, std::string_view op) {
  if (!impl) throw Error(ErrorCode::invalid_argument, op, "the Partition must be a made one, got an empty one");
  return *impl;
}

std::vector<Partition> make(const Device& device, std::span<const int> units, const PartitionOptions& options, std::string_view op) {
  Runtime& runtime = runtime_for(device);
  std::vector<Partition> result;
  std::vector<UnitAccount::Taken> taken = runtime.units().take(units, options.soft, op);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    PartitionOptions of_one = options;
    of_one.units = units[i];
    result.emplace_back(std::make_shared<PartitionImpl>(runtime, taken[i], of_one));
  }
  runtime.has_partitions();
  return result;
}

}  // namespace
}  // namespace detail

std::string_view name(Isolation isolation) noexcept {
  switch (isolation) {
    case Isolation::threads: return "threads";
    case Isolation::cores: return "cores";
    case Isolation::none: break;
  }
  return "none";
}

Partition::Partition(std::shared_ptr<detail::PartitionImpl> impl) : impl_(std::move(impl)), stream_(impl_ ? impl_->stream_holder() : nullptr) {}

Partition Partition::create(const Device& device, const PartitionOptions& options) {
  detail::OpName named(detail::kCreate);
  if (options.units < 0 || options.workqueue_limit < 0 || (options.units == 0 && options.workqueue_limit == 0))
    throw Error(ErrorCode::invalid_argument, detail::kCreate,
                fmt::format("units and workqueue_limit must be 0 or more and not both 0, got {} and {}", options.units, options.workqueue_limit));
  if (options.units > 0) return detail::make(device, std::span(&options.units, 1), options, detail::kCreate).front();
  detail::Runtime& runtime = detail::runtime_for(device);
  const detail::UnitAccount::Taken all{{0, detail::claimed_traits(runtime.device()).compute_units}, nullptr};
  Partition made(std::make_shared<detail::PartitionImpl>(runtime, all, options));
  runtime.has_partitions();
  return made;
}

std::vector<Partition> Partition::split(const Device& device, std::span<const int> units) {
  constexpr const char* kOp = "Partition::split";
  detail::OpName named(kOp);
  for (const int number : units)
    if (number <= 0) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("units of a partition must be 1 or more, got {}", number));
  return detail::make(device, units, {}, kOp);
}

Device Partition::device() const { return Device(&detail::need(impl_, "Partition::device").runtime().device()); }
int Partition::units() const { return detail::need(impl_, "Partition::units").units().count; }
int Partition::first_unit() const { return detail::need(impl_, "Partition::first_unit").units().first; }
Isolation Partition::isolation() const { return detail::need(impl_, "Partition::isolation").isolation(); }
int Partition::workqueue_limit() const { return detail::need(impl_, "Partition::workqueue_limit").workqueue_limit(); }

const DeviceTraits& Partition::traits() const {
  detail::OpName named("Partition::traits");
  return detail::need(impl_, "Partition::traits").traits();
}

Stream Partition::stream() const {
  detail::OpName named("Partition::stream");
  detail::need(impl_, "Partition::stream");
  auto& holder = *static_cast<detail::PartitionImpl::StreamHolder*>(stream_.get());
  std::lock_guard lock(holder.mutex);
  if (!holder.stream) holder.stream = impl_->runtime().make_stream(StreamPriority::normal, impl_);
  return Stream(holder.stream);
}

Stream Partition::make_stream(const StreamOptions& options) const {
  detail::OpName named("Partition::make_stream");
  return Stream(detail::need(impl_, "Partition::make_stream").runtime().make_stream(options.priority, impl_));
}

int free_units(const Device& device) {
  detail::OpName named("free_units");
  return detail::runtime_for(device).units().free();
}

PartitionGuard::PartitionGuard(const Partition& partition)
    : stream_((detail::need(partition.impl(), "PartitionGuard"), partition.stream())),
      partition_(partition.impl()),
      former_(std::exchange(detail::t_partition, partition.impl().get())) {}

PartitionGuard::~PartitionGuard() { detail::t_partition = former_; }

}}  // namespace clutch::v0
