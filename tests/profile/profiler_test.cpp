// SPDX-License-Identifier: Apache-2.0
#include <clutch/allocator.hpp>
#include <clutch/profiler.hpp>

#include "profile/output.hpp"
#include "profile/trace_check.hpp"
#include "program/sha256.hpp"
#include "runtime/profile_log.hpp"
#include "support/fixture.hpp"
#include "support/system.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>
#include <csignal>

namespace clutch::testing { namespace {

using namespace profiler;
using std::chrono::steady_clock;

/// A file of a test's own, removed with what was left beside it.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() / ("clutch_profiler_" + std::to_string(::getpid()) + "_" + name)), path_(folder_ / name) {
    std::filesystem::create_directories(folder_);
  }
  ~ScratchFile() { std::filesystem::remove_all(folder_); }
  std::string path() const { return path_.string(); }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }
  std::string text() const {
    std::ifstream in(path_, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  nlohmann::json json() const { return nlohmann::json::parse(text()); }

 private:
  std::filesystem::path folder_, path_;
};

/// A kernel that takes about so many microseconds.
class Spin {
 public:
  explicit Spin(const Device& device) : out_(zeros({64}, {.device = device})) {}
  void operator()(int steps, const Stream& stream = {}) const {
    const Argument arguments[] = {inout(out_), value(steps)};
    launch({.text = "__kernel void spin(__global float* y, int steps) { float x = y[get_global_id(0)];\n"
                    "  for (int i = 0; i < steps; ++i) x = fma(x, 0.5f, 1.0f);\n  y[get_global_id(0)] = x; }",
            .entry = "spin"},
           {.global = 64, .local = 1}, arguments, stream);
  }

 private:
  Tensor out_;
};

std::vector<FunctionEvent> of_type(const std::vector<FunctionEvent>& events, std::string_view type) {
  std::vector<FunctionEvent> found;
  for (const FunctionEvent& e : events)
    if (e.activity_type == type) found.push_back(e);
  return found;
}

TEST(Schedule, IsPyTorchs) {
  // Of torch.profiler.schedule (2.12.1): wait, warmup, active (from 1), repeat, skip_first and skip_first_wait in 0..3, 40 steps of each, a digit each.
  constexpr std::string_view kTorch = "487081fcb45e6742de81d68360511329696c8d52c02a72730dc71da65c7ed6a5";
  std::string all;
  for (int wait = 0; wait < 4; ++wait)
    for (int warmup = 0; warmup < 4; ++warmup)
      for (int active = 1; active < 4; ++active)
        for (int repeat = 0; repeat < 4; ++repeat)
          for (int skip = 0; skip < 4; ++skip)
            for (int skip_wait = 0; skip_wait < 4; ++skip_wait) {
              const Schedule schedule{wait, warmup, active, repeat, skip, skip_wait};
              for (int step = 0; step < 40; ++step) all += static_cast<char>('0' + static_cast<int>(schedule(step)));
            }
  EXPECT_EQ(all.size(), 122880u);
  EXPECT_EQ(detail::to_hex(detail::sha256(all)), kTorch);
}

TEST(Schedule, RefusesNumbersThatPyTorchRefuses) {
  EXPECT_EQ(message_of([] { Schedule{.active = 0}(0); }),
            "profiler::Schedule: active must be at least 1 and the step and other numbers at least 0, got step 0, wait 0, warmup 0, active 0, repeat 0, "
            "skip_first 0, "
            "skip_first_wait 0");
  for (const Schedule& s : {Schedule{.wait = -1}, Schedule{.warmup = -1}, Schedule{.repeat = -1}, Schedule{.skip_first = -1}, Schedule{.skip_first_wait = -1}})
    EXPECT_EQ(code_of([&] { s(0); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { Schedule{}(-1); }), ErrorCode::invalid_argument);
}

TEST(Profiler, TellsOpsCallsKernelsAndRanges) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = full({64, 32}, 2, {.device = device});
    addcmul(x, x, x);
    synchronize(device);
    Profiler profiler;
    profiler.start();
    {
      const Range outer("outer \"quoted\"");
      const Range inner("inner");
      addcmul(x, x, x);
      (void)x.to_bytes();
    }
    profiler.stop();
    const std::vector<FunctionEvent> events = profiler.events();
    const auto kernels = of_type(events, "kernel"), ops = of_type(events, "cpu_op"), ranges = of_type(events, "user_annotation"),
               calls = of_type(events, "cuda_runtime");
    ASSERT_EQ(kernels.size(), 1u);
    ASSERT_EQ(ranges.size(), 2u);
    EXPECT_EQ(ranges[0].name, "outer \"quoted\"");
    EXPECT_EQ(ranges[1].name, "inner");
    EXPECT_TRUE(ranges[0].is_user_annotation && ranges[0].finished);
    const FunctionEvent& k = kernels[0];
    EXPECT_TRUE(k.on_device && k.finished);
    EXPECT_TRUE(k.name.starts_with("addc")) << k.name;
    EXPECT_LE(k.start_ns, k.end_ns);
    EXPECT_EQ(k.device_index, device.index());
    EXPECT_EQ(k.bytes, 4 * 4.0 * 64 * 32);
    EXPECT_GT(k.roof.gbps, 0);
    EXPECT_NE(k.event_metadata.plan, "");
    const auto op = std::find_if(ops.begin(), ops.end(), [&](const auto& e) { return e.id == k.external_id; });
    ASSERT_NE(op, ops.end());
    EXPECT_EQ(op->name, "addcmul");
    ASSERT_EQ(op->kernels.size(), 1u);
    EXPECT_EQ(events[static_cast<std::size_t>(op->kernels[0])].id, k.id);
    ASSERT_GE(op->cpu_parent, 0);
    EXPECT_EQ(events[static_cast<std::size_t>(op->cpu_parent)].name, "inner");
    const auto call = std::find_if(calls.begin(), calls.end(), [&](const auto& e) { return e.id == k.id; });
    ASSERT_NE(call, calls.end());
    EXPECT_EQ(call->name, "clEnqueueNDRangeKernel");
    EXPECT_TRUE(call->flow_start && !k.flow_start);
    EXPECT_EQ(call->flow_id, k.flow_id);
    EXPECT_GE(call->start_ns, op->start_ns);
    EXPECT_LE(call->end_ns, op->end_ns);
    EXPECT_EQ(of_type(events, "gpu_memcpy").size(), 1u);
    EXPECT_EQ(of_type(events, "cuda_sync").size(), 1u);
    EXPECT_EQ(of_type(events, "gpu_user_annotation").size(), 2u);
    for (const FunctionEvent& e : events) EXPECT_LE(e.start_ns, e.end_ns) << e.name;
  }
}

