// SPDX-License-Identifier: Apache-2.0
// copy_ and cast: destination = source, copied as bits or cast to another dtype with one rounding.
// Ownership: a group owns tiles of CLUTCH_TILE elements (bytes in copy_bytes), in copy_transposed squares, on CPUs blocks that follow each other. Local memory:
// a square in copy_transposed, but none on CPUs.
// Needs: for moves T, an unsigned type of the element's size; for casts S_NAME and D_NAME (dtypes, the real one of a complex
// type), CLUTCH_S_KIND and CLUTCH_D_KIND (copy/args.h), CLUTCH_S_COMPLEX, CLUTCH_D_COMPLEX, CLUTCH_SATURATE; for copy_transposed
// CLUTCH_ITEMS, the items of a group.
// Source: PyTorch 2.12's casts; OCP 8-bit floating point specification for the f8 formats.
#include "common/dtype.clh"
#include "common/elementwise.clh"
#include "common/f8.clh"
#include "common/launch.clh"
#include "common/move.clh"
#include "copy/args.h"

// Contiguous copy of bytes, of any dtype.
#ifdef CLUTCH_ENTRY_copy_bytes
#if WIDTH == 16
#define WIDE uint16
#define LOADWIDE(p) vload16(0, (__global const uint*)(p))
#define STOREWIDE(v, p) vstore16(v, 0, (__global uint*)(p))
#elif WIDTH == 8
#define WIDE uint8
#define LOADWIDE(p) vload8(0, (__global const uint*)(p))
#define STOREWIDE(v, p) vstore8(v, 0, (__global uint*)(p))
#else
#define WIDE uint4
#define LOADWIDE(p) vload4(0, (__global const uint*)(p))
#define STOREWIDE(v, p) vstore4(v, 0, (__global uint*)(p))
#endif
#define WALK_WIDE(LOAD, STORE) \
  for (ulong i = begin + item * sizeof(WIDE); i < tail; i += items * sizeof(WIDE)) STORE(LOAD(in + i), out + i);
#define LOAD_WHOLE(p) (*(__global const WIDE*)(p))
#define STORE_WHOLE(v, p) (*(__global WIDE*)(p) = (v))
#ifdef CLUTCH_HAS_STREAMING
#define STREAM_WIDE(v, p) __builtin_nontemporal_store(v, (__global WIDE*)(p))
#else
#define STREAM_WIDE STORE_WHOLE
#endif
static inline void copy_bytes_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* in, ulong bytes, uint streaming) {
  int words = ((ulong)out | (ulong)in) % sizeof(uint) == 0;
  for (ulong tile = group; tile * CLUTCH_TILE < bytes; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, bytes);
    ulong tail = words ? begin + (end - begin) / sizeof(WIDE) * sizeof(WIDE) : begin;
#ifdef CLUTCH_HAS_WHOLE
    if (CLUTCH_WHOLE((ulong)out | (ulong)in)) {
      if (streaming) {
        WALK_WIDE(LOAD_WHOLE, STREAM_WIDE)
      } else {
        WALK_WIDE(LOAD_WHOLE, STORE_WHOLE)
      }
    } else
#endif
        if (streaming && (ulong)(out + begin) % sizeof(WIDE) == 0) {
      WALK_WIDE(LOADWIDE, STREAM_WIDE)
    } else {
      WALK_WIDE(LOADWIDE, STOREWIDE)
    }
    for (ulong i = tail + item; i < end; i += items) out[i] = in[i];
  }
}

__kernel void copy_bytes(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset, ulong bytes, uint streaming) {
  CLUTCH_IF_PREDICATE
  copy_bytes_body(CLUTCH_IDS, out + out_offset, in + in_offset, bytes, streaming);
}
#endif

// A walk over the elements of a tile, by runs along dimension 0: DO(to, from, run) with the offsets of the first of `run` elements, whose offsets are out_step
// and in_step apart. Where an item takes a tile, divisions of each element's number would take longer than the element.
#define WALK_RUNS(shape, begin, end, DO)                                                                               \
  {                                                                                                                    \
    const IDX inner = (IDX)shape->size[0], out_step = (IDX)shape->stride[0][0], in_step = (IDX)shape->stride[1][0];    \
    IDX place[CLUTCH_SHAPE_LANES], rest = (IDX)((begin) / (ulong)inner), first = (IDX)((begin) - (ulong)rest * inner); \
    IDX out_row = 0, in_row = 0;                                                                                       \
    for (int d = 1; d < (int)shape->rank; ++d) {                                                                       \
      const IDX next = rest / (IDX)shape->size[d];                                                                     \
      place[d] = rest - next * (IDX)shape->size[d];                                                                    \
      out_row += place[d] * (IDX)shape->stride[0][d];                                                                  \
      in_row += place[d] * (IDX)shape->stride[1][d];                                                                   \
      rest = next;                                                                                                     \
    }                                                                                                                  \
    for (ulong left = (end) - (begin);;) {                                                                             \
      const IDX run = (IDX)min((ulong)(inner - first), left);                                                          \
      DO(out_row + first * out_step, in_row + first * in_step, run)                                                    \
      left -= (ulong)run;                                                                                              \
      if (left == 0) break;                                                                                            \
      first = 0;                                                                                                       \
      for (int d = 1; d < (int)shape->rank; ++d) {                                                                     \
        out_row += (IDX)shape->stride[0][d];                                                                           \
        in_row += (IDX)shape->stride[1][d];                                                                            \
        if (++place[d] < (IDX)shape->size[d]) break;                                                                   \
        out_row -= place[d] * (IDX)shape->stride[0][d];                                                                \
        in_row -= place[d] * (IDX)shape->stride[1][d];                                                                 \
        place[d] = 0;                                                                                                  \
      }                                                                                                                \
    }                                                                                                                  \
  }
