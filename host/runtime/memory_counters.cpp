// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_counters.hpp"

#include <fmt/format.h>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Calls `visit` with each counter and its key without the last part.
template <class All, class Visit>
void each_counter(All& all, Visit visit) {
  auto three = [&](const char* key, auto& counters) {
    visit(fmt::format("{}.all", key), counters.all);
    visit(fmt::format("{}.small_pool", key), counters.small);
    visit(fmt::format("{}.large_pool", key), counters.large);
  };
  three("allocation", all.allocation);
  three("allocated_bytes", all.allocated_bytes);
  three("segment", all.segment);
  three("reserved_bytes", all.reserved_bytes);
  three("active", all.active);
  three("active_bytes", all.active_bytes);
  three("inactive_split", all.inactive_split);
  three("inactive_split_bytes", all.inactive_split_bytes);
  three("requested_bytes", all.requested_bytes);
  visit("oversize_allocations", all.oversize_allocations);
  visit("oversize_segments", all.oversize_segments);
}

}  // namespace

void MemoryCounters::reset_peaks() {
  each_counter(*this, [](const std::string&, Counter& c) { c.peak = c.current; });
}

void MemoryCounters::reset_accumulated() {
  each_counter(*this, [](const std::string&, Counter& c) { c.allocated = c.freed = 0; });
  alloc_retries = ooms = oom_rejections = sync_all_streams = device_allocs = device_frees = 0;
}

std::map<std::string, std::uint64_t> MemoryCounters::by_key(std::uint64_t max_split_size) const {
  std::map<std::string, std::uint64_t> result;
  each_counter(*this, [&](const std::string& key, const Counter& c) {
    result[key + ".current"] = c.current;
    result[key + ".peak"] = c.peak;
    result[key + ".allocated"] = c.allocated;
    result[key + ".freed"] = c.freed;
  });
  result["num_alloc_retries"] = alloc_retries;
  result["num_ooms"] = ooms;
  result["num_oom_rejections"] = oom_rejections;
  result["num_sync_all_streams"] = sync_all_streams;
  result["num_device_alloc"] = device_allocs;
  result["num_device_free"] = device_frees;
  result["max_split_size"] = max_split_size;
  return result;
}

}}}  // namespace clutch::v0::detail
