// SPDX-License-Identifier: Apache-2.0
// What a reduction does with numbers of a dtype, on host memory.
#pragma once
#include <clutch/dist.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

struct Reduction {
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  double factor = 1;  ///< of premul_sum
  int ranks = 1;      ///< by which avg divides
};

/// Why the numbers cannot be reduced so; empty if they can.
std::string reduction_refusal(DType dtype, ReduceOp op);

/// The canonical reduction of numbers as they are stored. Sums are made in a wide type, f32 for smaller floating types, i64 for averages of smaller integers,
/// and rounded once. The type of `widen` and `narrow` is that wide type: `narrow(canonical sums of widen(x))` has the same bits as `all`.
class Reducer {
 public:
  explicit Reducer(const Reduction& reduction);

  /// to[i] = the reduction of part[0][i], part[1][i], ..., which are all ranks' in their order. `to` may be one of the parts.
  void all(std::byte* to, std::span<const std::byte* const> parts, std::size_t elements) const { functions_.all(*this, to, parts, elements); }
  /// True where numbers must be widened to be added in parts: where that changes them, or their type.
  bool must_widen() const noexcept { return functions_.must_widen; }
  std::size_t wide_bytes() const noexcept { return functions_.wide_bytes; }
  void widen(std::byte* to, const std::byte* from, std::size_t elements) const { functions_.widen(*this, to, from, elements); }
  /// Wide numbers of neighbouring ranks, or sums of them, in the canonical order.
  void add(std::byte* to, std::span<const std::byte* const> parts, std::size_t elements) const { functions_.add(*this, to, parts, elements); }
  void narrow(std::byte* to, const std::byte* from, std::size_t elements) const { functions_.narrow(*this, to, from, elements); }

  const Reduction& reduction() const noexcept { return reduction_; }

  struct Functions {
    void (*all)(const Reducer&, std::byte*, std::span<const std::byte* const>, std::size_t);
    void (*add)(const Reducer&, std::byte*, std::span<const std::byte* const>, std::size_t);
    void (*widen)(const Reducer&, std::byte*, const std::byte*, std::size_t);
    void (*narrow)(const Reducer&, std::byte*, const std::byte*, std::size_t);
    std::size_t wide_bytes;
    bool must_widen;
  };

 private:
  Reduction reduction_;
  Functions functions_;
};

}}}}  // namespace clutch::v0::dist::detail
