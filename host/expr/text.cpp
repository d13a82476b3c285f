// SPDX-License-Identifier: Apache-2.0
// The text of traced functions, and functions parsed from text.
#include "expr/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <mutex>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

std::string constant_text(const ExprStep& s) {
  if (s.dtype == DType::boolean) return s.bits ? "true" : "false";
  if (s.dtype == DType::u64) return fmt::format("{}", s.bits);
  if (!is_floating(s.dtype)) return fmt::format("{}", s.dtype == DType::i32 ? static_cast<std::int32_t>(s.bits) : static_cast<std::int64_t>(s.bits));
  double value = constant_value(s.dtype, s.bits);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:a}", value);
}

/// The text in quotes, on one line.
std::string in_quotes(std::string_view text) {
  std::string made = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c == '\n' ? "\\n" : std::string(1, c);
  }
  return made + '"';
}

std::string step_text(const ExprStep& s) {
  std::string text;
  switch (s.op) {
    case ExprOp::constant: return fmt::format("{} {}", name(s.dtype), constant_text(s));
    case ExprOp::param:
    case ExprOp::position: return fmt::format("{} {}", info(s.op).name, s.index);
    case ExprOp::cast: text = fmt::format("cast {}", name(s.target)); break;
    case ExprOp::gather:
    case ExprOp::philox:
    case ExprOp::philox_wide: text = fmt::format("{} {}", info(s.op).name, s.index); break;
    case ExprOp::opencl: {
      const OpenclText& given = opencl_text(s.index);
      text = fmt::format("opencl {} {}", name(s.dtype), in_quotes(given.value));
      for (const std::string& d : given.derivatives) text += ' ' + in_quotes(d);
      break;
    }
    default: text = info(s.op).name;
  }
  for (int o : s.operands) text += fmt::format(" %{}", o);
  return text;
}

/// Bytes that are equal for equal functions; faster to make than the text.
std::string key_of(const ExprBody& body) {
  std::string key;
  key.reserve(64 + 32 * body.steps.size());
  auto put = [&](const auto& v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
  put(body.inputs.size()), put(body.params.size()), put(body.buffers.size()), put(body.outputs.size());
  for (DType d : body.inputs) put(d);
  for (DType d : body.params) put(d);
  for (const auto& b : body.buffers) put(b.dtype), put(b.rank);
  for (const ExprStep& s : body.steps) {
    put(s.op), put(s.dtype), put(s.target), put(s.index), put(s.bits), put(s.operands.size());
    for (int o : s.operands) put(o);
  }
  for (int o : body.outputs) put(o);
  return key;
}

std::string print_text(const ExprBody& body) {
  std::string text = "inputs";
  for (DType d : body.inputs) text += fmt::format(" {}", name(d));
  text += '\n';
  if (!body.params.empty()) {
    text += "params";
    for (DType d : body.params) text += fmt::format(" {}", name(d));
    text += '\n';
  }
  if (!body.buffers.empty()) {
    text += "buffers";
    for (const auto& b : body.buffers) text += fmt::format(" {}/{}", name(b.dtype), b.rank);
    text += '\n';
  }
  for (std::size_t i = body.inputs.size(); i < body.steps.size(); ++i) text += fmt::format("%{} = {}\n", i, step_text(body.steps[i]));
  text += "outputs";
  for (int o : body.outputs) text += fmt::format(" %{}", o);
  text += '\n';
  return text;
}

}  // namespace

namespace {

double operations_of(const ExprBody& body) {
  double count = 0;
  for (const ExprStep& step : body.steps) {
    const char kind = kExprOps[static_cast<std::size_t>(step.op)].kind;
    const bool computes = kind == 'A' || kind == 'F' || kind == 'R' || step.op == ExprOp::opencl;
    if (computes && is_floating(step.dtype)) count += step.op == ExprOp::fma ? 2 : 1;
  }
  return count;
}

}  // namespace

void finish(ExprBody& body) {
  struct Known {
    std::string text;
    std::uint64_t id;
  };
  static std::mutex mutex;
  static auto* all = new std::unordered_map<std::string, Known>;
  std::string key = key_of(body);
  std::lock_guard lock(mutex);
  auto found = all->find(key);
  if (found == all->end()) found = all->try_emplace(std::move(key), Known{print_text(body), all->size() + 1}).first;
  body.text = &found->second.text;
  body.id = found->second.id;
  body.operations = operations_of(body);
}

