// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

namespace clutch { inline namespace v0 { namespace detail {

/// Result of selection, ready to encode. Ops derive their own from this class.
struct CachedPlan {
  virtual ~CachedPlan() = default;
};

/// Plans by problem, so that repeated eager calls skip selection. A key has the bytes of the problem (a struct without padding), the op's name and the name of
/// a forced implementation.
class PlanCache {
 public:
  template <class Plan, class Problem, class Make>
  const Plan& find(std::string_view op, const Problem& problem, std::string_view forced, Make&& make) {
    static_assert(std::has_unique_object_representations_v<Problem>, "padding would make equal keys differ");
    char bytes[sizeof problem + 130];
    std::size_t used = 0;
    auto put = [&](const void* data, std::size_t size) {
      if (size > 0) std::memcpy(bytes + used, data, size);
      used += size;
    };
    put(&problem, sizeof problem);
    put(op.data(), std::min<std::size_t>(op.size(), 64));
    put("", 1);
    put(forced.data(), std::min<std::size_t>(forced.size(), 64));
    std::string_view view(bytes, used);
    {
      std::shared_lock lock(mutex_);
      auto found = plans_.find(view);
      if (found != plans_.end()) return static_cast<const Plan&>(*found->second);
    }
    auto made = std::make_unique<Plan>(make());  // outside of the lock, because make() may build programs
    std::unique_lock lock(mutex_);
    return static_cast<const Plan&>(*plans_.try_emplace(std::string(view), std::move(made)).first->second);
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::shared_mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<CachedPlan>, Hash, std::equal_to<>> plans_;
};

}}}  // namespace clutch::v0::detail
