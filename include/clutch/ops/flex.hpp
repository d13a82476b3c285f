// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/block_mask.hpp>
#include <clutch/ops/matmul.hpp>

#include <clutch/random.hpp>

#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace clutch { inline namespace v0 { namespace attention {

/// A score, scaled: q . k scale; traced as f32, for f64 tensors as f64.
/// Numbers of C++: they adopt that dtype next to a score. Next to an index, or alone, they are f32 also then: in
///   s + 0.1 * h the factor is 0.1f, in s + 0.1 * cast(h, s.dtype()) it is not.
using Score = Expr;

/// A change of scores before softmax: a traced function of score, batch, head of the query, query and key.
/// Lambda: [](Score s, Index b, Index h, Index q, Index kv) { return s + bias[h] * (kv - q); }. opencl() expresses what
///   lambdas cannot.
/// Copies: a value; cheap to copy.
/// Quotients: Index refuses q / 16 and q % 16, whose meaning C++ and PyTorch differ on; a parameter declared Expr does
///   not, and divides in f32.
class CLUTCH_API ScoreMod {
 public:
  /// None: scores stay what they are.
  ScoreMod() = default;
  /// Errors: invalid_dtype unless the lambda returns a number.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, ScoreMod> &&
           detail::is_meant_as_mod<F, Score, Index, Index, Index, Index>()) ScoreMod(F&& f)
      : ScoreMod(traced(f, DType::f32), traced(f, DType::f64)) {}
  /// Made of a function of f32 scores and one of f64 scores.
  ScoreMod(const ExprFunction& f32, const ExprFunction& f64);

  bool empty() const noexcept { return f32_.empty(); }
  const ExprFunction& function(DType dtype) const noexcept { return dtype == DType::f64 ? f64_ : f32_; }
  /// The score at these, for mods made of mods; of an empty one the score itself.
  Expr operator()(const Score& score, const Index& b, const Index& h, const Index& q, const Index& kv) const;

 private:
  template <class F>
  static ExprFunction traced(F& f, DType score) {
    constexpr bool kTakesIndices = std::is_invocable_r_v<Expr, F&, Score, Index, Index, Index, Index>;
    static_assert(
        kTakesIndices,
        "a score mod takes five arguments (Score s, Index b, Index h, Index q, Index kv) and returns a traced number");
    if constexpr (kTakesIndices)
      return trace<5>([&](Score s, Index b, Index h, Index q, Index kv) -> Expr { return f(s, b, h, q, kv); },
                      {score, DType::i32, DType::i32, DType::i32, DType::i32});
    else
      return {};
  }

  ExprFunction f32_, f64_;
};

/// score + slopes[h] (kv - q), the product in f32 (f64 for f64 slopes). Slopes: floating, one for each head.
CLUTCH_API ScoreMod alibi(const Tensor& slopes);
/// 2^(-8 (h + 1) / heads), f32.
CLUTCH_API Tensor alibi_slopes(std::int64_t heads, const Device& device = {}, const Stream& stream = {});
/// cap tanh(score / cap), for f32 within 2^-22 cap. The cap builds nothing.
/// Errors: invalid_argument unless 2^-126 <= cap <= 2^126.
CLUTCH_API ScoreMod softcap(double cap);
/// score + (q - kv).
CLUTCH_API ScoreMod relative_bias();
/// score + table[q - kv + (n - 1) / 2], n numbers for distances from -(n - 1) / 2 on, farther ones as the last;
/// of rank 2: table[h] is a head's.
CLUTCH_API ScoreMod relative_bias(const Tensor& table);

/// 1 / sqrt(E).
inline constexpr double kDefaultScale = std::numeric_limits<double>::quiet_NaN();

/// Sequences of several lengths in one call.
/// Indices: mods and masks see a sequence as a batch b, and its queries and keys from 0 on.
/// Tensors: i32, contiguous, read on the device.
/// Bad contents: numbers outside of what is said here are clamped; rows of q that belong to no sequence have undefined
///   results.
struct Varlen {
  /// (n + 1): sequence b's queries are rows cu_seq_q[b] to before cu_seq_q[b + 1] of q's only batch; undefined: q has
  /// n batches
  Tensor cu_seq_q = {};
  Tensor cu_seq_kv = {};   ///< the same of k and v
  Tensor seqused_kv = {};  ///< (n): so many keys of each sequence count; undefined: all
  /// (n, m): key i of sequence b is row page_table[b][i / page_size] * page_size + i % page_size of k's only batch;
  /// -1: no keys
  Tensor page_table = {};
  std::int64_t page_size = 0;
  /// Longest sequence; 0: all rows. Longer ones are cut off; larger numbers cost time. max_q is given with cu_seq_q
  /// alone, max_kv with cu_seq_kv or page_table
  std::int64_t max_q = 0, max_kv = 0;
};

