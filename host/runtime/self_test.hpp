// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/registry.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Replaces claims in `traits` by what small kernels show, from the cache folder where an earlier process measured it.
/// Where a self-test cannot run the claims stay and a warning is logged.
void run_self_tests(const DeviceRecord& record, DeviceTraits& traits);

}}}  // namespace clutch::v0::detail
