// SPDX-License-Identifier: Apache-2.0
#include "dist/flight_image.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

using Match = FlightOpInfo::Match;
constexpr Match kCollective = Match::collective, kPair = Match::pair, kNone = Match::none;

constexpr std::array<FlightOpInfo, kFlightOpCount> kOps{{
    {"all_reduce", "all_reduce", kCollective, true, false},
    {"reduce", "reduce", kCollective, false, true},
    {"broadcast", "broadcast", kCollective, false, true},
    {"all_gather", "all_gather_single", kCollective, true, false},
    {"reduce_scatter", "reduce_scatter_single", kCollective, true, false},
    {"all_to_all", "all_to_all_single", kCollective, true, false},
    {"gather", "gather", kCollective, false, true},
    {"scatter", "scatter", kCollective, false, true},
    {"all_gather_v", "all_gather_v", kCollective, true, false},
    {"reduce_scatter_v", "reduce_scatter_v", kCollective, true, false},
    {"all_to_all_v", "all_to_all", kCollective, true, false},
    {"gather_v", "gather", kCollective, false, true},
    {"scatter_v", "scatter", kCollective, false, true},
    {"all_reduce_coalesced", "allreduce_coalesced", kCollective, true, false},
    {"all_gather_coalesced", "all_gather_into_tensor_coalesced", kCollective, true, false},
    {"reduce_scatter_coalesced", "reduce_scatter_tensor_coalesced", kCollective, true, false},
    {"dispatch", "all_to_all", kCollective, true, false},
    {"combine", "all_to_all", kCollective, true, false},
    {"barrier", "barrier", kCollective, true, false},
    {"split", "split", kCollective, true, false},
    {"new_window", "new_window", kCollective, true, false},
    {"send", "send", kPair, false, false},
    {"recv", "recv", kPair, false, false},
    {"put", "", kNone, false, false},
    {"get", "", kNone, false, false},
    {"signal", "", kNone, false, false},
    {"wait_signal", "", kNone, false, false},
    {"reconfigure", "", kNone, false, false},
}};
constexpr std::array<std::string_view, kFlightReduceCount> kReduces{"sum", "avg", "prod", "min", "max", "band", "bor", "bxor", "premul_sum", ""};
constexpr std::array<std::string_view, kFlightStateCount> kStates{"scheduled", "started", "completed", "failed", "timed_out"};
constexpr std::array<std::string_view, 4> kProcesses{"unknown", "running", "closed", "lost"};

template <class E, std::size_t n>
std::optional<E> found(const std::array<std::string_view, n>& names, std::string_view name) noexcept {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<E>(at - names.begin());
}

/// Bytes of the UTF-8 character at the begin of `text`; 0 if there is none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  // Longer than need be, halves of a surrogate pair, above U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  return n;
}

}  // namespace

const FlightOpInfo& info(FlightOp op) noexcept { return kOps[static_cast<std::size_t>(op)]; }
std::string_view name(FlightReduce reduce) noexcept { return kReduces[static_cast<std::size_t>(reduce)]; }
std::string_view name(FlightState state) noexcept { return kStates[static_cast<std::size_t>(state)]; }
std::string_view name(FlightProcess process) noexcept { return kProcesses[static_cast<std::size_t>(process)]; }

std::optional<FlightOp> flight_op(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (kOps[i].name == name) return static_cast<FlightOp>(i);
  return std::nullopt;
}
std::optional<FlightReduce> flight_reduce(std::string_view name) noexcept { return found<FlightReduce>(kReduces, name); }
std::optional<FlightState> flight_state(std::string_view name) noexcept { return found<FlightState>(kStates, name); }

std::int64_t elements_of(const std::vector<std::int64_t>& sizes) noexcept {
  std::int64_t product = 1;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  for (const std::int64_t n : sizes) {
    if (n > std::numeric_limits<std::int64_t>::max() / product) return std::numeric_limits<std::int64_t>::max();
    product *= n;
  }
  return product;
}

std::int64_t elements_of(const FlightSizes& sizes) noexcept {
  std::int64_t sum = 0;
  for (const auto& tensor : sizes) {
    const std::int64_t n = elements_of(tensor);
    sum = n > std::numeric_limits<std::int64_t>::max() - sum ? std::numeric_limits<std::int64_t>::max() : sum + n;
  }
  return sum;
}

const FlightGroup* FlightImage::group(std::uint32_t index) const noexcept {
  const auto at = std::lower_bound(groups.begin(), groups.end(), index, [](const FlightGroup& g, std::uint32_t i) { return g.index < i; });
  return at != groups.end() && at->index == index ? &*at : nullptr;
}

FlightGroups::FlightGroups(const std::vector<FlightImage>& images) {
  std::map<std::pair<std::string, std::vector<std::int32_t>>, std::int32_t> known;
  for (const FlightImage& image : images) {
    auto& numbers = numbers_.emplace_back();
    for (const FlightGroup& group : image.groups) {
      if (!group.has_ranks) continue;
      const auto [at, is_new] = known.try_emplace({group.name, group.ranks}, static_cast<std::int32_t>(all_.size()));
      if (is_new) all_.push_back({group.name, group.description, group.ranks});
      numbers[group.index] = at->second;
    }
  }
}

std::int32_t FlightGroups::number(std::size_t image, std::uint32_t index) const noexcept {
  const auto at = numbers_[image].find(index);
  return at == numbers_[image].end() ? -1 : at->second;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t n = character(text);
    const bool is_control = n == 1 && (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f);
    if (n == 0 || is_control) {
      result += '?';
      text.remove_prefix(1);
    } else {
      result += text.substr(0, n);
      text.remove_prefix(n);
    }
  }
  return result;
}

}}}}  // namespace clutch::v0::dist::detail
