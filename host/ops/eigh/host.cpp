// SPDX-License-Identifier: Apache-2.0
// eigh by LAPACKE, matrix after matrix on the device's own memory. The library is loaded at first use: OpenBLAS, which it stands on, starts
// threads when it is loaded, which programs that never come here should not pay for.
#include "ops/eigh_plan.hpp"

#ifdef CLUTCH_HAS_LAPACKE
#include <complex>
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include <dlfcn.h>
#endif

#include <cmath>
#include <limits>
#include <vector>

namespace clutch::inline v0::detail {

#ifdef CLUTCH_HAS_LAPACKE
namespace {

struct Lapacke {
  decltype(&LAPACKE_ssyevd) ssyevd = nullptr;
  decltype(&LAPACKE_dsyevd) dsyevd = nullptr;
  decltype(&LAPACKE_cheevd) cheevd = nullptr;
  decltype(&LAPACKE_zheevd) zheevd = nullptr;
  std::string why_not;

  Lapacke() {
    void* library = ::dlopen("liblapacke.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* reason = ::dlerror();
      why_not = fmt::format("LAPACKE cannot be loaded: {}", reason ? reason : "no reason given");
      return;
    }
    auto find = [&]<class F>(F& function, const char* symbol) {
      function = reinterpret_cast<F>(::dlsym(library, symbol));
      if (!function) why_not = fmt::format("LAPACKE has no {}", symbol);
    };
    find(ssyevd, "LAPACKE_ssyevd");
    find(dsyevd, "LAPACKE_dsyevd");
    find(cheevd, "LAPACKE_cheevd");
    find(zheevd, "LAPACKE_zheevd");
  }
};

const Lapacke& lapacke() {
  static const Lapacke found;
  return found;
}

}  // namespace
#endif

std::string eigh_host_refuses(const DeviceTraits& traits) {
#ifndef CLUTCH_HAS_LAPACKE
  (void)traits;
  return "the library was built without LAPACKE";
#else
  return traits.type == DeviceType::cpu ? lapacke().why_not : "the device's memory is not the host's";
#endif
}

#ifdef CLUTCH_HAS_LAPACKE
namespace {

lapack_int solve(char job, lapack_int n, float* a, float* w) { return lapacke().ssyevd(LAPACK_COL_MAJOR, job, 'L', n, a, n, w); }
lapack_int solve(char job, lapack_int n, double* a, double* w) { return lapacke().dsyevd(LAPACK_COL_MAJOR, job, 'L', n, a, n, w); }
lapack_int solve(char job, lapack_int n, std::complex<float>* a, float* w) { return lapacke().cheevd(LAPACK_COL_MAJOR, job, 'L', n, a, n, w); }
lapack_int solve(char job, lapack_int n, std::complex<double>* a, double* w) { return lapacke().zheevd(LAPACK_COL_MAJOR, job, 'L', n, a, n, w); }

template <class T>
T conjugate_of(T x) {
  return x;
}
template <class T>
std::complex<T> conjugate_of(std::complex<T> x) {
  return std::conj(x);
}
template <class T>
bool is_finite(T x) {
  return std::isfinite(x);
}
template <class T>
bool is_finite(std::complex<T> x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

/// Turns each vector so that its largest component, the first of several, is real and positive.
template <class T>
void make_positive(T* v, std::size_t n) {
  T most = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (std::abs(v[i]) > std::abs(most) * (1 + 16 * std::numeric_limits<decltype(std::abs(most))>::epsilon())) most = v[i];
  if (most == T{}) return;
  T turn = conjugate_of(most) / std::abs(most);
  for (std::size_t i = 0; i < n; ++i) v[i] *= turn;
}

template <class T>
void run(const EighCall& c, std::span<void* const> memory) {
  using Real = decltype(std::abs(T{}));
  const T* a = static_cast<const T*>(memory[0]);
  auto* w = static_cast<Real*>(memory[1]);
  auto* info = static_cast<std::int32_t*>(memory[2]);
  auto* sweeps = static_cast<std::int32_t*>(memory[3]);
  T* v = c.v.defined() ? static_cast<T*>(memory[4]) : nullptr;
  auto n = static_cast<std::size_t>(c.n), pairs = static_cast<std::size_t>(c.pairs), first = static_cast<std::size_t>(c.first);
  bool upper = c.options.uplo == linalg::Uplo::upper;
  std::vector<T> work(n * n);
  std::vector<Real> values(n);
  for (std::int64_t m = 0; m < c.batch; ++m) {
    const T* from = a + m * c.apart;
    bool finite = true;
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = j; i < n; ++i) {
        // Element (i, j) of the lower triangle, where the upper one is read its conjugate.
        std::size_t row = upper ? j : i, column = upper ? i : j;
        T x = from[c.transposed ? column * n + row : row * n + column];
        if (i == j) x = std::real(x);
        work[j * n + i] = upper ? conjugate_of(x) : x;
        finite = finite && is_finite(x);
      }
    lapack_int status = finite ? solve(v ? 'V' : 'N', static_cast<lapack_int>(n), work.data(), values.data()) : -1;
    info[m] = static_cast<std::int32_t>(status);
    sweeps[m] = 0;
    const Real nan = std::numeric_limits<Real>::quiet_NaN();
    for (std::size_t k = 0; k < pairs; ++k) {
      w[static_cast<std::size_t>(m) * pairs + k] = finite ? values[first + k] : nan;
      if (!v) continue;
      T* to = v + (static_cast<std::size_t>(m) * pairs + k) * n;
      for (std::size_t i = 0; i < n; ++i) to[i] = finite ? work[(first + k) * n + i] : T(nan);
      if (finite && c.options.phase == linalg::EighPhase::positive) make_positive(to, n);
    }
  }
}

}  // namespace
#endif

void eigh_on_host(const EighCall& call, const Stream& stream, const char* op) {
#ifdef CLUTCH_HAS_LAPACKE
  std::vector<Tensor> outputs{call.w, call.info, call.sweeps};
  if (call.v.defined()) outputs.push_back(call.v);
  auto task = [call](std::span<void* const> memory) {
    switch (call.a.dtype()) {
      case DType::f32: return run<float>(call, memory);
      case DType::f64: return run<double>(call, memory);
      case DType::c64: return run<std::complex<float>>(call, memory);
      default: return run<std::complex<double>>(call, memory);
    }
  };
  Encoder encoder(stream, op);
  encoder.host_task(task, std::span(&call.a, 1), outputs);
#else
  (void)call, (void)stream;
  throw Error(ErrorCode::not_supported, op, "the library was built without LAPACKE");
#endif
}

}  // namespace clutch::inline v0::detail
