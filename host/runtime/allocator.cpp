// SPDX-License-Identifier: Apache-2.0
#include <clutch/allocator.hpp>

#include "runtime/memory_report.hpp"
#include "runtime/op_name.hpp"
#include "runtime/pool.hpp"
#include "runtime/recorder.hpp"
#include "runtime/registry.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 {

namespace detail {

namespace {

thread_local PoolId t_pool{};
thread_local const std::string* t_label = nullptr;
thread_local bool t_in_callback = false;

/// What MemPools, callbacks and the recording of history leave for all runtimes to see.
struct Registered {
  std::mutex mutex;
  std::map<std::pair<std::uint64_t, std::uint64_t>, MemPoolOptions> pools;
  std::vector<std::weak_ptr<std::function<bool(const MemoryShortage&)>>> on_short;
  std::vector<std::weak_ptr<std::function<void(const MemoryShortage&)>>> on_failure;
  std::optional<MemoryHistoryOptions> history;
};
Registered& registered() {
  static auto* all = new Registered;
  return *all;
}

struct SettingsInUse {
  std::mutex mutex;
  std::optional<AllocatorSettings> set;  ///< by set_allocator_settings()
  std::atomic<std::uint64_t> version{0};
};
SettingsInUse& settings_in_use() {
  static auto* one = new SettingsInUse;
  return *one;
}

/// The functions that are registered now; those whose handle is gone are forgotten.
template <class Function>
std::vector<std::shared_ptr<Function>> alive(std::vector<std::weak_ptr<Function>>& list) {
  std::lock_guard lock(registered().mutex);
  std::vector<std::shared_ptr<Function>> all;
  std::erase_if(list, [&](const auto& weak) {
    auto function = weak.lock();
    if (!function) return true;
    all.push_back(std::move(function));
    return false;
  });
  return all;
}

template <class Function>
MemoryCallback add_callback(std::vector<std::weak_ptr<Function>>& list, Function function, const char* op) {
  if (!function) throw Error(ErrorCode::invalid_argument, op, "the function must be one that can be called, got an empty one");
  auto entry = std::make_shared<Function>(std::move(function));
  std::lock_guard lock(registered().mutex);
  list.push_back(entry);
  return MemoryCallback(std::move(entry));
}

/// While it lives, this thread's allocations call no functions.
struct InCallback {
  InCallback() { t_in_callback = true; }
  ~InCallback() { t_in_callback = false; }
};

std::uint64_t statistic(const Device& device, const char* key) {
  const auto stats = memory_stats(device);
  auto found = stats.find(key);
  return found == stats.end() ? 0 : found->second;
}

}  // namespace

PoolId current_pool() noexcept { return t_pool; }

MemPoolOptions pool_options(PoolId pool) {
  std::lock_guard lock(registered().mutex);
  auto found = registered().pools.find({pool.first, pool.second});
  return found == registered().pools.end() ? MemPoolOptions{} : found->second;
}

AllocatorSettings current_allocator_settings() {
  std::lock_guard lock(settings_in_use().mutex);
  return settings_in_use().set ? *settings_in_use().set : parse_allocator_settings(the_settings().alloc_conf.value);
}

std::uint64_t allocator_settings_version() noexcept { return settings_in_use().version.load(std::memory_order_acquire); }

std::string_view current_label(std::string_view op) noexcept { return t_label ? std::string_view(*t_label) : op; }

bool call_memory_short(const MemoryShortage& shortage) {
  if (t_in_callback) return false;
  const auto functions = alive(registered().on_short);
  const InCallback inside;
  bool freed = false;
  for (const auto& function : functions) freed = (*function)(shortage) || freed;
  return freed;
}

void call_out_of_memory(const MemoryShortage& shortage) {
  if (t_in_callback) return;
  const auto functions = alive(registered().on_failure);
  const InCallback inside;
  for (const auto& function : functions) (*function)(shortage);
}

std::optional<MemoryHistoryOptions> current_history() {
  std::lock_guard lock(registered().mutex);
  return registered().history;
}

}  // namespace detail

PoolId new_pool() {
  static std::atomic<std::uint64_t> next{1};
  return {0, next.fetch_add(1)};
}

MemPool::MemPool(const MemPoolOptions& options) : id_(new_pool()) {
  std::lock_guard lock(detail::registered().mutex);
  detail::registered().pools[{id_.first, id_.second}] = options;
}
MemPool::~MemPool() {
  {
    std::lock_guard lock(detail::registered().mutex);
    detail::registered().pools.erase({id_.first, id_.second});
  }
  detail::each_runtime([&](detail::Runtime& runtime) { runtime.pool().end_pool(id_); });
}

MemoryLabelGuard::MemoryLabelGuard(std::string label) : label_(std::move(label)), former_(std::exchange(detail::t_label, &label_)) {}
MemoryLabelGuard::~MemoryLabelGuard() { detail::t_label = former_; }

PoolGuard::PoolGuard(PoolId pool) : former_(detail::t_pool) { detail::t_pool = pool; }
PoolGuard::~PoolGuard() { detail::t_pool = former_; }

AllocatorSettings allocator_settings() { return detail::current_allocator_settings(); }

void set_allocator_settings(std::string_view text) {
  const detail::OpName name("set_allocator_settings");
  AllocatorSettings settings = detail::parse_allocator_settings(text);
  std::lock_guard lock(detail::settings_in_use().mutex);
  detail::MemoryLimit::set_by_settings(settings.per_process_memory_fraction, "set_allocator_settings");
  detail::settings_in_use().set = std::move(settings);
  detail::settings_in_use().version.fetch_add(1, std::memory_order_release);
}

