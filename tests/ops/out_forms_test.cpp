// SPDX-License-Identifier: Apache-2.0
// Out forms write what the allocating form returns, bit for bit, into tensors of any strides, and nothing between their elements.
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <array>
#include <functional>

namespace clutch::testing { namespace {

using List = std::vector<Tensor>;

/// A tensor of the sizes and dtype of another one, first dimension innermost, at every second element of memory with known bytes.
struct Spread {
  Tensor memory, view;
  std::vector<std::uint8_t> before;

  explicit Spread(const Tensor& like) {
    if (!like.defined()) return;
    memory = full({2 * like.numel() + 2}, 1, {.dtype = like.dtype(), .device = like.device()});
    Dims strides = Dims::filled(like.rank(), 0);
    std::int64_t stride = 2;
    for (int d = 0; d < like.rank(); ++d) strides[d] = stride, stride *= std::max<std::int64_t>(like.sizes()[d], 1);
    view = memory.as_strided(like.sizes(), strides, 1);
    before = memory.to_bytes();
  }
  /// Whether the elements beside those of the view are what they were.
  bool kept_the_rest() const {
    if (!memory.defined()) return true;
    const std::vector<std::uint8_t> after = memory.to_bytes();
    const std::size_t size = static_cast<std::size_t>(bits(memory.dtype())) / 8;
    for (std::size_t i = 0; i < after.size(); ++i)
      if (i / size % 2 == 0 && after[i] != before[i]) return false;
    return true;
  }
};

/// What the out form writes for each of these results.
void expect_same(const char* what, const List& want, const std::function<void(const List&)>& into) {
  std::vector<Spread> outs;
  List views;
  for (const Tensor& t : want) views.push_back(outs.emplace_back(t).view);
  into(views);
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!want[i].defined()) continue;
    EXPECT_EQ(views[i].to_bytes(), want[i].to_bytes()) << what << ", result " << i;
    EXPECT_TRUE(outs[i].kept_the_rest()) << what << ", result " << i;
  }
}
void expect_same(const char* what, const Tensor& want, const std::function<void(const Tensor&)>& into) {
  expect_same(what, List{want}, [&](const List& outs) { into(outs[0]); });
}

Tensor numbers(const Device& device, const Dims& sizes, std::uint64_t seed, DType dtype = DType::f32) {
  return randn(sizes, {.dtype = dtype, .device = device, .seed = seed});
}

