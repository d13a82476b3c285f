// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/matmul.hpp>

#include "ops/matmul_plan.hpp"
#include "runtime/quirks.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <vector>

namespace clutch::inline v0 {
namespace detail {
namespace {

constexpr const char* kOp = "linalg::matmul";

// validate ----------------------------------------------------------------------------------------------------------

/// (*, m, n) of operands of rank 2 at least.
Dims result_sizes(const Tensor& a, const Tensor& b) {
  if (a.sizes()[a.rank() - 1] != b.sizes()[b.rank() - 2])
    throw Error(ErrorCode::invalid_shape, kOp,
                fmt::format("a of {}, b of {}: a's last dim must be b's last but one", to_string(a.sizes()), to_string(b.sizes())));
  auto batch_of = [](const Tensor& t) {
    Dims dims;
    for (int d = 0; d < t.rank() - 2; ++d) dims.push_back(t.sizes()[d]);
    return dims;
  };
  const Dims both[] = {batch_of(a), batch_of(b)};
  Dims sizes = broadcast_shapes(both, kOp);
  sizes.push_back(a.sizes()[a.rank() - 2]);
  sizes.push_back(b.sizes()[b.rank() - 1]);
  return sizes;
}

Runtime& validate(const Tensor* out, const Tensor& a, const Tensor& b) {
  std::vector<const Tensor*> all{&a, &b};
  if (out) all.push_back(out);
  Runtime& runtime = common_runtime(all, kOp);
  if (a.dtype() != b.dtype()) throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("a is {}, b {}", name(a.dtype()), name(b.dtype())));
  check_plain_float(a.dtype(), "an operand", kOp);
  if (a.rank() < (out ? 2 : 1) || b.rank() < (out ? 2 : 1))
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("a of {}, b of {}", to_string(a.sizes()), to_string(b.sizes())));
  if (!out) return runtime;
  bool narrow = a.dtype() == DType::f16 || a.dtype() == DType::bf16;
  if (out->dtype() != a.dtype() && !(narrow && out->dtype() == DType::f32))
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("the output is {}, operands {}", name(out->dtype()), name(a.dtype())));
  Dims sizes = result_sizes(a, b);
  if (!(out->sizes() == sizes))
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("the output has shape {}, the product {}", to_string(out->sizes()), to_string(sizes)));
  check_no_self_overlap(*out, kOp);
  check_apart(*out, a, kOp);
  check_apart(*out, b, kOp);
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const MatmulProblem& p) { return refuses_fp64(traits, p.dtype == DType::f64); }

constexpr std::array<Implementation<MatmulProblem>, 2> kImplementations{{
    {"matmul_panels",
     [](const DeviceTraits& t, const MatmulProblem& p) {
       if (row_tuning(t).local != 1 || (p.dtype == DType::f64 ? t.native_width_f64 : t.native_width_f32) < 4)
         return std::string("its vectors are those of wide-vector devices");
       if (t.quirks & kQuirkLoopsEndEarly) return std::string("the device ends loops after 65535 iterations (quirk loops_end_early)");
       if (emulates_rounding(t)) return std::string("the device's fma is emulated");
       return computes(t, p);
     }},
    {"matmul_items", computes},
}};

