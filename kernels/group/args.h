// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/group.cpp and the kernels of group.
#ifndef CLUTCH_GROUP_ARGS_H
#define CLUTCH_GROUP_ARGS_H

#include "common/shared.h"

CLUTCH_SHARED_BEGIN

// Source of the keys of a pass.
enum {
  KEYS_PACKED,  // keys that an earlier pass stored: u32
  KEYS_I32,     // an index of i32
  KEYS_I64      // an index of i64
};

// Of the entries of tiles, which sort a tile of entries in local memory.
enum {
  GROUP_ITEMS = 256,       // work-items of a group; a power of 4
  GROUP_TILE = 2048,       // entries of a tile, eight for each work-item
  GROUP_TILE_DIGITS = 256  // most values of a digit, one for each work-item
};
// Counts of a digit in all tiles are a row, of whole quads.
CLUTCH_SHARED_FN clutch_u64 group_count_row(clutch_u64 tiles) { return (tiles + 3) / 4 * 4; }

// Arguments of all kernels of group. A pass sorts the entries by one digit of their keys.
typedef struct GroupArgs {
  clutch_u64 n;       // entries
  clutch_u64 chunk;   // entries of a part, GROUP_TILE of a tile; of group_offsets: groups
  clutch_u64 parts;   // ceil(n / chunk); of group_offsets: ceil((groups + 1) / chunk)
  clutch_u64 groups;  // groups; an entry that belongs to none has the key `groups`
  clutch_u32 keys;    // KEYS_*
  clutch_u32 shift;   // lowest bit of the pass's digit in a key
  clutch_u32 digits;  // values of a digit: a power of 2
  clutch_u32 unused;  // 0
} GroupArgs;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::GroupArgs) == 48);
#endif

#endif
