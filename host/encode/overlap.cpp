// SPDX-License-Identifier: Apache-2.0
// Overlap of strided views, decided exactly: an element that two views share solves a linear equation in bounded whole numbers, the indices. The search takes
// the largest stride first, whose index the remaining strides leave few choices, and leaves out what their greatest common divisor excludes.
#include "encode/overlap.hpp"

#include <algorithm>
#include <numeric>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

class Search {
 public:
  explicit Search(std::vector<SumTerm> terms) : terms_(std::move(terms)) {
    std::erase_if(terms_, [](const SumTerm& t) { return t.most == 0; });
    std::sort(terms_.begin(), terms_.end(), [](const SumTerm& a, const SumTerm& b) { return a.coefficient > b.coefficient; });
    merge();
    tails_.resize(terms_.size() + 1);
    for (std::size_t k = terms_.size(); k-- > 0;) {
      const auto [coefficient, most] = terms_[k];
      const Tail& below = tails_[k + 1];
      Tail& tail = tails_[k];
      tail.divisor = std::gcd(below.divisor, coefficient);
      tail.largest = below.largest + coefficient * most;
      // The sums below are all multiples of their divisor; this term continues them without a gap.
      tail.gapless = below.gapless && (below.divisor == 0 || (tail.divisor == below.divisor && coefficient <= below.largest + below.divisor));
    }
  }

  Reached run(std::int64_t target) { return reach(0, target); }

 private:
  struct Tail {
    std::int64_t divisor = 0, largest = 0;  ///< of all sums of the terms from here on
    bool gapless = true;                    ///< each multiple of `divisor` up to `largest` is a sum
  };

  void merge() {
    std::vector<SumTerm> merged;
    for (const SumTerm& t : terms_)
      if (!merged.empty() && merged.back().coefficient == t.coefficient)
        merged.back().most += t.most;
      else
        merged.push_back(t);
    terms_ = std::move(merged);
  }

  Reached reach(std::size_t k, std::int64_t target) {
    const Tail& tail = tails_[k];
    if (target < 0 || target > tail.largest || (tail.divisor == 0 ? target != 0 : target % tail.divisor != 0)) return Reached::no;
    if (tail.gapless || target == 0 || target == tail.largest) return Reached::yes;
    const auto [coefficient, most] = terms_[k];
    const std::int64_t left = target - tails_[k + 1].largest;
    const std::int64_t first = left <= 0 ? 0 : (left + coefficient - 1) / coefficient, last = std::min(most, target / coefficient);
    for (std::int64_t x = last; x >= first; --x) {
      if (--steps_ <= 0) return Reached::unknown;
      if (const Reached found = reach(k + 1, target - coefficient * x); found != Reached::no) return found;
    }
    return Reached::no;
  }

  std::vector<SumTerm> terms_;
  std::vector<Tail> tails_;
  int steps_ = kOverlapSteps;
};

}  // namespace

Reached can_reach(std::vector<SumTerm> terms, std::int64_t target) { return Search(std::move(terms)).run(target); }

Reached overlaps_itself(const Tensor& t) {
  if (t.numel() <= 1) return Reached::no;
  Dims most, strides;
  for (int d = 0; d < t.rank(); ++d)
    if (t.sizes()[d] > 1) {
      if (t.strides()[d] == 0) return Reached::yes;
      most.push_back(t.sizes()[d] - 1), strides.push_back(t.strides()[d]);
    }
  // Two places whose first different index is that of dimension d: by 1 to most[d] there, by -most to most in later dimensions.
  Reached all = Reached::no;
  for (int d = 0; d < most.rank(); ++d) {
    std::vector<SumTerm> terms{{strides[d], most[d] - 1}};
    std::int64_t target = -strides[d];
    for (int k = d + 1; k < most.rank(); ++k) {
      terms.push_back({strides[k], 2 * most[k]});
      target += strides[k] * most[k];
    }
    const Reached found = can_reach(std::move(terms), target);
    if (found == Reached::yes) return found;
    if (found == Reached::unknown) all = found;
  }
  return all;
}

Reached overlaps(const Tensor& a, const Tensor& b, std::int64_t distance) {
  if (a.numel() == 0 || b.numel() == 0) return Reached::no;
  const std::int64_t a_bytes = bits(a.dtype()) / 8, b_bytes = bits(b.dtype()) / 8;
  // a's indices and bytes, from its begin, meet b's, which are counted down from b's end.
  std::vector<SumTerm> terms{{1, a_bytes - 1}, {1, b_bytes - 1}};
  std::int64_t target = distance + b_bytes - 1;
  for (int d = 0; d < a.rank(); ++d)
    if (a.strides()[d] > 0) terms.push_back({a.strides()[d] * a_bytes, a.sizes()[d] - 1});
  for (int d = 0; d < b.rank(); ++d)
    if (b.strides()[d] > 0 && b.sizes()[d] > 1) {
      terms.push_back({b.strides()[d] * b_bytes, b.sizes()[d] - 1});
      target += b.strides()[d] * b_bytes * (b.sizes()[d] - 1);
    }
  return can_reach(std::move(terms), target);
}

}}}  // namespace clutch::v0::detail
