// SPDX-License-Identifier: Apache-2.0
// addcdiv and addcmul: out = input + value * (t1 op t2), rounded in the order that CLUTCH_ORDER names.
// Ownership: a group owns tiles of CLUTCH_TILE consecutive elements; its items take WIDTH of them in turn, so that one item walks a
// tile in order and many items read side by side. No local memory.
// Needs: T (dtype of all operands), ACC (compute type), CLUTCH_OP and CLUTCH_ORDER (addc/args.h),
// CLUTCH_IS_INTEGER, and what the included files need.
// Source: PyTorch 2.12, torch.addcdiv and torch.addcmul.
#include "addc/args.h"
#include "common/dtype.clh"
#include "common/elementwise.clh"
#include "common/launch.clh"
#include "common/math.clh"

#if !defined(T) || !defined(T_NAME) || !defined(ACC) || !defined(CLUTCH_OP) || !defined(CLUTCH_ORDER) || !defined(CLUTCH_IS_INTEGER)
#error "T, T_NAME, ACC, CLUTCH_OP, CLUTCH_ORDER and CLUTCH_IS_INTEGER are not defined"
#endif

#define LOAD CLUTCH_CONCAT(load_, T_NAME)
#define STORE CLUTCH_CONCAT(store_, T_NAME)
#define LOADV CLUTCH_CONCAT(loadv_, T_NAME)
#define STOREV CLUTCH_CONCAT(storev_, T_NAME)
#define STREAMV CLUTCH_CONCAT(streamv_, T_NAME)
#define LOADA CLUTCH_CONCAT(loada_, T_NAME)
#define STOREA CLUTCH_CONCAT(storea_, T_NAME)
#ifdef T_IS_F64
#define V VD
#define LANES DWIDTH
#define DIV(x, y) ((x) / (y))
#define FMA(a, b, c) fma(a, b, c)
#else
#define V VF
#define LANES WIDTH
#define DIV(x, y) div_rn(x, y)
#define FMA(a, b, c) fma_rn(a, b, c)
#endif

// The same text serves scalars and vectors. value == 1 changes addcmul's first order alone: one fma without value.
#if CLUTCH_IS_INTEGER
#define COMBINE(R, x, a, b, value, one) ((x) + (value) * ((a) * (b)))
#elif CLUTCH_OP == ADDC_QUOTIENT && CLUTCH_ORDER == ADDC_FMA_OF_QUOTIENT
#define COMBINE(R, x, a, b, value, one) FMA((R)(value), DIV(a, b), x)
#elif CLUTCH_OP == ADDC_QUOTIENT && CLUTCH_ORDER == ADDC_PRODUCT_FIRST
#define COMBINE(R, x, a, b, value, one) ((x) + DIV((R)(value) * (a), b))
#elif CLUTCH_OP == ADDC_QUOTIENT
#define COMBINE(R, x, a, b, value, one) ((x) + (R)(value)*DIV(a, b))
#elif CLUTCH_ORDER == ADDC_FMA_OF_QUOTIENT
#define COMBINE(R, x, a, b, value, one) FMA((one) ? (a) : (R)(value), (one) ? (b) : (a) * (b), x)
#elif CLUTCH_ORDER == ADDC_PRODUCT_FIRST
#define COMBINE(R, x, a, b, value, one) FMA((R)(value) * (a), b, x)
#else
#define COMBINE(R, x, a, b, value, one) ((x) + (R)(value) * ((a) * (b)))
#endif

static inline ACC combine(ACC x, ACC a, ACC b, ACC value, int one) { return COMBINE(ACC, x, a, b, value, one); }

