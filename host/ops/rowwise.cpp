// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/rowwise.hpp>

#include "encode/meaning.hpp"
#include "encode/plugin_functions.hpp"
#include "encode/plugin_ops.hpp"
#include "expr/shared_params.hpp"
#include "expr/side_by_side.hpp"
#include "ops/copy_plan.hpp"
#include "ops/reduce_plan.hpp"
#include "ops/rowwise/held.hpp"
#include "ops/rowwise_plan.hpp"
#include "ops/traced.hpp"
#include "runtime/op_name.hpp"
#include "runtime/quirks.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace clutch { inline namespace v0 {
namespace {
[[noreturn]] void refuse(ErrorCode code, std::string_view why) { throw Error(code, "rowwise", why); }
}  // namespace

// The traced function -----------------------------------------------------------------------------------------------

Row::Row(std::span<const DType> inputs) : inputs_(inputs.begin(), inputs.end()) {
  for (DType d : inputs_)
    if (d == DType::f64) accumulator_ = DType::f64;
}

Expr Row::size() const {
  detail::OpName named("Row::size");
  return detail::expr_input(static_cast<int>(inputs_.size()) + detail::kMaxTotals, accumulator_);
}

Expr Row::total(Reduce op, const Expr& x) {
  if (ops_.size() == detail::kMaxTotals) refuse(ErrorCode::invalid_argument, fmt::format("there must be at most {} totals, got more", detail::kMaxTotals));
  ops_.push_back(op);
  values_.push_back(cast(x, accumulator_));
  return detail::expr_input(static_cast<int>(inputs_.size() + ops_.size()) - 1, accumulator_);
}

namespace {

/// The step of a value in the function of these outputs; -1 if it is none of them, or an input. It is one if a function of both has no more steps.
int step_in(const ExprFunction& function, std::span<const Expr> outputs, const Expr& value, std::span<const DType> dtypes) {
  std::vector<Expr> both(outputs.begin(), outputs.end());
  both.push_back(value);
  const ExprFunction combined(dtypes, both);
  const auto& steps = combined.body()->steps;
  const int step = combined.body()->outputs.back();
  return steps.size() == function.body()->steps.size() && steps[static_cast<std::size_t>(step)].op != detail::ExprOp::input ? step : -1;
}

}  // namespace

RowFunction::RowFunction(const Row& row, std::span<const Expr> elements) {
  detail::OpName named("RowFunction");
  if (row.ops_.empty()) refuse(ErrorCode::invalid_argument, "the function must have a total, got none; use map");
  if (elements.empty() && row.results_.empty()) refuse(ErrorCode::invalid_argument, "there must be an output, got none");
  auto body = std::make_shared<detail::RowBody>();
  body->inputs = row.inputs_;
  body->accumulator = row.accumulator_;
  body->ops = row.ops_;
  std::vector<DType> dtypes = row.inputs_;
  dtypes.resize(dtypes.size() + detail::kMaxTotals + 1, row.accumulator_);
  for (const Expr& value : row.values_) body->totals.emplace_back(dtypes, std::span(&value, 1));
  if (!elements.empty()) body->elements = ExprFunction(dtypes, elements);
  if (!row.results_.empty()) body->results = ExprFunction(dtypes, row.results_);
  // If the elements use the values of the last total again, the kernel keeps these values, for them and for totals between them.
  for (std::size_t i = row.values_.size(); i-- > 0 && body->kept == detail::kMaxTotals && !elements.empty();) {
    const int step = step_in(body->elements, elements, row.values_[i], dtypes);
    if (step < 0) continue;
    body->kept = static_cast<int>(i), body->kept_step = step;
    for (std::size_t later = i + 1; later < row.values_.size(); ++later)
      body->kept_in_total[later] = step_in(body->totals[later], std::span(&row.values_[later], 1), row.values_[i], dtypes);
  }
  for (const ExprFunction* f : body->functions()) {
    if (f->captured_count() > 0) refuse(ErrorCode::invalid_argument, "the function must have no captured tensors, got one; use map");
    if (detail::has_positions(*f)) refuse(ErrorCode::invalid_argument, "the function must have no positions, got one; use map");
  }
  body_ = std::move(body);
}

int RowFunction::input_count() const noexcept { return body_ ? static_cast<int>(body_->inputs.size()) : 0; }
int RowFunction::element_count() const noexcept { return body_ && !body_->elements.empty() ? body_->elements.output_count() : 0; }
int RowFunction::result_count() const noexcept { return body_ && !body_->results.empty() ? body_->results.output_count() : 0; }

int RowFunction::param_count() const noexcept {
  int count = 0;
  if (body_)
    for (const ExprFunction* f : body_->functions()) count += f->param_count();
  return count;
}
double RowFunction::param_value(int i) const {
  detail::OpName named("RowFunction::param_value");
  int before = 0;
  if (body_ && i >= 0)
    for (const ExprFunction* f : body_->functions()) {
      if (i < before + f->param_count()) return f->param_value(i - before);
      before += f->param_count();
    }
  refuse(ErrorCode::invalid_argument, fmt::format("the param must be one of {}, got {}", param_count(), i));
}
RowFunction RowFunction::with_params(std::span<const double> values) const {
  detail::OpName named("RowFunction::with_params");
  if (!body_) refuse(ErrorCode::invalid_argument, "the function must be a traced one, got an empty one");
  if (static_cast<int>(values.size()) != param_count())
    refuse(ErrorCode::invalid_argument, fmt::format("each of {} params must have a value, got {}", param_count(), values.size()));
  auto body = std::make_shared<detail::RowBody>(*body_);
  auto give = [&](ExprFunction& f) {
    if (f.param_count() == 0) return;
    const auto count = static_cast<std::size_t>(f.param_count());
    f = f.with_params(values.first(count));
    values = values.subspan(count);
  };
  for (ExprFunction& total : body->totals) give(total);
  if (!body->elements.empty()) give(body->elements);
  if (!body->results.empty()) give(body->results);
  return RowFunction(std::move(body));
}

namespace {
/// Words of the totals in texts, by Reduce.
constexpr std::array<std::pair<Reduce, std::string_view>, 4> kTotals{
    {{Reduce::sum, "sum"}, {Reduce::prod, "prod"}, {Reduce::amin, "amin"}, {Reduce::amax, "amax"}}};
}  // namespace

std::string RowFunction::text() const {
  detail::OpName named("RowFunction::text");
  if (!body_) refuse(ErrorCode::invalid_argument, "the function must be a traced one, got an empty one");
  std::string text = "rows";
  for (DType d : body_->inputs) text += fmt::format(" {}", name(d));
  text += '\n';
  for (std::size_t i = 0; i < body_->ops.size(); ++i) {
    const auto word = std::find_if(kTotals.begin(), kTotals.end(), [&](const auto& one) { return one.first == body_->ops[i]; });
    text += fmt::format("total {}\n{}", word->second, body_->totals[i].text());
  }
  if (!body_->elements.empty()) text += "elements\n" + body_->elements.text();
  if (!body_->results.empty()) text += "results\n" + body_->results.text();
  return text;
}

