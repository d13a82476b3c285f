// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descriptor of block_mask: what tests and benches share. The model looks at every score.
#include <clutch/ops/block_mask.hpp>
#include <clutch/ops/copy.hpp>

#include "support/host_model.hpp"
#include "support/op_case.hpp"

#include <functional>
#include <string_view>
#include <vector>

namespace clutch::cases {

struct BlockMaskCase {
  static constexpr std::string_view kStem = "block_mask";
  using HostMask = std::function<bool(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv)>;

  /// 0, 1 or 2 for each block.
  static std::vector<std::uint8_t> kinds(const attention::BlockMaskOptions& o, const HostMask& mask) {
    std::vector<std::uint8_t> all;
    for (std::int64_t b = 0; b < o.batch; ++b)
      for (std::int64_t h = 0; h < o.heads; ++h)
        for (std::int64_t q = 0; q < o.q_len; q += o.block.q)
          for (std::int64_t kv = 0; kv < o.kv_len; kv += o.block.kv) {
            std::int64_t count = 0;
            for (std::int64_t i = q; i < std::min(q + o.block.q, o.q_len); ++i)
              for (std::int64_t j = kv; j < std::min(kv + o.block.kv, o.kv_len); ++j) count += mask(b, h, i, j);
            all.push_back(count == 0 ? 0 : count == o.block.q * o.block.kv ? 2 : 1);
          }
    return all;
  }
  /// The numbers of a line's blocks of that kind, then of the others.
  static std::vector<std::int32_t> list(const std::vector<std::uint8_t>& line, std::uint8_t kind) {
    std::vector<std::int32_t> numbers;
    for (bool listed : {true, false})
      for (std::size_t i = 0; i < line.size(); ++i)
        if ((line[i] == kind) == listed) numbers.push_back(static_cast<std::int32_t>(i));
    return numbers;
  }

  static inline const attention::BlockMaskOptions kOptions{.batch = 2, .heads = 2, .q_len = 45, .kv_len = 70, .block = {7, 9}};
  static bool allowed(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) { return i + 20 * h >= j && (i * 5 + j + b) % 201 != 0; }
  static attention::MaskMod mask() {
    using attention::Index;
    return [](Index b, Index h, Index i, Index j) { return (i + 20 * h >= j) & (trunc_mod(i * 5 + j + b, 201) != 0); };
  }
  static Problem problem(std::string_view entry) {
    Problem p{.name = "causal with holes", .entry = entry, .is_helper = true};
    const std::vector<std::uint8_t> all = kinds(kOptions, allowed);
    const bool lists = entry == "block_mask_lists";
    if (!lists) {
      p.output = {DType::u8, {2, 2, 7, 8}, {}, all};
    } else {
      // By columns: partial ones.
      std::vector<std::int32_t> numbers;
      for (std::size_t of = 0; of < 4; ++of)
        for (std::size_t c = 0; c < 8; ++c) {
          std::vector<std::uint8_t> line;
          for (std::size_t r = 0; r < 7; ++r) line.push_back(all[(of * 7 + r) * 8 + c]);
          for (std::int32_t n : list(line, 1)) numbers.push_back(n);
        }
      std::vector<std::uint8_t> raw(numbers.size() * 4);
      std::memcpy(raw.data(), numbers.data(), raw.size());
      p.output = {DType::i32, {2, 2, 8, 7}, {}, raw};
    }
    p.run = [lists, entry](const Tensor& out, std::span<const Tensor>, const Stream& stream) {
      attention::BlockMaskOptions o = kOptions;
      o.device = out.device();
      if (entry == "block_mask_kinds" || entry == "block_mask_groups") o.implementation = entry;
      attention::BlockMask made = attention::create_block_mask(mask(), o, stream);
      if (entry == "block_mask_from_lists")
        made = attention::block_mask_from_lists(made.kv_num_blocks(), made.kv_indices(), made.full_kv_num_blocks(), made.full_kv_indices(), mask(), o, stream);
      copy_(out, lists ? made.q_indices() : made.kinds(), {}, stream);
    };
    return p;
  }

  static std::vector<Problem> problems(std::uint64_t) {
    std::vector<Problem> all;
    for (std::string_view entry : {"block_mask_kinds", "block_mask_groups", "block_mask_lists", "block_mask_from_lists"}) all.push_back(problem(entry));
    return all;
  }

  static constexpr Mutation kMutations[] = {
      {"block_mask_kinds", Edit::tail, "q_end = min(q + s.block_q, s.q_len);", "q_end = min(q + s.block_q, s.q_len) - 1;"},
      {"block_mask_kinds", Edit::stride, "const long kv = c * s.block_kv,", "const long kv = c * s.block_q,"},
      {"block_mask_kinds", Edit::offset, "row = line % rows, of", "row = line / 2 % rows, of"},
      {"block_mask_kinds", Edit::arithmetic, "none |= CLUTCH_NOT(allowed) & exists;", "none |= allowed & exists;"},
      {"block_mask_groups", Edit::tail, "key < end; key += rows", "key < end - 1; key += rows"},
      {"block_mask_groups", Edit::stride, "const long kv = c * s.block_kv;\n      const int found", "const long kv = c * s.block_q;\n      const int found"},
      {"block_mask_groups", Edit::offset, "row = line % rows, of", "row = line / 2 % rows, of"},
      {"block_mask_groups", Edit::arithmetic, "? SEEN_ALLOWED : SEEN_MASKED;\n    }", "? SEEN_MASKED : SEEN_ALLOWED;\n    }"},
      {"block_mask_lists", Edit::tail, "for (long i = 0; i < length; ++i)\n    if (kinds[i * stride] == kind)",
       "for (long i = 1; i < length; ++i)\n    if (kinds[i * stride] == kind)"},
      {"block_mask_lists", Edit::stride, "task % s.lines * s.line_stride", "task % s.lines * s.stride"},
      {"block_mask_lists", Edit::offset, "list + task * s.length);\n    list_line", "list + (task ^ 1) * s.length);\n    list_line"},
      {"block_mask_lists", Edit::arithmetic, "!= kind) list", "== kind) list"},
      {"block_mask_from_lists", Edit::tail, "i < min((long)count, length)", "i < min((long)count - 1, length)"},
      {"block_mask_from_lists", Edit::stride, "kinds[list[i]] = kind", "kinds[list[i / 2]] = kind"},
      {"block_mask_from_lists", Edit::offset, "mark_line(line, length, KIND_FULL, full_count[task]", "mark_line(line, length, KIND_FULL, full_count[task ^ 1]"},
      {"block_mask_from_lists", Edit::arithmetic, "KIND_PARTIAL, count[task]", "KIND_FULL, count[task]"},
  };
};

}  // namespace clutch::cases
