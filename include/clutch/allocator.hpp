// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 {

class Tensor;

// Memory and streams: a block belongs to the stream of the call that allocated it. When its last tensor goes, later
// work of that stream may have it at once; where other streams have used it, only after their work up to then is over.
// So nothing like PyTorch's record_stream() is needed. The order of reads and writes between streams is the caller's,
// by Event and Stream::wait(); CLUTCH_CHECK_STREAMS=1 tells of calls that lack it.
//
// Segments: blocks are parts of segments, which come from the driver. On CPU devices whose driver computes in a
// caller's memory, clutch maps the segments itself: a refusal of the system is out_of_memory, memory is given back by
// pages, and segments grow in place unless the settings say otherwise.
//
// Addresses: memory_address() depends on the order of calls alone, so that a program that uses memory on one stream has
// the same addresses in each run with the same settings, and on each device whose segments grow in place, or on each
// where they do not: with expandable_segments:False on all.

/// Names a pool of segments. {0, 0} is the default pool of a device; new_pool() gives {0, id}.
struct PoolId {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  friend bool operator==(const PoolId&, const PoolId&) = default;
};

/// Returns a pool id that no other caller has.
CLUTCH_API PoolId new_pool();

struct MemPoolOptions {
  bool use_on_oom = false;  ///< allocations of the default pool may take its free blocks before they fail
  bool no_split = false;    ///< a block is all of its segment
};

/// A pool of segments, on all devices, that gives its memory back at its end: unused segments then, others when their
/// last tensor goes. Source: torch.cuda.MemPool of PyTorch 2.12.
class CLUTCH_API MemPool {
 public:
  explicit MemPool(const MemPoolOptions& options = {});
  ~MemPool();
  MemPool(const MemPool&) = delete;
  MemPool& operator=(const MemPool&) = delete;
  PoolId id() const noexcept { return id_; }

 private:
  PoolId id_;
};

/// Makes this thread allocate from a pool of its own while it lives; guards nest.
class CLUTCH_API PoolGuard {
 public:
  explicit PoolGuard(PoolId pool);
  explicit PoolGuard(const MemPool& pool) : PoolGuard(pool.id()) {}
  ~PoolGuard();
  PoolGuard(const PoolGuard&) = delete;
  PoolGuard& operator=(const PoolGuard&) = delete;

 private:
  PoolId former_;
};

/// Names what this thread allocates while it lives, in statistics, snapshots and Errors; guards nest, the innermost
/// counts. Without one the name is that of the op.
class CLUTCH_API MemoryLabelGuard {
 public:
  explicit MemoryLabelGuard(std::string label);
  ~MemoryLabelGuard();
  MemoryLabelGuard(const MemoryLabelGuard&) = delete;
  MemoryLabelGuard& operator=(const MemoryLabelGuard&) = delete;

 private:
  std::string label_;
  const std::string* former_;
};

/// How the allocator cuts and keeps segments: PyTorch's keys, whose defaults these are but for segments that grow.
struct AllocatorSettings {
  std::uint64_t large_segment_size = 20ull << 20;  ///< bytes of segments for blocks between 1 MiB and 10 MiB
  /// Bytes from which a block is not split, and not taken for a smaller request; default: none.
  std::uint64_t max_split_size = UINT64_MAX;
  /// Bytes that a block of max_split_size or more may be larger than the request that takes it.
  std::uint64_t max_non_split_rounding_size = 20ull << 20;
  /// Part of the memory limit above which the oldest unused segments go first; 0: off.
  double garbage_collection_threshold = 0;
  /// Divisions of the range between two powers of two to which sizes are rounded up: one number each for sizes from
  /// 1 MiB, 2 MiB, ... 32 GiB on, smaller ones as from 1 MiB; 0: off.
  std::array<std::uint64_t, 16> roundup_power2_divisions{};
  /// True: the text asks for segments that grow in place; where the device's cannot, each new one is as large as all
  /// before it, up to an eighth of the device's memory. Where they can, they do by default, too: unless the text says
  /// expandable_segments:False, or has large_segment_size_mb, max_split_size_mb, max_non_split_rounding_mb or
  /// garbage_collection_threshold, which mean segments that do not grow.
  bool expandable_segments = false;
  /// Part of the memory that may be held, as set_per_process_memory_fraction() counts it; 1: the limit that it,
  /// set_memory_limit() or CLUTCH_MEMORY_LIMIT has set.
  double per_process_memory_fraction = 1;
  std::vector<std::string> without_effect;  ///< given keys of PyTorch's that mean nothing on OpenCL devices
  std::string last_allocator_settings;      ///< the text that was given
};

