// SPDX-License-Identifier: Apache-2.0
#include "cases/reduce.hpp"

#include "common/reciprocal.h"
#include "ops/reduce_plan.hpp"
#include "support/fixture.hpp"

#include <clutch/pointwise.hpp>

#include <bit>
#include <cmath>
#include <random>

namespace clutch::testing { namespace {

using cases::Operand;
using cases::ReduceCase;

Operand operand(DType dtype, const Dims& sizes, const Dims& strides = {}, std::uint64_t k = 0, bool specials = false) {
  return {dtype, sizes, strides, model::make_values(static_cast<std::size_t>(numel(sizes)), dtype, seed() + k, specials)};
}
Tensor on(const Device& device, const Operand& o, std::vector<Guarded>& memory) {
  return memory.emplace_back(device, o.dtype, o.sizes, o.strides, o.lead, &o.raw).view();
}

std::string run(const Device& device, Reduce op, const Operand& x, const std::vector<int>& dims, const std::string& implementation = {}) {
  std::vector<Guarded> memory;
  memory.reserve(2);
  ReduceOptions options{.implementation = implementation};
  Dims result;
  std::array<bool, kMaxRank> gone{};
  for (int d : dims) gone[static_cast<std::size_t>(d)] = true, options.dims.push_back(d);
  for (int d = 0; d < x.sizes.rank(); ++d)
    if (!gone[static_cast<std::size_t>(d)]) result.push_back(x.sizes[d]);
  if (dims.empty() && x.sizes.rank() > 0) result = x.sizes;
  Tensor in = on(device, x, memory);
  Guarded& out = memory.emplace_back(device, x.dtype, result);
  DType traced = x.dtype == DType::f64 ? DType::f64 : DType::f32;
  reduce_out(out.view(), op, trace([](Expr e) { return e; }, std::array{traced}), std::span(&in, 1), options);
  std::vector<std::uint8_t> want =
      x.dtype == DType::f64 ? ReduceCase::expected<double>(op, x, dims, x.dtype) : ReduceCase::expected<float>(op, x, dims, x.dtype);
  return compare_bits(out.get(), want, x.dtype, !device.traits().denormals);
}

TEST(Reduce, LengthsOpsAndDtypesHaveTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (Reduce op : {Reduce::sum, Reduce::amax, Reduce::mean, Reduce::prod, Reduce::amin}) {
        if (level() == "smoke" && dtype != DType::f32 && op != Reduce::sum) continue;
        for (std::int64_t m : ReduceCase::lengths(level())) {
          if (op == Reduce::prod && m > 100) continue;
          ASSERT_EQ(run(device, op, operand(dtype, {3, m}), {1}), "") << name(dtype) << " rows of " << m << " op " << static_cast<int>(op);
          if (m < 20000) {
            ASSERT_EQ(run(device, op, operand(dtype, {m, 19}), {0}), "") << name(dtype) << " columns of " << m;
          }
        }
      }
    }
  }
}

TEST(Reduce, EveryLayoutHasTheSameBits) {
  const struct {
    const char* name;
    Dims sizes, strides;
    std::vector<int> dims;
  } layouts[] = {
      {"all", {3, 5, 7, 20}, {}, {0, 1, 2, 3}},
      {"inner two", {3, 5, 7, 20}, {}, {2, 3}},
      {"outer two", {3, 5, 7, 20}, {}, {0, 1}},
      {"alternating", {3, 5, 7, 20}, {}, {1, 3}},
      {"alternating outer", {3, 5, 7, 20}, {}, {0, 2}},
      {"transposed rows", {40, 30}, {1, 40}, {0}},
      {"transposed columns", {40, 30}, {1, 40}, {1}},
      {"every second", {40, 30}, {64, 2}, {1}},
      {"one kept", {1, 3000}, {}, {1}},
      {"one reduced", {3000, 1}, {}, {1}},
      {"long columns", {5000, 33}, {40, 1}, {0}},
      {"rank 7", {2, 3, 2, 3, 2, 2, 5}, {}, {1, 3, 5}},
      {"rows that do not join", {3, 5, 41}, {500, 50, 1}, {1, 2}},
      {"long rows that do not join", {2, 31, 1041}, {40000, 1050, 1}, {1, 2}},
      {"short rows that do not join", {2, 1500, 3}, {6000, 4, 1}, {1, 2}},
      {"steps that do not join", {5, 3, 41}, {131, 700, 3}, {0, 2}},
      {"columns that do not join", {37, 41, 29}, {41 * 30, 30, 1}, {0, 1}},
      {"planes that do not join", {9, 17, 300}, {17 * 300 + 13, 300, 1}, {0, 1}},
      {"a transposed matrix", {75, 1000}, {1, 77}, {0, 1}},
      {"a transposed matrix of whole blocks", {75, 2048}, {1, 77}, {0, 1}},
      {"transposed planes of whole blocks", {3, 20, 64, 32}, {30, 1, 6000, 180}, {0, 1, 2, 3}},
      {"three reversed dimensions", {33, 5, 60}, {1, 40, 210}, {0, 1, 2}},
      {"transposed rows longer than a panel's", {20, 2100}, {1, 23}, {0, 1}},
      {"transposed rows of several shares", {210, 4099}, {1, 211}, {0, 1}},
      {"transposed planes of long rows", {3, 67, 4500}, {320000, 1, 71}, {0, 1, 2}},
      {"transposed rows that do not join", {75, 70, 65}, {1, 77 * 66, 77}, {0, 1, 2}},
      {"transposed rows of two results", {2, 81, 2050}, {180000, 1, 83}, {1, 2}},
      {"a transposed matrix of few neighbours", {9, 1000}, {1, 11}, {0, 1}},
      {"channels", {5, 3, 9, 49}, {}, {0, 2}},
      {"columns whose results lie across", {19, 33, 8}, {1, 21, 800}, {1}},
      {"long columns whose results lie across", {18, 2100, 5}, {1, 18, 40000}, {1}},
      {"columns of several strides whose results lie across", {21, 5, 7, 3}, {1, 25, 200, 1500}, {1, 2}},
      {"images", {6, 3, 31, 33}, {}, {0, 2, 3}},
      {"very many rows that do not join", {1200000, 2}, {3, 1}, {0, 1}},
      {"no elements", {4, 3, 0}, {18, 6, 1}, {0, 2}},
      {"no elements of columns", {0, 2, 40}, {80, 41, 1}, {0, 1}},
  };
  CLUTCH_EACH_DEVICE(device) {
    for (const auto& c : layouts)
      for (std::string implementation : {"", "reduce_groups", "reduce_column_groups", "reduce_rows", "reduce_columns", "reduce_buffered", "reduce_strided"}) {
        std::string wrong;
        ErrorCode code = code_of(
            [&] { wrong = run(device, numel(c.sizes) > 0 ? Reduce::sum : Reduce::prod, operand(DType::f32, c.sizes, c.strides), c.dims, implementation); });
        if (code == ErrorCode::not_supported && !implementation.empty()) continue;
        ASSERT_EQ(code, ErrorCode::ok) << c.name;
        ASSERT_EQ(wrong, "") << c.name << " " << implementation;
      }
  }
}

