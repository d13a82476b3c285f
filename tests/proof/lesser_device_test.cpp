// SPDX-License-Identifier: Apache-2.0
// The ops on devices that have less: the fault layer takes away one thing after another, then all of them; on one whose rounding
// nothing proves; and on one that calls itself a GPU.
#include <clutch/allocator.hpp>
#include <clutch/clutch.hpp>

#include "layer/fault_layer.hpp"
#include "runtime/settings.hpp"
#include "support/op_runner.hpp"

#include <fmt/format.h>

#include <cstring>
#include <set>

namespace clutch::testing {
namespace {

struct Lesser {
  const char* name;
  std::uint32_t lacks;
  bool proves_rounding = true;  ///< by the self-test
};
constexpr Lesser kLesser[] = {
    {"no fp64", fault::kNoFp64},
    {"no fp16", fault::kNoFp16},
    {"no FMA claim", fault::kNoFmaClaim},
    {"no exact rounding", fault::kNoFmaClaim, false},
    {"16 KiB local", fault::kSmallLocal},
    {"groups of 64", fault::kSmallGroups},
    {"one compute unit", fault::kOneUnit},
    {"no command buffer", fault::kNoCommandBuffer},
    {"buffers of 64 MiB", fault::kSmallAlloc},
    {"all at once", fault::kAllLacks},
    {"a GPU", fault::kGpu},
};

/// The first test device as one that lacks something, until this goes. Errors: not_supported without the layer.
class LesserTwin {
 public:
  explicit LesserTwin(std::uint32_t lacks, bool proves_rounding = true) : settings_(settings(proves_rounding)), faked_(lacks), fresh_(test_devices().front()) {}
  const Device& device() const { return fresh_.device(); }

 private:
  static detail::Settings settings(bool proves_rounding) {
    auto all = detail::the_settings();
    if (!proves_rounding) all.self_test.value = "off";
    return all;
  }
  struct Faked {
    explicit Faked(std::uint32_t lacks) : layer(fault::loaded()) {
      if (!layer) throw Error(ErrorCode::not_supported, "test", "libclutch_fault_layer.so is not loaded (OPENCL_LAYERS)");
      layer->reset();
      layer->fake_device(lacks);
    }
    ~Faked() { layer->fake_device(0); }
    Faked(const Faked&) = delete;
    Faked& operator=(const Faked&) = delete;
    const fault::Controls* layer;
  };
  detail::SettingsOverride settings_;
  Faked faked_;
  FreshDevice fresh_;
};

TEST(LesserDevice, EveryOpRunsOrSaysWhichTraitIsMissing) {
  for (const Lesser& lesser : kLesser) {
    LesserTwin fresh(lesser.lacks, lesser.proves_rounding);
    const DeviceTraits& traits = fresh.device().traits();
    auto check = [&](fault::Lacks what, bool gone) { EXPECT_TRUE(gone || (lesser.lacks & what) == 0) << lesser.name; };
    EXPECT_EQ(lesser.proves_rounding, traits.fma_exact && traits.divide_exact && traits.sqrt_exact) << lesser.name;
    check(fault::kNoFp64, !traits.fp64);
    check(fault::kNoFp16, !traits.fp16);
    check(fault::kSmallLocal, traits.local_bytes == 16u << 10);
    check(fault::kSmallGroups, traits.max_work_group == 64);
    check(fault::kOneUnit, traits.compute_units == 1);
    check(fault::kGpu, traits.type == DeviceType::gpu);
    check(fault::kNoCommandBuffer, traits.command_buffer == 0);
    const bool unlike = lesser.lacks == fault::kAllLacks || lesser.lacks == fault::kGpu;
    std::set<std::string_view> seen;
    for (const NamedProblem& p : all_problems()) {
      // One problem of each of these. By night: everything on the least device and the GPU, elsewhere one per entry.
      std::string_view one_of = p.name;
      if (level() == "smoke")
        one_of = unlike ? p.problem->entry : p.stem;
      else if (!unlike)
        one_of = p.problem->entry;
      if (!seen.insert(one_of).second) continue;
      if (p.problem->needs_fp64 && !traits.fp64) {
        std::string said = message_of([&] { run_once(fresh.device(), *p.problem); });
        EXPECT_NE(said.find("fp64"), std::string::npos) << lesser.name << ": " << p.name << " said: " << said;
        continue;
      }
      try {
        EXPECT_EQ(run_once(fresh.device(), *p.problem), "") << lesser.name << ": " << p.name;
      } catch (const Error& e) {  // what a problem forces may refuse
        const bool refuses = std::string_view(e.what()).find("refuses: the device's fma is emulated") != std::string_view::npos;
        EXPECT_TRUE(refuses && !lesser.proves_rounding) << lesser.name << ": " << p.name << ": " << e.what();
      }
    }
    if ((lesser.lacks & fault::kSmallAlloc) != 0) {
      EXPECT_EQ(code_of([&] { empty({17 << 20}, {.device = fresh.device()}); }), ErrorCode::invalid_shape);
      EXPECT_EQ(code_of([&] { empty({16 << 20}, {.device = fresh.device()}); }), ErrorCode::ok);
    }
  }
}

TEST(LesserDevice, SdpaListsWhyEachBackendRefuses) {
  const LesserTwin fresh(fault::kNoFp64);
  const Tensor x = empty({1, 1, 4, 8}, {.dtype = DType::f64, .device = fresh.device()});
  const std::string why = message_of([&] { attention::sdpa(x, x, x); });
  for (const char* part : {"no enabled backend accepts", "flash: ", "math: ", "fp64"}) EXPECT_NE(why.find(part), std::string::npos) << why;
}

// Equal matrices have equal bits, in whichever group and thread.
TEST(LesserDevice, GroupsHaveLocalMemoryOfTheirOwn) {
  const LesserTwin fresh(fault::kGpu);
  for (DType dtype : {DType::f32, DType::c64}) {
    const std::int64_t parts = is_complex(dtype) ? 2 : 1;
    const std::vector<std::uint8_t> raw = randn({9, 9, parts}, {.device = fresh.device(), .seed = 3}).to_bytes();
    Tensor one = from_bytes(raw.data(), raw.size(), {1, 9, 9}, {.dtype = dtype, .device = fresh.device()});
    for (auto driver : {linalg::EighDriver::jacobi_group, linalg::EighDriver::qr_group}) {
      auto r = linalg::eigh(one.expand({4096, 9, 9}).clone(), {.driver = driver});
      const std::vector<std::uint8_t> v_bytes = r.v.to_bytes();
      std::vector<float> w = r.w.to_host<float>(), v(v_bytes.size() / sizeof(float));
      std::memcpy(v.data(), v_bytes.data(), v_bytes.size());
      const std::size_t each = v.size() / 4096;
      for (std::size_t i = 9; i < w.size(); ++i) ASSERT_EQ(w[i], w[i % 9]) << last_plan() << " value " << i;
      for (std::size_t i = each; i < v.size(); ++i) ASSERT_EQ(v[i], v[i % each]) << last_plan() << " number of vectors " << i;
    }
  }
}

}  // namespace
}  // namespace clutch::testing
