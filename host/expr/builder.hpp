// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "expr/node.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <unordered_map>

namespace clutch { inline namespace v0 { namespace detail {

/// Collects simplified steps, equal ones once, and makes canonical functions of them.
class ExprBuilder {
 public:
  explicit ExprBuilder(std::span<const DType> inputs) : inputs_(inputs.begin(), inputs.end()) {
    for (int i = 0; i < input_count(); ++i) {
      DType dtype = input_dtype(i);
      if (compute_dtype(dtype, "ExprFunction") != dtype)
        throw Error(ErrorCode::invalid_dtype, "ExprFunction", fmt::format("an input must be f32, f64, i32, i64 or boolean, got {}", name(dtype)));
      add({.op = ExprOp::input, .dtype = dtype, .index = i});
    }
  }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  DType input_dtype(int i) const { return inputs_[static_cast<std::size_t>(i)]; }
  const ExprStep& step(int i) const { return steps_[static_cast<std::size_t>(i)]; }

  /// Index of the step, or of an earlier step that gives the same bits.
  int add(ExprStep step);
  int param(const void* identity, DType dtype, double value);
  int buffer(const ExprBody::Buffer& shape, const Tensor& tensor);
  /// State of the default generator, one for all draws.
  int default_generator();
  /// Params and buffers of functions made from text, which have neither a value nor a tensor.
  int blank_param(DType dtype) {
    params_.push_back({nullptr, dtype, 0});
    return static_cast<int>(params_.size()) - 1;
  }
  int blank_buffer(const ExprBody::Buffer& shape) {
    buffers_.push_back({shape, {}, false});
    return static_cast<int>(buffers_.size()) - 1;
  }
  std::shared_ptr<const ExprBody> finish(const std::vector<int>& outputs);

 private:
  bool is_constant(int step, double value) const;
  int simplified(const ExprStep& step) const;

  struct Param {
    const void* identity;
    DType dtype;
    double value;
  };
  struct Buffer {
    ExprBody::Buffer shape;
    Tensor tensor;
    bool default_generator = false;
  };
  std::vector<DType> inputs_;
  std::vector<ExprStep> steps_;
  std::vector<Param> params_;
  std::vector<Buffer> buffers_;
  std::unordered_map<std::uint64_t, std::vector<int>> known_;  // indices of steps by hash
};

}}}  // namespace clutch::v0::detail
