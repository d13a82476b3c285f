// SPDX-License-Identifier: Apache-2.0
#include "graph/tiny.hpp"

#include "encode/meaning.hpp"
#include "encode/plan.hpp"
#include "expr/node.hpp"
#include "reduce/args.h"
#include "tiny/args.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr const char* kOp = "Graph::instantiate";

// Bounds of one launch. Its program has a function for each body, which takes some 50 ms to build; buffers past these are left to temporaries.
constexpr std::size_t kMostBodies = 16, kMostEntries = 1 << 14, kMostBuffers = TensorTable::kBases - 3;
constexpr std::size_t kMostTensors = 8, kMostSteps = 512;  // of a function
constexpr std::int64_t kMostOfRows = 1024;                 // elements of a function of rows, which go one by one

/// RowsMeaning::ops: clutch::Reduce, which is of a layer above.
enum Total : std::uint8_t { kSum, kProd, kLeast, kMost, kMean, kAny, kAll };

/// A function with the dtypes of its tensors, which a program has once.
struct Function {
  ExprFunction function;                    ///< of elements; empty if it is one of rows
  std::shared_ptr<const RowsMeaning> rows;  ///< null if it is one of elements
  std::vector<DType> outputs, inputs;
  std::size_t elements = 0;  ///< outputs that are one for each element, before those of rows
  /// The traced functions, in the order of their params.
  std::vector<const ExprFunction*> parts() const {
    if (!rows) return {&function};
    std::vector<const ExprFunction*> all;
    for (const ExprFunction& f : rows->totals) all.push_back(&f);
    for (const ExprFunction* f : {&rows->elements, &rows->results})
      if (!f->empty()) all.push_back(f);
    return all;
  }
  /// Equal for equal ones, in any process.
  std::string key() const {
    std::string text;
    if (rows) text = fmt::format("rows {} {} {}: ", name(rows->accumulator), fmt::join(rows->ops, " "), elements);
    for (const ExprFunction* f : parts()) text += *f->body()->text + " ; ";
    for (DType d : outputs) text += fmt::format(" {}", name(d));
    text += " <-";
    for (DType d : inputs) text += fmt::format(" {}", name(d));
    return text;
  }
  bool has_wide() const {
    auto wide = [](DType d) { return is_wide(d) || d == DType::u32; };
    return std::any_of(outputs.begin(), outputs.end(), wide) || std::any_of(inputs.begin(), inputs.end(), wide) || (rows && is_wide(rows->accumulator)) ||
           std::ranges::any_of(parts(), [](const ExprFunction* f) {
             return std::any_of(f->body()->steps.begin(), f->body()->steps.end(), [](const ExprStep& s) { return is_wide(s.dtype); });
           });
  }
};

/// A step as an entry of a table, but for its place there.
struct Small {
  std::uint32_t body = TINY_FILL;  ///< of functions TINY_FUNCTION
  std::optional<Function> function;
  std::string key;
  std::uint32_t n = 0;
  bool lines = false;                ///< each tensor is read in lines of neighbours, or of one element
  std::uint32_t length = 1;          ///< of a line, or of a row that is reduced
  std::vector<std::uint64_t> words;  ///< behind the entry
  int first = 0;                     ///< its first tensor's use; 1 where the first one is a guard
  bool is_control() const { return body == TINY_CHOOSE || body == TINY_BEGIN || body == TINY_NEXT; }
};

std::uint64_t number_at(const GraphWork& work, const BoundArgument& b, std::size_t skip = 0) {
  std::uint64_t number = 0;
  std::memcpy(&number, work.bytes.data() + b.at + skip, std::min<std::size_t>(b.size - skip, sizeof number));
  return number;
}

std::vector<const BoundArgument*> numbers_of(const GraphWork& work) {
  std::vector<const BoundArgument*> all;
  for (const BoundArgument& b : work.bound)
    if (b.kind == BoundArgument::Kind::bytes) all.push_back(&b);
  return all;
}

class Tables {
 public:
  Tables(const GraphState& state, FusedProgram& program, std::size_t least)
      : state_(state), program_(program), least_(least), traits_(state.runtime().traits()), tuning_(elementwise_tuning(traits_)) {
    if (table_tuning.items > 0) tuning_.set_items(static_cast<std::uint64_t>(table_tuning.items));
  }

