// SPDX-License-Identifier: Apache-2.0
// Which elements of a tensor a cell of a mesh has, and the steps from some placements to others: arithmetic alone.
#pragma once
#include <clutch/dist/sharded.hpp>

#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Entries of a dimension, in the order in which a part has them.
struct Range {
  std::int64_t begin, end;
};
using Ranges = std::vector<Range>;
std::int64_t length(const Ranges& ranges);
/// Adds the entries from number `begin` to number `end` of those that the ranges have.
void append(Ranges& to, const Ranges& of, std::int64_t begin, std::int64_t end);

/// Entries of each of so many parts, by the rule of torch.chunk.
std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::int64_t parts);
/// Of each of split_factor parts those that each of n coordinates gets: number j n + c is coordinate c's of part j.
std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::int64_t n, int split_factor);
/// What each of n coordinates gets of a dimension of that size.
std::vector<std::int64_t> part_sizes(std::int64_t size, std::int64_t n, int split_factor);

/// A box of a cell's elements, and where it begins in the local part.
struct Piece {
  Box box;
  Dims local;
};

struct Layout {
  Dims sizes;       ///< of the whole
  Dims mesh_shape;  ///< of the mesh
  std::vector<Placement> placements;

  /// Of each dimension of the tensor what the cell has. Ranges that follow one another are one.
  std::vector<Ranges> ranges(const Dims& cell) const;
  Dims local_sizes(const Dims& cell) const;
  /// In row-major order of the local part; none is empty.
  std::vector<Piece> pieces(const Dims& cell) const;
  /// The size of the dimension that a placement cuts, before it does.
  std::int64_t size_before(const Dims& cell, int mesh_dim, int dim) const;
  bool has_partial() const;
};

/// Placements with dimensions counted from the front. Errors: invalid_argument.
std::vector<Placement> checked(const char* op, std::vector<Placement> placements, const Dims& mesh_shape, int rank);

/// The steps, without their bytes. Errors: invalid_argument for what no steps do.
std::vector<Redistribution::Change> steps_of(const char* op, const std::vector<Placement>& from, const std::vector<Placement>& to);

}}}}  // namespace clutch::v0::dist::detail
