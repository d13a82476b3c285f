// SPDX-License-Identifier: Apache-2.0
// What the library would run on a GPU: calls of real shapes and every op's small problems, on the stub driver that says that it is one (tests/stub/profiles).
// The driver checks each launch against its kernel's parameters and the device's limits, and writes program and launch for scripts/gpu-check. No kernel runs.
#include "gpu/count/stated_calls.hpp"
#include "program/kernel_table.hpp"
#include "stub/profile.hpp"
#include "support/op_runner.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>

namespace clutch::testing { namespace {

using attention::Index;
using attention::Score;

void label(const std::string& text) { setenv("STUB_LABEL", text.c_str(), 1); }

const Device& gpu() { return test_devices().front(); }

/// Makes calls; one that throws fails the test.
class Calls {
 public:
  explicit Calls(DType dtype) : dtype_(dtype) {}
  Tensor make(const Dims& sizes) const { return make(sizes, dtype_); }
  static Tensor make(const Dims& sizes, DType dtype) { return empty(sizes, {.dtype = dtype, .device = gpu()}); }
  void run(const std::string& what, const std::function<void()>& call) const {
    label(what + " " + std::string(name(dtype_)));
    EXPECT_NO_THROW((call(), synchronize(gpu()))) << what << " of " << name(dtype_);
  }

 private:
  DType dtype_;
};

TEST(GpuPlans, TheDeviceIsAsItsProfileSays) {
  ASSERT_TRUE(stub::profile().is_gpu) << "STUB_PROFILE must name a file of tests/stub/profiles";
  const DeviceTraits& t = gpu().traits();
  EXPECT_EQ(t.type, DeviceType::gpu);
  EXPECT_EQ(gpu().name(), stub::profile().text("name"));
  EXPECT_EQ(t.max_work_group, stub::profile().number("group"));
  EXPECT_EQ(t.local_bytes, stub::profile().number("local_bytes"));
  EXPECT_EQ(t.local_memory_real, stub::profile().text("local_memory") == "local");
  EXPECT_EQ(t.fp64, stub::profile().has("extensions", "cl_khr_fp64"));
  EXPECT_EQ(t.divide_exact, stub::profile().has("rounding", "divide"));
}

TEST(GpuPlans, UnknownFactsAreSaidAndLeftOut) {
  const std::string path = ::testing::TempDir() + "/profile" + std::to_string(reinterpret_cast<std::uintptr_t>(&gpu()));
  std::ofstream(path) << "type gpu\nwarps 32\nunits 7\n";
  ::testing::internal::CaptureStderr();
  const stub::Profile profile = stub::read_profile(path.c_str());
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(":2: a fact must be one of"), std::string::npos) << said;
  EXPECT_NE(said.find("got 'warps': the line is left out"), std::string::npos) << said;
  EXPECT_TRUE(profile.is_gpu);
  EXPECT_EQ(profile.number("units"), 7u);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(stub::read_profile("/no/such/profile").is_gpu);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("the stub is a CPU instead"), std::string::npos);
}

/// The checks themselves: launches that a driver must refuse.
TEST(GpuPlans, WrongLaunchesAreRefused) {
  const KernelSource source{.text = "__kernel void planned(__global uchar* out, ulong out_offset, int n, __local uchar* part) { out[n] = part[out_offset]; }",
                            .entry = "planned",
                            .addressing = Addressing::base_and_offset};
  const Tensor out = empty({64}, {.device = gpu()});
  auto code = [&](const Geometry& geometry, const std::vector<Argument>& arguments) { return code_of([&] { launch(source, geometry, arguments); }); };
  const Geometry geometry{.global = 64, .local = 32};
  EXPECT_EQ(code(geometry, {output(out), value(3), local_memory(64)}), ErrorCode::ok);
  EXPECT_EQ(code({.global = 64, .local = 48}, {output(out), value(3), local_memory(64)}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.global = 8192, .local = 4096}, {output(out), value(3), local_memory(64)}), ErrorCode::invalid_argument);
  // What the driver alone sees: a value of another size, memory and values that stand for one another, too much local memory.
  EXPECT_EQ(code(geometry, {output(out), value(std::int64_t{3}), local_memory(64)}), ErrorCode::invalid_argument);
  EXPECT_EQ(code(geometry, {output(out), local_memory(64), value(3)}), ErrorCode::invalid_argument);
  EXPECT_NE(code(geometry, {output(out), value(3), local_memory(1 << 20)}), ErrorCode::ok);
  EXPECT_NE(code(geometry, {output(out), value(3)}), ErrorCode::ok);
}