  void run() {
    if (traits_.quirks & kQuirkLoopsEndEarly) return;
    find_dependencies();
    std::vector<std::string> why(steps().size());
    for (std::size_t s = 0; s < steps().size(); ++s) small_.push_back(as_small(steps()[s].work, why[s]));
    const std::vector<int> order = scheduled();
    std::vector<FusedStep> made;
    for (std::size_t begin = 0; begin < order.size();) {
      const std::size_t end = run_end(order, begin);
      if (end - begin >= std::max<std::size_t>(least_, 2)) {
        made.push_back(table_of(std::span(order).subspan(begin, end - begin)));
      } else {
        for (std::size_t i = begin; i < end; ++i) {
          FusedStep& step = steps()[static_cast<std::size_t>(order[i])];
          if (step.nodes.size() == 1 && why[static_cast<std::size_t>(order[i])].empty())
            why[static_cast<std::size_t>(order[i])] = fmt::format("fewer than {} small launches follow each other there", std::max<std::size_t>(least_, 2));
          if (step.nodes.size() == 1)
            program_.why_alone[static_cast<std::size_t>(step.nodes[0])] += fmt::format("; in no table, since {}", why[static_cast<std::size_t>(order[i])]);
          made.push_back(std::move(step));
        }
      }
      begin = end;
    }
    program_.steps = std::move(made);
  }

 private:
  std::vector<FusedStep>& steps() const { return program_.steps; }
  const Small& small(int step) const { return *small_[static_cast<std::size_t>(step)]; }
  const GraphWork& work(int step) const { return steps()[static_cast<std::size_t>(step)].work; }

  // what is small ---------------------------------------------------------------------------------------------------

  std::optional<Small> as_small(const GraphWork& work, std::string& why) const {
    auto refuse = [&](std::string text) {
      why = std::move(text);
      return std::nullopt;
    };
    Small s;
    if (work.kind == GraphNodeKind::fill || work.kind == GraphNodeKind::copy) {
      const GraphUse& use = work.uses[work.kind == GraphNodeKind::copy ? 1 : 0];
      if (use.bytes > most_bytes()) return refuse("it is large");
      s.body = work.kind == GraphNodeKind::fill ? TINY_FILL : TINY_COPY;
      s.n = static_cast<std::uint32_t>(use.bytes);
      if (work.kind == GraphNodeKind::fill) s.words.assign(2, work.pattern * 0x0101010101010101ull);
      return s;
    }
    if (work.kind != GraphNodeKind::kernel || !work.meaning) return refuse("it is no function of elements, copy, fill or control flow");
    const Meaning& m = *work.meaning;
    s.first = m.predicated ? 1 : 0;
    if (m.known == Meaning::Known::function) return as_function(work, m, {}, std::move(s), why);
    if (m.known == Meaning::Known::copy && !copies_bytes(work, s.first)) return as_copy(work, std::move(s), why);
    const std::vector<const BoundArgument*> numbers = numbers_of(work);
    if (m.known == Meaning::Known::fill || m.known == Meaning::Known::copy) {
      const GraphUse& use = work.uses[static_cast<std::size_t>(s.first)];
      if (use.bytes > most_bytes()) return refuse("it is large");
      s.body = m.known == Meaning::Known::fill ? TINY_FILL : TINY_COPY;
      s.n = static_cast<std::uint32_t>(use.bytes);
      if (m.known == Meaning::Known::fill) s.words = {number_at(work, *numbers[1]), number_at(work, *numbers[1], 8)};
      return s;
    }
    s.body = m.known == Meaning::Known::choose ? TINY_CHOOSE : m.known == Meaning::Known::begin ? TINY_BEGIN : TINY_NEXT;
    for (const BoundArgument* b : numbers) s.words.push_back(number_at(work, *b));
    return s;
  }

  std::uint64_t most_bytes() const { return 4 * tuning_.tile; }

  /// True if both tensors are the same elements of a range of bytes.
  static bool copies_bytes(const GraphWork& work, int first) {
    const GraphUse &to = work.uses[static_cast<std::size_t>(first)], &from = work.uses[static_cast<std::size_t>(first) + 1];
    return to.sizes == from.sizes && to.strides == from.strides && to.bytes == bytes_for(to.dtype, static_cast<std::uint64_t>(numel(to.sizes)));
  }

  /// A copy of elements: the identity of integers of their size, which keeps all bits.
  std::optional<Small> as_copy(const GraphWork& work, Small s, std::string& why) const {
    const GraphUse& to = work.uses[static_cast<std::size_t>(s.first)];
    const int size = bits(to.dtype);
    if (size != 8 && size != 16 && size != 32 && size != 64) {
      why = fmt::format("it copies elements of {} bits", size);
      return std::nullopt;
    }
    const DType alike = size == 8 ? DType::u8 : size == 16 ? DType::u16 : size == 32 ? DType::i32 : DType::i64;
    Meaning m;
    m.elements = m.inputs = 1;
    m.sizes = to.sizes;
    m.function = identity(compute_dtype(alike, kOp));
    return as_function(work, m, alike, std::move(s), why);
  }

