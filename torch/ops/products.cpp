// SPDX-License-Identifier: Apache-2.0
// Products of matrices and vectors, each one launch with its bias.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/addr_native.h>
#include <clutch/ops/matmul.hpp>

namespace torch_clutch {
namespace {

void check_dtypes(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected m1 and m2 to have the same dtype, but got: ", a.scalar_type(), " != ", b.scalar_type());
  if (at::isIntegralType(a.scalar_type(), true)) refuse("products of integers");
}

// out = beta c + alpha a b for out's shape; c undefined where beta is 0.
at::Tensor& product(at::Tensor& out, const at::Tensor& lazy_a, const at::Tensor& lazy_b, const at::Tensor& c = {}, const at::Scalar& beta = 0,
                    const at::Scalar& alpha = 1) {
  const at::Tensor a = lazy_a.resolve_conj().resolve_neg(), b = lazy_b.resolve_conj().resolve_neg();  // PyTorch's products take them as they are
  check_dtypes(a, b);
  if (out.numel() == 0) return out;
  if (beta.isComplex() || alpha.isComplex()) refuse("complex factors");
  const bool adds = c.defined() && beta.toDouble() != 0;
  if (a.size(-1) == 0) return adds ? at::mul_out(out, c.expand(out.sizes()), at::native::wrapped_scalar_tensor(beta)) : out.zero_();
  if (!adds) {
    clutch::linalg::matmul_out(wrap(out), wrap(a), wrap(b), {.alpha = alpha.toDouble()});
    return out;
  }
  if (a.is_complex() || out.is_alias_of(c)) {
    if (!out.is_same(c)) out.copy_(c.expand(out.sizes()));
    clutch::linalg::matmul_out(wrap(out), wrap(a), wrap(b), {.alpha = alpha.toDouble(), .beta = beta.toDouble()});
    return out;
  }
  const clutch::Tensor added = wrap(c.expand(out.sizes()));
  const clutch::DType made = clutch::linalg::product_dtype(need_dtype(a.scalar_type()), need_dtype(b.scalar_type()));
  const clutch::Tensor shapes[] = {clutch::Tensor(added.storage(), added.byte_offset(), {1}, {1}, made), added};
  const clutch::ExprFunction plus = beta.toDouble() == 1
                                        ? traced([](const In& in) { return in.x[0] + in.x[1]; }, shapes)
                                        : traced([](const In& in) { return clutch::fma(in.n[0], in.x[1], in.x[0]); }, shapes, {beta.toDouble()});
  clutch::linalg::matmul_out(wrap(out), wrap(a), wrap(b), plus, std::span(&added, 1), {.alpha = alpha.toDouble()});
  return out;
}

at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  at::native::resize_output(out, {a.size(0), b.size(1)});
  return product(out, a, b);
}
at::Tensor& bmm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  at::native::resize_output(out, {a.size(0), a.size(1), b.size(2)});
  return product(out, a, b);
}
at::Tensor& addmm_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  at::native::resize_output(out, {a.size(0), b.size(1)});
  return product(out, a, b, c, beta, alpha);
}
at::Tensor& baddbmm_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  at::native::resize_output(out, {a.size(0), a.size(1), b.size(2)});
  return product(out, a, b, c, beta, alpha);
}
at::Tensor& addmv_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  at::native::resize_output(out, {a.size(0)});
  at::Tensor column = out.unsqueeze(1);
  product(column, a, b.unsqueeze(1), c.expand({a.size(0)}).unsqueeze(1), beta, alpha);
  return out;
}
at::Tensor dot(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ", b.dim(), "D tensors");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dot : expected both vectors to have same dtype, but found ", a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK(a.device() == b.device(), "Expected all tensors to be on the same device. Found: ", a.device(), ", ", b.device());
  TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(), "] and src [", b.numel(),
              "] to have the same number of elements");
  if (a.numel() == 0) return at::zeros({}, a.options());
  at::Tensor out = at::empty({1, 1}, a.options());
  return product(out, a.unsqueeze(0), b.unsqueeze(1)).squeeze();
}

