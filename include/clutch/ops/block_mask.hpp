// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/expr.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace clutch { inline namespace v0 {

namespace attention {

/// Where a score stands: batch, head of the query, query or key; a traced i32. Sums and products of indices and whole
/// numbers are indices.
/// Quotients: floor_div() and floor_mod() are Python's // and %. `/` and `%` with whole numbers do not compile, for C++
///   and Python mean different numbers by them; q / 2.0f is a quotient in f32, as q_idx / 2 is in PyTorch.
class Index : public Expr {
 public:
  Index(const Expr& value) : Expr(value) {}
  template <std::integral T>
  Index(T number) : Expr(number) {}
};

}  // namespace attention

namespace detail {
template <class T>
inline constexpr bool kIsWhole = std::is_same_v<T, attention::Index> ||
                                 (std::is_integral_v<T> && !std::is_same_v<T, bool>);
/// Two of what indices are made of, an index among them.
template <class A, class B>
concept WithIndex = kIsWhole<A> && kIsWhole<B> &&
    (std::is_same_v<A, attention::Index> || std::is_same_v<B, attention::Index>);

template <class F, std::size_t... kI>
consteval bool takes_indices(std::index_sequence<kI...>) {
  return std::is_invocable_v<F&, decltype((void)kI, std::declval<attention::Index>())...>;
}
/// Whether F is what a mod over these is made of, or would be if it took another count of arguments: then the compiler
/// is to say what it should take.
template <class F, class... Arguments>
consteval bool is_meant_as_mod() {
  if constexpr (std::is_invocable_r_v<Expr, F&, Arguments...>)
    return true;
  else
    return []<std::size_t... kCount>(std::index_sequence<kCount...>) {
      return (takes_indices<F>(std::make_index_sequence<kCount>()) || ...);
    }
  (std::make_index_sequence<9>());
}
}  // namespace detail

namespace attention {

template <class A, class B>
requires detail::WithIndex<A, B> Index operator+(const A& a, const B& b) { return Expr(a) + Expr(b); }
template <class A, class B>
requires detail::WithIndex<A, B> Index operator-(const A& a, const B& b) { return Expr(a) - Expr(b); }
template <class A, class B>
requires detail::WithIndex<A, B> Index operator*(const A& a, const B& b) { return Expr(a) * Expr(b); }
inline Index operator-(const Index& x) { return -static_cast<const Expr&>(x); }
template <class A, class B>
requires detail::WithIndex<A, B> Index floor_div(const A& a, const B& b) { return clutch::floor_div(Expr(a), Expr(b)); }
template <class A, class B>
requires detail::WithIndex<A, B> Index floor_mod(const A& a, const B& b) { return clutch::floor_mod(Expr(a), Expr(b)); }
template <class A, class B>
requires detail::WithIndex<A, B> Index trunc_div(const A& a, const B& b) { return clutch::trunc_div(Expr(a), Expr(b)); }
template <class A, class B>
requires detail::WithIndex<A, B> Index trunc_mod(const A& a, const B& b) { return clutch::trunc_mod(Expr(a), Expr(b)); }
template <class A, class B>
requires detail::WithIndex<A, B> Index min(const A& a, const B& b) { return clutch::min(Expr(a), Expr(b)); }
template <class A, class B>
requires detail::WithIndex<A, B> Index max(const A& a, const B& b) { return clutch::max(Expr(a), Expr(b)); }
/// Two of one type: taken before std::min and std::max, too.
template <std::same_as<Index> T>
Index min(const T& a, const T& b) {
  return clutch::min(Expr(a), Expr(b));
}
template <std::same_as<Index> T>
Index max(const T& a, const T& b) {
  return clutch::max(Expr(a), Expr(b));
}
inline Index abs(const Index& x) { return clutch::abs(static_cast<const Expr&>(x)); }
template <class A, class B>
requires detail::WithIndex<A, B> Index operator/(const A& a, const B&) {
  static_assert(detail::kNever<B>,
                "q / 16 of an index: write floor_div(q, 16) for Python's q // 16, or q / 16.0f for a quotient in f32");
  return a;
}
template <std::same_as<Index> A, class B>
A& operator/=(A& a, const B&) {
  static_assert(detail::kNever<B>,
                "q /= 16 of an index: write q = floor_div(q, 16), or make a float of q / 16.0f for a quotient in f32");
  return a;
}
template <class A, class B>
requires detail::WithIndex<A, B> Index operator%(const A& a, const B&) {
  static_assert(detail::kNever<B>, "q % 16 of an index: write floor_mod(q, 16) for Python's q % 16");
  return a;
}

/// Which keys a query attends to: a traced function of batch, head, query and key to a boolean. Made of a lambda
/// [](Index b, Index h, Index q, Index kv) { return q >= kv; }, which may read captured() tensors and use param()s. A
/// value; cheap to copy.
class CLUTCH_API MaskMod {
 public:
  /// None: every query attends to every key.
  MaskMod() = default;
  /// Errors: invalid_dtype unless the lambda returns a boolean.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, MaskMod> && detail::is_meant_as_mod<F, Index, Index, Index, Index>())
      MaskMod(F&& f)
      : MaskMod(traced(f)) {}
  /// Errors: invalid_argument unless the function takes four i32 and gives one boolean.
  explicit MaskMod(const ExprFunction& function);