  /// `alike`: the dtype in the place of those of the tensors.
  std::optional<Small> as_function(const GraphWork& work, const Meaning& m, std::optional<DType> alike, Small s, std::string& why) const {
    auto refuse = [&](std::string text) {
      why = std::move(text);
      return std::nullopt;
    };
    if (m.product) return refuse("it multiplies matrices");
    if (m.rows) return as_rows(work, m, std::move(s), why);
    const ExprBody& body = *m.function.body();
    const auto tensors = static_cast<std::size_t>(m.elements) + static_cast<std::size_t>(m.inputs), first = static_cast<std::size_t>(s.first);
    if (!body.buffers.empty() || work.uses.size() != first + tensors) return refuse("its function reads captured tensors");
    if (std::any_of(body.steps.begin(), body.steps.end(), [](const ExprStep& step) { return step.op == ExprOp::position; }))
      return refuse("its function reads the positions of elements");
    if (tensors > kMostTensors) return refuse(fmt::format("it has more than {} tensors", kMostTensors));
    if (body.steps.size() > kMostSteps) return refuse(fmt::format("it has more than {} operations", kMostSteps));
    const auto n = static_cast<std::uint64_t>(numel(m.sizes));
    if (n > tuning_.tile) return refuse("it is large");
    Function f{.function = m.function, .rows = nullptr, .outputs = {}, .inputs = {}};
    std::vector<Dims> strides;
    for (std::size_t k = 0; k < tensors; ++k) {
      const GraphUse& use = work.uses[first + k];
      (k < static_cast<std::size_t>(m.elements) ? f.outputs : f.inputs).push_back(alike.value_or(use.dtype));
      Dims spread;
      for (std::int64_t of_one : strides_over(use, m, false)) spread.push_back(of_one);
      strides.push_back(spread);
    }
    std::int64_t rank = 0;
    std::int64_t size[CLUTCH_SHAPE_LANES] = {};
    std::vector<std::int64_t> stride(CLUTCH_SHAPE_LANES * tensors);
    Layout layout{};
    bool wide = false;
    make_walk(m.sizes, strides, &rank, size, stride.data(), &layout, &wide);
    if (wide && !the_settings().index64.on()) return refuse("its offsets need 64 bits");
    if (rank > TINY_RANK) return refuse(fmt::format("its shape has more than {} dimensions after joining", TINY_RANK));
    s.body = TINY_FUNCTION;
    s.n = static_cast<std::uint32_t>(n);
    s.lines = true;
    for (std::size_t k = 0; k < tensors; ++k) {
      const std::int64_t inner = stride[CLUTCH_SHAPE_LANES * k];
      s.lines = s.lines && (inner == 1 || (inner == 0 && k >= static_cast<std::size_t>(m.elements)));
    }
    s.length = static_cast<std::uint32_t>(size[0]);
    for (int d = 0; d < TINY_RANK; ++d) s.words.push_back(d < rank ? static_cast<std::uint64_t>(size[d]) : 1);
    for (std::size_t k = 0; k < tensors; ++k)
      for (int d = 0; d < TINY_RANK; ++d)
        s.words.push_back(d < rank ? static_cast<std::uint64_t>(stride[CLUTCH_SHAPE_LANES * k + static_cast<std::size_t>(d)]) : 0);
    for (std::size_t p = 0; p < body.params.size(); ++p) s.words.push_back(constant_bits(body.params[p], body.param_values[p]));
    s.key = f.key();
    s.function = std::move(f);
    return s;
  }

  /// Dimensions, neighbours joined where all tensors allow it, the innermost first.
  struct Joined {
    std::vector<std::int64_t> sizes;
    std::vector<std::vector<std::int64_t>> strides;  ///< by tensor
    void add(std::int64_t size, const std::vector<std::int64_t>& of_tensors) {
      if (size == 1) return;
      strides.resize(of_tensors.size());
      bool joins = !sizes.empty();
      for (std::size_t k = 0; k < of_tensors.size() && joins; ++k) joins = of_tensors[k] == strides[k].back() * sizes.back();
      if (joins) {
        sizes.back() *= size;
        return;
      }
      sizes.push_back(size);
      for (std::size_t k = 0; k < of_tensors.size(); ++k) strides[k].push_back(of_tensors[k]);
    }
    std::uint64_t size(int d) const { return d < static_cast<int>(sizes.size()) ? static_cast<std::uint64_t>(sizes[static_cast<std::size_t>(d)]) : 1; }
    std::uint64_t stride(std::size_t k, int d) const {
      return d < static_cast<int>(sizes.size()) ? static_cast<std::uint64_t>(strides[k][static_cast<std::size_t>(d)]) : 0;
    }
  };

  static bool reads_inputs(const ExprFunction& f, int inputs) {
    std::vector<bool> used(f.body()->steps.size(), false);
    for (int o : f.body()->outputs) used[static_cast<std::size_t>(o)] = true;
    for (std::size_t k = used.size(); k-- > 0;) {
      const ExprStep& step = f.body()->steps[k];
      if (used[k] && step.op == ExprOp::input && step.index < inputs) return true;
      for (int o : step.operands)
        if (used[k]) used[static_cast<std::size_t>(o)] = true;
    }
    return false;
  }

