// SPDX-License-Identifier: Apache-2.0
#include "translate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <vector>

namespace clutch_threads {
namespace {

/// A word, a number, a text in quotes, an operator, or white space with the line ends and directives in it.
struct Token {
  enum class Kind { name, number, quoted, sign, space } kind = Kind::space;
  std::string text;
};
using Tokens = std::vector<Token>;

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::size_t end_of_token(std::string_view text, std::size_t at, Token::Kind& kind) {
  const char c = text[at];
  std::size_t end = at + 1;
  if (std::isspace(static_cast<unsigned char>(c)) || c == '#') {
    kind = Token::Kind::space;
    // A directive is a line by itself.
    for (end = at; end < text.size();) {
      if (text[end] == '#')
        end = std::min(text.find('\n', end), text.size());
      else if (std::isspace(static_cast<unsigned char>(text[end])))
        ++end;
      else
        break;
    }
  } else if (std::isdigit(static_cast<unsigned char>(c)) || (c == '.' && end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])))) {
    kind = Token::Kind::number;
    // The sign of an exponent belongs to the number.
    const auto is_exponent = [&](char e) { return e == 'e' || e == 'E' || e == 'p' || e == 'P'; };
    const bool is_hex = c == '0' && end < text.size() && (text[end] == 'x' || text[end] == 'X');
    while (end < text.size() && (is_name_char(text[end]) || text[end] == '.' ||
                                 ((text[end] == '+' || text[end] == '-') && is_exponent(text[end - 1]) && !(is_hex && (text[end - 1] | 32) == 'e'))))
      ++end;
  } else if (is_name_char(c)) {
    kind = Token::Kind::name;
    while (end < text.size() && is_name_char(text[end])) ++end;
  } else if (c == '"' || c == '\'') {
    kind = Token::Kind::quoted;
    while (end < text.size() && text[end] != c) end += text[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, text.size());
  } else {
    kind = Token::Kind::sign;
    for (std::string_view sign :
         {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="})
      if (text.substr(at, sign.size()) == sign) {
        end = at + sign.size();
        break;
      }
  }
  return end;
}

Tokens split(std::string_view text) {
  Tokens tokens;
  for (std::size_t at = 0; at < text.size();) {
    Token token;
    const std::size_t end = end_of_token(text, at, token.kind);
    token.text = text.substr(at, end - at);
    tokens.push_back(std::move(token));
    at = end;
  }
  return tokens;
}

/// Of white space what C++ takes: line ends and #line. Pragmas are OpenCL's or one compiler's.
std::string spaces(const std::string& text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '#') {
      kept += text[at++];
      continue;
    }
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const std::size_t word = line.find_first_not_of("# \t");
    if (word != std::string_view::npos && (line.substr(word).starts_with("line") || std::isdigit(static_cast<unsigned char>(line[word])))) kept += line;
    at = end;
  }
  return kept;
}

const std::set<std::string, std::less<>>& reserved_by_cpp() {
  static const auto& all = *new std::set<std::string, std::less<>>{
      "and",       "bitand",   "bitor",    "catch",    "class",     "compl", "concept",  "consteval", "constexpr", "constinit", "decltype", "delete",
      "export",    "explicit", "friend",   "mutable",  "namespace", "new",   "noexcept", "not",       "nullptr",   "operator",  "or",       "private",
      "protected", "public",   "requires", "template", "this",      "throw", "try",      "typeid",    "typename",  "using",     "virtual",  "xor"};
  return all;
}

class Translator {
 public:
  explicit Translator(std::string_view text) : tokens_(split(text)) {
    for (const char* element : {"char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double"})
      for (const char* lanes : {"2", "4", "8", "16"}) vectors_.insert(std::string(element) + lanes);
    match_brackets();
  }

  std::string run() {
    std::string out = emit(0, tokens_.size());
    for (const std::string& caller : callers_) out += caller;
    return out;
  }

 private:
  const Token& at(std::size_t i) const {
    static const Token none;
    return i < tokens_.size() ? tokens_[i] : none;
  }
  bool is(std::size_t i, std::string_view text) const { return i < tokens_.size() && tokens_[i].text == text; }
  bool is_name(std::size_t i) const { return i < tokens_.size() && tokens_[i].kind == Token::Kind::name; }
  std::size_t next(std::size_t i) const {
    for (++i; i < tokens_.size() && tokens_[i].kind == Token::Kind::space;) ++i;
    return i;
  }
  /// The index behind the tokens if there is none before.
  std::size_t previous(std::size_t i) const {
    while (i > 0)
      if (tokens_[--i].kind != Token::Kind::space) return i;
    return tokens_.size();
  }

