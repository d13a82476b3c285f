// SPDX-License-Identifier: Apache-2.0
// What ops over Sharded tensors refuse alike.
#pragma once
#include <clutch/dist/sharded.hpp>

#include <string>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

[[noreturn]] inline void refuse(const char* op, const std::string& why) { throw Error(ErrorCode::invalid_argument, op, why); }

inline void check_mesh(const char* op, const Mesh& mesh, const Sharded& x) {
  if (!(x.mesh() == mesh)) refuse(op, "the tensors must be of one mesh, got several");
}

inline void check_async(const char* op, const CallOptions& call) {
  if (call.async) refuse(op, "async must be false, since the result is used in a stream's order, got true");
}

}}}}  // namespace clutch::v0::dist::detail