#define EACH_OF_RUN(to, from, run, DO) CLUTCH_ONE_BY_ONE for (IDX j = (IDX)item; j < (run); j += (IDX)items) DO((to) + j * out_step, (from) + j * in_step);

// Strided move.
#ifdef CLUTCH_ENTRY_copy_strided
#define MOVE_ONE(to, from) ((__global T*)out)[to] = ((__global const T*)in)[from]
#define MOVE_RUN(to, from, run) EACH_OF_RUN(to, from, run, MOVE_ONE)
static inline void copy_strided_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* in, const Shape* shape, ulong n) {
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
#ifdef CLUTCH_IS_CPU
    WALK_RUNS(shape, begin, end, MOVE_RUN)
#else
    for (ulong i = begin + item; i < end; i += items) {
      Offsets o = clutch_offsets(shape, 0, (IDX)i);
      MOVE_ONE(o.at[0], o.at[1]);
    }
#endif
  }
}

__kernel void copy_strided(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset, ulong n, CLUTCH_SHAPE_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_SHAPE(shape)
  copy_strided_body(CLUTCH_IDS, out + out_offset, in + in_offset, &shape, n);
}
#endif

// Transposing move: dimension 0 is the one along which the output is adjacent, dimension 1 the one along which the input is, or (on CPUs) is nearest.
#ifdef CLUTCH_ENTRY_copy_transposed
#ifdef CLUTCH_IS_CPU
#define LANES_OF_uchar 16
#define LANES_OF_ushort 16
#define LANES_OF_uint 16
#define LANES_OF_ulong 8
#define LANES_OF_ulong2 1
#define LANES CLUTCH_CONCAT(LANES_OF_, T)
#if LANES > 1
#define R CLUTCH_CONCAT(T, LANES)
#define CLUTCH_MEM __private
#include "common/transpose.clh"
#endif
// Two to four rows of 16 elements, one element of each in turn (packed), and the other way.
#if LANES == 16 && defined(__clang__)
#define MOVES_PACKED 1
#define PICK __builtin_shufflevector
#define PACK_2(x, y) y[0] = CLUTCH_ZIP_LO(x[0], x[1]), y[1] = CLUTCH_ZIP_HI(x[0], x[1]);
#define PACK_3(x, y)                                                                       \
  y[0] = PICK(x[0], x[1], 0, 16, -1, 1, 17, -1, 2, 18, -1, 3, 19, -1, 4, 20, -1, 5);       \
  y[0] = PICK(y[0], x[2], 0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15);        \
  y[1] = PICK(x[0], x[1], 21, -1, 6, 22, -1, 7, 23, -1, 8, 24, -1, 9, 25, -1, 10, 26);     \
  y[1] = PICK(y[1], x[2], 0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15);        \
  y[2] = PICK(x[0], x[1], -1, 11, 27, -1, 12, 28, -1, 13, 29, -1, 14, 30, -1, 15, 31, -1); \
  y[2] = PICK(y[2], x[2], 26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31);
#define PACK_4(x, y)                                                                     \
  const R low = CLUTCH_ZIP_LO(x[0], x[2]), high = CLUTCH_ZIP_HI(x[0], x[2]);             \
  const R other_low = CLUTCH_ZIP_LO(x[1], x[3]), other_high = CLUTCH_ZIP_HI(x[1], x[3]); \
  y[0] = CLUTCH_ZIP_LO(low, other_low), y[1] = CLUTCH_ZIP_HI(low, other_low);            \
  y[2] = CLUTCH_ZIP_LO(high, other_high), y[3] = CLUTCH_ZIP_HI(high, other_high);
