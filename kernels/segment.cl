// SPDX-License-Identifier: Apache-2.0
// segment: rows of features reduced over segments: out[i, :] = reduce of values[k] * data[columns[k], :] over k from offsets[i] to
// offsets[i + 1]. Without CLUTCH_COLUMNS entry k is row k of the data, without CLUTCH_VALUES its factor is 1. A segment's entries go one after another,
// in order, into one accumulator for each feature; sums with CLUTCH_VALUES are fma. Columns that are no row of the data give `missing`.
// With CLUTCH_FIRST feature f counts only if firsts[columns[k], f] == places[k]. With CLUTCH_EPILOGUE a function of a result and of further tensors is stored
// in its place (common/epilogue.clh).
// For gradients: the segment of each entry (segment_ids), dot products of entries' rows (segment_dots), and the first entry of a segment that has the result
// (segment_first).
// Ownership: an item owns `chunk` segments at a time, in panels of PANEL features, whose accumulators are in registers; in segment_first `chunk` panels of
// segments; in segment_groups and segment_first_groups one feature of a segment, or four; in segment_dot_groups a team of items an entry. Local memory: four
// partial sums for each item of segment_dot_groups.
// Needs: what common/expr.clh needs; IDX; A_IS_F32 or A_IS_F64;
//   T_NAME              dtype of data, values and out: f32, f64, f16 or bf16
//   OFFSET, COLUMN      types of offsets and columns: int or long
//   CLUTCH_COLUMNS, CLUTCH_VALUES   1: there are columns, values
//   CLUTCH_OFFSETS      0: segment i is entry i
//   CLUTCH_SELF         how a row of `self` is used: SEGMENT_SELF_NONE ... (args.h)
//   CLUTCH_LOOP_LIMIT   iterations that the device gives an item's loops; segments that take more give `missing`; 0: any
//   CLUTCH_BY_ENTRY     1: an item of segment_ids and segment_dots owns an entry at a time, since no item may walk a segment's or neighbours store neighbours
//   CLUTCH_FIRST        1: firsts and places, as above; T is A then
//   CLUTCH_EPILOGUE     1: expression.clh, as common/epilogue.clh needs it, for segment_rows, segment_groups and segment_strided
//   CLUTCH_ROUND        what results were rounded to, for segment_first: SEGMENT_ROUND_NOT ...
//   CLUTCH_OP           common/reductions.h; CLUTCH_MEAN 1: divide by the count
#include "common/combine.clh"
#include "common/launch.clh"
#include "segment/args.h"

#if !defined(T_NAME) || !defined(OFFSET) || !defined(COLUMN) || !defined(CLUTCH_COLUMNS) || !defined(CLUTCH_VALUES) || !defined(CLUTCH_OP) || \
    !defined(CLUTCH_MEAN) || !defined(IDX)
#error "T_NAME, OFFSET, COLUMN, CLUTCH_COLUMNS, CLUTCH_VALUES, CLUTCH_OP, CLUTCH_MEAN and IDX are not defined"
#endif
#if !defined(CLUTCH_OFFSETS) || !defined(CLUTCH_SELF) || !defined(CLUTCH_LOOP_LIMIT) || !defined(CLUTCH_FIRST) || !defined(CLUTCH_ROUND) || \
    !defined(CLUTCH_BY_ENTRY) || !defined(CLUTCH_EPILOGUE)
#error "CLUTCH_OFFSETS, CLUTCH_SELF, CLUTCH_LOOP_LIMIT, CLUTCH_FIRST, CLUTCH_ROUND, CLUTCH_BY_ENTRY and CLUTCH_EPILOGUE are not defined"
#endif
#define BEGINS_WITH_SELF (CLUTCH_SELF == SEGMENT_SELF_BEGIN || CLUTCH_SELF == SEGMENT_SELF_INITIAL)
// 1 if an item's tasks, of `iterations` iterations each, take more iterations than CLUTCH_LOOP_LIMIT; the end of a loop counts as one.
#define TOO_LONG(iterations, tasks, items) \
  (CLUTCH_LOOP_LIMIT > 0 && (ulong)(iterations) > (ulong)(CLUTCH_LOOP_LIMIT - 2) / max(((tasks) + (items)-1) / (items), 1ul))