namespace detail {
namespace {

// validate ----------------------------------------------------------------------------------------------------------

struct Checked {
  Runtime* runtime = nullptr;
  Dims sizes, result;                 ///< of elements, of results
  std::array<bool, kMaxRank> gone{};  ///< dimensions that make a row
  std::int64_t n = 1, m = 1;          ///< number of rows, and of elements of each
};

Checked validate(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs, const RowwiseOptions& options) {
  if (f.empty()) refuse(ErrorCode::invalid_argument, "the function must be a traced one, got an empty one");
  auto output_count = static_cast<std::size_t>(f.element_count()) + static_cast<std::size_t>(f.result_count());
  if (inputs.empty() || static_cast<int>(inputs.size()) != f.input_count())
    refuse(ErrorCode::invalid_argument, fmt::format("each of the function's {} inputs must have a tensor, got {}", f.input_count(), inputs.size()));
  if (!outputs.empty() && outputs.size() != output_count)
    refuse(ErrorCode::invalid_argument, fmt::format("each of the function's {} outputs must have a tensor, got {}", output_count, outputs.size()));
  if (options.dtype.size() > 0 && static_cast<std::size_t>(options.dtype.size()) != output_count)
    refuse(ErrorCode::invalid_argument, fmt::format("dtype must be one for each of {} outputs or none, got {}", output_count, options.dtype.size()));
  if (inputs.size() + output_count > kMaxRowwiseOperands)
    refuse(ErrorCode::invalid_argument, fmt::format("a call must have at most {} tensors, got {}", kMaxRowwiseOperands, inputs.size() + output_count));
  std::vector<const Tensor*> all;
  std::vector<Dims> shapes;
  for (const Tensor& t : inputs) all.push_back(&t), shapes.push_back(t.sizes());
  for (const Tensor& t : outputs) all.push_back(&t);
  Checked c{.runtime = &common_runtime(all, "rowwise"), .sizes = broadcast_shapes(shapes, "rowwise")};
  check_traced(*f.body()->functions().front(), inputs, "rowwise");
  c.result = c.sizes;
  c.gone = marked_dims(options.dims, c.sizes.rank(), "rowwise");
  for (int d = 0; d < c.sizes.rank(); ++d)
    if (c.gone[static_cast<std::size_t>(d)]) c.result[d] = 1;
  if (options.dims.empty()) refuse(ErrorCode::invalid_argument, "a row must have a dimension, got none");
  for (int d = 0; d < c.sizes.rank(); ++d) (c.gone[static_cast<std::size_t>(d)] ? c.m : c.n) *= c.sizes[d];
  // Rows without elements still have results.
  if (c.m == 0 && c.n > 0 && f.result_count() > 0)
    for (Reduce op : f.body()->ops)
      if (op == Reduce::amin || op == Reduce::amax) refuse(ErrorCode::invalid_argument, "min and max must have an element, got none");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i];
    bool elements = static_cast<int>(i) < f.element_count();
    compute_dtype(out.dtype(), "rowwise");
    const Dims& wanted = elements ? c.sizes : c.result;
    if (!(out.sizes() == wanted))
      refuse(ErrorCode::invalid_shape, fmt::format("output {} must have the shape {}, got {}", i, to_string(wanted), to_string(out.sizes())));
    check_no_self_overlap(out, "rowwise");
    for (const Tensor& t : inputs)
      if (elements)
        check_overlap(out, t, "rowwise");
      else
        check_apart(out, t, "rowwise");
    for (std::size_t k = 0; k < i; ++k) check_apart(out, outputs[k], "rowwise");
  }
  return c;
}

// select ------------------------------------------------------------------------------------------------------------

std::string computes(const DeviceTraits& traits, const RowwiseProblem& p) { return refuses_fp64(traits, p.types.has_f64); }

std::string fits_rows(const DeviceTraits& traits, const RowwiseProblem& p) {
  return p.rows ? computes(traits, p) : std::string("elements of a row must have stride 1 in every operand, got another stride");
}

constexpr std::string_view kGroups = "rowwise_groups";
std::string fits_groups(const DeviceTraits& traits, const RowwiseProblem& p) {
  if (std::string why = fits_rows(traits, p); !why.empty()) return why;
  if (p.length == RowLength::long_rows) return fmt::format("rows must have at most {} elements, got more", kLongestOfGroup);
  return refuses_teams(traits, p.accumulator);
}

std::string fits_filled_teams(const DeviceTraits& traits, const RowwiseProblem& p) {
  if (p.length == RowLength::short_rows) return fmt::format("rows must have at least {} elements, got fewer", REDUCE_SHORT_TEAM);
  return fits_groups(traits, p);
}

constexpr std::string_view kColumnGroups = "rowwise_column_groups";
std::string fits_column_groups(const DeviceTraits& traits, const RowwiseProblem& p) {
  if (std::string why = computes(traits, p); !why.empty()) return why;
  if (p.length == RowLength::chains || p.length == RowLength::long_rows) return fmt::format("rows must have at most {} elements, got more", kLongestOfShared);
  return refuses_teams(traits, p.accumulator);
}

constexpr std::string_view kItems = "rowwise_items";
std::string fits_items(const DeviceTraits& traits, const RowwiseProblem& p) {
  if (std::string why = computes(traits, p); !why.empty()) return why;
  if (p.eights == 0)
    return fmt::format("rows must have at most {} elements, of an f32 or narrower input that a short function reads again, got others", ROWWISE_ITEM_ELEMENTS);
  static_assert(ROWWISE_ALONG_ITEMS == REDUCE_TEAM && ROWWISE_ALONG_ITEMS * (REDUCE_SHORT_TEAM + 1) <= REDUCE_GROUP_ITEMS + REDUCE_BLOCK);
  return refuses_teams(traits, p.accumulator);
}
/// Of rows that are long in memory neighbours load elements far from each other.
std::string fits_many_items(const DeviceTraits& traits, const RowwiseProblem& p) {
  if (!p.many || (p.rows && p.length != RowLength::short_rows)) return "rows must be many, and side by side or short, got others";
  return fits_items(traits, p);
}

constexpr std::string_view kColumns = "rowwise_columns";
std::string fits_columns(const DeviceTraits& traits, const RowwiseProblem& p) {
  return p.columns ? computes(traits, p)
                   : fmt::format("rows must have at most {} elements, and at least {} of them neighbours of stride 1 in every operand, got others",
                                 REDUCE_BLOCK, kFewColumns);
}
std::string fits_columns_of_cores(const DeviceTraits& traits, const RowwiseProblem& p) {
  std::string why = refuses_caches(traits);
  return why.empty() ? fits_columns(traits, p) : why;
}

constexpr std::array<Implementation<RowwiseProblem>, 6> kImplementations{{{kGroups, fits_groups, of_groups<fits_filled_teams>},
                                                                          {kItems, fits_items, of_groups<fits_many_items>},
                                                                          {kColumnGroups, fits_column_groups, of_groups<fits_column_groups>},
                                                                          {kColumns, fits_columns, fits_columns_of_cores},
                                                                          {"rowwise_rows", fits_rows},
                                                                          {"rowwise_strided", computes}}};
bool takes_teams(std::string_view entry) { return entry == kGroups || entry == kItems || entry == kColumnGroups; }
/// Those that launch other ops.
constexpr std::array<Implementation<RowwiseProblem>, 1> kByOthers{{{kComposed, computes}}};

}  // namespace

