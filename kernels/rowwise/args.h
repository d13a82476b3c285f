// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/rowwise.cpp and the kernels of rowwise.
#ifndef CLUTCH_ROWWISE_ARGS_H
#define CLUTCH_ROWWISE_ARGS_H

// Most totals of a row. A kernel's array of totals has one more element, the last: the row's length. As the number of a total it says that there is none
// (CLUTCH_KEPT, CLUTCH_FETCH_IN). A macro since the kernels' preprocessor compares it.
#define ROWWISE_TOTALS 4

// Lanes of the vector that holds each operand's stride along a row.
#define ROWWISE_INNER_LANES 16

// Bits of rowwise_rows' argument `flags`: element outputs are stored past the caches; elements may be stored during the next row.
#define ROWWISE_STREAMS 1
#define ROWWISE_LATE 2

#endif
