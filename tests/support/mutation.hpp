// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/clutch.hpp>

#include "program/program.hpp"

#include <clutch/interop_cl.hpp>

#include <gtest/gtest-spi.h>

#include <string>

namespace clutch::testing {

/// A context of its own, whose programs and plans nobody else sees: the place to build mutated kernels.
class ForeignContext {
 public:
  explicit ForeignContext(const Device& device) {
    cl_device_id id = interop::device_id(device);
    cl_int status = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &status);
    if (status != CL_SUCCESS) throw std::runtime_error("clCreateContext failed");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    queue_ = clCreateCommandQueue(context_, id, CL_QUEUE_PROFILING_ENABLE, &status);
#pragma GCC diagnostic pop
    if (status != CL_SUCCESS) throw std::runtime_error("clCreateCommandQueue failed");
  }
  ~ForeignContext() {
    clReleaseCommandQueue(queue_);
    clReleaseContext(context_);
  }
  ForeignContext(const ForeignContext&) = delete;
  ForeignContext& operator=(const ForeignContext&) = delete;

  /// Runs with the context's stream as the current one of its device, then lets clutch forget the context.
  template <class F>
  std::string run(F&& f) {
    std::string result;
    {
      Stream stream = interop::wrap(queue_);
      StreamGuard guard(stream);
      result = f(stream);
      stream.synchronize();
    }
    interop::release(context_);
    return result;
  }
  cl_command_queue queue() const { return queue_; }
  cl_context context() const { return context_; }

 private:
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
};

}  // namespace clutch::testing
