// SPDX-License-Identifier: Apache-2.0
// cross_entropy_loss in one launch each way, where PyTorch has log_softmax, nll_loss and their gradients. The library `clutch` has both, so that compiled
// functions see them.
#include "ops/table.hpp"
#include "runtime/convert.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cross_entropy_loss_native.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <clutch/nn.hpp>

#include <optional>
#include <tuple>

namespace torch_clutch {
namespace {

using MaybeTensor = const std::optional<at::Tensor>&;
using Found = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // the loss, each row's largest logit, each row's logarithm of sums
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int64_t class_dim(const at::Tensor& logits) { return logits.dim() == 1 ? 0 : 1; }

clutch::nn::CrossEntropyOptions options_of(MaybeTensor weight, int64_t reduction, int64_t ignored, double smoothing) {
  const auto kind = reduction == at::Reduction::None   ? clutch::nn::Reduction::none
                    : reduction == at::Reduction::Mean ? clutch::nn::Reduction::mean
                                                       : clutch::nn::Reduction::sum;
  return {.weight = wrap(weight), .ignore_index = ignored, .reduction = kind, .label_smoothing = smoothing};
}

Found forward(const at::Tensor& logits, const at::Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignored, double smoothing) {
  const CurrentDevice current(logits.device().index());
  return translated([&] {
    const clutch::nn::CrossEntropyResult found = clutch::nn::cross_entropy(wrap(logits), wrap(target), options_of(weight, reduction, ignored, smoothing));
    return Found(unwrap(found.loss), unwrap(found.max), unwrap(found.log_sum));
  });
}

at::Tensor backward(const at::Tensor& grad, const at::Tensor& logits, const at::Tensor& target, const at::Tensor& max, const at::Tensor& log_sum,
                    MaybeTensor weight, int64_t reduction, int64_t ignored, double smoothing) {
  const CurrentDevice current(logits.device().index());
  return translated([&] {
    return unwrap(clutch::nn::cross_entropy_backward(wrap(grad), wrap(logits), wrap(target), {.max = wrap(max), .log_sum = wrap(log_sum)},
                                                     options_of(weight, reduction, ignored, smoothing)));
  });
}

Found forward_meta(const at::Tensor& logits, const at::Tensor& target, MaybeTensor, int64_t reduction, int64_t, double) {
  std::vector<c10::SymInt> rows(logits.sym_sizes().begin(), logits.sym_sizes().end()), losses = rows;
  rows[static_cast<size_t>(class_dim(logits))] = 1;
  losses.erase(losses.begin() + class_dim(logits));
  if (reduction != at::Reduction::None) losses.clear();
  const auto kept = logits.options().dtype(logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  return {at::empty_symint(losses, logits.options()), at::empty_symint(rows, kept), at::empty_symint(rows, kept)};
}
at::Tensor backward_meta(const at::Tensor&, const at::Tensor& logits, const at::Tensor&, const at::Tensor&, const at::Tensor&, MaybeTensor, int64_t, int64_t,
                         double) {
  return at::empty_symint(logits.sym_sizes(), logits.options());
}

Found call_forward(const at::Tensor& logits, const at::Tensor& target, MaybeTensor weight, int64_t reduction, int64_t ignored, double smoothing) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("clutch::cross_entropy", "").typed<decltype(forward)>();
  return op.call(logits, target, weight, reduction, ignored, smoothing);
}

// PyTorch's own formula, of which everything can be derived.
at::Tensor composed(const at::Tensor& logits, const at::Tensor& target, MaybeTensor weight, int64_t reduction, c10::SymInt ignored, double smoothing) {
  return at::native::cross_entropy_loss_symint(logits, target, weight, reduction, std::move(ignored), smoothing);
}

class CrossEntropy : public torch::autograd::Function<CrossEntropy> {
 public:
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& target, MaybeTensor weight, int64_t reduction,
                            int64_t ignored, double smoothing) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [loss, max, log_sum] = call_forward(logits, target, weight, reduction, ignored, smoothing);
    context->save_for_backward({logits, target, weight.value_or(at::Tensor()), max, log_sum});
    context->saved_data["reduction"] = reduction;
    context->saved_data["ignored"] = ignored;
    context->saved_data["smoothing"] = smoothing;
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const std::optional<at::Tensor> weight = saved[2].defined() ? std::optional(saved[2]) : std::nullopt;
    const int64_t reduction = context->saved_data["reduction"].toInt(), ignored = context->saved_data["ignored"].toInt();
    const double smoothing = context->saved_data["smoothing"].toDouble();
    at::Tensor found;
    if (at::GradMode::is_enabled()) {  // a gradient of the gradient is asked for
      const at::Tensor loss = composed(saved[0], saved[1], weight, reduction, ignored, smoothing);
      found = torch::autograd::grad({loss}, {saved[0]}, {grads[0]}, true, true)[0];
    } else {
      static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("clutch::cross_entropy_backward", "").typed<decltype(torch_clutch::backward)>();
      found = op.call(grads[0].contiguous(), saved[0], saved[1], saved[3], saved[4], weight, reduction, ignored, smoothing);
    }
    return {found, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

// vmap, grad and the like derive PyTorch's formula.
bool transformed() {
  const c10::DispatchKeySet included = c10::impl::tls_local_dispatch_key_set().included_;
  return included.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) || included.has(c10::DispatchKey::FuncTorchDynamicLayerBackMode);
}

bool in_one_launch(const at::Tensor& logits, const at::Tensor& target, MaybeTensor weight, double smoothing) {
  if (logits.layout() != at::kStrided || logits.dim() < 1 || logits.dim() > clutch::kMaxRank || !at::isFloatingType(logits.scalar_type())) return false;
  if (logits.device().type() != kDevice || target.device() != logits.device() || logits._fw_grad(0).defined() || smoothing < 0 || smoothing > 1) return false;
  if (transformed() || logits.sym_numel() == 0) return false;
  if (weight.has_value() && weight->defined() &&
      (weight->requires_grad() || weight->device() != logits.device() || weight->scalar_type() != logits.scalar_type() || weight->dim() != 1 ||
       weight->sym_size(0) != logits.sym_size(class_dim(logits))))
    return false;
  if (target.sym_sizes() == logits.sym_sizes()) return target.scalar_type() == logits.scalar_type() && !target.requires_grad();  // probabilities
  if (target.scalar_type() != at::kLong || target.dim() != logits.dim() - 1) return false;
  for (int64_t d = 0; d < target.dim(); ++d)
    if (target.sym_size(d) != logits.sym_size(d < class_dim(logits) ? d : d + 1)) return false;
  return true;
}

at::Tensor cross_entropy_loss(const at::Tensor& logits, const at::Tensor& target, MaybeTensor weight, int64_t reduction, c10::SymInt ignored,
                              double smoothing) {
  if (!in_one_launch(logits, target, weight, smoothing)) return composed(logits, target, weight, reduction, std::move(ignored), smoothing);
  const int64_t index = ignored.guard_int(__FILE__, __LINE__);
  if (at::GradMode::is_enabled() && logits.requires_grad()) return CrossEntropy::apply(logits, target, weight, reduction, index, smoothing);
  const at::AutoDispatchBelowADInplaceOrView below;
  return std::get<0>(call_forward(logits, target, weight, reduction, index, smoothing));
}

}  // namespace

void add_cross_entropy(OpTable& table) {
  table.family("losses");
  table.add<"cross_entropy_loss", &cross_entropy_loss>("cross_entropy");
}

TORCH_LIBRARY_FRAGMENT(clutch, library) {
  library.def(
      "cross_entropy(Tensor logits, Tensor target, Tensor? weight, int reduction, int ignore_index, float label_smoothing) -> (Tensor loss, Tensor max, "
      "Tensor log_sum)");
  library.def(
      "cross_entropy_backward(Tensor grad, Tensor logits, Tensor target, Tensor max, Tensor log_sum, Tensor? weight, int reduction, int ignore_index, float "
      "label_smoothing) -> Tensor");
}
TORCH_LIBRARY_IMPL(clutch, PrivateUse1, library) {
  library.impl("cross_entropy", &forward);
  library.impl("cross_entropy_backward", &backward);
}
TORCH_LIBRARY_IMPL(clutch, Meta, library) {
  library.impl("cross_entropy", &forward_meta);
  library.impl("cross_entropy_backward", &backward_meta);
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library) { library.impl("cross_entropy_loss", &cross_entropy_loss); }

}  // namespace torch_clutch
