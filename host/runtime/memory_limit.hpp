// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// What CLUTCH_MEMORY_LIMIT says: bytes, a fraction of what there is, or (neither) no limit.
struct MemoryLimitText {
  std::optional<std::uint64_t> bytes;
  std::optional<double> fraction;
};
/// False unless the text is a number of bytes, with K, M or G behind it or not, a fraction above 0 up to 1 with a point in it, or 0.
bool parse_memory_limit(std::string_view text, MemoryLimitText& limit);

/// A limit on the bytes that the pools of one memory hold. Those of the host's memory share one.
class MemoryLimit {
 public:
  /// `device_bytes`: what the device has; 0: the host's memory, whose limit depends on what the system has left when it is asked.
  MemoryLimit(std::uint64_t device_bytes, MemoryLimitText limit) : device_bytes_(device_bytes), limit_(limit) {}

  /// Notes `bytes` more as held, if the limit allows them.
  bool take(std::uint64_t bytes);
  /// Notes `bytes` more as held, whatever the limit.
  void add(std::uint64_t bytes) noexcept;
  /// Notes `bytes` as no longer held.
  void give(std::uint64_t bytes) noexcept;
  /// Errors: invalid_argument, as set_memory_limit() and set_per_process_memory_fraction(); the limit is as before then.
  void set(MemoryLimitText limit, std::string_view op);
  /// Gives all memories AllocatorSettings::per_process_memory_fraction as their limit, until the next set(); with 1 those that set() or CLUTCH_MEMORY_LIMIT
  /// gave them hold again. Errors: invalid_argument if a memory holds more; all limits are as before then.
  static void set_by_settings(double fraction, std::string_view op);
  /// Bytes that may be held in all now; UINT64_MAX without limit.
  std::uint64_t allowed();
  std::uint64_t held() const;
  /// What the limit is now.
  MemoryLimitText limit() const;
  /// What the limit is, for an Error.
  std::string to_text();

  /// The limit of the host's memory, as CLUTCH_MEMORY_LIMIT gives it at first use. Errors: invalid_setting.
  static const std::shared_ptr<MemoryLimit>& of_host();
  /// The limit of a device's own memory, which has none by default. Errors: invalid_setting.
  static std::shared_ptr<MemoryLimit> of_device(std::uint64_t bytes);

 private:
  static std::shared_ptr<MemoryLimit> make(std::uint64_t device_bytes, MemoryLimitText limit);
  MemoryLimitText in_force() const { return by_settings_ ? MemoryLimitText{.fraction = by_settings_} : limit_; }
  std::uint64_t allowed_locked(MemoryLimitText limit) const;
  /// Errors: invalid_argument if more is held than `limit` allows; `whose`: which one it is.
  void check_locked(MemoryLimitText limit, std::string_view op, const std::string& whose) const;

  mutable std::mutex mutex_;
  const std::uint64_t device_bytes_;
  MemoryLimitText limit_;
  std::optional<double> by_settings_;  ///< in place of `limit_`
  std::uint64_t held_ = 0;
  std::uint64_t asked_ = 0;  ///< bytes up to which the system was asked: they may be held without asking it again
};

}}}  // namespace clutch::v0::detail
