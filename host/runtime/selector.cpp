// SPDX-License-Identifier: Apache-2.0
#include "runtime/selector.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    auto end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

bool has_part(std::string_view whole, std::string_view part) { return lower(whole).find(part) != std::string::npos; }

std::optional<DeviceType> type_word(std::string_view word) {
  if (word == "cpu") return DeviceType::cpu;
  if (word == "gpu") return DeviceType::gpu;
  if (word == "acc" || word == "accelerator") return DeviceType::accelerator;
  return std::nullopt;
}

// PyTorch's device strings name GPUs by vendor; these are the vendors' names in OpenCL drivers.
struct TorchWord {
  std::string_view word;
  std::array<std::string_view, 2> vendors;
};
constexpr std::array<TorchWord, 4> kTorchWords{{
    {"cuda", {"nvidia", "nvidia"}},
    {"hip", {"advanced micro devices", "amd"}},
    {"xpu", {"intel", "intel"}},
    {"mps", {"apple", "apple"}},
}};

using Filter = std::function<bool(const DeviceFacts&)>;

std::optional<Filter> torch_filter(std::string_view word) {
  for (const TorchWord& row : kTorchWords)
    if (row.word == word)
      return Filter([row](const DeviceFacts& d) {
        return d.type == DeviceType::gpu && !d.simulator && (has_part(d.vendor, row.vendors[0]) || has_part(d.vendor, row.vendors[1]));
      });
  return std::nullopt;
}

using Facts = std::span<const DeviceFacts>;

std::vector<int> where(Facts all, const Filter& filter) {
  std::vector<int> result;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (filter(all[i])) result.push_back(static_cast<int>(i));
  return result;
}

/// Returns the candidates that a device word (`*`, type, index, UUID, part of a name) accepts. An index counts candidates, not all devices.
std::vector<int> choose(Facts all, const std::vector<int>& candidates, std::string_view word, std::string_view selector) {
  if (word == "*" || word.empty()) return candidates;
  auto keep = [&](const Filter& filter) {
    std::vector<int> result;
    for (int i : candidates)
      if (filter(all[static_cast<std::size_t>(i)])) result.push_back(i);
    return result;
  };
  if (auto index = number(word))
    return *index < static_cast<int>(candidates.size()) ? std::vector<int>{candidates[static_cast<std::size_t>(*index)]} : std::vector<int>{};
  if (word[0] >= '0' && word[0] <= '9' && word.find_first_not_of("0123456789.*") == std::string_view::npos)
    throw Error(ErrorCode::not_supported, "select_devices", fmt::format("a selector must name whole devices, got the sub-device '{}' in '{}'", word, selector));
  if (auto type = type_word(word)) return keep([&](const DeviceFacts& d) { return d.type == *type; });
  if (auto filter = torch_filter(word)) return keep(*filter);
  for (std::string_view prefix : {"gpu-", "uuid-"})
    if (word.starts_with(prefix)) {
      auto hex = word.substr(prefix.size());
      return keep([&](const DeviceFacts& d) { return !d.uuid.empty() && !hex.empty() && d.uuid.starts_with(hex); });
    }
  return keep([&](const DeviceFacts& d) { return has_part(d.name, word) || has_part(d.platform_name, word) || has_part(d.vendor, word); });
}

std::vector<int> of_platform(Facts all, std::string_view word) {
  if (word == "*" || word == "opencl" || word.empty()) return where(all, [](const DeviceFacts&) { return true; });
  if (auto index = number(word)) return where(all, [&](const DeviceFacts& d) { return d.platform == *index; });
  if (auto type = type_word(word)) return where(all, [&](const DeviceFacts& d) { return d.type == *type; });
  if (auto filter = torch_filter(word)) return where(all, *filter);
  return where(all, [&](const DeviceFacts& d) { return has_part(d.platform_name, word); });
}

std::vector<int> match_term(Facts all, const std::vector<std::string_view>& parts, std::string_view selector) {
  std::vector<int> everything = of_platform(all, "*");
  if (parts.size() == 1) return choose(all, everything, parts[0], selector);
  std::vector<int> candidates = of_platform(all, parts[0]);
  if (parts.size() == 2) return choose(all, candidates, parts[1], selector);
  if (parts.size() == 3) return choose(all, choose(all, candidates, parts[1], selector), parts[2], selector);
  throw Error(ErrorCode::invalid_argument, "select_devices", fmt::format("a term must be platform:device or platform:type:name, got '{}'", selector));
}

void append_unique(std::vector<int>& to, const std::vector<int>& from) {
  for (int i : from)
    if (std::find(to.begin(), to.end(), i) == to.end()) to.push_back(i);
}

}  // namespace

std::string list_choices(Facts all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += fmt::format("\n  {}  or  {}:{}  {}  {} ({})", i, all[i].platform, all[i].device, name(all[i].type), all[i].name, all[i].platform_name);
  return text.empty() ? "\n  (no device is visible)" : text;
}

std::vector<int> match_selector(std::string_view selector, Facts all) {
  std::string text = lower(trim(selector));
  if (text.empty()) throw Error(ErrorCode::invalid_argument, "select_devices", "the selector must have a term, got an empty one");
  std::vector<int> accepted, discarded;
  bool any_accept = false;
  for (std::string_view entry : split(text, ';')) {
    bool discard = entry.starts_with('!');
    if (discard) entry = trim(entry.substr(1));
    if (entry.empty()) throw Error(ErrorCode::invalid_argument, "select_devices", fmt::format("a selector's terms must not be empty, got '{}'", selector));
    any_accept = any_accept || !discard;
    std::vector<std::string_view> prefix;
    for (std::string_view item : split(entry, ',')) {
      if (item.empty())
        throw Error(ErrorCode::invalid_argument, "select_devices", fmt::format("elements of a selector's list must not be empty, got '{}'", selector));
      std::vector<std::string_view> parts = split(item, ':');
      if (parts.size() > 1)
        prefix.assign(parts.begin(), parts.end() - 1);
      else
        parts.insert(parts.begin(), prefix.begin(), prefix.end());  // "cuda:0,1" means cuda:0 and cuda:1
      append_unique(discard ? discarded : accepted, match_term(all, parts, selector));
    }
  }
  if (!any_accept) accepted = of_platform(all, "*");
  std::erase_if(accepted, [&](int i) { return std::find(discarded.begin(), discarded.end(), i) != discarded.end(); });
  if (accepted.empty())
    throw Error(ErrorCode::no_device, "select_devices", fmt::format("'{}' matches no device; the choices are:{}", selector, list_choices(all)));
  return accepted;
}

std::vector<int> visible_devices(std::string_view list, Facts all) {
  std::vector<int> result;
  std::string text = lower(trim(list));
  if (text.empty()) return result;
  for (std::string_view item : split(text, ',')) {
    int found = -1;
    if (auto index = number(item)) {
      found = *index < static_cast<int>(all.size()) ? *index : -1;
    } else if (item.starts_with("gpu-") || item.starts_with("uuid-")) {
      auto hits = choose(all, of_platform(all, "*"), item, list);
      found = hits.size() == 1 ? hits[0] : -1;
    }
    if (found < 0 || std::find(result.begin(), result.end(), found) != result.end()) break;
    result.push_back(found);
  }
  return result;
}

int default_choice(Facts all) {
  for (bool simulator : {false, true})
    for (auto type : {DeviceType::gpu, DeviceType::cpu, DeviceType::accelerator, DeviceType::other})
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].type == type && all[i].simulator == simulator) return static_cast<int>(i);
  return -1;
}

}}}  // namespace clutch::v0::detail
