// SPDX-License-Identifier: Apache-2.0
// optim_step: a step of an optimizer over the tensors of a table: its rows are parameters, its columns the parameter, its gradient, its states and,
// with MASTER, its f32 weights.
// Ownership: tensors are cut into chunks of CHUNK elements; a group takes chunks in turn, its items WIDTH elements of them in turn. With COUNTS each
// chunk has a counter of its steps, which its group alone reads and writes. No local memory.
// Needs: T (parameters and gradients), S (states), OPTIMIZER (0 SGD, 1 Adam, 2 Adagrad, 3 RMSprop), NUMERICS (0 source, 1 torch_cpu, 2 f32,
// 3 composed), STATES (how many), EXTRA (amsgrad or centered), BUFFER (momentum), MASTER, SCALED (gradients are divided by a scale), CHUNK,
// SCALAR (type of the scalars that the host gives: double, or float without fp64), GROUPED (work-groups have several items), and what the included
// files need.
// Source: torch.optim of PyTorch 2.12.
#include "common/dtype.clh"
#include "common/launch.clh"
#include "common/math.clh"
#include "common/table.clh"

#if !defined(T) || !defined(S) || !defined(OPTIMIZER) || !defined(NUMERICS) || !defined(STATES) || !defined(CHUNK) || !defined(SCALAR)
#error "T, S, OPTIMIZER, NUMERICS, STATES, CHUNK and SCALAR are not defined"
#endif

#define SGD 0
#define ADAM 1
#define ADAGRAD 2
#define RMSPROP 3
#define SOURCE 0
#define TORCH_CPU 1
#define ALL_F32 2
#define COMPOSED 3

#define MAXIMIZE 1
#define NESTEROV 2
#define DECOUPLED 4
#define HAS_LR 8
#define COUNTS 16
#define HAS_FOUND 32
#define HAS_FACTOR 64

#define COLUMNS (2 + STATES + MASTER)

#ifdef T_IS_F64
#define ACC double
#define V VD
#define LANES DWIDTH
#define DIV(x, y) ((x) / (y))
#define SQRT(x) sqrt(x)
#define FMA(a, b, c) fma(a, b, c)
#else
#define ACC float
#define V VF
#define LANES WIDTH
#define DIV(x, y) div_rn(x, y)
#define SQRT(x) sqrt_rn(x)
#define FMA(a, b, c) fma_rn(a, b, c)
#endif
// What f64 scalars touch, where elements are f32.
#if NUMERICS == SOURCE && (OPTIMIZER == SGD || OPTIMIZER == ADAGRAD) && !defined(T_IS_F64)
#define MIXED 1
#define WIDE double
#if LANES > 1
#define WIDEV CLUTCH_CONCAT(double, LANES)
#define TO_WIDEV(x) CLUTCH_CONCAT(convert_double, LANES)(x)
#define TO_V(x) CLUTCH_CONCAT(convert_float, LANES)(x)
#endif
#else
#define WIDE ACC
#define WIDEV V
#define TO_WIDEV(x) (x)
#define TO_V(x) (x)
#endif
#ifdef MIXED
#define TO_WIDE(x) ((double)(x))
#define TO_ACC(x) ((float)(x))
#else
#define TO_WIDE(x) (x)
#define TO_ACC(x) (x)
#endif

// Else some compilers load the scalars for each vector.
#ifdef __clang__
#define CLUTCH_INLINE static inline __attribute__((always_inline))
#else
#define CLUTCH_INLINE static inline
#endif

// Scalars of a step, by the names of the formulas.
typedef struct {
  WIDE lr, signed_lr, momentum, undamped, wd, eps;  // SGD and Adagrad; lr is Adagrad's with its decay
  ACC b1, b2, c1, c2, step_size, root_correction, inverse, decay, rate, epsilon, weight_decay, buffer;
} Scalars;

