// SPDX-License-Identifier: Apache-2.0
// What OpenCL C has and C++ lacks: stands before every program that translate.cpp has made C++ of. No header is included, so that it is read quickly.
// Vectors are the compiler's own; components, literals and casts of them are calls of the templates below. Those take values: a reference would forget that a
// type has less alignment than a vector.

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef decltype(sizeof 0) size_t;
typedef long ptrdiff_t;
typedef long intptr_t;
typedef ulong uintptr_t;
static_assert(sizeof(long) == 8 && sizeof(void*) == 8, "long must have 64 bits");

/// Storage alone, as in OpenCL without cl_khr_fp16.
struct half {
  ushort bits;
};

// Vectors have the alignment of their elements: where a kernel loads one in one way if it is aligned and in another if not, GCC 12 makes one aligned load of
// both.
#define CL_VECTOR(T, N)                                            \
  typedef T cl_##T##N __attribute__((vector_size(N * sizeof(T)))); \
  typedef cl_##T##N T##N __attribute__((aligned(sizeof(T))));
#define CL_VECTORS(T) CL_VECTOR(T, 2) CL_VECTOR(T, 4) CL_VECTOR(T, 8) CL_VECTOR(T, 16)
CL_VECTORS(char)
CL_VECTORS(uchar)
CL_VECTORS(short)
CL_VECTORS(ushort)
CL_VECTORS(int)
CL_VECTORS(uint)
CL_VECTORS(long)
CL_VECTORS(ulong)
CL_VECTORS(float)
CL_VECTORS(double)

// ---- types ----
template <class T>
struct cl_plain {
  typedef T type;
};
template <class T>
struct cl_plain<T&> : cl_plain<T> {};
template <class T>
struct cl_plain<T&&> : cl_plain<T> {};
template <class T>
struct cl_plain<const T> : cl_plain<T> {};
template <class T>
struct cl_plain<volatile T> : cl_plain<T> {};
template <class T>
struct cl_plain<const volatile T> : cl_plain<T> {};
template <class T>
using cl_plain_t = typename cl_plain<T>::type;

/// Elements and their number; 0 for a scalar.
template <class T>
struct cl_vector {
  typedef T element;
  static constexpr int lanes = 0;
};
#define CL_IS_VECTOR(T, N)          \
  template <>                       \
  struct cl_vector<T##N> {          \
    typedef T element;              \
    static constexpr int lanes = N; \
  };
#define CL_ARE_VECTORS(T) CL_IS_VECTOR(T, 2) CL_IS_VECTOR(T, 4) CL_IS_VECTOR(T, 8) CL_IS_VECTOR(T, 16)
CL_ARE_VECTORS(char)
CL_ARE_VECTORS(uchar)
CL_ARE_VECTORS(short)
CL_ARE_VECTORS(ushort)
CL_ARE_VECTORS(int)
CL_ARE_VECTORS(uint)
CL_ARE_VECTORS(long)
CL_ARE_VECTORS(ulong)
CL_ARE_VECTORS(float)
CL_ARE_VECTORS(double)
template <class T>
constexpr int cl_lanes = cl_vector<cl_plain_t<T>>::lanes;
template <class T>
using cl_element = typename cl_vector<cl_plain_t<T>>::element;

