// SPDX-License-Identifier: Apache-2.0
#include "cases/rowwise.hpp"
#include "harness/operands.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/omp.hpp"
#include "peers/omp_math.hpp"
#include "peers/omp_strided.hpp"
#include "peers/torch.hpp"

#include <clutch/nn.hpp>

#include <cmath>

namespace clutch::bench {

void register_rowwise(Rows& rows);
void sweep_rowwise(SweptOps& ops);

namespace {

/// An op over rows of x, with g (like x), w and b (a number for each column) at hand.
struct Given {
  Tensor x, g, w, b, mean, factor, target;
};
struct RowOp {
  const char* name;
  const char* torch;  ///< over x, g, w, b, t and, for backward, y and what the forward op gave
  const char* torch_setup;
  Tensor (*run)(const Given& t, const Stream& s);
  double reads, writes;  ///< tensors of x's size
};
// Where torch offers it, results go to given memory: fresh pages would flatter us, whose allocator keeps its own.
const RowOp kOps[] = {
    {"softmax", "torch.ops.aten._softmax.out(x, -1, False, out=y)", "; y = torch.empty_like(x)",
     [](const Given& t, const Stream& s) { return nn::softmax(t.x, -1, s); }, 1, 1},
    {"log_softmax", "torch.ops.aten._log_softmax.out(x, -1, False, out=y)", "; y = torch.empty_like(x)",
     [](const Given& t, const Stream& s) { return nn::log_softmax(t.x, -1, s); }, 1, 1},
    {"softmax_backward", "torch.ops.aten._softmax_backward_data.out(g, x, -1, x.dtype, grad_input=y)", "; y = torch.empty_like(x)",
     [](const Given& t, const Stream& s) { return nn::softmax_backward(t.g, t.x, -1, s); }, 2, 1},
    {"layer_norm", "torch.ops.aten.native_layer_norm.out(x, [x.shape[1]], w, b, 1e-5, out0=y, out1=m, out2=r)",
     "; y = torch.empty_like(x); m, r = x.new_empty(x.shape[0], 1), x.new_empty(x.shape[0], 1)",
     [](const Given& t, const Stream& s) { return nn::layer_norm(t.x, t.w, t.b, {}, s).y; }, 1, 1},
    {"layer_norm_backward", "torch.ops.aten.native_layer_norm_backward(g, x, (x.shape[1],), m, r, w, b, [True, True, True])",
     "; _, m, r = torch.native_layer_norm(x, (x.shape[1],), w, b, 1e-5)",
     [](const Given& t, const Stream& s) { return nn::layer_norm_backward(t.g, t.x, t.mean, t.factor, t.w, {}, s).x; }, 5, 1},
    {"rms_norm", "torch.nn.functional.rms_norm(x, (x.shape[1],), w)", "", [](const Given& t, const Stream& s) { return nn::rms_norm(t.x, t.w, {}, s).y; }, 1,
     1},
    {"cross_entropy", "torch.nn.functional.cross_entropy(x, t)", "",
     [](const Given& t, const Stream& s) { return nn::cross_entropy(t.x, t.target, {}, s).loss; }, 1, 0},
};

Work work_of(const Device& device, const RowOp& op, DType dtype, std::int64_t rows, std::int64_t columns) {
  Given t;
  t.x = randn({rows, columns}, {.dtype = dtype, .device = device, .seed = 1});
  t.g = randn({rows, columns}, {.dtype = dtype, .device = device, .seed = 2});
  t.w = randn({columns}, {.dtype = dtype, .device = device, .seed = 3});
  t.b = randn({columns}, {.dtype = dtype, .device = device, .seed = 4});
  auto norm = nn::layer_norm(t.x, t.w, t.b);
  t.mean = norm.mean, t.factor = norm.rstd;
  t.target = mul(rand({rows}, {.device = device, .seed = 5}), static_cast<double>(columns - 1)).to(DType::i64);
  auto out = std::make_shared<Tensor>();
  Work work;
  work.run = [t, out, run = op.run, device](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) *out = run(t, stream);
    stream.synchronize();
  };
  // The first and the last row of what has a simple model; the tests hold the rest.
  work.check = [t, out, name = std::string_view(op.name), columns]() -> std::string {
    if (name == "cross_entropy") return std::isfinite(out->item()) && out->item() > 0 ? "" : "no loss";
    for (std::int64_t r : {std::int64_t{0}, t.x.size(0) - 1}) {
      std::vector<float> x = t.x.select(0, r).to(DType::f32).to_host<float>(), y = out->select(0, r).to(DType::f32).to_host<float>(),
                         w = t.w.to(DType::f32).to_host<float>(), b = t.b.to(DType::f32).to_host<float>();
      double top = -1e300, total = 0, mean = 0, square = 0, bound = t.x.dtype() == DType::f32 ? 1e-4 : 3e-2;
      for (float v : x) top = std::max(top, static_cast<double>(v)), mean += static_cast<double>(v) / static_cast<double>(columns);
      double mu = name == "layer_norm" ? mean : 0;
      for (float v : x) total += std::exp(static_cast<double>(v) - top), square += (static_cast<double>(v) - mu) * (static_cast<double>(v) - mu);
      double factor = 1 / std::sqrt(square / static_cast<double>(columns) + 1e-5);
      for (std::size_t j = 0; j < x.size(); ++j) {
        double v = static_cast<double>(x[j]), want = static_cast<double>(y[j]);
        if (name == "softmax") want = std::exp(v - top) / total;
        if (name == "log_softmax") want = v - top - std::log(total);
        if (name == "layer_norm") want = (v - mu) * factor * static_cast<double>(w[j]) + static_cast<double>(b[j]);
        if (name == "rms_norm") want = v * factor * static_cast<double>(w[j]);
        // Means of few numbers near one another are as far off as an ulp of these.
        const double rounding = name == "layer_norm" ? 0x1p-21 * (std::fabs(mu) + std::fabs(v)) * factor * std::fabs(static_cast<double>(w[j])) : 0;
        if (!(std::fabs(static_cast<double>(y[j]) - want) <= bound * (std::fabs(want) + 0.01) + rounding))
          return fmt::format("row {}, element {}: {} instead of {}", r, j, y[j], want);
      }
    }
    return {};
  };
  double bytes = (op.reads + op.writes) * static_cast<double>(rows * columns) * bits(dtype) / 8;
  if (dtype == DType::f32) {
    auto x = std::make_shared<std::vector<float>>(t.x.to_host<float>());
    auto result = std::make_shared<std::vector<float>>(x->size());
    if (omp::rows_f32(op.name, result->data(), x->data(), 1, columns))
      work.peers.push_back({omp::name(), [x, result, rows, columns, name = std::string_view(op.name)](int reps) {
                              for (int i = 0; i < reps; ++i) omp::rows_f32(name, result->data(), x->data(), rows, columns);
                            }});
  }
  if (rows * columns >= kTriadFrom) work.peers.push_back(bandwidth_peer(device, op.writes > 0 ? "copy" : "read", bytes));
  add_torch_peer(work, device,
                 fmt::format("x = torch.randn({0}, {1}, device=device).to({2}); g = torch.randn_like(x); w = torch.randn({1}, device=device).to({2}); b = "
                             "torch.randn_like(w); t = torch.randint(0, {1}, ({0},), device=device){3}",
                             rows, columns, torch_dtype(dtype), op.torch_setup),
                 op.torch);
  return work;
}

/// Of each column of a matrix.
Work columns_of(const Device& device, bool log, DType dtype, std::int64_t rows, std::int64_t columns) {
  Tensor x = randn({rows, columns}, {.dtype = dtype, .device = device, .seed = 1});
  auto out = std::make_shared<Tensor>();
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) *out = log ? nn::log_softmax(x, 0, stream) : nn::softmax(x, 0, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    const double bound = dtype == DType::f32 ? 1e-4 : 3e-2;
    for (std::int64_t c : {std::int64_t{0}, columns / 2, columns - 1}) {
      const std::vector<float> in = x.select(1, c).to(DType::f32).to_host<float>(), y = out->select(1, c).to(DType::f32).to_host<float>();
      double top = -1e300, total = 0;
      for (float v : in) top = std::max(top, static_cast<double>(v));
      for (float v : in) total += std::exp(static_cast<double>(v) - top);
      for (std::size_t j = 0; j < in.size(); ++j) {
        const double v = static_cast<double>(in[j]) - top, want = log ? v - std::log(total) : std::exp(v) / total;
        if (!(std::fabs(static_cast<double>(y[j]) - want) <= bound * (std::fabs(want) + 0.01)))
          return fmt::format("column {}, element {}: {} instead of {}", c, j, y[j], want);
      }
    }
    return {};
  };
  if (dtype == DType::f32) {
    auto host = std::make_shared<std::vector<float>>(x.to_host<float>());
    auto result = std::make_shared<std::vector<float>>(host->size());
    work.peers.push_back({omp::name(), [=](int reps) {
                            for (int i = 0; i < reps; ++i) omp::softmax_columns_f32(log, result->data(), host->data(), rows, columns);
                          }});
  }
  add_torch_peer(work, device, fmt::format("x = torch.randn({}, {}, device=device).to({}); y = torch.empty_like(x)", rows, columns, torch_dtype(dtype)),
                 fmt::format("torch.ops.aten._{}softmax.out(x, 0, False, out=y)", log ? "log_" : ""));
  return work;
}

}  // namespace

