// SPDX-License-Identifier: Apache-2.0
// Exchanges of rows by counts on the device, beside a host model made from PyTorch's text: each rank knows the input of all.
#include "dist/ranks.hpp"

#include <clutch/dist/moe.hpp>

#include <algorithm>
#include <random>

namespace clutch::testing { namespace {

using namespace dist;

using Bytes = std::vector<std::uint8_t>;
using Numbers = std::vector<std::int64_t>;

const std::vector<int> kRanks{1, 2, 3, 4};
constexpr std::uint8_t kCanary = 0xa5;
constexpr std::int64_t kMargin = 2;  // rows before and behind an output

enum class Sizes : std::uint8_t { some, many, none, to_one };

/// What a rank sends: rows of each block, and their bytes, all blocks one behind the other.
struct Sent {
  Numbers splits;
  Bytes rows;
};

Sent sent_by(int rank, int ranks, std::int64_t experts, std::size_t row_bytes, Sizes sizes, unsigned salt) {
  std::mt19937 random(1000U * static_cast<unsigned>(rank) + salt);
  Sent sent;
  std::size_t all = 0;
  for (std::int64_t i = 0; i < ranks * experts; ++i) {
    std::int64_t rows = 0;
    if (sizes == Sizes::some) rows = random() % 3 == 0 ? 0 : random() % 6;
    if (sizes == Sizes::many) rows = random() % 200;
    if (sizes == Sizes::to_one) rows = i / experts == ranks - 1 ? 7 : 0;
    sent.splits.push_back(rows);
    all += static_cast<std::size_t>(rows);
  }
  sent.rows.resize(all * row_bytes);
  for (std::uint8_t& b : sent.rows) b = static_cast<std::uint8_t>(random());
  return sent;
}

/// An output in the host's memory: rows that nobody writes are canaries.
struct Output {
  Numbers splits, offsets;
  Bytes rows;
  std::int64_t taken = 0;  ///< rows, those between blocks among them

