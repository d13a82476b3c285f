// SPDX-License-Identifier: Apache-2.0
#include "cases/reduce.hpp"
#include "harness/rows.hpp"

namespace clutch::bench {

void register_reduce(Rows& rows);

void register_reduce(Rows&) {}

}  // namespace clutch::bench
