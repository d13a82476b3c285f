// SPDX-License-Identifier: Apache-2.0
// map: a traced function of broadcast, strided operands, applied to each element in one launch.
// Ownership: a group owns tiles of CLUTCH_TILE consecutive elements; its items take WIDTH of them in turn. Each path computes on
// WIDTH lanes; they are gathered and scattered if fewer elements are left or the stride is not 1. No local memory.
// Needs: what common/expr.clh needs; CLUTCH_OPERANDS; IDX; CLUTCH_TILE; CLUTCH_RANK_LANES (4, 8 or 16; of the shape vectors); and from
// expression.clh, which the host prints (host/expr/print.cpp): CLUTCH_EXPRESSION(LOAD, POSITION, STORE) and the macros of
// parameters BUFFER (the tensors), STRIDE (their strides) and EXTRA (params and captured tensors).
// map_strided: CLUTCH_BUFFERED, 0 or 1, and then CLUTCH_FETCH_INPUTS(FETCH), FETCH(k, bytes of an element) for each input.
// May have: CLUTCH_RANDOM (the function draws random numbers); CLUTCH_SIDES (vectors that an item computes side by side, where groups have one), with
// CLUTCH_EXPRESSION_SIDES(LOAD, POSITION, STORE), the expression for all of them.
// Operands are b0, b1, ...: outputs, inputs, then positions, which have strides and no memory.
#include "common/expr.clh"
#include "common/launch.clh"
#include "common/shape.h"
#include "common/shared.h"

#if !defined(CLUTCH_OPERANDS) || !defined(IDX) || !defined(CLUTCH_TILE) || !defined(CLUTCH_RANK_LANES)
#error "CLUTCH_OPERANDS, IDX, CLUTCH_TILE and CLUTCH_RANK_LANES are not defined"
#endif

#include "common/over_size.clh"
#ifdef CLUTCH_RANDOM
#include "common/expr_random.clh"
#define CLUTCH_DRAW CLUTCH_DRAW_ANY
#endif
#include "expression.clh"

#define CLUTCH_SHAPE_VECTOR CLUTCH_CONCAT(IDX, CLUTCH_RANK_LANES)
#define CLUTCH_SHAPE_DIVISORS CLUTCH_CONCAT(ulong, CLUTCH_RANK_LANES)  // of the sizes, but for the last one
// A loop over dimensions; by constants where an array whose elements none names would be in each item's memory.
#ifdef CLUTCH_IS_CPU
#define DIMENSIONS(d, first, end) for (int d = first; d < (end); ++d)
#else
#define DIMENSIONS(d, first, end) _Pragma("unroll") for (int d = first; d < CLUTCH_RANK_LANES; ++d) if (d < (end))
#endif
#define STREAM_OR_STORE(store, dtype, base, i, x) \
  if (streaming) CLUTCH_CONCAT(streamv_, dtype)   \
  (base, i, x);                                   \
  else CLUTCH_CONCAT(store, dtype)(base, i, x)

// The items' vectors of the elements from `begin` to before `tail`, whose number i has type T.
#ifdef CLUTCH_SIDES
#define WALK_VECTORS(T, LOAD, POSITION, STORE)                                  \
  T whole = begin;                                                              \
  for (; tail - whole >= CLUTCH_SIDES * WIDTH; whole += CLUTCH_SIDES * WIDTH) { \
    CLUTCH_EXPRESSION_SIDES(LOAD, POSITION, STORE)                              \
  }                                                                             \
  for (T i = whole; i < tail; i += WIDTH) {                                     \
    CLUTCH_EXPRESSION(LOAD, POSITION, STORE)                                    \
  }
#ifdef CLUTCH_ENTRY_map_contiguous
#define CLUTCH_SIDE_PLACE(u) const ulong i = whole + u * WIDTH;
#else
#define CLUTCH_SIDE_PLACE(u) const IDX i = whole + u * WIDTH;
#endif
#else
#define WALK_VECTORS(T, LOAD, POSITION, STORE)                           \
  for (T i = begin + (T)item * WIDTH; i < tail; i += (T)items * WIDTH) { \
    CLUTCH_EXPRESSION(LOAD, POSITION, STORE)                             \
  }
