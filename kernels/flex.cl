// SPDX-License-Identifier: Apache-2.0
// flex: attention by online softmax over blocks of keys; scores are modified and masked by printed functions where they are made.
// Needs: what common/expr.clh needs; S_NAME (dtype of the tensors); A_IS_F32 or A_IS_F64 (of scores); SCORE and MASK (1: printed in expression.clh as
// CLUTCH_SCORE and CLUTCH_MASK with parameters EXTRA and MASK_EXTRA).
#include "common/expr.clh"
#include "common/launch.clh"

#include "expression.clh"

#ifdef A_IS_F64
#define T double
#define R VD
#define TRACED f64
#define WIDE_MASK(m) CLUTCH_WIDE_MASK(m)
#define NONE (-CLUTCH_INF_VD)
#define LOG2_E 0x1.71547652b82fep+0
#else
#define T float
#define R VF
#define TRACED f32
#define WIDE_MASK(m) (m)
#define NONE (-CLUTCH_INF_VF)
#define LOG2_E 0x1.715476p+0f
#endif
#define LOAD_S(base, i) CLUTCH_CONCAT(load_, S_NAME)(base, i)
#define STORE_S(base, i, x) CLUTCH_CONCAT(store_, S_NAME)(base, i, x)
#if FMA_RN == 0
#define FMA(a, b, c) fma(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

// Strides in elements: of batches, heads, rows, elements of a row. Tiles are `tile` queries of one head, `per_row` of them in a row of blocks. Lists are of
// blocks of keys, mask_batch and mask_head lines apart; without them (listed 0) all blocks are full.
typedef struct {
  long q[4], k[4], v[4], out[4];
  long heads, group, q_len, kv_len, e, ev;
  long tiles, tile, per_row;
  long rows, columns, block_q, block_kv, mask_batch, mask_head, listed;
  long mask_all, wants_lse, wants_top;
} FlexShape;

#define LIST_PARAMS __global const int *kv_num, __global const int *kv_list, __global const int *full_num, __global const int *full_list
#define LIST_NAMES kv_num, kv_list, full_num, full_list
#define LIST_KERNEL_PARAMS                                                                                                                \
  __global const uchar *kv_num, ulong kv_num_offset, __global const uchar *kv_list, ulong kv_list_offset, __global const uchar *full_num, \
      ulong full_num_offset, __global const uchar *full_list, ulong full_list_offset
#define LIST_ARGUMENTS                                                                                                                               \
  (__global const int*)(kv_num + kv_num_offset), (__global const int*)(kv_list + kv_list_offset), (__global const int*)(full_num + full_num_offset), \
      (__global const int*)(full_list + full_list_offset)
#define TENSOR_PARAMS __global const uchar *q, __global const uchar *k, __global const uchar *v, __global uchar *out, __global T *lse, __global T *top_out
#define TENSOR_NAMES q, k, v, out, lse, top_out
#define TENSOR_KERNEL_PARAMS                                                                                                                      \
  __global const uchar *q, ulong q_offset, __global const uchar *k, ulong k_offset, __global const uchar *v, ulong v_offset, __global uchar *out, \
      ulong out_offset, __global uchar *lse, ulong lse_offset, __global uchar *top_out, ulong top_offset
#define TENSOR_ARGUMENTS q + q_offset, k + k_offset, v + v_offset, out + out_offset, (__global T*)(lse + lse_offset), (__global T*)(top_out + top_offset)

#if SCORE
#define SCORE_NAMES CLUTCH_EXTRA_NAMES
#define SCORE_PARAMS CLUTCH_EXTRA_PARAMS
#define SCORE_KERNEL_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS
#define SCORE_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS
#else
#define SCORE_NAMES
#define SCORE_PARAMS
#define SCORE_KERNEL_PARAMS
#define SCORE_ARGUMENTS
#endif
#if MASK
#define MASK_NAMES CLUTCH_MASK_EXTRA_NAMES
#define MASK_PARAMS CLUTCH_MASK_EXTRA_PARAMS
#define MASK_KERNEL_PARAMS CLUTCH_MASK_EXTRA_KERNEL_PARAMS
#define MASK_ARGUMENTS CLUTCH_MASK_EXTRA_ARGUMENTS
#else
#define MASK_NAMES
#define MASK_PARAMS
#define MASK_KERNEL_PARAMS
#define MASK_ARGUMENTS
#endif
#define MOD_NAMES SCORE_NAMES MASK_NAMES
#define MOD_PARAMS SCORE_PARAMS MASK_PARAMS

