// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "expr/node.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// How many vectors a thread of a CPU should compute side by side: each operation of a long function waits for the one before it, and a core looks ahead by
/// some hundred instructions. 1, 2, 4 or 8: as many as registers have room for. `known_step`: as in PrintNames.
int sides_of(const ExprFunction& function, int known_step = -1);

/// print_opencl() for so many vectors, operation by operation, as the macro CLUTCH_<names.macro>_SIDES alone, with CLUTCH_EACH_SIDE(statement): the statement
/// for each vector (common/expr.clh). The caller defines CLUTCH_SIDES. For functions of which sides_of() is not 1.
std::string print_side_by_side(int sides, const ExprFunction& function, std::span<const DType> output_dtypes, std::span<const DType> input_dtypes,
                               const PrintNames& names = {});

}}}  // namespace clutch::v0::detail
