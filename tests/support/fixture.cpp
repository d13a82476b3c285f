// SPDX-License-Identifier: Apache-2.0
#include "support/fixture.hpp"

#include "runtime/quirks.hpp"
#include "runtime/registry.hpp"
#include "runtime/storage.hpp"
#include "support/messages.hpp"
#include "support/skips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>

namespace clutch::testing {

namespace {

std::string setting(std::string_view wanted) {
  for (const auto& row : settings())
    if (row.name == wanted) return row.value;
  return {};
}

/// What the program says at its end of skips and known bugs, each line once.
std::vector<std::string>& notes() {
  static std::vector<std::string> all;
  return all;
}
void note(std::string line) {
  if (std::find(notes().begin(), notes().end(), line) == notes().end()) notes().push_back(std::move(line));
}
std::string test_name() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return fmt::format("{}.{}", test->test_suite_name(), test->name());
}

/// Prints one command that repeats a failed test.
class RepeatCommand : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    const char* pocl = std::getenv("POCL_DEVICES");
    fmt::print("repeat with: {}CLUTCH_TEST_SEED={} CLUTCH_TEST_LEVEL={} CLUTCH_TEST_DEVICES='{}' {} --gtest_filter={}.{}\n",
               pocl ? fmt::format("POCL_DEVICES='{}' ", pocl) : "", seed(), level(), setting("CLUTCH_TEST_DEVICES"), ::testing::internal::GetArgvs()[0],
               test.test_suite_name(), test.name());
  }
  void OnTestProgramEnd(const ::testing::UnitTest&) override {
    for (const std::string& line : notes()) fmt::print("{}\n", line);
  }
};

}  // namespace

const std::vector<Device>& test_devices() {
  static const std::vector<Device> all = select_devices(setting("CLUTCH_TEST_DEVICES"));
  return all;
}

std::uint64_t seed() { return std::strtoull(setting("CLUTCH_TEST_SEED").c_str(), nullptr, 10); }
std::string level() { return setting("CLUTCH_TEST_LEVEL"); }
std::int64_t today() { return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()).time_since_epoch().count(); }
std::string tested_entries() { return setting("CLUTCH_TEST_ENTRIES"); }

DeviceTraits wide_cpu() {
  return {.type = DeviceType::cpu,
          .max_work_group = 4096,
          .native_width_f32 = 16,
          .fp64 = true,
          .fma_exact = true,
          .divide_exact = true,
          .sqrt_exact = true,
          .denormals = true};
}

bool skip_without(const Device& device, std::string_view trait, bool has) {
  if (has) return false;
  std::string name = test_name(), line = fmt::format("{} on {} without {}", name, clutch::name(device.type()), trait);
  note("skipped: " + line);
  bool listed = false;
  for (const Skip& row : kSkips) listed = listed || (row.trait == trait && name.starts_with(row.test_prefix));
  EXPECT_TRUE(listed) << "unlisted skip (tests/support/skips.hpp): " << line;
  return true;
}

bool known_bug(const Device& device, std::string_view quirk) {
  for (const auto& row : detail::quirk_table())
    if (row.name == quirk && (device.traits().quirks & row.bit)) {
      note(fmt::format("xfail: {} on {} because of {}", test_name(), device.platform(), quirk));
      return true;
    }
  return false;
}

namespace {

Tensor upload(const std::vector<std::uint8_t>& bytes, std::int64_t count, DType dtype, const Device& device) {
  return from_bytes(bytes.data(), bytes.size(), {count}, {.dtype = dtype, .device = device});
}

}  // namespace

template <class Visit>
void Guarded::each(Visit visit) const {
  auto width = static_cast<std::int64_t>(bits(dtype_) / 8), count = numel(sizes_);
  Dims index = Dims::filled(sizes_.rank(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = lead_;
    for (int d = 0; d < sizes_.rank(); ++d) at += index[d] * strides_[d];
    visit(static_cast<std::size_t>(i * width), static_cast<std::size_t>(at * width), static_cast<std::size_t>(width));
    for (int d = sizes_.rank() - 1; d >= 0 && ++index[d] == sizes_[d]; --d) index[d] = 0;
  }
}

void Guarded::place(const std::vector<std::uint8_t>& raw) {
  each([&](std::size_t from, std::size_t to, std::size_t width) {
    std::copy_n(raw.begin() + static_cast<std::ptrdiff_t>(from), width, bytes_.begin() + static_cast<std::ptrdiff_t>(to));
  });
}

Guarded::Guarded(const Device& device, DType dtype, const Dims& sizes, const Dims& strides, std::int64_t lead, const std::vector<std::uint8_t>* raw)
    : sizes_(sizes), strides_(strides), dtype_(dtype), lead_(lead) {
  constexpr std::int64_t kBehind = 73;
  if (strides_.empty()) strides_ = detail::contiguous_strides(sizes);
  std::int64_t last = 0;
  for (int d = 0; d < sizes.rank(); ++d) last += std::max<std::int64_t>(sizes[d] - 1, 0) * strides_[d];
  std::int64_t count = lead + last + 1 + kBehind;
  bytes_.resize(bytes_for(dtype, static_cast<std::uint64_t>(count)));
  for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::uint8_t>(0xA5 ^ (i * 37));
  if (raw) place(*raw);
  whole_ = upload(bytes_, count, dtype, device);
  view_ = whole_.as_strided(sizes_, strides_, lead);
}

void Guarded::set(const std::vector<std::uint8_t>& raw) {
  place(raw);
  whole_ = upload(bytes_, whole_.numel(), dtype_, whole_.device());
  view_ = whole_.as_strided(sizes_, strides_, lead_);
}

void Guarded::restore() { copy_(whole_, upload(bytes_, whole_.numel(), dtype_, whole_.device())); }

std::vector<std::uint8_t> Guarded::get() const {
  std::vector<std::uint8_t> now = whole_.to_bytes();
  std::vector<std::uint8_t> result(static_cast<std::size_t>(view_.numel()) * static_cast<std::size_t>(bits(dtype_) / 8));
  std::vector<bool> inside(now.size());
  each([&](std::size_t to, std::size_t from, std::size_t width) {
    std::copy_n(now.begin() + static_cast<std::ptrdiff_t>(from), width, result.begin() + static_cast<std::ptrdiff_t>(to));
    std::fill_n(inside.begin() + static_cast<std::ptrdiff_t>(from), width, true);
  });
  for (std::size_t i = 0; i < now.size(); ++i)
    if (!inside[i] && now[i] != bytes_[i]) {
      ADD_FAILURE() << "byte " << i << " outside the view changed (elements begin at byte "
                    << static_cast<std::size_t>(lead_) * static_cast<std::size_t>(bits(view_.dtype()) / 8) << ")";
      break;
    }
  return result;
}

}  // namespace clutch::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::UnitTest::GetInstance()->listeners().Append(new clutch::testing::RepeatCommand);
  int failed = RUN_ALL_TESTS();
  for (const std::string& text : clutch::testing::lacking_messages()) {
    fmt::print("an Error's text must say what must be (\"must\") and what was given (\"got\"), got {}\n", text);
    failed = 1;
  }
  return failed;
}
