// SPDX-License-Identifier: Apache-2.0
// Problems of random numbers, steps of optimizers, eigenpairs and products with 2:4 matrices.
#include <clutch/complex.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/eigh.hpp>
#include <clutch/ops/optim.hpp>
#include <clutch/ops/random.hpp>
#include <clutch/ops/sparse24.hpp>

#include "plugin/op_problems.hpp"

#include <fmt/format.h>

#include <cmath>
#include <complex>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// The same draw of uniform or normal numbers: from low on, or of that mean.
void drawn(const Tensor& to, bool normal, double low, double range, std::uint64_t seed, const Stream& stream) {
  if (normal)
    normal_(to, {.mean = low, .stddev = range, .seed = seed}, stream);
  else
    uniform_(to, {.low = low, .high = low + range, .seed = seed}, stream);
}

/// Numbers without their signs: sums of squares.
Tensor positive(const Tensor& t, const Stream& stream) {
  std::vector<std::uint8_t> bytes = t.to_bytes(stream);
  const auto size = static_cast<std::size_t>(bits(t.dtype()) / 8);
  for (std::size_t i = size - 1; i < bytes.size(); i += size) bytes[i] &= 0x7F;
  return from_bytes(bytes.data(), bytes.size(), t.sizes(), {.dtype = t.dtype(), .device = t.device()}, stream);
}

using Lists = std::vector<std::vector<Tensor>>;

/// A step of one optimizer: lists are parameters, gradients and states.
using Step = std::function<void(const Lists& lists, const Tensor& steps, const Stream& stream)>;

/// Parameters of several sizes, `states` lists of moments, and numbers of steps.
void add_steps(PluginProblems& problems, DType dtype, std::size_t states, std::string_view what, const Step& step) {
  const Dims sizes[] = {{4000}, {7, 33}, {1}};
  Lists lists(states + 2);
  for (std::size_t k = 0; k < lists.size(); ++k)
    for (const Dims& s : sizes) {
      const Tensor t = problems.random(dtype, s);
      lists[k].push_back(k < 2 ? t : positive(t, problems.stream()));
    }
  const float counts[] = {1, 17, 1000};
  const Tensor steps = from_bytes(counts, sizeof counts, {3}, {.dtype = DType::f32, .device = problems.stream().device()}, problems.stream());
  PluginProblem one{.name = fmt::format("{} {}", name(dtype), what), .any_nan = true};
  for (const std::vector<Tensor>& list : lists) one.inputs.insert(one.inputs.end(), list.begin(), list.end());
  one.inputs.push_back(steps);
  for (std::size_t k = 0; k < lists.size(); ++k)
    for (const Dims& s : sizes)
      if (k != 1) one.outputs.push_back({dtype, s});
  one.run = [=](std::span<const Tensor> out, const std::string&, const Stream& stream) {
    Lists of = lists;
    std::size_t at = 0;
    for (std::size_t k = 0; k < of.size(); ++k)
      for (Tensor& t : of[k])
        if (k != 1) copy_(out[at], t, {}, stream), t = out[at++];
    step(of, steps, stream);
  };
  problems.add(std::move(one));
}

/// All elements as complex numbers of f64.
std::vector<std::complex<double>> values_of(const Tensor& t, const Stream& stream) {
  const auto reals = [&](const Tensor& part) {
    std::vector<double> all;
    if (part.dtype() == DType::f64) return part.contiguous(stream).to_host<double>(stream);
    for (const float x : part.contiguous(stream).to_host<float>(stream)) all.push_back(static_cast<double>(x));
    return all;
  };
  std::vector<std::complex<double>> all;
  if (!is_complex(t.dtype())) {
    for (const double x : reals(t)) all.emplace_back(x);
    return all;
  }
  const std::vector<double> re = reals(real(t)), im = reals(imag(t));
  for (std::size_t i = 0; i < re.size(); ++i) all.emplace_back(re[i], im[i]);
  return all;
}

