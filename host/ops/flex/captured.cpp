// SPDX-License-Identifier: Apache-2.0
// Gradients of what a score mod captured. Scores and their gradients are made again, some rows of all heads at a time, and summed as the indices want it: over
// whatever an element's index does not depend on, along diagonals where it is of q - kv, and by sorted places else.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/scatter.hpp>
#include <clutch/pointwise.hpp>

#include "ops/block_mask_plan.hpp"
#include "ops/flex_plan.hpp"

#include <array>
#include <limits>

namespace clutch::inline v0::detail {
namespace {

/// How a step depends on b, h, q and kv (inputs 1 to 4).
struct Dependence {
  std::array<bool, 4> on{};
  bool linear = true;  ///< in q and kv, with these factors
  std::int64_t of_q = 0, of_kv = 0;
  bool by_distance = true;  ///< on q and kv by q - kv alone

  void join(const Dependence& other) {
    for (std::size_t i = 0; i < 4; ++i) on[i] = on[i] || other.on[i];
    linear = linear && other.linear, by_distance = by_distance && other.by_distance;
    of_q += other.of_q, of_kv += other.of_kv;
  }
  void settle() { by_distance = by_distance || (linear && of_q == -of_kv); }
};

std::vector<Dependence> dependences(const ExprBody& body) {
  std::vector<Dependence> all;
  for (const ExprStep& s : body.steps) {
    Dependence d;
    if (s.op == ExprOp::input && s.index >= 1 && s.index <= 4) {
      d.on[static_cast<std::size_t>(s.index) - 1] = true;
      d.of_q = s.index == 3, d.of_kv = s.index == 4, d.by_distance = s.index < 3;
    }
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      Dependence operand = all[static_cast<std::size_t>(s.operands[i])];
      if (s.op == ExprOp::neg || (s.op == ExprOp::sub && i == 1)) operand.of_q = -operand.of_q, operand.of_kv = -operand.of_kv;
      d.join(operand);
    }
    const bool adds = s.op == ExprOp::input || s.op == ExprOp::neg || s.op == ExprOp::sub || s.op == ExprOp::add || s.op == ExprOp::cast;
    if (!adds && (d.on[2] || d.on[3])) d.linear = false;
    d.settle();
    all.push_back(d);
  }
  return all;
}

/// Where the element that a read takes lies.
struct Class {
  Dependence at;
  bool direct = true;                      ///< its indices are b, h, q and kv themselves, each at most once, and none is clamped; or dimensions of size 1
  std::array<int, 4> dim{-1, -1, -1, -1};  ///< of the tensor, by b, h, q and kv
};
Class class_of(const ExprBody& body, const ExprStep& read, const Tensor& tensor, const Dims& extents) {
  const std::vector<Dependence> all = dependences(body);
  Class c;
  for (std::size_t d = 0; d < read.operands.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (tensor.sizes()[dim] == 1) continue;
    const auto k = static_cast<std::size_t>(read.operands[d]);
    c.at.join(all[k]);
    const ExprStep& index = body.steps[k];
    const int input = index.op == ExprOp::input ? index.index - 1 : -1;
    if (input < 0 || c.dim[static_cast<std::size_t>(input)] >= 0 || extents[input] > tensor.sizes()[dim])
      c.direct = false;
    else
      c.dim[static_cast<std::size_t>(input)] = dim;
  }
  c.at.settle();
  return c;
}

/// Scratch of the scores' chunk, their products' and their gradients': so many bytes each, or one row of all heads.
constexpr std::int64_t kChunkBytes = 16 << 20;

/// b, h, q and kv where a function of a chunk of scores stands, whose first query is `begin`.
std::array<Expr, 4> places_from(std::int64_t begin) {
  auto at = [](int d) { return cast(position(d), DType::i32); };
  return {at(0), at(1), at(2) + param(begin), at(3)};
}

/// Sums along the diagonals of (..., R, S): (..., R + S - 1), of which element c is the sum where kv - q = c - (R - 1).
Tensor diagonals(const Tensor& x, const Stream& stream) {
  const std::int64_t lines = x.numel() / (x.size(-1) * x.size(-2)), rows = x.size(-2), columns = x.size(-1), apart = rows + columns;
  // Rows lie so far apart that a diagonal view reads zeros where it leaves a row.
  const Tensor room = zeros({lines * (rows * apart + rows)}, {.dtype = x.dtype(), .device = x.device()}, stream);
  const std::int64_t line = rows * apart + rows;
  copy_(room.as_strided({lines, rows, columns}, {line, apart, 1}, rows - 1), x.reshape({lines, rows, columns}), {}, stream);
  return sum(room.as_strided({lines, rows, rows + columns - 1}, {line, apart + 1, 1}), {.dims = {1}}, stream);
}

}  // namespace

