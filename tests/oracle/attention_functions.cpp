// SPDX-License-Identifier: Apache-2.0
// Attention: block masks, flex, sdpa, sequences of several lengths, paged caches, multi-head attention.
#include "server.hpp"

#include <limits>

namespace clutch::oracle {

namespace {

using namespace attention;

MaskMod mask(const Call& c, const std::string& name = "mask") {
  const std::string which = c.text(name, "none");
  if (which == "none") return {};
  if (which == "causal") return causal(c.integer("mask_offset", 0));
  if (which == "window") return sliding_window(c.integer("window", 8));
  if (which == "prefix") return prefix_lm(c["prefix"]);
  if (which == "prefix_number") return prefix_lm(c.integer("prefix_length", 3));
  if (which == "document") return document(c["ids"]);
  if (which == "dilated") return dilated(c.integer("window", 8), c.integer("dilation", 2));
  if (which == "causal_document") return causal() & document(c["ids"]);
  if (which == "window_or_prefix") return sliding_window(c.integer("window", 8)) | prefix_lm(c.integer("prefix_length", 3));
  if (which == "not_causal") return !causal(c.integer("mask_offset", 0));
  if (which == "nothing") return [](Index, Index, Index q, Index) { return q < 0; };
  if (which == "by_head") return [](Index b, Index h, Index q, Index kv) { return floor_mod(q + kv + h + b, 3) != 0; };
  if (which == "table") {
    const Captured t = captured(c["table"]);
    return [=](Index, Index, Index q, Index kv) { return t[{q, kv}] != 0; };
  }
  throw std::runtime_error("no mask is called " + which);
}

ScoreMod score_mod(const Call& c) {
  const std::string which = c.text("score_mod", "none");
  if (which == "none") return {};
  if (which == "alibi") return alibi(c["slopes"]);
  if (which == "softcap") return softcap(c.number("cap", 5));
  if (which == "relative") return relative_bias();
  if (which == "relative_table") return relative_bias(c["relative"]);
  if (which == "shift") return [p = c.number("shift", 0)](Score s, Index, Index, Index, Index) { return s + param(p); };
  if (which == "product") return [](Score s, Index b, Index h, Index q, Index kv) { return s * 0.5 + (q - kv) * 0.125 + (h - b); };
  if (which == "bias") {
    const Captured t = captured(c["bias"]);
    return [=](Score s, Index, Index h, Index q, Index kv) { return s + t[{h, q, kv}]; };
  }
  // Rows of a table at places counted from behind.
  if (which == "reversed") {
    const Captured t = captured(c["bias"]);
    const std::int64_t last_q = c["bias"].size(0) - 1, last_kv = c["bias"].size(1) - 1;
    const std::string pattern = c.text("pattern", "q_kv");
    return [=](Score s, Index, Index, Index q, Index kv) {
      const Expr first = pattern.starts_with("r") ? Expr(last_q - q) : Expr(q);
      const Expr second = pattern.ends_with("r") ? Expr(last_kv - kv) : Expr(kv);
      return s + t[{first, second}];
    };
  }
  if (which == "opencl")
    return [](Score s, Index, Index, Index, Index) { return opencl(s.dtype(), {.value = "x0 * x0 * 0.25f + x0", .derivatives = {"x0 * 0.5f + 1"}}, {s}); };
  throw std::runtime_error("no score mod is called " + which);
}

BlockMaskOptions block_options(const Call& c) {
  BlockMaskOptions options;
  options.batch = c.integer("mask_batch", 1);
  options.heads = c.integer("mask_heads", 1);
  options.q_len = c.integer("q_len", 0);
  options.kv_len = c.integer("kv_len", 0);
  options.block = {.q = c.integer("block_q", 128), .kv = c.integer("block_kv", 128)};
  return options;
}

Varlen varlen(const Call& c) {
  return {.cu_seq_q = c.optional("cu_seq_q"),
          .cu_seq_kv = c.optional("cu_seq_kv"),
          .seqused_kv = c.optional("seqused_kv"),
          .page_table = c.optional("page_table"),
          .page_size = c.integer("page_size", 0),
          .max_q = c.integer("max_q", 0),
          .max_kv = c.integer("max_kv", 0)};
}

Generator generator(const Call& c) {
  if (!c.has("generator_seed")) return {};
  return Generator(default_device(), static_cast<std::uint64_t>(c.integer("generator_seed", 0)));
}

FlexOptions flex_options(const Call& c) {
  FlexOptions options;
  options.score_mod = score_mod(c);
  if (c.text("mask_by") == "mod")
    options.mask_mod = mask(c);
  else if (c.has("mask"))
    options.block_mask = create_block_mask(mask(c), block_options(c));
  options.scale = c.number("scale", kDefaultScale);
  options.enable_gqa = c.flag("enable_gqa");
  options.return_lse = c.flag("return_lse") || c.has("grad");
  options.return_max_scores = c.flag("return_max_scores");
  options.varlen = varlen(c);
  options.dropout_p = c.number("dropout_p", 0);
  options.generator = generator(c);
  options.skip_masked = c.flag("skip_masked");
  return options;
}

FlexBackwardOptions backward_options(const Call& c) { return {.grad_lse = c.optional("grad_lse"), .captured_gradients = c.flag("captured_gradients")}; }

SdpaOptions sdpa_options(const Call& c) {
  return {.attn_mask = c.optional("attn_mask"),
          .causal = c.choice<Causal>("causal", {{"no", Causal::no}, {"upper_left", Causal::upper_left}, {"lower_right", Causal::lower_right}}),
          .scale = c.number("scale", kDefaultScale),
          .enable_gqa = c.flag("enable_gqa"),
          .dropout_p = c.number("dropout_p", 0),
          .generator = generator(c)};
}

void give_gradients(Call& c, const FlexGradients& g) {
  c.give(std::vector{g.q, g.k, g.v});
  c.give(g.captured);
}

void add_masks(Functions& table) {
  const auto give = [](Call& c, const BlockMask& m) {
    c.give(std::vector{m.kv_num_blocks(), m.kv_indices(), m.full_kv_num_blocks(), m.full_kv_indices(), m.q_num_blocks(), m.q_indices(), m.full_q_num_blocks(),
                       m.full_q_indices(), m.kinds(), m.to_dense()});
    c.say("sparsity", m.sparsity());
    c.say("text", m.to_string());
  };
  table["create_block_mask"] = [give](Call& c) {
    BlockMask m = create_block_mask(mask(c), block_options(c));
    if (c.has("adjust_q")) m = m.adjust(c.integer("adjust_q", 0), c.integer("adjust_kv", 0));
    if (c.has("batch_begin")) m = m.slice(c.integer("batch_begin", 0), c.integer("batch_end", 0), c.integer("head_begin", 0), c.integer("head_end", 0));
    give(c, m);
  };
  table["block_mask_from_lists"] = [give](Call& c) {
    give(c, block_mask_from_lists(c["kv_num_blocks"], c["kv_indices"], c.optional("full_kv_num_blocks"), c.optional("full_kv_indices"), mask(c),
                                  block_options(c)));
  };
  // Masks made of masks.
  const auto combined = [](Call& c, const MaskMod& made) {
    const BlockMask m = create_block_mask(made, block_options(c));
    c.give(std::vector{m.kinds(), m.to_dense()});
  };
  table["mask & mask"] = [combined](Call& c) { combined(c, mask(c, "mask") & mask(c, "second_mask")); };
  table["mask | mask"] = [combined](Call& c) { combined(c, mask(c, "mask") | mask(c, "second_mask")); };
  table["! mask"] = [combined](Call& c) { combined(c, !mask(c, "mask")); };
  table["alibi_slopes"] = [](Call& c) { c.give(alibi_slopes(c.integer("heads", 1))); };
}

void add_attention(Functions& table) {
  table["flex"] = [](Call& c) {
    const FlexOptions options = flex_options(c);
    const FlexResult r = flex(c["q"], c["k"], c["v"], options);
    c.give(std::vector{r.out, r.lse, r.max_scores, r.dropout_state});
    if (c.has("grad")) give_gradients(c, flex_backward(c["grad"], c["q"], c["k"], c["v"], r, options, backward_options(c)));
  };
  table["flex_out"] = [](Call& c) {
    flex_out({.out = c["out"], .lse = c.optional("lse"), .max_scores = c.optional("max_scores")}, c["q"], c["k"], c["v"], flex_options(c));
  };
  table["sdpa"] = [](Call& c) {
    const SdpaOptions options = sdpa_options(c);
    const SdpaBackends backends{c.text("backend") == "math" ? SdpaBackend::math : SdpaBackend::flash};
    const SdpaResult r = sdpa(c["q"], c["k"], c["v"], options);
    c.give(std::vector{r.out, r.lse, r.dropout_state});
    if (c.has("grad")) give_gradients(c, sdpa_backward(c["grad"], c["q"], c["k"], c["v"], r, options, {.captured_gradients = true}));
  };
  table["varlen_attn"] = [](Call& c) {
    FlexOptions options = flex_options(c);
    if (c.flag("lower_right")) options.mask_mod = causal_lower_right(options.varlen, c.integer("q_len", 0), c.integer("kv_len", 0));
    const FlexResult r = varlen_attn(c["q"], c["k"], c["v"], options);
    c.give(std::vector{r.out, r.lse, r.max_scores});
    if (c.has("grad")) give_gradients(c, varlen_attn_backward(c["grad"], c["q"], c["k"], c["v"], r, options, backward_options(c)));
  };
  table["multi_head_attention"] = [](Call& c) {
    const MultiHeadWeights weights{.in_weight = c["in_weight"],
                                   .in_bias = c.optional("in_bias"),
                                   .out_weight = c["out_weight"],
                                   .out_bias = c.optional("out_bias"),
                                   .heads = c.integer("heads", 1),
                                   .kv_heads = c.integer("kv_heads", 0)};
    const FlexOptions options = flex_options(c);
    const MultiHeadResult r = multi_head_attention(c["x"], weights, options);
    c.give(r.out);
    if (!c.has("grad")) return;
    const MultiHeadGradients g = multi_head_attention_backward(c["grad"], c["x"], weights, r, options);
    c.give(std::vector{g.x, g.in_weight, g.in_bias, g.out_weight, g.out_bias});
  };
  // A cache that is filled with keys (n, heads, S, E) and values at positions, then read by flex through its table, or by its physical masks and mod. A query's
  // batch i is sequence "sequences"[i].
  table["paged_cache"] = [](Call& c) {
    PagedCacheOptions options;
    options.pages = c.integer("pages", 1);
    options.page_size = c.integer("page_size", 16);
    options.max_batch = c.integer("max_batch", 1);
    options.max_pages = c.integer("max_pages", 0);
    options.heads = c["k"].size(1);
    options.key_size = c["k"].size(3);
    options.value_size = c["v"].size(3);
    options.dtype = c["k"].dtype();
    PagedCache cache(options);
    const std::vector<double> lengths = c.numbers("reserve");
    for (std::size_t i = 0; i < lengths.size(); ++i) cache.reserve(static_cast<std::int64_t>(i), static_cast<std::int64_t>(lengths[i]));
    if (c.has("erase")) {
      cache.erase(c.integer("erase", 0));
      cache.reserve(c.integer("erase", 0), static_cast<std::int64_t>(lengths[static_cast<std::size_t>(c.integer("erase", 0))]));
    }
    cache.assign(c["written"], c["positions"], c["k"], c["v"]);
    c.say("free", cache.free_pages());
    Json capacities = Json::array();
    for (std::size_t i = 0; i < lengths.size(); ++i) capacities.push_back(cache.capacity(static_cast<std::int64_t>(i)));
    c.say("capacities", capacities);
    FlexOptions call = flex_options(c);
    call.varlen = cache.varlen(c["lengths"], c.flag("named") ? c["sequences"] : Tensor());
    c.give(flex(c["q"], cache.keys(), cache.values(), call).out);
    c.give(std::vector{cache.page_table(), cache.physical_to_logical()});
    // The same without the table: masks of the cache's own rows, the mod of their logical places. Rows that nothing was written to may be NaN.
    const Captured lengths_of = captured(c["lengths"]);
    const MaskMod logical = [=](Index b, Index, Index, Index kv) { return kv < lengths_of[b]; };
    FlexOptions by_rows = flex_options(c);
    if (!by_rows.score_mod.empty()) by_rows.score_mod = cache.physical(by_rows.score_mod, c["sequences"]);
    if (c.flag("by_blocks")) {
      BlockMaskOptions blocks;
      blocks.batch = c["q"].size(0);
      blocks.q_len = c["q"].size(2);
      blocks.kv_len = c.integer("kv_len", 1);
      blocks.block = {.q = 16, .kv = options.page_size};
      by_rows.block_mask = cache.physical(create_block_mask(logical, blocks), c["sequences"]);
    } else {
      by_rows.mask_mod = cache.physical(logical, c["sequences"]);
    }
    by_rows.skip_masked = true;
    c.give(flex(c["q"], cache.keys(), cache.values(), by_rows).out);
  };
}

}  // namespace

void add_attention_functions(Functions& table) {
  add_masks(table);
  add_attention(table);
}

}  // namespace clutch::oracle
