// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/block_mask.hpp>

#include "encode/plan.hpp"
#include "ops/traced.hpp"

namespace clutch { inline namespace v0 { namespace attention {

/// State shared by copies of a BlockMask.
struct BlockMask::State {
  MaskMod mask;
  std::int64_t q_len = 0, kv_len = 0;
  BlockSize block;
  Tensor kinds;
  Tensor kv_num, kv_indices, full_kv_num, full_kv_indices, q_num, q_indices, full_q_num, full_q_indices;
};

}}}  // namespace clutch::v0::attention

namespace clutch { inline namespace v0 { namespace detail {

enum class BlockMaskStage : std::uint8_t { kinds, lists, from_lists };

/// Inputs of the selection of block_mask; also the key of its cached plans.
struct BlockMaskProblem {
  std::uint64_t function = 0;  ///< ExprBody::id of the mask
  BlockMaskStage stage = BlockMaskStage::kinds;
  SeenTypes types;
  std::uint8_t unused[5] = {};
};

/// Pure function; the caller adds the printed mask to the plan. Errors: not_supported, invalid_argument.
KernelPlan select(const DeviceTraits& traits, const BlockMaskProblem& problem, std::string_view forced = {});

/// Number of blocks of size `block` in `length`, the last of which may be smaller. Correct for all lengths >= 0, also if rounding up would overflow.
constexpr std::int64_t blocks_of(std::int64_t length, std::int64_t block) { return length / block + (length % block > 0); }
static_assert(blocks_of(0, 8) == 0 && blocks_of(8, 8) == 1 && blocks_of(9, 8) == 2 && blocks_of(INT64_MAX, 8) == INT64_MAX / 8 + 1);

}}}  // namespace clutch::v0::detail
