// SPDX-License-Identifier: Apache-2.0
// Queues, their commands, and events.
#pragma once
#include "plugin/driver/objects.hpp"

namespace clutch { inline namespace v0 { namespace detail { namespace driver {

/// Appends a command. `work` runs on the queue's own thread, after the events of the list, and gives the command's status; it must keep alive what it uses.
/// `is_blocking`: waits until the command has ended, and gives its status.
cl_int enqueue(cl_command_queue queue, cl_command_type type, std::function<cl_int(void* queue)> work, cl_uint waits, const cl_event* list, cl_event* event,
               bool is_blocking = false);

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int* status);
cl_command_queue CL_API_CALL create_queue_with_properties(cl_context context, cl_device_id device, const cl_queue_properties* properties, cl_int* status);
cl_int CL_API_CALL get_queue_info(cl_command_queue queue, cl_command_queue_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_int CL_API_CALL flush(cl_command_queue queue);
cl_int CL_API_CALL finish(cl_command_queue queue);
cl_int CL_API_CALL enqueue_marker(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event);
cl_int CL_API_CALL enqueue_barrier(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event);

cl_int CL_API_CALL wait_for_events(cl_uint n, const cl_event* events);
cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_int CL_API_CALL get_event_profiling_info(cl_event event, cl_profiling_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_event CL_API_CALL create_user_event(cl_context context, cl_int* status);
cl_int CL_API_CALL set_user_event_status(cl_event event, cl_int value);
cl_int CL_API_CALL set_event_callback(cl_event event, cl_int at, void(CL_CALLBACK* call)(cl_event, cl_int, void*), void* with);

}}}}  // namespace clutch::v0::detail::driver
