// SPDX-License-Identifier: Apache-2.0
// Shared by host/graph/tiny.cpp and the kernel of tiny: the entries of its table.
#ifndef CLUTCH_TINY_ARGS_H
#define CLUTCH_TINY_ARGS_H

#include "common/shared.h"

// Bodies. Functions that the host prints are numbered from TINY_FUNCTION on.
#define TINY_FILL 0    // `n` bytes become a pattern of 16 bytes, two words
#define TINY_COPY 1    // `n` bytes
#define TINY_CHOOSE 2  // these three are of common/control.clh, whose numbers are words in their order
#define TINY_BEGIN 3
#define TINY_NEXT 4
#define TINY_FUNCTION 5

// Dimensions of an entry's shape. A macro since the kernel declares arrays of it.
#define TINY_RANK 4

CLUTCH_SHARED_BEGIN

// An entry. Behind it are its words of 64 bits: of a function of elements TINY_RANK sizes, as many strides of each tensor, and params; of one of rows sizes of
// the rows and along them, as many strides of each tensor, and params; else the body's numbers.
typedef struct TinyEntry {
  clutch_u32 body;
  clutch_u32 waits;      // other than 0: for the entries before it, since it depends on one of them
  clutch_u32 next;       // byte offset of the entry behind it
  clutch_u32 skip;       // of the entry that follows where the guard holds 0
  clutch_u32 guard;      // number in the table of a u32, plus 1; 0: the entry has none
  clutch_u32 first;      // number in the table of its first tensor
  clutch_u32 n;          // elements, or rows, or bytes
  clutch_u32 lines;      // whole vectors: lines along dimension 0, and vectors of each; no lines where a tensor has gaps
  clutch_u32 vectors;    //
  clutch_u32 parts;      // the other elements: parts of neighbours, each of at most part_size elements,
  clutch_u32 part_size;  // from element number part_first on, part_step apart
  clutch_u32 part_first;
  clutch_u32 part_step;
  clutch_u32 length;  // of a row
} TinyEntry;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::TinyEntry) == 56);
#endif

#endif
