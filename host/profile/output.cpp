// SPDX-License-Identifier: Apache-2.0
#include "profile/output.hpp"

#include <clutch/error.hpp>

#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr std::size_t kBuffer = 1 << 16;
constexpr std::size_t kHashes = 1 << 13;
constexpr std::uint32_t kLeastMatch = 4, kMostMatch = 258;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB8'8320u ^ c >> 1 : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr auto kCrc = make_crc_table();

std::uint32_t crc_over(std::string_view bytes, std::uint32_t crc) {
  for (const char c : bytes) crc = kCrc[(crc ^ static_cast<unsigned char>(c)) & 255] ^ crc >> 8;
  return crc;
}

/// The last class whose least value is at most `value`.
template <std::size_t N>
std::size_t class_of(const std::array<std::uint16_t, N>& least, std::uint32_t value) {
  return static_cast<std::size_t>(std::upper_bound(least.begin(), least.end(), value) - least.begin()) - 1;
}

/// A code's bits in the order in which they are written.
std::uint32_t reversed(std::uint32_t code, int count) {
  std::uint32_t result = 0;
  for (int i = 0; i < count; ++i) result |= (code >> i & 1) << (count - 1 - i);
  return result;
}

void little_endian(std::uint32_t value, std::string& out) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> 8 * i & 255);
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) noexcept { return ~crc_over(bytes, 0xFFFF'FFFF); }

Gzip::Gzip() : heads_(kHashes) { input_.reserve(kBlock); }

void Gzip::bits(std::uint32_t value, int count, std::string& out) {
  pending_ |= std::uint64_t{value} << pending_bits_;
  pending_bits_ += count;
  for (; pending_bits_ >= 8; pending_bits_ -= 8, pending_ >>= 8) out += static_cast<char>(pending_ & 255);
}

void Gzip::symbol(std::uint32_t s, std::string& out) {
  if (s < 144)
    bits(reversed(0x30 + s, 8), 8, out);
  else if (s < 256)
    bits(reversed(0x190 + s - 144, 9), 9, out);
  else if (s < 280)
    bits(reversed(s - 256, 7), 7, out);
  else
    bits(reversed(0xC0 + s - 280, 8), 8, out);
}

void Gzip::match(std::uint32_t length, std::uint32_t distance, std::string& out) {
  const std::size_t l = class_of(kDeflateLengths, length), d = class_of(kDeflateDistances, distance);
  symbol(static_cast<std::uint32_t>(257 + l), out);
  bits(length - kDeflateLengths[l], deflate_length_bits(l), out);
  bits(reversed(static_cast<std::uint32_t>(d), 5), 5, out);
  bits(distance - kDeflateDistances[d], deflate_distance_bits(d), out);
}

void Gzip::block(bool last, std::string& out) {
  if (!std::exchange(begun_, true)) out.append("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  bits(last ? 1 : 0, 1, out);
  bits(1, 2, out);  // fixed codes
  std::fill(heads_.begin(), heads_.end(), -1);
  const auto* data = reinterpret_cast<const unsigned char*>(input_.data());
  const std::size_t size = input_.size();
  crc_ = crc_over(input_, crc_);
  size_ += static_cast<std::uint32_t>(size);
  for (std::size_t i = 0; i < size;) {
    std::size_t length = 0, from = 0;
    if (i + kLeastMatch <= size) {
      const std::uint32_t four = data[i] | data[i + 1] << 8 | data[i + 2] << 16 | static_cast<std::uint32_t>(data[i + 3]) << 24;
      std::int32_t& head = heads_[four * 2654435761u >> 19];
      if (head >= 0 && i - static_cast<std::size_t>(head) <= 32768) {
        from = static_cast<std::size_t>(head);
        while (length < kMostMatch && i + length < size && data[from + length] == data[i + length]) ++length;
      }
      head = static_cast<std::int32_t>(i);
    }
    if (length >= kLeastMatch) {
      match(static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(i - from), out);
      i += length;
    } else {
      symbol(data[i++], out);
    }
  }
  symbol(256, out);
  input_.clear();
}

void Gzip::add(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const std::size_t taken = std::min(kBlock - input_.size(), bytes.size());
    input_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (input_.size() == kBlock) block(false, out);
  }
}

void Gzip::finish(std::string& out) {
  block(true, out);
  if (pending_bits_ > 0) bits(0, 8 - pending_bits_, out);
  little_endian(~crc_, out);
  little_endian(size_, out);
}

OutputFile::OutputFile(std::string path, std::string_view op) : path_(std::move(path)), op_(op), compressed_(path_.ends_with(".gz")) {
  static std::atomic<unsigned> count{0};
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (path_.empty() || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)))
    throw Error(ErrorCode::io, op_, fmt::format("the output must be a file, new or regular, got '{}'", path_));
  temporary_ = fmt::format("{}.{}.{}.tmp", path_, process_id(), count++);
  errno = 0;
  file_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!file_) fail("cannot be made");
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  file_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void OutputFile::fail(std::string_view what) {
  const int reason = errno;
  throw Error(ErrorCode::io, op_,
              fmt::format("the output must be a file that can be written, got {}, which {}: {}", path_, what,
                          reason == 0 ? std::string("no reason given") : std::generic_category().message(reason)));
}

void OutputFile::flush() {
  std::string_view bytes = buffer_;
  if (compressed_) {
    gzip_.add(buffer_, packed_);
    bytes = packed_;
  }
  errno = 0;
  if (!file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) fail("cannot be written");
  buffer_.clear();
  packed_.clear();
}

void OutputFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBuffer) flush();
}

void OutputFile::commit() {
  flush();
  if (compressed_) {
    gzip_.finish(packed_);
    if (!file_.write(packed_.data(), static_cast<std::streamsize>(packed_.size()))) fail("cannot be written");
  }
  errno = 0;
  file_.close();
  if (!file_) fail("cannot be written");
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) throw Error(ErrorCode::io, op_, fmt::format("the output must be a file that can be replaced, got {}: {}", path_, error.message()));
  temporary_.clear();
}

}}}  // namespace clutch::v0::detail
