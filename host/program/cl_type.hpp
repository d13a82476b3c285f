// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/dtype.hpp>

#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// The OpenCL C type that stores one element; "ushort" for f16 and bf16, "uchar" for the 8-bit and packed types.
std::string_view cl_type(DType dtype);

/// The unsigned OpenCL C type of the element's size, "ulong2" for 16 bytes. For copies and fills, which depend on the size alone.
std::string_view unsigned_cl_type(DType dtype);
/// One dtype for all dtypes of an element size, so that copies and fills of that size share a plan.
DType dtype_of_size(DType dtype);

}}}  // namespace clutch::v0::detail