// base^t: squares, and products with base where t has a bit, from the highest on.
#if NUMERICS != ALL_F32
static inline double power_of(double base, uint t) {
  double p = 1;
  for (int bit = 31 - (int)clz(t | 1u); bit >= 0; --bit) {
    p *= p;
    if (t >> bit & 1) p *= base;
  }
  return p;
}
#else
// In two floats, whose sum is the number.
static inline float2 product_of(float2 a, float2 b) {
  float high = a.x * b.x, low = fma_rn(a.x, b.x, -high) + fma_rn(a.x, b.y, a.y * b.x), sum = high + low;
  return (float2)(sum, low - (sum - high));
}
static inline float power_of(float base, uint t) {
  float2 p = (float2)(1, 0);
  for (int bit = 31 - (int)clz(t | 1u); bit >= 0; --bit) {
    p = product_of(p, p);
    if (t >> bit & 1) p = product_of(p, (float2)(base, 0));
  }
  return p.x;
}
#endif

// a: SGD's momentum, Adam's beta1, Adagrad's lr_decay, RMSprop's alpha; b: dampening, beta2, unused, momentum.
static inline Scalars scalars_of(SCALAR lr, SCALAR a, SCALAR b, SCALAR eps, SCALAR wd, uint t, uint flags) {
  Scalars k;
  k.lr = lr, k.signed_lr = flags & MAXIMIZE ? lr : -lr, k.momentum = a, k.undamped = 1 - b, k.wd = wd, k.eps = eps;
  k.b1 = (ACC)a, k.b2 = (ACC)b, k.c1 = (ACC)(1 - a), k.c2 = (ACC)(1 - b), k.epsilon = (ACC)eps, k.weight_decay = (ACC)wd, k.rate = (ACC)lr;
  k.decay = (ACC)(1 - lr * wd), k.buffer = (ACC)b;
  k.step_size = 0, k.root_correction = 1, k.inverse = 0;
#if OPTIMIZER == ADAM && (NUMERICS == SOURCE || NUMERICS == ALL_F32)
  k.decay = k.rate * k.weight_decay;
  k.step_size = DIV(k.rate, (ACC)1 - (ACC)power_of(k.b1, t));
  k.root_correction = SQRT((ACC)1 - (ACC)power_of(k.b2, t));
#elif OPTIMIZER == ADAM
  k.step_size = (ACC)(lr / (1 - power_of(a, t)));
  k.root_correction = (ACC)sqrt(1 - power_of(b, t));
#elif OPTIMIZER == ADAGRAD
  k.lr = (WIDE)(lr / (1 + (SCALAR)(t - 1) * a));
  k.rate = (ACC)k.lr;
#endif
#if OPTIMIZER == ADAM
  if (k.root_correction >= (ACC)0x1p-60f && k.root_correction <= 1) k.inverse = DIV((ACC)1, k.root_correction);
#endif
  return k;
}

// Corrects roots x of second moments: x / root_correction, rounded correctly (Markstein: the quotient by a correctly rounded inverse is off by an
// ulp at most, its remainder is exact and corrects it). x is 0, at least 2^-75, infinite or NaN. Vectors have few dividers.
#if LANES >= 8 && !defined(T_IS_F64)
CLUTCH_INLINE V corrected(V x, const Scalars* k) {
  if (k->inverse == 0) return DIV(x, (V)k->root_correction);
  V q = x * k->inverse, fixed = FMA(FMA(-(V)k->root_correction, q, x), (V)k->inverse, q);
  return x < (V)INFINITY ? fixed : x;
}
#define CORRECTED_V(x) corrected(x, k)
#else
#define CORRECTED_V(x) DIV(x, (V)k->root_correction)
#endif
#define CORRECTED_ACC(x) DIV(x, k->root_correction)

// NaN where either is.
#define MAX_NAN(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

// UPDATE(R, W, TW, TR, CORRECTED): one step of elements p, g, s0, s1, s2 of type R; W, TW() and TR() are the wide type and the ways there and back.
#if OPTIMIZER == SGD && (NUMERICS == SOURCE || NUMERICS == ALL_F32)
#define UPDATE(R, W, TW, TR, CORRECTED)                                    \
  if (k->wd != 0) g = TR(TW(g) + (W)k->wd * TW(p));                        \
  if (BUFFER) {                                                            \
    s0 = first ? g : TR((W)k->momentum * TW(s0) + (W)k->undamped * TW(g)); \
    g = flags & NESTEROV ? TR(TW(g) + (W)k->momentum * TW(s0)) : s0;       \
  }                                                                        \
  p = TR(TW(p) + (W)k->signed_lr * TW(g));