// Emulated rounding is scalar.
#if !CLUTCH_IS_INTEGER && LANES > 1 && CLUTCH_DIV_RN == CLUTCH_RN_NATIVE && CLUTCH_FMA_RN == CLUTCH_RN_NATIVE
static inline V combinev(V x, V a, V b, ACC value, int one) { return COMBINE(V, x, a, b, value, one); }
#define VECTORS 1
#ifdef CLUTCH_HAS_WHOLE
#define VECTORS_MAY_BE_WHOLE 1
static inline V combine_whole(__global const uchar* input, __global const uchar* t1, __global const uchar* t2, ulong i, ACC value, int one) {
  return combinev(LOADA(input, i), LOADA(t1, i), LOADA(t2, i), value, one);
}
#endif
// One step of the contiguous walk: ELEMENTS_PER_STEP elements from element i.
#if defined(T_IS_BF16) && defined(CLUTCH_UNALIGNED)
#define ELEMENTS_PER_STEP (2 * LANES)
static inline VU combine_step(__global const uchar* input, __global const uchar* t1, __global const uchar* t2, ulong i, ACC value, int one) {
  VU x = load_words(input, i), a = load_words(t1, i), b = load_words(t2, i);
  return bf16_join(combinev(CLUTCH_BF16_EVEN(x), CLUTCH_BF16_EVEN(a), CLUTCH_BF16_EVEN(b), value, one),
                   combinev(CLUTCH_BF16_ODD(x), CLUTCH_BF16_ODD(a), CLUTCH_BF16_ODD(b), value, one));
}
#define STORE_STEP store_words
#define STREAM_STEP stream_words
#else
#define ELEMENTS_PER_STEP LANES
static inline V combine_step(__global const uchar* input, __global const uchar* t1, __global const uchar* t2, ulong i, ACC value, int one) {
  return combinev(LOADV(input, i), LOADV(t1, i), LOADV(t2, i), value, one);
}
#define STORE_STEP STOREV
#define STREAM_STEP STREAMV
#endif
#else
#define VECTORS 0
#endif

#ifdef CLUTCH_ENTRY_addc_contiguous
#define WALK(elements, store, combined) \
  for (ulong i = begin + item * (elements); i < tail; i += items * (elements)) store(out, i, combined(input, t1, t2, i, value, one));
static inline void addc_contiguous_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* input, __global const uchar* t1, __global const uchar* t2,
                                        ulong n, ACC value, uint streaming) {
  int one = value == (ACC)1;
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n), tail = begin;
#if VECTORS
    tail = begin + (end - begin) / ELEMENTS_PER_STEP * ELEMENTS_PER_STEP;
#ifdef VECTORS_MAY_BE_WHOLE
    if (CLUTCH_WHOLE((ulong)out | (ulong)input | (ulong)t1 | (ulong)t2)) {
      if (streaming) {
        WALK(LANES, STREAMV, combine_whole)
      } else {
        WALK(LANES, STOREA, combine_whole)
      }
    } else
#endif
        if (streaming && ((ulong)(out + begin * sizeof(T)) % (ELEMENTS_PER_STEP * sizeof(T))) == 0) {
      WALK(ELEMENTS_PER_STEP, STREAM_STEP, combine_step)
    } else {
      WALK(ELEMENTS_PER_STEP, STORE_STEP, combine_step)
    }
#endif
    for (ulong i = tail + item; i < end; i += items) STORE(out, i, combine(LOAD(input, i), LOAD(t1, i), LOAD(t2, i), value, one));
  }
}

__kernel void addc_contiguous(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* input, ulong input_offset, __global const uchar* t1,
                              ulong t1_offset, __global const uchar* t2, ulong t2_offset, ulong n, ACC value, uint streaming) {
  CLUTCH_IF_PREDICATE
  addc_contiguous_body(CLUTCH_IDS, out + out_offset, input + input_offset, t1 + t1_offset, t2 + t2_offset, n, value, streaming);
}
#endif

// Rows: the output's inner stride is 1, the inputs' are 0 or 1, the outer dimensions are anything.
#ifdef CLUTCH_ENTRY_addc_rows
#define COMBINE_OF_ROW(i) STORE(out, o.at[0] + (i), combine(LOAD(input, o.at[1] + (i)*si), LOAD(t1, o.at[2] + (i)*sa), LOAD(t2, o.at[3] + (i)*sb), value, one));
#if VECTORS
#define LOAD_ROW(p, o, s, i, load) ((s) ? load(p, (o) + (i)) : (V)LOAD(p, o))
#define COMBINE_ROW(i, load, store) \
  store(out, o.at[0] + i, combinev(LOAD_ROW(input, o.at[1], si, i, load), LOAD_ROW(t1, o.at[2], sa, i, load), LOAD_ROW(t2, o.at[3], sb, i, load), value, one));
