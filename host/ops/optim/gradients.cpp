// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/gradients.hpp"

#include "encode/args.hpp"
#include "ops/out_form.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <array>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

using optim::NormType;
static_assert(static_cast<int>(NormType::two) == OPTIM_NORM_TWO && static_cast<int>(NormType::one) == OPTIM_NORM_ONE);
static_assert(static_cast<int>(NormType::inf) == OPTIM_NORM_INF);

struct Aid {
  const char* entry;
  int scales = 0, checks = 0;
};
constexpr Aid kAids[] = {{"optim_norm"},
                         {"optim_norm_total"},
                         {"optim_norms"},
                         {"optim_scale", OPTIM_SCALES_BY_FACTOR, 0},
                         {"optim_scale", OPTIM_SCALES_BY_INVERSE, 1},
                         {"optim_scale", OPTIM_SCALES_NOT, 1},
                         {"optim_update_scaler"},
                         {"optim_schedule"}};

std::string computes(const DeviceTraits& traits, const OptimAidProblem& p) { return refuses_fp64(traits, p.dtype == DType::f64); }

}  // namespace

KernelPlan select(const DeviceTraits& traits, const OptimAidProblem& p, std::string_view forced) {
  const Aid& aid = kAids[static_cast<std::size_t>(p.aid)];
  const std::array<Implementation<OptimAidProblem>, 1> chosen{{{aid.entry, computes}}};
  choose<OptimAidProblem>(chosen, traits, p, forced, "optim");
  KernelPlan plan{.stem = "optim", .entry = aid.entry, .tuning = elementwise_tuning(traits)};
  plan.tuning.local = std::min<std::uint64_t>(plan.tuning.local, 64);
  if (p.aid == OptimAid::schedule) plan.tuning.width = 1;
  set_common(plan.defines, traits, plan.tuning, 1, false);
  plan.defines.set_type("T", p.dtype).set_text("T_NAME", name(p.dtype));
  plan.defines.set("CLUTCH_NORM", static_cast<int>(p.norm)).set("CLUTCH_CHUNK", int{OPTIM_NORM_CHUNK});
  plan.defines.set("CLUTCH_SCALES", aid.scales).set("CLUTCH_CHECKS", aid.checks);
  if (plan.tuning.local > 1) plan.defines.set("CLUTCH_GROUPED", 1);
  return plan;
}

// validate ----------------------------------------------------------------------------------------------------------

void GradientList::set(std::span<const Tensor> grads, const char* op) {
  entries_.clear(), numbers_.clear();
  given_ = grads.size();
  for (std::size_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined()) entries_.push_back(&grads[i]), numbers_.push_back(i);
  if (entries_.empty()) throw Error(ErrorCode::invalid_argument, op, "there must be a gradient, got none");
  runtime_ = &common_runtime(entries_, op);
  dtype_ = entries_[0]->dtype();
  check_plain_float(dtype_, "a gradient", op);
  bool same = entries_.size() == sizes_.size();
  memory_.set_count(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Tensor& t = *entries_[i];
    if (t.dtype() != dtype_)
      throw Error(ErrorCode::invalid_dtype, op, fmt::format("gradients must be of one dtype, got {} and {}", name(dtype_), name(t.dtype())));
    if (!t.is_contiguous())
      throw Error(ErrorCode::invalid_shape, op,
                  fmt::format("a gradient must be contiguous, got {} with strides {}", to_string(t.sizes()), to_string(t.strides())));
    same = same && sizes_[i] == t.numel();
    memory_.set_gradient(i, t, numbers_[i]);
  }
  if (same) return;
  sizes_.clear();
  cached_.forget();
  for (const Tensor* t : entries_) sizes_.push_back(t->numel());
  chunks_ = cut_into_chunks(sizes_, OPTIM_NORM_CHUNK, 0);
}

// encode ------------------------------------------------------------------------------------------------------------

void GradientList::place(const Stream& stream) {
  ends_ = TensorTable::split(entries_, 1);
  placed_ = cached_.get(stream, [&] {
    std::vector<std::int32_t> chunks = chunks_.pairs;
    if (chunks.empty()) chunks.resize(2);
    return Placed{from_host(sizes_, {static_cast<std::int64_t>(sizes_.size())}, stream.device(), stream),
                  from_host(chunks, {static_cast<std::int64_t>(chunks.size())}, stream.device(), stream)};
  });
}

