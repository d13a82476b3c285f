// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls of stated shapes: scripts/gpu-cost --calls estimates them, and gpu_plans_test plans them, so that tests/gpu/budget.tsv has their kernels.
#include <clutch/clutch.hpp>

#include <functional>
#include <string>
#include <vector>

namespace clutch::testing {

struct Stated {
  std::string name;
  /// Work and operands at a size; operands are made outside of what is counted.
  std::function<double(std::int64_t)> work;
  std::function<std::function<void()>(std::int64_t)> prepare;
  std::int64_t size;
  std::vector<std::int64_t> small;  ///< two sizes of the same work for each item or trip
  double useful = 1;                ///< share of the operations that the op counts which the roofline counts
};

/// True if launches are counted on a simulator, so that operands have values and first calls of a process are made before.
bool counted();

std::vector<Stated> stated_calls(const Device& d);

}  // namespace clutch::testing
