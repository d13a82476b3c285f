// SPDX-License-Identifier: Apache-2.0
#include "runtime/dot_products.hpp"

#include <clutch/kernel.hpp>

#include "program/disk_cache.hpp"
#include "runtime/probe.hpp"
#include "runtime/recorder.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"
#include "support/private_folder.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

extern char** environ;

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
/// owner must be the library's owner or a user whom the process trusts anyway.
Probe find_probe() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&probe_dot_products), &info) == 0 || !info.dli_fname) return {{}, "the library's own file is not known"};
  const std::filesystem::path folder = std::filesystem::path(info.dli_fname).parent_path();
  struct stat library {
  }, probe{};
  const bool library_is_known = ::stat(info.dli_fname, &library) == 0;
  for (const char* at : {"clutch-probe", "../clutch-probe", CLUTCH_PROBE_FROM_LIBRARY}) {
    const std::filesystem::path program = folder / at;
    if (::stat(program.c_str(), &probe) != 0 || !S_ISREG(probe.st_mode)) continue;
    if (is_trusted_owner(probe.st_uid) || (library_is_known && probe.st_uid == library.st_uid)) return {program, {}};
  }
  return {{}, fmt::format("clutch-probe is neither beside {} nor at {}", info.dli_fname, (folder / CLUTCH_PROBE_FROM_LIBRARY).string())};
}

struct Trial {
  std::optional<bool> works;
  std::string problem;  ///< reason if the trial could not run
};

/// First line of a file that is open for reading.
std::string first_line(std::FILE* file) {
  std::rewind(file);
  char line[300] = {};
  std::string text = std::fgets(line, sizeof line, file) ? line : "";
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

/// Runs the program and returns whether it succeeded. What the program, its loader and its driver print does not reach the caller's output.
Trial try_in_a_process(const Runtime& runtime, const std::filesystem::path& program) {
  const std::string path = program.string(), index = fmt::format("{}", runtime.device().index);
  const char* arguments[] = {path.c_str(), index.c_str(), nullptr};
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> said(std::tmpfile());
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (said)
    ::posix_spawn_file_actions_adddup2(&actions, ::fileno(said.get()), STDERR_FILENO);
  else
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, path.c_str(), &actions, nullptr, const_cast<char**>(arguments), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {std::nullopt, fmt::format("{} cannot be started: {}", path, std::generic_category().message(error))};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return {std::nullopt, fmt::format("{} did not end within 60 s", path)};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (!WIFEXITED(status)) return {false, {}};  // a signal ended the program, so the device cannot run the instruction
  if (WEXITSTATUS(status) <= 1) return {WEXITSTATUS(status) == 0, {}};
  const std::string line = said ? first_line(said.get()) : std::string();
  return {std::nullopt, fmt::format("{} ended with status {}{}{}", path, WEXITSTATUS(status), line.empty() ? "" : ": ", line)};
}

bool find_out(Runtime& runtime) {
  const DeviceTraits& t = runtime.traits();
  // On PoCL kernels run as code of the host's CPU, so CPUID tells which instructions they may use.
  if (!has_instruction() || t.type != DeviceType::cpu || t.native_width_f32 < 16) return false;
  if (device_key(runtime).find("Portable Computing Language") == std::string::npos) return false;
  RecordingExempt exempt;
  const Digest key = sha256("dot products 2|" + device_key(runtime));
  std::filesystem::path folder = cache_folder(), file = folder.empty() ? folder : folder / "devices" / (to_hex(key).substr(0, 32) + ".dot_products");
  if (!file.empty())
    if (std::optional<std::string> kept = cache_read(file, key)) return *kept == "yes";
  const Probe probe = find_probe();
  const Trial trial = probe.program.empty() ? Trial{std::nullopt, probe.problem} : try_in_a_process(runtime, probe.program);
  if (!trial.works)
    log_once(LogLevel::warn, fmt::format("products of bytes go without the CPU's dot products, several times slower: {}", trial.problem));
  else if (!file.empty())
    cache_write(file, key, *trial.works ? "yes" : "no");
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
