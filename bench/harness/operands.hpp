// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operands of rows, on devices and, for peers, on the host.
#include <clutch/clutch.hpp>

#include "support/host_model.hpp"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <vector>

namespace clutch::bench {

/// Numbers of any of the types; i8 from -127 to 127.
inline Tensor numbers(const Dims& sizes, DType dtype, const Device& device, std::uint64_t seed) {
  if (is_floating(dtype) && bits(dtype) > 8) return randn(sizes, {.dtype = dtype, .device = device, .seed = seed});
  if (is_floating(dtype)) return randn(sizes, {.device = device, .seed = seed}).to(dtype);
  Tensor x = rand(sizes, {.device = device, .seed = seed});
  return map([](Expr v) { return cast(floor(v * 255.0f) - 127.0f, DType::i8); }, x);
}

/// The dtype of a name that rows and shapes have.
inline DType dtype_named(std::string_view word) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i16, DType::i32, DType::i64, DType::c64, DType::c128})
    if (name(dtype) == word) return dtype;
  throw Error(ErrorCode::internal, "clutch-bench", fmt::format("a shape's dtype must be known, got {}", word));
}

using HostNumbers = std::shared_ptr<std::vector<float>>;
/// From -1 to 1.
inline HostNumbers host_numbers(std::int64_t count) {
  auto v = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count));
  model::Random random(7);
  for (float& x : *v) x = static_cast<float>(random.uniform(-1, 1));
  return v;
}

}  // namespace clutch::bench
