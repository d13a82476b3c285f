// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace clutch::testing {

/// What may be skipped: tests whose name begins so, on devices that lack the trait. Anything else that skips fails.
struct Skip {
  std::string_view test_prefix;
  std::string_view trait;
};
inline constexpr Skip kSkips[] = {
    {"Addc.", "fp64"},
    {"Cache.", "root"},
    {"Captured.", "fp64"},
    {"CommandBuffers.", "command buffers"},
    {"Copy.", "fp64"},
    {"Cumsum.", "fp64"},
    {"Differential.", "fp64"},
    {"Differential.", "second device"},
    {"Draws.", "command buffers"},
    {"Eigh.", "fp64"},
    {"Fill.", "fp64"},
    {"Flex.", "fp64"},
    {"FlexMatrix.", "shuffles of sub-groups"},
    {"Graphs.", "command buffers"},
    {"Itself/FaultLayer.", "command buffers"},
    {"Kernels.", "SPIR-V"},
    {"Kernels.", "cpu device"},
    {"Map.", "fp64"},
    {"Math.", "fp64"},
    {"Matmul.", "fp64"},
    {"Mutations.", "PoCL"},
    {"OpenclMods.", "fp64"},
    {"Optim.", "command buffers"},
    {"Optim.", "fp64"},
    {"Packs.", "PoCL"},
    {"Problems.", "fp64"},
    {"Profiler.", "device_timer"},
    {"Random.", "fp64"},
    {"Reduce.", "fp64"},
    {"Replays.", "command buffers"},
    {"Rowwise.", "fp64"},
    {"SavedBits.", "denormals"},
    {"SavedBits.", "fp64"},
    {"SavedGraphs.", "command buffers"},
    {"Scatter.", "fp64"},
    {"Segment.", "fp64"},
    {"Sparse24.", "fp64"},
    {"Streams.", "device_timer"},
    {"Streams.", "second device"},
    {"Tensors.", "second device"},
    {"Training.", "command buffers"},
    {"Varlen.", "fp64"},
};

}  // namespace clutch::testing