TEST(Reduce, GroupsOfItemsHaveTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // refused
    for (std::int64_t m : {1, 15, 16, 17, 143, 511, 512, 513, 1024, 1025, 2047, 2048, 2049, 5000, 100000}) {
      for (Reduce op : {Reduce::sum, Reduce::mean, Reduce::prod, Reduce::amin, Reduce::amax})
        for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
          if ((dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) || (op == Reduce::prod && m > 200)) continue;
          // By day few programs: tests/cases/reduce.hpp has all dtypes, too.
          if (level() == "smoke" && (op == Reduce::sum ? dtype == DType::f16 || dtype == DType::f64 || (dtype != DType::f32 && m > 2048)
                                                       : dtype != DType::f32 || op == Reduce::mean || op == Reduce::prod || m > 2048))
            continue;
          // More rows than teams of a group.
          const std::int64_t rows = m > 2048 ? 2 : 18;
          ASSERT_EQ(run(device, op, operand(dtype, {rows, m}, {m + 3, 1}), {1}, "reduce_groups"), "")
              << name(dtype) << " " << static_cast<int>(op) << " of " << m;
          if (dtype != DType::f32 || op == Reduce::prod) continue;
          for (const char* implementation : {"reduce_groups", "reduce_column_groups"}) {
            ASSERT_EQ(run(device, op, operand(dtype, {3, m}, {}, 1, true), {1}, implementation), "") << "specials, " << static_cast<int>(op) << " of " << m;
          }
        }
      if (m > (level() == "smoke" ? 2048 : 5000)) continue;
      // Integers, booleans, an input with one element in a row, positions, after; several dimensions are kept.
      const Tensor x = randn({3, 2, m}, {.device = device, .seed = seed()}), w = randn({2, 1}, {.device = device, .seed = seed() + 1});
      const Tensor whole = mul(x, 1000).to(DType::i64), zero = lt(abs(x), 2.5);
      auto same = [&](const char* what, auto call) {
        EXPECT_EQ(call(ReduceOptions{.dims = {2}, .implementation = "reduce_groups"}).to_bytes(),
                  call(ReduceOptions{.dims = {2}, .implementation = "reduce_strided"}).to_bytes())
            << what << " of " << m;
      };
      same("i64", [&](const ReduceOptions& o) { return sum(whole, o); });
      same("any", [&](const ReduceOptions& o) { return any(logical_not(zero), o); });
      if (level() != "smoke") same("all", [&](const ReduceOptions& o) { return all(zero, o); });
      same("places", [&](const ReduceOptions& o) { return argmax(x, o); });
      same("splat", [&](ReduceOptions o) {
        o.after = trace([](Expr s) { return s * 2 + 1; }, std::array{DType::f32});
        return reduce(
            Reduce::sum, [](Expr a, Expr b) { return a * b; }, {x, w}, o);
      });
    }
    EXPECT_EQ(std::signbit(sum(full({40}, -0.0, {.device = device}), {.implementation = "reduce_groups"}).item()), false);
    EXPECT_EQ(sum(zeros({3, 0}, {.device = device}), {.dims = {1}, .implementation = "reduce_groups"}).to_host<float>(), (std::vector<float>{0, 0, 0}));
  }
}

