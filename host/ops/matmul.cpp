// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/matmul.hpp>

#include "ops/matmul/clblast.hpp"
#include "ops/matmul_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/dot_products.hpp"
#include "runtime/quirks.hpp"
#include "runtime/storage.hpp"
#include "tune/tune.hpp"

#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <vector>

namespace clutch::inline v0 {

struct linalg::PackedMatrix::State {
  Dims sizes;
  DType dtype;
  Tensor panels;    ///< (batch, panels, k, columns of a panel) in the compute type, or undefined:
  bool words;       ///< panels of words of four bytes, behind their columns' sums
  Tensor original;  ///< on devices that do not take panels, a contiguous copy
};

namespace detail {
namespace {

using linalg::MatmulOptions;
using linalg::MatrixOperand;

constexpr const char* kOp = "linalg::matmul";

bool is_f8(DType d) { return d == DType::f8e4m3fn || d == DType::f8e5m2; }
bool is_byte(DType d) { return d == DType::i8 || d == DType::u8; }
bool is_plain(DType d) { return d == DType::f32 || d == DType::f64 || d == DType::f16 || d == DType::bf16; }

// validate ----------------------------------------------------------------------------------------------------------

const Dims& sizes_of(const MatrixOperand& b) { return b.tensor() ? b.tensor()->sizes() : b.packed()->sizes(); }
const Tensor& memory_of(const MatrixOperand& b) {
  if (b.tensor()) return *b.tensor();
  const auto& state = b.packed()->state();
  if (!state) throw Error(ErrorCode::invalid_argument, kOp, "the PackedMatrix is empty");
  return state->panels.defined() ? state->panels : state->original;
}

/// (*, m, n) of operands of rank 2 at least.
Dims result_sizes(const Dims& a, const Dims& b) {
  if (a[a.rank() - 1] != b[b.rank() - 2])
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("a of {}, b of {}: a's last dim must be b's last but one", to_string(a), to_string(b)));
  auto batch_of = [](const Dims& all) {
    Dims dims;
    for (int d = 0; d < all.rank() - 2; ++d) dims.push_back(all[d]);
    return dims;
  };
  const Dims both[] = {batch_of(a), batch_of(b)};
  Dims sizes = broadcast_shapes(both, kOp);
  sizes.push_back(a[a.rank() - 2]);
  sizes.push_back(b[b.rank() - 1]);
  return sizes;
}

/// The dtype of the result by default.
DType default_dtype(DType a, DType b, const ExprFunction& f) {
  const DType product = linalg::product_dtype(a, b);
  if (f.empty()) return is_f8(a) || is_byte(a) ? product : a;
  const ExprStep& last = f.body()->steps[static_cast<std::size_t>(f.body()->outputs[0])];
  if (last.op == ExprOp::cast) return last.target;
  return f.output_dtype(0) == DType::f32 && (a == DType::f16 || a == DType::bf16) ? a : f.output_dtype(0);
}

/// How an item multiplies: its register tiles and how b is read.
struct Tiling {
  std::int64_t rows = 6, vectors = kMatmulVectors, block = 256, tiles = 32;  ///< tiles: most of an item, down
  MatmulPlace place = MatmulPlace::packed;

  friend bool operator==(const Tiling&, const Tiling&) = default;
  std::string to_string() const {
    static constexpr const char* kPlaces[] = {"packed", "direct", "inside"};
    return fmt::format("{} {}x{} k{} t{}", kPlaces[static_cast<int>(place)], rows, vectors, block, tiles);
  }
  static std::optional<Tiling> parse(const std::string& text) {
    char place[8];
    Tiling t;
    if (std::sscanf(text.c_str(), "%7s %" SCNd64 "x%" SCNd64 " k%" SCNd64 " t%" SCNd64, place, &t.rows, &t.vectors, &t.block, &t.tiles) != 5)
      return std::nullopt;
    const std::string_view at = place;
    t.place = at == "direct" ? MatmulPlace::direct : at == "inside" ? MatmulPlace::inside : MatmulPlace::packed;
    const bool fine = t.rows >= 1 && t.rows <= 16 && t.vectors >= 1 && t.vectors <= 16 && t.block >= 32 && t.block <= 512 && t.tiles >= 1 && t.tiles <= 32;
    return fine ? std::optional(t) : std::nullopt;
  }
};

/// One call: operands of rank 2 at least. `f` empty: the product itself.
struct MatmulCall {
  Runtime* runtime;
  Tensor out, a;  ///< out: undefined where it is still to be made
  const MatrixOperand* b;
  const ExprFunction* f;
  std::vector<Tensor> inputs;
  MatmulOptions options;
  Dims sizes;
  DType output;
  std::optional<Tiling> tiling = {};  ///< forced
};

MatmulCall validate(const Tensor* out, const Tensor& a, const MatrixOperand& b, const ExprFunction& f, std::span<const Tensor> inputs,
                    const MatmulOptions& options) {
  MatmulCall c{.a = a, .b = &b, .f = &f, .inputs = {inputs.begin(), inputs.end()}, .options = options};
  std::vector<const Tensor*> all{&a, &memory_of(b)};
  for (const Tensor& t : inputs) all.push_back(&t);
  if (out) all.push_back(out);
  if (!f.empty())
    for (const Tensor& t : f.body()->tensors) all.push_back(&t);
  c.runtime = &common_runtime(all, kOp);
  const DType of_b = linalg::detail::operand_dtype(b), product = linalg::product_dtype(a.dtype(), of_b);
  const Dims& b_sizes = sizes_of(b);
  if (a.rank() < (out ? 2 : 1) || b_sizes.rank() < (out ? 2 : 1))
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("a of {}, b of {}", to_string(a.sizes()), to_string(b_sizes)));
  if (!f.empty()) {
    if (is_complex(product)) throw Error(ErrorCode::invalid_dtype, kOp, "functions take no complex products");
    if (f.output_count() != 1) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("a function of {} outputs, not one", f.output_count()));
    if (f.input_count() != static_cast<int>(inputs.size()) + 1)
      throw Error(ErrorCode::invalid_argument, kOp, fmt::format("{} tensors and the product for a function of {} inputs", inputs.size(), f.input_count()));
    if (f.input_dtype(0) != product)
      throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("the function takes {}, the product is {}", name(f.input_dtype(0)), name(product)));
    std::vector<DType> traced = traced_dtypes(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (traced[i] != f.input_dtype(static_cast<int>(i) + 1))
        throw Error(ErrorCode::invalid_dtype, kOp,
                    fmt::format("input {} of dtype {} is traced as {}, the function takes {}", i, name(inputs[i].dtype()), name(traced[i]),
                                name(f.input_dtype(static_cast<int>(i) + 1))));
  }
  if (!is_floating(product) && !is_complex(product) &&
      (options.alpha != std::nearbyint(options.alpha) || options.beta != std::nearbyint(options.beta) || std::fabs(options.alpha) > INT32_MAX ||
       std::fabs(options.beta) > INT32_MAX))
    throw Error(ErrorCode::invalid_argument, kOp, fmt::format("alpha {} and beta {} of integers are to be whole numbers", options.alpha, options.beta));
  c.output = out ? out->dtype() : options.dtype ? *options.dtype : default_dtype(a.dtype(), of_b, f);
  if (f.empty() && c.output != product && (!is_plain(product) || !is_plain(c.output)))
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("a result of {} for a product of {}", name(c.output), name(product)));
  if (!f.empty()) compute_dtype(c.output, kOp);
  if (options.beta != 0 && out && compute_dtype(is_complex(c.output) ? DType::f32 : c.output, kOp) != (is_complex(product) ? DType::f32 : product))
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("beta reads the output, which is {}, for a product of {}", name(c.output), name(product)));
  if (!out) return c;
  c.out = *out;
  c.sizes = result_sizes(a.sizes(), b_sizes);
  if (!(out->sizes() == c.sizes))
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("the output has shape {}, the product {}", to_string(out->sizes()), to_string(c.sizes)));
  check_no_self_overlap(*out, kOp);
  check_apart(*out, a, kOp);
  check_apart(*out, memory_of(b), kOp);
  return c;
}

