// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/@STEM@.hpp>

#include "encode/plan.hpp"
#include "runtime/storage.hpp"

#include <array>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

struct @PASCAL@Problem {
  DType dtype = DType::f32;
  bool wide_index = false;
};

// validate

Runtime& validate(const Tensor& out, const Tensor& input) {
  std::array<const Tensor*, 2> tensors{&out, &input};
  Runtime& runtime = common_runtime(tensors, "@STEM@");
  for (const Tensor& t : {input, out})
    if (t.dtype() != DType::f32) throw Error(ErrorCode::invalid_dtype, "@STEM@", fmt::format("dtype must be f32, got {}", name(t.dtype())));
  if (!(out.sizes() == input.sizes())) {
    const std::string wanted = to_string(input.sizes()), given = to_string(out.sizes());
    throw Error(ErrorCode::invalid_shape, "@STEM@", fmt::format("the output must have the input's sizes {}, got {}", wanted, given));
  }
  check_no_self_overlap(out, "@STEM@");
  check_overlap(out, input, "@STEM@");
  return runtime;
}

// select

constexpr std::array<Implementation<@PASCAL@Problem>, 1> k@PASCAL@Implementations{{
    {"@STEM@_strided", [](const DeviceTraits&, const @PASCAL@Problem&) { return std::string(); }},
}};

KernelPlan select(const DeviceTraits& traits, const @PASCAL@Problem& p, std::string_view forced) {
  const auto& chosen = choose<@PASCAL@Problem>(k@PASCAL@Implementations, traits, p, forced, "@STEM@");
  KernelPlan plan{.stem = "@STEM@", .entry = chosen.name, .layout = Layout::strided, .tuning = elementwise_tuning(traits)};
  set_common(plan.defines, traits, plan.tuning, 2, p.wide_index);
  plan.defines.set_type("T", p.dtype);
  return plan;
}

// encode

void run(Runtime& runtime, const Tensor& out, const Tensor& input, const @PASCAL@Options& options, const Stream& stream) {
  if (out.numel() == 0) return;
  ElementwiseWalk<2> walk = walk_of<2>(out.sizes(), {out.strides(), broadcast_strides(input, out.sizes())});
  const BuiltPlan& plan = plan_for(runtime, "@STEM@", @PASCAL@Problem{input.dtype(), walk.wide_index}, options.implementation);
  Encoder encoder(stream, "@STEM@");
  encoder.output(out).input(input).value(walk.numel);
  walk.shape.bind(encoder);
  encoder.dispatch(plan.kernel, tile_geometry(tile_count(plan, walk), plan.tuning.local));
}

}  // namespace
}  // namespace detail

void @STEM@_out(const Tensor& out, const Tensor& input, const @PASCAL@Options& options, const Stream& stream) {
  detail::Runtime& runtime = detail::validate(out, input);
  detail::run(runtime, out, input, options, detail::resolve_stream(stream, runtime, "@STEM@"));
}

Tensor @STEM@(const Tensor& input, const @PASCAL@Options& options, const Stream& stream) {
  std::array<const Tensor*, 1> tensors{&input};
  Stream on = detail::resolve_stream(stream, detail::common_runtime(tensors, "@STEM@"), "@STEM@");
  Tensor out = empty(input.sizes(), {.dtype = input.dtype(), .device = on.device()}, on);
  @STEM@_out(out, input, options, on);
  return out;
}

}}  // namespace clutch::v0
