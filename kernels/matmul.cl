// SPDX-License-Identifier: Apache-2.0
// matmul_panels: tiles of ROWS rows and VECTORS vectors of columns in registers; b lies in panels of as many columns, row after row, or as it is.
// matmul_pack: brings b into panels, zero past its last column. matmul_items: the reference, any strides.
// Every element is one chain of fma in the order of k.
// Ownership: an item takes `rows_each` rows by `panels_each` panels of the result; of matmul_pack PACK_ROWS rows of a panel; of matmul_items an element.
// No local memory.
// Needs: T_NAME (b of matmul_pack, a and b of matmul_items), O_NAME (result), ACC (compute type), ROWS, VECTORS, PACK_ROWS, TILES_EACH and PANELS_EACH (most
// rows of tiles and panels of an item), GROUPED (work-groups have several items), and what the included files need.
#include "common/dtype.clh"
#include "common/launch.clh"
#include "common/math.clh"

#if !defined(T_NAME) || !defined(O_NAME) || !defined(ACC) || !defined(ROWS) || !defined(VECTORS) || !defined(PACK_ROWS) || !defined(TILES_EACH) || \
    !defined(PANELS_EACH)
#error "T_NAME, O_NAME, ACC, ROWS, VECTORS, PACK_ROWS, TILES_EACH and PANELS_EACH are not defined"
#endif

#ifdef ACC_IS_F64
#define V VD
#define LANES DWIDTH
#define ACC_NAME f64
#define FMA(a, b, c) fma(a, b, c)
#define SPILL_ACC CLUTCH_SPILLD
#else
#define V VF
#define LANES WIDTH
#define ACC_NAME f32
#define FMA(a, b, c) fma_rn(a, b, c)
#define SPILL_ACC CLUTCH_SPILL
#endif
#define PANEL (VECTORS * LANES)
#define LOAD_T CLUTCH_CONCAT(load_, T_NAME)
#define LOADV_T CLUTCH_CONCAT(loadv_, T_NAME)
#define LOADV_ACC CLUTCH_CONCAT(loadv_, ACC_NAME)
#define STOREV_ACC CLUTCH_CONCAT(storev_, ACC_NAME)
#define LOAD_O CLUTCH_CONCAT(load_, O_NAME)
#define LOADV_O CLUTCH_CONCAT(loadv_, O_NAME)
#define STORE_O CLUTCH_CONCAT(store_, O_NAME)
#define STOREV_O CLUTCH_CONCAT(storev_, O_NAME)

#ifdef CLUTCH_ENTRY_matmul_pack
static inline void matmul_pack_body(CLUTCH_ID_PARAMS, __global uchar* panels, __global const uchar* b, ulong k, ulong n, long b_k, long b_n, long b_batch,
                                    ulong batch) {
  const ulong across = (n + PANEL - 1) / PANEL, blocks = (k + PACK_ROWS - 1) / PACK_ROWS, count = batch * across * blocks;
  for (ulong i = group * lanes + lane; i < count; i += groups * lanes) {
    const ulong block = i % blocks, panel = i / blocks % across, of = i / blocks / across;
    const ulong first = block * PACK_ROWS, rows = min((ulong)PACK_ROWS, k - first), left = panel * PANEL, columns = min((ulong)PANEL, n - left);
    const long from = (long)of * b_batch + (long)first * b_k + (long)left * b_n, to = (long)(((of * across + panel) * k + first) * PANEL);
    if (b_n == 1 && columns == PANEL) {
      for (ulong r = 0; r < rows; ++r)
        for (int v = 0; v < VECTORS; ++v) STOREV_ACC(panels, to + (long)r * PANEL + v * LANES, LOADV_T(b, from + (long)r * b_k + v * LANES));
      continue;
    }
    __global ACC* out = (__global ACC*)panels + to;
    for (ulong c = 0; c < PANEL; ++c)
      for (ulong r = 0; r < rows; ++r) out[r * PANEL + c] = c < columns ? (ACC)LOAD_T(b, from + (long)r * b_k + (long)c * b_n) : (ACC)0;
  }
}

__kernel void matmul_pack(CLUTCH_PREDICATE __global uchar* panels, ulong panels_offset, __global const uchar* b, ulong b_offset, ulong k, ulong n, long b_k,
                          long b_n, long b_batch, ulong batch) {
  CLUTCH_IF_PREDICATE
  matmul_pack_body(CLUTCH_IDS, panels + panels_offset, b + b_offset, k, n, b_k, b_n, b_batch, batch);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_panels
// Where an item has a core of its own, k goes by blocks whose pieces of a and b stay in its caches; sums wait in private memory meanwhile.
#ifndef GROUPED
#define BLOCK_K 512
#define HELD(i) ((i)*ROWS * VECTORS)
#else
#define BLOCK_K (~0ul)
#define HELD(i) 0
#endif

// One tile: rows from `a` on, which lie a_row apart, and a panel, for k elements of a chain; `goes_on`: others came before, `ends`: none come after.
static inline void tile(__global uchar* c, long c_first, long c_row, long c_n, __global const ACC* a, long a_row, long a_k, __global const ACC* b, long b_k,
                        ulong k, ulong rows, ulong columns, ACC alpha, ACC beta, V* held, int goes_on, int ends) {
  V sum[ROWS][VECTORS];
  __global const ACC* from[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    from[r] = a + (long)min((ulong)r, rows - 1) * a_row;  // rows past the last one are that one again, and not stored
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) sum[r][v] = goes_on ? held[r * VECTORS + v] : (V)0;
  }
  for (ulong i = 0; i < k; ++i) {
    V x[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) x[v] = LOADV_ACC((__global const uchar*)b, v * LANES);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const V y = (V)*from[r];
      from[r] += a_k;
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) sum[r][v] = FMA(y, x[v], sum[r][v]);
    }
    b += b_k;
  }
  if (!ends) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) held[r * VECTORS + v] = sum[r][v];
    return;
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if ((ulong)r >= rows) continue;
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
      const long at = c_first + r * c_row + v * LANES * c_n;
      V scaled = sum[r][v] * alpha;
      if (c_n == 1 && (ulong)(v + 1) * LANES <= columns) {
        if (beta != 0) scaled = FMA((V)beta, LOADV_O(c, at), scaled);
        STOREV_O(c, at, scaled);
      } else {
        ACC one[LANES];
        SPILL_ACC(scaled, one);
        for (ulong l = 0; l < LANES && (ulong)v * LANES + l < columns; ++l)
          STORE_O(c, at + (long)l * c_n, beta != 0 ? FMA(beta, (ACC)LOAD_O(c, at + (long)l * c_n), one[l]) : one[l]);
      }
    }
  }
}