  std::optional<Small> as_rows(const GraphWork& work, const Meaning& m, Small s, std::string& why) const {
    auto refuse = [&](std::string text) {
      why = std::move(text);
      return std::nullopt;
    };
    // Items would keep all sums of a row in memory of their own.
    if (tuning_.local > 1) return refuse("it reduces, and groups have several items");
    const RowsMeaning& rows = *m.rows;
    const auto tensors = static_cast<std::size_t>(m.elements) + static_cast<std::size_t>(m.results) + static_cast<std::size_t>(m.inputs),
               first = static_cast<std::size_t>(s.first);
    if (work.uses.size() != first + tensors || tensors > kMostTensors) return refuse(fmt::format("it has more than {} tensors", kMostTensors));
    if (!rows.results.empty() && reads_inputs(rows.results, m.inputs)) return refuse("its results read elements");
    Function f{.function = {}, .rows = m.rows, .outputs = {}, .inputs = {}, .elements = static_cast<std::size_t>(m.elements)};
    std::size_t operations = 0;
    for (const ExprFunction* part : f.parts()) {
      operations += part->body()->steps.size();
      if (!part->body()->buffers.empty()) return refuse("its function reads captured tensors");
      if (std::any_of(part->body()->steps.begin(), part->body()->steps.end(), [](const ExprStep& step) { return step.op == ExprOp::position; }))
        return refuse("its function reads the positions of elements");
    }
    if (operations > kMostSteps) return refuse(fmt::format("it has more than {} operations", kMostSteps));
    std::vector<std::vector<std::int64_t>> strides(static_cast<std::size_t>(m.sizes.rank()), std::vector<std::int64_t>(tensors));
    std::int64_t n = 1, length = 1;
    for (int d = 0; d < m.sizes.rank(); ++d) (m.gone[static_cast<std::size_t>(d)] ? length : n) *= m.sizes[d];
    if (rows.accumulator == DType::u64) return refuse("it reduces u64");
    if (std::find(rows.ops.begin(), rows.ops.end(), static_cast<int>(kMean)) != rows.ops.end()) return refuse("a total of it is a mean");
    if (length < 1 || length > REDUCE_BLOCK || n * length > kMostOfRows) return refuse("it is large, or has no elements");
    for (std::size_t k = 0; k < tensors; ++k) {
      const GraphUse& use = work.uses[first + k];
      const bool result = k >= f.elements && k < f.elements + static_cast<std::size_t>(m.results);
      (k < f.elements + static_cast<std::size_t>(m.results) ? f.outputs : f.inputs).push_back(use.dtype);
      if (use.bytes >= INT32_MAX) return refuse("its offsets need 64 bits");
      const std::vector<std::int64_t> own = strides_over(use, m, result);
      for (std::size_t d = 0; d < own.size(); ++d) strides[d][k] = own[d];
    }
    Joined kept, along;
    for (int d = m.sizes.rank() - 1; d >= 0; --d) (m.gone[static_cast<std::size_t>(d)] ? along : kept).add(m.sizes[d], strides[static_cast<std::size_t>(d)]);
    if (kept.sizes.size() > TINY_RANK || along.sizes.size() > TINY_RANK)
      return refuse(fmt::format("its shape has more than {} dimensions after joining", TINY_RANK));
    for (const Joined* of : {&kept, &along})
      for (int d = 0; d < TINY_RANK; ++d) s.words.push_back(of->size(d));
    for (std::size_t k = 0; k < tensors; ++k)
      for (const Joined* of : {&kept, &along})
        for (int d = 0; d < TINY_RANK; ++d) s.words.push_back(of->stride(k, d));
    for (const ExprFunction* part : f.parts())
      for (std::size_t p = 0; p < part->body()->params.size(); ++p) s.words.push_back(constant_bits(part->body()->params[p], part->body()->param_values[p]));
    s.body = TINY_FUNCTION;
    s.n = static_cast<std::uint32_t>(n), s.length = static_cast<std::uint32_t>(length);
    s.key = f.key();
    s.function = std::move(f);
    return s;
  }

  // order -----------------------------------------------------------------------------------------------------------

  void find_dependencies() {
    std::vector<int> step_of(state_.nodes.size(), -1);
    for (std::size_t s = 0; s < steps().size(); ++s)
      for (int node : steps()[s].nodes) step_of[static_cast<std::size_t>(node)] = static_cast<int>(s);
    before_.resize(steps().size()), after_.resize(steps().size());
    auto add = [&](int from, int to) {
      if (from >= 0 && from != to) before_[static_cast<std::size_t>(to)].push_back(from);
    };
    int last_task = -1;
    for (std::size_t s = 0; s < steps().size(); ++s) {
      const auto step = static_cast<int>(s);
      for (int node : steps()[s].nodes)
        for (int earlier : state_.dependencies(node)) add(step_of[static_cast<std::size_t>(earlier)], step);
      if (work(step).kind == GraphNodeKind::host_task || work(step).kind == GraphNodeKind::opaque) add(std::exchange(last_task, step), step);
      std::vector<int>& all = before_[s];
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
      if (broken_rule == BrokenRule::table_reads) [[unlikely]]
        std::erase_if(all, [&](int earlier) { return !reads_from(step, earlier); });
      for (int earlier : all) after_[static_cast<std::size_t>(earlier)].push_back(step);
    }
  }