#endif
// Lanes at offsets at[operand][lane]; the first `count` exist.
#define LOAD_GATHERED(k, dtype) CLUTCH_CONCAT(gather_, dtype)(CLUTCH_CONCAT(b, k), at[k], count)
#define STORE_SCATTERED(k, dtype, x) CLUTCH_CONCAT(scatter_, dtype)(CLUTCH_CONCAT(b, k), at[k], count, x)
#define POSITION_GATHERED(k) clutch_positions(at[k])

// Contiguous: every operand, and at most one position, is element i at offset i.
#ifdef CLUTCH_ENTRY_map_contiguous
#define LOAD_FULL(k, dtype) CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), i)
#define STORE_FULL(k, dtype, x) STREAM_OR_STORE(storev_, dtype, CLUTCH_CONCAT(b, k), i, x)
#define LOAD_WHOLE(k, dtype) CLUTCH_CONCAT(loada_, dtype)(CLUTCH_CONCAT(b, k), i)
#define STORE_WHOLE(k, dtype, x) STREAM_OR_STORE(storea_, dtype, CLUTCH_CONCAT(b, k), i, x)
#define POSITION_FULL(k) ((VL)(long)i + CLUTCH_IOTA_VL)
#define CLUTCH_FIRST_POSITION(k) ((long)i)
#define LOAD_SOME(k, dtype) CLUTCH_CONCAT(some_, dtype)(CLUTCH_CONCAT(b, k), (IDX)i, count)
#define STORE_FRONT(k, dtype, x) CLUTCH_CONCAT(front_, dtype)(CLUTCH_CONCAT(b, k), (IDX)i, count, x)
static inline void map_contiguous_tail(ulong i, int count CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
#ifdef CLUTCH_IS_CPU
  CLUTCH_EXPRESSION(LOAD_SOME, POSITION_FULL, STORE_FRONT)
#else
  IDX at[CLUTCH_OPERANDS][WIDTH];
  for (int l = 0; l < WIDTH; ++l)
    for (int k = 0; k < CLUTCH_OPERANDS; ++k) at[k][l] = (IDX)i + l;
  CLUTCH_EXPRESSION(LOAD_GATHERED, POSITION_GATHERED, STORE_SCATTERED)
#endif
}
#ifdef CLUTCH_RANDOM
// Vectors of a chunk of random numbers, each of which draws another word of the same blocks, are taken one after another.
#undef CLUTCH_DRAW
#define CLUTCH_DRAW CLUTCH_DRAW_NEAR
#define CHUNK_VECTORS (RANDOM_CHUNK_BLOCKS / WIDTH)
CLUTCH_INLINE void map_contiguous_body(CLUTCH_ID_PARAMS, ulong n, uint wants_streaming CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  int streaming = wants_streaming && CLUTCH_OUTPUT_ADDRESSES % 64 == 0;
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    const ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
    for (ulong unit = item; unit < CLUTCH_TILE / RANDOM_CHUNK_WORDS * CHUNK_VECTORS; unit += items) {
      CLUTCH_NEAR_DRAWS
      ulong i = begin + unit / CHUNK_VECTORS * RANDOM_CHUNK_WORDS + unit % CHUNK_VECTORS * WIDTH;
      for (int word = 0; word < RANDOM_CHUNK_WORDS / RANDOM_CHUNK_BLOCKS && i < end; ++word, i += RANDOM_CHUNK_BLOCKS) {
        if (i + WIDTH > end) {
          map_contiguous_tail(i, (int)(end - i) CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
        } else {
          CLUTCH_EXPRESSION(LOAD_FULL, POSITION_FULL, STORE_FULL)
        }
      }
    }
  }
}
#else
CLUTCH_INLINE void map_contiguous_body(CLUTCH_ID_PARAMS, ulong n, uint wants_streaming CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  // Streaming stores take addresses of whole vectors.
  int streaming = wants_streaming && CLUTCH_OUTPUT_ADDRESSES % 64 == 0;
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n), tail = begin + (end - begin) / WIDTH * WIDTH;
#ifdef CLUTCH_HAS_WHOLE
    if (CLUTCH_WHOLE(CLUTCH_ADDRESSES)) {
      WALK_VECTORS(ulong, LOAD_WHOLE, POSITION_FULL, STORE_WHOLE)
    } else
