// SPDX-License-Identifier: Apache-2.0
// The elementary functions on devices, against libm in double (f32: every 4001st pattern, nightly all of them) and MPFR (f64).
#include "support/fixture.hpp"

#include <fmt/format.h>
#include <mpfr.h>

#include <cmath>
#include <thread>

namespace clutch::testing { namespace {

struct Function {
  const char* name;
  Expr (*build)(const Expr&);
  double (*reference)(double);
  int (*exact)(mpfr_t, const mpfr_t, mpfr_rnd_t);
  double bound_f32, bound_f64;  ///< the contract's, in ulp
};

double sigmoid_reference(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
int sigmoid_exact(mpfr_t r, const mpfr_t x, mpfr_rnd_t rounding) {
  mpfr_neg(r, x, rounding);
  mpfr_exp(r, r, rounding);
  mpfr_add_ui(r, r, 1, rounding);
  return mpfr_ui_div(r, 1, r, rounding);
}

const Function kFunctions[] = {
    {"sqrt", [](const Expr& x) { return sqrt(x); }, [](double x) { return std::sqrt(x); }, mpfr_sqrt, 0.5, 0.5},
    {"rsqrt", [](const Expr& x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); }, mpfr_rec_sqrt, 1.5, 1.5},
    {"exp", [](const Expr& x) { return exp(x); }, [](double x) { return std::exp(x); }, mpfr_exp, 0.9, 0.9},
    {"exp2", [](const Expr& x) { return exp2(x); }, [](double x) { return std::exp2(x); }, mpfr_exp2, 0.87, 0.9},
    {"expm1", [](const Expr& x) { return expm1(x); }, [](double x) { return std::expm1(x); }, mpfr_expm1, 1.33, 1.8},
    {"log", [](const Expr& x) { return log(x); }, [](double x) { return std::log(x); }, mpfr_log, 0.85, 0.9},
    {"log2", [](const Expr& x) { return log2(x); }, [](double x) { return std::log2(x); }, mpfr_log2, 1.18, 0.95},
    {"log1p", [](const Expr& x) { return log1p(x); }, [](double x) { return std::log1p(x); }, mpfr_log1p, 0.85, 0.9},
    {"tanh", [](const Expr& x) { return tanh(x); }, [](double x) { return std::tanh(x); }, mpfr_tanh, 1.41, 1.4},
    {"sigmoid", [](const Expr& x) { return sigmoid(x); }, sigmoid_reference, sigmoid_exact, 1.97, 1.9},
    {"erf", [](const Expr& x) { return erf(x); }, [](double x) { return std::erf(x); }, mpfr_erf, 1.08, 1.1},
    {"sin", [](const Expr& x) { return sin(x); }, [](double x) { return std::sin(x); }, mpfr_sin, 0.85, 0.9},
    {"cos", [](const Expr& x) { return cos(x); }, [](double x) { return std::cos(x); }, mpfr_cos, 0.85, 0.9},
};

double ulp(double value, int digits, int least) {
  int e = 0;
  std::frexp(value, &e);
  return std::ldexp(1.0, std::max(e - digits, least));
}

/// The largest error of a result in ulp, and what is wrong outright: other ends, NaNs or signs of zero.
struct Verdict {
  double worst = 0;
  std::string wrong;
};

void judge(Verdict& v, float x, float got, double want, bool flushes) {
  auto rounded = static_cast<float>(want);
  auto fail = [&] { v.wrong = fmt::format("at {:a}: {:a}, not {:a}", x, got, rounded); };
  if (flushes && (std::fabs(x) < 0x1p-126f || std::fabs(rounded) < 0x1p-126f)) return;
  if (std::isnan(rounded) != std::isnan(got)) return fail();
  if (std::isnan(got)) return;
  if (std::isinf(got) || std::isinf(rounded)) {
    if (got != rounded && !(std::isinf(got) && std::fabs(want) > 0x1.fffffep127)) fail();
    return;
  }
  if (want == 0 && (got != 0 || std::signbit(got) != std::signbit(want))) return fail();
  v.worst = std::max(v.worst, std::fabs(static_cast<double>(got) - want) / ulp(want, 24, -149));
}

/// Judges the results of patterns first, first + step, ... on two threads.
Verdict judge_patterns(const Function& f, std::uint64_t first, std::uint64_t step, const std::vector<float>& got, bool flushes) {
  std::array<Verdict, 2> halves;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = got.size() * t / 2; i < got.size() * (t + 1) / 2; ++i) {
        float x = std::bit_cast<float>(static_cast<std::uint32_t>(first + i * step));
        judge(halves[t], x, got[i], f.reference(static_cast<double>(x)), flushes);
      }
    });
  for (auto& thread : threads) thread.join();
  halves[0].worst = std::max(halves[0].worst, halves[1].worst);
  if (halves[0].wrong.empty()) halves[0].wrong = halves[1].wrong;
  return halves[0];
}

