// SPDX-License-Identifier: Apache-2.0
#include "support/fixture.hpp"
#include "support/host_model.hpp"

#include <clutch/clutch.hpp>

#include <array>
#include <cmath>
#include <functional>

namespace clutch::testing { namespace {

using linalg::linear;
using linalg::matmul;

Tensor activated(const Tensor& x, nn::Activation activation) {
  switch (activation) {
    case nn::Activation::relu: return relu(x);
    case nn::Activation::gelu: return gelu(x);
    case nn::Activation::gelu_tanh: return gelu(x, GeluForm::tanh);
    case nn::Activation::silu: return silu(x);
    default: return x;
  }
}

/// One launch has the bits of several.
TEST(MatmulLayers, LinearIsItsOpsBitForBit) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (nn::Activation activation : {nn::Activation::none, nn::Activation::relu, nn::Activation::gelu, nn::Activation::gelu_tanh, nn::Activation::silu})
        for (bool biased : {false, true}) {
          const bool whole = dtype == DType::f32 && activation == nn::Activation::gelu && biased;
          if (level() == "smoke" && (dtype != DType::f32 ? activation != nn::Activation::gelu : biased == (activation == nn::Activation::none))) continue;
          Tensor x = randn({3, 5, 40}, {.dtype = dtype, .device = device, .seed = 1}), w = randn({70, 40}, {.dtype = dtype, .device = device, .seed = 2});
          Tensor bias = biased ? randn({70}, {.dtype = dtype, .device = device, .seed = 3}) : Tensor();
          Tensor y = linear(x, w, bias, {.activation = activation});
          EXPECT_EQ(y.dtype(), dtype);
          Tensor want = matmul(x, w.mT(), {.dtype = DType::f32});
          if (biased) want = add(want, bias.to(DType::f32));
          want = activated(want, activation).to(dtype);
          EXPECT_EQ(y.to_bytes(), want.to_bytes()) << name(dtype) << " " << static_cast<int>(activation) << " " << biased;
          if (!whole && level() == "smoke") continue;
          EXPECT_EQ(linear(x, linalg::PackedMatrix(w.mT()), bias, {.activation = activation}).to_bytes(), y.to_bytes());
          EXPECT_EQ(linear(x.select(0, 1).select(0, 2), w, bias, {.activation = activation}).to_bytes(), y.select(0, 1).select(0, 2).contiguous().to_bytes());
        }
  }
}

