// SPDX-License-Identifier: Apache-2.0
// Buffers and the commands that move their bytes.
#pragma once
#include "plugin/driver/objects.hpp"

namespace clutch { inline namespace v0 { namespace detail { namespace driver {

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, std::size_t bytes, void* host, cl_int* status);
cl_int CL_API_CALL get_mem_info(cl_mem mem, cl_mem_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_int CL_API_CALL set_destructor_callback(cl_mem mem, void(CL_CALLBACK* call)(cl_mem, void*), void* with);
cl_int CL_API_CALL enqueue_write(cl_command_queue queue, cl_mem mem, cl_bool blocking, std::size_t offset, std::size_t bytes, const void* from, cl_uint waits,
                                 const cl_event* list, cl_event* event);
cl_int CL_API_CALL enqueue_read(cl_command_queue queue, cl_mem mem, cl_bool blocking, std::size_t offset, std::size_t bytes, void* to, cl_uint waits,
                                const cl_event* list, cl_event* event);
cl_int CL_API_CALL enqueue_copy(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t from_offset, std::size_t to_offset, std::size_t bytes,
                                cl_uint waits, const cl_event* list, cl_event* event);
cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem mem, const void* pattern, std::size_t pattern_bytes, std::size_t offset, std::size_t bytes,
                                cl_uint waits, const cl_event* list, cl_event* event);
void* CL_API_CALL enqueue_map(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags, std::size_t offset, std::size_t bytes, cl_uint waits,
                              const cl_event* list, cl_event* event, cl_int* status);
cl_int CL_API_CALL enqueue_unmap(cl_command_queue queue, cl_mem mem, void* host, cl_uint waits, const cl_event* list, cl_event* event);

}}}}  // namespace clutch::v0::detail::driver
