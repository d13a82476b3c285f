// SPDX-License-Identifier: Apache-2.0
#include "cases/@STEM@.hpp"

#include "support/fixture.hpp"

namespace clutch::testing {
namespace {

using cases::@PASCAL@Case;

TEST(@PASCAL@, MatchesTheModel) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t n : @PASCAL@Case::lengths(level())) {
      std::vector<std::uint8_t> raw = model::make_values(static_cast<std::size_t>(n), DType::f32, seed()), want(raw.size());
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
        model::store_at(want.data(), i, DType::f32, @PASCAL@Case::reference(static_cast<float>(model::value_at(raw.data(), i, DType::f32))));
      Guarded input(device, DType::f32, {n}, {2}), out(device, DType::f32, {n});
      input.set(raw);
      @STEM@_out(out.view(), input.view());
      ASSERT_EQ(compare_bits(out.get(), want, DType::f32, !device.traits().denormals), "") << n;
    }
  }
}

TEST(@PASCAL@, RefusesBadInput) {
  const Device& device = test_devices().front();
  Tensor t = zeros({4}, {.device = device});
  EXPECT_EQ(code_of([&] { @STEM@(zeros({4}, {.dtype = DType::i32, .device = device})); }), ErrorCode::invalid_dtype);
  EXPECT_EQ(code_of([&] { @STEM@_out(zeros({5}, {.device = device}), t); }), ErrorCode::invalid_shape);
}

}  // namespace
}  // namespace clutch::testing
