// SPDX-License-Identifier: Apache-2.0
#include "cases/eigh.hpp"

#include "eigh/args.h"
#include "ops/eigh_plan.hpp"
#include "runtime/quirks.hpp"
#include "support/op_runner.hpp"

#include <lapacke.h>
#include <complex>
#include <random>

namespace clutch::testing { namespace {

using cases::EighCase;
using cases::HostMatrix;
using detail::EighBatch;
using linalg::EighDriver;
using linalg::EighOptions;
using linalg::Uplo;
using Z = std::complex<double>;

constexpr EighDriver kDrivers[] = {EighDriver::closed,      EighDriver::jacobi_lanes, EighDriver::jacobi_group, EighDriver::qr_lanes, EighDriver::qr_group,
                                   EighDriver::device_wide, EighDriver::jacobi_items, EighDriver::qr_items,     EighDriver::host};
constexpr DType kDtypes[] = {DType::f32, DType::f64, DType::c64, DType::c128};

/// By day a few sizes stand for all of the drivers by items, which have a program for each class, and a large one.
bool left_to_night(EighDriver driver, std::int64_t n) {
  if (level() != "smoke") return false;
  return (driver == EighDriver::jacobi_items && n != 3 && n != 8) || (driver == EighDriver::qr_items && n > 16);
}

/// Drivers that take matrices of that size on the device; the default one first.
std::vector<EighDriver> drivers_for(const Device& device, DType dtype, std::int64_t n) {
  std::vector<EighDriver> all{EighDriver::automatic};
  for (EighDriver driver : kDrivers) {
    if (left_to_night(driver, n)) continue;
    detail::EighProblem problem{dtype, true, detail::eigh_size_class(n)};
    if (code_of([&] { detail::select(device.traits(), problem, fmt::format("eigh_{}", linalg::name(driver))); }) == ErrorCode::ok) all.push_back(driver);
  }
  return all;
}

/// True if jacobi_items takes matrices of that size.
bool takes_relative(const Device& device, DType dtype, std::int64_t n) {
  const detail::EighProblem problem{dtype, true, detail::eigh_size_class(n), true};
  return code_of([&] { detail::select(device.traits(), problem, "eigh_jacobi_items"); }) == ErrorCode::ok;
}

std::vector<double> numbers(const Tensor& t) {
  std::vector<std::uint8_t> raw = t.to_bytes();
  std::vector<double> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(t.numel()); ++i) all.push_back(model::value_at(raw.data(), i, t.dtype()));
  return all;
}

/// Columns of v, one after another, matrix by matrix.
std::vector<Z> columns(const Tensor& v) {
  std::vector<Tensor> parts = EighCase::parts_of(v.mT());
  std::vector<double> re = numbers(parts[0].contiguous()), im = parts.size() > 1 ? numbers(parts[1].contiguous()) : std::vector<double>(re.size());
  std::vector<Z> all;
  for (std::size_t i = 0; i < re.size(); ++i) all.emplace_back(re[i], im[i]);
  return all;
}

std::vector<double> lapack_values(const HostMatrix& m) {
  std::vector<Z> a = m.a;
  std::vector<double> w(a.size() + 1);
  auto n = static_cast<lapack_int>(m.n);
  EXPECT_EQ(LAPACKE_zheev(LAPACK_ROW_MAJOR, 'N', 'L', n, reinterpret_cast<lapack_complex_double*>(a.data()), std::max(n, 1), w.data()), 0);
  w.resize(static_cast<std::size_t>(m.n));
  return w;
}

/// Solves matrices of the host and checks all bounds of the contract; returns what is wrong.
std::string wrong_in(const Device& device, const std::vector<HostMatrix>& given, DType dtype, const EighOptions& options) {
  std::vector<HostMatrix> matrices = EighCase::rounded(given, dtype);
  std::int64_t n = matrices[0].n, batch = static_cast<std::int64_t>(matrices.size());
  std::vector<std::uint8_t> raw = EighCase::pack(matrices, dtype, options.uplo);
  Tensor a = from_bytes(raw.data(), raw.size(), {batch, n, n}, {.dtype = dtype, .device = device});
  auto [w, v, status] = linalg::eigh(a, options);
  const auto& [info, sweeps] = status;
  if (options.driver != EighDriver::automatic && !last_plan().starts_with(fmt::format("eigh_{} ", linalg::name(options.driver)))) return "ran " + last_plan();
  for (std::int32_t code : info.to_host<std::int32_t>())
    if (code != 0) return fmt::format("info {}", code);
  std::vector<double> values = numbers(w), values_alone = values;
  if ((options.driver == EighDriver::automatic && n <= 13) || level() != "smoke") values_alone = numbers(linalg::eigvalsh(a, options).w);
  std::vector<Z> vectors = columns(v);
  double eps = EighCase::epsilon(dtype);
  for (std::int64_t m = 0; m < batch; ++m) {
    const HostMatrix& matrix = matrices[static_cast<std::size_t>(m)];
    std::vector<double> want = lapack_values(matrix);
    auto r = EighCase::ratios(matrix, &values[static_cast<std::size_t>(m * n)], &vectors[static_cast<std::size_t>(m * n * n)], n, eps, want);
    auto s = EighCase::ratios(matrix, &values_alone[static_cast<std::size_t>(m * n)], nullptr, n, eps, want);
    if (!(r.residual <= 30) || !(r.orthogonality <= 30) || !(r.spectrum <= 30) || !(s.spectrum <= 30) || !r.ascending || !s.ascending)
      return fmt::format("matrix {}: residual {:.3g}, orthogonality {:.3g}, values {:.3g} and alone {:.3g} (30 at most), ascending {} {}", m, r.residual,
                         r.orthogonality, r.spectrum, s.spectrum, r.ascending, s.ascending);
  }
  return {};
}

/// By day two dtypes stand for all: a program of its own for each is what these tests take long for.
bool left_to_night(DType dtype) { return level() == "smoke" && (dtype == DType::f64 || dtype == DType::c64); }

std::vector<std::int64_t> sizes_of_level() {
  if (level() == "smoke") return {1, 2, 3, 4, 5, 8, 13, 16, 17, 22, 33};
  std::vector<std::int64_t> all;
  for (std::int64_t n = 1; n <= 40; ++n) all.push_back(n);
  for (std::int64_t n : {48, 64, 65, 100, 128, 200, 256}) all.push_back(n);
  if (level() == "nightly") all.push_back(512);
  return all;
}

TEST(Eigh, EveryDriverKeepsTheBoundsOnEveryFamily) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : kDtypes) {
      if (left_to_night(dtype)) continue;
      if (EighCase::is_double(dtype) && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t n : sizes_of_level()) {
        std::vector<HostMatrix> matrices;
        for (std::string_view family : EighCase::families())
          if (n <= 64 || family == "random" || family == "clustered" || family == "repeated")
            matrices.push_back(EighCase::make(family, n, is_complex(dtype), EighCase::epsilon(dtype), seed()));
        for (EighDriver driver : drivers_for(device, dtype, n))
          for (Uplo uplo : {Uplo::lower, Uplo::upper}) {
            if (uplo == Uplo::upper && n > 17) continue;
            ASSERT_EQ(wrong_in(device, matrices, dtype, {.uplo = uplo, .driver = driver}), "")
                << name(dtype) << " n " << n << ' ' << linalg::name(driver) << (uplo == Uplo::upper ? " upper" : " lower") << "; families "
                << fmt::format("{}", fmt::join(EighCase::families(), " "));
          }
      }
    }
  }
}