#define EVEN(a, b) PICK(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(a, b) PICK(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define UNPACK_2(x, y) y[0] = EVEN(x[0], x[1]), y[1] = ODD(x[0], x[1]);
#define UNPACK_3(x, y)                                                                  \
  y[0] = PICK(x[0], x[1], 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, -1, -1, -1, -1, -1);  \
  y[0] = PICK(y[0], x[2], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);        \
  y[1] = PICK(x[0], x[1], 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, -1, -1, -1, -1, -1); \
  y[1] = PICK(y[1], x[2], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30);        \
  y[2] = PICK(x[0], x[1], 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, -1, -1, -1, -1, -1, -1); \
  y[2] = PICK(y[2], x[2], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31);
#define UNPACK_4(x, y)                                            \
  const R even = EVEN(x[0], x[1]), other_even = EVEN(x[2], x[3]); \
  const R odd = ODD(x[0], x[1]), other_odd = ODD(x[2], x[3]);     \
  y[0] = EVEN(even, other_even), y[1] = EVEN(odd, other_odd);     \
  y[2] = ODD(even, other_even), y[3] = ODD(odd, other_odd);
// `count` rows, `step` elements from each other, of `length` elements, and where they are packed; whole vectors of them.
#define MOVE_PACKED(count, WHICH, LOAD, STORE)                                                                   \
  for (; done + LANES <= length; done += LANES) {                                                                \
    R x[count], y[count];                                                                                        \
    _Pragma("unroll") for (int e = 0; e < (count); ++e) x[e] = LOAD(e, count);                                   \
    CLUTCH_CONCAT(WHICH, count)(x, y) _Pragma("unroll") for (int e = 0; e < (count); ++e) STORE(e, count, y[e]); \
  }
#define LOAD_APART(e, count) *(__global const clutch_unaligned*)(from + (e)*step + done)
#define STORE_PACKED(e, count, v) *(__global clutch_unaligned*)(to + (count)*done + (e)*LANES) = (v)
#define LOAD_PACKED(e, count) *(__global const clutch_unaligned*)(from + (count)*done + (e)*LANES)
#define STORE_APART(e, count, v) *(__global clutch_unaligned*)(to + rows[e] + done) = (v)
static inline IDX pack_rows(__global T* to, __global const T* from, IDX step, int count, IDX length) {
  IDX done = 0;
  if (count == 2) MOVE_PACKED(2, PACK_, LOAD_APART, STORE_PACKED)
  if (count == 3) MOVE_PACKED(3, PACK_, LOAD_APART, STORE_PACKED)
  if (count == 4) MOVE_PACKED(4, PACK_, LOAD_APART, STORE_PACKED)
  return done;
}
static inline IDX unpack_rows(__global T* to, const IDX* rows, __global const T* from, int count, IDX length) {
  IDX done = 0;
  if (count == 2) MOVE_PACKED(2, UNPACK_, LOAD_PACKED, STORE_APART)
  if (count == 3) MOVE_PACKED(3, UNPACK_, LOAD_PACKED, STORE_APART)
  if (count == 4) MOVE_PACKED(4, UNPACK_, LOAD_PACKED, STORE_APART)
  return done;
}
#endif
// Elements of a block one by one, by loops along the longer side: loops of few turns cost as much as their elements. rows: offsets of the output's;
// packed: they have no gaps; unpacks: the input has none.
#define MOVE_COLUMNS(count)                                                           \
  for (IDX j = done; j < height; ++j) {                                               \
    __global T* row = to + rows[j] + i;                                               \
    __global const T* column = from + i * in_step + j * in_one;                       \
    _Pragma("unroll") for (int e = 0; e < (count); ++e) row[e] = column[e * in_step]; \
  }
#define MOVE_ROWS(count)                                                                  \
  {                                                                                       \
    __global T* row[count];                                                               \
    _Pragma("unroll") for (int e = 0; e < (count); ++e) row[e] = to + rows[j + e];        \
    __global const T* column = from + done * in_step + j * in_one;                        \
    for (IDX i = done; i < width; ++i, column += in_step) {                               \
      _Pragma("unroll") for (int e = 0; e < (count); ++e) row[e][i] = column[e * in_one]; \
    }                                                                                     \
  }
