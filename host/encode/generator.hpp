// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/random.hpp>
#include <clutch/tensor.hpp>

#include "encode/host_values.hpp"

#include <memory>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;
class Kernel;

/// Seed and offset of a Generator in device memory: two 64-bit words.
class GeneratorImpl {
 public:
  /// The state begins undefined.
  GeneratorImpl(Runtime& runtime, const Stream& stream);
  Runtime& runtime() const noexcept { return runtime_; }
  /// i64 tensor of 2 elements: seed, offset.
  const Tensor& state() const noexcept { return state_; }
  void set(const GeneratorState& state, const Stream& stream, const char* op);
  /// Sets the state once, before all later work of the stream or all runs of its recording, which never sets it. Not thread-safe.
  void set_once(const GeneratorState& state, const Stream& stream, const char* op);
  /// Adds `blocks` (Philox blocks) to the offset, in stream order.
  void advance(std::uint64_t blocks, const Stream& stream, const char* op);

 private:
  Runtime& runtime_;
  Tensor state_;
  Cached<bool> set_;
};

/// Adds `blocks` to the offset of a generator's state, in stream order.
void advance_generator(Runtime& runtime, const Tensor& state, std::uint64_t blocks, const Stream& stream, const char* op);

}}}  // namespace clutch::v0::detail
