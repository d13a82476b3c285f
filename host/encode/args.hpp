// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include <type_traits>

namespace clutch { inline namespace v0 { namespace detail {

/// Binds the struct of a kernel's args.h, which the kernel takes by CLUTCH_ARGS (kernels/common/shared.h).
template <class Args>
Encoder& bind_args(Encoder& encoder, const Args& args, const char* name = "args") {
  static_assert(std::is_trivially_copyable_v<Args> && std::is_standard_layout_v<Args>, "args.h holds structs that both sides lay out alike");
  return encoder.value(args, name);
}

}}}  // namespace clutch::v0::detail
