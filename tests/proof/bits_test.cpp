// SPDX-License-Identifier: Apache-2.0
// Results keep their bits from version to version: calls of every op on random numbers, whose digests are compared with those in saved_bits. What was meant to
// change stands in changed_bits, each line with its new digest and the reason. Where TEST_SAVE_BITS names a file, digests are written there, not compared.
#include "support/fixture.hpp"

#include "program/sha256.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>

namespace clutch::testing { namespace {

using attention::Index;
using attention::Score;
using Tensors = std::vector<Tensor>;

/// One call. `wide`: its bits depend on how many lanes a vector has, or on the way that a device takes: compared where a vector has 16 lanes alone.
struct Call {
  std::string name;
  bool wide;
  std::function<Tensors(const Device&)> run;
};

class Calls {
 public:
  std::vector<Call> all;
  void same(std::string name, std::function<Tensors(const Device&)> run) { all.push_back({std::move(name), false, std::move(run)}); }
  void wide(std::string name, std::function<Tensors(const Device&)> run) { all.push_back({std::move(name), true, std::move(run)}); }
};

Tensor normal(const Device& d, const Dims& sizes, std::uint64_t number, DType dtype = DType::f32) {
  return randn(sizes, {.dtype = dtype, .device = d, .seed = 1000 + number});
}
Tensor whole(const Device& d, const Dims& sizes, std::uint64_t number, double low, double high, DType dtype) {
  const Tensor x = empty(sizes, {.device = d});
  uniform_(x, {.low = low, .high = high, .seed = 2000 + number});
  return floor(x).to(dtype);
}
Tensor positive(const Device& d, const Dims& sizes, std::uint64_t number, DType dtype = DType::f32) {
  const Tensor x = empty(sizes, {.dtype = dtype, .device = d});
  uniform_(x, {.low = 0.5, .high = 2, .seed = 3000 + number});
  return x;
}
/// The complex numbers whose parts are in the last dimension, of size 2.
Tensor as_complex(const Tensor& parts, bool conjugate = false) {
  const Tensor x = conjugate ? mul(parts, from_host<double>({1, -1}, parts.device()).to(parts.dtype())) : parts;
  Dims sizes = x.sizes();
  sizes.erase(sizes.rank() - 1);
  const std::vector<std::uint8_t> raw = x.to_bytes();
  return from_bytes(raw.data(), raw.size(), sizes, {.dtype = x.dtype() == DType::f64 ? DType::c128 : DType::c64, .device = x.device()});
}
constexpr DType kFloats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

void elementwise(Calls& c) {
  for (DType t : kFloats) {
    c.same(fmt::format("addc {}", name(t)), [=](const Device& d) {
      Tensors made;
      const Tensor x = normal(d, {37, 65}, 1, t), a = normal(d, {37, 65}, 2, t), b = positive(d, {65}, 3, t);
      for (AddcOrder order : {AddcOrder::fma_of_quotient, static_cast<AddcOrder>(1), static_cast<AddcOrder>(2)})
        made.push_back(addcdiv(x, a, b, {.value = -0.3, .order = order})), made.push_back(addcmul(x, a, b, {.value = 0.7, .order = order}));
      return made;
    });
    using Unary = Tensor (*)(const Tensor&, const MapOptions&, const Stream&);
    const std::pair<const char*, Unary> unary[] = {{"neg", neg},     {"abs", abs},     {"sign", sign},   {"square", square}, {"reciprocal", reciprocal},
                                                   {"sqrt", sqrt},   {"rsqrt", rsqrt}, {"exp", exp},     {"exp2", exp2},     {"expm1", expm1},
                                                   {"log", log},     {"log2", log2},   {"log1p", log1p}, {"tanh", tanh},     {"sigmoid", sigmoid},
                                                   {"erf", erf},     {"sin", sin},     {"cos", cos},     {"floor", floor},   {"ceil", ceil},
                                                   {"trunc", trunc}, {"round", round}, {"relu", relu},   {"silu", silu},     {"softplus", softplus}};
    c.same(fmt::format("unary {}", name(t)), [=](const Device& d) {
      Tensors made;
      const Tensor x = normal(d, {1021}, 4, t), y = mul(x, 7.0), z = positive(d, {1021}, 5, t);
      for (const auto& [of, f] : unary)
        for (const Tensor& in : {x, y, z}) made.push_back(f(in, {}, {}));
      return made;
    });
    c.same(fmt::format("binary {}", name(t)), [=](const Device& d) {
      const Tensor x = normal(d, {31, 33}, 6, t), y = normal(d, {33}, 7, t), p = positive(d, {31, 1}, 8, t);
      return Tensors{add(x, y), sub(x, y),     mul(x, y),           div(x, y),       pow(p, y), minimum(x, y), lt(x, y), maximum(x, y), add_scaled(x, y, 0.3),
                     gelu(x),   leaky_relu(x), clamp(x, -0.5, 0.5), lerp(x, y, 0.25)};
    });
    c.same(fmt::format("map and its gradients {}", name(t)), [=](const Device& d) {
      const Tensor x = normal(d, {29, 43}, 9, t), y = positive(d, {43}, 10, t), g = normal(d, {29, 43}, 11, t);
      const ExprFunction f =
          trace<2>([](Expr a, Expr b) { return tanh(a * b) + exp(-b) * sin(a); }, {t == DType::f64 ? t : DType::f32, t == DType::f64 ? t : DType::f32});
      const Tensor in[] = {x, y}, grads[] = {g};
      Tensors made = map(f, in);
      for (const Tensor& m : map_backward(grads, f, in)) made.push_back(m);
      return made;
    });
    c.same(fmt::format("random {}", name(t)), [=](const Device& d) {
      return Tensors{normal(d, {4099}, 12, t), rand({4099}, {.dtype = t, .device = d, .seed = 13}), positive(d, {77}, 14, t)};
    });
    c.same(fmt::format("cumsum {}", name(t)), [=](const Device& d) {
      const Tensor x = normal(d, {7, 4100}, 15, t), y = normal(d, {530, 9}, 16, t);
      return Tensors{cumsum(x), cumsum(x, 1, {.reverse = true}), cumsum(y, 0)};
    });
    c.same(fmt::format("casts of {}", name(t)), [=](const Device& d) {
      Tensors made;
      const Tensor x = mul(normal(d, {513}, 17, t), 20.0);
      for (DType to :
           {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e5m2, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64})
        made.push_back(x.to(to));
      made.push_back(x.as_strided({9, 19}, {1, 27}, 2).clone());
      return made;
    });
  }
}

void reductions(Calls& c) {
  for (DType t : kFloats) {
    c.same(fmt::format("reduce {}", name(t)), [=](const Device& d) {
      Tensors made;
      const Tensor x = normal(d, {13, 5, 2100}, 20, t), y = normal(d, {600, 37}, 21, t);
      for (const auto& [in, dims] : {std::pair{x, Dims{-1}}, {x, Dims{0, 2}}, {x, Dims{1}}, {y, Dims{0}}, {y, Dims{}}, {x.transpose(0, 2), Dims{1, 2}}}) {
        const ReduceOptions o{.dims = dims};
        for (const Tensor& r : {sum(in, o), mean(in, o), prod(in, o), amin(in, o), amax(in, o), var(in, 1, o), norm(in, 2, o), norm(in, 3, o)})
          made.push_back(r);
        if (dims.rank() == 1) made.push_back(argmin(in, o)), made.push_back(argmax(in, o));
      }
      return made;
    });
    c.same(fmt::format("logsumexp {}", name(t)), [=](const Device& d) {
      const Tensor x = normal(d, {13, 5, 2100}, 20, t);
      return Tensors{logsumexp(x, {.dims = {-1}}), logsumexp(x, {.dims = {0, 1}}), logsumexp(x)};
    });
    if (t != DType::f64)
      c.same(fmt::format("selective_scan {}", name(t)), [=](const Device& d) {
        const Tensor x = normal(d, {2, 70, 37}, 27, t), step = normal(d, {2, 70, 37}, 28, t), a = -clutch::abs(normal(d, {37, 16}, 29, DType::f32)),
                     b = normal(d, {2, 70, 16}, 30, t), skip = normal(d, {37}, 31, DType::f32);
        const SelectiveScanOptions o{.skip = skip, .gate = step, .delta_bias = skip, .delta_softplus = true};
        const SelectiveScanResult r = selective_scan(x, step, a, b, b, o);
        const SelectiveScanGradients g = selective_scan_backward(r, x, step, a, b, b, o);
        return Tensors{r.y, r.state, g.x, g.delta, g.a, g.b, g.c, g.skip, g.gate, g.delta_bias};
      });
    for (std::int64_t length : {17, 1000, 5003}) {
      auto input = [=](const Device& d) { return normal(d, {19, length}, 22, t); };
      auto grad = [=](const Device& d) { return normal(d, {19, length}, 23, t); };
      c.same(fmt::format("softmax {} {}", name(t), length), [=](const Device& d) {
        const Tensor x = input(d), y = nn::softmax(x), z = nn::log_softmax(x);
        return Tensors{y, z, nn::softmax_backward(grad(d), y), nn::log_softmax_backward(grad(d), z), nn::softmax(x, 0)};
      });
      c.same(fmt::format("norms {} {}", name(t), length), [=](const Device& d) {
        const Tensor x = input(d), w = normal(d, {length}, 24, t), b = normal(d, {length}, 25, t);
        const auto l = nn::layer_norm(x, w, b);
        const auto r = nn::rms_norm(x, w);
        const auto lg = nn::layer_norm_backward(grad(d), x, l.mean, l.rstd, w);
        const auto rg = nn::rms_norm_backward(grad(d), x, r.rrms, w);
        return Tensors{l.y, l.mean, l.rstd, r.y, r.rrms, lg.x, lg.weight, lg.bias, rg.x, rg.weight};
      });
      c.same(fmt::format("cross_entropy {} {}", name(t), length), [=](const Device& d) {
        const Tensor x = input(d), target = whole(d, {19}, 26, 0, static_cast<double>(length), DType::i64);
        Tensors made;
        for (double smoothing : {0.0, 0.1}) {
          const nn::CrossEntropyOptions o{.label_smoothing = smoothing};
          const auto r = nn::cross_entropy(x, target, o);
          made.push_back(r.loss);
        }
        return made;
      });
    }
  }
  for (DType t : {DType::i8, DType::u8, DType::i32, DType::i64})
    c.same(fmt::format("reduce {}", name(t)), [=](const Device& d) {
      const Tensor x = whole(d, {61, 70}, 27, 0, 50, t);
      const Tensor y = whole(d, {61, 70}, 28, 1, 9, t);
      return Tensors{floor_divide(x, y),
                     trunc_divide(x, y),
                     remainder(x, y),
                     fmod(x, y),
                     sum(x),
                     sum(x, {.dims = {0}}),
                     prod(x, {.dims = {1}}),
                     amax(x, {.dims = {1}}),
                     any(x, {.dims = {0}}),
                     cumsum(x),
                     argmin(x, {.dims = {1}}),
                     addcmul(x, x, x)};
    });
}

void indexed(Calls& c) {
  for (DType t : kFloats)
    for (Reduce reduce : {Reduce::sum, Reduce::prod, Reduce::amin, Reduce::amax, Reduce::mean}) {
      const std::string of = fmt::format("{} {}", name(t), static_cast<int>(reduce));
      c.same("scatter_reduce " + of, [=](const Device& d) {
        const Tensor self = normal(d, {40, 9}, 30, t), src = normal(d, {333, 9}, 31, t), index = whole(d, {333, 9}, 32, 0, 40, DType::i64);
        const ScatterOptions o{.reduce = reduce};
        const Tensor r = scatter_reduce(self, 0, index, src, o);
        const auto g = scatter_reduce_backward(normal(d, {40, 9}, 33, t), r, self, 0, index, src, o);
        return Tensors{r, g.self, g.src, scatter_reduce(self, 0, index.select(1, 0).unsqueeze(1).expand({333, 9}), src, o)};
      });
      c.same("segments " + of, [=](const Device& d) {
        const Tensor data = normal(d, {500, 17}, 34, t), offsets = from_host<std::int64_t>({0, 3, 3, 100, 250, 251, 500}, d);
        const SegmentOptions o{.reduce = reduce};
        const Tensor r = segment_reduce(data, offsets, o);
        const sparse::Csr a{.offsets = offsets, .columns = whole(d, {500}, 35, 0, 77, DType::i64), .values = normal(d, {500}, 36, t), .width = 77};
        const Tensor b = normal(d, {77, 19}, 37, t), y = sparse::spmm(a, b, {.reduce = reduce});
        const auto g = sparse::spmm_backward(normal(d, {6, 19}, 38, t), y, a, b, {.reduce = reduce});
        return Tensors{r, segment_reduce_backward(normal(d, {6, 17}, 39, t), r, data, offsets, o), y, g.values, g.b};
      });
    }
  for (DType t : kFloats)
    c.same(fmt::format("gather {}", name(t)), [=](const Device& d) {
      const Tensor x = normal(d, {50, 24}, 40, t), index = whole(d, {81}, 41, 0, 50, DType::i64), g = normal(d, {81, 24}, 42, t);
      const Tensor wide = index.unsqueeze(1).expand({81, 24});
      const Groups groups = group_by(index, 50);
      return Tensors{gather(x, 0, wide),           gather_backward(g, {50, 24}, 0, wide), index_select(x, 0, index),
                     nn::embedding(x, index),      nn::embedding_backward(g, index, 50),  groups.order.to(DType::i64),
                     groups.offsets.to(DType::i64)};
    });
}

void sorts(Calls& c) {
  for (DType t : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::u8})
    c.same(fmt::format("sort {}", name(t)), [=](const Device& d) {
      const Tensor x = is_floating(t) ? normal(d, {7, 601}, 43, t) : whole(d, {7, 601}, 43, 0, 100, t);
      const Sorted rows = sort(x), columns = sort(x, 0, {.descending = true}), top = topk(x, 40), third = kthvalue(x, 3, 0);
      return Tensors{rows.values, rows.indices, columns.values, columns.indices, top.values, top.indices, third.values, third.indices};
    });
  c.same("sort and find", [=](const Device& d) {
    const Tensor x = whole(d, {7, 601}, 44, 0, 100, DType::i32);
    const Unique all = unique(x, {.return_inverse = true, .return_counts = true}), runs = unique_consecutive(x, {.return_inverse = true});
    return Tensors{nonzero(x), nonzero_static(x, 5000), masked_select(x, gt(x, 50)), all.values, all.inverse, all.counts, runs.values, runs.inverse};
  });
}

void indices(Calls& c) {
  for (DType t : {DType::f32, DType::f64, DType::f16, DType::i32})
    c.same(fmt::format("index {}", name(t)), [=](const Device& d) {
      const Tensor x = is_floating(t) ? normal(d, {40, 9, 7}, 45, t) : whole(d, {40, 9, 7}, 45, 0, 100, t);
      const Tensor i = whole(d, {300}, 46, -40, 40, DType::i64), j = whole(d, {300}, 47, -7, 7, DType::i32), v = x.slice(0, 0, 1).select(1, 0);
      return Tensors{index(x, {i}), index(x, {i, Tensor(), j}), index_put(x, {Tensor(), Tensor(), j}, v.select(1, 0)),
                     index_put(x, {i}, v.select(1, 3), {.accumulate = true})};
    });
}

void products(Calls& c) {
  for (DType t : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::c64, DType::c128})
    c.same(fmt::format("matmul {}", name(t)), [=](const Device& d) {
      auto matrix = [&](const Dims& sizes, std::uint64_t number) {
        if (!is_complex(t)) return normal(d, sizes, number, t);
        Dims pairs = sizes;
        pairs.push_back(2);
        return as_complex(normal(d, pairs, number, t == DType::c64 ? DType::f32 : DType::f64));
      };
      const Tensor a = matrix({67, 130}, 50), b = matrix({130, 75}, 51), s = matrix({40, 4, 4}, 52), u = matrix({40, 4, 4}, 53), row = matrix({1, 130}, 54);
      Tensors made{linalg::matmul(a, b), linalg::matmul(b.mT(), a.mT()), linalg::matmul(s, u), linalg::matmul(row, b),
                   linalg::matmul(a, linalg::PackedMatrix(b))};
      if (is_complex(t)) return made;
      const auto g = linalg::matmul_backward(matrix({67, 75}, 55), a, b);
      made.push_back(g.a), made.push_back(g.b);
      return made;
    });
  for (DType t : kFloats) {
    c.same(fmt::format("linear {}", name(t)), [=](const Device& d) {
      const Tensor x = normal(d, {33, 64}, 56, t), w = normal(d, {48, 64}, 57, t), b = normal(d, {48}, 58, t);
      Tensors made;
      for (nn::Activation a : {nn::Activation::none, nn::Activation::relu, nn::Activation::gelu, nn::Activation::gelu_tanh, nn::Activation::silu})
        made.push_back(linalg::linear(x, w, b, {.activation = a}));
      return made;
    });
    c.same(fmt::format("2:4 {}", name(t)), [=](const Device& d) {
      const Tensor w = normal(d, {40, 64}, 59, t), b = normal(d, {64, 33}, 60, t), x = normal(d, {5, 64}, 61, t);
      Tensors made;
      for (auto rule : {sparse::PruneRule::groups, sparse::PruneRule::tile_values, sparse::PruneRule::tile_magnitudes, sparse::PruneRule::causal1122})
        made.push_back(sparse::prune_2_4(w, {.rule = rule}));
      const sparse::SemiStructured s = sparse::compress(made[0]);
      for (const Tensor& m : {s.values(), s.metadata(), sparse::matmul(s, b), sparse::matmul_transposed(x, s), sparse::linear(x, s), sparse::decompress(s)})
        made.push_back(m);
      return made;
    });
  }
  c.same("matmul of bytes", [](const Device& d) {
    const Tensor a = whole(d, {37, 130}, 62, -128, 128, DType::i8), b = whole(d, {130, 50}, 63, -128, 128, DType::i8),
                 u = whole(d, {130, 50}, 64, 0, 256, DType::u8);
    const Tensor p = sparse::prune_2_4(a);
    return Tensors{linalg::matmul(a, b), linalg::matmul(u.mT().contiguous(), u), sparse::matmul(sparse::compress(p), b)};
  });
  c.same("scaled matmul of f8", [](const Device& d) {
    const Tensor a = normal(d, {20, 64}, 65).to(DType::f8e4m3fn), b = normal(d, {64, 24}, 66).to(DType::f8e4m3fn);
    return Tensors{linalg::scaled_matmul(a, b, positive(d, {20, 1}, 67), positive(d, {1, 24}, 68))};
  });
}

