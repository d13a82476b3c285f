// SPDX-License-Identifier: Apache-2.0
// rowwise: totals over each row, one after another, then new elements from the row's elements and the totals, while the row is in a core's cache.
// A total may use earlier totals. Totals combine in the order of common/reduce_order.clh; so do results of blocks.
// Ownership: an item takes `chunk` whole rows at a time, reading a row once for each total and once for the elements, without local memory. rowwise_groups: a
// team of items takes a row of one block, a group a longer one; local memory of REDUCE_GROUP_ITEMS + REDUCE_BLOCK accumulators. With CLUTCH_HELD its items read
// one of the inputs once and hold it in registers. rowwise_items: so does an item, of a short row; with CLUTCH_ALONG local memory of the group's rows.
// rowwise_column_groups: REDUCE_COLUMN_ITEMS items take a row; local memory of 2 REDUCE_GROUP_ITEMS accumulators. rowwise_columns: an item takes panels of
// neighbouring rows (rowwise/args.h), `chunk` of them at a time.
//
// Operands are b0, b1, ...: element outputs, result outputs, inputs. Strides over the kept dimensions are s0, s1, ...; each operand has one stride along a row.
//
// Needs: what common/reduce_order.clh needs;
//   CLUTCH_ELEMENT_COUNT, CLUTCH_RESULT_COUNT   number of outputs with a row's elements, and of outputs with one element a row
//   CLUTCH_TOTAL_COUNT                          number of totals, 1 to ROWWISE_TOTALS
//   CLUTCH_TOTAL_OP0 to CLUTCH_TOTAL_OP3        their operations (common/reductions.h)
//   CLUTCH_KEPT       the total whose values are kept for the elements, if a row has at most REDUCE_BLOCK; ROWWISE_TOTALS: none
//   CLUTCH_FETCH_IN   the total during which the next row is prefetched; ROWWISE_TOTALS: during the elements
//   CLUTCH_LATE       1: during that total the elements of the row before are stored, so that memory is always busy
//   CLUTCH_KNOWS      if defined: bits of totals that have a form from kept values, CLUTCH_TOTAL1_KEPT and so on
//   CLUTCH_SIDES      if defined: vectors that an item computes side by side, by the functions with a bit in CLUTCH_SIDE_BY_SIDE_OF (totals, then
//                     ROWWISE_TOTALS: the elements), which have forms for that: CLUTCH_TOTAL0_SIDES, CLUTCH_ELEMENTS_SIDES, CLUTCH_ELEMENTS_KEPT_SIDES
//   CLUTCH_STEPS      rowwise_rows, if defined: bits of the operands that have one element in each part of a row; `inner` is their stride from part to part
//   CLUTCH_ALONG      rowwise_items: 1 if rows are behind one another in memory
//   CLUTCH_HELD       rowwise_items: elements of one input that an item holds; rowwise_columns, if defined: an item brings rows of one input near;
//   rowwise_groups, if defined: elements of one input that an item holds, REDUCE_FEW_HELD of rows of at most 16 times as many elements,
//                     REDUCE_HELD of rows of at most as many blocks as a group has teams
//   from expression.clh CLUTCH_TOTAL0 to CLUTCH_TOTAL3, CLUTCH_ELEMENTS (CLUTCH_ELEMENTS_KEPT with kept values), CLUTCH_RESULTS, with their parameters; with
//   CLUTCH_HELD for each input k CLUTCH_LOAD_OF_k, that input's load from memory as CLUTCH_LOAD_ROW, or for the held one CLUTCH_LOAD_HELD;
//   CLUTCH_HELD_ROW(LOAD), its load; and, if all elements are of type VF, CLUTCH_STORES_LATER
#include "common/expr.clh"
#include "common/launch.clh"
#include "common/reduce_order.clh"
#include "rowwise/args.h"

#if !defined(CLUTCH_OPERANDS) || !defined(CLUTCH_ELEMENT_COUNT) || !defined(CLUTCH_RESULT_COUNT) || !defined(CLUTCH_TOTAL_COUNT) || !defined(CLUTCH_KEPT) || \
    !defined(CLUTCH_FETCH_IN) || !defined(CLUTCH_LATE)
#error "CLUTCH_OPERANDS, CLUTCH_ELEMENT_COUNT, CLUTCH_RESULT_COUNT, CLUTCH_TOTAL_COUNT, CLUTCH_KEPT, CLUTCH_FETCH_IN and CLUTCH_LATE are not defined"
#endif

#include "expression.clh"

#define STORE_SCATTERED(k, dtype, x) CLUTCH_CONCAT(scatter_, dtype)(CLUTCH_CONCAT(b, k), at[k], count, x);
#define STORE_FRONT(k, dtype, x) CLUTCH_CONCAT(front_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j, count, x);
#define LOAD_SPLAT(k, dtype) CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), offset[k])
#define STORE_RESULT(k, dtype, x) CLUTCH_CONCAT(store_, dtype)(CLUTCH_CONCAT(b, k), offset[k], CLUTCH_FIRST_LANE(x));
#define CLUTCH_TOTAL_VALUE_0 ((V)totals[0])
#define CLUTCH_TOTAL_VALUE_1 ((V)totals[1])
#define CLUTCH_TOTAL_VALUE_2 ((V)totals[2])
#define CLUTCH_TOTAL_VALUE_3 ((V)totals[3])
#define CLUTCH_TOTAL_VALUE_4 ((V)totals[4])
#if ROWWISE_TOTALS != 4
#error "CLUTCH_TOTAL_VALUE_0 and those that follow it are those of ROWWISE_TOTALS totals and of the row's length"
#endif

