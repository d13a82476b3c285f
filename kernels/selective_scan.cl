// SPDX-License-Identifier: Apache-2.0
// selective_scan: states of each channel, CLUTCH_STATES numbers, go along a sequence; y is their product with c.
//   selective_scan_forward          y and the last state
//   selective_scan_backward         gradients; the states before each chunk of CLUTCH_STEPS elements are kept, those of a chunk computed again
//   selective_scan_backward_groups  the same, for work-groups of SELECTIVE_SCAN_ITEMS items
// Ownership: a work-item owns WIDTH channels of a sequence at a time, or backward the SELECTIVE_SCAN_BLOCK channels of a block, WIDTH after WIDTH, whose
// gradients of b and c it adds; of groups each item owns a channel, and the items add those of neighbouring channels. Local memory of groups: 2 *
// CLUTCH_STATES rows of SELECTIVE_SCAN_ROW numbers. States past the last one are zeros: a, b and c are.
// Needs: what common/combine.clh needs; T_NAME, O_NAME (dtype of x, delta, gate, y and their gradients); CLUTCH_STATES, a multiple of 16; backward
// CLUTCH_STEPS; for groups WIDTH 1. Source: Gu and Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, 2023, algorithm 2.
#include "common/combine.clh"
#include "common/load_quads.clh"
#include "common/some_lanes.clh"
#include "selective_scan/args.h"

#if !defined(T_NAME) || !defined(O_NAME) || !defined(CLUTCH_STATES) || !defined(CLUTCH_STEPS)
#error "T_NAME, O_NAME, CLUTCH_STATES and CLUTCH_STEPS are not defined"
#endif

// Loops over states: where an item's states are few, it has them in registers.
#if (CLUTCH_STATES <= 32 && (WIDTH == 1 || defined(CLUTCH_ENTRY_selective_scan_forward))) || \
    (CLUTCH_STATES <= 64 && WIDTH == 1 && defined(CLUTCH_ENTRY_selective_scan_forward))
#define SCAN_STATES _Pragma("unroll")
#else
#define SCAN_STATES _Pragma("unroll 1")
#endif

#define SCAN_INPUTS                                                                                                                                           \
  __global const uchar *x, ulong x_offset, __global const uchar *delta, ulong delta_offset, __global const uchar *a, ulong a_offset, __global const uchar *b, \
      ulong b_offset, __global const uchar *c, ulong c_offset, __global const uchar *skip, ulong skip_offset, __global const uchar *gate, ulong gate_offset,  \
      __global const uchar *bias, ulong bias_offset, __global const uchar *initial, ulong initial_offset, CLUTCH_ARGS(SelectiveScanArgs, args)
#define SCAN_TAKE                                                                                                                                   \
  CLUTCH_TAKE_ARGS(SelectiveScanArgs, args)                                                                                                         \
  x += x_offset, delta += delta_offset, a += a_offset, b += b_offset, c += c_offset, skip += skip_offset, gate += gate_offset, bias += bias_offset, \
      initial += initial_offset;                                                                                                                    \
  const IDX length = (IDX)args.length, x_step = (IDX)args.x_step, delta_step = (IDX)args.delta_step, gate_step = (IDX)args.gate_step,               \
            y_step = (IDX)args.y_step, b_step = (IDX)args.b_step, c_step = (IDX)args.c_step;                                                        \
  const uint flags = args.flags;                                                                                                                    \
  const int states = args.states;

// Lanes of numbers that are `stride` elements apart, from element `at` on; 0 past `count`.
static inline VF load_apart(__global const uchar* base, long at, long stride, int count) {
  __global const float* const from = (__global const float*)base + at;
#if WIDTH == 1
  return count > 0 ? from[0] : 0.0f;
#else
  float lanes[WIDTH];
  for (int l = 0; l < WIDTH; ++l) lanes[l] = l < count ? from[l * stride] : 0.0f;
  return CLUTCH_CONCAT(vload, WIDTH)(0, lanes);
#endif
}
static inline void store_apart(__global uchar* base, long at, long stride, int count, VF x) {
  __global float* const to = (__global float*)base + at;
#if WIDTH == 1
  if (count > 0) to[0] = x;
#else
  float lanes[WIDTH];
  CLUTCH_CONCAT(vstore, WIDTH)(x, 0, lanes);
  for (int l = 0; l < count; ++l) to[l * stride] = lanes[l];
#endif
}

