// SPDX-License-Identifier: Apache-2.0
// Storage handles, mapped tensors and pinned memory.
#include <clutch/host_memory.hpp>
#include <clutch/storage.hpp>

#include "runtime/op_name.hpp"
#include "runtime/profile_log.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <utility>

namespace clutch { inline namespace v0 {

// StorageHandle -----------------------------------------------------------------------------------------------------

StorageHandle::StorageHandle(const Tensor& tensor) : storage_(tensor.storage()) {
  detail::OpName named("StorageHandle");
  need("StorageHandle");
}

StorageHandle::StorageHandle(std::uint64_t bytes, const Device& device, const Stream& stream) {
  detail::OpName named("StorageHandle");
  if (bytes > static_cast<std::uint64_t>(kMaxNumel))
    throw Error(ErrorCode::invalid_shape, "StorageHandle", fmt::format("memory must have at most 2^50 bytes, got {}", bytes));
  storage_ = empty({static_cast<std::int64_t>(bytes)}, {.dtype = DType::u8, .device = device}, stream).storage();
}

detail::Storage& StorageHandle::need(const char* op) const {
  if (!storage_) throw Error(ErrorCode::invalid_argument, op, "the handle must have memory, got an empty one");
  return *storage_;
}

std::uint64_t StorageHandle::bytes() const {
  detail::OpName named("StorageHandle::bytes");
  return need("StorageHandle::bytes").bytes();
}
Device StorageHandle::device() const {
  detail::OpName named("StorageHandle::device");
  return Device(&need("StorageHandle::device").runtime().device());
}
bool StorageHandle::has_memory() const {
  detail::OpName named("StorageHandle::has_memory");
  return !need("StorageHandle::has_memory").unplaced();
}

Tensor StorageHandle::view(const Dims& sizes, const Dims& strides, DType dtype, std::uint64_t byte_offset) const {
  detail::OpName named("StorageHandle::view");
  constexpr const char* op = "StorageHandle::view";
  const std::uint64_t have = need(op).bytes(), size = bytes_for(dtype, 1);
  if (byte_offset > have)
    throw Error(ErrorCode::invalid_shape, op, fmt::format("a view must begin inside of the memory of {} bytes, got byte {}", have, byte_offset));
  if (byte_offset % size != 0)
    throw Error(ErrorCode::invalid_argument, op, fmt::format("a view of {} must begin at a multiple of {} bytes, got byte {}", name(dtype), size, byte_offset));
  return Tensor(storage_, byte_offset, Dims{0}, Dims{1}, dtype).as_strided(sizes, strides);
}
Tensor StorageHandle::view(const Dims& sizes, DType dtype, std::uint64_t byte_offset) const {
  return view(sizes, detail::contiguous_strides(sizes), dtype, byte_offset);
}

// HostMapping -------------------------------------------------------------------------------------------------------

struct HostMapping::State {
  Tensor tensor;
  std::shared_ptr<detail::StreamImpl> stream;
  cl_mem mem = nullptr;
  std::uint64_t offset = 0;
  bool writes = false;
  void* pointer = nullptr;
};

HostMapping::HostMapping() = default;

HostMapping::HostMapping(const Tensor& tensor, MapAccess access, const Stream& given) {
  detail::OpName named("HostMapping");
  constexpr const char* op = "HostMapping";
  detail::Storage& storage = detail::storage_of(tensor, op);
  const Stream stream = detail::resolve_stream(given, storage.runtime(), op);
  if (!tensor.is_contiguous())
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("the tensor must be contiguous, got sizes {} with strides {}", to_string(tensor.sizes()), to_string(tensor.strides())));
  detail::StreamImpl& impl = *stream.impl();
  if (detail::illegal_on(impl, op) || detail::illegal_beside(op)) return;
  detail::check_placed(storage, op);
  auto state = std::make_unique<State>();
  state->tensor = tensor, state->stream = stream.impl(), state->mem = storage.mem(), state->offset = storage.offset() + tensor.byte_offset();
  state->writes = access != MapAccess::read;
  if (tensor.numel() == 0) {
    stream.synchronize();
    state_ = std::move(state);
    return;
  }
  impl.check(op);
  storage.used_on(stream.impl(), state->writes, op);
  stream.synchronize();  // so that what failed before is told as its own failure
  detail::HostMappings& mappings = impl.runtime().mappings();
  if (!mappings.take(state->mem, state->offset, impl.id())) throw Error(ErrorCode::invalid_argument, op, "the tensor must not be mapped, got one that is");
  const cl_map_flags flags = access == MapAccess::read ? CL_MAP_READ : access == MapAccess::write ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ | CL_MAP_WRITE;
  cl_int status = CL_SUCCESS;
  auto turn = detail::turn_of(impl);
  impl.next_ticket();
  cl_event raw = nullptr;
  state->pointer = clEnqueueMapBuffer(impl.queue(), state->mem, turn ? CL_FALSE : CL_TRUE, flags, state->offset, tensor.nbytes(), 0, nullptr,
                                      turn ? &raw : nullptr, &status);
  if (turn) {  // it may wait for another stream of the partition, to which another thread may have to give work
    const detail::ClEvent mapped(status == CL_SUCCESS ? raw : nullptr);
    turn.unlock();
    if (mapped) {
      clFlush(impl.queue());
      status = clWaitForEvents(1, &raw);
      if (status != CL_SUCCESS) clEnqueueUnmapMemObject(impl.queue(), state->mem, state->pointer, 0, nullptr, nullptr);
    }
  }
  if (status != CL_SUCCESS) mappings.give_back(state->mem, state->offset, impl.id(), {});
  detail::check_cl(status, op, "clEnqueueMapBuffer");
  state_ = std::move(state);
}

HostMapping::~HostMapping() {
  try {
    unmap();
  } catch (const Error&) {  // the next call on the stream tells of it
  }
}
HostMapping::HostMapping(HostMapping&& other) noexcept : state_(std::move(other.state_)) {}
HostMapping& HostMapping::operator=(HostMapping&& other) noexcept {
  HostMapping former;
  std::swap(former.state_, state_);
  std::swap(state_, other.state_);
  return *this;
}

std::span<std::byte> HostMapping::bytes() const {
  detail::OpName named("HostMapping::bytes");
  if (!state_) throw Error(ErrorCode::invalid_argument, "HostMapping::bytes", "the memory must be mapped, got none that is");
  return {static_cast<std::byte*>(state_->pointer), state_->tensor.nbytes()};
}

void HostMapping::check_type(DType type) const {
  detail::OpName named("HostMapping::as");
  if (state_ && state_->tensor.dtype() != type)
    throw Error(ErrorCode::invalid_dtype, "HostMapping::as", fmt::format("the tensor must be of {}, got {}", name(type), name(state_->tensor.dtype())));
}

void HostMapping::unmap() {
  detail::OpName named("HostMapping::unmap");
  constexpr const char* op = "HostMapping::unmap";
  const std::unique_ptr<State> state = std::move(state_);
  if (!state || !state->pointer || detail::forked()) return;
  detail::StreamImpl& impl = *state->stream;
  cl_event event = nullptr;
  cl_int status = CL_SUCCESS;
  {
    const auto turn = detail::turn_of(impl);
    impl.next_ticket();
    status = clEnqueueUnmapMemObject(impl.queue(), state->mem, state->pointer, 0, nullptr, &event);
  }
  detail::ClEvent done(status == CL_SUCCESS ? event : nullptr);
  impl.runtime().mappings().give_back(state->mem, state->offset, impl.id(), detail::retained(done.get()));
  if (done) impl.submitted(std::move(done), op);
  detail::check_cl(status, op, "clEnqueueUnmapMemObject");
}

// HostBuffer --------------------------------------------------------------------------------------------------------

HostBuffer::HostBuffer() = default;

HostBuffer::HostBuffer(std::uint64_t bytes, const Device& device, const Stream& given) {
  detail::OpName named("HostBuffer");
  constexpr const char* op = "HostBuffer";
  if (bytes == 0 || bytes > static_cast<std::uint64_t>(kMaxNumel))
    throw Error(ErrorCode::invalid_argument, op, fmt::format("a buffer must have from 1 to 2^50 bytes, got {}", bytes));
  const Stream stream = detail::stream_for(given, device, op);
  detail::Runtime& runtime = stream.impl()->runtime();
  cl_int status = CL_SUCCESS;
  detail::ClMem buffer(clCreateBuffer(runtime.context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &status));
  detail::check_cl(status, op, "clCreateBuffer");
  auto storage = std::make_shared<detail::Storage>(runtime, std::move(buffer), bytes);
  whole_ = Tensor(std::move(storage), 0, {static_cast<std::int64_t>(bytes)}, {1}, DType::u8);
  mapping_ = HostMapping(whole_, MapAccess::read_write, stream);
}
HostBuffer::~HostBuffer() = default;
HostBuffer::HostBuffer(HostBuffer&&) noexcept = default;
HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  mapping_ = std::move(other.mapping_);  // unmaps the former memory ahead of its release
  whole_ = std::exchange(other.whole_, {});
  return *this;
}

std::span<std::byte> HostBuffer::bytes() const {
  detail::OpName named("HostBuffer::bytes");
  if (!mapping_.mapped())
    throw Error(ErrorCode::invalid_argument, "HostBuffer::bytes", "the memory must be with the host, got one that is not; call to_host()");
  return mapping_.bytes();
}

Tensor HostBuffer::tensor(const Dims& sizes, DType dtype, std::uint64_t byte_offset) const {
  detail::OpName named("HostBuffer::tensor");
  return StorageHandle(whole_).view(sizes, dtype, byte_offset);
}

void HostBuffer::to_device() {
  detail::OpName named("HostBuffer::to_device");
  mapping_.unmap();
}

void HostBuffer::to_host(const Stream& stream) {
  detail::OpName named("HostBuffer::to_host");
  if (!mapping_.mapped()) mapping_ = HostMapping(whole_, MapAccess::read_write, stream);
}

}}  // namespace clutch::v0