void check_inputs(const MatmulCall& c) {
  for (const Tensor& t : c.inputs) {
    const Dims shapes[] = {t.sizes(), c.sizes};
    if (!(broadcast_shapes(shapes, kOp) == c.sizes))
      throw Error(ErrorCode::invalid_shape, kOp, fmt::format("an input of {} does not broadcast to the result {}", to_string(t.sizes()), to_string(c.sizes)));
    if (c.out.defined()) check_overlap(c.out, t, kOp);
  }
  if (!c.f->empty() && c.out.defined())
    for (const Tensor& t : c.f->body()->tensors) check_apart(c.out, t, kOp);
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const MatmulProblem& p) {
  return refuses_fp64(traits, matmul_compute(p) == DType::f64 || p.output == DType::f64);
}
std::string fits_panels(const DeviceTraits& traits, const MatmulProblem& p) {
  if (is_byte(p.a) && row_tuning(traits).local != 1) return "integers are summed by blocks, which need a core for each item";
  if (emulates_rounding(traits)) return "the device's fma is emulated";
  return computes(traits, p);
}

std::string fits_dot(const DeviceTraits& traits, const MatmulProblem& p) {
  if (!is_byte(p.a) || p.b != DType::i8) return "it is for products of i8 or u8 with i8";
  return computes(traits, p);
}

/// Items of a group of matmul_tiles: 16 x 16, 8 x 16 or 8 x 8.
int items_of_tiles(const DeviceTraits& t) { return t.max_work_group >= 256 ? 256 : t.max_work_group >= 128 ? 128 : 64; }
std::string fits_tiles(const DeviceTraits& traits, const MatmulProblem& p) {
  const bool wide = matmul_compute(p) == DType::f64;
  if (traits.max_work_group < 64) return "groups of 64 items are too big for the device";
  if (traits.local_bytes < (wide ? 32768u : 16384u)) return "the device has too little local memory";
  return computes(traits, p);
}

constexpr std::array<Implementation<MatmulProblem>, 4> kImplementations{{
    {"matmul_dot",
     [](const DeviceTraits& t, const MatmulProblem& p) {
       return p.dots && row_tuning(t).width == 16 && !p.wide ? fits_dot(t, p) : std::string("dot products of bytes have not been seen to work");
     }},
    {"matmul_panels",
     [](const DeviceTraits& t, const MatmulProblem& p) {
       if (row_tuning(t).local != 1 || (matmul_compute(p) == DType::f64 ? t.native_width_f64 : t.native_width_f32) < 4)
         return std::string("its vectors are those of wide-vector devices");
       if (t.quirks & kQuirkLoopsEndEarly) return std::string("the device ends loops after 65535 iterations (quirk loops_end_early)");
       return fits_panels(t, p);
     }},
    {"matmul_tiles",
     [](const DeviceTraits& t, const MatmulProblem& p) { return elementwise_tuning(t).local == 1 ? std::string("a group is a thread") : fits_tiles(t, p); }},
    {"matmul_items", computes},
}};

std::string fits_lanes(const DeviceTraits& traits, const MatmulProblem& p) {
  if ((p.a != DType::f32 && p.a != DType::f64) || p.b != p.a || p.output != p.a || p.function != 0) return "it is for plain products of f32 or f64";
  if (emulates_rounding(traits)) return "the device's fma is emulated";
  return computes(traits, p);
}

/// A library that enqueues by itself; taken where it was measured to be the fastest.
constexpr std::string_view kClblast = "clblast";
std::string fits_clblast(const DeviceTraits& traits, const MatmulProblem& p) {
  if ((p.a != DType::f32 && p.a != DType::f64) || p.output != p.a || p.function != 0) return "it is for plain products of f32 or f64";
  std::string why = computes(traits, p);
  return why.empty() ? clblast_refuses() : why;
}

/// What is taken when it is forced.
constexpr std::array<Implementation<MatmulProblem>, 6> kForced{{
    {"matmul_lanes", fits_lanes},
    {kClblast, fits_clblast},
    {"matmul_dot", fits_dot},
    {"matmul_panels", fits_panels},
    {"matmul_tiles", fits_tiles},
    {"matmul_items", computes},
}};

