// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/stream.hpp>

#include "runtime/cl_api.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace clutch::inline v0::detail {

class Runtime;
class Program;

/// What a stream knows of other streams' progress: for each stream id the last ticket ordered before here. Kept only
/// under CLUTCH_CHECK_STREAMS.
struct Clock {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::uint64_t of(std::uint64_t stream) const;
  void raise(std::uint64_t stream, std::uint64_t ticket);
  void merge(const Clock& other);
};

class StreamImpl {
 public:
  StreamImpl(Runtime& runtime, ClQueue queue, StreamPriority priority, bool wrapped);
  ~StreamImpl();
  StreamImpl(const StreamImpl&) = delete;
  StreamImpl& operator=(const StreamImpl&) = delete;

  Runtime& runtime() const noexcept { return runtime_; }
  cl_command_queue queue() const noexcept { return queue_.get(); }
  std::uint64_t id() const noexcept { return id_; }
  StreamPriority priority() const noexcept { return priority_; }
  bool wrapped() const noexcept { return wrapped_; }

  /// Throws the sticky failure, if there is one.
  void check(std::string_view op) const {
    if (failed_.load(std::memory_order_acquire)) [[unlikely]]
      throw_sticky(op);
  }
  /// Takes over the event of a command of `op`; `keep` lives until the command is done.
  void submitted(ClEvent event, const char* op, std::shared_ptr<void> keep = {});
  /// Lets a program be saved to disk when this stream is next known to be idle.
  void save_when_idle(Program* program);

  bool query();
  void synchronize(std::string_view op);
  void reset();
  /// A marker after all work so far; null if the queue fails.
  ClEvent mark(std::string_view op);

  std::uint64_t next_ticket() noexcept { return ticket_.fetch_add(1, std::memory_order_relaxed) + 1; }
  std::uint64_t ticket() const noexcept { return ticket_.load(std::memory_order_relaxed); }
  Clock clock() const;
  void learn(const Clock& other);

 private:
  struct InFlight {
    ClEvent event;
    const char* op;
    std::shared_ptr<void> keep;
  };
  [[noreturn]] void throw_sticky(std::string_view op) const;
  void fail(cl_int status, const char* op);
  /// Retires finished commands from the front; at most `most` of them.
  void retire(std::size_t most, std::vector<std::shared_ptr<void>>& done);

  Runtime& runtime_;
  ClQueue queue_;
  std::uint64_t id_;
  StreamPriority priority_;
  bool wrapped_;
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::deque<InFlight> flight_;
  std::uint64_t retired_ = 0;  // commands that left flight_ so far
  std::vector<Program*> to_save_;
  std::optional<Error> sticky_;
  Clock clock_;
};

class EventImpl {
 public:
  EventImpl(Runtime& of, ClEvent raw) : runtime(of), event(std::move(raw)) {}
  Runtime& runtime;
  ClEvent event;
  Clock clock;
  std::uint64_t stream = 0;
};

/// The stream a call runs on: the given one, else this thread's current stream of the runtime. Errors: device_mismatch if
/// the given one is of another runtime.
Stream resolve_stream(const Stream& stream, Runtime& runtime, std::string_view op);

}  // namespace clutch::inline v0::detail
