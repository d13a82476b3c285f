// SPDX-License-Identifier: Apache-2.0
#include "dist/row_kernels.hpp"

#include <fmt/format.h>
#include <clutch/storage.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

// Buffers of other ranks that one launch takes: arguments of a kernel may be 1024 bytes together.
constexpr std::size_t kPeers = 16;
// Grids do not depend on sizes: what has nothing to do returns.
constexpr std::int64_t kPlaceItems = 64;

constexpr std::string_view kShow = R"(
__kernel void dist_show_rows(__global uchar* words_base, ulong words_offset, __global const uchar* splits_base, ulong splits_offset,
                             ulong ranks, ulong experts, ulong in_rows, ulong out_rows, uint by_rank, uint has_offsets) {
  __global long* words = (__global long*)(words_base + words_offset);
  __global const long* splits = (__global const long*)(splits_base + splits_offset);
  const ulong blocks = ranks * experts, part = (blocks + get_global_size(0) - 1) / get_global_size(0);
  const ulong begin = min((ulong)get_global_id(0) * part, blocks), end = min(begin + part, blocks);
  ulong first = 0;
  if (begin == 0) words[0] = (long)out_rows;
  if (!has_offsets)
    for (ulong i = 0; i < begin; ++i) first += (ulong)splits[i];
  for (ulong i = begin; i < end; ++i) {
    const long rows = splits[i];
    if (has_offsets) first = (ulong)splits[blocks + i];
    const ulong to = by_rank ? i : i % ranks * experts + i / ranks;
    const bool fits = rows == 0 || (rows > 0 && first <= in_rows && (ulong)rows <= in_rows - first);
    words[2 + 2 * to] = fits ? rows : -1;
    words[3 + 2 * to] = (long)first;
    first += (ulong)rows;
  }
}
)";

// Item d finds out whether the rows for rank d fit; that of this rank says where they go.
constexpr std::string_view kPlace = R"(
__kernel void dist_place_rows(__global uchar* words_base, ulong words_offset, __global uchar* out_base, ulong out_offset, PEER_PARAMETERS,
                              ulong peer_stride, ulong ranks, ulong experts, ulong rank, ulong align, ulong verdicts_at, ulong table_at, uint by_rank) {
  const ulong to = get_global_id(0);
  if (to >= ranks) return;
  __global long* verdicts = (__global long*)(words_base + words_offset) + verdicts_at;
  __global long* table = (__global long*)(words_base + words_offset) + table_at;
  __global long* out = (__global long*)(out_base + out_offset);
  const ulong blocks = ranks * experts, majors = by_rank ? ranks : experts, minors = by_rank ? experts : ranks;
  ulong at = 0, dense = 0, wrong = 0;
  for (ulong major = 0; major < majors; ++major) {
    ulong taken = 0;
    for (ulong minor = 0; minor < minors; ++minor) {
      const ulong from = by_rank ? major : minor, expert = by_rank ? minor : major, block = major * minors + minor;
      __global const long* pair = PEER_WORDS(from) + 2 + 2 * (to * experts + expert);
      long rows = pair[0];
      if (rows < 0 && wrong == 0) wrong = from + 1;
      if (rows < 0) rows = 0;
      if (to == rank) {
        out[block] = rows;
        out[blocks + block] = (long)(at + taken);
        table[3 * block] = (long)dense;
        table[3 * block + 1] = pair[1];
        table[3 * block + 2] = (long)(at + taken);
        dense += (ulong)rows;
      }
      taken += (ulong)rows;
    }
    at += align != 0 ? max((taken + align - 1) / align * align, align) : taken;
  }
  if (to == rank) table[3 * blocks] = (long)dense;
  verdicts[to] = wrong != 0 ? (long)wrong : at > (ulong)PEER_WORDS(to)[0] ? -(long)at : 0;
}
)";

