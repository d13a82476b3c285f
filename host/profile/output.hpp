// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

// Deflate's classes of lengths and distances (RFC 1951, 3.2.5): the least value of each, and how many bits follow.
inline constexpr std::array<std::uint16_t, 29> kDeflateLengths{3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                               31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr int deflate_length_bits(std::size_t c) { return c < 8 || c == 28 ? 0 : static_cast<int>(c - 4) / 4; }
inline constexpr std::array<std::uint16_t, 30> kDeflateDistances{1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
                                                                 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr int deflate_distance_bits(std::size_t c) { return c < 4 ? 0 : static_cast<int>(c - 2) / 2; }

/// gzip's checksum.
std::uint32_t crc32(std::string_view bytes) noexcept;
/// What a gzip file holds, of any compressor. Throws std::runtime_error, which tells what is wrong with "it", if the bytes are none.
std::string gunzip(std::string_view bytes);

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