static inline void move_each(__global T* to, const IDX* rows, __global const T* from, IDX in_step, IDX in_one, IDX width, IDX height, int packed, int unpacks) {
  IDX done = 0;
  if (width < height) {
    IDX i = 0;
#ifdef MOVES_PACKED
    if (packed) done = pack_rows(to + rows[0], from, in_step, (int)width, height);
#endif
    for (; i + 4 <= width; i += 4) MOVE_COLUMNS(4)
    if (i + 3 == width) MOVE_COLUMNS(3)
    if (i + 2 == width) MOVE_COLUMNS(2)
    if (i + 1 == width) MOVE_COLUMNS(1)
  } else {
    IDX j = 0;
#ifdef MOVES_PACKED
    if (unpacks) done = unpack_rows(to, rows, from, (int)height, width);
#endif
    for (; j + 4 <= height; j += 4) MOVE_ROWS(4)
    if (j + 3 == height) MOVE_ROWS(3)
    if (j + 2 == height) MOVE_ROWS(2)
    if (j + 1 == height) MOVE_ROWS(1)
  }
}
// Squares of LANES elements go through registers; the last ones of a block overlap those before.
static inline void move_block(__global T* to, const IDX* rows, __global const T* from, IDX in_step, IDX in_one, IDX width, IDX height, int packed,
                              int unpacks) {
#if LANES > 1
  if (width >= LANES && height >= LANES) {
    for (IDX first = 0; first < width; first += LANES) {
      const IDX i = min(first, width - LANES);
      for (IDX upper = 0; upper < height; upper += LANES) {
        const IDX j = min(upper, height - LANES);
        R x[LANES];
        __global const T* column = from + i * in_step + j * in_one;
        if (in_one == 1) {
#pragma unroll
          for (int l = 0; l < LANES; ++l) x[l] = *(__global const clutch_unaligned*)(column + l * in_step);
        } else {
          T each[LANES];
#pragma unroll
          for (int l = 0; l < LANES; ++l) {
#pragma unroll
            for (int e = 0; e < LANES; ++e) each[e] = column[l * in_step + e * in_one];
            x[l] = CLUTCH_CONCAT(vload, LANES)(0, each);
          }
        }
        transpose(x);
#pragma unroll
        for (int l = 0; l < LANES; ++l) *(__global clutch_unaligned*)(to + rows[j + l] + i) = x[l];
      }
    }
    return;
  }
#endif
  move_each(to, rows, from, in_step, in_one, width, height, packed, unpacks);
}
// Brings a block that is read later into the caches: a core guesses no rows of a few lines each.
#define LINE 64
static inline void fetch_block(__global const T* from, IDX in_step, IDX in_one, IDX width, IDX height) {
  if (in_step * (IDX)sizeof(T) < LINE) return;
  const long bytes = (long)height * in_one * (long)sizeof(T), step = max((long)in_one * (long)sizeof(T), (long)LINE);
  for (IDX i = 0; i < width; ++i)
    for (long at = 0; at < bytes; at += step) CLUTCH_PREFETCH((__global const uchar*)(from + i * in_step) + at);
}

// A block of a matrix.
typedef struct {
  __global T* to;
  __global const T* from;
  IDX y, width, height;
} copy_block_t;

// An item takes blocks that follow each other. The matrices whose outputs lie within the rows of a block come before the next block of rows. If dimension 1 is
// short and the input goes on along dimension 2, both are the matrix's rows.
CLUTCH_INLINE void copy_transposed_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* in, const Shape* shape, ulong n) {
  const int joined = copy_joins(shape->rank, shape->size, shape->stride[1]), inside = copy_is_inside(shape->rank, joined, shape->stride[0]);
  const IDX run = (IDX)shape->size[1], run_step = (IDX)shape->stride[0][1], next_step = joined ? (IDX)shape->stride[0][2] : 0;
  const IDX in_step = (IDX)shape->stride[1][0], in_one = (IDX)shape->stride[1][1];
  const ulong width = (ulong)shape->size[0], height = (ulong)run * (joined ? (ulong)shape->size[2] : 1);
  const IDX within = inside ? (IDX)shape->size[2 + joined] : 1;
  const IDX out_next = inside ? (IDX)shape->stride[0][2 + joined] : 0, in_next = inside ? (IDX)shape->stride[1][2 + joined] : 0;
  const int packed = in_one == 1 && width <= 4 && run_step == (IDX)width && (!joined || next_step == run * run_step);
  const int unpacks = in_one == 1 && height <= 4 && in_step == (IDX)height;
  const ulong wide = copy_block_width(width, height), high = copy_block_height(width, height);
  const ulong across = (width + wide - 1) / wide, down = (height + high - 1) / high;
  const ulong moves = n / (width * height) * across * down, workers = groups * items, least = (moves + workers - 1) / workers;
  // Rows that lie side by side are one core's, where they can be.
  const ulong each = least > (ulong)within ? (least + (ulong)within - 1) / (ulong)within * (ulong)within : least;
  const ulong begin = (group * items + item) * each, end = min(begin + each, moves);
  const IDX ahead = (IDX)max(COPY_BLOCK / (wide * high), 1ul);
  IDX rows[COPY_BLOCK];
  ulong place = begin / (ulong)within;
  IDX m = (IDX)(begin - place * (ulong)within);
  copy_block_t block, next;
  for (ulong at = begin; at < end; ++place, m = 0) {
    for (int later = at == begin ? 0 : 1; later < 2; ++later) {
      block = next;
      const ulong number = place + (ulong)later, lower = number / across, outer = lower / down;
      const Offsets o = clutch_offsets(shape, 2 + joined + inside, (IDX)outer);
      next.y = (IDX)((lower - outer * down) * high);
      const IDX x = (IDX)((number - lower * across) * wide);
      next.to = (__global T*)out + o.at[0] + x, next.from = (__global const T*)in + (o.at[1] + x * in_step + next.y * in_one);
      next.width = min((IDX)wide, (IDX)width - x), next.height = min((IDX)high, (IDX)height - next.y);
    }
    if (joined) {
      IDX turn = block.y / run, along = block.y - turn * run;
      for (IDX j = 0; j < block.height; ++j) {
        rows[j] = turn * next_step + along * run_step;
        if (++along == run) ++turn, along = 0;
      }
    } else {
      for (IDX j = 0; j < block.height; ++j) rows[j] = (block.y + j) * run_step;
    }
    for (; m < within && at < end; ++m, ++at) {
      const IDX later = m + ahead;
      if (later < within)
        fetch_block(block.from + later * in_next, in_step, in_one, block.width, block.height);
      else if (later - within < within)
        fetch_block(next.from + (later - within) * in_next, in_step, in_one, next.width, next.height);
      move_block(block.to + m * out_next, rows, block.from + m * in_next, in_step, in_one, block.width, block.height, packed, unpacks);
    }
  }
}
#else
// A square goes through local memory, so that both sides are accessed along their rows. Rows of the square are COPY_SQUARE + 1 elements apart, so that
// neighbours of a column are in different banks.
#define ROW (COPY_SQUARE + 1)
#define UIDX CLUTCH_CONCAT(u, IDX)
#if CLUTCH_ITEMS % COPY_SQUARE == 0
// Each item has elements of one column, every TURN-th one. All loads of a full square come before the stores.
#define TURN (CLUTCH_ITEMS / COPY_SQUARE)
#define TURNS (COPY_SQUARE / TURN)
#define LOAD_SQUARE                                                                                         \
  const int line = (int)item / COPY_SQUARE, column = (int)item % COPY_SQUARE;                               \
  from += (IDX)line * in_step + column, to += (IDX)line * out_step + column;                                \
  if (full) {                                                                                               \
    T loaded[TURNS];                                                                                        \
    _Pragma("unroll") for (int t = 0; t < TURNS; ++t) loaded[t] = from[(IDX)(t * TURN) * in_step];          \
    _Pragma("unroll") for (int t = 0; t < TURNS; ++t) square[(line + t * TURN) * ROW + column] = loaded[t]; \
  } else if (column < height) {                                                                             \
    for (int i = line; i < width; i += TURN) square[i * ROW + column] = from[(IDX)(i - line) * in_step];    \
  }
