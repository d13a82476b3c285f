// SPDX-License-Identifier: Apache-2.0
// Walks k = 1, 2, ...: the k-th OpenCL call fails. Whatever it is, the caller gets an Error or the right result, nothing is
// leaked, and the next call is right. Ops are walked by their descriptors; a new op needs nothing here.
#include <clutch/allocator.hpp>
#include <clutch/interop_cl.hpp>
#include <clutch/profiler.hpp>

#include "layer/fault_layer.hpp"
#include "runtime/pool.hpp"
#include "runtime/settings.hpp"
#include "support/op_runner.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include <unistd.h>

namespace clutch::testing { namespace {

/// What is walked: returns what is wrong with its result, throws Errors alone.
struct Scenario {
  std::string name;
  std::function<std::string(const Device&)> run;
};

std::array<std::int64_t, fault::kObjectKinds> live_objects(const fault::Controls& layer) {
  std::array<std::int64_t, fault::kObjectKinds> all{};
  for (int kind = 0; kind < fault::kObjectKinds; ++kind) all[static_cast<std::size_t>(kind)] = layer.live(static_cast<fault::Object>(kind));
  return all;
}

std::string to_text(const std::array<std::int64_t, fault::kObjectKinds>& all) {
  constexpr const char* kNames[] = {"contexts", "queues", "buffers", "programs", "kernels", "events", "command buffers"};
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) text += fmt::format("{} {}, ", all[i], kNames[i]);
  return text;
}

/// Runs under whatever fault is armed. Any exception that is no Error is a finding.
struct Outcome {
  bool threw = false;
  std::string wrong, error;
};
Outcome attempt(const std::function<std::string()>& run) {
  Outcome o;
  try {
    o.wrong = run();
  } catch (const Error& e) {
    o.threw = true, o.error = e.what();
  } catch (const std::exception& e) {
    o.wrong = fmt::format("an exception that is no clutch::Error: {}", e.what());
  }
  return o;
}

/// Parameter: an op's stem, or "runtime" for what is no op.
class FaultWalk : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    layer_ = fault::loaded();
    ASSERT_NE(layer_, nullptr) << "libclutch_fault_layer.so is not loaded (OPENCL_LAYERS)";
    // A cache of its own: the walk sees what a warm cache gives, never what other tests left.
    folder_ = std::filesystem::temp_directory_path() / fmt::format("clutch_fault_walk_{}", ::getpid());
    auto settings = detail::the_settings();
    settings.cache_dir.value = folder_.string();
    settings.log.value.assign("off");
    settings_.emplace(settings);
    layer_->fake_device(0);
    layer_->reset();
  }
  void TearDown() override {
    if (layer_) layer_->reset();
    settings_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void set_cache(const char* mode) {
    auto settings = detail::the_settings();
    settings.cache.value = mode;
    settings_.emplace(settings);
  }

  /// One k of a walk over first use: enumeration, context, programs and the scenario, all new. Returns false once k is past
  /// the last call.
  bool first_use(const Scenario& s, std::uint64_t k, cl_int code, bool lose) {
    const Device& twin = test_devices().front();
    auto before = live_objects(*layer_);
    std::string what;
    {
      layer_->reset();
      lose ? layer_->lose_device(k, code) : layer_->fail_call(nullptr, k, code);
      std::optional<FreshDevice> fresh;
      Outcome faulty = attempt([&] {
        fresh.emplace(twin);
        return s.run(fresh->device());
      });
      const char* failed = layer_->failed();
      what = failed ? failed : "";
      layer_->reset();
      EXPECT_EQ(faulty.wrong, "") << label(s, k, code, what);
      // The same objects must serve the next call, after reset() of a stream on which work had failed.
      Outcome next = attempt([&] {
        if (!fresh || lose) {
          fresh.reset();
          fresh.emplace(twin);
        }
        default_stream(fresh->device()).reset();
        return s.run(fresh->device());
      });
      EXPECT_TRUE(next.wrong.empty() && !next.threw) << "the next call fails: " << next.wrong << next.error << label(s, k, code, what);
      if (fresh && fresh->record().runtime) {
        EXPECT_EQ(fresh->record().runtime->pool().live_blocks(), 0u) << "tensors leaked" << label(s, k, code, what);
      }
      ++faults_;
      if (faulty.threw) ++errors_;
    }
    auto after = live_objects(*layer_);
    EXPECT_EQ(after, before) << "leaked: " << to_text(after) << " before: " << to_text(before) << label(s, k, code, what);
    return !what.empty();
  }

  /// Walks later runs on one device: calls (`lose`: all from the k-th on) or events. Their programs are in memory: files of
  /// them would be made for nothing.
  void later_runs(const Scenario& s, cl_int code, const std::function<void(std::uint64_t)>& arm, bool must_throw) {
    set_cache("off");
    const Device& twin = test_devices().front();
    auto before = live_objects(*layer_);
    {
      FreshDevice fresh(twin);
      const Device& device = fresh.device();
      ASSERT_EQ(s.run(device), "") << s.name;
      ASSERT_EQ(s.run(device), "") << s.name;
      for (std::uint64_t k = 1;; ++k) {
        ASSERT_LT(k, 5000u) << s.name;
        layer_->reset();
        arm(k);
        Outcome faulty = attempt([&] { return s.run(device); });
        const char* failed = layer_->failed();
        std::string what = failed ? failed : "";
        layer_->reset();
        if (what.empty()) {
          ASSERT_TRUE(faulty.wrong.empty() && !faulty.threw) << s.name << ": " << faulty.wrong;
          break;
        }
        ASSERT_EQ(faulty.wrong, "") << label(s, k, code, what);
        if (must_throw) {
          ASSERT_TRUE(faulty.threw) << "a failed event went unnoticed" << label(s, k, code, what);
        }
        default_stream(device).reset();
        ASSERT_EQ(fresh.record().runtime->pool().live_blocks(), 0u) << "tensors leaked" << label(s, k, code, what);
        Outcome next = attempt([&] { return s.run(device); });
        ASSERT_TRUE(next.wrong.empty() && !next.threw) << "the next call fails: " << next.wrong << next.error << label(s, k, code, what);
        ++faults_;
        if (faulty.threw) ++errors_;
      }
    }
    auto after = live_objects(*layer_);
    EXPECT_EQ(after, before) << "leaked: " << to_text(after) << s.name;
  }

  static std::string label(const Scenario& s, std::uint64_t k, cl_int code, const std::string& what) {
    return fmt::format("\n  {}: call {} ({}) failed with {}", s.name, k, what, code);
  }

  void report() const { fmt::print("{} faults, {} of them ended as an Error\n", faults_, errors_); }

  const fault::Controls* layer_ = nullptr;
  std::filesystem::path folder_;
  std::optional<detail::SettingsOverride> settings_;
  std::uint64_t faults_ = 0, errors_ = 0;
};

