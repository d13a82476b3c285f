// SPDX-License-Identifier: Apache-2.0
// What profiles have of calls and groups: arguments with the names of PyTorch's record_param_comms.
#pragma once
#include "dist/call.hpp"

#include <clutch/profiler.hpp>

#include <optional>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

class GroupImpl;

/// The range of a call on the thread that makes it, while a profiler records.
class ProfiledCall {
 public:
  ProfiledCall(const CallPlan& plan, bool has_range) {
    if (has_range && profiler::recording()) [[unlikely]]
      begin(plan);
  }
  ~ProfiledCall() {
    if (range_) [[unlikely]]
      end();
  }
  ProfiledCall(const ProfiledCall&) = delete;
  ProfiledCall& operator=(const ProfiledCall&) = delete;

  /// A call has got its number: its range says what it is. One that has none, of a batch or a replay, gets one of no length.
  static void tell(const GroupImpl& group, const CallPlan& plan, const CallHeader& header);

 private:
  void begin(const CallPlan& plan);
  void end() noexcept;
  std::optional<profiler::Range> range_;
  const CallPlan* plan_ = nullptr;
  ProfiledCall* outer_ = nullptr;
};

/// The range of a call's kernels on the progress thread.
class ProfiledLaunch {
 public:
  ProfiledLaunch(const GroupImpl& group, const CallPlan& plan, const CallHeader& header);

 private:
  std::optional<profiler::Range> range_;
};

/// Puts rank, ranks and groups of this process into the heads of traces. Ranks that are threads are not told: they have one trace.
void tell_profiles(const GroupImpl& group);

}}}}  // namespace clutch::v0::dist::detail
