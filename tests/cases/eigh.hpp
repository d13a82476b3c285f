// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of eigh: families of matrices with what is known of their spectra, and the bounds of the contract, in double on the host.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/eigh.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/reduce.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <string>
#include <string_view>
#include <vector>

namespace clutch::cases {

/// A Hermitian matrix of the host, row by row.
struct HostMatrix {
  std::int64_t n = 0;
  std::vector<std::complex<double>> a;
  std::vector<double> spectrum = {};  ///< ascending, if it is known
  std::complex<double>& at(std::int64_t i, std::int64_t j) { return a[static_cast<std::size_t>(i * n + j)]; }
  std::complex<double> at(std::int64_t i, std::int64_t j) const { return a[static_cast<std::size_t>(i * n + j)]; }
  double norm() const {
    double sum = 0, most = 0;
    for (auto x : a) most = std::max(most, std::abs(x));
    if (most == 0) return 0;
    for (auto x : a) sum += std::norm(x / most);
    return most * std::sqrt(sum);
  }
};

struct EighCase {
  static constexpr std::string_view kStem = "eigh";
  using Z = std::complex<double>;
  using EighDriver = linalg::EighDriver;

  static bool is_double(DType dtype) { return dtype == DType::f64 || dtype == DType::c128; }
  static DType real_of(DType dtype) { return dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype; }
  static double epsilon(DType dtype) { return is_double(dtype) ? 0x1p-52 : 0x1p-23; }
  /// Of tridiagonalisation, and with vectors about 9 n^3 in all (Golub and Van Loan, 8.3). Complex reflections take four times as much, rotations twice.
  static double flops(std::int64_t n, bool vectors, bool complex = false) {
    const double reflections = (vectors ? 8.0 : 4.0) / 3 * (complex ? 4 : 1), rotations = vectors ? 19.0 / 3 * (complex ? 2 : 1) : 0;
    return (reflections + rotations) * static_cast<double>(n * n * n);
  }
  static double bytes(std::int64_t n, std::int64_t element) { return static_cast<double>(element * (2 * n * n + n)); }

  static const std::vector<std::string_view>& families() {
    static const std::vector<std::string_view> kAll{"random",    "integers",  "zero",         "identity",  "diagonal", "arithmetic",
                                                    "geometric", "clustered", "two_clusters", "wilkinson", "hilbert",  "laplacian",
                                                    "rank_one",  "repeated",  "blocks",       "graded",    "ones"};
    return kAll;
  }

  /// Q diag(d) Q^H with Q from random reflections.
  static HostMatrix of_spectrum(std::vector<double> d, bool complex, model::Random& random) {
    auto n = static_cast<std::int64_t>(d.size());
    HostMatrix m{n, std::vector<Z>(d.size() * d.size())};
    for (std::int64_t i = 0; i < n; ++i) m.at(i, i) = d[static_cast<std::size_t>(i)];
    std::vector<Z> u(d.size());
    for (int round = 0; round < 3 && n > 1; ++round) {
      double square = 0;
      for (Z& x : u) {
        x = Z(random.uniform(-1, 1), complex ? random.uniform(-1, 1) : 0);
        square += std::norm(x);
      }
      // H = 1 - 2 u u^H / |u|^2 from both sides
      for (int side = 0; side < 2; ++side)
        for (std::int64_t j = 0; j < n; ++j) {
          Z dot = 0;
          for (std::int64_t i = 0; i < n; ++i) dot += std::conj(u[static_cast<std::size_t>(i)]) * (side ? std::conj(m.at(j, i)) : m.at(i, j));
          for (std::int64_t i = 0; i < n; ++i) {
            Z change = 2.0 * dot / square * u[static_cast<std::size_t>(i)];
            if (side)
              m.at(j, i) -= std::conj(change);
            else
              m.at(i, j) -= change;
          }
        }
    }
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) m.at(j, i) = std::conj(m.at(i, j) = i == j ? Z(m.at(i, i).real()) : m.at(i, j));
    std::sort(d.begin(), d.end());
    m.spectrum = d;
    return m;
  }

