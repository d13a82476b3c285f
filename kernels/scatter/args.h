// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/scatter.cpp and the kernels of scatter.
#ifndef CLUTCH_SCATTER_ARGS_H
#define CLUTCH_SCATTER_ARGS_H

#include "common/shared.h"

// Most lines of a bundle (scatter_lines). A macro since the kernel declares an array of it.
#define SCATTER_BUNDLE 16

CLUTCH_SHARED_BEGIN

// Arguments of scatter_lines. Strides are in elements.
typedef struct ScatterLinesArgs {
  clutch_u64 lines;         // elements of the dimensions that are not indexed
  clutch_u64 depth;         // elements of a line of out
  clutch_u64 m;             // elements of a line of index and of src
  clutch_u64 bundle;        // neighbouring lines that a work-item takes at a time, at most SCATTER_BUNDLE
  clutch_i64 out_inner;     // from an element of a line of out to the next
  clutch_i64 index_inner;   // the same of index
  clutch_i64 src_inner;     // the same of src
  clutch_u32 include_self;  // 1: an element of out is the first of those that are reduced into it
  clutch_u32 unused;        // 0
} ScatterLinesArgs;

// Accumulators, and counts, of `items` work-items; and where those of work-item `items` begin. Layout: [work-item][element of a line][line of its bundle].
CLUTCH_SHARED_FN clutch_u64 scatter_accumulators(clutch_u64 items, clutch_u64 depth, clutch_u64 bundle) { return items * depth * bundle; }

// Arguments of scatter_panels. Strides are in elements.
typedef struct ScatterPanelsArgs {
  clutch_u64 features;      // elements of a row
  clutch_u64 panel;         // neighbouring features that a work-item takes at a time
  clutch_u64 depth;         // rows of out
  clutch_u64 m;             // rows of index and of src
  clutch_i64 out_stride;    // from a row of out to the next
  clutch_i64 index_stride;  // from an element of the index to the next
  clutch_i64 src_stride;    // from a row of src to the next
} ScatterPanelsArgs;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::ScatterLinesArgs) == 64 && sizeof(clutch::detail::ScatterPanelsArgs) == 56);
#endif

#endif
