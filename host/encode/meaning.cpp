// SPDX-License-Identifier: Apache-2.0
#include "encode/meaning.hpp"

#include <mutex>

namespace clutch { inline namespace v0 { namespace detail {

std::shared_ptr<const Meaning> meaning_of(Meaning::Known known) {
  static std::array<std::shared_ptr<const Meaning>, 6> all;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  auto& made = all.at(static_cast<std::size_t>(known));
  if (!made) {
    auto meaning = std::make_shared<Meaning>();
    meaning->known = known;
    made = std::move(meaning);
  }
  return made;
}

}}}  // namespace clutch::v0::detail
