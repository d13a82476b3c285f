// SPDX-License-Identifier: Apache-2.0
// Reductions with functions of elements before and after them, and collectives of lists of tensors.
#include "dist/numbers.hpp"

#include <clutch/graph.hpp>
#include <clutch/pointwise.hpp>

namespace clutch::testing { namespace {

using namespace dist;

const std::vector<int> kRanks{1, 2, 3, 5};

Expr before(const Expr& x) { return x * x - Expr(0.3) * x; }
Expr after(const Expr& x) { return x / (Expr(1.5) + abs(x)) + Expr(7); }

/// The call's result by three calls.
template <class Reduce>
Tensor in_three(const Tensor& in, Reduce&& reduce) {
  const Tensor reduced = reduce(map(before, {in}, {.dtype = in.dtype()}));
  return map(after, {reduced}, {.dtype = in.dtype()});
}

TEST(Functions, HaveTheBitsOfMapBeforeAndBehindTheCall) {
  for_ranks(kRanks, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    for (const DType dtype : {DType::f32, DType::bf16, DType::i8})
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::premul_sum}) {
        if (op == ReduceOp::premul_sum && is_integral(dtype)) continue;
        SCOPED_TRACE(std::string(clutch::name(dtype)) + " " + std::string(dist::name(op)));
        const dist::ReduceOptions plain{.op = op, .factor = 0.7};
        dist::ReduceOptions with = plain;
        with.map_before = before, with.map_after = after;
        for (const std::int64_t rows : {0, 1, 77}) {
          const Tensor in = numbers_of(me, {rows * n, 5}, 3, dtype);
          const Tensor wanted = in_three(in, [&](const Tensor& x) {
            g.all_reduce_(x, plain);
            return x;
          });
          const Tensor out = zeros(in.sizes(), {.dtype = dtype}), self = in.clone(), strided = zeros({5, rows * n}, {.dtype = dtype}).mT();
          g.all_reduce_out(out, in, with);
          expect_bits(out, wanted, "out");
          g.all_reduce_(self, with);
          expect_bits(self, wanted, "in place");
          g.all_reduce_out(strided, in, with);
          expect_bits(strided.contiguous(), wanted, "strided");
          expect_bits(in, numbers_of(me, in.sizes(), 3, dtype), "the input");
          // The root alone has a result.
          const int root = n - 1;
          const Tensor reduced = zeros(in.sizes(), {.dtype = dtype});
          g.reduce_out(reduced, in, root, with);
          if (me == root) expect_bits(reduced, wanted, "reduce");
          const Tensor block = zeros({rows, 5}, {.dtype = dtype}), of_rows = zeros({rows, 5}, {.dtype = dtype});
          g.reduce_scatter_out(block, in, with);
          expect_bits(block, wanted.slice(0, me * rows, (me + 1) * rows).contiguous(), "reduce_scatter");
          g.reduce_scatter_v_out(of_rows, in, std::vector<std::int64_t>(static_cast<std::size_t>(n), rows), with);
          expect_bits(of_rows, block, "reduce_scatter_v");
        }
      }
  });
}

TEST(Functions, OneOfThemAloneAsynchronousInABatchAndInGraphs) {
  for_ranks({2, 3}, [](const Group& g) {
    const Tensor in = numbers_of(g.rank(), {300}, 5);
    const Tensor reduced = in.clone();
    g.all_reduce_(reduced);
    const Tensor by_after = map(after, {reduced});
    const Tensor by_before = map(before, {in});
    g.all_reduce_(by_before);
    const Tensor a = in.clone(), b = in.clone();
    const Work first = g.all_reduce_(a, {.map_after = after, .async = true});
    const Work second = g.all_reduce_(b, {.map_before = before, .async = true});
    first.wait(), second.wait();
    expect_bits(a, by_after, "after"), expect_bits(b, by_before, "before");

    const Tensor c = in.clone(), d = in.clone();
    Batch batch(g);
    g.all_reduce_(c, {.map_after = after});
    g.all_reduce_(d, {.map_before = before});
    batch.end();
    expect_bits(c, by_after, "after in a Batch"), expect_bits(d, by_before, "before in a Batch");

    const Tensor given = in.clone(), out = zeros({300});
    const Stream stream = current_stream();
    stream.synchronize();
    Graph graph;
    graph.capture_begin(stream, {.mode = CaptureMode::relaxed});
    g.all_reduce_out(out, given, {.map_before = before, .map_after = after});
    graph.capture_end();
    for (int round = 0; round < 3; ++round) {
      copy_(given, numbers_of(g.rank(), {300}, 60 + static_cast<unsigned>(round)));
      graph.replay(stream);
      const Tensor wanted = in_three(given, [&](const Tensor& x) {
        g.all_reduce_(x);
        return x;
      });
      expect_bits(out, wanted, "replayed");
    }
  });
}

