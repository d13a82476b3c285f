// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/dtype.hpp>

namespace clutch { inline namespace v0 { namespace detail {

/// Value of an option in a kernel: rounded to f32, where larger numbers become infinite, unless the kernel computes in f64 or in integers. Bounds that rounding
/// may reach (positive, below 1, finite) are checked on this value.
inline double as_computed(double number, DType dtype = DType::f32) {
  return dtype == DType::f64 || dtype == DType::c128 || is_integral(dtype) ? number : static_cast<double>(static_cast<float>(number));
}

}}}  // namespace clutch::v0::detail
