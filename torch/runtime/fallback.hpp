// SPDX-License-Identifier: Apache-2.0
// Ops that PyTorch's CPU kernels compute: counted by name, and forbidden by CLUTCH_STRICT=host or torch.clutch.forbid_fallbacks().
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <map>
#include <string>

namespace torch_clutch {

/// What to count and say: how often each op ran on the CPU, and why where a kernel of clutch's refused.
struct FallbackCount {
  std::int64_t calls = 0;
  std::string why;
};
std::map<std::string, FallbackCount> fallbacks();
void reset_fallbacks();
bool fallbacks_allowed();
void allow_fallbacks(bool allowed);

/// Counts a fallback. Errors: NotImplementedError, naming the op, where fallbacks are forbidden or a graph is being captured.
void note_fallback(const std::string& op, const std::string& why = {});

/// Computes an op on the CPU: inputs are copied there, results back. Generators of clutch's seed one of the CPU's.
void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);
/// The same for a kernel that has refused, without counting.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace torch_clutch
