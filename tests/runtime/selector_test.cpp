// SPDX-License-Identifier: Apache-2.0
#include "runtime/selector.hpp"

#include "support/fixture.hpp"

namespace clutch::testing { namespace {

using detail::DeviceFacts;
using Indices = std::vector<int>;

/// A machine of made-up vendors: 0 AMD GPU, 1 Intel CPU, 2 Intel GPU, 3 NVIDIA GPU, 4 NVIDIA GPU, 5 Oclgrind, 6 PoCL CPU, 7 Apple.
std::vector<DeviceFacts> machine() {
  return {
      {0, 0, "AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.", "gfx942", "aa01", DeviceType::gpu, false},
      {1, 0, "Intel(R) OpenCL", "Intel(R) Corporation", "Xeon", "", DeviceType::cpu, false},
      {1, 1, "Intel(R) OpenCL", "Intel(R) Corporation", "Data Center GPU Max", "bb02", DeviceType::gpu, false},
      {2, 0, "NVIDIA CUDA", "NVIDIA Corporation", "H200", "cc03", DeviceType::gpu, false},
      {2, 1, "NVIDIA CUDA", "NVIDIA Corporation", "L4", "cc04", DeviceType::gpu, false},
      {3, 0, "Oclgrind", "University of Bristol", "Oclgrind Simulator", "", DeviceType::gpu, true},
      {4, 0, "Portable Computing Language", "GenuineIntel", "pthread-skylake", "", DeviceType::cpu, false},
      {5, 0, "Apple", "Apple", "M9", "", DeviceType::gpu, false},
  };
}

Indices match(std::string_view selector) { return detail::match_selector(selector, machine()); }

TEST(Selector, TypeWordsIndicesAndNames) {
  EXPECT_EQ(match("cpu"), (Indices{1, 6}));
  EXPECT_EQ(match("gpu:1"), (Indices{2}));
  EXPECT_EQ(match("3"), (Indices{3}));
  EXPECT_EQ(match("4,0"), (Indices{4, 0})) << "the selector's order";
  EXPECT_EQ(match("h200"), (Indices{3}));
  EXPECT_EQ(match("Portable"), (Indices{6}));
  EXPECT_EQ(match("*").size(), 8u);
  EXPECT_EQ(match(" GPU : 0 "), (Indices{0}));
}

TEST(Selector, PlatformAndDevice) {
  EXPECT_EQ(match("2:1"), (Indices{4}));
  EXPECT_EQ(match("intel:0"), (Indices{1}));
  EXPECT_EQ(match("intel:*"), (Indices{1, 2}));
  EXPECT_EQ(match("nvidia:l4"), (Indices{4}));
  EXPECT_EQ(match("intel:gpu"), (Indices{2}));
  EXPECT_EQ(match(":GPU:1"), (Indices{2})) << "OpenCV's form";
  EXPECT_EQ(match(":CPU:"), (Indices{1, 6}));
  EXPECT_EQ(match("Intel:GPU:max"), (Indices{2}));
}

TEST(Selector, PyTorchsStrings) {
  EXPECT_EQ(match("cuda"), (Indices{3, 4}));
  EXPECT_EQ(match("cuda:1"), (Indices{4}));
  EXPECT_EQ(match("cuda:0,1"), (Indices{3, 4}));
  EXPECT_EQ(match("hip:0"), (Indices{0}));
  EXPECT_EQ(match("xpu"), (Indices{2})) << "PoCL on an Intel CPU is no xpu";
  EXPECT_EQ(match("mps"), (Indices{7}));
  EXPECT_EQ(match("opencl:1"), (Indices{1}));
  EXPECT_EQ(match("cpu:1"), (Indices{6}));
}

TEST(Selector, ListsWithDiscards) {
  EXPECT_EQ(match("gpu;!nvidia"), (Indices{0, 2, 5, 7}));
  EXPECT_EQ(match("!gpu"), (Indices{1, 6}));
  EXPECT_EQ(match("cpu;cuda:0"), (Indices{1, 6, 3}));
  EXPECT_EQ(match("opencl:cpu;!opencl:1"), (Indices{6}));
  EXPECT_EQ(match("gpu-cc04"), (Indices{4}));
}

TEST(Selector, ErrorsListTheChoices) {
  EXPECT_EQ(code_of([] { match("cuda:2"); }), ErrorCode::no_device);
  EXPECT_NE(message_of([] { match("fpga"); }).find("3  or  2:0  gpu  H200 (NVIDIA CUDA)"), std::string::npos);
  EXPECT_EQ(code_of([] { match(""); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { match("a:b:c:d"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { match("cpu;;gpu"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { match("0.1"); }), ErrorCode::not_supported);
  EXPECT_EQ(code_of([] { match("99"); }), ErrorCode::no_device);
  EXPECT_EQ(code_of([] { match("-1"); }), ErrorCode::no_device);
}

TEST(Selector, VisibleDevicesByCudasRules) {
  auto visible = [](std::string_view list) { return detail::visible_devices(list, machine()); };
  EXPECT_EQ(visible("0,2,-1,1"), (Indices{0, 2})) << "an invalid entry hides itself and the rest";
  EXPECT_EQ(visible("4,3"), (Indices{4, 3})) << "the order renumbers";
  EXPECT_EQ(visible(""), (Indices{}));
  EXPECT_EQ(visible("-1"), (Indices{}));
  EXPECT_EQ(visible("1,1,2"), (Indices{1}));
  EXPECT_EQ(visible("GPU-cc03,8"), (Indices{3}));
  EXPECT_EQ(visible("GPU-cc,0"), (Indices{})) << "a prefix of two devices is invalid";
  EXPECT_EQ(visible("0,x,1"), (Indices{0}));
}

TEST(Selector, DefaultIsAGpuAndNeverASimulatorFirst) {
  auto all = machine();
  EXPECT_EQ(detail::default_choice(all), 0);
  std::vector<DeviceFacts> few{all[5], all[6]};
  EXPECT_EQ(detail::default_choice(few), 1);
  few.pop_back();
  EXPECT_EQ(detail::default_choice(few), 0);
  EXPECT_EQ(detail::default_choice({}), -1);
}

}}  // namespace clutch::testing
