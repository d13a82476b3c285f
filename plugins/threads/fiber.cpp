// SPDX-License-Identifier: Apache-2.0
#include "fiber.hpp"

#include "support/system.hpp"

#include <cstdint>
#include <deque>
#include <new>
#include <string>

#include <ucontext.h>

namespace clutch_threads {
namespace {

/// Kernels keep rows and tiles in private arrays.
constexpr std::size_t kStackBytes = 512 * 1024;

/// A stack, mapped and touched as deep as it is used, with a page before it that ends the process instead of another fiber's memory.
class Stack {
 public:
  Stack() {
    std::string why;
    memory_ = clutch::detail::map_memory(kStackBytes, clutch::detail::MapFor::use, why);
    if (!memory_) throw std::bad_alloc();
    clutch::detail::protect_pages(memory_, clutch::detail::page_bytes(), false);
  }
  ~Stack() { clutch::detail::unmap_memory(memory_, kStackBytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  void* memory() const noexcept { return memory_; }

 private:
  void* memory_;
};

struct Fiber {
  Stack stack;
  ucontext_t context{};
  bool ended = false;
};

struct Fibers {
  std::deque<Fiber> all;  ///< kept for later groups
  ucontext_t caller{};
  std::size_t running = 0;
  const std::function<void()>* body = nullptr;
};
thread_local Fibers t_fibers;

void begin() {
  Fibers& f = t_fibers;
  (*f.body)();
  f.all[f.running].ended = true;
  swapcontext(&f.all[f.running].context, &f.caller);  // never comes back
}

}  // namespace

void yield_fiber() {
  Fibers& f = t_fibers;
  swapcontext(&f.all[f.running].context, &f.caller);
}

void run_fibers(std::size_t count, const std::function<void()>& body, const std::function<void(std::size_t)>& resumed) {
  Fibers& f = t_fibers;
  while (f.all.size() < count) f.all.emplace_back();
  f.body = &body;
  for (std::size_t i = 0; i < count; ++i) {
    Fiber& fiber = f.all[i];
    fiber.ended = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.memory();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, begin, 0);
  }
  for (std::size_t left = count; left > 0;)
    for (std::size_t i = 0; i < count; ++i) {
      if (f.all[i].ended) continue;
      f.running = i;
      resumed(i);
      swapcontext(&f.caller, &f.all[i].context);
      if (f.all[i].ended) --left;
    }
}

}  // namespace clutch_threads
