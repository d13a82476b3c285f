// SPDX-License-Identifier: Apache-2.0
// clutch-flight: what the ranks of a distributed program did last, which of them went astray, and dumps for PyTorch's analyzer. docs/flight.md is its guide.
#include "dist/flight_analysis.hpp"
#include "dist/flight_dump.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

namespace flight = clutch::dist::detail;
namespace fs = std::filesystem;

[[noreturn]] void refuse(clutch::ErrorCode code, const std::string& text) { throw clutch::Error(code, "clutch-flight", text); }

/// The files of a folder: those whose names begin with `prefix`, or, without one, all that are rings or dumps.
void add_files(const fs::path& folder, const std::string& prefix, std::vector<fs::path>& files) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(".tmp") || !at->is_regular_file()) continue;
    if (prefix.empty() ? flight::is_flight_file(at->path()) : name.starts_with(prefix)) found.push_back(at->path());
  }
  if (error) refuse(clutch::ErrorCode::io, fmt::format("{} must be readable, got: {}", folder.string(), error.message()));
  if (found.empty())
    refuse(clutch::ErrorCode::io,
           fmt::format("{} must have rings or dumps{}, got none", folder.string(), prefix.empty() ? "" : " whose names begin with " + prefix));
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

void print_calls(const std::vector<flight::FlightImage>& images) {
  for (const flight::FlightImage& image : images) {
    fmt::print("rank {} of {}, process {} on {} ({}), {}: {} calls, of which {} are kept\n", image.rank, image.world_size, image.process_id, image.host,
               name(image.process), image.library, image.begun, image.records.size());
    for (const flight::FlightRecord& r : image.records) {
      const flight::FlightGroup* group = image.group(r.group);
      const bool is_message = flight::info(r.op).match == flight::FlightOpInfo::Match::pair;
      fmt::print("{:>8}  {}.{:06}  {} {}{}  {}{}\n", r.id, r.created_ns / 1'000'000'000, r.created_ns % 1'000'000'000 / 1000,
                 group ? group->name : fmt::format("group {}", r.group), is_message ? "message " : "", is_message ? r.p2p_seq : r.collective_seq, describe(r),
                 r.why.empty() ? "" : ": " + r.why);
    }
  }
}

int command(int argc, char** argv) {
  CLI::App app{
      "Compares the last calls of a distributed program's ranks: rings of processes that run or have ended, and dumps of clutch or PyTorch.\n"
      "Ends with 0 if nothing was found, with 1 if something was, with 2 if a file cannot be read."};
  std::vector<std::string> paths;
  std::string prefix, pickle, json_prefix;
  bool json = false, calls = false;
  double patience = 5;
  app.add_option("path", paths, "folders and files")->required();
  app.add_option("--prefix", prefix, "of folders take the files whose names begin so, all of them");
  app.add_flag("--json", json, "print JSON");
  app.add_flag("--calls", calls, "print the calls of each rank, and compare nothing");
  app.add_option("--dump-pickle", pickle, "write a dump for PyTorch's analyzer of each rank: the prefix, to which the rank is added");
  app.add_option("--dump-json", json_prefix, "write all of each rank as JSON: the prefix, to which the rank and .json are added");
  app.add_option("--patience", patience, "seconds that a rank of a running program may be late")->check(CLI::Range(0.0, 1e9))->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (fs::is_directory(path))
      add_files(path, prefix, files);
    else
      files.emplace_back(path);
  }
  std::vector<flight::FlightImage> images;
  images.reserve(files.size());
  for (const fs::path& file : files) images.push_back(flight::read_flight(file));
  // Two files of one rank are refused before anything is written.
  flight::FlightAnalysisOptions options;
  options.patience_ns = static_cast<std::int64_t>(patience * 1e9);
  const flight::FlightAnalysis analysis = flight::analyze(images, options);
  if (!json_prefix.empty())
    for (const flight::FlightImage& image : images) flight::write_flight(fmt::format("{}{}.json", json_prefix, image.rank), flight::json_of(image));
  if (!pickle.empty())
    for (const flight::FlightImage& image : flight::aligned(images))
      flight::write_flight(fmt::format("{}{}", pickle, image.rank), flight::torch_pickle_of(image));
  if (calls) {
    print_calls(images);
    return 0;
  }
  fmt::print("{}", json ? analysis.json() : analysis.text());
  return analysis.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
