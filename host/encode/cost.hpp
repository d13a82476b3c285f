// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

namespace clutch { inline namespace v0 { namespace detail {

/// Bytes of the tensor's distinct elements, as Cost counts them: dimensions of stride 0 count once.
double distinct_bytes(const Tensor& tensor);

}}}  // namespace clutch::v0::detail
