// SPDX-License-Identifier: Apache-2.0
// @STEM@: out = -input.
// Ownership: a group owns tiles of CLUTCH_TILE elements. No local memory.
// Needs: T, and what the included files need.
#include "common/launch.clh"
#include "common/elementwise.clh"

#ifndef T
#error "T is not defined"
#endif

#ifdef CLUTCH_ENTRY_@STEM@_strided
static inline void @STEM@_strided_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const uchar* in, const Shape* shape, ulong n) {
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) {
    ulong begin = tile * CLUTCH_TILE, end = min(begin + CLUTCH_TILE, n);
    for (ulong i = begin + item; i < end; i += items) {
      Offsets o = clutch_offsets(shape, 0, (IDX)i);
      ((__global T*)out)[o.at[0]] = -((__global const T*)in)[o.at[1]];
    }
  }
}

__kernel void @STEM@_strided(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset, ulong n, CLUTCH_SHAPE_PARAMS) {
  CLUTCH_IF_PREDICATE
  CLUTCH_SHAPE(shape)
  @STEM@_strided_body(CLUTCH_IDS, out + out_offset, in + in_offset, &shape, n);
}
#endif
