// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/error.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace clutch::testing {

/// Says whether the text of an Error says what must be ("must") and what was given ("got"), or, where a device refuses, what is needed ("needs") and what
/// there is ("has").
bool says_both(ErrorCode code, std::string_view message);

/// Codes of bad input, refusals, calls that a capture forbids and files, whose texts are held to it.
bool is_of_bad_input(ErrorCode code);

/// Every text of bad input that this program threw so far and that lacks one of the two, each once, as "code: op: message". Every test program fails
/// at its end if there is one: each throw of the library and of its tests is looked at where it is made.
std::vector<std::string> lacking_messages();

/// While one is alive, what lacks one of the two goes to it, from any thread, and does not fail the program.
class MessagesApart {
 public:
  MessagesApart();
  ~MessagesApart();
  MessagesApart(const MessagesApart&) = delete;
  MessagesApart& operator=(const MessagesApart&) = delete;

  std::vector<std::string> found() const { return lacking_messages(); }

 private:
  std::set<std::string> former_;
};

}  // namespace clutch::testing
