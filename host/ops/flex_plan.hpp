// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/flex.hpp>

#include "encode/matrix_instructions.hpp"
#include "encode/plan.hpp"
#include "ops/traced.hpp"

#include <array>
#include <functional>

namespace clutch { inline namespace v0 { namespace detail {

/// Purpose of a kernel. combine: combines the parts of flex_split and flex_tiles_split; assign: writes rows of a PagedCache; dropout: factors of weights; sums:
/// row sums for backward; backward: gradients, of queries alone if `keys` computes those of keys and values.
enum class FlexPart : std::uint8_t { forward, combine, assign, dropout, sums, backward, keys };

/// Inputs of the selection of flex; also the key of its cached plans.
struct FlexProblem {
  std::uint64_t score = 0, mask = 0;  ///< ExprBody::id of the mods; 0: none
  DType dtype = DType::f32;
  std::uint8_t size_class = 0;  ///< class in kFlexClasses by the longer of a key and a value; past the last if none fits
  SeenTypes types;
  bool direct = false;  ///< elements of keys and of values have stride 1, and values have whole vectors
  FlexPart part = FlexPart::forward;
  bool few = false;     ///< at most kFewQueries queries
  bool joint = false;   ///< all queries of all heads of a batch visit the same blocks
  bool ragged = false;  ///< sequences of several lengths
  bool skip_masked = false, dropout = false;
  std::uint8_t numbers = 0;                     ///< flex_matrix: what its instructions multiply, MATMUL_NUMBERS_...; 0: the call does not allow them
  MatrixLayout layout = MatrixLayout::none;     ///< of the device's instructions for them
  bool stand_in = false;                        ///< plain code stands in for them
  std::uint8_t key_parts = 0, value_parts = 0;  ///< parts of FLEX_MATRIX_ELEMENTS elements of a key and of a value
  std::uint8_t halvings = 0;                    ///< times that the largest tile of queries is halved
  bool wide_tasks = false;                      ///< there may be 2^32 tasks, or rows of a block or of a page
  std::uint8_t unused[6] = {};
};

/// Class of rows of up to `most` elements: vectors of queries of a tile, and keys of a block. With vectors of 16 floats, a work-item of flex_lanes holds
/// queries and results of a tile (2 x 48 KiB at 64 elements, 2 x 96 KiB at 128 to 512, 2 x 192 KiB at 1024) and a block of keys and values (2 x 40 KiB to 2 x
/// 72 KiB, if they are loaded), which fit into a core's L2 cache; `scripts/bench --filter '^flex/'` measures them.
struct FlexClass {
  int most, tile_vectors, keys;
};
inline constexpr std::array<FlexClass, 5> kFlexClasses{{{64, 12, 128}, {128, 12, 128}, {256, 6, 64}, {512, 3, 32}, {1024, 3, 16}}};

/// Elements of a result that an item of flex_items computes before it recomputes scores: 16, or where loops end early the whole row, at most 128.
inline std::int64_t flex_chunk(const DeviceTraits& traits, std::uint8_t size_class) {
  return traits.quirks & kQuirkLoopsEndEarly ? std::min<std::int64_t>(kFlexClasses[std::min<std::size_t>(size_class, kFlexClasses.size() - 1)].most, 128) : 16;
}

/// Elements of a result that an item of flex_combine takes if neighbours read side by side.
inline constexpr std::int64_t kPieceElements = 1;
/// True if they do, on devices whose groups have several items; else an item takes a line.
inline bool combines_by_pieces(const DeviceTraits& traits) { return row_tuning(traits).local > 1; }

/// Floating-point operations of matrix products that take, or make, each score from rows of so many elements; masked scores count.
constexpr double flex_flops(double scores, std::int64_t elements) { return 2 * scores * static_cast<double>(elements); }

inline constexpr std::int64_t kFewQueries = 8;
/// Most rows of queries that read 16-bit keys from the tensors. More rows share keys that are widened once.
inline constexpr std::int64_t kDirectRows = 8;

/// Errors: invalid_shape, invalid_dtype.
inline void check_is(const Tensor& t, const Dims& sizes, DType dtype, std::string_view what, std::string_view op) {
  if (!(t.sizes() == sizes))
    throw Error(ErrorCode::invalid_shape, op, fmt::format("{} must have the shape {}, got {}", what, to_string(sizes), to_string(t.sizes())));
  if (t.dtype() != dtype) throw Error(ErrorCode::invalid_dtype, op, fmt::format("{} must be {}, got {}", what, name(dtype), name(t.dtype())));
}

/// Errors: as flex() for these arguments.
void check_flex(const Tensor& q, const Tensor& k, const Tensor& v, const attention::FlexOptions& options);

/// Binds a factor by name, in the compute type of `dtype`.
void bind_scale(Encoder& encoder, DType dtype, double scale, const char* name);

/// Dropout of one call, for weights (batch, heads, q_len, kv_len). `state`: seed and offset of the generator, undefined if p is 0.
struct FlexDropout {
  double p = 0;
  Tensor state = {};
  std::int64_t batch = 0, heads = 0, q_len = 0, kv_len = 0;
};
/// Copies the generator's state (empty: of the device's default one) to `to`, or a new tensor. Advances the generator past the call's words.
FlexDropout draw_dropout(double p, const Generator& generator, const Tensor& to, const Dims& scores, const Stream& stream);
/// A weight is dropped if its random word is below this number.
std::uint32_t dropout_below(double p);
/// Binds the operands of dropout: the generator's state, and `kept`, the factor of weights that are kept.
void bind_dropout(Encoder& encoder, const FlexDropout& dropout, DType dtype);
/// The factors, 0 or 1 / (1 - p), of the weights of queries begin to end - 1: (batch, heads, end - begin, kv_len), f32 or f64.
Tensor dropout_factors(const FlexDropout& dropout, DType dtype, std::int64_t begin, std::int64_t end, const Stream& stream);

/// The backends that attention::SdpaBackends enables on this thread, in order; 255: none.
std::array<std::uint8_t, 2> sdpa_backends();

/// A call for which gradients of the score mod's captured tensors are wanted.
struct CapturedCall {
  const ExprFunction& score;
  std::function<Expr(const Expr& b, const Expr& h, const Expr& q, const Expr& kv)> allowed;
  Tensor q, k, v, grad;  ///< q and grad (B, Hq, L, *), k and v (B or 1, Hkv, S, *)
  Tensor grad_lse = {};  ///< (B, Hq, L); undefined: 0
  double scale = 1;
  DType sums = DType::f32;
  FlexDropout dropout = {};
};
/// Gradients of the floating captured tensors, in the order of captured_tensor().
std::vector<Tensor> captured_gradients(const CapturedCall& call, const Stream& stream);

/// Pure function; the caller adds the printed mods to the plan. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const FlexProblem& problem, std::string_view forced = {});

}}}  // namespace clutch::v0::detail
