// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "program/program.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// A geometry in the types of clEnqueueNDRangeKernel.
struct LaunchSizes {
  std::size_t global[3], local[3];
  cl_uint dims;
  explicit LaunchSizes(const Geometry& g) noexcept
      : global{g.global, g.global_y, g.global_z},
        local{g.local, g.local_y, g.local_z},
        dims(g.global_z > 1   ? 3
             : g.global_y > 1 ? 2
                              : 1) {}
  /// Null if the driver is to choose the local size.
  const std::size_t* local_or_null() const noexcept { return local[0] > 0 ? local : nullptr; }
};

/// Throws the Error for a failing status of clSetKernelArg. Errors: invalid_argument if the argument does not fit its parameter.
[[noreturn]] void throw_argument(cl_int status, std::uint32_t position, const Kernel& kernel, const char* op);

inline void check_argument(cl_int status, std::uint32_t position, const Kernel& kernel, const char* op) {
  if (status != CL_SUCCESS) [[unlikely]]
    throw_argument(status, position, kernel, op);
}

/// Checks sizes against the limits of kernel and device, before the launch is enqueued. Errors: invalid_argument, which names the limit;
/// build_failure if the driver needs a linker for the launch that is not there.
void check_launch(const Kernel& kernel, const Geometry& geometry, std::uint64_t local_bytes, const char* op);

}}}  // namespace clutch::v0::detail
