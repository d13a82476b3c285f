// SPDX-License-Identifier: Apache-2.0
#include "encode/args.hpp"
#include "encode/dot_products.hpp"
#include "matmul/args.h"
#include "ops/matmul/call.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

namespace clutch { inline namespace v0 {
namespace detail {
namespace {
std::uint64_t u(std::int64_t v) { return static_cast<std::uint64_t>(v); }
std::int64_t parts_of(std::int64_t size, std::int64_t part) { return static_cast<std::int64_t>(matmul_parts(u(size), u(part))); }
}  // namespace

Panels::Panels(DType of_b, bool in_words, std::int64_t k, std::int64_t n, std::int64_t of_columns)
    : words(in_words),
      rows(is_complex(of_b) ? 2 * k : k),
      columns(is_complex(of_b) ? 2 * n : n),
      width(of_columns),
      length(words ? static_cast<std::int64_t>(matmul_words(u(k))) : rows),
      across(parts_of(columns, width)),
      numbers(static_cast<std::int64_t>(matmul_panel_numbers(u(length), words, u(width)))) {}

void pack_panels(Encoder& encoder, const BuiltPlan& plan, const Panels& shape, const Tensor& panels, const Tensor& b) {
  const std::int64_t batch = b.sizes()[0], items_each = shape.words ? 1 : parts_of(shape.length, kMatmulPackRows);
  encoder.output(panels).input(b, "b");
  bind_args(
      encoder,
      MatmulPackArgs{.k = u(shape.rows), .n = u(shape.columns), .b_k = b.strides()[1], .b_n = b.strides()[2], .b_batch = b.strides()[0], .batch = u(batch)});
  encoder.dispatch(plan.kernel, item_geometry(u(batch * shape.across * items_each), plan.tuning.local));
}

}  // namespace detail

namespace linalg {

PackedMatrix::PackedMatrix(const Tensor& b, const Stream& given) {
  detail::OpName named("linalg::PackedMatrix");
  using namespace clutch::detail;
  const ExprFunction none;
  const MatrixOperand operand(b);
  if (!b.defined()) throw Error(ErrorCode::invalid_argument, "linalg::PackedMatrix", "the tensor must be defined, got an undefined one");
  if (b.rank() < 2)
    throw Error(ErrorCode::invalid_shape, "linalg::PackedMatrix", fmt::format("the matrix must have at least two dimensions, got {}", to_string(b.sizes())));
  MatmulCall c{.runtime = &b.storage()->runtime(), .b = &operand, .f = &none, .options = {}, .sizes = b.sizes(), .output = product_dtype(b.dtype(), b.dtype())};
  Stream stream = resolve_stream(given, *c.runtime, "linalg::PackedMatrix");
  auto state = std::make_shared<State>();
  state->sizes = b.sizes(), state->dtype = b.dtype();
  MatmulProblem p{.a = b.dtype(), .b = b.dtype(), .output = c.output};
  if (is_byte(p.b)) p.dots = dot_products(*c.runtime);
  const std::string_view entry = matmul_entry(c.runtime->traits(), p, {});
  state->words = entry == "matmul_dot";
  if (!state->words && entry != "matmul_panels") {
    state->original = b.clone(stream);
    state_ = std::move(state);
    return;
  }
  p.part = MatmulProblem::Part::pack;
  const BuiltPlan& plan = matmul_plan(c, p);
  const std::int64_t k = b.sizes()[b.rank() - 2], n = b.sizes()[b.rank() - 1];
  const Panels shape(p.b, state->words, k, n, kMatmulVectors * panel_lanes(c.runtime->traits(), p));
  std::int64_t batch = 1;
  for (int d = 0; d < b.rank() - 2; ++d) batch *= b.sizes()[d];
  Tensor matrices =
      batch == 1 ? b.as_strided({1, k, n}, {0, b.strides()[b.rank() - 2], b.strides()[b.rank() - 1]}, 0) : b.contiguous(stream).reshape({batch, k, n});
  state->panels = v0::empty({batch, shape.across, shape.numbers / shape.width, shape.width},
                            {.dtype = state->words ? DType::i32 : matmul_compute(p), .device = stream.device()}, stream);
  if (state->panels.numel() > 0) {
    Encoder encoder(stream, "linalg::PackedMatrix");
    pack_panels(encoder, plan, shape, state->panels, matrices);
  }
  state_ = std::move(state);
}
namespace {
const PackedMatrix::State& state_of(const PackedMatrix& p) {
  if (p.empty()) throw Error(ErrorCode::invalid_argument, "linalg::PackedMatrix", "the PackedMatrix must be a made one, got an empty one");
  return *p.state();
}
}  // namespace
const Dims& PackedMatrix::sizes() const {
  detail::OpName named("linalg::PackedMatrix::sizes");
  return state_of(*this).sizes;
}
DType PackedMatrix::dtype() const {
  detail::OpName named("linalg::PackedMatrix::dtype");
  return state_of(*this).dtype;
}
std::uint64_t PackedMatrix::nbytes() const {
  detail::OpName named("linalg::PackedMatrix::nbytes");
  const State& s = state_of(*this);
  return s.panels.defined() ? s.panels.nbytes() : s.original.nbytes();
}

}  // namespace linalg
}}  // namespace clutch::v0
