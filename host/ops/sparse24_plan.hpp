// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/sparse24.hpp>

#include "encode/host_values.hpp"
#include "encode/plan.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 {

namespace detail {

/// Layout of the matrix for kernels.
struct SparseForm {
  enum class Kind : std::uint8_t {
    panels,  ///< tiles of `rows`, by blocks of `block` along k, for panels of a dense operand whose rows have `panel_bytes` bytes
    codes,   ///< numbers of `rows` rows side by side, with two bits for each, for kernels that select
    words,   ///< bytes of `rows` rows side by side, with their positions in words of four
  } kind = Kind::panels;
  DType numbers = DType::f32;  ///< dtype of the packed numbers
  std::int64_t rows = 0, block = 0, panel_bytes = 0;

  friend bool operator==(const SparseForm&, const SparseForm&) = default;
};
struct SparsePacking {
  SparseForm form;
  Tensor numbers = {}, places = {};
};

}  // namespace detail

struct sparse::SemiStructured::State {
  Dims sizes;
  Tensor values, metadata, info;
  std::mutex mutex = {};
  std::vector<std::pair<detail::SparseForm, detail::Cached<detail::SparsePacking>>> packings = {};
};

namespace detail {

enum class Sparse24Part : std::uint8_t { groups, tiles, compress, decompress, pack, pack_words, cutlass };

/// Inputs of the selection of sparse24; also the key of its cached plans.
struct Sparse24Problem {
  DType dtype = DType::f32;
  Sparse24Part part = Sparse24Part::groups;
  sparse::PruneRule rule = sparse::PruneRule::groups;
  bool mask = false;
  DType computed = DType::f32;  ///< dtype of the packed numbers
  std::uint8_t rows = 0;
  std::uint16_t panel_bytes = 0;  ///< 0: codes
};

/// Pure function. Errors: not_supported.
KernelPlan select(const DeviceTraits& traits, const Sparse24Problem& problem);

/// The packing of that form, made on `stream` if there is none. If another stream made it, `stream` waits for that work; in a capture every replay does; the
/// host never waits. A packing that is made in a capture is made again by each replay and not kept.
SparsePacking sparse_packing(const std::shared_ptr<sparse::SemiStructured::State>& state, const SparseForm& form, const Stream& stream);

}  // namespace detail
}}  // namespace clutch::v0
