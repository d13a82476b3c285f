// SPDX-License-Identifier: Apache-2.0
// Collectives over ranks that are threads of this process, or, under mpirun, processes: bits, order, errors.
#include "dist/flight_analysis.hpp"
#include "dist/flight_dump.hpp"
#include "dist/ranks.hpp"

#include <unistd.h>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <numeric>
#include <random>
#include <type_traits>

namespace clutch::testing { namespace {

using namespace dist;

const std::vector<int> kRanks{1, 2, 3, 4, 5, 8, 9};

/// f.operator()<T>(dtype) for each C++ type of a dtype that reductions take.
template <class F>
void for_types(F&& f) {
  f.template operator()<float>(), f.template operator()<double>(), f.template operator()<float16>(), f.template operator()<bfloat16>();
  f.template operator()<float8_e4m3fn>(), f.template operator()<float8<DType::f8e5m2>>();
  f.template operator()<std::int8_t>(), f.template operator()<std::int16_t>(), f.template operator()<std::int32_t>(), f.template operator()<std::int64_t>();
  f.template operator()<std::uint8_t>(), f.template operator()<std::uint16_t>(), f.template operator()<std::uint32_t>(), f.template operator()<std::uint64_t>();
  f.template operator()<bool>(), f.template operator()<std::complex<float>>(), f.template operator()<std::complex<double>>();
}

template <class T>
constexpr bool kSmallFloat = std::is_class_v<T> && !std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>;
template <class T>
constexpr bool kIsComplex = std::is_class_v<T> && !kSmallFloat<T>;

/// Elements of a rank's tensor, the same ones on whatever rank they are asked for. One in twenty is special.
template <class T>
std::vector<T> numbers(int rank, std::size_t n, unsigned salt) {
  std::mt19937 random(1000U * static_cast<unsigned>(rank) + salt);
  std::uniform_real_distribution<double> some(-2, 2);
  std::vector<T> result;
  const double specials[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-7, -6e-8, 60000};
  for (std::size_t i = 0; i < n; ++i) {
    const double x = random() % 20 == 0 ? specials[random() % 8] : some(random);
    const std::uint64_t bits = static_cast<std::uint64_t>(random()) << 32 | random();
    if constexpr (std::is_same_v<T, bool>)
      result.push_back((bits & 1) != 0);
    else if constexpr (std::is_integral_v<T>)
      result.push_back(static_cast<T>(bits));
    else if constexpr (kIsComplex<T>)
      result.push_back({static_cast<typename T::value_type>(some(random)), static_cast<typename T::value_type>(some(random))});
    else
      result.push_back(static_cast<T>(x));
  }
  return result;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values, const Dims& sizes) {
  std::vector<std::uint8_t> raw;
  for (const T& x : values) {
    std::array<std::uint8_t, sizeof(T)> bytes;
    const T copy = x;
    std::memcpy(bytes.data(), &copy, sizeof(T));
    raw.insert(raw.end(), bytes.begin(), bytes.end());
  }
  return from_bytes(raw.data(), raw.size(), sizes, {.dtype = dtype_of<T>});
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  const std::vector<std::uint8_t> raw = tensor.to_bytes();
  std::vector<T> values;
  for (std::size_t i = 0; i < raw.size() / sizeof(T); ++i) {
    T x;
    std::memcpy(&x, raw.data() + i * sizeof(T), sizeof(T));
    values.push_back(x);
  }
  return values;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  auto is_nan = [](auto x) {
    if constexpr (std::is_floating_point_v<decltype(x)>) return std::isnan(x);
    return false;
  };
  if constexpr (kSmallFloat<T>) {
    return a.bits == b.bits || (std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b)));
  } else if constexpr (kIsComplex<T>) {
    return same_bits(a.real(), b.real()) && same_bits(a.imag(), b.imag());
  } else {
    using Bytes = std::array<std::byte, sizeof(T)>;
    return std::bit_cast<Bytes>(a) == std::bit_cast<Bytes>(b) || (is_nan(a) && is_nan(b));
  }
}

/// What a number is computed in.
template <class T>
auto wide(const T& x, ReduceOp op) {
  if constexpr (kSmallFloat<T>)
    return static_cast<float>(x);
  else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return op == ReduceOp::avg && sizeof(T) < 8 ? static_cast<long long>(x) : static_cast<long long>(static_cast<std::uint64_t>(x));
  else
    return x;
}

template <class W>
W combined(ReduceOp op, W a, W b) {
  if constexpr (std::is_same_v<W, bool>) {
    if (op == ReduceOp::bxor) return a != b;
    return op == ReduceOp::prod || op == ReduceOp::min || op == ReduceOp::band ? a && b : a || b;
  } else if constexpr (kIsComplex<W>) {
    return op == ReduceOp::prod ? W(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()) : a + b;
  } else if constexpr (std::is_floating_point_v<W>) {
    switch (op) {
      case ReduceOp::prod: return a * b;
      case ReduceOp::min: return std::isnan(a) || a < b ? a : b;
      case ReduceOp::max: return std::isnan(a) || a > b ? a : b;
      default: return a + b;
    }
  } else {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    switch (op) {
      case ReduceOp::prod: return std::bit_cast<W>(x * y);
      case ReduceOp::band: return std::bit_cast<W>(x & y);
      case ReduceOp::bor: return std::bit_cast<W>(x | y);
      case ReduceOp::bxor: return std::bit_cast<W>(x ^ y);
      default: return std::bit_cast<W>(x + y);
    }
  }
}

