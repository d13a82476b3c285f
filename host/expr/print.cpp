// SPDX-License-Identifier: Apache-2.0
// Prints traced functions as OpenCL C, in terms of kernels/common/expr.clh.
#include "expr/node.hpp"
#include "expr/side_by_side.hpp"

#include <fmt/format.h>

#include <cmath>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

std::string_view lane_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return "VD";
    case DType::f32: return "VF";
    case DType::i64:
    case DType::u64: return "VL";  // of u64 the bits
    default: return "VI";
  }
}
std::string_view scalar_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return "double";
    case DType::f32: return "float";
    case DType::i64:
    case DType::u64: return "long";
    default: return "int";
  }
}

std::string constant_text(DType dtype, std::uint64_t bits) {
  if (dtype == DType::boolean) return bits ? "(VI)CLUTCH_TRUE" : "(VI)CLUTCH_FALSE";
  if (!is_floating(dtype)) {
    std::int64_t n = dtype == DType::i32 ? static_cast<std::int32_t>(bits) : static_cast<std::int64_t>(bits);
    std::int64_t least = dtype == DType::i32 ? INT32_MIN : INT64_MIN;
    std::string_view suffix = is_wide(dtype) ? "L" : "";
    return n == least ? fmt::format("({})({}{} - 1)", lane_type(dtype), n + 1, suffix) : fmt::format("({}){}{}", lane_type(dtype), n, suffix);
  }
  double value = constant_value(dtype, bits);
  if (std::isnan(value)) return fmt::format("CLUTCH_NAN_{}", lane_type(dtype));
  if (std::isinf(value)) return fmt::format("{}CLUTCH_INF_{}", value < 0 ? "-" : "", lane_type(dtype));
  return fmt::format("({}){:a}{}", lane_type(dtype), value, dtype == DType::f32 ? "f" : "");
}

std::string rounded(std::string_view value, DType to) {
  if (to == DType::f16) return fmt::format("clutch_round_f16({})", value);
  if (to == DType::bf16) return fmt::format("clutch_round_bf16({})", value);
  return std::string(value);
}

std::string cast_of_int(DType from, std::string_view v, DType to) {
  bool wide = is_wide(from);
  std::string_view letter = from == DType::u64 ? "UL" : wide ? "L" : "I";
  std::string narrow = wide ? fmt::format("CLUTCH_L_TO_VI({})", v) : std::string(v);
  switch (to) {
    case DType::i8: return fmt::format("(({} << 24) >> 24)", narrow);
    case DType::u8: return fmt::format("({} & 255)", narrow);
    case DType::i16: return fmt::format("(({} << 16) >> 16)", narrow);
    case DType::u16: return fmt::format("({} & 65535)", narrow);
    case DType::i32: return narrow;
    case DType::i64:
    case DType::u64: return wide ? std::string(v) : fmt::format("CLUTCH_TO_VL({})", v);
    case DType::u32: return fmt::format("({} & 0xFFFFFFFFL)", wide ? std::string(v) : fmt::format("CLUTCH_TO_VL({})", v));
    case DType::f64: return fmt::format("CLUTCH_{}_TO_VD({})", letter, v);
    default: return rounded(fmt::format("CLUTCH_{}_TO_VF({})", letter, v), to);
  }
}

std::string cast_of_float(DType from, std::string_view v, DType to) {
  bool wide = from == DType::f64;
  auto to_int = [&](std::string_view low, std::string_view high) {
    return wide ? fmt::format("clutch_int_of_f64({}, {}, {})", v, low, high) : fmt::format("clutch_int_of_f32({}, {}f, {}f)", v, low, high);
  };
  switch (to) {
    case DType::i8: return to_int("-128.0", "127.0");
    case DType::u8: return to_int("0.0", "255.0");
    case DType::i16: return to_int("-32768.0", "32767.0");
    case DType::i32: return wide ? to_int("-2147483648.0", "2147483647.0") : fmt::format("clutch_i32_of_f32({})", v);
    case DType::u16: return to_int("0.0", "65535.0");
    case DType::i64: return fmt::format("clutch_i64_of_{}({})", name(from), v);
    case DType::u32: return fmt::format("min(max(clutch_i64_of_{}({}), (VL)0), (VL)0xFFFFFFFFL)", name(from), v);
    case DType::u64: return fmt::format("clutch_u64_of_{}({})", name(from), v);
    case DType::f64: return wide ? std::string(v) : fmt::format("CLUTCH_F_TO_VD({})", v);
    default: return rounded(wide ? fmt::format("CLUTCH_D_TO_VF({})", v) : std::string(v), to);
  }
}

