// SPDX-License-Identifier: Apache-2.0
#include "cases/map.hpp"

#include "expr/index_patterns.hpp"
#include "expr/random_function.hpp"
#include "ops/map_plan.hpp"
#include "support/fixture.hpp"

#include <clutch/pointwise.hpp>

#include <bit>
#include <thread>

namespace clutch::testing { namespace {

using cases::MapCase;
using cases::Operand;

/// Runs a function on guarded operands, all outputs in one launch, and compares with the host evaluator.
std::string run_function(const Device& device, const ExprFunction& f, const std::vector<Operand>& inputs, std::vector<Operand> outputs,
                         const std::string& implementation = {}) {
  std::vector<Guarded> memory;
  memory.reserve(inputs.size() + outputs.size());
  std::vector<Tensor> in, out;
  for (const Operand& o : inputs) in.push_back(memory.emplace_back(device, o.dtype, o.sizes, o.strides, o.lead, &o.raw).view());
  for (const Operand& o : outputs) out.push_back(memory.emplace_back(device, o.dtype, o.sizes, o.strides, o.lead).view());
  map_out(out, f, in, {.implementation = implementation});
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    MapCase::expect(f, static_cast<int>(k), inputs, outputs[k]);
    std::string wrong = compare_bits(memory[inputs.size() + k].get(), outputs[k].raw, outputs[k].dtype, !device.traits().denormals);
    if (!wrong.empty() && wrong.find("all zero") == std::string::npos) return fmt::format("output {}: {}\n{}", k, wrong, f.text());
  }
  return {};
}

Operand random_operand(DType dtype, const Dims& sizes, const Dims& strides, std::uint64_t k) {
  return {dtype, sizes, strides, model::make_values(static_cast<std::size_t>(numel(sizes)), dtype, seed() + k)};
}

TEST(Map, WidenedIntegersCompareWithConstants) {
  CLUTCH_EACH_DEVICE(device) {
    const std::vector<std::int32_t> numbers{std::numeric_limits<std::int32_t>::min(), -5, -1, 0, 3, std::numeric_limits<std::int32_t>::max()};
    const Tensor x = from_host(numbers, {6}, device);
    for (std::int64_t bound :
         {std::int64_t{-1}, std::int64_t{0}, std::int64_t{3}, std::int64_t{1} << 31, -(std::int64_t{1} << 31), std::int64_t{-3'000'000'000}}) {
      const std::vector<std::int32_t> got = map(
                                                [&](Expr i) {
                                                  const Expr wide = cast(i, DType::i64), number(bound);
                                                  return select(wide < number, Expr(1), Expr(0)) + select(wide <= number, Expr(2), Expr(0)) +
                                                         select(number < wide, Expr(4), Expr(0)) + select(number <= wide, Expr(8), Expr(0));
                                                },
                                                {x})
                                                .to_host<std::int32_t>();
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        const std::int64_t n = numbers[k];
        EXPECT_EQ(got[k], (n < bound) + 2 * (n <= bound) + 4 * (bound < n) + 8 * (bound <= n)) << n << " and " << bound;
      }
    }
  }
}

TEST(Map, LambdaOfTheDocumentation) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = arange(-5, 100, 0.5, {.device = device}), t = full({1}, 3, {.device = device});
    Tensor y = map([](Expr a, Expr b) { return select(a > b, a * tanh(a), 0.0f); }, x, t);
    std::vector<float> got = y.to_host<float>(), in = x.to_host<float>();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], in[i] > 3 ? in[i] * std::tanh(in[i]) : 0.0f, 1e-5f) << i;
    auto [sum, is_less] = map([](Expr a, Expr b) { return std::tuple{a + b, a < b}; }, x, t);
    EXPECT_EQ(sum.dtype(), DType::f32);
    EXPECT_EQ(is_less.dtype(), DType::boolean);
    EXPECT_EQ(sum.to_host<float>()[1], -1.5f);
  }
}

TEST(Map, EveryOperationHasTheEvaluatorsBits) {
  CLUTCH_EACH_DEVICE(device) {
    bool fp64 = !skip_without(device, "fp64", device.traits().fp64);
    const Dims sizes{67};
    int functions = level() == "nightly" ? 400 : 16;
    for (int k = 0; k < functions; ++k) {
      RandomFunction random(seed() + static_cast<std::uint64_t>(k), fp64 && k % 2 == 0, 30);
      std::vector<Operand> inputs, outputs;
      for (std::size_t i = 0; i < random.inputs.size(); ++i)
        inputs.push_back(random_operand(random.inputs[i], sizes, {}, 31 * static_cast<std::uint64_t>(k) + i));
      for (int o = 0; o < random.function.output_count(); ++o) outputs.push_back({random.function.output_dtype(o), sizes, {}, {}});
      ASSERT_EQ(run_function(device, random.function, inputs, outputs), "") << "function " << k;
    }
  }
}

TEST(Map, LengthsAndDtypes) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::boolean, DType::u16,
                        DType::u32, DType::u64}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      DType traced = detail::compute_dtype(dtype, "test");
      ExprFunction f = trace([](Expr a, Expr b) { return select(a < b, a + b, a * b); }, std::array{traced, traced});
      for (std::int64_t n : MapCase::lengths(level())) {
        if (n > 9000 && level() == "smoke" && dtype != DType::f32) continue;
        ASSERT_EQ(run_function(device, f, {random_operand(dtype, {n}, {}, 1), random_operand(dtype, {n}, {}, 2)}, {{dtype, {n}, {}, {}}}), "")
            << name(dtype) << " " << n;
      }
    }
  }
}

struct LayoutCase {
  const char* name;
  Dims sizes[3];
  Dims strides[3];
};

