// SPDX-License-Identifier: Apache-2.0
#include "dist/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 { namespace dist {

std::string to_string(const Placement& p) {
  if (p.is_replicate()) return "R";
  if (p.is_partial()) return fmt::format("P({})", name(p.op));
  return p.split_factor == 1 ? fmt::format("S({})", p.dim) : fmt::format("S({}, {})", p.dim, p.split_factor);
}

std::string to_string(const Redistribution& plan) {
  std::string text;
  for (const Redistribution::Change& s : plan.steps)
    text += fmt::format("mesh dim {}: {} -> {} by {}, {} bytes{}\n", s.mesh_dim, to_string(s.from), to_string(s.to), s.collective, s.bytes,
                        s.us > 0 ? fmt::format(", {:.1f} us", s.us) : "");
  return text;
}

namespace detail {

std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::int64_t parts) {
  const std::int64_t most = (size + parts - 1) / parts;
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp(size - i * most, std::int64_t{0}, most));
  return sizes;
}

std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::int64_t n, int split_factor) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t part : chunk_sizes(size, split_factor)) {
    const std::vector<std::int64_t> chunks = chunk_sizes(part, n);
    sizes.insert(sizes.end(), chunks.begin(), chunks.end());
  }
  return sizes;
}

std::vector<std::int64_t> part_sizes(std::int64_t size, std::int64_t n, int split_factor) {
  const std::vector<std::int64_t> chunks = chunk_sizes(size, n, split_factor);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < chunks.size(); ++i) sizes[i % sizes.size()] += chunks[i];
  return sizes;
}

std::int64_t length(const Ranges& ranges) {
  std::int64_t sum = 0;
  for (const Range& r : ranges) sum += r.end - r.begin;
  return sum;
}

void append(Ranges& to, const Ranges& of, std::int64_t begin, std::int64_t end) {
  std::int64_t at = 0;
  for (const Range& r : of) {
    const std::int64_t first = std::max(begin - at, std::int64_t{0}) + r.begin, last = std::min(end - at, r.end - r.begin) + r.begin;
    at += r.end - r.begin;
    if (first >= last) continue;
    if (!to.empty() && to.back().end == first)
      to.back().end = last;
    else
      to.push_back({first, last});
  }
}

namespace {

Ranges part_of(const Ranges& ranges, std::int64_t n, int split_factor, std::int64_t coordinate) {
  const std::vector<std::int64_t> chunks = chunk_sizes(length(ranges), n, split_factor);
  Ranges mine;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (static_cast<std::int64_t>(i) % n == coordinate) append(mine, ranges, at, at + chunks[i]);
    at += chunks[i];
  }
  return mine;
}

}  // namespace

std::vector<Ranges> Layout::ranges(const Dims& cell) const {
  std::vector<Ranges> all;
  for (const std::int64_t size : sizes) all.push_back(size > 0 ? Ranges{{0, size}} : Ranges{});
  for (int k = 0; k < mesh_shape.rank(); ++k) {
    const Placement& p = placements[static_cast<std::size_t>(k)];
    if (!p.is_shard()) continue;
    Ranges& of = all[static_cast<std::size_t>(p.dim)];
    of = part_of(of, mesh_shape[k], p.split_factor, cell[k]);
  }
  return all;
}

Dims Layout::local_sizes(const Dims& cell) const {
  Dims local;
  for (const Ranges& of : ranges(cell)) local.push_back(length(of));
  return local;
}

std::vector<Piece> Layout::pieces(const Dims& cell) const {
  std::vector<Piece> pieces{{}};
  for (const Ranges& of : ranges(cell)) {
    std::vector<Piece> longer;
    for (const Piece& piece : pieces) {
      std::int64_t at = 0;
      for (const Range& r : of) {
        longer.push_back(piece);
        longer.back().box.offsets.push_back(r.begin), longer.back().box.sizes.push_back(r.end - r.begin), longer.back().local.push_back(at);
        at += r.end - r.begin;
      }
    }
    pieces = std::move(longer);
  }
  return pieces;
}

