// SPDX-License-Identifier: Apache-2.0
// Numbers of each rank's tensors, which every rank can make.
#pragma once
#include "dist/ranks.hpp"

#include <random>

namespace clutch::testing {

/// Numbers in (-2, 2), none of them near another one's.
inline Tensor numbers_of(int rank, const Dims& sizes, unsigned salt, DType dtype = DType::f32) {
  std::mt19937 random(1000U * static_cast<unsigned>(rank) + salt);
  std::uniform_real_distribution<double> some(-2, 2);
  std::vector<double> numbers(static_cast<std::size_t>(numel(sizes)));
  for (double& x : numbers) x = some(random);
  return from_host(numbers, sizes).to(dtype);
}

/// The same on every rank.
inline Tensor shared_numbers(const Dims& sizes, unsigned salt, DType dtype = DType::f32) { return numbers_of(99, sizes, salt, dtype); }

inline void expect_bits(const Tensor& got, const Tensor& wanted, const char* what = "") {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  ASSERT_EQ(got.dtype(), wanted.dtype()) << what;
  EXPECT_TRUE(got.to_bytes() == wanted.to_bytes()) << what << ": " << got.to_string() << " instead of " << wanted.to_string();
}

/// |got - wanted| <= bound * (|wanted| + 1) for each element.
inline void expect_near(const Tensor& got, const Tensor& wanted, double bound, const char* what = "") {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  const std::vector<double> a = values(got), b = values(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], bound * (std::abs(b[i]) + 1)) << what << " element " << i;
}

}  // namespace clutch::testing
