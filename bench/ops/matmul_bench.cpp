// SPDX-License-Identifier: Apache-2.0
#include "cases/matmul.hpp"
#include "harness/operands.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/blas.hpp"
#include "peers/eigen.hpp"
#include "peers/torch.hpp"

#include <clutch/clutch.hpp>

namespace clutch::bench {

void register_matmul(Rows& rows);
void sweep_matmul(SweptOps& ops);

namespace {

using cases::MatmulCase;

struct Shape {
  std::int64_t m, n, k, batch;
  bool in_default, in_quick;
};

/// Some elements against their chains, bit for bit.
std::string check(const Tensor& a, const Tensor& b, const Tensor& c, const Shape& s) {
  const DType dtype = a.dtype();
  std::vector<std::uint8_t> x = a.to_bytes(), y = b.to_bytes(), z = c.to_bytes();
  model::Random random(5);
  for (int sample = 0; sample < 200; ++sample) {
    auto pick = [&](std::int64_t count) {
      return sample < 2 ? (sample == 0 ? 0 : count - 1) : std::min(count - 1, static_cast<std::int64_t>(random.uniform(0, 1) * static_cast<double>(count)));
    };
    std::int64_t of = pick(s.batch), i = pick(s.m), j = pick(s.n);
    auto row = [&](std::int64_t l) { return model::value_at(x.data(), static_cast<std::size_t>((of * s.m + i) * s.k + l), dtype); };
    auto column = [&](std::int64_t l) { return model::value_at(y.data(), static_cast<std::size_t>((of * s.k + l) * s.n + j), dtype); };
    // Whole numbers' sums are exact in double.
    double want = dtype == DType::f64 || !is_floating(dtype) ? MatmulCase::element<double>(s.k, row, column, 1, 0, 0)
                                                             : static_cast<double>(MatmulCase::element<float>(s.k, row, column, 1, 0, 0));
    std::uint8_t bytes[8];
    model::store_at(bytes, 0, c.dtype(), want);
    if (model::value_at(bytes, 0, c.dtype()) != model::value_at(z.data(), static_cast<std::size_t>((of * s.m + i) * s.n + j), c.dtype()))
      return fmt::format("element {} {} of matrix {} is not the chain's", i, j, of);
  }
  return {};
}

/// packed: b as a PackedMatrix. Beside CLBlast, which builds for long at first, if asked for.
Work work_of(const Device& device, DType dtype, const Shape& s, bool packed, bool clblast = false) {
  Tensor a = numbers({s.batch, s.m, s.k}, dtype, device, 1), b = numbers({s.batch, s.k, s.n}, dtype, device, 2);
  Tensor c = empty({s.batch, s.m, s.n}, {.dtype = dtype == DType::i8 ? DType::i32 : dtype, .device = device});
  linalg::PackedMatrix panels;
  if (packed) panels = linalg::PackedMatrix(b);
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) packed ? linalg::matmul_out(c, a, panels, {}, stream) : linalg::matmul_out(c, a, b, {}, stream);
    stream.synchronize();
  };
  work.check = [=] { return check(a, b, c, s); };
  if (!packed) {
    linalg::matmul_out(c, a, b);
    // Where this device has been tuned, or is now.
    if (!tune::entries().empty() && last_plan().starts_with("matmul_panels"))
      work.peers.push_back({.name = "untuned",
                            .run =
                                [=](int reps) {
                                  Stream stream = current_stream(device);
                                  for (int i = 0; i < reps; ++i) linalg::matmul_out(c, a, b, {.implementation = "matmul_panels"}, stream);
                                  stream.synchronize();
                                },
                            .rival = false});
  }
  if (clblast) {
    Tensor other = empty(c.sizes(), {.device = device});
    work.peers.push_back({"clblast", [=](int reps) {
                            Stream stream = current_stream(device);
                            for (int i = 0; i < reps; ++i) linalg::matmul_out(other, a, b, {.implementation = "clblast"}, stream);
                            stream.synchronize();
                          }});
    return work;
  }
  if (dtype == DType::f32) {
    HostNumbers ha = host_numbers(s.batch * s.m * s.k), hb = host_numbers(s.batch * s.k * s.n), hc = host_numbers(s.batch * s.m * s.n);
    std::vector<Peer> peers{blas::gemm_f32(hc->data(), ha->data(), hb->data(), s.m, s.n, s.k, s.batch)};
    if (s.m * s.n * s.k <= 128 * 128 * 128)
      if (auto peer = eigen::gemm_f32(hc->data(), ha->data(), hb->data(), s.m, s.n, s.k, s.batch)) peers.push_back(*peer);
    for (const Peer& peer : peers) work.peers.push_back({peer.name, [ha, hb, hc, run = peer.run](int reps) { run(reps); }});
  }
  if (dtype == DType::i8) {
    if (s.batch == 1)
      add_torch_peer(work, device,
                     fmt::format("a = torch.randint(-127, 128, ({0}, {1}), dtype=torch.int8).to(device); b = torch.randint(-127, 128, ({1}, {2}), "
                                 "dtype=torch.int8).to(device)",
                                 s.m, s.k, s.n),
                     "torch._int_mm(a, b)");
    return work;
  }
  add_torch_peer(work, device,
                 fmt::format("a = torch.randn({0}, {1}, {3}).to(device, {4}); b = torch.randn({0}, {3}, {2}).to(device, {4}); c = torch.matmul(a, b)", s.batch,
                             s.m, s.n, s.k, torch_dtype(dtype)),
                 "torch.matmul(a, b, out=c)");
  return work;
}