KernelPlan select(const DeviceTraits& traits, const RowwiseProblem& p, std::string_view forced) {
  const auto& chosen = choose<RowwiseProblem>(kImplementations, traits, p, forced, "rowwise");
  KernelPlan plan{.stem = "rowwise", .entry = chosen.name, .tuning = takes_teams(chosen.name) ? team_tuning(traits) : row_tuning(traits)};
  set_lanes(plan, traits, p.types.has_wide, p.element_count + p.result_count + p.input_count, p.wide_index, p.rank_lanes);
  plan.defines.set("CLUTCH_ELEMENT_COUNT", p.element_count)
      .set("CLUTCH_RESULT_COUNT", p.result_count)
      .set("CLUTCH_TOTAL_COUNT", p.total_count)
      .set("CLUTCH_SPLATS", p.splats);
  for (std::size_t i = 0; i < p.total_count; ++i) plan.defines.set(fmt::format("CLUTCH_TOTAL_OP{}", i), p.ops[i]);
  const bool groups = plan.entry == kGroups, holds = groups && p.held != kNoneHeld && (p.length == RowLength::few_held || p.length == RowLength::held);
  const bool brings = plan.entry == kColumns && p.far_apart && p.held != kNoneHeld && p.accumulator == DType::f32;
  if (holds) plan.defines.set("CLUTCH_HELD", p.length == RowLength::held ? REDUCE_HELD : REDUCE_FEW_HELD);
  if (brings) plan.defines.set("CLUTCH_HELD", REDUCE_BLOCK);
  // What is held takes 32 of them, and elements of many inputs some more; a compiler that takes more for work ahead leaves a compute unit a quarter of its
  // items.
  if (holds) plan.registers = p.input_count > 3 ? 112 : 80;
  const bool items = plan.entry == kItems;
  if (items) plan.defines.set("CLUTCH_HELD", 8 * p.eights).set("CLUTCH_ALONG", p.along);
  if (items && p.along) plan.tuning.local = ROWWISE_ALONG_ITEMS;
  if ((holds && p.length == RowLength::held) || (items && p.eights > 4)) plan.keeps = KernelPlan::Keeps::many;
  // Values are kept by items that have a cache of their own, and by those that hold a row, in its place. In local memory of 64 KiB they would leave room for
  // a single group.
  plan.defines.set("CLUTCH_KEPT", brings || holds || items ? p.held_kept : plan.tuning.local == 1 ? p.kept : kMaxTotals).set("CLUTCH_FETCH_IN", p.fetch_in);
  plan.defines.set("CLUTCH_LATE", plan.tuning.local == 1 && p.fetch_in < kMaxTotals && p.element_count > 0 && plan.entry == "rowwise_rows" && p.steps == 0)
      .set_type("A", p.accumulator);
  if (p.steps != 0) plan.defines.set("CLUTCH_STEPS", p.steps);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// The stride of a tensor's elements along a row, whose dimensions are in row-major order; nullopt if there is no single stride.
std::optional<std::int64_t> inner_stride(const Dims& strides, const Checked& c) {
  std::int64_t stride = 0, length = 1;
  for (int d = c.sizes.rank() - 1; d >= 0; --d) {
    if (!c.gone[static_cast<std::size_t>(d)] || c.sizes[d] == 1) continue;
    if (length == 1)
      stride = strides[d];
    else if (strides[d] != stride * length)
      return std::nullopt;
    length *= c.sizes[d];
  }
  return stride;
}

/// Parts of a row, in each of which a tensor has one element.
struct Parts {
  std::int64_t size = 0, step = 0;  ///< elements of a part; from a part's element of the tensor to the next
};

/// nullopt if there are none: the tensor has one stride, or others along a row.
std::optional<Parts> parts_of_row(const Dims& strides, const Checked& c) {
  Parts parts{.size = 1};
  std::int64_t count = 1;
  for (int d = c.sizes.rank() - 1; d >= 0; --d) {
    if (!c.gone[static_cast<std::size_t>(d)] || c.sizes[d] == 1) continue;
    if (count == 1 && strides[d] == 0) {
      parts.size *= c.sizes[d];
      continue;
    }
    if (count == 1)
      parts.step = strides[d];
    else if (strides[d] != parts.step * count)
      return std::nullopt;
    count *= c.sizes[d];
  }
  if (parts.size == 1 || count == 1) return std::nullopt;
  return parts;
}

/// The dimensions that make a row.
Dims dims_of(const Checked& c) {
  Dims dims;
  for (int d = 0; d < c.sizes.rank(); ++d)
    if (c.gone[static_cast<std::size_t>(d)]) dims.push_back(d);
  return dims;
}

/// The operands of one launch.
struct Launch {
  std::vector<Tensor> tensors;  ///< elements, results, inputs
  std::int64_t rank = 1;
  std::array<std::int64_t, 16> size{};
  std::array<std::int64_t, ROWWISE_INNER_LANES> inner{};  ///< of operands of one element in each part of a row: from part to part
  std::int64_t part = 0;                                  ///< elements of these parts; 0: there are no such operands
  std::array<std::int64_t, 16 * kMaxRowwiseOperands> kept{};
  RowwiseProblem problem;
};

/// Index of a total that takes long enough to prefetch the next row meanwhile; kMaxTotals: none, the next row is prefetched while elements are computed.
std::uint8_t fetch_in(const RowBody& body) {
  for (std::size_t i = body.totals.size(); i-- > 0;)
    for (const ExprStep& s : body.totals[i].body()->steps)
      if (s.op >= ExprOp::exp && s.op <= ExprOp::pow) return static_cast<std::uint8_t>(i);
  return kMaxTotals;
}

/// True if one of the inputs has more elements in a row than a core's caches have places for: a place is chosen by the address, so that distances that are
/// multiples of large powers of two share few.
bool are_far_apart(const Launch& l, const Checked& c) {
  constexpr std::uint64_t kLine = 64, kPlaces = 1 << 14;  // 1 MiB, as second caches have
  const std::size_t outputs = l.problem.element_count + std::size_t{l.problem.result_count};
  for (std::size_t k = outputs; k < l.tensors.size(); ++k) {
    const std::uint64_t distance = static_cast<std::uint64_t>(l.inner[k] * bits(l.tensors[k].dtype()) / 8);
    if (distance % kLine != 0 || distance == 0) continue;
    const std::uint64_t lines = distance / kLine;
    if (static_cast<std::uint64_t>(c.m) * (lines & -lines) > kPlaces) return true;
  }
  return false;
}

Launch arrange(std::vector<Tensor> tensors, const RowFunction& f, const Checked& c) {
  Launch l{.tensors = std::move(tensors)};
  const RowBody& body = *f.body();
  RowwiseProblem& p = l.problem;
  Dims kept_sizes;
  for (int d = 0; d < c.sizes.rank(); ++d)
    if (!c.gone[static_cast<std::size_t>(d)]) kept_sizes.push_back(c.sizes[d]);
  std::vector<Dims> kept;
  for (std::size_t k = 0; k < l.tensors.size(); ++k) {
    Dims strides = broadcast_strides(l.tensors[k], c.sizes), of_kept;
    for (int d = 0; d < c.sizes.rank(); ++d)
      if (!c.gone[static_cast<std::size_t>(d)]) of_kept.push_back(strides[d]);
    kept.push_back(of_kept);
    const std::optional<std::int64_t> stride = inner_stride(strides, c);
    if (!stride) {
      const Parts parts = *parts_of_row(strides, c);
      l.part = parts.size, p.steps = static_cast<std::uint16_t>(p.steps | 1u << k);
      l.inner[k] = parts.step;
    } else {
      l.inner[k] = *stride;
    }
    const bool has_steps = !stride;
    bool element_output = static_cast<int>(k) < f.element_count();
    p.rows = p.rows && (has_steps || l.inner[k] == 1 || c.m <= 1 || (l.inner[k] == 0 && !element_output));
    if (c.m <= 1) l.inner[k] = 1;
    if (has_steps || l.inner[k] == 0) p.splats = static_cast<std::uint16_t>(p.splats | 1u << k);
    DType dtype = l.tensors[k].dtype();
    p.dtypes[k] = dtype;
    p.types.note(dtype);
  }
  Layout unused;
  make_walk(kept_sizes, kept, &l.rank, l.size.data(), l.kept.data(), &unused, &p.wide_index);
  for (std::size_t k = 0; k < l.tensors.size(); ++k) {
    const std::int64_t along = p.steps >> k & 1 ? c.m / l.part : c.m;
    std::int64_t last = last_offset(1, &along, &l.inner[k]) + last_offset(l.rank, l.size.data(), &l.kept[16 * k]);
    p.wide_index = p.wide_index || last >= INT32_MAX;
  }
  p.wide_index = p.wide_index || c.m >= INT32_MAX;
  p.accumulator = body.accumulator;
  p.types.note(body.accumulator);
  p.total_count = static_cast<std::uint8_t>(body.ops.size());
  for (std::size_t i = 0; i < body.ops.size(); ++i) p.ops[i] = static_cast<std::uint8_t>(op_number(body.ops[i])), p.totals[i] = body.totals[i].body()->id;
  if (!body.elements.empty()) p.elements = body.elements.body()->id;
  if (!body.results.empty()) p.results = body.results.body()->id;
  p.kept = static_cast<std::uint8_t>(body.kept), p.fetch_in = fetch_in(body);
  p.element_count = static_cast<std::uint8_t>(f.element_count()), p.result_count = static_cast<std::uint8_t>(f.result_count());
  p.input_count = static_cast<std::uint8_t>(f.input_count());
  for (const ExprFunction* g : body.functions()) p.types.note(*g);
  p.rank_lanes = rank_lanes(l.rank);
  if (!p.rows) p.splats = 0;
  p.columns = (!p.rows || c.m == 1) && c.m > 0 && c.m <= REDUCE_BLOCK && l.size[0] >= kFewColumns;
  for (std::size_t k = 0; k < l.tensors.size(); ++k)
    p.columns = p.columns && (l.kept[16 * k] == 1 || (l.kept[16 * k] == 0 && k >= static_cast<std::size_t>(p.element_count + p.result_count)));
  p.far_apart = p.columns && are_far_apart(l, c);
  p.length = length_of(c.m, team_tuning(c.runtime->traits()).local / REDUCE_TEAM), hold(body, c.m, &p);
  constexpr std::int64_t kItemsOfUnit = 1024;
  p.many = c.n >= kItemsOfUnit * c.runtime->traits().compute_units;
  p.along = p.rows && c.m > 0 && p.eights > 0 && p.length == RowLength::short_rows && l.rank == 1 && p.element_count == 1 && is_floating(p.dtypes[0]) &&
            !is_wide(p.dtypes[0]);
  return l;
}

/// What programs of CPUs have besides, where an item is a thread: bits of functions, kMaxTotals for the elements.
struct OfThreads {
  int sides = 1;              ///< vectors side by side
  unsigned side_by_side = 0;  ///< functions that have a form for so many
  unsigned knows = 0;         ///< totals that have a form from kept values
};

OfThreads of_threads(const DeviceTraits& traits, const RowwiseProblem& p, const RowBody& body) {
  OfThreads made;
  if (row_tuning(traits).local > 1) return made;
  auto add = [&](const ExprFunction& f, int number, int known_step) {
    const int sides = sides_of(f, known_step);
    if (sides == 1) return;
    made.sides = made.sides == 1 ? sides : std::min(made.sides, sides);
    made.side_by_side |= 1u << number;
  };
  for (std::size_t i = 0; i < body.totals.size(); ++i) {
    if (p.kept < kMaxTotals && body.kept_in_total[i] >= 0)
      made.knows |= 1u << i;
    else
      add(body.totals[i], static_cast<int>(i), -1);
  }
  if (!body.elements.empty()) add(body.elements, kMaxTotals, p.kept < kMaxTotals ? body.kept_step : -1);
  return made;
}

std::string print(const RowwiseProblem& p, const RowBody& body, const OfThreads& threads, const DeviceTraits& traits) {
  std::span<const DType> dtypes(p.dtypes);
  const std::size_t outputs = p.element_count + std::size_t{p.result_count}, inputs = p.input_count;
  std::span<const DType> input_dtypes = dtypes.subspan(outputs, inputs);
  std::string text = print_operands(outputs, inputs, 0, 0), all[4];
  const char letters[] = "pqtuwy";
  std::size_t count = 0;
  auto add = [&](const ExprFunction& f, const std::string& macro, std::span<const DType> of_outputs, std::size_t first_output) {
    check_byte_selects(traits, f, of_outputs, input_dtypes, "rowwise");
    std::string extra = fmt::format("EXTRA{}", count);
    text +=
        print_opencl(f, of_outputs, input_dtypes,
                     {.macro = macro, .extra = extra, .param = letters[count], .first_output = first_output, .first_input = outputs, .memory_inputs = inputs})
            .text;
    const char* kinds[] = {"KERNEL_PARAMS", "PARAMS", "ARGUMENTS", "NAMES"};
    for (std::size_t k = 0; k < 4; ++k) all[k] += fmt::format(" CLUTCH_{}_{}", extra, kinds[k]);
    ++count;
  };
  auto again = [&](const ExprFunction& f, const std::string& macro, std::span<const DType> of_outputs, std::size_t number, int known_step) {
    const std::string extra = fmt::format("EXTRA_OF_{}", macro);
    PrintNames names{.macro = macro, .extra = extra, .param = letters[number], .first_input = outputs, .memory_inputs = inputs, .known_step = known_step};
    if (known_step >= 0) text += print_opencl(f, of_outputs, input_dtypes, names).text;
    if (threads.side_by_side >> (macro.starts_with("TOTAL") ? number : kMaxTotals) & 1u)
      text += print_side_by_side(threads.sides, f, of_outputs, input_dtypes, names);
  };
  for (std::size_t i = 0; i < body.totals.size(); ++i) {
    const std::string macro = fmt::format("TOTAL{}", i);
    const std::span<const DType> of_total(&body.accumulator, 1);
    add(body.totals[i], macro, of_total, 0);
    again(body.totals[i], macro, of_total, i, -1);
    if (threads.knows >> i & 1u) again(body.totals[i], macro + "_KEPT", of_total, i, body.kept_in_total[i]);
  }
  if (!body.elements.empty()) {
    add(body.elements, "ELEMENTS", dtypes.first(p.element_count), 0);
    again(body.elements, "ELEMENTS", dtypes.first(p.element_count), count - 1, -1);
  }
  if (p.kept < kMaxTotals) again(body.elements, "ELEMENTS_KEPT", dtypes.first(p.element_count), count - 1, body.kept_step);
  text += print_fetches(outputs, input_dtypes);
  if (p.held != kNoneHeld) text += print_held(p);
  if (!body.results.empty()) add(body.results, "RESULTS", dtypes.subspan(p.element_count, p.result_count), p.element_count);
  text += fmt::format("#define CLUTCH_ALL_KERNEL_PARAMS{}\n#define CLUTCH_ALL_PARAMS{}\n#define CLUTCH_ALL_ARGUMENTS{}\n#define CLUTCH_ALL_NAMES{}\n", all[0],
                      all[1], all[2], all[3]);
  return text;
}

/// True if whole vectors of the element outputs are aligned to a vector's bytes, counted from element 0.
bool vectors_are_aligned(const Launch& l, const Checked& c, int element_count) {
  for (std::size_t k = 0; k < static_cast<std::size_t>(element_count); ++k) {
    std::int64_t bytes = bits(l.tensors[k].dtype()) / 8;
    if (c.m * bytes % 64 != 0) return false;
    for (std::size_t d = 0; d < static_cast<std::size_t>(l.rank); ++d)
      if (l.kept[16 * k + d] * bytes % 64 != 0) return false;
  }
  return true;
}

std::shared_ptr<const Meaning> meaning_of(const RowFunction& f, const Checked& c) {
  const RowBody& body = *f.body();
  auto rows = std::make_shared<RowsMeaning>();
  rows->accumulator = body.accumulator;
  for (Reduce op : body.ops) rows->ops.push_back(static_cast<int>(op));
  rows->totals = body.totals, rows->elements = body.elements, rows->results = body.results;
  return rows_meaning(std::move(rows), f.element_count(), f.result_count(), f.input_count(), c.sizes, c.gone);
}

/// True if the first input's elements of a row are nearer to each other than those of neighbouring rows.
bool are_near_along(const Launch& l) {
  const std::size_t k = l.problem.element_count + std::size_t{l.problem.result_count};
  const std::int64_t across = std::abs(l.kept[16 * k]);
  return across == 0 || std::abs(l.inner[k]) < across;
}

/// Tensors from which memory is worth keeping busy while elements are computed: less stays in a core's own cache.
constexpr std::uint64_t kLateBytes = 1 << 20;

void launch(const Launch& l, const RowFunction& f, const Checked& c, std::string_view implementation, const Stream& stream) {
  RowwiseProblem p = l.problem;
  auto built = [&]() -> const BuiltPlan& {
    return c.runtime->plans().find<BuiltPlan>("rowwise", p, implementation, [&] {
      KernelPlan selected = select(c.runtime->traits(), p, implementation);
      const OfThreads threads = of_threads(c.runtime->traits(), p, *f.body());
      selected.expression = print(p, *f.body(), threads, c.runtime->traits());
      if (threads.knows != 0) selected.defines.set("CLUTCH_KNOWS", threads.knows);
      if (threads.side_by_side != 0) selected.defines.set("CLUTCH_SIDES", threads.sides).set("CLUTCH_SIDE_BY_SIDE_OF", threads.side_by_side);
      if (!takes_teams(selected.entry)) return build_plan(*c.runtime, selected);
      KernelPlan other = select(c.runtime->traits(), p, p.rows ? "rowwise_rows" : "rowwise_strided");
      other.expression = selected.expression;
      return build_groups(*c.runtime, selected, other, REDUCE_TEAM, !implementation.empty());
    });
  };
  const BuiltPlan* found = &built();
  // A driver may allow fewer items in a group of this kernel than the device says.
  if (p.length == RowLength::held && reduce_blocks(static_cast<std::uint64_t>(c.m)) > found->tuning.local / REDUCE_TEAM && found->entry == kGroups)
    p.length = RowLength::fits, found = &built();
  const BuiltPlan& plan = *found;
  const bool groups = plan.entry == kGroups, column_groups = plan.entry == kColumnGroups;
  auto n = static_cast<std::uint64_t>(c.n), m = static_cast<std::uint64_t>(c.m);
  // If a group is a thread, a chunk has about 8192 elements, so that its work exceeds the cost to schedule it.
  std::uint64_t chunk = plan.tuning.local == 1 ? std::max(std::uint64_t{1}, 8192 / std::max(m, std::uint64_t{1})) : 1;
  std::uint64_t bytes = 0;
  for (const Tensor& t : l.tensors) bytes += t.nbytes();
  bool streams = worth_streaming(claimed_traits(c.runtime->device()), bytes) && vectors_are_aligned(l, c, p.element_count);
  const bool columns = plan.entry == kColumns;
  std::uint64_t tasks = n;
  if (columns) {
    const auto neighbours = static_cast<std::uint64_t>(l.size[0]), width = static_cast<std::uint64_t>(plan.tuning.width);
    tasks = n / neighbours * rowwise_panels(neighbours, width, m);
    chunk = std::max(std::uint64_t{1}, 8192 / (m * width * rowwise_abreast(m)));
  }
  Encoder encoder(stream, "rowwise");
  for (std::size_t k = 0; k < l.tensors.size(); ++k)
    if (k < static_cast<std::size_t>(p.element_count + p.result_count))
      encoder.output(l.tensors[k]);
    else
      encoder.input(l.tensors[k]);
  encoder.value(n).value(m);
  const std::uint32_t team = reduce_team(m);
  if (groups)
    encoder.value(team);
  else if (column_groups)
    encoder.value(std::uint32_t{are_near_along(l) ? 1u : 0u});
  else if (columns)
    encoder.value(chunk);
  else if (plan.entry != kItems)
    encoder.value(chunk).value(static_cast<std::uint32_t>((streams ? ROWWISE_STREAMS : 0) | (bytes >= kLateBytes ? ROWWISE_LATE : 0)));
  encoder.value(static_cast<std::int32_t>(l.rank));
  if (p.steps != 0) encoder.value(static_cast<std::uint32_t>(l.part));
  bind_lanes(encoder, l.size.data(), p.rank_lanes, p.wide_index);
  for (std::size_t k = 0; k < l.tensors.size(); ++k) bind_lanes(encoder, l.kept.data() + 16 * k, p.rank_lanes, p.wide_index);
  if (!groups) bind_lanes(encoder, l.inner.data(), ROWWISE_INNER_LANES, p.wide_index);
  for (const ExprFunction* g : f.body()->functions()) bind_extra(encoder, *g->body(), g->body()->param_values);
  if (encoder.asks_for_meaning()) encoder.means(meaning_of(f, c));
  std::uint64_t items = (tasks + chunk - 1) / chunk;
  const std::uint64_t local = groups ? team_items(plan, m) : plan.tuning.local;
  if (groups) {
    // Groups are as many as rows want: each starts by a few instructions, and a device balances groups better than items that take rows in
    // turn.
    items = n * (m > REDUCE_BLOCK ? local : team);
  } else if (column_groups) {
    items = reduce_panels(n, local / REDUCE_COLUMN_ITEMS) * local;
  }
  double operations = static_cast<double>(p.total_count);
  for (const ExprFunction* g : f.body()->functions()) operations += g->body()->operations;
  encoder.flops(operations * static_cast<double>(n) * static_cast<double>(m)).dispatch(plan.kernel, item_geometry(items, local));
}

/// True if a group shares each row (rowwise_groups).
bool shares_rows(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs, const Checked& c) {
  const DeviceTraits& traits = c.runtime->traits();
  if (row_tuning(traits).local == 1 || c.m > kLongestOfGroup || !refuses_teams(traits, f.body()->accumulator).empty()) return false;
  // Without a single stride a row is copied to one.
  auto lies_in_rows = [&](const Tensor& t, bool may_repeat) {
    const std::int64_t stride = inner_stride(broadcast_strides(t, c.sizes), c).value_or(1);
    return stride == 1 || (stride == 0 && may_repeat);
  };
  for (std::size_t k = 0; k < static_cast<std::size_t>(f.element_count()); ++k)
    if (!lies_in_rows(outputs[k], false)) return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return lies_in_rows(t, true); });
}

