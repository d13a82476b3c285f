// SPDX-License-Identifier: Apache-2.0
// matmul_panels: tiles of ROWS rows and VECTORS vectors of columns in registers; k goes by blocks whose pieces of a and b stay in a core's caches, while
// sums wait in private memory. B_AT says how b comes: PACKED in panels of a tile's columns, row after row (by matmul_pack); as it lies (DIRECT); or
// INSIDE, when items bring blocks of it into private memory.
// With DOT its numbers are words of four bytes, by matmul_dot_rows and matmul_dot_pack, and sums of products an instruction (1) or spelled out (2).
// matmul_sparse_panels: as matmul_panels with a 2:4 matrix on the left, packed by sparse24_pack: two numbers of each four along k, and where in a
// panel the rows of b lie that they meet. matmul_sparse_rows: for few columns, TOKENS at a time, which come in the compute type: LANES rows of the
// matrix side by side, each of which selects what it meets. matmul_sparse_items: their reference, on canonical values and metadata. Where `info` names a group
// that was not 2:4 all results are NaN, or the least integer. matmul_lanes: batches of small matrices, one in each lane of an item's vectors. matmul_tiles:
// tiles of TILE_M x TILE_N in work-groups with local memory, double-buffered along k. matmul_items: the reference, any strides. Every element is one chain of
// fma in the order of k; with INTEGER, exact modulo 2^32. Complex numbers are pairs of real columns: (re, im) times rows (re, im) and (-im, re). Ownership: an
// item of matmul_panels takes `rows_each` rows by `panels_each` panels of the result; of matmul_pack PACK_ROWS rows of a panel; of matmul_items an element. A
// group of matmul_tiles takes a tile. Local memory: matmul_tiles, 2 x TILE_K x (TILE_M + TILE_N) numbers. TURNED (of matmul_sparse_panels): strides of results
// come as those of the transposed matrix, whose columns lie side by side. Needs: A_NAME (a of matmul_items and matmul_tiles), B_NAME (b as it is read), O_NAME
// (what beta reads), ACC (compute type), INTEGER, COMPLEX, DOT, B_AT, ROWS, VECTORS, BLOCK_VECTORS (most of a block INSIDE), HELD_TILES (most tiles of an
// item), PACK_ROWS, TILE_M, TILE_N, ITEMS_DOWN and ITEMS_ACROSS (of matmul_tiles), GROUPED (work-groups have several items), expression.clh (of the epilogue,
// whose operand 0 is what it reads as well as what it writes), and what the included files need.
#include "common/expr.clh"
#include "common/f8.clh"
#include "common/launch.clh"

#if !defined(A_NAME) || !defined(B_NAME) || !defined(O_NAME) || !defined(ACC) || !defined(OPERANDS) || !defined(IDX) || !defined(RANK_LANES)
#error "A_NAME, B_NAME, O_NAME, ACC, OPERANDS, IDX and RANK_LANES are not defined"
#endif

#if defined(CLUTCH_ENTRY_matmul_sparse_panels) || defined(CLUTCH_ENTRY_matmul_sparse_rows) || defined(CLUTCH_ENTRY_matmul_sparse_items)
#define SPARSE 1
#else
#define SPARSE 0
#endif
#if defined(CLUTCH_ENTRY_matmul_panels) || defined(CLUTCH_ENTRY_matmul_sparse_panels)
#define BY_PANELS 1
#else
#define BY_PANELS 0
#endif
#if !SPARSE
#define TURNED 0
#endif
#define PACKED 0
#define DIRECT 1
#define INSIDE 2

#define SHAPE_VECTOR CLUTCH_CONCAT(IDX, RANK_LANES)
#include "expression.clh"

#define LANES WIDTH
#if DOT
#define V VI
#define ACC_NAME i32
#define FMA(a, b, c) dot_of_bytes(a, b, c)
// To each lane of `sum` the products of four bytes of a, unsigned, and of b, signed.
static inline VI dot_of_bytes(VI a, VI b, VI sum) {
#if DOT == 1
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
#else
  for (int i = 0; i < 32; i += 8) sum = CLUTCH_WRAP_32(sum, +, CLUTCH_AS_VU((a >> i & 255) * (b << (24 - i) >> 24)));
#endif
  return sum;
}
#elif defined(ACC_IS_F64)
#define V VD
#define ACC_NAME f64
#define FMA(a, b, c) fma(a, b, c)
#else
#define V VF
#define ACC_NAME f32
#define FMA(a, b, c) fma_rn(a, b, c)
#endif
#define T ACC
#define R V
#define MEM
#include "common/transpose.clh"
#if LANES == 1
#define clutch_unaligned ACC
#endif
#if LANES > 1
#define PUT_LANES(mem, x, p) (*(mem clutch_unaligned*)(p) = (x))
#else
#define PUT_LANES(mem, x, p) (*(p) = (x))
#endif
#define PANEL (VECTORS * LANES)
#define LOAD_A CLUTCH_CONCAT(load_, A_NAME)
#define LOAD_B CLUTCH_CONCAT(load_, B_NAME)
#define LOADV_B CLUTCH_CONCAT(loadv_, B_NAME)

// SUM: what chains end in and results are made of. Integers are summed as floats, exactly: 512 products of them stay below 2^24.
#if INTEGER
#define SUM VI
#define SUM_ONE int
#if DOT
#define TO_ACC(x) (x)
#else
#define TO_ACC(x) CLUTCH_I_TO_VF(x)
#endif
#define SCALED(sum, alpha) CLUTCH_WRAP_32(sum, *, (SUM)(alpha))
#define PLUS(beta, before, sum) CLUTCH_WRAP_32(sum, +, CLUTCH_WRAP_32((SUM)(beta), *, before))
#else
#define SUM V
#define SUM_ONE ACC
#define TO_ACC(x) (x)
#define SCALED(sum, alpha) ((sum) * (SUM)(alpha))
#define PLUS(beta, before, sum) FMA((SUM)(beta), before, sum)
#endif

// ---- results: alpha, beta, the epilogue ----
#define LOAD_WHOLE(k, dtype) CLUTCH_CONCAT(LOAD_WHOLE_, k)(dtype)
#define LOAD_WHOLE_0(dtype) acc
#define LOAD_WHOLE_OF(k, dtype) \
  (stride[k][1] ? CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), place[k]) : CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), place[k]))
