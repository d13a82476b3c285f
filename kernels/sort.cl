// SPDX-License-Identifier: Apache-2.0
// sort, topk: lines of x are cut into runs, each of which is sorted; runs are merged by twos until a line is one. A run keeps `keep` entries at most, all that
// a result needs. Each merge is cut into tasks by merge paths (Green, McColl, Bader: GPU merge path), and each task writes its own places: no atomics.
//   sort_runs, sort_merge        an item owns a run or a part of one. Runs are sorted by insertion or by digits, least significant first. Where few are kept,
//                                entries below the keep-th so far are inserted, or collected, and sorted when the buffer is full. No local memory.
//   sort_bundles                 an item owns a bundle of short lines, one in each lane of a vector, which a network sorts (Batcher's merge exchange; Knuth,
//   The
//                                Art of Computer Programming 3, 5.2.2 M). Packed entries alone, all of which differ: any network is stable.
//   sort_tiles, sort_tile_merge  a work-group owns a tile (sort/tiles.clh)
// An entry is a key and an index. Keys are bits of elements that unsigned integers order; values are made of keys again, but NaN and zeros, which are many bits
// of one key, are read from x.
// Needs: CLUTCH_T_BYTES (of an element), CLUTCH_KIND (SORT_*), CLUTCH_INFINITY (bits of infinity, of floats), CLUTCH_BOOL (1: elements count 0 or 1),
// CLUTCH_WIDE (1: wide entries); sort_bundles: WIDTH.
#include "common/bytes.clh"
#include "sort/args.h"

#if !defined(CLUTCH_T_BYTES) || !defined(CLUTCH_KIND) || !defined(CLUTCH_INFINITY) || !defined(CLUTCH_BOOL) || !defined(CLUTCH_WIDE)
#error "CLUTCH_T_BYTES, CLUTCH_KIND, CLUTCH_INFINITY, CLUTCH_BOOL and CLUTCH_WIDE are not defined"
#endif

#define T CLUTCH_BYTES(CLUTCH_T_BYTES)

#if CLUTCH_WIDE
#define ENTRY ulong2
#define KEY ulong
#define KEY_OF(e) ((e).x)
#define INDEX_OF(e) ((e).y)
#define MAKE_ENTRY(key, index) ((ulong2)(key, index))
#define LESS(a, b) ((a).x < (b).x)
#define OWN SORT_WIDE_OWN
#else
#define ENTRY ulong
#define KEY uint
#define KEY_OF(e) ((uint)((e) >> 32))
#define INDEX_OF(e) ((e)&0xffffffff)
#define MAKE_ENTRY(key, index) ((ulong)(key) << 32 | (index))
// Of entries with equal keys the first has the lower index.
#define LESS(a, b) ((a) < (b))
#define OWN SORT_PACKED_OWN
#endif

// The upper bit and all bits of an element.
#define SIGN ((KEY)1 << (8 * CLUTCH_T_BYTES - 1))
#define ALL_BITS (SIGN | (SIGN - 1))

static inline KEY key_of(T element, const SortArgs* args) {
  KEY key = (KEY)element;
#if CLUTCH_BOOL
  key = key != 0;
#elif CLUTCH_KIND == SORT_SIGNED
  key ^= SIGN;
#elif CLUTCH_KIND == SORT_FLOATING
  const KEY magnitude = key & (SIGN - 1);
  key = key & SIGN ? ~key & ALL_BITS : key | SIGN;
  key = magnitude == 0 ? SIGN : magnitude > (KEY)CLUTCH_INFINITY ? ALL_BITS : key;
#endif
  return args->descending ? ~key & ALL_BITS : key;
}
// The element of an entry of the line at x.
static inline T element_of(ENTRY entry, __global const T* x, const SortArgs* args) {
  const KEY key = args->descending ? ~KEY_OF(entry) & ALL_BITS : KEY_OF(entry);
#if CLUTCH_KIND == SORT_SIGNED
  return (T)(key ^ SIGN);
#elif CLUTCH_KIND == SORT_FLOATING
  if (key == SIGN || key == ALL_BITS) return x[INDEX_OF(entry)];
  return (T)(key & SIGN ? key ^ SIGN : ~key);
#else
  return (T)key;
#endif
}

#define SORT_BASES                                                                \
  CLUTCH_TAKE_ARGS(SortArgs, args)                                                \
  const ulong lines = args.lines, m = args.m, keep = args.keep, span = args.span; \
  __global T* value_of = (__global T*)(values + values_offset);                   \
  __global long* index_of = (__global long*)(indices + indices_offset);           \
  __global ENTRY* run_of = (__global ENTRY*)(runs + runs_offset);                 \
  __global const T* x_of = (__global const T*)(x + x_offset);
// Stores an entry of the line at x: its element and index at a place of the results, or itself at a place of the runs.
#define STORE_ENTRY(place, entry, x_line)               \
  if (args.last) {                                      \
    value_of[place] = element_of(entry, x_line, &args); \
    index_of[place] = (long)INDEX_OF(entry);            \
  } else {                                              \
    run_of[place] = entry;                              \
  }
