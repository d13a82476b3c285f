// SPDX-License-Identifier: Apache-2.0
// The ops on devices that have less: the fault layer takes away one thing after another, then all of them; on one whose rounding
// nothing proves; and on one that calls itself a GPU.
#include <clutch/allocator.hpp>
#include <clutch/clutch.hpp>

#include "encode/matrix_instructions.hpp"
#include "layer/fault_layer.hpp"
#include "runtime/quirks.hpp"
#include "runtime/settings.hpp"
#include "support/op_runner.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>

namespace clutch::testing { namespace {

struct Lesser {
  const char* name;
  std::uint32_t lacks;
  bool proves_rounding = true;  ///< by the self-test
  bool by_day = true;
};
/// Lacks of kAllLacks one by one are tried by night: by day the device that lacks them all takes each way that they lead to, or a shorter one, with structs in
/// another order at the same time.
constexpr Lesser kLesser[] = {
    {"no fp64", fault::kNoFp64, true, false},
    {"no fp16", fault::kNoFp16, true, false},
    {"no FMA claim", fault::kNoFmaClaim, true, false},
    {"no exact rounding", fault::kNoFmaClaim, false},
    {"16 KiB local", fault::kSmallLocal, true, false},
    {"groups of 64", fault::kSmallGroups, true, false},
    {"one compute unit", fault::kOneUnit, true, false},
    {"no command buffer", fault::kNoCommandBuffer, true, false},
    {"buffers of 64 MiB", fault::kSmallAlloc, true, false},
    {"all at once", fault::kAllLacks, true, false},
    {"all at once, structs in another order", fault::kAllLacks | fault::kShufflesArgs},
    {"a GPU", fault::kGpu},
    {"structs in another order", fault::kShufflesArgs, true, false},
    {"loops that end", fault::kEndsLoops | fault::kNoCommandBuffer},
};

/// The first test device as one that lacks something, until this goes. Errors: not_supported without the layer.
class LesserTwin {
 public:
  explicit LesserTwin(std::uint32_t lacks, bool proves_rounding = true, std::uint32_t quirks = 0)
      : settings_(settings(proves_rounding)), faked_(lacks), fresh_(test_devices().front()) {
    if ((lacks & fault::kGpu) != 0) quirks |= detail::kQuirkEventsCost;  // as on a GPU of NVIDIA
    if (quirks == 0) return;
    detail::claimed_traits(fresh_.record());
    fresh_.record().traits.quirks |= quirks;
  }
  const Device& device() const { return fresh_.device(); }