TEST(Eigh, KnownSpectraAreFound) {
  CLUTCH_EACH_DEVICE(device) {
    for (const char* family : {"laplacian", "arithmetic", "geometric", "repeated", "two_clusters"}) {
      HostMatrix m = EighCase::make(family, 20, false, 0x1p-23, seed());
      std::vector<std::uint8_t> raw = EighCase::pack({m}, DType::f32, Uplo::lower);
      Tensor a = from_bytes(raw.data(), raw.size(), {20, 20}, {.device = device});
      std::vector<double> w = numbers(linalg::eigvalsh(a).w);
      auto r = EighCase::ratios(m, w.data(), nullptr, 20, 0x1p-23, m.spectrum);
      EXPECT_LE(r.spectrum, 30) << family;
    }
  }
}

TEST(Eigh, ScalesNearOverflowAndUnderflow) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : kDtypes) {
      if (left_to_night(dtype)) continue;
      if (EighCase::is_double(dtype) && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t n : {1, 2, 3, 9})
        for (EighDriver driver : drivers_for(device, dtype, n)) {
          HostMatrix plain = EighCase::make("random", n, is_complex(dtype), 0, seed());
          int most = EighCase::is_double(dtype) ? 1023 : 127;
          std::vector<double> reference;
          for (int power : {0, most - 4, -most + 30, 7}) {
            HostMatrix m = EighCase::rounded({plain}, dtype)[0];
            for (Z& x : m.a) x *= std::ldexp(1.0, power);
            std::vector<std::uint8_t> raw = EighCase::pack({m}, dtype, Uplo::lower);
            Tensor a = from_bytes(raw.data(), raw.size(), {n, n}, {.dtype = dtype, .device = device});
            auto r = linalg::eigh(a, {.driver = driver});
            std::vector<double> w = numbers(r.w);
            for (double& x : w) x = std::ldexp(x, -power);
            std::vector<Z> v = columns(r.v);
            auto ratios = EighCase::ratios(EighCase::rounded({plain}, dtype)[0], w.data(), v.data(), n, EighCase::epsilon(dtype));
            EXPECT_LE(ratios.residual, 30) << name(dtype) << " n " << n << " 2^" << power << ' ' << linalg::name(driver);
            EXPECT_LE(ratios.orthogonality, 30);
            if (driver == EighDriver::host || driver == EighDriver::automatic) continue;
            if (power == 0) reference = w;
            if (power == 7) {
              EXPECT_EQ(w, reference) << "a power of two changes no bits";
            }
          }
        }
    }
  }
}

/// Matrices whose elements and eigenvalues are subnormal in part or as a whole, beside large ones and zeros; and large ones alone.
TEST(Eigh, SmallMatricesKeepTheBoundsToTheLastSubnormalNumber) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : kDtypes) {
      if (left_to_night(dtype)) continue;
      if (EighCase::is_double(dtype) && skip_without(device, "fp64", device.traits().fp64)) continue;
      const int most = EighCase::is_double(dtype) ? 1022 : 126, digits = EighCase::is_double(dtype) ? 52 : 23;
      const std::vector<int> powers{-most + 24, -most + 6, -most, 0, -most - 14, -most - digits + 3, -most - digits, most - 6, -most + digits};
      for (std::int64_t n : {1, 2, 3, 5, 9, 34}) {
        if (level() == "smoke" && (n == 3 || n == 9)) continue;
        std::vector<HostMatrix> matrices;
        for (std::size_t i = 0; i < powers.size(); ++i) {
          HostMatrix m = EighCase::make("random", n, is_complex(dtype), 0, seed() + i);
          for (Z& x : m.a) x = Z(std::ldexp(x.real(), powers[i]), std::ldexp(x.imag(), powers[i]));
          matrices.push_back(EighCase::rounded({m}, dtype)[0]);
        }
        matrices.push_back(EighCase::make("zero", n, is_complex(dtype), 0, seed()));
        for (EighDriver driver : drivers_for(device, dtype, n))
          for (Uplo uplo : {Uplo::lower, Uplo::upper}) {
            if (uplo == Uplo::upper && level() == "smoke" && n != 5) continue;
            std::vector<std::uint8_t> raw = EighCase::pack(matrices, dtype, uplo);
            Tensor a = from_bytes(raw.data(), raw.size(), {static_cast<std::int64_t>(matrices.size()), n, n}, {.dtype = dtype, .device = device});
            auto r = linalg::eigh(a, {.uplo = uplo, .driver = driver});
            linalg::require_converged(r.status);
            std::vector<double> all = numbers(r.w);
            std::vector<Z> vectors = columns(r.v);
            for (std::size_t m = 0; m < powers.size(); ++m) {
              // In numbers near 1, exactly; what is stored as a subnormal number is rounded to a whole one.
              const auto size = static_cast<std::size_t>(n);
              HostMatrix near = matrices[m];
              for (Z& x : near.a) x = Z(std::ldexp(x.real(), -powers[m]), std::ldexp(x.imag(), -powers[m]));
              std::vector<double> w(all.begin() + static_cast<std::ptrdiff_t>(m * size), all.begin() + static_cast<std::ptrdiff_t>((m + 1) * size));
              for (double& x : w) x = std::ldexp(x, -powers[m]);
              const double eps = EighCase::epsilon(dtype) + std::ldexp(0.5, -most - digits - powers[m]) / std::max(near.norm(), 0x1p-60);
              auto ratios = EighCase::ratios(near, w.data(), vectors.data() + m * size * size, n, eps, lapack_values(near));
              EXPECT_LE(ratios.residual, 30) << name(dtype) << " n " << n << " 2^" << powers[m] << ' ' << linalg::name(driver);
              EXPECT_LE(ratios.spectrum, 30) << name(dtype) << " n " << n << " 2^" << powers[m] << ' ' << linalg::name(driver);
              EXPECT_LE(EighCase::ratios(near, w.data(), vectors.data() + m * size * size, n, EighCase::epsilon(dtype)).orthogonality, 30);
            }
            for (std::size_t k = powers.size() * static_cast<std::size_t>(n); k < all.size(); ++k) EXPECT_EQ(all[k], 0);
          }
      }
    }
  }
}