TEST(OutForms, OfReductions) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = numbers(device, {6, 5, 40}, 1), many = numbers(device, {64, 1024}, 2), whole = (numbers(device, {6, 5, 40}, 3) * 4).to(DType::i32);
    for (const ReduceOptions& o :
         {ReduceOptions{}, ReduceOptions{.dims = {1}}, ReduceOptions{.dims = {-1, 0}, .keepdim = true}, ReduceOptions{.keepdim = true}}) {
      expect_same("sum", sum(x, o), [&](const Tensor& out) { sum_out(out, x, o); });
      expect_same("sum of i32", sum(whole, o), [&](const Tensor& out) { sum_out(out, whole, o); });
      expect_same("mean", mean(x, o), [&](const Tensor& out) { mean_out(out, x, o); });
      expect_same("prod", prod(x, o), [&](const Tensor& out) { prod_out(out, x, o); });
      expect_same("amin", amin(x, o), [&](const Tensor& out) { amin_out(out, x, o); });
      expect_same("amax", amax(whole, o), [&](const Tensor& out) { amax_out(out, whole, o); });
      expect_same("any", any(whole, o), [&](const Tensor& out) { any_out(out, whole, o); });
      expect_same("all", all(whole, o), [&](const Tensor& out) { all_out(out, whole, o); });
      expect_same("var", var(x, 0, o), [&](const Tensor& out) { var_out(out, x, 0, o); });
      expect_same("var, correction 1", var(x, o), [&](const Tensor& out) { var_out(out, x, o); });
      expect_same("logsumexp", logsumexp(x, o), [&](const Tensor& out) { logsumexp_out(out, x, o); });
      for (double p : {2.0, 0.0, 1.0, 3.0, static_cast<double>(INFINITY), -static_cast<double>(INFINITY)})
        expect_same("norm", norm(x, p, o), [&](const Tensor& out) { norm_out(out, x, p, o); });
      expect_same("norm of 2", norm(x, o), [&](const Tensor& out) { norm_out(out, x, o); });
      if (o.dims.rank() > 1) continue;
      expect_same("argmin", argmin(x, o), [&](const Tensor& out) { argmin_out(out, x, o); });
      expect_same("argmax", argmax(x, o), [&](const Tensor& out) { argmax_out(out, x, o); });
    }
    // Many rows that stay near go another way.
    for (bool keep : {false, true}) {
      const ReduceOptions rows{.dims = {1}, .keepdim = keep};
      expect_same("var of many rows", var(many, rows), [&](const Tensor& out) { var_out(out, many, rows); });
      expect_same("logsumexp of many rows", logsumexp(many, rows), [&](const Tensor& out) { logsumexp_out(out, many, rows); });
    }
    EXPECT_EQ(var(x, {.dims = {1}}).to_bytes(), var(x, 1, {.dims = {1}}).to_bytes());
    EXPECT_EQ(norm(x, {.dims = {1}}).to_bytes(), norm(x, 2, {.dims = {1}}).to_bytes());
    for (const Dims& sizes : {Dims{5, 40}, Dims{6, 1, 40}, Dims{1}, Dims{6, 5, 40}})
      expect_same("sum_to", sum_to(x, sizes), [&](const Tensor& out) { sum_to_out(out, x); });
    // A narrower result is rounded once.
    const Tensor narrow = empty({6}, {.dtype = DType::f16, .device = device});
    sum_out(narrow, x, {.dims = {1, 2}});
    EXPECT_EQ(narrow.to_bytes(), sum(x, {.dims = {1, 2}, .dtype = DType::f16}).to_bytes());
    auto difference = [](Expr a, Expr b) { return a - b; };
    expect_same("reduce of a lambda", reduce(Reduce::sum, difference, {x, x * 2}, {.dims = {0}}), [&](const Tensor& out) {
      reduce_out(out, Reduce::sum, difference, {x, x * 2}, {.dims = {0}});
    });
  }
}

TEST(OutForms, OfTracedGradients) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = numbers(device, {7, 12}, 1), row = numbers(device, {12}, 2, DType::f16), g = numbers(device, {7, 12}, 3), table = numbers(device, {7}, 4);
    auto f = [](Expr a, Expr b) { return a * tanh(b); };
    const ExprFunction traced = trace(f, std::array{DType::f32, DType::f32});
    const List inputs{x, row}, grads{g};
    expect_same("map_backward", map_backward({g}, f, {x, row}), [&](const List& outs) { map_backward_out(outs, grads, traced, inputs); });
    const ExprFunction reads = trace([&](Expr a) { return a * captured(table)[position(0)]; }, std::array{DType::f32});
    const List one{x};
    expect_same("captured_backward", captured_backward(grads, reads, one), [&](const List& outs) { captured_backward_out(outs, grads, reads, one); });
    // What is not asked for is left out, and a gradient may go where it came from.
    const Tensor of_x = map_backward({g}, f, {x, row})[0], place = g.clone();
    map_backward_out(List{place, Tensor()}, List{place}, traced, inputs);
    EXPECT_EQ(place.to_bytes(), of_x.to_bytes());
  }
}

