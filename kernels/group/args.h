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

// Arguments of all kernels of group. A pass sorts the entries by one digit of their keys.
typedef struct GroupArgs {
  clutch_u64 n;       // entries
  clutch_u64 chunk;   // entries of a part; of group_offsets: groups
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
