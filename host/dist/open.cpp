// SPDX-License-Identifier: Apache-2.0
#include "dist/group.hpp"
#include "dist/mpi_transport.hpp"
#include "dist/thread_transport.hpp"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

namespace {

Group group_of(std::shared_ptr<detail::Transport> transport, const OpenOptions& options) {
  if (options.timeout.count() <= 0)
    throw Error(ErrorCode::invalid_argument, "dist::open", fmt::format("timeout must be above 0, got {} ms", options.timeout.count()));
  std::vector<int> ranks(static_cast<std::size_t>(transport->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return Group(std::make_shared<detail::GroupImpl>(std::move(transport), options.name, std::move(ranks), options.timeout));
}

}  // namespace

Group open(const OpenOptions& options) {
  if (options.communicator == nullptr && !detail::has_mpi()) return group_of(detail::thread_transports(1)[0], options);
  Group world = group_of(detail::mpi_transport(options.communicator), options);
  // Connects all ranks, and finds those that cannot be reached.
  (void)world.split(0);
  return world;
}

std::vector<Group> open_threads(int ranks, const OpenOptions& options) {
  if (ranks < 1) throw Error(ErrorCode::invalid_argument, "dist::open_threads", fmt::format("ranks must be 1 or more, got {}", ranks));
  std::vector<Group> groups;
  for (auto& transport : detail::thread_transports(ranks)) groups.push_back(group_of(std::move(transport), options));
  return groups;
}

}}}  // namespace clutch::v0::dist
