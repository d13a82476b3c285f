// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "program.hpp"

#include <cstddef>
#include <span>

namespace clutch_threads {

/// Threads that work-groups are dealt to: as many as the process may run on at once.
std::size_t thread_count() noexcept;

/// An argument's bytes for a value, the memory itself, or the bytes of local memory that each group gets.
struct Argument {
  const void* value = nullptr;
  std::size_t local_bytes = 0;
};

/// Runs all work-groups, each on one thread: its items one after another, and where the program has barriers as coroutines that take turns. Returns when all
/// have ended. `shape`: groups, items, offset and dimensions.
/// Errors: std::bad_alloc.
void launch(const Program& program, const KernelFacts& kernel, const Item& shape, std::span<const Argument> arguments);

}  // namespace clutch_threads