/// gelu(x w^T + bias) in one launch, beside the product and then the rest.
Work linear_of(const Device& device, DType dtype, const Shape& s) {
  Tensor x = numbers({s.m, s.k}, dtype, device, 1), w = numbers({s.n, s.k}, dtype, device, 2), bias = numbers({s.n}, dtype, device, 3);
  Work work;
  auto run = [=](bool fused) {
    return [=](int reps) {
      Stream stream = current_stream(device);
      for (int i = 0; i < reps; ++i) {
        if (fused)
          linalg::linear(x, w, bias, {.activation = nn::Activation::gelu}, stream);
        else
          map([](Expr p, Expr b) { return gelu(p + b); }, {linalg::matmul(x, w.mT(), {}, stream), bias}, {}, stream);
      }
      stream.synchronize();
    };
  };
  work.run = run(true);
  work.peers.push_back({"matmul, then map", run(false)});
  work.check = [=]() -> std::string {
    Tensor want = map([](Expr p, Expr b) { return gelu(p + b); }, {linalg::matmul(x, w.mT(), {.dtype = DType::f32}), bias}, {.dtype = {dtype}});
    return linalg::linear(x, w, bias, {.activation = nn::Activation::gelu}).to_bytes() == want.to_bytes() ? "" : "one launch and two differ in bits";
  };
  add_torch_peer(work, device,
                 fmt::format("x = torch.randn({0}, {2}).to(device, {3}); w = torch.randn({1}, {2}).to(device, {3}); b = torch.randn({1}).to(device, {3})", s.m,
                             s.n, s.k, torch_dtype(dtype)),
                 "torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))");
  return work;
}

/// Operands that are stored transposed, or not, beside OpenBLAS and torch on the same layouts.
Work random_of(const Device& device, const RandomShape& shape) {
  const DType dtype = dtype_named(shape.word("dtype"));
  const blas::Product p{
      shape.number("m"), shape.number("n"), shape.number("k"), shape.number("batch"), shape.word("layout")[0] == 't', shape.word("layout")[1] == 't'};
  auto stored = [&](std::int64_t rows, std::int64_t columns, bool transposed, std::uint64_t seed) {
    return transposed ? numbers({p.batch, columns, rows}, dtype, device, seed).mT() : numbers({p.batch, rows, columns}, dtype, device, seed);
  };
  Tensor a = stored(p.m, p.k, p.a_transposed, 1), b = stored(p.k, p.n, p.b_transposed, 2);
  Tensor c = empty({p.batch, p.m, p.n}, {.dtype = dtype == DType::i8 ? DType::i32 : dtype, .device = device});
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) linalg::matmul_out(c, a, b, {}, stream);
    stream.synchronize();
  };
  work.check = [=] { return check(a, b, c, {p.m, p.n, p.k, p.batch, false, false}); };
  if (dtype == DType::f32 || dtype == DType::f64) {
    const auto width = static_cast<std::int64_t>(bits(dtype) / 32);  // in floats
    auto host = [&](const Tensor& t) {
      std::vector<std::uint8_t> raw = t.to_bytes();
      HostNumbers v = std::make_shared<std::vector<float>>(raw.size() / 4);
      std::memcpy(v->data(), raw.data(), raw.size());
      return v;
    };
    HostNumbers ha = host(p.a_transposed ? a.mT() : a), hb = host(p.b_transposed ? b.mT() : b);
    HostNumbers hc = std::make_shared<std::vector<float>>(static_cast<std::size_t>(width * p.batch * p.m * p.n));
    for (bool spread : {false, true}) {
      if (spread && p.batch == 1) continue;
      const Peer peer = blas::gemm(dtype, hc->data(), ha->data(), hb->data(), p, spread);
      work.peers.push_back({peer.name, [ha, hb, hc, run = peer.run](int reps) { run(reps); }});
    }
  }
  if (dtype == DType::i8) {
    if (p.batch == 1)
      add_torch_peer(work, device,
                     fmt::format("a = torch.randint(-127, 128, ({}, {}), dtype=torch.int8).to(device){}; b = torch.randint(-127, 128, ({}, {}), "
                                 "dtype=torch.int8).to(device){}",
                                 p.a_transposed ? p.k : p.m, p.a_transposed ? p.m : p.k, p.a_transposed ? ".mT" : "", p.b_transposed ? p.n : p.k,
                                 p.b_transposed ? p.k : p.n, p.b_transposed ? ".mT" : ""),
                     "torch._int_mm(a, b)");
    return work;
  }
  add_torch_peer(work, device,
                 fmt::format("a = torch.randn({0}, {1}, {2}).to(device, {7}){3}; b = torch.randn({0}, {4}, {5}).to(device, {7}){6}; c = torch.matmul(a, b)",
                             p.batch, p.a_transposed ? p.k : p.m, p.a_transposed ? p.m : p.k, p.a_transposed ? ".mT" : "", p.b_transposed ? p.n : p.k,
                             p.b_transposed ? p.k : p.n, p.b_transposed ? ".mT" : "", torch_dtype(dtype)),
                 "torch.matmul(a, b, out=c)");
  return work;
}

}  // namespace

