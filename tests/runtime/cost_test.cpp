// SPDX-License-Identifier: Apache-2.0
// What plans state of their work, beside the descriptors that benches and tests share.
#include "cases/addc.hpp"
#include "cases/cat.hpp"
#include "cases/copy.hpp"
#include "cases/cumsum.hpp"
#include "cases/eigh.hpp"
#include "cases/fill.hpp"
#include "cases/flex.hpp"
#include "cases/group.hpp"
#include "cases/index.hpp"
#include "cases/matmul.hpp"
#include "cases/nonzero.hpp"
#include "cases/optim.hpp"
#include "cases/random.hpp"
#include "cases/scatter.hpp"
#include "cases/segment.hpp"
#include "cases/selective_scan.hpp"
#include "cases/sort.hpp"
#include "support/fixture.hpp"
#include "support/op_case.hpp"

#include <clutch/clutch.hpp>

#include <algorithm>
#include <functional>

namespace clutch::testing { namespace {

/// Of a call; the first one may prepare what later ones have.
template <class F>
Cost cost_of(F&& call) {
  call();
  const Cost before = enqueued_cost();
  call();
  return enqueued_cost() - before;
}

/// Flops are of f64 where most of the operands are: of matrices, tables of tensors and tasks of the host, not where a scalar alone is.
TEST(Cost, TellsFlopsOfF64) {
  const Device& device = test_devices().front();
  if (!device.traits().fp64) return;
  for (const DType dtype : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    const bool is_f64 = dtype == DType::f64 || dtype == DType::c128;
    const Tensor x = full({48, 48}, 2, {.dtype = dtype, .device = device});
    auto expect = [&](const Cost& cost) {
      EXPECT_GT(cost.flops, 0) << name(dtype);
      EXPECT_EQ(cost.flops64, is_f64 ? cost.flops : 0) << name(dtype);
    };
    expect(cost_of([&] { linalg::matmul(x, x); })), expect(cost_of([&] { linalg::eigh(x.unsqueeze(0)); }));
    if (is_complex(dtype)) continue;
    expect(cost_of([&] { addcmul(x, x, x); }));
    const Tensor parameters = full({1000}, 1, {.dtype = dtype, .device = device});
    const Tensor gradients = full({1000}, 1, {.dtype = dtype, .device = device}), steps = full({1}, 1, {.device = device});
    const Tensor all[] = {parameters}, of_all[] = {gradients};
    const Cost step = cost_of([&] { optim::sgd_(all, of_all, {}, steps, {.lr = 0.1}); });
    EXPECT_GT(step.flops, 0);
    EXPECT_EQ(step.flops64, is_f64 ? step.flops : 0) << "an optimizer's numbers are f64 everywhere";
  }
}

TEST(Cost, IsWhatDescriptorsSay) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = full({64, 32}, 2, {.device = device}), y = full({32, 48}, 3, {.device = device}), out = empty({64, 32}, {.device = device});
    const Cost addc = cost_of([&] { addcdiv_out(out, x, x, x); });
    EXPECT_EQ(addc.flops, cases::AddcCase::flops(64 * 32));
    EXPECT_EQ(addc.bytes, cases::AddcCase::bytes(64 * 32, DType::f32));
    EXPECT_EQ(addc.flops64, 0);
    const Tensor product = empty({64, 48}, {.device = device});
    EXPECT_EQ(cost_of([&] { linalg::matmul_out(product, x, y); }).flops, cases::MatmulCase::flops(64, 48, 32));
    const Tensor batch = empty({3, 64, 48}, {.device = device});
    EXPECT_EQ(cost_of([&] { linalg::matmul_out(batch, x.expand({3, 64, 32}), y); }).flops, 3 * cases::MatmulCase::flops(64, 48, 32));
    for (std::int64_t n : {3, 12}) {
      const Tensor a = full({5, n, n}, 1, {.device = device});
      EXPECT_EQ(cost_of([&] { linalg::eigh(a); }).flops, 5 * cases::EighCase::flops(n, true)) << n;
      EXPECT_EQ(cost_of([&] { linalg::eigvalsh(a, {.driver = linalg::EighDriver::qr_lanes}); }).flops, 5 * cases::EighCase::flops(n, false)) << n;
    }
    for (std::int64_t q_len : {3, 40})
      for (const char* way : {"", "flex_items", "flex_tiles"}) {
        const cases::FlexCase::Shape s{.batch = 2, .heads = 3, .q_len = q_len, .kv_len = 50, .e = 16, .ev = 8};
        const Tensor q = full(s.q(), 1, {.device = device}), k = full(s.k(), 1, {.device = device}), v = full(s.v(), 1, {.device = device});
        attention::FlexOptions options;
        options.return_lse = true, options.implementation = way;
        attention::FlexResult r;
        // Few queries go by parts of the keys, whose second launch states nothing.
        EXPECT_EQ(cost_of([&] { r = attention::flex(q, k, v, options); }).flops, cases::FlexCase::flops(s)) << q_len << way;
        const Tensor grad = full(s.out(), 1, {.device = device});
        const double back = cost_of([&] { attention::flex_backward(grad, q, k, v, r, options); }).flops;
        // Beside the products, sums of delta and of the parts of queries' gradients.
        EXPECT_GE(back, cases::FlexCase::backward_flops(s)) << q_len << way;
        EXPECT_LE(back, 1.5 * cases::FlexCase::backward_flops(s)) << q_len << way;
      }
    // Two additions and a function an element.
    EXPECT_EQ(cost_of([&] { map([](Expr a, Expr b) { return exp(a + b) + 1; }, {x, x}); }).flops, 3 * 64 * 32);
  }
}

