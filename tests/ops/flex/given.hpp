// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors of attention's tests, and how near results are to the model's.
#include "cases/flex.hpp"

#include "ops/flex_plan.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <cmath>
#include <limits>

namespace clutch::testing {

using attention::flex;
using attention::FlexOptions;
using attention::FlexResult;
using attention::Index;
using attention::MaskMod;
using attention::Score;
using attention::ScoreMod;
using cases::FlexCase;

inline constexpr double kInf = std::numeric_limits<double>::infinity();

struct Given {
  FlexCase::Shape shape;
  Tensor q, k, v;
  Given(const FlexCase::Shape& s, const Device& device, DType dtype = DType::f32, std::uint64_t more = 0)
      : shape(s),
        q(randn(s.q(), {.dtype = dtype, .device = device, .seed = seed() + more})),
        k(randn(s.k(), {.dtype = dtype, .device = device, .seed = seed() + more + 1})),
        v(randn(s.v(), {.dtype = dtype, .device = device, .seed = seed() + more + 2})) {}
  FlexCase::Result model(const FlexCase::HostScore& score = {}, const FlexCase::HostMask& mask = {}, double scale = 0) const {
    return FlexCase::model(shape, values(q), values(k), values(v), scale == 0 ? 1 / std::sqrt(static_cast<double>(shape.e)) : scale, score, mask);
  }
};

/// What rounding allows: of the stored dtype, and of scores, whose error times the values' size it becomes.
inline double bound(DType dtype, const FlexCase::Result& want) {
  if (dtype == DType::f64) return 1e-14 + 16 * 0x1p-53 * want.largest;
  const double longer = std::max(std::sqrt(static_cast<double>(want.e) / 64), 1.0), f32 = 2e-6 * longer + 16 * 0x1p-24 * std::max(want.largest - 8, 0.0);
  return dtype == DType::f32 ? f32 : dtype == DType::f16 ? f32 + 0x1p-9 : f32 + 0x1p-6;
}

/// Of out, and of lse and max_scores where they are there.
inline void expect_close(const FlexResult& got, const FlexCase::Result& want, const std::string& what) {
  const std::vector<double> out = values(got.out);
  ASSERT_EQ(out.size(), want.out.size()) << what;
  const double most = bound(got.out.dtype(), want);
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], want.out[i], most) << what << " at " << i;
  auto lines = [&](const Tensor& t, const std::vector<double>& wanted, const char* of) {
    if (!t.defined()) return;
    const std::vector<double> x = values(t);
    ASSERT_EQ(x.size(), wanted.size()) << what;
    const double eps = t.dtype() == DType::f64 ? 0x1p-52 : 0x1p-21;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isinf(wanted[i]))
        ASSERT_EQ(x[i], wanted[i]) << what << " " << of << " at " << i;
      else
        ASSERT_NEAR(x[i], wanted[i], eps * (8 + 2 * want.largest)) << what << " " << of << " at " << i;
    }
  };
  lines(got.lse, want.lse, "lse"), lines(got.max_scores, want.top, "max_scores");
}

}  // namespace clutch::testing
