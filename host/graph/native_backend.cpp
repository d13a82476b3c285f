// SPDX-License-Identifier: Apache-2.0
#include "graph/native_backend.hpp"

#include "graph/capture.hpp"
#include "runtime/launch_check.hpp"
#include "runtime/profile_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr int kPart = 16;              // nodes of a command buffer; bench row graph/chain_200x1k/native, on a driver without a fast path
constexpr std::size_t kVariants = 64;  // command buffers kept for each part, for arguments that were bound before

constexpr const char* kOp = "Graph::replay";

NativeBackend::QueueKind kind_of(cl_command_queue queue) {
  NativeBackend::QueueKind kind;
  check_cl(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof kind.properties, &kind.properties, nullptr), kOp, "clGetCommandQueueInfo");
  check_cl(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof kind.device, &kind.device, nullptr), kOp, "clGetCommandQueueInfo");
  return kind;
}

/// Replays two launches of one kernel with different arguments, twice, and checks the result. Returns a reason to refuse drivers that confuse the arguments or
/// the order.
std::string self_test(Runtime& runtime, const CommandBufferApi& api) {
  RecordingExempt exempt;
  constexpr std::string_view kText = "__kernel void append_digit(__global uint* number, uint digit) { number[0] = number[0] * 10 + digit; }\n";
  Kernel& kernel = runtime.programs().find({.text = kText, .file = "<test of command buffers>", .entry = "append_digit", .defines = {}});
  Stream stream(runtime.make_stream(StreamPriority::normal));
  std::uint32_t number = 0;
  cl_int status = CL_SUCCESS;
  ClMem memory(clCreateBuffer(runtime.context(), CL_MEM_READ_WRITE, sizeof number, nullptr, &status));  // a buffer of its own, so that the offset is 0
  check_cl(status, kOp, "clCreateBuffer");
  cl_mem mem = memory.get();
  check_cl(clEnqueueWriteBuffer(stream.impl()->queue(), mem, CL_TRUE, 0, sizeof number, &number, 0, nullptr, nullptr), kOp, "clEnqueueWriteBuffer");
  std::array<ClKernel, 2> kernels{ClKernel(kernel.make_bare()), ClKernel(kernel.make_bare())};
  CommandBufferApi::Buffer buffer = api.create(stream.impl()->queue(), true, &status);
  check_cl(status, kOp, "clCreateCommandBufferKHR");
  auto run = [&]() -> cl_int {
    const std::size_t one = 1;
    for (cl_uint i = 0; i < 2; ++i) {
      cl_uint digit = i + 1;
      cl_kernel k = kernels[i].get();
      if (cl_int s = clSetKernelArg(k, 0, sizeof mem, &mem); s != CL_SUCCESS) return s;
      if (cl_int s = clSetKernelArg(k, 1, sizeof digit, &digit); s != CL_SUCCESS) return s;
      if (cl_int s = api.kernel(buffer, k, 1, &one, &one, nullptr); s != CL_SUCCESS) return s;
    }
    if (cl_int s = api.finalize(buffer); s != CL_SUCCESS) return s;
    for (int i = 0; i < 2; ++i) {
      cl_event event = nullptr;
      if (cl_int s = api.enqueue(stream.impl()->queue(), buffer, &event); s != CL_SUCCESS) return s;
      ClEvent done(event);
      if (cl_int s = clWaitForEvents(1, &event); s != CL_SUCCESS) return s;
    }
    return clEnqueueReadBuffer(stream.impl()->queue(), mem, CL_TRUE, 0, sizeof number, &number, 0, nullptr, nullptr);
  };
  status = run();
  clFinish(stream.impl()->queue());
  api.release(buffer);
  check_cl(status, kOp, "a command buffer's self-test");
  return number == 1212 ? "" : fmt::format("its self-test gave {}, not 1212", number);
}

}  // namespace

NativeBackend::Recorded::~Recorded() {
  if (buffer) api->release(buffer);
}

std::string NativeBackend::refuses(const GraphProgram& program) const {
  Runtime& runtime = program.state().runtime();
  std::string why_not;
  const CommandBufferApi* api = CommandBufferApi::of(runtime.device(), why_not);
  if (!api) return why_not;
  return runtime.command_buffers_refuse([&] { return self_test(runtime, *api); });
}

