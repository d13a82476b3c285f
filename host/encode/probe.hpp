// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

namespace clutch { inline namespace v0 { namespace detail {

/// For clutch-probe: runs an instruction at which the compiler may end the process. True if its results are right.
CLUTCH_API bool probe_dot_products(const Device& device);

/// For clutch-pack: makes the programs of the self-test, which a process with a kept result or with CLUTCH_SELF_TEST=off does not use.
CLUTCH_API void make_self_test_programs(const Device& device);

}}}  // namespace clutch::v0::detail
