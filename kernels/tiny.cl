// SPDX-License-Identifier: Apache-2.0
// tiny: small launches of a graph one after another, by one work-group that goes through a table of them. Each has the bits of its own kernel: functions are
// those that map computes, element by element.
// Ownership: the group owns all; its items take neighbouring vectors of an entry's elements. A barrier comes before entries that depend on others; it is in
// uniform control flow, as all items read the same guards between two barriers. No local memory.
// Needs: what common/expr.clh needs; IDX; CLUTCH_TINY_SHARED where the group has several items; and from expression.clh, which host/graph/tiny.cpp prints:
// TINY_BODY for each function, and CLUTCH_TINY_CASES.
#include "common/control.clh"
#include "common/expr.clh"
#include "common/launch.clh"
#include "common/shared.h"
#include "common/table.clh"
#include "reduce/args.h"
#include "tiny/args.h"

#ifndef IDX
#error "IDX is not defined"
#endif

// Functions are compiled once where calls are cheap; elsewhere pointers to an item's own memory would keep the table there.
#ifdef CLUTCH_IS_CPU
#define TINY_APART CLUTCH_APART
#define TINY_DIMENSIONS(d, first, end) for (int d = first; d < (end); ++d)
#else
#define TINY_APART CLUTCH_INLINE
#define TINY_DIMENSIONS(d, first, end) _Pragma("unroll") for (int d = first; d < (end); ++d)
#endif

#define TINY_LOAD_ROW(k, dtype) \
  (inner[k] ? CLUTCH_CONCAT(loadv_, dtype)(CLUTCH_CONCAT(b, k), row[k] + i) : CLUTCH_CONCAT(splat_, dtype)(CLUTCH_CONCAT(b, k), row[k]))
#define TINY_STORE_ROW(k, dtype, x) CLUTCH_CONCAT(storev_, dtype)(CLUTCH_CONCAT(b, k), row[k] + i, x)
#define TINY_LOAD_SOME(k, dtype) CLUTCH_CONCAT(gather_, dtype)(CLUTCH_CONCAT(b, k), at[k], count)
#define TINY_STORE_SOME(k, dtype, x) CLUTCH_CONCAT(scatter_, dtype)(CLUTCH_CONCAT(b, k), at[k], count, x)
#define TINY_NO_POSITION(k)
#define TINY_WORDS(e) ((__global const ulong*)((e) + 1))

