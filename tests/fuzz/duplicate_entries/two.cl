// SPDX-License-Identifier: Apache-2.0
__kernel void same_name(__global float* x) { x[0] = 1; }
