// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <string>

namespace clutch { inline namespace v0 {

struct SelectiveScanOptions {
  Tensor skip = {};                 ///< (channels): x times it is added to y
  Tensor gate = {};                 ///< x's shape and dtype: y is multiplied by gate / (1 + e^-gate)
  Tensor delta_bias = {};           ///< (channels): added to delta
  bool delta_softplus = false;      ///< steps are log(1 + e^delta), delta itself above 20
  Tensor initial_state = {};        ///< (batch, channels, states); undefined: zeros
  std::string implementation = {};  ///< forces a plan by name; empty: the first that accepts
};
struct SelectiveScanResult {
  Tensor y;
  Tensor state;  ///< (batch, channels, states) f32, after the last element
};

/// A state space whose parameters come from the sequence, as Mamba has one for each channel. From one element of the
/// sequence to the next, for each state n, with step the delta with its bias and softplus:
///   h[n] = e^(step a[n]) h[n] + step x b[n],   y = sum of h[n] c[n] over n, + skip x, all times the gate
/// Shapes: x, delta (batch, length, channels); a (channels, states); b, c (batch, length, states), shared by all
///   channels; at least 1 and at most 256 states. y has x's shape.
/// Dtypes: x, delta and gate f32 f16 bf16, all alike, and y's; b and c f32 f16 bf16; a, skip, delta_bias and states
/// f32.
///   Computed in f32, rounded once.
/// In place: y may be x, delta or gate, element for element; other results share no memory with inputs.
/// Determinism: bit-equal on every device and for every layout. The length is gone through in order; sums over states
///   are chains of fma from the first to the last.
/// Accuracy: a state's error relative to the same recurrence on |b x| is at most (2 |step a| + 6) eps for each element
///   that it has seen, while e^(step a) <= 1; y adds (states + 4) eps of the sum of |h c|; eps is 2^-24.
/// Scratch: copies of b and c, unless they are f32 rows of a multiple of 16 states at addresses that are multiples of
///   16 bytes; of x, delta, gate and y, unless channels have stride 1.
/// Parallel: over batch and channels alone.
/// Errors: invalid_shape, invalid_dtype, device_mismatch, invalid_overlap; invalid_argument for an undefined tensor or
///   an implementation; not_supported for a length that the device's loops do not reach.
/// Stream: never waits.
/// Source: Gu and Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, 2023.
CLUTCH_API SelectiveScanResult selective_scan(const Tensor& x, const Tensor& delta, const Tensor& a, const Tensor& b,
                                              const Tensor& c, const SelectiveScanOptions& options = {},
                                              const Stream& stream = {});
/// Into the caller's tensors; an undefined state is not asked for.
CLUTCH_API void selective_scan_out(const SelectiveScanResult& out, const Tensor& x, const Tensor& delta,
                                   const Tensor& a, const Tensor& b, const Tensor& c,
                                   const SelectiveScanOptions& options = {}, const Stream& stream = {});

struct SelectiveScanGradients {
  Tensor x, delta, a, b, c;                      ///< of their tensor's shape and dtype
  Tensor skip, gate, delta_bias, initial_state;  ///< undefined where the option was
};
/// Gradients of selective_scan. `grad` has those of y and of the last state, which may be undefined: zeros.
/// States are computed again: nothing is kept between the two calls.
/// Determinism: as selective_scan. Those of b and c are sums of 16 channels one after another, and of these by sum();
///   those of a, skip and delta_bias go from the last element to the first, then over the batch by sum().
/// Accuracy: within 2^-15 of the largest of its tensor, and the store's rounding, for numbers of about 1, steps below 1
///   and up to 256 elements.
/// Scratch: states of every eighth element or more; of b and c two numbers for each state and 16 channels.
/// Errors: as selective_scan; invalid_argument for a gradient of an option that was not given.
CLUTCH_API SelectiveScanGradients selective_scan_backward(const SelectiveScanResult& grad, const Tensor& x,
                                                          const Tensor& delta, const Tensor& a, const Tensor& b,
                                                          const Tensor& c, const SelectiveScanOptions& options = {},
                                                          const Stream& stream = {});
/// Into the caller's tensors, of these shapes and dtypes; an undefined one is not asked for. They may share memory with
/// inputs.
CLUTCH_API void selective_scan_backward_out(const SelectiveScanGradients& out, const SelectiveScanResult& grad,
                                            const Tensor& x, const Tensor& delta, const Tensor& a, const Tensor& b,
                                            const Tensor& c, const SelectiveScanOptions& options = {},
                                            const Stream& stream = {});

}}  // namespace clutch::v0
