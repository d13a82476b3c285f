// SPDX-License-Identifier: Apache-2.0
#include "encode/dot_products.hpp"

#include <clutch/kernel.hpp>

#include "encode/probe.hpp"
#include "program/disk_cache.hpp"
#include "runtime/recorder.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"
#include "support/private_folder.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

bool has_instruction() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

struct Probe {
  std::filesystem::path program;
  std::string problem;  ///< reason if `program` is empty
};
/// Finds the program clutch-probe beside the library (or the executable that contains the library), in the folder above, or in the installation's folder. Its
/// owner must be the library's owner or a user whom the process trusts anyway, and others may write to it only if they may write to the library.
Probe find_probe() {
  const std::filesystem::path library = file_of([] {});
  if (library.empty()) return {{}, "the library's own file is not known"};
  const std::filesystem::path folder = library.parent_path();
  for (const char* at : {"clutch-probe", "../clutch-probe", CLUTCH_PROBE_FROM_LIBRARY}) {
    const std::filesystem::path program = (folder / at) += kProgramSuffix;
    if (is_of_trusted_owner(program, library)) return {program, {}};
  }
  return {{}, fmt::format("clutch-probe is neither next to {} nor at {}", library.string(), (folder / CLUTCH_PROBE_FROM_LIBRARY).string())};
}

struct Trial {
  std::optional<bool> works;
  std::string problem;  ///< reason if the trial could not run
};

/// Runs the program and returns whether it succeeded. Text that the program, its loader or its driver prints does not reach the caller's output.
Trial try_in_a_process(const Runtime& runtime, const std::filesystem::path& program) {
  const ProgramRun run = run_program(program, {fmt::format("{}", runtime.device().index)}, Keep::errors, std::chrono::seconds(60));
  const std::string path = program.string();
  switch (run.end) {
    case ProgramRun::End::not_started: return {std::nullopt, fmt::format("{} cannot be started: {}", path, run.problem)};
    case ProgramRun::End::timed_out: return {std::nullopt, fmt::format("{} did not end within 60 s", path)};
    case ProgramRun::End::killed: return {std::nullopt, fmt::format("{} was ended by a signal from outside", path)};
    case ProgramRun::End::crashed: return {false, {}};  // so the device cannot run the instruction
    case ProgramRun::End::exited: break;
  }
  if (run.status == 0 || run.status == 1) return {run.status == 0, {}};
  const std::string line = run.kept.substr(0, std::min<std::size_t>(run.kept.find('\n'), 299));
  return {std::nullopt, fmt::format("{} ended with status {}{}{}", path, run.status, line.empty() ? "" : ": ", line)};
}

bool find_out(Runtime& runtime) {
  const DeviceTraits& t = runtime.traits();
  // On PoCL kernels run as code of the host's CPU, so CPUID tells which instructions they may use.
  if (!has_instruction() || t.type != DeviceType::cpu || t.native_width_f32 < 16) return false;
  if (device_key(runtime).find("Portable Computing Language") == std::string::npos) return false;
  RecordingExempt exempt;
  const Digest key = sha256("dot products 2|" + device_key(runtime));
  constexpr std::string_view kKind = ".dot_products";
  if (std::optional<std::string> kept = kept_result(key, kKind)) return *kept == "yes";
  const Probe probe = find_probe();
  const Trial trial = probe.program.empty() ? Trial{std::nullopt, probe.problem} : try_in_a_process(runtime, probe.program);
  if (!trial.works)
    log_once(LogLevel::warn, fmt::format("products of bytes go without the CPU's dot products, several times slower: {}", trial.problem));
  else
    keep_result(key, kKind, *trial.works ? "yes" : "no");
  return trial.works.value_or(false);
}

}  // namespace

bool dot_products(Runtime& runtime) {
  return runtime.dot_products([&] { return !runtime.adopted() && find_out(runtime); });
}

bool probe_dot_products(const Device& device) {
  Runtime& runtime = runtime_for(device);
  Stream stream(runtime.default_stream());
  std::vector<std::uint32_t> words(48);
  for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = (i + 1) * 2654435761u;
  words[0] = words[16] = 0xFFFFFFFFu, words[1] = 0xFFFFFFFFu, words[17] = 0x80808080u;
  Tensor in = from_bytes(words.data(), words.size() * 4, {48}, {.dtype = DType::i32, .device = device}, stream);
  Tensor out = empty({16}, {.dtype = DType::i32, .device = device}, stream);
  Kernel& kernel = runtime.programs().find("self_test", "self_test_dot", {});
  {
    Encoder encoder(stream, "self_test");
    encoder.output(out).input(in).dispatch(KernelHandle(&kernel), {.global = 1, .local = 1});
  }
  std::vector<std::int32_t> got = out.to_host<std::int32_t>(stream);
  for (std::size_t i = 0; i < 16; ++i) {
    std::uint32_t want = words[32 + i];
    for (int byte = 0; byte < 32; byte += 8)
      want += static_cast<std::uint32_t>(static_cast<std::int32_t>(words[i] >> byte & 255) * static_cast<std::int8_t>(words[16 + i] >> byte & 255));
    if (static_cast<std::uint32_t>(got[i]) != want) return false;
  }
  return true;
}

}}}  // namespace clutch::v0::detail
