// SPDX-License-Identifier: Apache-2.0
// Mamba's state spaces by selective_scan(). The library `clutch` has what torch.clutch.selective_scan calls, on (batch, length, channels).
#include "runtime/convert.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <ATen/ATen.h>
#include <clutch/ops/selective_scan.hpp>

#include <optional>
#include <tuple>

namespace torch_clutch {
namespace {

using MaybeTensor = const std::optional<at::Tensor>&;

clutch::SelectiveScanOptions options_of(MaybeTensor skip, MaybeTensor gate, MaybeTensor delta_bias, bool delta_softplus, MaybeTensor initial_state) {
  return {.skip = wrap(skip), .gate = wrap(gate), .delta_bias = wrap(delta_bias), .delta_softplus = delta_softplus, .initial_state = wrap(initial_state)};
}

std::tuple<at::Tensor, at::Tensor> scan(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
                                        MaybeTensor skip, MaybeTensor gate, MaybeTensor delta_bias, bool delta_softplus, MaybeTensor initial_state) {
  const CurrentDevice current(x.device().index());
  return translated([&] {
    const clutch::SelectiveScanResult r =
        clutch::selective_scan(wrap(x), wrap(delta), wrap(a), wrap(b), wrap(c), options_of(skip, gate, delta_bias, delta_softplus, initial_state));
    return std::tuple(unwrap(r.y), unwrap(r.state));
  });
}

// Of x, delta, a, b, c, then of those options that are given, in their order.
std::vector<at::Tensor> scan_backward(const at::Tensor& grad, MaybeTensor grad_state, const at::Tensor& x, const at::Tensor& delta, const at::Tensor& a,
                                      const at::Tensor& b, const at::Tensor& c, MaybeTensor skip, MaybeTensor gate, MaybeTensor delta_bias, bool delta_softplus,
                                      MaybeTensor initial_state) {
  const CurrentDevice current(x.device().index());
  return translated([&] {
    const clutch::SelectiveScanGradients g = clutch::selective_scan_backward({wrap(grad), wrap(grad_state)}, wrap(x), wrap(delta), wrap(a), wrap(b), wrap(c),
                                                                             options_of(skip, gate, delta_bias, delta_softplus, initial_state));
    std::vector<at::Tensor> all;
    for (const clutch::Tensor& t : {g.x, g.delta, g.a, g.b, g.c, g.skip, g.gate, g.delta_bias, g.initial_state})
      if (t.defined()) all.push_back(unwrap(t));
    return all;
  });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(clutch, library) {
  library.def(
      "selective_scan(Tensor x, Tensor delta, Tensor a, Tensor b, Tensor c, Tensor? skip, Tensor? gate, Tensor? delta_bias, bool delta_softplus, "
      "Tensor? initial_state) -> (Tensor, Tensor)");
  library.def(
      "selective_scan_backward(Tensor grad, Tensor? grad_state, Tensor x, Tensor delta, Tensor a, Tensor b, Tensor c, Tensor? skip, Tensor? gate, "
      "Tensor? delta_bias, bool delta_softplus, Tensor? initial_state) -> Tensor[]");
}
TORCH_LIBRARY_IMPL(clutch, PrivateUse1, library) {
  library.impl("selective_scan", &scan);
  library.impl("selective_scan_backward", &scan_backward);
}

}  // namespace torch_clutch
