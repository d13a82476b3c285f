// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_task.hpp"

#include "runtime/runtime.hpp"

#include <algorithm>
#include <new>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Memory of a host task's ranges. A range is mapped, or copied if another task has it mapped. A task never waits for another one, so tasks may share tensors,
/// nest and run in any order.
class HostMemory {
 public:
  HostMemory(StreamImpl& stream, const char* op, std::span<const HostRange> ranges) : stream_(stream), op_(op) {
    std::vector<std::size_t> part_of;
    for (const HostRange& range : ranges) {
      auto part = std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.range.mem == range.mem && p.range.offset == range.offset; });
      part_of.push_back(static_cast<std::size_t>(part - parts_.begin()));
      if (part == parts_.end()) part = parts_.insert(part, {.range = {.mem = range.mem, .offset = range.offset}});
      part->range.bytes = std::max(part->range.bytes, range.bytes);
      part->range.writes = part->range.writes || (range.writes && range.bytes > 0);
    }
    try {
      for (Part& part : parts_)
        if (part.range.bytes > 0) enter(part);
    } catch (...) {
      leave();
      throw;
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) pointers_.push_back(ranges[i].bytes > 0 ? parts_[part_of[i]].pointer : nullptr);
  }

  std::span<void* const> pointers() const noexcept { return pointers_; }

  /// Unmaps the memory or writes copies back, also after a failure. Returns the first failing status of a range that the task writes.
  cl_int leave() noexcept {
    cl_int first = CL_SUCCESS;
    for (Part& part : parts_) {
      if (!part.pointer) continue;
      const HostRange& range = part.range;
      cl_event event = nullptr;
      cl_int status = CL_SUCCESS;
      if (!part.copy)
        status = clEnqueueUnmapMemObject(stream_.queue(), range.mem, part.pointer, 0, nullptr, &event);
      else if (range.writes)
        status = clEnqueueWriteBuffer(stream_.queue(), range.mem, CL_FALSE, range.offset, range.bytes, part.copy.get(), 0, nullptr, &event);
      if (first == CL_SUCCESS && range.writes) first = status;
      ClEvent done(status == CL_SUCCESS ? event : nullptr);
      if (!part.copy) stream_.runtime().mappings().give_back(range.mem, range.offset, stream_.id(), retained(done.get()));
      if (done) stream_.submitted(std::move(done), op_, std::move(part.copy));
    }
    parts_.clear();
    return first;
  }

 private:
  struct Part {
    HostRange range{};
    void* pointer = nullptr;
    std::shared_ptr<std::byte[]> copy = {};
  };

  void enter(Part& part) {
    const HostRange& range = part.range;
    cl_int status = CL_SUCCESS;
    if (HostMappings& mappings = stream_.runtime().mappings(); mappings.take(range.mem, range.offset, stream_.id())) {
      void* pointer = clEnqueueMapBuffer(stream_.queue(), range.mem, CL_TRUE, range.writes ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ, range.offset,
                                         range.bytes, 0, nullptr, nullptr, &status);
      if (status != CL_SUCCESS) mappings.give_back(range.mem, range.offset, stream_.id(), {});
      check_cl(status, op_, "clEnqueueMapBuffer");
      part.pointer = pointer;
      return;
    }
    constexpr std::align_val_t kAlignment{64};  // size of a cache line; mapped memory has at least this alignment
    part.copy = std::shared_ptr<std::byte[]>(new (kAlignment) std::byte[range.bytes], [](std::byte* p) { ::operator delete[](p, kAlignment); });
    status = clEnqueueReadBuffer(stream_.queue(), range.mem, CL_TRUE, range.offset, range.bytes, part.copy.get(), 0, nullptr, nullptr);
    if (status != CL_SUCCESS) clFinish(stream_.queue());  // ends a read that may still write to the copy
    check_cl(status, op_, "clEnqueueReadBuffer");
    part.pointer = part.copy.get();
  }

  StreamImpl& stream_;
  const char* op_;
  std::vector<Part> parts_;
  std::vector<void*> pointers_;
};

}  // namespace

void run_host_task(StreamImpl& stream, const char* op, const std::function<void(std::span<void* const>)>& task, std::span<const HostRange> ranges) {
  Clock before = stream.checked_clock(1);  // does not count the task's own ticket
  HostMemory memory(stream, op, ranges);
  if (std::any_of(ranges.begin(), ranges.end(), [](const HostRange& range) { return range.bytes > 0; })) stream.runtime().host_waited(before);
  try {
    task(memory.pointers());
  } catch (...) {
    memory.leave();
    throw;
  }
  check_cl(memory.leave(), op, "clEnqueueUnmapMemObject");
}

}}}  // namespace clutch::v0::detail
