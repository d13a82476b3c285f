// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/sparse24.hpp>

#include "encode/plan.hpp"

#include <mutex>
#include <vector>

namespace clutch::inline v0 {

/// How kernels read the matrix: tiles of `rows`, for panels whose rows have so many bytes, by blocks of `block` along k.
struct SparsePacking {
  DType computed = DType::f32;
  std::int64_t rows = 3, block = 64, panel_bytes = 512;  ///< panel_bytes 0: codes, for kernels that select
  Tensor numbers, places;
  Stream stream;  ///< where it was made
};

struct sparse::SemiStructured::State {
  Dims sizes;
  Tensor values, metadata, info;
  std::mutex mutex = {};
  std::vector<SparsePacking> packings = {};
};

namespace detail {

enum class Sparse24Part : std::uint8_t { groups, tiles, compress, decompress, pack, cutlass };

/// What selection of sparse24 looks at; also the key of its cached plans.
struct Sparse24Problem {
  DType dtype = DType::f32;
  Sparse24Part part = Sparse24Part::groups;
  sparse::PruneRule rule = sparse::PruneRule::groups;
  bool mask = false;
  DType computed = DType::f32;  ///< of packing
  std::uint8_t rows = 0;
  std::uint16_t panel_bytes = 0;
};

/// Pure. Errors: not_supported.
KernelPlan select(const DeviceTraits& traits, const Sparse24Problem& problem);

/// The packing for such tiles (panel_bytes 0: numbers as they are stored and codes), made on the stream if there is none; what other streams made it waits for.
/// In captures it is made at each replay.
SparsePacking sparse_packing(sparse::SemiStructured::State& state, DType computed, std::int64_t rows, std::int64_t block, std::int64_t panel_bytes,
                             const Stream& stream);

}  // namespace detail
}  // namespace clutch::inline v0
