// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/stream.hpp"

#include <cstdint>
#include <functional>
#include <span>

namespace clutch { inline namespace v0 { namespace detail {

/// Range of bytes of a buffer that a host task reads or writes.
struct HostRange {
  cl_mem mem;
  std::uint64_t offset, bytes;
  bool writes;
};

/// Maps the ranges, runs the task on their pointers (null for an empty range) and unmaps the ranges, in the stream's order. Waits for the stream's earlier
/// work.
void run_host_task(StreamImpl& stream, const char* op, const std::function<void(std::span<void* const>)>& task, std::span<const HostRange> ranges);

}}}  // namespace clutch::v0::detail