#define STORE_SQUARE                                                                                                           \
  if (full) {                                                                                                                  \
    _Pragma("unroll") for (int t = 0; t < TURNS; ++t) to[(IDX)(t * TURN) * out_step] = square[column * ROW + line + t * TURN]; \
  } else if (column < width) {                                                                                                 \
    for (int i = line; i < height; i += TURN) to[(IDX)(i - line) * out_step] = square[column * ROW + i];                       \
  }
#else
#define LOAD_SQUARE                                                                     \
  for (int k = (int)item; k < COPY_SQUARE * COPY_SQUARE; k += (int)items) {             \
    const int i = k / COPY_SQUARE, j = k % COPY_SQUARE;                                 \
    if (full || (i < width && j < height)) square[i * ROW + j] = from[i * in_step + j]; \
  }
#define STORE_SQUARE                                                                   \
  for (int k = (int)item; k < COPY_SQUARE * COPY_SQUARE; k += (int)items) {            \
    const int i = k % COPY_SQUARE, j = k / COPY_SQUARE;                                \
    if (full || (i < width && j < height)) to[j * out_step + i] = square[i * ROW + j]; \
  }
#endif
CLUTCH_INLINE void copy_transposed_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* in, const Shape* shape, ulong n, __local T* square) {
  const UIDX across = ((UIDX)shape->size[0] + COPY_SQUARE - 1) / COPY_SQUARE, down = ((UIDX)shape->size[1] + COPY_SQUARE - 1) / COPY_SQUARE;
  const UIDX squares = (UIDX)n / ((UIDX)shape->size[0] * (UIDX)shape->size[1]) * across * down;
  const IDX out_step = (IDX)shape->stride[0][1], in_step = (IDX)shape->stride[1][0];
  for (UIDX at = (UIDX)group; at < squares; at += (UIDX)groups) {
    const UIDX matrix = at / (across * down), place = at - matrix * (across * down), lower = place / across;
    const IDX x = (IDX)(place - lower * across) * COPY_SQUARE, y = (IDX)lower * COPY_SQUARE;
    const int width = (int)min((IDX)COPY_SQUARE, (IDX)shape->size[0] - x), height = (int)min((IDX)COPY_SQUARE, (IDX)shape->size[1] - y);
    const Offsets o = clutch_offsets(shape, 2, (IDX)matrix);
    __global T* to = (__global T*)out + (o.at[0] + x + y * out_step);
    __global const T* from = (__global const T*)in + (o.at[1] + x * in_step + y);
    const int full = width == COPY_SQUARE && height == COPY_SQUARE;
    LOAD_SQUARE
    barrier(CLK_LOCAL_MEM_FENCE);
    STORE_SQUARE
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
#endif

__kernel __attribute__((reqd_work_group_size(CLUTCH_ITEMS, 1, 1))) void copy_transposed(CLUTCH_PREDICATE __global uchar* out, ulong out_offset,
                                                                                        __global const uchar* in, ulong in_offset, ulong n,
                                                                                        CLUTCH_SHAPE_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_SHAPE(shape)
#ifdef CLUTCH_IS_CPU
  copy_transposed_body(CLUTCH_IDS, out + out_offset, in + in_offset, &shape, n);
#else
  __local T square[COPY_SQUARE * ROW];
  copy_transposed_body(CLUTCH_IDS, out + out_offset, in + in_offset, &shape, n, square);
#endif
}
#endif

// Strided move by rows whose inner strides are 1 (output) and 0 or 1 (input).
#ifdef CLUTCH_ENTRY_copy_rows
#ifdef CLUTCH_IS_CPU
static inline void put_run(__global T* to, __global const T* from, IDX step, IDX run, IDX item, IDX items) {
  if (step && items == 1) {
    clutch_move((__global uchar*)to, (__global const uchar*)from, (ulong)run * sizeof(T));
  } else if (step) {
    for (IDX j = item; j < run; j += items) to[j] = from[j];
  } else {
    const T x = from[0];
    for (IDX j = item; j < run; j += items) to[j] = x;
  }
}
#define PUT_RUN(to, from, run) put_run((__global T*)out + (to), (__global const T*)in + (from), in_step, run, (IDX)item, (IDX)items);
#endif
static inline void copy_rows_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* in, const Shape* shape, ulong n) {
#ifdef CLUTCH_IS_CPU
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    const ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
    WALK_RUNS(shape, begin, end, PUT_RUN)
  }
#else
  // Units are blocks of 16 bytes where the host found that rows consist of them, else elements.
  const int each = shape->size[CLUTCH_SHAPE_UNITS] == shape->size[0] ? 1 : (int)(sizeof(uint4) / sizeof(T));
  const int whole = each > 1 && ((ulong)out | (ulong)in) % sizeof(uint4) == 0;
  const IDX step = (IDX)shape->stride[1][0];
#define MOVE_UNIT(unit, o)                                                         \
  __global T* to = (__global T*)out + (o.at[0] + unit * each);                     \
  __global const T* from = (__global const T*)in + (o.at[1] + unit * each * step); \
  if (whole)                                                                       \
    *(__global uint4*)to = *(__global const uint4*)from;                           \
  else                                                                             \
    for (int j = 0; j < each; ++j) to[j] = from[j * step];
  WALK_UNITS(shape, MOVE_UNIT)
#endif
}

