// SPDX-License-Identifier: Apache-2.0
// Looks at every Error where it is thrown: test programs are linked with --wrap=__cxa_throw.
#include "support/messages.hpp"

#include <fmt/format.h>

#include <mutex>
#include <typeinfo>

namespace clutch::testing {
namespace {

std::mutex g_mutex;
std::set<std::string>& lacking() {
  static auto* all = new std::set<std::string>;
  return *all;
}

bool has_word(std::string_view text, std::string_view word) {
  auto letter = [&](std::size_t i) { return i < text.size() && ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')); };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
  return false;
}

}  // namespace

bool says_both(ErrorCode code, std::string_view message) {
  return (has_word(message, "must") && has_word(message, "got")) ||
         (code == ErrorCode::not_supported && has_word(message, "needs") && has_word(message, "has"));
}

bool is_of_bad_input(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_shape:
    case ErrorCode::invalid_dtype:
    case ErrorCode::device_mismatch:
    case ErrorCode::invalid_overlap:
    case ErrorCode::invalid_setting:
    case ErrorCode::not_supported:
    case ErrorCode::capturing:
    case ErrorCode::io: return true;
    default: return false;
  }
}

std::vector<std::string> lacking_messages() {
  std::lock_guard lock(g_mutex);
  return {lacking().begin(), lacking().end()};
}

MessagesApart::MessagesApart() {
  std::lock_guard lock(g_mutex);
  former_.swap(lacking());
}
MessagesApart::~MessagesApart() {
  std::lock_guard lock(g_mutex);
  former_.swap(lacking());
}

/// Called with what is about to be thrown.
static void look_at(void* thrown, const std::type_info& type) noexcept {
  if (type != typeid(Error)) return;
  const Error& error = *static_cast<const Error*>(thrown);
  if (!is_of_bad_input(error.code()) || says_both(error.code(), error.message())) return;
  std::lock_guard lock(g_mutex);
  lacking().insert(fmt::format("{}: {}", name(error.code()), error.what()));
}

}  // namespace clutch::testing

// The linker's names of them (--wrap).
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
[[noreturn]] void __real___cxa_throw(void* thrown, std::type_info* type, void (*destroy)(void*));
[[noreturn]] void __wrap___cxa_throw(void* thrown, std::type_info* type, void (*destroy)(void*));
void __wrap___cxa_throw(void* thrown, std::type_info* type, void (*destroy)(void*)) {
  clutch::testing::look_at(thrown, *type);
  __real___cxa_throw(thrown, type, destroy);
}
}
// NOLINTEND(bugprone-reserved-identifier)