/// Capture with a constant, a temporary and a result, instantiate, replay, update, rebind, save and load.
std::string walk_graph(const Device& device, const char* backend) {
  Stream stream = default_stream(device);
  Tensor x = full({64}, 2, {.device = device}, stream), other = full({64}, 3, {.device = device}, stream), y;
  Graph graph({.backend = backend});
  {
    GraphCapture capture(graph, stream);
    Tensor ones = from_host<float>(std::vector<float>(64, 1), {64}, device, stream);
    y = empty({64}, {.device = device}, stream);
    copy_(y, x, {}, stream);
    Tensor t = full({64}, 5, {.device = device}, stream);
    addcmul_(y, t, ones, {}, stream);
  }
  graph.replay(stream);
  graph.replay({{x, other}}, stream);
  if (y.to_host<float>(stream)[63] != 8) return "a rebound replay is wrong";
  graph.update(graph.find("addcmul_").at(0), {value(10, "value")});
  graph.replay(stream);
  if (y.to_host<float>(stream)[63] != 52) return "an updated replay is wrong";
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("clutch_walked_graph_{}", ::getpid())).string();
  graph.save(path, {{"y", y}});
  Graph loaded = Graph::load(path, device, {.backend = backend});
  std::filesystem::remove(path);
  loaded.replay(stream);
  return loaded.tensor("y").to_host<float>(stream)[0] == 52 ? std::string() : "the loaded graph is wrong";
}

