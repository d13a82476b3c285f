// SPDX-License-Identifier: Apache-2.0
// Ops that run on the CPU although the fallback of all others never sees them: PyTorch has kernels of them for every device, which would fail on ours.
#include "ops/table.hpp"

namespace torch_clutch {

void add_host_ops(OpTable& table) {
  for (const char* op : {"conj_physical.out", "conj_physical_"}) table.on_cpu(op);
}

}  // namespace torch_clutch