/// What is taken when it is forced.
constexpr std::array<Implementation<MatmulProblem>, 2> kForced{{{"matmul_panels", computes}, {"matmul_items", computes}}};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const MatmulProblem& p, std::string_view forced) {
  auto list = forced.empty() ? std::span<const Implementation<MatmulProblem>>(kImplementations) : std::span<const Implementation<MatmulProblem>>(kForced);
  std::string_view entry = p.pack ? "matmul_pack" : choose<MatmulProblem>(list, traits, p, forced, kOp).name;
  KernelPlan plan{.stem = "matmul", .entry = entry, .tuning = row_tuning(traits)};
  if (emulates_rounding(traits)) plan.tuning.width = 1;
  set_common(plan.defines, traits, plan.tuning, 1, true);
  plan.defines.set_text("T_NAME", name(p.dtype)).set_text("O_NAME", name(p.output));
  plan.defines.set_type("ACC", p.dtype == DType::f64 ? DType::f64 : DType::f32);
  plan.defines.set("ROWS", kMatmulRows).set("VECTORS", kMatmulVectors).set("TILES_EACH", kMatmulTilesEach).set("PANELS_EACH", kMatmulPanelsEach);
  plan.defines.set("PACK_ROWS", kMatmulPackRows);
  if (plan.tuning.local > 1) plan.defines.set("GROUPED", 1);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// A tensor by the strides of its matrices' rows and columns and, over the batch's dims, of the matrices.
struct Operand {
  const Tensor* tensor;
  std::int64_t row, column;
  Dims batch;

  Operand(const Tensor& t, const Dims& sizes) : tensor(&t), row(t.strides()[t.rank() - 2]), column(t.strides()[t.rank() - 1]) {
    const Dims strides = broadcast_strides(t, sizes);
    for (int d = 0; d < sizes.rank() - 2; ++d) batch.push_back(strides[d]);
  }
};

/// What one launch computes.
struct Launch {
  std::int64_t m, batch;
  std::int64_t c_batch, a_batch, b_batch;  ///< strides of the batch
};

void run(const Tensor& out, const Tensor& a_given, const Tensor& b, const MatmulProblem& p, Runtime& runtime, const linalg::MatmulOptions& options,
         const Stream& stream) {
  if (out.numel() == 0) return;
  const BuiltPlan& plan = plan_for(runtime, kOp, p, options.implementation);
  const bool panels = plan.entry == "matmul_panels";
  const DType computed = p.dtype == DType::f64 ? DType::f64 : DType::f32;
  Tensor a = panels && p.dtype != computed ? a_given.to(computed, {}, stream) : a_given;
  const Dims& sizes = out.sizes();
  const Operand operands[3] = {{out, sizes}, {a, sizes}, {b, sizes}};
  const auto& [oc, oa, ob] = operands;
  const std::int64_t m = sizes[sizes.rank() - 2], n = sizes[sizes.rank() - 1], k = a.sizes()[a.rank() - 1];
  if ((runtime.traits().quirks & kQuirkLoopsEndEarly) && k > 65535)
    throw Error(ErrorCode::not_supported, kOp, "the device ends loops after 65535 iterations (quirk loops_end_early)");
  Dims batch;
  for (int d = 0; d < sizes.rank() - 2; ++d) batch.push_back(sizes[d]);
  // Dims of the batch, joined where all strides allow: the innermost goes into a launch, the outer ones are launches.
  ElementwiseShape<3> walk = walk_of<3>(batch, {oc.batch, oa.batch, ob.batch}).shape;
  Launch launch{m, walk.size[0], walk.stride[0][0], walk.stride[1][0], walk.stride[2][0]};
  // One b for all: rows of the batch are rows.
  if (launch.batch > 1 && launch.b_batch == 0 && launch.c_batch == m * oc.row && launch.a_batch == m * oa.row) launch.m *= launch.batch, launch.batch = 1;

  const std::int64_t width = computed == DType::f64 ? std::max(1, plan.tuning.width / 2) : plan.tuning.width, panel = kMatmulVectors * width;
  const std::int64_t across = (n + panel - 1) / panel;
  // Few rows, or few of b: as it is.
  const bool packs =
      panels && (b.dtype() != computed || ob.column != 1 || n % panel != 0 || (launch.m > 8 * kMatmulRows && k * n * bits(computed) / 8 > 1 << 18));
  const std::int64_t packed_batch = launch.b_batch == 0 ? 1 : launch.batch;
  MatmulProblem of_pack = p;
  of_pack.pack = true;
  const BuiltPlan* pack = packs ? &plan_for(runtime, kOp, of_pack, {}) : nullptr;

  Encoder encoder(stream, kOp);
  Tensor packed;
  if (packs) packed = encoder.scratch({std::max<std::int64_t>(1, packed_batch * across * k * panel)}, computed);
  auto number = [&](double v, const char* what) { computed == DType::f64 ? encoder.value(v, what) : encoder.value(static_cast<float>(v), what); };
  auto send = [&](std::int64_t c_at, std::int64_t a_at, std::int64_t b_at) {
    auto part = [&](const Operand& o, std::int64_t batch_stride, std::int64_t rows, std::int64_t columns, std::int64_t element) {
      return o.tensor->as_strided({launch.batch, rows, columns}, {batch_stride, o.row, o.column}, element);
    };
    Tensor c_part = part(oc, launch.c_batch, launch.m, n, c_at), a_part = part(oa, launch.a_batch, launch.m, k, a_at);
    Tensor b_part = part(ob, launch.b_batch, k, n, b_at);
    const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
    if (packs) {
      encoder.output(packed).input(b_part, "b").value(u(k)).value(u(n)).value(ob.row).value(ob.column).value(launch.b_batch).value(u(packed_batch));
      encoder.dispatch(pack->kernel, item_geometry(u(packed_batch * across * ((k + kMatmulPackRows - 1) / kMatmulPackRows)), pack->tuning.local));
    }
    options.beta != 0 ? encoder.inout(c_part, "out") : encoder.output(c_part, "out");
    encoder.input(a_part, "a");
    packs ? encoder.input(packed, "b") : encoder.input(b_part, "b");
    encoder.value(u(launch.m))
        .value(u(n))
        .value(u(k))
        .value(oc.row)
        .value(oc.column)
        .value(launch.c_batch)
        .value(oa.row)
        .value(oa.column)
        .value(launch.a_batch);
    if (packs) {
      encoder.value(panel).value(k * panel).value(launch.b_batch == 0 ? std::int64_t{0} : across * k * panel);
    } else if (panels) {
      encoder.value(ob.row).value(panel).value(launch.b_batch);
    } else {
      encoder.value(ob.row).value(ob.column).value(launch.b_batch);
    }
    encoder.value(u(launch.batch));
    std::int64_t items = launch.batch * launch.m * n;
    if (panels) {
      // Blocks of rows and panels for each item: as large as leaves every core several.
      std::int64_t tiles = (launch.m + kMatmulRows - 1) / kMatmulRows, rows_each = kMatmulTilesEach, panels_each = kMatmulPanelsEach;
      auto count = [&] { return launch.batch * ((tiles + rows_each - 1) / rows_each) * ((across + panels_each - 1) / panels_each); };
      while (count() < 8 * runtime.traits().compute_units && (rows_each > 1 || panels_each > 1)) (panels_each > 1 ? panels_each : rows_each) /= 2;
      encoder.value(u(rows_each * kMatmulRows)).value(u(panels_each));
      items = count();
    }
    number(options.alpha, "alpha"), number(options.beta, "beta");
    encoder.dispatch(plan.kernel, item_geometry(u(items), plan.tuning.local));
  };
  std::int64_t launches = 1;
  for (int d = 1; d < walk.rank(); ++d) launches *= walk.size[d];
  for (std::int64_t i = 0; i < launches; ++i) {
    std::int64_t at[3] = {};
    for (std::int64_t d = 1, rest = i; d < walk.rank(); rest /= walk.size[d++])
      for (int o = 0; o < 3; ++o) at[o] += rest % walk.size[d] * walk.stride[o][d];
    send(at[0], at[1], at[2]);
  }
  note_plan(plan.text);
}

}  // namespace
}  // namespace detail

