// SPDX-License-Identifier: Apache-2.0
// Products. Every element is one chain of fma in the order of k; with CLUTCH_IS_INTEGER, exact modulo 2^32. Complex numbers are pairs of real columns: (re, im)
// times rows (re, im) and (-im, re).
// matmul_panels: register tiles of CLUTCH_ROWS rows and CLUTCH_VECTORS vectors of columns (matmul/panels.clh).
//   CLUTCH_B_AT, of matmul/args.h: b is read from panels that matmul_pack wrote, from the tensor, or from blocks that the work-item packs.
//   CLUTCH_DOT: a and b are words of four bytes, by matmul_dot_rows and matmul_dot_pack, whose products an instruction sums or plain code (args.h).
// matmul_lanes: batches of small matrices, one in each SIMD lane.
// matmul_tiles: tiles in local memory (matmul/tiles.clh). Local memory: matmul_tile_numbers() numbers of each matrix.
// matmul_few: few rows or few columns, in blocks of local memory (matmul/few.clh).
// matmul_matrix: by matrix instructions, which round in an order of their own (matmul/matrix.clh).
// matmul_items: the reference, any strides. A work-item takes an element.
// With a 2:4 matrix on the left; where `info` >= 0 names a quad that was not 2:4, all results are NaN, or the least integer:
// matmul_sparse_panels: as matmul_panels, packed by sparse24_pack. CLUTCH_TRANSPOSED: the strides of results are those of the transposed result.
// matmul_sparse_rows: for few columns, CLUTCH_TOKENS at a time, in the compute type (matmul/sparse_rows.clh).
// matmul_sparse_dot: bytes, CLUTCH_TOKENS columns at a time (matmul/sparse_dot.clh). CLUTCH_TRANSPOSED as above.
// matmul_sparse_matrix: as matmul_matrix (matmul/sparse_lines.clh).
// matmul_sparse_tiles: as matmul_tiles. matmul_sparse_items: the reference, on canonical values and metadata (sparse24/args.h).
// Needs: A_NAME (a as it is stored), B_NAME (b as it is read), O_NAME (what beta reads), ACC (compute type), CLUTCH_IS_INTEGER, CLUTCH_COMPLEX, CLUTCH_DOT,
// expression.clh (of the epilogue, whose operand 0 is what it reads as well as what it writes);
//   for panels CLUTCH_B_AT, CLUTCH_ROWS, CLUTCH_VECTORS, CLUTCH_PACK_ROWS, CLUTCH_BLOCK_VECTORS (of a block that a work-item packs, at most),
//     CLUTCH_A_DEPTH (most numbers of a row of a that a work-item converts at a time; 0: a is of type ACC),
//     CLUTCH_ACCUMULATOR_TILES (tiles of a work-item, at most), CLUTCH_B_BYTES, CLUTCH_OUT_BYTES (of an element as it lies; of a complex one a part);
//   for matmul_matrix and matmul_sparse_matrix CLUTCH_LAYOUT, CLUTCH_NUMBERS, CLUTCH_STAND_IN, CLUTCH_TILE_M, CLUTCH_TILE_N, CLUTCH_PART_M, CLUTCH_PART_N,
//   CLUTCH_A_RAW, CLUTCH_B_RAW,
//     CLUTCH_A_ALONG_K, CLUTCH_B_ALONG_K, CLUTCH_A_UNSIGNED, CLUTCH_B_UNSIGNED, CLUTCH_NARROW, of f8 CLUTCH_A_E5M2, CLUTCH_B_E5M2; the latter
//     CLUTCH_SPARSE_INSTRUCTION;
//   for tiles CLUTCH_TILE_M, CLUTCH_TILE_N, CLUTCH_TILE_K, CLUTCH_TILE_PAD, CLUTCH_THREADS_M, CLUTCH_THREADS_N, CLUTCH_A_ALONG_K, CLUTCH_B_ALONG_K,
//   CLUTCH_NARROW,
//     CLUTCH_A_QUADS, CLUTCH_B_QUADS, CLUTCH_B_BYTES (of an element, where there are quads), CLUTCH_OUT_QUADS and with it OUT_NAME, OUT_TYPE, CLUTCH_OUT_BYTES.
// May have: CLUTCH_GROUPED (work-groups have several items).
#define CLUTCH_GATHER_UNROLL _Pragma("unroll 1")  // edges alone: compilers take long over them
#include "common/expr.clh"
#include "common/f8.clh"
#include "common/launch.clh"
#include "common/quads.clh"
#include "matmul/args.h"
#include "sparse24/args.h"

