// SPDX-License-Identifier: Apache-2.0
// Overlap of strided views: the search against marked bytes, and what ops accept and refuse.
#include "encode/overlap.hpp"
#include "encode/elementwise.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <numeric>
#include <random>
#include <set>

namespace clutch::testing { namespace {

using detail::Reached;

/// Bytes of each element of a view, from the begin of its storage; counted by walking over all indices.
std::vector<std::set<std::uint64_t>> bytes_of_elements(const Tensor& t) {
  std::vector<std::set<std::uint64_t>> all;
  const auto width = static_cast<std::uint64_t>(bits(t.dtype()) / 8);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    std::int64_t rest = i, at = 0;
    for (int d = t.rank() - 1; d >= 0; --d) at += rest % t.sizes()[d] * t.strides()[d], rest /= t.sizes()[d];
    std::set<std::uint64_t> bytes;
    for (std::uint64_t b = 0; b < width; ++b) bytes.insert(t.byte_offset() + static_cast<std::uint64_t>(at) * width + b);
    all.push_back(bytes);
  }
  return all;
}

bool share_a_byte(const Tensor& a, const Tensor& b) {
  std::set<std::uint64_t> seen;
  for (const auto& bytes : bytes_of_elements(a)) seen.insert(bytes.begin(), bytes.end());
  for (const auto& bytes : bytes_of_elements(b))
    for (std::uint64_t byte : bytes)
      if (seen.contains(byte)) return true;
  return false;
}

bool has_shared_elements(const Tensor& t) {
  std::set<std::uint64_t> seen;
  std::size_t count = 0;
  for (const auto& bytes : bytes_of_elements(t)) seen.insert(bytes.begin(), bytes.end()), count += bytes.size();
  return seen.size() != count;
}

/// A view of at most 4 dimensions within 600 elements of `whole`.
Tensor random_view(const Tensor& whole, std::mt19937& random) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (;;) {
    Dims sizes, strides;
    std::int64_t reach = 0;
    for (int d = pick(0, 4); d > 0; --d) {
      sizes.push_back(pick(1, 5)), strides.push_back(pick(0, 3) == 0 ? pick(0, 60) : pick(1, 12));
      reach += (sizes[sizes.rank() - 1] - 1) * strides[strides.rank() - 1];
    }
    const std::int64_t lead = pick(0, 40);
    if (lead + reach < whole.numel()) return whole.as_strided(sizes, strides, lead);
  }
}

TEST(Overlap, TheSearchIsRightForRandomViews) {
  CLUTCH_EACH_DEVICE(device) {
    std::mt19937 random(static_cast<std::uint32_t>(seed()));
    const Tensor floats = zeros({600}, {.device = device});
    // The same memory as elements of another size, from a byte that is none of the first's.
    const Tensor halves(floats.storage(), 2, {900}, {1}, DType::f16);
    int shared = 0, apart = 0, alone = 0, itself = 0;
    for (int i = 0; i < (level() == "smoke" ? 4000 : 60000); ++i) {
      const Tensor a = random_view(floats, random), b = random_view(i % 3 == 0 ? halves : floats, random);
      const bool meets = share_a_byte(a, b), twice = has_shared_elements(a);
      const auto distance = static_cast<std::int64_t>(b.byte_offset()) - static_cast<std::int64_t>(a.byte_offset());
      ASSERT_EQ(detail::overlaps(a, b, distance), meets ? Reached::yes : Reached::no)
          << a.sizes() << a.strides() << a.byte_offset() << ' ' << b.sizes() << b.strides() << b.byte_offset();
      ASSERT_EQ(detail::overlaps(b, a, -distance), meets ? Reached::yes : Reached::no);
      ASSERT_EQ(detail::may_overlap(a, b), meets);
      ASSERT_EQ(detail::overlaps_itself(a), twice ? Reached::yes : Reached::no) << a.sizes() << a.strides();
      ASSERT_EQ(code_of([&] { detail::check_no_self_overlap(a, "test"); }), twice ? ErrorCode::invalid_overlap : ErrorCode::ok) << a.sizes() << a.strides();
      ++(meets ? shared : apart), ++(twice ? itself : alone);
    }
    EXPECT_GT(std::min({shared, apart, alone, itself}), 200) << "all kinds occur";
  }
}

TEST(Overlap, SumsThatAreHardToFindEndTheSearch) {
  // The numbers have no common divisor and fill no range: a subset sum.
  std::vector<detail::SumTerm> terms;
  for (std::int64_t k = 0; k < 40; ++k) terms.push_back({(std::int64_t{1} << 40) + 2 * (std::int64_t{1} << k) + 2, 1});
  EXPECT_EQ(detail::can_reach(terms, 20 * (std::int64_t{1} << 40) + 41), Reached::no) << "an odd number";
  terms.push_back({3, 1});
  EXPECT_EQ(detail::can_reach(terms, 20 * (std::int64_t{1} << 40) + 41), Reached::unknown);
  EXPECT_EQ(detail::can_reach({}, 0), Reached::yes);
  EXPECT_EQ(detail::can_reach({}, 1), Reached::no);
  EXPECT_EQ(detail::can_reach({{7, 0}}, 7), Reached::no) << "a term that is always 0";
}

