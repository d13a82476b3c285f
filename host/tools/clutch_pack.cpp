// SPDX-License-Identifier: Apache-2.0
// clutch-pack: makes kernel packs of recorded programs, shows and checks them. docs/packs.md is its guide.
#include <clutch/clutch.hpp>
#include <clutch/version.hpp>

#include "program/isa.hpp"
#include "program/pack_file.hpp"
#include "support/system.hpp"
#include "tools/pack_offline.hpp"
#include "tools/pack_workload.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using clutch::detail::PackContents, clutch::detail::PackFile, clutch::detail::PackProgram, clutch::detail::PackTarget, clutch::detail::kPackSuffix;
using clutch_pack::read_pack, clutch_pack::WorkFolder;

constexpr const char* kAllDtypes = "f32,f16,bf16,f64";

void write(const fs::path& path, const PackContents& contents) {
  if (const std::string problem = clutch::detail::write_pack(path, contents); !problem.empty()) throw std::runtime_error(problem);
  std::error_code ignored;
  fmt::print("wrote {}: {} programs, {} bytes\n", path.string(), contents.programs.size(), fs::file_size(path, ignored));
}

/// What a recording has for one of its targets, as a pack: the binaries, without sources.
PackContents pack_of(const PackContents& recording, std::uint32_t target) {
  PackContents pack{.recording = false, .version = recording.version, .targets = {recording.targets[target]}, .programs = {}};
  for (const PackProgram& p : recording.programs) {
    if (p.target != target || p.binary.empty()) continue;
    pack.programs.push_back(p);
    pack.programs.back().target = 0;
    pack.programs.back().source.clear();
  }
  return pack;
}

struct Build {
  std::string targets, recorded, output = ".", device, dtypes;
};

int build(const Build& b) {
  fs::create_directories(b.output);
  const WorkFolder work;
  int problems = 0;
  if (b.targets.empty()) {
    const PackContents recording = b.recorded.empty() ? record_workload(work, b.device, b.dtypes.empty() ? "f32" : b.dtypes) : read_pack(b.recorded);
    if (recording.programs.empty())
      throw std::runtime_error(fmt::format("{} must have programs, got none; no pack is made", b.recorded.empty() ? "the workload's recording" : b.recorded));
    std::set<std::string> made;
    for (std::uint32_t t = 0; t < recording.targets.size(); ++t) {
      const PackContents pack = pack_of(recording, t);
      const std::string& isa = recording.targets[t].isa;
      if (pack.programs.empty()) {
        fmt::print(stderr, "clutch-pack: no pack for {} is made: the recording has no binaries for it\n", isa), ++problems;
      } else if (!made.insert(isa).second) {
        fmt::print(stderr, "clutch-pack: {} is left out for the driver '{}': the recording has programs of two drivers for it\n", isa,
                   recording.targets[t].driver),
            ++problems;
      } else {
        write(fs::path(b.output) / (isa + kPackSuffix), pack);
      }
    }
    return problems == 0 ? 0 : 1;
  }
  std::istringstream list(b.targets);
  for (std::string target; std::getline(list, target, ',');) {
    try {
      const PackContents recording = b.recorded.empty() ? record_workload(work, {}, b.dtypes.empty() ? kAllDtypes : b.dtypes, target) : read_pack(b.recorded);
      std::vector<std::string> lines;
      const PackContents pack = compile_for(work, recording, target, lines);
      for (const std::string& line : lines) fmt::print(stderr, "clutch-pack: {}\n", line);
      write(fs::path(b.output) / (clutch_pack::isa_of_target(target) + kPackSuffix), pack);
    } catch (const std::runtime_error& e) {
      fmt::print(stderr, "clutch-pack: {}\n", e.what()), ++problems;
    }
  }
  return problems == 0 ? 0 : 1;
}

std::string sizes_of(const PackProgram& program) {
  std::string text;
  for (const auto& l : program.launches) text += fmt::format("{}{}x{}x{}{}", text.empty() ? "" : " ", l.x, l.y, l.z, l.wide ? " wide" : "");
  return text;
}

