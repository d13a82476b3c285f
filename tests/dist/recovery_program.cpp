// SPDX-License-Identifier: Apache-2.0
// Loses ranks on purpose: the last rank is killed, or stopped, before or in a call; the others must get an Error that names it, and go on without it. Started
// by run_recovery, once for each case:
//   recovery_program kill|stop CALL before|within [apart] [twice]
// twice: the last rank but one is killed, too, while the others agree on who goes on.
#include <clutch/clutch.hpp>
#include <clutch/dist.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <thread>

using namespace clutch;
using namespace clutch::dist;

namespace {

std::int64_t now_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000LL + t.tv_nsec / 1000;
}

int g_rank = 0;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print("rank {}: FAILED: {}\n", g_rank, why);
  std::fflush(stdout);
  ::_exit(1);
}
void require(bool is_right, const std::string& why) {
  if (!is_right) give_up(why);
}

}  // namespace

int main(int argc, char** argv) try {
  require(argc >= 4, "recovery_program kill|stop CALL before|within [apart] [twice]");
  const std::string how = argv[1], which = argv[2], when = argv[3];
  bool is_apart = false, is_twice = false;
  for (int i = 4; i < argc; ++i) (std::string(argv[i]) == "twice" ? is_twice : is_apart) = true;
  const std::chrono::milliseconds timeout(how == "stop" ? 400 : 10000);
  const Group world = open({.timeout = timeout, .name = "job", .reconfigurable = true, .apart = is_apart});
  const int n = world.size(), me = world.rank(), victim = n - 1;
  g_rank = me;
  require(n >= (is_twice ? 4 : 3), "more ranks are needed");

  // When the victim was lost, which all ranks can read.
  const Symmetric shared({16}, world, {.dtype = DType::f64});
  const Tensor small = full({100}, 1), large = full({4 << 20}, 1), blocks = full({n * 1000}, 1), block = zeros({1000});
  const Symmetric memory({1 << 20}, world);
  fill_(memory.local(), 1);
  const std::map<std::string, std::function<Work()>> calls{
      {"all_reduce", [&] { return world.all_reduce_(small); }},
      {"large", [&] { return world.all_reduce_(large); }},
      {"kernel", [&] { return world.all_reduce_(memory.local(), {.op = ReduceOp::max}); }},
      {"broadcast", [&] { return world.broadcast_(large, victim); }},
      {"reduce_scatter", [&] { return world.reduce_scatter_out(block, blocks); }},
      {"recv", [&] { return world.recv(small, victim); }},
      {"barrier", [&] { return world.barrier(); }},
  };
  require(calls.contains(which), "no call " + which);
  const auto call = [&] { return which == "recv" && me == victim ? world.send(small, 0) : calls.at(which)(); };
  if (which != "recv")
    for (int i = 0; i < 3; ++i) call().synchronize();
  Tensor processes = zeros({n}, {.dtype = DType::i64});
  world.all_gather_out(processes, full({1}, static_cast<double>(::getpid()), {.dtype = DType::i64}));
  const auto process_of_victim = static_cast<pid_t>(processes.to_host<std::int64_t>()[static_cast<std::size_t>(victim)]);
  world.barrier().synchronize();

  auto lose = [&] {
    fill_(shared.local(), static_cast<double>(now_us()));
    if (shared.all_direct()) fill_(shared.peer(0), static_cast<double>(now_us()));
    current_stream().synchronize();
    ::kill(::getpid(), how == "kill" ? SIGKILL : SIGSTOP);
  };
  if (me == victim) {
    if (when == "before") {
      lose();
    } else {
      std::thread([&] {
        const StreamGuard stream{Stream(current_device())};
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        lose();
      }).detach();
    }
    // A stopped rank goes on here, late, with what it was about to do.
    try {
      for (int i = 0; i < 100000; ++i) call().synchronize();
    } catch (const Error&) {
    }
    ::_exit(0);
  }

  std::string error;
  const std::int64_t begin = now_us();
  try {
    for (int i = 0; i < 100000 && error.empty(); ++i) {
      call().synchronize();
      require(now_us() - begin < 60'000'000, "no Error in a minute");
    }
  } catch (const Error& e) {
    error = e.what();
    const ErrorCode wanted = how == "kill" ? ErrorCode::peer_failed : ErrorCode::timed_out;
    require(e.code() == wanted, fmt::format("the Error must be {}, got {}", static_cast<int>(wanted), error));
  }
  const std::int64_t failed = now_us();
  // "rank 3", or where others wait for it too "ranks 1, 2 and 3". By messages a rank knows whose it waits for, and not whom that one waits for.
  const std::string named =
      fmt::format("(rank|ranks [0-9, ]+ and) {}\\b", is_apart && how == "stop" && when == "within" ? std::string("[0-9]") : std::to_string(victim));
  require(std::regex_search(error, std::regex(named)), "the Error must name rank " + std::to_string(victim) + ", got " + error);
  require(world.failed(), "the group must have failed");
  if (how == "kill")
    require(world.lost() == std::vector<int>{victim},
            fmt::format("the lost rank must be the killed one alone, got {}: {}", fmt::join(world.lost(), ", "), error));
  current_stream().reset();

  // Ranks find out one after the other, and wait here for each other; for a stopped one as long as for them.
  world.set_timeout(std::chrono::seconds(how == "kill" ? 10 : 1));
  if (is_twice && me == victim - 1)
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::microseconds(::getpid() % 16 * 100));
      ::kill(::getpid(), SIGKILL);
    }).detach();
  Group rest = world.reconfigure(1);
  Tensor x = full({1000}, me + 1);
  try {
    rest.all_reduce_(x).synchronize();
    if (is_twice && rest.size() == victim)
      for (;;) rest.barrier().synchronize();
  } catch (const Error& e) {
    require(is_twice && rest.size() == victim, std::string("the first call must do, got ") + e.what());
    current_stream().reset();
    rest = rest.reconfigure(2);
    x = full({1000}, me + 1);
    rest.all_reduce_(x).synchronize();
  }
  const std::int64_t good = now_us();
  const int others = is_twice ? victim - 1 : victim;
  require(rest.size() == others && rest.rank() == me, "all others must go on");
  const auto sum = static_cast<float>(others * (others + 1)) / 2;
  require(x.to_host<float>()[999] == sum, "the first sum must be right");
  const Symmetric again({1 << 16}, rest);
  fill_(again.local(), me + 1);
  rest.all_reduce_(again.local(), {.algorithm = again.all_direct() ? Algorithm::kernel : Algorithm::automatic}).synchronize();
  require(again.local().to_host<float>()[65535] == sum, "the first sum in new shared memory must be right");
  if (how == "stop") {
    // The late rank goes on, and reaches nothing of the new group.
    rest.barrier().synchronize();
    if (me == 0) ::kill(process_of_victim, SIGCONT);
    for (int i = 0; i < 200; ++i) {
      rest.all_reduce_(x, {.op = ReduceOp::max}).synchronize();
      rest.all_reduce_(again.local(), {.op = ReduceOp::max}).synchronize();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    for (const Tensor& of : {x, again.local()})
      for (const float v : of.to_host<float>()) require(v == sum, "what the late rank stores must reach nothing of the new group");
    if (me == 0) ::kill(process_of_victim, SIGKILL);
  }
  rest.barrier().synchronize();
  const auto lost = static_cast<std::int64_t>(shared.local().to_host<double>()[0]);
  if (me == 0 && lost > 0)
    fmt::print("rank 0: {} {} {}: Error after {:.1f} ms, first good all_reduce after {:.1f} ms: {}\n", how, which, when,
               static_cast<double>(failed - lost) / 1000, static_cast<double>(good - lost) / 1000, error);
  fmt::print("rank {}: went on\n", me);
  std::fflush(stdout);
  return 0;
} catch (const std::exception& e) {
  give_up(e.what());
}
