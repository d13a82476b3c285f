// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>
#include <clutch/ops/optim.hpp>

#include "encode/host_values.hpp"
#include "ops/optim/group.hpp"

#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// All gradients of a call, cut into chunks. Those of the next call may be set into it: what depends on sizes alone is made once.
class GradientList {
 public:
  /// Undefined ones are left out. Errors: invalid_argument for none, invalid_dtype, invalid_shape, device_mismatch.
  void set(std::span<const Tensor> grads, const char* op);
  Runtime& runtime() const { return *runtime_; }

  /// Where `scales` the gradients are multiplied by the factor besides. Errors: invalid_argument for max_norm, invalid_overlap.
  optim::GradNorm norm(double max_norm, const optim::ClipOptions& options, bool scales, const Stream& stream, const char* op);
  /// `found` becomes 1 where one is not finite; with a scale all are multiplied by its inverse. Errors: invalid_overlap.
  void check(const Tensor& found, const Tensor& scale, const Stream& stream, const char* op);

 private:
  void place(const Stream& stream);
  template <class Bind>
  void each_part(Encoder& encoder, TensorTable& table, const BuiltPlan& plan, Bind bind);

  Runtime* runtime_ = nullptr;
  DType dtype_ = DType::f32;
  std::vector<const Tensor*> entries_;
  StepMemory memory_;
  std::vector<std::int64_t> sizes_;
  OptimChunks chunks_;
  std::vector<std::size_t> ends_;  ///< of the launches' gradients
  /// In device memory, of these sizes: they themselves, and chunks as OptimChunks::pairs.
  struct Placed {
    Tensor sizes, chunks;
  };
  Cached<Placed> cached_;
  Placed placed_;  ///< of this call
  TensorTable read_{{{.access = Argument::Kind::input}}}, written_{{{.access = Argument::Kind::inout}}};
};

}}}  // namespace clutch::v0::detail
