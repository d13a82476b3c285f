// SPDX-License-Identifier: Apache-2.0
#include "expr/random_function.hpp"

#include "support/fixture.hpp"
#include "support/fma.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

namespace clutch::testing { namespace {

/// Numbers that cancel, that overflow, and those below the normal range among them.
template <class T, class Bits>
void expect_one_rounding() {
  model::Random random(seed());
  const T special[] = {0,
                       -T(0),
                       1,
                       std::numeric_limits<T>::infinity(),
                       std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::min()};
  auto draw = [&] {
    switch (random.next() % 4) {
      case 0: return std::ldexp(static_cast<T>(static_cast<std::int64_t>(random.next() % 2001) - 1000), static_cast<int>(random.next() % 20));
      case 1: return special[random.next() % std::size(special)];
      default: return std::bit_cast<T>(static_cast<Bits>(random.next()));
    }
  };
  for (int i = 0; i < 300000; ++i) {
    const T a = draw(), b = draw(), product = -(a * b);
    const T c = i % 4 == 0 ? product : i % 4 == 1 ? std::nextafter(product, T(0)) : draw(), want = std::fma(a, b, c), got = detail::fma_from_bits(a, b, c);
    ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : std::bit_cast<Bits>(want) == std::bit_cast<Bits>(got)) << a << " " << b << " " << c << ": " << got;
  }
}
TEST(Fma, FromBitsRoundsOnce) {
#ifdef __MINGW32__
  GTEST_SKIP() << "its C library's fma rounds twice";
#endif
  expect_one_rounding<float, std::uint32_t>();
  expect_one_rounding<double, std::uint64_t>();
}

template <class F>
std::string text_of(F&& f, DType a = DType::f32) {
  return trace(f, std::array{a}).text();
}
template <class F>
std::string text_of(F&& f, DType a, DType b) {
  return trace(f, std::array{a, b}).text();
}
double evaluate(const ExprFunction& f, std::vector<double> inputs, int output = 0) {
  std::vector<ExprValue> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values.push_back(ExprValue::of(f.input_dtype(static_cast<int>(i)), inputs[i]));
  return f.evaluate(values)[static_cast<std::size_t>(output)].number();
}

TEST(Expr, OperandsPromoteAndNumbersAdopt) {
  auto dtype = [](auto f, DType a, DType b) { return trace(f, std::array{a, b}).output_dtype(0); };
  auto sum = [](Expr a, Expr b) { return a + b; };
  EXPECT_EQ(dtype(sum, DType::f32, DType::f64), DType::f64);
  EXPECT_EQ(dtype(sum, DType::i64, DType::f32), DType::f32);
  EXPECT_EQ(dtype(sum, DType::i32, DType::i64), DType::i64);
  EXPECT_EQ(dtype(sum, DType::boolean, DType::boolean), DType::i32);
  EXPECT_EQ(dtype([](Expr a, Expr) { return a * 2.5; }, DType::i64, DType::f32), DType::f32);
  EXPECT_EQ(dtype([](Expr a, Expr) { return a * 2; }, DType::f64, DType::f32), DType::f64);
  EXPECT_EQ(dtype([](Expr a, Expr) { return a + (std::int64_t{1} << 40); }, DType::i32, DType::f32), DType::i64);
  EXPECT_EQ(dtype([](Expr a, Expr) { return a + param(1 << 20); }, DType::i32, DType::f32), DType::i32);
  EXPECT_EQ(dtype([](Expr a, Expr b) { return a / b; }, DType::i64, DType::i32), DType::f32);
  EXPECT_EQ(dtype([](Expr a, Expr) { return exp(a); }, DType::boolean, DType::f32), DType::f32);
  EXPECT_EQ(dtype([](Expr a, Expr b) { return a < b; }, DType::i64, DType::f32), DType::boolean);
  EXPECT_EQ(dtype([](Expr a, Expr) { return cast(a, DType::bf16); }, DType::f64, DType::f32), DType::f32);
  // 0.1 is rounded to the dtype that it adopts, once.
  EXPECT_EQ(evaluate(trace([](Expr x) { return x * 0.1; }, std::array{DType::f64}), {1}), 0.1);
  EXPECT_EQ(evaluate(trace([](Expr x) { return x * 0.1; }, std::array{DType::f32}), {1}), static_cast<double>(0.1f));
}

// A result of numbers alone is a number, too: it is as exact as what it meets, and what is shared stays shared.
TEST(Expr, ResultsOfNumbersAdopt) {
  const Expr rate = param(0.3);
  EXPECT_EQ(evaluate(trace([&](Expr x) { return fma(-rate, x, x); }, std::array{DType::f64}), {1}), std::fma(-0.3, 1.0, 1.0));
  EXPECT_EQ(evaluate(trace([&](Expr x) { return x * (1 - rate * rate); }, std::array{DType::f64}), {1}), 1 - 0.3 * 0.3);
  EXPECT_EQ(evaluate(trace([&](Expr x) { return x * (1 - rate * rate); }, std::array{DType::f32}), {1}), static_cast<double>(1 - 0.3f * 0.3f));
  EXPECT_EQ(evaluate(trace([&](Expr x) { return x * sqrt(Expr(2)) / param(std::int64_t{3}); }, std::array{DType::f64}), {1}), std::sqrt(2.0) / 3);
  EXPECT_EQ((-rate).dtype(), DType::f32);
  EXPECT_EQ(evaluate(trace([&](Expr x) { return cast(x, DType::f32) + sqrt(rate); }, std::array{DType::f64}), {0}), static_cast<double>(std::sqrt(0.3f)));
  Expr doubled = rate;
  for (int i = 0; i < 40; ++i) doubled = doubled + doubled;
  const ExprFunction f = trace([&](Expr x) { return x * doubled; }, std::array{DType::f64});
  EXPECT_EQ(evaluate(f, {1}), std::ldexp(0.3, 40));
  EXPECT_LT(f.text().size(), 2000U);
}

TEST(Expr, EqualTracesHaveEqualText) {
  EXPECT_EQ(text_of([](Expr x, Expr y) { return (x + y) * (x + y); }, DType::f32, DType::f32), "inputs f32 f32\n%2 = add %0 %1\n%3 = mul %2 %2\noutputs %3\n");
  EXPECT_EQ(text_of([](Expr x, Expr y) { return x * y + 1; }, DType::f32, DType::f32),
            text_of([](Expr x, Expr y) { return 1 + y * x; }, DType::f32, DType::f32));
  EXPECT_NE(text_of([](Expr x, Expr y) { return x - y; }, DType::f32, DType::f32), text_of([](Expr x, Expr y) { return y - x; }, DType::f32, DType::f32));
  EXPECT_NE(text_of([](Expr x) { return x + 1; }), text_of([](Expr x) { return x + 2; }));
  EXPECT_EQ(text_of([](Expr x) { return x + param(1.0); }), text_of([](Expr x) { return x + param(2.0); }));
  EXPECT_EQ(trace([](Expr x) { return x + param(2.0); }, std::array{DType::f32}).param_value(0), 2);
  // One param is one argument, two are two.
  auto one = [](Expr x) {
    Expr p = param(3.0);
    return x * p + p;
  };
  EXPECT_EQ(trace(one, std::array{DType::f32}).param_count(), 1);
  EXPECT_EQ(trace([](Expr x) { return x * param(3.0) + param(3.0); }, std::array{DType::f32}).param_count(), 2);
}

TEST(Expr, ConstantsFoldAndIdentitiesVanishWithoutChangingBits) {
  EXPECT_EQ(text_of([](Expr x) { return x + (Expr(2) * 3.5f); }), "inputs f32\n%1 = f32 0x1.cp+2\n%2 = add %0 %1\noutputs %2\n");
  auto is_input = [](auto f, DType d) { return text_of(f, d) == std::string("inputs ") + std::string(name(d)) + "\noutputs %0\n"; };
  EXPECT_TRUE(is_input([](Expr x) { return x * 1; }, DType::f32));
  EXPECT_TRUE(is_input([](Expr x) { return x / 1; }, DType::f64));
  EXPECT_TRUE(is_input([](Expr x) { return x - 0.0; }, DType::f32));
  EXPECT_FALSE(is_input([](Expr x) { return x + 0.0; }, DType::f32)) << "-0 + 0 is 0";
  EXPECT_TRUE(is_input([](Expr x) { return x + 0; }, DType::i64));
  EXPECT_TRUE(is_input([](Expr x) { return -(-x); }, DType::f32));
  EXPECT_TRUE(is_input([](Expr x) { return !!x; }, DType::boolean));
  EXPECT_TRUE(is_input([](Expr x) { return select(Expr(1) < 2, x, 5); }, DType::f32));
  EXPECT_TRUE(is_input([](Expr x) { return x & true; }, DType::boolean));
  EXPECT_FALSE(is_input([](Expr x) { return x * 0; }, DType::f32)) << "NaN * 0 is NaN";
  // What nobody needs is gone, params too.
  auto f = trace([](Expr x) { return select(Expr(false), x * param(2.0), x); }, std::array{DType::f32});
  EXPECT_EQ(f.param_count(), 0);
}

TEST(Expr, RefusesWhatAnOperationDoesNotTake) {
  auto code = [](auto f, DType d) { return code_of([&] { trace(f, std::array{d}); }); };
  EXPECT_EQ(code([](Expr x) { return floor_div(x, 2); }, DType::f32), ErrorCode::invalid_dtype);
  EXPECT_EQ(code([](Expr x) { return x & 1.5; }, DType::i32), ErrorCode::invalid_dtype);
  EXPECT_EQ(code([](Expr x) { return x << 2; }, DType::f64), ErrorCode::invalid_dtype);
  EXPECT_EQ(code([](Expr x) { return cast(x, DType::c64); }, DType::f32), ErrorCode::invalid_dtype);
  EXPECT_EQ(code([](Expr x) { return cast(x, DType::f8e5m2); }, DType::f32), ErrorCode::invalid_dtype);
  EXPECT_EQ(code([](Expr x) { return x; }, DType::f16), ErrorCode::invalid_dtype);
  auto deep = [](Expr x) {
    for (int i = 0; i < 5000; ++i) x = sin(x);
    return x;
  };
  EXPECT_EQ(code(deep, DType::f32), ErrorCode::invalid_argument);
  const Expr foreign = detail::expr_input(3, DType::f32);
  EXPECT_EQ(code([&](Expr x) { return x + foreign; }, DType::f32), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { captured(Tensor()); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { ExprFunction().backward(); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { trace([](Expr x) { return x; }, std::array{DType::i32}).backward(); }), ErrorCode::invalid_dtype);
}

TEST(Expr, TextRoundTrips) {
  for (std::uint64_t k = 0; k < (level() == "nightly" ? 5000u : 300u); ++k) {
    RandomFunction random(seed() + k, k % 2 == 0, 5 + static_cast<int>(k % 60));
    const std::string& text = random.function.text();
    ExprFunction parsed = ExprFunction::parse(text);
    ASSERT_EQ(parsed.text(), text) << k;
    ASSERT_EQ(parsed.param_count(), random.function.param_count());
    for (int o = 0; o < parsed.output_count(); ++o) ASSERT_EQ(parsed.output_dtype(o), random.function.output_dtype(o));
  }
  EXPECT_EQ(ExprFunction::parse("inputs f32\nparams f32\nbuffers bf16/1\n%1 = param 0\n%2 = position 0\n%3 = gather 0 %2\n%4 = fma %0 %1 %3\noutputs %4")
                .captured_count(),
            1);
}

TEST(Expr, OpenclTextIsAnOperation) {
  const OpenclText hypot{"hypot(x0,\n x1) + \"\\\"[0]", {"x0 / hypot(x0, x1)", ""}};
  auto f = [&](Expr x, Expr y) { return opencl(DType::f32, hypot, {x, y}) * opencl(DType::f32, hypot, {x, y}); };
  const std::string text = text_of(f, DType::f32, DType::f32);
  EXPECT_EQ(text, "inputs f32 f32\n%2 = opencl f32 \"hypot(x0,\\n x1) + \\\"\\\\\\\"[0]\" \"x0 / hypot(x0, x1)\" \"\" %0 %1\n%3 = mul %2 %2\noutputs %3\n");
  EXPECT_EQ(ExprFunction::parse(text).text(), text);
  // Never folded, its numbers as they are; and another text is another operation.
  EXPECT_EQ(text_of([](Expr) {
              return opencl(DType::i32, {"x0 + x1"}, {1, 2.5});
            }),
            "inputs f32\n%1 = i32 1\n%2 = f32 0x1.4p+1\n%3 = opencl i32 \"x0 + x1\" %1 %2\noutputs %3\n");
  EXPECT_NE(text_of([](Expr x) { return opencl(DType::f32, {"x0"}, {x}); }), text_of([](Expr x) { return opencl(DType::f32, {"x0 "}, {x}); }));
  // Derivatives are the given ones; of an empty one nothing flows back.
  EXPECT_EQ(trace(
                [&](Expr x, Expr y) {
                  return opencl(DType::f32, {"a(x0, x1)", {"b(x0, x1)", ""}}, {x, y});
                },
                std::array{DType::f32, DType::f64})
                .backward()
                .text(),
            "inputs f32 f64 f32\n%3 = opencl f32 \"b(x0, x1)\" %0 %1\n%4 = mul %2 %3\n%5 = f64 0x0p+0\noutputs %4 %5\n");
  const ExprFunction alone = trace([](Expr x) { return opencl(DType::f32, {"x0"}, {x}); }, std::array{DType::f32});
  EXPECT_EQ(code_of([&] { alone.backward(); }), ErrorCode::not_supported);
  const ExprValue one = ExprValue::of(DType::f32, 1);
  EXPECT_EQ(code_of([&] { alone.evaluate(std::span(&one, 1)); }), ErrorCode::not_supported);
  EXPECT_EQ(code_of([] { opencl(DType::f32, {""}, {1}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { opencl(DType::f32, {"x0", {"1", "2"}}, {1}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { opencl(DType::bf16, {"x0"}, {1}); }), ErrorCode::invalid_dtype);
  for (std::string_view bad :
       {"opencl f32", "opencl f32 x0", "opencl bf16 \"x0\" %0", "opencl f32 \"x0 %0", "opencl f32 \"x0\" \"\" \"\" %0", "opencl f32 \"\" %0"})
    EXPECT_EQ(code_of([&] { ExprFunction::parse(fmt::format("inputs f32\n%1 = {}\noutputs %1\n", bad)); }), ErrorCode::invalid_argument) << bad;
}

TEST(Expr, ParseNamesTheLine) {
  auto message = [](std::string_view text) { return message_of([&] { ExprFunction::parse(text); }); };
  EXPECT_NE(message("input f32\n").find("line 1"), std::string::npos);
  EXPECT_NE(message("inputs f32\n%1 = add %0 %2\noutputs %1\n").find("line 2: %2 is not defined yet"), std::string::npos);
  EXPECT_NE(message("inputs f32 i32\n%2 = add %0 %1\noutputs %2\n").find("one dtype"), std::string::npos);
  EXPECT_NE(message("inputs f32\n%1 = f32 0x1.000001p+0\noutputs %1\n").find("not exact"), std::string::npos);
  EXPECT_NE(message("inputs f32\n%1 = frob %0\noutputs %1\n").find("'frob' is no operation"), std::string::npos);
  EXPECT_NE(message("inputs f16\noutputs %0\n").find("no dtype of a traced value"), std::string::npos);
  EXPECT_NE(message("inputs f32\n").find("without \"outputs\""), std::string::npos);
  EXPECT_NE(message("inputs f32\noutputs\n").find("no outputs"), std::string::npos);
  EXPECT_NE(message("inputs f32\nbuffers f32/13\noutputs %0\n").find("rank 13"), std::string::npos);
}

TEST(Expr, EvaluatorHasTheMachinesIntegers) {
  auto both = [](auto f, std::int64_t a, std::int64_t b) {
    ExprFunction g = trace(f, std::array{DType::i32, DType::i32});
    const ExprValue in[] = {{DType::i32, static_cast<std::uint32_t>(a)}, {DType::i32, static_cast<std::uint32_t>(b)}};
    return static_cast<std::int32_t>(g.evaluate(in)[0].bits);
  };
  const std::int64_t numbers[] = {0, 1, -1, 2, -2, 3, -7, 100, INT32_MAX, INT32_MIN, INT32_MIN + 1, 12345678};
  for (std::int64_t a : numbers)
    for (std::int64_t b : numbers) {
      EXPECT_EQ(both([](Expr x, Expr y) { return x + y; }, a, b), static_cast<std::int32_t>(a + b));
      EXPECT_EQ(both([](Expr x, Expr y) { return x * y; }, a, b), static_cast<std::int32_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)));
      std::int64_t floor = b == 0 ? 0 : static_cast<std::int64_t>(std::floor(static_cast<long double>(a) / static_cast<long double>(b)));
      EXPECT_EQ(both([](Expr x, Expr y) { return floor_div(x, y); }, a, b), static_cast<std::int32_t>(floor)) << a << " " << b;
      EXPECT_EQ(both([](Expr x, Expr y) { return floor_mod(x, y); }, a, b), static_cast<std::int32_t>(b == 0 ? 0 : a - floor * b)) << a << " " << b;
      std::int64_t trunc = b == 0 ? 0 : a / b;
      EXPECT_EQ(both([](Expr x, Expr y) { return trunc_div(x, y); }, a, b), static_cast<std::int32_t>(trunc));
      EXPECT_EQ(both([](Expr x, Expr y) { return trunc_mod(x, y); }, a, b), static_cast<std::int32_t>(b == 0 ? 0 : a % b));
      EXPECT_EQ(both([](Expr x, Expr y) { return x >> y; }, a, b), static_cast<std::int32_t>(a >> (b & 31)));
    }
}

/// f' against (f(x + h) - f(x - h)) / 2h in f64, where f is smooth.
void check_derivative(std::string_view what, const std::function<Expr(Expr)>& f, double low, double high) {
  ExprFunction forward = trace([&](Expr x) { return f(x); }, std::array{DType::f64}), backward = forward.backward();
  model::Random random(seed());
  for (int i = 0; i < 50; ++i) {
    double x = random.uniform(low, high), h = 1e-6 * std::max(1.0, std::fabs(x));
    double slope = (evaluate(forward, {x + h}) - evaluate(forward, {x - h})) / (2 * h);
    double got = evaluate(backward, {x, 1.5});
    ASSERT_NEAR(got, 1.5 * slope, 2e-6 * std::max(1.0, std::fabs(slope))) << what << " at " << x;
  }
}

TEST(Expr, DerivativesMatchFiniteDifferences) {
  check_derivative(
      "neg", [](Expr x) { return -x; }, -3, 3);
  check_derivative(
      "abs", [](Expr x) { return abs(x); }, 0.1, 3);
  check_derivative(
      "abs", [](Expr x) { return abs(x); }, -3, -0.1);
  check_derivative(
      "sum", [](Expr x) { return x + x * x - 3 * x; }, -3, 3);
  check_derivative(
      "quotient", [](Expr x) { return (x + 1) / (x * x + 2); }, -3, 3);
  check_derivative(
      "fma", [](Expr x) { return fma(x, x, x); }, -3, 3);
  check_derivative(
      "min", [](Expr x) { return min(x, 0.7 * x - 1); }, -3, 3);
  check_derivative(
      "max", [](Expr x) { return max(x * x, 4.5); }, 2.5, 3);
  check_derivative(
      "sqrt", [](Expr x) { return sqrt(x); }, 0.1, 9);
  check_derivative(
      "rsqrt", [](Expr x) { return rsqrt(x); }, 0.3, 9);
  check_derivative(
      "exp", [](Expr x) { return exp(x); }, -3, 3);
  check_derivative(
      "exp2", [](Expr x) { return exp2(x); }, -3, 3);
  check_derivative(
      "expm1", [](Expr x) { return expm1(x); }, -3, 3);
  check_derivative(
      "log", [](Expr x) { return log(x); }, 0.1, 9);
  check_derivative(
      "log2", [](Expr x) { return log2(x); }, 0.1, 9);
  check_derivative(
      "log1p", [](Expr x) { return log1p(x); }, -0.7, 9);
  check_derivative(
      "tanh", [](Expr x) { return tanh(x); }, -3, 3);
  check_derivative(
      "sigmoid", [](Expr x) { return sigmoid(x); }, -3, 3);
  check_derivative(
      "erf", [](Expr x) { return erf(x); }, -3, 3);
  check_derivative(
      "sin", [](Expr x) { return sin(x); }, -9, 9);
  check_derivative(
      "cos", [](Expr x) { return cos(x); }, -9, 9);
  check_derivative(
      "pow of x", [](Expr x) { return pow(x, 2.5); }, 0.1, 4);
  check_derivative(
      "pow to x", [](Expr x) { return pow(Expr(1.7), x); }, -3, 3);
  check_derivative(
      "select", [](Expr x) { return select(x > 0, x * x, exp(x)); }, 0.1, 3);
  check_derivative(
      "floor", [](Expr x) { return floor(x) + ceil(x) + trunc(x) + round(x) + x; }, 0.1, 0.4);
  check_derivative(
      "gelu", [](Expr x) { return gelu(x); }, -3, 3);
  check_derivative(
      "gelu tanh", [](Expr x) { return gelu(x, GeluForm::tanh); }, -3, 3);
  check_derivative(
      "silu", [](Expr x) { return silu(x); }, -3, 3);
  check_derivative(
      "softplus", [](Expr x) { return softplus(x); }, -3, 19);
  check_derivative(
      "lerp", [](Expr x) { return lerp(x, x * x, 0.3); }, -3, 3);
  check_derivative(
      "leaky_relu", [](Expr x) { return leaky_relu(x, 0.2); }, -3, -0.1);
  check_derivative(
      "casts", [](Expr x) { return cast(cast(x, DType::f64) * 2, DType::f64); }, -3, 3);
  // Two inputs and two outputs: gradients of each input, from both.
  auto both = [](Expr x, Expr y) { return std::array{x * y, x + sin(y)}; };
  ExprFunction b = trace(both, std::array{DType::f64, DType::f64}).backward();
  EXPECT_EQ(b.input_count(), 4);
  EXPECT_EQ(evaluate(b, {3, 0.5, 10, 100}, 0), 105);
  EXPECT_NEAR(evaluate(b, {3, 0.5, 10, 100}, 1), 30 + 100 * std::cos(0.5), 1e-12);
}

TEST(Expr, DerivativesAtKinksArePyTorchs) {
  auto at = [](auto f, double x) { return evaluate(trace(f, std::array{DType::f32}).backward(), {x, 1}); };
  EXPECT_EQ(at([](Expr x) { return abs(x); }, 0), 0);
  EXPECT_EQ(at([](Expr x) { return relu(x); }, 0), 0);
  EXPECT_EQ(at([](Expr x) { return relu(x); }, 1e-3), 1);
  EXPECT_EQ(at([](Expr x) { return max(x, 2.0); }, 2), 0.5);
  EXPECT_EQ(at([](Expr x) { return min(x, 2.0); }, 2), 0.5);
  EXPECT_EQ(at([](Expr x) { return max(x, x); }, 2), 1);
  EXPECT_EQ(at([](Expr x) { return clamp(x, -1, 1); }, 1), 1);
  EXPECT_EQ(at([](Expr x) { return clamp(x, -1, 1); }, -1), 1);
  EXPECT_EQ(at([](Expr x) { return clamp(x, -1, 1); }, 1.5), 0);
  EXPECT_EQ(at([](Expr x) { return sign(x); }, 0.5), 0);
  EXPECT_EQ(at([](Expr x) { return floor(x); }, 0.5), 0);
  EXPECT_EQ(at([](Expr x) { return pow(x, 0); }, 0), 0);
  EXPECT_EQ(at([](Expr x) { return pow(x, 1); }, 0), 1);
  EXPECT_EQ(at([](Expr x) { return pow(Expr(0.0), x); }, 2), 0);
  EXPECT_EQ(at([](Expr x) { return relu(x); }, std::nan("")), 1) << "as threshold_backward";
}

TEST(Expr, DerivativesAreSimple) {
  EXPECT_EQ(trace([](Expr x) { return x * 3; }, std::array{DType::f32}).backward().text(), "inputs f32 f32\n%2 = f32 0x1.8p+1\n%3 = mul %1 %2\noutputs %3\n");
  EXPECT_EQ(trace([](Expr x, Expr y) { return x + y * 0; }, std::array{DType::f32, DType::i32}).backward().text(), "inputs f32 i32 f32\noutputs %2\n");
}

}}  // namespace clutch::testing
