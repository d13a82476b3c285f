// SPDX-License-Identifier: Apache-2.0
// The table by which the loader's functions reach the objects. What these devices lack, such as images, is refused.
#include "plugin/driver/device.hpp"
#include "plugin/driver/memory.hpp"
#include "plugin/driver/program.hpp"
#include "plugin/driver/queue.hpp"

#include <tuple>
#include <type_traits>

namespace clutch { inline namespace v0 { namespace detail { namespace driver {
namespace {

template <class T>
cl_int CL_API_CALL retain_object(T* object) {
  retain(object);
  return CL_SUCCESS;
}
template <class T>
cl_int CL_API_CALL release_object(T* object) {
  release(object);
  return CL_SUCCESS;
}
/// Devices live as long as the process.
cl_int CL_API_CALL keep_device(cl_device_id) { return CL_SUCCESS; }
cl_int CL_API_CALL unload_compiler(cl_platform_id) { return CL_SUCCESS; }
void* CL_API_CALL no_extension(cl_platform_id, const char*) { return nullptr; }
cl_int CL_API_CALL enqueue_old_marker(cl_command_queue queue, cl_event* event) { return enqueue_marker(queue, 0, nullptr, event); }
cl_int CL_API_CALL enqueue_old_barrier(cl_command_queue queue) { return enqueue_barrier(queue, 0, nullptr, nullptr); }
cl_int CL_API_CALL enqueue_wait(cl_command_queue queue, cl_uint n, const cl_event* list) { return enqueue_barrier(queue, n, list, nullptr); }
cl_int CL_API_CALL enqueue_migration(cl_command_queue queue, cl_uint, const cl_mem*, cl_mem_migration_flags, cl_uint waits, const cl_event* list,
                                     cl_event* event) {
  return enqueue_marker(queue, waits, list, event);
}
cl_int CL_API_CALL enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint waits, const cl_event* list, cl_event* event) {
  const std::size_t one = 1;
  return enqueue_kernel(queue, kernel, 1, nullptr, &one, &one, waits, list, event);
}

/// Puts a function into the table that does nothing and says so: CL_INVALID_OPERATION, or no object with that as its status.
template <class R, class... A>
void refuse(R(CL_API_CALL*& slot)(A...)) {
  slot = [](A... arguments) -> R {
    if constexpr (std::is_pointer_v<R>) {
      const auto last = std::get<sizeof...(A) - 1>(std::tuple<A...>(arguments...));
      if constexpr (std::is_same_v<decltype(last), cl_int* const>)
        if (last) *last = CL_INVALID_OPERATION;
      return nullptr;
    } else if constexpr (!std::is_void_v<R>) {
      return static_cast<R>(CL_INVALID_OPERATION);
    }
  };
}

cl_icd_dispatch make_dispatch() {
  cl_icd_dispatch d{};
  d.clGetPlatformInfo = get_platform_info;
  d.clUnloadPlatformCompiler = unload_compiler;
  d.clGetExtensionFunctionAddressForPlatform = no_extension;
  d.clGetDeviceIDs = get_device_ids;
  d.clGetDeviceInfo = get_device_info;
  d.clRetainDevice = keep_device;
  d.clReleaseDevice = keep_device;
  d.clCreateContext = create_context;
  d.clCreateContextFromType = create_context_of_type;
  d.clGetContextInfo = get_context_info;
  d.clRetainContext = retain_object<_cl_context>;
  d.clReleaseContext = release_object<_cl_context>;
  d.clCreateCommandQueue = create_queue;
  d.clCreateCommandQueueWithProperties = create_queue_with_properties;
  d.clGetCommandQueueInfo = get_queue_info;
  d.clRetainCommandQueue = retain_object<_cl_command_queue>;
  d.clReleaseCommandQueue = release_object<_cl_command_queue>;
  d.clFlush = flush;
  d.clFinish = finish;
  d.clEnqueueMarker = enqueue_old_marker;
  d.clEnqueueBarrier = enqueue_old_barrier;
  d.clEnqueueWaitForEvents = enqueue_wait;
  d.clEnqueueMarkerWithWaitList = enqueue_marker;
  d.clEnqueueBarrierWithWaitList = enqueue_barrier;
  d.clWaitForEvents = wait_for_events;
  d.clGetEventInfo = get_event_info;
  d.clGetEventProfilingInfo = get_event_profiling_info;
  d.clCreateUserEvent = create_user_event;
  d.clSetUserEventStatus = set_user_event_status;
  d.clSetEventCallback = set_event_callback;
  d.clRetainEvent = retain_object<_cl_event>;
  d.clReleaseEvent = release_object<_cl_event>;
  d.clCreateBuffer = create_buffer;
  d.clGetMemObjectInfo = get_mem_info;
  d.clSetMemObjectDestructorCallback = set_destructor_callback;
  d.clRetainMemObject = retain_object<_cl_mem>;
  d.clReleaseMemObject = release_object<_cl_mem>;
  d.clEnqueueWriteBuffer = enqueue_write;
  d.clEnqueueReadBuffer = enqueue_read;
  d.clEnqueueCopyBuffer = enqueue_copy;
  d.clEnqueueFillBuffer = enqueue_fill;
  d.clEnqueueMapBuffer = enqueue_map;
  d.clEnqueueUnmapMemObject = enqueue_unmap;
  d.clEnqueueMigrateMemObjects = enqueue_migration;
  d.clCreateProgramWithSource = create_program;
  d.clCreateProgramWithBinary = create_program_from_binary;
  d.clBuildProgram = build_program;
  d.clGetProgramBuildInfo = get_build_info;
  d.clGetProgramInfo = get_program_info;
  d.clRetainProgram = retain_object<_cl_program>;
  d.clReleaseProgram = release_object<_cl_program>;
  d.clCreateKernel = create_kernel;
  d.clSetKernelArg = set_kernel_arg;
  d.clGetKernelInfo = get_kernel_info;
  d.clGetKernelArgInfo = get_kernel_arg_info;
  d.clGetKernelWorkGroupInfo = get_kernel_group_info;
  d.clRetainKernel = retain_object<_cl_kernel>;
  d.clReleaseKernel = release_object<_cl_kernel>;
  d.clEnqueueNDRangeKernel = enqueue_kernel;
  d.clEnqueueTask = enqueue_task;
  refuse(d.clSetCommandQueueProperty);
  refuse(d.clCreateImage2D);
  refuse(d.clCreateImage3D);
  refuse(d.clGetSupportedImageFormats);
  refuse(d.clGetImageInfo);
  refuse(d.clCreateSampler);
  refuse(d.clRetainSampler);
  refuse(d.clReleaseSampler);
  refuse(d.clGetSamplerInfo);
  refuse(d.clCreateKernelsInProgram);
  refuse(d.clEnqueueReadImage);
  refuse(d.clEnqueueWriteImage);
  refuse(d.clEnqueueCopyImage);
  refuse(d.clEnqueueCopyImageToBuffer);
  refuse(d.clEnqueueCopyBufferToImage);
  refuse(d.clEnqueueMapImage);
  refuse(d.clEnqueueNativeKernel);
  refuse(d.clCreateSubBuffer);
  refuse(d.clEnqueueReadBufferRect);
  refuse(d.clEnqueueWriteBufferRect);
  refuse(d.clEnqueueCopyBufferRect);
  refuse(d.clCreateSubDevices);
  refuse(d.clCreateImage);
  refuse(d.clCreateProgramWithBuiltInKernels);
  refuse(d.clCompileProgram);
  refuse(d.clLinkProgram);
  refuse(d.clEnqueueFillImage);
  refuse(d.clCreatePipe);
  refuse(d.clGetPipeInfo);
  refuse(d.clSVMAlloc);
  refuse(d.clSVMFree);
  refuse(d.clEnqueueSVMFree);
  refuse(d.clEnqueueSVMMemcpy);
  refuse(d.clEnqueueSVMMemFill);
  refuse(d.clEnqueueSVMMap);
  refuse(d.clEnqueueSVMUnmap);
  refuse(d.clCreateSamplerWithProperties);
  refuse(d.clSetKernelArgSVMPointer);
  refuse(d.clSetKernelExecInfo);
  refuse(d.clCloneKernel);
  refuse(d.clCreateProgramWithIL);
  refuse(d.clEnqueueSVMMigrateMem);
  refuse(d.clGetDeviceAndHostTimer);
  refuse(d.clGetHostTimer);
  refuse(d.clGetKernelSubGroupInfo);
  refuse(d.clSetDefaultDeviceCommandQueue);
  refuse(d.clSetProgramReleaseCallback);
  refuse(d.clSetProgramSpecializationConstant);
  refuse(d.clCreateBufferWithProperties);
  refuse(d.clCreateImageWithProperties);
  refuse(d.clSetContextDestructorCallback);
  refuse(d.clGetPlatformIDs);
  refuse(d.clUnloadCompiler);
  refuse(d.clGetExtensionFunctionAddress);
  return d;
}

}  // namespace

const cl_icd_dispatch& dispatch() noexcept {
  static const auto& table = *new cl_icd_dispatch(make_dispatch());
  return table;
}

}}}}  // namespace clutch::v0::detail::driver