#elif OPTIMIZER == SGD
#define UPDATE(R, W, TW, TR, CORRECTED)                        \
  if (flags & MAXIMIZE) g = -g;                                \
  if (k->weight_decay != 0) g = FMA(p, (R)k->weight_decay, g); \
  if (BUFFER) {                                                \
    s0 = first ? g : FMA(g, (R)k->c2, s0 * (R)k->b1);          \
    g = flags & NESTEROV ? FMA(s0, (R)k->b1, g) : s0;          \
  }                                                            \
  p = FMA(g, -(R)k->rate, p);
#elif OPTIMIZER == ADAM && (NUMERICS == SOURCE || NUMERICS == ALL_F32)
#define UPDATE(R, W, TW, TR, CORRECTED)                                       \
  if (flags & MAXIMIZE) g = -g;                                               \
  if (k->weight_decay != 0) {                                                 \
    if (flags & DECOUPLED) {                                                  \
      p = p - (R)k->decay * p;                                                \
    } else {                                                                  \
      g = g + p * (R)k->weight_decay;                                         \
    }                                                                         \
  }                                                                           \
  s0 = FMA((R)k->b1, s0, FMA(-(R)k->b1, g, g));                               \
  {                                                                           \
    R square = g * g, root;                                                   \
    s1 = FMA((R)k->b2, s1, FMA(-(R)k->b2, square, square));                   \
    root = s1;                                                                \
    if (EXTRA) s2 = s2 < s1 ? s1 : s2, root = s2;                             \
    p = p - DIV((R)k->step_size * s0, CORRECTED(SQRT(root)) + (R)k->epsilon); \
  }
#elif OPTIMIZER == ADAM
#if NUMERICS == TORCH_CPU
#define SECOND_MOMENT(R) FMA(g*(R)k->c2, g, s1*(R)k->b2)
#define STEP_OF(R, root) (p - DIV((R)k->step_size * s0, root))
#else
#define SECOND_MOMENT(R) FMA((R)k->c2, g* g, s1*(R)k->b2)
#define STEP_OF(R, root) FMA(-(R)k->step_size, DIV(s0, root), p)
#endif
#define UPDATE(R, W, TW, TR, CORRECTED)                                                       \
  if (flags & MAXIMIZE) g = -g;                                                               \
  if (k->weight_decay != 0) {                                                                 \
    if (flags & DECOUPLED) {                                                                  \
      p = p * (R)k->decay;                                                                    \
    } else {                                                                                  \
      g = FMA(p, (R)k->weight_decay, g);                                                      \
    }                                                                                         \
  }                                                                                           \
  {                                                                                           \
    R way = g - s0, root;                                                                     \
    s0 = fabs(k->c1) < (ACC)0.5 ? FMA((R)k->c1, way, s0) : FMA(-way, (R)((ACC)1 - k->c1), g); \
    s1 = SECOND_MOMENT(R);                                                                    \
    root = s1;                                                                                \
    if (EXTRA) s2 = MAX_NAN(s2, s1), root = s2;                                               \
    root = CORRECTED(SQRT(root)) + (R)k->epsilon;                                             \
    p = STEP_OF(R, root);                                                                     \
  }
#elif OPTIMIZER == ADAGRAD && (NUMERICS == SOURCE || NUMERICS == ALL_F32)
#ifdef MIXED
#define QUOTIENT(x, y) ((x) / (y))
#else
#define QUOTIENT(x, y) DIV(x, y)
#endif
#define UPDATE(R, W, TW, TR, CORRECTED)             \
  if (flags & MAXIMIZE) g = -g;                     \
  if (k->wd != 0) g = TR(TW(g) + TW(p) * (W)k->wd); \
  s0 = s0 + g * g;                                  \
  p = TR(TW(p) - QUOTIENT((W)k->lr * TW(g), TW(SQRT(s0)) + (W)k->eps));