template <class T, int N>
struct cl_vector_of {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T>
struct cl_vector_of<T, 1> {
  typedef T type;
};

template <class T>
constexpr bool cl_is_number = cl_lanes<T> == 0;
template <class T>
constexpr bool cl_is_number<T*> = false;

template <class A, class B>
constexpr bool cl_same = false;
template <class A>
constexpr bool cl_same<A, A> = true;

// ---- literals and casts: (float4)(a, b) ----
template <class V, int At, class T>
inline __attribute__((always_inline)) void cl_put(V& v, T x) {
  if constexpr (cl_lanes<T> == 0)
    v[At] = (cl_element<V>)x;
  else
    for (int i = 0; i < cl_lanes<T>; ++i) v[At + i] = x[i];
}
template <class V, int At>
inline __attribute__((always_inline)) void cl_put_all(V&) {
  static_assert(At == cl_lanes<V>, "a literal must have as many elements as its vector");
}
template <class V, int At, class T, class... R>
inline __attribute__((always_inline)) void cl_put_all(V& v, T x, R... rest) {
  cl_put<V, At>(v, x);
  cl_put_all<V, At + (cl_lanes<T> == 0 ? 1 : cl_lanes<T>)>(v, rest...);
}
template <class V, class T, class... R>
inline __attribute__((always_inline)) V cl_make(T x, R... rest) {
  if constexpr (sizeof...(R) == 0 && cl_lanes<T> == 0) {
    if constexpr (cl_lanes<V> == 0)
      return (V)x;
    else
      return (cl_element<V>)x - V{};  // of 0 the sign is kept
  } else if constexpr (sizeof...(R) == 0 && cl_same<cl_plain_t<T>, cl_plain_t<V>>) {
    return x;
  } else {
    V v = {};
    cl_put_all<V, 0>(v, x, rest...);
    return v;
  }
}

/// What is assigned to a T: a number becomes a vector of it, or the null pointer if it is 0; anything else stays what it is.
template <class T, class X>
constexpr inline __attribute__((always_inline)) auto cl_fit(X x) {
  if constexpr (cl_lanes<T> != 0 && cl_is_number<X>)
    return cl_make<cl_plain_t<T>>(x);
  else if constexpr (!cl_is_number<cl_plain_t<T>> && cl_lanes<T> == 0 && cl_same<X, int>)
    return cl_plain_t<T>(nullptr);
  else
    return x;
}

// ---- components: v.s3, v.lo, v.s3210, and members of structs that have such names ----
template <int... I, class V>
inline __attribute__((always_inline)) auto cl_swizzle(V v) {
  typedef typename cl_vector_of<cl_element<V>, sizeof...(I)>::type R;
  return R{v[I]...};
}
#define CL_COMPONENT(name, at)                                            \
  template <class V>                                                      \
  inline __attribute__((always_inline)) decltype(auto) cl_##name(V&& v) { \
    if constexpr (cl_lanes<V> != 0)                                       \
      return (v[at]);                                                     \
    else                                                                  \
      return (v.name);                                                    \
  }
CL_COMPONENT(x, 0)
CL_COMPONENT(y, 1)
CL_COMPONENT(z, 2)
CL_COMPONENT(w, 3)
CL_COMPONENT(s0, 0)
CL_COMPONENT(s1, 1)
CL_COMPONENT(s2, 2)
CL_COMPONENT(s3, 3)
CL_COMPONENT(s4, 4)
CL_COMPONENT(s5, 5)
CL_COMPONENT(s6, 6)
CL_COMPONENT(s7, 7)
CL_COMPONENT(s8, 8)
CL_COMPONENT(s9, 9)
CL_COMPONENT(sa, 10)
CL_COMPONENT(sb, 11)
CL_COMPONENT(sc, 12)
CL_COMPONENT(sd, 13)
CL_COMPONENT(se, 14)
CL_COMPONENT(sf, 15)
/// Half of a vector. Of one that is no temporary the half itself, which can be assigned.
template <class V>
using cl_half_of = typename cl_vector_of<cl_element<V>, cl_lanes<V> / 2>::type;
#define CL_HALF(name, at)                                                                     \
  template <class V>                                                                          \
  inline __attribute__((always_inline)) decltype(auto) cl_##name(V&& v) {                     \
    if constexpr (cl_lanes<V> == 0) {                                                         \
      return (v.name);                                                                        \
    } else {                                                                                  \
      typedef cl_half_of<V> H;                                                                \
      typedef H M __attribute__((may_alias, aligned(sizeof(cl_element<V>))));                 \
      if constexpr (cl_same<V, cl_plain_t<V>&>)                                               \
        return *reinterpret_cast<M*>(reinterpret_cast<char*>(&v) + (at) * sizeof(H));         \
      else {                                                                                  \
        H h;                                                                                  \
        __builtin_memcpy(&h, reinterpret_cast<const char*>(&v) + (at) * sizeof(H), sizeof h); \
        return H(h);                                                                          \
      }                                                                                       \
    }                                                                                         \
  }
