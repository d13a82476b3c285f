// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

namespace clutch { inline namespace v0 { namespace detail {

/// Returns f(T{}) for the C++ type T of the OpenCL C number type named `type`, or `otherwise` if there is none.
template <class R, class F>
R with_number_type(std::string_view type, R otherwise, F&& f) {
  if (type == "float") return f(float{});
  if (type == "double") return f(double{});
  if (type == "char") return f(std::int8_t{});
  if (type == "uchar") return f(std::uint8_t{});
  if (type == "short") return f(std::int16_t{});
  if (type == "ushort") return f(std::uint16_t{});
  if (type == "int") return f(std::int32_t{});
  if (type == "uint") return f(std::uint32_t{});
  if (type == "long") return f(std::int64_t{});
  if (type == "ulong") return f(std::uint64_t{});
  return otherwise;
}

}}}  // namespace clutch::v0::detail
