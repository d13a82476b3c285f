// SPDX-License-Identifier: Apache-2.0
// cumsum: the sum of the elements up to each element of a line. Groups of 16 elements are summed by doubling; the groups of a block of CUMSUM_BLOCK elements
// are added one after another, and so are the blocks of a line: result = sum of blocks before + (sum of the block's groups before + sum within the group).
// Stages (args.h): a launch computes whole lines, or, for few long lines, one the sums of blocks, one of carries the sums of blocks before each, one the
// results. Ownership: an item owns a line or a block at a time, or a panel of neighbouring lines, without local memory. cumsum_groups, cumsum_column_groups,
// cumsum_carry_groups: a team of items shares a line or a block; local memory of a block and a number for each item; of two numbers for each item; of
// CUMSUM_CARRY_NUMBERS.
// Needs: what common/combine.clh and common/offsets.clh need (operands: out, x); T_NAME, O_NAME (dtypes of x and out); CLUTCH_X_BYTES, CLUTCH_O_BYTES (of an
// element of x, of out); CLUTCH_ABREAST (vectors of columns of a panel); for entries of groups WIDTH 1.
#include "common/combine.clh"
#include "common/offsets.clh"
#include "cumsum/args.h"

#if !defined(T_NAME) || !defined(O_NAME) || !defined(CLUTCH_X_BYTES) || !defined(CLUTCH_O_BYTES) || !defined(CLUTCH_ABREAST)
#error "T_NAME, O_NAME, CLUTCH_X_BYTES, CLUTCH_O_BYTES and CLUTCH_ABREAST are not defined"
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

#if defined(CLUTCH_ENTRY_cumsum_groups) || defined(CLUTCH_ENTRY_cumsum_carry_groups)
#include "common/load_quads.clh"
#define A4 CLUTCH_CONCAT(A, 4)
// Puts in the place of each of `count` numbers the sum of those before it, from `sum` on, one after another; gives the sum of all. One item calls it, with 16
// or more numbers a multiple of 16. Loads of 16 go ahead of the additions of the 16 before them, each of which waits for the one before it.
CLUTCH_INLINE A chain(__local A* numbers, uint count, A sum) {
  uint i = 0;
  if (count >= 16) {
    A4 next[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) next[k] = *(__local const A4*)(numbers + 4 * k);
#pragma unroll 1
    for (; i + 16 <= count; i += 16) {
      const uint ahead = i + 32 <= count ? i + 16 : i;
      A4 here[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) here[k] = next[k], next[k] = *(__local const A4*)(numbers + ahead + 4 * k);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        A4 before;
        before.s0 = sum, sum = ADD(A, sum, here[k].s0);
        before.s1 = sum, sum = ADD(A, sum, here[k].s1);
        before.s2 = sum, sum = ADD(A, sum, here[k].s2);
        before.s3 = sum, sum = ADD(A, sum, here[k].s3);
        *(__local A4*)(numbers + i + 4 * k) = before;
      }
    }
  }
#pragma unroll 1
  for (; i < count; ++i) {
    const A here = numbers[i];
    numbers[i] = sum, sum = ADD(A, sum, here);
  }
  return sum;
}
#endif

