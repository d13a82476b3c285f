// SPDX-License-Identifier: Apache-2.0
#include "peers/lapack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <complex>
#include <cstring>
#include <type_traits>

#include <lapacke.h>
#include <omp.h>

extern "C" void openblas_set_num_threads(int);
extern "C" char* openblas_get_corename();

namespace clutch::bench::lapack {
namespace {

enum class Routine { ev, evd, evr };

/// LAPACK's routines of a type.
template <class T>
struct Lapack;
template <>
struct Lapack<float> {
  using Real = float;
  using Number = float;
  static constexpr auto ev = LAPACKE_ssyev_work;
  static constexpr auto evd = LAPACKE_ssyevd_work;
  static constexpr auto evr = LAPACKE_ssyevr_work;
};
template <>
struct Lapack<double> {
  using Real = double;
  using Number = double;
  static constexpr auto ev = LAPACKE_dsyev_work;
  static constexpr auto evd = LAPACKE_dsyevd_work;
  static constexpr auto evr = LAPACKE_dsyevr_work;
};
template <>
struct Lapack<std::complex<float>> {
  using Real = float;
  using Number = lapack_complex_float;
  static constexpr auto ev = LAPACKE_cheev_work;
  static constexpr auto evd = LAPACKE_cheevd_work;
  static constexpr auto evr = LAPACKE_cheevr_work;
};
template <>
struct Lapack<std::complex<double>> {
  using Real = double;
  using Number = lapack_complex_double;
  static constexpr auto ev = LAPACKE_zheev_work;
  static constexpr auto evd = LAPACKE_zheevd_work;
  static constexpr auto evr = LAPACKE_zheevr_work;
};

/// Work space of a thread for matrices of one size.
template <class T>
struct Space {
  using Routines = Lapack<T>;
  static constexpr bool kComplex = !std::is_floating_point_v<T>;
  lapack_int n;
  std::vector<T> a, z, work;
  std::vector<typename Routines::Real> w, rwork;
  std::vector<lapack_int> iwork, support;
  explicit Space(std::int64_t size) : n(static_cast<lapack_int>(size)) {
    auto m = static_cast<std::size_t>(size);
    a.resize(m * m), z.resize(m * m), w.resize(m), work.resize(1 + 6 * m + 2 * m * m + 64 * m), iwork.resize(10 * m + 10), support.resize(2 * m + 2);
    if (kComplex) rwork.resize(1 + 24 * m + 2 * m * m);
  }
  void solve(Routine routine, char job, const T* from) {
    std::memcpy(a.data(), from, a.size() * sizeof(T));
    auto number = [](std::vector<T>& x) { return reinterpret_cast<typename Routines::Number*>(x.data()); };
    // More work space follows: of real numbers for complex matrices, and of integers.
    auto call = [&](auto function, auto... first) {
      auto size = static_cast<lapack_int>(work.size()), real_size = static_cast<lapack_int>(rwork.size()), integer_size = static_cast<lapack_int>(iwork.size());
      if constexpr (kComplex) {
        if constexpr (std::is_invocable_v<decltype(function), decltype(first)..., decltype(number(work)), lapack_int, decltype(w.data())>)
          function(first..., number(work), size, rwork.data());
        else
          function(first..., number(work), size, rwork.data(), real_size, iwork.data(), integer_size);
      } else {
        if constexpr (std::is_invocable_v<decltype(function), decltype(first)..., decltype(number(work)), lapack_int>)
          function(first..., number(work), size);
        else
          function(first..., number(work), size, iwork.data(), integer_size);
      }
      (void)real_size, (void)integer_size;
    };
    constexpr typename Routines::Real all = 0;
    lapack_int found = 0;
    if (routine == Routine::ev)
      call(Routines::ev, LAPACK_COL_MAJOR, job, 'L', n, number(a), n, w.data());
    else if (routine == Routine::evd)
      call(Routines::evd, LAPACK_COL_MAJOR, job, 'L', n, number(a), n, w.data());
    else
      call(Routines::evr, LAPACK_COL_MAJOR, job, 'A', 'L', n, number(a), n, all, all, 0, 0, all, &found, w.data(), number(z), n, support.data());
  }
};

template <class T>
void solve_all(Routine routine, bool vectors, const T* from, std::int64_t batch, std::int64_t n, bool all_cores, std::vector<Space<T>>& spaces) {
  char job = vectors ? 'V' : 'N';
  if (!all_cores) {
    for (std::int64_t m = 0; m < batch; ++m) spaces[0].solve(routine, job, from + m * n * n);
    return;
  }
  openblas_set_num_threads(1);
#pragma omp parallel for schedule(static)
  for (std::int64_t m = 0; m < batch; ++m) spaces[static_cast<std::size_t>(omp_get_thread_num())].solve(routine, job, from + m * n * n);
  openblas_set_num_threads(omp_get_max_threads());  // what the library under test has, too
}

template <class T>
Peer peer(const std::shared_ptr<std::vector<std::uint8_t>>& matrices, std::int64_t batch, std::int64_t n, bool vectors, bool all_cores) {
  const T* from = reinterpret_cast<const T*>(matrices->data());
  auto spaces = std::make_shared<std::vector<Space<T>>>();
  for (int i = 0; i < omp_get_max_threads(); ++i) spaces->emplace_back(n);
  // The best routine on a part of the work.
  std::array<double, 3> best{1e30, 1e30, 1e30};
  std::int64_t part = std::clamp<std::int64_t>(4'000'000 / (n * n * n + 100 * n), 1, batch);
  for (int round = 0; round < 3; ++round)
    for (std::size_t r = 0; r < 3; ++r) {
      auto begin = std::chrono::steady_clock::now();
      solve_all<T>(static_cast<Routine>(r), vectors, from, part, n, all_cores, *spaces);
      best[r] = std::min(best[r], std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  auto routine = static_cast<Routine>(std::min_element(best.begin(), best.end()) - best.begin());
  const char* names[] = {"ev", "evd", "evr"};
  std::string title = fmt::format("lapacke_{} ({}{}, OpenBLAS {}, {} threads)", all_cores ? "omp" : "loop", Space<T>::kComplex ? "he" : "sy",
                                  names[static_cast<int>(routine)], openblas_get_corename(), omp_get_max_threads());
  return {title, [=](int reps) {
            for (int i = 0; i < reps; ++i) solve_all<T>(routine, vectors, from, batch, n, all_cores, *spaces);
            (void)matrices;  // keeps the memory
          }};
}

}  // namespace

Peer eigh_peer(const std::shared_ptr<std::vector<std::uint8_t>>& matrices, DType dtype, std::int64_t batch, std::int64_t n, bool vectors, bool all_cores) {
  switch (dtype) {
    case DType::f64: return peer<double>(matrices, batch, n, vectors, all_cores);
    case DType::c64: return peer<std::complex<float>>(matrices, batch, n, vectors, all_cores);
    case DType::c128: return peer<std::complex<double>>(matrices, batch, n, vectors, all_cores);
    default: return peer<float>(matrices, batch, n, vectors, all_cores);
  }
}

std::vector<double> eigenvalues(std::vector<std::complex<double>> a, std::int64_t n) {
  std::vector<double> w(static_cast<std::size_t>(n));
  auto size = static_cast<lapack_int>(n);
  LAPACKE_zheevd(LAPACK_ROW_MAJOR, 'N', 'L', size, reinterpret_cast<lapack_complex_double*>(a.data()), size, w.data());
  return w;
}

}  // namespace clutch::bench::lapack
