// SPDX-License-Identifier: Apache-2.0
// Shows what a driver's bare command buffers do, without what clutch's native backend does to avoid their faults. Arguments: a device's selector
// and "arguments", "unset" or "times". It may crash: that is an answer, too.
#include "graph/command_buffer.hpp"
#include "runtime/runtime.hpp"

#include <clutch/interop_cl.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>

using namespace clutch;
using detail::CommandBufferApi;

namespace {

constexpr const char* kText = R"(
__kernel void set(__global uint* number, uint value) { number[0] = value; }
__kernel void spin(__global uint* number, uint rounds) { uint v = number[0]; for (uint i = 0; i < rounds; ++i) v = v * 1664525 + 1013904223; number[0] = v; }
)";

struct Probe {
  Device device;
  Stream stream{device};
  std::string why_not;
  const CommandBufferApi* api = CommandBufferApi::of(*device.record(), why_not);
  cl_command_queue queue = interop::queue(stream);
  cl_program program = nullptr;
  cl_mem mem = nullptr;
  CommandBufferApi::Buffer buffer = nullptr;

  explicit Probe(const char* selector) : device(selector) {
    cl_context context = interop::context(stream);
    cl_device_id id = interop::device_id(device);
    const char* text = kText;
    program = clCreateProgramWithSource(context, 1, &text, nullptr, nullptr);
    clBuildProgram(program, 1, &id, "", nullptr, nullptr);
    mem = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, nullptr);
    if (api) buffer = api->create(queue, true, nullptr);
  }
  cl_kernel kernel(const char* name) const { return clCreateKernel(program, name, nullptr); }
  void run() const {
    api->finalize(buffer);
    api->enqueue(queue, buffer, nullptr);
    clFinish(queue);
  }
};

/// Records with the value 1 and sets 2 before the replay: 1 is right.
int arguments(const Probe& p) {
  cl_kernel set = p.kernel("set");
  const std::size_t one = 1;
  cl_uint value = 1;
  clSetKernelArg(set, 0, sizeof p.mem, &p.mem);
  clSetKernelArg(set, 1, sizeof value, &value);
  p.api->kernel(p.buffer, set, 1, &one, &one, nullptr);
  value = 2;
  clSetKernelArg(set, 1, sizeof value, &value);
  p.run();
  clEnqueueReadBuffer(p.queue, p.mem, CL_TRUE, 0, sizeof value, &value, 0, nullptr, nullptr);
  std::printf("%u\n", value);
  return 0;
}

/// Records a kernel without arguments: a refusal is right.
int unset(const Probe& p) {
  const std::size_t one = 1;
  std::printf("%d\n", p.api->kernel(p.buffer, p.kernel("set"), 1, &one, &one, nullptr) == CL_SUCCESS);
  return 0;
}

/// Time of a command buffer's event as part of the host's: about 1 is right.
int times(const Probe& p) {
  cl_kernel spin = p.kernel("spin");
  const std::size_t one = 1;
  cl_uint rounds = 30'000'000;
  clSetKernelArg(spin, 0, sizeof p.mem, &p.mem);
  clSetKernelArg(spin, 1, sizeof rounds, &rounds);
  for (int i = 0; i < 2; ++i) p.api->kernel(p.buffer, spin, 1, &one, &one, nullptr);  // the last command alone must not stand for all
  p.api->finalize(p.buffer);
  double ratio = 0;
  for (int i = 0; i < 2; ++i) {  // the first replay compiles
    cl_event event = nullptr;
    auto begin = std::chrono::steady_clock::now();
    p.api->enqueue(p.queue, p.buffer, &event);
    clFinish(p.queue);
    double host = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    cl_ulong start = 0, end = 0;
    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr);
    clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr);
    ratio = static_cast<double>(end - start) / host;
    clReleaseEvent(event);
  }
  std::printf("%.3f\n", ratio);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  Probe p(words[1]);
  if (!p.api || !p.buffer) return 3;
  std::string_view what = words[2];
  return what == "arguments" ? arguments(p) : what == "unset" ? unset(p) : what == "times" ? times(p) : 2;
}
