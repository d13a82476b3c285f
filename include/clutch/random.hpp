// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/stream.hpp>

#include <cstdint>
#include <memory>

namespace clutch { inline namespace v0 {

class Tensor;
namespace detail {
class GeneratorImpl;
}

/// State that a Generator's numbers depend on: a seed, and how many blocks of four 32-bit words were drawn.
struct GeneratorState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

/// A source of random numbers: Philox 4x32-10 with its seed and offset in device memory, so that a captured graph draws
/// new numbers at each replay. A cheap handle; copies share the state. Draws on one stream are in its order; use on
/// several streams needs events between, as with any tensor.
/// Determinism: equal seed, offset and call give equal bits on every device.
/// Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
class CLUTCH_API Generator {
 public:
  /// PyTorch's default seed.
  static constexpr std::uint64_t kDefaultSeed = 67280421310721ull;

  /// Empty: functions that take it use the device's default generator.
  Generator() = default;
  /// A generator of its own on `device` (empty: the current one). Errors: no_device, out_of_memory.
  explicit Generator(const Device& device, std::uint64_t seed = kDefaultSeed, const Stream& stream = {});

  bool empty() const noexcept { return impl_ == nullptr; }
  Device device() const;
  /// Starts anew from a seed, at offset 0. Never waits.
  void manual_seed(std::uint64_t seed, const Stream& stream = {}) const;
  /// Sets seed and offset. Never waits.
  void set_state(const GeneratorState& state, const Stream& stream = {}) const;
  /// Reads seed and offset back. Waits.
  GeneratorState state(const Stream& stream = {}) const;

  /// Seed and offset on the device, i64 of two elements, which every draw reads and advances: what a caller's kernel
  /// draws from.
  const Tensor& state_tensor() const;

  const std::shared_ptr<detail::GeneratorImpl>& impl() const noexcept { return impl_; }
  explicit Generator(std::shared_ptr<detail::GeneratorImpl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<detail::GeneratorImpl> impl_;
};

/// The default generator of the stream's context (empty stream: the device's current one). Made at its first use, with
/// kDefaultSeed.
CLUTCH_API Generator default_generator(const Device& device = {}, const Stream& stream = {});
/// Seeds the device's default generator. Never waits.
CLUTCH_API void manual_seed(std::uint64_t seed, const Device& device = {}, const Stream& stream = {});

}}  // namespace clutch::v0
