// SPDX-License-Identifier: Apache-2.0
// Collectives in profiles and traces, with the names of PyTorch's record_param_comms.
#include "dist/ranks.hpp"
#include "profile/trace_check.hpp"

#include <clutch/ops/matmul.hpp>
#include <clutch/profiler.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <sstream>

#include <unistd.h>

namespace clutch::testing { namespace {

using namespace dist;

struct Trace {
  std::string text;
  nlohmann::json json;
};

Trace trace_of(const profiler::Profiler& profiler, const profiler::TraceOptions& options = {}) {
  const std::string path = (std::filesystem::temp_directory_path() / ("clutch_dist_trace_" + std::to_string(::getpid()) + ".json")).string();
  profiler.export_chrome_trace(path, options);
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  return {all.str(), nlohmann::json::parse(all.str())};
}

/// Events of a trace that are of a collective of that name of PyTorch's.
std::vector<nlohmann::json> of_collective(const nlohmann::json& trace, const std::string& name, const std::string& cat) {
  std::vector<nlohmann::json> found;
  for (const auto& e : trace["traceEvents"])
    if (e.value("cat", "") == cat && e.contains("args") && e["args"].value("Collective name", "") == name) found.push_back(e);
  return found;
}

/// Ranks of this process.
std::size_t ranks_here(int threads) { return processes() > 0 ? 1 : static_cast<std::size_t>(threads); }

TEST(DistTrace, HasCallsWithTheArgumentsOfPyTorch) {
  constexpr int kThreads = 2;
  std::map<int, std::uint64_t> sequences;
  std::mutex mutex;
  profiler::Profiler profiler;
  profiler.start();
  for_ranks({kThreads}, [&](const Group& group) {
    const Tensor few = full({6}, 1), many = full({1 << 18}, 1, {.dtype = DType::f64}), all = empty({6 * group.size()});
    const Work work = group.all_reduce_(many, {.op = ReduceOp::max});
    work.synchronize();
    group.all_gather_out(all, few).synchronize();
    group
        .all_to_all_v_out(empty({group.size(), 2}), full({group.size(), 2}, 1), std::vector<std::int64_t>(static_cast<std::size_t>(group.size()), 1),
                          std::vector<std::int64_t>(static_cast<std::size_t>(group.size()), 1), {.async = true})
        .synchronize();
    const std::lock_guard lock(mutex);
    sequences[group.rank()] = work.sequence();
  });
  profiler.stop();
  const nlohmann::json trace = trace_of(profiler).json;
  EXPECT_EQ(check_trace(trace), "");
  const auto calls = of_collective(trace, "allreduce", "user_annotation");
  ASSERT_EQ(calls.size(), ranks_here(kThreads));
  for (const auto& e : calls) {
    const auto& args = e["args"];
    const int rank = args["Rank"].get<int>(), n = args["Group size"].get<int>();
    EXPECT_EQ(e["name"], "clutch:all_reduce");
    EXPECT_EQ(args["dtype"], "Double");
    EXPECT_EQ(args["In msg nelems"], 1 << 18);
    EXPECT_EQ(args["Out msg nelems"], 1 << 18);
    EXPECT_EQ(args["Seq"].get<std::uint64_t>(), sequences.at(rank));
    EXPECT_EQ(args["Process Group Description"], "test");
    EXPECT_EQ(args["Global rank start"], 0);
    EXPECT_EQ(args["Global rank stride"], 1);
    EXPECT_EQ(args["Process Group Ranks"].get<std::string>().substr(0, 4), n > 1 ? "[0, " : "[0]");
    EXPECT_EQ(args["Is asynchronized op"], 0);
    EXPECT_EQ(args["In split size"], "[]");
    EXPECT_EQ(args["Reduction"], "max");
    EXPECT_NE(args["Source"].get<std::string>().find("trace_test.cpp:"), std::string::npos);
  }
  // What the stream did says the same, on its own row.
  const auto on_stream = of_collective(trace, "allreduce", "kernel");
  ASSERT_EQ(on_stream.size(), ranks_here(kThreads));
  EXPECT_EQ(on_stream[0]["args"]["Seq"].get<std::uint64_t>(), sequences.at(on_stream[0]["args"]["Rank"].get<int>()));
  EXPECT_GT(on_stream[0]["dur"].get<double>(), 0);
  EXPECT_EQ(of_collective(trace, "_allgather_base", "user_annotation").size(), ranks_here(kThreads));
  const auto exchanged = of_collective(trace, "all_to_allv", "user_annotation");
  ASSERT_EQ(exchanged.size(), ranks_here(kThreads));
  EXPECT_EQ(exchanged[0]["args"]["In split size"].get<std::string>().substr(0, 2), "[1");
  EXPECT_EQ(exchanged[0]["args"]["Is asynchronized op"], 1);
  // Those of events are the same.
  std::size_t counted = 0;
  for (const profiler::FunctionEvent& e : profiler.events())
    for (const auto& [key, json] : e.facts) counted += key == "Collective name" && json == "\"allreduce\"" && e.activity_type == "user_annotation" ? 1 : 0;
  EXPECT_EQ(counted, ranks_here(kThreads));
}

TEST(DistTrace, HasKernelsOfCollectives) {
  constexpr int kThreads = 2;
  profiler::Profiler profiler;
  std::atomic<bool> direct{false};
  for_ranks_of_a_host({kThreads}, [&](const Group& group) {
    const Symmetric memory({1 << 18}, group);
    if (!memory.all_direct()) return;
    direct = true;
    clutch::fill_(memory.local(), 1);
    group.barrier().synchronize();
    if (group.rank() == 0 || processes() > 0) profiler.start();
    group.barrier().synchronize();
    group.all_reduce_(memory.local(), {.algorithm = Algorithm::kernel}).synchronize();
    group.barrier().synchronize();
    if (group.rank() == 0 || processes() > 0) profiler.stop();
  });
  if (!direct) GTEST_SKIP() << "ranks do not reach each other's memory";
  const nlohmann::json own = trace_of(profiler).json, hta = trace_of(profiler, {.names = profiler::TraceNames::hta}).json;
  EXPECT_EQ(check_trace(own), "");
  EXPECT_EQ(check_trace(hta), "");
  // The command of the caller's stream, and the kernel between the two meetings.
  const auto kernels = of_collective(own, "allreduce", "kernel");
  ASSERT_EQ(kernels.size(), 2 * ranks_here(kThreads));
  std::size_t launches = 0;
  for (const auto& e : kernels) {
    EXPECT_EQ(e["args"]["Algorithm"], "kernel");
    EXPECT_FALSE(e["name"].get<std::string>().starts_with("nccl"));
    launches += e["args"].contains("grid") ? 1 : 0;
  }
  EXPECT_EQ(launches, ranks_here(kThreads));
  for (const auto& e : of_collective(hta, "allreduce", "kernel")) EXPECT_EQ(e["name"], "ncclKernel_clutch_AllReduce_Sum_f32");
  const auto ops = of_collective(hta, "allreduce", "cpu_op");
  ASSERT_EQ(ops.size(), 2 * ranks_here(kThreads)) << "the call, and its launch on the progress thread";
  for (const auto& e : ops) EXPECT_EQ(e["name"], "record_param_comms");
}

TEST(DistTrace, HasCallsOfBatchesAndReplays) {
  constexpr int kThreads = 2, kReplays = 3;
  profiler::Profiler profiler;
  for_ranks({kThreads}, [&](const Group& group) {
    const Tensor x = full({1 << 17}, 1), y = full({9}, 1, {.dtype = DType::i32});
    const Stream stream(default_device());
    Graph graph;
    {
      const GraphCapture capture(graph, stream, {.mode = CaptureMode::relaxed});  // other ranks wait meanwhile
      group.all_reduce_(x, {.op = ReduceOp::max, .stream = stream});
    }
    group.barrier().synchronize();
    if (group.rank() == 0 || processes() > 0) profiler.start();
    group.barrier().synchronize();
    for (int i = 0; i < kReplays; ++i) graph.replay(stream);
    stream.synchronize();
    Batch batch(group);
    group.broadcast_(y, 0), group.reduce_(y, 0);
    batch.end().synchronize();
    group.barrier().synchronize();
    if (group.rank() == 0 || processes() > 0) profiler.stop();
  });
  const nlohmann::json trace = trace_of(profiler).json;
  EXPECT_EQ(check_trace(trace), "");
  const auto replayed = of_collective(trace, "allreduce", "user_annotation"), on_stream = of_collective(trace, "allreduce", "kernel");
  EXPECT_EQ(replayed.size(), kReplays * ranks_here(kThreads));
  ASSERT_EQ(on_stream.size(), kReplays * ranks_here(kThreads));
  std::map<int, std::set<std::uint64_t>> sequences;
  for (const auto& e : on_stream) sequences[e["args"]["Rank"].get<int>()].insert(e["args"]["Seq"].get<std::uint64_t>());
  for (const auto& [rank, of] : sequences) EXPECT_EQ(of.size(), kReplays) << "each replay has a number of its own, on rank " << rank;
  EXPECT_EQ(of_collective(trace, "broadcast", "user_annotation").size(), ranks_here(kThreads));
  EXPECT_EQ(of_collective(trace, "reduce", "user_annotation").size(), ranks_here(kThreads));
}

TEST(DistTrace, HasRankAndGroups) {
  if (processes() == 0) GTEST_SKIP() << "ranks that are threads have one trace";
  const Group evens = world().split(world().rank() % 2, 0, "halves");
  profiler::Profiler profiler;
  profiler.start();
  world().barrier().synchronize();
  profiler.stop();
  const Trace trace = trace_of(profiler);
  const auto& info = trace.json["distributedInfo"];
  EXPECT_EQ(info["backend"], "clutch");
  EXPECT_EQ(info["rank"], world().rank());
  EXPECT_EQ(info["world_size"], world().size());
  ASSERT_GE(info["pg_config"].size(), 2U);
  EXPECT_EQ(info["pg_config"][0]["pg_desc"], "world");
  EXPECT_EQ(info["pg_config"][0]["pg_size"], world().size());
  bool has_halves = false;
  for (const auto& group : info["pg_config"])
    if (group["pg_desc"] == "halves") has_halves = group["ranks"] == std::vector<int>(evens.global_ranks().begin(), evens.global_ranks().end());
  EXPECT_TRUE(has_halves);
  // HolisticTraceAnalysis finds the rank by this alone.
  std::smatch match;
  ASSERT_TRUE(std::regex_search(trace.text, match, std::regex("\"rank\":\\s+(\\d+)")));
  EXPECT_EQ(match[1].str(), std::to_string(world().rank()));
}

}}  // namespace clutch::testing