TEST(OutForms, OfIndices) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = numbers(device, {9, 11}, 1), g = numbers(device, {9, 11}, 2), wide = numbers(device, {9, 24}, 3);
    const Tensor picks = from_host<std::int64_t>({3, 8, 0, 3, 1, 99}, device), places = picks.slice(0, 0, 3).unsqueeze(1).expand({3, 11}),
                 each = (numbers(device, {5, 11}, 4) * 3).to(DType::i64);
    expect_same("gather", gather(x, 0, each), [&](const Tensor& out) { gather_out(out, x, 0, each); });
    expect_same("gather of rows", gather(x, 0, places), [&](const Tensor& out) { gather_out(out, x, 0, places); });
    expect_same("gather of nothing", gather(zeros({0, 11}, {.device = device}), 0, each), [&](const Tensor& out) {
      gather_out(out, zeros({0, 11}, {.device = device}), 0, each);
    });
    const List joined{wide, wide};
    expect_same("cat", cat(joined, 1), [&](const Tensor& out) { cat_out(out, joined, 1); });
    expect_same("stack", stack(joined, 1), [&](const Tensor& out) { stack_out(out, joined, 1); });
    const std::vector<std::int64_t> parts{1, wide.size(1) - 1};
    expect_same("split_copy", split_copy(wide, parts, 1), [&](const List& o) { split_copy_out(o, wide, 1); });
    expect_same("index_select", index_select(wide, 0, picks), [&](const Tensor& out) { index_select_out(out, wide, 0, picks); });
    expect_same("index_select of columns", index_select(wide, 1, picks), [&](const Tensor& out) { index_select_out(out, wide, 1, picks); });
    expect_same("gather_backward", gather_backward(numbers(device, {5, 11}, 5), x.sizes(), 0, each), [&](const Tensor& out) {
      gather_backward_out(out, numbers(device, {5, 11}, 5), 0, each);
    });
    const Groups groups = group_by(picks, 9);
    expect_same("group_by", List{groups.offsets, groups.order}, [&](const List& o) { group_by_out({.offsets = o[0], .order = o[1]}, picks, 9); });
    const Sorted sorted = sort(x, 0), top = topk(x, 4), third = kthvalue(x, 3);
    expect_same("sort", List{sorted.values, sorted.indices}, [&](const List& o) { sort_out({.values = o[0], .indices = o[1]}, x, 0); });
    expect_same("topk", List{top.values, top.indices}, [&](const List& o) { topk_out({.values = o[0], .indices = o[1]}, x, 4); });
    expect_same("kthvalue", List{third.values, third.indices}, [&](const List& o) { kthvalue_out({.values = o[0], .indices = o[1]}, x, 3); });
    expect_same("argsort", sorted.indices, [&](const Tensor& out) { argsort_out(out, x, 0); });
    const Tensor halves = gt(x, 0.0);
    expect_same("nonzero_static", nonzero_static(halves, 70), [&](const Tensor& out) { nonzero_static_out(out, halves, 70); });
    expect_same("count_nonzero", count_nonzero(halves, {.dims = {1}}), [&](const Tensor& out) { count_nonzero_out(out, halves, {.dims = {1}}); });
    const List rows{places.select(1, 0)};
    const Tensor stored = numbers(device, {3, 11}, 9);
    expect_same("index", index(x, rows), [&](const Tensor& out) { index_out(out, x, rows); });
    expect_same("index_put", index_put(x, rows, stored), [&](const Tensor& out) { index_put_out(out, x, rows, stored); });
    const Tensor src = numbers(device, {5, 11}, 6), offsets = from_host<std::int32_t>({0, 2, 2, 9}, device),
                 csr_columns = from_host<std::int32_t>({0, 5, 5, 2, 7, 7, 1, 0, 3}, device);
    const sparse::Csr a{.offsets = offsets, .columns = csr_columns, .values = numbers(device, {9}, 7), .width = 8};
    const Tensor dense = numbers(device, {8, 11}, 8);
    for (Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::amax, Reduce::amin, Reduce::prod}) {
      const ScatterOptions o{.reduce = reduce, .include_self = reduce != Reduce::mean};
      const Tensor made = scatter_reduce(x, 0, each, src, o);
      expect_same("scatter_reduce", made, [&](const Tensor& out) { scatter_reduce_out(out, x, 0, each, src, o); });
      const Tensor self = x.clone();
      scatter_reduce_out(self, self, 0, each, src, o);
      EXPECT_EQ(self.to_bytes(), made.to_bytes()) << "into self";
      const ScatterGradients back = scatter_reduce_backward(g, made, x, 0, each, src, o);
      expect_same("scatter_reduce_backward", List{back.self, back.src},
                  [&](const List& out) { scatter_reduce_backward_out({.self = out[0], .src = out[1]}, g, made, x, 0, each, src, o); });
      const SegmentOptions of_segments{.reduce = reduce};
      const Tensor reduced = segment_reduce(x, offsets, of_segments), slope = numbers(device, {3, 11}, 9);
      expect_same("segment_reduce", reduced, [&](const Tensor& out) { segment_reduce_out(out, x, offsets, of_segments); });
      expect_same("segment_reduce_backward", segment_reduce_backward(slope, reduced, x, offsets, of_segments),
                  [&](const Tensor& out) { segment_reduce_backward_out(out, slope, reduced, x, offsets, of_segments); });
      const Tensor product = sparse::spmm(a, dense, {.reduce = reduce});
      expect_same("spmm", product, [&](const Tensor& out) { sparse::spmm_out(out, a, dense, {.reduce = reduce}); });
      const sparse::SpmmGradients of = sparse::spmm_backward(slope, product, a, dense, {.reduce = reduce});
      expect_same("spmm_backward", List{of.values, of.b},
                  [&](const List& out) { sparse::spmm_backward_out({.values = out[0], .b = out[1]}, slope, product, a, dense, {.reduce = reduce}); });
    }
    expect_same("embedding", nn::embedding(x, picks), [&](const Tensor& out) { nn::embedding_out(out, x, picks); });
    const Tensor of_rows = numbers(device, {6, 11}, 10);
    expect_same("embedding_backward", nn::embedding_backward(of_rows, picks, 9),
                [&](const Tensor& out) { nn::embedding_backward_out(out, of_rows, picks, 9); });
  }
}

