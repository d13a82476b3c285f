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
  std::vector<std::uint64_t> words;  ///< all bits set for an address without memory
  std::vector<std::size_t> bases;    ///< for each buffer, in the order of first use, the index of the first address in it
};
TableLayout table_layout(std::span<const Address> places);

/// State of a TensorTable between calls.
struct TableState {
  std::vector<TensorTable::Column> columns;
  std::vector<Address> places;  ///< addresses behind the words that the device has
  std::vector<cl_mem> bases;    ///< TensorTable::kBases buffers
  Tensor words;
  std::uint64_t stream = 0;  ///< id of the stream that wrote the words; 0: they must be written again

  /// Makes bases and words match the tensors and notes that the stream uses them. Errors: invalid_argument if the tensors lie in too many buffers.
  void update(const std::shared_ptr<StreamImpl>& on, std::span<const Tensor* const> tensors, const char* op);
};

}}}  // namespace clutch::v0::detail
