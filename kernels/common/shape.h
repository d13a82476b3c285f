// SPDX-License-Identifier: Apache-2.0
// The shape of an element-wise launch: sizes, then the strides of each operand, the output's first; each is a vector of CLUTCH_SHAPE_LANES longs, dimension 0
// innermost. These are macros because kernels declare arrays and vectors of them.
#ifndef CLUTCH_COMMON_SHAPE_H
#define CLUTCH_COMMON_SHAPE_H

#define CLUTCH_SHAPE_LANES 16
#define CLUTCH_SHAPE_MOST_RANK 12
#define CLUTCH_SHAPE_RANK (CLUTCH_SHAPE_LANES - 1)  // the lane of the sizes that holds the rank

#endif
