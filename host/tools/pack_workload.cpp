// SPDX-License-Identifier: Apache-2.0
#include "tools/pack_workload.hpp"

#include "encode/probe.hpp"

#include <fmt/format.h>

#include <functional>

namespace clutch_pack {
namespace {

using namespace clutch;
using attention::Index;
using attention::Score;

class Calls {
 public:
  Calls(const Device& device, DType dtype, std::vector<std::string>& failed) : device_(device), dtype_(dtype), failed_(failed) {}
  /// Ones, so that what divides and indexes finds numbers that it may.
  Tensor make(const Dims& sizes) const { return make(sizes, dtype_); }
  Tensor make(const Dims& sizes, DType dtype) const { return full(sizes, 1, {.dtype = dtype, .device = device_}); }
  Tensor places(std::int64_t n, std::int64_t limit, DType dtype = DType::i32) const {
    std::vector<std::int64_t> values(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = i * 7919 % limit;
    const Tensor wide = from_host(values, {n}, device_);
    return dtype == DType::i64 ? wide : wide.to(dtype);
  }
  void run(const std::string& what, const std::function<void()>& call) const {
    try {
      call();
      synchronize(device_);
    } catch (const std::exception& e) {
      failed_.push_back(fmt::format("{} of {}: {}", what, name(dtype_), e.what()));
    }
  }

 private:
  Device device_;
  DType dtype_;
  std::vector<std::string>& failed_;
};

void run_numbers(const Calls& c, const Device& device, DType dtype) {
  const bool is_cpu = device.type() == DeviceType::cpu;
  const std::int64_t large = is_cpu ? 1 << 16 : 1 << 20, rows = is_cpu ? 256 : 1024, side = is_cpu ? 256 : 2048;
  auto make = [&](const Dims& sizes) { return c.make(sizes); };
  for (const std::int64_t n : {std::int64_t{1000}, large}) {
    c.run("fill", [&] { make({n}); });
    c.run("addcdiv", [&] { addcdiv(make({n}), make({n}), make({n})); });
    c.run("addcmul", [&] { addcmul(make({n}), make({n}), make({n})); });
    c.run("arithmetic", [&] { (make({n}) + make({n})) * 2.0 - make({n}) / make({n}); });
    c.run("exp, gelu, relu", [&] { exp(make({n})), gelu(make({n})), relu(make({n})); });
    c.run("sum, mean, max", [&] { sum(make({n})), mean(make({n})), amax(make({n})); });
    c.run("randn", [&] { randn({n}, {.dtype = dtype, .device = device}); });
  }
  c.run("addcmul of a transposed tensor", [&] { addcmul(make({rows, 64}).mT(), make({64, rows}), make({64, rows})); });
  c.run("transpose", [&] { make({rows, 64}).mT().contiguous(); });
  for (const std::int64_t width : {std::int64_t{64}, std::int64_t{1000}, std::int64_t{4096}}) {
    c.run("softmax", [&] { nn::softmax(make({rows, width})); });
    c.run("log_softmax", [&] { nn::log_softmax(make({rows, width})); });
    c.run("layer_norm", [&] { nn::layer_norm(make({rows, width})); });
    c.run("rms_norm", [&] { nn::rms_norm(make({rows, width})); });
    c.run("sums of rows", [&] { sum(make({rows, width}), {.dims = {1}}); });
    c.run("sums of columns", [&] { sum(make({width, rows}), {.dims = {0}}); });
  }
  c.run("gradients of softmax and of norms", [&] {
    const Tensor x = make({rows, 1000}), grad = make({rows, 1000});
    nn::softmax_backward(grad, nn::softmax(x)), nn::log_softmax_backward(grad, nn::log_softmax(x));
    const auto norm = nn::layer_norm(x, make({1000}), make({1000}));
    nn::layer_norm_backward(grad, x, norm.mean, norm.rstd, make({1000}));
    const auto rms = nn::rms_norm(x, make({1000}));
    nn::rms_norm_backward(grad, x, rms.rrms, make({1000}));
  });
  c.run("cross_entropy", [&] {
    const Tensor logits = make({rows, 1000}), target = c.places(rows, 1000, DType::i64);
    const auto loss = nn::cross_entropy(logits, target);
    nn::cross_entropy_backward(c.make({}, loss.loss.dtype()), logits, target, loss);
  });
  c.run("embedding", [&] {
    nn::embedding(make({1000, 64}), c.places(rows, 1000));
    nn::embedding_backward(make({rows, 64}), c.places(rows, 1000), 1000);
  });
  c.run("selective_scan", [&] {
    const Tensor x = make({1, 64, 64}), rates = make({64, 16}), shared = make({1, 64, 16});
    const SelectiveScanResult scan = selective_scan(x, x, rates, shared, shared);
    selective_scan_backward(scan, x, x, rates, shared, shared);
  });
  c.run("cumsum", [&] { cumsum(make({64, 4096})), cumsum(make({4096, 64}), 0), cumsum(make({large})); });
  for (const std::int64_t n : {std::int64_t{64}, side})
    c.run("matmul", [&] {
      linalg::matmul(make({n, n}), make({n, n})), linalg::matmul(make({n, n}), make({n, n}).mT()), linalg::matmul(make({n, n}).mT(), make({n, n}));
    });
  c.run("linear", [&] { linalg::linear(make({side, 256}), make({256, 256}), make({256})), linalg::linear(make({4, 1024}), make({1024, 1024}), make({1024})); });
  c.run("matmul of few columns", [&] { linalg::matmul(make({1024, 1024}), make({1024, 4})); });
  c.run("gradients of products", [&] {
    linalg::matmul_backward(make({side, side}), make({side, side}), make({side, side}));
    linalg::linear_backward(make({side, 256}), make({side, 256}), make({256, 256}), make({256}));
  });
  if (dtype != DType::f64) c.run("2:4 product", [&] { sparse::matmul(sparse::compress(make({256, 256})), make({256, 256})); });
  c.run("segment_reduce", [&] { segment_reduce(make({rows, 64}), arange(0, static_cast<double>(rows + 1), 1, {.dtype = DType::i32, .device = device})); });
  for (const DType other : {DType::f32, DType::f16, DType::bf16})
    if (other != dtype) c.run("casts", [&] { make({large}).to(other), c.make({large}, other).to(dtype); });
  c.run("index_select, gather", [&] {
    index_select(make({rows, 64}), 0, c.places(rows, rows)), gather(make({rows, 64}), 0, c.places(rows, rows, DType::i64).reshape({rows, 1}));
  });
  c.run("scatter_reduce", [&] { scatter_reduce(make({16, 256}), 1, c.places(16 * rows, 256, DType::i64).reshape({16, rows}), make({16, rows})); });
  c.run("AdamW", [&] {
    const std::vector<Tensor> parameters{make({large}), make({1000})}, gradients{make({large}), make({1000})};
    optim::AdamW adamw(parameters, {.lr = 1e-3});
    adamw.step(gradients);
  });
  c.run("SGD", [&] {
    const std::vector<Tensor> parameters{make({large})}, gradients{make({large})};
    optim::SGD sgd(parameters, {.lr = 1e-3});
    sgd.step(gradients);
  });
  const std::int64_t length = is_cpu ? 128 : 1024;
  for (const int e : {64, 128}) {
    const Tensor q = make({1, 8, length, e});
    c.run("sdpa", [&] { attention::sdpa(q, q, q); });
    c.run("sdpa, causal", [&] { attention::sdpa(q, q, q, {.causal = attention::Causal::upper_left}); });
    c.run("decoding", [&] { attention::flex(make({1, 8, 1, e}), q, q); });
    c.run("flex with gradients", [&] {
      const auto r = attention::flex(q, q, q, {.return_lse = true});
      attention::flex_backward(q, q, q, q, r);
    });
  }
}

}  // namespace

std::vector<std::string> run_workload(const Device& device, const std::vector<DType>& dtypes) {
  std::vector<std::string> failed;
  const DeviceTraits& traits = device.traits();
  const Calls any(device, DType::f32, failed);
  any.run("self-test", [&] { detail::make_self_test_programs(device); });
  any.run("product of bytes", [&] { linalg::matmul(any.make({256, 256}, DType::i8), any.make({256, 256}, DType::i8)); });
  any.run("group_by", [&] { group_by(any.places(1 << 16, 1000), 1000); });
  any.run("nonzero", [&] { nonzero(any.make({1 << 16}, DType::boolean)); });
  for (const DType dtype : dtypes) {
    if (dtype == DType::f64 && !traits.fp64) continue;
    const Calls c(device, dtype, failed);
    run_numbers(c, device, dtype);
    if (bits(dtype) > 8) c.run("sort", [&] { sort(c.make({1 << 16})), sort(c.make({64, 100})); });
    if (bits(dtype) > 8)
      c.run("index", [&] { index_put(c.make({1000, 8}), {any.places(1 << 12, 1000)}, index(c.make({1000, 8}), {any.places(1 << 12, 1000)})); });
    if (dtype == DType::f32 || dtype == DType::f64)
      for (const int n : {4, 32, 128}) c.run(fmt::format("eigh of {0} x {0}", n), [&] { linalg::eigh(c.make({n > 64 ? 2 : 64, n, n})); });
  }
  return failed;
}

}  // namespace clutch_pack