TEST(Eigh, NeighboursAndPlacesChangeNoBits) {
  CLUTCH_EACH_DEVICE(device) {
    std::mt19937 shuffle(static_cast<unsigned>(seed()));
    for (DType dtype : {DType::f32, DType::c128}) {
      if (EighCase::is_double(dtype) && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t n : {1, 2, 3, 5, 7, 12, 34})
        for (EighDriver driver : drivers_for(device, dtype, n)) {
          constexpr std::int64_t kBatch = 45;
          std::vector<HostMatrix> matrices;
          const auto& families = EighCase::families();
          for (std::int64_t m = 0; m < kBatch; ++m)
            matrices.push_back(EighCase::make(families[static_cast<std::size_t>(m) % families.size()], n, is_complex(dtype), EighCase::epsilon(dtype),
                                              seed() + static_cast<std::uint64_t>(m)));
          std::vector<std::size_t> order(kBatch);
          for (std::size_t i = 0; i < kBatch; ++i) order[i] = i;
          std::shuffle(order.begin(), order.end(), shuffle);
          std::vector<HostMatrix> shuffled;
          for (std::size_t i : order) shuffled.push_back(matrices[i]);
          auto solve = [&](const std::vector<HostMatrix>& some) {
            std::vector<std::uint8_t> raw = EighCase::pack(some, dtype, Uplo::lower);
            auto r = linalg::eigh(from_bytes(raw.data(), raw.size(), {static_cast<std::int64_t>(some.size()), n, n}, {.dtype = dtype, .device = device}),
                                  {.driver = driver});
            std::vector<std::string> bits;
            for (std::size_t m = 0; m < some.size(); ++m) {
              std::string all;
              for (const Tensor& t : {r.w, r.v, r.status.info, r.status.sweeps}) {
                std::vector<std::uint8_t> part = t.select(0, static_cast<std::int64_t>(m)).to_bytes();
                all.append(part.begin(), part.end());
              }
              bits.push_back(all);
            }
            return bits;
          };
          std::vector<std::string> together = solve(matrices), mixed = solve(shuffled);
          for (std::size_t i = 0; i < kBatch; ++i) ASSERT_EQ(mixed[i], together[order[i]]) << name(dtype) << " n " << n << ' ' << linalg::name(driver);
          for (std::size_t i : {std::size_t{0}, std::size_t{7}, std::size_t{44}})
            ASSERT_EQ(solve({matrices[i]})[0], together[i]) << "alone: " << name(dtype) << " n " << n << ' ' << linalg::name(driver);
        }
    }
  }
}

TEST(Eigh, NotANumberStaysInItsMatrix) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t n : {1, 2, 3, 10, 34})
      for (EighDriver driver : drivers_for(device, DType::f32, n)) {
        std::vector<HostMatrix> matrices;
        for (std::uint64_t m = 0; m < 20; ++m) matrices.push_back(EighCase::make("random", n, false, 0, seed() + m));
        auto solve = [&] {
          std::vector<std::uint8_t> raw = EighCase::pack(matrices, DType::f32, Uplo::lower);
          return linalg::eigh(from_bytes(raw.data(), raw.size(), {20, n, n}, {.device = device}), {.driver = driver});
        };
        auto clean = solve();
        matrices[3].at(n - 1, 0) = NAN;
        matrices[8].at(n - 1, n - 1) = INFINITY;
        matrices[19].at(n - 1, n / 2) = -INFINITY;
        auto r = solve();
        std::vector<std::int32_t> info = r.status.info.to_host<std::int32_t>();
        for (std::int64_t m = 0; m < 20; ++m) {
          bool bad = m == 3 || m == 8 || m == 19;
          EXPECT_EQ(info[static_cast<std::size_t>(m)], bad ? -1 : 0);
          for (auto [now, before] : {std::pair(r.w, clean.w), std::pair(r.v, clean.v)}) {
            if (!bad) {
              EXPECT_EQ(now.select(0, m).to_bytes(), before.select(0, m).to_bytes()) << "neighbours of n " << n << ' ' << linalg::name(driver);
              continue;
            }
            for (float x : now.select(0, m).contiguous().to_host<float>()) EXPECT_TRUE(std::isnan(x)) << "n " << n << ' ' << linalg::name(driver);
          }
        }
        EXPECT_EQ(code_of([&] { linalg::require_converged(r.status); }), ErrorCode::not_converged);
        EXPECT_NE(message_of([&] { linalg::require_converged(r.status); }).find("matrix 3 "), std::string::npos);
        linalg::require_converged(clean.status);
      }
  }
}

TEST(Eigh, LimitsAreKeptAndTold) {
  CLUTCH_EACH_DEVICE(device) {
    HostMatrix m = EighCase::make("random", 10, false, 0, seed());
    std::vector<HostMatrix> matrices{m, EighCase::make("diagonal", 10, false, 0, seed()), m};
    std::vector<std::uint8_t> raw = EighCase::pack(matrices, DType::f32, Uplo::lower);
    Tensor a = from_bytes(raw.data(), raw.size(), {3, 10, 10}, {.device = device});
    for (EighDriver driver : {EighDriver::jacobi_lanes, EighDriver::qr_lanes}) {
      auto r = linalg::eigh(a, {.driver = driver, .max_sweeps = 1});
      std::vector<std::int32_t> info = r.status.info.to_host<std::int32_t>(), sweeps = r.status.sweeps.to_host<std::int32_t>();
      EXPECT_GT(info[0], 0);
      EXPECT_EQ(info[1], 0);
      EXPECT_EQ(sweeps[0], 1);
      EXPECT_EQ(sweeps[1], 0) << "a diagonal matrix needs none";
      EXPECT_EQ(code_of([&] { linalg::require_converged(r.status); }), ErrorCode::not_converged);
      auto exact = linalg::eigh(a, {.driver = driver}), loose = linalg::eigh(a, {.driver = driver, .tolerance = 1e-2});
      EXPECT_LT(loose.status.sweeps.to_host<std::int32_t>()[0], exact.status.sweeps.to_host<std::int32_t>()[0]);
      EXPECT_EQ(loose.status.info.to_host<std::int32_t>()[0], 0);
    }
  }
}

/// A tolerance that no element falls below takes all sweeps that are allowed: more than eigh_qr_items records at a time. Eigenvalues alone record nothing. The
/// matrices stay far from diagonal, so that vectors are told by their quotients v^T a v alone, which are w.
TEST(Eigh, GoesOnPastAFullRecord) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kN = 16, kBatch = 5;
    constexpr int kSweeps = 150;
    static_assert(kSweeps > 3 * EIGH_SPANS(kN));
    std::vector<HostMatrix> matrices;
    for (std::int64_t m = 0; m < kBatch; ++m)
      matrices.push_back(EighCase::make(m == 2 ? "diagonal" : "random", kN, false, 0, seed() + static_cast<std::uint64_t>(m)));
    matrices = EighCase::rounded(matrices, DType::f32);
    const std::vector<std::uint8_t> raw = EighCase::pack(matrices, DType::f32, Uplo::lower);
    const Tensor a = from_bytes(raw.data(), raw.size(), {kBatch, kN, kN}, {.device = device});
    const EighOptions options{.driver = EighDriver::qr_items, .tolerance = 1e-60, .max_sweeps = kSweeps};
    const auto r = linalg::eigh(a, options);
    EXPECT_EQ(r.w.to_bytes(), linalg::eigvalsh(a, options).w.to_bytes());
    const std::vector<std::int32_t> sweeps = r.status.sweeps.to_host<std::int32_t>(), info = r.status.info.to_host<std::int32_t>();
    const std::vector<double> values = numbers(r.w);
    const std::vector<Z> vectors = columns(r.v);
    for (std::size_t m = 0; m < matrices.size(); ++m) {
      SCOPED_TRACE(fmt::format("matrix {}", m));
      EXPECT_EQ(sweeps[m], m == 2 ? 0 : kSweeps);
      EXPECT_EQ(info[m] == 0, m == 2);
      const double bound = 30 * kN * EighCase::epsilon(DType::f32);
      const Z* v = &vectors[m * kN * kN];
      EXPECT_LE(EighCase::ratios(matrices[m], &values[m * kN], v, kN, EighCase::epsilon(DType::f32)).orthogonality, 30);
      for (std::int64_t k = 0; k < kN; ++k) {
        double quotient = 0;
        for (std::int64_t i = 0; i < kN; ++i)
          for (std::int64_t j = 0; j < kN; ++j) quotient += (v[k * kN + i] * matrices[m].at(i, j) * v[k * kN + j]).real();
        EXPECT_NEAR(quotient, values[m * kN + static_cast<std::size_t>(k)], bound * matrices[m].norm()) << "vector " << k;
      }
    }
  }
}

