// SPDX-License-Identifier: Apache-2.0
#include "runtime/error.hpp"

namespace torch_clutch {

using clutch::ErrorCode;

bool is_refusal(const clutch::Error& error) noexcept {
  switch (error.code()) {
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_shape:
    case ErrorCode::invalid_dtype:
    case ErrorCode::invalid_overlap:
    case ErrorCode::not_supported: return true;
    default: return false;
  }
}

void rethrow(const clutch::Error& error) {
  std::string text = std::string("clutch: ") + error.what();
  switch (error.code()) {
    case ErrorCode::out_of_memory: C10_THROW_ERROR(OutOfMemoryError, text);
    case ErrorCode::not_supported:
    case ErrorCode::strict: C10_THROW_ERROR(NotImplementedError, text);
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_setting: C10_THROW_ERROR(ValueError, text);
    case ErrorCode::invalid_dtype: C10_THROW_ERROR(TypeError, text);
    case ErrorCode::not_converged: C10_THROW_ERROR(LinAlgError, text);
    case ErrorCode::timed_out:
    case ErrorCode::peer_failed:
    case ErrorCode::mismatch: C10_THROW_ERROR(DistBackendError, text);
    default: C10_THROW_ERROR(Error, text);
  }
}

}  // namespace torch_clutch
