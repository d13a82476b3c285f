// SPDX-License-Identifier: Apache-2.0
#include "peers/torch.hpp"

#include "peers/torch_peer_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace clutch::bench {

namespace {

/// `got` names what came in place of an answer.
[[noreturn]] void fail(const std::string& got) { throw Error(ErrorCode::io, "clutch-bench", "the peer of CLUTCH_PEER_PYTHON must run and answer, got " + got); }

/// The Python process, started once.
class Process {
 public:
  explicit Process(const std::string& python) {
    int down[2], up[2];
    if (::pipe(down) != 0 || ::pipe(up) != 0) fail("no pipe");
    ::signal(SIGPIPE, SIG_IGN);  // a peer that died is an Error, not our end
    child_ = ::fork();
    if (child_ < 0) fail("no process");
    if (child_ == 0) {
      ::dup2(down[0], 0);
      ::dup2(up[1], 1);
      for (int fd : {down[0], down[1], up[0], up[1]}) ::close(fd);
      ::execlp(python.c_str(), python.c_str(), "-c", kTorchPeer, static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(down[0]);
    ::close(up[1]);
    to_ = ::fdopen(down[1], "w");
    from_ = ::fdopen(up[0], "r");
    nlohmann::json hello = read();
    name_ = fmt::format("torch {}", hello.value("version", "?"));
  }
  const std::string& name() const { return name_; }
  nlohmann::json ask(const nlohmann::json& request) {
    std::fputs((request.dump() + "\n").c_str(), to_);
    std::fflush(to_);
    nlohmann::json answer = read();
    if (answer.contains("error")) fail("its error: " + answer["error"].get<std::string>());
    return answer;
  }

 private:
  nlohmann::json read() {
    std::string line;
    for (int c; (c = std::fgetc(from_)) != EOF && c != '\n';) line.push_back(static_cast<char>(c));
    nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
    if (!answer.is_object()) fail(line.empty() ? "its end (is torch installed there?)" : "the text: " + line);
    return answer;
  }

  pid_t child_ = -1;
  std::FILE *to_ = nullptr, *from_ = nullptr;
  std::string name_;
};

/// Null without CLUTCH_PEER_PYTHON. It ends with us: its input closes.
Process* process() {
  static Process* one = []() -> Process* {
    for (const auto& setting : settings())
      if (setting.name == "CLUTCH_PEER_PYTHON" && !setting.value.empty()) return new Process(setting.value);
    return nullptr;
  }();
  return one;
}

}  // namespace

std::string torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::f32: return "torch.float32";
    case DType::f64: return "torch.float64";
    case DType::f16: return "torch.float16";
    case DType::bf16: return "torch.bfloat16";
    case DType::c64: return "torch.complex64";
    case DType::c128: return "torch.complex128";
    default: throw Error(ErrorCode::invalid_dtype, "clutch-bench", fmt::format("{} has no peer in torch", clutch::name(dtype)));
  }
}

void add_torch_peer(Work& work, const Device& device, const std::string& setup, const std::string& call, const std::string& what) {
  Process* peer = process();
  if (!peer) return;
  auto ready = std::make_shared<bool>(false);
  bool gpu = device.type() == DeviceType::gpu;
  // A row's peers have variables of their own; the next row's take their place.
  const std::size_t slot = work.peers.size();
  work.peers.push_back({.name = what.empty() ? peer->name() : fmt::format("{} {}", peer->name(), what), .timed = [=](int reps) {
                          if (!*ready) peer->ask({{"slot", slot}, {"setup", setup}, {"call", call}, {"gpu", gpu}});
                          *ready = true;
                          return peer->ask({{"slot", slot}, {"reps", reps}}).at("seconds").get<double>();
                        }});
}

}  // namespace clutch::bench
