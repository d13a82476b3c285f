// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/dist.hpp>

namespace torch_clutch {

/// The line of Python that makes a call, outside of PyTorch: what errors of other ranks and flight recorders say of it. Empty where no Python runs.
clutch::dist::SourceLine place_in_python();

}  // namespace torch_clutch