#endif
    {
      WALK_VECTORS(ulong, LOAD_FULL, POSITION_FULL, STORE_FULL)
    }
    if (tail < end && item == 0) map_contiguous_tail(tail, (int)(end - tail) CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
  }
}
#endif

__kernel void map_contiguous(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, uint streaming CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  map_contiguous_body(CLUTCH_IDS, n, streaming CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#if defined(CLUTCH_IS_CPU) && (defined(CLUTCH_ENTRY_map_rows) || defined(CLUTCH_ENTRY_map_strided))
// On CPUs an item takes a tile, so places are counted up from its first element: divisions would take longer than short rows.
// Places of element `index` along the dimensions from `first` on, and its offsets.
static inline void place_of(IDX index, int first, int rank, const IDX* size, IDX stride[][CLUTCH_RANK_LANES], IDX* place, IDX* offset) {
  for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] = 0;
  for (int d = first; d < rank; ++d) {
    const IDX next = index / size[d];
    place[d] = index - next * size[d];
    for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] += place[d] * stride[k][d];
    index = next;
  }
}
// Goes on by one along dimension `first`, from its end to its begin and on along the next one.
static inline void next_place(int first, int rank, const IDX* size, IDX stride[][CLUTCH_RANK_LANES], IDX* place, IDX* offset) {
  for (int d = first; d < rank; ++d) {
    for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] += stride[k][d];
    if (++place[d] < size[d]) break;
    for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] -= place[d] * stride[k][d];
    place[d] = 0;
  }
}
// A walk over the group's tiles by runs along dimension 0: DO for places `begin` to before `end` of it, at the offsets `row` of its place 0. Needs what
// place_of takes, and n.
#define WALK_RUNS(DO)                                                   \
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {    \
    const ulong first = tile * CLUTCH_TILE;                             \
    ulong left = min((ulong)CLUTCH_TILE, n - first);                    \
    const IDX number = (IDX)(first / (ulong)size[0]);                   \
    IDX begin = (IDX)(first - (ulong)number * (ulong)size[0]);          \
    place_of(number, 1, rank, size, stride, place, row);                \
    for (;;) {                                                          \
      const IDX end = begin + (IDX)min((ulong)(size[0] - begin), left); \
      DO left -= (ulong)(end - begin);                                  \
      if (left == 0) break;                                             \
      begin = 0;                                                        \
      next_place(1, rank, size, stride, place, row);                    \
    }                                                                   \
  }
#endif

// Rows: the outputs' inner stride is 1, the others' are 0 or 1, the outer dimensions are anything.
#ifdef CLUTCH_ENTRY_map_rows
#define LOAD_OF_ROW(k, dtype, load) \
  (inner[k] ? CLUTCH_CONCAT(load, dtype)(CLUTCH_CONCAT(b, k), row[k] + i) : CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), row[k]))
