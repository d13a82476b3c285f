// SPDX-License-Identifier: Apache-2.0
// Files of kernel packs, without a device: what is written is read, and nothing else is.
#include "program/pack_file.hpp"
#include "support/fixture.hpp"
#include "support/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace clutch::testing { namespace {

namespace fs = std::filesystem;
using detail::PackContents, detail::PackFile, detail::PackProgram;

PackProgram program(const std::string& entry, const std::string& source, std::size_t bytes, bool keeps_source = false) {
  PackProgram p{.key = detail::pack_key("-cl-std=CL1.2", entry, source), .entry = entry, .options = "-cl-std=CL1.2"};
  p.launches = {{.x = 1, .y = 1, .z = 1}, {.x = 64, .y = 2, .z = 1, .wide = true}};
  for (std::size_t i = 0; i < bytes; ++i) p.binary += static_cast<char>(i * 31 + entry.size());
  if (keeps_source) p.source = source;
  return p;
}

PackContents small_pack() {
  PackContents pack{.version = "0.2.0"};
  pack.targets = {{.isa = "pocl-3.1-a", .driver = "PoCL", .features = "avx2 fma", .device = "one", .made_by = "LLVM", .proved = ""}};
  pack.programs = {program("one", "a", 40), program("two", "b", 70), program("three", "c", 1)};
  return pack;
}

PackFile::Opened parse(const std::string& bytes) { return PackFile::parse(bytes, "a file"); }

void expect_equal(const PackContents& got, const PackContents& want) {
  ASSERT_EQ(got.programs.size(), want.programs.size());
  EXPECT_EQ(got.version, want.version);
  for (const PackProgram& w : want.programs) {
    const auto found = std::find_if(got.programs.begin(), got.programs.end(), [&](const PackProgram& g) { return g.key == w.key && g.target == w.target; });
    ASSERT_NE(found, got.programs.end());
    EXPECT_EQ(found->entry, w.entry);
    EXPECT_EQ(found->options, w.options);
    EXPECT_EQ(found->launches, w.launches);
    EXPECT_EQ(found->binary, w.binary);
    EXPECT_EQ(found->source, w.source);
  }
}

TEST(PackFiles, WhatIsWrittenIsRead) {
  PackContents recording = small_pack();
  recording.recording = true;
  recording.targets.push_back({.isa = "ptx-sm_90"});
  recording.programs.push_back(program("two", "b", 70, true));
  recording.programs.back().target = 1;
  for (const PackContents& all : {small_pack(), recording}) {
    const std::string bytes = encode_pack(all);
    const PackFile::Opened opened = parse(bytes);
    ASSERT_TRUE(opened.file) << opened.problem;
    EXPECT_EQ(opened.file->recording(), all.recording);
    std::string problem;
    expect_equal(opened.file->contents(problem), all);
    EXPECT_EQ(problem, "");
    EXPECT_TRUE(is_same_target(opened.file->targets()[0], all.targets[0]));
    for (const PackProgram& p : all.programs) {
      const PackFile::IndexRow* row = opened.file->find(p.key);
      ASSERT_NE(row, nullptr);
      EXPECT_EQ(opened.file->blob(row->binary), p.binary);
    }
    EXPECT_EQ(opened.file->find(detail::sha256("absent")), nullptr);
  }
}

TEST(PackFiles, KeysTellOptionsEntriesAndSourcesApart) {
  EXPECT_NE(detail::pack_key("a", "b", "c"), detail::pack_key("a", "c", "b"));
  EXPECT_NE(detail::pack_key("a\nb", "", ""), detail::pack_key("a", "b", ""));
  EXPECT_NE(detail::pack_key("", "a", "b"), detail::pack_key("a", "", "b"));
}

TEST(PackFiles, EveryTruncationIsRefused) {
  const std::string bytes = encode_pack(small_pack());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const PackFile::Opened opened = parse(bytes.substr(0, n));
    EXPECT_FALSE(opened.file) << n;
    EXPECT_FALSE(opened.problem.empty()) << n;
  }
  EXPECT_FALSE(parse(bytes + '\0').file);
}

TEST(PackFiles, EveryFlippedBitIsNoticed) {
  const PackContents whole = small_pack();
  const std::string bytes = encode_pack(whole);
  std::size_t blobs = 0;
  for (const PackProgram& p : whole.programs) blobs += p.binary.size();
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const PackFile::Opened opened = parse(damaged);
      EXPECT_EQ(static_cast<bool>(opened.file), at >= bytes.size() - blobs) << at;
      if (!opened.file) continue;
      std::string problem;
      const PackContents rest = opened.file->contents(problem);
      EXPECT_EQ(rest.programs.size(), whole.programs.size() - 1) << at;
      EXPECT_NE(problem.find("is damaged"), std::string::npos);
    }
}

/// Makes digests right again, as someone would who writes a pack by hand.
void sign(std::string& bytes) {
  std::uint64_t index = 0;
  std::memcpy(&index, bytes.data() + 24, sizeof index);
  index = std::min<std::uint64_t>(index, bytes.size() - 96);
  const detail::Digest of_index = detail::sha256(std::string_view(bytes).substr(96, static_cast<std::size_t>(index)));
  std::memcpy(bytes.data() + 32, of_index.data(), of_index.size());
  const detail::Digest of_header = detail::sha256(std::string_view(bytes).substr(0, 64));
  std::memcpy(bytes.data() + 64, of_header.data(), of_header.size());
}

