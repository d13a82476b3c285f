// SPDX-License-Identifier: Apache-2.0
// control: predicates of the branches of cond() and switch_(), and of the iterations of while_loop(). Ownership: one work-item does all. No local memory.
#include "common/control.clh"
#include "common/launch.clh"

#ifdef CLUTCH_ENTRY_control_choose
__kernel void control_choose(__global uchar* flags, ulong flags_offset, __global const uchar* outer, ulong outer_offset, __global const uchar* in,
                             ulong in_offset, uint count, uint has_outer, uint is_index, uint bytes, uint real_bytes, uint has_zero, uint sign) {
  control_choose_body((__global uint*)(flags + flags_offset), (__global const uint*)(outer + outer_offset), in + in_offset, count, has_outer, is_index, bytes,
                      real_bytes, has_zero, sign);
}
#endif

#ifdef CLUTCH_ENTRY_control_begin
__kernel void control_begin(__global uchar* flag, ulong flag_offset, __global uchar* iterations, ulong iterations_offset, __global const uchar* outer,
                            ulong outer_offset, uint has_outer) {
  control_begin_body((__global uint*)(flag + flag_offset), (__global long*)(iterations + iterations_offset), (__global const uint*)(outer + outer_offset),
                     has_outer);
}
#endif

#ifdef CLUTCH_ENTRY_control_next
__kernel void control_next(__global uchar* flag, ulong flag_offset, __global uchar* iterations, ulong iterations_offset, __global const uchar* in,
                           ulong in_offset, uint bytes, uint real_bytes, uint has_zero) {
  control_next_body((__global uint*)(flag + flag_offset), (__global long*)(iterations + iterations_offset), in + in_offset, bytes, real_bytes, has_zero);
}
#endif