TEST(Overlap, LargeViewsTakeNoLongSearch) {
  CLUTCH_EACH_DEVICE(device) {
    // Strides of a large tensor without its memory: extents of 2^40 elements.
    const Tensor base = zeros({8}, {.device = device});
    const Dims sizes{1 << 10, 1 << 10, 1 << 10, 512}, strides{1 << 30, 1 << 20, 1 << 10, 2};
    const Tensor even(base.storage(), 0, sizes, strides, DType::f32), odd(base.storage(), 4, sizes, strides, DType::f32);
    EXPECT_EQ(detail::overlaps(even, odd, 4), Reached::no);
    EXPECT_EQ(detail::overlaps(even, even, 8), Reached::yes);
    EXPECT_EQ(detail::overlaps_itself(even), Reached::no);
    const Tensor other_way(base.storage(), 4, {512, 1 << 10}, {2, 1 << 10}, DType::f32);
    EXPECT_EQ(detail::overlaps(even, other_way, 4), Reached::no) << "other sizes and another order";
  }
}

TEST(Overlap, OpsTakeViewsThatLieBetweenEachOther) {
  CLUTCH_EACH_DEVICE(device) {
    auto line = [&](std::int64_t n) { return arange(0, static_cast<double>(n), 1, {.device = device}); };
    // x[..., :p] = x[..., -p:], as circular padding does.
    Tensor x = line(40).reshape({4, 10});
    copy_(x.slice(1, 0, 3), x.slice(1, 7, 10));
    EXPECT_EQ(x.select(0, 2).to_host<float>(), (std::vector<float>{27, 28, 29, 23, 24, 25, 26, 27, 28, 29}));
    EXPECT_EQ(code_of([&] { copy_(x.slice(1, 0, 6), x.slice(1, 4, 10)); }), ErrorCode::invalid_overlap);
    // Even elements from odd ones, and another number of them.
    Tensor y = line(12);
    add_(y.slice(0, 0, 12, 2), y.slice(0, 1, 12, 2));
    EXPECT_EQ(y.to_host<float>(), (std::vector<float>{1, 1, 5, 3, 9, 5, 13, 7, 17, 9, 21, 11}));
    copy_(y.slice(0, 0, 12, 4), y.slice(0, 5, 8));
    EXPECT_EQ(y.to_host<float>(), (std::vector<float>{5, 1, 5, 3, 13, 5, 13, 7, 7, 9, 21, 11}));
    EXPECT_EQ(code_of([&] { copy_(y.slice(0, 0, 12, 4), y.slice(0, 3, 6)); }), ErrorCode::invalid_overlap) << "element 4";
    // Columns of a matrix and another matrix's rows in one buffer; real and imaginary parts.
    Tensor z = line(24).reshape({4, 6});
    mul_out(z.slice(1, 0, 6, 3), z.slice(1, 1, 6, 3), z.slice(1, 2, 6, 3));
    EXPECT_EQ(z.select(0, 1).to_host<float>(), (std::vector<float>{56, 7, 8, 110, 10, 11}));
    uniform_(z.as_strided({3, 2}, {3, 2}, 0));
    EXPECT_EQ(code_of([&] { uniform_(z.as_strided({3, 3}, {3, 2}, 0)); }), ErrorCode::ok) << "0 2 4 3 5 7 6 8 10";
    EXPECT_EQ(code_of([&] { uniform_(z.as_strided({3, 4}, {3, 2}, 0)); }), ErrorCode::invalid_overlap) << "6 twice";
    // Strides of dimensions of size 1 do not count: these are the same elements.
    Tensor same = line(4).as_strided({1, 4}, {99, 1}), as = same.as_strided({1, 4}, {4, 1});
    add_(same, as);
    EXPECT_EQ(as.to_host<float>(), (std::vector<float>{0, 2, 4, 6}));
    // Elements of other sizes meet by bytes.
    const Tensor words = line(8), odd_halves(words.storage(), 2, {8}, {2}, DType::f16), even_halves(words.storage(), 0, {8}, {2}, DType::f16);
    copy_(odd_halves, even_halves);
    EXPECT_EQ(code_of([&] { copy_(odd_halves, words); }), ErrorCode::invalid_overlap);
  }
}

TEST(Overlap, GraphsOfSuchViewsReplay) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    Tensor x = arange(0, 10, 1, {.device = device}, stream);
    Graph graph;
    {
      GraphCapture capture(graph, stream);
      copy_(x.slice(0, 0, 10, 2), x.slice(0, 1, 10, 2), {}, stream);
      add_(x.slice(0, 1, 10, 2), x.slice(0, 0, 10, 2), {}, stream);
    }
    graph.replay(stream), graph.replay(stream);
    EXPECT_EQ(x.to_host<float>(stream), (std::vector<float>{2, 4, 6, 12, 10, 20, 14, 28, 18, 36}));
  }
}

}}  // namespace clutch::testing