  void put(const Sent& from, std::size_t block, std::size_t row_bytes, std::int64_t at) {
    std::int64_t first = 0;
    for (std::size_t b = 0; b < block; ++b) first += from.splits[b];
    const auto begin = static_cast<std::size_t>(first) * row_bytes, bytes = static_cast<std::size_t>(from.splits[block]) * row_bytes;
    const std::size_t to = static_cast<std::size_t>(at) * row_bytes;
    if (rows.size() < to + bytes) rows.resize(to + bytes, kCanary);
    std::copy_n(from.rows.begin() + static_cast<std::ptrdiff_t>(begin), bytes, rows.begin() + static_cast<std::ptrdiff_t>(to));
    splits.push_back(from.splits[block]), offsets.push_back(at);
  }
};

/// "Expert-major: e n + src. Each expert's block begins at a multiple of the alignment; an empty expert takes that many rows."
Output dispatched(const std::vector<Sent>& all, int rank, std::int64_t experts, std::size_t row_bytes, std::int64_t align) {
  Output out;
  std::int64_t at = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    const std::int64_t begin = at;
    for (const Sent& from : all) {
      out.put(from, static_cast<std::size_t>(rank * experts + e), row_bytes, at);
      at += out.splits.back();
    }
    if (align > 0 && at == begin) at += align;
    while (align > 0 && at % align != 0) ++at;
  }
  out.taken = at;
  return out;
}

/// The bytes of an output between canaries, and the whole memory that it is in.
struct Place {
  Tensor all, out;
  Place(const Dims& row, std::int64_t rows, DType dtype) {
    Dims sizes{rows + 2 * kMargin};
    for (const std::int64_t n : row) sizes.push_back(n);
    const Bytes canaries(bytes_for(dtype, static_cast<std::uint64_t>(numel(sizes))), kCanary);
    all = from_bytes(canaries.data(), canaries.size(), sizes, {.dtype = dtype});
    out = all.slice(0, kMargin, kMargin + rows);
  }
  void expect(const Bytes& rows, std::size_t row_bytes) const {
    Bytes wanted(all.nbytes(), kCanary);
    std::copy(rows.begin(), rows.end(), wanted.begin() + static_cast<std::ptrdiff_t>(kMargin * static_cast<std::int64_t>(row_bytes)));
    EXPECT_EQ(all.to_bytes(), wanted);
  }
};

Numbers joined(const Numbers& a, const Numbers& b) {
  Numbers all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

struct Problem {
  DType dtype = DType::f32;
  Dims row{3};
  std::int64_t experts = 2, align = 1;
  Sizes sizes = Sizes::some;
};

std::size_t bytes_of_row(const Problem& p) { return bytes_for(p.dtype, static_cast<std::uint64_t>(numel(p.row))); }

Tensor with_rows(const Tensor& memory, std::int64_t rows, const Bytes& bytes) {
  const Tensor view = memory.slice(0, 1, 1 + rows);
  if (!bytes.empty()) view.write(std::as_bytes(std::span(bytes)));
  return view;
}

std::int64_t total(const Numbers& x) {
  std::int64_t sum = 0;
  for (const std::int64_t n : x) sum += n;
  return sum;
}

std::vector<Sent> sent_by_all(const Group& g, const Problem& p, unsigned salt) {
  std::vector<Sent> all;
  for (int r = 0; r < g.size(); ++r) all.push_back(sent_by(r, g.size(), p.experts, bytes_of_row(p), p.sizes, salt));
  return all;
}

Dims rows_of(const Problem& p, std::int64_t rows) {
  Dims sizes{rows};
  for (const std::int64_t n : p.row) sizes.push_back(n);
  return sizes;
}

/// The tokens' way to their experts and back, by kernels and by messages.
void check_round_trip(const Group& g, const Problem& p, unsigned salt) {
  const std::vector<Sent> all = sent_by_all(g, p, salt);
  const Sent& mine = all[static_cast<std::size_t>(g.rank())];
  const std::size_t row_bytes = bytes_of_row(p);
  const std::int64_t blocks = g.size() * p.experts, rows = total(mine.splits);
  std::int64_t most = 1, most_taken = 1;
  for (int r = 0; r < g.size(); ++r)
    most = std::max(most, total(all[static_cast<std::size_t>(r)].splits)),
    most_taken = std::max(most_taken, dispatched(all, r, p.experts, row_bytes, p.align).taken);
  const Output wanted = dispatched(all, g.rank(), p.experts, row_bytes, p.align);
  const Symmetric tokens(rows_of(p, most + 1), g, {.dtype = p.dtype}), results(rows_of(p, most_taken), g, {.dtype = p.dtype});
  for (const Algorithm algorithm : {Algorithm::kernel, Algorithm::direct}) {
    SCOPED_TRACE(algorithm == Algorithm::kernel ? "kernel" : "messages");
    const Tensor in = with_rows(tokens.local(), rows, mine.rows);
    const Tensor splits = from_host(mine.splits, {blocks}), arrived = full({2, blocks}, -1, {.dtype = DType::i64}), returned = arrived.clone();
    const Place there(p.row, wanted.taken, p.dtype), back(p.row, rows, p.dtype);
    dispatch(there.out, arrived, in, splits, g, p.align, {.algorithm = algorithm});
    there.expect(wanted.rows, row_bytes);
    EXPECT_EQ(arrived.to_host<std::int64_t>(), joined(wanted.splits, wanted.offsets));
    // Experts that do nothing.
    const Tensor done = results.local().slice(0, 0, wanted.taken);
    if (wanted.taken > 0) copy_(done, there.out);
    combine(back.out, returned, done, arrived, g, {.algorithm = algorithm}).synchronize();
    back.expect(mine.rows, row_bytes);
    Numbers begins;
    for (std::int64_t i = 0, at = 0; i < blocks; at += mine.splits[static_cast<std::size_t>(i++)]) begins.push_back(at);
    EXPECT_EQ(returned.to_host<std::int64_t>(), joined(mine.splits, begins));
  }
  g.barrier().synchronize();
}

TEST(MixtureOfExperts, TokensComeToTheirExpertsAndBack) {
  for_ranks_of_a_host(kRanks, [](const Group& g) {
    unsigned salt = 0;
    // Words of 1, 2, 4 and 8 bytes, rows of odd sizes and of whole vectors.
    const std::vector<std::pair<DType, Dims>> rows{{DType::u8, {1}},      {DType::u8, {7}},  {DType::bf16, {5}}, {DType::f32, {3}},
                                                   {DType::f32, {4, 16}}, {DType::i64, {3}}, {DType::c128, {9}}};
    for (const auto& [dtype, row] : rows)
      for (const std::int64_t align : {1, 0, 8}) {
        SCOPED_TRACE(std::string(clutch::name(dtype)) + " " + to_string(row) + " align " + std::to_string(align));
        check_round_trip(g, {.dtype = dtype, .row = row, .experts = align == 0 ? 3 : 2, .align = align}, ++salt);
      }
  });
}

TEST(MixtureOfExperts, AnyCountsOfRowsAndExperts) {
  for_ranks_of_a_host(kRanks, [](const Group& g) {
    unsigned salt = 100;
    for (const Sizes sizes : {Sizes::none, Sizes::to_one, Sizes::many})
      for (const std::int64_t experts : {1, 5, 40}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(sizes)) + ", experts " + std::to_string(experts));
        check_round_trip(g, {.dtype = DType::f16, .row = {33}, .experts = experts, .align = experts == 5 ? 16 : 1, .sizes = sizes}, ++salt);
      }
    std::mt19937 random(11);
    for (int i = 0; i < (level() == "smoke" ? 4 : 200); ++i) {
      const Problem p{.dtype = i % 2 == 0 ? DType::u8 : DType::f32,
                      .row = {static_cast<std::int64_t>(1 + random() % 40)},
                      .experts = static_cast<std::int64_t>(1 + random() % 9),
                      .align = static_cast<std::int64_t>(random() % 20),
                      .sizes = random() % 4 == 0 ? Sizes::many : Sizes::some};
      SCOPED_TRACE("problem " + std::to_string(i));
      check_round_trip(g, p, ++salt);
    }
    check_round_trip(g, {.dtype = DType::f4e2m1, .row = {6}}, ++salt);
    check_round_trip(g, {.dtype = DType::i32, .row = {}}, ++salt);
  });
}

