// SPDX-License-Identifier: Apache-2.0
// What host/ops/scatter.cpp and scatter_panels share.
#ifndef CLUTCH_SCATTER_ARGS_H
#define CLUTCH_SCATTER_ARGS_H

#include "common/shared.h"

CLUTCH_SHARED_BEGIN

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
static_assert(sizeof(clutch::detail::ScatterPanelsArgs) == 56);
#endif

#endif
