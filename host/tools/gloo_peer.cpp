// SPDX-License-Identifier: Apache-2.0
#include "tools/gloo_peer.hpp"

#include "gloo_peer_text.hpp"

#include <clutch/error.hpp>
#include <clutch/settings.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <csignal>

namespace clutch::tools {

namespace {

/// `got` names what came in place of an answer.
[[noreturn]] void fail(const std::string& got) {
  throw Error(ErrorCode::io, "clutch-dist-bench", "the peer of CLUTCH_PEER_PYTHON must run and answer, got " + got);
}

}  // namespace

std::unique_ptr<GlooPeer> GlooPeer::start() {
  std::string python;
  for (const auto& setting : settings())
    if (setting.name == "CLUTCH_PEER_PYTHON") python = setting.value;
  if (python.empty()) return nullptr;
  int down[2], up[2];
  if (::pipe(down) != 0 || ::pipe(up) != 0) fail("no pipe");
  std::signal(SIGPIPE, SIG_IGN);  // a peer that died is an Error, not our end
  const pid_t child = ::fork();
  if (child < 0) fail("no process");
  if (child == 0) {
    ::dup2(down[0], 0);
    ::dup2(up[1], 1);
    for (const int fd : {down[0], down[1], up[0], up[1]}) ::close(fd);
    ::execlp(python.c_str(), python.c_str(), "-c", kGlooPeer, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(down[0]);
  ::close(up[1]);
  std::unique_ptr<GlooPeer> peer(new GlooPeer);
  peer->to_ = ::fdopen(down[1], "w"), peer->from_ = ::fdopen(up[0], "r");
  return peer;
}

GlooPeer::~GlooPeer() {
  if (to_ != nullptr) (void)std::fclose(to_);
  if (from_ != nullptr) (void)std::fclose(from_);
}

std::string GlooPeer::ask(const std::string& request) {
  (void)std::fputs((request + "\n").c_str(), to_);
  (void)std::fflush(to_);
  std::string line;
  for (int c; (c = std::fgetc(from_)) != EOF && c != '\n';) line.push_back(static_cast<char>(c));
  const nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
  if (!answer.is_object()) fail(line.empty() ? "its end (is torch installed there?)" : "the text: " + line);
  if (answer.contains("error")) fail("its error: " + answer["error"].get<std::string>());
  return line;
}

std::string GlooPeer::meet(int rank, int ranks, const std::string& file) {
  const auto hello = nlohmann::json::parse(ask(nlohmann::json{{"rank", rank}, {"ranks", ranks}, {"file", file}}.dump()));
  return fmt::format("gloo of torch {}", hello.value("version", "?"));
}

std::int64_t GlooPeer::prepare(const std::string& op, std::int64_t count) {
  const auto answer = nlohmann::json::parse(ask(nlohmann::json{{"op", op}, {"count", count}}.dump()));
  return answer.value("has", false) ? answer.value("wrong", std::int64_t{0}) : -1;
}

double GlooPeer::time_us(int times) { return nlohmann::json::parse(ask(nlohmann::json{{"reps", times}}.dump())).at("seconds").get<double>() * 1e6 / times; }

}  // namespace clutch::tools