/// The documented reduction of one element of all ranks: halves of a power of two and of the rest, lower ranks on the left.
template <class T>
T reduced(const std::vector<T>& parts, ReduceOp op, double factor) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    if (op == ReduceOp::min || op == ReduceOp::max)
      return op == ReduceOp::min ? *std::min_element(parts.begin(), parts.end()) : *std::max_element(parts.begin(), parts.end());
  using W = decltype(wide(T{}, op));
  auto number = [&](std::size_t i) {
    W x = wide(parts[i], op);
    if constexpr (std::is_floating_point_v<W>)
      if (op == ReduceOp::premul_sum) x *= static_cast<W>(factor);
    if constexpr (kIsComplex<W>)
      if (op == ReduceOp::premul_sum) x = {x.real() * static_cast<typename W::value_type>(factor), x.imag() * static_cast<typename W::value_type>(factor)};
    return x;
  };
  std::function<W(std::size_t, std::size_t)> sum = [&](std::size_t first, std::size_t count) -> W {
    if (count == 1) return number(first);
    std::size_t left = 1;
    while (2 * left < count) left *= 2;
    return combined(op, sum(first, left), sum(first + left, count - left));
  };
  W all = sum(0, parts.size());
  if (op == ReduceOp::avg) {
    const auto n = static_cast<double>(parts.size());
    if constexpr (std::is_same_v<T, std::uint64_t>)
      return static_cast<std::uint64_t>(all) / parts.size();
    else if constexpr (std::is_integral_v<W>)
      all = static_cast<W>(all / static_cast<W>(parts.size()));
    else if constexpr (kIsComplex<W>)
      all = {all.real() / static_cast<typename W::value_type>(n), all.imag() / static_cast<typename W::value_type>(n)};
    else
      all /= static_cast<W>(n);
  }
  return static_cast<T>(all);
}

template <class T>
bool takes(ReduceOp op) {
  const bool is_whole = std::is_integral_v<T>, is_bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  if (is_bitwise) return is_whole;
  if (op == ReduceOp::min || op == ReduceOp::max) return !kIsComplex<T>;
  if (op == ReduceOp::premul_sum) return !is_whole;
  return op != ReduceOp::avg || !std::is_same_v<T, bool>;
}

constexpr ReduceOp kOps[] = {ReduceOp::sum,  ReduceOp::avg, ReduceOp::prod, ReduceOp::min,       ReduceOp::max,
                             ReduceOp::band, ReduceOp::bor, ReduceOp::bxor, ReduceOp::premul_sum};

bool does(Algorithm algorithm, int ranks) { return algorithm != Algorithm::halving || std::has_single_bit(static_cast<unsigned>(ranks)); }

template <class T>
std::vector<T> reduced_of_all(int ranks, std::size_t n, unsigned salt, ReduceOp op, double factor) {
  std::vector<std::vector<T>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(numbers<T>(r, n, salt));
  std::vector<T> wanted;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<T> parts;
    for (const std::vector<T>& of : all) parts.push_back(of[i]);
    wanted.push_back(reduced(parts, op, factor));
  }
  return wanted;
}

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(same_bits<T>(got[i], wanted[i])) << "element " << i;
}

TEST(Collectives, AllReduceGivesTheDocumentedBitsForEachDtypeAndOp) {
  for_ranks({1, 2, 3, 4, 5, 8}, [](const Group& g) {
    unsigned salt = 0;
    for_types([&]<class T>() {
      for (const ReduceOp op : kOps) {
        ++salt;
        SCOPED_TRACE(std::string(name(dtype_of<T>)) + " " + std::string(name(op)));
        constexpr std::size_t kN = 600;
        const Tensor x = tensor_of(numbers<T>(g.rank(), kN, salt), {kN});
        if (!takes<T>(op)) {
          EXPECT_EQ(code_of([&] { g.all_reduce_(x, {.op = op}); }), ErrorCode::invalid_dtype);
          continue;
        }
        const std::vector<T> wanted = reduced_of_all<T>(g.size(), kN, salt, op, 0.3);
        for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::one_shot, Algorithm::direct, Algorithm::tree, Algorithm::halving}) {
          if (!does(algorithm, g.size())) continue;
          const Tensor out = empty({kN}, {.dtype = dtype_of<T>});
          g.all_reduce_out(out, x, {.op = op, .factor = 0.3, .algorithm = algorithm});
          expect_same(values_of<T>(out), wanted);
        }
      }
    });
  });
}

TEST(Collectives, SizesStridesAndPlaces) {
  for_ranks(kRanks, [](const Group& g) {
    const Device device = default_device();
    unsigned salt = 100;
    for (const std::int64_t n : {0, 1, 2, 7, 64, 1000, 4099}) {
      SCOPED_TRACE(std::to_string(n) + " elements");
      for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::one_shot, Algorithm::direct, Algorithm::tree, Algorithm::halving}) {
        if (!does(algorithm, g.size())) continue;
        ++salt;
        const std::vector<float> mine = numbers<float>(g.rank(), static_cast<std::size_t>(n), salt);
        const std::vector<float> wanted = reduced_of_all<float>(g.size(), static_cast<std::size_t>(n), salt, ReduceOp::sum, 1);
        std::vector<std::uint8_t> raw(mine.size() * 4);
        if (n > 0) std::memcpy(raw.data(), mine.data(), raw.size());
        const Dims by_three[] = {{3}};
        for (const bool strided : {false, true}) {
          const Guarded in(device, DType::f32, {n}, strided ? by_three[0] : Dims{}, 67, &raw), out(device, DType::f32, {n}, strided ? by_three[0] : Dims{}, 31);
          g.all_reduce_out(out.view(), in.view(), {.algorithm = algorithm});
          const std::vector<std::uint8_t> got = out.get();
          EXPECT_EQ(in.get(), raw);
          g.all_reduce_(in.view(), {.algorithm = algorithm});
          const std::vector<std::uint8_t> in_place = in.get();
          for (const std::vector<std::uint8_t>* bytes : {&got, &in_place}) {
            std::vector<float> values(wanted.size());
            if (n > 0) std::memcpy(values.data(), bytes->data(), bytes->size());
            expect_same(values, wanted);
          }
        }
      }
    }
  });
}