#ifdef A_IS_F64
#define FMA(a, b, c) fma(a, b, c)
#define DIVIDE(a, b) ((a) / (b))
#else
#define FMA(a, b, c) fma_rn(a, b, c)
#define DIVIDE(a, b) div_rn(a, b)
#endif
#define LOAD(base, i) CLUTCH_CONCAT(load_, T_NAME)(base, i)
#define LOADV(base, i) CLUTCH_CONCAT(loadv_, T_NAME)(base, i)
#define SCATTER(base, at, count, x) CLUTCH_CONCAT(scatter_, T_NAME)(base, at, count, x)
#define O_NAME T_NAME
#include "common/some_lanes.clh"
#define ABREAST SEGMENT_ABREAST
#define AHEAD 8  // measured with clutch-bench --filter spmm on a wide-vector device
#define PANEL (ABREAST * WIDTH)

// What stores `count` results from feature f of segment i on, which are at `place` of `out`.
#if CLUTCH_EPILOGUE
#define CLUTCH_SHAPE_VECTOR CLUTCH_CONCAT(IDX, CLUTCH_RANK_LANES)
#include "expression.clh"
#define LANES WIDTH
#define EPILOGUE_VALUE V
#define EPILOGUE_PARAMS
#define EPILOGUE_SCALE(acc) (acc)
#define EPILOGUE_ADD_BEFORE(before)
#define EPILOGUE_HAS_FRONTS 1
#include "common/epilogue.clh"
#define RESULT_KERNEL_PARAMS CLUTCH_BUFFER_KERNEL_PARAMS
#define EPILOGUE_KERNEL_PARAMS , uint flat CLUTCH_STRIDE_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS
#define RESULT_SHIFT                              \
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES]; \
  CLUTCH_STRIDES(stride)                          \
  CLUTCH_SHIFT_BUFFERS
#define RESULT_PARAMS uint flat, const IDX(*stride)[CLUTCH_RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS
#define RESULT_NAMES flat, stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES
#define STORE_RESULTS(place, i, f, count, x) epilogue(x, 0, i, f, count, flat, stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES)
#define STORE_RESULT(place, i, f, x) STORE_RESULTS(place, i, f, 1, (V)(x))
#else
#define RESULT_KERNEL_PARAMS __global uchar *out, ulong out_offset
#define EPILOGUE_KERNEL_PARAMS
#define RESULT_SHIFT out += out_offset;
#define RESULT_PARAMS __global uchar* out
#define RESULT_NAMES out
#define STORE_RESULTS(place, i, f, count, x) store_some(out, place, count, x)
#define STORE_RESULT(place, i, f, x) CLUTCH_CONCAT(store_, T_NAME)(out, place, x)
#endif

static inline V step(V acc, V x, A value) {
#if CLUTCH_VALUES && CLUTCH_OP == CLUTCH_REDUCE_SUM
  return FMA(x, (V)value, acc);
#elif CLUTCH_VALUES
  return CLUTCH_COMBINE(V, acc, x * (V)value);
#else
  return CLUTCH_COMBINE(V, acc, x);
#endif
}
#if CLUTCH_MEAN
#define RESULT_OF(acc, count) DIVIDE(acc, (V)(A)((count) + (CLUTCH_SELF == SEGMENT_SELF_BEGIN)))
#else
#define RESULT_OF(acc, count) (acc)
#endif

