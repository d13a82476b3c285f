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
/// Restores a generator's state at the end of its scope, so that draws within it change none behind it; guards nest.
/// Streams: the state is read and set in the order of the stream, which draws within the scope must be in, too.
/// Waits: the constructor, as Generator::state(). The destructor does not; what fails then shows on the stream.
/// Errors: those of Generator::state().
/// Source: torch.random.fork_rng (PyTorch 2.12).
class CLUTCH_API GeneratorGuard {
 public:
  /// An empty Generator is the stream's default one: default_generator({}, stream).
  explicit GeneratorGuard(const Generator& generator = {}, const Stream& stream = {});
  ~GeneratorGuard();
  GeneratorGuard(const GeneratorGuard&) = delete;
  GeneratorGuard& operator=(const GeneratorGuard&) = delete;

 private:
  Generator generator_;
  Stream stream_;
  GeneratorState state_;
};

/// Seeds the device's default generator. Never waits.
CLUTCH_API void manual_seed(std::uint64_t seed, const Device& device = {}, const Stream& stream = {});

}}  // namespace clutch::v0
