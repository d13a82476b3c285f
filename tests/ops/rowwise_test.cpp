// SPDX-License-Identifier: Apache-2.0
#include "cases/rowwise.hpp"

#include "ops/rowwise_plan.hpp"
#include "support/fixture.hpp"

#include <cmath>

namespace clutch::testing {
namespace {

using cases::RowwiseCase;

}  // namespace
}  // namespace clutch::testing
