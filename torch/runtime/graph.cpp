// SPDX-License-Identifier: Apache-2.0
// torch.accelerator.Graph: a clutch::Graph.
#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <ATen/core/GraphImplInterface.h>
#include <clutch/graph.hpp>

namespace torch_clutch {
namespace {

clutch::CaptureMode capture_mode(at::GraphCaptureMode mode) {
  switch (mode) {
    case at::GraphCaptureMode::ThreadLocal: return clutch::CaptureMode::thread_local_;
    case at::GraphCaptureMode::Relaxed: return clutch::CaptureMode::relaxed;
    default: return clutch::CaptureMode::global;
  }
}

}  // namespace

struct GraphImpl final : at::GraphImplInterface {
  explicit GraphImpl(const at::GraphImplArgs& args) : graph(clutch::GraphOptions{.keep_graph = args.keep_graph}) {}

  void capture_begin(at::MempoolId_t pool, at::GraphCaptureMode mode) override {
    translated([&] {
      graph.capture_begin(clutch::current_stream(device(current_device())), {.mode = capture_mode(mode), .pool = {.first = pool.first, .second = pool.second}});
    });
  }
  void capture_end() override {
    translated([&] { graph.capture_end(); });
  }
  void instantiate() override {
    translated([&] { graph.instantiate(); });
  }
  void replay() override {
    translated([&] { graph.replay(clutch::current_stream(device(current_device()))); });
  }
  void reset() override {
    translated([&] { graph.reset(); });
  }
  at::MempoolId_t pool() const override {
    const clutch::PoolId id = graph.pool();
    return {id.first, id.second};
  }
  void enable_debug_mode() override { debug = true; }
  void debug_dump(const std::string& path) override {
    TORCH_CHECK(debug, "clutch: call enable_debug_mode() of the graph before debug_dump()");
    translated([&] { graph.debug_dump(path); });
  }

  clutch::Graph graph;
  bool debug = false;
};

}  // namespace torch_clutch

namespace at {
// The key is the device's name in capitals.
REGISTER_GRAPH_IMPL(CLUTCH, ::torch_clutch::GraphImpl)
}  // namespace at
