// SPDX-License-Identifier: Apache-2.0
// The names of dtypes in safetensors files, and the header of a file that is written.
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

constexpr std::uint64_t kMostHeader = 100'000'000;

struct SafetensorsType {
  std::string_view name;
  int bits;
  DType dtype;
};
/// Null if there is none.
const SafetensorsType* safetensors_type(std::string_view name) noexcept;
const SafetensorsType* safetensors_type(DType dtype) noexcept;

struct SafetensorsItem {
  std::string_view name;
  const SafetensorsType* type;
  Dims sizes;
  std::uint64_t bytes;
};
/// The header's text, filled up to a multiple of 8 bytes; empty if names or metadata are no UTF-8. The items get the order of their bytes: wider dtypes first,
/// else as they were.
std::string safetensors_header(std::vector<SafetensorsItem>& items, const std::map<std::string, std::string>& metadata);

}}}  // namespace clutch::v0::detail
