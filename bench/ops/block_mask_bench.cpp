// SPDX-License-Identifier: Apache-2.0
#include "cases/block_mask.hpp"
#include "harness/rows.hpp"
#include "peers/torch.hpp"

#include <clutch/clutch.hpp>

namespace clutch::bench {

void register_block_mask(Rows& rows);

void register_block_mask(Rows& rows) {
  for (std::string_view name : {"causal", "document"})
    for (std::int64_t l : {2048, 8192, 65536}) {
      if (name == "document" && l > 8192) continue;
      rows.push_back(
          {.name = fmt::format("block_mask/{}/{}", name, l), .in_default = l == 8192, .in_quick = l == 2048, .prepare = [=](const Device& device) {
             Tensor ids = map([&](Expr i) { return floor_div(i, l / 8); }, arange(0, static_cast<double>(l), 1, {.dtype = DType::i32, .device = device}));
             const attention::MaskMod mask = name == "causal" ? attention::causal() : attention::document(ids);
             auto made = std::make_shared<attention::BlockMask>();
             Work work;
             work.run = [=](int reps) {
               Stream stream = current_stream(device);
               for (int i = 0; i < reps; ++i) *made = attention::create_block_mask(mask, {.q_len = l, .kv_len = l, .device = device}, stream);
               stream.synchronize();
             };
             work.check = [=]() -> std::string {
               const std::vector<std::uint8_t> kinds = made->kinds().to_bytes();
               const std::int64_t blocks = l / 128;
               for (std::int64_t i = 0; i < blocks; ++i)
                 for (std::int64_t j = 0; j < blocks; ++j) {
                   const int want = name == "causal" ? (j < i ? 2 : j == i ? 1 : 0) : i * 8 / blocks == j * 8 / blocks ? 2 : 0;
                   if (kinds[static_cast<std::size_t>(i * blocks + j)] != want) return fmt::format("block {}, {} is wrong", i, j);
                 }
               return {};
             };
             if (l <= 8192)
               add_torch_peer(work, device,
                              fmt::format("import torch.nn.attention.flex_attention as F; L = {}; ids = torch.arange(L, device=device) // (L // 8)", l),
                              fmt::format("F.create_block_mask(lambda b, h, i, j: {}, None, None, L, L, device=device)",
                                          name == "causal" ? "i >= j" : "ids[i] == ids[j]"));
             return work;
           }});
    }
}

}  // namespace clutch::bench