void eigenpairs(Calls& c) {
  for (DType t : {DType::f32, DType::f64, DType::c64, DType::c128})
    for (std::int64_t n : {1, 2, 3, 4, 7, 16, 33, 70}) {
      auto matrices = [=](const Device& d, bool conjugate = false) {
        const std::int64_t batch = n > 20 ? 5 : 37;
        if (!is_complex(t)) return normal(d, {batch, n, n}, static_cast<std::uint64_t>(70 + n), t);
        return as_complex(normal(d, {batch, n, n, 2}, static_cast<std::uint64_t>(70 + n), t == DType::c64 ? DType::f32 : DType::f64), conjugate);
      };
      c.wide(fmt::format("eigh {} {}", name(t), n), [=](const Device& d) {
        const auto r = linalg::eigh(matrices(d)), u = linalg::eigh(matrices(d), {.uplo = linalg::Uplo::upper, .phase = linalg::EighPhase::positive});
        return Tensors{r.w, r.v, r.status.info, u.w, u.v, linalg::eigvalsh(matrices(d)).w};
      });
      if (n == 4 || n == 16)
        c.wide(fmt::format("eigh relative {} {}", name(t), n), [=](const Device& d) {
          const Tensor p = linalg::matmul(matrices(d), matrices(d, true).mT());
          const auto r = linalg::eigh(p, {.accuracy = linalg::EighAccuracy::relative});
          return Tensors{r.w, r.v};
        });
    }
}