#if !defined(A_NAME) || !defined(B_NAME) || !defined(O_NAME) || !defined(ACC) || !defined(CLUTCH_OPERANDS) || !defined(IDX) || !defined(CLUTCH_RANK_LANES)
#error "A_NAME, B_NAME, O_NAME, ACC, CLUTCH_OPERANDS, IDX and CLUTCH_RANK_LANES are not defined"
#endif

#if defined(CLUTCH_ENTRY_matmul_sparse_panels) || defined(CLUTCH_ENTRY_matmul_sparse_rows) || defined(CLUTCH_ENTRY_matmul_sparse_tiles) || \
    defined(CLUTCH_ENTRY_matmul_sparse_items) || defined(CLUTCH_ENTRY_matmul_sparse_dot) || defined(CLUTCH_ENTRY_matmul_sparse_matrix)
#define CLUTCH_SPARSE 1
#else
#define CLUTCH_SPARSE 0
#endif
#if defined(CLUTCH_ENTRY_matmul_panels) || defined(CLUTCH_ENTRY_matmul_sparse_panels)
#define CLUTCH_BY_PANELS 1
#else
#define CLUTCH_BY_PANELS 0
#endif
#if !CLUTCH_SPARSE
#define CLUTCH_TRANSPOSED 0
#endif
// Results are CLUTCH_POISON if the matrix was not 2:4.
#if CLUTCH_SPARSE
#define CLUTCH_CHECK(sum) (poisoned ? (SUM)CLUTCH_POISON : (sum))
#else
#define CLUTCH_CHECK(sum) (sum)
#endif

#define CLUTCH_SHAPE_VECTOR CLUTCH_CONCAT(IDX, CLUTCH_RANK_LANES)
#include "expression.clh"

#define LANES WIDTH
#if CLUTCH_DOT
#define V VI
#define CLUTCH_FMA(a, b, c) dot_of_bytes(a, b, c)
// Adds to each lane of `sum` the products of four unsigned bytes of a and four signed bytes of b.
static inline VI dot_of_bytes(VI a, VI b, VI sum) {
#if CLUTCH_DOT == MATMUL_DOT_INSTRUCTION
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#else
  for (int i = 0; i < 32; i += 8) sum = CLUTCH_WRAP_32(sum, +, CLUTCH_AS_VU((a >> i & 255) * (b << (24 - i) >> 24)));
#endif
  return sum;
}
#elif defined(ACC_IS_F64)
#define V VD
#define CLUTCH_FMA(a, b, c) fma(a, b, c)
#else
#define V VF
#define CLUTCH_FMA(a, b, c) fma_rn(a, b, c)
#endif
#define T ACC
#define R V
#define CLUTCH_MEM
#include "common/transpose.clh"
#if LANES > 1
#define CLUTCH_STORE_VECTOR(mem, x, p) (*(mem clutch_unaligned*)(p) = (x))
#else
#define CLUTCH_STORE_VECTOR(mem, x, p) (*(p) = (x))
#endif
#define CLUTCH_PANEL (CLUTCH_VECTORS * LANES)
#define CLUTCH_LOAD_A CLUTCH_CONCAT(load_, A_NAME)
#define CLUTCH_LOADV_A CLUTCH_CONCAT(loadv_, A_NAME)
#define CLUTCH_LOAD_B CLUTCH_CONCAT(load_, B_NAME)
#define CLUTCH_LOADV_B CLUTCH_CONCAT(loadv_, B_NAME)

