// SPDX-License-Identifier: Apache-2.0
#include "cases/matmul.hpp"

#include "ops/matmul_plan.hpp"
#include "runtime/quirks.hpp"
#include "support/op_runner.hpp"

#include <clutch/clutch.hpp>

#include <cmath>
#include <complex>
#include <random>

namespace clutch::testing { namespace {

using cases::MatmulCase;
using linalg::matmul;

/// What the device takes by itself.
std::string_view own_entry(const Device& device) { return detail::select(device.traits(), detail::MatmulProblem{}).entry; }
bool takes_panels(const Device& device) { return own_entry(device) == "matmul_panels"; }

bool takes_tiles(const Device& device, DType dtype) {
  try {
    return detail::select(device.traits(), {.a = dtype, .b = dtype, .output = dtype}, "matmul_tiles").entry == "matmul_tiles";
  } catch (const Error&) {
    return false;
  }
}

/// From -4 to 3.
Tensor whole_numbers(const Dims& sizes, const Device& device, std::uint64_t seed) {
  return map([](Expr x) { return floor(x * 8.0f) - 4.0f; }, rand(sizes, {.device = device, .seed = seed}));
}

TEST(Matmul, ShapesAroundTheTilesHaveTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : MatmulCase::kDtypes) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t m : {1, 2, 3, 5, 6, 7, 12, 13})
        for (std::int64_t n : {1, 15, 16, 31, 32, 33, 63, 64, 65, 128, 130})
          for (std::int64_t k : {1, 2, 17, 65, 68}) {
            // Each kind of tile is a program, and each takes a second to build.
            if (level() == "smoke" && (m + n + k + static_cast<int>(dtype)) % (dtype == DType::f32 ? 11 : 37) != 0) continue;
            int turn = static_cast<int>((m + n + k) % 4);
            MatmulCase::Shape shape{.m = m, .n = n, .k = k, .batch = 1 + (m + n) % 3, .a_transposed = (turn & 1) != 0, .b_transposed = (turn & 2) != 0};
            shape.b_shared = k % 2 == 0, shape.beta = n % 2 == 0 ? 0.75 : 0, shape.alpha = m % 2 == 0 ? -1.5 : 1;
            shape.epilogue = (m + n) % 2 == 0, shape.aligned = m % 2 == n % 2;
            DType result = dtype == DType::f16 && m % 2 == 0 ? DType::f32 : dtype;
            for (std::string_view entry : {"matmul_items", "matmul_panels", "matmul_tiles"}) {
              if (level() == "smoke" && entry == "matmul_tiles" && k != 17 && k != 68 && device.type() == DeviceType::cpu) continue;
              if (entry == "matmul_panels" && !takes_panels(device)) continue;
              if (entry == "matmul_tiles" && !takes_tiles(device, dtype)) continue;
              ASSERT_EQ(run_once(device, MatmulCase::problem(entry, dtype, dtype, shape, seed(), result)), "")
                  << entry << " " << name(dtype) << " " << m << " " << n << " " << k << " transposed " << turn;
            }
          }
    }
  }
}