/// Text that converts a value of a compute dtype to a storage dtype, as a value of the latter's compute dtype.
std::string cast_text(DType from, std::string_view v, DType to) {
  if (to == DType::boolean) {
    if (from == DType::boolean) return std::string(v);
    return fmt::format("CLUTCH_BOOL_OF_{}({})", is_wide(from) ? 64 : 32, v);
  }
  if (from == DType::boolean) return cast_of_int(DType::i32, fmt::format("CLUTCH_INT_OF_BOOL({})", v), to);
  return is_floating(from) ? cast_of_float(from, v, to) : cast_of_int(from, v, to);
}

/// The same for values that are stored next, if the store itself rounds or wraps.
std::string stored_text(DType from, std::string_view v, DType to) {
  DType compute = compute_dtype(to, "map");
  if (compute == from) return std::string(v);
  if (is_floating(from) && !is_floating(compute)) return cast_text(from, v, to);
  return cast_text(from, v, compute);
}

std::string_view infix(ExprOp op) {
  switch (op) {
    case ExprOp::add: return "+";
    case ExprOp::sub: return "-";
    case ExprOp::mul: return "*";
    case ExprOp::bit_and: return "&";
    case ExprOp::bit_or: return "|";
    case ExprOp::bit_xor: return "^";
    case ExprOp::lt: return "<";
    case ExprOp::le: return "<=";
    case ExprOp::eq: return "==";
    default: return "!=";
  }
}

std::string float_text(ExprOp op, DType dtype, std::span<const std::string> v) {
  std::string_view suffix = name(dtype);
  bool f32 = dtype == DType::f32;
  switch (op) {
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::mul: return fmt::format("{} {} {}", v[0], infix(op), v[1]);
    case ExprOp::neg: return fmt::format("-{}", v[0]);
    case ExprOp::min:
    case ExprOp::max: return fmt::format("clutch_{}_{}({}, {})", info(op).name, suffix, v[0], v[1]);
    case ExprOp::div: return f32 ? fmt::format("div_rn({}, {})", v[0], v[1]) : fmt::format("{} / {}", v[0], v[1]);
    case ExprOp::fma: return fmt::format("{}({}, {}, {})", f32 ? "fma_rn" : "fma", v[0], v[1], v[2]);
    case ExprOp::sqrt: return fmt::format("{}({})", f32 ? "sqrt_rn" : "sqrt", v[0]);
    case ExprOp::floor:
    case ExprOp::ceil:
    case ExprOp::trunc: return fmt::format("{}({})", info(op).name, v[0]);
    case ExprOp::round: return fmt::format("rint({})", v[0]);
    case ExprOp::pow: return fmt::format("pow_{}({}, {})", suffix, v[0], v[1]);
    default: return fmt::format("{}_{}({})", info(op).name, suffix, v[0]);
  }
}

std::string as_unsigned(std::string_view v) { return fmt::format("CLUTCH_AS_VUL({})", v); }