void sweep_matmul(SweptOps& ops) {
  ops.push_back({.name = "matmul",
                 .parameters = {{.name = "dtype", .words = {"f32", "f64", "f16", "bf16", "i8"}},
                                {.name = "m", .most = 16384, .often_least = 0.1},
                                {.name = "n", .most = 16384},
                                {.name = "k", .most = 16384},
                                {.name = "batch", .most = 4096, .often_least = 0.5},
                                {.name = "layout", .words = {"nn", "nt", "tn", "tt"}}},
                 .load =
                     [](const RandomShape& s) {
                       const auto m = static_cast<double>(s.number("m")), n = static_cast<double>(s.number("n")), k = static_cast<double>(s.number("k"));
                       const auto batch = static_cast<double>(s.number("batch"));
                       const DType dtype = dtype_named(s.word("dtype"));
                       // Twice for peers; f64 takes twice as long as f32.
                       const double each = dtype == DType::i8 ? 4 : 2 * bits(dtype) / 8;
                       return Load{each * batch * (m * k + k * n + m * n), MatmulCase::flops(1, 1, 1) * m * n * k * batch * (dtype == DType::f64 ? 2 : 1)};
                     },
                 .prepare = random_of});
}

void register_matmul(Rows& rows) {
  std::vector<Shape> shapes;
  for (std::int64_t n : {32, 64, 128, 256, 512, 1024, 2048, 4096}) shapes.push_back({n, n, n, 1, n >= 128 && n <= 2048, n == 512});
  for (std::int64_t width : {768, 4096})
    for (std::int64_t tokens : {1, 16, 128, 2048}) shapes.push_back({tokens, width, width, 1, tokens <= 16 && width == 4096, false});
  for (std::int64_t n : {4, 8, 16}) shapes.push_back({n, n, n, (1 << 22) / (n * n), n == 8, false});
  shapes.push_back({64, 64, 64, 1024, true, false});
  shapes.push_back({1000, 777, 3001, 1, true, false});
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8})
    for (const Shape& s : shapes) {
      std::string batch = s.batch > 1 ? fmt::format("_b{}", s.batch) : std::string(), name_of = fmt::format("{}_{}_{}{}", s.m, s.n, s.k, batch);
      const bool main = dtype == DType::f32 || (dtype == DType::bf16 && (s.m == 1 || s.m == 1024)) || (dtype == DType::i8 && s.m == 1024);
      auto add = [&](std::string_view kind, bool in_default, auto work) {
        rows.push_back({.name = fmt::format("{}/{}/{}", kind, name(dtype), name_of),
                        .in_default = in_default,
                        .in_quick = s.in_quick && dtype == DType::f32 && kind == "matmul",
                        .prepare = work});
      };
      add("matmul", s.in_default && main, [=](const Device& device) { return work_of(device, dtype, s, false); });
      add("matmul_packed", s.in_default && main && s.m == 1024, [=](const Device& device) { return work_of(device, dtype, s, true); });
      if (dtype == DType::f32 && s.m == s.n && s.n == s.k && s.m <= 1024 && s.batch == 1)
        add("matmul_clblast", false, [=](const Device& device) { return work_of(device, dtype, s, false, true); });
      if (s.batch == 1 && (dtype == DType::f32 || dtype == DType::bf16))
        add("linear_gelu", s.m == 16 && s.n == 4096 && dtype == DType::f32, [=](const Device& device) { return linear_of(device, dtype, s); });
    }
}

}  // namespace clutch::bench