namespace linalg {

Tensor matmul(const Tensor& a_given, const Tensor& b_given, const MatmulOptions& options, const Stream& given) {
  detail::Runtime& runtime = detail::validate(nullptr, a_given, b_given);
  Stream stream = detail::resolve_stream(given, runtime, detail::kOp);
  Tensor a = a_given.rank() == 1 ? a_given.unsqueeze(0) : a_given, b = b_given.rank() == 1 ? b_given.unsqueeze(1) : b_given;
  Tensor out = empty(detail::result_sizes(a, b), {.dtype = a.dtype(), .device = stream.device()}, stream);
  MatmulOptions own = options;
  own.beta = 0;
  detail::run(out, a, b, {a.dtype(), out.dtype()}, runtime, own, stream);
  if (a_given.rank() == 1) out = out.squeeze(out.rank() - 2);
  return b_given.rank() == 1 ? out.squeeze(out.rank() - 1) : out;
}

void matmul_out(const Tensor& out, const Tensor& a, const Tensor& b, const MatmulOptions& options, const Stream& given) {
  detail::Runtime& runtime = detail::validate(&out, a, b);
  detail::run(out, a, b, {a.dtype(), out.dtype()}, runtime, options, detail::resolve_stream(given, runtime, detail::kOp));
}

}  // namespace linalg
}  // namespace clutch::inline v0
