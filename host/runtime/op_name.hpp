// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// While it lives, errors that this thread makes and work that it enqueues carry the name of the public function that was called first: of softmax, say,
/// not of the reductions it is made of. Each public function that is made of others has one, in its first line. `name` is a literal.
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

/// While it lives no name is in force: for calls of a caller's functions, and for errors that tell of another call.
class NoOpName : OpName {
 public:
  NoOpName() noexcept : OpName(Suspend{}) {}
};

}}}  // namespace clutch::v0::detail
