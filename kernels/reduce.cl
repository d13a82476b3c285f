// SPDX-License-Identifier: Apache-2.0
// reduce: a traced function of strided operands, reduced over some dimensions.
// The elements of a result are taken in row-major order and combine in the order of common/reduce_order.clh; another launch reduces the results of blocks. So
// bits depend neither on the device nor on the layout.
// Ownership: an item takes `chunk` whole blocks at a time, without local memory. reduce_groups: a team of items takes a block, or, if CLUTCH_FINAL, a row of
// one block, and a group a longer row; local memory of REDUCE_GROUP_ITEMS + REDUCE_BLOCK accumulators. reduce_column_groups: a group takes blocks of
// neighbouring results; local memory of 2 REDUCE_GROUP_ITEMS accumulators. reduce_buffered: the item's buffer holds a block, or one and a panel
// (REDUCE_MOST_ACROSS), or, if CLUTCH_STRIPS, a chain of each lane. Needs: what common/reduce_order.clh needs; CLUTCH_OP (common/reductions.h); A_NAME, the
// accumulator's dtype (f32, f64, i64, i32, bool), and A_IS_...; CLUTCH_ABREAST; CLUTCH_FINAL (1: apply CLUTCH_AFTER and store the result); and from
// expression.clh: CLUTCH_EXPRESSION and, if CLUTCH_FINAL, CLUTCH_AFTER, with their parameters; reduce_buffered: CLUTCH_ACROSS and CLUTCH_STRIPS, 0 or 1;
// reduce_columns, reduce_groups, reduce_column_groups: CLUTCH_SEVERAL, 0 or 1; reduce_rows: CLUTCH_SHORT, 0 or 1. Operand b0 is the output, inputs follow, then
// positions, which have strides and no memory; its strides over the kept dimensions are s0, the inputs' are s1,
// ...; the inputs' strides over the reduced dimensions are r1, ...
#include "common/expr.clh"
#include "common/launch.clh"
#include "common/reduce_order.clh"
#include "reduce/args.h"

#if !defined(CLUTCH_OPERANDS) || !defined(CLUTCH_OP) || !defined(A_NAME) || !defined(IDX) || !defined(CLUTCH_RANK_LANES) || !defined(CLUTCH_FINAL) || \
    !defined(CLUTCH_ABREAST)
#error "CLUTCH_OPERANDS, CLUTCH_OP, A_NAME, IDX, CLUTCH_RANK_LANES, CLUTCH_FINAL and CLUTCH_ABREAST are not defined"
#endif

#include "expression.clh"

#define CLUTCH_NAMED(name) name
#define CLUTCH_ROW_PARAMS CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS
#define CLUTCH_ROW_NAMES CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES
#if (defined(CLUTCH_ENTRY_reduce_groups) || defined(CLUTCH_ENTRY_reduce_column_groups)) && CLUTCH_SEVERAL
// The place of element j is divided into places along each reduced dimension.
#define REDUCE_DIVIDES
#undef CLUTCH_ROW_PARAMS
#undef CLUTCH_ROW_NAMES
#define CLUTCH_ROW_PARAMS                                                               \
  , int reduced_rank, const IDX *reduced_size, const IDX *reciprocal, const IDX *shift, \
      IDX(*reduced)[CLUTCH_RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS
#define CLUTCH_ROW_NAMES , reduced_rank, reduced_size, reciprocal, shift, reduced CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES
#define CLUTCH_ROW_VALUE CLUTCH_EXPRESSION
#define CLUTCH_PLACE_VALUE                                                         \
  IDX here[CLUTCH_OPERANDS];                                                       \
  _Pragma("unroll") for (int k = 1; k < CLUTCH_OPERANDS; ++k) here[k] = offset[k]; \
  add_offsets_by_reciprocals(j, reduced_rank, reduced_size, reciprocal, shift, reduced, 1, here);
#define CLUTCH_LOAD_VALUE(k, dtype) CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), here[k])
#define CLUTCH_POSITION_VALUE(k) ((VL)(long)here[k])
#elif defined(CLUTCH_ENTRY_reduce_rows) || defined(CLUTCH_ENTRY_reduce_groups)
#define CLUTCH_ROW_VALUE CLUTCH_EXPRESSION
#define CLUTCH_LOAD_VALUE CLUTCH_LOAD_ROW
#define CLUTCH_LOAD_TAIL CLUTCH_LOAD_SOME
#define CLUTCH_POSITION_VALUE CLUTCH_POSITION_ROW
#define CLUTCH_KEEP_VALUE
#define CLUTCH_FETCH_VALUE
#define CLUTCH_FETCH_TAIL
#define CLUTCH_SIDE_BY_SIDE 0
#elif defined(CLUTCH_ENTRY_reduce_column_groups)
#undef CLUTCH_ROW_PARAMS
#undef CLUTCH_ROW_NAMES
#define CLUTCH_ROW_PARAMS , const IDX* step CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS
#define CLUTCH_ROW_NAMES , step CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES
#define CLUTCH_ROW_VALUE CLUTCH_EXPRESSION
#define CLUTCH_LOAD_VALUE(k, dtype) CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), offset[k] + j * step[k])
#define CLUTCH_POSITION_VALUE(k) ((VL)(long)(offset[k] + j * step[k]))
#endif
#if defined(CLUTCH_ENTRY_reduce_groups) || defined(CLUTCH_ENTRY_reduce_column_groups)
#include "common/reduce_team.inc"
#else
#include "common/reduce_block.inc"
#endif

// Stores a result, or that of a block: the accumulator, or CLUTCH_AFTER of it.
#if CLUTCH_FINAL
#define LOAD_TOTAL(k, dtype) total
#define STORE_TOTAL(k, dtype, x) CLUTCH_CONCAT(store_, dtype)(b0, offset, CLUTCH_FIRST_LANE(x));
static inline void store_result(__global uchar* b0, IDX offset, A result CLUTCH_AFTER_PARAMS) {
#if CLUTCH_OP == CLUTCH_REDUCE_ANY || CLUTCH_OP == CLUTCH_REDUCE_ALL
  V total = result ? (V)CLUTCH_TRUE : (V)0;
#else
  V total = (V)result;
#endif
  CLUTCH_AFTER(LOAD_TOTAL, CLUTCH_NO_POSITION, STORE_TOTAL)
}
#define STORE_RESULT(offset, block, blocks, number, result) store_result(b0, offset, result CLUTCH_AFTER_NAMES)
// A whole vector of results that lie side by side.
#if CLUTCH_OP != CLUTCH_REDUCE_ANY && CLUTCH_OP != CLUTCH_REDUCE_ALL
#define STORE_TOTALS(k, dtype, x) CLUTCH_CONCAT(storev_, dtype)(b0, offset, x);
static inline void store_results(__global uchar* b0, IDX offset, V total CLUTCH_AFTER_PARAMS) { CLUTCH_AFTER(LOAD_TOTAL, CLUTCH_NO_POSITION, STORE_TOTALS) }
#define STORE_RESULTS(offset, results) store_results(b0, offset, results CLUTCH_AFTER_NAMES)
#endif
#else
#define STORE_RESULT(offset, block, blocks, number, result) ((__global A*)b0)[reduce_partial(number, blocks, block)] = (result)
#endif

#define REDUCE_SHAPE                                                     \
  IDX size[CLUTCH_RANK_LANES], kept[CLUTCH_OPERANDS][CLUTCH_RANK_LANES]; \
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(sizes, 0, size);              \
  CLUTCH_STRIDES(kept)
// Each operand's stride along the reduced elements.
#define REDUCE_STEPS(step)                                            \
  IDX spread[CLUTCH_RANK_LANES], step[CLUTCH_OPERANDS];               \
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(inner_strides, 0, spread); \
  step[0] = 0;                                                        \
  for (int k = 0; k + 1 < CLUTCH_OPERANDS; ++k) step[k + 1] = spread[k];
#define REDUCE_TASKS                                                                              \
  ulong blocks = reduce_blocks(m), tasks = n * blocks;                                            \
  for (ulong task = (group * items + item) * chunk; task < tasks; task += groups * items * chunk) \
    for (ulong one = task; one < min(task + chunk, tasks); ++one)

#if (defined(CLUTCH_ENTRY_reduce_rows) && CLUTCH_SHORT) || (defined(CLUTCH_ENTRY_reduce_buffered) && CLUTCH_ACROSS)
#define T A
#define R V
#define LANES WIDTH
#define CLUTCH_MEM __private
#include "common/transpose.clh"
#endif

// Rows: the reduced elements have one stride, 0 or 1, in each input.
#ifdef CLUTCH_ENTRY_reduce_rows
#if CLUTCH_SHORT
// Rows of at most 16 elements, WIDTH neighbours at a time: each is loaded by vectors, which read behind its end, and transposed in registers, so that lanes are
// rows.
static inline V short_rows(const IDX* first, IDX kept[][CLUTCH_RANK_LANES], int m CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  V acc[16];
  for (int k = 0; k < 16; ++k) acc[k] = (V)(A)CLUTCH_IDENTITY;
  for (int j = 0; j < m; j += WIDTH) {
    V x[WIDTH];
#pragma unroll
    for (int l = 0; l < WIDTH; ++l) {
      IDX offset[CLUTCH_OPERANDS];
      for (int k = 1; k < CLUTCH_OPERANDS; ++k) offset[k] = first[k] + l * kept[k][0];
      V value;
      CLUTCH_EXPRESSION(CLUTCH_LOAD_ROW, CLUTCH_POSITION_ROW, CLUTCH_SET_VALUE)
      x[l] = value;
    }
    transpose(x);
#pragma unroll
    for (int l = 0; l < WIDTH; ++l)
      if (j + l < m) acc[j + l] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[j + l], x[l]);
  }
  for (int h = used_partials(m) / 2; h > 0; h /= 2)
    for (int k = 0; k < h; ++k) acc[k] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[k], acc[k + h]);