TEST(Map, EveryLayoutOnEveryImplementationThatAccepts) {
  const LayoutCase layouts[] = {
      {"contiguous", {{5, 7, 33}, {5, 7, 33}, {5, 7, 33}}, {}},
      {"broadcast", {{5, 7, 33}, {5, 1, 33}, {7, 1}}, {}},
      {"rows apart", {{9, 40}, {9, 40}, {9, 1}}, {{64, 1}, {50, 1}, {}}},
      {"short rows", {{40, 5}, {40, 5}, {5}}, {{7, 1}, {}, {}}},
      {"transposed", {{31, 18}, {31, 18}, {31, 18}}, {{1, 31}, {18, 1}, {1, 31}}},
      {"every third", {{500}, {500}, {1}}, {{3}, {2}, {}}},
      {"rows that fill vectors", {{3, 5, 41}, {3, 5, 41}, {3, 5, 1}}, {{700, 130, 3}, {1, 3, 15}, {}}},
      {"rows across tiles", {{3, 71, 45}, {3, 71, 45}, {71, 1}}, {{4000, 50, 1}, {3200, 45, 1}, {2, 1}}},
      {"short rows across tiles", {{900, 5, 3}, {900, 5, 3}, {3}}, {{40, 8, 2}, {1, 900, 4500}, {2}}},
      {"short rows of contiguous outputs", {{900, 5, 3}, {900, 5, 3}, {3}}, {{}, {1, 900, 4500}, {2}}},
      {"short rows apart of contiguous outputs", {{3001, 3}, {3001, 3}, {3001, 1}}, {{}, {4, 1}, {}}},
      {"adjacent, alike, neither", {{9000, 17}, {9000, 17}, {9000, 1}}, {{18, 1}, {1, 9000}, {3, 1}}},
      {"rank 0", {{}, {}, {}}, {}},
      {"rank 7", {{2, 3, 2, 3, 2, 2, 5}, {2, 1, 2, 3, 1, 2, 5}, {3, 2, 3, 2, 1, 5}}, {}},
      {"rank 10", {{2, 1, 2, 2, 2, 2, 2, 2, 2, 3}, {2, 1, 1, 2, 1, 2, 1, 2, 1, 3}, {1, 2, 1, 2, 1, 2, 1, 2, 1}}, {}},
  };
  CLUTCH_EACH_DEVICE(device) {
    ExprFunction f = trace([](Expr a, Expr b) { return std::array{a - b * 3, fma(a, b, 1)}; }, std::array{DType::f32, DType::f32});
    for (const LayoutCase& c : layouts)
      for (std::string implementation : {"", "map_contiguous", "map_rows", "map_strided"}) {
        std::string wrong;
        ErrorCode code = code_of([&] {
          wrong = run_function(device, f, {random_operand(DType::f32, c.sizes[1], c.strides[1], 1), random_operand(DType::bf16, c.sizes[2], c.strides[2], 2)},
                               {{DType::f32, c.sizes[0], c.strides[0], {}}, {DType::f16, c.sizes[0], c.strides[0], {}}}, implementation);
        });
        if (code == ErrorCode::not_supported && !implementation.empty()) continue;
        ASSERT_EQ(code, ErrorCode::ok) << c.name;
        ASSERT_EQ(wrong, "") << c.name << " " << implementation;
        if (!implementation.empty()) {
          EXPECT_EQ(last_plan().substr(0, implementation.size()), implementation);
        }
      }
  }
}

TEST(Map, LongFunctionsSideBySideHaveTheEvaluatorsBits) {
  CLUTCH_EACH_DEVICE(device) {
    // One value at a time, several of them, and so many that registers have room for two vectors alone.
    const ExprFunction chain = trace(
        [](Expr a) {
          for (int i = 0; i < 120; ++i) a = i % 3 == 2 ? a * 0.99f : a + 0.25f * static_cast<float>(i % 5);
          return a;
        },
        std::array{DType::f32});
    const ExprFunction two = trace(
        [](Expr a, Expr b, Expr m) {
          const Expr x = tanh(a) * sigmoid(b), y = select(m, exp(x - b), cast(x, DType::f16)), z = param(0.5) * y + position(0);
          return std::array{z, cast(y * 100, DType::i8), m & (z < a)};
        },
        std::array{DType::f32, DType::f32, DType::boolean});
    const ExprFunction wide = trace(
        [](Expr a) {
          std::vector<Expr> terms;
          for (int i = 0; i < 10; ++i) terms.push_back(sqrt(abs(a) + i) * fma(a, a, 0.1f * static_cast<float>(i)));
          Expr sum = terms.front();
          for (const Expr& t : terms) sum = sum * 0.5f + t / (1 + abs(a));
          return sum;
        },
        std::array{DType::f32});
    auto random = [&](DType dtype, const Dims& sizes, const Dims& strides = {}) {
      return random_operand(dtype, sizes, strides, static_cast<std::uint64_t>(sizes[0]));
    };
    for (std::int64_t n : {1, 15, 16, 31, 32, 33, 127, 128, 129, 255, 8192 + 128 + 17}) {
      ASSERT_EQ(run_function(device, chain, {random(DType::f32, {n})}, {{DType::f32, {n}, {}, {}}}), "") << n;
      EXPECT_EQ(last_plan().find("SIDES") != std::string::npos, device.traits().native_width_f32 >= 4 && device.type() == DeviceType::cpu) << last_plan();
      ASSERT_EQ(run_function(device, wide, {random(DType::bf16, {n})}, {{DType::f32, {n}, {}, {}}}), "") << n;
      ASSERT_EQ(run_function(device, two, {random(DType::f32, {n}), random(DType::f16, {n}), random(DType::boolean, {n})},
                             {{DType::f16, {n}, {}, {}}, {DType::i8, {n}, {}, {}}, {DType::boolean, {n}, {}, {}}}),
                "")
          << n;
      // Rows apart, one operand the same for each row, over the input.
      ASSERT_EQ(run_function(device, two, {random(DType::f32, {3, n}, {n + 7, 1}), random(DType::f16, {3, 1}), random(DType::boolean, {n})},
                             {{DType::f16, {3, n}, {n + 5, 1}, {}}, {DType::i8, {3, n}, {n, 1}, {}}, {DType::boolean, {3, n}, {n + 1, 1}, {}}}),
                "")
          << n;
      const Tensor x = randn({n}, {.device = device, .seed = 5}), apart = map(chain, std::span(&x, 1), {.implementation = "map_strided"})[0];
      map_out(std::span(&x, 1), chain, std::span(&x, 1));
      EXPECT_EQ(x.to_bytes(), apart.to_bytes()) << n;
    }
    if (skip_without(device, "fp64", device.traits().fp64)) continue;
    const ExprFunction doubles = trace(
        [](Expr a, Expr i) {
          return std::array{exp(tanh(a)), cast(floor_div(i * 3, 7) + 1, DType::f64)};
        },
        std::array{DType::f64, DType::i64});
    for (std::int64_t n : {63, 64, 65, 300})
      ASSERT_EQ(run_function(device, doubles, {random(DType::f64, {n}), random(DType::i64, {n})}, {{DType::f64, {n}, {}, {}}, {DType::f64, {n}, {}, {}}}), "")
          << n;
  }
}

