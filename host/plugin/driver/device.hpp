// SPDX-License-Identifier: Apache-2.0
// What the dispatch table has of platforms, devices and contexts.
#pragma once
#include "plugin/driver/objects.hpp"

namespace clutch { inline namespace v0 { namespace detail { namespace driver {

cl_int CL_API_CALL get_platform_info(cl_platform_id platform, cl_platform_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_int CL_API_CALL get_device_ids(cl_platform_id platform, cl_device_type wanted, cl_uint n, cl_device_id* to, cl_uint* count);
cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info what, std::size_t size, void* to, std::size_t* size_ret);
cl_context CL_API_CALL create_context(const cl_context_properties* properties, cl_uint n, const cl_device_id* devices,
                                      void(CL_CALLBACK* notify)(const char*, const void*, std::size_t, void*), void* with, cl_int* status);
cl_context CL_API_CALL create_context_of_type(const cl_context_properties* properties, cl_device_type type,
                                              void(CL_CALLBACK* notify)(const char*, const void*, std::size_t, void*), void* with, cl_int* status);
cl_int CL_API_CALL get_context_info(cl_context context, cl_context_info what, std::size_t size, void* to, std::size_t* size_ret);

}}}}  // namespace clutch::v0::detail::driver