TEST(MatmulLayers, EpiloguesOfAllKinds) {
  CLUTCH_EACH_DEVICE(device) {
    auto f = [&](const Dims& sizes, std::uint64_t seed) { return randn(sizes, {.device = device, .seed = seed}); };
    Tensor a = f({2, 3, 9, 20}, 1), b = f({3, 20, 50}, 2), product = matmul(a, b);
    // Rows, columns, batches, whole residuals; a param; a captured tensor; positions.
    Tensor row = f({9, 1}, 3), column = f({50}, 4), of_batch = f({3, 1, 1}, 5), residual = f({2, 3, 50, 9}, 6).mT(), table = f({50}, 7);
    auto all = [](Expr x, Expr r, Expr c, Expr o, Expr s) { return (x + c) * r + o * s + param(0.5f); };
    EXPECT_EQ(matmul(a, b, all, {row, column, of_batch, residual}).to_bytes(), map(all, {product, row, column, of_batch, residual}).to_bytes());
    Captured at = captured(table);
    auto placed = [&](Expr x) { return select(position(-1) > position(-2), x, at[position(-1)]); };
    EXPECT_EQ(matmul(a, b, placed).to_bytes(), map(placed, {product}).to_bytes());
    // By way of the product: positions in batch dims, many inputs.
    auto batched = [&](Expr x) { return x + cast(position(0), DType::f32) * 100.0f + cast(position(1), DType::f32); };
    EXPECT_EQ(matmul(a, b, batched).to_bytes(), map(batched, {product}).to_bytes());
    auto many = [](Expr x, Expr p, Expr q, Expr r, Expr s, Expr t, Expr u, Expr v) { return x + p + q + r + s + t + u + v; };
    EXPECT_EQ(matmul(a, b, many, {row, column, row, column, row, column, residual}).to_bytes(),
              map(many, {product, row, column, row, column, row, column, residual}).to_bytes());
    // Another dtype of the result; integers; 64-bit values.
    auto sign = [](Expr x) { return cast(x * 3.0f, DType::i8); };
    EXPECT_EQ(matmul(a, b, sign).dtype(), DType::i8);
    EXPECT_EQ(matmul(a, b, sign).to_bytes(), map(sign, {product}).to_bytes());
    auto whole = [](Expr x) { return cast(x * 100.0f, DType::i64) * std::int64_t{3}; };
    EXPECT_EQ(matmul(a, b, whole).to_bytes(), map(whole, {product}).to_bytes());
    EXPECT_EQ(matmul(a, linalg::PackedMatrix(b), whole).to_bytes(), map(whole, {product}).to_bytes());
    // In place: an input may be the output.
    Tensor out = residual.contiguous(), want = map([](Expr x, Expr y) { return x - y; }, {product, out});
    const Tensor inputs[] = {out};
    linalg::matmul_out(out, a, b, trace([](Expr x, Expr y) { return x - y; }, std::array{DType::f32, DType::f32}), inputs);
    EXPECT_EQ(out.to_bytes(), want.to_bytes());
    EXPECT_EQ(code_of([&] { matmul(a, b, [](Expr x, Expr y) { return x + y; }, {f({7}, 1)}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { matmul(a.select(0, 0).select(0, 0).select(0, 0), b, [](Expr x, Expr y) { return x + y; }, {column}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { matmul(a, linalg::PackedMatrix()); }), ErrorCode::invalid_argument);
  }
}

/// The results' strides decide in which order the batch is gone through; a PackedMatrix was packed in the order of its own.
TEST(MatmulLayers, PackedBatchesAreTakenInAnyOrder) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::i8, DType::c64, DType::f16}) {
      const Tensor a = dtype == DType::c64 ? empty({2, 3, 5, 7}, {.dtype = dtype, .device = device})
                                           : map([](Expr x) { return x * 4.0f; }, {randn({2, 3, 5, 7}, {.device = device, .seed = 1})}).to(dtype),
                   b = dtype == DType::c64 ? empty({2, 3, 7, 31}, {.dtype = dtype, .device = device})
                                           : map([](Expr x) { return x * 4.0f; }, {randn({2, 3, 7, 31}, {.device = device, .seed = 2})}).to(dtype);
      if (dtype == DType::c64) fill_(a, 2), fill_(b.select(0, 1), 3), fill_(b.select(0, 0), 1), fill_(b.select(1, 2), 5);
      const linalg::PackedMatrix packed(b);
      const Tensor want = linalg::matmul(a, b);
      const Tensor memory = empty({5, 31, 3, 2}, {.dtype = want.dtype(), .device = device});
      for (const Tensor& out : {memory.transpose(0, 3).transpose(1, 2).mT(), memory.reshape({5, 31, 2, 3}).transpose(0, 2).transpose(1, 3),
                                empty({3, 2, 5, 31}, {.dtype = want.dtype(), .device = device}).transpose(0, 1)}) {
        linalg::matmul_out(out, a, packed);
        EXPECT_EQ(out.to_bytes(), want.to_bytes()) << name(dtype) << " strides " << to_string(out.strides());
        linalg::matmul_out(out.select(0, 1), a.select(0, 1), linalg::PackedMatrix(b.select(0, 1)));
        EXPECT_EQ(out.to_bytes(), want.to_bytes()) << name(dtype) << " strides " << to_string(out.strides());
      }
    }
  }
}

/// Sums of gradient times direction against differences, in f64.
TEST(MatmulLayers, GradientsAreThoseOfDifferences) {
  CLUTCH_EACH_DEVICE(device) {
    if (skip_without(device, "fp64", device.traits().fp64)) continue;
    auto f = [&](const Dims& sizes, std::uint64_t seed) { return randn(sizes, {.dtype = DType::f64, .device = device, .seed = seed}); };
    auto dot = [](const Tensor& x, const Tensor& y) { return sum(mul(x, y)).item(); };
    auto check = [&](const std::function<Tensor(const std::vector<Tensor>&)>& of, const std::vector<Tensor>& at, const std::vector<Tensor>& gradients,
                     const Tensor& grad, const char* what) {
      for (std::size_t i = 0; i < at.size(); ++i) {
        ASSERT_EQ(gradients[i].sizes(), at[i].sizes()) << what << i;
        Tensor way = f(at[i].sizes(), 77 + i);
        const double h = 1e-5;
        std::vector<Tensor> up = at, down = at;
        up[i] = add(at[i], mul(way, h)), down[i] = sub(at[i], mul(way, h));
        double want = dot(grad, sub(of(up), of(down))) / (2 * h), got = dot(gradients[i], way);
        EXPECT_NEAR(got, want, 1e-6 * (1 + std::fabs(want))) << what << " " << i;
      }
    };
    struct Case {
      Dims a, b, c;
    };
    for (const Case& s : {Case{{4, 6}, {6, 5}, {4, 5}}, Case{{3, 4, 6}, {6, 5}, {3, 4, 5}}, Case{{2, 1, 4, 6}, {3, 6, 5}, {2, 3, 4, 5}}, Case{{6}, {6, 5}, {5}},
                          Case{{4, 6}, {6}, {4}}, Case{{6}, {6}, {}}}) {
      Tensor a = f(s.a, 1), b = f(s.b, 2), grad = f(s.c, 3);
      linalg::MatmulGradients g = linalg::matmul_backward(grad, a, b);
      check([](const std::vector<Tensor>& t) { return matmul(t[0], t[1]); }, {a, b}, {g.a, g.b}, grad, "matmul");
    }
    for (nn::Activation activation : {nn::Activation::none, nn::Activation::gelu, nn::Activation::silu})
      for (const Dims& x_sizes : {Dims{3, 4, 6}, Dims{6}}) {
        Dims y_sizes = x_sizes;
        y_sizes[y_sizes.rank() - 1] = 5;
        Tensor x = f(x_sizes, 1), w = f({5, 6}, 2), bias = f({5}, 3), grad = f(y_sizes, 4);
        linalg::LinearOptions options{.activation = activation};
        linalg::LinearGradients g = linalg::linear_backward(grad, x, w, bias, options);
        check([&](const std::vector<Tensor>& t) { return linear(t[0], t[1], t[2], options); }, {x, w, bias}, {g.x, g.weight, g.bias}, grad, "linear");
      }
    Tensor a = f({4, 6}, 1), b = f({6, 5}, 2), scale = f({4, 1}, 3), grad = f({4, 5}, 4);
    auto epilogue = trace([](Expr x, Expr s) { return tanh(x * s); }, std::array{DType::f64, DType::f64});
    const Tensor inputs[] = {scale};
    linalg::MatmulGradients g = linalg::matmul_backward(grad, a, b, epilogue, inputs);
    check(
        [&](const std::vector<Tensor>& t) {
          const Tensor more[] = {t[2]};
          return matmul(t[0], t[1], epilogue, more);
        },
        {a, b, scale}, {g.a, g.b, g.inputs[0]}, grad, "epilogue");
  }
}

