// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/map/list.cpp and the kernels of map.
#ifndef CLUTCH_MAP_ARGS_H
#define CLUTCH_MAP_ARGS_H

#include "common/shared.h"

CLUTCH_SHARED_BEGIN

// Arguments of map_list. Its words are the number of elements of each row, then the chunks: a row and the number of its chunk, 32 bits each.
typedef struct MapListArgs {
  clutch_u32 chunk_count;  // of this launch
  clutch_u32 first_chunk;  // number of its first chunk among all
  clutch_u32 first_row;    // row of the lists that is the first of the table
  clutch_u32 row_count;    // of the lists
} MapListArgs;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::MapListArgs) == 16);
#endif

#endif