TEST(Functions, AreOneKernelInSymmetricMemory) {
  for_ranks_of_a_host({2, 3}, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    // Each dtype, reduction and number of ranks is a program.
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const std::int64_t elements = 1037 * n;
      const Symmetric memory({elements}, g, {.dtype = dtype});
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
        if (op == ReduceOp::avg && dtype != DType::bf16) continue;
        SCOPED_TRACE(std::string(clutch::name(dtype)) + " " + std::string(dist::name(op)));
        const Tensor in = numbers_of(me, {elements}, 8, dtype);
        const Tensor wanted = in_three(in, [&](const Tensor& x) {
          g.all_reduce_(x, {.op = op, .algorithm = Algorithm::direct});
          return x;
        });
        const dist::ReduceOptions with{.op = op, .map_before = before, .map_after = after, .algorithm = Algorithm::kernel};
        copy_(memory.local(), in);
        g.all_reduce_(memory.local(), with);
        expect_bits(memory.local(), wanted, "all_reduce");
        g.barrier().synchronize();
        copy_(memory.local(), in);
        const Tensor block = zeros({1037}, {.dtype = dtype});
        g.reduce_scatter_out(block, memory.local(), with);
        expect_bits(block, wanted.slice(0, me * 1037, (me + 1) * 1037).contiguous(), "reduce_scatter");
        g.barrier().synchronize();
      }
    }
    // Functions that read other tensors are no part of the kernel.
    const Symmetric memory({1 << 16}, g);
    const Tensor weights = numbers_of(me, {1 << 16}, 9);
    const ElementFunction weighted = [c = captured(weights)](const Expr& x) { return x * c[{position(0)}]; };
    copy_(memory.local(), numbers_of(me, {1 << 16}, 10));
    const Tensor wanted = mul(memory.local(), weights);
    g.all_reduce_(wanted);
    EXPECT_EQ(code_of([&] { g.all_reduce_(memory.local(), {.map_before = weighted, .algorithm = Algorithm::kernel}); }), ErrorCode::invalid_argument);
    g.all_reduce_(memory.local(), {.map_before = weighted});
    expect_bits(memory.local(), wanted, "weighted");
    g.barrier().synchronize();
  });
}

TEST(Functions, ThatDifferAreAMismatch) {
  for_ranks({2, 3}, [](const Group& g) {
    for (const bool before_differs : {false, true}) {
      const double factor = g.rank() == 1 ? 2 : 1;
      // As a literal and as a param.
      const ElementFunction by_rank = [factor, before_differs](const Expr& x) { return x * (before_differs ? Expr(factor) : param(factor)); };
      const Tensor x = full({100}, 3);
      Stream own(x.device());
      const Work work = g.all_reduce_(
          x, {.map_before = before_differs ? by_rank : ElementFunction(), .map_after = before_differs ? ElementFunction() : by_rank, .stream = own});
      EXPECT_EQ(code_of([&] { work.synchronize(); }), ErrorCode::mismatch);
      if (before_differs) {
        EXPECT_EQ(x.to_host<float>(), std::vector<float>(100, 3));
      }
    }
    EXPECT_FALSE(g.failed());
    const Tensor x = full({100}, 3);
    g.all_reduce_(x);
    EXPECT_EQ(x.to_host<float>()[99], static_cast<float>(3 * g.size()));
    EXPECT_EQ(code_of([&] { g.all_reduce_(zeros({4}, {.dtype = DType::c64}), {.map_before = before}); }), ErrorCode::invalid_dtype);
  });
}

