// SPDX-License-Identifier: Apache-2.0
// optim_step: a step of an optimizer over the tensors of a table (formulas: optim/step.clh). optim_norm, optim_norm_total: the norm of all gradients of a
// table. optim_scale: gradients times a factor, and whether one is not finite. optim_update_scaler, optim_schedule: scalars that are kept on the device.
// Ownership: tensors are divided into chunks of CLUTCH_CHUNK elements; a group owns chunks, its items take vectors of a chunk in turn. With OPTIM_COUNTS each
// chunk has CLUTCH_ITEMS counters of steps, at least one for each item: item i reads counter i and writes counters i, i + items, ...
// optim_norm_total is one group, optim_update_scaler and optim_schedule are one item.
// Local memory: 64 numbers for norms.
// Needs: T (parameters and gradients), CLUTCH_CHUNK, CLUTCH_ITEMS (for the step), what optim/step.clh or optim/norm.clh needs, and what the included files
// need. May have: CLUTCH_GROUPED (work-groups have several items). Source: torch.optim of PyTorch 2.12.
#include "common/dtype.clh"
#include "common/launch.clh"
#include "common/math.clh"
#include "common/table.clh"
#include "optim/args.h"

#if !defined(T) || !defined(T_NAME) || !defined(CLUTCH_CHUNK)
#error "T, T_NAME and CLUTCH_CHUNK are not defined"
#endif

#ifdef T_IS_F64
#define ACC double
#define V VD
#define LANES DWIDTH
#define CLUTCH_DIV(x, y) ((x) / (y))
#define CLUTCH_SQRT(x) sqrt(x)
#define CLUTCH_FMA(a, b, c) fma(a, b, c)
#else
#define ACC float
#define V VF
#define LANES WIDTH
#define CLUTCH_DIV(x, y) div_rn(x, y)
#define CLUTCH_SQRT(x) sqrt_rn(x)
#define CLUTCH_FMA(a, b, c) fma_rn(a, b, c)
#endif
#define CLUTCH_LOAD_T CLUTCH_CONCAT(load_, T_NAME)
#define CLUTCH_STORE_T CLUTCH_CONCAT(store_, T_NAME)
#define CLUTCH_LOADV_T CLUTCH_CONCAT(loadv_, T_NAME)
#define CLUTCH_STOREV_T CLUTCH_CONCAT(storev_, T_NAME)
#define CLUTCH_LOADA_T CLUTCH_CONCAT(loada_, T_NAME)
#define CLUTCH_STOREA_T CLUTCH_CONCAT(storea_, T_NAME)

// Emulated rounding is scalar.
#define CLUTCH_VECTORS (LANES > 1 && CLUTCH_DIV_RN == CLUTCH_RN_NATIVE && CLUTCH_FMA_RN == CLUTCH_RN_NATIVE && CLUTCH_SQRT_RN == CLUTCH_RN_NATIVE)

// NaN if either is NaN.
#define CLUTCH_MAX_NAN(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

