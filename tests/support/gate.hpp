// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/interop_cl.hpp>

#include <gtest/gtest.h>

#include <CL/cl.h>

#include <utility>

namespace clutch::testing {

/// An event of the device's context that the test completes; work that waits for it runs no earlier.
class Gate {
 public:
  explicit Gate(const Stream& stream) {
    cl_int status = CL_SUCCESS;
    event_ = clCreateUserEvent(interop::context(stream), &status);
    EXPECT_EQ(status, CL_SUCCESS);
    stream.wait(interop::wrap(event_));
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    open();
    clReleaseEvent(event_);
  }
  void open() {
    if (!std::exchange(open_, true)) clSetUserEventStatus(event_, CL_COMPLETE);
  }

 private:
  cl_event event_ = nullptr;
  bool open_ = false;
};

}  // namespace clutch::testing
