// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/dtype.hpp>

#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// The OpenCL C type that stores one element; "ushort" for f16 and bf16, "uchar" for the 8-bit and packed types.
std::string_view cl_type(DType dtype);

/// The unsigned OpenCL C type of the element's size, "ulong2" for 16 bytes: what moves and fills handle instead of a dtype.
std::string_view unsigned_cl_type(DType dtype);
/// One dtype for all of an element size, so that moves and fills of equal size share a plan.
DType dtype_of_size(DType dtype);

}}}  // namespace clutch::v0::detail
