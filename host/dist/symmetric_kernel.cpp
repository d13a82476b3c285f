// SPDX-License-Identifier: Apache-2.0
#include "dist/symmetric.hpp"

#include <fmt/format.h>
#include <clutch/dist/symmetric_kernel.hpp>

namespace clutch { inline namespace v0 { namespace dist {

namespace {

const detail::SymmetricImpl& reached(const Symmetric& memory, const char* op) {
  if (memory.empty()) throw Error(ErrorCode::invalid_argument, op, "the Symmetric must be a made one, got an empty one");
  if (!memory.all_direct()) throw Error(ErrorCode::not_supported, op, "kernels of all ranks must reach each other's memory, got ranks whose do not");
  return *memory.impl();
}

/// "((r) == 0 ? name0 : (r) == 1 ? name1 : name2)"
std::string choice(std::string_view name, int ranks) {
  std::string text = "(";
  for (int r = 0; r + 1 < ranks; ++r) text += fmt::format("(r) == {} ? {}{} : ", r, name, r);
  return text + fmt::format("{}{})", name, ranks - 1);
}

}  // namespace

std::string symmetric_text(const Symmetric& memory, std::string_view text) {
  const detail::SymmetricImpl& impl = reached(memory, "dist::symmetric_text");
  const int n = impl.group().size();
  std::string parameters;
  for (int r = 0; r < n; ++r) parameters += fmt::format("__global uchar* clutch_part{}, ", r);
  for (int r = 0; r < n; ++r) parameters += fmt::format("__global uint* clutch_counters{}, ", r);
  return fmt::format(
      "#define CLUTCH_RANKS {}\n"
      "#define CLUTCH_RANK clutch_rank\n"
      "#define CLUTCH_SYMMETRIC {}uint clutch_rank\n"
      "#define CLUTCH_PART(T, r) ((__global T*){})\n"
      "#define CLUTCH_COUNTERS(r) {}\n"
      "#define CLUTCH_SIGNAL(to, channel, add) (mem_fence(CLK_GLOBAL_MEM_FENCE), (void)atomic_add((volatile __global uint*)CLUTCH_COUNTERS(to) + "
      "clutch_rank * {}u + (channel), (uint)(add)))\n"
      "#define CLUTCH_COUNTER(from, channel) (*((volatile __global uint*)CLUTCH_COUNTERS(clutch_rank) + (from) * {}u + (channel)))\n"
      "#line 1\n{}",
      n, parameters, choice("clutch_part", n), choice("clutch_counters", n), impl.channels(), impl.channels(), text);
}

std::vector<Argument> symmetric_arguments(const Symmetric& memory, std::vector<Argument> own) {
  const detail::SymmetricImpl& impl = reached(memory, "dist::symmetric_arguments");
  const int n = impl.group().size();
  for (int r = 0; r < n; ++r) own.push_back(inout(impl.part(r)));
  for (int r = 0; r < n; ++r) own.push_back(inout(impl.counters(r)));
  own.push_back(value(static_cast<std::uint32_t>(impl.group().rank()), "rank"));
  return own;
}

}}}  // namespace clutch::v0::dist