// Function number `number` of OPERANDS tensors. TENSORS declares them, PARAMS the params from `words` on.
#define TINY_BODY(number, OPERANDS, EXPRESSION, TENSORS, PARAMS)                                                              \
  TINY_APART void CLUTCH_CONCAT(tiny_body_, number)(uint item, uint items, const Table* table, __global const TinyEntry* e) { \
    __global const ulong* words = TINY_WORDS(e);                                                                              \
    IDX size[TINY_RANK], stride[OPERANDS][TINY_RANK], inner[OPERANDS];                                                        \
    TINY_DIMENSIONS(d, 0, TINY_RANK) {                                                                                        \
      size[d] = (IDX)words[d];                                                                                                \
      for (int k = 0; k < OPERANDS; ++k) stride[k][d] = (IDX)words[(k + 1) * TINY_RANK + d];                                  \
    }                                                                                                                         \
    for (int k = 0; k < OPERANDS; ++k) inner[k] = stride[k][0];                                                               \
    words += (OPERANDS + 1) * TINY_RANK;                                                                                      \
    TENSORS(e->first)                                                                                                         \
    PARAMS                                                                                                                    \
    const uint n = e->n, vectors = e->vectors, lines = e->lines;                                                              \
    for (uint u = item; u < lines * vectors; u += items) {                                                                    \
      const uint line = lines == 1 ? 0 : u / vectors;                                                                         \
      const IDX i = (IDX)(u - line * vectors) * WIDTH;                                                                        \
      IDX index = (IDX)line, row[OPERANDS];                                                                                   \
      for (int k = 0; k < OPERANDS; ++k) row[k] = 0;                                                                          \
      if (lines > 1) {                                                                                                        \
        TINY_DIMENSIONS(d, 1, TINY_RANK) {                                                                                    \
          const IDX next = index / size[d], x = index - next * size[d];                                                       \
          for (int k = 0; k < OPERANDS; ++k) row[k] += x * stride[k][d];                                                      \
          index = next;                                                                                                       \
        }                                                                                                                     \
      }                                                                                                                       \
      EXPRESSION(TINY_LOAD_ROW, TINY_NO_POSITION, TINY_STORE_ROW)                                                             \
    }                                                                                                                         \
    for (uint part = item; part < e->parts; part += items) {                                                                  \
      const uint begin = e->part_first + part * e->part_step;                                                                 \
      const int count = (int)min(e->part_size, n - begin);                                                                    \
      IDX index = (IDX)begin, x[TINY_RANK], offset[OPERANDS], at[OPERANDS][WIDTH];                                            \
      for (int k = 0; k < OPERANDS; ++k) offset[k] = 0;                                                                       \
      TINY_DIMENSIONS(d, 0, TINY_RANK) {                                                                                      \
        const IDX next = index / size[d];                                                                                     \
        x[d] = index - next * size[d];                                                                                        \
        for (int k = 0; k < OPERANDS; ++k) offset[k] += x[d] * stride[k][d];                                                  \
        index = next;                                                                                                         \
      }                                                                                                                       \
      for (int l = 0; l < WIDTH; ++l) {                                                                                       \
        for (int k = 0; k < OPERANDS; ++k) at[k][l] = offset[k], offset[k] += stride[k][0];                                   \
        ++x[0];                                                                                                               \
        TINY_DIMENSIONS(d, 0, TINY_RANK - 1) {                                                                                \
          if (x[d] == size[d]) {                                                                                              \
            for (int k = 0; k < OPERANDS; ++k) offset[k] += stride[k][d + 1] - size[d] * stride[k][d];                        \
            x[d] = 0;                                                                                                         \
            ++x[d + 1];                                                                                                       \
          }                                                                                                                   \
        }                                                                                                                     \
      }                                                                                                                       \
      EXPRESSION(TINY_LOAD_SOME, TINY_NO_POSITION, TINY_STORE_SOME)                                                           \
    }                                                                                                                         \
  }

// Functions of rows: each item takes a row, whose elements combine in the order of common/reduce_order.clh. Rows have one block.
#define TINY_SET_VALUE(k, dtype, x) value = x;
#define CLUTCH_TOTAL_VALUE_0 total0
#define CLUTCH_TOTAL_VALUE_1 total1
#define CLUTCH_TOTAL_VALUE_2 total2
#define CLUTCH_TOTAL_VALUE_3 total3
#define CLUTCH_TOTAL_VALUE_4 row_length
#define TINY_KEEP(A, a) (a)
#define TINY_QUIET_f32(A, a) ((a) != (a) ? as_float(0x7FC00000u) : (a))
#define TINY_QUIET_f64(A, a) ((a) != (a) ? as_double(0x7FF8000000000000ul) : (a))
#define TINY_MASK_LANES(A, a) ((a) ? CLUTCH_TRUE : CLUTCH_FALSE)
#if WIDTH == 1
#define TINY_BELOW(count) (0 < (count))
#else
#define TINY_BELOW(count) CLUTCH_NARROW_MASK(CLUTCH_IOTA_VL < (VL)(long)(count))
#endif
#define TINY_NARROW(m) (m)
// Places of `count` elements of a row from j on.
#define TINY_PLACES(OPERANDS, j, count)                                         \
  IDX at[OPERANDS][WIDTH];                                                      \
  for (int l = 0; l < count; ++l) {                                             \
    IDX index = (IDX)(j) + l;                                                   \
    for (int k = 0; k < OPERANDS; ++k) at[k][l] = start[k];                     \
    for (int d = 0; d < TINY_RANK; ++d) {                                       \
      const IDX next = index / along_size[d], x = index - next * along_size[d]; \
      for (int k = 0; k < OPERANDS; ++k) at[k][l] += x * along[k][d];           \
      index = next;                                                             \
    }                                                                           \
  }
