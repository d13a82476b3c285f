// SPDX-License-Identifier: Apache-2.0
#include "program/disk_cache.hpp"
#include "runtime/settings.hpp"
#include "support/fixture.hpp"
#include "support/mutation.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace clutch::testing {
namespace {

namespace fs = std::filesystem;

/// A cache folder of its own, in force while it lives.
class OwnCache {
 public:
  explicit OwnCache(std::string mode = "on") : path_(fs::temp_directory_path() / ("clutch-cache-test-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    auto settings = detail::the_settings();
    settings.cache_dir.value = path_.string();
    settings.cache.value = std::move(mode);
    override_.emplace(settings);
  }
  ~OwnCache() {
    override_.reset();
    fs::remove_all(path_);
  }
  const fs::path& path() const { return path_; }
  std::vector<fs::path> programs() const {
    std::vector<fs::path> files;
    if (fs::exists(path_ / "programs"))
      for (const auto& entry : fs::directory_iterator(path_ / "programs")) files.push_back(entry.path());
    return files;
  }

 private:
  fs::path path_;
  std::optional<detail::SettingsOverride> override_;
};

/// What a new process would do: a context that has no programs yet runs one op.
void run_once(const Device& device) {
  ForeignContext context(device);
  context.run([&](const Stream&) {
    Tensor t = full({100}, 2, {.device = device});
    EXPECT_EQ(addcdiv(t, t, t).to_host<float>()[99], 3);
    return "";
  });
}

TEST(Cache, SecondContextLoadsWhatTheFirstBuilt) {
  CLUTCH_EACH_DEVICE(device) {
    device.traits();  // self-tests build a program of their own
    OwnCache cache;
    auto start = build_counters();
    run_once(device);
    auto first = build_counters();
    EXPECT_EQ(first.built - start.built, 2u);
    EXPECT_EQ(cache.programs().size(), 2u);
    run_once(device);
    auto second = build_counters();
    EXPECT_EQ(second.built, first.built);
    EXPECT_EQ(second.loaded - first.loaded, 2u);
  }
}

TEST(Cache, DamagedTruncatedAndForeignFilesAreRebuilt) {
  CLUTCH_EACH_DEVICE(device) {
    OwnCache cache;
    run_once(device);
    auto files = cache.programs();
    ASSERT_EQ(files.size(), 2u);
    auto damage = [&](const char* how, auto&& f) {
      f();
      auto before = build_counters();
      run_once(device);
      EXPECT_GE(build_counters().built - before.built, 1u) << how;
      before = build_counters();
      run_once(device);
      EXPECT_EQ(build_counters().built, before.built) << how << ": written anew";
    };
    damage("a flipped byte", [&] {
      std::fstream f(files[0], std::ios::in | std::ios::out | std::ios::binary);
      f.seekg(500);
      char c = static_cast<char>(f.get());
      f.seekp(500);
      f.put(static_cast<char>(c ^ 1));
    });
    damage("truncated", [&] { fs::resize_file(files[0], fs::file_size(files[0]) / 2); });
    damage("empty", [&] { fs::resize_file(files[0], 0); });
    damage("another program's file", [&] { fs::copy_file(files[1], files[0], fs::copy_options::overwrite_existing); });
    damage("text", [&] { std::ofstream(files[0]) << "not a program"; });
  }
}

TEST(Cache, EntriesOfAnotherKeyAreNotRead) {
  OwnCache cache;
  fs::path file = cache.path() / "programs" / "x.bin";
  detail::Digest a = detail::sha256("a"), b = detail::sha256("b");
  ASSERT_TRUE(detail::cache_write(file, a, "payload"));
  EXPECT_EQ(detail::cache_read(file, a).value_or(""), "payload");
  EXPECT_FALSE(detail::cache_read(file, b).has_value());
  EXPECT_FALSE(detail::cache_read(cache.path() / "absent", a).has_value());
}

TEST(Cache, AnUnwritableFolderIsLoggedOnceAndNothingElse) {
  const Device& device = test_devices().front();
  OwnCache cache;
  fs::create_directories(cache.path().parent_path());
  std::ofstream(cache.path()) << "a file where the folder should be";
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level <= LogLevel::warn) lines.emplace_back(text);
  });
  run_once(device);
  run_once(device);
  set_log_sink({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("cannot be written"), std::string::npos);
}

TEST(Cache, OffAndReadOnly) {
  const Device& device = test_devices().front();
  {
    OwnCache cache("off");
    run_once(device);
    EXPECT_FALSE(fs::exists(cache.path()));
  }
  OwnCache cache("read");
  run_once(device);
  EXPECT_FALSE(fs::exists(cache.path()));
}

TEST(Cache, ManyWritersLeaveWholeFiles) {
  OwnCache cache;
  fs::path file = cache.path() / "programs" / "shared.bin";
  detail::Digest key = detail::sha256("key");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        detail::cache_write(file, key, std::string(20000, static_cast<char>('a' + t)));
        auto read = detail::cache_read(file, key);
        if (read) {
          EXPECT_EQ(read->size(), 20000u);
          EXPECT_EQ(read->find_first_not_of(read->front()), std::string::npos) << "half of one and half of another";
        }
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(cache.programs().size(), 1u) << "no temporary file stays";
}

}  // namespace
}  // namespace clutch::testing
