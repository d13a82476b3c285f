// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of index: what tests and benches share. The model goes through the elements of the result one by one.
#include <clutch/ops/index.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <cstring>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct IndexCase {
  static constexpr std::string_view kStem = "index";
  using Raw = std::vector<std::uint8_t>;

  /// A tensor of indices on the host; no sizes and no values: a whole dimension.
  struct Indices {
    Dims sizes;
    std::vector<std::int64_t> values;
    bool whole = false;
  };

  /// An index and an element are read, and an element written, once each.
  static double bytes(DType dtype, std::int64_t places, std::int64_t inner, int dims) {
    return 8.0 * dims * static_cast<double>(places) + 2.0 * bits(dtype) / 8 * static_cast<double>(places * inner);
  }

  struct Mapped {
    Dims sizes;                      ///< of the result
    std::vector<std::int64_t> from;  ///< element of x, in row-major order, or -1
  };
  static Mapped model(const Dims& x, const std::vector<Indices>& indices) {
    std::vector<Dims> shapes;
    int first = -1, last = -1, count = 0;
    for (int d = 0; d < static_cast<int>(indices.size()); ++d) {
      if (indices[static_cast<std::size_t>(d)].whole) continue;
      shapes.push_back(indices[static_cast<std::size_t>(d)].sizes);
      first = count++ == 0 ? d : first, last = d;
    }
    const Dims shape = broadcast_shapes(shapes);
    const int at = last - first + 1 == count ? first : 0;
    auto is_counted = [&](int d) { return d < static_cast<int>(indices.size()) && !indices[static_cast<std::size_t>(d)].whole; };
    Mapped made;
    std::vector<int> rest;
    for (int d = 0; d < x.rank(); ++d)
      if (!is_counted(d)) rest.push_back(d);
    for (int r = 0; r <= static_cast<int>(rest.size()); ++r) {
      if (r == at)
        for (std::int64_t n : shape) made.sizes.push_back(n);
      if (r < static_cast<int>(rest.size())) made.sizes.push_back(x[rest[static_cast<std::size_t>(r)]]);
    }
    for (std::int64_t e = 0; e < numel(made.sizes); ++e) {
      std::vector<std::int64_t> place(static_cast<std::size_t>(made.sizes.rank()));
      std::int64_t left = e;
      for (int d = made.sizes.rank() - 1; d >= 0; --d) place[static_cast<std::size_t>(d)] = left % made.sizes[d], left /= made.sizes[d];
      std::int64_t offset = 0;
      int next = 0;
      bool outside = false;
      for (int d = 0; d < x.rank(); ++d) {
        std::int64_t i = 0;
        if (is_counted(d)) {
          const Indices& of = indices[static_cast<std::size_t>(d)];
          std::int64_t number = 0;
          for (int k = 0; k < of.sizes.rank(); ++k) {
            const int b = shape.rank() - of.sizes.rank() + k;
            number = number * of.sizes[k] + (of.sizes[k] == 1 ? 0 : place[static_cast<std::size_t>(at) + static_cast<std::size_t>(b)]);
          }
          i = of.values[static_cast<std::size_t>(number)];
          if (i < 0) i += x[d];
          outside = outside || i < 0 || i >= x[d];
        } else {
          i = place[static_cast<std::size_t>(next < at ? next : next + shape.rank())];
          ++next;
        }
        offset = offset * x[d] + i;
      }
      made.from.push_back(outside ? -1 : offset);
    }
    return made;
  }

  /// Indices of a dimension of n, some of them from the end and, with `wild`, some out of range.
  static Indices some(const Dims& sizes, std::int64_t n, std::uint64_t seed, bool wild = true) {
    model::Random random(seed);
    Indices made{sizes, {}, false};
    for (std::int64_t k = 0; k < numel(sizes); ++k) {
      const auto r = static_cast<std::int64_t>(random.next() >> 8);
      made.values.push_back(wild && r % 11 == 0 ? n + r % 3 : wild && r % 13 == 0 ? -n - 1 - r % 3 : r % (2 * n) - n);
    }
    return made;
  }
  static Operand operand(const Indices& of, DType dtype) {
    Operand made{dtype, of.sizes, {}, Raw(of.values.size() * static_cast<std::size_t>(bits(dtype)) / 8)};
    for (std::size_t i = 0; i < of.values.size(); ++i)
      if (dtype == DType::i64)
        std::memcpy(made.raw.data() + 8 * i, &of.values[i], 8);
      else
        model::store_at(made.raw.data(), i, dtype, static_cast<double>(of.values[i]));
    return made;
  }

  static Raw taken(const Raw& x, DType dtype, const Mapped& mapped) {
    const std::size_t size = static_cast<std::size_t>(bits(dtype)) / 8;
    Raw made(mapped.from.size() * size);
    for (std::size_t e = 0; e < mapped.from.size(); ++e) {
      if (mapped.from[e] >= 0)
        std::memcpy(made.data() + e * size, x.data() + static_cast<std::size_t>(mapped.from[e]) * size, size);
      else if (is_floating(dtype))
        model::store_at(made.data(), e, dtype, NAN);
    }
    return made;
  }

  /// Sums are rounded once, where they are stored.
  static Raw stored(Raw self, DType dtype, const Mapped& mapped, const Raw& values, bool accumulate) {
    const std::size_t size = static_cast<std::size_t>(bits(dtype)) / 8;
    std::vector<double> sums(self.size() / size);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = model::value_at(self.data(), i, dtype);
    for (std::size_t e = 0; e < mapped.from.size(); ++e) {
      if (mapped.from[e] < 0) continue;
      const auto to = static_cast<std::size_t>(mapped.from[e]);
      if (!accumulate)
        std::memcpy(self.data() + to * size, values.data() + e * size, size);
      else if (dtype == DType::f64)
        sums[to] += model::value_at(values.data(), e, dtype);
      else
        sums[to] = static_cast<double>(static_cast<float>(sums[to]) + static_cast<float>(model::value_at(values.data(), e, dtype)));
    }
    if (accumulate)
      for (std::size_t i = 0; i < sums.size(); ++i) model::store_at(self.data(), i, dtype, sums[i]);
    return self;
  }

  static Problem take(DType dtype, const Dims& sizes, const Dims& strides, const std::vector<Indices>& indices, DType of_indices, std::uint64_t seed) {
    Problem p{.name = std::string(name(dtype)), .entry = "index_take"};
    const Raw raw = model::make_values(static_cast<std::size_t>(numel(sizes)), dtype, seed);
    const Mapped mapped = model(sizes, indices);
    p.inputs.push_back({dtype, sizes, strides, raw});
    for (const Indices& i : indices)
      if (!i.whole) p.inputs.push_back(operand(i, of_indices));
    p.output = {dtype, mapped.sizes, {}, taken(raw, dtype, mapped)};
    p.is_helper = true;
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) { index_out(out, in[0], lists(indices, in.subspan(1)), stream); };
    return p;
  }
  static Problem put(DType dtype, const Dims& sizes, const std::vector<Indices>& indices, DType of_indices, bool accumulate, std::uint64_t seed) {
    Problem p{.name = std::string(name(dtype)), .entry = accumulate ? "index_add" : "index_put", .is_helper = true};
    const Raw raw = model::make_values(static_cast<std::size_t>(numel(sizes)), dtype, seed);
    const Mapped mapped = model(sizes, indices);
    const Raw values = model::make_values(mapped.from.size(), dtype, seed + 1);
    p.inputs.push_back({dtype, sizes, {}, raw});
    p.inputs.push_back({dtype, mapped.sizes, {}, values});
    for (const Indices& i : indices)
      if (!i.whole) p.inputs.push_back(operand(i, of_indices));
    p.output = {dtype, sizes, {}, stored(raw, dtype, mapped, values, accumulate)};
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      index_put_out(out, in[0], lists(indices, in.subspan(2)), in[1], {.accumulate = accumulate}, stream);
    };
    return p;
  }
  /// The tensors in the place of their indices, with undefined ones for whole dimensions.
  static std::vector<Tensor> lists(const std::vector<Indices>& indices, std::span<const Tensor> tensors) {
    std::vector<Tensor> made;
    std::size_t next = 0;
    for (const Indices& i : indices) made.push_back(i.whole ? Tensor() : tensors[next++]);
    return made;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    const Indices whole{{}, {}, true};
    std::vector<Problem> all;
    all.push_back(take(DType::f32, {11, 9, 7}, {1, 13, 150}, {some({40}, 11, seed)}, DType::i64, seed));
    all.push_back(take(DType::i16, {5, 9, 7}, {}, {whole, some({6, 1}, 9, seed), some({5}, 7, seed + 1)}, DType::i32, seed));
    all.push_back(take(DType::f64, {5, 9, 7}, {}, {some({6}, 5, seed), whole, some({6}, 7, seed + 1)}, DType::i64, seed));
    all.push_back(all.front());
    all.back().entry = "index_places";
    all.push_back(all[1]);
    all.back().entry = "index_places";
    for (bool accumulate : {false, true}) {
      all.push_back(put(DType::f32, {11, 9, 7}, {some({40}, 11, seed)}, DType::i64, accumulate, seed));
      all.push_back(put(DType::bf16, {5, 9, 7}, {whole, some({6, 1}, 9, seed), some({5}, 7, seed + 1)}, DType::i32, accumulate, seed));
    }
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"index_places", Edit::tail, "k < min(begin + chunk, n);", "k + 1 < min(begin + chunk, n);"},
      {"index_places", Edit::stride, "i * args.stride", "i * (args.stride + 1)"},
      {"index_places", Edit::offset, "(__global const long*)index)[k]", "(__global const long*)index)[k ^ 1]"},
      {"index_places", Edit::arithmetic, "i += args.size;", "i = -i;"},
      {"index_take", Edit::tail, "q < r.to; ++q) out_row[q] = x_row[(long)q", "q + 1 < r.to; ++q) out_row[q] = x_row[(long)q"},
      {"index_take", Edit::stride, "x_row[(long)q * inner_stride]", "x_row[(long)q]"},
      {"index_take", Edit::offset, "(x + x_offset) + ((long)r.outer", "(x + x_offset) + 1 + ((long)r.outer"},
      {"index_take", Edit::arithmetic, "(T)args.outside;", "(T)1;"},
      {"index_put", Edit::tail, "q < r.to; ++q) self_row", "q + 1 < r.to; ++q) self_row"},
      {"index_put", Edit::stride, "(ulong)order_of[r.k]) * args.inner;", "(ulong)order_of[r.k]) * (args.inner - 1);"},
      {"index_put", Edit::offset, "(ulong)order_of[r.k])", "r.k)"},
      {"index_put", Edit::arithmetic, "place_of[r.k + 1] == place", "place_of[r.k + 1] != place"},
      {"index_add", Edit::tail, "j < args.places && place_of[j] == place; ++j", "j < args.places - 1 && place_of[j] == place; ++j"},
      {"index_add", Edit::stride, "(ulong)order_of[j]) * args.inner + q", "(ulong)order_of[j]) * (args.inner - 1) + q"},
      {"index_add", Edit::offset, "(ulong)order_of[j])", "j)"},
      {"index_add", Edit::arithmetic, "sum[l] += ", "sum[l] = "},
  };
};

}  // namespace clutch::cases
