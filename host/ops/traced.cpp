// SPDX-License-Identifier: Apache-2.0
#include "ops/traced.hpp"
#include "runtime/storage.hpp"

#include <clutch/foreach.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/map.hpp>

#include <algorithm>
#include <utility>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

/// True if rank-0 f64 tensors are cast to f32, because they are the only floating tensors in f64.
bool lowers_scalars(std::span<const Tensor> inputs) {
  bool wide = false, dimensioned = false;
  for (const Tensor& t : inputs)
    if (is_floating(t.dtype()) && t.rank() > 0) dimensioned = true, wide = wide || t.dtype() == DType::f64;
  return dimensioned && !wide;
}

}  // namespace

void check_traced(const ExprFunction& f, std::span<const Tensor> inputs, std::string_view op, int first) {
  std::vector<DType> traced = traced_dtypes(inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DType taken = f.input_dtype(first + static_cast<int>(i));
    if (traced[i] != taken)
      throw Error(
          ErrorCode::invalid_dtype, op,
          fmt::format("input {} must be traced as {}, got one of dtype {}, which is traced as {}", i, name(taken), name(inputs[i].dtype()), name(traced[i])));
  }
}

std::vector<Tensor> as_traced(std::span<const Tensor> inputs, const Stream& stream) {
  std::vector<Tensor> result(inputs.begin(), inputs.end());
  if (!lowers_scalars(inputs)) return result;
  for (Tensor& t : result)
    if (t.dtype() == DType::f64) t = cast(t, DType::f32, {}, stream);
  return result;
}

int dim_of(std::int64_t dim, int rank, std::string_view op) {
  std::int64_t d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank) throw Error(ErrorCode::invalid_argument, op, fmt::format("a dimension must be in [-{}, {}), got {}", rank, rank, dim));
  return static_cast<int>(d);
}

DType sum_dtype(DType dtype, std::string_view op) {
  DType computed = compute_dtype(dtype, op);
  return is_floating(computed) ? computed : DType::i64;  // of u64, too: sums wrap alike
}

std::array<bool, kMaxRank> marked_dims(const Dims& dims, int rank, std::string_view op) {
  std::array<bool, kMaxRank> marked{};
  for (std::int64_t d : dims)
    if (std::exchange(marked[static_cast<std::size_t>(dim_of(d, std::max(rank, 1), op))], true))
      throw Error(ErrorCode::invalid_argument, op, fmt::format("each dimension must be given once, got {} twice", d));
  return marked;
}

bool has_positions(const ExprFunction& f) {
  return std::any_of(f.body()->steps.begin(), f.body()->steps.end(), [](const ExprStep& s) { return s.op == ExprOp::position; });
}

std::vector<Dims> position_strides(const ExprFunction& f, const Dims& sizes, std::string_view op) {
  std::vector<Dims> all;
  for (const ExprStep& s : f.body()->steps) {
    if (s.op != ExprOp::position) continue;
    if (s.index == kPlace) {
      all.push_back(contiguous_strides(sizes));
      continue;
    }
    int d = s.index < 0 ? s.index + sizes.rank() : s.index;
    if (d < 0 || d >= sizes.rank())
      throw Error(ErrorCode::invalid_argument, op, fmt::format("a position's dimension must be in [-{}, {}), got {}", sizes.rank(), sizes.rank(), s.index));
    all.push_back(Dims::filled(sizes.rank(), 0));
    all.back()[d] = 1;
  }
  return all;
}

int lanes_of(const ElementwiseTuning& tuning, const DeviceTraits& traits, bool has_wide) {
  if (emulates_rounding(traits)) return 1;
  return has_wide ? std::max(1, tuning.width / 2) : tuning.width;
}

void set_lanes(KernelPlan& plan, const DeviceTraits& traits, bool has_wide, int operands, bool wide_index, int shape_lanes) {
  if (emulates_rounding(traits)) plan.note = "one lane, as rounding is emulated";
  plan.tuning.width = lanes_of(plan.tuning, traits, has_wide);
  set_common(plan.defines, traits, plan.tuning, operands, wide_index);
  plan.defines.set("DWIDTH", plan.tuning.width).set("CLUTCH_RANK_LANES", shape_lanes);
}

void bind_lanes(Encoder& encoder, const std::int64_t* values, int lanes, bool wide_index) {
  if (wide_index) {
    encoder.bytes(values, static_cast<std::size_t>(lanes) * 8);
    return;
  }
  std::int32_t narrow[16];
  for (int i = 0; i < lanes; ++i) narrow[i] = static_cast<std::int32_t>(values[i]);
  encoder.bytes(narrow, static_cast<std::size_t>(lanes) * 4);
}

