// SPDX-License-Identifier: Apache-2.0
// Complex tensors beside the standard library's complex numbers in double.
#include <clutch/complex.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/random.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/pointwise.hpp>

#include "support/fixture.hpp"
#include "support/host_model.hpp"

#include <complex>

namespace clutch::testing { namespace {

using Z = std::complex<double>;

/// n numbers of moderate size, with zeros, axes and magnitudes whose squares overflow f32 among them.
std::vector<Z> numbers(std::size_t n, std::uint64_t seed) {
  std::vector<Z> made;
  model::Random random(seed);
  const Z special[] = {{0, 0}, {3, 0}, {0, -2}, {1e30, 1e30}, {-2e-25, 1e-25}, {1, 1}, {-0.0, 5}};
  for (std::size_t i = 0; i < n; ++i) made.push_back(i % 5 == 4 ? special[i / 5 % std::size(special)] : Z(random.uniform(-3, 3), random.uniform(-3, 3)));
  for (Z& z : made) z = Z(static_cast<float>(z.real()), static_cast<float>(z.imag()));  // exact in both dtypes
  return made;
}

template <class T>
Tensor upload(const std::vector<Z>& values, const Dims& sizes, const Device& device) {
  const std::vector<std::complex<T>> rounded(values.begin(), values.end());
  return from_host(rounded, sizes, device);
}

/// The largest distance of c64 or c128 results from the exact ones, in units of eps |exact|.
template <class T>
double worst(const Tensor& got, const std::vector<Z>& exact) {
  const std::vector<std::complex<T>> values = got.to_host<std::complex<T>>();
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Z given(values[i].real(), values[i].imag());
    if (exact[i] == given || (std::isnan(exact[i].real()) && std::isnan(given.real()))) continue;
    const double size = std::abs(exact[i]);
    if (size > static_cast<double>(std::numeric_limits<T>::max()) / 4) continue;  // past the range of parts
    most = std::max(most, std::abs(given - exact[i]) / (static_cast<double>(std::numeric_limits<T>::epsilon()) * size + 1e-40));
  }
  return most;
}

template <class T>
void check_arithmetic(const Device& device) {
  const std::size_t n = 211;
  const std::vector<Z> a = numbers(n, 1), b = numbers(n, 2);
  const Tensor x = upload<T>(a, {211}, device), y = upload<T>(b, {211}, device);
  auto each = [&](auto&& f) {
    std::vector<Z> exact;
    for (std::size_t i = 0; i < n; ++i) exact.push_back(f(a[i], b[i]));
    return exact;
  };
  EXPECT_LE(worst<T>(add(x, y), each([](Z p, Z q) { return p + q; })), 1);
  EXPECT_LE(worst<T>(sub(x, y), each([](Z p, Z q) { return p - q; })), 1);
  EXPECT_LE(worst<T>(mul(x, y), each([](Z p, Z q) { return p * q; })), 3);
  EXPECT_LE(worst<T>(square(x), each([](Z p, Z) { return p * p; })), 3);
  EXPECT_EQ(worst<T>(neg(x), each([](Z p, Z) { return -p; })), 0);
  EXPECT_EQ(worst<T>(conj(x), each([](Z p, Z) { return std::conj(p); })), 0);
  EXPECT_LE(worst<T>(mul(x, 2.5), each([](Z p, Z) { return p * 2.5; })), 1);
  EXPECT_LE(worst<T>(1.0 - x, each([](Z p, Z) { return 1.0 - p; })), 1);
  std::vector<Z> quotients;
  for (std::size_t i = 0; i < n; ++i) quotients.push_back(b[i] == Z(0) ? Z(NAN, NAN) : a[i] / b[i]);
  const auto got = div(x, y).template to_host<std::complex<T>>();
  for (std::size_t i = 0; i < n; ++i) {
    if (b[i] == Z(0)) {
      EXPECT_FALSE(std::isfinite(got[i].real()) && std::isfinite(got[i].imag())) << i;
    } else if (std::abs(quotients[i]) > 1e-30) {
      EXPECT_LE(std::abs(Z(got[i].real(), got[i].imag()) - quotients[i]), 8 * static_cast<double>(std::numeric_limits<T>::epsilon()) * std::abs(quotients[i]))
          << a[i] << " / " << b[i];
    }
  }
  const std::vector<T> lengths = abs(x).template to_host<T>();
  for (std::size_t i = 0; i < n; ++i)
    EXPECT_NEAR(static_cast<double>(lengths[i]), std::abs(a[i]), 3 * static_cast<double>(std::numeric_limits<T>::epsilon()) * std::abs(a[i])) << a[i];
  const std::vector<Z> small = each([](Z p, Z) { return std::abs(p) < 10 ? p : Z(0, 1); });
  std::vector<Z> powers;
  for (Z z : small) powers.push_back(std::exp(z));
  EXPECT_LE(worst<T>(exp(upload<T>(small, {211}, device)), powers), 6);
  const std::vector<std::uint8_t> same = eq(x, x.clone()).to_bytes(), other = ne(x, y).to_bytes();
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(same[i], 1);
    EXPECT_EQ(other[i], a[i] != b[i]);
  }
}

TEST(Complex, ArithmeticIsThatOfComplexNumbers) {
  CLUTCH_EACH_DEVICE(device) {
    check_arithmetic<float>(device);
    if (device.traits().fp64) check_arithmetic<double>(device);
  }
}

