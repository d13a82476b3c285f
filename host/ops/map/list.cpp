// SPDX-License-Identifier: Apache-2.0
// foreach_map: a traced function over lists of tensors.
#include <clutch/foreach.hpp>
#include <clutch/ops/cat.hpp>
#include <clutch/ops/copy.hpp>

#include "encode/args.hpp"
#include "map/args.h"
#include "ops/map_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace clutch { inline namespace v0 {
namespace detail { namespace {

using Lists = std::span<const std::span<const Tensor>>;

void refuse(ErrorCode code, const char* op, std::string_view why) { throw Error(code, op, why); }

// validate ----------------------------------------------------------------------------------------------------------

/// Tensors of all lists, list after list.
std::vector<Tensor> joined(Lists lists) {
  std::vector<Tensor> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// A list whose tensors have one element each goes with any shape, unless all lists are so.
bool is_spread(std::span<const Tensor> list) {
  return std::all_of(list.begin(), list.end(), [](const Tensor& t) { return t.numel() == 1; });
}

/// The shape at a place: that of the lists which are not spread; where all are, what they broadcast to.
Dims shape_at(Lists inputs, std::size_t place, const char* op) {
  std::optional<Dims> found;
  std::vector<Dims> single;
  for (const auto& list : inputs) {
    if (is_spread(list)) {
      single.push_back(list[place].sizes());
      continue;
    }
    if (found && !(*found == list[place].sizes()))
      refuse(ErrorCode::invalid_shape, op,
             fmt::format("tensors at place {} of the lists must have one shape, got {} and {}", place, to_string(*found), to_string(list[place].sizes())));
    found = list[place].sizes();
  }
  return found ? *found : broadcast_shapes(single, op);
}

Runtime& check_lists(const ExprFunction& f, Lists inputs, Lists outputs, const char* op) {
  if (f.empty()) refuse(ErrorCode::invalid_argument, op, "the function must be a traced one, got an empty one");
  if (static_cast<int>(inputs.size()) != f.input_count() || inputs.empty())
    refuse(ErrorCode::invalid_argument, op,
           fmt::format("each of the function's {} inputs, of which there must be one, must have a list, got {}", f.input_count(), inputs.size()));
  if (!outputs.empty() && static_cast<int>(outputs.size()) != f.output_count())
    refuse(ErrorCode::invalid_argument, op, fmt::format("each of the function's {} outputs must have a list, got {}", f.output_count(), outputs.size()));
  if (inputs.size() + static_cast<std::size_t>(f.output_count()) > kMaxMapOperands)
    refuse(ErrorCode::invalid_argument, op,
           fmt::format("a call must have at most {} lists, got {}", kMaxMapOperands, inputs.size() + static_cast<std::size_t>(f.output_count())));
  if (has_positions(f)) refuse(ErrorCode::invalid_argument, op, "the function must have no position, got one");
  const std::size_t length = inputs[0].size();
  for (Lists lists : {inputs, outputs})
    for (const auto& list : lists)
      if (list.size() != length) refuse(ErrorCode::invalid_argument, op, fmt::format("lists must be of one length, got {} and {}", length, list.size()));
  std::vector<const Tensor*> all;
  for (Lists lists : {inputs, outputs})
    for (const auto& list : lists)
      for (const Tensor& t : list) all.push_back(&t);
  for (const Tensor& t : f.body()->tensors) all.push_back(&t);
  if (length == 0) refuse(ErrorCode::invalid_argument, op, "the lists must have a tensor, got empty ones");
  Runtime& runtime = common_runtime(all, op);
  const std::vector<DType> traced = traced_dtypes(inputs, op);
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (traced[k] != f.input_dtype(static_cast<int>(k)))
      refuse(ErrorCode::invalid_dtype, op,
             fmt::format("list {} must be traced as {}, got one that is traced as {}", k, name(f.input_dtype(static_cast<int>(k))), name(traced[k])));
  return runtime;
}

// select ------------------------------------------------------------------------------------------------------------

/// Key of the plans of map_list.
struct MapListProblem {
  std::uint64_t function = 0;
  std::uint8_t outputs = 1, inputs = 1;
  SeenTypes types;
  bool wide_index = false;
  std::uint8_t unused[3] = {};
  bool spread[kMaxMapOperands] = {};
  DType dtypes[kMaxMapOperands] = {};
};

std::string computes(const DeviceTraits& traits, const MapListProblem& p) { return refuses_fp64(traits, p.types.has_f64); }
constexpr std::array<Implementation<MapListProblem>, 1> kImplementations{{{"map_list", computes}}};

KernelPlan select(const DeviceTraits& traits, const MapListProblem& p, std::string_view forced, const char* op) {
  const auto& chosen = choose<MapListProblem>(kImplementations, traits, p, forced, op);
  KernelPlan plan{.stem = "map", .entry = chosen.name, .tuning = elementwise_tuning(traits)};
  set_lanes(plan, traits, p.types.has_wide, p.outputs + p.inputs, p.wide_index, 4);
  return plan;
}

// encode ------------------------------------------------------------------------------------------------------------

/// Operands of a row: outputs, then inputs.
using Row = std::vector<Tensor>;

void launch_rows(const std::vector<Row>& rows, const ExprFunction& f, Runtime& runtime, const MapOptions& options, const Stream& stream, const char* op) {
  const std::size_t outputs = static_cast<std::size_t>(f.output_count()), operands = rows[0].size();
  MapListProblem p{.function = f.body()->id, .outputs = static_cast<std::uint8_t>(outputs), .inputs = static_cast<std::uint8_t>(operands - outputs)};
  p.types.note(f);
  for (std::size_t k = 0; k < operands; ++k) {
    p.dtypes[k] = rows[0][k].dtype();
    p.types.note(p.dtypes[k]);
    p.spread[k] = k >= outputs && std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return row[k].numel() == 1; });
  }
  for (const Row& row : rows) p.wide_index = p.wide_index || row[0].numel() >= INT32_MAX;
  const BuiltPlan& plan = runtime.plans().find<BuiltPlan>("map_list", p, options.implementation, [&] {
    KernelPlan selected = select(runtime.traits(), p, options.implementation, op);
    const std::span<const DType> dtypes(p.dtypes);
    check_byte_selects(runtime.traits(), f, dtypes.first(outputs), dtypes.subspan(outputs, operands - outputs), op);
    selected.expression = print_operands(outputs, operands - outputs, 0, f.body()->buffers.size()) +
                          print_table_operands(outputs, std::span<const bool>(p.spread).first(operands)) +
                          print_opencl(f, dtypes.first(outputs), dtypes.subspan(outputs, operands - outputs)).text;
    return build_plan(runtime, selected);
  });
  std::vector<const Tensor*> entries;
  std::vector<std::int64_t> words, chunks, first_chunk;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const Tensor& t : rows[i]) entries.push_back(&t);
    const auto n = static_cast<std::uint64_t>(rows[i][0].numel());
    words.push_back(rows[i][0].numel());
    first_chunk.push_back(static_cast<std::int64_t>(chunks.size()));
    for (std::uint64_t chunk = 0; chunk * plan.tuning.tile < n; ++chunk) chunks.push_back(static_cast<std::int64_t>(i | chunk << 32));
  }
  first_chunk.push_back(static_cast<std::int64_t>(chunks.size()));
  words.insert(words.end(), chunks.begin(), chunks.end());
  const Tensor placed = from_host(words, {static_cast<std::int64_t>(words.size())}, stream.device(), stream);
  std::vector<TensorTable::Column> columns(operands, {.access = Argument::Kind::input});
  std::fill_n(columns.begin(), outputs, TensorTable::Column{.access = Argument::Kind::output});
  // An output that is an input of its row is read, too.
  for (const Row& row : rows)
    for (std::size_t o = 0; o < outputs; ++o)
      for (std::size_t k = outputs; k < operands; ++k)
        if (may_overlap(row[o], row[k])) columns[o].access = Argument::Kind::inout;
  std::size_t first = 0;
  for (std::size_t end : TensorTable::split(entries, operands)) {
    TensorTable table(columns);
    const std::int64_t from = first_chunk[first], count = first_chunk[end] - from;
    double elements = 0, bytes = 0;
    for (std::size_t i = first; i < end; ++i) {
      elements += static_cast<double>(rows[i][0].numel());
      for (const Tensor& t : rows[i]) bytes += static_cast<double>(t.nbytes());
    }
    Encoder encoder(stream, op);
    encoder.flops(f.body()->operations * elements).moves(bytes);
    encoder.table(table, std::span(entries).subspan(first * operands, (end - first) * operands)).input(placed);
    bind_args(encoder, MapListArgs{static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(first),
                                   static_cast<std::uint32_t>(rows.size())});
    bind_extra(encoder, *f.body(), f.body()->param_values);
    encoder.dispatch(plan.kernel, tile_geometry(static_cast<std::uint64_t>(count), plan.tuning.local));
    first = end;
  }
}

