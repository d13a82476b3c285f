// SPDX-License-Identifier: Apache-2.0
#include <clutch/complex.hpp>
#include <clutch/ops/fill.hpp>

#include "encode/meaning.hpp"
#include "ops/fill_plan.hpp"
#include "program/cl_type.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

// validate ----------------------------------------------------------------------------------------------------------

Runtime& validate(const Tensor& self, double value, const char* op) {
  std::array<const Tensor*, 1> tensors{&self};
  Runtime& runtime = common_runtime(tensors, op);
  if (is_packed(self.dtype()) && (value != 0 || !self.is_contiguous()))
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("a tensor of {} must be contiguous and be set to 0, got another fill", name(self.dtype())));
  check_no_self_overlap(self, op);
  return runtime;
}

void validate_arange(const Tensor& self) {
  DType d = self.dtype();
  bool fine = is_integral(d) || (is_floating(d) && bits(d) >= 16);
  if (!fine) throw Error(ErrorCode::invalid_dtype, "arange_", fmt::format("dtype must be f64, f32, f16, bf16 or an integer, got {}", name(d)));
}

// select ------------------------------------------------------------------------------------------------------------

std::string always(const DeviceTraits&, const FillProblem& p) { return p.arange ? "the fill must be of one value, got a range" : ""; }

constexpr std::array<Implementation<FillProblem>, 3> kImplementations{{
    {"fill_contiguous", [](const DeviceTraits& t, const FillProblem& p) { return p.layout == Layout::contiguous ? always(t, p) : needs_contiguous(p.layout); }},
    {"fill_strided", always},
    {"fill_arange",
     [](const DeviceTraits& t, const FillProblem& p) -> std::string {
       if (!p.arange) return "the fill must be a range, got one value";
       return refuses_fp64(t, p.dtype == DType::f64);
     }},
}};

}  // namespace

std::span<const Implementation<FillProblem>> fill_implementations() { return kImplementations; }

