// SPDX-License-Identifier: Apache-2.0
#include "runtime/allocator_config.hpp"

#include "runtime/segment_growth.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kMostMiB = 1ull << 30;

/// The text in its tokens, which are , : [ ] and what stands between them, without blanks.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  std::string word;
  auto end_word = [&] {
    if (!word.empty()) tokens.push_back(std::exchange(word, {}));
  };
  for (char c : text) {
    if (std::string_view(",:[]").find(c) != std::string_view::npos) {
      end_word();
      tokens.emplace_back(1, c);
    } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      word += c;
    }
  }
  end_word();
  return tokens;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), tokens_(tokens_of(text)) { settings_.last_allocator_settings = std::string(text); }

  AllocatorSettings parse() {
    while (at_ < tokens_.size()) {
      if (at_ > 0) expect(",");
      if (at_ == tokens_.size()) break;  // a comma at the end
      std::string key = next("a key");
      expect(":");
      parse_value(key);
    }
    // As in PyTorch, wherever in the text large_segment_size_mb stands.
    for (const auto& [key, mib] : not_below_segments_)
      if (kMiB * mib < settings_.large_segment_size)
        refuse(fmt::format("{} must be at least large_segment_size_mb, {}", key, settings_.large_segment_size / kMiB), fmt::format("'{}'", mib));
    return std::move(settings_);
  }

 private:
  [[noreturn]] void refuse(const std::string& must, const std::string& got) const {
    throw Error(ErrorCode::invalid_setting, "allocator_settings", fmt::format("{}, got {} in '{}'", must, got, text_));
  }
  std::string next(const std::string& what) {
    if (at_ == tokens_.size()) refuse(fmt::format("{} must follow", what), "the end");
    const std::string& token = tokens_[at_++];
    if (std::string_view(",:[]").find(token) != std::string_view::npos) refuse(fmt::format("{} must follow", what), "'" + token + "'");
    return token;
  }
  bool is_next(std::string_view token) const { return at_ < tokens_.size() && tokens_[at_] == token; }
  void expect(const std::string& token) {
    if (!is_next(token)) refuse(fmt::format("'{}' must follow", token), at_ < tokens_.size() ? "'" + tokens_[at_] + "'" : "the end");
    ++at_;
  }
  std::uint64_t whole(const std::string& key, std::uint64_t least, std::uint64_t most) {
    const std::string token = next(fmt::format("a number for {}", key));
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || end != token.data() + token.size() || value < least || value > most)
      refuse(fmt::format("{} must be a whole number from {} to {}", key, least, most), "'" + token + "'");
    return value;
  }
  double fraction(const std::string& key, bool with_ends) {
    const std::string token = next(fmt::format("a number for {}", key));
    double value = -1;
    auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    const bool inside = with_ends ? value >= 0 && value <= 1 : value > 0 && value < 1;
    if (error != std::errc() || end != token.data() + token.size() || !inside)
      refuse(fmt::format("{} must be a number {}", key, with_ends ? "from 0 to 1" : "between 0 and 1, both excluded"), "'" + token + "'");
    return value;
  }
  bool truth(const std::string& key) {
    const std::string token = next(fmt::format("True or False for {}", key));
    if (token != "True" && token != "False") refuse(fmt::format("{} must be True or False", key), "'" + token + "'");
    return token == "True";
  }
  std::uint64_t division(const std::string& key) {
    std::uint64_t value = whole(key, 0, 1ull << 20);
    if (value != 0 && !std::has_single_bit(value)) refuse(fmt::format("{} must be powers of two, or 0", key), fmt::format("'{}'", value));
    return value;
  }

  /// One number for all sizes, or [256:1,512:2,>:8]: sizes in MiB up to which a number of divisions holds.
  void parse_divisions(const std::string& key) {
    auto& all = settings_.roundup_power2_divisions;
    if (!is_next("[")) {
      const std::uint64_t value = division(key);
      if (value == 0) refuse(fmt::format("{} for all sizes must be a power of two", key), "'0'");
      all.fill(value);
      return;
    }
    ++at_;
    std::size_t last = 0;
    for (bool first = true; !is_next("]"); first = false) {
      if (!first) expect(",");
      std::string size = next("a size in MiB");
      expect(":");
      if (size == ">") {
        // As in PyTorch the last size of the list loses its own number.
        std::fill(all.begin() + static_cast<std::ptrdiff_t>(last), all.end(), division(key));
        break;
      }
      std::uint64_t mib = 0;
      auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), mib);
      if (error != std::errc() || end != size.data() + size.size() || !std::has_single_bit(mib) || mib > kMostMiB)
        refuse(fmt::format("sizes of {} must be powers of two in MiB, or '>'", key), "'" + size + "'");
      const std::size_t interval = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(mib)), all.size() - 1);
      const std::uint64_t value = division(key);
      if (first) std::fill(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(interval), value);
      all[interval] = value;
      last = interval;
    }
    expect("]");
  }

  /// Bytes of a number of MiB that must not be below large_segment_size_mb.
  std::uint64_t not_below_segments(const std::string& key) {
    const std::uint64_t mib = whole(key, kLargeLimit / kMiB + 1, kMostMiB);
    not_below_segments_.emplace_back(key, mib);
    return kMiB * mib;
  }

  void parse_value(const std::string& key) {
    AllocatorSettings& s = settings_;
    if (key == "large_segment_size_mb") {
      s.large_segment_size = kMiB * whole(key, kLargeLimit / kMiB + 1, kMostMiB);
    } else if (key == "max_split_size_mb") {
      s.max_split_size = not_below_segments(key);
    } else if (key == "max_non_split_rounding_mb") {
      s.max_non_split_rounding_size = not_below_segments(key);
    } else if (key == "garbage_collection_threshold") {
      s.garbage_collection_threshold = fraction(key, false);
    } else if (key == "roundup_power2_divisions") {
      parse_divisions(key);
    } else if (key == "expandable_segments") {
      s.expandable_segments = truth(key);
    } else if (key == "per_process_memory_fraction") {
      s.per_process_memory_fraction = fraction(key, true);
    } else {
      parse_without_effect(key);
    }
  }

  /// Keys of PyTorch's that name what OpenCL devices do not have. Their values are checked all the same.
  void parse_without_effect(const std::string& key) {
    constexpr std::array<std::string_view, 7> kFlags{"pinned_use_background_threads", "release_lock_on_cudamalloc",        "pinned_use_cuda_host_register",
                                                     "pinned_free_catch_all",         "graph_capture_record_stream_reuse", "throw_on_cudamalloc_oom",
                                                     "release_lock_on_malloc"};
    if (std::find(kFlags.begin(), kFlags.end(), key) != kFlags.end()) {
      truth(key);
    } else if (key == "backend") {
      if (std::string name = next("native or cudaMallocAsync"); name != "native" && name != "cudaMallocAsync")
        refuse("backend must be native or cudaMallocAsync", "'" + name + "'");
    } else if (key == "pinned_num_register_threads") {
      if (std::uint64_t n = whole(key, 1, 128); !std::has_single_bit(n)) refuse(fmt::format("{} must be a power of two", key), fmt::format("'{}'", n));
    } else if (key == "pinned_reserve_segment_size_mb") {
      whole(key, 0, kMostMiB);
    } else {
      refuse(
          "a key must be one of large_segment_size_mb, max_split_size_mb, max_non_split_rounding_mb, garbage_collection_threshold, roundup_power2_divisions, "
          "expandable_segments, per_process_memory_fraction or, without effect here, another of PyTorch's",
          "'" + key + "'");
    }
    settings_.without_effect.push_back(key);
  }

  std::string text_;
  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> not_below_segments_;  ///< keys with their MiB
  AllocatorSettings settings_;
};