/// True if the items of each row would leave most of the device idle.
bool few_long_rows(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs, const Checked& c) {
  const DeviceTraits& traits = c.runtime->traits();
  const auto n = static_cast<std::uint64_t>(c.n), units = static_cast<std::uint64_t>(traits.compute_units);
  // An item reads a row up to five times.
  if ((traits.quirks & kQuirkLoopsEndEarly) && c.m >= kLongRow / 2) return true;
  if (c.m < kLongRow) return false;
  // A group needs rows of four times kLongRow elements to take longer than further launches, and two compute units for each of them to fall behind.
  if (shares_rows(outputs, f, inputs, c)) return c.m > 4 * kLongRow && 2 * n < units;
  if (row_tuning(traits).local > 1 && c.m > kLongestOfShared) return true;
  // A thread finishes a row of eight times kLongRow elements before further launches have started.
  return row_tuning(traits).local == 1 ? n < units && c.m >= 8 * kLongRow : n < 32 * units;
}

/// True if neighbours in memory are of neighbouring rows, at least `fewest` of them, and items have cores: these read such columns by vectors, where copies in
/// order read and write memory twice more.
bool lie_in_columns(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs, const Checked& c, std::int64_t fewest) {
  if (c.m == 0 || c.sizes.rank() == 0 || row_tuning(c.runtime->traits()).local > 1) return false;
  int last = c.sizes.rank() - 1;
  while (last > 0 && c.sizes[last] == 1) --last;
  if (c.gone[static_cast<std::size_t>(last)] || c.sizes[last] < fewest) return false;
  auto in_columns = [&](const Tensor& t, bool may_repeat) {
    const Dims strides = broadcast_strides(t, c.sizes);
    const std::optional<std::int64_t> along = inner_stride(strides, c);
    return along && (may_repeat ? strides[last] == 0 || strides[last] == 1 : strides[last] == 1 && (c.m == 1 || *along > 1));
  };
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (k < static_cast<std::size_t>(f.element_count()) ? !in_columns(outputs[k], false) : broadcast_strides(outputs[k], c.sizes)[last] != 1) return false;
  return in_columns(inputs[0], false) && std::all_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return in_columns(t, true); });
}

