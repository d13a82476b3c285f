// SPDX-License-Identifier: Apache-2.0
// Gradients of tensors that a score mod captures. Scores and their gradients are recomputed, for a chunk of rows of all heads at a time. They are summed over
// the axes that an element's index does not depend on: directly, along diagonals if the index depends on q - kv alone, or by scatter_reduce otherwise. Unrolled
// dots of captured rows become matrix products, as do their gradients.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/rowwise.hpp>
#include <clutch/ops/scatter.hpp>
#include <clutch/pointwise.hpp>

#include "expr/contraction.hpp"
#include "expr/dependence.hpp"
#include "ops/block_mask_plan.hpp"
#include "ops/flex_plan.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

constexpr int kAxes = 4;

/// Address of the element that a read takes, as a function of the positions along four axes. It may depend on the last two by their difference alone.
struct Place {
  std::array<bool, kAxes> on{};
  bool on_values = false;     ///< depends on scores, so on all axes
  bool by_difference = true;  ///< depends on the last two axes by their difference alone
  bool direct = true;         ///< the address is `offset` plus the sum of `strides` times positions; no index is clamped
  Dims strides{0, 0, 0, 0};
  std::int64_t offset = 0;
};

/// A function over four axes. Its inputs are values of tensors, then the positions along the axes, then values of more tensors.
struct Stage {
  ExprFunction function;
  int first_axis = 0;  ///< input that is the position along axis 0
  Dims extents = {};
  std::vector<CapturedRead> reads = {};
  std::vector<Place> places = {};  ///< addresses of the reads

  Stage(const ExprFunction& f, int first, const Dims& sizes) : function(f), first_axis(first), extents(sizes), reads(captured_reads(f)) {
    const std::vector<Dependence> all = dependences(*f.body(), first + 2, first + 3);
    for (const CapturedRead& read : reads) places.push_back(place_of(read, all));
  }
  bool is_axis(int input) const { return input >= first_axis && input < first_axis + kAxes; }

 private:
  Place place_of(const CapturedRead& read, const std::vector<Dependence>& all) const {
    const ExprBody& body = *function.body();
    const Dims& sizes = function.captured_tensor(read.tensor).sizes();
    const std::vector<int>& indices = body.steps[static_cast<std::size_t>(read.step)].operands;
    Place place;
    std::int64_t stride = 1;
    for (int d = sizes.rank() - 1; d >= 0; stride *= sizes[d], --d) {
      if (sizes[d] == 1) continue;
      const int index = indices[static_cast<std::size_t>(d)];
      const Dependence& depends = all[static_cast<std::size_t>(index)];
      place.by_difference = place.by_difference && depends.by_difference;
      for (int i = 0; i < function.input_count(); ++i)
        if (depends.on(i)) (is_axis(i) ? place.on[static_cast<std::size_t>(i - first_axis)] : place.on_values) = true;
      const std::optional<ShiftedInput> shifted = shifted_input(body, index);
      if (!shifted || (shifted->input >= 0 && !is_axis(shifted->input))) {
        place.direct = false;
      } else if (shifted->input < 0) {
        place.offset += std::clamp<std::int64_t>(shifted->shift, 0, sizes[d] - 1) * stride;
      } else {
        const int axis = shifted->input - first_axis;
        place.direct = place.direct && shifted->shift >= 0 && shifted->shift + extents[axis] <= sizes[d];
        place.offset += shifted->shift * stride, place.strides[axis] += stride;
      }
    }
    if (place.on_values) place.on.fill(true), place.by_difference = false;
    return place;
  }
};

/// Bytes of scratch for a chunk of scores, and the same for products and for gradients; at least one row of all heads.
constexpr std::int64_t kChunkBytes = 16 << 20;

/// Positions along the axes, for rows from `begin` on.
std::array<Expr, kAxes> places_from(std::int64_t begin) {
  auto at = [](int d) { return cast(position(d), DType::i32); };
  return {at(0), at(1), at(2) + param(begin), at(3)};
}