#define LOAD_ROW(k, dtype) LOAD_OF_ROW(k, dtype, loadv_)
#define STORE_ROW(k, dtype, x) CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), row[k] + i, x)
#define LOAD_WHOLE_ROW(k, dtype) LOAD_OF_ROW(k, dtype, loada_)
#define STORE_WHOLE_ROW(k, dtype, x) CLUTCH_CONCAT(storea_, dtype)(CLUTCH_CONCAT(b, k), row[k] + i, x)
#define CLUTCH_FIRST_POSITION(k) ((long)row[k] + (inner[k] ? i : 0))
#define POSITION_ROW(k) (inner[k] ? (VL)(long)(row[k] + i) + CLUTCH_IOTA_VL : (VL)(long)row[k])
#define LOAD_SOME(k, dtype) \
  (inner[k] ? CLUTCH_CONCAT(some_, dtype)(CLUTCH_CONCAT(b, k), row[k] + i, count) : CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), row[k]))
#define STORE_FRONT(k, dtype, x) CLUTCH_CONCAT(front_, dtype)(CLUTCH_CONCAT(b, k), row[k] + i, count, x)
static inline void map_rows_tail(const IDX* row, const IDX* inner, IDX i, int count CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
#ifdef CLUTCH_IS_CPU
  CLUTCH_EXPRESSION(LOAD_SOME, POSITION_ROW, STORE_FRONT)
#else
  IDX at[CLUTCH_OPERANDS][WIDTH];
  for (int k = 0; k < CLUTCH_OPERANDS; ++k)
    for (int l = 0; l < WIDTH; ++l) at[k][l] = row[k] + (i + l) * inner[k];
  CLUTCH_EXPRESSION(LOAD_GATHERED, POSITION_GATHERED, STORE_SCATTERED)
#endif
}
CLUTCH_INLINE void map_rows_body(CLUTCH_ID_PARAMS, ulong n, int rank, CLUTCH_SHAPE_VECTOR sizes,
                                 CLUTCH_SHAPE_DIVISORS divisors CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX size[CLUTCH_RANK_LANES], stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(sizes, 0, size);
  CLUTCH_STRIDES(stride)
  IDX inner[CLUTCH_OPERANDS];
  for (int k = 0; k < CLUTCH_OPERANDS; ++k) inner[k] = stride[k][0];
#ifdef CLUTCH_IS_CPU
  IDX place[CLUTCH_RANK_LANES], row[CLUTCH_OPERANDS];
#define RUN_OF_ROW                                                                                                          \
  {                                                                                                                         \
    const IDX tail = begin + (end - begin) / WIDTH * WIDTH;                                                                 \
    WALK_VECTORS(IDX, LOAD_ROW, POSITION_ROW, STORE_ROW)                                                                    \
    if (tail < end && item == 0) map_rows_tail(row, inner, tail, (int)(end - tail) CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES); \
  }
  WALK_RUNS(RUN_OF_ROW)
#else
  ulong divisor[CLUTCH_RANK_LANES];
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(divisors, 0, divisor);
  // An item takes a vector of a row at a time; dimension 0's divisor is that of a row's vectors.
  const IDX vectors = (size[0] + WIDTH - 1) / WIDTH;
  ulong all = (ulong)vectors;
  DIMENSIONS(d, 1, rank) all *= (ulong)size[d];
  for (ulong tile = group; tile * CLUTCH_UNITS_OF_TILE(CLUTCH_TILE) < all; tile += groups) {
    const IDX first = (IDX)(tile * CLUTCH_UNITS_OF_TILE(CLUTCH_TILE));
    const int taken = (int)min(all - (ulong)first, (ulong)CLUTCH_UNITS_OF_TILE(CLUTCH_TILE));
    for (int unit = (int)item; unit < taken; unit += (int)items) {
      IDX index = vectors == 1 ? first + unit : over_size(first + unit, vectors, divisor[0]), row[CLUTCH_OPERANDS];
      const IDX i = (first + unit - index * vectors) * WIDTH;
      for (int k = 0; k < CLUTCH_OPERANDS; ++k) row[k] = 0;
      DIMENSIONS(d, 1, rank) {
        const IDX next = d + 1 < rank ? over_size(index, size[d], divisor[d]) : 0, x = index - next * size[d];
        for (int k = 0; k < CLUTCH_OPERANDS; ++k) row[k] += x * stride[k][d];
        index = next;
      }
      if (size[0] - i < WIDTH) {
        map_rows_tail(row, inner, i, (int)(size[0] - i) CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
        continue;
      }
#ifdef CLUTCH_HAS_WHOLE
      // Rows begin at multiples of a vector then.
      IDX places = 0;
      for (int k = 0; k < CLUTCH_OPERANDS; ++k) places |= row[k] * inner[k];
      if (CLUTCH_WHOLE(CLUTCH_ADDRESSES) && places % WIDTH == 0) {
        CLUTCH_EXPRESSION(LOAD_WHOLE_ROW, POSITION_ROW, STORE_WHOLE_ROW)
        continue;
      }
#endif
      CLUTCH_EXPRESSION(LOAD_ROW, POSITION_ROW, STORE_ROW)
    }
  }
#endif
}

__kernel void map_rows(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, int rank, CLUTCH_SHAPE_VECTOR sizes,
                       CLUTCH_SHAPE_DIVISORS divisors CLUTCH_STRIDE_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  map_rows_body(CLUTCH_IDS, n, rank, sizes, divisors CLUTCH_STRIDE_NAMES CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

// The reference: any strides. Offsets of WIDTH elements are counted up from those of the first one.
#ifdef CLUTCH_ENTRY_map_strided
#ifdef CLUTCH_IS_CPU
// Where dimension 0 fills vectors, the walk goes by rows: each vector has one load where its elements are adjacent or the same.
#if CLUTCH_BUFFERED
// Short rows, whose outputs go on from row to row, in pieces of several whole rows. Inputs that do not go on are brought into the item's memory first, once if
// they are the same for all rows.
#include "common/move.clh"
#define PIECE 512
#define PUT_ROW(k, bytes) \
  if (!kept[k]) clutch_bring((__global uchar*)(size_t)(buffer[k] + done * bytes), CLUTCH_CONCAT(b, k) + (long)row[k] * bytes, size[0], step[k], bytes);
#define SET_BASE(k, bytes) base[k] = flows[k] ? CLUTCH_CONCAT(b, k) + at * bytes : (__global const uchar*)(size_t)buffer[k];
#define LOAD_OF_PIECE(k, dtype) CLUTCH_CONCAT(loadv_, dtype)(base[k], i)
#define STORE_OF_PIECE(k, dtype, x) CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), (IDX)at + i, x)
#define LOAD_SOME(k, dtype) CLUTCH_CONCAT(some_, dtype)(base[k], i, count)
#define STORE_FRONT(k, dtype, x) CLUTCH_CONCAT(front_, dtype)(CLUTCH_CONCAT(b, k), place, count, x)
static inline void map_piece_tail(__global const uchar** base, IDX at, IDX i, int count CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  const IDX place = at + i;
  CLUTCH_EXPRESSION(LOAD_SOME, CLUTCH_NO_POSITION, STORE_FRONT)
}
CLUTCH_INLINE void map_strided_body(CLUTCH_ID_PARAMS, ulong n, int rank, CLUTCH_SHAPE_VECTOR sizes,
                                    CLUTCH_SHAPE_DIVISORS divisors CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX size[CLUTCH_RANK_LANES], stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES], step[CLUTCH_OPERANDS], place[CLUTCH_RANK_LANES], row[CLUTCH_OPERANDS];
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(sizes, 0, size);
  CLUTCH_STRIDES(stride)
  // Whether an operand goes on from row to row; is the same for all; is not to be brought.
  int flows[CLUTCH_OPERANDS], same[CLUTCH_OPERANDS], kept[CLUTCH_OPERANDS];
  for (int k = 0; k < CLUTCH_OPERANDS; ++k) {
    step[k] = stride[k][0], flows[k] = step[k] == 1, same[k] = 1;
    for (int d = 1; d < rank; ++d) {
      flows[k] = flows[k] && stride[k][d] == stride[k][d - 1] * size[d - 1];
      same[k] = same[k] && stride[k][d] == 0;
    }
    kept[k] = flows[k];
  }
  int brings = 1;
  uchar buffer[CLUTCH_OPERANDS][PIECE * sizeof(ulong) + sizeof(ulong8)] __attribute__((aligned(64)));
  const IDX most = PIECE / size[0] * size[0];
  const ulong ahead = CLUTCH_TILE / (ulong)most * (ulong)most;
  for (ulong tile = group; tile * ahead < n; tile += groups) {
    ulong at = tile * ahead;
    const ulong stop = min(at + ahead, n);
    place_of((IDX)(at / (ulong)size[0]), 1, rank, size, stride, place, row);
    for (; at < stop; at += (ulong)most) {
      const IDX begin = 0, end = (IDX)min((ulong)most, stop - at), tail = end / WIDTH * WIDTH;
      for (IDX done = 0; done < end && brings; done += size[0]) {
        CLUTCH_FETCH_INPUTS(PUT_ROW)
        next_place(1, rank, size, stride, place, row);
      }
      if (end == most) {
        brings = 0;
        for (int k = 0; k < CLUTCH_OPERANDS; ++k) kept[k] = flows[k] || same[k], brings |= !kept[k];
      }
      __global const uchar* base[CLUTCH_OPERANDS];
      CLUTCH_FETCH_INPUTS(SET_BASE)
      WALK_VECTORS(IDX, LOAD_OF_PIECE, CLUTCH_NO_POSITION, STORE_OF_PIECE)
      if (tail < end) map_piece_tail(base, (IDX)at, tail, (int)(end - tail) CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
    }
  }
}
#else
#define LOAD_RUN(k, dtype)                                                        \
  (step[k] == 1   ? CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), row[k] + i) \
   : step[k] == 0 ? CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), row[k])     \
                  : CLUTCH_CONCAT(gather_, dtype)(CLUTCH_CONCAT(b, k), at[k], WIDTH))