// total<number> of an operation: LANES and ONE combine vectors of accumulators A and two of them.
#define TINY_TOTAL(number, OPERANDS, A, V, NEUTRAL, LANES, ONE, WIDE, SPILL, ENDS, EXPRESSION)                              \
  {                                                                                                                         \
    V acc[CLUTCH_PARTIALS / WIDTH];                                                                                         \
    A partial[CLUTCH_PARTIALS];                                                                                             \
    for (int k = 0; k < CLUTCH_PARTIALS / WIDTH; ++k) acc[k] = (V)(A)NEUTRAL;                                               \
    for (uint j = 0; j < length; j += WIDTH) {                                                                              \
      const int count = (int)min(length - j, (uint)WIDTH), part = (int)(j / CLUTCH_CHAIN * 16 + j % 16) / WIDTH;            \
      TINY_PLACES(OPERANDS, j, count) V value;                                                                              \
      EXPRESSION(TINY_LOAD_SOME, TINY_NO_POSITION, TINY_SET_VALUE) value = WIDE(TINY_BELOW(count)) ? value : (V)(A)NEUTRAL; \
      acc[part] = LANES(acc[part], value);                                                                                  \
    }                                                                                                                       \
    for (int k = 0; k < CLUTCH_PARTIALS / WIDTH; ++k) SPILL(acc[k], partial + k * WIDTH);                                   \
    for (int h = CLUTCH_PARTIALS / 2; h > 0; h /= 2)                                                                        \
      for (int k = 0; k < h; ++k) partial[k] = ONE(partial[k], partial[k + h]);                                             \
    CLUTCH_CONCAT(total, number) = (V)(A)ENDS(A, partial[0]);                                                               \
  }
#define TINY_ELEMENTS(OPERANDS, EXPRESSION)                                                       \
  for (uint j = 0; j < length; j += WIDTH) {                                                      \
    const int count = (int)min(length - j, (uint)WIDTH);                                          \
    TINY_PLACES(OPERANDS, j, count) EXPRESSION(TINY_LOAD_SOME, TINY_NO_POSITION, TINY_STORE_SOME) \
  }
#define TINY_RESULTS(OPERANDS, EXPRESSION)                                                        \
  {                                                                                               \
    const int count = 1;                                                                          \
    TINY_PLACES(OPERANDS, 0, count) EXPRESSION(TINY_LOAD_SOME, TINY_NO_POSITION, TINY_STORE_SOME) \
  }
#define TINY_ROWS(number, OPERANDS, A, V, TENSORS, PARAMS, TOTALS, REST)                                                                                    \
  TINY_APART void CLUTCH_CONCAT(tiny_body_, number)(uint item, uint items, const Table* table, __global const TinyEntry* e) {                               \
    __global const ulong* words = TINY_WORDS(e);                                                                                                            \
    IDX kept_size[TINY_RANK], along_size[TINY_RANK], kept[OPERANDS][TINY_RANK], along[OPERANDS][TINY_RANK];                                                 \
    for (int d = 0; d < TINY_RANK; ++d) {                                                                                                                   \
      kept_size[d] = (IDX)words[d], along_size[d] = (IDX)words[TINY_RANK + d];                                                                              \
      for (int k = 0; k < OPERANDS; ++k) kept[k][d] = (IDX)words[2 * (k + 1) * TINY_RANK + d], along[k][d] = (IDX)words[(2 * (k + 1) + 1) * TINY_RANK + d]; \
    }                                                                                                                                                       \
    words += 2 * (OPERANDS + 1) * TINY_RANK;                                                                                                                \
    TENSORS(e->first) PARAMS const uint n = e->n, length = e->length;                                                                                       \
    const V row_length = (V)(A)length;                                                                                                                      \
    for (uint line = item; line < n; line += items) {                                                                                                       \
      IDX rest = (IDX)line, start[OPERANDS];                                                                                                                \
      for (int k = 0; k < OPERANDS; ++k) start[k] = 0;                                                                                                      \
      for (int d = 0; d < TINY_RANK; ++d) {                                                                                                                 \
        const IDX next = rest / kept_size[d], x = rest - next * kept_size[d];                                                                               \
        for (int k = 0; k < OPERANDS; ++k) start[k] += x * kept[k][d];                                                                                      \
        rest = next;                                                                                                                                        \
      }                                                                                                                                                     \
      V total0 = 0, total1 = 0, total2 = 0, total3 = 0;                                                                                                     \
      TOTALS REST                                                                                                                                           \
    }                                                                                                                                                       \
  }
#define TINY_ADD(a, b) ((a) + (b))
#define TINY_MUL(a, b) ((a) * (b))
#define TINY_LEAST(a, b) ((((a) < (b)) | ((a) != (a))) ? (a) : (b))
#define TINY_MOST(a, b) ((((a) > (b)) | ((a) != (a))) ? (a) : (b))
#define TINY_OR(a, b) ((a) | (b))
#define TINY_AND(a, b) ((a) & (b))
#define TINY_ADD_VL(a, b) CLUTCH_WRAP_64(a, +, b)
#define TINY_MUL_VL(a, b) CLUTCH_WRAP_64(a, *, b)
#define TINY_ADD_LONG(a, b) ((long)((ulong)(a) + (ulong)(b)))
#define TINY_MUL_LONG(a, b) ((long)((ulong)(a) * (ulong)(b)))

#include "expression.clh"

static inline void tiny_fill(uint item, uint items, __global uchar* out, uint n, ulong low, ulong high) {
  const ulong2 pattern = (ulong2)(low, high);
  const uchar16 bytes = as_uchar16(pattern);
  for (uint i = item * 16; i + 16 <= n; i += items * 16) vstore16(bytes, 0, out + i);
  for (uint i = n / 16 * 16 + item; i < n; i += items) out[i] = (uchar)((i & 8 ? high : low) >> i % 8 * 8);
}
static inline void tiny_copy(uint item, uint items, __global uchar* out, __global const uchar* in, uint n) {
  for (uint i = item * 16; i + 16 <= n; i += items * 16) vstore16(vload16(0, in + i), 0, out + i);
  for (uint i = n / 16 * 16 + item; i < n; i += items) out[i] = in[i];
}

// Does an entry, unless its guard holds 0. Returns the place of the next one.
CLUTCH_INLINE uint tiny_entry(uint item, uint items, const Table* table, __global const uchar* entries, uint place) {
  __global const TinyEntry* e = (__global const TinyEntry*)(entries + place);
  if (e->guard != 0 && *(__global const uint*)table_at(table, e->guard - 1) == 0) return e->skip;
  __global const ulong* w = TINY_WORDS(e);
  const uint first = e->first;
  switch (e->body) {
    case TINY_FILL: tiny_fill(item, items, table_at(table, first), e->n, w[0], w[1]); break;
    case TINY_COPY: tiny_copy(item, items, table_at(table, first), table_at(table, first + 1), e->n); break;
    case TINY_CHOOSE:
      if (item == 0)
        control_choose_body((__global uint*)table_at(table, first), (__global const uint*)table_at(table, first + 1), table_at(table, first + 2), (uint)w[0],
                            (uint)w[1], (uint)w[2], (uint)w[3], (uint)w[4], (uint)w[5], (uint)w[6]);
      break;
    case TINY_BEGIN:
      if (item == 0)
        control_begin_body((__global uint*)table_at(table, first), (__global long*)table_at(table, first + 1), (__global const uint*)table_at(table, first + 2),
                           (uint)w[0]);
      break;
    case TINY_NEXT:
      if (item == 0)
        control_next_body((__global uint*)table_at(table, first), (__global long*)table_at(table, first + 1), table_at(table, first + 2), (uint)w[0],
                          (uint)w[1], (uint)w[2]);
      break;
      CLUTCH_TINY_CASES
  }
  return e->next;
}

// A stage: entries that do not depend on each other, but the first one on those before. Returns the place of the next stage.
TINY_APART uint tiny_stage(uint item, uint items, const Table* table, __global const uchar* entries, uint place, uint end) {
  do place = tiny_entry(item, items, table, entries, place);
  while (place < end && ((__global const TinyEntry*)(entries + place))->waits == 0);
  return place;
}

#ifdef CLUTCH_ENTRY_tiny_table
__kernel void tiny_table(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global const uchar* entries, ulong entries_offset, uint end) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TABLE(table)
  const uint item = (uint)get_local_id(0), items = (uint)get_local_size(0);
  for (uint place = 0; place < end;) {
#ifdef CLUTCH_TINY_SHARED
    if (place > 0) barrier(CLK_GLOBAL_MEM_FENCE);
#endif
    place = tiny_stage(item, items, &table, entries + entries_offset, place, end);
  }
}
#endif
