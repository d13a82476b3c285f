// SPDX-License-Identifier: Apache-2.0
#include "program/disk_cache.hpp"
#include "runtime/settings.hpp"
#include "support/fixture.hpp"
#include "support/mutation.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace clutch::testing { namespace {

namespace fs = std::filesystem;

/// A cache folder of its own, in force while it lives.
class OwnCache {
 public:
  explicit OwnCache(std::string mode = "on", std::string limit = "1G")
      : path_(fs::temp_directory_path() / ("clutch-cache-test-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    auto settings = detail::the_settings();
    settings.cache_dir.value = path_.string();
    settings.cache.value = std::move(mode);
    settings.cache_size.value = std::move(limit);
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

/// The lines that `f` logs as warnings.
template <class F>
std::vector<std::string> warnings_of(F&& f) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view text) {
    if (level <= LogLevel::warn) lines.emplace_back(text);
  });
  f();
  set_log_sink({});
  return lines;
}

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

/// An entry of the cache with a name that the library would give it.
struct Entry {
  explicit Entry(const OwnCache& cache, const std::string& of = "entry")
      : key(detail::sha256(of)), file(cache.path() / "programs" / (detail::to_hex(key) + ".bin")) {}
  bool write(std::size_t bytes = 100) const { return detail::cache_write(file, key, std::string(bytes, 'x')); }
  bool reads() const { return detail::cache_read(file, key).has_value(); }
  void age(std::chrono::minutes by) const { fs::last_write_time(file, fs::file_time_type::clock::now() - by); }
  detail::Digest key;
  fs::path file;
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
  const std::vector<std::string> lines = warnings_of([&] { run_once(device), run_once(device); });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("cannot be written"), std::string::npos);
}

