// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace clutch { inline namespace v0 { namespace detail {

/// Loads plugins at the first call; the same Error at each later one if that failed. Does nothing on a thread that loads them. Defined in plugin/loader.cpp.
void load_plugins();

}}}  // namespace clutch::v0::detail
