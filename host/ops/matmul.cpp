// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/matmul.hpp>

#include "encode/plugin_functions.hpp"
#include "ops/matmul/call.hpp"
#include "ops/matmul/clblast.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/quirks.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

using linalg::MatmulOptions;
using linalg::MatrixOperand;

constexpr const char* kOp = kMatmul;

// validate ----------------------------------------------------------------------------------------------------------

}  // namespace

Dims product_sizes(const Dims& a, const Dims& b) {
  if (a[a.rank() - 1] != b[b.rank() - 2])
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("a's last size must be b's last but one, got {} and {}", to_string(a), to_string(b)));
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

namespace {

/// Default dtype of the result.
DType default_dtype(DType a, DType b, const ExprFunction& f) {
  const DType product = linalg::product_dtype(a, b);
  if (f.empty()) return is_f8(a) || is_byte(a) ? product : a;
  const ExprStep& last = f.body()->steps[static_cast<std::size_t>(f.body()->outputs[0])];
  if (last.op == ExprOp::cast) return last.target;
  return f.output_dtype(0) == DType::f32 && (a == DType::f16 || a == DType::bf16) ? a : f.output_dtype(0);
}

}  // namespace

MatmulCall check_matmul(const Tensor* out, const Tensor& a, const MatrixOperand& b, const ExprFunction& f, std::span<const Tensor> inputs,
                        const MatmulOptions& options) {
  MatmulCall c{.a = a, .b = &b, .f = &f, .inputs = {inputs.begin(), inputs.end()}, .options = options};
  std::vector<const Tensor*> all{&a, &memory_of(b)};
  for (const Tensor& t : inputs) all.push_back(&t);
  if (out) all.push_back(out);
  if (!f.empty())
    for (const Tensor& t : f.body()->tensors) all.push_back(&t);
  c.runtime = &common_runtime(all, kOp);
  const DType of_b = matrix_dtype(b), product = linalg::product_dtype(a.dtype(), of_b);
  const Dims& b_sizes = sizes_of(b);
  if (a.rank() < (out ? 2 : 1) || b_sizes.rank() < (out ? 2 : 1))
    throw Error(ErrorCode::invalid_shape, kOp,
                fmt::format("a and b must have at least {} dimensions, got {} and {}", out ? 2 : 1, to_string(a.sizes()), to_string(b_sizes)));
  if (!f.empty()) {
    if (is_complex(product)) throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("the product of a function must be real, got {}", name(product)));
    if (f.output_count() != 1) throw Error(ErrorCode::invalid_argument, kOp, fmt::format("the function must have one output, got {}", f.output_count()));
    if (f.input_count() != static_cast<int>(inputs.size()) + 1)
      throw Error(ErrorCode::invalid_argument, kOp,
                  fmt::format("the function must take the product and each of {} tensors, got one of {} inputs", inputs.size(), f.input_count()));
    if (f.input_dtype(0) != product)
      throw Error(ErrorCode::invalid_dtype, kOp,
                  fmt::format("the function must take the product's {}, got one that takes {}", name(product), name(f.input_dtype(0))));
    check_traced(f, inputs, kOp, 1);
  }
  if (!is_floating(product) && !is_complex(product) &&
      (options.alpha != std::nearbyint(options.alpha) || options.beta != std::nearbyint(options.beta) || std::fabs(options.alpha) > INT32_MAX ||
       std::fabs(options.beta) > INT32_MAX))
    throw Error(ErrorCode::invalid_argument, kOp, fmt::format("alpha and beta of integers must be whole numbers, got {} and {}", options.alpha, options.beta));
  c.output = out ? out->dtype() : options.dtype.empty() ? default_dtype(a.dtype(), of_b, f) : *one_dtype(options.dtype, kOp);
  if (f.empty() && c.output != product && (!is_plain_float(product) || !is_plain_float(c.output)))
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("the result must be one that {} converts to, got {}", name(product), name(c.output)));
  if (!f.empty()) compute_dtype(c.output, kOp);
  if (options.beta != 0 && out && compute_dtype(is_complex(c.output) ? DType::f32 : c.output, kOp) != (is_complex(product) ? DType::f32 : product))
    throw Error(ErrorCode::invalid_dtype, kOp, fmt::format("the output that beta reads must be {} as the product, got {}", name(product), name(c.output)));
  if (!out) return c;
  c.out = *out;
  c.sizes = product_sizes(a.sizes(), b_sizes);
  if (!(out->sizes() == c.sizes))
    throw Error(ErrorCode::invalid_shape, kOp, fmt::format("the output must have the product's shape {}, got {}", to_string(c.sizes), to_string(out->sizes())));
  check_no_self_overlap(*out, kOp);
  check_apart(*out, a, kOp);
  check_apart(*out, memory_of(b), kOp);
  return c;
}