#ifdef CLUTCH_ENTRY_optim_step
#include "optim/step.clh"
static inline void optim_step_body(CLUTCH_ID_PARAMS, const Table* table, __global const ulong* sizes, __global const uint2* chunks, __global float* steps,
                                   __global const uint* numbers, const Hyper* hyper, ACC scale, ACC factor, ulong seed, OptimStepArgs args) {
  const uint flags = args.flags, chunk_count = args.chunk_count, first_row = args.first_row;
  Scalars k;
  uint known = 0;  // the step whose scalars k has
  for (ulong c = group; c < chunk_count; c += groups) {
    const uint2 chunk = chunks[c];
    if (table->words[(chunk.x - first_row) * (ulong)CLUTCH_COLUMNS + 1] == CLUTCH_NO_TENSOR) continue;
    __global float* counter = COUNTER_OF(c, chunk.x);
    const uint t = flags & OPTIM_COUNTS ? (uint)counter[item] + 1 : (uint)counter[0];
    if (flags & OPTIM_COUNTS)
      for (ulong l = item; l < CLUTCH_ITEMS; l += items) counter[l] = t;
    if (t != known) k = scalars_of(hyper, seed, t, flags), known = t;
    const Row r = row_of(table, chunk.x - first_row, CLUTCH_ROUNDING == OPTIM_STOCHASTIC ? numbers[chunk.x] : 0);
    const ulong begin = (ulong)chunk.y * CLUTCH_CHUNK, end = min(begin + CLUTCH_CHUNK, sizes[chunk.x]);
    ulong tail = begin;
#if CLUTCH_VECTORS
    tail = begin + (end - begin) / CLUTCH_STEP_ELEMENTS * CLUTCH_STEP_ELEMENTS;
#ifdef CLUTCH_HAS_WHOLE
    if (CLUTCH_WHOLE((ulong)r.p | (ulong)r.g | (ulong)r.s0 | (ulong)r.s1 | (ulong)r.s2 | (ulong)r.last)) {
      for (ulong i = begin + item * LANES; i < tail; i += items * LANES) step_whole(&r, (long)i, &k, scale, factor, t == 1, flags);
    } else
#endif
    {
      for (ulong i = begin + item * CLUTCH_STEP_ELEMENTS; i < tail; i += items * CLUTCH_STEP_ELEMENTS) {
        CLUTCH_PREFETCH_ROW
        step_vector(&r, (long)i, &k, scale, factor, t == 1, flags);
      }
    }
#endif
    for (ulong i = tail + item; i < end; i += items) step_one(&r, (long)i, &k, scale, factor, t == 1, flags);
  }
}

__kernel void optim_step(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global uchar* steps, ulong steps_offset, __global const uchar* sizes, ulong sizes_offset,
                         __global const uchar* chunks, ulong chunks_offset, __global const uchar* lrs, ulong lrs_offset, __global const uchar* scales,
                         ulong scales_offset, __global const uchar* found, ulong found_offset, __global const uchar* factors, ulong factors_offset,
                         __global const uchar* numbers, ulong numbers_offset, CLUTCH_ARGS(OptimStepArgs, args), CLUTCH_HYPER_PARAMS, ulong seed) {
  CLUTCH_TAKE_ARGS(OptimStepArgs, args)
  CLUTCH_IF_PREDICATE
  if (args.flags & OPTIM_HAS_FOUND && *(__global const float*)(found + found_offset) != 0) return;
  CLUTCH_TABLE(table)
  // Each NaN becomes the one without low bits: see bf16_join_quiet.
  float given = 0, scale = 1, factor = 1;
  if (args.flags & OPTIM_HAS_LR) given = *(__global const float*)(lrs + lrs_offset), lr = isnan(given) ? (SCALAR)NAN : (SCALAR)given;
  if (CLUTCH_SCALED) scale = *(__global const float*)(scales + scales_offset), scale = isnan(scale) ? NAN : scale;
  if (args.flags & OPTIM_HAS_FACTOR) factor = *(__global const float*)(factors + factors_offset), factor = isnan(factor) ? NAN : factor;
  const Hyper hyper = {CLUTCH_HYPER_NAMES};
  optim_step_body(CLUTCH_IDS, &table, (__global const ulong*)(sizes + sizes_offset), (__global const uint2*)(chunks + chunks_offset),
                  (__global float*)(steps + steps_offset), (__global const uint*)(numbers + numbers_offset), &hyper, scale, factor, seed, args);
}
#endif

#if defined(CLUTCH_ENTRY_optim_norm) || defined(CLUTCH_ENTRY_optim_norm_total) || defined(CLUTCH_ENTRY_optim_norms)
#include "optim/norm.clh"
#endif

