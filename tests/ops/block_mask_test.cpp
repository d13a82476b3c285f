// SPDX-License-Identifier: Apache-2.0
#include "cases/block_mask.hpp"

#include "support/op_runner.hpp"

#include <clutch/clutch.hpp>

#include <cstring>

namespace clutch::testing { namespace {

using attention::BlockMask;
using attention::BlockMaskOptions;
using attention::create_block_mask;
using attention::Index;
using attention::MaskMod;
using cases::BlockMaskCase;

std::vector<std::int32_t> numbers(const Tensor& t) { return t.to_host<std::int32_t>(); }

/// Kinds and all eight lists.
void expect_mask(const BlockMask& made, const std::vector<std::uint8_t>& kinds, std::string_view what) {
  ASSERT_EQ(made.kinds().to_bytes(), kinds) << what;
  const Dims sizes = made.kinds().sizes();
  const auto matrices = static_cast<std::size_t>(sizes[0] * sizes[1]), rows = static_cast<std::size_t>(sizes[2]), columns = static_cast<std::size_t>(sizes[3]);
  std::vector<std::int32_t> num[4], list[4];
  for (std::size_t of = 0; of < matrices; ++of)
    for (bool transposed : {false, true})
      for (std::size_t i = 0; i < (transposed ? columns : rows); ++i) {
        std::vector<std::uint8_t> line;
        for (std::size_t j = 0; j < (transposed ? rows : columns); ++j)
          line.push_back(kinds[of * rows * columns + (transposed ? j * columns + i : i * columns + j)]);
        for (std::uint8_t kind : {std::uint8_t{1}, std::uint8_t{2}}) {
          const std::size_t k = (transposed ? 2u : 0u) + kind - 1u;
          num[k].push_back(static_cast<std::int32_t>(std::count(line.begin(), line.end(), kind)));
          for (std::int32_t n : BlockMaskCase::list(line, kind)) list[k].push_back(n);
        }
      }
  EXPECT_EQ(numbers(made.kv_num_blocks()), num[0]) << what;
  EXPECT_EQ(numbers(made.kv_indices()), list[0]) << what;
  EXPECT_EQ(numbers(made.full_kv_num_blocks()), num[1]) << what;
  EXPECT_EQ(numbers(made.full_kv_indices()), list[1]) << what;
  EXPECT_EQ(numbers(made.q_num_blocks()), num[2]) << what;
  EXPECT_EQ(numbers(made.q_indices()), list[2]) << what;
  EXPECT_EQ(numbers(made.full_q_num_blocks()), num[3]) << what;
  EXPECT_EQ(numbers(made.full_q_indices()), list[3]) << what;
}

TEST(BlockMask, ReadyMadeMasksHaveTheModelsBlocks) {
  CLUTCH_EACH_DEVICE(device) {
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < 300; ++i) ids.push_back(i * i / 9000);
    const Tensor documents = from_host(ids, {300}, device), prefixes = from_host<std::int32_t>({40, 131}, device);
    auto doc = [&](std::int64_t i) { return ids[static_cast<std::size_t>(std::min<std::int64_t>(i, 299))]; };
    const struct {
      const char* name;
      MaskMod mask;
      BlockMaskCase::HostMask host;
      std::int64_t batch = 1;
    } cases[] = {
        {"causal", attention::causal(), [](auto, auto, auto i, auto j) { return i >= j; }},
        {"causal lower right", attention::causal(41), [](auto, auto, auto i, auto j) { return i + 41 >= j; }},
        {"window", attention::sliding_window(20), [](auto, auto, auto i, auto j) { return i >= j && i - j <= 20; }},
        {"prefix", attention::prefix_lm(prefixes), [](auto b, auto, auto i, auto j) { return j < (b ? 131 : 40) || i >= j; }, 2},
        {"one prefix", attention::prefix_lm(77), [](auto, auto, auto i, auto j) { return j < 77 || i >= j; }},
        {"one prefix of a tensor", attention::prefix_lm(prefixes.slice(0, 1, 2)), [](auto, auto, auto i, auto j) { return j < 131 || i >= j; }},
        {"document", attention::document(documents), [&](auto, auto, auto i, auto j) { return doc(i) == doc(j); }},
        {"dilated", attention::dilated(30, 7), [](auto, auto, auto i, auto j) { return std::abs(i - j) <= 30 && (i - j) % 7 == 0; }},
        {"both", attention::causal() & attention::document(documents), [&](auto, auto, auto i, auto j) { return i >= j && doc(i) == doc(j); }},
        {"either", attention::causal() | attention::sliding_window(5), [](auto, auto, auto i, auto j) { return i >= j; }},
        {"not", !attention::sliding_window(50), [](auto, auto, auto i, auto j) { return !(i >= j && i - j <= 50); }},
        {"nobody", [](Index, Index, Index q, Index kv) { return q + kv < 0; }, [](auto, auto, auto, auto) { return false; }},
        {"everybody", [](Index, Index, Index q, Index kv) { return q + kv >= 0; }, [](auto, auto, auto, auto) { return true; }},
    };
    for (const auto& c : cases)
      for (attention::BlockSize block : {attention::BlockSize{}, {16, 32}, {50, 33}, {1, 300}, {300, 7}})
        for (std::int64_t q_len : {129, 1, 300}) {
          BlockMaskOptions o{.batch = c.batch, .q_len = q_len, .kv_len = 170, .block = block, .device = device};
          for (const char* implementation : {"block_mask_kinds", "block_mask_groups"}) {
            o.implementation = implementation;
            if (o.implementation == "block_mask_groups" && known_bug(device, "loops_end_early")) continue;  // refused
            expect_mask(create_block_mask(c.mask, o), BlockMaskCase::kinds(o, c.host),
                        fmt::format("{} by {} {}x{} of {}", c.name, implementation, block.q, block.kv, q_len));
          }
          if (level() == "smoke" && block.q == 50) break;
        }
  }
}

/// Many whole blocks in a row, and blocks that are whole sequences: many iterations for the items of a device that ends loops early.
TEST(BlockMask, RowsOfManyWholeBlocks) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor ids = zeros({1300}, {.dtype = DType::i32, .device = device});
    const BlockMaskOptions o{.q_len = 130, .kv_len = 1300, .device = device};
    expect_mask(create_block_mask(attention::document(ids), o), BlockMaskCase::kinds(o, [](auto, auto, auto, auto) { return true; }), "one document");
  }
}