#define LOAD_WHOLE_1(dtype) LOAD_WHOLE_OF(1, dtype)
#define LOAD_WHOLE_2(dtype) LOAD_WHOLE_OF(2, dtype)
#define LOAD_WHOLE_3(dtype) LOAD_WHOLE_OF(3, dtype)
#define LOAD_WHOLE_4(dtype) LOAD_WHOLE_OF(4, dtype)
#define LOAD_WHOLE_5(dtype) LOAD_WHOLE_OF(5, dtype)
#define POSITION_WHOLE(k) ((VL)place[k] + CLUTCH_IOTA_VL * (VL)stride[k][1])
#define STORE_WHOLE(k, dtype, x) CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), place[k], x)

#define LOAD_PLACES(k, dtype) CLUTCH_CONCAT(LOAD_PLACES_, k)(dtype)
#define LOAD_PLACES_0(dtype) acc
#define LOAD_PLACES_OF(k, dtype) CLUTCH_CONCAT(gather_, dtype)(CLUTCH_CONCAT(b, k), at[k], count)
#define LOAD_PLACES_1(dtype) LOAD_PLACES_OF(1, dtype)
#define LOAD_PLACES_2(dtype) LOAD_PLACES_OF(2, dtype)
#define LOAD_PLACES_3(dtype) LOAD_PLACES_OF(3, dtype)
#define LOAD_PLACES_4(dtype) LOAD_PLACES_OF(4, dtype)
#define LOAD_PLACES_5(dtype) LOAD_PLACES_OF(5, dtype)
#define POSITION_PLACES(k) clutch_positions(at[k])
#define STORE_PLACES(k, dtype, x) CLUTCH_CONCAT(scatter_, dtype)(CLUTCH_CONCAT(b, k), at[k], count, x)

// LANES results from (row, column) of matrix `of` on, `count` of which exist. flat: columns of the result lie side by side, those of others too or are one.
static inline void finish(SUM acc, ulong of, ulong row, ulong column, int count, uint flat, SUM_ONE alpha, SUM_ONE beta,
                          const IDX (*stride)[RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  IDX place[OPERANDS];
  for (int k = 0; k < OPERANDS; ++k) place[k] = (IDX)row * stride[k][0] + (IDX)column * stride[k][1] + (IDX)of * stride[k][2];
  acc = SCALED(acc, alpha);
  if (flat && count == LANES) {
    if (beta != 0) acc = PLUS(beta, CLUTCH_CONCAT(loadv_, O_NAME)(b0, place[0]), acc);
    CLUTCH_EXPRESSION(LOAD_WHOLE, POSITION_WHOLE, STORE_WHOLE)
    return;
  }
  IDX at[OPERANDS][LANES];
  for (int k = 0; k < OPERANDS; ++k)
    for (int l = 0; l < LANES; ++l) at[k][l] = place[k] + l * stride[k][1];
  if (beta != 0) acc = PLUS(beta, CLUTCH_CONCAT(gather_, O_NAME)(b0, at[0], count), acc);
  CLUTCH_EXPRESSION(LOAD_PLACES, POSITION_PLACES, STORE_PLACES)
}

#if !defined(CLUTCH_ENTRY_matmul_items) && !defined(CLUTCH_ENTRY_matmul_sparse_items) && !DOT
// A real number of row r and column c of b, counted from element `from`.
static inline ACC number_of(__global const uchar* b, long from, ulong r, ulong c, long b_k, long b_n) {
#if COMPLEX
  const long at = 2 * (from + (long)(r / 2) * b_k + (long)(c / 2) * b_n);
  const ACC x = (ACC)LOAD_B(b, at + (long)((r ^ c) & 1));
  return r & 1 && !(c & 1) ? -x : x;
#else
  return (ACC)LOAD_B(b, from + (long)r * b_k + (long)c * b_n);
#endif
}
#endif

// ---- panels ----
#if defined(CLUTCH_HAS_STREAMING) && WIDTH > 4 && !defined(GROUPED)
#define FETCH_LINE(p) __builtin_prefetch((const void*)(size_t)(p), 0, 2)
#else
#define FETCH_LINE(p)
#endif
#if !BY_PANELS
#define PANEL_MEM __global
#else
#define PANEL_MEM
#endif
#if (defined(CLUTCH_ENTRY_matmul_pack) || (BY_PANELS && B_AT == INSIDE)) && !DOT
// `rows` rows of a panel, of whose columns `columns` exist; the others become zero.
static inline void pack_rows(PANEL_MEM ACC* out, __global const uchar* b, long from, ulong rows, ulong columns, long b_k, long b_n) {
#if !COMPLEX
  if (b_n == 1 && columns == PANEL) {
    for (ulong r = 0; r < rows; ++r)
      for (int v = 0; v < VECTORS; ++v) PUT_LANES(PANEL_MEM, TO_ACC(LOADV_B(b, from + (long)r * b_k + v * LANES)), out + r * PANEL + v * LANES);
    return;
  }
#endif
  ulong begin = 0;
#if LANES > 1 && !COMPLEX
  if (b_k == 1) {
    begin = rows / LANES * LANES;
    for (ulong c = 0; c < PANEL; c += LANES)
      for (ulong r = 0; r < begin; r += LANES) {
        V x[LANES];
#pragma unroll
        for (int l = 0; l < LANES; ++l) x[l] = c + l < columns ? TO_ACC(LOADV_B(b, from + (long)r + (long)(c + l) * b_n)) : (V)0;
        transpose(x);
#pragma unroll
        for (int l = 0; l < LANES; ++l) PUT_LANES(PANEL_MEM, x[l], out + (r + l) * PANEL + c);
      }
  }
#endif
  for (ulong c = 0; c < PANEL; ++c)
    for (ulong r = begin; r < rows; ++r) out[r * PANEL + c] = c < columns ? number_of(b, from, r, c, b_k, b_n) : (ACC)0;
}
#endif

#if DOT && (defined(CLUTCH_ENTRY_matmul_dot_pack) || (BY_PANELS && B_AT == INSIDE))
#define FETCH_AHEAD 32  // rows, which lie on pages of their own
// `rows` rows of a panel in words of four of them; to `sum` their columns' sums. Rows and columns that do not exist become zero.
static inline void pack_words(PANEL_MEM int* out, __global const uchar* b, long from, ulong rows, ulong columns, long b_k, long b_n, VI* sum) {
  ulong begin = 0;
#if LANES > 1
  if (b_k == 1) {
    begin = rows / (4 * LANES) * LANES;
    for (ulong v = 0; v < VECTORS; ++v)
      for (ulong w = 0; w < begin; w += LANES) {
        VI x[LANES];
#pragma unroll
        for (ulong l = 0; l < LANES; ++l)
          x[l] = v * LANES + l < columns ? *(__global const clutch_unaligned*)(b + from + (long)(4 * w) + (long)(v * LANES + l) * b_n) : (VI)0;
        transpose(x);
#pragma unroll
        for (ulong l = 0; l < LANES; ++l) {
          sum[v] = FMA((VI)0x01010101, x[l], sum[v]);
          PUT_LANES(PANEL_MEM, x[l], out + (w + l) * PANEL + v * LANES);
        }
      }
  }
#endif
  for (ulong w = begin; 4 * w < rows; ++w) {
    VI word[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) word[v] = 0;
#pragma unroll
    for (uint byte = 0; byte < 4; ++byte) {
      const ulong row = 4 * w + byte;
      if (row >= rows) continue;
      const long at = from + (long)row * b_k;
      FETCH_LINE(b + at + FETCH_AHEAD * b_k);
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) {
        VI x;
        if (b_n == 1 && (ulong)(v + 1) * LANES <= columns) {
          x = loadv_u8(b, at + (long)(v * LANES));
        } else {
          int some[LANES];
          for (ulong l = 0; l < LANES; ++l) some[l] = v * LANES + l < columns ? (int)load_u8(b, at + (long)(v * LANES + l) * b_n) : 0;
          x = CLUTCH_FILL(some);
        }
        word[v] |= x << 8 * (int)byte;
      }
    }
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
      sum[v] = FMA((VI)0x01010101, word[v], sum[v]);
      PUT_LANES(PANEL_MEM, word[v], out + w * PANEL + v * LANES);
    }
  }
}
#endif