#ifdef CLUTCH_ENTRY_rowwise_columns
#define CLUTCH_COLUMNS
// Rows side by side in memory are lanes, of `abreast` vectors: so memory is read and written in longer pieces. Vector v has its totals in all_totals[v] and
// kept values of element j in keep[j * abreast + v]. `row` are the operands' offsets of element j in lane 0 of vector 0, `across` are strides from lane to
// lane, 0 or 1, and the first `left_out` lanes of a vector are not stored.
#define CLUTCH_KNOWN_VALUE keep[j * abreast + v]
#define CLUTCH_COLUMN_PARAMS , const IDX *across, int abreast, V *acc, V(*all_totals)[ROWWISE_TOTALS + 1], V *keep CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS
#define CLUTCH_COLUMN_NAMES , across, abreast, acc, all_totals, keep CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES
#define LOAD_LANES(k, dtype) \
  (across[k] ? CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), row[k] + v * WIDTH) : CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), row[k]))
#ifdef CLUTCH_HELD
// Rows of one input are brought to a place of their own: in memory they may be so far from each other that few of them stay in a cache.
#undef CLUTCH_LOAD_ROW
#define CLUTCH_LOAD_ROW LOAD_LANES
#define CLUTCH_LOAD_HELD(k, dtype) keep[j * abreast + v]
#define LOAD_NEAR(k, dtype) CLUTCH_CONCAT(CLUTCH_LOAD_OF_, k)(k, dtype)
#else
#define LOAD_NEAR LOAD_LANES
#endif
#define STORE_LANES(k, dtype, x)                                                                 \
  if (left_out == 0 && across[k]) {                                                              \
    CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), row[k] + v * WIDTH, x);                   \
  } else {                                                                                       \
    IDX at[WIDTH];                                                                               \
    for (int l = 0; l < WIDTH; ++l) at[l] = row[k] + (v * WIDTH + max(l, left_out)) * across[k]; \
    CLUTCH_CONCAT(scatter_, dtype)(CLUTCH_CONCAT(b, k), at, WIDTH, x);                           \
  }
#elif defined(CLUTCH_ENTRY_rowwise_items)
#define CLUTCH_TEAMS
#define CLUTCH_ITEMS
// Unrolled, what an item holds is in registers. On CPUs the text would be too long. The last eight elements may be absent.
#ifdef CLUTCH_IS_CPU
#define CLUTCH_UNROLL_ITEMS _Pragma("unroll 1")
#else
#define CLUTCH_UNROLL_ITEMS _Pragma("unroll")
#endif
#define CLUTCH_EACH_ELEMENT(u) CLUTCH_UNROLL_ITEMS for (int u = 0; u < CLUTCH_HELD; ++u) if (u < CLUTCH_HELD - 8 || u < (int)m)
#define CLUTCH_KNOWN_VALUE values[u]
#define CLUTCH_ROW_PARAMS , const IDX *inner, const A *totals, VF *values CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS
#define CLUTCH_ROW_NAMES , inner, totals, values CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES
#undef CLUTCH_LOAD_ROW
#define CLUTCH_LOAD_ROW(k, dtype) CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j * inner[k])
#define CLUTCH_LOAD_HELD(k, dtype) values[u]
#define CLUTCH_LOAD_VALUE(k, dtype) CLUTCH_CONCAT(CLUTCH_LOAD_OF_, k)(k, dtype)
#define LOAD_FIRST CLUTCH_LOAD_ROW
#define STORE_ELEMENT(k, dtype, x) CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j * inner[k], x);
#elif defined(CLUTCH_ENTRY_rowwise_column_groups)
#define CLUTCH_TEAMS
#define CLUTCH_SHARED
// Each operand's stride along a row is in inner[k].
#define CLUTCH_ROW_PARAMS , const IDX *inner, const A *totals CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS
#define CLUTCH_ROW_NAMES , inner, totals CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES
#define CLUTCH_LOAD_VALUE(k, dtype) CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j * inner[k])
#define LOAD_FIRST CLUTCH_LOAD_VALUE
#define STORE_ELEMENT(k, dtype, x) CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j * inner[k], x);
#elif defined(CLUTCH_ENTRY_rowwise_groups)
#define CLUTCH_TEAMS
#ifdef CLUTCH_HELD
#define CLUTCH_KNOWN_VALUE values[u]
#define CLUTCH_LOAD_HELD(k, dtype) values[u]
#define CLUTCH_LOAD_VALUE(k, dtype) CLUTCH_CONCAT(CLUTCH_LOAD_OF_, k)(k, dtype)
#define CLUTCH_ROW_PARAMS , const A *totals, VF *values, IDX mine, int own, int most CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS
#define CLUTCH_ROW_NAMES , totals, values, mine, own, most CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES
#else
#define CLUTCH_ROW_PARAMS , const A* totals CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS
#define CLUTCH_ROW_NAMES , totals CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES
#define CLUTCH_LOAD_VALUE CLUTCH_LOAD_ROW
#endif
#define LOAD_FIRST CLUTCH_LOAD_ROW
#define STORE_ELEMENT(k, dtype, x) CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j, x);
#else
#define CLUTCH_KNOWN_VALUE keep[j / WIDTH]
// Parameters of a row: offsets of the next row, totals so far, kept values, and whether these are of the whole row (`near`); if `late`, the offsets, totals and
// kept values of the row before, whose elements are computed now.
#define CLUTCH_ROW_PARAMS                                                                                                     \
  , const IDX *next, const A *totals, V *keep, int near, int late, const IDX *before, const A *before_totals, V *before_keep, \
      int streaming CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS
