// SPDX-License-Identifier: Apache-2.0
#include "runtime/branch.hpp"

#include <clutch/error.hpp>

#include "runtime/stream.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

std::atomic<int> g_branches{0};  // of all threads: most processes have none
std::atomic<std::uint64_t> g_last_branch{0};
constinit thread_local Branch* t_branch = nullptr;

}  // namespace

Branch::Branch(Runtime& runtime, const char* op) noexcept
    : runtime_(runtime), op_(op), id_(g_last_branch.fetch_add(1, std::memory_order_relaxed) + 1), outer_(std::exchange(t_branch, this)) {
  g_branches.fetch_add(1, std::memory_order_relaxed);
}

Branch::~Branch() {
  g_branches.fetch_sub(1, std::memory_order_relaxed);
  t_branch = outer_;
}

std::shared_ptr<Recorder> Branch::recorder(const StreamImpl& stream, std::shared_ptr<Recorder> own) {
  if (&stream.runtime() != &runtime_)
    throw Error(ErrorCode::not_supported, op_,
                fmt::format("work in a branch of {} must be of the predicate's device and context, got work on stream {} of another", op_, stream.id()));
  return wrap(std::move(own));
}

Branch* current_branch() noexcept { return g_branches.load(std::memory_order_relaxed) == 0 ? nullptr : t_branch; }

OutsideBranches::OutsideBranches() noexcept : inside_(std::exchange(t_branch, nullptr)) {}
OutsideBranches::~OutsideBranches() { t_branch = inside_; }

void check_outside_branches(std::string_view call, const Runtime& runtime) {
  const Branch* branch = current_branch();
  if (!branch || &branch->runtime() != &runtime) return;
  throw Error(ErrorCode::not_supported, call,
              fmt::format("the call must come outside of the branches of {}, whose work the device may skip and the host cannot wait for, got one within",
                          branch->op()));
}

}}}  // namespace clutch::v0::detail
