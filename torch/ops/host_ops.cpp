// SPDX-License-Identifier: Apache-2.0
// Ops that run on the CPU although the fallback of all others never sees them: PyTorch has kernels of them for every device, which would fail on ours.
#include "ops/table.hpp"

#include <ATen/ATen.h>

namespace torch_clutch {
namespace {

std::optional<at::Tensor> on_host(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() ? std::optional(tensor->cpu()) : std::nullopt;
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, c10::IntArrayRef stride, c10::IntArrayRef padding,
                       c10::IntArrayRef dilation, bool transposed, c10::IntArrayRef output_padding, int64_t groups) {
  note_fallback("aten::convolution_overrideable");
  return at::convolution(x.cpu(), weight.cpu(), on_host(bias), stride, padding, dilation, transposed, output_padding, groups).to(x.device());
}
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                                                    c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation,
                                                                    bool transposed, c10::IntArrayRef output_padding, int64_t groups,
                                                                    std::array<bool, 3> wanted) {
  note_fallback("aten::convolution_backward_overrideable");
  const int64_t channels = grad.size(1);
  auto [of_x, of_weight, of_bias] = at::convolution_backward(grad.cpu(), x.cpu(), weight.cpu(), at::OptionalIntArrayRef(channels), stride, padding, dilation,
                                                             transposed, output_padding, groups, wanted);
  auto back = [&](const at::Tensor& result) { return result.defined() ? result.to(x.device()) : result; };
  return {back(of_x), back(of_weight), back(of_bias)};
}

}  // namespace

void add_host_ops(OpTable& table) {
  table.family("on the host, counted as fallbacks");
  table.add<"convolution_overrideable", &convolution>("none: PyTorch's CPU kernel");
  table.add<"convolution_backward_overrideable", &convolution_backward>("none: PyTorch's CPU kernel");
  for (const char* op : {"conj_physical.out", "conj_physical_"}) table.on_cpu(op);
}

}  // namespace torch_clutch
