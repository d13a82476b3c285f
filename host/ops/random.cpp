// SPDX-License-Identifier: Apache-2.0
#include <clutch/complex.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/random.hpp>

#include "encode/generator.hpp"
#include "encode/plugin_ops.hpp"
#include "ops/random_plan.hpp"
#include "random/args.h"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"
#include "support/computed_number.hpp"

#include <array>
#include <cmath>
#include <numbers>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

struct Arguments {
  const char* name;
  bool normal;
  double scale, add;  // range and low, or standard deviation and mean
  std::optional<std::uint64_t> seed;
  Generator generator;
};

// validate ----------------------------------------------------------------------------------------------------------

Runtime& validate(const Tensor& self, const Arguments& a) {
  std::array<const Tensor*, 1> tensors{&self};
  Runtime& runtime = common_runtime(tensors, a.name);
  check_plain_float(self.dtype(), "the tensor", a.name);
  if (!std::isfinite(as_computed(a.scale, self.dtype())) || !std::isfinite(as_computed(a.add, self.dtype())) || a.scale < 0)
    throw Error(ErrorCode::invalid_argument, a.name,
                a.normal ? fmt::format("mean and stddev must be finite, stddev not negative, got {} and {}", a.add, a.scale)
                         : fmt::format("low and high must be finite, low not above high, got {} and {}", a.add, a.add + a.scale));
  check_no_self_overlap(self, a.name);
  if (!a.seed && !a.generator.empty() && &a.generator.impl()->runtime() != &runtime)
    throw Error(ErrorCode::device_mismatch, a.name, "the generator must be of the tensor's device and context, got one of another");
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& t, const RandomProblem& p) { return refuses_fp64(t, p.dtype == DType::f64); }

constexpr std::array<Implementation<RandomProblem>, 2> kImplementations{{
    {"random_uniform", [](const DeviceTraits& t,
                          const RandomProblem& p) { return p.normal ? std::string("the distribution must be uniform, got a normal one") : computes(t, p); }},
    {"random_normal", [](const DeviceTraits& t,
                         const RandomProblem& p) { return p.normal ? computes(t, p) : std::string("the distribution must be normal, got a uniform one"); }},
}};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const RandomProblem& p, std::string_view forced) {
  const auto& chosen = choose<RandomProblem>(kImplementations, traits, p, forced, p.normal ? "normal_" : "uniform_");
  KernelPlan plan{.stem = "random", .entry = chosen.name, .tuning = elementwise_tuning(traits)};
  plan.tuning.tile = std::max<std::uint64_t>(plan.tuning.tile / RANDOM_CHUNK_WORDS * RANDOM_CHUNK_WORDS, RANDOM_CHUNK_WORDS);
  bool emulates = emulates_rounding(traits);
  if (emulates) plan.tuning.width = 1;
  if (emulates && p.dtype != DType::f64) plan.note = traits.fp64 ? "fma and sqrt by f64" : "fma and sqrt by integers";
  set_common(plan.defines, traits, plan.tuning, 1, true);
  if (p.dtype == DType::f64) plan.defines.set("DWIDTH", plan.tuning.width);
  plan.defines.set_type("T", p.dtype).set_text("T_NAME", name(p.dtype)).set_text("ACC", p.dtype == DType::f64 ? "double" : "float");
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

void draw(const Tensor& out, Runtime& runtime, const Arguments& a, const Stream& stream) {
  const BuiltPlan& plan = plan_for(runtime, "random", RandomProblem{out.dtype(), a.normal}, {});
  Generator generator = a.generator;
  if (!a.seed && generator.empty()) generator = default_generator({}, stream);
  auto n = static_cast<std::uint64_t>(out.numel());
  Encoder encoder(stream, a.name);
  encoder.output(out, "out")
      .input(a.seed ? out : generator.impl()->state())
      .value(n)
      .value(a.seed.value_or(0), "seed")
      .value(static_cast<std::uint32_t>(!a.seed));
  if (out.dtype() == DType::f64)
    encoder.value(a.scale, "scale").value(a.add, "add");
  else
    encoder.value(static_cast<float>(a.scale), "scale").value(static_cast<float>(a.add), "add");
  // A product and a sum for each number; Box-Muller makes two by 7 operations. The generator's state is 16 bytes.
  encoder.flops((a.normal ? 5.5 : 2) * static_cast<double>(n)).moves(static_cast<double>(out.nbytes() + (a.seed ? 0 : 16)));
  std::uint64_t tiles = (n + plan.tuning.tile - 1) / plan.tuning.tile;
  encoder.dispatch(plan.kernel, tile_geometry(tiles, plan.tuning.local));
  if (a.seed) return;
  const Aside counts;
  generator.impl()->advance(random_blocks(n, out.dtype() == DType::f64), stream, a.name);
}

/// `options` are those of the op, which a plugin gets where the numbers are those of a seed: a generator's state is the library's.
template <class Options>
void fill(const Tensor& self, const Arguments& a, const Options& options, const Stream& given) {
  Runtime& runtime = validate(self, a);
  Stream stream = resolve_stream(given, runtime, a.name);
  if (self.numel() == 0) return;
  if (a.seed && by_plugin(a.name, {}, {&self, &options, &stream}, stream)) return;
  const bool direct = self.is_contiguous();
  const Tensor dense = direct ? self : empty(self.sizes(), {.dtype = self.dtype(), .device = stream.device()}, stream);
  draw(dense, runtime, a, stream);
  if (direct) return;
  const Aside copies;
  copy_(self, dense, {}, stream);
}

Tensor make(const Dims& sizes, const RandomOptions& options, const Stream& stream) {
  return empty(sizes, {.dtype = options.dtype, .device = options.device}, stream);
}

/// The numbers of a new tensor: of a complex one those of the parts, one element after another.
Tensor numbers_of(const Tensor& made) { return is_complex(made.dtype()) ? view_as_real(made.reshape({-1})) : made; }

}  // namespace
}  // namespace detail

void uniform_(const Tensor& self, const UniformOptions& o, const Stream& stream) {
  detail::OpName named("uniform_");
  detail::fill(self, {"uniform_", false, o.high - o.low, o.low, o.seed, o.generator}, o, stream);
}

void normal_(const Tensor& self, const NormalOptions& o, const Stream& stream) {
  detail::OpName named("normal_");
  detail::fill(self, {"normal_", true, o.stddev, o.mean, o.seed, o.generator}, o, stream);
}

Tensor rand(const Dims& sizes, const RandomOptions& o, const Stream& stream) {
  detail::OpName named("rand");
  Tensor result = detail::make(sizes, o, stream);
  uniform_(detail::numbers_of(result), {.seed = o.seed, .generator = o.generator}, stream);
  return result;
}

Tensor randn(const Dims& sizes, const RandomOptions& o, const Stream& stream) {
  detail::OpName named("randn");
  Tensor result = detail::make(sizes, o, stream);
  // The two parts of a complex number have half of its variance each.
  normal_(detail::numbers_of(result), {.stddev = is_complex(o.dtype) ? 1 / std::numbers::sqrt2 : 1, .seed = o.seed, .generator = o.generator}, stream);
  return result;
}

}}  // namespace clutch::v0