std::string_view entry_of(const DeviceTraits& traits, const MatmulProblem& p, std::string_view forced) {
  auto list = forced.empty() ? std::span<const Implementation<MatmulProblem>>(kImplementations) : std::span<const Implementation<MatmulProblem>>(kForced);
  return choose<MatmulProblem>(list, traits, p, forced, kOp).name;
}

}  // namespace

DType matmul_compute(const MatmulProblem& p) { return p.a == DType::f64 || p.a == DType::c128 ? DType::f64 : DType::f32; }

KernelPlan select(const DeviceTraits& traits, const MatmulProblem& p, std::string_view forced) {
  std::string_view entry = entry_of(traits, p, forced);
  const DType computed = matmul_compute(p), product = is_byte(p.a) ? DType::i32 : computed;
  using Part = MatmulProblem::Part;
  const bool dot = entry == "matmul_dot";
  KernelPlan plan{.stem = "matmul", .entry = entry, .tuning = row_tuning(traits)};
  if (p.part == Part::rows) plan.entry = "matmul_dot_rows";
  if (p.part == Part::pack) plan.entry = dot ? "matmul_dot_pack" : "matmul_pack";
  if (p.part == Part::product && dot) plan.entry = "matmul_panels";
  const bool tiles = plan.entry == "matmul_tiles", items = tiles || plan.entry == "matmul_items", integer = is_byte(p.a), complex = is_complex(p.a);
  if (items) plan.tuning.width = 1;
  set_lanes(plan, traits, computed == DType::f64 || p.wide, 1 + p.input_count + p.position_count, true, 4);
  auto stored = [&](DType d) { return d == DType::c64 ? DType::f32 : d == DType::c128 ? DType::f64 : d; };
  Defines& d = plan.defines;
  const DType number = dot ? DType::i32 : computed;  // what panels hold
  const bool as_it_lies = items || p.part != Part::product || p.place != MatmulPlace::packed;
  d.set_text("A_NAME", name(stored(p.a))).set_text("B_NAME", name(as_it_lies ? stored(p.b) : number));
  // What beta reads is computed as the product is; where it is not, there is no beta.
  d.set_text("O_NAME", name(is_complex(p.output) ? computed : compute_dtype(p.output, kOp) == product ? p.output : product));
  d.set_type("ACC", number).set("INTEGER", integer).set("COMPLEX", complex).set("DOT", !dot ? 0 : p.dots && plan.tuning.width == 16 ? 1 : 2);
  if (tiles) {
    plan.tuning.local = static_cast<std::uint64_t>(items_of_tiles(traits));
    d.set("TILE_M", kMatmulTile).set("TILE_N", kMatmulTile).set("ITEMS_DOWN", plan.tuning.local == 256 ? 16 : 8);
    d.set("ITEMS_ACROSS", plan.tuning.local == 64 ? 8 : 16);
  }
  if (items) return plan;
  if (entry == "matmul_lanes") return plan;
  d.set("VECTORS", p.vectors).set("PACK_ROWS", kMatmulPackRows);
  if (p.part != Part::product) return plan;
  d.set("B_AT", static_cast<int>(p.place)).set("ROWS", p.rows);
  d.set("B_BYTES", bits(as_it_lies ? stored(p.b) : number) / 8);
  d.set("BLOCK_K", p.block).set("HELD_TILES", kMatmulHeldTiles);
  if (plan.tuning.local > 1) d.set("GROUPED", 1);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// The plan's kernel with its printed epilogue.
const BuiltPlan& plan_of(const MatmulCall& c, const MatmulProblem& p) {
  return c.runtime->plans().find<BuiltPlan>(kOp, p, c.options.implementation, [&] {
    KernelPlan selected = select(c.runtime->traits(), p, c.options.implementation);
    const DType computed = matmul_compute(p), product = is_byte(p.a) ? DType::i32 : computed;
    const DType output = is_complex(p.output) ? computed : p.output;
    const ExprFunction& f = c.f->empty() ? identity(product) : *c.f;
    std::array<DType, kMatmulInputs + 1> inputs{product};
    std::copy(p.inputs.begin(), p.inputs.end(), inputs.begin() + 1);
    // The product is operand 0 where it is read, the result where it is written.
    PrintNames names{.first_input = 0, .first_position = std::size_t{1} + p.input_count};
    selected.expression = print_operands(1, p.input_count, p.position_count, f.body()->buffers.size()) +
                          print_opencl(f, std::span(&output, 1), std::span(inputs).first(std::size_t{1} + p.input_count), names).text;
    return build_plan(*c.runtime, selected);
  });
}

/// A tensor by the strides of its matrices' rows and columns and, over the batch's dims, of the matrices.
struct Strided {
  const Tensor* tensor = nullptr;
  std::int64_t row = 0, column = 0;
  Dims batch;

  Strided(const Tensor& t, const Dims& sizes) : tensor(&t) {
    const Dims strides = broadcast_strides(t, sizes);
    row = strides[sizes.rank() - 2], column = strides[sizes.rank() - 1];
    for (int d = 0; d < sizes.rank() - 2; ++d) batch.push_back(strides[d]);
  }
};

/// How many rows and vectors a register tile has and how b is read. Measured on wide vectors by `clutch-bench --sweep --filter ^matmul/`.
Tiling tiling_of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, std::int64_t lanes, bool unit_columns, bool complex, bool converted,
                 std::int64_t units, bool is_packed) {
  Tiling t;
  t.block = 512;
  t.rows = m >= 5 ? 6 : m >= 3 ? 4 : std::max<std::int64_t>(1, m);
  if (complex || is_packed) return t;
  auto padded = [](std::int64_t size, std::int64_t by) { return (size + by - 1) / by * by; };
  // Few rows of a: b is read once and wide pieces of its rows in a stream, as many as leave every core work.
  if (unit_columns && m <= 2)
    for (std::int64_t vectors : {16 / t.rows, 8 / t.rows})
      if (t.vectors == kMatmulVectors && n % (vectors * lanes) == 0 && batch * n / (vectors * lanes) >= 4 * units) t.vectors = vectors;
  // 8 x 3 where less of it lies outside.
  const bool unfit = n % (kMatmulVectors * lanes) != 0, fits_three = n % (3 * lanes) == 0;
  if (t.rows == 6 && (fits_three || unfit) && padded(m, 8) * padded(n, 3 * lanes) < padded(m, 6) * padded(n, kMatmulVectors * lanes)) t.rows = 8, t.vectors = 3;
  const std::int64_t tiles = (m + t.rows - 1) / t.rows;
  if (unit_columns && n % (t.vectors * lanes) == 0 && (tiles <= (converted ? 2 : kMatmulHeldTiles / 2) || (!converted && k * n <= 1 << 18))) {
    t.place = MatmulPlace::direct, t.block = tiles == 1 ? 64 : 128;
  } else if (tiles <= kMatmulHeldTiles / 2) {
    t.place = MatmulPlace::inside, t.block = 128;
    if (t.vectors > kMatmulVectors) t.vectors = kMatmulVectors;
  }
  return t;
}