TEST(MixtureOfExperts, MoreRanksThanAKernelHasBuffersFor) {
  if (processes() > 0) GTEST_SKIP() << "ranks are threads here";
  for_ranks_of_a_host({18}, [](const Group& g) { check_round_trip(g, {.row = {3}, .align = 4}, 7); });
}

TEST(MixtureOfExperts, ManyExpertsAndTooMany) {
  if (processes() > 0) GTEST_SKIP() << "ranks are threads here";
  for_ranks_of_a_host({2}, [](const Group& g) { check_round_trip(g, {.row = {3}, .experts = 2000}, 8); });
  for_ranks_of_a_host({2}, [](const Group& g) {
    constexpr std::int64_t kExperts = 5000;
    const Tensor splits = full({2 * kExperts}, 0, {.dtype = DType::i64}), arrived = full({2, 2 * kExperts}, 0, {.dtype = DType::i64});
    try {
      dispatch(empty({1, 3}), arrived, empty({1, 3}), splits, g).synchronize();
      ADD_FAILURE() << "must be refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::not_supported);
      EXPECT_NE(std::string_view(e.what()).find("8192 numbers of rows at most, got 20002"), std::string_view::npos) << e.what();
    }
    current_stream().reset();
  });
}

TEST(AllToAllV, TakesSplitsFromTheDevice) {
  for_ranks_of_a_host(kRanks, [](const Group& g) {
    unsigned salt = 200;
    for (const Sizes sizes : {Sizes::some, Sizes::none, Sizes::to_one, Sizes::many})
      for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
        const Problem p{.dtype = dtype, .row = {5}, .experts = 1, .sizes = sizes};
        const std::vector<Sent> all = sent_by_all(g, p, ++salt);
        const Sent& mine = all[static_cast<std::size_t>(g.rank())];
        const Output wanted = dispatched(all, g.rank(), 1, bytes_of_row(p), 0);
        std::int64_t most = 1;
        for (const Sent& sent : all) most = std::max(most, total(sent.splits));
        const Symmetric memory(rows_of(p, most + 1), g, {.dtype = dtype});
        const Tensor in = with_rows(memory.local(), total(mine.splits), mine.rows), splits = from_host(mine.splits, {g.size()});
        // Other memory goes by messages.
        for (const Tensor& from : {in, in.clone()}) {
          const Tensor arrived = full({2, g.size()}, -1, {.dtype = DType::i64});
          const Place there(p.row, wanted.taken, dtype);
          all_to_all_v(there.out, arrived, from, splits, g).synchronize();
          there.expect(wanted.rows, bytes_of_row(p));
          EXPECT_EQ(arrived.to_host<std::int64_t>(), joined(wanted.splits, wanted.offsets));
        }
      }
  });
}

