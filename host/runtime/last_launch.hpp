// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "program/interned.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Last command that this thread enqueued or recorded.
struct LastLaunch {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t kernel = kNone;  ///< id of the kernel; a pointer would dangle once the kernel's runtime is released
  Geometry geometry;
  Interned plan;   ///< text that last_plan() returns
  int asides = 0;  ///< number of Asides alive
  Cost cost;       ///< sum over all commands so far

  /// Notes a command with its plan; the second form also notes the kernel and geometry of a launch.
  void note(const Interned& of) noexcept {
    if (asides == 0) plan = of;
  }
  void note(const Interned& of, std::uint64_t id, const Geometry& g) noexcept { kernel = id, geometry = g, note(of); }
};
LastLaunch& last_launch() noexcept;

/// While an Aside lives, its thread's commands do not count for last_plan(). For commands that copy results, count, or combine partial results.
class Aside {
 public:
  Aside() noexcept { ++last_launch().asides; }
  ~Aside() { --last_launch().asides; }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
};

}}}  // namespace clutch::v0::detail
