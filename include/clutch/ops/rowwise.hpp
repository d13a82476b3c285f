// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/reduce.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 {

/// The row that a lambda of rowwise() works on: makes totals of values of its elements. At most 4 totals; a value may
/// use earlier ones. Integers and booleans are made f32 before.
class CLUTCH_API Row {
 public:
  Expr sum(const Expr& x) { return total(Reduce::sum, x); }
  Expr mean(const Expr& x) { return total(Reduce::sum, x) / size(); }
  Expr prod(const Expr& x) { return total(Reduce::prod, x); }
  Expr min(const Expr& x) { return total(Reduce::amin, x); }
  Expr max(const Expr& x) { return total(Reduce::amax, x); }
  /// How many elements a row has.
  Expr size() const;
  /// Makes an output of one element a row, of totals and of inputs that have one element a row (of others, the first
  /// counts).
  void result(const Expr& x) { results_.push_back(x); }

  explicit Row(std::span<const DType> inputs);

 private:
  friend class RowFunction;
  Expr total(Reduce op, const Expr& x);
  std::vector<DType> inputs_;
  DType accumulator_ = DType::f32;
  std::vector<Reduce> ops_;
  std::vector<Expr> values_, results_;
};

namespace detail {
struct RowBody;
}

/// A traced function of rows. A value; cheap to copy.
class CLUTCH_API RowFunction {
 public:
  RowFunction() = default;
  /// Errors: invalid_argument for no or more than 4 totals, no outputs, positions or captured tensors.
  RowFunction(const Row& row, std::span<const Expr> elements);
  bool empty() const noexcept { return body_ == nullptr; }
  int input_count() const noexcept;
  /// Outputs with a row's elements, and outputs with one element a row.
  int element_count() const noexcept;
  int result_count() const noexcept;
  /// Values of the params, in the order of the text. A parsed function has zeros.
  int param_count() const noexcept;
  double param_value(int i) const;
  RowFunction with_params(std::span<const double> values) const;

  /// All but the values of params: "rows f32 f32\n", then "total amax\n" (sum, prod, amin, amax) for each total,
  /// "elements\n" and "results\n", each before the text of an ExprFunction. Inputs of that are the row's inputs, 4
  /// totals, of which a total uses earlier ones, and the row's length. parse(text()) has the same text.
  std::string text() const;
  /// Errors: invalid_argument that says what must be.
  static RowFunction parse(std::string_view text);
  const std::shared_ptr<const detail::RowBody>& body() const noexcept { return body_; }

 private:
  explicit RowFunction(std::shared_ptr<const detail::RowBody> body) noexcept : body_(std::move(body)) {}
  std::shared_ptr<const detail::RowBody> body_;
};

/// Calls `f(Row&, Expr...)` once; it returns an Expr, a tuple or array of them, or nothing if it made results alone.
template <std::size_t kInputs, class F>
RowFunction trace_rows(F&& f, const std::array<DType, kInputs>& inputs) {
  Row row(inputs);
  return [&]<std::size_t... kI>(std::index_sequence<kI...>) {
    if constexpr (std::is_void_v<decltype(f(row, detail::expr_input(static_cast<int>(kI), inputs[kI])...))>) {
      f(row, detail::expr_input(static_cast<int>(kI), inputs[kI])...);
      return RowFunction(row, {});
    } else {
      std::vector<Expr> elements =
          detail::traced_outputs(f(row, detail::expr_input(static_cast<int>(kI), inputs[kI])...));
      return RowFunction(row, elements);
    }
  }
  (std::make_index_sequence<kInputs>());
}

struct RowwiseOptions {
  Dims dims = {-1};  ///< that make a row, negative ones from the end
  /// Dtypes of the outputs, one each; empty: map_dtype()'s rule for elements, the accumulator's dtype for results
  DTypeList dtype = {};
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};

/// Computes totals over each row and elements made of them, in one launch (a few long rows: one for each total and one
/// for the elements), as in rowwise([](Row& row, Expr x) { Expr e = exp(x - row.max(x)); return e / row.sum(e); }, {x})
/// Shapes: the inputs broadcast; element outputs have that shape, results have it with size 1 in `dims`. Elements
///   first, then results. At most 12 tensors in all. Inputs of rank 0 are one row of one element, with dims 0 or -1.
/// Dtypes: as map's; totals accumulate in f32, in f64 if an input is f64.
/// In place: an element output may be an input that has its dtype, element for element.
/// Determinism: bit-equal on every device and for every layout; totals are added in reduce()'s order.
/// Scratch: none, but where a row's elements do not have one stride, or on CPUs another than 1: then those tensors are
///   copied; and reduce()'s for a few long rows.
/// Empty: rows of nothing have no elements; their totals, of which results are made, are 0 for sums, 1 for products,
///   NaN for means.
/// Errors: invalid_shape, invalid_dtype, device_mismatch, invalid_overlap; invalid_argument for dims, counts, results
///   of rows of nothing where a total is a min or max; not_supported for f64 without fp64 or an implementation that
///   refuses.
/// Stream: never waits.
CLUTCH_API std::vector<Tensor> rowwise(const RowFunction& function, std::span<const Tensor> inputs,
                                       const RowwiseOptions& options = {}, const Stream& stream = {});
CLUTCH_API void rowwise_out(std::span<const Tensor> outputs, const RowFunction& function,
                            std::span<const Tensor> inputs, const RowwiseOptions& options = {},
                            const Stream& stream = {});
template <class F, std::size_t kInputs>
requires(!std::is_same_v<std::remove_cvref_t<F>, RowFunction>) std::vector<Tensor> rowwise(
    F&& f, const Tensor (&inputs)[kInputs], const RowwiseOptions& options = {}, const Stream& stream = {}) {
  std::array<DType, kInputs> dtypes;
  std::vector<DType> traced = traced_dtypes(inputs, "rowwise");
  for (std::size_t i = 0; i < kInputs; ++i) dtypes[i] = traced[i];
  return rowwise(trace_rows(f, dtypes), std::span<const Tensor>(inputs), options, stream);
}

}}  // namespace clutch::v0