void check_matmul_inputs(const MatmulCall& c) {
  for (const Tensor& t : c.inputs) {
    const Dims shapes[] = {t.sizes(), c.sizes};
    if (!(broadcast_shapes(shapes, kOp) == c.sizes))
      throw Error(ErrorCode::invalid_shape, kOp, fmt::format("an input must broadcast to the result {}, got {}", to_string(c.sizes), to_string(t.sizes())));
    if (c.out.defined()) check_overlap(c.out, t, kOp);
  }
  if (!c.f->empty() && c.out.defined())
    for (const Tensor& t : c.f->body()->tensors) check_apart(c.out, t, kOp);
}

namespace {

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const MatmulProblem& p) {
  return refuses_fp64(traits, matmul_compute(p) == DType::f64 || p.output == DType::f64);
}
constexpr std::string_view kNeedsDots = "needs dot products of bytes that were seen to work, the device has none";
constexpr std::string_view kNeedsFew = "columns must be few, got many";

std::string needs_plain(const MatmulProblem& p) {
  return fmt::format("the product must be a plain one of f32 or f64, got {} and {} to {}{}", name(p.a), name(p.b), name(p.output),
                     p.function != 0 ? " by a function" : "");
}

std::string fits_panels(const DeviceTraits& traits, const MatmulProblem& p) {
  if (is_byte(p.a) && row_tuning(traits).local != 1) return "needs a core for each item to sum integers by blocks, the device has groups of several";
  if (emulates_rounding(traits)) return std::string(kNeedsExactFma);
  return computes(traits, p);
}

std::string fits_dot(const DeviceTraits& traits, const MatmulProblem& p) {
  if (!is_byte(p.a) || p.b != DType::i8) return fmt::format("operands must be i8 or u8 and i8, got {} and {}", name(p.a), name(p.b));
  return computes(traits, p);
}

std::string fits_tiles(const DeviceTraits& traits, const MatmulProblem& p) {
  constexpr MatmulTile kLeast = kMatmulTiles.back();
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (std::string why = refuses_group_items(traits, kLeast.items()); !why.empty()) return why;
  if (std::string why = refuses_local_bytes(traits, matmul_tile_bytes(p, kLeast, 0)); !why.empty()) return why;
  return computes(traits, p);
}

constexpr std::array<Implementation<MatmulProblem>, 4> kImplementations{{
    {"matmul_dot", [](const DeviceTraits& t, const MatmulProblem& p) { return p.dots && panel_lanes(t, p) == 16 ? fits_dot(t, p) : std::string(kNeedsDots); }},
    {"matmul_panels",
     [](const DeviceTraits& t, const MatmulProblem& p) {
       if (row_tuning(t).local != 1 || (matmul_compute(p) == DType::f64 ? t.native_width_f64 : t.native_width_f32) < 4) return std::string(kNeedsVectors);
       if (std::string why = refuses_long_loops(t); !why.empty()) return why;
       return fits_panels(t, p);
     }},
    {"matmul_tiles", of_groups<fits_tiles>},
    {"matmul_items", computes},
}};

