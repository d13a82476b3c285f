// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/copy.cpp and the kernels of copy.
#ifndef CLUTCH_COPY_ARGS_H
#define CLUTCH_COPY_ARGS_H

#include "common/shared.h"

// CLUTCH_S_KIND and CLUTCH_D_KIND: what the source's and the destination's numbers are computed in. These are macros because the kernels' preprocessor
// compares them.
#define COPY_KIND_F32 0       // float
#define COPY_KIND_F64 1       // double
#define COPY_KIND_INTEGER 2   // long: integers and booleans
#define COPY_KIND_UNSIGNED 3  // ulong: u64

// copy_transposed: rows and columns of squares in local memory.
#define COPY_SQUARE 32
// On CPUs: elements of a block, and of its rows and columns where the matrix has more.
#define COPY_BLOCK 2048
#define COPY_BLOCK_WIDTH 32
#define COPY_BLOCK_HEIGHT (COPY_BLOCK / COPY_BLOCK_WIDTH)

CLUTCH_SHARED_BEGIN

// `length` in as many equal parts as parts of `most` would be; the last one is shorter by what is left.
CLUTCH_SHARED_FN clutch_u64 copy_part(clutch_u64 length, clutch_u64 most) {
  const clutch_u64 parts = (length + most - 1) / most;
  return (length + parts - 1) / parts;
}
// Elements of a block of a `width` x `height` matrix along dimension 0, and along dimension 1.
CLUTCH_SHARED_FN clutch_u64 copy_block_width(clutch_u64 width, clutch_u64 height) {
  return copy_part(width, height < COPY_BLOCK_HEIGHT ? COPY_BLOCK / height : COPY_BLOCK_WIDTH);
}
CLUTCH_SHARED_FN clutch_u64 copy_block_height(clutch_u64 width, clutch_u64 height) {
  return copy_part(height, width < COPY_BLOCK_WIDTH ? COPY_BLOCK / width : COPY_BLOCK_HEIGHT);
}
// Whether dimensions 1 and 2 are one run of the input, whose strides these are, where dimension 1 alone would be no cache line or few.
CLUTCH_SHARED_FN int copy_joins(clutch_i64 rank, const clutch_i64* size, const clutch_i64* stride) {
  return rank > 2 && size[1] < COPY_BLOCK_HEIGHT && stride[2] == stride[1] * size[1];
}
// Whether rows of the next dimension's matrices lie within those of dimension 1, of the output's strides.
CLUTCH_SHARED_FN int copy_is_inside(clutch_i64 rank, int joined, const clutch_i64* stride) { return rank > 2 + joined && stride[2 + joined] < stride[1]; }

CLUTCH_SHARED_END

#endif