void NativeBackend::instantiate(const GraphProgram& program) {
  const GraphState& state = program.state();
  std::string why_not;
  api_ = CommandBufferApi::of(state.runtime().device(), why_not);
  parts_.clear();
  for (int i = 0; i < static_cast<int>(state.nodes.size()); ++i) {
    GraphNodeKind kind = state.nodes[static_cast<std::size_t>(i)].kind;
    bool on_host = kind == GraphNodeKind::host_task || kind == GraphNodeKind::opaque;
    if (parts_.empty() || on_host || parts_.back().on_host || i - parts_.back().first == kPart) {
      Part part;
      part.first = i;
      part.on_host = on_host;
      parts_.push_back(std::move(part));
    }
    parts_.back().end = i + 1;
  }
  record_all(state, state.runtime().default_stream()->queue());
}

void NativeBackend::record_all(const GraphState& state, cl_command_queue queue) {
  kind_ = kind_of(queue);
  known_stream_ = 0;
  for (Part& part : parts_) {
    part.variants.clear();
    if (!part.on_host) part.now = record(state, part, queue);
  }
}

std::shared_ptr<NativeBackend::Recorded> NativeBackend::record(const GraphState& state, const Part& part, cl_command_queue queue) const {
  auto made = std::make_shared<Recorded>(api_);
  made->commands.resize(static_cast<std::size_t>(part.end - part.first));
  cl_int status = CL_SUCCESS;
  made->buffer = api_->create(queue, true, &status);
  check_cl(status, "Graph::instantiate", "clCreateCommandBufferKHR");
  for (int i = part.first; i < part.end; ++i) {
    const GraphWork& node = state.nodes[static_cast<std::size_t>(i)];
    if (node.kind == GraphNodeKind::kernel) {
      made->kernels.push_back(state.make_kernel(node));
      const LaunchSizes sizes(node.geometry);
      check_cl(api_->kernel(made->buffer, made->kernels.back().get(), sizes.dims, sizes.global, sizes.local_or_null(),
                            &made->commands[static_cast<std::size_t>(i - part.first)]),
               node.op, "clCommandNDRangeKernelKHR");
    } else if (node.kind == GraphNodeKind::copy) {
      if (node.uses[1].bytes == 0) continue;
      check_cl(api_->copy(made->buffer, node.set[1].mem, node.set[0].mem, node.set[1].offset, node.set[0].offset, node.uses[1].bytes), node.op,
               "clCommandCopyBufferKHR");
    } else if (node.uses[0].bytes > 0) {
      check_cl(api_->fill(made->buffer, node.set[0].mem, node.pattern, node.set[0].offset, node.uses[0].bytes), node.op, "clCommandFillBufferKHR");
    }
  }
  check_cl(api_->finalize(made->buffer), "Graph::instantiate", "clFinalizeCommandBufferKHR");
  return made;
}

std::string NativeBackend::key_of(const GraphState& state, const Part& part) {
  std::string key;
  for (int i = part.first; i < part.end; ++i) {
    const GraphWork& node = state.nodes[static_cast<std::size_t>(i)];
    for (const Address& a : node.set) {
      key.append(reinterpret_cast<const char*>(&a.mem), sizeof a.mem);
      key.append(reinterpret_cast<const char*>(&a.offset), sizeof a.offset);
    }
    key.append(reinterpret_cast<const char*>(node.bytes.data()), node.bytes.size());
  }
  return key;
}

/// Changes arguments in place. False if the driver cannot, if the last replay is not over, or for copies and fills, which cannot be changed.
bool NativeBackend::update(const GraphState& state, const Part& part, std::span<const int> nodes) const {
  if (!api_->updates() || !part.now || !part.variants.empty()) return false;
  if (part.now->last && !is_done(part.now->last.get())) return false;
  std::vector<CommandBufferApi::Update> updates;
  for (int n : nodes) {
    if (n < part.first || n >= part.end) continue;
    const GraphWork& node = state.nodes[static_cast<std::size_t>(n)];
    if (node.kind != GraphNodeKind::kernel) return false;
    CommandBufferApi::Update update{part.now->commands[static_cast<std::size_t>(n - part.first)], {}};
    for (std::size_t i = 0; i < node.bound.size(); ++i) {
      const BoundArgument& b = node.bound[i];
      auto index = static_cast<cl_uint>(i);
      if (b.kind == BoundArgument::Kind::memory) update.arguments.push_back({index, sizeof(cl_mem), &node.set[static_cast<std::size_t>(b.use)].mem});
      if (b.kind == BoundArgument::Kind::offset) update.arguments.push_back({index, sizeof(cl_ulong), &node.set[static_cast<std::size_t>(b.use)].offset});
      if (b.kind == BoundArgument::Kind::bytes) update.arguments.push_back({index, b.size, node.bytes.data() + b.at});
    }
    updates.push_back(std::move(update));
  }
  bool done = api_->update(part.now->buffer, updates) == CL_SUCCESS;
  updated_ += done;
  return done;
}

