// SPDX-License-Identifier: Apache-2.0
// flex: attention by online softmax over blocks of keys; scores are modified and masked by printed functions where they are made.
// Needs: what common/expr.clh needs; S_NAME (dtype of the tensors); A_IS_F32 or A_IS_F64 (of scores); SCORE and MASK (1: printed in expression.clh as
// CLUTCH_SCORE and CLUTCH_MASK with parameters EXTRA and MASK_EXTRA); BACKWARD (1: and CLUTCH_BACK, the score mod's derivative, with BACK_EXTRA);
// SUMS_ONLY (1: of the backward pass, what rows' scores are compared with there; see below).
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
// Adds a value times its weight; with SKIP_MASKED one whose weight is 0 does not count, NaN or not.
#if SKIP_MASKED
#define WEIGH(value, weight, sum) ((weight) != (R)0 ? FMA(value, weight, sum) : (sum))
#else
#define WEIGH(value, weight, sum) FMA(value, weight, sum)
#endif

// Strides in elements: of batches, heads, rows, elements of a row. Tiles are `tile` queries (keys, of gradients) of one head, `per_row` of them in a row of
// blocks. Lists are of blocks of the others, mask_batch and mask_head lines apart; without them (listed 0) all blocks are full.
// Of gradients: `out` strides are those of the result's gradient; batches (all of them, where they share keys), chunks of tiles. Partial sums lie part_row
// elements apart. Of sequences of several lengths (RAGGED) q_len and kv_len are the longest ones; q has q_rows in a batch, k has kv_rows.
typedef struct {
  long q[4], k[4], v[4], out[4];
  long heads, group, q_len, kv_len, e, ev;
  long tiles, tile, per_row;
  long rows, columns, block_row, block_listed, mask_batch, mask_head, listed;
  long mask_all, wants_lse, wants_top;
  long batch, shared, chunks, splits, per_split, part_row;
  long q_rows, kv_rows, packed_q, packed_kv, used, page_size, page_columns;
} FlexShape;

#if RAGGED
#define RAGGED_PARAMS , __global const int *q_starts, __global const int *kv_starts, __global const int *kv_used, __global const int *pages
#define RAGGED_NAMES , q_starts, kv_starts, kv_used, pages
#define RAGGED_KERNEL_PARAMS                                                                                                                       \
  , __global const uchar *q_starts, ulong q_starts_offset, __global const uchar *kv_starts, ulong kv_starts_offset, __global const uchar *kv_used, \
      ulong kv_used_offset, __global const uchar *pages, ulong pages_offset
#define RAGGED_ARGUMENTS                                                                                                                                     \
  , (__global const int*)(q_starts + q_starts_offset), (__global const int*)(kv_starts + kv_starts_offset), (__global const int*)(kv_used + kv_used_offset), \
      (__global const int*)(pages + pages_offset)
#else
#define RAGGED_PARAMS
#define RAGGED_NAMES
#define RAGGED_KERNEL_PARAMS
#define RAGGED_ARGUMENTS
#endif
#define LIST_PARAMS __global const int *kv_num, __global const int *kv_list, __global const int *full_num, __global const int *full_list RAGGED_PARAMS
#define LIST_NAMES kv_num, kv_list, full_num, full_list RAGGED_NAMES
#define LIST_KERNEL_PARAMS                                                                                                                \
  __global const uchar *kv_num, ulong kv_num_offset, __global const uchar *kv_list, ulong kv_list_offset, __global const uchar *full_num, \
      ulong full_num_offset, __global const uchar *full_list, ulong full_list_offset RAGGED_KERNEL_PARAMS
#define LIST_ARGUMENTS                                                                                                                               \
  (__global const int*)(kv_num + kv_num_offset), (__global const int*)(kv_list + kv_list_offset), (__global const int*)(full_num + full_num_offset), \
      (__global const int*)(full_list + full_list_offset) RAGGED_ARGUMENTS