int list(const std::vector<std::string>& files, bool all) {
  int problems = 0;
  for (const std::string& name : files) {
    const PackFile::Opened opened = PackFile::open(name);
    if (!opened.file) {
      fmt::print("PROBLEM  {}\n", opened.problem), ++problems;
      continue;
    }
    const PackFile& file = *opened.file;
    fmt::print("{}: {} of clutch {}, {} programs\n", name, file.recording() ? "a recording" : "a pack", file.version(), file.rows().size());
    for (const PackTarget& t : file.targets()) {
      fmt::print("  isa      {}\n", t.isa);
      for (const auto& [label, text] :
           {std::pair("driver", &t.driver), std::pair("needs", &t.features), std::pair("from", &t.device), std::pair("made by", &t.made_by)})
        if (!text->empty()) fmt::print("  {:<8} {}\n", label, *text);
      fmt::print("  proved   {}\n", t.proved.empty() ? "no" : t.proved);
    }
    if (!all) continue;
    for (const PackFile::IndexRow& row : file.rows())
      fmt::print("  {}  {}  [{}]  {}\n", clutch::detail::to_hex(row.program.key).substr(0, 16), row.program.entry, sizes_of(row.program),
                 clutch::detail::printable(row.program.options));
  }
  return problems == 0 ? 0 : 1;
}

int verify(const std::vector<std::string>& files) {
  int problems = 0;
  for (const std::string& name : files) {
    try {
      const PackContents all = read_pack(name);
      std::string devices;
      for (const clutch::Device& d : clutch::devices())
        for (const PackTarget& t : all.targets)
          if (clutch::detail::isa_of(d) == t.isa) devices += fmt::format(" {}", d.selector());
      fmt::print("ok       {}: {} programs; devices of its ISA here:{}\n", name, all.programs.size(), devices.empty() ? " none" : devices);
    } catch (const std::runtime_error& e) {
      fmt::print("PROBLEM  {}\n", e.what()), ++problems;
    }
  }
  return problems == 0 ? 0 : 1;
}

int merge(const std::vector<std::string>& files) {
  if (files.size() < 2) throw std::runtime_error("merge takes the file to write, then those to read");
  PackContents all = read_pack(files[1]);
  for (std::size_t i = 2; i < files.size(); ++i) {
    PackContents more = read_pack(files[i]);
    if (more.version != all.version || more.recording != all.recording)
      throw std::runtime_error(fmt::format("files must be of one version of clutch and one kind, got {} {} and {} {}",
                                           all.recording ? "a recording of" : "a pack of", all.version, more.recording ? "a recording of" : "a pack of",
                                           more.version));
    for (const std::string& entry : clutch::detail::merge_packs(all, std::move(more)))
      fmt::print(stderr, "clutch-pack: no binary of {} contains all local sizes, so the one with more is kept\n", entry);
  }
  if (!all.recording && all.targets.size() != 1)
    throw std::runtime_error(fmt::format("packs must be for one ISA and driver, got those for {} and {}", all.targets[0].isa, all.targets[1].isa));
  write(files[0], all);
  return 0;
}

/// What the processes of a proof took from packs, and what they built.
struct Counts {
  std::uint64_t packed = 0, built = 0;
};
Counts counts_in(const fs::path& file) {
  Counts all;
  std::ifstream lines(file);
  for (Counts one; lines >> one.packed >> one.built;) all.packed += one.packed, all.built += one.built;
  return all;
}