TEST(AllToAllV, CallsFollowEachOtherWithoutTheHost) {
  for_ranks_of_a_host({1, 2, 3}, [](const Group& g) {
    const std::int64_t n = g.size(), rows = 40 * n;
    const Symmetric memory({rows, 8}, g, {.dtype = DType::i32});
    fill_(memory.local(), 0);
    const Tensor tokens = zeros({rows, 8}, {.dtype = DType::i32}), arrived = empty({2, n}, {.dtype = DType::i64});
    const Tensor splits = full({n}, 40, {.dtype = DType::i64});
    for (int i = 0; i < 30; ++i) {
      add_(memory.local(), g.rank() + 1);
      all_to_all_v(tokens, arrived, memory.local(), splits, g);
      copy_(memory.local(), tokens);
    }
    // Each element is what its place added, at this rank or at the one that it went to and came back from.
    std::vector<std::int32_t> wanted;
    for (std::int64_t r = 0; r < n; ++r) wanted.insert(wanted.end(), 40 * 8, static_cast<std::int32_t>(15 * (g.rank() + 1) + 15 * (r + 1)));
    EXPECT_EQ(tokens.to_host<std::int32_t>(), wanted);
    // Asynchronous calls of one memory, each to a place of its own.
    std::vector<Tensor> outs, places;
    std::vector<Work> works;
    fill_(memory.local(), g.rank() + 1);
    for (int i = 0; i < 6; ++i) {
      outs.push_back(zeros({rows, 8}, {.dtype = DType::i32})), places.push_back(zeros({2, n}, {.dtype = DType::i64}));
      works.push_back(all_to_all_v(outs.back(), places.back(), memory.local(), splits, g, {.async = true}));
    }
    for (const Work& work : works) work.wait();
    wanted.clear();
    for (std::int64_t r = 0; r < n; ++r) wanted.insert(wanted.end(), 40 * 8, static_cast<std::int32_t>(r + 1));
    for (const Tensor& out : outs) EXPECT_EQ(out.to_host<std::int32_t>(), wanted);
    g.barrier().synchronize();
  });
}