#define TENSOR_PARAMS __global const uchar *q, __global const uchar *k, __global const uchar *v, __global uchar *out, __global T *lse, __global T *top_out
#define TENSOR_NAMES q, k, v, out, lse, top_out
#define TENSOR_KERNEL_PARAMS                                                                                                                      \
  __global const uchar *q, ulong q_offset, __global const uchar *k, ulong k_offset, __global const uchar *v, ulong v_offset, __global uchar *out, \
      ulong out_offset, __global uchar *lse, ulong lse_offset, __global uchar *top_out, ulong top_offset
#define TENSOR_ARGUMENTS q + q_offset, k + k_offset, v + v_offset, out + out_offset, (__global T*)(lse + lse_offset), (__global T*)(top_out + top_offset)

#define GRADIENT_PARAMS                                                                                                                                        \
  __global const uchar *q, __global const uchar *k, __global const uchar *v, __global const uchar *grad, __global const T *row_max, __global const T *row_log, \
      __global const T *delta, __global uchar *dk, __global uchar *dv
#define GRADIENT_KERNEL_PARAMS                                                                                                                           \
  __global const uchar *q, ulong q_offset, __global const uchar *k, ulong k_offset, __global const uchar *v, ulong v_offset, __global const uchar *grad, \
      ulong grad_offset, __global const uchar *row_max, ulong row_max_offset, __global const uchar *row_log, ulong row_log_offset,                       \
      __global const uchar *delta, ulong delta_offset, __global uchar *dk, ulong dk_offset, __global uchar *dv, ulong dv_offset
#define GRADIENT_ARGUMENTS                                                                                                                                    \
  q + q_offset, k + k_offset, v + v_offset, grad + grad_offset, (__global const T*)(row_max + row_max_offset), (__global const T*)(row_log + row_log_offset), \
      (__global const T*)(delta + delta_offset), dk + dk_offset, dv + dv_offset

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
#if BACKWARD && SCORE
#define BACK_NAMES CLUTCH_BACK_EXTRA_NAMES
#define BACK_PARAMS CLUTCH_BACK_EXTRA_PARAMS
#define BACK_KERNEL_PARAMS CLUTCH_BACK_EXTRA_KERNEL_PARAMS
#define BACK_ARGUMENTS CLUTCH_BACK_EXTRA_ARGUMENTS
#else
#define BACK_NAMES
#define BACK_PARAMS
#define BACK_KERNEL_PARAMS
#define BACK_ARGUMENTS
#endif
#if DROPOUT
#include "flex/dropout.clh"
#else
#define DROP_NAMES
#define DROP_PARAMS
#define DROP_KERNEL_PARAMS
#define DROP_ARGUMENTS
#endif
#define MOD_NAMES SCORE_NAMES MASK_NAMES BACK_NAMES DROP_NAMES
#define MOD_PARAMS SCORE_PARAMS MASK_PARAMS BACK_PARAMS DROP_PARAMS
#define MOD_KERNEL_PARAMS SCORE_KERNEL_PARAMS MASK_KERNEL_PARAMS BACK_KERNEL_PARAMS DROP_KERNEL_PARAMS
#define MOD_ARGUMENTS SCORE_ARGUMENTS MASK_ARGUMENTS BACK_ARGUMENTS DROP_ARGUMENTS