/// A call of an op and its cost by the descriptor.
struct Stated {
  std::string_view stem;
  std::function<void()> call;
  double flops, bytes;
  double most = 1;  ///< above 1: launches that hand on results, so that the call states up to so many times as much
};

TEST(Cost, IsStatedByEveryOp) {
  constexpr std::int64_t kRows = 64, kColumns = 32, kNumel = kRows * kColumns, kLong = 40000;
  constexpr double kBytes = 4.0 * kNumel;
  CLUTCH_EACH_DEVICE(device) {
    const TensorOptions i64{.dtype = DType::i64, .device = device};
    const Tensor x = full({kRows, kColumns}, 2, {.device = device}), y = full({kColumns, 48}, 3, {.device = device}),
                 out = empty(x.sizes(), {.device = device});
    const Tensor product = empty({kRows, 48}, {.device = device}), a = full({5, 12, 12}, 1, {.device = device});
    const Tensor index = zeros(x.sizes(), i64), groups = zeros({kNumel}, i64), offsets = arange(0, kRows + 1, 1, i64), rows = arange(0, kRows, 1, i64);
    const Tensor line = full({kLong}, 1, {.device = device}), sums = empty({kLong}, {.device = device});
    const cases::FlexCase::Shape s{.batch = 2, .heads = 3, .q_len = 40, .kv_len = 50, .e = 16, .ev = 8};
    const Tensor q = full(s.q(), 1, {.device = device}), k = full(s.k(), 1, {.device = device}), v = full(s.v(), 1, {.device = device});
    const std::vector<Tensor> params{full({100}, 1, {.device = device}), full({30}, 1, {.device = device})}, grads = {x, y};
    const std::vector<Tensor> steps{full({100}, 1, {.device = device}), full({30}, 1, {.device = device})};
    optim::AdamW adamw(params, {});
    const double rest = 4.0 * static_cast<double>(y.numel());
    const Tensor sequence = full({2, 9, 40}, 1, {.device = device}), scanned = empty(sequence.sizes(), {.device = device}),
                 rates = full({40, 16}, -1, {.device = device}), shared = full({2, 9, 16}, 1, {.device = device});
    const Tensor found = zeros({1}, {.device = device}), scale = full({1}, 2, {.device = device}),
                 tracker = zeros({1}, {.dtype = DType::i32, .device = device});
    const Stated all[] = {
        {"addc", [&] { addcdiv_out(out, x, x, x); }, cases::AddcCase::flops(kNumel), cases::AddcCase::bytes(kNumel, DType::f32)},
        // The kinds of 4 blocks, and lists of them by rows and by columns.
        {"block_mask", [&] { attention::create_block_mask(attention::causal(), {.q_len = 256, .kv_len = 256, .device = device}); }, 0, 4 + 2 * (4 + 4 * 12.0),
         2},
        // The places of its tensors, too.
        {"cat",
         [&] {
           cat(std::vector<Tensor>{x, x}, 0);
         },
         0, cases::CatCase::bytes(2 * kNumel, DType::f32), 1.1},
        {"copy", [&] { copy_(out, x); }, 0, cases::CopyCase::bytes(kNumel, DType::f32, DType::f32)},
        {"cumsum", [&] { cumsum_out(out, x, 1); }, cases::CumsumCase::flops(kNumel), cases::CumsumCase::bytes(kNumel, DType::f32)},
        {"eigh", [&] { linalg::eigh(a); }, 5 * cases::EighCase::flops(12, true), 5 * cases::EighCase::bytes(12, 4), 4},
        {"fill", [&] { fill_(out, 3); }, 0, cases::FillCase::bytes(kNumel, DType::f32)},
        {"flex", [&] { attention::flex(q, k, v); }, cases::FlexCase::flops(s), 4.0 * static_cast<double>(q.numel() + k.numel() + v.numel() + numel(s.out()))},
        {"group", [&] { group_by(groups, kRows); }, 0, cases::GroupCase::bytes(kNumel, kRows), 8},
        // Places are made and read, too.
        {"index", [&] { clutch::index(x, {rows}); }, 0, cases::IndexCase::bytes(DType::f32, kRows, kColumns, 1), 2},
        {"map", [&] { map([](Expr e) { return e + 1; }, {x}); }, kNumel, 2 * kBytes},
        {"matmul", [&] { linalg::matmul_out(product, x, y); }, cases::MatmulCase::flops(kRows, 48, kColumns), kBytes + rest + 4.0 * kRows * 48, 4},
        // Counts of parts and their sums, too, and the fill.
        {"nonzero", [&] { nonzero_static(x, kNumel); }, 1, cases::NonzeroCase::bytes(DType::f32, kNumel, kNumel, 2), 2.1},
        {"optim", [&] { adamw.step(steps); }, cases::OptimCase::flops(130, {.weight_decay = 0.01, .decoupled = true}), cases::OptimCase::bytes(130, {})},
        {"random", [&] { uniform_(out, {.seed = 1}); }, cases::RandomCase::flops(kNumel, false), cases::RandomCase::bytes(kNumel, DType::f32)},
        {"random", [&] { normal_(out, {.seed = 1}); }, cases::RandomCase::flops(kNumel, true), cases::RandomCase::bytes(kNumel, DType::f32)},
        {"reduce", [&] { sum(x, {.dims = {1}}); }, kNumel, kBytes + 4 * kRows, 1.1},
        {"rowwise", [&] { nn::softmax(x); }, 4.0 * kNumel, 2 * kBytes, 2},
        {"scatter", [&] { scatter_reduce_(out, 1, index, x); }, cases::ScatterCase::flops(kNumel), cases::ScatterCase::bytes(kNumel, kNumel, DType::f32)},
        {"segment", [&] { segment_reduce(x, offsets); }, kNumel, 2 * kBytes + 8 * (kRows + 1)},
        {"selective_scan", [&] { selective_scan_out({scanned, {}}, sequence, sequence, rates, shared, shared); },
         7.0 * static_cast<double>(sequence.numel()) * 16, cases::SelectiveScanCase::bytes(2, 9, 40, 16, false) + 4.0 * 40 * 16},
        // Of each of two runs and their merge: entries of eight bytes in buffers, and counts of digits.
        {"sort", [&] { sort(x); }, 0, cases::SortCase::bytes(DType::f32, kNumel, kRows, kColumns), 8},
        {"sparse24", [&] { sparse::prune_2_4(x); }, 0, 2 * kBytes},
        // Long lines go in blocks: their sums, then carries, then the blocks again.
        {"cumsum", [&] { cumsum_out(sums, line, 0); }, cases::CumsumCase::flops(kLong), cases::CumsumCase::bytes(kLong, DType::f32), 1.6},
        {"optim", [&] { optim::clip_grad_norm_(grads, 1); }, 3.0 * static_cast<double>(kNumel + y.numel()), 3 * (kBytes + rest), 1.1},
        {"optim", [&] { optim::check_and_unscale_(grads, found, scale); }, static_cast<double>(kNumel + y.numel()), 2 * (kBytes + rest), 1.1},
        {"optim", [&] { optim::update_scale_(scale, tracker, found); }, 2, 2 * 12},
    };
    for (const Stated& stated : all) {
      const Cost cost = cost_of(stated.call);
      EXPECT_GE(cost.flops, stated.flops) << stated.stem;
      EXPECT_LE(cost.flops, stated.flops * stated.most) << stated.stem;
      EXPECT_GE(cost.bytes, stated.bytes) << stated.stem;
      EXPECT_LE(cost.bytes, stated.bytes * stated.most) << stated.stem;
      EXPECT_GT(cost.bytes, 0) << stated.stem;
    }
    for (const cases::OpRow& row : cases::op_rows())
      EXPECT_TRUE(std::any_of(std::begin(all), std::end(all), [&](const Stated& stated) { return stated.stem == row.stem; }))
          << row.stem << " has no call here";
  }
}