#ifdef CLUTCH_ENTRY_optim_norm
CLUTCH_INLINE void optim_norm_body(CLUTCH_ID_PARAMS, const Table* table, __global const ulong* sizes, __global const uint2* chunks, __global ACC* partial,
                                   CLUTCH_LANES_MEMORY ACC* all, OptimChunkArgs args) {
  const uint chunk_count = args.chunk_count, first_row = args.first_row;
  for (ulong c = group; c < chunk_count; c += groups) {
    const uint2 chunk = chunks[c];
    const ulong at = chunk.x - first_row;
    __global const uchar* g = table_at(table, at);
    // A gradient that is not given has no elements; its items reach the barriers, too.
    const ulong begin = (ulong)chunk.y * CLUTCH_CHUNK, end = table->words[at] == CLUTCH_NO_TENSOR ? 0 : min(begin + CLUTCH_CHUNK, sizes[chunk.x]);
#if CLUTCH_VECTORS && !defined(CLUTCH_GROUPED)
    V sums[CLUTCH_NORM_LANES / LANES];
#pragma unroll
    for (int m = 0; m < CLUTCH_NORM_LANES / LANES; ++m) sums[m] = 0;
    ulong i = begin;
    for (; i + CLUTCH_NORM_LANES <= end; i += CLUTCH_NORM_LANES)
#pragma unroll
      for (int m = 0; m < CLUTCH_NORM_LANES / LANES; ++m) {
        V x = CLUTCH_LOADV_T(g, (long)(i + m * LANES));
        sums[m] = CLUTCH_ACCUMULATE(V, sums[m], x);
      }
#pragma unroll
    for (int m = 0; m < CLUTCH_NORM_LANES / LANES; ++m) CLUTCH_CONCAT(vstore, LANES)(sums[m], m, all);
    for (int l = 0; i < end; ++i, ++l) {
      ACC x = CLUTCH_LOAD_T(g, (long)i);
      all[l] = CLUTCH_ACCUMULATE(ACC, all[l], x);
    }
#else
    for (ulong l = item; l < CLUTCH_NORM_LANES; l += items) {
      ACC sum = 0;
      for (ulong i = begin + l; i < end; i += CLUTCH_NORM_LANES) {
        ACC x = CLUTCH_LOAD_T(g, (long)i);
        sum = CLUTCH_ACCUMULATE(ACC, sum, x);
      }
      all[l] = sum;
    }
#endif
    combine_all(all, item, items);
    if (item == 0) partial[c] = all[0];
#ifdef CLUTCH_GROUPED
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
  }
}

__kernel void optim_norm(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global uchar* partial, ulong partial_offset, __global const uchar* sizes, ulong sizes_offset,
                         __global const uchar* chunks, ulong chunks_offset, CLUTCH_ARGS(OptimChunkArgs, args)) {
  CLUTCH_TAKE_ARGS(OptimChunkArgs, args)
  CLUTCH_IF_PREDICATE
  CLUTCH_LANES_MEMORY ACC all[CLUTCH_NORM_LANES];
  CLUTCH_TABLE(table)
  optim_norm_body(CLUTCH_IDS, &table, (__global const ulong*)(sizes + sizes_offset), (__global const uint2*)(chunks + chunks_offset),
                  (__global ACC*)(partial + partial_offset), all, args);
}
#endif

#ifdef CLUTCH_ENTRY_optim_norm_total
// One group: the norm, and max_norm / norm where the norm is larger, else 1.
__kernel void optim_norm_total(CLUTCH_PREDICATE __global uchar* norm, ulong norm_offset, __global uchar* factor, ulong factor_offset,
                               __global const uchar* partial, ulong partial_offset, __global const uchar* scales, ulong scales_offset,
                               CLUTCH_ARGS(OptimTotalArgs, args), ACC max_norm) {
  CLUTCH_TAKE_ARGS(OptimTotalArgs, args)
  CLUTCH_IF_PREDICATE
  CLUTCH_LANES_MEMORY ACC all[CLUTCH_NORM_LANES];
  __global const ACC* x = (__global const ACC*)(partial + partial_offset);
  const ulong item = get_local_id(0), items = get_local_size(0);
  for (ulong l = item; l < CLUTCH_NORM_LANES; l += items) {
    ACC sum = 0;
    for (uint i = (uint)l; i < args.chunk_count; i += CLUTCH_NORM_LANES) sum = CLUTCH_COMBINE(sum, x[i]);
    all[l] = sum;
  }
  combine_all(all, item, items);
  if (item == 0) {
    ACC total = norm_of_sum(all[0]), scale;
    if (args.scaled) total = CLUTCH_DIV(total, (ACC) * (__global const float*)(scales + scales_offset));
    scale = CLUTCH_DIV(max_norm, total + (ACC)1e-6);
    *(__global ACC*)(norm + norm_offset) = total;
    *(__global float*)(factor + factor_offset) = (float)(scale > 1 ? (ACC)1 : scale);
  }
}
#endif