TEST(Map, RoundingToHalfPrecisionIsThatOfStores) {
  CLUTCH_EACH_DEVICE(device) {
    // All floats but the lower 12 bits, at which no rounding to f16 changes, and their neighbours around halves of the last place.
    for (std::uint32_t low : {0u, 1u, 0xFFFu}) {
      std::vector<float> all;
      for (std::uint64_t u = 0; u < (std::uint64_t{1} << 32); u += level() == "nightly" ? 1u << 12 : 5u << 12)
        all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(u) | low));
      const Tensor x = from_host(all, {static_cast<std::int64_t>(all.size())}, device);
      const Tensor rounded = map([](Expr a) { return cast(a, DType::f16) + 0.0f; }, {x}), stored = x.to(DType::f16).to(DType::f32);
      EXPECT_EQ(compare_bits(add(rounded, 0).to_bytes(), add(stored, 0).to_bytes(), DType::f32, !device.traits().denormals), "") << low;
    }
  }
}

TEST(Map, PositionsParamsAndCapturedTensors) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor table = from_host<float>({10, 20, 30}, device), x = zeros({4, 5}, {.device = device});
    auto bias = captured(table);
    auto run = [&](double scale) { return map([&](Expr a) { return a + bias[floor_mod(position(1), 4)] * param(scale) + position(0); }, x).to_host<float>(); };
    std::vector<float> got = run(2);
    auto before = build_counters();
    std::vector<float> again = run(3);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded) << "another param builds nothing";
    for (std::size_t i = 0; i < 20; ++i) {
      const std::size_t row = i / 5;
      float entry = static_cast<float>(10 * std::min<std::size_t>(i % 5 % 4 + 1, 3));  // index 3 is clamped to 2
      ASSERT_EQ(got[i], entry * 2 + static_cast<float>(row)) << i;
      ASSERT_EQ(again[i], entry * 3 + static_cast<float>(row)) << i;
    }
    // Two indices, a transposed table, negative indices clamped.
    Tensor square = arange(0, 6, 1, {.device = device}).reshape({2, 3}).mT();
    auto lookup = captured(square);
    Tensor y = map([&](Expr a) { return a + lookup[{position(0) - 1, position(1)}]; }, zeros({4, 2}, {.device = device}));
    EXPECT_EQ(y.to_host<float>(), (std::vector<float>{0, 3, 0, 3, 1, 4, 2, 5}));
    EXPECT_EQ(code_of([&] { map([&](Expr a) { return a + lookup[position(0)]; }, x); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { map([&](Expr a) { return bias[a]; }, x); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { map([&](Expr a) { return a + position(2); }, x); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { map(ExprFunction::parse("inputs f32\nbuffers f32/0\n%1 = gather 0\noutputs %1"), std::span(&x, 1)); }),
              ErrorCode::invalid_argument);
  }
}

TEST(Map, CapturedTensorsAtPlacesThatGoOnAlongARow) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : level() == "smoke" ? std::vector{DType::f32, DType::i8} : std::vector{DType::f32, DType::bf16, DType::i8, DType::i64})
      for (std::int64_t columns : level() == "smoke" ? std::vector<std::int64_t>{17, 1003} : std::vector<std::int64_t>{1, 15, 16, 17, 100, 1003})
        for (std::int64_t pad : {0, 3}) {
          constexpr std::int64_t kRows = 5;
          SCOPED_TRACE(fmt::format("{} {} pad {}", name(dtype), columns, pad));
          std::vector<std::int32_t> values(static_cast<std::size_t>(kRows * columns));
          for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i % 61);
          const Tensor table = from_host(values, {kRows, columns}, device).to(dtype);
          const auto lookup = captured(table);
          // Down, on by some, which the last place bounds, and along the other dimension.
          struct Case {
            std::function<Expr()> read;
            std::function<std::int64_t(std::int64_t, std::int64_t)> place;
          };
          const Case cases[] = {{[&] {
                                   return lookup[{position(0), clutch::param(columns - 1) - position(1)}];
                                 },
                                 [&](auto i, auto j) { return i * columns + columns - 1 - j; }},
                                {[&] {
                                   return lookup[{clutch::param(kRows - 1) - position(0), position(1)}];
                                 },
                                 [&](auto i, auto j) { return (kRows - 1 - i) * columns + j; }},
                                {[&] {
                                   return lookup[{position(0), position(1) + clutch::param(std::int64_t{3})}];
                                 },
                                 [&](auto i, auto j) { return i * columns + std::min(j + 3, columns - 1); }},
                                {[&] {
                                   return lookup[{position(0), position(1) - clutch::param(std::int64_t{2})}];
                                 },
                                 [&](auto i, auto j) { return i * columns + std::max<std::int64_t>(j - 2, 0); }},
                                {[&] {
                                   return lookup[{position(1), position(0)}];
                                 },
                                 [&](auto i, auto j) { return std::min(j, kRows - 1) * columns + std::min(i, columns - 1); }}};
          for (std::size_t k = 0; k < std::size(cases); ++k) {
            const Tensor memory = full({kRows, columns + pad}, 99, {.dtype = dtype, .device = device}), out = memory.slice(1, 0, columns);
            const Expr value = cases[k].read();
            map_out(std::span(&out, 1), ExprFunction({}, std::span(&value, 1)), {});
            const std::vector<std::int32_t> got = memory.to(DType::i32).to_host<std::int32_t>();
            for (std::int64_t i = 0; i < kRows; ++i)
              for (std::int64_t j = 0; j < columns + pad; ++j)
                ASSERT_EQ(got[static_cast<std::size_t>(i * (columns + pad) + j)], j < columns ? values[static_cast<std::size_t>(cases[k].place(i, j))] : 99)
                    << "case " << k << " at " << i << ", " << j << ": " << last_plan();
          }
        }
  }
}

