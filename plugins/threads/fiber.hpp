// SPDX-License-Identifier: Apache-2.0
// Coroutines with stacks of their own, which take turns on one thread.
#pragma once
#include <cstddef>
#include <functional>

namespace clutch_threads {

/// Runs `count` fibers of body(), each up to its next yield_fiber() in turn, until all have ended. resumed(i) is called before each turn of fiber i.
/// Errors: std::bad_alloc if a stack cannot be had. A body throws nothing.
void run_fibers(std::size_t count, const std::function<void()>& body, const std::function<void(std::size_t)>& resumed);
/// Within a body: lets the others run.
void yield_fiber();

}  // namespace clutch_threads