#define STORE_RUN(k, dtype, x)                    \
  if (step[k] == 1) CLUTCH_CONCAT(storev_, dtype) \
  (CLUTCH_CONCAT(b, k), row[k] + i, x);           \
  else CLUTCH_CONCAT(scatter_, dtype)(CLUTCH_CONCAT(b, k), at[k], WIDTH, x)
#define LOAD_SOME(k, dtype)                                                             \
  (step[k] == 1   ? CLUTCH_CONCAT(some_, dtype)(CLUTCH_CONCAT(b, k), row[k] + i, count) \
   : step[k] == 0 ? CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), row[k])           \
                  : CLUTCH_CONCAT(gather_, dtype)(CLUTCH_CONCAT(b, k), at[k], count))
#define STORE_FRONT(k, dtype, x)                 \
  if (step[k] == 1) CLUTCH_CONCAT(front_, dtype) \
  (CLUTCH_CONCAT(b, k), row[k] + i, count, x);   \
  else CLUTCH_CONCAT(scatter_, dtype)(CLUTCH_CONCAT(b, k), at[k], count, x)
static inline void map_strided_some(const IDX* row, const IDX* step, IDX i, int count CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX at[CLUTCH_OPERANDS][WIDTH];
  for (int k = 0; k < CLUTCH_OPERANDS; ++k)
    for (int l = 0; l < WIDTH; ++l) at[k][l] = row[k] + (i + l) * step[k];
  CLUTCH_EXPRESSION(LOAD_SOME, POSITION_GATHERED, STORE_FRONT)
}
CLUTCH_INLINE void map_strided_runs(CLUTCH_ID_PARAMS, ulong n, int rank,
                                    CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX size[CLUTCH_RANK_LANES], stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES], step[CLUTCH_OPERANDS], place[CLUTCH_RANK_LANES], row[CLUTCH_OPERANDS];
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(sizes, 0, size);
  CLUTCH_STRIDES(stride)
  for (int k = 0; k < CLUTCH_OPERANDS; ++k) step[k] = stride[k][0];
