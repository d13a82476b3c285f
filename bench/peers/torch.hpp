// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/bench.hpp"

#include <string>

namespace clutch::bench {

/// PyTorch as a peer, in a process of its own that CLUTCH_PEER_PYTHON runs and that is spoken to over pipes, so that its samples
/// interleave with ours; it uses CUDA where it has it and our device is a GPU, else the CPU with all its threads. `setup` and
/// `call` are Python: setup sees `torch` and `device`, call is one statement. Adds nothing if CLUTCH_PEER_PYTHON is not set.
/// `what` follows its name, where a row has several. Errors: io if the process cannot be run or PyTorch refuses.
void add_torch_peer(Work& work, const Device& device, const std::string& setup, const std::string& call, const std::string& what = {});

/// "torch.float32" for f32.
std::string torch_dtype(DType dtype);

}  // namespace clutch::bench