TEST(Lists, AreOneMessageWithTheBitsOfSeparateCalls) {
  for_ranks(kRanks, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    for (const DType dtype : {DType::f32, DType::bf16, DType::u8, DType::c128, DType::f8e4m3fn}) {
      SCOPED_TRACE(std::string(clutch::name(dtype)));
      std::vector<Tensor> ins, wholes, blocks;
      for (int i = 0; i < 20; ++i) {
        const Dims sizes = i % 4 == 0 ? Dims{n * i, 3} : Dims{3, n, 1 + i};
        const DType made = dtype == DType::c128 || dtype == DType::u8 ? DType::f32 : dtype;
        const Tensor x = add(numbers_of(me, sizes, static_cast<unsigned>(i), DType::f32), 2).to(made).to(dtype);
        ins.push_back(i % 5 == 3 ? x.mT().clone().mT() : x);
      }
      std::vector<Tensor> self, separate;
      for (const Tensor& x : ins) self.push_back(x.clone()), separate.push_back(x.contiguous());
      for (const Tensor& x : separate) g.all_reduce_(x);
      const Work work = g.all_reduce_coalesced_(self);
      for (std::size_t i = 0; i < ins.size(); ++i) expect_bits(self[i].contiguous(), separate[i], "all_reduce");
      work.synchronize();

      std::vector<Tensor> scattered, gathered, got, all;
      for (const Tensor& x : ins) {
        const Tensor flat = x.contiguous().reshape({x.numel()});
        scattered.push_back(zeros({x.numel() / n}, {.dtype = dtype})), got.push_back(zeros({x.numel() / n}, {.dtype = dtype}));
        g.reduce_scatter_out(scattered.back(), flat);
        gathered.push_back(zeros({n, x.numel()}, {.dtype = dtype})), all.push_back(zeros({x.numel(), n}, {.dtype = dtype}).mT());
        g.all_gather_out(gathered.back(), flat);
      }
      const Work async = g.reduce_scatter_coalesced_out(got, ins, {.async = true});
      async.wait();
      g.all_gather_coalesced_out(all, ins);
      for (std::size_t i = 0; i < ins.size(); ++i)
        expect_bits(got[i], scattered[i], "reduce_scatter"), expect_bits(all[i].contiguous(), gathered[i], "all_gather");
    }
  });
}

TEST(Lists, WithFunctionsInGraphsAndRefusals) {
  for_ranks({1, 3}, [](const Group& g) {
    const std::vector<Tensor> given{numbers_of(g.rank(), {40}, 1), numbers_of(g.rank(), {7, 9}, 2)};
    const std::vector<Tensor> x{given[0].clone(), given[1].clone()};
    const Stream stream = current_stream();
    stream.synchronize();
    Graph graph;
    graph.capture_begin(stream, {.mode = CaptureMode::relaxed});
    g.all_reduce_coalesced_(x, {.map_before = before, .map_after = after});
    graph.capture_end();
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < 2; ++i) copy_(x[i], given[i]);
      graph.replay(stream);
      for (std::size_t i = 0; i < 2; ++i)
        expect_bits(x[i], in_three(given[i], [&](const Tensor& t) {
                      g.all_reduce_(t);
                      return t;
                    }));
    }
    const std::vector<Tensor> mixed{x[0], x[1].to(DType::f64)}, none, one{x[0]}, undefined{x[0], Tensor()};
    EXPECT_EQ(code_of([&] { g.all_reduce_coalesced_(none); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_reduce_coalesced_(mixed); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { g.all_reduce_coalesced_(undefined); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_gather_coalesced_out(one, x); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_gather_coalesced_out(x, std::vector<Tensor>{zeros({3}), x[1]}); }), ErrorCode::invalid_shape);
    const ElementFunction placed = [](const Expr& v) { return v * cast(position(0), DType::f32); };
    EXPECT_EQ(code_of([&] { g.all_reduce_coalesced_(x, {.map_before = placed}); }), ErrorCode::invalid_argument);
    Batch batch(g);
    EXPECT_EQ(code_of([&] { g.all_reduce_coalesced_(x); }), ErrorCode::invalid_argument);
  });
}

}}  // namespace clutch::testing
