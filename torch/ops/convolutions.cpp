// SPDX-License-Identifier: Apache-2.0
// Convolutions of 1 to 3 dimensions as products: each window of the input, a view that is copied once, is a column of a matrix.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <clutch/ops/matmul.hpp>

namespace torch_clutch {
namespace {

/// What a convolution of x (N, C, L...) with a weight (M, C / groups, K...) to y (N, M, O...) is made of. A transposed one has x and y exchanged.
struct Windows {
  c10::IntArrayRef stride, padding, dilation;
  int64_t groups;
  at::DimVector kernel;  ///< K...

  Windows(const at::Tensor& weight, c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation, int64_t groups)
      : stride(stride), padding(padding), dilation(dilation), groups(groups), kernel(weight.sizes().slice(2)) {}

  int64_t points() const { return c10::multiply_integers(kernel); }
  /// Each element of x is one window, whose only element it is.
  bool plain() const {
    auto all = [](c10::IntArrayRef values, int64_t wanted) { return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; }); };
    return all(kernel, 1) && all(stride, 1) && all(padding, 0);
  }
  /// No element of x is in two windows.
  bool apart() const {
    for (size_t d = 0; d < kernel.size(); ++d)
      if (kernel[d] > 1 && stride[d] < dilation[d] * (kernel[d] - 1) + 1) return false;
    return true;
  }
  at::DimVector padded_sizes(c10::IntArrayRef x) const {
    at::DimVector sizes(x);
    for (size_t d = 0; d < kernel.size(); ++d) sizes[d + 2] += 2 * padding[d];
    return sizes;
  }
  at::Tensor inner(const at::Tensor& padded, c10::IntArrayRef x) const {
    at::Tensor part = padded;
    for (size_t d = 0; d < kernel.size(); ++d) part = part.narrow(static_cast<int64_t>(d) + 2, padding[d], x[d + 2]);
    return part;
  }
  at::Tensor padded(const at::Tensor& x) const {
    if (std::all_of(padding.begin(), padding.end(), [](int64_t p) { return p == 0; })) return x;
    at::Tensor made = at::zeros(padded_sizes(x.sizes()), x.options());
    inner(made, x.sizes()).copy_(x);
    return made;
  }
  /// The view (N, C, K..., O...) of a padded x.
  at::Tensor view(const at::Tensor& x, c10::IntArrayRef y) const {
    at::DimVector sizes{x.size(0), x.size(1)}, strides{x.stride(0), x.stride(1)};
    for (size_t d = 0; d < kernel.size(); ++d) sizes.push_back(kernel[d]), strides.push_back(x.stride(static_cast<int64_t>(d) + 2) * dilation[d]);
    for (size_t d = 0; d < kernel.size(); ++d) sizes.push_back(y[d + 2]), strides.push_back(x.stride(static_cast<int64_t>(d) + 2) * stride[d]);
    return x.as_strided(sizes, strides, x.storage_offset());
  }
};

int64_t places(const at::Tensor& y) { return c10::multiply_integers(y.sizes().slice(2)); }

// y, which has its sizes, = weight * x + bias.
void convolve(const at::Tensor& y, const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, const Windows& w) {
  const int64_t n = x.size(0), each = w.groups, depth = x.size(1) / each * w.points();
  const at::Tensor columns = w.plain() ? x.contiguous() : w.view(w.padded(x), y.sizes()).contiguous();
  const clutch::Tensor out = wrap(y.view({n, each, y.size(1) / each, places(y)})), b = wrap(columns.view({n, each, depth, places(y)})),
                       a = wrap(weight.contiguous().view({1, each, y.size(1) / each, depth}));
  if (!bias.has_value() || !bias->defined()) return clutch::linalg::matmul_out(out, a, b, {});
  const clutch::Tensor added = wrap(bias->contiguous().view({1, each, y.size(1) / each, 1}).expand({n, each, y.size(1) / each, places(y)}));
  const clutch::DType made = clutch::linalg::product_dtype(a.dtype(), b.dtype());
  const clutch::Tensor shapes[] = {clutch::Tensor(added.storage(), added.byte_offset(), {1}, {1}, made), added};
  clutch::linalg::matmul_out(out, a, b, traced([](const In& in) { return in.x[0] + in.x[1]; }, shapes), std::span(&added, 1), {});
}

// What each element of an x of these sizes gives to y, backwards: the sum over the windows that it is in. Sums of windows that overlap are f32 at least.
at::Tensor convolve_back(const at::Tensor& y, const at::Tensor& weight, c10::IntArrayRef x, const Windows& w) {
  const int64_t n = y.size(0), each = w.groups, depth = x[1] / each * w.points();
  const bool adds = !w.apart() && !w.plain(), narrow = y.itemsize() < 4;
  const at::TensorOptions options = adds && narrow ? y.options().dtype(at::kFloat) : y.options();
  at::Tensor columns = at::empty({n, each, depth, places(y)}, options);
  clutch::linalg::MatmulOptions of_product;
  if (adds && narrow) of_product.dtype = clutch::DType::f32;
  clutch::linalg::matmul_out(wrap(columns), wrap(weight.contiguous().view({1, each, y.size(1) / each, depth}).mT()),
                             wrap(y.contiguous().view({n, each, y.size(1) / each, places(y)})), of_product);
  if (w.plain()) return columns.view(x);
  at::Tensor sums = at::zeros(w.padded_sizes(x), options);
  const at::Tensor to = w.view(sums, y.sizes()), from = columns.view(to.sizes());
  if (!adds) {
    to.copy_(from);
  } else {
    const auto dims = static_cast<int64_t>(w.kernel.size());
    for (int64_t point = 0; point < w.points(); ++point) {
      at::Tensor a = to, b = from;
      for (int64_t d = dims - 1, rest = point; d >= 0; rest /= w.kernel[static_cast<size_t>(d)], --d) {
        const int64_t k = rest % w.kernel[static_cast<size_t>(d)];
        a = a.select(2 + d, k), b = b.select(2 + d, k);
      }
      a.add_(b);
    }
  }
  return w.inner(sums, x).to(y.scalar_type()).contiguous();
}

