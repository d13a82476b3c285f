// SPDX-License-Identifier: Apache-2.0
// Methods of Tensor, and functions that make tensors, that run ops.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/tensor.hpp>

#include "runtime/op_name.hpp"
#include "runtime/storage.hpp"
#include "support/computed_number.hpp"

#include <fmt/format.h>

#include <cmath>

namespace clutch { inline namespace v0 {

Tensor zeros(const Dims& sizes, const TensorOptions& options, const Stream& stream) {
  detail::OpName named("zeros");
  Tensor result = empty(sizes, options, stream);
  fill_(result, 0, {}, detail::stream_for(stream, options.device, "zeros"));
  return result;
}

Tensor full(const Dims& sizes, double value, const TensorOptions& options, const Stream& stream) {
  detail::OpName named("full");
  Tensor result = empty(sizes, options, stream);
  fill_(result, value, {}, detail::stream_for(stream, options.device, "full"));
  return result;
}

Tensor arange(double start, double end, double step, const TensorOptions& options, const Stream& stream) {
  detail::OpName named("arange");
  if (is_integral(options.dtype)) {
    start = std::trunc(start);
    end = std::trunc(end);
    step = std::trunc(step);
  }
  auto computed = [&](double number) { return detail::as_computed(number, options.dtype); };
  if (!std::isfinite(computed(start)) || !std::isfinite(computed(end)) || !std::isfinite(computed(step)) || computed(step) == 0)
    throw Error(ErrorCode::invalid_argument, "arange", fmt::format("start, end and step must be finite and step not 0, got {}, {} and {}", start, end, step));
  if ((step > 0) != (end > start) && end != start)
    throw Error(ErrorCode::invalid_argument, "arange", fmt::format("step must lead from start {} to end {}, got {}", start, end, step));
  double count = std::ceil((end - start) / step);
  if (count > 9e15) throw Error(ErrorCode::invalid_shape, "arange", fmt::format("the sizes of a tensor must multiply to at most 2^50, got {} elements", count));
  Tensor result = empty({static_cast<std::int64_t>(count)}, options, stream);
  arange_(result, start, step, {}, detail::stream_for(stream, options.device, "arange"));
  return result;
}

Tensor Tensor::clone(const Stream& given) const {
  detail::OpName named("Tensor::clone");
  detail::Storage& storage = detail::storage_of(*this, "clone");
  Stream stream = detail::resolve_stream(given, storage.runtime(), "clone");
  Tensor result = empty(sizes_, {.dtype = dtype_, .device = stream.device()}, stream);
  copy_(result, *this, {}, stream);
  return result;
}

Tensor Tensor::contiguous(const Stream& stream) const {
  detail::OpName named("Tensor::contiguous");
  return contiguous_ ? *this : clone(stream);
}

Tensor Tensor::to(DType dtype, const CastOptions& options, const Stream& stream) const {
  detail::OpName named("Tensor::to");
  return dtype == dtype_ ? *this : cast(*this, dtype, {.overflow = options.overflow}, stream);
}

}}  // namespace clutch::v0