void attentions(Calls& c) {
  for (DType t : kFloats)
    for (std::string of : {"none", "causal", "alibi", "softcap"}) {
      auto options = [=](const Device& d) {
        attention::FlexOptions o{.return_lse = true, .return_max_scores = true};
        if (of == "causal") o.block_mask = attention::create_block_mask(attention::causal(), {.q_len = 77, .kv_len = 77, .block = {32, 32}, .device = d});
        if (of == "alibi") o.score_mod = attention::alibi(attention::alibi_slopes(3, d));
        if (of == "softcap") o.score_mod = attention::softcap(2);
        return o;
      };
      c.wide(fmt::format("flex {} {}", of, name(t)), [=](const Device& d) {
        const Tensor q = normal(d, {2, 3, 77, 24}, 90, t), k = normal(d, {2, 3, 77, 24}, 91, t), v = normal(d, {2, 3, 77, 16}, 92, t);
        const auto r = attention::flex(q, k, v, options(d));
        const auto few = attention::flex(q.slice(2, 0, 3), k, v, of == "causal" ? attention::FlexOptions{} : options(d));
        return Tensors{r.out, r.lse, r.max_scores, few.out};
      });
      c.wide(fmt::format("flex_backward {} {}", of, name(t)), [=](const Device& d) {
        const Tensor q = normal(d, {2, 3, 77, 24}, 90, t), k = normal(d, {2, 3, 77, 24}, 91, t), v = normal(d, {2, 3, 77, 16}, 92, t);
        const auto r = attention::flex(q, k, v, options(d));
        const auto g = attention::flex_backward(normal(d, {2, 3, 77, 16}, 93, t), q, k, v, r, options(d));
        return Tensors{g.q, g.k, g.v};
      });
    }
  c.same("block masks", [](const Device& d) {
    Tensors made;
    const Tensor ids = map([](Expr i) { return floor_div(i, 190); }, arange(0, 700, 1, {.dtype = DType::i32, .device = d}));
    for (const attention::MaskMod& m : {attention::causal(), attention::sliding_window(100), attention::document(ids), attention::dilated(200, 3)}) {
      const auto b = attention::create_block_mask(m, {.q_len = 700, .kv_len = 700, .block = {64, 48}, .device = d});
      for (const Tensor& l : {b.kinds(), b.kv_num_blocks(), b.full_kv_num_blocks(), b.q_num_blocks()}) made.push_back(l);
    }
    return made;
  });
}