/// What is wrong with eigenpairs by the op's contract: residuals, orthonormal columns and, where not all are asked for, eigenvalues beside the library's own,
/// within bounds of both. All pairs with small residuals have the matrix's eigenvalues.
std::string judge_pairs(const PluginProblem& one, std::span<const Tensor> out, const Tensor& whole, const linalg::EighOptions& options, const Stream& stream) {
  const std::int64_t n = whole.size(-1), pairs = out[0].size(-1), batch = whole.numel() / (n * n);
  const double eps = whole.dtype() == DType::f64 || whole.dtype() == DType::c128 ? 0x1p-52 : 0x1p-23, within = 30 * static_cast<double>(n) * eps;
  const auto a = values_of(whole, stream), w = values_of(out[0], stream), v = values_of(out[1], stream);
  const auto own = pairs < n ? values_of(linalg::eigvalsh(whole, options, stream).w, stream) : w;
  const std::vector<std::int32_t> info = out[2].to_host<std::int32_t>(stream);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t b = 0; b < batch; ++b) {
    if (info[at(b)] != 0) return fmt::format("problem '{}': matrix {} must converge, got info {}", one.name, b, info[at(b)]);
    double size = 0, residual = 0, skew = 0;
    for (std::int64_t i = 0; i < n * n; ++i) size += std::norm(a[at(b * n * n + i)]);
    size = std::sqrt(size);
    const auto vector = [&](std::int64_t i, std::int64_t k) { return v[at((b * n + i) * pairs + k)]; };
    for (std::int64_t k = 0; k < pairs; ++k) {
      const double value = w[at(b * pairs + k)].real(), must = own[at(b * pairs + k)].real();
      if (!(std::abs(value - must) <= 2 * within * size))
        return fmt::format("problem '{}': eigenvalue {} of matrix {} must be within {} of {}, got {}", one.name, k, b, 2 * within * size, must, value);
      if (k > 0 && !(w[at(b * pairs + k - 1)].real() <= value))
        return fmt::format("problem '{}': eigenvalues must ascend, got {} behind {}", one.name, value, w[at(b * pairs + k - 1)].real());
      for (std::int64_t i = 0; i < n; ++i) {
        std::complex<double> product = -value * vector(i, k);
        for (std::int64_t j = 0; j < n; ++j) product += a[at((b * n + i) * n + j)] * vector(j, k);
        residual += std::norm(product);
      }
      for (std::int64_t l = 0; l < pairs; ++l) {
        std::complex<double> dot = k == l ? -1 : 0;
        for (std::int64_t i = 0; i < n; ++i) dot += std::conj(vector(i, k)) * vector(i, l);
        skew += std::norm(dot);
      }
    }
    residual = std::sqrt(residual), skew = std::sqrt(skew);
    if (!(residual <= within * size))
      return fmt::format("problem '{}': |a v - v w| of matrix {} must be at most {}, got {}", one.name, b, within * size, residual);
    if (!(skew <= within)) return fmt::format("problem '{}': |v^H v - 1| of matrix {} must be at most {}, got {}", one.name, b, within, skew);
  }
  return {};
}

/// The same of eigenvalues alone, which must be within both bounds of the library's own.
std::string judge_values(const PluginProblem& one, std::span<const Tensor> out, const Tensor& whole, const linalg::EighOptions& options, const Stream& stream) {
  const std::int64_t n = whole.size(-1), pairs = out[0].size(-1), batch = whole.numel() / (n * n);
  const double eps = whole.dtype() == DType::f64 || whole.dtype() == DType::c128 ? 0x1p-52 : 0x1p-23;
  const auto a = values_of(whole, stream), w = values_of(out[0], stream), own = values_of(linalg::eigvalsh(whole, options, stream).w, stream);
  const std::vector<std::int32_t> info = out[1].to_host<std::int32_t>(stream);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t b = 0; b < batch; ++b) {
    if (info[at(b)] != 0) return fmt::format("problem '{}': matrix {} must converge, got info {}", one.name, b, info[at(b)]);
    double size = 0;
    for (std::int64_t i = 0; i < n * n; ++i) size += std::norm(a[at(b * n * n + i)]);
    const double within = 2 * 30 * static_cast<double>(n) * eps * std::sqrt(size);
    for (std::int64_t k = 0; k < pairs; ++k) {
      const double value = w[at(b * pairs + k)].real(), must = own[at(b * pairs + k)].real();
      if (!(std::abs(value - must) <= within))
        return fmt::format("problem '{}': eigenvalue {} of matrix {} must be within {} of {}, got {}", one.name, k, b, within, must, value);
      if (k > 0 && !(w[at(b * pairs + k - 1)].real() <= value))
        return fmt::format("problem '{}': eigenvalues must ascend, got {} behind {}", one.name, value, w[at(b * pairs + k - 1)].real());
    }
  }
  return {};
}

}  // namespace

void draw_problems(PluginProblems& problems, bool normal) {
  auto add = [&](DType dtype, const Dims& sizes, bool gaps, bool transposed, double low, double range, std::uint64_t seed) {
    PluginProblem one{
        .name = fmt::format("{} {}{}{}, {} and {}", name(dtype), to_string(sizes), gaps ? " with gaps" : "", transposed ? " transposed" : "", low, range),
        .outputs = {{dtype, sizes, gaps}}};
    one.run = [=](std::span<const Tensor> out, const std::string&, const Stream& stream) {
      drawn(transposed ? out[0].mT() : out[0], normal, low, range, seed, stream);
    };
    problems.add(std::move(one));
  };
  const auto seed = problems.random(DType::u64, {1}).to_host<std::uint64_t>(problems.stream())[0];
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { drawn(x, normal, 0, 1, 1, problems.stream()); })) {
    add(dtype, {5003}, false, false, 0, 1, seed);
    add(dtype, {5, 67}, true, false, -3, 0.1, seed + 1);
    add(dtype, {31, 9}, false, true, 5, 100, 0);
    add(dtype, {}, false, false, 0, 1, ~std::uint64_t{0});
  }
}

