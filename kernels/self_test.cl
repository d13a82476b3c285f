// SPDX-License-Identifier: Apache-2.0
// Shows how a device rounds: the host compares with results it knows to be right. One item per element. And how far its loops come, and whether it takes
// an instruction of the CPU's that its compiler does not know of. And how a struct by value arrives.
// Needs nothing. Source: the traits fma_exact, divide_exact, sqrt_exact, denormals, args_by_value; the quirk loops_end_early.
#include "common/launch.clh"
#include "self_test/args.h"

__kernel void self_test_rounding(__global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset, uint n, uint iterations) {
  __global float* y = (__global float*)(out + out_offset);
  __global const float* x = (__global const float*)(in + in_offset);
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
    float a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
    y[4 * i] = fma(a, b, c);
    y[4 * i + 1] = a / b;
    y[4 * i + 2] = sqrt(fabs(a));
    y[4 * i + 3] = a * b;
  }
  // One long loop, whose number shows how many of its iterations ran.
  uint number = 0;
  for (uint i = 0; i < iterations; ++i) number = number * 1664525u + 1013904223u;
  if (iterations > 0) ((__global uint*)y)[get_global_id(0)] = number;
}

// Echoes a struct by value.
#ifdef CLUTCH_ENTRY_self_test_args
__kernel void self_test_args(__global uchar* out, ulong out_offset, CLUTCH_ARGS(SelfTestArgs, args)) {
  CLUTCH_TAKE_ARGS(SelfTestArgs, args)
  __global ulong* words = (__global ulong*)(out + out_offset);
  for (int i = 0; i < CLUTCH_SELF_TEST_WORDS; ++i) words[i] = self_test_word(args, i);
}
#endif

// A matrix instruction as matmul.cl has it: for each group `begin` and `times` times a fragment of a times one of b, in lines of MATMUL_LINE_WORDS
// words. Needs what
// matmul/fragments.clh needs, and CLUTCH_SPARSE_INSTRUCTION: 1 if a is 2:4 and the instruction one for such matrices (matmul/sparse_fragments.clh).
#if defined(CLUTCH_ENTRY_self_test_matrix) || defined(CLUTCH_ENTRY_self_test_matrix_speed) || defined(CLUTCH_ENTRY_self_test_exchange)
#include "matmul/fragments.clh"
#endif
#if (defined(CLUTCH_ENTRY_self_test_matrix) || defined(CLUTCH_ENTRY_self_test_matrix_speed)) && CLUTCH_SPARSE_INSTRUCTION
#include "matmul/sparse_fragments.clh"
#endif
#ifdef CLUTCH_ENTRY_self_test_matrix

#if CLUTCH_LAYOUT == MATMUL_LAYOUT_MMA
#define LINES_B (2 * FRAGMENT_N)  // which lanes may take at once
#else
#define LINES_B FRAGMENT_N
#endif

