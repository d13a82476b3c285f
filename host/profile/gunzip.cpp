// SPDX-License-Identifier: Apache-2.0
// Reads gzip (RFC 1952) and deflate (RFC 1951), so that traces that we or others compressed can be compared without a library.
#include "profile/output.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 32;

[[noreturn]] void fail(const char* why) { throw std::runtime_error(why); }

/// Bits of a deflate stream, from the lowest of each byte on.
class Bits {
 public:
  explicit Bits(std::string_view bytes) : bytes_(bytes) {}
  std::uint32_t take(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i) value |= one() << i;
    return value;
  }
  std::uint32_t one() {
    if (left_ == 0) byte_ = byte(), left_ = 8;
    const std::uint32_t bit = byte_ & 1u;
    byte_ >>= 1, --left_;
    return bit;
  }
  /// Drops what is left of a byte.
  void align() { left_ = 0; }
  std::uint32_t byte() {
    if (at_ == bytes_.size()) fail("it ends too early");
    return static_cast<unsigned char>(bytes_[at_++]);
  }
  std::uint32_t word(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i) value |= byte() << 8 * i;
    return value;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint32_t byte_ = 0;
  int left_ = 0;
};

/// A Huffman code, given by the lengths of its symbols.
class Code {
 public:
  explicit Code(std::span<const std::uint8_t> lengths) {
    for (const std::uint8_t n : lengths) ++counts_.at(n);
    counts_[0] = 0;
    int room = 1;  // codes of a length that are left
    for (std::size_t n = 1; n <= kLongest; ++n) {
      room = 2 * room - counts_.at(n);
      if (room < 0) fail("a code in it has too many symbols");
    }
    for (std::uint8_t n = 1; n <= kLongest; ++n)
      for (std::size_t s = 0; s < lengths.size(); ++s)
        if (lengths[s] == n) symbols_.push_back(static_cast<std::uint16_t>(s));
  }
  std::uint32_t read(Bits& bits) const {
    // Codes of one length are consecutive numbers, and follow those of shorter ones.
    int code = 0, first = 0, before = 0;
    for (std::size_t n = 1; n <= kLongest; ++n) {
      code |= static_cast<int>(bits.one());
      const int count = counts_.at(n);
      if (code - first < count) return symbols_[static_cast<std::size_t>(before + code - first)];
      before += count;
      first = 2 * (first + count);
      code *= 2;
    }
    fail("a code in it has no symbol");
  }

 private:
  static constexpr std::size_t kLongest = 15;
  std::array<int, kLongest + 1> counts_{};
  std::vector<std::uint16_t> symbols_;
};

struct Codes {
  Code literals, distances;
};

Codes fixed_codes() {
  std::array<std::uint8_t, 288> lengths{};
  std::fill_n(lengths.begin(), 144, std::uint8_t{8});
  std::fill_n(lengths.begin() + 144, 112, std::uint8_t{9});
  std::fill_n(lengths.begin() + 256, 24, std::uint8_t{7});
  std::fill_n(lengths.begin() + 280, 8, std::uint8_t{8});
  std::array<std::uint8_t, 30> distances{};
  distances.fill(5);
  return {Code(lengths), Code(distances)};
}

Codes own_codes(Bits& bits) {
  constexpr std::array<std::uint8_t, 19> kOrder{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  const std::size_t literals = bits.take(5) + 257, distances = bits.take(5) + 1, kept = bits.take(4) + 4;
  std::array<std::uint8_t, 19> short_lengths{};
  for (std::size_t i = 0; i < kept; ++i) short_lengths.at(kOrder.at(i)) = static_cast<std::uint8_t>(bits.take(3));
  const Code of_lengths(short_lengths);
  std::vector<std::uint8_t> lengths;
  while (lengths.size() < literals + distances) {
    const std::uint32_t symbol = of_lengths.read(bits);
    if (symbol < 16) {
      lengths.push_back(static_cast<std::uint8_t>(symbol));
      continue;
    }
    if (symbol == 16 && lengths.empty()) fail("a code in it repeats nothing");
    const std::uint8_t repeated = symbol == 16 ? lengths.back() : std::uint8_t{0};
    lengths.insert(lengths.end(), symbol == 16 ? 3 + bits.take(2) : symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7), repeated);
  }
  if (lengths.size() != literals + distances) fail("a code in it has too many symbols");
  const std::span<const std::uint8_t> all(lengths);
  return {Code(all.first(literals)), Code(all.subspan(literals))};
}

void inflate_block(Bits& bits, const Codes& codes, std::size_t first, std::string& out) {
  for (;;) {
    const std::uint32_t symbol = codes.literals.read(bits);
    if (symbol == 256) return;
    if (out.size() > kMostBytes) fail("it holds more than 4 GiB");
    if (symbol < 256) {
      out += static_cast<char>(symbol);
      continue;
    }
    const std::size_t l = symbol - 257;
    if (l >= kDeflateLengths.size()) fail("a length in it is none");
    std::size_t length = kDeflateLengths.at(l) + bits.take(deflate_length_bits(l));
    const std::size_t d = codes.distances.read(bits);
    if (d >= kDeflateDistances.size()) fail("a distance in it is none");
    const std::size_t distance = kDeflateDistances.at(d) + bits.take(deflate_distance_bits(d));
    if (distance > out.size() - first) fail("a distance in it reaches before its begin");
    for (; length > 0; --length) out += out[out.size() - distance];
  }
}

void skip_header(Bits& in) {
  if (in.word(2) != 0x8B1F || in.byte() != 8) fail("it has another header than gzip's");
  const std::uint32_t flags = in.byte();
  in.word(4), in.word(2);  // time, level and system
  if (flags & 4)
    for (std::uint32_t left = in.word(2); left > 0; --left) in.byte();
  for (const std::uint32_t text : {8u, 16u})  // name, comment
    if (flags & text)
      while (in.byte() != 0) {
      }
  if (flags & 2) in.word(2);
}

}  // namespace

std::string gunzip(std::string_view bytes) {
  std::string out;
  Bits in(bytes);
  do {
    skip_header(in);
    const std::size_t first = out.size();
    for (bool last = false; !last;) {
      last = in.one() != 0;
      switch (in.take(2)) {
        case 0: {
          in.align();
          const std::uint32_t length = in.word(2);
          if (in.word(2) != (length ^ 0xFFFFu)) fail("a block in it tells two lengths");
          for (std::uint32_t i = 0; i < length; ++i) out += static_cast<char>(in.byte());
          break;
        }
        case 1: inflate_block(in, fixed_codes(), first, out); break;
        case 2: inflate_block(in, own_codes(in), first, out); break;
        default: fail("a block in it is of no kind"); break;
      }
    }
    in.align();
    const std::string_view member = std::string_view(out).substr(first);
    if (in.word(4) != crc32(member)) fail("its checksum is another");
    if (in.word(4) != static_cast<std::uint32_t>(member.size())) fail("its length is another");
  } while (!in.at_end());
  return out;
}

}}}  // namespace clutch::v0::detail
