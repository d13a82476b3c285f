// SPDX-License-Identifier: Apache-2.0
// clutch-devices: lists OpenCL devices with the strings that select them, their abilities, and problems.
#include <clutch/clutch.hpp>

#include "program/isa.hpp"
#include "support/private_folder.hpp"
#include "support/system.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using clutch::Device;
using clutch::DeviceTraits;
using clutch::detail::Keep, clutch::detail::may_write, clutch::detail::program_file, clutch::detail::ProgramRun, clutch::detail::run_program;
using clutch::detail::PrivateBytes, clutch::detail::PrivateFolder, clutch::detail::read_private_file;

struct Ability {
  const char* name;
  std::function<bool(const DeviceTraits&)> has;
};
const std::vector<Ability>& abilities() {
  static const std::vector<Ability> all{
      {"fp64", [](const DeviceTraits& t) { return t.fp64; }},
      {"fp16 arithmetic", [](const DeviceTraits& t) { return t.fp16; }},
      {"exact fma", [](const DeviceTraits& t) { return t.fma_exact; }},
      {"exact divide", [](const DeviceTraits& t) { return t.divide_exact; }},
      {"exact sqrt", [](const DeviceTraits& t) { return t.sqrt_exact; }},
      {"subnormals", [](const DeviceTraits& t) { return t.denormals; }},
      {"sub-groups", [](const DeviceTraits& t) { return t.sub_groups; }},
      {"local memory on chip", [](const DeviceTraits& t) { return t.local_memory_real; }},
      {"64-bit atomics", [](const DeviceTraits& t) { return t.native_atomics64; }},
      {"command buffers", [](const DeviceTraits& t) { return t.command_buffer != 0; }},
      {"stream priorities", [](const DeviceTraits& t) { return t.priority_hints; }},
      {"device timer", [](const DeviceTraits& t) { return t.device_timer; }},
      {"structs by value", [](const DeviceTraits& t) { return t.args_by_value; }},
  };
  return all;
}

std::string revision(int packed) { return packed == 0 ? "-" : fmt::format("{}.{}.{}", packed >> 16, packed >> 8 & 255, packed & 255); }

/// Selector of the default device; empty, with a reason in `problem`, if there is none.
std::string default_selector(std::string& problem) {
  try {
    return clutch::default_device().selector();
  } catch (const clutch::Error& e) {
    problem = e.what();
    return {};
  }
}

/// Null, with a reason in `problem`, for a device whose self-test fails.
const DeviceTraits* usable_traits(const Device& d, std::string& problem) {
  try {
    return &d.traits();
  } catch (const clutch::Error& e) {
    problem = e.what();
    return nullptr;
  }
}

void print_list() {
  std::string problem, chosen = default_selector(problem);
  if (clutch::device_count() == 0) {
    fmt::print("{}\n", problem);
    return;
  }
  for (const Device& d : clutch::devices()) {
    fmt::print("{}{}: {}\n", d.selector() == chosen ? "* " : "  ", d.index(), d.name());
    std::string broken;
    const DeviceTraits* traits = usable_traits(d, broken);
    if (!traits) {
      fmt::print("     {}, {}, driver {}\n     out of order: {}\n\n", clutch::name(d.type()), d.platform(), d.driver_version(), broken);
      continue;
    }
    const DeviceTraits& t = *traits;
    fmt::print("     select with  CLUTCH_DEVICE={}   or {}\n", d.selector(), d.index());
    fmt::print("     {}, {}, driver {}{}\n", clutch::name(d.type()), d.platform(), d.driver_version(), t.simulator ? ", a simulator" : "");
    fmt::print("     kernel packs for {}\n", clutch::detail::isa_of(d));
    fmt::print("     {} compute units, {:.1f} GiB, buffers to {:.1f} GiB, groups to {}, {} KiB local, vectors of {} f32\n", t.compute_units,
               static_cast<double>(t.global_bytes) / (1 << 30), static_cast<double>(t.max_alloc_bytes) / (1 << 30), t.max_work_group, t.local_bytes / 1024,
               t.native_width_f32);
    std::string can, cannot;
    for (const Ability& a : abilities()) {
      std::string& list = a.has(t) ? can : cannot;
      list += fmt::format("{}{}", list.empty() ? "" : ", ", a.name);
    }
    fmt::print("     can          {}\n     cannot       {}\n\n", can, cannot.empty() ? "-" : cannot);
  }
  fmt::print("{}\n", problem.empty() ? "* is the default device" : problem);
}

