// SPDX-License-Identifier: Apache-2.0
// What the host code asks of the operating system (support/system.hpp, support/private_folder.hpp), on every system alike.
// Linked with these alone, not with the library.
#include "support/system.hpp"
#include "support/private_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#ifdef _WIN32
#include "support/windows_handle.hpp"

#include <aclapi.h>
#else
#include <sys/wait.h>

#include <unistd.h>

#include <csignal>
#endif

namespace clutch::testing { namespace {

namespace fs = std::filesystem;
using detail::Keep;
using detail::ProgramRun;

constexpr const char* kMode = "SYSTEM_TEST_CHILD";

/// Runs this program again as the child of that mode.
ProgramRun child(const char* mode, Keep keep, std::optional<std::chrono::milliseconds> limit = std::nullopt) {
  fs::path program = detail::program_file();
  std::vector<std::string> arguments{"--gtest_filter=System.DISABLED_Child", "--gtest_also_run_disabled_tests", "--gtest_brief=1"};
  // An emulator's file with its options, parted by spaces, where the machine cannot run this program by itself.
  if (const char* set = std::getenv("SYSTEM_TEST_EMULATOR"); set && *set) {
    std::vector<std::string> words{""};
    for (const char* c = set; *c; ++c) {
      if (*c == ' ')
        words.emplace_back();
      else
        words.back() += *c;
    }
    words.push_back(program.string());
    program = words[0];
    arguments.insert(arguments.begin(), words.begin() + 1, words.end());
  }
  detail::set_environment(kMode, mode);
  ProgramRun run = detail::run_program(program, arguments, keep, limit);
  detail::set_environment(kMode, "none");
  return run;
}

TEST(System, DISABLED_Child) {
  const char* set = std::getenv(kMode);
  const std::string mode = set ? set : "";
  std::fputs("to output\n", stdout);
  std::fputs("to errors\n", stderr);
  std::fflush(nullptr);
  if (mode == "status") std::_Exit(7);
  if (mode == "crash") std::abort();
  if (mode == "terminate") std::raise(SIGTERM);
  if (mode == "sleep") std::this_thread::sleep_for(std::chrono::seconds(60));
  std::_Exit(0);
}

TEST(System, ProgramsEndOrAreEnded) {
  const ProgramRun status = child("status", Keep::output);
  ASSERT_EQ(status.end, ProgramRun::End::exited) << status.problem;
  EXPECT_EQ(status.status, 7);
  EXPECT_NE(status.kept.find("to output\n"), std::string::npos) << status.kept;
  EXPECT_EQ(status.kept.find("to errors"), std::string::npos) << status.kept;
  const ProgramRun good = child("good", Keep::errors, std::chrono::seconds(60));
  ASSERT_EQ(good.end, ProgramRun::End::exited) << good.problem;
  EXPECT_EQ(good.status, 0);
  EXPECT_NE(good.kept.find("to errors\n"), std::string::npos) << good.kept;
  EXPECT_EQ(good.kept.find("to output"), std::string::npos) << good.kept;
  EXPECT_EQ(child("crash", Keep::errors).end, ProgramRun::End::crashed);
#ifndef _WIN32  // whose signals stay within a process
  EXPECT_EQ(child("terminate", Keep::errors).end, ProgramRun::End::killed);
#endif
  EXPECT_EQ(child("sleep", Keep::errors, std::chrono::milliseconds(300)).end, ProgramRun::End::timed_out);
  // posix_spawn() learns through shared memory that there is no program; qemu's processes do not share it.
  if (const char* emulator = std::getenv("SYSTEM_TEST_EMULATOR"); emulator && *emulator) return;
  const ProgramRun none = detail::run_program("no such program", {}, Keep::errors);
  EXPECT_EQ(none.end, ProgramRun::End::not_started);
  EXPECT_FALSE(none.problem.empty());
}

#ifndef _WIN32
/// How a child ended is not known where the system reaps children by itself.
TEST(System, AnEndThatIsNotKnownIsNoSuccess) {
  struct sigaction ignored {
  }, before{};
  ignored.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGCHLD, &ignored, &before), 0);
  const ProgramRun run = child("status", Keep::output);
  ::sigaction(SIGCHLD, &before, nullptr);
  EXPECT_EQ(run.end, ProgramRun::End::not_started);
  EXPECT_NE(run.problem.find("its end is unknown"), std::string::npos) << run.problem;
}
#endif

