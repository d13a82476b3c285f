// SPDX-License-Identifier: Apache-2.0
// Complex tensors as pairs of real ones: views of the parts, and map over them.
#include <clutch/complex.hpp>
#include <clutch/ops/copy.hpp>

#include "encode/elementwise.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

namespace clutch { inline namespace v0 {
namespace {

DType part_of(DType complex) { return complex == DType::c128 ? DType::f64 : DType::f32; }
DType complex_of(DType part) { return part == DType::f64 ? DType::c128 : DType::c64; }

void need_defined(const Tensor& x, const char* op) {
  if (!x.defined()) throw Error(ErrorCode::invalid_argument, op, "the tensor must be defined, got an undefined one");
}
void need_complex(const Tensor& x, const char* op) {
  need_defined(x, op);
  if (!is_complex(x.dtype())) throw Error(ErrorCode::invalid_dtype, op, fmt::format("the tensor must be c64 or c128, got {}", name(x.dtype())));
}
void need_part(const Tensor& x, const char* op) {
  need_defined(x, op);
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("a part must be f32 or f64, got {}", name(x.dtype())));
}

Dims doubled(const Dims& strides) {
  Dims result;
  for (std::int64_t s : strides) result.push_back(std::min(2 * s, kMaxNumel));
  return result;
}

/// A part of a complex tensor.
Tensor part(const Tensor& x, std::uint64_t number) {
  const DType dtype = part_of(x.dtype());
  return {x.storage(), x.byte_offset() + number * static_cast<std::uint64_t>(bits(dtype) / 8), x.sizes(), doubled(x.strides()), dtype};
}

/// The parts of all tensors, those of real ones being themselves.
std::vector<Tensor> parts_of(std::span<const Tensor> inputs) {
  std::vector<Tensor> parts;
  for (const Tensor& t : inputs) {
    if (!t.defined() || !is_complex(t.dtype())) {
      parts.push_back(t);
      continue;
    }
    parts.push_back(part(t, 0));
    parts.push_back(part(t, 1));
  }
  return parts;
}

}  // namespace

Tensor real(const Tensor& x) {
  detail::OpName named("real");
  need_defined(x, "real");
  return is_complex(x.dtype()) ? part(x, 0) : x;
}
Tensor imag(const Tensor& x) {
  detail::OpName named("imag");
  need_complex(x, "imag");
  return part(x, 1);
}

Tensor view_as_real(const Tensor& x) {
  detail::OpName named("view_as_real");
  need_complex(x, "view_as_real");
  Dims sizes = x.sizes(), strides = doubled(x.strides());
  sizes.push_back(2), strides.push_back(1);
  return {x.storage(), x.byte_offset(), sizes, strides, part_of(x.dtype())};
}

Tensor view_as_complex(const Tensor& x) {
  detail::OpName named("view_as_complex");
  constexpr const char* op = "view_as_complex";
  need_part(x, op);
  const int last = x.rank() - 1;
  if (x.rank() == 0 || x.sizes()[last] != 2 || (x.strides()[last] != 1 && x.numel() > 0))
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("the last dimension must have size 2 and stride 1, got sizes {} and strides {}", to_string(x.sizes()), to_string(x.strides())));
  Dims sizes, strides;
  const auto bytes = static_cast<std::uint64_t>(bits(x.dtype()) / 8);
  bool even = x.byte_offset() % (2 * bytes) == 0;
  for (int d = 0; d < last; ++d) {
    sizes.push_back(x.sizes()[d]), strides.push_back(x.strides()[d] / 2);
    even = even && (x.strides()[d] % 2 == 0 || x.sizes()[d] <= 1);
  }
  if (!even)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("strides and offset must be even, got strides {} and an offset of {} bytes", to_string(x.strides()), x.byte_offset()));
  return {x.storage(), x.byte_offset(), sizes, strides, complex_of(x.dtype())};
}

namespace {

Tensor joined(const Tensor* given, const Tensor& re, const Tensor& im, const Stream& stream, const char* op) {
  need_part(re, op), need_part(im, op);
  if (re.dtype() != im.dtype())
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("the parts must be of one dtype, got {} and {}", name(re.dtype()), name(im.dtype())));
  const Tensor inputs[] = {re, im};
  return detail::map_complex(given, ComplexExpr(detail::expr_input(0, re.dtype()), detail::expr_input(1, re.dtype())), inputs,
                             {.dtype = {complex_of(re.dtype())}}, stream, op);
}

}  // namespace

Tensor complex(const Tensor& re, const Tensor& im, const Stream& stream) {
  detail::OpName named("complex");
  return joined(nullptr, re, im, stream, "complex");
}
void complex_out(const Tensor& out, const Tensor& re, const Tensor& im, const Stream& stream) {
  detail::OpName named("complex_out");
  joined(&out, re, im, stream, "complex_out");
}

