// SPDX-License-Identifier: Apache-2.0
#include "runtime/callback.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace torch_clutch {

int& WithinBranch::depth() {
  thread_local int now = 0;
  return now;
}

Called call_python(std::int64_t function, at::TensorList tensors) {
  static const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow("clutch::call_python", "");
  torch::jit::Stack stack;
  stack.emplace_back(function);
  stack.emplace_back(tensors.vec());
  op.callBoxed(stack);
  return {stack.at(0).toTensorVector(), stack.at(1).toInt()};
}

}  // namespace torch_clutch

TORCH_LIBRARY_FRAGMENT(clutch, library) { library.def("call_python(int function, Tensor[] tensors) -> (Tensor[], int)"); }