#define NO_POSITION(k) ((VL)0)
#define LOAD_FIRST(k) MOD_FIRST_##k
#define MOD_FIRST_2 b
#define MOD_FIRST_3 h
#define MOD_FIRST_4 q
#define MOD_FIRST_5 kv
#define MOD_INPUT_1 score
#define MOD_INPUT_2 ((VI)b)
#define MOD_INPUT_3 ((VI)h)
#if WIDTH == 1
#define MOD_INPUT_4 q
#else
#define MOD_INPUT_4 ((VI)q + CLUTCH_L_TO_VI(CLUTCH_IOTA_VL))
#endif
#define MOD_INPUT_5 ((VI)kv)
#define LOAD_MOD(k, dtype) MOD_INPUT_##k
#define KEEP_SCORE(k, dtype, x) score = (x)
#define KEEP_MASK(k, dtype, x) allowed = (x)

// 2^x for x up to about 0, the weight of a key, within 1.1 2^-23 of it; 0 below 2^-126, NaN of NaN.
#ifdef A_IS_F64
static inline R weight_of(R x) { return exp2_f64(x); }
static inline R log_of(R x) { return log_f64(x); }
#else
static inline R weight_of(R x) {
  const R t = x + CLUTCH_MAGIC_F, f = x - (t - CLUTCH_MAGIC_F);
  R y = (R)0x1.5bba14p-10f;
  y = FMA(y, f, (R)0x1.3cea88p-7f);
  y = FMA(y, f, (R)0x1.c6b752p-5f);
  y = FMA(y, f, (R)0x1.ebf9bcp-3f);
  y = FMA(y, f, (R)0x1.62e42ap-1f);
  y = FMA(y, f, (R)1.0f);
  const R scaled = CLUTCH_AS_VF(CLUTCH_AS_VU(y) + (CLUTCH_AS_VU(t) << 23));
  return x < (R)-126.0f ? (R)0.0f : scaled;
}
static inline R log_of(R x) { return log_f32(x); }
#endif
// Of the key with that score: 2^(score factor - shift), the offset being made of the shift alone.
#if defined(A_IS_F32) && WIDTH == 16 && defined(__AVX512DQ__) && defined(__clang__)
// One instruction takes what is behind the point, one multiplies by 2^floor(x): half the work. 2^(f - 1/2) for f in [0, 1), within 1.3 2^-23, exactly 1 at 1/2.
#define OFFSET_IS_HALF 1
#define OFFSET_OF(shift) ((R)0.5f - (shift))
static inline R key_weight(R score, R offset, R factor) {
  const R x = FMA(score, factor, offset), f = __builtin_ia32_reduceps512_mask(x, 9, x, (ushort)0xffff, 4);
  R y = (R)0x1.5c08e6p-10f;
  y = FMA(y, f, (R)0x1.a09316p-8f);
  y = FMA(y, f, (R)0x1.43616ep-5f);
  y = FMA(y, f, (R)0x1.5bc792p-3f);
  y = FMA(y, f, (R)0x1.f5e57ep-2f);
  y = FMA(y, f, (R)0x1.6a09e4p-1f);
  return __builtin_ia32_scalefps512_mask(y, x, y, (ushort)0xffff, 4);
}
#else
#define OFFSET_OF(shift) (-(shift))
static inline R key_weight(R score, R offset, R factor) { return weight_of(FMA(score, factor, offset)); }
#endif

// Weights are 2^(score LOG2_E - shift), shift being made of the largest score so far: rounded, so that it is exactly the same while that is.
#define SHIFT_OF(top) ((top) == NONE ? (R)0 : (top)*LOG2_E)

