// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/cat.cpp and the kernels of cat.
#ifndef CLUTCH_CAT_ARGS_H
#define CLUTCH_CAT_ARGS_H

#include "common/shared.h"

CLUTCH_SHARED_BEGIN

// Columns of the table: where a piece goes, and where it comes from.
enum { CAT_TO, CAT_FROM, CAT_COLUMNS };

// Words of 64 bits that tell the layout of a piece of cat_rows; strides in elements.
enum { CAT_ROW_COUNT, CAT_ROW_LENGTH, CAT_TO_STRIDE, CAT_FROM_STRIDE, CAT_ROW_WORDS };

// The same of cat_strided: the number of elements, the rank, then for each dimension, the innermost first, size and strides.
enum {
  CAT_MAX_RANK = 12,
  CAT_COUNT = 0,
  CAT_RANK,
  CAT_SIZES,
  CAT_TO_STRIDES = CAT_SIZES + CAT_MAX_RANK,
  CAT_FROM_STRIDES = CAT_TO_STRIDES + CAT_MAX_RANK,
  CAT_STRIDED_WORDS = CAT_FROM_STRIDES + CAT_MAX_RANK
};

// Arguments of both. The words of chunks follow those of pieces: the number of a piece and that of its chunk, 32 bits each.
typedef struct CatArgs {
  clutch_u32 chunk_count;  // of this launch
  clutch_u32 first_chunk;  // number of its first chunk among all
  clutch_u32 first_piece;  // piece of the list that is the first of the table
  clutch_u32 piece_count;  // of the list
  clutch_u32 streaming;    // 1: stores should bypass the cache
} CatArgs;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::CatArgs) == 20);
#endif

#endif