/// Sums along the diagonals of (..., R, S), as (..., R + S - 1). Element c is the sum of the elements with column - row = c - (R - 1).
Tensor diagonals(const Tensor& x, const Stream& stream) {
  const std::int64_t lines = x.numel() / (x.size(-1) * x.size(-2)), rows = x.size(-2), columns = x.size(-1), row_stride = rows + columns;
  // Rows are stored with zeros between them, which a view along diagonals reads where a diagonal leaves a row.
  const Tensor padded = zeros({lines * (rows * row_stride + rows)}, {.dtype = x.dtype(), .device = x.device()}, stream);
  const std::int64_t line = rows * row_stride + rows;
  copy_(padded.as_strided({lines, rows, columns}, {line, row_stride, 1}, rows - 1), x.reshape({lines, rows, columns}), {}, stream);
  return sum(padded.as_strided({lines, rows, rows + columns - 1}, {line, row_stride + 1, 1}), {.dims = {1}}, stream);
}

/// Gradients of a row's scores. The weights are of these very scores, so that gradients cancel in a row however the scores were rounded. A score that is
/// masked, or has a weight of 0, contributes 0, even if its product is infinite or NaN.
struct Slopes {
  Expr operator()(Row& row, const Expr& score, const Expr& product, const Expr& grad_lse) const {
    const Expr none = score == -std::numeric_limits<float>::infinity();
    const Expr row_max = row.max(score), shift = select(row_max == -std::numeric_limits<float>::infinity(), 0.0f, row_max);
    const Expr p = exp(score - shift), row_sum = row.sum(p), normalized = p / row_sum;
    auto counted = [&](const Expr& x) { return select(none | (p == 0), 0.0f, normalized * x); };
    return counted(product - row.sum(counted(product)) + grad_lse);
  }
};

/// Tensors, and their values as expressions for functions over these tensors.
struct Inputs {
  std::vector<Tensor> tensors = {};
  std::vector<DType> dtypes = {};

  Expr add(const Tensor& t) {
    tensors.push_back(t), dtypes.push_back(compute_dtype(t.dtype(), "flex_backward"));
    return expr_input(static_cast<int>(tensors.size()) - 1, dtypes.back());
  }
  Tensor map(const Expr& output, DType dtype, const Stream& stream) const {
    return v0::map(ExprFunction(dtypes, std::span(&output, 1)), tensors, {.dtype = {dtype}}, stream)[0];
  }
  Tensor sum(const Expr& output, const Dims& dims, DType dtype, const Stream& stream) const {
    if (dims.empty()) return map(output, dtype, stream);
    return reduce(Reduce::sum, ExprFunction(dtypes, std::span(&output, 1)), tensors, {.dims = dims, .keepdim = true, .dtype = {dtype}}, stream);
  }
};

/// Values of a function of positions alone. The size is 1 along those of the first two axes that it does not depend on.
Tensor tabulated(const ExprFunction& f, Dims sizes, std::int64_t begin, const Stream& stream) {
  const ExprBody& body = *f.body();
  const Dependence depends = dependences(body, 2, 3)[static_cast<std::size_t>(body.outputs[0])];
  for (int axis = 0; axis < 2; ++axis)
    if (!depends.on(axis)) sizes[axis] = 1;
  Inputs inputs;
  inputs.add(zeros({1, 1, 1, 1}, {.dtype = f.output_dtype(0), .device = stream.device()}, stream).expand(sizes));
  return inputs.map(applied(f, places_from(begin))[0], f.output_dtype(0), stream);
}

/// Sums of the captured tensors' gradients.
class Totals {
 public:
  Totals(const ExprFunction& score, const Stream& stream) : score_(score), totals_(static_cast<std::size_t>(score.captured_count())), stream_(stream) {}

  /// Adds the gradients of the reads of a stage. `slopes` is the gradient of the stage's result, for rows from `begin` on; `values` are the stage's tensors, by
  /// input.
  void add(const Stage& stage, const std::vector<Tensor>& values, const Tensor& slopes, std::int64_t begin) {
    for (std::size_t i = 0; i < stage.reads.size(); ++i) {
      const CapturedRead& read = stage.reads[i];
      const Place& place = stage.places[i];
      const Tensor total = total_of(stage.function.captured_tensor(read.tensor));
      Inputs inputs;
      std::vector<Expr> arguments = arguments_of(stage, places_from(begin), [&](std::size_t k) { return inputs.add(values[k]); });
      const Expr slope = inputs.add(slopes);
      arguments.push_back(slope);
      // An element without weight contributes 0, even if its derivative is infinite or NaN.
      const Expr gradient = applied(read.gradient, arguments)[0], counted = select(slope == 0, 0, gradient);
      Dims others;
      for (int d = 0; d < kAxes; ++d)
        if (!place.on[static_cast<std::size_t>(d)]) others.push_back(d);
      const Tensor part = inputs.sum(counted, others, total.dtype(), stream_);
      if (place.direct)
        add_(total.as_strided(part.sizes(), place.strides, place.offset + begin * place.strides[2]), part, {}, stream_);
      else
        scatter(stage, read, place, values, part, total, begin);
    }
  }