// Of score mods: tanh within 2^-22, absolutely.
#if defined(OFFSET_IS_HALF)
static inline R score_tanh(R x) {
  const R e = key_weight(abs_f32(x), (R)0.5f, (R)(-2 * LOG2_E)), d = (R)1.0f + e;
  R r = __builtin_ia32_rcp14ps512_mask(d, d, (ushort)0xffff);
  r = FMA(r, FMA(-d, r, (R)1.0f), r);
  return copysign_f32(((R)1.0f - e) * r, x);
}
#define tanh_f32(x) score_tanh(x)
#endif

// Scores of one key and of queries q, q + 1, ...
CLUTCH_INLINE R modified(R score, int b, int h, int q, int kv MOD_PARAMS) {
#if SCORE
  CLUTCH_SCORE(LOAD_MOD, NO_POSITION, KEEP_SCORE)
#endif
  return score;
}
CLUTCH_INLINE R masked_score(R score, int b, int h, int q, int kv MOD_PARAMS) {
  score = modified(score, b, h, q, kv MOD_NAMES);
#if MASK
  VI allowed;
  CLUTCH_MASK(LOAD_MOD, NO_POSITION, KEEP_MASK)
  score = WIDE_MASK(allowed) ? score : NONE;
#endif
  return score;
}

// The visited blocks of a row: first the partial ones of its list, then the full ones.
typedef struct {
  long partial, all;
  __global const int *kv_list, *full_list;
} Visits;
static inline Visits visits_of(const FlexShape* s, long b, long h, long row, LIST_PARAMS) {
  Visits visits = {0, s->columns, kv_list, full_list};
  if (s->listed) {
    const long line = b * s->mask_batch + h * s->mask_head + row;
    visits.partial = clamp((long)kv_num[line], 0L, s->columns);
    visits.all = visits.partial + clamp((long)full_num[line], 0L, s->columns);
    visits.kv_list += line * s->columns, visits.full_list += line * s->columns;
  }
  return visits;
}
// Its number; past the last one, where a list is wrong, nothing is visited.
static inline long visited(const FlexShape* s, const Visits* visits, long i) {
  return !s->listed ? i : i < visits->partial ? visits->kv_list[i] : visits->full_list[i - visits->partial];
}

// A vector of queries at a time, an item a tile: scores, weights and results lie transposed, with queries along the lanes. Keys and values are brought in
// by blocks, in T (unless DIRECT); tiles of ROWS keys (or elements of values) by up to VECTORS vectors of queries are summed in registers.
// Needs: DIRECT (1: keys and values are T, and a row's elements lie side by side; they are read as they lie), DMAX (the most elements of a row), KEYS (of a
// block), TILE_VECTORS (of a tile), ROWS, VECTORS.
#ifdef CLUTCH_ENTRY_flex_lanes
#define LANES WIDTH
#define MEM
#include "common/transpose.clh"
#if DIRECT
#define KV_MEM __global
#define VALUE_PLACE(d) (d)
#else
#define KV_MEM
// Elements between keys: not a power of two. Values lie in panels of PANEL elements.
#define KEY_STRIDE (DMAX + 16)
#define PANEL 16
#define VALUE_PLACE(d) ((d) / PANEL * KEYS * PANEL + (d) % PANEL)
#endif

// Up to WIDTH elements of a row, the rest 0.
static inline R some_of(__global const uchar* base, long i, long stride, long count) {
  if (stride == 1 && count >= WIDTH) return CLUTCH_CONCAT(loadv_, S_NAME)(base, i);
  T x[WIDTH];
#pragma unroll 1
  for (int l = 0; l < WIDTH; ++l) x[l] = l < count ? LOAD_S(base, i + l * stride) : (T)0;
#ifdef A_IS_F64
  return CLUTCH_FILLD(x);
#else
  return CLUTCH_FILL(x);
#endif
}
static inline void put_some_of(__global uchar* base, long i, long stride, long count, R y) {
  if (stride == 1 && count >= WIDTH) {
    CLUTCH_CONCAT(storev_, S_NAME)(base, i, y);
    return;
  }
  T x[WIDTH];
#ifdef A_IS_F64
  CLUTCH_SPILLD(y, x);
#else
  CLUTCH_SPILL(y, x);
#endif
#pragma unroll 1
  for (int l = 0; l < WIDTH; ++l)
    if (l < count) STORE_S(base, i + l * stride, x[l]);
}