#if CLUTCH_FOLDS_APART
  acc[0] = acc[0] != acc[0] ? (V)CLUTCH_A_NAN : acc[0];
#endif
  return acc[0];
}
// Whether the vectors of WIDTH rows end within the operands' memory, whose last elements are those of the last row, at `last`.
static inline int near_rows(const IDX* offset, const IDX* last, IDX kept[][CLUTCH_RANK_LANES], int m) {
  const IDX length = (m + WIDTH - 1) / WIDTH * WIDTH;
  int near = 1;
  for (int k = 1; k < CLUTCH_OPERANDS; ++k) near = near && (CLUTCH_IS_SPLAT(k) || offset[k] + (WIDTH - 1) * kept[k][0] + length <= last[k] + m);
  return near;
}
#endif
__kernel void reduce_rows(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, ulong chunk, int rank, CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS,
                          CLUTCH_SHAPE_VECTOR inner_strides CLUTCH_EXTRA_KERNEL_PARAMS CLUTCH_AFTER_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  ulong group = get_group_id(0), groups = get_num_groups(0), item = get_local_id(0), items = get_local_size(0);
  REDUCE_SHAPE
  REDUCE_STEPS(inner)
  CLUTCH_SHIFT_BUFFERS
#if CLUTCH_SHORT
  IDX last[CLUTCH_OPERANDS] = {0};
  add_offsets((IDX)(n - 1), rank, size, kept, 0, last);
  for (ulong task = (group * items + item) * chunk; task < n; task += groups * items * chunk) {
    for (ulong one = task, end = min(task + chunk, n); one < end;) {
      IDX offset[CLUTCH_OPERANDS] = {0};
      add_offsets((IDX)one, rank, size, kept, 0, offset);
      if (end - one >= WIDTH && size[0] - (IDX)one % size[0] >= WIDTH && near_rows(offset, last, kept, (int)m)) {
        const V results = short_rows(offset, kept, (int)m CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
#ifdef STORE_RESULTS
        if (kept[0][0] == 1) {
          STORE_RESULTS(offset[0], results);
          one += WIDTH;
          continue;
        }
#endif
        A each[WIDTH];
        CLUTCH_V_SPILL(results, each);
        for (int l = 0; l < WIDTH; ++l, ++one) STORE_RESULT(offset[0] + l * kept[0][0], 0, 1, one, each[l]);
      } else {
        A result = rows_block(offset, inner, 0, (IDX)m CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
        STORE_RESULT(offset[0], 0, 1, one, result);
        ++one;
      }
    }
  }
#else
  REDUCE_TASKS {
    ulong number = one / blocks, block = one - number * blocks;
    IDX offset[CLUTCH_OPERANDS] = {0};
    add_offsets((IDX)number, rank, size, kept, 0, offset);
    A result = rows_block(offset, inner, (IDX)(block * REDUCE_BLOCK), (IDX)min((block + 1) * REDUCE_BLOCK, m) CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
    STORE_RESULT(offset[0], block, blocks, number, result);
  }
#endif
}
#endif

#define REDUCED_SHAPE                                                               \
  IDX reduced_size[CLUTCH_RANK_LANES], reduced[CLUTCH_OPERANDS][CLUTCH_RANK_LANES]; \
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(reduced_sizes, 0, reduced_size);         \
  CLUTCH_REDUCED(reduced)

// How an entry gets to the elements: by the strides of all reduced dimensions (CLUTCH_SEVERAL), or by one stride of each input.
#ifdef REDUCE_DIVIDES
#define REDUCE_WAY_PARAMS int reduced_rank, CLUTCH_SHAPE_VECTOR reduced_sizes, CLUTCH_SHAPE_VECTOR reciprocals, CLUTCH_SHAPE_VECTOR shifts CLUTCH_REDUCED_PARAMS
#define REDUCED_SHAPE_DIVIDED                                           \
  REDUCED_SHAPE                                                         \
  IDX reciprocal[CLUTCH_RANK_LANES], shift[CLUTCH_RANK_LANES];          \
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(reciprocals, 0, reciprocal); \
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(shifts, 0, shift);
#elif CLUTCH_SEVERAL
#define REDUCE_WAY_PARAMS int reduced_rank, CLUTCH_SHAPE_VECTOR reduced_sizes CLUTCH_REDUCED_PARAMS
#else
#define REDUCE_WAY_PARAMS CLUTCH_SHAPE_VECTOR inner_strides
#endif

// The same rows, or (CLUTCH_SEVERAL) elements at any strides, by teams of `team` items, for devices whose groups have several: neighbours load neighbouring
// elements, and no item has an array in memory.
#ifdef CLUTCH_ENTRY_reduce_groups
#if CLUTCH_SEVERAL
#define REDUCE_TEAM_WAY , REDUCE_WAY_PARAMS
#else
#define REDUCE_TEAM_WAY
#endif
__kernel void reduce_groups(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, uint team, int rank,
                            CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS REDUCE_TEAM_WAY CLUTCH_EXTRA_KERNEL_PARAMS CLUTCH_AFTER_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  const uint item = (uint)get_local_id(0), teams = (uint)get_local_size(0) / team, of = item / team, p = item % team;
  REDUCE_SHAPE
#if CLUTCH_SEVERAL
  REDUCED_SHAPE_DIVIDED
#endif
  CLUTCH_SHIFT_BUFFERS
#if CLUTCH_FINAL
  __local A parts[REDUCE_GROUP_ITEMS], results[REDUCE_BLOCK];
  const int shared = m > REDUCE_BLOCK;
  const uint rows = shared ? 1 : teams;
  for (ulong first = get_group_id(0) * rows; first < n; first += get_num_groups(0) * rows) {
    const ulong row = shared ? first : first + of;
    const int there = row < n;
    IDX offset[CLUTCH_OPERANDS] = {0};
    if (there) add_offsets_unrolled((IDX)row, rank, size, kept, 0, offset);
    const A result = team_total(parts, results, offset, m, there, p, of, team, teams CLUTCH_ROW_NAMES);
    if (there && (shared ? item : p) == 0) STORE_RESULT(offset[0], 0, 1, row, result);
  }
#else
  __local A parts[REDUCE_GROUP_ITEMS];
  const ulong blocks = reduce_blocks(m), tasks = n * blocks;
  for (ulong first = get_group_id(0) * teams; first < tasks; first += get_num_groups(0) * teams) {
    const ulong one = first + of;
    const int there = one < tasks;
    ulong number = 0, block = 0;
    IDX offset[CLUTCH_OPERANDS] = {0};
    A acc = (A)CLUTCH_IDENTITY;
    if (there) {
      // A 64-bit division takes long: none for one row.
      number = n == 1 ? 0 : one / blocks, block = one - number * blocks;
      add_offsets_unrolled((IDX)number, rank, size, kept, 0, offset);
      acc = team_partial(offset, (IDX)(block * REDUCE_BLOCK), (IDX)min((block + 1) * REDUCE_BLOCK, m), p CLUTCH_ROW_NAMES);
    }
    acc = team_tree(parts + of * team, acc, p, team);
    if (there && p == 0) STORE_RESULT(offset[0], block, blocks, number, acc);
  }
#endif
}
#endif

// Any strides by groups: 8 items share a result, item q of them the partials q, q + 8, ..., and neighbours have neighbouring results, so that rows of memory
// are read in long pieces; or, with `along`, neighbouring elements (REDUCE_SHARED_PLACE).
// Local memory: a sum of each item, in two halves in turn, as items still read one while others write the next.
#ifdef CLUTCH_ENTRY_reduce_column_groups
__kernel void reduce_column_groups(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, uint along, int rank,
                                   CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS, REDUCE_WAY_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS CLUTCH_AFTER_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  __local A parts[2 * REDUCE_GROUP_ITEMS];
  REDUCE_SHARED_PLACE
  REDUCE_SHAPE
#if CLUTCH_SEVERAL
  REDUCED_SHAPE_DIVIDED
#else
  REDUCE_STEPS(step)
#endif
  CLUTCH_SHIFT_BUFFERS
  const ulong blocks = reduce_blocks(m), tasks = reduce_panels(n, width) * blocks;
  uint half_of_parts = 0;
  for (ulong task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
    const ulong panel = blocks == 1 ? task : task / blocks, block = task - panel * blocks, result = panel * width + c;
    const int there = result < n;
    IDX offset[CLUTCH_OPERANDS] = {0};
    A acc = (A)CLUTCH_IDENTITY;
    if (there) {
      add_offsets_unrolled((IDX)result, rank, size, kept, 0, offset);
      acc = shared_partial(offset, (IDX)(block * REDUCE_BLOCK), (IDX)min((block + 1) * REDUCE_BLOCK, m), q CLUTCH_ROW_NAMES);
    }
    acc = shared_tree(parts + half_of_parts, acc, item, part, part_step);
    half_of_parts = REDUCE_GROUP_ITEMS - half_of_parts;
    if (there && q == 0) STORE_RESULT(offset[0], block, blocks, result, acc);
  }
}
#endif

#if (defined(CLUTCH_ENTRY_reduce_strided) && defined(CLUTCH_IS_CPU)) || defined(CLUTCH_ENTRY_reduce_buffered) || \
    (defined(CLUTCH_ENTRY_reduce_columns) && CLUTCH_SEVERAL)
// Places are counted up: divisions would take several times longer than the elements.
// The place of an element, and each input's offset there.
static inline void go_to(IDX* place, IDX* here, IDX element, const IDX* offset, int reduced_rank, const IDX* reduced_size, IDX reduced[][CLUTCH_RANK_LANES]) {
  for (int k = 1; k < CLUTCH_OPERANDS; ++k) here[k] = offset[k];
  for (int d = 0; d < reduced_rank; ++d) {
    const IDX next = element / reduced_size[d];
    place[d] = element - next * reduced_size[d];
    for (int k = 1; k < CLUTCH_OPERANDS; ++k) here[k] += place[d] * reduced[k][d];
    element = next;
  }
}
// Goes `count` elements on along dimension d, which has as many left.
static inline void go_on(IDX* place, IDX* here, int d, IDX count, int reduced_rank, const IDX* reduced_size, IDX reduced[][CLUTCH_RANK_LANES]) {
  place[d] += count;
  for (int k = 1; k < CLUTCH_OPERANDS; ++k) here[k] += count * reduced[k][d];
  for (; d + 1 < reduced_rank && place[d] == reduced_size[d]; ++d) {
    place[d] = 0;
    ++place[d + 1];
    for (int k = 1; k < CLUTCH_OPERANDS; ++k) here[k] += reduced[k][d + 1] - reduced_size[d] * reduced[k][d];
  }
}
#endif

// The reference: any strides of the reduced dimensions, too.
#ifdef CLUTCH_ENTRY_reduce_strided
#ifdef CLUTCH_IS_CPU
#define LOAD_RUN(k, dtype)                                                           \
  (reduced[k][0] == 1   ? CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), here[k]) \
   : reduced[k][0] == 0 ? CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), here[k]) \
                        : CLUTCH_CONCAT(gather_, dtype)(CLUTCH_CONCAT(b, k), at[k], WIDTH))
