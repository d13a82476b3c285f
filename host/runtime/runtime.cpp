// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.hpp"

#include "runtime/pool.hpp"
#include "runtime/profile_log.hpp"
#include "runtime/quirks.hpp"
#include "runtime/settings.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#ifndef CL_QUEUE_PRIORITY_KHR
#define CL_QUEUE_PRIORITY_KHR 0x1096
#endif

namespace clutch { inline namespace v0 { namespace detail {

namespace {
struct Adopted {
  std::mutex mutex;
  std::vector<std::unique_ptr<Runtime>> runtimes;
};
Adopted& adopted() {
  static auto* all = new Adopted;
  return *all;
}

/// Waits for the work of devices that need it, at most 10 s, since it may wait for an event that nothing completes any more.
void finish_at_exit() noexcept {
  if (forked()) return;
  try {
    std::vector<ClEvent> marks;
    each_runtime([&](Runtime& runtime) {
      if ((claimed_traits(runtime.device()).quirks & kQuirkExitWhileBuilding) != 0) std::ranges::move(runtime.marks(), std::back_inserter(marks));
    });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (const ClEvent& mark : marks)
      while (!is_done(mark.get()) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(200));
  } catch (const std::exception& e) {
    log_line(LogLevel::warn, fmt::format("the process ends without waiting for its devices: {}", e.what()));
  }
}

/// The main thread's ends before any global is destroyed, unlike what std::atexit() registers: drivers make globals as late as in their first compilation.
struct AtExit {
  ~AtExit() {
    if (is_main_thread()) finish_at_exit();
  }
};
thread_local AtExit t_at_exit;
void wait_at_exit() { [[maybe_unused]] const AtExit* made = &t_at_exit; }
}  // namespace

Runtime::Runtime(const DeviceRecord& device, ClContext context, bool adopted, std::vector<SubDevice> named)
    : device_(device),
      context_(std::move(context)),
      adopted_(adopted),
      pool_(std::make_unique<Pool>(*this)),
      programs_(*this),
      units_(device, std::move(named)) {
  wait_at_exit();
}

Runtime::~Runtime() { default_generator_.reset(); }  // before pool_, to which the generator's memory returns

PlanCache& Runtime::plans_of(int units) {
  std::lock_guard lock(mutex_);
  return plans_of_units_[units];
}

std::shared_ptr<StreamImpl> Runtime::make_stream(StreamPriority priority, const std::shared_ptr<PartitionImpl>& partition) {
  const DeviceTraits& traits = claimed_traits(device_);
  cl_int status = CL_SUCCESS;
  cl_command_queue raw = nullptr;
  const cl_device_id device = partition ? partition->device() : device_.id;
  bool hint = priority != StreamPriority::normal && traits.priority_hints;
  // Only a priority needs clCreateCommandQueueWithProperties, which is OpenCL 2.0.
  if (hint) {
    cl_queue_properties level = priority == StreamPriority::high ? 1 : 4;  // CL_QUEUE_PRIORITY_{HIGH,LOW}_KHR
    cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PRIORITY_KHR, level, 0};
    raw = clCreateCommandQueueWithProperties(context(), device, properties, &status);
  } else {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    raw = clCreateCommandQueue(context(), device, CL_QUEUE_PROFILING_ENABLE, &status);
#pragma GCC diagnostic pop
  }
  check_cl(status, "Stream", "clCreateCommandQueue");
  wait_at_exit();
  auto stream = std::make_shared<StreamImpl>(*this, ClQueue(raw), hint ? priority : StreamPriority::normal, false, partition);
  std::lock_guard lock(mutex_);
  add_stream(stream);
  return stream;
}

void Runtime::add_stream(const std::shared_ptr<StreamImpl>& stream) {
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  // The race checker reads the clocks of finished streams when the host waits for the device, so with checks their ends are kept until then.
  if (!the_settings().check_streams.on()) std::erase_if(ends_, [](const auto& end) { return end->over(); });
  streams_.push_back(stream);
  ends_.push_back(stream->end());
}

std::shared_ptr<StreamImpl> Runtime::default_stream() {
  {
    std::lock_guard lock(mutex_);
    if (default_stream_) return default_stream_;
    if (adopted_)  // while the caller's queue lives, clutch's work runs on it, in order with the caller's work
      for (const auto& weak : streams_)
        if (auto stream = weak.lock(); stream && stream->wrapped()) return stream;
  }
  auto made = make_stream(StreamPriority::normal);
  std::lock_guard lock(mutex_);
  if (!default_stream_) default_stream_ = made;
  return default_stream_;
}

std::shared_ptr<StreamImpl> Runtime::wrap_queue(cl_command_queue queue) {
  std::lock_guard lock(mutex_);
  for (const auto& weak : streams_)
    if (auto stream = weak.lock(); stream && stream->queue() == queue) return stream;
  check_cl(clRetainCommandQueue(queue), "interop::wrap", "clRetainCommandQueue");
  auto stream = std::make_shared<StreamImpl>(*this, ClQueue(queue), StreamPriority::normal, true, nullptr);
  add_stream(stream);
  return stream;
}

void Runtime::synchronize() {
  std::vector<std::shared_ptr<StreamImpl>> streams;
  std::vector<std::shared_ptr<StreamEnd>> ends;
  {
    std::lock_guard lock(mutex_);
    for (const auto& weak : streams_)
      if (auto stream = weak.lock()) streams.push_back(std::move(stream));
    ends = ends_;
  }
  for (const auto& stream : streams) stream->synchronize("synchronize");
  // Streams whose last handle is gone may still have work.
  std::erase_if(ends, [&](const auto& end) { return std::any_of(streams.begin(), streams.end(), [&](const auto& s) { return s->end() == end; }); });
  for (const auto& end : ends) {
    end->finish();
    host_waited(end->seen());
  }
  std::lock_guard lock(mutex_);
  std::erase_if(ends_, [&](const auto& end) { return std::find(ends.begin(), ends.end(), end) != ends.end(); });
}

std::vector<ClEvent> Runtime::marks() {
  std::vector<std::shared_ptr<StreamEnd>> ends;
  {
    std::lock_guard lock(mutex_);
    ends = ends_;
  }
  std::vector<ClEvent> marks;
  for (const auto& end : ends)
    if (ClEvent mark = end->mark()) marks.push_back(std::move(mark));
  return marks;
}

void Runtime::host_waited(const Clock& seen) {
  if (seen.seen.empty()) return;
  std::lock_guard lock(host_clock_mutex_);
  host_clock_.merge(seen);
}

std::uint64_t Runtime::host_has_seen(std::uint64_t stream) const {
  std::lock_guard lock(host_clock_mutex_);
  return host_clock_.of(stream);
}

std::string Runtime::command_buffers_refuse(const std::function<std::string()>& test) {
  std::lock_guard lock(command_buffers_mutex_);
  if (!command_buffers_refused_) {
    std::string reason = test();  // if test() throws on a driver's error, the next call tests again
    if (!reason.empty()) log_line(LogLevel::warn, fmt::format("command buffers of device {} are not used: {}", device_.index, reason));
    command_buffers_refused_ = reason;
  }
  return *command_buffers_refused_;
}

bool Runtime::dot_products(const std::function<bool()>& test) {
  std::call_once(dot_products_tested_, [&] { dot_products_ = test(); });
  return dot_products_;
}

bool Runtime::matrix_instructions(std::size_t kind, const std::function<bool()>& test) {
  std::call_once(matrix_tested_.at(kind), [&] { matrix_works_.at(kind) = test(); });
  return matrix_works_.at(kind);
}

int Runtime::live() const {
  std::lock_guard lock(mutex_);
  int streams = 0;
  for (const auto& weak : streams_)
    if (auto stream = weak.lock(); stream && stream != default_stream_) ++streams;
  return live_.load() + streams;
}

Runtime& runtime_of(const DeviceRecord& record) {
  check_process("Runtime");
  std::call_once(record.runtime_once, [&] {
    start_environment_profile();
    const cl_context_properties of_platform[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(record.platform), 0};
    const cl_context_properties* const properties = record.by_plugin ? nullptr : of_platform;  // loaders refuse a platform that they do not list
    cl_int status = CL_SUCCESS;
    std::vector<SubDevice> named = named_sub_devices(record);
    std::vector<cl_device_id> ids{record.id};
    for (const SubDevice& part : named) ids.push_back(part.id);
    ClContext context(clCreateContext(properties, static_cast<cl_uint>(ids.size()), ids.data(), nullptr, nullptr, &status));
    if (status != CL_SUCCESS && !named.empty()) {  // partitions will be soft ones
      named.clear();
      context = ClContext(clCreateContext(properties, 1, &record.id, nullptr, nullptr, &status));
    }
    check_cl(status, "Runtime", "clCreateContext");
    record.runtime = new Runtime(record, std::move(context), false, std::move(named));
  });
  return *record.runtime;
}

Runtime& runtime_for(const Device& device) { return runtime_of(*(device.empty() ? current_device() : device).record()); }

Runtime* find_runtime(cl_context context) {
  for (const auto& record : registry().records)
    if (record->runtime && record->runtime->context() == context) return record->runtime;
  std::lock_guard lock(adopted().mutex);
  for (const auto& runtime : adopted().runtimes)
    if (runtime->context() == context) return runtime.get();
  return nullptr;
}

Runtime& adopt_context(cl_context context, const DeviceRecord& record) {
  if (Runtime* known = find_runtime(context)) return *known;
  start_environment_profile();
  check_cl(clRetainContext(context), "interop::wrap", "clRetainContext");
  auto made = std::make_unique<Runtime>(record, ClContext(context), true);
  std::lock_guard lock(adopted().mutex);
  for (const auto& runtime : adopted().runtimes)
    if (runtime->context() == context) return *runtime;
  return *adopted().runtimes.emplace_back(std::move(made));
}

void release_context(cl_context context) {
  std::unique_ptr<Runtime> dead;
  {
    std::lock_guard lock(adopted().mutex);
    auto& all = adopted().runtimes;
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& runtime) { return runtime->context() == context; });
    if (found == all.end()) throw Error(ErrorCode::invalid_argument, "interop::release", "the context must be an adopted one, got another");
    if (int live = (*found)->live(); live > 0)
      throw Error(ErrorCode::invalid_argument, "interop::release", fmt::format("the context must have no living tensors and streams, got {}", live));
    dead = std::move(*found);
    all.erase(found);
  }
  dead->synchronize();
}

void each_runtime(const std::function<void(Runtime&)>& visit) {
  for (const auto& record : registry().records)
    if (record->runtime) visit(*record->runtime);
  std::lock_guard lock(adopted().mutex);
  for (const auto& runtime : adopted().runtimes) visit(*runtime);
}

}}}  // namespace clutch::v0::detail
