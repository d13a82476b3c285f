// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/cumsum.hpp>

#include "cumsum/args.h"
#include "encode/args.hpp"
#include "encode/cost.hpp"
#include "ops/cumsum_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <array>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

// validate ----------------------------------------------------------------------------------------------------------

struct Checked {
  Runtime* runtime;
  int dim;
  DType dtype;  ///< of the result
};

Checked validate(const Tensor* out, const Tensor& x, int dim, const CumsumOptions& options) {
  std::vector<const Tensor*> all{&x};
  if (out) all.push_back(out);
  Checked c{&common_runtime(all, "cumsum"), dim_of(dim, x.rank(), "cumsum"), is_floating(x.dtype()) ? x.dtype() : DType::i64};
  c.dtype = one_dtype(options.dtype, "cumsum").value_or(c.dtype);
  if (out) c.dtype = out->dtype();
  if (sum_dtype(x.dtype(), "cumsum") != sum_dtype(c.dtype, "cumsum") || c.dtype == DType::boolean)
    throw Error(ErrorCode::invalid_dtype, "cumsum",
                fmt::format("x and the result must have dtypes that are accumulated in one type, got {} and {}; cast first", name(x.dtype()), name(c.dtype)));
  if (!out) return c;
  if (!(out->sizes() == x.sizes()))
    throw Error(ErrorCode::invalid_shape, "cumsum",
                fmt::format("the output must have the shape {} of x, got {}", to_string(x.sizes()), to_string(out->sizes())));
  check_no_self_overlap(*out, "cumsum");
  check_overlap(*out, x, "cumsum");
  return c;
}

// select ------------------------------------------------------------------------------------------------------------

/// Vectors of columns that an item takes side by side. More of them give long contiguous accesses; used where an item has a core of its own.
int abreast(const ElementwiseTuning& tuning) { return tuning.local == 1 ? 8 : 1; }

std::string computes(const DeviceTraits& traits, const CumsumProblem& p) { return refuses_fp64(traits, p.dtype == DType::f64); }

constexpr std::array<Implementation<CumsumProblem>, 2> kImplementations{{
    {"cumsum_columns",
     [](const DeviceTraits& t, const CumsumProblem& p) {
       return p.columns ? computes(t, p)
                        : fmt::format("lines must be eight or more of floats with stride 1 between them, got {}",
                                      is_floating(p.dtype) ? "fewer, or another stride" : name(p.dtype));
     }},
    {"cumsum_lines", computes},
}};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const CumsumProblem& p, std::string_view forced) {
  std::string_view entry = p.carries ? "cumsum_carries" : choose<CumsumProblem>(kImplementations, traits, p, forced, "cumsum").name;
  KernelPlan plan{.stem = "cumsum", .entry = entry, .tuning = row_tuning(traits)};
  DType accumulator = sum_dtype(p.dtype, "cumsum");
  set_lanes(plan, traits, is_wide(accumulator), 2, p.wide_index, p.rank_lanes);
  plan.defines.set_text("T_NAME", name(p.dtype))
      .set_text("O_NAME", name(p.output))
      .set_type("A", accumulator)
      .set("CLUTCH_X_BYTES", bits(p.dtype) / 8)
      .set("CLUTCH_ABREAST", abreast(plan.tuning));
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

void run(const Tensor& out, const Tensor& x, const Checked& c, const CumsumOptions& options, const Stream& stream) {
  check_implementation(options.implementation, "cumsum", kImplementations);
  if (out.numel() == 0) return;
  CumsumProblem p{.dtype = x.dtype(), .output = out.dtype()};
  const LineWalk walk({&out, &x}, x.sizes(), c.dim);
  p.wide_index = walk.wide_index;
  p.rank_lanes = rank_lanes(walk.rank);
  p.columns = is_floating(x.dtype()) && walk.stride[0] == 1 && walk.stride[16] == 1 && walk.size[0] >= 8;
  const BuiltPlan& plan = plan_for(*c.runtime, "cumsum", p, options.implementation);
  bool by_columns = plan.entry == "cumsum_columns";
  std::uint64_t n = walk.lines, m = static_cast<std::uint64_t>(x.sizes()[c.dim]), columns = static_cast<std::uint64_t>(walk.size[0]);
  std::uint64_t blocks = cumsum_blocks(m), panel = static_cast<std::uint64_t>(abreast(plan.tuning)) * static_cast<std::uint64_t>(plan.tuning.width);
  std::uint64_t lines = by_columns ? n / columns * cumsum_panels(columns, panel) : n;
  // Cuts long lines into blocks if there are few lines, or if groups have several items, each of which must get little work. Bits do not change.
  bool cut = blocks > 1 && (plan.tuning.local != 1 || lines < 16);
  Encoder encoder(stream, "cumsum");
  Tensor carries = encoder.scratch({cut ? static_cast<std::int64_t>(cumsum_carry(n, blocks, 0)) : 1}, sum_dtype(p.dtype, "cumsum"));
  auto send = [&](std::int32_t stage) {
    const bool backward = options.reverse;
    auto inner = [&](const Tensor& t) { return backward ? -t.strides()[c.dim] : t.strides()[c.dim]; };
    auto first = [&](const Tensor& t) { return backward ? (x.sizes()[c.dim] - 1) * t.strides()[c.dim] : std::int64_t{0}; };
    encoder.output(out).inout(carries).input(x);
    bind_args(encoder, CumsumArgs{.n = n, .m = m, .out_inner = inner(out), .x_inner = inner(x), .out_first = first(out), .x_first = first(x), .stage = stage});
    walk.bind(encoder, p.rank_lanes);
    // An addition an element. CUMSUM_SUMS sums blocks, CUMSUM_RESULTS goes through them again.
    encoder.flops(stage == CUMSUM_RESULTS ? 0 : static_cast<double>(x.numel()));
    encoder.moves(distinct_bytes(x) + (stage == CUMSUM_SUMS ? 0 : distinct_bytes(out)) + (stage == CUMSUM_WHOLE ? 0 : distinct_bytes(carries)));
    encoder.dispatch(plan.kernel, item_geometry(cumsum_tasks(stage, lines, blocks), plan.tuning.local));
  };
  if (!cut) return send(CUMSUM_WHOLE);
  send(CUMSUM_SUMS);
  CumsumProblem summed = p;
  summed.carries = true;
  const BuiltPlan& of_carries = plan_for(*c.runtime, "cumsum", summed, {});
  const Geometry geometry = item_geometry(n, of_carries.tuning.local);
  check_loops(c.runtime->traits(), "cumsum", n, geometry, static_cast<double>(blocks) + 1);
  encoder.inout(carries).value(n).value(blocks);
  encoder.dispatch(of_carries.kernel, geometry);
  send(CUMSUM_RESULTS);
}

}  // namespace
}  // namespace detail

Tensor cumsum(const Tensor& x, int dim, const CumsumOptions& options, const Stream& given) {
  detail::OpName named("cumsum");
  detail::Checked c = detail::validate(nullptr, x, dim, options);
  Stream stream = detail::resolve_stream(given, *c.runtime, "cumsum");
  Tensor out = empty(x.sizes(), {.dtype = c.dtype, .device = stream.device()}, stream);
  detail::run(out, x, c, options, stream);
  return out;
}

void cumsum_out(const Tensor& out, const Tensor& x, int dim, const CumsumOptions& options, const Stream& given) {
  detail::OpName named("cumsum_out");
  detail::Checked c = detail::validate(&out, x, dim, options);
  detail::run(out, x, c, options, detail::resolve_stream(given, *c.runtime, "cumsum"));
}

}}  // namespace clutch::v0
