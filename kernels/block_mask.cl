// SPDX-License-Identifier: Apache-2.0
// block_mask: the kind of each block of queries and keys under a mask (args.h), and lists of the blocks by rows and by columns.
// Ownership: an item owns columns_per_task blocks of a row at a time, or one line of blocks, without local memory. block_mask_groups: a group owns
// columns_per_task blocks of a row; local memory of BLOCK_MASK_ITEMS + 1 numbers.
#include "block_mask/args.h"
#include "common/launch.clh"

// Needs: what common/expr.clh needs; IDX; and from expression.clh CLUTCH_MASK(LOAD, POSITION, STORE), CLUTCH_RANGES and the macros of parameters EXTRA.
// A block whose kind follows from the ranges of its indices is not evaluated element by element.
#if defined(CLUTCH_ENTRY_block_mask_kinds) || defined(CLUTCH_ENTRY_block_mask_groups)
#include "common/expr.clh"

#include "expression.clh"

#define MASK_INPUT_1 ((VI)b)
#define MASK_INPUT_2 ((VI)h)
#define MASK_INPUT_3 ((VI)q + CLUTCH_L_TO_VI(CLUTCH_IOTA_VL))
#define MASK_INPUT_4 ((VI)kv)
#define MASK_FIRST_1 b
#define MASK_FIRST_2 h
#define MASK_FIRST_3 q
#define MASK_FIRST_4 kv
#define LOAD_MASK(k, dtype) MASK_INPUT_##k
#define CLUTCH_LOAD_FIRST(k) MASK_FIRST_##k
#define NO_POSITION(k) ((VL)0)
#define KEEP_MASK(k, dtype, x) allowed = (x)

CLUTCH_INLINE VI mask_at(int b, int h, int q, int kv CLUTCH_EXTRA_PARAMS) {
  VI allowed;
  CLUTCH_MASK(LOAD_MASK, NO_POSITION, KEEP_MASK)
  return allowed;
}

#define SEEN_ALLOWED 1
#define SEEN_MASKED 2
#define RANGE_LOW(k) range_low[k]
#define RANGE_HIGH(k) range_high[k]

// What the ranges of a block's indices tell: flags as below, or 0 if it must be looked at.
static inline int seen_by_ranges(long b, long h, long q, long q_end, long kv, long kv_end CLUTCH_EXTRA_PARAMS) {
  const long range_low[4] = {b, h, q, kv}, range_high[4] = {b, h, q_end - 1, kv_end - 1};
  CLUTCH_RANGES(RANGE_LOW, RANGE_HIGH)
  return is_always ? SEEN_ALLOWED : !is_ever ? SEEN_MASKED : 0;
}
// The kind of the block that begins at q and kv.
static inline uchar kind_of_block(int seen, long q, long kv, const BlockMaskKindsArgs* s) {
  const int complete = q + s->block_q <= s->q_len && kv + s->block_kv <= s->kv_len;
  return (uchar)(!(seen & SEEN_ALLOWED) ? KIND_NONE : seen == SEEN_ALLOWED && complete ? KIND_FULL : KIND_PARTIAL);
}
#endif

#ifdef CLUTCH_ENTRY_block_mask_kinds
// Flags for queries q to q_end - 1 and keys kv to kv_end - 1: SEEN_ALLOWED if a pair is allowed, SEEN_MASKED if a pair is masked.
static inline int mask_inside(int b, int h, int q, int q_end, int kv, int kv_end CLUTCH_EXTRA_PARAMS) {
  VI any = (VI)0, none = (VI)0;
  const int whole = q + (q_end - q) / WIDTH * WIDTH;
  const VI exists = whole + CLUTCH_L_TO_VI(CLUTCH_IOTA_VL) < (VI)q_end;
  for (int key = kv; key < kv_end;) {
    const int stop = min(key + 8, kv_end);
    for (; key < stop; ++key) {
      for (int i = q; i < whole; i += WIDTH) {
        const VI allowed = mask_at(b, h, i, key CLUTCH_EXTRA_NAMES);
        any |= allowed, none |= CLUTCH_NOT(allowed);
      }
      if (whole < q_end) {
        const VI allowed = mask_at(b, h, whole, key CLUTCH_EXTRA_NAMES);
        any |= allowed & exists, none |= CLUTCH_NOT(allowed) & exists;
      }
    }
    if (CLUTCH_ANY(any) && CLUTCH_ANY(none)) return SEEN_ALLOWED | SEEN_MASKED;
  }
  return (CLUTCH_ANY(any) ? SEEN_ALLOWED : 0) | (CLUTCH_ANY(none) ? SEEN_MASKED : 0);
}