/// Runs the function at all places; rows of equal dtypes share launches. Tensors that are not contiguous go by way of copies.
void run_lists(Lists outputs, const ExprFunction& f, Lists inputs, Runtime& runtime, const MapOptions& options, const Stream& stream, const char* op) {
  check_implementation(options.implementation, op, kImplementations);
  std::map<std::vector<DType>, std::vector<Row>> sets;
  std::vector<Tensor> to, from;  // outputs that are not contiguous, and what they get
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    if (outputs[0][i].numel() == 0) continue;
    Row row;
    std::vector<DType> dtypes;
    for (const auto& list : outputs) {
      const Tensor& out = list[i];
      row.push_back(out.is_contiguous() ? out : empty(out.sizes(), {.dtype = out.dtype(), .device = stream.device()}, stream));
      if (!out.is_contiguous()) to.push_back(out), from.push_back(row.back());
    }
    for (const auto& list : inputs) row.push_back(list[i].contiguous(stream));
    for (const Tensor& t : row) dtypes.push_back(t.dtype());
    sets[dtypes].push_back(std::move(row));
  }
  for (const auto& [dtypes, rows] : sets) launch_rows(rows, f, runtime, options, stream, op);
  foreach_copy_(to, from, {}, stream);
}

}}  // namespace detail

