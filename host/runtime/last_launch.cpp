// SPDX-License-Identifier: Apache-2.0
#include "runtime/last_launch.hpp"

namespace clutch::inline v0 {
namespace detail {

namespace {
thread_local Interned t_plan;
}  // namespace

LastLaunch& last_launch() noexcept {
  thread_local LastLaunch last;
  return last;
}

void note_plan(const Interned& text) noexcept { t_plan = text; }
const Interned& noted_plan() noexcept { return t_plan; }

}  // namespace detail

std::string last_plan() { return detail::noted_plan().str(); }

}  // namespace clutch::inline v0
