// SPDX-License-Identifier: Apache-2.0
#include "dist/progress.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {
thread_local bool t_is_progress = false;
// What others do on the same cores comes first once a rank keeps this one waiting.
constexpr int kTurnsBeforePause = 20000;
constexpr std::chrono::microseconds kPause{50};
}  // namespace

Progress& Progress::instance() {
  static auto& progress = *[] {
    auto* p = new Progress;  // never destroyed: threads of drivers may wake it until the process ends
    p->thread_ = std::thread([p] { p->run(); });
    std::atexit([] { instance().stop(); });
    return p;
  }();
  return progress;
}

bool Progress::is_this_thread() noexcept { return t_is_progress; }

void Progress::add(std::shared_ptr<Task> task) {
  {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void Progress::wake() noexcept {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void Progress::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Progress::run() {
  t_is_progress = true;
  std::vector<std::shared_ptr<Task>> tasks;
  int idle_turns = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      auto has_news = [&] { return stops_ || woken_ || !added_.empty(); };
      const bool all_sleep = std::all_of(tasks.begin(), tasks.end(), [](const auto& task) { return task->sleeps(); });
      // Sleeping tasks have time-outs, too.
      if (tasks.empty())
        changed_.wait(lock, has_news);
      else if (all_sleep)
        changed_.wait_for(lock, std::chrono::milliseconds(5), has_news);
      else if (idle_turns > kTurnsBeforePause)
        changed_.wait_for(lock, kPause, has_news);
      if (stops_) return;
      woken_ = false;
      if (!added_.empty()) idle_turns = 0;
      tasks.insert(tasks.end(), std::make_move_iterator(added_.begin()), std::make_move_iterator(added_.end()));
      added_.clear();
    }
    const auto ended = std::erase_if(tasks, [](const auto& task) { return task->advance(); });
    idle_turns = ended > 0 ? 0 : idle_turns + 1;
    if (ended == 0) std::this_thread::yield();
  }
}

}}}}  // namespace clutch::v0::dist::detail
