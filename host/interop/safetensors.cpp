// SPDX-License-Identifier: Apache-2.0
// The safetensors format: the length of the header in 8 bytes, the header (a JSON object), the tensors' bytes.
// Source: github.com/huggingface/safetensors, "Format".
#include <clutch/files.hpp>

#include "interop/mapped_file.hpp"
#include "interop/safetensors_header.hpp"
#include "runtime/op_name.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace clutch { inline namespace v0 {
namespace {

constexpr std::string_view kOpen = "Safetensors", kSave = "save_safetensors";
using detail::kMostHeader, detail::SafetensorsType;

/// `got` names what stands in the place of a whole safetensors file.
[[noreturn]] void bad(std::string_view got) { throw Error(ErrorCode::io, kOpen, fmt::format("the bytes must be a whole safetensors file, got {}", got)); }

/// A JSON object of at most two levels without repeated keys.
nlohmann::json parse_header(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  auto watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::object_start) keys.resize(std::max<std::size_t>(keys.size(), static_cast<std::size_t>(depth) + 1));
    if (event == nlohmann::json::parse_event_t::object_end) keys[static_cast<std::size_t>(depth)].clear();
    // The depth of a key is one more than that of its object.
    if (event == nlohmann::json::parse_event_t::key && !keys[static_cast<std::size_t>(depth) - 1].insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  nlohmann::json header = nlohmann::json::parse(text.begin(), text.end(), watch, false);
  if (header.is_discarded() || !header.is_object()) bad("a header that is no JSON object");
  if (!twice.empty()) bad(fmt::format("the name '{}' twice", twice));
  return header;
}

std::uint64_t count_of(const nlohmann::json& value, std::string_view of) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    bad(fmt::format("'{}' with {} where a whole number from 0 to 2^63 - 1 must be", of, value.dump()));
  return value.get<std::uint64_t>();
}

Safetensors::Entry entry_of(const std::string& name, const nlohmann::json& value) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
    bad(fmt::format("'{}' with other fields than dtype, shape and data_offsets", name));
  const nlohmann::json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2) bad(fmt::format("'{}' with fields of wrong types", name));
  Safetensors::Entry entry{.name = name, .dtype_name = dtype.get<std::string>()};
  const SafetensorsType* type = detail::safetensors_type(entry.dtype_name);
  if (!type) bad(fmt::format("'{}' of the unknown dtype {}", name, entry.dtype_name));
  entry.dtype = type->dtype;
  std::uint64_t elements = 1;
  for (const nlohmann::json& size : shape) {
    std::uint64_t n = count_of(size, name);
    if (__builtin_mul_overflow(elements, n, &elements)) bad(fmt::format("'{}' of too many elements", name));
    entry.sizes.push_back(static_cast<std::int64_t>(n));  // throws for more than kMaxRank
  }
  entry.begin = count_of(offsets[0], name), entry.end = count_of(offsets[1], name);
  std::uint64_t wanted = 0;
  if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(type->bits), &wanted) || wanted % 8 != 0 || entry.begin > entry.end ||
      entry.end - entry.begin != wanted / 8)
    bad(fmt::format("'{}' of {} elements of {} in bytes {} to {}", name, elements, entry.dtype_name, entry.begin, entry.end));
  return entry;
}

}  // namespace