#define RUN_OF_VECTORS                                                                                  \
  {                                                                                                     \
    IDX i = begin + (IDX)item * WIDTH;                                                                  \
    for (; i + WIDTH <= end; i += (IDX)items * WIDTH) {                                                 \
      IDX at[CLUTCH_OPERANDS][WIDTH];                                                                   \
      for (int k = 0; k < CLUTCH_OPERANDS; ++k)                                                         \
        for (int l = 0; l < WIDTH; ++l) at[k][l] = row[k] + (i + l) * step[k];                          \
      CLUTCH_EXPRESSION(LOAD_RUN, POSITION_GATHERED, STORE_RUN)                                         \
    }                                                                                                   \
    if (i < end) map_strided_some(row, step, i, (int)(end - i) CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES); \
  }
  WALK_RUNS(RUN_OF_VECTORS)
}
CLUTCH_INLINE void map_strided_short(CLUTCH_ID_PARAMS, ulong n, int rank,
                                     CLUTCH_SHAPE_VECTOR sizes CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX size[CLUTCH_RANK_LANES], stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES], place[CLUTCH_RANK_LANES], offset[CLUTCH_OPERANDS];
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(sizes, 0, size);
  CLUTCH_STRIDES(stride)
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    const ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
    for (ulong i = begin + item * WIDTH; i < end; i += items * WIDTH) {
      const int count = (int)min(end - i, (ulong)WIDTH);
      if (items > 1 || i == begin) place_of((IDX)i, 0, rank, size, stride, place, offset);
      IDX at[CLUTCH_OPERANDS][WIDTH];
      for (int l = 0; l < WIDTH; ++l) {
        for (int k = 0; k < CLUTCH_OPERANDS; ++k) at[k][l] = offset[k];
        next_place(0, rank, size, stride, place, offset);
      }
      CLUTCH_EXPRESSION(LOAD_GATHERED, POSITION_GATHERED, STORE_SCATTERED)
    }
  }
}
CLUTCH_INLINE void map_strided_body(CLUTCH_ID_PARAMS, ulong n, int rank, CLUTCH_SHAPE_VECTOR sizes,
                                    CLUTCH_SHAPE_DIVISORS divisors CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  if (sizes.s0 >= WIDTH)
    map_strided_runs(group, groups, item, items, n, rank, sizes CLUTCH_STRIDE_NAMES CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
  else
    map_strided_short(group, groups, item, items, n, rank, sizes CLUTCH_STRIDE_NAMES CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
}
#endif
#else
CLUTCH_INLINE void map_strided_body(CLUTCH_ID_PARAMS, ulong n, int rank, CLUTCH_SHAPE_VECTOR sizes,
                                    CLUTCH_SHAPE_DIVISORS divisors CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX size[CLUTCH_RANK_LANES], stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(sizes, 0, size);
  CLUTCH_STRIDES(stride)
  ulong divisor[CLUTCH_RANK_LANES];
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(divisors, 0, divisor);
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
    for (ulong i = begin + item * WIDTH; i < end; i += items * WIDTH) {
      int count = (int)min(end - i, (ulong)WIDTH);
      IDX index = (IDX)i, x[CLUTCH_RANK_LANES], offset[CLUTCH_OPERANDS], at[CLUTCH_OPERANDS][WIDTH];
      for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] = 0;
      DIMENSIONS(d, 0, rank) {
        const IDX next = d + 1 < rank ? over_size(index, size[d], divisor[d]) : 0;
        x[d] = index - next * size[d];
        for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] += x[d] * stride[k][d];
        index = next;
      }
      for (int l = 0; l < WIDTH; ++l) {
        for (int k = 0; k < CLUTCH_OPERANDS; ++k) at[k][l] = offset[k], offset[k] += stride[k][0];
        ++x[0];
        DIMENSIONS(d, 0, rank - 1) {
          if (x[d] != size[d]) break;
          for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[k] += stride[k][d + 1] - size[d] * stride[k][d];
          x[d] = 0;
          ++x[d + 1];
        }
      }
      CLUTCH_EXPRESSION(LOAD_GATHERED, POSITION_GATHERED, STORE_SCATTERED)
    }
  }
}
#endif