__kernel void copy_rows(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset, ulong n, CLUTCH_SHAPE_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_SHAPE(shape)
  copy_rows_body(CLUTCH_IDS, out + out_offset, in + in_offset, &shape, n);
}
#endif

#if defined(CLUTCH_ENTRY_copy_cast_contiguous) || defined(CLUTCH_ENTRY_copy_cast_strided)
#if !defined(S_NAME) || !defined(D_NAME) || !defined(CLUTCH_S_KIND) || !defined(CLUTCH_D_KIND) || !defined(CLUTCH_SATURATE)
#error "S_NAME, D_NAME, CLUTCH_S_KIND, CLUTCH_D_KIND and CLUTCH_SATURATE are not defined"
#endif

#if CLUTCH_S_KIND == COPY_KIND_F32
#define X float
#elif CLUTCH_S_KIND == COPY_KIND_F64
#define X double
#elif CLUTCH_S_KIND == COPY_KIND_UNSIGNED
#define X ulong
#else
#define X long
#endif

// ---- f32 bits rounded to odd: rounding them to fewer bits gives the result of one rounding of the source ----
static inline uint odd_bits_of_f32(float x) { return as_uint(x); }
#ifdef cl_khr_fp64
static inline uint odd_bits_of_f64(double x) {
  ulong u = as_ulong(x), a = u & 0x7FFFFFFFFFFFFFFFul;
  uint sign = (uint)(u >> 32) & 0x80000000u;
  if (a >= 0x7FF0000000000000ul) return sign | (a > 0x7FF0000000000000ul ? 0x7FC00000u : 0x7F800000u);
  int e = (int)(a >> 52) - 1023;
  ulong m = a & 0xFFFFFFFFFFFFFul;
  if (e > 127) return sign | 0x7F7FFFFFu;
  if (e >= -126) return sign | ((uint)(e + 127) << 23) | (uint)(m >> 29) | ((m & 0x1FFFFFFFul) != 0);
  int shift = 29 - 126 - e;
  if (a == 0) return sign;
  if (e == -1023 || shift > 53) return sign | 1u;
  m |= 1ul << 52;
  return sign | (uint)(m >> shift) | ((m & ((1ul << shift) - 1)) != 0);
}
#endif
static inline uint odd_bits_of_magnitude(ulong m, uint sign) {
  if (m == 0) return 0;
  int top = 63 - (int)clz(m);
  uint fraction = 0;
  if (top <= 23) {
    fraction = (uint)(m << (23 - top));
  } else {
    int drop = top - 23;
    fraction = (uint)(m >> drop) | ((m & ((1ul << drop) - 1)) != 0);
  }
  return sign | ((uint)(top + 126) << 23) + fraction;
}
static inline uint odd_bits_of_i64(long x) {
  const uint sign = (uint)((ulong)x >> 32) & 0x80000000u;
  return odd_bits_of_magnitude(sign ? 0ul - (ulong)x : (ulong)x, sign);
}
static inline uint odd_bits_of_u64(ulong x) { return odd_bits_of_magnitude(x, 0); }
#if CLUTCH_S_KIND == COPY_KIND_F32
#define ODD_BITS odd_bits_of_f32
#elif CLUTCH_S_KIND == COPY_KIND_F64
#define ODD_BITS odd_bits_of_f64
#elif CLUTCH_S_KIND == COPY_KIND_UNSIGNED
#define ODD_BITS odd_bits_of_u64
#else
#define ODD_BITS odd_bits_of_i64
#endif