  bool empty() const noexcept { return function_.empty(); }
  const ExprFunction& function() const noexcept { return function_; }
  /// The mask at these, for masks made of masks; true of an empty one.
  Expr operator()(const Index& b, const Index& h, const Index& q, const Index& kv) const;

 private:
  template <class F>
  static ExprFunction traced(F& f) {
    constexpr bool kTakesIndices = std::is_invocable_r_v<Expr, F&, Index, Index, Index, Index>;
    static_assert(kTakesIndices,
                  "a mask mod takes four arguments (Index b, Index h, Index q, Index kv) and returns a traced boolean");
    if constexpr (kTakesIndices)
      return trace<4>([&](Index b, Index h, Index q, Index kv) -> Expr { return f(b, h, q, kv); },
                      {DType::i32, DType::i32, DType::i32, DType::i32});
    else
      return {};
  }

  ExprFunction function_;
};
/// Where both, one of two, or one not, hold.
CLUTCH_API MaskMod operator&(const MaskMod& a, const MaskMod& b);
CLUTCH_API MaskMod operator|(const MaskMod& a, const MaskMod& b);
CLUTCH_API MaskMod operator!(const MaskMod& a);

/// q + offset >= kv. For the lower right corner of q_len x kv_len the offset is kv_len - q_len. The offset builds
/// nothing.
CLUTCH_API MaskMod causal(std::int64_t offset = 0);
/// The last `window` keys before a query, and its own: (q >= kv) & (q - kv <= window). The window builds nothing.
CLUTCH_API MaskMod sliding_window(std::int64_t window);
/// Keys before prefix[b], i32 (B) or one number, are everybody's; behind it, causal().
CLUTCH_API MaskMod prefix_lm(const Tensor& prefix);
CLUTCH_API MaskMod prefix_lm(std::int64_t prefix);
/// Within a document: ids, i32 (S) or (B, S), are equal.
CLUTCH_API MaskMod document(const Tensor& ids);
/// Every `dilation`-th key up to `window` away, before and behind.
CLUTCH_API MaskMod dilated(std::int64_t window, std::int64_t dilation);

struct BlockSize {
  std::int64_t q = 128, kv = 128;
  friend bool operator==(const BlockSize&, const BlockSize&) = default;
};
struct BlockMaskOptions {
  std::int64_t batch = 1, heads = 1;  ///< 1: the mask does not depend on it
  std::int64_t q_len = 0, kv_len = 0;
  BlockSize block = {};
  Device device = {};               ///< empty: that of a captured tensor, else the current one
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// A mask by blocks: for each block of queries which blocks of keys it attends to wholly (`full`, where the mask need
/// not be looked at) and partly. Lists are i32, ascending; what follows the counted ones are the blocks that are not
/// listed. A cheap value on one device.
/// Source: torch.nn.attention.flex_attention.BlockMask of PyTorch 2.12, whose rules of edges these are: a block that
///   reaches past a length is never full.
class CLUTCH_API BlockMask {
 public:
  BlockMask() = default;

