// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/recorder.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// The Recorder of streams whose commands run now: each goes to the stream's OpenCL queue at once. It has no state of its own.
Recorder& queue_recorder() noexcept;

}}}  // namespace clutch::v0::detail