/// What a tuned choice depends on.
struct ShapeClass {
  std::uint64_t generation;
  DType a, b;
  std::uint8_t m, n, k, batch;  ///< powers of two, rounded
  bool unit_columns, whole;     ///< b's columns lie side by side; they fill panels

  static std::uint8_t power(std::int64_t size) {
    return static_cast<std::uint8_t>(std::lround(std::log2(static_cast<double>(std::max<std::int64_t>(size, 1)))));
  }
  std::string to_string() const {
    return fmt::format("{} {} m2^{} n2^{} k2^{} b2^{}{}{}", name(a), name(b), m, n, k, batch, unit_columns ? " unit" : "", whole ? " whole" : "");
  }
};
struct TunedPlan : CachedPlan {
  std::optional<Tiling> tiling;
};

/// Dense small matrices, one in each lane. numbers: m, n, k, batch, strides of the batch of a, b and c.
void run_lanes(const MatmulCall& c, const MatmulProblem& p, const std::array<std::int64_t, 7>& numbers, const Stream& stream) {
  MatmulCall forced = c;
  forced.options.implementation = "matmul_lanes";
  const BuiltPlan& plan = plan_of(forced, p);
  const auto [m, n, k, batch, a_batch, b_batch, c_batch] = numbers;
  Encoder encoder(stream, kOp);
  c.options.beta != 0 ? encoder.inout(c.out, "out") : encoder.output(c.out, "out");
  encoder.input(c.a, "a").input(*c.b->tensor(), "b");
  for (std::int64_t v : numbers) encoder.value(static_cast<std::uint64_t>(v));
  if (p.a == DType::f64)
    encoder.value(c.options.alpha, "alpha").value(c.options.beta, "beta");
  else
    encoder.value(static_cast<float>(c.options.alpha), "alpha").value(static_cast<float>(c.options.beta), "beta");
  encoder.dispatch(plan.kernel, item_geometry(static_cast<std::uint64_t>((batch + plan.tuning.width - 1) / plan.tuning.width), plan.tuning.local));
  note_plan(plan.text);
}

/// By CLBlast, one batch after another. Errors: not_supported for a packed b or while capturing, where memory has no address yet.
void run_clblast(const MatmulCall& c, const Stream& stream) {
  if (stream.is_capturing()) throw Error(ErrorCode::not_supported, kOp, "CLBlast cannot be captured");
  if (!c.b->tensor()) throw Error(ErrorCode::not_supported, kOp, "CLBlast takes no PackedMatrix");
  Dims batch;
  for (int d = 0; d < c.sizes.rank() - 2; ++d) batch.push_back(c.sizes[d]);
  auto matrices = [&](const Tensor& t) {
    Dims all = batch;
    all.push_back(t.sizes()[t.rank() - 2]), all.push_back(t.sizes()[t.rank() - 1]);
    return t.expand(all);
  };
  Tensor out = c.out, a = matrices(c.a), b = matrices(*c.b->tensor());
  if (out.rank() == 2) out = out.unsqueeze(0), a = a.unsqueeze(0), b = b.unsqueeze(0);
  // Outer dims one by one.
  auto walk = [&](auto&& self, const Tensor& x, const Tensor& y, const Tensor& z) -> void {
    if (x.rank() == 3) return clblast_gemm(x, y, z, c.options.alpha, c.options.beta, c.options.beta != 0, stream, kOp);
    for (std::int64_t i = 0; i < x.sizes()[0]; ++i) self(self, x.select(0, i), y.select(0, i), z.select(0, i));
  };
  walk(walk, out, a, b);
  note_plan(std::string(kClblast));
}

void run(MatmulCall& c, const Stream& stream);

/// Whether CLBlast was measured to be faster than tiles in local memory for the class of a call.
bool library_is_faster(const MatmulCall& c, const MatmulProblem& p, const Stream& stream) {
  if (!tuning_matters() || stream.is_capturing() || !c.b->tensor() || !fits_clblast(c.runtime->traits(), p).empty()) return false;
  const std::int64_t m = c.sizes[c.sizes.rank() - 2], n = c.sizes[c.sizes.rank() - 1], k = c.a.sizes()[c.a.rank() - 1];
  if (k == 0) return false;
  const ShapeClass shape{tuning_generation(),
                         p.a,
                         p.b,
                         ShapeClass::power(m),
                         ShapeClass::power(n),
                         ShapeClass::power(k),
                         ShapeClass::power(numel(c.sizes) / std::max<std::int64_t>(m * n, 1)),
                         true,
                         true};
  auto ways = [&] {
    auto way = [&](const std::string& choice, std::string_view implementation) {
      return TuneWay{choice,
                     [call = MatmulCall(c), implementation, stream]() mutable {
                       call.options.implementation = implementation, call.options.beta = 0;
                       call.out = empty(call.sizes, {.dtype = call.output, .device = stream.device()}, stream);
                       run(call, stream);
                       return call.out;
                     },
                     choice.empty()};
    };
    return std::vector{way("", "matmul_tiles"), way(std::string(kClblast), kClblast)};
  };
  return tuned_choice(*c.runtime, kOp, shape.to_string(), stream, ways) == kClblast;
}

