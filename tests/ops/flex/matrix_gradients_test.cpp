// SPDX-License-Identifier: Apache-2.0
// Gradients of attention by matrix instructions, as tests/ops/flex/matrix_test.cpp has attention itself.
#include "ops/flex/given.hpp"
#include "ops/flex/matrix.hpp"
#include "support/matrix_layouts.hpp"
#include "support/op_runner.hpp"

#include <array>

namespace clutch::testing { namespace {

using detail::MatrixStandIn;
using linalg::Numerics;

/// True if the device can run the kernels in the least tile of each layout, with plain code in the place of instructions.
bool runs(const Device& device) {
  const DeviceTraits& t = device.traits();
  return can_run(device) && t.max_work_group >= 128 && t.local_bytes >= 64 << 10;
}

/// Weights of 0 and 1 and whole numbers: lengths around tiles, heads and batches that share keys, rows of quads and others, block masks.
TEST(FlexMatrixGradients, WholeNumbersAreExact) {
  CLUTCH_EACH_DEVICE(device) {
    if (!runs(device)) continue;
    constexpr std::array kShapes{FlexCase::Shape{.batch = 1, .heads = 2, .q_len = 75, .kv_len = 70, .e = 19, .ev = 11, .kv_heads = 1},
                                 FlexCase::Shape{.batch = 2, .heads = 1, .q_len = 33, .kv_len = 129, .e = 64, .ev = 64, .kv_batch = 1},
                                 FlexCase::Shape{.batch = 1, .heads = 1, .q_len = 70, .kv_len = 40, .e = 72, .ev = 128}};
    int turn = 0;
    for (std::size_t i = 0; i < kShapes.size(); ++i)
      for (const MatrixLayout layout : kLayouts) {
        const MatrixStandIn stand_in(layout);
        for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
          if (dtype == DType::f32 && !detail::multiplies(layout, {.kind = MATMUL_NUMBERS_TF32})) continue;
          ++turn;
          // Each is two programs. Which lane has what does not depend on the shape.
          if (level() == "smoke" && (i > 0 || dtype != DType::bf16 || (layout != MatrixLayout::mma && layout != MatrixLayout::wmma))) continue;
          for (const int which : {0, 1, 2}) {
            const std::string wrong =
                run_once(device, FlexCase::gradient_problem("flex_matrix_dq", dtype, kShapes[i], which, seed() + i, turn % 2 == 0));
            EXPECT_EQ(wrong, "") << name(layout) << " " << name(dtype) << " shape " << i << " gradient " << which;
          }
        }
      }
  }
}

}}  // namespace clutch::testing