__kernel void map_strided(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, ulong n, int rank, CLUTCH_SHAPE_VECTOR sizes,
                          CLUTCH_SHAPE_DIVISORS divisors CLUTCH_STRIDE_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  map_strided_body(CLUTCH_IDS, n, rank, sizes, divisors CLUTCH_STRIDE_NAMES CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

// Lists of tensors: each place of the lists is a row of a table, whose tensors are contiguous. A group owns chunks, of CLUTCH_TILE elements of a row.
#ifdef CLUTCH_ENTRY_map_list
#include "common/table.clh"
#include "map/args.h"
#define LOAD_OF_LIST(k, dtype, load) \
  (CLUTCH_CONCAT(CLUTCH_SPREAD_, k) ? CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), 0) : CLUTCH_CONCAT(load, dtype)(CLUTCH_CONCAT(b, k), (long)i))
#define LOAD_LISTED(k, dtype) LOAD_OF_LIST(k, dtype, loadv_)
#define STORE_LISTED(k, dtype, x) CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), (long)i, x)
#define LOAD_WHOLE_LISTED(k, dtype) LOAD_OF_LIST(k, dtype, loada_)
#define STORE_WHOLE_LISTED(k, dtype, x) CLUTCH_CONCAT(storea_, dtype)(CLUTCH_CONCAT(b, k), (long)i, x)
static inline void map_list_tail(ulong i, int count CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  const int spread[CLUTCH_OPERANDS] = CLUTCH_SPREADS;
  IDX at[CLUTCH_OPERANDS][WIDTH];
  for (int k = 0; k < CLUTCH_OPERANDS; ++k)
    for (int l = 0; l < WIDTH; ++l) at[k][l] = spread[k] ? 0 : (IDX)i + l;
  CLUTCH_EXPRESSION(LOAD_GATHERED, POSITION_GATHERED, STORE_SCATTERED)
}
CLUTCH_INLINE void map_list_body(CLUTCH_ID_PARAMS, const Table* table, __global const ulong* words, MapListArgs args CLUTCH_EXTRA_PARAMS) {
  __global const uint2* chunks = (__global const uint2*)(words + args.row_count) + args.first_chunk;
  for (ulong c = group; c < args.chunk_count; c += groups) {
    const uint2 chunk = chunks[c];
    const ulong first = (ulong)(chunk.x - args.first_row) * CLUTCH_OPERANDS;
    CLUTCH_TABLE_BUFFERS(table, first)
    const ulong begin = (ulong)chunk.y * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, words[chunk.x]), tail = begin + (end - begin) / WIDTH * WIDTH;
#ifdef CLUTCH_HAS_WHOLE
    if (CLUTCH_WHOLE(CLUTCH_LIST_ADDRESSES)) {
      WALK_VECTORS(ulong, LOAD_WHOLE_LISTED, POSITION_GATHERED, STORE_WHOLE_LISTED)
    } else
#endif
    {
      WALK_VECTORS(ulong, LOAD_LISTED, POSITION_GATHERED, STORE_LISTED)
    }
    if (tail < end && item == 0) map_list_tail(tail, (int)(end - tail) CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
  }
}

__kernel void map_list(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global const uchar* words, ulong words_offset,
                       CLUTCH_ARGS(MapListArgs, args) CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_TAKE_ARGS(MapListArgs, args)
  CLUTCH_IF_PREDICATE
  CLUTCH_TABLE(table)
  map_list_body(CLUTCH_IDS, &table, (__global const ulong*)(words + words_offset), args CLUTCH_EXTRA_ARGUMENTS);
}
#endif