#ifdef CLUTCH_ENTRY_matmul_pack
static inline void matmul_pack_body(CLUTCH_ID_PARAMS, __global ACC* panels, __global const uchar* b, ulong k, ulong n, long b_k, long b_n, long b_batch,
                                    ulong batch) {
  const ulong across = (n + PANEL - 1) / PANEL, blocks = (k + PACK_ROWS - 1) / PACK_ROWS, count = batch * across * blocks;
  for (ulong i = group * lanes + lane; i < count; i += groups * lanes) {
    const ulong block = i % blocks, panel = i / blocks % across, of = i / blocks / across;
    const ulong first = block * PACK_ROWS, rows = min((ulong)PACK_ROWS, k - first), left = panel * PANEL, columns = min((ulong)PANEL, n - left);
    // Of complex numbers n and k count parts, strides numbers.
    const long from = (long)of * b_batch + (long)(first / (1 + COMPLEX)) * b_k + (long)(left / (1 + COMPLEX)) * b_n;
    pack_rows(panels + ((of * across + panel) * k + first) * PANEL, b, from, rows, columns, b_k, b_n);
  }
}

__kernel void matmul_pack(CLUTCH_PREDICATE __global uchar* panels, ulong panels_offset, __global const uchar* b, ulong b_offset, ulong k, ulong n, long b_k,
                          long b_n, long b_batch, ulong batch) {
  CLUTCH_IF_PREDICATE
  matmul_pack_body(CLUTCH_IDS, (__global ACC*)(panels + panels_offset), b + b_offset, k, n, b_k, b_n, b_batch, batch);
}
#endif

// What a product is where a strict 2:4 matrix is none.
#if INTEGER
#define POISON INT_MIN
#else
#define POISON NAN
#endif

#if BY_PANELS
// Lines of the next block are fetched between every so many steps along k.
#define FETCH_EVERY 32
// Rows of b as it lies of a step, and numbers before a panel's.
#if DOT && B_AT == INSIDE
#define STEP_K 4
#else
#define STEP_K 1
#endif
#if DOT && B_AT != INSIDE
#define BEFORE_PANEL PANEL
#else
#define BEFORE_PANEL 0
#endif
typedef struct {
  __global const uchar* at;
  long step;         // bytes from a row to the next
  ulong rows, each;  // what is left, and how many go between steps
} Fetch;

#if B_AT == INSIDE
#define B_PARAMS const V *b, long at
#define B_ARGUMENTS block, 0, VECTORS
#define B_VECTOR(v) b[at + (v)]
#else
#define B_PARAMS __global const uchar *b, long at
#define B_ARGUMENTS b, from, b_k
#define B_VECTOR(v) TO_ACC(LOADV_B(b, at + (v)*LANES))
#endif

// Sums of a block begin with what is held, integers' with none.
#if INTEGER && !DOT
#define BEGIN_SUM(first, held) ((V)0)
#define KEEP_SUM(first, held, sum) CLUTCH_WRAP_32(CLUTCH_TO_VI(sum), +, (first) ? (VI)0 : (held))
#else
#define BEGIN_SUM(first, held) ((first) ? (V)0 : (held))
#define KEEP_SUM(first, held, sum) (sum)
#endif

#if SPARSE
#if B_AT == INSIDE
#define B_MEM
#else
#define B_MEM __global
#endif
#define B_BLOCK_VECTOR(p, v) (*(B_MEM const clutch_unaligned*)((p) + (v)*LANES * sizeof(ACC)))

// Adds `groups` times four elements of the chains of a tile to `held`: two numbers of each row, first those of all rows that come first, and bytes from a
// group's first row of the panel to theirs.
static inline void add_sparse_tile(__global const ACC* numbers, __global const uint* places, B_PARAMS, long b_k, ulong groups, SUM* held, int first,
                                   Fetch* fetch) {
  V sum[ROWS][VECTORS];
  B_MEM const uchar* from = (B_MEM const uchar*)b + at * (long)(B_AT == INSIDE ? sizeof(V) : sizeof(ACC));
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) sum[r][v] = BEGIN_SUM(first, held[r * VECTORS + v]);
  for (ulong g = 0; g < groups;) {
    const ulong stop = min(g + FETCH_EVERY / 4, groups);
    for (ulong f = min(fetch->each, fetch->rows); f > 0; --f, --fetch->rows, fetch->at += fetch->step)
      for (long line = 0; line < PANEL * (long)B_BYTES; line += 64) FETCH_LINE(fetch->at + line);
    for (; g < stop; ++g) {
#pragma unroll
      for (int second = 0; second < 2; ++second)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          const V y = (V)numbers[second * ROWS + r];
          B_MEM const uchar* row = from + (second ? places[r] >> 16 : places[r] & 0xffff);
#pragma unroll
          for (int v = 0; v < VECTORS; ++v) sum[r][v] = FMA(y, B_BLOCK_VECTOR(row, v), sum[r][v]);
        }
      numbers += 2 * ROWS, places += ROWS, from += 4 * PANEL * sizeof(ACC);
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) held[r * VECTORS + v] = KEEP_SUM(first, held[r * VECTORS + v], sum[r][v]);
}
#define A_PARAMS __global const ACC *a, __global const uint *places, int poisoned
#if INTEGER && LANES == 1
#define AS_V(x) as_float(x)
#define AS_SUM(x) as_int(x)
#elif INTEGER
#define AS_V(x) CLUTCH_CONCAT(as_float, LANES)(x)
#define AS_SUM(x) CLUTCH_CONCAT(as_int, LANES)(x)
#else
#define AS_V(x) (x)
#define AS_SUM(x) (x)
#endif
#else
#define A_PARAMS __global const ACC* a

