// SPDX-License-Identifier: Apache-2.0
// Generators of random numbers. PyTorch counts single words, clutch blocks of four of them: PyTorch's offset is four times clutch's.
#pragma once
#include <ATen/core/Generator.h>
#include <clutch/random.hpp>

#include <optional>

namespace torch_clutch {

const at::Generator& default_generator(c10::DeviceIndex index);
/// Seeds the default generators of all devices, also of those that are made later: no device is looked for.
void seed_default_generators(std::uint64_t seed);
at::Generator new_generator(c10::DeviceIndex index);
/// The one that an op draws from: the given one, else the device's default one. Errors: RuntimeError for a generator of another kind of device.
clutch::Generator generator_of(const std::optional<at::Generator>& given, c10::DeviceIndex index);
/// A generator of the CPU, seeded by a draw: for kernels that run there. Waits.
at::Generator host_generator(const std::optional<at::Generator>& given, c10::DeviceIndex index);

}  // namespace torch_clutch