#define CLUTCH_ROW_NAMES , next, totals, keep, near, late, before, before_totals, before_keep, streaming CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES

// Whole vectors along a row, at strides 0 and 1. Other rows go element by element.
#ifdef CLUTCH_ENTRY_rowwise_rows
#define CLUTCH_LOAD_VALUE CLUTCH_LOAD_ROW
#define CLUTCH_LOAD_TAIL CLUTCH_LOAD_SOME
#define CLUTCH_FETCH(k, bytes) \
  if (!CLUTCH_IS_SPLAT(k)) CLUTCH_PREFETCH(CLUTCH_CONCAT(b, k) + ((long)next[k] + j) * bytes);
#define STORE_ROW(k, dtype, x)                  \
  if (streaming) CLUTCH_CONCAT(streamv_, dtype) \
  (CLUTCH_CONCAT(b, k), offset[k] + j, x);      \
  else CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j, x);
#endif

#if CLUTCH_FETCH_IN == ROWWISE_TOTALS
#define FETCH_ELEMENT CLUTCH_FETCH_INPUTS(CLUTCH_FETCH)
#else
#define FETCH_ELEMENT
#endif
// A vector of elements, from kept values if the row is short enough (`near`).
#if CLUTCH_KEPT < CLUTCH_TOTAL_COUNT
#define ROW_ELEMENTS(near, load, store)                   \
  if (near) {                                             \
    CLUTCH_ELEMENTS_KEPT(load, CLUTCH_NO_POSITION, store) \
  } else {                                                \
    CLUTCH_ELEMENTS(load, CLUTCH_NO_POSITION, store)      \
  }
#else
#define ROW_ELEMENTS(near, load, store) CLUTCH_ELEMENTS(load, CLUTCH_NO_POSITION, store)
#endif
#ifdef CLUTCH_SIDES
#define CLUTCH_SIDE_PLACE(u) const IDX j = first + u * WIDTH;
#define CLUTCH_HAS_SIDES(function) (CLUTCH_SIDE_BY_SIDE_OF >> (function)&1)
#if CLUTCH_KEPT < CLUTCH_TOTAL_COUNT
#define SIDES_OF_ELEMENTS(near, load, store)                    \
  if (near) {                                                   \
    CLUTCH_ELEMENTS_KEPT_SIDES(load, CLUTCH_NO_POSITION, store) \
  } else {                                                      \
    CLUTCH_ELEMENTS_SIDES(load, CLUTCH_NO_POSITION, store)      \
  }
#else
#define SIDES_OF_ELEMENTS(near, load, store) CLUTCH_ELEMENTS_SIDES(load, CLUTCH_NO_POSITION, store)
#endif
#else
#define CLUTCH_HAS_SIDES(function) 0
#endif
#if CLUTCH_LATE
static inline void whole_elements(const IDX* offset, IDX j, int streaming, const A* totals, const V* keep CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS) {
  ROW_ELEMENTS(1, CLUTCH_LOAD_VALUE, STORE_ROW)
}
static inline void some_elements(const IDX* offset, IDX j, int count, const A* totals, const V* keep CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS) {
  ROW_ELEMENTS(1, CLUTCH_LOAD_TAIL, STORE_FRONT)
}
#define CLUTCH_LATE_ELEMENTS \
  if (late) whole_elements(before, j, streaming, before_totals, before_keep CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES);
#define CLUTCH_LATE_TAIL \
  if (late) some_elements(before, j, count, before_totals, before_keep CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES);
#else
#define CLUTCH_LATE_ELEMENTS
#define CLUTCH_LATE_TAIL
#endif
#endif  // CLUTCH_ENTRY_rowwise_columns
#if CLUTCH_TOTAL_COUNT > 3
#define EACH_TOTAL(DO) DO(0), DO(1), DO(2), DO(3);
#elif CLUTCH_TOTAL_COUNT > 2
#define EACH_TOTAL(DO) DO(0), DO(1), DO(2);
#elif CLUTCH_TOTAL_COUNT > 1
#define EACH_TOTAL(DO) DO(0), DO(1);
#else
#define EACH_TOTAL(DO) DO(0);
#endif
#define ROWWISE_SHAPE                                                    \
  IDX size[CLUTCH_RANK_LANES], kept[CLUTCH_OPERANDS][CLUTCH_RANK_LANES]; \
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(sizes, 0, size);              \
  CLUTCH_STRIDES(kept)
// Each operand's stride along a row.
#define ROWWISE_STEPS             \
  IDX inner[ROWWISE_INNER_LANES]; \
  CLUTCH_CONCAT(vstore, ROWWISE_INNER_LANES)(inner_strides, 0, inner);