/// Few rows or columns by blocks, along k and across, where quads may be loaded and where they may not; what is infinite past the end of k counts in no chain.
TEST(Matmul, FewRowsAndColumnsHaveTheBitsOfItems) {
  CLUTCH_EACH_DEVICE(device) {
    for (auto [of_a, of_b] :
         {std::pair{DType::f32, DType::f32}, {DType::f64, DType::f64}, {DType::f16, DType::f16}, {DType::f8e4m3fn, DType::f8e5m2}, {DType::u8, DType::i8}}) {
      if (of_a == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      int turn = 0;
      for (auto [few, many] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 31}, {3, 33}, {8, 128}, {7, 260}, {9, 70}, {16, 65}, {31, 40}, {32, 33}})
        for (std::int64_t k : {0, 1, 5, 127, 128, 130, 388})
          for (bool rows : {true, false}) {
            if (++turn % (of_a == DType::f32 ? 23 : 97) != 0 && level() == "smoke") continue;
            const std::int64_t m = rows ? few : many, n = rows ? many : few, batch = 1 + turn % 3;
            auto operand = [&](const Dims& sizes, DType dtype, std::uint64_t from, bool transposed) {
              const Dims stored = transposed ? Dims{sizes[0], sizes[2], sizes[1]} : sizes;
              const Tensor x = dtype == DType::u8 || dtype == DType::i8 ? whole_numbers(stored, device, from) : randn(stored, {.device = device, .seed = from});
              const Tensor typed = dtype == DType::u8 ? map([](Expr v) { return abs(v); }, x).to(dtype) : x.to(dtype);
              return transposed ? typed.mT() : typed;
            };
            // One row more than the product takes holds infinities.
            Tensor a = operand({batch, m, k + 1}, of_a, 1, (turn & 1) != 0), b = operand({batch, k + 1, n}, of_b, 2, (turn & 2) != 0);
            if (is_floating(of_a)) fill_(a.slice(2, k, k + 1), INFINITY), fill_(b.slice(1, k, k + 1), 0);
            a = a.slice(2, 0, k), b = b.slice(1, 0, k);
            const Tensor before = whole_numbers({batch, m, n}, device, 3).to(linalg::product_dtype(of_a, of_b));
            auto made = [&](const char* way) {
              const Tensor out = before.clone();
              linalg::matmul_out(out, a, b, {.alpha = 2, .beta = -3, .implementation = way});
              return out.to_bytes();
            };
            const std::vector<std::uint8_t> want = made("matmul_items");
            try {
              ASSERT_EQ(made("matmul_few"), want) << name(of_a) << " " << m << " x " << n << " x " << k;
            } catch (const Error& e) {
              if (!skip_without(device, "matmul_few", e.code() != ErrorCode::not_supported)) throw;
            }
            ASSERT_EQ(made(""), want) << name(of_a) << " " << m << " x " << n << " x " << k;
          }
    }
    const Tensor square = zeros({33, 33}, {.device = device});
    EXPECT_EQ(code_of([&] { matmul(square, square, {.implementation = "matmul_few"}); }), ErrorCode::not_supported);
    const Tensor complex = zeros({2, 40}, {.dtype = DType::c64, .device = device});
    EXPECT_EQ(code_of([&] { matmul(complex, complex.mT(), {.implementation = "matmul_few"}); }), ErrorCode::not_supported);
  }
}

/// Long chains go by blocks; many tiles and panels of an item wait meanwhile. By all ways in which b may come, and with all dtypes.
TEST(Matmul, LongChainsHaveTheModelsBits) {
  struct Types {
    DType a, b, result;
  };
  constexpr Types kTypes[] = {{DType::f32, DType::f32, DType::f32},         {DType::bf16, DType::bf16, DType::bf16},
                              {DType::f8e4m3fn, DType::f8e5m2, DType::f32}, {DType::f8e5m2, DType::f8e4m3fn, DType::f32},
                              {DType::i8, DType::i8, DType::i32},           {DType::u8, DType::i8, DType::i32}};
  CLUTCH_EACH_DEVICE(device) {
    struct Size {
      std::int64_t m, n, k;
    };
    for (const Types& types : kTypes)
      for (const Size& size : {Size{1, 512, 1100}, Size{40, 330, 255}, Size{40, 130, 600}, Size{200, 130, 257}, Size{200, 192, 256}, Size{9, 150, 333}}) {
        MatmulCase::Shape shape{.m = size.m, .n = size.n, .k = size.k, .b_transposed = size.k == 257 || size.k == 333, .alpha = 2, .beta = -3};
        if (level() == "smoke" && types.a != DType::f32 && (size.m + size.k + static_cast<int>(types.a)) % 4 != 0) continue;
        shape.epilogue = size.m == 1, shape.packed = size.m == 40 && types.a == types.b;
        // Bytes by sums of floats, and by whatever the device has. What reads a PackedMatrix is not forced.
        std::string_view entry = !takes_panels(device)                          ? shape.packed ? own_entry(device) : "matmul_items"
                                 : MatmulCase::is_byte(types.a) && size.m < 200 ? ""
                                                                                : "matmul_panels";
        ASSERT_EQ(run_once(device, MatmulCase::problem(entry, types.a, types.b, shape, seed(), types.result)), "")
            << name(types.a) << " " << size.m << " " << size.k;
      }
  }
}