/// The quotients by which groups of items find places of elements: around all multiples that could be off by one, for sizes around powers of two and others.
TEST(Reduce, ReciprocalsGiveExactQuotients) {
  constexpr std::uint32_t kMost = INT32_MAX;
  auto right = [](std::uint32_t index, std::uint32_t size) {
    return detail::offsets_quotient(index, detail::offsets_reciprocal(size), detail::offsets_shift(size)) == index / size;
  };
  auto holds = [&](std::uint32_t size) {
    for (const std::uint32_t index : {0u, 1u, kMost - 1, kMost}) EXPECT_TRUE(right(index, size)) << index << " / " << size;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const std::uint64_t quotient = 1 + kMost / size * i / 199, multiple = quotient * size;
      for (const std::uint64_t index : {multiple - 1, multiple, multiple + 1}) {
        if (index > kMost) continue;
        ASSERT_TRUE(right(static_cast<std::uint32_t>(index), size)) << index << " / " << size;
      }
    }
  };
  for (std::uint32_t size = 2; size < 3000; ++size) holds(size);
  for (int bits = 2; bits < 31; ++bits)
    for (const std::uint32_t size : {(1u << bits) - 1, 1u << bits, (1u << bits) + 1, (3u << bits) / 2 - 1}) holds(size);
  std::mt19937 random(static_cast<unsigned>(seed()));
  for (int i = 0; i < 20000; ++i) holds(static_cast<std::uint32_t>(random() % kMost >> random() % 30 | 2));
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 31, std::uint64_t{1} << 40})
    EXPECT_EQ(detail::offsets_reciprocal(size) + detail::offsets_shift(size), 0u) << size;
}

TEST(Reduce, SeveralDimensionsByGroupsHaveTheModelsBits) {
  std::mt19937 random(static_cast<unsigned>(seed()));
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // refused
    for (int turn = 0; turn < (level() == "smoke" ? 12 : 200); ++turn) {
      auto size = [&](std::uint32_t most) { return static_cast<std::int64_t>(2 + random() % most); };  // one alone joins its neighbours
      const Dims sizes{size(9), size(4), size(70), size(5), size(turn % 3 ? 9 : 90)};
      const std::vector<int> dims = turn % 2 ? std::vector<int>{0, 2, 4} : std::vector<int>{1, 3};
      for (const char* implementation : {"reduce_groups", "reduce_column_groups"})
        ASSERT_EQ(run(device, Reduce::sum, operand(DType::f32, sizes, {}, static_cast<std::uint64_t>(turn)), dims, implementation), "")
            << implementation << " of " << to_string(sizes);
    }
  }
}

TEST(Reduce, NansInfinitiesAndSpecials) {
  CLUTCH_EACH_DEVICE(device) {
    for (Reduce op : {Reduce::sum, Reduce::amin, Reduce::amax})
      for (std::int64_t m : {9, 300}) ASSERT_EQ(run(device, op, operand(DType::f32, {30, m}, {}, 7, true), {1}), "") << static_cast<int>(op);
  }
}

TEST(Reduce, FusedFunctionsBroadcastAndAfter) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = arange(0, 600, 1, {.device = device}).reshape({20, 30}), w = arange(0, 30, 1, {.device = device});
    Tensor dot = reduce(Reduce::sum, [](Expr a, Expr b) { return a * b; }, {x, w}, {.dims = {-1}});
    EXPECT_EQ(dot.sizes(), Dims{20});
    double want = 0;
    for (int j = 0; j < 30; ++j) want += (30.0 * 3 + j) * j;
    EXPECT_EQ(dot.to_host<float>()[3], static_cast<float>(want));
    Tensor rms =
        reduce(Reduce::mean, [](Expr a) { return a * a; }, x,
               {.dims = {0}, .keepdim = true, .dtype = {DType::bf16}, .after = trace([](Expr s) { return sqrt(s + param(1.0)); }, std::array{DType::f32})});
    EXPECT_EQ(rms.sizes(), (Dims{1, 30}));
    EXPECT_EQ(rms.dtype(), DType::bf16);
    double squares = 0;
    for (int i = 0; i < 20; ++i) squares += 900.0 * i * i;
    EXPECT_NEAR(rms.to(DType::f32).to_host<float>()[0], std::sqrt(squares / 20 + 1), 2);
  }
}

TEST(Reduce, DtypesOfResults) {
  CLUTCH_EACH_DEVICE(device) {
    auto make = [&](DType d) { return full({4, 5}, 2, {.dtype = d, .device = device}); };
    EXPECT_EQ(sum(make(DType::f16)).dtype(), DType::f16);
    EXPECT_EQ(sum(make(DType::i8)).dtype(), DType::i64);
    EXPECT_EQ(sum(make(DType::i8)).item(), 40);
    EXPECT_EQ(sum(make(DType::boolean)).item(), 20);
    EXPECT_EQ(prod(make(DType::i32), {.dims = {0}}).to_host<std::int64_t>()[2], 16);
    EXPECT_EQ(mean(make(DType::i64)).dtype(), DType::f32);
    EXPECT_EQ(mean(make(DType::bf16)).dtype(), DType::bf16);
    EXPECT_EQ(amax(make(DType::u8)).dtype(), DType::u8);
    EXPECT_EQ(amin(make(DType::i64)).dtype(), DType::i64);
    EXPECT_EQ(amax(make(DType::boolean)).dtype(), DType::boolean);
    EXPECT_EQ(any(make(DType::f32)).dtype(), DType::boolean);
    EXPECT_EQ(sum(make(DType::f16), {.dtype = {DType::f32}}).dtype(), DType::f32);
    Tensor big = full({3000}, 0x7FFFFFFF, {.dtype = DType::i32, .device = device});
    EXPECT_EQ(sum(big).to_host<std::int64_t>()[0], std::int64_t{3000} * 0x7FFFFFFF);
    Tensor wide = full({5000}, 4e18, {.dtype = DType::i64, .device = device});
    EXPECT_EQ(sum(wide).to_host<std::int64_t>()[0], static_cast<std::int64_t>(std::uint64_t{4000000000000000000} * 5000)) << "wraps";
    EXPECT_EQ(amin(from_host<std::int32_t>({5, -7, 3}, device)).item(), -7);
    EXPECT_EQ(amax(from_host<std::int64_t>({INT64_MIN, INT64_MIN + 5}, device)).to_host<std::int64_t>()[0], INT64_MIN + 5);
  }
}

