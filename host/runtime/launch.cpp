// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch.hpp"

#include <fmt/format.h>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Free list of a thread's Launch objects. Encoders nest a few deep where an op calls other ops. `t_spare` has no destructor, because access to a thread_local
/// variable with a destructor costs a function call; `t_at_end` frees the list.
struct Spare {
  static constexpr int kMost = 4;
  void* blocks[kMost];
  int count;
  bool used, over;
};
constinit thread_local Spare t_spare{};

struct AtThreadEnd {
  ~AtThreadEnd() {
    t_spare.over = true;
    while (t_spare.count > 0) ::operator delete(t_spare.blocks[--t_spare.count]);
  }
  void register_once() const noexcept { t_spare.used = true; }
};
thread_local const AtThreadEnd t_at_end;

}  // namespace

void* Launch::operator new(std::size_t size) {
  Spare& spare = t_spare;
  return spare.count > 0 ? spare.blocks[--spare.count] : ::operator new(size);
}

void Launch::operator delete(void* memory) noexcept {
  Spare& spare = t_spare;
  if (spare.over || spare.count == Spare::kMost) {
    ::operator delete(memory);
    return;
  }
  if (!spare.used) [[unlikely]]
    t_at_end.register_once();
  spare.blocks[spare.count++] = memory;
}

void Launch::refuse(const void* data, std::size_t size, const char* type, const char* name) const {
  if (!data || size == 0 || !type || !name)
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("argument {} must have bytes, a type and a name, got {} bytes or a null pointer", arguments.size(), size));
  refuse_more();
}

void Launch::refuse_more() const {
  throw Error(ErrorCode::invalid_argument, op, fmt::format("a kernel must have at most {} arguments and {} bytes of them, got more", kMaxArguments, kMaxBytes));
}

void Launch::append(const Launch& other) {
  check_fits(other.arguments.size());
  const auto first_operand = static_cast<int>(operands.size()), first_argument = static_cast<int>(arguments.size());
  for (BoundArgument argument : other.arguments) {
    if (argument.kind == BoundArgument::Kind::bytes) {
      bind(other.bytes_ + argument.at, argument.size, argument.type, argument.name);
      continue;
    }
    if (argument.use >= 0) argument.use += first_operand;
    arguments.push_back(argument);
  }
  operands.insert(operands.end(), other.operands.begin(), other.operands.end());
  if (other.table.first_base < 0) return;
  table = other.table;
  table.first_base += first_argument;
  for (int& entry : table.entries)
    if (entry >= 0) entry += first_operand;
}

void Launch::clear() noexcept {
  operands.clear();
  arguments.clear();
  kept.clear();
  clear_cost();
  table.first_base = -1;
  table.entries.clear();
  used_ = 0;
}

}}}  // namespace clutch::v0::detail
