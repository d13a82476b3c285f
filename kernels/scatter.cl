// SPDX-License-Identifier: Apache-2.0
// scatter_reduce: reduces elements of src into the elements of out that an index names, along one dimension. A line is all elements along that dimension:
// `depth` of out, `m` of index and src. The elements of a line are reduced one after another, in order. Ownership: an item owns `bundle` neighbouring lines at
// a time; in scatter_panels `panel` neighbouring features of all rows. No local memory. Needs: what common/combine.clh and common/offsets.clh need (operands:
// out, index, src); T_NAME; INDEX (int or long); CLUTCH_OP (common/reductions.h); CLUTCH_MEAN (1: divide by the count); CLUTCH_DIRECT (1: out is the
// accumulator; 0: accumulators and counts are in scratch, scatter_accumulators(), and elements of out that no index names keep their value); for panels
// T, the type of an element.
#include "common/combine.clh"
#include "common/offsets.clh"
#include "scatter/args.h"

#if !defined(T_NAME) || !defined(INDEX) || !defined(CLUTCH_OP) || !defined(CLUTCH_MEAN) || !defined(CLUTCH_DIRECT)
#error "T_NAME, INDEX, CLUTCH_OP, CLUTCH_MEAN and CLUTCH_DIRECT are not defined"
#endif

#define LOAD(base, i) CLUTCH_CONCAT(load_, T_NAME)(base, i)
#define STORE(base, i, x) CLUTCH_CONCAT(store_, T_NAME)(base, i, x)

static inline A result_of(A acc, int count) {
#if !CLUTCH_MEAN
  return acc;
#elif defined(A_IS_U64)
  return (A)((ulong)acc / (ulong)count);
#elif defined(A_IS_I64)
  return acc / count - (acc % count < 0 ? 1 : 0);
#elif defined(A_IS_F64)
  return acc / count;
#else
  return div_rn(acc, (A)count);
#endif
}

#ifdef CLUTCH_ENTRY_scatter_lines
__kernel void scatter_lines(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global uchar* accumulators, ulong accumulators_offset,
                            __global uchar* counts, ulong counts_offset, __global const uchar* index, ulong index_offset, __global const uchar* src,
                            ulong src_offset, CLUTCH_ARGS(ScatterLinesArgs, args), int rank, CLUTCH_SHAPE_VECTOR sizes, CLUTCH_SHAPE_VECTOR s0,
                            CLUTCH_SHAPE_VECTOR s1, CLUTCH_SHAPE_VECTOR s2) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(ScatterLinesArgs, args)
  const ulong lines = args.lines, depth = args.depth, m = args.m, bundle = args.bundle;
  const long out_inner = args.out_inner, index_inner = args.index_inner, src_inner = args.src_inner;
  out += out_offset, index += index_offset, src += src_offset;
  ulong item = get_global_id(0), items = get_global_size(0);
#if !CLUTCH_DIRECT
  const uint include_self = args.include_self;
  const ulong begin = scatter_accumulators(item, depth, bundle);
  __global A* acc = (__global A*)(accumulators + accumulators_offset) + begin;
  __global int* count = (__global int*)(counts + counts_offset) + begin;