// Sets `low`, a COUNT, to the number of entries of a among the first `count` of a and b merged, a first where they are equal. A(i), B(i): entries; a_count,
// b_count: how many there are.
#define MERGE_PATH(COUNT, low, count, a_count, b_count, A, B)                                                                    \
  {                                                                                                                              \
    low = max((COUNT)(count), (COUNT)(b_count)) - (COUNT)(b_count);                                                              \
    for (COUNT high = min((COUNT)(count), (COUNT)(a_count)), middle = (low + high) / 2; low < high; middle = (low + high) / 2) { \
      if (LESS(B((count)-1 - middle), A(middle)))                                                                                \
        high = middle;                                                                                                           \
      else                                                                                                                       \
        low = middle + 1;                                                                                                        \
    }                                                                                                                            \
  }

#if defined(CLUTCH_ENTRY_sort_tiles) || defined(CLUTCH_ENTRY_sort_tile_merge)
#include "sort/tiles.clh"
#endif

#ifdef CLUTCH_ENTRY_sort_runs
static inline uint digit_of(ENTRY entry, uint digit, const SortArgs* args) {
  return (uint)(KEY_OF(entry) >> digit * args->digit_bits) & ((1u << args->digit_bits) - 1);
}

// Sorts the first n entries of a; b is as large. Returns a or b, where they are then. `counts`: of an item.
static inline __global ENTRY* sort_entries(__global ENTRY* a, __global ENTRY* b, __global uint* counts, ulong n, const SortArgs* args) {
  if (n <= SORT_INSERTED) {
    for (ulong i = 1; i < n; ++i) {
      const ENTRY entry = a[i];
      ulong at = i;
      for (; at > 0 && LESS(entry, a[at - 1]); --at) a[at] = a[at - 1];
      a[at] = entry;
    }
    return a;
  }
  const uint values = 1u << args->digit_bits;
  for (uint v = 0; v < values * args->digits; ++v) counts[v] = 0;
  for (ulong i = 0; i < n; ++i)
    for (uint d = 0; d < args->digits; ++d) counts[d * values + digit_of(a[i], d, args)] += 1;
  for (uint d = 0; d < args->digits; ++d) {
    __global uint* count = counts + d * values;
    // All have one digit.
    if (count[digit_of(a[0], d, args)] == (uint)n) continue;
    uint sum = 0;
    for (uint v = 0; v < values; ++v) {
      const uint here = count[v];
      count[v] = sum;
      sum += here;
    }
    for (ulong i = 0; i < n; ++i) b[count[digit_of(a[i], d, args)]++] = a[i];
    __global ENTRY* const sorted = b;
    b = a, a = sorted;
  }
  return a;
}

__kernel void sort_runs(CLUTCH_PREDICATE __global uchar* values, ulong values_offset, __global uchar* indices, ulong indices_offset, __global uchar* runs,
                        ulong runs_offset, __global uchar* buffers, ulong buffers_offset, __global uchar* counts, ulong counts_offset, __global const uchar* x,
                        ulong x_offset, CLUTCH_ARGS(SortArgs, args)) {
  CLUTCH_IF_PREDICATE
  SORT_BASES
  const ulong runs_of_line = sort_runs_of(m, span), stride = sort_stride(keep, span), capacity = args.chunk;
  __global uint* count = (__global uint*)(counts + counts_offset) + get_global_id(0) * ((ulong)args.digits << args.digit_bits);
  for (ulong task = get_global_id(0); task < lines * runs_of_line; task += get_global_size(0)) {
    const ulong line = task / runs_of_line, r = task - line * runs_of_line, begin = r * span, end = min(begin + span, m), length = min(end - begin, keep);
    __global const T* x_line = x_of + line * m;
    __global ENTRY *a = (__global ENTRY*)(buffers + buffers_offset) + get_global_id(0) * 2 * capacity, *b = a + capacity;
    ulong n = 0;
    if (end - begin <= capacity) {
      for (ulong i = begin; i < end; ++i) a[n++] = MAKE_ENTRY(key_of(x_line[i], &args), i);
    } else {
      // `bound`: the keep-th key so far, from the first full buffer on. A later equal one comes behind it.
      KEY bound = 0;
      int bounded = 0;
      for (ulong i = begin; i < end;) {
        const ulong stop = min(i + 16, end);
        int any = !bounded;
        for (ulong k = i; k < stop; ++k) any |= key_of(x_line[k], &args) < bound;
        if (!any) {
          i = stop;
          continue;
        }
        for (; i < stop; ++i) {
          const KEY key = key_of(x_line[i], &args);
          if (bounded && key >= bound) continue;
          if (keep <= SORT_INSERTED) {
            ulong at = n < keep ? n++ : keep - 1;
            for (; at > 0 && key < KEY_OF(a[at - 1]); --at) a[at] = a[at - 1];
            a[at] = MAKE_ENTRY(key, i);
            bounded = n == keep, bound = KEY_OF(a[n - 1]);
            continue;
          }
          if (n == capacity) {
            __global ENTRY* sorted = sort_entries(a, b, count, n, &args);
            if (sorted == b) b = a, a = sorted;
            n = keep, bounded = 1, bound = KEY_OF(a[keep - 1]);
            if (key >= bound) continue;
          }
          a[n++] = MAKE_ENTRY(key, i);
        }
      }
    }
    __global ENTRY* sorted = sort_entries(a, b, count, n, &args);
    const ulong first = args.last ? line * keep : task * stride;
    for (ulong i = 0; i < length; ++i) STORE_ENTRY(first + i, sorted[i], x_line)
  }
}
#endif

