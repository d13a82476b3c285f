// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/error.hpp>

#include "support/system.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Returns read(). Errors about the contents of the file begin with the file's path.
template <class F>
auto of_file(const std::string& path, F&& read) {
  try {
    return read();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::io && e.code() != ErrorCode::invalid_dtype && e.code() != ErrorCode::invalid_shape) throw;
    throw Error(e.code(), e.op(), path + ": " + e.message(), e.cl_code());
  }
}

/// A file's bytes, mapped for reading while `keeper` lives.
struct MappedFile {
  std::shared_ptr<const void> keeper;
  std::span<const std::byte> bytes;
};
/// Errors: io, which names the path.
MappedFile map_file(const std::string& path, std::string_view op);

/// replace_file() of support/system.hpp. Errors: io, which names the path.
void write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, std::string_view op, unsigned mode = 0666);

}}}  // namespace clutch::v0::detail