/// Elements that a rank and a place stand for.
std::vector<std::int32_t> marks(int rank, std::int64_t n, int salt = 0) {
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<std::int32_t>((rank + 1) * 1000000 + salt * 100000 + i));
  return values;
}

TEST(Collectives, CopiesBringEachElementToItsPlace) {
  for_ranks(kRanks, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    for (const std::int64_t block : {0, 1, 5, 129}) {
      SCOPED_TRACE("blocks of " + std::to_string(block));
      const Tensor mine = from_host(marks(me, block), {block});
      std::vector<std::int32_t> all;
      for (int r = 0; r < n; ++r) {
        const auto of = marks(r, block);
        all.insert(all.end(), of.begin(), of.end());
      }
      Tensor out = empty({n * block}, {.dtype = DType::i32});
      g.all_gather_out(out, mine);
      EXPECT_EQ(out.to_host<std::int32_t>(), all);
      // In place, in a tensor that has a row for each rank.
      out = full({n, block}, -1, {.dtype = DType::i32});
      copy_(out.select(0, me), mine);
      g.all_gather_out(out, out.select(0, me));
      EXPECT_EQ(out.to_host<std::int32_t>(), all);

      for (int root = 0; root < n; ++root) {
        Tensor at_root = me == root ? full({n * block}, -1, {.dtype = DType::i32}) : Tensor();
        g.gather_out(at_root, mine, root);
        if (me == root) {
          EXPECT_EQ(at_root.to_host<std::int32_t>(), all);
        }
        const Tensor part = full({block}, -1, {.dtype = DType::i32});
        g.scatter_out(part, me == root ? from_host(marks(root, n * block, 3), {n * block}) : Tensor(), root);
        const std::vector<std::int32_t> of_root = marks(root, n * block, 3);
        EXPECT_EQ(part.to_host<std::int32_t>(), std::vector<std::int32_t>(of_root.begin() + me * block, of_root.begin() + (me + 1) * block));
        const Tensor everywhere = from_host(marks(me, block, 5), {block});
        g.broadcast_(everywhere, root);
        EXPECT_EQ(everywhere.to_host<std::int32_t>(), marks(root, block, 5));
      }

      Tensor exchanged = empty({n * block}, {.dtype = DType::i32});
      const Tensor in = from_host(marks(me, n * block, 7), {n * block});
      g.all_to_all_out(exchanged, in);
      std::vector<std::int32_t> wanted;
      for (int r = 0; r < n; ++r) {
        const auto of = marks(r, n * block, 7);
        wanted.insert(wanted.end(), of.begin() + me * block, of.begin() + (me + 1) * block);
      }
      EXPECT_EQ(exchanged.to_host<std::int32_t>(), wanted);
      g.all_to_all_out(in, in);
      EXPECT_EQ(in.to_host<std::int32_t>(), wanted);
    }
  });
}

TEST(Collectives, EveryDtypeIsCopiedByBytes) {
  for_ranks({1, 2, 3}, [](const Group& g) {
    for (int d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      SCOPED_TRACE(std::string(name(dtype)));
      constexpr std::int64_t kBlock = 12;
      const auto bytes = static_cast<std::size_t>(bytes_for(dtype, kBlock));
      auto raw_of = [&](int rank) {
        std::vector<std::uint8_t> raw(bytes);
        std::iota(raw.begin(), raw.end(), static_cast<std::uint8_t>(16 * rank));
        if (dtype == DType::boolean)
          for (std::uint8_t& b : raw) b &= 1;
        return raw;
      };
      const Tensor mine = from_bytes(raw_of(g.rank()).data(), bytes, {kBlock}, {.dtype = dtype});
      const Tensor all = empty({g.size() * kBlock}, {.dtype = dtype});
      g.all_gather_out(all, mine);
      std::vector<std::uint8_t> wanted;
      for (int r = 0; r < g.size(); ++r) {
        const auto of = raw_of(r);
        wanted.insert(wanted.end(), of.begin(), of.end());
      }
      EXPECT_EQ(all.to_bytes(), wanted);
      g.broadcast_(mine, g.size() - 1);
      EXPECT_EQ(mine.to_bytes(), raw_of(g.size() - 1));
    }
    // An element that shares its byte with the next rank's.
    const Tensor odd = empty({3}, {.dtype = DType::f4e2m1}), out = empty({3 * g.size()}, {.dtype = DType::f4e2m1});
    EXPECT_EQ(code_of([&] { g.all_gather_out(out, odd); }), ErrorCode::invalid_shape);
  });
}