  std::vector<Tensor> gradients() const {
    std::vector<Tensor> made;
    for (std::size_t i = 0; i < totals_.size(); ++i) {
      const Tensor &tensor = score_.captured_tensor(static_cast<int>(i)), &total = totals_[i];
      if (!is_floating(tensor.dtype())) continue;
      made.push_back(total.defined() ? total.to(tensor.dtype(), {}, stream_)
                                     : zeros(tensor.sizes(), {.dtype = tensor.dtype(), .device = stream_.device()}, stream_));
    }
    return made;
  }

 private:
  const Tensor& total_of(const Tensor& tensor) {
    int i = 0;
    while (!same_view(score_.captured_tensor(i), tensor)) ++i;
    Tensor& total = totals_[static_cast<std::size_t>(i)];
    if (!total.defined()) total = zeros(tensor.sizes(), {.dtype = compute_dtype(tensor.dtype(), "flex_backward"), .device = stream_.device()}, stream_);
    return total;
  }

  template <class F>
  static std::vector<Expr> arguments_of(const Stage& stage, const std::array<Expr, kAxes>& places, F&& value) {
    std::vector<Expr> arguments;
    for (int k = 0; k < stage.function.input_count(); ++k)
      arguments.push_back(stage.is_axis(k) ? places[static_cast<std::size_t>(k - stage.first_axis)] : value(static_cast<std::size_t>(k)));
    return arguments;
  }

  void scatter(const Stage& stage, const CapturedRead& read, const Place& place, const std::vector<Tensor>& values, Tensor part, const Tensor& total,
               std::int64_t begin) {
    std::array<Expr, kAxes> places = places_from(begin);
    if (place.on[2] && place.on[3] && place.by_difference) {
      // Diagonal c becomes element c of one row. Its index is computed for column 0 and the row at the same distance.
      const std::int64_t rows = part.size(2), columns = part.size(3);
      part = diagonals(part, stream_).reshape({part.size(0), part.size(1), 1, rows + columns - 1});
      places[2] = param(begin + rows - 1) - cast(position(3), DType::i32), places[3] = cast(Expr(0), DType::i32);
    }
    Inputs inputs;
    inputs.add(part);  // for its shape
    auto value = [&](std::size_t k) { return place.on_values ? inputs.add(values[k]) : expr_constant(stage.function.input_dtype(static_cast<int>(k)), 0); };
    std::vector<Expr> arguments = arguments_of(stage, places, value);
    arguments.push_back(expr_constant(stage.function.output_dtype(0), 0));
    const Tensor at = inputs.map(applied(read.gradient_and_place, arguments)[1], DType::i64, stream_);
    scatter_reduce_(total.reshape({-1}), 0, at.reshape({-1}), part.contiguous(stream_).reshape({-1}), {}, stream_);
  }

  const ExprFunction& score_;
  std::vector<Tensor> totals_;  ///< by index of the score mod's captured tensor; undefined: zero
  const Stream& stream_;
};

/// A contraction of a score mod, with the sums that are accumulated over chunks of rows.
struct Dot {
  Stage left, right;
  Tensor keys;       ///< values of the right side, (B or 1, Hq or 1, S, count)
  Tensor grad = {};  ///< gradient of `keys`, (B, Hq, S, count)
};

}  // namespace

