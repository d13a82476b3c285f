// SPDX-License-Identifier: Apache-2.0
#include "support/program_ops.hpp"

#include <clutch/ops/segment.hpp>
#include <clutch/sparse.hpp>

#include "runtime/storage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace clutch::testing {

namespace {

using Does = ProgramOp::Does;
constexpr DType f32 = DType::f32, i64 = DType::i64;

// Named element-wise functions. By day the first of each table are drawn alone.
using Out1 = Tensor (*)(const Tensor&, const MapOptions&, const Stream&);
using In1 = void (*)(const Tensor&, const MapOptions&, const Stream&);
using Out2 = Tensor (*)(const Tensor&, const Tensor&, const MapOptions&, const Stream&);
using In2 = void (*)(const Tensor&, const Tensor&, const MapOptions&, const Stream&);
using OutScalar = Tensor (*)(const Tensor&, const Scalar&, const MapOptions&, const Stream&);
using InScalar = void (*)(const Tensor&, const Scalar&, const MapOptions&, const Stream&);
struct Function1 {
  std::string name;
  Out1 out;
  In1 in_place;
};
struct Function2 {
  std::string name;
  Out2 out;
  In2 in_place;
  OutScalar scalar;
  InScalar scalar_in_place;
};
#define CLUTCH_F1(name) \
  Function1 { #name, static_cast < Out1>(name), static_cast < In1>(name##_) }
#define CLUTCH_F2(name) \
  Function2 { #name, static_cast < Out2>(name), static_cast < In2>(name##_), static_cast < OutScalar>(name), static_cast < InScalar>(name##_) }
const std::vector<Function1>& functions1() {
  static const std::vector<Function1> all{CLUTCH_F1(exp),         CLUTCH_F1(tanh), CLUTCH_F1(relu),   CLUTCH_F1(neg),        CLUTCH_F1(sqrt),
                                          CLUTCH_F1(abs),         CLUTCH_F1(sign), CLUTCH_F1(square), CLUTCH_F1(reciprocal), CLUTCH_F1(sigmoid),
                                          CLUTCH_F1(erf),         CLUTCH_F1(log),  CLUTCH_F1(floor),  CLUTCH_F1(round),      CLUTCH_F1(silu),
                                          CLUTCH_F1(logical_not), CLUTCH_F1(sin),  CLUTCH_F1(isnan),  CLUTCH_F1(rsqrt),      CLUTCH_F1(softplus)};
  return all;
}
const std::vector<Function2>& functions2() {
  static const std::vector<Function2> all{CLUTCH_F2(add), CLUTCH_F2(sub),         CLUTCH_F2(mul),        CLUTCH_F2(div), CLUTCH_F2(maximum),
                                          CLUTCH_F2(lt),  CLUTCH_F2(minimum),     CLUTCH_F2(pow),        CLUTCH_F2(eq),  CLUTCH_F2(ge),
                                          CLUTCH_F2(ne),  CLUTCH_F2(logical_and), CLUTCH_F2(logical_xor)};
  return all;
}
#undef CLUTCH_F1
#undef CLUTCH_F2
constexpr std::size_t kByDay1 = 5, kByDay2 = 6;

template <class F>
const F& function(const std::vector<F>& all, const std::string& name) {
  for (const F& f : all)
    if (f.name == name) return f;
  throw std::invalid_argument(fmt::format("there is no function '{}'", name));
}
template <class F>
std::string draw_function(CallDraw& d, const std::vector<F>& all, std::size_t by_day) {
  std::vector<std::string> names;
  for (const F& f : all) names.push_back(f.name);
  return d.function(std::move(names), by_day);
}

std::string whole_text(std::int64_t v) { return std::to_string(v); }
/// A number in [0, n], now and then an end.
std::int64_t place(CallDraw& d, std::int64_t n) {
  return d.one_in(4) ? (d.one_in(2) ? 0 : n) : static_cast<std::int64_t>(d.below(static_cast<std::uint64_t>(n) + 1));
}

std::vector<Tensor> nothing() { return {}; }
std::vector<Tensor> one(Tensor t) { return {std::move(t)}; }

// Inputs

std::vector<Tensor> run_input(const GivenCall& c) {
  const DType dtype = c.dtype("dtype");
  const Dims sizes = c.dims("sizes");
  Dims strides = c.has("strides") ? c.dims("strides") : detail::contiguous_strides(sizes);
  const std::int64_t lead = c.whole("lead", 0), below = c.whole("below", 0);
  std::int64_t count = lead + 1;
  for (int d = 0; d < sizes.rank(); ++d) count += std::max<std::int64_t>(sizes[d] - 1, 0) * strides[d];
  count += c.has("strides") || lead > 0 ? 5 : 0;  // bytes behind the elements that nobody writes
  if (numel(sizes) == 0) count = lead + 5;
  const auto seed = static_cast<std::uint64_t>(c.whole("values"));
  std::vector<std::uint8_t> bytes = model::make_values(static_cast<std::size_t>(count), dtype, seed, c.has("specials"));
  if (below > 0) {
    model::Random random(seed);
    for (std::int64_t i = 0; i < count; ++i)
      model::store_at(bytes.data(), static_cast<std::size_t>(i), dtype, static_cast<double>(random.next() % static_cast<std::uint64_t>(below)));
  }
  Tensor whole = from_bytes(bytes.data(), bytes.size(), {count}, {.dtype = dtype, .device = c.device()});
  return one(whole.as_strided(sizes, strides, lead));
}

// Views

bool draw_view(CallDraw& d, ProgramCall& call) {
  int t = d.find([](const Tensor&) { return true; });
  if (t < 0) return false;
  call.tensors = {t};
  return true;
}

bool draw_slice(CallDraw& d, ProgramCall& call) {
  if (!draw_view(d, call)) return false;
  const Tensor& t = d[call.tensors[0]];
  if (!d.dim(call, t)) return false;
  const std::int64_t n = t.size(std::stoi(call.values["dim"])), a = place(d, n), b = place(d, n);
  call.values["from"] = whole_text(std::min(a, b)), call.values["to"] = whole_text(std::max(a, b));
  if (d.one_in(3)) call.values["step"] = whole_text(1 + static_cast<std::int64_t>(d.below(3)));
  return true;
}

bool draw_expand(CallDraw& d, ProgramCall& call) {
  if (!draw_view(d, call)) return false;
  Dims sizes = d[call.tensors[0]].sizes();
  for (int i = 0; i < sizes.rank(); ++i)
    if (sizes[i] == 1) sizes[i] = d.size();
  Dims longer;
  if (sizes.rank() < 3 && d.one_in(2)) longer.push_back(d.size());
  for (std::int64_t n : sizes) longer.push_back(n);
  if (numel(longer) > 20000) return false;
  call.values["sizes"] = dims_text(longer);
  return true;
}

bool draw_reshape(CallDraw& d, ProgramCall& call) {
  if (!draw_view(d, call)) return false;
  const Tensor& t = d[call.tensors[0]];
  if (t.numel() == 0) return false;
  if (t.rank() >= 2 && d.one_in(2)) {
    call.values["sizes"] = "-1";
  } else {
    std::int64_t n = t.numel(), by = 1;
    for (std::int64_t f : {2, 3, 4, 5, 8, 16})
      if (n % f == 0 && d.one_in(2)) by = f;
    call.values["sizes"] = fmt::format("{},{}", by, n / by);
  }
  return true;
}

/// Overlapping windows of a vector.
bool draw_windows(CallDraw& d, ProgramCall& call) {
  int t = d.find([](const Tensor& x) { return x.rank() == 1 && x.numel() >= 2; });
  if (t < 0) return false;
  call.tensors = {t};
  const std::int64_t n = d[t].numel(), width = 1 + static_cast<std::int64_t>(d.below(static_cast<std::uint64_t>(std::min<std::int64_t>(n, 8))));
  call.values["width"] = whole_text(width);
  call.values["step"] = whole_text(1 + static_cast<std::int64_t>(d.below(static_cast<std::uint64_t>(width))));
  return true;
}

std::vector<Tensor> run_windows(const GivenCall& c) {
  const Tensor& t = c[0];
  const std::int64_t width = c.whole("width"), step = std::max<std::int64_t>(c.whole("step"), 1);
  if (t.rank() != 1 || width < 1 || width > t.numel()) throw Error(ErrorCode::invalid_shape, "windows", "a window must lie in a vector, got another");
  return one(t.as_strided({(t.numel() - width) / step + 1, width}, {step * t.stride(0), t.stride(0)}));
}

// Element-wise

bool draw_unary(CallDraw& d, ProgramCall& call) {
  call.values["fn"] = draw_function(d, functions1(), kByDay1);
  call.tensors = {d.floating()};
  return true;
}
bool draw_binary(CallDraw& d, ProgramCall& call) {
  call.values["fn"] = draw_function(d, functions2(), kByDay2);
  int a = d.floating();
  call.tensors = {a, d.partner(d[a].sizes(), d.one_in(5) ? d.dtype() : d[a].dtype())};
  return true;
}
bool draw_scalar(CallDraw& d, ProgramCall& call) {
  call.values["fn"] = draw_function(d, functions2(), kByDay2);
  int a = d.floating();
  call.tensors = {a};
  call.values["value"] = d.scalar(!is_floating(d[a].dtype()));
  return true;
}
bool draw_ternary(CallDraw& d, ProgramCall& call) {
  int a = d.floating();
  call.tensors = {a, d.partner(d[a].sizes(), d[a].dtype()), d.partner(d[a].sizes(), d[a].dtype())};
  return true;
}
bool draw_where(CallDraw& d, ProgramCall& call) {
  int a = d.floating();
  call.tensors = {d.partner(d[a].sizes(), DType::boolean), a, d.partner(d[a].sizes(), d[a].dtype())};
  return true;
}

ExprFunction traced(const GivenCall& c, const ProgramBody& body, std::size_t first) {
  BodyArguments a;
  std::span<const Tensor> given = c.tensors(first);
  if (given.size() != body.inputs.size() + body.captured.size())
    throw std::invalid_argument(fmt::format("body {} must be given {} tensors, got {}", body.name, body.inputs.size() + body.captured.size(), given.size()));
  std::vector<DType> dtypes = traced_dtypes(given.first(body.inputs.size()));
  for (std::size_t i = 0; i < body.inputs.size(); ++i) a.x.push_back(detail::expr_input(static_cast<int>(i), dtypes[i]));
  a.p = c.numbers("params");
  a.p.resize(static_cast<std::size_t>(body.params));
  for (std::size_t i = 0; i < body.captured.size(); ++i) a.c.push_back(captured(given[body.inputs.size() + i]));
  if (body.draws) a.generator = c.generator();
  return ExprFunction(dtypes, body.outputs(a));
}

bool draw_body(CallDraw& d, ProgramCall& call, const ProgramBody& body) {
  call.values["body"] = body.name;
  std::vector<std::string> params;
  for (int p = 0; p < body.params; ++p) params.push_back(d.scalar(false));
  if (!params.empty()) call.values["params"] = fmt::format("{}", fmt::join(params, ","));
  if (body.draws) call.values["generator"] = d.generator();
  Dims sizes;
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    call.tensors.push_back(i == 0 ? d.of(body.inputs[0]) : d.partner(sizes, body.inputs[i]));
    if (i == 0) sizes = d[call.tensors[0]].sizes();
  }
  for (const auto& [dtype, rank] : body.captured) {
    int t = d.find([dtype = dtype, rank = rank](const Tensor& x) { return x.dtype() == dtype && x.rank() == rank && x.numel() > 0; });
    call.tensors.push_back(t >= 0 ? t : d.exactly(d.sizes(rank, rank), dtype));
  }
  return true;
}
bool draw_map(CallDraw& d, ProgramCall& call) { return draw_body(d, call, d.body()); }
std::vector<Tensor> run_map(const GivenCall& c) {
  const ProgramBody& body = program_body(c.text("body"));
  return map(traced(c, body, 0), c.tensors().first(body.inputs.size()));
}

/// Into tensors that exist: views, and often an input itself.
bool draw_map_out(CallDraw& d, ProgramCall& call) {
  if (!draw_map(d, call)) return false;
  const ProgramBody& body = program_body(call.values["body"]);
  std::vector<Dims> shapes;
  for (std::size_t i = 0; i < body.inputs.size(); ++i) shapes.push_back(d[call.tensors[i]].sizes());
  const Dims sizes = broadcast_shapes(shapes);
  BodyArguments a;
  for (std::size_t i = 0; i < body.inputs.size(); ++i)
    a.x.push_back(detail::expr_input(static_cast<int>(i), traced_dtypes(std::span(&d[call.tensors[i]], 1))[0]));
  a.p.resize(static_cast<std::size_t>(body.params));
  for (std::size_t i = 0; i < body.captured.size(); ++i) a.c.push_back(captured(d[call.tensors[body.inputs.size() + i]]));
  std::vector<int> outs;
  for (const Expr& e : body.outputs(a)) {
    DType dtype = e.dtype() == DType::boolean || e.dtype() == DType::i64 || e.dtype() == DType::i32 ? e.dtype() : body.inputs[0];
    if (!is_floating(dtype) && is_floating(e.dtype())) dtype = f32;
    outs.push_back(d.exactly(sizes, dtype));
  }
  call.values["outs"] = whole_text(static_cast<std::int64_t>(outs.size()));
  call.tensors.insert(call.tensors.begin(), outs.begin(), outs.end());
  return true;
}
std::vector<Tensor> run_map_out(const GivenCall& c) {
  const ProgramBody& body = program_body(c.text("body"));
  auto outs = static_cast<std::size_t>(c.whole("outs"));
  if (outs == 0 || outs > c.tensors().size()) throw std::invalid_argument("map_out must have outputs");
  map_out(c.tensors().first(outs), traced(c, body, outs), c.tensors(outs).first(body.inputs.size()));
  return nothing();
}

// Reductions and rows

bool draw_reduce(CallDraw& d, ProgramCall& call) {
  static const std::vector<std::string> all{"sum", "mean", "amax", "amin", "any", "argmax", "prod", "var", "logsumexp", "norm"};
  call.values["fn"] = d.function(all, 3);
  int t = d.floating();
  call.tensors = {t};
  const int rank = d[t].rank();
  if (rank > 0 && !d.one_in(4)) {
    Dims dims;
    for (int i = 0; i < rank; ++i)
      if (d.one_in(2)) dims.push_back(d.one_in(2) ? i : i - rank);
    if (!dims.empty()) call.values["dims"] = dims_text(dims);
  }
  if (d.one_in(2)) call.values["keepdim"] = "1";
  return true;
}
std::vector<Tensor> run_reduce(const GivenCall& c) {
  const ReduceOptions options{.dims = c.dims("dims"), .keepdim = c.has("keepdim")};
  const std::string& fn = c.text("fn");
  if (fn == "sum") return one(sum(c[0], options));
  if (fn == "mean") return one(mean(c[0], options));
  if (fn == "amax") return one(amax(c[0], options));
  if (fn == "amin") return one(amin(c[0], options));
  if (fn == "any") return one(any(c[0], options));
  if (fn == "argmax") return one(argmax(c[0], options));
  if (fn == "prod") return one(prod(c[0], options));
  if (fn == "var") return one(var(c[0], options));
  if (fn == "logsumexp") return one(logsumexp(c[0], options));
  if (fn == "norm") return one(norm(c[0], options));
  throw std::invalid_argument(fmt::format("there is no reduction '{}'", fn));
}

bool draw_rows(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  call.tensors = {t};
  return d.dim(call, d[t]);
}
bool draw_layer_norm(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  if (d[t].rank() == 0) return false;
  call.tensors = {t, d.exactly({d[t].size(-1)}, d[t].dtype()), d.exactly({d[t].size(-1)}, d[t].dtype())};
  return true;
}

// Indices

bool draw_index_select(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  if (!d.dim(call, d[t])) return false;
  call.tensors = {t, d.indices({d.size()}, d[t].size(std::stoi(call.values["dim"])))};
  return true;
}
bool draw_gather(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  if (!d.dim(call, d[t])) return false;
  call.tensors = {t, d.indices(d[t].sizes(), d[t].size(std::stoi(call.values["dim"])))};
  return true;
}
bool draw_index(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  if (d[t].rank() == 0) return false;
  call.tensors = {t, d.indices({d.size()}, d[t].size(0))};
  return true;
}
// Segments may be empty, overlap and be in any order.
bool draw_segments(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  if (d[t].rank() == 0) return false;
  call.tensors = {t, d.indices({d.size() + 1}, d[t].size(0) + 1)};
  return true;
}
bool draw_spmm(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  if (d[t].rank() != 2) return false;
  const std::int64_t entries = d.size();
  call.tensors = {t, d.indices({d.size() + 1}, entries + 1), d.indices({entries}, d[t].size(0)), d.exactly({entries}, d[t].dtype())};
  return true;
}
bool draw_index_put(CallDraw& d, ProgramCall& call) {
  if (!draw_index(d, call)) return false;
  Dims sizes = d[call.tensors[0]].sizes();
  sizes[0] = d[call.tensors[1]].numel();
  if (numel(sizes) > 20000) return false;
  call.tensors.push_back(d.partner(sizes, d[call.tensors[0]].dtype()));
  if (d.one_in(2)) call.values["accumulate"] = "1";
  return true;
}
bool draw_scatter_add(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  if (!d.dim(call, d[t])) return false;
  call.tensors = {t, d.indices(d[t].sizes(), d[t].size(std::stoi(call.values["dim"]))), d.exactly(d[t].sizes(), d[t].dtype())};
  return true;
}

// Copies and new tensors

bool draw_cast(CallDraw& d, ProgramCall& call) {
  static const std::vector<DType> all{DType::f16, DType::bf16, DType::f32, DType::i32, DType::i64, DType::boolean, DType::f64, DType::u8};
  DType to = d.wide() ? d.pick(all) : all[d.below(4)];
  int t = d.wide() || d.one_in(3) ? d.find([](const Tensor&) { return true; }) : d.of(f32);
  if (t < 0 || (!d.wide() && d[t].dtype() != f32 && to != f32)) return false;
  call.tensors = {t};
  call.values["dtype"] = name(to);
  return true;
}
bool draw_copy(CallDraw& d, ProgramCall& call) {
  int to = d.find([](const Tensor&) { return true; });
  if (to < 0) return false;
  call.tensors = {to, d.partner(d[to].sizes(), d.wide() && d.one_in(2) ? d.dtype() : d[to].dtype())};
  return true;
}
bool draw_fill(CallDraw& d, ProgramCall& call) {
  int t = d.find([](const Tensor&) { return true; });
  if (t < 0) return false;
  call.tensors = {t};
  call.values["value"] = d.scalar(!is_floating(d[t].dtype()));
  return true;
}
bool draw_write(CallDraw& d, ProgramCall& call) {
  call.tensors = {d.floating()};
  call.values["values"] = whole_text(static_cast<std::int64_t>(d.below(1000)));
  return true;
}
std::vector<Tensor> run_write(const GivenCall& c) {
  const std::vector<std::uint8_t> bytes =
      model::make_values(static_cast<std::size_t>(c[0].numel()), c[0].dtype(), static_cast<std::uint64_t>(c.whole("values")), false);
  c[0].write(std::as_bytes(std::span(bytes)));
  return nothing();
}
bool draw_constant(CallDraw& d, ProgramCall& call) {
  call.values["dtype"] = name(d.dtype());
  call.values["sizes"] = dims_text(d.sizes());
  call.values["values"] = whole_text(static_cast<std::int64_t>(d.below(1000)));
  return true;
}
bool draw_full(CallDraw& d, ProgramCall& call) {
  call.values["dtype"] = name(d.dtype());
  call.values["sizes"] = dims_text(d.sizes());
  call.values["value"] = d.scalar(false);
  return true;
}
bool draw_arange(CallDraw& d, ProgramCall& call) {
  call.values["dtype"] = name(d.one_in(2) ? i64 : f32);
  call.values["size"] = whole_text(d.size());
  return true;
}

bool draw_cat(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  if (!d.dim(call, d[t])) return false;
  call.tensors = {t, d.exactly(d[t].sizes(), d[t].dtype())};
  if (d.one_in(2)) call.tensors.push_back(d.exactly(d[t].sizes(), d[t].dtype()));
  return 3 * d[t].numel() <= 20000;
}
bool draw_stack(CallDraw& d, ProgramCall& call) {
  int t = d.floating();
  call.tensors = {t, d.exactly(d[t].sizes(), d[t].dtype())};
  return d[t].rank() < 3;
}
bool draw_foreach_copy(CallDraw& d, ProgramCall& call) {
  int a = d.floating(), b = d.floating();
  call.tensors = {a, b, d.exactly(d[a].sizes(), d[a].dtype()), d.exactly(d[b].sizes(), d[b].dtype())};
  call.values["outs"] = "2";
  return true;
}
bool draw_pair(CallDraw& d, ProgramCall& call) {
  int t = d.of(f32);
  call.tensors = {t, d.exactly(d[t].sizes(), f32)};
  return true;
}

// The rest

bool draw_matmul(CallDraw& d, ProgramCall& call) {
  int a = d.find([](const Tensor& t) { return t.dtype() == f32 && t.rank() >= 2 && t.numel() <= 20000; });
  if (a < 0) a = d.exactly(d.sizes(2, 2), f32);
  call.tensors = {a, d.exactly({d[a].size(-1), d.size()}, f32)};
  return true;
}
bool draw_sort(CallDraw& d, ProgramCall& call) {
  int t = d.of(f32);
  if (!d.dim(call, d[t])) return false;
  call.tensors = {t};
  if (d.one_in(2)) call.values["descending"] = "1";
  return true;
}
bool draw_topk(CallDraw& d, ProgramCall& call) {
  int t = d.of(f32);
  if (!d.dim(call, d[t])) return false;
  call.tensors = {t};
  call.values["k"] = whole_text(static_cast<std::int64_t>(d.below(static_cast<std::uint64_t>(d[t].size(std::stoi(call.values["dim"]))) + 1)));
  return true;
}
bool draw_random(CallDraw& d, ProgramCall& call) {
  call.tensors = {d.of(f32)};
  call.values["generator"] = d.generator();
  return true;
}
bool draw_rand(CallDraw& d, ProgramCall& call) {
  call.values["sizes"] = dims_text(d.sizes());
  call.values["generator"] = d.generator();
  return true;
}
/// Parameter, both averages, gradient.
bool draw_adam(CallDraw& d, ProgramCall& call) {
  int p = d.of(f32);
  const Dims sizes = d[p].sizes();
  call.tensors = {p, d.exactly(sizes, f32), d.exactly(sizes, f32), d.exactly(sizes, f32)};
  call.values["count"] = whole_text(1 + static_cast<std::int64_t>(d.below(20)));
  return true;
}
/// Parameter, momentum, gradient.
bool draw_sgd(CallDraw& d, ProgramCall& call) {
  int p = d.of(f32);
  const Dims sizes = d[p].sizes();
  call.tensors = {p, d.exactly(sizes, f32), d.exactly(sizes, f32)};
  call.values["count"] = whole_text(1 + static_cast<std::int64_t>(d.below(20)));
  return true;
}

/// A caller's kernel, of which a backend knows its arguments alone.
std::vector<Tensor> run_own_kernel(const GivenCall& c) {
  const Tensor &y = c[0], &x = c[1];
  if (!y.is_contiguous() || !x.is_contiguous() || y.dtype() != f32 || x.dtype() != f32 || y.numel() != x.numel())
    throw Error(ErrorCode::invalid_shape, "own_kernel", "both must be contiguous f32 of one size, got others");
  if (y.shares_storage(x)) throw Error(ErrorCode::invalid_overlap, "own_kernel", "both must be apart, got views of one storage");
  if (y.numel() == 0) return nothing();
  const KernelSource source{.text = R"(__kernel void own_kernel(__global float* y, __global const float* x, float a, uint n) {
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = fma(a, x[i], y[i]);
})",
                            .entry = "own_kernel"};
  launch(source, {.global = 4, .local = 1}, {inout(y, "y"), clutch::input(x, "x"), value(0.75f, "a"), value(static_cast<std::uint32_t>(y.numel()))});
  return nothing();
}