KernelPlan select(const DeviceTraits& traits, const FillProblem& p, std::string_view forced) {
  const auto& chosen = choose<FillProblem>(kImplementations, traits, p, forced, p.arange ? "arange_" : "fill_");
  bool contiguous = chosen.name == kImplementations[0].name;
  KernelPlan plan{.stem = "fill", .entry = chosen.name, .layout = contiguous ? Layout::contiguous : Layout::strided, .tuning = elementwise_tuning(traits)};
  if (contiguous) plan.tuning.tile *= 4;  // the tile of this entry counts bytes
  if (p.arange && !traits.fma_exact) plan.tuning.width = 1;
  set_common(plan.defines, traits, plan.tuning, 1, p.wide_index);
  if (p.arange) {
    plan.defines.set_type("T", p.dtype).set_text("T_NAME", name(p.dtype)).set("CLUTCH_IS_INTEGER", is_integral(p.dtype));
    plan.defines.set_text("ACC", is_integral(p.dtype) ? "ulong" : p.dtype == DType::f64 ? "double" : "float");
  } else {
    plan.defines.set_text("T", unsigned_cl_type(p.dtype));
  }
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

template <class Int>
std::uint64_t saturated(double v) {
  if (std::isnan(v)) return 0;
  constexpr auto kLeast = std::numeric_limits<Int>::min(), kMost = std::numeric_limits<Int>::max();
  Int whole = v <= static_cast<double>(kLeast) ? kLeast : v >= static_cast<double>(kMost) ? kMost : static_cast<Int>(v);
  return static_cast<std::uint64_t>(whole);
}

/// The stored bits of a complex value, repeated to 16 bytes.
std::array<std::uint8_t, 16> stored_bits(std::complex<double> v, DType dtype) {
  std::array<std::uint8_t, 16> result{};
  if (dtype == DType::c128) {
    std::memcpy(result.data(), &v, 16);
  } else {
    const std::complex<float> rounded(v);
    for (std::size_t at = 0; at < 16; at += 8) std::memcpy(result.data() + at, &rounded, 8);
  }
  return result;
}

/// The stored bits of a value, repeated to 16 bytes.
std::array<std::uint8_t, 16> stored_bits(double v, DType dtype) {
  if (is_complex(dtype)) return stored_bits(std::complex<double>(v), dtype);
  std::array<std::uint8_t, 16> result{};
  std::uint64_t word = 0;
  switch (dtype) {
    case DType::f64: word = std::bit_cast<std::uint64_t>(v); break;
    case DType::f32: word = std::bit_cast<std::uint32_t>(static_cast<float>(v)); break;
    case DType::i8: word = saturated<std::int8_t>(v); break;
    case DType::u8: word = saturated<std::uint8_t>(v); break;
    case DType::i16: word = saturated<std::int16_t>(v); break;
    case DType::i32: word = saturated<std::int32_t>(v); break;
    case DType::i64: word = saturated<std::int64_t>(v); break;
    case DType::u16: word = saturated<std::uint16_t>(v); break;
    case DType::u32: word = saturated<std::uint32_t>(v); break;
    case DType::u64: word = saturated<std::uint64_t>(v); break;
    case DType::boolean: word = v != 0; break;
    case DType::f6e2m3:
    case DType::f6e3m2:
    case DType::f4e2m1: return result;
    default: word = encode_small_float(v, dtype);
  }
  auto size = static_cast<std::size_t>(bits(dtype) / 8);
  for (std::size_t at = 0; at < 16; at += size) std::memcpy(result.data() + at, &word, size);
  return result;
}

template <class Number>
void fill(const Tensor& self, Number value, const FillOptions& options, const Stream& given) {
  Runtime& runtime = validate(self, std::real(value), "fill_");
  Stream stream = resolve_stream(given, runtime, "fill_");
  check_implementation(options.implementation, "fill_", kImplementations);
  if (self.numel() == 0) return;
  if constexpr (std::is_same_v<Number, double>)
    if (by_plugin("fill_", options.implementation, {&self, &value, &options, &stream}, stream)) return;
  ElementwiseWalk<1> walk = walk_of<1>(self.sizes(), {self.strides()});
  DType alike = dtype_of_size(self.dtype());
  if (walk.layout != Layout::contiguous || options.implementation == kImplementations[1].name) walk.layout = Layout::strided;
  if (walk.layout == Layout::contiguous) alike = DType::u8;
  const BuiltPlan& plan = plan_for(runtime, "fill", FillProblem{alike, walk.layout, walk.wide_index, false}, options.implementation);
  std::array<std::uint8_t, 16> pattern = stored_bits(value, self.dtype());
  Encoder encoder(stream, "fill_");
  encoder.output(self);
  if (plan.layout == Layout::contiguous) {
    walk.numel = self.nbytes();
    encoder.value(walk.numel).value(pattern, "pattern").value(static_cast<std::uint32_t>(worth_streaming(claimed_traits(runtime.device()), self.nbytes())));
    encoder.means(meaning_of(Meaning::Known::fill));
  } else {
    encoder.value(walk.numel);
    walk.shape.bind(encoder);
    encoder.bytes(pattern.data(), static_cast<std::size_t>(bits(self.dtype()) / 8));
  }
  encoder.dispatch(plan.kernel, tile_geometry(tile_count(plan, walk), plan.tuning.local));
}

void arange(const Tensor& self, double start, double step, const FillOptions& options, const Stream& given) {
  Runtime& runtime = validate(self, 0, "arange_");
  validate_arange(self);
  Stream stream = resolve_stream(given, runtime, "arange_");
  check_implementation(options.implementation, "arange_", kImplementations);
  if (self.numel() == 0) return;
  // arange_ numbers elements in row-major order of the sizes, so dimensions keep their order.
  ElementwiseWalk<1> walk = walk_of<1>(self.sizes(), {self.strides()});
  walk.shape = {};
  walk.shape.rank() = std::max(self.rank(), 1);
  walk.shape.size[0] = walk.shape.stride[0][0] = 1;
  for (int d = 0; d < self.rank(); ++d) {
    walk.shape.size[self.rank() - 1 - d] = self.sizes()[d];
    walk.shape.stride[0][self.rank() - 1 - d] = self.strides()[d];
  }
  const BuiltPlan& plan = plan_for(runtime, "fill", FillProblem{self.dtype(), Layout::strided, walk.wide_index, true}, options.implementation);
  Encoder encoder(stream, "arange_");
  encoder.output(self).value(walk.numel);
  walk.shape.bind(encoder);
  if (is_integral(self.dtype()))
    encoder.value(saturated<std::int64_t>(start), "start").value(saturated<std::int64_t>(step), "step");
  else if (self.dtype() == DType::f64)
    encoder.value(start, "start").value(step, "step");
  else
    encoder.value(static_cast<float>(start), "start").value(static_cast<float>(step), "step");
  encoder.dispatch(plan.kernel, tile_geometry(tile_count(plan, walk), plan.tuning.local));
}

}  // namespace
}  // namespace detail

void fill_(const Tensor& self, double value, const FillOptions& options, const Stream& stream) {
  detail::OpName named("fill_");
  detail::fill(self, value, options, stream);
}

void fill_(const Tensor& self, std::complex<double> value, const FillOptions& options, const Stream& stream) {
  detail::OpName named("fill_");
  if (self.defined() && !is_complex(self.dtype()))
    throw Error(ErrorCode::invalid_dtype, "fill_", fmt::format("a tensor that is set to a complex number must be c64 or c128, got {}", name(self.dtype())));
  detail::fill(self, value, options, stream);
}

void arange_(const Tensor& self, double start, double step, const FillOptions& options, const Stream& stream) {
  detail::OpName named("arange_");
  detail::arange(self, start, step, options, stream);
}

}}  // namespace clutch::v0
