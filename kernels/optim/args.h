// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/optim* and the kernels of optim. Hyperparameters (lr, beta1, max_norm, ...) are arguments of their own, since they have names.
#ifndef CLUTCH_OPTIM_ARGS_H
#define CLUTCH_OPTIM_ARGS_H

#include "common/shared.h"

// Values of build options, macros since #if compares them. optim_plan.hpp and optim.cpp hold the host's enums to them.
// CLUTCH_OPTIMIZER
#define OPTIM_SGD 0
#define OPTIM_ADAM 1
#define OPTIM_ADAGRAD 2
#define OPTIM_RMSPROP 3
// CLUTCH_NUMERICS
#define OPTIM_SOURCE 1
#define OPTIM_TORCH_CPU 2
#define OPTIM_F32 3
#define OPTIM_COMPOSED 4
// CLUTCH_ROUNDING
#define OPTIM_NEAREST 0
#define OPTIM_STOCHASTIC 1
#define OPTIM_KAHAN 2
// CLUTCH_NORM
#define OPTIM_NORM_TWO 0  // root of the sum of squares
#define OPTIM_NORM_ONE 1  // sum of magnitudes
#define OPTIM_NORM_INF 2  // largest magnitude
// CLUTCH_SCALES
#define OPTIM_SCALES_NOT 0
#define OPTIM_SCALES_BY_FACTOR 1
#define OPTIM_SCALES_BY_INVERSE 2

CLUTCH_SHARED_BEGIN

// Bits of OptimStepArgs.flags.
enum {
  OPTIM_MAXIMIZE = 1,    // the step goes up the gradient
  OPTIM_NESTEROV = 2,    // SGD
  OPTIM_DECOUPLED = 4,   // AdamW: weight decay acts on the parameter, not on the gradient
  OPTIM_HAS_LR = 8,      // lr is read from a tensor
  OPTIM_COUNTS = 16,     // the kernel advances the counters of steps; else the caller has, one counter for each row, or in a column of the table
  OPTIM_HAS_FOUND = 32,  // found_inf is read: nothing is done where it is not 0
  OPTIM_HAS_FACTOR = 64  // grad_factor is read
};

// Course of a schedule's factor after its warmup.
enum { OPTIM_DECAY_CONSTANT, OPTIM_DECAY_LINEAR, OPTIM_DECAY_COSINE };

// Columns of optim_step's table. States follow one another from OPTIM_STATES on; after them, if there is one, comes the column of f32 weights (CLUTCH_MASTER),
// of what rounding lost (CLUTCH_ROUNDING == OPTIM_KAHAN), or of the caller's numbers of steps (CLUTCH_STEP_COLUMN).
enum { OPTIM_PARAMETER, OPTIM_GRADIENT, OPTIM_STATES };
CLUTCH_SHARED_FN clutch_i32 optim_columns(clutch_i32 states, clutch_i32 has_last) { return OPTIM_STATES + states + has_last; }

// Elements of a chunk of optim_norm. It fixes the order of summation, so it is the same on all devices.
enum { OPTIM_NORM_CHUNK = 8192 };

// Index of a chunk's first counter of steps: with OPTIM_COUNTS each chunk has one for each of `items` work-items, all of a row alike.
CLUTCH_SHARED_FN clutch_u64 optim_counter(clutch_u64 chunk, clutch_u64 items) { return chunk * items; }

// Arguments of optim_step.
typedef struct OptimStepArgs {
  clutch_u32 flags;        // OPTIM_MAXIMIZE and those that follow it
  clutch_u32 chunk_count;  // number of chunks of this launch
  clutch_u32 first_row;    // row of the group that is the first of the table
} OptimStepArgs;

// Arguments of optim_norm and optim_scale, whose tables have the gradients as their only column.
typedef struct OptimChunkArgs {
  clutch_u32 chunk_count;  // number of chunks of this launch
  clutch_u32 first_row;    // gradient of the list that is the first of the table
} OptimChunkArgs;

// Arguments of optim_norm_total.
typedef struct OptimTotalArgs {
  clutch_u32 chunk_count;  // number of chunks of all gradients
  clutch_u32 scaled;       // 1: the norm is divided by grad_scale
} OptimTotalArgs;

// Arguments of optim_norms.
typedef struct OptimNormsArgs {
  clutch_u32 tensors;
  clutch_u32 scaled;  // 1: norms are divided by grad_scale
} OptimNormsArgs;

// Arguments of optim_schedule.
typedef struct OptimScheduleArgs {
  clutch_u32 rate_count;  // number of learning rates
  clutch_i32 decay;       // OPTIM_DECAY_CONSTANT, OPTIM_DECAY_LINEAR or OPTIM_DECAY_COSINE
} OptimScheduleArgs;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::OptimStepArgs) == 12 && sizeof(clutch::detail::OptimChunkArgs) == 8);
static_assert(sizeof(clutch::detail::OptimTotalArgs) == 8 && sizeof(clutch::detail::OptimScheduleArgs) == 8);
#endif

#endif