#define CLUTCH_POSITION_VALUE CLUTCH_NO_POSITION
#define CLUTCH_SIDE_BY_SIDE (CLUTCH_TOTAL_NUMBER > 0 || CLUTCH_FETCH_IN < ROWWISE_TOTALS)
#define CLUTCH_NAMED(name) CLUTCH_CONCAT(name##_, CLUTCH_TOTAL_NUMBER)
#define CLUTCH_TOTAL_NUMBER 0
#include "common/row_total.inc"
#if CLUTCH_TOTAL_COUNT > 1
#undef CLUTCH_TOTAL_NUMBER
#define CLUTCH_TOTAL_NUMBER 1
#include "common/row_total.inc"
#endif
#if CLUTCH_TOTAL_COUNT > 2
#undef CLUTCH_TOTAL_NUMBER
#define CLUTCH_TOTAL_NUMBER 2
#include "common/row_total.inc"
#endif
#if CLUTCH_TOTAL_COUNT > 3
#undef CLUTCH_TOTAL_NUMBER
#define CLUTCH_TOTAL_NUMBER 3
#include "common/row_total.inc"
#endif

#ifndef CLUTCH_COLUMNS
#if CLUTCH_ELEMENT_COUNT > 0 && !defined(CLUTCH_TEAMS)
// Up to WIDTH elements from element j on.
static inline void row_elements_tail(const IDX* offset, const IDX* inner, IDX j, int count CLUTCH_ROW_PARAMS) {
#ifdef CLUTCH_LOAD_TAIL
  ROW_ELEMENTS(near, CLUTCH_LOAD_TAIL, STORE_FRONT)
#else
  IDX at[CLUTCH_OPERANDS][WIDTH];
  for (int k = 0; k < CLUTCH_OPERANDS; ++k)
    for (int l = 0; l < WIDTH; ++l) at[k][l] = offset[k] + (j + l) * inner[k];
  ROW_ELEMENTS(near, CLUTCH_LOAD_GATHERED, STORE_SCATTERED)
#endif
}
// Elements `j` to `m` of a row; `j` is a multiple of WIDTH.
static inline void row_elements(const IDX* offset, const IDX* inner, IDX j, IDX m CLUTCH_ROW_PARAMS) {
#ifdef CLUTCH_LOAD_VALUE
  const IDX full = m / WIDTH * WIDTH;
#if CLUTCH_HAS_SIDES(ROWWISE_TOTALS)
  for (; full - j >= CLUTCH_SIDES * WIDTH; j += CLUTCH_SIDES * WIDTH) {
    const IDX first = j;
    CLUTCH_EACH_SIDE(FETCH_ELEMENT)
    SIDES_OF_ELEMENTS(near, CLUTCH_LOAD_VALUE, STORE_ROW)
  }
#endif
  for (; j < full; j += WIDTH) {
    FETCH_ELEMENT
    ROW_ELEMENTS(near, CLUTCH_LOAD_VALUE, STORE_ROW)
  }
#endif
  for (; j < m; j += WIDTH) row_elements_tail(offset, inner, j, (int)min(m - j, (IDX)WIDTH) CLUTCH_ROW_NAMES);
}
#endif
#if CLUTCH_RESULT_COUNT > 0
static inline void row_results(const IDX* offset CLUTCH_ROW_PARAMS) {
#ifdef CLUTCH_TEAMS
  const IDX j = 0;
  CLUTCH_RESULTS(LOAD_FIRST, CLUTCH_NO_POSITION, STORE_ELEMENT)
#else
  CLUTCH_RESULTS(LOAD_SPLAT, CLUTCH_NO_POSITION, STORE_RESULT)
#endif
}
#endif

#endif  // CLUTCH_COLUMNS