// Adds k elements of the chains of a tile to `held`: rows from `a` on, which lie a_row apart, of which the last ones may not exist, and a panel from
// `at` on. first: nothing came before.
static inline void add_tile(__global const ACC* a, long a_row, long a_k, B_PARAMS, long b_k, ulong k, ulong rows, SUM* held, int first, int shift,
                            Fetch* fetch) {
  V sum[ROWS][VECTORS];
  __global const ACC* from[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    from[r] = a + (long)min((ulong)r, rows - 1) * a_row;  // rows past the last one are that one again, and not stored
#pragma unroll
    for (int v = 0; v < VECTORS; ++v)
#if DOT
#if B_AT == INSIDE
      sum[r][v] = first ? (V)0 : held[r * VECTORS + v];
#else
      sum[r][v] = first ? (V)shift * loadv_i32(b, at - PANEL + v * LANES) : held[r * VECTORS + v];
#endif
#else
      sum[r][v] = BEGIN_SUM(first, held[r * VECTORS + v]);
#endif
  }
  for (ulong i = 0; i < k;) {
    const ulong stop = min(i + FETCH_EVERY, k);
    for (ulong f = min(fetch->each, fetch->rows); f > 0; --f, --fetch->rows, fetch->at += fetch->step)
      for (long line = 0; line < PANEL * (long)B_BYTES; line += 64) FETCH_LINE(fetch->at + line);
    for (; i < stop; ++i) {
      V x[VECTORS];
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) x[v] = B_VECTOR(v);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const V y = (V)*from[r];
        from[r] += a_k;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) sum[r][v] = FMA(y, x[v], sum[r][v]);
      }
      at += b_k;
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) held[r * VECTORS + v] = KEEP_SUM(first, held[r * VECTORS + v], sum[r][v]);
}
#endif

