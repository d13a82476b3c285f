// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/nonzero.cpp and the kernels of nonzero.
#ifndef CLUTCH_NONZERO_ARGS_H
#define CLUTCH_NONZERO_ARGS_H

#include "common/shared.h"

// Which elements are found. The preprocessor compares them.
#define NONZERO_ELEMENTS 0  // those that are not 0
#define NONZERO_FIRSTS 1    // those that differ from the one before them
// Bytes of an element that has two numbers of 64 bits.
#define NONZERO_PAIR_BYTES 16

CLUTCH_SHARED_BEGIN

enum {
  NONZERO_ITEMS = 256,  // entries of tiles: work-items of a group, a power of 4
  NONZERO_OWN = 8,      // entries of tiles: neighbouring elements of an item
  NONZERO_LIST = 64     // nonzero_place: elements whose places an item lists before it writes
};
// What nonzero_place writes.
enum {
  NONZERO_PLACES = 1,   // indices of what was found
  NONZERO_VALUES = 2,   // elements of a tensor
  NONZERO_INVERSE = 4,  // for each element the number of the last one found up to it
  NONZERO_ORDERED = 8   // the same, at the place that `order` names
};

// Arguments of all kernels of nonzero.
typedef struct NonzeroArgs {
  clutch_u64 n;         // elements
  clutch_u64 chunk;     // of a part
  clutch_u64 parts;     // ceil(n / chunk)
  clutch_u64 capacity;  // what is found past it is left out
  clutch_u32 writes;    // NONZERO_*
  clutch_u32 rank;      // indices of a place
} NonzeroArgs;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::NonzeroArgs) == 40);
#endif

#endif
