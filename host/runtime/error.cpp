// SPDX-License-Identifier: Apache-2.0
#include <clutch/error.hpp>

#include "runtime/cl_api.hpp"
#include "runtime/op_name.hpp"
#include "runtime/profile_log.hpp"

namespace clutch { inline namespace v0 {

namespace detail {
namespace {
thread_local const char* t_op_name = nullptr;
}  // namespace

OpName::OpName(const char* name) noexcept : former_(t_op_name) {
  if (!t_op_name) t_op_name = name;
  if (profiled() != 0) [[unlikely]]
    begin_op(this, name);
}
OpName::OpName(Suspend) noexcept : former_(t_op_name) { t_op_name = nullptr; }
OpName::~OpName() {
  t_op_name = former_;
  if (profiled() != 0) [[unlikely]]
    end_op(this);
}
const char* OpName::or_else(const char* own) noexcept { return t_op_name ? t_op_name : own; }
std::string_view OpName::or_else(std::string_view own) noexcept { return t_op_name ? std::string_view(t_op_name) : own; }

}  // namespace detail

std::string_view name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::ok: return "ok";
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::invalid_shape: return "invalid_shape";
    case ErrorCode::invalid_dtype: return "invalid_dtype";
    case ErrorCode::device_mismatch: return "device_mismatch";
    case ErrorCode::invalid_overlap: return "invalid_overlap";
    case ErrorCode::invalid_setting: return "invalid_setting";
    case ErrorCode::no_platform: return "no_platform";
    case ErrorCode::no_device: return "no_device";
    case ErrorCode::not_supported: return "not_supported";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::build_failure: return "build_failure";
    case ErrorCode::opencl: return "opencl";
    case ErrorCode::stream_failed: return "stream_failed";
    case ErrorCode::device_lost: return "device_lost";
    case ErrorCode::strict: return "strict";
    case ErrorCode::io: return "io";
    case ErrorCode::capturing: return "capturing";
    case ErrorCode::internal: return "internal";
    case ErrorCode::not_converged: return "not_converged";
    case ErrorCode::timed_out: return "timed_out";
    case ErrorCode::peer_failed: return "peer_failed";
    case ErrorCode::mismatch: return "mismatch";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string_view op, std::string_view message, std::int32_t cl_code)
    : std::runtime_error(std::string(detail::OpName::or_else(op)) + ": " + std::string(message)),
      code_(code),
      cl_code_(cl_code),
      op_(detail::OpName::or_else(op)),
      message_(message) {}

Error::~Error() = default;

std::string_view Error::cl_name() const noexcept { return cl_code_ == 0 ? std::string_view{} : detail::cl_error_name(cl_code_); }

}}  // namespace clutch::v0