TEST(OutForms, OfRows) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      const Tensor x = numbers(device, {6, 33}, 1, dtype), g = numbers(device, {6, 33}, 2, dtype), weight = numbers(device, {33}, 3, dtype),
                   bias = numbers(device, {33}, 4, dtype);
      for (int dim : {0, 1}) {
        const Tensor y = nn::softmax(x, dim), l = nn::log_softmax(x, dim);
        expect_same("softmax", y, [&](const Tensor& out) { nn::softmax_out(out, x, dim); });
        expect_same("log_softmax", l, [&](const Tensor& out) { nn::log_softmax_out(out, x, dim); });
        expect_same("softmax_backward", nn::softmax_backward(g, y, dim), [&](const Tensor& out) { nn::softmax_backward_out(out, g, y, dim); });
        expect_same("log_softmax_backward", nn::log_softmax_backward(g, l, dim), [&](const Tensor& out) { nn::log_softmax_backward_out(out, g, l, dim); });
        const Tensor place = g.clone();
        nn::softmax_backward_out(place, place, y, dim);
        EXPECT_EQ(place.to_bytes(), nn::softmax_backward(g, y, dim).to_bytes()) << "in place";
      }
      for (const Tensor& w : {Tensor(), weight}) {
        const nn::LayerNormResult layer = nn::layer_norm(x, w, bias);
        expect_same("layer_norm", List{layer.y, layer.mean, layer.rstd}, [&](const List& o) { nn::layer_norm_out({o[0], o[1], o[2]}, x, w, bias); });
        const nn::LayerNormGradients of = nn::layer_norm_backward(g, x, layer.mean, layer.rstd, w);
        expect_same("layer_norm_backward", List{of.x, of.weight, of.bias}, [&](const List& o) {
          nn::layer_norm_backward_out({o[0], o[1], o[2]}, g, x, layer.mean, layer.rstd, w);
        });
        const nn::RmsNormResult rms = nn::rms_norm(x, w);
        expect_same("rms_norm", List{rms.y, rms.rrms}, [&](const List& o) { nn::rms_norm_out({o[0], o[1]}, x, w); });
        const nn::RmsNormGradients back = nn::rms_norm_backward(g, x, rms.rrms, w);
        expect_same("rms_norm_backward", List{back.x, back.weight}, [&](const List& o) { nn::rms_norm_backward_out({o[0], o[1]}, g, x, rms.rrms, w); });
      }
      if (dtype != DType::f64) {
        const Tensor sequence = numbers(device, {2, 5, 33}, 8, dtype), step = numbers(device, {2, 5, 33}, 9, dtype), rates = numbers(device, {33, 3}, 10),
                     shared = numbers(device, {2, 5, 3}, 11, dtype), skip = numbers(device, {33}, 12), start = numbers(device, {2, 33, 3}, 13);
        const SelectiveScanOptions o{.skip = skip, .gate = step, .delta_bias = skip, .delta_softplus = true, .initial_state = start};
        const SelectiveScanResult scan = selective_scan(sequence, step, rates, shared, shared, o);
        expect_same("selective_scan", List{scan.y, scan.state}, [&](const List& l) {
          selective_scan_out({l[0], l[1]}, sequence, step, rates, shared, shared, o);
        });
        const SelectiveScanGradients to = selective_scan_backward(scan, sequence, step, rates, shared, shared, o);
        expect_same("selective_scan_backward", List{to.x, to.delta, to.a, to.b, to.c, to.skip, to.gate, to.delta_bias, to.initial_state}, [&](const List& l) {
          selective_scan_backward_out({l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7], l[8]}, scan, sequence, step, rates, shared, shared, o);
        });
      }
      const Tensor target = from_host<std::int64_t>({0, 32, 5, 5, 7, 9}, device);
      for (nn::Reduction reduction : {nn::Reduction::mean, nn::Reduction::none}) {
        const nn::CrossEntropyOptions o{.reduction = reduction, .label_smoothing = 0.1};
        const nn::CrossEntropyResult r = nn::cross_entropy(x, target, o);
        expect_same("cross_entropy", List{r.loss, r.max, r.log_sum},
                    [&](const List& out) { nn::cross_entropy_out({.loss = out[0], .max = out[1], .log_sum = out[2]}, x, target, o); });
        const Tensor slope = full(r.loss.sizes(), 1, {.dtype = dtype, .device = device});
        expect_same("cross_entropy_backward", nn::cross_entropy_backward(slope, x, target, r, o),
                    [&](const Tensor& out) { nn::cross_entropy_backward_out(out, slope, x, target, r, o); });
      }
    }
  }
}

