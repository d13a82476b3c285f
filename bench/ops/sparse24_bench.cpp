// SPDX-License-Identifier: Apache-2.0
#include "cases/matmul.hpp"
#include "cases/sparse24.hpp"
#include "harness/operands.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/blas.hpp"
#include "peers/torch.hpp"

#include <clutch/clutch.hpp>

namespace clutch::bench {

void register_sparse24(Rows& rows);
void sweep_sparse24(SweptOps& ops);

namespace {

using cases::MatmulCase;

struct Shape {
  std::int64_t tokens, out, in;
  bool in_default, in_quick;
};

/// x w^T with a 2:4 w, beside the dense product with w packed, and others' dense ones.
Work work_of(const Device& device, DType dtype, const Shape& s) {
  Tensor x = numbers({s.tokens, s.in}, dtype, device, 1), w = sparse::prune_2_4(numbers({s.out, s.in}, dtype, device, 2));
  const sparse::SemiStructured packed = sparse::compress(w);
  const linalg::PackedMatrix dense(w.mT());
  const DType result = dtype == DType::i8 ? DType::i32 : is_floating(dtype) && bits(dtype) == 8 ? DType::f32 : dtype;
  Tensor y = empty({s.tokens, s.out}, {.dtype = result, .device = device}), z = empty(y.sizes(), {.dtype = result, .device = device});
  const ExprFunction none;
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) sparse::matmul_transposed_out(y, x, packed, none, {}, {}, stream);
    stream.synchronize();
  };
  auto run_dense = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) linalg::matmul_out(z, x, dense, {}, stream);
    stream.synchronize();
  };
  work.peers.push_back({"dense", run_dense});
  work.check = [=]() -> std::string {
    run_dense(1);
    return y.to_bytes() == z.to_bytes() ? "" : "not the dense product's bits";
  };
  if (dtype == DType::f32) {
    HostNumbers hx = host_numbers(s.tokens * s.in), hw = host_numbers(s.out * s.in), hy = host_numbers(s.tokens * s.out);
    const Peer peer = blas::gemm_f32(hy->data(), hx->data(), hw->data(), s.tokens, s.out, s.in, 1);
    work.peers.push_back({peer.name, [hx, hw, hy, run = peer.run](int reps) { run(reps); }});
  }
  if (dtype != DType::i8 && bits(dtype) > 8)
    add_torch_peer(work, device,
                   fmt::format("x = torch.randn({0}, {2}).to(device, {3}); w = torch.randn({1}, {2}).to(device, {3}); y = torch.matmul(x, w.T)", s.tokens,
                               s.out, s.in, torch_dtype(dtype)),
                   "torch.matmul(x, w.T, out=y)");
  return work;
}

enum class Kind { prune, compress };

/// The ways to a 2:4 weight.
Work making_of(const Device& device, DType dtype, std::int64_t size, Kind kind) {
  Tensor dense = numbers({size, size}, dtype, device, 3), w = sparse::prune_2_4(dense);
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) kind == Kind::prune ? (void)sparse::prune_2_4(dense, {}, stream) : (void)sparse::compress(w, {}, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    sparse::require_2_4(w);
    return sparse::decompress(sparse::compress(w)).to_bytes() == w.to_bytes() ? "" : "not the matrix that was compressed";
  };
  return work;
}

/// A product with 128 columns whose weight is packed in it, beside one whose weight was.
Work packing_of(const Device& device, DType dtype, std::int64_t size) {
  Tensor x = numbers({128, size}, dtype, device, 1), w = sparse::prune_2_4(numbers({size, size}, dtype, device, 2));
  const sparse::SemiStructured packed = sparse::compress(w);
  auto run = [=](bool again) {
    return [=](int reps) {
      Stream stream = current_stream(device);
      for (int i = 0; i < reps; ++i)
        sparse::matmul_transposed(x, again ? sparse::SemiStructured(packed.values(), packed.metadata(), size) : packed, {}, stream);
      stream.synchronize();
    };
  };
  Work work;
  work.run = run(true);
  work.peers.push_back({"packed before", run(false)});
  work.check = [=]() -> std::string {
    const sparse::SemiStructured again(packed.values(), packed.metadata(), size);
    return sparse::matmul_transposed(x, again).to_bytes() == linalg::matmul(x, w.mT()).to_bytes() ? "" : "not the dense product's bits";
  };
  return work;
}

}  // namespace

void sweep_sparse24(SweptOps& ops) {
  ops.push_back({.name = "sparse24",
                 .parameters = {{.name = "dtype", .words = {"f32", "f16", "bf16", "i8"}},
                                {.name = "tokens", .most = 4096, .often_least = 0.15},
                                {.name = "out", .least = 16, .most = 12288},
                                {.name = "in", .least = 16, .most = 12288}},
                 .load =
                     [](const RandomShape& s) {
                       const auto tokens = static_cast<double>(s.number("tokens")), out = static_cast<double>(s.number("out"));
                       const auto in = static_cast<double>(s.number("in"));
                       // The dense weight, packed, too, and those of peers; weights are made by ops that take several times the product of few tokens.
                       return Load{16 * (tokens * in + out * in + tokens * out), 2 * (tokens + 8) * out * in};
                     },
                 .prepare =
                     [](const Device& device, const RandomShape& s) {
                       return work_of(device, dtype_named(s.word("dtype")), {s.number("tokens"), s.number("out"), s.number("in"), false, false});
                     }});
}

void register_sparse24(Rows& rows) {
  std::vector<Shape> shapes;
  for (std::int64_t n : {256, 512, 1024, 2048, 4096}) shapes.push_back({n, n, n, n == 1024 || n == 2048, n == 512});
  for (std::int64_t width : {768, 4096})
    for (std::int64_t tokens : {1, 16, 128, 2048}) shapes.push_back({tokens, width, width, width == 4096 && tokens <= 128, false});
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::f8e4m3fn})
    for (const Shape& s : shapes)
      rows.push_back({.name = fmt::format("sparse24/{}/{}_{}_{}", name(dtype), s.tokens, s.out, s.in),
                      .dense_flops = MatmulCase::flops(s.tokens, s.out, s.in),
                      .in_default = s.in_default && dtype == DType::f32,
                      .in_quick = s.in_quick && dtype == DType::f32,
                      .prepare = [=](const Device& device) { return work_of(device, dtype, s); }});
  for (DType dtype : {DType::f32, DType::bf16, DType::i8}) {
    const std::int64_t size = 4096;
    rows.push_back({.name = fmt::format("sparse24_pack/{}/{}_{}", name(dtype), size, size),
                    .dense_flops = MatmulCase::flops(128, size, size),
                    .prepare = [=](const Device& device) { return packing_of(device, dtype, size); }});
    auto add = [&](std::string_view what, Kind kind) {
      rows.push_back({.name = fmt::format("sparse24_{}/{}/{}_{}", what, name(dtype), size, size),
                      .bytes = kStated,
                      .in_default = dtype == DType::f32,
                      .prepare = [=](const Device& device) { return making_of(device, dtype, size, kind); }});
    };
    add("prune", Kind::prune);
    add("compress", Kind::compress);
  }
}

}  // namespace clutch::bench
