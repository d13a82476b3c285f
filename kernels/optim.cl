// SPDX-License-Identifier: Apache-2.0
// optim_step: a step of an optimizer over the tensors of a table. optim_norm, optim_norm_total, optim_scale: the norm of all gradients of a table, and
// gradients times a factor.
// Ownership: tensors are cut into chunks of CHUNK elements; a group takes chunks in turn, its items vectors of them in turn. With COUNTS each chunk
// has a counter of its steps, which its group alone reads and writes. optim_norm_total is one group. Local memory: 64 numbers for norms.
// Needs: T (parameters and gradients), CHUNK, GROUPED (work-groups have several items), what optim/step.clh or optim/norm.clh needs, and what the
// included files need.
// Source: torch.optim of PyTorch 2.12.
#include "common/dtype.clh"
#include "common/launch.clh"
#include "common/math.clh"
#include "common/table.clh"

#if !defined(T) || !defined(T_NAME) || !defined(CHUNK)
#error "T, T_NAME and CHUNK are not defined"
#endif

#ifdef T_IS_F64
#define ACC double
#define V VD
#define LANES DWIDTH
#define DIV(x, y) ((x) / (y))
#define SQRT(x) sqrt(x)
#define FMA(a, b, c) fma(a, b, c)
#else
#define ACC float
#define V VF
#define LANES WIDTH
#define DIV(x, y) div_rn(x, y)
#define SQRT(x) sqrt_rn(x)
#define FMA(a, b, c) fma_rn(a, b, c)
#endif
#define LOAD_T CLUTCH_CONCAT(load_, T_NAME)
#define STORE_T CLUTCH_CONCAT(store_, T_NAME)
#define LOADV_T CLUTCH_CONCAT(loadv_, T_NAME)
#define STOREV_T CLUTCH_CONCAT(storev_, T_NAME)

// Emulated rounding is scalar.
#define VECTORS (LANES > 1 && DIV_RN == 0 && FMA_RN == 0 && SQRT_RN == 0)

// NaN where either is.
#define MAX_NAN(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

#ifdef CLUTCH_ENTRY_optim_step
#include "optim/step.clh"
static inline void optim_step_body(CLUTCH_ID_PARAMS, const Table* table, __global const ulong* sizes, __global const uint2* chunks, __global float* steps,
                                   SCALAR lr, ACC scale, ACC factor, SCALAR a, SCALAR b, SCALAR eps, SCALAR wd, uint flags, uint chunk_count, uint first_row) {
  Scalars k;
  uint known = 0;  // the step that k is of
  for (ulong c = group; c < chunk_count; c += groups) {
    const uint2 chunk = chunks[c];
    if (table->words[(chunk.x - first_row) * (ulong)COLUMNS + 1] == CLUTCH_NO_TENSOR) continue;
    __global float* counter = steps + (flags & COUNTS ? c : (ulong)chunk.x);
    const uint t = (uint)*counter + (flags & COUNTS ? 1 : 0);
#ifdef GROUPED
    barrier(CLK_GLOBAL_MEM_FENCE);
#endif
    if (flags & COUNTS && lane == 0) *counter = t;
    if (t != known) k = scalars_of(lr, a, b, eps, wd, t, flags), known = t;
    const Row r = row_of(table, chunk.x - first_row);
    const ulong begin = (ulong)chunk.y * CHUNK, end = min(begin + CHUNK, sizes[chunk.x]);
    ulong tail = begin;
#if VECTORS
    tail = begin + (end - begin) / STEP * STEP;
    for (ulong i = begin + lane * STEP; i < tail; i += lanes * STEP) {
      PREFETCH_ROW
      step_vector(&r, (long)i, &k, scale, factor, t == 1, flags);
    }
#endif
    for (ulong i = tail + lane; i < end; i += lanes) step_one(&r, (long)i, &k, scale, factor, t == 1, flags);
  }
}

__kernel void optim_step(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global const uchar* sizes, ulong sizes_offset, __global const uchar* chunks,
                         ulong chunks_offset, __global uchar* steps, ulong steps_offset, __global const uchar* lrs, ulong lrs_offset,
                         __global const uchar* scales, ulong scales_offset, __global const uchar* found, ulong found_offset, __global const uchar* factors,
                         ulong factors_offset, SCALAR lr, SCALAR a, SCALAR b, SCALAR eps, SCALAR wd, uint flags, uint chunk_count, uint first_row) {
  CLUTCH_IF_PREDICATE
  if (flags & HAS_FOUND && *(__global const float*)(found + found_offset) != 0) return;
  CLUTCH_TABLE(table)
  // Any NaN becomes the one without low bits: see bf16_join_quiet.
  float given = 0, scale = 1, factor = 1;
  if (flags & HAS_LR) given = *(__global const float*)(lrs + lrs_offset), lr = isnan(given) ? (SCALAR)NAN : (SCALAR)given;
  if (SCALED) scale = *(__global const float*)(scales + scales_offset), scale = isnan(scale) ? NAN : scale;
  if (flags & HAS_FACTOR) factor = *(__global const float*)(factors + factors_offset), factor = isnan(factor) ? NAN : factor;
  optim_step_body(CLUTCH_IDS, &table, (__global const ulong*)(sizes + sizes_offset), (__global const uint2*)(chunks + chunks_offset),
                  (__global float*)(steps + steps_offset), lr, scale, factor, a, b, eps, wd, flags, chunk_count, first_row);
}
#endif

#if defined(CLUTCH_ENTRY_optim_norm) || defined(CLUTCH_ENTRY_optim_norm_total)
#include "optim/norm.clh"
#endif