/// True if a tensor has an element of its own for each one of a row, and others for other rows.
bool is_of_each_element(const Tensor& t, const Checked& c) {
  const Dims strides = broadcast_strides(t, c.sizes);
  bool along = false, between = false;
  for (int d = 0; d < c.sizes.rank(); ++d)
    if (c.sizes[d] > 1 && strides[d] != 0) (c.gone[static_cast<std::size_t>(d)] ? along : between) = true;
  return along && between;
}

/// True if rows of few elements are so many that transposed copies of them pay.
bool are_short_rows(const RowFunction& f, std::span<const Tensor> inputs, const Checked& c) {
  constexpr std::int64_t kVector = 16, kFewestInAll = 1024;
  if (c.m < 2 || c.m >= kVector || c.n * c.m < kFewestInAll || f.element_count() == 0 || row_tuning(c.runtime->traits()).local > 1) return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](const Tensor& t) {
    const Dims strides = broadcast_strides(t, c.sizes);
    bool some = false, all = true;
    for (int d = 0; d < c.sizes.rank(); ++d)
      if (!c.gone[static_cast<std::size_t>(d)] && c.sizes[d] > 1) (strides[d] != 0 ? some : all) = strides[d] != 0;
    return all || !some;
  });
}

/// A function of a row in terms of those tensors (inputs, then totals) that it uses.
struct Narrowed {
  ExprFunction function;
  std::vector<Tensor> tensors;
};
Narrowed narrowed(const ExprFunction& f, const RowBody& body, std::span<const Tensor> inputs, std::span<const Tensor> totals, const Checked& c) {
  std::vector<bool> used(body.inputs.size() + kMaxTotals, false);
  used[0] = true;  // for the shape
  for (const ExprStep& s : f.body()->steps)
    for (int o : s.operands)
      if (static_cast<std::size_t>(o) < used.size()) used[static_cast<std::size_t>(o)] = true;
  for (int o : f.body()->outputs)
    if (static_cast<std::size_t>(o) < used.size()) used[static_cast<std::size_t>(o)] = true;
  Narrowed made;
  std::vector<DType> dtypes;
  std::vector<Expr> given;
  for (std::size_t i = 0; i < used.size(); ++i) {
    DType dtype = f.input_dtype(static_cast<int>(i));
    if (!used[i]) {
      given.push_back(expr_constant(dtype, 0));
      continue;
    }
    given.push_back(expr_input(static_cast<int>(dtypes.size()), dtype));
    dtypes.push_back(dtype);
    made.tensors.push_back(i < body.inputs.size() ? inputs[i] : totals[i - body.inputs.size()]);
  }
  given.push_back(cast(param(static_cast<double>(c.m)), body.accumulator));
  made.function = compose(f, ExprFunction(dtypes, given));
  return made;
}

