// SPDX-License-Identifier: Apache-2.0
// index, index_put: elements by tensors of indices. index_places turns indices into places, offsets of elements, a launch for each tensor of indices.
//   index_take            reads elements at places
//   index_put, index_add  go through places in order: of equal ones the last is stored, or all are added up, one after another. No atomics.
// Ownership: an item owns a chunk of elements of the result, or of the values. No local memory.
// Needs: PLACE (int or long); index_take, index_put: CLUTCH_T_BYTES (of an element); index_add: T_NAME, A (type that adds), CLUTCH_ABREAST (elements that are
// added up side by side), and what dtype.clh needs.
#include "common/launch.clh"
#include "index/args.h"

#ifndef PLACE
#error "PLACE is not defined"
#endif

#ifdef CLUTCH_ENTRY_index_places
__kernel void index_places(CLUTCH_PREDICATE __global uchar* places, ulong places_offset, __global const uchar* index, ulong index_offset,
                           CLUTCH_ARGS(IndexPlacesArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(IndexPlacesArgs, args)
  __global PLACE* place_of = (__global PLACE*)(places + places_offset);
  index += index_offset;
  const ulong chunk = args.chunk, n = args.n;
  for (ulong begin = get_global_id(0) * chunk; begin < n; begin += get_global_size(0) * chunk)
    for (ulong k = begin; k < min(begin + chunk, n); ++k) {
      long i = args.is_i64 ? ((__global const long*)index)[k] : (long)((__global const int*)index)[k];
      if (i < 0) i += args.size;
      const long before = args.first ? 0 : (long)place_of[k];
      place_of[k] = (PLACE)(i < 0 || i >= args.size || before < 0 ? -1 : before + i * args.stride);
    }
}
#else

#ifdef CLUTCH_ENTRY_index_add
#include "common/dtype.clh"
#else
#include "common/bytes.clh"
#define T CLUTCH_BYTES(CLUTCH_T_BYTES)
#endif

// A row of elements, and which of its inner ones are an item's.
typedef struct Row {
  ulong e, end;         // element at `from`, and the end of the item's elements
  ulong row, outer, k;  // row number outer * places + k
  ulong from, to;
} Row;

static inline Row first_row(ulong task, ulong all, const IndexArgs* args) {
  Row r;
  r.e = task * args->chunk, r.end = min(r.e + args->chunk, all);
  r.row = args->inner == 1 ? r.e : r.e / args->inner;
  r.outer = args->outer == 1 ? 0 : r.row / args->places, r.k = r.row - r.outer * args->places;
  r.from = r.e - r.row * args->inner, r.to = min(r.from + (r.end - r.e), args->inner);
  return r;
}
static inline void next_row(Row* r, const IndexArgs* args) {
  r->e += r->to - r->from, r->row += 1, r->k += 1;
  if (r->k == args->places) r->k = 0, r->outer += 1;
  r->from = 0, r->to = min(r->end - r->e, args->inner);
}
// Goes through the rows of an item.
#define FOR_EACH_ROW(r, args)                                                              \
  const ulong all = args.outer * args.places * args.inner;                                 \
  for (ulong task = get_global_id(0); task * args.chunk < all; task += get_global_size(0)) \
    for (Row r = first_row(task, all, &args); r.e < r.end; next_row(&r, &args))
#endif

#ifdef CLUTCH_ENTRY_index_take
__kernel void index_take(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* x, ulong x_offset, __global const uchar* places,
                         ulong places_offset, CLUTCH_ARGS(IndexArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(IndexArgs, args)
  const long inner_stride = args.inner_stride;
  FOR_EACH_ROW(r, args) {
    const PLACE place = ((__global const PLACE*)(places + places_offset))[r.k];
    __global T* out_row = (__global T*)(out + out_offset) + r.row * args.inner;
    __global const T* x_row = (__global const T*)(x + x_offset) + ((long)r.outer * args.outer_stride + (place < 0 ? 0 : (long)place));
    if (place < 0) {
      for (ulong q = r.from; q < r.to; ++q) out_row[q] = (T)args.outside;
    } else if (inner_stride == 1) {
      for (ulong q = r.from; q < r.to; ++q) out_row[q] = x_row[q];
    } else {
      for (ulong q = r.from; q < r.to; ++q) out_row[q] = x_row[(long)q * inner_stride];
    }
  }
}
#endif

#if defined(CLUTCH_ENTRY_index_put) || defined(CLUTCH_ENTRY_index_add)
#define INDEX_PUT_PARAMS                                                                                                                     \
  CLUTCH_PREDICATE __global uchar *self, ulong self_offset, __global const uchar *values, ulong values_offset, __global const uchar *places, \
      ulong places_offset, __global const uchar *order, ulong order_offset, CLUTCH_ARGS(IndexArgs, args)
// places, ascending: of the values at `order`.
#define INDEX_PUT_BASES                                                             \
  CLUTCH_TAKE_ARGS(IndexArgs, args)                                                 \
  __global const PLACE* place_of = (__global const PLACE*)(places + places_offset); \
  __global const long* order_of = (__global const long*)(order + order_offset);
#endif

#ifdef CLUTCH_ENTRY_index_put
__kernel void index_put(INDEX_PUT_PARAMS) {
  CLUTCH_IF_PREDICATE
  INDEX_PUT_BASES
  FOR_EACH_ROW(r, args) {
    const PLACE place = place_of[r.k];
    if (place < 0 || (r.k + 1 < args.places && place_of[r.k + 1] == place)) continue;
    __global T* self_row = (__global T*)(self + self_offset) + ((long)r.outer * args.outer_stride + (long)place);
    __global const T* value = (__global const T*)(values + values_offset) + (r.outer * args.places + (ulong)order_of[r.k]) * args.inner;
    for (ulong q = r.from; q < r.to; ++q) self_row[(long)q * args.inner_stride] = value[q];
  }
}
#endif

#ifdef CLUTCH_ENTRY_index_add
#define LOAD(base, i) ((A)CLUTCH_CONCAT(load_, T_NAME)(base, i))
#define STORE(base, i, x) CLUTCH_CONCAT(store_, T_NAME)(base, i, x)
__kernel void index_add(INDEX_PUT_PARAMS) {
  CLUTCH_IF_PREDICATE
  INDEX_PUT_BASES
  self += self_offset, values += values_offset;
  FOR_EACH_ROW(r, args) {
    const PLACE place = place_of[r.k];
    if (place < 0 || (r.k > 0 && place_of[r.k - 1] == place)) continue;
    const long self_row = (long)r.outer * args.outer_stride + (long)place;
    for (ulong q = r.from; q < r.to; q += CLUTCH_ABREAST) {
      const uint count = (uint)min(r.to - q, (ulong)CLUTCH_ABREAST);
      A sum[CLUTCH_ABREAST];
      for (uint l = 0; l < count; ++l) sum[l] = LOAD(self, self_row + (long)(q + l) * args.inner_stride);
      for (ulong j = r.k; j < args.places && place_of[j] == place; ++j) {
        const long value = (long)((r.outer * args.places + (ulong)order_of[j]) * args.inner + q);
        for (uint l = 0; l < count; ++l) sum[l] += LOAD(values, value + l);
      }
      for (uint l = 0; l < count; ++l) STORE(self, self_row + (long)(q + l) * args.inner_stride, sum[l]);
    }
  }
}
#endif