TEST(Reduce, BooleansOfLongRows) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = zeros({3, 5000}, {.device = device});
    fill_(x.select(0, 1).slice(0, 4321, 4322), -0.5);
    fill_(x.select(0, 2), 1);
    EXPECT_EQ(any(x, {.dims = {1}}).to_bytes(), (std::vector<std::uint8_t>{0, 1, 1}));
    EXPECT_EQ(all(x, {.dims = {1}}).to_bytes(), (std::vector<std::uint8_t>{0, 0, 1}));
    EXPECT_EQ(any(x.mT(), {.dims = {0}}).to_bytes(), (std::vector<std::uint8_t>{0, 1, 1}));
    EXPECT_EQ(all(logical_not(x.mT()), {.dims = {0}}).to_bytes(), (std::vector<std::uint8_t>{1, 0, 0}));
    EXPECT_EQ(any(full({2}, std::nan(""), {.device = device})).item(), 1);
  }
}

TEST(Reduce, NothingToReduce) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = zeros({3, 0}, {.device = device});
    EXPECT_EQ(sum(x, {.dims = {1}}).to_host<float>(), (std::vector<float>{0, 0, 0}));
    EXPECT_EQ(prod(x, {.dims = {1}}).to_host<float>(), (std::vector<float>{1, 1, 1}));
    EXPECT_EQ(all(x, {.dims = {1}}).to_bytes(), (std::vector<std::uint8_t>{1, 1, 1}));
    EXPECT_EQ(any(x, {.dims = {1}}).to_bytes(), (std::vector<std::uint8_t>{0, 0, 0}));
    EXPECT_TRUE(std::isnan(mean(x).item()));
    EXPECT_EQ(code_of([&] { amax(x, {.dims = {1}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(sum(x, {.dims = {0}}).numel(), 0);
    EXPECT_EQ(sum(full({}, 3, {.device = device})).item(), 3);
    const ReduceOptions rows{.dims = {1}}, kept{.dims = {1}, .keepdim = true};
    EXPECT_EQ(logsumexp(x, rows).to_host<float>(), (std::vector<float>(3, -INFINITY)));
    EXPECT_EQ(logsumexp(x, kept).sizes(), (Dims{3, 1}));
    EXPECT_EQ(logsumexp(x).item(), -INFINITY);
    EXPECT_EQ(logsumexp(x.to(DType::i32)).item(), -INFINITY);
    EXPECT_EQ(logsumexp(x, {.dims = {0}}).sizes(), Dims{0});
    for (float v : var(x, 1, rows).to_host<float>()) EXPECT_TRUE(std::isnan(v));
    EXPECT_EQ(norm(x, 2, rows).to_host<float>(), (std::vector<float>{0, 0, 0}));
    EXPECT_EQ(norm(x, 0, rows).to_host<float>(), (std::vector<float>{0, 0, 0}));
    for (double p : {-2.0, double{INFINITY}, -double{INFINITY}})
      for (const ReduceOptions& o : {ReduceOptions{}, rows}) EXPECT_EQ(code_of([&] { norm(x, p, o); }), ErrorCode::invalid_argument) << "nothing is smallest";
    EXPECT_EQ(norm(x, -2, {.dims = {0}}).sizes(), Dims{0});
    for (auto place : {argmin, argmax}) {
      EXPECT_EQ(code_of([&] { place(x, rows, {}); }), ErrorCode::invalid_argument);
      EXPECT_EQ(place(x, {.dims = {0}}, {}).sizes(), Dims{0});
    }
    EXPECT_EQ(sum_to(x, {}).item(), 0);
  }
}

TEST(Reduce, PlacesOfExtremesAndPositions) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = floor(mul(randn({30, 50, 7}, {.device = device, .seed = 9}), 2.0));  // with ties
    std::vector<float> host = x.to_host<float>();
    auto at = [&](std::size_t i, std::size_t j, std::size_t k) { return host[(i * 50 + j) * 7 + k]; };
    const std::size_t sizes[] = {30, 50, 7};
    for (int dim : {0, 1, 2}) {
      for (std::string implementation : {"", "reduce_strided"}) {
        std::vector<std::int64_t> most = argmax(x, {.dims = {dim}, .implementation = implementation}).to_host<std::int64_t>(),
                                  least = argmin(x, {.dims = {dim - 3}}).to_host<std::int64_t>();
        std::size_t n = 0;
        for (std::size_t a = 0; a < (dim == 0 ? 1 : 30); ++a)
          for (std::size_t b = 0; b < (dim == 1 ? 1 : 50); ++b)
            for (std::size_t c = 0; c < (dim == 2 ? 1 : 7); ++c, ++n) {
              std::size_t high = 0, low = 0;
              auto value = [&](std::size_t p) { return at(dim == 0 ? p : a, dim == 1 ? p : b, dim == 2 ? p : c); };
              for (std::size_t p = 1; p < sizes[dim]; ++p) {
                if (value(p) > value(high)) high = p;
                if (value(p) < value(low)) low = p;
              }
              ASSERT_EQ(most[n], static_cast<std::int64_t>(high)) << dim << " " << implementation;
              ASSERT_EQ(least[n], static_cast<std::int64_t>(low)) << dim;
            }
      }
    }
    Tensor flat = x.mT();  // not contiguous
    std::vector<float> transposed = flat.contiguous().to_host<float>();
    EXPECT_EQ(argmax(flat).to_host<std::int64_t>()[0], std::max_element(transposed.begin(), transposed.end()) - transposed.begin());
    EXPECT_EQ(argmax(flat, {.keepdim = true}).sizes(), (Dims{1, 1, 1}));
    Tensor big = zeros({70001}, {.device = device});
    fill_(big.slice(0, 60007, 60009), 2);
    EXPECT_EQ(argmax(big).item(), 60007);
    fill_(big.slice(0, 65536, 65537), std::nan(""));
    EXPECT_EQ(argmax(big).item(), 65536) << "NaN is found";
    EXPECT_EQ(argmin(big).item(), 65536);
    EXPECT_EQ(argmin(from_host<std::int64_t>({5, -7, -7}, device)).item(), 1);
    EXPECT_EQ(argmax(from_host<std::uint8_t>({0, 9, 9}, device).to(DType::boolean)).item(), 1);
    // Positions count in the broadcast shape, kept dimensions too.
    Tensor ones = full({4, 6}, 1, {.device = device});
    auto f = [](Expr a) { return a * cast(position(0) * 10 + position(1), DType::f32); };
    EXPECT_EQ(reduce(Reduce::sum, f, ones, {.dims = {1}}).to_host<float>(), (std::vector<float>{15, 75, 135, 195}));
    EXPECT_EQ(reduce(Reduce::sum, f, ones, {.dims = {0}}).to_host<float>(), (std::vector<float>{60, 64, 68, 72, 76, 80}));
    EXPECT_EQ(reduce(Reduce::sum, f, ones).item(), 420);
    EXPECT_EQ(reduce(Reduce::sum, f, full({9, 30}, 1, {.device = device}), {.dims = {0}}).to_host<float>()[29], 360 + 29 * 9);
  }
}

TEST(Reduce, ZerosOfTwoSignsGiveTheLastOne) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::vector<float> pair : {std::vector<float>{0.0f, -0.0f}, std::vector<float>{-0.0f, 0.0f}}) {
      const bool last = std::signbit(pair[1]);
      Tensor x = from_host<float>({pair[0], pair[1]}, device), columns = x.unsqueeze(1).expand({2, 16});
      Tensor at = zeros({1}, {.dtype = DType::i64, .device = device});
      for (auto extreme : {amin, amax}) {
        EXPECT_EQ(std::signbit(extreme(x, {}, {}).item()), last);
        EXPECT_EQ(std::signbit(extreme(x, {.implementation = "reduce_strided"}, {}).item()), last);
        for (float v : extreme(columns, {.dims = {0}}, {}).to_host<float>()) EXPECT_EQ(std::signbit(v), last);
      }
      for (Reduce reduce : {Reduce::amin, Reduce::amax}) {
        EXPECT_EQ(std::signbit(segment_reduce(x, from_host<std::int64_t>({0, 2}, device), {.reduce = reduce}).item()), last);
        EXPECT_EQ(std::signbit(scatter_reduce(x.slice(0, 0, 1), 0, at, x.slice(0, 1, 2), {.reduce = reduce}).item()), last);
      }
    }
    // What means of integers do not do: wrap.
    Tensor large = full({3}, 100, {.dtype = DType::i8, .device = device}), wide = full({3}, 4e18, {.dtype = DType::i64, .device = device});
    EXPECT_EQ(mean(large).item(), 100);
    EXPECT_EQ(mean(wide).item(), static_cast<double>(4e18f));
    Tensor same = zeros({3}, {.dtype = DType::i64, .device = device}), none = zeros({1}, {.dtype = DType::i8, .device = device});
    EXPECT_EQ(scatter_reduce(none, 0, same, large, {.reduce = Reduce::mean, .include_self = false}).item(), 100);
    EXPECT_EQ(scatter_reduce(none, 0, same, large).item(), 44);
    EXPECT_EQ(segment_reduce(from_host<float>({1, 2}, device), from_host<std::int64_t>({0, 2}, device), {.reduce = Reduce::mean, .initial = 0.5}).item(), 1.75);
  }
}