/// A host task between kernels.
std::vector<Tensor> run_host_task(const GivenCall& c) {
  const Tensor &y = c[0], &x = c[1];
  if (!y.is_contiguous() || !x.is_contiguous() || y.dtype() != f32 || x.dtype() != f32 || y.numel() != x.numel())
    throw Error(ErrorCode::invalid_shape, "host_task", "both must be contiguous f32 of one size, got others");
  if (y.shares_storage(x)) throw Error(ErrorCode::invalid_overlap, "host_task", "both must be apart, got views of one storage");
  if (y.numel() == 0) return nothing();
  Encoder encoder(current_stream(c.device()), "host_task");
  const auto n = static_cast<std::size_t>(y.numel());
  encoder.host_task(
      [n](std::span<void* const> p) {
        for (std::size_t i = 0; i < n; ++i) static_cast<float*>(p[1])[i] = 0.5f * static_cast<const float*>(p[0])[n - 1 - i];
      },
      std::span(&x, 1), std::span(&y, 1));
  return nothing();
}

// Control flow. Branches are told by names; each gives two tensors of the sizes of x.

struct ProgramBranch {
  const char* name;
  bool draws;
  std::function<std::vector<Tensor>(const Tensor& x, const Tensor& y, const GivenCall&)> run;
};
const std::vector<ProgramBranch>& branches() {
  using T = const Tensor&;
  using C = const GivenCall&;
  using Two = std::vector<Tensor>;
  static const std::vector<ProgramBranch> all{
      {"chain", false,
       [](T x, T y, C) {
         return Two{add(mul(x, 2), y), relu(y)};
       }},
      {"sums", false,
       [](T x, T y, C) {
         return Two{add(x, sum(y)), mul(y, 0.5)};
       }},
      {"given", false,
       [](T x, T y, C) {
         return Two{y, x};
       }},
      {"draw", true,
       [](T x, T y, C c) {
         Tensor drawn = x.clone();
         uniform_(drawn, {.generator = c.generator()});
         return Two{drawn, y.clone()};
       }},
      {"nested", false,
       [](T x, T y, C) {
         return cond(
             lt(sum(x), 0),
             [&] {
               return Two{neg(x), y};
             },
             [&] {
               return Two{x, add(y, x)};
             });
       }},
  };
  return all;
}
const ProgramBranch& branch(const std::string& name) {
  for (const ProgramBranch& b : branches())
    if (b.name == name) return b;
  throw std::invalid_argument(fmt::format("there is no branch '{}'", name));
}
/// Names of branches for these values, and a generator if one of them draws.
void draw_branches(CallDraw& d, ProgramCall& call, std::initializer_list<const char*> keys) {
  bool draws = false;
  for (const char* key : keys) {
    const ProgramBranch& b = d.pick(branches());
    call.values[key] = b.name;
    draws = draws || b.draws;
  }
  if (draws) call.values["generator"] = d.generator();
}
bool draw_cond(CallDraw& d, ProgramCall& call) {
  if (!draw_pair(d, call)) return false;
  draw_branches(d, call, {"then", "else"});
  return true;
}
std::vector<Tensor> run_cond(const GivenCall& c) {
  auto take = [&](const char* key) { return [&c, key] { return branch(c.text(key)).run(c[0], c[1], c); }; };
  return cond(lt(sum(c[0]), sum(c[1])), take("then"), take("else"));
}
/// Writes where the predicate holds.
std::vector<Tensor> run_cond_in_place(const GivenCall& c) {
  auto write = [&] {
    add_(c[0], c[1]);
    return nothing();
  };
  return cond(lt(sum(c[0]), sum(c[1])), write, nothing);
}
bool draw_switch(CallDraw& d, ProgramCall& call) {
  if (!draw_pair(d, call)) return false;
  call.tensors.push_back(d.indices({1}, 4));
  draw_branches(d, call, {"0", "1", "2"});
  return true;
}
std::vector<Tensor> run_switch(const GivenCall& c) {
  std::vector<BranchFunction> taken;
  for (const char* key : {"0", "1", "2"}) taken.push_back([&c, key] { return branch(c.text(key)).run(c[0], c[1], c); });
  return switch_(c[2], taken);
}
bool draw_while(CallDraw& d, ProgramCall& call) {
  if (!draw_pair(d, call)) return false;
  call.tensors.push_back(d.indices({1}, 5));
  draw_branches(d, call, {"body"});
  return true;
}
/// As many iterations as its last tensor says, and three at most.
std::vector<Tensor> run_while(const GivenCall& c) {
  const Tensor state[] = {c[0], c[1], full({1}, 0, {.dtype = i64, .device = c.device()})};
  LoopResult r = while_loop([&](std::span<const Tensor> s) { return lt(s[2], c[2]); },
                            [&](std::span<const Tensor> s) {
                              std::vector<Tensor> next = branch(c.text("body")).run(s[0], s[1], c);
                              next.push_back(add(s[2], 1));
                              return next;
                            },
                            state, {.max_iterations = 3});
  r.state[2] = r.iterations;
  return r.state;
}