#if !defined(CLUTCH_TEAMS) && !defined(CLUTCH_COLUMNS)
#ifdef CLUTCH_STEPS
#define PART_PARAM , uint part_size
#define PART_NAME , part_size
#else
#define PART_PARAM
#define PART_NAME
#endif
CLUTCH_INLINE void rowwise_body(CLUTCH_ID_PARAMS, ulong n, ulong m, ulong chunk, uint flags, int rank PART_PARAM,
                                CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS,
                                CLUTCH_CONCAT(IDX, ROWWISE_INNER_LANES) inner_strides CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS) {
  // Streaming stores take addresses of whole vectors.
  const int streaming = (flags & ROWWISE_STREAMS) && CLUTCH_OUTPUT_ADDRESSES % 64 == 0, near = m <= REDUCE_BLOCK;
  ROWWISE_SHAPE
  ROWWISE_STEPS
#if CLUTCH_KEPT < CLUTCH_TOTAL_COUNT
  V keeps[1 + CLUTCH_LATE][REDUCE_BLOCK / WIDTH];
  V *keep = keeps[0], *before_keep = keeps[CLUTCH_LATE];
#else
  V *keep = 0, *before_keep = 0;
#endif
  const int waits = CLUTCH_LATE && (flags & ROWWISE_LATE) && near;
  int late = 0;
  IDX before[CLUTCH_OPERANDS] = {0};
  A before_totals[ROWWISE_TOTALS + 1] = {0};
  before_totals[ROWWISE_TOTALS] = (A)m;
  for (ulong task = (group * items + item) * chunk; task < n; task += groups * items * chunk) {
    IDX next[CLUTCH_OPERANDS] = {0};
    add_offsets((IDX)task, rank, size, kept, 0, next);
    for (ulong row = task; row < min(task + chunk, n); ++row) {
      IDX offset[CLUTCH_OPERANDS];
      for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] = next[k], next[k] = 0;
      add_offsets((IDX)(row + 1 < n ? row + 1 : row), rank, size, kept, 0, next);
      A totals[ROWWISE_TOTALS + 1] = {0};
      totals[ROWWISE_TOTALS] = (A)m;
#define ROW_TOTAL(k) totals[k] = CLUTCH_CONCAT(row_total_, k)(offset, inner, m CLUTCH_ROW_NAMES)
      EACH_TOTAL(ROW_TOTAL)
      // Results first: elements may be written over the inputs.
#if CLUTCH_RESULT_COUNT > 0
      row_results(offset CLUTCH_ROW_NAMES);
#endif
#if CLUTCH_ELEMENT_COUNT > 0
      if (waits) {
        for (int k = 0; k < CLUTCH_OPERANDS; ++k) before[k] = offset[k];
        for (int i = 0; i < CLUTCH_TOTAL_COUNT; ++i) before_totals[i] = totals[i];
        V* swapped = keep;
        keep = before_keep, before_keep = swapped, late = 1;
      } else {
#ifdef CLUTCH_STEPS
        for (IDX part = 0; part < (IDX)m; part += part_size) {
          row_elements(offset, inner, part, part + part_size CLUTCH_ROW_NAMES);
          for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] += CLUTCH_STEPS >> k & 1 ? inner[k] : 0;
        }
#else
        row_elements(offset, inner, 0, (IDX)m CLUTCH_ROW_NAMES);
#endif
      }
#endif
    }
  }
#if CLUTCH_LATE
  for (IDX j = 0; late && j < (IDX)m; j += WIDTH) {
    const int count = (int)min((IDX)m - j, (IDX)WIDTH);
    if (count == WIDTH) {
      CLUTCH_LATE_ELEMENTS
    } else {
      CLUTCH_LATE_TAIL
    }
  }
#endif
}
#endif

// Rows: strides along a row are 0 or 1, of element outputs 1.
#ifdef CLUTCH_ENTRY_rowwise_rows
__kernel void rowwise_rows(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, ulong chunk, uint flags, int rank PART_PARAM,
                           CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS, CLUTCH_CONCAT(IDX, ROWWISE_INNER_LANES) inner_strides CLUTCH_ALL_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  rowwise_body(CLUTCH_IDS, n, m, chunk, flags, rank PART_NAME, sizes CLUTCH_STRIDE_NAMES, inner_strides CLUTCH_BUFFER_ARGUMENTS CLUTCH_ALL_ARGUMENTS);
}
#endif