TEST(Cost, CountsRepeatedElementsOnce) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = full({64, 1}, 2, {.device = device}), out = empty({64, 32}, {.device = device});
    EXPECT_EQ(cost_of([&] { copy_(out, x.expand({64, 32})); }).bytes, 4 * 64 + 4 * 64 * 32);
    const Tensor none = out.slice(0, 0, 0);
    EXPECT_EQ(cost_of([&] { copy_(none, none); }).bytes, 0) << "of nothing";
    const std::vector<float> numbers(100);
    EXPECT_EQ(cost_of([&] { from_bytes(numbers.data(), 400, {100}, {.device = device}); }).bytes, 2 * 400) << "read from the host's memory and written";
  }
}

TEST(Cost, OfStepsIsThatOfTheirTables) {
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<Tensor> params{full({100}, 1, {.device = device}), full({30}, 1, {.device = device})};
    const std::vector<Tensor> grads{full({100}, 1, {.device = device}), full({30}, 1, {.device = device})};
    optim::AdamW adamw(params, {});
    // Parameters and two states are read and written, gradients read.
    EXPECT_EQ(cost_of([&] { adamw.step(grads); }).bytes, (2 + 2 * 2 + 1) * 4 * 130);
  }
}

TEST(Cost, IsKeptByGraphsAndCountedAtEachReplay) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    const Tensor x = full({64, 32}, 2, {.device = device}), out = empty({64, 32}, {.device = device});
    addcdiv_out(out, x, x, x, {}, stream);
    Graph graph;
    const Cost before = enqueued_cost();
    {
      GraphCapture capture(graph, stream);
      addcdiv_out(out, x, x, x, {}, stream);
    }
    const Cost recorded = enqueued_cost() - before;
    ASSERT_EQ(graph.nodes().size(), 1u);
    EXPECT_EQ(graph.nodes()[0].cost.flops, cases::AddcCase::flops(64 * 32));
    EXPECT_EQ(graph.nodes()[0].cost.bytes, recorded.bytes);
    EXPECT_EQ(cost_of([&] { graph.replay(stream); }).flops, cases::AddcCase::flops(64 * 32));
    stream.synchronize();
    EXPECT_NE(graph.to_string(GraphDump::json).find("\"flops\": 6144.0"), std::string::npos);
  }
}

TEST(Cost, OfCallersKernelsIsTheirs) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = full({100}, 2, {.device = device});
    const KernelSource copies{.text = "__kernel void copies(__global float* y, __global const float* x) { y[get_global_id(0)] = x[get_global_id(0)]; }",
                              .entry = "copies"};
    const Tensor y = empty({100}, {.device = device});
    EXPECT_EQ(cost_of([&] { launch(copies, {.global = 100}, {output(y), input(x)}); }).bytes, 800);
    const Cost before = enqueued_cost();
    EXPECT_EQ(code_of([&] { launch(copies, {.global = 100, .local = 64}, {output(y), input(x)}); }), ErrorCode::invalid_argument);
    EXPECT_EQ((enqueued_cost() - before).bytes, 0) << "a launch that fails";
  }
}

}}  // namespace clutch::testing