TEST(System, TheProcessKnowsItself) {
  EXPECT_NE(detail::process_id(), 0u);
  EXPECT_TRUE(detail::is_main_thread());
  bool main = true;
  std::thread([&] { main = detail::is_main_thread(); }).join();
  EXPECT_FALSE(main);
  EXPECT_TRUE(fs::is_regular_file(detail::program_file())) << detail::program_file();
  EXPECT_TRUE(fs::equivalent(detail::program_file(), detail::file_of([] {}))) << detail::file_of([] {});
  detail::set_environment("SYSTEM_TEST_VALUE", "a=b");
  bool found = false;
  for (const auto& [name, value] : detail::environment()) found = found || (name == "SYSTEM_TEST_VALUE" && value == "a=b");
  EXPECT_TRUE(found);
}

TEST(System, LibrariesThatAreMissingSaySo) {
  std::string why;
  EXPECT_EQ(detail::load_library("no_such_library", why), nullptr);
  EXPECT_NE(why.find("no_such_library"), std::string::npos) << why;
}

/// A folder of this test, gone at its end.
struct OwnFolder {
  fs::path path = fs::temp_directory_path() / ("clutch-system-test-" + std::to_string(detail::process_id()));
  OwnFolder() { detail::make_private_folders(path); }
  ~OwnFolder() { fs::remove_all(path); }
};

std::string replace(const fs::path& path, const std::string& first, const std::string& second) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(first)), std::as_bytes(std::span(second))};
  return detail::replace_file(path.string(), parts, 0644);
}
std::string mapped(const fs::path& path) {
  const detail::FileMapping file = detail::map_whole_file(path.string());
  return file.problem.empty() ? std::string(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()) : file.problem;
}

TEST(System, FilesAreReplacedAndMapped) {
  const OwnFolder folder;
  EXPECT_TRUE(detail::may_write(folder.path));
  EXPECT_FALSE(detail::may_write(folder.path / "absent"));
  const fs::path file = folder.path / "file";
  EXPECT_EQ(replace(file, "one ", "two"), "");
  EXPECT_EQ(mapped(file), "one two");
  EXPECT_EQ(replace(file, "", "three"), "");
  EXPECT_EQ(mapped(file), "three");
  EXPECT_EQ(replace(file, "", ""), "");
  EXPECT_EQ(mapped(file), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1) << "no temporary file stays";
  EXPECT_TRUE(mapped(folder.path / "absent").starts_with("cannot open " + (folder.path / "absent").string() + ": ")) << mapped(folder.path / "absent");
  EXPECT_EQ(mapped(folder.path), folder.path.string() + " is no regular file");
  const fs::path below = folder.path / "absent" / "file";
  EXPECT_TRUE(replace(below, "", "").starts_with("cannot write next to " + below.string() + ": ")) << replace(below, "", "");
}

/// Lets everyone write to a file or folder.
void give_to_all(const fs::path& path) {
#ifdef _WIN32
  std::uint8_t everyone[SECURITY_MAX_SID_SIZE];
  DWORD size = sizeof everyone;
  ASSERT_TRUE(::CreateWellKnownSid(WinWorldSid, nullptr, everyone, &size));
  EXPLICIT_ACCESSW entry{};
  entry.grfAccessPermissions = GENERIC_ALL;
  entry.grfAccessMode = GRANT_ACCESS;
  entry.grfInheritance = NO_INHERITANCE;
  entry.Trustee.TrusteeForm = TRUSTEE_IS_SID;
  entry.Trustee.ptstrName = reinterpret_cast<wchar_t*>(everyone);
  PACL list = nullptr;
  ASSERT_EQ(::SetEntriesInAclW(1, &entry, nullptr, &list), 0u);
  std::wstring name = path.wstring();
  ASSERT_EQ(::SetNamedSecurityInfoW(name.data(), SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, nullptr, nullptr, list, nullptr), 0u);
  ::LocalFree(list);
#else
  fs::permissions(path, fs::perms::all);
#endif
}

TEST(System, LocksAreTakenInTurn) {
  const fs::path path = fs::temp_directory_path() / ("clutch-lock-test-" + std::to_string(detail::process_id()));
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const detail::FileLock lock(path);
        EXPECT_EQ(lock.problem(), "");
        EXPECT_EQ(inside.fetch_add(1), 0);
        std::this_thread::yield();
        inside.fetch_sub(1);
      }
    });
  for (std::thread& t : threads) t.join();
  fs::remove(path.string() + ".lock");
  const detail::FileLock nowhere(path / "no" / "such");
  EXPECT_NE(nowhere.problem().find("cannot lock"), std::string::npos);
}

