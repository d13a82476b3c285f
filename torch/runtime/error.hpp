// SPDX-License-Identifier: Apache-2.0
// Errors of clutch as exceptions of PyTorch, and refusals that send a call to the CPU.
#pragma once
#include "runtime/export.hpp"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <clutch/error.hpp>

#include <stdexcept>
#include <string>

namespace torch_clutch {

/// Thrown by a kernel before it has changed anything: PyTorch's CPU kernel may take the call.
class TORCH_CLUTCH_EXPORT Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Text>
[[noreturn]] void refuse(const Text&... text) {
  throw Refusal(c10::str(text...));
}

/// Whether the call was refused by its arguments: the CPU kernel computes it, or says in PyTorch's words what is wrong.
bool is_refusal(const clutch::Error& error) noexcept;

/// Throws the exception whose Python type PyTorch's own tests expect: OutOfMemoryError, NotImplementedError, ValueError for arguments, DistBackendError
/// for other ranks, else RuntimeError.
[[noreturn]] TORCH_CLUTCH_EXPORT void rethrow(const clutch::Error& error);

/// Runs `f`; its clutch::Error becomes one of PyTorch's.
template <class F>
decltype(auto) translated(F&& f) {
  try {
    return f();
  } catch (const clutch::Error& error) {
    rethrow(error);
  } catch (const Refusal& refusal) {
    C10_THROW_ERROR(NotImplementedError, refusal.what());
  }
}

}  // namespace torch_clutch