/// The settings in force: those of CLUTCH_ALLOC_CONF, or of the last set_allocator_settings().
/// Errors: invalid_setting if CLUTCH_ALLOC_CONF is not valid.
CLUTCH_API AllocatorSettings allocator_settings();
/// Replaces the settings of all devices by those of a text of PyTorch's grammar: "expandable_segments:True,
/// roundup_power2_divisions:[256:1,512:2,>:4]". Keys that are not in the text have their defaults. Blocks and segments
/// that exist stay.
/// Memory: the limit of per_process_memory_fraction holds at once, until a limit is set for the device itself; without
///   the key the limit before it holds again.
/// Errors: invalid_setting for an unknown key or a value that the key does not allow; invalid_argument if a device
///   holds more than the limit then allows. Nothing is changed then.
/// Source: torch.cuda.memory._set_allocator_settings, PYTORCH_CUDA_ALLOC_CONF of PyTorch 2.12.
CLUTCH_API void set_allocator_settings(std::string_view text);

/// Counters of the caching allocator under PyTorch's keys, sorted; empty before first use.
/// Keys: {allocation, segment, active, inactive_split}.{all, large_pool, small_pool}.{current, peak, allocated, freed},
///   the same with _bytes behind `allocated`, `reserved`, `active`, `inactive_split` and `requested`;
///   {oversize_allocations, oversize_segments}.{current, peak, allocated, freed}; num_alloc_retries, num_ooms,
///   num_oom_rejections, num_sync_all_streams, num_device_alloc, num_device_free, max_split_size.
/// Reserved: bytes of segments, without pages that were given back, and in segments that grow without those that no
///   block has used.
CLUTCH_API std::map<std::string, std::uint64_t> memory_stats(const Device& device = {});
/// The same counters of one pool, which must not be the default one; empty before the pool is first used, and when the
/// last tensor of a MemPool that has ended is gone.
CLUTCH_API std::map<std::string, std::uint64_t> memory_stats(PoolId pool, const Device& device = {});

/// Memory in use under one label.
struct LabelStats {
  std::uint64_t current = 0;  ///< bytes
  std::uint64_t peak = 0;     ///< bytes, since the last reset_peak_memory_stats()
  std::uint64_t blocks = 0;
};
CLUTCH_API std::map<std::string, LabelStats> memory_stats_by_label(const Device& device = {});
/// Bytes handed out in blocks.
CLUTCH_API std::uint64_t memory_allocated(const Device& device = {});
/// Peak of memory_allocated() since the last reset.
CLUTCH_API std::uint64_t max_memory_allocated(const Device& device = {});
/// Bytes held in segments.
CLUTCH_API std::uint64_t memory_reserved(const Device& device = {});
/// Peak of memory_reserved() since the last reset.
CLUTCH_API std::uint64_t max_memory_reserved(const Device& device = {});
/// Makes each peak the current number.
CLUTCH_API void reset_peak_memory_stats(const Device& device = {});
/// Sets what was counted up since the beginning (`allocated`, `freed`, num_...) to 0.
CLUTCH_API void reset_accumulated_memory_stats(const Device& device = {});

/// Gives unused memory back: whole segments, and where clutch maps them pages of free blocks.
/// Stream: waits for the device's work, because later work may read what is free by now.
CLUTCH_API void empty_cache(const Device& device = {});

/// Memory of a device.
struct MemoryInfo {
  std::uint64_t free = 0;   ///< bytes that clutch may still take
  std::uint64_t total = 0;  ///< the limit if there is one, else what the driver says the device has
  bool estimated = true;    ///< other programs may use the device's memory, which OpenCL does not tell
};
CLUTCH_API MemoryInfo get_memory_info(const Device& device = {});

/// Limits the bytes that clutch holds on the device, as CLUTCH_MEMORY_LIMIT does: an allocation past the limit is
/// out_of_memory before the driver or the system is asked. Devices that compute in the host's memory share one limit.
/// Errors: invalid_argument if the device holds more than that (empty_cache() gives unused memory back), or if it is 0.
CLUTCH_API void set_memory_limit(std::uint64_t bytes, const Device& device = {});
/// The same by a part of the device's memory, or of the memory that the system leaves to the process; 1: no limit.
/// Errors: invalid_argument unless 0 <= fraction <= 1; as set_memory_limit().
CLUTCH_API void set_per_process_memory_fraction(double fraction, const Device& device = {});
/// The limit as a part of the device's memory, or of the memory that the system leaves to the process; 1: no limit. A
/// limit in bytes counts by the device's memory, 1 at most.
CLUTCH_API double get_per_process_memory_fraction(const Device& device = {});