/// PyTorch's own example.
TEST(BlockMask, HasPyTorchsRules) {
  CLUTCH_EACH_DEVICE(device) {
    const BlockMaskOptions o{.q_len = 5, .kv_len = 6, .block = {2, 2}, .device = device};
    const BlockMask made = create_block_mask([](Index, Index, Index q, Index kv) { return (kv <= q) & (q != 2); }, o);
    EXPECT_EQ(numbers(made.kv_num_blocks()), (std::vector<std::int32_t>{1, 2, 3}));
    EXPECT_EQ(numbers(made.kv_indices()), (std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(numbers(made.full_kv_num_blocks()), (std::vector<std::int32_t>{0, 0, 0}));
    EXPECT_EQ(numbers(made.q_num_blocks()), (std::vector<std::int32_t>{3, 2, 1}));
    EXPECT_DOUBLE_EQ(made.sparsity(), 20.0);
    EXPECT_EQ(numbers(made.to_dense()), (std::vector<std::int32_t>{1, 0, 0, 1, 1, 0, 1, 1, 1}));
    EXPECT_EQ(made.to_string(), "BlockMask(shape=(1, 1, 3, 3), q_len=5, kv_len=6, block=(2, 2), sparsity=20.00%)\n::    \n::::  \n::::::\n");
  }
}

/// The same random mask for the same seed, of Exprs or of the host's integers.
struct Maker {
  model::Random random;
  template <class I>
  I number(const I& b, const I& h, const I& q, const I& kv, int depth) {
    const auto kind = static_cast<int>(random.uniform(0, depth > 0 ? 12 : 5));
    const I inputs[] = {b, h, q, kv, I(static_cast<int>(random.uniform(-40, 40)))};
    if (kind < 5) return inputs[kind];
    const I x = number(b, h, q, kv, depth - 1), y = number(b, h, q, kv, depth - 1);
    if (kind < 7) return x + y;
    if (kind < 9) return x - y;
    if (kind == 9) return x * y;
    using std::max, std::min;
    return kind == 10 ? min(x, y) : max(x, y);
  }
  template <class B, class I>
  B truth(const I& b, const I& h, const I& q, const I& kv, int depth) {
    const auto kind = static_cast<int>(random.uniform(0, depth > 0 ? 7 : 4));
    if (kind < 4) {
      const I x = number(b, h, q, kv, 2), y = number(b, h, q, kv, 2);
      return kind == 0 ? B(x < y) : kind == 1 ? B(x <= y) : kind == 2 ? B(x == y) : B(x != y);
    }
    const B x = truth<B>(b, h, q, kv, depth - 1), y = truth<B>(b, h, q, kv, depth - 1);
    return kind == 4 ? B(x & y) : kind == 5 ? B(x | y) : B(!x);
  }
};

/// Random masks of comparisons, sums and products: what ranges decide must be what is inside.
TEST(BlockMask, RangesDecideRightly) {
  CLUTCH_EACH_DEVICE(device) {
    const int count = level() == "smoke" ? 12 : level() == "full" ? 60 : 400;
    for (int turn = 0; turn < count; ++turn) {
      const std::uint64_t of = seed() * 1000 + static_cast<std::uint64_t>(turn);
      const BlockMaskOptions o{.batch = 2, .heads = 3, .q_len = 61, .kv_len = 67, .block = {8 + turn % 9, 5 + turn % 13}, .device = device};
      MaskMod mask = [&](Index b, Index h, Index q, Index kv) { return cast(Maker{model::Random(of)}.truth<Expr>(b, h, q, kv, 3), DType::boolean); };
      const std::vector<std::uint8_t> want = BlockMaskCase::kinds(o, [&](std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t kv) {
        return Maker{model::Random(of)}.truth<bool>(static_cast<std::int32_t>(b), static_cast<std::int32_t>(h), static_cast<std::int32_t>(q),
                                                    static_cast<std::int32_t>(kv), 3);
      });
      ASSERT_EQ(create_block_mask(mask, o).kinds().to_bytes(), want) << "mask " << turn << "\n" << mask.function().text();
    }
  }
}

TEST(BlockMask, PartsAndLists) {
  CLUTCH_EACH_DEVICE(device) {
    BlockMaskOptions o = BlockMaskCase::kOptions;
    o.device = device;
    const BlockMask made = create_block_mask(BlockMaskCase::mask(), o);
    const std::vector<std::uint8_t> kinds = BlockMaskCase::kinds(o, BlockMaskCase::allowed);
    expect_mask(made, kinds, "whole");
    // A part's mask counts from its begin.
    const BlockMask part = made.slice(1, 2, 1, 2);
    expect_mask(part, {kinds.begin() + 3 * 56, kinds.end()}, "part");
    BlockMaskOptions one = o;
    one.batch = one.heads = 1;
    EXPECT_EQ(create_block_mask(part.mask_mod(), one).kinds().to_bytes(), part.kinds().to_bytes());
    const BlockMask shorter = made.adjust(20, 64);
    EXPECT_EQ(shorter.kinds().sizes(), (Dims{2, 2, 3, 8}));
    EXPECT_EQ(shorter.kinds().to_bytes(), made.kinds().slice(2, 0, 3).contiguous().to_bytes());
    const BlockMask again = attention::block_mask_from_lists(made.kv_num_blocks(), made.kv_indices(), {}, {}, {}, o);
    std::vector<std::uint8_t> partial = kinds;
    for (std::uint8_t& kind : partial) kind = kind == 1;
    expect_mask(again, partial, "partial ones alone");
    EXPECT_EQ(code_of([&] { made.slice(0, 3, 0, 1); }), ErrorCode::invalid_argument);
    // Longer: what there was, and around it what the mask says; of lists alone nothing is known there.
    BlockMaskOptions more = o;
    more.q_len = o.q_len + 17, more.kv_len = o.kv_len + 30;
    const BlockMask longer = made.adjust(more.q_len, more.kv_len), anew = create_block_mask(BlockMaskCase::mask(), more);
    ASSERT_EQ(longer.kinds().sizes(), anew.kinds().sizes());
    std::vector<std::uint8_t> want = anew.kinds().to_bytes();
    const auto rows = static_cast<std::size_t>(made.kinds().size(2)), columns = static_cast<std::size_t>(made.kinds().size(3)),
               all_rows = static_cast<std::size_t>(anew.kinds().size(2)), all_columns = static_cast<std::size_t>(anew.kinds().size(3));
    for (std::size_t of = 0; of < want.size() / (all_rows * all_columns); ++of)
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) want[(of * all_rows + r) * all_columns + c] = kinds[(of * rows + r) * columns + c];
    EXPECT_EQ(longer.kinds().to_bytes(), want);
    EXPECT_EQ(code_of([&] { again.adjust(more.q_len, more.kv_len); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { BlockMask().kinds(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { create_block_mask({}, o); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { create_block_mask(attention::causal(), {.q_len = 0, .kv_len = 5, .device = device}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                create_block_mask(attention::causal(), {.q_len = 5, .kv_len = 5, .block = {0, 1}, .device = device});
              }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { attention::block_mask_from_lists(made.kv_num_blocks(), made.kv_num_blocks(), {}, {}, {}, o); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([] { MaskMod([](Index, Index, Index q, Index kv) { return q + kv; }); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([] { MaskMod([](Index, Index, Index q, Index) { return q >= position(0); }); }), ErrorCode::invalid_argument);
  }
}

TEST(BlockMask, OtherNumbersBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    auto made = [&](std::int64_t window, std::int64_t length) {
      create_block_mask(attention::sliding_window(window), {.q_len = length, .kv_len = length + 9, .block = {length, 64}, .device = device});
    };
    made(3, 100);
    const BuildCounters before = build_counters();
    made(50, 333), made(1, 7);
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

/// 131072 x 131072: 17 G scores, 1 M blocks.
TEST(BlockMask, LongSequencesTakeLittleMemory) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().simulator) continue;
    const std::int64_t length = level() == "smoke" ? 16384 : 131072, rows = length / 128;
    reset_peak_memory_stats(device);
    const std::uint64_t before = memory_allocated(device);
    const BlockMask made = create_block_mask(attention::causal(), {.q_len = length, .kv_len = length, .device = device});
    EXPECT_LT(memory_stats(device).at("allocated_bytes.all.peak") - before, 100u << 20);
    std::vector<std::int32_t> full = numbers(made.full_kv_num_blocks()), partial = numbers(made.kv_num_blocks());
    for (std::int64_t r = 0; r < rows; ++r) {
      ASSERT_EQ(full[static_cast<std::size_t>(r)], r);
      ASSERT_EQ(partial[static_cast<std::size_t>(r)], 1);
    }
  }
}

}}  // namespace clutch::testing
