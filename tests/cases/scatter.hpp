// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of scatter: what tests and benches share. The model takes the elements of src one after another, as
// clutch/ops/scatter.hpp states.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/scatter.hpp>

#include "cases/segment.hpp"

#include <string_view>
#include <type_traits>
#include <vector>

namespace clutch::cases {

struct ScatterCase {
  static constexpr std::string_view kStem = "scatter";

  /// Of n elements that join, by i64 indices, a tensor of `of_self` elements.
  static double flops(std::int64_t n) { return static_cast<double>(n); }
  static double bytes(std::int64_t n, std::int64_t of_self, DType dtype) {
    return static_cast<double>(n) * (8 + bits(dtype) / 8.0) + 2.0 * static_cast<double>(of_self) * bits(dtype) / 8;
  }

  /// Places of the elements of a tensor of three dimensions in row-major order.
  static std::size_t at(const Dims& sizes, std::int64_t i, std::int64_t j, std::int64_t k) {
    return static_cast<std::size_t>((i * sizes[1] + j) * sizes[2] + k);
  }

  /// The result for tensors of three dimensions, contiguous.
  template <class T>
  static std::vector<T> model(const std::vector<T>& self, const Dims& self_sizes, int dim, const std::vector<std::int64_t>& index, const Dims& sizes,
                              const std::vector<T>& src, const Dims& src_sizes, const ScatterOptions& o) {
    bool includes = o.include_self;
    std::vector<T> acc = self;
    std::vector<std::int64_t> count(self.size(), 0);
    for (std::int64_t i = 0; i < sizes[0]; ++i)
      for (std::int64_t j = 0; j < sizes[1]; ++j)
        for (std::int64_t k = 0; k < sizes[2]; ++k) {
          std::int64_t to[] = {i, j, k}, named = index[at(sizes, i, j, k)];
          if (named < 0 || named >= self_sizes[dim]) continue;
          to[dim] = named;
          std::size_t place = at(self_sizes, to[0], to[1], to[2]);
          if (!includes && count[place] == 0) acc[place] = first<T>(o.reduce);
          acc[place] = step<T>(o.reduce, acc[place], src[at(src_sizes, i, j, k)]);
          ++count[place];
        }
    if (o.reduce == Reduce::mean)
      for (std::size_t i = 0; i < acc.size(); ++i)
        if (count[i] > 0) acc[i] = divided(acc[i], count[i] + (includes ? 1 : 0));
    return acc;
  }
  template <class T>
  static T first(Reduce reduce) {
    if constexpr (std::is_integral_v<T>) {
      if (reduce == Reduce::amin) return std::numeric_limits<T>::max();
      if (reduce == Reduce::amax) return std::numeric_limits<T>::min();
      return reduce == Reduce::prod ? 1 : 0;
    } else {
      return SegmentCase::first<T>(reduce);
    }
  }
  template <class T>
  static T step(Reduce reduce, T acc, T x) {
    if constexpr (std::is_integral_v<T>) {
      auto wrapped = [](auto v) { return static_cast<T>(v); };
      if (reduce == Reduce::amin) return std::min(acc, x);
      if (reduce == Reduce::amax) return std::max(acc, x);
      auto a = static_cast<std::uint64_t>(acc), b = static_cast<std::uint64_t>(x);
      return reduce == Reduce::prod ? wrapped(a * b) : wrapped(a + b);
    } else {
      return SegmentCase::step<T>(reduce, acc, x, nullptr);
    }
  }
  template <class T>
  static T divided(T acc, std::int64_t count) {
    if constexpr (std::is_integral_v<T>)
      return acc / count - (acc % count < 0 ? 1 : 0);
    else
      return acc / static_cast<T>(count);
  }

  template <class T>
  static std::vector<T> typed(const Operand& o) {
    std::vector<double> v = SegmentCase::numbers(o);
    return std::vector<T>(v.begin(), v.end());
  }

  /// Strides of a contiguous tensor with a gap behind each row.
  static Dims gapped(const Dims& sizes, bool transposed) {
    return transposed ? Dims{1, sizes[0] + 1, (sizes[0] + 1) * sizes[1] + 2} : Dims{sizes[1] * (sizes[2] + 2) + 1, sizes[2] + 2, 1};
  }