__kernel CLUTCH_LANES_OF_SUB_GROUP void self_test_matrix(__global uchar* out, ulong out_offset, __global const uchar* a, ulong a_offset,
                                                         __global const uchar* b, ulong b_offset, uint times, uint begin) {
  __local uint lines_a[FRAGMENT_M * MATMUL_LINE_WORDS] __attribute__((aligned(16))), lines_b[LINES_B * MATMUL_LINE_WORDS] __attribute__((aligned(16)));
#if CLUTCH_STAND_IN
  __local uint model[SUB_GROUP * MATMUL_MODEL_WORDS];
#else
  __local uint* model = 0;
#endif
  __global const uint* of_a = (__global const uint*)(a + a_offset) + get_group_id(0) * FRAGMENT_M * MATMUL_LINE_WORDS;
  __global const uint* of_b = (__global const uint*)(b + b_offset) + get_group_id(0) * FRAGMENT_N * MATMUL_LINE_WORDS;
  __global RESULT* results = (__global RESULT*)(out + out_offset) + get_group_id(0) * FRAGMENT_M * FRAGMENT_N;
  const uint lane = (uint)get_local_id(0);
  for (uint i = lane; i < FRAGMENT_M * MATMUL_LINE_WORDS; i += SUB_GROUP) lines_a[word_place(i / MATMUL_LINE_WORDS, i % MATMUL_LINE_WORDS)] = of_a[i];
  for (uint i = lane; i < LINES_B * MATMUL_LINE_WORDS; i += SUB_GROUP)
    lines_b[word_place(i / MATMUL_LINE_WORDS, i % MATMUL_LINE_WORDS)] = of_b[i % (FRAGMENT_N * MATMUL_LINE_WORDS)];
  barrier(CLK_LOCAL_MEM_FENCE);
  RESULT sum[FRAGMENT_RESULTS];
#pragma unroll
  for (uint r = 0; r < FRAGMENT_RESULTS; ++r) sum[r] = (RESULT)begin;
#if CLUTCH_SPARSE_INSTRUCTION
  uint x[SPARSE_A_WORDS], y[SPARSE_B_WORDS];
  const uint places = take_sparse_a(x, lines_a, 0, lane);
  take_sparse_b(y, lines_b, 0, lane);
#pragma unroll 1
  for (uint turn = 0; turn < times; ++turn) multiply_sparse_fragments(sum, x, y, places, model, lane);
#else
#pragma unroll 1
  for (uint turn = 0; turn < times * PARTS; ++turn) {
    const uint part = turn % PARTS;
    uint x[PART_STEPS * A_WORDS], y[PART_STEPS * B_WORDS];
#if CLUTCH_LAYOUT == MATMUL_LAYOUT_MMA
    // Both ways to take words, by turns.
    if (turn / PARTS % 2) {
      uint two[2 * B_WORDS];
      take_mma(x, lines_a, 0, 0, FRAGMENT_M, 1, 0, part, lane, model, lane);
      take_mma(two, lines_b, 0, 0, LINES_B, 0, 0, part, lane, model, lane);
      y[0] = two[0], y[1] = two[1];
    } else
#endif
    {
      take_a(x, lines_a, 0, part, lane);
      take_b(y, lines_b, 0, part, lane);
    }
#pragma unroll
    for (uint step = 0; step < PART_STEPS; ++step) multiply_fragments(sum, x + step * A_WORDS, y + step * B_WORDS, model, lane);
  }
#endif
#pragma unroll
  for (uint r = 0; r < FRAGMENT_RESULTS; ++r) results[result_row(r, lane) * FRAGMENT_N + result_column(r, lane)] = sum[r];
}
#endif

// How fast these instructions are where operands stay in registers: `times` times the instructions of a line, for each of CLUTCH_SELF_TEST_CHAINS results in
// turn, so that none waits for the one before. Needs what self_test_matrix needs.
#ifdef CLUTCH_ENTRY_self_test_matrix_speed
#if CLUTCH_SPARSE_INSTRUCTION
#define SPEED_A_WORDS SPARSE_A_WORDS
#define SPEED_B_WORDS SPARSE_B_WORDS
#define LINE_INSTRUCTIONS 1
#else
#define SPEED_A_WORDS A_WORDS
#define SPEED_B_WORDS B_WORDS
#define LINE_INSTRUCTIONS (PARTS * PART_STEPS)
#endif

