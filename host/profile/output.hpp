// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Writes gzip: deflate's fixed codes, with matches within blocks of 64 KiB. No library is needed, and traces shrink to a tenth.
class Gzip {
 public:
  Gzip();
  void add(std::string_view bytes, std::string& out);
  /// Ends the file.
  void finish(std::string& out);

 private:
  static constexpr std::size_t kBlock = 1 << 16;
  void block(bool last, std::string& out);
  void bits(std::uint32_t value, int count, std::string& out);
  void symbol(std::uint32_t symbol, std::string& out);
  void match(std::uint32_t length, std::uint32_t distance, std::string& out);
  std::string input_;
  std::vector<std::int32_t> heads_;  ///< last place of three bytes in the block, by hash
  std::uint64_t pending_ = 0;
  int pending_bits_ = 0;
  std::uint32_t crc_ = 0xFFFF'FFFF, size_ = 0;
  bool begun_ = false;
};

/// A file that appears whole at its path, or not at all: it is written beside it and renamed by commit(). Compressed if the path ends in ".gz".
class OutputFile {
 public:
  /// Errors: io if the path is no regular file, or a file beside it cannot be made.
  OutputFile(std::string path, std::string_view op);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Errors: io if the system refuses, for example as the disk is full.
  void write(std::string_view bytes);
  void commit();

 private:
  void flush();
  [[noreturn]] void fail(std::string_view what);
  std::string path_, temporary_, buffer_, packed_;
  std::string_view op_;
  std::ofstream file_;
  Gzip gzip_;
  bool compressed_;
};

}}}  // namespace clutch::v0::detail
