// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// While an OpName lives, this thread's errors and enqueued work carry the name of the outermost public function (softmax, not the reductions that softmax
/// calls). Each public function that calls others declares an OpName in its first line. `name` is a literal.
class OpName {
 public:
  explicit OpName(const char* name) noexcept;
  ~OpName();
  OpName(const OpName&) = delete;
  OpName& operator=(const OpName&) = delete;
  /// Returns the name in force, or `own` if there is none.
  static const char* or_else(const char* own) noexcept;
  static std::string_view or_else(std::string_view own) noexcept;

 protected:
  struct Suspend {};
  explicit OpName(Suspend) noexcept;

 private:
  const char* former_;
};

/// While a NoOpName lives, no name is in force. For calls of a user's functions, and for errors that belong to another call.
class NoOpName : OpName {
 public:
  NoOpName() noexcept : OpName(Suspend{}) {}
};

}}}  // namespace clutch::v0::detail