TEST(Map, OpenclTextOfEveryDtype) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t n : {1, 5, 1000}) {
      const Tensor x = arange(0, static_cast<double>(n), 1, {.dtype = DType::i32, .device = device});
      const auto [of_floats, of_longs, of_ints] = map(
          [](Expr i) {
            const Expr f = opencl(DType::f32, {"x0 * 0.5f + x1"}, {cast(i, DType::f32), param(2.0)});
            const Expr l = opencl(DType::i64, {"x0 << 33"}, {cast(i, DType::i64)});
            const Expr odd = opencl(DType::boolean, {"(x0 & 1) == 1"}, {i});
            const Expr chosen = opencl(DType::i32, {"x0 & x1"}, {odd, i});
            return std::tuple{f, l, select(odd & (f > 3), i, chosen - 1)};
          },
          x);
      const auto f = of_floats.to_host<float>();
      const auto l = of_longs.to_host<std::int64_t>();
      const auto c = of_ints.to_host<std::int32_t>();
      for (std::int32_t i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        ASSERT_EQ(f[k], static_cast<float>(i) * 0.5F + 2);
        ASSERT_EQ(l[k], std::int64_t{i} << 33);
        const bool odd = i % 2 == 1;
        ASSERT_EQ(c[k], odd && f[k] > 3 ? i : (odd ? i : 0) - 1);
      }
    }
  }
}

