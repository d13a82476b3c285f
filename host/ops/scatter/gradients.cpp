// SPDX-License-Identifier: Apache-2.0
// Gradients of reductions by index, by offsets and of sparse products, composed of gather, scatter, segments and map. Also embedding, which gathers rows.
#include <clutch/expr.hpp>
#include <clutch/nn.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/group.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/scatter.hpp>
#include <clutch/sparse.hpp>

#include "encode/elementwise.hpp"
#include "encode/plugin_ops.hpp"
#include "expr/node.hpp"
#include "ops/out_form.hpp"
#include "ops/scatter_plan.hpp"
#include "ops/segment_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <functional>

namespace clutch { inline namespace v0 {
namespace {

/// How entries map to slots and slots to entries.
struct Reduction {
  bool nan_ties;                                                      ///< amin and amax: NaN entries share a NaN slot's gradient; else all entries get NaN
  std::function<Tensor(const Tensor& slots)> take;                    ///< value of each entry's slot
  std::function<Tensor(const Tensor& entries, Reduce reduce)> total;  ///< sum or product of each slot's entries
};

/// Slots are segments; `ids` says which one each entry is in.
Reduction by_segments(const Tensor& ids, const Tensor& offsets, const char* op, const Stream& stream) {
  return {true, [=](const Tensor& t) { return detail::select_rows(t, ids, 0, op, stream); },
          [=](const Tensor& t, Reduce reduce) { return segment_reduce(t, offsets, {.reduce = reduce}, stream); }};
}

Stream resolved(const Tensor& t, const Stream& given, const char* op) { return detail::resolve_stream(given, t.storage()->runtime(), op); }

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
Expr zero_of(const Expr& x) { return cast(Expr(0), x.dtype()); }
Expr one_if(const Expr& condition, const Expr& like) { return select(condition, cast(Expr(1), like.dtype()), zero_of(like)); }

/// Gradients of slots that reduce their entries and, if `self` is defined, their own values. Computed in f32, or f64 for f64.
ScatterGradients gradients(Reduce reduce, const Tensor& grad, const Tensor& result, const Tensor& src, const Tensor& self, const Reduction& r,
                           const Stream& stream) {
  const DType dtype = detail::compute_dtype(src.dtype(), "backward");
  const MapOptions kept{.dtype = {dtype}};
  Tensor g = grad.to(dtype, {}, stream);
  ScatterGradients made;
  if (reduce == Reduce::sum || reduce == Reduce::mean) {
    if (reduce == Reduce::mean) {
      Tensor count = r.total(map([](Expr x) { return one_if(Expr(true), x); }, {src}, kept, stream), Reduce::sum);
      double own = self.defined() ? 1 : 0;
      g = map([&](Expr a, Expr n) { return a / max(n + own, cast(Expr(1), n.dtype())); }, {g, count}, kept, stream);
    }
    made.self = g;
    made.src = r.take(g);
  } else if (reduce == Reduce::prod) {
    Tensor zeros_of = r.total(map([](Expr x) { return one_if(x == 0, x); }, {src}, kept, stream), Reduce::sum);
    Tensor others = r.total(map([](Expr x) { return select(x == 0, cast(Expr(1), x.dtype()), x); }, {src}, kept, stream), Reduce::prod);
    if (self.defined()) {
      zeros_of = map([](Expr n, Expr x) { return n + one_if(x == 0, n); }, {zeros_of, self}, kept, stream);
      others = map([](Expr p, Expr x) { return select(x == 0, p, p * x); }, {others, self}, kept, stream);
    }
    // The product of all other factors: if none is zero, the product divided by x; if one is zero, nonzero for that factor alone.
    // NaN, of slots that take too long, passes on.
    auto share = [](Expr x, Expr n, Expr product) {
      Expr none = select(n == n, zero_of(product), n), of_zero = select(n == 1, product, none), of_other = select(n == 0, product / x, none);
      return select(x == 0, of_zero, of_other);
    };
    Tensor product = map([](Expr a, Expr p) { return a * p; }, {g, others}, kept, stream);
    made.src = map(share, {src, r.take(zeros_of), r.take(product)}, kept, stream);
    if (self.defined()) made.self = map(share, {self, zeros_of, product}, kept, stream);
  } else {
    auto hits = [&](Expr x, Expr y) { return one_if(r.nan_ties ? (x == y) | (isnan(x) & isnan(y)) : x == y, x); };
    Tensor of_src = map(hits, {src, r.take(result)}, kept, stream), count = r.total(of_src, Reduce::sum);
    if (self.defined()) count = map([&](Expr n, Expr x, Expr y) { return n + hits(x, y); }, {count, self, result}, kept, stream);
    // Without a hit a segment's initial value was the result; a slot of scatter is NaN.
    auto divided = [&](Expr a, Expr n) { return a / (r.nan_ties ? max(n, cast(Expr(1), n.dtype())) : select(n == 0, cast(Expr(kNaN), n.dtype()), n)); };
    Tensor share = map(divided, {g, count}, kept, stream);
    auto given = [&](Expr hit, Expr s) { return select(r.nan_ties ? hit == 0 : (hit == 0) & (s == s), zero_of(s), s); };
    made.src = map(given, {of_src, r.take(share)}, kept, stream);
    if (self.defined()) made.self = map([&](Expr x, Expr y, Expr s) { return given(hits(x, y), s); }, {self, result, share}, kept, stream);
  }
  made.src = made.src.to(src.dtype(), {}, stream);
  return made;
}

}  // namespace

ScatterGradients scatter_reduce_backward(const Tensor& grad, const Tensor& result, const Tensor& self, int dim, const Tensor& index, const Tensor& src,
                                         const ScatterOptions& options, const Stream& given) {
  detail::OpName named("scatter_reduce_backward");
  constexpr const char* op = "scatter_reduce_backward";
  detail::check_reduce(options.reduce, op);
  detail::check_scatter_implementation(options.implementation, op);
  for (const Tensor* t : {&grad, &result, &self, &index, &src}) {
    if (!t->defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
    if (t != &index && !is_floating(t->dtype())) throw Error(ErrorCode::invalid_dtype, op, fmt::format("tensors must be floating, got {}", name(t->dtype())));
  }
  if (!(grad.sizes() == self.sizes()) || !(result.sizes() == self.sizes()))
    throw Error(
        ErrorCode::invalid_shape, op,
        fmt::format("gradient and result must have the shape {}, got {} and {}", to_string(self.sizes()), to_string(grad.sizes()), to_string(result.sizes())));
  Stream stream = resolved(self, given, op);
  bool includes = options.include_self, whole = src.sizes() == index.sizes();
  Tensor used = whole || index.rank() != src.rank() ? src : src.as_strided(index.sizes(), src.strides());
  Reduction r{false, [&](const Tensor& t) { return detail::gather_or(t, dim, index, 0, op, stream); },
              [&](const Tensor& t, Reduce reduce) {
                Tensor start = full(self.sizes(), reduce == Reduce::prod ? 1 : 0, {.dtype = t.dtype(), .device = t.device()}, stream);
                scatter_reduce_(start, dim, index, t, {.reduce = reduce}, stream);
                return start;
              }};
  ScatterGradients made = gradients(options.reduce, grad, result, used, includes ? self : Tensor(), r, stream);
  Tensor own = made.self.defined() ? made.self : grad;
  if (!includes) {
    Tensor ones = full(index.sizes(), 1, {.dtype = detail::compute_dtype(self.dtype(), op), .device = self.device()}, stream);
    own = map([](Expr g, Expr n) { return select(n == 0, g, zero_of(g)); }, {grad, r.total(ones, Reduce::sum)}, {.dtype = {self.dtype()}}, stream);
  }
  made.self = own.to(self.dtype(), {}, stream);
  if (!whole) {
    // Elements of src outside of the index have no influence on the result.
    Tensor wide = zeros(src.sizes(), {.dtype = src.dtype(), .device = src.device()}, stream);
    copy_(wide.as_strided(index.sizes(), wide.strides()), made.src, {}, stream);
    made.src = wide;
  }
  return made;
}

void scatter_reduce_backward_out(const ScatterGradients& out, const Tensor& grad, const Tensor& result, const Tensor& self, int dim, const Tensor& index,
                                 const Tensor& src, const ScatterOptions& options, const Stream& stream) {
  detail::OpName named("scatter_reduce_backward_out");
  const ScatterGradients made = scatter_reduce_backward(grad, result, self, dim, index, src, options, stream);
  const detail::Stored all[] = {{out.self, made.self, "out.self"}, {out.src, made.src, "out.src"}};
  detail::store(all, "scatter_reduce_backward", stream);
}

Tensor segment_reduce_backward(const Tensor& grad, const Tensor& result, const Tensor& data, const Tensor& offsets, const SegmentOptions& options,
                               const Stream& given) {
  detail::OpName named("segment_reduce_backward");
  constexpr const char* op = "segment_reduce_backward";
  detail::check_reduce(options.reduce, op);
  detail::check_segment_implementation(options.implementation, op);
  for (const Tensor* t : {&grad, &result, &data, &offsets})
    if (!t->defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
  Dims wanted = data.sizes();
  if (data.rank() == 0 || offsets.rank() != 1 || offsets.numel() == 0)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("data must have a dimension and offsets one of at least one, got {} and {}", to_string(data.sizes()), to_string(offsets.sizes())));
  wanted[0] = offsets.numel() - 1;
  if (!(grad.sizes() == wanted) || !(result.sizes() == wanted))
    throw Error(
        ErrorCode::invalid_shape, op,
        fmt::format("gradient and result must have the shape {}, got {} and {}", to_string(wanted), to_string(grad.sizes()), to_string(result.sizes())));
  Stream stream = resolved(data, given, op);
  // A product's initial value is a factor of every gradient.
  bool scaled = options.initial && options.reduce == Reduce::prod;
  Tensor g = grad;
  if (scaled) g = map([&](Expr x) { return x * param(*options.initial); }, {grad}, {.dtype = {detail::compute_dtype(data.dtype(), op)}}, stream);
  Tensor ids = detail::segment_ids(offsets, data.size(0), op, stream);
  return gradients(options.reduce, g, result, data, {}, by_segments(ids, offsets, op, stream), stream).src;
}

void segment_reduce_backward_out(const Tensor& out, const Tensor& grad, const Tensor& result, const Tensor& data, const Tensor& offsets,
                                 const SegmentOptions& options, const Stream& stream) {
  detail::OpName named("segment_reduce_backward_out");
  detail::store(out, segment_reduce_backward(grad, result, data, offsets, options, stream), "segment_reduce_backward", stream);
}

namespace sparse {

namespace {

/// The gradients that are asked for, which are both if `outs` is null, that of b in its tensor of `outs` where this can be written at once.
SpmmGradients spmm_gradients(const SpmmGradients* outs, const Tensor& grad, const Tensor& result, const Csr& a, const Tensor& b, const SpmmOptions& options,
                             const Stream& given) {
  constexpr const char* op = "spmm_backward";
  detail::check_reduce(options.reduce, op);
  detail::check_segment_implementation(options.implementation, op);
  for (const Tensor* t : {&grad, &result, &a.offsets, &a.columns, &b})
    if (!t->defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
  const std::int64_t rows = a.offsets.numel() - 1, entries = a.columns.numel();
  if (b.rank() != 2 || b.size(0) != a.width || !(grad.sizes() == Dims{rows, b.size(1)}) || !(result.sizes() == grad.sizes()))
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("gradient and result must be of a matrix of {} rows and {} columns times one of {}, got {} and {}", rows, a.width,
                            to_string(b.sizes()), to_string(grad.sizes()), to_string(result.sizes())));
  const bool wants_values = !outs || outs->values.defined(), wants_b = !outs || outs->b.defined();
  Stream stream = resolved(b, given, op);
  const DType dtype = detail::compute_dtype(b.dtype(), op);
  const MapOptions kept{.dtype = {dtype}};
  Tensor ids = detail::segment_ids(a.offsets, entries, op, stream);
  Tensor values = a.values.defined() ? a.values.to(dtype, {}, stream) : Tensor();
  Groups by_column;
  SpmmGradients made;
  if (wants_b) {
    // Entries that belong to no row must belong to no column.
    Tensor columns = map([&](Expr i, Expr c) { return select(cast(i, DType::i64) < 0, param(a.width), cast(c, DType::i64)); }, {ids, a.columns},
                         {.dtype = {DType::i64}}, stream);
    by_column = group_by(columns, a.width, {}, stream);
    const Tensor* inputs[] = {&grad, &result, &a.offsets, &a.columns, &a.values, &b};
    made.b = detail::result_tensor(outs && b.dtype() == dtype ? outs->b : Tensor(), b.sizes(), dtype, inputs, stream);
  }
  if (options.reduce == Reduce::sum || options.reduce == Reduce::mean) {
    Tensor g = grad.to(dtype, {}, stream);
    if (options.reduce == Reduce::mean) {
      Tensor begin = a.offsets.slice(0, 0, rows).unsqueeze(1), end = a.offsets.slice(0, 1, rows + 1).unsqueeze(1);
      g = map([&](Expr x, Expr from, Expr to) { return x / max(cast(to - from, x.dtype()), cast(Expr(1), x.dtype())); }, {g, begin, end}, kept, stream);
    }
    if (wants_values) made.values = detail::segment_dots(g, b.to(dtype, {}, stream), a.offsets, a.columns, {}, options.implementation, op, stream);
    if (wants_b) {
      Csr transposed{.offsets = by_column.offsets, .columns = gather(ids, 0, by_column.order, stream), .width = rows};
      if (values.defined()) transposed.values = gather(values, 0, by_column.order, stream);
      spmm_out(made.b, transposed, g, {}, stream);
    }
  } else if (options.reduce == Reduce::prod) {
    Tensor taken = detail::select_rows(b.to(dtype, {}, stream), a.columns, kNaN, op, stream);
    Tensor weights = values.defined() ? values.unsqueeze(1) : full({1, 1}, 1, {.dtype = dtype, .device = b.device()}, stream);
    Tensor terms = map([](Expr x, Expr w) { return x * w; }, {taken, weights}, kept, stream);
    Tensor of_terms = gradients(Reduce::prod, grad, result, terms, {}, by_segments(ids, a.offsets, op, stream), stream).src;
    if (wants_values)
      made.values = reduce(
          Reduce::sum, [](Expr g, Expr x) { return select(g == 0, zero_of(g), g * x); }, {of_terms, taken}, {.dims = {1}}, stream);
    if (wants_b) {
      Tensor weighted = map([](Expr g, Expr w) { return g * w; }, {of_terms, weights}, kept, stream);
      detail::segment_into(made.b, {.op = op, .data = weighted, .offsets = by_column.offsets, .columns = by_column.order, .data_rows = entries}, {}, stream);
    }
  } else {
    Tensor g = grad.to(dtype, {}, stream).contiguous(stream), dense = b.to(dtype, {}, stream);
    Tensor firsts = detail::segment_first({.op = op, .data = dense, .offsets = a.offsets, .columns = a.columns, .values = values}, result.to(dtype, {}, stream),
                                          b.dtype(), options.implementation, stream);
    if (wants_values) made.values = detail::segment_dots(g, dense, a.offsets, a.columns, firsts, options.implementation, op, stream);
    if (wants_b) {
      // Sums by columns; an entry counts if it is the first of its row to give the result.
      Tensor rows_of = gather(ids, 0, by_column.order, stream);
      Tensor places = map([&](Expr i, Expr k) { return cast(k - cast(captured(a.offsets)[cast(i, DType::i64)], DType::i64), dtype); },
                          {rows_of, by_column.order}, kept, stream);
      detail::Segments transposed{.op = op, .data = g, .offsets = by_column.offsets, .columns = rows_of};
      if (values.defined()) transposed.values = gather(values, 0, by_column.order, stream);
      transposed.firsts = firsts, transposed.places = places, transposed.data_rows = rows;
      detail::segment_into(made.b, transposed, {}, stream);
    }
  }
  if (wants_values) made.values = made.values.to(a.values.defined() ? a.values.dtype() : b.dtype(), {}, stream);
  if (wants_b) made.b = made.b.to(b.dtype(), {}, stream);
  return made;
}

}  // namespace

SpmmGradients spmm_backward(const Tensor& grad, const Tensor& result, const Csr& a, const Tensor& b, const SpmmOptions& options, const Stream& stream) {
  detail::OpName named("sparse::spmm_backward");
  return spmm_gradients(nullptr, grad, result, a, b, options, stream);
}
void spmm_backward_out(const SpmmGradients& out, const Tensor& grad, const Tensor& result, const Csr& a, const Tensor& b, const SpmmOptions& options,
                       const Stream& stream) {
  detail::OpName named("sparse::spmm_backward_out");
  const SpmmGradients made = spmm_gradients(&out, grad, result, a, b, options, stream);
  const detail::Stored all[] = {{out.values, made.values, "out.values"}, {out.b, made.b, "out.b"}};
  detail::store(all, "spmm_backward", stream);
}

}  // namespace sparse

namespace nn {

namespace {

/// Rows of the weight, in `out` where that can be written at once.
Tensor embedded(const Tensor& out, const Tensor& weight, const Tensor& index, const Stream& given) {
  if (!weight.defined() || !index.defined()) throw Error(ErrorCode::invalid_argument, "embedding", "a tensor must be defined, got an undefined one");
  if (weight.rank() != 2) throw Error(ErrorCode::invalid_shape, "embedding", fmt::format("weight must be of rank 2, got shape {}", to_string(weight.sizes())));
  if (!is_floating(weight.dtype()) || !is_integral(index.dtype()))
    throw Error(ErrorCode::invalid_dtype, "embedding",
                fmt::format("weights must be floating and indices integers, got {} and {}", name(weight.dtype()), name(index.dtype())));
  Stream stream = resolved(weight, given, "embedding");
  Dims sizes = index.sizes();
  sizes.push_back(weight.size(1));
  const Tensor* both[] = {&weight, &index};
  const Tensor rows = detail::result_tensor(out, sizes, weight.dtype(), both, stream);
  constexpr std::string_view kOp = "nn::embedding";
  if (detail::has_plugin_implementations(kOp) && numel(sizes) > 0 && weight.numel() > 0) {
    detail::common_runtime(both, "embedding");
    if (detail::by_plugin(kOp, {}, {&rows, &weight, &index, &stream}, stream)) return rows;
  }
  Tensor columns = (index.dtype() == DType::i32 ? index : index.to(DType::i64, {}, stream)).contiguous(stream).reshape({-1});
  detail::select_rows_into(rows.reshape({columns.numel(), weight.size(1)}), weight, columns, std::numeric_limits<double>::quiet_NaN(), "embedding", stream);
  return rows;
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& index, const Stream& stream) {
  detail::OpName named("nn::embedding");
  return embedded({}, weight, index, stream);
}
void embedding_out(const Tensor& out, const Tensor& weight, const Tensor& index, const Stream& stream) {
  detail::OpName named("nn::embedding_out");
  detail::store(out, embedded(out, weight, index, stream), "embedding", stream);
}

namespace {

/// The weight's gradient, in `out` where that can be written at once.
Tensor weight_gradient(const Tensor& out, const Tensor& grad, const Tensor& index, std::int64_t rows, const EmbeddingBackwardOptions& options,
                       const Stream& given) {
  constexpr const char* op = "embedding_backward";
  if (!grad.defined() || !index.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
  if (!is_floating(grad.dtype()) || !is_integral(index.dtype()))
    throw Error(ErrorCode::invalid_dtype, op,
                fmt::format("gradients must be floating and indices integers, got {} and {}", name(grad.dtype()), name(index.dtype())));
  Dims wanted = index.sizes();
  if (grad.rank() == 0) throw Error(ErrorCode::invalid_shape, op, "the gradient must have a dimension, got a scalar");
  std::int64_t features = grad.size(-1);
  wanted.push_back(features);
  if (!(grad.sizes() == wanted))
    throw Error(ErrorCode::invalid_shape, op, fmt::format("the gradient must have the shape {}, got {}", to_string(wanted), to_string(grad.sizes())));
  Stream stream = resolved(grad, given, op);
  const Tensor* both[] = {&grad, &index};
  const Tensor made = detail::result_tensor(out, {rows, features}, grad.dtype(), both, stream);
  constexpr std::string_view kOp = "nn::embedding_backward";
  if (detail::has_plugin_implementations(kOp) && grad.numel() > 0 && rows > 0) {
    detail::common_runtime(both, op);
    if (detail::by_plugin(kOp, {}, {&made, &grad, &index, &rows, &options, &stream}, stream)) return made;
  }
  Tensor keys = index.to(DType::i64, {}, stream).contiguous(stream).reshape({-1});
  if (options.padding_index >= 0)
    keys = map([&](Expr i) { return select(i == param(options.padding_index), cast(Expr(-1), i.dtype()), i); }, {keys}, {}, stream);
  Groups groups = group_by(keys, rows, {}, stream);
  detail::segment_into(made,
                       {.op = op,
                        .data = grad.contiguous(stream).reshape({keys.numel(), features}),
                        .offsets = groups.offsets,
                        .columns = groups.order,
                        .data_rows = keys.numel()},
                       {.reduce = options.scale_by_frequency ? Reduce::mean : Reduce::sum}, stream);
  return made;
}

}  // namespace

Tensor embedding_backward(const Tensor& grad, const Tensor& index, std::int64_t rows, const EmbeddingBackwardOptions& options, const Stream& stream) {
  detail::OpName named("nn::embedding_backward");
  return weight_gradient({}, grad, index, rows, options, stream);
}
void embedding_backward_out(const Tensor& out, const Tensor& grad, const Tensor& index, std::int64_t rows, const EmbeddingBackwardOptions& options,
                            const Stream& stream) {
  detail::OpName named("nn::embedding_backward_out");
  detail::store(out, weight_gradient(out, grad, index, rows, options, stream), "embedding_backward", stream);
}

}  // namespace nn
}}  // namespace clutch::v0