std::vector<std::vector<Tensor>> foreach_map(const ExprFunction& f, std::span<const std::span<const Tensor>> inputs, const MapOptions& options,
                                             const Stream& given) {
  detail::OpName named("foreach_map");
  constexpr const char* op = "foreach_map";
  detail::Runtime& runtime = detail::check_lists(f, inputs, {}, op);
  const auto count = static_cast<std::size_t>(f.output_count());
  if (options.dtype.size() > 0 && options.dtype.size() != f.output_count())
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("dtype must be one for each of {} outputs or none, got {}", f.output_count(), options.dtype.size()));
  const Stream stream = detail::resolve_stream(given, runtime, op);
  std::vector<std::vector<Tensor>> results(count);
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const Dims sizes = detail::shape_at(inputs, i, op);
    std::vector<Tensor> row;
    for (const auto& list : inputs) row.push_back(list[i]);
    for (std::size_t o = 0; o < count; ++o) {
      const int k = static_cast<int>(o);
      const DType dtype = options.dtype.size() > 0 ? options.dtype[k] : map_dtype(f, k, row);
      detail::compute_dtype(dtype, op);
      results[o].push_back(empty(sizes, {.dtype = dtype, .device = stream.device()}, stream));
    }
  }
  const std::vector<std::span<const Tensor>> outputs(results.begin(), results.end());
  detail::run_lists(outputs, f, inputs, runtime, options, stream, op);
  return results;
}

void foreach_map_out(std::span<const std::span<const Tensor>> outputs, const ExprFunction& f, std::span<const std::span<const Tensor>> inputs,
                     const MapOptions& options, const Stream& given) {
  detail::OpName named("foreach_map_out");
  constexpr const char* op = "foreach_map_out";
  if (outputs.empty()) throw Error(ErrorCode::invalid_argument, op, "there must be a list of outputs, got none");
  detail::Runtime& runtime = detail::check_lists(f, inputs, outputs, op);
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const Dims sizes = detail::shape_at(inputs, i, op);
    for (const auto& list : outputs) {
      detail::compute_dtype(list[i].dtype(), op);
      if (!(list[i].sizes() == sizes))
        throw Error(ErrorCode::invalid_shape, op, fmt::format("output {} must have shape {}, got {}", i, to_string(sizes), to_string(list[i].sizes())));
      for (const Tensor& t : f.body()->tensors) detail::check_apart(list[i], t, op);
    }
  }
  detail::check_lists_apart(detail::joined(outputs), detail::joined(inputs), inputs[0].size(), op);
  detail::run_lists(outputs, f, inputs, runtime, options, detail::resolve_stream(given, runtime, op), op);
}

}}  // namespace clutch::v0