static inline V strided_some(IDX* place, IDX* here, int count, int reduced_rank, const IDX* reduced_size,
                             IDX reduced[][CLUTCH_RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX at[CLUTCH_OPERANDS][WIDTH];
  for (int l = 0; l < count;) {
    const int run = (int)min((IDX)(count - l), (IDX)(reduced_size[0] - place[0]));
    for (int k = 1; k < CLUTCH_OPERANDS; ++k)
      for (int t = 0; t < run; ++t) at[k][l + t] = here[k] + t * reduced[k][0];
    l += run;
    go_on(place, here, 0, run, reduced_rank, reduced_size, reduced);
  }
  for (int l = count; l < WIDTH; ++l)
    for (int k = 1; k < CLUTCH_OPERANDS; ++k) at[k][l] = 0;
  V value;
  CLUTCH_EXPRESSION(CLUTCH_LOAD_GATHERED, CLUTCH_POSITION_GATHERED, CLUTCH_SET_VALUE)
  return CLUTCH_V_MASK(CLUTCH_LANE_BELOW(count)) ? value : (V)(A)CLUTCH_IDENTITY;
}
static inline A strided_block(const IDX* offset, IDX begin, IDX end, int reduced_rank, const IDX* reduced_size,
                              IDX reduced[][CLUTCH_RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  V acc[CLUTCH_VECTORS];
  for (int k = 0; k < CLUTCH_VECTORS; ++k) acc[k] = (V)(A)CLUTCH_IDENTITY;
  IDX here[CLUTCH_OPERANDS], place[CLUTCH_RANK_LANES];
  go_to(place, here, begin, offset, reduced_rank, reduced_size, reduced);
  for (IDX j = begin; j < end; j += WIDTH) {
    const int count = (int)min(end - j, (IDX)WIDTH);
    V value;
    if (count == WIDTH && place[0] + WIDTH <= reduced_size[0]) {
      IDX at[CLUTCH_OPERANDS][WIDTH];
      for (int k = 1; k < CLUTCH_OPERANDS; ++k)
        for (int l = 0; l < WIDTH; ++l) at[k][l] = here[k] + l * reduced[k][0];
      CLUTCH_EXPRESSION(LOAD_RUN, CLUTCH_POSITION_GATHERED, CLUTCH_SET_VALUE)
      go_on(place, here, 0, WIDTH, reduced_rank, reduced_size, reduced);
    } else {
      value = strided_some(place, here, count, reduced_rank, reduced_size, reduced CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
    }
    const int v = (int)(j - begin) / CLUTCH_CHAIN * CLUTCH_CHAIN_VECTORS + (int)(j - begin) % 16 / WIDTH;
    acc[v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[v], value);
  }
  return tree_of(acc);
}
#endif
__kernel void reduce_strided(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, ulong chunk, int rank,
                             CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS, int reduced_rank,
                             CLUTCH_SHAPE_VECTOR reduced_sizes CLUTCH_REDUCED_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS CLUTCH_AFTER_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  ulong group = get_group_id(0), groups = get_num_groups(0), item = get_local_id(0), items = get_local_size(0);
  REDUCE_SHAPE
  REDUCED_SHAPE
  CLUTCH_SHIFT_BUFFERS
  REDUCE_TASKS {
    ulong number = one / blocks, block = one - number * blocks;
    IDX offset[CLUTCH_OPERANDS] = {0}, begin = (IDX)(block * REDUCE_BLOCK), end = (IDX)min((block + 1) * REDUCE_BLOCK, m);
    add_offsets((IDX)number, rank, size, kept, 0, offset);
#ifdef CLUTCH_IS_CPU
    A result = strided_block(offset, begin, end, reduced_rank, reduced_size, reduced CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
#else
    V acc[CLUTCH_VECTORS];
    for (int k = 0; k < CLUTCH_VECTORS; ++k) acc[k] = (V)(A)CLUTCH_IDENTITY;
    for (IDX j = begin; j < end; j += WIDTH) {
      int count = (int)min(end - j, (IDX)WIDTH);
      IDX at[CLUTCH_OPERANDS][WIDTH];
      for (int l = 0; l < WIDTH; ++l) {
        IDX here[CLUTCH_OPERANDS];
        for (int k = 0; k < CLUTCH_OPERANDS; ++k) here[k] = offset[k];
        if (l < count) add_offsets(j + l, reduced_rank, reduced_size, reduced, 1, here);
        for (int k = 1; k < CLUTCH_OPERANDS; ++k) at[k][l] = here[k];
      }
      V value;
      CLUTCH_EXPRESSION(CLUTCH_LOAD_GATHERED, CLUTCH_POSITION_GATHERED, CLUTCH_SET_VALUE)
      value = CLUTCH_V_MASK(CLUTCH_LANE_BELOW(count)) ? value : (V)(A)CLUTCH_IDENTITY;
      int v = (int)(j - begin) / CLUTCH_CHAIN * CLUTCH_CHAIN_VECTORS + (int)(j - begin) % 16 / WIDTH;
      acc[v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[v], value);
    }
    A result = tree_of(acc);
#endif
    STORE_RESULT(offset[0], block, blocks, number, result);
  }
}
#endif

// Several strides, where an item takes whole blocks: it brings elements into their order in a buffer that stays in a core's caches. Along dimension 0 the
// inputs have stride 0 or 1, and its runs are loaded by vectors; or (CLUTCH_ACROSS) they have it along a later one, `across`, and lanes are WIDTH neighbours
// along that, whose elements (`inner` of each: those of the dimensions before it) are transposed in registers.
//
//   across = 1, WIDTH = 4             memory: a row for each place along dimension 0       buffer
//                                     a0 b0 c0 d0 ...                                      a0 a1 a2 ... b0 b1 b2 ... c0 ...
//                                     a1 b1 c1 d1 ...
#ifdef CLUTCH_ENTRY_reduce_buffered
//
// Neighbours of more than REDUCE_MOST_ACROSS elements (CLUTCH_STRIPS) go strip by strip: REDUCE_STRIPS vectors of neighbours abreast. A
// buffer for each lane holds the chain that is being filled, and the sums of the chains before it stay.
#if CLUTCH_ACROSS
#define BUFFER (REDUCE_BLOCK + WIDTH * REDUCE_MOST_ACROSS + 16)
#define ALONG across
#else
#define BUFFER (REDUCE_BLOCK + 16)
#define ALONG 0
#endif
#if WIDTH == 1
#define GET(from) (*(from))
#define PUT(to, x) *(to) = x
#else
#define GET(from) CLUTCH_CONCAT(vload, WIDTH)(0, from)
#define PUT(to, x) CLUTCH_CONCAT(vstore, WIDTH)(x, 0, to)
#endif
// Whole vectors along dimension ALONG.
#define LOAD_RUN(k, dtype) \
  (reduced[k][ALONG] ? CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), row[k]) : CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), row[k]))