TEST(Complex, ViewsShareMemory) {
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<Z> a = numbers(12, 3);
    const Tensor x = upload<float>(a, {3, 4}, device).transpose(0, 1), re = real(x), im = imag(x);
    ASSERT_TRUE(re.shares_storage(x) && im.shares_storage(x));
    const std::vector<float> of_re = re.contiguous().to_host<float>(), of_im = im.contiguous().to_host<float>();
    for (std::size_t i = 0; i < 12; ++i) {
      const Z z = a[i % 3 * 4 + i / 3];
      EXPECT_EQ(of_re[i], static_cast<float>(z.real()));
      EXPECT_EQ(of_im[i], static_cast<float>(z.imag()));
    }
    const Tensor pairs = view_as_real(x);
    EXPECT_EQ(pairs.sizes(), (Dims{4, 3, 2}));
    const Tensor back = view_as_complex(pairs);
    EXPECT_EQ(back.sizes(), x.sizes());
    EXPECT_EQ(back.strides(), x.strides());
    EXPECT_EQ(back.dtype(), DType::c64);
    EXPECT_EQ(complex(re, im).to_bytes(), x.to_bytes());
    EXPECT_EQ(complex(re, im.slice(0, 0, 1)).sizes(), x.sizes()) << "parts broadcast";
    fill_(x, Z(2, -3));
    EXPECT_EQ(re.contiguous().to_host<float>(), std::vector<float>(12, 2.0f));
    EXPECT_EQ(im.contiguous().to_host<float>(), std::vector<float>(12, -3.0f));
    EXPECT_EQ(real(re).to_bytes(), re.to_bytes());
  }
}

TEST(Complex, LambdasInPlaceAndOfMixedTensors) {
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<Z> a = numbers(4, 4), b = numbers(4, 5);
    const Tensor x = upload<float>(a, {4}, device), y = upload<float>(b, {4}, device), scale = arange(0, 4, 1, {.device = device}).reshape({4, 1});
    const Tensor made =
        map_complex([](const ComplexExpr& z, const ComplexExpr& w, const ComplexExpr& s) { return s * (z * conj(w)) + Z(0, 1); }, {x, y, scale});
    ASSERT_EQ(made.sizes(), (Dims{4, 4}));
    const std::vector<std::complex<float>> got = made.to_host<std::complex<float>>();
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t row = i / 4;
      const Z want = static_cast<double>(row) * (a[i % 4] * std::conj(b[i % 4])) + Z(0, 1);
      EXPECT_LE(std::abs(Z(got[i].real(), got[i].imag()) - want), 4e-7 * (1 + 3 * std::abs(a[i % 4] * b[i % 4])));
    }
    const Tensor product = mul(x, y);
    mul_(x, y);
    EXPECT_EQ(x.to_bytes(), product.to_bytes());
    conj_(x);
    EXPECT_EQ(x.to_bytes(), conj(product).to_bytes());
    const Tensor norms = map_complex([](const ComplexExpr& z) { return z.re() * z.re() + z.im() * z.im(); }, {x});
    EXPECT_EQ(norms.dtype(), DType::f32);
    if (device.traits().fp64) {
      EXPECT_EQ(mul(x, zeros({4}, {.dtype = DType::f64, .device = device})).dtype(), DType::c128);
    }
    EXPECT_EQ(add(empty({0}, {.dtype = DType::c64, .device = device}), 1).numel(), 0);
  }
}

TEST(Complex, SumsMeansAndRandomNumbers) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = randn({50, 400}, {.dtype = DType::c64, .device = device, .seed = 7}), re = real(x), im = imag(x);
    for (const ReduceOptions& o : {ReduceOptions{}, ReduceOptions{.dims = {-1}}, ReduceOptions{.dims = {0}, .keepdim = true}}) {
      EXPECT_EQ(real(sum(x, o)).contiguous().to_bytes(), sum(re, o).to_bytes());
      EXPECT_EQ(imag(mean(x, o)).contiguous().to_bytes(), mean(im, o).to_bytes());
      const Tensor out = empty(sum(re, o).sizes(), {.dtype = DType::c64, .device = device});
      sum_out(out, x, o);
      EXPECT_EQ(out.to_bytes(), sum(x, o).to_bytes());
    }
    // 20,000 numbers: each part has the variance 1/2 and the parts do not correlate.
    EXPECT_NEAR(var(re).item(), 0.5, 0.03);
    EXPECT_NEAR(var(im.contiguous()).item(), 0.5, 0.03);
    EXPECT_NEAR(mean(mul(re, im)).item(), 0, 0.02);
    const Tensor u = rand({300}, {.dtype = DType::c64, .device = device, .seed = 8});
    EXPECT_GE(amin(view_as_real(u)).item(), 0);
    EXPECT_LT(amax(view_as_real(u)).item(), 1);
  }
}

TEST(Complex, RefusesWhatHasNoMeaning) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor z = zeros({2, 2}, {.dtype = DType::c64, .device = device}), x = zeros({2, 3}, {.device = device});
    EXPECT_EQ(code_of([&] { lt(z, z); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { floor(z); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { relu(z); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sum(z, {.dtype = DType::f32}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { imag(x); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { view_as_real(x); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { complex(x, x.to(DType::i32)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { fill_(x, Z(1, 1)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { add_(x.slice(1, 0, 2), z); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { amax(z); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { view_as_complex(x); }), ErrorCode::invalid_shape);
    const Tensor pairs = zeros({3, 2}, {.device = device}), line = zeros({5}, {.device = device});
    EXPECT_EQ(code_of([&] { view_as_complex(pairs.as_strided({2, 2}, {3, 1})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { view_as_complex(line.slice(0, 1, 3)); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { real(Tensor()); }), ErrorCode::invalid_argument);
  }
}

}}  // namespace clutch::testing