TEST(Reduce, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = zeros({3, 4}, {.device = device});
    EXPECT_EQ(code_of([&] { sum(x, {.dims = {2}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sum(x, {.dims = {0, -2}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { prod(x.to(DType::c64)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sum(x, {.dtype = {DType::c64}}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sum(Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sum(x, {.implementation = "reduce_best"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                reduce(
                    Reduce::sum, [](Expr a) { return a * position(2); }, x);
              }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { argmax(x, {.dims = {0, 1}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { argmin(zeros({0}, {.device = device})); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { reduce(Reduce::sum, [](Expr a, Expr b) { return a * b; }, {x, zeros({5}, {.device = device})}); }), ErrorCode::invalid_shape);
    ExprFunction same = trace([](Expr a) { return a; }, std::array{DType::f32});
    EXPECT_EQ(code_of([&] { reduce_out(zeros({4}, {.device = device}), Reduce::sum, same, std::span(&x, 1), {.dims = {1}}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { reduce_out(x.select(1, 0), Reduce::sum, same, std::span(&x, 1), {.dims = {1}}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { sum_to(x, {5}); }), ErrorCode::invalid_shape);
  }
}

TEST(Reduce, VarianceNormAndLogsumexpAreAccurate) {
  CLUTCH_EACH_DEVICE(device) {
    const Dims sizes{7, 3000};
    Operand o = operand(DType::f32, sizes);
    std::vector<Guarded> memory;
    memory.reserve(1);
    Tensor x = on(device, o, memory), shifted = add(x, 1000);
    std::vector<float> variance = var(x, 1, {.dims = {1}}).to_host<float>(), moved = var(shifted, 0, {.dims = {1}}).to_host<float>(),
                       length = norm(x, 2, {.dims = {1}}).to_host<float>(), cubic = norm(x, 3, {.dims = {1}}).to_host<float>(),
                       top = norm(x, INFINITY, {.dims = {1}}).to_host<float>(), lse = logsumexp(x, {.dims = {1}}).to_host<float>(),
                       high = logsumexp(mul(x, 100), {.dims = {1}}).to_host<float>();
    std::vector<float> held = shifted.to_host<float>();
    for (std::size_t r = 0; r < 7; ++r) {
      long double s = 0, s2 = 0, hs = 0, hq = 0, p2 = 0, p3 = 0, biggest = 0, e = 0, most = -1e30L, e100 = 0;
      auto at = [&](std::size_t j) { return static_cast<long double>(model::value_at(o.raw.data(), r * 3000 + j, DType::f32)); };
      for (std::size_t j = 0; j < 3000; ++j) s += at(j), hs += held[r * 3000 + j], most = std::max(most, at(j) * 100);
      for (std::size_t j = 0; j < 3000; ++j) {
        long double v = at(j), h = held[r * 3000 + j];
        s2 += (v - s / 3000) * (v - s / 3000), hq += (h - hs / 3000) * (h - hs / 3000);
        p2 += v * v, p3 += std::fabs(v) * v * v, biggest = std::max(biggest, std::fabs(v));
        e += std::exp(v), e100 += std::exp(100 * v - most);
      }
      EXPECT_NEAR(variance[r], static_cast<double>(s2 / 2999), 1e-5 * static_cast<double>(s2 / 2999));
      EXPECT_NEAR(moved[r], static_cast<double>(hq / 3000), 1e-5 * static_cast<double>(hq / 3000)) << "two passes do not cancel";
      EXPECT_NEAR(length[r], static_cast<double>(std::sqrt(p2)), 1e-5 * static_cast<double>(std::sqrt(p2)));
      EXPECT_NEAR(cubic[r], static_cast<double>(std::cbrt(p3)), 1e-5 * static_cast<double>(std::cbrt(p3)));
      EXPECT_EQ(top[r], static_cast<float>(biggest));
      EXPECT_NEAR(lse[r], static_cast<double>(std::log(e)), 2e-6 * static_cast<double>(std::log(e)));
      EXPECT_NEAR(high[r], static_cast<double>(std::log(e100) + most), 1e-5 * static_cast<double>(std::fabs(most)));
    }
    const float inf = INFINITY;
    EXPECT_EQ(logsumexp(from_host<float>({-inf, -inf}, device)).item(), -INFINITY);
    EXPECT_EQ(logsumexp(from_host<float>({inf, 1}, device)).item(), INFINITY);
    // Differences of integers exceed them.
    EXPECT_EQ(logsumexp(from_host<std::int32_t>({INT32_MIN, 1}, device)).item(), 1);
    EXPECT_EQ(logsumexp(from_host<std::int64_t>({INT64_MIN, 1}, device)).item(), 1);
    EXPECT_EQ(logsumexp(from_host<std::int8_t>({-128, 127}, device)).item(), 127);
    EXPECT_NEAR(logsumexp(from_host<float>({1, 1}, device), {.after = trace([](Expr v) { return v * 2; }, std::array{DType::f32})}).item(),
                2 + 2 * std::log(2.0), 1e-6);
    EXPECT_EQ(norm(from_host<float>({0, 3, -0.0f, 2}, device), 0).item(), 2);
    EXPECT_EQ(var(from_host<float>({1, 2, 3, 4}, device)).item(), static_cast<double>(5.0f / 3.0f));
    EXPECT_EQ(norm(from_host<std::int32_t>({3, -4}, device)).item(), 5);
  }
}

TEST(Reduce, PagesOfColumnsHaveTheBitsOfTheReference) {
  CLUTCH_EACH_DEVICE(device) {
    // Wide panels, whole ones and a part with a tail, with one block and with several.
    for (const Dims& sizes : {Dims{8, 70, 1100}, Dims{1, 9000, 1030}})
      for (DType dtype : {DType::f32, DType::bf16}) {
        if (sizes[1] > 8000 && dtype != DType::f32) continue;
        Tensor x = randn(sizes, {.device = device, .seed = 3}).to(dtype), scale = randn({sizes[2]}, {.device = device, .seed = 4});
        for (Reduce op : {Reduce::sum, Reduce::amax}) {
          auto with = [&](const std::string& implementation) {
            return reduce(op, [](Expr a, Expr b) { return a * b; }, {x, scale}, {.dims = {1}, .implementation = implementation});
          };
          std::vector<std::uint8_t> want = with("reduce_strided").to_bytes();
          for (const char* implementation : {"reduce_columns", "reduce_column_groups"}) {
            if (implementation != std::string_view("reduce_columns") && known_bug(device, "loops_end_early")) continue;  // refused
            EXPECT_EQ(with(implementation).to_bytes(), want) << implementation << ", " << name(dtype) << " of " << to_string(sizes);
          }
          EXPECT_EQ(with("").to_bytes(), want);
        }
      }
  }
}

TEST(Reduce, NaNIsOneInEveryLayout) {
  CLUTCH_EACH_DEVICE(device) {
    // Of either sign and with payloads, at the begin, in the middle, in a tail.
    std::vector<float> values(5 * 1030, 1);
    values[3] = std::bit_cast<float>(0xFFC12345u), values[1030 + 700] = std::bit_cast<float>(0x7FC00077u),
    values[2 * 1030 + 1029] = std::bit_cast<float>(0xFFFFFFFFu);
    Tensor x = from_host(values, {5, 1030}, device), transposed = x.mT().contiguous();
    for (auto extreme : {amax, amin}) {
      std::vector<std::uint8_t> want = extreme(x, {.dims = {1}, .implementation = "reduce_strided"}, {}).to_bytes();
      EXPECT_EQ(extreme(x, {.dims = {1}, .implementation = "reduce_rows"}, {}).to_bytes(), want);
      if (!known_bug(device, "loops_end_early")) {
        EXPECT_EQ(extreme(x, {.dims = {1}, .implementation = "reduce_groups"}, {}).to_bytes(), want);
      }
      EXPECT_EQ(extreme(transposed, {.dims = {0}}, {}).to_bytes(), want);
      std::vector<float> got = extreme(x, {.dims = {1}}, {}).to_host<float>();
      for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(std::bit_cast<std::uint32_t>(got[i]), i < 3 ? 0x7FC00000u : 0x3F800000u) << i;
      if (known_bug(device, "loops_end_early")) continue;  // refuses groups
      // Columns of groups of items are at least 8.
      std::vector<float> twice(values);
      twice.insert(twice.end(), values.begin(), values.end());
      const Tensor ten = from_host(twice, {10, 1030}, device).mT().contiguous();
      EXPECT_EQ(extreme(ten, {.dims = {0}, .implementation = "reduce_column_groups"}, {}).to_bytes(),
                extreme(ten, {.dims = {0}, .implementation = "reduce_strided"}, {}).to_bytes());
    }
  }
}

TEST(Reduce, NearRowsHaveTheBitsOfTwoReductions) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      Tensor x = randn({70, 4, 300}, {.device = device, .seed = 3}).to(dtype);
      ExprFunction root = trace([](Expr a) { return sqrt(a); }, std::array{DType::f32});
      for (const Dims& dims : {Dims{-1}, Dims{1, 2}})
        for (bool keep : {false, true}) {
          ReduceOptions near{.dims = dims, .keepdim = keep}, apart{.dims = dims, .keepdim = keep, .implementation = "reduce_rows"};
          Tensor got = var(x, 1, near);
          EXPECT_EQ(got.sizes(), var(x, 1, apart).sizes());
          EXPECT_EQ(got.to_bytes(), var(x, 1, apart).to_bytes());
          near.after = apart.after = root;
          EXPECT_EQ(var(x, 0, near).to_bytes(), var(x, 0, apart).to_bytes());
          near.after = apart.after = {};
          EXPECT_EQ(logsumexp(x, near).sizes(), got.sizes());
          EXPECT_EQ(logsumexp(x, near).to_bytes(), logsumexp(x.transpose(0, 1).clone().transpose(0, 1), {.dims = dims, .keepdim = keep}).to_bytes());
        }
    }
    // An infinite maximum, and NaN.
    Tensor x = zeros({128, 600}, {.device = device});
    fill_(x.slice(0, 0, 1), -INFINITY);
    fill_(x.slice(0, 1, 2), INFINITY);
    fill_(x.slice(0, 2, 3).slice(1, 5, 6), NAN);
    std::vector<float> got = logsumexp(x, {.dims = {1}}).to_host<float>();
    EXPECT_EQ(got[0], -INFINITY);
    EXPECT_EQ(got[1], INFINITY);
    EXPECT_TRUE(std::isnan(got[2]));
    EXPECT_NEAR(got[3], std::log(600.0), 1e-6);
  }
}

TEST(Reduce, ErrorStaysBelowTheStatedBound) {
  CLUTCH_EACH_DEVICE(device) {
    const std::int64_t n = level() == "nightly" ? 1 << 24 : 1 << 18;
    Tensor x = rand({n}, {.device = device, .seed = 3});
    std::vector<float> host = x.to_host<float>();
    long double exact = 0;
    for (float v : host) exact += static_cast<long double>(v);
    double bound = (38 * std::ceil(std::log(static_cast<double>(n)) / std::log(2048.0)) + 1) * 0x1p-24 * static_cast<double>(exact);
    EXPECT_LE(std::fabs(sum(x).item() - static_cast<double>(exact)), bound);
  }
}

TEST(Reduce, BackwardOfMap) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = randn({6, 5}, {.device = device, .seed = 1}), w = randn({5}, {.device = device, .seed = 2}), g = randn({6, 5}, {.device = device, .seed = 3});
    auto f = [](Expr a, Expr b) { return tanh(a * b) + b; };
    std::vector<Tensor> grads = map_backward({g}, f, {x, w});
    ASSERT_EQ(grads.size(), 2u);
    EXPECT_EQ(grads[1].sizes(), Dims{5});
    std::vector<float> hx = x.to_host<float>(), hw = w.to_host<float>(), hg = g.to_host<float>(), gx = grads[0].to_host<float>(),
                       gw = grads[1].to_host<float>();
    std::vector<double> want(5);
    for (std::size_t i = 0; i < 30; ++i) {
      double t = std::tanh(static_cast<double>(hx[i]) * static_cast<double>(hw[i % 5])), d = (1 - t * t) * static_cast<double>(hg[i]);
      EXPECT_NEAR(gx[i], d * static_cast<double>(hw[i % 5]), 1e-6);
      want[i % 5] += d * static_cast<double>(hx[i]) + static_cast<double>(hg[i]);
    }
    for (std::size_t j = 0; j < 5; ++j) EXPECT_NEAR(gw[j], want[j], 1e-5);
    Tensor h = x.to(DType::bf16);
    std::vector<Tensor> low = map_backward({g}, f, {h, w});
    EXPECT_EQ(low[0].dtype(), DType::bf16);
    EXPECT_EQ(low[1].dtype(), DType::f32);
    EXPECT_EQ(code_of([&] { map_backward({g, g}, f, {x, w}); }), ErrorCode::invalid_argument);
  }
}

TEST(Reduce, ShapesOfAClassBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    auto run_on = [&](const Dims& sizes) { sum(full(sizes, 1, {.device = device}), {.dims = {-1}}); };
    for (std::int64_t m : {5, 100, 5000}) run_on({4, m});
    auto before = build_counters();
    for (const Dims& sizes : {Dims{1, 1}, Dims{70, 9}, Dims{3, 100000}, Dims{2, 3, 4, 5}}) run_on(sizes);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

TEST(Reduce, SelectionByTraitsAlone) {
  DeviceTraits cpu = wide_cpu();
  detail::ReduceProblem problem{.function = 1};
  EXPECT_EQ(detail::select(cpu, problem).entry, "reduce_rows");
  problem.layout = detail::ReduceLayout::columns;
  EXPECT_EQ(detail::select(cpu, problem).entry, "reduce_columns");
  problem.layout = detail::ReduceLayout::strided;
  EXPECT_EQ(detail::select(cpu, problem).entry, "reduce_strided");
  for (auto vectors : {detail::ReduceVectors::runs, detail::ReduceVectors::panels, detail::ReduceVectors::strips}) {
    problem.vectors = vectors;
    EXPECT_EQ(detail::select(cpu, problem).entry, "reduce_buffered");
  }
  problem.vectors = detail::ReduceVectors::columns;
  EXPECT_EQ(detail::select(cpu, problem).entry, "reduce_columns");
  cpu.fp64 = false, problem.types.has_f64 = true;
  EXPECT_EQ(code_of([&] { detail::select(cpu, problem); }), ErrorCode::not_supported);
  // Groups of several items.
  DeviceTraits gpu{.type = DeviceType::gpu, .max_work_group = 1024, .local_bytes = 48 << 10};
  gpu.fma_exact = gpu.divide_exact = gpu.sqrt_exact = true;
  const detail::ReduceProblem rows{.function = 1};
  detail::KernelPlan plan = detail::select(gpu, rows);
  EXPECT_EQ(plan.entry, "reduce_groups");
  EXPECT_EQ(plan.tuning.width, 1);
  EXPECT_EQ(plan.tuning.local, 256u);
  detail::ReduceProblem columns = rows;
  columns.layout = detail::ReduceLayout::columns;
  EXPECT_EQ(detail::select(gpu, columns).entry, "reduce_column_groups");
  columns.layout = detail::ReduceLayout::strided, columns.vectors = detail::ReduceVectors::columns;
  EXPECT_EQ(detail::select(gpu, columns).entry, "reduce_column_groups");
  for (auto vectors : {detail::ReduceVectors::none, detail::ReduceVectors::runs, detail::ReduceVectors::panels, detail::ReduceVectors::strips}) {
    columns.vectors = vectors;
    EXPECT_EQ(detail::select(gpu, columns).entry, "reduce_groups");
  }
  EXPECT_EQ(detail::select(gpu, columns, "reduce_buffered").entry, "reduce_buffered");
  detail::ReduceProblem few = rows;
  few.short_rows = true;
  EXPECT_EQ(detail::select(gpu, few).entry, "reduce_column_groups");
  few.layout = detail::ReduceLayout::strided;
  EXPECT_EQ(detail::select(gpu, few).entry, "reduce_column_groups");
  few.layout = detail::ReduceLayout::rows;
  EXPECT_EQ(detail::select(gpu, few, "reduce_groups").entry, "reduce_groups");
  gpu.max_work_group = 100;
  EXPECT_EQ(detail::select(gpu, rows).tuning.local, 64u);
  gpu.max_work_group = 32;
  EXPECT_EQ(detail::select(gpu, rows).entry, "reduce_rows");
  EXPECT_NE(message_of([&] { detail::select(gpu, rows, "reduce_groups"); }).find("needs groups of 64 items, the device has at most 32"), std::string::npos);
  gpu.max_work_group = 64, gpu.local_bytes = 512;
  EXPECT_NE(message_of([&] { detail::select(gpu, rows, "reduce_groups"); }).find("needs 9216 bytes of local memory, the device has 512"), std::string::npos);
  // The first reason is the one that no smaller problem mends.
  detail::ReduceProblem wide = rows;
  wide.types.has_f64 = true;
  EXPECT_NE(message_of([&] { detail::select(gpu, wide, "reduce_groups"); }).find("fp64"), std::string::npos);
  EXPECT_NE(message_of([&] { detail::select(wide_cpu(), rows, "reduce_rowz"); }).find("reduce_groups"), std::string::npos);
}

}}  // namespace clutch::testing
