// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

namespace clutch { inline namespace v0 { namespace detail {

/// Runs an instruction that the compiler may refuse: for clutch-probe, whose process may be terminated by it. True if its results are right.
CLUTCH_API bool probe_dot_products(const Device& device);

}}}  // namespace clutch::v0::detail
