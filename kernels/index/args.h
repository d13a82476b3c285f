// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/index.cpp and the kernels of index.
#ifndef CLUTCH_INDEX_ARGS_H
#define CLUTCH_INDEX_ARGS_H

#include "common/shared.h"

CLUTCH_SHARED_BEGIN

// Arguments of index_places. A place is an offset in elements, or -1 if an index of it is out of range.
typedef struct IndexPlacesArgs {
  clutch_u64 n;       // places
  clutch_u64 chunk;   // places of a task
  clutch_i64 size;    // of the dimension that the index counts along
  clutch_i64 stride;  // of the same
  clutch_u32 first;   // 1: places are new; 0: they have the offsets of other dimensions
  clutch_u32 is_i64;  // 1: the index is i64; 0: i32
} IndexPlacesArgs;

// Arguments of the other entries, over elements [outer][place][inner] of the result, or of the values.
typedef struct IndexArgs {
  clutch_u64 outer;  // product of the sizes before the places
  clutch_u64 places;
  clutch_u64 inner;         // product of the sizes behind them
  clutch_i64 outer_stride;  // of x or self, in elements
  clutch_i64 inner_stride;  // the same
  clutch_u64 chunk;         // elements of a task
  clutch_u64 outside;       // bits of an element whose place is -1
} IndexArgs;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::IndexPlacesArgs) == 40);
static_assert(sizeof(clutch::detail::IndexArgs) == 56);
#endif

#endif
