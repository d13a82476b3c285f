// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/expr.hpp>
#include <clutch/stream.hpp>

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Most totals of a function of rows.
inline constexpr int kMostTotals = 4;

/// A function of rows. Each of its functions takes the inputs, then kMostTotals totals, of which earlier ones have values, then the length of a row.
struct RowsMeaning {
  DType accumulator = DType::f32;  ///< of totals
  std::vector<int> ops;            ///< of totals: Reduce as a number
  std::vector<ExprFunction> totals;
  ExprFunction elements, results;  ///< empty if there are none
  /// It is a reduction to one result by an accumulator that functions of rows do not have, so it has no elements and no other totals.
  bool reduces_alone = false;
};

/// A product of matrices, or a reduction of segments, of which each element is the first input of a function, as the op knows it.
struct ProductMeaning {
  DType dtype = DType::f32;  ///< of the elements
  int most_inputs = 0;       ///< of the function, besides the product
  bool builds_soon = false;  ///< a program with another function takes no seconds to build
  virtual ~ProductMeaning() = default;
};

/// What a launch computes, for graphs that fuse it with others. Its operands are those of the launch, in their order: elements, results, inputs, others that
/// are read at any place: captured tensors, or the operands of a product. Inputs and elements go together element by element, over `sizes`, to which inputs
/// broadcast. Results have one element for each row: for all of the dimensions `gone`.
struct Meaning {
  /// Another launch of the kind.
  struct Call {
    std::span<const Tensor> elements, results, inputs;
    const ExprFunction& function;  ///< of a pointwise launch: of the inputs; of a product: of it and the inputs
    const RowsMeaning& rows;       ///< of rows
    const Dims& dims;              ///< of rows: those that are gone
    const ProductMeaning* product;
    std::span<const Tensor> operands;  ///< of the product, as the launch has read them
    const Stream& stream;
  };
  /// Makes one launch, or it is an Error: not_supported or invalid_argument where one launch cannot do so.
  using Launch = void (*)(const Call& call);
  /// Launches that are none of these, but known by their operands and numbers.
  enum class Known : std::uint8_t {
    function,  ///< none of them
    fill,      ///< a contiguous tensor's bytes become a pattern of 16 bytes, the second number
    copy,      ///< of elements as they are, over the first tensor's sizes
    choose,    ///< kernels/control.cl
    begin,
    next,
  };

  Known known = Known::function;
  bool predicated = false;  ///< one more operand is in front, a u32: the launch does nothing where that is 0
  int elements = 0, results = 0, inputs = 0;
  Dims sizes;
  std::array<bool, kMaxRank> gone{};
  ExprFunction function;                          ///< with the values of its params; its captured tensors are undefined. Empty for rows.
  std::shared_ptr<const RowsMeaning> rows;        ///< null if it computes no rows
  std::shared_ptr<const ProductMeaning> product;  ///< null if it computes no product
  int most_tensors = 16;                          ///< of a launch of the kind
  Launch launch = nullptr;
};

/// Made once for each.
std::shared_ptr<const Meaning> meaning_of(Meaning::Known known);

}}}  // namespace clutch::v0::detail