/// Implementations that a caller may force.
constexpr std::array<Implementation<MatmulProblem>, 8> kForced{{
    {"matmul_lanes", fits_matmul_lanes},
    {kClblast, fits_clblast},
    {"matmul_dot", fits_dot},
    {"matmul_panels", fits_panels},
    {"matmul_few", fits_few},
    {"matmul_matrix", fits_matrix},
    {"matmul_tiles", fits_tiles},
    {"matmul_items", computes},
}};

std::string fits_sparse_dot(const DeviceTraits& traits, const MatmulProblem& p) {
  if (!is_byte(p.a) || !is_byte(p.b)) return fmt::format("operands must be bytes, got {} and {}", name(p.a), name(p.b));
  if (p.wide) return "the epilogue must have values of up to 32 bits, got wider ones";
  return computes(traits, p);
}

/// Implementations with a 2:4 matrix on the left.
constexpr std::array<Implementation<MatmulProblem>, 5> kSparse{{
    {"matmul_sparse_dot",
     [](const DeviceTraits& t, const MatmulProblem& p) { return p.dots && panel_lanes(t, p) == 16 ? fits_sparse_dot(t, p) : std::string(kNeedsDots); }},
    {"matmul_sparse_rows",
     [](const DeviceTraits& t, const MatmulProblem& p) {
       if (p.vectors != 0) return std::string(kNeedsFew);
       if (row_tuning(t).local != 1) return std::string(kNeedsVectors);
       return fits_panels(t, p);
     }},
    {"matmul_sparse_panels",
     [](const DeviceTraits& t, const MatmulProblem& p) {
       if (row_tuning(t).local != 1) return std::string(kNeedsVectors);
       if (std::string why = refuses_long_loops(t); !why.empty()) return why;
       return fits_panels(t, p);
     }},
    {"matmul_sparse_tiles", of_groups<fits_tiles>},
    {"matmul_sparse_items", computes},
}};
constexpr std::array<Implementation<MatmulProblem>, 6> kSparseForced{{
    {"matmul_sparse_dot", fits_sparse_dot},
    {"matmul_sparse_rows", [](const DeviceTraits& t, const MatmulProblem& p) { return p.vectors != 0 ? std::string(kNeedsFew) : fits_panels(t, p); }},
    {"matmul_sparse_panels", fits_panels},
    {"matmul_sparse_matrix", fits_matrix},
    {"matmul_sparse_tiles", fits_tiles},
    {"matmul_sparse_items", computes},
}};

}  // namespace

std::string fits_matmul_lanes(const DeviceTraits& traits, const MatmulProblem& p) {
  if ((p.a != DType::f32 && p.a != DType::f64) || p.b != p.a || p.output != p.a || p.function != 0) return needs_plain(p);
  if (emulates_rounding(traits)) return std::string(kNeedsExactFma);
  return computes(traits, p);
}

std::string fits_few(const DeviceTraits& traits, const MatmulProblem& p) {
  if (is_complex(p.a)) return fmt::format("operands must be real, got {}", name(p.a));
  if (std::string why = refuses_long_loops(traits); !why.empty()) return why;
  if (std::string why = refuses_group_items(traits, kMatmulFewItems); !why.empty()) return why;
  const std::uint64_t number = matmul_compute(p) == DType::f64 ? 8 : 4;
  if (std::string why = refuses_local_bytes(traits, number * matmul_few_numbers(p.few_each)); !why.empty()) return why;
  return computes(traits, p);
}

std::string fits_matrix(const DeviceTraits& traits, const MatmulProblem& p) {
  if (p.numbers == 0) return fmt::format("operands must be f16, bf16, f8, bytes, or f32 with Numerics::tf32, got {} and {}", name(p.a), name(p.b));
  if (p.layout == MatrixLayout::none) return "needs matrix instructions for these operands that were seen to work, the device has none";
  const MatrixTile least = matrix_tiles(p.layout).back();
  if (std::string why = refuses_group_items(traits, least.items(p.layout)); !why.empty()) return why;
  if (std::string why = refuses_local_bytes(traits, least.local_bytes(p.layout, p.stand_in)); !why.empty()) return why;
  return computes(traits, p);
}

