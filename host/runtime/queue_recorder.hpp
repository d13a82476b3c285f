// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/recorder.hpp"

namespace clutch { inline namespace v0 { namespace detail {

/// The Recorder that enqueues each command at once on the stream's OpenCL queue. It has no state, so all streams share one.
Recorder& queue_recorder() noexcept;

}}}  // namespace clutch::v0::detail
