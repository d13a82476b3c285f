// SPDX-License-Identifier: Apache-2.0
// eigh by LAPACKE, one matrix after another, in mapped memory of the device. LAPACKE is loaded at first use: it loads OpenBLAS, which starts threads at once,
// and programs that do not use it should not pay for these.
#include "ops/eigh_plan.hpp"

#ifdef CLUTCH_HAS_LAPACKE
#include <complex>
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include "support/shared_library.hpp"
#endif

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

#ifdef CLUTCH_HAS_LAPACKE
namespace {

template <class T>
constexpr bool is_complex_v = !std::is_same_v<T, decltype(std::abs(T{}))>;

struct Lapacke : SharedLibrary {
  decltype(&LAPACKE_ssyevd_work) ssyevd = nullptr;
  decltype(&LAPACKE_dsyevd_work) dsyevd = nullptr;
  decltype(&LAPACKE_cheevd_work) cheevd = nullptr;
  decltype(&LAPACKE_zheevd_work) zheevd = nullptr;

  Lapacke() : SharedLibrary("LAPACKE", "liblapacke.so.3") {
    find(ssyevd, "LAPACKE_ssyevd_work");
    find(dsyevd, "LAPACKE_dsyevd_work");
    find(cheevd, "LAPACKE_cheevd_work");
    find(zheevd, "LAPACKE_zheevd_work");
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
  return "needs LAPACKE, the library has none: it was built without";
#else
  if (traits.type != DeviceType::cpu) return "needs the host's memory, the device has its own";
  return lapacke().why_not().empty() ? "" : fmt::format("needs LAPACKE, the process has none: {}", lapacke().why_not());
#endif
}

#ifdef CLUTCH_HAS_LAPACKE
namespace {

/// LAPACK's routine for T with its work space.
template <class T, class Real>
struct Solver {
  char job;
  lapack_int n;
  std::vector<T> work;
  std::vector<Real> real_work;
  std::vector<lapack_int> integer_work;

  Solver(bool vectors, std::size_t size) : job(vectors ? 'V' : 'N'), n(static_cast<lapack_int>(size)) {
    T ask{};
    Real ask_real{};
    lapack_int ask_integer = 0;
    call(nullptr, nullptr, &ask, -1, &ask_real, -1, &ask_integer, -1);
    // A size that LAPACK returns in f32 is rounded to 24 bits, so it is increased by 2^-23 of itself.
    auto count = [](auto answer) { return static_cast<std::size_t>(std::ceil(static_cast<double>(std::real(answer)) * (1 + 0x1p-23))); };
    work.resize(count(ask)), real_work.resize(is_complex_v<T> ? count(ask_real) : 0), integer_work.resize(static_cast<std::size_t>(ask_integer));
  }
  lapack_int operator()(T* a, Real* w) {
    return call(a, w, work.data(), static_cast<lapack_int>(work.size()), real_work.data(), static_cast<lapack_int>(real_work.size()), integer_work.data(),
                static_cast<lapack_int>(integer_work.size()));
  }

 private:
  lapack_int call(T* a, Real* w, T* space, lapack_int size, Real* real, lapack_int real_size, lapack_int* integer, lapack_int integer_size) {
    const Lapacke& l = lapacke();
    if constexpr (std::is_same_v<T, float>) return l.ssyevd(LAPACK_COL_MAJOR, job, 'L', n, a, n, w, space, size, integer, integer_size);
    if constexpr (std::is_same_v<T, double>) return l.dsyevd(LAPACK_COL_MAJOR, job, 'L', n, a, n, w, space, size, integer, integer_size);
    if constexpr (std::is_same_v<T, std::complex<float>>)
      return l.cheevd(LAPACK_COL_MAJOR, job, 'L', n, a, n, w, space, size, real, real_size, integer, integer_size);
    if constexpr (std::is_same_v<T, std::complex<double>>)
      return l.zheevd(LAPACK_COL_MAJOR, job, 'L', n, a, n, w, space, size, real, real_size, integer, integer_size);
  }
};

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

/// Multiplies a vector by the phase that makes its largest component real and positive. The first of several largest components counts.
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
  const bool upper = c.options.uplo == linalg::Uplo::upper, as_it_lies = c.transposed != upper;
  constexpr std::size_t kTile = 32;  // elements; a tile of the transposition fits the L1 cache
  std::vector<T> work(n * n);
  std::vector<Real> values(n);
  Solver<T, Real> solve(v != nullptr, n);
  for (std::int64_t m = 0; m < c.batch; ++m) {
    const T* from = a + m * c.stride;
    bool finite = true;
    // Copies the lower triangle, or the conjugate of the upper one, by columns.
    for (std::size_t top = 0; top < n; top += kTile)
      for (std::size_t left = 0; left <= top; left += kTile)
        for (std::size_t j = left; j < std::min(left + kTile, n); ++j)
          for (std::size_t i = std::max(top, j); i < std::min(top + kTile, n); ++i) {
            T x = from[as_it_lies ? j * n + i : i * n + j];
            if (i == j) x = std::real(x);
            work[j * n + i] = upper ? conjugate_of(x) : x;
            finite = finite && is_finite(x);
          }
    lapack_int status = finite ? solve(work.data(), values.data()) : -1;
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

void eigh_on_host(const EighCall& call, std::string_view plan, const Stream& stream, const char* op) {
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
  encoder.flops(static_cast<double>(call.batch) * eigh_flops(call.n, call.v.defined(), is_complex(call.a.dtype())));
  encoder.host_task(task, std::span(&call.a, 1), outputs, plan);
#else
  (void)call, (void)plan, (void)stream;
  throw Error(ErrorCode::not_supported, op, "needs LAPACKE, the library has none: it was built without");
#endif
}

}}}  // namespace clutch::v0::detail
