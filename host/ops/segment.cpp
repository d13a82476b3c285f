// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/segment.hpp>

#include "ops/segment_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <limits>

namespace clutch::inline v0 {
namespace detail {
namespace {

/// One call: the reduction of data rows, with or without columns and values.
struct Segments {
  std::string_view op;
  Tensor data, offsets, columns, values;
  std::int64_t data_rows = 0;
  double empty = 0;
};

// validate ----------------------------------------------------------------------------------------------------------

double empty_value(SegmentReduce reduce) {
  switch (reduce) {
    case SegmentReduce::prod: return 1;
    case SegmentReduce::amin: return std::numeric_limits<double>::infinity();
    case SegmentReduce::amax: return -std::numeric_limits<double>::infinity();
    case SegmentReduce::mean: return std::numeric_limits<double>::quiet_NaN();
    default: return 0;
  }
}

void check_index(const Tensor& t, std::string_view what, std::string_view op) {
  if (t.dtype() != DType::i32 && t.dtype() != DType::i64)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("{} of {}, not i32 or i64", what, name(t.dtype())));
  if (t.rank() != 1) throw Error(ErrorCode::invalid_shape, op, fmt::format("{} of shape {}, not of rank 1", what, to_string(t.sizes())));
}

Runtime& validate(const Segments& s, const Tensor* out) {
  std::vector<const Tensor*> all{&s.data, &s.offsets};
  if (s.columns.defined()) all.push_back(&s.columns);
  if (s.values.defined()) all.push_back(&s.values);
  if (out) all.push_back(out);
  Runtime& runtime = common_runtime(all, s.op);
  check_index(s.offsets, "offsets", s.op);
  if (s.offsets.numel() < 1) throw Error(ErrorCode::invalid_shape, s.op, "offsets are empty: there is one more than segments");
  if (!is_floating(compute_dtype(s.data.dtype(), s.op)))
    throw Error(ErrorCode::invalid_dtype, s.op, fmt::format("takes f64, f32, f16 and bf16, not {}", name(s.data.dtype())));
  if (s.data.rank() < 1) throw Error(ErrorCode::invalid_shape, s.op, "data of rank 0");
  if (s.columns.defined()) check_index(s.columns, "columns", s.op);
  if (s.values.defined() && s.values.dtype() != s.data.dtype())
    throw Error(ErrorCode::invalid_dtype, s.op, fmt::format("values of {} beside a dense matrix of {}", name(s.values.dtype()), name(s.data.dtype())));
  if (s.values.defined() && !(s.values.sizes() == s.columns.sizes()))
    throw Error(ErrorCode::invalid_shape, s.op, fmt::format("values of shape {} for {} columns", to_string(s.values.sizes()), s.columns.numel()));
  if (!out) return runtime;
  Dims wanted = s.data.sizes();
  wanted[0] = s.offsets.numel() - 1;
  if (!(out->sizes() == wanted))
    throw Error(ErrorCode::invalid_shape, s.op, fmt::format("output with shape {} instead of {}", to_string(out->sizes()), to_string(wanted)));
  if (out->dtype() != s.data.dtype())
    throw Error(ErrorCode::invalid_dtype, s.op, fmt::format("output of {} instead of {}", name(out->dtype()), name(s.data.dtype())));
  check_no_self_overlap(*out, s.op);
  for (const Tensor* t : all)
    if (t != out) check_apart(*out, *t, s.op);
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const SegmentProblem& p) { return refuses_fp64(traits, p.dtype == DType::f64); }

constexpr std::array<Implementation<SegmentProblem>, 2> kImplementations{{
    {"segment_rows",
     [](const DeviceTraits& t, const SegmentProblem& p) { return p.rows ? computes(t, p) : std::string("the features of a row do not lie side by side"); }},
    {"segment_strided", computes},
}};

/// What kernels/common/combine.clh calls the operation.
int op_number(SegmentReduce reduce) {
  switch (reduce) {
    case SegmentReduce::prod: return 1;
    case SegmentReduce::amin: return 2;
    case SegmentReduce::amax: return 3;
    default: return 0;
  }
}

}  // namespace

KernelPlan select(const DeviceTraits& traits, const SegmentProblem& p, std::string_view forced) {
  const auto& chosen = choose<SegmentProblem>(kImplementations, traits, p, forced, "segment");
  KernelPlan plan{.stem = "segment", .entry = chosen.name, .tuning = row_tuning(traits)};
  set_lanes(plan, traits, p.dtype == DType::f64, 2, p.wide_index, 4);
  plan.defines.set("OP", op_number(p.reduce)).set("MEAN", p.reduce == SegmentReduce::mean).set_type("A", compute_dtype(p.dtype, "segment"));
  plan.defines.set("COLUMNS", p.has_columns).set("VALUES", p.has_values);
  plan.defines.set_text("OFFSET", p.offset == DType::i64 ? "long" : "int").set_text("COLUMN", p.column == DType::i64 ? "long" : "int");
  plan.defines.set_type("T", p.dtype).set_text("T_NAME", name(p.dtype));
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// The tensor as (rows, features) with any two strides; a dense copy if its trailing dimensions do not join.
Tensor as_matrix(const Tensor& t, const Stream& stream) {
  std::int64_t features = 1;
  bool joins = true;
  for (int d = t.rank() - 1; d > 0; --d) {
    joins = joins && (d == t.rank() - 1 || t.sizes()[d] == 1 || t.strides()[d] == t.strides()[t.rank() - 1] * features);
    features *= t.sizes()[d];
  }
  std::int64_t inner = t.rank() > 1 ? t.strides()[t.rank() - 1] : 1;
  if (joins) return t.as_strided({t.sizes()[0], features}, {t.strides()[0], inner});
  return t.contiguous(stream).as_strided({t.sizes()[0], features}, {features, 1});
}

void run(const Tensor& out, const Segments& s, Runtime& runtime, const SegmentOptions& options, const Stream& stream) {
  if (out.numel() == 0) return;
  Tensor data = as_matrix(s.data, stream), target = as_matrix(out, stream), offsets = s.offsets.contiguous(stream);
  bool copied = !target.shares_storage(out);
  if (copied) target = empty(target.sizes(), {.dtype = out.dtype(), .device = stream.device()}, stream);
  Tensor columns = s.columns.defined() ? s.columns.contiguous(stream) : offsets, values = s.values.defined() ? s.values.contiguous(stream) : data;
  std::int64_t features = data.sizes()[1];
  SegmentProblem p{.dtype = data.dtype(),
                   .offset = offsets.dtype(),
                   .column = s.columns.defined() ? columns.dtype() : DType::i64,
                   .reduce = options.reduce,
                   .has_columns = s.columns.defined(),
                   .has_values = s.values.defined()};
  p.rows = (data.strides()[1] == 1 && target.strides()[1] == 1) || features == 1;
  auto reaches = [](const Tensor& t) { return last_offset(2, t.sizes().begin(), t.strides().begin()) + 64 >= INT32_MAX; };
  p.wide_index = the_settings().index64.on() || reaches(data) || reaches(target);
  const BuiltPlan& plan = plan_for(runtime, "segment", p, options.implementation);
  auto n = static_cast<std::uint64_t>(target.sizes()[0]), entries = static_cast<std::uint64_t>(s.columns.defined() ? columns.numel() : data.sizes()[0]);
  // A chunk is about 8192 elements read where a group is a thread: what it takes outweighs its scheduling.
  std::uint64_t each = std::max<std::uint64_t>(static_cast<std::uint64_t>(features) * (entries / n + 1), 1);
  std::uint64_t chunk = plan.tuning.local == 1 ? std::clamp<std::uint64_t>(8192 / each, 1, 1024) : 1;
  bool by_rows = plan.entry == "segment_rows";
  std::uint64_t items = by_rows ? (n + chunk - 1) / chunk : n * static_cast<std::uint64_t>(features);
  Encoder encoder(stream, s.op == "spmm" ? "spmm" : "segment_reduce");
  encoder.value(n).value(static_cast<std::uint64_t>(features)).value(entries).value(static_cast<std::uint64_t>(s.data_rows)).value(chunk);
  encoder.value(target.strides()[0]).value(target.strides()[1]).value(data.strides()[0]).value(data.strides()[1]).value(static_cast<float>(s.empty));
  encoder.output(target).input(data).input(offsets).input(columns).input(values);
  encoder.dispatch(plan.kernel, item_geometry(items, plan.tuning.local));
  if (copied) copy_(out, target.reshape(out.sizes()), {}, stream);
}

Tensor made(const Segments& s, const SegmentOptions& options, const Stream& given) {
  Runtime& runtime = validate(s, nullptr);
  Stream stream = resolve_stream(given, runtime, s.op);
  Dims sizes = s.data.sizes();
  sizes[0] = s.offsets.numel() - 1;
  Tensor out = empty(sizes, {.dtype = s.data.dtype(), .device = stream.device()}, stream);
  run(out, s, runtime, options, stream);
  return out;
}
void into(const Tensor& out, const Segments& s, const SegmentOptions& options, const Stream& given) {
  Runtime& runtime = validate(s, &out);
  run(out, s, runtime, options, resolve_stream(given, runtime, s.op));
}

Segments segments_of(const Tensor& data, const Tensor& offsets, SegmentReduce reduce) {
  return {.op = "segment_reduce",
          .data = data,
          .offsets = offsets,
          .data_rows = data.defined() && data.rank() > 0 ? data.sizes()[0] : 0,
          .empty = empty_value(reduce)};
}
Segments product_of(const sparse::Csr& a, const Tensor& b) {
  if (!a.columns.defined() || !b.defined()) throw Error(ErrorCode::invalid_argument, "spmm", "a tensor is undefined");
  if (b.rank() != 2 || b.sizes()[0] != a.width)
    throw Error(ErrorCode::invalid_shape, "spmm", fmt::format("a dense matrix of shape {} for one of {} columns", to_string(b.sizes()), a.width));
  return {.op = "spmm", .data = b, .offsets = a.offsets, .columns = a.columns, .values = a.values, .data_rows = a.width};
}

}  // namespace
}  // namespace detail

Tensor segment_reduce(const Tensor& data, const Tensor& offsets, const SegmentOptions& options, const Stream& stream) {
  return detail::made(detail::segments_of(data, offsets, options.reduce), options, stream);
}
void segment_reduce_out(const Tensor& out, const Tensor& data, const Tensor& offsets, const SegmentOptions& options, const Stream& stream) {
  detail::into(out, detail::segments_of(data, offsets, options.reduce), options, stream);
}

namespace sparse {
Tensor spmm(const Csr& a, const Tensor& b, const SegmentOptions& options, const Stream& stream) {
  return detail::made(detail::product_of(a, b), options, stream);
}
void spmm_out(const Tensor& out, const Csr& a, const Tensor& b, const SegmentOptions& options, const Stream& stream) {
  detail::into(out, detail::product_of(a, b), options, stream);
}
}  // namespace sparse

}  // namespace clutch::inline v0