/// What is not an op: tensors, streams, events, host tasks, the pool.
std::vector<Scenario> life_scenarios() {
  auto expect = [](bool fine, const char* what) { return fine ? std::string() : std::string(what); };
  return {
      {"tensor life",
       [=](const Device& device) {
         Tensor t = arange(0, 24, 1, {.device = device}).reshape({4, 6});
         Tensor transposed = t.mT().contiguous(), copy = transposed.clone();
         t = Tensor();
         if (copy.select(0, 1).select(0, 2).item() != 13) return std::string("an element is wrong");
         Tensor half = copy.to(DType::f16);
         std::string text = half.slice(0, 0, 2).to_string();
         empty_cache(device);
         return expect(text.find("18") != std::string::npos, "the text is wrong");
       }},
      {"two streams",
       [=](const Device& device) {
         Stream side(device), main = default_stream(device);
         Event ready, done;
         Tensor t = full({1000}, 3, {.device = device}, main);
         ready.record(main);
         side.wait(ready);
         Tensor u = full({1000}, 1, {.device = device}, side);
         addcmul_(u, t, t, {}, side);
         done.record(side);
         main.wait(done);
         done.wait();
         addcmul_(t, u, u, {}, main);
         main.synchronize();
         side.synchronize();
         return expect(done.query() && t.to_host<float>(main)[999] == 103, "the result is wrong");
       }},
      {"host task",
       [=](const Device& device) {
         Stream stream = default_stream(device);
         Tensor in = arange(0, 8, 1, {.device = device}, stream), out = empty({8}, {.device = device}, stream);
         Encoder encoder(stream, "test");
         encoder.host_task(
             [](std::span<void* const> p) {
               for (int i = 0; i < 8; ++i) static_cast<float*>(p[1])[i] = 2 * static_cast<float*>(p[0])[i];
             },
             std::array{in}, std::array{out});
         return expect(out.to_host<float>(stream)[7] == 14, "the result is wrong");
       }},
      {"profiler",
       [=](const Device& device) {
         profiler::Profiler profiler({.profile_memory = true});
         profiler.start();
         Stream side(device);
         {
           const profiler::Range range("walk");
           Tensor t = full({100}, 2, {.device = device}, side);
           addcmul_(t, t, t, {}, side);
           if (std::string wrong = expect(t.to_host<float>(side)[99] == 6, "the result is wrong"); !wrong.empty()) return wrong;
         }
         profiler.stop();
         // A command whose times the driver does not tell is an event without them.
         int kernels = 0;
         for (const auto& e : profiler.events()) kernels += e.activity_type == "kernel";
         return expect(kernels >= 1 && !profiler.table().empty(), "a kernel is missing in the profile");
       }},
      {"graph by the queue", [=](const Device& device) { return walk_graph(device, "host"); }},
      {"graph by command buffers", [=](const Device& device) { return device.traits().command_buffer > 0 ? walk_graph(device, "native") : std::string(); }},
      {"graph by fewer launches", [=](const Device& device) { return walk_graph(device, "fused"); }},
      {"caller's kernel",
       [=](const Device& device) {
         Tensor in = arange(0, 100, 1, {.device = device}), out = empty({100}, {.device = device});
         Argument arguments[] = {output(out), input(in)};
         launch({.text = "__kernel void twice(__global float* y, __global const float* x) { size_t i = get_global_id(0); y[i] = 2 * x[i]; }", .entry = "twice"},
                {.global = 100, .local = 1}, arguments);
         return expect(out.to_host<float>()[99] == 198, "the result is wrong");
       }},
  };
}

enum class Which { all, one_per_entry, one };

/// Problems of an op, or what stands for the runtime.
std::vector<Scenario> scenarios_of(const std::string& stem, Which which) {
  std::vector<Scenario> all;
  if (stem == "runtime") {
    all = life_scenarios();
    if (which == Which::one) all.resize(1);
    return all;
  }
  std::set<std::string_view> seen;
  for (const NamedProblem& p : all_problems()) {
    if (p.stem != stem || (p.problem->needs_fp64 && !test_devices().front().traits().fp64)) continue;
    if (which == Which::one && !all.empty()) break;
    if (which == Which::one_per_entry && !seen.insert(p.problem->entry).second) continue;
    all.push_back({p.name, [problem = p.problem](const Device& device) { return run_once(device, *problem); }});
  }
  return all;
}

constexpr cl_int kCodes[] = {CL_OUT_OF_RESOURCES, CL_INVALID_OPERATION};

TEST_P(FaultWalk, FirstUseWithAWarmCache) {
  // What streams, graphs and launches of the runtime do at first use is much the same, as is what ops do: by day a ninth of the calls, and a fifth, not all of
  // them the same.
  const std::uint64_t step = level() != "smoke" ? 1 : GetParam() == "runtime" ? 9 : 5;
  for (const Scenario& s : scenarios_of(GetParam(), level() == "smoke" && GetParam() != "runtime" ? Which::one : Which::one_per_entry)) {
    {
      FreshDevice warm(test_devices().front());
      ASSERT_EQ(s.run(warm.device()), "");
      synchronize(warm.device());
    }
    cl_int code = kCodes[faults_ % 2];
    for (std::uint64_t k = 1 + s.name.size() % step; first_use(s, k, code, false); k += step) ASSERT_LT(k, 5000u);
    if (HasFailure()) break;
  }
  report();
}

TEST_P(FaultWalk, FirstUseThatBuildsEverything) {
  set_cache("off");
  // Builds take long, and ops make much the same calls: by day each op fails a 24th of them, not all of them the same, and the runtime a ninth; by
  // night each op's first kernel fails all of them, the others a third.
  std::uint64_t step = level() != "smoke" ? 1 : GetParam() == "runtime" ? 9 : 24;
  for (const Scenario& s : scenarios_of(GetParam(), level() == "smoke" ? Which::one : Which::one_per_entry)) {
    for (std::uint64_t k = 1 + GetParam().size() % step; first_use(s, k, CL_OUT_OF_HOST_MEMORY, false); k += step) ASSERT_LT(k, 5000u);
    if (GetParam() != "runtime") step = 3;
    if (HasFailure()) break;
  }
  report();
}