// The step of an element, and its derivative by delta.
static inline VF step_of(VF raw, uint flags) { return flags & SELECTIVE_SCAN_SOFTPLUS ? (raw > (VF)20.0f ? raw : log1p_f32(exp_f32(raw))) : raw; }
static inline VF slope_of(VF raw, uint flags) { return flags & SELECTIVE_SCAN_SOFTPLUS ? (raw > (VF)20.0f ? (VF)1.0f : sigmoid_f32(raw)) : (VF)1.0f; }

// Four neighbouring numbers that all channels share, as numbers[0] ... numbers[3].
#define SCAN_QUAD(numbers, base, at)                     \
  const float4 numbers##_quad = load_quad_f32(base, at); \
  const float numbers[4] = {numbers##_quad.s0, numbers##_quad.s1, numbers##_quad.s2, numbers##_quad.s3};

// The states after an element; `moved`: its step times x.
CLUTCH_INLINE void advance(VF* to, const VF* from, const VF* rate, VF step, VF moved, __global const uchar* b, IDX b_at) {
  SCAN_STATES
  for (int n = 0; n < CLUTCH_STATES; n += 4) {
    SCAN_QUAD(of_b, b, b_at + n)
#pragma unroll
    for (int k = 0; k < 4; ++k) to[n + k] = fma_rn(exp_f32(step * rate[n + k]), from[n + k], moved * of_b[k]);
  }
}
// The sum of states times c, and x times skip.
CLUTCH_INLINE VF product(const VF* h, __global const uchar* c, IDX c_at, VF of_skip, VF x, uint flags) {
  VF sum = (VF)0.0f;
  SCAN_STATES
  for (int n = 0; n < CLUTCH_STATES; n += 4) {
    SCAN_QUAD(of_c, c, c_at + n)
#pragma unroll
    for (int k = 0; k < 4; ++k) sum = fma_rn(h[n + k], (VF)of_c[k], sum);
  }
  return flags & SELECTIVE_SCAN_SKIP ? fma_rn(of_skip, x, sum) : sum;
}

// What a panel has before its first element: rates (rows of a), the first states, skip and bias.
#define SCAN_PANEL(sequence, first, count)                                                                                                          \
  const VF of_skip = flags & SELECTIVE_SCAN_SKIP ? load_apart(skip, (long)(first), 1, count) : (VF)0.0f;                                            \
  const VF of_bias = flags & SELECTIVE_SCAN_BIAS ? load_apart(bias, (long)(first), 1, count) : (VF)0.0f;                                            \
  const long own_state = ((long)(sequence) * (long)args.channels + (long)(first)) * states;                                                         \
  VF rate[CLUTCH_STATES], h[CLUTCH_STATES];                                                                                                         \
  SCAN_STATES for (int n = 0; n < CLUTCH_STATES; ++n) {                                                                                             \
    rate[n] = load_apart(a, (long)(first)*args.a_row + n * args.a_state, args.a_row, n < states ? count : 0);                                       \
    h[n] = flags & SELECTIVE_SCAN_INITIAL ? load_apart(initial, own_state + n, states, n < states ? count : 0) : (VF)0.0f;                          \
  }                                                                                                                                                 \
  const IDX x_first = (IDX)((long)(sequence)*args.x_batch + (long)(first)), delta_first = (IDX)((long)(sequence)*args.delta_batch + (long)(first)), \
            gate_first = (IDX)((long)(sequence)*args.gate_batch + (long)(first)), y_first = (IDX)((long)(sequence)*args.y_batch + (long)(first)),   \
            b_first = (IDX)((long)(sequence)*args.b_batch), c_first = (IDX)((long)(sequence)*args.c_batch);

#ifdef CLUTCH_ENTRY_selective_scan_forward
__kernel void selective_scan_forward(CLUTCH_PREDICATE __global uchar* y, ulong y_offset, __global uchar* state, ulong state_offset, SCAN_INPUTS) {
  CLUTCH_IF_PREDICATE
  SCAN_TAKE
  y += y_offset, state += state_offset;
  const ulong panels = selective_scan_panels(args.channels, WIDTH), tasks = args.batch * panels;
  for (ulong task = get_global_id(0); task < tasks; task += get_global_size(0)) {
    const ulong sequence = (IDX)task / (IDX)panels, first = (task - sequence * panels) * WIDTH;
    const int count = (int)min(args.channels - first, (ulong)WIDTH);
    SCAN_PANEL(sequence, first, count)
    for (IDX t = 0; t < length; ++t) {
      const VF of_x = load_some(x, x_first + t * x_step, count), step = step_of(load_some(delta, delta_first + t * delta_step, count) + of_bias, flags);
      advance(h, h, rate, step, step * of_x, b, b_first + t * b_step);
      VF result = product(h, c, c_first + t * c_step, of_skip, of_x, flags);
      if (flags & SELECTIVE_SCAN_GATE) {
        const VF of_gate = load_some(gate, gate_first + t * gate_step, count);
        result = result * (of_gate * sigmoid_f32(of_gate));
      }
      store_some(y, y_first + t * y_step, count, result);
    }
    if (flags & SELECTIVE_SCAN_STATE) {
      SCAN_STATES
      for (int n = 0; n < CLUTCH_STATES; ++n) store_apart(state, own_state + n, states, n < states ? count : 0, h[n]);
    }
  }
}
#endif

#define SCAN_BACKWARD_PARAMS                                                                                                                                \
  CLUTCH_PREDICATE __global uchar *to_x, ulong to_x_offset, __global uchar *to_delta, ulong to_delta_offset, __global uchar *to_gate, ulong to_gate_offset, \
      __global uchar *to_initial, ulong to_initial_offset, __global uchar *kept, ulong kept_offset, __global uchar *shared, ulong shared_offset,            \
      __global uchar *own, ulong own_offset, __global const uchar *grad, ulong grad_offset, __global const uchar *grad_state, ulong grad_state_offset,      \
      SCAN_INPUTS
#define SCAN_BACKWARD_TAKE                                                                                                                                    \
  SCAN_TAKE                                                                                                                                                   \
  to_x += to_x_offset, to_delta += to_delta_offset, to_gate += to_gate_offset, to_initial += to_initial_offset, kept += kept_offset, shared += shared_offset, \
      own += own_offset, grad += grad_offset, grad_state += grad_state_offset;                                                                                \
  const ulong padded = selective_scan_padded(args.channels), blocks = selective_scan_blocks(args.channels),                                                   \
              chunks = selective_scan_chunks(args.length, CLUTCH_STEPS);

// Gradients of x, delta and gate have x's shape, contiguous.
#ifdef CLUTCH_ENTRY_selective_scan_backward
#define R VF
#define T float
#define LANES WIDTH
#ifndef CLUTCH_MEM
#define CLUTCH_MEM
#endif
#include "common/transpose.clh"
// Adds the lanes of CLUTCH_STATES vectors, one lane after another, to the numbers at `to`, or if `begins` puts their sum there.
static inline void add_lanes(__global float* to, const VF* vectors, int count, int begins) {
  for (int n = 0; n < CLUTCH_STATES; n += WIDTH) {
    VF lanes[WIDTH];
#pragma unroll
    for (int l = 0; l < WIDTH; ++l) lanes[l] = vectors[n + l];
    transpose(lanes);
    VF sum = begins ? lanes[0] : loadv_f32((__global const uchar*)to, n) + lanes[0];
#pragma unroll
    for (int l = 1; l < WIDTH; ++l)
      if (l < count) sum = sum + lanes[l];
    storev_f32((__global uchar*)to, n, sum);
  }
}
#define SCAN_LOOP _Pragma("unroll 1")
#define SCAN_KEEP(n, of_b, of_c) to_b[n] = of_b, to_c[n] = of_c;
#define SCAN_ADD(to)                                         \
  if (is_there && flags & SELECTIVE_SCAN_TO_SHARED) {        \
    __global float* const here = to;                         \
    add_lanes(here, to_b, count, part == 0);                 \
    add_lanes(here + CLUTCH_STATES, to_c, count, part == 0); \
  }
__kernel void selective_scan_backward(SCAN_BACKWARD_PARAMS) {
  CLUTCH_IF_PREDICATE
  SCAN_BACKWARD_TAKE
  const ulong tasks = args.batch * blocks;
  for (ulong task = get_global_id(0); task < tasks; task += get_global_size(0)) {
    const ulong sequence = (IDX)task / (IDX)blocks, block = task - sequence * blocks;
    for (int part = 0; part < SELECTIVE_SCAN_BLOCK; part += WIDTH) {
      const ulong first = block * SELECTIVE_SCAN_BLOCK + part;
      if (first >= args.channels) break;
      const int count = (int)min(args.channels - first, (ulong)WIDTH);
      VF to_b[CLUTCH_STATES], to_c[CLUTCH_STATES];
#include "selective_scan/backward.inc"
    }
  }
}
#endif

//   item       0  1 ... 15   16 ... 31   32 ... 47   48 ... 63
//   channel    a block of 16, which are added one after another; four blocks side by side
#ifdef CLUTCH_ENTRY_selective_scan_backward_groups
#define SCAN_LOOP _Pragma("unroll")
#define SCAN_KEEP(n, of_b, of_c) tile[(n)*SELECTIVE_SCAN_ROW + item] = of_b, tile[(CLUTCH_STATES + (n)) * SELECTIVE_SCAN_ROW + item] = of_c;
// Each item adds rows, of b and then of c, of one block after another.
#define SCAN_ADD(to)                                                                                                                                 \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                                                                      \
  if (is_there && flags & SELECTIVE_SCAN_TO_SHARED) {                                                                                                \
    _Pragma("unroll 1") for (uint e = item; e < channel_blocks * (2 * CLUTCH_STATES); e += SELECTIVE_SCAN_ITEMS) {                                   \
      const uint of_block = e / (2 * CLUTCH_STATES), row = e % (2 * CLUTCH_STATES);                                                                  \
      const uint first_of_row = row * SELECTIVE_SCAN_ROW + of_block * SELECTIVE_SCAN_BLOCK, there = channels_left - of_block * SELECTIVE_SCAN_BLOCK; \
      float sum = tile[first_of_row];                                                                                                                \
      _Pragma("unroll") for (uint l = 1; l < SELECTIVE_SCAN_BLOCK; ++l) if (l < there) sum = sum + tile[first_of_row + l];                           \
      (to)[e] = sum;                                                                                                                                 \
    }                                                                                                                                                \
  }                                                                                                                                                  \
  barrier(CLK_LOCAL_MEM_FENCE);
__kernel __attribute__((reqd_work_group_size(SELECTIVE_SCAN_ITEMS, 1, 1))) void selective_scan_backward_groups(SCAN_BACKWARD_PARAMS) {
  CLUTCH_IF_PREDICATE
  __local float tile[2 * CLUTCH_STATES * SELECTIVE_SCAN_ROW];
  SCAN_BACKWARD_TAKE
  const uint item = (uint)get_local_id(0);
  const ulong panels = selective_scan_panels(args.channels, SELECTIVE_SCAN_ITEMS), tasks = args.batch * panels;
  for (ulong task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
    const ulong sequence = (IDX)task / (IDX)panels, panel = task - sequence * panels, block = panel * (SELECTIVE_SCAN_ITEMS / SELECTIVE_SCAN_BLOCK);
    const ulong first = min(panel * SELECTIVE_SCAN_ITEMS + item, args.channels - 1);
    const int count = panel * SELECTIVE_SCAN_ITEMS + item < args.channels;
    const uint channels_left = (uint)min(args.channels - panel * SELECTIVE_SCAN_ITEMS, (ulong)SELECTIVE_SCAN_ITEMS);
    const uint channel_blocks = (uint)selective_scan_blocks(channels_left);
#include "selective_scan/backward.inc"
  }
}
#endif
