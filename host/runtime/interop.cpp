// SPDX-License-Identifier: Apache-2.0
#include "runtime/last_launch.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

#include <clutch/interop_cl.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace clutch { inline namespace v0 { namespace interop {

namespace {

template <class T, class Object, class Query, class What>
T info(Query query, Object object, What what, const char* op, const char* call) {
  T value{};
  detail::check_cl(query(object, what, sizeof value, &value, nullptr), op, call);
  return value;
}

constexpr const char* kWrap = "interop::wrap";

const detail::StreamImpl& need(const Stream& stream, const char* op) {
  if (stream.empty()) throw Error(ErrorCode::invalid_argument, op, "the Stream must be a made one, got an empty one");
  return *stream.impl();
}

const detail::Storage& need(const Tensor& tensor, const char* op) {
  if (!tensor.defined()) throw Error(ErrorCode::invalid_argument, op, "the tensor must be defined, got an undefined one");
  return *tensor.storage();
}

/// Errors: no_device if the context does not name the device.
void check_names(cl_context context, const detail::DeviceRecord& record) {
  std::size_t bytes = 0;
  detail::check_cl(clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes), kWrap, "clGetContextInfo");
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  detail::check_cl(clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr), kWrap, "clGetContextInfo");
  if (std::find(devices.begin(), devices.end(), record.id) == devices.end())
    throw Error(
        ErrorCode::no_device, kWrap,
        fmt::format("the context of a sub-device's queue must name device {}, which the sub-device is a part of, too, got one that does not", record.index));
}

}  // namespace

Stream wrap(cl_command_queue queue) {
  if (!queue) throw Error(ErrorCode::invalid_argument, kWrap, "the queue must be given, got a null pointer");
  auto properties = info<cl_command_queue_properties>(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES, kWrap, "clGetCommandQueueInfo");
  if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    throw Error(ErrorCode::invalid_argument, kWrap, "the queue must be in order as streams are, got one out of order");
  auto context = info<cl_context>(clGetCommandQueueInfo, queue, CL_QUEUE_CONTEXT, kWrap, "clGetCommandQueueInfo");
  auto device = info<cl_device_id>(clGetCommandQueueInfo, queue, CL_QUEUE_DEVICE, kWrap, "clGetCommandQueueInfo");
  // Work of a sub-device's queue uses kernels that are built for the device.
  const detail::DeviceRecord* record = detail::find_record(device);
  for (cl_device_id part = device; !record && (part = detail::device_value<cl_device_id>(part, CL_DEVICE_PARENT_DEVICE));) record = detail::find_record(part);
  if (!record) throw Error(ErrorCode::no_device, kWrap, "the queue's device, or the one that it is a part of, must be visible, got one that is not");
  if (record->id != device) check_names(context, *record);
  detail::Runtime& runtime = detail::adopt_context(context, *record);
  return Stream(runtime.wrap_queue(queue));
}

Tensor wrap_kept(cl_mem buffer, const Dims& sizes, DType dtype, const Device& device, std::uint64_t byte_offset, std::shared_ptr<void> keeper) {
  if (!buffer) throw Error(ErrorCode::invalid_argument, kWrap, "the buffer must be given, got a null pointer");
  auto type = info<cl_mem_object_type>(clGetMemObjectInfo, buffer, CL_MEM_TYPE, kWrap, "clGetMemObjectInfo");
  if (type != CL_MEM_OBJECT_BUFFER) throw Error(ErrorCode::invalid_argument, kWrap, "the memory object must be a buffer, got an image or a pipe");
  auto context = info<cl_context>(clGetMemObjectInfo, buffer, CL_MEM_CONTEXT, kWrap, "clGetMemObjectInfo");
  auto bytes = info<std::size_t>(clGetMemObjectInfo, buffer, CL_MEM_SIZE, kWrap, "clGetMemObjectInfo");
  detail::Runtime* runtime = detail::find_runtime(context);
  if (!runtime) throw Error(ErrorCode::device_mismatch, kWrap, "the buffer must be of a known context, got another; wrap a queue of that context first");
  if (!device.empty() && device.record() != &runtime->device())
    throw Error(ErrorCode::device_mismatch, kWrap,
                fmt::format("the buffer's context must be of device {}, got one of device {}", device.index(), runtime->device().index));
  std::uint64_t wanted = bytes_for(dtype, static_cast<std::uint64_t>(numel(sizes)));
  if (byte_offset > bytes || wanted > bytes - byte_offset)
    throw Error(ErrorCode::invalid_shape, kWrap,
                fmt::format("{} of {} at byte {} must end inside of the buffer, got byte {} of {}", to_string(sizes), name(dtype), byte_offset,
                            byte_offset + wanted, bytes));
  detail::check_cl(clRetainMemObject(buffer), kWrap, "clRetainMemObject");
  auto storage = std::make_shared<detail::Storage>(*runtime, detail::ClMem(buffer), bytes, std::move(keeper));
  Tensor flat(storage, byte_offset, {numel(sizes)}, {1}, dtype);
  return flat.reshape(sizes);
}