TEST(MatmulLayers, DtypesOfGradients) {
  CLUTCH_EACH_DEVICE(device) {
    auto of = [&](const Dims& sizes, DType dtype) { return full(sizes, 1, {.dtype = dtype, .device = device}); };
    auto backward = [&](DType grad, DType a, DType b) { return linalg::matmul_backward(of({2, 3}, grad), of({2, 4}, a), of({4, 3}, b)); };
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      linalg::MatmulGradients g = backward(dtype, dtype, dtype);
      EXPECT_EQ(g.a.dtype(), dtype);
      EXPECT_EQ(g.b.dtype(), dtype);
      for (DType of_bias : {DType::f32, DType::bf16})
        for (nn::Activation activation : {nn::Activation::none, nn::Activation::silu}) {
          auto l = linalg::linear_backward(of({300, 3}, dtype), of({300, 4}, dtype), of({3, 4}, dtype), of({3}, of_bias), {.activation = activation});
          EXPECT_EQ(l.x.dtype(), dtype);
          EXPECT_EQ(l.weight.dtype(), dtype);
          EXPECT_EQ(l.bias.dtype(), of_bias);
          if (activation == nn::Activation::none) {
            EXPECT_EQ(l.bias.to(DType::f32).to_host<float>()[0], 300) << "of bf16, too";
          }
        }
    }
    for (DType dtype : {DType::i8, DType::u8, DType::f8e4m3fn, DType::c64}) {
      auto zeros_of = [&](const Dims& sizes) { return zeros(sizes, {.dtype = dtype, .device = device}); };
      EXPECT_EQ(code_of([&] { linalg::matmul_backward(zeros_of({2, 3}), zeros_of({2, 4}), zeros_of({4, 3})); }), ErrorCode::invalid_dtype) << name(dtype);
    }
    EXPECT_EQ(code_of([&] { backward(DType::f32, DType::bf16, DType::bf16); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(message_of([&] { backward(DType::f32, DType::bf16, DType::bf16); }),
              "linalg::matmul_backward: grad, a and b must be of one dtype of f64, f32, f16 and bf16, got f32, bf16 and bf16");
    EXPECT_EQ(code_of([&] { linalg::matmul_backward(of({2, 3}, DType::f32), Tensor(), of({4, 3}, DType::f32)); }), ErrorCode::invalid_argument);
  }
}

TEST(MatmulLayers, ScaledProductsOfF8) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = randn({7, 48}, {.device = device, .seed = 1}), y = randn({33, 48}, {.device = device, .seed = 2});
    Tensor a = x.to(DType::f8e4m3fn), b = y.to(DType::f8e5m2).mT();
    Tensor one = full({}, 0.25, {.device = device}), rows = rand({7, 1}, {.device = device, .seed = 3}), columns = rand({1, 33}, {.device = device, .seed = 4});
    Tensor bias = randn({33}, {.dtype = DType::bf16, .device = device, .seed = 5}), product = matmul(a.to(DType::f32), b.to(DType::f32));
    auto scaled = [](Expr p, Expr sa, Expr sb) { return p * (sa * sb); };
    EXPECT_EQ(linalg::scaled_matmul(a, b, one, one, {.dtype = DType::f32}).to_bytes(), map(scaled, {product, one, one}).to_bytes());
    EXPECT_EQ(linalg::scaled_matmul(a, b, rows, columns).to_bytes(), map(scaled, {product, rows, columns}).to(DType::bf16).to_bytes());
    EXPECT_EQ(
        linalg::scaled_matmul(a, linalg::PackedMatrix(b), rows, columns, {.bias = bias, .dtype = DType::f16}).to_bytes(),
        map([](Expr p, Expr sa, Expr sb, Expr c) { return fma(p, sa * sb, c); }, {product, rows, columns, bias.to(DType::f32)}).to(DType::f16).to_bytes());
    EXPECT_EQ(code_of([&] { linalg::scaled_matmul(a, b, one.to(DType::f16), one); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { linalg::scaled_matmul(a, b, one, one, {.dtype = DType::i32}); }), ErrorCode::invalid_dtype);
  }
}

/// Against whole numbers on the host, and one rounding of each step in f32.
TEST(MatmulLayers, QuantizedProducts) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kM = 6, kN = 35, kK = 70;
    for (bool by_row : {false, true})
      for (DType result : {DType::f32, DType::i8, DType::u8}) {
        std::vector<std::uint8_t> x = model::make_values(kM * kK, DType::u8, seed()), y = model::make_values(kK * kN, DType::i8, seed() + 1);
        Tensor a = from_bytes(x.data(), x.size(), {kM, kK}, {.dtype = DType::u8, .device = device});
        Tensor b = from_bytes(y.data(), y.size(), {kK, kN}, {.dtype = DType::i8, .device = device});
        auto numbers = [&](std::int64_t count, double low, double high, std::uint64_t from) {
          model::Random random(from);
          std::vector<float> v;
          for (std::int64_t i = 0; i < count; ++i) v.push_back(static_cast<float>(random.uniform(low, high)));
          return v;
        };
        const std::int64_t rows = by_row ? kM : 1, columns = by_row ? kN : 1;
        std::vector<float> sa = numbers(rows, 0.01, 0.02, 3), sb = numbers(columns, 0.01, 0.02, 4), bias = numbers(kN, -1, 1, 5);
        std::vector<std::int32_t> za, zb;
        for (std::int64_t i = 0; i < rows; ++i) za.push_back(static_cast<std::int32_t>(120 + i));
        for (std::int64_t j = 0; j < columns; ++j) zb.push_back(static_cast<std::int32_t>(j % 5 - 2));
        const float out_scale = 0.25f;
        const std::int32_t out_zero = result == DType::u8 ? 128 : 3;
        linalg::QuantizedMatmulOptions options{.bias = from_host(bias, {kN}, device), .dtype = result};
        if (result != DType::f32)
          options.result = {from_host(std::vector<float>{out_scale}, {1}, device), from_host(std::vector<std::int32_t>{out_zero}, {1}, device)};
        Tensor got = linalg::quantized_matmul(a, {from_host(sa, {rows, 1}, device), from_host(za, {rows, 1}, device)}, b,
                                              {from_host(sb, {1, columns}, device), from_host(zb, {1, columns}, device)}, options);
        std::vector<std::uint8_t> raw = got.to_bytes(), want(raw.size());
        for (std::int64_t i = 0; i < kM; ++i)
          for (std::int64_t j = 0; j < kN; ++j) {
            auto of = [](const std::vector<std::uint8_t>& v, std::int64_t at, DType d) {
              return static_cast<std::int32_t>(model::value_at(v.data(), static_cast<std::size_t>(at), d));
            };
            const auto r = static_cast<std::size_t>(by_row ? i : 0), c = static_cast<std::size_t>(by_row ? j : 0);
            std::int32_t sum = 0;
            for (std::int64_t l = 0; l < kK; ++l) sum += (of(x, i * kK + l, DType::u8) - za[r]) * (of(y, l * kN + j, DType::i8) - zb[c]);
            float value = static_cast<float>(sum) * (sa[r] * sb[c]) + bias[static_cast<std::size_t>(j)];
            double stored = static_cast<double>(value);
            if (result != DType::f32) {
              float q = std::nearbyint(value / out_scale) + static_cast<float>(out_zero);
              stored = static_cast<double>(std::min(std::max(q, result == DType::i8 ? -128.0f : 0.0f), result == DType::i8 ? 127.0f : 255.0f));
            }
            model::store_at(want.data(), static_cast<std::size_t>(i * kN + j), result, stored);
          }
        EXPECT_EQ(raw, want) << by_row << " " << name(result);
      }
  }
}

}}  // namespace clutch::testing
