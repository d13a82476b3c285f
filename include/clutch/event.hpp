// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/stream.hpp>

#include <memory>

namespace clutch { inline namespace v0 {

namespace detail {
class EventImpl;
}

/// A point in a stream's work. A cheap value: copies share the point. An event that was never recorded counts as done.
class CLUTCH_API Event {
 public:
  Event() = default;

  /// Marks the work enqueued so far on the stream (empty: the current stream) and flushes it.
  void record(const Stream& stream = {});
  bool recorded() const noexcept { return impl_ != nullptr; }
  /// True when the marked work has finished. Never waits. Errors: stream_failed.
  bool query() const;
  /// Waits for the marked work. Errors: stream_failed.
  void wait() const;

  const std::shared_ptr<detail::EventImpl>& impl() const noexcept { return impl_; }
  explicit Event(std::shared_ptr<detail::EventImpl> impl) noexcept : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<detail::EventImpl> impl_;
};

/// Milliseconds of device time between two recorded and finished events; waits for both.
/// Errors: invalid_argument if one was not recorded or both are not of one device; not_supported without a usable
///   timer.
CLUTCH_API double elapsed_ms(const Event& start, const Event& end);

}}  // namespace clutch::v0
