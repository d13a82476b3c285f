// SPDX-License-Identifier: Apache-2.0
#pragma once
// The only public header that names OpenCL types. It does not choose CL_TARGET_OPENCL_VERSION for you.
#include <clutch/event.hpp>
#include <clutch/kernel.hpp>
#include <clutch/tensor.hpp>

#ifdef __APPLE__
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif

namespace clutch { inline namespace v0 {

class GraphProgram;

namespace interop {

/// Wraps a caller's in-order queue. Its context becomes a runtime of its own: tensors of it do not mix with those of
/// clutch's context. Queue and context are retained while the Stream and its tensors live; wrapping a queue again gives
/// the same Stream. elapsed_ms needs CL_QUEUE_PROFILING_ENABLE.
/// A sub-device's queue is one of its device: its context must name that device, too.
/// Errors: invalid_argument for an out-of-order or null queue; no_device if the queue's device is not visible, or the
///   context of a sub-device's queue does not name its device.
CLUTCH_API Stream wrap(cl_command_queue queue);
/// Wraps a caller's buffer as contiguous tensor at a byte offset. The buffer is retained.
/// Errors: invalid_shape if the buffer is too small; device_mismatch if the buffer's context is neither clutch's own
///   for the device nor one wrapped before.
CLUTCH_API Tensor wrap(cl_mem buffer, const Dims& sizes, DType dtype, const Device& device = {},
                       std::uint64_t byte_offset = 0);
/// Wraps a caller's event; it is retained. Errors: invalid_argument if null or of an unknown context.
CLUTCH_API Event wrap(cl_event event);

/// The buffer behind a tensor; element 0 is offset() bytes behind its begin. Not retained for the caller.
CLUTCH_API cl_mem mem(const Tensor& tensor);
CLUTCH_API std::uint64_t offset(const Tensor& tensor);
CLUTCH_API cl_command_queue queue(const Stream& stream);
CLUTCH_API cl_context context(const Stream& stream);
CLUTCH_API cl_event event(const Event& event);
CLUTCH_API cl_device_id device_id(const Device& device);
CLUTCH_API cl_platform_id platform_id(const Device& device);

/// Fails a stream (stream_failed), as work of its own does that fails: for who gave its queue work. The failure names
/// error.op(), has its message, and sticks until Stream::reset(); what is enqueued runs, and only calls are refused.
/// Errors: invalid_argument if the Stream is empty.
CLUTCH_API void fail(const Stream& stream, const Error& error);
/// True while the stream has a sticky failure. Never waits; legal while streams capture. Errors: as fail().
CLUTCH_API bool failed(const Stream& stream);
/// True when all enqueued work is done: Stream::query() for libraries, legal while other streams capture. False while
/// this one does. Never waits. Errors: as fail().
CLUTCH_API bool idle(const Stream& stream);

/// The last kernel this thread enqueued and its geometry, to launch it bare. `kernel` is a new object without arguments
/// that the caller releases.
/// Errors: invalid_argument if this thread has enqueued none, or its context was released.
struct Launched {
  cl_kernel kernel;
  Geometry geometry;
};
CLUTCH_API Launched last_launch();

/// A kernel node of a graph and its geometry: `kernel` is a new object with all arguments set that the caller releases.
/// Errors: invalid_argument if the node is no kernel or the graph is not instantiated.
CLUTCH_API Launched kernel(const GraphProgram& program, int node);

/// Drops what clutch keeps for an adopted context: programs, pools, the context itself.
/// Errors: invalid_argument while tensors or streams of it live.
CLUTCH_API void release(cl_context context);

}  // namespace interop
}}  // namespace clutch::v0
