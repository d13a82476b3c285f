// SPDX-License-Identifier: Apache-2.0
#include "runtime/generator.hpp"

#include "runtime/device.hpp"
#include "runtime/error.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Utils.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <c10/core/GeneratorImpl.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>

namespace torch_clutch {
namespace {

constexpr std::uint64_t kWords = 4;  // of a block

class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  GeneratorImpl(c10::DeviceIndex index, clutch::Generator generator)
      : c10::GeneratorImpl(c10::Device(kDevice, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), generator_(std::move(generator)) {}
  static c10::DeviceType device_type() { return kDevice; }
  const clutch::Generator& generator() const { return generator_; }

  void set_current_seed(uint64_t seed) override {
    translated([&] { generator_.manual_seed(seed); });
  }
  uint64_t current_seed() const override { return state().seed; }
  uint64_t seed() override {
    const uint64_t made = c10::detail::getNonDeterministicRandom(true);
    set_current_seed(made);
    return made;
  }
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(offset % kWords == 0, "offset must be a multiple of 4");
    set({.seed = state().seed, .offset = offset / kWords});
  }
  uint64_t get_offset() const override { return state().offset * kWords; }

  void set_state(const c10::TensorImpl& bytes) override {
    at::detail::check_rng_state(bytes);
    std::array<uint64_t, 2> words{};
    TORCH_CHECK_TYPE(bytes.numel() == static_cast<int64_t>(sizeof words), "RNG state is wrong size");
    std::memcpy(words.data(), bytes.data(), sizeof words);
    set({.seed = words[0], .offset = words[1] / kWords});
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const clutch::GeneratorState now = state();
    const std::array<uint64_t, 2> words{now.seed, now.offset * kWords};
    at::Tensor bytes = at::empty({static_cast<int64_t>(sizeof words)}, at::TensorOptions(at::kByte).device(at::kCPU));
    std::memcpy(bytes.mutable_data_ptr(), words.data(), sizeof words);
    return bytes.getIntrusivePtr();
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override {
    const auto* of = dynamic_cast<const GeneratorImpl*>(other.get());
    TORCH_CHECK(of != nullptr, "clutch: a generator's state is taken of a generator of clutch");
    generator_ = of->generator_;
  }
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override { return c10::make_intrusive<GeneratorImpl>(device_.index(), generator_); }
  GeneratorImpl* clone_impl() const override {
    return translated([&] {
      clutch::Generator made(torch_clutch::device(device_.index()));
      made.set_state(state());
      return new GeneratorImpl(device_.index(), made);
    });
  }

 private:
  clutch::GeneratorState state() const {
    return translated([&] { return generator_.state(); });
  }
  void set(const clutch::GeneratorState& to) {
    translated([&] { generator_.set_state(to); });
  }
  clutch::Generator generator_;
};

}  // namespace

namespace {

struct Defaults {
  std::mutex mutex;
  std::map<c10::DeviceIndex, at::Generator> all;
  std::optional<std::uint64_t> seed;  // of those that are made later
};
Defaults& defaults() {
  static auto* made = new Defaults;
  return *made;
}

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex index) {
  index = or_current(index);
  const clutch::Device& of = device(index);
  std::lock_guard lock(defaults().mutex);
  at::Generator& found = defaults().all[index];
  if (!found.defined()) {
    found = translated([&] { return at::make_generator<GeneratorImpl>(index, clutch::default_generator(of, clutch::default_stream(of))); });
    if (defaults().seed) found.set_current_seed(*defaults().seed);
  }
  return found;
}

void seed_default_generators(std::uint64_t seed) {
  std::lock_guard lock(defaults().mutex);
  defaults().seed = seed;
  for (auto& [index, generator] : defaults().all)
    if (generator.defined()) generator.set_current_seed(seed);
}

at::Generator new_generator(c10::DeviceIndex index) {
  index = or_current(index);
  return translated([&] { return at::make_generator<GeneratorImpl>(index, clutch::Generator(device(index))); });
}

clutch::Generator generator_of(const std::optional<at::Generator>& given, c10::DeviceIndex index) {
  const at::Generator& used = given.has_value() && given->defined() ? *given : default_generator(index);
  TORCH_CHECK(used.device().type() == kDevice, "Expected a '", c10::DeviceTypeName(kDevice, true), "' device type for generator but found '",
              used.device().type(), "'");
  return static_cast<GeneratorImpl*>(used.unsafeGetGeneratorImpl())->generator();
}

at::Generator host_generator(const std::optional<at::Generator>& given, c10::DeviceIndex index) {
  const clutch::Generator generator = generator_of(given, index);
  const std::uint64_t seed = translated([&] {
    constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15u;  // of SplitMix64: neighbouring states give seeds far apart
    const clutch::GeneratorState now = generator.state();
    generator.set_state({.seed = now.seed, .offset = now.offset + 1});
    return (now.seed ^ now.offset * kMix) * kMix;
  });
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

}  // namespace torch_clutch
