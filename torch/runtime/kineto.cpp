// SPDX-License-Identifier: Apache-2.0
// Kernels, copies and OpenCL calls of torch.profiler.profile(activities=[CPU, PrivateUse1]): a profiler of clutch's records them, and Kineto joins them with
// PyTorch's ops. An op of PyTorch is a range of clutch's while it runs, whose name tells which.
#define FMT_HEADER_ONLY
#define USE_KINETO
#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <kineto/libkineto.h>
#include <kineto/output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#include <clutch/profiler.hpp>

#include <atomic>
#include <charconv>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_clutch { namespace {

using clutch::profiler::FunctionEvent;
using libkineto::ActivityType;
using libkineto::GenericTraceActivity;

const std::set<ActivityType>& activities() {
  static const auto* all = new std::set<ActivityType>{ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY, ActivityType::GPU_MEMSET,
                                                      ActivityType::GPU_USER_ANNOTATION, ActivityType::PRIVATEUSE1_RUNTIME};
  return *all;
}

// Names of our ranges: the mark, what it is, its number in PyTorch's profile, the system's number of the thread.
constexpr char kMark = '\x01', kOp = 'o', kRange = 'r', kClock = 'c';
struct Origin {
  char kind;
  std::int64_t number, thread;
};
std::string text_of(const Origin& origin) { return kMark + std::string(1, origin.kind) + std::to_string(origin.number) + ' ' + std::to_string(origin.thread); }
std::optional<Origin> origin_of(std::string_view name) {
  if (name.size() < 4 || name[0] != kMark) return std::nullopt;
  Origin made{name[1], 0, 0};
  const char* end = name.data() + name.size();
  const auto after = std::from_chars(name.data() + 2, end, made.number);
  std::from_chars(after.ptr + 1, end, made.thread);
  return made;
}

// Number of the session that records; 0: none.
std::atomic<std::uint64_t> recording{0};