// The row of the data that entry k takes, or -1.
static inline long row_of(__global const uchar* columns, long k, long data_rows) {
#if CLUTCH_COLUMNS
  long c = ((__global const COLUMN*)columns)[k];
  return c >= 0 && c < data_rows ? c : -1;
#else
  return k < data_rows ? k : -1;
#endif
}
static inline A value_of(__global const uchar* values, long k) {
#if CLUTCH_VALUES
  return LOAD(values, k);
#else
  return 1;
#endif
}
static inline long offset_of(__global const uchar* offsets, ulong i, long entries) {
#if CLUTCH_OFFSETS
  return clamp((long)((__global const OFFSET*)offsets)[i], 0L, entries);
#else
  return (long)i;
#endif
}
// acc after an entry's term; unchanged where another entry is the first.
#if CLUTCH_FIRST
#define WITH_TERM(acc, x, value, firsts, at, count, own) (load_some(firsts, at, count) == (V)(own) ? step(acc, x, value) : (acc))
#else
#define WITH_TERM(acc, x, value, firsts, at, count, own) step(acc, x, value)
#endif
static inline A place_of(__global const uchar* places, long k) {
#if CLUTCH_FIRST
  return LOAD(places, k);
#else
  return 0;
#endif
}
// Up to PANEL features of a segment, `width` of them, from feature `first` on.
static inline void segment_panel(RESULT_PARAMS, __global const uchar* data, __global const uchar* columns, __global const uchar* values,
                                 __global const uchar* self, __global const uchar* firsts, __global const uchar* places, ulong i, long begin, long end,
                                 long entries, long data_rows, IDX out_place, IDX self_place, IDX data_stride, IDX first, int width, A missing) {
  V acc[ABREAST];
#if BEGINS_WITH_SELF
  for (int v = 0; v * WIDTH < width; ++v) acc[v] = load_some(self, self_place + v * WIDTH, min(width - v * WIDTH, WIDTH));
#else
  for (int v = 0; v < ABREAST; ++v) acc[v] = (V)(A)CLUTCH_IDENTITY;
#endif
  for (long k = begin; k < end; ++k) {
    long row = row_of(columns, k, data_rows);
    A value = row < 0 ? missing : value_of(values, k), own = place_of(places, k);
#if CLUTCH_COLUMNS
    // Rows are in any order: those of the next entries are prefetched, across segments.
    if (k + AHEAD < entries) {
      long later = max(row_of(columns, k + AHEAD, data_rows), 0L);
      for (int byte = 0; byte < width * (int)sizeof(T); byte += 64) CLUTCH_PREFETCH(data + (later * data_stride + first) * sizeof(T) + byte);
    }
#endif
    IDX place = (IDX)(row < 0 ? 0 : row) * data_stride + first;
    if (row < 0) {
      for (int v = 0; v < ABREAST; ++v) acc[v] = (V)missing;
    } else if (width == PANEL) {
#pragma unroll
      for (int v = 0; v < ABREAST; ++v) acc[v] = WITH_TERM(acc[v], LOADV(data, place + v * WIDTH), value, firsts, place + v * WIDTH, WIDTH, own);
    } else {
      for (int v = 0; v * WIDTH < width; ++v) {
        int count = min(width - v * WIDTH, WIDTH);
        acc[v] = WITH_TERM(acc[v], load_some(data, place + v * WIDTH, count), value, firsts, place + v * WIDTH, count, own);
      }
    }
  }
  for (int v = 0; v * WIDTH < width; ++v)
    STORE_RESULTS(out_place + v * WIDTH, i, first + v * WIDTH, min(width - v * WIDTH, WIDTH), RESULT_OF(acc[v], end - begin));
}

#define SEGMENT_PARAMS                                                                                                                                       \
  CLUTCH_PREDICATE RESULT_KERNEL_PARAMS, __global const uchar *data, ulong data_offset, __global const uchar *offsets, ulong offsets_offset,                 \
      __global const uchar *columns, ulong columns_offset, __global const uchar *values, ulong values_offset, __global const uchar *self, ulong self_offset, \
      __global const uchar *firsts, ulong firsts_offset, __global const uchar *places, ulong places_offset,                                                  \
      CLUTCH_ARGS(SegmentArgs, args) EPILOGUE_KERNEL_PARAMS
#define SEGMENT_SHIFT                                                                                                                               \
  SEGMENT_COUNTS                                                                                                                                    \
  RESULT_SHIFT                                                                                                                                      \
  data += data_offset, offsets += offsets_offset, columns += columns_offset, values += values_offset, self += self_offset, firsts += firsts_offset, \
      places += places_offset;
// The counts that all kernels read, by their names.
#define SEGMENT_COUNTS                \
  CLUTCH_TAKE_ARGS(SegmentArgs, args) \
  const ulong n = args.n, features = args.features, entries = args.entries, data_rows = args.data_rows, chunk = args.chunk;

