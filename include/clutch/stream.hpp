// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

#include <cstdint>
#include <memory>

namespace clutch { inline namespace v0 {

class Event;
class Partition;
namespace detail {
class StreamImpl;
}

enum class StreamPriority : std::uint8_t { normal, low, high };

struct StreamOptions {
  StreamPriority priority = StreamPriority::normal;  ///< a hint; without cl_khr_priority_hints all are normal
};

/// An in-order queue of work on one device. A cheap value: copies share the queue. Empty means "this thread's current
/// stream of the inputs' device" to whom it is passed. Work on two streams is ordered by events, or by the host that
/// waits for one before it enqueues on the other. Threads may share a Stream. The queue lives as long as a handle of
/// it, or a tensor made on it: tensors that it merely used do not keep it, nor do any keep a partition's.
class CLUTCH_API Stream {
 public:
  Stream() = default;
  /// Creates a queue of its own on the device (empty: the current device). Errors: no_device, opencl.
  /// Within a PartitionGuard of that device the queue is the partition's.
  explicit Stream(const Device& device, const StreamOptions& options = {});

  bool empty() const noexcept { return impl_ == nullptr; }
  /// Errors: invalid_argument on an empty Stream (so for all below).
  Device device() const;
  /// Unique in the process.
  std::uint64_t id() const;
  StreamPriority priority() const;
  /// The partition that the stream was made for; empty if for none.
  Partition partition() const;
  /// True when all enqueued work has finished. Never waits. Errors: stream_failed, device_lost.
  bool query() const;
  /// Waits for all enqueued work, so that it tells of each failure; other calls tell of failures that they happen to
  /// see. Errors: stream_failed or device_lost, naming the first op that failed, or where few commands have events
  /// (quirk
  ///   events_cost) the first that may have been; sticks: all calls on the stream throw it until reset().
  void synchronize() const;
  /// Makes work enqueued from now on wait for the event. Waits on the host when the event is of another context.
  void wait(const Event& event) const;
  /// Hands enqueued work to the device without waiting.
  void flush() const;
  /// True while a graph records this stream. Never waits.
  bool is_capturing() const;
  /// Forgets a sticky failure, after draining the queue.
  void reset() const;

  friend bool operator==(const Stream& a, const Stream& b) noexcept { return a.impl_ == b.impl_; }
  const std::shared_ptr<detail::StreamImpl>& impl() const noexcept { return impl_; }
  explicit Stream(std::shared_ptr<detail::StreamImpl> impl) noexcept : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<detail::StreamImpl> impl_;
};

/// The stream every thread starts with on that device (empty: the current device).
CLUTCH_API Stream default_stream(const Device& device = {});
/// This thread's current stream of that device (empty: the current device).
CLUTCH_API Stream current_stream(const Device& device = {});
/// Makes a stream this thread's current one on its device and that device current. Errors: invalid_argument if empty.
CLUTCH_API void set_current_stream(const Stream& stream);

/// Makes a stream and its device current for this thread and restores what was; nests, the same stream too.
class CLUTCH_API StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  DeviceGuard device_;
  Stream former_;
  Device of_;
};

}}  // namespace clutch::v0