// Each work-group copies as many bytes, whatever blocks they are of; neighbouring items copy neighbouring words.
constexpr std::string_view kCopy = R"(
__kernel void dist_copy_rows(__global uchar* out_base, ulong out_offset, __global const uchar* table_base, ulong table_offset,
                             __global const uchar* verdicts_base, ulong verdicts_offset, PEER_PARAMETERS,
                             ulong blocks, ulong row, ulong minors, ulong verdicts, ulong first_peer, uint by_rank) {
  __global const long* verdict = (__global const long*)(verdicts_base + verdicts_offset);
  for (ulong i = 0; i < verdicts; ++i)
    if (verdict[i] != 0) return;
  __global const long* table = (__global const long*)(table_base + table_offset);
  __global UNIT* out = (__global UNIT*)(out_base + out_offset);
  const ulong total = (ulong)table[3 * blocks] * row, part = ((total + get_num_groups(0) - 1) / get_num_groups(0) + 63) / 64 * 64;
  ulong at = get_group_id(0) * part;
  const ulong end = min(at + part, total);
  if (at >= end) return;
  // The last block that begins there or before.
  ulong block = 0, behind = blocks;
  while (behind - block > 1) {
    const ulong middle = (block + behind) / 2;
    if ((ulong)table[3 * middle] * row <= at)
      block = middle;
    else
      behind = middle;
  }
  for (; at < end; ++block) {
    const ulong begin = (ulong)table[3 * block] * row, count = min((ulong)table[3 * block + 3] * row, end) - at;
    const ulong peer = (by_rank ? block / minors : block % minors) - first_peer;
    if (PEERS == 1 || peer < PEERS) {
      __global const UNIT* from = (__global const UNIT*)PEER(peer) + (ulong)table[3 * block + 1] * row + (at - begin);
      __global UNIT* to = out + (ulong)table[3 * block + 2] * row + (at - begin);
#if IS_CPU
      ulong i = 0;
      for (; i + 16 <= count; i += 16) vstore16(vload16(0, from + i), 0, to + i);
      for (; i < count; ++i) to[i] = from[i];
#else
      for (ulong i = get_local_id(0); i < count; i += get_local_size(0)) to[i] = from[i];
#endif
    }
    at += count;
  }
}
)";

/// A text with the parameters of so many tensors of other ranks, PEER(i), where tensor i begins, and PEER_WORDS(i), the words that rank i shows.
std::string text_of(std::string_view kernel, std::size_t peers, std::string_view unit, bool is_cpu) {
  std::string parameters, choice = fmt::format("(p{0} + q{0})", peers - 1);
  for (std::size_t i = 0; i < peers; ++i) parameters += fmt::format("{}__global const uchar* p{}, ulong q{}", i == 0 ? "" : ", ", i, i);
  for (std::size_t i = peers - 1; i-- > 0;) choice = fmt::format("((i) == {0} ? p{0} + q{0} : {1})", i, choice);
  return fmt::format(
      "#define PEERS {}\n#define PEER_PARAMETERS {}\n#define PEER(i) {}\n#define UNIT {}\n#define IS_CPU {}\n"
      "#define PEER_WORDS(i) ((__global const long*)(PEERS == 1 ? p0 + q0 + (i) * peer_stride : PEER(i)))\n{}",
      peers, parameters, choice, unit, is_cpu ? 1 : 0, kernel);
}

KernelHandle kernel_of(std::string_view entry, const std::string& text, const Stream& stream) {
  return prepare({.text = text, .entry = entry, .file = "dist/row_kernels", .addressing = Addressing::base_and_offset}, stream);
}

bool is_cpu(const Stream& stream) { return stream.device().traits().type == DeviceType::cpu; }

/// OpenCL's name of the widest words of which rows are made and at which they begin.
struct Unit {
  std::string_view name = "uchar";
  std::uint64_t bytes = 1;
};
Unit unit_of(std::uint64_t bits, bool is_cpu) {
  if (!is_cpu && bits % 16 == 0) return {"uint4", 16};
  if (bits % 8 == 0) return {"ulong", 8};
  if (bits % 4 == 0) return {"uint", 4};
  if (bits % 2 == 0) return {"ushort", 2};
  return {};
}

std::uint64_t row_bytes(const Tensor& tensor) {
  std::uint64_t elements = 1;
  for (int d = 1; d < tensor.rank(); ++d) elements *= static_cast<std::uint64_t>(tensor.size(d));
  return bytes_for(tensor.dtype(), elements);
}

}  // namespace

