// SPDX-License-Identifier: Apache-2.0
// Copies on a device, between devices, and to and from the host.
#include "ops/table.hpp"
#include "runtime/convert.hpp"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <clutch/complex.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace torch_clutch {
namespace {

// Elements that stand side by side in memory, whatever their order: the host's and the device's may be copied as they are.
bool is_dense(const at::Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

clutch::Tensor bytes_of(const at::Tensor& dense) {
  const clutch::Tensor first = wrap_at(dense, dense.const_data_ptr(), {1}, {1}, clutch::DType::u8);
  return clutch::Tensor(first.storage(), first.byte_offset(), {static_cast<std::int64_t>(dense.nbytes())}, {1}, clutch::DType::u8);
}

// Waits where `from` is the caller's memory that may change: what was made for the copy, and pinned memory of a call that does not block, stay as they are.
void write(const clutch::Tensor& bytes, const at::Tensor& from, const at::Tensor& source, bool non_blocking) {
  const std::span<const std::byte> all(static_cast<const std::byte*>(from.const_data_ptr()), bytes.nbytes());
  if (!from.is_alias_of(source) || (non_blocking && source.is_pinned()))
    bytes.write_kept(all, std::make_shared<c10::Storage>(from.storage()));
  else
    bytes.write(all);
}

void copy_from_host(const at::Tensor& destination, const at::Tensor& source, bool non_blocking) {
  own_memory(destination);
  const at::Tensor expanded = source.expand_as(destination).to(destination.scalar_type());
  if (is_dense(destination)) {
    at::Tensor ordered = expanded;
    if (expanded.strides() != destination.strides() || !is_dense(expanded)) {
      ordered = at::empty_strided(destination.sizes(), destination.strides(), destination.options().device(at::kCPU));
      ordered.copy_(expanded);
    }
    write(bytes_of(destination), ordered, source, non_blocking);
    return;
  }
  at::Tensor staged = at::empty(destination.sizes(), destination.options());
  write(bytes_of(staged), expanded.contiguous(), source, non_blocking);
  clutch::copy_(wrap(destination, Elements::bits), wrap(staged, Elements::bits));
}

void copy_to_host(const at::Tensor& destination, const at::Tensor& source) {
  const at::Tensor dense = is_dense(source) ? source : source.contiguous();
  const bool direct = destination.scalar_type() == dense.scalar_type() && destination.strides() == dense.strides() && destination.sizes() == dense.sizes();
  at::Tensor bits = direct ? destination : at::empty_strided(dense.sizes(), dense.strides(), dense.options().device(at::kCPU));
  bytes_of(dense).read_into(std::span(static_cast<std::uint8_t*>(bits.mutable_data_ptr()), bits.nbytes()));
  if (!direct) destination.copy_(bits);
}

void copy_on_device(const at::Tensor& destination, const at::Tensor& source) {
  const Elements elements = source.scalar_type() == destination.scalar_type() ? Elements::bits : Elements::numbers;
  own_memory(destination);
  const at::Tensor expanded = source.expand_as(destination);
  const bool in_order = is_dense(destination) && expanded.strides() == destination.strides();
  if (elements == Elements::bits && in_order && is_dense(expanded)) return clutch::copy_(bytes_of(destination), bytes_of(expanded));
  clutch::copy_(wrap(destination, elements), wrap(expanded, elements));
}

// Lazy conjugates and minuses end here: the plain values are copied, then changed where one side has what the other lacks.
void copy_lazy(const at::Tensor& destination, const at::Tensor& source) {
  auto plain = [](at::Tensor tensor) {
    if (tensor.is_conj()) tensor = tensor.conj();
    if (tensor.is_neg()) tensor = tensor._neg_view();
    return tensor;
  };
  at::Tensor values = plain(destination);
  values.copy_(plain(source));
  if (source.is_conj() != destination.is_conj()) values.conj_physical_();
  if (source.is_neg() != destination.is_neg()) values.neg_();
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& destination, bool non_blocking) {
  if (destination.numel() == 0) return destination;
  at::assert_no_internal_overlap(destination);
  at::assert_no_partial_overlap(destination, self);
  if (self.is_conj() || destination.is_conj() || self.is_neg() || destination.is_neg()) {
    copy_lazy(destination, self);
  } else if (self.device().type() != kDevice) {
    TORCH_CHECK(self.is_cpu(), "clutch: copies from ", self.device(), " go by way of the CPU");
    copy_from_host(destination, self, non_blocking);
  } else if (destination.device().type() != kDevice) {
    TORCH_CHECK(destination.is_cpu(), "clutch: copies to ", destination.device(), " go by way of the CPU");
    copy_to_host(destination, self);
  } else if (self.device() != destination.device()) {
    copy_from_host(destination, self.cpu(), non_blocking);
  } else {
    try {
      copy_on_device(destination, self);
    } catch (const clutch::Error& error) {
      // Overlaps that clutch does not tell apart, and dtypes that it lacks: by a copy, or by the host.
      if (error.code() == clutch::ErrorCode::invalid_overlap)
        copy_on_device(destination, self.clone());
      else
        throw;
    } catch (const Refusal& refusal) {
      note_fallback("aten::_copy_from", refusal.what());
      copy_from_host(destination, self.cpu(), non_blocking);
    }
  }
  return destination;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& destination) {
  destination.resize_(self.sizes());
  destination.copy_(self);
  return destination;
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
  return self.cpu().item();
}

// A double has all integers up to this one.
constexpr double kWholeDouble = 9007199254740992.0;

// Whether two elements may be at one place: true, too, for some that no order of dimensions shows to be apart.
bool may_overlap(const at::Tensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride and size
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.size(d) > 1) steps.emplace_back(tensor.stride(d), tensor.size(d));
  std::sort(steps.begin(), steps.end());
  int64_t last = 0;
  for (const auto& [stride, size] : steps) {
    if (stride <= last) return true;
    last += stride * (size - 1);
  }
  return false;
}

// Elements may share memory here, as nowhere else: each place is filled once, or by rows that share some.
template <class Fill>
at::Tensor& fill_places(at::Tensor& self, const Fill& fill) {
  if (self.numel() == 0) return self;
  if (is_dense(self)) {
    fill(self);
    return self;
  }
  at::Tensor places = self;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.stride(d) == 0) places = places.narrow(d, 0, 1);
  if (!may_overlap(places)) {
    fill(places);
    return self;
  }
  for (at::Tensor row : places.unbind(0)) fill_places(row, fill);
  return self;
}

