// SPDX-License-Identifier: Apache-2.0
// Values of CLUTCH_OP in reduce, rowwise (CLUTCH_TOTAL_OP0 ...), scatter and segment: the operation that combines elements. These are macros because the
// kernels' preprocessor compares them, and makes the names in common/combine.clh of CLUTCH_REDUCE_NAME_<value>.
#ifndef CLUTCH_COMMON_REDUCTIONS_H
#define CLUTCH_COMMON_REDUCTIONS_H

#define CLUTCH_REDUCE_SUM 0
#define CLUTCH_REDUCE_NAME_0 SUM
#define CLUTCH_REDUCE_PROD 1
#define CLUTCH_REDUCE_NAME_1 PROD
#define CLUTCH_REDUCE_MIN 2
#define CLUTCH_REDUCE_NAME_2 MIN
#define CLUTCH_REDUCE_MAX 3
#define CLUTCH_REDUCE_NAME_3 MAX
#define CLUTCH_REDUCE_ANY 4
#define CLUTCH_REDUCE_NAME_4 ANY
#define CLUTCH_REDUCE_ALL 5
#define CLUTCH_REDUCE_NAME_5 ALL

#endif
