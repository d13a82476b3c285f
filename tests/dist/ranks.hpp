// SPDX-License-Identifier: Apache-2.0
// Ranks for tests: threads of this process, or the processes that mpirun started.
#pragma once
#include "support/fixture.hpp"

#include <clutch/dist.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace clutch::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Ranks of mpirun; 0 where the process is alone.
inline int processes() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  return size == nullptr ? 0 : std::atoi(size);
}

/// Two groups for all tests of a process: MPI is initialized once.
inline const dist::Group& world(bool apart = false) {
  static const auto& group = *new dist::Group(dist::open({.timeout = std::chrono::seconds(20)}));
  static const auto& group_apart = *new dist::Group(dist::open({.timeout = std::chrono::seconds(20), .apart = true}));
  return apart ? group_apart : group;
}

enum class Hosts { one, one_or_many };

/// Calls f(group) for each rank, with a stream of its own: under mpirun for the rank of this process, in a group of its own so that a test may let it fail;
/// else for each of these numbers of ranks, that are threads. Odd numbers of ranks have nothing but messages, as on many hosts, unless a test needs one.
template <class F>
void for_ranks(const std::vector<int>& numbers, F&& f, Hosts hosts = Hosts::one_or_many) {
  auto is_apart = [&](int n) { return hosts == Hosts::one_or_many && n % 2 == 1; };
  const Device device = default_device();
  auto is_few = [](int n) { return n == 2 || n == 3; };
  // Under sanitizers two and three ranks do, where a test has them: they run all code of more.
  const bool does_few = kSanitized && std::any_of(numbers.begin(), numbers.end(), is_few);
  if (processes() > 0) {
    SCOPED_TRACE("rank " + std::to_string(world().rank()) + " of " + std::to_string(world().size()) + " processes");
    const StreamGuard stream{Stream(device)};
    f(world(is_apart(processes())).split(0, 0, "test"));
    return;
  }
  for (const int n : numbers) {
    if (does_few && !is_few(n)) continue;
    SCOPED_TRACE(std::to_string(n) + " threads");
    const std::vector<dist::Group> groups = dist::open_threads(n, {.timeout = std::chrono::seconds(20), .name = "test", .apart = is_apart(n)});
    std::vector<std::thread> threads;
    for (const dist::Group& group : groups)
      threads.emplace_back([&, group] {
        const StreamGuard stream{Stream(device)};
        try {
          f(group);
        } catch (const std::exception& e) {
          ADD_FAILURE() << "rank " << group.rank() << " of " << n << ": " << e.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

template <class F>
void for_ranks_of_a_host(const std::vector<int>& numbers, F&& f) {
  for_ranks(numbers, std::forward<F>(f), Hosts::one);
}

}  // namespace clutch::testing
