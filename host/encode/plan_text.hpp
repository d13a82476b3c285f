// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace clutch::inline v0::detail {

/// Makes `text` what last_plan() returns on this thread. The text must live as long as its runtime.
void note_plan(const std::string& text) noexcept;

}  // namespace clutch::inline v0::detail
