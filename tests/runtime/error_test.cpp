// SPDX-License-Identifier: Apache-2.0
// Error::op() is the public function that was called. Each row of the table calls one with bad input; a walk over the public headers finds functions
// without a row.
#include "support/fixture.hpp"
#include "support/messages.hpp"

#include <clutch/clutch.hpp>
#include <clutch/dlpack.hpp>
#include <clutch/interop_cl.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

namespace clutch::testing { namespace {

using List = std::vector<Tensor>;

/// A plain function: what rows share is static, since a thousand std::function of copied tensors take a compiler most of a minute.
struct Call {
  const char* name;
  void (*call)();
};
#define ROW(name, ...)                \
  Call {                              \
    name, [] { (void)(__VA_ARGS__); } \
  }

/// A file with these contents.
std::string file_of(std::string_view name, std::string_view contents) {
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("clutch_errors_{}_{}", ::getpid(), name)).string();
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

/// A path that cannot be read or written: below a file.
const std::string& nowhere() {
  static const std::string path = file_of("nowhere", "") + "/below";
  return path;
}

std::vector<Call> pointwise_rows() {
  static const Tensor no, x = zeros({4});
  std::vector<Call> rows;
#define UNARY(op) rows.push_back(ROW(#op, op(no))), rows.push_back(ROW(#op "_out", op##_out(no, x))), rows.push_back(ROW(#op "_", op##_(no)));
#define BINARY(op)                                                                                                               \
  rows.push_back(ROW(#op, op(no, x))), rows.push_back(ROW(#op, op(no, 2))), rows.push_back(ROW(#op "_out", op##_out(no, x, x))); \
  rows.push_back(ROW(#op "_", op##_(no, x))), rows.push_back(ROW(#op "_", op##_(no, 2)));
  UNARY(neg)
  UNARY(conj)
  UNARY(abs)
  UNARY(sign)
  UNARY(square)
  UNARY(reciprocal)
  UNARY(sqrt)
  UNARY(rsqrt)
  UNARY(exp)
  UNARY(exp2)
  UNARY(expm1)
  UNARY(log)
  UNARY(log2)
  UNARY(log1p)
  UNARY(tanh)
  UNARY(sigmoid)
  UNARY(erf)
  UNARY(sin)
  UNARY(cos)
  UNARY(floor)
  UNARY(ceil)
  UNARY(trunc)
  UNARY(round)
  UNARY(relu)
  UNARY(silu)
  UNARY(softplus)
  UNARY(bitwise_not)
  UNARY(logical_not)
  UNARY(isnan)
  UNARY(isinf)
  UNARY(isfinite)
  BINARY(add)
  BINARY(sub)
  BINARY(mul)
  BINARY(div)
  BINARY(floor_divide)
  BINARY(trunc_divide)
  BINARY(remainder)
  BINARY(fmod)
  BINARY(pow)
  BINARY(minimum)
  BINARY(maximum)
  BINARY(eq)
  BINARY(ne)
  BINARY(lt)
  BINARY(le)
  BINARY(gt)
  BINARY(ge)
  BINARY(bitwise_and)
  BINARY(bitwise_or)
  BINARY(bitwise_xor)
  BINARY(logical_and)
  BINARY(logical_or)
  BINARY(logical_xor)
#undef UNARY
#undef BINARY
  rows.insert(rows.end(), {
                              ROW("add_scaled", add_scaled(no, x, 2)),
                              ROW("add_scaled_", add_scaled_(no, x, 2)),
                              ROW("gelu", gelu(no)),
                              ROW("gelu", gelu(no, GeluForm::tanh)),
                              ROW("leaky_relu", leaky_relu(no)),
                              ROW("clamp", clamp(no, 1, 2)),
                              ROW("clamp", clamp(no, x, x)),
                              ROW("where", where(no, x, x)),
                              ROW("lerp", lerp(no, x, 0.5)),
                              ROW("lerp", lerp(no, x, x)),
                              ROW("add_scaled_out", add_scaled_out(x, no, x, 2)),
                              ROW("gelu_out", gelu_out(x, no)),
                              ROW("leaky_relu_out", leaky_relu_out(x, no)),
                              ROW("clamp_out", clamp_out(x, no, 1, 2)),
                              ROW("clamp_out", clamp_out(x, no, x, x)),
                              ROW("where_out", where_out(x, no, x, x)),
                              ROW("lerp_out", lerp_out(x, no, x, 0.5)),
                              ROW("lerp_out", lerp_out(x, no, x, x)),
                              ROW("sub", 1 - no),
                              ROW("div", 1 / no),
                              ROW("neg", -no),
                              ROW("add", no + x),
                              ROW("mul", 2 * no),
                              // Refused later: by the traced function, by shapes, by overlap, by the plan.
                              ROW("bitwise_and", bitwise_and(x, x)),
                              ROW("floor_divide_", floor_divide_(x, 2)),
                              ROW("exp", exp(x, {.implementation = "none"})),
                              ROW("add", add(x, zeros({3}))),
                              ROW("mul_out", mul_out(zeros({3}), x, x)),
                              ROW("relu_", relu_(zeros({1}).expand({4}))),
                          });
  return rows;
}

std::vector<Call> op_rows() {
  static const Tensor no, x = zeros({4}), m = zeros({4, 4}), i = zeros({4}, {.dtype = DType::i64}), c = zeros({4}, {.dtype = DType::c64});
  static const ExprFunction f = trace([](Expr a) { return a + 1; }, std::array{DType::f32});
  static const ExprFunction two = trace([](Expr a, Expr b) { return a + b; }, std::array{DType::f32, DType::f32});
  static const RowFunction rows = trace_rows([](Row& row, Expr a) { return a / row.sum(a); }, std::array{DType::f32});
  static const linalg::PackedMatrix empty_packed;
  static const sparse::SemiStructured none;
  static const Generator generator;
  static const auto minus = [](Expr a) { return -a; };
  static const auto conjugate = [](const ComplexExpr& z) { return conj(z); };
  return {
      ROW("addcdiv", addcdiv(no, x, x)),
      ROW("addcdiv_out", addcdiv_out(no, x, x, x)),
      ROW("addcdiv_", addcdiv_(no, x, x)),
      ROW("addcdiv", addcdiv(x, x, x, {.implementation = "none"})),
      ROW("addcdiv_", addcdiv_(x, x, x, {.implementation = "none"})),
      ROW("addcmul", addcmul(no, x, x)),
      ROW("addcmul_out", addcmul_out(no, x, x, x)),
      ROW("addcmul_out", addcmul_out(x, x, x, x, {.implementation = "none"})),
      ROW("addcmul_", addcmul_(no, x, x)),
      ROW("copy_", copy_(no, x)),
      ROW("copy_", copy_(x, no)),
      ROW("copy_", copy_(x, zeros({3}))),
      ROW("cast", cast(no, DType::f16)),
      ROW("foreach_map", foreach_map([](Expr a) { return a; }, {std::vector{no}})),
      ROW("foreach_map", foreach_map([](Expr a, Expr b) { return a + b; }, {std::vector{x}, std::vector{x, x}})),
      ROW("foreach_map_out", foreach_map_out(std::vector{x}, [](Expr a, Expr b) { return a + b; }, {std::vector{x}, std::vector{x, x}})),
      ROW("foreach_map_out", foreach_map_out(std::vector{no}, [](Expr a) { return a; }, {std::vector{x}})),
      ROW("cat", cat(std::vector<Tensor>{})),
      ROW("cat", cat(std::vector{x, no})),
      ROW("cat_out", cat_out(no, std::vector{x})),
      ROW("cat_out", cat_out(x, std::vector{x, x})),
      ROW("stack", stack(std::vector{x}, 9)),
      ROW("stack_out", stack_out(x, std::vector{x})),
      ROW("split", split(x, -1)),
      ROW("split", split(no, 1)),
      ROW("split_copy", split_copy(x, std::vector<std::int64_t>{-1})),
      ROW("split_copy_out", split_copy_out(std::vector{no}, x)),
      ROW("foreach_copy_", foreach_copy_(std::vector{x}, std::vector<Tensor>{})),
      ROW("foreach_copy_", foreach_copy_(std::vector{x, x}, std::vector{x, x})),
      ROW("cumsum", cumsum(no)),
      ROW("cumsum", cumsum(x, 7)),
      ROW("cumsum", cumsum(x, 0, {.dtype = {DType::f32, DType::f16}})),
      ROW("cumsum_out", cumsum_out(no, x)),
      ROW("fill_", fill_(no, 1)),
      ROW("fill_", fill_(x, 1, {.implementation = "none"})),
      ROW("arange_", arange_(no, 0, 1)),
      ROW("arange_", arange_(c, 0, 1)),
      ROW("uniform_", uniform_(no)),
      ROW("normal_", normal_(no)),
      ROW("random_", random_(x, 5, 5)),
      ROW("random_", random_(no)),
      ROW("bernoulli_", bernoulli_(x, 2.0)),
      ROW("bernoulli_", bernoulli_(x, no)),
      ROW("exponential_", exponential_(x, -1)),
      ROW("randperm", randperm(-1)),
      ROW("random_uniform", random_uniform(1, DType::i32)),
      ROW("rand", rand({4}, {.dtype = DType::i32})),
      ROW("rand", rand({-4})),
      ROW("randn", randn({4}, {.dtype = DType::i32})),
      ROW("map", map(f, List{no})),
      ROW("map", map(f, List{})),
      ROW("map", map(minus, no)),
      ROW("map", map(minus, {c})),
      ROW("map_out", map_out(List{no}, f, List{x})),
      ROW("map_out", map_out(no, minus, {x})),
      ROW("map_out", map_out(x, minus, {no})),
      ROW("map_dtype", map_dtype(f, 7, List{x})),
      ROW("real", real(no)),
      ROW("imag", imag(x)),
      ROW("view_as_real", view_as_real(x)),
      ROW("view_as_complex", view_as_complex(x)),
      ROW("complex", complex(x, no)),
      ROW("complex_out", complex_out(x, x, x)),
      ROW("map_complex", map_complex(conjugate, {no})),
      ROW("map_complex", map_complex(conjugate, {x}, {.dtype = DType::f32})),
      ROW("map_complex_out", map_complex_out(x, conjugate, {c})),
      ROW("fill_", fill_(x, std::complex<double>(1, 1))),
      ROW("traced_dtypes", traced_dtypes(List{no})),
      ROW("map_backward", map_backward(List{x}, f, List{no})),
      ROW("map_backward", map_backward(List{}, f, List{x})),
      ROW("map_backward", map_backward({x}, minus, {no})),
      ROW("map_backward_out", map_backward_out(List{no}, List{x}, f, List{no})),
      ROW("map_backward_out", map_backward_out(List{}, List{x}, f, List{x})),
      ROW("captured_backward", captured_backward(List{x}, f, List{no})),
      ROW("captured_backward", captured_backward(List{}, f, List{x})),
      ROW("captured_backward", captured_backward({x}, minus, {no})),
      ROW("captured_backward_out", captured_backward_out(List{no}, List{x}, f, List{no})),
      ROW("reduce", reduce(Reduce::sum, f, List{no})),
      ROW("reduce", reduce(Reduce::sum, minus, no)),
      ROW("reduce", reduce(Reduce::sum, minus, x, {.dims = {5}})),
      ROW("reduce_out", reduce_out(no, Reduce::sum, f, List{x})),
      ROW("sum", sum(no)),
      ROW("sum_out", sum_out(no, x)),
      ROW("sum_out", sum_out(zeros({3}), x)),
      ROW("sum", sum(x, {.dims = {3}})),
      ROW("sum", sum(x, {.dtype = {DType::f32, DType::f16}})),
      ROW("sum", sum(x, {.implementation = "none"})),
      ROW("mean", mean(no)),
      ROW("mean_out", mean_out(no, x)),
      ROW("prod", prod(no)),
      ROW("prod_out", prod_out(no, x)),
      ROW("amin", amin(no)),
      ROW("amin_out", amin_out(no, x)),
      ROW("amin", amin(zeros({0}))),
      ROW("amax", amax(no)),
      ROW("amax_out", amax_out(no, x)),
      ROW("any", any(no)),
      ROW("any_out", any_out(no, x)),
      ROW("all", all(no)),
      ROW("all_out", all_out(no, x)),
      ROW("argmin", argmin(no)),
      ROW("argmin_out", argmin_out(no, x)),
      ROW("argmin_out", argmin_out(zeros({2}), x, {.keepdim = true})),
      ROW("argmin", argmin(zeros({0}))),
      ROW("argmax", argmax(no)),
      ROW("argmax_out", argmax_out(no, x)),
      ROW("var", var(no)),
      ROW("var", var(no, {.keepdim = true})),
      ROW("var_out", var_out(no, x)),
      ROW("var_out", var_out(zeros({3}), x, {.keepdim = true})),
      ROW("var", var(x, 1, {.dims = {3}})),
      ROW("norm", norm(no)),
      ROW("norm", norm(no, {.keepdim = true})),
      ROW("norm_out", norm_out(no, x)),
      ROW("norm_out", norm_out(x, x, {.dims = {0}})),
      ROW("norm", norm(x, 3, {.dims = {3}})),
      ROW("logsumexp", logsumexp(no)),
      ROW("logsumexp_out", logsumexp_out(no, x)),
      ROW("logsumexp_out", logsumexp_out(zeros({2}), x)),
      ROW("logsumexp", logsumexp(x, {.dims = {3}})),
      ROW("sum_to", sum_to(no, {1})),
      ROW("sum_to", sum_to(x, {3})),
      ROW("sum_to_out", sum_to_out(no, x)),
      ROW("sum_to_out", sum_to_out(zeros({3}), x)),
      ROW("rowwise", rowwise(rows, List{no})),
      ROW("rowwise", rowwise([](Row& row, Expr a) { return a / row.sum(a); }, {no})),
      ROW("rowwise_out", rowwise_out(List{no}, rows, List{x})),
      ROW("RowFunction", trace_rows([](Row&, Expr a) { return a; }, std::array{DType::f32})),
      ROW("RowFunction::parse", RowFunction::parse("nonsense")),
      ROW("RowFunction::text", RowFunction().text()),
      ROW("RowFunction::param_value", rows.param_value(7)),
      ROW("RowFunction::with_params", rows.with_params(std::array{1.0})),
      ROW("segment_reduce", segment_reduce(no, i)),
      ROW("segment_reduce", segment_reduce(x, x)),
      ROW("segment_reduce", segment_reduce(x, i, {.reduce = Reduce::all})),
      ROW("segment_reduce_out", segment_reduce_out(no, x, i)),
      ROW("segment_reduce_backward", segment_reduce_backward(no, x, x, i)),
      ROW("segment_reduce_backward", segment_reduce_backward(x, x, x, i, {.reduce = Reduce::any})),
      ROW("segment_reduce_backward_out", segment_reduce_backward_out(x, no, x, x, i)),
      ROW("gather", gather(no, 0, i)),
      ROW("gather", gather(x, 3, i)),
      ROW("gather_out", gather_out(no, x, 0, i)),
      ROW("gather_out", gather_out(x, x, 0, i)),
      ROW("gather_backward", gather_backward(no, {4}, 0, i)),
      ROW("gather_backward", gather_backward(x, {-4}, 0, i)),
      ROW("gather_backward_out", gather_backward_out(no, x, 0, i)),
      ROW("gather_backward_out", gather_backward_out(x, x, 0, i)),
      ROW("index_select", index_select(no, 0, i)),
      ROW("index_select", index_select(x, 3, i)),
      ROW("index_select_out", index_select_out(no, x, 0, i)),
      ROW("index_select_out", index_select_out(zeros({3}), x, 0, i)),
      ROW("scatter_reduce", scatter_reduce(no, 0, i, x)),
      ROW("scatter_reduce", scatter_reduce(x, 3, i, x)),
      ROW("scatter_reduce", scatter_reduce(x, 0, i, x, {.reduce = Reduce::any})),
      ROW("scatter_reduce_out", scatter_reduce_out(no, x, 0, i, x)),
      ROW("scatter_reduce_out", scatter_reduce_out(x, zeros({4}), 0, i, x)),
      ROW("scatter_reduce_", scatter_reduce_(no, 0, i, x)),
      ROW("scatter_reduce_", scatter_reduce_(x, 0, x, x)),
      ROW("scatter_reduce_backward", scatter_reduce_backward(no, x, x, 0, i, x)),
      ROW("scatter_reduce_backward", scatter_reduce_backward(x, x, x, 0, i, x, {.reduce = Reduce::all})),
      ROW("scatter_reduce_backward_out", scatter_reduce_backward_out({}, no, x, x, 0, i, x)),
      ROW("group_by", group_by(no, 3)),
      ROW("group_by", group_by(i, -3)),
      ROW("group_by_out", group_by_out({}, no, 3)),
      ROW("group_by_out", group_by_out({.offsets = x, .order = i}, i, 3)),
      ROW("sort", sort(no)),
      ROW("sort", sort(x, 3)),
      ROW("sort_out", sort_out({}, no)),
      ROW("sort_out", sort_out({.values = i, .indices = i}, x)),
      ROW("argsort", argsort(no)),
      ROW("argsort", argsort(x, 3)),
      ROW("argsort_out", argsort_out(no, x)),
      ROW("argsort_out", argsort_out(x, x)),
      ROW("topk", topk(no, 1)),
      ROW("topk", topk(x, 99)),
      ROW("topk_out", topk_out({}, no, 1)),
      ROW("topk_out", topk_out({.values = x, .indices = i}, x, 1)),
      ROW("kthvalue", kthvalue(no, 1)),
      ROW("kthvalue", kthvalue(x, 0)),
      ROW("kthvalue_out", kthvalue_out({}, no, 1)),
      ROW("kthvalue_out", kthvalue_out({.values = x, .indices = i}, x, 1)),
      ROW("nonzero", nonzero(no)),
      ROW("nonzero", nonzero(x, {.implementation = "none"})),
      ROW("nonzero_static", nonzero_static(no, 1)),
      ROW("nonzero_static", nonzero_static(x, -1)),
      ROW("nonzero_static_out", nonzero_static_out(no, x, 1)),
      ROW("nonzero_static_out", nonzero_static_out(x, x, 1)),
      ROW("count_nonzero", count_nonzero(no)),
      ROW("count_nonzero_out", count_nonzero_out(no, x)),
      ROW("masked_select", masked_select(no, x)),
      ROW("masked_select", masked_select(x, x)),
      ROW("unique", unique(no)),
      ROW("unique", unique(x, {.implementation = "none"})),
      ROW("unique_consecutive", unique_consecutive(no)),
      ROW("unique_consecutive", unique_consecutive(x, {.implementation = "none"})),
      ROW("index", index(no, {i})),
      ROW("index", index(x, {x})),
      ROW("index_out", index_out(no, x, List{i})),
      ROW("index_out", index_out(zeros({99}), x, List{i})),
      ROW("index_put", index_put(no, {i}, x)),
      ROW("index_put", index_put(x, {x}, x)),
      ROW("index_put_out", index_put_out(no, x, List{i}, x)),
      ROW("index_put_out", index_put_out(i, x, List{i}, full({}, 1))),
      ROW("index_put_", index_put_(no, {i}, x)),
      ROW("index_put_", index_put_(x, {x}, x)),
      ROW("linalg::eigh", linalg::eigh(no)),
      ROW("linalg::eigh", linalg::eigh(m, {.tolerance = -1})),
      ROW("linalg::eigh_out", linalg::eigh_out(no, no, {}, m)),
      ROW("linalg::eigvalsh", linalg::eigvalsh(no)),
      ROW("linalg::eigvalsh", linalg::eigvalsh(x)),
      ROW("linalg::eigvalsh_out", linalg::eigvalsh_out(no, {}, m)),
      ROW("linalg::eigh_backward", linalg::eigh_backward({}, {}, no, m)),
      ROW("linalg::eigh_backward", linalg::eigh_backward({}, {}, x, m, {.broadening = -1})),
      ROW("linalg::eigh_backward_out", linalg::eigh_backward_out({}, {}, {}, no, m)),
      ROW("linalg::eigh_backward_out", linalg::eigh_backward_out({.grad_a = x, .gauge = no}, {}, {}, x, m)),
      ROW("linalg::require_gauge", linalg::require_gauge(no)),
      ROW("linalg::require_gauge", linalg::require_gauge(full({2}, 1))),
      ROW("linalg::require_converged", linalg::require_converged({})),
      ROW("linalg::require_converged", linalg::require_converged({full({2}, 1, {.dtype = DType::i32}), no})),
      ROW("linalg::matmul", linalg::matmul(no, m)),
      ROW("linalg::matmul", linalg::matmul(m, no)),
      ROW("linalg::matmul", linalg::matmul(m, x, {.implementation = "none"})),
      ROW("linalg::matmul", linalg::matmul(m, m, {.dtype = {DType::f32, DType::f16}})),
      ROW("linalg::matmul", linalg::matmul(m, m, f, List{x})),
      ROW("linalg::matmul", linalg::matmul(m, m, [](Expr p, Expr b) { return p + b; }, {no})),
      ROW("linalg::matmul", linalg::matmul(i, i, [](Expr p) { return -p; })),
      ROW("linalg::matmul_out", linalg::matmul_out(no, m, m)),
      ROW("linalg::matmul_out", linalg::matmul_out(x, m, m)),
      ROW("linalg::matmul_out", linalg::matmul_out(m, m, no, f, List{})),
      ROW("linalg::matmul_out", linalg::matmul_out(m, m, m, [](Expr p, Expr b) { return p + b; }, {no})),
      ROW("linalg::product_dtype", linalg::product_dtype(DType::f32, DType::i32)),
      ROW("linalg::PackedMatrix", linalg::PackedMatrix(no)),
      ROW("linalg::PackedMatrix", linalg::PackedMatrix(x)),
      ROW("linalg::PackedMatrix::sizes", empty_packed.sizes()),
      ROW("linalg::PackedMatrix::dtype", empty_packed.dtype()),
      ROW("linalg::PackedMatrix::nbytes", empty_packed.nbytes()),
      ROW("linalg::linear", linalg::linear(no, m)),
      ROW("linalg::linear", linalg::linear(m, no)),
      ROW("linalg::linear", linalg::linear(m, zeros({4, 3}))),
      ROW("linalg::linear", linalg::linear(m, empty_packed)),
      ROW("linalg::linear_out", linalg::linear_out(no, m, m)),
      ROW("linalg::linear_out", linalg::linear_out(m, x, m)),
      ROW("linalg::linear_out", linalg::linear_out(m, m, empty_packed)),
      ROW("linalg::matmul_backward", linalg::matmul_backward(no, m, m)),
      ROW("linalg::matmul_backward", linalg::matmul_backward(no, m, m, f, List{})),
      ROW("linalg::matmul_backward_out", linalg::matmul_backward_out({.a = m, .b = no}, no, m, m)),
      ROW("linalg::matmul_backward_out", linalg::matmul_backward_out({.a = m, .b = m}, m, m, m)),
      ROW("linalg::matmul_backward_out", linalg::matmul_backward_out({.a = no, .b = no, .inputs = {m}}, m, m, m, f, List{})),
      ROW("linalg::linear_backward", linalg::linear_backward(no, m, m)),
      ROW("linalg::linear_backward", linalg::linear_backward(x, m, m)),
      ROW("linalg::linear_backward_out", linalg::linear_backward_out({}, no, m, m)),
      ROW("linalg::linear_backward_out", linalg::linear_backward_out({.x = no, .weight = no, .bias = x}, m, m, m)),
      ROW("linalg::scaled_matmul", linalg::scaled_matmul(no, m, x, x)),
      ROW("linalg::scaled_matmul", linalg::scaled_matmul(m, m, no, x)),
      ROW("linalg::scaled_matmul", linalg::scaled_matmul(i, m, x, x)),
      ROW("linalg::scaled_matmul", linalg::scaled_matmul(m, m, x, x, {.dtype = {DType::f32, DType::f16}})),
      ROW("linalg::scaled_matmul_out", linalg::scaled_matmul_out(no, m, m, x, x)),
      ROW("linalg::scaled_matmul_out", linalg::scaled_matmul_out(i, m, m, x, x)),
      ROW("linalg::quantized_matmul", linalg::quantized_matmul(no, {}, m, {})),
      ROW("linalg::quantized_matmul", linalg::quantized_matmul(m, {}, m, {})),
      ROW("linalg::quantized_matmul_out", linalg::quantized_matmul_out(m, no, {}, m, {})),
      ROW("sparse::prune_2_4", sparse::prune_2_4(no)),
      ROW("sparse::prune_2_4", sparse::prune_2_4(x)),
      ROW("sparse::prune_2_4_out", sparse::prune_2_4_out(no, m)),
      ROW("sparse::prune_2_4_out", sparse::prune_2_4_out(x, m)),
      ROW("sparse::mask_2_4", sparse::mask_2_4(no)),
      ROW("sparse::mask_2_4_out", sparse::mask_2_4_out(m, m)),
      ROW("sparse::apply_mask", sparse::apply_mask(no, m)),
      ROW("sparse::apply_mask", sparse::apply_mask(m, m)),
      ROW("sparse::apply_mask_out", sparse::apply_mask_out(m, m, m)),
      ROW("sparse::to_bitmask", sparse::to_bitmask(no)),
      ROW("sparse::to_bitmask_out", sparse::to_bitmask_out(m, no)),
      ROW("sparse::from_bitmask", sparse::from_bitmask(no)),
      ROW("sparse::from_bitmask_out", sparse::from_bitmask_out(m, no)),
      ROW("sparse::is_2_4", sparse::is_2_4(no)),
      ROW("sparse::is_2_4_out", sparse::is_2_4_out(x, m)),
      ROW("sparse::require_2_4", sparse::require_2_4(no)),
      ROW("sparse::require_2_4", sparse::require_2_4(full({4, 4}, 1))),
      ROW("sparse::compress", sparse::compress(no)),
      ROW("sparse::decompress", sparse::decompress(none)),
      ROW("sparse::decompress_out", sparse::decompress_out(m, none)),
      ROW("sparse::to_cutlass", sparse::to_cutlass(none)),
      ROW("sparse::to_cutlass_out", sparse::to_cutlass_out({}, none)),
      ROW("sparse::from_cutlass", sparse::from_cutlass({})),
      ROW("sparse::SemiStructured", sparse::SemiStructured(no, no, 4)),
      ROW("sparse::SemiStructured::sizes", none.sizes()),
      ROW("sparse::SemiStructured::dtype", none.dtype()),
      ROW("sparse::SemiStructured::nbytes", none.nbytes()),
      ROW("sparse::SemiStructured::values", none.values()),
      ROW("sparse::SemiStructured::metadata", none.metadata()),
      ROW("sparse::SemiStructured::info", none.info()),
      ROW("sparse::matmul", sparse::matmul(none, m)),
      ROW("sparse::matmul", sparse::matmul(none, m, f, List{})),
      ROW("sparse::matmul", sparse::matmul(sparse::compress(zeros({4, 4})), no)),
      ROW("sparse::matmul_out", sparse::matmul_out(m, none, m, f, List{})),
      ROW("sparse::matmul_out", sparse::matmul_out(m, none, m)),
      ROW("sparse::matmul_transposed", sparse::matmul_transposed(m, none)),
      ROW("sparse::matmul_transposed", sparse::matmul_transposed(m, none, f, List{})),
      ROW("sparse::matmul_transposed_out", sparse::matmul_transposed_out(m, m, none, f, List{})),
      ROW("sparse::matmul_transposed_out", sparse::matmul_transposed_out(m, m, none)),
      ROW("sparse::scaled_matmul", sparse::scaled_matmul(none, m, x, x)),
      ROW("sparse::scaled_matmul_out", sparse::scaled_matmul_out(m, none, m, x, x)),
      ROW("sparse::scaled_matmul_transposed", sparse::scaled_matmul_transposed(m, none, x, x)),
      ROW("sparse::scaled_matmul_transposed_out", sparse::scaled_matmul_transposed_out(m, m, none, x, x)),
      ROW("sparse::linear", sparse::linear(m, none)),
      ROW("sparse::linear_out", sparse::linear_out(m, m, none)),
      ROW("sparse::linear_backward", sparse::linear_backward(m, m, none)),
      ROW("sparse::linear_backward_out", sparse::linear_backward_out({}, m, m, none)),
      ROW("sparse::mask_of", sparse::mask_of(none)),
      ROW("sparse::mask_of_out", sparse::mask_of_out(m, none)),
      ROW("sparse::spmm", sparse::spmm({}, m)),
      ROW("sparse::spmm", sparse::spmm({.offsets = i, .columns = i, .width = 4}, no)),
      ROW("sparse::spmm_out", sparse::spmm_out(no, {.offsets = i, .columns = i, .width = 4}, m)),
      ROW("sparse::spmm_backward", sparse::spmm_backward(no, m, {}, m)),
      ROW("sparse::spmm_backward", sparse::spmm_backward(m, m, {}, m, {.reduce = Reduce::any})),
      ROW("sparse::spmm_backward_out", sparse::spmm_backward_out({}, no, m, {}, m)),
      ROW("selective_scan", selective_scan(no, x, m, x, x)),
      ROW("selective_scan", selective_scan(x, x, x, x, x)),
      ROW("selective_scan_out", selective_scan_out({}, x, x, m, x, x)),
      ROW("selective_scan_backward", selective_scan_backward({}, x, x, m, x, x)),
      ROW("selective_scan_backward_out", selective_scan_backward_out({}, {no, no}, x, x, m, x, x)),
      ROW("nn::softmax", nn::softmax(no)),
      ROW("nn::softmax", nn::softmax(x, 3)),
      ROW("nn::softmax", nn::softmax(i)),
      ROW("nn::softmax_out", nn::softmax_out(no, x)),
      ROW("nn::log_softmax", nn::log_softmax(no)),
      ROW("nn::log_softmax_out", nn::log_softmax_out(no, x)),
      ROW("nn::softmax_backward", nn::softmax_backward(no, x)),
      ROW("nn::softmax_backward_out", nn::softmax_backward_out(no, x, x)),
      ROW("nn::log_softmax_backward", nn::log_softmax_backward(no, x)),
      ROW("nn::log_softmax_backward_out", nn::log_softmax_backward_out(m, x, x)),
      ROW("nn::layer_norm", nn::layer_norm(no)),
      ROW("nn::layer_norm_out", nn::layer_norm_out({}, x)),
      ROW("nn::layer_norm", nn::layer_norm(x, zeros({3}))),
      ROW("nn::layer_norm_backward", nn::layer_norm_backward(no, x, x, x)),
      ROW("nn::layer_norm_backward_out", nn::layer_norm_backward_out({}, no, x, x, x)),
      ROW("nn::rms_norm", nn::rms_norm(no)),
      ROW("nn::rms_norm_out", nn::rms_norm_out({}, x)),
      ROW("nn::rms_norm_backward", nn::rms_norm_backward(no, x, x)),
      ROW("nn::rms_norm_backward_out", nn::rms_norm_backward_out({}, no, x, x)),
      ROW("nn::cross_entropy", nn::cross_entropy(no, i)),
      ROW("nn::cross_entropy", nn::cross_entropy(m, x)),
      ROW("nn::cross_entropy", nn::cross_entropy(m, i, {.label_smoothing = 2})),
      ROW("nn::cross_entropy_out", nn::cross_entropy_out({}, no, i)),
      ROW("nn::cross_entropy_out", nn::cross_entropy_out({.loss = x}, m, i)),
      ROW("nn::cross_entropy_backward", nn::cross_entropy_backward(no, m, i, {.max = x, .log_sum = x})),
      ROW("nn::cross_entropy_backward_out", nn::cross_entropy_backward_out(m, no, m, i, {.max = x, .log_sum = x})),
      ROW("nn::embedding", nn::embedding(no, i)),
      ROW("nn::embedding", nn::embedding(x, i)),
      ROW("nn::embedding", nn::embedding(m, x)),
      ROW("nn::embedding_out", nn::embedding_out(no, m, i)),
      ROW("nn::embedding_out", nn::embedding_out(x, m, i)),
      ROW("nn::embedding_backward", nn::embedding_backward(no, i, 4)),
      ROW("nn::embedding_backward", nn::embedding_backward(m, i, -4)),
      ROW("nn::embedding_backward_out", nn::embedding_backward_out(x, m, i, 4)),
  };
}

std::vector<Call> attention_rows() {
  using namespace attention;
  static const Tensor no, x = zeros({4}), q = zeros({1, 1, 4, 8}), lengths = zeros({2}, {.dtype = DType::i32});
  static const BlockMask none;
  static const PagedCache no_cache;
  static const auto cache = std::make_shared<PagedCache>(PagedCacheOptions{.pages = 2, .page_size = 4, .key_size = 8, .value_size = 8});
  static const ExprFunction f = trace([](Expr a) { return a + 1; }, std::array{DType::f32});
  static const MultiHeadWeights weights{.in_weight = zeros({24, 8}), .out_weight = zeros({8, 8})};
  static const MaskMod mask = causal();
  static const BlockMaskOptions lengths_of{.q_len = 4, .kv_len = 4};
  static const BlockMask blocks = create_block_mask(mask, lengths_of);
  return {
      ROW("attention::flex", flex(no, q, q)),
      ROW("attention::flex", flex(q, q, q, {.implementation = "none"})),
      ROW("attention::flex", flex(q, zeros({1, 1, 4, 3}), q)),
      ROW("attention::flex", flex(q, q, q, {.dropout_p = 2})),
      ROW("attention::flex_out", flex_out({}, q, q, q)),
      ROW("attention::flex_out", flex_out({.out = x}, q, q, q)),
      ROW("attention::flex_backward", flex_backward(no, q, q, q, {})),
      ROW("attention::flex_backward", flex_backward(x, q, q, q, {.out = q, .lse = zeros({1, 1, 4})})),
      ROW("attention::flex_backward_out", flex_backward_out({}, no, q, q, q, {})),
      ROW("attention::flex_backward_out", flex_backward_out({.q = x}, q, q, q, q, {.out = q, .lse = zeros({1, 1, 4})})),
      ROW("attention::sdpa", sdpa(no, q, q)),
      ROW("attention::sdpa", sdpa(q, zeros({1, 1, 4, 3}), q)),
      ROW("attention::sdpa", sdpa(q, q, q, {.attn_mask = zeros({7, 7})})),
      ROW("attention::sdpa_out", sdpa_out({}, no, q, q)),
      ROW("attention::sdpa_out", sdpa_out({.out = x}, q, q, q)),
      ROW("attention::sdpa_backward", sdpa_backward(no, q, q, q, {})),
      ROW("attention::sdpa_backward_out", sdpa_backward_out({}, no, q, q, q, {})),
      ROW("attention::varlen_attn", varlen_attn(no, q, q, {})),
      ROW("attention::varlen_attn", varlen_attn(q, q, q, {})),
      ROW("attention::varlen_attn_out", varlen_attn_out({}, q, q, q, {})),
      ROW("attention::varlen_attn_backward", varlen_attn_backward(no, q, q, q, {}, {})),
      ROW("attention::varlen_attn_backward_out", varlen_attn_backward_out({}, no, q, q, q, {}, {})),
      ROW("attention::multi_head_attention", multi_head_attention(no, weights)),
      ROW("attention::multi_head_attention", multi_head_attention(zeros({1, 4, 7}), weights)),
      ROW("attention::multi_head_attention_out", multi_head_attention_out({}, no, weights)),
      ROW("attention::multi_head_attention_out", multi_head_attention_out({.out = x}, zeros({1, 4, 8}), weights)),
      ROW("attention::multi_head_attention_backward", multi_head_attention_backward(no, zeros({1, 4, 8}), weights, {})),
      ROW("attention::multi_head_attention_backward_out", multi_head_attention_backward_out({}, no, zeros({1, 4, 8}), weights, {})),
      ROW("attention::MaskMod", MaskMod(f)),
      ROW("attention::ScoreMod", ScoreMod(f, f)),
      ROW("attention::prefix_lm", prefix_lm(no)),
      ROW("attention::document", document(no)),
      ROW("attention::dilated", dilated(4, 0)),
      ROW("attention::alibi", alibi(no)),
      ROW("attention::alibi_slopes", alibi_slopes(-1)),
      ROW("attention::softcap", softcap(0)),
      ROW("attention::relative_bias", relative_bias(no)),
      ROW("attention::create_block_mask", create_block_mask(mask, {})),
      ROW("attention::create_block_mask", create_block_mask(mask, {.q_len = -4, .kv_len = 4})),
      ROW("attention::create_block_mask", create_block_mask(mask, {.q_len = 4, .kv_len = 4, .implementation = "none"})),
      ROW("attention::block_mask_from_lists", block_mask_from_lists(no, no, no, no, mask, lengths_of)),
      ROW("attention::BlockMask::q_len", none.q_len()),
      ROW("attention::BlockMask::kv_len", none.kv_len()),
      ROW("attention::BlockMask::block", none.block()),
      ROW("attention::BlockMask::mask_mod", none.mask_mod()),
      ROW("attention::BlockMask::kv_num_blocks", none.kv_num_blocks()),
      ROW("attention::BlockMask::kv_indices", none.kv_indices()),
      ROW("attention::BlockMask::full_kv_num_blocks", none.full_kv_num_blocks()),
      ROW("attention::BlockMask::full_kv_indices", none.full_kv_indices()),
      ROW("attention::BlockMask::q_num_blocks", none.q_num_blocks()),
      ROW("attention::BlockMask::q_indices", none.q_indices()),
      ROW("attention::BlockMask::full_q_num_blocks", none.full_q_num_blocks()),
      ROW("attention::BlockMask::full_q_indices", none.full_q_indices()),
      ROW("attention::BlockMask::kinds", none.kinds()),
      ROW("attention::BlockMask::to_dense", none.to_dense()),
      ROW("attention::BlockMask::slice", none.slice(0, 1, 0, 1)),
      ROW("attention::BlockMask::slice", blocks.slice(0, 7, 0, 1)),
      ROW("attention::BlockMask::adjust", none.adjust(4, 4)),
      ROW("attention::BlockMask::adjust", blocks.adjust(-4, 4)),
      ROW("attention::BlockMask::sparsity", none.sparsity()),
      ROW("attention::BlockMask::to_string", none.to_string()),
      ROW("attention::PagedCache", PagedCache(PagedCacheOptions{.pages = -1})),
      ROW("attention::PagedCache::options", no_cache.options()),
      ROW("attention::PagedCache::keys", no_cache.keys()),
      ROW("attention::PagedCache::values", no_cache.values()),
      ROW("attention::PagedCache::page_table", no_cache.page_table()),
      ROW("attention::PagedCache::physical_to_logical", no_cache.physical_to_logical()),
      ROW("attention::PagedCache::capacity", cache->capacity(7)),
      ROW("attention::PagedCache::free_pages", no_cache.free_pages()),
      ROW("attention::PagedCache::reserve", cache->reserve(7, 4)),
      ROW("attention::PagedCache::reserve", cache->reserve(0, 1000)),
      ROW("attention::PagedCache::erase", cache->erase(7)),
      ROW("attention::PagedCache::assign", cache->assign(no, lengths, q, q)),
      ROW("attention::PagedCache::assign", no_cache.assign(no, no, q, q)),
      ROW("attention::PagedCache::varlen", no_cache.varlen(lengths)),
      ROW("attention::SdpaBackends", SdpaBackends({})),
      ROW("attention::PagedCache::physical", cache->physical(blocks, no)),
      ROW("attention::PagedCache::physical", no_cache.physical(mask, lengths)),
      ROW("attention::PagedCache::physical", no_cache.physical(ScoreMod(), lengths)),
  };
}

std::vector<Call> optim_rows() {
  using namespace optim;
  static const Tensor no, x = zeros({4}), one = zeros({1});
  static const auto sgd = std::make_shared<SGD>(List{x});
  static const auto gone = std::make_shared<SGD>(List{zeros({4})});
  static const auto moved = std::make_shared<SGD>(std::move(*gone));
  static const auto scaler = std::make_shared<GradScaler>();
  static const auto old = std::make_shared<GradScaler>();
  static const auto taken = std::make_shared<GradScaler>(std::move(*old));
  static const double rate = 1;
  static const auto scheduler = std::make_shared<LRScheduler>(std::span(&rate, 1), LRSchedulerOptions{});
  static const std::map<std::string, Tensor> nothing;
  return {
      ROW("optim::SGD", SGD({})),
      ROW("optim::SGD", SGD({x}, {.lr = -1})),
      ROW("optim::Adam", Adam({x}, {.beta1 = 2})),
      ROW("optim::AdamW", AdamW({x, x})),
      ROW("optim::Adagrad", Adagrad({no})),
      ROW("optim::RMSprop", RMSprop({x}, {.alpha = -1})),
      ROW("optim::SGD::add_param_group", sgd->add_param_group({x}, {})),
      ROW("optim::Adam::add_param_group", Adam({zeros({2})}).add_param_group({}, {})),
      ROW("optim::AdamW::add_param_group", AdamW({zeros({2})}).add_param_group({}, {})),
      ROW("optim::Adagrad::add_param_group", Adagrad({zeros({2})}).add_param_group({}, {})),
      ROW("optim::RMSprop::add_param_group", RMSprop({zeros({2})}).add_param_group({}, {})),
      ROW("optim::SGD::step", sgd->step(List{})),
      ROW("optim::SGD::step", sgd->step(List{x})),
      ROW("optim::SGD::step", sgd->step(List{zeros({4})}, {.max_norm = -1})),
      ROW("optim::Adam::step", Adam({zeros({2})}).step(List{})),
      ROW("optim::AdamW::step", AdamW({zeros({2})}).step(List{zeros({3})})),
      ROW("optim::Adagrad::step", Adagrad({zeros({2})}).step(List{})),
      ROW("optim::RMSprop::step", RMSprop({zeros({2})}).step(List{})),
      ROW("optim::Optimizer::step", gone->step(List{})),
      ROW("optim::Optimizer::groups", gone->groups()),
      ROW("optim::Optimizer::lr", sgd->lr(3)),
      ROW("optim::Optimizer::set_lr", sgd->set_lr(-1)),
      ROW("optim::Optimizer::params", sgd->params(3)),
      ROW("optim::Optimizer::state", gone->state()),
      ROW("optim::Optimizer::load_state", sgd->load_state(nothing)),
      ROW("optim::Optimizer::save", sgd->save(nowhere())),
      ROW("optim::Optimizer::load", sgd->load(nowhere())),
      ROW("optim::grad_norm", grad_norm(List{}, 1)),
      ROW("optim::grad_norm_out", grad_norm_out({.norm = x}, List{x}, 1)),
      ROW("optim::grad_norms", grad_norms(List{})),
      ROW("optim::grad_norms_out", grad_norms_out(x, List{no})),
      ROW("optim::clip_grad_norm_", clip_grad_norm_(List{x, x}, 1)),
      ROW("optim::GradScaler", GradScaler({.growth_factor = 1})),
      ROW("optim::GradScaler::scale", scaler->scale(no)),
      ROW("optim::GradScaler::scale", scaler->scale(zeros({2}, {.dtype = DType::f8e5m2}))),
      ROW("optim::GradScaler::unscale_", scaler->unscale_(*sgd, List{})),
      ROW("optim::GradScaler::step", scaler->step(*sgd, List{})),
      ROW("optim::GradScaler::step", scaler->step(*sgd, List{zeros({3})})),
      ROW("optim::GradScaler::update", scaler->update()),
      ROW("optim::GradScaler::update", scaler->update(-1)),
      ROW("optim::GradScaler::scale_tensor", old->scale_tensor()),
      ROW("optim::GradScaler::get_scale", old->get_scale()),
      ROW("optim::GradScaler::enabled", old->enabled()),
      ROW("optim::GradScaler::state", old->state()),
      ROW("optim::GradScaler::load_state", scaler->load_state(nothing)),
      ROW("optim::schedule_", schedule_(x, x, one, 1, {})),
      ROW("optim::LRScheduler", LRScheduler(std::span<const double>(), {})),
      ROW("optim::LRScheduler::load_state", scheduler->load_state(nothing)),
      ROW("optim::check_and_unscale_", check_and_unscale_(List{x}, no)),
      ROW("optim::update_scale_", update_scale_(no, one, one)),
      ROW("optim::sgd_", sgd_(List{x}, List{}, {}, one)),
      ROW("optim::adam_", adam_(List{x}, List{x}, List{x}, List{x}, {}, one)),
      ROW("optim::adam_", adam_(List{x}, List{x}, List{x}, List{x}, {}, List{})),
      ROW("optim::adamw_", adamw_(List{x}, List{x}, List{x}, List{x}, {}, one)),
      ROW("optim::adamw_", adamw_(List{x}, List{x}, List{x}, List{x}, {}, List{})),
      ROW("optim::adagrad_", adagrad_(List{x}, List{x}, {}, one)),
      ROW("optim::rmsprop_", rmsprop_(List{x}, List{x}, {}, {}, {}, one)),
  };
}

std::vector<Call> tensor_rows() {
  static const Tensor no, x = zeros({4});
  static const Dims many = Dims::filled(kMaxRank, 1);
  static const float bytes[4] = {};
  static const Tensor e4 = empty({2}, {.dtype = DType::f8e4m3fn}), e5 = empty({2}, {.dtype = DType::f8e5m2});
  return {
      ROW("Dims",
          [&] {
            Dims d = many;
            d.push_back(1);
            return d;
          }()),
      ROW("numel", numel({-1})),
      ROW("broadcast_shapes", broadcast_shapes(std::array{Dims{2}, Dims{3}})),
      ROW("Tensor::device", no.device()),
      ROW("Tensor::size", x.size(3)),
      ROW("Tensor::stride", x.stride(3)),
      ROW("Tensor::slice", x.slice(3, 0, 1)),
      ROW("Tensor::slice", x.slice(0, 0, 1, 0)),
      ROW("Tensor::slice", zeros({4}, {.dtype = DType::f32}).slice(-5, 1, 3)),
      ROW("Tensor::select", x.select(0, 9)),
      ROW("Tensor::transpose", x.transpose(0, 3)),
      ROW("Tensor::mT", x.mT()),
      ROW("Tensor::reshape", x.reshape({3})),
      ROW("Tensor::reshape", no.reshape({3})),
      ROW("Tensor::expand", x.expand({2, 3})),
      ROW("Tensor::unsqueeze", x.unsqueeze(7)),
      ROW("Tensor::squeeze", x.squeeze(7)),
      ROW("Tensor::as_strided", x.as_strided({2}, {100})),
      ROW("Tensor::as_strided", no.as_strided({2}, {1})),
      ROW("Tensor::clone", no.clone()),
      ROW("Tensor::to", no.to(DType::f16)),
      ROW("Tensor::to", no.to(current_device())),
      ROW("Tensor::to_host", no.to_host<float>()),
      ROW("Tensor::to_host", x.to_host<double>()),
      ROW("Tensor::to_host", x.to_host<bool>()),
      ROW("Tensor::read_into", x.read_into(std::span<double>())),
      ROW("Tensor::read_into", x.read_into(std::span<float>())),
      ROW("Tensor::to_bytes", no.to_bytes()),
      ROW("Tensor::read_bytes", x.read_bytes({})),
      ROW("Tensor::write", x.write({})),
      ROW("Tensor::write", no.write({})),
      ROW("Tensor::write_kept", x.write_kept({}, {})),
      ROW("Tensor::item", x.item()),
      ROW("Tensor::item", no.item()),
      ROW("StorageHandle", StorageHandle(no)),
      ROW("StorageHandle", StorageHandle(std::uint64_t{1} << 60)),
      ROW("StorageHandle::bytes", StorageHandle().bytes()),
      ROW("StorageHandle::device", StorageHandle().device()),
      ROW("StorageHandle::has_memory", StorageHandle().has_memory()),
      ROW("StorageHandle::view", StorageHandle(x).view({100}, DType::f32)),
      ROW("StorageHandle::view", StorageHandle(x).view({1}, DType::f32, 2)),
      ROW("HostMapping", HostMapping(no)),
      ROW("HostMapping", HostMapping(zeros({2, 2}).mT())),
      ROW("HostMapping::bytes", HostMapping().bytes()),
      ROW("HostMapping::as", HostMapping(x).as<double>()),
      ROW("HostBuffer", HostBuffer(0)),
      ROW("HostBuffer::bytes", HostBuffer().bytes()),
      ROW("HostBuffer::to_host", HostBuffer().to_host()),
      ROW("HostBuffer::tensor", HostBuffer().tensor({1})),
      ROW("HostBuffer::tensor", HostBuffer(16).tensor({5}, DType::f32)),
      ROW("empty", empty({-1})),
      ROW("zeros", zeros({-1})),
      ROW("full", full({-1}, 1)),
      ROW("full", full({4}, 1, {.dtype = DType::f4e2m1})),
      ROW("arange", arange(0, 1, 0)),
      ROW("arange", arange(0, 4, 1, {.dtype = DType::c64})),
      ROW("from_bytes", from_bytes(bytes, 3, {4})),
      ROW("from_bytes", from_bytes(bytes, 16, {-4})),
      ROW("result_type", result_type(std::array<const Tensor*, 2>{&e4, &e5})),
      ROW("dtype_from_name", dtype_from_name("float31")),
      ROW("promote_types", promote_types(DType::f8e4m3fn, DType::f8e5m2)),
      ROW("encode_small_float", encode_small_float(1, DType::f64)),
      ROW("decode_small_float", decode_small_float(1, DType::f64)),
  };
}

std::vector<Call> runtime_rows() {
  static const Partition no_partition;
  static const Stream no_stream, stream{current_device()};
  static const Device no_device;
  static const Event none;
  static const Generator no_generator;
  static const auto graph = std::make_shared<Graph>();
  static const Tensor x = zeros({4});
  static const auto held = [] {
    auto recorded = std::make_shared<Graph>();
    const GraphCapture capture(*recorded, stream);
    add(x, 1, {}, stream);
    return recorded;
  }();
  static const auto kernel = KernelSource{.text = "__kernel void k(__global float* x) { x[0] = 1; }", .entry = "k"};
  return {
      ROW("Device", Device("no such device")),
      ROW("set_allocator_settings", set_allocator_settings("expandable_segments:maybe")),
      ROW("set_memory_limit", set_memory_limit(0)),
      ROW("set_memory_limit", set_memory_limit(1, current_device())),  // less than what is held
      ROW("set_per_process_memory_fraction", set_per_process_memory_fraction(1.25)),
      ROW("on_memory_short", on_memory_short({})),
      ROW("on_out_of_memory", on_out_of_memory({})),
      ROW("memory_address", memory_address(Tensor())),
      ROW("record_memory_history", record_memory_history({.max_entries = 0})),
      ROW("dump_memory_snapshot", dump_memory_snapshot("/nonexistent/folder/snapshot.pickle")),
      ROW("select_devices", select_devices("?")),
      ROW("device", device(999)),
      ROW("Device::index", no_device.index()),
      ROW("Device::type", no_device.type()),
      ROW("Device::name", no_device.name()),
      ROW("Device::vendor", no_device.vendor()),
      ROW("Device::platform", no_device.platform()),
      ROW("Device::driver_version", no_device.driver_version()),
      ROW("Device::extensions", no_device.extensions()),
      ROW("Device::uuid", no_device.uuid()),
      ROW("Device::selector", no_device.selector()),
      ROW("Device::traits", no_device.traits()),
      ROW("Device::quirks", no_device.quirks()),
      ROW("Device::supports", no_device.supports(DType::f32)),
      ROW("Stream::device", no_stream.device()),
      ROW("Stream::id", no_stream.id()),
      ROW("Stream::priority", no_stream.priority()),
      ROW("Stream::query", no_stream.query()),
      ROW("Stream::synchronize", no_stream.synchronize()),
      ROW("Stream::wait", no_stream.wait(none)),
      ROW("Stream::flush", no_stream.flush()),
      ROW("Stream::is_capturing", no_stream.is_capturing()),
      ROW("Stream::reset", no_stream.reset()),
      ROW("set_current_stream", set_current_stream(no_stream)),
      ROW("StreamGuard", StreamGuard(no_stream)),
      ROW("Stream::partition", no_stream.partition()),
      ROW("Partition::create", Partition::create({}, {})),
      ROW("Partition::split", Partition::split({}, {0})),
      ROW("Partition::device", no_partition.device()),
      ROW("Partition::units", no_partition.units()),
      ROW("Partition::first_unit", no_partition.first_unit()),
      ROW("Partition::isolation", no_partition.isolation()),
      ROW("Partition::workqueue_limit", no_partition.workqueue_limit()),
      ROW("Partition::traits", no_partition.traits()),
      ROW("Partition::stream", no_partition.stream()),
      ROW("Partition::make_stream", no_partition.make_stream()),
      ROW("PartitionGuard", PartitionGuard(no_partition)),
      ROW("elapsed_ms", elapsed_ms(none, none)),
      ROW("Generator::device", no_generator.device()),
      ROW("Generator::manual_seed", no_generator.manual_seed(1)),
      ROW("Generator::set_state", no_generator.set_state({})),
      ROW("Generator::state", no_generator.state()),
      ROW("Generator::state_tensor", no_generator.state_tensor()),
      ROW("GeneratorGuard",
          [] {
            Graph recorded;
            const Stream recording(current_device());
            const GraphCapture capture(recorded, recording);
            const GeneratorGuard guard;  // reads the state
          }()),
      ROW("Defines::set", Defines().set("1", 1)),
      ROW("Defines::set_text", Defines().set_text("1", "1")),
      ROW("Defines::set_type", Defines().set_type("1", DType::f32)),
      ROW("Encoder", Encoder(no_stream, "Encoder")),
      ROW("k", launch(kernel, {.global = 1}, {value(1)}, stream)),
      ROW("k", launch(kernel, {.global = 1, .local_y = 0}, {output(x)}, stream)),
      ROW("k", prepare({.text = "__kernel void k() { this is none }", .entry = "k"}, stream)),
      ROW("k", prepare({.entry = "k", .addressing = Addressing::base_and_offset, .binary = std::as_bytes(std::span("no binary"))}, stream)),
      ROW("KernelHandle::binary", KernelHandle().binary()),
      ROW("GraphCapture", GraphCapture(*graph, no_stream)),
      ROW("GraphCapture", GraphCapture(*held, stream)),
      ROW("GraphProgram::kind", held->program().kind(99)),
      ROW("GraphProgram::node", held->program().node(99)),
      ROW("GraphProgram::enqueue", held->program().enqueue(99, stream)),
      ROW("interop::kernel", interop::kernel(held->program(), 99)),
      ROW("interop::release", interop::release(nullptr)),
      ROW("Graph", Graph({.backend = "none"})),
      ROW("Graph::capture_begin", graph->capture_begin(no_stream)),
      ROW("Graph::capture_end", graph->capture_end()),
      ROW("Graph::instantiate", graph->instantiate()),
      ROW("Graph::replay", graph->replay()),
      ROW("Graph::replay", graph->replay({{x, x}})),
      ROW("Graph::nodes", graph->nodes()),
      ROW("Graph::find", graph->find("x")),
      ROW("Graph::report", graph->report()),
      ROW("Graph::to_string", graph->to_string()),
      ROW("Graph::debug_dump", graph->debug_dump(nowhere())),
      ROW("Graph::measure", graph->measure()),
      ROW("Graph::update", graph->update(0, {value(1)})),
      ROW("Graph::rebind", graph->rebind({{x, x}})),
      ROW("Graph::save", graph->save(nowhere())),
      ROW("Graph::load", Graph::load(nowhere())),
      ROW("Graph::tensor", graph->tensor("x")),
      ROW("Graph::tensor_names", graph->tensor_names()),
      ROW("Graph::program", graph->program()),
      ROW("cond", cond(Tensor(), {}, {})),
      ROW("switch_", switch_(Tensor(), {})),
      ROW("while_loop", while_loop([](std::span<const Tensor>) { return Tensor(); }, [](std::span<const Tensor>) { return List{}; }, {}, {})),
      ROW("dry_run", dry_run([] {}, no_stream)),
      ROW("compile", compile([](const Tensor& t) { return t; }, {.max_classes = 0})),
      ROW("make_graphed_callable", make_graphed_callable([](std::span<const Tensor>) { return List{}; }, {})),
      ROW("GraphedCallable::operator()", make_graphed_callable([](std::span<const Tensor> in) { return List{add(in[0], 1)}; }, List{x})({})),
      ROW("register_graph_backend", register_graph_backend("auto", {})),
      ROW("interop::mem", interop::mem(Tensor())),
      ROW("interop::offset", interop::offset(Tensor())),
      ROW("interop::queue", interop::queue(no_stream)),
      ROW("interop::context", interop::context(no_stream)),
      ROW("interop::failed", interop::failed(no_stream)),
      ROW("interop::idle", interop::idle(no_stream)),
      ROW("interop::fail", interop::fail(no_stream, Error(ErrorCode::internal, "", ""))),
      ROW("interop::event", interop::event(none)),
      ROW("interop::device_id", interop::device_id(no_device)),
      ROW("interop::platform_id", interop::platform_id(no_device)),
      ROW("interop::wrap", interop::wrap(static_cast<cl_command_queue>(nullptr))),
      ROW("interop::wrap", interop::wrap(static_cast<cl_event>(nullptr))),
      ROW("interop::wrap", interop::wrap(static_cast<cl_mem>(nullptr), {4}, DType::f32)),
      ROW("interop::to_dlpack", interop::to_dlpack(Tensor())),
      ROW("interop::to_dlpack_versioned", interop::to_dlpack_versioned(Tensor())),
      ROW("interop::from_dlpack", interop::from_dlpack(static_cast<DLManagedTensor*>(nullptr))),
      ROW("interop::from_dlpack", interop::from_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr))),
      ROW("tune::load", tune::load(nowhere())),
      ROW("tune::save", tune::save(nowhere())),
  };
}

std::vector<Call> expr_rows() {
  static const Expr x = detail::expr_input(0, DType::f32), b = detail::expr_input(0, DType::boolean);
  static const ExprFunction f = trace([](Expr a) { return a + 1; }, std::array{DType::f32});
  return {
      ROW("floor_div", floor_div(x, x)),
      ROW("trunc_div", trunc_div(x, x)),
      ROW("floor_mod", floor_mod(x, x)),
      ROW("trunc_mod", trunc_mod(x, x)),
      ROW("operator&", x & x),
      ROW("operator|", x | x),
      ROW("operator^", x ^ x),
      ROW("operator~", ~x),
      ROW("operator<<", x << 1),
      ROW("operator>>", x >> 1),
      ROW("cast", cast(x, DType::c64)),
      ROW("opencl", opencl(DType::f32, {}, {x})),
      ROW("opencl", opencl(DType::c64, {.value = "x0"}, {x})),
      ROW("captured", captured(Tensor())),
      ROW("Captured::at", captured(zeros({4}))[{x, x}]),
      ROW("Captured::at", captured(zeros({4}))[x]),
      ROW("ExprFunction", ExprFunction(std::array{DType::f16}, std::span<const Expr>())),
      ROW("ExprFunction::parse", ExprFunction::parse("nonsense")),
      ROW("ExprFunction::with_params", f.with_params(std::array{1.0, 2.0})),
      ROW("ExprFunction::with_captured", f.with_captured(List{Tensor()})),
      ROW("ExprFunction::input_dtype", f.input_dtype(7)),
      ROW("ExprFunction::output_dtype", f.output_dtype(7)),
      ROW("ExprFunction::param_value", f.param_value(7)),
      ROW("ExprFunction::captured_tensor", f.captured_tensor(7)),
      ROW("ExprFunction::evaluate", f.evaluate({})),
      ROW("ExprFunction::text", ExprFunction().text()),
      ROW("ExprFunction::backward", trace([](Expr a) { return opencl(DType::f32, {.value = "x0"}, {a}); }, std::array{DType::f32}).backward()),
  };
}

std::vector<Call> file_rows() {
  static const std::string text = file_of("text", "no tensors at all");
  static const Tensor no, odd = zeros({4}, {.dtype = DType::bf16}), wide = zeros({4}, {.dtype = DType::c128});
  static const auto opened = [] {
    const std::string good = file_of("good", "");
    save_safetensors(good, {{"x", zeros({4})}});
    auto file = std::make_shared<Safetensors>(Safetensors::open(good));
    std::filesystem::remove(good);
    return file;
  }();
  return {
      ROW("load_npy", load_npy(nowhere())),
      ROW("load_npy", load_npy(text)),
      ROW("read_npy", read_npy({})),
      ROW("save_npy", save_npy(text, no)),
      ROW("save_npy", save_npy(text, odd)),
      ROW("save_npy", save_npy(nowhere(), zeros({4}))),
      ROW("Safetensors::open", Safetensors::open(nowhere())),
      ROW("Safetensors::open", Safetensors::open(text)),
      ROW("Safetensors::parse", Safetensors::parse({})),
      ROW("Safetensors::bytes", opened->bytes("y")),
      ROW("Safetensors::load", opened->load("y")),
      ROW("save_safetensors", save_safetensors(text, {{"x", no}})),
      ROW("save_safetensors", save_safetensors(text, {{"x", wide}})),
      ROW("save_safetensors", save_safetensors(nowhere(), {})),
  };
}

/// The end of a range within which another one is open.
void end_outer_range() {
  profiler::Profiler recording;
  recording.start();
  profiler::Range outer("outer");
  const profiler::Range inner("inner");
  outer.end();
}

void start_twice() {
  profiler::Profiler recording;
  recording.start();
  recording.start();
}

std::vector<Call> profiler_rows() {
  static const auto idle = std::make_shared<profiler::Profiler>();
  return {
      ROW("profiler::Profiler", profiler::Profiler({.max_events = 0})),
      ROW("profiler::Profiler::add_metadata_json", idle->add_metadata_json("key", "{")),
      ROW("profiler::Profiler::export_chrome_trace", idle->export_chrome_trace(nowhere())),
      ROW("profiler::Profiler::export_html", idle->export_html(nowhere())),
      ROW("profiler::Profiler::export_kernel_annotations", idle->export_kernel_annotations(nowhere())),
      ROW("profiler::Profiler::start", start_twice()),
      ROW("profiler::Profiler::stop", profiler::Profiler().stop()),
      ROW("profiler::Profiler::step", profiler::Profiler().step()),
      ROW("profiler::Profiler::table", idle->table({.row_limit = 0})),
      ROW("profiler::Range::end", end_outer_range()),
      ROW("profiler::compare_traces", profiler::compare_traces(nowhere(), nowhere())),
      ROW("profiler::set_trace_member", profiler::set_trace_member("key", "{")),
  };
}

std::vector<Call> all_rows() {
  std::vector<Call> all;
  for (auto list : {pointwise_rows(), op_rows(), attention_rows(), optim_rows(), tensor_rows(), runtime_rows(), expr_rows(), file_rows(), profiler_rows()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

TEST(Errors, NameTheFunctionThatWasCalled) {
  int n = 0;
  for (const Call& row : all_rows()) {
    const std::string what = fmt::format("row {}: {}", n++, row.name);
    try {
      row.call();
      ADD_FAILURE() << what << " throws nothing";
    } catch (const Error& e) {
      EXPECT_EQ(e.op(), row.name) << what << ": " << e.what();
      EXPECT_TRUE(std::string_view(e.what()).starts_with(e.op() + ": ")) << e.what();
      EXPECT_EQ(std::string_view(e.what()).substr(e.op().size() + 2), e.message());
    } catch (const std::exception& e) {
      ADD_FAILURE() << what << " throws no clutch::Error: " << e.what();
    }
  }
}

TEST(Errors, SayWhatMustBeAndWhatWasGiven) {
  // Every program looks at every Error where it is thrown; here that it does.
  EXPECT_TRUE(says_both(ErrorCode::invalid_argument, "step must be positive, got 0"));
  for (const char* text : {"step must be positive", "got 0", "mustard, got 0", "it must not be forgotten"})
    for (ErrorCode code : {ErrorCode::invalid_argument, ErrorCode::not_supported}) EXPECT_FALSE(says_both(code, text)) << text;
  EXPECT_TRUE(says_both(ErrorCode::not_supported, "needs fp64, the device has none"));
  EXPECT_FALSE(says_both(ErrorCode::not_supported, "needs fp64"));
  EXPECT_FALSE(says_both(ErrorCode::io, "needs bytes, the file has none"));
  auto thrown = [](ErrorCode code, const char* text) { code_of([&] { throw Error(code, "messages", text); }); };
  MessagesApart apart;
  thrown(ErrorCode::invalid_argument, "it must be so, got another");
  thrown(ErrorCode::not_supported, "needs fp64, the device has none");
  thrown(ErrorCode::out_of_memory, "the memory is gone");
  EXPECT_EQ(apart.found(), std::vector<std::string>{});
  for (ErrorCode code : {ErrorCode::io, ErrorCode::capturing, ErrorCode::not_supported}) {
    MessagesApart of_code;
    thrown(code, "it is gone");
    EXPECT_EQ(of_code.found(), std::vector<std::string>{fmt::format("{}: messages: it is gone", name(code))});
  }
  std::thread([&] { thrown(ErrorCode::invalid_shape, "of neither"); }).join();
  thrown(ErrorCode::invalid_shape, "of neither");
  EXPECT_EQ(apart.found(), std::vector<std::string>{"invalid_shape: messages: of neither"});
}

TEST(Errors, OfFilesNameThem) {
  for (const Call& row : file_rows()) {
    const std::string_view name = row.name;
    if (name == "read_npy" || name == "Safetensors::parse") continue;  // of bytes
    const std::string message = message_of(row.call);
    EXPECT_NE(message.find("clutch_errors_"), std::string::npos) << message;
  }
}

TEST(Errors, AreTheCallersOwnInTheirFunctions) {
  // A function of the caller's that runs in a capture has the names of what it calls.
  Tensor x = zeros({4});
  auto op_of = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.op();
    }
    return "";
  };
  EXPECT_EQ(op_of([&] { make_graphed_callable([](std::span<const Tensor>) { return List{sum(Tensor())}; }, List{x}); }), "sum");
  EXPECT_EQ(op_of([&] { dry_run([] { sum(Tensor()); }, Stream(current_device())); }), "sum");
  EXPECT_EQ(op_of([&] { map([](Expr a) { return floor_div(a, a); }, x); }), "floor_div") << "the lambda's own error";
  EXPECT_EQ(op_of([&] { throw Error(ErrorCode::internal, "mine", "of a caller"); }), "mine");
  EXPECT_EQ(op_of([&] {
              sum(Tensor());
              throw Error(ErrorCode::internal, "mine", "behind another");
            }),
            "sum");
  EXPECT_EQ(op_of([&] { throw Error(ErrorCode::internal, "mine", "after all of them"); }), "mine");
}

/// Public functions of the headers as "namespace::name", of classes with their class.
std::set<std::string> public_functions() {
  std::set<std::string> found;
  for (const auto& file : std::filesystem::recursive_directory_iterator(CLUTCH_HEADERS)) {
    if (file.path().extension() != ".hpp") continue;
    std::ifstream in(file.path());
    std::vector<std::string> spaces;  // one each, joined
    std::string line, type;
    bool is_public = false, inner = false;
    while (std::getline(in, line)) {
      std::smatch m;
      if (std::regex_match(line, m, std::regex(R"((?:(?:inline )?namespace \w+ \{ ?)+)"))) {
        // Several may begin on a line, and then end on one.
        const std::regex one(R"(namespace (\w+) \{)");
        for (std::sregex_iterator at(line.begin(), line.end(), one), end; at != end; ++at) {
          const std::string name = (*at)[1];
          spaces.push_back(name == "clutch" || name == "v0" ? "" : name);
        }
        inner = false;
      } else if (std::regex_search(line, m, std::regex(R"(^(\}+)  // namespace)")) || (line == "}" && !spaces.empty() && spaces.back() == "detail" && !inner)) {
        for (std::ptrdiff_t braces = m.empty() ? 1 : m[1].length(); braces > 0 && !spaces.empty(); --braces) spaces.pop_back();
      } else if (std::regex_match(line, m, std::regex(R"((class|struct) CLUTCH_API (\w+).*\{)"))) {
        type = m[2], is_public = m[1] == "struct";
      } else if (line == "};") {
        type.clear();
      } else {
        inner = inner || line.ends_with("{");
        if (line == " public:") is_public = true;
        if (line == " private:" || line == " protected:") is_public = false;
        std::string space;
        for (const std::string& s : spaces)
          if (!s.empty()) space += s + "::";
        const bool own = !type.empty() && is_public && std::regex_search(line, m, std::regex(R"(^  (?:[A-Za-z][^(=]*?[ &*])?(operator\(\)|\w+)\()"));
        const bool loose = type.empty() && std::regex_search(line, m, std::regex(R"(^CLUTCH_API [^(]*?(\w+|operator[^\s(]+)\()"));
        if ((own || loose) && line.find("noexcept") == std::string::npos && line.find("= default") == std::string::npos &&
            line.find("= delete") == std::string::npos && line.find('~') == std::string::npos && !line.starts_with("  requires")) {
          std::string name = own ? (m[1] == type ? type : type + "::" + m[1].str()) : m[1].str();
          found.insert(space + name);
        }
      }
    }
  }
  return found;
}

TEST(Errors, EveryPublicFunctionHasARow) {
  const std::set<std::string> silent{
      // Nothing to refuse but what a device or the environment does.
      "Captured",
      "Error",
      "Event::record",
      "Expr",
      "Expr::Bool",
      "ExprValue::number",
      "ExprValue::of",
      "Generator",
      "Graph::pool",
      "Graph::reset",
      "GraphAnnotation",
      "GraphProgram::device",
      "KernelHandle::max_work_group",
      "PoolGuard",
      "Row",
      "Stream",
      "Tensor",
      "Tensor::contiguous",
      "Tensor::to_string",
      "TensorTable",
      "attention::BlockMask",
      "attention::causal",
      "attention::sliding_window",
      "attention::causal_lower_right",
      "build_info",
      "cache_directory",
      "check_settings",
      "current_device",
      "current_stream",
      "default_device",
      "default_generator",
      "default_stream",
      "device_count",
      "devices",
      "empty_cache",
      "fallback_count",
      "graph_backends",
      "last_plan",
      "manual_seed",
      "MemPool",
      "MemoryLabelGuard",
      "allocator_settings",
      "get_memory_info",
      "get_per_process_memory_fraction",
      "HostBuffer::to_device",
      "HostMapping::unmap",
      "random_bits",
      "max_memory_allocated",
      "max_memory_reserved",
      "memory_allocated",
      "memory_reserved",
      "memory_snapshot",
      "memory_stats",
      "memory_stats_by_label",
      "new_pool",
      "reset_accumulated_memory_stats",
      "reset_peak_memory_stats",
      "stop_memory_history",
      "set_log_sink",
      "settings",
      "synchronize",
      "to_string",
      "version",
      "plugins",
      "profiler::Profiler::add_metadata",
      "profiler::Profiler::events",
      "profiler::Profiler::idle_gaps",
      "profiler::Profiler::key_averages",
      "profiler::Profiler::totals",
      "profiler::Range",
      "profiler::compare_events",
      "profiler::kept_roof",
      "profiler::to_string",
      "tune::clear",
      "tune::entries",
      "tune::file",
      "optim::LRScheduler::lr",
      "optim::LRScheduler::state",
      "optim::LRScheduler::step",
      "DeviceGuard",
      "Partition",
      "free_units",
      "set_default_device",
      "set_current_device",
      "Event::query",
      "Event::wait",
      "interop::last_launch",
      "cache_usage",
      "clear_cache",
      "Defines",
      "Defines::to_string",
  };
  std::set<std::string> rows;
  for (const Call& row : all_rows()) rows.insert(row.name);
  const std::set<std::string> functions = public_functions();
  EXPECT_GT(functions.size(), 300u) << "the walk finds the headers";
  // Not functions of users; functions of traced values, whose rows are those that refuse; what has the names that its callers gave it; constexpr ones.
  const std::regex others(
      R"(detail::.*|operator.*|attention::(.*::)?operator.*|fma|max|min|param|position|select|Row::.*|GraphImpl::.*|Encoder::.*|launch|prepare|TensorTable::.*|Dims::.*)");
  for (const std::string& name : functions)
    if (!rows.contains(name) && !silent.contains(name) && !std::regex_match(name, others)) ADD_FAILURE() << name << " has no row";
  for (const std::string& name : silent) EXPECT_FALSE(rows.contains(name)) << name << " has a row";
}

}}  // namespace clutch::testing
