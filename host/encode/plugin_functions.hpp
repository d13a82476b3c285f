// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "expr/node.hpp"

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {

/// Whether plugins may get a traced function: one of its inputs and params alone. A captured tensor has no place in the text of a function, and a generator's
/// state is advanced by the library.
inline bool is_for_plugins(const ExprFunction& f) {
  if (f.empty()) return true;
  const auto& steps = f.body()->steps;
  return f.captured_count() == 0 && std::none_of(steps.begin(), steps.end(), [](const ExprStep& s) { return is_random(s.op); });
}

}}}  // namespace clutch::v0::detail
