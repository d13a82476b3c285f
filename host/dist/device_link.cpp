// SPDX-License-Identifier: Apache-2.0
#include "dist/device_link.hpp"
#include "dist/progress.hpp"

#include <fmt/format.h>
#include <clutch/error.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

void check_cl(cl_int status, const char* call) {
  if (status == CL_SUCCESS) return;
  const bool is_memory = status == CL_OUT_OF_HOST_MEMORY || status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES;
  throw Error(is_memory ? ErrorCode::out_of_memory : ErrorCode::opencl, "dist", fmt::format("{} failed with {}", call, status), status);
}

QueueOf::QueueOf(cl_command_queue queue) {
  check_cl(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr), "clGetCommandQueueInfo");
  check_cl(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, nullptr), "clGetCommandQueueInfo");
}

bool is_complete(cl_event event, const char* call) {
  if (event == nullptr) return true;
  cl_int status = CL_COMPLETE;
  check_cl(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr), "clGetEventInfo");
  if (status < 0) check_cl(status, call);
  return status == CL_COMPLETE;
}

ClOwned<cl_event> retained(cl_event event) {
  check_cl(clRetainEvent(event), "clRetainEvent");
  return ClOwned<cl_event>(event);
}

void wake_after(cl_event event) {
  auto called = [](cl_event, cl_int, void*) { Progress::instance().wake(); };
  check_cl(clSetEventCallback(event, CL_COMPLETE, called, nullptr), "clSetEventCallback");
}

namespace {

ClOwned<cl_command_queue> retained(cl_command_queue queue) {
  check_cl(clRetainCommandQueue(queue), "clRetainCommandQueue");
  return ClOwned<cl_command_queue>(queue);
}

/// Tries it: what the device writes into lent memory is there without mapping, and what the host writes is what the device reads.
bool computes_in_place(cl_context context, cl_device_id device, cl_command_queue queue) {
  cl_device_type type = 0;
  if (clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, nullptr) != CL_SUCCESS || (type & CL_DEVICE_TYPE_CPU) == 0) return false;
  constexpr std::size_t kBytes = 4096;
  alignas(kBytes) static std::array<std::uint32_t, 2 * kBytes / sizeof(std::uint32_t)> lent;
  cl_int status = CL_SUCCESS;
  const ClOwned<cl_mem> mem(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, 2 * kBytes, lent.data(), &status));
  if (status != CL_SUCCESS) return false;
  volatile std::uint32_t* const words = lent.data();
  const cl_uint first = 0x13579bdf;
  if (clEnqueueFillBuffer(queue, mem.get(), &first, sizeof first, 0, kBytes, 0, nullptr, nullptr) != CL_SUCCESS || clFinish(queue) != CL_SUCCESS) return false;
  if (words[0] != first || words[kBytes / sizeof first - 1] != first) return false;
  words[5] = 0x2468ace0;
  if (clEnqueueCopyBuffer(queue, mem.get(), mem.get(), 0, kBytes, kBytes, 0, nullptr, nullptr) != CL_SUCCESS || clFinish(queue) != CL_SUCCESS) return false;
  return words[kBytes / sizeof first + 5] == 0x2468ace0;
}

}  // namespace

DeviceLink::Beside DeviceLink::beside(cl_command_queue queue) {
  const QueueOf of(queue);
  cl_int status = CL_SUCCESS;
  Beside result;
  result.maps.reset(clCreateCommandQueue(of.context, of.device, 0, &status));
  check_cl(status, "clCreateCommandQueue");
  // Each device is tried once: there may be many groups.
  static std::mutex mutex;
  static std::map<cl_device_id, bool> tried;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = tried.try_emplace(of.device);
  if (is_new) at->second = computes_in_place(of.context, of.device, result.maps.get());
  result.in_place = at->second;
  return result;
}

DeviceLink::DeviceLink(cl_command_queue queue, const Beside& beside, bool is_idle)
    : queue_(retained(queue)), maps_(retained(beside.maps.get())), in_place_(beside.in_place) {
  if (is_idle) return;
  ready_ = std::make_shared<Ready>();
  cl_event before = nullptr;
  check_cl(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &before), "clEnqueueMarkerWithWaitList");
  ClOwned<cl_event> owned(before);
  hold();
  held_->before = std::move(owned);
  auto* shared = new std::shared_ptr<Ready>(ready_);
  auto called = [](cl_event, cl_int how, void* user) {
    const std::unique_ptr<std::shared_ptr<Ready>> of(static_cast<std::shared_ptr<Ready>*>(user));
    (*of)->status = how;
    Progress::instance().wake();
  };
  if (const cl_int status = clSetEventCallback(before, CL_COMPLETE, called, shared); status != CL_SUCCESS) {
    delete shared;
    end();
    check_cl(status, "clSetEventCallback");
  }
  if (const cl_int status = clFlush(queue); status != CL_SUCCESS) {
    end();
    check_cl(status, "clFlush");
  }
}