TEST(OutForms, OfProducts) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = numbers(device, {2, 7, 16}, 1), weight = numbers(device, {24, 16}, 2), bias = numbers(device, {24}, 3), g = numbers(device, {2, 7, 24}, 4);
    const linalg::PackedMatrix packed(weight.mT());
    for (nn::Activation activation : {nn::Activation::none, nn::Activation::gelu})
      for (const Tensor& b : {Tensor(), bias}) {
        const linalg::LinearOptions o{.activation = activation};
        expect_same("linear", linalg::linear(x, weight, b, o), [&](const Tensor& out) { linalg::linear_out(out, x, weight, b, o); });
        expect_same("linear, packed", linalg::linear(x, packed, b, o), [&](const Tensor& out) { linalg::linear_out(out, x, packed, b, o); });
        const linalg::LinearGradients of = linalg::linear_backward(g, x, weight, b, o);
        expect_same("linear_backward", List{of.x, of.weight, of.bias}, [&](const List& out) {
          linalg::linear_backward_out({out[0], out[1], out[2]}, g, x, weight, b, o);
        });
      }
    const Tensor vector = x.select(0, 0).select(0, 0);
    expect_same("linear of a vector", linalg::linear(vector, weight, bias), [&](const Tensor& out) { linalg::linear_out(out, vector, weight, bias); });
    expect_same("linear of a vector alone", linalg::linear(vector, weight), [&](const Tensor& out) { linalg::linear_out(out, vector, weight); });
    const Tensor b = numbers(device, {16, 24}, 5);
    auto plus = [](Expr p, Expr q) { return relu(p + q); };
    expect_same("matmul of a lambda", linalg::matmul(x, b, plus, {bias}), [&](const Tensor& out) { linalg::matmul_out(out, x, b, plus, {bias}); });
    const linalg::MatmulGradients of = linalg::matmul_backward(g, x, b);
    expect_same("matmul_backward", List{of.a, of.b}, [&](const List& o) { linalg::matmul_backward_out({.a = o[0], .b = o[1]}, g, x, b); });
    const ExprFunction f = trace(plus, std::array{DType::f32, DType::f32});
    const List inputs{bias};
    const linalg::MatmulGradients with = linalg::matmul_backward(g, x, b, f, inputs);
    expect_same("matmul_backward of an epilogue", List{with.a, with.b, with.inputs.at(0)},
                [&](const List& o) { linalg::matmul_backward_out({.a = o[0], .b = o[1], .inputs = {o[2]}}, g, x, b, f, inputs); });
    const Tensor low = x.to(DType::f8e4m3fn), low_b = b.to(DType::f8e4m3fn), one = full({1}, 0.5, {.device = device});
    for (DType dtype : {DType::bf16, DType::f32}) {
      const linalg::ScaledMatmulOptions o{.bias = bias, .dtype = dtype};
      expect_same("scaled_matmul", linalg::scaled_matmul(low, low_b, one, one, o),
                  [&](const Tensor& out) { linalg::scaled_matmul_out(out, low, low_b, one, one, o); });
    }
    const Tensor bytes = (x * 20).to(DType::i8), bytes_b = (b * 20).to(DType::i8), zero = full({1}, 3, {.dtype = DType::i32, .device = device});
    for (DType dtype : {DType::f32, DType::u8}) {
      const linalg::QuantizedMatmulOptions o{.bias = bias, .dtype = dtype, .result = {.scale = one}};
      expect_same("quantized_matmul", linalg::quantized_matmul(bytes, {one, zero}, bytes_b, {one, zero}, o), [&](const Tensor& out) {
        linalg::quantized_matmul_out(out, bytes, {one, zero}, bytes_b, {one, zero}, o);
      });
    }
    const Tensor a = numbers(device, {3, 5, 5}, 6), both = a + a.mT();
    const linalg::EighResult pairs = linalg::eigh(both);
    const Tensor of_w = numbers(device, {3, 5}, 7), of_v = numbers(device, {3, 5, 5}, 8);
    const linalg::EighGradient back = linalg::eigh_backward(of_w, of_v, pairs.w, pairs.v);
    expect_same("eigh_backward", List{back.grad_a, back.gauge},
                [&](const List& o) { linalg::eigh_backward_out({.grad_a = o[0], .gauge = o[1]}, of_w, of_v, pairs.w, pairs.v); });
    const List all{x, g};
    const optim::GradNorm norm = optim::grad_norm(all, 1);
    expect_same("grad_norms", List{optim::grad_norms(all)}, [&](const List& o) { optim::grad_norms_out(o[0], all); });
    expect_same("grad_norm", List{norm.norm, norm.factor}, [&](const List& o) { optim::grad_norm_out({.norm = o[0], .factor = o[1]}, all, 1); });
  }
}

