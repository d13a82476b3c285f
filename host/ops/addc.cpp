// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/addc.hpp>
#include <clutch/ops/copy.hpp>

#include "encode/plugin_ops.hpp"
#include "expr/node.hpp"
#include "ops/addc_plan.hpp"
#include "ops/map_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <cmath>

namespace clutch { inline namespace v0 {
namespace detail {
static_assert(static_cast<int>(AddcOrder::fma_of_quotient) == ADDC_FMA_OF_QUOTIENT && static_cast<int>(AddcOrder::product_first) == ADDC_PRODUCT_FIRST &&
              static_cast<int>(AddcOrder::unfused) == ADDC_UNFUSED);
namespace {

struct Arguments {
  const Tensor* out;  // null: allocate a new tensor
  const Tensor* input;
  const Tensor* tensor1;
  const Tensor* tensor2;
  AddcOp op;
  const char* name;
};

struct Checked {
  Runtime* runtime;
  Dims sizes;
  DType dtype;
};

// validate ----------------------------------------------------------------------------------------------------------

bool is_whole(DType dtype) { return is_integral(dtype) || kind(dtype) == DTypeKind::boolean; }

void check_dtype(const Arguments& a, DType dtype) {
  auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::invalid_dtype, a.name,
                fmt::format("{} (input {}, tensor1 {}, tensor2 {})", why, name(a.input->dtype()), name(a.tensor1->dtype()), name(a.tensor2->dtype())));
  };
  if (a.op == AddcOp::quotient && is_whole(a.tensor1->dtype()) && is_whole(a.tensor2->dtype()))
    refuse("tensor1 or tensor2 must be floating, as integer division is not offered, got integers");
  if (is_complex(dtype)) refuse("dtypes must be real, got complex ones");
  if (kind(dtype) == DTypeKind::boolean) refuse("the result must be a number, got booleans");
  if (is_floating(dtype) && bits(dtype) < 16) refuse(fmt::format("dtypes must be of 16 bits and more, got {}; cast it first", name(dtype)));
}

/// PyTorch's rule for out=: a result may be narrowed within its kind, but not converted to a lower kind.
bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_whole(to)) return false;
  return !(is_integral(from) && kind(to) == DTypeKind::boolean);
}

Checked validate(const Arguments& a) {
  std::array<const Tensor*, 4> tensors{a.input, a.tensor1, a.tensor2, a.out ? a.out : a.input};
  Checked c;
  c.runtime = &common_runtime(tensors, a.name);
  if (a.input->dtype() == a.tensor1->dtype() && a.input->dtype() == a.tensor2->dtype())
    c.dtype = a.input->dtype();
  else
    c.dtype = result_type(std::span(tensors).first(3));
  check_dtype(a, c.dtype);
  if (a.input->sizes() == a.tensor1->sizes() && a.input->sizes() == a.tensor2->sizes()) {
    c.sizes = a.input->sizes();
  } else {
    std::array<Dims, 3> shapes{a.input->sizes(), a.tensor1->sizes(), a.tensor2->sizes()};
    c.sizes = broadcast_shapes(shapes, a.name);
  }
  if (!a.out) return c;
  if (!(a.out->sizes() == c.sizes))
    throw Error(ErrorCode::invalid_shape, a.name,
                fmt::format("the output must have the broadcast shape {}, got {}", to_string(c.sizes), to_string(a.out->sizes())));
  if (a.out->dtype() != c.dtype && !can_cast(c.dtype, a.out->dtype()))
    throw Error(ErrorCode::invalid_dtype, a.name, fmt::format("the output must be of a dtype that {} casts to, got {}", name(c.dtype), name(a.out->dtype())));
  if (is_packed(a.out->dtype()))
    throw Error(ErrorCode::invalid_dtype, a.name, fmt::format("the output must be of no packed dtype, got {}", name(a.out->dtype())));
  check_no_self_overlap(*a.out, a.name);
  check_overlap(*a.out, *a.input, a.name);
  check_overlap(*a.out, *a.tensor1, a.name);
  check_overlap(*a.out, *a.tensor2, a.name);
  return c;
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const AddcProblem& p) {
  if (std::string why = refuses_fp64(traits, p.dtype == DType::f64); !why.empty()) return why;
  return {};
}