CL_HALF(lo, 0)
CL_HALF(hi, 1)
#define CL_EVERY_OTHER(name, from)                                          \
  template <class V>                                                        \
  inline __attribute__((always_inline)) auto cl_##name(V v) {               \
    if constexpr (cl_lanes<V> == 0) {                                       \
      return v.name;                                                        \
    } else {                                                                \
      typename cl_vector_of<cl_element<V>, cl_lanes<V> / 2>::type r;        \
      if constexpr (cl_lanes<V> == 2)                                       \
        r = v[from];                                                        \
      else                                                                  \
        for (int i = 0; i < cl_lanes<V> / 2; ++i) r[i] = v[2 * i + (from)]; \
      return r;                                                             \
    }                                                                       \
  }
CL_EVERY_OTHER(even, 0)
CL_EVERY_OTHER(odd, 1)

// ---- conversions and reinterpretation ----
template <class R, class T>
inline __attribute__((always_inline)) R cl_convert(T x) {
  if constexpr (cl_lanes<R> == 0)
    return (R)x;
  else
    return __builtin_convertvector(x, R);
}
#define CL_CONVERSIONS_TO(T)                                 \
  template <class X>                                         \
  inline __attribute__((always_inline)) T convert_##T(X x) { \
    return cl_convert<T>(x);                                 \
  }                                                          \
  template <class X>                                         \
  inline __attribute__((always_inline)) T as_##T(X x) {      \
    return __builtin_bit_cast(T, x);                         \
  }
#define CL_CONVERSIONS(T) CL_CONVERSIONS_TO(T) CL_CONVERSIONS_TO(T##2) CL_CONVERSIONS_TO(T##4) CL_CONVERSIONS_TO(T##8) CL_CONVERSIONS_TO(T##16)
CL_CONVERSIONS(char)
CL_CONVERSIONS(uchar)
CL_CONVERSIONS(short)
CL_CONVERSIONS(ushort)
CL_CONVERSIONS(int)
CL_CONVERSIONS(uint)
CL_CONVERSIONS(long)
CL_CONVERSIONS(ulong)
CL_CONVERSIONS(float)
CL_CONVERSIONS(double)

// ---- loads and stores of vectors at the alignment of their elements ----
template <class V, class T>
inline __attribute__((always_inline)) V cl_load(const T* p) {
  V v;
  __builtin_memcpy(&v, (const void*)p, sizeof v);
  return v;
}
#define CL_ACCESS(N)                                                          \
  template <class T>                                                          \
  inline __attribute__((always_inline)) auto vload##N(size_t i, const T* p) { \
    return cl_load<typename cl_vector_of<cl_plain_t<T>, N>::type>(p + N * i); \
  }                                                                           \
  template <class V, class T>                                                 \
  inline __attribute__((always_inline)) void vstore##N(V v, size_t i, T* p) { \
    static_assert(cl_lanes<V> == N);                                          \
    __builtin_memcpy((void*)(p + N * i), &v, sizeof v);                       \
  }
CL_ACCESS(2)
CL_ACCESS(4)
CL_ACCESS(8)
CL_ACCESS(16)