/// Its holder may be stopped.
TEST(System, ALockIsWaitedForNoLongerThanALimit) {
  const fs::path path = fs::temp_directory_path() / ("clutch-held-lock-test-" + std::to_string(detail::process_id()));
  {
    const detail::FileLock held(path);
    EXPECT_EQ(held.problem(), "");
    const detail::FileLock late(path, std::chrono::milliseconds(30));
    EXPECT_NE(late.problem().find("another process has held it for 30 ms"), std::string::npos) << late.problem();
  }
  EXPECT_EQ(detail::FileLock(path, std::chrono::milliseconds(30)).problem(), "");
#ifndef _WIN32
  // A child that fork() made meanwhile has the open file, but not the lock.
  auto held = std::make_unique<detail::FileLock>(path);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(ends[1]);
    ::_exit(::read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  held.reset();
  EXPECT_EQ(detail::FileLock(path, std::chrono::milliseconds(30)).problem(), "");
  ::close(ends[0]), ::close(ends[1]);
  ::waitpid(child, nullptr, 0);
#endif
  fs::remove(path.string() + ".lock");
}

TEST(System, ProgramsAreFoundInTheSearchPath) {
  EXPECT_FALSE(detail::is_in_search_path("no-such-program-of-clutch"));
#ifndef _WIN32
  EXPECT_TRUE(detail::is_in_search_path("sh"));
  const std::string before = std::getenv("PATH");
  detail::set_environment("PATH", "");
  EXPECT_FALSE(detail::is_in_search_path("sh"));
  detail::set_environment("PATH", "/no/such/folder::/bin");
  EXPECT_TRUE(detail::is_in_search_path("sh"));
  const OwnFolder own;
  fs::create_directories(own.path / "sh");
  detail::set_environment("PATH", own.path.c_str());
  EXPECT_FALSE(detail::is_in_search_path("sh")) << "a folder is no program";
  ::unsetenv("PATH");
  EXPECT_FALSE(detail::is_in_search_path("sh")) << "as LLVM looks for programs";
  detail::set_environment("PATH", before.c_str());
#endif
}

TEST(System, PrivateFilesAreReadInParts) {
  const fs::path path = fs::temp_directory_path() / ("clutch-mapping-test-" + std::to_string(detail::process_id()));
  EXPECT_FALSE(detail::open_private_file(path).exists);
  for (const std::string& text : {std::string(), std::string("bytes")}) {
    const std::span bytes(text);
    const std::array parts{std::as_bytes(bytes)};
    ASSERT_EQ(detail::replace_file(path.string(), parts, 0644), "");
    const detail::PrivateFile file = detail::open_private_file(path);
    EXPECT_TRUE(file.exists);
    EXPECT_EQ(file.refusal, "");
    EXPECT_EQ(file.bytes, text.size());
    EXPECT_EQ(file.read(0, text.size()), text);
    EXPECT_EQ(file.read(text.size(), 0), "");
    EXPECT_FALSE(file.read(1, text.size()));
    EXPECT_FALSE(file.read(1, ~std::uint64_t{0}));
  }
  fs::remove(path);
}

TEST(System, PrivateFoldersRefuseWhatOthersMayWrite) {
  const OwnFolder own;
  const std::string_view parts[] = {"some ", "bytes"};
  {
    const detail::PrivateFolder folder(own.path / "cache", "programs", true);
    ASSERT_TRUE(folder.is_open()) << folder.problem();
    EXPECT_EQ(folder.write("file", parts), "");
    EXPECT_EQ(folder.write("file", parts), "") << "in place of the first";
    EXPECT_EQ(folder.read("file", true).bytes.value_or(folder.read("file").refusal), "some bytes");
    EXPECT_FALSE(folder.read("absent").bytes);
    EXPECT_EQ(folder.read("absent").refusal, "");
    ASSERT_EQ(folder.list().size(), 1u);
    EXPECT_EQ(folder.list()[0].name, "file");
    EXPECT_EQ(folder.list()[0].bytes, 10u);
    const auto age = std::chrono::system_clock::now().time_since_epoch() - std::chrono::nanoseconds(folder.list()[0].used_ns);
    EXPECT_LT(std::abs(std::chrono::duration<double>(age).count()), 3600);
    const fs::path file = own.path / "cache" / "programs" / "file";
    EXPECT_EQ(detail::read_private_file(file).bytes.value_or(""), "some bytes");
    EXPECT_TRUE(detail::is_of_trusted_owner(file, own.path));
    EXPECT_FALSE(detail::is_of_trusted_owner(own.path, file)) << "no regular file";
    give_to_all(file);
    EXPECT_FALSE(detail::is_of_trusted_owner(file, own.path / "cache")) << "others may write to it";
    for (const detail::PrivateBytes& read : {folder.read("file"), detail::read_private_file(file)}) {
      EXPECT_FALSE(read.bytes);
      EXPECT_NE(read.refusal.find("file is not used: others may write to it"), std::string::npos) << read.refusal;
    }
    EXPECT_TRUE(folder.remove("file"));
    EXPECT_TRUE(folder.list().empty());
  }
  give_to_all(own.path / "cache" / "programs");
  const detail::PrivateFolder programs(own.path / "cache", "programs"), cache(own.path / "cache");
  EXPECT_FALSE(programs.is_open());
  EXPECT_NE(programs.refusal().find("programs is not used: others may write to it"), std::string::npos) << programs.problem();
  EXPECT_TRUE(cache.is_open()) << cache.problem();
  EXPECT_FALSE(detail::PrivateFolder(own.path / "absent").is_open());
  EXPECT_EQ(detail::PrivateFolder(own.path / "absent").refusal(), "");
}

TEST(Memory, PagesAreMappedAndGivenBack) {
  const std::size_t page = detail::page_bytes(), bytes = 64 * page;
  for (const detail::MapFor what : {detail::MapFor::use, detail::MapFor::reserve}) {
    std::string why_not;
    auto* memory = static_cast<unsigned char*>(detail::map_memory(bytes, what, why_not));
#ifdef _WIN32
    if (what == detail::MapFor::reserve) {
      EXPECT_EQ(memory, nullptr);
      EXPECT_FALSE(why_not.empty());
      continue;
    }
#else
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (2u << 20), 0u);
#endif
    ASSERT_NE(memory, nullptr) << why_not;
    for (std::size_t i = 0; i < bytes; i += page) EXPECT_EQ(std::exchange(memory[i], 7), 0);
    EXPECT_TRUE(detail::give_back_pages(memory + page, bytes - 2 * page));
    EXPECT_EQ(memory[0], 7);
    EXPECT_EQ(memory[bytes - page], 7);
    memory[page] = 9;
    EXPECT_EQ(memory[page], 9);
    EXPECT_TRUE(detail::protect_pages(memory + page, page, false));
    EXPECT_TRUE(detail::protect_pages(memory + page, page, true));
    EXPECT_EQ(memory[page], 9) << "contents stay";
    detail::unmap_memory(memory, bytes);
  }
  std::string why_not;
  EXPECT_EQ(detail::map_memory(SIZE_MAX - page + 1, detail::MapFor::use, why_not), nullptr);
  EXPECT_NE(why_not.find("cannot map"), std::string::npos);
}