Safetensors Safetensors::parse(std::span<const std::byte> bytes) {
  detail::OpName named("Safetensors::parse");
  std::uint64_t length = 0;
  if (bytes.size() < 8) bad(fmt::format("{} bytes, fewer than 8", bytes.size()));
  for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  if (length > kMostHeader) bad(fmt::format("a header of {} bytes, more than {}", length, kMostHeader));
  if (length > bytes.size() - 8) bad(fmt::format("a header of {} bytes in a file of {}", length, bytes.size()));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, static_cast<std::size_t>(length));
  if (!text.starts_with('{')) bad("a header that does not begin with {");
  Safetensors made;
  made.data_ = bytes.subspan(8 + static_cast<std::size_t>(length));
  const nlohmann::json header = parse_header(text);
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      made.entries_.push_back(entry_of(name, value));
      continue;
    }
    if (!value.is_object()) bad("a __metadata__ that is no object");
    for (const auto& [key, word] : value.items()) {
      if (!word.is_string()) bad(fmt::format("metadata '{}' that is no string", key));
      made.metadata_[key] = word.get<std::string>();
    }
  }
  std::sort(made.entries_.begin(), made.entries_.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name); });
  std::uint64_t reached = 0;
  for (const Entry& entry : made.entries_) {
    if (entry.begin != reached) bad(fmt::format("'{}' from byte {} behind a tensor that ends at byte {}", entry.name, entry.begin, reached));
    reached = entry.end;
  }
  if (reached != made.data_.size()) bad(fmt::format("tensors of {} bytes in a file of {}", reached, made.data_.size()));
  return made;
}

Safetensors Safetensors::open(const std::string& path) {
  detail::OpName named("Safetensors::open");
  detail::MappedFile file = detail::map_file(path, kOpen);
  Safetensors made = detail::of_file(path, [&] { return parse(file.bytes); });
  made.mapped_ = file.keeper;
  made.origin_ = path + ": ";
  return made;
}

const Safetensors::Entry* Safetensors::find(std::string_view name) const noexcept {
  for (const Entry& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::span<const std::byte> Safetensors::bytes(std::string_view name) const {
  detail::OpName named("Safetensors::bytes");
  const Entry* entry = find(name);
  if (!entry) throw Error(ErrorCode::invalid_argument, kOpen, fmt::format("{}the name must be that of a tensor in the file, got '{}'", origin_, name));
  return data_.subspan(static_cast<std::size_t>(entry->begin), static_cast<std::size_t>(entry->end - entry->begin));
}

Tensor Safetensors::load(std::string_view name, const Device& device, const Stream& stream) const {
  detail::OpName named("Safetensors::load");
  std::span<const std::byte> bytes = this->bytes(name);
  const Entry* entry = find(name);
  return from_bytes(bytes.data(), bytes.size(), entry->sizes, {.dtype = entry->dtype, .device = device}, stream);
}

void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors, const std::map<std::string, std::string>& metadata,
                      const Stream& stream) {
  detail::OpName named("save_safetensors");
  auto refuse = [&path](ErrorCode code, std::string_view why) { throw Error(code, kSave, fmt::format("{}: {}", path, why)); };
  std::vector<detail::SafetensorsItem> items;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) refuse(ErrorCode::invalid_argument, fmt::format("tensor '{}' must be defined, got an undefined one", name));
    if (name == "__metadata__") refuse(ErrorCode::invalid_argument, "a tensor's name must not be the format's own word, got '__metadata__'");
    const SafetensorsType* type = detail::safetensors_type(tensor.dtype());
    if (!type) refuse(ErrorCode::invalid_dtype, fmt::format("the dtype of '{}' must be one of the format's, got {}", name, clutch::name(tensor.dtype())));
    if (tensor.numel() * type->bits % 8 != 0)
      refuse(ErrorCode::invalid_shape, fmt::format("'{}' must fill whole bytes, got {} elements of {}", name, tensor.numel(), type->name));
    items.push_back({name, type, tensor.sizes(), tensor.nbytes()});
  }
  const std::string text = detail::safetensors_header(items, metadata);
  if (text.empty()) refuse(ErrorCode::invalid_argument, "names and metadata must be UTF-8, got other bytes");
  const std::uint64_t length = text.size();
  if (length > kMostHeader) refuse(ErrorCode::invalid_argument, fmt::format("the header must have at most {} bytes, got {}", kMostHeader, length));
  std::vector<std::vector<std::uint8_t>> bytes;
  for (const detail::SafetensorsItem& item : items) bytes.push_back(tensors.at(std::string(item.name)).to_bytes(stream));
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(text))};
  for (const auto& part : bytes) parts.push_back(std::as_bytes(std::span(part)));
  detail::write_file(path, parts, kSave);
}

}}  // namespace clutch::v0