std::string integer_text(ExprOp op, DType dtype, std::span<const std::string> v) {
  int width = is_wide(dtype) ? 64 : 32;
  std::string_view type = lane_type(dtype);
  auto wrap = [&](std::string_view a, std::string_view sign, std::string_view b) { return fmt::format("CLUTCH_WRAP_{}({}, {}, {})", width, a, sign, b); };
  std::string zero = fmt::format("({})0", type);
  switch (op) {
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::mul: return wrap(v[0], infix(op), v[1]);
    case ExprOp::neg: return wrap(zero, "-", v[0]);
    case ExprOp::abs:
      if (dtype == DType::u64) return v[0];
      return fmt::format("({0} < {1} ? {2} : {0})", v[0], zero, wrap(zero, "-", v[0]));
    case ExprOp::min:
    case ExprOp::max:
      if (dtype == DType::u64) return fmt::format("CLUTCH_AS_VL({}({}, {}))", info(op).name, as_unsigned(v[0]), as_unsigned(v[1]));
      return fmt::format("{}({}, {})", info(op).name, v[0], v[1]);
    case ExprOp::shift_left: return fmt::format("CLUTCH_SHL_{}({}, {})", width, v[0], v[1]);
    case ExprOp::shift_right: return fmt::format("CLUTCH_SHR_{}({}, {})", dtype == DType::u64 ? "U64" : width == 64 ? "64" : "32", v[0], v[1]);
    case ExprOp::bit_not: return fmt::format("~{}", v[0]);
    case ExprOp::bit_and:
    case ExprOp::bit_or:
    case ExprOp::bit_xor: return fmt::format("{} {} {}", v[0], infix(op), v[1]);
    default: return fmt::format("clutch_{}_{}({}, {})", info(op).name, name(dtype), v[0], v[1]);
  }
}

std::string operation_text(const ExprStep& s, DType operand, std::span<const std::string> v) {
  if (info(s.op).kind == 'C') {
    const bool is_unsigned = operand == DType::u64;
    std::string compared = fmt::format("({} {} {})", is_unsigned ? as_unsigned(v[0]) : v[0], infix(s.op), is_unsigned ? as_unsigned(v[1]) : v[1]);
    return is_wide(operand) ? fmt::format("CLUTCH_NARROW_MASK{}", compared) : compared;
  }
  if (s.op == ExprOp::select) {
    std::string condition = is_wide(s.dtype) ? fmt::format("CLUTCH_WIDE_MASK({})", v[0]) : v[0];
    return fmt::format("{} ? {} : {}", condition, v[1], v[2]);
  }
  if (s.op == ExprOp::cast) return cast_text(operand, v[0], s.target);
  if (operand == DType::boolean) return s.op == ExprOp::bit_not ? fmt::format("CLUTCH_NOT({})", v[0]) : fmt::format("{} {} {}", v[0], infix(s.op), v[1]);
  return is_floating(operand) ? float_text(s.op, operand, v) : integer_text(s.op, operand, v);
}

/// How the value of each step differs between lanes.
std::vector<LaneKind> lane_kinds(const ExprBody& body, std::span<const LaneKind> inputs, std::span<const LaneKind> positions) {
  std::vector<LaneKind> kinds;
  std::size_t position = 0;
  for (const ExprStep& s : body.steps) {
    auto of = [&](std::size_t i) { return kinds[static_cast<std::size_t>(s.operands[i])]; };
    bool same = s.op != ExprOp::position;
    for (std::size_t i = 0; i < s.operands.size(); ++i) same = same && of(i) == LaneKind::same;
    LaneKind kind = same ? LaneKind::same : LaneKind::any;
    if (s.op == ExprOp::input) kind = inputs.empty() ? LaneKind::any : inputs[static_cast<std::size_t>(s.index)];
    if (s.op == ExprOp::position && !positions.empty()) kind = positions[position++];
    const bool whole = s.dtype == DType::i32 || s.dtype == DType::i64, sums = s.op == ExprOp::add || s.op == ExprOp::sub;
    if (kind == LaneKind::any && whole && (sums || s.op == ExprOp::neg || (s.op == ExprOp::cast && s.target == s.dtype))) {
      bool known = true;
      int step = 0;  // difference from one lane to the next
      for (std::size_t i = 0; i < s.operands.size(); ++i) {
        const int own = of(i) == LaneKind::consecutive ? 1 : of(i) == LaneKind::descending ? -1 : 0;
        known = known && of(i) != LaneKind::any, step += s.op == ExprOp::neg || (s.op == ExprOp::sub && i == 1) ? -own : own;
      }
      if (known) kind = step == 0 ? LaneKind::same : step == 1 ? LaneKind::consecutive : step == -1 ? LaneKind::descending : LaneKind::any;
    }
    kinds.push_back(kind);
  }
  return kinds;
}