// Rows: the features of a row are contiguous.
#ifdef CLUTCH_ENTRY_segment_rows
// Iterations of an entry, in all panels: its prefetches, and its vectors, a loop that compilers unroll unless rounding is emulated or the panel is the last; of
// a row: what comes before and after its entries.
#define FETCH_LOOPS (CLUTCH_COLUMNS * ((PANEL * (int)sizeof(T) + 63) / 64 + 1))
#define ENTRY_LOOPS(features) \
  (((features) + PANEL - 1) / PANEL * (1 + FETCH_LOOPS + (CLUTCH_VALUES && CLUTCH_FMA_RN != CLUTCH_RN_NATIVE ? ABREAST + 1 : 0)) + ABREAST + 1)
#define ROW_LOOPS(features) (((features) + PANEL - 1) / PANEL * (PANEL + 2 * ABREAST + 5) + 2)
__kernel void segment_rows(SEGMENT_PARAMS) {
  CLUTCH_IF_PREDICATE
  SEGMENT_SHIFT
  ulong item = get_global_id(0), items = get_global_size(0);
  for (ulong task = item * chunk; task < n; task += items * chunk)
    for (ulong i = task; i < min(task + chunk, n); ++i) {
      long begin = offset_of(offsets, i, (long)entries), end = offset_of(offsets, i + 1, (long)entries);
      for (IDX first = 0; first < (IDX)features; first += PANEL) {
        int width = (int)min((IDX)features - first, (IDX)PANEL);
        IDX place = (IDX)i * (IDX)args.out_stride + first, self_place = (IDX)i * (IDX)args.self_stride + first;
        if (TOO_LONG(chunk * (ROW_LOOPS(features) + (end - begin) * ENTRY_LOOPS(features)), n, items * chunk)) {
          for (int l = 0; l < width; ++l) STORE_RESULT(place + l, i, first + l, (A)args.missing);
        } else if ((begin < end) | (CLUTCH_SELF == SEGMENT_SELF_BEGIN)) {
          segment_panel(RESULT_NAMES, data, columns, values, self, firsts, places, i, begin, end, (long)entries, (long)data_rows, place, self_place,
                        (IDX)args.data_stride, first, width, (A)args.missing);
        } else {
          for (int l = 0; l < width; ++l) STORE_RESULT(place + l, i, first + l, CLUTCH_SELF != SEGMENT_SELF_NONE ? LOAD(self, self_place + l) : (A)args.empty);
        }
      }
    }
}
#endif

// The reference: any strides, feature by feature.
#ifdef CLUTCH_ENTRY_segment_strided
__kernel void segment_strided(SEGMENT_PARAMS) {
  CLUTCH_IF_PREDICATE
  SEGMENT_SHIFT
  ulong item = get_global_id(0), items = get_global_size(0);
  for (ulong task = item; task < n * features; task += items) {
    ulong i = task / features, f = task - i * features;
    long begin = offset_of(offsets, i, (long)entries), end = offset_of(offsets, i + 1, (long)entries);
    A own = CLUTCH_SELF != SEGMENT_SELF_NONE ? LOAD(self, (IDX)i * (IDX)args.self_stride + (IDX)f * (IDX)args.self_inner) : (A)args.empty;
    V acc = BEGINS_WITH_SELF ? (V)own : (V)(A)CLUTCH_IDENTITY;
    const long stop = TOO_LONG(end - begin + 2, n * features, items) ? begin : end;
    for (long k = begin; k < stop; ++k) {
      long row = row_of(columns, k, (long)data_rows);
      if (row < 0) {
        acc = (V)(A)args.missing;
      } else {
        IDX at = (IDX)row * (IDX)args.data_stride + (IDX)f * (IDX)args.data_inner;
        acc = WITH_TERM(acc, (V)LOAD(data, at), value_of(values, k), firsts, at, 1, place_of(places, k));
      }
    }
    V result = begin < end ? RESULT_OF(acc, end - begin) : (V)own;
    if (TOO_LONG(end - begin + 2, n * features, items)) result = (V)(A)args.missing;
#if CLUTCH_EPILOGUE
    STORE_RESULTS(0, i, f, 1, result);
#else
    IDX to[WIDTH];
    for (int l = 0; l < WIDTH; ++l) to[l] = (IDX)i * (IDX)args.out_stride + (IDX)f * (IDX)args.out_inner;
    SCATTER(out, to, 1, result);
#endif
  }
}
#endif

