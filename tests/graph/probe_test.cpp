// SPDX-License-Identifier: Apache-2.0
// The raw faults of drivers' command buffers that the native backend avoids: where the quirk table names one, the probe must show it.
#include "support/fixture.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include <sys/wait.h>

namespace clutch::testing { namespace {

struct Answer {
  int status = 0;  ///< of the child, as wait() gives it
  double number = -1;
};

Answer probe(const Device& device, const char* what) {
  Answer answer;
  // AddressSanitizer, where the build has it, would turn the crash into an exit.
  const char* crash = "ASAN_OPTIONS=\"$ASAN_OPTIONS:handle_segv=0:handle_sigbus=0:handle_abort=0\"";
  FILE* pipe = ::popen(fmt::format("{} exec '{}' '{}' {} 2>/dev/null", crash, std::getenv("COMMAND_BUFFER_PROBE"), device.selector(), what).c_str(), "r");
  std::array<char, 64> line{};
  if (pipe && std::fgets(line.data(), line.size(), pipe)) answer.number = std::atof(line.data());
  answer.status = pipe ? ::pclose(pipe) : -1;
  return answer;
}

TEST(CommandBuffers, RawFaultsAreWhatTheQuirkTableSays) {
  CLUTCH_EACH_DEVICE(device) {
    if (skip_without(device, "command buffers", device.traits().command_buffer > 0)) continue;
    Answer arguments = probe(device, "arguments"), unset = probe(device, "unset"), times = probe(device, "times");
    if (known_bug(device, "command_buffer_arguments")) {
      EXPECT_EQ(arguments.number, 2) << "arguments are read at replay";
      EXPECT_TRUE(WIFSIGNALED(unset.status)) << "recording a kernel with unset arguments crashes";
    } else {
      EXPECT_EQ(arguments.number, 1);
      EXPECT_EQ(unset.status, 0);
    }
    if (known_bug(device, "command_buffer_times"))
      EXPECT_LT(times.number, 0.1);
    else
      EXPECT_GT(times.number, 0.6);
  }
}

}}  // namespace clutch::testing
