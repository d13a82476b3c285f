// SPDX-License-Identifier: Apache-2.0
// Ways to compute a product, and the choice of the fastest measured one.
#include "tune/tune.hpp"

#include "ops/matmul/call.hpp"
#include "ops/matmul/clblast.hpp"
#include "runtime/runtime.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>

namespace clutch { inline namespace v0 { namespace detail {

std::string Tiling::to_string() const {
  static constexpr const char* kPlaces[] = {"packed", "direct", "inside", "across"};
  return fmt::format("{} {}x{} k{} t{}", kPlaces[static_cast<int>(place)], rows, vectors, block, tiles);
}
std::optional<Tiling> Tiling::parse(const std::string& text) {
  char place[8];
  Tiling t;
  if (std::sscanf(text.c_str(), "%7s %" SCNd64 "x%" SCNd64 " k%" SCNd64 " t%" SCNd64, place, &t.rows, &t.vectors, &t.block, &t.tiles) != 5) return std::nullopt;
  const std::string_view at = place;
  t.place = at == "direct" ? MatmulPlace::direct : at == "inside" ? MatmulPlace::inside : MatmulPlace::packed;
  const bool fine = t.rows >= 1 && t.rows <= 16 && t.vectors >= 1 && t.vectors <= 16 && t.block >= 32 && t.block <= 512 && t.tiles >= 1 &&
                    t.tiles <= kMatmulAccumulatorTiles && t.rows * t.vectors <= 32;
  return fine ? std::optional(t) : std::nullopt;
}

namespace {

/// Key of a tuned choice.
struct ShapeClass {
  std::uint64_t generation;
  DType a, b;
  std::uint8_t m, n, k, batch;  ///< rounded to powers of two
  bool unit_columns, whole;     ///< b's columns have stride 1; they fill whole panels

  static std::uint8_t power(std::int64_t size) {
    return static_cast<std::uint8_t>(std::lround(std::log2(static_cast<double>(std::max<std::int64_t>(size, 1)))));
  }
  std::string to_string() const {
    return fmt::format("{} {} m2^{} n2^{} k2^{} b2^{}{}{}", name(a), name(b), m, n, k, batch, unit_columns ? " unit" : "", whole ? " whole" : "");
  }
};
struct TunedPlan : CachedPlan {
  std::optional<Tiling> tiling;
};

ShapeClass class_of(const MatmulCall& c, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool unit_columns, bool whole) {
  auto power = ShapeClass::power;
  return {tuning_generation(), c.a.dtype(), matrix_dtype(*c.b), power(m), power(n), power(k), power(batch), unit_columns, whole};
}

/// A way that computes into a new output.
TuneWay way_of(const MatmulCall& c, const std::string& choice, const std::optional<Tiling>& tiling, std::string_view implementation, bool exact,
               const Stream& stream) {
  MatmulCall call = c;
  call.tiling = tiling, call.options.implementation = implementation, call.options.beta = 0;
  auto run = [call, stream]() mutable {
    // A transposed result is stored by columns.
    Dims sizes = call.sizes;
    if (call.transposed) std::swap(sizes[sizes.rank() - 1], sizes[sizes.rank() - 2]);
    call.out = empty(sizes, {.dtype = call.output, .device = stream.device()}, stream);
    if (call.transposed) call.out = call.out.mT();
    run_matmul(call, stream);
    return call.out;
  };
  return {choice, run, exact};
}

}  // namespace

bool library_is_faster(const MatmulCall& c, const MatmulProblem& p, const Stream& stream) {
  if (!tuning_matters(kMatmul) || !c.b->tensor() || !fits_clblast(c.runtime->traits(), p).empty()) return false;
  const std::int64_t m = c.sizes[c.sizes.rank() - 2], n = c.sizes[c.sizes.rank() - 1], k = c.a.sizes()[c.a.rank() - 1];
  if (k == 0) return false;
  // A choice holds for a class of shapes, whose operands may have any strides.
  for (const Tensor* t : {&c.a, c.b->tensor(), &c.out})
    if (t->defined() && !clblast_refuses(*t, "").empty()) return false;
  const ShapeClass shape = class_of(c, m, n, k, numel(c.sizes) / std::max<std::int64_t>(m * n, 1), true, true);
  auto ways = [&] {
    return std::vector{way_of(c, "", std::nullopt, "matmul_tiles", true, stream), way_of(c, std::string(kClblast), std::nullopt, kClblast, false, stream)};
  };
  return tuned_choice(*c.runtime, kMatmul, shape.to_string(), stream, ways) == kClblast;
}

namespace {
/// Candidate tilings for a dense or a 2:4 matrix on the left.
std::vector<Tiling> tilings_of(bool sparse, std::int64_t rows, std::int64_t n, std::int64_t lanes, const ShapeClass& shape) {
  std::vector<Tiling> all;
  auto add = [&](const Tiling& t) {
    if ((t.place == MatmulPlace::direct && n % (lanes * t.vectors) != 0) || (t.place == MatmulPlace::inside && t.block * t.vectors > kMatmulBlockVectors))
      return;
    all.push_back(t);
  };
  if (sparse) {
    for (const Tiling& t :
         {Tiling{.rows = 3, .vectors = 8, .block = 64}, Tiling{.rows = 4, .vectors = 6, .block = 96}, Tiling{.rows = 6, .vectors = 4, .block = 128}})
      for (MatmulPlace place : {MatmulPlace::packed, MatmulPlace::inside})
        for (std::int64_t tiles : {16, 32, 64}) add({.rows = t.rows, .vectors = t.vectors, .block = t.block, .tiles = tiles, .place = place});
    return all;
  }
  std::vector<MatmulPlace> places{MatmulPlace::packed, MatmulPlace::inside};
  if (shape.unit_columns && shape.whole) places.push_back(MatmulPlace::direct);
  for (MatmulPlace place : places)
    for (auto [down, vectors] : {std::pair<std::int64_t, std::int64_t>{6, 4}, {8, 3}})
      for (std::int64_t block : {128, 256, 512})
        for (std::int64_t tiles : {8, 16, 32})
          if (rows > 48 || tiles <= 8) add({.rows = down, .vectors = vectors, .block = block, .tiles = tiles, .place = place});
  return all;
}
}  // namespace

std::optional<Tiling> tuned_tiling(const MatmulCall& c, const Tiling& own, std::int64_t rows, std::int64_t batch, std::int64_t lanes, bool unit_columns,
                                   const Stream& stream) {
  const std::int64_t n = c.sizes[c.sizes.rank() - 1], k = c.a.sizes()[c.a.rank() - 1];
  const ShapeClass shape = class_of(c, rows, n, k, batch, unit_columns, n % (kMatmulVectors * lanes) == 0);
  const bool sparse = c.sparse != nullptr;
  const char* op = sparse ? "sparse::matmul" : kMatmul;
  auto find_out = [&] {
    auto ways = [&] {
      auto way = [&](const std::string& choice, const Tiling& tiling) { return way_of(c, choice, tiling, {}, true, stream); };
      std::vector<TuneWay> all{way("", own)};
      for (const Tiling& t : tilings_of(sparse, rows, n, lanes, shape))
        if (!(t == own)) all.push_back(way(t.to_string(), t));
      return all;
    };
    TunedPlan plan;
    plan.tiling = Tiling::parse(tuned_choice(*c.runtime, op, shape.to_string(), stream, ways));
    return plan;
  };
  if (!may_measure(stream)) return find_out().tiling;
  return c.runtime->plans().find<TunedPlan>(op, shape, "tuned", find_out).tiling;
}

}}}  // namespace clutch::v0::detail
