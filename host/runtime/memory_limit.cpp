// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_limit.hpp"

#include <clutch/error.hpp>

#include "runtime/settings.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

std::uint64_t part_of(std::uint64_t bytes, double fraction) { return static_cast<std::uint64_t>(static_cast<double>(bytes) * fraction); }

MemoryLimitText limit_of_environment() {
  MemoryLimitText limit;
  parse_memory_limit(the_settings().memory_limit.value, limit);
  return limit;
}

}  // namespace

bool parse_memory_limit(std::string_view text, MemoryLimitText& limit) {
  limit = {};
  if (text.find('.') == std::string_view::npos) {
    const auto bytes = parse_size(text);
    if (bytes) limit.bytes = *bytes;
    return bytes.has_value();
  }
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit.fraction);
  return error == std::errc() && end == text.data() + text.size() && limit.fraction > 0 && limit.fraction <= 1;
}

std::uint64_t MemoryLimit::allowed_locked(MemoryLimitText limit) const {
  if (limit.bytes > 0) return limit.bytes;
  if (limit.fraction <= 0) return kNone;
  if (device_bytes_ > 0) return part_of(device_bytes_, limit.fraction);
  const HostMemory now = host_memory();
  if (!now.available) return kNone;
  // What is held and has been touched is no longer among what is available; other memory of the process is not counted.
  return part_of(*now.available + std::min(held_, now.resident), limit.fraction);
}

bool MemoryLimit::take(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > kNone - held_) return false;
  if (held_ + bytes > asked_) {
    const std::uint64_t allowed = allowed_locked(limit_);
    if (held_ + bytes > allowed) return false;
    // Asking takes long as allocations go, and other programs take memory meanwhile: not for each, and again when a sixteenth of the rest is used.
    asked_ = limit_.bytes > 0 || device_bytes_ > 0 ? allowed : held_ + bytes + (allowed - held_ - bytes) / 16;
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
  if (limit_.bytes == 0 && device_bytes_ == 0) asked_ = std::min(asked_, held_);
}

void MemoryLimit::set(MemoryLimitText limit, std::string_view op) {
  std::lock_guard lock(mutex_);
  const std::uint64_t allowed = allowed_locked(limit);
  if (held_ > allowed)
    throw Error(ErrorCode::invalid_argument, op, fmt::format("the limit must be at least the {} bytes that are held, got {}", held_, allowed));
  limit_ = limit;
  asked_ = 0;
}

void MemoryLimit::force(MemoryLimitText limit) {
  std::lock_guard lock(mutex_);
  limit_ = limit;
  asked_ = 0;
}

std::uint64_t MemoryLimit::allowed() {
  std::lock_guard lock(mutex_);
  return allowed_locked(limit_);
}

std::uint64_t MemoryLimit::held() const {
  std::lock_guard lock(mutex_);
  return held_;
}

std::string MemoryLimit::to_text() {
  std::lock_guard lock(mutex_);
  const std::uint64_t allowed = allowed_locked(limit_);
  if (allowed == kNone) return "no limit is set";
  const std::string whose = device_bytes_ > 0 ? "the device" : "devices in the host's memory";
  return limit_.bytes > 0 ? fmt::format("{} may hold {} bytes (CLUTCH_MEMORY_LIMIT)", whose, allowed)
                          : fmt::format("{} may hold {} bytes, {} of what there is (CLUTCH_MEMORY_LIMIT)", whose, allowed, limit_.fraction);
}

const std::shared_ptr<MemoryLimit>& MemoryLimit::of_host() {
  static const auto* one = new std::shared_ptr<MemoryLimit>(std::make_shared<MemoryLimit>(0, limit_of_environment()));
  return *one;
}

std::shared_ptr<MemoryLimit> MemoryLimit::of_device(std::uint64_t bytes) {
  const bool given = the_settings().memory_limit.from_environment;
  return std::make_shared<MemoryLimit>(std::max<std::uint64_t>(bytes, 1), given ? limit_of_environment() : MemoryLimitText{});
}

}}}  // namespace clutch::v0::detail
