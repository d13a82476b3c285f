// SPDX-License-Identifier: Apache-2.0
#include "ops/rowwise/held.hpp"

#include "ops/reduce_plan.hpp"

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

bool uses(const ExprFunction& f, int input) {
  const ExprBody& body = *f.body();
  const auto names = [&](int value) { return value == input; };
  return std::any_of(body.outputs.begin(), body.outputs.end(), names) ||
         std::any_of(body.steps.begin(), body.steps.end(), [&](const ExprStep& s) { return std::any_of(s.operands.begin(), s.operands.end(), names); });
}

/// Instructions of a function for an element, roughly.
std::size_t instructions(const ExprFunction& f) {
  constexpr std::size_t kElementary = 20;
  std::size_t sum = 0;
  for (const ExprStep& s : f.body()->steps) sum += s.op >= ExprOp::exp && s.op <= ExprOp::pow ? kElementary : 1;
  return sum;
}

/// True if a function reads an input otherwise than for value `known`.
bool uses_beside(const ExprFunction& f, int input, int known) {
  const ExprBody& body = *f.body();
  std::vector<int> open(body.outputs.begin(), body.outputs.end());
  std::vector<bool> seen(body.steps.size(), false);
  while (!open.empty()) {
    const int value = open.back();
    open.pop_back();
    if (value == known || seen[static_cast<std::size_t>(value)]) continue;
    seen[static_cast<std::size_t>(value)] = true;
    if (value == input) return true;
    const ExprStep& step = body.steps[static_cast<std::size_t>(value)];
    open.insert(open.end(), step.operands.begin(), step.operands.end());
  }
  return false;
}

/// True if the values of the kept total can take the place of what is held: nothing reads it behind them.
bool keeps_over(const RowBody& body, const RowwiseProblem& p) {
  const int input = p.held - p.element_count - p.result_count;
  if (p.kept == kMaxTotals || uses_beside(body.elements, input, body.kept_step)) return false;
  return std::none_of(body.totals.begin() + p.kept + 1, body.totals.end(), [&](const ExprFunction& f) { return uses(f, input); });
}

/// Functions of a row's elements.
std::vector<const ExprFunction*> functions_along(const RowBody& body) {
  std::vector<const ExprFunction*> along;
  for (const ExprFunction& f : body.totals) along.push_back(&f);
  if (!body.elements.empty()) along.push_back(&body.elements);
  return along;
}
/// The operand that is worth holding; kNoneHeld if there is none.
std::uint8_t held_operand(const RowBody& body, std::span<const ExprFunction* const> along, const RowwiseProblem& p) {
  if (is_wide(body.accumulator)) return kNoneHeld;
  std::uint8_t best = kNoneHeld;
  std::ptrdiff_t most = 1;
  for (std::size_t i = 0; i < p.input_count; ++i) {
    const std::size_t k = p.element_count + p.result_count + i;
    if (!is_floating(p.dtypes[k]) || is_wide(p.dtypes[k]) || (p.splats >> k & 1)) continue;
    const std::ptrdiff_t times = std::count_if(along.begin(), along.end(), [&](const ExprFunction* f) { return uses(*f, static_cast<int>(i)); });
    if (times > most) most = times, best = static_cast<std::uint8_t>(k);
  }
  return best;
}

}  // namespace

void hold(const RowBody& body, std::int64_t m, RowwiseProblem* p) {
  // Loops over what an item holds are unrolled, so programs are as many times as long.
  constexpr std::size_t kMostInstructions = 128, kMostUnrolled = 4096;
  const std::vector<const ExprFunction*> along = functions_along(body);
  std::size_t all = 0;
  for (const ExprFunction* f : along) all += instructions(*f);
  if (all > kMostInstructions) return;
  p->held = held_operand(body, along, *p);
  if (p->held == kNoneHeld) return;
  if (keeps_over(body, *p)) p->held_kept = p->kept;
  const std::int64_t eights = std::max<std::int64_t>(1, (m + 7) / 8);
  if (m <= ROWWISE_ITEM_ELEMENTS && all * 8 * static_cast<std::size_t>(eights) <= kMostUnrolled) p->eights = static_cast<std::uint8_t>(eights);
}

RowLength length_of(std::int64_t m, std::uint64_t teams) {
  if (m < REDUCE_SHORT_TEAM) return RowLength::short_rows;
  if (m > kLongestOfGroup) return RowLength::long_rows;
  if (m > kLongestOfShared) return RowLength::chains;
  if (m <= REDUCE_SHORT_TEAM * REDUCE_FEW_HELD) return RowLength::few_held;
  return reduce_blocks(static_cast<std::uint64_t>(m)) <= teams ? RowLength::held : RowLength::fits;
}

std::string print_held(const RowwiseProblem& p) {
  std::string text, stores;
  const std::size_t outputs = p.element_count + std::size_t{p.result_count};
  for (std::size_t k = outputs; k < outputs + p.input_count; ++k)
    text += fmt::format("#define CLUTCH_LOAD_OF_{} {}\n", k, k == p.held ? "CLUTCH_LOAD_HELD" : "CLUTCH_LOAD_ROW");
  text += fmt::format("#define CLUTCH_HELD_ROW(LOAD) LOAD({}, {})\n", p.held, name(p.dtypes[p.held]));
  for (std::size_t k = 0; k < p.element_count; ++k) {
    if (!is_floating(p.dtypes[k]) || is_wide(p.dtypes[k])) return text;
    stores += fmt::format(" STORE({}, {})", k, name(p.dtypes[k]));
  }
  return text + fmt::format("#define CLUTCH_STORES_LATER(STORE){}\n", stores);
}

}}}  // namespace clutch::v0::detail