TEST(GpuPlans, CallsOfRealShapesLaunchWhatTheirKernelsTake) {
  const Device& d = gpu();
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    if (dtype == DType::f64 && !d.traits().fp64) continue;
    const Calls c(dtype);
    auto make = [&](const Dims& sizes) { return c.make(sizes); };
    // Calls of one kernel first: a quick run of gpu-check takes the first program of each.
    c.run("softmax 1024x4096", [&] { nn::softmax(make({1024, 4096})); });
    c.run("softmax 65536x64", [&] { nn::softmax(make({65536, 64})); });
    c.run("addcdiv 1M", [&] { addcdiv(make({1 << 20}), make({1 << 20}), make({1 << 20})); });
    c.run("addcmul strided", [&] { addcmul(make({1024, 1024}).mT(), make({1024, 1024}), make({1024, 1024})); });
    c.run("sum of rows", [&] { sum(make({1024, 4096}), {.dims = {1}}); });
    c.run("sum of columns", [&] { sum(make({4096, 1024}), {.dims = {0}}); });
    c.run("sum 4M", [&] { sum(make({1 << 22})); });
    c.run("cumsum 64x65536", [&] { cumsum(make({64, 65536})); });
    c.run("cumsum of columns", [&] { cumsum(make({4096, 1024}), 0); });
    if (dtype != DType::f64)
      c.run("selective_scan 4x2048x1536", [&] {
        const Tensor x = make({4, 2048, 1536}), rates = Calls::make({1536, 16}, DType::f32), shared = make({4, 2048, 16});
        const SelectiveScanResult scan = selective_scan(x, x, rates, shared, shared, {.gate = x, .delta_softplus = true});
        selective_scan_backward({scan.y, {}}, x, x, rates, shared, shared, {.gate = x, .delta_softplus = true});
      });
    c.run("adamw 1M", [&] {
      const std::vector<Tensor> parameters{make({1 << 20}), make({1000})}, gradients{make({1 << 20}), make({1000})};
      optim::AdamW adamw(parameters, {.lr = 1e-3});
      adamw.step(gradients);
    });
    c.run("index_select 64Kx256", [&] { index_select(make({65536, 256}), 0, Calls::make({65536}, DType::i32)); });
    c.run("segment_reduce 64Kx64", [&] { segment_reduce(make({65536, 64}), Calls::make({1025}, DType::i32)); });
    for (Reduce reduce : {Reduce::sum, Reduce::amax})
      c.run(reduce == Reduce::sum ? "spmm_backward 4096x64" : "spmm_backward of amax 4096x64", [&] {
        const sparse::Csr a{.offsets = Calls::make({4097}, DType::i32), .columns = Calls::make({65536}, DType::i32), .values = make({65536}), .width = 4096};
        sparse::spmm_backward(make({4096, 64}), make({4096, 64}), a, make({4096, 64}), {.reduce = reduce});
      });
    c.run("scatter_reduce 16x65536", [&] { scatter_reduce(make({16, 4096}), 1, Calls::make({16, 65536}, DType::i64), make({16, 65536})); });
    c.run("transpose 2048x1024", [&] { make({2048, 1024}).mT().contiguous(); });
    c.run("randn 1M", [&] { randn({1 << 20}, {.dtype = dtype, .device = d}); });
    c.run("matmul 4096", [&] { linalg::matmul(make({4096, 4096}), make({4096, 4096})); });
    c.run("linear 2048x1024", [&] { linalg::linear(make({2048, 1024}), make({1024, 1024}), make({1024})); });
    c.run("linear 16x4096", [&] { linalg::linear(make({16, 4096}), make({4096, 4096}), make({4096})); });
    c.run("linear 4x4096", [&] { linalg::linear(make({4, 4096}), make({4096, 4096}), make({4096})); });
    c.run("matmul 4096x4096x4", [&] { linalg::matmul(make({4096, 4096}), make({4096, 4})); });
    if (dtype != DType::f64) c.run("sparse24 1024", [&] { sparse::matmul(sparse::compress(make({1024, 1024})), make({1024, 1024})); });
    for (const int e : {64, 128}) {
      const Tensor q = make({1, 8, 1024, e}), k = make({1, 8, 1024, e}), v = make({1, 8, 1024, e});
      const std::string width = " E=" + std::to_string(e);
      c.run("flex" + width, [&] {
        const auto r = attention::flex(q, k, v, {.return_lse = true});
        attention::flex_backward(q, q, k, v, r);
      });
      c.run("flex decode" + width, [&] { attention::flex(make({1, 8, 1, e}), k, v); });
      if (e != 64) continue;
      c.run("flex causal alibi" + width, [&] {
        auto causal = [](Index, Index, Index row, Index column) { return row >= column; };
        auto score = [](Score s, Index, Index, Index row, Index column) { return s + 0.125f * (column - row); };
        const auto mask = attention::create_block_mask(causal, {.q_len = 1024, .kv_len = 1024, .device = d});
        const auto r = attention::flex(q, k, v, {.score_mod = score, .block_mask = mask, .return_lse = true});
        attention::flex_backward(q, q, k, v, r, {.score_mod = score, .block_mask = mask});
      });
    }
  }
  for (DType dtype : {DType::f32, DType::c64}) {
    const Calls c(dtype);
    for (const int n : {2, 8, 32, 64, 256}) c.run("eigh n=" + std::to_string(n), [&] { linalg::eigh(c.make({n > 64 ? 16 : 1024, n, n})); });
  }
  // With CLUTCH_MATRIX_INSTRUCTIONS=on; f32 where the device has instructions for it.
  for (DType dtype : {DType::bf16, DType::f16, DType::f32, DType::f8e4m3fn, DType::i8}) {
    const Calls c(dtype);
    const linalg::MatmulOptions blocks{.dtype = dtype == DType::f8e4m3fn ? DTypeList(DType::bf16) : DTypeList(), .numerics = linalg::Numerics::tf32};
    for (const std::int64_t n : {4096, 512}) c.run("matmul by blocks " + std::to_string(n), [&] { linalg::matmul(c.make({n, n}), c.make({n, n}), blocks); });
    if (dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32)
      for (const int e : {64, 128}) {
        const Tensor q = c.make({1, 16, 4096, e});
        const attention::FlexOptions plain{.return_lse = true, .numerics = linalg::Numerics::tf32};
        c.run("flex by blocks E=" + std::to_string(e), [&] { attention::flex_backward(q, q, q, q, attention::flex(q, q, q, plain), plain); });
        if (e != 64) continue;
        auto causal = [](Index, Index, Index row, Index column) { return row >= column; };
        auto score = [](Score s, Index, Index, Index row, Index column) { return s + 0.125f * (column - row); };
        const auto mask = attention::create_block_mask(causal, {.q_len = 4096, .kv_len = 4096, .device = d});
        const attention::FlexOptions causal_alibi{.score_mod = score, .block_mask = mask, .return_lse = true, .numerics = linalg::Numerics::tf32};
        c.run("flex by blocks causal alibi E=64", [&] { attention::flex_backward(q, q, q, q, attention::flex(q, q, q, causal_alibi), causal_alibi); });
      }
    c.run("sparse24 by blocks 4096", [&] { sparse::matmul(sparse::compress(c.make({4096, 4096})), c.make({4096, 4096}), blocks); });
    c.run("sparse24 linear by blocks 512x1024", [&] { sparse::matmul_transposed(c.make({512, 1024}), sparse::compress(c.make({1024, 1024})), blocks); });
    c.run("linear by blocks 2048x1024", [&] { linalg::matmul(c.make({2048, 1024}), c.make({1024, 1024}).mT(), blocks); });
  }
  // By instructions of their own where the device has them.
  for (const DType dtype : {DType::f8e4m3fn, DType::f8e5m2}) {
    const Calls c(dtype);
    const linalg::MatmulOptions f8{.dtype = DType::bf16, .numerics = linalg::Numerics::f8};
    c.run("matmul by f8 4096", [&] { linalg::matmul(c.make({4096, 4096}), c.make({4096, 4096}), f8); });
    c.run("linear by f8 4096", [&] { linalg::matmul(c.make({4096, 4096}), c.make({4096, 4096}).mT(), f8); });
  }
  Calls(DType::i32).run("group_by 1M of 100000", [&] { group_by(Calls::make({1 << 20}, DType::i32), 100000); });
  for (DType dtype : {DType::f32, DType::f16, DType::i64}) {
    const Calls c(dtype);
    c.run("sort 1M", [&] { sort(c.make({1 << 20})); });
    c.run("sort 4096x1000", [&] { sort(c.make({4096, 1000})); });
    c.run("topk 50 of 64x50000", [&] { topk(c.make({64, 50000}), 50); });
  }
  const Calls numbers(DType::f32);
  numbers.run("index 1M of 1000x1000", [&] {
    clutch::index(numbers.make({1000, 1000}), {Calls::make({1 << 20}, DType::i64), Calls::make({1 << 20}, DType::i64)});
  });
  for (const bool accumulate : {false, true})
    numbers.run(fmt::format("index_put 1M of 1000x1000{}", accumulate ? " accumulate" : ""), [&] {
      const Tensor i = Calls::make({1 << 20}, DType::i64);
      index_put_(numbers.make({1000, 1000}), {i, i}, numbers.make({1 << 20}), {.accumulate = accumulate});
    });
  Calls(DType::boolean).run("nonzero_static of 1M", [&] { nonzero_static(Calls::make({1024, 1024}, DType::boolean), 1 << 19); });
  Calls(DType::i8).run("matmul 1024", [&] { linalg::matmul(Calls::make({1024, 1024}, DType::i8), Calls::make({1024, 1024}, DType::i8)); });
}