std::string fits_clblast(const DeviceTraits& traits, const MatmulProblem& p) {
  if ((p.a != DType::f32 && p.a != DType::f64) || p.output != p.a || p.function != 0) return needs_plain(p);
  if (std::string why = computes(traits, p); !why.empty()) return why;
  std::string why = clblast_refuses();
  return why.empty() ? why : fmt::format("needs CLBlast, the process has none: {}", why);
}

std::string_view matmul_entry(const DeviceTraits& traits, const MatmulProblem& p, std::string_view forced) {
  using All = std::span<const Implementation<MatmulProblem>>;
  const bool sparse = p.left >= MatmulProblem::Left::sparse;
  const All list = forced.empty() ? (sparse ? All(kSparse) : All(kImplementations)) : (sparse ? All(kSparseForced) : All(kForced));
  return choose<MatmulProblem>(list, traits, p, forced, kOp).name;
}

void check_matmul_implementation(bool sparse, std::string_view forced) {
  sparse ? check_implementation(forced, kOp, kSparseForced) : check_implementation(forced, kOp, kForced);
}

DType matrix_dtype(const MatrixOperand& b) { return b.tensor() ? b.tensor()->dtype() : b.packed()->dtype(); }
const Dims& sizes_of(const MatrixOperand& b) { return b.tensor() ? b.tensor()->sizes() : b.packed()->sizes(); }
const Tensor& memory_of(const MatrixOperand& b) {
  if (b.tensor()) return *b.tensor();
  const auto& state = b.packed()->state();
  if (!state) throw Error(ErrorCode::invalid_argument, kOp, "the PackedMatrix must be a made one, got an empty one");
  return state->panels.defined() ? state->panels : state->original;
}

std::uint64_t matmul_tile_bytes(const MatmulProblem& p, const MatmulTile& tile, std::int64_t pad) {
  auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  return 2 * matmul_tile_numbers(u(tile.size), u(tile.depth), u(pad)) * (matmul_compute(p) == DType::f64 ? 8 : 4);
}

DType matmul_compute(const MatmulProblem& p) { return p.a == DType::f64 || p.a == DType::c128 ? DType::f64 : DType::f32; }

