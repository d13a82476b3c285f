// SPDX-License-Identifier: Apache-2.0
#include "plugin/driver/memory.hpp"

#include "capi/plugin_status.hpp"
#include "plugin/driver/queue.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

_cl_mem::~_cl_mem() {
  for (auto at = when_destroyed.rbegin(); at != when_destroyed.rend(); ++at) at->first(this, at->second);
  if (memory) context->device->backend().memory_release(context->device->number, memory);
}

namespace clutch { inline namespace v0 { namespace detail { namespace driver {
namespace {

bool holds(const _cl_mem& mem, std::size_t offset, std::size_t bytes) noexcept { return offset <= mem.bytes && bytes <= mem.bytes - offset; }

}  // namespace

cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, std::size_t bytes, void* host, cl_int* status) {
  const cl_device_id device = context->device;
  const bool adopts = flags & CL_MEM_USE_HOST_PTR;
  if (bytes == 0 || bytes > device->facts.largest_buffer_bytes) return given<_cl_mem>(nullptr, CL_INVALID_BUFFER_SIZE, status);
  if ((adopts || (flags & CL_MEM_COPY_HOST_PTR)) != (host != nullptr)) return given<_cl_mem>(nullptr, CL_INVALID_HOST_PTR, status);
  auto made = std::make_unique<_cl_mem>();
  made->context = Ref<_cl_context>(context);
  made->flags = flags, made->bytes = bytes, made->host = adopts ? host : nullptr;
  const bool can_adopt = device->facts.shares_memory && device->backend().memory_adopt &&
                         reinterpret_cast<std::uintptr_t>(host) % static_cast<std::uintptr_t>(device->facts.alignment) == 0;
  // Memory that no device can take would have to be copied with each map.
  if (adopts && !can_adopt) return given<_cl_mem>(nullptr, CL_MEM_OBJECT_ALLOCATION_FAILURE, status);
  const clutch_status_t code = capi::call_plugin([&] {
    return adopts ? device->backend().memory_adopt(device->number, host, bytes, &made->memory)
                  : device->backend().memory_allocate(device->number, bytes, &made->memory);
  });
  if (code != CLUTCH_OK) {
    made->memory = nullptr;
    return given<_cl_mem>(nullptr, status_of(code), status);
  }
  if (flags & CL_MEM_COPY_HOST_PTR) {
    void* address = nullptr;
    const clutch_status_t mapped = capi::call_plugin([&] { return device->backend().memory_map(device->number, made->memory, 0, bytes, &address); });
    if (mapped != CLUTCH_OK) return given<_cl_mem>(nullptr, status_of(mapped), status);
    std::memcpy(address, host, bytes);
    device->backend().memory_unmap(device->number, made->memory, address);
  }
  return given(made.release(), CL_SUCCESS, status);
}

cl_int CL_API_CALL get_mem_info(cl_mem mem, cl_mem_info what, std::size_t size, void* to, std::size_t* size_ret) {
  switch (what) {
    case CL_MEM_TYPE: return answer(static_cast<cl_mem_object_type>(CL_MEM_OBJECT_BUFFER), size, to, size_ret);
    case CL_MEM_FLAGS: return answer(mem->flags, size, to, size_ret);
    case CL_MEM_SIZE: return answer(mem->bytes, size, to, size_ret);
    case CL_MEM_HOST_PTR: return answer(mem->host, size, to, size_ret);
    case CL_MEM_MAP_COUNT: return answer(mem->mapped.load(), size, to, size_ret);
    case CL_MEM_REFERENCE_COUNT: return answer(mem->references.load(), size, to, size_ret);
    case CL_MEM_CONTEXT: return answer(mem->context.get(), size, to, size_ret);
    case CL_MEM_ASSOCIATED_MEMOBJECT: return answer(static_cast<cl_mem>(nullptr), size, to, size_ret);
    case CL_MEM_OFFSET: return answer(static_cast<std::size_t>(0), size, to, size_ret);
    default: return CL_INVALID_VALUE;
  }
}
cl_int CL_API_CALL set_destructor_callback(cl_mem mem, void(CL_CALLBACK* call)(cl_mem, void*), void* with) {
  if (!call) return CL_INVALID_VALUE;
  std::lock_guard lock(mem->mutex);
  mem->when_destroyed.emplace_back(call, with);
  return CL_SUCCESS;
}

cl_int CL_API_CALL enqueue_write(cl_command_queue queue, cl_mem mem, cl_bool blocking, std::size_t offset, std::size_t bytes, const void* from, cl_uint waits,
                                 const cl_event* list, cl_event* event) {
  if (!from || !holds(*mem, offset, bytes)) return CL_INVALID_VALUE;
  return enqueue(
      queue, CL_COMMAND_WRITE_BUFFER,
      [m = Ref<_cl_mem>(mem), offset, bytes, from](void* q) { return status_of(m->context->device->backend().write(q, m->memory, offset, from, bytes)); },
      waits, list, event, blocking == CL_TRUE);
}
cl_int CL_API_CALL enqueue_read(cl_command_queue queue, cl_mem mem, cl_bool blocking, std::size_t offset, std::size_t bytes, void* to, cl_uint waits,
                                const cl_event* list, cl_event* event) {
  if (!to || !holds(*mem, offset, bytes)) return CL_INVALID_VALUE;
  return enqueue(
      queue, CL_COMMAND_READ_BUFFER,
      [m = Ref<_cl_mem>(mem), offset, bytes, to](void* q) { return status_of(m->context->device->backend().read(q, m->memory, offset, to, bytes)); }, waits,
      list, event, blocking == CL_TRUE);
}
cl_int CL_API_CALL enqueue_copy(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t from_offset, std::size_t to_offset, std::size_t bytes,
                                cl_uint waits, const cl_event* list, cl_event* event) {
  if (!holds(*from, from_offset, bytes) || !holds(*to, to_offset, bytes)) return CL_INVALID_VALUE;
  if (from == to && from_offset < to_offset + bytes && to_offset < from_offset + bytes) return CL_MEM_COPY_OVERLAP;
  return enqueue(
      queue, CL_COMMAND_COPY_BUFFER,
      [a = Ref<_cl_mem>(from), b = Ref<_cl_mem>(to), from_offset, to_offset, bytes](void* q) {
        return status_of(a->context->device->backend().copy(q, b->memory, to_offset, a->memory, from_offset, bytes));
      },
      waits, list, event);
}
cl_int CL_API_CALL enqueue_fill(cl_command_queue queue, cl_mem mem, const void* pattern, std::size_t pattern_bytes, std::size_t offset, std::size_t bytes,
                                cl_uint waits, const cl_event* list, cl_event* event) {
  const bool is_power = pattern_bytes > 0 && pattern_bytes <= 128 && (pattern_bytes & (pattern_bytes - 1)) == 0;
  if (!pattern || !is_power || !holds(*mem, offset, bytes) || offset % pattern_bytes != 0 || bytes % pattern_bytes != 0) return CL_INVALID_VALUE;
  return enqueue(
      queue, CL_COMMAND_FILL_BUFFER,
      [m = Ref<_cl_mem>(mem), offset, bytes, kept = std::string(static_cast<const char*>(pattern), pattern_bytes)](void* q) {
        return status_of(m->context->device->backend().fill(q, m->memory, offset, bytes, kept.data(), kept.size()));
      },
      waits, list, event);
}

void* CL_API_CALL enqueue_map(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags, std::size_t offset, std::size_t bytes, cl_uint waits,
                              const cl_event* list, cl_event* event, cl_int* status) {
  if (!holds(*mem, offset, bytes)) return given<void>(nullptr, CL_INVALID_VALUE, status);
  const cl_device_id device = mem->context->device;
  // The address is an answer of this call, so that a device that copies has to do so before the commands in front of it: such a one waits for them.
  if (!device->facts.shares_memory)
    if (const cl_int failed = enqueue(queue, CL_COMMAND_MARKER, {}, waits, list, nullptr, true); failed != CL_SUCCESS)
      return given<void>(nullptr, failed, status);
  void* address = nullptr;
  if (capi::call_plugin([&] { return device->backend().memory_map(device->number, mem->memory, offset, bytes, &address); }) != CLUTCH_OK)
    return given<void>(nullptr, CL_MAP_FAILURE, status);
  mem->mapped.fetch_add(1);
  if (const cl_int failed = enqueue(queue, CL_COMMAND_MAP_BUFFER, {}, waits, list, event, blocking == CL_TRUE); failed != CL_SUCCESS) {
    mem->mapped.fetch_sub(1);
    device->backend().memory_unmap(device->number, mem->memory, address);
    return given<void>(nullptr, failed, status);
  }
  return given(address, CL_SUCCESS, status);
}
cl_int CL_API_CALL enqueue_unmap(cl_command_queue queue, cl_mem mem, void* host, cl_uint waits, const cl_event* list, cl_event* event) {
  if (!host) return CL_INVALID_VALUE;
  return enqueue(
      queue, CL_COMMAND_UNMAP_MEM_OBJECT,
      [m = Ref<_cl_mem>(mem), host](void*) {
        m->context->device->backend().memory_unmap(m->context->device->number, m->memory, host);
        m->mapped.fetch_sub(1);
        return CL_SUCCESS;
      },
      waits, list, event);
}

}}}}  // namespace clutch::v0::detail::driver