static inline void block_mask_kinds_body(CLUTCH_ID_PARAMS, BlockMaskKindsArgs s, __global uchar* kinds CLUTCH_EXTRA_PARAMS) {
  const ulong tasks = s.tasks;
  const ulong chunks = ((ulong)s.columns + s.columns_per_task - 1) / s.columns_per_task, rows = s.rows, heads = s.heads;
  for (ulong task = group * items + item; task < tasks; task += groups * items) {
    const ulong line = task / chunks, row = line % rows, of = line / rows;
    const long b = (long)(of / heads), h = (long)(of % heads);
    const long begin = (long)(task % chunks) * s.columns_per_task, end = min(begin + s.columns_per_task, s.columns);
    const long q = (long)row * s.block_q, q_end = min(q + s.block_q, s.q_len);
    for (long c = begin; c < end; ++c) {
      const long kv = c * s.block_kv, kv_end = min(kv + s.block_kv, s.kv_len);
      int seen = seen_by_ranges(b, h, q, q_end, kv, kv_end CLUTCH_EXTRA_NAMES);
      if (seen == 0) seen = mask_inside((int)b, (int)h, (int)q, (int)q_end, (int)kv, (int)kv_end CLUTCH_EXTRA_NAMES);
      kinds[line * s.columns + c] = kind_of_block(seen, q, kv, &s);
    }
  }
}
__kernel void block_mask_kinds(CLUTCH_PREDICATE __global uchar* kinds, ulong kinds_offset, CLUTCH_ARGS(BlockMaskKindsArgs, args) CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_TAKE_ARGS(BlockMaskKindsArgs, args)
  CLUTCH_IF_PREDICATE
  block_mask_kinds_body(CLUTCH_IDS, args, kinds + kinds_offset CLUTCH_EXTRA_ARGUMENTS);
}
#endif