TEST(Memory, TheSystemTellsWhatIsLeft) {
  const detail::HostMemory now = detail::host_memory();
  EXPECT_GT(now.available.value_or(0), 1u << 20);
}

#ifndef _WIN32
TEST(Memory, ControlGroupsCount) {
  const OwnFolder own;
  auto write = [&](const char* path, const char* text) {
    fs::create_directories((own.path / path).parent_path());
    std::ofstream(own.path / path) << text;
  };
  write("proc/meminfo", "MemTotal: 16000 kB\nMemFree: 500 kB\nMemAvailable:    8000 kB\n");
  EXPECT_EQ(detail::host_memory(own.path).available, 8000u << 10);
  // Version 2: the nearest limit above the process counts, less what the group holds without caches.
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "100\n");
  write("sys/fs/cgroup/outer/memory.max", "5000000\n");
  write("sys/fs/cgroup/outer/memory.current", "2000000\n");
  write("sys/fs/cgroup/outer/memory.stat", "anon 1500000\ninactive_file 500000\n");
  EXPECT_EQ(detail::host_memory(own.path).available, 3500000u);
  // Version 1, in a container, whose own group is at the mount.
  write("proc/self/cgroup", "9:cpu:/elsewhere\n4:memory:/docker/0123\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
  EXPECT_EQ(detail::host_memory(own.path).available, 2000000u);
  // More in use than the limit, which was lowered.
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "4000000\n");
  EXPECT_EQ(detail::host_memory(own.path).available, 0u);
  write("proc/self/statm", "1000 300 100 1 0 200 0\n");
  EXPECT_EQ(detail::host_memory(own.path).resident, 200 * detail::page_bytes());
}
#endif

}}  // namespace clutch::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