// The two triangles of a matrix, which jacobi_group keeps both, differ by roundings: an element above the tolerance in one of them alone must not be left for
// good. Matrices of few large eigenvalues and many near 0 have such elements.
TEST(Eigh, JacobiConvergesWhereTrianglesDifferByRoundings) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kMany = 300, kSize = 33;
    const Tensor x = randn({kMany, kSize, 1}, {.device = device, .seed = 5}), a = linalg::matmul(x, x.mT()).to(DType::f16);
    for (DType dtype : {DType::f16, DType::c64}) {
      const linalg::EighResult made = linalg::eigh(a.to(dtype), {.driver = EighDriver::jacobi_group});
      EXPECT_EQ(made.status.info.to_host<std::int32_t>(), std::vector<std::int32_t>(kMany, 0)) << name(dtype);
      for (std::int32_t sweeps : made.status.sweeps.to_host<std::int32_t>()) EXPECT_LE(sweeps, 12);
    }
  }
}

TEST(Eigh, RangesPhasesAndLayouts) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::c128})
      for (std::int64_t n : {1, 2, 3, 9})
        for (EighDriver driver : drivers_for(device, dtype, n)) {
          if (EighCase::is_double(dtype) && skip_without(device, "fp64", device.traits().fp64)) continue;
          SCOPED_TRACE(fmt::format("{} n {} {}", name(dtype), n, linalg::name(driver)));
          std::vector<HostMatrix> matrices;
          for (std::uint64_t m = 0; m < 18; ++m) matrices.push_back(EighCase::make("random", n, is_complex(dtype), 0, seed() + m));
          std::vector<std::uint8_t> raw = EighCase::pack(matrices, dtype, Uplo::lower, false);
          Tensor a = from_bytes(raw.data(), raw.size(), {3, 6, n, n}, {.dtype = dtype, .device = device});
          EighOptions options{.driver = driver, .phase = linalg::EighPhase::positive};
          auto all = linalg::eigh(a, options);
          EXPECT_EQ(all.w.sizes(), (Dims{3, 6, n}));
          EXPECT_EQ(all.v.sizes(), (Dims{3, 6, n, n}));
          EXPECT_EQ(all.v.stride(-2), n > 1 ? 1 : all.v.stride(-2)) << "columns are contiguous";
          EXPECT_EQ(all.status.info.sizes(), (Dims{3, 6}));
          std::vector<Z> v = columns(all.v.reshape({18, n, n}));
          for (std::size_t k = 0; k < v.size(); k += static_cast<std::size_t>(n)) {
            double most = 0, positive = 0;
            for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
              most = std::max(most, std::abs(v[k + i]));
              if (std::abs(v[k + i].imag()) <= 1e-6) positive = std::max(positive, v[k + i].real());
            }
            EXPECT_GE(positive, 0.999 * most) << "the largest, or what is nearly as large";
          }
          // A range gives the same bits.
          options.first = n / 2, options.count = (n + 1) / 2;
          auto some = linalg::eigh(a, options);
          EXPECT_EQ(some.w.to_bytes(), all.w.slice(-1, n / 2, n / 2 + (n + 1) / 2).to_bytes());
          EXPECT_EQ(some.v.to_bytes(), all.v.slice(-1, n / 2, n / 2 + (n + 1) / 2).to_bytes());
          options.count = 0;
          EXPECT_EQ(linalg::eigh(a, options).w.sizes(), (Dims{3, 6, 0}));
          // Other layouts: transposed matrices, steps in the batch, rows apart.
          options.first = 0, options.count = -1;
          Tensor wide = zeros({3, 12, n, 2 * n}, {.dtype = dtype, .device = device});
          Tensor inside = wide.slice(1, 0, 12, 2).slice(3, n, 2 * n);
          copy_(inside, a);
          auto layout = linalg::eigh(inside, options);
          EXPECT_EQ(layout.v.to_bytes(), all.v.to_bytes());
          Tensor stepped = zeros({36, n, n}, {.dtype = dtype, .device = device}).slice(0, 0, 36, 2);
          copy_(stepped, a.reshape({18, n, n}));
          EXPECT_EQ(linalg::eigh(stepped, options).v.to_bytes(), all.v.to_bytes());
          Tensor transposed = a.mT().contiguous().mT();
          EXPECT_EQ(linalg::eigh(transposed, options).v.to_bytes(), all.v.to_bytes());
          auto one = linalg::eigh(a.slice(0, 0, 1).slice(1, 0, 1).expand({4, 5, n, n}), options);
          EXPECT_EQ(one.v.select(0, 3).select(0, 2).to_bytes(), all.v.select(0, 0).select(0, 0).to_bytes());
          // Into the caller's tensors of any strides.
          Tensor w = zeros({3, 6, 2 * n}, {.dtype = EighCase::real_of(dtype), .device = device}).slice(-1, 0, 2 * n, 2);
          Tensor out = zeros({3, 6, n, n}, {.dtype = dtype, .device = device}), info = full({3, 6}, 7, {.dtype = DType::i32, .device = device});
          Tensor sweeps = zeros({6, 3}, {.dtype = DType::i32, .device = device}).transpose(0, 1);
          linalg::eigh_out(w, out, {info, sweeps}, a, options);
          EXPECT_EQ(w.to_bytes(), all.w.to_bytes());
          EXPECT_EQ(out.to_bytes(), all.v.to_bytes());
          EXPECT_EQ(info.to_bytes(), all.status.info.to_bytes());
          EXPECT_EQ(sweeps.to_bytes(), all.status.sweeps.to_bytes());
        }
  }
}

TEST(Eigh, StorageDtypesEmptyShapesAndScalars) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor a = from_host<float>({2, 1, 1, 2}, device).reshape({2, 2});
    auto r = linalg::eigh(a);
    std::vector<float> w = r.w.to_host<float>();
    EXPECT_NEAR(w[0], 1, 1e-6);
    EXPECT_NEAR(w[1], 3, 1e-6);
    for (DType dtype : {DType::f16, DType::bf16}) {
      auto half = linalg::eigh(cast(a, dtype));
      EXPECT_EQ(half.w.dtype(), dtype);
      EXPECT_EQ(half.v.dtype(), dtype);
      EXPECT_EQ(half.w.to(DType::f32).to_host<float>(), (std::vector<float>{1, 3}));
    }
    for (const Dims& sizes : {Dims{0, 3, 3}, Dims{0, 0}, Dims{4, 0, 0}, Dims{2, 0, 5, 5}}) {
      auto none = linalg::eigh(zeros(sizes, {.device = device}));
      EXPECT_EQ(none.v.sizes(), sizes);
      for (std::int32_t code : none.status.info.to_host<std::int32_t>()) EXPECT_EQ(code, 0);
      linalg::eigvalsh(zeros(sizes, {.device = device}));
    }
    EXPECT_EQ(linalg::eigh(zeros({4, 0, 0}, {.device = device})).status.info.to_host<std::int32_t>(), (std::vector<std::int32_t>(4, 0)));
  }
}

