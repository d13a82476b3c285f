// SPDX-License-Identifier: Apache-2.0
#include "cases/map.hpp"
#include "harness/operands.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/omp.hpp"
#include "peers/omp_math.hpp"
#include "peers/omp_strided.hpp"
#include "peers/torch.hpp"

#include <functional>

namespace clutch::bench {

void register_map(Rows& rows);
void sweep_map(SweptOps& ops);

namespace {

using cases::MapCase;

/// A named op, or a chain of them: its function, what torch calls it, and the flops that a result takes with its polynomial.
struct Named {
  std::string name;
  int inputs;
  std::function<Expr(Expr, Expr)> build;
  std::string torch;  ///< over a, b and out
  double flops;
  int chain = 0;
};

Expr chain_of(Expr x, const Expr& y, int ops) {
  for (int k = 0; k < ops; ++k) x = k % 2 == 0 ? x * y : x + y;
  return x;
}

/// Flops of the elementary functions count those of their polynomials: two for each coefficient but the first.
std::vector<Named> named_ops() {
  std::vector<Named> ops{
      {"add", 2, [](Expr a, Expr b) { return a + b; }, "torch.add(a, b, out=out)", 1},
      {"mul", 2, [](Expr a, Expr b) { return a * b; }, "torch.mul(a, b, out=out)", 1},
      {"div", 2, [](Expr a, Expr b) { return a / b; }, "torch.div(a, b, out=out)", 1},
      {"relu", 1, [](Expr a, Expr) { return relu(a); }, "torch.clamp_min(a, 0, out=out)", 1},
      {"exp", 1, [](Expr a, Expr) { return exp(a); }, "torch.exp(a, out=out)", 12},
      {"log", 1, [](Expr a, Expr) { return log(a); }, "torch.log(a, out=out)", 20},
      {"tanh", 1, [](Expr a, Expr) { return tanh(a); }, "torch.tanh(a, out=out)", 24},
      {"sigmoid", 1, [](Expr a, Expr) { return sigmoid(a); }, "torch.sigmoid(a, out=out)", 12},
      {"erf", 1, [](Expr a, Expr) { return erf(a); }, "torch.erf(a, out=out)", 38},
      {"sin", 1, [](Expr a, Expr) { return sin(a); }, "torch.sin(a, out=out)", 16},
      {"pow", 2, [](Expr a, Expr b) { return pow(a, b); }, "torch.pow(a, b, out=out)", 18},
      {"gelu", 1, [](Expr a, Expr) { return gelu(a); }, "torch.nn.functional.gelu(a)", 38},
      {"silu", 1, [](Expr a, Expr) { return silu(a); }, "torch.nn.functional.silu(a)", 12},
  };
  for (int k : {1, 2, 4, 8}) {
    std::string torch = "torch.mul(a, b, out=out)";
    for (int i = 1; i < k; ++i) torch += i % 2 == 0 ? "; out.mul_(b)" : "; out.add_(b)";
    ops.push_back({fmt::format("map_chain_{}", k), 2, [k](Expr a, Expr b) { return chain_of(a, b, k); }, torch, static_cast<double>(k), k});
  }
  return ops;
}

struct Operands {
  std::vector<cases::Operand> raw;
  std::vector<Tensor> in;
  Tensor out;
  std::vector<omp::Buffer> host;
};

/// Values in (0.1, 4): no function meets a subnormal or an end.
std::shared_ptr<Operands> make_operands(const Device& device, DType dtype, std::int64_t n, int inputs) {
  auto o = std::make_shared<Operands>();
  model::Random random(7);
  auto bytes = bytes_for(dtype, static_cast<std::uint64_t>(n));
  for (int k = 0; k < 2; ++k) {
    cases::Operand raw{dtype, {n}, {}, std::vector<std::uint8_t>(bytes)};
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) model::store_at(raw.raw.data(), i, dtype, random.uniform(0.1, 4));
    o->host.emplace_back(bytes);
    std::memcpy(o->host.back().data(), raw.raw.data(), bytes);
    if (k < inputs) o->in.push_back(from_bytes(raw.raw.data(), bytes, {n}, {.dtype = dtype, .device = device}));
    if (k < inputs) o->raw.push_back(std::move(raw));
  }
  o->host.emplace_back(bytes);
  o->out = empty({n}, {.dtype = dtype, .device = device});
  synchronize(device);
  return o;
}

std::string check(const Operands& o, const ExprFunction& f, DType dtype, std::int64_t n) {
  std::vector<std::uint8_t> got = o.out.to_bytes();
  auto width = static_cast<std::size_t>(bits(dtype) / 8);
  std::vector<ExprValue> values(o.in.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); i += i < 5000 ? 1 : 997) {
    for (std::size_t k = 0; k < o.in.size(); ++k) values[k] = MapCase::value_of(o.raw[k].raw.data(), i, dtype, f.input_dtype(0));
    std::uint64_t want = 0;
    MapCase::store(&want, 0, dtype, f.evaluate(values)[0]);
    if (std::memcmp(&want, got.data() + i * width, width) != 0) return fmt::format("element {} is {}", i, model::value_at(got.data(), i, dtype));
  }
  return {};
}

