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

}  // namespace torch_clutch