#define NO_POSITION(k) ((VL)0)
#define LOAD_FIRST(k) MOD_FIRST_##k
#define MOD_FIRST_2 b
#define MOD_FIRST_3 h
#define MOD_FIRST_4 q
#define MOD_FIRST_5 kv
#define MOD_INPUT_1 score
#define MOD_INPUT_2 ((VI)b)
#define MOD_INPUT_3 ((VI)h)
// Along the lanes lie queries, or keys (KEYS_ALONG).
#if WIDTH == 1
#define MOD_INPUT_4 q
#define MOD_INPUT_5 kv
#elif KEYS_ALONG
#define MOD_INPUT_4 ((VI)q)
#define MOD_INPUT_5 ((VI)kv + CLUTCH_L_TO_VI(CLUTCH_IOTA_VL))
#else
#define MOD_INPUT_4 ((VI)q + CLUTCH_L_TO_VI(CLUTCH_IOTA_VL))
#define MOD_INPUT_5 ((VI)kv)
#endif
#define MOD_INPUT_6 gradient
#define LOAD_MOD(k, dtype) MOD_INPUT_##k
#define KEEP_SCORE(k, dtype, x) score = (x)
#define KEEP_MASK(k, dtype, x) allowed = (x)
#define KEEP_GRADIENT(k, dtype, x) gradient = (x)

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
// The weight of a key: 2^(difference LOG2_E + offset - WEIGHT_OFFSET), of its score's difference from what the row's scores are compared with. The subtraction
// comes first: it is exact where it matters, however large the scores are.
#if defined(A_IS_F32) && WIDTH == 16 && defined(__AVX512DQ__) && defined(__clang__)
#define BY_INSTRUCTIONS 1
// One instruction takes what is behind the point, one multiplies by 2^floor(x): half the work. 2^(f - 1/2) for f in [0, 1), within 1.3 2^-23, exactly 1 at 1/2.
#define WEIGHT_OFFSET 0.5f
static inline R key_weight(R difference, R offset) {
  const R x = FMA(difference, (R)LOG2_E, offset), f = __builtin_ia32_reduceps512_mask(x, 9, x, (ushort)0xffff, 4);
  R y = (R)0x1.5c08e6p-10f;
  y = FMA(y, f, (R)0x1.a09316p-8f);
  y = FMA(y, f, (R)0x1.43616ep-5f);
  y = FMA(y, f, (R)0x1.5bc792p-3f);
  y = FMA(y, f, (R)0x1.f5e57ep-2f);
  y = FMA(y, f, (R)0x1.6a09e4p-1f);
  return __builtin_ia32_scalefps512_mask(y, x, y, (ushort)0xffff, 4);
}
#else
#define BY_INSTRUCTIONS 0
#define WEIGHT_OFFSET 0
static inline R key_weight(R difference, R offset) { return weight_of(FMA(difference, (R)LOG2_E, offset)); }
#endif

// What scores are compared with while they are added up: the largest one so far; 0 while there is none, so that weights are 0.
#define SHIFT_OF(top) ((top) == NONE ? (R)0 : (top))
// What sums of weights beside `top` are multiplied with where scores are compared with `shift` from now on.
static inline R rescale(R top, R shift) { return top == NONE ? (R)0 : weight_of((top - shift) * (R)LOG2_E); }

// The backward pass makes a row's weights again as e^(score - row_max - row_log): of the row's lse and 0 where lse is small, so that its rounding does not
// count. Where it is large flex_lanes, flex_tiles and flex_items, with SUMS_ONLY, find the row's largest score and the logarithm of its sum again, of scores
// with the backward pass's own rounding: keys are scaled there, not queries. They read lse and write row_max to top_out, row_log to out; v, if wants_top, holds
// the largest scores, which spares them the way there.
#define LARGE_LSE 32
#if SUMS_ONLY
#define OF_QUERIES(scale) 1
#define OF_KEYS(scale) scale
#else
#define OF_QUERIES(scale) scale
#define OF_KEYS(scale) 1
#endif
static inline int is_large(T lse) { return lse >= LARGE_LSE || (lse <= -LARGE_LSE && lse > -(T)INFINITY); }
static inline void put_row_sums(__global T* row_max, __global T* row_log, T lse, T top, T log_sum) {
  const int found = is_large(lse);
  *row_max = found ? top : lse == -(T)INFINITY ? (T)INFINITY : lse;  // no keys: all weights are 0
  *row_log = found ? log_sum : 0;
}
#if BACKWARD
static inline R offset_of(R row_log) { return (R)WEIGHT_OFFSET - row_log * (R)LOG2_E; }
#endif