/// Text of the first lane's value of an integer step that is not `any`; computed by scalars if possible.
std::string first_lane_text(const ExprBody& body, std::size_t k, std::size_t first_input, const PrintNames& names) {
  const ExprStep& s = body.steps[k];
  auto u = [&](std::size_t i) { return fmt::format("u{}", s.operands[i]); };
  const bool wide = is_wide(s.dtype);
  auto wrap = [&](std::string_view a, std::string_view sign, std::string_view b) {
    return fmt::format("({0})((u{0}){1} {2} (u{0}){3})", scalar_type(s.dtype), a, sign, b);
  };
  switch (s.op) {
    case ExprOp::input: return fmt::format("CLUTCH_LOAD_FIRST({})", first_input + static_cast<std::size_t>(s.index));
    case ExprOp::constant: {
      auto n = wide ? static_cast<std::int64_t>(s.bits) : static_cast<std::int32_t>(s.bits);
      if (n == INT64_MIN) break;
      return fmt::format("({}){}L", scalar_type(s.dtype), n);
    }
    case ExprOp::param: return fmt::format("{}{}", names.param, s.index);
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::mul: return wrap(u(0), infix(s.op), u(1));
    case ExprOp::neg: return wrap("0", "-", u(0));
    case ExprOp::min:
    case ExprOp::max:
      if (s.dtype == DType::u64) break;
      return fmt::format("{}({}, {})", info(s.op).name, u(0), u(1));
    case ExprOp::cast:
      if (DType from = body.steps[static_cast<std::size_t>(s.operands[0])].dtype;
          (from == DType::i32 || from == DType::i64) && (s.target == DType::i32 || s.target == DType::i64))
        return fmt::format("({}){}", scalar_type(s.dtype), u(0));
      break;
    default: break;
  }
  return fmt::format("CLUTCH_FIRST_LANE(v{})", k);
}

/// Macros of a kernel's parameters: for the kernel, for functions that it calls, and for the calls.
struct ParameterMacros {
  std::string kernel, function, arguments, names;
  void add(std::string_view in_kernel, std::string_view in_function, std::string_view argument, std::string_view name) {
    kernel += fmt::format(", {}", in_kernel);
    function += fmt::format(", {}", in_function);
    arguments += fmt::format(", {}", argument);
    names += fmt::format(", {}", name);
  }
  void add(std::string_view declared, std::string_view name) { add(declared, declared, name, name); }
  void add_buffer(char letter, std::size_t i, bool written) {
    std::string pointer = fmt::format("__global {}uchar* {}{}", written ? "" : "const ", letter, i), offset = fmt::format("{}{}_offset", letter, i);
    std::string base = fmt::format("{}{}", letter, i);
    add(fmt::format("{}, ulong {}", pointer, offset), pointer, fmt::format("{} + {}", base, offset), base);
  }
  std::string text(std::string_view what) const {
    return fmt::format("#define CLUTCH_{0}_KERNEL_PARAMS {1}\n#define CLUTCH_{0}_PARAMS {2}\n#define CLUTCH_{0}_ARGUMENTS {3}\n#define CLUTCH_{0}_NAMES {4}\n",
                       what, kernel, function, arguments, names);
  }
};

/// Macros for params and captured tensors.
ParameterMacros extra_macros(const ExprBody& body, const PrintNames& names) {
  ParameterMacros extra;
  for (std::size_t i = 0; i < body.params.size(); ++i)
    extra.add(fmt::format("{} {}{}", scalar_type(body.params[i]), names.param, i), fmt::format("{}{}", names.param, i));
  for (std::size_t i = 0; i < body.buffers.size(); ++i) {
    extra.add_buffer(names.captured, i, false);
    for (int d = 0; d < body.buffers[i].rank; ++d)
      extra.add(fmt::format("long {0}{1}_size{2}, long {0}{1}_stride{2}", names.captured, i, d),
                fmt::format("{0}{1}_size{2}, {0}{1}_stride{2}", names.captured, i, d));
  }
  return extra;
}

