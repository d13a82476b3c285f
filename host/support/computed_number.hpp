// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/dtype.hpp>

namespace clutch { inline namespace v0 { namespace detail {

/// The number that a kernel has of an option: rounded to f32, infinite beyond it, unless the kernel computes in f64 or in integers. An option's bounds that
/// rounding may reach (positive, below 1, finite) are checked on this one.
inline double as_computed(double number, DType dtype = DType::f32) {
  return dtype == DType::f64 || dtype == DType::c128 || is_integral(dtype) ? number : static_cast<double>(static_cast<float>(number));
}

}}}  // namespace clutch::v0::detail
