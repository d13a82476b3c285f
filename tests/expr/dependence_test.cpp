// SPDX-License-Identifier: Apache-2.0
#include "expr/dependence.hpp"
#include "expr/contraction.hpp"

#include "expr/index_patterns.hpp"
#include "support/fixture.hpp"

#include <map>

namespace clutch::testing { namespace {

constexpr std::int64_t kQ = 5, kKv = 6;

/// Calls f(b, h, q, kv) for all of them.
template <class F>
void each_place(F&& f) {
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t h = 0; h < 3; ++h)
      for (std::int64_t q = 0; q < kQ; ++q)
        for (std::int64_t kv = 0; kv < kKv; ++kv) f(std::array{b, h, q, kv});
}

/// What is said of an index holds for its values, which are the pattern's.
void expect_sound(const IndexPattern& p, const ExprFunction& f) {
  const detail::ExprBody& body = *f.body();
  const detail::Dependence d = detail::dependences(body, 2, 3)[static_cast<std::size_t>(body.outputs[0])];
  const std::optional<detail::ShiftedInput> shifted = detail::shifted_input(body, body.outputs[0]);
  // By what it is said to depend on, and by the difference instead of q and kv.
  std::map<std::array<std::int64_t, 5>, std::int64_t> seen;
  each_place([&](const std::array<std::int64_t, 4>& at) {
    std::vector<ExprValue> inputs;
    for (std::int64_t x : at) inputs.push_back(ExprValue::of(DType::i32, static_cast<double>(x)));
    const auto value = static_cast<std::int64_t>(f.evaluate(inputs)[0].number());
    ASSERT_EQ(value, p.host(at[0], at[1], at[2], at[3])) << p.name;
    if (shifted) {
      ASSERT_EQ(value, shifted->shift + (shifted->input < 0 ? 0 : at[static_cast<std::size_t>(shifted->input)])) << p.name;
    }
    auto of = [&](int i) { return d.on(i) ? at[static_cast<std::size_t>(i)] : 0; };
    std::array<std::int64_t, 5> key{of(0), of(1), of(2), of(3), 0};
    if (d.by_difference) key = {of(0), of(1), 0, 0, at[2] - at[3]};
    const auto [place, is_new] = seen.try_emplace(key, value);
    ASSERT_EQ(place->second, value) << p.name << " at q " << at[2] << " kv " << at[3];
  });
}

TEST(Dependence, HoldsForEveryIndexAndForSumsOfTwo) {
  constexpr std::array kIndices{DType::i32, DType::i32, DType::i32, DType::i32};
  const std::vector<IndexPattern> all = index_patterns(kQ, kKv);
  for (const IndexPattern& p : all) expect_sound(p, trace(p.traced, kIndices));
  for (const IndexPattern& a : all)
    for (const IndexPattern& b : all) {
      if (a.name.starts_with("wrapped") || b.name.starts_with("wrapped")) continue;  // their sums leave i32
      const IndexPattern difference{a.name + ", less " + b.name, [&](Expr x, Expr h, Expr q, Expr kv) { return a.traced(x, h, q, kv) - b.traced(x, h, q, kv); },
                                    [&](auto x, auto h, auto q, auto kv) { return a.host(x, h, q, kv) - b.host(x, h, q, kv); }};
      expect_sound(difference, trace(difference.traced, kIndices));
    }
}

TEST(Dependence, FindsWhatItIsFor) {
  constexpr std::array kIndices{DType::i32, DType::i32, DType::i32, DType::i32};
  auto of = [&](auto f) {
    const ExprFunction traced = trace(f, kIndices);
    return detail::dependences(*traced.body(), 2, 3)[static_cast<std::size_t>(traced.body()->outputs[0])];
  };
  EXPECT_TRUE(of([](Expr, Expr, Expr q, Expr kv) { return (q + 1) - kv; }).by_difference);
  EXPECT_TRUE(of([](Expr, Expr h, Expr q, Expr kv) { return floor_div(abs(kv - q + h), 2); }).by_difference);
  EXPECT_TRUE(of([](Expr, Expr, Expr q, Expr kv) { return cast(q, DType::i64) * 3 - 3 * cast(kv, DType::i64) + param(7); }).by_difference);
  EXPECT_FALSE(of([](Expr, Expr, Expr q, Expr kv) { return q + kv; }).by_difference);
  EXPECT_FALSE(of([](Expr, Expr, Expr q, Expr kv) { return 1 - q + (0 * kv); }).by_difference);
  EXPECT_FALSE(of([](Expr, Expr, Expr q, Expr kv) { return cast(q, DType::i8) - cast(kv, DType::i8); }).by_difference);
}

/// The score's value by what it was taken apart into.
double put_together(const detail::Contracted& parts, std::array<double, 5> at) {
  auto value = [](const ExprFunction& f, std::vector<double> inputs) {
    std::vector<ExprValue> values;
    for (std::size_t i = 0; i < inputs.size(); ++i) values.push_back(ExprValue::of(f.input_dtype(static_cast<int>(i)), inputs[i]));
    return f.evaluate(values)[0].number();
  };
  std::vector<double> inputs(at.begin(), at.end());
  for (const detail::Contraction& c : parts.sums) {
    double sum = 0;
    for (std::int64_t d = 0; d < c.count; ++d)
      sum += value(c.left, {at[1], at[2], at[3], static_cast<double>(d)}) * value(c.right, {at[1], at[2], at[4], static_cast<double>(d)});
    inputs.push_back(sum);
  }
  return value(parts.rest, inputs);
}

TEST(Contraction, SumsOfProductsAreTakenOutAndKeepTheirValues) {
  constexpr std::array kInputs{DType::f64, DType::i32, DType::i32, DType::i32, DType::i32};
  struct Case {
    const char* name;
    std::size_t sums;
    std::function<Expr(Expr, Expr, Expr, Expr, Expr)> f;
  };
  // A table of numbers that differ by query (or key) and place: what a captured tensor would hold.
  auto left = [](Expr h, Expr q, int d) { return sin(cast(q * 7 + h + d * 3, DType::f64)); };
  auto right = [](Expr b, Expr kv, int d) { return cos(cast(kv * 5 + b - d * 2, DType::f64)); };
  const Case cases[] = {
      {"a dot", 1,
       [=](Expr s, Expr b, Expr h, Expr q, Expr kv) {
         for (int d = 0; d < 8; ++d) s = s + left(h, q, d) * right(b, kv, d);
         return s;
       }},
      {"a dot of fma, downwards, within tanh, subtracted", 1,
       [=](Expr s, Expr b, Expr h, Expr q, Expr kv) {
         Expr dot = 0.0;
         for (int d = 7; d >= 0; --d) dot = fma(left(h, q, d), right(b, kv, d), dot);
         return s * tanh(s - dot) + cast(q - kv, DType::f64);
       }},
      {"two, alternately, one of them negative", 2,
       [=](Expr s, Expr b, Expr h, Expr q, Expr kv) {
         for (int d = 0; d < 6; ++d) s = s + left(h, q, d) * right(b, kv, 2 * d) - right(b, kv, d) * 3 * exp(left(h, q, -d));
         return s;
       }},
      {"too few", 0,
       [=](Expr s, Expr b, Expr h, Expr q, Expr kv) {
         for (int d = 0; d < 3; ++d) s = s + left(h, q, d) * right(b, kv, d);
         return s;
       }},
      {"uneven", 0,
       [=](Expr s, Expr b, Expr h, Expr q, Expr kv) {
         for (int d = 0; d < 6; ++d) s = s + left(h, q, d * d) * right(b, kv, d);
         return s;
       }},
      {"not apart", 0,
       [=](Expr s, Expr b, Expr h, Expr q, Expr kv) {
         for (int d = 0; d < 6; ++d) s = s + left(h, q, d) * right(b, kv - q, d);
         return s;
       }},
      {"of scores", 0,
       [=](Expr s, Expr b, Expr h, Expr q, Expr kv) {
         Expr sum = s;
         for (int d = 0; d < 6; ++d) sum = sum + left(h, q, d) * right(b, kv, d) * s;
         return sum;
       }},
      {"a sum that is used twice is one addend", 1,
       [=](Expr s, Expr b, Expr h, Expr q, Expr kv) {
         Expr dot = 0.0;
         for (int d = 0; d < 5; ++d) dot = dot + left(h, q, d) * right(b, kv, d);
         return (s + dot) * exp(dot * 0.1);
       }},
      {"numbers of i64", 1,
       [=](Expr s, Expr, Expr, Expr q, Expr kv) {
         for (int d = 2; d < 7; ++d) s = s + cast(cast(q, DType::i64) + 3 * d, DType::f64) * cast(cast(kv, DType::i64) * d, DType::f64);
         return s;
       }},
      {"booleans stay apart", 0,
       [=](Expr s, Expr b, Expr h, Expr q, Expr kv) {
         for (int d = 0; d < 5; ++d) s = s + left(h, q, 0) * select((kv > 2) ^ (d == 2), right(b, kv, d), 0.5);
         return s;
       }},
  };
  for (const Case& c : cases) {
    const ExprFunction f = trace(c.f, kInputs);
    const detail::Contracted parts = detail::contracted(f);
    EXPECT_EQ(parts.sums.size(), c.sums) << c.name;
    if (c.sums == 0) {
      EXPECT_EQ(parts.rest.text(), f.text()) << c.name;
    }
    const detail::Contracted whole{f, {}};
    each_place([&](const std::array<std::int64_t, 4>& at) {
      const std::array<double, 5> inputs{0.75, static_cast<double>(at[0]), static_cast<double>(at[1]), static_cast<double>(at[2]), static_cast<double>(at[3])};
      const double want = put_together(whole, inputs);
      ASSERT_NEAR(put_together(parts, inputs), want, 1e-13 * (8 + std::fabs(want))) << c.name;
    });
  }
}

}}  // namespace clutch::testing
