// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// A text that lives as long as the process, as a value: names of ops and texts of plans, which are passed by pointer, outlive their maker.
/// Equal texts are kept once.
class Interned {
 public:
  Interned() = default;
  explicit Interned(std::string_view text);
  explicit Interned(const std::string* kept) noexcept : text_(kept) {}  ///< of another one's get()
  const std::string* get() const noexcept { return text_; }
  bool empty() const noexcept { return !text_ || text_->empty(); }
  const std::string& str() const noexcept;
  const char* c_str() const noexcept { return text_ ? text_->c_str() : ""; }

 private:
  const std::string* text_ = nullptr;
};

}}}  // namespace clutch::v0::detail
