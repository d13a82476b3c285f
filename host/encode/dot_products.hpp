// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/runtime.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// True if kernels may use the CPU's dot products of bytes (AVX512-VNNI) by inline assembly. Compilers treat this assembly differently; some abort the process.
/// So a separate program (clutch-probe) tries it once for each device and driver, and the result is kept in the cache folder.
bool dot_products(Runtime& runtime);

}}}  // namespace clutch::v0::detail
