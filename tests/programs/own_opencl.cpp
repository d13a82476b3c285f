// SPDX-License-Identifier: Apache-2.0
// Somebody's own OpenCL: their context, queue and buffer, our ops.
#define CL_TARGET_OPENCL_VERSION 120
#include <clutch/clutch.hpp>
#include <clutch/interop_cl.hpp>

#include <iostream>

int main() {
  cl_device_id id = clutch::interop::device_id(clutch::default_device());
  cl_int status = 0;
  cl_context context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &status);
  cl_command_queue queue = clCreateCommandQueue(context, id, 0, &status);
  cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE, 1024 * 1024 * 4, nullptr, &status);
  float result = 0;
  {
    clutch::Stream stream = clutch::interop::wrap(queue);  // cl_command_queue of the caller
    clutch::Tensor t = clutch::interop::wrap(mem, {1024, 1024}, clutch::DType::f32, stream.device());
    clutch::fill_(t, 3, {}, stream);
    clutch::addcmul_(t, t, t, {.value = 2}, stream);
    cl_mem raw = clutch::interop::mem(t);
    clEnqueueReadBuffer(queue, raw, CL_TRUE, 4 * 4097, 4, &result, 0, nullptr, nullptr);
  }
  clutch::interop::release(context);
  clReleaseMemObject(mem);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  std::cout << result << '\n';
  return result == 21 ? 0 : 1;
}
