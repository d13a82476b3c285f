// SPDX-License-Identifier: Apache-2.0
// Which devices there are, which is current, what a device is.
#include "rows.hpp"

#include <stdexcept>
#include <thread>

namespace clutch::rows { namespace {

ROW(device_count) {
  const int count = device_count();
  line("there are devices", count > 0);
  line("they are as many as are listed", static_cast<int>(devices().size()) == count);
  line.refused("the device behind the last", [&] { return device(count); });
}

ROW(current_accelerator) {
  line("a tensor of it is on the current device", empty({1}, {.device = current_device()}).device() == current_device());
  line("it is the default one", current_device() == default_device());
}

ROW(current_device) {
  const Device first = current_device(), last = last_device();
  set_current_device(last);
  line("the last one is current", current_device().index() == device_count() - 1);
  line("a tensor is made there", empty({1}).device() == last);
  std::thread([&] { line("another thread has the default one", current_device() == default_device()); }).join();
  set_current_device(first);
  line("the first one is current again", current_device() == first);
  set_current_device({});
}

ROW(device_scope) {
  const Device first = current_device(), last = last_device();
  std::vector<bool> as_wanted;
  {
    const DeviceGuard outer(last);
    as_wanted.push_back(current_device() == last);
    {
      const DeviceGuard inner(first);
      as_wanted.push_back(current_device() == first);
      const DeviceGuard none{Device()};
      as_wanted.push_back(current_device() == first);
    }
    as_wanted.push_back(current_device() == last);
  }
  as_wanted.push_back(current_device() == first);
  line("last, first, none named, last, first again", as_wanted);
  try {
    const DeviceGuard guard(last);
    throw std::runtime_error("leaves the scope");
  } catch (const std::runtime_error&) {
    line("the former one behind an exception", current_device() == first);
  }
}

ROW(device_of) {
  const Tensor there = zeros({2}, {.device = last_device()});
  {
    const DeviceGuard guard(there.device());
    line("the tensor's device is current", current_device() == there.device());
  }
  line("the default one is current again", current_device() == default_device());
}

ROW(default_device) {
  const Device first = current_device(), last = last_device();
  std::vector<bool> as_wanted;
  {
    const DeviceGuard outer(last);
    as_wanted.push_back(zeros({1}).device() == last);
    {
      const DeviceGuard inner(first);
      as_wanted.push_back(zeros({1}).device() == first);
    }
    as_wanted.push_back(zeros({1}).device() == last);
  }
  as_wanted.push_back(zeros({1}).device() == first);
  line("tensors of scopes: last, first, last, first", as_wanted);
  try {
    const DeviceGuard guard(last);
    throw std::runtime_error("leaves the scope");
  } catch (const std::runtime_error&) {
    line("a tensor behind an exception is on the first", zeros({1}).device() == first);
  }
  set_default_device(last);
  line("set for the process: a tensor is on the last", zeros({1}).device() == last);
  line("it is the one that is told", default_device() == last);
  set_default_device({});
  line("reset: a tensor is on the first", zeros({1}).device() == first);
}

ROW(device_properties) {
  const Device d = current_device();
  const DeviceTraits& traits = d.traits();
  line("it has a name", !d.name().empty());
  line("bytes of memory are positive", traits.global_bytes > 0);
  line("compute units are positive", traits.compute_units > 0);
  line("the last one has a name, too", !last_device().name().empty());
}

ROW(device_capability) {
  const Device d = current_device();
  std::vector<std::string_view> everywhere;
  bool holds = true, convertible = true;
  const Tensor one = full({1}, 1);
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::c64, DType::c128, DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
    if (!d.supports(dtype)) continue;
    if (dtype != DType::f64 && dtype != DType::c128) everywhere.push_back(name(dtype));
    holds = holds && empty({3}, {.dtype = dtype}).dtype() == dtype;
    convertible = convertible && one.to(dtype).to(DType::f32).item() == 1;
  }
  line("dtypes of every device", everywhere);
  line("f64 and c128 go together", d.supports(DType::f64) == d.supports(DType::c128));
  line("tensors of each can be made", holds);
  line("each has what f32 has", convertible);
}

ROW(bf16) {
  line("supported", current_device().supports(DType::bf16));
  const Tensor x = full({2}, 1.5, {.dtype = DType::bf16});
  line("1.5 * 1.5", numbers(mul(x, x).to(DType::f32)));
}

}}  // namespace clutch::rows
