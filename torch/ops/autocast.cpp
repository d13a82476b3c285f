// SPDX-License-Identifier: Apache-2.0
// torch.autocast("clutch"): PyTorch's own lists for accelerators of which ops run in the lower precision and which in f32.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {

// Its logarithms of what f16 rounds to 0 or 1 have no use.
static Tensor refused_binary_cross_entropy(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Use binary_cross_entropy_with_logits or "
              "BCEWithLogitsLoss, which are safe, or disable autocast around the loss");
}

// Ops of no list run in the dtypes that they get.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) { library.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define SINGLE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define SINGLE_UNLESS_SET(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PROMOTED(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(SINGLE)
  AT_FORALL_FP32_SET_OPT_DTYPE(SINGLE_UNLESS_SET)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(PROMOTED)
  // One op here, two of these lists as PyTorch composes it.
  SINGLE(cross_entropy_loss)
  m.impl("binary_cross_entropy", &refused_binary_cross_entropy);
#undef LOWER
#undef SINGLE
#undef SINGLE_UNLESS_SET
#undef PROMOTED
}

}  // namespace at::autocast
