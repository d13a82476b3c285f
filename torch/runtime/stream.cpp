// SPDX-License-Identifier: Apache-2.0
#include "runtime/stream.hpp"

#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <array>
#include <map>
#include <mutex>
#include <unordered_map>

namespace torch_clutch {
namespace {

struct Streams {
  static constexpr std::size_t kPool = 32;
  struct Pool {
    std::array<clutch::Stream, kPool> made;
    std::size_t next = 0;
  };
  std::mutex mutex;
  std::unordered_map<c10::StreamId, clutch::Stream> by_id;
  std::map<std::pair<c10::DeviceIndex, clutch::StreamPriority>, Pool> pools;
};

// Never destroyed, as no OpenCL call may stand in a static destructor.
Streams& streams() {
  static auto* all = new Streams;
  return *all;
}

clutch::StreamPriority priority_of(int priority) {
  return priority < 0 ? clutch::StreamPriority::high : priority > 0 ? clutch::StreamPriority::low : clutch::StreamPriority::normal;
}

}  // namespace

clutch::Stream stream_of(const c10::Stream& stream) {
  if (stream.id() == 0) return clutch::default_stream(device(stream.device_index()));
  std::lock_guard lock(streams().mutex);
  auto found = streams().by_id.find(stream.id());
  TORCH_CHECK(found != streams().by_id.end(), "clutch: no stream has the id ", stream.id());
  return found->second;
}

c10::Stream stream_named(const clutch::Stream& stream, c10::DeviceIndex index) {
  const bool is_default = stream == clutch::default_stream(device(index));
  const c10::StreamId id = is_default ? 0 : static_cast<c10::StreamId>(stream.id()) + 1;
  if (!is_default) {
    std::lock_guard lock(streams().mutex);
    streams().by_id.emplace(id, stream);
  }
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, index), id);
}

c10::Stream current_stream(c10::DeviceIndex index) {
  return translated([&] { return stream_named(clutch::current_stream(device(index)), index); });
}

c10::Stream next_stream(c10::DeviceIndex index, int priority) {
  clutch::Stream found;
  {
    std::lock_guard lock(streams().mutex);
    Streams::Pool& pool = streams().pools[{index, priority_of(priority)}];
    clutch::Stream& next = pool.made[pool.next++ % Streams::kPool];
    if (next.empty()) next = translated([&] { return clutch::Stream(device(index), {.priority = priority_of(priority)}); });
    found = next;
  }
  return stream_named(found, index);
}

c10::Stream exchange_stream(const c10::Stream& stream) {
  const c10::Stream former = current_stream(stream.device_index());
  const c10::DeviceIndex device_before = current_device();
  translated([&] {
    clutch::set_current_stream(stream_of(stream));
    clutch::set_current_device(device(device_before));
  });
  return former;
}

}  // namespace torch_clutch
