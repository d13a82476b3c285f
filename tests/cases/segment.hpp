// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of segment: what tests and benches share. The model combines a segment's entries one after another, as
// clutch/ops/segment.hpp and clutch/sparse.hpp state.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/segment.hpp>
#include <clutch/sparse.hpp>

#include "ops/segments.hpp"
#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cmath>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct SegmentCase {
  static constexpr std::string_view kStem = "segment";

  template <class T>
  static T step(Reduce reduce, T acc, T x, const T* value) {
    T term = value ? static_cast<T>(x * *value) : x;
    switch (reduce) {
      case Reduce::prod: return acc * term;
      case Reduce::amin: return acc < term || acc != acc ? acc : term;
      case Reduce::amax: return acc > term || acc != acc ? acc : term;
      default: return value ? std::fma(x, *value, acc) : acc + term;
    }
  }
  template <class T>
  static T first(Reduce reduce) {
    if (reduce == Reduce::prod) return 1;
    if (reduce == Reduce::amin) return INFINITY;
    return reduce == Reduce::amax ? -INFINITY : 0;
  }

  /// out[i, f] by the contract; columns and values may be empty.
  template <class T>
  static std::vector<T> model(Reduce reduce, const std::vector<T>& data, std::size_t features, const std::vector<std::int64_t>& offsets,
                              const std::vector<std::int64_t>& columns, const std::vector<T>& values, bool is_product) {
    std::vector<T> out;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
      for (std::size_t f = 0; f < features; ++f) {
        T acc = first<T>(reduce);
        auto count = offsets[i + 1] - offsets[i];
        for (auto k = static_cast<std::size_t>(offsets[i]); k < static_cast<std::size_t>(offsets[i + 1]); ++k) {
          std::size_t row = columns.empty() ? k : static_cast<std::size_t>(columns[k]);
          acc = step<T>(reduce, acc, data[row * features + f], values.empty() ? nullptr : &values[k]);
        }
        if (reduce == Reduce::mean) acc = count == 0 ? static_cast<T>(NAN) : static_cast<T>(acc / static_cast<T>(count));
        if (is_product && count == 0) acc = 0;
        out.push_back(acc);
      }
    return out;
  }

  static std::vector<double> numbers(const Operand& o) {
    std::vector<double> v;
    for (std::size_t i = 0; i < static_cast<std::size_t>(numel(o.sizes)); ++i) v.push_back(model::value_at(o.raw.data(), i, o.dtype));
    return v;
  }
  static Operand integers(DType dtype, const std::vector<std::int64_t>& values) {
    Operand o{dtype, {static_cast<std::int64_t>(values.size())}, {}, std::vector<std::uint8_t>(bytes_for(dtype, values.size()))};
    for (std::size_t i = 0; i < values.size(); ++i) model::store_at(o.raw.data(), i, dtype, static_cast<double>(values[i]));
    return o;
  }

  /// A product with a compressed matrix of `rows` rows whose lengths vary from 0 on, or a plain reduction of segments.
  static Problem problem(std::string_view what, std::string_view entry, DType dtype, Reduce reduce, std::int64_t rows, std::int64_t features, bool is_product,
                         std::uint64_t seed, bool transposed = false, DType index = DType::i64) {
    Problem p{.name = std::string(what), .entry = entry, .needs_fp64 = dtype == DType::f64};
    model::Random random(seed);
    std::vector<std::int64_t> offsets{0}, columns;
    for (std::int64_t i = 0; i < rows; ++i) offsets.push_back(offsets.back() + static_cast<std::int64_t>(random.next() % 5));
    if (offsets.back() == 0) offsets.back() = 1;
    const std::int64_t width = is_product ? 11 : offsets.back();
    for (std::int64_t k = 0; k < offsets.back(); ++k) columns.push_back(static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(width)));
    Dims data_strides = transposed ? Dims{1, width + 3} : Dims{features + 5, 1}, out_strides = transposed ? Dims{1, rows + 1} : Dims{features + 3, 1};
    p.inputs.push_back({dtype, {width, features}, data_strides, model::make_values(static_cast<std::size_t>(width * features), dtype, seed + 1, false)});
    p.inputs.push_back(integers(index, offsets));
    if (is_product) {
      p.inputs.push_back(integers(index, columns));
      p.inputs.push_back({dtype, {offsets.back()}, {}, model::make_values(columns.size(), dtype, seed + 2, false)});
    } else {
      columns.clear();
    }
    p.output = {dtype, {rows, features}, out_strides, std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(rows * features)))};
    auto fill = [&]<class T>(T) {
      auto typed = [](const std::vector<double>& v) { return std::vector<T>(v.begin(), v.end()); };
      std::vector<T> values = is_product ? typed(numbers(p.inputs[3])) : std::vector<T>{};
      std::vector<T> out = model<T>(reduce, typed(numbers(p.inputs[0])), static_cast<std::size_t>(features), offsets, columns, values, is_product);
      for (std::size_t i = 0; i < out.size(); ++i) model::store_at(p.output.raw.data(), i, dtype, static_cast<double>(out[i]));
    };
    if (dtype == DType::f64)
      fill(double{});
    else
      fill(float{});
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      SegmentOptions options{.reduce = reduce, .implementation = std::string(entry)};
      if (is_product)
        sparse::spmm_out(out, {.offsets = in[1], .columns = in[2], .values = in[3], .width = width}, in[0],
                         {.reduce = reduce, .implementation = options.implementation}, stream);
      else
        segment_reduce_out(out, in[0], in[1], options, stream);
    };
    return p;
  }

  /// The problem with rows that begin where four elements may be loaded at once.
  static Problem with_quads(Problem p) {
    const std::int64_t features = p.output.sizes[1];
    p.name += " quads";
    p.inputs[0].strides = {features + 4, 1}, p.output.strides = {features + 8, 1};
    p.inputs[0].lead = p.output.lead = 64;
    return p;
  }
  static Problem quads(std::string_view what, DType dtype, Reduce reduce, std::int64_t rows, std::int64_t features, bool is_product, std::uint64_t seed) {
    return with_quads(problem(what, "segment_groups", dtype, reduce, rows, features, is_product, seed));
  }

  /// A product whose results go through a function before they are stored, with a row that is added to each and a factor for each element.
  static Problem epilogue(std::string_view entry, DType dtype, std::int64_t features, bool transposed, std::uint64_t seed) {
    Problem p = problem(std::string(name(dtype)) + " through a function", entry, dtype, Reduce::sum, 13, features, true, seed, transposed);
    const Dims sizes = p.output.sizes;
    p.inputs.push_back({dtype, {features}, {}, model::make_values(static_cast<std::size_t>(features), dtype, seed + 3, false)});
    p.inputs.push_back({DType::f32, sizes, {features + 7, 1}, model::make_values(static_cast<std::size_t>(numel(sizes)), DType::f32, seed + 4, false)});
    const std::vector<double> results = numbers(p.output), row = numbers(p.inputs[4]), factors = numbers(p.inputs[5]);
    auto fill = [&]<class T>(T) {
      for (std::size_t i = 0; i < results.size(); ++i) {
        const T sum = static_cast<T>(results[i]) + static_cast<T>(row[i % row.size()]);
        model::store_at(p.output.raw.data(), i, dtype, static_cast<double>(sum * static_cast<T>(factors[i])));
      }
    };
    if (dtype == DType::f64)
      fill(double{});
    else
      fill(float{});
    const std::int64_t width = p.inputs[0].sizes[0];
    const DType compute = dtype == DType::f64 ? DType::f64 : DType::f32;
    const ExprFunction f = trace([dtype, compute](Expr h, Expr x, Expr y) { return (cast(cast(h, dtype), compute) + x) * cast(y, compute); },
                                 std::array{compute, compute, DType::f32});
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      clutch::detail::segment_into(out,
                                   {.op = "spmm",
                                    .data = in[0],
                                    .offsets = in[1],
                                    .columns = in[2],
                                    .values = in[3],
                                    .f = f,
                                    .inputs = {in[4].expand(out.sizes()), in[5]},
                                    .data_rows = width},
                                   {.implementation = std::string(entry)}, stream.impl() ? stream : current_stream(out.device()));
    };
    return p;
  }

  /// The sum of products of two rows: feature f goes into partial f % 16 by fma, the partials into a tree of halves.
  template <class T>
  static T dot(const T* x, const T* y, std::size_t features) {
    T partial[16] = {};
    for (std::size_t f = 0; f < features; ++f) partial[f % 16] = std::fma(x[f], y[f], partial[f % 16]);
    for (int h = 8; h > 0; h /= 2)
      for (int l = 0; l < h; ++l) partial[l] += partial[l + h];
    return partial[0];
  }

  /// The implementation of reductions that makes gradients go by an entry.
  static std::string way_of(std::string_view entry) { return entry.ends_with("_groups") ? "segment_groups" : "segment_rows"; }

  /// Through gradients: of a sum's data, which is each entry's segment's (segment_ids), or of a product's values (segment_dots, segment_dot_groups).
  static Problem gradient(std::string_view entry, DType dtype, std::int64_t rows, std::int64_t features, std::uint64_t seed) {
    const bool of_values = entry != "segment_ids";
    const std::string way = way_of(entry);
    Problem p = problem(name(dtype), entry, dtype, Reduce::sum, rows, features, of_values, seed);
    p.is_helper = true;
    p.inputs[0].strides = {};
    p.inputs.push_back({dtype, {rows, features}, {}, model::make_values(static_cast<std::size_t>(rows * features), dtype, seed + 7, false)});
    std::vector<double> offsets = numbers(p.inputs[1]), data = numbers(p.inputs[0]), grad = numbers(p.inputs.back());
    std::vector<float> x(data.begin(), data.end()), g(grad.begin(), grad.end());
    std::int64_t entries = static_cast<std::int64_t>(offsets.back()), width = p.inputs[0].sizes[0];
    p.output = {dtype, of_values ? Dims{entries} : Dims{entries, features}, {}, {}};
    p.output.raw.resize(bytes_for(dtype, static_cast<std::uint64_t>(numel(p.output.sizes))));
    auto n = static_cast<std::size_t>(features);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i)
      for (auto k = static_cast<std::size_t>(offsets[i]); k < static_cast<std::size_t>(offsets[i + 1]); ++k) {
        if (of_values) {
          auto column = static_cast<std::size_t>(numbers(p.inputs[2])[k]);
          model::store_at(p.output.raw.data(), k, dtype, static_cast<double>(dot(&g[i * n], &x[column * n], n)));
        }
        for (std::size_t f = 0; !of_values && f < n; ++f) model::store_at(p.output.raw.data(), k * n + f, dtype, grad[i * n + f]);
      }
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      const Tensor& of_result = in.back();
      if (of_values)
        copy_(out,
              sparse::spmm_backward(of_result, of_result, {.offsets = in[1], .columns = in[2], .values = in[3], .width = width}, in[0], {.implementation = way},
                                    stream)
                  .values,
              {}, stream);
      else
        copy_(out, segment_reduce_backward(of_result, of_result, in[0], in[1], {}, stream), {}, stream);
    };
    return p;
  }

  /// The values' gradient of the largest terms of a product, each of which the first entry that has it takes (segment_first, segment_first_groups).
  static Problem first(std::string_view entry, DType dtype, std::int64_t rows, std::int64_t features, std::uint64_t seed) {
    const std::string way = way_of(entry);
    Problem p = problem(name(dtype), entry, dtype, Reduce::amax, rows, features, true, seed);
    p.is_helper = true;
    Operand result = p.output;
    result.strides = {};
    p.inputs[0].strides = {};
    p.inputs.push_back(result);
    p.inputs.push_back({dtype, {rows, features}, {}, model::make_values(static_cast<std::size_t>(rows * features), dtype, seed + 7, false)});
    std::vector<double> data = numbers(p.inputs[0]), offsets = numbers(p.inputs[1]), columns = numbers(p.inputs[2]), values = numbers(p.inputs[3]),
                        largest = numbers(result), grad = numbers(p.inputs.back());
    std::int64_t width = p.inputs[0].sizes[0], entries = static_cast<std::int64_t>(offsets.back());
    auto n = static_cast<std::size_t>(features);
    p.output = {dtype, {entries}, {}, std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(entries)))};
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
      std::vector<bool> taken(n, false);
      for (auto k = static_cast<std::size_t>(offsets[i]); k < static_cast<std::size_t>(offsets[i + 1]); ++k) {
        std::vector<float> x(n, 0), y(n, 0);
        for (std::size_t f = 0; f < n; ++f) {
          auto of_b = static_cast<float>(data[static_cast<std::size_t>(columns[k]) * n + f]);
          if (taken[f] || of_b * static_cast<float>(values[k]) != static_cast<float>(largest[i * n + f])) continue;
          taken[f] = true;
          x[f] = static_cast<float>(grad[i * n + f]), y[f] = of_b;
        }
        model::store_at(p.output.raw.data(), k, dtype, static_cast<double>(dot(x.data(), y.data(), n)));
      }
    }
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      sparse::Csr a{.offsets = in[1], .columns = in[2], .values = in[3], .width = width};
      copy_(out, sparse::spmm_backward(in[5], in[4], a, in[0], {.reduce = Reduce::amax, .implementation = way}, stream).values, {}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    std::vector<Problem> all;
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      all.push_back(problem(name(dtype), "segment_rows", dtype, Reduce::sum, 13, 77, true, seed));
      all.push_back(problem(name(dtype), "segment_strided", dtype, Reduce::sum, 9, 21, true, seed + 1, true));
    }
    all.push_back(problem("segments", "segment_rows", DType::f32, Reduce::mean, 13, 64, false, seed + 2));
    all.push_back(problem("amax", "segment_rows", DType::f32, Reduce::amax, 13, 19, true, seed + 3, false, DType::i32));
    all.push_back(problem("prod", "segment_strided", DType::f32, Reduce::prod, 13, 5, false, seed + 4, true, DType::i32));
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      all.push_back(problem(name(dtype), "segment_groups", dtype, Reduce::sum, 13, 77, true, seed + 8));
      all.push_back(quads(name(dtype), dtype, Reduce::mean, 13, 36, false, seed + 9));
    }
    all.push_back(quads("amax", DType::f32, Reduce::amax, 13, 36, true, seed + 10));
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      all.push_back(epilogue("segment_rows", dtype, 77, false, seed + 13));
      all.push_back(epilogue("segment_groups", dtype, 77, false, seed + 14));
      all.push_back(epilogue("segment_strided", dtype, 21, true, seed + 15));
    }
    all.push_back(with_quads(epilogue("segment_groups", DType::f32, 36, false, seed + 16)));
    all.push_back(gradient("segment_ids", DType::f32, 13, 3, seed + 5));
    all.push_back(gradient("segment_dots", DType::f32, 13, 37, seed + 6));
    all.push_back(first("segment_first", DType::f32, 13, 85, seed + 7));
    for (std::int64_t features : {37, 36}) {
      all.push_back(gradient("segment_dot_groups", DType::f32, 13, features, seed + 11));
      all.push_back(first("segment_first_groups", DType::f32, 13, features, seed + 12));
    }
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"segment_rows", Edit::tail, "CLUTCH_CONCAT(front_, O_NAME)(base, (IDX)i, count, x);", "CLUTCH_CONCAT(front_, O_NAME)(base, (IDX)i, count - 1, x);"},
      {"segment_rows", Edit::tail, "(CLUTCH_CONCAT(b, k), offset[k], count)", "(CLUTCH_CONCAT(b, k), offset[k], count - 1)"},
      {"segment_rows", Edit::offset, "i, first + v * WIDTH, min(width", "i, first, min(width"},
      {"segment_rows", Edit::stride, "(IDX)row * stride[k][0] + (IDX)column", "(IDX)row / 2 * stride[k][0] + (IDX)column"},
      {"segment_rows", Edit::stride, "first += PANEL) {", "first += 2 * PANEL) {"},
      {"segment_rows", Edit::offset, "(IDX)(row < 0 ? 0 : row) * data_stride + first", "(IDX)(row < 0 ? 0 : row) * data_stride + first + 1"},
      {"segment_rows", Edit::arithmetic, "return FMA(x, (V)value, acc);", "return FMA(x, (V)value, -acc);"},
      {"segment_groups", Edit::tail, "if (k + u >= end) continue;", "if (k + u + 1 >= end) continue;"},
      {"segment_groups", Edit::tail, "quads ? 4 : 1, result", "quads ? 3 : 1, result"},
      {"segment_groups", Edit::offset, "STORE_RESULTS(0, (ulong)i, (ulong)f,", "STORE_RESULTS(0, (ulong)i, (ulong)f / 2,"},
      {"segment_groups", Edit::stride, "STORE_FEATURES(out, i * (IDX)args->out_stride + f", "STORE_FEATURES(out, i * (IDX)args->data_stride + f"},
      {"segment_groups", Edit::offset, "row_of(columns, at, data_rows), value[u]", "row_of(columns, k, data_rows), value[u]"},
      {"segment_groups", Edit::arithmetic, "return FMA(x, (V)value, acc);", "return FMA(x, (V)value, -acc);"},
      {"segment_ids", Edit::tail, "long end = offset_of(offsets, i + 1, (long)entries);", "long end = offset_of(offsets, i + 1, (long)entries) - 1;"},
      {"segment_ids", Edit::stride, "((__global OFFSET*)ids)[k] = (OFFSET)i;", "((__global OFFSET*)ids)[k / 2] = (OFFSET)i;"},
      {"segment_ids", Edit::offset, "long k = offset_of(offsets, i, (long)entries)", "long k = offset_of(offsets, i / 2, (long)entries)"},
      {"segment_ids", Edit::arithmetic, "= (OFFSET)i;", "= (OFFSET)i ^ 1;"},
      {"segment_dots", Edit::tail, "f < features; f += 16", "f + 16 < features; f += 16"},
      {"segment_dots", Edit::stride, "row * data_stride + at", "row / 2 * data_stride + at"},
      {"segment_dots", Edit::offset, "load_some(x, i * x_stride + at", "load_some(x, i / 2 * x_stride + at"},
      {"segment_dots", Edit::arithmetic, "partial[l] += partial[l + h]", "partial[l] -= partial[l + h]"},
      {"segment_dot_groups", Edit::tail, "int counts = f + e < features;", "int counts = f + e + 1 < features;"},
      {"segment_dot_groups", Edit::stride, "data + row * args.data_stride", "data + row / 2 * args.data_stride"},
      {"segment_dot_groups", Edit::offset, "f = 4 * q; f < features", "f = 4 * (q / 2); f < features"},
      {"segment_dot_groups", Edit::arithmetic, "(partials[item] + partials[item + 2])", "(partials[item] - partials[item + 2])"},
      {"segment_first_groups", Edit::tail, "if (k + u >= end || row[u] < 0) continue;", "if (k + u + 1 >= end || row[u] < 0) continue;"},
      {"segment_first_groups", Edit::stride, "(IDX)max(row[u], 0L) * features + f", "(IDX)max(row[u], 0L) / 2 * features + f"},
      {"segment_first_groups", Edit::offset, "(V)(A)(k + u - begin)", "(V)(A)(k - begin)"},
      {"segment_first_groups", Edit::arithmetic, "ROUNDED(x[u] * (V)value[u])", "ROUNDED(x[u] * -(V)value[u])"},
      {"segment_first", Edit::tail, "found[v] = ((term", "if (k + 1 < end) found[v] = ((term"},
      {"segment_first", Edit::stride, "row * (long)features + first + v * WIDTH, counts[v]) * value",
       "row / 2 * (long)features + first + v * WIDTH, counts[v]) * value"},
      {"segment_first", Edit::offset, "own = (V)(A)(k - begin)", "own = (V)(A)(k - begin + 1)"},
      {"segment_first", Edit::arithmetic, "counts[v]) * value)", "counts[v]) * -value)"},
      {"segment_strided", Edit::tail, "const long stop = TOO_LONG(end - begin + 2, n * features, items) ? begin : end;",
       "const long stop = TOO_LONG(end - begin + 2, n * features, items) ? begin : end - 1;"},
      {"segment_strided", Edit::stride, "(IDX)f * (IDX)args.data_inner;", "(IDX)f * (IDX)args.out_inner;"},
      {"segment_strided", Edit::offset, "(IDX)row * (IDX)args.data_stride", "((IDX)row + 1) * (IDX)args.data_stride"},
      {"segment_strided", Edit::offset, "STORE_RESULTS(0, i, f, 1, result);", "STORE_RESULTS(0, i / 2, f, 1, result);"},
      {"segment_strided", Edit::arithmetic, "return FMA(x, (V)value, acc);", "return FMA(x, (V)value, -acc);"},
  };
};

}  // namespace clutch::cases
