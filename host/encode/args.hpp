// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include <type_traits>

namespace clutch { inline namespace v0 { namespace detail {

/// True if the device's kernels take structs by value (DeviceTraits::args_by_value). Their programs are built accordingly.
bool args_go_by_value(const Encoder& encoder);
/// Copies the struct to memory of the stream's pool and binds that memory.
Encoder& bind_args_in_memory(Encoder& encoder, const void* args, std::size_t size, const char* name);

/// Binds the struct of a kernel's args.h, which the kernel takes by CLUTCH_ARGS (kernels/common/shared.h): by value, or in memory if the self-test found that
/// the driver lays structs out differently.
template <class Args>
Encoder& bind_args(Encoder& encoder, const Args& args, const char* name = "args") {
  static_assert(std::is_trivially_copyable_v<Args> && std::is_standard_layout_v<Args>, "args.h holds structs that both sides lay out alike");
  return args_go_by_value(encoder) ? encoder.value(args, name) : bind_args_in_memory(encoder, &args, sizeof args, name);
}

}}}  // namespace clutch::v0::detail
