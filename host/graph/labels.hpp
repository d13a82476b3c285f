// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/graph.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

using LabelList = std::shared_ptr<const std::vector<GraphLabel>>;

/// Annotations in force on a thread, outermost first; null if none. Other threads may read them.
class ThreadLabels {
 public:
  LabelList now() const {
    std::lock_guard lock(mutex_);
    return now_;
  }
  LabelList exchange(LabelList labels) {
    std::lock_guard lock(mutex_);
    return std::exchange(now_, std::move(labels));
  }

 private:
  mutable std::mutex mutex_;
  LabelList now_;
};

/// This thread's.
const std::shared_ptr<ThreadLabels>& thread_labels();

}}}  // namespace clutch::v0::detail
