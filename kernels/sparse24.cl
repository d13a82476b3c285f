// SPDX-License-Identifier: Apache-2.0
// 2:4 matrices: at most two of the four numbers of each quad along a row are not zero. sparse24/args.h has the arguments, the bits of metadata and the layout
// of packings.
// sparse24_groups: keeps the two numbers of largest magnitude of each quad, of equal ones the first. sparse24_tiles: keeps numbers of each 4 x 4 tile, at
//   most two in each row and column, by CLUTCH_RULE. Both write the numbers or, with CLUTCH_WRITES_MASK, a byte 1 for each number kept and 0 for the others.
// sparse24_compress: writes the two numbers of each quad and four bits with their places; `info` is the least index of a quad that has more than two.
// sparse24_decompress: the inverse.
// sparse24_pack: packs for matmul_sparse_panels in its compute type, or with CLUTCH_PACKS_CODES for matmul_sparse_rows.
// sparse24_pack_words: packs for matmul_sparse_dot.
// sparse24_cutlass: reorders metadata to CUTLASS's order and from it.
// Ownership: a work-item owns CLUTCH_CHUNK quads of a row; of sparse24_tiles a tile; of sparse24_pack a tile of CLUTCH_ROWS rows of SPARSE24_PACK_BLOCKS
// blocks along k; of sparse24_pack_words a tile of CLUTCH_ROWS rows. Local memory: 0 bytes.
// Needs: what dtype.clh needs; A_NAME; ACC;
//   T                  an unsigned type of the numbers' size
//   K                  int, or long for numbers of 64 bits, which have CLUTCH_WIDE, too
//   CLUTCH_CHUNK       quads, an even number
//   CLUTCH_MAGNITUDE   mask of a number's bits but its sign; CLUTCH_LARGEST: the largest magnitude of those that are numbers
//   CLUTCH_BYTES       of a number; CLUTCH_IS_INTEGER: 1 for i8
//   CLUTCH_RULE, CLUTCH_WRITES_MASK   of sparse24_groups and sparse24_tiles
//   CLUTCH_ROWS, CLUTCH_PANEL_BYTES, CLUTCH_PACKS_CODES   of sparse24_pack; CLUTCH_ROWS of sparse24_pack_words
#include "common/any.clh"
#include "common/dtype.clh"
#include "common/f8.clh"
#include "common/launch.clh"
#include "sparse24/args.h"

#if !defined(T) || !defined(K) || !defined(CLUTCH_MAGNITUDE) || !defined(CLUTCH_LARGEST) || !defined(CLUTCH_IS_INTEGER)
#error "T, K, CLUTCH_MAGNITUDE, CLUTCH_LARGEST and CLUTCH_IS_INTEGER are not defined"
#endif

#if WIDTH == 16 && defined(CLUTCH_UNALIGNED) && !defined(CLUTCH_WIDE) && CLUTCH_BYTES && defined(__ENDIAN_LITTLE__)
#define TV CLUTCH_CONCAT(T, 16)
#define CLUTCH_TO_TV CLUTCH_CONCAT(CLUTCH_CONCAT(convert_, T), 16)
typedef TV some_numbers __attribute__((aligned(sizeof(T))));
#endif