  static HostMatrix make(std::string_view family, std::int64_t n, bool complex, double eps, std::uint64_t seed) {
    model::Random random(seed * 131 + static_cast<std::uint64_t>(n));
    auto size = static_cast<std::size_t>(n);
    HostMatrix m{n, std::vector<Z>(size * size)};
    std::vector<double> d(size);
    auto x_of = [&](std::int64_t i) { return n > 1 ? static_cast<double>(i) / static_cast<double>(n - 1) : 0.0; };
    auto fill = [&](auto&& f) {
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j <= i; ++j) {
          Z x = f(i, j);
          m.at(i, j) = i == j ? Z(x.real()) : x;
          m.at(j, i) = std::conj(m.at(i, j));
        }
    };
    auto spectrum = [&](auto&& f) {
      for (std::int64_t i = 0; i < n; ++i) d[static_cast<std::size_t>(i)] = f(i);
      m = of_spectrum(d, complex, random);
    };
    auto imaginary = [&](double most) { return complex ? random.uniform(-most, most) : 0.0; };
    if (family == "random") fill([&](auto, auto) { return Z(random.uniform(-1, 1), imaginary(1)); });
    if (family == "integers") fill([&](auto, auto) { return Z(std::round(random.uniform(-8, 8)), std::round(imaginary(8))); });
    if (family == "identity") fill([](auto i, auto j) { return Z(i == j); });
    if (family == "diagonal") fill([&](auto i, auto j) { return Z(i == j ? random.uniform(-1, 1) : 0); });
    if (family == "arithmetic") spectrum([&](auto i) { return 1 - x_of(i) * (1 - eps); });
    if (family == "geometric") spectrum([&](auto i) { return std::pow(eps, x_of(i)); });
    if (family == "clustered") spectrum([&](auto i) { return i == 0 ? 1.0 : eps; });
    if (family == "two_clusters") spectrum([&](auto i) { return i % 2 ? 1.0 : -1.0; });
    if (family == "repeated") spectrum([&](auto i) { return std::floor(static_cast<double>(i) / 3); });
    if (family == "wilkinson") fill([&](auto i, auto j) { return Z(i == j ? std::abs(static_cast<double>(i) - static_cast<double>(n - 1) / 2) : i == j + 1); });
    if (family == "hilbert") fill([&](auto i, auto j) { return Z(1.0 / static_cast<double>(i + j + 1)); });
    if (family == "laplacian") {
      fill([&](auto i, auto j) { return Z(i == j ? 2 : i == j + 1 ? -1 : 0); });
      for (std::int64_t i = 0; i < n; ++i) {
        double s = std::sin(3.14159265358979323846 * static_cast<double>(i + 1) / (2 * static_cast<double>(n + 1)));
        m.spectrum.push_back(4 * s * s);
      }
    }
    if (family == "rank_one" || family == "ones") {
      std::vector<Z> u(size, 1.0);
      if (family == "rank_one")
        for (Z& x : u) x = Z(random.uniform(-1, 1), imaginary(1));
      fill([&](auto i, auto j) { return u[static_cast<std::size_t>(i)] * std::conj(u[static_cast<std::size_t>(j)]); });
    }
    if (family == "blocks") fill([&](auto i, auto j) { return i / 4 == j / 4 ? Z(random.uniform(-1, 1), imaginary(1)) : Z(0); });
    if (family == "graded")
      fill([&](auto i, auto j) {
        return Z((i == j ? 1 + random.uniform(0, 1) : random.uniform(-0.5, 0.5)) * std::pow(10, -0.5 * static_cast<double>(i + j)), 0);
      });
    return m;
  }

  /// Raw elements of matrices in a dtype; the triangle that is not read is NaN.
  static std::vector<std::uint8_t> pack(const std::vector<HostMatrix>& matrices, DType dtype, linalg::Uplo uplo, bool poison = true) {
    bool complex = is_complex(dtype);
    std::int64_t n = matrices.empty() ? 0 : matrices[0].n;
    std::vector<std::uint8_t> raw(bytes_for(dtype, matrices.size() * static_cast<std::uint64_t>(n * n)));
    std::size_t at = 0;
    for (const HostMatrix& m : matrices)
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          bool read = i == j || (uplo == linalg::Uplo::lower) == (i > j);
          Z x = read || !poison ? m.at(i, j) : Z(NAN, NAN);
          if (poison && i == j) x = Z(x.real(), NAN);
          model::store_at(raw.data(), at++, real_of(dtype), x.real());
          if (complex) model::store_at(raw.data(), at++, real_of(dtype), x.imag());
        }
    return raw;
  }

  /// The elements as they were rounded to the dtype.
  static std::vector<HostMatrix> rounded(std::vector<HostMatrix> matrices, DType dtype) {
    for (HostMatrix& m : matrices)
      for (Z& x : m.a) {
        auto round = [&](double v) {
          std::uint8_t raw[8];
          model::store_at(raw, 0, real_of(dtype), v);
          return model::value_at(raw, 0, real_of(dtype));
        };
        x = Z(round(x.real()), round(x.imag()));
      }
    return matrices;
  }

  /// Worst ratios of the contract's bounds over matrices; what must be 30 at most.
  struct Ratios {
    double residual = 0, orthogonality = 0, spectrum = 0;
    bool ascending = true;
  };
  /// `w` has `pairs` values a matrix; `v` its vectors one after another (columns of v); empty: values alone.
  static Ratios ratios(const HostMatrix& m, const double* w, const Z* v, std::int64_t pairs, double eps, const std::vector<double>& want = {}) {
    Ratios r;
    auto n = static_cast<double>(m.n);
    double norm = m.norm(), unit = norm > 0 ? norm : 1;
    auto worse = [](double& worst, double x) {
      if (!(x <= worst)) worst = x;
    };
    for (std::int64_t k = 0; k < pairs; ++k) {
      if (k > 0 && !(w[k - 1] <= w[k])) r.ascending = false;
      if (!want.empty()) worse(r.spectrum, std::abs(w[k] - want[static_cast<std::size_t>(k)]) / (unit * n * eps));
      if (!v) continue;
      const Z* x = v + k * m.n;
      double square = 0;
      for (std::int64_t i = 0; i < m.n; ++i) {
        Z sum = -w[k] * x[i];
        for (std::int64_t j = 0; j < m.n; ++j) sum += m.at(i, j) * x[j];
        square += std::norm(sum / unit);
      }
      worse(r.residual, std::sqrt(square) / (n * eps));
      double of_row = 0;
      for (std::int64_t l = 0; l < pairs; ++l) {
        Z dot = 0;
        for (std::int64_t i = 0; i < m.n; ++i) dot += std::conj(x[i]) * v[l * m.n + i];
        of_row += std::norm(dot - Z(k == l));
      }
      worse(r.orthogonality, std::sqrt(of_row) / (n * eps));
    }
    return r;
  }

  /// Real and imaginary parts of a complex tensor; a real one as it is.
  static std::vector<Tensor> parts_of(const Tensor& t) {
    if (!is_complex(t.dtype())) return {t};
    std::vector<std::int64_t> strides;
    for (int d = 0; d < t.rank(); ++d) strides.push_back(2 * t.strides()[d]);
    auto part = [&](std::uint64_t i) {
      return Tensor(t.storage(), t.byte_offset() + i * (bits(t.dtype()) / 16), t.sizes(), Dims(std::span<const std::int64_t>(strides)), real_of(t.dtype()));
    };
    return {part(0), part(1)};
  }

  /// Matrices of small whole numbers, put together again from their eigenpairs and rounded, which gives them back on any device.
  static Problem problem(std::string_view what, EighDriver driver, DType dtype, std::int64_t batch, std::int64_t n, linalg::Uplo uplo, std::uint64_t seed,
                         bool transposed = false, std::string_view entry = {}) {
    static std::vector<std::string> names;
    static const std::string kEntries[] = {"eigh_automatic", "eigh_closed",      "eigh_jacobi_lanes", "eigh_jacobi_group", "eigh_qr_lanes",
                                           "eigh_qr_group",  "eigh_device_wide", "eigh_jacobi_items", "eigh_qr_items",     "eigh_host"};
    Problem p{.name = fmt::format("{} {} n {}", what, name(dtype), n),
              .entry = entry.empty() ? kEntries[static_cast<std::size_t>(driver)] : entry,
              .needs_fp64 = is_double(dtype)};
    std::vector<HostMatrix> matrices;
    for (std::int64_t m = 0; m < batch; ++m) matrices.push_back(make("integers", n, is_complex(dtype), 0, seed + static_cast<std::uint64_t>(m)));
    p.inputs.push_back({dtype, {batch, n, n}, transposed ? Dims{n * n, 1, n} : Dims{}, pack(matrices, dtype, uplo)});
    std::int64_t parts = is_complex(dtype) ? 2 : 1;
    DType real = real_of(dtype);
    p.output = {real, {parts, batch, n, n}, {}, std::vector<std::uint8_t>(bytes_for(real, static_cast<std::uint64_t>(parts * batch * n * n)))};
    std::size_t at = 0;
    for (std::int64_t part = 0; part < parts; ++part)
      for (const HostMatrix& m : matrices)
        for (Z x : m.a) model::store_at(p.output.raw.data(), at++, real, (part ? x.imag() : x.real()) + 0.0);  // no negative zeros
    p.is_helper = true;                                                                                        // others run after it
    p.run = [=](const Tensor& out, std::span<const Tensor> in, const Stream& stream) {
      auto r = linalg::eigh(in[0], {.uplo = uplo, .driver = driver}, stream);
      std::vector<Tensor> v = parts_of(r.v);
      Tensor w = r.w.unsqueeze(1).unsqueeze(1);
      auto product = [&](const Tensor& x, const Tensor& y) {
        return reduce(
            Reduce::sum, [](Expr a, Expr l, Expr b) { return a * l * b; }, {x.unsqueeze(2), w, y.unsqueeze(1)}, {.dims = {-1}}, stream);
      };
      auto nearest = [](Expr a, Expr b) { return floor(a + b + 0.5f); };
      if (v.size() == 1) {
        map_out(
            out.select(0, 0), [](Expr a) { return floor(a + 0.5f); }, {product(v[0], v[0])}, {}, stream);
      } else {
        map_out(out.select(0, 0), nearest, {product(v[0], v[0]), product(v[1], v[1])}, {}, stream);
        map_out(
            out.select(0, 1), [](Expr a, Expr b) { return floor(a - b + 0.5f); }, {product(v[1], v[0]), product(v[0], v[1])}, {}, stream);
      }
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t seed) {
    using linalg::Uplo;
    return {
        problem("", EighDriver::closed, DType::f32, 37, 2, Uplo::lower, seed),
        problem("", EighDriver::jacobi_lanes, DType::f32, 19, 5, Uplo::lower, seed + 1),
        problem("", EighDriver::qr_lanes, DType::f32, 18, 9, Uplo::upper, seed + 3, true),
        problem("", EighDriver::qr_lanes, DType::c128, 9, 6, Uplo::lower, seed + 4),
        problem("", EighDriver::jacobi_group, DType::f32, 3, 9, Uplo::lower, seed + 5),
        problem("", EighDriver::jacobi_group, DType::c64, 2, 6, Uplo::upper, seed + 6),
        problem("", EighDriver::qr_group, DType::f32, 19, 21, Uplo::upper, seed + 7, true),
        problem("", EighDriver::qr_group, DType::c64, 3, 19, Uplo::upper, seed + 8),
        problem("", EighDriver::device_wide, DType::f32, 2, 19, Uplo::lower, seed + 9),
        problem("", EighDriver::device_wide, DType::c128, 2, 9, Uplo::lower, seed + 10),
        problem("", EighDriver::jacobi_items, DType::f32, 67, 5, Uplo::upper, seed + 11),
        problem("", EighDriver::jacobi_items, DType::c64, 5, 3, Uplo::lower, seed + 12),
        problem("", EighDriver::qr_items, DType::f32, 9, 11, Uplo::lower, seed + 13),
        problem("", EighDriver::qr_items, DType::c64, 18, 6, Uplo::upper, seed + 14, true),
        problem("sweeps", EighDriver::qr_items, DType::f32, 70, 13, Uplo::upper, seed + 15, false, "eigh_qr_sweeps"),
        problem("rotations", EighDriver::qr_items, DType::f32, 7, 10, Uplo::lower, seed + 16, false, "eigh_qr_rotations"),
    };
  }

  static constexpr Mutation kMutations[] = {
      {"eigh_closed", Edit::tail, "i < count * LENGTH", "i + 1 < count * LENGTH"},
      {"eigh_closed", Edit::stride, "from[min(l, count - 1) * stride + i]", "from[min(l, count - 1) + i]"},
      {"eigh_closed", Edit::offset, "(given + first * matrix_stride)", "(given + first * matrix_stride / 2)"},
      {"eigh_closed", Edit::arithmetic, "distance = CLUTCH_REAL(0.5)", "distance = CLUTCH_REAL(0.25)"},
      {"eigh_jacobi_lanes", Edit::tail, "for (int q = p + 1; q < n; ++q)", "for (int q = p + 1; q + 1 < n; ++q)"},
      {"eigh_jacobi_lanes", Edit::stride, "(j)*ri + (i)*rj)", "(j)*ri + (i)*ri)"},
      {"eigh_jacobi_lanes", Edit::offset, "d[i] = CLUTCH_RE(i, i);", "d[i] = CLUTCH_RE(i / 2, i / 2);"},
      {"eigh_jacobi_lanes", Edit::arithmetic, "CLUTCH_RE(q, q) = aqq + rotation.move", "CLUTCH_RE(q, q) = aqq - rotation.move"},
      {"eigh_qr_lanes", Edit::tail, "for (int i = k + 2; i < n; ++i) {", "for (int i = k + 2; i < n - 1; ++i) {"},
      {"eigh_qr_lanes", Edit::stride, "lanes + l * padded(each)", "lanes + l * each"},
      {"eigh_qr_lanes", Edit::offset, "MEM R* row = v + j * v_stride(n); ", "MEM R* row = v + j; "},
      {"eigh_qr_lanes", Edit::arithmetic, "*x = fma(-s, sheared, y);", "*x = fma(s, sheared, y);"},
      {"eigh_jacobi_group", Edit::tail, "round < 2 * pair_count - 1;", "round < 2 * pair_count - 2;"},
      {"eigh_jacobi_group", Edit::stride, "(from + t * halves_stride(n))", "(from + t * half_length(n))"},
      {"eigh_jacobi_group", Edit::offset, "rows[t], next_rows", "rows[t / 2], next_rows"},
      {"eigh_jacobi_group", Edit::arithmetic, "aqq + rotation.move, n);", "aqq - rotation.move, n);"},
      {"eigh_qr_group", Edit::tail, "return eigh_round_up(n, lanes) * capacity;", "return (n - 1) * capacity;"},
      {"eigh_qr_group", Edit::stride, "vectors + l * matrix_size(n), q, n);", "vectors + l * (ulong)row_stride(n), q, n);"},
      {"eigh_qr_group", Edit::offset, "FACTORS_OF_ROW(old_u, old_p, i);", "FACTORS_OF_ROW(old_u, old_p, i - 1);"},
      {"eigh_qr_group", Edit::arithmetic, "by_u[m] *= -h_u", "by_u[m] *= h_u"},
      {"eigh_device_wide", Edit::tail, "step - 1 < n - 2) reduce_tail", "step < n - 2) reduce_tail"},
      {"eigh_device_wide", Edit::stride, "x.factor = scratch + at.factor;", "x.factor = x.rows + 2 * row_stride(n);"},
      {"eigh_device_wide", Edit::offset, "x.tops[have++] = top;", "x.tops[have++] = top / 2;"},
      {"eigh_device_wide", Edit::arithmetic, "by_u[m] *= -h_u", "by_u[m] *= h_u"},
      {"eigh_jacobi_items", Edit::tail, "min(m, count - 1) * stride + begin", "min(m, count - 2) * stride + begin"},
      {"eigh_jacobi_items", Edit::stride, "(size_t)m * (high - low) + number", "(size_t)m * (high - low - 1) + number"},
      {"eigh_jacobi_items", Edit::offset, "at - m * part] = next[i]", "(at - m * part) / 2] = next[i]"},
      {"eigh_jacobi_items", Edit::arithmetic, "CLUTCH_RE(q, q) = aqq + rotation.move", "CLUTCH_RE(q, q) = aqq - rotation.move"},
      {"eigh_qr_items", Edit::tail, "if (k < n - 2) {", "if (k < n - 3) {"},
      {"eigh_qr_items", Edit::stride, "transposed ? low * n + high : high * n + low", "transposed ? low * n + high : high * (n - 1) + low"},
      {"eigh_qr_items", Edit::offset, "QUADS + (q)) * CLUTCH_CAP + ROW_OF(r)]", "QUADS + (q)) * CLUTCH_CAP + item]"},
      {"eigh_qr_items", Edit::arithmetic, "CLUTCH_REAL(-0.5) * h * product_of_columns", "CLUTCH_REAL(0.5) * h * product_of_columns"},
      {"eigh_qr_sweeps", Edit::tail, "end = (top + 3) / 4;", "end = top / 4;"},
      {"eigh_qr_sweeps", Edit::stride, "(T4)(from[0], from[stride], from[2 * stride]", "(T4)(from[0], from[1], from[2 * stride]"},
      {"eigh_qr_sweeps", Edit::offset, "QR_STEP(1, y, d_2, e_2)", "QR_STEP(1, y, d_1, e_2)"},
      {"eigh_qr_sweeps", Edit::arithmetic, "w->d1 = d2 - move", "w->d1 = d2 + move"},
      {"eigh_qr_rotations", Edit::tail, "if (q >= begin && q < end) {", "if (q >= begin && q + 1 < end) {"},
      {"eigh_qr_rotations", Edit::stride, "rotations += 2, next_tangents", "rotations += 1, next_tangents"},
      {"eigh_qr_rotations", Edit::offset, "v->x[r][j + 1], tangents.of", "v->x[r][j], tangents.of"},
      {"eigh_qr_rotations", Edit::arithmetic, "*x = fma(-s, sheared, y);", "*x = fma(s, sheared, y);"},
  };
};

}  // namespace clutch::cases