#elif OPTIMIZER == ADAGRAD
#if NUMERICS == TORCH_CPU
#define STEP_OF(R) (p - DIV((R)k->rate * g, SQRT(s0) + (R)k->epsilon))
#else
#define STEP_OF(R) FMA(-(R)k->rate, DIV(g, SQRT(s0) + (R)k->epsilon), p)
#endif
#define UPDATE(R, W, TW, TR, CORRECTED)                        \
  if (flags & MAXIMIZE) g = -g;                                \
  if (k->weight_decay != 0) g = FMA(p, (R)k->weight_decay, g); \
  s0 = FMA(g, g, s0);                                          \
  p = STEP_OF(R);
#else
#if NUMERICS == TORCH_CPU
#define SECOND_MOMENT(R) FMA(g*(R)k->c1, g, s0*(R)k->b1)
#define VARIANCE FMA(-s2, s2, s0)
#define STEP_OF(R) (p + DIV(-(R)k->rate * g, root))
#else
#define SECOND_MOMENT(R) FMA((R)k->c1, g* g, s0*(R)k->b1)
#define VARIANCE (s0 - s2 * s2)
#define STEP_OF(R) FMA(-(R)k->rate, DIV(g, root), p)
#endif
// States: square_avg, then momentum_buffer (BUFFER), then grad_avg (EXTRA).
#define UPDATE(R, W, TW, TR, CORRECTED)                                                         \
  if (flags & MAXIMIZE) g = -g;                                                                 \
  if (k->weight_decay != 0) g = FMA(p, (R)k->weight_decay, g);                                  \
  s0 = SECOND_MOMENT(R);                                                                        \
  {                                                                                             \
    R root = s0;                                                                                \
    if (EXTRA) {                                                                                \
      R way = g - s2;                                                                           \
      s2 = fabs(k->c1) < (ACC)0.5 ? FMA((R)k->c1, way, s2) : FMA(-way, (R)((ACC)1 - k->c1), g); \
      root = VARIANCE;                                                                          \
    }                                                                                           \
    root = SQRT(root) + (R)k->epsilon;                                                          \
    if (BUFFER) {                                                                               \
      s1 = s1 * (R)k->buffer + DIV(g, root);                                                    \
      p = FMA(-(R)k->rate, s1, p);                                                              \
    } else {                                                                                    \
      p = STEP_OF(R);                                                                           \
    }                                                                                           \
  }
#endif

// States by their columns; those that are not there are never loaded.
#define HAS_S0 (STATES > 0)
#define HAS_S1 (OPTIMIZER == ADAM || (OPTIMIZER == RMSPROP && BUFFER))
#define HAS_S2 (EXTRA)
#define S2_AT (1 + STATES)

#define LOAD_T CLUTCH_CONCAT(load_, T_NAME)
#define STORE_T CLUTCH_CONCAT(store_, T_NAME)
#define LOADV_T CLUTCH_CONCAT(loadv_, T_NAME)
#define STOREV_T CLUTCH_CONCAT(storev_, T_NAME)
#define LOAD_S CLUTCH_CONCAT(load_, S_NAME)
#define STORE_S CLUTCH_CONCAT(store_, S_NAME)
#define LOADV_S CLUTCH_CONCAT(loadv_, S_NAME)
#define STOREV_S CLUTCH_CONCAT(storev_, S_NAME)

// Where a row's elements lie.
typedef struct {
  __global uchar *p, *g, *s0, *s1, *s2, *master;
} Row;

// Gradients as the step takes them: g / scale, which is what is stored, and times factor.
#if SCALED
#define UNSCALED(R, g) DIV(g, (R)scale)
#else
#define UNSCALED(R, g) (g)
#endif
#define UPDATE_ALL(R, W, TW, TR, CORRECTED) \
  g = g * (R)factor;                        \
  UPDATE(R, W, TW, TR, CORRECTED)

// Elements from i on, as many as R holds.
#define STEP_AT(R, W, TW, TR, CORRECTED, LOADT, STORET, LOADS, STORES, LOADM, STOREM)     \
  {                                                                                       \
    R p = MASTER ? LOADM(r->master, i) : LOADT(r->p, i), g = UNSCALED(R, LOADT(r->g, i)); \
    R s0 = HAS_S0 ? LOADS(r->s0, i) : (R)0, s1 = HAS_S1 ? LOADS(r->s1, i) : (R)0;         \
    R s2 = HAS_S2 ? LOADS(r->s2, i) : (R)0;                                               \
    if (SCALED) STORET(r->g, i, g);                                                       \
    UPDATE_ALL(R, W, TW, TR, CORRECTED)                                                   \
    if (HAS_S0) STORES(r->s0, i, s0);                                                     \
    if (HAS_S1) STORES(r->s1, i, s1);                                                     \
    if (HAS_S2) STORES(r->s2, i, s2);                                                     \
    if (MASTER) STOREM(r->master, i, p);                                                  \
    STORET(r->p, i, p);                                                                   \
  }

