// SPDX-License-Identifier: Apache-2.0
// Values of CLUTCH_DIV_RN, CLUTCH_SQRT_RN and CLUTCH_FMA_RN: how common/math.clh rounds correctly. These are macros because the kernels' preprocessor compares
// them.
#ifndef CLUTCH_COMMON_ROUNDING_H
#define CLUTCH_COMMON_ROUNDING_H

#define CLUTCH_RN_NATIVE 0       // the device's own operation
#define CLUTCH_RN_BY_F64 1       // emulated in double
#define CLUTCH_RN_BY_INTEGERS 2  // emulated by integers

#endif