void optimizers(Calls& c) {
  using optim::Numerics;
  for (DType t : kFloats)
    for (Numerics n : {Numerics::source, Numerics::torch_cpu, Numerics::f32, Numerics::composed}) {
      if ((n == Numerics::f32 && t == DType::f64) || (n == Numerics::composed && t != DType::f32 && t != DType::f64)) continue;
      c.same(fmt::format("optimizers {} {}", name(t), static_cast<int>(n)), [=](const Device& d) {
        const optim::Precision precision{.numerics = n};
        Tensors made;
        auto run = [&](auto&& make) {
          const Tensors params{normal(d, {41, 3}, 100, t), normal(d, {1030}, 101, t)}, grads{normal(d, {41, 3}, 102, t), normal(d, {1030}, 103, t)};
          auto o = make(params);
          for (int i = 0; i < 3; ++i) o.step(grads);
          for (const Tensor& p : params) made.push_back(p);
        };
        run([&](const Tensors& p) { return optim::SGD(p, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true, .precision = precision}); });
        run([&](const Tensors& p) { return optim::Adam(p, {.weight_decay = 0.01, .amsgrad = true, .precision = precision}); });
        run([&](const Tensors& p) { return optim::AdamW(p, {.precision = precision}); });
        run([&](const Tensors& p) { return optim::Adagrad(p, {.precision = precision}); });
        run([&](const Tensors& p) { return optim::RMSprop(p, {.momentum = 0.5, .centered = true, .precision = precision}); });
        return made;
      });
    }
}

