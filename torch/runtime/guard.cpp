// SPDX-License-Identifier: Apache-2.0
// What PyTorch asks of a device: which is current, its streams, its events.
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/stream.hpp"

#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <clutch/event.hpp>
#include <clutch/interop_cl.hpp>

namespace torch_clutch {
namespace {

clutch::Event& event_of(void* event) { return *static_cast<clutch::Event*>(event); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kDevice;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}

  c10::DeviceType type() const override { return kDevice; }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::Device getDevice() const override { return {kDevice, current_device()}; }
  void setDevice(c10::Device wanted) const override { set_current_device(wanted.index()); }
  void uncheckedSetDevice(c10::Device wanted) const noexcept override {
    try {
      set_current_device(wanted.index());
    } catch (const std::exception&) {  // called by destructors, whose device existed
    }
  }
  c10::Device exchangeDevice(c10::Device wanted) const override {
    const c10::Device former = getDevice();
    set_current_device(wanted.index());
    return former;
  }
  c10::DeviceCapability getDeviceCapability(c10::Device of) const override {
    constexpr std::pair<int, clutch::DType> kTypes[] = {{c10::kIndex_Byte, clutch::DType::u8},
                                                        {c10::kIndex_Char, clutch::DType::i8},
                                                        {c10::kIndex_Short, clutch::DType::i16},
                                                        {c10::kIndex_Int, clutch::DType::i32},
                                                        {c10::kIndex_Long, clutch::DType::i64},
                                                        {c10::kIndex_Half, clutch::DType::f16},
                                                        {c10::kIndex_Float, clutch::DType::f32},
                                                        {c10::kIndex_Double, clutch::DType::f64},
                                                        {c10::kIndex_ComplexFloat, clutch::DType::c64},
                                                        {c10::kIndex_Bool, clutch::DType::boolean},
                                                        {c10::kIndex_ComplexDouble, clutch::DType::c128},
                                                        {c10::kIndex_BFloat16, clutch::DType::bf16}};
    // Made, copied and converted on any device; some of them by the CPU.
    constexpr int kStored[] = {c10::kIndex_UInt16,          c10::kIndex_UInt32,          c10::kIndex_UInt64,
                               c10::kIndex_ComplexHalf,     c10::kIndex_Float8_e5m2,     c10::kIndex_Float8_e4m3fn,
                               c10::kIndex_Float8_e5m2fnuz, c10::kIndex_Float8_e4m3fnuz, c10::kIndex_Float8_e8m0fnu};
    return translated([&] {
      c10::DeviceCapability made;
      made.capability_data.capability_bits = 0;
      for (auto [type, dtype] : kTypes)
        if (device(or_current(of.index())).supports(dtype)) made.capability_data.capability_bits |= std::uint64_t{1} << type;
      for (int type : kStored) made.capability_data.capability_bits |= std::uint64_t{1} << type;
      return made;
    });
  }

  c10::Stream getStream(c10::Device of) const override { return current_stream(or_current(of.index())); }
  c10::Stream getDefaultStream(c10::Device of) const override { return c10::Stream(c10::Stream::DEFAULT, c10::Device(kDevice, or_current(of.index()))); }
  c10::Stream getNewStream(c10::Device of, int priority) const override { return next_stream(or_current(of.index()), priority); }
  c10::Stream getStreamFromGlobalPool(c10::Device of, bool high) const override { return next_stream(or_current(of.index()), high ? -1 : 0); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return translated([&] { return static_cast<void*>(clutch::interop::queue(stream_of(stream))); });
  }
  bool queryStream(const c10::Stream& stream) const override {
    return translated([&] { return stream_of(stream).query(); });
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    translated([&] { stream_of(stream).synchronize(); });
  }
  bool isStreamCapturing(const c10::Stream& stream) const override { return stream_of(stream).is_capturing(); }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    translated([&] { clutch::synchronize(device(or_current(index))); });
  }

  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<clutch::Event*>(event); }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (*event == nullptr) *event = new clutch::Event;
    translated([&] { event_of(*event).record(stream_of(stream)); });
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) translated([&] { stream_of(stream).wait(event_of(event)); });
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || translated([&] { return event_of(event).query(); });
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) translated([&] { event_of(event).wait(); });
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && end != nullptr, "Both events must be recorded before calculating elapsed time.");
    return translated([&] { return clutch::elapsed_ms(event_of(start), event_of(end)); });
  }
};

}  // namespace
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)
}  // namespace torch_clutch
