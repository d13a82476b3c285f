// SPDX-License-Identifier: Apache-2.0
#include "tools/pack_offline.hpp"

#include <clutch/version.hpp>

#include "support/private_folder.hpp"
#include "support/system.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace clutch_pack {
namespace {

namespace fs = std::filesystem;
using clutch::detail::Keep, clutch::detail::PackContents, clutch::detail::PackFile, clutch::detail::PackProgram, clutch::detail::program_file,
    clutch::detail::ProgramRun, clutch::detail::run_program, clutch::detail::set_environment;

/// The source tree that this program stands in, or is called in: it has what offline targets need. Empty if there is none.
fs::path source_tree() {
  std::error_code ignored;
  for (const fs::path& from : {program_file().parent_path(), fs::current_path(ignored)})
    for (fs::path folder = from; !folder.empty(); folder = folder.parent_path()) {
      if (fs::exists(folder / "tests/gpu/pack.py", ignored)) return folder;
      if (folder == folder.root_path()) break;
    }
  return {};
}

fs::path needed_source_tree(const std::string& target) {
  fs::path tree = source_tree();
  if (tree.empty())
    throw std::runtime_error(
        fmt::format("--targets {} needs a source tree of clutch (tests/gpu/pack.py), in which this program stands or is called: there is none, and "
                    "no pack is made; without --targets a pack is made for the device at hand",
                    target));
  return tree;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return (std::ostringstream() << file.rdbuf()).str();
}

/// The file of tests/stub/profiles that lists a target.
fs::path profile_of(const fs::path& tree, const std::string& target) {
  std::string known;
  for (const fs::directory_entry& entry : fs::directory_iterator(tree / "tests/stub/profiles")) {
    std::istringstream lines(text_of(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string word;
      if (!(words >> word) || word != "targets") continue;
      while (words >> word) {
        if (word == target) return entry.path();
        known += fmt::format(" {}", word);
      }
    }
  }
  throw std::runtime_error(fmt::format("a target must be one of those of tests/stub/profiles, got '{}'; there are:{}", target, known));
}

std::string first_lines(const std::string& text) { return text.empty() ? "it wrote nothing" : text.substr(0, 600); }

}  // namespace

WorkFolder::WorkFolder() : path_(clutch::detail::make_temporary_folder()) {
  if (path_.empty()) throw std::runtime_error(fmt::format("cannot make a folder in {}", fs::temp_directory_path().string()));
}
WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

PackContents read_pack(const fs::path& path) {
  const PackFile::Opened opened = PackFile::open(path);
  if (!opened.file) throw std::runtime_error(opened.problem);
  std::string damaged;
  PackContents all = opened.file->contents(damaged);
  if (!damaged.empty()) throw std::runtime_error(damaged);
  return all;
}

std::string isa_of_target(const std::string& target) {
  if (target.starts_with("gfx")) return "amdgcn-amd-amdhsa--" + target;
  return target.starts_with("sm_") ? "ptx-" + target : "intel-" + target;
}

PackContents record_workload(const WorkFolder& work, const std::string& device, const std::string& dtypes, const std::string& target) {
  const fs::path file = work.path() / "recording";
  fs::remove(file);
  if (!target.empty()) {
    const fs::path tree = needed_source_tree(target), driver = program_file().parent_path() / "tests/libclutch_stub_driver.so";
    if (!fs::exists(driver))
      throw std::runtime_error(
          fmt::format("without --recorded, --targets {} needs the driver that only says that it is a GPU, {}: build the target clutch_stub_driver, or "
                      "give a recording; no pack is made",
                      target, driver.string()));
    set_environment("OCL_ICD_VENDORS", driver.string().c_str());
    set_environment("STUB_PROFILE", profile_of(tree, target).string().c_str());
    // It takes the kernels' parameters from a preprocessor.
    if (!clutch::detail::is_in_search_path("cc"))
      throw std::runtime_error(fmt::format("without --recorded, --targets {} needs the compiler cc in PATH; no pack is made", target));
    fs::create_directories(work.path() / "plans");
    set_environment("STUB_PLANS", (work.path() / "plans").string().c_str());
    set_environment("STUB_COMPILER", "cc");
  }
  set_environment("CLUTCH_PACK_RECORD", file.string().c_str());
  set_environment("CLUTCH_PACK", "off");
  set_environment("CLUTCH_CACHE", "off");
  set_environment("CLUTCH_AUTOTUNE", "0");
  // Results of a driver that runs nothing show nothing.
  set_environment("CLUTCH_SELF_TEST", target.empty() ? "fresh" : "off");
  std::vector<std::string> arguments{"workload", "--dtypes", dtypes};
  if (!device.empty() && target.empty()) arguments.insert(arguments.end(), {"--device", device});
  const ProgramRun run = run_program(program_file(), arguments, Keep::errors);
  set_environment("CLUTCH_PACK_RECORD", "");
  if (run.end != ProgramRun::End::exited || run.status != 0)
    throw std::runtime_error(fmt::format("the workload did not end well, so no pack is made: {}{}", run.problem, first_lines(run.kept)));
  fmt::print(stderr, "{}", run.kept);
  return read_pack(file);
}

PackContents compile_for(const WorkFolder& work, const PackContents& recording, const std::string& target, std::vector<std::string>& lines) {
  const fs::path tree = needed_source_tree(target), folder = work.path() / target;
  fs::create_directories(folder);
  const std::string isa = isa_of_target(target), vendor = isa.substr(0, isa.find('-'));
  // PTX is for all of a vendor's GPUs; what else a device's traits decide stands in the source, so a program that does not fit another device is not found
  // there.
  std::vector<const PackProgram*> programs;
  std::string others;
  for (const PackProgram& p : recording.programs) {
    const std::string& of = recording.targets[p.target].isa;
    if (!p.source.empty() && (of == isa || (vendor == "ptx" && of.starts_with("ptx-"))))
      programs.push_back(&p);
    else if (others.find(of) == std::string::npos)
      others += fmt::format(" {}", of);
  }
  if (programs.empty())
    throw std::runtime_error(fmt::format(
        "the recording must have programs for {}, got those for:{}; no pack is made. Record on such a device, or leave out --recorded", isa, others));
  nlohmann::json jobs = nlohmann::json::array();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const PackProgram& p = *programs[i];
    std::ofstream(folder / fmt::format("{}.cl", i), std::ios::binary) << p.source;
    nlohmann::json job;
    job["name"] = fmt::format("{}", i), job["entry"] = p.entry, job["options"] = p.options;
    jobs.push_back(std::move(job));
  }
  std::ofstream(folder / "jobs.json") << jobs.dump();
  const fs::path script = tree / "tests/gpu/pack.py";
  const char* python = std::getenv("PYTHON");
  const ProgramRun run = run_program("/usr/bin/env", {python ? python : "python3", "-B", script.string(), target, folder.string()}, Keep::errors);
  if (run.end != ProgramRun::End::exited || run.status != 0)
    throw std::runtime_error(fmt::format("no pack for {} is made: {}{}", target, run.problem, first_lines(run.kept)));
  PackContents pack{.recording = false, .version = recording.version, .targets = {{.isa = isa}}, .programs = {}};
  pack.targets[0].made_by = text_of(folder / "versions");
  for (std::size_t i = 0; i < programs.size(); ++i) {
    PackProgram p = *programs[i];
    p.target = 0, p.source.clear(), p.binary = text_of(folder / fmt::format("{}.bin", i));
    if (p.binary.empty())
      lines.push_back(fmt::format("{} for {} is left out: {}", p.entry, target, first_lines(text_of(folder / fmt::format("{}.error", i)))));
    else
      pack.programs.push_back(std::move(p));
  }
  if (pack.programs.empty())
    throw std::runtime_error(fmt::format("no pack for {} is made, since no program compiled: {}", target, lines.empty() ? "" : lines[0]));
  return pack;
}

}  // namespace clutch_pack