TEST(Profiler, RecordsNothingWhenOff) {
  const Device& device = test_devices().front();
  const Tensor x = full({64}, 2, {.device = device});
  Profiler profiler;
  addcmul(x, x, x);
  profiler.start();
  profiler.stop();
  addcmul(x, x, x);
  EXPECT_EQ(detail::profiled(), 0u);
  EXPECT_TRUE(profiler.events().empty());
  EXPECT_TRUE(profiler.idle_gaps().empty());
  EXPECT_TRUE(profiler.key_averages().empty());
  EXPECT_NE(profiler.table(), "");
  ScratchFile file("empty.json");
  profiler.export_chrome_trace(file.path());
  EXPECT_EQ(check_trace(file.json()), "");
}

TEST(Profiler, RefusesASecondOneAndWrongOrder) {
  Profiler one, two;
  EXPECT_EQ(code_of([&] { one.stop(); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { one.step(); }), ErrorCode::invalid_argument);
  one.start();
  EXPECT_EQ(message_of([&] { two.start(); }),
            "profiler::Profiler::start: no other profiler must record in the process, got a second one; stop() the first, or unset CLUTCH_PROFILE");
  EXPECT_EQ(code_of([&] { one.start(); }), ErrorCode::invalid_argument);
  one.stop();
  two.start();
  two.stop();
  {
    Profiler left;  // its destructor ends it
    left.start();
  }
  one.start();
  one.stop();
  {
    // Between two cycles another one may record, and is left alone.
    Profiler waits({.schedule = Schedule{.wait = 5}});
    waits.start();
    two.start();
    waits.step();
    EXPECT_NE(detail::profiled(), 0u);
  }
  EXPECT_NE(detail::profiled(), 0u);
  two.stop();
  EXPECT_TRUE(two.events().empty());
  EXPECT_EQ(code_of([] { Profiler({.max_events = 0}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { Profiler({.cpu_activity = false, .device_activity = false}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { one.add_metadata_json("key", "{"); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)one.table({.sort_by = "name"}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)one.table({.row_limit = 0}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { one.export_chrome_trace("x.json", {.rank = 1}); }), ErrorCode::invalid_argument);
}

TEST(Profiler, RangesThatDoNotNestAreErrors) {
  Profiler profiler;
  profiler.start();
  auto first = std::make_unique<Range>("first");
  auto second = std::make_unique<Range>("second");
  first.reset();
  second.reset();
  EXPECT_EQ(message_of([&] { profiler.stop(); }),
            "profiler::Profiler::stop: a range must end behind those that began within it, got the end of 'first' while 'second' is open");
  EXPECT_EQ(profiler.events().size(), 2u);  // ended and can be read
  profiler.start();
  Range outer("outer");
  Range inner("inner");
  EXPECT_EQ(code_of([&] { outer.end(); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { outer.end(); }), ErrorCode::ok);  // the second call does nothing
  EXPECT_EQ(code_of([&] { inner.end(); }), ErrorCode::invalid_argument);
  Range moved("of this thread");
  std::string told;
  std::thread([&] { told = message_of([&] { moved.end(); }); }).join();
  EXPECT_NE(told.find("is not open on this thread"), std::string::npos) << told;
  EXPECT_EQ(code_of([&] { profiler.stop(); }), ErrorCode::ok);  // Errors were thrown already
}

TEST(Profiler, LetsARangeEndInALaterProfile) {
  Profiler first, second;
  first.start();
  auto range = std::make_unique<Range>("of the first");
  first.stop();
  second.start();
  range.reset();
  second.stop();
  EXPECT_EQ(first.events().size(), 1u);
  EXPECT_TRUE(second.events().empty());
}

TEST(Profiler, TellsWhatWasOpen) {
  Profiler profiler;
  profiler.start();
  Range open("open");
  { const Range closed("closed"); }
  profiler.stop();
  const auto events = profiler.events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_FALSE(events[0].finished);
  EXPECT_TRUE(events[1].finished);
  EXPECT_GE(events[0].end_ns, events[1].end_ns);
  ScratchFile file("open.json");
  profiler.export_chrome_trace(file.path());
  const auto trace = file.json();
  EXPECT_EQ(check_trace(trace), "");
  int unfinished = 0;
  for (const auto& e : trace["traceEvents"]) unfinished += e.contains("args") && e["args"].contains("finished") && !e["args"]["finished"].get<bool>();
  EXPECT_EQ(unfinished, 1);
}

TEST(Profiler, FollowsItsSchedule) {
  const Device& device = test_devices().front();
  const Tensor x = full({64}, 2, {.device = device});
  std::vector<std::vector<std::string>> traces;
  Profiler profiler({.schedule = Schedule{.wait = 1, .warmup = 1, .active = 2, .repeat = 2}, .on_trace_ready = [&](Profiler& p) {
                       std::vector<std::string> steps;
                       for (const auto& e : of_type(p.events(), "user_annotation")) {
                         EXPECT_EQ(e.name, "ProfilerStep*");
                         steps.push_back(e.trace_name);
                       }
                       EXPECT_EQ(of_type(p.events(), "kernel").size(), 2u);
                       traces.push_back(steps);
                     }});
  profiler.start();
  std::vector<ProfilerAction> actions;
  for (int step = 0; step < 10; ++step) {
    actions.push_back(profiler.current_action());
    EXPECT_EQ(profiler.step_num(), step);
    addcmul(x, x, x);
    profiler.step();
  }
  profiler.stop();
  using enum ProfilerAction;
  EXPECT_EQ(actions, (std::vector{none, warmup, record, record_and_save, none, warmup, record, record_and_save, none, none}));
  const std::vector<std::vector<std::string>> expected{{"ProfilerStep#2", "ProfilerStep#3"}, {"ProfilerStep#6", "ProfilerStep#7"}};
  EXPECT_EQ(traces, expected);
}

TEST(Profiler, StopsInTheMiddleOfAStep) {
  int ready = 0;
  Profiler profiler({.schedule = Schedule{.warmup = 1, .active = 3}, .on_trace_ready = [&](Profiler&) { ++ready; }});
  profiler.start();
  profiler.stop();
  EXPECT_EQ(ready, 0);
  EXPECT_TRUE(profiler.events().empty());
  profiler.start();
  profiler.step();
  profiler.stop();
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(profiler.events().size(), 1u);  // the step
}

TEST(Profiler, KernelTimesAreTheHostsClocks) {
  const Device& device = test_devices().front();
  if (skip_without(device, "device_timer", device.traits().device_timer)) return;
  const Spin spin(device);
  spin(1000);
  synchronize(device);
  double best = 1;
  for (int attempt = 0; attempt < 6 && best > 0.05; ++attempt) {
    Profiler profiler;
    profiler.start();
    const auto begin = steady_clock::now();
    for (int i = 0; i < 20; ++i) spin(300'000);
    synchronize(device);
    const double wall = std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count();
    profiler.stop();
    double sum = 0;
    std::uint64_t last = 0;
    for (const FunctionEvent& e : of_type(profiler.events(), "kernel")) {
      sum += e.time_us();
      EXPECT_GE(e.start_ns, last) << "kernels of one stream overlap";
      last = e.end_ns;
    }
    // Times of the device lie within the region, so translated times do, too.
    EXPECT_LE(static_cast<double>(last) * 1e-3, profiler.totals().wall_us * 1.01 + 20);
    EXPECT_LE(sum, wall * 1.01);
    best = std::min(best, std::abs(wall - sum) / wall);
  }
  EXPECT_LE(best, 0.05);
}

TEST(Profiler, TraceNestsAndFlows) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = full({256, 64}, 2, {.device = device});
    Stream side(device);
    Profiler profiler({.profile_memory = true, .record_shapes = true});
    profiler.start();
    std::thread other([&] {
      const Range range("other thread");
      for (int i = 0; i < 20; ++i) (void)nn::softmax(x, -1, side);
      side.synchronize();
    });
    for (int i = 0; i < 20; ++i) {
      const Range range("step");
      (void)nn::softmax(x);
      const Tensor y = x.clone();
      if (i % 7 == 0) (void)y.to_bytes();
    }
    other.join();
    profiler.stop();
    profiler.add_metadata("note", "a \"text\"");
    profiler.add_metadata_json("numbers", "[1,2]");
    ScratchFile file("trace.json");
    for (const TraceNames names : {TraceNames::opencl, TraceNames::hta}) {
      profiler.export_chrome_trace(file.path(), {.names = names, .rank = 1, .world_size = 2});
      EXPECT_EQ(file.files(), 1u);
      const auto trace = file.json();
      EXPECT_EQ(check_trace(trace), "");
      EXPECT_EQ(trace["distributedInfo"]["rank"], 1);
      std::map<std::string, int> phases, names_of_calls;
      for (const auto& e : trace["traceEvents"]) {
        ++phases[e["ph"].get<std::string>()];
        if (e.value("cat", "") == "cuda_runtime") ++names_of_calls[e["name"].get<std::string>()];
      }
      EXPECT_GE(phases["s"], 60);
      const auto op = std::find_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                                   [](const auto& e) { return e["name"] == "rowwise" && e["args"].contains("Input Dims"); });
      ASSERT_NE(op, trace["traceEvents"].end());
      EXPECT_EQ((*op)["args"]["Input Dims"][0], (nlohmann::json{256, 64}));
      EXPECT_EQ((*op)["args"]["Input Strides"][0], (nlohmann::json{64, 1}));
      EXPECT_EQ((*op)["args"]["Input type"][0], "f32");
      EXPECT_EQ(phases["s"], phases["f"]);
      EXPECT_GT(phases["C"], 0);
      EXPECT_EQ(names_of_calls.contains(names == TraceNames::hta ? "cudaLaunchKernel" : "clEnqueueNDRangeKernel"), true);
    }
    // The operands of softmax's kernel stand in its op, as text and as numbers.
    bool shapes = false;
    for (const FunctionEvent& e : profiler.events()) {
      EXPECT_EQ(e.structured_input_shapes.size(), e.input_dtypes.size());
      EXPECT_EQ(e.structured_input_strides.size(), e.input_dtypes.size());
      if (e.name != "rowwise") continue;
      shapes = true;
      EXPECT_TRUE(e.input_shapes.starts_with("(256, 64)")) << e.input_shapes;
      EXPECT_EQ(e.structured_input_shapes[0], (Dims{256, 64}));
      EXPECT_EQ(e.structured_input_strides[0], (Dims{64, 1}));
      EXPECT_EQ(e.input_dtypes[0], DType::f32);
    }
    EXPECT_TRUE(shapes);
  }
}

TEST(Profiler, WritesWhatRangesSay) {
  const Tensor x = full({4096}, 1);
  EXPECT_FALSE(recording());
  Profiler profiler;
  profiler.start();
  EXPECT_TRUE(recording());
  {
    Range outer("outer",
                {.arguments = {{"number", std::int64_t{7}}, {"share", 0.5}, {"text", "a \"b\""}}, .op_name = "named", .command_name = "ncclKernel_test"});
    mul(x, 2);
    Range inner("inner", {.arguments = {{"number", std::int64_t{8}}}});
    inner.set_facts({.arguments = {{"number", std::int64_t{9}}}});
    mul(x, 3);
  }
  mul(x, 4);
  // A command that a library enqueues says what a range said while it was enqueued.
  Encoder(current_stream(), "test::opaque").opaque([](void*) { const Range within("within", {.arguments = {{"number", std::int64_t{10}}}}); }, {}, {});
  current_stream().synchronize();
  profiler.stop();
  EXPECT_FALSE(recording());
  ScratchFile file("facts.json");
  profiler.export_chrome_trace(file.path());
  const auto own = file.json();
  profiler.export_chrome_trace(file.path(), {.names = TraceNames::hta});
  const auto hta = file.json();
  for (const auto& trace : {own, hta}) EXPECT_EQ(check_trace(trace), "");
  auto numbers = [](const nlohmann::json& trace, std::string_view cat) {
    std::vector<std::pair<std::string, int>> found;
    for (const auto& e : trace["traceEvents"])
      if (e.value("cat", "") == cat && !e["args"].contains("bytes")) found.emplace_back(e["name"], e["args"].value("number", 0));
    return found;
  };
  using List = std::vector<std::pair<std::string, int>>;
  EXPECT_EQ(numbers(own, "user_annotation"), (List{{"outer", 7}, {"inner", 9}, {"within", 10}}));
  EXPECT_EQ(numbers(hta, "user_annotation"), (List{{"inner", 9}, {"within", 10}}));
  const auto kernels = numbers(own, "kernel"), renamed = numbers(hta, "kernel");
  ASSERT_EQ(kernels.size(), 4U);
  EXPECT_EQ(kernels[0].second, 7);
  EXPECT_EQ(kernels[1].second, 9);
  EXPECT_EQ(kernels[2].second, 0);
  EXPECT_EQ(kernels[3], (std::pair<std::string, int>{"test::opaque", 10}));
  EXPECT_EQ(renamed[0].first, "ncclKernel_test");
  EXPECT_EQ(renamed[1].first, kernels[1].first);
  bool found = false;
  for (const FunctionEvent& e : profiler.events())
    if (e.name == "outer" && !e.on_device) {
      using Facts = std::vector<std::pair<std::string, std::string>>;
      EXPECT_EQ(e.facts, (Facts{{"number", "7"}, {"share", "0.5"}, {"text", "\"a \\\"b\\\"\""}}));
      found = true;
    }
  EXPECT_TRUE(found);
}

TEST(Profiler, KeepsFactsOfTheNewestRangesAlone) {
  Profiler profiler({.max_events = 4096});
  profiler.start();
  for (std::int64_t i = 0; i < 10000; ++i) const Range range("range", {.arguments = {{"number", i}}});
  profiler.stop();
  const auto events = profiler.events();
  ASSERT_EQ(events.size(), 4096U);
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].facts.size(), 1U) << i;
    EXPECT_EQ(events[i].facts[0].second, std::to_string(10000 - 4096 + i));
  }
}

TEST(Profiler, PutsMembersIntoAllTraces) {
  Profiler profiler;
  profiler.start();
  profiler.stop();
  profiler.add_metadata_json("both", "1");
  ScratchFile file("members.json");
  EXPECT_EQ(code_of([] { set_trace_member("key", "{"); }), ErrorCode::invalid_argument);
  set_trace_member("both", "2"), set_trace_member("member", "[1, 2]"), set_trace_member("distributedInfo", R"({"rank": 3, "world_size": 4})");
  profiler.export_chrome_trace(file.path());
  auto trace = file.json();
  EXPECT_EQ(trace["member"], (nlohmann::json{1, 2}));
  EXPECT_EQ(trace["both"], 2) << "the trace ended before add_metadata_json()";
  EXPECT_EQ(trace["distributedInfo"]["rank"], 3);
  EXPECT_NE(file.text().find("\"rank\": 3,"), std::string::npos);
  EXPECT_NE(file.text().find("clutch rank 3"), std::string::npos);
  profiler.export_chrome_trace(file.path(), {.rank = 1, .world_size = 2});
  EXPECT_EQ(file.json()["distributedInfo"]["rank"], 1) << "what the call says holds";
  profiler.start();
  profiler.stop();
  profiler.export_chrome_trace(file.path());
  EXPECT_EQ(file.json()["both"], 1) << "the profiler's own text holds";
  set_trace_member("distributedInfo", R"({"backend":"clutch","rank": 0,"world_size":1})");
}

TEST(Profiler, CheckerFindsFaults) {
  Profiler profiler;
  const Tensor x = full({64}, 2);
  profiler.start();
  (void)x.clone();
  profiler.stop();
  ScratchFile file("faults.json");
  profiler.export_chrome_trace(file.path());
  const auto right = file.json();
  ASSERT_EQ(check_trace(right), "");
  auto planted = [&](const std::function<void(nlohmann::json&)>& edit) {
    auto trace = right;
    edit(trace);
    return check_trace(trace);
  };
  auto first = [](nlohmann::json& trace, const char* ph, const char* cat) -> nlohmann::json& {
    for (auto& e : trace["traceEvents"])
      if (e["ph"] == ph && e.value("cat", "") == cat) return e;
    throw std::runtime_error("no such event");
  };
  EXPECT_NE(planted([&](auto& t) { first(t, "X", "cuda_runtime")["dur"] = 1e9; }), "");
  EXPECT_NE(planted([&](auto& t) { first(t, "X", "cpu_op")["cat"] = "op"; }), "");
  EXPECT_NE(planted([&](auto& t) { first(t, "f", "ac2g")["id"] = 999; }), "");
  EXPECT_NE(planted([&](auto& t) { first(t, "s", "ac2g")["ts"] = 1; }), "");
  EXPECT_NE(planted([&](auto& t) { t.erase("baseTimeNanoseconds"); }), "");
  EXPECT_NE(planted([&](auto& t) { first(t, "X", "cpu_op")["tid"] = 77; }), "");
}

TEST(Profiler, WritesGzipThatGzipReads) {
  const Device& device = test_devices().front();
  const Tensor x = full({64}, 2, {.device = device});
  Profiler profiler;
  profiler.start();
  for (int i = 0; i < 500; ++i) addcmul(x, x, x);
  profiler.stop();
  ScratchFile plain("trace.json"), packed("trace.json.gz");
  profiler.export_chrome_trace(plain.path());
  profiler.export_chrome_trace(packed.path());
  const detail::ProgramRun run = detail::run_program("/bin/gzip", {"-dc", packed.path()}, detail::Keep::output);
  ASSERT_EQ(run.end, detail::ProgramRun::End::exited) << run.problem;
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.kept, plain.text());
  EXPECT_LT(packed.text().size() * 4, plain.text().size());
}

TEST(Profiler, WritesNothingByHalf) {
  Profiler profiler;
  const Tensor x = full({64}, 2);
  profiler.start();
  for (int i = 0; i < 300; ++i) (void)x.clone();
  profiler.stop();
  ScratchFile file("trace.json");
  EXPECT_EQ(code_of([&] { profiler.export_chrome_trace("/no/such/folder/trace.json"); }), ErrorCode::io);
  EXPECT_EQ(message_of([&] { profiler.export_chrome_trace("/dev/null"); }),
            "profiler::Profiler::export_chrome_trace: the output must be a file, new or regular, got '/dev/null'");
  EXPECT_EQ(code_of([&] { profiler.export_html(""); }), ErrorCode::io);
  // A disk that is full: no file may grow past 10 kB.
  rlimit former{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &former), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{10'000, former.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string plain = message_of([&] { profiler.export_chrome_trace(file.path()); });
  ::setrlimit(RLIMIT_FSIZE, &former);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(plain.find("the output must be a file that can be written"), std::string::npos) << plain;
  EXPECT_NE(plain.find("File too large"), std::string::npos) << plain;
  EXPECT_EQ(file.files(), 0u);
  // Likewise the other files, each of more than 1000 bytes. (Annotations of no graph are fewer.)
  const rlimit least{1000, former.rlim_max};
  ScratchFile packed("trace.json.gz"), page("page.html"), snapshot("snapshot.pickle"), memory("memory.html");
  const std::pair<const ScratchFile*, std::function<void(const std::string&)>> writers[] = {
      {&packed, [&](const std::string& path) { profiler.export_chrome_trace(path); }},
      {&page, [&](const std::string& path) { profiler.export_html(path); }},
      {&snapshot, dump_memory_snapshot},
      {&memory, dump_memory_snapshot}};
  for (const auto& [of, write] : writers) {
    ::setrlimit(RLIMIT_FSIZE, &least);
    std::signal(SIGXFSZ, SIG_IGN);
    const ErrorCode code = code_of([&] { write(of->path()); });
    ::setrlimit(RLIMIT_FSIZE, &former);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(code, ErrorCode::io) << of->path();
    EXPECT_EQ(of->files(), 0u) << of->path();
    write(of->path());
    EXPECT_EQ(of->files(), 1u);
    EXPECT_GT(of->text().size(), 1000u) << of->path();
  }
  // An older file stays as it was.
  profiler.export_chrome_trace(file.path());
  const std::string before = file.text();
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::signal(SIGXFSZ, SIG_IGN);
  EXPECT_EQ(code_of([&] { profiler.export_chrome_trace(file.path()); }), ErrorCode::io);
  ::setrlimit(RLIMIT_FSIZE, &former);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(file.text(), before);
  EXPECT_EQ(file.files(), 1u);
}

TEST(Profiler, RecordsAnyProgramByTheEnvironment) {
  const char* child = std::getenv("PROFILE_CHILD");
  ASSERT_NE(child, nullptr);
  ScratchFile file("program.json"), page("program.html");
  for (const ScratchFile* wanted : {&file, &page}) {
    detail::set_environment("CLUTCH_PROFILE", wanted->path().c_str());
    const detail::ProgramRun run = detail::run_program(child, {}, detail::Keep::errors);
    ::unsetenv("CLUTCH_PROFILE");
    ASSERT_EQ(run.end, detail::ProgramRun::End::exited) << run.problem;
    EXPECT_EQ(run.status, 0) << run.kept;
    EXPECT_EQ(wanted->files(), 1u);
  }
  const auto trace = file.json();
  EXPECT_EQ(check_trace(trace), "");
  EXPECT_GT(trace["profilerOverhead"]["us per command"].get<double>(), 0);
  EXPECT_GT(trace["profilerOverhead"]["total us"].get<double>(), 0);
  int kernels = 0;
  for (const auto& e : trace["traceEvents"]) kernels += e.value("cat", "") == "kernel";
  EXPECT_GT(kernels, 0);
  EXPECT_NE(page.text().find("</html>"), std::string::npos);
  // A trace that cannot be written is told, and the program ends as it would.
  detail::set_environment("CLUTCH_PROFILE", "/no/such/folder/trace.json");
  const detail::ProgramRun run = detail::run_program(child, {}, detail::Keep::errors);
  ::unsetenv("CLUTCH_PROFILE");
  EXPECT_EQ(run.status, 0);
  EXPECT_NE(run.kept.find("CLUTCH_PROFILE: profiler::Profiler::export_chrome_trace: the output must be"), std::string::npos) << run.kept;
}

TEST(Profiler, KeepsTheNewestOfManyEvents) {
  Profiler profiler({.max_events = 4096});
  const Tensor x = full({64}, 2);
  profiler.start();
  for (int i = 0; i < 5000; ++i) const Range range("many");
  for (int i = 0; i < 3; ++i) addcmul(x, x, x);
  profiler.stop();
  const ProfileTotals totals = profiler.totals();
  EXPECT_EQ(totals.events, 4096u);
  EXPECT_GE(totals.dropped, 5000u - 4096u);
  EXPECT_EQ(of_type(profiler.events(), "kernel").size(), 3u);
  EXPECT_GT(totals.overhead_us, 0);
  EXPECT_GT(totals.command_cost_us, 0);
}

/// Resident memory of the process in bytes, where the system tells it.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST(Profiler, KeepsAMillionEventsInBoundedMemory) {
  constexpr std::int64_t kEvents = 1 << 20, kRecord = 128;
  Profiler profiler;  // of so many
  profiler.start();
  const std::uint64_t before = resident_bytes();
  for (std::int64_t i = 0; i < 3 * kEvents; ++i) const Range range("many");
  const std::uint64_t after = resident_bytes();
  profiler.stop();
  const ProfileTotals totals = profiler.totals();
  EXPECT_EQ(totals.events, static_cast<std::uint64_t>(kEvents));
  EXPECT_GE(totals.dropped, static_cast<std::uint64_t>(2 * kEvents));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr bool kSanitized = true;  // shadow memory, and what sanitizers keep of what was freed
#else
  constexpr bool kSanitized = false;
#endif
  if (before > 0 && !kSanitized) {
    EXPECT_LT(after - before, static_cast<std::uint64_t>(kEvents * kRecord) * 5 / 4);
  }
}

TEST(Profiler, SumsAveragesWithoutNegativeShares) {
  const Device& device = test_devices().front();
  const Tensor x = full({256, 64}, 2, {.device = device});
  Profiler profiler({.profile_memory = true, .record_shapes = true});
  profiler.start();
  Tensor kept;
  {
    const Range range("work");
    for (int i = 0; i < 10; ++i) (void)nn::softmax(x);
    kept = x.clone();
  }
  profiler.stop();
  double kernels = 0, self = 0;
  for (const KeyAverage& a : profiler.key_averages()) {
    EXPECT_GE(a.self_cpu_time_total, 0) << a.key;
    EXPECT_LE(a.self_cpu_time_total, a.cpu_time_total + 1e-6) << a.key;
    if (a.on_device) kernels += a.device_time_total;
    if (!a.on_device) self += a.self_device_time_total;
    if (a.key == "work") {
      EXPECT_EQ(a.count, 1);
      EXPECT_EQ(a.device_memory_usage, static_cast<std::int64_t>(x.nbytes()));
    }
    if (a.key == "softmax") {
      EXPECT_EQ(a.count, 10);
    }
  }
  EXPECT_GT(kernels, 0);
  EXPECT_NEAR(self, kernels, 1e-6 * kernels);  // every command belongs to one scope
  const auto by_shape = profiler.key_averages({.group_by_input_shape = true});
  EXPECT_GE(by_shape.size(), profiler.key_averages().size());
  const std::string table = profiler.table(), two = profiler.table({.sort_by = "count", .row_limit = 2});
  EXPECT_NE(table.find("softmax"), std::string::npos) << table;
  EXPECT_LT(two.size(), table.size());
}

TEST(Profiler, TellsNodesOfGraphs) {
  CLUTCH_EACH_DEVICE(device) {
    for (const bool nodes : {true, false}) {
      const Stream stream(device);
      const Tensor x = full({64}, 2, {.device = device}, stream), y = empty({64}, {.device = device}, stream);
      Graph graph;
      {
        GraphCapture capture(graph, stream);
        const GraphAnnotation outer("layer", {{"depth", "1"}, {"kind", "outer"}});
        addcmul_(x, x, x, {}, stream);
        const Range inner("inner range");
        const GraphAnnotation innermost("mul", {{"kind", "inner"}});
        addcdiv_(x, x, x, {}, stream);
      }
      Profiler profiler({.graph_nodes = nodes});
      profiler.start();
      for (int i = 0; i < 3; ++i) graph.replay(stream);
      profiler.stop();
      if (!nodes) continue;
      std::set<std::uint64_t> ids;
      int labelled = 0;
      for (const FunctionEvent& e : of_type(profiler.events(), "kernel")) {
        const EventMetadata& m = e.event_metadata;
        EXPECT_EQ(m.graph_node_id >> 32, m.graph_id);
        ids.insert(m.graph_node_id);
        using Labels = std::vector<std::pair<std::string, std::string>>;
        const Labels first{{"str", "layer"}, {"depth", "1"}, {"kind", "outer"}}, second{{"str", "mul"}, {"depth", "1"}, {"kind", "inner"}};
        EXPECT_EQ(m.labels, (m.graph_node_id & 0xFFFF'FFFF) == 0 ? first : second);
        ++labelled;
      }
      EXPECT_EQ(ids.size(), 2u);
      EXPECT_EQ(labelled, 6);
      ScratchFile file("graph.json"), pickle("annotations.pkl");
      profiler.export_chrome_trace(file.path());
      profiler.export_kernel_annotations(pickle.path());
      const auto trace = file.json();
      EXPECT_EQ(check_trace(trace), "");
      int found = 0;
      for (const auto& e : trace["traceEvents"])
        if (e.value("cat", "") == "kernel") {
          EXPECT_TRUE(e["args"].contains("graph id"));
          EXPECT_TRUE(ids.contains(e["args"]["graph node id"].get<std::uint64_t>()));
          found += e["args"]["str"] == "mul" && e["args"]["depth"] == "1" && e["args"]["kind"] == "inner";
        }
      EXPECT_EQ(found, 3);
      EXPECT_TRUE(pickle.text().starts_with("\x80\x02}("));
      EXPECT_TRUE(pickle.text().ends_with("u."));
    }
  }
}

TEST(Profiler, BeginsWithinACapture) {
  const Device& device = test_devices().front();
  const Stream stream(device);
  const Tensor x = full({64}, 2, {.device = device}, stream);
  stream.synchronize();
  Graph graph;
  Profiler profiler;
  {
    GraphCapture capture(graph, stream, {.mode = CaptureMode::relaxed});
    profiler.start();
    addcmul_(x, x, x, {}, stream);
  }
  graph.replay(stream);
  profiler.stop();
  EXPECT_EQ(of_type(profiler.events(), "kernel").size(), 1u);
}

TEST(Profiler, ClassifiesGaps) {
  const Device& device = test_devices().front();
  if (skip_without(device, "device_timer", device.traits().device_timer)) return;
  const Spin spin(device), other(device);
  Stream main(device), side(device);
  spin(1000, main), other(1000, side);
  main.synchronize(), side.synchronize();
  Profiler profiler;
  profiler.start();
  spin(1000, main);
  main.synchronize();
  std::this_thread::sleep_for(std::chrono::milliseconds(3));  // nothing to do
  spin(1000, main);
  {
    Event ready;
    other(60'000'000, side);
    ready.record(side);
    main.wait(ready);
    spin(1000, main);
  }
  main.synchronize();
  profiler.stop();
  bool empty = false, event = false;
  for (const IdleGap& gap : profiler.idle_gaps(1000)) {
    EXPECT_LT(gap.start_ns, gap.end_ns);
    if (gap.stream != main.id()) continue;
    if (gap.cause == IdleGap::Cause::queue_empty) empty = true;
    if (gap.cause == IdleGap::Cause::event) {
      event = true;
      EXPECT_EQ(gap.wait_stream, side.id());
      EXPECT_EQ(gap.waits_for, "spin");
    }
  }
  EXPECT_TRUE(empty);
  EXPECT_TRUE(event);
  // The same gaps are slices of the trace, but where HolisticTraceAnalysis reads it.
  for (const TraceNames names : {TraceNames::opencl, TraceNames::hta}) {
    ScratchFile file("gaps.json");
    profiler.export_chrome_trace(file.path(), {.names = names});
    const auto trace = file.json();
    EXPECT_EQ(check_trace(trace), "");
    std::size_t found = 0;
    for (const auto& e : trace["traceEvents"])
      if (e.value("cat", "") == "idle_gap") {
        ++found;
        const std::string cause = e["args"]["cause"];
        EXPECT_TRUE(e["name"].get<std::string>().starts_with(cause));
        if (cause == "event") {
          EXPECT_EQ(e["args"]["waits on stream"], side.id());
          EXPECT_EQ(e["name"], "event: spin");
        }
      }
    EXPECT_EQ(found, names == TraceNames::hta ? 0u : profiler.idle_gaps().size());
  }
}

TEST(Profiler, WritesAPage) {
  const Device& device = test_devices().front();
  const Tensor x = full({256, 64}, 2, {.device = device});
  Profiler profiler({.roof = {.flops = 1e11, .bytes = 1e10}});
  profiler.start();
  for (int i = 0; i < 20; ++i) (void)nn::softmax(x);
  (void)x.to_bytes();
  profiler.stop();
  ScratchFile file("page.html");
  profiler.export_html(file.path());
  const std::string page = file.text();
  for (const char* part : {"<!DOCTYPE html>", "Timeline", "Commands by time", "Roofline", "<circle", "Idle gaps", "</html>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

TEST(Profiler, RoofsAreTheBindingOnes) {
  const DeviceRoof roof{.flops = 1e9, .bytes = 1e8, .by_size = {{1000, 4e8}, {100'000, 2e8}}};
  const Device& device = test_devices().front();
  const Tensor x = zeros({1 << 20}, {.device = device});
  Profiler profiler({.roof = roof});
  profiler.start();
  addcmul(x, x, x);
  profiler.stop();
  const auto kernels = of_type(profiler.events(), "kernel");
  ASSERT_EQ(kernels.size(), 1u);
  const RoofPoint& r = kernels[0].roof;
  EXPECT_EQ(r.binding, "memory");
  EXPECT_NEAR(r.roof_us, 16.0 * (1 << 20) / 1e8 * 1e6, 1e-3);
  EXPECT_NEAR(r.roof_pct, 100 * r.roof_us / kernels[0].time_us(), 1e-6 * r.roof_pct);
  EXPECT_NEAR(r.gbps, 16.0 * (1 << 20) / kernels[0].time_us() * 1e-3, 1e-6 * r.gbps);
}

TEST(Profiler, RoofsOfF64AreThoseOfF64) {
  const Device& device = test_devices().front();
  if (!device.traits().fp64) return;
  for (const double flops64 : {1e7, 0.0}) {
    const Tensor x = zeros({64, 64}, {.dtype = DType::f64, .device = device}), y = x.to(DType::f32);
    linalg::matmul(x, x), linalg::matmul(y, y);
    Profiler profiler({.roof = {.flops = 1e9, .bytes = 1e15, .flops64 = flops64}});
    profiler.start();
    linalg::matmul(x, x);
    linalg::matmul(y, y);
    profiler.stop();
    double of_f64 = 0, of_f32 = 0;
    for (const FunctionEvent& e : of_type(profiler.events(), "kernel"))
      if (e.flops > 0) (of_f64 == 0 ? of_f64 : of_f32) = e.roof.roof_us;
    constexpr double kFlops = 2.0 * 64 * 64 * 64;
    EXPECT_NEAR(of_f64, kFlops / (flops64 > 0 ? flops64 : 1e9) * 1e6, 1e-3);
    EXPECT_NEAR(of_f32, kFlops / 1e9 * 1e6, 1e-3);
  }
}

TEST(Profiler, ComparesProfilesWithTheirNoise) {
  auto events_of = [](const std::string& name, double from, int count) {
    std::vector<FunctionEvent> events;
    for (int i = 0; i < count; ++i) {
      FunctionEvent e;
      e.name = e.trace_name = name, e.activity_type = "kernel", e.on_device = true;
      e.end_ns = static_cast<std::uint64_t>(from * 1e3) + static_cast<std::uint64_t>(i % 3) * 10;  // noise of 10 ns
      events.push_back(e);
    }
    return events;
  };
  auto join = [](std::vector<FunctionEvent> a, const std::vector<FunctionEvent>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const auto before = join(events_of("slower", 10, 30), join(events_of("same", 5, 30), join(events_of("gone", 1, 2), events_of("few", 1, 3))));
  const auto after = join(events_of("slower", 12, 30), join(events_of("same", 5.004, 30), join(events_of("fresh", 1, 2), events_of("few", 2, 3))));
  const auto rows = compare_events(before, after);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].key, "slower");
  EXPECT_TRUE(rows[0].significant);
  EXPECT_NEAR(rows[0].change_pct, 20, 0.1);
  EXPECT_NEAR(rows[0].before.median_us, 10.01, 1e-9);
  EXPECT_NEAR(rows[0].before.noise_pct, 1.4826 * 0.01 / 10.01 * 100, 1e-9);
  for (const KernelDifference& r : rows) EXPECT_EQ(r.significant, r.key == "slower") << r.key;
  const std::string table = to_string(rows);
  for (const char* part : {"+20.0% *", "gone", "new"}) EXPECT_NE(table.find(part), std::string::npos) << table;
}

TEST(Profiler, ComparesTraces) {
  const Device& device = test_devices().front();
  const Tensor x = full({64}, 2, {.device = device});
  ScratchFile file("trace.json"), bad("bad.json");
  Profiler profiler;
  profiler.start();
  for (int i = 0; i < 8; ++i) addcmul(x, x, x);
  profiler.stop();
  profiler.export_chrome_trace(file.path());
  const auto rows = compare_traces(file.path(), file.path());
  const auto events = profiler.events();
  const auto same = compare_events(events, events);
  ASSERT_EQ(rows.size(), same.size());
  bool found = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].key, same[i].key);
    EXPECT_NEAR(rows[i].before.median_us, same[i].before.median_us, 1e-3);
    EXPECT_EQ(rows[i].change_pct, 0);
    found = found || (rows[i].key.starts_with("addc") && rows[i].before.count == 8);
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(code_of([&] { compare_traces(file.path(), bad.path()); }), ErrorCode::io);
  std::ofstream(bad.path()) << "{\"traceEvents\":3";
  EXPECT_EQ(code_of([&] { compare_traces(bad.path(), file.path()); }), ErrorCode::io);
  EXPECT_EQ(code_of([&] { compare_traces(std::filesystem::temp_directory_path().string(), file.path()); }), ErrorCode::io);
}

TEST(Profiler, ComparesCompressedTraces) {
  const Tensor x = full({64}, 2);
  ScratchFile plain("trace.json"), packed("trace.json.gz"), by_gzip("other.json"), bad("bad.json.gz");
  Profiler profiler;
  profiler.start();
  for (int i = 0; i < 300; ++i) addcmul(x, x, x);
  profiler.stop();
  profiler.export_chrome_trace(plain.path());
  profiler.export_chrome_trace(packed.path());
  const std::string wanted = to_string(compare_traces(plain.path(), plain.path()));
  EXPECT_EQ(to_string(compare_traces(packed.path(), packed.path())), wanted);
  // Another compressor's codes, and its name and time in the header. What the file holds counts, not its name.
  for (const char* level : {"-1", "-9"}) {
    const detail::ProgramRun run = detail::run_program("/bin/gzip", {level, "-c", plain.path()}, detail::Keep::output);
    ASSERT_EQ(run.end, detail::ProgramRun::End::exited) << run.problem;
    std::ofstream(by_gzip.path(), std::ios::binary) << run.kept;
    EXPECT_EQ(to_string(compare_traces(by_gzip.path(), plain.path())), wanted) << level;
    EXPECT_EQ(detail::gunzip(run.kept), plain.text());
    EXPECT_EQ(detail::gunzip(run.kept + run.kept), plain.text() + plain.text());  // members one behind the other
  }
  auto told = [&](std::string_view bytes) {
    std::ofstream(bad.path(), std::ios::binary) << bytes;
    const std::string text = message_of([&] { compare_traces(bad.path(), plain.path()); });
    EXPECT_NE(text.find(bad.path()), std::string::npos) << text;
    return text;
  };
  const std::string whole = packed.text();
  EXPECT_TRUE(told("a text").ends_with("which is neither"));
  EXPECT_TRUE(told("").ends_with("which is neither"));
  EXPECT_TRUE(told(whole.substr(0, whole.size() / 2)).ends_with("which is a broken gzip file: it ends too early"));
  EXPECT_TRUE(told(whole + "more").ends_with("which is a broken gzip file: it has another header than gzip's"));
  std::string changed = whole;
  changed[changed.size() - 7] ^= 1;
  EXPECT_TRUE(told(changed).ends_with("which is a broken gzip file: its checksum is another"));
  // Bytes of another compressor that were changed at random: an error that is told, or, where the header ignores them, the same text.
  const std::string small = detail::run_program("/bin/sh", {"-c", "seq 1 400 | gzip -9"}, detail::Keep::output).kept;
  const std::string right = detail::gunzip(small);
  std::uint32_t random = 1;
  for (int i = 0; i < 4000; ++i) {
    std::string broken = small;
    for (int k = 0; k <= i % 3; ++k) {
      random = random * 1664525u + 1013904223u;
      broken[(random >> 8) % broken.size()] ^= static_cast<char>(1 << (random >> 4) % 8);
    }
    try {
      EXPECT_EQ(detail::gunzip(broken), right);
    } catch (const std::runtime_error&) {
      continue;
    }
  }
}

}}  // namespace clutch::testing