void optim_problems(PluginProblems& problems, std::string_view op) {
  const DType plain[] = {DType::f32, DType::f16, DType::bf16, DType::f64};
  for (const DType dtype : plain) {
    if (dtype == DType::f64 && !problems.stream().device().traits().fp64) continue;
    for (const bool maximize : {false, true})
      for (const bool extra : {false, true})
        for (const double decay : {0.0, 0.013}) {
          const std::string what = fmt::format("with decay {}{}{}", decay, extra ? ", extra" : "", maximize ? ", maximized" : "");
          if (op == "optim::sgd_")
            add_steps(problems, dtype, extra ? 1 : 0, what, [=](const Lists& l, const Tensor& steps, const Stream& stream) {
              const optim::SGDOptions options{
                  .lr = 0.03, .momentum = extra ? 0.9 : 0, .weight_decay = decay, .nesterov = extra && decay != 0, .maximize = maximize};
              optim::sgd_(l[0], l[1], extra ? l[2] : std::vector<Tensor>{}, steps, options, {}, stream);
            });
          if (op == "optim::adam_")
            add_steps(problems, dtype, extra ? 3 : 2, what, [=](const Lists& l, const Tensor& steps, const Stream& stream) {
              const optim::AdamOptions options{
                  .lr = 0.002, .beta1 = 0.8, .weight_decay = decay, .amsgrad = extra, .maximize = maximize, .decoupled_weight_decay = maximize && decay != 0};
              optim::adam_(l[0], l[1], l[2], l[3], extra ? l[4] : std::vector<Tensor>{}, steps, options, {}, stream);
            });
          if (op == "optim::adamw_")
            add_steps(problems, dtype, extra ? 3 : 2, what, [=](const Lists& l, const Tensor& steps, const Stream& stream) {
              const optim::AdamWOptions options{.lr = 0.002, .beta2 = 0.99, .weight_decay = decay, .amsgrad = extra, .maximize = maximize};
              optim::adamw_(l[0], l[1], l[2], l[3], extra ? l[4] : std::vector<Tensor>{}, steps, options, {}, stream);
            });
          if (op == "optim::adagrad_")
            add_steps(problems, dtype, 1, what, [=](const Lists& l, const Tensor& steps, const Stream& stream) {
              optim::adagrad_(l[0], l[1], l[2], steps, {.lr = 0.02, .lr_decay = extra ? 0.01 : 0, .weight_decay = decay, .maximize = maximize}, {}, stream);
            });
          if (op == "optim::rmsprop_")
            add_steps(problems, dtype, extra ? 3 : 1, what, [=](const Lists& l, const Tensor& steps, const Stream& stream) {
              const optim::RMSpropOptions options{.lr = 0.01, .weight_decay = decay, .momentum = extra ? 0.7 : 0, .centered = extra, .maximize = maximize};
              optim::rmsprop_(l[0], l[1], l[2], extra ? l[3] : std::vector<Tensor>{}, extra ? l[4] : std::vector<Tensor>{}, steps, options, {}, stream);
            });
        }
  }
}