// The last segment that begins at entry k or before it, if k is in it; else n.
static inline ulong segment_of(__global const uchar* offsets, ulong n, ulong k, ulong entries) {
  ulong low = 0, high = n;
  while (low < high) {
    const ulong middle = (low + high) / 2;
    if (offset_of(offsets, middle, (long)entries) <= (long)k)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && offset_of(offsets, low, (long)entries) > (long)k ? low - 1 : n;
}

// ids[k]: the segment of entry k.
#ifdef CLUTCH_ENTRY_segment_ids
__kernel void segment_ids(CLUTCH_PREDICATE __global uchar* ids, ulong ids_offset, __global const uchar* offsets, ulong offsets_offset,
                          CLUTCH_ARGS(SegmentArgs, args)) {
  CLUTCH_IF_PREDICATE
  SEGMENT_COUNTS
  ids += ids_offset, offsets += offsets_offset;
#if CLUTCH_BY_ENTRY
  for (ulong k = get_global_id(0); k < entries; k += get_global_size(0)) {
    const ulong i = segment_of(offsets, n, k, entries);
    if (i < n) *((__global OFFSET*)ids + k) = (OFFSET)(i);
  }
#else
  for (ulong task = get_global_id(0) * chunk; task < n; task += get_global_size(0) * chunk)
    for (ulong i = task; i < min(task + chunk, n); ++i) {
      long end = offset_of(offsets, i + 1, (long)entries);
      for (long k = offset_of(offsets, i, (long)entries); k < end; ++k) ((__global OFFSET*)ids)[k] = (OFFSET)i;
    }
#endif
}
#endif

// out[k] = sum over features f of x[i, f] * data[columns[k], f], i the segment of entry k. With CLUTCH_FIRST: features with firsts[i, f] == k - offsets[i]
// alone. Feature f is added to partial f % 16 by fma, the partials by halves.
#ifdef CLUTCH_ENTRY_segment_dots
static inline A dot_of(__global const uchar* x, __global const uchar* data, __global const uchar* columns, __global const uchar* firsts, long i, long k,
                       long begin, long features, long data_rows, long x_stride, long data_stride) {
  long row = row_of(columns, k, data_rows);
  V acc[16 / WIDTH];
  for (int v = 0; v < 16 / WIDTH; ++v) acc[v] = (V)(A)0;
  for (long f = 0; row >= 0 && f < features; f += 16)
    for (int v = 0; v < 16 / WIDTH; ++v) {
      long at = f + v * WIDTH;
      int count = (int)clamp(features - at, 0L, (long)WIDTH);
      if (count == 0) continue;
      V sum = FMA(load_some(x, i * x_stride + at, count), load_some(data, row * data_stride + at, count), acc[v]);
#if CLUTCH_FIRST
      sum = load_some(firsts, i * x_stride + at, count) == (V)(A)(k - begin) ? sum : acc[v];
#endif
      acc[v] = CLUTCH_V_MASK(CLUTCH_LANE_BELOW(count)) ? sum : acc[v];
    }
  A partial[16];
  for (int v = 0; v < 16 / WIDTH; ++v) CLUTCH_V_SPILL(acc[v], partial + v * WIDTH);
  for (int h = 8; h > 0; h /= 2)
    for (int l = 0; l < h; ++l) partial[l] += partial[l + h];
  return row < 0 ? CLUTCH_A_NAN : partial[0];
}
#define DOT(i, k, begin) dot_of(x, data, columns, firsts, i, k, begin, (long)features, (long)data_rows, args.x_stride, args.data_stride)
__kernel void segment_dots(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* x, ulong x_offset, __global const uchar* data,
                           ulong data_offset, __global const uchar* offsets, ulong offsets_offset, __global const uchar* columns, ulong columns_offset,
                           __global const uchar* firsts, ulong firsts_offset, CLUTCH_ARGS(SegmentArgs, args)) {
  CLUTCH_IF_PREDICATE
  SEGMENT_COUNTS
  out += out_offset, x += x_offset, data += data_offset, offsets += offsets_offset, columns += columns_offset, firsts += firsts_offset;
#if CLUTCH_BY_ENTRY
  for (ulong k = get_global_id(0); k < entries; k += get_global_size(0)) {
    const ulong i = segment_of(offsets, n, k, entries);
    if (i < n) CLUTCH_CONCAT(store_, T_NAME)(out, k, DOT((long)i, (long)k, offset_of(offsets, i, (long)entries)));
  }
#else
  for (ulong task = get_global_id(0) * chunk; task < n; task += get_global_size(0) * chunk)
    for (ulong i = task; i < min(task + chunk, n); ++i) {
      long begin = offset_of(offsets, i, (long)entries), end = offset_of(offsets, i + 1, (long)entries);
      for (long k = begin; k < end; ++k) CLUTCH_CONCAT(store_, T_NAME)(out, k, DOT((long)i, k, begin));
    }
#endif
}
#endif

// out[i, f]: the position in segment i of the first entry whose term for feature f is result[i, f]; -1 if there is none.
#if defined(CLUTCH_ENTRY_segment_first) || defined(CLUTCH_ENTRY_segment_first_groups)
#if CLUTCH_ROUND == SEGMENT_ROUND_F16
#define ROUNDED(x) clutch_round_f16(x)
#elif CLUTCH_ROUND == SEGMENT_ROUND_BF16
#define ROUNDED(x) clutch_round_bf16(x)
#else
#define ROUNDED(x) (x)
#endif
#define FIRST_PARAMS                                                                                                                                          \
  CLUTCH_PREDICATE __global uchar *out, ulong out_offset, __global const uchar *data, ulong data_offset, __global const uchar *offsets, ulong offsets_offset, \
      __global const uchar *columns, ulong columns_offset, __global const uchar *values, ulong values_offset, __global const uchar *result,                   \
      ulong result_offset, CLUTCH_ARGS(SegmentArgs, args)
#endif
#ifdef CLUTCH_ENTRY_segment_first
__kernel void segment_first(FIRST_PARAMS) {
  CLUTCH_IF_PREDICATE
  SEGMENT_COUNTS
  out += out_offset, data += data_offset, offsets += offsets_offset, columns += columns_offset, values += values_offset, result += result_offset;
  // A task is a panel of a segment; an item takes `chunk` of them at a time, in one loop.
  const ulong panels = (features + PANEL - 1) / PANEL, tasks = n * panels, item = get_global_id(0), items = get_global_size(0);
  const ulong to_next_chunk = 1 + (items - 1) * chunk;
  for (ulong task = item * chunk; task < tasks; task += ((IDX)task + 1) % (IDX)chunk != 0 ? 1 : to_next_chunk) {
    const ulong i = (ulong)((IDX)task / (IDX)panels);
    const long first = (long)(task - i * panels) * PANEL;
    long begin = offset_of(offsets, i, (long)entries), end = offset_of(offsets, i + 1, (long)entries);
    // The reduction gave NaN, which equals no term: its entries have the same limit, or a lower one.
    if (TOO_LONG(chunk * (end - begin + 2), tasks, items * chunk)) end = begin;
    V found[ABREAST], wanted[ABREAST];
    int counts[ABREAST];
    for (int v = 0; v < ABREAST; ++v) {
      counts[v] = (int)clamp((long)features - first - v * WIDTH, 0L, (long)WIDTH);
      found[v] = (V)(A)-1, wanted[v] = (V)(A)0;
      if (counts[v] > 0) wanted[v] = load_some(result, (long)i * (long)features + first + v * WIDTH, counts[v]);
    }
    for (long k = begin; k < end; ++k) {
      long row = row_of(columns, k, (long)data_rows);
      V value = (V)value_of(values, k), own = (V)(A)(k - begin);
      for (int v = 0; v < ABREAST; ++v)
        if (row >= 0 && counts[v] > 0) {
          V term = ROUNDED(load_some(data, row * (long)features + first + v * WIDTH, counts[v]) * value);
          found[v] = ((term == wanted[v]) & (found[v] < (V)(A)0)) ? own : found[v];
        }
    }
    for (int v = 0; v < ABREAST; ++v)
      if (counts[v] > 0) store_some(out, (long)i * (long)features + first + v * WIDTH, counts[v], found[v]);
  }
}
#endif

#if defined(CLUTCH_ENTRY_segment_groups) || defined(CLUTCH_ENTRY_segment_dot_groups) || defined(CLUTCH_ENTRY_segment_first_groups)
#include "segment/groups.clh"
#endif