TEST(Collectives, ReduceAndReduceScatter) {
  for_ranks(kRanks, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    unsigned salt = 500;
    auto check = [&]<class T>() {
      for (const std::int64_t block : {0, 1, 33, 513}) {
        ++salt;
        const auto total = static_cast<std::size_t>(n * block);
        const std::vector<T> wanted = reduced_of_all<T>(n, total, salt, ReduceOp::avg, 1);
        const Tensor in = tensor_of(numbers<T>(me, total, salt), {n * block});
        const Tensor out = empty({block}, {.dtype = dtype_of<T>});
        g.reduce_scatter_out(out, in, {.op = ReduceOp::avg});
        const auto begin = wanted.begin() + me * block;
        expect_same(values_of<T>(out), std::vector<T>(begin, begin + block));
        for (int root = 0; root < n; ++root)
          for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::one_shot, Algorithm::tree}) {
            const Tensor self = in.clone();
            g.reduce_(self, root, {.op = ReduceOp::avg, .algorithm = algorithm});
            if (me == root) {
              expect_same(values_of<T>(self), wanted);
            } else {
              expect_same(values_of<T>(self), values_of<T>(in));
            }
          }
        // In place: the own block of the input.
        g.reduce_scatter_out(in.slice(0, me * block, (me + 1) * block), in, {.op = ReduceOp::avg});
        expect_same(values_of<T>(in.slice(0, me * block, (me + 1) * block)), std::vector<T>(begin, begin + block));
      }
    };
    check.template operator()<float>(), check.template operator()<bfloat16>(), check.template operator()<std::int8_t>();
  });
}

TEST(Collectives, RowsOfDifferentNumbers) {
  for_ranks(kRanks, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    constexpr std::int64_t kRow = 3;
    std::mt19937 random(11);
    for (int round = 0; round < 6; ++round) {
      std::vector<std::int64_t> rows;
      for (int r = 0; r < n; ++r) rows.push_back(round == 0 ? 0 : static_cast<std::int64_t>(random() % 7));
      std::vector<std::int64_t> begins{0};
      for (const std::int64_t k : rows) begins.push_back(begins.back() + k);
      const auto at = static_cast<std::size_t>(me);
      const std::int64_t total = begins.back(), own = rows[at];
      std::vector<std::int32_t> all;
      for (int r = 0; r < n; ++r) {
        const auto of = marks(r, rows[static_cast<std::size_t>(r)] * kRow);
        all.insert(all.end(), of.begin(), of.end());
      }
      const Tensor mine = from_host(marks(me, own * kRow), {own, kRow});
      const Tensor out = full({total, kRow}, -1, {.dtype = DType::i32});
      g.all_gather_v_out(out, mine, rows);
      EXPECT_EQ(out.to_host<std::int32_t>(), all);
      for (int root = 0; root < n; ++root) {
        const Tensor at_root = me == root ? full({total, kRow}, -1, {.dtype = DType::i32}) : Tensor();
        g.gather_v_out(at_root, mine, rows, root);
        if (me == root) {
          EXPECT_EQ(at_root.to_host<std::int32_t>(), all);
        }
        const Tensor part = full({own, kRow}, -1, {.dtype = DType::i32});
        g.scatter_v_out(part, at_root, rows, root);
        EXPECT_EQ(part.to_host<std::int32_t>(), marks(me, own * kRow));
      }
      const unsigned salt = 900U + static_cast<unsigned>(round);
      const auto count = static_cast<std::size_t>(total * kRow);
      const Tensor terms = tensor_of(numbers<float>(me, count, salt), {total, kRow});
      const Tensor sums = empty({own, kRow});
      g.reduce_scatter_v_out(sums, terms, rows);
      const std::vector<float> wanted = reduced_of_all<float>(n, count, salt, ReduceOp::sum, 1);
      const auto begin = wanted.begin() + begins[at] * kRow;
      expect_same(sums.to_host<float>(), std::vector<float>(begin, begin + own * kRow));

      // counts[a][b]: rows that a sends b.
      std::vector<std::vector<std::int64_t>> counts(static_cast<std::size_t>(n), std::vector<std::int64_t>(static_cast<std::size_t>(n)));
      for (auto& of : counts)
        for (std::int64_t& k : of) k = static_cast<std::int64_t>(random() % 5);
      std::vector<std::int64_t> from;
      for (const auto& of : counts) from.push_back(of[at]);
      auto sum_of = [](const std::vector<std::int64_t>& list) { return std::accumulate(list.begin(), list.end(), std::int64_t{0}); };
      const std::int64_t sent = sum_of(counts[at]), taken = sum_of(from);
      const Tensor given = from_host(marks(me, sent * kRow, 2), {sent, kRow}), got = full({taken, kRow}, -1, {.dtype = DType::i32});
      g.all_to_all_v_out(got, given, from, counts[at]);
      std::vector<std::int32_t> exchanged;
      for (int r = 0; r < n; ++r) {
        const auto& of = counts[static_cast<std::size_t>(r)];
        const std::vector<std::int32_t> theirs = marks(r, sum_of(of) * kRow, 2);
        const std::int64_t first = std::accumulate(of.begin(), of.begin() + me, std::int64_t{0}) * kRow;
        exchanged.insert(exchanged.end(), theirs.begin() + first, theirs.begin() + first + of[at] * kRow);
      }
      EXPECT_EQ(got.to_host<std::int32_t>(), exchanged);
    }
  });
}