/// Those that scripts/gpu-cost --calls estimates, by what compilers say of their programs; of devices with small buffers those that fit.
TEST(GpuPlans, CallsOfStatedShapesLaunchWhatTheirKernelsTake) {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 32;  // of a call's operands, matrices of 32 x 32
  int planned = 0;
  for (const Stated& call : stated_calls(gpu())) {
    std::function<void()> run;
    const ErrorCode prepared = code_of([&] { run = call.prepare(call.size); });
    if (prepared != ErrorCode::ok) {
      EXPECT_TRUE(prepared == ErrorCode::invalid_shape && gpu().traits().max_alloc_bytes < kLargest) << call.name;
      continue;
    }
    label("call " + call.name);
    EXPECT_NO_THROW((run(), synchronize(gpu()))) << call.name;
    ++planned;
  }
  EXPECT_GE(planned, 20);
}

/// Branches and loops, which have no problems of their own, eagerly and in tables of small calls.
TEST(GpuPlans, ControlFlowAndTablesLaunchWhatTheirKernelsTake) {
  const Stream stream(gpu());
  const StreamGuard guard(stream);
  const Tensor flag = Calls::make({1}, DType::i32), x = Calls::make({40, 25}, DType::f32);
  auto calls = [&] {
    const std::vector<Tensor> taken = cond(
        flag, [&] { return std::vector{add(x, 1)}; }, [&] { return std::vector{mul(x, 2)}; });
    while_loop([&](std::span<const Tensor> state) { return lt(state[0], 3); }, [&](std::span<const Tensor> state) { return std::vector{add(state[0], 1)}; },
               std::array{flag}, {.max_iterations = 4});
    exp(taken[0].mT().contiguous().select(0, 1));
  };
  label("control flow");
  EXPECT_NO_THROW((calls(), synchronize(gpu())));
  label("table of small calls");
  Graph graph({.backend = "fused"});
  EXPECT_NO_THROW({
    {
      GraphCapture capture(graph, stream);
      calls();
    }
    graph.replay(stream);
    synchronize(gpu());
  });
  const std::vector<GraphReport::Group> groups = graph.report().groups;
  EXPECT_TRUE(std::any_of(groups.begin(), groups.end(), [](const GraphReport::Group& g) { return g.form == "table"; })) << graph.report().why;
}