static inline void matmul_panels_body(CLUTCH_ID_PARAMS, __global uchar* c, __global const ACC* a, __global const ACC* b, ulong m, ulong n, ulong k, long c_row,
                                      long c_n, long c_batch, long a_row, long a_k, long a_batch, long b_k, long b_panel, long b_batch, ulong batch,
                                      ulong rows_each, ulong panels_each, ACC alpha, ACC beta) {
  const ulong panels = (n + PANEL - 1) / PANEL, across = (panels + panels_each - 1) / panels_each, down = (m + rows_each - 1) / rows_each;
#ifndef GROUPED
  V held[TILES_EACH * PANELS_EACH * ROWS * VECTORS];
#else
  V held[1];
#endif
  for (ulong i = group * lanes + lane; i < batch * down * across; i += groups * lanes) {
    const ulong first = i % across * panels_each, top = i / across % down * rows_each, of = i / across / down;
    const ulong end = min(first + panels_each, panels), bottom = min(top + rows_each, m);
    for (ulong at = 0, ends = 0; !ends; at += BLOCK_K) {
      ends = k - at <= BLOCK_K;
      for (ulong p = first; p < end; ++p)
        for (ulong row = top; row < bottom; row += ROWS)
          tile(c, (long)of * c_batch + (long)row * c_row + (long)(p * PANEL) * c_n, c_row, c_n, a + (long)of * a_batch + (long)row * a_row + (long)at * a_k,
               a_row, a_k, b + (long)of * b_batch + (long)p * b_panel + (long)at * b_k, b_k, min((ulong)BLOCK_K, k - at), min((ulong)ROWS, m - row),
               n - p * PANEL, alpha, beta, held + HELD((row - top) / ROWS * PANELS_EACH + (p - first)), at > 0, ends != 0);
    }
  }
}

__kernel void matmul_panels(CLUTCH_PREDICATE __global uchar* c, ulong c_offset, __global const uchar* a, ulong a_offset, __global const uchar* b,
                            ulong b_offset, ulong m, ulong n, ulong k, long c_row, long c_n, long c_batch, long a_row, long a_k, long a_batch, long b_k,
                            long b_panel, long b_batch, ulong batch, ulong rows_each, ulong panels_each, ACC alpha, ACC beta) {
  CLUTCH_IF_PREDICATE
  matmul_panels_body(CLUTCH_IDS, c + c_offset, (__global const ACC*)(a + a_offset), (__global const ACC*)(b + b_offset), m, n, k, c_row, c_n, c_batch, a_row,
                     a_k, a_batch, b_k, b_panel, b_batch, batch, rows_each, panels_each, alpha, beta);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_items
static inline void matmul_items_body(CLUTCH_ID_PARAMS, __global uchar* c, __global const uchar* a, __global const uchar* b, ulong m, ulong n, ulong k,
                                     long c_row, long c_n, long c_batch, long a_row, long a_k, long a_batch, long b_k, long b_n, long b_batch, ulong batch,
                                     ACC alpha, ACC beta) {
  for (ulong i = group * lanes + lane; i < batch * m * n; i += groups * lanes) {
    const long column = (long)(i % n), row = (long)(i / n % m), of = (long)(i / n / m);
    long from_a = of * a_batch + row * a_row, from_b = of * b_batch + column * b_n;
    const long to = of * c_batch + row * c_row + column * c_n;
    ACC sum = 0;
    for (ulong j = 0; j < k; ++j, from_a += a_k, from_b += b_k) sum = FMA((ACC)LOAD_T(a, from_a), (ACC)LOAD_T(b, from_b), sum);
    sum = sum * alpha;
    if (beta != 0) sum = FMA(beta, (ACC)LOAD_O(c, to), sum);
    STORE_O(c, to, sum);
  }
}

__kernel void matmul_items(CLUTCH_PREDICATE __global uchar* c, ulong c_offset, __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset,
                           ulong m, ulong n, ulong k, long c_row, long c_n, long c_batch, long a_row, long a_k, long a_batch, long b_k, long b_n, long b_batch,
                           ulong batch, ACC alpha, ACC beta) {
  CLUTCH_IF_PREDICATE
  matmul_items_body(CLUTCH_IDS, c + c_offset, a + a_offset, b + b_offset, m, n, k, c_row, c_n, c_batch, a_row, a_k, a_batch, b_k, b_n, b_batch, batch, alpha,
                    beta);
}
#endif
