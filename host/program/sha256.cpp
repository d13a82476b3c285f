// SPDX-License-Identifier: Apache-2.0
#include "program/sha256.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

// FIPS 180-4: `k` holds the first 32 bits of the fractional parts of the cube roots of the first 64 primes, the start values those of the square roots of the
// first 8.
struct Constants {
  std::array<std::uint32_t, 64> k{};
  std::array<std::uint32_t, 8> start{};
  Constants() {
    int found = 0;
    for (int n = 2; found < 64; ++n) {
      bool prime = true;
      for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
      if (!prime) continue;
      auto fraction = [](long double x) { return static_cast<std::uint32_t>((x - std::floor(x)) * 4294967296.0L); };
      if (found < 8) start[static_cast<std::size_t>(found)] = fraction(std::sqrt(static_cast<long double>(n)));
      k[static_cast<std::size_t>(found++)] = fraction(std::cbrt(static_cast<long double>(n)));
    }
  }
};

void absorb(std::array<std::uint32_t, 8>& h, const std::uint8_t* block, const Constants& c) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = static_cast<std::uint32_t>(block[4 * i]) << 24 | static_cast<std::uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<std::uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  for (std::size_t i = 16; i < 64; ++i) {
    auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto v = h;
  for (std::size_t i = 0; i < 64; ++i) {
    auto s1 = std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
    auto choose = (v[4] & v[5]) ^ (~v[4] & v[6]);
    auto t1 = v[7] + s1 + choose + c.k[i] + w[i];
    auto s0 = std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
    auto majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    auto t2 = s0 + majority;
    v = {t1 + t2, v[0], v[1], v[2], v[3] + t1, v[4], v[5], v[6]};
  }
  for (std::size_t i = 0; i < 8; ++i) h[i] += v[i];
}

}  // namespace

Digest sha256(std::string_view bytes) {
  static const Constants constants;
  auto h = constants.start;
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::size_t full = bytes.size() / 64 * 64;
  for (std::size_t at = 0; at < full; at += 64) absorb(h, data + at, constants);
  std::array<std::uint8_t, 128> tail{};
  std::size_t rest = bytes.size() - full;
  if (rest > 0) std::memcpy(tail.data(), data + full, rest);
  tail[rest] = 0x80;
  std::size_t blocks = rest < 56 ? 1 : 2;
  std::uint64_t bit_count = static_cast<std::uint64_t>(bytes.size()) * 8;
  for (std::size_t i = 0; i < 8; ++i) tail[blocks * 64 - 1 - i] = static_cast<std::uint8_t>(bit_count >> (8 * i));
  for (std::size_t i = 0; i < blocks; ++i) absorb(h, tail.data() + 64 * i, constants);
  Digest digest;
  for (std::size_t i = 0; i < 32; ++i) digest[i] = static_cast<std::uint8_t>(h[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string to_hex(const Digest& digest) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (std::uint8_t byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}}}  // namespace clutch::v0::detail
