// SPDX-License-Identifier: Apache-2.0
// The thread of a process that brings calls forward.
#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

class Task {
 public:
  virtual ~Task() = default;
  /// Goes on as far as it can without waiting, and must not throw. True once it has ended.
  virtual bool advance() noexcept = 0;
  /// True while it moves numbers that all ranks have, so that it soon ends.
  virtual bool ends_soon() const noexcept { return false; }
  /// True while only wake() can bring it forward, so that nobody needs to ask.
  virtual bool sleeps() const noexcept = 0;
};

/// Asks all tasks in turn, while there are any that do not sleep.
class Progress {
 public:
  static Progress& instance();
  void add(std::shared_ptr<Task> task);
  /// After an event that a sleeping task waits for.
  void wake() noexcept;
  /// True on the progress thread.
  static bool is_this_thread() noexcept;

 private:
  Progress() = default;
  void run();
  void stop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Task>> added_;
  bool woken_ = false, stops_ = false;
  std::thread thread_;
};

}}}}  // namespace clutch::v0::dist::detail