/// One launch for each part. bind_output(first chunk, chunks) binds the output after the table, bind_input() inputs after the table's sizes and chunks.
template <class BindOutput, class BindInput>
void GradientList::each_part(Encoder& encoder, TensorTable& table, const BuiltPlan& plan, Work of_element, BindOutput bind_output, BindInput bind_input) {
  std::size_t first = 0;
  for (std::size_t end : ends_) {
    std::int64_t from = chunks_.first[first], n = chunks_.first[end] - from;
    if (n > 0) {
      encoder.table(table, std::span(entries_).subspan(first, end - first));
      bind_output(from, n);
      encoder.input(placed_.sizes).input(placed_.chunks.slice(0, 2 * from, 2 * (from + n)));
      bind_input();
      bind_args(encoder, OptimChunkArgs{static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(first)});
      double elements = 0;
      for (std::size_t i = first; i < end; ++i) elements += static_cast<double>(sizes_[i]);
      encoder.flops(of_element.flops * elements).moves(of_element.passes * elements * bits(dtype_) / 8);
      encoder.dispatch(plan.kernel, tile_geometry(static_cast<std::uint64_t>(n), plan.tuning.local));
    }
    first = end;
  }
}

void GradientList::of_chunks(Encoder& encoder, TensorTable& table, NormType type, const Tensor& partial) {
  const BuiltPlan& plan = plan_for(*runtime_, "optim_aid", OptimAidProblem{dtype_, type, OptimAid::norm_chunks}, {});
  each_part(
      encoder, table, plan, {.flops = 2, .passes = 1}, [&](std::int64_t from, std::int64_t n) { encoder.output(partial.slice(0, from, from + n)); }, [] {});
}

optim::GradNorm GradientList::norm(double max_norm, const optim::ClipOptions& options, bool scales, const Stream& stream, const char* op) {
  if (!(max_norm >= 0)) throw Error(ErrorCode::invalid_argument, op, fmt::format("max_norm must be at least 0, got {}", max_norm));
  memory_.set_written({}, op);
  memory_.check(scales, std::array{MemoryRange(options.grad_scale, "grad_scale")}, op);
  const DType real = dtype_ == DType::f64 ? DType::f64 : DType::f32;
  auto plan_of = [&](OptimAid aid) -> const BuiltPlan& { return plan_for(*runtime_, "optim_aid", OptimAidProblem{dtype_, options.norm_type, aid}, {}); };
  const BuiltPlan& total_plan = plan_of(OptimAid::norm_total);
  place(stream);
  const std::int64_t count = chunks_.first.back();
  Encoder encoder(stream, op);
  Tensor partial = encoder.scratch({std::max<std::int64_t>(count, 1)}, real);
  optim::GradNorm result{empty({1}, {.dtype = real, .device = stream.device()}, stream), empty({1}, {.device = stream.device()}, stream)};
  TensorTable& table = scales ? written_ : read_;
  of_chunks(encoder, table, options.norm_type, partial);
  encoder.output(result.norm, "norm").output(result.factor, "factor").input(partial);
  encoder.input(options.grad_scale.defined() ? options.grad_scale : partial, "grad_scale");
  bind_args(encoder, OptimTotalArgs{static_cast<std::uint32_t>(count), options.grad_scale.defined()});
  real == DType::f64 ? encoder.value(max_norm, "max_norm") : encoder.value(static_cast<float>(max_norm), "max_norm");
  encoder.dispatch(total_plan.kernel, tile_geometry(1, total_plan.tuning.local));
  if (scales)
    // This kernel checks nothing, so it writes no `found`.
    each_part(
        encoder, table, plan_of(OptimAid::scale), {.flops = 1, .passes = 2}, [&](std::int64_t, std::int64_t) { encoder.input(result.factor); },
        [&] { encoder.input(result.factor, "factor"); });
  return result;
}

