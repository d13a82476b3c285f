// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/reduce.cpp, the kernels of reduce, and rowwise, whose totals combine in the same order.
#ifndef CLUTCH_REDUCE_ARGS_H
#define CLUTCH_REDUCE_ARGS_H

#include "common/shared.h"

// Elements of a block, which a work-item reduces. It fixes the order of reductions, so it is the same on all devices. A macro since kernels declare arrays of
// it.
#define REDUCE_BLOCK 2048
// Elements of a block that are added one after another, 16 sums at a time, and sums of a block.
#define CLUTCH_CHAIN 512
#define CLUTCH_PARTIALS 64

// Entries for groups of several items: items of a group, at most; those of a team, which reduces a block together, each one sum of it; and those of the team of
// a row with one chain, whose other sums have no elements. Rows with two chains have half a team.
#define REDUCE_GROUP_ITEMS 256
#define REDUCE_TEAM CLUTCH_PARTIALS
#define REDUCE_SHORT_TEAM 16
// Elements of a row that an item of a team can hold in registers (common/reduce_held.inc): of short rows, and all of a chain.
#define REDUCE_FEW_HELD 8
#define REDUCE_HELD (CLUTCH_CHAIN / 16)
// Items that share a column, or a row of any strides.
#define REDUCE_COLUMN_ITEMS 8

// reduce_buffered: elements of each neighbour of a panel, at most. So many of 16 neighbours are 128 KiB of floats, which stay in a core's caches.
#define REDUCE_MOST_ACROSS 2048
// The same of longer neighbours: vectors abreast, so that a row of memory is read in a piece of 256 bytes of its page.
#define REDUCE_STRIPS 4

CLUTCH_SHARED_BEGIN

// Blocks of m elements; no elements are a block, too.
CLUTCH_SHARED_FN clutch_u64 reduce_blocks(clutch_u64 m) { return m > 0 ? (m - 1) / REDUCE_BLOCK + 1 : 1; }
// Items of a team that reduces blocks of rows of m elements.
CLUTCH_SHARED_FN clutch_u32 reduce_team(clutch_u64 m) { return m > 2 * CLUTCH_CHAIN ? REDUCE_TEAM : m > CLUTCH_CHAIN ? REDUCE_TEAM / 2 : REDUCE_SHORT_TEAM; }
// Panels of `panel` columns that cover `columns`.
CLUTCH_SHARED_FN clutch_u64 reduce_panels(clutch_u64 columns, clutch_u64 panel) { return (columns + panel - 1) / panel; }
// reduce_columns: panels of n results, each `columns` of which are neighbours, times blocks.
CLUTCH_SHARED_FN clutch_u64 reduce_panel_tasks(clutch_u64 n, clutch_u64 columns, clutch_u64 panel, clutch_u64 blocks) {
  return n / columns * reduce_panels(columns, panel) * blocks;
}

// Index of the accumulator of a result's block. Layout: [result][block].
CLUTCH_SHARED_FN clutch_u64 reduce_partial(clutch_u64 result, clutch_u64 blocks, clutch_u64 block) { return result * blocks + block; }

CLUTCH_SHARED_END

#endif
