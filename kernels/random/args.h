// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/random.cpp, host/encode/generator.cpp, and the kernels of random and flex.
#ifndef CLUTCH_RANDOM_ARGS_H
#define CLUTCH_RANDOM_ARGS_H

#include "common/shared.h"

// Philox blocks of a chunk, and their 32-bit words. It fixes which words an element takes, so it is the same on all devices. Macros since tiles are made of
// them.
#define RANDOM_CHUNK_BLOCKS 16
#define RANDOM_CHUNK_WORDS (4 * RANDOM_CHUNK_BLOCKS)

CLUTCH_SHARED_BEGIN

// A generator's state: words of 64 bits.
enum { RANDOM_SEED, RANDOM_OFFSET, RANDOM_STATE_WORDS };

// Words of 32 bits that an element takes: 1, or 2 in f64.
CLUTCH_SHARED_FN clutch_u64 random_words(clutch_u32 is_f64) { return is_f64 ? 2 : 1; }
// Elements of a chunk.
CLUTCH_SHARED_FN clutch_u64 random_chunk(clutch_u32 is_f64) { return RANDOM_CHUNK_WORDS / random_words(is_f64); }
// Philox blocks that n elements take; the generator advances by them.
CLUTCH_SHARED_FN clutch_u64 random_blocks(clutch_u64 n, clutch_u32 is_f64) {
  return (n + random_chunk(is_f64) - 1) / random_chunk(is_f64) * RANDOM_CHUNK_BLOCKS;
}

CLUTCH_SHARED_END

#endif
