// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// A text that lives as long as the process, passed as a pointer: names of ops and texts of plans, which must outlive the object that made them. Equal texts
/// share memory.
class Interned {
 public:
  Interned() = default;
  explicit Interned(std::string_view text);
  explicit Interned(const std::string* kept) noexcept : text_(kept) {}  ///< `kept` is get() of another Interned
  const std::string* get() const noexcept { return text_; }
  bool empty() const noexcept { return !text_ || text_->empty(); }
  const std::string& str() const noexcept;
  const char* c_str() const noexcept { return text_ ? text_->c_str() : ""; }

 private:
  const std::string* text_ = nullptr;
};

}}}  // namespace clutch::v0::detail
