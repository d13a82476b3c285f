// SPDX-License-Identifier: Apache-2.0
// Ops of rows: softmax and norms, with their gradients.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <clutch/nn.hpp>

namespace torch_clutch {
namespace {

// Normalizes along one dimension; a tensor of rank 0 is a row of one.
template <auto kRow>
at::Tensor& softmax_out(const at::Tensor& self, int64_t dim, bool, at::Tensor& out) {
  at::native::resize_output(out, self.sizes());
  if (self.numel() == 0) return out;
  const int64_t wrapped = at::maybe_wrap_dim(dim, self.dim());
  if (self.dim() == 0)
    kRow(wrap(out.reshape({1})), wrap(self.reshape({1})), 0, {});
  else
    kRow(wrap(out), wrap(self), static_cast<int>(wrapped), {});
  return out;
}
template <auto kRow>
at::Tensor& softmax_backward_out(const at::Tensor& grad, const at::Tensor& y, int64_t dim, at::ScalarType, at::Tensor& out) {
  at::native::resize_output(out, y.sizes());
  if (y.numel() == 0) return out;
  const int64_t wrapped = at::maybe_wrap_dim(dim, y.dim());
  if (y.dim() == 0)
    kRow(wrap(out.reshape({1})), wrap(grad.reshape({1})), wrap(y.reshape({1})), 0, {});
  else
    kRow(wrap(out), wrap(grad), wrap(y), static_cast<int>(wrapped), {});
  return out;
}

at::Tensor made_like(const at::Tensor& like, bool wanted) { return wanted ? at::empty(like.sizes(), like.options()) : at::Tensor(); }
clutch::Tensor wrap_defined(const at::Tensor& tensor) { return tensor.defined() ? wrap(tensor) : clutch::Tensor(); }

// Statistics of rows: f32 at least, of size 1 in the dimensions that are normalized.
at::Tensor row_statistics(const at::Tensor& x, size_t normalized) {
  at::DimVector sizes(x.sizes());
  for (size_t d = sizes.size() - normalized; d < sizes.size(); ++d) sizes[d] = 1;
  return at::empty(sizes, x.options().dtype(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat));
}
void check_normalized(const at::Tensor& x, c10::IntArrayRef shape) {
  TORCH_CHECK(!shape.empty(),
              "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = ", shape);
  TORCH_CHECK(x.dim() >= static_cast<int64_t>(shape.size()) && x.sizes().slice(x.sizes().size() - shape.size()).equals(shape), "Given normalized_shape=", shape,
              ", expected input with shape [*", shape, "], but got input of size", x.sizes());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm(const at::Tensor& x, c10::IntArrayRef shape, const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias, double eps) {
  check_normalized(x, shape);
  at::Tensor y = at::empty(x.sizes(), x.options()), mean = row_statistics(x, shape.size()), rstd = at::empty_like(mean);
  if (x.numel() == 0) refuse("rows of nothing");
  clutch::nn::layer_norm_out({.y = wrap(y), .mean = wrap(mean), .rstd = wrap(rstd)}, wrap(x), wrap(weight), wrap(bias),
                             {.normalized_rank = static_cast<int>(shape.size()), .eps = eps});
  return {y, mean, rstd};
}
std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, c10::IntArrayRef shape, const at::Tensor& mean,
                                                                   const at::Tensor& rstd, const std::optional<at::Tensor>& weight,
                                                                   const std::optional<at::Tensor>& bias, std::array<bool, 3> wanted) {
  if (x.numel() == 0) refuse("rows of nothing");
  const bool has_weight = weight.has_value() && weight->defined(), has_bias = bias.has_value() && bias->defined();
  at::Tensor of_x = made_like(x, wanted[0]);
  at::Tensor of_weight = has_weight ? made_like(*weight, wanted[1]) : at::Tensor(), of_bias = has_bias ? made_like(*bias, wanted[2]) : at::Tensor();
  clutch::nn::layer_norm_backward_out({.x = wrap_defined(of_x), .weight = wrap_defined(of_weight), .bias = wrap_defined(of_bias)}, wrap(grad), wrap(x),
                                      wrap(mean), wrap(rstd), wrap(weight), {.normalized_rank = static_cast<int>(shape.size())});
  return {of_x, of_weight, of_bias};
}

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x, c10::IntArrayRef shape, const std::optional<at::Tensor>& weight, std::optional<double> eps) {
  check_normalized(x, shape);
  if (x.numel() == 0) refuse("rows of nothing");
  at::Tensor y = at::empty(x.sizes(), x.options()), rrms = row_statistics(x, shape.size());
  const double smallest = x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon() : static_cast<double>(std::numeric_limits<float>::epsilon());
  clutch::nn::rms_norm_out({.y = wrap(y), .rrms = wrap(rrms)}, wrap(x), wrap(weight),
                           {.normalized_rank = static_cast<int>(shape.size()), .eps = eps.value_or(smallest)});
  return {y, rrms};
}
std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, c10::IntArrayRef shape, const at::Tensor& rrms,
                                                     const std::optional<at::Tensor>& weight, std::array<bool, 2> wanted) {
  const bool has_weight = weight.has_value() && weight->defined();
  at::Tensor of_x = made_like(x, wanted[0]), of_weight = has_weight ? made_like(*weight, wanted[1]) : at::Tensor();
  clutch::nn::rms_norm_backward_out({.x = wrap_defined(of_x), .weight = wrap_defined(of_weight)}, wrap(grad), wrap(x), wrap(rrms), wrap(weight),
                                    {.normalized_rank = static_cast<int>(shape.size())});
  return {of_x, of_weight};
}

}  // namespace

void add_rows(OpTable& table) {
  table.family("rows");
  table.add<"_softmax.out", &softmax_out<&clutch::nn::softmax_out>>("nn::softmax");
  table.add<"_log_softmax.out", &softmax_out<&clutch::nn::log_softmax_out>>("nn::log_softmax");
  table.add<"_softmax_backward_data.out", &softmax_backward_out<&clutch::nn::softmax_backward_out>>("nn::softmax_backward");
  table.add<"_log_softmax_backward_data.out", &softmax_backward_out<&clutch::nn::log_softmax_backward_out>>("nn::log_softmax_backward");
  table.add<"native_layer_norm", &layer_norm>("nn::layer_norm");
  table.add<"native_layer_norm_backward", &layer_norm_backward>("nn::layer_norm_backward");
  table.add<"_fused_rms_norm", &rms_norm>("nn::rms_norm");
  table.add<"_fused_rms_norm_backward", &rms_norm_backward>("nn::rms_norm_backward");
}

}  // namespace torch_clutch
