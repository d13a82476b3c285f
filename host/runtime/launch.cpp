// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch.hpp"

#include <fmt/format.h>

#include <cstring>

namespace clutch::inline v0::detail {

namespace {

/// Memory of launches that are over. Encoders nest by a few, where an op is made of others.
struct Spare {
  static constexpr int kMost = 4;
  void* blocks[kMost];
  int count = 0;
  ~Spare();
};
thread_local bool t_over = false;  // the thread ends, and with it t_spare
thread_local Spare t_spare;

Spare::~Spare() {
  t_over = true;
  while (count > 0) ::operator delete(blocks[--count]);
}

}  // namespace

void* Launch::operator new(std::size_t size) {
  if (!t_over && t_spare.count > 0) return t_spare.blocks[--t_spare.count];
  return ::operator new(size);
}

void Launch::operator delete(void* memory) noexcept {
  if (!t_over && t_spare.count < Spare::kMost)
    t_spare.blocks[t_spare.count++] = memory;
  else
    ::operator delete(memory);
}

void Launch::bind(const void* data, std::size_t size, const char* type, const char* name) {
  const std::size_t begin = (used_ + 7) / 8 * 8;
  if (!data || size == 0 || !type || !name) [[unlikely]]
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("argument {} must have bytes, a type and a name, got {} bytes or a null pointer", arguments.size(), size));
  if (arguments.full() || size > kMaxBytes || begin + size > kMaxBytes) [[unlikely]]
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("a kernel must have at most {} arguments and {} bytes of them, got more", kMaxArguments, kMaxBytes));
  std::memcpy(bytes_ + begin, data, size);
  arguments.push_back({.size = static_cast<std::uint16_t>(size), .at = static_cast<std::uint16_t>(begin), .type = type, .name = name});
  used_ = begin + size;
}

void Launch::clear() noexcept {
  operands.clear();
  arguments.clear();
  table.first_base = -1;
  table.entries.clear();
  used_ = 0;
}

}  // namespace clutch::inline v0::detail
