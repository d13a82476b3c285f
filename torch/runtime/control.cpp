// SPDX-License-Identifier: Apache-2.0
// Control flow that the device decides, for PyTorch's operators of it: branches are functions of Python's.
#include "runtime/callback.hpp"
#include "runtime/convert.hpp"
#include "runtime/device.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>
#include <clutch/control.hpp>

#include <algorithm>
#include <tuple>
#include <vector>

namespace torch_clutch { namespace {

// What a function of Python's returned first: results have its strides, which PyTorch has traced.
class Strides {
 public:
  void note(const std::vector<at::Tensor>& results) {
    if (noted_) return;
    noted_ = true;
    for (const at::Tensor& result : results) strides_.push_back(result.strides().vec());
  }
  std::vector<at::Tensor> applied(const std::vector<clutch::Tensor>& results) const {
    std::vector<at::Tensor> made;
    for (std::size_t i = 0; i < results.size(); ++i) {
      at::Tensor one = unwrap(results[i]);
      const bool same = i >= strides_.size() || one.strides() == at::IntArrayRef(strides_[i]) || one.numel() == 0;
      // One that overlaps itself stays contiguous.
      if (!same && std::find(strides_[i].begin(), strides_[i].end(), 0) == strides_[i].end())
        one = at::empty_strided(one.sizes(), strides_[i], one.options()).copy_(one);
      made.push_back(std::move(one));
    }
    return made;
  }

 private:
  bool noted_ = false;
  std::vector<std::vector<std::int64_t>> strides_;
};

std::vector<at::Tensor> unwrap_all(std::span<const clutch::Tensor> tensors) {
  std::vector<at::Tensor> made;
  made.reserve(tensors.size());
  for (const clutch::Tensor& tensor : tensors) made.push_back(unwrap(tensor));
  return made;
}

clutch::BranchFunction branch(std::int64_t function, at::TensorList operands, Strides& strides) {
  return [function, operands, &strides] {
    const WithinBranch within;
    const Called called = call_python(function, operands);
    strides.note(called.tensors);
    return wrap(called.tensors);
  };
}

std::vector<at::Tensor> cond(const at::Tensor& predicate, std::int64_t then, std::int64_t otherwise, at::TensorList operands) {
  const CurrentDevice current(predicate.device().index());
  return translated([&] {
    Strides strides;
    return strides.applied(clutch::cond(wrap(predicate), branch(then, operands, strides), branch(otherwise, operands, strides)));
  });
}

std::vector<at::Tensor> switch_(const at::Tensor& index, at::IntArrayRef functions, at::TensorList operands) {
  const CurrentDevice current(index.device().index());
  return translated([&] {
    Strides strides;
    std::vector<clutch::BranchFunction> branches;
    for (const std::int64_t function : functions) branches.push_back(branch(function, operands, strides));
    return strides.applied(clutch::switch_(wrap(index), branches));
  });
}

// Operands follow the state in the arguments of both functions, and never change. The last result: how many iterations ran.
std::tuple<std::vector<at::Tensor>, at::Tensor> while_loop(std::int64_t condition, std::int64_t body, at::TensorList state, at::TensorList operands,
                                                           std::int64_t max_iterations, std::int64_t index) {
  const CurrentDevice current(static_cast<c10::DeviceIndex>(index));
  return translated([&] {
    auto arguments = [&](std::span<const clutch::Tensor> of) {
      std::vector<at::Tensor> all = unwrap_all(of);
      all.insert(all.end(), operands.begin(), operands.end());
      return all;
    };
    const clutch::LoopResult result = clutch::while_loop(
        [&](std::span<const clutch::Tensor> of) {
          const WithinBranch within;
          return wrap(call_python(condition, arguments(of)).tensors.at(0));
        },
        [&](std::span<const clutch::Tensor> of) {
          const WithinBranch within;
          return wrap(call_python(body, arguments(of)).tensors);
        },
        wrap(state), {.max_iterations = max_iterations});
    return std::tuple(unwrap_all(result.state), unwrap(result.iterations));
  });
}

}}  // namespace torch_clutch

TORCH_LIBRARY_FRAGMENT(clutch, library) {
  library.def("cond(Tensor predicate, int then, int otherwise, Tensor[] operands) -> Tensor[]", &torch_clutch::cond);
  library.def("switch_(Tensor index, int[] functions, Tensor[] operands) -> Tensor[]", &torch_clutch::switch_);
  library.def("while_loop(int condition, int body, Tensor[] state, Tensor[] operands, int max_iterations, int index) -> (Tensor[], Tensor)",
              &torch_clutch::while_loop);
}