Tensor wrap(cl_mem buffer, const Dims& sizes, DType dtype, const Device& device, std::uint64_t byte_offset) {
  return wrap_kept(buffer, sizes, dtype, device, byte_offset, nullptr);
}

Event wrap(cl_event event) {
  if (!event) throw Error(ErrorCode::invalid_argument, kWrap, "the event must be given, got a null pointer");
  auto context = info<cl_context>(clGetEventInfo, event, CL_EVENT_CONTEXT, kWrap, "clGetEventInfo");
  detail::Runtime* runtime = detail::find_runtime(context);
  if (!runtime) throw Error(ErrorCode::invalid_argument, kWrap, "the event must be of a known context, got another; wrap a queue of that context first");
  detail::check_cl(clRetainEvent(event), kWrap, "clRetainEvent");
  return Event(std::make_shared<detail::EventImpl>(*runtime, detail::ClEvent(event)));
}

cl_mem mem(const Tensor& tensor) {
  const detail::Storage& storage = need(tensor, "interop::mem");
  detail::check_placed(storage, "interop::mem");
  return storage.mem();
}

std::uint64_t offset(const Tensor& tensor) {
  const detail::Storage& storage = need(tensor, "interop::offset");
  detail::check_placed(storage, "interop::offset");
  return storage.offset() + tensor.byte_offset();
}

cl_command_queue queue(const Stream& stream) {
  const detail::StreamImpl& impl = need(stream, "interop::queue");
  if (auto recording = impl.recording())
    recording->illegal(
        "interop::queue",
        fmt::format("the stream must not be capturing, since nothing records what its queue gets directly, got stream {}, which is: use Encoder::opaque",
                    impl.id()));
  else
    detail::check_outside_branches("interop::queue", impl.runtime());
  return impl.queue();
}

cl_context context(const Stream& stream) { return need(stream, "interop::context").runtime().context(); }

cl_event event(const Event& event) {
  if (!event.recorded()) throw Error(ErrorCode::invalid_argument, "interop::event", "the Event must have been recorded, got one that was not");
  if (event.impl()->recorded)
    throw Error(ErrorCode::capturing, "interop::event", "the Event must mark work that runs, got one that was recorded in a capture and has no cl_event");
  return event.impl()->event.get();
}

cl_device_id device_id(const Device& device) {
  if (device.empty()) throw Error(ErrorCode::invalid_argument, "interop::device_id", "the Device must be one of devices(), got an empty one");
  return device.record()->id;
}

cl_platform_id platform_id(const Device& device) {
  if (device.empty()) throw Error(ErrorCode::invalid_argument, "interop::platform_id", "the Device must be one of devices(), got an empty one");
  return device.record()->platform;
}

void fail(const Stream& stream, const Error& error) {
  need(stream, "interop::fail");
  stream.impl()->fail(error);
}

bool failed(const Stream& stream) {
  const detail::StreamImpl& impl = need(stream, "interop::failed");
  try {
    impl.check("interop::failed");
    return false;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::stream_failed || e.code() == ErrorCode::device_lost) return true;
    throw;
  }
}

bool idle(const Stream& stream) {
  need(stream, "interop::idle");
  return !stream.is_capturing() && stream.impl()->idle();
}

Launched last_launch() {
  const detail::LastLaunch& last = detail::last_launch();
  const detail::Kernel* kernel = detail::Kernel::find(last.kernel);
  if (!kernel) throw Error(ErrorCode::invalid_argument, "interop::last_launch", "this thread must have enqueued a kernel whose context lives, got none");
  return {kernel->make_bare(), last.geometry};
}

void release(cl_context context) { detail::release_context(context); }

}}}  // namespace clutch::v0::interop