TEST(Math, FunctionsKeepTheirBoundsInF32) {
  bool all = level() == "nightly";
  CLUTCH_EACH_DEVICE(device) {
    if (all && !(device == test_devices().front())) break;
    for (const Function& f : kFunctions) {
      ExprFunction function = trace([&](Expr x) { return f.build(x); }, std::array{DType::f32});
      const std::uint64_t step = all ? 1 : 4001, chunk = std::uint64_t{1} << 22;
      Verdict v;
      for (std::uint64_t first = 0; first < std::uint64_t{1} << 32 && v.wrong.empty(); first += chunk * step) {
        std::uint64_t count = std::min(chunk, ((std::uint64_t{1} << 32) - first + step - 1) / step);
        std::vector<float> x(count);
        for (std::size_t i = 0; i < count; ++i) x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + i * step));
        Tensor in = from_host(x, {static_cast<std::int64_t>(count)}, device);
        Verdict part = judge_patterns(f, first, step, map(function, std::span(&in, 1))[0].to_host<float>(), !device.traits().denormals);
        v.worst = std::max(v.worst, part.worst), v.wrong = part.wrong;
      }
      fmt::print("{} {:.3f} ulp\n", f.name, v.worst);
      EXPECT_EQ(v.wrong, "") << f.name;
      EXPECT_LE(v.worst, f.bound_f32 + 1e-6) << f.name;
      EXPECT_GT(v.worst, 0.4) << f.name << ": nothing was judged";
    }
  }
}

/// Values all over f64, and where functions bend.
std::vector<double> f64_samples(int n) {
  model::Random random(seed());
  std::vector<double> x{0.0,
                        -0.0,
                        1,
                        -1,
                        0.5,
                        0x1p-1074,
                        -0x1p-1074,
                        0x1p-1022,
                        1e308,
                        -1e308,
                        std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::quiet_NaN(),
                        709.7,
                        -745.1,
                        32768,
                        32768.5,
                        1e22};
  while (static_cast<int>(x.size()) < n) {
    switch (x.size() % 3) {
      case 0: x.push_back(std::bit_cast<double>(random.next())); break;
      case 1: x.push_back(std::ldexp(random.uniform(-2, 2), static_cast<int>(random.next() % 40) - 20)); break;
      default: x.push_back(random.uniform(-760, 760));
    }
  }
  return x;
}

/// A number of 120 bits, rounded where it is asked for.
class Exact {
 public:
  Exact() { mpfr_init2(value_, 120); }
  ~Exact() { mpfr_clear(value_); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  mpfr_ptr get() { return value_; }
  double rounded() const { return mpfr_get_d(value_, MPFR_RNDN); }
  /// |got - this| in ulp of this.
  double error(double got) {
    double unit = ulp(rounded(), 53, -1074);
    Exact difference;
    mpfr_sub_d(difference.get(), value_, got, MPFR_RNDN);
    mpfr_div_d(difference.get(), difference.get(), unit, MPFR_RNDN);
    return std::fabs(difference.rounded());
  }

 private:
  mpfr_t value_;
};

std::string judge_f64(Exact& want, double got, double& worst) {
  double rounded = want.rounded();
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) == std::isnan(got) ? "" : "NaN";
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got || (std::isinf(got) && std::fabs(rounded) > 1.7976931348623155e308) ? "" : "Inf";
  if (rounded == 0) return std::fabs(got) <= 0x1p-1074 ? "" : "zero";
  worst = std::max(worst, want.error(got));
  return {};
}