#ifdef CLUTCH_ENTRY_optim_norms
// A group for each tensor: the norm of its chunks, firsts[t] to firsts[t + 1], as of all in optim_norm_total.
CLUTCH_INLINE void optim_norms_body(CLUTCH_ID_PARAMS, __global ACC* norms, __global const ACC* partial, __global const uint* firsts,
                                    __global const float* scale, CLUTCH_LANES_MEMORY ACC* all, OptimNormsArgs args) {
  for (ulong t = group; t < args.tensors; t += groups) {
    const uint first = firsts[t], end = firsts[t + 1];
    for (ulong l = item; l < CLUTCH_NORM_LANES; l += items) {
      ACC sum = 0;
      for (uint i = first + (uint)l; i < end; i += CLUTCH_NORM_LANES) sum = CLUTCH_COMBINE(sum, partial[i]);
      all[l] = sum;
    }
    combine_all(all, item, items);
    if (item == 0) norms[t] = args.scaled ? CLUTCH_DIV(norm_of_sum(all[0]), (ACC)*scale) : norm_of_sum(all[0]);
#ifdef CLUTCH_GROUPED
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
  }
}

__kernel void optim_norms(CLUTCH_PREDICATE __global uchar* norms, ulong norms_offset, __global const uchar* partial, ulong partial_offset,
                          __global const uchar* firsts, ulong firsts_offset, __global const uchar* scales, ulong scales_offset,
                          CLUTCH_ARGS(OptimNormsArgs, args)) {
  CLUTCH_TAKE_ARGS(OptimNormsArgs, args)
  CLUTCH_IF_PREDICATE
  CLUTCH_LANES_MEMORY ACC all[CLUTCH_NORM_LANES];
  optim_norms_body(CLUTCH_IDS, (__global ACC*)(norms + norms_offset), (__global const ACC*)(partial + partial_offset),
                   (__global const uint*)(firsts + firsts_offset), (__global const float*)(scales + scales_offset), all, args);
}
#endif

#ifdef CLUTCH_ENTRY_optim_scale
#if !defined(CLUTCH_SCALES) || !defined(CLUTCH_CHECKS)
#error "CLUTCH_SCALES and CLUTCH_CHECKS are not defined"
#endif
#define SCALE_VECTORS(load, store)                                     \
  for (ulong i = begin + item * LANES; i < tail; i += items * LANES) { \
    V x = load(g, (long)i);                                            \
    if (CLUTCH_CHECKS) zeros = CLUTCH_FMA(x, (V)0, zeros);             \
    if (CLUTCH_SCALES) store(g, (long)i, (x) * (factor));              \
  }
// Multiplies gradients by a factor on the device; found becomes 1 if one is not finite.
__kernel void optim_scale(CLUTCH_PREDICATE CLUTCH_TABLE_PARAMS, __global uchar* found, ulong found_offset, __global const uchar* sizes, ulong sizes_offset,
                          __global const uchar* chunks, ulong chunks_offset, __global const uchar* factors, ulong factors_offset,
                          CLUTCH_ARGS(OptimChunkArgs, args)) {
  CLUTCH_TAKE_ARGS(OptimChunkArgs, args)
  CLUTCH_IF_PREDICATE
  CLUTCH_TABLE(table)
  __global const ulong* size_of = (__global const ulong*)(sizes + sizes_offset);
  __global const uint2* chunk_of = (__global const uint2*)(chunks + chunks_offset);
  float given = CLUTCH_SCALES ? *(__global const float*)(factors + factors_offset) : 1;
  if (CLUTCH_SCALES == OPTIM_SCALES_BY_INVERSE) given = div_rn(1.0f, given);
  const ACC factor = (ACC)given;
  const uint chunk_count = args.chunk_count, first_row = args.first_row;
  const ulong item = get_local_id(0), items = get_local_size(0);
  ACC zero = 0;  // sum of elements times 0: NaN if one is not finite
#if CLUTCH_VECTORS
  V zeros = 0;
#endif
  for (ulong c = get_group_id(0); c < chunk_count; c += get_num_groups(0)) {
    const uint2 chunk = chunk_of[c];
    const ulong at = chunk.x - first_row;
    if (table.words[at] == CLUTCH_NO_TENSOR) continue;
    __global uchar* g = table_at(&table, at);
    const ulong begin = (ulong)chunk.y * CLUTCH_CHUNK, end = min(begin + CLUTCH_CHUNK, size_of[chunk.x]);
    ulong tail = begin;
#if CLUTCH_VECTORS
    tail = begin + (end - begin) / LANES * LANES;
#ifdef CLUTCH_HAS_WHOLE
    if (CLUTCH_WHOLE((ulong)g)) {
      SCALE_VECTORS(CLUTCH_LOADA_T, CLUTCH_STOREA_T)
    } else
#endif
    {
      SCALE_VECTORS(CLUTCH_LOADV_T, CLUTCH_STOREV_T)
    }
#endif
    for (ulong i = tail + item; i < end; i += items) {
      ACC x = CLUTCH_LOAD_T(g, (long)i);
      if (CLUTCH_CHECKS) zero = CLUTCH_FMA(x, (ACC)0, zero);
      if (CLUTCH_SCALES) CLUTCH_STORE_T(g, (long)i, x * factor);
    }
  }
#if CLUTCH_VECTORS
  ACC all[LANES];
  CLUTCH_CONCAT(vstore, LANES)(zeros, 0, all);
  for (int l = 0; l < LANES; ++l) zero += all[l];
#endif
  if (CLUTCH_CHECKS && zero != 0) atomic_xchg((volatile __global int*)(found + found_offset), as_int(1.0f));
}
#endif

