// SPDX-License-Identifier: Apache-2.0
// fill_: every element becomes one value, given as its stored bits. arange_: element i becomes start + i * step.
// Ownership: a group owns tiles of CLUTCH_TILE elements. No local memory.
// Needs: T, an unsigned type of the element's size (fill) or the dtype's own (arange), and what the included files need.
#include "common/dtype.clh"
#include "common/elementwise.clh"
#include "common/launch.clh"
#include "common/math.clh"

#ifndef T
#error "T is not defined"
#endif

// Contiguous: `pattern` repeats every 16 bytes, whatever the element's size.
#ifdef CLUTCH_ENTRY_fill_contiguous
// Byte i of a pattern; without an array, which some compilers place in each item's memory.
static inline uchar byte_of(uint4 pattern, uint i) {
  const uint low = i & 4 ? pattern.y : pattern.x, high = i & 4 ? pattern.w : pattern.z;
  return (uchar)((i & 8 ? high : low) >> i % 4 * 8);
}
static inline void fill_contiguous_body(CLUTCH_ID_PARAMS, __global uchar* out, ulong bytes, uint4 pattern, uint streaming) {
  const ulong block = CLUTCH_TILE;
#if WIDTH == 16
  uint16 wide = (uint16)(pattern, pattern, pattern, pattern);
#define WIDE uint16
#elif WIDTH == 8
  uint8 wide = (uint8)(pattern, pattern);
#define WIDE uint8
#else
  uint4 wide = pattern;
#define WIDE uint4
#endif
  for (ulong tile = group; tile * block < bytes; tile += groups) {
    ulong begin = tile * block, end = min(begin + block, bytes);
    ulong tail = begin + (end - begin) / sizeof(WIDE) * sizeof(WIDE);
    if ((ulong)(out + begin) % sizeof(WIDE) == 0) {
      for (ulong i = begin + item * sizeof(WIDE); i < tail; i += items * sizeof(WIDE)) {
#ifdef CLUTCH_HAS_STREAMING
        if (streaming) {
          __builtin_nontemporal_store(wide, (__global WIDE*)(out + i));
          continue;
        }
#endif
        *(__global WIDE*)(out + i) = wide;
      }
    } else {
      tail = begin;
    }
    for (ulong i = tail + item; i < end; i += items) out[i] = byte_of(pattern, (uint)(i % 16));
  }
}

__kernel void fill_contiguous(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, ulong bytes, uint4 pattern, uint streaming) {
  CLUTCH_IF_PREDICATE
  fill_contiguous_body(CLUTCH_IDS, out + out_offset, bytes, pattern, streaming);
}
#endif

#ifdef CLUTCH_ENTRY_fill_strided
static inline void fill_strided_body(CLUTCH_ID_PARAMS, __global uchar* out, const Shape* shape, ulong n, T value) {
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
    for (ulong i = begin + item; i < end; i += items) ((__global T*)out)[clutch_offsets(shape, 0, (IDX)i).at[0]] = value;
  }
}

__kernel void fill_strided(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, ulong n, CLUTCH_SHAPE_PARAMS, T value) {
  CLUTCH_IF_PREDICATE
  CLUTCH_SHAPE(shape)
  fill_strided_body(CLUTCH_IDS, out + out_offset, &shape, n, value);
}
#endif

#ifdef CLUTCH_ENTRY_fill_arange
#if !defined(T_NAME) || !defined(ACC) || !defined(CLUTCH_IS_INTEGER)
#error "T_NAME, ACC and CLUTCH_IS_INTEGER are not defined"
#endif
static inline void fill_arange_body(CLUTCH_ID_PARAMS, __global uchar* out, const Shape* shape, ulong n, ACC start, ACC step) {
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
    for (ulong i = begin + item; i < end; i += items) {
#if CLUTCH_IS_INTEGER
      ACC x = start + (ACC)i * step;
#elif defined(T_IS_F64)
      ACC x = fma((ACC)i, step, start);
#else
      ACC x = fma_rn((ACC)i, step, start);
#endif
      CLUTCH_CONCAT(store_, T_NAME)(out, clutch_offsets(shape, 0, (IDX)i).at[0], x);
    }
  }
}

__kernel void fill_arange(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, ulong n, CLUTCH_SHAPE_PARAMS, ACC start, ACC step) {
  CLUTCH_IF_PREDICATE
  CLUTCH_SHAPE(shape)
  fill_arange_body(CLUTCH_IDS, out + out_offset, &shape, n, start, step);
}
#endif
