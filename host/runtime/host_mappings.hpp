// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/cl_api.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

/// Addresses that host tasks have mapped. Drivers may find the mapping to unmap by its pointer alone, so an address has at most one mapping at a time, from its
/// map to the end of its unmap.
class HostMappings {
 public:
  /// Reserves an address for a task on a stream. Waits first if this stream's last unmap of the address is not done. False while another task has it.
  bool take(cl_mem mem, std::uint64_t offset, std::uint64_t stream) {
    std::unique_lock lock(mutex_);
    std::erase_if(places_, [](const auto& row) { return row.second.unmapped && is_done(row.second.unmapped.get()); });
    auto [row, fresh] = places_.try_emplace({mem, offset});
    if (fresh) return true;
    Place& place = row->second;
    if (!place.unmapped || place.stream != stream) return false;
    ClEvent unmapped = std::move(place.unmapped);
    lock.unlock();
    cl_event raw = unmapped.get();
    clWaitForEvents(1, &raw);
    return true;
  }
  /// Frees an address once `unmapped`, an event of `stream`, is done; at once if `unmapped` is null.
  void give_back(cl_mem mem, std::uint64_t offset, std::uint64_t stream, ClEvent unmapped) {
    std::lock_guard lock(mutex_);
    if (unmapped)
      places_[{mem, offset}] = {stream, std::move(unmapped)};
    else
      places_.erase({mem, offset});
  }

 private:
  struct Place {
    std::uint64_t stream = 0;
    ClEvent unmapped;  ///< null while the address is mapped
  };
  std::mutex mutex_;
  std::map<std::pair<cl_mem, std::uint64_t>, Place> places_;
};

}}}  // namespace clutch::v0::detail