#ifdef __FLT16_MANT_DIG__
inline float cl_float_of(half h) { return (float)__builtin_bit_cast(_Float16, h); }
inline half cl_half_from(float x) { return __builtin_bit_cast(half, (_Float16)x); }
#else
inline float cl_float_of(half h) {
  const uint sign = (uint)(h.bits & 0x8000u) << 16, a = h.bits & 0x7FFFu;
  // The exponent's bias by a product that is exact, for subnormal numbers too.
  uint bits = a >= 0x7C00u ? 0x7F800000u | (a & 0x3FFu) << 13 : __builtin_bit_cast(uint, __builtin_bit_cast(float, a << 13) * 0x1p112f);
  if (a > 0x7C00u) bits |= 0x400000u;
  return __builtin_bit_cast(float, bits | sign);
}
inline half cl_half_from(float x) {
  const uint u = __builtin_bit_cast(uint, x), a = u & 0x7FFFFFFFu, sign = (u >> 16) & 0x8000u;
  uint r = a < 0x38800000u ? __builtin_bit_cast(uint, __builtin_bit_cast(float, a) + 0.5f) - 0x3F000000u : (a - 0x38000000u + 0xFFFu + ((a >> 13) & 1u)) >> 13;
  if (a >= 0x47800000u) r = 0x7C00u;
  if (a > 0x7F800000u) r = 0x7E00u | ((a >> 13) & 0x3FFu);
  return half{(ushort)(r | sign)};
}
#endif
inline float vload_half(size_t i, const half* p) { return cl_float_of(p[i]); }
inline void vstore_half(float x, size_t i, half* p) { p[i] = cl_half_from(x); }
inline void vstore_half_rte(float x, size_t i, half* p) { p[i] = cl_half_from(x); }
#define CL_HALVES(N)                                                                      \
  inline float##N vload_half##N(size_t i, const half* p) {                                \
    float##N v;                                                                           \
    for (int k = 0; k < N; ++k) v[k] = cl_float_of(p[N * i + k]);                         \
    return v;                                                                             \
  }                                                                                       \
  inline float##N vloada_half##N(size_t i, const half* p) { return vload_half##N(i, p); } \
  inline void vstore_half##N##_rte(float##N v, size_t i, half* p) {                       \
    for (int k = 0; k < N; ++k) p[N * i + k] = cl_half_from(v[k]);                        \
  }                                                                                       \
  inline void vstore_half##N(float##N v, size_t i, half* p) { vstore_half##N##_rte(v, i, p); }
CL_HALVES(2)
CL_HALVES(4)
CL_HALVES(8)
CL_HALVES(16)

// ---- functions of one or more numbers, lane by lane ----
#define CL_UNARY(name, f32, f64)                                    \
  inline float name(float x) { return f32(x); }                     \
  inline double name(double x) { return f64(x); }                   \
  template <class V, int N = cl_lanes<V>, class = decltype(V{}[0])> \
  inline __attribute__((always_inline)) V name(V v) {               \
    V r;                                                            \
    for (int i = 0; i < N; ++i) r[i] = name(v[i]);                  \
    return r;                                                       \
  }