std::vector<Tensor> captured_gradients(const CapturedCall& c, const Stream& stream) {
  const ExprFunction& score = c.score;
  const ExprBody& body = *score.body();
  const DType sums = c.sums;
  const std::int64_t batch = c.q.size(0), heads = c.q.size(1), q_len = c.q.size(2), kv_len = c.k.size(2), group = heads / c.k.size(1);
  const Dims extents{batch, heads, q_len, kv_len};
  const Device device = stream.device();
  const std::vector<CapturedRead> reads = captured_reads(score);
  std::vector<Class> kinds;
  for (const CapturedRead& read : reads)
    kinds.push_back(class_of(body, body.steps[static_cast<std::size_t>(read.step)], score.captured_tensor(read.tensor), extents));
  std::vector<Tensor> totals(static_cast<std::size_t>(score.captured_count()));
  /// first, first + 1, ... (or downwards) along one of four dimensions.
  auto counting = [&](std::int64_t n, int dim, std::int64_t first = 0, std::int64_t step = 1) {
    Dims sizes{1, 1, 1, 1};
    sizes[dim] = n;
    return arange(static_cast<double>(first), static_cast<double>(first + step * n), static_cast<double>(step), {.dtype = DType::i32, .device = device}, stream)
        .reshape(sizes);
  };
  const Tensor of_b = counting(batch, 0), of_h = counting(heads, 1), of_kv = counting(kv_len, 3);
  const Tensor keys = c.k.unsqueeze(2).expand({-1, -1, group, -1, -1}), values = c.v.unsqueeze(2).expand({-1, -1, group, -1, -1});
  const std::int64_t most = std::clamp<std::int64_t>(kChunkBytes / (batch * heads * kv_len * (sums == DType::f64 ? 8 : 4)), 1, q_len);
  for (std::int64_t begin = 0; begin < q_len; begin += most) {
    const std::int64_t rows = std::min(most, q_len - begin);
    const Dims chunk{batch, heads, rows, kv_len};
    auto rows_of = [&](const Tensor& t) { return t.slice(2, begin, begin + rows).reshape({batch, heads / group, group, rows, t.size(3)}); };
    auto lines_of = [&](const Tensor& t) { return t.slice(2, begin, begin + rows).unsqueeze(-1); };
    const Tensor raw = linalg::matmul(rows_of(c.q), keys.mT(), {.alpha = c.scale, .dtype = {sums}}, stream).reshape(chunk);
    const Tensor products = linalg::matmul(rows_of(c.grad), values.mT(), {.dtype = {sums}}, stream).reshape(chunk);
    const Tensor left =
        c.dropout.p > 0 ? dropout_factors(c.dropout, sums, begin, begin + rows, stream) : full({1}, 1, {.dtype = sums, .device = device}, stream);
    const Tensor slopes = map(
        [&](Expr x, Expr product, Expr row_max, Expr row_log_sum, Expr delta, Expr factor) {
          const auto [b, h, q, kv] = places_from(begin);
          const Expr inputs[] = {x, b, h, q, kv};
          const Expr weight = select(c.allowed(b, h, q, kv), exp(applied(score, inputs)[0] - row_max - row_log_sum), 0.0f);
          return select(weight == 0, 0.0f, weight * (product * factor - delta));
        },
        {raw, products, lines_of(c.row_max), lines_of(c.row_log_sum), lines_of(c.delta), left}, {.dtypes = {sums}}, stream);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const CapturedRead& read = reads[i];
      const Class& kind = kinds[i];
      const Tensor& tensor = score.captured_tensor(read.tensor);
      Tensor& total = totals[static_cast<std::size_t>(read.tensor)];
      const DType dtype = compute_dtype(tensor.dtype(), "flex_backward");
      if (!total.defined()) total = zeros(tensor.sizes(), {.dtype = dtype, .device = device}, stream);
      const bool by_distance = kind.at.on[2] && kind.at.on[3] && kind.at.by_distance;
      Dims others;
      for (int d = 0; d < 4; ++d)
        if (!kind.at.on[static_cast<std::size_t>(d)]) others.push_back(d);
      auto gradient = [&](Expr x, Expr slope) {
        const auto [b, h, q, kv] = places_from(begin);
        const Expr inputs[] = {x, b, h, q, kv, slope};
        return applied(read.gradient, inputs)[0];
      };
      Tensor part = others.empty() ? map(gradient, {raw, slopes}, {.dtypes = {dtype}}, stream)
                                   : reduce(Reduce::sum, gradient, {raw, slopes}, {.dims = others, .keep_dims = KeepDims::yes, .dtype = {dtype}}, stream);
      if (kind.direct) {
        // Straight to where they belong; dimensions that are not read have a size of 1 here.
        Dims sizes{1, 1, 1, 1}, strides{0, 0, 0, 0};
        std::int64_t offset = 0;
        for (int d = 0; d < 4; ++d)
          if (const int dim = kind.dim[static_cast<std::size_t>(d)]; dim >= 0) {
            sizes[d] = part.size(d), strides[d] = total.strides()[dim];
            if (d == 2) offset = begin * strides[d];
          }
        add_(total.as_strided(sizes, strides, offset), part, {}, stream);
        continue;
      }
      // Their places, by indices of which only those count that the part has.
      Tensor q = counting(rows, 2, begin), kv = of_kv;
      if (by_distance) {
        part = diagonals(part, stream).reshape({part.size(0), part.size(1), 1, rows + kv_len - 1});
        q = counting(rows + kv_len - 1, 3, begin + rows - 1, -1);
        kv = zeros({1, 1, 1, 1}, {.dtype = DType::i32, .device = device}, stream);
      }
      const Tensor none = zeros({1, 1, 1, 1}, {.dtype = sums, .device = device}, stream);
      std::vector<Tensor> places{none, of_b, of_h, q, kv, none};
      for (Tensor& t : places) {
        for (int d = 0; d < 4; ++d)
          if (t.size(d) > part.size(d)) t = t.slice(d, 0, 1);
        t = t.expand(part.sizes());
      }
      const Tensor place = map(read.gradient_and_place, places, {.dtypes = {dtype, DType::i64}}, stream)[1];
      scatter_reduce_(total.reshape({-1}), 0, place.reshape({-1}), part.contiguous(stream).reshape({-1}), {}, stream);
    }
  }
  std::vector<Tensor> gradients;
  for (int i = 0; i < score.captured_count(); ++i) {
    const Tensor& tensor = score.captured_tensor(i);
    if (!is_floating(tensor.dtype())) continue;
    const Tensor& total = totals[static_cast<std::size_t>(i)];
    gradients.push_back(total.defined() ? total.to(tensor.dtype(), {}, stream) : zeros(tensor.sizes(), {.dtype = tensor.dtype(), .device = device}, stream));
  }
  return gradients;
}

}  // namespace clutch::inline v0::detail
