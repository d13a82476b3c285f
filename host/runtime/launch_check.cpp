// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch_check.hpp"

#include "runtime/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {

void throw_argument(cl_int status, std::uint32_t position, const Kernel& kernel, const char* op) {
  if (status == CL_INVALID_ARG_SIZE || status == CL_INVALID_ARG_VALUE || status == CL_INVALID_MEM_OBJECT)
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("argument {} of kernel {} must be of its parameter's kind and size, got one that the driver refuses ({})", position, kernel.name(),
                            cl_error_name(status)),
                status);
  throw_cl(status, op, "clSetKernelArg");
}

void check_launch(const Kernel& kernel, const Geometry& g, std::uint64_t local_bytes, const char* op) {
  auto refuse = [&](std::string rule) { throw Error(ErrorCode::invalid_argument, op, fmt::format("launch of {}: {}", kernel.name(), rule)); };
  const DeviceTraits& traits = claimed_traits(kernel.program().runtime().device());
  const std::uint64_t global[] = {g.global, g.global_y, g.global_z}, local[] = {std::max<std::uint64_t>(g.local, 1), g.local_y, g.local_z};
  const std::uint64_t most = kernel.max_work_group();
  // Drivers count work-groups in 32 bits and abort or skip work-groups past that. A local size that the driver chooses may be 1.
  constexpr std::uint64_t kMostGroups = 0xFFFF'FFFF;
  std::uint64_t items = 1, groups = 1;
  if (g.local_y == 0 || g.local_z == 0) refuse(fmt::format("local sizes must be positive, got {} of y and {} of z", g.local_y, g.local_z));
  for (int d = 0; d < 3; ++d) {
    if (global[d] % local[d] != 0) refuse(fmt::format("the global size of {} must be a multiple of its local size {}, got {}", "xyz"[d], local[d], global[d]));
    if (__builtin_mul_overflow(items, local[d], &items) || items > most)
      refuse(fmt::format("a group must have at most {} work-items for this kernel on this device, got {} x {} x {}", most, local[0], local[1], local[2]));
    if (traits.address_bits == 32 && global[d] >> 32 != 0)
      refuse(fmt::format("the global size of {} must be below 2^32 on a device of 32 address bits, got {}", "xyz"[d], global[d]));
    if (__builtin_mul_overflow(groups, global[d] / local[d], &groups) || groups > kMostGroups)
      refuse(fmt::format("a launch must have at most {} groups, got more: {} x {} x {} work-items in groups of {} x {} x {}", kMostGroups, global[0], global[1],
                         global[2], local[0], local[1], local[2]));
  }
  std::uint64_t wanted = local_bytes + kernel.static_local_bytes();
  if (wanted > traits.local_bytes) refuse(fmt::format("local memory must be at most the device's {} bytes, got {}", traits.local_bytes, wanted));
  kernel.check_local_size(g, op);
}

}}}  // namespace clutch::v0::detail