TEST(OutForms, OfSparseWeights) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor dense = numbers(device, {32, 64}, 1, DType::f16), wide = numbers(device, {32, 64}, 2), b = numbers(device, {64, 9}, 3),
                 x = numbers(device, {2, 5, 64}, 4), bias = numbers(device, {32}, 5), g = numbers(device, {2, 5, 32}, 6);
    expect_same("prune_2_4", sparse::prune_2_4(dense), [&](const Tensor& out) { sparse::prune_2_4_out(out, dense); });
    const Tensor mask = sparse::mask_2_4(dense, {.rule = sparse::PruneRule::tile_values}), pruned = sparse::prune_2_4(dense);
    expect_same("mask_2_4", mask, [&](const Tensor& out) { sparse::mask_2_4_out(out, dense, {.rule = sparse::PruneRule::tile_values}); });
    expect_same("apply_mask", sparse::apply_mask(dense, mask), [&](const Tensor& out) { sparse::apply_mask_out(out, dense, mask); });
    const Tensor in_place = dense.clone();
    sparse::apply_mask_out(in_place, in_place, mask);
    EXPECT_EQ(in_place.to_bytes(), sparse::apply_mask(dense, mask).to_bytes()) << "in place";
    const Tensor bitmask = sparse::to_bitmask(mask);
    expect_same("to_bitmask", bitmask, [&](const Tensor& out) { sparse::to_bitmask_out(out, mask); });
    expect_same("from_bitmask", sparse::from_bitmask(bitmask), [&](const Tensor& out) { sparse::from_bitmask_out(out, bitmask); });
    expect_same("is_2_4", sparse::is_2_4(pruned), [&](const Tensor& out) { sparse::is_2_4_out(out, pruned); });
    const sparse::SemiStructured narrow = sparse::compress(pruned), w = sparse::compress(sparse::prune_2_4(wide));
    expect_same("decompress", sparse::decompress(narrow), [&](const Tensor& out) { sparse::decompress_out(out, narrow); });
    expect_same("mask_of", sparse::mask_of(narrow), [&](const Tensor& out) { sparse::mask_of_out(out, narrow); });
    const sparse::CutlassLayout cutlass = sparse::to_cutlass(narrow);
    expect_same("to_cutlass", List{cutlass.values, cutlass.metadata},
                [&](const List& o) { sparse::to_cutlass_out({.values = o[0], .metadata = o[1]}, narrow); });
    expect_same("matmul", sparse::matmul(w, b), [&](const Tensor& out) { sparse::matmul_out(out, w, b); });
    expect_same("matmul_transposed", sparse::matmul_transposed(x, w), [&](const Tensor& out) { sparse::matmul_transposed_out(out, x, w); });
    const Tensor one = full({1}, 0.5, {.device = device}), low = b.to(DType::f8e4m3fn), low_x = x.to(DType::f8e4m3fn);
    const sparse::SemiStructured low_w = sparse::compress(sparse::prune_2_4(wide.to(DType::f8e4m3fn)));
    const linalg::ScaledMatmulOptions o{.dtype = DType::f32};
    expect_same("scaled_matmul", sparse::scaled_matmul(low_w, low, one, one, o),
                [&](const Tensor& out) { sparse::scaled_matmul_out(out, low_w, low, one, one); });
    expect_same("scaled_matmul_transposed", sparse::scaled_matmul_transposed(low_x, low_w, one, one, o),
                [&](const Tensor& out) { sparse::scaled_matmul_transposed_out(out, low_x, low_w, one, one); });
    const Tensor vector = x.select(0, 0).select(0, 0);
    for (nn::Activation activation : {nn::Activation::none, nn::Activation::relu}) {
      for (const Tensor& of : {x, vector})
        for (const Tensor& beside : {Tensor(), bias})
          expect_same("linear", sparse::linear(of, w, beside, {.activation = activation}),
                      [&](const Tensor& out) { sparse::linear_out(out, of, w, beside, {.activation = activation}); });
      const linalg::LinearGradients back = sparse::linear_backward(g, x, w, bias, {.activation = activation});
      expect_same("linear_backward", List{back.x, back.weight, back.bias}, [&](const List& out) {
        sparse::linear_backward_out({out[0], out[1], out[2]}, g, x, w, bias, {.activation = activation});
      });
    }
  }
}

