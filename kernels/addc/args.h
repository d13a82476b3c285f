// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/addc.cpp and the kernels of addc: values of build options, macros since #if compares them. addc_plan.hpp and addc.cpp hold the host's
// enums to them.
#ifndef CLUTCH_ADDC_ARGS_H
#define CLUTCH_ADDC_ARGS_H

// CLUTCH_OP
#define ADDC_QUOTIENT 0
#define ADDC_PRODUCT 1
// CLUTCH_ORDER: the order of roundings (include/clutch/ops/addc.hpp, AddcOrder)
#define ADDC_FMA_OF_QUOTIENT 0
#define ADDC_PRODUCT_FIRST 1
#define ADDC_UNFUSED 2

#endif
