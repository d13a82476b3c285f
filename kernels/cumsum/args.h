// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/cumsum.cpp and the kernels of cumsum.
#ifndef CLUTCH_CUMSUM_ARGS_H
#define CLUTCH_CUMSUM_ARGS_H

#include "common/shared.h"

// Elements of a block of a line. It fixes the order of summation, so it is the same on all devices.
#define CUMSUM_BLOCK 2048
// Elements whose sums are made by doubling. Fixes the order, too.
#define CUMSUM_DOUBLED 16

// Entries for work-groups of several items. Items of a work-group of cumsum_groups and cumsum_carry_groups: those of a block, CUMSUM_DOUBLED elements each.
#define CUMSUM_GROUP_ITEMS 128
// Numbers in local memory of cumsum_carry_groups: a block's, and a quad of padding for each item that may have a line of its own.
#define CUMSUM_CARRY_NUMBERS (CUMSUM_BLOCK + 4 * CUMSUM_GROUP_ITEMS)
// Items of a work-group of cumsum_column_groups, at most and at least.
#define CUMSUM_COLUMN_ITEMS 256
#define CUMSUM_LEAST_COLUMN_ITEMS 64

CLUTCH_SHARED_BEGIN

// Stage of a launch of results or of sums of blocks.
enum {
  CUMSUM_WHOLE,   // whole lines
  CUMSUM_SUMS,    // the sum of each block, into carries
  CUMSUM_RESULTS  // the results of each block, by the sum of the blocks before it, which another launch left in carries
};

// Arguments of all entries but those of carries. Strides and offsets are in elements.
typedef struct CumsumArgs {
  clutch_u64 n;          // lines
  clutch_u64 m;          // elements of a line
  clutch_i64 out_inner;  // from an element of a line of out to the next
  clutch_i64 x_inner;    // the same of x
  clutch_i64 out_first;  // where the first line of out begins
  clutch_i64 x_first;    // the same of x
  clutch_i32 stage;      // CUMSUM_WHOLE, CUMSUM_SUMS or CUMSUM_RESULTS
  clutch_u32 team;       // cumsum_groups, cumsum_column_groups: items that share a line, a power of two; else 0
} CumsumArgs;

// Blocks of a line of m elements.
CLUTCH_SHARED_FN clutch_u64 cumsum_blocks(clutch_u64 m) { return (m + CUMSUM_BLOCK - 1) / CUMSUM_BLOCK; }
// cumsum_columns, cumsum_column_groups: panels of `panel` lines in `columns` neighbouring ones.
CLUTCH_SHARED_FN clutch_u64 cumsum_panels(clutch_u64 columns, clutch_u64 panel) { return (columns + panel - 1) / panel; }
// Tasks that work-items, teams of them or work-groups take one after another: lines (or panels of them), or blocks of these.
CLUTCH_SHARED_FN clutch_u64 cumsum_tasks(clutch_i32 stage, clutch_u64 lines, clutch_u64 blocks) { return stage == CUMSUM_WHOLE ? lines : lines * blocks; }

// Index of the sum of a line's block. Layout of carries: [line][block].
CLUTCH_SHARED_FN clutch_u64 cumsum_carry(clutch_u64 line, clutch_u64 blocks, clutch_u64 block) { return line * blocks + block; }

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::CumsumArgs) == 56);
static_assert(CUMSUM_GROUP_ITEMS * CUMSUM_DOUBLED == CUMSUM_BLOCK);
#endif

#endif