#ifdef CLUTCH_ENTRY_sort_merge
__kernel void sort_merge(CLUTCH_PREDICATE __global uchar* values, ulong values_offset, __global uchar* indices, ulong indices_offset, __global uchar* runs,
                         ulong runs_offset, __global const uchar* from, ulong from_offset, __global const uchar* x, ulong x_offset,
                         CLUTCH_ARGS(SortArgs, args)) {
  CLUTCH_IF_PREDICATE
  SORT_BASES
  const ulong read = sort_runs_of(m, span), made = sort_runs_of(m, 2 * span), chunk = args.chunk;
  const ulong chunks = (sort_length(m, keep, 2 * span, 0) + chunk - 1) / chunk;
  for (ulong task = get_global_id(0); task < lines * made * chunks; task += get_global_size(0)) {
    const ulong run = task / chunks, begin = (task - run * chunks) * chunk, line = run / made, r = run - line * made;
    const ulong end = min(begin + chunk, sort_length(m, keep, 2 * span, r));
    if (begin >= end) continue;
    __global const T* x_line = x_of + line * m;
    __global const ENTRY *a = (__global const ENTRY*)(from + from_offset) + (line * read + 2 * r) * sort_stride(keep, span), *b = a + sort_stride(keep, span);
    const ulong a_count = sort_length(m, keep, span, 2 * r), b_count = sort_length(m, keep, span, 2 * r + 1);
    ulong i;
#define A(i) a[i]
#define B(i) b[i]
    MERGE_PATH(ulong, i, begin, a_count, b_count, A, B)
#undef A
#undef B
    const ulong first = args.last ? line * keep : run * sort_stride(keep, 2 * span);
    ulong j = begin - i, at = begin;
    for (; at < end && i < a_count && j < b_count; ++at) {
      const ENTRY of_a = a[i], of_b = b[j];
      const int takes_b = LESS(of_b, of_a);
      const ENTRY entry = takes_b ? of_b : of_a;
      i += !takes_b, j += takes_b;
      STORE_ENTRY(first + at, entry, x_line)
    }
    for (; at < end; ++at) {
      const ENTRY entry = i < a_count ? a[i++] : b[j++];
      STORE_ENTRY(first + at, entry, x_line)
    }
  }
}
#endif

#ifdef CLUTCH_ENTRY_sort_bundles
#include "common/lanes.clh"

__kernel void sort_bundles(CLUTCH_PREDICATE __global uchar* values, ulong values_offset, __global uchar* indices, ulong indices_offset, __global uchar* runs,
                           ulong runs_offset, __global uchar* buffers, ulong buffers_offset, __global const uchar* x, ulong x_offset,
                           CLUTCH_ARGS(SortArgs, args)) {
  CLUTCH_IF_PREDICATE
  SORT_BASES
  __global VUL* v = (__global VUL*)(buffers + buffers_offset) + get_global_id(0) * m;
  for (ulong line = get_global_id(0) * DWIDTH; line < lines; line += get_global_size(0) * DWIDTH) {
    const ulong count = min(lines - line, (ulong)DWIDTH);
    __global ENTRY* entry_of = (__global ENTRY*)v;
    for (ulong l = 0; l < DWIDTH; ++l) {
      // Lanes past the last line sort it again.
      __global const T* x_line = x_of + (line + min(l, count - 1)) * m;
      for (ulong j = 0; j < m; ++j) entry_of[j * DWIDTH + l] = MAKE_ENTRY(key_of(x_line[j], &args), j);
    }
    for (ulong p = args.place / 2; p > 0; p /= 2) {
      ulong r = 0, distance = p;
      for (ulong q = args.place / 2;; q /= 2) {
        for (ulong begin = r; begin + distance < m; begin += 2 * p)
          for (ulong i = begin; i < min(begin + p, m - distance); ++i) {
            const VUL low = v[i], high = v[i + distance];
            v[i] = min(low, high), v[i + distance] = max(low, high);
          }
        if (q == p) break;
        distance = q - p, r = p;
      }
    }
    for (ulong l = 0; l < count; ++l)
      for (ulong j = 0; j < keep; ++j) {
        const ENTRY entry = entry_of[j * DWIDTH + l];
        STORE_ENTRY((line + l) * keep + j, entry, x_of + (line + l) * m)
      }
  }
}
#endif