/// Computes the same by one reduce for each total and one map: more launches and reads, but the items share each row. False for too many tensors.
bool run_composed(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> given, const Checked& c, const Stream& stream) {
  const RowBody& body = *f.body();
  std::vector<Tensor> inputs, firsts, totals;
  for (const Tensor& t : as_traced(given, stream)) {
    inputs.push_back(t.expand(c.sizes));
    firsts.push_back(inputs.back().as_strided(c.result, inputs.back().strides()));
  }
  if (inputs.size() + body.ops.size() > kMaxReduceInputs) return false;
  for (std::size_t i = 0; i < body.ops.size(); ++i) {
    Narrowed total = narrowed(body.totals[i], body, inputs, totals, c);
    totals.push_back(reduce(body.ops[i], total.function, total.tensors, {.dims = dims_of(c), .keepdim = true, .dtype = {body.accumulator}}, stream));
  }
  // Results are computed first, because elements may be written over the inputs.
  const auto elements = static_cast<std::size_t>(f.element_count());
  if (f.result_count() > 0) {
    Narrowed results = narrowed(body.results, body, firsts, totals, c);
    map_out(outputs.subspan(elements), results.function, results.tensors, {}, stream);
  }
  if (elements > 0 && c.m > 0) {
    Narrowed made = narrowed(body.elements, body, inputs, totals, c);
    map_out(outputs.first(elements), made.function, made.tensors, {}, stream);
  }
  return true;
}

/// True if a value of the function is made of the input.
bool reads(const ExprFunction& f, std::size_t input) {
  if (f.empty()) return false;
  const auto is_input = [&](int step) {
    const ExprStep& s = f.body()->steps[static_cast<std::size_t>(step)];
    return s.op == ExprOp::input && static_cast<std::size_t>(s.index) == input;
  };
  return std::any_of(f.body()->outputs.begin(), f.body()->outputs.end(), is_input) ||
         std::any_of(f.body()->steps.begin(), f.body()->steps.end(),
                     [&](const ExprStep& s) { return std::any_of(s.operands.begin(), s.operands.end(), is_input); });
}

/// True if items that are threads can compute rows with inputs, of the elements' function alone, that have one element in each part of a row: the parts are
/// whole vectors, and all other tensors lie in rows.
bool takes_parts(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs, const Checked& c, std::string_view implementation) {
  if (row_tuning(c.runtime->traits()).local > 1 || (!implementation.empty() && implementation != "rowwise_rows") || c.m >= INT32_MAX) return false;
  std::int64_t size = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Dims strides = broadcast_strides(inputs[k], c.sizes);
    if (const auto stride = inner_stride(strides, c)) {
      if (*stride != 0 && *stride != 1) return false;
      continue;
    }
    const auto parts = parts_of_row(strides, c);
    if (!parts || (size != 0 && parts->size != size) || parts->size % kPartVector != 0) return false;
    size = parts->size;
    const RowBody& body = *f.body();
    if (reads(body.results, k) || std::any_of(body.totals.begin(), body.totals.end(), [&](const ExprFunction& total) { return reads(total, k); })) return false;
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(f.element_count()); ++k)
    if (inner_stride(broadcast_strides(outputs[k], c.sizes), c) != 1) return false;
  return size > 0;
}

