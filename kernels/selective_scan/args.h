// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/selective_scan.cpp and the kernels of selective_scan.
#ifndef CLUTCH_SELECTIVE_SCAN_ARGS_H
#define CLUTCH_SELECTIVE_SCAN_ARGS_H

#include "common/shared.h"

// Channels whose gradients of b and c are added one after another. It fixes the order of summation, so it is the same on all devices.
#define SELECTIVE_SCAN_BLOCK 16
// Items of a work-group of selective_scan_backward_groups, a channel each: a multiple of SELECTIVE_SCAN_BLOCK.
#define SELECTIVE_SCAN_ITEMS 64
// Numbers in local memory from one row of items to the next: items that take neighbouring rows meet in no bank.
#define SELECTIVE_SCAN_ROW (SELECTIVE_SCAN_ITEMS + 1)

CLUTCH_SHARED_BEGIN

// What a call has and what it is asked for.
enum {
  SELECTIVE_SCAN_SOFTPLUS = 1,
  SELECTIVE_SCAN_SKIP = 2,
  SELECTIVE_SCAN_GATE = 4,
  SELECTIVE_SCAN_BIAS = 8,
  SELECTIVE_SCAN_INITIAL = 16,     // a state before the first element
  SELECTIVE_SCAN_STATE = 32,       // the last state, or its gradient
  SELECTIVE_SCAN_TO_INITIAL = 64,  // the gradient of the state before the first element
  SELECTIVE_SCAN_TO_SHARED = 128   // gradients of b and c
};

// Arguments of all entries. Strides are in elements, from one sequence of the batch to the next and from one element of a sequence to the next; channels of
// x, delta, gate, y and their gradients, and states of b and c, are neighbours.
typedef struct SelectiveScanArgs {
  clutch_u64 batch;
  clutch_u64 length;
  clutch_u64 channels;
  clutch_i64 y_batch, y_step;  // backward: of its gradient
  clutch_i64 x_batch, x_step;
  clutch_i64 delta_batch, delta_step;
  clutch_i64 gate_batch, gate_step;
  clutch_i64 b_batch, b_step;
  clutch_i64 c_batch, c_step;
  clutch_i64 a_row, a_state;  // from one channel to the next, from one state to the next
  clutch_i32 states;
  clutch_u32 flags;
} SelectiveScanArgs;

// Panels of `width` channels that work-items or work-groups take one after another.
CLUTCH_SHARED_FN clutch_u64 selective_scan_panels(clutch_u64 channels, clutch_u64 width) { return (channels + width - 1) / width; }
CLUTCH_SHARED_FN clutch_u64 selective_scan_blocks(clutch_u64 channels) { return (channels + SELECTIVE_SCAN_BLOCK - 1) / SELECTIVE_SCAN_BLOCK; }
// Chunks of `steps` elements: the states before each are kept.
CLUTCH_SHARED_FN clutch_u64 selective_scan_chunks(clutch_u64 length, clutch_u64 steps) { return (length + steps - 1) / steps; }
// Channels with those past the end of the last block.
CLUTCH_SHARED_FN clutch_u64 selective_scan_padded(clutch_u64 channels) { return selective_scan_blocks(channels) * SELECTIVE_SCAN_BLOCK; }

// Scratch memory of backward, all f32. `padded`: selective_scan_padded(); `states`: CLUTCH_STATES.
// kept: [sequence][chunk][state][channel], the states before a chunk.
CLUTCH_SHARED_FN clutch_u64 selective_scan_kept(clutch_u64 sequence, clutch_u64 chunks, clutch_u64 chunk, clutch_u64 states, clutch_u64 padded) {
  return (sequence * chunks + chunk) * states * padded;
}
// shared: [sequence][element][block][b, c][state], sums of a block's gradients of b and of c.
CLUTCH_SHARED_FN clutch_u64 selective_scan_sums(clutch_u64 sequence, clutch_u64 length, clutch_u64 element, clutch_u64 blocks, clutch_u64 states) {
  return (sequence * length + element) * blocks * 2 * states;
}
// own: [sequence][state, skip, bias][channel], gradients of a, skip and delta_bias from one sequence.
CLUTCH_SHARED_FN clutch_u64 selective_scan_own(clutch_u64 sequence, clutch_u64 states, clutch_u64 padded) { return sequence * (states + 2) * padded; }

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::SelectiveScanArgs) == 144);
static_assert(SELECTIVE_SCAN_ITEMS % SELECTIVE_SCAN_BLOCK == 0);
#endif

#endif