void eigh_problems(PluginProblems& problems, bool vectors) {
  const Stream& stream = problems.stream();
  auto add = [&](DType dtype, std::int64_t batch, std::int64_t n, std::int64_t first, std::int64_t count, linalg::Uplo uplo) {
    const DType real_type = dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype;
    const std::int64_t pairs = count < 0 ? n - first : count;
    // The whole matrix, and one whose other triangle nobody may read.
    const auto bytes = static_cast<std::size_t>(bits(dtype) / 8), part = static_cast<std::size_t>(bits(real_type) / 8);
    std::vector<std::uint8_t> whole = problems.random(dtype, {batch, n, n}).to_bytes(stream), half;
    const auto place = [&](std::int64_t b, std::int64_t i, std::int64_t j) { return static_cast<std::size_t>((b * n + i) * n + j) * bytes; };
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < n; ++i) {
        if (is_complex(dtype)) std::fill_n(&whole[place(b, i, i) + part], part, std::uint8_t{0});
        for (std::int64_t j = 0; j < i; ++j) {
          std::copy_n(&whole[place(b, i, j)], bytes, &whole[place(b, j, i)]);
          if (is_complex(dtype)) whole[place(b, j, i) + bytes - 1] ^= 0x80;  // the conjugate
        }
      }
    half = whole;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < i; ++j) {
          const std::size_t at = uplo == linalg::Uplo::lower ? place(b, j, i) : place(b, i, j);
          std::fill_n(&half[at], bytes, std::uint8_t{0xFF});  // NaN
        }
    const TensorOptions on{.dtype = dtype, .device = stream.device()};
    const Tensor a = from_bytes(whole.data(), whole.size(), {batch, n, n}, on, stream), given = from_bytes(half.data(), half.size(), {batch, n, n}, on, stream);
    const linalg::EighOptions options{.uplo = uplo, .first = first, .count = count};
    PluginProblem one{.name = fmt::format("{} {} of {} x {}, {} pairs from {} on, {}", name(dtype), batch, n, n, pairs, first,
                                          uplo == linalg::Uplo::lower ? "lower" : "upper"),
                      .inputs = {given},
                      .outputs = {{real_type, {batch, pairs}}}};
    if (vectors) one.outputs.push_back({dtype, {batch, n, pairs}});
    one.outputs.insert(one.outputs.end(), 2, {DType::i32, {batch}});
    one.run = [=](std::span<const Tensor> out, const std::string&, const Stream& on_stream) {
      if (vectors)
        linalg::eigh_out(out[0], out[1], {out[2], out[3]}, given, options, on_stream);
      else
        linalg::eigvalsh_out(out[0], {out[1], out[2]}, given, options, on_stream);
    };
    const PluginProblem named{.name = one.name, .run = {}};
    one.judge = [=](std::span<const Tensor> out, const Stream& on_stream) {
      return vectors ? judge_pairs(named, out, a, options, on_stream) : judge_values(named, out, a, options, on_stream);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { linalg::eigh(x.reshape({0, 1, 1}), {}, stream); })) {
    if (dtype == DType::f16 || dtype == DType::bf16) continue;  // which are storage of f32's
    for (const linalg::Uplo uplo : {linalg::Uplo::lower, linalg::Uplo::upper}) {
      add(dtype, 3, 1, 0, -1, uplo);
      add(dtype, 5, 2, 0, -1, uplo);
      add(dtype, 7, 6, 0, -1, uplo);
      add(dtype, 2, 33, 0, -1, uplo);
      add(dtype, 3, 20, 4, 9, uplo);
    }
  }
}

void sparse_matmul_problems(PluginProblems& problems) {
  const Stream& stream = problems.stream();
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!problems.is_taken([&] { sparse::prune_2_4(problems.none(dtype, {0, 32}), {}, stream); })) continue;
    const sparse::SemiStructured none = sparse::compress(problems.none(dtype, {0, 32}), {}, stream),
                                 of[] = {sparse::compress(sparse::prune_2_4(problems.random(dtype, {37, 64}), {}, stream), {}, stream),
                                         sparse::compress(sparse::prune_2_4(problems.random(dtype, {128, 256}), {}, stream), {}, stream)};
    for (const DType right : problems.dtypes([&](const Tensor& b) { sparse::matmul(none, b.reshape({32, 0}), {}, stream); }))
      for (const DType out : problems.dtypes([&](const Tensor& to) {
             sparse::matmul_out(to.reshape({0, 0}), none, problems.none(right, {32, 0}), {}, stream);
           })) {
        auto add = [&](const sparse::SemiStructured& w, const Tensor& b, double alpha, double beta) {
          const Dims sizes{w.sizes()[0], b.size(-1)};
          const Tensor before = problems.random(out, sizes);
          PluginProblem one{.name = fmt::format("{} {} {} {} to {}, alpha {} beta {}", name(dtype), to_string(w.sizes()), name(right), to_string(b.sizes()),
                                                name(out), alpha, beta),
                            .inputs = {w.values(), w.metadata(), b, before},
                            .outputs = {{out, sizes}}};
          one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& on) {
            if (beta != 0) copy_(to[0], before, {}, on);
            sparse::matmul_out(to[0], w, b, {.alpha = alpha, .beta = beta, .implementation = implementation}, on);
          };
          problems.add(std::move(one));
        };
        add(of[0], problems.random(right, {64, 29}), 1, 0);
        add(of[0], problems.random(right, {29, 64}).mT(), -3, 0);
        add(of[1], problems.random(right, {256, 70}), 1, 0);
        const bool is_read = problems.is_taken([&] {
          sparse::matmul_out(problems.none(out, {0, 0}), none, problems.none(right, {32, 0}), {.beta = 2}, stream);
        });
        if (is_read) add(of[0], problems.random(right, {64, 17}), 2, 3);
      }
  }
}

}}}  // namespace clutch::v0::detail
