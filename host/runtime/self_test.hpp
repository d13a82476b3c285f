// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/registry.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// The layer encode has it, which launches kernels. Replaces claims in `traits` by the results of small kernels. Results of an earlier process are read from
/// the cache folder. If a self-test cannot run, the claims stay and a warning is logged.
void run_self_tests(const DeviceRecord& record, DeviceTraits& traits);

}}}  // namespace clutch::v0::detail
