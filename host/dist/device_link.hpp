// SPDX-License-Identifier: Apache-2.0
// A call's place in a command queue, and its tensors' memory.
#pragma once
#include <CL/cl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

struct ReleaseCl {
  void operator()(cl_event event) const noexcept { clReleaseEvent(event); }
  void operator()(cl_command_queue queue) const noexcept { clReleaseCommandQueue(queue); }
  void operator()(cl_mem mem) const noexcept { clReleaseMemObject(mem); }
};
template <class T>
using ClOwned = std::unique_ptr<std::remove_pointer_t<T>, ReleaseCl>;

/// A queue's context and device. Errors: opencl.
struct QueueOf {
  explicit QueueOf(cl_command_queue queue);
  cl_context context = nullptr;
  cl_device_id device = nullptr;
};

struct DevicePlace {
  cl_mem mem = nullptr;
  std::size_t offset = 0, bytes = 0;
};

/// Holds a queue from where it is made until end() of the last link of that place. What is enqueued before it is done when is_ready(), and what is enqueued
/// behind it waits. A failure lets the queue go on, too: PoCL 3.1 ends the process where a user event fails that commands wait for of which nobody holds the
/// event.
class DeviceLink {
 public:
  /// A queue of the same context and device for mapping alone, and whether the device computes in the host's memory where it is lent that.
  struct Beside {
    ClOwned<cl_command_queue> maps;
    bool in_place = false;
  };
  /// Errors: opencl, out_of_memory.
  static Beside beside(cl_command_queue queue);

  /// `is_idle`: nothing is enqueued before, and the queue is held by hold() alone, if it must be. Errors: opencl.
  DeviceLink(cl_command_queue queue, const Beside& beside, bool is_idle);
  void hold();
  /// Another call at the same place of the queue, which is held until both have ended.
  static std::shared_ptr<DeviceLink> at_place_of(const DeviceLink& other) { return std::shared_ptr<DeviceLink>(new DeviceLink(Same{}, other)); }
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;
  ~DeviceLink();

  bool is_ready() const noexcept;
  /// After is_ready(): true if the work before this place failed. `stream_has_failed`: now; what the first call of this place says of it holds for all, as
  /// one of them may fail the stream before the others begin.
  bool has_failed(bool stream_has_failed) noexcept;

  /// Begins to map; `one_memory`: the output is the input, too. Errors: opencl.
  void map(DevicePlace input, DevicePlace output, bool one_memory);
  bool is_mapped();
  std::span<const std::byte> input() const { return {static_cast<const std::byte*>(input_.pointer), input_.place.bytes}; }
  std::span<std::byte> output() const { return {static_cast<std::byte*>(output_.pointer), output_.place.bytes}; }
  void unmap();
  bool is_unmapped();

  /// Lets the queue go on.
  void end() noexcept;

 private:
  struct Mapped {
    DevicePlace place;
    ClOwned<cl_mem> held;
    void* pointer = nullptr;
    ClOwned<cl_event> event;
    bool mine = false;  ///< to be unmapped
  };
  void begin(Mapped& mapped, DevicePlace place, cl_map_flags flags);
  bool lies_here(Mapped& mapped) const;
  void unmap(Mapped& mapped);

  struct Ready {
    std::atomic<cl_int> status{CL_QUEUED};
    enum Stream : std::uint8_t { unknown, sound, failed };
    std::atomic<Stream> stream{unknown};
  };
  /// The queue goes on with the last one who has it.
  struct Held {
    ClOwned<cl_event> before, done;
    ~Held();
  };
  struct Same {};
  DeviceLink(Same, const DeviceLink& other);

  ClOwned<cl_command_queue> queue_, maps_;
  const bool in_place_;
  std::shared_ptr<Held> held_;
  std::shared_ptr<Ready> ready_;  ///< null where nothing is before
  Mapped input_, output_;
  bool ended_ = false;
};

/// Errors: opencl, out_of_memory.
void check_cl(cl_int status, const char* call);
/// True once the command is done, or where there is none. Errors: opencl, in the name of what the command was for.
bool is_complete(cl_event event, const char* call);
ClOwned<cl_event> retained(cl_event event);
/// Wakes the progress thread once the command is done. Errors: opencl.
void wake_after(cl_event event);

}}}}  // namespace clutch::v0::dist::detail