void print_json() {
  std::string problem, chosen = default_selector(problem);
  nlohmann::ordered_json root;
  root["library"] = fmt::format("clutch {}", clutch::version());
  root["default"] = chosen.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(chosen);
  root["devices"] = nlohmann::ordered_json::array();
  for (const Device& d : clutch::devices()) {
    std::string broken;
    const DeviceTraits* traits = usable_traits(d, broken);
    const DeviceTraits t = traits ? *traits : DeviceTraits{};
    // One assignment for each entry, because compilers with sanitizers take half a minute for a list of pairs.
    nlohmann::ordered_json row;
    row["index"] = d.index();
    row["selector"] = d.selector();
    row["name"] = d.name();
    row["type"] = clutch::name(d.type());
    row["vendor"] = d.vendor();
    row["platform"] = d.platform();
    row["driver"] = d.driver_version();
    row["uuid"] = d.uuid();
    row["isa"] = clutch::detail::isa_of(d);
    row["compute_units"] = t.compute_units;
    row["global_bytes"] = t.global_bytes;
    row["max_alloc_bytes"] = t.max_alloc_bytes;
    row["max_work_group"] = t.max_work_group;
    row["local_bytes"] = t.local_bytes;
    row["cache_bytes"] = t.cache_bytes;
    row["opencl_c"] = t.opencl_c;
    row["native_width_f32"] = t.native_width_f32;
    row["native_width_f64"] = t.native_width_f64;
    row["command_buffer"] = revision(t.command_buffer);
    row["simulator"] = t.simulator;
    for (const Ability& a : abilities()) row["can"][a.name] = a.has(t);
    row["quirks"] = d.quirks();
    if (!traits) row["out_of_order"] = broken;
    root["devices"].push_back(std::move(row));
  }
  fmt::print("{}\n", root.dump(1));
}

void print_settings(bool markdown) {
  if (markdown) {
    fmt::print("| variable | values | default | meaning |\n|---|---|---|---|\n");
    for (const auto& s : clutch::settings()) {
      std::string values;
      for (char c : s.type) values += c == '|' ? std::string(" \\| ") : std::string(1, c);
      fmt::print("| `{}` | {} | {} | {} |\n", s.name, values, s.default_value.empty() ? "(empty)" : fmt::format("`{}`", s.default_value), s.doc);
    }
    return;
  }
  for (const auto& s : clutch::settings())
    fmt::print("{:<26} {:<28} {}{}\n{:<26} {}\n", s.name, s.value.empty() ? "(empty)" : s.value, s.type, s.from_environment ? "  [environment]" : "", "",
               s.doc);
}

std::string readable(std::uint64_t bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

int show_cache(bool clear) {
  const std::string folder = clutch::cache_directory();
  if (folder.empty()) {
    fmt::print("the disk cache is off\n");
    return 0;
  }
  if (clear) {
    const clutch::CacheUsage removed = clutch::clear_cache();
    fmt::print("removed  {} files, {}\n", removed.files, readable(removed.bytes));
  }
  const clutch::CacheUsage usage = clutch::cache_usage();
  fmt::print("folder   {}\nholds    {} files, {}\n", folder, usage.files, readable(usage.bytes));
  fmt::print("limit    {} (CLUTCH_CACHE_SIZE)\n", usage.limit == 0 ? "none" : readable(usage.limit));
  if (!usage.refusal.empty()) fmt::print("PROBLEM  {}\n", usage.refusal);
  return usage.refusal.empty() ? 0 : 1;
}

/// Prefix of lines from --probe; drivers may print other lines.
constexpr std::string_view kLogged = "logged: ";

/// Runs a small kernel on one device, and a product of bytes, which triggers the traits that are tested at first use. --doctor runs this in a child process, so
/// that a crash of the driver ends the child alone. Log lines go to stdout.
int probe(int index) {
  clutch::detail::set_environment("CLUTCH_LOG", "warn");
  clutch::set_log_sink([](clutch::LogLevel, std::string_view text) { fmt::print("{}{}\n", kLogged, text); });
  Device d = clutch::device(index);
  clutch::Tensor t = clutch::arange(0, 1000, 1, {.device = d});
  clutch::addcmul_(t, t, t);
  if (t.to_host<float>()[999] != 999.0f + 999.0f * 999.0f) return 3;
  clutch::Tensor bytes = clutch::full({64, 64}, 1, {.dtype = clutch::DType::i8, .device = d});
  return clutch::linalg::matmul(bytes, bytes.mT()).to_host<std::int32_t>()[63] == 64 ? 0 : 3;
}

/// The lines that a program printed.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) lines.push_back(text.substr(at, end - at));
  return lines;
}