#ifdef CLUTCH_ENTRY_optim_norm
static inline void optim_norm_body(CLUTCH_ID_PARAMS, const Table* table, __global const ulong* sizes, __global const uint2* chunks, __global ACC* partial,
                                   LANES_MEMORY ACC* all, uint chunk_count, uint first_row, uint columns, uint column) {
  for (ulong c = group; c < chunk_count; c += groups) {
    const uint2 chunk = chunks[c];
    const ulong at = (chunk.x - first_row) * (ulong)columns + column;
    if (table->words[at] == CLUTCH_NO_TENSOR) {
      if (lane == 0) partial[c] = 0;
      continue;
    }
    __global const uchar* g = table_at(table, at);
    const ulong begin = (ulong)chunk.y * CHUNK, end = min(begin + CHUNK, sizes[chunk.x]);
#if VECTORS && !defined(GROUPED)
    V sums[NORM_LANES / LANES];
#pragma unroll
    for (int m = 0; m < NORM_LANES / LANES; ++m) sums[m] = 0;
    ulong i = begin;
    for (; i + NORM_LANES <= end; i += NORM_LANES)
#pragma unroll
      for (int m = 0; m < NORM_LANES / LANES; ++m) {
        V x = LOADV_T(g, (long)(i + m * LANES));
        sums[m] = GATHER(V, sums[m], x);
      }
#pragma unroll
    for (int m = 0; m < NORM_LANES / LANES; ++m) CLUTCH_CONCAT(vstore, LANES)(sums[m], m, all);
    for (int l = 0; i < end; ++i, ++l) {
      ACC x = LOAD_T(g, (long)i);
      all[l] = GATHER(ACC, all[l], x);
    }
#else
    for (ulong l = lane; l < NORM_LANES; l += lanes) {
      ACC sum = 0;
      for (ulong i = begin + l; i < end; i += NORM_LANES) {
        ACC x = LOAD_T(g, (long)i);
        sum = GATHER(ACC, sum, x);
      }
      all[l] = sum;
    }
#endif
    meet_all(all, lane, lanes);
    if (lane == 0) partial[c] = all[0];
#ifdef GROUPED
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
  }
}

__kernel void optim_norm(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global const uchar* sizes, ulong sizes_offset, __global const uchar* chunks,
                         ulong chunks_offset, __global uchar* partial, ulong partial_offset, uint chunk_count, uint first_row, uint columns, uint column) {
  CLUTCH_IF_PREDICATE
  LANES_MEMORY ACC all[NORM_LANES];
  CLUTCH_TABLE(table)
  optim_norm_body(CLUTCH_IDS, &table, (__global const ulong*)(sizes + sizes_offset), (__global const uint2*)(chunks + chunks_offset),
                  (__global ACC*)(partial + partial_offset), all, chunk_count, first_row, columns, column);
}
#endif

#ifdef CLUTCH_ENTRY_optim_norm_total
// One group: the norm, and the factor that brings it to `most` where it is larger.
__kernel void optim_norm_total(CLUTCH_PREDICATE __global uchar* norm, ulong norm_offset, __global uchar* factor, ulong factor_offset,
                               __global const uchar* partial, ulong partial_offset, uint count, ACC most) {
  CLUTCH_IF_PREDICATE
  LANES_MEMORY ACC all[NORM_LANES];
  __global const ACC* x = (__global const ACC*)(partial + partial_offset);
  const ulong lane = get_local_id(0), lanes = get_local_size(0);
  for (ulong l = lane; l < NORM_LANES; l += lanes) {
    ACC sum = 0;
    for (uint i = (uint)l; i < count; i += NORM_LANES) sum = MEET(sum, x[i]);
    all[l] = sum;
  }
  meet_all(all, lane, lanes);
  if (lane == 0) {
    ACC total = NORM == 0 ? SQRT(all[0]) : all[0], scale = DIV(most, total + (ACC)1e-6);
    *(__global ACC*)(norm + norm_offset) = total;
    *(__global float*)(factor + factor_offset) = (float)(scale > 1 ? (ACC)1 : scale);
  }
}
#endif

#ifdef CLUTCH_ENTRY_optim_scale
// Gradients times a factor on the device.
__kernel void optim_scale(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global const uchar* sizes, ulong sizes_offset, __global const uchar* chunks,
                          ulong chunks_offset, __global const uchar* factors, ulong factors_offset, uint chunk_count, uint first_row, uint columns,
                          uint column) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TABLE(table)
  __global const ulong* size_of = (__global const ulong*)(sizes + sizes_offset);
  __global const uint2* chunk_of = (__global const uint2*)(chunks + chunks_offset);
  const ACC factor = *(__global const float*)(factors + factors_offset);
  const ulong lane = get_local_id(0), lanes = get_local_size(0);
  for (ulong c = get_group_id(0); c < chunk_count; c += get_num_groups(0)) {
    const uint2 chunk = chunk_of[c];
    const ulong at = (chunk.x - first_row) * (ulong)columns + column;
    if (table.words[at] == CLUTCH_NO_TENSOR) continue;
    __global uchar* g = table_at(&table, at);
    const ulong begin = (ulong)chunk.y * CHUNK, end = min(begin + CHUNK, size_of[chunk.x]);
    ulong tail = begin;
#if VECTORS
    tail = begin + (end - begin) / LANES * LANES;
    for (ulong i = begin + lane * LANES; i < tail; i += lanes * LANES) STOREV_T(g, (long)i, LOADV_T(g, (long)i) * factor);
#endif
    for (ulong i = tail + lane; i < end; i += lanes) STORE_T(g, (long)i, LOAD_T(g, (long)i) * factor);
  }
}
#endif