TEST_P(FaultWalk, LaterRuns) {
  std::size_t turn = 0;
  for (const Scenario& s : scenarios_of(GetParam(), level() == "smoke" ? Which::one_per_entry : Which::all)) {
    ++turn;
    for (cl_int code : kCodes) {
      if (level() == "smoke" && code != kCodes[turn % 2]) continue;
      later_runs(
          s, code, [&](std::uint64_t k) { layer_->fail_call(nullptr, k, code); }, false);
      if (HasFailure()) return;
    }
  }
  report();
}

TEST_P(FaultWalk, EventsThatFail) {
  if (GetParam() == "runtime") return;  // its streams and events end in other ways: tests/runtime/stream_test.cpp
  for (const Scenario& s : scenarios_of(GetParam(), level() == "smoke" ? Which::one_per_entry : Which::all)) {
    later_runs(
        s, CL_OUT_OF_RESOURCES, [&](std::uint64_t k) { layer_->fail_event(k, CL_OUT_OF_RESOURCES); }, true);
    if (HasFailure()) return;
  }
  report();
}

TEST_P(FaultWalk, ADeviceThatIsLost) {
  auto scenarios = scenarios_of(GetParam(), Which::one_per_entry);
  for (const Scenario& s : scenarios) {
    later_runs(
        s, CL_DEVICE_NOT_AVAILABLE, [&](std::uint64_t k) { layer_->lose_device(k, CL_DEVICE_NOT_AVAILABLE); }, false);
    if (HasFailure()) return;
  }
  set_cache("on");
  for (std::uint64_t k = 1; first_use(scenarios.front(), k, -9999, true); ++k) ASSERT_LT(k, 5000u);
  report();
}

std::vector<std::string> walked() {
  std::vector<std::string> all{"runtime"};
  for (const cases::OpRow& row : cases::op_rows()) all.emplace_back(row.stem);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Each, FaultWalk, ::testing::ValuesIn(walked()), [](const auto& row) { return row.param; });

class FaultLayer : public FaultWalk {};

TEST_P(FaultLayer, CommandBufferFunctionsAreWrappedWhereTheyAreFetched) {
  const Device& device = test_devices().front();
  if (skip_without(device, "command buffers", device.traits().command_buffer > 0)) return;
  FreshDevice fresh(device);
  using Create = void* (*)(cl_uint, const cl_command_queue*, const void*, cl_int*);
  auto create = reinterpret_cast<Create>(clGetExtensionFunctionAddressForPlatform(fresh.record().platform, "clCreateCommandBufferKHR"));
  auto release = reinterpret_cast<cl_int (*)(void*)>(clGetExtensionFunctionAddressForPlatform(fresh.record().platform, "clReleaseCommandBufferKHR"));
  ASSERT_TRUE(create && release);
  cl_command_queue queue = interop::queue(default_stream(fresh.device()));
  cl_int status = CL_SUCCESS;
  layer_->reset();
  layer_->fail_call("clCreateCommandBufferKHR", 1, CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(create(1, &queue, nullptr, &status), nullptr);
  EXPECT_EQ(status, CL_OUT_OF_HOST_MEMORY);
  auto before = layer_->live(fault::kCommandBuffers);
  void* made = create(1, &queue, nullptr, &status);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(status, CL_SUCCESS);
  EXPECT_EQ(layer_->live(fault::kCommandBuffers), before + 1);
  EXPECT_EQ(release(made), CL_SUCCESS);
  EXPECT_EQ(layer_->live(fault::kCommandBuffers), before);
}

TEST_P(FaultLayer, TheLayerFindsLeaksAndDelays) {
  FreshDevice fresh(test_devices().front());
  cl_context context = interop::context(default_stream(fresh.device()));
  auto before = layer_->live(fault::kBuffers);
  cl_int status = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &status);
  EXPECT_EQ(layer_->live(fault::kBuffers), before + 1);
  clReleaseMemObject(buffer);
  EXPECT_EQ(layer_->live(fault::kBuffers), before);
  layer_->delay("clFlush", 20000);
  auto begin = std::chrono::steady_clock::now();
  default_stream(fresh.device()).flush();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(20));
}

INSTANTIATE_TEST_SUITE_P(Itself, FaultLayer, ::testing::Values(std::string("layer")), [](const auto& row) { return row.param; });

}}  // namespace clutch::testing
