// SPDX-License-Identifier: Apache-2.0
#include "runtime/dot_products.hpp"

#include <clutch/kernel.hpp>

#include "graph/capture.hpp"
#include "program/disk_cache.hpp"
#include "runtime/probe.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

extern char** environ;

namespace clutch::inline v0::detail {
namespace {

bool has_instruction() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

/// The program that tries: beside the library, or the folder of the program that holds it, or where it is installed.
std::filesystem::path probe_path() {
  Dl_info info{};
  std::error_code error;
  if (::dladdr(reinterpret_cast<const void*>(&probe_dot_products), &info) != 0 && info.dli_fname) {
    const std::filesystem::path folder = std::filesystem::path(info.dli_fname).parent_path();
    for (const char* at : {"clutch-probe", "../clutch-probe", CLUTCH_PROBE_FROM_LIBRARY})
      if (std::filesystem::exists(folder / at, error)) return folder / at;
  }
  return {};
}

/// Whether the program runs to its end and is content; nothing if it could not try.
std::optional<bool> try_in_a_process(const Runtime& runtime, const std::filesystem::path& program) {
  const std::string path = program.string(), index = fmt::format("{}", runtime.device().index);
  const char* arguments[] = {path.c_str(), index.c_str(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, path.c_str(), nullptr, nullptr, const_cast<char**>(arguments), environ) != 0) return std::nullopt;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (!WIFEXITED(status)) return false;  // it died of it
  return WEXITSTATUS(status) > 1 ? std::nullopt : std::optional(WEXITSTATUS(status) == 0);
}

bool find_out(Runtime& runtime) {
  const DeviceTraits& t = runtime.traits();
  // PoCL's kernels are the host's own code.
  if (!has_instruction() || t.type != DeviceType::cpu || t.native_width_f32 < 16) return false;
  if (device_key(runtime).find("Portable Computing Language") == std::string::npos) return false;
  CaptureExempt exempt;
  const Digest key = sha256("dot products 2|" + device_key(runtime));
  std::filesystem::path folder = cache_folder(), file = folder.empty() ? folder : folder / "devices" / (to_hex(key).substr(0, 32) + ".dot_products");
  if (!file.empty())
    if (std::optional<std::string> kept = cache_read(file, key)) return *kept == "yes";
  const std::filesystem::path program = probe_path();
  if (program.empty()) {
    log_line(LogLevel::info, "dot products of bytes are not used: there is no clutch-probe to try them");
    return false;
  }
  const std::optional<bool> works = try_in_a_process(runtime, program);
  if (works && !file.empty()) cache_write(file, key, *works ? "yes" : "no");
  return works.value_or(false);
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

}  // namespace clutch::inline v0::detail
