// SPDX-License-Identifier: Apache-2.0
#include "cases/map.hpp"
#include "harness/rows.hpp"
#include "peers/omp.hpp"
#include "peers/omp_math.hpp"
#include "peers/torch.hpp"

#include <functional>

namespace clutch::bench {

void register_map(Rows& rows);

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

}  // namespace

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