TEST(Eigh, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    auto make = [&](const Dims& sizes, DType dtype = DType::f32) { return zeros(sizes, {.dtype = dtype, .device = device}); };
    Tensor a = make({2, 3, 3});
    EXPECT_EQ(code_of([&] { linalg::eigh(Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { linalg::eigh(make({3})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { linalg::eigh(make({2, 3, 4})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(message_of([&] { linalg::eigh(make({8, 3, 4})); }), "linalg::eigh: a must be square in its last two dims, got (8, 3, 4)");
    EXPECT_EQ(code_of([&] { linalg::eigh(make({3, 3}, DType::i32)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { linalg::eigh(a, {.first = 2, .count = 2}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { linalg::eigh(a, {.first = 4}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { linalg::eigh(a, {.tolerance = -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { linalg::eigh(a, {.max_sweeps = -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { linalg::eigh(a, {.driver = EighDriver::closed}); }), ErrorCode::not_supported);
    EXPECT_EQ(code_of([&] { linalg::eigh(make({257, 257}), {.driver = EighDriver::qr_lanes}); }), ErrorCode::not_supported);
    Tensor w = make({2, 3}), v = make({2, 3, 3}), info = make({2}, DType::i32), sweeps = make({2}, DType::i32);
    linalg::eigh_out(w, v, {info, sweeps}, a);
    EXPECT_EQ(code_of([&] { linalg::eigh_out(make({2, 4}), v, {info, sweeps}, a); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { linalg::eigh_out(w, v, {make({2}), sweeps}, a); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { linalg::eigh_out(w, a, {info, sweeps}, a); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { linalg::eigh_out(w, v, {info, info}, a); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { linalg::eigvalsh_out(w, {info, info}, a); }), ErrorCode::invalid_overlap);
  }
}

TEST(Eigh, SizesOfAClassBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    linalg::eigh(zeros({4, 6, 6}, {.device = device}));
    auto before = build_counters();
    for (std::int64_t n : {5, 9, 20, 32}) linalg::eigh(zeros({n, n, n}, {.device = device}));
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

/// Eigenvalues of d b d, each to high relative accuracy: squares of the singular values of a factor, by LAPACK's one-sided Jacobi.
std::vector<double> relative_values(const HostMatrix& b, const std::vector<double>& d) {
  auto n = static_cast<lapack_int>(b.n);
  std::vector<Z> factor = b.a;  // lower: b = l l^H
  auto* raw = reinterpret_cast<lapack_complex_double*>(factor.data());
  EXPECT_EQ(LAPACKE_zpotrf(LAPACK_ROW_MAJOR, 'L', n, raw, n), 0);
  // Columns of l^H d
  std::vector<Z> x(factor.size());
  for (std::int64_t i = 0; i < b.n; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      x[static_cast<std::size_t>(j * b.n + i)] = std::conj(factor[static_cast<std::size_t>(i * b.n + j)]) * d[static_cast<std::size_t>(i)];
  std::vector<double> values(d.size());
  double stat[6] = {};
  EXPECT_EQ(LAPACKE_zgesvj(LAPACK_ROW_MAJOR, 'G', 'N', 'N', n, n, reinterpret_cast<lapack_complex_double*>(x.data()), n, values.data(), 0, nullptr, n, stat),
            0);
  for (double& v : values) v = v * stat[0] * (v * stat[0]);
  std::sort(values.begin(), values.end());
  return values;
}

TEST(Eigh, GradedMatricesHaveRelativeAccuracy) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : kDtypes) {
      if (EighCase::is_double(dtype) && skip_without(device, "fp64", device.traits().fp64)) continue;
      if (left_to_night(dtype)) continue;
      double eps = EighCase::epsilon(dtype), most = EighCase::is_double(dtype) ? 60 : 7;
      for (std::int64_t n : {1, 2, 3, 4, 7, 12, 16, 21, 40}) {
        if (level() == "smoke" && (n == 1 || n == 3 || n == 4)) continue;  // these have programs of their own
        model::Random random(seed() + static_cast<std::uint64_t>(n));
        HostMatrix b{n, std::vector<Z>(static_cast<std::size_t>(n * n))}, a = b;
        std::vector<double> d;
        for (std::int64_t i = 0; i < n; ++i) d.push_back(std::pow(10, random.uniform(-most, 0)));
        d[0] = 1;
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j <= i; ++j) {
            double off = 0.5 / static_cast<double>(n);  // b's eigenvalues are in 0.5 to 1.5
            Z x = i == j ? Z(1) : Z(random.uniform(-off, off), is_complex(dtype) ? random.uniform(-off, off) / 2 : 0);
            b.at(i, j) = x, b.at(j, i) = std::conj(x);
            a.at(i, j) = x * (d[static_cast<std::size_t>(i)] * d[static_cast<std::size_t>(j)]);
            a.at(j, i) = std::conj(a.at(i, j));
          }
        std::vector<double> want = relative_values(b, d);
        std::vector<std::uint8_t> raw = EighCase::pack({a}, dtype, Uplo::lower);
        Tensor given = from_bytes(raw.data(), raw.size(), {n, n}, {.dtype = dtype, .device = device});
        auto worst_of = [&](const EighOptions& options) {
          auto [w, v, status] = linalg::eigh(given, options);
          linalg::require_converged(status);
          std::vector<double> got = numbers(w), alone = got;
          if ((options.driver == EighDriver::automatic && n <= 13) || level() != "smoke") alone = numbers(linalg::eigvalsh(given, options).w);
          double worst = 0;
          for (std::size_t i = 0; i < want.size(); ++i)
            for (double x : {got[i], alone[i]})
              if (double error = std::abs(x - want[i]) / want[i]; !(error <= worst)) worst = error;
          auto ratios = EighCase::ratios(EighCase::rounded({a}, dtype)[0], got.data(), columns(v).data(), n, eps);
          EXPECT_LE(ratios.residual, 30);
          EXPECT_LE(ratios.orthogonality, 30);
          return worst / (static_cast<double>(n) * eps * 3);  // cond(b) is 3 at most
        };
        for (EighDriver driver : {EighDriver::automatic, EighDriver::jacobi_lanes, EighDriver::jacobi_group, EighDriver::jacobi_items}) {
          if (driver == EighDriver::jacobi_items && !takes_relative(device, dtype, n)) continue;
          SCOPED_TRACE(fmt::format("{} n {} {}", name(dtype), n, linalg::name(driver)));
          if ((device.traits().quirks & detail::kQuirkLoopsEndEarly) && n > 16) continue;
          EXPECT_LE(worst_of({.driver = driver, .accuracy = linalg::EighAccuracy::relative}), 30);
        }
        // What it is for: against the norm alone small ones are lost.
        if (n == 12) {
          EXPECT_GT(worst_of({.driver = EighDriver::qr_lanes}), 1e3);
        }
        EXPECT_EQ(code_of([&] { linalg::eigh(given, {.driver = EighDriver::qr_lanes, .accuracy = linalg::EighAccuracy::relative}); }),
                  ErrorCode::not_supported);
      }
    }
  }
}

/// Matrices d b d whose elements are exact: d are powers of two, b's elements whole numbers of 256ths.
TEST(Eigh, RelativeAccuracyHoldsOverTheRangeOfNormalNumbers) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : kDtypes) {
      if (EighCase::is_double(dtype) && skip_without(device, "fp64", device.traits().fp64)) continue;
      if (left_to_night(dtype)) continue;
      const double eps = EighCase::epsilon(dtype);
      // Exponents of the largest and the smallest diagonal element.
      std::vector<std::pair<int, int>> ranges{{0, -126}, {80, -116}, {126, -70}, {-60, -126}, {-110, -124}};
      if (EighCase::is_double(dtype)) ranges = {{0, -998}, {900, -990}, {1020, -860}, {-600, -1018}};
      for (std::int64_t n : {2, 3, 4, 7, 12, 21, 40})
        for (auto [high, low] : ranges) {
          if (level() == "smoke" && (n == 3 || n == 4 || n == 21)) continue;
          if ((device.traits().quirks & detail::kQuirkLoopsEndEarly) && n > 16) continue;
          model::Random random(seed() + static_cast<std::uint64_t>(n));
          HostMatrix b{n, std::vector<Z>(static_cast<std::size_t>(n * n))}, a = b;
          std::vector<int> d;
          const int middle = (high + low) / 4, half = (high - low) / 2;
          std::vector<double> scales;  // brought near 1 for the reference
          for (std::int64_t i = 0; i < n; ++i) {
            d.push_back(i == 1 ? high / 2 : i == 0 ? low / 2 : low / 2 + static_cast<int>(random.uniform(0, half)));
            scales.push_back(std::ldexp(1.0, d.back() - middle));
          }
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j <= i; ++j) {
              const double most = std::floor(128 / static_cast<double>(n));
              auto part = [&] { return std::round(random.uniform(-most, most)) / 256; };
              Z x = i == j ? Z(1) : Z(part(), is_complex(dtype) ? part() / 2 : 0);
              b.at(i, j) = x, b.at(j, i) = std::conj(x);
              const int power = d[static_cast<std::size_t>(i)] + d[static_cast<std::size_t>(j)];
              a.at(i, j) = Z(std::ldexp(x.real(), power), std::ldexp(x.imag(), power));
              a.at(j, i) = std::conj(a.at(i, j));
            }
          ASSERT_EQ(EighCase::rounded({a}, dtype)[0].a, a.a) << "exact";
          std::vector<double> want = relative_values(b, scales);
          for (Uplo uplo : {Uplo::lower, Uplo::upper})
            for (EighDriver driver : {EighDriver::jacobi_lanes, EighDriver::jacobi_group, EighDriver::jacobi_items}) {
              if (driver == EighDriver::jacobi_items && !takes_relative(device, dtype, n)) continue;
              SCOPED_TRACE(fmt::format("{} n {} 2^{} to 2^{} {}{}", name(dtype), n, high, low, linalg::name(driver), uplo == Uplo::upper ? " upper" : ""));
              if (uplo == Uplo::upper && level() == "smoke" && n != 7) continue;
              std::vector<std::uint8_t> raw = EighCase::pack({a}, dtype, uplo);
              Tensor given = from_bytes(raw.data(), raw.size(), {n, n}, {.dtype = dtype, .device = device});
              auto r = linalg::eigh(given, {.uplo = uplo, .driver = driver, .accuracy = linalg::EighAccuracy::relative});
              linalg::require_converged(r.status);
              std::vector<double> got = numbers(r.w);
              for (std::size_t i = 0; i < want.size(); ++i) {
                const double near = std::ldexp(got[i], -2 * middle);
                EXPECT_LE(std::abs(near - want[i]) / want[i], 30 * static_cast<double>(n) * eps * 3) << "eigenvalue " << i << ": " << got[i];
              }
            }
        }
    }
  }
}

/// A loss of eigenvalues and of the eigenvectors' magnitudes, which no phase changes: sum c_k w_k + sum p_ik |v_ik|^2.
struct Loss {
  std::vector<double> c, p;
  double of(HostMatrix m) const {
    auto n = static_cast<lapack_int>(m.n);
    std::vector<double> w(c.size());
    EXPECT_EQ(LAPACKE_zheev(LAPACK_ROW_MAJOR, 'V', 'L', n, reinterpret_cast<lapack_complex_double*>(m.a.data()), n, w.data()), 0);
    double sum = 0;
    for (std::size_t k = 0; k < c.size(); ++k) sum += c[k] * w[k];
    for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] * std::norm(m.a[i]);
    return sum;
  }
};

TEST(Eigh, GradientsAreThoseOfDifferences) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : kDtypes) {
      if (EighCase::is_double(dtype) && skip_without(device, "fp64", device.traits().fp64)) continue;
      if (left_to_night(dtype)) continue;
      bool complex = is_complex(dtype);
      DType real = EighCase::real_of(dtype);
      for (std::int64_t n : {1, 2, 5, 9}) {
        if (level() == "smoke" && n != 5) continue;
        SCOPED_TRACE(fmt::format("{} n {}", name(dtype), n));
        model::Random random(seed() + static_cast<std::uint64_t>(n));
        HostMatrix m = EighCase::rounded({EighCase::make("arithmetic", n, complex, 0.1, seed())}, dtype)[0];
        Loss loss;
        for (std::int64_t k = 0; k < n; ++k) loss.c.push_back(random.uniform(-1, 1));
        for (std::int64_t k = 0; k < n * n; ++k) loss.p.push_back(random.uniform(-1, 1));
        std::vector<std::uint8_t> raw = EighCase::pack({m}, dtype, Uplo::lower);
        auto r = linalg::eigh(from_bytes(raw.data(), raw.size(), {n, n}, {.dtype = dtype, .device = device}));
        auto tensor_of = [&](const std::vector<double>& values, const Dims& sizes) {
          std::vector<std::uint8_t> bytes(bytes_for(real, values.size()));
          for (std::size_t i = 0; i < values.size(); ++i) model::store_at(bytes.data(), i, real, values[i]);
          return from_bytes(bytes.data(), bytes.size(), sizes, {.dtype = real, .device = device});
        };
        Tensor grad_w = tensor_of(loss.c, {n}), weight = tensor_of(loss.p, {n, n}), grad_v = empty({n, n}, {.dtype = dtype, .device = device});
        std::vector<Tensor> to = EighCase::parts_of(grad_v), from = EighCase::parts_of(r.v);
        for (std::size_t i = 0; i < to.size(); ++i) map_out(to[i], [](Expr x, Expr p) { return x * p * 2.0; }, {from[i], weight});
        auto both = linalg::eigh_backward(grad_w, grad_v, r.w, r.v);
        linalg::require_gauge(both.gauge, EighCase::is_double(dtype) ? 1e-13 : 1e-5);
        std::vector<Z> g = columns(both.grad_a.mT());
        // Against differences in random directions.
        for (int trial = 0; trial < 3; ++trial) {
          HostMatrix change = EighCase::make("random", n, complex, 0, seed() + 7 + static_cast<std::uint64_t>(trial)), up = m, down = m;
          double step = 1e-5, along = 0, size = 0;
          for (std::size_t i = 0; i < m.a.size(); ++i) {
            up.a[i] += step * change.a[i], down.a[i] -= step * change.a[i];
            along += (std::conj(g[i]) * change.a[i]).real(), size += std::abs(g[i] * change.a[i]);
          }
          double want = (loss.of(up) - loss.of(down)) / (2 * step);
          EXPECT_NEAR(along, want, (EighCase::is_double(dtype) ? 1e-7 : 1e-4) * (1 + size));
        }
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < i; ++j)
            EXPECT_LE(std::abs(g[static_cast<std::size_t>(i * n + j)] - std::conj(g[static_cast<std::size_t>(j * n + i)])), 1e3 * EighCase::epsilon(dtype));
        // Each alone; they add up.
        std::vector<Z> of_w = columns(linalg::eigh_backward(grad_w, {}, r.w, r.v).grad_a.mT()),
                       of_v = columns(linalg::eigh_backward({}, grad_v, r.w, r.v).grad_a.mT());
        for (std::size_t i = 0; i < g.size(); ++i) EXPECT_LE(std::abs(of_w[i] + of_v[i] - g[i]), 1e3 * EighCase::epsilon(dtype));
        // A loss that depends on phases is found.
        if (complex) {
          Tensor phased = empty({n, n}, {.dtype = dtype, .device = device});
          fill_(phased, 0);
          fill_(EighCase::parts_of(phased)[1], 1);
          EXPECT_EQ(code_of([&] { linalg::require_gauge(linalg::eigh_backward(grad_w, phased, r.w, r.v).gauge); }), ErrorCode::invalid_argument);
        }
      }
    }
    // Repeated eigenvalues: nothing finite without broadening, finite with it.
    Tensor a = full({3, 3}, 0, {.device = device}), ones = full({3, 3}, 1, {.device = device});
    fill_(a.as_strided({3}, {4}), 2);
    auto r = linalg::eigh(a);
    Tensor slope = arange(0, 9, 1, {.device = device}).reshape({3, 3});
    EXPECT_FALSE(std::isfinite(sum(linalg::eigh_backward({}, slope, r.w, r.v).grad_a).item()));
    for (float x : linalg::eigh_backward(ones.select(0, 0), slope, r.w, r.v, {.broadening = 1e-3}).grad_a.to_host<float>()) EXPECT_TRUE(std::isfinite(x));
    for (double broadening : {-1.0, 1e-25, 1e20})  // squares that f32 has not: their results would be NaN, or without gradients of v
      EXPECT_EQ(code_of([&] { linalg::eigh_backward({}, slope, r.w, r.v, {.broadening = broadening}); }), ErrorCode::invalid_argument) << broadening;
    EXPECT_EQ(code_of([&] { linalg::eigh_backward({}, slope, r.w, r.v.slice(-1, 0, 2)); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { linalg::eigh_backward(ones, slope, r.w, r.v); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { linalg::eigh_backward({}, slope, r.w.to(DType::i32), r.v); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(linalg::eigh_backward({}, {}, empty({0, 3}, {.device = device}), empty({0, 3, 3}, {.device = device})).grad_a.numel(), 0);
  }
}

TEST(Eigh, DeviceWideHasTheBitsOfGroups) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().quirks & detail::kQuirkLoopsEndEarly) continue;
    // The largest one takes more sweeps than a round.
    for (auto [batch, n] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 2}, {2, 3}, {19, 37}, {2, level() == "smoke" ? 150 : 300}}) {
      Tensor a = randn({batch, n, n}, {.device = device});
      EighOptions wide{.driver = EighDriver::device_wide}, group{.driver = EighDriver::qr_group};
      auto x = linalg::eigh(a, wide), y = linalg::eigh(a, group);
      EXPECT_TRUE(last_plan().starts_with("eigh_qr_group")) << last_plan();
      EXPECT_EQ(x.w.to_bytes(), y.w.to_bytes()) << "n " << n;
      EXPECT_EQ(x.v.to_bytes(), y.v.to_bytes()) << "n " << n;
      EXPECT_EQ(x.status.info.to_bytes(), y.status.info.to_bytes());
      EXPECT_EQ(x.status.sweeps.to_bytes(), y.status.sweeps.to_bytes());
      EXPECT_EQ(linalg::eigvalsh(a, wide).w.to_bytes(), linalg::eigvalsh(a, group).w.to_bytes());
    }
    // What ends early ends alike.
    Tensor a = randn({2, 40, 40}, {.device = device});
    for (int limit : {1, 9}) {
      auto x = linalg::eigh(a, {.driver = EighDriver::device_wide, .max_sweeps = limit}),
           y = linalg::eigh(a, {.driver = EighDriver::qr_group, .max_sweeps = limit});
      EXPECT_EQ(x.v.to_bytes(), y.v.to_bytes());
      EXPECT_EQ(x.status.info.to_bytes(), y.status.info.to_bytes());
    }
  }
}

// A batch decides between these two.
TEST(Eigh, LanesGiveTheBitsOfGroups) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : kDtypes) {
      if (EighCase::is_double(dtype) && skip_without(device, "fp64", device.traits().fp64)) continue;
      if (detail::eigh_lanes(device.traits(), dtype) == 1) continue;  // no batch decides there
      const auto& families = EighCase::families();
      std::vector<std::int64_t> sizes{17, 33, 64};
      if (level() == "smoke" && is_complex(dtype)) sizes = {35};
      if (level() != "smoke") sizes.insert(sizes.end(), {32, 34, 67, 100, 128});
      for (std::int64_t n : sizes) {
        std::vector<HostMatrix> matrices;
        for (std::size_t m = 0; m < families.size() + 5; ++m)
          matrices.push_back(EighCase::make(families[m % families.size()], n, is_complex(dtype), EighCase::epsilon(dtype), seed() + m));
        matrices[3].at(1, 0) = std::numeric_limits<double>::quiet_NaN();
        const std::vector<std::uint8_t> raw = EighCase::pack(matrices, dtype, Uplo::lower);
        Tensor a = from_bytes(raw.data(), raw.size(), {static_cast<std::int64_t>(matrices.size()), n, n}, {.dtype = dtype, .device = device});
        for (int limit : {0, 7}) {
          for (const Tensor& given : {a, a.mT()}) {
            const EighOptions lanes{.uplo = given.strides()[2] == 1 ? Uplo::lower : Uplo::upper,
                                    .driver = EighDriver::qr_lanes,
                                    .phase = limit == 0 ? linalg::EighPhase::free : linalg::EighPhase::positive,
                                    .max_sweeps = limit};
            EighOptions group = lanes, chosen = lanes;
            group.driver = EighDriver::qr_group, chosen.driver = EighDriver::automatic;
            auto x = linalg::eigh(given, lanes), y = linalg::eigh(given, group);
            EXPECT_EQ(x.w.to_bytes(), y.w.to_bytes()) << name(dtype) << " n " << n << " limit " << limit;
            EXPECT_EQ(x.v.to_bytes(), y.v.to_bytes()) << name(dtype) << " n " << n << " limit " << limit;
            EXPECT_EQ(x.status.info.to_bytes(), y.status.info.to_bytes()) << n;
            EXPECT_EQ(x.status.sweeps.to_bytes(), y.status.sweeps.to_bytes()) << n;
            EXPECT_EQ(linalg::eigvalsh(given, lanes).w.to_bytes(), linalg::eigvalsh(given, group).w.to_bytes()) << name(dtype) << " n " << n;
            auto one = linalg::eigh(given.slice(0, 5, 6), chosen);
            EXPECT_TRUE(last_plan().starts_with(n > 32 ? "eigh_qr_group" : "eigh_qr_lanes")) << last_plan();
            EXPECT_EQ(one.v.to_bytes(), x.v.slice(0, 5, 6).to_bytes());
          }
        }
      }
    }
  }
}

/// Work-groups are at most 65536, and take several turns then.
TEST(Eigh, MoreMatricesThanGroupsTakeAtATime) {
  if (level() == "smoke") GTEST_SKIP() << "a million matrices: by night";
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kBatch = (1 << 20) + 5, kN = 3;  // qr_items has 16 of them in a group
    const Tensor half = randn({kBatch, kN, kN}, {.device = device, .seed = seed()}), a = add(half, half.mT());
    const linalg::EighResult all = linalg::eigh(a, {.driver = EighDriver::qr_items});
    for (const std::int64_t begin : {std::int64_t{0}, kBatch - 9}) {
      const linalg::EighResult few = linalg::eigh(a.slice(0, begin, begin + 9).contiguous(), {.driver = EighDriver::qr_items});
      EXPECT_EQ(all.w.slice(0, begin, begin + 9).to_bytes(), few.w.to_bytes());
      EXPECT_EQ(all.v.slice(0, begin, begin + 9).to_bytes(), few.v.to_bytes());
    }
    linalg::require_converged(all.status);
  }
}

TEST(Eigh, SelectionByTraitsAlone) {
  DeviceTraits cpu = wide_cpu();
  auto entry = [&](std::int64_t n, std::string_view forced = {}, bool relative = false) {
    return std::string(detail::select(cpu, {DType::f32, true, detail::eigh_size_class(n), relative}, forced).entry);
  };
  EXPECT_EQ(entry(1), "eigh_closed");
  EXPECT_EQ(entry(2), "eigh_closed");
  EXPECT_EQ(entry(4), "eigh_jacobi_lanes");
  EXPECT_EQ(entry(5), "eigh_qr_lanes");
  EXPECT_EQ(entry(48), "eigh_qr_lanes");
  EXPECT_EQ(entry(128), "eigh_qr_lanes");
  EXPECT_EQ(entry(129), "eigh_qr_group");
  auto entry_of = [](const DeviceTraits& traits, std::int64_t n, EighBatch batch) {
    return std::string(detail::select(traits, {.n = detail::eigh_size_class(n), .batch = batch}).entry);
  };
  EXPECT_EQ(entry_of(cpu, 32, EighBatch::few), "eigh_qr_lanes");
  EXPECT_EQ(entry_of(cpu, 33, EighBatch::few), "eigh_qr_group");
  EXPECT_EQ(detail::eigh_batch(cpu, DType::f32, 1), EighBatch::alone);
  EXPECT_EQ(detail::eigh_batch(cpu, DType::f32, 4 * std::int64_t{cpu.compute_units}), EighBatch::few);
  EXPECT_EQ(detail::eigh_batch(cpu, DType::f32, 4 * std::int64_t{cpu.compute_units} + 1), EighBatch::many);
  DeviceTraits items = cpu;
  items.max_work_group = 256, items.local_bytes = 32 << 10;
  items.type = DeviceType::gpu;  // matrices in registers of work-items, as long as they fit: the batch decides nothing
  auto entry_by_items = [&](DType dtype, std::int64_t n, EighBatch batch, bool relative = false) {
    return std::string(detail::select(items, {dtype, true, detail::eigh_size_class(n), relative, batch}).entry);
  };
  for (EighBatch batch : {EighBatch::many, EighBatch::few}) {
    EXPECT_EQ(entry_by_items(DType::f32, 2, batch), "eigh_closed");
    EXPECT_EQ(entry_by_items(DType::f32, 3, batch), "eigh_jacobi_items");
    EXPECT_EQ(entry_by_items(DType::f32, 8, batch), "eigh_jacobi_items");
    EXPECT_EQ(entry_by_items(DType::f32, 9, batch), "eigh_qr_items");
    EXPECT_EQ(entry_by_items(DType::f32, 64, batch), "eigh_qr_items");
    EXPECT_EQ(entry_by_items(DType::f32, 65, batch), "eigh_qr_group");
    for (const auto& [dtype, jacobi, qr, beyond] :
         {std::tuple{DType::f64, 5, 32, "eigh_qr_lanes"}, {DType::c64, 5, 32, "eigh_qr_lanes"}, {DType::c128, 4, 16, "eigh_qr_lanes"}}) {
      EXPECT_EQ(entry_by_items(dtype, jacobi, batch), "eigh_jacobi_items") << name(dtype);
      EXPECT_EQ(entry_by_items(dtype, jacobi + 1, batch), "eigh_qr_items") << name(dtype);
      EXPECT_EQ(entry_by_items(dtype, qr, batch), "eigh_qr_items") << name(dtype);
      EXPECT_EQ(entry_by_items(dtype, qr + 1, batch), beyond) << name(dtype);
    }
    EXPECT_EQ(entry_by_items(DType::f32, 2, batch, true), "eigh_jacobi_items");
    EXPECT_EQ(entry_by_items(DType::f32, 9, batch, true), "eigh_jacobi_lanes");
  }
  EXPECT_EQ(entry(512), "eigh_qr_group");
  EXPECT_EQ(detail::select(cpu, {.dtype = DType::c64, .n = detail::eigh_size_class(128)}).entry, "eigh_qr_lanes");
  EXPECT_EQ(detail::select(cpu, {.dtype = DType::c64, .n = detail::eigh_size_class(128), .batch = EighBatch::few}).entry, "eigh_qr_group");
  for (DType dtype : {DType::c64, DType::c128}) {
    EXPECT_EQ(detail::select(cpu, {.dtype = dtype, .n = detail::eigh_size_class(384)}).entry, "eigh_qr_group");
    EXPECT_EQ(detail::select(items, {.dtype = dtype, .n = detail::eigh_size_class(2000)}).entry, "eigh_qr_group");
  }
  const bool hosted = detail::eigh_host_refuses(cpu).empty();
  EXPECT_EQ(entry(1000), hosted ? "eigh_host" : "eigh_qr_group");
  DeviceTraits away = cpu;
  away.type = DeviceType::gpu;  // its memory is not the host's
  EXPECT_EQ(detail::select(away, {.n = detail::eigh_size_class(1000), .batch = EighBatch::alone}).entry, "eigh_device_wide");
  EXPECT_EQ(detail::select(away, {.n = detail::eigh_size_class(1000)}).entry, "eigh_qr_group");
  EXPECT_EQ(entry(2, {}, true), "eigh_jacobi_lanes");
  EXPECT_EQ(entry(257, {}, true), "eigh_jacobi_group");
  EXPECT_EQ(code_of([&] { entry(5, "eigh_qr_group", true); }), ErrorCode::not_supported);
  EXPECT_EQ(entry(2, "eigh_qr_lanes"), "eigh_qr_lanes");
  EXPECT_EQ(code_of([&] { entry(3, "eigh_closed"); }), ErrorCode::not_supported);
  EXPECT_EQ(code_of([&] { entry(3, "eigh_best"); }), ErrorCode::invalid_argument);
  cpu.fp64 = false;
  EXPECT_EQ(code_of([&] { detail::select(cpu, {DType::c128, true, 3}); }), ErrorCode::not_supported);
}

}}  // namespace clutch::testing