TEST(Collectives, ARingGivesAllRanksTheSameBitsAndIsAskedFor) {
  for_ranks(kRanks, [](const Group& g) {
    const std::vector<float> mine = numbers<float>(g.rank(), 1001, 77);
    const Tensor x = tensor_of(mine, {1001}), first = empty({1001});
    EXPECT_EQ(code_of([&] { g.all_reduce_(x, {.algorithm = Algorithm::ring}); }), ErrorCode::invalid_argument);
    g.all_reduce_(x, {.order = Order::any, .algorithm = Algorithm::ring});
    const Tensor of_first = x.clone();
    g.broadcast_(of_first, 0);
    EXPECT_EQ(x.to_bytes(), of_first.to_bytes());
    const std::vector<float> wanted = reduced_of_all<float>(g.size(), 1001, 77, ReduceOp::sum, 1);
    const std::vector<float> got = x.to_host<float>();
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (std::isfinite(wanted[i])) {
        ASSERT_NEAR(got[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i])));
      }
  });
}

// ---- messages ----

TEST(Messages, ComeInOrderByRankAndTag) {
  for_ranks({2, 3, 5}, [](const Group& g) {
    const int n = g.size(), me = g.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
    std::vector<Work> sends;
    std::vector<Tensor> kept;
    for (int i = 0; i < 10; ++i) {
      kept.push_back(from_host(marks(me, 50 + i, i), {50 + i}));
      sends.push_back(g.send(kept.back(), next, i % 3, {.async = true}));
    }
    // Tags in another order than they were sent.
    for (int tag = 2; tag >= 0; --tag)
      for (int i = tag; i < 10; i += 3) {
        const Tensor got = full({50 + i}, 0, {.dtype = DType::i32});
        const Work work = g.recv(got, before, tag);
        EXPECT_EQ(got.to_host<std::int32_t>(), marks(before, 50 + i, i));
        work.synchronize();
        EXPECT_EQ(work.source(), before);
        EXPECT_EQ(work.sequence(), static_cast<std::uint64_t>(i));
      }
    for (const Work& work : sends) work.synchronize();
  });
}

TEST(Messages, OfAnyRank) {
  for_ranks({2, 4}, [](const Group& g) {
    if (g.rank() > 0) {
      g.send(from_host(marks(g.rank(), 9), {9}), 0, 5).synchronize();
      return;
    }
    std::vector<int> sources;
    for (int i = 1; i < g.size(); ++i) {
      const Tensor got = empty({9}, {.dtype = DType::i32});
      const Work work = g.recv(got, kAnyRank, 5);
      work.synchronize();
      EXPECT_EQ(got.to_host<std::int32_t>(), marks(work.source(), 9));
      sources.push_back(work.source());
    }
    std::sort(sources.begin(), sources.end());
    for (int i = 1; i < g.size(); ++i) EXPECT_EQ(sources[static_cast<std::size_t>(i) - 1], i);
  });
}

TEST(Messages, OfAnotherSizeAreAMismatchOnBothRanks) {
  for_ranks({2}, [](const Group& g) {
    if (g.rank() > 1) return;
    const Tensor x = zeros({g.rank() == 0 ? 10 : 11});
    const Work work = g.rank() == 0 ? g.send(x, 1) : g.recv(x, 0);
    try {
      work.synchronize();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::mismatch);
      EXPECT_NE(e.message().find("10 elements of f32"), std::string::npos) << e.what();
      EXPECT_NE(e.message().find("11 elements of f32"), std::string::npos) << e.what();
      EXPECT_NE(e.message().find("dist_test.cpp:"), std::string::npos) << e.what();
    }
    EXPECT_FALSE(g.failed());
  });
}

// ---- groups ----

TEST(Groups, SplitByColorAndKey) {
  for_ranks({1, 2, 5, 8}, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    const Group half = g.split(me % 2, -me, "half");
    std::vector<int> members;
    for (int r = n - 1; r >= 0; --r)
      if (r % 2 == me % 2) members.push_back(r);
    EXPECT_EQ(half.size(), static_cast<int>(members.size()));
    EXPECT_EQ(members[static_cast<std::size_t>(half.rank())], me);
    EXPECT_TRUE(std::equal(members.begin(), members.end(), half.global_ranks().begin(), half.global_ranks().end()));
    EXPECT_EQ(half.name(), "half");
    const Tensor x = full({3}, me + 1, {.dtype = DType::i32});
    half.all_reduce_(x);
    EXPECT_EQ(x.to_host<std::int32_t>()[0], std::accumulate(members.begin(), members.end(), static_cast<int>(members.size())));
    // Some take no part.
    const Group some = g.split(me == 0 ? -1 : 4);
    EXPECT_EQ(some.empty(), me == 0);
    if (!some.empty()) {
      EXPECT_EQ(some.size(), n - 1);
    }
  });
}

