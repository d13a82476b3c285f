// SPDX-License-Identifier: Apache-2.0
// Functions composed of products: layers, their gradients, scaled and quantised products.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/pointwise.hpp>

#include "encode/elementwise.hpp"
#include "ops/matmul/call.hpp"
#include "ops/out_form.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/runtime.hpp"
#include "runtime/stream.hpp"

#include <fmt/format.h>

#include <array>

namespace clutch { inline namespace v0 {
namespace linalg { namespace {

Expr activated(const Expr& x, nn::Activation activation) {
  switch (activation) {
    case nn::Activation::relu: return relu(x);
    case nn::Activation::gelu: return gelu(x);
    case nn::Activation::gelu_tanh: return gelu(x, GeluForm::tanh);
    case nn::Activation::silu: return silu(x);
    default: return x;
  }
}

/// activation(product + bias), or activation(product) without a bias.
ExprFunction epilogue_of(DType product, const Tensor& bias, nn::Activation activation) {
  if (!bias.defined()) return trace([&](Expr x) { return activated(x, activation); }, std::array{product});
  return trace([&](Expr x, Expr b) { return activated(x + b, activation); }, std::array{product, traced_dtypes(std::span(&bias, 1))[0]});
}

/// Computes into `result` if given, else into a new tensor.
template <class Weight>
Tensor linear_of(const Tensor* result, const Tensor& x, const Weight& weight, DType weight_dtype, std::int64_t out, const Tensor& bias,
                 const LinearOptions& options, const Stream& stream) {
  return clutch::detail::linear_by(x, weight_dtype, out, bias, options, "linalg::linear",
                                   [&](const Tensor& rows, const ExprFunction& f, std::span<const Tensor> inputs) {
                                     if (!result) return matmul(rows, weight, f, inputs, {.dtype = options.dtype, .numerics = options.numerics}, stream);
                                     const bool vector = x.rank() == 1;
                                     const Tensor target = vector ? clutch::detail::row_of(*result) : *result;
                                     matmul_out(target, rows.rank() == 1 ? rows.unsqueeze(0) : rows, weight, f, inputs, {.numerics = options.numerics}, stream);
                                     return target;
                                   });
}

void check_weight(const Tensor& weight) {
  if (!weight.defined()) throw Error(ErrorCode::invalid_argument, "linalg::linear", "the weight must be defined, got an undefined tensor");
  if (weight.rank() != 2)
    throw Error(ErrorCode::invalid_shape, "linalg::linear", fmt::format("the weight must be (out, in), got {}", to_string(weight.sizes())));
}

}}  // namespace linalg

Tensor detail::scaled_by(DType product, const Tensor& scale_a, const Tensor& scale_b, const linalg::ScaledMatmulOptions& options, const char* op,
                         const std::function<Tensor(const ExprFunction&, std::span<const Tensor>, const linalg::MatmulOptions&)>& multiply) {
  for (const Tensor* s : {&scale_a, &scale_b})
    if (!s->defined() || s->dtype() != DType::f32)
      throw Error(ErrorCode::invalid_dtype, op, fmt::format("scales must be f32, got {}", s->defined() ? name(s->dtype()) : "an undefined tensor"));
  const DType stored = one_dtype(options.dtype, op).value_or(DType::bf16);
  if (stored != DType::f32 && stored != DType::f16 && stored != DType::bf16)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("the result must be f32, f16 or bf16, got {}", name(stored)));
  std::vector<Tensor> inputs{scale_a, scale_b};
  if (!options.bias.defined())
    return multiply(trace([](Expr x, Expr a, Expr b) { return x * (a * b); }, std::array{product, DType::f32, DType::f32}), inputs,
                    {.dtype = stored, .numerics = options.numerics});
  inputs.push_back(options.bias);
  const ExprFunction f = trace([](Expr x, Expr a, Expr b, Expr bias) { return fma(x, a * b, cast(bias, DType::f32)); },
                               std::array{product, DType::f32, DType::f32, traced_dtypes(std::span(&options.bias, 1))[0]});
  return multiply(f, inputs, {.dtype = stored, .numerics = options.numerics});
}

Tensor detail::linear_sums_backward(const Tensor& grad, DType dtype, const Tensor& bias, const linalg::LinearOptions& options,
                                    const std::function<Tensor(DType)>& product_again, Tensor* of_bias, const Stream& stream) {
  if (options.activation == nn::Activation::none) {
    if (bias.defined()) {
      const bool wider = bits(bias.dtype()) > bits(grad.dtype());  // so that the sum is rounded once
      *of_bias = sum_to(wider ? grad.to(bias.dtype(), {}, stream) : grad, bias.sizes(), stream).to(bias.dtype(), {}, stream);
    }
    return grad;
  }
  std::vector<Tensor> all{product_again(linalg::product_dtype(dtype, dtype))};
  if (bias.defined()) all.push_back(bias);
  std::vector<Tensor> gradients = map_backward(std::span(&grad, 1), linalg::epilogue_of(all[0].dtype(), bias, options.activation), all, stream);
  if (bias.defined()) *of_bias = gradients[1];
  return gradients[0].dtype() == dtype ? gradients[0] : gradients[0].to(dtype, {}, stream);
}

Tensor detail::row_of(const Tensor& vector) {
  if (vector.rank() != 1)
    throw Error(ErrorCode::invalid_shape, "linalg::linear", fmt::format("out must be of rank 1, as x is, got {}", to_string(vector.sizes())));
  return vector.unsqueeze(0);
}

void detail::store_linear(const linalg::LinearGradients& out, const linalg::LinearGradients& made, const char* op, const Stream& stream) {
  const Stored all[] = {{out.x, made.x, "out.x"}, {out.weight, made.weight, "out.weight"}, {out.bias, made.bias, "out.bias"}};
  store(all, op, stream);
}

Tensor detail::linear_by(const Tensor& x, DType of_weight, std::int64_t out, const Tensor& bias, const linalg::LinearOptions& options, const char* op,
                         const std::function<Tensor(const Tensor& rows, const ExprFunction& f, std::span<const Tensor> inputs)>& product) {
  if (bias.defined() && !(bias.sizes() == Dims{out}))
    throw Error(ErrorCode::invalid_shape, op, fmt::format("the bias must have {} elements, got {}", out, to_string(bias.sizes())));
  if (!bias.defined() && options.activation == nn::Activation::none) return product(x, ExprFunction(), std::span<const Tensor>());
  const bool vector = x.rank() == 1;
  const ExprFunction f = linalg::epilogue_of(linalg::product_dtype(x.dtype(), of_weight), bias, options.activation);
  Tensor y = product(vector ? x.unsqueeze(0) : x, f, bias.defined() ? std::span(&bias, 1) : std::span<const Tensor>());
  return vector ? y.squeeze(0) : y;
}

namespace linalg {

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options, const Stream& stream) {
  detail::OpName named("linalg::linear");
  check_weight(weight);
  return linear_of(nullptr, x, weight.mT(), weight.dtype(), weight.sizes()[0], bias, options, stream);
}
void linear_out(const Tensor& out, const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options, const Stream& stream) {
  detail::OpName named("linalg::linear_out");
  check_weight(weight);
  linear_of(&out, x, weight.mT(), weight.dtype(), weight.sizes()[0], bias, options, stream);
}
Tensor linear(const Tensor& x, const PackedMatrix& weight, const Tensor& bias, const LinearOptions& options, const Stream& stream) {
  detail::OpName named("linalg::linear");
  return linear_of(nullptr, x, weight, weight.dtype(), weight.sizes()[weight.sizes().rank() - 1], bias, options, stream);
}
void linear_out(const Tensor& out, const Tensor& x, const PackedMatrix& weight, const Tensor& bias, const LinearOptions& options, const Stream& stream) {
  detail::OpName named("linalg::linear_out");
  linear_of(&out, x, weight, weight.dtype(), weight.sizes()[weight.sizes().rank() - 1], bias, options, stream);
}

MatmulGradients matmul_backward(const Tensor& grad, const Tensor& a, const Tensor& b, const MatmulBackwardOptions& options, const Stream& stream) {
  detail::OpName named("linalg::matmul_backward");
  constexpr std::string_view op = "linalg::matmul_backward";
  for (const Tensor* t : {&grad, &a, &b})
    if (!t->defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
  const DType dtype = grad.dtype();
  if (a.dtype() != dtype || b.dtype() != dtype || (dtype != DType::f64 && dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16))
    throw Error(ErrorCode::invalid_dtype, op,
                fmt::format("grad, a and b must be of one dtype of f64, f32, f16 and bf16, got {}, {} and {}", name(dtype), name(a.dtype()), name(b.dtype())));
  // Vectors are handled as matrices, with the gradient in the shape of the matrix product.
  Tensor a2 = a.rank() == 1 ? a.unsqueeze(0) : a, b2 = b.rank() == 1 ? b.unsqueeze(1) : b, g = grad;
  if (b.rank() == 1) g = g.unsqueeze(g.rank());
  if (a.rank() == 1) g = g.unsqueeze(g.rank() - 1);
  // If all batches share one b, its gradient is one product over all rows.
  const MatmulOptions of_products{.numerics = options.numerics};
  MatmulGradients result;
  result.a = sum_to(matmul(g, b2.mT(), of_products, stream), a2.sizes(), stream).reshape(a.sizes());
  if (b2.rank() == 2 && a2.rank() > 2) {
    const std::int64_t k = a2.sizes()[a2.rank() - 1], n = g.sizes()[g.rank() - 1], rows = k > 0 ? a2.numel() / k : g.numel() / std::max<std::int64_t>(n, 1);
    result.b = matmul(a2.contiguous(stream).reshape({rows, k}).mT(), g.contiguous(stream).reshape({rows, n}), of_products, stream).reshape(b.sizes());
  } else {
    result.b = sum_to(matmul(a2.mT(), g, of_products, stream), b2.sizes(), stream).reshape(b.sizes());
  }
  return result;
}

MatmulGradients matmul_backward(const Tensor& grad, const Tensor& a, const Tensor& b, const ExprFunction& f, std::span<const Tensor> inputs,
                                const MatmulBackwardOptions& options, const Stream& stream) {
  detail::OpName named("linalg::matmul_backward");
  Tensor product = matmul(a, b, {.dtype = product_dtype(a.dtype(), b.dtype()), .numerics = options.numerics}, stream);
  std::vector<Tensor> all{product};
  all.insert(all.end(), inputs.begin(), inputs.end());
  std::vector<Tensor> gradients = map_backward(std::span(&grad, 1), f, all, stream);
  Tensor of_product = a.dtype() == product.dtype() ? gradients[0] : gradients[0].to(a.dtype(), {}, stream);
  MatmulGradients result = matmul_backward(of_product, a, b, options, stream);
  result.inputs.assign(gradients.begin() + 1, gradients.end());
  return result;
}

namespace {

void store_gradients(const MatmulGradients& out, const MatmulGradients& made, const Stream& stream) {
  constexpr std::string_view op = "linalg::matmul_backward";
  if (!out.inputs.empty() && out.inputs.size() != made.inputs.size())
    throw Error(ErrorCode::invalid_argument, op, fmt::format("out.inputs must be empty or have {} tensors, got {}", made.inputs.size(), out.inputs.size()));
  std::vector<detail::Stored> all{{out.a, made.a, "out.a"}, {out.b, made.b, "out.b"}};
  for (std::size_t i = 0; i < out.inputs.size(); ++i) all.push_back({out.inputs[i], made.inputs[i], "out.inputs"});
  detail::store(all, op, stream);
}

}  // namespace

void matmul_backward_out(const MatmulGradients& out, const Tensor& grad, const Tensor& a, const Tensor& b, const MatmulBackwardOptions& options,
                         const Stream& stream) {
  detail::OpName named("linalg::matmul_backward_out");
  store_gradients(out, matmul_backward(grad, a, b, options, stream), stream);
}
void matmul_backward_out(const MatmulGradients& out, const Tensor& grad, const Tensor& a, const Tensor& b, const ExprFunction& f,
                         std::span<const Tensor> inputs, const MatmulBackwardOptions& options, const Stream& stream) {
  detail::OpName named("linalg::matmul_backward_out");
  store_gradients(out, matmul_backward(grad, a, b, f, inputs, options, stream), stream);
}

LinearGradients linear_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearOptions& options,
                                const Stream& stream) {
  detail::OpName named("linalg::linear_backward");
  check_weight(weight);
  Tensor rows = x.rank() == 1 ? x.unsqueeze(0) : x, g = x.rank() == 1 ? grad.unsqueeze(0) : grad;
  LinearGradients result;
  g = clutch::detail::linear_sums_backward(
      g, x.dtype(), bias, options, [&](DType product) { return matmul(rows, weight.mT(), {.dtype = product, .numerics = options.numerics}, stream); },
      &result.bias, stream);
  MatmulGradients both = matmul_backward(g, rows, weight.mT(), {.numerics = options.numerics}, stream);
  result.x = both.a.reshape(x.sizes()), result.weight = both.b.mT().contiguous(stream);
  return result;
}

void linear_backward_out(const LinearGradients& out, const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const LinearOptions& options, const Stream& stream) {
  detail::OpName named("linalg::linear_backward_out");
  clutch::detail::store_linear(out, linear_backward(grad, x, weight, bias, options, stream), "linalg::linear_backward", stream);
}

Tensor scaled_matmul(const Tensor& a, const MatrixOperand& b, const Tensor& scale_a, const Tensor& scale_b, const ScaledMatmulOptions& options,
                     const Stream& stream) {
  detail::OpName named("linalg::scaled_matmul");
  return clutch::detail::scaled_by(
      product_dtype(a.dtype(), clutch::detail::matrix_dtype(b)), scale_a, scale_b, options, "linalg::scaled_matmul",
      [&](const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& plain) { return matmul(a, b, f, inputs, plain, stream); });
}
void scaled_matmul_out(const Tensor& out, const Tensor& a, const MatrixOperand& b, const Tensor& scale_a, const Tensor& scale_b,
                       const ScaledMatmulOptions& options, const Stream& stream) {
  detail::OpName named("linalg::scaled_matmul_out");
  clutch::detail::scaled_by(product_dtype(a.dtype(), clutch::detail::matrix_dtype(b)), scale_a, scale_b, {.bias = options.bias, .dtype = out.dtype()},
                            "linalg::scaled_matmul", [&](const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions&) {
                              matmul_out(out, a, b, f, inputs, {.numerics = options.numerics}, stream);
                              return out;
                            });
}

namespace {

Tensor quantized(const Tensor* out, const Tensor& a, const Quantization& of_a, const Tensor& b, const Quantization& of_b, const QuantizedMatmulOptions& options,
                 const Stream& given) {
  const char* op = "linalg::quantized_matmul";
  const Tensor* operands[] = {&a, &b};
  detail::Runtime& runtime = detail::common_runtime(operands, op);
  Stream stream = detail::resolve_stream(given, runtime, op);
  if (product_dtype(a.dtype(), b.dtype()) != DType::i32)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("operands must be i8 or u8, got {} and {}", name(a.dtype()), name(b.dtype())));
  if (a.rank() < 2 || b.rank() < 2)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("a and b must have at least two dimensions, got {} and {}", to_string(a.sizes()), to_string(b.sizes())));
  const DType stored = out ? out->dtype() : detail::one_dtype(options.dtype, op).value_or(DType::f32);
  const bool bytes = stored == DType::i8 || stored == DType::u8;
  if (!bytes && stored != DType::f32 && stored != DType::f16 && stored != DType::bf16)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("the result must be f32, f16, bf16, i8 or u8, got {}", name(stored)));
  for (const Quantization* q : {&of_a, &of_b, &options.result}) {
    if (q->scale.defined() && q->scale.dtype() != DType::f32)
      throw Error(ErrorCode::invalid_dtype, op, fmt::format("scales must be f32, got {}", name(q->scale.dtype())));
    if (q->zero_point.defined() && q->zero_point.dtype() != DType::i32)
      throw Error(ErrorCode::invalid_dtype, op, fmt::format("zero points must be i32, got {}", name(q->zero_point.dtype())));
  }
  auto scale_of = [&](const Quantization& q) { return q.scale.defined() ? q.scale : full({}, 1, {.device = stream.device()}, stream); };
  Tensor scale = mul(scale_of(of_a), scale_of(of_b), {}, stream);
  // sum (a - za) (b - zb) = sum a b - zb sum a - za sum b + k za zb
  std::vector<Tensor> inputs{scale};
  const bool corrected = of_a.zero_point.defined() || of_b.zero_point.defined();
  if (corrected) {
    const Tensor none = full({}, 0, {.dtype = DType::i32, .device = stream.device()}, stream);
    const Tensor za = of_a.zero_point.defined() ? of_a.zero_point : none, zb = of_b.zero_point.defined() ? of_b.zero_point : none;
    auto sums = [&](const Tensor& t, int dim) { return sum(t, {.dims = {dim}, .keepdim = true}, stream).to(DType::i32, {}, stream); };
    inputs.push_back(za), inputs.push_back(zb);
    inputs.push_back(of_b.zero_point.defined() ? sums(a, -1) : none), inputs.push_back(of_a.zero_point.defined() ? sums(b, -2) : none);
  }
  const std::int64_t k = a.sizes()[a.rank() - 1];
  const bool biased = options.bias.defined();
  auto real = [&](const Expr& x, std::span<const Expr> e) {
    Expr whole = x;
    if (corrected) whole = x - e[2] * e[3] - e[1] * e[4] + e[1] * e[2] * param(k);
    Expr r = cast(whole, DType::f32) * e[0];
    return r;
  };
  auto quantised = [&](const Expr& r, const Expr& s, const Expr& z) {
    const bool is_signed = stored == DType::i8;
    Expr q = round(r / s) + cast(z, DType::f32);
    return cast(clamp(q, is_signed ? -128.0f : 0.0f, is_signed ? 127.0f : 255.0f), stored);
  };
  // The bias and the result's quantisation are the last inputs, so that the kernel reads only the inputs that exist.
  std::size_t at_bias = inputs.size();
  if (biased) inputs.push_back(options.bias);
  std::size_t at_result = inputs.size();
  if (bytes) {
    inputs.push_back(scale_of(options.result));
    inputs.push_back(options.result.zero_point.defined() ? options.result.zero_point : full({}, 0, {.dtype = DType::i32, .device = stream.device()}, stream));
  }
  std::vector<DType> dtypes{DType::i32}, traced = traced_dtypes(inputs);
  dtypes.insert(dtypes.end(), traced.begin(), traced.end());
  std::vector<Expr> e;
  for (std::size_t i = 0; i < inputs.size(); ++i) e.push_back(detail::expr_input(static_cast<int>(i) + 1, dtypes[i + 1]));
  Expr result = real(detail::expr_input(0, DType::i32), e);
  if (biased) result = result + cast(e[at_bias], DType::f32);
  if (bytes) result = quantised(result, e[at_result], e[at_result + 1]);
  const ExprFunction f(dtypes, std::span(&result, 1));
  if (!out) return matmul(a, b, f, inputs, {.dtype = stored}, stream);
  matmul_out(*out, a, b, f, inputs, {}, stream);
  return *out;
}

}  // namespace

Tensor quantized_matmul(const Tensor& a, const Quantization& of_a, const Tensor& b, const Quantization& of_b, const QuantizedMatmulOptions& options,
                        const Stream& stream) {
  detail::OpName named("linalg::quantized_matmul");
  return quantized(nullptr, a, of_a, b, of_b, options, stream);
}
void quantized_matmul_out(const Tensor& out, const Tensor& a, const Quantization& of_a, const Tensor& b, const Quantization& of_b,
                          const QuantizedMatmulOptions& options, const Stream& stream) {
  detail::OpName named("linalg::quantized_matmul_out");
  quantized(&out, a, of_a, b, of_b, options, stream);
}

}  // namespace linalg
}}  // namespace clutch::v0
