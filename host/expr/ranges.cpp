// SPDX-License-Identifier: Apache-2.0
// OpenCL C that computes the ranges of a boolean function's steps from ranges of its inputs: whether a mask is constant in a whole block, without reading its
// elements.
#include "expr/node.hpp"

#include <fmt/format.h>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// Statements for one step: `a` is its lower and `z` its upper bound. Bounds of booleans are ints, because some drivers miscompile a comparison converted to
/// long. Empty if nothing is known of the step.
std::string range_text(const ExprBody& body, std::size_t k, const std::vector<bool>& known, const PrintNames& names) {
  const ExprStep& s = body.steps[k];
  auto index = [&](std::size_t i) { return static_cast<std::size_t>(s.operands[i]); };
  auto a = [&](std::size_t i) { return fmt::format("a{}", s.operands[i]); };
  auto z = [&](std::size_t i) { return fmt::format("z{}", s.operands[i]); };
  auto is = [&](std::string_view low, std::string_view high) {
    return fmt::format("{} a{} = {}, z{} = {};", s.dtype == DType::boolean ? "int" : "long", k, low, k, high);
  };
  bool all_known = true, of_booleans = s.dtype == DType::boolean;
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    all_known = all_known && known[index(i)];
    of_booleans = of_booleans && body.steps[index(i)].dtype == DType::boolean;
  }
  // An unknown boolean may be false or true.
  if (s.dtype != DType::boolean && s.dtype != DType::i32) return "";
  if (!all_known) return s.dtype == DType::boolean ? is("0", "1") : "";
  switch (s.op) {
    case ExprOp::input: return is(fmt::format("RANGE_LOW({})", s.index), fmt::format("RANGE_HIGH({})", s.index));
    case ExprOp::constant: {
      const std::string n = fmt::format("{}L", static_cast<std::int64_t>(static_cast<std::int32_t>(s.bits)));
      return is(n, n);
    }
    case ExprOp::param: {
      const std::string p = fmt::format("{}{}", names.param, s.index), n = s.dtype == DType::boolean ? fmt::format("({} != 0)", p) : p;
      return is(n, n);
    }
    case ExprOp::add: return is(fmt::format("{} + {}", a(0), a(1)), fmt::format("{} + {}", z(0), z(1)));
    case ExprOp::sub: return is(fmt::format("{} - {}", a(0), z(1)), fmt::format("{} - {}", z(0), a(1)));
    case ExprOp::neg: return is(fmt::format("-{}", z(0)), fmt::format("-{}", a(0)));
    case ExprOp::abs: return is(fmt::format("max(max({}, -{}), 0L)", a(0), z(0)), fmt::format("max({}, -{})", z(0), a(0)));
    case ExprOp::mul:
      return is(fmt::format("min(min({0} * {2}, {0} * {3}), min({1} * {2}, {1} * {3}))", a(0), z(0), a(1), z(1)),
                fmt::format("max(max({0} * {2}, {0} * {3}), max({1} * {2}, {1} * {3}))", a(0), z(0), a(1), z(1)));
    case ExprOp::min:
    case ExprOp::max: return is(fmt::format("{}({}, {})", info(s.op).name, a(0), a(1)), fmt::format("{}({}, {})", info(s.op).name, z(0), z(1)));
    case ExprOp::lt: return is(fmt::format("{} < {}", z(0), a(1)), fmt::format("{} < {}", a(0), z(1)));
    case ExprOp::le: return is(fmt::format("{} <= {}", z(0), a(1)), fmt::format("{} <= {}", a(0), z(1)));
    case ExprOp::eq:
      return is(fmt::format("{0} == {1} && {2} == {3} && {0} == {2}", a(0), z(0), a(1), z(1)),
                fmt::format("!({1} < {2} || {3} < {0})", a(0), z(0), a(1), z(1)));
    case ExprOp::ne:
      return is(fmt::format("{1} < {2} || {3} < {0}", a(0), z(0), a(1), z(1)),
                fmt::format("!({0} == {1} && {2} == {3} && {0} == {2})", a(0), z(0), a(1), z(1)));
    case ExprOp::bit_and:
      if (of_booleans) return is(fmt::format("{} & {}", a(0), a(1)), fmt::format("{} & {}", z(0), z(1)));
      break;
    case ExprOp::bit_or:
      if (of_booleans) return is(fmt::format("{} | {}", a(0), a(1)), fmt::format("{} | {}", z(0), z(1)));
      break;
    case ExprOp::bit_not:
      if (of_booleans) return is(fmt::format("!{}", z(0)), fmt::format("!{}", a(0)));
      break;
    case ExprOp::select:
      return is(fmt::format("{0} ? {2} : {1} ? min({2}, {3}) : {3}", a(0), z(0), a(1), a(2)),
                fmt::format("{0} ? {2} : {1} ? max({2}, {3}) : {3}", a(0), z(0), z(1), z(2)));
    case ExprOp::gather: {
      // If only one element can be read, its value.
      if (s.dtype != DType::i32) break;
      std::string one = "1", place = "0L";
      for (std::size_t d = 0; d < s.operands.size(); ++d) {
        one += fmt::format(" && {} == {}", a(d), z(d));
        place += fmt::format(" + clutch_place_one({0}, {1}{2}_size{3}, {1}{2}_stride{3})", a(d), names.captured, s.index, d);
      }
      return is("INT_MIN", "INT_MAX") + fmt::format(" if ({}) a{} = z{} = load_{}({}{}, {});", one, k, k,
                                                    name(body.buffers[static_cast<std::size_t>(s.index)].dtype), names.captured, s.index, place);
    }
    default: break;
  }
  return s.dtype == DType::boolean ? is("0", "1") : "";
}

}  // namespace

std::string print_ranges(const ExprFunction& function, const PrintNames& names) {
  const ExprBody& body = *function.body();
  std::vector<bool> known;
  std::string text = "#define CLUTCH_RANGES(RANGE_LOW, RANGE_HIGH)";
  for (std::size_t k = 0; k < body.steps.size(); ++k) {
    const std::string statements = range_text(body, k, known, names);
    known.push_back(!statements.empty());
    if (statements.empty()) continue;
    text += fmt::format(" \\\n  {}", statements);
    // A range that overflows becomes the whole range of i32.
    if (body.steps[k].dtype == DType::i32) text += fmt::format(" if (a{0} < INT_MIN || z{0} > INT_MAX) a{0} = INT_MIN, z{0} = INT_MAX;", k);
  }
  const int output = body.outputs[0];
  return text + fmt::format(" \\\n  const int is_always = a{0}, is_ever = z{0};\n", output);
}

}}}  // namespace clutch::v0::detail