TEST(OutForms, OfAttention) {
  using namespace attention;
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // and so takes less than this
    const Tensor q = numbers(device, {2, 4, 20, 16}, 1), k = numbers(device, {2, 4, 33, 16}, 2), v = numbers(device, {2, 4, 33, 16}, 3),
                 g = numbers(device, {2, 4, 20, 16}, 4), slopes = numbers(device, {4}, 5);
    const FlexOptions o{.score_mod = alibi(slopes), .return_lse = true};
    const FlexBackwardOptions backward{.grad_lse = numbers(device, {2, 4, 20}, 6), .captured_gradients = true};
    const FlexResult made = flex(q, k, v, o);
    const FlexGradients of = flex_backward(g, q, k, v, made, o, backward);
    expect_same("flex_backward", List{of.q, of.k, of.v, of.captured.at(0)}, [&](const List& out) {
      flex_backward_out({out[0], out[1], out[2], {out[3]}}, g, q, k, v, made, o, backward);
    });
    for (double dropout : {0.0, 0.25}) {
      auto options = [&] { return SdpaOptions{.causal = Causal::upper_left, .dropout_p = dropout, .generator = Generator(device, 7)}; };
      const SdpaResult r = sdpa(q, k, v, options());
      expect_same("sdpa", List{r.out, r.lse, r.dropout_state}, [&](const List& out) { sdpa_out({out[0], out[1], out[2]}, q, k, v, options()); });
      const FlexGradients back = sdpa_backward(g, q, k, v, r, options());
      expect_same("sdpa_backward", List{back.q, back.k, back.v}, [&](const List& out) {
        sdpa_backward_out({out[0], out[1], out[2]}, g, q, k, v, r, options());
      });
    }
    const Tensor rows = numbers(device, {30, 4, 16}, 8), keys = numbers(device, {41, 4, 16}, 9), values = numbers(device, {41, 4, 16}, 10);
    const FlexOptions lengths{.return_lse = true,
                              .return_max_scores = true,
                              .varlen = {.cu_seq_q = from_host<std::int32_t>({0, 10, 30}, device), .cu_seq_kv = from_host<std::int32_t>({0, 30, 41}, device)}};
    const FlexResult packed = varlen_attn(rows, keys, values, lengths);
    expect_same("varlen_attn", List{packed.out, packed.lse, packed.max_scores},
                [&](const List& out) { varlen_attn_out({.out = out[0], .lse = out[1], .max_scores = out[2]}, rows, keys, values, lengths); });
    const FlexGradients each = varlen_attn_backward(rows, rows, keys, values, packed, lengths);
    expect_same("varlen_attn_backward", List{each.q, each.k, each.v}, [&](const List& out) {
      varlen_attn_backward_out({out[0], out[1], out[2]}, rows, rows, keys, values, packed, lengths);
    });
    const Tensor x = numbers(device, {2, 9, 32}, 11), slope = numbers(device, {2, 9, 32}, 12);
    const MultiHeadWeights weights{
        .in_weight = numbers(device, {96, 32}, 13), .in_bias = numbers(device, {96}, 14), .out_weight = numbers(device, {32, 32}, 15), .heads = 4};
    const MultiHeadResult heads = multi_head_attention(x, weights);
    expect_same("multi_head_attention", List{heads.out, heads.projected, heads.attended, heads.lse}, [&](const List& out) {
      multi_head_attention_out({out[0], out[1], out[2], out[3], {}}, x, weights);
    });
    const MultiHeadGradients back = multi_head_attention_backward(slope, x, weights, heads);
    expect_same("multi_head_attention_backward", List{back.x, back.in_weight, back.in_bias, back.out_weight, back.out_bias}, [&](const List& out) {
      multi_head_attention_backward_out({out[0], out[1], out[2], out[3], out[4]}, slope, x, weights, heads);
    });
  }
}

