// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/index.hpp>
#include <clutch/ops/nonzero.hpp>
#include <clutch/ops/sort.hpp>

#include "encode/args.hpp"
#include "encode/plugin_ops.hpp"
#include "index/args.h"
#include "ops/index_plan.hpp"
#include "ops/out_form.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/settings.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

constexpr const char* kOp = "index";

// validate ----------------------------------------------------------------------------------------------------------

/// A tensor of indices, which masks were made into, and the dimension that it counts along.
struct Counted {
  Tensor indices;
  int dim;
};

Runtime& validate(const Tensor& x, std::span<const Tensor> indices) {
  std::vector<const Tensor*> all{&x};
  int dims = 0;
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      ++dims;
      continue;
    }
    all.push_back(&t);
    const bool is_mask = t.dtype() == DType::boolean;
    if (!is_mask && t.dtype() != DType::i32 && t.dtype() != DType::i64)
      throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("indices must be i32, i64 or bool, got {}", name(t.dtype())));
    if (is_mask && t.rank() == 0) throw Error(ErrorCode::invalid_shape, kOp, "a mask must have a dimension or more, got rank 0");
    if (is_mask)
      for (int d = 0; d < t.rank() && x.defined() && dims + d < x.rank(); ++d)
        if (t.sizes()[d] != x.sizes()[dims + d])
          throw Error(ErrorCode::invalid_shape, kOp,
                      fmt::format("dimension {} of a mask must have the size {} of dimension {} of x, got {}", d, x.sizes()[dims + d], dims + d, t.sizes()[d]));
    dims += is_mask ? t.rank() : 1;
  }
  Runtime& runtime = common_runtime(all, kOp);
  if (all.size() == 1) throw Error(ErrorCode::invalid_argument, kOp, "there must be a defined tensor of indices, got none");
  if (dims > x.rank()) throw Error(ErrorCode::invalid_shape, kOp, fmt::format("indices must count along at most {} dimensions of x, got {}", x.rank(), dims));
  if (is_packed(x.dtype())) throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("x must have elements of whole bytes, got {}", name(x.dtype())));
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

/// Elements that an item adds up side by side: a vector of them where it has a core of its own.
int abreast(const ElementwiseTuning& tuning) { return tuning.local == 1 ? 16 : 1; }