constexpr std::array<Implementation<AddcProblem>, 3> kImplementations{{
    {"addc_contiguous",
     [](const DeviceTraits& t, const AddcProblem& p) { return p.layout != Layout::contiguous ? needs_contiguous(p.layout) : computes(t, p); }},
    {"addc_rows", [](const DeviceTraits& t, const AddcProblem& p) { return p.layout == Layout::strided ? std::string(kNeedsRows) : computes(t, p); }},
    {"addc_strided", computes},
}};

}  // namespace

std::span<const Implementation<AddcProblem>> addc_implementations() { return kImplementations; }

KernelPlan select(const DeviceTraits& traits, const AddcProblem& p, std::string_view forced) {
  const auto& chosen = choose<AddcProblem>(kImplementations, traits, p, forced, p.op == AddcOp::quotient ? "addcdiv" : "addcmul");
  KernelPlan plan{.stem = "addc", .entry = chosen.name, .layout = static_cast<Layout>(&chosen - kImplementations.data()), .tuning = elementwise_tuning(traits)};
  bool emulates = !traits.fma_exact || !traits.divide_exact;
  if (emulates && p.dtype != DType::f64)
    plan.note = fmt::format("{}{}",
                            traits.fma_exact ? ""
                            : traits.fp64    ? "fma by f64 "
                                             : "fma by integers ",
                            traits.divide_exact ? ""
                            : traits.fp64       ? "quotient by f64"
                                                : "quotient by integers");
  bool integer = is_integral(p.dtype);
  set_common(plan.defines, traits, plan.tuning, 4, p.wide_index);
  plan.defines.set_type("T", p.dtype).set_text("T_NAME", name(p.dtype));
  plan.defines.set_text("ACC", integer ? "ulong" : p.dtype == DType::f64 ? "double" : "float");
  plan.defines.set("CLUTCH_OP", static_cast<int>(p.op)).set("CLUTCH_IS_INTEGER", integer);
  plan.defines.set("CLUTCH_ORDER", integer ? ADDC_FMA_OF_QUOTIENT : static_cast<int>(p.order));  // integers are not rounded
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

void bind_value(Encoder& encoder, DType dtype, double value) {
  if (is_integral(dtype)) {
    // Truncates, as PyTorch does. Values beyond 64 bits are undefined in PyTorch and 0 here.
    encoder.value(static_cast<std::uint64_t>(std::fabs(value) < 9.2e18 ? static_cast<std::int64_t>(value) : 0), "value");
  } else if (dtype == DType::f64) {
    encoder.value(value, "value");
  } else {
    encoder.value(static_cast<float>(value), "value");
  }
}

/// The kernel's formula as a function of values; null for integers, whose `value` is not a number of that dtype.
std::shared_ptr<const Meaning> meaning_of(const Tensor& out, const Arguments& a, const AddcOptions& options, const Dims& sizes) {
  if (is_integral(out.dtype())) return nullptr;
  const DType traced = compute_dtype(out.dtype(), a.name);
  const Expr x = expr_input(0, traced), t1 = expr_input(1, traced), t2 = expr_input(2, traced), value = param(options.value);
  const bool quotient = a.op == AddcOp::quotient;
  Expr y = x;
  switch (options.order) {
    case AddcOrder::fma_of_quotient:
      if (quotient)
        y = fma(value, t1 / t2, x);
      else
        y = options.value == 1 ? fma(t1, t2, x) : fma(value, t1 * t2, x);
      break;
    case AddcOrder::product_first: y = quotient ? x + value * t1 / t2 : fma(value * t1, t2, x); break;
    case AddcOrder::unfused: y = x + value * (quotient ? t1 / t2 : t1 * t2); break;
  }
  const DType inputs[] = {traced, traced, traced};
  const ExprFunction f(inputs, std::span(&y, 1));
  return pointwise_meaning(f, f.body()->param_values, 1, 3, sizes);
}

void encode(Encoder& encoder, const BuiltPlan& plan, const Tensor& out, const Arguments& a, ElementwiseWalk<4> walk, double value, bool streaming) {
  if (plan.layout == Layout::rows) {  // units are vectors
    const int width = plan.tuning.width;
    walk.shape.set_units(out.dtype() == DType::f64 ? std::max(width / 2, 1) : width);
  }
  encoder.output(out, "out").input(*a.input, "input").input(*a.tensor1, "tensor1").input(*a.tensor2, "tensor2").value(walk.numel);
  if (plan.layout != Layout::contiguous) walk.shape.bind(encoder);
  bind_value(encoder, out.dtype(), value);
  if (plan.layout == Layout::contiguous) encoder.value(static_cast<std::uint32_t>(streaming));
  encoder.flops(addc_flops(static_cast<std::int64_t>(walk.numel))).dispatch(plan.kernel, tile_geometry(tile_count(plan, walk), plan.tuning.local));
}

void run(const Tensor& out, const Arguments& given, const Checked& c, const AddcOptions& options, const Stream& stream) {
  // Operands of another dtype are cast first, since PyTorch's promotion rounds to the result's dtype.
  Arguments a = given;
  std::array<Tensor, 3> casts;
  std::array<const Tensor**, 3> slots{&a.input, &a.tensor1, &a.tensor2};
  for (std::size_t i = 0; i < 3; ++i)
    if ((*slots[i])->dtype() != c.dtype) {
      casts[i] = cast(**slots[i], c.dtype, {}, stream);
      *slots[i] = &casts[i];
    }
  const std::string_view op = a.op == AddcOp::quotient ? "addcdiv" : "addcmul";
  if (by_plugin(op, options.implementation, {&out, a.input, a.tensor1, a.tensor2, &options, &stream}, stream)) return;
  ElementwiseWalk<4> walk = walk_of<4>(
      c.sizes, {out.strides(), broadcast_strides(*a.input, c.sizes), broadcast_strides(*a.tensor1, c.sizes), broadcast_strides(*a.tensor2, c.sizes)});
  AddcProblem problem{c.dtype, a.op, options.order, walk.layout, walk.wide_index};
  const BuiltPlan& plan = plan_for(*c.runtime, "addc", problem, options.implementation);
  std::uint64_t bytes = 4 * walk.numel * static_cast<std::uint64_t>(bits(c.dtype) / 8);
  Encoder encoder(stream, a.name);
  if (encoder.asks_for_meaning()) encoder.means(meaning_of(out, a, options, c.sizes));
  encode(encoder, plan, out, a, walk, options.value, worth_streaming(claimed_traits(c.runtime->device()), bytes));
}

Tensor addc(const Arguments& a, const AddcOptions& options, const Stream& given) {
  Checked c = validate(a);
  check_implementation(options.implementation, a.name, kImplementations);
  Stream stream = resolve_stream(given, *c.runtime, a.name);
  if (a.out && a.out->dtype() == c.dtype) {
    if (a.out->numel() > 0) run(*a.out, a, c, options, stream);
    return *a.out;
  }
  Tensor result = empty(c.sizes, {.dtype = c.dtype, .device = stream.device()}, stream);
  if (result.numel() > 0) run(result, a, c, options, stream);
  if (!a.out) return result;
  copy_(*a.out, result, {}, stream);
  return *a.out;
}

}  // namespace
}  // namespace detail

