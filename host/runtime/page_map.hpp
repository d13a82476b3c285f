// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Which pages of a range are held. Those from `mark_` on are not; below it those in `holes_` are not.
class PageMap {
 public:
  PageMap() = default;
  PageMap(std::uint64_t pages, bool held) : pages_(pages), mark_(held ? pages : 0) {}

  std::uint64_t held() const noexcept { return mark_ - hole_count_; }

  /// Number of pages of [begin, end) that are not held.
  std::uint64_t missing(std::uint64_t begin, std::uint64_t end) const {
    std::uint64_t count = end > mark_ ? end - std::max(begin, mark_) : 0;
    if (hole_count_ > 0 && begin < mark_)
      each_word(begin, std::min(end, mark_),
                [&](std::size_t word, std::uint64_t mask) { count += static_cast<std::uint64_t>(std::popcount(holes_[word] & mask)); });
    return count;
  }

  /// Calls `visit` with each run of held pages in [begin, end).
  template <class Visit>
  void each_held(std::uint64_t begin, std::uint64_t end, Visit visit) const {
    end = std::min(end, mark_);
    auto is_hole = [&](std::uint64_t page) { return hole_count_ > 0 && ((holes_[page / 64] >> page % 64) & 1) != 0; };
    while (begin < end) {
      while (begin < end && is_hole(begin)) ++begin;
      std::uint64_t last = begin;
      while (last < end && !is_hole(last)) ++last;
      if (last > begin) visit(begin, last);
      begin = last;
    }
  }

  /// Holds the pages of [begin, end).
  void hold(std::uint64_t begin, std::uint64_t end) {
    if (hole_count_ > 0 && begin < mark_)
      each_word(begin, std::min(end, mark_), [&](std::size_t word, std::uint64_t mask) {
        hole_count_ -= static_cast<std::uint64_t>(std::popcount(holes_[word] & mask));
        holes_[word] &= ~mask;
      });
    if (end <= mark_) return;
    const std::uint64_t former = mark_;
    mark_ = end;
    if (begin > former) make_holes(former, begin);
  }

  /// Lets the pages of [begin, end) go.
  void drop(std::uint64_t begin, std::uint64_t end) {
    end = std::min(end, mark_);
    if (begin >= end) return;
    if (end < mark_) return make_holes(begin, end);
    hold(begin, end);  // no holes above the mark
    mark_ = begin;
  }

 private:
  void make_holes(std::uint64_t begin, std::uint64_t end) {
    holes_.resize((pages_ + 63) / 64);
    each_word(begin, end, [&](std::size_t word, std::uint64_t mask) {
      hole_count_ += static_cast<std::uint64_t>(std::popcount(mask & ~holes_[word]));
      holes_[word] |= mask;
    });
  }
  /// Calls `visit` with each word of bits that [begin, end) touches, and the bits of the range in it.
  template <class Visit>
  static void each_word(std::uint64_t begin, std::uint64_t end, Visit visit) {
    while (begin < end) {
      const std::uint64_t last = std::min(end, (begin / 64 + 1) * 64), bits = last - begin;
      visit(static_cast<std::size_t>(begin / 64), (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1) << begin % 64);
      begin = last;
    }
  }

  std::uint64_t pages_ = 0, mark_ = 0, hole_count_ = 0;
  std::vector<std::uint64_t> holes_;  ///< a bit for each page below a former mark
};

}}}  // namespace clutch::v0::detail
