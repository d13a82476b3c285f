// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// While it lives, this thread's errors and enqueued work have the name of the public function that was called first: softmax, not the reductions that it
/// calls. Each public function that calls others declares one in its first line. `name` is a literal.
class OpName {
 public:
  explicit OpName(const char* name) noexcept;
  ~OpName();
  OpName(const OpName&) = delete;
  OpName& operator=(const OpName&) = delete;
  /// The name in force, else `own`.
  static const char* or_else(const char* own) noexcept;
  static std::string_view or_else(std::string_view own) noexcept;

 protected:
  struct Suspend {};
  explicit OpName(Suspend) noexcept;

 private:
  const char* former_;
};

/// While it lives, no name is in force: for calls of a caller's functions, and for errors of another call.
class NoOpName : OpName {
 public:
  NoOpName() noexcept : OpName(Suspend{}) {}
};

}}}  // namespace clutch::v0::detail