/// The tiling that was measured to be the fastest for the class of a call, if any.
std::optional<Tiling> tuned_tiling(const MatmulCall& c, const Tiling& own, const ShapeClass& shape, const Stream& stream) {
  auto find_out = [&] {
    auto ways = [&] {
      auto way = [&](const std::string& choice, const Tiling& tiling) {
        return TuneWay{choice, [call = MatmulCall(c), tiling, stream]() mutable {
                         call.tiling = tiling, call.options.beta = 0;
                         call.out = empty(call.sizes, {.dtype = call.output, .device = stream.device()}, stream);
                         run(call, stream);
                         return call.out;
                       }};
      };
      std::vector<TuneWay> all{way("", own)};
      std::vector<MatmulPlace> places{MatmulPlace::packed, MatmulPlace::inside};
      if (shape.unit_columns && shape.whole) places.push_back(MatmulPlace::direct);
      for (MatmulPlace place : places)
        for (auto [rows, vectors] : {std::pair<std::int64_t, std::int64_t>{6, 4}, {8, 3}})
          for (std::int64_t block : {128, 256, 512})
            for (std::int64_t tiles : {8, 16, 32}) {
              const Tiling t{.rows = rows, .vectors = vectors, .block = block, .tiles = tiles, .place = place};
              if (t == own || (place == MatmulPlace::direct && c.sizes[c.sizes.rank() - 1] % (16 * vectors) != 0) ||
                  (c.sizes[c.sizes.rank() - 2] <= 48 && tiles > 8))
                continue;
              all.push_back(way(t.to_string(), t));
            }
      return all;
    };
    TunedPlan plan;
    plan.tiling = Tiling::parse(tuned_choice(*c.runtime, kOp, shape.to_string(), stream, ways));
    return plan;
  };
  if (stream.is_capturing()) return find_out().tiling;
  return c.runtime->plans().find<TunedPlan>("matmul", shape, "tuned", find_out).tiling;
}

