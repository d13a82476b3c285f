// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/dtype.hpp>

#include <string_view>

namespace clutch::inline v0::detail {

/// The OpenCL C type that stores one element; "ushort" for f16 and bf16, "uchar" for the 8-bit and packed types.
std::string_view cl_type(DType dtype);

}  // namespace clutch::inline v0::detail
