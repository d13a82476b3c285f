// SPDX-License-Identifier: Apache-2.0
// Device times of torch.autograd.profiler.profile(use_device="clutch", use_kineto=False), by events around each op; kineto.cpp has the kernels'
// own.
#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>
#include <clutch/event.hpp>

namespace torch_clutch { namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

struct Stubs final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex* index, ProfilerVoidEventStub* event, int64_t* host_ns) const override {
    if (index != nullptr) *index = current_device();
    auto made = std::make_shared<clutch::Event>();
    translated([&] { made->record(clutch::current_stream(device(current_device()))); });
    *event = std::move(made);
    if (host_ns != nullptr) *host_ns = c10::getTime();
  }
  float elapsed(const ProfilerVoidEventStub* start, const ProfilerVoidEventStub* end) const override {
    constexpr double kMicrosecondsOfMs = 1000;
    return static_cast<float>(kMicrosecondsOfMs * translated([&] {
                                return clutch::elapsed_ms(*static_cast<const clutch::Event*>(start->get()), *static_cast<const clutch::Event*>(end->get()));
                              }));
  }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> op) const override {
    for (int i = 0; i < device_count(); ++i) op(i);
  }
  void synchronize() const override {
    translated([&] { clutch::synchronize(device(current_device())); });
  }
};

const bool registered = [] {
  torch::profiler::impl::registerPrivateUse1Methods(new Stubs);
  return true;
}();

}}  // namespace torch_clutch