/// State of a device's memory when an allocation finds none.
struct MemoryShortage {
  Device device;
  std::uint64_t wanted = 0;     ///< bytes
  std::uint64_t allocated = 0;  ///< bytes in blocks
  std::uint64_t reserved = 0;   ///< bytes in segments
  std::uint64_t limit = 0;      ///< bytes; UINT64_MAX: none
};

/// Keeps a function registered while it lives.
class CLUTCH_API MemoryCallback {
 public:
  MemoryCallback() = default;
  explicit MemoryCallback(std::shared_ptr<void> entry) noexcept : entry_(std::move(entry)) {}

 private:
  std::shared_ptr<void> entry_;
};

/// Calls `release` when an allocation finds no memory: the function may let tensors go, and returns true if it did,
/// upon which the allocation tries again. Called on the allocating thread, which holds no lock; what the function
/// allocates itself does not call it.
/// Source: c10::FreeMemoryCallback of PyTorch 2.12.
[[nodiscard]] CLUTCH_API MemoryCallback on_memory_short(std::function<bool(const MemoryShortage&)> release);
/// Calls `observe` before an allocation fails with out_of_memory, on the allocating thread, which holds no lock.
/// Source: torch._C._cuda_attach_out_of_memory_observer of PyTorch 2.12.
[[nodiscard]] CLUTCH_API MemoryCallback on_out_of_memory(std::function<void(const MemoryShortage&)> observe);

/// Address of a tensor's element 0 among those of snapshots, of the device's own space.
/// Errors: invalid_argument for memory that is not of the allocator's: wrapped buffers, undefined tensors; capturing.
CLUTCH_API std::uint64_t memory_address(const Tensor& tensor);

struct MemoryHistoryOptions {
  std::uint64_t max_entries = 1000000;  ///< for each device; the newest are kept
  bool clear_history = false;           ///< forgets what was recorded before
};
/// Records allocations and frees of all devices, for snapshots.
/// Errors: invalid_argument if max_entries is 0.
/// Source: torch.cuda.memory._record_memory_history of PyTorch 2.12.
CLUTCH_API void record_memory_history(const MemoryHistoryOptions& options = {});
/// Ends the recording; what was recorded stays.
CLUTCH_API void stop_memory_history();

/// A block of a snapshot.
struct MemoryBlock {
  std::uint64_t address = 0, size = 0, requested_size = 0;
  std::string_view state;  ///< "active_allocated", "active_awaiting_free" (other streams use it), "inactive"
  std::string label;
};
/// A segment of a snapshot, whose blocks fill it in the order of addresses. Where pages of a segment are not held, each
/// range of pages that are is one.
struct MemorySegment {
  int device = 0;
  std::uint64_t address = 0, total_size = 0, allocated_size = 0, active_size = 0, requested_size = 0;
  std::uint64_t stream = 0;
  PoolId pool;
  bool small = false;
  bool is_expandable = false;
  std::vector<MemoryBlock> blocks;
};
/// An event of the history.
struct MemoryTraceEntry {
  /// "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
  /// "oom", "snapshot"
  std::string_view action;
  std::uint64_t address = 0;  ///< of "oom": bytes that the device has free
  std::uint64_t size = 0;     ///< bytes that the caller asked for, or of the segment
  std::uint64_t stream = 0;
  PoolId pool;
  std::int64_t time_us = 0;  ///< since 1970
  std::string label;
};
struct MemorySnapshot {
  std::vector<MemorySegment> segments;
  std::vector<std::vector<MemoryTraceEntry>> device_traces;  ///< by Device::index()
  AllocatorSettings settings;
};
/// Segments and history of all devices that have been used.
/// Source: torch.cuda.memory._snapshot of PyTorch 2.12.
CLUTCH_API MemorySnapshot memory_snapshot();
/// Writes the snapshot to a file: if its name ends in ".html" as a page to look at, which needs nothing else; otherwise
/// as the pickle that torch.cuda._memory_viz and pytorch.org/memory_viz read.
/// Errors: io if the file cannot be written; a former file is kept then.
/// Source: torch.cuda.memory._dump_snapshot of PyTorch 2.12.
CLUTCH_API void dump_memory_snapshot(const std::string& path);

}}  // namespace clutch::v0
