// SPDX-License-Identifier: Apache-2.0
// group_by: a stable radix sort of entry numbers by key. Each pass sorts by one digit, with a power of 2 of values: count, scan, base, place. Then offsets.
// Entries are divided into `parts` of `chunk` entries; one item counts and places a part, in order, so that equal keys keep their order. Where groups have
// several items, a work-group sorts a part in local memory (group/tiles.clh).
// Needs: ID (int or long: entry numbers and counts); CLUTCH_SCANNED: digits that an item of group_scan has, several where items have caches of their own.
#include "common/launch.clh"
#include "group/args.h"

#if !defined(ID) || !defined(CLUTCH_SCANNED)
#error "ID and CLUTCH_SCANNED are not defined"
#endif

// The key of entry i. Numbers of an index that are no group have the key `groups`.
static inline uint key_of(__global const uchar* source, ulong i, const GroupArgs* args) {
  if (args->keys == KEYS_PACKED) return ((__global const uint*)source)[i];
  long k = args->keys == KEYS_I32 ? (long)((__global const int*)source)[i] : ((__global const long*)source)[i];
  return (uint)min((ulong)k, args->groups);  // negative numbers become large ones
}
static inline uint digit_of(uint key, const GroupArgs* args) { return key >> args->shift & (args->digits - 1); }

#if defined(CLUTCH_ENTRY_group_tile_count) || defined(CLUTCH_ENTRY_group_tile_scan) || defined(CLUTCH_ENTRY_group_tile_place)
#include "group/tiles.clh"
#endif

// counts[p, d]: entries of part p whose digit is d.
#ifdef CLUTCH_ENTRY_group_count
__kernel void group_count(CLUTCH_PREDICATE __global uchar* counts, ulong counts_offset, __global const uchar* source, ulong source_offset,
                          CLUTCH_ARGS(GroupArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(GroupArgs, args)
  const ulong n = args.n, chunk = args.chunk, parts = args.parts;
  const uint digits = args.digits;
  source += source_offset, counts += counts_offset;
  for (ulong p = get_global_id(0); p < parts; p += get_global_size(0)) {
    __global ID* count = (__global ID*)counts + p * digits;
    for (uint d = 0; d < digits; ++d) count[d] = 0;
    for (ulong i = p * chunk; i < min((p + 1) * chunk, n); ++i) count[digit_of(key_of(source, i, &args), &args)] += 1;
  }
}
#endif

// counts[p, d]: entries with digit d in the parts before p; totals[d]: in all parts. An item has CLUTCH_SCANNED neighbouring digits.
#ifdef CLUTCH_ENTRY_group_scan
__kernel void group_scan(CLUTCH_PREDICATE __global uchar* counts, ulong counts_offset, __global uchar* totals, ulong totals_offset,
                         CLUTCH_ARGS(GroupArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(GroupArgs, args)
  const ulong parts = args.parts;
  const uint digits = args.digits;
  __global ID *count = (__global ID*)(counts + counts_offset), *total = (__global ID*)(totals + totals_offset);
  for (ulong first = get_global_id(0) * CLUTCH_SCANNED; first < digits; first += get_global_size(0) * CLUTCH_SCANNED) {
    const int there = (int)min((ulong)CLUTCH_SCANNED, digits - first);
    ID sums[CLUTCH_SCANNED] = {0};
    for (ulong p = 0; p < parts; ++p)
      for (int d = 0; d < there; ++d) {
        const ID here = count[p * digits + first + d];
        count[p * digits + first + d] = sums[d];
        sums[d] += here;
      }
    for (int d = 0; d < there; ++d) total[first + d] = sums[d];
  }
}
#endif

// totals[d]: entries with digits below d. One item.
#ifdef CLUTCH_ENTRY_group_base
__kernel void group_base(CLUTCH_PREDICATE __global uchar* totals, ulong totals_offset, CLUTCH_ARGS(GroupArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(GroupArgs, args)
  const uint digits = args.digits;
  if (get_global_id(0) != 0) return;
  __global ID* total = (__global ID*)(totals + totals_offset);
  ID sum = 0;
  for (uint d = 0; d < digits; ++d) {
    ID here = total[d];
    total[d] = sum;
    sum += here;
  }
}
#endif

// Stores each entry after those with lower digits, those of earlier parts with the same digit, and the earlier ones of its part.
#ifdef CLUTCH_ENTRY_group_place
__kernel void group_place(CLUTCH_PREDICATE __global uchar* keys_out, ulong keys_offset, __global uchar* ids_out, ulong out_offset, __global uchar* counts,
                          ulong counts_offset, __global const uchar* source, ulong source_offset, __global const uchar* ids, ulong ids_offset,
                          __global const uchar* totals, ulong totals_offset, CLUTCH_ARGS(GroupArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(GroupArgs, args)
  const ulong n = args.n, chunk = args.chunk, parts = args.parts;
  const uint digits = args.digits;
  source += source_offset;
  __global const ID *id = (__global const ID*)(ids + ids_offset), *total = (__global const ID*)(totals + totals_offset);
  __global uint* key_to = (__global uint*)(keys_out + keys_offset);
  __global ID* id_to = (__global ID*)(ids_out + out_offset);
  for (ulong p = get_global_id(0); p < parts; p += get_global_size(0)) {
    __global ID* count = (__global ID*)(counts + counts_offset) + p * digits;
    for (uint d = 0; d < digits; ++d) count[d] += total[d];
    for (ulong i = p * chunk; i < min((p + 1) * chunk, n); ++i) {
      uint key = key_of(source, i, &args);
      ID to = count[digit_of(key, &args)]++;
      key_to[to] = key;
      id_to[to] = args.keys == KEYS_PACKED ? id[i] : (ID)i;
    }
  }
}
#endif

// offsets[g]: index of the first entry whose key is at least g.
#ifdef CLUTCH_ENTRY_group_offsets
__kernel void group_offsets(CLUTCH_PREDICATE __global uchar* offsets, ulong offsets_offset, __global const uchar* keys, ulong keys_offset,
                            CLUTCH_ARGS(GroupArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(GroupArgs, args)
  const ulong n = args.n, chunk = args.chunk, parts = args.parts, groups = args.groups;
  __global const uint* key = (__global const uint*)(keys + keys_offset);
  __global ID* offset = (__global ID*)(offsets + offsets_offset);
  for (ulong p = get_global_id(0); p < parts; p += get_global_size(0)) {
    ulong low = 0;
    for (ulong g = p * chunk; g < min((p + 1) * chunk, groups + 1); ++g) {
      // Searches from the last group's offset in doubling steps, then by bisection.
      ulong step = 1;
      for (; low + step <= n && key[low + step - 1] < g; step *= 2) low += step;
      ulong high = min(low + step - 1, n);
      while (low < high) {
        ulong middle = (low + high) / 2;
        if (key[middle] < g)
          low = middle + 1;
        else
          high = middle;
      }
      offset[g] = (ID)low;
    }
  }
}
#endif
