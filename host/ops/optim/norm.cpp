// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/optim.hpp>

#include "ops/optim_plan.hpp"
#include "runtime/storage.hpp"

#include <array>

namespace clutch::inline v0 {
namespace detail {
namespace {

constexpr std::uint64_t kChunk = 8192;  ///< the same on all devices: it orders the sums

std::string computes(const DeviceTraits& traits, const NormProblem& p) { return refuses_fp64(traits, p.dtype == DType::f64); }
constexpr std::array<Implementation<NormProblem>, 3> kEntries{{{"optim_norm", computes}, {"optim_norm_total", computes}, {"optim_scale", computes}}};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const NormProblem& p, std::string_view forced) {
  const auto& chosen = kEntries[static_cast<std::size_t>(p.entry)];
  choose<NormProblem>(std::span(&chosen, 1), traits, p, forced, "optim::grad_norm");
  KernelPlan plan{.stem = "optim", .entry = chosen.name, .tuning = elementwise_tuning(traits)};
  plan.tuning.local = std::min<std::uint64_t>(plan.tuning.local, 64);
  set_common(plan.defines, traits, plan.tuning, 1, false);
  plan.defines.set_type("T", p.dtype).set_text("T_NAME", name(p.dtype));
  plan.defines.set("NORM", static_cast<int>(p.norm)).set("CHUNK", static_cast<std::int64_t>(kChunk));
  if (plan.tuning.local > 1) plan.defines.set("GROUPED", 1);
  return plan;
}

namespace {

struct Gradients {
  Runtime* runtime = nullptr;
  DType dtype = DType::f32;
  std::vector<const Tensor*> entries;
  std::vector<std::int64_t> sizes, first_chunk;
  std::vector<std::int32_t> chunks;
};

Gradients validate(std::span<const Tensor> grads, double max_norm, const char* op) {
  Gradients g;
  if (!(max_norm >= 0)) throw Error(ErrorCode::invalid_argument, op, fmt::format("max_norm is {}", max_norm));
  for (const Tensor& t : grads)
    if (t.defined()) g.entries.push_back(&t);
  if (g.entries.empty()) throw Error(ErrorCode::invalid_argument, op, "there are no gradients");
  g.runtime = &common_runtime(g.entries, op);
  g.dtype = g.entries[0]->dtype();
  if (g.dtype != DType::f32 && g.dtype != DType::f64 && g.dtype != DType::f16 && g.dtype != DType::bf16)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("a gradient is {}: f32, f64, f16 or bf16", name(g.dtype)));
  for (const Tensor* t : g.entries) {
    if (t->dtype() != g.dtype) throw Error(ErrorCode::invalid_dtype, op, fmt::format("gradients of {} and {}", name(g.dtype), name(t->dtype())));
    if (!t->is_contiguous()) throw Error(ErrorCode::invalid_shape, op, fmt::format("a gradient of {} is not contiguous", to_string(t->sizes())));
    g.first_chunk.push_back(static_cast<std::int64_t>(g.chunks.size() / 2));
    for (std::int64_t at = 0, chunk = 0; at < t->numel(); at += static_cast<std::int64_t>(kChunk), ++chunk)
      g.chunks.insert(g.chunks.end(), {static_cast<std::int32_t>(g.sizes.size()), static_cast<std::int32_t>(chunk)});
    g.sizes.push_back(t->numel());
  }
  g.first_chunk.push_back(static_cast<std::int64_t>(g.chunks.size() / 2));
  return g;
}

/// The norm; scales, too, on request.
optim::GradNorm norm_of(std::span<const Tensor> grads, double max_norm, const optim::ClipOptions& options, bool scales, const Stream& given, const char* op) {
  Gradients g = validate(grads, max_norm, op);
  Stream stream = resolve_stream(given, *g.runtime, op);
  const DType real = g.dtype == DType::f64 ? DType::f64 : DType::f32;
  TensorOptions like{.dtype = real, .device = stream.device()};
  auto plan_of = [&](NormEntry entry) -> const BuiltPlan& { return plan_for(*g.runtime, "optim_norm", NormProblem{g.dtype, options.norm_type, entry}, {}); };
  const BuiltPlan &partial_plan = plan_of(NormEntry::chunks), &total_plan = plan_of(NormEntry::total);
  std::int64_t count = g.first_chunk.back();
  if (g.chunks.empty()) g.chunks.resize(2);
  Tensor sizes = from_host(g.sizes, {static_cast<std::int64_t>(g.sizes.size())}, stream.device(), stream);
  Tensor chunks = from_host(g.chunks, {static_cast<std::int64_t>(g.chunks.size())}, stream.device(), stream);
  Encoder encoder(stream, op);
  Tensor partial = encoder.scratch({std::max<std::int64_t>(count, 1)}, real);
  optim::GradNorm result{empty({1}, like, stream), empty({1}, {.dtype = DType::f32, .device = stream.device()}, stream)};
  TensorTable table({{.access = scales ? Argument::Kind::inout : Argument::Kind::input}});
  const std::vector<std::size_t> ends = TensorTable::split(g.entries, 1);
  auto each_part = [&](const BuiltPlan& plan, auto&& bind) {
    std::size_t first = 0;
    for (std::size_t end : ends) {
      std::int64_t from = g.first_chunk[first], n = g.first_chunk[end] - from;
      if (n > 0) {
        encoder.table(table, std::span(g.entries).subspan(first, end - first)).input(sizes).input(chunks.slice(0, 2 * from, 2 * (from + n)));
        bind(from, n);
        encoder.value(static_cast<std::uint32_t>(n)).value(static_cast<std::uint32_t>(first)).value(std::uint32_t{1}).value(std::uint32_t{0});
        encoder.dispatch(plan.kernel, tile_geometry(static_cast<std::uint64_t>(n), plan.tuning.local));
      }
      first = end;
    }
  };
  each_part(partial_plan, [&](std::int64_t from, std::int64_t n) { encoder.output(partial.slice(0, from, from + n)); });
  encoder.output(result.norm, "norm").output(result.factor, "factor").input(partial).value(static_cast<std::uint32_t>(count));
  real == DType::f64 ? encoder.value(max_norm, "max_norm") : encoder.value(static_cast<float>(max_norm), "max_norm");
  encoder.dispatch(total_plan.kernel, tile_geometry(1, total_plan.tuning.local));
  if (scales) each_part(plan_of(NormEntry::scale), [&](std::int64_t, std::int64_t) { encoder.input(result.factor, "factor"); });
  return result;
}

}  // namespace
}  // namespace detail

namespace optim {

GradNorm grad_norm(std::span<const Tensor> grads, double max_norm, const ClipOptions& options, const Stream& stream) {
  return detail::norm_of(grads, max_norm, options, false, stream, "optim::grad_norm");
}
Tensor clip_grad_norm_(std::span<const Tensor> grads, double max_norm, const ClipOptions& options, const Stream& stream) {
  return detail::norm_of(grads, max_norm, options, true, stream, "optim::clip_grad_norm_").norm;
}

}  // namespace optim
}  // namespace clutch::inline v0
