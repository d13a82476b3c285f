// SPDX-License-Identifier: Apache-2.0
// Well-known kernels whose speed on a GPU others have published (tests/gpu/published.tsv names who): our own text of their algorithms, by which the cost model
// is judged. None of them was looked at when its constants were chosen. public_test.cpp runs them on the simulator at small sizes, published.py compiles them.
// Needs: TILE, ROWS, PAD, VEC (transpose_*), VEC and GROUP (sum_*), BM, BN, BK, TM, TN (matmul_*); int sizes are multiples of the tiles.
#define ARGS __global uchar *out_base, ulong out_offset, __global const uchar *in_base, ulong in_offset
#define OUT(T) __global T* const restrict out = (__global T*)(out_base + out_offset)
#define IN(T) __global const T* const restrict in = (__global const T*)(in_base + in_offset)

// ---- transposes of an n x n matrix: Harris, "An Efficient Matrix Transpose in CUDA C/C++" ----

#ifdef PUBLIC_TRANSPOSE_NAIVE
__kernel void transpose_naive(ARGS, int n) {
  OUT(float);
  IN(float);
  const int x = get_global_id(0), y = get_global_id(1);
  out[x * n + y] = in[y * n + x];
}
#endif

// TILE x TILE by groups of TILE x ROWS items, through local memory whose rows are PAD longer.
#ifdef PUBLIC_TRANSPOSE_TILED
__kernel void transpose_tiled(ARGS, int n) {
  OUT(float);
  IN(float);
  __local float tile[TILE][TILE + PAD];
  const int across = get_local_id(0), down = get_local_id(1), column = get_group_id(0) * TILE, row = get_group_id(1) * TILE;
  for (int j = down; j < TILE; j += ROWS) tile[j][across] = in[(row + j) * n + column + across];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int j = down; j < TILE; j += ROWS) out[(column + j) * n + row + across] = tile[across][j];
}
#endif

// The same with four elements at a time: TILE / 4 x ROWS items.
#ifdef PUBLIC_TRANSPOSE_QUADS
__kernel void transpose_quads(ARGS, int n) {
  OUT(float4);
  IN(float4);
  __local float tile[TILE][TILE + 1];
  const int across = get_local_id(0), down = get_local_id(1), column = get_group_id(0) * TILE, row = get_group_id(1) * TILE;
  for (int j = down; j < TILE; j += ROWS) {
    const float4 quad = in[((row + j) * n + column) / 4 + across];
    tile[j][4 * across] = quad.x;
    tile[j][4 * across + 1] = quad.y;
    tile[j][4 * across + 2] = quad.z;
    tile[j][4 * across + 3] = quad.w;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int j = down; j < TILE; j += ROWS)
    out[((column + j) * n + row) / 4 + across] = (float4)(tile[4 * across][j], tile[4 * across + 1][j], tile[4 * across + 2][j], tile[4 * across + 3][j]);
}
#endif

// ---- sums of n integers by few groups, each of which leaves one sum: Harris, "Optimizing Parallel Reduction in CUDA" ----

#ifdef PUBLIC_SUM
#if VEC == 4
typedef int4 numbers;
#define SUM_OF(v) (v.x + v.y + v.z + v.w)
#elif VEC == 2
typedef int2 numbers;
#define SUM_OF(v) (v.x + v.y)
#else
typedef int numbers;
#define SUM_OF(v) (v)
#endif
__kernel void sum_groups(ARGS, int n) {
  OUT(int);
  IN(numbers);
  __local int part[GROUP];
  const int item = get_local_id(0);
  int sum = 0;
  for (int i = get_global_id(0); i < n / VEC; i += get_global_size(0)) {
    const numbers v = in[i];
    sum += SUM_OF(v);
  }
  part[item] = sum;
  for (int step = GROUP / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < step) part[item] += part[item + step];
  }
  if (item == 0) out[get_group_id(0)] = part[0];
}
#endif

// ---- c = a b of n x k and k x n matrices that are not transposed; b follows a in `in` ----

#define MATRICES                               \
  OUT(float);                                  \
  IN(float);                                   \
  __global const float* const restrict a = in; \
  __global const float* const restrict b = in + n * k