// The weight's gradient: one product over all places of the batch.
at::Tensor convolve_weight(const at::Tensor& x, const at::Tensor& y, c10::IntArrayRef weight, const Windows& w) {
  const int64_t n = x.size(0), each = w.groups, depth = x.size(1) / each * w.points(), all = n * places(y);
  const at::Tensor columns = w.plain() ? x : w.view(w.padded(x), y.sizes());
  at::Tensor made = at::empty(weight, x.options());
  clutch::linalg::matmul_out(wrap(made.view({each, y.size(1) / each, depth})), wrap(y.transpose(0, 1).reshape({each, y.size(1) / each, all})),
                             wrap(columns.movedim(0, static_cast<int64_t>(w.kernel.size()) * (w.plain() ? 0 : 1) + 1).reshape({each, depth, all}).mT()), {});
  return made;
}

// Others go to the CPU: numbers that clutch's products lack, and calls without an element.
bool is_ours(const at::Tensor& x, const at::Tensor& weight) {
  return at::isFloatingType(x.scalar_type()) && x.scalar_type() == weight.scalar_type() && x.numel() > 0 && weight.numel() > 0 && x.dim() == weight.dim() &&
         x.dim() >= 3 && weight.device() == x.device();
}

std::optional<at::Tensor> on_host(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() ? std::optional(tensor->cpu()) : std::nullopt;
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, c10::IntArrayRef stride, c10::IntArrayRef padding,
                       c10::IntArrayRef dilation, bool transposed, c10::IntArrayRef output_padding, int64_t groups) {
  if (!is_ours(x, weight)) {
    note_fallback("aten::convolution_overrideable");
    return at::convolution(x.cpu(), weight.cpu(), on_host(bias), stride, padding, dilation, transposed, output_padding, groups).to(x.device());
  }
  const Windows w(weight, stride, padding, dilation, groups);
  at::DimVector y{x.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    const int64_t size = x.size(static_cast<int64_t>(d) + 2), extent = dilation[d] * (w.kernel[d] - 1) + 1;
    y.push_back(transposed ? (size - 1) * stride[d] - 2 * padding[d] + extent + output_padding[d] : (size + 2 * padding[d] - extent) / stride[d] + 1);
  }
  if (transposed) {
    const at::Tensor out = convolve_back(x, weight, y, w);
    at::DimVector of_bias(static_cast<size_t>(x.dim()), 1);
    of_bias[1] = y[1];
    return bias.has_value() && bias->defined() ? out.add(bias->view(of_bias)) : out;
  }
  at::Tensor out = at::empty(y, x.options());
  convolve(out, x, weight, bias, w);
  return out;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                                                    c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation,
                                                                    bool transposed, c10::IntArrayRef output_padding, int64_t groups,
                                                                    std::array<bool, 3> wanted) {
  if (!is_ours(x, weight) || grad.scalar_type() != x.scalar_type()) {
    note_fallback("aten::convolution_backward_overrideable");
    const int64_t channels = grad.size(1);
    auto [of_x, of_weight, of_bias] = at::convolution_backward(grad.cpu(), x.cpu(), weight.cpu(), at::OptionalIntArrayRef(channels), stride, padding, dilation,
                                                               transposed, output_padding, groups, wanted);
    auto back = [&](const at::Tensor& result) { return result.defined() ? result.to(x.device()) : result; };
    return {back(of_x), back(of_weight), back(of_bias)};
  }
  const Windows w(weight, stride, padding, dilation, groups);
  at::Tensor of_x, of_weight, of_bias;
  if (wanted[0] && transposed) {
    of_x = at::empty(x.sizes(), x.options());
    convolve(of_x, grad, weight, std::nullopt, w);
  } else if (wanted[0]) {
    of_x = convolve_back(grad, weight, x.sizes(), w);
  }
  if (wanted[1]) of_weight = transposed ? convolve_weight(grad, x, weight.sizes(), w) : convolve_weight(x, grad, weight.sizes(), w);
  if (wanted[2]) {
    at::DimVector others{0};
    for (int64_t d = 2; d < grad.dim(); ++d) others.push_back(d);
    of_bias = grad.sum(others);
  }
  return {of_x, of_weight, of_bias};
}

}  // namespace

void add_convolutions(OpTable& table) {
  table.family("convolutions");
  table.add<"convolution_overrideable", &convolution>("copy_ of windows, linalg::matmul");
  table.add<"convolution_backward_overrideable", &convolution_backward>("copy_ of windows, linalg::matmul, sum");
}

}  // namespace torch_clutch
