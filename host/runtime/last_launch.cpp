// SPDX-License-Identifier: Apache-2.0
#include "runtime/last_launch.hpp"

namespace clutch { inline namespace v0 {

detail::LastLaunch& detail::last_launch() noexcept {
  thread_local LastLaunch last;
  return last;
}

Cost enqueued_cost() noexcept { return detail::last_launch().cost; }

std::string last_plan() { return detail::last_launch().plan.str(); }

}}  // namespace clutch::v0