// An item an element; neighbours in the group have the rows of a column (ALONG_ROWS 0) or the columns of a row (1).
#ifdef PUBLIC_MATMUL_ITEMS
__kernel void matmul_items(ARGS, int n, int k) {
  MATRICES;
  const int first = get_local_id(0) % 32, second = get_local_id(0) / 32;
  const int row = 32 * get_group_id(0) + (ALONG_ROWS ? second : first), column = 32 * get_group_id(1) + (ALONG_ROWS ? first : second);
  float sum = 0;
  for (int i = 0; i < k; ++i) sum = fma(a[row * k + i], b[i * n + column], sum);
  out[row * n + column] = sum;
}
#endif

// Blocks of 32 x 32 in local memory, an item an element.
#ifdef PUBLIC_MATMUL_BLOCKS
__kernel void matmul_blocks(ARGS, int n, int k) {
  MATRICES;
  __local float as[32 * 32], bs[32 * 32];
  const int across = get_local_id(0) % 32, down = get_local_id(0) / 32;
  const int row = 32 * get_group_id(0), column = 32 * get_group_id(1);
  float sum = 0;
  for (int block = 0; block < k; block += 32) {
    as[down * 32 + across] = a[(row + down) * k + block + across];
    bs[down * 32 + across] = b[(block + down) * n + column + across];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 32; ++i) sum = fma(as[down * 32 + i], bs[i * 32 + across], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  out[(row + down) * n + column + across] = sum;
}
#endif

// Blocks of BM x BK and BK x BN; an item has TM results below each other.
#ifdef PUBLIC_MATMUL_COLUMNS
__kernel void matmul_columns(ARGS, int n, int k) {
  MATRICES;
  __local float as[BM * BK], bs[BK * BN];
  const int item = get_local_id(0), across = item % BN, down = item / BN;
  const int row = BM * get_group_id(1), column = BN * get_group_id(0);
  float sums[TM] = {0.0f};
  for (int block = 0; block < k; block += BK) {
    as[item] = a[(row + item / BK) * k + block + item % BK];
    bs[item] = b[(block + item / BN) * n + column + item % BN];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < BK; ++i) {
      const float of_b = bs[i * BN + across];
#pragma unroll
      for (int m = 0; m < TM; ++m) sums[m] = fma(as[(down * TM + m) * BK + i], of_b, sums[m]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int m = 0; m < TM; ++m) out[(row + down * TM + m) * n + column + across] = sums[m];
}
#endif

// An item has TM x TN results, of neighbouring rows and columns.
#ifdef PUBLIC_MATMUL_TILES
__kernel void matmul_tiles(ARGS, int n, int k) {
  MATRICES;
  __local float as[BM * BK], bs[BK * BN];
  const int item = get_local_id(0), items = BM * BN / (TM * TN), across = item % (BN / TN), down = item / (BN / TN);
  const int row = BM * get_group_id(1), column = BN * get_group_id(0);
  float sums[TM * TN] = {0.0f};
  for (int block = 0; block < k; block += BK) {
    for (int at = item; at < BM * BK; at += items) as[at] = a[(row + at / BK) * k + block + at % BK];
    for (int at = item; at < BK * BN; at += items) bs[at] = b[(block + at / BN) * n + column + at % BN];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < BK; ++i) {
      float of_a[TM], of_b[TN];
#pragma unroll
      for (int m = 0; m < TM; ++m) of_a[m] = as[(down * TM + m) * BK + i];
#pragma unroll
      for (int m = 0; m < TN; ++m) of_b[m] = bs[i * BN + across * TN + m];
#pragma unroll
      for (int m = 0; m < TM; ++m)
#pragma unroll
        for (int j = 0; j < TN; ++j) sums[m * TN + j] = fma(of_a[m], of_b[j], sums[m * TN + j]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int m = 0; m < TM; ++m)
#pragma unroll
    for (int j = 0; j < TN; ++j) out[(row + down * TM + m) * n + column + across * TN + j] = sums[m * TN + j];
}
#endif

// The same with quads from global memory, a's block transposed, and quads from local memory.
#ifdef PUBLIC_MATMUL_QUADS
__kernel void matmul_quads(ARGS, int n, int k) {
  MATRICES;
  __local float as[BK * BM] __attribute__((aligned(16))), bs[BK * BN] __attribute__((aligned(16)));
  const int item = get_local_id(0), items = BM * BN / (TM * TN), across = item % (BN / TN), down = item / (BN / TN);
  const int row = BM * get_group_id(1), column = BN * get_group_id(0);
  float4 sums[TM * TN / 4] = {0.0f};
  for (int block = 0; block < k; block += BK) {
    for (int at = item; at < BM * BK / 4; at += items) {
      const int line = at / (BK / 4), step = 4 * (at % (BK / 4));
      const float4 quad = *(__global const float4*)(a + (row + line) * k + block + step);
      as[step * BM + line] = quad.x;
      as[(step + 1) * BM + line] = quad.y;
      as[(step + 2) * BM + line] = quad.z;
      as[(step + 3) * BM + line] = quad.w;
    }
    for (int at = item; at < BK * BN / 4; at += items) {
      const int line = at / (BN / 4), step = 4 * (at % (BN / 4));
      *(__local float4*)(bs + line * BN + step) = *(__global const float4*)(b + (block + line) * n + column + step);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < BK; ++i) {
      float4 of_a[TM / 4], of_b[TN / 4];
#pragma unroll
      for (int m = 0; m < TM / 4; ++m) of_a[m] = *(__local const float4*)(as + i * BM + down * TM + 4 * m);
#pragma unroll
      for (int j = 0; j < TN / 4; ++j) of_b[j] = *(__local const float4*)(bs + i * BN + across * TN + 4 * j);
#pragma unroll
      for (int m = 0; m < TM / 4; ++m)
#pragma unroll
        for (int j = 0; j < TN / 4; ++j) {
          sums[(4 * m + 0) * (TN / 4) + j] = fma((float4)(of_a[m].x), of_b[j], sums[(4 * m + 0) * (TN / 4) + j]);
          sums[(4 * m + 1) * (TN / 4) + j] = fma((float4)(of_a[m].y), of_b[j], sums[(4 * m + 1) * (TN / 4) + j]);
          sums[(4 * m + 2) * (TN / 4) + j] = fma((float4)(of_a[m].z), of_b[j], sums[(4 * m + 2) * (TN / 4) + j]);
          sums[(4 * m + 3) * (TN / 4) + j] = fma((float4)(of_a[m].w), of_b[j], sums[(4 * m + 3) * (TN / 4) + j]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int m = 0; m < TM; ++m)
#pragma unroll
    for (int j = 0; j < TN / 4; ++j) *(__global float4*)(out + (row + down * TM + m) * n + column + across * TN + 4 * j) = sums[m * (TN / 4) + j];
}
#endif

// An item has 8 x 8 results in four pieces of 4 x 4, and 32 items side by side, 8 x 4 of them, a part of 64 x 32; elements are loaded one by one.
#ifdef PUBLIC_MATMUL_WAVES
__kernel void matmul_waves(ARGS, int n, int k) {
  MATRICES;
  __local float as[BK * BM] __attribute__((aligned(16))), bs[BK * BN] __attribute__((aligned(16)));
  const int item = get_local_id(0), items = BM * BN / 64, wave = item / 32, across = item % 8, down = item % 32 / 8;
  const int row = BM * get_group_id(1), column = BN * get_group_id(0), part_row = wave / (BN / 64) * 32, part_column = wave % (BN / 64) * 64;
  float4 sums[8][2] = {{0.0f}};
  for (int block = 0; block < k; block += BK) {
    for (int at = item; at < BK * BN; at += items) bs[at] = b[(block + at / BN) * n + column + at % BN];
    for (int at = item; at < BM * BK; at += items) as[at % BK * BM + at / BK] = a[(row + at / BK) * k + block + at % BK];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < BK; ++i) {
      float4 of_a[2], of_b[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) of_b[j] = *(__local const float4*)(bs + i * BN + part_column + 32 * j + 4 * across);
#pragma unroll
      for (int m = 0; m < 2; ++m) of_a[m] = *(__local const float4*)(as + i * BM + part_row + 16 * m + 4 * down);
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          sums[4 * m][j] = fma((float4)(of_a[m].x), of_b[j], sums[4 * m][j]);
          sums[4 * m + 1][j] = fma((float4)(of_a[m].y), of_b[j], sums[4 * m + 1][j]);
          sums[4 * m + 2][j] = fma((float4)(of_a[m].z), of_b[j], sums[4 * m + 2][j]);
          sums[4 * m + 3][j] = fma((float4)(of_a[m].w), of_b[j], sums[4 * m + 3][j]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int line = 0; line < 4; ++line)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        *(__global float4*)(out + (row + part_row + 16 * m + 4 * down + line) * n + column + part_column + 32 * j + 4 * across) = sums[4 * m + line][j];
}
#endif
