// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace clutch_threads {

/// Makes C++ of preprocessed OpenCL C 1.2, to be put behind opencl_c.hpp, without images, events, three-element vectors and half as a number.
/// What changes: components, literals and casts of vectors; local memory, which is a thread's; kernels, which get a caller that takes addresses of arguments;
/// identifiers that C++ reserves. Lines keep their numbers, `#line` stays.
/// Errors: std::runtime_error for brackets that do not match.
std::string translate(std::string_view text);

}  // namespace clutch_threads
