// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/rowwise.cpp and the kernels of rowwise.
#ifndef CLUTCH_ROWWISE_ARGS_H
#define CLUTCH_ROWWISE_ARGS_H

#include "common/shared.h"

// Most totals of a row. A kernel's array of totals has one more element, the last: the row's length. As the number of a total it says that there is none
// (CLUTCH_KEPT, CLUTCH_FETCH_IN). A macro since the kernels' preprocessor compares it.
#define ROWWISE_TOTALS 4

// Lanes of the vector that holds each operand's stride along a row.
#define ROWWISE_INNER_LANES 16

// Bits of rowwise_rows' argument `flags`: element outputs are stored past the caches; elements may be stored during the next row.
#define ROWWISE_STREAMS 1
#define ROWWISE_LATE 2

// rowwise_items: elements of a row at most.
#define ROWWISE_ITEM_ELEMENTS 64
// Items of a group of those that load and store short rows together.
#define ROWWISE_ALONG_ITEMS 64

// rowwise_columns: vectors of rows side by side that an item takes at most, and vectors of them, one for each element, that stay in a core's caches.
#define ROWWISE_ABREAST 4
#define ROWWISE_KEPT 4096

CLUTCH_SHARED_BEGIN

// rowwise_columns: vectors side by side, of rows of m elements.
CLUTCH_SHARED_FN clutch_u64 rowwise_abreast(clutch_u64 m) { return m * ROWWISE_ABREAST <= ROWWISE_KEPT ? ROWWISE_ABREAST : ROWWISE_KEPT / m; }
// Panels of so many vectors that cover all whole vectors of `columns` rows; what is left is one, too.
CLUTCH_SHARED_FN clutch_u64 rowwise_panels(clutch_u64 columns, clutch_u64 width, clutch_u64 m) {
  return (columns / width + rowwise_abreast(m) - 1) / rowwise_abreast(m) + (columns % width > 0 ? 1 : 0);
}

CLUTCH_SHARED_END

#endif
