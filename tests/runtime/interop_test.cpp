// SPDX-License-Identifier: Apache-2.0
#include "support/fixture.hpp"
#include "support/mutation.hpp"

namespace clutch::testing { namespace {

TEST(Interop, CallersContextQueueAndMemory) {
  CLUTCH_EACH_DEVICE(device) {
    ForeignContext foreign(device);
    cl_int status = CL_SUCCESS;
    cl_mem mem = clCreateBuffer(foreign.context(), CL_MEM_READ_WRITE, 4096, nullptr, &status);
    ASSERT_EQ(status, CL_SUCCESS);
    std::string plan;
    {
      EXPECT_EQ(code_of([&] { interop::wrap(mem, {4}, DType::f32); }), ErrorCode::device_mismatch) << "unknown context";
      Stream stream = interop::wrap(foreign.queue());
      EXPECT_EQ(interop::wrap(foreign.queue()), stream);
      EXPECT_EQ(stream.device(), device);
      EXPECT_EQ(interop::queue(stream), foreign.queue());
      Tensor t = interop::wrap(mem, {16, 64}, DType::f32, stream.device());
      EXPECT_EQ(interop::mem(t), mem);
      fill_(t, 2, {}, stream);
      Tensor sum = addcmul(t, t, t);  // the tensors' runtime, so the caller's queue
      EXPECT_EQ(sum.to_host<float>()[1023], 6);
      plan = last_plan();
      Tensor ours = zeros({16, 64}, {.device = device});
      EXPECT_EQ(code_of([&] { addcmul(t, ours, t); }), ErrorCode::device_mismatch) << "two contexts in one call";
      EXPECT_EQ(code_of([&] { fill_(ours, 1, {}, stream); }), ErrorCode::device_mismatch);
      EXPECT_EQ(code_of([&] { interop::wrap(mem, {2000}, DType::f32); }), ErrorCode::invalid_shape);
      EXPECT_EQ(code_of([&] { interop::wrap(mem, {1}, DType::f32, device, 4096); }), ErrorCode::invalid_shape);
      EXPECT_EQ(interop::offset(interop::wrap(mem, {4}, DType::f32, device, 12)), 12u);
      EXPECT_EQ(code_of([&] { interop::release(foreign.context()); }), ErrorCode::invalid_argument) << "still in use";
      addcmul(t, t, t);  // the last kernel of this thread
      stream.synchronize();
    }
    interop::release(foreign.context());
    // What this thread did last went with the context; its text did not.
    EXPECT_EQ(last_plan(), plan);
    EXPECT_EQ(code_of([] { interop::last_launch(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { interop::release(foreign.context()); }), ErrorCode::invalid_argument);
    cl_uint references = 0;
    clGetMemObjectInfo(mem, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr);
    EXPECT_EQ(references, 1u) << "nothing retained any more";
    clReleaseMemObject(mem);
  }
}

TEST(Interop, OutOfOrderAndNullAreRefused) {
  CLUTCH_EACH_DEVICE(device) {
    EXPECT_EQ(code_of([] { interop::wrap(static_cast<cl_command_queue>(nullptr)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { interop::wrap(static_cast<cl_event>(nullptr)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { interop::wrap(static_cast<cl_mem>(nullptr), {1}, DType::f32); }), ErrorCode::invalid_argument);
    if (!device.traits().out_of_order) continue;
    cl_int status = CL_SUCCESS;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    cl_command_queue queue =
        clCreateCommandQueue(interop::context(current_stream(device)), interop::device_id(device), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status);
#pragma GCC diagnostic pop
    if (status != CL_SUCCESS) continue;
    EXPECT_EQ(code_of([&] { interop::wrap(queue); }), ErrorCode::invalid_argument);
    clReleaseCommandQueue(queue);
  }
}

TEST(Interop, QueuesOfOurContextMix) {
  CLUTCH_EACH_DEVICE(device) {
    cl_int status = CL_SUCCESS;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    cl_command_queue queue = clCreateCommandQueue(interop::context(default_stream(device)), interop::device_id(device), 0, &status);
#pragma GCC diagnostic pop
    ASSERT_EQ(status, CL_SUCCESS);
    Tensor t = full({10}, 4, {.device = device});
    synchronize(device);
    {
      Stream mine = interop::wrap(queue);
      EXPECT_EQ(addcmul(t, t, t, {}, mine).to_host<float>(mine)[9], 20);
      Event event;
      event.record(mine);
      EXPECT_NE(interop::event(event), nullptr);
    }
    clReleaseCommandQueue(queue);
    EXPECT_EQ(interop::platform_id(device) != nullptr, true);
  }
}

}}  // namespace clutch::testing
