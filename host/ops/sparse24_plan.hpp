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

/// How kernels read the matrix.
struct SparseForm {
  enum class Kind : std::uint8_t {
    panels,  ///< tiles of `rows`, by blocks of `block` along k, for panels of a dense operand whose rows have `panel_bytes` bytes
    codes,   ///< numbers, `rows` side by side, and two bits for each, for kernels that select
    words,   ///< bytes, `rows` rows side by side, and their places in words of four
  } kind = Kind::panels;
  DType numbers = DType::f32;  ///< as they are kept
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

/// What selection of sparse24 looks at; also the key of its cached plans.
struct Sparse24Problem {
  DType dtype = DType::f32;
  Sparse24Part part = Sparse24Part::groups;
  sparse::PruneRule rule = sparse::PruneRule::groups;
  bool mask = false;
  DType computed = DType::f32;  ///< of packing
  std::uint8_t rows = 0;
  std::uint16_t panel_bytes = 0;  ///< 0: codes
};

/// Pure. Errors: not_supported.
KernelPlan select(const DeviceTraits& traits, const Sparse24Problem& problem);

/// The packing of that form, made on the stream if there is none. What another stream made is waited for by the stream, in a capture by its replays; never by
/// the host. What is made in a capture is made at each replay, and not kept.
SparsePacking sparse_packing(const std::shared_ptr<sparse::SemiStructured::State>& state, const SparseForm& form, const Stream& stream);

}  // namespace detail
}}  // namespace clutch::v0