// SUM: what chains end in and results are made of. Integers are summed as floats, exactly: 512 products of them stay below 2^24.
#if CLUTCH_IS_INTEGER
#define SUM VI
#define SUM_ONE int
#if CLUTCH_DOT
#define CLUTCH_TO_ACC(x) (x)
#else
#define CLUTCH_TO_ACC(x) CLUTCH_I_TO_VF(x)
#endif
#define CLUTCH_SCALED(sum, alpha) CLUTCH_WRAP_32(sum, *, (SUM)(alpha))
#define CLUTCH_PLUS(beta, before, sum) CLUTCH_WRAP_32(sum, +, CLUTCH_WRAP_32((SUM)(beta), *, before))
#else
#define SUM V
#define SUM_ONE ACC
#define CLUTCH_TO_ACC(x) (x)
#define CLUTCH_SCALED(sum, alpha) ((sum) * (SUM)(alpha))
#define CLUTCH_PLUS(beta, before, sum) CLUTCH_FMA((SUM)(beta), before, sum)
#endif

#if defined(CLUTCH_HAS_STREAMING) && WIDTH > 4 && !defined(CLUTCH_GROUPED)
#define CLUTCH_PREFETCH_LINE(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#define CLUTCH_PREFETCH_TO_WRITE(p) __builtin_prefetch((const void*)(size_t)(p), 1, 3)
#else
#define CLUTCH_PREFETCH_LINE(p)
#define CLUTCH_PREFETCH_TO_WRITE(p)
#endif

#include "matmul/results.clh"

#if !defined(CLUTCH_ENTRY_matmul_items) && !defined(CLUTCH_ENTRY_matmul_sparse_items) && !CLUTCH_DOT
// A real number of row r and column c of b, counted from element `from`.
static inline ACC number_of(__global const uchar* b, long from, ulong r, ulong c, long b_k, long b_n) {
#if CLUTCH_COMPLEX
  const long at = 2 * (from + (long)(r / 2) * b_k + (long)(c / 2) * b_n);
  const ACC x = (ACC)CLUTCH_LOAD_B(b, at + (long)((r ^ c) & 1));
  return r & 1 && !(c & 1) ? -x : x;
#else
  return (ACC)CLUTCH_LOAD_B(b, from + (long)r * b_k + (long)c * b_n);
#endif
}
#endif

// Behind the last element of a (k, n) matrix of real numbers that begins at element `from`.
static inline long matmul_end(long from, ulong k, ulong n, long b_k, long b_n) {
  return from + max(0L, (long)(k - 1) * b_k) + max(0L, (long)(n - 1) * b_n) + 1;
}

#include "matmul/packing.clh"

#ifdef CLUTCH_ENTRY_matmul_pack
static inline void matmul_pack_body(CLUTCH_ID_PARAMS, __global ACC* panels, __global const uchar* b, const MatmulPackArgs args) {
  const ulong k = args.k, n = args.n;
  const ulong across = matmul_parts(n, CLUTCH_PANEL), blocks = matmul_parts(k, CLUTCH_PACK_ROWS), count = args.batch * across * blocks;
  for (ulong i = group * items + item; i < count; i += groups * items) {
    const ulong block = i % blocks, panel = i / blocks % across, of = i / blocks / across;
    const ulong first = block * CLUTCH_PACK_ROWS, rows = min((ulong)CLUTCH_PACK_ROWS, k - first), left = panel * CLUTCH_PANEL,
                columns = min((ulong)CLUTCH_PANEL, n - left);
    // For complex numbers n and k count parts, strides numbers.
    const long from = (long)of * args.b_batch + (long)(first / (1 + CLUTCH_COMPLEX)) * args.b_k + (long)(left / (1 + CLUTCH_COMPLEX)) * args.b_n;
    pack_rows(panels + matmul_panel_at(of, across, panel, k, 0, first, CLUTCH_PANEL), b, from, matmul_end((long)of * args.b_batch, k, n, args.b_k, args.b_n),
              rows, columns, args.b_k, args.b_n);
  }
}

