// SPDX-License-Identifier: Apache-2.0
static inline float first_of(__local const float* room) { return room[0]; }
__kernel void one(__global float* x) {
  __local float room[1];
  room[0] = *x;
  *x = first_of(room) + 1;
}
