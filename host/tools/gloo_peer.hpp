// SPDX-License-Identifier: Apache-2.0
// Ranks of torch.distributed's gloo next to ours: a Python process each, which waits for its input and times what that asks for.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace clutch::tools {

class GlooPeer {
 public:
  /// Starts CLUTCH_PEER_PYTHON, before MPI is initialized; null without it.
  static std::unique_ptr<GlooPeer> start();
  /// It ends with us: its input closes.
  ~GlooPeer();
  GlooPeer(const GlooPeer&) = delete;
  GlooPeer& operator=(const GlooPeer&) = delete;
  /// All ranks' processes meet by a file that does not exist yet. Returns the peer's name. Errors: io.
  std::string meet(int rank, int ranks, const std::string& file);
  /// The collective of the calls to come, of so many numbers in all. Returns how many numbers of this rank's result are wrong; -1: it has no such collective.
  std::int64_t prepare(const std::string& op, std::int64_t count);
  /// Microseconds of a call, on this rank. All ranks ask at once.
  double time_us(int times);

 private:
  GlooPeer() = default;
  std::string ask(const std::string& request);
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

}  // namespace clutch::tools