TEST(PackFiles, HostileNumbersAreRefusedOrHarmless) {
  const PackContents whole = small_pack();
  const std::string bytes = encode_pack(whole);
  std::size_t blobs = 0, refused = 0;
  for (const PackProgram& p : whole.programs) blobs += p.binary.size();
  for (std::size_t at = 8; at + 8 <= bytes.size() - blobs; ++at)
    for (const std::uint64_t number :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x7FFFFFFF}, std::uint64_t{0xFFFFFFFF}, ~std::uint64_t{0}, std::uint64_t{1} << 63})
      for (const std::size_t width : {std::size_t{4}, std::size_t{8}}) {
        std::string hostile = bytes;
        std::memcpy(hostile.data() + at, &number, width);
        sign(hostile);
        const PackFile::Opened opened = parse(hostile);
        EXPECT_NE(static_cast<bool>(opened.file), !opened.problem.empty());
        if (!opened.file) {
          ++refused;
          continue;
        }
        std::string problem;
        EXPECT_LE(opened.file->contents(problem).programs.size(), whole.programs.size());
        opened.file->find(whole.programs[0].key);
        opened.file->blob(~0u);
      }
  EXPECT_GT(refused, 1000u);
}

TEST(PackFiles, TextsThatATerminalWouldObeyAreRefused) {
  PackContents pack = small_pack();
  pack.targets[0].isa = "pocl\x1b[2J";
  EXPECT_EQ(parse(encode_pack(pack)).file->targets()[0].isa, "pocl?[2J") << "what is written";
  std::string bytes = encode_pack(small_pack());
  const std::size_t at = bytes.find("pocl-3.1-a");
  bytes[at] = '\x1b';
  sign(bytes);
  EXPECT_NE(parse(bytes).problem.find("printable"), std::string::npos);
}

TEST(PackFiles, MergingKeepsTheBinaryThatContainsMore) {
  PackContents a = small_pack(), b = small_pack();
  b.programs = {program("two", "b", 90), program("four", "d", 5)};
  b.programs[0].launches.push_back({.x = 8, .y = 1, .z = 1});
  b.targets[0].device = "another";
  const std::string more = b.programs[0].binary;
  EXPECT_TRUE(merge_packs(a, b).empty());
  ASSERT_EQ(a.targets.size(), 1u) << "the same driver and ISA";
  ASSERT_EQ(a.programs.size(), 4u);
  EXPECT_EQ(a.programs[1].binary, more);
  EXPECT_EQ(a.programs[1].launches.size(), 3u);
  // Neither contains all.
  PackContents c = small_pack();
  c.programs = {program("two", "b", 20)};
  c.programs[0].launches = {{.x = 3, .y = 1, .z = 1}};
  EXPECT_EQ(merge_packs(a, c), std::vector<std::string>{"two"});
  EXPECT_EQ(a.programs[1].binary, more);
  EXPECT_EQ(a.programs[1].launches.size(), 3u) << "what the binary contains";
  // Other drivers compile a program for all local sizes.
  PackContents d = small_pack(), e = c;
  d.targets[0].isa = e.targets[0].isa = "ptx-sm_90";
  EXPECT_TRUE(merge_packs(d, e).empty());
  EXPECT_EQ(d.programs[1].launches.size(), 3u) << "those of both";
  // A proof stays if both have the same.
  PackContents proved = small_pack(), unproved = small_pack();
  proved.targets[0].proved = "ctest";
  PackContents both = proved;
  merge_packs(both, proved);
  EXPECT_EQ(both.targets[0].proved, "ctest");
  merge_packs(both, unproved);
  EXPECT_EQ(both.targets[0].proved, "");
  merge_packs(unproved, proved);
  EXPECT_EQ(unproved.targets[0].proved, "");
  PackContents other = small_pack();
  other.targets[0].driver = "another";
  EXPECT_TRUE(merge_packs(a, other).empty());
  EXPECT_EQ(a.targets.size(), 2u);
  EXPECT_EQ(a.programs.size(), 7u);
  EXPECT_NE(parse(encode_pack(a)).problem.find("must be for one ISA"), std::string::npos);
}

/// Whoever truncates a file in place must not end the processes that have it open.
TEST(PackFiles, OneThatBecomesShorterIsDamaged) {
  const fs::path path = fs::temp_directory_path() / ("clutch-short-pack-" + std::to_string(::getpid()));
  PackContents large = small_pack();
  large.programs[0].binary.assign(1 << 16, 'x');
  ASSERT_EQ(write_pack(path, large), "");
  const PackFile::Opened opened = PackFile::open(path);
  ASSERT_TRUE(opened.file) << opened.problem;
  ASSERT_EQ(::truncate(path.c_str(), 100), 0);
  for (const PackFile::IndexRow& row : opened.file->rows()) EXPECT_FALSE(opened.file->blob(row.binary));
  fs::remove(path);
}

TEST(PackFiles, OfOthersAreNotOpened) {
  const fs::path path = fs::temp_directory_path() / ("clutch-pack-file-" + std::to_string(::getpid()));
  ASSERT_EQ(write_pack(path, small_pack()), "");
  EXPECT_TRUE(PackFile::open(path).file);
  for (const unsigned mode : {0666u, 0662u, 0664u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_NE(PackFile::open(path).problem.find("others may write to it"), std::string::npos);
  }
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(PackFile::open(path).file);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    EXPECT_NE(PackFile::open(path).problem.find("it belongs to user 65534"), std::string::npos);
  }
  fs::remove(path);
  EXPECT_FALSE(PackFile::open(path).exists);
  fs::create_directory(path);
  EXPECT_NE(PackFile::open(path).problem.find("no regular file"), std::string::npos);
  fs::remove(path);
  std::ofstream(path) << "";
  EXPECT_NE(PackFile::open(path).problem.find("must be a kernel pack"), std::string::npos) << "an empty file";
  fs::remove(path);
}

}}  // namespace clutch::testing
