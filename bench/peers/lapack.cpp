// SPDX-License-Identifier: Apache-2.0
#include "peers/lapack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include <lapacke.h>
#include <omp.h>

extern "C" void openblas_set_num_threads(int);
extern "C" char* openblas_get_corename();

namespace clutch::bench::lapack {
namespace {

enum class Routine { ev, evd, evr };

// One signature for both precisions.
lapack_int ev(char job, lapack_int n, float* a, float* w, float* work, lapack_int size) {
  return LAPACKE_ssyev_work(LAPACK_COL_MAJOR, job, 'L', n, a, n, w, work, size);
}
lapack_int ev(char job, lapack_int n, double* a, double* w, double* work, lapack_int size) {
  return LAPACKE_dsyev_work(LAPACK_COL_MAJOR, job, 'L', n, a, n, w, work, size);
}
lapack_int evd(char job, lapack_int n, float* a, float* w, float* work, lapack_int size, lapack_int* iwork, lapack_int isize) {
  return LAPACKE_ssyevd_work(LAPACK_COL_MAJOR, job, 'L', n, a, n, w, work, size, iwork, isize);
}
lapack_int evd(char job, lapack_int n, double* a, double* w, double* work, lapack_int size, lapack_int* iwork, lapack_int isize) {
  return LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, job, 'L', n, a, n, w, work, size, iwork, isize);
}
lapack_int evr(char job, lapack_int n, float* a, float* w, float* z, lapack_int* support, float* work, lapack_int size, lapack_int* iwork, lapack_int isize) {
  lapack_int found = 0;
  return LAPACKE_ssyevr_work(LAPACK_COL_MAJOR, job, 'A', 'L', n, a, n, 0, 0, 0, 0, 0, &found, w, z, n, support, work, size, iwork, isize);
}
lapack_int evr(char job, lapack_int n, double* a, double* w, double* z, lapack_int* support, double* work, lapack_int size, lapack_int* iwork,
               lapack_int isize) {
  lapack_int found = 0;
  return LAPACKE_dsyevr_work(LAPACK_COL_MAJOR, job, 'A', 'L', n, a, n, 0, 0, 0, 0, 0, &found, w, z, n, support, work, size, iwork, isize);
}

/// What a thread needs to solve matrices of one size.
template <class T>
struct Space {
  lapack_int n;
  std::vector<T> a, z, w, work;
  std::vector<lapack_int> iwork, support;
  explicit Space(std::int64_t size) : n(static_cast<lapack_int>(size)) {
    auto m = static_cast<std::size_t>(size);
    a.resize(m * m), z.resize(m * m), w.resize(m), work.resize(1 + 6 * m + 2 * m * m + 64 * m), iwork.resize(10 * m + 10), support.resize(2 * m + 2);
  }
  void solve(Routine routine, char job, const T* from) {
    std::memcpy(a.data(), from, a.size() * sizeof(T));
    auto size = static_cast<lapack_int>(work.size()), isize = static_cast<lapack_int>(iwork.size());
    if (routine == Routine::ev)
      ev(job, n, a.data(), w.data(), work.data(), size);
    else if (routine == Routine::evd)
      evd(job, n, a.data(), w.data(), work.data(), size, iwork.data(), isize);
    else
      evr(job, n, a.data(), w.data(), z.data(), support.data(), work.data(), size, iwork.data(), isize);
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
  const char* names[] = {"syev", "syevd", "syevr"};
  std::string title = fmt::format("lapacke_{} ({}, OpenBLAS {}, {} threads)", all_cores ? "omp" : "loop", names[static_cast<int>(routine)],
                                  openblas_get_corename(), omp_get_max_threads());
  return {title, [=](int reps) {
            for (int i = 0; i < reps; ++i) solve_all<T>(routine, vectors, from, batch, n, all_cores, *spaces);
            (void)matrices;  // keeps the memory
          }};
}

}  // namespace

Peer eigh_peer(const std::shared_ptr<std::vector<std::uint8_t>>& matrices, DType dtype, std::int64_t batch, std::int64_t n, bool vectors, bool all_cores) {
  return dtype == DType::f64 ? peer<double>(matrices, batch, n, vectors, all_cores) : peer<float>(matrices, batch, n, vectors, all_cores);
}

std::vector<double> eigenvalues(std::vector<std::complex<double>> a, std::int64_t n) {
  std::vector<double> w(static_cast<std::size_t>(n));
  auto size = static_cast<lapack_int>(n);
  LAPACKE_zheevd(LAPACK_ROW_MAJOR, 'N', 'L', size, reinterpret_cast<lapack_complex_double*>(a.data()), size, w.data());
  return w;
}

}  // namespace clutch::bench::lapack
