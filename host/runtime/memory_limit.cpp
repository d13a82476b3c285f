// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_limit.hpp"

#include <clutch/error.hpp>

#include "runtime/allocator_config.hpp"
#include "runtime/settings.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

std::uint64_t part_of(std::uint64_t bytes, double fraction) { return static_cast<std::uint64_t>(static_cast<double>(bytes) * fraction); }

MemoryLimitText limit_of_environment() {
  MemoryLimitText limit;
  parse_memory_limit(the_settings().memory_limit.value, limit);
  return limit;
}

/// All limits, and what the settings of the allocator say of them.
struct Limits {
  std::mutex mutex;  ///< before those of limits
  std::vector<std::weak_ptr<MemoryLimit>> all;
  std::optional<double> fraction;  ///< of the last set_by_settings(); without one CLUTCH_ALLOC_CONF's holds
};
Limits& limits() {
  static auto* one = new Limits;
  return *one;
}

/// 1 means that the settings set no limit.
std::optional<double> limit_by_settings(double fraction) { return fraction < 1 ? std::optional(fraction) : std::nullopt; }

}  // namespace

bool parse_memory_limit(std::string_view text, MemoryLimitText& limit) {
  limit = {};
  if (text.find('.') == std::string_view::npos) {
    const auto bytes = parse_size(text);
    if (bytes && *bytes > 0) limit.bytes = bytes;
    return bytes.has_value();
  }
  double fraction = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fraction);
  limit.fraction = fraction;
  return error == std::errc() && end == text.data() + text.size() && fraction > 0 && fraction <= 1;
}

std::uint64_t MemoryLimit::allowed_locked(MemoryLimitText limit) const {
  if (limit.bytes) return *limit.bytes;
  if (!limit.fraction) return kNone;
  if (*limit.fraction == 0) return 0;  // also where nobody says what there is
  if (device_bytes_ > 0) return part_of(device_bytes_, *limit.fraction);
  const HostMemory now = host_memory();
  if (!now.available) return kNone;
  // What is held and has been touched is no longer among what is available; other memory of the process is not counted.
  return part_of(*now.available + std::min(held_, now.resident), *limit.fraction);
}

bool MemoryLimit::take(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > kNone - held_) return false;
  if (held_ + bytes > asked_) {
    const MemoryLimitText limit = in_force();
    const std::uint64_t allowed = allowed_locked(limit);
    if (held_ + bytes > allowed) return false;
    // Asking takes long as allocations go, and other programs take memory meanwhile: not for each, and again when a sixteenth of the rest is used.
    asked_ = limit.bytes || device_bytes_ > 0 ? allowed : held_ + bytes + (allowed - held_ - bytes) / 16;
  }
  held_ += bytes;
  return true;
}

void MemoryLimit::add(std::uint64_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  held_ += bytes;
}

void MemoryLimit::give(std::uint64_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  held_ -= bytes;
  if (!in_force().bytes && device_bytes_ == 0) asked_ = std::min(asked_, held_);
}

void MemoryLimit::check_locked(MemoryLimitText limit, std::string_view op, const std::string& whose) const {
  const std::uint64_t allowed = allowed_locked(limit);
  if (held_ > allowed)
    throw Error(ErrorCode::invalid_argument, op, fmt::format("the limit{} must be at least the {} bytes that are held, got {}", whose, held_, allowed));
}

void MemoryLimit::set(MemoryLimitText limit, std::string_view op) {
  std::lock_guard lock(mutex_);
  check_locked(limit, op, "");
  limit_ = limit;
  by_settings_.reset();
  asked_ = 0;
}

void MemoryLimit::set_by_settings(double fraction, std::string_view op) {
  const std::optional<double> wanted = limit_by_settings(fraction);
  std::vector<std::shared_ptr<MemoryLimit>> changed;
  std::vector<std::unique_lock<std::mutex>> locks;  // after what it locks
  std::lock_guard lock(limits().mutex);
  std::erase_if(limits().all, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : limits().all) {
    std::shared_ptr<MemoryLimit> limit = weak.lock();
    if (!limit) continue;
    std::unique_lock own(limit->mutex_);
    if (limit->by_settings_ == wanted) continue;
    limit->check_locked(wanted ? MemoryLimitText{.fraction = wanted} : limit->limit_, op,
                        wanted ? fmt::format(" of per_process_memory_fraction:{}", fraction) : " without per_process_memory_fraction");
    locks.push_back(std::move(own));
    changed.push_back(std::move(limit));
  }
  for (const auto& limit : changed) {
    limit->by_settings_ = wanted;
    limit->asked_ = 0;
  }
  limits().fraction = fraction;
}

std::uint64_t MemoryLimit::allowed() {
  std::lock_guard lock(mutex_);
  return allowed_locked(in_force());
}

std::uint64_t MemoryLimit::held() const {
  std::lock_guard lock(mutex_);
  return held_;
}

MemoryLimitText MemoryLimit::limit() const {
  std::lock_guard lock(mutex_);
  return in_force();
}

std::string MemoryLimit::to_text() {
  std::lock_guard lock(mutex_);
  const MemoryLimitText limit = in_force();
  const std::uint64_t allowed = allowed_locked(limit);
  if (allowed == kNone) return "no limit is set";
  const std::string whose = device_bytes_ > 0 ? "the device" : "devices in the host's memory";
  if (limit.bytes) return fmt::format("{} may hold {} bytes (CLUTCH_MEMORY_LIMIT)", whose, allowed);
  return fmt::format("{} may hold {} bytes, {} of what there is ({})", whose, allowed, *limit.fraction,
                     by_settings_ ? "per_process_memory_fraction" : "CLUTCH_MEMORY_LIMIT");
}

std::shared_ptr<MemoryLimit> MemoryLimit::make(std::uint64_t device_bytes, MemoryLimitText limit) {
  auto made = std::make_shared<MemoryLimit>(device_bytes, limit);
  std::lock_guard lock(limits().mutex);
  made->by_settings_ =
      limit_by_settings(limits().fraction ? *limits().fraction : parse_allocator_settings(the_settings().alloc_conf.value).per_process_memory_fraction);
  limits().all.push_back(made);
  return made;
}

const std::shared_ptr<MemoryLimit>& MemoryLimit::of_host() {
  static const auto* one = new std::shared_ptr<MemoryLimit>(make(0, limit_of_environment()));
  return *one;
}

std::shared_ptr<MemoryLimit> MemoryLimit::of_device(std::uint64_t bytes) {
  const bool given = the_settings().memory_limit.from_environment;
  return make(std::max<std::uint64_t>(bytes, 1), given ? limit_of_environment() : MemoryLimitText{});
}

}}}  // namespace clutch::v0::detail