void run(MatmulCall& c, const Stream& stream) {
  if (c.out.numel() == 0) return;
  const Dims& sizes = c.sizes;
  const DType of_b = linalg::detail::operand_dtype(*c.b);
  MatmulProblem p{.function = c.f->empty() ? 0 : c.f->body()->id, .a = c.a.dtype(), .b = of_b, .output = c.output};
  std::vector<Tensor> inputs = as_traced(c.inputs, stream);
  std::vector<Dims> position_dims;
  SeenTypes seen;
  if (!c.f->empty()) {
    position_dims = position_strides(*c.f, sizes, kOp);
    seen.note(*c.f);
    for (const Tensor& t : inputs) seen.note(t.dtype());
  }
  seen.note(c.output);
  p.wide = !is_complex(c.a.dtype()) && seen.has_wide;
  bool of_batch = false;
  for (const Dims& d : position_dims)
    for (int i = 0; i < sizes.rank() - 2; ++i) of_batch = of_batch || d[i] != 0;
  if (inputs.size() > kMatmulInputs || of_batch) {
    // By way of the product itself.
    const ExprFunction none;
    MatmulOptions plain = c.options;
    if (c.options.beta != 0) throw Error(ErrorCode::not_supported, kOp, "beta beside more inputs than the kernel takes, or positions in batch dims");
    MatmulCall product = c;
    product.f = &none, product.inputs.clear(), product.options = plain, product.output = linalg::product_dtype(c.a.dtype(), of_b);
    product.out = empty(sizes, {.dtype = product.output, .device = stream.device()}, stream);
    run(product, stream);
    std::vector<Tensor> all{product.out};
    all.insert(all.end(), inputs.begin(), inputs.end());
    return map_out(std::span(&c.out, 1), *c.f, all, {}, stream);
  }
  p.input_count = static_cast<std::uint8_t>(inputs.size()), p.position_count = static_cast<std::uint8_t>(position_dims.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) p.inputs[i] = inputs[i].dtype();

  const DType computed = matmul_compute(p), product = is_byte(p.a) ? DType::i32 : computed;
  const bool complex = is_complex(p.a);
  const DeviceTraits& traits = c.runtime->traits();
  const bool packed_given = c.b->packed() != nullptr, is_packed = packed_given && c.b->packed()->state()->panels.defined();
  if (is_byte(p.a)) p.dots = dot_products(*c.runtime);
  if (is_packed && is_byte(p.a)) c.options.implementation = c.b->packed()->state()->words ? "matmul_dot" : "matmul_panels";
  const std::string_view entry = entry_of(traits, p, c.options.implementation);
  if (entry == kClblast || (entry == "matmul_tiles" && c.options.implementation.empty() && library_is_faster(c, p, stream))) return run_clblast(c, stream);
  const bool dot = entry == "matmul_dot", panels = dot || entry == "matmul_panels";
  Tensor a = c.a;
  if (panels && !dot && !complex && a.dtype() != computed) a = a.to(computed, {}, stream);
  if (complex && a.strides()[a.rank() - 1] != 1 && a.sizes()[a.rank() - 1] > 1) a = a.contiguous(stream);
  if (is_packed && !panels) throw Error(ErrorCode::not_supported, kOp, fmt::format("{} takes no PackedMatrix", entry));
  const Tensor& b = memory_of(*c.b);
  const std::int64_t parts = complex ? 2 : 1;

  // Batch dims, joined where all strides allow: the innermost goes into a launch, the outer ones are launches.
  std::vector<Strided> operands{{c.out, sizes}, {a, sizes}};
  if (is_packed) {
    // (*, panels, k, columns) as a tensor whose last two dims do not count.
    const Dims& given = c.b->packed()->sizes();
    Dims batch, strides;
    for (int d = 0; d < given.rank() - 2; ++d) batch.push_back(given[d]);
    std::int64_t step = b.strides()[0];
    strides = batch;
    for (int d = batch.rank() - 1; d >= 0; step *= batch[d--]) strides[d] = step;
    Strided of_panels = operands[0];
    of_panels.tensor = &b, of_panels.row = of_panels.column = 0;
    for (int d = 0; d < sizes.rank() - 2; ++d) {
      const int at = d - (sizes.rank() - given.rank());
      of_panels.batch[d] = at < 0 || given[at] == 1 ? 0 : strides[at];
    }
    operands.push_back(of_panels);
  } else {
    operands.push_back({b, sizes});
  }
  operands[1].column = a.strides()[a.rank() - 1];
  for (const Tensor& t : inputs) operands.push_back({t, sizes});
  const std::int64_t m = sizes[sizes.rank() - 2], n = sizes[sizes.rank() - 1], k = a.sizes()[a.rank() - 1];
  operands[1].row = a.strides()[a.rank() - 2];
  if (!is_packed) operands[2].row = b.strides()[b.rank() - 2], operands[2].column = b.strides()[b.rank() - 1];
  if ((traits.quirks & kQuirkLoopsEndEarly) && k > 65535 / parts)
    throw Error(ErrorCode::not_supported, kOp, "the device ends loops after 65535 iterations (quirk loops_end_early)");
  Dims batch_sizes;
  for (int d = 0; d < sizes.rank() - 2; ++d) batch_sizes.push_back(sizes[d]);
  std::vector<Dims> batch_strides;
  for (const Strided& o : operands) batch_strides.push_back(o.batch);
  std::int64_t rank = 1;
  std::array<std::int64_t, 16> size{};
  std::vector<std::int64_t> stride(16 * operands.size());
  Layout unused_layout;
  bool unused_wide;
  make_walk(batch_sizes, batch_strides, &rank, size.data(), stride.data(), &unused_layout, &unused_wide);
  auto batch_stride = [&](std::size_t o) { return stride[16 * o]; };

  // One b for all: rows of the batch are rows.
  std::int64_t rows = m, batch = size[0];
  if (m == 1)
    for (std::size_t o = 0; o < operands.size(); ++o)
      if (o != 2) operands[o].row = batch_stride(o);
  bool joins = batch > 1 && batch_stride(2) == 0 && position_dims.empty();
  for (std::size_t o = 0; o < operands.size() && joins; ++o) joins = o == 2 || batch_stride(o) == m * operands[o].row;
  if (joins) rows *= batch, batch = 1;

  const Strided &oc = operands[0], &oa = operands[1], &ob = operands[2];
  if (entry == "matmul_lanes" || (panels && c.options.implementation.empty() && !is_packed && batch >= 64 && fits_lanes(traits, p).empty())) {
    auto dense = [](const Strided& o, std::int64_t of_rows, std::int64_t of_columns) {
      return of_rows * of_columns <= kMatmulLaneNumbers && (o.column == 1 || of_columns == 1) && (o.row == of_columns || of_rows == 1);
    };
    const bool small = rank == 1 && rows == m && dense(oc, m, n) && dense(oa, m, k) && dense(ob, k, n) && (batch == 1 || batch_stride(0) > 0);
    if (small) return run_lanes(c, p, {m, n, k, batch, batch_stride(1), batch_stride(2), batch_stride(0)}, stream);
    if (entry == "matmul_lanes") throw Error(ErrorCode::not_supported, kOp, "implementation matmul_lanes refuses: matrices are not small or not dense");
  }
  const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  Tiling tiling;
  const std::int64_t width = row_tuning(traits).width, lanes = computed == DType::f64 || p.wide ? std::max<std::int64_t>(1, width / 2) : width;
  if (panels) {
    if (row_tuning(traits).local == 1)
      tiling = tiling_of(rows, n, k, batch, lanes, ob.column == 1, complex || dot, p.b != computed, traits.compute_units, is_packed);
    if (is_packed) tiling.vectors = b.sizes()[3] / lanes;
    if (c.tiling) {
      tiling = *c.tiling;
    } else if (row_tuning(traits).local == 1 && !dot && !complex && !is_packed && c.options.implementation.empty() && tuning_matters()) {
      const ShapeClass shape{tuning_generation(),
                             p.a,
                             p.b,
                             ShapeClass::power(rows),
                             ShapeClass::power(n),
                             ShapeClass::power(k),
                             ShapeClass::power(batch),
                             ob.column == 1,
                             n % (kMatmulVectors * lanes) == 0};
      if (std::optional<Tiling> tuned = tuned_tiling(c, tiling, shape, stream)) tiling = *tuned;
      // A class holds shapes that the choice does not fit.
      if (tiling.place == MatmulPlace::direct && (ob.column != 1 || n % (tiling.vectors * lanes) != 0)) tiling.place = MatmulPlace::inside;
    }
    p.rows = static_cast<std::uint8_t>(tiling.rows), p.vectors = static_cast<std::uint8_t>(tiling.vectors);
    p.block = tiling.block, p.place = tiling.place;
  }
  const BuiltPlan* plan = &plan_of(c, p);
  // Words of four bytes stand for numbers where those are multiplied; their panels begin with a row of sums.
  const std::int64_t panel = tiling.vectors * lanes, columns = parts * n, length = dot ? (k + 3) / 4 : parts * k, across = (columns + panel - 1) / panel;
  const std::int64_t of_panel = (length + dot) * panel;
  const bool packs = panels && tiling.place == MatmulPlace::packed && !is_packed;
  const std::int64_t packed_batch = batch_stride(2) == 0 ? 1 : batch;
  auto plan_of_part = [&](MatmulProblem::Part of) {
    MatmulProblem q = p;
    q.part = of;
    return &plan_of(c, q);
  };
  const BuiltPlan* pack = packs ? plan_of_part(MatmulProblem::Part::pack) : nullptr;
  const BuiltPlan* to_words = dot ? plan_of_part(MatmulProblem::Part::rows) : nullptr;

  Encoder encoder(stream, kOp);
  Tensor packed, words;
  if (packs) packed = encoder.scratch({std::max<std::int64_t>(1, packed_batch * across * of_panel)}, dot ? DType::i32 : computed);
  if (dot) words = encoder.scratch({std::max<std::int64_t>(1, batch * rows * length)}, DType::i32);
  auto number = [&](double v, const char* what) {
    if (product == DType::f64) return (void)encoder.value(v, what);
    if (product == DType::i32) return (void)encoder.value(static_cast<std::int32_t>(v), what);
    encoder.value(static_cast<float>(v), what);
  };
  auto part = [&](const Strided& o, std::int64_t batch_step, std::int64_t o_rows, std::int64_t o_columns, std::int64_t element) {
    return o.tensor->as_strided({batch, o_rows, o_columns}, {batch_step, o.row, o.column}, element);
  };
  bool flat = oc.column == 1 || n == 1 || complex;
  for (std::size_t o = 3; o < operands.size(); ++o) flat = flat && (operands[o].column == 0 || operands[o].column == 1);
  auto send = [&](std::span<const std::int64_t> at) {
    Tensor a_part = part(oa, batch_stride(1), rows, k, at[1]);
    Tensor b_part = is_packed ? b : part(ob, batch_stride(2), k, n, at[2]);
    if (packs) {
      encoder.output(packed).input(b_part, "b").value(u(dot ? k : length)).value(u(columns)).value(ob.row).value(ob.column).value(batch_stride(2));
      encoder.value(u(packed_batch));
      encoder.dispatch(pack->kernel,
                       item_geometry(u(packed_batch * across * (dot ? 1 : (length + kMatmulPackRows - 1) / kMatmulPackRows)), pack->tuning.local));
    }
    const bool is_signed = p.a == DType::i8;
    if (dot) {
      encoder.output(words).input(a_part, "a").value(u(rows)).value(u(k)).value(oa.row).value(oa.column).value(batch_stride(1)).value(u(batch));
      encoder.value(is_signed ? 0x80808080u : 0u);
      encoder.dispatch(to_words->kernel, item_geometry(u(batch * rows), to_words->tuning.local));
    }
    encoder.input(dot ? words : a_part, "a");
    packs ? encoder.input(packed, "b") : encoder.input(is_packed && at[2] > 0 ? b.slice(0, at[2] / b.strides()[0], b.sizes()[0]) : b_part, "b");
    encoder.value(u(rows)).value(u(columns)).value(u(panels ? length : k)).value(u(batch));
    const std::int64_t scale = panels ? parts : 1;
    if (dot)
      encoder.value(length).value(std::int64_t{1}).value(rows * length);
    else
      encoder.value(scale * oa.row).value(panels && complex ? 1 : oa.column).value(scale * batch_stride(1));
    std::int64_t items = batch * rows * columns;
    if (panels) {
      if (tiling.place == MatmulPlace::packed)
        encoder.value(panel).value(std::int64_t{1}).value(of_panel).value(batch_stride(2) == 0 ? std::int64_t{0} : across * of_panel);
      else
        encoder.value(ob.row).value(ob.column).value(panel * ob.column).value(batch_stride(2));
      // Blocks of rows and panels for each item: as large as leaves every core several.
      const std::int64_t tiles = (rows + tiling.rows - 1) / tiling.rows;
      std::int64_t rows_each = std::min<std::int64_t>(tiles, tiling.tiles), panels_each = tiling.place == MatmulPlace::inside ? 1 : 4;
      while (rows_each * panels_each > kMatmulHeldTiles) rows_each = (rows_each + 1) / 2;
      auto count = [&] { return batch * ((tiles + rows_each - 1) / rows_each) * ((across + panels_each - 1) / panels_each); };
      while (count() < 8 * traits.compute_units && (rows_each > 1 || panels_each > 1)) panels_each > 1 ? panels_each /= 2 : rows_each = (rows_each + 1) / 2;
      encoder.value(dot && is_signed ? -128 : 0).value(u(rows_each * tiling.rows)).value(u(panels_each)).value(static_cast<std::uint32_t>(flat));
      items = count();
    } else {
      encoder.value(ob.row).value(ob.column).value(batch_stride(2));
      // A group for each tile.
      if (plan->entry == "matmul_tiles")
        items = batch * ((rows + kMatmulTile - 1) / kMatmulTile) * ((columns + kMatmulTile - 1) / kMatmulTile) * static_cast<std::int64_t>(plan->tuning.local);
    }
    number(c.options.alpha, "alpha"), number(c.options.beta, "beta");
    auto bind_strides = [&](std::int64_t row, std::int64_t column, std::int64_t of) {
      const std::int64_t all[4] = {row, column, of, 0};
      encoder.bytes(all, sizeof all);
    };
    bind_strides(parts * oc.row, complex ? 1 : oc.column, parts * batch_stride(0));
    for (std::size_t o = 3; o < operands.size(); ++o) bind_strides(operands[o].row, operands[o].column, batch_stride(o));
    for (const Dims& d : position_dims) bind_strides(d[d.rank() - 2], d[d.rank() - 1], 0);
    Tensor c_part = part(oc, batch_stride(0), rows, n, at[0]);
    c.options.beta != 0 ? encoder.inout(c_part, "out") : encoder.output(c_part, "out");
    for (std::size_t o = 3; o < operands.size(); ++o) encoder.input(part(operands[o], batch_stride(o), rows, n, at[o]));
    if (!c.f->empty()) bind_extra(encoder, *c.f->body(), c.f->body()->param_values);
    encoder.dispatch(plan->kernel, item_geometry(u(items), plan->tuning.local));
  };
  std::int64_t launches = 1;
  for (std::int64_t d = 1; d < rank; ++d) launches *= size[static_cast<std::size_t>(d)];
  for (std::int64_t i = 0; i < launches; ++i) {
    std::vector<std::int64_t> at(operands.size(), 0);
    for (std::int64_t d = 1, rest = i; d < rank; rest /= size[static_cast<std::size_t>(d++)])
      for (std::size_t o = 0; o < operands.size(); ++o) at[o] += rest % size[static_cast<std::size_t>(d)] * stride[16 * o + static_cast<std::size_t>(d)];
    send(at);
  }
  note_plan(plan->text);
}

