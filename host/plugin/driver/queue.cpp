// SPDX-License-Identifier: Apache-2.0
#include "plugin/driver/queue.hpp"

#include "capi/plugin_status.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <system_error>

namespace clutch { inline namespace v0 { namespace detail { namespace driver {
namespace {

cl_ulong now() noexcept {
  return static_cast<cl_ulong>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

/// Waits until the command has ended; its status.
cl_int status_at_end(cl_event event) {
  std::unique_lock lock(event->mutex);
  event->changed.wait(lock, [&] { return event->status <= CL_COMPLETE; });
  return event->status;
}

void note_started(cl_event event) {
  std::lock_guard lock(event->mutex);
  event->started = now();
  event->status = CL_RUNNING;
}

void end(cl_event event, cl_int status) {
  decltype(event->when_complete) calls;
  {
    std::lock_guard lock(event->mutex);
    if (event->started == 0) event->started = now();
    event->ended = now();
    event->status = status;
    calls.swap(event->when_complete);
    event->changed.notify_all();
  }
  for (const auto& [call, with] : calls) call(event, status, with);
}

/// Runs commands one after another until the queue's handle is gone and none is left.
void serve(const std::shared_ptr<_cl_command_queue::Line>& line, const Backend& backend, void* queue) {
  for (;;) {
    _cl_command_queue::Command command;
    {
      std::unique_lock lock(line->mutex);
      line->busy = false;
      line->changed.notify_all();
      line->changed.wait(lock, [&] { return line->stop || !line->commands.empty(); });
      if (line->commands.empty()) break;
      command = std::move(line->commands.front());
      line->commands.pop_front();
      line->busy = true;
    }
    cl_int status = CL_COMPLETE;
    for (const auto& event : command.waits)
      if (status_at_end(event.get()) < 0) status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    if (status == CL_COMPLETE && command.work) {
      note_started(command.event.get());
      try {
        status = command.work(queue);
      } catch (const std::bad_alloc&) {
        status = CL_OUT_OF_HOST_MEMORY;
      } catch (...) {
        status = CL_OUT_OF_RESOURCES;
      }
    }
    command.work = nullptr;  // what it kept alive may be released by who waits for the event
    end(command.event.get(), status);
  }
  backend.queue_release(queue);
}

}  // namespace

cl_int enqueue(cl_command_queue queue, cl_command_type type, std::function<cl_int(void* queue)> work, cl_uint waits, const cl_event* list, cl_event* event,
               bool is_blocking) {
  if ((waits == 0) != (list == nullptr)) return CL_INVALID_EVENT_WAIT_LIST;
  auto made = std::make_unique<_cl_event>();
  made->context = queue->context;
  made->queue = queue;
  made->type = type;
  made->queued = made->submitted = now();
  made->status = CL_SUBMITTED;
  Ref<_cl_event> own(made.get());
  _cl_command_queue::Command command{std::move(work), own, {}};
  for (cl_uint i = 0; i < waits; ++i) command.waits.emplace_back(list[i]);
  {
    std::lock_guard lock(queue->line->mutex);
    queue->line->commands.push_back(std::move(command));
    queue->line->changed.notify_all();
  }
  // The handle's reference is the caller's, or nobody's.
  if (event)
    *event = made.release();
  else
    release(made.release());
  if (!is_blocking) return CL_SUCCESS;
  const cl_int status = status_at_end(own.get());
  return status < 0 ? status : CL_SUCCESS;
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* status) {
  if (device != context->device) return given<_cl_command_queue>(nullptr, CL_INVALID_DEVICE, status);
  if (properties & ~static_cast<cl_command_queue_properties>(CL_QUEUE_PROFILING_ENABLE))
    return given<_cl_command_queue>(nullptr, CL_INVALID_QUEUE_PROPERTIES, status);
  auto made = std::make_unique<_cl_command_queue>();
  made->context = Ref<_cl_context>(context);
  made->properties = properties;
  if (const clutch_status_t code = capi::call_plugin([&] { return device->backend().queue_create(device->number, &made->queue); }); code != CLUTCH_OK)
    return given<_cl_command_queue>(nullptr, status_of(code), status);
  try {
    made->worker = std::thread(serve, made->line, std::cref(device->backend()), made->queue);
  } catch (const std::system_error&) {
    device->backend().queue_release(made->queue);
    return given<_cl_command_queue>(nullptr, CL_OUT_OF_RESOURCES, status);
  }
  return given(made.release(), CL_SUCCESS, status);
}

cl_command_queue CL_API_CALL create_queue_with_properties(cl_context context, cl_device_id device, const cl_queue_properties* properties, cl_int* status) {
  cl_command_queue_properties flags = 0;
  for (; properties && *properties; properties += 2) {
    if (*properties != CL_QUEUE_PROPERTIES) return given<_cl_command_queue>(nullptr, CL_INVALID_QUEUE_PROPERTIES, status);
    flags = properties[1];
  }
  return create_queue(context, device, flags, status);
}

cl_int CL_API_CALL get_queue_info(cl_command_queue queue, cl_command_queue_info what, std::size_t size, void* to, std::size_t* size_ret) {
  switch (what) {
    case CL_QUEUE_CONTEXT: return answer(queue->context.get(), size, to, size_ret);
    case CL_QUEUE_DEVICE: return answer(queue->context->device, size, to, size_ret);
    case CL_QUEUE_REFERENCE_COUNT: return answer(queue->references.load(), size, to, size_ret);
    case CL_QUEUE_PROPERTIES: return answer(queue->properties, size, to, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL flush(cl_command_queue) { return CL_SUCCESS; }
cl_int CL_API_CALL finish(cl_command_queue queue) {
  std::unique_lock lock(queue->line->mutex);
  queue->line->changed.wait(lock, [&] { return queue->line->commands.empty() && !queue->line->busy; });
  return CL_SUCCESS;
}

cl_int CL_API_CALL enqueue_marker(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
  return enqueue(queue, CL_COMMAND_MARKER, {}, waits, list, event);
}
cl_int CL_API_CALL enqueue_barrier(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
  return enqueue(queue, CL_COMMAND_BARRIER, {}, waits, list, event);
}

cl_int CL_API_CALL wait_for_events(cl_uint n, const cl_event* events) {
  if (n == 0 || !events) return CL_INVALID_VALUE;
  bool failed = false;
  for (cl_uint i = 0; i < n; ++i) failed |= status_at_end(events[i]) < 0;
  return failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, std::size_t size, void* to, std::size_t* size_ret) {
  std::lock_guard lock(event->mutex);
  switch (what) {
    case CL_EVENT_COMMAND_EXECUTION_STATUS: return answer(event->status, size, to, size_ret);
    case CL_EVENT_CONTEXT: return answer(event->context.get(), size, to, size_ret);
    case CL_EVENT_COMMAND_QUEUE: return answer(event->queue, size, to, size_ret);
    case CL_EVENT_COMMAND_TYPE: return answer(event->type, size, to, size_ret);
    case CL_EVENT_REFERENCE_COUNT: return answer(event->references.load(), size, to, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL get_event_profiling_info(cl_event event, cl_profiling_info what, std::size_t size, void* to, std::size_t* size_ret) {
  std::lock_guard lock(event->mutex);
  if (event->status != CL_COMPLETE || event->type == CL_COMMAND_USER) return CL_PROFILING_INFO_NOT_AVAILABLE;
  switch (what) {
    case CL_PROFILING_COMMAND_QUEUED: return answer(event->queued, size, to, size_ret);
    case CL_PROFILING_COMMAND_SUBMIT: return answer(event->submitted, size, to, size_ret);
    case CL_PROFILING_COMMAND_START: return answer(event->started, size, to, size_ret);
    case CL_PROFILING_COMMAND_END: return answer(event->ended, size, to, size_ret);
    default: return CL_INVALID_VALUE;
  }
}

cl_event CL_API_CALL create_user_event(cl_context context, cl_int* status) {
  auto made = std::make_unique<_cl_event>();
  made->context = Ref<_cl_context>(context);
  made->status = CL_SUBMITTED;
  return given(made.release(), CL_SUCCESS, status);
}
cl_int CL_API_CALL set_user_event_status(cl_event event, cl_int value) {
  if (event->type != CL_COMMAND_USER || value > CL_COMPLETE) return CL_INVALID_VALUE;
  {
    std::lock_guard lock(event->mutex);
    if (event->status <= CL_COMPLETE) return CL_INVALID_OPERATION;
  }
  end(event, value);
  return CL_SUCCESS;
}
cl_int CL_API_CALL set_event_callback(cl_event event, cl_int at, void(CL_CALLBACK* call)(cl_event, cl_int, void*), void* with) {
  if (!call || at != CL_COMPLETE) return CL_INVALID_VALUE;
  cl_int status = CL_SUCCESS;
  {
    std::lock_guard lock(event->mutex);
    if (event->status > CL_COMPLETE) return event->when_complete.emplace_back(call, with), CL_SUCCESS;
    status = event->status;
  }
  call(event, status, with);
  return CL_SUCCESS;
}

}}}}  // namespace clutch::v0::detail::driver

_cl_command_queue::~_cl_command_queue() {
  if (!worker.joinable()) return;
  {
    std::lock_guard lock(line->mutex);
    line->stop = true;
    line->changed.notify_all();
  }
  // A callback on the queue's own thread may drop the last reference. Otherwise the release is not the wait for commands that clFinish() is.
  worker.detach();
}
