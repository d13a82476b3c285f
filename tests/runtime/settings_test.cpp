// SPDX-License-Identifier: Apache-2.0
#include "runtime/settings.hpp"

#include "support/fixture.hpp"

namespace clutch::testing { namespace {

using detail::parse_settings;

TEST(Settings, DefaultsAndValues) {
  auto s = parse_settings({{"PATH", "/bin"}, {"CLUTCH_DEVICE", "gpu"}, {"CLUTCH_STRICT", "host,untuned"}});
  EXPECT_EQ(s.device.value, "gpu");
  EXPECT_TRUE(s.device.from_environment);
  EXPECT_EQ(s.cache.value, "on");
  EXPECT_FALSE(s.cache.from_environment);
  EXPECT_TRUE(s.strict_forbids("host"));
  EXPECT_FALSE(s.strict_forbids("extension"));
}

TEST(Settings, UnknownNamesAndBadValuesListWhatIsValid) {
  EXPECT_EQ(code_of([] { parse_settings({{"CLUTCH_DEVCE", "x"}}); }), ErrorCode::invalid_setting);
  EXPECT_NE(message_of([] { parse_settings({{"CLUTCH_DEVCE", "x"}}); }).find("CLUTCH_DEVICE"), std::string::npos);
  EXPECT_NE(message_of([] { parse_settings({{"CLUTCH_LOG", "loud"}}); }).find("off|error|warn|info|debug"), std::string::npos);
  for (auto pair :
       {std::pair{"CLUTCH_INDEX64", "yes"}, std::pair{"CLUTCH_TEST_SEED", "-3"}, std::pair{"CLUTCH_STRICT", "hosts"}, std::pair{"CLUTCH_TEST_SEED", ""}})
    EXPECT_EQ(code_of([&] { parse_settings({pair}); }), ErrorCode::invalid_setting) << pair.first;
}

TEST(Settings, SizesTakeUnits) {
  auto bytes = [](const std::string& text) { return parse_settings({{"CLUTCH_CACHE_SIZE", text}}).cache_size.bytes(); };
  EXPECT_EQ(parse_settings({}).cache_size.bytes(), 1u << 30);
  EXPECT_EQ(bytes("0"), 0u);
  EXPECT_EQ(bytes("4096"), 4096u);
  EXPECT_EQ(bytes("3K"), 3072u);
  EXPECT_EQ(bytes("512M"), 512u << 20);
  EXPECT_EQ(bytes("20G"), std::uint64_t{20} << 30);
  for (const char* bad : {"", "G", "1g", "1.5G", "-1", "1KB", "1 G", "K1", "9000000000000000000", "9000000000G"})
    EXPECT_EQ(code_of([&] { bytes(bad); }), ErrorCode::invalid_setting) << bad;
}

TEST(Settings, FallbacksAreCountedLoggedOnceAndForbidden) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view text) { lines.emplace_back(text); });
  auto before = fallback_count("host");
  detail::note_fallback("host", "test_op", "runs on the host");
  detail::note_fallback("host", "test_op", "runs on the host");
  EXPECT_EQ(fallback_count("host"), before + 2);
  EXPECT_EQ(lines.size(), 1u);
  detail::SettingsOverride strict(parse_settings({{"CLUTCH_STRICT", "host"}}));
  EXPECT_EQ(code_of([] { detail::note_fallback("host", "test_op", "runs on the host"); }), ErrorCode::strict);
  EXPECT_EQ(code_of([] { fallback_count("silent"); }), ErrorCode::invalid_argument);
  set_log_sink({});
}

TEST(Settings, TableHasEveryRow) {
  auto rows = settings();
  EXPECT_GE(rows.size(), 13u);
  for (const auto& row : rows) EXPECT_TRUE(row.name.starts_with("CLUTCH_") && !row.doc.empty());
}

}}  // namespace clutch::testing
