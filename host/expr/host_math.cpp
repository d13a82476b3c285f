// SPDX-License-Identifier: Apache-2.0
#include "expr/host_math.hpp"

#include "support/fma.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

// OpenCL C's names for vectors of one lane, as far as the included text uses them.
namespace {

using uint = std::uint32_t;
using ulong = std::uint64_t;
using ushort = std::uint16_t;
#ifdef __clang__
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define long std::int64_t

template <class T>
float as_float(T x) {
  return std::bit_cast<float>(x);
}
template <class T>
double as_double(T x) {
  return std::bit_cast<double>(x);
}
template <class T>
uint as_uint(T x) {
  return std::bit_cast<uint>(x);
}
template <class T>
int as_int(T x) {
  return std::bit_cast<int>(x);
}
template <class T>
ulong as_ulong(T x) {
  return std::bit_cast<ulong>(x);
}
template <class T>
long as_long(T x) {
  return std::bit_cast<long>(x);
}
ulong mul_hi(ulong a, ulong b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<ulong>((static_cast<Wide>(a) * b) >> 64);
}
using clutch::detail::fma;
using std::rint;
using std::sqrt;

#define WIDTH 1
#define DWIDTH 1
#define fma_rn(a, b, c) fma(a, b, c)
#define div_rn(a, b) ((a) / (b))
#define sqrt_rn(x) std::sqrt(x)
#define VD double
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wparentheses"
#include "common/lanes.clh"
#include "common/math_f32.clh"
#include "common/math_f64.clh"
#pragma GCC diagnostic pop
#undef long

}  // namespace

namespace clutch { inline namespace v0 { namespace detail { namespace host_math {

#define CLUTCH_X(name)                            \
  float name(float x) { return ::name##_f32(x); } \
  double name(double x) { return ::name##_f64(x); }
CLUTCH_HOST_MATH(CLUTCH_X)
#undef CLUTCH_X
float pow(float x, float y) { return ::pow_f32(x, y); }
double pow(double x, double y) { return ::pow_f64(x, y); }

}}}}  // namespace clutch::v0::detail::host_math