/// Why files that the library keeps are not used, one text each: programs, self-tests and rooflines of the cache folder, then the tuning file.
std::vector<std::string> refused_files(const std::filesystem::path& cache) {
  std::vector<std::string> refusals;
  auto note = [&](const PrivateBytes& read) {
    if (!read.refusal.empty()) refusals.push_back(read.refusal);
  };
  if (!cache.empty())
    for (const char* below : {"programs", "devices"}) {
      const PrivateFolder folder(cache, below);
      for (const PrivateFolder::File& file : folder.list()) note({.bytes = {}, .refusal = folder.judge(file.name)});
    }
  const std::filesystem::path tuning = clutch::tune::file();
  if (tuning.empty()) return refusals;
  if (tuning.parent_path() == cache)
    note(PrivateFolder(cache).read(tuning.filename().string()));
  else
    note(read_private_file(tuning));
  return refusals;
}

int doctor() {
  int problems = 0;
  auto line = [&](bool good, const std::string& text) {
    fmt::print("{} {}\n", good ? "ok      " : "PROBLEM ", text);
    problems += !good;
  };
  fmt::print("{}", clutch::build_info());
  const char* vendors = std::getenv("OCL_ICD_VENDORS");
  fmt::print("loader   drivers from {}\n", vendors ? vendors : "/etc/OpenCL/vendors");
  int count = clutch::device_count();
  line(count > 0, fmt::format("{} devices", count));
  std::string problem, chosen = default_selector(problem);
  line(!chosen.empty(), chosen.empty() ? problem : fmt::format("default device {}", chosen));
  const std::string folder = clutch::cache_directory();
  const std::string refusal = folder.empty() ? std::string() : clutch::cache_usage().refusal;
  const std::vector<std::string> files = refused_files(folder);
  std::set<std::string> told;
  for (const Device& d : clutch::devices()) {
    const ProgramRun run = run_program(program_file(), {"--probe", fmt::format("{}", d.index())}, Keep::output);
    const bool good = run.end == ProgramRun::End::exited && run.status == 0;
    line(good, fmt::format("device {}: a kernel {}", d.index(), good ? "ran and its result is right" : "failed, crashed or gave a wrong result"));
    for (const std::string& text : lines_of(run.kept))
      // Refusals of the cache and of files are reported in lines of their own.
      if (text.starts_with(kLogged) && (refusal.empty() || text.find(refusal) == std::string::npos) &&
          std::none_of(files.begin(), files.end(), [&](const std::string& why) { return text.find(why) != std::string::npos; }) && told.insert(text).second)
        line(false, fmt::format("device {}: {}", d.index(), text.substr(kLogged.size())));
    for (const std::string& quirk : d.quirks()) fmt::print("quirk    device {}: {}\n", d.index(), quirk);
  }
  std::error_code ignored;
  const bool written = folder.empty() || !std::filesystem::exists(folder, ignored) || may_write(folder);
  if (folder.empty())
    line(true, "the disk cache is off");
  else
    line(refusal.empty() && written,
         !refusal.empty() ? refusal : fmt::format("cache folder {}{}", folder, written ? "" : " cannot be written: programs are built by each process"));
  for (const std::string& why : files) line(false, why);
  fmt::print("{}\n", problems == 0 ? "no problems" : fmt::format("{} problem{}", problems, problems == 1 ? "" : "s"));
  return problems == 0 ? 0 : 1;
}

int command(int argc, char** argv) {
  CLI::App app{"Lists OpenCL devices as clutch sees them."};
  bool json = false, settings = false, markdown = false, run_doctor = false;
  int index = -1;
  std::string cache;
  app.add_flag("--json", json, "machine-readable");
  app.add_flag("--settings", settings, "list the environment variables and what they are set to");
  app.add_flag("--markdown", markdown, "with --settings: the table of docs/settings.md");
  app.add_flag("--doctor", run_doctor, "check loader, drivers, cache folder, and run a kernel on each device");
  CLI::Option* show = app.add_option("--cache", cache, "show the disk cache's folder, contents and limit; --cache clear empties it");
  show->expected(0, 1)->check(CLI::IsMember({"clear"}))->type_name("[clear]");
  app.add_option("--probe", index, "internal: run a kernel on one device")->group("");
  CLI11_PARSE(app, argc, argv);
  if (index >= 0) return probe(index);
  if (run_doctor) return doctor();
  if (*show) return show_cache(cache == "clear");
  if (settings)
    print_settings(markdown);
  else if (json)
    print_json();
  else
    print_list();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "clutch-devices: {}\n", e.what());
    return 2;
  }
}
