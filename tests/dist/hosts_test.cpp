// SPDX-License-Identifier: Apache-2.0
// Ranks of several hosts (tests/dist/run_hosts): what they reach of each other, and the bits of one host.
#include "dist/ranks.hpp"

#include <unistd.h>
#include <cmath>
#include <random>

namespace clutch::testing { namespace {

using namespace dist;

/// Which host each rank is on, by its name.
std::vector<std::int64_t> hosts_of_ranks() {
  char name[256] = {};
  (void)::gethostname(name, sizeof name - 1);
  const auto mine = static_cast<std::int64_t>(std::hash<std::string>()(name));
  const Tensor all = empty({world().size()}, {.dtype = DType::i64});
  world().all_gather_out(all, from_host(std::vector<std::int64_t>{mine}, {1}));
  return all.to_host<std::int64_t>();
}

std::vector<float> numbers(int rank, std::size_t n) {
  std::mt19937 random(77U + static_cast<unsigned>(rank));
  std::uniform_real_distribution<float> some(-2, 2);
  std::vector<float> result(n);
  for (float& x : result) x = some(random);
  return result;
}

TEST(SeveralHosts, ReachMemoryOfTheirOwnHostAlone) {
  const std::vector<std::int64_t> hosts = processes() > 0 ? hosts_of_ranks() : std::vector<std::int64_t>{};
  const auto me = processes() > 0 ? static_cast<std::size_t>(world().rank()) : 0;
  if (std::count(hosts.begin(), hosts.end(), hosts.empty() ? 0 : hosts[0]) == static_cast<std::ptrdiff_t>(hosts.size()))
    GTEST_SKIP() << "all ranks are on one host";
  const Symmetric memory({1000}, world());
  EXPECT_FALSE(memory.all_direct());
  for (int r = 0; r < world().size(); ++r)
    EXPECT_EQ(memory.tier(r), hosts[static_cast<std::size_t>(r)] == hosts[me] ? Symmetric::Tier::direct : Symmetric::Tier::remote) << "rank " << r;
  EXPECT_THROW(world().all_reduce_(memory.local(), {.algorithm = Algorithm::board}), Error);
}

TEST(SeveralHosts, HaveTheBitsOfOne) {
  if (processes() == 0) GTEST_SKIP() << "ranks that are threads are on one host";
  const int n = world().size();
  for (const std::size_t elements : {std::size_t{1}, std::size_t{1000}, std::size_t{300007}}) {
    SCOPED_TRACE(std::to_string(elements) + " elements");
    // The same ranks as threads of each process.
    std::vector<std::uint8_t> wanted;
    const std::vector<Group> threads = open_threads(n);
    std::vector<std::thread> running;
    for (const Group& group : threads)
      running.emplace_back([&, group] {
        const StreamGuard stream{Stream(default_device())};
        const Tensor x = from_host(numbers(group.rank(), elements), {static_cast<std::int64_t>(elements)});
        group.all_reduce_(x).synchronize();
        if (group.rank() == 0) wanted = x.to_bytes();
      });
    for (std::thread& thread : running) thread.join();
    for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::one_shot, Algorithm::direct, Algorithm::tree}) {
      const Tensor x = from_host(numbers(world().rank(), elements), {static_cast<std::int64_t>(elements)});
      world().all_reduce_(x, {.algorithm = algorithm}).synchronize();
      EXPECT_EQ(x.to_bytes(), wanted);
    }
  }
}

}}  // namespace clutch::testing
