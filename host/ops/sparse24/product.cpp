// SPDX-License-Identifier: Apache-2.0
// Products with 2:4 matrices: calls of matmul with such a matrix on the left. With it on the right the product is transposed: (w a^T)^T.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/pointwise.hpp>

#include "encode/plugin_ops.hpp"
#include "ops/matmul/call.hpp"
#include "ops/out_form.hpp"
#include "ops/sparse24_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

namespace clutch { inline namespace v0 { namespace sparse {
namespace {

using detail::MatmulCall;
using linalg::MatmulOptions;
using linalg::MatrixOperand;

constexpr const char* kOp = detail::kMatmul;

/// A view with w's shape and dtype, whose elements are never read.
Tensor stand_in(const SemiStructured& w) { return w.values().as_strided(w.sizes(), {0, 0}); }

/// Errors: invalid_overlap if the output shares memory with the matrix's tensors, which the stand-in does not have.
void check_apart(const MatmulCall& c, const SemiStructured& w) {
  for (const Tensor* t : {&w.values(), &w.metadata(), &w.info()}) detail::check_apart(c.out, *t, kOp);
}

/// Runs a checked call with an existing output. w is the left operand, or, if `transposed`, the right one.
void run(MatmulCall c, const SemiStructured& w, bool transposed, const Stream& stream) {
  c.sparse = w.state();
  if (!transposed) return detail::run_matmul(c, stream);
  const Tensor b = c.a.mT();
  const MatrixOperand operand(b);
  detail::swap_sides(c, stand_in(w), operand);
  detail::run_matmul(c, stream);
}

constexpr std::string_view kPlugins = "sparse::matmul";

/// The options without the name of a plugin's implementation, which linalg::matmul() does not know.
MatmulOptions own_options(const MatmulOptions& options) {
  MatmulOptions own = options;
  if (!own.implementation.empty() && detail::is_plugin_implementation(kPlugins, own.implementation)) own.implementation.clear();
  return own;
}
/// w b of a checked call by a plugin. False if none takes it.
bool by_plugins(const MatmulCall& c, const SemiStructured& w, const MatmulOptions& options, const Stream& stream) {
  if ((c.f && !c.f->empty()) || c.out.numel() == 0) return false;
  return detail::by_plugin(kPlugins, options.implementation, {&c.out, &w, c.b->tensor(), &options, &stream}, stream);
}

Tensor product(const Tensor& left, const Tensor& right, const SemiStructured& w, bool transposed, const ExprFunction& f, std::span<const Tensor> inputs,
               const MatmulOptions& options, const Stream& given) {
  const MatrixOperand b(right);
  MatmulCall c = detail::check_matmul(nullptr, left, b, f, inputs, transposed ? options : own_options(options));
  Stream stream = detail::resolve_stream(given, *c.runtime, kOp);
  c.options.beta = 0;
  c.sizes = detail::product_sizes(left.sizes(), right.sizes());
  detail::check_matmul_inputs(c);
  c.out = empty(c.sizes, {.dtype = c.output, .device = stream.device()}, stream);
  MatmulOptions of_new = options;
  of_new.beta = 0;
  if (!transposed && by_plugins(c, w, of_new, stream)) return c.out;
  run(c, w, transposed, stream);
  return c.out;
}

/// True if all batches can be computed as rows of one matrix, because nothing depends on the batch.
bool joins(const Tensor& a, const ExprFunction& f, std::span<const Tensor> inputs) {
  if (a.rank() <= 2 || !a.is_contiguous() || (!f.empty() && detail::has_positions(f))) return false;
  for (const Tensor& t : inputs)
    if (t.rank() > 1) return false;
  return true;
}

const SemiStructured& given_one(const SemiStructured& w) {
  (void)w.sizes();
  return w;
}

}  // namespace

Tensor matmul(const SemiStructured& w, const Tensor& b, const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& options,
              const Stream& stream) {
  detail::OpName named("sparse::matmul");
  const Tensor left = stand_in(given_one(w));
  if (b.defined() && b.rank() == 1 && inputs.empty()) return product(left, b.unsqueeze(1), w, false, f, inputs, options, stream).squeeze(1);
  return product(left, b, w, false, f, inputs, options, stream);
}
Tensor matmul(const SemiStructured& w, const Tensor& b, const MatmulOptions& options, const Stream& stream) {
  detail::OpName named("sparse::matmul");
  return matmul(w, b, {}, {}, options, stream);
}
void matmul_out(const Tensor& out, const SemiStructured& w, const Tensor& b, const MatmulOptions& options, const Stream& stream) {
  detail::OpName named("sparse::matmul_out");
  matmul_out(out, w, b, {}, {}, options, stream);
}
void matmul_out(const Tensor& out, const SemiStructured& w, const Tensor& b, const ExprFunction& f, std::span<const Tensor> inputs,
                const MatmulOptions& options, const Stream& stream) {
  detail::OpName named("sparse::matmul_out");
  const Tensor left = stand_in(given_one(w));
  const MatrixOperand operand(b);
  MatmulCall c = detail::check_matmul(&out, left, operand, f, inputs, own_options(options));
  detail::check_matmul_inputs(c);
  check_apart(c, w);
  const Stream on = detail::resolve_stream(stream, *c.runtime, kOp);
  if (by_plugins(c, w, options, on)) return;
  run(c, w, false, on);
}

Tensor matmul_transposed(const Tensor& a, const SemiStructured& w, const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& options,
                         const Stream& stream) {
  detail::OpName named("sparse::matmul_transposed");
  const Tensor right = stand_in(given_one(w)).mT();
  if (a.defined() && a.rank() == 1 && inputs.empty()) return product(a.unsqueeze(0), right, w, true, f, inputs, options, stream).squeeze(0);
  if (!a.defined() || !joins(a, f, inputs)) return product(a, right, w, true, f, inputs, options, stream);
  Dims sizes = a.sizes();
  std::int64_t rows = 1;
  for (int d = 0; d < a.rank() - 1; ++d) rows *= sizes[d];
  Tensor flat = product(a.reshape({rows, sizes[a.rank() - 1]}), right, w, true, f, inputs, options, stream);
  sizes[a.rank() - 1] = w.sizes()[0];
  return flat.reshape(sizes);
}
Tensor matmul_transposed(const Tensor& a, const SemiStructured& w, const MatmulOptions& options, const Stream& stream) {
  detail::OpName named("sparse::matmul_transposed");
  return matmul_transposed(a, w, {}, {}, options, stream);
}
void matmul_transposed_out(const Tensor& out, const Tensor& a, const SemiStructured& w, const MatmulOptions& options, const Stream& stream) {
  detail::OpName named("sparse::matmul_transposed_out");
  matmul_transposed_out(out, a, w, {}, {}, options, stream);
}
void matmul_transposed_out(const Tensor& out, const Tensor& a, const SemiStructured& w, const ExprFunction& f, std::span<const Tensor> inputs,
                           const MatmulOptions& options, const Stream& stream) {
  detail::OpName named("sparse::matmul_transposed_out");
  const Tensor right = stand_in(given_one(w)).mT();
  const MatrixOperand operand(right);
  MatmulCall c = detail::check_matmul(&out, a, operand, f, inputs, options);
  detail::check_matmul_inputs(c);
  check_apart(c, w);
  run(c, w, true, detail::resolve_stream(stream, *c.runtime, kOp));
}

Tensor scaled_matmul(const SemiStructured& w, const Tensor& b, const Tensor& scale_w, const Tensor& scale_b, const linalg::ScaledMatmulOptions& options,
                     const Stream& stream) {
  detail::OpName named("sparse::scaled_matmul");
  return detail::scaled_by(
      linalg::product_dtype(w.dtype(), b.dtype()), scale_w, scale_b, options, "sparse::scaled_matmul",
      [&](const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& plain) { return matmul(w, b, f, inputs, plain, stream); });
}
void scaled_matmul_out(const Tensor& out, const SemiStructured& w, const Tensor& b, const Tensor& scale_w, const Tensor& scale_b,
                       const linalg::ScaledMatmulOptions& options, const Stream& stream) {
  detail::OpName named("sparse::scaled_matmul_out");
  detail::scaled_by(linalg::product_dtype(w.dtype(), b.dtype()), scale_w, scale_b, {.bias = options.bias, .dtype = out.dtype(), .numerics = options.numerics},
                    "sparse::scaled_matmul", [&](const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& plain) {
                      matmul_out(out, w, b, f, inputs, {.numerics = plain.numerics}, stream);
                      return out;
                    });
}
Tensor scaled_matmul_transposed(const Tensor& a, const SemiStructured& w, const Tensor& scale_a, const Tensor& scale_w,
                                const linalg::ScaledMatmulOptions& options, const Stream& stream) {
  detail::OpName named("sparse::scaled_matmul_transposed");
  return detail::scaled_by(
      linalg::product_dtype(a.dtype(), w.dtype()), scale_a, scale_w, options, "sparse::scaled_matmul_transposed",
      [&](const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& plain) { return matmul_transposed(a, w, f, inputs, plain, stream); });
}

void scaled_matmul_transposed_out(const Tensor& out, const Tensor& a, const SemiStructured& w, const Tensor& scale_a, const Tensor& scale_w,
                                  const linalg::ScaledMatmulOptions& options, const Stream& stream) {
  detail::OpName named("sparse::scaled_matmul_transposed_out");
  detail::scaled_by(linalg::product_dtype(a.dtype(), w.dtype()), scale_a, scale_w, {.bias = options.bias, .dtype = out.dtype(), .numerics = options.numerics},
                    "sparse::scaled_matmul_transposed", [&](const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& plain) {
                      matmul_transposed_out(out, a, w, f, inputs, {.numerics = plain.numerics}, stream);
                      return out;
                    });
}

Tensor linear(const Tensor& x, const SemiStructured& w, const Tensor& bias, const linalg::LinearOptions& options, const Stream& stream) {
  detail::OpName named("sparse::linear");
  const std::int64_t out = w.sizes()[0];
  return detail::linear_by(x, w.dtype(), out, bias, options, "sparse::linear", [&](const Tensor& rows, const ExprFunction& f, std::span<const Tensor> inputs) {
    return matmul_transposed(rows, w, f, inputs, {.dtype = options.dtype, .numerics = options.numerics}, stream);
  });
}

void linear_out(const Tensor& out, const Tensor& x, const SemiStructured& w, const Tensor& bias, const linalg::LinearOptions& options, const Stream& stream) {
  detail::OpName named("sparse::linear_out");
  const Tensor target = x.rank() == 1 ? detail::row_of(out) : out;
  detail::linear_by(x, w.dtype(), w.sizes()[0], bias, options, "sparse::linear",
                    [&](const Tensor& rows, const ExprFunction& f, std::span<const Tensor> inputs) {
                      matmul_transposed_out(target, rows.rank() == 1 ? rows.unsqueeze(0) : rows, w, f, inputs, {.numerics = options.numerics}, stream);
                      return target;
                    });
}

linalg::LinearGradients linear_backward(const Tensor& grad, const Tensor& x, const SemiStructured& w, const Tensor& bias, const LinearBackwardOptions& options,
                                        const Stream& stream) {
  detail::OpName named("sparse::linear_backward");
  constexpr const char* kBackward = "sparse::linear_backward";
  detail::check_plain_float(given_one(w).dtype(), "the weight", kBackward);
  const std::int64_t out = w.sizes()[0], in = w.sizes()[1];
  if (!options.transposed.empty() && !(options.transposed.sizes() == Dims{in, out}))
    throw Error(ErrorCode::invalid_shape, kBackward,
                fmt::format("the transposed weight must be one of {}, got {}", to_string(w.sizes()), to_string(options.transposed.sizes())));
  Tensor rows = x.rank() == 1 ? x.unsqueeze(0) : x, g = x.rank() == 1 ? grad.unsqueeze(0) : grad;
  linalg::LinearGradients result;
  const MatmulOptions plain{.numerics = options.numerics};
  g = detail::linear_sums_backward(
      g, x.dtype(), bias, {.activation = options.activation},
      [&](DType product) { return matmul_transposed(rows, w, {.dtype = product, .numerics = options.numerics}, stream); }, &result.bias, stream);
  const Tensor of_x =
      options.transposed.empty() ? linalg::matmul(g, decompress(w, stream), plain, stream) : matmul_transposed(g, options.transposed, plain, stream);
  result.x = of_x.reshape(x.sizes());
  std::int64_t count = 1;
  for (int d = 0; d + 1 < g.rank(); ++d) count *= g.size(d);
  const Tensor of_w = linalg::matmul(g.contiguous(stream).reshape({count, out}).mT(), rows.contiguous(stream).reshape({count, in}), plain, stream);
  result.weight = options.masked ? apply_mask(of_w, mask_of(w, stream), stream) : of_w;
  return result;
}

void linear_backward_out(const linalg::LinearGradients& out, const Tensor& grad, const Tensor& x, const SemiStructured& w, const Tensor& bias,
                         const LinearBackwardOptions& options, const Stream& stream) {
  detail::OpName named("sparse::linear_backward_out");
  detail::store_linear(out, linear_backward(grad, x, w, bias, options, stream), "sparse::linear_backward", stream);
}

Tensor mask_of(const SemiStructured& w, const Stream& given) {
  detail::OpName named("sparse::mask_of");
  const Tensor& values = given_one(w).values();
  Stream stream = detail::resolve_stream(given, values.storage()->runtime(), "sparse::mask_of");
  const Tensor ones = full(values.sizes(), 1, {.dtype = DType::i8, .device = stream.device()}, stream);
  return decompress(SemiStructured(ones, w.metadata(), w.sizes()[1]), stream).to(DType::boolean, {}, stream);
}
void mask_of_out(const Tensor& out, const SemiStructured& w, const Stream& stream) {
  detail::OpName named("sparse::mask_of_out");
  detail::store(out, mask_of(w, stream), "sparse::mask_of", stream);
}

}}}  // namespace clutch::v0::sparse
