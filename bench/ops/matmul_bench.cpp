// SPDX-License-Identifier: Apache-2.0
#include "cases/matmul.hpp"
#include "harness/rows.hpp"
#include "peers/blas.hpp"
#include "peers/torch.hpp"

#include <clutch/clutch.hpp>

namespace clutch::bench {

void register_matmul(Rows& rows);

namespace {

using cases::MatmulCase;

struct Shape {
  std::int64_t m, n, k, batch;
  bool in_default, in_quick;
};

Work work_of(const Device& device, DType dtype, const Shape& s) {
  Tensor a = randn({s.batch, s.m, s.k}, {.dtype = dtype, .device = device, .seed = 1}),
         b = randn({s.batch, s.k, s.n}, {.dtype = dtype, .device = device, .seed = 2});
  Tensor c = empty({s.batch, s.m, s.n}, {.dtype = dtype, .device = device});
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) linalg::matmul_out(c, a, b, {}, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    std::vector<std::uint8_t> x = a.to_bytes(), y = b.to_bytes(), z = c.to_bytes();
    model::Random random(5);
    for (int sample = 0; sample < 200; ++sample) {
      auto pick = [&](std::int64_t count) {
        return sample < 2 ? (sample == 0 ? 0 : count - 1) : std::min(count - 1, static_cast<std::int64_t>(random.uniform(0, 1) * static_cast<double>(count)));
      };
      std::int64_t of = pick(s.batch), i = pick(s.m), j = pick(s.n);
      auto row = [&](std::int64_t l) { return model::value_at(x.data(), static_cast<std::size_t>((of * s.m + i) * s.k + l), dtype); };
      auto column = [&](std::int64_t l) { return model::value_at(y.data(), static_cast<std::size_t>((of * s.k + l) * s.n + j), dtype); };
      double want = dtype == DType::f64 ? MatmulCase::element<double>(s.k, row, column, 1, 0, 0)
                                        : static_cast<double>(MatmulCase::element<float>(s.k, row, column, 1, 0, 0));
      std::uint8_t bytes[8];
      model::store_at(bytes, 0, dtype, want);
      if (model::value_at(bytes, 0, dtype) != model::value_at(z.data(), static_cast<std::size_t>((of * s.m + i) * s.n + j), dtype))
        return fmt::format("element {} {} of matrix {} is not the chain's", i, j, of);
    }
    return {};
  };
  if (dtype == DType::f32) {
    auto host = [](std::int64_t count) {
      auto v = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count));
      model::Random random(7);
      for (float& x : *v) x = static_cast<float>(random.uniform(-1, 1));
      return v;
    };
    auto ha = host(s.batch * s.m * s.k), hb = host(s.batch * s.k * s.n), hc = host(s.batch * s.m * s.n);
    Peer peer = blas::gemm_f32(hc->data(), ha->data(), hb->data(), s.m, s.n, s.k, s.batch);
    work.peers.push_back({peer.name, [ha, hb, hc, run = peer.run](int reps) { run(reps); }});
  }
  add_torch_peer(work, device,
                 fmt::format("a = torch.randn({0}, {1}, {3}).to(device, {4}); b = torch.randn({0}, {3}, {2}).to(device, {4}); c = torch.matmul(a, b)", s.batch,
                             s.m, s.n, s.k, torch_dtype(dtype)),
                 "torch.matmul(a, b, out=c)");
  return work;
}

}  // namespace

void register_matmul(Rows& rows) {
  std::vector<Shape> shapes;
  for (std::int64_t n : {32, 64, 128, 256, 512, 1024, 2048, 4096}) shapes.push_back({n, n, n, 1, n >= 128 && n <= 2048, n == 512});
  for (std::int64_t width : {768, 4096})
    for (std::int64_t tokens : {1, 16, 128, 2048}) shapes.push_back({tokens, width, width, 1, tokens <= 16 && width == 4096, false});
  shapes.push_back({64, 64, 64, 1024, true, false});
  shapes.push_back({1000, 777, 3001, 1, true, false});
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64})
    for (const Shape& s : shapes) {
      std::string batch = s.batch > 1 ? fmt::format("_b{}", s.batch) : std::string();
      rows.push_back({.name = fmt::format("matmul/{}/{}_{}_{}{}", name(dtype), s.m, s.n, s.k, batch),
                      .flops = MatmulCase::flops(s.m, s.n, s.k, s.batch),
                      .in_default = s.in_default && dtype == DType::f32,
                      .in_quick = s.in_quick && dtype == DType::f32,
                      .prepare = [=](const Device& device) { return work_of(device, dtype, s); }});
    }
}

}  // namespace clutch::bench
