// SPDX-License-Identifier: Apache-2.0
// The shape of an element-wise launch: sizes, their divisors (common/reciprocal.h), then the strides of each operand, the output's first; each is a vector of
// CLUTCH_SHAPE_LANES longs, dimension 0 innermost. The last dimension has no divisor. These are macros because kernels declare arrays and vectors of them.
#ifndef CLUTCH_COMMON_SHAPE_H
#define CLUTCH_COMMON_SHAPE_H

#define CLUTCH_SHAPE_LANES 16
#define CLUTCH_SHAPE_MOST_RANK 12
#define CLUTCH_SHAPE_RANK (CLUTCH_SHAPE_LANES - 1)  // the lane of the sizes that holds the rank
// Lanes of kernels that walk over units, parts of rows that an item takes at once, but for CPUs' text: units of a row, and of all rows.
#define CLUTCH_SHAPE_UNITS (CLUTCH_SHAPE_LANES - 2)
#define CLUTCH_SHAPE_ALL_UNITS (CLUTCH_SHAPE_LANES - 3)
// Units of a tile: eight for each item of a group that has a quarter of them.
#define CLUTCH_UNITS_OF_TILE(tile) ((tile) / 4)

#endif
