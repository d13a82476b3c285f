// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "program/interned.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// What this thread enqueued or recorded last.
struct LastLaunch {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t kernel = kNone;  ///< id: the kernel goes with its runtime
  Geometry geometry;
  Interned plan;   ///< what last_plan() returns
  int asides = 0;  ///< that live
  Cost cost;       ///< of all so far

  /// A command with a plan; with a kernel if it is a launch of work-items.
  void note(const Interned& of) noexcept {
    if (asides == 0) plan = of;
  }
  void note(const Interned& of, std::uint64_t id, const Geometry& g) noexcept { kernel = id, geometry = g, note(of); }
};
LastLaunch& last_launch() noexcept;

/// While it lives, commands do not count for last_plan(): they copy results, count, or combine parts.
class Aside {
 public:
  Aside() noexcept { ++last_launch().asides; }
  ~Aside() { --last_launch().asides; }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
};

}}}  // namespace clutch::v0::detail
