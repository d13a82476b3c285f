// SPDX-License-Identifier: Apache-2.0
// Arguments of the product kernels: packed operands, sizes and strides, and the number of items.
#include "encode/args.hpp"
#include "encode/meaning.hpp"
#include "matmul/args.h"
#include "ops/matmul/product.hpp"
#include "sparse24/args.h"
#include "tune/tune.hpp"

namespace clutch { inline namespace v0 { namespace detail {

namespace {

std::uint64_t u(std::int64_t v) { return static_cast<std::uint64_t>(v); }

/// Largest tile of which every compute unit gets one, that fits into local memory and has at most half as many results more to compute as the smallest has;
/// else the smallest.
MatmulTile tile_of(const Product& x) {
  auto results = [&](std::int64_t size) { return x.batch * parts_of(x.rows, size) * size * parts_of(x.parts() * x.n, size) * size; };
  const std::int64_t least = results(kMatmulTiles.back().size);
  for (const MatmulTile& tile : kMatmulTiles) {
    if (tile.size == kMatmulTiles.front().size && matmul_compute(x.p) == DType::f64) continue;  // its sums would take the registers of an item twice
    if (tile.items() > x.traits.max_work_group || matmul_tile_bytes(x.p, tile, 0) > x.traits.local_bytes) continue;
    if (const std::int64_t all = results(tile.size); 2 * all <= 3 * least && all >= x.traits.compute_units * tile.size * tile.size) return tile;
  }
  return kMatmulTiles.back();
}

/// Notes how the operands lie that tiles are loaded from: which of their neighbours lie along k, and that offsets within a tile are small.
void note_layout(Product& x, std::int64_t lines, std::int64_t steps) {
  x.p.a_along_k = x.sparse || x.operands[1].column == 1;
  x.p.b_along_k = x.operands[2].column != 1;
  auto stays_in = [&](std::int64_t line, std::int64_t step) {
    constexpr std::int64_t kMost = std::int64_t{1} << 28;  // so that bytes of two such offsets have 31 bits
    return std::abs(line) < kMost / lines && std::abs(step) < kMost / steps;
  };
  // Rows of a 2:4 matrix lie one behind the other.
  const std::int64_t row = x.sparse ? x.k : x.operands[1].row, column = x.sparse ? 1 : x.operands[1].column;
  x.p.narrow = !x.complex && stays_in(row, column) && stays_in(x.operands[2].column, x.operands[2].row);
}

/// The plan for matrix instructions: the largest tile of which every compute unit gets one, that fits into local memory, and that has at most half as many
/// results more to compute as the smallest has; else the smallest.
const BuiltPlan& plan_of_matrix(Product& x) {
  const auto tiles = matrix_tiles(x.p.layout);
  auto groups = [&](const MatrixTile& tile) { return x.batch * parts_of(x.rows, tile.rows) * parts_of(x.n, tile.columns); };
  auto results = [&](const MatrixTile& tile) { return groups(tile) * tile.rows * tile.columns; };
  // Compilers unpack f8 where a device takes it by instructions for f16, which takes registers that the largest parts leave none for.
  std::size_t number = x.p.layout == MatrixLayout::mma && x.p.numbers == MATMUL_NUMBERS_F8 ? 1 : 0;
  for (; number + 1 < tiles.size(); ++number) {
    const MatrixTile& tile = tiles[number];
    const bool fits = tile.local_bytes(x.p.layout, x.p.stand_in) <= x.traits.local_bytes && tile.items(x.p.layout) <= x.traits.max_work_group;
    if (fits && groups(tile) >= x.traits.compute_units && 2 * results(tile) <= 3 * results(tiles.back())) break;
  }
  note_layout(x, tiles[number].rows, std::int64_t{4} * MATMUL_LINE_WORDS);
  // b's lines are columns.
  x.p.b_along_k = x.operands[2].row == 1 && x.operands[2].column != 1;
  // A driver may allow fewer items in a group of this kernel than in others.
  for (;; ++number) {
    x.p.tile = static_cast<std::int16_t>(number);
    const BuiltPlan& plan = matmul_plan(x.c, x.p);
    const std::uint64_t items = tiles[number].items(x.p.layout);
    if (plan.tuning.local >= items) return plan;
    if (number + 1 == tiles.size()) refuse_group_items(kMatmul, x.entry, items, plan.tuning.local);
  }
}

/// Says whether what matmul_tiles loads and stores comes in quads. The kernel itself looks at addresses.
void note_quads(Product& x) {
  const Strided &out = x.operands[0], &a = x.operands[1], &b = x.operands[2];
  // Neighbours have stride 1, and all else is a multiple of four.
  auto are_quads = [&](std::size_t operand, std::int64_t step, std::int64_t other, std::int64_t size) {
    return step == 1 && other % 4 == 0 && size % 4 == 0 && (x.batch == 1 || x.batch_stride(operand) % 4 == 0);
  };
  const bool plain = !x.complex && is_plain_float(x.p.b) && x.p.a == x.p.b;
  x.p.a_quads = x.sparse || (plain && (x.p.a_along_k ? are_quads(1, a.column, a.row, x.k) : are_quads(1, a.row, a.column, x.rows)));
  x.p.b_quads = plain && (x.p.b_along_k ? are_quads(2, b.row, b.column, x.k) : are_quads(2, b.column, b.row, x.n));
  x.p.out_quads = !x.complex && is_plain_float(x.p.output) && are_quads(0, out.column, out.row, 0);
}

/// The plan of a product whose tiling is chosen.
const BuiltPlan& plan_of(Product& x) {
  if (x.by_matrix) return plan_of_matrix(x);
  if (x.by_few) {
    const BuiltPlan& plan = matmul_plan(x.c, x.p);
    if (plan.tuning.local < kMatmulFewItems) refuse_group_items(kMatmul, x.entry, kMatmulFewItems, plan.tuning.local);
    return plan;
  }
  if (!x.by_tiles) return matmul_plan(x.c, x.p);
  const MatmulTile tile = tile_of(x);
  x.p.tile = tile.size;
  note_layout(x, tile.size, tile.depth);
  note_quads(x);
  // A group must have exactly the items that its kernel is built for. If the driver allows fewer, a kernel for fewer items is built.
  for (MatmulTile fewer = tile;; fewer.side = static_cast<std::int16_t>(fewer.side / 2)) {
    x.p.tile_side = fewer.side;
    const BuiltPlan& plan = matmul_plan(x.c, x.p);
    if (fewer.side == 1 || plan.tuning.local >= fewer.items()) return plan;
  }
}

/// The packing of a 2:4 matrix that the product's kernel reads; empty if it reads none.
SparsePacking left_of(const Product& x, const Panels& shape) {
  const std::int64_t lanes = x.lanes();
  if (x.by_words) return sparse_packing(x.c.sparse, {.kind = SparseForm::Kind::words, .numbers = DType::i32, .rows = lanes}, x.stream);
  if (x.by_rows) {
    const std::int64_t block = 4 * static_cast<std::int64_t>(sparse24_row_groups(u(std::max<std::int64_t>(x.k, 1))));
    return sparse_packing(x.c.sparse, {.kind = SparseForm::Kind::codes, .numbers = x.p.a, .rows = lanes, .block = block}, x.stream);
  }
  if (!x.sparse || !x.panels) return {};
  const DType compute = matmul_compute(x.p);
  return sparse_packing(x.c.sparse, {.numbers = compute, .rows = x.tiling.rows, .block = x.tiling.block, .panel_bytes = shape.width * bits(compute) / 8},
                        x.stream);
}

/// A product's launch without its tensors.
struct LaunchedProduct : ProductMeaning {
  ProductForm form;
  linalg::MatmulOptions options;
  MatmulProblem p;
  bool transposed;  ///< the caller's tensors are (batch, n, rows)
  /// Strides of a and b.
  struct Side {
    std::int64_t row, column, batch;
  } sides[2];
};

/// True if the launch can be made again with another function. Captured tensors stand behind all others, where the operands of a product have no other place.
bool has_meaning(const Product& x) {
  return !x.complex && x.positions.empty() && !x.p.wide && x.c.options.beta == 0 && (x.c.f->empty() || x.c.f->body()->buffers.empty());
}

/// Makes the launch of a meaning with another result, function and inputs.
void launch_again(const Meaning::Call& call) {
  const auto& made = static_cast<const LaunchedProduct&>(*call.product);
  const Tensor &a = call.operands.front(), &b = call.operands.back();
  const linalg::MatrixOperand of_b(b);
  const Dims sizes{made.form.batch, made.form.rows, made.form.n};
  auto turned = [&](const Tensor& t) { return made.transposed ? t.mT() : t; };
  MatmulCall c{.runtime = &call.stream.impl()->runtime(),
               .out = turned(call.elements[0]),
               .a = a,
               .b = &of_b,
               .f = &call.function,
               .inputs = {},
               .options = made.options,
               .sizes = sizes,
               .output = call.elements[0].dtype(),
               .transposed = made.transposed};
  for (const Tensor& t : call.inputs) c.inputs.push_back(turned(t));
  compute_dtype(c.output, kMatmul);
  if (made.form.sparse) {
    c.sparse = std::make_shared<sparse::SemiStructured::State>();
    c.sparse->sizes = {made.form.rows, made.form.k};
    c.sparse->values = call.operands[0], c.sparse->metadata = call.operands[1], c.sparse->info = call.operands[call.operands.size() - 2];
  }
  Product x(std::move(c), call.stream);
  x.p = made.p;
  x.p.function = call.function.body()->id, x.p.output = x.c.output;
  x.p.inputs = {};
  if (!x.note_function() || x.p.position_count > 0)
    throw Error(ErrorCode::not_supported, kMatmul, fmt::format("the function of a product must read at most {} tensors, and no positions", kMatmulInputs));
  if (x.p.wide) throw Error(ErrorCode::not_supported, kMatmul, "the function of a product in panels of 32-bit numbers must have none of 64 bits");
  x.form() = made.form;
  x.a = x.again_a = a, x.again_b = b;
  if (made.form.sparse) x.again_left = {.form = {}, .numbers = call.operands[0], .places = call.operands[1]};
  x.operands = {{x.c.out, sizes}};
  for (int side = 0; side < 2; ++side) {
    Strided o;
    o.tensor = &call.operands[static_cast<std::size_t>(side)];
    o.row = made.sides[side].row, o.column = made.sides[side].column;
    o.batch.push_back(made.sides[side].batch);
    x.operands.push_back(o);
  }
  for (const Tensor& t : x.inputs) x.operands.push_back({t, sizes});
  if (made.p.left == MatmulProblem::Left::sparse_transposed) x.turn_results();
  x.size[0] = made.form.batch;
  x.stride.assign(16 * x.operands.size(), 0);
  for (std::size_t o = 0; o < x.operands.size(); ++o) x.stride[16 * o] = x.operands[o].batch[0];
  launch(x);
}

std::shared_ptr<const Meaning> meaning_of(const Product& x) {
  auto product = std::make_shared<LaunchedProduct>();
  product->dtype = x.product(), product->most_inputs = static_cast<int>(kMatmulInputs);
  product->options = x.c.options;
  product->form = x.form();
  product->p = x.p, product->transposed = x.c.transposed;
  for (std::size_t side = 0; side < 2; ++side) product->sides[side] = {x.operands[side + 1].row, x.operands[side + 1].column, x.batch_stride(side + 1)};
  auto meaning = std::make_shared<Meaning>();
  meaning->elements = 1, meaning->inputs = static_cast<int>(x.inputs.size());
  meaning->sizes = x.c.transposed ? Dims{x.batch, x.n, x.rows} : Dims{x.batch, x.rows, x.n};
  meaning->function = x.c.f->empty() ? identity(x.product()) : *x.c.f;
  meaning->product = std::move(product);
  meaning->launch = launch_again;
  return meaning;
}

/// The launches of one product. The kernel's arguments are, in this order: the result and what the epilogue reads (give_result()); a, b, MatmulArgs and others
/// of the kernel (give_...()); strides, alpha, beta, and the epilogue's params and captured tensors (give_rest()).
struct Launcher {
  const Product& x;
  const BuiltPlan& main;
  const Strided &oc, &oa, &ob;
  const Panels shape;  // of b
  const bool transposed, packs, flips;
  const std::int64_t packed_batch;
  bool flat;                               // results and inputs are accessed as vectors
  std::int64_t count, each, rows_abreast;  // for words: number of rows, words of a row, rows side by side
  std::int64_t tiles_each = 1;             // tiles of an item
  const BuiltPlan *pack, *to_words;        // null if nothing is packed, or if there are no words
  SparsePacking left;
  Encoder encoder;
  Tensor packed, words;

