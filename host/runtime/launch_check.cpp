// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch_check.hpp"

#include "runtime/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {

void check_argument(cl_int status, std::uint32_t position, const Kernel& kernel, const char* op) {
  if (status == CL_INVALID_ARG_SIZE || status == CL_INVALID_ARG_VALUE || status == CL_INVALID_MEM_OBJECT) [[unlikely]]
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("argument {} of kernel {} does not fit its parameter ({})", position, kernel.name(), cl_error_name(status)), status);
  check_cl(status, op, "clSetKernelArg");
}

void check_launch(const Kernel& kernel, const Geometry& g, std::uint64_t local_bytes, const char* op) {
  auto refuse = [&](std::string rule) { throw Error(ErrorCode::invalid_argument, op, fmt::format("launch of {}: {}", kernel.name(), rule)); };
  const DeviceTraits& traits = claimed_traits(kernel.program().runtime().device());
  const std::uint64_t global[] = {g.global, g.global_y, g.global_z}, local[] = {std::max<std::uint64_t>(g.local, 1), g.local_y, g.local_z};
  const std::uint64_t most = kernel.max_work_group();
  // Drivers count groups in 32 bits: past that they abort, or leave groups out. A local size that the driver chooses may be 1.
  constexpr std::uint64_t kMostGroups = 0xFFFF'FFFF;
  std::uint64_t items = 1, groups = 1;
  if (g.local_y == 0 || g.local_z == 0) refuse("local sizes of y and z must be positive");
  for (int d = 0; d < 3; ++d) {
    if (global[d] % local[d] != 0) refuse(fmt::format("global size {} of {} must be a multiple of its local size {}", global[d], "xyz"[d], local[d]));
    if (__builtin_mul_overflow(items, local[d], &items) || items > most)
      refuse(fmt::format("a group of {} x {} x {} work-items, but the device takes at most {} for this kernel", local[0], local[1], local[2], most));
    if (traits.address_bits == 32 && global[d] >> 32 != 0)
      refuse(fmt::format("global size {} of {} is past the device's 32 address bits", global[d], "xyz"[d]));
    if (__builtin_mul_overflow(groups, global[d] / local[d], &groups) || groups > kMostGroups)
      refuse(fmt::format("global sizes {} x {} x {} make more than {} groups of {} x {} x {}", global[0], global[1], global[2], kMostGroups, local[0], local[1],
                         local[2]));
  }
  std::uint64_t wanted = local_bytes + kernel.static_local_bytes();
  if (wanted > traits.local_bytes) refuse(fmt::format("{} bytes of local memory, but the device has {}", wanted, traits.local_bytes));
}

}}}  // namespace clutch::v0::detail