std::string digest_of(const Tensors& tensors) {
  std::string bytes;
  for (const Tensor& t : tensors) {
    bytes += fmt::format("{} {}\n", name(t.dtype()), to_string(t.sizes()));
    for (std::uint8_t b : t.to_bytes()) bytes.push_back(static_cast<char>(b));
  }
  return detail::to_hex(detail::sha256(bytes)).substr(0, 32);
}

/// Lines "name: digest", or "name: digest reason".
std::map<std::string, std::string> read(const std::string& file) {
  std::map<std::string, std::string> lines;
  std::ifstream in(fmt::format("{}/proof/{}", CLUTCH_TESTS_FOLDER, file));
  for (std::string line; std::getline(in, line);)
    if (const std::size_t colon = line.find(": "); !line.starts_with('#') && colon != std::string::npos)
      lines[line.substr(0, colon)] = line.substr(colon + 2, 32);
  return lines;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// Texts that the pattern's first group, or its groups joined by dots, match.
std::set<std::string> matches(const std::string& text, const char* pattern) {
  std::set<std::string> all;
  const std::regex wanted(pattern);
  for (std::sregex_iterator found(text.begin(), text.end(), wanted), end; found != end; ++found)
    all.insert(found->size() > 2 ? fmt::format("{}.{}", (*found)[1].str(), (*found)[2].str()) : (*found)[1].str());
  return all;
}

TEST(SavedBits, ChangesNameTheirReasonsAndTests) {
  const std::string changes = text_of(std::filesystem::path(CLUTCH_TESTS_FOLDER) / "proof" / "changed_bits");
  const std::set<std::string> reasons = matches(changes, R"([(, ]([BH]\d+)[),])");
  for (const char* defect : {"B5", "H1", "H6", "H8", "H9", "H10", "H11", "H18", "H19", "H21", "H28", "H29"})
    EXPECT_TRUE(reasons.contains(defect)) << "nothing says what changed by " << defect;
  std::set<std::string> tests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(CLUTCH_TESTS_FOLDER))
    if (entry.path().extension() == ".cpp") tests.merge(matches(text_of(entry.path()), R"(\nTEST(?:_F)?\((\w+), (\w+)\))"));
  const std::set<std::string> named = matches(changes, R"([:,]\s(?:#\s+)?([A-Z]\w+\.\w*\*?))");
  EXPECT_GE(named.size(), 20u);
  for (const std::string& name : named) {
    const std::string whole = name.substr(0, name.find('*'));
    const auto first = tests.lower_bound(whole);
    EXPECT_TRUE(first != tests.end() && (name.ends_with('*') ? first->starts_with(whole) : *first == whole)) << "there is no test " << name;
  }
}