__kernel void matmul_pack(CLUTCH_PREDICATE __global uchar* panels, ulong panels_offset, __global const uchar* b, ulong b_offset,
                          CLUTCH_ARGS(MatmulPackArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulPackArgs, args)
  matmul_pack_body(CLUTCH_IDS, (__global ACC*)(panels + panels_offset), b + b_offset, args);
}
#endif

#if CLUTCH_IS_INTEGER
#define CLUTCH_POISON INT_MIN
#else
#define CLUTCH_POISON NAN
#endif

#if CLUTCH_BY_PANELS
#include "matmul/panels.clh"

#if CLUTCH_SPARSE
__kernel void matmul_sparse_panels(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* a, ulong a_offset, __global const uchar* places,
                                   ulong places_offset, __global const uchar* info, ulong info_offset, __global const uchar* b, ulong b_offset,
                                   CLUTCH_ARGS(MatmulArgs, args), CLUTCH_ARGS(MatmulPanelsArgs, tiling) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha,
                                   SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  CLUTCH_TAKE_ARGS(MatmulPanelsArgs, tiling)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_panels_body(CLUTCH_IDS, (__global const ACC*)(a + a_offset), (__global const uint*)(places + places_offset),
                     *(__global const int*)(info + info_offset) >= 0, b + b_offset, args, tiling, alpha, beta,
                     stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#else
#if CLUTCH_A_DEPTH
#define AS_A(p) (p)
#else
#define AS_A(p) ((__global const ACC*)(p))
#endif
__kernel void matmul_panels(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset,
                            CLUTCH_ARGS(MatmulArgs, args), CLUTCH_ARGS(MatmulPanelsArgs, tiling) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha,
                            SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  CLUTCH_TAKE_ARGS(MatmulPanelsArgs, tiling)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_panels_body(CLUTCH_IDS, AS_A(a + a_offset), b + b_offset, args, tiling, alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif
#endif

#ifdef CLUTCH_ENTRY_matmul_dot_rows
// Writes rows of a as words of four bytes (args.h), zero past a row's end and in rows past the last one; signed bytes plus 128. A work-item takes a bundle.
static inline void matmul_dot_rows_body(CLUTCH_ID_PARAMS, __global uint* words, __global const uchar* a, const MatmulDotRowsArgs args) {
  const ulong m = args.m, k = args.k, each = args.row_words, abreast = args.rows_abreast, batch = args.batch;
  const long a_row = args.a_row, a_k = args.a_k, a_batch = args.a_batch;
  const uint flip = args.flip;
  const ulong down = matmul_parts(m, abreast);
  for (ulong i = group * items + item; i < batch * down; i += groups * items) {
    const ulong first = i % down * abreast;
    __global const uchar* from = a + (long)(i / down) * a_batch + (long)first * a_row;
    __global uint* to = words + i * matmul_bundle_words(each, abreast);
    ulong begin = 0;
#if LANES == 16
    // A vector across all rows, if these are contiguous.
    if (a_row == 1 && abreast == LANES && first + abreast <= m)
      for (; 4 * begin + 8 <= k; begin += 2) {
        VI word[2] = {(int)flip, (int)flip};
#pragma unroll
        for (int byte = 0; byte < 8; ++byte) word[byte / 4] ^= loadv_u8(from, (long)(4 * begin + byte) * a_k) << byte % 4 * 8;
        CLUTCH_STORE_VECTOR(__global, CLUTCH_ZIP_LO(word[0], word[1]), (__global int*)to + begin * LANES);
        CLUTCH_STORE_VECTOR(__global, CLUTCH_ZIP_HI(word[0], word[1]), (__global int*)to + (begin + 1) * LANES);
      }
#endif
    for (ulong r = 0; r < abreast; ++r, from += a_row, to += 2) {
      const ulong length = first + r < m ? k : 0;
      ulong w = begin;
#ifdef __ENDIAN_LITTLE__
      if (a_k == 1)
        for (; 4 * w + 16 <= length; w += 4) {
          const uint4 four = as_uint4(vload16(0, from + 4 * w)) ^ flip;
          vstore2(four.s01, 0, to + w * abreast), vstore2(four.s23, 0, to + (w + 2) * abreast);
        }
#endif
      for (; w < each; ++w) {
        uint word = 0;
        for (uint byte = 0; byte < 4; ++byte) word |= (uint)(4 * w + byte < length ? from[(long)(4 * w + byte) * a_k] : 0) << 8 * byte;
        to[matmul_word_at(w, abreast)] = word ^ flip;
      }
    }
  }
}

__kernel void matmul_dot_rows(CLUTCH_PREDICATE __global uchar* words, ulong words_offset, __global const uchar* a, ulong a_offset,
                              CLUTCH_ARGS(MatmulDotRowsArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulDotRowsArgs, args)
  matmul_dot_rows_body(CLUTCH_IDS, (__global uint*)(words + words_offset), a + a_offset, args);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_dot_pack
// Packs b into panels of words, after a row of the columns' sums. A work-item packs a panel.
static inline void matmul_dot_pack_body(CLUTCH_ID_PARAMS, __global int* panels, __global const uchar* b, const MatmulPackArgs args) {
  const ulong k = args.k, n = args.n, across = matmul_parts(n, CLUTCH_PANEL), words = matmul_words(k);
  for (ulong i = group * items + item; i < args.batch * across; i += groups * items) {
    const ulong panel = i % across, left = panel * CLUTCH_PANEL;
    __global int* to = panels + i * matmul_panel_numbers(words, 1, CLUTCH_PANEL);
    VI sum[CLUTCH_VECTORS];
    for (int v = 0; v < CLUTCH_VECTORS; ++v) sum[v] = 0;
    pack_words(to + CLUTCH_PANEL, b, (long)(i / across) * args.b_batch + (long)left * args.b_n, k, min((ulong)CLUTCH_PANEL, n - left), args.b_k, args.b_n, sum);
    for (int v = 0; v < CLUTCH_VECTORS; ++v) CLUTCH_STORE_VECTOR(__global, sum[v], to + v * LANES);
  }
}

__kernel void matmul_dot_pack(CLUTCH_PREDICATE __global uchar* panels, ulong panels_offset, __global const uchar* b, ulong b_offset,
                              CLUTCH_ARGS(MatmulPackArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulPackArgs, args)
  matmul_dot_pack_body(CLUTCH_IDS, (__global int*)(panels + panels_offset), b + b_offset, args);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_lanes
static inline void store_lanes(__global ACC* to, const V* from, ulong matrix_stride, ulong count, ulong length) {
  for (ulong e = 0; e < length; e += LANES) {
    V x[LANES];
#pragma unroll
    for (int l = 0; l < LANES; ++l) x[l] = from[e + l];
    transpose(x);
    if (e + LANES <= length && count == LANES) {
#pragma unroll
      for (ulong l = 0; l < LANES; ++l) CLUTCH_STORE_VECTOR(__global, x[l], to + l * matrix_stride + e);
    } else {
      for (ulong l = 0; l < count; ++l)
        for (ulong i = 0; i < LANES && e + i < length; ++i) to[l * matrix_stride + e + i] = ((const ACC*)x)[l * LANES + i];
    }
  }
}

// Small dense matrices with one stride between them: LANES of them at once, one in each lane.
static inline void matmul_lanes_body(CLUTCH_ID_PARAMS, __global ACC* c, __global const ACC* a, __global const ACC* b, const MatmulLanesArgs args, ACC alpha,
                                     ACC beta) {
  const ulong m = args.m, n = args.n, k = args.k, batch = args.batch, a_batch = args.a_batch, b_batch = args.b_batch, c_batch = args.c_batch;
  V x[MATMUL_LANE_NUMBERS + LANES], y[MATMUL_LANE_NUMBERS + LANES], z[MATMUL_LANE_NUMBERS + LANES];
  for (ulong i = group * items + item; i * LANES < batch; i += groups * items) {
    const ulong first = i * LANES, count = min((ulong)LANES, batch - first);
    load_bundle(x, a + first * a_batch, a_batch, (int)count, (int)(m * k), 1);
    load_bundle(y, b + first * b_batch, b_batch, (int)count, (int)(k * n), 1);
    if (beta != 0) load_bundle(z, c + first * c_batch, c_batch, (int)count, (int)(m * n), 1);
    for (ulong row = 0; row < m; ++row)
      for (ulong column = 0; column < n; column += 4) {
        // Columns past the last one repeat it.
        const ulong at[4] = {column, min(column + 1, n - 1), min(column + 2, n - 1), min(column + 3, n - 1)};
        V sum[4] = {0, 0, 0, 0};
        for (ulong l = 0; l < k; ++l)
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[j] = CLUTCH_FMA(x[row * k + l], y[l * n + at[j]], sum[j]);
        V done[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) done[j] = beta != 0 ? CLUTCH_FMA((V)beta, z[row * n + at[j]], sum[j] * (V)alpha) : sum[j] * (V)alpha;
        for (ulong j = 0; j < min(4ul, n - column); ++j) z[row * n + column + j] = done[j];
      }
    store_lanes(c + first * c_batch, z, c_batch, count, m * n);
  }
}

__kernel void matmul_lanes(CLUTCH_PREDICATE __global uchar* c, ulong c_offset, __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset,
                           CLUTCH_ARGS(MatmulLanesArgs, args), ACC alpha, ACC beta) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulLanesArgs, args)
  matmul_lanes_body(CLUTCH_IDS, (__global ACC*)(c + c_offset), (__global const ACC*)(a + a_offset), (__global const ACC*)(b + b_offset), args, alpha, beta);
}
#endif

#if defined(CLUTCH_ENTRY_matmul_tiles) || defined(CLUTCH_ENTRY_matmul_sparse_tiles) || defined(CLUTCH_ENTRY_matmul_few)
#include "matmul/numbers.clh"
#endif
#if defined(CLUTCH_ENTRY_matmul_tiles) || defined(CLUTCH_ENTRY_matmul_sparse_tiles)
#include "matmul/tiles.clh"
#endif

#ifdef CLUTCH_ENTRY_matmul_tiles
__kernel void matmul_tiles(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset,
                           CLUTCH_ARGS(MatmulArgs, args) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha, SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  // matmul_tile_numbers() of each matrix, aligned for vectors of four
  __local NUMBER tiles[2 * CLUTCH_TILE_K * (CLUTCH_PITCH_A + CLUTCH_PITCH_B)] __attribute__((aligned(32)));
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_tiles_body(tiles, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), a + a_offset, b + b_offset, args, alpha, beta,
                    stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_few
#include "matmul/few.clh"

__kernel void matmul_few(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset,
                         CLUTCH_ARGS(MatmulArgs, args) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha, SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  // matmul_few_numbers() in all, aligned for vectors of four
  __local NUMBER lines[MATMUL_FEW_LINES * MATMUL_FEW_DEPTH] __attribute__((aligned(32))),
      few[CLUTCH_FEW_EACH * MATMUL_FEW * MATMUL_FEW_DEPTH] __attribute__((aligned(32)));
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_few_body(lines, few, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), a + a_offset, b + b_offset, args, alpha, beta,
                  stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#if defined(CLUTCH_ENTRY_matmul_matrix) || defined(CLUTCH_ENTRY_matmul_sparse_matrix)
#include "matmul/matrix.clh"
#endif

#ifdef CLUTCH_ENTRY_matmul_matrix
__kernel CLUTCH_LANES_OF_SUB_GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void matmul_matrix(
    CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset,
    CLUTCH_ARGS(MatmulArgs, args) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha, SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  MATRIX_LOCAL_MEMORY
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_matrix_body(lines, model, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), a + a_offset, b + b_offset, args, alpha, beta,
                     stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_sparse_matrix
__kernel CLUTCH_LANES_OF_SUB_GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void matmul_sparse_matrix(
    CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* values, ulong values_offset, __global const uchar* metadata, ulong metadata_offset,
    __global const uchar* info, ulong info_offset, __global const uchar* b, ulong b_offset, CLUTCH_ARGS(MatmulArgs, args) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha,
    SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  MATRIX_LOCAL_MEMORY
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_matrix_body(lines, model, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), values + values_offset, metadata + metadata_offset,
                     (__global const int*)(info + info_offset), b + b_offset, args, alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_sparse_tiles
__kernel void matmul_sparse_tiles(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* values, ulong values_offset,
                                  __global const uchar* metadata, ulong metadata_offset, __global const uchar* info, ulong info_offset, __global const uchar* b,
                                  ulong b_offset, CLUTCH_ARGS(MatmulArgs, args) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha, SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  // matmul_tile_numbers() of each matrix, aligned for vectors of four
  __local NUMBER tiles[2 * CLUTCH_TILE_K * (CLUTCH_PITCH_A + CLUTCH_PITCH_B)] __attribute__((aligned(32)));
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_tiles_body(tiles, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), values + values_offset, metadata + metadata_offset,
                    *(__global const int*)(info + info_offset) >= 0, b + b_offset, args, alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_sparse_rows
#include "matmul/sparse_rows.clh"

__kernel void matmul_sparse_rows(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* numbers, ulong numbers_offset,
                                 __global const uchar* places, ulong places_offset, __global const uchar* info, ulong info_offset, __global const uchar* b,
                                 ulong b_offset, CLUTCH_ARGS(MatmulArgs, args) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha, SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_sparse_rows_body(CLUTCH_IDS, numbers + numbers_offset, (__global const uint*)(places + places_offset), *(__global const int*)(info + info_offset) >= 0,
                          (__global const ACC*)(b + b_offset), args, alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_sparse_dot
#include "matmul/sparse_dot.clh"

__kernel void matmul_sparse_dot(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* a, ulong a_offset, __global const uchar* info,
                                ulong info_offset, __global const uchar* b, ulong b_offset, CLUTCH_ARGS(MatmulArgs, args),
                                ulong tiles_each CLUTCH_STRIDE_PARAMS, int alpha, int beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_sparse_dot_body(CLUTCH_IDS, (__global const int*)(a + a_offset), *(__global const int*)(info + info_offset) >= 0, (__global const int*)(b + b_offset),
                         args, tiles_each, alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_sparse_items
// A row has two values of each quad along k; four bits of metadata are their positions in the quad.
static inline void matmul_sparse_items_body(CLUTCH_ID_PARAMS, __global const uchar* values, __global const uchar* metadata, int poisoned,
                                            __global const uchar* b, const MatmulArgs args, SUM_ONE alpha, SUM_ONE beta,
                                            const IDX (*stride)[CLUTCH_RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  const ulong m = args.m, n = args.n, k = args.k, batch = args.batch;
  const long b_k = args.b_k, b_n = args.b_n, b_batch = args.b_batch;
  const ulong row_groups = sparse24_row_groups(k);
  for (ulong i = group * items + item; i < batch * m * n; i += groups * items) {
    const ulong column = i % n, row = i / n % m, of = i / n / m;
    const long from_b = (long)of * b_batch + (long)column * b_n;
    __global const uchar* codes = metadata + row * sparse24_row_metadata(row_groups);
    SUM_ONE sum = 0;
    for (ulong j = 0; j < 2 * row_groups; ++j) {
      const uint code = codes[j / 4] >> 2 * (j % 4) & 3;
      const ulong at = j / 2 * 4 + code;
      if (at >= k) continue;
#if CLUTCH_IS_INTEGER
      sum = (int)((uint)sum + (uint)((int)CLUTCH_LOAD_A(values, (long)(row * 2 * row_groups + j)) * (int)CLUTCH_LOAD_B(b, from_b + (long)at * b_k)));
#else
      sum = CLUTCH_FMA((ACC)CLUTCH_LOAD_A(values, (long)(row * 2 * row_groups + j)), (ACC)CLUTCH_LOAD_B(b, from_b + (long)at * b_k), sum);
#endif
    }
    epilogue(CLUTCH_CHECK(sum), of, row, column, 1, 1, alpha, beta, stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
  }
}

__kernel void matmul_sparse_items(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* values, ulong values_offset,
                                  __global const uchar* metadata, ulong metadata_offset, __global const uchar* info, ulong info_offset, __global const uchar* b,
                                  ulong b_offset, CLUTCH_ARGS(MatmulArgs, args) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha, SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_sparse_items_body(CLUTCH_IDS, values + values_offset, metadata + metadata_offset, *(__global const int*)(info + info_offset) >= 0, b + b_offset, args,
                           alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_items
static inline void matmul_items_body(CLUTCH_ID_PARAMS, __global const uchar* a, __global const uchar* b, const MatmulArgs args, SUM_ONE alpha, SUM_ONE beta,
                                     const IDX (*stride)[CLUTCH_RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  const ulong m = args.m, n = args.n, k = args.k, batch = args.batch;
  const long a_row = args.a_row, a_k = args.a_k, a_batch = args.a_batch, b_k = args.b_k, b_n = args.b_n, b_batch = args.b_batch;
  for (ulong i = group * items + item; i < batch * m * n; i += groups * items) {
    const ulong column = i % n, row = i / n % m, of = i / n / m;
    long from_a = (long)of * a_batch + (long)row * a_row, from_b = (long)of * b_batch + (long)(column / (1 + CLUTCH_COMPLEX)) * b_n;
    SUM_ONE sum = 0;
    for (ulong j = 0; j < k; ++j, from_a += a_k, from_b += b_k) {
#if CLUTCH_IS_INTEGER
      sum = (int)((uint)sum + (uint)((int)CLUTCH_LOAD_A(a, from_a) * (int)CLUTCH_LOAD_B(b, from_b)));
#elif CLUTCH_COMPLEX
      const ACC re = (ACC)CLUTCH_LOAD_B(b, 2 * from_b), im = (ACC)CLUTCH_LOAD_B(b, 2 * from_b + 1);
      sum = CLUTCH_FMA((ACC)CLUTCH_LOAD_A(a, 2 * from_a), column & 1 ? im : re, sum);
      sum = CLUTCH_FMA((ACC)CLUTCH_LOAD_A(a, 2 * from_a + 1), column & 1 ? re : -im, sum);
#else
      sum = CLUTCH_FMA((ACC)CLUTCH_LOAD_A(a, from_a), (ACC)CLUTCH_LOAD_B(b, from_b), sum);
#endif
    }
    epilogue(sum, of, row, column, 1, 1, alpha, beta, stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
  }
}

__kernel void matmul_items(CLUTCH_PREDICATE CLUTCH_BUFFER_KERNEL_PARAMS, __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset,
                           CLUTCH_ARGS(MatmulArgs, args) CLUTCH_STRIDE_PARAMS, SUM_ONE alpha, SUM_ONE beta CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(MatmulArgs, args)
  IDX stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_items_body(CLUTCH_IDS, a + a_offset, b + b_offset, args, alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif
