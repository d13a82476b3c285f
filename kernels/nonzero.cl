// SPDX-License-Identifier: Apache-2.0
// nonzero, masked_select, unique: finds elements that are not 0, or that differ from the one before them. Elements are cut into parts. A launch counts what
// each part has, cumsum adds the counts up, and a launch writes what is found behind what the parts before have: no atomics.
//   nonzero_count, nonzero_place            an item owns a part. No local memory.
//   nonzero_tile_count, nonzero_tile_place  a work-group owns a part (nonzero/tiles.clh)
// Needs: CLUTCH_FIND (NONZERO_ELEMENTS or NONZERO_FIRSTS); CLUTCH_X_BYTES, CLUTCH_V_BYTES (of an element of x, of the values); CLUTCH_MASK (bits of an element
// of x that are 0 if it is), CLUTCH_INFINITY (for NONZERO_FIRSTS: bits of infinity, of floats; else CLUTCH_MASK); CLUTCH_RANK_LANES (most sizes).
#include "common/bytes.clh"
#include "nonzero/args.h"

#if !defined(CLUTCH_FIND) || !defined(CLUTCH_X_BYTES) || !defined(CLUTCH_V_BYTES) || !defined(CLUTCH_MASK) || !defined(CLUTCH_INFINITY) || \
    !defined(CLUTCH_RANK_LANES)
#error "CLUTCH_FIND, CLUTCH_X_BYTES, CLUTCH_V_BYTES, CLUTCH_MASK, CLUTCH_INFINITY and CLUTCH_RANK_LANES are not defined"
#endif

#define X CLUTCH_BYTES(CLUTCH_X_BYTES)
#define V CLUTCH_BYTES(CLUTCH_V_BYTES)

// True if element i is to be found.
static inline uint is_found(__global const X* x, ulong i) {
#if CLUTCH_FIND == NONZERO_FIRSTS
  if (i == 0) return 1;
  const X here = x[i], before = x[i - 1], magnitude = here & (X)CLUTCH_MASK;
  // Zeros are equal whatever their signs are, and NaN equals nothing.
  return magnitude > (X)CLUTCH_INFINITY || (here != before && (magnitude | (before & (X)CLUTCH_MASK)) != 0);
#elif CLUTCH_X_BYTES == NONZERO_PAIR_BYTES
  return ((x[i].x | x[i].y) & (ulong)CLUTCH_MASK) != 0;
#else
  return (x[i] & (X)CLUTCH_MASK) != 0;
#endif
}

// Where the indices of the found elements of an item are: those of a row, all but the last, change seldom.
typedef struct Row {
  ulong begin, end;  // elements of the row
  ulong index[CLUTCH_RANK_LANES];
} Row;

// The quotient of numbers most of which fit 32 bits, which divide in a fraction of the time.
static inline ulong over(ulong a, ulong b) { return (a | b) >> 32 == 0 ? (uint)a / (uint)b : a / b; }

// Stores the indices of element i at row `to` of the places. `size`: the last first.
CLUTCH_INLINE void store_place(__global long* places, ulong to, ulong i, Row* row, const ulong* size, uint rank) {
  if (i >= row->end) {
    ulong rest = over(i, size[0]);
    row->begin = rest * size[0], row->end = row->begin + size[0];
#pragma unroll
    for (uint d = 1; d < CLUTCH_RANK_LANES; ++d)
      if (d < rank) {
        const ulong outer = over(rest, size[d]);
        row->index[d] = rest - outer * size[d], rest = outer;
      }
  }
  __global long* place = places + to * rank + (rank - 1);
  place[0] = (long)(i - row->begin);
#pragma unroll
  for (uint d = 1; d < CLUTCH_RANK_LANES; ++d)
    if (d < rank) place[-(int)d] = (long)row->index[d];
}

#define NONZERO_PLACE_PARAMS                                                                                                                                \
  CLUTCH_PREDICATE __global uchar *places, ulong places_offset, __global uchar *values, ulong values_offset, __global uchar *inverse, ulong inverse_offset, \
      __global const uchar *sums, ulong sums_offset, __global const uchar *x, ulong x_offset, __global const uchar *source, ulong source_offset,            \
      __global const uchar *order, ulong order_offset, CLUTCH_ARGS(NonzeroArgs, args), ulong16 sizes
#define NONZERO_PLACE_BASES                                                       \
  CLUTCH_TAKE_ARGS(NonzeroArgs, args)                                             \
  const ulong n = args.n, chunk = args.chunk, parts = args.parts;                 \
  const ulong capacity = args.capacity;                                           \
  const uint writes = args.writes, rank = args.rank;                              \
  __global long* place_of = (__global long*)(places + places_offset);             \
  __global V* value_of = (__global V*)(values + values_offset);                   \
  __global long* inverse_of = (__global long*)(inverse + inverse_offset);         \
  __global const ulong* sum_of = (__global const ulong*)(sums + sums_offset);     \
  __global const X* x_of = (__global const X*)(x + x_offset);                     \
  __global const V* source_of = (__global const V*)(source + source_offset);      \
  __global const ulong* order_of = (__global const ulong*)(order + order_offset); \
  ulong size[16];                                                                 \
  vstore16(sizes, 0, size);                                                       \
  Row row;                                                                        \
  row.end = 0;
// Writes element i, which was found as number `to`.
#define STORE_FOUND(to, i)                                                       \
  if ((to) < capacity) {                                                         \
    if (writes & NONZERO_PLACES) store_place(place_of, to, i, &row, size, rank); \
    if (writes & NONZERO_VALUES) value_of[to] = source_of[i];                    \
  }

#if defined(CLUTCH_ENTRY_nonzero_tile_count) || defined(CLUTCH_ENTRY_nonzero_tile_place)
#include "nonzero/tiles.clh"
#endif

#ifdef CLUTCH_ENTRY_nonzero_count
__kernel void nonzero_count(CLUTCH_PREDICATE __global uchar* counts, ulong counts_offset, __global const uchar* x, ulong x_offset,
                            CLUTCH_ARGS(NonzeroArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(NonzeroArgs, args)
  __global const X* x_of = (__global const X*)(x + x_offset);
  for (ulong p = get_global_id(0); p < args.parts; p += get_global_size(0)) {
    const ulong begin = p * args.chunk, end = min(begin + args.chunk, args.n);
    ulong count = 0;
    for (ulong i = begin; i < end;) {
      // Sums of 32 bits go in wider vectors.
      const ulong stop = min(i + 1024, end);
      uint few = 0;
      for (; i < stop; ++i) few += is_found(x_of, i);
      count += few;
    }
    ((__global ulong*)(counts + counts_offset))[p] = count;
  }
}
#endif

#ifdef CLUTCH_ENTRY_nonzero_place
__kernel void nonzero_place(NONZERO_PLACE_PARAMS) {
  CLUTCH_IF_PREDICATE
  NONZERO_PLACE_BASES
  for (ulong p = get_global_id(0); p < parts; p += get_global_size(0)) {
    const ulong begin = p * chunk, end = min(begin + chunk, n);
    ulong to = p > 0 ? sum_of[p - 1] : 0;
    for (ulong first = begin; first < end; first += NONZERO_LIST) {
      const uint count = (uint)min(end - first, (ulong)NONZERO_LIST);
      uint list[NONZERO_LIST], found = 0, any = writes & NONZERO_INVERSE;
      for (uint k = 0; k < count; ++k) any |= is_found(x_of, first + k);
      if (any == 0) continue;
      // Without branches: what was not found is overwritten.
      for (uint k = 0; k < count; ++k) list[found] = k, found += is_found(x_of, first + k);
      if (writes & NONZERO_INVERSE)
        for (uint k = 0, number = 0; k < count; ++k) {
          number += is_found(x_of, first + k);
          inverse_of[writes & NONZERO_ORDERED ? order_of[first + k] : first + k] = (long)(to + number) - 1;
        }
      for (uint k = 0; k < found; ++k) STORE_FOUND(to + k, first + list[k])
      to += found;
    }
  }
}
#endif
