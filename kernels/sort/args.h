// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/sort.cpp and the kernels of sort.
#ifndef CLUTCH_SORT_ARGS_H
#define CLUTCH_SORT_ARGS_H

#include "common/shared.h"

// How bits of an element become a key, whose order is that of unsigned integers. The preprocessor compares them.
#define SORT_UNSIGNED 0  // u8, bool
#define SORT_SIGNED 1    // integers
#define SORT_FLOATING 2  // f16, bf16, f32, f64

CLUTCH_SHARED_BEGIN

enum {
  // An entry is a key and an index.
  SORT_PACKED_BYTES = 8,  // of an entry whose key and index take 32 bits each
  SORT_WIDE_BYTES = 16,   // of an entry whose key and index take 64 bits each
  // Of the entries of sort_tiles and sort_tile_merge.
  SORT_ITEMS = 256,     // work-items of a group
  SORT_PACKED_OWN = 8,  // entries of an item
  SORT_WIDE_OWN = 4,
  SORT_INSERTED = 32,  // sort_runs: most entries that are sorted by insertion, not by digits
  SORT_BUNDLED = 256   // sort_bundles: most elements of a line
};
// Local memory of a tile: a place is left free behind each item's entries, so that items which read their own do not meet in a bank.
CLUTCH_SHARED_FN clutch_u32 sort_tile_places(clutch_u32 own) { return SORT_ITEMS * (own + 1); }

// Arguments of all kernels of sort. A run is a sorted sequence of entries: the first `keep` of those of `span` elements of a line.
typedef struct SortArgs {
  clutch_u64 lines;
  clutch_u64 m;           // elements of a line
  clutch_u64 keep;        // elements of a line's result
  clutch_u64 span;        // elements of a line behind each run that is made (sort_runs, sort_tiles) or read (merges)
  clutch_u64 chunk;       // merges: entries of a task; sort_runs: capacity of an item's buffers
  clutch_u32 descending;  // 1: keys are complements
  clutch_u32 last;        // 1: runs are lines, and results are written in place of entries
  clutch_u32 digit_bits;  // sort_runs: of a digit
  clutch_u32 digits;      // sort_runs: of a key
  clutch_u32 place;       // sort_tiles: entries of a run's place in a tile; sort_bundles: of a line; powers of 2, not below its elements
  clutch_u32 unused;      // 0
} SortArgs;

// Runs of a line of m elements.
CLUTCH_SHARED_FN clutch_u64 sort_runs_of(clutch_u64 m, clutch_u64 span) { return (m + span - 1) / span; }
// From a run to the next, in entries; layout of runs: [line][run][entry].
CLUTCH_SHARED_FN clutch_u64 sort_stride(clutch_u64 keep, clutch_u64 span) { return keep < span ? keep : span; }
// Entries of run r.
CLUTCH_SHARED_FN clutch_u64 sort_length(clutch_u64 m, clutch_u64 keep, clutch_u64 span, clutch_u64 r) {
  const clutch_u64 begin = r * span < m ? r * span : m, end = (r + 1) * span < m ? (r + 1) * span : m, all = end - begin;
  return all < keep ? all : keep;
}

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::SortArgs) == 64);
#endif

#endif