TEST(Math, FunctionsKeepTheirBoundsInF64) {
  std::vector<double> x = f64_samples(level() == "nightly" ? 2000000 : 6000);
  CLUTCH_EACH_DEVICE(device) {
    if (skip_without(device, "fp64", device.traits().fp64)) continue;
    Tensor in = from_host(x, {static_cast<std::int64_t>(x.size())}, device);
    for (const Function& f : kFunctions) {
      std::vector<double> got = map([&](Expr e) { return f.build(e); }, in).to_host<double>();
      double worst = 0;
      Exact argument, want;
      for (std::size_t i = 0; i < x.size(); ++i) {
        mpfr_set_d(argument.get(), x[i], MPFR_RNDN);
        f.exact(want.get(), argument.get(), MPFR_RNDN);
        if (std::string_view(f.name) == "rsqrt" && x[i] < 0) mpfr_set_nan(want.get());
        ASSERT_EQ(judge_f64(want, got[i], worst), "") << fmt::format("{} at {:a}: {:a}", f.name, x[i], got[i]);
      }
      fmt::print("{} f64 {:.3f} ulp\n", f.name, worst);
      EXPECT_LE(worst, f.bound_f64) << f.name;
      EXPECT_GT(worst, 0.4) << f.name;
    }
  }
}

TEST(Math, PowKeepsItsBoundAndItsEnds) {
  const double specials[] = {0.0,  -0.0,     1,        -1,        INFINITY, -INFINITY,        NAN,      2,   -2, 3, -3, 0.5, -0.5, 1.5,
                             -1.5, 16777216, 16777215, -16777215, 8388609,  9007199254740991, 0x1p-149, 1e30};
  CLUTCH_EACH_DEVICE(device) {
    model::Random random(seed());
    std::vector<float> x, y;
    for (double a : specials)
      for (double b : specials) x.push_back(static_cast<float>(a)), y.push_back(static_cast<float>(b));
    const std::size_t ends = x.size();
    for (int i = 0; i < (level() == "nightly" ? 1 << 22 : 1 << 16); ++i) {
      float base = static_cast<float>(std::ldexp(random.uniform(0.5, 1), static_cast<int>(random.next() % 60) - 30));
      x.push_back(base);
      y.push_back(static_cast<float>(random.uniform(-150, 130) / std::log2(static_cast<double>(base) * 1.0000001)));
    }
    auto n = static_cast<std::int64_t>(x.size());
    std::vector<float> got = pow(from_host(x, {n}, device), from_host(y, {n}, device)).to_host<float>();
    Verdict v;
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto want = static_cast<double>(std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i])));
      bool flushed = !device.traits().denormals && (std::fabs(y[i]) < 0x1p-126f);
      if (!flushed) judge(v, x[i], got[i], want, !device.traits().denormals);
      ASSERT_EQ(v.wrong, "") << x[i] << " to " << y[i];
    }
    EXPECT_LE(v.worst, 1) << "after " << ends << " ends";
    if (skip_without(device, "fp64", device.traits().fp64)) continue;
    std::vector<double> dx, dy;
    for (double a : specials)
      for (double b : specials) dx.push_back(a), dy.push_back(b);
    for (int i = 0; i < (level() == "nightly" ? 300000 : 5000); ++i) {
      dx.push_back(std::ldexp(random.uniform(0.5, 1), static_cast<int>(random.next() % 60) - 30));
      dy.push_back(random.uniform(-1080, 1030) / std::log2(dx.back() * 1.0000000001));
    }
    n = static_cast<std::int64_t>(dx.size());
    std::vector<double> wide = pow(from_host(dx, {n}, device), from_host(dy, {n}, device)).to_host<double>();
    double worst = 0;
    Exact a, b, want;
    for (std::size_t i = 0; i < dx.size(); ++i) {
      mpfr_set_d(a.get(), dx[i], MPFR_RNDN);
      mpfr_set_d(b.get(), dy[i], MPFR_RNDN);
      mpfr_pow(want.get(), a.get(), b.get(), MPFR_RNDN);
      ASSERT_EQ(judge_f64(want, wide[i], worst), "") << fmt::format("pow({:a}, {:a}) is {:a}", dx[i], dy[i], wide[i]);
    }
    EXPECT_LE(worst, 3);
  }
}

}}  // namespace clutch::testing