TEST(Cache, TheLogSaysWhyAFolderCannotBeMade) {
  if (skip_without(test_devices().front(), "root", ::geteuid() == 0)) return;
  OwnCache cache;
  fs::create_directories(cache.path());
  auto settings = detail::the_settings();
  settings.cache_dir.value = (cache.path() / "a" / "b").string();
  detail::SettingsOverride here(settings);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::_exit(::setuid(65534) == 0 && !detail::cache_write(cache.path() / "a" / "b" / "x", {}, "payload") ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said(1000, '\0');
  const ssize_t got = ::read(ends[0], said.data(), said.size());
  ::close(ends[0]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  said.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  EXPECT_NE(said.find("cannot be written (Permission denied)"), std::string::npos) << said;
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

TEST(Cache, FoldersAndFilesAreTheUsersAlone) {
  OwnCache cache;
  const mode_t before = ::umask(0);
  const Entry entry(cache);
  EXPECT_TRUE(entry.write());
  ::umask(before);
  EXPECT_EQ(mode_of(cache.path()), 0700u);
  EXPECT_EQ(mode_of(cache.path() / "programs"), 0700u);
  EXPECT_EQ(mode_of(entry.file), 0600u);
  EXPECT_TRUE(entry.reads());
}

TEST(Cache, WhatOthersMayWriteIsNotUsed) {
  OwnCache cache;
  const Entry entry(cache);
  ASSERT_TRUE(entry.write());
  for (const fs::path& of : {cache.path(), cache.path() / "programs", entry.file})
    for (unsigned mode : {0720u, 0702u, 0777u, 01777u}) {
      const unsigned right = mode_of(of);
      ASSERT_EQ(::chmod(of.c_str(), mode), 0);
      bool read = true, written = true;
      const std::vector<std::string> lines = warnings_of([&] { read = entry.reads(), written = of == entry.file ? false : entry.write(); });
      EXPECT_FALSE(read) << of << " " << std::oct << mode;
      EXPECT_FALSE(written) << of << " " << std::oct << mode;
      ASSERT_FALSE(lines.empty()) << of << " " << std::oct << mode;
      EXPECT_NE(lines[0].find(of.string() + " is not used: others may write to it"), std::string::npos) << lines[0];
      EXPECT_EQ(cache_usage().refusal.empty(), of == entry.file);
      ASSERT_EQ(::chmod(of.c_str(), right), 0);
    }
  // Others may read: a folder of an older version.
  for (const fs::path& of : {cache.path(), cache.path() / "programs"}) ASSERT_EQ(::chmod(of.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(entry.file.c_str(), 0644), 0);
  EXPECT_TRUE(entry.reads());
  EXPECT_TRUE(entry.write());
}

TEST(Cache, LinksAreFollowedToTheFolderAlone) {
  OwnCache cache;
  const Entry entry(cache);
  ASSERT_TRUE(entry.write());
  const fs::path beside = cache.path().string() + "-beside";
  auto behind_a_link = [&](const fs::path& of) {
    fs::rename(of, beside);
    fs::create_symlink(beside, of);
    const bool read = entry.reads();
    fs::remove(of);
    fs::rename(beside, of);
    return read;
  };
  EXPECT_TRUE(behind_a_link(cache.path()));
  EXPECT_FALSE(behind_a_link(cache.path() / "programs"));
  EXPECT_FALSE(behind_a_link(entry.file));
  EXPECT_TRUE(entry.reads());
}

TEST(Cache, WhatAnotherUserOwnsIsNotUsed) {
  if (skip_without(test_devices().front(), "root", ::geteuid() == 0)) return;
  constexpr uid_t kOther = 65534;
  OwnCache cache;
  const Entry entry(cache);
  ASSERT_TRUE(entry.write());
  for (const fs::path& of : {cache.path(), cache.path() / "programs", entry.file}) {
    ASSERT_EQ(::chown(of.c_str(), kOther, kOther), 0);
    bool read = true;
    const std::vector<std::string> lines = warnings_of([&] { read = entry.reads(); });
    EXPECT_FALSE(read) << of << ": root takes no other user's";
    ASSERT_FALSE(lines.empty());
    EXPECT_NE(lines[0].find(of.string() + " is not used: it belongs to user 65534"), std::string::npos) << lines[0];
    if (of != entry.file) {
      EXPECT_FALSE(entry.write()) << of;
    }
    ASSERT_EQ(::chown(of.c_str(), 0, 0), 0);
  }
  // A link to a folder of one's own that another user made.
  const fs::path beside = cache.path().string() + "-beside";
  fs::rename(cache.path(), beside);
  fs::create_symlink(beside, cache.path());
  EXPECT_TRUE(entry.reads());
  ASSERT_EQ(::lchown(cache.path().c_str(), kOther, kOther), 0);
  EXPECT_FALSE(entry.reads());
  fs::remove(cache.path());
  fs::rename(beside, cache.path());
  // Others take root's files, which they cannot write, and their own, but not a third user's.
  auto reads_as_other = [&] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::setgid(kOther) == 0 && ::setuid(kOther) == 0 && entry.reads() ? 0 : 1);
    int status = -1;
    return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  };
  for (const fs::path& of : {cache.path(), cache.path() / "programs"}) ASSERT_EQ(::chmod(of.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(entry.file.c_str(), 0644), 0);
  EXPECT_TRUE(reads_as_other()) << "root's";
  ASSERT_EQ(::chown(entry.file.c_str(), kOther, kOther), 0);
  EXPECT_TRUE(reads_as_other()) << "its own";
  ASSERT_EQ(::chown(entry.file.c_str(), 12345, kOther), 0);
  EXPECT_FALSE(reads_as_other()) << "a third one's";
}

TEST(Cache, TheLeastRecentlyUsedGoPastTheLimit) {
  OwnCache cache("on", "100K");
  std::vector<Entry> entries;
  for (int i = 0; i < 9; ++i) entries.emplace_back(cache, "entry " + std::to_string(i));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    ASSERT_TRUE(entries[i].write(10000));
    entries[i].age(std::chrono::minutes(10000 - 100 * static_cast<int>(i)));
  }
  ASSERT_EQ(cache.programs().size(), 9u);
  EXPECT_TRUE(entries[0].reads()) << "a use";
  ASSERT_TRUE(Entry(cache, "small").write(1)) << "looks again after a sixteenth of the limit at the latest";
  const Entry last(cache, "last");
  ASSERT_TRUE(last.write(20000));
  std::uint64_t left = 0;
  for (const fs::path& file : cache.programs()) left += fs::file_size(file);
  EXPECT_LE(left, 100u << 10);
  EXPECT_GE(left, 80u << 10) << "no more than the limit asks for";
  EXPECT_TRUE(last.reads() && entries[0].reads() && entries[8].reads());
  EXPECT_FALSE(entries[1].reads() || entries[2].reads());
  // Without a limit all stay.
  OwnCache unlimited("on", "0");
  for (const Entry& e : entries) ASSERT_TRUE(Entry(e).write(100000));
  EXPECT_EQ(unlimited.programs().size(), 9u);
}

TEST(Cache, ALimitTakesNobodyElsesFilesAndWhatCrashedProcessesLeft) {
  OwnCache cache("on", "1K");
  const Entry entry(cache);
  ASSERT_TRUE(entry.write(10));
  const fs::path programs = cache.path() / "programs", old = entry.file.string() + ".123.0.abc.tmp", fresh = entry.file.string() + ".124.0.abc.tmp";
  for (const fs::path& file : {programs / "mine.bin", programs / "notes.txt", old, fresh}) std::ofstream(file) << std::string(5000, 'x');
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(Entry(cache, "large").write(5000));
  EXPECT_TRUE(fs::exists(programs / "mine.bin") && fs::exists(programs / "notes.txt"));
  EXPECT_TRUE(fs::exists(fresh)) << "someone may be writing it";
  EXPECT_FALSE(fs::exists(old));
  EXPECT_FALSE(entry.reads());
}

TEST(Cache, UsageAndClearing) {
  OwnCache cache("on", "3M");
  EXPECT_EQ(cache_usage().files, 0u);
  EXPECT_EQ(clear_cache().files, 0u) << "there is no folder yet";
  const Entry one(cache, "one"), two(cache, "two");
  ASSERT_TRUE(one.write(1000) && two.write(2000));
  ASSERT_TRUE(detail::cache_write(cache.path() / "devices" / (detail::to_hex(one.key).substr(0, 32) + ".self_test"), one.key, "results"));
  std::ofstream(cache.path() / "tuning.json") << "{}";
  std::ofstream(cache.path() / "programs" / "mine.bin") << "mine";
  const CacheUsage usage = cache_usage();
  EXPECT_EQ(usage.files, 3u);
  EXPECT_GT(usage.bytes, 3000u);
  EXPECT_LT(usage.bytes, 4000u);
  EXPECT_EQ(usage.limit, 3u << 20);
  const CacheUsage removed = clear_cache();
  EXPECT_EQ(removed.files, usage.files);
  EXPECT_EQ(removed.bytes, usage.bytes);
  EXPECT_EQ(cache_usage().files, 0u);
  EXPECT_TRUE(fs::exists(cache.path() / "tuning.json") && fs::exists(cache.path() / "programs" / "mine.bin"));
  EXPECT_TRUE(one.write());
  ASSERT_EQ(::chmod(cache.path().c_str(), 0777), 0);
  EXPECT_EQ(code_of([] { clear_cache(); }), ErrorCode::io);
  ASSERT_EQ(::chmod(cache.path().c_str(), 0700), 0);
}

/// Writers, readers and removers of several processes, of which each keeps a small limit.
TEST(Cache, ProcessesShareALimit) {
  OwnCache cache("on", "64K");
  std::vector<pid_t> children;
  for (int p = 0; p < 3; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool good = true;
      for (int i = 0; i < 150; ++i) {
        const Entry entry(cache, std::to_string((i * 7 + p) % 40));
        good = good && entry.write(static_cast<std::size_t>(1000 + 100 * (i % 40)));
        entry.reads();
      }
      ::_exit(good ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::uint64_t left = 0;
  for (const fs::path& file : cache.programs()) left += fs::file_size(file);
  EXPECT_LE(left, (64u << 10) + 3 * (4u << 10)) << "each may write a sixteenth of the limit before it looks again";
}

}}  // namespace clutch::testing