// Any strides, for devices whose groups have several items: a team of `team` items shares a line of one block, a work-group each block of a longer one.
//
//   elements of a block    0 ... 15   16 ... 31   ...   2032 ... 2047
//   item of the team          0          1        ...       127         sums its 16 by doubling; item 0 adds the sums of the items one after another
//
// Local memory, [item][its 16]: items load elements side by side, take their own 16, leave the results there and store them side by side.
#ifdef CLUTCH_ENTRY_cumsum_groups
// Where element e of a work-group's is in local memory. The quads of an item change places, so that neither items that take neighbouring quads nor items that
// take their own meet in a bank.
static inline uint tile_place(uint e) { return e ^ (e / 32 % 4 * 4); }
// True if elements of a line from address `from` on are four at a time where quads may be, forwards or backwards.
static inline int has_quads(size_t from, IDX stride, uint bytes) {
  return stride == 1 ? CLUTCH_QUADS_AT(from, bytes) : stride == -1 && CLUTCH_QUADS_AT(from - 3 * bytes, bytes);
}
// The first `count` elements, 1 or more, of a line from `from` on, and zeros behind them, to the places of the team from place `first` on; item p of it. Loads
// do not depend on whether an element is there, so that four go together: past the end the last is loaded again.
CLUTCH_INLINE void load_tile(__local A* tile, uint first, __global const uchar* from, IDX stride, int count, uint p, uint team) {
  int whole = 0;
  if (count >= 4 && has_quads((size_t)from, stride, CLUTCH_X_BYTES)) {
    whole = count / 4 * 4;
    A4 quads[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int e = min(4 * (int)(p + i * team), whole - 4);
      quads[i] = CLUTCH_CONCAT(load_quad_, T_NAME)(from, stride == 1 ? e : -e - 3);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int e = 4 * (int)(p + i * team);
      if (e < whole) *(__local A4*)(tile + tile_place(first + e)) = stride == 1 ? quads[i] : quads[i].s3210;
    }
  }
  const int most = CUMSUM_DOUBLED * (int)team;
#pragma unroll 1
  for (int e = whole + (int)p; e < most; e += 4 * (int)team) {
    A numbers[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) numbers[i] = CLUTCH_CONCAT(load_, T_NAME)(from, min(e + i * (int)team, count - 1) * stride);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = e + i * (int)team;
      if (at < most) tile[tile_place(first + at)] = at < count ? numbers[i] : (A)0;
    }
  }
}
// Stores them to `to`.
CLUTCH_INLINE void store_tile(__local const A* tile, uint first, __global uchar* to, IDX stride, int count, uint p, uint team) {
  int whole = 0;
  if (has_quads((size_t)to, stride, CLUTCH_O_BYTES)) {
    whole = count / 4 * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int e = 4 * (int)(p + i * team);
      const A4 quad = *(__local const A4*)(tile + tile_place(first + e));
      if (e < whole) CLUTCH_CONCAT(store_quad_, O_NAME)(to, stride == 1 ? e : -e - 3, stride == 1 ? quad : quad.s3210);
    }
  }