/// Instructions of an operation, about.
int length_of(const ExprStep& s) {
  switch (s.op) {
    case ExprOp::constant:
    case ExprOp::param:
    case ExprOp::input: return 0;
    case ExprOp::min:
    case ExprOp::max: return 3;
    case ExprOp::cast: return s.target == DType::f16 || s.target == DType::bf16 ? 12 : 2;
    case ExprOp::exp:
    case ExprOp::exp2: return 18;
    case ExprOp::expm1:
    case ExprOp::log:
    case ExprOp::log2:
    case ExprOp::log1p: return 30;
    case ExprOp::tanh:
    case ExprOp::sigmoid:
    case ExprOp::erf: return 42;
    case ExprOp::sin:
    case ExprOp::cos: return 60;
    case ExprOp::pow: return 120;
    default: return info(s.op).kind == 'I' ? 8 : 1;
  }
}
bool is_fixed(const ExprStep& s) { return s.op == ExprOp::constant || s.op == ExprOp::param; }

/// Steps that the outputs need, without those behind a known one.
std::vector<bool> used_steps(const ExprBody& body, int known_step) {
  std::vector<bool> used(body.steps.size(), false);
  for (int o : body.outputs) used[static_cast<std::size_t>(o)] = true;
  for (std::size_t k = body.steps.size(); k-- > 0;)
    if (used[k] && static_cast<int>(k) != known_step)
      for (int o : body.steps[k].operands) used[static_cast<std::size_t>(o)] = true;
  return used;
}

}  // namespace

int sides_of(const ExprFunction& function, int known_step) {
  // Shorter functions of several vectors fit into what a core looks ahead by. More of longer ones would take compilers too long.
  constexpr int kShortest = 40, kLongest = 2048, kRegisters = 24;
  const ExprBody& body = *function.body();
  if (!body.buffers.empty() || draws_numbers(body)) return 1;
  const std::vector<bool> used = used_steps(body, known_step);
  std::vector<int> last(body.steps.size(), -1);  // the last step that reads each one; outputs are stored at the end
  int length = 0;
  for (std::size_t k = 0; k < body.steps.size(); ++k) {
    if (!used[k] || static_cast<int>(k) == known_step) continue;
    length += length_of(body.steps[k]);
    for (int o : body.steps[k].operands) last[static_cast<std::size_t>(o)] = static_cast<int>(k);
  }
  for (int o : body.outputs) last[static_cast<std::size_t>(o)] = static_cast<int>(body.steps.size());
  if (length < kShortest) return 1;
  int most = 1, live = 0;
  std::vector<int> ends(body.steps.size() + 1, 0);
  for (std::size_t k = 0; k < body.steps.size(); ++k) {
    live -= ends[k];
    if (!used[k] || is_fixed(body.steps[k]) || last[k] < 0) continue;
    ++live, ++ends[static_cast<std::size_t>(last[k])];
    most = std::max(most, live);
  }
  for (int sides : {8, 4, 2})
    if (sides * most <= kRegisters && sides * length <= kLongest) return sides;
  return 1;
}

std::string print_fetches(std::size_t first, std::span<const DType> dtypes) {
  std::string text = "#define CLUTCH_FETCH_INPUTS(FETCH)";
  for (std::size_t k = 0; k < dtypes.size(); ++k) text += fmt::format(" FETCH({}, {})", first + k, bits(dtypes[k]) / 8);
  return text + "\n";
}