#if !DIRECT
CLUTCH_APART void bring_keys(T* to, __global const uchar* k, long at, const long* stride, int count, long e) {
  for (int j = 0; j < count; ++j)
    for (long d = 0; d < e; d += WIDTH) *(R*)(to + j * KEY_STRIDE + d) = some_of(k, at + j * stride[2] + d * stride[3], stride[3], e - d);
}
CLUTCH_APART void bring_values(T* to, __global const uchar* v, long at, const long* stride, int count, long ev) {
  for (int j = 0; j < count; ++j)
    for (long d = 0; d < ev; d += WIDTH)
      *(R*)(to + (d / PANEL * KEYS + j) * PANEL + d % PANEL) = some_of(v, at + j * stride[2] + d * stride[3], stride[3], ev - d);
}
#endif

// Brings in queries, scaled and transposed: vectors of element d are queries[d * nv + v]. Those past the end are the last one again.
CLUTCH_APART void begin_queries(R* queries, R* sums, R* top, R* total, int w, int nv, __global const uchar* q, long at, const FlexShape* s, long begin,
                                long end, T scale) {
  R* to = queries + w * DMAX;
  for (int v = 0; v < nv; ++v) {
    top[w + v] = NONE, total[w + v] = (R)0;
    for (long d = 0; d < (s->ev + ROWS - 1) / ROWS * ROWS; ++d) sums[w * DMAX + d * nv + v] = (R)0;
    for (long d = 0; d < s->e; d += WIDTH) {
      R x[WIDTH];
      for (int l = 0; l < WIDTH; ++l) {
        const long query = min(begin + (w + v) * WIDTH + l, end - 1);
        x[l] = some_of(q, at + query * s->q[2] + d * s->q[3], s->q[3], s->e - d) * scale;
      }
      transpose(x);
      for (int l = 0; l < WIDTH && d + l < s->e; ++l) to[(d + l) * nv + v] = x[l];
    }
  }
}

// Writes results, and what else is asked for.
CLUTCH_APART void finish_queries(const R* sums, const R* top, const R* total, int w, int nv, __global uchar* out, long at, __global T* lse, __global T* top_out,
                                 const FlexShape* s, long begin, long end) {
  for (int v = 0; v < nv; ++v) {
    const long query = begin + (w + v) * WIDTH, count = min((long)WIDTH, end - query);
    const R factor = total[w + v] == (R)0 ? (R)0 : (R)1 / total[w + v];
    for (long d = 0; d < s->ev; d += WIDTH) {
      R x[WIDTH];
      for (int l = 0; l < WIDTH; ++l) x[l] = sums[w * DMAX + min(d + l, s->ev - 1) * nv + v] * factor;
      transpose(x);
      for (int l = 0; l < count; ++l) put_some_of(out, at + (query + l) * s->out[2] + d * s->out[3], s->out[3], s->ev - d, x[l]);
    }
    T logs[WIDTH], tops[WIDTH];
    const R log_sum = top[w + v] == NONE ? NONE : top[w + v] + log_of(total[w + v]);
#ifdef A_IS_F64
    CLUTCH_SPILLD(log_sum, logs);
    CLUTCH_SPILLD(top[w + v], tops);
#else
    CLUTCH_SPILL(log_sum, logs);
    CLUTCH_SPILL(top[w + v], tops);
#endif
    for (int l = 0; l < count; ++l) {
      if (s->wants_lse) lse[query + l] = logs[l];
      if (s->wants_top) top_out[query + l] = tops[l];
    }
  }
}
#define NV 2
#include "flex/attend.inc"
#undef NV
#if VECTORS > 2
#define NV 3
#include "flex/attend.inc"
#undef NV
#endif

// How many of the vectors that are left go next: three, or two where that leaves none alone.
static inline int taken(int left) { return VECTORS > 2 && (left == 3 || left > 4) ? 3 : 2; }
#define ATTEND_ARGUMENTS                                                                                                                                   \
  queries + w *DMAX, sums + w *DMAX, top + w, total + w, weights, keys + first *key_row, values + first *value_row, key_row, value_row, last - first, s.e, \
      s.ev, masked, (int)b, (int)h, q0, (int)kv + first MOD_NAMES

