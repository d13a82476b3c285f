// SPDX-License-Identifier: Apache-2.0
// The one table of ops: which aten op is which function of clutch. Registrations are made from it, and torch.clutch.ops() prints it.
#pragma once
#include "runtime/convert.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/fallback.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <torch/library.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace torch_clutch {

/// Text as an argument of a template.
template <std::size_t kSize>
struct Name {
  char text[kSize];
  consteval Name(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }  // NOLINT(google-explicit-constructor)
};

namespace detail {

inline void device_of(c10::DeviceIndex& found, const at::Tensor& tensor) {
  if (found < 0 && tensor.defined() && tensor.device().type() == kDevice) found = tensor.device().index();
}
inline void device_of(c10::DeviceIndex& found, const std::optional<at::Tensor>& tensor) {
  if (tensor.has_value()) device_of(found, *tensor);
}
inline void device_of(c10::DeviceIndex& found, at::TensorList tensors) {
  for (const at::Tensor& tensor : tensors) device_of(found, tensor);
}
inline void device_of(c10::DeviceIndex& found, const at::ITensorListRef& tensors) {
  for (const at::Tensor& tensor : tensors) device_of(found, tensor);
}
template <class Other>
void device_of(c10::DeviceIndex&, const Other&) {}

/// Ops that write no elements, or each of a tensor's the same, or see to it themselves (shared_elements.hpp).
constexpr bool may_share(std::string_view name) {
  return name.starts_with("set_") || name.starts_with("fill_.") || name == "zero_" || name.starts_with("masked_fill_.") || name.starts_with("index_fill_.") ||
         name == "_index_put_impl_" || name == "threshold.out";
}

/// Whether an op changes the tensors of its lists, too.
constexpr bool changes_lists(std::string_view name) { return name.substr(0, name.find('.')).ends_with('_'); }

/// Prepares what a kernel writes: refuses a tensor of which elements share memory, gives a lazy clone memory of its own.
template <Name kName, class Argument, class Given>
void prepare_written(const Given& given) {
  if constexpr (std::is_same_v<Argument, at::Tensor&>) {
    if (!given.defined() || given.layout() != at::kStrided) return;
    if (!may_share(kName.text)) at::assert_no_internal_overlap(given);
    own_memory(given);
  } else if constexpr (std::is_same_v<Given, at::TensorList> && changes_lists(kName.text)) {
    for (const at::Tensor& tensor : given) own_memory(tensor);
  }
}

}  // namespace detail

/// A kernel as PyTorch calls it: on its tensors' device, and by the CPU where it refuses.
template <Name kName, auto kFunction, class Type = decltype(kFunction)>
struct Kernel;
template <Name kName, auto kFunction, class Result, class... Arguments>
struct Kernel<kName, kFunction, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    c10::DeviceIndex index = -1;
    (detail::device_of(index, arguments), ...);
    const CurrentDevice current(index);
    (detail::prepare_written<kName, Arguments>(arguments), ...);
    std::string why;
    try {
      return kFunction(arguments...);
    } catch (const Refusal& refusal) {
      why = refusal.what();
    } catch (const clutch::Error& error) {
      if (!is_refusal(error)) rethrow(error);
      why = error.what();
    }
    const std::string_view name = kName.text;
    const std::size_t dot = name.find('.');
    const std::string base = "aten::" + std::string(name.substr(0, dot));
    const std::string overload(dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1));
    note_fallback("aten::" + std::string(name), why);
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(), overload.c_str());
    return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(c10::BoxedKernel::makeFromFunction<&run_on_cpu>(), op, c10::DispatchKeySet(),
                                                                     arguments...);
  }
};

struct OpRow {
  std::string_view aten, clutch, family;
};

class OpTable {
 public:
  explicit OpTable(torch::Library& library) : library_(library) {}
  /// The rows that follow belong to it.
  void family(std::string_view name) { family_ = name; }
  /// One op: its name and overload, the kernel, and what of clutch computes it.
  template <Name kName, auto kFunction>
  void add(std::string_view clutch) {
    using Called = Kernel<kName, kFunction>;
    rows().push_back({kName.text, clutch, family_});
    library_.impl(kName.text, torch::CppFunction(TORCH_FN(Called::call)));
  }

  static std::vector<OpRow>& rows();

 private:
  torch::Library& library_;
  std::string_view family_;
};

// The families, each with the kernels of its file.
void add_views(OpTable& table);
void add_copies(OpTable& table);
void add_factories(OpTable& table);
void add_arithmetic(OpTable& table);
void add_comparisons(OpTable& table);
void add_functions(OpTable& table);
void add_activations(OpTable& table);
void add_reductions(OpTable& table);
void add_rows(OpTable& table);
void add_batch_norms(OpTable& table);
void add_products(OpTable& table);
void add_indexing(OpTable& table);
void add_advanced_indexing(OpTable& table);
void add_scatters(OpTable& table);
void add_sorting(OpTable& table);
void add_pads(OpTable& table);
void add_losses(OpTable& table);
void add_cross_entropy(OpTable& table);
void add_random(OpTable& table);
void add_attention(OpTable& table);
void add_encoders(OpTable& table);
void add_linear_algebra(OpTable& table);
void add_recurrent(OpTable& table);
void add_optimizers(OpTable& table);
void add_convolutions(OpTable& table);

}  // namespace torch_clutch