at::Tensor& fill_scalar(at::Tensor& given, const at::Scalar& value) {
  const bool whole = value.isIntegral(true), exact = whole ? std::abs(value.toDouble()) <= kWholeDouble : !value.isComplex();
  return fill_places(given, [&](at::Tensor& self) {
    if (self.is_complex() && !self.is_conj() && !self.is_neg() && dtype_of(self.scalar_type())) {
      const c10::complex<double> number = value.toComplexDouble();
      clutch::fill_(wrap(self), std::complex<double>(number.real(), number.imag()));
    } else if (self.is_complex() || !exact || !dtype_of(self.scalar_type())) {
      self.copy_(at::scalar_tensor(value, self.options().device(at::kCPU)));
    } else {
      clutch::fill_(wrap(self), value.toDouble());
    }
  });
}
at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(), " dimensions.");
  return fill_places(self, [&](at::Tensor& places) { places.copy_(value); });
}
at::Tensor& zero_(at::Tensor& self) {
  return fill_places(self, [](at::Tensor& places) {
    if (is_dense(places))
      clutch::fill_(bytes_of(places), 0);
    else
      clutch::fill_(wrap(places, Elements::bits), 0);
  });
}

}  // namespace

void add_copies(OpTable& table) {
  table.family("copies");
  table.add<"_copy_from", &copy_from>("copy_, Tensor::write, Tensor::read_into");
  table.add<"_copy_from_and_resize", &copy_from_and_resize>("copy_");
  table.add<"_local_scalar_dense", &local_scalar_dense>("Tensor::read_into");
  table.add<"fill_.Scalar", &fill_scalar>("fill_");
  table.add<"fill_.Tensor", &fill_tensor>("copy_");
  table.add<"zero_", &zero_>("fill_");
}

}  // namespace torch_clutch
