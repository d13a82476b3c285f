// SPDX-License-Identifier: Apache-2.0
#include "cases/map.hpp"
#include "harness/rows.hpp"

namespace clutch::bench {

void register_map(Rows& rows);

void register_map(Rows&) {}

}  // namespace clutch::bench
