// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/flex.hpp>

#include <memory>

namespace clutch { inline namespace v0 { namespace attention {

struct PagedCacheOptions {
  std::int64_t pages = 0;                     ///< of all sequences together
  std::int64_t page_size = 128;               ///< keys
  std::int64_t max_batch = 1;                 ///< sequences
  std::int64_t max_pages = 0;                 ///< of one sequence; 0: all of them
  std::int64_t heads = 1;                     ///< of keys and values
  std::int64_t key_size = 0, value_size = 0;  ///< elements of a key and of a value; value_size 0: as key_size
  DType dtype = DType::f32;                   ///< f32, f16, bf16 or f64
  Device device = {};
};

/// Keys and values of sequences that grow, in pages of fixed size: a cache for decoding.
/// Free pages: the host keeps the list, so that reserve() knows at once.
/// Page table: a tensor on the device says which pages a sequence has; flex() follows it (varlen()), and graphs that
///   were captured with it read it anew.
/// Copies: a handle; copies share the cache.
/// Threads: not for several threads at once; work goes on one stream, or events order it.
/// Source: torch.nn.attention.experimental._paged_attention.PagedAttention of PyTorch 2.12.
class CLUTCH_API PagedCache {
 public:
  PagedCache() = default;
  /// Allocates everything: 2 heads pages page_size numbers.
  /// Errors: invalid_argument for sizes below 1, or past 2^31 - 1 rows; invalid_dtype; out_of_memory.
  explicit PagedCache(const PagedCacheOptions& options, const Stream& stream = {});

  bool empty() const noexcept { return state_ == nullptr; }
  const PagedCacheOptions& options() const;
  /// All of these: invalid_argument for an empty one.
  /// (1, heads, pages page_size, key_size), and with value_size.
  const Tensor& keys() const;
  const Tensor& values() const;
  /// (max_batch, max_pages), i32: page numbers, -1 where there is none; and its inverse, (max_batch, pages): which of a
  /// sequence's pages a page is.
  const Tensor& page_table() const;
  const Tensor& physical_to_logical() const;
  /// Keys that a sequence has pages for.
  std::int64_t capacity(std::int64_t sequence) const;
  std::int64_t free_pages() const;

  /// Takes pages until the sequence has a capacity of `length` keys in all.
  /// Errors: out_of_memory when too few are free, and then nothing has changed; invalid_argument for no such sequence,
  ///   or more than max_pages. Never waits.
  void reserve(std::int64_t sequence, std::int64_t length, const Stream& stream = {});
  /// Gives a sequence's pages back. Never waits: work on the same stream still finds them.
  void erase(std::int64_t sequence, const Stream& stream = {});
  /// Writes keys (n, heads, S, key_size) and values, of the cache's dtype and any strides, at positions (n, S) of
  /// sequences (n), both i32 and read on the device. Keys without a page are left out; no two may name the same place.
  /// Never waits.
  void assign(const Tensor& sequences, const Tensor& positions, const Tensor& k, const Tensor& v,
              const Stream& stream = {}) const;

  /// For flex(q, keys(), values()) with a batch of q for each of `sequences` (n), i32; undefined: for all. The first
  /// lengths[i] keys count, (n), i32. A new table each time that sequences are named, else the cache's own.
  Varlen varlen(const Tensor& lengths, const Tensor& sequences = {}, const Stream& stream = {}) const;

  /// Logical masks and scores as ones of the cache's own rows, for what knows no page table: batch b is sequences[b],
  /// rows of others are masked. Block masks have blocks of page_size keys.
  /// Errors: invalid_argument for other blocks.
  BlockMask physical(const BlockMask& logical, const Tensor& sequences, const Stream& stream = {}) const;
  MaskMod physical(const MaskMod& logical, const Tensor& sequences) const;
  ScoreMod physical(const ScoreMod& logical, const Tensor& sequences) const;

 private:
  struct State;
  State& state() const;
  std::shared_ptr<State> state_;
};

}}}  // namespace clutch::v0::attention