DeviceLink::DeviceLink(Same, const DeviceLink& other)
    : queue_(retained(other.queue_.get())), maps_(retained(other.maps_.get())), in_place_(other.in_place_), held_(other.held_), ready_(other.ready_) {}

DeviceLink::Held::~Held() {
  if (done) clSetUserEventStatus(done.get(), CL_COMPLETE);
}

void DeviceLink::hold() {
  if (ended_ || held_) return;
  cl_int status = CL_SUCCESS;
  const auto held = std::make_shared<Held>();
  held->done.reset(clCreateUserEvent(QueueOf(queue_.get()).context, &status));
  check_cl(status, "clCreateUserEvent");
  held_ = held;
  cl_event done = held->done.get();
  check_cl(clEnqueueBarrierWithWaitList(queue_.get(), 1, &done, nullptr), "clEnqueueBarrierWithWaitList");
}

DeviceLink::~DeviceLink() {
  for (Mapped* mapped : {&input_, &output_})
    if (mapped->mine) clEnqueueUnmapMemObject(maps_.get(), mapped->place.mem, mapped->pointer, 0, nullptr, nullptr);
  clFlush(maps_.get());
  end();
}

bool DeviceLink::is_ready() const noexcept { return !ready_ || ready_->status.load(std::memory_order_acquire) <= CL_COMPLETE; }
bool DeviceLink::has_failed(bool stream_has_failed) noexcept {
  if (!ready_) return stream_has_failed;
  auto first = Ready::unknown;
  ready_->stream.compare_exchange_strong(first, stream_has_failed ? Ready::failed : Ready::sound);
  return ready_->status.load(std::memory_order_acquire) < 0 || ready_->stream.load() == Ready::failed;
}

void DeviceLink::begin(Mapped& mapped, DevicePlace place, cl_map_flags flags) {
  mapped.place = place;
  if (place.bytes == 0) return;
  check_cl(clRetainMemObject(place.mem), "clRetainMemObject");
  mapped.held.reset(place.mem);
  if (in_place_ && lies_here(mapped)) return;
  cl_int status = CL_SUCCESS;
  cl_event event = nullptr;
  mapped.pointer = clEnqueueMapBuffer(maps_.get(), place.mem, CL_FALSE, flags, place.offset, place.bytes, 0, nullptr, &event, &status);
  check_cl(status, "clEnqueueMapBuffer");
  mapped.event.reset(event), mapped.mine = true;
}

bool DeviceLink::lies_here(Mapped& mapped) const {
  cl_mem_flags flags = 0;
  void* host = nullptr;
  if (clGetMemObjectInfo(mapped.place.mem, CL_MEM_FLAGS, sizeof flags, &flags, nullptr) != CL_SUCCESS || (flags & CL_MEM_USE_HOST_PTR) == 0) return false;
  if (clGetMemObjectInfo(mapped.place.mem, CL_MEM_HOST_PTR, sizeof host, &host, nullptr) != CL_SUCCESS || host == nullptr) return false;
  mapped.pointer = static_cast<std::byte*>(host) + mapped.place.offset;
  return true;
}

void DeviceLink::map(DevicePlace input, DevicePlace output, bool one_memory) {
  if (one_memory) {
    begin(output_, output, CL_MAP_READ | CL_MAP_WRITE);
    input_.place = output_.place, input_.pointer = output_.pointer;
  } else {
    begin(input_, input, CL_MAP_READ);
    begin(output_, output, CL_MAP_WRITE_INVALIDATE_REGION);
  }
  if (input_.mine || output_.mine) check_cl(clFlush(maps_.get()), "clFlush");
}

bool DeviceLink::is_mapped() { return is_complete(input_.event.get(), "clEnqueueMapBuffer") && is_complete(output_.event.get(), "clEnqueueMapBuffer"); }

void DeviceLink::unmap(Mapped& mapped) {
  if (!mapped.mine) return;
  cl_event event = nullptr;
  mapped.mine = false;
  check_cl(clEnqueueUnmapMemObject(maps_.get(), mapped.place.mem, mapped.pointer, 0, nullptr, &event), "clEnqueueUnmapMemObject");
  mapped.event.reset(event);
}

void DeviceLink::unmap() {
  if (!input_.mine && !output_.mine) return;
  unmap(input_), unmap(output_);
  check_cl(clFlush(maps_.get()), "clFlush");
}

bool DeviceLink::is_unmapped() {
  return is_complete(input_.event.get(), "clEnqueueUnmapMemObject") && is_complete(output_.event.get(), "clEnqueueUnmapMemObject");
}

void DeviceLink::end() noexcept {
  ended_ = true;
  held_.reset();
}

}}}}  // namespace clutch::v0::dist::detail