/// Complex products are real ones of twice the columns: re, then im.
TEST(Matmul, ComplexHasTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    auto check = [&]<class R>(R) {
      using C = std::complex<R>;
      for (std::int64_t m : {1, 7})
        for (std::int64_t n : {1, 40})
          for (std::int64_t k : {3, 300})
            for (int way = 0; way < 4; ++way) {
              model::Random random(seed());
              auto values = [&](std::int64_t count) {
                std::vector<C> v(static_cast<std::size_t>(count));
                for (C& x : v) x = {static_cast<R>(random.uniform(-1, 1)), static_cast<R>(random.uniform(-1, 1))};
                return v;
              };
              std::vector<C> x = values(m * k), y = values(k * n);
              Tensor a = from_host(x, {m, k}, device), b = from_host(y, {k, n}, device);
              if (way == 1) a = a.mT().contiguous().mT();
              if (way == 2) b = b.mT().contiguous().mT();
              Tensor got;
              if (way == 3) {
                got = empty({n, m}, {.dtype = a.dtype(), .device = device}).mT();
                linalg::matmul_out(got, a, linalg::PackedMatrix(b));
                got = got.contiguous();
              } else {
                got = matmul(a, b);
              }
              std::vector<C> z = got.template to_host<C>();
              for (std::int64_t i = 0; i < m; ++i)
                for (std::int64_t j = 0; j < n; ++j) {
                  R re = 0, im = 0;
                  for (std::int64_t l = 0; l < k; ++l) {
                    C u = x[static_cast<std::size_t>(i * k + l)], v = y[static_cast<std::size_t>(l * n + j)];
                    re = std::fma(u.imag(), -v.imag(), std::fma(u.real(), v.real(), re));
                    im = std::fma(u.imag(), v.real(), std::fma(u.real(), v.imag(), im));
                  }
                  ASSERT_EQ(z[static_cast<std::size_t>(i * n + j)], C(re, im)) << m << " " << n << " " << k << " way " << way;
                }
              for (std::string_view entry : {"matmul_items", "matmul_tiles"}) {
                if (entry == "matmul_tiles" && !takes_tiles(device, sizeof(R) == 8 ? DType::f64 : DType::f32)) continue;
                ASSERT_EQ(matmul(a, b, {.implementation = std::string(entry)}).to_bytes(), got.to_bytes()) << entry << " " << m << " " << n << " " << k;
              }
            }
    };
    check(float{});
    if (!skip_without(device, "fp64", device.traits().fp64)) check(double{});
  }
}

/// Small integers: every sum is exact, whoever computes it.
TEST(Matmul, IntegersAreExact) {
  CLUTCH_EACH_DEVICE(device) {
    struct Case {
      Dims a, b, c;
    };
    for (const Case& s :
         {Case{{100, 300}, {300, 200}, {100, 200}}, Case{{2, 3, 20, 33}, {3, 33, 70}, {2, 3, 20, 70}}, Case{{4, 1, 9, 5}, {1, 7, 5, 66}, {4, 7, 9, 66}},
          Case{{5}, {5}, {}}, Case{{5}, {3, 5, 64}, {3, 64}}, Case{{3, 4, 5}, {5}, {3, 4}}, Case{{0, 5}, {5, 3}, {0, 3}}, Case{{2, 0}, {0, 3}, {2, 3}}}) {
      Tensor a = whole_numbers(s.a, device, 1), b = whole_numbers(s.b, device, 2), c = matmul(a, b);
      ASSERT_EQ(c.sizes(), s.c);
      // Sums of products, by the reductions.
      Tensor x = a.rank() == 1 ? a.unsqueeze(0) : a, y = b.rank() == 1 ? b.unsqueeze(1) : b;
      Tensor want = reduce(Reduce::sum, [](Expr u, Expr v) { return u * v; }, {x.unsqueeze(-1), y.unsqueeze(-3)}, {.dims = {-2}});
      EXPECT_EQ(c.to_bytes(), want.to_bytes()) << to_string(s.a) << " " << to_string(s.b);
    }
  }
}