std::string print_operands(std::size_t outputs, std::size_t inputs, std::size_t positions, std::size_t captured) {
  ParameterMacros buffers;
  std::string strides, stride_names, spread, reduced, reduced_spread, shift, written = "0", all = "0";
  for (std::size_t k = 0; k < outputs + inputs; ++k) buffers.add_buffer('b', k, k < outputs);
  for (std::size_t k = 0; k < outputs + inputs + positions; ++k) {
    strides += fmt::format(", CLUTCH_SHAPE_VECTOR s{}", k);
    stride_names += fmt::format(", s{}", k);
    spread += fmt::format(" CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(s{0}, 0, f[{0}]);", k);
  }
  for (std::size_t k = 0; k < outputs; ++k) written += fmt::format(" | (ulong)b{}", k);
  for (std::size_t k = 0; k < outputs + inputs; ++k) all += fmt::format(" | (ulong)b{}", k);
  for (std::size_t k = outputs; k < outputs + inputs + positions; ++k) {
    reduced += fmt::format(", CLUTCH_SHAPE_VECTOR r{}", k);
    reduced_spread += fmt::format(" CLUTCH_CONCAT(vstore, CLUTCH_RANK_LANES)(r{0}, 0, f[{0}]);", k);
  }
  for (std::size_t k = 0; k < outputs + inputs; ++k) shift += fmt::format(" b{0} += b{0}_offset;", k);
  for (std::size_t k = 0; k < captured; ++k) shift += fmt::format(" c{0} += c{0}_offset;", k);
  buffers.kernel.erase(0, 2);  // a kernel's first parameters, so that no comma comes before them
  return buffers.text("BUFFER") +
         fmt::format(
             "#define CLUTCH_STRIDE_PARAMS {}\n#define CLUTCH_STRIDE_NAMES {}\n#define CLUTCH_STRIDES(f){}\n#define CLUTCH_OUTPUT_ADDRESSES ({})\n"
             "#define CLUTCH_ADDRESSES ({})\n#define CLUTCH_REDUCED_PARAMS {}\n#define CLUTCH_REDUCED(f){}\n#define CLUTCH_SHIFT_BUFFERS{}\n",
             strides, stride_names, spread, written, all, reduced, reduced_spread, shift);
}

std::string print_table_operands(std::size_t outputs, std::span<const bool> spread) {
  std::string buffers, spreads, list, vectors = "0";
  for (std::size_t k = 0; k < spread.size(); ++k) {
    buffers += fmt::format(" __global {0}uchar* b{1} = table_at(table, (first) + {1});", k < outputs ? "" : "const ", k);
    spreads += fmt::format("#define CLUTCH_SPREAD_{} {}\n", k, spread[k] ? 1 : 0);
    list += fmt::format("{}{}", k == 0 ? "" : ", ", spread[k] ? 1 : 0);
    if (!spread[k]) vectors += fmt::format(" | (ulong)b{}", k);
  }
  return fmt::format("#define CLUTCH_TABLE_BUFFERS(table, first){}\n{}#define CLUTCH_SPREADS {{{}}}\n#define CLUTCH_LIST_ADDRESSES ({})\n", buffers, spreads,
                     list, vectors);
}

