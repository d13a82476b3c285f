// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process, or that one thread plays in turns.
#pragma once
#include "dist/transport.hpp"

#include <memory>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// One for each rank. Messages are copied when they are sent.
std::vector<std::shared_ptr<Transport>> thread_transports(int ranks);

}}}}  // namespace clutch::v0::dist::detail