/// Chains of more than a million, whose sums of -1, 0 and 1 stay exact in every type.
TEST(Matmul, LongestChainsAreExact) {
  constexpr std::int64_t kM = 3, kN = 5, kK = (1 << 20) + 7;
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().quirks & detail::kQuirkLoopsEndEarly) continue;
    auto signs = [&](const Dims& sizes, std::uint64_t from) {
      return map([](Expr x) { return floor(x * 3.0f) - 1.0f; }, rand(sizes, {.device = device, .seed = from}));
    };
    const Tensor a = signs({kM, kK}, 1), b = signs({kN, kK}, 2).mT();
    const std::vector<float> x = a.to_host<float>(), y = b.contiguous().to_host<float>();
    std::vector<double> want(kM * kN, 0.0);
    for (std::int64_t i = 0; i < kM; ++i)
      for (std::int64_t l = 0; l < kK; ++l)
        for (std::int64_t j = 0; j < kN; ++j)
          want[static_cast<std::size_t>(i * kN + j)] += static_cast<double>(x[static_cast<std::size_t>(i * kK + l)] * y[static_cast<std::size_t>(l * kN + j)]);
    for (DType dtype : {DType::f32, DType::bf16, DType::i8})
      EXPECT_EQ(matmul(a.to(dtype), b.to(dtype), {.dtype = dtype == DType::i8 ? DType::i32 : DType::f32}).to(DType::f64).to_host<double>(), want)
          << name(dtype);
  }
}

/// Every small shape, as corners of larger matrices that lie either way; integers, so that any order gives their sums.
TEST(Matmul, AllSmallShapes) {
  constexpr std::int64_t kMost = 40;
  CLUTCH_EACH_DEVICE(device) {
    const Tensor a = whole_numbers({kMost, kMost}, device, 1), b = whole_numbers({kMost, kMost}, device, 2);
    const std::vector<float> x = a.to_host<float>(), y = b.to_host<float>();
    const std::int64_t step = level() == "smoke" ? 9 : 1;
    for (std::int64_t m = 0; m <= kMost; m += step)
      for (std::int64_t n = 0; n <= kMost; n += step)
        for (std::int64_t k = 0; k <= kMost; k += step) {
          const bool a_transposed = (m + k) % 2 != 0, b_transposed = (n + k) % 3 == 0;
          Tensor u = a_transposed ? a.mT().slice(0, 0, m).slice(1, 0, k) : a.slice(0, 0, m).slice(1, 0, k);
          Tensor v = b_transposed ? b.mT().slice(0, 0, k).slice(1, 0, n) : b.slice(0, 0, k).slice(1, 0, n);
          const std::vector<float> z = matmul(u, v).to_host<float>();
          ASSERT_EQ(z.size(), static_cast<std::size_t>(m * n));
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              float sum = 0;
              for (std::int64_t l = 0; l < k; ++l)
                sum += x[static_cast<std::size_t>(a_transposed ? l * kMost + i : i * kMost + l)] *
                       y[static_cast<std::size_t>(b_transposed ? j * kMost + l : l * kMost + j)];
              ASSERT_EQ(z[static_cast<std::size_t>(i * n + j)], sum) << m << " " << n << " " << k;
            }
        }
  }
}