TEST(Map, GradientsOfCapturedTensors) {
  CLUTCH_EACH_DEVICE(device) {
    // Whole numbers, so that sums are exact in any order. The table is read where it lies, transposed, at computed places, and clamped.
    const std::int64_t n = 6, m = 37;
    auto whole = [&](const Dims& sizes, std::uint64_t s) { return round(mul(rand(sizes, {.device = device, .seed = s}), 8.0)); };
    Tensor x = whole({n, m}, 1), g = whole({n, m}, 2), bias = whole({m}, 3), wide = whole({m + 2, n + 1}, 4), square = whole({n, m}, 5), line = whole({9}, 6);
    auto f = [&](Expr a) {
      Expr relative = captured(line)[position(1) - position(0)];
      return a * captured(bias)[position(1)] + captured(wide)[{position(-1), position(0)}] * a * a + captured(square)[{position(0), position(1)}] * relative +
             captured(bias)[floor_div(position(1), 2)];
    };
    std::vector<Tensor> got = captured_backward({g}, f, {x});
    ASSERT_EQ(got.size(), 4u);
    std::vector<float> hx = x.to_host<float>(), hg = g.to_host<float>(), hs = square.to_host<float>(), hl = line.to_host<float>();
    std::vector<float> of_bias(m), of_wide((m + 2) * (n + 1)), of_square(n * m), of_line(9);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < m; ++j) {
        std::size_t k = i * m + j, r = j < i ? 0 : std::min<std::size_t>(j - i, 8);
        of_bias[j] += hg[k] * hx[k];
        of_bias[j / 2] += hg[k];
        of_wide[j * (n + 1) + i] += hg[k] * hx[k] * hx[k];
        of_square[k] += hg[k] * hl[r];
        of_line[r] += hg[k] * hs[k];
      }
    ExprFunction traced = trace(f, std::array{DType::f32});
    for (int k = 0; k < 4; ++k) {
      const Tensor& of = traced.captured_tensor(k);
      const std::vector<float>& want = of.numel() == 9 ? of_line : of.numel() == m ? of_bias : of.numel() == n * m ? of_square : of_wide;
      EXPECT_EQ(got[static_cast<std::size_t>(k)].sizes(), of.sizes());
      EXPECT_EQ(got[static_cast<std::size_t>(k)].to_host<float>(), want) << "captured tensor " << k;
    }
    // backward() takes captured tensors for constants; integer ones have no gradient, unread ones a gradient of 0.
    Tensor index = arange(0, m, 1, {.dtype = DType::i32, .device = device}), half = line.to(DType::bf16);
    auto lookup = [&](Expr a) { return std::array{a * captured(half)[captured(index)[position(1)]], cast(floor(captured(bias)[position(1)]), DType::f32)}; };
    std::vector<Tensor> looked = captured_backward({g, g}, lookup, {x});
    ASSERT_EQ(looked.size(), 2u);
    EXPECT_EQ(looked[0].dtype(), DType::bf16);
    std::vector<float> of_half(9), of_x(n * m);
    for (std::size_t k = 0; k < n * m; ++k) of_half[std::min<std::size_t>(k % m, 8)] += hg[k] * hx[k], of_x[k] = hg[k] * hl[std::min<std::size_t>(k % m, 8)];
    Tensor rounded = from_host(of_half, {9}, device).to(DType::bf16);
    EXPECT_EQ(looked[0].to_bytes(), rounded.to_bytes());
    EXPECT_EQ(looked[1].to_host<float>(), std::vector<float>(m, 0));
    EXPECT_EQ(map_backward({g, g}, lookup, {x})[0].to_host<float>(), of_x);
    // Other sizes build nothing, a single element takes it all, and functions that capture nothing have none.
    auto before = build_counters();
    Tensor longer = whole({3, 41}, 7), other = whole({13}, 8).to(DType::bf16), more = arange(0, 41, 1, {.dtype = DType::i32, .device = device}),
           last = whole({41}, 9);
    auto again = [&](Expr a) { return std::array{a * captured(other)[captured(more)[position(1)]], cast(floor(captured(last)[position(1)]), DType::f32)}; };
    captured_backward({longer, longer}, again, {longer});
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
    Tensor one = full({}, 3, {.device = device});
    EXPECT_EQ(captured_backward({full({3}, 2, {.device = device})}, [&](Expr a) { return a * captured(one).at({}); }, {from_host<float>({1, 2, 4}, device)})[0]
                  .to_host<float>(),
              std::vector<float>{14});
    EXPECT_EQ(code_of([&] { captured_backward({g}, [](Expr a) { return a; }, {x}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { captured_backward({g, g}, f, {x}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { captured_backward({Tensor()}, f, {x}); }), ErrorCode::invalid_argument);
  }
}

/// Tables read at every kind of place, one and two indices, some tables at a time, against loops. Whole numbers, so that sums are exact in any order.
TEST(Map, GradientsOfCapturedTensorsAtEveryPatternOfIndices) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().simulator) continue;
    constexpr std::int64_t kB = 2, kH = 2, kQ = 4, kKv = 5;
    constexpr std::int64_t kSizes[] = {5, 4};
    const std::vector<IndexPattern> all = index_patterns(kQ, kKv);
    std::vector<std::vector<const IndexPattern*>> reads;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (level() == "nightly" || all[i].plain) reads.push_back({&all[i]});
      for (std::size_t j = 0; j < all.size(); ++j)
        if (level() == "nightly" || (all[i].plain && all[j].plain && (i + j) % 3 == 0)) reads.push_back({&all[i], &all[j]});
    }
    // The gradient alone has all places; the inputs broadcast.
    auto whole = [&](const Dims& sizes, std::uint64_t s) { return round(mul(rand(sizes, {.device = device, .seed = s}), 8.0)); };
    const Tensor x = whole({kB, kH, kQ, kKv}, 1), y = whole({kQ, 1}, 2), g = whole({kB, kH, kQ, kKv}, 3);
    const std::vector<double> hx = values(x), hy = values(y), hg = values(g);
    constexpr std::size_t kTogether = 5;
    for (std::size_t begin = 0; begin < reads.size(); begin += kTogether) {
      const std::span some = std::span(reads).subspan(begin, std::min(kTogether, reads.size() - begin));
      std::vector<Tensor> tables;
      for (const auto& read : some) tables.push_back(whole(read.size() == 1 ? Dims{kSizes[0]} : Dims{kSizes[0], kSizes[1]}, 10 + tables.size()));
      auto f = [&](Expr a, Expr b) {
        auto at = [](int d) { return cast(position(d), DType::i32); };
        Expr sum = a;
        for (std::size_t n = 0; n < some.size(); ++n) {
          std::vector<Expr> indices;
          // Positions themselves are read as such.
          for (const IndexPattern* p : some[n])
            indices.push_back(p->name == "q" ? position(2) : p->name == "kv" ? position(-1) : p->traced(at(0), at(-3), at(2), at(3)));
          sum = sum + captured(tables[n]).at(indices) * (n % 2 == 0 ? a : b);
        }
        return sum;
      };
      const std::vector<Tensor> got = captured_backward({g}, f, {x, y});
      ASSERT_EQ(got.size(), some.size());
      for (std::size_t n = 0; n < some.size(); ++n) {
        std::vector<double> want(static_cast<std::size_t>(tables[n].numel()));
        std::size_t i = 0;
        for (std::int64_t b = 0; b < kB; ++b)
          for (std::int64_t h = 0; h < kH; ++h)
            for (std::int64_t q = 0; q < kQ; ++q)
              for (std::int64_t kv = 0; kv < kKv; ++kv, ++i) {
                std::int64_t at = 0;
                for (std::size_t d = 0; d < some[n].size(); ++d)
                  at = at * kSizes[d] + std::clamp<std::int64_t>(some[n][d]->host(b, h, q, kv), 0, kSizes[d] - 1);
                want[static_cast<std::size_t>(at)] += hg[i] * (n % 2 == 0 ? hx[i] : hy[static_cast<std::size_t>(q)]);
              }
        EXPECT_EQ(values(got[n]), want) << some[n][0]->name << (some[n].size() > 1 ? ", " + some[n][1]->name : "");
      }
    }
  }
}

TEST(Map, TransposedInputsHaveTheBitsOfContiguousOnes) {
  CLUTCH_EACH_DEVICE(device) {
    for (const Dims& sizes : {Dims{70, 90}, Dims{3, 50, 40}, Dims{600, 9}, Dims{9, 600}, Dims{5, 6}}) {
      SCOPED_TRACE(to_string(sizes));
      const Tensor x = randn(sizes, {.device = device, .seed = 1}), y = randn({sizes[sizes.rank() - 2]}, {.device = device, .seed = 2});
      auto f = [](Expr a, Expr b) { return a * b + position(0) * 0.5f; };
      EXPECT_EQ(map(f, {x.mT(), y}).to_bytes(), map(f, {x.mT().contiguous(), y}).to_bytes());
      const Tensor out = empty(sizes, {.device = device}), other = x.clone();
      map_out(out, f, {x, x.clone()});
      map_out(out.mT(), f, {x.mT(), other.mT()});
      EXPECT_EQ(out.mT().contiguous().to_bytes(), map(f, {x.mT().contiguous(), x.mT().contiguous()}).to_bytes());
    }
  }
}