struct FlexOptions {
  ScoreMod score_mod = {};
  MaskMod mask_mod = {};      ///< holds besides the block mask's own; looked at everywhere
  BlockMask block_mask = {};  ///< empty: all
  double scale = kDefaultScale;
  bool enable_gqa = false;  ///< query head h reads key head h / (Hq / Hkv)
  bool return_lse = false;
  bool return_max_scores = false;
  Varlen varlen = {};
  /// Probability p that a weight becomes 0; the other weights are multiplied by 1 / (1 - p).
  /// Order: after softmax; lse counts all weights.
  /// Words: weight (b, h, q, kv) uses word kv % 4 of Philox block ((b Hq + h) L + q) ceil(S / 4) + kv / 4, counted from
  ///   the generator's offset, and is dropped if word < p 2^32. The call advances the generator by B Hq L ceil(S / 4)
  ///   blocks.
  double dropout_p = 0;
  Generator generator = {};  ///< of dropout; empty: the device's default one
  bool skip_masked = false;  ///< a key with a weight of 0 counts for nothing, even NaN or infinity; a tenth slower
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
  /// Lets a device's matrix instructions make the products: a permission, as of linalg::matmul (flex()'s Numerics)
  linalg::Numerics numerics = linalg::Numerics::chain;
};

struct FlexResult {
  Tensor out;  ///< (B, Hq, L, Ev), of q's dtype
  Tensor lse;  ///< (B, Hq, L), f32 (f64 of f64): log(sum(exp(scores))), rounded once more; undefined unless asked for
  Tensor max_scores;          ///< the same of the largest score
  Tensor dropout_state = {};  ///< i64 (2): the seed and offset that dropout drew from, for the backward call
};

/// Computes softmax(score_mod(q k^T scale), where the masks hold) v.
/// Shapes: q (B, Hq, L, E), k (Bk, Hkv, S, E), v (Bk, Hkv, S, Ev), of any strides; Bk is B, or 1 where all batches
///   share keys; E is at least 1, all else may be 0. The result is contiguous.
/// Varlen: the results' batches and rows are q's. Block masks are of max_q and max_kv, or of all rows where these are
///   0 or more than that; their blocks' number of keys divides page_size.
/// Dtypes: f32, f16, bf16, f64, the same of all three; scores, weights and sums in f32 (f64 for f64), rounded once.
/// Memory: O(L); scores stay in registers and caches.
/// Launches: up to 8 queries go by parts of 512 keys, for many cores; a second launch combines the parts.
/// Empty rows: rows without any key are 0, their lse and largest score -inf.
/// NaN: masks come after the score mod, so NaN scores of masked keys do not count. NaN in a masked key's value counts,
///   times a weight of 0, unless all keys around it are masked, too, or skip_masked is set. NaN in a masked key may
///   count likewise in q's gradient.
/// Range: scores of any finite size, to the largest number of their dtype, if q scale and k scale are finite, too:
///   weights are made of differences to the row's largest score, exact where they count. Infinite or NaN scores of
///   unmasked keys make their row's out and lse NaN, -inf excepted, whose weight is 0; max_scores of such a row is
///   undefined.
/// Accuracy: f32 within 2e-6 of the exact result for unit-normal q, k and v at E = 64 without score mod, growing with
///   its root; a score mod's terms add eps max|score| times max|v|. Subnormal numbers may count as 0.
/// Numerics: `blocks` lets a device's matrix instructions make the forward pass of f16 and bf16, `tf32` that of f32,
///   too (q, k and v rounded to 11 significant bits), for more than 8 queries, E and Ev up to 128, without skip_masked.
///   Calls that force another implementation go without.
/// Matrix instructions: scores are f32 sums of products in an order of the instruction's own, times scale; q k^T has to
///   be finite. p = e^(score - largest so far) in f32 is rounded to the tensors' dtype (tf32: 11 bits), and its
///   products with values are summed in f32, as is the unrounded p, which lse has. The same call has the same bits on
///   the same device.
/// Accuracy of these: before it is stored a result is within (u + 2 d + 4 (S + 64) 2^-23) sum of w |v| of the exact
/// one,
///   for f16 S 2^-25 max|v| more; w the weights, u = 2^-8 for bf16, 2^-11 for f16, 2^-10 for tf32, d the largest error
///   of a score, 2 (E + 16) 2^-23 scale |q| |k| + 2^-22 |score|, for tf32 2^-10 scale |q| |k| more. lse is within d + 4
///   (S + 64) 2^-23 + 2^-22 |lse|.
/// Determinism: a sequence has the same bits alone and in a batch if the longest sequences of both have at most 8
///   queries, or both have more; with f16 or bf16 and at most 8 queries Hq / Hkv times the longest must be at most 8 in
///   both, too, or more in both. The same keys in another layout may have other bits: with blocks of a mask, in pages,
///   and for at most 8 queries with other strides of k and v. Pages of 512 keys change no bits, for more than 8 queries
///   pages of any multiple of 128.
/// Errors: invalid_shape; invalid_dtype; invalid_argument for heads that differ without enable_gqa, or whose counts do
///   not divide; for a block mask of other lengths; not_supported for long keys on a device whose loops end early;
///   device_mismatch.
/// Stream: never waits.
/// Source: torch.nn.attention.flex_attention.flex_attention of PyTorch 2.12.
CLUTCH_API FlexResult flex(const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options = {},
                           const Stream& stream = {});
