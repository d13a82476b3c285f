// SPDX-License-Identifier: Apache-2.0
#include <clutch/kernel.hpp>

#include "program/cl_type.hpp"

#include "runtime/op_name.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 {

namespace detail {

std::string_view cl_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return "double";
    case DType::f32: return "float";
    case DType::f16:
    case DType::bf16:
    case DType::u16: return "ushort";
    case DType::u32: return "uint";
    case DType::u64: return "ulong";
    case DType::i8: return "char";
    case DType::i16: return "short";
    case DType::i32: return "int";
    case DType::i64: return "long";
    case DType::c64: return "float2";
    case DType::c128: return "double2";
    default: return "uchar";
  }
}

namespace {
int size_slot(DType dtype) {
  int size = bits(dtype);
  return size <= 8 ? 0 : size == 16 ? 1 : size == 32 ? 2 : size == 64 ? 3 : 4;
}
}  // namespace

std::string_view unsigned_cl_type(DType dtype) {
  constexpr std::string_view kTypes[] = {"uchar", "ushort", "uint", "ulong", "ulong2"};
  return kTypes[size_slot(dtype)];
}

DType dtype_of_size(DType dtype) {
  constexpr DType kBySize[] = {DType::u8, DType::i16, DType::i32, DType::i64, DType::c128};
  return kBySize[size_slot(dtype)];
}

}  // namespace detail

Defines::Defines(std::initializer_list<std::pair<std::string_view, std::string_view>> entries) {
  detail::OpName named("Defines");
  for (const auto& [name, value] : entries) set_text(name, value);
}

Defines& Defines::set_text(std::string_view name, std::string_view value) {
  detail::OpName named("Defines::set_text");
  bool good = !name.empty() && !(name[0] >= '0' && name[0] <= '9');
  for (char c : name) good = good && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_');
  if (!good || value.find('\n') != std::string_view::npos)
    throw Error(ErrorCode::invalid_argument, "Defines", fmt::format("a define must be an identifier and a value of one line, got '{}' = '{}'", name, value));
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name, [](const Entry& e, std::string_view n) { return e.name < n; });
  if (at != entries_.end() && at->name == name) {
    if (at->value != value)
      throw Error(ErrorCode::invalid_argument, "Defines", fmt::format("define {} must keep its value {}, got {}", name, at->value, value));
    return *this;
  }
  entries_.insert(at, {std::string(name), std::string(value)});
  return *this;
}

Defines& Defines::set(std::string_view name, std::int64_t value) {
  detail::OpName named("Defines::set");
  return set_text(name, fmt::format("{}", value));
}

Defines& Defines::set_type(std::string_view name, DType dtype) {
  detail::OpName named("Defines::set_type");
  std::string upper(clutch::name(dtype));
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  set_text(fmt::format("{}_IS_{}", name, upper), "1");
  return set_text(name, detail::cl_type(dtype));
}

std::string Defines::to_string() const {
  std::string text;
  for (const auto& [name, value] : entries_) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

}}  // namespace clutch::v0