CL_UNARY(sqrt, __builtin_sqrtf, __builtin_sqrt)
CL_UNARY(fabs, __builtin_fabsf, __builtin_fabs)
CL_UNARY(floor, __builtin_floorf, __builtin_floor)
CL_UNARY(ceil, __builtin_ceilf, __builtin_ceil)
CL_UNARY(trunc, __builtin_truncf, __builtin_trunc)
CL_UNARY(rint, __builtin_rintf, __builtin_rint)
CL_UNARY(round, __builtin_roundf, __builtin_round)
CL_UNARY(exp, __builtin_expf, __builtin_exp)
CL_UNARY(exp2, __builtin_exp2f, __builtin_exp2)
CL_UNARY(log, __builtin_logf, __builtin_log)
CL_UNARY(log2, __builtin_log2f, __builtin_log2)
CL_UNARY(sin, __builtin_sinf, __builtin_sin)
CL_UNARY(cos, __builtin_cosf, __builtin_cos)
inline float native_recip(float x) { return 1.0f / x; }
inline float native_exp2(float x) { return exp2(x); }
inline float rsqrt(float x) { return 1.0f / sqrt(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float native_rsqrt(float x) { return rsqrt(x); }

inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class V, int N = cl_lanes<V>, class = decltype(V{}[0])>
inline __attribute__((always_inline)) V fma(V a, V b, V c) {
  V r;
  for (int i = 0; i < N; ++i) r[i] = fma(a[i], b[i], c[i]);
  return r;
}
inline float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
inline double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
inline float copysign(float x, float s) { return __builtin_copysignf(x, s); }
inline double copysign(double x, double s) { return __builtin_copysign(x, s); }
inline float fmax(float a, float b) { return __builtin_fmaxf(a, b); }
inline double fmax(double a, double b) { return __builtin_fmax(a, b); }
inline float fmin(float a, float b) { return __builtin_fminf(a, b); }
inline double fmin(double a, double b) { return __builtin_fmin(a, b); }
inline int isnan(float x) { return x != x; }
inline int isnan(double x) { return x != x; }
inline int isinf(float x) { return fabs(x) == __builtin_inff(); }
inline int isinf(double x) { return fabs(x) == __builtin_inf(); }
inline int isfinite(float x) { return fabs(x) < __builtin_inff(); }
inline int isfinite(double x) { return fabs(x) < __builtin_inf(); }

template <class A, class B>
inline __attribute__((always_inline)) auto min(A a, B b) {
  if constexpr (cl_lanes<A> == 0) {
    typedef decltype(a + b) R;
    return (A)((R)b < (R)a ? b : a);
  } else {
    const A c = cl_make<A>(b);
    return c < a ? c : a;
  }
}
template <class A, class B>
inline __attribute__((always_inline)) auto max(A a, B b) {
  if constexpr (cl_lanes<A> == 0) {
    typedef decltype(a + b) R;
    return (A)((R)a < (R)b ? b : a);
  } else {
    const A c = cl_make<A>(b);
    return a < c ? c : a;
  }
}
template <class A, class B, class C>
inline __attribute__((always_inline)) A clamp(A x, B low, C high) {
  return min(max(x, low), high);
}

template <class T>
struct cl_unsigned {
  typedef T type;
};
template <>
struct cl_unsigned<char> {
  typedef uchar type;
};
template <>
struct cl_unsigned<short> {
  typedef ushort type;
};
template <>
struct cl_unsigned<int> {
  typedef uint type;
};
template <>
struct cl_unsigned<long> {
  typedef ulong type;
};
template <class T>
inline auto abs(T x) {
  return (typename cl_unsigned<T>::type)(x < 0 ? -(typename cl_unsigned<T>::type)x : (typename cl_unsigned<T>::type)x);
}
template <class T>
inline T clz(T x) {
  if constexpr (sizeof(T) == 8)
    return (T)(x == 0 ? 64 : __builtin_clzl((ulong)x));
  else
    return (T)(x == 0 ? 8 * sizeof(T) : __builtin_clz((uint)(typename cl_unsigned<T>::type)x) - (32 - 8 * (int)sizeof(T)));
}
template <class T>
inline T popcount(T x) {
  return (T)__builtin_popcountl((ulong)(typename cl_unsigned<T>::type)x);
}
inline uint mul_hi(uint a, uint b) { return (uint)(((ulong)a * b) >> 32); }
inline int mul_hi(int a, int b) { return (int)(((long)a * b) >> 32); }
inline ulong mul_hi(ulong a, ulong b) { return (ulong)(((unsigned __int128)a * b) >> 64); }
inline long mul_hi(long a, long b) { return (long)(((__int128)a * b) >> 64); }
template <class V, int N = cl_lanes<V>, class = decltype(V{}[0])>
inline V mul_hi(V a, V b) {
  V r;
  for (int i = 0; i < N; ++i) r[i] = mul_hi(a[i], b[i]);
  return r;
}
template <class V>
inline int any(V v) {
  if constexpr (cl_lanes<V> == 0) {
    return v < 0;
  } else {
    int r = 0;
    for (int i = 0; i < cl_lanes<V>; ++i) r |= v[i] < 0;
    return r;
  }
}
template <class V>
inline int all(V v) {
  if constexpr (cl_lanes<V> == 0) {
    return v < 0;
  } else {
    int r = 1;
    for (int i = 0; i < cl_lanes<V>; ++i) r &= v[i] < 0;
    return r;
  }
}
template <class V, class M>
inline __attribute__((always_inline)) V select(V a, V b, M m) {
  if constexpr (cl_lanes<V> == 0)
    return m ? b : a;
  else
    return (m < 0) ? b : a;
}
template <class T>
inline T rotate(T x, T n) {
  typedef typename cl_unsigned<T>::type U;
  const int bits = 8 * sizeof(T), by = (int)((U)n % (U)bits);
  return by == 0 ? x : (T)(((U)x << by) | ((U)x >> (bits - by)));
}

// ---- work-items ----
#define CLK_LOCAL_MEM_FENCE 1u
#define CLK_GLOBAL_MEM_FENCE 2u
/// What the device tells a work-item. The same struct stands in launch.cpp.
struct cl_item {
  size_t groups[3], items[3], offset[3];
  size_t group[3], item[3];
  uint dimensions;
  void (*barrier)(void);
};
static thread_local const cl_item* clutch_item;
extern "C" __attribute__((visibility("default"))) void clutch_set_item(const cl_item* item) { clutch_item = item; }
inline size_t cl_at(const size_t (&all)[3], uint d, size_t otherwise) { return d < 3 ? all[d] : otherwise; }
inline uint get_work_dim() { return clutch_item->dimensions; }
inline size_t get_local_id(uint d) { return cl_at(clutch_item->item, d, 0); }
inline size_t get_local_size(uint d) { return cl_at(clutch_item->items, d, 1); }
inline size_t get_group_id(uint d) { return cl_at(clutch_item->group, d, 0); }
inline size_t get_num_groups(uint d) { return cl_at(clutch_item->groups, d, 1); }
inline size_t get_global_offset(uint d) { return cl_at(clutch_item->offset, d, 0); }
inline size_t get_global_size(uint d) { return get_num_groups(d) * get_local_size(d); }
inline size_t get_global_id(uint d) { return get_global_offset(d) + get_group_id(d) * get_local_size(d) + get_local_id(d); }
inline __attribute__((noinline)) void barrier(uint) { clutch_item->barrier(); }
inline void mem_fence(uint) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void prefetch(const void*, size_t) {}

#define CL_ATOMIC(name, builtin)               \
  template <class T, class U>                  \
  inline T name(volatile T* p, U x) {          \
    return builtin(p, (T)x, __ATOMIC_RELAXED); \
  }
CL_ATOMIC(atomic_add, __atomic_fetch_add)
CL_ATOMIC(atomic_sub, __atomic_fetch_sub)
CL_ATOMIC(atomic_or, __atomic_fetch_or)
CL_ATOMIC(atomic_and, __atomic_fetch_and)
CL_ATOMIC(atomic_xor, __atomic_fetch_xor)
CL_ATOMIC(atomic_xchg, __atomic_exchange_n)
template <class T>
inline T atomic_inc(volatile T* p) {
  return __atomic_fetch_add(p, (T)1, __ATOMIC_RELAXED);
}
template <class T>
inline T atomic_dec(volatile T* p) {
  return __atomic_fetch_sub(p, (T)1, __ATOMIC_RELAXED);
}
template <class T, class U, class W>
inline T atomic_cmpxchg(volatile T* p, U expected, W wanted) {
  T old = (T)expected;
  __atomic_compare_exchange_n(p, &old, (T)wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return old;
}
template <class T, class U, class F>
inline T cl_atomic_by(volatile T* p, U x, F better) {
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (better((T)x, old) && !__atomic_compare_exchange_n(p, &old, (T)x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
template <class T, class U>
inline T atomic_min(volatile T* p, U x) {
  return cl_atomic_by(p, x, [](T a, T b) { return a < b; });
}
template <class T, class U>
inline T atomic_max(volatile T* p, U x) {
  return cl_atomic_by(p, x, [](T a, T b) { return b < a; });
}

// ---- kernels: what the device asks of one. The same structs stand in program.cpp. ----
struct cl_parameter {
  int kind;  ///< 0 a value, 1 memory, 2 local memory
  size_t bytes;
};
struct cl_kernel {
  const char* name;
  void (*run)(void* const* arguments);
  const cl_parameter* parameters;
  size_t parameters_count;
  size_t required_items[3];
  int has_barriers;
};