void sweep_rowwise(SweptOps& ops) {
  SweptOp op{.name = "rowwise",
             .parameters = {{.name = "op", .words = {}},
                            {.name = "dtype", .words = {"f32", "bf16", "f16"}},
                            {.name = "rows", .most = 1000000},
                            {.name = "columns", .least = 2, .most = 1000000}},
             .load =
                 [](const RandomShape& s) {
                   const double n = static_cast<double>(s.number("rows")) * static_cast<double>(s.number("columns"));
                   return Load{32 * n, 200 * n};  // x, gradients, results, here and at peers; about 2 ns an element
                 },
             .prepare =
                 [](const Device& device, const RandomShape& s) {
                   const auto& found = *std::find_if(std::begin(kOps), std::end(kOps), [&](const RowOp& x) { return x.name == s.word("op"); });
                   return work_of(device, found, dtype_named(s.word("dtype")), s.number("rows"), s.number("columns"));
                 }};
  for (const RowOp& each : kOps) op.parameters[0].words.emplace_back(each.name);
  ops.push_back(op);
  op.name = "softmax_columns";
  op.parameters[0].words = {"softmax", "log_softmax"};
  op.parameters[3].least = 1;
  op.prepare = [](const Device& device, const RandomShape& s) {
    return columns_of(device, s.word("op") == "log_softmax", dtype_named(s.word("dtype")), s.number("rows"), s.number("columns"));
  };
  ops.push_back(std::move(op));
}

