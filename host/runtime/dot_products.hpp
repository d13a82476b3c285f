// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/runtime.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// Whether kernels may use the CPU's dot products of bytes (AVX512-VNNI) by inline assembly. Compilers differ in what they make of it, down to
/// aborting, so a program of its own tries (clutch-probe), once for a device and driver: the answer is kept in the cache folder.
bool dot_products(Runtime& runtime);

}}}  // namespace clutch::v0::detail
