// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace clutch::inline v0::detail {

/// What a TensorTable's words say about where tensors lie.
struct TableLayout {
  std::vector<std::uint64_t> words;  ///< all ones for an address without memory
  std::vector<std::size_t> bases;    ///< of each buffer, in the order in which they are met, the first place that lies in it
};
TableLayout table_layout(std::span<const Address> places);

}  // namespace clutch::inline v0::detail
