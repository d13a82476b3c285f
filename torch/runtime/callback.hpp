// SPDX-License-Identifier: Apache-2.0
// Functions of Python's that the extension calls: by the op clutch::call_python, which the package implements, so that one library serves every Python.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace torch_clutch {

struct Called {
  std::vector<at::Tensor> tensors;
  std::int64_t rest = 0;  ///< what Python calls the results that are no tensors
};

/// Calls the function that has this number. Its exceptions pass through.
Called call_python(std::int64_t function, at::TensorList tensors);

/// While it lives this thread enqueues a branch of control flow, in which no op can run on the CPU: its numbers may not be there.
class WithinBranch {
 public:
  WithinBranch() { ++depth(); }
  ~WithinBranch() { --depth(); }
  WithinBranch(const WithinBranch&) = delete;
  WithinBranch& operator=(const WithinBranch&) = delete;
  static bool is_there() { return depth() > 0; }

 private:
  static int& depth();
};

}  // namespace torch_clutch