/// A matrix in each lane has the bits of the general kernels, in whole bundles and in parts of one, with one b for all and with gaps.
TEST(Matmul, BatchesOfSmallMatrices) {
  CLUTCH_EACH_DEVICE(device) {
    if (!takes_panels(device)) continue;
    struct Size {
      std::int64_t m, n, k;
    };
    for (const Size& s : {Size{1, 1, 1}, Size{2, 3, 4}, Size{8, 8, 8}, Size{16, 16, 16}, Size{5, 16, 3}, Size{16, 4, 16}, Size{3, 3, 0}})
      for (std::int64_t batch : {64, 75, 100}) {
        Tensor a = randn({batch, s.m, s.k}, {.device = device, .seed = 1}),
               b = randn({2 * batch, s.k, s.n}, {.device = device, .seed = 2}).slice(0, 0, 2 * batch, 2);
        Tensor c = randn({batch, s.m, s.n}, {.device = device, .seed = 3}), other = c.clone(), lanes = c.clone();
        linalg::matmul_out(c, a, b, {.alpha = 0.5, .beta = 3});
        // Whole vectors of columns are multiplied as they lie.
        const bool whole = s.n % device.traits().native_width_f32 == 0 && s.m > 2;
        EXPECT_TRUE(s.k == 0 || whole || last_plan().starts_with("matmul_lanes")) << last_plan();
        if (s.k > 0) {
          linalg::matmul_out(lanes, a, b, {.alpha = 0.5, .beta = 3, .implementation = "matmul_lanes"});
          EXPECT_EQ(lanes.to_bytes(), c.to_bytes()) << s.m << " " << s.n << " " << s.k << " " << batch;
        }
        linalg::matmul_out(other, a, b, {.alpha = 0.5, .beta = 3, .implementation = "matmul_panels"});
        EXPECT_EQ(c.to_bytes(), other.to_bytes()) << s.m << " " << s.n << " " << s.k << " " << batch;
        EXPECT_EQ(matmul(a, b.select(0, 3)).to_bytes(), matmul(a, b.select(0, 3), {.implementation = "matmul_items"}).to_bytes());
      }
    Tensor large = randn({64, 20, 20}, {.device = device, .seed = 1});
    EXPECT_EQ(code_of([&] { matmul(large, large, {.implementation = "matmul_lanes"}); }), ErrorCode::not_supported);
  }
}

/// Products with few columns, which may be computed as rows of the transposed product, have the bits of the kernel that is forced and computes them as they
/// lie.
TEST(Matmul, FewColumnsHaveTheBitsOfOthers) {
  CLUTCH_EACH_DEVICE(device) {
    const std::string forced(own_entry(device));
    auto placed = [](Expr x, Expr y) { return select(position(-1) > position(-2), x, x * 2 + y); };
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8, DType::u8})
      for (const std::int64_t n : {1, 2, 3, 4, 5, 16, 17})
        for (const std::int64_t batch : {1, 3})
          for (const bool by_columns : {false, true}) {
            constexpr std::int64_t kM = 37, kK = 35;
            SCOPED_TRACE(fmt::format("{} n {} batch {} {}", name(dtype), n, batch, by_columns ? "by columns" : "by rows"));
            const bool bytes = dtype == DType::i8 || dtype == DType::u8, by_day = n == 1 || n == (bytes ? 16 : 3);
            if (level() == "smoke" && (!by_day || dtype == DType::f16 || dtype == DType::u8 || by_columns == bytes)) continue;
            auto make = [&](const Dims& sizes, std::uint64_t seed) {
              return (bytes ? whole_numbers(sizes, device, seed) : randn(sizes, {.device = device, .seed = seed})).to(dtype);
            };
            const Tensor a = by_columns ? make({batch, kK, kM}, 1).mT() : make({batch, kM, kK}, 1), b = make({batch, kK, n}, 2);
            const linalg::MatmulOptions own{.alpha = 2, .beta = 3}, other{.alpha = 2, .beta = 3, .implementation = forced};
            const DType result = linalg::product_dtype(dtype, dtype);
            // Columns with gaps.
            const Tensor before = whole_numbers({batch, kM, 2 * n}, device, 3).to(result), x = before.clone(), y = before.clone();
            linalg::matmul_out(x.slice(2, 0, 2 * n, 2), a, b, own);
            linalg::matmul_out(y.slice(2, 0, 2 * n, 2), a, b, other);
            EXPECT_EQ(x.to_bytes(), y.to_bytes());
            if (batch > 1 || (level() == "smoke" && dtype != DType::f32)) continue;
            const Tensor u = a.select(0, 0), v = b.select(0, 0), more = whole_numbers({1, n}, device, 4).to(result);
            EXPECT_EQ(matmul(u, v, placed, {more}).to_bytes(), matmul(u, v, placed, {more}, {.implementation = forced}).to_bytes());
          }
  }
}