#if MASK
// The keys, by so many, that some query from q to q_last may attend to: from `first` to before `last`.
#define STRIP 16
#define RANGE_LOW(k) range_low[k]
#define RANGE_HIGH(k) range_high[k]
static inline int is_masked(long b, long h, long q, long q_last, long kv, long kv_last MASK_PARAMS) {
  const long range_low[4] = {b, h, q, kv}, range_high[4] = {b, h, q_last, kv_last};
  CLUTCH_RANGES(RANGE_LOW, RANGE_HIGH)
  (void)is_always;
  return !is_ever;
}
static inline void narrow(int* first, int* last, long b, long h, long q, long q_last, long kv MASK_PARAMS) {
  while (*first < *last && is_masked(b, h, q, q_last, kv + *first, kv + min(*first + STRIP, *last) - 1 MASK_NAMES)) *first = min(*first + STRIP, *last);
  while (*first < *last && is_masked(b, h, q, q_last, kv + max(*last - STRIP, *first), kv + *last - 1 MASK_NAMES)) *last = max(*last - STRIP, *first);
}
#endif

static inline void flex_lanes_body(CLUTCH_ID_PARAMS, ulong tiles, FlexShape s, T scale, TENSOR_PARAMS, LIST_PARAMS MOD_PARAMS) {
  R queries[TILE_VECTORS * DMAX], sums[TILE_VECTORS * DMAX], weights[KEYS * VECTORS], top[TILE_VECTORS], total[TILE_VECTORS];
#if DIRECT
  const long key_row = s.k[2], value_row = s.v[2];
#else
  T keys[KEYS * KEY_STRIDE] __attribute__((aligned(64)));
  T values[KEYS * DMAX] __attribute__((aligned(64)));
  const long key_row = KEY_STRIDE, value_row = PANEL;
#endif
  const long groups_of_heads = s.heads / s.group;
  for (ulong t = group * lanes + lane; t < tiles; t += groups * lanes) {
    // Heads that share keys lie together; the last queries, which may see the most keys, come first.
    const long of = (long)t / (s.tiles * s.group), b = of / groups_of_heads, hk = of % groups_of_heads;
    const long h = hk * s.group + (long)t % s.group, tile = s.tiles - 1 - (long)t / s.group % s.tiles, row = tile / s.per_row;
    const long begin = row * s.block_q + tile % s.per_row * s.tile, end = min(min(begin + s.tile, (row + 1) * s.block_q), s.q_len);
    const int vectors = (int)((end - begin + WIDTH - 1) / WIDTH);
    for (int w = 0, nv = 0; w < vectors; w += nv) {
      nv = taken(vectors - w);
      begin_queries(queries, sums, top, total, w, nv, q, b * s.q[0] + h * s.q[1], &s, begin, end, scale);
    }
    const Visits visits = visits_of(&s, b, h, row, LIST_NAMES);
    for (long i = 0; i < visits.all; ++i) {
      const long block = visited(&s, &visits, i), block_end = min((block + 1) * s.block_kv, s.kv_len);
      const int masked = MASK && (s.mask_all || i < visits.partial);
      for (long kv = block * s.block_kv; kv >= 0 && kv < block_end; kv += KEYS) {
        const int count = (int)min((long)KEYS, block_end - kv);
        const long key_at = b * s.k[0] + hk * s.k[1] + kv * s.k[2], value_at = b * s.v[0] + hk * s.v[1] + kv * s.v[2];
#if DIRECT
        __global const T *keys = (__global const T*)k + key_at, *values = (__global const T*)v + value_at;
#else
        bring_keys(keys, k, key_at, s.k, count, s.e);
        bring_values(values, v, value_at, s.v, count, s.ev);
#endif
        for (int w = 0, nv = 0; w < vectors; w += nv) {
          nv = taken(vectors - w);
          const int q0 = (int)begin + w * WIDTH;
          int first = 0, last = count;
#if MASK
          if (masked) narrow(&first, &last, b, h, q0, min(q0 + (long)nv * WIDTH, end) - 1, kv MASK_NAMES);
          if (first == last) continue;
#endif
#if VECTORS > 2
          if (nv == 3)
            attend_3(ATTEND_ARGUMENTS);
          else
#endif
            attend_2(ATTEND_ARGUMENTS);
        }
      }
    }
    const long line = (b * s.heads + h) * s.q_len;
    for (int w = 0, nv = 0; w < vectors; w += nv) {
      nv = taken(vectors - w);
      finish_queries(sums, top, total, w, nv, out, b * s.out[0] + h * s.out[1], lse + line, top_out + line, &s, begin, end);
    }
  }
}
__kernel void flex_lanes(CLUTCH_PREDICATE ulong tiles, FlexShape s, T scale, TENSOR_KERNEL_PARAMS, LIST_KERNEL_PARAMS SCORE_KERNEL_PARAMS MASK_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  flex_lanes_body(CLUTCH_IDS, tiles, s, scale, TENSOR_ARGUMENTS, LIST_ARGUMENTS SCORE_ARGUMENTS MASK_ARGUMENTS);
}
#endif