Work work_of(const Device& device, const Named& op, DType dtype, std::int64_t n) {
  auto o = make_operands(device, dtype, n, op.inputs);
  DType traced = dtype == DType::f64 ? DType::f64 : DType::f32;
  const Expr result = op.build(detail::expr_input(0, traced), op.inputs == 2 ? detail::expr_input(1, traced) : Expr(0));
  std::vector<DType> dtypes(static_cast<std::size_t>(op.inputs), traced);
  ExprFunction f(dtypes, std::span(&result, 1));
  Work work;
  work.run = [o, f, device](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) map_out(std::span(&o->out, 1), f, o->in, {}, stream);
    stream.synchronize();
  };
  work.check = [o, f, dtype, n] { return check(*o, f, dtype, n); };
  if (dtype == DType::f32 || dtype == DType::f64)
    work.peers.push_back({omp::name(), [o, op, dtype, n](int reps) {
                            for (int i = 0; i < reps; ++i) {
                              void *a = o->host[0].data(), *b = o->host[1].data(), *out = o->host[2].data();
                              if (op.chain > 0)
                                omp::chain_f32(op.chain, static_cast<float*>(out), static_cast<float*>(a), static_cast<float*>(b), n);
                              else if (dtype == DType::f32)
                                omp::math_f32(op.name, static_cast<float*>(out), static_cast<float*>(a), static_cast<float*>(b), n);
                              else
                                omp::math_f64(op.name, static_cast<double*>(out), static_cast<double*>(a), static_cast<double*>(b), n);
                            }
                          }});
  double bytes = (op.inputs + 1.0) * static_cast<double>(n) * bits(dtype) / 8;
  if (n >= 1 << 16) work.peers.push_back(triad_peer(device, bytes));
  add_torch_peer(
      work, device,
      fmt::format("a = torch.rand({0}, device=device, dtype=torch.float64).mul(3.9).add(0.1).to({1}); b = a.flip(0).contiguous(); out = torch.empty_like(a)", n,
                  torch_dtype(dtype)),
      op.torch);
  return work;
}

/// How an operand of a matrix lies in memory.
std::array<std::int64_t, 2> strides_of(std::string_view layout, std::int64_t rows, std::int64_t columns) {
  if (layout == "apart") return {columns + 3, 1};
  if (layout == "transposed") return {1, rows};
  if (layout == "row") return {0, 1};
  if (layout == "column") return {1, 0};
  if (layout == "second") return {2 * columns, 2};
  return {columns, 1};
}

/// A function of two matrices that need not be contiguous.
Work strided_of(const Device& device, const RandomShape& shape) {
  const DType dtype = dtype_named(shape.word("dtype")), traced = dtype == DType::f64 ? DType::f64 : DType::f32;
  const std::int64_t rows = shape.number("rows"), columns = shape.number("columns");
  const std::string& name = shape.word("op");
  const std::vector<Named> all = named_ops();
  const Named& op = *std::find_if(all.begin(), all.end(), [&](const Named& x) { return x.name == name; });
  struct Given {
    std::vector<std::uint8_t> raw;
    std::array<std::int64_t, 2> strides;
    Tensor view;
  };
  auto given = std::make_shared<std::vector<Given>>();
  model::Random random(7);
  std::string torch;
  for (const char* which : {"a", "b"}) {
    Given g{.raw = {}, .strides = strides_of(shape.word(which), rows, columns), .view = {}};
    const std::int64_t count = 1 + (rows - 1) * g.strides[0] + (columns - 1) * g.strides[1];
    g.raw.resize(bytes_for(dtype, static_cast<std::uint64_t>(count)));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) model::store_at(g.raw.data(), i, dtype, random.uniform(0.1, 4));
    g.view = from_bytes(g.raw.data(), g.raw.size(), {count}, {.dtype = dtype, .device = device}).as_strided({rows, columns}, {g.strides[0], g.strides[1]});
    torch += fmt::format("{} = torch.rand({}, device=device).mul(3.9).add(0.1).to({}).as_strided(({}, {}), ({}, {})); ", which, count, torch_dtype(dtype), rows,
                         columns, g.strides[0], g.strides[1]);
    given->push_back(std::move(g));
  }
  const Expr result = op.build(detail::expr_input(0, traced), op.inputs == 2 ? detail::expr_input(1, traced) : Expr(0));
  ExprFunction f(std::vector<DType>(static_cast<std::size_t>(op.inputs), traced), std::span(&result, 1));
  std::vector<Tensor> in;
  for (int k = 0; k < op.inputs; ++k) in.push_back((*given)[static_cast<std::size_t>(k)].view);
  Tensor out = empty({rows, columns}, {.dtype = dtype, .device = device});
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) map_out(std::span(&out, 1), f, in, {}, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    const std::vector<std::uint8_t> got = out.to_bytes();
    const auto width = static_cast<std::size_t>(bits(dtype) / 8);
    std::vector<ExprValue> values(in.size());
    for (std::int64_t i = 0; i < rows * columns; i += i < 5000 || i >= rows * columns - 1000 ? 1 : 97) {
      for (std::size_t k = 0; k < in.size(); ++k) {
        const Given& g = (*given)[k];
        values[k] = MapCase::value_of(g.raw.data(), static_cast<std::size_t>(i / columns * g.strides[0] + i % columns * g.strides[1]), dtype, f.input_dtype(0));
      }
      std::uint64_t want = 0;
      MapCase::store(&want, 0, dtype, f.evaluate(values)[0]);
      if (std::memcmp(&want, got.data() + static_cast<std::size_t>(i) * width, width) != 0)
        return fmt::format("element {} is {}", i, model::value_at(got.data(), static_cast<std::size_t>(i), dtype));
    }
    return {};
  };
  if (dtype == DType::f32) {
    auto host = std::make_shared<std::vector<omp::Buffer>>();
    for (const Given& g : *given) {
      host->emplace_back(g.raw.size());
      std::memcpy(host->back().data(), g.raw.data(), g.raw.size());
    }
    host->emplace_back(static_cast<std::uint64_t>(rows * columns) * 4);
    work.peers.push_back({omp::name(), [=](int reps) {
                            auto of = [&](std::size_t k) { return static_cast<float*>((*host)[k].data()); };
                            auto strides = [&](std::size_t k) { return std::array<long, 2>{(*given)[k].strides[0], (*given)[k].strides[1]}; };
                            for (int i = 0; i < reps; ++i)
                              omp::map_strided_f32(name, of(2), of(0), strides(0), op.inputs == 2 ? of(1) : of(0), strides(op.inputs == 2 ? 1 : 0), rows,
                                                   columns);
                          }});
  }
  add_torch_peer(work, device, torch + fmt::format("out = torch.empty({}, {}, device=device, dtype={})", rows, columns, torch_dtype(dtype)), op.torch);
  return work;
}

}  // namespace