namespace {

/// `several`: for CLUTCH_SIDES vectors.
PrintedExpr print(const ExprFunction& function, std::span<const DType> output_dtypes, std::span<const DType> input_dtypes, const PrintNames& names,
                  bool several) {
  const ExprBody& body = *function.body();
  if (!names.random && draws_numbers(body))
    throw Error(ErrorCode::not_supported, "random_uniform", "random numbers must be drawn in map, got another op's function");
  const std::size_t outputs = output_dtypes.size(), inputs = input_dtypes.size();
  const std::size_t first_input = names.first_input == SIZE_MAX ? outputs : names.first_input;
  const std::size_t first_position = names.first_position == SIZE_MAX ? outputs + inputs : names.first_position;
  PrintedExpr printed;
  const std::vector<bool> used = used_steps(body, names.known_step);

  // Steps whose first lane is needed: indices of captured tensors, and their operands.
  const std::vector<LaneKind> kinds = names.lanes.empty() && names.position_lanes.empty() ? std::vector<LaneKind>(body.steps.size(), LaneKind::any)
                                                                                          : lane_kinds(body, names.lanes, names.position_lanes);
  std::vector<bool> first_wanted(body.steps.size(), false);
  // For reads at one place or at consecutive places, the number of indices that differ between lanes (0 or 1); else -1.
  auto near_reads = [&](const ExprStep& s) {
    int moving = 0;
    for (int o : s.operands) {
      const LaneKind kind = kinds[static_cast<std::size_t>(o)];
      if (kind == LaneKind::any) return -1;
      moving += kind != LaneKind::same;
    }
    return moving <= 1 ? moving : -1;
  };
  for (std::size_t k = body.steps.size(); k-- > 0;) {
    const ExprStep& s = body.steps[k];
    const bool reads_near = used[k] && s.op == ExprOp::gather && near_reads(s) >= 0;
    const bool by_scalars = first_wanted[k] && s.op != ExprOp::gather;
    if (reads_near || by_scalars)
      for (int o : s.operands)
        if (!is_floating(body.steps[static_cast<std::size_t>(o)].dtype) && body.steps[static_cast<std::size_t>(o)].dtype != DType::boolean)
          first_wanted[static_cast<std::size_t>(o)] = true;
  }

  std::string lines, functions, drawn;
  auto line = [&](std::string_view text) { lines += fmt::format(" \\\n  {}", text); };
  // A step's value. Constants and params are the same in all vectors.
  auto named = [&](int k) { return fmt::format("v{}{}", k, several && !is_fixed(body.steps[static_cast<std::size_t>(k)]) ? "[u]" : ""); };
  auto declare = [&](std::size_t k, std::string_view value) {
    const std::string_view type = lane_type(body.steps[k].dtype);
    if (several && !is_fixed(body.steps[k]))
      line(fmt::format("{0} v{1}[CLUTCH_SIDES]; CLUTCH_EACH_SIDE(v{1}[u] = {2};)", type, k, value));
    else
      line(fmt::format("{} v{} = {};", type, k, value));
  };
  for (std::size_t k = 0; k < body.steps.size(); ++k) {
    const ExprStep& s = body.steps[k];
    if (!used[k]) continue;
    if (static_cast<int>(k) == names.known_step) {
      declare(k, "CLUTCH_KNOWN_VALUE");
      continue;
    }
    std::string value;
    switch (s.op) {
      case ExprOp::input: {
        if (static_cast<std::size_t>(s.index) >= names.memory_inputs) {
          value = fmt::format("CLUTCH_TOTAL_VALUE_{}", static_cast<std::size_t>(s.index) - names.memory_inputs);
          break;
        }
        DType storage = input_dtypes[static_cast<std::size_t>(s.index)];
        DType loaded = compute_dtype(storage, "map");
        value = fmt::format("LOAD({}, {})", first_input + static_cast<std::size_t>(s.index), name(storage));
        if (loaded != s.dtype) value = cast_text(loaded, value, s.dtype);
        break;
      }
      case ExprOp::position: {
        value = fmt::format("POSITION({})", first_position + printed.positions.size());
        printed.positions.push_back(s.index);
        break;
      }
      case ExprOp::param:
        value = s.dtype == DType::boolean ? fmt::format("(VI)({}{} ? CLUTCH_TRUE : CLUTCH_FALSE)", names.param, s.index)
                                          : fmt::format("({}){}{}", lane_type(s.dtype), names.param, s.index);
        break;
      case ExprOp::constant: value = constant_text(s.dtype, s.bits); break;
      case ExprOp::gather: {
        if (const int moving = near_reads(s); moving >= 0) {
          std::string fixed = "0", near;
          std::string_view way = "splat";
          for (std::size_t d = 0; d < s.operands.size(); ++d) {
            const LaneKind kind = kinds[static_cast<std::size_t>(s.operands[d])];
            const std::string place = fmt::format("u{0}, {1}{2}_size{3}, {1}{2}_stride{3}", s.operands[d], names.captured, s.index, d);
            if (kind == LaneKind::same)
              fixed += fmt::format(" + clutch_place_one({})", place);
            else
              near = place, way = kind == LaneKind::consecutive ? "near" : "near_down";
          }
          value = fmt::format("{}_{}({}{}, {}{}{})", way, name(body.buffers[static_cast<std::size_t>(s.index)].dtype), names.captured, s.index, fixed,
                              moving == 0 ? "" : ", ", near);
          break;
        }
        std::string place = "(VL)0";
        for (std::size_t d = 0; d < s.operands.size(); ++d)
          place += fmt::format(" + clutch_place(v{0}, {1}{2}_size{3}, {1}{2}_stride{3})", s.operands[d], names.captured, s.index, d);
        value = fmt::format("at_{}({}{}, {})", name(body.buffers[static_cast<std::size_t>(s.index)].dtype), names.captured, s.index, place);
        break;
      }
      case ExprOp::philox:
      case ExprOp::philox_wide:
        value = fmt::format("CLUTCH_DRAW({}, {}, v{}, v{}, v{}, {}ul)", info(s.op).name, k, s.operands[0], s.operands[1], s.operands[2], s.index);
        drawn += fmt::format(" PhiloxNear near{0}; near{0}.full = 0;", k);
        break;
      case ExprOp::opencl: {
        std::string parameters, arguments;
        for (std::size_t i = 0; i < s.operands.size(); ++i) {
          const std::string_view comma = i == 0 ? "" : ", ";
          parameters += fmt::format("{}{} x{}", comma, lane_type(body.steps[static_cast<std::size_t>(s.operands[i])].dtype), i);
          arguments += fmt::format("{}{}", comma, named(s.operands[i]));
        }
        const std::string called = fmt::format("clutch_text_{}_{}", names.macro, k);
        functions += fmt::format("static inline {} {}({}) {{ return {}; }}\n", lane_type(s.dtype), called, parameters.empty() ? "void" : parameters,
                                 opencl_text(s.index).value);
        value = fmt::format("{}({})", called, arguments);
        break;
      }
      default: {
        std::vector<std::string> operands;
        for (int o : s.operands) operands.push_back(named(o));
        value = operation_text(s, body.steps[static_cast<std::size_t>(s.operands.back())].dtype, operands);
      }
    }
    declare(k, value);
    if (!first_wanted[k]) continue;
    const std::string first = s.op == ExprOp::position ? fmt::format("CLUTCH_FIRST_POSITION({})", first_position + printed.positions.size() - 1)
                                                       : first_lane_text(body, k, first_input, names);
    line(fmt::format("{} u{} = {};", scalar_type(s.dtype), k, first));
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    int o = body.outputs[i];
    const std::string store = fmt::format("STORE({}, {}, {});", names.first_output + i, name(output_dtypes[i]),
                                          stored_text(body.steps[static_cast<std::size_t>(o)].dtype, named(o), output_dtypes[i]));
    line(several ? fmt::format("CLUTCH_EACH_SIDE({})", store) : store);
  }
  if (several) {
    printed.text = fmt::format("#define CLUTCH_{}_SIDES(LOAD, POSITION, STORE){}\n", names.macro, lines);
    return printed;
  }
  printed.text = functions + extra_macros(body, names).text(names.extra) + fmt::format("#define CLUTCH_{}(LOAD, POSITION, STORE){}\n", names.macro, lines);
  if (names.random) printed.text += fmt::format("#define CLUTCH_NEAR_DRAWS{}\n", drawn);
  return printed;
}

}  // namespace

PrintedExpr print_opencl(const ExprFunction& function, std::span<const DType> output_dtypes, std::span<const DType> input_dtypes, const PrintNames& names) {
  return print(function, output_dtypes, input_dtypes, names, false);
}
std::string print_side_by_side(int sides, const ExprFunction& function, std::span<const DType> output_dtypes, std::span<const DType> input_dtypes,
                               const PrintNames& names) {
  std::string each = "#define CLUTCH_EACH_SIDE(statement)";
  for (int side = 0; side < sides; ++side) each += fmt::format(" CLUTCH_SIDE({}, statement)", side);
  return each + "\n" + print(function, output_dtypes, input_dtypes, names, true).text;
}

}}}  // namespace clutch::v0::detail
