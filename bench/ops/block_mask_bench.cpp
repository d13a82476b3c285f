// SPDX-License-Identifier: Apache-2.0
#include "harness/rows.hpp"
namespace clutch::bench {
void register_block_mask(Rows& rows);
void register_block_mask(Rows&) {}
}  // namespace clutch::bench