#ifdef TV
typedef uint16 some_words __attribute__((aligned(CLUTCH_BYTES)));
#define PACK_BYTES(x0, x1, x2, x3) ((x0) | (x1) << 8 | (x2) << 16 | (x3) << 24)
// Sixteen quads, one in each lane: numbers x[e] of each. And back.
#if CLUTCH_BYTES == 1
static inline void load_groups(uint16* x, __global const T* from) {
  const uint16 words = *(__global const some_words*)from;
#pragma unroll
  for (int e = 0; e < 4; ++e) x[e] = words >> 8 * e & 255;
}
#elif CLUTCH_BYTES == 2
static inline void load_groups(uint16* x, __global const T* from) {
  const uint16 a = *(__global const some_words*)from, b = *(__global const some_words*)(from + 32);
  const uint16 low = (uint16)(a.even, b.even), high = (uint16)(a.odd, b.odd);
  x[0] = low & 0xffff, x[1] = low >> 16, x[2] = high & 0xffff, x[3] = high >> 16;
}
#else
static inline void load_groups(uint16* x, __global const T* from) {
  const TV a = *(__global const some_numbers*)from, b = *(__global const some_numbers*)(from + 16), c = *(__global const some_numbers*)(from + 32),
           d = *(__global const some_numbers*)(from + 48);
  x[0] = (TV)(a.s048c, b.s048c, c.s048c, d.s048c), x[1] = (TV)(a.s159d, b.s159d, c.s159d, d.s159d);
  x[2] = (TV)(a.s26ae, b.s26ae, c.s26ae, d.s26ae), x[3] = (TV)(a.s37bf, b.s37bf, c.s37bf, d.s37bf);
}
#endif
#define ZIP(low, high) \
  (uint16)(low.s0, high.s0, low.s1, high.s1, low.s2, high.s2, low.s3, high.s3, low.s4, high.s4, low.s5, high.s5, low.s6, high.s6, low.s7, high.s7)
#define ZIP_HIGH(low, high) \
  (uint16)(low.s8, high.s8, low.s9, high.s9, low.sa, high.sa, low.sb, high.sb, low.sc, high.sc, low.sd, high.sd, low.se, high.se, low.sf, high.sf)
#endif

// By magnitude, and NaN above all.
static inline K magnitude_of(T x) {
#if CLUTCH_IS_INTEGER
  return (K)abs((char)x);
#else
  return min((K)(x & (T)CLUTCH_MAGNITUDE), (K)CLUTCH_LARGEST + 1);
#endif
}
#if defined(CLUTCH_ENTRY_sparse24_tiles)
// By value, and NaN above all.
static inline K value_of(T x) {
#if CLUTCH_IS_INTEGER
  return (K)(char)x;
#else
  const K m = magnitude_of(x);
  return m > (K)CLUTCH_LARGEST || (x & (T)CLUTCH_MAGNITUDE) == x ? m : -m;
#endif
}
#endif

#ifdef CLUTCH_ENTRY_sparse24_groups
// Bits of the two of `count` numbers with the largest keys, of equal ones the first.
static inline uint kept_of(const K* key, ulong count) {
  uint kept = 0;
  for (ulong i = 0; i < count; ++i) {
    uint before = 0;
    for (ulong j = 0; j < count; ++j) before += key[j] > key[i] || (key[j] == key[i] && j < i);
    kept |= (uint)(before < 2) << i;
  }
  return kept;
}

#ifdef TV
typedef uchar16 some_marks __attribute__((aligned(1)));
typedef uint16 some_marks4 __attribute__((aligned(1)));
#ifdef CLUTCH_HAS_STREAMING
#define STORE_WORDS(x, p, streaming)                         \
  {                                                          \
    if (streaming && (ulong)(p) % 64 == 0)                   \
      __builtin_nontemporal_store(x, (__global uint16*)(p)); \
    else                                                     \
      *(__global some_words*)(p) = x;                        \
  }