// The same by groups, for devices whose groups have several items. Each item asks the ranges of a block; the group then looks at those of which ranges do not
// tell, one after another: neighbours at neighbouring queries, until a pair of each kind is seen.
//
//   with 8 items and blocks of 4 queries     queries 0 1 2 3
//                                     key 0          a b c d     item
//                                     key 1          e f g h
//                                     key 2          a b c d     then items of the second key's row have keys 3, 5, ...
#ifdef CLUTCH_ENTRY_block_mask_groups
CLUTCH_INLINE int group_inside(volatile __local uint* seen, int item, int items, int b, int h, int q, int q_end, int kv, int kv_end CLUTCH_EXTRA_PARAMS) {
  const int width = min(q_end - q, items), rows = items / width, row = item / width;
  uint mine = 0, all = 0;
  if (item == 0) *seen = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long from = kv; from < kv_end && all != (SEEN_ALLOWED | SEEN_MASKED); from += rows * BLOCK_MASK_KEYS) {
    const int end = (int)min((long)kv_end, from + rows * BLOCK_MASK_KEYS);
    if (row < rows) {
      for (int key = (int)from + row; key < end; key += rows)
        for (int i = q + item % width; i < q_end; i += width) mine |= mask_at(b, h, i, key CLUTCH_EXTRA_NAMES) ? SEEN_ALLOWED : SEEN_MASKED;
    }
    if (mine) atomic_or(seen, mine);
    barrier(CLK_LOCAL_MEM_FENCE);
    all = *seen;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return (int)all;
}
CLUTCH_INLINE void block_mask_groups_body(volatile __local uint* seen, __local uint* open, CLUTCH_ID_PARAMS, BlockMaskKindsArgs s,
                                          __global uchar* kinds CLUTCH_EXTRA_PARAMS) {
  const ulong tasks = s.tasks;
  const ulong chunks = ((ulong)s.columns + s.columns_per_task - 1) / s.columns_per_task, rows = s.rows, heads = s.heads;
  for (ulong task = group; task < tasks; task += groups) {
    const ulong line = task / chunks, row = line % rows, of = line / rows;
    const long b = (long)(of / heads), h = (long)(of % heads);
    const long begin = (long)(task % chunks) * s.columns_per_task, end = min(begin + s.columns_per_task, s.columns);
    const long q = (long)row * s.block_q, q_end = min(q + s.block_q, s.q_len);
    for (long c = begin + (long)item; c < end; c += (long)items) {
      const long kv = c * s.block_kv;
      const int known = seen_by_ranges(b, h, q, q_end, kv, min(kv + s.block_kv, s.kv_len) CLUTCH_EXTRA_NAMES);
      open[c - begin] = known == 0;
      if (known) kinds[line * s.columns + c] = kind_of_block(known, q, kv, &s);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long c = begin; c < end; ++c) {
      if (!open[c - begin]) continue;
      const long kv = c * s.block_kv;
      const int found =
          group_inside(seen, (int)item, (int)items, (int)b, (int)h, (int)q, (int)q_end, (int)kv, (int)min(kv + s.block_kv, s.kv_len) CLUTCH_EXTRA_NAMES);
      if (item == 0) kinds[line * s.columns + c] = kind_of_block(found, q, kv, &s);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
__kernel void block_mask_groups(CLUTCH_PREDICATE __global uchar* kinds, ulong kinds_offset, CLUTCH_ARGS(BlockMaskKindsArgs, args) CLUTCH_EXTRA_KERNEL_PARAMS) {
  CLUTCH_TAKE_ARGS(BlockMaskKindsArgs, args)
  CLUTCH_IF_PREDICATE
  __local uint seen, open[BLOCK_MASK_ITEMS];
  block_mask_groups_body(&seen, open, CLUTCH_IDS, args, kinds + kinds_offset CLUTCH_EXTRA_ARGUMENTS);
}
#endif

// For each line of blocks: the count of partial blocks, and their indices followed by those of all others; the same of full blocks.
#ifdef CLUTCH_ENTRY_block_mask_lists
static inline void list_line(__global const uchar* kinds, long length, long stride, uchar kind, __global int* count, __global int* list) {
  int found = 0;
  for (long i = 0; i < length; ++i)
    if (kinds[i * stride] == kind) list[found++] = (int)i;
  *count = found;
  for (long i = 0; i < length; ++i)
    if (kinds[i * stride] != kind) list[found++] = (int)i;
}
static inline void block_mask_lists_body(CLUTCH_ID_PARAMS, BlockMaskListsArgs s, __global const uchar* kinds, __global int* count, __global int* list,
                                         __global int* full_count, __global int* full_list) {
  const ulong tasks = s.tasks;
  for (ulong task = group * items + item; task < tasks; task += groups * items) {
    __global const uchar* line = kinds + task / s.lines * (ulong)(s.lines * s.length) + task % s.lines * s.line_stride;
    list_line(line, s.length, s.stride, KIND_PARTIAL, count + task, list + task * s.length);
    list_line(line, s.length, s.stride, KIND_FULL, full_count + task, full_list + task * s.length);
  }
}
__kernel void block_mask_lists(CLUTCH_PREDICATE __global uchar* count, ulong count_offset, __global uchar* list, ulong list_offset, __global uchar* full_count,
                               ulong full_count_offset, __global uchar* full_list, ulong full_list_offset, __global const uchar* kinds, ulong kinds_offset,
                               CLUTCH_ARGS(BlockMaskListsArgs, args)) {
  CLUTCH_TAKE_ARGS(BlockMaskListsArgs, args)
  CLUTCH_IF_PREDICATE
  block_mask_lists_body(CLUTCH_IDS, args, kinds + kinds_offset, (__global int*)(count + count_offset), (__global int*)(list + list_offset),
                        (__global int*)(full_count + full_count_offset), (__global int*)(full_list + full_list_offset));
}
#endif

// Kinds from lists; indices that are no blocks are ignored.
#ifdef CLUTCH_ENTRY_block_mask_from_lists
static inline void mark_line(__global uchar* kinds, long length, uchar kind, int count, __global const int* list) {
  for (long i = 0; i < min((long)count, length); ++i)
    if (list[i] >= 0 && list[i] < length) kinds[list[i]] = kind;
}
static inline void block_mask_from_lists_body(CLUTCH_ID_PARAMS, BlockMaskFromListsArgs args, __global uchar* kinds, __global const int* count,
                                              __global const int* list, __global const int* full_count, __global const int* full_list) {
  const ulong tasks = args.tasks;
  const long length = args.length;
  for (ulong task = group * items + item; task < tasks; task += groups * items) {
    __global uchar* line = kinds + task * length;
    for (long i = 0; i < length; ++i) line[i] = KIND_NONE;
    mark_line(line, length, KIND_PARTIAL, count[task], list + task * length);
    mark_line(line, length, KIND_FULL, full_count[task], full_list + task * length);
  }
}
__kernel void block_mask_from_lists(CLUTCH_PREDICATE __global uchar* kinds, ulong kinds_offset, __global const uchar* count, ulong count_offset,
                                    __global const uchar* list, ulong list_offset, __global const uchar* full_count, ulong full_count_offset,
                                    __global const uchar* full_list, ulong full_list_offset, CLUTCH_ARGS(BlockMaskFromListsArgs, args)) {
  CLUTCH_TAKE_ARGS(BlockMaskFromListsArgs, args)
  CLUTCH_IF_PREDICATE
  block_mask_from_lists_body(CLUTCH_IDS, args, kinds + kinds_offset, (__global const int*)(count + count_offset), (__global const int*)(list + list_offset),
                             (__global const int*)(full_count + full_count_offset), (__global const int*)(full_list + full_list_offset));
}
#endif
