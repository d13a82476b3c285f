// SPDX-License-Identifier: Apache-2.0
// Types and macros of kernels/<stem>/args.h: headers that C++20 and OpenCL C both compile, so that host and kernel have one declaration of a kernel's
// arguments, of its scratch memory and of its enums.
//   CLUTCH_SHARED_BEGIN ... CLUTCH_SHARED_END   around all declarations (a namespace in C++)
//   i32, u32, i64, u64 with the prefix clutch_   members of structs have these types, float, double or vectors' scalars alone: both sides lay them out alike
//                                                if each member is aligned to its own size and the struct's size is a multiple of its largest member
//   CLUTCH_SHARED_FN                             before a function: constexpr in C++, static inline in OpenCL C; of numbers alone
// A kernel takes its struct by CLUTCH_ARGS(Type, args) as a parameter, and has `args` behind CLUTCH_TAKE_ARGS(Type, args). The host binds it by bind_args()
// (host/encode/args.hpp). It goes by value, or in memory (CLUTCH_ARGS_IN_MEMORY) where the self-test shows that the driver lays structs out differently.
#ifndef CLUTCH_COMMON_SHARED_H
#define CLUTCH_COMMON_SHARED_H

#ifdef __OPENCL_VERSION__
typedef int clutch_i32;
typedef uint clutch_u32;
typedef long clutch_i64;
typedef ulong clutch_u64;
#define CLUTCH_SHARED_BEGIN
#define CLUTCH_SHARED_END
#define CLUTCH_SHARED_FN static inline
#ifdef CLUTCH_ARGS_IN_MEMORY
#define CLUTCH_ARGS(Type, name) __global const uchar *name##_base, ulong name##_offset
#define CLUTCH_TAKE_ARGS(Type, name) const Type name = *(__global const Type*)(name##_base + name##_offset);
#else
#define CLUTCH_ARGS(Type, name) const Type name
#define CLUTCH_TAKE_ARGS(Type, name)
#endif
#else
#include <cstdint>
#define CLUTCH_SHARED_BEGIN \
  namespace clutch {        \
  inline namespace v0 {     \
  namespace detail {
#define CLUTCH_SHARED_END \
  }                       \
  }                       \
  }
#define CLUTCH_SHARED_FN constexpr
CLUTCH_SHARED_BEGIN
using clutch_i32 = std::int32_t;
using clutch_u32 = std::uint32_t;
using clutch_i64 = std::int64_t;
using clutch_u64 = std::uint64_t;
CLUTCH_SHARED_END
#endif

#endif