// The same rows by teams of `team` items (reduce/args.h), for devices whose groups have several: neighbours load and store neighbouring elements, and no item
// has an array in memory. The items of a row hold it in their caches between its totals and its elements.
#ifdef CLUTCH_ENTRY_rowwise_groups
#ifdef CLUTCH_HELD
CLUTCH_INLINE void hold_eight(VF* values, const IDX* offset, IDX mine, int own CLUTCH_BUFFER_PARAMS) {
  if (own >= 8) {
    CLUTCH_EACH_OF_EIGHT(u) {
      const IDX j = mine + u * 16;
      values[u] = CLUTCH_HELD_ROW(CLUTCH_LOAD_ROW);
    }
  } else {
    CLUTCH_EACH_OF_EIGHT(u) {
      const IDX j = mine + u * 16;
      values[u] = 0;
      if (u < own) values[u] = CLUTCH_HELD_ROW(CLUTCH_LOAD_ROW);
    }
  }
}
// Loads of whole chains go ahead one behind another.
CLUTCH_INLINE void hold_all(VF* values, const IDX* offset, IDX mine CLUTCH_BUFFER_PARAMS) {
  CLUTCH_EACH_HELD(u) {
    const IDX j = mine + u * 16;
    values[u] = CLUTCH_HELD_ROW(CLUTCH_LOAD_ROW);
  }
}
#if CLUTCH_ELEMENT_COUNT > 0
#if CLUTCH_KEPT < CLUTCH_TOTAL_COUNT
#define HELD_ELEMENTS CLUTCH_ELEMENTS_KEPT
#else
#define HELD_ELEMENTS CLUTCH_ELEMENTS
#endif
CLUTCH_INLINE void eight_elements(const IDX* offset CLUTCH_ROW_PARAMS) {
#ifdef CLUTCH_STORES_LATER
  // Outputs may lie over inputs, so no load goes ahead of a store: eight elements are made before the first of them is stored.
  if (own >= 8) {
    VF made[CLUTCH_ELEMENT_COUNT][8];
#define MAKE_ELEMENT(k, dtype, x) made[k][u] = x;
    CLUTCH_EACH_OF_EIGHT(u) {
      const IDX j = mine + u * 16;
      HELD_ELEMENTS(CLUTCH_LOAD_VALUE, CLUTCH_NO_POSITION, MAKE_ELEMENT)
    }
#define STORE_MADE(k, dtype) STORE_ELEMENT(k, dtype, made[k][u])
    CLUTCH_EACH_OF_EIGHT(u) {
      const IDX j = mine + u * 16;
      CLUTCH_STORES_LATER(STORE_MADE)
    }
    return;
  }
#endif
  CLUTCH_EACH_OF_EIGHT(u) {
    const IDX j = mine + u * 16;
    if (u < own) {
      HELD_ELEMENTS(CLUTCH_LOAD_VALUE, CLUTCH_NO_POSITION, STORE_ELEMENT)
    }
  }
}
#endif
#endif
__kernel void rowwise_groups(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, uint team, int rank,
                             CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS CLUTCH_ALL_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  __local A parts[REDUCE_GROUP_ITEMS], results[REDUCE_BLOCK];
  const uint item = (uint)get_local_id(0), items = (uint)get_local_size(0), teams = items / team, of = item / team, p = item % team;
  ROWWISE_SHAPE
  CLUTCH_SHIFT_BUFFERS
  // A row's items, and rows of a group at a time.
  const int shared = m > REDUCE_BLOCK;
  const uint member = shared ? item : p, members = shared ? items : team, rows = shared ? 1 : teams;
  for (ulong first = get_group_id(0) * rows; first < n; first += get_num_groups(0) * rows) {
    const ulong row = shared ? first : first + of;
    const int there = row < n;
    IDX offset[CLUTCH_OPERANDS] = {0};
    if (there) add_offsets_unrolled((IDX)row, rank, size, kept, 0, offset);
    A totals[ROWWISE_TOTALS + 1] = {0};
    totals[ROWWISE_TOTALS] = (A)m;
#ifdef CLUTCH_HELD
    const int chain = (int)(p / 16) * CLUTCH_CHAIN + (shared ? (int)of * REDUCE_BLOCK : 0), stop = min((int)m, chain + CLUTCH_CHAIN);
    const int mine = chain + (int)(p % 16), own = there && mine < stop ? (stop - mine + 15) / 16 : 0, most = (min((int)m, CLUTCH_CHAIN) + 15) / 16;
    VF values[CLUTCH_HELD];
#define HOLD_EIGHT(first) hold_eight(values + first, offset, mine + first * 16, own - first CLUTCH_BUFFER_NAMES);
    if (own >= CLUTCH_HELD) {
      hold_all(values, offset, mine CLUTCH_BUFFER_NAMES);
    } else {
      CLUTCH_BY_EIGHTS(HOLD_EIGHT)
    }
#endif
#define TEAM_TOTAL(k) totals[k] = CLUTCH_CONCAT(team_total_, k)(parts, results, offset, m, there, p, of, team, teams CLUTCH_ROW_NAMES)
    EACH_TOTAL(TEAM_TOTAL)
    // Results first: elements may be written over the inputs, which all totals have read behind a barrier.
#if CLUTCH_RESULT_COUNT > 0
    if (there && member == 0) row_results(offset CLUTCH_ROW_NAMES);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#endif
#if CLUTCH_ELEMENT_COUNT > 0 && defined(CLUTCH_HELD)
#define EIGHT_ELEMENTS(first) eight_elements(offset CLUTCH_EIGHT_NAMES(first));
    CLUTCH_BY_EIGHTS(EIGHT_ELEMENTS)
#elif CLUTCH_ELEMENT_COUNT > 0
    for (IDX j = (IDX)member; there && j < (IDX)m; j += (IDX)members) {
      CLUTCH_ELEMENTS(CLUTCH_LOAD_ROW, CLUTCH_NO_POSITION, STORE_ELEMENT)
    }
#endif
  }
}
#endif

// Any stride along a row, by groups as those of reduce_column_groups: 8 items share a row, item q of them elements q, q + 8, ...; neighbours have neighbouring
// rows or, with `along`, neighbouring elements.
#ifdef CLUTCH_ENTRY_rowwise_column_groups
__kernel void rowwise_column_groups(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, uint along, int rank,
                                    CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS,
                                    CLUTCH_CONCAT(IDX, ROWWISE_INNER_LANES) inner_strides CLUTCH_ALL_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  __local A parts[2 * REDUCE_GROUP_ITEMS];
  REDUCE_SHARED_PLACE
  ROWWISE_SHAPE
  ROWWISE_STEPS
  CLUTCH_SHIFT_BUFFERS
  uint turn = 0;
  for (ulong begin = get_group_id(0) * width; begin < n; begin += get_num_groups(0) * width) {
    const ulong row = begin + c;
    const int there = row < n;
    IDX offset[CLUTCH_OPERANDS] = {0};
    if (there) add_offsets_unrolled((IDX)row, rank, size, kept, 0, offset);
    A totals[ROWWISE_TOTALS + 1] = {0};
    totals[ROWWISE_TOTALS] = (A)m;
#define SHARED_TOTAL(k) totals[k] = CLUTCH_CONCAT(shared_total_, k)(parts, &turn, offset, m, there, q, item, part, part_step CLUTCH_ROW_NAMES)
    EACH_TOTAL(SHARED_TOTAL)
    // Results first, as above.
#if CLUTCH_RESULT_COUNT > 0
    if (there && q == 0) row_results(offset CLUTCH_ROW_NAMES);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#endif
#if CLUTCH_ELEMENT_COUNT > 0
    for (IDX j = (IDX)q; there && j < (IDX)m; j += REDUCE_COLUMN_ITEMS) {
      CLUTCH_ELEMENTS(CLUTCH_LOAD_VALUE, CLUTCH_NO_POSITION, STORE_ELEMENT)
    }
#endif
  }
}
#endif

