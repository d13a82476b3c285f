// SPDX-License-Identifier: Apache-2.0
// Writes kernel_table.cpp: the text of every kernels/<stem>.cl with its includes put in and #line kept, and the names of
// its entries. Fails if two files declare an entry of one name, or if a function that takes local memory is not CLUTCH_INLINE.
// Use: embed_kernels <kernels folder> <output file> <stem>...
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct Embedder {
  fs::path root;
  std::set<std::string> included;

  std::string flatten(const std::string& relative) {
    std::ifstream in(root / relative);
    if (!in) throw std::runtime_error("cannot read kernels/" + relative);
    static const std::regex include(R"re(^\s*#\s*include\s+"([^"]+)".*$)re");
    std::ostringstream out;
    out << "#line 1 \"kernels/" << relative << "\"\n";
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      std::smatch match;
      // expression.clh is printed by the host when a program is built.
      if (!std::regex_match(line, match, include) || match[1] == "expression.clh") {
        out << line << '\n';
        continue;
      }
      // A .clh or .h goes in once, a .inc as often as it is named.
      bool repeats = match[1].str().ends_with(".inc");
      if (repeats || included.insert(match[1]).second) out << flatten(match[1]);
      out << "#line " << number + 1 << " \"kernels/" << relative << "\"\n";
    }
    return out.str();
  }
};

std::vector<std::string> entries_of(const std::string& text) {
  static const std::regex kernel(
      R"re(__kernel\s+(?:CLUTCH_LANES_OF_SUB_GROUP\s+)?(?:__attribute__\(\(reqd_work_group_size\([^)]*\)\)\)\s+)?void\s+([A-Za-z_0-9]+)\s*\()re");
  std::vector<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), kernel), end; it != end; ++it) names.push_back((*it)[1]);
  return names;
}

/// PoCL 3.1 shares a kernel's local array between all work-groups where a function that was not inlined names it.
void refuse_local_parameters(const std::string& stem, const std::string& text) {
  static const std::regex function(R"re(\n(static\s[^;{}()]*\([^(){}]*__local[^(){}]*\)))re");
  std::smatch match;
  if (std::regex_search(text, match, function)) throw std::runtime_error("kernels/" + stem + ".cl: not CLUTCH_INLINE: " + match[1].str());
}

/// C++ string literals of at most 8000 characters each, joined by the compiler.
void write_literal(std::ostream& out, const std::string& text) {
  constexpr std::size_t kPiece = 8000;
  for (std::size_t at = 0; at < text.size(); at += kPiece) out << "R\"clutch(" << text.substr(at, kPiece) << ")clutch\"\n";
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::cerr << "use: embed_kernels <kernels folder> <output file> <stem>...\n";
    return 2;
  }
  std::ostringstream out;
  out << "// Made by scripts/cmake/embed_kernels.cpp\n#include \"program/kernel_table.hpp\"\n#include <array>\n"
         "namespace clutch { inline namespace v0 { namespace detail {\nnamespace {\n";
  std::map<std::string, std::string> owner;
  std::ostringstream rows;
  for (int i = 3; i < argc; ++i) {
    std::string stem = argv[i];
    Embedder embedder{argv[1], {}};
    std::string text = embedder.flatten(stem + ".cl");
    std::vector<std::string> entries = entries_of(text);
    refuse_local_parameters(stem, text);
    if (entries.empty()) throw std::runtime_error("kernels/" + stem + ".cl declares no __kernel");
    out << "constexpr std::array<std::string_view, " << entries.size() << "> entries_" << i << "{";
    for (const std::string& entry : entries) {
      auto [known, fresh] = owner.emplace(entry, stem);
      if (!fresh) {
        std::string why = "kernels/" + stem;
        why.append(".cl and kernels/").append(known->second).append(".cl both declare ").append(entry);
        throw std::runtime_error(why);
      }
      out << '"' << entry << "\", ";
    }
    // With its length: counted by the compiler it would be limited.
    out << "};\nconstexpr std::string_view text_" << i << "(\n";
    write_literal(out, text);
    out << ", " << text.size() << ");\n";
    rows << "    {\"" << stem << "\", text_" << i << ", entries_" << i << "},\n";
  }
  out << "constexpr std::array<KernelText, " << argc - 3 << "> table{{\n"
      << rows.str() << "}};\n}  // namespace\n"
      << "std::span<const KernelText> kernel_table() { return table; }\n}}}  // namespace clutch::v0::detail\n";
  std::ofstream file(argv[2]);
  file << out.str();
  file.close();
  if (!file) throw std::runtime_error(std::string("cannot write ") + argv[2]);
  return 0;
} catch (const std::exception& e) {
  std::cerr << "embed_kernels: " << e.what() << '\n';
  return 1;
}
