// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include "fiber.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace clutch_threads {
namespace {

/// Threads that share the numbers of one job at a time. They live as long as the process.
class Pool {
 public:
  static Pool& instance() {
    static auto& one = *new Pool();
    return one;
  }
  std::size_t threads() const noexcept { return threads_; }

  /// Calls work(number) for all numbers below `count`, on the threads and the caller's.
  void run(std::size_t count, const std::function<void(std::size_t)>& work) {
    if (count <= 1 || threads_ <= 1) {
      for (std::size_t i = 0; i < count; ++i) work(i);
      return;
    }
    std::lock_guard one_job(jobs_);
    {
      std::lock_guard lock(mutex_);
      work_ = &work, count_ = count, next_ = 0, failure_ = nullptr, ++job_;
      changed_.notify_all();
    }
    take();
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return busy_ == 0; });
    work_ = nullptr;
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  Pool() : threads_(std::max(1u, std::thread::hardware_concurrency())) {
    for (std::size_t i = 1; i < threads_; ++i) std::thread([this] { serve(); }).detach();
  }
  void take() noexcept {
    for (std::size_t i; (i = next_.fetch_add(1)) < count_;) try {
        (*work_)(i);
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        next_ = count_;
      }
  }
  void serve() {
    std::size_t seen = 0;
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return work_ && job_ != seen; });
      seen = job_, ++busy_;
      lock.unlock();
      take();
      lock.lock();
      if (--busy_ == 0) idle_.notify_all();
    }
  }

  std::size_t threads_;
  std::mutex jobs_, mutex_;
  std::condition_variable changed_, idle_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t count_ = 0, job_ = 0, busy_ = 0;
  std::atomic<std::size_t> next_{0};
  std::exception_ptr failure_;
};

/// Local memory of a launch's arguments: one for each thread, as groups come one after another there.
struct Locals {
  std::vector<std::unique_ptr<std::byte, void (*)(std::byte*)>> blocks;
  std::vector<void*> arguments;
  explicit Locals(std::span<const Argument> given) {
    constexpr std::align_val_t kAlignment{128};
    for (const Argument& argument : given) {
      void* value = const_cast<void*>(argument.value);  // the program reads values and writes memory that the caller gave as such
      if (argument.local_bytes > 0) {
        value = ::operator new(argument.local_bytes, kAlignment);
        blocks.emplace_back(static_cast<std::byte*>(value), [](std::byte* block) { ::operator delete(block, kAlignment); });
      }
      arguments.push_back(value);
    }
  }
};

/// The items of one group, in the order of their numbers.
template <class Work>
void for_items(const Item& group, const Work& work) {
  Item item = group;
  for (item.item[2] = 0; item.item[2] < item.items[2]; ++item.item[2])
    for (item.item[1] = 0; item.item[1] < item.items[1]; ++item.item[1])
      for (item.item[0] = 0; item.item[0] < item.items[0]; ++item.item[0]) work(item);
}

void run_group(const Program& program, const KernelFacts& kernel, const Item& group, void* const* arguments) {
  const std::size_t items = group.items[0] * group.items[1] * group.items[2];
  if (items == 1 || !kernel.has_barriers) {
    for_items(group, [&](const Item& item) {
      program.set_item(&item);
      kernel.run(arguments);
    });
    return;
  }
  std::vector<Item> all;
  all.reserve(items);
  for_items(group, [&](const Item& item) { all.push_back(item); });
  // Whoever goes on after a barrier is again the item that the program asks about.
  run_fibers(
      items, [&] { kernel.run(arguments); }, [&](std::size_t i) { program.set_item(&all[i]); });
}

}  // namespace

std::size_t thread_count() noexcept { return Pool::instance().threads(); }

void launch(const Program& program, const KernelFacts& kernel, const Item& shape, std::span<const Argument> arguments) {
  const std::size_t count = shape.groups[0] * shape.groups[1] * shape.groups[2];
  // Shares of neighbouring groups, several for each thread, so that all end at about the same time.
  const std::size_t shares = std::min(count, 8 * thread_count());
  Pool::instance().run(shares, [&](std::size_t share) {
    Locals locals(arguments);
    Item group = shape;
    group.barrier = kernel.has_barriers && shape.items[0] * shape.items[1] * shape.items[2] > 1 ? yield_fiber : +[] {};
    for (std::size_t i = share * count / shares; i < (share + 1) * count / shares; ++i) {
      group.group[0] = i % shape.groups[0];
      group.group[1] = i / shape.groups[0] % shape.groups[1];
      group.group[2] = i / shape.groups[0] / shape.groups[1];
      run_group(program, kernel, group, locals.arguments.data());
    }
  });
}

}  // namespace clutch_threads
