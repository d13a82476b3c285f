// SPDX-License-Identifier: Apache-2.0
// Shows how a device rounds: the host compares with results it knows to be right. One item per element.
// Needs nothing. Source: the traits fma_exact, divide_exact, sqrt_exact and denormals.
#include "common/launch.clh"

__kernel void self_test_rounding(__global uchar* out, ulong out_offset, __global const uchar* in, ulong in_offset, uint n) {
  __global float* y = (__global float*)(out + out_offset);
  __global const float* x = (__global const float*)(in + in_offset);
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
    float a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
    y[4 * i] = fma(a, b, c);
    y[4 * i + 1] = a / b;
    y[4 * i + 2] = sqrt(fabs(a));
    y[4 * i + 3] = a * b;
  }
}