LineWalk::LineWalk(std::initializer_list<const Tensor*> tensors, const Dims& sizes, int dim) : operands(tensors.size()) {
  Dims others;
  std::vector<Dims> strides(tensors.size());
  for (int d = 0; d < sizes.rank(); ++d) {
    if (d == dim) continue;
    others.push_back(sizes[d]);
    for (std::size_t k = 0; k < tensors.size(); ++k) strides[k].push_back(tensors.begin()[k]->strides()[d]);
  }
  Layout unused;
  make_walk(others, strides, &rank, size.data(), stride.data(), &unused, &wide_index);
  for (const Tensor* t : tensors) wide_index = wide_index || last_offset(t->rank(), t->sizes().begin(), t->strides().begin()) >= INT32_MAX;
  lines = static_cast<std::uint64_t>(numel(others));
}

void LineWalk::bind(Encoder& encoder, std::uint8_t lanes) const {
  encoder.value(static_cast<std::int32_t>(rank));
  bind_lanes(encoder, size.data(), lanes, wide_index);
  for (std::size_t k = 0; k < operands; ++k) bind_lanes(encoder, stride.data() + 16 * k, lanes, wide_index);
}

void check_byte_selects(const DeviceTraits& traits, const ExprFunction& f, std::span<const DType> outputs, std::span<const DType> inputs, std::string_view op) {
  auto bytes = [](std::span<const DType> dtypes) { return std::count(dtypes.begin(), dtypes.end(), DType::i8); };
  if (!(traits.quirks & kQuirkByteSelectsCrash) || bytes(outputs) + bytes(inputs) < 2) return;
  const std::vector<ExprStep>& steps = f.body()->steps;
  auto is = [&](int k, ExprOp wanted) { return steps[static_cast<std::size_t>(k)].op == wanted; };
  for (const ExprStep& s : steps)
    if (s.op == ExprOp::select && is_integral(s.dtype) &&
        ((is(s.operands[1], ExprOp::constant) && is(s.operands[2], ExprOp::input)) ||
         (is(s.operands[1], ExprOp::input) && is(s.operands[2], ExprOp::constant))))
      throw Error(ErrorCode::not_supported, op,
                  "needs select() of i8 and a constant, the device has a compiler that crashes on it (quirk byte_selects_crash): use max, min or a param()");
}

void check_captured(const ExprBody& body, std::string_view op) {
  for (const Tensor& t : body.tensors)
    if (!t.defined()) throw Error(ErrorCode::invalid_argument, op, "a captured tensor must be set, got a parsed function's blank one; use with_captured()");
}

namespace {

constexpr std::array<const char*, 8> kParamNames{"param0", "param1", "param2", "param3", "param4", "param5", "param6", "param7"};

/// OpenCL C's name of a param's type.
const char* number_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return "double";
    case DType::f32: return "float";
    case DType::i64:
    case DType::u64: return "long";
    default: return "int";
  }
}

}  // namespace

void bind_extra(Encoder& encoder, const ExprBody& body, std::span<const double> params) {
  for (std::size_t i = 0; i < body.params.size(); ++i) {
    std::uint64_t bits = constant_bits(body.params[i], params[i]);
    // Little-endian, as all OpenCL hosts that we support.
    encoder.bytes(&bits, is_wide(body.params[i]) ? 8 : 4, number_type(body.params[i]), i < kParamNames.size() ? kParamNames[i] : "");
  }
  check_captured(body, "map");
  for (const Tensor& t : body.tensors) {
    encoder.input(t);
    for (int d = 0; d < t.rank(); ++d) encoder.value(t.sizes()[d]).value(t.strides()[d]);
  }
}

}  // namespace detail

std::vector<DType> traced_dtypes(std::span<const Tensor> inputs, std::string_view op) {
  bool lowers = detail::lowers_scalars(inputs);
  std::vector<DType> dtypes;
  for (const Tensor& t : inputs) {
    if (!t.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
    dtypes.push_back(lowers && t.dtype() == DType::f64 ? DType::f32 : detail::compute_dtype(t.dtype(), op));
  }
  return dtypes;
}

std::vector<DType> traced_dtypes(std::span<const std::span<const Tensor>> lists, std::string_view op) {
  std::vector<DType> dtypes;
  for (const auto& list : lists) {
    if (list.empty()) throw Error(ErrorCode::invalid_argument, op, "a list must have a tensor, got an empty one");
    for (const Tensor& t : list) {
      if (!t.defined()) throw Error(ErrorCode::invalid_argument, op, "a tensor must be defined, got an undefined one");
      const DType traced = detail::compute_dtype(t.dtype(), op);
      if (&t == list.data()) dtypes.push_back(traced);
      if (traced != dtypes.back())
        throw Error(ErrorCode::invalid_dtype, op,
                    fmt::format("tensors of a list must be traced alike, got {} and {}, which are traced as {} and {}", name(list[0].dtype()), name(t.dtype()),
                                name(dtypes.back()), name(traced)));
    }
  }
  return dtypes;
}

}}  // namespace clutch::v0
