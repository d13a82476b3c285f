// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace clutch::inline v0::detail {

/// While it lives, work that this thread enqueues carries the name of the public function that was called first: of softmax, say, not
/// of the reductions it is made of. `name` is a literal.
class OpName {
 public:
  explicit OpName(const char* name) noexcept;
  ~OpName();
  OpName(const OpName&) = delete;
  OpName& operator=(const OpName&) = delete;
  /// The name in force, else `own`.
  static const char* or_else(const char* own) noexcept;

 private:
  const char* former_;
};

}  // namespace clutch::inline v0::detail