void register_rowwise(Rows& rows) {
  const struct {
    const char* name;
    std::int64_t rows, columns;
  } shapes[] = {{"16384x1024", 1 << 14, 1024}, {"64x1024", 64, 1024}, {"2048x8192", 2048, 8192}, {"131072x64", 1 << 17, 64}};
  for (const RowOp& op : kOps)
    for (const auto& shape : shapes)
      for (DType dtype : {DType::f32, DType::bf16}) {
        if (dtype != DType::f32 && shape.columns != 1024) continue;
        // Tensors of x's size alone: the plans state weights, means and factors, too.
        double bytes = (op.reads + op.writes) * static_cast<double>(shape.rows * shape.columns) * bits(dtype) / 8;
        rows.push_back({.name = fmt::format("{}/{}/{}", op.name, name(dtype), shape.name),
                        .bytes = bytes,
                        .reads_only = op.writes == 0,
                        .in_default = shape.columns == 1024,
                        .in_quick = std::string_view(op.name) == "softmax" && dtype == DType::f32 && shape.columns == 1024,
                        .prepare = [op, shape, dtype](const Device& device) { return work_of(device, op, dtype, shape.rows, shape.columns); }});
      }
  for (bool log : {false, true})
    rows.push_back({.name = fmt::format("{}softmax_columns/f32/1024x4096", log ? "log_" : ""),
                    .bytes = 2.0 * 1024 * 4096 * 4,
                    .in_default = !log,
                    .prepare = [log](const Device& device) { return columns_of(device, log, DType::f32, 1024, 4096); }});
}

}  // namespace clutch::bench