Tensor GradientList::norms(const optim::ClipOptions& options, const Stream& stream, const char* op) {
  memory_.set_written({}, op);
  memory_.check(false, std::array{MemoryRange(options.grad_scale, "grad_scale")}, op);
  const DType real = dtype_ == DType::f64 ? DType::f64 : DType::f32;
  const BuiltPlan& plan = plan_for(*runtime_, "optim_aid", OptimAidProblem{dtype_, options.norm_type, OptimAid::norms}, {});
  place(stream);
  // Gradients that are not there have no chunks.
  std::vector<std::int32_t> firsts;
  for (std::size_t i = 0, number = 0; number <= given_; ++number) {
    firsts.push_back(static_cast<std::int32_t>(chunks_.first[i]));
    if (i < entries_.size() && numbers_[i] == number) ++i;
  }
  const Tensor begins = from_host(firsts, {static_cast<std::int64_t>(firsts.size())}, stream.device(), stream);
  Tensor result = empty({static_cast<std::int64_t>(given_)}, {.dtype = real, .device = stream.device()}, stream);
  Encoder encoder(stream, op);
  Tensor partial = encoder.scratch({std::max<std::int64_t>(chunks_.first.back(), 1)}, real);
  of_chunks(encoder, read_, options.norm_type, partial);
  encoder.output(result).input(partial).input(begins).input(options.grad_scale.defined() ? options.grad_scale : partial, "grad_scale");
  bind_args(encoder, OptimNormsArgs{static_cast<std::uint32_t>(given_), options.grad_scale.defined()});
  encoder.dispatch(plan.kernel, tile_geometry(static_cast<std::uint64_t>(given_), plan.tuning.local));
  return result;
}

void GradientList::check(const Tensor& found, const Tensor& scale, const Stream& stream, const char* op) {
  bool scales = scale.defined();
  memory_.set_written({{found, "found_inf"}}, op);
  memory_.check(scales, std::array{MemoryRange(scale, "scale")}, op);
  const BuiltPlan& plan = plan_for(*runtime_, "optim_aid", OptimAidProblem{dtype_, {}, scales ? OptimAid::unscale : OptimAid::check}, {});
  place(stream);
  Encoder encoder(stream, op);
  each_part(
      encoder, scales ? written_ : read_, plan, {.flops = scales ? 1.0 : 0.0, .passes = scales ? 2 : 1},
      [&](std::int64_t, std::int64_t) { encoder.inout(found, "found_inf"); }, [&] { encoder.input(scales ? scale : placed_.sizes, "scale"); });
}

}  // namespace detail

namespace optim {
namespace {

GradNorm norm_of(std::span<const Tensor> grads, double max_norm, const ClipOptions& options, bool scales, const Stream& stream, const char* op) {
  detail::check_device_scalar(options.grad_scale, 1, "grad_scale", op);
  detail::GradientList list;
  list.set(grads, op);
  return list.norm(max_norm, options, scales, detail::resolve_stream(stream, list.runtime(), op), op);
}

}  // namespace

GradNorm grad_norm(std::span<const Tensor> grads, double max_norm, const ClipOptions& options, const Stream& stream) {
  detail::OpName named("optim::grad_norm");
  return norm_of(grads, max_norm, options, false, stream, "optim::grad_norm");
}
void grad_norm_out(const GradNorm& out, std::span<const Tensor> grads, double max_norm, const ClipOptions& options, const Stream& stream) {
  detail::OpName named("optim::grad_norm_out");
  const GradNorm made = grad_norm(grads, max_norm, options, stream);
  const detail::Stored all[] = {{out.norm, made.norm, "out.norm"}, {out.factor, made.factor, "out.factor"}};
  detail::store(all, "optim::grad_norm", stream);
}
Tensor clip_grad_norm_(std::span<const Tensor> grads, double max_norm, const ClipOptions& options, const Stream& stream) {
  detail::OpName named("optim::clip_grad_norm_");
  return norm_of(grads, max_norm, options, true, stream, "optim::clip_grad_norm_").norm;
}

Tensor grad_norms(std::span<const Tensor> grads, const ClipOptions& options, const Stream& stream) {
  constexpr const char* kOp = "optim::grad_norms";
  detail::OpName named(kOp);
  detail::check_device_scalar(options.grad_scale, 1, "grad_scale", kOp);
  detail::GradientList list;
  list.set(grads, kOp);
  return list.norms(options, detail::resolve_stream(stream, list.runtime(), kOp), kOp);
}
void grad_norms_out(const Tensor& out, std::span<const Tensor> grads, const ClipOptions& options, const Stream& stream) {
  detail::OpName named("optim::grad_norms_out");
  detail::store(out, grad_norms(grads, options, stream), "optim::grad_norms", stream);
}

}  // namespace optim
}}  // namespace clutch::v0