KernelPlan select(const DeviceTraits& traits, const MatmulProblem& p, std::string_view forced) {
  std::string_view entry = matmul_entry(traits, p, forced);
  const DType computed = matmul_compute(p), product = is_byte(p.a) ? DType::i32 : computed;
  using Part = MatmulProblem::Part;
  const bool panels_of_words = entry == "matmul_dot", dot = panels_of_words || entry == "matmul_sparse_dot";
  KernelPlan plan{.stem = "matmul", .entry = entry, .tuning = row_tuning(traits)};
  if (p.part == Part::rows) plan.entry = "matmul_dot_rows";
  if (p.part == Part::pack) plan.entry = dot ? "matmul_dot_pack" : "matmul_pack";
  if (p.part == Part::product && panels_of_words) plan.entry = "matmul_panels";
  const bool tiles = plan.entry == "matmul_tiles" || plan.entry == "matmul_sparse_tiles", few = plan.entry == "matmul_few",
             matrix = plan.entry == "matmul_matrix" || plan.entry == "matmul_sparse_matrix",
             items = tiles || few || matrix || plan.entry == "matmul_items" || plan.entry == "matmul_sparse_items", integer = is_byte(p.a),
             complex = is_complex(p.a);
  if (p.in_panels && p.part == Part::product) plan.note = "numerics chain: matrix instructions read no PackedMatrix in panels";
  if (items) plan.tuning.width = 1;
  set_lanes(plan, traits, computed == DType::f64 || p.wide, 1 + p.input_count + p.position_count, true, 4);
  auto stored = [&](DType d) { return d == DType::c64 ? DType::f32 : d == DType::c128 ? DType::f64 : d; };
  Defines& d = plan.defines;
  const DType number = dot ? DType::i32 : computed;  // element type of panels
  const bool as_it_lies = items || p.part != Part::product || p.place != MatmulPlace::packed;
  d.set_text("A_NAME", name(stored(p.a))).set_text("B_NAME", name(as_it_lies ? stored(p.b) : number));
  // beta reads the output in the product's compute type. Outputs with another compute type are not read, because beta is 0 for them.
  d.set_text("O_NAME", name(is_complex(p.output) ? computed : compute_dtype(p.output, kOp) == product ? p.output : product));
  d.set_type("ACC", number)
      .set("CLUTCH_IS_INTEGER", integer)
      .set("CLUTCH_COMPLEX", complex)
      .set("CLUTCH_DOT", !dot                                ? MATMUL_DOT_NOT
                         : p.dots && plan.tuning.width == 16 ? MATMUL_DOT_INSTRUCTION
                                                             : MATMUL_DOT_PLAIN);
  if (tiles) {
    MatmulTile tile = *std::find_if(kMatmulTiles.begin(), kMatmulTiles.end(), [&](const MatmulTile& t) { return t.size == p.tile; });
    tile.side = p.tile_side;
    plan.tuning.set_items(tile.items());
    std::int64_t pad = kMatmulTilePad;
    if (matmul_tile_bytes(p, tile, pad) > traits.local_bytes) pad = 0;
    d.set("CLUTCH_TILE_M", tile.size).set("CLUTCH_TILE_N", tile.size).set("CLUTCH_TILE_K", tile.depth).set("CLUTCH_TILE_PAD", pad);
    d.set("CLUTCH_THREADS_M", p.tile_side).set("CLUTCH_THREADS_N", p.tile_side).set("CLUTCH_A_ALONG_K", p.a_along_k).set("CLUTCH_B_ALONG_K", p.b_along_k);
    d.set("CLUTCH_NARROW", p.narrow).set("CLUTCH_A_QUADS", p.a_quads).set("CLUTCH_B_QUADS", p.b_quads).set("CLUTCH_OUT_QUADS", p.out_quads);
    if (p.b_quads || p.a_quads) d.set("CLUTCH_B_BYTES", bits(p.b) / 8);
    if (p.out_quads)
      d.set_text("OUT_NAME", name(p.output))
          .set_type("OUT_TYPE", p.output == DType::f64 ? DType::f64 : DType::f32)
          .set("CLUTCH_OUT_BYTES", bits(p.output) / (8 << static_cast<int>(is_complex(p.output))));
    // With more registers a compute unit would hold half as many groups: of the largest tile one alone, whose items all wait at the same barriers. Addresses of
    // the smallest, of which a unit seldom has as many as it holds, do not all fit into 64.
    if (computed == DType::f64) {
      plan.keeps = KernelPlan::Keeps::many;
    } else {
      plan.registers = p.tile == kMatmulTiles.front().size ? 128 : p.tile == kMatmulTiles.back().size ? 72 : 64;
    }
  }
  if (matrix) {
    const MatrixTile tile = matrix_tiles(p.layout).at(static_cast<std::size_t>(p.tile));
    plan.tuning.set_items(tile.items(p.layout));
    // A unit that limits registers then holds two groups; results of the largest parts take more, and one group has them all.
    if (p.layout != MatrixLayout::mma || (tile.part_rows * tile.part_columns <= 64 * 32 && p.numbers != MATMUL_NUMBERS_F8)) plan.registers = 128;
    const bool is_f8 = bits(p.a) == 8 && !integer;
    d.set("CLUTCH_LAYOUT", static_cast<int>(p.layout)).set("CLUTCH_NUMBERS", p.numbers).set("CLUTCH_STAND_IN", p.stand_in);
    d.set("CLUTCH_TILE_M", tile.rows).set("CLUTCH_TILE_N", tile.columns).set("CLUTCH_PART_M", tile.part_rows).set("CLUTCH_PART_N", tile.part_columns);
    const bool raw = !is_f8 || p.numbers == MATMUL_NUMBERS_F8;
    if (p.numbers == MATMUL_NUMBERS_F8) d.set("CLUTCH_A_E5M2", p.a == DType::f8e5m2).set("CLUTCH_B_E5M2", p.b == DType::f8e5m2);
    d.set("CLUTCH_A_RAW", raw).set("CLUTCH_B_RAW", raw).set("CLUTCH_A_ALONG_K", p.a_along_k).set("CLUTCH_B_ALONG_K", p.b_along_k);
    d.set("CLUTCH_A_UNSIGNED", p.a == DType::u8).set("CLUTCH_B_UNSIGNED", p.b == DType::u8).set("CLUTCH_NARROW", p.narrow);
    if (p.left >= MatmulProblem::Left::sparse) d.set("CLUTCH_SPARSE_INSTRUCTION", p.sparse_instruction);
  }
  if (few) {
    plan.tuning.set_items(kMatmulFewItems);
    // What an item loads ahead waits in registers, beside several results or as wide numbers.
    if (p.few_each > 1 || is_wide(p.a)) plan.keeps = KernelPlan::Keeps::many;
    d.set("CLUTCH_FEW_EACH", p.few_each).set("CLUTCH_FEW_ROWS", p.few_rows).set("CLUTCH_A_ALONG_K", p.a_along_k).set("CLUTCH_B_ALONG_K", p.b_along_k);
    d.set("CLUTCH_QUADS", is_plain_float(p.a) && is_plain_float(p.b)).set("CLUTCH_A_BYTES", bits(p.a) / 8).set("CLUTCH_B_BYTES", bits(p.b) / 8);
  }
  if (items || entry == "matmul_lanes") return plan;
  d.set("CLUTCH_VECTORS", p.vectors).set("CLUTCH_PACK_ROWS", kMatmulPackRows);
  if (p.part != Part::product) return plan;
  if (plan.entry == "matmul_sparse_rows") {
    d.set("CLUTCH_TOKENS", p.rows).set("CLUTCH_A_BYTES", bits(p.a) / 8);
    return plan;
  }
  if (p.left >= MatmulProblem::Left::sparse) d.set("CLUTCH_TRANSPOSED", p.left == MatmulProblem::Left::sparse_transposed);
  if (plan.entry == "matmul_sparse_dot") {
    d.set("CLUTCH_TOKENS", p.rows);
    return plan;
  }
  d.set("CLUTCH_B_AT", static_cast<int>(p.place)).set("CLUTCH_ROWS", p.rows).set("CLUTCH_A_DEPTH", p.a_depth);
  d.set("CLUTCH_B_BYTES", bits(as_it_lies ? stored(p.b) : number) / 8).set("CLUTCH_OUT_BYTES", bits(p.output) / (8 << static_cast<int>(is_complex(p.output))));
  d.set("CLUTCH_BLOCK_VECTORS", kMatmulBlockVectors).set("CLUTCH_ACCUMULATOR_TILES", kMatmulAccumulatorTiles);
  if (plan.tuning.local > 1) d.set("CLUTCH_GROUPED", 1);
  return plan;
}

