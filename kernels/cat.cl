// SPDX-License-Identifier: Apache-2.0
// cat and its kin: many pieces, each a view that is copied into another view of the same sizes, in one launch.
// Ownership: a group owns chunks of CLUTCH_TILE elements of a piece, in the order of its elements. On devices whose groups are threads the item copies whole
// runs, by vectors where both sides are contiguous; else its items take elements in turn. No local memory. Needs: T, an unsigned type of the element's size;
// CLUTCH_SIZE, that size; CLUTCH_TILE; WIDTH. May have: CLUTCH_GROUPED (work-groups have several items).
#include "cat/args.h"
#include "common/dtype.clh"
#include "common/launch.clh"
#include "common/table.clh"

#if !defined(T) || !defined(CLUTCH_SIZE) || !defined(CLUTCH_TILE)
#error "T, CLUTCH_SIZE and CLUTCH_TILE are not defined"
#endif

// The chunk that a group takes: elements begin to end of a piece, and where it goes and comes from.
typedef struct {
  __global const ulong* words;  // the piece's layout
  __global T* to;
  __global const T* from;
  ulong begin, end;
} Chunk;

static inline Chunk chunk_of(const Table* table, __global const ulong* words, ulong c, uint piece_words, uint count_word, const CatArgs* args) {
  const uint2 chunk = ((__global const uint2*)(words + (ulong)args->piece_count * piece_words))[args->first_chunk + c];
  const ulong row = (ulong)(chunk.x - args->first_piece) * CAT_COLUMNS;
  Chunk r;
  r.words = words + (ulong)chunk.x * piece_words;
  r.to = (__global T*)table_at(table, row + CAT_TO), r.from = (__global const T*)table_at(table, row + CAT_FROM);
  r.begin = (ulong)chunk.y * CLUTCH_TILE, r.end = min(r.begin + CLUTCH_TILE, r.words[count_word]);
  return r;
}

#ifndef CLUTCH_GROUPED
static inline void copy_run(__global T* to, __global const T* from, ulong count, uint streaming) {
  ulong i = 0;
#if WIDTH >= 4
  // Vectors of words where addresses allow it.
  if (((ulong)to | (ulong)from) % sizeof(uint) == 0) {
    const ulong vectors = count * CLUTCH_SIZE / (WIDTH * sizeof(uint));
#ifdef CLUTCH_HAS_STREAMING
    // These take addresses of whole vectors.
    if (streaming && (ulong)to % (WIDTH * sizeof(uint)) == 0) {
      for (ulong v = 0; v < vectors; ++v)
        __builtin_nontemporal_store(CLUTCH_CONCAT(vload, WIDTH)(v, (__global const uint*)from), (__global CLUTCH_CONCAT(uint, WIDTH)*)to + v);
    } else
#endif
      for (ulong v = 0; v < vectors; ++v) CLUTCH_CONCAT(vstore, WIDTH)(CLUTCH_CONCAT(vload, WIDTH)(v, (__global const uint*)from), v, (__global uint*)to);
    i = vectors * (WIDTH * sizeof(uint)) / CLUTCH_SIZE;
  }
#endif
  for (; i < count; ++i) to[i] = from[i];
}
#endif

// Rows: each row of a piece is a run of elements on both sides.
#ifdef CLUTCH_ENTRY_cat_rows
static inline void cat_rows_body(CLUTCH_ID_PARAMS, const Table* table, __global const ulong* words, CatArgs args) {
  for (ulong c = group; c < args.chunk_count; c += groups) {
    const Chunk chunk = chunk_of(table, words, c, CAT_ROW_WORDS, CAT_ROW_COUNT, &args);
    const ulong length = chunk.words[CAT_ROW_LENGTH], to_stride = chunk.words[CAT_TO_STRIDE], from_stride = chunk.words[CAT_FROM_STRIDE];
    const ulong row = chunk.begin / length, column = chunk.begin - row * length, count = chunk.end - chunk.begin;
    __global T* to = chunk.to + row * to_stride;
    __global const T* from = chunk.from + row * from_stride;
#ifdef CLUTCH_GROUPED
    for (ulong i = item; i < count; i += items) {
      // A chunk of long rows is in two of them at most; the others' lengths fit 32 bits.
      const ulong at = column + i, down = length > CLUTCH_TILE ? at >= length : (uint)at / (uint)length, across = at - down * length;
      to[down * to_stride + across] = from[down * from_stride + across];
    }
#else
    for (ulong done = 0, across = column; done < count; across = 0) {
      const ulong run = min(length - across, count - done);
      copy_run(to + across, from + across, run, args.streaming);
      done += run, to += to_stride, from += from_stride;
    }
#endif
  }
}

__kernel void cat_rows(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global const uchar* words, ulong words_offset, CLUTCH_ARGS(CatArgs, args)) {
  CLUTCH_TAKE_ARGS(CatArgs, args)
  CLUTCH_IF_PREDICATE
  CLUTCH_TABLE(table)
  cat_rows_body(CLUTCH_IDS, &table, (__global const ulong*)(words + words_offset), args);
}
#endif

// Any strides.
#ifdef CLUTCH_ENTRY_cat_strided
// Where element i of the dimensions from d on is in a piece, x, and in what it comes from, y.
static inline ulong2 offsets_of(__global const ulong* words, int d, int rank, ulong i) {
  ulong2 r = (ulong2)(0, 0);
  for (; d < rank; ++d) {
    const ulong size = words[CAT_SIZES + d], next = i / size, at = i - next * size;
    r.x += at * words[CAT_TO_STRIDES + d], r.y += at * words[CAT_FROM_STRIDES + d];
    i = next;
  }
  return r;
}

static inline void cat_strided_body(CLUTCH_ID_PARAMS, const Table* table, __global const ulong* words, CatArgs args) {
  for (ulong c = group; c < args.chunk_count; c += groups) {
    const Chunk chunk = chunk_of(table, words, c, CAT_STRIDED_WORDS, CAT_COUNT, &args);
    const int rank = (int)chunk.words[CAT_RANK];
#ifdef CLUTCH_GROUPED
    for (ulong i = chunk.begin + item; i < chunk.end; i += items) {
      const ulong2 at = offsets_of(chunk.words, 0, rank, i);
      chunk.to[at.x] = chunk.from[at.y];
    }
#else
    // An item has whole runs of the innermost dimension, so that it divides once a run.
    const ulong length = chunk.words[CAT_SIZES], to_stride = chunk.words[CAT_TO_STRIDES], from_stride = chunk.words[CAT_FROM_STRIDES];
    ulong row = chunk.begin / length, column = chunk.begin - row * length;
    for (ulong i = chunk.begin; i < chunk.end; ++row, column = 0) {
      const ulong run = min(length - column, chunk.end - i);
      const ulong2 at = offsets_of(chunk.words, 1, rank, row);
      __global T* to = chunk.to + at.x + column * to_stride;
      __global const T* from = chunk.from + at.y + column * from_stride;
      if (to_stride == 1 && from_stride == 1)
        copy_run(to, from, run, args.streaming);
      else
        for (ulong k = 0; k < run; ++k) to[k * to_stride] = from[k * from_stride];
      i += run;
    }
#endif
  }
}

__kernel void cat_strided(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global const uchar* words, ulong words_offset, CLUTCH_ARGS(CatArgs, args)) {
  CLUTCH_TAKE_ARGS(CatArgs, args)
  CLUTCH_IF_PREDICATE
  CLUTCH_TABLE(table)
  cat_strided_body(CLUTCH_IDS, &table, (__global const ulong*)(words + words_offset), args);
}
#endif