#ifdef CLUTCH_ENTRY_optim_update_scaler
// Updates scale and growth tracker by `found`, and clears it.
__kernel void optim_update_scaler(CLUTCH_PREDICATE __global uchar* scales, ulong scales_offset, __global uchar* trackers, ulong trackers_offset,
                                  __global uchar* found, ulong found_offset, uint count, int growth_interval, float growth_factor, float backoff_factor) {
  CLUTCH_IF_PREDICATE
  __global float* scale = (__global float*)(scales + scales_offset);
  __global int* tracker = (__global int*)(trackers + trackers_offset);
  __global float* seen = (__global float*)(found + found_offset);
  if (get_global_id(0) != 0) return;
  int bad = 0, done = *tracker + 1;
  for (uint s = 0; s < count; ++s) {
    if (seen[s] != 0) bad = 1;
    seen[s] = 0;
  }
  if (bad) {
    *scale *= backoff_factor, done = 0;
  } else if (done >= growth_interval) {
    float grown = *scale * growth_factor;
    if (grown < INFINITY) *scale = grown;
    done = 0;
  }
  *tracker = done;
}
#endif

#ifdef CLUTCH_ENTRY_optim_schedule
// Advances the counter and multiplies the learning rates by the factor of its step.
__kernel void optim_schedule(CLUTCH_PREDICATE __global uchar* lrs, ulong lrs_offset, __global uchar* counts, ulong counts_offset, __global const uchar* rates,
                             ulong rates_offset, CLUTCH_ARGS(OptimScheduleArgs, args), ulong advance, ulong warmup_steps, ulong decay_steps, float warmup_start,
                             float end) {
  CLUTCH_TAKE_ARGS(OptimScheduleArgs, args)
  CLUTCH_IF_PREDICATE
  __global float* lr = (__global float*)(lrs + lrs_offset);
  __global const float* rate = (__global const float*)(rates + rates_offset);
  __global ulong* count = (__global ulong*)(counts + counts_offset);
  if (get_global_id(0) != 0) return;
  const ulong t = *count + advance, s = t - warmup_steps;
  float factor = 1;
  *count = t;
  if (t < warmup_steps) {
    factor = fma_rn(1 - warmup_start, div_rn((float)t, (float)warmup_steps), warmup_start);
  } else if (args.decay != OPTIM_DECAY_CONSTANT) {
    const float x = s >= decay_steps ? 1 : div_rn((float)s, (float)decay_steps);
    VF cosine, sine = sincospi_f32((VF)x, &cosine);
    float lanes[WIDTH];
    CLUTCH_SPILL(cosine, lanes);
    factor = args.decay == OPTIM_DECAY_LINEAR ? fma_rn(end - 1, x, 1.0f) : fma_rn(1 - end, 0.5f + 0.5f * lanes[0], end);
  }
  for (uint i = 0; i < args.rate_count; ++i) lr[i] = rate[i] * factor;
}
#endif