/// Runs a command that proves programs on a device, with the pack, and notes in the pack that it passed. Every program that it runs must be the pack's.
int prove(const std::string& name, const std::vector<std::string>& command) {
  if (command.empty()) throw std::runtime_error("prove needs a command behind --, such as: ctest -R ^proof");
  PackContents pack = read_pack(name);
  if (pack.recording) throw std::runtime_error(fmt::format("{} must be a pack, got a recording", name));
  if (pack.version != CLUTCH_VERSION) throw std::runtime_error(fmt::format("{} must be of clutch {}, got {}", name, CLUTCH_VERSION, pack.version));
  std::string device, selector, why;
  for (const clutch::Device& d : clutch::devices()) {
    const std::string misfit = clutch::detail::misfit(pack.targets[0], d);
    if (!misfit.empty())
      why += fmt::format("; {}", misfit);
    else if (device.empty())
      device = fmt::format("{}, {} {}", d.name(), d.platform(), d.driver_version()), selector = d.selector();
  }
  if (device.empty())
    throw std::runtime_error(
        fmt::format("a device of {} that takes {} must be here to prove it, got none{}; the pack stays as it is", pack.targets[0].isa, name, why));
  const WorkFolder work;
  const fs::path counts_file = work.path() / "counts";
  for (const auto& [variable, value] :
       {std::pair("CLUTCH_PACK", fs::absolute(name).string()), std::pair("CLUTCH_CACHE", std::string("off")), std::pair("CLUTCH_PACK_RECORD", std::string()),
        std::pair("CLUTCH_DEVICE", selector), std::pair("CLUTCH_TEST_DEVICES", selector), std::pair(clutch::detail::kPackCountsVariable, counts_file.string())})
    clutch::detail::set_environment(variable, value.c_str());
  std::vector<std::string> words{"--"};
  words.insert(words.end(), command.begin(), command.end());
  const clutch::detail::ProgramRun run = clutch::detail::run_program("/usr/bin/env", words, clutch::detail::Keep::output);
  fmt::print("{}", run.kept);
  if (run.end != clutch::detail::ProgramRun::End::exited || run.status != 0)
    throw std::runtime_error(fmt::format("the command must end with 0, got {}{}; {} stays as it is", run.problem, run.status, name));
  if (const Counts counts = counts_in(counts_file); counts.packed == 0 || counts.built != 0)
    throw std::runtime_error(
        fmt::format("the command must take programs from the pack and build none, got {} from it and {} built; {} stays as it is. A pack of what "
                    "CLUTCH_PACK_RECORD records of that command has all of them",
                    counts.packed, counts.built, name));
  std::string what;
  for (const std::string& word : command) what += fmt::format("{}{}", what.empty() ? "" : " ", word);
  pack.targets[0].proved = fmt::format("{} on {}", what, device);
  write(name, pack);
  return 0;
}

int workload(const std::string& device, const std::string& list) {
  std::vector<clutch::DType> dtypes;
  std::istringstream words(list);
  const std::map<std::string, clutch::DType> known{
      {"f32", clutch::DType::f32}, {"f16", clutch::DType::f16}, {"bf16", clutch::DType::bf16}, {"f64", clutch::DType::f64}};
  for (std::string word; std::getline(words, word, ',');) {
    const auto found = known.find(word);
    if (found == known.end()) throw std::runtime_error(fmt::format("--dtypes must name any of {}, got '{}'", kAllDtypes, word));
    dtypes.push_back(found->second);
  }
  for (const std::string& line : clutch_pack::run_workload(device.empty() ? clutch::default_device() : clutch::Device(device), dtypes))
    fmt::print(stderr, "clutch-pack: left out: {}\n", line);
  return 0;
}

int command(int argc, char** argv) {
  CLI::App app{"Makes kernel packs of recorded programs (CLUTCH_PACK_RECORD), shows and checks them."};
  app.require_subcommand(1);
  Build b;
  CLI::App* building = app.add_subcommand("build", "make a pack for each ISA");
  building->add_option("--targets", b.targets, "GPUs to compile for without one, by commas: gfx942,sm_90,dg2; by default the device at hand");
  building->add_option("--recorded", b.recorded, "recording of a workload; by default calls of all ops' common classes");
  building->add_option("--output", b.output, "folder of the packs")->capture_default_str();
  building->add_option("--device", b.device, "device at hand, as CLUTCH_DEVICE selects it");
  building->add_option("--dtypes", b.dtypes, fmt::format("of the common classes; at hand f32, else {}", kAllDtypes));
  std::vector<std::string> files, proof;
  bool all = false;
  CLI::App* listing = app.add_subcommand("list", "show what packs and recordings are for");
  listing->add_flag("--programs", all, "also each program");
  CLI::App* verifying = app.add_subcommand("verify", "check every byte of packs and recordings");
  CLI::App* merging = app.add_subcommand("merge", "write one file of several: OUTPUT INPUT...");
  for (CLI::App* sub : {listing, verifying, merging}) sub->add_option("files", files)->required();
  std::string proved;
  CLI::App* proving = app.add_subcommand("prove", "run a command with a pack, on a device of its ISA, and note in the pack that it passed: PACK -- COMMAND...");
  proving->add_option("pack", proved)->required();
  proving->add_option("command", proof)->required();
  std::string device, dtypes = "f32";
  CLI::App* working = app.add_subcommand("workload", "")->group("");
  working->add_option("--device", device);
  working->add_option("--dtypes", dtypes);
  CLI11_PARSE(app, argc, argv);
  if (*building) return build(b);
  if (*listing) return list(files, all);
  if (*verifying) return verify(files);
  if (*merging) return merge(files);
  if (*proving) return prove(proved, proof);
  return workload(device, dtypes);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "clutch-pack: {}\n", e.what());
    return 2;
  }
}
