// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "program/program.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// A geometry as OpenCL's launches take it.
struct LaunchSizes {
  std::size_t global[3], local[3];
  cl_uint dims;
  explicit LaunchSizes(const Geometry& g) noexcept
      : global{g.global, g.global_y, g.global_z},
        local{g.local, g.local_y, g.local_z},
        dims(g.global_z > 1   ? 3
             : g.global_y > 1 ? 2
                              : 1) {}
  /// Null lets the driver choose.
  const std::size_t* local_or_null() const noexcept { return local[0] > 0 ? local : nullptr; }
};

/// Throws what the status of clSetKernelArg means. Errors: invalid_argument where the argument does not fit its parameter.
void check_argument(cl_int status, std::uint32_t position, const Kernel& kernel, const char* op);

/// Checks sizes against the kernel and the device before anything is enqueued. Errors: invalid_argument naming the rule.
void check_launch(const Kernel& kernel, const Geometry& geometry, std::uint64_t local_bytes, const char* op);

}}}  // namespace clutch::v0::detail