  bool empty() const noexcept { return state_ == nullptr; }
  /// All of these: invalid_argument for an empty one.
  std::int64_t q_len() const;
  std::int64_t kv_len() const;
  const BlockSize& block() const;
  const MaskMod& mask_mod() const;
  /// (B, H, rows) and (B, H, rows, columns); rows and columns are the lengths over the block's, rounded up.
  const Tensor& kv_num_blocks() const;
  const Tensor& kv_indices() const;
  const Tensor& full_kv_num_blocks() const;
  const Tensor& full_kv_indices() const;
  /// The same by blocks of keys: (B, H, columns) and (B, H, columns, rows).
  const Tensor& q_num_blocks() const;
  const Tensor& q_indices() const;
  const Tensor& full_q_num_blocks() const;
  const Tensor& full_q_indices() const;
  /// u8 (B, H, rows, columns): 0 for blocks that are not attended to, 1 for partial ones, 2 for full ones.
  const Tensor& kinds() const;

  /// i32 (B, H, rows, columns): 1 where there is anything to do. Stream: never waits.
  Tensor to_dense(const Stream& stream = {}) const;
  /// Some of the batches and heads, from `begin` to before `end`; the mask counts from there on. Copies the lists'
  /// parts.
  /// Stream: never waits.
  BlockMask slice(std::int64_t batch_begin, std::int64_t batch_end, std::int64_t head_begin, std::int64_t head_end,
                  const Stream& stream = {}) const;
  /// For other lengths, shorter or longer: kinds of blocks stay, new ones are found by the mask.
  /// Errors: invalid_argument for a longer one without mask function.
  /// Stream: never waits.
  BlockMask adjust(std::int64_t q_len, std::int64_t kv_len, const Stream& stream = {}) const;
  /// Percent of the scores that are in blocks that nobody attends to. Waits.
  double sparsity(const Stream& stream = {}) const;
  /// Lengths, sparsity, and a picture of each batch's and head's blocks: full, partial, none; several blocks a letter
  /// where there are many. Waits.
  std::string to_string(const Stream& stream = {}) const;

  struct State;
  const std::shared_ptr<const State>& state() const noexcept { return state_; }
  explicit BlockMask(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// Looks at the mask block by block, on the device: O(rows x columns) bytes, never q_len x kv_len. Blocks that ranges
/// of the indices decide are not looked at inside.
/// Errors: invalid_argument for an empty mask, lengths or blocks below 1 or past 2^31; not_supported where loops end
///   early.
/// Stream: never waits.
CLUTCH_API BlockMask create_block_mask(const MaskMod& mask, const BlockMaskOptions& options, const Stream& stream = {});
/// From lists of one's own, i32: kv_num_blocks (B, H, rows), kv_indices (B, H, rows, columns), and full ones, both or
/// neither. Within listed partial blocks the mask decides (an empty one: all).
/// Errors: invalid_shape, invalid_dtype.
/// Stream: never waits.
CLUTCH_API BlockMask block_mask_from_lists(const Tensor& kv_num_blocks, const Tensor& kv_indices,
                                           const Tensor& full_kv_num_blocks, const Tensor& full_kv_indices,
                                           const MaskMod& mask, const BlockMaskOptions& options,
                                           const Stream& stream = {});

}  // namespace attention
}}  // namespace clutch::v0