void run(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> given, const Checked& c, const RowwiseOptions& options,
         const Stream& stream) {
  check_implementation(options.implementation, "rowwise", kImplementations, kByOthers);
  if (c.n == 0 || (c.m == 0 && f.result_count() == 0)) return;
  bool forced = options.implementation == kComposed;
  const bool long_columns = c.m > kLongestOfColumns && copies_pay(c.runtime->traits(), c.n * c.m) && lie_in_columns(outputs, f, given, c, kFewLongColumns);
  if (forced || (options.implementation.empty() && (few_long_rows(outputs, f, given, c) || long_columns))) {
    if (run_composed(outputs, f, given, c, stream)) return;
    if (forced || (c.runtime->traits().quirks & kQuirkLoopsEndEarly))
      refuse(ErrorCode::not_supported,
             fmt::format("{}tensors and totals must be at most {} {}, got {} over rows of {} elements", forced ? "implementation composed refuses: " : "",
                         kMaxReduceInputs, forced ? "together" : "where the device ends long loops (quirk loops_end_early)",
                         given.size() + f.body()->ops.size(), c.m));
  }
  std::vector<Tensor> inputs = as_traced(given, stream), targets(outputs.begin(), outputs.end());
  // A row needs a single stride, and strides of many dimensions and tensors exceed the limit for arguments. Contiguous copies need few. Where an item is a
  // core, rows of other strides than 1 take many times as long as those copies.
  const bool many = c.sizes.rank() > 4 && inputs.size() + targets.size() > 5,
             columns = !many && c.m <= kLongestOfColumns && lie_in_columns(targets, f, inputs, c, kFewColumns),
             wants_rows = options.implementation.empty() && c.m > 1 && !columns && copies_pay(c.runtime->traits(), c.n * c.m);
  // Short rows take long as rows, and little as lanes of transposed copies.
  const bool short_rows = options.implementation.empty() && !many && !columns && are_short_rows(f, inputs, c);
  const bool has_parts = !many && !columns && !short_rows && takes_parts(targets, f, inputs, c, options.implementation);
  auto needs_copy = [&](const Tensor& t, bool may_repeat) {
    if (has_parts) return false;
    const std::optional<std::int64_t> stride = inner_stride(broadcast_strides(t, c.sizes), c);
    if (short_rows) return !stride || is_of_each_element(t, c);
    return many || !stride || (wants_rows && *stride != 1 && !(may_repeat && *stride == 0));
  };
  auto dense = [&](const Dims& sizes, DType dtype) {
    Dims strides = Dims::filled(sizes.rank(), 0);
    std::int64_t step = 1;
    for (bool gone : {!short_rows, short_rows})
      for (int d = sizes.rank() - 1; d >= 0; --d)
        if (c.gone[static_cast<std::size_t>(d)] == gone) strides[d] = std::exchange(step, step * sizes[d]);
    return empty({numel(sizes)}, {.dtype = dtype, .device = stream.device()}, stream).as_strided(sizes, strides);
  };
  for (Tensor& t : inputs)
    if (needs_copy(t, true)) {
      // Rows that repeat are copied once. Within a row all elements are copied, since one that repeats them along some of its dimensions has no single stride.
      const Dims strides = broadcast_strides(t, c.sizes);
      Dims sizes = c.sizes;
      for (int d = 0; d < sizes.rank(); ++d)
        if (strides[d] == 0 && !many && !c.gone[static_cast<std::size_t>(d)]) sizes[d] = 1;
      const Tensor made = dense(sizes, t.dtype());
      copy_(made, t.as_strided(sizes, strides), {}, stream);
      t = made.expand(c.sizes);
    }
  for (std::size_t k = 0; k < targets.size(); ++k)
    if (Tensor& t = targets[k]; needs_copy(t, k >= static_cast<std::size_t>(f.element_count()))) t = dense(t.sizes(), t.dtype());
  std::vector<Tensor> all = targets;
  all.insert(all.end(), inputs.begin(), inputs.end());
  launch(arrange(std::move(all), f, c), f, c, options.implementation, stream);
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (!targets[i].shares_storage(outputs[i])) copy_(outputs[i], targets[i], {}, stream);
}

/// The function of rows; its inputs are tensors of these dtypes. Params of equal value become one if `shares`: else they stay apart, to be given others.
RowFunction function_of(const RowsMeaning& rows, std::span<const DType> dtypes, bool shares) {
  Row row(dtypes);
  std::vector<Expr> known;
  for (DType d : dtypes) known.push_back(expr_input(static_cast<int>(known.size()), d));
  if (row.size().dtype() != rows.accumulator)
    refuse(ErrorCode::not_supported,
           fmt::format("totals must be {} as before, got tensors for which they are {}", name(rows.accumulator), name(row.size().dtype())));
  known.resize(known.size() + kMaxTotals, expr_constant(rows.accumulator, 0));
  known.push_back(row.size());
  SharedParams params;
  const auto part = [&](const ExprFunction& f) { return shares ? applied(f, known, params) : applied(f, known); };
  for (std::size_t i = 0; i < rows.ops.size(); ++i) {
    const Expr value = part(rows.totals[i])[0];
    Expr& total = known[dtypes.size() + i];
    switch (static_cast<Reduce>(rows.ops[i])) {
      case Reduce::sum: total = row.sum(value); break;
      case Reduce::prod: total = row.prod(value); break;
      case Reduce::amin: total = row.min(value); break;
      case Reduce::amax: total = row.max(value); break;
      default: refuse(ErrorCode::not_supported, "a total must be a sum, a product, a minimum or a maximum, got another one");
    }
  }
  if (!rows.results.empty())
    for (const Expr& result : part(rows.results)) row.result(result);
  return RowFunction(row, rows.elements.empty() ? std::vector<Expr>() : part(rows.elements));
}

/// The result as a function of the total; nullopt if it is a function of something else, too.
std::optional<ExprFunction> of_total_alone(const RowsMeaning& rows, std::size_t inputs) {
  for (const ExprStep& s : rows.results.body()->steps)
    for (int o : s.operands)
      if (const ExprStep& from = rows.results.body()->steps[static_cast<std::size_t>(o)];
          from.op == ExprOp::input && static_cast<std::size_t>(from.index) != inputs)
        return std::nullopt;
  std::vector<Expr> given;
  for (DType d : rows.results.body()->inputs) given.push_back(given.size() == inputs ? expr_input(0, rows.accumulator) : expr_constant(d, 0));
  const std::vector<Expr> after = applied(rows.results, given);
  return ExprFunction(std::span(&rows.accumulator, 1), after);
}