std::vector<int> generator_states(const ExprBody& body) {
  std::vector<int> states;
  for (const ExprStep& s : body.steps) {
    if (!is_random(s.op)) continue;
    const ExprStep& offset = body.steps[static_cast<std::size_t>(s.operands[2])];
    if (offset.op == ExprOp::gather && std::find(states.begin(), states.end(), offset.index) == states.end()) states.push_back(offset.index);
  }
  return states;
}

bool draws_numbers(const ExprBody& body) {
  return std::any_of(body.steps.begin(), body.steps.end(), [](const ExprStep& s) { return is_random(s.op); });
}

namespace {
struct OpenclTexts {
  std::mutex mutex;
  std::map<std::pair<std::string, std::vector<std::string>>, int> numbers;
  std::deque<OpenclText> all;
};
OpenclTexts& opencl_texts() {
  static auto* texts = new OpenclTexts;
  return *texts;
}
}  // namespace

int text_number(const OpenclText& text) {
  OpenclTexts& t = opencl_texts();
  std::lock_guard lock(t.mutex);
  auto [at, made] = t.numbers.try_emplace({text.value, text.derivatives}, static_cast<int>(t.all.size()));
  if (made) t.all.push_back(text);
  return at->second;
}
const OpenclText& opencl_text(int number) {
  OpenclTexts& t = opencl_texts();
  std::lock_guard lock(t.mutex);
  return t.all[static_cast<std::size_t>(number)];
}

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::shared_ptr<const ExprBody> parse() {
    std::vector<DType> inputs;
    if (!next_line() || words_.empty() || words_[0] != "inputs") fail("the text begins with \"inputs\"");
    for (std::size_t i = 1; i < words_.size(); ++i) inputs.push_back(value_dtype(words_[i]));
    if (inputs.size() > kMaxExprNodes) fail("too many inputs");
    ExprBuilder builder(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) numbers_.push_back(static_cast<int>(i));
    while (next_line()) {
      if (words_.empty()) continue;
      if (words_[0] == "params") {
        for (std::size_t i = 1; i < words_.size(); ++i) params_.push_back(builder.blank_param(param_dtypes_.emplace_back(value_dtype(words_[i]))));
      } else if (words_[0] == "buffers") {
        for (std::size_t i = 1; i < words_.size(); ++i) add_buffer(builder, words_[i]);
      } else if (words_[0] == "outputs") {
        std::vector<int> outputs;
        for (std::size_t i = 1; i < words_.size(); ++i) outputs.push_back(operand(words_[i]));
        if (outputs.empty()) fail("no outputs");
        while (next_line())
          if (!words_.empty()) fail("text behind the outputs");
        return builder.finish(outputs);
      } else {
        if (numbers_.size() >= kMaxExprNodes) fail(fmt::format("more than {} operations", kMaxExprNodes));
        if (words_.size() < 3 || words_[0] != fmt::format("%{}", numbers_.size()) || words_[1] != "=")
          fail(fmt::format("\"%{} = ...\" is expected", numbers_.size()));
        numbers_.push_back(builder.add(step(builder)));
      }
    }
    fail("the text ends without \"outputs\"");
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw Error(ErrorCode::invalid_argument, "ExprFunction::parse", fmt::format("the text must be what to_text() writes, got line {}: {}", line_, why));
  }

  bool next_line() {
    if (rest_.empty()) return false;
    auto end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    ++line_;
    words_.clear();
    while (!line.empty()) {
      auto begin = line.find_first_not_of(' ');
      if (begin == std::string_view::npos) break;
      auto stop = line[begin] == '"' ? end_of_quote(line, begin) : line.find(' ', begin);
      words_.push_back(line.substr(begin, stop == std::string_view::npos ? stop : stop - begin));
      line = stop == std::string_view::npos ? std::string_view() : line.substr(stop);
    }
    return true;
  }

  /// Index after the quotation mark that ends the quote at `begin`.
  std::size_t end_of_quote(std::string_view line, std::size_t begin) const {
    for (std::size_t i = begin + 1; i < line.size(); ++i) {
      if (line[i] == '"') return i + 1;
      i += line[i] == '\\';
    }
    fail("a text has no end");
  }
  static std::string unquoted(std::string_view word) {
    std::string text;
    for (std::size_t i = 1; i + 1 < word.size(); ++i) {
      const bool escaped = word[i] == '\\';
      i += escaped;
      text += escaped && word[i] == 'n' ? '\n' : word[i];
    }
    return text;
  }

  template <class T>
  T integer(std::string_view word) const {
    T value{};
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) fail(fmt::format("'{}' is no integer in range", word));
    return value;
  }

  DType any_dtype(std::string_view word) const {
    for (int d = 0; d < kDTypeCount; ++d)
      if (name(static_cast<DType>(d)) == word) return static_cast<DType>(d);
    fail(fmt::format("'{}' is no dtype", word));
  }
  DType storage_dtype(std::string_view word) const {
    DType d = any_dtype(word);
    if (is_complex(d) || (is_floating(d) && bits(d) < 16)) fail(fmt::format("{} is no dtype to compute with", word));
    return d;
  }
  DType value_dtype(std::string_view word) const {
    DType d = storage_dtype(word);
    if (compute_dtype(d, "ExprFunction::parse") != d) fail(fmt::format("{} is no dtype of a traced value", word));
    return d;
  }

  int operand(std::string_view word) const {
    if (word.empty() || word[0] != '%') fail(fmt::format("'{}' is no operand", word));
    int number = integer<int>(word.substr(1));
    if (number < 0 || number >= static_cast<int>(numbers_.size())) fail(fmt::format("{} is not defined yet", word));
    return numbers_[static_cast<std::size_t>(number)];
  }

  void add_buffer(ExprBuilder& builder, std::string_view word) {
    auto slash = word.find('/');
    if (slash == std::string_view::npos) fail(fmt::format("'{}' is no dtype/rank", word));
    int rank = integer<int>(word.substr(slash + 1));
    if (rank < 0 || rank > kMaxRank) fail(fmt::format("rank {}", rank));
    shapes_.push_back({storage_dtype(word.substr(0, slash)), rank});
    buffers_.push_back(builder.blank_buffer(shapes_.back()));
  }

  ExprStep constant(DType dtype, std::string_view word) const {
    ExprStep s{.op = ExprOp::constant, .dtype = dtype};
    if (dtype == DType::boolean) {
      if (word != "true" && word != "false") fail(fmt::format("'{}' is no boolean", word));
      s.bits = word == "true";
    } else if (dtype == DType::i32) {
      s.bits = constant_bits(dtype, std::int64_t{integer<std::int32_t>(word)});
    } else if (dtype == DType::i64) {
      s.bits = constant_bits(dtype, integer<std::int64_t>(word));
    } else if (dtype == DType::u64) {
      s.bits = integer<std::uint64_t>(word);
    } else {
      s.bits = constant_bits(dtype, floating(word));
      double back = constant_value(dtype, s.bits);
      if (!std::isnan(back) && back != floating(word)) fail(fmt::format("'{}' is not exact in {}", word, name(dtype)));
    }
    return s;
  }

  double floating(std::string_view word) const {
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (word == "inf") return std::numeric_limits<double>::infinity();
    if (word == "-inf") return -std::numeric_limits<double>::infinity();
    bool minus = word.starts_with('-');
    std::string_view digits = word.substr(minus);
    bool hex = digits.starts_with("0x");
    if (hex) digits.remove_prefix(2);
    double value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? std::chars_format::hex : std::chars_format::general);
    if (digits.empty() || digits[0] == '-' || error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
      fail(fmt::format("'{}' is no number", word));
    return minus ? -value : value;
  }

  void expect(std::size_t words) const {
    if (words_.size() != words) fail(fmt::format("{} words are expected", words));
  }

  ExprStep step(const ExprBuilder& builder) const {
    std::string_view what = words_[2];
    if (what == "param") {
      expect(4);
      int index = integer<int>(words_[3]);
      if (index < 0 || index >= static_cast<int>(params_.size())) fail(fmt::format("param {} is not declared", index));
      return {.op = ExprOp::param, .dtype = param_dtypes_[static_cast<std::size_t>(index)], .index = params_[static_cast<std::size_t>(index)]};
    }
    if (what == "position") {
      expect(4);
      int dim = integer<int>(words_[3]);
      if (dim < -kMaxRank || dim > kPlace) fail(fmt::format("dimension {}", dim));
      return {.op = ExprOp::position, .dtype = DType::i64, .index = dim};
    }
    for (int d = 0; d < kDTypeCount; ++d)
      if (name(static_cast<DType>(d)) == what) {
        expect(4);
        return constant(value_dtype(what), words_[3]);
      }
    for (std::size_t k = 0; k < std::size(kExprOps); ++k) {
      auto op = static_cast<ExprOp>(k);
      if (info(op).name != what || op == ExprOp::constant || op == ExprOp::input) continue;
      return op == ExprOp::opencl ? opencl() : operation(builder, op);
    }
    fail(fmt::format("'{}' is no operation", what));
  }

  ExprStep opencl() const {
    if (words_.size() < 5 || words_[4][0] != '"') fail("opencl has a dtype and a text");
    ExprStep s{.op = ExprOp::opencl, .dtype = value_dtype(words_[3])};
    OpenclText text{.value = unquoted(words_[4])};
    std::size_t i = 5;
    for (; i < words_.size() && words_[i][0] == '"'; ++i) text.derivatives.push_back(unquoted(words_[i]));
    for (; i < words_.size(); ++i) s.operands.push_back(operand(words_[i]));
    if (text.value.empty()) fail("opencl without an expression");
    if (!text.derivatives.empty() && text.derivatives.size() != s.operands.size()) fail("opencl has a derivative for each operand, or none");
    s.index = text_number(text);
    return s;
  }

  ExprStep operation(const ExprBuilder& builder, ExprOp op) const {
    ExprStep s{.op = op};
    std::size_t first = op == ExprOp::cast || op == ExprOp::gather || is_random(op) ? 4 : 3;
    int count = info(op).operands;
    if (words_.size() < first) fail("too few words");
    if (op == ExprOp::gather) {
      s.index = integer<int>(words_[3]);
      if (s.index < 0 || s.index >= static_cast<int>(buffers_.size())) fail(fmt::format("buffer {} is not declared", s.index));
      count = shapes_[static_cast<std::size_t>(s.index)].rank;
    }
    expect(first + static_cast<std::size_t>(count));
    std::vector<DType> dtypes;
    for (std::size_t i = first; i < words_.size(); ++i) dtypes.push_back(builder.step(s.operands.emplace_back(operand(words_[i]))).dtype);
    auto all = [&](auto&& good, std::string_view what) {
      for (DType d : dtypes)
        if (d != dtypes[0] || !good(d)) fail(fmt::format("{} takes {}", info(op).name, what));
    };
    switch (info(op).kind) {
      case 'A': all([](DType d) { return d != DType::boolean; }, "numbers of one dtype"); break;
      case 'F':
      case 'R': all([](DType d) { return is_floating(d); }, "floats of one dtype"); break;
      case 'I': all([](DType d) { return is_integral(d); }, "integers of one dtype"); break;
      case 'B': all([](DType d) { return !is_floating(d); }, "integers or booleans of one dtype"); break;
      case 'C': all([](DType d) { return d != DType::boolean; }, "numbers of one dtype"); break;
      default: break;
    }
    if (op == ExprOp::select && (dtypes[0] != DType::boolean || dtypes[1] != dtypes[2])) fail("select takes a boolean and two values of one dtype");
    if (op == ExprOp::gather) {
      all([](DType d) { return d == DType::i64; }, "indices of dtype i64");
      s.dtype = compute_dtype(shapes_[static_cast<std::size_t>(s.index)].dtype, "ExprFunction::parse");
      s.index = buffers_[static_cast<std::size_t>(s.index)];
    } else if (is_random(op)) {
      all([](DType d) { return d == DType::i64; }, "a place, a seed and an offset of dtype i64");
      s.index = integer<int>(words_[3]);
      if (s.index < 0 || s.index >= kMaxExprNodes) fail(fmt::format("draw {}", s.index));
      s.dtype = op == ExprOp::philox ? DType::i32 : DType::i64;
    } else if (op == ExprOp::cast) {
      s.target = storage_dtype(words_[3]);
      s.dtype = compute_dtype(s.target, "ExprFunction::parse");
    } else {
      s.dtype = info(op).kind == 'C' ? DType::boolean : op == ExprOp::select ? dtypes[1] : dtypes[0];
    }
    return s;
  }

  std::string_view rest_;
  int line_ = 0;
  std::vector<std::string_view> words_;
  std::vector<int> numbers_;  // steps by their numbers in the text
  std::vector<int> params_, buffers_;
  std::vector<DType> param_dtypes_;
  std::vector<ExprBody::Buffer> shapes_;
};

}  // namespace
}  // namespace detail

ExprFunction ExprFunction::parse(std::string_view text) { return ExprFunction(detail::Parser(text).parse()); }

}}  // namespace clutch::v0
