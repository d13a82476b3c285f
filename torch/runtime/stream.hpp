// SPDX-License-Identifier: Apache-2.0
// Streams: PyTorch names one by an id, 0 for a device's default stream, clutch by a handle.
#pragma once
#include "runtime/export.hpp"

#include <c10/core/Stream.h>
#include <clutch/stream.hpp>

namespace torch_clutch {

/// Errors: RuntimeError for an id that no stream has.
clutch::Stream stream_of(const c10::Stream& stream);
TORCH_CLUTCH_EXPORT c10::Stream stream_named(const clutch::Stream& stream, c10::DeviceIndex index);
c10::Stream current_stream(c10::DeviceIndex index);
/// The next of 32 streams of a device and priority, which are made as they are first asked for. A negative priority is a high one, a positive one low.
c10::Stream next_stream(c10::DeviceIndex index, int priority);
/// Makes a stream its device's current one and returns the former; the current device stays.
c10::Stream exchange_stream(const c10::Stream& stream);

}  // namespace torch_clutch
