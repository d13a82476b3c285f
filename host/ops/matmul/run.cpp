// SPDX-License-Identifier: Apache-2.0
// Products on the device: selection of the kernel, layout of the operands, and tiling.
#include <clutch/ops/copy.hpp>

#include "encode/args.hpp"
#include "encode/dot_products.hpp"
#include "matmul/args.h"
#include "ops/matmul/clblast.hpp"
#include "ops/matmul/product.hpp"
#include "runtime/quirks.hpp"
#include "runtime/storage.hpp"
#include "tune/tune.hpp"

#include <map>

namespace clutch { inline namespace v0 { namespace detail {

const BuiltPlan& matmul_plan(const MatmulCall& c, const MatmulProblem& p) {
  return c.runtime->plans().find<BuiltPlan>(kMatmul, p, c.options.implementation, [&] {
    KernelPlan selected = select(c.runtime->traits(), p, c.options.implementation);
    const DType computed = matmul_compute(p), product = is_byte(p.a) ? DType::i32 : computed;
    const DType output = is_complex(p.output) ? computed : p.output;
    const ExprFunction& f = c.f->empty() ? identity(product) : *c.f;
    std::array<DType, kMatmulInputs + 1> inputs{product};
    std::copy(p.inputs.begin(), p.inputs.end(), inputs.begin() + 1);
    // In the kernel operand 0 is the product when it is read, and the result when it is written.
    const auto of_inputs = std::span<const DType>(inputs).first(std::size_t{1} + p.input_count);
    check_byte_selects(c.runtime->traits(), f, std::span(&output, 1), of_inputs, kMatmul);
    PrintNames names{.first_input = 0, .first_position = std::size_t{1} + p.input_count};
    selected.expression =
        print_operands(1, p.input_count, p.position_count, f.body()->buffers.size()) + print_opencl(f, std::span(&output, 1), of_inputs, names).text;
    return build_plan(*c.runtime, selected);
  });
}

std::int64_t panel_lanes(const DeviceTraits& traits, const MatmulProblem& p) {
  return lanes_of(row_tuning(traits), traits, matmul_compute(p) == DType::f64 || p.wide);
}

namespace {

/// Rows and vectors of a register tile, and how b is read. Measured on wide vectors by `clutch-bench --sweep --filter ^matmul/`.
Tiling tiling_of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, std::int64_t lanes, bool unit_columns, bool unit_rows, bool complex,
                 bool dot, bool converted, std::int64_t units, bool is_packed) {
  Tiling t;
  t.block = 512;
  t.rows = m >= 5 ? 6 : m >= 3 ? 4 : std::max<std::int64_t>(1, m);
  auto padded = [](std::int64_t size, std::int64_t by) { return parts_of(size, by) * by; };
  // True for a tile of that many rows if it computes less behind the last row of a.
  auto saves = [&](std::int64_t rows) { return 21 * padded(m, rows) <= 20 * padded(m, t.rows); };
  if (is_packed && !complex && !dot && m >= 5)
    for (std::int64_t rows : {5, 4})
      if (saves(rows)) t.rows = rows;
  if (complex || is_packed) return t;
  if (dot) {
    // For one or two rows, wide tiles, so that whole cache lines of b are read; for many rows, words are made once for all tiles.
    if (m <= 2)
      t.vectors = 8;
    else if (m <= 16)
      t.rows = parts_of(m, parts_of(m, 6));
    else if (t.rows == 6 && padded(m, 8) * padded(n, 3 * lanes) < padded(m, 6) * padded(n, kMatmulVectors * lanes))
      t.rows = 8, t.vectors = 3;
    if (const std::int64_t tiles = parts_of(m, t.rows); tiles <= kMatmulAccumulatorTiles / 2) t.place = MatmulPlace::inside, t.block = m <= 16 ? 32 : 64;
    return t;
  }
  if (unit_rows && !unit_columns && m <= kMatmulAcrossRows && lanes > 1) {
    t.place = MatmulPlace::across, t.rows = m, t.vectors = 1, t.block = k;
    return t;
  }
  // For few rows of a, b is read once: wide pieces of its rows in sequence, as wide as leaves every core work.
  if (unit_columns && m <= 2)
    for (std::int64_t vectors : {16 / t.rows, 8 / t.rows})
      if (t.vectors == kMatmulVectors && batch * parts_of(n, vectors * lanes) >= 4 * units && 8 * padded(n, vectors * lanes) <= 9 * n) t.vectors = vectors;
  // Tiles of 8 rows take two vectors, which leave registers for the numbers of b.
  if (m == 3) t.rows = 3;
  if (m >= 5 && (m <= 24 || !unit_columns) && saves(8)) t.rows = 8, t.vectors = n % (2 * lanes) != 0 && n % (3 * lanes) == 0 ? 3 : 2;
  if (m >= 5 && saves(5)) t.rows = 5, t.vectors = kMatmulVectors;
  // For narrow matrices, tiles with as many vectors as the matrix.
  if (m > 2 && n <= 2 * lanes) t.rows = m > 4 ? 8 : 4, t.vectors = parts_of(n, lanes);
  // 8 x 3 tiles if they pad the result less.
  const bool unfit = n % (kMatmulVectors * lanes) != 0, fits_three = n % (3 * lanes) == 0;
  if (t.rows == 6 && (fits_three || unfit) && padded(m, 8) * padded(n, 3 * lanes) < padded(m, 6) * padded(n, kMatmulVectors * lanes)) t.rows = 8, t.vectors = 3;
  const std::int64_t tiles = parts_of(m, t.rows);
  if (unit_columns && n >= lanes && (tiles <= (converted ? 2 : kMatmulAccumulatorTiles / 2) || (!converted && k * n <= 1 << 18))) {
    t.place = MatmulPlace::direct, t.block = tiles == 1 ? 64 : 128;
  } else if (tiles <= kMatmulAccumulatorTiles / 2) {
    t.place = MatmulPlace::inside, t.block = 128;
    if (t.vectors > kMatmulVectors) t.vectors = kMatmulVectors;
  }
  return t;
}

/// Tiles of a 2:4 matrix. They are wide, because a row of b is loaded for each number that is multiplied with it.
Tiling sparse_tiling_of(std::int64_t m, std::int64_t n, std::int64_t lanes) {
  Tiling t;
  if (n > 4 * lanes && m > 6 * kMatmulAccumulatorTiles)
    t.rows = 3, t.vectors = 8, t.block = 48, t.tiles = m >= 1536 ? 64 : 32;
  else if (n > lanes)
    t.rows = 6, t.vectors = 4, t.block = 128, t.tiles = kMatmulAccumulatorTiles;
  else
    t.rows = 16, t.vectors = 1, t.block = 256;
  t.place = parts_of(m, t.rows) <= kMatmulAccumulatorTiles ? MatmulPlace::inside : MatmulPlace::packed;
  return t;
}

/// Computes by CLBlast, one batch after another. Errors: not_supported for a packed b.
void run_clblast(const MatmulCall& c, const Stream& stream) {
  if (!c.b->tensor()) throw Error(ErrorCode::not_supported, kMatmul, "implementation clblast refuses: b must be a Tensor, got a PackedMatrix");
  Dims batch;
  for (int d = 0; d < c.sizes.rank() - 2; ++d) batch.push_back(c.sizes[d]);
  auto matrices = [&](const Tensor& t) {
    Dims all = batch;
    all.push_back(t.sizes()[t.rank() - 2]), all.push_back(t.sizes()[t.rank() - 1]);
    return t.expand(all);
  };
  Tensor out = c.out, a = matrices(c.a), b = matrices(*c.b->tensor());
  if (out.rank() == 2) out = out.unsqueeze(0), a = a.unsqueeze(0), b = b.unsqueeze(0);
  // Iterates over the outer dims of the batch.
  auto walk = [&](auto&& self, const Tensor& x, const Tensor& y, const Tensor& z) -> void {
    if (x.rank() == 3) return clblast_gemm(x, y, z, c.options.alpha, c.options.beta, c.options.beta != 0, stream, kMatmul);
    for (std::int64_t i = 0; i < x.sizes()[0]; ++i) self(self, x.select(0, i), y.select(0, i), z.select(0, i));
  };
  walk(walk, out, a, b);
}

/// Computes the product and then the function in two launches, for functions that the kernel does not take.
void run_by_product(const MatmulCall& c, const std::vector<Tensor>& inputs, const Stream& stream) {
  if (c.options.beta != 0)
    throw Error(ErrorCode::not_supported, kMatmul,
                fmt::format("beta must be 0 with more inputs than the kernel takes, or positions in batch dims, got {}", c.options.beta));
  const ExprFunction none;
  MatmulCall product = c;
  product.f = &none, product.inputs.clear();
  product.output = linalg::product_dtype(c.a.dtype(), matrix_dtype(*c.b));
  product.out = empty(c.sizes, {.dtype = product.output, .device = stream.device()}, stream);
  run_matmul(product, stream);
  std::vector<Tensor> all{product.out};
  all.insert(all.end(), inputs.begin(), inputs.end());
  Tensor out = c.out;
  if (c.transposed) {
    out = out.mT();
    for (Tensor& t : all) t = t.expand(c.sizes).mT();
  }
  map_out(std::span(&out, 1), *c.f, all, {}, stream);
}

/// A PackedMatrix with the strides of its batch; its row and column strides are not used.
Strided panels_of(const linalg::PackedMatrix& packed, const Tensor& panels, const Dims& sizes) {
  const Dims& given = packed.sizes();
  Strided result;
  result.tensor = &panels;
  result.batch = Dims::filled(sizes.rank() - 2, 0);
  std::int64_t step = panels.strides()[0];
  for (int d = given.rank() - 3; d >= 0; step *= given[d--])
    if (given[d] != 1) result.batch[d + sizes.rank() - given.rank()] = step;
  return result;
}

/// Most columns for matmul_sparse_rows: fewer on devices where it has to select instead of permute.
std::int64_t most_tokens(const DeviceTraits& traits, const MatmulProblem& p) { return panel_lanes(traits, p) == 16 ? kMatmulFewTokens : kMatmulFewTokens / 4; }

/// Columns that matmul_sparse_rows and matmul_sparse_dot take at a time.
std::uint8_t tokens_of(std::int64_t columns) { return columns > 8 ? 16 : columns > 4 ? 8 : columns > 2 ? 4 : static_cast<std::uint8_t>(columns); }

}  // namespace

/// True if the kernel takes the function: at most kMatmulInputs inputs, and positions within matrices alone.
bool Product::note_function() {
  SeenTypes seen;
  if (!c.f->empty()) {
    positions = position_strides(*c.f, c.sizes, kMatmul);
    if (c.transposed)
      for (Dims& d : positions) std::swap(d[d.rank() - 1], d[d.rank() - 2]);
    seen.note(*c.f);
    for (const Tensor& t : inputs) seen.note(t.dtype());
  }
  seen.note(c.output);
  p.wide = !complex && seen.has_wide;
  for (const Dims& d : positions)
    for (int i = 0; i < c.sizes.rank() - 2; ++i)
      if (d[i] != 0) return false;
  if (inputs.size() > kMatmulInputs) return false;
  p.input_count = static_cast<std::uint8_t>(inputs.size()), p.position_count = static_cast<std::uint8_t>(positions.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) p.inputs[i] = inputs[i].dtype();
  return true;
}

/// Notes which matrix instructions the call allows and the device has.
void Product::note_matrix_instructions() {
  using linalg::Numerics;
  const bool blocks = c.options.numerics != Numerics::chain, asked = c.options.implementation == matrix_entry();
  MatrixNumbers numbers{.a_unsigned = p.a == DType::u8, .b_unsigned = p.b == DType::u8};
  if (is_byte(p.a))
    numbers.kind = MATMUL_NUMBERS_BYTES;
  else if ((blocks || asked) && (p.a == DType::f16 || is_f8(p.a)))
    numbers.kind = MATMUL_NUMBERS_F16;
  else if ((blocks || asked) && p.a == DType::bf16)
    numbers.kind = MATMUL_NUMBERS_BF16;
  else if (c.options.numerics >= Numerics::tf32 && p.a == DType::f32)
    numbers.kind = MATMUL_NUMBERS_TF32;
  // Panels are of the compute type, in an order of their own; where instructions are forced lay_out() refuses them.
  p.in_panels = is_packed && blocks && numbers.kind != 0;
  if (numbers.kind == 0 || (is_packed && !asked)) return;
  MatrixInstructions found;
  if (sparse) {
    MatrixNumbers of_sparse = numbers;
    of_sparse.sparse = true;
    found = matrix_instructions(*c.runtime, of_sparse, asked);
    p.sparse_instruction = found.layout != MatrixLayout::none;
  }
  if (!sparse && c.options.numerics == Numerics::f8 && is_f8(p.a) && is_f8(p.b)) {
    const MatrixNumbers of_f8{.kind = MATMUL_NUMBERS_F8, .a_e5m2 = p.a == DType::f8e5m2, .b_e5m2 = p.b == DType::f8e5m2};
    found = matrix_instructions(*c.runtime, of_f8, asked);
    if (found.layout != MatrixLayout::none) numbers = of_f8;
  }
  if (found.layout == MatrixLayout::none) found = matrix_instructions(*c.runtime, numbers, asked);
  p.numbers = static_cast<std::uint8_t>(numbers.kind), p.layout = found.layout, p.stand_in = found.stand_in;
}

void Product::choose_entry() {
  if (is_byte(p.a)) p.dots = dot_products(*c.runtime);
  note_matrix_instructions();
  // For few columns, the kernel that reads the fewest bytes.
  const std::int64_t few = c.sizes[c.sizes.rank() - 1];
  if (sparse && few <= most_tokens(traits, p)) p.vectors = 0, p.rows = tokens_of(few);
  if (is_packed && is_byte(p.a)) c.options.implementation = c.b->packed()->state()->words ? "matmul_dot" : "matmul_panels";
  entry = matmul_entry(traits, p, c.options.implementation);
  if (entry == "matmul_tiles" && c.options.implementation.empty() && p.layout == MatrixLayout::none && library_is_faster(c, p, stream)) entry = kClblast;
  by_tiles = entry == "matmul_tiles" || entry == "matmul_sparse_tiles";
  by_few = entry == "matmul_few", by_matrix = entry == matrix_entry();
  by_rows = entry == "matmul_sparse_rows", by_words = entry == "matmul_sparse_dot";
  if (by_words) p.vectors = 0, p.rows = tokens_of(few);
  // With more than a few columns bytes no longer limit the speed: converting f8 to f32 would take as long as the products, so a is kept in bf16.
  if (by_rows && few > 4 && (p.a == DType::f8e4m3fn || p.a == DType::f8e5m2)) p.a = DType::bf16;
  dot = entry == "matmul_dot", panels = dot || entry == "matmul_panels" || entry == "matmul_sparse_panels";
}

/// True if items convert a, a tile's rows for each panel anew, faster than a launch of its own does for all of them.
bool Product::converts_a() const {
  constexpr std::int64_t kMostPanels = 3, kMostF8Panels = 1, kSmall = 1 << 22;
  const std::int64_t columns = c.sizes[c.sizes.rank() - 1], depth = c.a.sizes()[c.a.rank() - 1];
  if (c.a.strides()[c.a.rank() - 1] != 1 && depth > 1) return false;
  return columns <= (is_f8(p.a) ? kMostF8Panels : kMostPanels) * kMatmulVectors * lanes() || numel(c.sizes) * depth <= kSmall;
}

/// Lays out operands as the kernel reads them: joins batch dims if all strides allow it, and batches that share one b as rows of one matrix.
void Product::lay_out() {
  const Dims& sizes = c.sizes;
  a = c.a;
  p.a_depth = 0;
  if (panels && !sparse && !dot && !complex && a.dtype() != matmul_compute(p)) {
    if (converts_a())
      p.a_depth = kMatmulDepth;
    else
      a = a.to(matmul_compute(p), {}, stream);
  }
  if (by_rows && (p.b != matmul_compute(p) || b().strides()[b().rank() - 2] != 1))
    converted = b().mT().to(matmul_compute(p), {}, stream).contiguous(stream).mT();
  if (complex && a.strides()[a.rank() - 1] != 1 && a.sizes()[a.rank() - 1] > 1) a = a.contiguous(stream);
  if (is_packed && !panels)
    throw Error(ErrorCode::not_supported, kMatmul, fmt::format("implementation {} refuses: b must be a Tensor, got a PackedMatrix", entry));
  rows = sizes[sizes.rank() - 2], n = sizes[sizes.rank() - 1], k = a.sizes()[a.rank() - 1];
  operands = {{c.out, sizes}, {a, sizes}};
  operands[1].row = a.strides()[a.rank() - 2], operands[1].column = a.strides()[a.rank() - 1];
  if (is_packed) {
    operands.push_back(panels_of(*c.b->packed(), b(), sizes));
  } else {
    operands.push_back({b(), sizes});
    operands[2].row = b().strides()[b().rank() - 2], operands[2].column = b().strides()[b().rank() - 1];
  }
  for (const Tensor& t : inputs) operands.push_back({t, sizes});

  Dims batch_sizes;
  for (int d = 0; d < sizes.rank() - 2; ++d) batch_sizes.push_back(sizes[d]);
  std::vector<Dims> batch_strides;
  for (const Strided& o : operands) batch_strides.push_back(o.batch);
  stride.resize(16 * operands.size());
  Layout unused_layout;
  bool unused_wide;
  make_walk(batch_sizes, batch_strides, &rank, size.data(), stride.data(), &unused_layout, &unused_wide);
  batch = size[0];
  if (rows == 1)
    for (std::size_t o = 0; o < operands.size(); ++o)
      if (o != 2) operands[o].row = batch_stride(o);
  bool joins = !sparse && batch > 1 && batch_stride(2) == 0 && positions.empty();
  for (std::size_t o = 0; o < operands.size() && joins; ++o) joins = o == 2 || batch_stride(o) == rows * operands[o].row;
  if (joins) rows *= batch, batch = 1;
}

/// True if tiles would be mostly empty: batches of small matrices, of which items take a result each.
bool Product::gains_by_items() const {
  constexpr std::int64_t kSmall = 256, kMany = 64;
  return entry == "matmul_tiles" && c.options.implementation.empty() && rows * n <= kSmall && batch >= kMany;
}

/// True if there are as few rows, or columns, as matmul_few takes.
bool Product::has_few() const { return std::min(rows, n) <= MATMUL_FEW * MATMUL_FEW_EACH; }

/// The problem for matmul_few: says what is few, and how the operands lie.
MatmulProblem Product::few_problem() const {
  MatmulProblem few = p;
  few.few_rows = rows <= n, few.a_along_k = operands[1].column == 1, few.b_along_k = operands[2].column != 1;
  few.few_each = 1;
  while (MATMUL_FEW * std::int64_t{few.few_each} < std::min(rows, n)) few.few_each = static_cast<std::uint8_t>(2 * few.few_each);
  return few;
}

/// True if blocks of few rows or columns are faster than tiles, most of which would be empty: if the other side has a block, and k is long.
bool Product::gains_by_few() const {
  if (entry != "matmul_tiles" || !c.options.implementation.empty() || !has_few() || complex) return false;
  if (k < MATMUL_FEW_DEPTH || std::max(rows, n) < MATMUL_FEW_LINES) return false;
  MatmulCall forced = c;
  forced.options.implementation = "matmul_few";
  const MatmulProblem few = few_problem();
  // A driver may allow fewer items in a group of this kernel than in others.
  return fits_few(traits, few).empty() && matmul_plan(forced, few).tuning.local == kMatmulFewItems;
}

/// True if the call allows the device's matrix instructions, and the product fills half of a tile of theirs. That is decided by the call's sizes, not by how
/// batches are joined, so that strides change no bits.
bool Product::gains_by_matrix() const {
  if (!by_tiles || !c.options.implementation.empty() || !fits_matrix(traits, p).empty()) return false;
  const std::int64_t least = matrix_tiles(p.layout).back().rows / 2;
  const Dims &of_b = sizes_of(*c.b), &sizes = c.sizes;
  bool shared = true;  // one b
  for (int d = 0; d + 2 < of_b.rank(); ++d) shared = shared && of_b[d] == 1;
  std::int64_t of_rows = 1;
  for (int d = shared ? 0 : sizes.rank() - 2; d + 1 < sizes.rank(); ++d) of_rows *= sizes[d];
  return of_rows >= least && n >= least && k >= least;
}

/// True if each matrix fits a lane: small, dense, and adjacent to the next.
bool Product::fits_lanes() const {
  auto dense = [](const Strided& o, std::int64_t of_rows, std::int64_t of_columns) {
    return of_rows * of_columns <= kMatmulLaneNumbers && (o.column == 1 || of_columns == 1) && (o.row == of_columns || of_rows == 1);
  };
  return !is_packed && rank == 1 && rows == c.sizes[c.sizes.rank() - 2] && dense(operands[0], rows, n) && dense(operands[1], rows, k) &&
         dense(operands[2], k, n) && (batch == 1 || batch_stride(0) > 0);
}

/// True if a batch is faster by lanes, provided it fits: not if the columns of single matrices already fill vectors.
bool Product::gains_by_lanes() const { return is_narrow_batch() && fits_matmul_lanes(traits, p).empty(); }
bool Product::is_narrow_batch() const {
  const bool whole = operands[2].column == 1 && n % lanes() == 0 && rows > 2;
  return panels && !sparse && c.options.implementation.empty() && batch >= kMatmulLanesBatch && !whole;
}

/// True if such a batch of f16, bf16 or bytes is faster as a batch of f32. Sums of bytes in matrices of this size are exact in f32.
bool Product::gains_as_f32() const {
  const bool small =
      std::max({rows * k, k * n, rows * n}) <= kMatmulLaneNumbers && rows * n * k <= 8 * 8 * 8 && rank == 1 && rows == c.sizes[c.sizes.rank() - 2];
  const bool halves = p.a == DType::f16 || p.a == DType::bf16, bytes = is_byte(p.a) && is_byte(p.b) && c.options.alpha == 1;
  return is_narrow_batch() && small && (halves || bytes) && p.function == 0 && c.options.beta == 0 && !is_packed && !c.sparse;
}

void Product::choose_tiling() {
  const bool unit_columns = operands[2].column == 1;
  if (a_core_each())
    tiling = tiling_of(rows, n, k, batch, lanes(), unit_columns, operands[2].row == 1, complex, dot, p.b != matmul_compute(p), traits.compute_units, is_packed);
  if (sparse) tiling = sparse_tiling_of(rows, n, lanes());
  if (is_packed) tiling.vectors = b().sizes()[3] / lanes();
  if (c.tiling) {
    tiling = *c.tiling;
  } else if (a_core_each() && !dot && !complex && !is_packed && c.options.implementation.empty() && tuning_matters(kMatmul)) {
    if (std::optional<Tiling> tuned = tuned_tiling(c, tiling, rows, batch, lanes(), unit_columns, stream)) tiling = *tuned;
    // A tuned choice applies to a class of shapes, and may not fit this shape.
    if (tiling.place == MatmulPlace::direct && (!unit_columns || n < lanes())) tiling.place = MatmulPlace::inside;
  }
  if (p.a_depth != 0 && tiling.place != MatmulPlace::across) tiling.block = std::min<std::int64_t>(tiling.block, p.a_depth);
  p.rows = static_cast<std::uint8_t>(tiling.rows), p.vectors = static_cast<std::uint8_t>(tiling.vectors);
  if (tiling.place == MatmulPlace::inside) tiling.block = std::min(tiling.block, kMatmulBlockVectors / tiling.vectors);
  p.place = tiling.place;
}

/// If the rows of the result have stride 1, writes the result as the transposed matrix.
void Product::transpose_results() {
  const bool across = by_rows || (by_words && (p.rows != lanes() || p.rows == 1));
  if (!across && (operands[0].row != 1 || operands[0].column == 1 || n == 1)) return;
  p.left = MatmulProblem::Left::sparse_transposed;
  turn_results();
  for (Dims& d : positions) std::swap(d[d.rank() - 1], d[d.rank() - 2]);
}

/// Swaps rows and columns of the result and of what the function reads.
void Product::turn_results() {
  for (std::size_t o = 0; o < operands.size(); ++o)
    if (o == 0 || o > 2) std::swap(operands[o].row, operands[o].column);
}

namespace {

/// Multiplies small dense matrices, one in each lane.
void run_lanes(const Product& x, const Stream& stream) {
  MatmulCall forced = x.c;
  forced.options.implementation = "matmul_lanes";
  const BuiltPlan& plan = matmul_plan(forced, x.p);
  Encoder encoder(stream, kMatmul);
  x.c.options.beta != 0 ? encoder.inout(x.c.out, "out") : encoder.output(x.c.out, "out");
  encoder.input(x.a, "a").input(x.b(), "b");
  auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  bind_args(encoder, MatmulLanesArgs{.m = u(x.rows),
                                     .n = u(x.n),
                                     .k = u(x.k),
                                     .batch = u(x.batch),
                                     .a_batch = u(x.batch_stride(1)),
                                     .b_batch = u(x.batch_stride(2)),
                                     .c_batch = u(x.batch_stride(0))});
  x.number(encoder, x.c.options.alpha, "alpha"), x.number(encoder, x.c.options.beta, "beta");
  encoder.flops(x.flops()).dispatch(plan.kernel,
                                    item_geometry(static_cast<std::uint64_t>((x.batch + plan.tuning.width - 1) / plan.tuning.width), plan.tuning.local));
}

/// The same product, computed in f32.
void run_as_f32(const MatmulCall& c, const Stream& stream) {
  const Tensor b = c.b->tensor()->to(DType::f32, {}, stream);
  const linalg::MatrixOperand operand(b);
  MatmulCall product = c;
  product.a = c.a.to(DType::f32, {}, stream), product.b = &operand, product.output = DType::f32;
  product.out = c.output == DType::f32 ? c.out : empty(c.sizes, {.device = stream.device()}, stream);
  run_matmul(product, stream);
  if (c.output != DType::f32) copy_(c.out, product.out, {}, stream);
}

}  // namespace

void swap_sides(MatmulCall& c, const Tensor& a, const linalg::MatrixOperand& b) {
  c.a = a, c.b = &b, c.out = c.out.mT(), c.transposed = true;
  for (Tensor& t : c.inputs) t = t.expand(c.sizes).mT();
  std::swap(c.sizes[c.sizes.rank() - 1], c.sizes[c.sizes.rank() - 2]);
}

namespace {

/// True if the columns are so few that a core would compute with few lanes of its vectors, and the rows of a, as columns of the transposed product, fill them.
bool gains_by_columns(const MatmulCall& c) {
  const std::int64_t m = c.sizes[c.sizes.rank() - 2], n = c.sizes[c.sizes.rank() - 1], k = c.a.sizes()[c.a.rank() - 1], batch = numel(c.sizes) / (m * n);
  if (c.transposed || c.sparse || !c.b->tensor() || !c.options.implementation.empty() || c.tiling || is_complex(c.a.dtype())) return false;
  // Batches that share one b are rows of one matrix, and small matrices have a lane each.
  const bool is_shared = batch > 1 && c.b->tensor()->numel() == n * k,
             is_small = batch >= kMatmulLanesBatch && std::max({m * k, k * n, m * n}) <= kMatmulLaneNumbers;
  const std::int64_t most = is_byte(c.a.dtype()) ? kMatmulFewByteColumns : kMatmulAcrossRows;
  return n <= most && m > n && !is_shared && !is_small && row_tuning(c.runtime->traits()).local == 1;
}

/// True for products of a column and a row, whose time goes into stores: `map` writes rows as fast as memory takes them.
bool is_outer(const MatmulCall& c) {
  constexpr std::int64_t kLeastColumns = 256;
  const int last = c.sizes.rank() - 1;
  return c.a.sizes()[c.a.rank() - 1] == 1 && c.sizes[last] >= kLeastColumns && c.out.strides()[last] == 1 && !c.sparse && c.b->tensor() && !c.tiling &&
         c.f->empty() && c.options.implementation.empty() && c.options.alpha == 1 && c.options.beta == 0 && is_plain_float(c.a.dtype()) &&
         is_plain_float(c.out.dtype());
}

/// The chain of one element along k, for each compute type.
const ExprFunction& chain_of_one(DType dtype) {
  static const auto* all = [] {
    auto* made = new std::map<DType, ExprFunction>;
    for (DType d : {DType::f32, DType::f64}) made->try_emplace(d, trace([](Expr x, Expr y) { return fma(x, y, 0.0); }, std::array{d, d}));
    return made;
  }();
  return all->at(dtype);
}

}  // namespace

void run_matmul(MatmulCall c, const Stream& stream) {
  check_matmul_implementation(c.sparse != nullptr, c.options.implementation);
  if (c.out.numel() == 0) return;
  if (is_outer(c)) {
    const Tensor operands[] = {c.a, *c.b->tensor()};
    return map_out(std::span(&c.out, 1), chain_of_one(linalg::product_dtype(c.a.dtype(), c.a.dtype())), operands, {}, stream);
  }
  if (gains_by_columns(c)) {
    const Tensor a = c.b->tensor()->mT(), rows = c.a.mT();
    const linalg::MatrixOperand b(rows);
    swap_sides(c, a, b);
    return run_matmul(std::move(c), stream);
  }
  Product product(std::move(c), stream);
  if (!product.note_function()) return run_by_product(product.c, product.inputs, stream);
  product.choose_entry();
  if (product.entry == kClblast) return run_clblast(product.c, stream);
  product.lay_out();
  if (product.entry == "matmul_lanes" || product.gains_by_lanes()) {
    if (product.fits_lanes()) return run_lanes(product, stream);
    if (product.entry == "matmul_lanes")
      throw Error(
          ErrorCode::not_supported, kMatmul,
          fmt::format("implementation matmul_lanes refuses: matrices must be small and dense, got ({}, {}) times ({}, {}) with strides {} and {}", product.rows,
                      product.k, product.k, product.n, to_string(product.a.strides()), product.is_packed ? "of panels" : to_string(product.b().strides())));
  }
  if (product.gains_as_f32()) return run_as_f32(product.c, stream);
  if (product.gains_by_matrix()) {
    product.c.options.implementation = product.matrix_entry();
    product.choose_entry();
    // A permission is no demand: where the driver does not take the kernel, elements are chains.
    if (!has_matrix_plan(product)) {
      product.c.options.implementation.clear();
      product.choose_entry();
    }
  }
  if (product.gains_by_items()) {
    product.c.options.implementation = "matmul_items";
    product.choose_entry();
  }
  if (product.gains_by_few()) {
    product.c.options.implementation = "matmul_few";
    product.choose_entry();
  }
  if (product.by_few) {
    if (!product.has_few())
      throw Error(ErrorCode::not_supported, kMatmul,
                  fmt::format("implementation matmul_few refuses: rows or columns must be at most {}, got {} and {}", MATMUL_FEW * MATMUL_FEW_EACH,
                              product.rows, product.n));
    product.p = product.few_problem();
  }
  if (product.panels) product.choose_tiling();
  if (product.sparse && (product.panels || product.by_rows || product.by_words)) product.transpose_results();
  launch(product);
}

}}}  // namespace clutch::v0::detail