#else
#define STORE_WORDS(x, p, streaming) *(__global some_words*)(p) = x
#endif
#if defined(CLUTCH_HAS_STREAMING) && CLUTCH_BYTES == 4
#define STREAM(x, p) __builtin_nontemporal_store(x, (__global TV*)(p))
#elif defined(CLUTCH_HAS_STREAMING) && CLUTCH_BYTES == 2
#define STREAM(x, p) __builtin_nontemporal_store(as_uint8(x), (__global uint8*)(p))
#endif
#if CLUTCH_BYTES < 4
// Sixteen quads at once: of two numbers the later one goes before the other where it is larger.
static inline void keep_groups(__global uchar* to, __global const T* from, uint streaming) {
  uint16 x[4];
  int16 key[4];
  load_groups(x, from);
#pragma unroll
  for (int e = 0; e < 4; ++e)
#if CLUTCH_IS_INTEGER
  {
    const int16 value = as_int16(x[e] << 24) >> 24, negative = value >> 31;
    key[e] = (value ^ negative) - negative;  // abs() of vectors is slow on PoCL
  }
#else
    key[e] = min(as_int16(x[e] & (uint)CLUTCH_MAGNITUDE), (int16)(CLUTCH_LARGEST + 1));
#endif
  const int16 b01 = key[1] > key[0], b02 = key[2] > key[0], b03 = key[3] > key[0], b12 = key[2] > key[1], b13 = key[3] > key[1], b23 = key[3] > key[2];
  const uint16 k0 = as_uint16(b01 + b02 + b03 > -2), k1 = as_uint16(b12 + b13 - b01 > -1), k2 = as_uint16(b23 - b02 - b12 > 0),
               k3 = as_uint16(-b03 - b13 - b23 > 1);
#if CLUTCH_WRITES_MASK
  *(__global some_marks4*)to = PACK_BYTES(k0 & 1, k1 & 1, k2 & 1, k3 & 1);
#elif CLUTCH_BYTES == 1
  const uint16 kept = PACK_BYTES(x[0] & k0, x[1] & k1, x[2] & k2, x[3] & k3);
  STORE_WORDS(kept, to, streaming);
#else
  const uint16 low = (x[0] & k0) | (x[1] & k1) << 16, high = (x[2] & k2) | (x[3] & k3) << 16;
  const uint16 first = ZIP(low, high), last = ZIP_HIGH(low, high);
  STORE_WORDS(first, to, streaming);
  STORE_WORDS(last, to + 64, streaming);
#endif
}
#endif
#define BEATS(other, mask) ((other > key) | ((other == key) & (mask)))
// Four quads at once: lanes see the three others of their quad, of which some stand before them.
static inline int16 kept_lanes(TV x) {
#if CLUTCH_IS_INTEGER
  const int16 key = convert_int16(abs(convert_int16(as_char16(x))));
#else
  const int16 key = min(convert_int16(x & (TV)CLUTCH_MAGNITUDE), (int16)(CLUTCH_LARGEST + 1));
#endif
  const int16 next = key.s123056749ab8defc, across = key.s23016745ab89efcd, last = key.s30127456b89afcde;
  const int16 before = BEATS(next, ((int16)(0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0, -1, 0, 0, 0, -1))) +
                       BEATS(across, ((int16)(0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1, 0, 0, -1, -1))) +
                       BEATS(last, ((int16)(0, -1, -1, -1, 0, -1, -1, -1, 0, -1, -1, -1, 0, -1, -1, -1)));
  return before > -2;
}
#endif

static inline void sparse24_groups_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const T* w, const Sparse24Args args) {
  const ulong m = args.m, k = args.k, chunks = sparse24_parts(sparse24_row_groups(k), CLUTCH_CHUNK);
  const long w_row = args.w_row, w_k = args.w_k;
  const uint streaming = args.flag;
  for (ulong i = group * items + item; i < m * chunks; i += groups * items) {
    const ulong row = i / chunks, first = i % chunks * 4 * CLUTCH_CHUNK, end = min(first + 4 * CLUTCH_CHUNK, k);
    __global const T* from = w + (long)row * w_row;
    ulong at = first;
#ifdef TV
#if CLUTCH_BYTES < 4
    if (w_k == 1)
      for (; at + 64 <= end; at += 64) keep_groups(out + (row * k + at) * (CLUTCH_WRITES_MASK ? 1 : CLUTCH_BYTES), from + at, streaming);
#endif
    if (w_k == 1)
      for (; at + 16 <= end; at += 16) {
        const TV x = *(__global const some_numbers*)(from + at);
        const int16 keep = kept_lanes(x);
#if CLUTCH_WRITES_MASK
        *(__global some_marks*)(out + row * k + at) = convert_uchar16(keep & 1);
#else
        __global T* to = (__global T*)out + row * k + at;
#ifdef STREAM
        if (streaming && (ulong)to % sizeof(TV) == 0) {
          STREAM(x & CLUTCH_TO_TV(keep), to);
          continue;
        }
#endif
        *(__global some_numbers*)to = x & CLUTCH_TO_TV(keep);
#endif
      }
#endif
    for (; at < end; at += 4) {
      const ulong count = min(4ul, end - at);
      T x[4];
      K key[4];
      for (ulong e = 0; e < count; ++e) x[e] = from[(long)(at + e) * w_k], key[e] = magnitude_of(x[e]);
      const uint kept = kept_of(key, count);
      for (ulong e = 0; e < count; ++e)
#if CLUTCH_WRITES_MASK
        out[row * k + at + e] = kept >> e & 1;
#else
        ((__global T*)out)[row * k + at + e] = kept >> e & 1 ? x[e] : (T)0;
#endif
    }
  }
}