  static Problem problem(std::string_view what, std::string_view entry, DType dtype, const ScatterOptions& options, int dim, const Dims& self_sizes,
                         const Dims& sizes, std::uint64_t seed, bool transposed = false, DType index_dtype = DType::i64) {
    Problem p{.name = std::string(what), .entry = entry, .needs_fp64 = dtype == DType::f64};
    model::Random random(seed);
    std::vector<std::int64_t> index;
    for (std::int64_t i = 0; i < numel(sizes); ++i)
      index.push_back(static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(self_sizes[dim] + 2)) - 1);
    Dims src_sizes{sizes[0] + 1, sizes[1], sizes[2] + 1};
    auto values = [&](const Dims& s, std::uint64_t with) { return model::make_values(static_cast<std::size_t>(numel(s)), dtype, with, false); };
    p.inputs.push_back({dtype, self_sizes, gapped(self_sizes, !transposed), values(self_sizes, seed + 1)});
    Operand of_index = SegmentCase::integers(index_dtype, index);
    of_index.sizes = sizes, of_index.strides = gapped(sizes, transposed);
    p.inputs.push_back(of_index);
    p.inputs.push_back({dtype, src_sizes, gapped(src_sizes, transposed), values(src_sizes, seed + 2)});
    p.output = {dtype, self_sizes, gapped(self_sizes, transposed), std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(numel(self_sizes))))};
    auto fill = [&]<class T>(T) {
      std::vector<T> out = model<T>(typed<T>(p.inputs[0]), self_sizes, dim, index, sizes, typed<T>(p.inputs[2]), src_sizes, options);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if constexpr (std::is_integral_v<T>)
          std::memcpy(p.output.raw.data() + i * static_cast<std::size_t>(bits(dtype) / 8), &out[i],
                      static_cast<std::size_t>(bits(dtype) / 8));  // little-endian
        else
          model::store_at(p.output.raw.data(), i, dtype, static_cast<double>(out[i]));
      }
    };
    model::with_accumulator(dtype, fill);
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      copy_(out, in[0], {}, stream);
      ScatterOptions forced = options;
      forced.implementation = entry;
      scatter_reduce_(out, dim, in[1], in[2], forced, stream);
    };
    return p;
  }

  /// Rows of `features` with a gap behind each, named by one index a row.
  static Problem rows(std::string_view what, DType dtype, const ScatterOptions& options, std::int64_t depth, std::int64_t m, std::int64_t features,
                      std::uint64_t seed, DType index_dtype = DType::i64) {
    Problem p = problem(what, "scatter_panels", dtype, options, 0, {depth, features, 1}, {m, features, 1}, seed, false, index_dtype);
    std::vector<double> given = SegmentCase::numbers(p.inputs[1]);
    std::vector<std::int64_t> line, index;
    for (std::int64_t j = 0; j < m; ++j) line.push_back(static_cast<std::int64_t>(given[static_cast<std::size_t>(j * features)]));
    for (std::int64_t j : line) index.insert(index.end(), static_cast<std::size_t>(features), j);
    p.inputs[0].strides = p.output.strides = {features + 3, 1, 1};
    p.inputs[1] = SegmentCase::integers(index_dtype, line);
    // One row more than the index names.
    p.inputs[2] = {dtype, {m + 1, features, 1}, {features + 5, 1, 1}, {}};
    p.inputs[2].raw = model::make_values(static_cast<std::size_t>((m + 1) * features), dtype, seed + 9, false);
    auto fill = [&]<class T>(T) {
      std::vector<T> out =
          model<T>(typed<T>(p.inputs[0]), {depth, features, 1}, 0, index, {m, features, 1}, typed<T>(p.inputs[2]), {m + 1, features, 1}, options);
      for (std::size_t i = 0; i < out.size(); ++i) model::store_at(p.output.raw.data(), i, dtype, static_cast<double>(out[i]));
    };
    model::with_accumulator(dtype, fill);
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      copy_(out, in[0], {}, stream);
      ScatterOptions forced = options;
      forced.implementation = "scatter_panels";
      scatter_reduce_(out, 0, in[1].reshape({m, 1, 1}).expand({m, features, 1}), in[2], forced, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32})
      all.push_back(problem(name(dtype), "scatter_lines", dtype, {}, 1, {4, 5, 21}, {3, 9, 20}, seed));
    all.push_back(problem("mean", "scatter_lines", DType::f32, {.reduce = Reduce::mean}, 0, {7, 5, 21}, {9, 5, 20}, seed + 1, false, DType::i32));
    all.push_back(
        problem("without self", "scatter_lines", DType::f32, {.reduce = Reduce::amax, .include_self = false}, 2, {7, 5, 11}, {6, 5, 20}, seed + 2, true));
    all.push_back(rows("rows", DType::f32, {}, 7, 23, 77, seed + 3));
    all.push_back(rows("rows", DType::f64, {.reduce = Reduce::amax}, 7, 23, 40, seed + 4, DType::i32));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"scatter_panels", Edit::tail, "for (long f = full; f < end; ++f)", "for (long f = full; f + 1 < end; ++f)"},
      {"scatter_panels", Edit::stride, "ROW(src, j, src_stride)", "ROW(src, j / 2, src_stride)"},
      {"scatter_panels", Edit::offset, "ROW(out, end > 0 ? i : 0, out_stride)", "ROW(out, end > 0 ? i ^ 1 : 0, out_stride)"},
      {"scatter_panels", Edit::arithmetic, "CLUTCH_CONCAT(loadv_, T_NAME)(to, f), CLUTCH_CONCAT(loadv_, T_NAME)(from, f))",
       "CLUTCH_CONCAT(loadv_, T_NAME)(from, f), CLUTCH_CONCAT(loadv_, T_NAME)(from, f))"},
      {"scatter_lines", Edit::tail, "j < (IDX)m", "j + 1 < (IDX)m"},
      {"scatter_lines", Edit::stride, "offset[k] += x * stride[k][d];", "offset[k] += x * stride[k][0];"},
      {"scatter_lines", Edit::offset, "offset[l][2] + j * (IDX)src_inner", "offset[l][2] + (j + 1) % (IDX)m * (IDX)src_inner"},
      {"scatter_lines", Edit::arithmetic, "CLUTCH_COMBINE(A, (A)LOAD(out, at), x)", "CLUTCH_COMBINE(A, (A)LOAD(out, at), x + x)"},
  };
};

}  // namespace clutch::cases