TEST(Groups, SubgroupsAreMadeByTheirMembersAlone) {
  for_ranks({3, 5}, [](const Group& g) {
    const std::vector<int> ranks{2, 0};
    if (g.size() < 3) return;
    if (g.rank() == 0 || g.rank() == 2) {
      const Group pair = g.subgroup(ranks, "pair");
      EXPECT_EQ(pair.rank(), g.rank() == 2 ? 0 : 1);
      const Tensor x = full({4}, g.rank(), {.dtype = DType::i32});
      pair.broadcast_(x, 0);
      EXPECT_EQ(x.to_host<std::int32_t>()[0], 2);
    } else {
      EXPECT_EQ(code_of([&] { (void)g.subgroup(ranks); }), ErrorCode::invalid_argument);
    }
    const std::vector<int> twice{g.rank(), g.rank()}, outside{g.rank(), g.size()};
    EXPECT_EQ(code_of([&] { (void)g.subgroup(twice); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { (void)g.subgroup(outside); }), ErrorCode::invalid_argument);
  });
}

TEST(Groups, UsedInOppositeOrderDoNotWaitForEachOther) {
  for_ranks({2, 4}, [](const Group& g) {
    const Group a = g.split(0, 0, "a"), b = g.split(0, 0, "b");
    for (int round = 0; round < 20; ++round) {
      const Tensor x = full({100}, 1), y = full({100}, 2);
      const bool a_first = (g.rank() + round) % 2 == 0;
      const Work first = (a_first ? a : b).all_reduce_(a_first ? x : y, {.async = true});
      const Work second = (a_first ? b : a).all_reduce_(a_first ? y : x, {.async = true});
      first.wait(), second.wait();
      EXPECT_EQ(x.to_host<float>()[7], static_cast<float>(g.size()));
      EXPECT_EQ(y.to_host<float>()[7], 2 * static_cast<float>(g.size()));
    }
  });
}

// ---- order ----

TEST(Order, CallsAreInTheOrderOfTheirStream) {
  for_ranks({1, 2, 3}, [](const Group& g) {
    const Tensor x = full({5000}, 1);
    float wanted = 1;
    for (int i = 0; i < 30; ++i) {
      add_(x, 1.0F);
      g.all_reduce_(x, {.op = ReduceOp::avg});
      wanted += 1;
    }
    const std::vector<float> got = x.to_host<float>();
    for (const float v : got) ASSERT_EQ(v, wanted);
  });
}

TEST(Order, AsynchronousCallsGoOnBesideTheStream) {
  for_ranks({1, 2, 3}, [](const Group& g) {
    for (int i = 0; i < 10; ++i) {
      const Tensor x = full({3000}, g.rank() + 1), y = full({3000}, 5);
      std::atomic<int> calls = 0;
      const Work work = g.all_reduce_(x, {.async = true});
      work.on_done([&](Work::Status status) { calls += status == Work::Status::done ? 1 : 100; });
      mul_(y, 2.0F);
      work.wait();
      const Tensor z = add(x, y);
      const float sum = static_cast<float>(g.size() * (g.size() + 1)) / 2;
      EXPECT_EQ(z.to_host<float>()[2999], sum + 10);
      work.synchronize();
      EXPECT_EQ(work.status(), Work::Status::done);
      EXPECT_EQ(work.sequence(), static_cast<std::uint64_t>(i));
      EXPECT_GE(work.milliseconds(), 0);
      // Another stream waits as well.
      const Stream other(default_device());
      work.wait(other);
      EXPECT_EQ(x.to_host<float>(other)[0], sum);
      for (int spin = 0; calls == 0 && spin < 100000; ++spin) std::this_thread::yield();
      EXPECT_EQ(calls, 1);
    }
  });
}

TEST(Order, ACallDoesNotWaitOnTheHost) {
  for_ranks({2}, [](const Group& g) {
    const Tensor x = full({10}, g.rank() + 1);
    // The other ranks come later.
    if (g.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(150));
    const auto begin = std::chrono::steady_clock::now();
    const Work work = g.all_reduce_(x);
    const auto took = std::chrono::steady_clock::now() - begin;
    if (g.rank() == 0) {
      EXPECT_LT(took, std::chrono::milliseconds(100));
      EXPECT_NE(work.status(), Work::Status::done);
      EXPECT_EQ(code_of([&] { work.synchronize(std::chrono::milliseconds(5)); }), ErrorCode::timed_out);
    }
    work.synchronize();
    EXPECT_EQ(x.to_host<float>()[0], static_cast<float>(g.size() * (g.size() + 1)) / 2);
    EXPECT_FALSE(g.failed());
  });
}

TEST(Order, BarriersKeepRanksTogether) {
  static std::atomic<int> came{0};
  came = 0;
  for_ranks({4}, [](const Group& g) {
    for (int round = 0; round < 20; ++round) {
      ++came;
      g.barrier().synchronize();
      if (processes() == 0) {
        EXPECT_GE(came, (round + 1) * g.size());
      }
      g.barrier().synchronize();
    }
  });
}

TEST(Order, GraphsMakeTheCallsAgain) {
  for_ranks({1, 2, 3}, [](const Group& g) {
    const Tensor x = full({777}, g.rank() + 1), sum = zeros({777});
    const Stream stream = current_stream();
    stream.synchronize();
    Graph graph;
    // Other ranks may be threads, which go on with what they do.
    graph.capture_begin(stream, {.mode = CaptureMode::relaxed});
    const Tensor twice = mul(x, 2.0F);
    g.all_reduce_out(sum, twice);
    add_(sum, 1.0F);
    graph.capture_end();
    float terms = static_cast<float>(g.size() * (g.size() + 1));
    for (int replay = 0; replay < 5; ++replay) {
      graph.replay(stream);
      EXPECT_EQ(sum.to_host<float>()[776], terms + 1);
      mul_(x, 3.0F);
      terms *= 3;
    }
  });
}

// ---- flight records ----

TEST(Records, OfAllRanksAgreeAndNameWhoDidNotCome) {
  static const auto& folder =
      *new std::filesystem::path(std::filesystem::temp_directory_path() / ("clutch_dist_" + std::to_string(processes() > 0 ? ::getppid() : ::getpid())));
  for_ranks({3}, [](const Group& world) {
    if (world.size() < 2) return;
    const Group g = world.split(0, 0, "recorded");
    const Tensor x = zeros({8, 3}), all = zeros({8 * g.size(), 3}), own = zeros({8, 3});
    const std::vector<std::int64_t> rows(static_cast<std::size_t>(g.size()), 8);
    g.all_reduce_(x), g.all_gather_out(all, x), g.reduce_scatter_out(own, all), g.all_to_all_out(all, all), g.broadcast_(x, 1);
    g.all_gather_v_out(all, x, rows), g.reduce_scatter_v_out(own, all, rows), g.all_to_all_v_out(all, zeros({8 * g.size(), 3}), rows, rows);
    g.reduce_(x, 1), g.gather_out(g.rank() == 0 ? all : Tensor(), x, 0), g.scatter_out(own, g.rank() == 0 ? all : Tensor(), 0);
    if (g.rank() == 0) g.send(x, 1, 4);
    if (g.rank() == 1) g.recv(x, kAnyRank, 4).synchronize();
    const Symmetric memory({64}, g);
    g.barrier().synchronize();
    auto blame = [&](const Group& of) {
      using namespace dist::detail;
      std::vector<FlightImage> images;
      of.dump_flight(folder / (of.name() + ".pickle"));
      of.dump_flight(folder / (of.name() + ".json"), FlightFormat::json);
      world.barrier().synchronize();
      for (int r = 0; r < world.size(); ++r) {
        images.push_back(read_flight(folder / (of.name() + ".json" + std::to_string(r))));
        // PyTorch's format leaves out what its analyzer does not know.
        EXPECT_GE(images.back().records.size(), read_flight(folder / (of.name() + ".pickle" + std::to_string(r))).records.size());
      }
      return analyze(images);
    };
    std::filesystem::create_directories(folder);
    const auto well = blame(g);
    // Under mpirun other tests have planted faults before.
    if (processes() == 0) {
      EXPECT_TRUE(well.findings.empty()) << well.text();
    }
    if (g.rank() != 1) {
      EXPECT_EQ(code_of([&] { g.all_reduce_(x, {.timeout = std::chrono::milliseconds(100)}).synchronize(); }), ErrorCode::timed_out);
      current_stream().reset();
    }
    world.barrier().synchronize();
    const auto badly = blame(g);
    ASSERT_FALSE(badly.findings.empty());
    EXPECT_NE(badly.text().find("rank 1"), std::string::npos) << badly.text();
    world.barrier().synchronize();
    if (world.rank() == 0) std::filesystem::remove_all(folder);
  });
}

// ---- what goes wrong ----

/// What each rank's synchronize() throws; empty if nothing.
std::string error_of(const Work& work, ErrorCode code) {
  try {
    work.synchronize();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return {};
}

TEST(Faults, DifferentCallsAreAnErrorOnEveryRankAndTheGroupGoesOn) {
  for_ranks({2, 3, 5}, [](const Group& g) {
    const bool is_other = g.rank() == g.size() - 1;
    if (g.size() == 1) return;
    const Stream stream = current_stream();
    const Tensor f = zeros({12}), d = zeros({12}, {.dtype = DType::f64}), small = zeros({11}), out = zeros({12 * g.size()});
    const std::vector<std::pair<const char*, std::function<Work()>>> pairs{
        {"f64", [&] { return g.all_reduce_(is_other ? d : f); }},
        {"11 elements", [&] { return g.all_reduce_(is_other ? small : f); }},
        {"max", [&] { return g.all_reduce_(f, {.op = is_other ? ReduceOp::max : ReduceOp::sum}); }},
        {"tree", [&] { return g.all_reduce_(f, {.algorithm = is_other ? Algorithm::tree : Algorithm::direct}); }},
        {"broadcast", [&] { return is_other ? g.broadcast_(f, 0) : g.all_reduce_(f); }},
        {"root 1", [&] { return g.broadcast_(f, is_other ? 1 : 0); }},
        {"barrier", [&] { return is_other ? g.barrier() : g.all_gather_out(out, f); }},
        {"premul_sum", [&] { return g.all_reduce_(f, {.op = ReduceOp::premul_sum, .factor = is_other ? 2.0 : 3.0}); }},
    };
    for (const auto& [what, call] : pairs) {
      SCOPED_TRACE(what);
      const std::string error = error_of(call(), ErrorCode::mismatch);
      EXPECT_NE(error.find(what), std::string::npos) << error;
      EXPECT_NE(error.find("dist_test.cpp:"), std::string::npos) << error;
      EXPECT_NE(error.find("rank " + std::to_string(g.size() - 1)), std::string::npos) << error;
      // The stream has failed, so that nobody takes what was not received for results.
      EXPECT_EQ(code_of([&] { stream.synchronize(); }), ErrorCode::stream_failed);
      stream.reset();
      EXPECT_FALSE(g.failed());
    }
    // Rows that do not match.
    const auto n = static_cast<std::size_t>(g.size());
    std::vector<std::int64_t> rows(n, 1), wrong(n, 1);
    wrong[0] = 2;
    const Tensor in = zeros({g.size() + (is_other ? 1 : 0), 2}), to = zeros({g.size(), 2});
    const std::string error = error_of(g.all_to_all_v_out(to, in, rows, is_other ? wrong : rows), ErrorCode::mismatch);
    EXPECT_NE(error.find("sends 2 rows to rank 0, which expects 1"), std::string::npos) << error;
    stream.reset();
    g.all_reduce_(f).synchronize();
  });
}

TEST(Faults, ARankThatDoesNotComeIsNamedAfterTheTimeout) {
  for_ranks({2, 3}, [](const Group& world) {
    if (world.size() == 1) return;
    const Group g = world.split(0, 0, "late");
    const Tensor x = zeros({100});
    const Stream stream = current_stream();
    if (g.rank() != 1) {
      const auto begin = std::chrono::steady_clock::now();
      const Work work = g.all_reduce_(x, {.timeout = std::chrono::milliseconds(200)});
      const std::string error = error_of(work, ErrorCode::timed_out);
      EXPECT_NE(error.find("waited 200 ms for rank 1"), std::string::npos) << error;
      EXPECT_NE(error.find("call 0 of group 'late' on rank"), std::string::npos) << error;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
      EXPECT_EQ(work.status(), Work::Status::timed_out);
      EXPECT_TRUE(g.failed());
      EXPECT_EQ(code_of([&] { g.all_reduce_(x); }), ErrorCode::peer_failed);
      EXPECT_EQ(code_of([&] { stream.synchronize(); }), ErrorCode::stream_failed);
      stream.reset();
    }
    // Other groups know nothing of it.
    world.all_reduce_(x).synchronize();
  });
}

TEST(Faults, AGroupThatWasGivenUpRefusesCalls) {
  for_ranks({2}, [](const Group& world) {
    const Group g = world.split(0);
    const Tensor x = zeros({100});
    const Stream stream = current_stream();
    g.set_timeout(std::chrono::milliseconds(300));
    if (g.rank() == 0) {
      const Work work = g.all_reduce_(x);
      g.abort("enough");
      if (g.size() > 1) {
        EXPECT_NE(error_of(work, ErrorCode::peer_failed).find("enough"), std::string::npos);
        stream.reset();
      }
      EXPECT_EQ(code_of([&] { g.all_reduce_(x); }), ErrorCode::peer_failed);
    }
    world.barrier().synchronize();
  });
}

TEST(Faults, AStreamThatHasFailedIsToldToTheOthers) {
  for_ranks({2, 3}, [](const Group& world) {
    if (world.size() == 1) return;
    const Group g = world.split(0, 0, "told");
    const Tensor x = zeros({100});
    const Stream stream = current_stream();
    // The call before fails on rank 1 alone: a message of another size than the one that rank 0 takes on a stream of its own.
    const Tensor seven = zeros({7}), eight = zeros({8});
    const Group pair = world.split(world.rank() < 2 ? 0 : -1, 0, "pair");
    for (const bool knows : {false, true}) {
      SCOPED_TRACE(knows ? "known when the call is made" : "found when its turn comes");
      Work first, work;
      if (!pair.empty()) first = pair.rank() == 1 ? pair.send(seven, 0) : pair.recv(eight, 1, 0, {.async = true});
      if (knows) (void)error_of(first, ErrorCode::mismatch);
      // Where the stream is known to have failed the call itself is an Error, and the others are told all the same.
      try {
        work = g.all_reduce_(x);
        EXPECT_FALSE(knows && g.rank() == 1);
        const std::string error = error_of(work, ErrorCode::peer_failed);
        EXPECT_NE(error.find("rank 1 of group 'told' cannot take part"), std::string::npos) << error;
      } catch (const Error& e) {
        EXPECT_EQ(g.rank(), 1) << e.what();
        EXPECT_EQ(e.code(), ErrorCode::stream_failed) << e.what();
      }
      if (!pair.empty()) (void)error_of(first, ErrorCode::mismatch);
      stream.reset();
      EXPECT_FALSE(g.failed());
      g.all_reduce_(x).synchronize();
    }
  });
}

TEST(Faults, AStreamThatWaitedForAFailedCallFailsToo) {
  for_ranks({2}, [](const Group& g) {
    if (g.size() == 1) return;
    const Stream stream = current_stream();
    const Tensor x = zeros({g.rank() == 0 ? 4 : 5});
    for (const bool early : {true, false}) {
      const Work work = g.all_reduce_(x, {.async = true});
      if (early) work.wait();
      EXPECT_FALSE(error_of(work, ErrorCode::mismatch).empty());
      if (!early) work.wait();
      EXPECT_EQ(code_of([&] { stream.synchronize(); }), ErrorCode::stream_failed);
      stream.reset();
    }
  });
}

TEST(Faults, ArgumentsThatMakeNoSenseAreRefusedBeforeAnythingIsSent) {
  for_ranks({2}, [](const Group& g) {
    const Tensor x = zeros({6}), y = zeros({6}, {.dtype = DType::f64}), longer = zeros({7});
    const std::vector<std::int64_t> one{6}, negative(static_cast<std::size_t>(g.size()), -1);
    EXPECT_EQ(code_of([&] { g.all_reduce_(Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_reduce_out(y, x); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { g.all_reduce_out(longer, x); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { g.all_reduce_out(x.slice(0, 0, 5), x.slice(0, 1, 6)); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { g.all_gather_out(longer, x); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { g.broadcast_(x, g.size()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.broadcast_(x, -1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.broadcast_(x, 0, {.algorithm = Algorithm::ring}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_reduce_(x, {.timeout = std::chrono::milliseconds(-1)}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.send(x, g.rank()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.recv(x, g.rank()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.send(x, (g.rank() + 1) % std::max(g.size(), 2), Group::kMaxTag + 1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_gather_v_out(x, x, std::vector<std::int64_t>(static_cast<std::size_t>(g.size()) + 1, 1)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.all_gather_v_out(x, x, negative); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { g.set_timeout({}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { Group().all_reduce_(zeros({1})); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { (void)open_threads(0); }), ErrorCode::invalid_argument);
    // Nothing was counted.
    EXPECT_EQ(g.barrier().sequence(), 0U);
  });
}

}}  // namespace clutch::testing
