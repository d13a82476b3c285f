// SPDX-License-Identifier: Apache-2.0
// What the Python package calls, as ops of the library `clutch_dist`.
#include "distributed/process_group.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <torch/library.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace torch_clutch {
namespace {

namespace dist = clutch::dist;

// The ranks that mpirun started, of whom all groups are parts. Never destroyed: MPI ends with the process.
struct World {
  std::mutex mutex;
  dist::Group group;
};
World& world() {
  static auto* made = new World;
  return *made;
}

/// Gives a process group of PyTorch the backend. Python has no class for it; it takes it from that group.
/// `ranks`: of the default group, as PyTorch numbers them; empty: the default group itself. `is_all`: they are all ranks.
void attach(const c10::intrusive_ptr<c10d::ProcessGroup>& to, const std::vector<int64_t>& ranks, bool is_all, int64_t timeout_ms, const std::string& name,
            int64_t flight_records, const std::string& flight_file) {
  translated([&] {
    auto options = c10::make_intrusive<ProcessGroupClutch::Options>(std::chrono::milliseconds(timeout_ms));
    options->group_name = name;
    dist::Group group;
    {
      std::lock_guard lock(world().mutex);
      if (ranks.empty() || (is_all && (world().group.empty() || world().group.failed()))) {
        group = dist::open({.timeout = std::chrono::milliseconds(timeout_ms), .flight_records = static_cast<int>(flight_records), .flight_file = flight_file});
        TORCH_CHECK_VALUE(group.rank() == to->getRank() && group.size() == to->getSize(), "clutch: the group must have MPI's ranks, of which this is rank ",
                          group.rank(), " of ", group.size(), " (mpirun starts more), got rank ", to->getRank(), " of ", to->getSize());
        world().group = group;
      } else {
        TORCH_CHECK_VALUE(!world().group.empty(), "clutch: the first group with the backend must have all ranks, as it connects them, got one of ",
                          ranks.size(), " ranks");
        group = world().group.subgroup(std::vector<int>(ranks.begin(), ranks.end()), name);
      }
    }
    for (int rank : group.global_ranks()) options->global_ranks_in_group.push_back(static_cast<uint64_t>(rank));
    to->setBackend(kDevice, c10d::ProcessGroup::BackendType::CUSTOM, c10::make_intrusive<ProcessGroupClutch>(std::move(group), std::move(options)));
  });
}

void dump_flight(const std::string& prefix, bool json) {
  std::lock_guard lock(world().mutex);
  TORCH_CHECK_VALUE(!world().group.empty(), "clutch: a group with the backend must be there before its calls are dumped, got none");
  translated([&] { world().group.dump_flight(prefix, json ? dist::FlightFormat::json : dist::FlightFormat::torch_pickle); });
}

}  // namespace

TORCH_LIBRARY(clutch_dist, library) {
  library.def(
      "attach(__torch__.torch.classes.c10d.ProcessGroup to, int[] ranks, bool is_all, int timeout_ms, str name, int flight_records, str flight_file) -> ()",
      &attach);
  library.def("dump_flight(str prefix, bool json) -> ()", &dump_flight);
}

}  // namespace torch_clutch