/// Changes the parts of these nodes in place if possible. Otherwise the next replay uses another command buffer, since the present one may be running and is
/// kept for arguments that return.
void NativeBackend::changed(const GraphProgram& program, std::span<const int> nodes) {
  for (Part& part : parts_) {
    if (part.on_host || std::none_of(nodes.begin(), nodes.end(), [&](int n) { return n >= part.first && n < part.end; })) continue;
    if (!update(program.state(), part, nodes)) part.now.reset();
  }
}

void NativeBackend::prepare(const GraphState& state, Part& part, cl_command_queue queue) const {
  if (part.now) return;
  std::shared_ptr<Recorded>& variant = part.variants[key_of(state, part)];
  if (!variant) variant = record(state, part, queue);
  part.now = variant;
  if (part.variants.size() > kVariants) std::erase_if(part.variants, [&](const auto& row) { return row.second != part.now; });
}

void NativeBackend::replay(const GraphProgram& program, const Stream& stream) {
  const GraphState& state = program.state();
  StreamImpl& impl = *stream.impl();
  if (impl.id() != known_stream_) {
    // Before 0.9.7 a command buffer may run only on queues with the properties of the queue that it was recorded for, and always only on those of its device,
    // which another partition's are not.
    if (kind_of(impl.queue()) != kind_) record_all(state, impl.queue());
    known_stream_ = impl.id();
  }
  for (Part& part : parts_) {
    if (part.on_host) {
      state.enqueue(std::span(state.nodes).subspan(static_cast<std::size_t>(part.first), 1), stream.impl());
      continue;
    }
    prepare(state, part, impl.queue());
    if (!api_->overlaps() && part.now->last) {
      cl_event last = part.now->last.get();
      clWaitForEvents(1, &last);
    }
    cl_event event = nullptr;
    const auto turn = turn_of(impl);
    const ProfiledCommand profile;
    ClEvent before = profile.marker(impl);
    check_cl(api_->enqueue(impl.queue(), part.now->buffer, &event), kOp, "clEnqueueCommandBufferKHR");
    ClEvent done(event);
    if (profile) [[unlikely]] {
      // Drivers do not agree on the times of a command buffer's event: markers around it have them.
      Cost cost;
      for (int i = part.first; i < part.end; ++i) cost += state.nodes[static_cast<std::size_t>(i)].cost;
      const ClEvent after = profile.marker(impl);
      profile.enqueued_behind(impl, std::move(before), after.get(),
                              {.kind = RecordKind::opaque,
                               .call = "clEnqueueCommandBufferKHR",
                               .name = "command buffer",
                               .cost = cost,
                               .graph = state.id(),
                               .node = static_cast<std::uint32_t>(part.first)});
    }
    if ((!api_->overlaps() || api_->updates()) && clRetainEvent(event) == CL_SUCCESS) part.now->last = ClEvent(event);
    impl.submitted(std::move(done), kOp, part.now);
  }
  if (std::exchange(saved_, true)) return;
  for (const GraphWork& node : state.nodes)
    if (node.kernel && node.kernel->first_launch(node.geometry)) impl.save_when_idle(&node.kernel->program());
}

void NativeBackend::reset() { parts_.clear(); }

std::string NativeBackend::debug() const {
  auto [nodes, parts] = native();
  return fmt::format("{} nodes in {} command buffers, {} updates in place", nodes, parts, updated_);
}

std::pair<std::uint64_t, std::uint64_t> NativeBackend::native() const {
  std::uint64_t nodes = 0, parts = 0;
  for (const Part& part : parts_)
    if (!part.on_host) nodes += static_cast<std::uint64_t>(part.end - part.first), ++parts;
  return {nodes, parts};
}

}}}  // namespace clutch::v0::detail