#define WALK_ROW(load, store) \
  for (IDX i = begin + (IDX)item * LANES; i < tail; i += (IDX)items * LANES) COMBINE_ROW(i, load, store)
#ifdef VECTORS_MAY_BE_WHOLE
#define COMBINE_VECTOR(i, o)                                                                                                                    \
  if (CLUTCH_WHOLE((ulong)out | (ulong)input | (ulong)t1 | (ulong)t2) && (o.at[0] | o.at[1] * si | o.at[2] * sa | o.at[3] * sb) % LANES == 0) { \
    COMBINE_ROW(i, LOADA, STOREA)                                                                                                               \
  } else {                                                                                                                                      \
    COMBINE_ROW(i, LOADV, STOREV)                                                                                                               \
  }
#else
#define COMBINE_VECTOR(i, o) COMBINE_ROW(i, LOADV, STOREV)
#endif
#else
#define COMBINE_VECTOR(i, o) \
  for (int j = 0; j < LANES; ++j) COMBINE_OF_ROW(i + j)
#endif
#define COMBINE_UNIT(unit, o)                             \
  const IDX first = unit * LANES;                         \
  if (first + LANES <= inner) {                           \
    COMBINE_VECTOR(first, o)                              \
  } else {                                                \
    for (IDX i = first; i < inner; ++i) COMBINE_OF_ROW(i) \
  }
static inline void addc_rows_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* input, __global const uchar* t1, __global const uchar* t2,
                                  const Shape* shape, ulong n, ACC value) {
  int one = value == (ACC)1;
  const IDX si = (IDX)shape->stride[1][0], sa = (IDX)shape->stride[2][0], sb = (IDX)shape->stride[3][0];
#ifdef CLUTCH_IS_CPU
  ulong inner = (ulong)shape->size[0], chunks = (inner + CLUTCH_TILE - 1) / CLUTCH_TILE, tiles = n / inner * chunks;
  for (ulong tile = group; tile < tiles; tile += groups) {
    ulong row = tile / chunks;
    IDX begin = (IDX)((tile - row * chunks) * CLUTCH_TILE), end = (IDX)min((ulong)begin + CLUTCH_TILE, inner), tail = begin;
    Offsets o = clutch_offsets(shape, 1, (IDX)row);
#if VECTORS
    tail = begin + (end - begin) / LANES * LANES;
    WALK_ROW(LOADV, STOREV)
#endif
    for (IDX i = tail + (IDX)item; i < end; i += (IDX)items) COMBINE_OF_ROW(i)
  }
#else
  const IDX inner = (IDX)shape->size[0];
  WALK_UNITS(shape, COMBINE_UNIT)
#endif
}

__kernel void addc_rows(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* input, ulong input_offset, __global const uchar* t1,
                        ulong t1_offset, __global const uchar* t2, ulong t2_offset, ulong n, CLUTCH_SHAPE_PARAMS, ACC value) {
  CLUTCH_IF_PREDICATE
  CLUTCH_SHAPE(shape)
  addc_rows_body(CLUTCH_IDS, out + out_offset, input + input_offset, t1 + t1_offset, t2 + t2_offset, &shape, n, value);
}
#endif

// The reference: any strides, one element at a time.
#ifdef CLUTCH_ENTRY_addc_strided
static inline void addc_strided_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* input, __global const uchar* t1, __global const uchar* t2,
                                     const Shape* shape, ulong n, ACC value) {
  int one = value == (ACC)1;
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
    for (ulong i = begin + item; i < end; i += items) {
      Offsets o = clutch_offsets(shape, 0, (IDX)i);
      STORE(out, o.at[0], combine(LOAD(input, o.at[1]), LOAD(t1, o.at[2]), LOAD(t2, o.at[3]), value, one));
    }
  }
}

__kernel void addc_strided(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* input, ulong input_offset, __global const uchar* t1,
                           ulong t1_offset, __global const uchar* t2, ulong t2_offset, ulong n, CLUTCH_SHAPE_PARAMS, ACC value) {
  CLUTCH_IF_PREDICATE
  CLUTCH_SHAPE(shape)
  addc_strided_body(CLUTCH_IDS, out + out_offset, input + input_offset, t1 + t1_offset, t2 + t2_offset, &shape, n, value);
}
#endif