  /// True if the step uses what the earlier one writes.
  bool reads_from(int step, int earlier) const {
    for (const GraphUse& a : work(earlier).uses)
      for (const GraphUse& b : work(step).uses)
        if (a.buffer == b.buffer && a.access != Argument::Kind::input) return true;
    return false;
  }

  /// True for a large fill that follows nothing: it may wait until all else that a step needs is there, and its buffer is not held any longer.
  bool may_wait(int step) const {
    const GraphWork& w = work(step);
    const bool fills = w.kind == GraphNodeKind::fill || (w.kind == GraphNodeKind::kernel && w.meaning && w.meaning->known == Meaning::Known::fill);
    return fills && !small_[static_cast<std::size_t>(step)] && before_[static_cast<std::size_t>(step)].empty() &&
           !after_[static_cast<std::size_t>(step)].empty();
  }

  /// Steps in an order in which each follows those that it depends on, with small ones behind small ones where that can be.
  std::vector<int> scheduled() const {
    std::vector<std::size_t> missing(steps().size());  // those of `before_` that are not in the order
    std::vector<std::size_t> waiting(steps().size());  // and of these the ones that may wait
    std::set<int> ready[2];
    auto add_ready = [&](int step) { ready[small_[static_cast<std::size_t>(step)].has_value()].insert(step); };
    auto look = [&](int step) {
      const auto s = static_cast<std::size_t>(step);
      if (missing[s] == 0) return add_ready(step);
      if (missing[s] != waiting[s]) return;
      for (int earlier : before_[s])
        if (may_wait(earlier)) add_ready(earlier);
    };
    std::vector<char> placed(steps().size());
    for (std::size_t s = 0; s < steps().size(); ++s) {
      missing[s] = before_[s].size();
      waiting[s] = static_cast<std::size_t>(std::count_if(before_[s].begin(), before_[s].end(), [&](int earlier) { return may_wait(earlier); }));
    }
    for (std::size_t s = 0; s < steps().size(); ++s)
      if (!may_wait(static_cast<int>(s))) look(static_cast<int>(s));
    std::vector<int> order;
    bool is_small = true;
    while (!ready[0].empty() || !ready[1].empty()) {
      if (ready[is_small].empty()) is_small = !is_small;
      const int step = *ready[is_small].begin();
      ready[is_small].erase(ready[is_small].begin());
      if (std::exchange(placed[static_cast<std::size_t>(step)], 1)) continue;  // a fill that several steps asked for
      order.push_back(step);
      for (int next : after_[static_cast<std::size_t>(step)]) {
        --missing[static_cast<std::size_t>(next)];
        if (may_wait(step)) --waiting[static_cast<std::size_t>(next)];
        look(next);
      }
    }
    return order;
  }

  /// The end of the run of small steps that begins there; behind one step if that is not small.
  std::size_t run_end(const std::vector<int>& order, std::size_t begin) const {
    std::set<std::string_view> bodies;
    std::set<const void*> buffers;
    std::size_t end = begin;
    for (; end < order.size() && end - begin < kMostEntries && small_[static_cast<std::size_t>(order[end])]; ++end) {
      const Small& s = small(order[end]);
      if (s.function) bodies.insert(s.key);
      for (const GraphUse& use : work(order[end]).uses)
        if (const auto& storage = state_.buffers[static_cast<std::size_t>(use.buffer)].storage) buffers.insert(storage->mem());
      if (bodies.size() > kMostBodies || buffers.size() > kMostBuffers) break;
    }
    return std::max(end, begin + 1);
  }

