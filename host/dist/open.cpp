// SPDX-License-Identifier: Apache-2.0
#include "dist/group.hpp"
#include "dist/mpi_transport.hpp"
#include "dist/thread_transport.hpp"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

Group detail::group_of(std::shared_ptr<Transport> transport, const OpenOptions& options, const char* op, std::shared_ptr<SimulatedRank> simulated) {
  if (options.timeout.count() <= 0) throw Error(ErrorCode::invalid_argument, op, fmt::format("timeout must be above 0, got {} ms", options.timeout.count()));
  if (options.flight_records < 0)
    throw Error(ErrorCode::invalid_argument, op, fmt::format("flight_records must not be negative, got {}", options.flight_records));
  std::shared_ptr<Flight> flight;
  if (options.flight_records > 0) {
    std::filesystem::path file = options.flight_file;
    if (!file.empty()) file += std::to_string(transport->rank());
    flight = std::make_shared<Flight>(
        FlightOptions{.file = file, .records = static_cast<std::uint32_t>(options.flight_records), .rank = transport->rank(), .world_size = transport->size()});
  }
  if (simulated) simulated->keep(flight);
  std::vector<int> ranks(static_cast<std::size_t>(transport->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return Group(std::make_shared<GroupImpl>(std::move(transport), GroupFacts{.name = options.name,
                                                                            .path = "0",
                                                                            .global_ranks = std::move(ranks),
                                                                            .timeout = options.timeout,
                                                                            .apart = options.apart,
                                                                            .flight = std::move(flight),
                                                                            .simulated = std::move(simulated)}));
}

Group open(const OpenOptions& options) {
  if (options.communicator == nullptr && !detail::has_mpi()) return open_threads(1, options)[0];
  if (options.reconfigurable && !detail::survives_killed_ranks())
    throw Error(ErrorCode::not_supported, "dist::open",
                "OpenOptions::reconfigurable must have an mpirun that does not end all ranks with one: mpirun --enable-recovery, got one without");
  const Group world = detail::group_of(detail::mpi_transport(options.communicator), options, "dist::open");
  world.impl()->connect(), world.impl()->watch();
  return world;
}

std::vector<Group> open_threads(int ranks, const OpenOptions& options) {
  if (ranks < 1) throw Error(ErrorCode::invalid_argument, "dist::open_threads", fmt::format("ranks must be 1 or more, got {}", ranks));
  std::vector<Group> groups;
  const auto boards = detail::thread_boards(ranks);
  for (auto& transport : detail::thread_transports(ranks)) {
    groups.push_back(detail::group_of(std::move(transport), options, "dist::open_threads"));
    if (!options.apart) groups.back().impl()->connect(boards[groups.size() - 1]);
  }
  return groups;
}

}}}  // namespace clutch::v0::dist
