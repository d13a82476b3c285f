// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/segment.cpp and the kernels of segment.
#ifndef CLUTCH_SEGMENT_ARGS_H
#define CLUTCH_SEGMENT_ARGS_H

#include "common/shared.h"

// Values of build options, macros since #if compares them. segment_plan.hpp holds the host's enum to them.
// CLUTCH_SELF: how a reduction uses `self`, a row for each segment
#define SEGMENT_SELF_NONE 0     // not at all
#define SEGMENT_SELF_BEGIN 1    // initial values of accumulators, which means count
#define SEGMENT_SELF_EMPTY 2    // results of empty segments
#define SEGMENT_SELF_INITIAL 3  // initial values of accumulators, which means do not count
// CLUTCH_ROUND: what results were rounded to (segment_first)
#define SEGMENT_ROUND_NOT 0  // T
#define SEGMENT_ROUND_F16 1
#define SEGMENT_ROUND_BF16 2

#define SEGMENT_ABREAST 4  // vectors of features that a work-item reduces at the same time: a panel
// Work-items of a group of segment_dot_groups, and those that share an entry.
#define SEGMENT_DOT_ITEMS 128
#define SEGMENT_DOT_TEAM 4

CLUTCH_SHARED_BEGIN

// Arguments of all kernels of segment; each reads those that it needs. Strides are in elements.
typedef struct SegmentArgs {
  clutch_u64 n;            // segments
  clutch_u64 features;     // elements of a row
  clutch_u64 entries;      // entries of all segments
  clutch_u64 data_rows;    // rows of data; a column outside of them has none
  clutch_u64 chunk;        // segments, or panels of them, that a work-item takes at a time
  clutch_i64 out_stride;   // from a row of out to the next
  clutch_i64 out_inner;    // from a feature of out to the next
  clutch_i64 data_stride;  // from a row of data to the next
  clutch_i64 data_inner;   // from a feature of data to the next
  clutch_i64 self_stride;  // from a row of self to the next
  clutch_i64 self_inner;   // from a feature of self to the next
  clutch_i64 x_stride;     // of segment_dots: from a row of x to the next
  float empty;             // result of a segment without entries
  float missing;           // result of a segment with a column that no row of data has, or that takes too long
} SegmentArgs;

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::SegmentArgs) == 104);
#endif

#endif