#if MASTER
#define LOAD_M load_f32
#define STORE_M store_f32
#define LOADV_M loadv_f32
#define STOREV_M storev_f32
#else
#define LOAD_M LOAD_T
#define STORE_M STORE_T
#define LOADV_M LOADV_T
#define STOREV_M STOREV_T
#endif

#define STEP_PARAMS const Row *r, long i, const Scalars *k, ACC scale, ACC factor, int first, uint flags
#if LANES > 1 && DIV_RN == 0 && FMA_RN == 0 && SQRT_RN == 0
#define VECTORS 1
#if defined(T_IS_BF16) && defined(S_IS_BF16) && !MASTER && defined(CLUTCH_UNALIGNED)
// Even and odd elements apart: nothing is widened or narrowed across lanes.
#define STEP (2 * LANES)
CLUTCH_INLINE void step_vector(STEP_PARAMS) {
  const VU words_p = load_words(r->p, i), words_g = load_words(r->g, i), none = 0;
  const VU words_0 = HAS_S0 ? load_words(r->s0, i) : none, words_1 = HAS_S1 ? load_words(r->s1, i) : none, words_2 = HAS_S2 ? load_words(r->s2, i) : none;
  V ps[2], gs[2], s0s[2], s1s[2], s2s[2];
#pragma unroll
  for (int odd = 0; odd < 2; ++odd) {
    V p = odd ? BF16_ODD(words_p) : BF16_EVEN(words_p), g = odd ? BF16_ODD(words_g) : BF16_EVEN(words_g);
    V s0 = odd ? BF16_ODD(words_0) : BF16_EVEN(words_0), s1 = odd ? BF16_ODD(words_1) : BF16_EVEN(words_1);
    V s2 = odd ? BF16_ODD(words_2) : BF16_EVEN(words_2);
    g = UNSCALED(V, g), gs[odd] = g;
    UPDATE_ALL(V, WIDEV, TO_WIDEV, TO_V, CORRECTED_V)
    ps[odd] = p, s0s[odd] = s0, s1s[odd] = s1, s2s[odd] = s2;
  }
  if (SCALED) store_words(r->g, i, bf16_join_quiet(gs[0], gs[1]));
  if (HAS_S0) store_words(r->s0, i, bf16_join_quiet(s0s[0], s0s[1]));
  if (HAS_S1) store_words(r->s1, i, bf16_join_quiet(s1s[0], s1s[1]));
  if (HAS_S2) store_words(r->s2, i, bf16_join_quiet(s2s[0], s2s[1]));
  store_words(r->p, i, bf16_join_quiet(ps[0], ps[1]));
}
#else
#define STEP LANES
CLUTCH_INLINE void step_vector(STEP_PARAMS){STEP_AT(V, WIDEV, TO_WIDEV, TO_V, CORRECTED_V, LOADV_T, STOREV_T, LOADV_S, STOREV_S, LOADV_M, STOREV_M)}
#endif
#else
#define VECTORS 0
#endif
CLUTCH_INLINE void step_one(STEP_PARAMS) { STEP_AT(ACC, WIDE, TO_WIDE, TO_ACC, CORRECTED_ACC, LOAD_T, STORE_T, LOAD_S, STORE_S, LOAD_M, STORE_M) }

static inline Row row_of(const Table* table, ulong row) {
  ulong at = row * COLUMNS;
  Row r;
  r.p = table_at(table, at), r.g = table_at(table, at + 1);
  r.s0 = HAS_S0 ? table_at(table, at + 2) : r.p, r.s1 = HAS_S1 ? table_at(table, at + 3) : r.p, r.s2 = HAS_S2 ? table_at(table, at + S2_AT) : r.p;
  r.master = MASTER ? table_at(table, at + COLUMNS - 1) : r.p;
  return r;
}

