// SPDX-License-Identifier: Apache-2.0
// Functions that a group calls for its calls.
#pragma once
#include <clutch/dist.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

class Hooks;

/// A function, until its Hook ends. One thread calls it at a time.
struct HookState {
  std::shared_ptr<Hooks> of;
  std::function<void(const CallInfo&)> on_call = {};
  std::function<void(const CallInfo&, Work::Status)> on_done = {};
  std::function<void()> on_abort = {};
  std::recursive_mutex running = {};  ///< recursive: a function may end its own Hook
  bool has_ended = false;
  bool is_told = false;  ///< on_abort was called
};

class Hooks : public std::enable_shared_from_this<Hooks> {
 public:
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
  void add(const std::shared_ptr<HookState>& state);
  /// Waits for the function where another thread runs it.
  void remove(HookState& state);
  void called(const CallInfo& info) noexcept;
  void done(const CallInfo& info, Work::Status status) noexcept;
  void aborted() noexcept;
  static void aborted(HookState& state) noexcept;

 private:
  std::vector<std::shared_ptr<HookState>> all() const;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<HookState>> states_;
  std::atomic<std::size_t> count_{0};
};

}}}}  // namespace clutch::v0::dist::detail