// What is open of PyTorch's on this thread. Those of an earlier session go at the first one of the next.
struct Open {
  std::uint64_t session = 0;
  std::deque<std::pair<char, clutch::profiler::Range>> ranges;
};
Open& open_of(std::uint64_t session) {
  static thread_local Open open;
  if (open.session != session) open.ranges.clear(), open.session = session;
  return open;
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  ~Session() override {
    std::uint64_t mine = number_;
    recording.compare_exchange_strong(mine, 0);
  }

  void start() override {
    static std::atomic<std::uint64_t> sessions{0};
    try {
      profiler_ = std::make_unique<clutch::profiler::Profiler>();
      profiler_->start();
    } catch (const clutch::Error& error) {
      errors_.push_back(error.what());
      profiler_.reset();
      status_ = libkineto::TraceStatus::ERROR;
      return;
    }
    {
      // A range at a known time tells how the clocks differ.
      const clutch::profiler::Range clock(text_of({kClock, now(), libkineto::systemThreadId()}));
    }
    number_ = ++sessions;
    recording.store(number_);
    status_ = libkineto::TraceStatus::RECORDING;
  }
  void stop() override {
    std::uint64_t mine = number_;
    if (profiler_ == nullptr || !recording.compare_exchange_strong(mine, 0)) return;
    try {
      profiler_->stop();
    } catch (const clutch::Error& error) {
      errors_.push_back(error.what());
    }
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  std::vector<std::string> errors() override { return errors_; }

  void processTrace(libkineto::ActivityLogger&) override {}
  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, int64_t start, int64_t end) override {
    if (profiler_ == nullptr) return;
    trace_ = std::make_unique<libkineto::CpuTraceBuffer>();
    trace_->span = libkineto::TraceSpan(start, end, "clutch");
    trace_->gpuOpCount = 0;
    Reader{*this, logger, linked, profiler_->events()}.read(start, end);
    profiler_.reset();
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }  // processTrace() names all of them
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(trace_); }

  void pushCorrelationId(uint64_t id) override { push(kOp, id); }
  void popCorrelationId() override { pop(kOp); }
  void pushUserCorrelationId(uint64_t id) override { push(kRange, id); }
  void popUserCorrelationId() override { pop(kRange); }

 private:
  static std::int64_t now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count(); }

  void push(char kind, uint64_t id) {
    if (recording.load(std::memory_order_relaxed) != number_) return;
    open_of(number_).ranges.emplace_back(std::piecewise_construct, std::forward_as_tuple(kind),
                                         std::forward_as_tuple(text_of({kind, static_cast<std::int64_t>(id), libkineto::systemThreadId()})));
  }
  // A profile may begin within an op, whose end comes alone.
  void pop(char kind) {
    if (recording.load(std::memory_order_relaxed) != number_) return;
    auto& ranges = open_of(number_).ranges;
    if (!ranges.empty() && ranges.back().first == kind) ranges.pop_back();
  }

  struct Reader {
    Session& session;
    libkineto::ActivityLogger& logger;
    libkineto::getLinkedActivityCallback& linked;
    std::vector<FunctionEvent> events;
    std::unordered_map<std::uint64_t, std::int64_t> by_id = {};           // ops and ranges
    std::unordered_map<std::uint64_t, std::int64_t> system_threads = {};  // by clutch's numbers
    std::int64_t clock = 0;                                               // what turns clutch's times into Kineto's
    std::set<std::pair<int, std::uint64_t>> streams = {};

    void read(std::int64_t start, std::int64_t end) {
      for (std::size_t i = 0; i < events.size(); ++i) {
        const FunctionEvent& e = events[i];
        if (e.on_device) continue;
        if (e.activity_type == "cpu_op" || e.activity_type == "user_annotation") by_id[e.id] = static_cast<std::int64_t>(i);
        if (const auto origin = origin_of(e.name)) {
          system_threads[e.thread] = origin->thread;
          if (origin->kind == kClock) clock = origin->number - static_cast<std::int64_t>(e.start_ns);
        }
      }
      for (const FunctionEvent& e : events)
        if (clock + static_cast<std::int64_t>(e.end_ns) >= start && clock + static_cast<std::int64_t>(e.start_ns) <= end) take(e);
      std::set<int> devices;
      for (const auto& [index, stream] : streams) {
        if (devices.insert(index).second)
          logger.handleDeviceInfo({index, libkineto::kExceedMaxPid + index, device(static_cast<c10::DeviceIndex>(index)).name(), c10::str("clutch:", index)},
                                  start);
        logger.handleResourceInfo({index, static_cast<std::int64_t>(stream), static_cast<std::int64_t>(stream), c10::str("stream ", stream)}, start);
      }
    }

    // The innermost range of PyTorch's around an event.
    std::optional<Origin> around(const FunctionEvent& event) const {
      std::int64_t at = event.cpu_parent;
      if (at < 0) {
        auto found = by_id.find(event.external_id);
        if (found != by_id.end()) at = found->second;
      }
      for (; at >= 0; at = events[static_cast<std::size_t>(at)].cpu_parent)
        if (const auto origin = origin_of(events[static_cast<std::size_t>(at)].name); origin) return origin;
      return std::nullopt;
    }

    GenericTraceActivity& add(ActivityType type, const std::string& name, const FunctionEvent& e, const std::optional<Origin>& origin) {
      session.trace_->emplace_activity(session.trace_->span, type, name);
      GenericTraceActivity& made = *session.trace_->activities.back();
      made.startTime = clock + static_cast<std::int64_t>(e.start_ns), made.endTime = clock + static_cast<std::int64_t>(e.end_ns);
      made.id = static_cast<std::int32_t>(e.id);
      if (e.on_device) {
        made.device = e.device_index, made.resource = static_cast<std::int32_t>(e.device_resource_id);
        streams.insert({e.device_index, e.device_resource_id});
      } else {
        auto thread = system_threads.find(e.thread);
        made.device = libkineto::processId();
        made.resource = made.threadId = thread == system_threads.end() ? 0 : static_cast<std::int32_t>(thread->second);
      }
      if (e.flow_id != 0) made.flow.id = e.flow_id, made.flow.type = libkineto::kLinkAsyncCpuGpu, made.flow.start = e.flow_start ? 1 : 0;
      if (origin) made.linked = linked(static_cast<std::int32_t>(origin->number));
      if (!e.finished) made.addMetadata("finished", "false");
      return made;
    }

    void take(const FunctionEvent& e) {
      if (e.activity_type == "kernel" || e.activity_type == "gpu_memcpy" || e.activity_type == "gpu_memset") {
        const ActivityType type = e.activity_type == "kernel"       ? ActivityType::CONCURRENT_KERNEL
                                  : e.activity_type == "gpu_memcpy" ? ActivityType::GPU_MEMCPY
                                                                    : ActivityType::GPU_MEMSET;
        GenericTraceActivity& made = add(type, e.name, e, around(e));
        const clutch::profiler::EventMetadata& facts = e.event_metadata;
        made.addMetadata("device", e.device_index);
        made.addMetadata("stream", e.device_resource_id);
        made.addMetadata("correlation", e.id);
        made.addMetadata("queued us", facts.queued_us);
        if (type == ActivityType::CONCURRENT_KERNEL) {
          made.addMetadata("grid", c10::str("[", facts.grid[0], ", ", facts.grid[1], ", ", facts.grid[2], "]"));
          made.addMetadata("block", c10::str("[", facts.block[0], ", ", facts.block[1], ", ", facts.block[2], "]"));
          if (facts.graph_id != 0) made.addMetadata("graph id", facts.graph_id), made.addMetadata("graph node id", facts.graph_node_id);
        } else {
          made.addMetadata("bytes", facts.bytes);
        }
        if (e.flops > 0) made.addMetadata("GFLOP/s", e.roof.gflops);
        if (e.bytes > 0) made.addMetadata("GB/s", e.roof.gbps);
        if (!e.roof.binding.empty()) made.addMetadata("percent of the roof", e.roof.roof_pct);
        logger.handleGenericActivity(made);
      } else if (e.activity_type == "cuda_runtime") {
        GenericTraceActivity& made = add(ActivityType::PRIVATEUSE1_RUNTIME, e.name, e, around(e));
        made.addMetadata("correlation", e.id);
        logger.handleGenericActivity(made);
      } else if (e.activity_type == "gpu_user_annotation") {
        const auto origin = origin_of(e.name);
        if (!origin || origin->kind != kRange) return;
        const libkineto::ITraceActivity* of = linked(static_cast<std::int32_t>(origin->number));
        if (of != nullptr) logger.handleGenericActivity(add(ActivityType::GPU_USER_ANNOTATION, of->name(), e, origin));
      }
    }
  };

  std::uint64_t number_ = 0;
  std::unique_ptr<clutch::profiler::Profiler> profiler_;
  std::unique_ptr<libkineto::CpuTraceBuffer> trace_;
  std::vector<std::string> errors_;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override {
    static const std::string text = "clutch";
    return text;
  }
  const std::set<ActivityType>& availableActivities() const override { return activities(); }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& wanted, const libkineto::Config&) override {
    if (wanted.count(ActivityType::CONCURRENT_KERNEL) == 0) return nullptr;
    return std::make_unique<Session>();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t, const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config& config) override {
    return configure(wanted, config);
  }
};

const bool registered = [] {
  torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().registerFactory([] { return std::make_unique<Profiler>(); });
  return true;
}();

}}  // namespace torch_clutch