// Rows of up to ROWWISE_ITEM_ELEMENTS elements at any stride, each held by an item: one input is read once. Neighbours have neighbouring rows. With
// CLUTCH_ALONG rows are behind one another in memory, so items load and store them together, through local memory: element c of row r is number r * pitch + c,
// an odd pitch.
#ifdef CLUTCH_ENTRY_rowwise_items
#if CLUTCH_KEPT < CLUTCH_TOTAL_COUNT
#define ITEM_ELEMENTS CLUTCH_ELEMENTS_KEPT
#else
#define ITEM_ELEMENTS CLUTCH_ELEMENTS
#endif
CLUTCH_INLINE void totals_of_item(A* totals, const IDX* offset, ulong m, const IDX* inner, VF* values CLUTCH_BUFFER_PARAMS CLUTCH_ALL_PARAMS) {
  totals[ROWWISE_TOTALS] = (A)m;
#define ITEM_TOTAL(k) totals[k] = CLUTCH_CONCAT(item_total_, k)(offset, m CLUTCH_ROW_NAMES)
  EACH_TOTAL(ITEM_TOTAL)
}
#if CLUTCH_ALONG
// Elements of `rows` rows from row `first` on, as number e of them, element c of row r.
#define EACH_OF_TILE                                                              \
  for (uint e = item, r = item / (uint)m, c = item % (uint)m; e < rows * (uint)m; \
       e += items, c += items % (uint)m, r += items / (uint)m + (c >= (uint)m), c -= c >= (uint)m ? (uint)m : 0)
#define KEEP_IN_TILE(k, dtype, x) tile[item * pitch + u] = x;
#define STORE_OF_TILE(k, dtype) CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), (IDX)(first + r) * kept[k][0] + j * inner[k], tile[r * pitch + c]);
#endif
__kernel void rowwise_items(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, int rank, CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS,
                            CLUTCH_CONCAT(IDX, ROWWISE_INNER_LANES) inner_strides CLUTCH_ALL_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  ROWWISE_SHAPE
  ROWWISE_STEPS
  CLUTCH_SHIFT_BUFFERS
#if CLUTCH_ALONG
  __local VF tile[ROWWISE_ALONG_ITEMS * (CLUTCH_HELD + 1)];
  const uint item = (uint)get_local_id(0), items = (uint)get_local_size(0), pitch = (uint)m | 1;
  for (ulong first = get_group_id(0) * items; first < n; first += get_num_groups(0) * items) {
    const uint rows = (uint)min((ulong)items, n - first);
    EACH_OF_TILE {
      const IDX j = (IDX)c;
      IDX offset[CLUTCH_OPERANDS];
      CLUTCH_UNROLL_ITEMS for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] = (IDX)(first + r) * kept[k][0];
      tile[r * pitch + c] = CLUTCH_HELD_ROW(CLUTCH_LOAD_ROW);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < rows) {
      IDX offset[CLUTCH_OPERANDS];
      CLUTCH_UNROLL_ITEMS for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] = (IDX)(first + item) * kept[k][0];
      VF values[CLUTCH_HELD];
      CLUTCH_EACH_ELEMENT(u) values[u] = tile[item * pitch + u];
      A totals[ROWWISE_TOTALS + 1] = {0};
      totals_of_item(totals, offset, m, inner, values CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES);
#if CLUTCH_RESULT_COUNT > 0
      row_results(offset CLUTCH_ROW_NAMES);
#endif
      CLUTCH_EACH_ELEMENT(u) {
        const IDX j = u;
        ITEM_ELEMENTS(CLUTCH_LOAD_VALUE, CLUTCH_NO_POSITION, KEEP_IN_TILE)
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);  // results read what elements may be written over
    EACH_OF_TILE {
      const IDX j = (IDX)c;
      CLUTCH_STORES_LATER(STORE_OF_TILE)
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // the tile is written again
  }
#else
  for (ulong row = get_global_id(0); row < n; row += get_global_size(0)) {
    IDX offset[CLUTCH_OPERANDS] = {0};
    add_offsets_unrolled((IDX)row, rank, size, kept, 0, offset);
    VF values[CLUTCH_HELD];
    CLUTCH_EACH_ELEMENT(u) {
      const IDX j = u;
      values[u] = CLUTCH_HELD_ROW(CLUTCH_LOAD_ROW);
    }
    A totals[ROWWISE_TOTALS + 1] = {0};
    totals_of_item(totals, offset, m, inner, values CLUTCH_BUFFER_NAMES CLUTCH_ALL_NAMES);
#if CLUTCH_RESULT_COUNT > 0
    row_results(offset CLUTCH_ROW_NAMES);
#endif
#if CLUTCH_ELEMENT_COUNT > 0
    CLUTCH_EACH_ELEMENT(u) {
      const IDX j = u;
      ITEM_ELEMENTS(CLUTCH_LOAD_VALUE, CLUTCH_NO_POSITION, STORE_ELEMENT)
    }
#endif
  }
#endif
}
#endif

