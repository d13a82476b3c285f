// SPDX-License-Identifier: Apache-2.0
// Padding by mirrored or repeated elements: along each dimension elements are taken, and gradients added, at places that count as the padding says.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>

namespace torch_clutch {
namespace {

enum class Pad { reflect, repeat };

// Of each element of the padded dimension the place that it is taken from.
template <Pad kPad>
at::Tensor places(const at::Tensor& like, int64_t size, int64_t before, int64_t after) {
  at::Tensor made = at::empty({size + before + after}, like.options().dtype(at::kLong));
  apply(made, {},
        [](const In& in) {
          const Expr place = clutch::position(0) - in.n[0];
          if constexpr (kPad == Pad::reflect) return in.n[1] - clutch::abs(in.n[1] - clutch::abs(place));
          return clutch::min(clutch::max(place, 0), in.n[1]);
        },
        {before, size - 1});
  return made;
}

// Padding names the last dimension first: before and after it, then those of the one before.
template <Pad kPad>
void check(const at::Tensor& self, at::IntArrayRef padding) {
  const auto dims = static_cast<int64_t>(padding.size()) / 2;
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, "Expected ", dims + 1, "D or ", dims + 2, "D input, got ", self.sizes());
  if (self.numel() == 0) refuse("padding of nothing");
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t size = self.size(-1 - d), before = padding[static_cast<size_t>(2 * d)], after = padding[static_cast<size_t>(2 * d + 1)];
    if (before < 0 || after < 0 || size + before + after <= 0) refuse("negative padding");
    TORCH_CHECK(kPad == Pad::repeat || (before < size && after < size),
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (", before, ", ", after, ") at dimension ",
                self.dim() - 1 - d, " of input ", self.sizes());
  }
}

template <Pad kPad>
at::Tensor padded(const at::Tensor& self, at::IntArrayRef padding) {
  check<kPad>(self, padding);
  at::Tensor made = self;
  for (int64_t d = 0; d < static_cast<int64_t>(padding.size()) / 2; ++d) {
    const int64_t before = padding[static_cast<size_t>(2 * d)], after = padding[static_cast<size_t>(2 * d + 1)];
    if (before == 0 && after == 0) continue;
    made = at::index_select(made, self.dim() - 1 - d, places<kPad>(self, self.size(-1 - d), before, after));
  }
  return made.is_same(self) ? self.clone() : made;
}
template <Pad kPad>
at::Tensor& padded_out(const at::Tensor& self, at::IntArrayRef padding, at::Tensor& out) {
  const at::Tensor made = padded<kPad>(self, padding);
  return deliver(made, out);
}
template <Pad kPad>
at::Tensor padded_backward(const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef padding) {
  check<kPad>(self, padding);
  at::Tensor made = grad;
  for (int64_t d = 0; d < static_cast<int64_t>(padding.size()) / 2; ++d) {
    const int64_t before = padding[static_cast<size_t>(2 * d)], after = padding[static_cast<size_t>(2 * d + 1)];
    if (before == 0 && after == 0) continue;
    const int64_t dim = self.dim() - 1 - d;
    at::DimVector sizes(made.sizes());
    sizes[static_cast<size_t>(dim)] = self.size(dim);
    made = at::zeros(sizes, grad.options()).index_add_(dim, places<kPad>(self, self.size(dim), before, after), made);
  }
  return made.is_same(grad) ? grad.clone() : made;
}
template <Pad kPad>
at::Tensor& padded_backward_out(const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef padding, at::Tensor& out) {
  const at::Tensor made = padded_backward<kPad>(grad, self, padding);
  return deliver(made, out);
}

}  // namespace

void add_pads(OpTable& table) {
  table.family("padding");
  table.add<"reflection_pad1d.out", &padded_out<Pad::reflect>>("index_select");
  table.add<"reflection_pad1d_backward.grad_input", &padded_backward_out<Pad::reflect>>("scatter_reduce");
  table.add<"reflection_pad2d", &padded<Pad::reflect>>("index_select");
  table.add<"reflection_pad2d.out", &padded_out<Pad::reflect>>("index_select");
  table.add<"reflection_pad2d_backward", &padded_backward<Pad::reflect>>("scatter_reduce");
  table.add<"reflection_pad2d_backward.grad_input", &padded_backward_out<Pad::reflect>>("scatter_reduce");
  table.add<"reflection_pad3d.out", &padded_out<Pad::reflect>>("index_select");
  table.add<"reflection_pad3d_backward.grad_input", &padded_backward_out<Pad::reflect>>("scatter_reduce");
  table.add<"replication_pad1d.out", &padded_out<Pad::repeat>>("index_select");
  table.add<"replication_pad1d_backward.grad_input", &padded_backward_out<Pad::repeat>>("scatter_reduce");
  table.add<"replication_pad2d.out", &padded_out<Pad::repeat>>("index_select");
  table.add<"replication_pad2d_backward", &padded_backward<Pad::repeat>>("scatter_reduce");
  table.add<"replication_pad2d_backward.grad_input", &padded_backward_out<Pad::repeat>>("scatter_reduce");
  table.add<"replication_pad3d.out", &padded_out<Pad::repeat>>("index_select");
  table.add<"replication_pad3d_backward", &padded_backward<Pad::repeat>>("scatter_reduce");
  table.add<"replication_pad3d_backward.grad_input", &padded_backward_out<Pad::repeat>>("scatter_reduce");
}

}  // namespace torch_clutch