std::map<std::string, std::uint64_t> memory_stats(const Device& device) { return detail::runtime_for(device).pool().stats(); }
std::map<std::string, std::uint64_t> memory_stats(PoolId pool, const Device& device) { return detail::runtime_for(device).pool().stats(pool); }
std::map<std::string, LabelStats> memory_stats_by_label(const Device& device) { return detail::runtime_for(device).pool().stats_by_label(); }
std::uint64_t memory_allocated(const Device& device) { return detail::statistic(device, "allocated_bytes.all.current"); }
std::uint64_t max_memory_allocated(const Device& device) { return detail::statistic(device, "allocated_bytes.all.peak"); }
std::uint64_t memory_reserved(const Device& device) { return detail::statistic(device, "reserved_bytes.all.current"); }
std::uint64_t max_memory_reserved(const Device& device) { return detail::statistic(device, "reserved_bytes.all.peak"); }

void reset_peak_memory_stats(const Device& device) { detail::runtime_for(device).pool().reset_peaks(); }
void reset_accumulated_memory_stats(const Device& device) { detail::runtime_for(device).pool().reset_accumulated(); }

void empty_cache(const Device& device) {
  if (!detail::illegal_beside("empty_cache")) detail::runtime_for(device).pool().trim();
}

MemoryInfo get_memory_info(const Device& device) {
  detail::Runtime& runtime = detail::runtime_for(device);
  detail::MemoryLimit& limit = runtime.pool().limit();
  const std::uint64_t total = std::min(limit.allowed(), detail::claimed_traits(runtime.device()).global_bytes);
  return {.free = total - std::min(total, limit.held()), .total = total};
}

void set_memory_limit(std::uint64_t bytes, const Device& device) {
  if (bytes == 0) throw Error(ErrorCode::invalid_argument, "set_memory_limit", "the limit must be at least 1 byte, got 0");
  detail::runtime_for(device).pool().limit().set({.bytes = bytes}, "set_memory_limit");
}

void set_per_process_memory_fraction(double fraction, const Device& device) {
  constexpr const char* kOp = "set_per_process_memory_fraction";
  if (!(fraction >= 0 && fraction <= 1)) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("the fraction must be from 0 to 1, got {}", fraction));
  detail::MemoryLimitText limit{.fraction = fraction};
  if (fraction == 1) limit = {};
  detail::runtime_for(device).pool().limit().set(limit, kOp);
}

double get_per_process_memory_fraction(const Device& device) {
  detail::Runtime& runtime = detail::runtime_for(device);
  const detail::MemoryLimitText limit = runtime.pool().limit().limit();
  if (!limit.bytes) return limit.fraction.value_or(1);
  const std::uint64_t total = detail::claimed_traits(runtime.device()).global_bytes;
  return total == 0 ? 1 : std::min(1.0, static_cast<double>(*limit.bytes) / static_cast<double>(total));
}

MemoryCallback on_memory_short(std::function<bool(const MemoryShortage&)> release) {
  return detail::add_callback(detail::registered().on_short, std::move(release), "on_memory_short");
}

MemoryCallback on_out_of_memory(std::function<void(const MemoryShortage&)> observe) {
  return detail::add_callback(detail::registered().on_failure, std::move(observe), "on_out_of_memory");
}

std::uint64_t memory_address(const Tensor& tensor) {
  constexpr const char* kOp = "memory_address";
  const detail::Storage& storage = detail::storage_of(tensor, kOp);
  detail::check_placed(storage, kOp);
  const detail::Block* block = storage.block();
  if (!block) throw Error(ErrorCode::invalid_argument, kOp, "the memory must be the allocator's, got a wrapped buffer");
  return block->segment->address + block->offset + tensor.byte_offset();
}

void record_memory_history(const MemoryHistoryOptions& options) {
  if (options.max_entries == 0) throw Error(ErrorCode::invalid_argument, "record_memory_history", "max_entries must be at least 1, got 0");
  {
    std::lock_guard lock(detail::registered().mutex);
    detail::registered().history = options;
  }
  detail::each_runtime([&](detail::Runtime& runtime) { runtime.pool().begin_history(options); });
}

void stop_memory_history() {
  {
    std::lock_guard lock(detail::registered().mutex);
    detail::registered().history.reset();
  }
  detail::each_runtime([](detail::Runtime& runtime) { runtime.pool().end_history(); });
}

MemorySnapshot memory_snapshot() {
  MemorySnapshot snapshot{.settings = allocator_settings()};
  int adopted = static_cast<int>(detail::registry().records.size());  // contexts of callers follow as further devices
  snapshot.device_traces.resize(static_cast<std::size_t>(adopted));
  detail::each_runtime([&](detail::Runtime& runtime) { runtime.pool().snapshot(runtime.adopted() ? adopted++ : runtime.device().index, snapshot); });
  return snapshot;
}

void dump_memory_snapshot(const std::string& path) {
  const detail::OpName name("dump_memory_snapshot");
  const MemorySnapshot snapshot = memory_snapshot();
  const std::string text = path.ends_with(".html") ? detail::page_of(snapshot) : detail::pickle_of(snapshot);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  if (const std::string failed = detail::replace_file(path, {{bytes}}, 0644); !failed.empty())
    throw Error(ErrorCode::io, "dump_memory_snapshot", fmt::format("the file must be writable, got an error: {}", failed));
}

}}  // namespace clutch::v0
