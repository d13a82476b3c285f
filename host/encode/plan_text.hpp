// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include <string>

namespace clutch::inline v0::detail {

/// Makes `text` what last_plan() returns on this thread. The text must live as long as its runtime.
void note_plan(const std::string& text) noexcept;
/// The text last noted on this thread, or an empty one.
const std::string& noted_plan() noexcept;

/// What this thread enqueued last; kernel is null if nothing.
struct LastLaunch {
  Kernel* kernel = nullptr;
  Geometry geometry;
};
LastLaunch& last_launch() noexcept;

}  // namespace clutch::inline v0::detail
