// SPDX-License-Identifier: Apache-2.0
// What the environment decides is decided once in a process, so each case is a child process.
#include "runtime/quirks.hpp"
#include "runtime/registry.hpp"
#include "support/fixture.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <unistd.h>

namespace clutch::testing { namespace {

std::string child(const std::string& environment, const std::string& mode) {
  const char* program = std::getenv("ENVIRONMENT_CHILD");  // set by ctest
  if (!program) throw std::runtime_error("ENVIRONMENT_CHILD must name the program environment_child");
  FILE* pipe = ::popen(("env " + environment + " " + program + " " + mode + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (pipe && std::fgets(buffer.data(), buffer.size(), pipe)) text += buffer.data();
  int status = pipe ? ::pclose(pipe) : -1;
  EXPECT_EQ(status, 0) << text;
  return text;
}

TEST(Environment, NoDriverAtAll) {
  const std::string none = "OCL_ICD_VENDORS=/nonexistent";
  EXPECT_EQ(child(none, "count"), "count 0\n");
  EXPECT_NE(child(none, "run").find("Error no_platform"), std::string::npos);
  EXPECT_NE(child(none, "run").find("pocl-opencl-icd"), std::string::npos);
  EXPECT_NE(child(none + " CLUTCH_DEVICE=gpu", "default").find("Error no_platform"), std::string::npos);
}

TEST(Environment, HidingAllDevices) {
  EXPECT_EQ(child("CLUTCH_VISIBLE_DEVICES=", "count"), "count 0\n");
  EXPECT_EQ(child("CLUTCH_VISIBLE_DEVICES=-1", "count"), "count 0\n");
  EXPECT_NE(child("CLUTCH_VISIBLE_DEVICES=", "run").find("hides every device"), std::string::npos);
  EXPECT_EQ(child("CLUTCH_VISIBLE_DEVICES=0,99", "count"), "count 1\n");
}

TEST(Environment, SelectorsCountAfterVisibility) {
  EXPECT_EQ(child("CLUTCH_DEVICE=0", "default"), "default " + device(0).selector() + "\n");
  std::string no = child("CLUTCH_DEVICE=no-such-device", "default");
  EXPECT_NE(no.find("Error no_device"), std::string::npos) << no;
  EXPECT_NE(no.find(device(0).name()), std::string::npos) << "the choices are listed: " << no;
  if (device_count() > 1) {
    EXPECT_EQ(child("CLUTCH_VISIBLE_DEVICES=1 CLUTCH_DEVICE=0", "default"), "default " + device(1).selector() + "\n");
  }
  EXPECT_NE(child("CLUTCH_DEVICE=cuda:7", "run").find("Error no_device"), std::string::npos) << "never a silent CPU";
}

TEST(Environment, BadSettingsAreErrors) {
  EXPECT_NE(child("CLUTCH_DEVICES=0", "run").find("Error invalid_setting"), std::string::npos);
  EXPECT_NE(child("CLUTCH_CACHE=maybe", "run").find("on|off|read"), std::string::npos);
}

// The driver compiles in threads of its own, with globals that the end of a process destroys (quirk exit_while_building).
TEST(Environment, AProcessEndsAfterTheWorkThatMainLeft) {
  const std::filesystem::path empty = std::filesystem::temp_directory_path() / ("clutch_exit_" + std::to_string(::getpid()));
  for (const Device& device : test_devices()) {
    if ((detail::claimed_traits(*device.record()).quirks & detail::kQuirkExitWhileBuilding) == 0) continue;
    const std::string of_device = "CLUTCH_DEVICE=" + std::to_string(device.index());
    EXPECT_EQ(child(of_device, "leave"), "left\nended\n");
    EXPECT_EQ(child(of_device + " CLUTCH_CACHE=off POCL_CACHE_DIR=" + empty.string(), "leave"), "left\nended\n") << "with all to compile";
    std::filesystem::remove_all(empty);
  }
}

TEST(Environment, PartitionsTellThatThreadsMoveWhereTheVariableCameTooLate) {
  for (const Device& device : test_devices()) {
    if (device.platform() != "Portable Computing Language" || device.traits().compute_units == 1) continue;
    const std::string of_device = "-u POCL_AFFINITY CLUTCH_DEVICE=" + std::to_string(device.index());
    EXPECT_EQ(child(of_device, "pin"), "threads\n");
    EXPECT_EQ(child(of_device + " POCL_AFFINITY=1", "pin"), "cores\n");
  }
}

TEST(Environment, RunsWithFreshAndTrustedSelfTests) {
  for (const char* mode : {"fresh", "off", "cached"}) EXPECT_EQ(child(std::string("CLUTCH_SELF_TEST=") + mode, "run"), "ran 12\n");
  EXPECT_EQ(child("CLUTCH_CACHE=off", "run"), "ran 12\n");
  EXPECT_NE(child("CLUTCH_CACHE_DIR=/proc/nowhere", "run").find("ran 12"), std::string::npos) << "an unwritable cache is no failure";
}

}}  // namespace clutch::testing