// ---- stores ----
// Rounds to nearest even, to a code of fewer bits; `over` is the code of values past the largest finite one.
static inline uint small_from_bits(uint u, uint mantissa_bits, uint bias, uint largest, uint nan, uint over) {
  uint a = u & 0x7FFFFFFFu, sign = (u >> 24) & 0x80u;
  if (a > 0x7F800000u) return sign | nan;
  uint least = 128 - bias;  // f32's exponent field of the smallest normal
  uint e = max(a >> 23, 1u), drop = 23 - mantissa_bits, t;
  if (e >= least) {
    t = a - ((least - 1) << 23);
  } else {
    t = (a & 0x7FFFFFu) | (a >> 23 ? 0x800000u : 0u);
    drop += least - e;
  }
  uint code = drop > 25 ? 0 : (t + ((1u << (drop - 1)) - 1) + ((t >> drop) & 1)) >> drop;
  return sign | (code > largest ? over : code);
}
static inline void cast_store_f32(__global uchar* base, long i, X x) { store_f32(base, i, (float)x); }
#ifdef cl_khr_fp64
static inline void cast_store_f64(__global uchar* base, long i, X x) { store_f64(base, i, (double)x); }
#endif
static inline void cast_store_f16(__global uchar* base, long i, X x) { ((__global ushort*)base)[i] = (ushort)f16_from_bits(ODD_BITS(x)); }
static inline void cast_store_bf16(__global uchar* base, long i, X x) { ((__global ushort*)base)[i] = (ushort)bf16_from_bits(ODD_BITS(x)); }
static inline void cast_store_f8e4m3fn(__global uchar* base, long i, X x) {
  base[i] = (uchar)small_from_bits(ODD_BITS(x), 3, 7, 0x7E, 0x7F, CLUTCH_SATURATE ? 0x7E : 0x7F);
}
static inline void cast_store_f8e5m2(__global uchar* base, long i, X x) {
  base[i] = (uchar)small_from_bits(ODD_BITS(x), 2, 15, 0x7B, 0x7F, CLUTCH_SATURATE ? 0x7B : 0x7C);
}
static inline void cast_store_f8e8m0fnu(__global uchar* base, long i, X x) {
#if CLUTCH_S_KIND == COPY_KIND_F32
  uint a = as_uint(x) & 0x7FFFFFFFu;
#else
  uint a = as_uint((float)x) & 0x7FFFFFFFu;  // PyTorch's rule is one on f32 values
#endif
  uint e = a >> 23;
  uint up = (a & 0x400000u) != 0 && ((a & 0x3FFFFFu) != 0 || e > 0);
  base[i] = (uchar)(e == 255 ? 255 : e + up);
}
#if CLUTCH_S_KIND == COPY_KIND_INTEGER || CLUTCH_S_KIND == COPY_KIND_UNSIGNED
static inline long whole(long x, long least, long largest) { return x; }
static inline ulong whole_unsigned(ulong x) { return x; }
#else
// Truncates; NaN gives 0, values out of range give the nearest bound.
static inline long whole(X x, long least, long largest) {
  if (x != x) return 0;
  if (x <= (X)least) return least;
  if (x >= (X)largest) return largest;  // (X)largest may round up past it, and X has no numbers between
  return (long)x;
}
static inline ulong whole_unsigned(X x) {
  if (!(x > 0)) return 0;
  if (x >= (X)0x1p64) return ~0ul;
  return x >= (X)0x1p63 ? (ulong)(long)(x - (X)0x1p63) + (1ul << 63) : (ulong)(long)x;
}
#endif
static inline void cast_store_i8(__global uchar* base, long i, X x) { store_i8(base, i, whole(x, -128, 127)); }
static inline void cast_store_u8(__global uchar* base, long i, X x) { store_u8(base, i, whole(x, 0, 255)); }
static inline void cast_store_i16(__global uchar* base, long i, X x) { store_i16(base, i, whole(x, -32768, 32767)); }
static inline void cast_store_i32(__global uchar* base, long i, X x) { store_i32(base, i, whole(x, -2147483647L - 1, 2147483647L)); }
static inline void cast_store_i64(__global uchar* base, long i, X x) { store_i64(base, i, whole(x, -9223372036854775807L - 1, 9223372036854775807L)); }
static inline void cast_store_u16(__global uchar* base, long i, X x) { store_u16(base, i, whole(x, 0, 65535)); }
static inline void cast_store_u32(__global uchar* base, long i, X x) { store_u32(base, i, whole(x, 0, 4294967295L)); }
static inline void cast_store_u64(__global uchar* base, long i, X x) { store_u64(base, i, (long)whole_unsigned(x)); }
static inline void cast_store_bool(__global uchar* base, long i, X x) { base[i] = x != 0; }