/// Products of any sizes and strides have the bits of items. What lies around the operands is NaN, and around the result stays.
TEST(Matmul, AnySizesHaveTheBitsOfItems) {
  CLUTCH_EACH_DEVICE(device) {
    std::mt19937 random(7);
    auto draw = [&](std::int64_t most) { return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most)); };
    auto inside = [&](std::int64_t batch, std::int64_t rows, std::int64_t columns, DType dtype, bool is_transposed, std::uint64_t seed) {
      const std::int64_t before = draw(3) - 1, behind = draw(3) - 1;
      if (is_transposed) std::swap(rows, columns);
      const Tensor all = full({batch, rows + before + behind, columns + before + behind}, NAN, {.dtype = dtype, .device = device});
      const Tensor x = all.slice(1, before, before + rows).slice(2, before, before + columns);
      copy_(x, randn({batch, rows, columns}, {.device = device, .seed = seed}));
      return is_transposed ? x.mT() : x;
    };
    constexpr DType kDtypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f8e4m3fn};
    for (int i = 0; i < (level() == "smoke" ? 24 : 1000); ++i) {
      const DType dtype = kDtypes[i % 5];
      if (dtype == DType::f64 && !device.traits().fp64) continue;
      const std::int64_t m = i % 3 == 0 ? draw(4) : draw(60), n = draw(i % 4 == 0 ? 600 : 90), k = i % 6 == 0 ? 1 : draw(i % 7 == 1 ? 700 : 70),
                         batch = draw(3);
      const bool a_transposed = random() % 2 != 0, b_transposed = random() % 2 != 0;
      SCOPED_TRACE(fmt::format("{} {} x {} x {} batch {} {} {}", name(dtype), m, n, k, batch, a_transposed, b_transposed));
      const Tensor a = inside(batch, m, k, dtype, a_transposed, 1), b = inside(random() % 2 != 0 ? 1 : batch, k, n, dtype, b_transposed, 2);
      const Tensor all = full({batch, m + 2, n + 2}, 3, {.dtype = linalg::product_dtype(dtype, dtype), .device = device}), other = all.clone();
      auto part = [&](const Tensor& t) { return t.slice(1, 1, m + 1).slice(2, 1, n + 1); };
      const double beta = i % 5 == 2 ? 2 : 0;
      linalg::matmul_out(part(all), a, b, {.beta = beta});
      linalg::matmul_out(part(other), a, b, {.beta = beta, .implementation = "matmul_items"});
      ASSERT_EQ(all.to_bytes(), other.to_bytes());
    }
  }
}

TEST(Matmul, WithinTheBoundOfDouble) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kM = 37, kN = 70, kK = 1000;
    Tensor a = randn({kM, kK}, {.device = device, .seed = 1}), b = randn({kK, kN}, {.device = device, .seed = 2});
    std::vector<float> x = a.contiguous().to_host<float>(), y = b.to_host<float>(), got = matmul(a, b).to_host<float>();
    for (std::int64_t i = 0; i < kM; ++i)
      for (std::int64_t j = 0; j < kN; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t l = 0; l < kK; ++l) {
          double product = static_cast<double>(x[static_cast<std::size_t>(i * kK + l)]) * static_cast<double>(y[static_cast<std::size_t>(l * kN + j)]);
          sum += product, size += std::fabs(product);
        }
        ASSERT_LE(std::fabs(static_cast<double>(got[static_cast<std::size_t>(i * kN + j)]) - sum), (kK + 2) * 0x1p-24 * size);
      }
  }
}