namespace {

/// What plugins know a product with an epilogue by.
constexpr const char* kOfFunction = "linalg::matmul_function";

/// Computes into an existing output.
void run_out(MatmulCall c, const Stream& stream) {
  check_matmul_inputs(c);
  const bool is_product = !c.sparse && !c.b->packed() && c.options.numerics == linalg::Numerics::chain && c.out.numel() > 0,
             has_function = c.f && !c.f->empty();
  if (is_product && !has_function && by_plugin(kOp, c.options.implementation, {&c.out, &c.a, c.b, &c.options, &stream}, stream)) return;
  if (is_product && has_function && has_plugin_implementations(kOfFunction) && is_for_plugins(*c.f)) {
    const std::span<const Tensor> inputs = c.inputs;
    if (by_plugin(kOfFunction, c.options.implementation, {&c.out, &c.a, c.b, c.f, &inputs, &c.options, &stream}, stream)) return;
  }
  // Complex columns must be adjacent, since kernels store pairs of real numbers.
  if (!is_complex(c.out.dtype()) || c.out.numel() == 0 || c.out.strides()[c.out.rank() - 1] == 1 || c.out.sizes()[c.out.rank() - 1] == 1)
    return run_matmul(c, stream);
  Tensor out = c.out;
  c.out = out.contiguous(stream);
  run_matmul(c, stream);
  copy_(out, c.out, {}, stream);
}

}  // namespace
}  // namespace detail

