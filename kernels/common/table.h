// SPDX-License-Identifier: Apache-2.0
// Words of a table of tensors (TensorTable of clutch/kernel.hpp): the number of one of CLUTCH_TABLE_BASES buffers, and a byte offset in it.
#ifndef CLUTCH_COMMON_TABLE_H
#define CLUTCH_COMMON_TABLE_H

#include "common/shared.h"

#define CLUTCH_TABLE_BASES 8                   // a macro since kernels declare an array of it
#define CLUTCH_NO_TENSOR 0xFFFFFFFFFFFFFFFFul  // the word of no tensor

CLUTCH_SHARED_BEGIN

CLUTCH_SHARED_FN clutch_u64 clutch_word_of(clutch_u64 base, clutch_u64 offset) { return base << 56 | offset; }
CLUTCH_SHARED_FN clutch_u64 clutch_base_of(clutch_u64 word) { return (word >> 56) % CLUTCH_TABLE_BASES; }
CLUTCH_SHARED_FN clutch_u64 clutch_offset_of(clutch_u64 word) { return word & (((clutch_u64)1 << 56) - 1); }

CLUTCH_SHARED_END

#endif