/// Into the caller's tensors, of any strides but lse's and max_scores', which are contiguous; undefined ones are not
/// asked for.
CLUTCH_API void flex_out(const FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v,
                         const FlexOptions& options = {}, const Stream& stream = {});

struct FlexBackwardOptions {
  Tensor grad_lse = {};             ///< lse's gradient, (B, Hq, L); undefined: zero
  bool captured_gradients = false;  ///< what the score mod captured gets gradients, too
};
struct FlexGradients {
  Tensor q, k, v;  ///< like them, contiguous
  /// With captured_gradients: of the score mod's floating captured tensors, in the order of their first use
  std::vector<Tensor> captured = {};
};
/// Computes the gradients of flex() with the same tensors and options.
/// Inputs: `results` is what flex() returned, lse among it; max_scores may be undefined and has no gradient. `backward`
///   has the options that flex() lacks.
/// Shared keys: gradients of heads and batches that share keys are added.
/// Memory: O(L); scores are computed again.
/// Scratch: up to 4 compute units / (Bk Hkv) times q in f32 (f64).
/// Range: lse is enough for scores of any size. A tile of rows with one whose |lse| is 32 or more computes the rows'
///   sums again, in up to 0.4 of forward's time, and begins at max_scores if they are given.
/// Varlen: keys that seqused_kv leaves out have gradients of 0. Rows of q that belong to no sequence have undefined
///   gradients.
/// Captured tensors: they count as constants unless captured_gradients is set.
/// Captured sums: a captured tensor's gradient is summed in a fixed order over the dimensions that its indices do not
///   depend on; along diagonals where an index depends on q - kv; by places otherwise, which takes longest.
/// Captured scratch: scores are computed again for some rows of all heads at a time, in 64 MiB or what one row takes;
///   with varlen in tensors of all sequences, each as long as the longest one.
/// Captured dots: a dot of captured rows, which a loop in the lambda adds to the score as
///   qr[{b, h, q, d}] * kr[{b, kv, d}] for d = 0, 1, ..., is found if it has 4 products or more; it and its gradients
///   are products of matrices then.
/// Zero weights: a weight of 0 adds nothing to captured tensors' gradients, even where the score mod's derivative is
///   not a number.
/// Accuracy: f32 within 1e-5 of the exact gradient for unit-normal tensors at E = 64.
/// Numerics: as flex()'s; captured tensors' gradients are made without.
/// Matrix instructions: p = e^(score - lse) and ds, the gradient of a score, are f32 and rounded to the tensors' dtype
///   (tf32: 11 bits), ds of f16 overflows from 65520 on; their products with rows are summed in f32, in dq by keys, in
///   dk and dv by heads and batches that share keys, then by queries. Where |lse| is 32 or more rows' sums are made of
///   scores with the same rounding.
/// Sizes: with u and d as of flex(), w a weight, f what dropout leaves of 1, t = |grad| |v| of a query and a key, T =
///   sum of w f t of the query, m the score mod's derivative with what d changes of it, n terms in a sum, and
///   D = 2 d + (S + 256) 2^-21 + 2^-22 |lse|, at most 1.
/// Accuracy of these: where lse and out are flex()'s by the same numerics a gradient, before it is stored, is within
///   (u + 2 D + 2 (n + 16) 2^-23) sum of w f |grad| of the exact one of v,
///   (3 u + 4 D + 2 (n + Ev + 32) 2^-23) scale sum of |m| w (f t + T) |k| of that of q, and with |q| of that of k.
/// Accuracy in f16: n 2^-25 times the largest |grad|, scale |k| or scale |q| more.
/// Determinism: no atomics; every sum has a fixed order.
/// Errors: as flex(); invalid_argument without lse; not_supported with page_table.
/// Stream: never waits.
/// Source: PyTorch 2.12, which has it on all devices but CPUs.
CLUTCH_API FlexGradients flex_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                                       const FlexResult& results, const FlexOptions& options = {},
                                       const FlexBackwardOptions& backward = {}, const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes and any strides; an undefined one, or no list of captured
/// tensors' gradients, is not asked for. They may share memory with inputs.
CLUTCH_API void flex_backward_out(const FlexGradients& out, const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                  const Tensor& v, const FlexResult& results, const FlexOptions& options = {},
                                  const FlexBackwardOptions& backward = {}, const Stream& stream = {});

}}}  // namespace clutch::v0::attention
