// SPDX-License-Identifier: Apache-2.0
#include "distributed/place.hpp"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/profiler/combined_traceback.h>

#include <dlfcn.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <unordered_set>

namespace torch_clutch {
namespace {

/// The folder of PyTorch's Python: ours is lib/libtorch_cpu.so in it.
const std::string& torch_folder() {
  static const auto* found = [] {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&torch::symbolize), &info) == 0) return new std::string;
    return new std::string(std::filesystem::path(info.dli_fname).parent_path().parent_path().string() + "/");
  }();
  return *found;
}

/// Text that stays: records of calls outlive them.
const char* kept(const std::string& text) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return all.insert(text).first->c_str();
}

}  // namespace

clutch::dist::SourceLine place_in_python() {
  const auto trace = torch::CapturedTraceback::gather(/*python=*/true, /*script=*/false, /*cpp=*/false);
  const torch::SymbolizedTracebacks symbols = torch::symbolize({trace.get()});
  for (const auto& frames : symbols.tracebacks)
    for (const auto number : frames) {
      const torch::unwind::Frame& frame = symbols.all_frames[number];
      if (frame.filename.starts_with(torch_folder())) continue;
      return {kept(frame.filename), static_cast<unsigned>(frame.lineno), kept(frame.funcname)};
    }
  return {};
}

}  // namespace torch_clutch
