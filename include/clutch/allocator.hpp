// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace clutch { inline namespace v0 {

/// Names a pool of segments. {0, 0} is the default pool of a device; new_pool() gives {0, id}.
struct PoolId {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  friend bool operator==(const PoolId&, const PoolId&) = default;
};

/// Returns a pool id that no other caller has.
CLUTCH_API PoolId new_pool();

/// Makes this thread allocate from a pool of its own while it lives; guards nest.
class CLUTCH_API PoolGuard {
 public:
  explicit PoolGuard(PoolId pool);
  ~PoolGuard();
  PoolGuard(const PoolGuard&) = delete;
  PoolGuard& operator=(const PoolGuard&) = delete;

 private:
  PoolId former_;
};

// Memory and streams: a block belongs to the stream of the call that allocated it. When its last tensor goes, later
// work of that stream may have it at once; where other streams have used it, only after their work up to then is over.
// So nothing like PyTorch's record_stream() is needed. The order of reads and writes between streams is the caller's,
// by Event and Stream::wait(); CLUTCH_CHECK_STREAMS=1 tells of calls that lack it.

/// Counters of the caching allocator under PyTorch's keys ("allocated_bytes.all.current"), sorted; empty before first
/// use.
CLUTCH_API std::map<std::string, std::uint64_t> memory_stats(const Device& device = {});
/// Bytes handed out in blocks.
CLUTCH_API std::uint64_t memory_allocated(const Device& device = {});
/// Bytes held in segments.
CLUTCH_API std::uint64_t memory_reserved(const Device& device = {});
/// Gives unused segments back to the driver. Waits for blocks that other streams still use.
CLUTCH_API void empty_cache(const Device& device = {});
CLUTCH_API void reset_peak_memory_stats(const Device& device = {});

}}  // namespace clutch::v0
