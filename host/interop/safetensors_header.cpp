// SPDX-License-Identifier: Apache-2.0
#include "interop/safetensors_header.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr SafetensorsType kTypes[] = {{"F64", 64, DType::f64},
                                      {"F32", 32, DType::f32},
                                      {"F16", 16, DType::f16},
                                      {"BF16", 16, DType::bf16},
                                      {"F8_E4M3", 8, DType::f8e4m3fn},
                                      {"F8_E5M2", 8, DType::f8e5m2},
                                      {"F8_E8M0", 8, DType::f8e8m0fnu},
                                      {"F6_E2M3", 6, DType::f6e2m3},
                                      {"F6_E3M2", 6, DType::f6e3m2},
                                      {"F4", 4, DType::f4e2m1},
                                      {"I8", 8, DType::i8},
                                      {"U8", 8, DType::u8},
                                      {"I16", 16, DType::i16},
                                      {"I32", 32, DType::i32},
                                      {"I64", 64, DType::i64},
                                      {"BOOL", 8, DType::boolean},
                                      {"C64", 64, DType::c64},
                                      {"U16", 16, DType::u16},
                                      {"U32", 32, DType::u32},
                                      {"U64", 64, DType::u64}};

template <class Is>
const SafetensorsType* find_type(Is is) noexcept {
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes), is);
  return found == std::end(kTypes) ? nullptr : found;
}

}  // namespace

const SafetensorsType* safetensors_type(std::string_view name) noexcept {
  return find_type([&](const SafetensorsType& row) { return row.name == name; });
}
const SafetensorsType* safetensors_type(DType dtype) noexcept {
  return find_type([&](const SafetensorsType& row) { return row.dtype == dtype; });
}

std::string safetensors_header(std::vector<SafetensorsItem>& items, const std::map<std::string, std::string>& metadata) {
  std::stable_sort(items.begin(), items.end(), [](const SafetensorsItem& a, const SafetensorsItem& b) { return a.type->bits > b.type->bits; });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t reached = 0;
  for (const SafetensorsItem& item : items) {
    const std::uint64_t end = reached + item.bytes;
    const std::vector<std::int64_t> shape(item.sizes.begin(), item.sizes.end());
    header[std::string(item.name)] = {{"dtype", item.type->name}, {"shape", shape}, {"data_offsets", {reached, end}}};
    reached = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}}}  // namespace clutch::v0::detail
