// SPDX-License-Identifier: Apache-2.0
#include "harness/rows.hpp"
namespace clutch::bench {
void register_rowwise(Rows& rows);
void register_rowwise(Rows&) {}
}  // namespace clutch::bench
