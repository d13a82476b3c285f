// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random traced functions that between them use every operation on every dtype.
#include <clutch/expr.hpp>

#include "support/host_model.hpp"

#include <array>
#include <vector>

namespace clutch::testing {

/// A function of one input of each dtype but those that `with_f64` leaves out, with one output of each dtype.
class RandomFunction {
 public:
  RandomFunction(std::uint64_t seed, bool with_f64, int operations) : random_(seed) {
    inputs = {DType::f32, DType::i32, DType::i64, DType::boolean, DType::f32, DType::i32, DType::u64};
    if (with_f64) inputs.push_back(DType::f64);
    for (std::size_t i = 0; i < inputs.size(); ++i) values_.push_back(detail::expr_input(static_cast<int>(i), inputs[i]));
    for (int i = 0; i < operations; ++i) {
      Expr made = step();
      if (with_f64 || made.dtype() != DType::f64) values_.push_back(made);
    }
    std::vector<Expr> outputs;
    for (DType d : {DType::f32, DType::i32, DType::i64, DType::boolean, DType::u64, DType::f64})
      for (std::size_t k = values_.size(); k-- > 0;)
        if (values_[k].dtype() == d) {
          outputs.push_back(values_[k]);
          break;
        }
    function = ExprFunction(inputs, outputs);
  }
  std::vector<DType> inputs;
  ExprFunction function;

 private:
  const Expr& any() { return values_[random_.next() % values_.size()]; }
  Expr number() {
    Expr e = any();
    return e.dtype() == DType::boolean ? select(e, 1, 0) : e;
  }
  Expr whole() {
    for (;;)
      if (Expr e = any(); !is_floating(e.dtype())) return e;
  }
  Expr real() {
    for (;;)
      if (Expr e = any(); is_floating(e.dtype())) return e;
  }
  Expr constant() {
    switch (random_.next() % 4) {
      case 0: return static_cast<int>(random_.next() % 7) - 3;
      case 1: return random_.uniform(-3, 3);
      case 2: return param(random_.uniform(-3, 3));
      default: return param(static_cast<std::int64_t>(random_.next() % 100));
    }
  }
  Expr step() {
    constexpr std::array kCasts{DType::f32, DType::f16, DType::bf16,    DType::i8,  DType::u8,  DType::i16,
                                DType::i32, DType::i64, DType::boolean, DType::u16, DType::u32, DType::u64};
    switch (random_.next() % 46) {
      case 0: return number() + number();
      case 1: return number() - number();
      case 2: return number() * number();
      case 3: return number() / number();
      case 4: return -number();
      case 5: return fma(number(), number(), number());
      case 6: return min(number(), number());
      case 7: return max(number(), number());
      case 8: return abs(number());
      case 9: return floor_div(whole(), whole());
      case 10: return trunc_div(whole(), whole());
      case 11: return floor_mod(whole(), whole());
      case 12: return trunc_mod(whole(), whole());
      case 13: return sqrt(number());
      case 14: return rsqrt(number());
      case 15: return exp(number());
      case 16: return exp2(number());
      case 17: return expm1(number());
      case 18: return log(number());
      case 19: return log2(number());
      case 20: return log1p(number());
      case 21: return tanh(number());
      case 22: return sigmoid(number());
      case 23: return erf(number());
      case 24: return sin(number());
      case 25: return cos(number());
      case 26: return pow(real(), number());
      case 27: return floor(number());
      case 28: return ceil(number());
      case 29: return trunc(number());
      case 30: return round(number());
      case 31: return number() < number();
      case 32: return number() <= number();
      case 33: return number() == number();
      case 34: return number() != number();
      case 35: return whole() & whole();
      case 36: return whole() | whole();
      case 37: return whole() ^ whole();
      case 38: return ~whole();
      case 39: return whole() << whole();
      case 40: return whole() >> whole();
      case 41: return !any();
      case 42: return select(any(), number(), number());
      case 43: return number() * constant();
      case 44: return number() + constant();
      default: return cast(any(), kCasts[random_.next() % kCasts.size()]);
    }
  }

  model::Random random_;
  std::vector<Expr> values_;
};

}  // namespace clutch::testing
