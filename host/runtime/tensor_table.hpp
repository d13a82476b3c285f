// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "runtime/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Addresses of a table's tensors as words.
struct TableLayout {
  std::vector<std::uint64_t> words;  ///< all ones for an address without memory
  std::vector<std::size_t> bases;    ///< of each buffer, in the order in which they are met, the first place that lies in it
};
TableLayout table_layout(std::span<const Address> places);

/// State of a TensorTable between calls.
struct TableState {
  std::vector<TensorTable::Column> columns;
  std::vector<Address> places;  ///< of the tensors whose words the device has
  std::vector<cl_mem> bases;    ///< TensorTable::kBases buffers
  Tensor words;
  std::uint64_t stream = 0;  ///< on which they were written; 0: they must be anew

  /// Makes bases and words those of the tensors, which the stream uses from now on. Errors: invalid_argument if they lie in too many buffers.
  void update(const std::shared_ptr<StreamImpl>& on, std::span<const Tensor* const> tensors, const char* op);
};

}}}  // namespace clutch::v0::detail
