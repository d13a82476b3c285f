// SPDX-License-Identifier: Apache-2.0
// Products on the device: how operands lie, which tiles fit, and what the kernels are given.
#include <clutch/ops/copy.hpp>

#include "ops/matmul/call.hpp"
#include "ops/matmul/clblast.hpp"
#include "ops/traced.hpp"
#include "runtime/dot_products.hpp"
#include "runtime/quirks.hpp"
#include "runtime/storage.hpp"
#include "tune/tune.hpp"

#include <array>

namespace clutch::inline v0::detail {

const BuiltPlan& matmul_plan(const MatmulCall& c, const MatmulProblem& p) {
  return c.runtime->plans().find<BuiltPlan>(kMatmul, p, c.options.implementation, [&] {
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

namespace {

/// A tensor by the strides of its matrices' rows and columns and, over the batch's dims, of the matrices.
struct Strided {
  const Tensor* tensor = nullptr;
  std::int64_t row = 0, column = 0;
  Dims batch;

  Strided() = default;
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

/// Dense small matrices, one in each lane. numbers: m, n, k, batch, strides of the batch of a, b and c.
void run_lanes(const MatmulCall& c, const MatmulProblem& p, const std::array<std::int64_t, 7>& numbers, const Stream& stream) {
  MatmulCall forced = c;
  forced.options.implementation = "matmul_lanes";
  const BuiltPlan& plan = matmul_plan(forced, p);
  const auto [m, n, k, batch, a_batch, b_batch, c_batch] = numbers;
  Encoder encoder(stream, kMatmul);
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
  if (stream.is_capturing()) throw Error(ErrorCode::not_supported, kMatmul, "CLBlast cannot be captured");
  if (!c.b->tensor()) throw Error(ErrorCode::not_supported, kMatmul, "CLBlast takes no PackedMatrix");
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
    if (x.rank() == 3) return clblast_gemm(x, y, z, c.options.alpha, c.options.beta, c.options.beta != 0, stream, kMatmul);
    for (std::int64_t i = 0; i < x.sizes()[0]; ++i) self(self, x.select(0, i), y.select(0, i), z.select(0, i));
  };
  walk(walk, out, a, b);
  note_plan(std::string(kClblast));
}

/// The product, then the function: what the kernel does not take.
void run_by_product(const MatmulCall& c, const std::vector<Tensor>& inputs, const Stream& stream) {
  if (c.options.beta != 0) throw Error(ErrorCode::not_supported, kMatmul, "beta beside more inputs than the kernel takes, or positions in batch dims");
  const ExprFunction none;
  MatmulCall product = c;
  product.f = &none, product.inputs.clear();
  product.output = linalg::product_dtype(c.a.dtype(), matrix_dtype(*c.b));
  product.out = empty(c.sizes, {.dtype = product.output, .device = stream.device()}, stream);
  run_matmul(product, stream);
  std::vector<Tensor> all{product.out};
  all.insert(all.end(), inputs.begin(), inputs.end());
  map_out(std::span(&c.out, 1), *c.f, all, {}, stream);
}

/// A PackedMatrix by the strides of its batch; its rows and columns do not count.
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

}  // namespace

void run_matmul(MatmulCall c, const Stream& stream) {
  if (c.out.numel() == 0) return;
  const Dims& sizes = c.sizes;
  const DType of_b = matrix_dtype(*c.b);
  MatmulProblem p{.function = c.f->empty() ? 0 : c.f->body()->id, .a = c.a.dtype(), .b = of_b, .output = c.output};
  std::vector<Tensor> inputs = as_traced(c.inputs, stream);
  std::vector<Dims> position_dims;
  SeenTypes seen;
  if (!c.f->empty()) {
    position_dims = position_strides(*c.f, sizes, kMatmul);
    seen.note(*c.f);
    for (const Tensor& t : inputs) seen.note(t.dtype());
  }
  seen.note(c.output);
  p.wide = !is_complex(c.a.dtype()) && seen.has_wide;
  bool of_batch = false;
  for (const Dims& d : position_dims)
    for (int i = 0; i < sizes.rank() - 2; ++i) of_batch = of_batch || d[i] != 0;
  if (inputs.size() > kMatmulInputs || of_batch) return run_by_product(c, inputs, stream);
  p.input_count = static_cast<std::uint8_t>(inputs.size()), p.position_count = static_cast<std::uint8_t>(position_dims.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) p.inputs[i] = inputs[i].dtype();

  const DType computed = matmul_compute(p), product = is_byte(p.a) ? DType::i32 : computed;
  const bool complex = is_complex(p.a);
  const DeviceTraits& traits = c.runtime->traits();
  const bool packed_given = c.b->packed() != nullptr, is_packed = packed_given && c.b->packed()->state()->panels.defined();
  if (is_byte(p.a)) p.dots = dot_products(*c.runtime);
  if (is_packed && is_byte(p.a)) c.options.implementation = c.b->packed()->state()->words ? "matmul_dot" : "matmul_panels";
  const std::string_view entry = matmul_entry(traits, p, c.options.implementation);
  if (entry == kClblast || (entry == "matmul_tiles" && c.options.implementation.empty() && library_is_faster(c, p, stream))) return run_clblast(c, stream);
  const bool dot = entry == "matmul_dot", panels = dot || entry == "matmul_panels";
  Tensor a = c.a;
  if (panels && !dot && !complex && a.dtype() != computed) a = a.to(computed, {}, stream);
  if (complex && a.strides()[a.rank() - 1] != 1 && a.sizes()[a.rank() - 1] > 1) a = a.contiguous(stream);
  if (is_packed && !panels) throw Error(ErrorCode::not_supported, kMatmul, fmt::format("{} takes no PackedMatrix", entry));
  const Tensor& b = memory_of(*c.b);
  const std::int64_t parts = complex ? 2 : 1;

  // Batch dims, joined where all strides allow: the innermost goes into a launch, the outer ones are launches.
  std::vector<Strided> operands{{c.out, sizes}, {a, sizes}};
  if (is_packed) {
    operands.push_back(panels_of(*c.b->packed(), b, sizes));
  } else {
    operands.push_back({b, sizes});
  }
  operands[1].column = a.strides()[a.rank() - 1];
  for (const Tensor& t : inputs) operands.push_back({t, sizes});
  const std::int64_t m = sizes[sizes.rank() - 2], n = sizes[sizes.rank() - 1], k = a.sizes()[a.rank() - 1];
  operands[1].row = a.strides()[a.rank() - 2];
  if (!is_packed) operands[2].row = b.strides()[b.rank() - 2], operands[2].column = b.strides()[b.rank() - 1];
  if ((traits.quirks & kQuirkLoopsEndEarly) && k > 65535 / parts)
    throw Error(ErrorCode::not_supported, kMatmul, "the device ends loops after 65535 iterations (quirk loops_end_early)");
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
  if (entry == "matmul_lanes" || (panels && c.options.implementation.empty() && !is_packed && batch >= 64 && fits_matmul_lanes(traits, p).empty())) {
    auto dense = [](const Strided& o, std::int64_t of_rows, std::int64_t of_columns) {
      return of_rows * of_columns <= kMatmulLaneNumbers && (o.column == 1 || of_columns == 1) && (o.row == of_columns || of_rows == 1);
    };
    const bool small = rank == 1 && rows == m && dense(oc, m, n) && dense(oa, m, k) && dense(ob, k, n) && (batch == 1 || batch_stride(0) > 0);
    if (small) return run_lanes(c, p, {m, n, k, batch, batch_stride(1), batch_stride(2), batch_stride(0)}, stream);
    if (entry == "matmul_lanes") throw Error(ErrorCode::not_supported, kMatmul, "implementation matmul_lanes refuses: matrices are not small or not dense");
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
      if (std::optional<Tiling> tuned = tuned_tiling(c, tiling, rows, batch, lanes, ob.column == 1, stream)) tiling = *tuned;
      // A class holds shapes that the choice does not fit.
      if (tiling.place == MatmulPlace::direct && (ob.column != 1 || n % (tiling.vectors * lanes) != 0)) tiling.place = MatmulPlace::inside;
    }
    p.rows = static_cast<std::uint8_t>(tiling.rows), p.vectors = static_cast<std::uint8_t>(tiling.vectors);
    p.block = tiling.block, p.place = tiling.place;
  }
  const BuiltPlan* plan = &matmul_plan(c, p);
  // A group has as many items as its kernel was made for: fewer where the driver takes no more.
  if (plan->entry == "matmul_tiles" && plan->tuning.local < 64)
    for (const int items : {16, 4, 1}) {
      p.rows = static_cast<std::uint8_t>(items);
      plan = &matmul_plan(c, p);
      if (plan->tuning.local >= p.rows) break;
    }
  // Words of four bytes stand for numbers where those are multiplied; their panels begin with a row of sums.
  const std::int64_t panel = tiling.vectors * lanes, columns = parts * n, length = dot ? (k + 3) / 4 : parts * k, across = (columns + panel - 1) / panel;
  const std::int64_t of_panel = (length + dot) * panel;
  const bool packs = panels && tiling.place == MatmulPlace::packed && !is_packed;
  const std::int64_t packed_batch = batch_stride(2) == 0 ? 1 : batch;
  auto plan_of_part = [&](MatmulProblem::Part of) {
    MatmulProblem q = p;
    q.part = of;
    return &matmul_plan(c, q);
  };
  const BuiltPlan* pack = packs ? plan_of_part(MatmulProblem::Part::pack) : nullptr;
  const BuiltPlan* to_words = dot ? plan_of_part(MatmulProblem::Part::rows) : nullptr;

  Encoder encoder(stream, kMatmul);
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

}  // namespace clutch::inline v0::detail
