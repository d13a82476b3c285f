// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/block_mask.cpp and the kernels of block_mask; flex reads the kinds of blocks, too.
#ifndef CLUTCH_BLOCK_MASK_ARGS_H
#define CLUTCH_BLOCK_MASK_ARGS_H

#include "common/shared.h"

// block_mask_groups: items of a group, at most, which is how many blocks it takes at a time at most; keys that an item looks at before the group compares.
#define BLOCK_MASK_ITEMS 256
#define BLOCK_MASK_KEYS 16

CLUTCH_SHARED_BEGIN

// How much of a block of queries and keys a mask allows.
enum {
  KIND_NONE,     // nothing
  KIND_PARTIAL,  // something, or all of a block that is cut off by the end of the queries or keys
  KIND_FULL      // all of a whole block
};

// Arguments of block_mask_kinds and block_mask_groups. Queries and keys are cut into blocks; kinds are (batch, heads, rows, columns).
typedef struct BlockMaskKindsArgs {
  clutch_u64 tasks;             // batch * heads * rows * ceil(columns / columns_per_task)
  clutch_i64 heads;             // number of heads
  clutch_i64 rows;              // blocks of queries
  clutch_i64 columns;           // blocks of keys
  clutch_i64 q_len;             // queries
  clutch_i64 kv_len;            // keys
  clutch_i64 block_q;           // queries of a block
  clutch_i64 block_kv;          // keys of a block
  clutch_i64 columns_per_task;  // blocks of a row that a work-item, or a group of block_mask_groups, takes at a time
} BlockMaskKindsArgs;

// Arguments of block_mask_lists: a line is a row or a column of a matrix of kinds.
typedef struct BlockMaskListsArgs {
  clutch_u64 tasks;        // batch * heads * lines
  clutch_i64 lines;        // lines of a matrix
  clutch_i64 length;       // blocks of a line
  clutch_i64 line_stride;  // blocks from a line to the next
  clutch_i64 stride;       // blocks from a block of a line to the next
} BlockMaskListsArgs;

// Arguments of block_mask_from_lists.
typedef struct BlockMaskFromListsArgs {
  clutch_u64 tasks;   // batch * heads * rows
  clutch_i64 length;  // blocks of a row
} BlockMaskFromListsArgs;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::BlockMaskKindsArgs) == 72 && sizeof(clutch::detail::BlockMaskListsArgs) == 40);
static_assert(sizeof(clutch::detail::BlockMaskFromListsArgs) == 16);
#endif

#endif
