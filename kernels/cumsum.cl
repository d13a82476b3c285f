// SPDX-License-Identifier: Apache-2.0
// cumsum: the sum of the elements up to each element of a line. Groups of 16 elements are summed by doubling; the groups of a block of CUMSUM_BLOCK elements
// are added one after another, and so are the blocks of a line: result = sum of blocks before + (sum of the block's groups before + sum within the group).
// Stages (args.h): a launch computes whole lines, or, for few long lines, one the sums of blocks, cumsum_carries the sums of blocks before each, one the
// results. Ownership: an item owns a line or a block at a time, or a panel of neighbouring lines. No local memory. Needs: what common/combine.clh and
// common/offsets.clh need (operands: out, x); T_NAME, O_NAME (dtypes of x and out); CLUTCH_X_BYTES (of an element of x); CLUTCH_ABREAST (vectors of columns of
// a panel).
#include "common/combine.clh"
#include "common/offsets.clh"
#include "cumsum/args.h"

#if !defined(T_NAME) || !defined(O_NAME) || !defined(CLUTCH_X_BYTES) || !defined(CLUTCH_ABREAST)
#error "T_NAME, O_NAME, CLUTCH_X_BYTES and CLUTCH_ABREAST are not defined"
#endif

#define ADD(T, a, b) CLUTCH_COMBINE_SUM(T, a, b)
#define CUMSUM_PARAMS                                                                                                                             \
  CLUTCH_PREDICATE __global uchar *out, ulong out_offset, __global uchar *carries, ulong carries_offset, __global const uchar *x, ulong x_offset, \
      CLUTCH_ARGS(CumsumArgs, args), int rank, CLUTCH_SHAPE_VECTOR sizes, CLUTCH_SHAPE_VECTOR s0, CLUTCH_SHAPE_VECTOR s1
#define CUMSUM_SHAPE                                                                                                 \
  CLUTCH_TAKE_ARGS(CumsumArgs, args)                                                                                 \
  const ulong n = args.n, m = args.m, blocks = cumsum_blocks(m);                                                     \
  const long out_inner = args.out_inner, x_inner = args.x_inner, out_first = args.out_first, x_first = args.x_first; \
  const int stage = args.stage;                                                                                      \
  out += out_offset, x += x_offset;                                                                                  \
  __global A* carry_of = (__global A*)(carries + carries_offset);                                                    \
  IDX size[CLUTCH_RANK_LANES], stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];                                           \
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(sizes, 0, size);                                                          \
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(s0, 0, stride[0]);                                                        \
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(s1, 0, stride[1]);
// Sums of 16 by doubling, of values or of vectors of them.
#define DOUBLING(T, v) _Pragma("unroll") for (int s = 1; s < 16; s *= 2) _Pragma("unroll") for (int l = 15; l >= s; --l) v[l] = ADD(T, v[l], v[l - s]);

#if WIDTH == 16 && defined(A_IS_F32)
#define VECTORS 1
static inline V doubled(V x) {
  x = x + (V)(0.0f, x.s01234567, x.s89ab, x.scd, x.se);
  x = x + (V)((float2)0.0f, x.s01234567, x.s89ab, x.scd);
  x = x + (V)((float4)0.0f, x.lo, x.s89ab);
  return x + (V)((float8)0.0f, x.lo);
}
#endif

// The reference: any strides.
#ifdef CLUTCH_ENTRY_cumsum_lines
static inline A group_of(__global uchar* out, __global const uchar* x, IDX out_place, IDX x_place, IDX out_inner, IDX x_inner, int count, A before, A inside,
                         int stage) {
#ifdef VECTORS
  if (count == 16 && out_inner == 1 && x_inner == 1) {
    V v = doubled(CLUTCH_CONCAT(loadv_, T_NAME)(x, x_place));
    if (stage != CUMSUM_SUMS) CLUTCH_CONCAT(storev_, O_NAME)(out, out_place, (V)before + ((V)inside + v));
    return inside + v.sf;
  }
#endif
  A v[16];
  for (int l = 0; l < 16; ++l) v[l] = l < count ? (A)CLUTCH_CONCAT(load_, T_NAME)(x, x_place + l * x_inner) : (A)0;
  DOUBLING(A, v)
  if (stage != CUMSUM_SUMS)
    for (int l = 0; l < count; ++l) CLUTCH_CONCAT(store_, O_NAME)(out, out_place + l * out_inner, ADD(A, before, ADD(A, inside, v[l])));
  return ADD(A, inside, v[15]);
}
__kernel void cumsum_lines(CUMSUM_PARAMS) {
  CLUTCH_IF_PREDICATE
  CUMSUM_SHAPE
  ulong tasks = cumsum_tasks(stage, n, blocks);
  for (ulong task = get_global_id(0); task < tasks; task += get_global_size(0)) {
    ulong line = stage == CUMSUM_WHOLE ? task : task / blocks, first = stage == CUMSUM_WHOLE ? 0 : task - line * blocks,
          last = stage == CUMSUM_WHOLE ? blocks : first + 1;
    IDX offset[CLUTCH_OPERANDS] = {(IDX)out_first, (IDX)x_first};
    add_offsets((IDX)line, rank, size, stride, 0, offset);
    A before = stage == CUMSUM_RESULTS ? carry_of[task] : (A)0;
    for (ulong block = first; block < last; ++block) {
      A inside = 0;
      IDX end = (IDX)min((block + 1) * CUMSUM_BLOCK, m);
      for (IDX j = (IDX)(block * CUMSUM_BLOCK); j < end; j += 16)
        inside = group_of(out, x, offset[0] + j * (IDX)out_inner, offset[1] + j * (IDX)x_inner, (IDX)out_inner, (IDX)x_inner, (int)min(end - j, (IDX)16),
                          before, inside, stage);
      if (stage == CUMSUM_SUMS) carry_of[task] = inside;
      before = ADD(A, before, inside);
    }
  }
}
#endif

