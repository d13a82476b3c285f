// SPDX-License-Identifier: Apache-2.0
// Kernels that find out where rows come from and go to, and copy them, by counts that the device has.
#pragma once
#include <clutch/dist.hpp>
#include <clutch/kernel.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Blocks of rows between n ranks: block (p, e) of a rank goes to rank p, or comes from there.
struct RowOrder {
  std::int64_t ranks = 1, experts = 1;
  std::int64_t align = 0;                      ///< of the first row of all blocks of an expert in the output; 0: none
  bool in_by_rank = true, out_by_rank = true;  ///< block (p, e) is p experts + e, else e ranks + p
  bool has_offsets = false;                    ///< the input's blocks begin where its offsets say, not one behind the other

  std::int64_t blocks() const { return ranks * experts; }
};

/// What each rank shows the others, words of i64: the rows of its output, a word for alignment, then for each block (p, e) that goes to rank p, at
/// p experts + e, its rows, or -1 where they are not in the input, and the first of them. Behind that what only the rank itself reads: a verdict for each rank,
/// and the table of its output.
struct RowWords {
  RowOrder order;
  static constexpr std::int64_t kPairs = 2;
  std::int64_t shown() const { return kPairs + 2 * order.blocks(); }
  std::int64_t verdicts() const { return shown(); }
  /// For each block of the output: rows of the blocks before, the first row in the input, and in the output; then all rows.
  std::int64_t table() const { return verdicts() + order.ranks; }
  std::int64_t all() const { return (table() + 3 * order.blocks() + 1 + 7) / 8 * 8; }
};

/// Why a rank's rows cannot be exchanged; none where the verdict is 0: source + 1 where the splits of a source are wrong, or minus the rows that do not fit.
std::optional<std::string> refusal_of(std::int64_t verdict, int rank);

/// Writes what a rank shows the others. `splits`: with offsets behind the counts where the order has them.
void show_rows(const RowOrder& order, const Tensor& words, const Tensor& splits, std::int64_t in_rows, std::int64_t out_rows, const Stream& stream);
/// Out of what all ranks show: verdicts and table into the own words, and splits and offsets.
void place_rows(const RowOrder& order, const Tensor& words, const Tensor& out_splits_offsets, const std::vector<Tensor>& shown, int rank, const Stream& stream);
/// Copies the blocks of a table into `out`, unless there is a verdict. `verdicts`: may be undefined. `sources`: by rank, or one that has all blocks.
void copy_rows(const RowOrder& order, const Tensor& out, const Tensor& table, const Tensor& verdicts, const std::vector<Tensor>& sources, const Stream& stream);

}}}}  // namespace clutch::v0::dist::detail