__kernel void sparse24_groups(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* w, ulong w_offset,
                              CLUTCH_ARGS(Sparse24Args, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(Sparse24Args, args)
  sparse24_groups_body(CLUTCH_IDS, out + out_offset, (__global const T*)(w + w_offset), args);
}
#endif

#ifdef CLUTCH_ENTRY_sparse24_tiles
static inline void sparse24_tiles_body(CLUTCH_ID_PARAMS, __global uchar* out, __global const T* w, const Sparse24Args args) {
  const ulong m = args.m, k = args.k, across = sparse24_row_groups(k), down = sparse24_row_groups(m);
  const long w_row = args.w_row, w_k = args.w_k;
  for (ulong i = group * items + item; i < across * down; i += groups * items) {
    const ulong top = i / across * 4, left = i % across * 4, rows = min(4ul, m - top), columns = min(4ul, k - left);
    T x[16];
    K key[16];
    uint kept = 0, open = 0, in_row[4] = {0, 0, 0, 0}, in_column[4] = {0, 0, 0, 0};
    for (ulong r = 0; r < rows; ++r)
      for (ulong c = 0; c < columns; ++c) {
        x[4 * r + c] = w[(long)(top + r) * w_row + (long)(left + c) * w_k];
        key[4 * r + c] = CLUTCH_RULE == SPARSE24_MAGNITUDES ? magnitude_of(x[4 * r + c]) : value_of(x[4 * r + c]);
        open |= 1u << (4 * r + c);
      }
    // The largest one that is left, of equal ones the first; by rows where the rule is causal.
    for (int turn = 0; turn < 16; ++turn) {
      const uint among = CLUTCH_RULE == SPARSE24_CAUSAL ? open & 15u << turn / 4 * 4 : open;
      int best = -1;
      for (int e = 0; e < 16; ++e)
        if ((among >> e & 1) && (best < 0 || key[e] > key[best])) best = e;
      if (best < 0) continue;
      open &= ~(1u << best);
      const uint most = CLUTCH_RULE == SPARSE24_CAUSAL && best < 8 ? 1 : 2;
      if (in_row[best / 4] >= most || in_column[best % 4] >= 2) continue;
      ++in_row[best / 4], ++in_column[best % 4], kept |= 1u << best;
    }
    for (ulong r = 0; r < rows; ++r)
      for (ulong c = 0; c < columns; ++c) {
        const ulong to = (top + r) * k + left + c;
#if CLUTCH_WRITES_MASK
        out[to] = kept >> (4 * r + c) & 1;
#else
        ((__global T*)out)[to] = kept >> (4 * r + c) & 1 ? x[4 * r + c] : (T)0;
#endif
      }
  }
}

__kernel void sparse24_tiles(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* w, ulong w_offset, CLUTCH_ARGS(Sparse24Args, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(Sparse24Args, args)
  sparse24_tiles_body(CLUTCH_IDS, out + out_offset, (__global const T*)(w + w_offset), args);
}
#endif

#ifdef CLUTCH_ENTRY_sparse24_compress
// Four bits for each set of places that are not zero; of more than two some are left out.
#define CODE_OF(set) ((uint)(0x4DCE4DCE498E498Eul >> 4 * (set)) & 15)

#if defined(TV) && CLUTCH_BYTES == 1
// Sixteen quads at once, each a word. Whether all are 2:4.
static inline int compress_lanes(__global T* values, __global uchar* codes, __global const T* from) {
  const uint16 x = *(__global const some_words*)from;
  // The highest bits of bytes that are not zero; by the factor they come together as the highest four.
  const uint16 zeros = (x & CLUTCH_MAGNITUDE * 0x01010101u & 0x7f7f7f7f) + 0x7f7f7f7f, nonzero = (CLUTCH_MAGNITUDE > 127 ? zeros | x : zeros) & 0x80808080;
  const uint16 set = nonzero * 0x00204081;
  const uint16 halves = 0x498E498E ^ (as_uint16(as_int16(nonzero) >> 31) & 0x04400440);  // of CODE_OF's table
  const uint16 code = (halves >> (set >> 26 & 28)) & 15;
  const uint16 v0 = x >> (code << 3 & 24), v1 = x >> (code << 1 & 24);
  typedef ushort16 some_pairs __attribute__((aligned(1)));
  *(__global some_pairs*)values = convert_ushort16((v0 & 255) | v1 << 8);
  const ulong8 both = as_ulong8(code);
  vstore8(convert_uchar8(both | both >> 28), 0, codes);
  // Sets of more than two move a one to the highest bit.
  return !CLUTCH_ANY_INT16(as_int16((uint16)0x01170000u << (set >> 28)));
}
#elif defined(TV)
// Sixteen quads at once, one in each lane. Whether all are 2:4.
static inline int compress_lanes(__global T* values, __global uchar* codes, __global const T* from) {
  uint16 x[4];
  load_groups(x, from);
  const uint16 x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
  const int16 n0 = (x0 & (uint)CLUTCH_MAGNITUDE) != 0, n1 = (x1 & (uint)CLUTCH_MAGNITUDE) != 0, n2 = (x2 & (uint)CLUTCH_MAGNITUDE) != 0,
              n3 = (x3 & (uint)CLUTCH_MAGNITUDE) != 0;
  const int16 set = -(n0 + 2 * n1 + 4 * n2 + 8 * n3);
  const int16 code = ((set > 7 ? (int16)0x4DCE4DCE : (int16)0x498E498E) >> 4 * (set & 7)) & 15;
  const int16 first = code & 3, second = code >> 2;
  const uint16 v0 = first == 0 ? x0 : first == 1 ? x1 : x2, v1 = second == 1 ? x1 : second == 2 ? x2 : x3;
#if CLUTCH_BYTES == 2
  *(__global some_words*)values = v0 | v1 << 16;
#else
  *(__global some_numbers*)values = ZIP(v0, v1);
  *(__global some_numbers*)(values + 16) = ZIP_HIGH(v0, v1);
#endif
  vstore8(convert_uchar8(code.even | code.odd << 4), 0, codes);
  return !CLUTCH_ANY_INT16(n0 + n1 + n2 + n3 < -2);
}
#endif

static inline void sparse24_compress_body(CLUTCH_ID_PARAMS, __global T* values, __global uchar* metadata, __global uint* info, __global const T* w,
                                          const Sparse24Args args) {
  const ulong m = args.m, k = args.k, row_groups = sparse24_row_groups(k), chunks = sparse24_parts(row_groups, CLUTCH_CHUNK);
  const long w_row = args.w_row, w_k = args.w_k;
  const uint strict = args.flag;
  for (ulong i = group * items + item; i < m * chunks; i += groups * items) {
    const ulong row = i / chunks, first = i % chunks * CLUTCH_CHUNK, end = min(first + CLUTCH_CHUNK, row_groups);
    __global const T* from = w + (long)row * w_row;
    __global T* to = values + row * 2 * row_groups;
    __global uchar* codes = metadata + row * sparse24_row_metadata(row_groups);
    uint low = 0;
    ulong g = first;
#ifdef TV
    // Quads that are not 2:4 are named below.
    if (w_k == 1)
      for (; g + 16 <= end && 4 * g + 64 <= k; g += 16)
        if (!compress_lanes(to + 2 * g, codes + g / 2, from + 4 * g) && strict) break;
#endif
    for (; g < end; ++g) {
      // Selects, as an array whose elements no constants name would be in memory.
      __global const T* const quad = from + (long)(4 * g) * w_k;
      const int left = (int)min(k - 4 * g, (ulong)4);
      const T x0 = quad[0], x1 = left > 1 ? quad[w_k] : 0, x2 = left > 2 ? quad[2 * w_k] : 0, x3 = left > 3 ? quad[3 * w_k] : 0;
#define IS_SET(x) ((uint)(((x) & (T)CLUTCH_MAGNITUDE) != 0))
      const uint set = IS_SET(x0) | IS_SET(x1) << 1 | IS_SET(x2) << 2 | IS_SET(x3) << 3, code = CODE_OF(set), first_of = code & 3, second_of = code >> 2;
      to[2 * g] = first_of == 0 ? x0 : first_of == 1 ? x1 : x2, to[2 * g + 1] = second_of == 1 ? x1 : second_of == 2 ? x2 : x3;
      if (strict && popcount(set) > 2) atomic_min(info, (uint)(row * row_groups + g));
      if (g & 1 || g + 1 == row_groups)
        codes[g / 2] = (uchar)(g & 1 ? low | code << 4 : code);
      else
        low = code;
    }
  }
}

__kernel void sparse24_compress(CLUTCH_PREDICATE __global uchar* values, ulong values_offset, __global uchar* metadata, ulong metadata_offset,
                                __global uchar* info, ulong info_offset, __global const uchar* w, ulong w_offset, CLUTCH_ARGS(Sparse24Args, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(Sparse24Args, args)
  sparse24_compress_body(CLUTCH_IDS, (__global T*)(values + values_offset), metadata + metadata_offset, (__global uint*)(info + info_offset),
                         (__global const T*)(w + w_offset), args);
}
#endif

#ifdef CLUTCH_ENTRY_sparse24_decompress
// A quad as one number.
#if defined(__ENDIAN_LITTLE__) && CLUTCH_BYTES == 1
#define GROUP uint
#elif defined(__ENDIAN_LITTLE__) && CLUTCH_BYTES == 2
#define GROUP ulong
#endif
#ifdef GROUP
typedef GROUP some_group __attribute__((aligned(CLUTCH_BYTES)));
#endif
static inline void sparse24_decompress_body(CLUTCH_ID_PARAMS, __global T* out, __global const T* values, __global const uchar* metadata,
                                            const Sparse24PackArgs args) {
  const ulong m = args.m, k = args.k, row_groups = sparse24_row_groups(k), chunks = sparse24_parts(row_groups, CLUTCH_CHUNK);
  for (ulong i = group * items + item; i < m * chunks; i += groups * items) {
    const ulong row = i / chunks, first = i % chunks * CLUTCH_CHUNK, end = min(first + CLUTCH_CHUNK, row_groups);
    __global const T* from = values + row * 2 * row_groups;
    __global T* to = out + row * k;
    __global const uchar* codes = metadata + row * sparse24_row_metadata(row_groups);
    for (ulong g = first; g < end; ++g) {
      const uint code = codes[g / 2] >> 4 * (g & 1) & 15;
      const uint first_at = code & 3, second_at = code >> 2;
      const T one = from[2 * g], two = from[2 * g + 1];
#ifdef GROUP
      if (4 * g + 4 <= k) {
        *(__global some_group*)(to + 4 * g) = (GROUP)one << 8 * CLUTCH_BYTES * first_at | (GROUP)two << 8 * CLUTCH_BYTES * second_at;
        continue;
      }
#endif
      for (uint e = 0; e < 4 && 4 * g + e < k; ++e) to[4 * g + e] = e == first_at ? one : e == second_at ? two : (T)0;
    }
  }
}

__kernel void sparse24_decompress(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* values, ulong values_offset,
                                  __global const uchar* metadata, ulong metadata_offset, CLUTCH_ARGS(Sparse24PackArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(Sparse24PackArgs, args)
  sparse24_decompress_body(CLUTCH_IDS, (__global T*)(out + out_offset), (__global const T*)(values + values_offset), metadata + metadata_offset, args);
}
#endif

#ifdef CLUTCH_ENTRY_sparse24_pack
// Layout: [block along k][tile of CLUTCH_ROWS rows][quad of the block], each quad [first numbers of the rows][second numbers of the rows]. For each quad and
// row a word of places: low half the bytes from the quad's first row of a panel to the row of b that the first number meets, high half the same of the second.
// Numbers that do not exist are zero and meet the first row. CLUTCH_PACKS_CODES: numbers keep their dtype, and a quad has two words: the first with bits 2 r
// and 2 r + 1 for the place of row r's first number, the second for its second.
static inline void sparse24_pack_body(CLUTCH_ID_PARAMS, __global uchar* numbers, __global uint* places, __global const uchar* values,
                                      __global const uchar* metadata, const Sparse24PackArgs args) {
  const ulong m = args.m, k = args.k, block_groups = args.block_groups, row_groups = sparse24_row_groups(k);
  const ulong blocks = sparse24_parts(row_groups, block_groups), tiles = sparse24_parts(m, CLUTCH_ROWS), parts = sparse24_parts(blocks, SPARSE24_PACK_BLOCKS);
  for (ulong i = group * items + item; i < parts * tiles; i += groups * items) {
    const ulong top = i % tiles * CLUTCH_ROWS, begin = i / tiles * SPARSE24_PACK_BLOCKS * block_groups,
                end = min(begin + SPARSE24_PACK_BLOCKS * block_groups, blocks * block_groups);
    for (ulong at = begin; at < end; ++at) {
      const ulong to = sparse24_packed_group(at / block_groups, i % tiles, tiles, block_groups) + at % block_groups;
      uint codes[2] = {0, 0};
      if (top + CLUTCH_ROWS <= m && 4 * at + 4 <= k) {
#pragma unroll
        for (ulong r = 0; r < CLUTCH_ROWS; ++r) {
          const uint code = metadata[(top + r) * sparse24_row_metadata(row_groups) + at / 2] >> 4 * (at & 1) & 15;
          const ulong from = (top + r) * 2 * row_groups + 2 * at, number = sparse24_packed_numbers(to, CLUTCH_ROWS) + r;
#if CLUTCH_PACKS_CODES
          ((__global T*)numbers)[number] = ((__global const T*)values)[from];
          ((__global T*)numbers)[number + CLUTCH_ROWS] = ((__global const T*)values)[from + 1];
          codes[0] |= (code & 3) << 2 * r, codes[1] |= code >> 2 << 2 * r;
#else
          ((__global ACC*)numbers)[number] = (ACC)CLUTCH_CONCAT(load_, A_NAME)(values, (long)from);
          ((__global ACC*)numbers)[number + CLUTCH_ROWS] = (ACC)CLUTCH_CONCAT(load_, A_NAME)(values, (long)from + 1);
          places[sparse24_packed_places(to, CLUTCH_ROWS, CLUTCH_PACKS_CODES) + r] = (code & 3) * CLUTCH_PANEL_BYTES | (code >> 2) * CLUTCH_PANEL_BYTES << 16;
#endif
        }
#if CLUTCH_PACKS_CODES
        vstore2((uint2)(codes[0], codes[1]), 0, places + sparse24_packed_places(to, CLUTCH_ROWS, CLUTCH_PACKS_CODES));
#endif
        continue;
      }
      for (ulong r = 0; r < CLUTCH_ROWS; ++r) {
        const ulong row = top + r;
        uint place = 0;
        for (uint s = 0; s < 2; ++s) {
          const int exists = row < m && at < row_groups;
          const uint code = exists ? metadata[row * sparse24_row_metadata(row_groups) + at / 2] >> (4 * (at & 1) + 2 * s) & 3 : 0;
          const int meets = exists && 4 * at + code < k;
          const ulong number = sparse24_packed_numbers(to, CLUTCH_ROWS) + s * CLUTCH_ROWS + r, from = row * 2 * row_groups + 2 * at + s;
#if CLUTCH_PACKS_CODES
          ((__global T*)numbers)[number] = meets ? ((__global const T*)values)[from] : (T)0;
          codes[s] |= (meets ? code : 0) << 2 * r;
#else
          ((__global ACC*)numbers)[number] = meets ? (ACC)CLUTCH_CONCAT(load_, A_NAME)(values, (long)from) : (ACC)0;
          place |= (meets ? code * CLUTCH_PANEL_BYTES : 0) << 16 * s;
#endif
        }
#if !CLUTCH_PACKS_CODES
        places[sparse24_packed_places(to, CLUTCH_ROWS, CLUTCH_PACKS_CODES) + r] = place;
#endif
      }
#if CLUTCH_PACKS_CODES
      vstore2((uint2)(codes[0], codes[1]), 0, places + sparse24_packed_places(to, CLUTCH_ROWS, CLUTCH_PACKS_CODES));
#endif
    }
  }
}

__kernel void sparse24_pack(CLUTCH_PREDICATE __global uchar* numbers, ulong numbers_offset, __global uchar* places, ulong places_offset,
                            __global const uchar* values, ulong values_offset, __global const uchar* metadata, ulong metadata_offset,
                            CLUTCH_ARGS(Sparse24PackArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(Sparse24PackArgs, args)
  sparse24_pack_body(CLUTCH_IDS, numbers + numbers_offset, (__global uint*)(places + places_offset), values + values_offset, metadata + metadata_offset, args);
}
#endif

#ifdef CLUTCH_ENTRY_sparse24_pack_words
#include "sparse24/dot_packing.clh"

__kernel void sparse24_pack_words(CLUTCH_PREDICATE __global uchar* words, ulong words_offset, __global const uchar* values, ulong values_offset,
                                  __global const uchar* metadata, ulong metadata_offset, CLUTCH_ARGS(Sparse24PackArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(Sparse24PackArgs, args)
  sparse24_pack_words_body(CLUTCH_IDS, (__global uint*)(words + words_offset), values + values_offset, metadata + metadata_offset, args);
}
#endif

#ifdef CLUTCH_ENTRY_sparse24_cutlass
// Words of metadata (m, columns) in CUTLASS's order, or (back) from it. T is a word.
static inline void sparse24_cutlass_body(CLUTCH_ID_PARAMS, __global T* out, __global const T* in, const Sparse24CutlassArgs args) {
  const ulong m = args.m, columns = args.columns, rows_of_group = args.rows_of_group;
  const uint back = args.back;
  for (ulong i = group * items + item; i < m * columns; i += groups * items) {
    const ulong row = i / columns, column = i % columns, within = row % rows_of_group;
    const ulong r = row - within + within % 8 * (rows_of_group / 8) + within / 8;
    const int right = r % 2 == 0 && column % 2 == 1, left = r % 2 == 1 && column % 2 == 0;
    const ulong c = column - right + left, to = c / 2 * m * 2 + (r + right - left) * 2 + c % 2;
    out[back ? i : to] = in[back ? to : i];
  }
}

__kernel void sparse24_cutlass(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset,
                               CLUTCH_ARGS(Sparse24CutlassArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(Sparse24CutlassArgs, args)
  sparse24_cutlass_body(CLUTCH_IDS, (__global T*)(out + out_offset), (__global const T*)(in + in_offset), args);
}
#endif