Tensor conj(const Tensor& x, const MapOptions& options, const Stream& stream) {
  detail::OpName named("conj");
  need_defined(x, "conj");
  if (!is_complex(x.dtype())) return map([](Expr v) { return v; }, {x}, options, stream);
  return map_complex([](const ComplexExpr& z) { return conj(z); }, {x}, options, stream);
}
void conj_out(const Tensor& out, const Tensor& x, const MapOptions& options, const Stream& stream) {
  detail::OpName named("conj_out");
  need_defined(x, "conj_out");
  if (!is_complex(x.dtype()))
    return map_out(
        out, [](Expr v) { return v; }, {x}, options, stream);
  map_complex_out(
      out, [](const ComplexExpr& z) { return conj(z); }, {x}, options, stream);
}
void conj_(const Tensor& self, const MapOptions& options, const Stream& stream) {
  detail::OpName named("conj_");
  conj_out(self, self, options, stream);
}

ComplexExpr operator/(const ComplexExpr& a, const ComplexExpr& b) {
  const Expr by_re = abs(b.re()) >= abs(b.im());
  const Expr large = select(by_re, b.re(), b.im()), small = select(by_re, b.im(), b.re());
  const Expr none = (b.re() == 0) & (b.im() == 0);
  const Expr ratio = select(none, Expr(0), small / large), scale = 1 / (large + small * ratio);
  const Expr re = select(by_re, a.re() + a.im() * ratio, a.re() * ratio + a.im()), im = select(by_re, a.im() - a.re() * ratio, a.im() * ratio - a.re());
  return {select(none, a.re() / abs(b.re()), re * scale), select(none, a.im() / abs(b.re()), im * scale)};
}

Expr abs(const ComplexExpr& z) {
  const Expr x = abs(z.re()), y = abs(z.im()), large = max(x, y), ratio = min(x, y) / large;
  const Expr length = select(large == 0, large, large * sqrt(ratio * ratio + 1));
  return select(isinf(x) | isinf(y), Expr(std::numeric_limits<double>::infinity()), length);
}

ComplexExpr exp(const ComplexExpr& z) {
  const Expr size = exp(z.re()), flat = z.im() == 0;
  return {select(flat, size, size * cos(z.im())), select(flat, z.im(), size * sin(z.im()))};
}

namespace detail {

std::vector<ComplexExpr> complex_inputs(std::span<const Tensor> inputs, std::string_view op) {
  const std::vector<DType> traced = traced_dtypes(parts_of(inputs), op);
  std::vector<ComplexExpr> values;
  int next = 0;
  auto input = [&] {
    const int k = next++;
    return expr_input(k, traced[static_cast<std::size_t>(k)]);
  };
  for (const Tensor& t : inputs) {
    const Expr re = input();
    values.emplace_back(re, is_complex(t.dtype()) ? input() : Expr(0));
  }
  return values;
}

Tensor map_complex(const Tensor* out, const ComplexResult& result, std::span<const Tensor> inputs, const MapOptions& options, const Stream& stream,
                   std::string_view op) {
  const std::vector<Tensor> parts = parts_of(inputs);
  const ExprFunction function(traced_dtypes(parts, op), result.parts);
  if (result.parts.size() == 1) {
    if (!out) return std::move(map(function, parts, options, stream)[0]);
    map_out(std::span(out, 1), function, parts, options, stream);
    return *out;
  }
  Tensor made;
  if (!out) {
    std::vector<const Tensor*> all;
    std::vector<Dims> shapes;
    for (const Tensor& t : inputs) all.push_back(&t), shapes.push_back(t.sizes());
    Runtime& runtime = common_runtime(all, op);
    const DType dtype = options.dtype.empty() ? result_type(all) : options.dtype[0];
    if (!is_complex(dtype)) throw Error(ErrorCode::invalid_dtype, op, fmt::format("the result must be c64 or c128, got {}", name(dtype)));
    const Stream on = resolve_stream(stream, runtime, op);
    made = empty(broadcast_shapes(shapes, op), {.dtype = dtype, .device = on.device()}, on);
  } else {
    made = *out;
    if (!made.defined() || !is_complex(made.dtype()))
      throw Error(made.defined() ? ErrorCode::invalid_dtype : ErrorCode::invalid_argument, op, "the output must be a tensor of c64 or c128, got another");
  }
  const Tensor outputs[] = {part(made, 0), part(made, 1)};
  MapOptions of_parts = options;
  of_parts.dtype = {};
  map_out(outputs, function, parts, of_parts, stream);
  return made;
}

}  // namespace detail
}}  // namespace clutch::v0