// The innermost kept dimension has stride 1 in both operands: PANEL neighbouring lines are in the lanes of vectors, so that memory is read in long pieces.
#ifdef CLUTCH_ENTRY_cumsum_columns
#define PANEL (CLUTCH_ABREAST * WIDTH)
#include "common/some_lanes.clh"
// Index of a block's sum for column `c` of a panel.
#define CARRY(c) carry_of[cumsum_carry(outer * columns + column + (c), blocks, first)]
__kernel void cumsum_columns(CUMSUM_PARAMS) {
  CLUTCH_IF_PREDICATE
  CUMSUM_SHAPE
  ulong columns = (ulong)size[0], panels = cumsum_panels(columns, PANEL), tasks = cumsum_tasks(stage, n / columns * panels, blocks);
  for (ulong task = get_global_id(0); task < tasks; task += get_global_size(0)) {
    ulong number = stage == CUMSUM_WHOLE ? task : task / blocks, first = stage == CUMSUM_WHOLE ? 0 : task - number * blocks,
          last = stage == CUMSUM_WHOLE ? blocks : first + 1;
    ulong outer = number / panels, column = (number - outer * panels) * PANEL;
    int width = (int)min(columns - column, (ulong)PANEL), vectors = (width + WIDTH - 1) / WIDTH;
    IDX offset[CLUTCH_OPERANDS] = {(IDX)out_first, (IDX)x_first};
    add_offsets((IDX)(outer * columns + column), rank, size, stride, 0, offset);
    A lanes[PANEL];
    V before[CLUTCH_ABREAST], inside[CLUTCH_ABREAST];
    for (int c = 0; c < PANEL; ++c) lanes[c] = stage == CUMSUM_RESULTS && c < width ? CARRY(c) : (A)0;
    for (int v = 0; v < CLUTCH_ABREAST; ++v) before[v] = CLUTCH_V_FILL(lanes + v * WIDTH);
    for (ulong block = first; block < last; ++block) {
      for (int v = 0; v < CLUTCH_ABREAST; ++v) inside[v] = (V)(A)0;
      IDX end = (IDX)min((block + 1) * CUMSUM_BLOCK, m);
      for (IDX j = (IDX)(block * CUMSUM_BLOCK); j < end; j += 16) {
        int count = (int)min(end - j, (IDX)16);
        IDX from = offset[1] + j * (IDX)x_inner, to = offset[0] + j * (IDX)out_inner;
        if (count == 16 && width == PANEL) {
          // Row by row, in the order of memory.
          V rows[CLUTCH_ABREAST][16];
          for (int l = 0; l < 16; ++l)
#pragma unroll
            for (int v = 0; v < CLUTCH_ABREAST; ++v) {
              CLUTCH_PREFETCH(x + ((long)from + (l + 16) * x_inner + v * WIDTH) * CLUTCH_X_BYTES);
              rows[v][l] = CLUTCH_CONCAT(loadv_, T_NAME)(x, from + l * (IDX)x_inner + v * WIDTH);
            }
          for (int v = 0; v < CLUTCH_ABREAST; ++v) {
            V x16[16];
#pragma unroll
            for (int l = 0; l < 16; ++l) x16[l] = rows[v][l];
            DOUBLING(V, x16)
            V add = inside[v];
#pragma unroll
            for (int l = 0; l < 16; ++l) rows[v][l] = before[v] + (add + x16[l]);
            inside[v] = add + x16[15];
          }
          for (int l = 0; l < 16 && stage != CUMSUM_SUMS; ++l)
#pragma unroll
            for (int v = 0; v < CLUTCH_ABREAST; ++v) CLUTCH_CONCAT(storev_, O_NAME)(out, to + l * (IDX)out_inner + v * WIDTH, rows[v][l]);
        } else {
          for (int v = 0; v < vectors; ++v) {
            int lane_count = min(width - v * WIDTH, WIDTH);
            V x16[16];
            for (int l = 0; l < 16; ++l) x16[l] = l < count ? load_some(x, from + l * (IDX)x_inner + v * WIDTH, lane_count) : (V)(A)0;
            DOUBLING(V, x16)
            for (int l = 0; l < count && stage != CUMSUM_SUMS; ++l)
              store_some(out, to + l * (IDX)out_inner + v * WIDTH, lane_count, before[v] + (inside[v] + x16[l]));
            inside[v] = inside[v] + x16[15];
          }
        }
      }
      for (int v = 0; v < CLUTCH_ABREAST; ++v) {
        CLUTCH_V_SPILL(inside[v], lanes + v * WIDTH);
        before[v] = before[v] + inside[v];
      }
      for (int c = 0; c < width && stage == CUMSUM_SUMS; ++c) CARRY(c) = lanes[c];
    }
  }
}
#endif

// carries[line, block]: the sum of the blocks before it.
#ifdef CLUTCH_ENTRY_cumsum_carries
__kernel void cumsum_carries(CLUTCH_PREDICATE __global uchar* carries, ulong carries_offset, ulong n, ulong blocks) {
  CLUTCH_IF_PREDICATE
  __global A* carry_of = (__global A*)(carries + carries_offset);
  for (ulong line = get_global_id(0); line < n; line += get_global_size(0)) {
    A sum = 0;
    for (ulong block = 0; block < blocks; ++block) {
      A here = carry_of[cumsum_carry(line, blocks, block)];
      carry_of[cumsum_carry(line, blocks, block)] = sum;
      sum = ADD(A, sum, here);
    }
  }
}
#endif