/// A power of two stays; else the next of the steps that cut the range up to the next power of two in `divisions`.
std::uint64_t next_division(std::uint64_t bytes, std::uint64_t divisions) {
  if (std::has_single_bit(bytes)) return bytes;
  const std::uint64_t floor = std::bit_floor(bytes), step = floor >> std::countr_zero(divisions);
  return step == 0 ? floor << 1 : round_up(bytes, step);
}

}  // namespace

AllocatorSettings parse_allocator_settings(std::string_view text) { return Parser(text).parse(); }

std::string allocator_settings_refusal(std::string_view text) {
  try {
    parse_allocator_settings(text);
  } catch (const Error& e) {
    return fmt::format("PyTorch's KEY:VALUE pairs joined by commas ({})", e.message());
  }
  return {};
}

AllocatorSettings with_growth(AllocatorSettings settings) {
  const std::string_view text = settings.last_allocator_settings;
  auto says = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };  // no key is a part of another word of the grammar
  if (!says("expandable_segments") && !says("large_segment_size_mb") && !says("max_split_size_mb") && !says("max_non_split_rounding_mb") &&
      !says("garbage_collection_threshold"))
    settings.expandable_segments = true;
  return settings;
}

std::uint64_t rounded_bytes(const AllocatorSettings& settings, std::uint64_t requested) {
  if (requested < kBlockAlignment) return kBlockAlignment;
  const int interval = std::clamp(static_cast<int>(std::bit_width(requested)) - 1 - 20, 0, 15);
  const std::uint64_t divisions = settings.roundup_power2_divisions[static_cast<std::size_t>(interval)];
  return divisions > 1 && requested > kBlockAlignment * divisions ? next_division(requested, divisions) : round_up(requested, kBlockAlignment);
}

std::uint64_t new_segment_bytes(const AllocatorSettings& settings, std::uint64_t block, std::uint64_t reserved, std::uint64_t device) {
  if (block <= kSmallLimit) return kSmallSegment;
  const std::uint64_t bytes = block < kLargeLimit ? settings.large_segment_size : round_up(block, kSegmentRounding);
  if (!settings.expandable_segments) return bytes;
  const std::uint64_t growth = device > 0 ? std::min(reserved, device / 8) : reserved;
  return std::max(bytes, growth / kSegmentRounding * kSegmentRounding);
}

}}}  // namespace clutch::v0::detail