/// One launch of rows, or, for one result of one total, of a reduction, which has kernels for other layouts, too.
void launch_fused(const Meaning::Call& call) {
  const RowsMeaning& rows = call.rows;
  std::vector<DType> dtypes;
  std::vector<Expr> inputs;
  for (const Tensor& t : call.inputs) dtypes.push_back(compute_dtype(t.dtype(), "rowwise"));
  if (call.elements.empty() && call.results.size() == 1 && rows.ops.size() == 1)
    if (const std::optional<ExprFunction> after = of_total_alone(rows, dtypes.size())) {
      for (DType d : rows.totals[0].body()->inputs)
        inputs.push_back(inputs.size() < dtypes.size() ? expr_input(static_cast<int>(inputs.size()), d) : expr_constant(d, 0));
      const std::vector<Expr> value = applied(rows.totals[0], inputs);
      reduce_out(call.results[0], static_cast<Reduce>(rows.ops[0]), ExprFunction(dtypes, value), call.inputs,
                 {.dims = call.dims, .keepdim = true, .after = *after}, call.stream);
      return;
    }
  const RowFunction f = function_of(rows, dtypes, true);
  std::vector<Tensor> outputs(call.elements.begin(), call.elements.end());
  outputs.insert(outputs.end(), call.results.begin(), call.results.end());
  const RowwiseOptions options{.dims = call.dims, .dtype = {}};
  run(outputs, f, call.inputs, validate(outputs, f, call.inputs, options), options, call.stream);
}

}  // namespace

std::shared_ptr<const Meaning> rows_meaning(std::shared_ptr<const RowsMeaning> rows, int elements, int results, int inputs, const Dims& sizes,
                                            const std::array<bool, kMaxRank>& gone) {
  static_assert(kMostTotals == kMaxTotals);
  auto meaning = std::make_shared<Meaning>();
  meaning->elements = elements, meaning->results = results, meaning->inputs = inputs;
  meaning->sizes = sizes, meaning->gone = gone;
  meaning->most_tensors = rows->reduces_alone ? 1 + kMaxReduceInputs : kMaxRowwiseOperands;
  meaning->rows = std::move(rows);
  meaning->launch = launch_fused;
  return meaning;
}

namespace {

RowFunction parse_rows(std::string_view text) {
  const std::string_view whole = text;
  auto failure = [&](std::string_view why) {
    const auto lines = std::count(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(text.size()), '\n');
    return Error(ErrorCode::invalid_argument, "RowFunction::parse", fmt::format("the text must be what text() writes, got, after line {}: {}", lines, why));
  };
  auto next_line = [&] {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) throw failure("a line without an end");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return line;
  };
  // The lines up to the function's last one, which begins with "outputs".
  auto next_function = [&] {
    const std::string_view from = text;
    while (!text.empty())
      if (next_line().starts_with("outputs")) return ExprFunction::parse(from.substr(0, from.size() - text.size()));
    throw failure("a function that ends without \"outputs\"");
  };
  if (!text.starts_with("rows ")) throw failure("the text begins with \"rows\" and dtypes");
  std::vector<DType> dtypes;
  for (std::string_view rest = next_line().substr(5);;) {
    const auto space = rest.find(' ');
    dtypes.push_back(dtype_from_name(rest.substr(0, space)));
    if (space == std::string_view::npos) break;
    rest.remove_prefix(space + 1);
  }
  RowsMeaning rows{.accumulator = Row(dtypes).size().dtype()};
  std::vector<DType> wanted = dtypes;
  wanted.resize(wanted.size() + kMaxTotals + 1, rows.accumulator);
  // A function of the inputs, of so many totals and of the length.
  auto next_part = [&](std::size_t totals) {
    const ExprFunction f = next_function();
    if (f.body()->inputs != wanted) throw failure(fmt::format("a function's inputs must be the row's, then {} of {}", kMaxTotals + 1, name(rows.accumulator)));
    const std::size_t first = dtypes.size() + totals, end = dtypes.size() + kMaxTotals;
    auto is_later = [&](int i) { return static_cast<std::size_t>(i) >= first && static_cast<std::size_t>(i) < end; };
    for (const ExprStep& s : f.body()->steps)
      if (std::any_of(s.operands.begin(), s.operands.end(), is_later)) throw failure("a function must use earlier totals alone");
    if (std::any_of(f.body()->outputs.begin(), f.body()->outputs.end(), is_later)) throw failure("a function must use earlier totals alone");
    return f;
  };
  while (!text.empty()) {
    const std::string_view line = next_line();
    const auto op = std::find_if(kTotals.begin(), kTotals.end(), [&](const auto& one) { return line == fmt::format("total {}", one.second); });
    if (op != kTotals.end() && rows.elements.empty() && rows.results.empty()) {
      if (rows.ops.size() == kMaxTotals) throw failure(fmt::format("more than {} totals", kMaxTotals));
      rows.totals.push_back(next_part(rows.ops.size()));
      if (rows.totals.back().output_count() != 1) throw failure("a total must be of one value");
      rows.ops.push_back(static_cast<int>(op->first));
    } else if (line == "elements" && rows.elements.empty() && rows.results.empty()) {
      rows.elements = next_part(rows.ops.size());
    } else if (line == "results" && rows.results.empty()) {
      rows.results = next_part(rows.ops.size());
    } else {
      throw failure(fmt::format("\"{}\" stands where a part of the function begins", line));
    }
  }
  return function_of(rows, dtypes, false);
}

}  // namespace

Runtime& check_rowwise(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs, const RowwiseOptions& options) {
  return *validate(outputs, f, inputs, options).runtime;
}

namespace {

/// Computes a function of tensors alone by a plugin. False if none takes it.
bool rows_by_plugin(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs, const Checked& c, const RowwiseOptions& options,
                    const Stream& stream) {
  if (!has_plugin_implementations("rowwise") || c.n == 0 || c.m == 0) return false;
  const auto all = f.body()->functions();
  if (!std::all_of(all.begin(), all.end(), [](const ExprFunction* g) { return is_for_plugins(*g); })) return false;
  return by_plugin("rowwise", options.implementation, {&outputs, &f, &inputs, &options, &stream}, stream);
}

}  // namespace

}  // namespace detail

RowFunction RowFunction::parse(std::string_view text) {
  detail::OpName named("RowFunction::parse");
  return detail::parse_rows(text);
}

std::vector<Tensor> rowwise(const RowFunction& f, std::span<const Tensor> inputs, const RowwiseOptions& options, const Stream& given) {
  detail::OpName named("rowwise");
  detail::Checked c = detail::validate({}, f, inputs, options);
  Stream stream = detail::resolve_stream(given, *c.runtime, "rowwise");
  std::vector<Tensor> outputs;
  for (int i = 0; i < f.element_count() + f.result_count(); ++i) {
    bool element = i < f.element_count();
    DType dtype = options.dtype.size() > 0 ? options.dtype[i] : element ? map_dtype(f.body()->elements, i, inputs) : f.body()->accumulator;
    detail::compute_dtype(dtype, "rowwise");
    outputs.push_back(empty(element ? c.sizes : c.result, {.dtype = dtype, .device = stream.device()}, stream));
  }
  const std::span<const Tensor> made = outputs;
  if (!detail::rows_by_plugin(made, f, inputs, c, options, stream)) detail::run(outputs, f, inputs, c, options, stream);
  return outputs;
}

void rowwise_out(std::span<const Tensor> outputs, const RowFunction& f, std::span<const Tensor> inputs, const RowwiseOptions& options, const Stream& given) {
  detail::OpName named("rowwise_out");
  if (outputs.empty()) refuse(ErrorCode::invalid_argument, "there must be an output, got none");
  detail::Checked c = detail::validate(outputs, f, inputs, options);
  const Stream stream = detail::resolve_stream(given, *c.runtime, "rowwise");
  if (!detail::rows_by_plugin(outputs, f, inputs, c, options, stream)) detail::run(outputs, f, inputs, c, options, stream);
}

}}  // namespace clutch::v0
