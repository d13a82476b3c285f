// SPDX-License-Identifier: Apache-2.0
// Programs, kernels and their launches.
#pragma once
#include "plugin/driver/objects.hpp"

namespace clutch { inline namespace v0 { namespace detail { namespace driver {

cl_program CL_API_CALL create_program(cl_context context, cl_uint n, const char** texts, const std::size_t* sizes, cl_int* status);
cl_program CL_API_CALL create_program_from_binary(cl_context context, cl_uint n, const cl_device_id* devices, const std::size_t* sizes,
                                                  const unsigned char** binaries, cl_int* binary_status, cl_int* status);
cl_int CL_API_CALL build_program(cl_program program, cl_uint n, const cl_device_id* devices, const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                                 void* with);
cl_int CL_API_CALL get_build_info(cl_program program, cl_device_id device, cl_program_build_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_int CL_API_CALL get_program_info(cl_program program, cl_program_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* status);
cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint index, std::size_t bytes, const void* value);
cl_int CL_API_CALL get_kernel_info(cl_kernel kernel, cl_kernel_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_int CL_API_CALL get_kernel_arg_info(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_int CL_API_CALL get_kernel_group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, std::size_t size, void* to,
                                         std::size_t* size_ret);
cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset, const std::size_t* global,
                                  const std::size_t* local, cl_uint waits, const cl_event* list, cl_event* event);

}}}}  // namespace clutch::v0::detail::driver
