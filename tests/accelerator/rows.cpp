// SPDX-License-Identifier: Apache-2.0
// Runs the cases of docs/accelerator.md.
//   accelerator_rows [CASE...]        prints their lines; without names all, by name
//   accelerator_rows --check FILE     holds all lines to those of a file
//   accelerator_rows --list           prints the names
#include "rows.hpp"

#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

namespace clutch::rows {

namespace {

std::map<std::string, Case, std::less<>>& cases() {
  static std::map<std::string, Case, std::less<>> all;
  return all;
}

/// Name and lines of a case.
std::string run(const std::string& name, Case function) {
  Lines lines;
  std::string end;
  try {
    function(lines);
  } catch (const std::exception& error) {
    end = "  ended by: " + std::string(error.what()) + "\n";
  }
  return name + "\n" + lines.text() + end;
}

/// Blocks of a text by their first lines, which are not indented.
std::map<std::string, std::string> blocks(std::istream& in) {
  std::map<std::string, std::string> all;
  std::string line, name;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ') name = line;
    all[name] += line + "\n";
  }
  return all;
}

/// Prints what differs and returns how many cases do.
int check(const std::string& path) {
  std::ifstream file(path);
  std::map<std::string, std::string> expected = blocks(file);
  int wrong = 0;
  for (const auto& [name, function] : cases()) {
    const std::string got = run(name, function);
    std::string& wanted = expected[name];
    if (got != wanted) {
      ++wrong;
      std::cout << name << " is to print\n" << (wanted.empty() ? "  nothing: the file lacks it\n" : wanted) << "and printed\n" << got;
    }
    expected.erase(name);
  }
  for (const auto& [name, text] : expected) ++wrong, std::cout << name << " stands in " << path << " and is no case\n";
  if (wrong == 0) std::cout << cases().size() << " cases print what they are to\n";
  return wrong;
}

}  // namespace

Entry::Entry(std::string_view name, Case run) { cases().emplace(name, run); }

}  // namespace clutch::rows

int main(int argc, char** argv) {
  using namespace clutch::rows;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--check") return check(arguments[1]) == 0 ? 0 : 1;
  if (arguments.size() == 1 && arguments[0] == "--list") {
    for (const auto& [name, function] : cases()) std::cout << name << '\n';
    return 0;
  }
  std::vector<std::string> wanted = arguments;
  if (wanted.empty())
    for (const auto& [name, function] : cases()) wanted.push_back(name);
  for (const std::string& name : wanted) {
    const auto found = cases().find(name);
    if (found == cases().end()) {
      std::cerr << "accelerator_rows: there is no case " << name << "; --list has them\n";
      return 2;
    }
    std::cout << run(found->first, found->second) << std::flush;
  }
  return 0;
}
