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

// Sixteen dot products of four bytes, as matmul.cl has them.
#ifdef CLUTCH_ENTRY_self_test_dot
__kernel void self_test_dot(__global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset) {
  __global const int16* x = (__global const int16*)(in + in_offset);
  int16 a = x[0], b = x[1], sum = x[2];
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  *(__global int16*)(out + out_offset) = sum;
}
#endif
