// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>
#include <clutch/ops/optim.hpp>

#include "encode/host_values.hpp"
#include "ops/optim/group.hpp"

#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// All gradients of a call, cut into chunks. May be reused for the next call; data that depends on sizes alone is then kept.
class GradientList {
 public:
  /// Sets the gradients; undefined ones are skipped. Errors: invalid_argument if none is defined, invalid_dtype, invalid_shape, device_mismatch.
  void set(std::span<const Tensor> grads, const char* op);
  Runtime& runtime() const { return *runtime_; }

  /// Computes the norm, and if `scales` multiplies the gradients by the clipping factor. Errors: invalid_argument for max_norm, invalid_overlap.
  optim::GradNorm norm(double max_norm, const optim::ClipOptions& options, bool scales, const Stream& stream, const char* op);
  /// Computes the norm of each gradient of the call, 0 of undefined ones. Errors: invalid_overlap.
  Tensor norms(const optim::ClipOptions& options, const Stream& stream, const char* op);
  /// Sets `found` to 1 if any gradient is not finite. If `scale` is defined, multiplies all gradients by its inverse. Errors: invalid_overlap.
  void check(const Tensor& found, const Tensor& scale, const Stream& stream, const char* op);

 private:
  void place(const Stream& stream);
  /// Work of a launch for each element.
  struct Work {
    double flops;
    int passes;  ///< 1: reads it; 2: writes it, too
  };
  template <class BindOutput, class BindInput>
  void each_part(Encoder& encoder, TensorTable& table, const BuiltPlan& plan, Work of_element, BindOutput bind_output, BindInput bind_input);

  /// What the elements of chunks add up to.
  void of_chunks(Encoder& encoder, TensorTable& table, optim::NormType type, const Tensor& partial);

  Runtime* runtime_ = nullptr;
  DType dtype_ = DType::f32;
  std::vector<const Tensor*> entries_;
  StepMemory memory_;
  std::size_t given_ = 0;             ///< gradients of the call, undefined ones among them
  std::vector<std::size_t> numbers_;  ///< places of the defined ones among them
  std::vector<std::int64_t> sizes_;
  OptimChunks chunks_;
  std::vector<std::size_t> ends_;  ///< end of each launch's gradients
  /// In device memory: sizes of the gradients, and chunks as OptimChunks::pairs. Both depend on the sizes alone.
  struct Placed {
    Tensor sizes, chunks;
  };
  Cached<Placed> cached_;
  Placed placed_;  ///< of this call
  TensorTable read_{{{.access = Argument::Kind::input}}}, written_{{{.access = Argument::Kind::inout}}};
};

}}}  // namespace clutch::v0::detail