TEST(OutForms, RefuseWhatDoesNotFit) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = numbers(device, {4, 8}, 1), i = zeros({4}, {.dtype = DType::i64, .device = device});
    auto code = [&](auto&& f) { return code_of(f); };
    EXPECT_EQ(code([&] { nn::embedding_out(empty({4, 7}, {.device = device}), x, i); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { nn::embedding_out(empty({4, 8}, {.dtype = DType::f16, .device = device}), x, i); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code([&] { nn::embedding_out(empty({8}, {.device = device}).expand({4, 8}), x, i); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code([&] { nn::embedding_out({}, x, i); }), ErrorCode::invalid_argument);
    const Tensor one = empty({8, 8}, {.device = device});
    EXPECT_EQ(code([&] { linalg::matmul_backward_out({.a = one, .b = one}, one, one.clone(), one.clone()); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code([&] {
                nn::rms_norm_backward_out({.weight = empty({8}, {.device = device})}, x, x, zeros({4, 1}, {.device = device}));
              }),
              ErrorCode::invalid_argument)
        << "no weight, no gradient of it";
    EXPECT_EQ(code([&] { sum_out(empty({4}, {.device = device}), x, {.dims = {0}}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { gather_out(x, x, 0, zeros({4, 8}, {.dtype = DType::i64, .device = device})); }), ErrorCode::invalid_overlap);
  }
}

}}  // namespace clutch::testing
