// SPDX-License-Identifier: Apache-2.0
#include "interop/mapped_file.hpp"

#include <fmt/format.h>

#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

MappedFile map_file(const std::string& path, std::string_view op) {
  FileMapping file = map_whole_file(path);
  if (!file.problem.empty()) throw Error(ErrorCode::io, op, fmt::format("the file must be readable, got an error: {}", file.problem));
  return {std::move(file.keeper), file.bytes};
}

void write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, std::string_view op, unsigned mode) {
  if (const std::string problem = replace_file(path, parts, mode); !problem.empty())
    throw Error(ErrorCode::io, op, fmt::format("the file must be writable, got an error: {}", problem));
}

}}}  // namespace clutch::v0::detail
