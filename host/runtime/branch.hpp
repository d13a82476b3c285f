// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

class Recorder;
class Runtime;
class StreamImpl;

/// A branch of cond(), switch_() or while_loop() whose function a thread runs. While a Branch lives, the thread's commands on all streams of the runtime take
/// effect only where the device takes the branch. Branches nest.
class Branch {
 public:
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  Runtime& runtime() const noexcept { return runtime_; }
  /// The public function that has the branch.
  const char* op() const noexcept { return op_; }
  /// Unique in the process, from 1.
  std::uint64_t id() const noexcept { return id_; }
  /// The Recorder that takes a stream's commands in place of `own`, the stream's. Errors: not_supported if the stream is of another runtime.
  std::shared_ptr<Recorder> recorder(const StreamImpl& stream, std::shared_ptr<Recorder> own);

 protected:
  /// Both for the present thread.
  Branch(Runtime& runtime, const char* op) noexcept;
  virtual ~Branch();

 private:
  virtual std::shared_ptr<Recorder> wrap(std::shared_ptr<Recorder> own) = 0;

  Runtime& runtime_;
  const char* op_;
  const std::uint64_t id_;
  Branch* outer_;
};

/// The innermost branch of this thread; null if there is none, or while an OutsideBranches lives.
Branch* current_branch() noexcept;
/// Id of the innermost branch; 0 if there is none.
inline std::uint64_t current_branch_id() noexcept {
  const Branch* branch = current_branch();
  return branch ? branch->id() : 0;
}

/// While it lives, this thread's commands run whatever branches it is in: those that compute predicates, and the library's own work that outlives a call.
class OutsideBranches {
 public:
  OutsideBranches() noexcept;
  ~OutsideBranches();
  OutsideBranches(const OutsideBranches&) = delete;
  OutsideBranches& operator=(const OutsideBranches&) = delete;

 private:
  Branch* inside_;
};

/// Refuses a call that waits, reads on the host or runs other work than commands of the runtime's streams.
/// Errors: not_supported if this thread is in a branch of the runtime.
void check_outside_branches(std::string_view call, const Runtime& runtime);

}}}  // namespace clutch::v0::detail
