// SPDX-License-Identifier: Apache-2.0
// Runs a saved graph in a process without Python: run_saved GRAPH RUNS [NAME=FILE ...] -- [NAME=FILE ...]
// Inputs, then outputs, are raw bytes in files, by the graph's names for its tensors. Outputs are those after the last run.
#include <clutch/graph.hpp>
#include <clutch/stream.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

std::pair<std::string, std::string> name_and_file(const std::string& argument) {
  const std::size_t at = argument.find('=');
  if (at == std::string::npos) throw std::runtime_error("an argument must be NAME=FILE, got " + argument);
  return {argument.substr(0, at), argument.substr(at + 1)};
}

std::vector<std::uint8_t> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void run(int count, char** arguments) {
  if (count < 3) throw std::runtime_error("arguments must be GRAPH RUNS [NAME=FILE ...] -- [NAME=FILE ...]");
  clutch::Graph graph = clutch::Graph::load(arguments[1]);
  int next = 3;
  for (; next < count && std::string(arguments[next]) != "--"; ++next) {
    const auto [name, path] = name_and_file(arguments[next]);
    const std::vector<std::uint8_t> bytes = read(path);
    graph.tensor(name).write(std::as_bytes(std::span(bytes)));
  }
  for (int runs = std::atoi(arguments[2]); runs > 0; --runs) graph.replay();
  for (++next; next < count; ++next) {
    const auto [name, path] = name_and_file(arguments[next]);
    const std::vector<std::uint8_t> bytes = graph.tensor(name).to_bytes();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file) throw std::runtime_error("cannot write " + path);
  }
}

}  // namespace

int main(int count, char** arguments) try {
  run(count, arguments);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "run_saved: %s\n", error.what());
  return 1;
}