void sweep_map(SweptOps& ops) {
  auto load_of = [](double n, DType dtype) { return Load{2 * 4 * n * bits(dtype) / 8, 100 * n}; };
  SweptOp op{.name = "map",
             .parameters = {{.name = "op", .words = {}}, {.name = "dtype", .words = {"f32", "f64", "bf16", "f16"}}, {.name = "n", .most = 1 << 25}},
             .load = [=](const RandomShape& s) { return load_of(static_cast<double>(s.number("n")), dtype_named(s.word("dtype"))); },
             .prepare =
                 [](const Device& device, const RandomShape& s) {
                   const std::vector<Named> all = named_ops();
                   const auto& found = *std::find_if(all.begin(), all.end(), [&](const Named& x) { return x.name == s.word("op"); });
                   return work_of(device, found, dtype_named(s.word("dtype")), s.number("n"));
                 }};
  // The peers' chains are loops over f32.
  for (const Named& named : named_ops())
    if (named.chain == 0) op.parameters[0].words.push_back(named.name);
  ops.push_back(std::move(op));
  const std::vector<std::string> layouts{"plain", "apart", "transposed", "row", "column", "second"};
  ops.push_back({.name = "map_strided",
                 .parameters = {{.name = "op", .words = {"add", "mul", "exp", "silu"}},
                                {.name = "dtype", .words = {"f32", "f32", "f64", "bf16", "f16"}},
                                {.name = "rows", .most = 1000000},
                                {.name = "columns", .most = 1000000},
                                {.name = "a", .words = layouts},
                                {.name = "b", .words = layouts}},
                 .load =
                     [=](const RandomShape& s) {
                       // Every second row and column: four times the elements.
                       const Load one = load_of(static_cast<double>(s.number("rows")) * static_cast<double>(s.number("columns")), dtype_named(s.word("dtype")));
                       return Load{3 * one.bytes, one.operations};
                     },
                 .prepare = strided_of});
}

void register_map(Rows& rows) {
  for (const Named& op : named_ops())
    for (DType dtype : {DType::f32, DType::f64, DType::bf16})
      for (int e = 10; e <= 25; ++e) {
        std::int64_t n = std::int64_t{1} << e;
        bool plain = dtype == DType::f32, shown = op.name == "add" || op.name == "exp";
        if (!plain && (!shown || e != 24)) continue;
        rows.push_back({.name = row_name(op.name, dtype, n),
                        // With the polynomial: the plan states an elementary function as one operation.
                        .flops = op.flops * static_cast<double>(n),
                        .bytes = kStated,
                        .in_default = e == 16 || e == 24 || (shown && (e == 10 || e == 20)),
                        .in_quick = op.name == "exp" && plain && (e == 10 || e == 24),
                        .prepare = [op, dtype, n](const Device& device) { return work_of(device, op, dtype, n); }});
      }
}

}  // namespace clutch::bench