// PyTorch's formula checks no factors.
void check_factor(const at::Scalar& factor, c10::ScalarType dtype, const char* name) {
  TORCH_CHECK(!factor.isBoolean() || dtype == at::kBool, "Boolean ", name, " only supported for Boolean results.");
  TORCH_CHECK(at::isFloatingType(dtype) || at::isComplexType(dtype) || factor.isIntegral(true), "For integral input tensors, argument ", name,
              " must not be a floating point number.");
}
void check_outer(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  TORCH_CHECK(a.dim() == 1, "addr: Expected 1-D argument vec1, but got ", a.dim(), "-D");
  TORCH_CHECK(b.dim() == 1, "addr: Expected 1-D argument vec2, but got ", b.dim(), "-D");
  const c10::ScalarType dtype = at::promote_types(at::result_type(a, b), c.scalar_type());
  check_factor(beta, dtype, "beta"), check_factor(alpha, dtype, "alpha");
}
at::Tensor addr(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  check_outer(c, a, b, beta, alpha);
  return at::native::math_addr(c, a, b, beta, alpha);
}
at::Tensor& addr_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  check_outer(c, a, b, beta, alpha);
  return at::native::math_addr_out(c, a, b, beta, alpha, out);
}
at::Tensor vdot(const at::Tensor& a, const at::Tensor& b) { return torch_clutch::dot(a.conj(), b); }
at::Tensor& addbmm_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  TORCH_CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1), "addbmm: batches of matrices that fit are expected, got ",
              a.sizes(), " and ", b.sizes());
  // The sum over the batch is one longer product.
  const int64_t length = a.size(0) * a.size(2);
  return at::addmm_out(out, c.expand({a.size(1), b.size(2)}), a.transpose(0, 1).reshape({a.size(1), length}), b.reshape({length, b.size(2)}), beta, alpha);
}
at::Tensor addbmm(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  at::Tensor out = at::empty({0}, a.options());
  return torch_clutch::addbmm_out(c, a, b, beta, alpha, out);
}
at::Tensor& addbmm_(at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return c.copy_(torch_clutch::addbmm(c, a, b, beta, alpha));
}

// clutch::linalg::linear takes real numbers and at least one row.
bool is_plain(const at::Tensor& x, const at::Tensor& weight) {
  return x.dim() > 0 && weight.dim() == 2 && x.numel() > 0 && weight.numel() > 0 && !x.is_complex();
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  check_dtypes(x, weight);
  const bool has_bias = bias.has_value() && bias->defined();
  if (!is_plain(x, weight)) {
    const at::Tensor product = at::matmul(x, weight.t());
    return has_bias ? product.add(*bias) : product;
  }
  TORCH_CHECK(x.size(-1) == weight.size(1), "linear(): input and weight.T shapes cannot be multiplied (", x.numel() / x.size(-1), "x", x.size(-1), " and ",
              weight.size(1), "x", weight.size(0), ")");
  at::DimVector sizes(x.sizes());
  sizes.back() = weight.size(0);
  at::Tensor out = at::empty(sizes, x.options());
  clutch::linalg::linear_out(wrap(out.view({-1, weight.size(0)})), wrap(x.reshape({-1, x.size(-1)})), wrap(weight), wrap(bias));
  return out;
}
std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_backward(const at::Tensor& x, const at::Tensor& grad, const at::Tensor& weight,
                                                               std::array<bool, 3> wanted) {
  const at::Tensor rows = x.reshape({x.size(-1) == 0 ? 0 : x.numel() / x.size(-1), x.size(-1)}), grads = grad.reshape({rows.size(0), weight.size(0)});
  at::Tensor of_x, of_weight, of_bias;
  if (wanted[0]) of_x = at::mm(grads, weight.conj()).view(x.sizes());
  if (wanted[1]) of_weight = at::mm(grads.t(), rows.conj());
  if (wanted[2]) of_bias = grads.sum(0);
  return {of_x, of_weight, of_bias};
}

}  // namespace

void add_products(OpTable& table) {
  table.family("products");
  table.add<"mm.out", &mm_out>("linalg::matmul");
  table.add<"bmm.out", &bmm_out>("linalg::matmul");
  table.add<"addmm.out", &addmm_out>("linalg::matmul");
  table.add<"baddbmm.out", &baddbmm_out>("linalg::matmul");
  table.add<"addmv.out", &addmv_out>("linalg::matmul");
  table.add<"dot", &dot>("linalg::matmul");
  table.add<"addr", &addr>("map");
  table.add<"addr.out", &addr_out>("map");
  table.add<"vdot", &vdot>("linalg::matmul");
  table.add<"addbmm", &addbmm>("linalg::matmul");
  table.add<"addbmm_", &addbmm_>("linalg::matmul");
  table.add<"addbmm.out", &addbmm_out>("linalg::matmul");
  table.add<"linear", &linear>("linalg::linear");
  table.add<"linear_backward", &linear_backward>("linalg::matmul, sum");
}

}  // namespace torch_clutch
