// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "matmul/args.h"
#include "runtime/runtime.hpp"

#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// How the lanes of a sub-group hold the operands of a matrix instruction (kernels/matmul/fragments.clh).
enum class MatrixLayout : std::uint8_t {
  none = 0,
  mma = MATMUL_LAYOUT_MMA,
  mfma = MATMUL_LAYOUT_MFMA,
  wmma = MATMUL_LAYOUT_WMMA,
  wmma_halves = MATMUL_LAYOUT_WMMA_HALVES,
  dpas_8 = MATMUL_LAYOUT_DPAS_8,
  dpas_16 = MATMUL_LAYOUT_DPAS_16,
};
inline constexpr int kMatrixLayouts = MATMUL_LAYOUT_DPAS_16;
std::string_view name(MatrixLayout layout);

/// What instructions multiply, for bytes which operands are unsigned, and for f8 which are f8e5m2.
struct MatrixNumbers {
  int kind = 0;  ///< one of MATMUL_NUMBERS_...; 0: none
  bool a_unsigned = false, b_unsigned = false, a_e5m2 = false, b_e5m2 = false;
  bool sparse = false;    ///< a is 2:4, as instructions for such matrices take it
  bool exchange = false;  ///< lanes exchange numbers, too, and round them (kernels/flex/exchange.clh)
};

/// True if the layout's instructions multiply such numbers.
bool multiplies(MatrixLayout layout, const MatrixNumbers& numbers);

/// An answer to who asks for matrix instructions.
struct MatrixInstructions {
  MatrixLayout layout = MatrixLayout::none;
  bool stand_in = false;  ///< plain code in their place: tests ask for it
};

/// The instructions that the device has for such numbers, by what it says of itself, and that passed a self-test on it. The test runs once for each device and
/// driver; its result is kept in the cache folder. `asked`: a caller forces them. Otherwise CLUTCH_MATRIX_INSTRUCTIONS decides, and `auto` takes layouts alone
/// whose proofs have run on such a device.
MatrixInstructions matrix_instructions(Runtime& runtime, const MatrixNumbers& numbers, bool asked);

/// For tests: while it lives, all devices have the layout's instructions, for which plain code stands in.
class MatrixStandIn {
 public:
  explicit MatrixStandIn(MatrixLayout layout);
  ~MatrixStandIn();
  MatrixStandIn(const MatrixStandIn&) = delete;
  MatrixStandIn& operator=(const MatrixStandIn&) = delete;
};

/// The self-test of what lanes exchange and round, and of the device's own exp2 (encode/matrix_exchange.cpp).
bool lanes_exchange(Runtime& runtime, MatrixInstructions instructions, const MatrixNumbers& numbers);

/// The self-test: true if the instruction, or what stands in for it, gives the sums that it must on the device.
bool matrix_instructions_work(Runtime& runtime, MatrixInstructions instructions, const MatrixNumbers& numbers);

}}}  // namespace clutch::v0::detail