std::int64_t Layout::size_before(const Dims& cell, int mesh_dim, int dim) const {
  Layout outer = *this;
  for (std::size_t k = static_cast<std::size_t>(mesh_dim); k < outer.placements.size(); ++k) outer.placements[k] = replicate();
  return outer.local_sizes(cell)[dim];
}

bool Layout::has_partial() const {
  return std::any_of(placements.begin(), placements.end(), [](const Placement& p) { return p.is_partial(); });
}

std::vector<Placement> checked(const char* op, std::vector<Placement> placements, const Dims& mesh_shape, int rank) {
  auto refuse = [&](const std::string& why) { throw Error(ErrorCode::invalid_argument, op, why); };
  if (placements.size() != static_cast<std::size_t>(mesh_shape.rank()))
    refuse(fmt::format("placements must be one for each of {} dimensions of the mesh, got {}", mesh_shape.rank(), placements.size()));
  auto is_average = [](ReduceOp of) { return of == ReduceOp::sum || of == ReduceOp::avg; };
  const Placement* first = nullptr;
  for (Placement& p : placements) {
    if (p.is_shard()) {
      const int dim = p.dim < 0 ? p.dim + rank : p.dim;
      if (dim < 0 || dim >= rank) refuse(fmt::format("a shard must be of one of {} dimensions, got {}", rank, p.dim));
      if (p.split_factor < 1) refuse(fmt::format("a split factor must be 1 or more, got {}", p.split_factor));
      p = shard(dim, p.split_factor);
    } else if (p.is_partial()) {
      p = partial(p.op);
      if (p.op == ReduceOp::premul_sum) refuse("a partial placement must be of a reduction without a factor, got premul_sum");
      if (first != nullptr && p.op != first->op && !(is_average(p.op) && is_average(first->op)))
        refuse(fmt::format("partial placements must be of one reduction, got {} and {}", name(first->op), name(p.op)));
      if (first == nullptr) first = &p;
    } else {
      p = replicate();
    }
  }
  return placements;
}

std::vector<Redistribution::Change> steps_of(const char* op, const std::vector<Placement>& from, const std::vector<Placement>& to) {
  const std::size_t n = from.size();
  std::vector<Placement> now = from;
  std::vector<Redistribution::Change> steps;
  auto step = [&](std::size_t k, const Placement& next) {
    const Placement& last = now[k];
    if (last.is_shard() && next.is_partial())
      throw Error(ErrorCode::invalid_argument, op,
                  fmt::format("a shard must become replicated or another shard, got {} -> {}", to_string(last), to_string(next)));
    if (last.is_partial() && next.is_partial())
      throw Error(ErrorCode::invalid_argument, op, fmt::format("a partial placement must keep its reduction, got {} -> {}", to_string(last), to_string(next)));
    const std::string_view collective = last.is_replicate()   ? "local"
                                        : last.is_partial()   ? (next.is_shard() ? "reduce_scatter" : "all_reduce")
                                        : next.is_replicate() ? "all_gather"
                                                              : "all_to_all";
    steps.push_back({.mesh_dim = static_cast<int>(k), .from = last, .to = next, .collective = collective});
    now[k] = next;
  };
  auto cuts = [](const Placement& p, int dim) { return p.is_shard() && p.dim == dim; };
  // Whether the shard of k must be undone, since another one before it, of the same dimension, comes or goes.
  auto is_in_the_way = [&](std::size_t k) {
    if (!from[k].is_shard()) return false;
    // Parts of another split factor.
    if (cuts(to[k], from[k].dim) && to[k] != from[k]) return true;
    for (std::size_t before = 0; before < k; ++before)
      if (from[before] != to[before] && (cuts(from[before], from[k].dim) || cuts(to[before], from[k].dim))) return true;
    return false;
  };
  for (std::size_t k = n; k-- > 0;) {
    // A shard that becomes partial is refused below.
    if (is_in_the_way(k) && !to[k].is_partial()) step(k, replicate());
  }
  for (std::size_t k = n; k-- > 0;)
    if (now[k].is_partial() && to[k].is_replicate()) step(k, replicate());
  for (std::size_t k = 0; k < n; ++k)
    if (now[k] != to[k]) step(k, to[k]);
  return steps;
}

}  // namespace detail
}}}  // namespace clutch::v0::dist
