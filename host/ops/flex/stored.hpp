// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/flex.hpp>

#include "ops/out_form.hpp"

#include <fmt/format.h>

#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// For out forms: stores gradients into the caller's tensors. Errors: as store().
inline void store_gradients(const attention::FlexGradients& out, const attention::FlexGradients& made, std::string_view op, const Stream& stream) {
  if (!out.captured.empty() && out.captured.size() != made.captured.size())
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("out.captured must be empty or have {} tensors, got {}", made.captured.size(), out.captured.size()));
  std::vector<Stored> all{{out.q, made.q, "out.q"}, {out.k, made.k, "out.k"}, {out.v, made.v, "out.v"}};
  for (std::size_t i = 0; i < out.captured.size(); ++i) all.push_back({out.captured[i], made.captured[i], "out.captured"});
  store(all, op, stream);
}

}}}  // namespace clutch::v0::detail