TEST(Map, InPlaceAndOverlaps) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = arange(0, 1000, 1, {.device = device});
    map_out(x, [](Expr a, Expr b) { return a + 2 * b; }, {x, x});
    EXPECT_EQ(x.to_host<float>()[999], 2997);
    Tensor line = arange(0, 100, 1, {.device = device});
    auto add_one = [](Expr a) { return a + 1; };
    EXPECT_EQ(code_of([&] { map_out(line.slice(0, 1, 100), add_one, {line.slice(0, 0, 99)}); }), ErrorCode::invalid_overlap);
    ExprFunction two = trace([](Expr a) { return std::array{a, a + 1}; }, std::array{DType::f32});
    const Tensor same[] = {line, line};
    Tensor other = zeros({100}, {.device = device});
    EXPECT_EQ(code_of([&] { map_out(same, two, std::span(&other, 1)); }), ErrorCode::invalid_overlap);
    auto table = captured(line);
    EXPECT_EQ(code_of([&] { map_out(line.slice(0, 0, 50), [&](Expr a) { return a + table[position(0)]; }, {other.slice(0, 0, 50)}); }),
              ErrorCode::invalid_overlap);
    // A captured tensor is read at any place, so it may not be written even where it is the output itself.
    auto shared = captured(x);
    EXPECT_EQ(code_of([&] { map_out(x, [&](Expr a) { return a + shared[999 - position(0)]; }, {full({1000}, 1, {.device = device})}); }),
              ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { map_out(x, [&](Expr a) { return a + shared[position(0)]; }, {x}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(x.to_host<float>()[999], 2997) << "nothing was written";
  }
}

TEST(Map, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor a = zeros({3, 4}, {.device = device});
    auto sum = [](Expr x, Expr y) { return x + y; };
    EXPECT_EQ(code_of([&] { map(sum, a, zeros({5}, {.device = device})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { map_out(zeros({3, 1}, {.device = device}), sum, {a, a}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { map(sum, a, a.to(DType::c64)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { map(sum, a, a.to(DType::f8e5m2)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { map(sum, {a, a}, {.dtype = {DType::f32, DType::f32}}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { map(sum, {a, a}, {.dtype = {DType::c64}}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { map(sum, a, Tensor()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { map(sum, {a, a}, {.implementation = "map_fast"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { map(ExprFunction(), std::span(&a, 1)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { map(trace(sum, std::array{DType::f32, DType::f32}), std::span(&a, 1)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { map(trace([](Expr x) { return x; }, std::array{DType::i32}), std::span(&a, 1)); }), ErrorCode::invalid_dtype);
    std::vector<Tensor> many(30, a);
    std::vector<DType> dtypes(30, DType::f32);
    std::vector<Expr> inputs;
    for (int i = 0; i < 30; ++i) inputs.push_back(detail::expr_input(i, DType::f32));
    Expr total = inputs[0];
    for (int i = 1; i < 30; ++i) total = total + inputs[static_cast<std::size_t>(i)];
    EXPECT_EQ(code_of([&] { map(ExprFunction(dtypes, std::span(&total, 1)), many); }), ErrorCode::invalid_argument);
  }
}

TEST(Map, ManyTensorsOfManyDimensions) {
  CLUTCH_EACH_DEVICE(device) {
    // Twenty transposed tensors of rank 6: their shapes do not fit into the arguments, so they are copied.
    std::vector<Tensor> tensors;
    std::vector<DType> dtypes(20, DType::f32);
    Expr total = detail::expr_input(0, DType::f32);
    for (int i = 0; i < 20; ++i) {
      Tensor t = full({2, 3, 2, 3, 2, 2}, i + 1, {.device = device});
      tensors.push_back(i % 2 ? t.slice(3, 0, 1) : t.transpose(0, 2).transpose(3, 5).slice(5, 0, 1).transpose(5, 3).slice(3, 0, 1));
      if (i > 0) total = total + detail::expr_input(i, DType::f32);
    }
    for (Tensor& t : tensors) t = t.slice(3, 0, 1);
    Tensor sum = map(ExprFunction(dtypes, std::span(&total, 1)), tensors)[0];
    EXPECT_EQ(sum.to_host<float>()[0], 210);
  }
}

TEST(Map, ResultDtypes) {
  CLUTCH_EACH_DEVICE(device) {
    auto make = [&](DType d, const Dims& sizes = {3}) { return full(sizes, 2, {.dtype = d, .device = device}); };
    EXPECT_EQ(add(make(DType::f16), make(DType::f16)).dtype(), DType::f16);
    EXPECT_EQ(add(make(DType::f16), make(DType::bf16)).dtype(), DType::f32);
    EXPECT_EQ(add(make(DType::i8), make(DType::u8)).dtype(), DType::i16);
    EXPECT_EQ(add(make(DType::i64), make(DType::f16)).dtype(), DType::f16);
    EXPECT_EQ(mul(make(DType::i32), 2.5).dtype(), DType::f32);
    EXPECT_EQ(mul(make(DType::i16), 2).dtype(), DType::i16);
    EXPECT_EQ(div(make(DType::i64), make(DType::i64)).dtype(), DType::f32);
    EXPECT_EQ(exp(make(DType::i32)).dtype(), DType::f32);
    EXPECT_EQ(lt(make(DType::f32), make(DType::i8)).dtype(), DType::boolean);
    // The condition's dtype does not count.
    for (DType condition : {DType::boolean, DType::u8, DType::i64, DType::f32})
      for (DType d : {DType::boolean, DType::u8, DType::i16, DType::bf16}) EXPECT_EQ(where(make(condition), make(d), make(d)).dtype(), d);
    EXPECT_EQ(map([](Expr x) { return cast(x, DType::i8); }, make(DType::f32)).dtype(), DType::i8);
    EXPECT_EQ(map([](Expr x) { return x; }, {make(DType::f32)}, {.dtype = {DType::bf16}}).dtype(), DType::bf16);
    if (!skip_without(device, "fp64", device.traits().fp64)) {
      Tensor weak = make(DType::f64, {}), sum = add(make(DType::f32), weak);
      EXPECT_EQ(sum.dtype(), DType::f32);
      EXPECT_EQ(sum.to_host<float>()[0], 4);
      EXPECT_EQ(add(make(DType::f32), make(DType::f64)).dtype(), DType::f64);
    }
  }
}

TEST(Map, NamedOps) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = from_host<float>({-2.5f, -1, -0.0f, 0.5f, 3}, device), y = from_host<float>({1, -1, 2, 0.25f, 3}, device);
    auto is = [&](const Tensor& t, std::vector<float> want) {
      std::vector<float> got = t.to(DType::f32).to_host<float>();
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-6f * std::max(1.0f, std::fabs(want[i]))) << last_plan() << " " << i;
    };
    is(add(x, y), {-1.5f, -2, 2, 0.75f, 6});
    is(sub(x, y), {-3.5f, 0, -2, 0.25f, 0});
    is(mul(x, 3), {-7.5f, -3, 0, 1.5f, 9});
    is(div(x, y), {-2.5f, 1, 0, 2, 1});
    is(neg(x), {2.5f, 1, 0, -0.5f, -3});
    is(relu(x), {0, 0, 0, 0.5f, 3});
    is(clamp(x, -1, 0.75), {-1, -1, 0, 0.5f, 0.75f});
    is(clamp(x, neg(abs(y)), abs(y)), {-1, -1, 0, 0.25f, 3});
    // A bound that is NaN makes NaN, as PyTorch's does.
    const Tensor nan = full({5}, NAN, {.device = device});
    for (const Tensor& t : {clamp(x, nan, abs(y)), clamp(x, neg(abs(y)), nan)})
      for (float got : t.to_host<float>()) EXPECT_TRUE(std::isnan(got));
    is(where(lt(x, y), x, y), {-2.5f, -1, 0, 0.25f, 3});
    is(minimum(x, y), {-2.5f, -1, 0, 0.25f, 3});
    is(maximum(x, y), {1, -1, 2, 0.5f, 3});
    is(lerp(x, y, 0.25), {-1.625f, -1, 0.5f, 0.4375f, 3});
    is(add_scaled(x, y, 2), {-0.5f, -3, 4, 1, 9});
    is(gelu(x), {-0.01552417f, -0.15865525f, 0, 0.34573123f, 2.9959502f});
    is(gelu(x, GeluForm::tanh), {-0.0150841f, -0.158808f, 0, 0.345714f, 2.9963627f});
    is(silu(x), {-0.18964545f, -0.26894143f, 0, 0.31122968f, 2.857722f});
    is(softplus(x), {0.07888973f, 0.31326166f, 0.6931472f, 0.974077f, 3.0485873f});
    is(pow(abs(x), 1.5), {3.9528471f, 1, 0, 0.35355338f, 5.196152f});
    is(sigmoid(x), {0.07585818f, 0.26894143f, 0.5f, 0.62245935f, 0.95257413f});
    is(sign(x), {-1, -1, 0, 1, 1});
    for (float zero : sign(from_host<float>({-0.0f, 0.0f, std::numeric_limits<float>::quiet_NaN(), -0.0f, -0.0f}, device)).to_host<float>())
      EXPECT_EQ(std::bit_cast<std::uint32_t>(zero), 0u);
    is(ge(x, y), {0, 1, 0, 1, 1});
    is(logical_and(x, lt(y, 1)), {0, 1, 0, 1, 0});
    is(leaky_relu(x, 0.1), {-0.25f, -0.1f, 0, 0.5f, 3});
    Tensor i = from_host<std::int32_t>({7, -7, 0, 5, -1}, device);
    is(floor_divide(i, 2), {3, -4, 0, 2, -1});
    is(remainder(i, 4), {3, 1, 0, 1, 3});
    is(bitwise_xor(i, 1), {6, -8, 1, 4, -2});
    Tensor z = x.clone();
    add_(z, y), mul_(z, 2), exp_(z);
    is(z, {std::exp(-3.0f), std::exp(-4.0f), std::exp(4.0f), std::exp(1.5f), std::exp(12.0f)});
    exp_out(z, x);
    is(log(z), {-2.5f, -1, 0, 0.5f, 3});
  }
}

TEST(Map, OperatorsAreTheNamedOps) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = from_host<float>({-2.5f, -1, -0.0f, 0.5f, 3}, device), y = from_host<float>({1, -1, 2, 0.25f, 3}, device);
    auto is = [](const Tensor& got, const Tensor& want) {
      EXPECT_EQ(got.dtype(), want.dtype());
      EXPECT_EQ(got.to_bytes(), want.to_bytes());
    };
    is(-x, neg(x));
    is(x + y, add(x, y)), is(x - y, sub(x, y)), is(x * y, mul(x, y)), is(x / y, div(x, y));
    is(x + 2.5, add(x, 2.5)), is(x - 2.5, sub(x, 2.5)), is(x * 2.5, mul(x, 2.5)), is(x / 2.5, div(x, 2.5));
    is(2.5 + x, add(x, 2.5)), is(2.5 * x, mul(x, 2.5));
    // The number first: rounded once, and equal ones give +0.
    EXPECT_EQ((1 - y).to_host<float>(), (std::vector<float>{0, 2, -1, 0.75f, -2}));
    EXPECT_FALSE(std::signbit((1 - y).to_host<float>()[0]));
    EXPECT_EQ((3 / y).to_host<float>(), (std::vector<float>{3, -3, 1.5f, 12, 1}));
    // Whole numbers keep integers integer; a quotient is one of floats.
    Tensor i = from_host<std::int32_t>({7, -7, 0}, device);
    is(10 - i, from_host<std::int32_t>({3, 17, 10}, device));
    is(i * 2 + 1, from_host<std::int32_t>({15, -13, 1}, device));
    EXPECT_EQ((i / 2).to_host<float>(), (std::vector<float>{3.5f, -3.5f, 0}));
    EXPECT_EQ((i - 0.5).dtype(), DType::f32);
    // In place: the memory and the dtype stay.
    Tensor z = x.clone(), other = z;
    ((z += y) -= 1) *= y;
    (z /= 2) += x;
    is(other, add(div(mul(sub(add(x, y), 1), y), 2), x));
    i += 1;
    EXPECT_EQ(i.to_host<std::int32_t>(), (std::vector<std::int32_t>{8, -6, 1}));
    EXPECT_EQ(code_of([&] { i /= 2; }), code_of([&] { div_(i, 2); }));
    EXPECT_EQ(code_of([&] { x + zeros({4}, {.device = device}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { 1 - Tensor(); }), ErrorCode::invalid_argument);
  }
}

TEST(Map, OutFormsOfOpsWithNumbers) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = from_host<float>({-2.5f, -1, -0.0f, 0.5f, 3}, device), y = from_host<float>({1, -1, 2, 0.25f, 3}, device),
           out = empty(x.sizes(), {.device = device});
    auto is = [&](const Tensor& want) {
      EXPECT_EQ(out.to_bytes(), want.to_bytes()) << last_plan();
      fill_(out, 99);
    };
    add_scaled_out(out, x, y, 2), is(add_scaled(x, y, 2));
    gelu_out(out, x), is(gelu(x));
    gelu_out(out, x, GeluForm::tanh), is(gelu(x, GeluForm::tanh));
    leaky_relu_out(out, x, 0.1), is(leaky_relu(x, 0.1));
    clamp_out(out, x, -1, 0.75), is(clamp(x, -1, 0.75));
    clamp_out(out, x, neg(abs(y)), abs(y)), is(clamp(x, neg(abs(y)), abs(y)));
    where_out(out, lt(x, y), x, y), is(where(lt(x, y), x, y));
    lerp_out(out, x, y, 0.25), is(lerp(x, y, 0.25));
    lerp_out(out, x, y, abs(x)), is(lerp(x, y, abs(x)));
    EXPECT_EQ(code_of([&] { clamp_out(empty({4}, {.device = device}), x, -1, 1); }), ErrorCode::invalid_shape);
  }
}

TEST(Map, ShapesOfAClassBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    auto run = [&](const Dims& sizes) {
      Tensor t = full(sizes, 2, {.device = device});
      map([](Expr x, Expr y) { return x * y + 1; }, t, t);
    };
    run({100});
    auto before = build_counters();
    for (const Dims& sizes : {Dims{1}, Dims{7, 9}, Dims{100000}, Dims{2, 3, 4, 5}}) run(sizes);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

/// Bytes are what some compilers know least.
TEST(Map, IntegersAreRectifiedAndSelected) {
  CLUTCH_EACH_DEVICE(device) {
    std::vector<std::int32_t> given, rectified, chosen;
    for (std::int32_t i = -128; i < 128; ++i) given.push_back(i), rectified.push_back(std::max(i, 0)), chosen.push_back(i <= 5 ? 5 : i);
    const Tensor all = from_host(given, {256}, device);
    for (DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64}) {
      const Tensor x = all.to(dtype);
      EXPECT_EQ(relu(x).to(DType::i32).to_host<std::int32_t>(), rectified) << name(dtype);
      try {
        const Tensor made = map([](Expr v) { return select(v <= 5, cast(Expr(5), v.dtype()), v); }, {x});
        EXPECT_EQ(made.to(DType::i32).to_host<std::int32_t>(), chosen) << name(dtype);
      } catch (const Error& e) {
        EXPECT_TRUE(e.code() == ErrorCode::not_supported && dtype == DType::i8 && known_bug(device, "byte_selects_crash")) << e.what();
      }
    }
    const Tensor bytes = all.slice(0, 128, 256).to(DType::u8);
    EXPECT_EQ(relu(bytes).to_bytes(), bytes.to_bytes());
  }
}

TEST(Map, ThreadsTraceAndRunAtOnce) {
  CLUTCH_EACH_DEVICE(device) {
    std::array<float, 4> last{};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < last.size(); ++t)
      threads.emplace_back([&, t] {
        StreamGuard guard{Stream(device)};
        Tensor x = full({3000}, static_cast<double>(t), {.device = device});
        for (int i = 0; i < 20; ++i) x = map([](Expr a) { return sqrt(a * a + 1); }, x);
        last[t] = mul(x, x).to_host<float>()[2999];
      });
    for (auto& t : threads) t.join();
    for (std::size_t t = 0; t < last.size(); ++t) EXPECT_NEAR(last[t], static_cast<float>(t * t + 20), 1e-3);
  }
}

TEST(Map, SelectionByTraitsAlone) {
  DeviceTraits cpu = wide_cpu();
  detail::MapProblem problem{.function = 1};
  EXPECT_EQ(detail::select(cpu, problem).entry, "map_contiguous");
  EXPECT_NE(detail::select(cpu, problem).to_string().find("WIDTH=16"), std::string::npos);
  problem.types.has_wide = true;
  EXPECT_NE(detail::select(cpu, problem).to_string().find("WIDTH=8"), std::string::npos);
  problem.layout = detail::Layout::rows;
  EXPECT_EQ(detail::select(cpu, problem).entry, "map_rows");
  problem.short_rows = true;
  EXPECT_EQ(detail::select(cpu, problem).entry, "map_strided");
  cpu.fp64 = false, problem.types.has_f64 = true;
  EXPECT_EQ(code_of([&] { detail::select(cpu, problem); }), ErrorCode::not_supported);
  DeviceTraits small{.type = DeviceType::gpu, .max_work_group = 64, .local_bytes = 16384};
  problem = {.function = 1};
  EXPECT_NE(detail::select(small, problem).to_string().find(" WIDTH=1 "), std::string::npos);
  EXPECT_EQ(detail::select(small, problem).tuning.local, 64u);
}

}}  // namespace clutch::testing