std::optional<std::string> refusal_of(std::int64_t verdict, int rank) {
  if (verdict > 0) return fmt::format("splits must be 0 or more and stay within the rows of the input, got others of rank {}", verdict - 1);
  if (verdict < 0) return fmt::format("out must have a row for each that comes, got fewer than {} on rank {}", -verdict, rank);
  return std::nullopt;
}

void show_rows(const RowOrder& order, const Tensor& words, const Tensor& splits, std::int64_t in_rows, std::int64_t out_rows, const Stream& stream) {
  constexpr std::uint64_t kItems = 64;
  Encoder encoder(stream, "dist");
  encoder.output(words).input(splits);
  for (const std::int64_t n : {order.ranks, order.experts, in_rows, out_rows}) encoder.value(static_cast<std::uint64_t>(n));
  encoder.value(std::uint32_t{order.in_by_rank}).value(std::uint32_t{order.has_offsets});
  encoder.dispatch(kernel_of("dist_show_rows", std::string(kShow), stream), {.global = is_cpu(stream) ? 1 : kItems});
}

void place_rows(const RowOrder& order, const Tensor& words, const Tensor& out_splits_offsets, const std::vector<Tensor>& shown, int rank,
                const Stream& stream) {
  const RowWords places{order};
  std::vector<Tensor> peers = shown;
  if (shown.size() > kPeers) {
    // One behind the other.
    const auto n = static_cast<std::int64_t>(shown.size());
    const Tensor all = empty({n, places.shown()}, {.dtype = DType::i64, .device = words.device()}, stream);
    for (std::int64_t r = 0; r < n; ++r) Encoder(stream, "dist").copy(all.select(0, r), shown[static_cast<std::size_t>(r)]);
    peers = {all};
  }
  Encoder encoder(stream, "dist");
  encoder.inout(words).output(out_splits_offsets);
  for (const Tensor& peer : peers) encoder.input(peer);
  for (const std::int64_t n : {places.shown() * 8, order.ranks, order.experts, static_cast<std::int64_t>(rank), order.align, places.verdicts(), places.table()})
    encoder.value(static_cast<std::uint64_t>(n));
  encoder.value(std::uint32_t{order.out_by_rank});
  encoder.dispatch(kernel_of("dist_place_rows", text_of(kPlace, peers.size(), "uchar", false), stream), {.global = static_cast<std::uint64_t>(order.ranks)});
}

void copy_rows(const RowOrder& order, const Tensor& out, const Tensor& table, const Tensor& verdicts, const std::vector<Tensor>& sources,
               const Stream& stream) {
  const std::uint64_t row = row_bytes(out);
  if (out.numel() == 0 || row == 0) return;
  const bool cpu = is_cpu(stream);
  std::uint64_t bits = row | out.byte_offset();
  for (const Tensor& source : sources) bits |= source.byte_offset();
  const Unit unit = unit_of(bits, cpu);
  const std::size_t peers = std::min(sources.size(), kPeers);
  const KernelHandle kernel = kernel_of("dist_copy_rows", text_of(kCopy, peers, unit.name, cpu), stream);
  const std::uint64_t groups = static_cast<std::uint64_t>(stream.device().traits().compute_units) * (cpu ? 4 : 16);
  const std::uint64_t local = cpu ? 1 : std::min<std::uint64_t>(256, kernel.max_work_group());
  for (std::size_t first = 0; first < sources.size(); first += peers) {
    Encoder encoder(stream, "dist");
    encoder.inout(out).input(table).input(verdicts.defined() ? verdicts : table);
    for (std::size_t i = 0; i < peers; ++i) encoder.input(sources[std::min(first + i, sources.size() - 1)]);
    for (const std::uint64_t n :
         {static_cast<std::uint64_t>(order.blocks()), row / unit.bytes, static_cast<std::uint64_t>(order.out_by_rank ? order.experts : order.ranks),
          verdicts.defined() ? static_cast<std::uint64_t>(verdicts.numel()) : 0, static_cast<std::uint64_t>(first)})
      encoder.value(n);
    encoder.value(std::uint32_t{order.out_by_rank});
    encoder.dispatch(kernel, {.global = groups * local, .local = local});
  }
}

}}}}  // namespace clutch::v0::dist::detail