namespace linalg {

DType product_dtype(DType a, DType b, std::string_view op) {
  using namespace clutch::detail;
  if (is_byte(a) && is_byte(b)) return DType::i32;
  if (is_f8(a) && is_f8(b)) return DType::f32;
  if (a == b && (is_plain_float(a) || is_complex(a))) return a == DType::f16 || a == DType::bf16 ? DType::f32 : a;
  throw Error(ErrorCode::invalid_dtype, op,
              fmt::format("a and b must both be f32, f64, f16, bf16, c64 or c128, or two of the 8-bit floats or integers, got {} and {}", name(a), name(b)));
}

Tensor matmul(const Tensor& a, const MatrixOperand& b, const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& options,
              const Stream& given) {
  detail::OpName named("linalg::matmul");
  detail::MatmulCall c = detail::check_matmul(nullptr, a, b, f, inputs, options);
  Stream stream = detail::resolve_stream(given, *c.runtime, detail::kOp);
  const int a_rank = a.rank(), b_rank = detail::sizes_of(b).rank();
  if ((a_rank == 1 || b_rank == 1) && !inputs.empty())
    throw Error(ErrorCode::invalid_shape, detail::kOp,
                fmt::format("operands must have two dimensions with inputs of an epilogue, got {} and {}; unsqueeze() vectors", to_string(a.sizes()),
                            to_string(detail::sizes_of(b))));
  if (a_rank == 1) c.a = a.unsqueeze(0);
  Tensor column = b_rank == 1 ? b.tensor()->unsqueeze(1) : Tensor();
  MatrixOperand b_matrix = b_rank == 1 ? MatrixOperand(column) : b;
  c.b = &b_matrix, c.options.beta = 0;
  c.sizes = detail::product_sizes(c.a.sizes(), detail::sizes_of(b_matrix));
  detail::check_matmul_inputs(c);
  Tensor out = empty(c.sizes, {.dtype = c.output, .device = stream.device()}, stream);
  c.out = out;
  detail::run_out(c, stream);
  if (a_rank == 1) out = out.squeeze(out.rank() - 2);
  return b_rank == 1 ? out.squeeze(out.rank() - 1) : out;
}
Tensor matmul(const Tensor& a, const MatrixOperand& b, const MatmulOptions& options, const Stream& stream) {
  detail::OpName named("linalg::matmul");
  return matmul(a, b, ExprFunction(), std::span<const Tensor>(), options, stream);
}

void matmul_out(const Tensor& out, const Tensor& a, const MatrixOperand& b, const ExprFunction& f, std::span<const Tensor> inputs, const MatmulOptions& options,
                const Stream& given) {
  detail::OpName named("linalg::matmul_out");
  detail::MatmulCall c = detail::check_matmul(&out, a, b, f, inputs, options);
  detail::run_out(c, detail::resolve_stream(given, *c.runtime, detail::kOp));
}
void matmul_out(const Tensor& out, const Tensor& a, const MatrixOperand& b, const MatmulOptions& options, const Stream& stream) {
  detail::OpName named("linalg::matmul_out");
  matmul_out(out, a, b, ExprFunction(), std::span<const Tensor>(), options, stream);
}

}  // namespace linalg
}}  // namespace clutch::v0