static inline void matmul_panels_body(CLUTCH_ID_PARAMS, A_PARAMS, __global const uchar* b, ulong m, ulong n, ulong k, ulong batch, long a_row, long a_k,
                                      long a_batch, ulong b_rows, long b_k, long b_n, long b_panel, long b_batch, int shift, ulong block_k, ulong rows_each,
                                      ulong panels_each, uint flat, SUM_ONE alpha, SUM_ONE beta,
                                      const IDX (*stride)[RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  const ulong panels = (n + PANEL - 1) / PANEL, across = (panels + panels_each - 1) / panels_each, down = (m + rows_each - 1) / rows_each;
  SUM held[HELD_TILES * ROWS * VECTORS];
#if B_AT == INSIDE
  V block[BLOCK_VECTORS];
#if DOT
  VI column_sum[VECTORS];
#endif
#endif
  for (ulong i = group * lanes + lane; i < batch * down * across; i += groups * lanes) {
    const ulong first = i % across * panels_each, top = i / across % down * rows_each, of = i / across / down;
    const ulong end = min(first + panels_each, panels), bottom = min(top + rows_each, m), tiles = (bottom - top + ROWS - 1) / ROWS;
    for (ulong at = 0, ends = 0; !ends; at += block_k) {
      const ulong length = min(block_k, k - at);
      ends = k - at <= block_k;
      for (ulong p = first; p < end; ++p) {
        const long from = (long)of * b_batch + (long)p * b_panel + (long)at * STEP_K * b_k + BEFORE_PANEL;
        // What comes next is fetched meanwhile: the next panel, or the first one of the next block.
        const long next = p + 1 < end ? from + b_panel : (long)of * b_batch + (long)first * b_panel + (long)(at + block_k) * STEP_K * b_k;
        const ulong left = p + 1 < end ? length : ends ? 0 : min(block_k, k - at - block_k);
        const ulong steps = tiles * ((length + FETCH_EVERY - 1) / FETCH_EVERY);
        Fetch fetch = {b + next * (long)B_BYTES, b_k * (long)B_BYTES, b_n == 1 ? left * STEP_K : 0, steps > 0 ? (left * STEP_K + steps - 1) / steps : 0};
#if B_AT == INSIDE && DOT
        if (at == 0)
          for (int v = 0; v < VECTORS; ++v) column_sum[v] = 0;
        pack_words((int*)block, b, from, min(4 * block_k, b_rows - 4 * at), min((ulong)PANEL, n - p * PANEL), b_k, b_n, column_sum);
#elif B_AT == INSIDE
        pack_rows((ACC*)block, b, from, length, min((ulong)PANEL, n - p * PANEL), b_k, b_n);
#endif
        for (ulong t = 0; t < tiles; ++t) {
          const ulong row = top + t * ROWS, rows = min((ulong)ROWS, m - row);
          SUM* sums = held + ((p - first) * tiles + t) * ROWS * VECTORS;
#if SPARSE
          // Packed block after block.
          const ulong tile = (at / block_k * ((m + ROWS - 1) / ROWS) + row / ROWS) * (block_k / 4);
          add_sparse_tile(a + tile * 2 * ROWS, places + tile * ROWS, B_ARGUMENTS, (length + 3) / 4, sums, at == 0, &fetch);
#else
          add_tile(a + (long)of * a_batch + (long)row * a_row + (long)at * a_k, a_row, a_k, B_ARGUMENTS, length, rows, sums, at == 0, shift, &fetch);
#endif
          if (!ends || TURNED) continue;
          for (ulong r = 0; r < rows; ++r)
            for (ulong v = 0; v < VECTORS && p * PANEL + v * LANES < n; ++v) {
              const ulong column = p * PANEL + v * LANES;
#if B_AT == INSIDE && DOT
              const SUM sum = CLUTCH_WRAP_32(sums[r * VECTORS + v], +, CLUTCH_WRAP_32((VI)shift, *, column_sum[v]));
#elif SPARSE
              const SUM sum = poisoned ? (SUM)POISON : sums[r * VECTORS + v];
#else
              const SUM sum = sums[r * VECTORS + v];
#endif
              finish(sum, of, row + r, column, (int)min((ulong)LANES, n - column), flat, alpha, beta, stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
            }
        }
#if TURNED
        // The result's rows lie side by side: LANES of them become vectors.
        const SUM* all = held + (p - first) * tiles * ROWS * VECTORS;
        for (ulong r = 0; ends && r < bottom - top; r += LANES)
          for (ulong v = 0; v < VECTORS && p * PANEL + v * LANES < n; ++v) {
            V x[LANES];
#pragma unroll
            for (ulong l = 0; l < LANES; ++l) x[l] = poisoned ? AS_V((SUM)POISON) : AS_V(all[min(r + l, bottom - top - 1) * VECTORS + v]);
            transpose(x);
            const ulong column = p * PANEL + v * LANES, count = min((ulong)LANES, n - column);
            for (ulong l = 0; l < count; ++l)
              finish(AS_SUM(x[l]), of, column + l, top + r, (int)min((ulong)LANES, bottom - top - r), flat, alpha, beta,
                     stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
          }
#endif
      }
    }
  }
}

#if SPARSE
__kernel void matmul_sparse_panels(CLUTCH_PREDICATE __global const uchar* a, ulong a_offset, __global const uchar* places, ulong places_offset,
                                   __global const uchar* info, ulong info_offset, __global const uchar* b, ulong b_offset, ulong m, ulong n, ulong k,
                                   ulong batch, long a_row, long a_k, long a_batch, ulong b_rows, long b_k, long b_n, long b_panel, long b_batch, int shift,
                                   ulong block_k, ulong rows_each, ulong panels_each, uint flat, SUM_ONE alpha,
                                   SUM_ONE beta CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_KERNEL_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  IDX stride[OPERANDS][RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_panels_body(CLUTCH_IDS, (__global const ACC*)(a + a_offset), (__global const uint*)(places + places_offset),
                     *(__global const int*)(info + info_offset) >= 0, b + b_offset, m, n, k, batch, a_row, a_k, a_batch, b_rows, b_k, b_n, b_panel, b_batch,
                     shift, block_k, rows_each, panels_each, flat, alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#else
__kernel void matmul_panels(CLUTCH_PREDICATE __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset, ulong m, ulong n, ulong k,
                            ulong batch, long a_row, long a_k, long a_batch, ulong b_rows, long b_k, long b_n, long b_panel, long b_batch, int shift,
                            ulong block_k, ulong rows_each, ulong panels_each, uint flat, SUM_ONE alpha,
                            SUM_ONE beta CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_KERNEL_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  IDX stride[OPERANDS][RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_panels_body(CLUTCH_IDS, (__global const ACC*)(a + a_offset), b + b_offset, m, n, k, batch, a_row, a_k, a_batch, b_rows, b_k, b_n, b_panel, b_batch,
                     shift, block_k, rows_each, panels_each, flat, alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif
#endif

#ifdef CLUTCH_ENTRY_matmul_dot_rows
// Rows of a in words of four bytes, zero past the last one; those of signed bytes plus 128.
static inline void matmul_dot_rows_body(CLUTCH_ID_PARAMS, __global uint* words, __global const uchar* a, ulong m, ulong k, long a_row, long a_k, long a_batch,
                                        ulong batch, uint flip) {
  const ulong each = (k + 3) / 4;
  for (ulong i = group * lanes + lane; i < batch * m; i += groups * lanes) {
    __global const uchar* from = a + (long)(i / m) * a_batch + (long)(i % m) * a_row;
    __global uint* to = words + i * each;
    for (ulong w = 0; w < each; ++w) {
      uint word = 0;
      for (uint byte = 0; byte < 4; ++byte) word |= (uint)(4 * w + byte < k ? from[(long)(4 * w + byte) * a_k] : 0) << 8 * byte;
      to[w] = word ^ flip;
    }
  }
}

__kernel void matmul_dot_rows(CLUTCH_PREDICATE __global uchar* words, ulong words_offset, __global const uchar* a, ulong a_offset, ulong m, ulong k, long a_row,
                              long a_k, long a_batch, ulong batch, uint flip) {
  CLUTCH_IF_PREDICATE
  matmul_dot_rows_body(CLUTCH_IDS, (__global uint*)(words + words_offset), a + a_offset, m, k, a_row, a_k, a_batch, batch, flip);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_dot_pack
// Panels of b in words, behind a row of its columns' sums. An item takes a panel.
static inline void matmul_dot_pack_body(CLUTCH_ID_PARAMS, __global int* panels, __global const uchar* b, ulong k, ulong n, long b_k, long b_n, long b_batch,
                                        ulong batch) {
  const ulong across = (n + PANEL - 1) / PANEL, each = (k + 3) / 4;
  for (ulong i = group * lanes + lane; i < batch * across; i += groups * lanes) {
    const ulong panel = i % across, left = panel * PANEL;
    __global int* to = panels + i * (each + 1) * PANEL;
    VI sum[VECTORS];
    for (int v = 0; v < VECTORS; ++v) sum[v] = 0;
    pack_words(to + PANEL, b, (long)(i / across) * b_batch + (long)left * b_n, k, min((ulong)PANEL, n - left), b_k, b_n, sum);
    for (int v = 0; v < VECTORS; ++v) PUT_LANES(__global, sum[v], to + v * LANES);
  }
}

__kernel void matmul_dot_pack(CLUTCH_PREDICATE __global uchar* panels, ulong panels_offset, __global const uchar* b, ulong b_offset, ulong k, ulong n, long b_k,
                              long b_n, long b_batch, ulong batch) {
  CLUTCH_IF_PREDICATE
  matmul_dot_pack_body(CLUTCH_IDS, (__global int*)(panels + panels_offset), b + b_offset, k, n, b_k, b_n, b_batch, batch);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_lanes
#define MOST_NUMBERS 256  // of a matrix

static inline void store_lanes(__global ACC* to, const V* from, ulong apart, ulong count, ulong length) {
  for (ulong e = 0; e < length; e += LANES) {
    V x[LANES];
#pragma unroll
    for (int l = 0; l < LANES; ++l) x[l] = from[e + l];
    transpose(x);
    if (e + LANES <= length && count == LANES) {
#pragma unroll
      for (ulong l = 0; l < LANES; ++l) PUT_LANES(__global, x[l], to + l * apart + e);
    } else {
      for (ulong l = 0; l < count; ++l)
        for (ulong i = 0; i < LANES && e + i < length; ++i) to[l * apart + e + i] = ((const ACC*)x)[l * LANES + i];
    }
  }
}

// Small matrices, dense ones at one distance: LANES of them side by side, one in each lane.
static inline void matmul_lanes_body(CLUTCH_ID_PARAMS, __global ACC* c, __global const ACC* a, __global const ACC* b, ulong m, ulong n, ulong k, ulong batch,
                                     ulong a_batch, ulong b_batch, ulong c_batch, ACC alpha, ACC beta) {
  V x[MOST_NUMBERS + LANES], y[MOST_NUMBERS + LANES], z[MOST_NUMBERS + LANES];
  for (ulong i = group * lanes + lane; i * LANES < batch; i += groups * lanes) {
    const ulong first = i * LANES, count = min((ulong)LANES, batch - first);
    load_bundle(x, a + first * a_batch, a_batch, (int)count, (int)(m * k), 1);
    load_bundle(y, b + first * b_batch, b_batch, (int)count, (int)(k * n), 1);
    if (beta != 0) load_bundle(z, c + first * c_batch, c_batch, (int)count, (int)(m * n), 1);
    for (ulong row = 0; row < m; ++row)
      for (ulong column = 0; column < n; column += 4) {
        // Columns past the last one are that one again.
        const ulong at[4] = {column, min(column + 1, n - 1), min(column + 2, n - 1), min(column + 3, n - 1)};
        V sum[4] = {0, 0, 0, 0};
        for (ulong l = 0; l < k; ++l)
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[j] = FMA(x[row * k + l], y[l * n + at[j]], sum[j]);
        V done[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) done[j] = beta != 0 ? FMA((V)beta, z[row * n + at[j]], sum[j] * (V)alpha) : sum[j] * (V)alpha;
        for (ulong j = 0; j < min(4ul, n - column); ++j) z[row * n + column + j] = done[j];
      }
    store_lanes(c + first * c_batch, z, c_batch, count, m * n);
  }
}

__kernel void matmul_lanes(CLUTCH_PREDICATE __global uchar* c, ulong c_offset, __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset,
                           ulong m, ulong n, ulong k, ulong batch, ulong a_batch, ulong b_batch, ulong c_batch, ACC alpha, ACC beta) {
  CLUTCH_IF_PREDICATE
  matmul_lanes_body(CLUTCH_IDS, (__global ACC*)(c + c_offset), (__global const ACC*)(a + a_offset), (__global const ACC*)(b + b_offset), m, n, k, batch,
                    a_batch, b_batch, c_batch, alpha, beta);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_tiles
// Items of a group are ITEMS_DOWN x ITEMS_ACROSS; each has sums of every ITEMS_DOWN-th row and every ITEMS_ACROSS-th column of the tile.
#define TILE_K 16
#define ITEMS (ITEMS_DOWN * ITEMS_ACROSS)
#define SUMS_DOWN (TILE_M / ITEMS_DOWN)
#define SUMS_ACROSS (TILE_N / ITEMS_ACROSS)
#define LOADS_A (TILE_M * TILE_K / ITEMS)
#define LOADS_B (TILE_N * TILE_K / ITEMS)
#if INTEGER
#define NUMBER int
#define ADD_PRODUCT(x, y, sum) ((int)((uint)(sum) + (uint)((x) * (y))))
#else
#define NUMBER ACC
#define ADD_PRODUCT(x, y, sum) FMA(x, y, sum)
#endif

// Of an item's i-th number of a tile of `size` rows of a, or columns of b: which one it is, and where along k. Neighbours read what lies side by side.
#define TILE_LINE(i, size, along_k) ((along_k) ? (lane + (i)*ITEMS) / TILE_K : (lane + (i)*ITEMS) % (size))
#define TILE_STEP(i, size, along_k) ((along_k) ? (lane + (i)*ITEMS) % TILE_K : (lane + (i)*ITEMS) / (size))

// The numbers of an item of the next tiles along k; zero where there are none.
static inline void fetch_tiles(NUMBER* of_a, NUMBER* of_b, __global const uchar* a, __global const uchar* b, ulong lane, ulong top, ulong left, ulong m,
                               ulong n, ulong k, ulong at, long from_a, long from_b, long a_row, long a_k, long b_k, long b_n) {
  for (int i = 0; i < LOADS_A; ++i) {
    const ulong r = TILE_LINE(i, TILE_M, a_k == 1), s = TILE_STEP(i, TILE_M, a_k == 1);
#if COMPLEX
    const long place = 2 * (from_a + (long)(top + r) * a_row + (long)((at + s) / 2) * a_k) + (long)((at + s) & 1);
#else
    const long place = from_a + (long)(top + r) * a_row + (long)(at + s) * a_k;
#endif
    of_a[i] = top + r < m && at + s < k ? (NUMBER)LOAD_A(a, place) : (NUMBER)0;
  }
  for (int i = 0; i < LOADS_B; ++i) {
    const ulong c = TILE_LINE(i, TILE_N, b_n != 1), s = TILE_STEP(i, TILE_N, b_n != 1);
    of_b[i] = left + c < n && at + s < k ? (NUMBER)number_of(b, from_b, at + s, left + c, b_k, b_n) : (NUMBER)0;
  }
}
CLUTCH_INLINE void put_tiles(__local NUMBER* tile_a, __local NUMBER* tile_b, const NUMBER* of_a, const NUMBER* of_b, ulong lane, long a_k, long b_n) {
  for (int i = 0; i < LOADS_A; ++i) tile_a[TILE_STEP(i, TILE_M, a_k == 1) * TILE_M + TILE_LINE(i, TILE_M, a_k == 1)] = of_a[i];
  for (int i = 0; i < LOADS_B; ++i) tile_b[TILE_STEP(i, TILE_N, b_n != 1) * TILE_N + TILE_LINE(i, TILE_N, b_n != 1)] = of_b[i];
}

__kernel void matmul_tiles(CLUTCH_PREDICATE __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset, ulong m, ulong n, ulong k,
                           ulong batch, long a_row, long a_k, long a_batch, long b_k, long b_n, long b_batch, SUM_ONE alpha,
                           SUM_ONE beta CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_KERNEL_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS) {
  __local NUMBER tiles_a[2][TILE_K * TILE_M], tiles_b[2][TILE_K * TILE_N];
  CLUTCH_IF_PREDICATE
  IDX stride[OPERANDS][RANK_LANES];
  CLUTCH_STRIDES(stride)
  a += a_offset, b += b_offset;
  CLUTCH_SHIFT_BUFFERS
  const ulong lane = get_local_id(0), down = (m + TILE_M - 1) / TILE_M, across = (n + TILE_N - 1) / TILE_N, steps = (k + TILE_K - 1) / TILE_K;
  const uint my_row = (uint)lane / ITEMS_ACROSS, my_column = (uint)lane % ITEMS_ACROSS;
  for (ulong tile = get_group_id(0); tile < batch * down * across; tile += get_num_groups(0)) {
    const ulong left = tile % across * TILE_N, top = tile / across % down * TILE_M, of = tile / across / down;
    const long from_a = (long)of * a_batch, from_b = (long)of * b_batch;
    NUMBER sum[SUMS_DOWN][SUMS_ACROSS], of_a[LOADS_A], of_b[LOADS_B];
#pragma unroll
    for (int i = 0; i < SUMS_DOWN; ++i)
#pragma unroll
      for (int j = 0; j < SUMS_ACROSS; ++j) sum[i][j] = 0;
    fetch_tiles(of_a, of_b, a, b, lane, top, left, m, n, k, 0, from_a, from_b, a_row, a_k, b_k, b_n);
    for (ulong step = 0; step < steps; ++step) {
      __local NUMBER *tile_a = tiles_a[step & 1], *tile_b = tiles_b[step & 1];
      put_tiles(tile_a, tile_b, of_a, of_b, lane, a_k, b_n);
      barrier(CLK_LOCAL_MEM_FENCE);
      fetch_tiles(of_a, of_b, a, b, lane, top, left, m, n, k, (step + 1) * TILE_K, from_a, from_b, a_row, a_k, b_k, b_n);
      // Past the end of k the chains must not go on: 0 times what is infinite in the other operand is no zero.
      const int length = (int)min((ulong)TILE_K, k - step * TILE_K);
#pragma unroll 4
      for (int s = 0; s < length; ++s) {
        NUMBER x[SUMS_DOWN], y[SUMS_ACROSS];
#pragma unroll
        for (int i = 0; i < SUMS_DOWN; ++i) x[i] = tile_a[s * TILE_M + my_row + i * ITEMS_DOWN];
#pragma unroll
        for (int j = 0; j < SUMS_ACROSS; ++j) y[j] = tile_b[s * TILE_N + my_column + j * ITEMS_ACROSS];
#pragma unroll
        for (int i = 0; i < SUMS_DOWN; ++i)
#pragma unroll
          for (int j = 0; j < SUMS_ACROSS; ++j) sum[i][j] = ADD_PRODUCT(x[i], y[j], sum[i][j]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < SUMS_DOWN; ++i)
      for (int j = 0; j < SUMS_ACROSS; ++j) {
        const ulong row = top + my_row + (ulong)i * ITEMS_DOWN, column = left + my_column + (ulong)j * ITEMS_ACROSS;
        if (row < m && column < n) finish(sum[i][j], of, row, column, 1, 1, alpha, beta, stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
      }
  }
}
#endif

#ifdef CLUTCH_ENTRY_matmul_sparse_rows
#define LOADV_A CLUTCH_CONCAT(loadv_, A_NAME)
#if INTEGER
#define KEEP_GROUPS 256  // whose products' sums are exact floats
#endif
#define CODES_OF(word) ((VI)(int)(word) >> CLUTCH_IOTA_VI2)
#ifdef ACC_IS_F64
#define HAS_BIT(codes, bit) CLUTCH_WIDE_MASK(((codes) & (bit)) != 0)
#else
#define HAS_BIT(codes, bit) (((codes) & (bit)) != 0)
#endif
#if LANES == 1
#define CLUTCH_IOTA_VI2 0
#elif LANES == 2
#define CLUTCH_IOTA_VI2 ((int2)(0, 2))
#elif LANES == 4
#define CLUTCH_IOTA_VI2 ((int4)(0, 2, 4, 6))
#elif LANES == 8
#define CLUTCH_IOTA_VI2 ((int8)(0, 2, 4, 6, 8, 10, 12, 14))
#else
#define CLUTCH_IOTA_VI2 ((int16)(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30))
#endif

#if INTEGER
#define KEEP(t) \
  if (g % KEEP_GROUPS == KEEP_GROUPS - 1) held[t] = CLUTCH_WRAP_32(held[t], +, CLUTCH_TO_VI(sum[t])), sum[t] = 0;
#else
#define KEEP(t)
#endif
// A group's two numbers of each row times what they meet of the four of each column.
#define ADD_GROUP(group_at, second, third, fourth)                                                                   \
  {                                                                                                                  \
    const ulong g = (group_at);                                                                                      \
    const long at = (long)(tile * groups_of_row + g);                                                                \
    const V value[2] = {TO_ACC(LOADV_A(numbers, at * 2 * LANES)), TO_ACC(LOADV_A(numbers, at * 2 * LANES + LANES))}; \
    const VI codes[2] = {CODES_OF(places[2 * at]), CODES_OF(places[2 * at + 1])};                                    \
    _Pragma("unroll") for (int t = 0; t < TOKENS; ++t) {                                                             \
      __global const ACC* x = from[t] + (long)(4 * g) * b_k;                                                         \
      const ACC x0 = x[0], x1 = x[second], x2 = x[third], x3 = x[fourth];                                            \
      _Pragma("unroll") for (int s = 0; s < 2; ++s) {                                                                \
        const V low = HAS_BIT(codes[s], 2) ? (V)x2 : (V)x0, high = HAS_BIT(codes[s], 2) ? (V)x3 : (V)x1;             \
        sum[t] = FMA(value[s], HAS_BIT(codes[s], 1) ? high : low, sum[t]);                                           \
      }                                                                                                              \
      KEEP(t)                                                                                                        \
    }                                                                                                                \
  }

// Strides of results are those of the transposed matrix, along whose columns vectors lie.
static inline void matmul_sparse_rows_body(CLUTCH_ID_PARAMS, __global const uchar* numbers, __global const uint* places, int poisoned, __global const ACC* b,
                                           ulong m, ulong n, ulong k, ulong batch, long b_k, long b_n, long b_batch, uint flat, SUM_ONE alpha, SUM_ONE beta,
                                           const IDX (*stride)[RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  const ulong groups_of_row = (k + 3) / 4, tiles = (m + LANES - 1) / LANES, across = (n + TOKENS - 1) / TOKENS;
  for (ulong i = group * lanes + lane; i < batch * across * tiles; i += groups * lanes) {
    const ulong tile = i % tiles, first = i / tiles % across * TOKENS, of = i / tiles / across;
    __global const ACC* from[TOKENS];
    V sum[TOKENS];
#if INTEGER
    SUM held[TOKENS];
#endif
#pragma unroll
    for (int t = 0; t < TOKENS; ++t) {
      from[t] = b + (long)of * b_batch + (long)min(first + t, n - 1) * b_n, sum[t] = 0;  // columns past the last one are that one again
#if INTEGER
      held[t] = 0;
#endif
    }
    for (ulong q = 0; q < k / 4; ++q) {
      ADD_GROUP(q, b_k, 2 * b_k, 3 * b_k)
    }
    // What lies past the end no code names.
    if (k % 4 != 0) {
      ADD_GROUP(k / 4, k % 4 > 1 ? b_k : 0, k % 4 > 2 ? 2 * b_k : 0, 0)
    }
#if INTEGER
    for (int t = 0; t < TOKENS; ++t) held[t] = CLUTCH_WRAP_32(held[t], +, CLUTCH_TO_VI(sum[t]));
#endif
    for (ulong t = 0; t < TOKENS && first + t < n; ++t) {
#if INTEGER
      const SUM done = poisoned ? (SUM)POISON : held[t];
#else
      const SUM done = poisoned ? (SUM)POISON : sum[t];
#endif
      finish(done, of, first + t, tile * LANES, (int)min((ulong)LANES, m - tile * LANES), flat, alpha, beta, stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
    }
  }
}

__kernel void matmul_sparse_rows(CLUTCH_PREDICATE __global const uchar* numbers, ulong numbers_offset, __global const uchar* places, ulong places_offset,
                                 __global const uchar* info, ulong info_offset, __global const uchar* b, ulong b_offset, ulong m, ulong n, ulong k, ulong batch,
                                 long b_k, long b_n, long b_batch, uint flat, SUM_ONE alpha,
                                 SUM_ONE beta CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_KERNEL_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  IDX stride[OPERANDS][RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_sparse_rows_body(CLUTCH_IDS, numbers + numbers_offset, (__global const uint*)(places + places_offset), *(__global const int*)(info + info_offset) >= 0,
                          (__global const ACC*)(b + b_offset), m, n, k, batch, b_k, b_n, b_batch, flat, alpha, beta,
                          stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_sparse_items
// A row's values are two of each four along k, its metadata four bits: where in the group they lie.
static inline void matmul_sparse_items_body(CLUTCH_ID_PARAMS, __global const uchar* values, __global const uchar* metadata, int poisoned,
                                            __global const uchar* b, ulong m, ulong n, ulong k, ulong batch, long b_k, long b_n, long b_batch, SUM_ONE alpha,
                                            SUM_ONE beta, const IDX (*stride)[RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  const ulong row_groups = (k + 3) / 4;
  for (ulong i = group * lanes + lane; i < batch * m * n; i += groups * lanes) {
    const ulong column = i % n, row = i / n % m, of = i / n / m;
    const long from_b = (long)of * b_batch + (long)column * b_n;
    __global const uchar* codes = metadata + row * ((row_groups + 1) / 2);
    SUM_ONE sum = 0;
    for (ulong j = 0; j < 2 * row_groups; ++j) {
      const uint code = codes[j / 4] >> 2 * (j % 4) & 3;
      const ulong at = j / 2 * 4 + code;
      if (at >= k) continue;
#if INTEGER
      sum = (int)((uint)sum + (uint)((int)LOAD_A(values, (long)(row * 2 * row_groups + j)) * (int)LOAD_B(b, from_b + (long)at * b_k)));
#else
      sum = FMA((ACC)LOAD_A(values, (long)(row * 2 * row_groups + j)), (ACC)LOAD_B(b, from_b + (long)at * b_k), sum);
#endif
    }
    finish(poisoned ? POISON : sum, of, row, column, 1, 1, alpha, beta, stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
  }
}

__kernel void matmul_sparse_items(CLUTCH_PREDICATE __global const uchar* values, ulong values_offset, __global const uchar* metadata, ulong metadata_offset,
                                  __global const uchar* info, ulong info_offset, __global const uchar* b, ulong b_offset, ulong m, ulong n, ulong k,
                                  ulong batch, long b_k, long b_n, long b_batch, SUM_ONE alpha,
                                  SUM_ONE beta CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_KERNEL_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  IDX stride[OPERANDS][RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_sparse_items_body(CLUTCH_IDS, values + values_offset, metadata + metadata_offset, *(__global const int*)(info + info_offset) >= 0, b + b_offset, m, n,
                           k, batch, b_k, b_n, b_batch, alpha, beta, stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_matmul_items
static inline void matmul_items_body(CLUTCH_ID_PARAMS, __global const uchar* a, __global const uchar* b, ulong m, ulong n, ulong k, ulong batch, long a_row,
                                     long a_k, long a_batch, long b_k, long b_n, long b_batch, SUM_ONE alpha, SUM_ONE beta,
                                     const IDX (*stride)[RANK_LANES] CLUTCH_BUFFER_PARAMS CLUTCH_EXTRA_PARAMS) {
  for (ulong i = group * lanes + lane; i < batch * m * n; i += groups * lanes) {
    const ulong column = i % n, row = i / n % m, of = i / n / m;
    long from_a = (long)of * a_batch + (long)row * a_row, from_b = (long)of * b_batch + (long)(column / (1 + COMPLEX)) * b_n;
    SUM_ONE sum = 0;
    for (ulong j = 0; j < k; ++j, from_a += a_k, from_b += b_k) {
#if INTEGER
      sum = (int)((uint)sum + (uint)((int)LOAD_A(a, from_a) * (int)LOAD_B(b, from_b)));
#elif COMPLEX
      const ACC re = (ACC)LOAD_B(b, 2 * from_b), im = (ACC)LOAD_B(b, 2 * from_b + 1);
      sum = FMA((ACC)LOAD_A(a, 2 * from_a), column & 1 ? im : re, sum);
      sum = FMA((ACC)LOAD_A(a, 2 * from_a + 1), column & 1 ? re : -im, sum);
#else
      sum = FMA((ACC)LOAD_A(a, from_a), (ACC)LOAD_B(b, from_b), sum);
#endif
    }
    finish(sum, of, row, column, 1, 1, alpha, beta, stride CLUTCH_BUFFER_NAMES CLUTCH_EXTRA_NAMES);
  }
}

__kernel void matmul_items(CLUTCH_PREDICATE __global const uchar* a, ulong a_offset, __global const uchar* b, ulong b_offset, ulong m, ulong n, ulong k,
                           ulong batch, long a_row, long a_k, long a_batch, long b_k, long b_n, long b_batch, SUM_ONE alpha,
                           SUM_ONE beta CLUTCH_STRIDE_PARAMS CLUTCH_BUFFER_KERNEL_PARAMS CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_IF_PREDICATE
  IDX stride[OPERANDS][RANK_LANES];
  CLUTCH_STRIDES(stride)
  matmul_items_body(CLUTCH_IDS, a + a_offset, b + b_offset, m, n, k, batch, a_row, a_k, a_batch, b_k, b_n, b_batch, alpha, beta,
                    stride CLUTCH_BUFFER_ARGUMENTS CLUTCH_EXTRA_ARGUMENTS);
}
#endif
