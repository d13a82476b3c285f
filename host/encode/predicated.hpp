// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include "runtime/branch.hpp"

#include <memory>

namespace clutch { inline namespace v0 { namespace detail {

/// A branch that the device takes where a predicate in its memory, a u32, is not 0: kernels run with CLUTCH_PREDICATED, copies and uploads by such kernels.
/// Memory that the branch makes is filled by the host whether it is taken or not. Host tasks and other libraries' work are refused.
class PredicatedBranch final : public Branch {
 public:
  /// The predicate holds for outer branches, too: it is 0 where one of them is not taken.
  PredicatedBranch(const Tensor& predicate, const char* op);
  ~PredicatedBranch() override;
  const Tensor& predicate() const noexcept { return predicate_; }

 private:
  std::shared_ptr<Recorder> wrap(std::shared_ptr<Recorder> own) override;

  Tensor predicate_;
  std::shared_ptr<Recorder> own_, wrapped_;  ///< the last one
};

/// The predicate of this thread's innermost branch; undefined if there is none. Errors: not_supported if that branch is of another runtime.
Tensor current_predicate(const Runtime& runtime, const char* op);

}}}  // namespace clutch::v0::detail
