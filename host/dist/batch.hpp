// SPDX-License-Identifier: Apache-2.0
// Calls of a thread that begin together.
#pragma once
#include "dist/group.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Begins a call at a place of a queue, with its tensors' places.
using StartCall = std::function<std::shared_ptr<Task>(const std::shared_ptr<DeviceLink>& link, std::span<const DevicePlace> places)>;

struct BatchCall {
  std::shared_ptr<CallState> state;
  StartCall start;
  std::vector<Tensor> inputs, outputs;
  std::function<void(const Stream&)> finish;  ///< what is left to do with the output once it is there; empty: nothing
};

struct BatchState {
  BatchState(const Group& of, const CallOptions& options);
  ~BatchState();
  BatchState(const BatchState&) = delete;
  BatchState& operator=(const BatchState&) = delete;

  /// That of this thread, of a group; null where there is none.
  static BatchState* of(const GroupImpl& group) noexcept;
  Work end();

  const Group group;
  const bool async;
  const Stream asked;
  Stream stream;  ///< of the calls
  std::vector<BatchCall> calls;
  bool is_open = true;
};

/// A call that ends when all of these have, with the error of the first in their order; where it is, and where its stream goes on, the last one is.
Work joined(const std::vector<Work>& calls);

}}}}  // namespace clutch::v0::dist::detail