std::vector<Tensor> captured_gradients(const CapturedCall& c, const Stream& stream) {
  const DType sums = c.sums;
  const std::int64_t batch = c.q.size(0), heads = c.q.size(1), q_len = c.q.size(2), kv_len = c.k.size(2), gqa_factor = heads / c.k.size(1);
  const Contracted parts = contracted(c.score);
  const Stage rest(parts.rest, 1, {batch, heads, q_len, kv_len});
  const ExprFunction backward = parts.sums.empty() ? ExprFunction() : parts.rest.backward();  // gradients of the score, then of each contraction
  std::vector<Dot> dots;
  for (const Contraction& s : parts.sums)
    dots.push_back({.left = Stage(s.left, 0, {batch, heads, q_len, s.count}),
                    .right = Stage(s.right, 0, {batch, heads, kv_len, s.count}),
                    .keys = tabulated(s.right, {batch, heads, kv_len, s.count}, 0, stream)});
  Totals totals(c.score, stream);
  const Tensor keys = c.k.unsqueeze(2).expand({-1, -1, gqa_factor, -1, -1}), values = c.v.unsqueeze(2).expand({-1, -1, gqa_factor, -1, -1});
  const Tensor grad_lse = (c.grad_lse.defined() ? c.grad_lse.unsqueeze(-1) : zeros({1, 1, 1, 1}, {.dtype = sums, .device = stream.device()}, stream))
                              .expand({batch, heads, q_len, kv_len});
  const RowFunction of_scores = trace_rows(Slopes{}, std::array{sums, sums, sums});
  const std::int64_t most = std::clamp<std::int64_t>(kChunkBytes / (batch * heads * kv_len * (sums == DType::f64 ? 8 : 4)), 1, q_len);
  for (std::int64_t begin = 0; begin < q_len; begin += most) {
    const std::int64_t rows = std::min(most, q_len - begin);
    const Dims chunk{batch, heads, rows, kv_len};
    auto rows_of = [&](const Tensor& t) { return t.slice(2, begin, begin + rows).reshape({batch, heads / gqa_factor, gqa_factor, rows, t.size(3)}); };
    const Tensor raw = linalg::matmul(rows_of(c.q), keys.mT(), {.alpha = c.scale, .dtype = {sums}}, stream).reshape(chunk);
    const Tensor products = linalg::matmul(rows_of(c.grad), values.mT(), {.dtype = {sums}}, stream).reshape(chunk);
    std::vector<Tensor> given{raw, {}, {}, {}, {}}, queries;  // inputs of `rest`; left sides of the contractions
    for (Dot& dot : dots) {
      queries.push_back(tabulated(dot.left.function, {batch, heads, rows, dot.left.extents[3]}, begin, stream));
      given.push_back(linalg::matmul(queries.back(), dot.keys.mT(), {}, stream));
    }
    auto arguments_from = [&](Inputs& inputs) {
      const auto [b, h, q, kv] = places_from(begin);
      std::vector<Expr> arguments{inputs.add(raw), b, h, q, kv};
      for (std::size_t i = 0; i < dots.size(); ++i) arguments.push_back(inputs.add(given[5 + i]));
      return arguments;
    };
    Inputs inputs;
    const std::vector<Expr> at = arguments_from(inputs);
    const Expr visible = select(c.allowed(at[1], at[2], at[3], at[4]), applied(parts.rest, at)[0], -std::numeric_limits<float>::infinity());
    const Tensor scores = inputs.map(visible, sums, stream);
    if (c.dropout.p > 0) mul_out(products, products, dropout_factors(c.dropout, sums, begin, begin + rows, stream), {}, stream);
    const Tensor of_row[] = {scores, products, grad_lse.slice(2, begin, begin + rows)};
    const Tensor& slopes = products;
    rowwise_out(std::span(&slopes, 1), of_scores, of_row, {}, stream);
    totals.add(rest, given, slopes, begin);
    for (std::size_t i = 0; i < dots.size(); ++i) {
      Dot& dot = dots[i];
      Inputs of_dot;
      std::vector<Expr> arguments = arguments_from(of_dot);
      const Expr slope = of_dot.add(slopes);
      arguments.push_back(slope);
      const Tensor grad = of_dot.map(select(slope == 0, 0, applied(backward, arguments)[1 + i]), given[5 + i].dtype(), stream);
      if (!dot.left.reads.empty()) totals.add(dot.left, {}, linalg::matmul(grad, dot.keys, {}, stream), begin);
      if (dot.right.reads.empty()) continue;
      if (!dot.grad.defined()) dot.grad = zeros({batch, heads, kv_len, dot.right.extents[3]}, {.dtype = grad.dtype(), .device = stream.device()}, stream);
      linalg::matmul_out(dot.grad, grad.mT(), queries[i], {.beta = 1}, stream);
    }
  }
  for (const Dot& dot : dots)
    if (dot.grad.defined()) totals.add(dot.right, {}, dot.grad, 0);
  return totals.gradients();
}

}}}  // namespace clutch::v0::detail