TEST(AllToAllV, WhatDoesNotFitIsAnErrorOnEveryRankAndNothingIsWritten) {
  for_ranks_of_a_host({1, 2, 3}, [](const Group& g) {
    const Stream stream = current_stream();
    const std::int64_t n = g.size();
    const Symmetric memory({10 * n, 4}, g);
    fill_(memory.local(), g.rank());
    struct Fault {
      const char* what;
      std::int64_t out_rows, split;
    };
    // Of the last rank: an output that is too short, splits past its input, a negative one.
    for (const Fault fault : {Fault{"short", 10 * n - 1, 10}, Fault{"past", 10 * n, 11}, Fault{"negative", 10 * n, -1}, Fault{"large", 10 * n, INT64_MAX}})
      for (const Algorithm algorithm : {Algorithm::kernel, Algorithm::direct}) {
        SCOPED_TRACE(std::string(fault.what) + (algorithm == Algorithm::kernel ? ", kernel" : ", messages"));
        const bool is_wrong = g.rank() == g.size() - 1;
        Numbers list(static_cast<std::size_t>(n), 10);
        if (is_wrong) list.back() = fault.split;
        const Tensor splits = from_host(list, {n}), arrived = zeros({2, n}, {.dtype = DType::i64});
        const Place there({4}, is_wrong ? fault.out_rows : 10 * n, DType::f32);
        EXPECT_EQ(code_of([&] { all_to_all_v(there.out, arrived, memory.local(), splits, g, {.algorithm = algorithm}).synchronize(); }),
                  ErrorCode::invalid_shape);
        if (algorithm == Algorithm::kernel) stream.reset();
        there.expect({}, 16);
        EXPECT_FALSE(g.failed());
      }
    // The next call is right.
    const Tensor splits = full({n}, 10, {.dtype = DType::i64}), arrived = zeros({2, n}, {.dtype = DType::i64}), out = empty({10 * n, 4});
    all_to_all_v(out, arrived, memory.local(), splits, g, {.algorithm = Algorithm::kernel}).synchronize();
    EXPECT_EQ(out.to_host<float>().back(), static_cast<float>(n - 1));
  });
}

TEST(MixtureOfExperts, WhatDoesNotFitIsRefused) {
  for_ranks_of_a_host({2}, [](const Group& g) {
    if (g.size() == 1) return;
    const std::int64_t n = g.size();
    const Stream stream = current_stream();
    const Symmetric memory({2 * n, 4}, g);
    const Tensor in = memory.local(), out = empty({32, 4}), splits = full({2 * n}, 1, {.dtype = DType::i64}),
                 arrived = zeros({2, 2 * n}, {.dtype = DType::i64});
    auto code = [&](auto&& f) { return code_of(f); };
    EXPECT_EQ(code([&] { dispatch(out, arrived, in, splits, Group()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { dispatch(Tensor(), arrived, in, splits, g); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { dispatch(out, arrived, in, splits, g, -1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { dispatch(out, arrived, in, splits, g, 1, {.algorithm = Algorithm::tree}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { dispatch(out, arrived, in.clone(), splits, g, 1, {.algorithm = Algorithm::kernel}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { dispatch(out, arrived, in.slice(1, 0, 2), splits, g); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { dispatch(out.slice(1, 0, 2), arrived, in.slice(1, 0, 2), splits, g); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code([&] { dispatch(out, arrived, in, splits.to(DType::i32), g); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code([&] { dispatch(empty({32, 4}, {.dtype = DType::i32}), arrived, in, splits, g); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code([&] { dispatch(out, arrived, in, splits.slice(0, 0, 2 * n - 1), g); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { dispatch(out, arrived.slice(1, 0, n).contiguous(), in, splits, g); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { all_to_all_v(out, arrived, in, splits, g); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { combine(out, arrived, in, splits, g); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code([&] { dispatch(in, arrived, in, splits, g); }), ErrorCode::invalid_overlap);
    Graph graph;
    graph.capture_begin(stream, {.mode = CaptureMode::relaxed});
    EXPECT_EQ(code([&] { dispatch(out, arrived, in, splits, g); }), ErrorCode::invalid_argument);
    graph.capture_end();
    // Another alignment on one rank.
    EXPECT_EQ(code([&] { dispatch(out, arrived, in, splits, g, g.rank() == 0 ? 1 : 2).synchronize(); }), ErrorCode::mismatch);
    stream.reset();
    EXPECT_FALSE(g.failed());
    dispatch(out, arrived, in, splits, g).synchronize();
  });
}

}}  // namespace clutch::testing