// The reference: any stride along a row.
#ifdef CLUTCH_ENTRY_rowwise_strided
__kernel void rowwise_strided(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, ulong chunk, uint streaming, int rank,
                              CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS, CLUTCH_CONCAT(IDX, ROWWISE_INNER_LANES) inner_strides CLUTCH_ALL_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  rowwise_body(CLUTCH_IDS, n, m, chunk, 0, rank, sizes CLUTCH_STRIDE_NAMES, inner_strides CLUTCH_BUFFER_ARGUMENTS CLUTCH_ALL_ARGUMENTS);
}
#endif
#ifdef CLUTCH_ENTRY_rowwise_columns
#if CLUTCH_KEPT < CLUTCH_TOTAL_COUNT
#define COLUMN_ELEMENTS CLUTCH_ELEMENTS_KEPT(LOAD_NEAR, CLUTCH_NO_POSITION, STORE_LANES)
#else
#define COLUMN_ELEMENTS CLUTCH_ELEMENTS(LOAD_NEAR, CLUTCH_NO_POSITION, STORE_LANES)
#endif
__kernel void rowwise_columns(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, ulong chunk, int rank,
                              CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS, CLUTCH_CONCAT(IDX, ROWWISE_INNER_LANES) inner_strides CLUTCH_ALL_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  const ulong group = get_group_id(0), groups = get_num_groups(0), item = get_local_id(0), items = get_local_size(0);
  IDX across[CLUTCH_OPERANDS];
  ROWWISE_SHAPE
  ROWWISE_STEPS
  for (int k = 0; k < CLUTCH_OPERANDS; ++k) across[k] = kept[k][0];
  CLUTCH_SHIFT_BUFFERS
  V acc[CLUTCH_PARTIALS * ROWWISE_ABREAST], all_totals[ROWWISE_ABREAST][ROWWISE_TOTALS + 1];
#if CLUTCH_KEPT < CLUTCH_TOTAL_COUNT || defined(CLUTCH_HELD)
  V keep[ROWWISE_KEPT];
#else
  V* keep = 0;
#endif
  const ulong columns = (ulong)size[0], panels = rowwise_panels(columns, WIDTH, m), tasks = n / columns * panels;
  const int most = (int)rowwise_abreast(m);
  for (ulong task = (group * items + item) * chunk; task < tasks; task += groups * items * chunk)
    for (ulong one = task; one < min(task + chunk, tasks); ++one) {
      const ulong outer = one / panels, wanted = (one - outer * panels) * (ulong)(most * WIDTH);
      // Whole vectors, or the columns behind them as lanes of a vector that has columns before them, whose elements may be written by now.
      const int whole = wanted < columns / WIDTH * WIDTH, abreast = whole ? (int)min((columns - wanted) / WIDTH, (ulong)most) : 1;
      const ulong column = whole ? wanted : columns - WIDTH;
      const int left_out = whole ? 0 : WIDTH - (int)(columns % WIDTH);
      IDX offset[CLUTCH_OPERANDS] = {0}, row[CLUTCH_OPERANDS];
      add_offsets((IDX)(outer * columns + column), rank, size, kept, 0, offset);
      for (int v = 0; v < abreast; ++v) all_totals[v][ROWWISE_TOTALS] = (V)(A)m;
#ifdef CLUTCH_HELD
      for (int k = 0; k < CLUTCH_OPERANDS; ++k) row[k] = offset[k];
      for (int j = 0; j < (int)m; ++j) {
        for (int v = 0; v < abreast; ++v) keep[j * abreast + v] = CLUTCH_HELD_ROW(LOAD_LANES);
        for (int k = 0; k < CLUTCH_OPERANDS; ++k) row[k] += inner[k];
      }
#endif
#define COLUMNS_TOTAL(k) CLUTCH_CONCAT(columns_total_, k)(offset, inner, (int)m CLUTCH_COLUMN_NAMES)
      EACH_TOTAL(COLUMNS_TOTAL)
      for (int k = 0; k < CLUTCH_OPERANDS; ++k) row[k] = offset[k];
        // Results first: elements may be written over the inputs.
#if CLUTCH_RESULT_COUNT > 0
      for (int v = 0; v < abreast; ++v) {
        const V* totals = all_totals[v];
        CLUTCH_RESULTS(LOAD_LANES, CLUTCH_NO_POSITION, STORE_LANES)
      }
#endif
#if CLUTCH_ELEMENT_COUNT > 0
      // Compilers take what is of totals alone out of these loops: out of that of a panel, as its vectors are as many as a constant says.
      if (abreast == ROWWISE_ABREAST) {
        for (int j = 0; j < (int)m; ++j) {
#pragma unroll
          for (int v = 0; v < ROWWISE_ABREAST; ++v) {
            const V* totals = all_totals[v];
            COLUMN_ELEMENTS
          }
          for (int k = 0; k < CLUTCH_OPERANDS; ++k) row[k] += inner[k];
        }
      } else {
        for (int v = 0; v < abreast; ++v) {
          const V* totals = all_totals[v];
          for (int k = 0; k < CLUTCH_OPERANDS; ++k) row[k] = offset[k];
          for (int j = 0; j < (int)m; ++j) {
            COLUMN_ELEMENTS
            for (int k = 0; k < CLUTCH_OPERANDS; ++k) row[k] += inner[k];
          }
        }
      }
#endif
    }
}
#endif