__kernel CLUTCH_LANES_OF_SUB_GROUP void self_test_matrix_speed(__global uchar* out, ulong out_offset, uint times) {
#if CLUTCH_STAND_IN
  __local uint model[SUB_GROUP * MATMUL_MODEL_WORDS];
#else
  __local uint* model = 0;
#endif
  const uint lane = (uint)get_local_id(0);
  RESULT sum[CLUTCH_SELF_TEST_CHAINS][FRAGMENT_RESULTS];
  uint x[SPEED_A_WORDS], y[SPEED_B_WORDS];
  // Small numbers of all kinds, no two lanes' alike: devices slow down for numbers, not for zeros.
#pragma unroll
  for (uint i = 0; i < SPEED_A_WORDS; ++i) x[i] = (lane * 0x01030507 + i * 0x11131719 + 0x01010101) & 0x3b3b3b3b;
#pragma unroll
  for (uint i = 0; i < SPEED_B_WORDS; ++i) y[i] = (lane * 0x07050301 + i * 0x19171311 + 0x01010101) & 0x3b3b3b3b;
  UNROLL_FRAGMENTS
  for (uint c = 0; c < CLUTCH_SELF_TEST_CHAINS; ++c)
    for (uint r = 0; r < FRAGMENT_RESULTS; ++r) sum[c][r] = 0;
#pragma unroll 1
  for (uint turn = 0; turn < times; ++turn) {
    UNROLL_FRAGMENTS
    for (uint i = 0; i < LINE_INSTRUCTIONS; ++i) {
      UNROLL_FRAGMENTS
      for (uint c = 0; c < CLUTCH_SELF_TEST_CHAINS; ++c) {
#if CLUTCH_SPARSE_INSTRUCTION
        multiply_sparse_fragments(sum[c], x, y, 0x44444444, model, lane);  // the first two of each quad
#else
        multiply_fragments(sum[c], x, y, model, lane);
#endif
      }
    }
  }
  RESULT all = 0;
  UNROLL_FRAGMENTS
  for (uint c = 0; c < CLUTCH_SELF_TEST_CHAINS; ++c)
    for (uint r = 0; r < FRAGMENT_RESULTS; ++r) all += sum[c][r];
  ((__global RESULT*)(out + out_offset))[get_global_id(0)] = all;
}
#endif

// Sixteen dot products of four bytes, as matmul.cl has them.
#ifdef CLUTCH_ENTRY_self_test_dot
__kernel void self_test_dot(__global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset) {
  __global const int16* x = (__global const int16*)(in + in_offset);
  int16 a = x[0], b = x[1], sum = x[2];
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  *(__global int16*)(out + out_offset) = sum;
}
#endif

// What lanes of a sub-group exchange and round, as flex.cl has it (flex/exchange.clh): for each group one x and two y of each lane. out has of each lane
// CLUTCH_SELF_TEST_EXCHANGES words: x of the lane that differs in the first, and in the last, of the bits; 2^x; both y as a word; and of each of the lane's
// queries n the largest number, and the sum, of x (n + 1).
// Needs what flex/exchange.clh needs.
#ifdef CLUTCH_ENTRY_self_test_exchange
#include "flex/exchange.clh"

__kernel CLUTCH_LANES_OF_SUB_GROUP void self_test_exchange(__global uchar* out, ulong out_offset, __global const uchar* x, ulong x_offset,
                                                           __global const uchar* y, ulong y_offset) {
#if CLUTCH_STAND_IN
  __local uint model[SUB_GROUP * MATMUL_MODEL_WORDS];
#else
  __local uint* model = 0;
#endif
  const uint lane = (uint)get_local_id(0), at = (uint)get_group_id(0) * SUB_GROUP + lane;
  const float mine = ((__global const float*)(x + x_offset))[at];
  const float2 both = ((__global const float2*)(y + y_offset))[at];
  __global uint* words = (__global uint*)(out + out_offset) + at * CLUTCH_SELF_TEST_EXCHANGES;
  words[0] = exchange(as_uint(mine), FIRST_BIT, model, lane);
  words[1] = exchange(as_uint(mine), LAST_BIT, model, lane);
  words[2] = as_uint(exp2_of_device(mine));
  words[3] = rounded_word(both.s0, both.s1);
  for (int sums = 0; sums < 2; ++sums) {
    float own[LANE_QUERIES], state[STATES];
    UNROLL_FRAGMENTS
    for (uint n = 0; n < LANE_QUERIES; ++n) own[n] = mine * (float)(n + 1);
    join_lanes(state, own, sums, model, lane);
    UNROLL_FRAGMENTS
    for (uint n = 0; n < LANE_QUERIES; ++n) words[4 + 2 * n + (uint)sums] = as_uint(state_of(state, n, model, lane));
  }
}
#endif
