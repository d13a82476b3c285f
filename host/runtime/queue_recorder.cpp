// SPDX-License-Identifier: Apache-2.0
#include "runtime/queue_recorder.hpp"

#include "program/program.hpp"
#include "runtime/host_task.hpp"
#include "runtime/launch_check.hpp"
#include "runtime/profile_log.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"
#include "runtime/tensor_table.hpp"

#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Address of a tensor. Notes that `stream` uses the tensor from now on.
Address used_address(const StreamRef& stream, const char* op, const Tensor& tensor, bool writes) {
  Storage& storage = *tensor.storage();
  check_placed(storage, op);
  storage.used_on(stream, writes, op);
  return {storage.mem(), storage.offset() + tensor.byte_offset()};
}

/// Tells the stream and a profiler that records of a command. Where the stream has not `asked` for its event, that is the profile's alone.
void enqueued(const StreamRef& stream, const ProfiledCommand& profile, ClEvent event, const cl_event* asked, const char* op, const ProfiledInfo& info) {
  if (asked)
    profile.enqueued(*stream, event.get(), info);
  else
    profile.enqueued_owned(*stream, std::exchange(event, {}), info);
  stream->submitted(std::move(event), op);
}

class QueueRecorder final : public Recorder {
 public:
  void operand(const StreamRef& stream, Launch& launch, const Tensor& tensor, Argument::Kind access, const char* name) override {
    const Address at = used_address(stream, launch.op, tensor, access != Argument::Kind::input);
    const cl_ulong offset = at.offset;
    launch.bind(&at.mem, sizeof at.mem, "", name);
    launch.bind(&offset, sizeof offset, "", name);
  }

  void table(const StreamRef& stream, Launch& launch, TableState& table, std::span<const Tensor* const> tensors) override {
    table.update(stream, tensors, launch.op);
    for (const cl_mem& mem : table.bases) launch.bind(&mem, sizeof mem, "", "");
    operand(stream, launch, table.words, Argument::Kind::input, "");
  }

  void kernel(const StreamRef& stream, Launch& launch) override {
    Kernel& kernel = *launch.kernel.kernel();
    const Geometry& g = launch.geometry;
    const unsigned char* bytes = launch.bytes().data();
    std::uint64_t local_bytes = 0;
    KernelLease lease(kernel);
    cl_uint position = 0;
    for (const BoundArgument& argument : launch.arguments) {
      const bool local = argument.kind == BoundArgument::Kind::local;
      local_bytes += argument.local;
      const cl_int status = clSetKernelArg(lease.get(), position, local ? argument.local : argument.size, local ? nullptr : bytes + argument.at);
      check_argument(status, position++, kernel, launch.op);
    }
    check_launch(kernel, g, local_bytes, launch.op);
    const LaunchSizes sizes(g);
    cl_event event = nullptr;
    const auto turn = turn_of(*stream);
    stream->next_ticket();
    cl_event* const asked = stream->event_of_next(event);
    const ProfiledCommand profile;
    const cl_int status =
        clEnqueueNDRangeKernel(stream->queue(), lease.get(), sizes.dims, nullptr, sizes.global, sizes.local_or_null(), 0, nullptr, profile ? &event : asked);
    check_cl(status, launch.op, "clEnqueueNDRangeKernel");
    enqueued(stream, profile, ClEvent(event), asked, launch.op,
             {.kind = RecordKind::kernel,
              .call = "clEnqueueNDRangeKernel",
              .name = kernel.name(),
              .plan = launch.kernel.plan().c_str(),
              .geometry = &g,
              .cost = launch.cost});
    if (kernel.first_launch(g)) stream->save_when_idle(&kernel.program());
  }

  void copy(const StreamRef& stream, const char* op, const Tensor& destination, const Tensor& source) override {
    const Address from = used_address(stream, op, source, false), to = used_address(stream, op, destination, true);
    cl_event event = nullptr;
    const auto turn = turn_of(*stream);
    stream->next_ticket();
    cl_event* const asked = stream->event_of_next(event);
    const ProfiledCommand profile;
    check_cl(clEnqueueCopyBuffer(stream->queue(), from.mem, to.mem, from.offset, to.offset, source.nbytes(), 0, nullptr, profile ? &event : asked), op,
             "clEnqueueCopyBuffer");
    enqueued(stream, profile, ClEvent(event), asked, op,
             {.kind = RecordKind::copy, .call = "clEnqueueCopyBuffer", .name = op, .cost = copy_cost(source.nbytes())});
  }

  void fill(const StreamRef& stream, const char* op, const Tensor& tensor, std::uint8_t pattern) override {
    const Storage& storage = *tensor.storage();
    cl_event event = nullptr;
    const auto turn = turn_of(*stream);
    cl_event* const asked = stream->event_of_next(event);
    const ProfiledCommand profile;
    check_cl(
        clEnqueueFillBuffer(stream->queue(), storage.mem(), &pattern, sizeof pattern, storage.offset(), storage.bytes(), 0, nullptr, profile ? &event : asked),
        op, "clEnqueueFillBuffer");
    enqueued(stream, profile, ClEvent(event), asked, op,
             {.kind = RecordKind::fill, .call = "clEnqueueFillBuffer", .name = op, .cost = {.bytes = static_cast<double>(storage.bytes())}});
  }

  void upload(const StreamRef& stream, const char* op, const Tensor& destination, std::shared_ptr<std::uint8_t[]> data) override {
    const Address to = used_address(stream, op, destination, true);
    cl_event event = nullptr;
    const auto turn = turn_of(*stream);
    stream->next_ticket();
    const ProfiledCommand profile;
    check_cl(clEnqueueWriteBuffer(stream->queue(), to.mem, CL_FALSE, to.offset, destination.nbytes(), data.get(), 0, nullptr, &event), op,
             "clEnqueueWriteBuffer");
    profile.enqueued(*stream, event,
                     {.kind = RecordKind::upload, .call = "clEnqueueWriteBuffer", .name = op, .cost = {.bytes = static_cast<double>(destination.nbytes())}});
    stream->submitted(ClEvent(event), op, std::move(data));
  }

  void host(const StreamRef& stream, const HostWork& work) override {
    std::vector<HostRange> ranges;
    for (bool writes : {false, true})
      for (const Tensor& tensor : writes ? work.outputs : work.inputs) {
        const Address at = used_address(stream, work.op, tensor, writes);
        ranges.push_back({at.mem, at.offset, extent_bytes(tensor), writes});
      }
    turn_of(*stream);  // not held, since the work may use the partition's streams
    stream->next_ticket();
    if (work.task) {
      const ProfiledSpan profile(RecordKind::host_task, work.op, stream->id());
      run_host_task(*stream, work.op, work.task, ranges);
      return;
    }
    std::vector<Encoder::Place> places;
    for (const HostRange& range : ranges) places.push_back({range.mem, range.offset});
    const ProfiledCommand profile;
    ClEvent before = profile.marker(*stream);
    work.opaque(stream->queue(), places);
    if (ClEvent mark = stream->mark(work.op)) {
      profile.enqueued_behind(*stream, std::move(before), mark.get(),
                              {.kind = RecordKind::opaque, .call = "opaque task", .name = work.op, .plan = work.plan.c_str(), .cost = work.cost});
      stream->submitted(std::move(mark), work.op);
    }
  }
};

}  // namespace

Recorder& queue_recorder() noexcept {
  static auto& recorder = *new QueueRecorder;  // never destroyed: streams may outlive static objects
  return recorder;
}

}}}  // namespace clutch::v0::detail
