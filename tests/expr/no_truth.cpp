// SPDX-License-Identifier: Apache-2.0
// What must not compile, and say why: CMake compiles this with one of the cases defined.
#include <clutch/expr.hpp>

clutch::Expr traced(clutch::Expr x, clutch::Expr y) {
#if defined(CASE_IF)
  if (x < y) return x;
#elif defined(CASE_TERNARY)
  return x < y ? x : y;
#elif defined(CASE_AND)
  return (x < y) && (y < 1);
#elif defined(CASE_OR)
  return (x < y) || true;
#elif defined(CASE_WHILE)
  while (x) x = x - 1;
#endif
  return clutch::select(x < y, x, y);
}