 private:
  static detail::Settings settings(bool proves_rounding) {
    auto all = detail::the_settings();
    // Programs and traits of the device as it is are no twin's.
    all.cache.value = "off", all.self_test.value = proves_rounding ? "fresh" : "off";
    return all;
  }
  struct Faked {
    explicit Faked(std::uint32_t lacks) : layer(fault::loaded()) {
      if (!layer) throw Error(ErrorCode::internal, "test", "libclutch_fault_layer.so is not loaded (OPENCL_LAYERS)");
      layer->reset();
      layer->fake_device(lacks);
    }
    ~Faked() { layer->fake_device(0); }
    Faked(const Faked&) = delete;
    Faked& operator=(const Faked&) = delete;
    const fault::Controls* layer;
  };
  detail::SettingsOverride settings_;
  Faked faked_;
  FreshDevice fresh_;
};

TEST(LesserDevice, EveryOpRunsOrSaysWhichTraitIsMissing) {
  for (const Lesser& lesser : kLesser) {
    if (!lesser.by_day && level() == "smoke") continue;
    LesserTwin fresh(lesser.lacks, lesser.proves_rounding);
    const DeviceTraits& traits = fresh.device().traits();
    auto check = [&](fault::Lacks what, bool gone) { EXPECT_TRUE(gone || (lesser.lacks & what) == 0) << lesser.name; };
    EXPECT_EQ(lesser.proves_rounding, traits.fma_exact && traits.divide_exact && traits.sqrt_exact) << lesser.name;
    check(fault::kNoFp64, !traits.fp64);
    check(fault::kNoFp16, !traits.fp16);
    check(fault::kSmallLocal, traits.local_bytes == 16u << 10);
    check(fault::kSmallGroups, traits.max_work_group == 64);
    check(fault::kOneUnit, traits.compute_units == 1);
    check(fault::kGpu, traits.type == DeviceType::gpu);
    check(fault::kNoCommandBuffer, traits.command_buffer == 0);
    EXPECT_EQ(traits.args_by_value, (lesser.lacks & fault::kShufflesArgs) == 0) << lesser.name;
    check(fault::kEndsLoops, (traits.quirks & detail::kQuirkLoopsEndEarly) != 0);
    const bool unlike = lesser.lacks == fault::kAllLacks || lesser.lacks == fault::kGpu;
    std::set<std::string_view> seen;
    for (const NamedProblem& p : all_problems()) {
      // One problem of each of these: by day of each op, on the GPU of each entry. By night: everything on the least device and the GPU, elsewhere one per
      // entry.
      std::string_view one_of = p.name;
      if (level() == "smoke")
        one_of = lesser.lacks == fault::kGpu ? p.problem->entry : p.stem;
      else if (!unlike)
        one_of = p.problem->entry;
      if (!seen.insert(one_of).second) continue;
      if (p.problem->needs_fp64 && !traits.fp64) {
        std::string said = message_of([&] { run_once(fresh.device(), *p.problem); });
        EXPECT_NE(said.find("fp64"), std::string::npos) << lesser.name << ": " << p.name << " said: " << said;
        continue;
      }
      try {
        EXPECT_EQ(run_once(fresh.device(), *p.problem), "") << lesser.name << ": " << p.name;
      } catch (const Error& e) {  // what a problem forces may refuse
        const bool refuses = std::string_view(e.what()).find("refuses: needs an exact fma") != std::string_view::npos;
        const bool ends_loops = std::string_view(e.what()).find("(quirk loops_end_early)") != std::string_view::npos && (lesser.lacks & fault::kEndsLoops) != 0;
        const bool has_items = std::string_view(e.what()).find("the device has groups of several") != std::string_view::npos;
        EXPECT_TRUE(ends_loops || (refuses && !lesser.proves_rounding) || (has_items && traits.type == DeviceType::gpu) || refuses_few_items(traits, e.what()))
            << lesser.name << ": " << p.name << ": " << e.what();
      }
    }
    if ((lesser.lacks & fault::kSmallAlloc) != 0) {
      EXPECT_EQ(code_of([&] { empty({17 << 20}, {.device = fresh.device()}); }), ErrorCode::invalid_shape);
      EXPECT_EQ(code_of([&] { empty({16 << 20}, {.device = fresh.device()}); }), ErrorCode::ok);
    }
  }
}

TEST(LesserDevice, DtypesAreSupportedWhereTheirCastsRun) {
  for (const bool fp64 : {true, false}) {
    const LesserTwin fresh(fp64 ? 0u : std::uint32_t{fault::kNoFp64});
    const Tensor x = full({3}, 1, {.device = fresh.device()});
    for (const DType dtype : {DType::f64, DType::c128, DType::c64, DType::f16, DType::u64, DType::f8e8m0fnu, DType::f4e2m1}) {
      const ErrorCode code = code_of([&] { EXPECT_EQ(cast(cast(x, dtype), DType::f32).to_host<float>(), (std::vector<float>{1, 1, 1})) << dtype; });
      EXPECT_EQ(fresh.device().supports(dtype), code == ErrorCode::ok) << dtype << (fp64 ? ": " : " without fp64: ") << name(code);
      EXPECT_EQ(code_of([&] { empty({3}, {.dtype = dtype, .device = fresh.device()}); }), ErrorCode::ok) << dtype << " can be stored all the same";
    }
    for (const DType dtype : {DType::f32, DType::bf16, DType::f8e4m3fn, DType::f8e5m2, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32,
                              DType::i64, DType::boolean})
      EXPECT_TRUE(fresh.device().supports(dtype)) << dtype;
  }
}

TEST(LesserDevice, SdpaListsWhyEachBackendRefuses) {
  const LesserTwin fresh(fault::kNoFp64);
  const Tensor x = empty({1, 1, 4, 8}, {.dtype = DType::f64, .device = fresh.device()});
  const std::string why = message_of([&] { attention::sdpa(x, x, x); });
  for (const char* part : {"no enabled backend accepts", "flash: ", "math: ", "fp64"}) EXPECT_NE(why.find(part), std::string::npos) << why;
}

// matmul_panels takes two structs: where they lie in memory, the second must not get the first one's block before the kernel is enqueued.
TEST(LesserDevice, EachStructOfALaunchHasMemoryOfItsOwn) {
  const LesserTwin fresh(fault::kShufflesArgs);
  ASSERT_FALSE(fresh.device().traits().args_by_value);
  const std::vector<std::uint8_t> x = randn({70, 33}, {.device = fresh.device(), .seed = 1}).to_bytes(),
                                  y = randn({33, 50}, {.device = fresh.device(), .seed = 2}).to_bytes();
  auto product = [&](const Device& device) {
    const linalg::MatmulOptions panels{.implementation = "matmul_panels"};
    return linalg::matmul(from_bytes(x.data(), x.size(), {70, 33}, {.device = device}), from_bytes(y.data(), y.size(), {33, 50}, {.device = device}), panels)
        .to_bytes();
  };
  std::vector<std::uint8_t> want;
  try {
    want = product(test_devices().front());
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_EQ(product(fresh.device()), want);
}

// Equal matrices have equal bits, in whichever group and thread.
TEST(LesserDevice, GroupsHaveLocalMemoryOfTheirOwn) {
  const LesserTwin fresh(fault::kGpu);
  for (DType dtype : {DType::f32, DType::c64}) {
    const std::int64_t parts = is_complex(dtype) ? 2 : 1;
    const std::vector<std::uint8_t> raw = randn({9, 9, parts}, {.device = fresh.device(), .seed = 3}).to_bytes();
    Tensor one = from_bytes(raw.data(), raw.size(), {1, 9, 9}, {.dtype = dtype, .device = fresh.device()});
    for (auto driver : {linalg::EighDriver::jacobi_group, linalg::EighDriver::qr_group}) {
      auto r = linalg::eigh(one.expand({4096, 9, 9}).clone(), {.driver = driver});
      const std::vector<std::uint8_t> v_bytes = r.v.to_bytes();
      std::vector<float> w = r.w.to_host<float>(), v(v_bytes.size() / sizeof(float));
      std::memcpy(v.data(), v_bytes.data(), v_bytes.size());
      const std::size_t each = v.size() / 4096;
      for (std::size_t i = 9; i < w.size(); ++i) ASSERT_EQ(w[i], w[i % 9]) << last_plan() << " value " << i;
      for (std::size_t i = each; i < v.size(); ++i) ASSERT_EQ(v[i], v[i % each]) << last_plan() << " number of vectors " << i;
    }
  }
}

// Rows that a thread would take alone are shared by the items of a group, or by all groups where they cannot: bits are the same.
TEST(LesserDevice, GroupsShareRows) {
  const LesserTwin fresh(fault::kGpu);
  auto softmax = [](const Device& d, bool transposed) {
    const Tensor x = randn({3, 20000}, {.device = d, .seed = 9});
    return nn::softmax(transposed ? x.mT().contiguous() : x, transposed ? 0 : 1);
  };
  for (bool transposed : {false, true}) {
    const std::vector<std::uint8_t> got = softmax(fresh.device(), transposed).to_bytes();
    EXPECT_EQ(last_plan().starts_with("rowwise_groups"), !transposed) << last_plan();
    EXPECT_EQ(got, softmax(test_devices().front(), transposed).to_bytes());
  }
  // Short rows, columns and elements at several strides.
  for (const int dim : {1, 2, 3}) {
    auto made = [dim](const Device& d) { return nn::softmax(randn({5, 40, 70, 9}, {.device = d, .seed = 9}), dim); };
    const std::vector<std::uint8_t> got = made(fresh.device()).to_bytes();
    EXPECT_TRUE(last_plan().starts_with(dim == 2 ? "rowwise_column_groups" : "rowwise_items")) << last_plan();  // an item holds up to 64 elements
    EXPECT_EQ(got, made(test_devices().front()).to_bytes()) << dim;
  }
  for (const auto& [dims, entry] : {std::pair{Dims{3}, "reduce_column_groups"}, {Dims{0, 2, 3}, "reduce_groups"}, {Dims{0, 2}, "reduce_groups"}}) {
    auto made = [&dims](const Device& d) { return sum(randn({5, 40, 70, 9}, {.device = d, .seed = 9}), {.dims = dims}); };
    const std::vector<std::uint8_t> got = made(fresh.device()).to_bytes();
    EXPECT_TRUE(last_plan().starts_with(entry)) << last_plan();
    EXPECT_EQ(got, made(test_devices().front()).to_bytes()) << entry;
  }
  const Tensor sums = sum(randn({3, 2000}, {.device = fresh.device(), .seed = 9}), {.dims = {1}});
  EXPECT_TRUE(last_plan().starts_with("reduce_groups")) << last_plan();
  EXPECT_EQ(sums.to_bytes(), sum(randn({3, 2000}, {.device = test_devices().front(), .seed = 9}), {.dims = {1}}).to_bytes());
  for (const int dim : {0, 1}) {
    const Tensor running = cumsum(randn({500, 20}, {.device = fresh.device(), .seed = 9}), dim);
    EXPECT_TRUE(last_plan().starts_with(dim == 0 ? "cumsum_column_groups" : "cumsum_groups")) << last_plan();
    EXPECT_EQ(running.to_bytes(), cumsum(randn({500, 20}, {.device = test_devices().front(), .seed = 9}), dim).to_bytes());
  }
}

// Items of a group that take features of the same segment give the bits of one that takes them all: of sums, of gradients of the largest, of sums by index.
/// A driver may allow a kernel fewer items than its device has, as one that takes many registers: smaller tiles or other kernels run then.
TEST(LesserDevice, KernelsMayTakeFewerItemsThanTheDevice) {
  const LesserTwin fresh(fault::kGpu | fault::kFewKernelItems);
  const Device& d = fresh.device();
  ASSERT_GE(d.traits().max_work_group, 512u);
  auto rows = [&](std::uint64_t seed) { return randn({1, 2, 150, 64}, {.device = d, .seed = seed}); };
  const Tensor q = rows(1), k = rows(2), v = rows(3), grad = rows(4);
  const attention::FlexOptions items{.implementation = "flex_items"};
  auto apart = [](const Tensor& x, const Tensor& y) { return amax(abs(x - y)).to_host<float>()[0]; };
  EXPECT_LE(apart(attention::flex(q, k, v).out, attention::flex(q, k, v, items).out), 4e-6f);
  const auto forward = attention::flex(q, k, v, {.return_lse = true});
  EXPECT_LE(apart(attention::flex_backward(grad, q, k, v, forward).k, attention::flex_backward(grad, q, k, v, forward, items).k), 2e-5f);
  const Tensor a = floor(randn({150, 70}, {.device = d, .seed = 3}) * 2.0f), b = floor(randn({70, 140}, {.device = d, .seed = 4}) * 2.0f);
  const Tensor product = linalg::matmul(a, b, {.implementation = "matmul_items"});
  EXPECT_EQ(linalg::matmul(a, b).to_bytes(), product.to_bytes());
  const detail::MatrixStandIn stand_in(detail::MatrixLayout::mma);
  EXPECT_EQ(linalg::matmul(a, b, {.numerics = linalg::Numerics::tf32}).to_bytes(), product.to_bytes());
  EXPECT_FALSE(last_plan().starts_with("matmul_matrix")) << last_plan();
  EXPECT_EQ(code_of([&] { linalg::matmul(a, b, {.implementation = "matmul_matrix", .numerics = linalg::Numerics::tf32}); }), ErrorCode::not_supported);
}

/// Where tiles are what products take, calls that allow matrix instructions are given to them; others, and products of few rows, keep their bits.
TEST(LesserDevice, CallsThatAllowMatrixInstructionsUseThem) {
  const LesserTwin fresh(fault::kGpu);
  const Device& d = fresh.device();
  const detail::MatrixStandIn stand_in(detail::MatrixLayout::mma);
  using linalg::Numerics;
  auto make = [&](const Dims& sizes, DType dtype) { return full(sizes, 1, {.dtype = dtype, .device = d}); };
  const Dims square{64, 64};
  const Tensor a = make(square, DType::bf16), bytes = make(square, DType::i8), f32 = make(square, DType::f32), f8 = make(square, DType::f8e4m3fn);
  const Tensor few = make({4, 64}, DType::bf16), scale = make({1, 1}, DType::f32), bias = make({64}, DType::bf16);
  auto uses = [&](const std::function<void()>& call) { return call(), last_plan().starts_with("matmul_matrix"); };
  EXPECT_FALSE(uses([&] { linalg::matmul(a, a); }));
  EXPECT_TRUE(uses([&] { linalg::matmul(a, a, {.numerics = Numerics::blocks}); }));
  EXPECT_FALSE(uses([&] { linalg::matmul(few, a, {.numerics = Numerics::blocks}); }));
  EXPECT_FALSE(uses([&] { linalg::matmul(f32, f32, {.numerics = Numerics::blocks}); }));
  EXPECT_TRUE(uses([&] { linalg::matmul(f32, f32, {.numerics = Numerics::tf32}); }));
  EXPECT_TRUE(uses([&] { linalg::linear(a, a, bias, {.activation = nn::Activation::relu, .numerics = Numerics::blocks}); }));
  EXPECT_TRUE(uses([&] { linalg::scaled_matmul(f8, f8, scale, scale, {.numerics = Numerics::blocks}); }));
  // f8 by instructions of their own, which numerics alone allows.
  EXPECT_EQ(last_plan().find(" NUMBERS=5"), std::string::npos);
  EXPECT_TRUE(uses([&] { linalg::scaled_matmul(f8, f8, scale, scale, {.numerics = Numerics::f8}); }));
  EXPECT_NE(last_plan().find(" NUMBERS=5"), std::string::npos) << last_plan();
  const Tensor out = make(square, DType::bf16);
  EXPECT_TRUE(uses([&] { linalg::scaled_matmul_out(out, f8, f8, scale, scale, {.numerics = Numerics::f8}); }));
  EXPECT_NE(last_plan().find(" NUMBERS=5"), std::string::npos) << last_plan();
  EXPECT_TRUE(uses([&] { linalg::matmul(bytes, bytes); }));
  EXPECT_TRUE(uses([&] { linalg::linear(a, linalg::PackedMatrix(a), bias, {.numerics = Numerics::blocks}); }));
  // What a call launches, in order; other ops' kernels left out.
  auto launches = [&](std::string_view stem, const std::function<void()>& call) {
    Stream stream(d);
    StreamGuard guard(stream);
    Graph graph;
    {
      GraphCapture capture(graph, stream);
      call();
    }
    std::vector<std::string> all;
    for (const GraphNode& node : graph.nodes())
      if (node.kernel.starts_with(stem)) all.push_back(node.kernel);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(launches("matmul_", [&] { linalg::matmul_backward(a, a, a, {.numerics = Numerics::blocks}); }), Names(2, "matmul_matrix"));
  EXPECT_EQ(launches("matmul_", [&] { linalg::matmul_backward(a, a, a); }), Names(2, "matmul_tiles"));
  const auto scaled = trace([](Expr x, Expr y) { return x * y; }, std::array{DType::f32, DType::f32});
  EXPECT_EQ(launches("matmul_", [&] { linalg::matmul_backward(a, a, a, scaled, std::array{bias.to(DType::f32)}, {.numerics = Numerics::blocks}); }),
            Names(3, "matmul_matrix"));
  EXPECT_EQ(launches("matmul_", [&] { linalg::linear_backward(a, a, a, bias, {.activation = nn::Activation::relu, .numerics = Numerics::blocks}); }),
            Names(3, "matmul_matrix"));
  const sparse::SemiStructured weight = sparse::compress(sparse::prune_2_4(a));
  EXPECT_EQ(launches("matmul_", [&] { sparse::linear_backward(a, a, weight, bias, {.numerics = Numerics::blocks}); }), Names(2, "matmul_matrix"));
  auto attends = [&](const Tensor& q, Numerics numerics) {
    attention::flex(q, q, q, {.numerics = numerics});
    return last_plan().starts_with("flex_matrix");
  };
  const Tensor rows = make({1, 2, 40, 24}, DType::bf16);
  EXPECT_FALSE(attends(rows, Numerics::chain));
  EXPECT_TRUE(attends(rows, Numerics::blocks));
  EXPECT_FALSE(attends(rows.slice(2, 0, 8), Numerics::blocks));
  EXPECT_FALSE(attends(rows.to(DType::f32), Numerics::blocks));
  EXPECT_TRUE(attention::sdpa(rows, rows, rows, {.numerics = Numerics::blocks}).out.defined() && last_plan().starts_with("flex_matrix"));
  const attention::FlexOptions blocks{.return_lse = true, .numerics = Numerics::blocks};
  const attention::FlexResult forward = attention::flex(rows, rows, rows, blocks);
  EXPECT_EQ(launches("flex_", [&] { attention::flex_backward(rows, rows, rows, rows, forward, blocks); }),
            (Names{"flex_matrix", "flex_matrix_dkv", "flex_matrix_dq"}));
  EXPECT_EQ(launches("flex_", [&] { attention::flex_backward(rows, rows, rows, rows, forward); }), (Names{"flex_tiles", "flex_tiles_dkv", "flex_tiles_dq"}));
  // What gradients by matrix instructions have not goes as without.
  EXPECT_EQ(launches("flex_", [&] { attention::flex_backward(rows, rows, rows, rows, forward, {.skip_masked = true, .numerics = Numerics::blocks}); }),
            (Names{"flex_tiles", "flex_tiles_dkv", "flex_tiles_dq"}));
  const attention::SdpaOptions of_sdpa{.numerics = Numerics::blocks};
  const attention::SdpaResult attended = attention::sdpa(rows, rows, rows, of_sdpa);
  EXPECT_EQ(launches("flex_", [&] { attention::sdpa_backward(rows, rows, rows, rows, attended, of_sdpa); }),
            (Names{"flex_matrix", "flex_matrix_dkv", "flex_matrix_dq"}));
  // Sizes decide, not whether strides let a batch be joined.
  const Tensor apart = make({4, 20, 64}, DType::bf16).slice(1, 0, 16);
  EXPECT_TRUE(uses([&] { linalg::matmul(apart, a, {.numerics = Numerics::blocks}); }));
  EXPECT_TRUE(uses([&] { linalg::matmul(apart.contiguous(), a, {.numerics = Numerics::blocks}); }));
}

TEST(LesserDevice, GroupsShareSegments) {
  const LesserTwin fresh(fault::kGpu);
  auto numbers = [](const Device& d, const Dims& sizes, std::uint64_t seed) { return randn(sizes, {.device = d, .seed = seed}); };
  const std::pair<const char*, std::function<Tensor(const Device&)>> calls[] = {
      {"segment_groups",
       [&](const Device& d) {
         return segment_reduce(numbers(d, {60, 24}, 1), from_host<std::int32_t>({0, 3, 3, 50, 60}, d), {.initial = 2.0});
       }},
      {"",
       [&](const Device& d) {
         const Tensor x = floor(numbers(d, {60, 24}, 2)), offsets = from_host<std::int64_t>({0, 3, 3, 50, 60}, d);
         const SegmentOptions most{.reduce = Reduce::amax};
         return segment_reduce_backward(numbers(d, {4, 24}, 3), segment_reduce(x, offsets, most), x, offsets, most);
       }},
      {"segment_groups",
       [&](const Device& d) {
         const Tensor index = from_host<std::int64_t>({4, 0, 1, 4, 4, 1}, d).reshape({6, 1}).expand({6, 15});
         return scatter_reduce(numbers(d, {5, 15}, 4), 0, index, numbers(d, {6, 15}, 5), {.reduce = Reduce::mean});
       }},
      {"segment_groups",
       [&](const Device& d) {
         return index_select(numbers(d, {9, 16}, 6), 0, from_host<std::int32_t>({8, 0, 9, 3}, d));
       }},
  };
  for (const auto& [plan, call] : calls) {
    const std::vector<std::uint8_t> got = call(fresh.device()).to_bytes();
    EXPECT_TRUE(last_plan().starts_with(plan)) << last_plan();
    EXPECT_EQ(got, call(test_devices().front()).to_bytes()) << plan;
  }
}

// No op prints what the compiler crashes on.
TEST(LesserDevice, SelectsOfBytesAreRefusedWhereTheCompilerCrashes) {
  auto expect_refusals = [](const Device& d, bool refused) {
    const Tensor x = full({4, 4}, 7, {.dtype = DType::i8, .device = d}), ones = full({4, 4}, 1, {.device = d});
    auto at_least_5 = [](const Expr& v) { return select(v <= 5, cast(Expr(5), v.dtype()), v); };
    const std::vector<std::pair<const char*, std::function<Tensor()>>> calls{
        {"map", [&] { return map([&](Expr v) { return at_least_5(v); }, {x}); }},
        {"matmul", [&] { return linalg::matmul(ones, ones, [&](Expr, Expr v) { return at_least_5(v); }, {x}, {.dtype = {DType::i8}}); }},
        {"rowwise", [&] { return rowwise([&](Row& row, Expr v) { return row.max(v), at_least_5(v); }, {x}, {.dtype = {DType::i8}})[0]; }},
        {"results of rows",
         [&] { return rowwise([&](Row& row, Expr v) { row.max(v), row.result(at_least_5(v)); }, {x.slice(1, 0, 1)}, {.dtype = {DType::i8}})[0]; }},
    };
    for (const auto& row : calls) {
      const char* name = row.first;
      Tensor made;
      const std::string said = message_of([&] { made = row.second(); });
      EXPECT_EQ(said.find("quirk byte_selects_crash") != std::string::npos, refused) << name << ": " << said;
      if (!refused) {
        EXPECT_EQ(made.to(DType::i32).to_host<std::int32_t>()[0], 7) << name;
      }
    }
    // What the library's own functions print is none of it.
    EXPECT_EQ(message_of([&] { relu(x), clamp(x, 0, 5), linalg::matmul(ones, ones, [](Expr, Expr v) { return relu(v); }, {x}, {.dtype = {DType::i8}}); }), "");
  };
  expect_refusals(test_devices().front(), false);
  const LesserTwin fresh(0, true, detail::kQuirkByteSelectsCrash);
  expect_refusals(fresh.device(), true);
}

/// A call that takes many iterations of a work-item's loops.
struct Long {
  const char* name;
  std::function<Tensor(const Device&)> run;
  bool may_be_nan = false;  ///< what is too long is known on the device alone, and NaN there
  double tolerance = 0;
  bool must_run = false;  ///< a refusal is a failure, too
};

Tensor numbers(Dims sizes, const Device& d) { return randn(sizes, {.device = d, .seed = 7}); }
/// Those from 0 to before `n`, divided by `by`.
Tensor indices(std::int64_t n, std::int64_t by, const Device& d) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(static_cast<std::int32_t>(i / by));
  return from_host(all, {n}, d);
}
Tensor one_segment(std::int64_t n, const Device& d) { return from_host<std::int32_t>({0, 3, static_cast<std::int32_t>(n), static_cast<std::int32_t>(n)}, d); }
sparse::Csr one_row(std::int64_t n, const Device& d) { return {one_segment(n, d), indices(n, 1, d), numbers({n}, d), n}; }
attention::BlockMask mask_of(std::int64_t q_len, std::int64_t kv_len, attention::BlockSize block, const Device& d) {
  std::vector<std::int32_t> of(static_cast<std::size_t>(std::max(q_len, kv_len)), 0);
  of.back() = 1;
  const Tensor ids = from_host(of, {std::max(q_len, kv_len)}, d);
  return attention::create_block_mask(attention::document(ids), {.q_len = q_len, .kv_len = kv_len, .block = block, .device = d});
}
attention::FlexResult attend(const Tensor& q, const Tensor& k, attention::FlexOptions options = {}) {
  options.enable_gqa = options.return_lse = true, options.implementation = "flex_items";
  return attention::flex(q, k, k, options);
}
/// Lists of `columns` blocks, of which every third is partial and every other one whole.
attention::BlockMask mask_of_lists(std::int64_t columns, const Device& d) {
  std::vector<std::int32_t> partial, whole;
  for (std::int32_t i = 0; i < columns; ++i) (i % 3 == 0 ? partial : whole).push_back(i);
  auto count = [&](const std::vector<std::int32_t>& of) { return full({1, 1, 1}, static_cast<double>(of.size()), {.dtype = DType::i32, .device = d}); };
  const Tensor first_count = count(partial), second_count = count(whole);
  for (std::vector<std::int32_t>* list : {&partial, &whole}) list->resize(static_cast<std::size_t>(columns), 0);
  const Tensor first = from_host(partial, {1, 1, 1, columns}, d), second = from_host(whole, {1, 1, 1, columns}, d);
  return attention::block_mask_from_lists(first_count, first, second_count, second, attention::causal(),
                                          {.q_len = 4, .kv_len = columns, .block = {4, 1}, .device = d});
}
/// Gradients of the largest of each row's terms, where rows of b lie apart.
sparse::SpmmGradients of_largest(std::int64_t n, std::int64_t features, const Device& d) {
  const Tensor b = numbers({features, n}, d).mT();
  const sparse::SpmmOptions largest{.reduce = Reduce::amax};
  const sparse::Csr a = one_row(n, d);
  return sparse::spmm_backward(numbers({3, features}, d), sparse::spmm(a, b, largest), a, b, largest);
}
/// Gradients of products of ones, where rows lie apart.
Tensor of_products(std::int64_t n, const Device& d) {
  const Tensor x = full({2, n}, 1, {.device = d}).mT(), offsets = one_segment(n, d);
  const SegmentOptions product{.reduce = Reduce::prod};
  return segment_reduce_backward(numbers({3, 2}, d), segment_reduce(x, offsets, product), x, offsets, product);
}
sparse::SpmmGradients of_row_products(std::int64_t n, const Device& d) {
  const Tensor b = full({2, n}, 1, {.device = d}).mT();
  const sparse::SpmmOptions product{.reduce = Reduce::prod};
  const sparse::Csr a{one_segment(n, d), indices(n, 1, d), full({n}, 1, {.device = d}), n};
  return sparse::spmm_backward(numbers({3, 2}, d), sparse::spmm(a, b, product), a, b, product);
}
Tensor scattered_by_panels(std::int64_t n, const Device& d) {
  const Tensor index = indices(n, (n + 3) / 4, d).reshape({n, 1}).expand({n, 64});
  return scatter_reduce(zeros({4, 64}, {.device = d}), 0, index, numbers({n, 64}, d), {.implementation = "scatter_panels"});
}
/// Where products with eigenvectors are not those with eigenvalues: bits depend on the lanes.
Tensor misses(std::int64_t n, linalg::EighDriver driver, const Device& d) {
  const Tensor half = numbers({2, n, n}, d), a = map([](Expr x, Expr y) { return x + y; }, {half, half.mT()});
  const linalg::EighResult r = linalg::eigh(a, {.driver = driver});
  return map([](Expr x, Expr y, Expr w) { return !(abs(x - y * w) < 1e-3); }, {linalg::matmul(a, r.v), r.v, r.w.reshape({2, 1, n})});
}

const std::vector<Long>& long_calls() {
  static const std::vector<Long> all{
      {"block mask of whole blocks", [](const Device& d) { return mask_of(2304, 2304, {}, d).full_kv_num_blocks(); }},
      {"block mask of one block",
       [](const Device& d) {
         return mask_of(1100, 1100, {1100, 1100}, d).full_kv_num_blocks();
       }},
      {"block mask of many blocks",
       [](const Device& d) {
         return mask_of(4, 40000, {4, 1}, d).full_kv_indices();
       }},
      {"block mask of lists", [](const Device& d) { return mask_of_lists(9000, d).kinds(); }, false, 0, true},
      {"lists of a block mask of lists", [](const Device& d) { return mask_of_lists(9000, d).full_kv_indices(); }, false, 0, true},
      {"block mask of many lists", [](const Device& d) { return mask_of_lists(40000, d).kinds(); }},
      {"group_by of a million", [](const Device& d) { return group_by(indices(1 << 20, 1, d), 1 << 20).offsets; }},
      {"group_by of few among many groups", [](const Device& d) { return group_by(indices(1 << 20, 2, d), 1 << 22).offsets; }},
      {"sort of a million", [](const Device& d) { return sort(indices(1 << 20, 3, d)).indices; }},
      {"sort of a million doubles", [](const Device& d) { return sort(indices(1 << 20, 4, d).to(DType::f64)).indices; }},
      {"sort of many short lines",
       [](const Device& d) {
         return argsort(indices(1 << 20, 5, d).reshape({1 << 13, 1 << 7}));
       }},
      {"topk of a million", [](const Device& d) { return topk(indices(1 << 20, 6, d), 9).indices; }},
      {"nonzero of a million", [](const Device& d) { return nonzero(indices(1 << 20, 3, d)); }},
      {"unique of a million", [](const Device& d) { return unique(indices(1 << 20, 3, d), {.return_inverse = true}).inverse; }},
      {"index of a million",
       [](const Device& d) {
         return clutch::index(numbers({1000, 1000}, d), {indices(1000, 1, d)});
       }},
      {"index_put of a million",
       [](const Device& d) { return index_put(zeros({1 << 20}, {.device = d}), {indices(1 << 20, 3, d)}, full({}, 1, {.device = d}), {.accumulate = true}); }},
      {"segment of many",
       [](const Device& d) {
         return segment_reduce(numbers({15000, 10}, d), one_segment(15000, d));
       },
       true},
      {"segment of many, two panels",
       [](const Device& d) {
         return segment_reduce(numbers({5000, 24}, d), one_segment(5000, d));
       },
       true},
      {"segment of many, strided",
       [](const Device& d) {
         return segment_reduce(numbers({2, 40000}, d).mT(), one_segment(40000, d));
       },
       true},
      {"segment of very many, strided",
       [](const Device& d) {
         return segment_reduce(numbers({2, 70000}, d).mT(), one_segment(70000, d));
       },
       true},
      {"segment that just fits",
       [](const Device& d) {
         return segment_reduce(numbers({7000, 16}, d), one_segment(7000, d));
       },
       true},
      {"product with a sparse row",
       [](const Device& d) {
         return sparse::spmm(one_row(3800, d), numbers({3800, 16}, d));
       },
       true},
      {"gradient of a segment",
       [](const Device& d) {
         const Tensor x = numbers({70000}, d), offsets = one_segment(70000, d), ones = full({3}, 1, {.device = d});
         return segment_reduce_backward(ones, ones, x, offsets);
       }},
      {"gradient of a row's values",
       [](const Device& d) {
         const Tensor b = numbers({20000, 40}, d), grad = numbers({3, 40}, d);
         return sparse::spmm_backward(grad, grad, one_row(20000, d), b).values;
       }},
      {"gradient of a row's largest, strided", [](const Device& d) { return of_largest(20000, 64, d).values; }, false, 0, true},
      {"gradient of what a row's largest are of, strided", [](const Device& d) { return of_largest(20000, 64, d).b; }, false, 0, true},
      {"gradient of a product, strided", [](const Device& d) { return of_products(20000, d); }, true},
      {"gradient of a row's product, strided", [](const Device& d) { return of_row_products(20000, d).values; }, true},
      {"gradient of what a row's product is of, strided", [](const Device& d) { return of_row_products(20000, d).b; }, true},
      {"scatter by panels", [](const Device& d) { return scattered_by_panels(300, d); }, false, 0, true},
      {"scatter by panels of many", [](const Device& d) { return scattered_by_panels(30000, d); }},
      {"scatter of rows",
       [](const Device& d) {
         const Tensor index = indices(30000, 29999, d).reshape({30000, 1}).expand({30000, 8});
         return scatter_reduce(zeros({4, 8}, {.device = d}), 0, index, numbers({30000, 8}, d));
       },
       true},
      {"scatter of a line",
       [](const Device& d) {
         return scatter_reduce(zeros({2, 4}, {.device = d}), 1, indices(60000, 29000, d).reshape({2, 30000}), numbers({2, 30000}, d));
       }},
      {"scatter of many lines",
       [](const Device& d) {
         const Tensor index = indices(1000, 250, d).reshape({1, 1000}).expand({100000, 1000}), ones = full({}, 1, {.device = d}).expand({100000, 1000});
         return scatter_reduce(zeros({100000, 4}, {.device = d}), 1, index, ones, {.implementation = "scatter_lines"});
       }},
      {"gradient of an embedding",
       [](const Device& d) {
         return nn::embedding_backward(numbers({20000, 16}, d), indices(20000, 19999, d), 4);
       },
       true},
      {"product",
       [](const Device& d) {
         return linalg::matmul(numbers({3, 65535}, d), numbers({65535, 2}, d));
       }},
      {"product of many numbers",
       [](const Device& d) {
         return linalg::matmul(numbers({3, 70000}, d), numbers({70000, 2}, d));
       }},
      {"cumsum", [](const Device& d) { return cumsum(numbers({200000}, d), 0); }},
      {"cumsum of columns",
       [](const Device& d) {
         return cumsum(numbers({70000, 9}, d), 0);
       }},
      {"selective_scan",
       [](const Device& d) {
         const Tensor x = numbers({1, 1000, 3}, d), b = numbers({1, 1000, 2}, d);
         return selective_scan(x, x, numbers({3, 2}, d), b, b).y;
       }},
      {"selective_scan of a long sequence",
       [](const Device& d) {
         const Tensor x = numbers({1, 9000, 3}, d), b = numbers({1, 9000, 2}, d);
         return selective_scan(x, x, numbers({3, 2}, d), b, b).y;
       },
       true},
      {"sum", [](const Device& d) { return sum(numbers({1 << 20}, d)); }},
      {"sum of columns",
       [](const Device& d) {
         return sum(numbers({70000, 9}, d), {.dims = {0}});
       }},
      {"sum of a permuted tensor",
       [](const Device& d) {
         return sum(numbers({70, 40, 5, 50}, d).transpose(0, 2).transpose(1, 3), {.dims = {0, 1, 3}});
       }},
      {"softmax",
       [](const Device& d) {
         return nn::softmax(numbers({3, 16000}, d), 1);
       }},
      {"softmax of long rows",
       [](const Device& d) {
         return nn::softmax(numbers({2, 70000}, d), 1);
       }},
      {"softmax of strided rows",
       [](const Device& d) {
         return nn::softmax(numbers({16000, 3}, d), 0);
       }},
      {"pruned",
       [](const Device& d) {
         return sparse::prune_2_4(numbers({2, 280000}, d));
       }},
      {"attention",
       [](const Device& d) {
         return attend(numbers({1, 1, 64, 128}, d), numbers({1, 1, 64, 128}, d)).out;
       },
       false, 1e-5, true},
      {"attention, the longest",
       [](const Device& d) {
         return attend(numbers({1, 2, 3, 128}, d), numbers({1, 1, 240, 128}, d)).out;
       },
       false, 1e-5, true},
      {"attention by blocks of one key",
       [](const Device& d) {
         const attention::BlockMask blocks = attention::create_block_mask(attention::causal(), {.q_len = 300, .kv_len = 300, .block = {1, 1}, .device = d});
         return attend(numbers({1, 1, 300, 64}, d), numbers({1, 1, 300, 64}, d), {.block_mask = blocks}).out;
       },
       false, 1e-5, true},
      {"attention of sequences",
       [](const Device& d) {
         const Tensor starts = from_host<std::int32_t>({0, 3, 300}, {3}, d), q = numbers({1, 1, 300, 64}, d);
         return attend(q, q, {.mask_mod = attention::causal(), .varlen = {.cu_seq_q = starts, .cu_seq_kv = starts}}).out;
       },
       false, 1e-5, true},
      {"attention of pages",
       [](const Device& d) {
         const Tensor table = from_host<std::int32_t>({2, 0, 1, 3}, {1, 4}, d), used = from_host<std::int32_t>({220}, {1}, d);
         return attend(numbers({1, 1, 3, 128}, d), numbers({1, 1, 240, 128}, d), {.varlen = {.seqused_kv = used, .page_table = table, .page_size = 60}}).out;
       },
       false, 1e-5, true},
      {"gradient of attention",
       [](const Device& d) {
         const Tensor q = numbers({1, 2, 64, 128}, d), k = numbers({1, 1, 160, 128}, d);
         return attention::flex_backward(q, q, k, k, attend(q, k), {.enable_gqa = true, .implementation = "flex_items"}).q;
       },
       false, 1e-4, true},
      {"gradient of attention's keys",
       [](const Device& d) {
         const Tensor q = numbers({1, 2, 64, 128}, d), k = numbers({1, 1, 160, 128}, d);
         return attention::flex_backward(q, q, k, k, attend(q, k), {.enable_gqa = true, .implementation = "flex_items"}).k;
       },
       false, 1e-4, true},
      {"attention to many keys",
       [](const Device& d) {
         return attend(numbers({1, 1, 2, 64}, d), numbers({1, 1, 900, 64}, d)).out;
       }},
      {"eigenvectors by Jacobi's lanes", [](const Device& d) { return misses(16, linalg::EighDriver::jacobi_lanes, d); }},
      {"eigenvectors by Jacobi", [](const Device& d) { return misses(16, linalg::EighDriver::jacobi_group, d); }},
      {"eigenvectors by QR in lanes", [](const Device& d) { return misses(32, linalg::EighDriver::qr_lanes, d); }},
      {"eigenvectors by Jacobi in registers", [](const Device& d) { return misses(8, linalg::EighDriver::jacobi_items, d); }},
      {"eigenvectors by QR in registers", [](const Device& d) { return misses(16, linalg::EighDriver::qr_items, d); }},
      {"eigenvectors by QR", [](const Device& d) { return misses(32, linalg::EighDriver::qr_group, d); }},
      {"norm", [](const Device& d) { return norm(numbers({3000000}, d)); }},
      {"flags of many optimizers",
       [](const Device& d) {
         const Tensor scale = full({1}, 4, {.device = d}), tracker = zeros({1}, {.dtype = DType::i32, .device = d}), found = full({70000}, 1, {.device = d});
         optim::update_scale_(scale, tracker, found, {});
         return found;
       }},
      {"rates of many groups",
       [](const Device& d) {
         const Tensor lr = zeros({70000}, {.device = d}), rates = full({70000}, 1, {.device = d}), step = zeros({1}, {.dtype = DType::i64, .device = d});
         optim::schedule_(lr, rates, step, 1, {});
         return lr;
       }},
  };
  return all;
}

/// Whether numbers are equal, within the tolerance, or NaN where they may be.
bool agree(const Tensor& made, const Tensor& right, const Long& l) {
  if (made.to_bytes() == right.to_bytes()) return true;
  if (!l.may_be_nan && l.tolerance == 0) return false;
  const std::vector<float> x = made.to_host<float>(), y = right.to_host<float>();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(std::isnan(x[i]) ? l.may_be_nan : std::abs(x[i] - y[i]) <= l.tolerance)) return false;
  return true;
}

/// Compares with what a device gives whose loops do not end.
void expect_right_or_refused(const Device& device, const std::vector<Tensor>& right) {
  for (std::size_t i = 0; i < right.size(); ++i) {
    const Long& l = long_calls()[i];
    try {
      EXPECT_TRUE(agree(l.run(device), right[i], l)) << l.name << " by " << last_plan();
    } catch (const Error& e) {
      EXPECT_TRUE(!l.must_run && std::string_view(e.what()).find("loops_end_early") != std::string_view::npos) << l.name << ": " << e.what();
      fmt::print("refused: {}\n", l.name);
    }
  }
}
std::vector<Tensor> right_results(const Device& device) {
  std::vector<Tensor> right;
  for (const Long& l : long_calls()) right.push_back(l.run(device));
  return right;
}
/// NaN is what a kernel says, not what fresh memory holds.
detail::Settings unpoisoned() {
  auto all = detail::the_settings();
  all.poison_scratch.value = "0";
  return all;
}

TEST(LesserDevice, LoopsThatEndNeverMakeWrongResults) {
  const detail::SettingsOverride settings(unpoisoned());
  const std::vector<Tensor> right = right_results(test_devices().front());
  const LesserTwin fresh(fault::kEndsLoops | fault::kNoCommandBuffer);
  expect_right_or_refused(fresh.device(), right);
}

TEST(Differential, LoopsThatEndNeverMakeWrongResults) {
  const detail::SettingsOverride settings(unpoisoned());
  const Device* other = nullptr;
  for (const Device& d : test_devices())
    if ((d.traits().quirks & detail::kQuirkLoopsEndEarly) == 0 && !other) other = &d;
  for (const Device& d : test_devices())
    if (other && (d.traits().quirks & detail::kQuirkLoopsEndEarly)) expect_right_or_refused(d, right_results(*other));
}

}}  // namespace clutch::testing