#pragma unroll 1
  for (int e = whole + (int)p; e < count; e += (int)team) CLUTCH_CONCAT(store_, O_NAME)(to, e * stride, tile[tile_place(first + e)]);
}
__kernel void cumsum_groups(CUMSUM_PARAMS) {
  CLUTCH_IF_PREDICATE
  __local A tile[CUMSUM_BLOCK] __attribute__((aligned(32))), sums[CUMSUM_GROUP_ITEMS] __attribute__((aligned(32))), total[1];
  CUMSUM_SHAPE
  const uint item = (uint)get_local_id(0), team = args.team, teams = CUMSUM_GROUP_ITEMS / team, of = item / team, p = item % team;
  const uint first = of * team * CUMSUM_DOUBLED;
  const ulong tasks = cumsum_tasks(stage, n, blocks), turns = stage == CUMSUM_WHOLE ? blocks : 1;
  for (ulong start = get_group_id(0) * teams; start < tasks; start += get_num_groups(0) * teams) {
    const ulong task = start + of;
    const int there = task < tasks;
    const ulong line = stage == CUMSUM_WHOLE ? task : (ulong)((IDX)task / (IDX)blocks), first_block = stage == CUMSUM_WHOLE ? 0 : task - line * blocks;
    IDX offset[CLUTCH_OPERANDS] = {(IDX)out_first, (IDX)x_first};
    if (there) add_offsets_unrolled((IDX)line, rank, size, stride, 0, offset);
    A before = there && stage == CUMSUM_RESULTS ? carry_of[task] : (A)0;
    for (ulong turn = 0; turn < turns; ++turn) {
      const ulong begin = (first_block + turn) * CUMSUM_BLOCK;
      const int count = there ? (int)min(m - begin, (ulong)CUMSUM_BLOCK) : 0;
      if (there)
        load_tile(tile, first, x + (offset[1] + (long)begin * x_inner) * CLUTCH_X_BYTES, (IDX)x_inner, count, p, team);
      else
        for (uint e = p; e < team * CUMSUM_DOUBLED; e += team) tile[tile_place(first + e)] = 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      A v[CUMSUM_DOUBLED];
#pragma unroll
      for (int k = 0; k < CUMSUM_DOUBLED / 4; ++k) {
        const A4 quad = *(__local const A4*)(tile + tile_place(item * CUMSUM_DOUBLED + 4 * k));
        CLUTCH_UNPACK_QUAD(v + 4 * k, quad);
      }
      DOUBLING(A, v)
      sums[item] = v[15];
      barrier(CLK_LOCAL_MEM_FENCE);
      if (p == 0) {
        // The sums that have elements, rounded up to 16.
        const A sum = chain(sums + item, min(team, (uint)(count + 16 * CUMSUM_DOUBLED - 1) / (16 * CUMSUM_DOUBLED) * 16), (A)0);
        if (item == 0) total[0] = sum;
        if (there && stage == CUMSUM_SUMS) carry_of[task] = sum;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      const A inside = sums[item];
#pragma unroll
      for (int k = 0; k < CUMSUM_DOUBLED / 4; ++k) {
        A4 quad;
        quad.s0 = ADD(A, before, ADD(A, inside, v[4 * k]));
        quad.s1 = ADD(A, before, ADD(A, inside, v[4 * k + 1]));
        quad.s2 = ADD(A, before, ADD(A, inside, v[4 * k + 2]));
        quad.s3 = ADD(A, before, ADD(A, inside, v[4 * k + 3]));
        *(__local A4*)(tile + tile_place(item * CUMSUM_DOUBLED + 4 * k)) = quad;
      }
      // A line of several blocks has all items of the work-group.
      before = ADD(A, before, total[0]);
      barrier(CLK_LOCAL_MEM_FENCE);
      if (stage != CUMSUM_SUMS) store_tile(tile, first, out + (offset[0] + (long)begin * out_inner) * CLUTCH_O_BYTES, (IDX)out_inner, count, p, team);
      barrier(CLK_LOCAL_MEM_FENCE);  // tile is written again
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

// The same columns by groups: a team of items shares a column, item g of it the 16 elements g, g + team, ... of a block, and neighbours have neighbouring
// columns. So rows of memory are read in long pieces, and the elements of an item are registers.
//
//   item           0     1  ...  31      32    33  ...           with 256 items and a team of 8; "width" is 32
//   column         0     1  ...  31       0     1  ...
//   elements       0 ... 15              16 ... 31               then 128 ... 143, ...
//
// Local memory: the sums of 16 elements of all items, [parity of the turn][item of the team][column].
#ifdef CLUTCH_ENTRY_cumsum_column_groups
__kernel void cumsum_column_groups(CUMSUM_PARAMS) {
  CLUTCH_IF_PREDICATE
  __local A sums[2 * CUMSUM_COLUMN_ITEMS];
  CUMSUM_SHAPE
  const uint item = (uint)get_local_id(0), team = args.team, width = (uint)get_local_size(0) / team, c = item % width, g = item / width;
  const ulong columns = (ulong)size[0], panels = cumsum_panels(columns, width), tasks = cumsum_tasks(stage, (ulong)((IDX)n / (IDX)columns) * panels, blocks);
  uint parity = 0;
  for (ulong task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
    const ulong number = stage == CUMSUM_WHOLE ? task : (ulong)((IDX)task / (IDX)blocks), first = stage == CUMSUM_WHOLE ? 0 : task - number * blocks,
                last = stage == CUMSUM_WHOLE ? blocks : first + 1;
    const ulong outer = (ulong)((IDX)number / (IDX)panels), column = (number - outer * panels) * width + c, line = outer * columns + column;
    const int there = column < columns;
    IDX offset[CLUTCH_OPERANDS] = {(IDX)out_first, (IDX)x_first};
    if (there) add_offsets_unrolled((IDX)line, rank, size, stride, 0, offset);
    A before = there && stage == CUMSUM_RESULTS ? carry_of[cumsum_carry(line, blocks, first)] : (A)0;
    for (ulong block = first; block < last; ++block) {
      const int count = (int)min(m - block * CUMSUM_BLOCK, (ulong)CUMSUM_BLOCK);
      A inside = 0;
      for (int begin = 0; begin < count; begin += CUMSUM_DOUBLED * (int)team) {
        const int j = begin + CUMSUM_DOUBLED * (int)g, left = there ? count - j : 0;
        const IDX at = (IDX)(block * CUMSUM_BLOCK) + j;
        // Past the end, where nothing is in a result, the last element is loaded again, so that all loads go together.
        A v[CUMSUM_DOUBLED] = {0};
        if (left > 0) {
#pragma unroll
          for (int l = 0; l < CUMSUM_DOUBLED; ++l) v[l] = CLUTCH_CONCAT(load_, T_NAME)(x, offset[1] + (at + min(l, left - 1)) * (IDX)x_inner);
        }
        DOUBLING(A, v)
        // Two turns have memory of their own: who reads the one has passed the barrier before it, so that the next but one may be written.
        __local A* const here = sums + parity * CUMSUM_COLUMN_ITEMS;
        here[item] = v[15];
        barrier(CLK_LOCAL_MEM_FENCE);
        A sum = inside;
        for (uint u = 0; u < team; ++u) {
          if (u == g) inside = sum;
          sum = ADD(A, sum, here[u * width + c]);
        }
#pragma unroll
        for (int l = 0; l < CUMSUM_DOUBLED; ++l)
          if (l < left && stage != CUMSUM_SUMS) CLUTCH_CONCAT(store_, O_NAME)(out, offset[0] + (at + l) * (IDX)out_inner, ADD(A, before, ADD(A, inside, v[l])));
        inside = sum;
        parity ^= 1;
      }
      if (there && g == 0 && stage == CUMSUM_SUMS) carry_of[cumsum_carry(line, blocks, block)] = inside;
      before = ADD(A, before, inside);
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

// The same by teams of `team` items, which load and store neighbouring sums. Local memory: the sums of the work-group's lines, [team][16 for each item and a
// quad].
#ifdef CLUTCH_ENTRY_cumsum_carry_groups
// Item p's of the `count` sums from `from` on. What is behind them is in no result.
CLUTCH_INLINE void load_sums(A* numbers, __global const A* from, uint count, uint p, uint team) {
  if (count == 0) return;
#pragma unroll
  for (int i = 0; i < CUMSUM_DOUBLED; ++i) numbers[i] = from[min(p + i * team, count - 1)];
}
__kernel void cumsum_carry_groups(CLUTCH_PREDICATE __global uchar* carries, ulong carries_offset, ulong n, ulong blocks, uint team) {
  CLUTCH_IF_PREDICATE
  __local A tile[CUMSUM_CARRY_NUMBERS] __attribute__((aligned(32)));
  __global A* carry_of = (__global A*)(carries + carries_offset);
  const uint item = (uint)get_local_id(0), teams = CUMSUM_GROUP_ITEMS / team, of = item / team, p = item % team, most = team * CUMSUM_DOUBLED;
  // A quad of padding behind each line: the first items of teams, which add, do not meet in a bank.
  __local A* const own = tile + of * (most + 4);
  for (ulong start = get_group_id(0) * teams; start < n; start += get_num_groups(0) * teams) {
    const ulong line = start + of, there = line < n ? blocks : 0;
    __global A* const carry = carry_of + (line < n ? cumsum_carry(line, blocks, 0) : 0);
    A numbers[CUMSUM_DOUBLED] = {0}, sum = 0;
    load_sums(numbers, carry, (uint)min(there, (ulong)most), p, team);
    for (ulong begin = 0; begin < blocks; begin += most) {
      const uint count = there > begin ? (uint)min(there - begin, (ulong)most) : 0;
#pragma unroll
      for (int i = 0; i < CUMSUM_DOUBLED; ++i) own[p + i * team] = numbers[i];
      barrier(CLK_LOCAL_MEM_FENCE);
      // The next sums are on their way while these are added.
      load_sums(numbers, carry + begin + most, there > begin + most ? (uint)min(there - begin - most, (ulong)most) : 0, p, team);
      if (p == 0) sum = chain(own, min(most, (count + 15) / 16 * 16), sum);
      barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
      for (uint e = p; e < count; e += team) carry[begin + e] = own[e];
    }
  }
}
#endif
