// SPDX-License-Identifier: Apache-2.0
#include "harness/rows.hpp"
namespace clutch::bench {
void register_flex(Rows& rows);
void register_flex(Rows&) {}
}  // namespace clutch::bench