/// Into an output that is there.
void run_out(MatmulCall c, const Stream& stream) {
  check_inputs(c);
  // Complex columns must lie side by side, as pairs of real ones.
  if (!is_complex(c.out.dtype()) || c.out.numel() == 0 || c.out.strides()[c.out.rank() - 1] == 1 || c.out.sizes()[c.out.rank() - 1] == 1) return run(c, stream);
  Tensor out = c.out;
  c.out = out.contiguous(stream);
  run(c, stream);
  copy_(out, c.out, {}, stream);
}

}  // namespace
}  // namespace detail

namespace linalg {

DType product_dtype(DType a, DType b) {
  using namespace clutch::detail;
  if (is_byte(a) && is_byte(b)) return DType::i32;
  if (is_f8(a) && is_f8(b)) return DType::f32;
  if (a == b && (is_plain(a) || is_complex(a))) return a == DType::f16 || a == DType::bf16 ? DType::f32 : a;
  throw Error(ErrorCode::invalid_dtype, kOp,
              fmt::format("a is {}, b {}: both f32, f64, f16, bf16, c64 or c128, or two of the 8-bit floats or integers", name(a), name(b)));
}

DType detail::operand_dtype(const MatrixOperand& b) { return b.tensor() ? b.tensor()->dtype() : b.packed()->dtype(); }

Tensor matmul(const Tensor& a, const MatrixOperand& b, const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& options,
              const Stream& given) {
  clutch::detail::MatmulCall c = clutch::detail::validate(nullptr, a, b, f, inputs, options);
  Stream stream = clutch::detail::resolve_stream(given, *c.runtime, clutch::detail::kOp);
  const int a_rank = a.rank(), b_rank = clutch::detail::sizes_of(b).rank();
  if ((a_rank == 1 || b_rank == 1) && !inputs.empty())
    throw Error(ErrorCode::invalid_shape, clutch::detail::kOp, "vectors are no operands beside an epilogue's inputs: unsqueeze() them");
  if (a_rank == 1) c.a = a.unsqueeze(0);
  Tensor column = b_rank == 1 ? b.tensor()->unsqueeze(1) : Tensor();
  MatrixOperand b_matrix = b_rank == 1 ? MatrixOperand(column) : b;
  c.b = &b_matrix, c.options.beta = 0;
  c.sizes = clutch::detail::result_sizes(c.a.sizes(), clutch::detail::sizes_of(b_matrix));
  clutch::detail::check_inputs(c);
  Tensor out = empty(c.sizes, {.dtype = c.output, .device = stream.device()}, stream);
  c.out = out;
  clutch::detail::run_out(c, stream);
  if (a_rank == 1) out = out.squeeze(out.rank() - 2);
  return b_rank == 1 ? out.squeeze(out.rank() - 1) : out;
}
Tensor matmul(const Tensor& a, const MatrixOperand& b, const MatmulOptions& options, const Stream& stream) {
  return matmul(a, b, ExprFunction(), std::span<const Tensor>(), options, stream);
}

void matmul_out(const Tensor& out, const Tensor& a, const MatrixOperand& b, const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& options,
                const Stream& given) {
  clutch::detail::MatmulCall c = clutch::detail::validate(&out, a, b, f, inputs, options);
  clutch::detail::run_out(c, clutch::detail::resolve_stream(given, *c.runtime, clutch::detail::kOp));
}
void matmul_out(const Tensor& out, const Tensor& a, const MatrixOperand& b, const MatmulOptions& options, const Stream& stream) {
  matmul_out(out, a, b, ExprFunction(), std::span<const Tensor>(), options, stream);
}

PackedMatrix::PackedMatrix(const Tensor& b, const Stream& given) {
  using namespace clutch::detail;
  const ExprFunction none;
  const MatrixOperand operand(b);
  if (!b.defined()) throw Error(ErrorCode::invalid_argument, "linalg::PackedMatrix", "the tensor is undefined");
  if (b.rank() < 2) throw Error(ErrorCode::invalid_shape, "linalg::PackedMatrix", fmt::format("a tensor of {}", to_string(b.sizes())));
  MatmulCall c{.runtime = &b.storage()->runtime(), .b = &operand, .f = &none, .options = {}, .sizes = b.sizes(), .output = product_dtype(b.dtype(), b.dtype())};
  Stream stream = resolve_stream(given, *c.runtime, "linalg::PackedMatrix");
  auto state = std::make_shared<State>();
  state->sizes = b.sizes(), state->dtype = b.dtype();
  MatmulProblem p{.a = b.dtype(), .b = b.dtype(), .output = c.output};
  if (is_byte(p.b)) p.dots = dot_products(*c.runtime);
  const std::string_view entry = entry_of(c.runtime->traits(), p, {});
  state->words = entry == "matmul_dot";
  if (!state->words && entry != "matmul_panels") {
    state->original = b.clone(stream);
    state_ = std::move(state);
    return;
  }
  p.part = MatmulProblem::Part::pack;
  const BuiltPlan& plan = plan_of(c, p);
  const std::int64_t parts = is_complex(p.b) ? 2 : 1, panel = kMatmulVectors * plan.tuning.width;
  const std::int64_t k = b.sizes()[b.rank() - 2], n = b.sizes()[b.rank() - 1], length = parts * k, across = (parts * n + panel - 1) / panel;
  std::int64_t batch = 1;
  for (int d = 0; d < b.rank() - 2; ++d) batch *= b.sizes()[d];
  Tensor matrices =
      batch == 1 ? b.as_strided({1, k, n}, {0, b.strides()[b.rank() - 2], b.strides()[b.rank() - 1]}, 0) : b.contiguous(stream).reshape({batch, k, n});
  state->panels = v0::empty({batch, across, state->words ? (k + 3) / 4 + 1 : length, panel},
                            {.dtype = state->words ? DType::i32 : matmul_compute(p), .device = stream.device()}, stream);
  if (state->panels.numel() > 0) {
    Encoder encoder(stream, "linalg::PackedMatrix");
    const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
    encoder.output(state->panels).input(matrices).value(u(length)).value(u(parts * n));
    encoder.value(matrices.strides()[1]).value(matrices.strides()[2]).value(matrices.strides()[0]).value(u(batch));
    encoder.dispatch(plan.kernel, item_geometry(u(batch * across * (state->words ? 1 : (length + kMatmulPackRows - 1) / kMatmulPackRows)), plan.tuning.local));
  }
  state_ = std::move(state);
}
namespace {
const PackedMatrix::State& state_of(const PackedMatrix& p) {
  if (p.empty()) throw Error(ErrorCode::invalid_argument, "linalg::PackedMatrix", "it is empty");
  return *p.state();
}
}  // namespace
const Dims& PackedMatrix::sizes() const { return state_of(*this).sizes; }
DType PackedMatrix::dtype() const { return state_of(*this).dtype; }
std::uint64_t PackedMatrix::nbytes() const {
  const State& s = state_of(*this);
  return s.panels.defined() ? s.panels.nbytes() : s.original.nbytes();
}

}  // namespace linalg
}  // namespace clutch::inline v0
