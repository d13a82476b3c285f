// SPDX-License-Identifier: Apache-2.0
#pragma once
// What plugins' functions give back.
#include <clutch/error.hpp>

#include "capi/plugin_calls.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>

namespace clutch { inline namespace v0 { namespace capi {

/// Calls a plugin's function; the text of a failure is one that is given from here on. What the function throws is CLUTCH_INTERNAL with the exception's text.
template <class F>
clutch_status_t call_plugin(const F& f) {
  clear_plugin_error();
  try {
    return f();
  } catch (const std::exception& error) {
    set_plugin_error(fmt::format("it threw an exception: {}", error.what()).c_str());
  } catch (...) {
    set_plugin_error("it threw an exception of an unknown type");
  }
  return CLUTCH_INTERNAL;
}

inline bool is_status(clutch_status_t status) { return status >= CLUTCH_OK && status <= CLUTCH_MISMATCH; }
/// The Error's code of a status that is not CLUTCH_OK; `otherwise` for a number that is none.
inline ErrorCode code_of(clutch_status_t status, ErrorCode otherwise = ErrorCode::internal) {
  return is_status(status) ? static_cast<ErrorCode>(status) : otherwise;
}
/// Why a plugin's function failed with a status.
inline std::string reason_of(clutch_status_t status) {
  return is_status(status) ? plugin_error() : fmt::format("a function must give a clutch_status_t, got {}: {}", status, plugin_error());
}

}}}  // namespace clutch::v0::capi