// An item a query: for each chunk of a result's elements its scores once more. For any device. Needs: WIDTH 1, CHUNK (elements of a result at a time).
#ifdef CLUTCH_ENTRY_flex_items
static inline void flex_items_body(CLUTCH_ID_PARAMS, ulong items, FlexShape s, T scale, TENSOR_PARAMS, LIST_PARAMS MOD_PARAMS) {
  for (ulong item = group * lanes + lane; item < items; item += groups * lanes) {
    const long x = (long)item % s.q_len, of = (long)item / s.q_len, h = of % s.heads, b = of / s.heads, hk = h / s.group;
    const long row_q = b * s.q[0] + h * s.q[1] + x * s.q[2];
    const Visits visits = visits_of(&s, b, h, x / s.block_q, LIST_NAMES);
    T top = NONE, total = 0;
    for (long from = 0; from == 0 || from < s.ev; from += CHUNK) {
      T sum[CHUNK];
      for (int c = 0; c < CHUNK; ++c) sum[c] = 0;
      top = NONE, total = 0;
      for (long i = 0; i < visits.all; ++i) {
        const long block = visited(&s, &visits, i), block_end = min((block + 1) * s.block_kv, s.kv_len);
        const int masked = MASK && (s.mask_all || i < visits.partial);
        for (long kv = max(block * s.block_kv, 0L); kv < block_end; ++kv) {
          const long row_k = b * s.k[0] + hk * s.k[1] + kv * s.k[2], row_v = b * s.v[0] + hk * s.v[1] + kv * s.v[2];
          T score = 0;
          for (long d = 0; d < s.e; ++d) score = FMA(LOAD_S(q, row_q + d * s.q[3]) * scale, LOAD_S(k, row_k + d * s.k[3]), score);
          score = masked ? masked_score(score, (int)b, (int)h, (int)x, (int)kv MOD_NAMES) : modified(score, (int)b, (int)h, (int)x, (int)kv MOD_NAMES);
          const T highest = score > top ? score : top, shift = SHIFT_OF(highest);
          const T keep = top == NONE ? 0 : weight_of(SHIFT_OF(top) - shift), weight = key_weight(score, OFFSET_OF(shift), LOG2_E);
          top = highest, total = FMA(total, keep, weight);
          for (int c = 0; c < CHUNK; ++c) sum[c] = FMA(weight, from + c < s.ev ? LOAD_S(v, row_v + (from + c) * s.v[3]) : (T)0, sum[c] * keep);
        }
      }
      const T factor = total == 0 ? (T)0 : 1 / total;
      for (int c = 0; c < CHUNK; ++c)
        if (from + c < s.ev) STORE_S(out, b * s.out[0] + h * s.out[1] + x * s.out[2] + (from + c) * s.out[3], sum[c] * factor);
    }
    if (s.wants_lse) lse[item] = top == NONE ? NONE : top + log_of(total);
    if (s.wants_top) top_out[item] = top;
  }
}
__kernel void flex_items(CLUTCH_PREDICATE ulong items, FlexShape s, T scale, TENSOR_KERNEL_PARAMS, LIST_KERNEL_PARAMS SCORE_KERNEL_PARAMS MASK_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  flex_items_body(CLUTCH_IDS, items, s, scale, TENSOR_ARGUMENTS, LIST_ARGUMENTS SCORE_ARGUMENTS MASK_ARGUMENTS);
}
#endif
