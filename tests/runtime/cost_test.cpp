// SPDX-License-Identifier: Apache-2.0
// What plans state of their work, beside the descriptors that benches and tests share.
#include "cases/addc.hpp"
#include "cases/eigh.hpp"
#include "cases/flex.hpp"
#include "cases/matmul.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

namespace clutch::testing { namespace {

/// Of a call; the first one may prepare what later ones have.
template <class F>
Cost cost_of(F&& call) {
  call();
  const Cost before = enqueued_cost();
  call();
  return enqueued_cost() - before;
}

TEST(Cost, IsWhatDescriptorsSay) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = full({64, 32}, 2, {.device = device}), y = full({32, 48}, 3, {.device = device}), out = empty({64, 32}, {.device = device});
    const Cost addc = cost_of([&] { addcdiv_out(out, x, x, x); });
    EXPECT_EQ(addc.flops, cases::AddcCase::flops(64 * 32));
    EXPECT_EQ(addc.bytes, cases::AddcCase::bytes(64 * 32, DType::f32));
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
        const attention::FlexOptions options{.return_lse = true, .implementation = way};
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