  Launcher(const Product& product, const BuiltPlan& plan);
  void run();
  double loops_each() const;
  const BuiltPlan* plan_of_part(MatmulProblem::Part part) const;
  std::int64_t tiles_in_words() const { return x.batch * parts_of(count, rows_abreast); }
  Tensor part(const Strided& o, std::int64_t matrices, std::int64_t step, std::int64_t rows, std::int64_t columns, std::int64_t element) const {
    return o.tensor->as_strided({matrices, rows, columns}, {step, o.row, o.column}, element);
  }
  void send(std::span<const std::int64_t> at);
  void make_words(const Tensor& from, std::int64_t row, std::int64_t column, std::int64_t step);
  /// Sizes, and the strides of a and b as tensors.
  MatmulArgs args_of(std::int64_t columns, std::int64_t length) const {
    return {.m = u(x.rows),
            .n = u(columns),
            .k = u(length),
            .batch = u(x.batch),
            .a_row = oa.row,
            .a_k = oa.column,
            .a_batch = x.batch_stride(1),
            .b_k = ob.row,
            .b_n = ob.column,
            .b_batch = x.batch_stride(2),
            .shift = 0,
            .flat = flat};
  }
  void prepare(const Tensor& a, const Tensor& b);
  void give_result(std::span<const std::int64_t> at);
  /// Rows and columns of a tile in local memory.
  std::pair<std::int64_t, std::int64_t> tile_sizes() const {
    if (!x.by_matrix) return {x.p.tile, x.p.tile};
    const MatrixTile tile = matrix_tiles(x.p.layout)[static_cast<std::size_t>(x.p.tile)];
    return {tile.rows, tile.columns};
  }
  // Each binds its kernel's arguments and returns the number of items.
  std::int64_t give_sparse_words();
  std::int64_t give_sparse_rows(const Tensor& b);
  std::int64_t give_panels(const Tensor& a, const Tensor& b);
  std::int64_t give_elements(const Tensor& a, const Tensor& b);
  void give_rest();
};

Launcher::Launcher(const Product& product, const BuiltPlan& plan)
    : x(product),
      main(plan),
      oc(x.operands[0]),
      oa(x.operands[1]),
      ob(x.operands[2]),
      shape(x.p.b, x.dot, x.k, x.n, x.tiling.vectors * x.lanes()),
      transposed(x.p.left == MatmulProblem::Left::sparse_transposed),
      packs(x.panels && x.tiling.place == MatmulPlace::packed && !x.is_packed),
      flips((x.by_words ? x.p.b : x.p.a) == DType::i8),
      packed_batch(x.batch_stride(2) == 0 ? 1 : x.batch),
      flat(oc.column == 1 || (transposed ? x.rows : x.n) == 1 || x.complex),
      count(x.by_words ? x.n : x.rows),
      each(x.by_words ? static_cast<std::int64_t>(sparse24_column_words(sparse24_dot_blocks(u(x.k)))) : shape.length),
      rows_abreast(x.by_words ? x.p.rows : 1),
      pack(packs ? plan_of_part(MatmulProblem::Part::pack) : nullptr),
      to_words(x.dot || x.by_words ? plan_of_part(MatmulProblem::Part::rows) : nullptr),
      left(x.is_again() ? x.again_left : left_of(x, shape)),
      encoder(x.stream, kMatmul) {
  for (std::size_t o = 3; o < x.operands.size(); ++o) flat = flat && (x.operands[o].column == 0 || x.operands[o].column == 1);
  if (x.is_again()) {
    packed = x.again_b, words = x.by_words ? x.again_b : x.again_a;
    return;
  }
  if (packs) packed = encoder.scratch({std::max<std::int64_t>(1, packed_batch * shape.across * shape.numbers)}, x.dot ? DType::i32 : matmul_compute(x.p));
  if (to_words)
    words =
        encoder.scratch({std::max<std::int64_t>(1, tiles_in_words() * static_cast<std::int64_t>(matmul_bundle_words(u(each), u(rows_abreast))))}, DType::i32);
}

const BuiltPlan* Launcher::plan_of_part(MatmulProblem::Part of) const {
  MatmulProblem q = x.p;
  q.part = of;
  if (!x.sparse) q.left = MatmulProblem::Left::dense;
  return &matmul_plan(x.c, q);
}

/// Packs rows of bytes into words of four bytes along k.
void Launcher::make_words(const Tensor& from, std::int64_t row, std::int64_t column, std::int64_t step) {
  encoder.output(words).input(from, "a");
  bind_args(encoder, MatmulDotRowsArgs{.m = u(count),
                                       .k = u(x.k),
                                       .a_row = row,
                                       .a_k = column,
                                       .a_batch = step,
                                       .batch = u(x.batch),
                                       .row_words = u(each),
                                       .rows_abreast = u(rows_abreast),
                                       .flip = flips ? 0x80808080u : 0u,
                                       .unused = 0});
  encoder.dispatch(to_words->kernel, item_geometry(u(tiles_in_words()), to_words->tuning.local));
}

/// Launches what packs operands.
void Launcher::prepare(const Tensor& a, const Tensor& b) {
  if (x.is_again()) return;
  if (x.by_words) return make_words(b, ob.column, ob.row, x.batch_stride(2));
  if (x.by_rows || !x.panels) return;
  if (packs) pack_panels(encoder, *pack, shape, packed, b);
  if (x.dot) make_words(a, oa.row, oa.column, x.batch_stride(1));
}

/// Binds the first arguments of every kernel.
void Launcher::give_result(std::span<const std::int64_t> at) {
  const std::int64_t rows = transposed ? x.n : x.rows, columns = transposed ? x.rows : x.n;
  // As the caller's tensors lie, for graphs; kernels get strides of their own.
  auto given = [&](std::size_t o) {
    const Tensor t = part(x.operands[o], x.batch, x.batch_stride(o), rows, columns, at[o]);
    return x.c.transposed != transposed ? t.mT() : t;
  };
  x.c.options.beta != 0 ? encoder.inout(given(0), "out") : encoder.output(given(0), "out");
  for (std::size_t o = 3; o < x.operands.size(); ++o) encoder.input(given(o));
}

/// For matmul_sparse_dot.
std::int64_t Launcher::give_sparse_words() {
  encoder.input(left.numbers, "a").input(x.c.sparse->info).input(words, "b");
  MatmulArgs args = args_of(x.n, x.k);
  args.shift = flips ? -128 : 0;
  bind_args(encoder, args);
  // Columns of an item: as many as fit in a core's cache, while every core has several items.
  const std::int64_t down = parts_of(x.rows, x.lanes()), in_cache = kMatmulWordBytes / std::max<std::int64_t>(rows_abreast * each * 4, 1);
  tiles_each = std::max<std::int64_t>(std::min(in_cache, tiles_in_words() * down / (8 * std::int64_t{x.traits.compute_units})), 1);
  encoder.value(u(tiles_each));
  return parts_of(tiles_in_words(), tiles_each) * down;
}

/// For matmul_sparse_rows.
std::int64_t Launcher::give_sparse_rows(const Tensor& b) {
  encoder.input(left.numbers, "a").input(left.places).input(x.c.sparse->info).input(b, "b");
  bind_args(encoder, args_of(x.n, x.k));
  return x.batch * parts_of(x.n, x.p.rows) * parts_of(x.rows, x.lanes());
}

/// For matmul_panels, matmul_dot and matmul_sparse_panels.
std::int64_t Launcher::give_panels(const Tensor& a, const Tensor& b) {
  if (x.sparse)
    encoder.input(left.numbers, "a").input(left.places).input(x.c.sparse->info);
  else
    encoder.input(x.dot ? words : a, "a");
  encoder.input(packs ? packed : b, "b");
  MatmulArgs args = args_of(shape.columns, shape.length);
  MatmulPanelsArgs tiling{.b_panel = shape.width * ob.column, .b_rows = u(shape.rows), .block_k = u(x.tiling.block), .rows_per_item = 0, .panels_per_item = 0};
  if (x.dot)
    args.a_row = shape.length, args.a_k = 1, args.a_batch = x.rows * shape.length;
  else
    args.a_row = x.parts() * oa.row, args.a_k = x.complex ? 1 : oa.column, args.a_batch = x.parts() * x.batch_stride(1);
  if (x.tiling.place == MatmulPlace::packed) {
    // Panels of this call are in the order of its batch; a PackedMatrix has strides of its own, since the result's may decide which dimension comes first.
    args.b_k = shape.width, args.b_n = 1, args.b_batch = x.is_packed || x.batch_stride(2) == 0 ? x.batch_stride(2) : shape.across * shape.numbers;
    tiling.b_panel = shape.numbers;
  }
  args.shift = x.dot && flips ? -128 : 0;
  // Blocks of rows and panels for each item: the largest with which every core has several items.
  const bool inside = x.tiling.place == MatmulPlace::inside;
  const std::int64_t tiles = parts_of(x.rows, x.tiling.rows);
  std::int64_t rows_each = std::min<std::int64_t>(tiles, x.tiling.tiles), panels_each = inside || x.sparse ? 1 : 4;
  // With few elements along k the time goes into stores, so an item takes whole rows of results.
  if (x.tiling.place == MatmulPlace::direct && x.k <= kMatmulShortDepth)
    panels_each = std::min(shape.across, kMatmulAccumulatorTiles), rows_each = std::min(rows_each, kMatmulAccumulatorTiles / panels_each);
  while (rows_each * panels_each > kMatmulAccumulatorTiles) rows_each = (rows_each + 1) / 2;
  auto items = [&] { return x.batch * parts_of(tiles, rows_each) * parts_of(shape.across, panels_each); };
  // Transposed results are stored as vectors along the rows, so an item takes at least a whole vector of rows.
  const std::int64_t least = transposed ? x.lanes() : 1, wanted = (x.sparse && inside ? 2 : 8) * x.traits.compute_units;
  while (items() < wanted && (rows_each > least || panels_each > 1)) panels_each > 1 ? panels_each /= 2 : rows_each = std::max(least, (rows_each + 1) / 2);
  tiles_each = rows_each * panels_each;
  tiling.rows_per_item = u(rows_each * x.tiling.rows), tiling.panels_per_item = u(panels_each);
  bind_args(encoder, args);
  bind_args(encoder, tiling, "tiling");
  return items();
}

/// For matmul_items and matmul_sparse_items; with a group for each tile for matmul_tiles, matmul_sparse_tiles, matmul_matrix,
/// matmul_sparse_matrix and matmul_few.
std::int64_t Launcher::give_elements(const Tensor& a, const Tensor& b) {
  if (x.sparse)
    encoder.input(x.c.sparse->values, "a").input(x.c.sparse->metadata).input(x.c.sparse->info);
  else
    encoder.input(a, "a");
  encoder.input(b, "b");
  // In tiles k counts real and imaginary parts of complex numbers, in matmul_items numbers.
  bind_args(encoder, args_of(shape.columns, x.by_tiles ? x.parts() * x.k : x.k));
  if (x.by_few) return x.batch * parts_of(x.p.few_rows ? shape.columns : x.rows, MATMUL_FEW_LINES) * static_cast<std::int64_t>(main.tuning.local);
  if (!x.by_tiles && !x.by_matrix) return x.batch * x.rows * shape.columns;
  const auto [tile_rows, tile_columns] = tile_sizes();
  const std::int64_t down = parts_of(x.rows, tile_rows), across = parts_of(shape.columns, tile_columns);
  return x.batch * down * across * static_cast<std::int64_t>(main.tuning.local);
}

/// Binds the last arguments of every kernel.
void Launcher::give_rest() {
  auto give_strides = [&](std::int64_t row, std::int64_t column, std::int64_t of) {
    const std::int64_t all[4] = {row, column, of, 0};
    encoder.bytes(all, sizeof all);
  };
  give_strides(x.parts() * oc.row, x.complex ? 1 : oc.column, x.parts() * x.batch_stride(0));
  for (std::size_t o = 3; o < x.operands.size(); ++o) give_strides(x.operands[o].row, x.operands[o].column, x.batch_stride(o));
  for (const Dims& d : x.positions) give_strides(d[d.rank() - 2], d[d.rank() - 1], 0);
  x.number(encoder, x.c.options.alpha, "alpha"), x.number(encoder, x.c.options.beta, "beta");
  if (!x.c.f->empty()) bind_extra(encoder, *x.c.f->body(), x.c.f->body()->param_values);
}

/// One launch, with operands that begin at these elements.
void Launcher::send(std::span<const std::int64_t> at) {
  const Tensor a = x.is_again() ? x.again_a : x.sparse ? x.a : part(oa, x.batch, x.batch_stride(1), x.rows, x.k, at[1]);
  const Tensor b = x.is_again()  ? x.again_b
                   : x.by_words  ? part(ob, x.batch, x.batch_stride(2), x.k, x.n, at[2])
                   : x.is_packed ? x.b().slice(0, at[2] / x.b().strides()[0], x.b().sizes()[0])
                                 : part(ob, packed_batch, x.batch_stride(2), x.k, x.n, at[2]);
  prepare(a, b);
  give_result(at);
  const std::int64_t items = x.by_words ? give_sparse_words() : x.by_rows ? give_sparse_rows(b) : x.panels ? give_panels(a, b) : give_elements(a, b);
  give_rest();
  const Geometry geometry = item_geometry(u(items), main.tuning.local);
  check_loops(x.traits, kMatmul, u(items), geometry, loops_each());
  if (x.rank == 1 && encoder.asks_for_meaning() && has_meaning(x)) encoder.means(meaning_of(x));
  encoder.flops(x.flops()).dispatch(main.kernel, geometry);
}

/// Iterations of an item's loops for each of its tasks: k for kernels of elements, at most four times k for each tile in kernels that share numbers.
double Launcher::loops_each() const {
  const auto depth = static_cast<double>(x.k);
  return x.panels || x.by_rows || x.by_words || x.by_tiles || x.by_few || x.by_matrix ? static_cast<double>(tiles_each) * (4 * depth + 256) : depth + 4;
}

void Launcher::run() {
  std::int64_t launches = 1;
  for (std::int64_t d = 1; d < x.rank; ++d) launches *= x.size[static_cast<std::size_t>(d)];
  for (std::int64_t i = 0; i < launches; ++i) {
    std::vector<std::int64_t> at(x.operands.size(), 0);
    for (std::int64_t d = 1, rest = i; d < x.rank; rest /= x.size[static_cast<std::size_t>(d++)])
      for (std::size_t o = 0; o < x.operands.size(); ++o) at[o] += rest % x.size[static_cast<std::size_t>(d)] * x.stride[16 * o + static_cast<std::size_t>(d)];
    send(at);
  }
}

}  // namespace

bool has_matrix_plan(Product& product) {
  try {
    plan_of_matrix(product);
    return true;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_supported && e.code() != ErrorCode::build_failure) throw;
    log_once(LogLevel::warn, fmt::format("products go without matrix instructions: {}", e.what()));
    return false;
  }
}

void launch(Product& product) {
  const BuiltPlan& plan = plan_of(product);
  Launcher(product, plan).run();
}

}}}  // namespace clutch::v0::detail
