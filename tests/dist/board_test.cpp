// SPDX-License-Identifier: Apache-2.0
// Calls whose numbers go over the board on which ranks of a host meet.
#include "dist/board.hpp"
#include "dist/group.hpp"
#include "dist/ranks.hpp"

#include <random>

namespace clutch::testing { namespace {

using namespace dist;

TEST(BoardCalls, ManyAtATimeOnDifferentStreams) {
  for_ranks({1, 2, 4}, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    std::mt19937 random(static_cast<unsigned>(me));
    for (int round = 0; round < 3; ++round) {
      std::vector<Tensor> tensors;
      std::vector<Work> works;
      for (int i = 0; i < 40; ++i) {
        tensors.push_back(full({100 + i}, i + me + 1, {.dtype = DType::i32}));
        works.push_back(g.all_reduce_(tensors.back(), {.async = true}));
        // A few larger ones between them, which go by messages.
        if (i % 7 == 0) works.push_back(g.all_reduce_(zeros({40000}), {.async = true}));
        if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
      }
      for (const Work& work : works) work.wait();
      for (int i = 0; i < 40; ++i)
        EXPECT_EQ(tensors[static_cast<std::size_t>(i)].to_host<std::int32_t>()[static_cast<std::size_t>(99 + i)], n * i + n * (n + 1) / 2) << i;
    }
  });
}

TEST(BoardCalls, GoOnAfterADifference) {
  for_ranks({2, 4}, [](const Group& g) {
    if (g.size() == 1) return;
    const Stream stream = current_stream();
    for (int i = 0; i < 50; ++i) {
      const Tensor x = full({10 + (i % 3 == 0 ? g.rank() : 0)}, 1);
      const Work work = g.all_reduce_(x);
      if (i % 3 == 0) {
        EXPECT_EQ(code_of([&] { work.synchronize(); }), ErrorCode::mismatch);
        stream.reset();
      } else {
        EXPECT_EQ(x.to_host<float>()[9], static_cast<float>(g.size()));
      }
    }
  });
}

/// Calls over the board beside the same ones by messages: all have the same bits, with turns that end anywhere.
TEST(BoardCalls, HaveTheBitsOfMessages) {
  for_ranks({2, 3, 4}, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    if (g.size() == 1) return;
    const Algorithm board = n % 2 == 0 ? Algorithm::board : Algorithm::automatic;
    std::mt19937 random(static_cast<unsigned>(me));
    for (const DType dtype : {DType::f32, DType::f16, DType::u8, DType::f64}) {
      // The last two as where the system lets no process read another one's memory.
      if (dtype == DType::u8) g.impl()->read_no_peers();
      for (const std::int64_t numel : {std::int64_t{1}, std::int64_t{16384}, std::int64_t{16385}, std::int64_t{100003}, std::int64_t{330000}}) {
        SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(numel));
        auto numbers = [&](std::int64_t count) {
          std::vector<float> host(static_cast<std::size_t>(count));
          for (float& v : host) v = static_cast<float>(random() % 2000) / 16 - (dtype == DType::u8 ? 0 : 60);
          return cast(from_host(host, {count}), dtype);
        };
        const TensorOptions of{.dtype = dtype};
        auto same = [&](const Tensor& a, const Tensor& b) { EXPECT_EQ(a.to_bytes(), b.to_bytes()); };
        auto copied = [&](const Tensor& of_these) {
          const Tensor copy = zeros({of_these.numel()}, of);
          copy_(copy, of_these);
          return copy;
        };
        const Tensor x = numbers(numel), many = numbers(n * numel);
        const ReduceOp op = dtype == DType::u8 ? ReduceOp::sum : ReduceOp::avg;
        Tensor a = zeros({numel}, of), b = zeros({numel}, of);
        g.all_reduce_out(a, x, {.op = op, .algorithm = board}), g.all_reduce_out(b, x, {.op = op, .algorithm = Algorithm::direct}), same(a, b);
        a = copied(x), g.all_reduce_(a, {.op = op, .algorithm = board}), same(a, b);
        a = zeros({numel}, of), g.reduce_scatter_out(a, many, {.op = op, .algorithm = board});
        g.reduce_scatter_out(b, many, {.op = op, .algorithm = Algorithm::direct}), same(a, b);
        const int root = static_cast<int>(numel) % n;
        a = copied(x), b = copied(x), g.broadcast_(a, root, {.algorithm = board}), g.broadcast_(b, root, {.algorithm = Algorithm::tree}), same(a, b);
        a = zeros({numel}, of), b = zeros({numel}, of);
        g.reduce_out(a, x, root, {.op = op, .algorithm = board}), g.reduce_out(b, x, root, {.op = op, .algorithm = Algorithm::tree}), same(a, b);
        g.scatter_out(a, many, root, {.algorithm = board}), g.scatter_out(b, many, root, {.algorithm = Algorithm::direct}), same(a, b);
        Tensor all_a = zeros({n * numel}, of), all_b = zeros({n * numel}, of);
        g.all_gather_out(all_a, x, {.algorithm = board}), g.all_gather_out(all_b, x, {.algorithm = Algorithm::direct}), same(all_a, all_b);
        // In place: the own block of the output.
        const Tensor own = all_a.slice(0, me * numel, (me + 1) * numel);
        copy_(own, x), g.all_gather_out(all_a, own, {.algorithm = board}), same(all_a, all_b);
        g.gather_out(all_a, x, root, {.algorithm = board}), g.gather_out(all_b, x, root, {.algorithm = Algorithm::direct}), same(all_a, all_b);
        g.all_to_all_out(all_a, many, {.algorithm = board}), g.all_to_all_out(all_b, many, {.algorithm = Algorithm::direct}), same(all_a, all_b);
        // In place: the own block of the input.
        b = copied(many.slice(0, me * numel, (me + 1) * numel));
        g.reduce_scatter_out(b, many, {.op = op, .algorithm = Algorithm::direct});
        const Tensor block = many.slice(0, me * numel, (me + 1) * numel);
        g.reduce_scatter_out(block, many, {.op = op, .algorithm = board}), same(block, b);
      }
    }
  });
}

TEST(BoardCalls, RefusedWhereThereIsNone) {
  for_ranks({2, 3}, [](const Group& g) {
    const Tensor x = full({100}, 1);
    if (g.size() % 2 == 1) {
      EXPECT_EQ(code_of([&] { g.all_reduce_(x, {.algorithm = Algorithm::board}); }), ErrorCode::invalid_argument);
      return;
    }
    const std::vector<std::int64_t> rows(static_cast<std::size_t>(g.size()), 1);
    EXPECT_EQ(code_of([&] { g.all_gather_v_out(zeros({g.size()}), zeros({1}), rows, {.algorithm = Algorithm::board}); }), ErrorCode::invalid_argument);
    // One rank asks for another algorithm: a difference as any.
    const Work work = g.all_reduce_(x, {.algorithm = g.rank() == 0 ? Algorithm::board : Algorithm::direct});
    EXPECT_EQ(code_of([&] { work.synchronize(); }), ErrorCode::mismatch);
    current_stream().reset();
  });
}

}}  // namespace clutch::testing
