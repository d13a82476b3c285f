// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "program/program.hpp"

namespace clutch::inline v0::detail {

/// Checks sizes against the kernel and the device before anything is enqueued. Errors: invalid_argument naming the rule.
void check_launch(const Kernel& kernel, const Geometry& geometry, std::uint64_t local_bytes, const char* op);

}  // namespace clutch::inline v0::detail