#define POSITION_RUN(k) ((VL)(long)row[k] + CLUTCH_IOTA_VL * (long)reduced[k][ALONG])

// Up to WIDTH elements along dimension 0.
static inline V gathered(const IDX* here, int count, IDX reduced[][CLUTCH_RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX at[CLUTCH_OPERANDS][WIDTH];
  for (int k = 1; k < CLUTCH_OPERANDS; ++k)
    for (int l = 0; l < WIDTH; ++l) at[k][l] = l < count ? here[k] + l * reduced[k][0] : 0;
  V value;
  CLUTCH_EXPRESSION(CLUTCH_LOAD_GATHERED, CLUTCH_POSITION_GATHERED, CLUTCH_SET_VALUE)
  return value;
}
#define RUN_PARAMS IDX *place, IDX *here, int reduced_rank, const IDX *reduced_size, IDX reduced[][CLUTCH_RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS
#define RUN_NAMES place, here, reduced_rank, reduced_size, reduced CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES
// The next `count` elements, run by run. A vector that ends behind its run is overwritten by the next one.
static inline void put_runs(A* to, IDX count, RUN_PARAMS) {
  for (IDX done = 0; done < count;) {
    const IDX run = min(count - done, (IDX)(reduced_size[0] - place[0]));
#if !CLUTCH_ACROSS
    if (run >= WIDTH) {
      for (IDX t = 0; t < run; t += WIDTH) {
        const IDX from = min(t, (IDX)(run - WIDTH));
        IDX row[CLUTCH_OPERANDS];
        for (int k = 1; k < CLUTCH_OPERANDS; ++k) row[k] = here[k] + from * reduced[k][0];
        V value;
        CLUTCH_EXPRESSION(LOAD_RUN, POSITION_RUN, CLUTCH_SET_VALUE)
        PUT(to + done + from, value);
      }
      done += run;
      go_on(place, here, 0, run, reduced_rank, reduced_size, reduced);
      continue;
    }
#endif
    const IDX some = min(run, (IDX)WIDTH);
    PUT(to + done, gathered(here, (int)some, reduced CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES));
    done += some;
    go_on(place, here, 0, some, reduced_rank, reduced_size, reduced);
  }
}
#if CLUTCH_ACROSS
// Rows of memory that are read so many steps later come near: a core guesses no addresses so far from one another.
#define ROWS_AHEAD 64
#define FETCH_ROW(k, bytes) CLUTCH_PREFETCH(CLUTCH_CONCAT(b, k) + ((long)row[k] + (long)ROWS_AHEAD * reduced[k][0]) * bytes);
// WIDTH elements of each of WIDTH neighbours, of places from `from` on along dimension 0; a vector for each neighbour.
static inline void load_square(V* x, const IDX* here, IDX from, int across, IDX reduced[][CLUTCH_RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) {
    IDX row[CLUTCH_OPERANDS];
    for (int k = 1; k < CLUTCH_OPERANDS; ++k) row[k] = here[k] + (from + i) * reduced[k][0];
    CLUTCH_FETCH_INPUTS(FETCH_ROW)
    V value;
    CLUTCH_EXPRESSION(LOAD_RUN, POSITION_RUN, CLUTCH_SET_VALUE)
    x[i] = value;
  }
  transpose(x);
}
#if !CLUTCH_STRIPS
// The elements of WIDTH neighbours along `across`, from `here` on, of which the first `skipped` are left out.
static inline void put_panel(A* to, int skipped, int across, IDX inner, RUN_PARAMS) {
  const IDX length = reduced_size[0];
  for (IDX done = 0; done < inner; done += length) {
    for (IDX j = 0; j < length; j += WIDTH) {
      const IDX from = min(j, (IDX)(length - WIDTH));
      V x[WIDTH];
      load_square(x, here, from, across, reduced CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
#pragma unroll
      for (int l = 0; l < WIDTH; ++l)
        if (l >= skipped) PUT(to + (l - skipped) * inner + done + from, x[l]);
    }
    go_on(place, here, 0, length, across, reduced_size, reduced);
  }
}
#endif
#endif
#if CLUTCH_STRIPS
// A lane's elements of a chain that is being filled, the last vector of which ends behind it.
#define STRIP (CLUTCH_CHAIN + 16)
#define STRIPS (REDUCE_STRIPS * WIDTH)
// Adds `count` elements of a chain to its sums; behind them is place for a whole vector.
static inline void add_chain(V* sums, A* chain, uint count) {
  for (uint j = count; j < (count + 15) / 16 * 16; ++j) chain[j] = (A)CLUTCH_IDENTITY;
  for (uint j = 0; j < count; j += 16) {
#pragma unroll
    for (int v = 0; v < CLUTCH_CHAIN_VECTORS; ++v) sums[v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), sums[v], GET(chain + j + v * WIDTH));
  }
}
// What is known of a block so far: the sums of whole chains, and elements of one.
typedef struct {
  V sums[CLUTCH_VECTORS];
  A chain[STRIP];
} reduce_part_t;
static inline void clear(reduce_part_t* part) {
  for (int v = 0; v < CLUTCH_VECTORS; ++v) part->sums[v] = (V)(A)CLUTCH_IDENTITY;
}
// The block of which `begun` has `count` elements and `rest` the others: those of the chain from `count` on, and the sums of the chains behind it.
static inline A joined(reduce_part_t* begun, const reduce_part_t* rest, uint count) {
  uint chain = count / CLUTCH_CHAIN;
  const uint filled = count % CLUTCH_CHAIN;
  if (filled > 0) {
    for (uint j = filled; j < CLUTCH_CHAIN; ++j) begun->chain[j] = rest->chain[j];
    add_chain(begun->sums + chain++ * CLUTCH_CHAIN_VECTORS, begun->chain, CLUTCH_CHAIN);
  }
  for (uint v = chain * CLUTCH_CHAIN_VECTORS; v < CLUTCH_VECTORS; ++v) begun->sums[v] = rest->sums[v];
  return tree_of(begun->sums);
}
#else
// The block's elements in the order of common/reduce_order.clh.
static inline A total_of(A* from, int count) {
  V acc[CLUTCH_VECTORS];
  for (int k = 0; k < CLUTCH_VECTORS; ++k) acc[k] = (V)(A)CLUTCH_IDENTITY;
  if (count == REDUCE_BLOCK) {
    for (int j = 0; j < CLUTCH_CHAIN; j += 16) {
#pragma unroll
      for (int v = 0; v < CLUTCH_VECTORS; ++v)
        acc[v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[v], GET(from + v / CLUTCH_CHAIN_VECTORS * CLUTCH_CHAIN + j + v % CLUTCH_CHAIN_VECTORS * WIDTH));
    }
    return tree_of(acc);
  }
  // The result's last block: nothing is behind it.
  const int whole = (count + 15) / 16 * 16;
  for (int j = count; j < whole; ++j) from[j] = (A)CLUTCH_IDENTITY;
  for (int j = 0; j < whole; j += WIDTH) {
    const int v = j / CLUTCH_CHAIN * CLUTCH_CHAIN_VECTORS + j % 16 / WIDTH;
    acc[v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[v], GET(from + j));
  }
  return tree_of(acc);
}
#endif
__kernel void reduce_buffered(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, ulong chunk, int rank,
                              CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS, int reduced_rank, CLUTCH_SHAPE_VECTOR reduced_sizes CLUTCH_REDUCED_PARAMS,
                              int across CLUTCH_EXTRA_KERNEL_PARAMS CLUTCH_AFTER_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  ulong group = get_group_id(0), groups = get_num_groups(0), item = get_local_id(0), items = get_local_size(0);
  REDUCE_SHAPE
  REDUCED_SHAPE
  CLUTCH_SHIFT_BUFFERS
#if CLUTCH_ACROSS
  IDX inner = 1;
  for (int d = 0; d < across; ++d) inner *= reduced_size[d];
#endif
  const ulong blocks = reduce_blocks(m);
#if CLUTCH_STRIPS
  // An item takes panels of STRIPS neighbours, and the blocks that begin in them; the last of these goes on in the panel behind.
  const IDX side = reduced_size[across];
  const ulong panels_of_side = reduce_panels(side, STRIPS), panels = m / inner / side * panels_of_side;
  const ulong each = max((ulong)1, chunk * REDUCE_BLOCK / (STRIPS * (ulong)inner)), shares = reduce_panels(panels, each);
  // Blocks that begin in lanes, what lanes have of those before, and what a panel has of its last block.
  reduce_part_t begun[STRIPS], ahead[STRIPS], carried;
  for (ulong task = group * items + item; task < n * shares; task += groups * items) {
    const ulong number = task / shares, first = (task - number * shares) * each, last = min(first + each, panels);
    IDX offset[CLUTCH_OPERANDS] = {0}, here[CLUTCH_OPERANDS], place[CLUTCH_RANK_LANES];
    add_offsets((IDX)number, rank, size, kept, 0, offset);
    for (ulong panel = first; panel < last; ++panel) {
      const ulong sides = panel / panels_of_side;
      const IDX beside = (IDX)(panel - sides * panels_of_side) * STRIPS;
      // The last panel of a side has lanes of the one before besides.
      const int skipped = (int)max((IDX)0, (IDX)(beside + STRIPS - side));
      IDX element = ((IDX)sides * side + beside) * inner;
      go_to(place, here, element, offset, reduced_rank, reduced_size, reduced);
      for (int k = 1; k < CLUTCH_OPERANDS; ++k) here[k] -= skipped * reduced[k][across];
      // By lane: the place in its block of the next element; the block; elements of its first block that are of the neighbour before.
      uint at[STRIPS], before[STRIPS];
      ulong block[STRIPS];
      for (int l = skipped; l < STRIPS; ++l, element += inner) {
        block[l] = (ulong)element / REDUCE_BLOCK;
        before[l] = at[l] = (uint)((ulong)element - block[l] * REDUCE_BLOCK);
        clear(&begun[l]);
      }
      if (panel > first && at[skipped] > 0) {
        begun[skipped] = carried;
        before[skipped] = 0;
      }
      for (IDX done = 0; done < inner; done += reduced_size[0]) {
        int step = 0;
        for (IDX j = 0; j < reduced_size[0]; j += step) {
          // Places that fill no whole step go first; the next step puts its elements upon those behind them.
          step = j == 0 && reduced_size[0] % WIDTH ? (int)(reduced_size[0] % WIDTH) : WIDTH;
          for (int first_lane = 0; first_lane < STRIPS; first_lane += WIDTH) {
            IDX square[CLUTCH_OPERANDS];
            for (int k = 1; k < CLUTCH_OPERANDS; ++k) square[k] = here[k] + first_lane * reduced[k][across];
            V x[WIDTH];
            load_square(x, square, j, across, reduced CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
#pragma unroll
            for (int l = 0; l < WIDTH; ++l)
              if (first_lane + l >= skipped) PUT(begun[first_lane + l].chain + at[first_lane + l] % CLUTCH_CHAIN, x[l]);
          }
          for (int l = skipped; l < STRIPS; ++l) {
            reduce_part_t* part = &begun[l];
            const uint chain = at[l] / CLUTCH_CHAIN;
            at[l] += step;
            if (at[l] / CLUTCH_CHAIN == chain) continue;
            if (before[l] > chain * CLUTCH_CHAIN)
              for (uint i = before[l] % CLUTCH_CHAIN; i < CLUTCH_CHAIN; ++i) ahead[l].chain[i] = part->chain[i];
            else
              add_chain(part->sums + chain * CLUTCH_CHAIN_VECTORS, part->chain, CLUTCH_CHAIN);
            PUT(part->chain, GET(part->chain + CLUTCH_CHAIN));
            if (at[l] < REDUCE_BLOCK) continue;
            if (before[l] > 0) {
              for (int v = 0; v < CLUTCH_VECTORS; ++v) ahead[l].sums[v] = part->sums[v];
            } else {
              const A result = tree_of(part->sums);
              STORE_RESULT(offset[0], block[l], blocks, number, result);
            }
            clear(part);
            before[l] = 0, at[l] -= REDUCE_BLOCK, ++block[l];
          }
        }
        go_on(place, here, 0, reduced_size[0], across, reduced_size, reduced);
      }
      // Blocks that go on in the neighbour behind, and the result's last one, which ends.
      for (int l = skipped; l < STRIPS; ++l) {
        uint count = at[l];
        if (count == 0) continue;
        A result;
        if (l + 1 < STRIPS) {
          result = joined(&begun[l], &ahead[l + 1], count);
        } else if (panel + 1 == panels) {
          add_chain(begun[l].sums + count / CLUTCH_CHAIN * CLUTCH_CHAIN_VECTORS, begun[l].chain, count % CLUTCH_CHAIN);
          result = tree_of(begun[l].sums);
        } else if (panel + 1 < last) {
          carried = begun[l];
          continue;
        } else {
          go_to(place, here, element, offset, reduced_rank, reduced_size, reduced);
          while (count < REDUCE_BLOCK) {
            const uint filled = count % CLUTCH_CHAIN, some = CLUTCH_CHAIN - filled;
            put_runs(begun[l].chain + filled, (IDX)some, RUN_NAMES);
            add_chain(begun[l].sums + count / CLUTCH_CHAIN * CLUTCH_CHAIN_VECTORS, begun[l].chain, CLUTCH_CHAIN);
            count += some;
          }
          result = tree_of(begun[l].sums);
        }
        STORE_RESULT(offset[0], block[l], blocks, number, result);
      }
    }
  }
#else
  A buffer[BUFFER];
  const ulong tasks = n * blocks;
  for (ulong task = (group * items + item) * chunk; task < tasks; task += groups * items * chunk) {
    // Blocks of one result after another.
    for (ulong one = task, end = min(task + chunk, tasks); one < end;) {
      const ulong number = one / blocks, first = one - number * blocks, last = min(blocks, first + (end - one));
      const IDX stop = (IDX)min(last * REDUCE_BLOCK, m);
      IDX offset[CLUTCH_OPERANDS] = {0}, here[CLUTCH_OPERANDS], place[CLUTCH_RANK_LANES], at = (IDX)(first * REDUCE_BLOCK);
      add_offsets((IDX)number, rank, size, kept, 0, offset);
      go_to(place, here, at, offset, reduced_rank, reduced_size, reduced);
      // The buffer has `filled` elements from `begin` on; `at` is the first one that it lacks.
      int begin = 0, filled = 0;
      for (ulong block = first; block < last; ++block) {
        const int count = (int)min((IDX)REDUCE_BLOCK, (IDX)(stop - (IDX)(block * REDUCE_BLOCK)));
#if CLUTCH_ACROSS
        while (filled < count) {
          for (int j = 0; j < filled && begin > 0; ++j) buffer[j] = buffer[begin + j];
          begin = 0;
          // A panel begins with a whole neighbour; what is before it, and what is behind the last whole panel, goes by runs.
          int ahead = 0, whole = 1;
          for (int d = 0; d < across; ++d) whole = whole && place[d] == 0;
          const IDX left = reduced_size[across] - place[across];
          if (!whole || stop - at < inner) {
            IDX before = inner - at % inner, some = min(min(before, (IDX)(stop - at)), (IDX)REDUCE_BLOCK);
            put_runs(buffer + filled, some, RUN_NAMES);
            filled += (int)some, at += some;
            continue;
          }
          if (left < WIDTH) ahead = (int)(WIDTH - left);
          IDX panel_here[CLUTCH_OPERANDS], panel_place[CLUTCH_RANK_LANES] = {0};
          for (int k = 1; k < CLUTCH_OPERANDS; ++k) panel_here[k] = here[k] - ahead * reduced[k][across];
          put_panel(buffer + filled, ahead, across, inner, panel_place, panel_here, reduced_rank, reduced_size, reduced CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
          const IDX neighbours = min((IDX)(WIDTH - ahead), (IDX)((stop - at) / inner));
          filled += (int)(neighbours * inner), at += neighbours * inner;
          go_on(place, here, across, neighbours, reduced_rank, reduced_size, reduced);
        }
#else
        put_runs(buffer, (IDX)count, RUN_NAMES);
        filled = count;
#endif
        const A result = total_of(buffer + begin, count);
        begin += count, filled -= count;
#if !CLUTCH_ACROSS
        begin = 0;
#endif
        STORE_RESULT(offset[0], block, blocks, number, result);
      }
      one += last - first;
    }
  }
#endif
}
#endif

// Columns: the innermost kept dimension has stride 1 or 0 in each input, the reduced elements have one stride, or (CLUTCH_SEVERAL) several. Lanes are columns,
// PANEL of them to a task, so that rows of memory are read in long pieces; each vector has its 64 partials (4 KiB for a vector
// of 16 floats).
#ifdef CLUTCH_ENTRY_reduce_columns
#define PANEL (CLUTCH_ABREAST * WIDTH)
// The first column of vector v. The last vector of several strides takes columns of the one before it besides.
#if CLUTCH_SEVERAL
#define COLUMN_OF(v) min((v)*WIDTH, width - WIDTH)
#else
#define COLUMN_OF(v) ((v)*WIDTH)
#endif
#define LOAD_COLUMN(k, dtype) \
  (across[k] ? CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), row[k] + COLUMN_OF(v)) : CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), row[k]))
