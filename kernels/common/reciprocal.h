// SPDX-License-Identifier: Apache-2.0
// Exact quotients by a multiplication, since GPUs divide integers in some 20 instructions. Shared by host and kernels.
// source: T. Granlund, P. L. Montgomery, Division by Invariant Integers using Multiplication, PLDI 1994, Theorem 4.2
#ifndef CLUTCH_RECIPROCAL_H
#define CLUTCH_RECIPROCAL_H

#include "common/shared.h"

CLUTCH_SHARED_BEGIN

// offsets_quotient() multiplies by the reciprocal and shifts by the shift, for sizes of 2 to 2^31 - 1, which indices are divided by; both are 0 for others.
CLUTCH_SHARED_FN clutch_u32 offsets_shift(clutch_u64 size) {
  clutch_u32 shift = 0;
  while (size >> 31 == 0 && (clutch_u64)2 << shift < size) ++shift;
  return shift;
}
CLUTCH_SHARED_FN clutch_u32 offsets_reciprocal(clutch_u64 size) {
  return size < 2 || size >> 31 != 0 ? 0 : (clutch_u32)(((clutch_u64)1 << (32 + offsets_shift(size))) / size + 1);
}
// index / size, for an index below 2^31.
CLUTCH_SHARED_FN clutch_u32 offsets_quotient(clutch_u32 index, clutch_u32 reciprocal, clutch_u32 shift) {
#ifdef __OPENCL_VERSION__
  return mul_hi(index, reciprocal) >> shift;
#else
  return (clutch_u32)((clutch_u64)index * reciprocal >> 32) >> shift;
#endif
}
// Reciprocal and shift in one word; 0 stands for no division, whose quotients are 0.
CLUTCH_SHARED_FN clutch_u64 offsets_divisor(clutch_u64 size) { return offsets_reciprocal(size) | (clutch_u64)offsets_shift(size) << 32; }

CLUTCH_SHARED_END

#endif