TEST(SavedBits, EveryOpGivesThemAgain) {
  Calls calls;
  elementwise(calls), reductions(calls), indexed(calls), sorts(calls), indices(calls), products(calls), eigenpairs(calls), attentions(calls), optimizers(calls);
  const char* save = std::getenv("TEST_SAVE_BITS");
  std::map<std::string, std::string> saved = read("saved_bits"), changed = read("changed_bits");
  std::ofstream out;
  if (save) out.open(save);
  ASSERT_TRUE(save || !saved.empty());
  const Device& device = test_devices().front();
  const DeviceTraits& traits = device.traits();
  if (skip_without(device, "fp64", traits.fp64) || skip_without(device, "denormals", traits.denormals)) return;
  const bool wide = traits.type == DeviceType::cpu && traits.native_width_f32 == 16 && device.platform() == "Portable Computing Language";
  std::size_t turn = 0;
  for (const Call& c : calls.all) {
    // By day one of eight: most of the time builds programs.
    if ((c.wide && !wide) || (!save && level() == "smoke" && turn++ % 8 != 0)) continue;
    std::string now;
    EXPECT_NO_THROW(now = digest_of(c.run(device))) << c.name;
    if (now.empty()) continue;
    if (save) {
      out << c.name << ": " << now << std::endl;
      continue;
    }
    ASSERT_TRUE(saved.contains(c.name)) << c.name;
    const auto change = changed.find(c.name);
    EXPECT_EQ(now, change == changed.end() ? saved[c.name] : change->second) << c.name;
    EXPECT_TRUE(change == changed.end() || now != saved[c.name]) << c.name << " has not changed: its line in changed_bits is out of date";
  }
}

}}  // namespace clutch::testing