#if VECTORS
// Lines that are wanted soon: a core waits for them otherwise, since an element's step is long.
#define AHEAD 1024
#define PREFETCH_ROW                               \
  CLUTCH_PREFETCH(r.p + i * sizeof(T) + AHEAD);    \
  CLUTCH_PREFETCH(r.g + i * sizeof(T) + AHEAD);    \
  if (HAS_S0) {                                    \
    CLUTCH_PREFETCH(r.s0 + i * sizeof(S) + AHEAD); \
  }                                                \
  if (HAS_S1) {                                    \
    CLUTCH_PREFETCH(r.s1 + i * sizeof(S) + AHEAD); \
  }
#endif

#ifdef CLUTCH_ENTRY_optim_step
static inline void optim_step_body(CLUTCH_ID_PARAMS, const Table* table, __global const ulong* sizes, __global const uint2* chunks, __global float* steps,
                                   SCALAR lr, ACC scale, ACC factor, SCALAR a, SCALAR b, SCALAR eps, SCALAR wd, uint flags, uint chunk_count, uint first_row) {
  Scalars k;
  uint known = 0;  // the step that k is of
  for (ulong c = group; c < chunk_count; c += groups) {
    const uint2 chunk = chunks[c];
    if (table->words[(chunk.x - first_row) * (ulong)COLUMNS + 1] == CLUTCH_NO_TENSOR) continue;
    __global float* counter = steps + (flags & COUNTS ? c : (ulong)chunk.x);
    const uint t = (uint)*counter + (flags & COUNTS ? 1 : 0);
#ifdef GROUPED
    barrier(CLK_GLOBAL_MEM_FENCE);
#endif
    if (flags & COUNTS && lane == 0) *counter = t;
    if (t != known) k = scalars_of(lr, a, b, eps, wd, t, flags), known = t;
    const Row r = row_of(table, chunk.x - first_row);
    const ulong begin = (ulong)chunk.y * CHUNK, end = min(begin + CHUNK, sizes[chunk.x]);
    ulong tail = begin;
#if VECTORS
    tail = begin + (end - begin) / STEP * STEP;
    for (ulong i = begin + lane * STEP; i < tail; i += lanes * STEP) {
      PREFETCH_ROW
      step_vector(&r, (long)i, &k, scale, factor, t == 1, flags);
    }
#endif
    for (ulong i = tail + lane; i < end; i += lanes) step_one(&r, (long)i, &k, scale, factor, t == 1, flags);
  }
}

__kernel void optim_step(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global const uchar* sizes, ulong sizes_offset, __global const uchar* chunks,
                         ulong chunks_offset, __global uchar* steps, ulong steps_offset, __global const uchar* lrs, ulong lrs_offset,
                         __global const uchar* scales, ulong scales_offset, __global const uchar* found, ulong found_offset, __global const uchar* factors,
                         ulong factors_offset, SCALAR lr, SCALAR a, SCALAR b, SCALAR eps, SCALAR wd, uint flags, uint chunk_count, uint first_row) {
  CLUTCH_IF_PREDICATE
  if (flags & HAS_FOUND && *(__global const float*)(found + found_offset) != 0) return;
  CLUTCH_TABLE(table)
  // Any NaN becomes the one without low bits: see bf16_join_quiet.
  float given = 0, scale = 1, factor = 1;
  if (flags & HAS_LR) given = *(__global const float*)(lrs + lrs_offset), lr = isnan(given) ? (SCALAR)NAN : (SCALAR)given;
  if (SCALED) scale = *(__global const float*)(scales + scales_offset), scale = isnan(scale) ? NAN : scale;
  if (flags & HAS_FACTOR) factor = *(__global const float*)(factors + factors_offset), factor = isnan(factor) ? NAN : factor;
  optim_step_body(CLUTCH_IDS, &table, (__global const ulong*)(sizes + sizes_offset), (__global const uint2*)(chunks + chunks_offset),
                  (__global float*)(steps + steps_offset), lr, scale, factor, a, b, eps, wd, flags, chunk_count, first_row);
}
#endif