/// Results are not looked at: the stub's kernels give none.
TEST(GpuPlans, ProblemsOfEveryEntryLaunchWhatTheirKernelsTake) {
  const DeviceTraits& traits = gpu().traits();
  std::set<std::string> ran{"self_test_rounding",     "self_test_args", "self_test_dot", "self_test_matrix", "self_test_exchange",
                            "self_test_matrix_speed", "control_choose", "control_begin", "control_next",     "tiny_table"};
  for (const NamedProblem& p : all_problems()) {
    if (p.problem->needs_fp64 && !traits.fp64) {
      ran.insert(std::string(p.problem->entry));
      continue;
    }
    label("problem " + p.name);
    try {
      const std::string wrong = run_once(gpu(), *p.problem);
      EXPECT_FALSE(wrong.starts_with("ran ")) << p.name << ": " << wrong;
    } catch (const Error& e) {  // what a problem forces may refuse
      EXPECT_NE(std::string_view(e.what()).find("refuses"), std::string_view::npos) << p.name << ": " << e.what();
    }
    ran.insert(std::string(p.problem->entry));
  }
  for (const detail::KernelText& text : detail::kernel_table())
    for (const std::string_view entry : text.entries)
      EXPECT_TRUE(ran.contains(std::string(entry))) << "no problem in tests/cases/" << text.stem << ".hpp is for " << entry;
}

}}  // namespace clutch::testing
