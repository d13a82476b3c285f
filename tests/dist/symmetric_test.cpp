// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks reach: peers' parts, signals, and collectives of one launch beside the same ones by messages.
#include "dist/ranks.hpp"

#include <clutch/dist/symmetric_kernel.hpp>

#include <cmath>
#include <random>

namespace clutch::testing { namespace {

using namespace dist;

const std::vector<int> kRanks{1, 2, 3, 5, 8};

/// The device's kernels reach the memory of other ranks: CPU devices do.
bool reaches(const Symmetric& memory) { return memory.all_direct(); }

TEST(SymmetricMemory, EachRankReadsAndWritesThePartsOfOthers) {
  for_ranks_of_a_host(kRanks, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    const Symmetric memory({100}, g, {.dtype = DType::i32});
    ASSERT_TRUE(reaches(memory));
    for (int r = 0; r < n; ++r) EXPECT_EQ(memory.tier(r), Symmetric::Tier::direct);
    fill_(memory.local(), me + 1);
    g.barrier();
    const Stream stream = current_stream();
    for (int r = 0; r < n; ++r) EXPECT_EQ(add(memory.peer(r), 1000).to_host<std::int32_t>(), std::vector<std::int32_t>(100, r + 1001));
    g.barrier();
    // Each rank writes an element of each other one.
    for (int r = 0; r < n; ++r) fill_(memory.peer(r).slice(0, me, me + 1), -me - 1);
    g.barrier();
    std::vector<std::int32_t> wanted(100, me + 1);
    for (int r = 0; r < n; ++r) wanted[static_cast<std::size_t>(r)] = -r - 1;
    EXPECT_EQ(memory.local().to_host<std::int32_t>(), wanted);
    stream.synchronize();
    g.barrier().synchronize();
  });
}

TEST(SymmetricMemory, LivesAsLongAsATensorOfIt) {
  for_ranks_of_a_host({2, 3}, [](const Group& g) {
    const int next = (g.rank() + 1) % g.size();
    Tensor mine, theirs;
    {
      const Symmetric memory({1 << 16}, g);
      mine = memory.local(), theirs = memory.peer(next);
    }
    fill_(mine, g.rank());
    g.barrier();
    EXPECT_EQ(theirs.to_host<float>()[65535], static_cast<float>(next));
    g.barrier().synchronize();
    mine = Tensor();
    g.barrier().synchronize();
    EXPECT_EQ(theirs.to_host<float>()[0], static_cast<float>(next));
  });
}

TEST(SymmetricMemory, SignalsBringWhatWasWrittenBeforeThem) {
  for_ranks_of_a_host({2, 3}, [](const Group& g) {
    const int n = g.size(), me = g.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
    const Symmetric memory({5000}, g, {.dtype = DType::i32}, 3);
    fill_(memory.local(), 0);
    g.barrier();
    // A token goes round: who gets it adds one.
    constexpr int kRounds = 50;
    for (int round = 0; round < kRounds; ++round) {
      if (me != 0 || round > 0) memory.wait_signal(before, 2, static_cast<std::uint32_t>(me == 0 ? round : round + 1));
      if (me == 0) add_(memory.local(), 1);
      if (n > 1) copy_(memory.peer(next), memory.local());
      memory.signal(next, 2);
    }
    const Work last = memory.wait_signal(before, 2, kRounds);
    last.synchronize();
    EXPECT_EQ(memory.local().to_host<std::int32_t>(), std::vector<std::int32_t>(5000, kRounds));
    g.barrier().synchronize();
  });
}

TEST(SymmetricMemory, PutAndGetGoOneWayWithASignal) {
  for_ranks_of_a_host({1, 2, 3}, [](const Group& g) {
    const int n = g.size(), me = g.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
    for (const DType dtype : {DType::u8, DType::bf16, DType::f64}) {
      const Symmetric memory({40, 50}, g, {.dtype = dtype}, 2);
      fill_(memory.local(), 0);
      g.barrier();
      std::uint32_t signals = 0;
      for (int round = 0; round < 8; ++round) {
        const Tensor mine = full({10, 30}, me + round + 1, {.dtype = dtype});
        // Strided tensors, too, in row-major order, and beside the stream.
        const bool is_strided = round % 2 != 0, is_async = round % 4 == 2;
        const Work put = memory.put(is_strided ? mine.mT() : mine, next, 100 + round, 1, {.async = is_async});
        memory.wait_signal(before, 1, ++signals);
        std::vector<double> wanted(300, before + round + 1);
        EXPECT_EQ(values(memory.local().reshape({2000}).slice(0, 100 + round, 400 + round)), wanted);
        put.synchronize();
        EXPECT_EQ(put.status(), Work::Status::done);
        g.barrier();
        const Tensor theirs = zeros({300}, {.dtype = dtype});
        const Work got = memory.get(theirs, next, 100 + round, {.async = is_async});
        got.wait();
        EXPECT_EQ(values(theirs), std::vector<double>(300, me + round + 1));
        g.barrier().synchronize();
      }
      const std::vector<double> all = values(memory.local());
      EXPECT_EQ(all[99], 0);
      EXPECT_EQ(all[407], 0);
    }
    const Symmetric memory({16}, g);
    // A capture records it, and its signal.
    const Tensor x = full({4}, me + 1);
    Graph graph;
    graph.capture_begin(current_stream(), {.mode = CaptureMode::relaxed});
    EXPECT_EQ(memory.put(x, next, 4, 2).status(), Work::Status::done);
    graph.capture_end();
    for (int i = 0; i < 3; ++i) graph.replay();
    memory.wait_signal(before, 2, 3);
    EXPECT_EQ(memory.local().slice(0, 4, 8).to_host<float>(), std::vector<float>(4, static_cast<float>(before + 1)));
    EXPECT_EQ(code_of([&] { memory.put(zeros({4}), n); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { memory.put(zeros({4}), next, 13); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { memory.put(zeros({4}), next, -1); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { memory.put(zeros({4}), next, 0, 64); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { memory.put(zeros({4}, {.dtype = DType::i32}), next); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { memory.get(Tensor(), next); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { Symmetric().get(zeros({4}), next); }), ErrorCode::invalid_argument);
    g.barrier().synchronize();
  });
}

TEST(SymmetricMemory, KernelsOfTheCallerReadAllRanksAndSignal) {
  for_ranks_of_a_host({1, 2, 3, 5}, [](const Group& g) {
    const int n = g.size(), me = g.rank(), before = (me + n - 1) % n;
    const Symmetric memory({300}, g, {.dtype = DType::i32}, 4);
    const Tensor sums = zeros({100}, {.dtype = DType::i32}), seen = zeros({1}, {.dtype = DType::u32});
    fill_(memory.local(), me + 1);
    g.barrier();
    // One work-group: each item adds up all ranks' elements and stores to the next rank; the first one signals for all.
    const std::string text = symmetric_text(memory, R"(
__kernel void add_up(__global int* sums, uint n, CLUTCH_SYMMETRIC) {
  const uint to = (CLUTCH_RANK + 1) % CLUTCH_RANKS;
  for (uint i = get_local_id(0); i < n; i += get_local_size(0)) {
    int sum = 0;
    for (uint r = 0; r < CLUTCH_RANKS; ++r) sum += CLUTCH_PART(const int, r)[i];
    sums[i] = sum;
    CLUTCH_PART(int, to)[n + i] = sum + (int)CLUTCH_RANK;
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) == 0) CLUTCH_SIGNAL(to, 3, 2);
}
__kernel void look(__global uint* seen, uint from, CLUTCH_SYMMETRIC) { seen[0] = CLUTCH_COUNTER(from, 3); }
)");
    launch({.text = text, .entry = "add_up"}, {.global = 16, .local = 16}, symmetric_arguments(memory, {output(sums), value(std::uint32_t{100})}));
    memory.wait_signal(before, 3, 2);
    launch({.text = text, .entry = "look"}, {}, symmetric_arguments(memory, {output(seen), value(static_cast<std::uint32_t>(before))}));
    const int sum = n * (n + 1) / 2;
    EXPECT_EQ(sums.to_host<std::int32_t>(), std::vector<std::int32_t>(100, sum));
    EXPECT_EQ(memory.local().slice(0, 100, 200).to_host<std::int32_t>(), std::vector<std::int32_t>(100, sum + before));
    EXPECT_EQ(memory.local().slice(0, 200, 300).to_host<std::int32_t>(), std::vector<std::int32_t>(100, me + 1));
    EXPECT_EQ(seen.to_host<std::uint32_t>(), std::vector<std::uint32_t>{2});
    EXPECT_EQ(code_of([] { (void)symmetric_text(Symmetric(), ""); }), ErrorCode::invalid_argument);
    g.barrier().synchronize();
  });
}

TEST(SymmetricMemory, ASignalThatDoesNotComeIsATimeout) {
  for_ranks_of_a_host({2}, [](const Group& world) {
    const Group g = world.split(0);
    const Symmetric memory({4}, g);
    const Stream stream = current_stream();
    if (g.rank() == 0) {
      EXPECT_EQ(code_of([&] { memory.wait_signal(g.size() - 1, 0, 1, {.timeout = std::chrono::milliseconds(100)}).synchronize(); }), ErrorCode::timed_out);
      stream.reset();
    }
    world.barrier().synchronize();
  });
}

/// Numbers of all magnitudes, some of them special.
Tensor numbers(DType dtype, std::int64_t n, int rank, unsigned salt) {
  const std::vector<std::uint8_t> raw = model::make_values(static_cast<std::size_t>(n), dtype, 77U * static_cast<unsigned>(rank + 1) + salt);
  return from_bytes(raw.data(), raw.size(), {n}, {.dtype = dtype});
}

/// Equal bits; NaNs are one.
void expect_same(const Tensor& got, const Tensor& wanted) {
  const std::vector<std::uint8_t> a = got.to_bytes(), b = wanted.to_bytes();
  if (a == b) return;
  const std::vector<double> x = values(got), y = values(wanted);
  const std::size_t size = a.size() / x.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    ASSERT_TRUE(std::equal(a.begin() + static_cast<std::ptrdiff_t>(i * size), a.begin() + static_cast<std::ptrdiff_t>((i + 1) * size),
                           b.begin() + static_cast<std::ptrdiff_t>(i * size)))
        << "element " << i << ": " << x[i] << ", wanted " << y[i];
  }
}

TEST(SymmetricMemory, ReductionsHaveTheBitsOfThoseByMessages) {
  for_ranks_of_a_host({1, 2, 3}, [](const Group& g) {
    const int n = g.size();
    // Each dtype and reduction is a program.
    std::vector<DType> dtypes{DType::f32, DType::bf16, DType::i8};
    if (level() != "smoke")
      dtypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64};
    for (const DType dtype : dtypes) {
      const Symmetric memory({2500}, g, {.dtype = dtype});
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::bxor, ReduceOp::premul_sum}) {
        const bool is_whole = is_integral(dtype);
        if (is_whole ? op == ReduceOp::avg || op == ReduceOp::premul_sum : op == ReduceOp::bxor) continue;
        SCOPED_TRACE(std::string(clutch::name(dtype)) + " " + std::string(name(op)));
        for (const std::int64_t count : {1, 64, 2403}) {
          const unsigned salt = static_cast<unsigned>(count) * 16 + static_cast<unsigned>(op);
          const Tensor x = numbers(dtype, count, g.rank(), salt), view = memory.local().slice(0, 7, 7 + count);
          const Tensor wanted = x.clone();
          g.all_reduce_(wanted, {.op = op, .factor = 0.3, .algorithm = Algorithm::direct});
          copy_(view, x);
          g.all_reduce_(view, {.op = op, .factor = 0.3, .algorithm = Algorithm::kernel});
          expect_same(view, wanted);
        }
        const std::int64_t block = 2500 / n;
        const Tensor x = numbers(dtype, block * n, g.rank(), 5), view = memory.local().slice(0, 0, block * n), wanted = empty({block}, {.dtype = dtype}),
                     out = empty({block}, {.dtype = dtype});
        g.reduce_scatter_out(wanted, x, {.op = op, .factor = 0.3, .algorithm = Algorithm::direct});
        copy_(view, x);
        g.reduce_scatter_out(out, view, {.op = op, .factor = 0.3, .algorithm = Algorithm::kernel});
        expect_same(out, wanted);
      }
    }
  });
}

TEST(SymmetricMemory, CopiesAreThoseByMessages) {
  for_ranks_of_a_host(kRanks, [](const Group& g) {
    const int n = g.size();
    for (const DType dtype : {DType::f32, DType::bf16, DType::u8, DType::c128, DType::f8e5m2, DType::f4e2m1, DType::boolean}) {
      SCOPED_TRACE(std::string(clutch::name(dtype)));
      for (const std::int64_t block : {2, 18, 1024}) {
        const Symmetric memory({n * block}, g, {.dtype = dtype});
        std::mt19937 random(static_cast<unsigned>(g.rank()) + 3);
        std::vector<std::uint8_t> raw(bytes_for(dtype, static_cast<std::uint64_t>(n * block)));
        for (std::uint8_t& b : raw) b = static_cast<std::uint8_t>(dtype == DType::boolean ? random() % 2 : random());
        const Tensor all = from_bytes(raw.data(), raw.size(), {n * block}, {.dtype = dtype}), mine = all.slice(0, 0, block);
        const Tensor wanted = empty({n * block}, {.dtype = dtype}), out = memory.local();
        g.all_gather_out(wanted, mine, {.algorithm = Algorithm::direct});
        g.all_gather_out(out, mine, {.algorithm = Algorithm::kernel});
        EXPECT_EQ(out.to_bytes(), wanted.to_bytes());
        g.all_to_all_out(wanted, all, {.algorithm = Algorithm::direct});
        g.all_to_all_out(out, all, {.algorithm = Algorithm::kernel});
        EXPECT_EQ(out.to_bytes(), wanted.to_bytes());
        for (const int root : {0, n - 1}) {
          copy_(wanted, all), copy_(out, all);
          g.broadcast_(wanted, root, {.algorithm = Algorithm::tree});
          g.broadcast_(out, root, {.algorithm = Algorithm::kernel});
          EXPECT_EQ(out.to_bytes(), wanted.to_bytes());
        }
        // The own block lies where it goes.
        const Tensor own = out.slice(0, g.rank() * block, (g.rank() + 1) * block);
        copy_(own, mine);
        g.all_gather_out(out, own, {.algorithm = Algorithm::kernel});
        g.all_gather_out(wanted, mine);
        EXPECT_EQ(out.to_bytes(), wanted.to_bytes());
      }
    }
  });
}

TEST(SymmetricMemory, KernelsAreTakenWhereTheyPayAndInOrder) {
  for_ranks_of_a_host({2, 3}, [](const Group& g) {
    const Symmetric memory({40000}, g);
    const Tensor x = memory.local();
    fill_(x, g.rank() + 1);
    double wanted = g.rank() + 1, all = 0;
    for (int r = 0; r < g.size(); ++r) all += r + 1;
    for (int i = 0; i < 20; ++i) {
      g.all_reduce_(x);
      wanted = i == 0 ? all : wanted * g.size();
      mul_(x, 0.5);
      wanted *= 0.5;
    }
    for (const float v : x.to_host<float>()) ASSERT_EQ(v, static_cast<float>(wanted));
    // Asynchronous, beside another call.
    const Symmetric other({40000}, g);
    fill_(other.local(), 2), fill_(x, 1);
    const Work first = g.all_reduce_(x, {.async = true}), second = g.all_reduce_(other.local(), {.async = true});
    first.wait(), second.wait();
    EXPECT_EQ(x.to_host<float>()[39999], static_cast<float>(g.size()));
    EXPECT_EQ(other.local().to_host<float>()[39999], static_cast<float>(2 * g.size()));
    g.barrier().synchronize();
  });
}

TEST(SymmetricMemory, GraphsMakeCallsOfKernelsAgain) {
  for_ranks_of_a_host({2, 3}, [](const Group& g) {
    const Symmetric memory({20000}, g);
    if (!reaches(memory)) return;
    const Tensor all = memory.local(), mine = full({20000}, g.rank() + 1);
    const Stream stream = current_stream();
    stream.synchronize();
    Graph graph;
    graph.capture_begin(stream, {.mode = CaptureMode::relaxed});
    copy_(all, mine);
    g.all_reduce_(all, {.algorithm = Algorithm::kernel});
    mul_(all, 2.0F);
    graph.capture_end();
    const auto sum = static_cast<float>(g.size() * (g.size() + 1));
    float scale = 1;
    for (int replay = 0; replay < 5; ++replay) {
      graph.replay(stream);
      EXPECT_EQ(all.to_host<float>()[19999], sum * scale);
      mul_(mine, 3.0F);
      scale *= 3;
    }
    g.barrier().synchronize();
  });
}

TEST(SymmetricMemory, RanksApartHaveMessagesAlone) {
  for_ranks({3}, [](const Group& g) {
    if (g.size() % 2 == 0) return;
    const int n = g.size(), next = (g.rank() + 1) % n;
    Symmetric memory({20000}, g);
    EXPECT_EQ(memory.tier(g.rank()), Symmetric::Tier::direct);
    EXPECT_EQ(memory.tier(next), n > 1 ? Symmetric::Tier::remote : Symmetric::Tier::direct);
    EXPECT_EQ(memory.all_direct(), n == 1);
    fill_(memory.local(), g.rank() + 1.0);
    g.all_reduce_(memory.local());
    EXPECT_EQ(memory.local().select(0, 19999).item(), n * (n + 1) / 2.0);
    if (n == 1) return;
    EXPECT_EQ(code_of([&] { (void)memory.peer(next); }), ErrorCode::not_supported);
    EXPECT_EQ(code_of([&] { g.all_reduce_(memory.local(), {.algorithm = Algorithm::kernel}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_reduce_(memory.local().slice(0, 0, 8), {.algorithm = Algorithm::board}); }), ErrorCode::invalid_argument);
  });
}

TEST(SymmetricMemory, WhatDoesNotFitIsRefused) {
  for_ranks_of_a_host({2}, [](const Group& g) {
    if (g.size() == 1) return;
    const Stream stream = current_stream();
    const Symmetric memory({128}, g);
    const Tensor plain = zeros({128});
    EXPECT_EQ(code_of([&] { g.all_reduce_(plain, {.algorithm = Algorithm::kernel}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_reduce_out(plain, memory.local(), {.algorithm = Algorithm::kernel}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_reduce_(memory.local().slice(0, 0, 128, 2), {.algorithm = Algorithm::kernel}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)memory.peer(g.size()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)memory.tier(-1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { memory.signal(0, 64); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)memory.wait_signal(0, -1, 1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { (void)Symmetric().local(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)Symmetric({4}, Group()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)Symmetric({4}, g, {}, 0); }), ErrorCode::invalid_argument);
    // Another place, another size on each rank.
    const int from = g.rank() == 0 ? 0 : 16;
    EXPECT_EQ(code_of([&] { g.all_reduce_(memory.local().slice(0, from, from + 16), {.algorithm = Algorithm::kernel}).synchronize(); }), ErrorCode::mismatch);
    stream.reset();
    EXPECT_EQ(code_of([&] { (void)Symmetric({g.rank() == 0 ? 4 : 5}, g); }), ErrorCode::mismatch);
    EXPECT_FALSE(g.failed());
    g.all_reduce_(memory.local(), {.algorithm = Algorithm::kernel}).synchronize();
  });
}

}}  // namespace clutch::testing
