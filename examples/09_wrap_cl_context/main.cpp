// SPDX-License-Identifier: Apache-2.0
// clutch inside a program that has its own OpenCL: its context, queue, buffer and kernel stay, clutch's ops join.
//
// A wrapped queue is a clutch::Stream, a wrapped buffer a clutch::Tensor; nothing is copied. The queue is in order, so
// your kernels and clutch's ops see each other's results without a wait or an event.
//
// For your case: wrap your queue and buffers where you have them. Let go of all Tensors and Streams of the context
// before interop::release(), which frees what clutch keeps for it. Work on several queues needs events
// (interop::wrap(cl_event), interop::event()).
#define CL_TARGET_OPENCL_VERSION 120  // the version is your choice; clutch's headers set none
#include <clutch/clutch.hpp>
#include <clutch/interop_cl.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::size_t kRows = 256, kColumns = 1024;
const char* const kText = R"(
__kernel void ramp(__global float* x, uint columns) {
  const size_t row = get_global_id(1), column = get_global_id(0);
  x[row * columns + column] = 0.001f * (float)column + (float)(row % 7);
})";

void check(cl_int status, const char* call) {
  if (status != CL_SUCCESS) std::printf("%s: error %d\n", call, status), std::exit(1);
}

}  // namespace

int main() {
  // What your program has already. The device is clutch's choice here only so that CLUTCH_DEVICE selects it.
  cl_device_id device = clutch::interop::device_id(clutch::default_device());
  cl_int status = 0;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  check(status, "clCreateCommandQueue");
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, kRows * kColumns * sizeof(float), nullptr, &status);
  check(status, "clCreateBuffer");
  cl_program program = clCreateProgramWithSource(context, 1, const_cast<const char**>(&kText), nullptr, &status);
  check(status, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  cl_kernel ramp = clCreateKernel(program, "ramp", &status);
  check(status, "clCreateKernel");
  const auto columns = static_cast<cl_uint>(kColumns);
  const std::size_t global[] = {kColumns, kRows};
  clSetKernelArg(ramp, 0, sizeof buffer, &buffer);
  clSetKernelArg(ramp, 1, sizeof columns, &columns);

  // Your kernel fills the buffer.
  check(clEnqueueNDRangeKernel(queue, ramp, 2, nullptr, global, nullptr, 0, nullptr, nullptr), "clEnqueueNDRangeKernel");

  std::vector<float> got(kRows * kColumns);
  {
    // clutch's ops on it: a softmax of each row, written back where the rows were.
    const clutch::Stream stream = clutch::interop::wrap(queue);
    const clutch::Tensor rows = clutch::interop::wrap(buffer, {kRows, kColumns}, clutch::DType::f32, stream.device());
    std::printf("device: %s\n", stream.device().name().c_str());
    const clutch::Tensor weights = clutch::nn::softmax(rows, -1, stream);
    clutch::copy_(rows, weights, {}, stream);

    // A tensor that clutch made, for your kernels: its buffer, and where it begins in that.
    std::printf("softmax made a tensor in buffer %p at byte %llu\n", static_cast<void*>(clutch::interop::mem(weights)),
                static_cast<unsigned long long>(clutch::interop::offset(weights)));
  }
  // Your program reads its own buffer, as before.
  check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, got.size() * sizeof(float), got.data(), 0, nullptr, nullptr), "clEnqueueReadBuffer");
  clutch::interop::release(context);
  clReleaseKernel(ramp);
  clReleaseProgram(program);
  clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);

  // Check against a plain loop in double. The softmax does not see what a row has in common.
  double sum = 0, worst = 0;
  for (std::size_t c = 0; c < kColumns; ++c) sum += std::exp(0.001 * static_cast<double>(c));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double expected = std::exp(0.001 * static_cast<double>(i % kColumns)) / sum;
    worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - expected) / expected);
  }
  std::printf("largest relative error: %.1e\n", worst);
  return worst < 1e-5 ? 0 : 1;
}
