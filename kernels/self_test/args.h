// SPDX-License-Identifier: Apache-2.0
// Arguments of self_test.cl, written by the rules of common/shared.h.
#ifndef CLUTCH_SELF_TEST_ARGS_H
#define CLUTCH_SELF_TEST_ARGS_H
#include "common/shared.h"

CLUTCH_SHARED_BEGIN

// One member of each kind, small ones before larger ones: a driver that lays a struct by value out otherwise shows it.
typedef struct {
  clutch_u32 small;
  clutch_i64 wide;
  float real;
  clutch_u32 list[3];
  clutch_u64 wides[2];
  clutch_i32 last;
  clutch_u32 end;
} SelfTestArgs;

#define CLUTCH_SELF_TEST_WORDS 10
#define CLUTCH_SELF_TEST_CHAINS 8      // results of a sub-group of self_test_matrix_speed, to which it adds in turn
#define CLUTCH_SELF_TEST_EXCHANGES 20  // words of a lane of self_test_exchange, at most

// Member i as a number. `real` is a whole number.
CLUTCH_SHARED_FN clutch_u64 self_test_word(const SelfTestArgs args, int i) {
  return i == 0   ? args.small
         : i == 1 ? (clutch_u64)args.wide
         : i == 2 ? (clutch_u64)(clutch_i64)args.real
         : i < 6  ? args.list[i - 3]
         : i < 8  ? args.wides[i - 6]
         : i == 8 ? (clutch_u64)(clutch_i64)args.last
                  : args.end;
}

CLUTCH_SHARED_END
#endif
