// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/copy.cpp and the kernels of copy.
#ifndef CLUTCH_COPY_ARGS_H
#define CLUTCH_COPY_ARGS_H

// CLUTCH_S_KIND and CLUTCH_D_KIND: what the source's and the destination's numbers are computed in. These are macros because the kernels' preprocessor
// compares them.
#define COPY_KIND_F32 0       // float
#define COPY_KIND_F64 1       // double
#define COPY_KIND_INTEGER 2   // long: integers and booleans
#define COPY_KIND_UNSIGNED 3  // ulong: u64

// Rows and columns of the squares of copy_transposed.
#define COPY_SQUARE 32

#endif
