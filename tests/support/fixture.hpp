// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/clutch.hpp>

#include "support/compare.hpp"
#include "support/host_model.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clutch::testing {

/// Devices that CLUTCH_TEST_DEVICES selects.
const std::vector<Device>& test_devices();
std::uint64_t seed();
/// "smoke", "full" or "nightly".
std::string level();
/// The number of today's date: tests that do a share of their work each day take another share each.
std::int64_t today();
/// CLUTCH_TEST_ENTRIES.
std::string tested_entries();

/// True, after noting the skip, if the device lacks what `trait` names. A skip that tests/support/skips.hpp does not list
/// for the device's class fails the test.
bool skip_without(const Device& device, std::string_view trait, bool has);

/// True, after noting it, if the device has the bug that a row of the quirk table names: the test then expects the wrong
/// behaviour, and so reproduces it.
bool known_bug(const Device& device, std::string_view quirk);

/// Traits of a CPU with 16 float lanes that claims everything: for tests of selection.
DeviceTraits wide_cpu();

/// Memory with canaries before, behind and between the elements of a strided view.
class Guarded {
 public:
  /// A view of these sizes and strides (empty: contiguous) whose element 0 lies `lead` elements into its storage.
  /// `raw`, if given, are the first values of the elements.
  Guarded(const Device& device, DType dtype, const Dims& sizes, const Dims& strides = {}, std::int64_t lead = 67,
          const std::vector<std::uint8_t>* raw = nullptr);
  const Tensor& view() const { return view_; }
  /// Fills the view's elements from contiguous raw storage.
  void set(const std::vector<std::uint8_t>& raw);
  /// Puts everything back as it was made, in the same memory.
  void restore();
  /// The view's elements as contiguous raw storage; fails the test if any byte outside of them changed.
  std::vector<std::uint8_t> get() const;

 private:
  template <class Visit>
  void each(Visit visit) const;
  void place(const std::vector<std::uint8_t>& raw);
  Tensor whole_, view_;
  Dims sizes_, strides_;
  DType dtype_;
  std::vector<std::uint8_t> bytes_;
  std::int64_t lead_;
};

/// A tensor's elements, exactly for all but large 64-bit integers.
inline std::vector<double> values(const Tensor& t) {
  const std::vector<std::uint8_t> raw = t.to_bytes();
  std::vector<double> out(static_cast<std::size_t>(t.numel()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = model::value_at(raw.data(), i, t.dtype());
  return out;
}

/// Code of the Error that `f` throws; ErrorCode::ok if it throws none.
template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::ok;
}
/// Message of the Error that `f` throws; empty if it throws none.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace clutch::testing

/// Runs the body for every selected device, with the command that repeats it in the trace.
#define CLUTCH_EACH_DEVICE(device)                                         \
  for (const ::clutch::Device& device : ::clutch::testing::test_devices()) \
    if (::testing::ScopedTrace clutch_trace(__FILE__, __LINE__, "CLUTCH_TEST_DEVICES=" + device.selector()); true)