constexpr std::array<std::string_view, 4> kEntries{"index_places", "index_take", "index_put", "index_add"};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const IndexProblem& p, std::string_view) {
  const bool adds = p.stage == IndexStage::add;
  if (std::string why = refuses_fp64(traits, adds && p.dtype == DType::f64); !why.empty()) throw Error(ErrorCode::not_supported, kOp, why);
  KernelPlan plan{.stem = "index", .entry = kEntries[static_cast<std::size_t>(p.stage)], .tuning = row_tuning(traits)};
  plan.defines.set_text("PLACE", p.wide_place ? "long" : "int");
  if (adds)
    plan.defines.set("WIDTH", 1)
        .set_text("T_NAME", name(p.dtype))
        .set_text("A", !is_floating(p.dtype)   ? "long"
                       : p.dtype == DType::f64 ? "double"
                                               : "float")
        .set("CLUTCH_ABREAST", abreast(plan.tuning));
  else if (p.stage != IndexStage::places)
    plan.defines.set("CLUTCH_T_BYTES", bits(p.dtype) / 8);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// The stride of dimensions that can be joined to one; none if they cannot.
std::optional<std::int64_t> joined_stride(const Tensor& x, int begin, int end) {
  std::int64_t stride = 0, next = 0;
  for (int d = end - 1; d >= begin; --d) {
    if (x.sizes()[d] == 1) continue;
    if (next == 0)
      stride = x.strides()[d];
    else if (x.strides()[d] != next)
      return std::nullopt;
    next = x.strides()[d] * x.sizes()[d];
  }
  return stride;
}

/// What a call reads or writes: x with the dimensions that are counted along as neighbours, and the shape of the elements.
class IndexWalk {
 public:
  IndexWalk(Runtime& runtime, const Tensor& x, std::span<const Tensor> indices, const Stream& stream) : runtime_(runtime), stream_(stream) {
    std::vector<Counted> counted;
    int dim = 0;
    for (const Tensor& t : indices) {
      if (t.defined() && t.dtype() == DType::boolean) {
        const Tensor columns = nonzero(t, {}, stream);
        for (int d = 0; d < t.rank(); ++d) counted.push_back({columns.select(1, d), dim++});
      } else {
        if (t.defined()) counted.push_back({t, dim});
        ++dim;
      }
    }
    const bool neighbours = counted.back().dim - counted.front().dim + 1 == static_cast<int>(counted.size());
    const int before = neighbours ? counted.front().dim : 0;
    Dims of_view, strides;
    auto take = [&](int d) { of_view.push_back(x.sizes()[d]), strides.push_back(x.strides()[d]); };
    for (int d = 0; d < before; ++d) take(d);
    for (const Counted& c : counted) take(c.dim);
    for (int d = before; d < x.rank(); ++d)
      if (std::none_of(counted.begin(), counted.end(), [&](const Counted& c) { return c.dim == d; })) take(d);
    view = x.as_strided(of_view, strides);
    begin_ = before, end_ = before + static_cast<int>(counted.size());
    std::vector<Dims> shapes;
    for (const Counted& c : counted) {
      shapes.push_back(c.indices.sizes());
      indices_.push_back(c.indices);
    }
    shape_ = broadcast_shapes(shapes, kOp);
    for (int d = 0; d < begin_; ++d) sizes.push_back(of_view[d]);
    for (std::int64_t n : shape_) sizes.push_back(n);
    for (int d = end_; d < of_view.rank(); ++d) sizes.push_back(of_view[d]);
    elements = numel(sizes);
    args_.places = static_cast<std::uint64_t>(numel(shape_));
  }

  /// Whether dimensions of the view before, and those behind the ones that are counted along can be joined.
  bool joins() const { return joined_stride(view, 0, begin_) && joined_stride(view, end_, view.rank()); }

  /// The places of the elements in a tensor of the view's sizes, by its strides.
  Tensor places_in(const Tensor& x) {
    const std::int64_t extent = last_offset(x.rank(), x.sizes().begin(), x.strides().begin());
    wide_ = extent >= INT32_MAX || args_.places >= INT32_MAX || the_settings().index64.on();
    Encoder encoder(stream_, kOp);
    Tensor places = encoder.scratch({static_cast<std::int64_t>(args_.places)}, wide_ ? DType::i64 : DType::i32);
    const BuiltPlan& plan = of(IndexStage::places, DType::f32);
    const std::uint64_t chunk = share(plan);
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      const Tensor index = indices_[i].expand(shape_).contiguous(stream_);
      const int d = begin_ + static_cast<int>(i);
      encoder.inout(places).input(index);
      bind_args(encoder,
                IndexPlacesArgs{
                    .n = args_.places, .chunk = chunk, .size = x.sizes()[d], .stride = x.strides()[d], .first = i == 0, .is_i64 = index.dtype() == DType::i64});
      run(encoder, plan, args_.places, chunk, 0);
    }
    return places;
  }

  /// Binds the arguments of an entry over the elements of a tensor of the view's sizes, whose tensors are bound, and dispatches it.
  void dispatch(Encoder& encoder, IndexStage stage, const Tensor& x) {
    const BuiltPlan& plan = of(stage, x.dtype());
    args_.outer = args_.inner = 1;
    for (int d = 0; d < begin_; ++d) args_.outer *= static_cast<std::uint64_t>(x.sizes()[d]);
    for (int d = end_; d < x.rank(); ++d) args_.inner *= static_cast<std::uint64_t>(x.sizes()[d]);
    args_.outer_stride = *joined_stride(x, 0, begin_);
    args_.inner_stride = *joined_stride(x, end_, x.rank());
    args_.chunk = share(plan);
    args_.outside = outside(x.dtype());
    bind_args(encoder, args_);
    // All values may go to one element.
    run(encoder, plan, static_cast<std::uint64_t>(elements), args_.chunk, stage == IndexStage::add ? args_.places : 0);
  }

  Tensor view;
  Dims sizes;  ///< of the result, or of the values
  std::int64_t elements = 0;

 private:
  const BuiltPlan& of(IndexStage stage, DType dtype) const { return plan_for(runtime_, kOp, IndexProblem{stage, dtype, wide_}, {}); }
  /// Elements or places of a task: where an item has a core, enough to be worth the scheduling of a group.
  static std::uint64_t share(const BuiltPlan& plan) { return plan.tuning.local == 1 ? 8192 : 1; }
  /// Dispatches what is bound, for n elements in chunks, each with up to `more` iterations besides.
  void run(Encoder& encoder, const BuiltPlan& plan, std::uint64_t n, std::uint64_t chunk, std::uint64_t more) const {
    const std::uint64_t tasks = (n + chunk - 1) / chunk;
    const Geometry geometry = item_geometry(tasks, plan.tuning.local);
    check_loops(runtime_.traits(), kOp, tasks, geometry, 2 * static_cast<double>(chunk) + static_cast<double>(more));
    encoder.dispatch(plan.kernel, geometry);
  }
  /// Bits of NaN; of 0 for integers and booleans.
  static std::uint64_t outside(DType dtype) {
    switch (dtype) {
      case DType::f64:
      case DType::c128: return 0x7ff8000000000000;
      case DType::f32: return 0x7fc00000;
      case DType::c64: return 0x7fc000007fc00000;
      case DType::f16: return 0x7e00;
      case DType::bf16: return 0x7fc0;
      case DType::f8e4m3fn: return 0x7f;
      case DType::f8e5m2: return 0x7e;
      case DType::f8e8m0fnu: return 0xff;
      default: return 0;
    }
  }

  Runtime& runtime_;
  Stream stream_;
  std::vector<Tensor> indices_;
  Dims shape_;               ///< of the indices together
  int begin_ = 0, end_ = 0;  ///< dimensions of the view that are counted along
  bool wide_ = false;
  IndexArgs args_{};
};