/// CLBlast builds for half a minute on PoCL.
TEST(Matmul, HandsOverToClblast) {
  if (level() == "smoke") return;
  CLUTCH_EACH_DEVICE(device) {
    Tensor a = randn({2, 70, 90}, {.device = device, .seed = 1}), b = randn({90, 33}, {.device = device, .seed = 2});
    Tensor out = full({2, 70, 33}, 3, {.device = device}), transposed = full({2, 33, 70}, 3, {.device = device}).mT();
    try {
      linalg::matmul_out(out, a, b, {.alpha = 0.5, .beta = 2, .implementation = "clblast"});
    } catch (const Error& e) {
      if (!skip_without(device, "clblast", e.code() != ErrorCode::not_supported)) throw;
      continue;
    }
    [] {  // where the call's own strings lay
      volatile char over[4096];
      for (std::size_t i = 0; i < sizeof over; ++i) over[i] = static_cast<char>(0x5a);
    }();
    EXPECT_EQ(last_plan(), "clblast");
    linalg::matmul_out(transposed, a, b.mT().contiguous().mT(), {.alpha = 0.5, .beta = 2, .implementation = "clblast"});
    Tensor want = full({2, 70, 33}, 3, {.device = device});
    linalg::matmul_out(want, a, b, {.alpha = 0.5, .beta = 2});
    std::vector<float> x = out.to_host<float>(), y = want.to_host<float>(), z = transposed.contiguous().to_host<float>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(x[i], y[i], 1e-4f) << i;
      ASSERT_NEAR(z[i], y[i], 1e-4f) << i;
    }
    // Captured, with operands that the capture makes, it is the same call: bits do not depend on capturing.
    const linalg::MatmulOptions options{.implementation = "clblast"};
    const std::vector<std::uint8_t> eager = linalg::matmul(mul(a, 2), b, options).to_bytes();
    Stream stream(device);
    synchronize(device);
    Graph graph;
    Tensor captured;
    {
      GraphCapture capture(graph, stream);
      captured = linalg::matmul(mul(a, 2), b, options);
    }
    EXPECT_EQ(graph.nodes().back().kind, GraphNodeKind::opaque);
    for (int i = 0; i < 2; ++i) {
      graph.replay(stream);
      EXPECT_EQ(captured.to_bytes(stream), eager);
    }
    EXPECT_EQ(code_of([&] { linalg::matmul(a.to(DType::bf16), b.to(DType::bf16), {.implementation = "clblast"}); }), ErrorCode::not_supported);
  }
}

TEST(Matmul, ARowsBitsAreItsOwn) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor a = randn({50, 200}, {.device = device, .seed = 1}), b = randn({200, 77}, {.device = device, .seed = 2}), all = matmul(a, b);
    for (std::int64_t row : {0, 7, 49}) EXPECT_EQ(matmul(a.slice(0, row, row + 1), b).to_bytes(), all.slice(0, row, row + 1).contiguous().to_bytes()) << row;
    Tensor batch = randn({3, 50, 200}, {.device = device, .seed = 3});
    copy_(batch.select(0, 1), a);
    EXPECT_EQ(matmul(batch, b).select(0, 1).contiguous().to_bytes(), all.to_bytes());
    EXPECT_EQ(matmul(b.mT(), a.mT()).mT().contiguous().to_bytes(), all.to_bytes()) << "products commute, so transposes have equal bits";
  }
}

TEST(Matmul, BetaZeroNeverReadsTheOutput) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor a = full({3, 4}, 2, {.device = device}), b = full({4, 70}, 0.5, {.device = device});
    Tensor out = full({3, 70}, std::nan(""), {.device = device});
    linalg::matmul_out(out, a, b);
    EXPECT_EQ(out.to_host<float>()[209], 4);
    linalg::matmul_out(out, a, b, {.alpha = 0.5, .beta = -1});
    EXPECT_EQ(out.to_host<float>()[100], -2);
    linalg::matmul_out(out.slice(1, 1, 70, 3), a, b.slice(1, 0, 23));
    EXPECT_EQ(out.to_host<float>()[1], 4);
    EXPECT_EQ(out.to_host<float>()[0], -2);
  }
}