  void match_brackets() {
    std::vector<std::size_t> open;
    partner_.assign(tokens_.size(), 0);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != Token::Kind::sign) continue;
      const char c = tokens_[i].text[0];
      if (c == '(' || c == '[' || c == '{') open.push_back(i);
      if (c != ')' && c != ']' && c != '}') continue;
      const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || tokens_[open.back()].text[0] != wanted) throw std::runtime_error(std::string("a bracket has no partner: '") + c + "'");
      partner_[i] = open.back(), partner_[open.back()] = i;
      open.pop_back();
    }
    if (!open.empty()) throw std::runtime_error("a bracket has no partner: '" + tokens_[open.back()].text + "'");
  }

  static bool is_half(const std::string& name) { return name == "lo" || name == "hi" || name == "even" || name == "odd"; }
  static bool is_component(const std::string& name) {
    if (is_half(name)) return true;
    if (name.size() > 1 && name.size() <= 17 && name[0] == 's')
      return std::all_of(name.begin() + 1, name.end(), [](char c) { return std::isxdigit(static_cast<unsigned char>(c)); });
    return !name.empty() && name.size() <= 4 && name.find_first_not_of("xyzw") == std::string::npos;
  }
  /// A component of a text that has been translated.
  static std::string component(const std::string& name, const std::string& of) {
    const auto call = [&](const std::string& function) { return function + "(" + of + ")"; };
    const bool is_numbered = name[0] == 's';
    const std::string letters = is_numbered ? name.substr(1) : name;
    if (is_half(name) || letters.size() == 1) return call("cl_" + name);
    std::string places;
    for (const char c : letters) {
      const std::size_t place = is_numbered ? std::stoul(std::string(1, c), nullptr, 16) : std::string_view("xyzw").find(c);
      places += fmt::format("{}{}", places.empty() ? "" : ", ", place);
    }
    return call("cl_swizzle<" + places + ">");
  }

  /// The name of a vector type in brackets, as in a cast or literal, at an opening one. Empty if there is none.
  std::string vector_in_brackets(std::size_t open) const {
    const std::size_t name = next(open);
    return is(open, "(") && is_name(name) && vectors_.contains(at(name).text) && is(next(name), ")") ? at(name).text : std::string();
  }

  /// Translates an operand with its prefixes (a unary expression) from `i` on, which is left behind it.
  std::string unary(std::size_t& i) {
    std::string out;
    while (at(i).kind == Token::Kind::space && i < tokens_.size()) out += spaces(at(i++).text);
    const std::string& text = at(i).text;
    if (text == "-" || text == "+" || text == "~" || text == "!" || text == "*" || text == "&" || text == "++" || text == "--") {
      out += text;
      return out + unary(++i);
    }
    if (text == "(") {
      if (const std::string vector = vector_in_brackets(i); !vector.empty()) return out + postfix(cast(vector, i), i);
      // A cast to another type is followed by an operand; anything else in brackets is one.
      if (is_cast(i)) {
        const std::size_t end = partner_[i] + 1;
        out += emit(i, end);
        i = end;
        return out + unary(i);
      }
    }
    return out + primary(i);
  }

  /// True of a word that begins a type.
  bool is_type_word(const std::string& text) const {
    static const auto& words =
        *new std::set<std::string, std::less<>>{"char",     "uchar",   "short",     "ushort",     "int",    "uint",   "long",     "ulong",    "float",
                                                "double",   "size_t",  "const",     "unsigned",   "signed", "struct", "half",     "bool",     "void",
                                                "__global", "__local", "__private", "__constant", "global", "local",  "constant", "volatile", "static"};
    return words.contains(text) || types_.contains(text);
  }
  /// True of brackets with a type in them, before an operand.
  bool is_cast(std::size_t open) const {
    const std::size_t close = partner_[open], first = next(open), behind = next(close);
    return is_name(first) && is_type_word(at(first).text) &&
           (is_name(behind) || at(behind).kind == Token::Kind::number || is(behind, "(") || is(behind, "-") || is(behind, "~") || is(behind, "!") ||
            is(behind, "*") || is(behind, "&") || is(behind, "+"));
  }

  /// A literal or cast of a vector type; `i` at its opening bracket, left behind the operand.
  std::string cast(const std::string& vector, std::size_t& i) {
    i = next(partner_[i]);
    if (is(i, "(") && vector_in_brackets(i).empty() && !is_cast(i)) {
      const std::size_t close = partner_[i];
      std::string out = "cl_make<" + vector + ">(" + emit(i + 1, close) + ")";
      i = close + 1;
      return out;
    }
    std::string operand = unary(i);
    return "cl_make<" + vector + ">(" + operand + ")";
  }

  std::string primary(std::size_t& i) {
    std::string out;
    if (is(i, "(")) {
      out = "(" + emit(i + 1, partner_[i]) + ")";
      i = partner_[i] + 1;
    } else if (is_name(i)) {
      out = word(at(i).text);
      ++i;
    } else {
      out = at(i).text;
      ++i;
    }
    return postfix(std::move(out), i);
  }

  /// Calls, subscripts and components behind an operand.
  std::string postfix(std::string out, std::size_t& i) {
    for (;;) {
      const std::size_t here = at(i).kind == Token::Kind::space ? next(i) : i;
      if (is(here, "(") || is(here, "[")) {
        out += at(here).text + emit(here + 1, partner_[here]) + at(partner_[here]).text;
        i = partner_[here] + 1;
      } else if (is(here, ".") && is_name(next(here))) {
        const std::size_t name = next(here);
        if (is_component(at(name).text))
          out = component(at(name).text, out);
        else
          out += "." + word(at(name).text);
        i = name + 1;
      } else if (is(here, "->") && is_name(next(here))) {
        const std::size_t name = next(here);
        out += "->" + word(at(name).text);
        i = name + 1;
      } else if (is(here, "++") || is(here, "--")) {
        out += at(here).text;
        i = here + 1;
      } else {
        return out;
      }
    }
  }

  static std::string word(const std::string& name) { return reserved_by_cpp().contains(name) ? name + "_" : name; }

  /// Text of the tokens [from, to).
  std::string emit(std::size_t from, std::size_t to) {
    std::string out;
    for (std::size_t i = from; i < to;) {
      const Token& token = at(i);
      const std::string& text = token.text;
      if (token.kind == Token::Kind::space) {
        out += spaces(text);
        ++i;
      } else if (text == "(") {
        std::string vector = vector_in_brackets(i);
        if (!vector.empty() && !is(previous(i), "sizeof")) {
          const std::string made = cast(vector, i);
          out += postfix(made, i);
        } else if (is_cast(i)) {
          out += "(" + emit(i + 1, partner_[i]) + ")";
          i = partner_[i] + 1;
        } else {
          emit_operand(i, to, out);
        }
      } else if (token.kind == Token::Kind::name) {
        i = emit_word(i, to, out);
      } else if (text == "." && is_name(next(i))) {  // a designator: { .x = 1 }
        out += "." + word(at(next(i)).text);
        i = next(i) + 1;
      } else {
        out += text;
        ++i;
      }
    }
    return out;
  }

  /// An operand with what stands behind it, up to `to`. If it is assigned or initialized, a number in the place of a vector becomes one: `v = 0`.
  void emit_operand(std::size_t& i, std::size_t to, std::string& out) {
    const std::size_t begin = i;
    std::string operand = primary(i);
    out += operand;
    const std::size_t sign = at(i).kind == Token::Kind::space ? next(i) : i;
    if (sign >= to || !is(sign, "=") || is(next(sign), "{")) return;
    std::size_t end = next(sign);
    while (end < to && !is(end, ",") && !is(end, ";")) end = is(end, "(") || is(end, "[") || is(end, "{") ? partner_[end] + 1 : end + 1;
    // A star in a declaration is the pointer's, elsewhere the access to what it points to.
    std::string stars;
    for (std::size_t before = previous(begin); is(before, "*"); before = previous(before)) stars += "*";
    if (!stars.empty() && is_declared(begin)) stars.clear();
    out += " = cl_fit<decltype(" + stars + operand + ")>(" + emit(sign + 1, end) + ")";
    i = end;
  }

  /// True if the name at `i` is declared there: its statement begins with a type.
  bool is_declared(std::size_t i) const {
    std::size_t first = i;
    for (std::size_t k = previous(i); k < tokens_.size(); k = previous(k)) {
      if (is(k, ";") || is(k, "{") || is(k, "}") || is(k, "(") || is(k, "[")) break;
      if (is(k, ")") || is(k, "]")) k = partner_[k];
      first = k;
    }
    return first != i && (is_type_word(at(first).text) || vectors_.contains(at(first).text));
  }

  /// A word that begins something; what follows it.
  std::size_t emit_word(std::size_t i, std::size_t to, std::string& out) {
    const std::string& text = at(i).text;
    if (text == "__attribute__") {
      const std::size_t open = next(i);
      out += attribute(open);
      return partner_[open] + 1;
    }
    if (text == "__kernel" || text == "kernel") return kernel(i, out);
    if (text == "__local" || text == "local") {
      if (declares_variable(i)) out += "static thread_local";
      return i + 1;
    }
    if (text == "__constant" || text == "constant") {
      out += is_at_file_scope(i) ? "static const" : "const";
      return i + 1;
    }
    if (text == "__global" || text == "global" || text == "__private") return i + 1;
    if (text == "restrict") {
      out += "__restrict";
      return i + 1;
    }
    if (text == "typedef") note_type(i);
    if (text == "struct" && is_name(next(i))) types_.insert(at(next(i)).text);
    if (text == "if" || text == "while" || text == "for" || text == "switch") {
      const std::size_t open = next(i);
      out += text + " (" + emit(open + 1, partner_[open]) + ")";
      return partner_[open] + 1;
    }
    if (text == "return" || text == "case" || text == "else" || text == "goto" || text == "do" || text == "sizeof") {
      out += text;
      return i + 1;
    }
    if (text == "enum") {  // whose numbers are constants
      while (i < to && !is(i, "{") && !is(i, ";")) out += at(i++).text;
      const std::size_t end = is(i, "{") ? partner_[i] + 1 : i;
      for (; i < end; ++i) out += at(i).kind == Token::Kind::space ? spaces(at(i).text) : at(i).text;
      return end;
    }
    std::size_t end = i;
    emit_operand(end, to, out);
    return end;
  }

  /// Of an attribute what C++ knows; `open`: its first bracket.
  std::string attribute(std::size_t open) const {
    std::string inside;
    for (std::size_t i = open; i <= partner_[open]; ++i) inside += at(i).text;
    for (const char* known : {"aligned", "always_inline", "noinline", "packed", "unused", "may_alias"})
      if (inside.find(known) != std::string::npos) return "__attribute__" + inside;
    return "";
  }

  /// True if local memory is declared here, not a pointer to it.
  bool declares_variable(std::size_t i) const {
    for (i = next(i); i < tokens_.size(); i = next(i)) {
      const std::string& text = at(i).text;
      if (text == "*" || text == ")" || text == "(") return false;
      if (text == "[" || text == ";" || text == "," || text == "=" || text == "__attribute__") return true;
    }
    return false;
  }
  bool is_at_file_scope(std::size_t i) const {
    for (std::size_t k = 0; k < i; ++k)
      if (tokens_[k].kind == Token::Kind::sign && (is(k, "{") || is(k, "(")) && partner_[k] > i) return false;
    return true;
  }

  /// Notes the name that a typedef gives, and whether it is a vector's.
  void note_type(std::size_t i) {
    bool is_vector = false;
    std::string name;
    for (i = next(i); i < tokens_.size() && !is(i, ";"); i = next(i)) {
      if (is(i, "{") || is(i, "(") || is(i, "[")) {
        i = partner_[i];
        continue;
      }
      if (is(i, "*")) is_vector = false;
      if (!is_name(i) || is(i, "__attribute__")) continue;
      if (vectors_.contains(at(i).text)) is_vector = true;
      name = at(i).text;
    }
    if (name.empty()) return;
    types_.insert(name);
    if (is_vector) vectors_.insert(name);
  }

  /// The three numbers of reqd_work_group_size in an attribute; `open`: its first bracket. Of another attribute `numbers` stays as it is.
  void required_items(std::size_t open, std::array<std::string, 3>& numbers) const {
    std::size_t word = open;
    while (word < partner_[open] && !is(word, "reqd_work_group_size")) ++word;
    if (word == partner_[open]) return;
    const std::size_t list = next(word);
    std::size_t place = 0;
    numbers = {};
    for (std::size_t n = list + 1; n < partner_[list]; ++n)
      if (is(n, ","))
        ++place;
      else if (place < numbers.size())
        numbers[place] += at(n).text;
  }

  /// A parameter of a kernel in C++: its type, and 0 for a value, 1 for memory, 2 for local memory.
  struct Parameter {
    std::string type;
    int kind = 0;
  };
  std::vector<Parameter> parameters(std::size_t open) const {
    std::vector<Parameter> all;
    const std::size_t close = partner_[open];
    for (std::size_t from = open + 1, k = from; k <= close; ++k) {
      if (is(k, "(") || is(k, "[")) k = partner_[k];
      if (k != close && !is(k, ",")) continue;
      const std::size_t name = previous(k);
      if (name <= next(open) && (name == open || is(name, "void"))) break;
      Parameter parameter;
      for (std::size_t t = from; t < name; ++t) {
        if (is(t, "*")) parameter.kind = std::max(parameter.kind, 1);
        if (is(t, "__local") || is(t, "local")) parameter.kind = 2;
        const bool is_place = is(t, "__global") || is(t, "global") || is(t, "__constant") || is(t, "constant") || is(t, "__local") || is(t, "local") ||
                              is(t, "__private") || is(t, "restrict");
        if (!is_place) parameter.type += at(t).kind == Token::Kind::space ? " " : at(t).text;
      }
      all.push_back(std::move(parameter));
      from = k + 1;
    }
    return all;
  }

  /// A kernel: its function, and a caller that takes the addresses of its arguments.
  std::size_t kernel(std::size_t i, std::string& out) {
    std::array<std::string, 3> items{"0", "0", "0"};
    std::size_t name = 0, open = next(i);
    for (; open < tokens_.size() && !is(open, "(") && !is(open, "{") && !is(open, ";"); open = next(open)) {
      if (is(open, "__attribute__")) {
        open = next(open);
        required_items(open, items);
        open = partner_[open];
      } else if (is_name(open) && !is(open, "void")) {
        name = open;
      }
    }
    if (name == 0 || !is(open, "(")) return i + 1;
    const std::string& text = at(name).text;
    std::string call, kinds;
    int count = 0;
    for (const auto& [type, kind] : parameters(open)) {
      const char* const comma = count == 0 ? "" : ", ";
      call += kind == 0 ? fmt::format("{}*(const cl_plain_t<{}>*)arguments[{}]", comma, type, count) : fmt::format("{}({})arguments[{}]", comma, type, count);
      ++count;
      kinds += fmt::format("{}{{{}, sizeof({})}}", comma, kind, type);
    }
    bool has_barriers = false;
    for (std::size_t k = 0; k < tokens_.size() && !has_barriers; ++k) has_barriers = is(k, "barrier") && is(next(k), "(");
    std::string caller = fmt::format("\nextern \"C\" {{\nstatic void cl_run_{0}(void* const* arguments) {{ (void)arguments; {0}({1}); }}\n", text, call);
    if (count > 0) caller += fmt::format("static const cl_parameter cl_parameters_{}[] = {{{}}};\n", text, kinds);
    caller += fmt::format(
        "extern __attribute__((visibility(\"default\"))) const cl_kernel clutch_kernel_{0};\n"
        "const cl_kernel clutch_kernel_{0} = {{\"{0}\", cl_run_{0}, {1}, {2}, {{{3}, {4}, {5}}}, {6:d}}};\n}}\n",
        text, count > 0 ? "cl_parameters_" + text : "nullptr", count, items[0], items[1], items[2], has_barriers);
    callers_.push_back(std::move(caller));
    out += "static";
    return i + 1;
  }

  Tokens tokens_;
  std::vector<std::size_t> partner_;
  std::set<std::string, std::less<>> vectors_, types_;
  std::vector<std::string> callers_;
};

}  // namespace

std::string translate(std::string_view text) { return Translator(text).run(); }

}  // namespace clutch_threads