/// Stores values into self by a plugin. False if none takes them, or if indices share memory with self.
bool put_by_plugin(const Tensor& self, std::span<const Tensor> indices, const Tensor& values, bool accumulate, const Stream& stream) {
  if (!has_plugin_implementations("index_put")) return false;
  for (const Tensor& t : indices)
    if (t.defined() && may_overlap(t, self)) return false;
  const IndexPutOptions options{.accumulate = accumulate};
  return by_plugin("index_put", {}, {&self, &self, &indices, &values, &options, &stream}, stream);
}

/// Stores values into self.
void put(Runtime& runtime, const Tensor& self, std::span<const Tensor> indices, const Tensor& values, bool accumulate, const Stream& stream) {
  IndexWalk walk(runtime, self, indices, stream);
  const Dims shapes[] = {walk.sizes, values.sizes()};
  if (values.dtype() != self.dtype())
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("values must have the dtype {} of self, got {}", name(self.dtype()), name(values.dtype())));
  if (accumulate && !is_plain_float(self.dtype()) && !is_integral(self.dtype()))
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("self must be f64, f32, f16, bf16 or an integer to accumulate, got {}", name(self.dtype())));
  if (!(broadcast_shapes(shapes, kOp) == walk.sizes))
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("values must broadcast to {}, got {}", to_string(walk.sizes), to_string(values.sizes())));
  if (walk.elements == 0) return;
  Tensor all = values.expand(walk.sizes).contiguous(stream);
  if (may_overlap(all, self)) all = all.clone(stream);
  if (put_by_plugin(self, indices, all, accumulate, stream)) return;
  const Tensor target = walk.joins() ? walk.view : walk.view.clone(stream);
  const Tensor places = walk.places_in(target);
  // One place is in order as it is.
  const Sorted sorted =
      places.numel() == 1 ? Sorted{places, zeros({1}, {.dtype = DType::i64, .device = stream.device()}, stream)} : sort(places, 0, {}, stream);
  Encoder encoder(stream, kOp);
  encoder.inout(target).input(all).input(sorted.values).input(sorted.indices);
  walk.dispatch(encoder, accumulate ? IndexStage::add : IndexStage::put, target);
  if (!walk.joins()) copy_(walk.view, target, {}, stream);
}

Runtime& validate_put(const Tensor& self, std::span<const Tensor> indices, const Tensor& values) {
  const Tensor* both[] = {&self, &values};
  common_runtime(both, kOp);
  return validate(self, indices);
}

}  // namespace
}  // namespace detail

Tensor index(const Tensor& x, std::span<const Tensor> indices, const Stream& given) {
  detail::OpName named("index");
  detail::Runtime& runtime = detail::validate(x, indices);
  const Stream stream = detail::resolve_stream(given, runtime, detail::kOp);
  detail::IndexWalk walk(runtime, x, indices, stream);
  Tensor out = empty(walk.sizes, {.dtype = x.dtype(), .device = stream.device()}, stream);
  if (walk.elements == 0) return out;
  if (detail::by_plugin("index", {}, {&out, &x, &indices, &stream}, stream)) return out;
  const Tensor source = walk.joins() ? walk.view : walk.view.contiguous(stream), places = walk.places_in(source);
  Encoder encoder(stream, detail::kOp);
  encoder.output(out).input(source).input(places);
  walk.dispatch(encoder, detail::IndexStage::take, source);
  return out;
}
void index_out(const Tensor& out, const Tensor& x, std::span<const Tensor> indices, const Stream& stream) {
  detail::OpName named("index_out");
  detail::store(out, index(x, indices, stream), detail::kOp, stream);
}

Tensor index_put(const Tensor& self, std::span<const Tensor> indices, const Tensor& values, const IndexPutOptions& options, const Stream& given) {
  detail::OpName named("index_put");
  detail::Runtime& runtime = detail::validate_put(self, indices, values);
  const Stream stream = detail::resolve_stream(given, runtime, detail::kOp);
  Tensor out = self.clone(stream);
  detail::put(runtime, out, indices, values, options.accumulate, stream);
  return out;
}
void index_put_out(const Tensor& out, const Tensor& self, std::span<const Tensor> indices, const Tensor& values, const IndexPutOptions& options,
                   const Stream& stream) {
  detail::OpName named("index_put_out");
  detail::store(out, index_put(self, indices, values, options, stream), detail::kOp, stream);
}
void index_put_(const Tensor& self, std::span<const Tensor> indices, const Tensor& values, const IndexPutOptions& options, const Stream& given) {
  detail::OpName named("index_put_");
  detail::Runtime& runtime = detail::validate_put(self, indices, values);
  detail::check_no_self_overlap(self, detail::kOp);
  detail::put(runtime, self, indices, values, options.accumulate, detail::resolve_stream(given, runtime, detail::kOp));
}

}}  // namespace clutch::v0