#endif
  IDX size[CLUTCH_RANK_LANES], stride[CLUTCH_OPERANDS][CLUTCH_RANK_LANES];
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(sizes, 0, size);
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(s0, 0, stride[0]);
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(s1, 0, stride[1]);
  CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(s2, 0, stride[2]);
  for (ulong first = item * bundle; first < lines; first += items * bundle) {
    int width = (int)min(lines - first, bundle);
    IDX offset[SCATTER_BUNDLE][CLUTCH_OPERANDS];
    for (int l = 0; l < width; ++l) {
      for (int k = 0; k < CLUTCH_OPERANDS; ++k) offset[l][k] = 0;
      add_offsets((IDX)(first + l), rank, size, stride, 0, offset[l]);
    }
#if !CLUTCH_DIRECT
    for (IDX d = 0; d < (IDX)depth; ++d)
      for (int l = 0; l < width; ++l) {
        acc[d * width + l] = include_self ? (A)LOAD(out, offset[l][0] + d * (IDX)out_inner) : (A)CLUTCH_IDENTITY;
        count[d * width + l] = include_self;
      }
#endif
    for (IDX j = 0; j < (IDX)m; ++j)
      for (int l = 0; l < width; ++l) {
        long i = ((__global const INDEX*)index)[offset[l][1] + j * (IDX)index_inner];
        if ((ulong)i < depth) {
          A x = LOAD(src, offset[l][2] + j * (IDX)src_inner);
#if CLUTCH_DIRECT
          IDX at = offset[l][0] + (IDX)i * (IDX)out_inner;
          STORE(out, at, CLUTCH_COMBINE(A, (A)LOAD(out, at), x));
#else
          acc[(IDX)i * width + l] = CLUTCH_COMBINE(A, acc[(IDX)i * width + l], x);
          count[(IDX)i * width + l] += 1;
#endif
        }
      }
#if !CLUTCH_DIRECT
    for (IDX d = 0; d < (IDX)depth; ++d)
      for (int l = 0; l < width; ++l)
        if (count[d * width + l] > (int)include_self) STORE(out, offset[l][0] + d * (IDX)out_inner, result_of(acc[d * width + l], count[d * width + l]));
#endif
  }
}
#endif

// Contiguous rows of features: row j of src is reduced into row index[j], in order, panel by panel.
#ifdef CLUTCH_ENTRY_scatter_panels
#if !CLUTCH_DIRECT
#error "panels accumulate in out"
#endif
#define ROW(base, row, stride) ((base) + ((row) * (stride) + (long)first) * (long)sizeof(T))
#define AHEAD 16
__kernel void scatter_panels(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* index, ulong index_offset, __global const uchar* src,
                             ulong src_offset, CLUTCH_ARGS(ScatterPanelsArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(ScatterPanelsArgs, args)
  const ulong features = args.features, panel = args.panel, depth = args.depth, m = args.m;
  const long out_stride = args.out_stride, index_stride = args.index_stride, src_stride = args.src_stride;
  out += out_offset, index += index_offset, src += src_offset;
  __global const INDEX* named = (__global const INDEX*)index;
  for (ulong first = get_global_id(0) * panel; first < features; first += get_global_size(0) * panel) {
    long width = (long)min(features - first, panel), whole = width / WIDTH * WIDTH;
    for (long j = 0; j < (long)m; ++j) {
      // Prefetch: rows of out are in any order, and only a part of each row of src is read.
      long next = min(j + AHEAD, (long)m - 1), later = clamp((long)named[next * index_stride], 0L, (long)depth - 1);
      for (long byte = 0; byte < width * (long)sizeof(T); byte += 64) {
        CLUTCH_PREFETCH(ROW(out, later, out_stride) + byte);
        CLUTCH_PREFETCH(ROW(src, next, src_stride) + byte);
      }
      long i = (long)named[j * index_stride];
      long end = (ulong)i < depth ? width : 0, full = (ulong)i < depth ? whole : 0;
      __global uchar* to = ROW(out, end > 0 ? i : 0, out_stride);
      __global const uchar* from = ROW(src, j, src_stride);
      for (long f = 0; f < full; f += WIDTH)
        CLUTCH_CONCAT(storev_, T_NAME)(to, f, CLUTCH_COMBINE(V, CLUTCH_CONCAT(loadv_, T_NAME)(to, f), CLUTCH_CONCAT(loadv_, T_NAME)(from, f)));
      for (long f = full; f < end; ++f) STORE(to, f, CLUTCH_COMBINE(A, LOAD(to, f), LOAD(from, f)));
    }
  }
}
#endif