std::span<const Tensor> single(const Tensor& t) { return std::span(&t, 1); }
/// The number of an optimizer's step, which must be a count.
Tensor count_of(const GivenCall& c) { return full({1}, static_cast<double>(std::max<std::int64_t>(c.whole("count"), 1)), {.device = c.device()}); }

}  // namespace

const std::vector<ProgramOp>& all_program_ops() {
  using C = const GivenCall&;
  static const std::vector<ProgramOp> all{
      {"input", 0, false, Does::makes, 0, nullptr, run_input},
      {"drop", 0, false, Does::none, 0, nullptr, [](C) { return nothing(); }},
      // Views
      {"slice", 3, false, Does::views, 0, draw_slice,
       [](C c) { return one(c[0].slice(static_cast<int>(c.whole("dim")), c.whole("from"), c.whole("to"), c.whole("step", 1))); }},
      {"transpose", 2, false, Does::views, 0,
       [](CallDraw& d, ProgramCall& call) {
         return draw_view(d, call) && d[call.tensors[0]].rank() > 1 && d.dim(call, d[call.tensors[0]]) && d.dim(call, d[call.tensors[0]], "with");
       },
       [](C c) { return one(c[0].transpose(static_cast<int>(c.whole("dim")), static_cast<int>(c.whole("with")))); }},
      {"expand", 1, false, Does::views, 0, draw_expand, [](C c) { return one(c[0].expand(c.dims("sizes"))); }},
      {"unsqueeze", 1, false, Does::views, 0,
       [](CallDraw& d, ProgramCall& call) {
         if (!draw_view(d, call) || d[call.tensors[0]].rank() > 2) return false;
         call.values["dim"] = whole_text(static_cast<std::int64_t>(d.below(static_cast<std::uint64_t>(d[call.tensors[0]].rank()) + 1)));
         return true;
       },
       [](C c) { return one(c[0].unsqueeze(static_cast<int>(c.whole("dim")))); }},
      {"windows", 1, false, Does::views, 0, draw_windows, run_windows},
      {"reshape", 1, false, Does::makes, 0, draw_reshape, [](C c) { return one(c[0].reshape(c.dims("sizes"))); }},
      // Element-wise
      {"unary", 3, true, Does::makes, 0, draw_unary, [](C c) { return one(function(functions1(), c.text("fn")).out(c[0], {}, {})); }},
      {"unary_", 2, false, Does::writes, 1, draw_unary,
       [](C c) {
         function(functions1(), c.text("fn")).in_place(c[0], {}, {});
         return nothing();
       }},
      {"binary", 4, true, Does::makes, 0, draw_binary, [](C c) { return one(function(functions2(), c.text("fn")).out(c[0], c[1], {}, {})); }},
      {"binary_", 4, true, Does::writes, 1, draw_binary,
       [](C c) {
         function(functions2(), c.text("fn")).in_place(c[0], c[1], {}, {});
         return nothing();
       }},
      {"scalar", 3, true, Does::makes, 0, draw_scalar, [](C c) { return one(function(functions2(), c.text("fn")).scalar(c[0], c.scalar("value"), {}, {})); }},
      {"scalar_", 3, true, Does::writes, 1, draw_scalar,
       [](C c) {
         function(functions2(), c.text("fn")).scalar_in_place(c[0], c.scalar("value"), {}, {});
         return nothing();
       }},
      {"gelu", 1, false, Does::makes, 0, draw_unary, [](C c) { return one(gelu(c[0])); }},
      {"where", 1, false, Does::makes, 0, draw_where, [](C c) { return one(where(c[0], c[1], c[2])); }},
      {"addcdiv", 1, false, Does::makes, 0, draw_ternary, [](C c) { return one(addcdiv(c[0], c[1], c[2], {.value = 0.5})); }},
      {"addcmul_", 1, false, Does::writes, 1, draw_ternary,
       [](C c) {
         addcmul_(c[0], c[1], c[2], {.value = -0.25});
         return nothing();
       }},
      {"map", 8, true, Does::makes, 0, draw_map, run_map},
      {"map_out", 4, true, Does::writes, 0, draw_map_out, run_map_out},
      // Reductions, rows and scans
      {"reduce", 3, true, Does::makes, 0, draw_reduce, run_reduce},
      {"softmax", 1, false, Does::makes, 0, draw_rows, [](C c) { return one(nn::softmax(c[0], static_cast<int>(c.whole("dim")))); }},
      {"layer_norm", 1, false, Does::makes, 0, draw_layer_norm,
       [](C c) {
         nn::LayerNormResult r = nn::layer_norm(c[0], c[1], c[2]);
         return std::vector<Tensor>{r.y, r.mean, r.rstd};
       }},
      {"cumsum", 1, false, Does::makes, 0, draw_rows, [](C c) { return one(cumsum(c[0], static_cast<int>(c.whole("dim")))); }},
      // Indices
      {"index_select", 1, false, Does::makes, 0, draw_index_select, [](C c) { return one(index_select(c[0], static_cast<int>(c.whole("dim")), c[1])); }},
      {"gather", 1, false, Does::makes, 0, draw_gather, [](C c) { return one(gather(c[0], static_cast<int>(c.whole("dim")), c[1])); }},
      {"index", 1, false, Does::makes, 0, draw_index, [](C c) { return one(index(c[0], {c[1]})); }},
      {"segment_reduce", 1, false, Does::makes, 0, draw_segments, [](C c) { return one(segment_reduce(c[0], c[1])); }},
      {"spmm", 1, false, Does::makes, 0, draw_spmm,
       [](C c) { return one(sparse::spmm({.offsets = c[1], .columns = c[2], .values = c[3], .width = c[0].size(0)}, c[0])); }},
      {"index_put_", 1, false, Does::writes, 1, draw_index_put,
       [](C c) {
         index_put_(c[0], {c[1]}, c[2], {.accumulate = c.has("accumulate")});
         return nothing();
       }},
      {"scatter_add_", 1, false, Does::writes, 1, draw_scatter_add,
       [](C c) {
         scatter_reduce_(c[0], static_cast<int>(c.whole("dim")), c[1], c[2]);
         return nothing();
       }},
      // Copies and new tensors
      {"cast", 3, true, Does::makes, 0, draw_cast, [](C c) { return one(cast(c[0], c.dtype("dtype"))); }},
      {"copy_", 3, true, Does::writes, 1, draw_copy,
       [](C c) {
         copy_(c[0], c[1]);
         return nothing();
       }},
      {"fill_", 2, true, Does::writes, 1, draw_fill,
       [](C c) {
         fill_(c[0], c.number("value"));
         return nothing();
       }},
      {"write", 1, false, Does::writes, 1, draw_write, run_write},
      {"contiguous", 1, false, Does::makes, 0, draw_view, [](C c) { return one(c[0].contiguous()); }},
      {"clone", 1, true, Does::makes, 0, draw_view, [](C c) { return one(c[0].clone()); }},
      {"constant", 1, false, Does::makes, 0, draw_constant, run_input},
      {"full", 1, false, Does::makes, 0, draw_full,
       [](C c) { return one(full(c.dims("sizes"), c.number("value"), {.dtype = c.dtype("dtype"), .device = c.device()})); }},
      {"arange", 1, false, Does::makes, 0, draw_arange,
       [](C c) { return one(arange(0, static_cast<double>(c.whole("size")), 1, {.dtype = c.dtype("dtype"), .device = c.device()})); }},
      {"cat", 2, false, Does::makes, 0, draw_cat, [](C c) { return one(cat(c.tensors(), static_cast<int>(c.whole("dim")))); }},
      {"stack", 1, false, Does::makes, 0, draw_stack, [](C c) { return one(stack(c.tensors())); }},
      {"foreach_copy_", 1, false, Does::writes, 0, draw_foreach_copy,
       [](C c) {
         c[3];
         foreach_copy_(c.tensors().first(2), c.tensors(2));
         return nothing();
       }},
      // Products, sorts, draws and steps
      {"matmul", 1, false, Does::makes, 0, draw_matmul, [](C c) { return one(linalg::matmul(c[0], c[1])); }},
      {"sort", 1, false, Does::makes, 0, draw_sort,
       [](C c) {
         Sorted r = sort(c[0], static_cast<int>(c.whole("dim")), {.descending = c.has("descending")});
         return std::vector<Tensor>{r.values, r.indices};
       }},
      {"topk", 1, false, Does::makes, 0, draw_topk,
       [](C c) {
         Sorted r = topk(c[0], c.whole("k"), static_cast<int>(c.whole("dim")));
         return std::vector<Tensor>{r.values, r.indices};
       }},
      {"uniform_", 1, true, Does::writes, 1, draw_random,
       [](C c) {
         uniform_(c[0], {.generator = c.generator()});
         return nothing();
       }},
      {"randn", 1, true, Does::makes, 0, draw_rand, [](C c) { return one(randn(c.dims("sizes"), {.device = c.device(), .generator = c.generator()})); }},
      {"adamw_", 1, false, Does::writes, 3, draw_adam,
       [](C c) {
         optim::adamw_(single(c[0]), single(c[3]), single(c[1]), single(c[2]), {}, count_of(c));
         return nothing();
       }},
      {"sgd_", 1, false, Does::writes, 2, draw_sgd,
       [](C c) {
         optim::sgd_(single(c[0]), single(c[2]), single(c[1]), count_of(c), {.lr = 0.1, .momentum = 0.9});
         return nothing();
       }},
      // Control flow
      {"cond", 1, false, Does::makes, 0, draw_cond, run_cond},
      {"cond_", 1, false, Does::writes, 1, draw_pair, run_cond_in_place},
      {"switch", 1, false, Does::makes, 0, draw_switch, run_switch},
      {"while", 1, false, Does::makes, 0, draw_while, run_while},
      // What backends cannot look into
      {"own_kernel", 1, false, Does::writes, 1, draw_pair, run_own_kernel},
      {"host_task", 1, false, Does::writes, 1, draw_pair, run_host_task},
  };
  return all;
}

const ProgramOp& program_op(std::string_view name) {
  for (const ProgramOp& op : all_program_ops())
    if (op.name == name) return op;
  throw std::invalid_argument(fmt::format("there is no op '{}'", name));
}

}  // namespace clutch::testing