#define POSITION_COLUMN(k) ((VL)(long)row[k] + ((VL)(long)COLUMN_OF(v) + CLUTCH_IOTA_VL) * (long)across[k])
static inline V columns_tail(const IDX* row, const IDX* across, int first, int count CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX at[CLUTCH_OPERANDS][WIDTH];
  for (int k = 1; k < CLUTCH_OPERANDS; ++k)
    for (int l = 0; l < WIDTH; ++l) at[k][l] = row[k] + (first + l) * across[k];
  V value;
  CLUTCH_EXPRESSION(CLUTCH_LOAD_GATHERED, CLUTCH_POSITION_GATHERED, CLUTCH_SET_VALUE)
  return value;
}
__kernel void reduce_columns(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, ulong m, ulong chunk, int rank,
                             CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS, REDUCE_WAY_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS CLUTCH_AFTER_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  ulong group = get_group_id(0), groups = get_num_groups(0), item = get_local_id(0), items = get_local_size(0);
  REDUCE_SHAPE
#if CLUTCH_SEVERAL
  REDUCED_SHAPE
#else
  REDUCE_STEPS(step)
#endif
  IDX across[CLUTCH_OPERANDS];
  for (int k = 0; k < CLUTCH_OPERANDS; ++k) across[k] = kept[k][0];
  CLUTCH_SHIFT_BUFFERS
  ulong columns = (ulong)size[0], panels = reduce_panels(columns, PANEL), blocks = reduce_blocks(m), tasks = reduce_panel_tasks(n, columns, PANEL, blocks);
  for (ulong task = group * items + item; task < tasks; task += groups * items) {
    ulong number = task / blocks, block = task - number * blocks, outer = number / panels, column = (number - outer * panels) * PANEL;
    int width = (int)min(columns - column, (ulong)PANEL), whole = width / WIDTH;
    IDX offset[CLUTCH_OPERANDS] = {0}, row[CLUTCH_OPERANDS], begin = (IDX)(block * REDUCE_BLOCK), end = (IDX)min((block + 1) * REDUCE_BLOCK, m);
    add_offsets((IDX)(outer * columns + column), rank, size, kept, 0, offset);
    const int used = used_partials((int)(end - begin));
    V acc[CLUTCH_PARTIALS][CLUTCH_ABREAST];
    for (int k = 0; k < used; ++k)
      for (int v = 0; v < CLUTCH_ABREAST; ++v) acc[k][v] = (V)(A)CLUTCH_IDENTITY;
    const int missing = (WIDTH - width % WIDTH) % WIDTH;
    IDX filled = end;
#if CLUTCH_SEVERAL
    IDX place[CLUTCH_RANK_LANES];
    go_to(place, row, begin, offset, reduced_rank, reduced_size, reduced);
#else
    // Elements that fill up the last vector of a row are of later rows, up to those without so many behind them.
    for (int k = 1; k < CLUTCH_OPERANDS; ++k) {
      row[k] = offset[k] + begin * step[k];
      if (across[k] && missing) filled = step[k] > 0 ? min(filled, end - (missing + step[k] - 1) / step[k]) : begin;
    }
#endif
    for (IDX j = begin; j < end; ++j) {
      int p = (int)(j - begin) / CLUTCH_CHAIN * 16 + (int)(j - begin) % 16;
#pragma unroll 4
      for (int v = 0; v < whole + (missing > 0 && j < filled); ++v) {
        V value;
        CLUTCH_EXPRESSION(LOAD_COLUMN, POSITION_COLUMN, CLUTCH_SET_VALUE)
        acc[p][v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[p][v], value);
      }
#if CLUTCH_SEVERAL
      go_on(place, row, 0, 1, reduced_rank, reduced_size, reduced);
#else
      if (missing > 0 && j >= filled) {
        V value = columns_tail(row, across, whole * WIDTH, width - whole * WIDTH CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
        acc[p][whole] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[p][whole], value);
      }
      for (int k = 1; k < CLUTCH_OPERANDS; ++k) row[k] += step[k];
#endif
    }
    for (int h = used / 2; h > 0; h /= 2)
      for (int k = 0; k < h; ++k)
        for (int v = 0; v < CLUTCH_ABREAST; ++v) acc[k][v] = CLUTCH_COMBINE(CLUTCH_LANES_OF(A), acc[k][v], acc[k + h][v]);
    int l = 0;
#ifdef STORE_RESULTS
    for (int v = 0; v < whole && across[0] == 1; ++v, l += WIDTH) {
#if CLUTCH_FOLDS_APART
      acc[0][v] = acc[0][v] != acc[0][v] ? (V)CLUTCH_A_NAN : acc[0][v];
#endif
      STORE_RESULTS(offset[0] + l, acc[0][v]);
    }
#endif
    A results[PANEL];
    for (int v = l / WIDTH; v < CLUTCH_ABREAST; ++v) CLUTCH_V_SPILL(acc[0][v], results + v * WIDTH);
    for (; l < width; ++l) {
      A result = results[CLUTCH_SEVERAL && l >= whole * WIDTH ? whole * WIDTH + l - (width - WIDTH) : l];
#if CLUTCH_FOLDS_APART
      if (result != result) result = CLUTCH_A_NAN;
#endif
      ulong result_number = outer * columns + column + l;
      STORE_RESULT(offset[0] + l * across[0], block, blocks, result_number, result);
    }
  }
}
#endif