// Of score mods: tanh within 2^-22, absolutely.
#if BY_INSTRUCTIONS
static inline R score_tanh(R x) {
  const R e = key_weight((R)-2.0f * abs_f32(x), (R)WEIGHT_OFFSET), d = (R)1.0f + e;
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

#if BACKWARD
// The gradient of a score from that of the modified one.
CLUTCH_INLINE R unmodified(R gradient, R score, int b, int h, int q, int kv MOD_PARAMS) {
#if SCORE
  CLUTCH_BACK(LOAD_MOD, NO_POSITION, KEEP_GRADIENT)
#endif
  return gradient;
}
#endif

// Where a sequence's queries and keys begin in their batches, and how many there are.
typedef struct {
  long q_at, q_len, kv_at, kv_len;
} Span;
static inline Span span_of(const FlexShape* s, long b, LIST_PARAMS) {
  Span span = {0, s->q_len, 0, s->kv_len};
#if RAGGED
  if (s->packed_q) {
    span.q_at = clamp((long)q_starts[b], 0L, s->q_rows);
    span.q_len = clamp(q_starts[b + 1] - span.q_at, 0L, min(s->q_len, s->q_rows - span.q_at));
  }
  if (s->packed_kv) {
    span.kv_at = clamp((long)kv_starts[b], 0L, s->kv_rows);
    span.kv_len = clamp(kv_starts[b + 1] - span.kv_at, 0L, min(s->kv_len, s->kv_rows - span.kv_at));
  }
  if (s->used) span.kv_len = clamp((long)kv_used[b], 0L, span.kv_len);
#endif
  return span;
}
// Where a head's keys begin, and how many of them any sequence reads: those of `b`, or, where all batches share keys, as many as are there.
static inline Span keys_of(const FlexShape* s, long b, LIST_PARAMS) {
  Span span = span_of(s, b, LIST_NAMES);
  if (s->shared) span.kv_len = s->kv_len;
  return span;
}
// Where a sequence's lines of a head begin: of lse, and of partial sums.
static inline long line_of(const FlexShape* s, const Span* span, long b, long h) { return (s->packed_q ? h : b * s->heads + h) * s->q_rows + span->q_at; }
// The row in its batch of a key and of those behind it in its block; negative where a page is missing.
static inline long key_of(const FlexShape* s, const Span* span, long b, long kv, LIST_PARAMS) {
#if RAGGED
  if (s->page_size > 0) {
    const int page = pages[b * s->page_columns + kv / s->page_size];
    return page < 0 || ((long)page + 1) * s->page_size > s->kv_rows ? -1 : (long)page * s->page_size + kv % s->page_size;
  }
#endif
  return span->kv_at + kv;
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

#if MASK
#define RANGE_LOW(k) range_low[k]
#define RANGE_HIGH(k) range_high[k]
// Whether keys from `begin` to before `end` (queries, where `turned`) are masked for those from `low` to `high` of heads from h to last_h: 0 none, 1 perhaps
// some, 2 all.
static inline int masked_of(long b, long h, long last_h, long low, long high, long begin, long end, int turned MASK_PARAMS) {
  const long range_low[4] = {b, h, turned ? begin : low, turned ? low : begin}, range_high[4] = {b, last_h, turned ? end - 1 : high, turned ? high : end - 1};
  CLUTCH_RANGES(RANGE_LOW, RANGE_HIGH)
  return is_always ? 0 : is_ever ? 1 : 2;
}
#endif

// A vector of queries at a time, an item a tile: scores, weights and results lie transposed, with queries along the lanes. Keys and values are brought in
// by blocks, in T (unless DIRECT); tiles of ROWS keys (or elements of values) by up to VECTORS vectors of queries are summed in registers.
// Needs: DIRECT (1: keys and values are T, and a row's elements lie side by side; they are read as they lie), DMAX (the most elements of a row), KEYS (of a
// block), TILE_VECTORS (of a tile), ROWS, VECTORS.
#if defined(CLUTCH_ENTRY_flex_lanes) || defined(CLUTCH_ENTRY_flex_lanes_backward) || defined(CLUTCH_ENTRY_flex_split)
#include "flex/lanes.clh"
#endif
#if defined(CLUTCH_ENTRY_flex_lanes) || defined(CLUTCH_ENTRY_flex_lanes_backward)
#define NV 1
#include "flex/tile.inc"
#undef NV
#define NV 2
#include "flex/tile.inc"
#undef NV
#if VECTORS > 2
#define NV 3
#include "flex/tile.inc"
#undef NV
#endif
#endif

#ifdef CLUTCH_ENTRY_flex_lanes
#if SUMS_ONLY
// Whether any of `count` rows is to be looked at.
static inline int any_large(__global const T* lse, long count) {
  int any = 0;
  for (long i = 0; i < count; ++i) any |= is_large(lse[i]);
  return any;
}
// What is known of rows from `query` to before `end`.
static inline R known_tops(__global const T* tops, int known, long query, long end) {
  T x[WIDTH];
  for (int l = 0; l < WIDTH; ++l) x[l] = known && query + l < end ? tops[query + l] : -(T)INFINITY;
  return FILL_R(x);
}
// Writes what the backward pass needs of rows from `query` to before `end`.
CLUTCH_APART void put_sums(const R* top, const R* total, __global const T* lse, __global T* row_max, __global T* row_log, long query, long end) {
  T logs[WIDTH], tops[WIDTH];
  SPILL_R(log_of(*total), logs);
  SPILL_R(*top, tops);
  for (int l = 0; l < min((long)WIDTH, end - query); ++l) put_row_sums(row_max + query + l, row_log + query + l, lse[query + l], tops[l], logs[l]);
}
#endif
// Writes what else is asked for.
CLUTCH_APART void put_lines(const R* top, const R* total, __global T* lse, __global T* top_out, const FlexShape* s, long query, long end) {
  T logs[WIDTH], tops[WIDTH];
  const R log_sum = *top == NONE ? NONE : *top + log_of(*total);
  SPILL_R(log_sum, logs);
  SPILL_R(*top, tops);
  for (int l = 0; l < min((long)WIDTH, end - query); ++l) {
    if (s->wants_lse) lse[query + l] = logs[l];
    if (s->wants_top) top_out[query + l] = tops[l];
  }
}

#define ATTEND_ARGUMENTS                                                                                                                                   \
  queries + w *DMAX, sums + w *DMAX, top + w, total + w, weights, keys + first *key_row, values + first *value_row, key_row, value_row, last - first, s.e, \
      s.ev, looks, (int)b, (int)h, q0, (int)kv + first MOD_NAMES

static inline void flex_lanes_body(CLUTCH_ID_PARAMS, ulong tiles, FlexShape s, T scale, TENSOR_PARAMS, LIST_PARAMS MOD_PARAMS) {
  R queries[TILE_VECTORS * DMAX], sums[TILE_VECTORS * DMAX], weights[KEYS * VECTORS], top[TILE_VECTORS], total[TILE_VECTORS];
#if DIRECT
  const long key_row = s.k[2], value_row = s.v[2];
#else
  T keys[KEYS * KEY_STRIDE] __attribute__((aligned(64)));
  T values[KEYS * KEY_STRIDE] __attribute__((aligned(64)));
  const long key_row = KEY_STRIDE, value_row = KEY_STRIDE;
#endif
  const long groups_of_heads = s.heads / s.group;
  for (ulong t = group * items + item; t < tiles; t += groups * items) {
    // Heads that share keys lie together; the last queries, which may see the most keys, come first.
    const long of = (long)t / (s.tiles * s.group), b = of / groups_of_heads, hk = of % groups_of_heads;
    const long h = hk * s.group + (long)t % s.group, tile = s.tiles - 1 - (long)t / s.group % s.tiles, row = tile / s.per_row;
    const Span span = span_of(&s, b, LIST_NAMES);
    const long begin = row * s.block_row + tile % s.per_row * s.tile, end = min(min(begin + s.tile, (row + 1) * s.block_row), span.q_len);
    const int vectors = (int)((end - begin + WIDTH - 1) / WIDTH);
    const long line = line_of(&s, &span, b, h);
    if (end <= begin) continue;
    for (int w = 0, nv = 0; w < vectors; w += nv) {
      nv = taken(vectors - w);
      bring_turned(queries + w * DMAX, nv, q, b * s.q[0] + h * s.q[1] + span.q_at * s.q[2], s.q, begin + w * WIDTH, end, s.e, OF_QUERIES(scale));
#if SUMS_ONLY
      for (int x = 0; x < nv; ++x) top[w + x] = known_tops((__global const T*)v + line, (int)s.wants_top, begin + (w + x) * WIDTH, end), total[w + x] = (R)0;
#else
      clear(sums + w * DMAX, nv, s.ev);
      for (int v = 0; v < nv; ++v) top[w + v] = NONE, total[w + v] = (R)0;
#endif
    }
    Visits visits = visits_of(&s, b, h, row, LIST_NAMES);
#if SUMS_ONLY
    if (!any_large(lse + line + begin, end - begin)) visits.all = 0;
#endif
    for (long i = 0; i < visits.all; ++i) {
      const long block = visited(&s, &visits, i), block_end = min((block + 1) * s.block_listed, span.kv_len);
      const int masked = MASK && (s.mask_all || i < visits.partial);
      for (long kv = block * s.block_listed; kv >= 0 && kv < block_end; kv += KEYS) {
        const int count = (int)min((long)KEYS, block_end - kv);
        const long from = key_of(&s, &span, b, kv, LIST_NAMES);
        if (from < 0) continue;
        const long key_at = b * s.k[0] + hk * s.k[1] + from * s.k[2], value_at = b * s.v[0] + hk * s.v[1] + from * s.v[2];
#if DIRECT
        __global const T *keys = (__global const T*)k + key_at, *values = (__global const T*)v + value_at;
#else
        bring_rows(keys, k, key_at, s.k, count, s.e, OF_KEYS(scale));
#if !SUMS_ONLY
        bring_rows(values, v, value_at, s.v, count, s.ev, 1);
#endif
#endif
        for (int w = 0, nv = 0; w < vectors; w += nv) {
          nv = taken(vectors - w);
          const int q0 = (int)begin + w * WIDTH;
          int first = 0, last = count, looks = masked;
#if MASK
          if (masked) looks = narrow(&first, &last, b, h, q0, min(q0 + (long)nv * WIDTH, end) - 1, kv, 0 MASK_NAMES);
          if (first == last) continue;
#endif
          switch (nv) {
            case 1: attend_1(ATTEND_ARGUMENTS); break;
            case 2: attend_2(ATTEND_ARGUMENTS); break;
#if VECTORS > 2
            default: attend_3(ATTEND_ARGUMENTS);
#endif
          }
        }
      }
    }
    for (int w = 0, nv = 0; w < vectors; w += nv) {
      nv = taken(vectors - w);
      for (int x = 0; x < nv; ++x) {
        const long query = begin + (w + x) * WIDTH;
#if SUMS_ONLY
        put_sums(top + w + x, total + w + x, lse + line, top_out + line, (__global T*)out + line, query, end);
#else
        const R factor = total[w + x] == (R)0 ? (R)0 : (R)1 / total[w + x];
        put_turned(out, b * s.out[0] + h * s.out[1] + span.q_at * s.out[2], s.out, query, end, sums + w * DMAX + x, nv, factor, s.ev);
        put_lines(top + w + x, total + w + x, lse + line, top_out + line, &s, query, end);
#endif
      }
    }
  }
}
__kernel void flex_lanes(CLUTCH_PREDICATE ulong tiles, FlexShape s, T scale, TENSOR_KERNEL_PARAMS, LIST_KERNEL_PARAMS MOD_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  flex_lanes_body(CLUTCH_IDS, tiles, s, scale, TENSOR_ARGUMENTS, LIST_ARGUMENTS MOD_ARGUMENTS);
}
#endif

// Few queries and many keys, with keys along the lanes: results of parts of the keys, and what they make together.
#ifdef CLUTCH_ENTRY_flex_split
#include "flex/split.clh"
#endif

// Makes one of the parts' results, (splits, lines, part_row), with (largest score, sum of weights) in tops: an item a line. Needs: WIDTH 1, CHUNK.
#ifdef CLUTCH_ENTRY_flex_combine
static inline void flex_combine_body(CLUTCH_ID_PARAMS, ulong lines, FlexShape s, __global const T* parts, __global const T* tops, __global uchar* out,
                                     __global T* lse, __global T* top_out) {
  for (ulong line = group * items + item; line < lines; line += groups * items) {
    T top = NONE, total = 0;
    for (long i = 0; i < s.splits; ++i) top = max(top, tops[2 * (i * lines + line)]);
    const T shift = SHIFT_OF(top);
    const long of = (long)line / s.q_rows, at = of / s.heads * s.out[0] + of % s.heads * s.out[1] + (long)line % s.q_rows * s.out[2];
    for (long from = 0; from == 0 || from < s.ev; from += CHUNK) {
      T sum[CHUNK];
      for (int c = 0; c < CHUNK; ++c) sum[c] = 0;
      total = 0;
      for (long i = 0; i < s.splits; ++i) {
        const long part = i * lines + line;
        if (tops[2 * part] == NONE) continue;
        const T weight = rescale(tops[2 * part], shift);
        total = FMA(tops[2 * part + 1], weight, total);
        for (int c = 0; c < CHUNK; ++c) sum[c] = FMA(from + c < s.ev ? parts[part * s.part_row + from + c] : (T)0, weight, sum[c]);
      }
      const T factor = total == 0 ? (T)0 : 1 / total;
      for (int c = 0; c < CHUNK; ++c)
        if (from + c < s.ev) STORE_S(out, at + (from + c) * s.out[3], sum[c] * factor);
    }
    if (s.wants_lse) lse[line] = top == NONE ? NONE : top + log_of(total);
    if (s.wants_top) top_out[line] = top;
  }
}
__kernel void flex_combine(CLUTCH_PREDICATE ulong lines, FlexShape s, __global const uchar* parts, ulong parts_offset, __global const uchar* tops,
                           ulong tops_offset, __global uchar* out, ulong out_offset, __global uchar* lse, ulong lse_offset, __global uchar* top_out,
                           ulong top_offset) {
  CLUTCH_IF_PREDICATE
  flex_combine_body(CLUTCH_IDS, lines, s, (__global const T*)(parts + parts_offset), (__global const T*)(tops + tops_offset), out + out_offset,
                    (__global T*)(lse + lse_offset), (__global T*)(top_out + top_offset));
}
#endif

// What dropout leaves of weights, (batch, heads, count, kv_len), of queries from `first` on: an item a block of four keys. Needs: WIDTH 1; DROPOUT.
#ifdef CLUTCH_ENTRY_flex_dropout
static inline void flex_dropout_body(CLUTCH_ID_PARAMS, ulong tasks, long first, long count, long kv_len, __global T* factors DROP_PARAMS) {
  const PhiloxKeys keys = philox_keys(random_state[0]);
  for (ulong task = group * items + item; task < tasks; task += groups * items) {
    const long quad = (long)task % drop_quads, of = (long)task / drop_quads, head = of / count, query = first + of % count;
    const ulong at = (ulong)((head * drop_rows + query) * drop_quads + quad) + random_state[1];
    const PhiloxBlock words = philox_block((uint)at, (uint)(at >> 32), 0, 0, &keys);
    for (int i = 0; i < 4; ++i)
      if (4 * quad + i < kv_len) factors[of * kv_len + 4 * quad + i] = words.w[i] < drop_below ? (T)0 : kept;
  }
}
__kernel void flex_dropout(CLUTCH_PREDICATE ulong tasks, long first, long count, long kv_len, __global uchar* factors,
                           ulong factors_offset DROP_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  flex_dropout_body(CLUTCH_IDS, tasks, first, count, kv_len, (__global T*)(factors + factors_offset) DROP_ARGUMENTS);
}
#endif

// Writes keys and values to the pages of their sequences: an item a row. Needs: WIDTH 1.
#ifdef CLUTCH_ENTRY_flex_assign
// Strides in elements, as FlexShape's; the cache is (heads, rows, e), its table (sequences, columns).
typedef struct {
  long k[4], v[4];
  long length, heads, e, ev, sequences, columns, page_size, rows;
} AssignShape;
static inline void flex_assign_body(CLUTCH_ID_PARAMS, ulong tasks, AssignShape s, __global const int* sequences, __global const int* positions,
                                    __global const int* table, __global const uchar* k, __global const uchar* v, __global uchar* keys, __global uchar* values) {
  for (ulong task = group * items + item; task < tasks; task += groups * items) {
    const long x = (long)task % s.length, of = (long)task / s.length, h = of % s.heads, i = of / s.heads;
    // Signs are asked for before numbers are widened: some drivers lose them there.
    const int sequence = sequences[i], position = positions[i * s.length + x];
    int page = -1;
    if (sequence >= 0 && sequence < s.sequences && position >= 0 && position / s.page_size < s.columns)
      page = table[sequence * s.columns + position / s.page_size];
    const int there = page >= 0 && ((long)page + 1) * s.page_size <= s.rows;
    const long row = h * s.rows + (long)page * s.page_size + position % s.page_size;
    for (long d = 0; d < s.e; ++d)
      if (there) STORE_S(keys, row * s.e + d, LOAD_S(k, i * s.k[0] + h * s.k[1] + x * s.k[2] + d * s.k[3]));
    for (long d = 0; d < s.ev; ++d)
      if (there) STORE_S(values, row * s.ev + d, LOAD_S(v, i * s.v[0] + h * s.v[1] + x * s.v[2] + d * s.v[3]));
  }
}
__kernel void flex_assign(CLUTCH_PREDICATE ulong tasks, AssignShape s, __global const uchar* sequences, ulong sequences_offset, __global const uchar* positions,
                          ulong positions_offset, __global const uchar* table, ulong table_offset, __global const uchar* k, ulong k_offset,
                          __global const uchar* v, ulong v_offset, __global uchar* keys, ulong keys_offset, __global uchar* values, ulong values_offset) {
  CLUTCH_IF_PREDICATE
  flex_assign_body(CLUTCH_IDS, tasks, s, (__global const int*)(sequences + sequences_offset), (__global const int*)(positions + positions_offset),
                   (__global const int*)(table + table_offset), k + k_offset, v + v_offset, keys + keys_offset, values + values_offset);
}
#endif

// Gradients, with keys along the lanes: an item takes every `chunks`-th tile of keys of a head, and all queries of the heads that read it. Queries' gradients
// are sums over tiles: each item has sums of its own, dq (chunks, lines, part_row), which are added afterwards, in order.
#ifdef CLUTCH_ENTRY_flex_lanes_backward
#include "flex/backward.clh"
#endif

// Tiles in local memory, a group a tile.
#if defined(CLUTCH_ENTRY_flex_tiles) || defined(CLUTCH_ENTRY_flex_tiles_split) || defined(CLUTCH_ENTRY_flex_tiles_dq) || defined(CLUTCH_ENTRY_flex_tiles_dkv)
#include "flex/tiles.clh"
#endif
#if defined(CLUTCH_ENTRY_flex_tiles) || defined(CLUTCH_ENTRY_flex_tiles_split)
#include "flex/tiles_forward.clh"
#endif
#if defined(CLUTCH_ENTRY_flex_tiles_dq) || defined(CLUTCH_ENTRY_flex_tiles_dkv)
#include "flex/tiles_backward.clh"
#endif

// An item a row, for any device.
#if defined(CLUTCH_ENTRY_flex_items) || defined(CLUTCH_ENTRY_flex_items_dq) || defined(CLUTCH_ENTRY_flex_items_dkv)
#include "flex/items.clh"
#endif