  /// The steps by the number of those that each must follow, one after another, so that those side by side are neighbours. Steps of branches and loops keep
  /// their order, since a branch that is not taken is skipped as a whole.
  std::vector<int> leveled(std::span<const int> run) const {
    std::vector<int> order(run.begin(), run.end());
    if (std::any_of(run.begin(), run.end(), [&](int s) { return small(s).first > 0 || small(s).is_control(); })) return order;
    std::map<int, int> level;
    for (int s : run) {
      int own = 0;
      for (int earlier : before_[static_cast<std::size_t>(s)])
        if (auto found = level.find(earlier); found != level.end()) own = std::max(own, found->second + 1);
      level[s] = own;
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return level.at(a) < level.at(b); });
    return order;
  }

  // launches --------------------------------------------------------------------------------------------------------

  /// Declarations of a function's tensors and params, as macros.
  static std::string declared(const Function& f, std::size_t number, const char* letters) {
    std::string tensors, params;
    for (std::size_t k = 0; k < f.outputs.size() + f.inputs.size(); ++k)
      tensors += fmt::format(" __global {}uchar* b{} = table_at(table, (ulong)(first) + {});", k < f.outputs.size() ? "" : "const ", k, k);
    std::size_t word = 0;
    for (const ExprFunction* part : f.parts()) {
      for (std::size_t p = 0; p < part->body()->params.size(); ++p, ++word) {
        const DType dtype = part->body()->params[p];
        const std::string own = fmt::format("{}{}", *letters, p);
        params += dtype == DType::f64                          ? fmt::format(" const double {} = as_double(words[{}]);", own, word)
                  : dtype == DType::f32                        ? fmt::format(" const float {} = as_float((uint)words[{}]);", own, word)
                  : dtype == DType::i64 || dtype == DType::u64 ? fmt::format(" const long {} = (long)words[{}];", own, word)
                                                               : fmt::format(" const int {} = (int)words[{}];", own, word);
      }
      ++letters;
    }
    return fmt::format("#define CLUTCH_TINY_TENSORS_{0}(first){1}\n#define CLUTCH_TINY_PARAMS_{0}{2}\n", number, tensors, params);
  }

  static std::string printed_elements(const Function& f, std::size_t number) {
    const std::string macro = fmt::format("TINY_EXPRESSION_{}", number), extra = fmt::format("TINY_EXTRA_{}", number);
    return print_opencl(f.function, f.outputs, f.inputs, {.macro = macro, .extra = extra}).text + declared(f, number, "p") +
           fmt::format("TINY_BODY({0}, {1}, CLUTCH_TINY_EXPRESSION_{0}, CLUTCH_TINY_TENSORS_{0}, CLUTCH_TINY_PARAMS_{0})\n", number,
                       f.outputs.size() + f.inputs.size());
  }

  /// The accumulator's types, the neutral element, and how vectors of accumulators, and two of them, combine.
  static std::string combining(DType accumulator, int op) {
    const bool is_float = is_floating(accumulator), wide = is_wide(accumulator);
    const char *a = is_float ? (wide ? "double" : "float") : wide ? "long" : "int", *v = is_float ? (wide ? "VD" : "VF") : wide ? "VL" : "VI";
    std::string neutral, lanes, one, ends = "TINY_KEEP";
    const bool most = op == kMost;
    switch (op) {
      case kSum:
      case kProd:
        neutral = op == kSum ? "0" : "1";
        lanes = one = op == kSum ? "TINY_ADD" : "TINY_MUL";
        if (!is_float && wide) lanes += "_VL", one += "_LONG";
        break;
      case kLeast:
      case kMost:
        neutral = is_float ? (most ? "(-INFINITY)" : "INFINITY")
                  : wide   ? (most ? "(-0x7FFFFFFFFFFFFFFFL - 1L)" : "0x7FFFFFFFFFFFFFFFL")
                           : (most ? "(-0x7FFFFFFF - 1)" : "0x7FFFFFFF");
        lanes = one = most ? "TINY_MOST" : "TINY_LEAST";
        if (is_float) ends = fmt::format("TINY_QUIET_{}", name(accumulator));
        break;
      case kAny: neutral = "CLUTCH_FALSE", lanes = one = "TINY_OR", ends = "TINY_MASK_LANES"; break;
      default: neutral = "CLUTCH_TRUE", lanes = one = "TINY_AND", ends = "TINY_MASK_LANES"; break;
    }
    return fmt::format("{}, {}, {}, {}, {}, {}, {}", a, v, neutral, lanes, one, wide ? "CLUTCH_WIDE_MASK, CLUTCH_SPILLD" : "TINY_NARROW, CLUTCH_SPILL", ends);
  }

  static std::string printed_rows(const Function& f, std::size_t number) {
    const RowsMeaning& rows = *f.rows;
    const std::size_t outputs = f.outputs.size(), all = outputs + f.inputs.size();
    std::string text, totals, rest;
    const char* letters = kLetters;
    std::size_t count = 0;
    auto print = [&](const ExprFunction& of, std::span<const DType> dtypes, std::size_t first_output) {
      const std::string macro = fmt::format("TINY_EXPRESSION_{}_{}", number, count), extra = fmt::format("TINY_EXTRA_{}_{}", number, count);
      ++count;
      text += print_opencl(
                  of, dtypes, f.inputs,
                  {.macro = macro, .extra = extra, .param = *letters++, .first_output = first_output, .first_input = outputs, .memory_inputs = f.inputs.size()})
                  .text;
      return "CLUTCH_" + macro;
    };
    for (std::size_t t = 0; t < rows.totals.size(); ++t) {
      const std::string macro = print(rows.totals[t], std::span(&rows.accumulator, 1), 0);
      totals += fmt::format(" TINY_TOTAL({}, {}, {}, {})", t, all, combining(rows.accumulator, rows.ops[t]), macro);
    }
    const std::span<const DType> dtypes(f.outputs);
    if (!rows.elements.empty()) rest += fmt::format(" TINY_ELEMENTS({}, {})", all, print(rows.elements, dtypes.first(f.elements), 0));
    if (!rows.results.empty()) rest += fmt::format(" TINY_RESULTS({}, {})", all, print(rows.results, dtypes.subspan(f.elements), f.elements));
    const std::string types = combining(rows.accumulator, kSum);
    text += declared(f, number, kLetters) + fmt::format("#define CLUTCH_TINY_TOTALS_{0}{1}\n#define CLUTCH_TINY_REST_{0}{2}\n", number, totals, rest);
    return text + fmt::format("TINY_ROWS({0}, {1}, {2}, CLUTCH_TINY_TENSORS_{0}, CLUTCH_TINY_PARAMS_{0}, CLUTCH_TINY_TOTALS_{0}, CLUTCH_TINY_REST_{0})\n",
                              number, all, types.substr(0, types.find(", ", types.find(", ") + 1)));
  }
  static constexpr const char* kLetters = "pqtuwy";  // of params of a function's parts

  /// The text of the program's functions, in the order of `functions`.
  static std::string printed(const std::map<std::string, const Function*>& functions) {
    std::string text, cases = "#define CLUTCH_TINY_CASES";
    std::size_t number = 0;
    for (const auto& [key, f] : functions) {
      text += f->rows ? printed_rows(*f, number) : printed_elements(*f, number);
      cases += fmt::format(" case TINY_FUNCTION + {0}: tiny_body_{0}(item, items, table, e); break;", number);
      ++number;
    }
    return text + cases + "\n";
  }

  BuiltPlan plan_of(const std::map<std::string, const Function*>& functions) const {
    KernelPlan plan{.stem = "tiny", .entry = "tiny_table", .tuning = tuning_};
    const bool wide = std::any_of(functions.begin(), functions.end(), [](const auto& f) { return f.second->has_wide(); });
    plan.tuning.width = emulates_rounding(traits_) ? 1 : wide ? std::max(1, tuning_.width / 2) : tuning_.width;
    if (emulates_rounding(traits_)) plan.note = "one lane, as rounding is emulated";
    set_common(plan.defines, traits_, plan.tuning, 1, the_settings().index64.on());
    plan.defines.set("DWIDTH", plan.tuning.width);
    if (plan.tuning.local > 1) plan.defines.set("CLUTCH_TINY_SHARED", 1);
    plan.expression = printed(functions);
    return build_plan(state_.runtime(), plan);
  }

  FusedStep table_of(std::span<const int> run) {
    const std::vector<int> order = leveled(run);
    std::map<std::string, const Function*> functions;
    for (int s : order)
      if (small(s).function) functions.emplace(small(s).key, &*small(s).function);
    const BuiltPlan plan = plan_of(functions);
    std::map<std::string_view, std::uint32_t> numbers;
    for (const auto& [key, f] : functions) numbers.emplace(key, static_cast<std::uint32_t>(TINY_FUNCTION + numbers.size()));

    FusedStep made{.work = {}, .nodes = {}, .form = "table", .addresses = {}};
    GraphWork& node = made.work;
    std::vector<TinyEntry> entries;
    std::set<const std::vector<GraphLabel>*> labels;
    auto all_labels = std::make_shared<std::vector<GraphLabel>>();
    std::map<int, std::size_t> place;  // of steps in the table
    std::size_t waited = 0;            // the first entry behind the last barrier
    std::uint32_t at = 0;
    for (int s : order) {
      FusedStep& step = steps()[static_cast<std::size_t>(s)];
      const Small& of = small(s);
      TinyEntry e{};
      e.body = of.function ? numbers.at(of.key) : of.body;
      for (int earlier : before_[static_cast<std::size_t>(s)])
        if (auto found = place.find(earlier); found != place.end() && found->second >= waited) e.waits = 1;
      if (broken_rule == BrokenRule::table_barrier) [[unlikely]]
        e.waits = 0;
      if (e.waits) waited = entries.size();
      place[s] = entries.size();
      const auto base = static_cast<std::uint32_t>(node.uses.size());
      e.guard = of.first > 0 ? base + 1 : 0;
      e.first = base + static_cast<std::uint32_t>(of.first);
      shape(e, of, static_cast<std::uint32_t>(plan.tuning.width));
      at += static_cast<std::uint32_t>(sizeof e + 8 * of.words.size());
      e.next = e.skip = at;
      entries.push_back(e);
      made.nodes.insert(made.nodes.end(), step.nodes.begin(), step.nodes.end());
      made.addresses.insert(made.addresses.end(), step.addresses.begin(), step.addresses.end());
      node.uses.insert(node.uses.end(), step.work.uses.begin(), step.work.uses.end());
      node.cost += step.work.cost;
      if (step.work.labels && labels.insert(step.work.labels.get()).second)
        all_labels->insert(all_labels->end(), step.work.labels->begin(), step.work.labels->end());
      for (int n : step.nodes) program_.why_alone[static_cast<std::size_t>(n)].clear();
    }
    std::sort(made.nodes.begin(), made.nodes.end());
    skip_branches(order, entries);
    auto bytes = std::make_shared<std::vector<unsigned char>>(at);
    std::size_t to = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::vector<std::uint64_t>& words = small(order[i]).words;
      std::memcpy(bytes->data() + to, &entries[i], sizeof entries[i]);
      if (!words.empty()) std::memcpy(bytes->data() + to + sizeof entries[i], words.data(), 8 * words.size());
      to += sizeof entries[i] + 8 * words.size();
    }
    if (!all_labels->empty()) node.labels = std::move(all_labels);
    bind(node, plan, std::move(bytes));
    node.stream = work(order.front()).stream;
    return made;
  }

  /// How the entry's elements are taken, by vectors of `width`.
  static void shape(TinyEntry& e, const Small& of, std::uint32_t width) {
    e.n = of.n, e.length = of.length;
    if (!of.function || of.function->rows) return;
    if (of.lines && of.length >= width) {
      e.lines = of.n / of.length, e.vectors = of.length / width;
      e.part_first = e.vectors * width, e.part_step = of.length, e.part_size = of.length % width;
      e.parts = e.part_size > 0 ? e.lines : 0;
    } else {
      e.parts = (of.n + width - 1) / width, e.part_size = e.part_step = width;
    }
  }

  /// Lets entries whose guard holds 0 skip all that follow and have that guard. Entries that may be reached so wait for all before them.
  void skip_branches(const std::vector<int>& order, std::vector<TinyEntry>& entries) const {
    auto guard_of = [&](std::size_t i) -> const GraphUse* {
      const int s = order[i];
      return small(s).first > 0 || small(s).body == TINY_NEXT ? work(s).uses.data() : nullptr;
    };
    for (std::size_t begin = 0; begin < entries.size();) {
      const GraphUse* guard = guard_of(begin);
      std::size_t end = begin + 1;
      if (guard)
        while (end < entries.size()) {
          const GraphUse* other = guard_of(end);
          if (!other || other->buffer != guard->buffer || other->byte_offset != guard->byte_offset) break;
          ++end;
        }
      if (guard && end - begin > 1) {
        for (std::size_t i = begin; i < end; ++i) entries[i].skip = entries[end - 1].next;
        if (end < entries.size() && broken_rule != BrokenRule::table_barrier) entries[end].waits = 1;
      }
      begin = end;
    }
  }

  /// The node's kernel and its arguments: TensorTable::kBases buffers, the table, the entries, and their bytes.
  void bind(GraphWork& node, const BuiltPlan& plan, std::shared_ptr<std::vector<unsigned char>> entries) const {
    node.op = "fused";
    node.kernel = plan.kernel.kernel();
    node.plan = plan.text;
    node.geometry = {.global = plan.tuning.local, .local = plan.tuning.local};
    node.object = ClKernel(node.kernel->make_bare());
    const auto tensors = static_cast<int>(node.uses.size());
    node.table.first_base = 0, node.table.use = tensors;
    for (int u = 0; u < tensors; ++u) node.table.entries.push_back(u);
    auto own = [&](std::uint64_t words) {
      GraphUse use;
      use.bytes = 8 * words, use.dtype = DType::i64;
      use.sizes = {static_cast<std::int64_t>(words)}, use.strides = {1};
      node.uses.push_back(use);
    };
    own(static_cast<std::uint64_t>(tensors));
    own(entries->size() / 8);
    for (int i = 0; i < TensorTable::kBases + 1; ++i) node.bound.push_back({.kind = BoundArgument::Kind::memory, .use = tensors});
    node.bound.push_back({.kind = BoundArgument::Kind::offset, .use = tensors});
    node.bound.push_back({.kind = BoundArgument::Kind::memory, .use = tensors + 1, .name = "entries"});
    node.bound.push_back({.kind = BoundArgument::Kind::offset, .use = tensors + 1});
    node.bytes.resize(8);
    const auto end = static_cast<std::uint32_t>(entries->size());
    std::memcpy(node.bytes.data(), &end, sizeof end);
    node.bound.push_back({.kind = BoundArgument::Kind::bytes, .size = sizeof end, .at = 0, .type = "uint", .name = "end"});
    node.contents = std::move(entries);
  }

  const GraphState& state_;
  FusedProgram& program_;
  const std::size_t least_;
  const DeviceTraits& traits_;
  ElementwiseTuning tuning_;
  std::vector<std::optional<Small>> small_;
  std::vector<std::vector<int>> before_, after_;  ///< steps
};

}  // namespace

bool may_have_tables(const GraphState& state, std::size_t least) {
  const auto known = std::count_if(state.nodes.begin(), state.nodes.end(),
                                   [](const GraphWork& node) { return node.meaning || node.kind == GraphNodeKind::fill || node.kind == GraphNodeKind::copy; });
  return static_cast<std::size_t>(known) >= std::max<std::size_t>(least, 2);
}

void make_tables(const GraphState& state, FusedProgram& program, std::size_t least) { Tables(state, program, least).run(); }

}}}  // namespace clutch::v0::detail