Tensor addcdiv(const Tensor& input, const Tensor& tensor1, const Tensor& tensor2, const AddcOptions& options, const Stream& stream) {
  detail::OpName named("addcdiv");
  return detail::addc({nullptr, &input, &tensor1, &tensor2, detail::AddcOp::quotient, "addcdiv"}, options, stream);
}
void addcdiv_out(const Tensor& out, const Tensor& input, const Tensor& tensor1, const Tensor& tensor2, const AddcOptions& options, const Stream& stream) {
  detail::OpName named("addcdiv_out");
  detail::addc({&out, &input, &tensor1, &tensor2, detail::AddcOp::quotient, "addcdiv"}, options, stream);
}
void addcdiv_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const AddcOptions& options, const Stream& stream) {
  detail::OpName named("addcdiv_");
  detail::addc({&self, &self, &tensor1, &tensor2, detail::AddcOp::quotient, "addcdiv_"}, options, stream);
}
Tensor addcmul(const Tensor& input, const Tensor& tensor1, const Tensor& tensor2, const AddcOptions& options, const Stream& stream) {
  detail::OpName named("addcmul");
  return detail::addc({nullptr, &input, &tensor1, &tensor2, detail::AddcOp::product, "addcmul"}, options, stream);
}
void addcmul_out(const Tensor& out, const Tensor& input, const Tensor& tensor1, const Tensor& tensor2, const AddcOptions& options, const Stream& stream) {
  detail::OpName named("addcmul_out");
  detail::addc({&out, &input, &tensor1, &tensor2, detail::AddcOp::product, "addcmul"}, options, stream);
}
void addcmul_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const AddcOptions& options, const Stream& stream) {
  detail::OpName named("addcmul_");
  detail::addc({&self, &self, &tensor1, &tensor2, detail::AddcOp::product, "addcmul_"}, options, stream);
}

}}  // namespace clutch::v0