#define GET CLUTCH_CONCAT(load_, S_NAME)
#define CAST_STORE CLUTCH_CONCAT(cast_store_, D_NAME)

// Element `to` of the destination from element `from` of the source; complex elements are two reals.
static inline void cast_one(__global uchar* out, long to, __global const uchar* in, long from) {
#if CLUTCH_D_COMPLEX && CLUTCH_S_COMPLEX
  CAST_STORE(out, 2 * to, GET(in, 2 * from));
  CAST_STORE(out, 2 * to + 1, GET(in, 2 * from + 1));
#elif CLUTCH_D_COMPLEX
  CAST_STORE(out, 2 * to, GET(in, from));
  CAST_STORE(out, 2 * to + 1, 0);
#elif CLUTCH_S_COMPLEX && CLUTCH_BOOLEAN
  out[to] = GET(in, 2 * from) != 0 || GET(in, 2 * from + 1) != 0;
#elif CLUTCH_S_COMPLEX
  CAST_STORE(out, to, GET(in, 2 * from));
#else
  CAST_STORE(out, to, GET(in, from));
#endif
}
#endif

// Contiguous cast; CLUTCH_VECTOR says that both sides compute in f32 vectors.
#ifdef CLUTCH_ENTRY_copy_cast_contiguous
#define WALK_CAST(store, load) \
  for (ulong i = begin + item * WIDTH; i < tail; i += items * WIDTH) CLUTCH_CONCAT(store, D_NAME)(out, i, CLUTCH_CONCAT(load, S_NAME)(in, i));
static inline void copy_cast_contiguous_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* in, ulong n, uint streaming) {
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n), tail = begin;
#if CLUTCH_VECTOR
    tail = begin + (end - begin) / WIDTH * WIDTH;
#ifdef CLUTCH_HAS_WHOLE
    if (CLUTCH_WHOLE((ulong)out | (ulong)in)) {
      if (streaming) {
        WALK_CAST(streamv_, loada_)
      } else {
        WALK_CAST(storea_, loada_)
      }
    } else
#endif
        if (streaming && (ulong)(out + begin * CLUTCH_D_BYTES) % (WIDTH * CLUTCH_D_BYTES) == 0) {
      WALK_CAST(streamv_, loadv_)
    } else {
      WALK_CAST(storev_, loadv_)
    }
#endif
    for (ulong i = tail + item; i < end; i += items) cast_one(out, i, in, i);
  }
}

__kernel void copy_cast_contiguous(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset, ulong n, uint streaming) {
  CLUTCH_IF_PREDICATE
  copy_cast_contiguous_body(CLUTCH_IDS, out + out_offset, in + in_offset, n, streaming);
}
#endif

#ifdef CLUTCH_ENTRY_copy_cast_strided
#define CAST_ONE(to, from) cast_one(out, to, in, from)
#define CAST_RUN(to, from, run) EACH_OF_RUN(to, from, run, CAST_ONE)
static inline void copy_cast_strided_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* in, const Shape* shape, ulong n) {
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
#ifdef CLUTCH_IS_CPU
    WALK_RUNS(shape, begin, end, CAST_RUN)
#else
    for (ulong i = begin + item; i < end; i += items) {
      Offsets o = clutch_offsets(shape, 0, (IDX)i);
      CAST_ONE(o.at[0], o.at[1]);
    }
#endif
  }
}

__kernel void copy_cast_strided(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset, ulong n,
                                CLUTCH_SHAPE_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_SHAPE(shape)
  copy_cast_strided_body(CLUTCH_IDS, out + out_offset, in + in_offset, &shape, n);
}
#endif
