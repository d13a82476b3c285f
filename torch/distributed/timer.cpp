// SPDX-License-Identifier: Apache-2.0
// Times of the device in steps of DistributedDataParallel, for its logging data.
#include "runtime/device.hpp"

#include <clutch/error.hpp>
#include <clutch/event.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <cstdint>
#include <map>
#include <optional>

namespace c10d { namespace {

class ClutchTimer final : public Timer {
 public:
  explicit ClutchTimer(c10::Device device) : device_(device) {}

  void record(Event event) override {
    Timer::record(event);
    events_[event].record(clutch::current_stream(torch_clutch::device(torch_clutch::or_current(device_.index()))));
  }
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    if (!getTimestamp(start) || !getTimestamp(end)) return std::nullopt;
    try {
      const double ms = clutch::elapsed_ms(events_[start], events_[end]);
      return ms < 0 ? std::nullopt : std::optional<int64_t>(static_cast<int64_t>(ms * 1e6));
    } catch (const clutch::Error&) {  // a device without a timer, or a step that failed
      return std::nullopt;
    }
  }

 private:
  const c10::Device device_;
  std::map<Event, clutch::Event> events_;
};

C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::DeviceType::PrivateUse1, ClutchTimer);

}}  // namespace c10d