TEST(Matmul, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    auto f = [&](const Dims& sizes, DType dtype = DType::f32) { return zeros(sizes, {.dtype = dtype, .device = device}); };
    auto refused = [&](auto&& call) { return code_of(call); };
    EXPECT_EQ(refused([&] { matmul(f({2, 3}), f({4, 5})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([&] { matmul(f({2, 2, 3}), f({3, 3, 5})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([&] { matmul(f({}), f({3, 5})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([&] { matmul(f({2, 3}, DType::f16), f({3, 5})); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(refused([&] { matmul(f({2, 3}, DType::i32), f({3, 5}, DType::i32)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(refused([&] { linalg::matmul_out(f({2, 4}), f({2, 3}), f({3, 5})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([&] { linalg::matmul_out(f({2, 5}, DType::i32), f({2, 3}), f({3, 5})); }), ErrorCode::invalid_dtype);
    Tensor square = f({3, 3});
    EXPECT_EQ(refused([&] { linalg::matmul_out(square, square, f({3, 3})); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(refused([&] { matmul(square, square, {.implementation = "none"}); }), ErrorCode::invalid_argument);
  }
}

TEST(Matmul, SelectionByTraits) {
  DeviceTraits traits;
  traits.type = DeviceType::cpu, traits.native_width_f32 = 16, traits.native_width_f64 = 8, traits.fma_exact = traits.divide_exact = traits.sqrt_exact = true;
  EXPECT_EQ(detail::select(traits, detail::MatmulProblem{}).entry, "matmul_panels");
  EXPECT_NE(message_of([&] { detail::select(traits, detail::MatmulProblem{.a = DType::f64, .b = DType::f64, .output = DType::f64}); }).find("fp64"),
            std::string::npos);
  traits.type = DeviceType::gpu, traits.max_work_group = 256;
  EXPECT_EQ(detail::select(traits, detail::MatmulProblem{}).entry, "matmul_items") << "without local memory";
  traits.local_bytes = 65536;
  EXPECT_EQ(detail::select(traits, detail::MatmulProblem{}).entry, "matmul_tiles");
}

/// Batches that go as f32 have the bits of the reference.
TEST(Matmul, NarrowBatchesOfShortTypes) {
  CLUTCH_EACH_DEVICE(device) {
    for (auto [of_a, of_b] : {std::pair{DType::bf16, DType::bf16}, {DType::f16, DType::f16}, {DType::i8, DType::i8}, {DType::u8, DType::i8}})
      for (auto [m, n, k] : {std::array<std::int64_t, 3>{4, 4, 4}, {5, 7, 6}, {1, 15, 16}, {16, 3, 16}}) {
        const bool bytes = !is_floating(of_a);
        auto operand = [&](const Dims& sizes, DType dtype, std::uint64_t from) {
          Tensor x = randn(sizes, {.device = device, .seed = from});
          return bytes ? map([](Expr v) { return floor(v * 40.0f); }, x).to(dtype) : x.to(dtype);
        };
        Tensor a = operand({70, m, k}, of_a, 1), b = operand({70, n, k}, of_b, 2).mT();
        if (of_a == DType::u8) a = map([](Expr v) { return abs(v); }, operand({70, m, k}, DType::i8, 1)).to(DType::u8);
        for (double alpha : {1.0, 2.0})
          EXPECT_EQ(matmul(a, b, {.alpha = alpha}).to_bytes(), matmul(a, b, {.alpha = alpha, .implementation = "matmul_items"}).to_bytes())
              << name(of_a) << " " << m << " " << n << " " << k << " alpha " << alpha;
        Tensor out = empty({70, m, n}, {.dtype = bytes ? DType::i32 : DType::f32, .device = device}), other = out.clone();
        linalg::matmul_out(out, a, b);
        linalg::matmul_out(other, a, b, {.implementation = "matmul_items"});
        EXPECT_EQ(out.to_bytes(), other.to_bytes()) << name(of_a);
      }
  }
}

}}  // namespace clutch::testing
