// SPDX-License-Identifier: Apache-2.0
// Methods of Tensor, and functions that make tensors, that run ops.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/tensor.hpp>

#include "encode/elementwise.hpp"
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

Stream Tensor::checked_write(std::span<const std::byte> bytes, const Stream& given, const char* op) const {
  detail::Storage& storage = detail::storage_of(*this, op);
  if (bytes.size() != nbytes()) throw Error(ErrorCode::invalid_argument, op, fmt::format("the bytes must be the tensor's {}, got {}", nbytes(), bytes.size()));
  if (!bytes.data() && !bytes.empty())
    throw Error(ErrorCode::invalid_argument, op, fmt::format("memory of {} bytes must be given, got a null pointer", bytes.size()));
  if (is_packed(dtype_) && !contiguous_)
    throw Error(ErrorCode::invalid_shape, op,
                fmt::format("a tensor of {} must be contiguous to be written, got strides {}", name(dtype_), clutch::to_string(strides_)));
  detail::check_no_self_overlap(*this, op);
  return detail::resolve_stream(given, storage.runtime(), op);
}

void Tensor::write_strided(std::span<const std::byte> bytes, const std::shared_ptr<const void>* keep, const Stream& given, const char* op) const {
  const Stream stream = checked_write(bytes, given, op);
  if (numel_ == 0) return;
  if (contiguous_) return put(bytes, keep, stream, op);
  const Tensor dense = empty(sizes_, {.dtype = dtype_, .device = stream.device()}, stream);
  dense.put(bytes, keep, stream, op);
  copy_(*this, dense, {}, stream);
}

void Tensor::write(std::span<const std::byte> bytes, const Stream& stream) const {
  detail::OpName named("Tensor::write");
  write_strided(bytes, nullptr, stream, "Tensor::write");
}

void Tensor::write_kept(std::span<const std::byte> bytes, std::shared_ptr<const void> keep, const Stream& stream) const {
  detail::OpName named("Tensor::write_kept");
  write_strided(bytes, &keep, stream, "Tensor::write_kept");
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
