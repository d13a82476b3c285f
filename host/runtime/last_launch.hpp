// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "program/interned.hpp"

namespace clutch::inline v0::detail {

/// What this thread enqueued or recorded last.
struct LastLaunch {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t kernel = kNone;  ///< id: the kernel goes with its runtime
  Geometry geometry;
  Interned plan;  ///< what last_plan() returns
};
LastLaunch& last_launch() noexcept;

/// For an op of which the last dispatch is not the one that tells what it did: behind it, makes `text` what last_plan() returns.
inline void note_plan(const Interned& text) noexcept { last_launch().plan = text; }

}  // namespace clutch::inline v0::detail
