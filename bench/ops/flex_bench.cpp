// SPDX-License-Identifier: Apache-2.0
#include "cases/flex.hpp"
#include "harness/operands.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/blas.hpp"
#include "peers/torch.hpp"

#include <clutch/clutch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace clutch::bench {

void register_flex(Rows& rows);
void sweep_flex(SweptOps& ops);

namespace {

/// Mods of scores. Blocks, of 128, that are visited are told by their numbers and count.
struct Mod {
  const char* name;
  bool (*visits)(std::int64_t q, std::int64_t kv, std::int64_t blocks);
  void (*set)(attention::FlexOptions& o, std::int64_t length, const Device& device);
  double (*score)(double s, std::int64_t h, std::int64_t q, std::int64_t kv);
  bool (*mask)(std::int64_t q, std::int64_t kv, std::int64_t length);
  const char* torch;  ///< arguments of torch's flex_attention
};
constexpr std::int64_t kHeads = 8, kDocuments = 8;

void set_mask(attention::FlexOptions& o, const attention::MaskMod& mask, std::int64_t length, const Device& device) {
  o.block_mask = attention::create_block_mask(mask, {.q_len = length, .kv_len = length, .device = device});
}
double slope(std::int64_t h) { return std::exp2(-static_cast<double>(h + 1)); }

const Mod kMods[] = {
    {"none", [](std::int64_t, std::int64_t, std::int64_t) { return true; }, [](attention::FlexOptions&, std::int64_t, const Device&) {}, nullptr, nullptr, ""},
    {"causal", [](std::int64_t q, std::int64_t kv, std::int64_t) { return kv <= q; },
     [](attention::FlexOptions& o, std::int64_t l, const Device& d) { set_mask(o, attention::causal(), l, d); }, nullptr,
     [](std::int64_t q, std::int64_t kv, std::int64_t) { return q >= kv; }, "block_mask=mask(lambda b, h, i, j: i >= j)"},
    {"window256", [](std::int64_t q, std::int64_t kv, std::int64_t) { return kv <= q && q * 128 - 256 <= kv * 128 + 127; },
     [](attention::FlexOptions& o, std::int64_t l, const Device& d) { set_mask(o, attention::sliding_window(256), l, d); }, nullptr,
     [](std::int64_t q, std::int64_t kv, std::int64_t) { return q >= kv && q - kv <= 256; }, "block_mask=mask(lambda b, h, i, j: (i >= j) & (i - j <= 256))"},
    {"prefix", [](std::int64_t q, std::int64_t kv, std::int64_t blocks) { return kv * 4 < blocks || kv <= q; },
     [](attention::FlexOptions& o, std::int64_t l, const Device& d) { set_mask(o, attention::prefix_lm(l / 4), l, d); }, nullptr,
     [](std::int64_t q, std::int64_t kv, std::int64_t l) { return kv < l / 4 || q >= kv; }, "block_mask=mask(lambda b, h, i, j: (j < L // 4) | (i >= j))"},
    {"document", [](std::int64_t q, std::int64_t kv, std::int64_t blocks) { return q * kDocuments / blocks == kv * kDocuments / blocks; },
     [](attention::FlexOptions& o, std::int64_t l, const Device& d) {
       Tensor ids = map([&](Expr i) { return floor_div(i, l / kDocuments); }, arange(0, static_cast<double>(l), 1, {.dtype = DType::i32, .device = d}));
       set_mask(o, attention::document(ids), l, d);
     },
     nullptr, [](std::int64_t q, std::int64_t kv, std::int64_t l) { return q * kDocuments / l == kv * kDocuments / l; },
     "block_mask=mask(lambda b, h, i, j: ids[i] == ids[j])"},
    {"alibi", nullptr, [](attention::FlexOptions& o, std::int64_t, const Device& d) { o.score_mod = attention::alibi(attention::alibi_slopes(kHeads, d)); },
     [](double s, std::int64_t h, std::int64_t q, std::int64_t kv) { return s + slope(h) * static_cast<double>(kv - q); }, nullptr,
     "score_mod=lambda s, b, h, i, j: s + slopes[h] * (j - i)"},
    {"softcap", nullptr, [](attention::FlexOptions& o, std::int64_t, const Device&) { o.score_mod = attention::softcap(20); },
     [](double s, std::int64_t, std::int64_t, std::int64_t) { return 20 * std::tanh(s / 20); }, nullptr,
     "score_mod=lambda s, b, h, i, j: 20 * torch.tanh(s / 20)"},
    {"relative", nullptr,
     [](attention::FlexOptions& o, std::int64_t l, const Device& d) {
       Tensor table = map([](Expr i) { return i * 0.001f; }, arange(0, static_cast<double>(2 * l - 1), 1, {.device = d}));
       o.score_mod = attention::relative_bias(table);
     },
     [](double s, std::int64_t, std::int64_t q, std::int64_t kv) { return s + 0.001 * static_cast<double>(q - kv); }, nullptr,
     "score_mod=lambda s, b, h, i, j: s + table[i - j + L - 1]"},
};

struct Shape {
  std::int64_t length, d;
  DType dtype = DType::f32;
};

/// The fault of a query's result, from all keys and values of its head; empty if nothing is.
std::string check_row(
    std::span<const float> q, std::span<const float> keys, std::span<const float> vals, std::span<const float> got, DType dtype,
    const std::function<double(double s, std::int64_t kv)>& score = [](double s, std::int64_t) { return s; }) {
  const std::size_t d = q.size();
  std::vector<double> p(keys.size() / d);
  double top = -1e300, total = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    double s = 0;
    for (std::size_t x = 0; x < d; ++x) s += static_cast<double>(q[x]) * static_cast<double>(keys[j * d + x]);
    p[j] = score(s / std::sqrt(static_cast<double>(d)), static_cast<std::int64_t>(j)), top = std::max(top, p[j]);
  }
  for (double& x : p) total += x = std::exp(x - top);
  for (std::size_t x = 0; x < d; ++x) {
    double sum = 0;
    for (std::size_t j = 0; j < p.size(); ++j) sum += p[j] * static_cast<double>(vals[j * d + x]);
    if (!(std::fabs(static_cast<double>(got[x]) - sum / total) <= (dtype == DType::f32 ? 1e-3 : 2e-2)))
      return fmt::format("element {}: {} instead of {}", x, got[x], sum / total);
  }
  return {};
}

/// Backward of the same, beside our own forward.
Work backward_of(const Device& device, const Mod& mod, const Shape& shape) {
  const Dims sizes{1, kHeads, shape.length, shape.d};
  Tensor q = numbers(sizes, shape.dtype, device, 1), k = numbers(sizes, shape.dtype, device, 2), v = numbers(sizes, shape.dtype, device, 3),
         grad = numbers(sizes, shape.dtype, device, 4);
  attention::FlexOptions o{.return_lse = true};
  mod.set(o, shape.length, device);
  const attention::FlexResult results = attention::flex(q, k, v, o);
  auto made = std::make_shared<attention::FlexGradients>();
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) *made = attention::flex_backward(grad, q, k, v, results, o, {}, stream);
    stream.synchronize();
  };
  // Along a direction of q the loss changes as the gradient says; of values the gradients add up to the results'.
  work.check = [=]() -> std::string {
    const Tensor towards = numbers(sizes, shape.dtype, device, 5);
    auto inner = [](const Tensor& a, const Tensor& b) { return reduce(Reduce::sum, [](Expr x, Expr y) { return x * y; }, {a, b}).item(); };
    auto loss = [&](double step) {
      const Tensor moved = map([&](Expr x, Expr t) { return x + t * param(step); }, q, towards);
      return inner(grad, attention::flex(moved, k, v, o).out);
    };
    const double want = (loss(0.01) - loss(-0.01)) / 0.02, is = inner(made->q, towards);
    if (!(std::fabs(is - want) <= 0.02 * (std::fabs(want) + 10))) return fmt::format("the derivative along a direction is {} instead of {}", is, want);
    const double sums = sum(made->v).item(), given = sum(grad).item();
    return std::fabs(sums - given) <= 0.05 * (std::fabs(given) + 10) ? "" : fmt::format("gradients of values sum to {} instead of {}", sums, given);
  };
  work.peers.push_back({"forward", [=](int reps) {
                          Stream stream = current_stream(device);
                          for (int i = 0; i < reps; ++i) attention::flex_out(results, q, k, v, o, stream);
                          stream.synchronize();
                        }});
  return work;
}

Work work_of(const Device& device, const Mod& mod, const Shape& shape) {
  const std::int64_t l = shape.length, d = shape.d;
  const Dims sizes{1, kHeads, l, d};
  Tensor q = numbers(sizes, shape.dtype, device, 1), k = numbers(sizes, shape.dtype, device, 2), v = numbers(sizes, shape.dtype, device, 3);
  attention::FlexOptions o;
  mod.set(o, l, device);
  attention::FlexResult out{.out = empty(sizes, {.dtype = shape.dtype, .device = device})};
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) attention::flex_out(out, q, k, v, o, stream);
    stream.synchronize();
  };
  // Some rows of one head.
  work.check = [=]() -> std::string {
    const std::int64_t h = 3;
    auto host = [&](const Tensor& t) { return t.select(1, h).to(DType::f32).to_host<float>(); };
    const std::vector<float> hq = host(q), hk = host(k), hv = host(v), got = host(out.out);
    for (std::int64_t i : {std::int64_t{0}, std::int64_t{1}, l / 2 + 77, l - 1}) {
      auto row = [&](const std::vector<float>& x) { return std::span(x).subspan(static_cast<std::size_t>(i * d), static_cast<std::size_t>(d)); };
      auto score = [&](double s, std::int64_t j) { return mod.mask && !mod.mask(i, j, l) ? -1e300 : mod.score ? mod.score(s, h, i, j) : s; };
      if (std::string wrong = check_row(row(hq), hk, hv, row(got), shape.dtype, score); !wrong.empty()) return fmt::format("row {}, {}", i, wrong);
    }
    return {};
  };
  // Our own products with all scores in memory.
  const std::string_view name = mod.name;
  if (shape.dtype == DType::f32 && l <= 4096 && (name == "none" || name == "causal")) {
    const bool causal = name == "causal";
    work.peers.push_back({"math", [=](int reps) {
                            Stream stream = current_stream(device);
                            for (int i = 0; i < reps; ++i) {
                              Tensor scores = linalg::matmul(q, k.mT(), {.alpha = 1 / std::sqrt(static_cast<double>(d))}, stream);
                              if (causal)
                                scores = map([](Expr s) { return select(position(-2) >= position(-1), s, -std::numeric_limits<float>::infinity()); }, {scores},
                                             {}, stream);
                              Tensor result = linalg::matmul(nn::softmax(scores, -1, stream), v, {}, stream);
                            }
                            stream.synchronize();
                          }});
    work.peers.push_back({"sdpa", [=](int reps) {
                            Stream stream = current_stream(device);
                            for (int i = 0; i < reps; ++i)
                              attention::sdpa(q, k, v, {.causal = causal ? attention::Causal::upper_left : attention::Causal::no}, stream);
                            stream.synchronize();
                          }});
    HostNumbers a = host_numbers(kHeads * l * d), b = host_numbers(kHeads * l * d), c = host_numbers(kHeads * l * d);
    auto scores = std::make_shared<std::vector<float>>(static_cast<std::size_t>(l * l)), result = std::make_shared<std::vector<float>>(a->size());
    work.peers.push_back({"openblas", [=](int reps) {
                            for (int i = 0; i < reps; ++i)
                              blas::attention_f32(result->data(), a->data(), b->data(), c->data(), scores->data(), kHeads, l, d, causal);
                          }});
  }
  const std::string setup =
      fmt::format("import torch.nn.attention.flex_attention as F; L = {}; q, k, v = [torch.randn(1, {}, L, {}, device=device).to({}) for _ in range(3)]", l,
                  kHeads, d, torch_dtype(shape.dtype));
  if (name == "none" || name == "causal")
    add_torch_peer(work, device, setup,
                   fmt::format("torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal={})", name == "causal" ? "True" : "False"), "sdpa");
  // torch takes half a minute to compile a mod: at the sizes with targets.
  if (shape.dtype == DType::f32 && l == 2048)
    add_torch_peer(
        work, device,
        setup + fmt::format("; ids = torch.arange(L, device=device) // (L // {}); slopes = 2.0 ** -(torch.arange({}, device=device) + 1.0); table = "
                            "torch.arange(2 * L - 1, device=device) * 0.001; mask = lambda m: F.create_block_mask(m, None, None, L, L, device=device); "
                            "torch._dynamo.reset(); flex = torch.compile(F.flex_attention); args = dict({})",
                            kDocuments, kHeads, mod.torch),
        "flex(q, k, v, **args)", "compiled flex");
  return work;
}

/// One query of each head, `group` of them for each of eight heads of keys, of which `paged` ones lie in pages in a mixed order.
Work decode_of(const Device& device, std::int64_t kv_len, std::int64_t group, bool paged, DType dtype) {
  constexpr std::int64_t kSize = 64, kPage = 128;
  const Dims keys{1, kHeads, kv_len, kSize}, queries{1, kHeads * group, 1, kSize};
  Tensor q = numbers(queries, dtype, device, 1), k = numbers(keys, dtype, device, 2), v = numbers(keys, dtype, device, 3);
  attention::FlexOptions o{.enable_gqa = true};
  Tensor held_k = k, held_v = v;
  if (paged) {
    attention::PagedCache cache(
        {.pages = kv_len / kPage, .page_size = kPage, .max_batch = 2, .heads = kHeads, .key_size = kSize, .dtype = dtype, .device = device});
    for (std::int64_t n = kPage; 2 * n <= kv_len; n += kPage) cache.reserve(0, n), cache.reserve(1, n);
    cache.erase(1);
    cache.reserve(0, kv_len);
    const Tensor sequences = from_host<std::int32_t>({0}, device);
    cache.assign(sequences, arange(0, static_cast<double>(kv_len), 1, {.dtype = DType::i32, .device = device}).unsqueeze(0), k, v);
    o.varlen = cache.varlen(from_host<std::int32_t>({static_cast<std::int32_t>(kv_len)}, device), sequences);
    held_k = cache.keys(), held_v = cache.values();
  }
  attention::FlexResult out{.out = empty(queries, {.dtype = dtype, .device = device})};
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) attention::flex_out(out, q, held_k, held_v, o, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    auto host = [&](const Tensor& t, std::int64_t h) { return t.select(1, h).to(DType::f32).to_host<float>(); };
    const std::int64_t h = kHeads * group - 2;
    return check_row(host(q, h), host(k, h / group), host(v, h / group), host(out.out, h), dtype);
  };
  // The same bytes, read and added up.
  work.peers.push_back({"sums", [=](int reps) {
                          for (int i = 0; i < reps; ++i) {
                            Tensor a = sum(held_k), b = sum(held_v);
                          }
                          current_stream(device).synchronize();
                        }});
  add_torch_peer(work, device,
                 fmt::format("q = torch.randn(1, {}, 1, {}, device=device).to({}); k, v = [torch.randn(1, {}, {}, {}, device=device).to({}) for _ in range(2)]",
                             kHeads * group, kSize, torch_dtype(dtype), kHeads, kv_len, kSize, torch_dtype(dtype)),
                 fmt::format("torch.nn.functional.scaled_dot_product_attention(q, k, v{})", group > 1 ? ", enable_gqa=True" : ""), "sdpa");
  return work;
}

/// Sequences of several lengths, causal; one after another, or, as a peer, each by itself.
struct VarlenRow {
  const char* name;
  std::vector<std::int64_t> lengths;
};
const VarlenRow kVarlen[] = {
    {"mixed", {1000, 37, 512, 2048, 300, 129, 1500, 64, 777, 1825}},
    {"equal", {1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024}},
    {"short", std::vector<std::int64_t>(64, 128)},
};
std::int64_t total_of(const std::vector<std::int64_t>& lengths) { return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }

Work varlen_of(const Device& device, const VarlenRow& row, std::int64_t d) {
  const std::int64_t total = total_of(row.lengths);
  const Dims sizes{total, kHeads, d};
  Tensor q = numbers(sizes, DType::f32, device, 1), k = numbers(sizes, DType::f32, device, 2), v = numbers(sizes, DType::f32, device, 3);
  std::vector<std::int32_t> starts{0};
  for (std::int64_t n : row.lengths) starts.push_back(starts.back() + static_cast<std::int32_t>(n));
  const std::int64_t longest = *std::max_element(row.lengths.begin(), row.lengths.end());
  const Tensor at = from_host(starts, {static_cast<std::int64_t>(starts.size())}, device);
  const attention::FlexOptions o{.mask_mod = attention::causal(), .varlen = {.cu_seq_q = at, .cu_seq_kv = at, .max_q = longest, .max_kv = longest}};
  auto out = std::make_shared<attention::FlexResult>();
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) *out = attention::varlen_attn(q, k, v, o, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    // The last query of the first sequence, and one in the middle of the last.
    const std::int64_t h = 5;
    auto host = [&](const Tensor& t, std::int64_t begin, std::int64_t end) { return t.slice(0, begin, end).select(1, h).to_host<float>(); };
    for (auto [begin, query] : {std::pair(std::int64_t{0}, row.lengths[0] - 1), std::pair(total - row.lengths.back(), total - row.lengths.back() / 2)})
      if (std::string wrong =
              check_row(host(q, query, query + 1), host(k, begin, query + 1), host(v, begin, query + 1), host(out->out, query, query + 1), DType::f32);
          !wrong.empty())
        return fmt::format("query {}, {}", query, wrong);
    return {};
  };
  work.peers.push_back({"each alone", [=](int reps) {
                          Stream stream = current_stream(device);
                          for (int i = 0; i < reps; ++i)
                            for (std::size_t b = 0; b < row.lengths.size(); ++b) {
                              auto one = [&](const Tensor& t) { return t.slice(0, starts[b], starts[b + 1]).transpose(0, 1).unsqueeze(0); };
                              Tensor made = attention::sdpa(one(q), one(k), one(v), {.causal = attention::Causal::upper_left}, stream).out;
                            }
                          stream.synchronize();
                        }});
  std::string lengths;
  for (std::int64_t n : row.lengths) lengths += fmt::format("{}, ", n);
  add_torch_peer(work, device,
                 fmt::format("lengths = [{}]; q, k, v = [[torch.randn(1, {}, n, {}, device=device) for n in lengths] for _ in range(3)]", lengths, kHeads, d),
                 "[torch.nn.functional.scaled_dot_product_attention(a, b, c, is_causal=True) for a, b, c in zip(q, k, v)]", "sdpa each");
  return work;
}

void register_few(Rows& rows) {
  for (std::int64_t kv_len : {4096, 16384, 65536})
    for (std::int64_t group : {1, 4})
      for (bool paged : {false, true})
        for (DType dtype : {DType::f32, DType::bf16}) {
          if ((group > 1 || paged) && dtype != DType::f32) continue;
          if (group > 1 && paged) continue;
          const double keys = static_cast<double>(kHeads * kv_len * 64);
          rows.push_back({.name = fmt::format("flex/decode/{}{}{}kv{}", group > 1 ? "gqa4/" : "", paged ? "paged/" : "",
                                              dtype == DType::f32 ? "" : fmt::format("{}/", clutch::name(dtype)), kv_len),
                          // Keys and values: the plans state parts of results, too, and of pages all that the cache has.
                          .bytes = 2 * keys * static_cast<double>(dtype == DType::f32 ? 4 : 2),
                          .reads_only = true,
                          .in_default = kv_len == 16384 && dtype == DType::f32,
                          .in_quick = kv_len == 4096 && group == 1 && !paged && dtype == DType::f32,
                          .prepare = [=](const Device& device) { return decode_of(device, kv_len, group, paged, dtype); }});
        }
  for (const VarlenRow& row : kVarlen)
    for (std::int64_t d : {64, 128}) {
      double visited = 0, dense = 0;
      for (std::int64_t n : row.lengths)
        visited += static_cast<double>(n) * static_cast<double>(n + 1) / 2, dense += static_cast<double>(n) * static_cast<double>(n);
      const double of_score = 4.0 * kHeads * static_cast<double>(d);
      rows.push_back({.name = fmt::format("flex/varlen/{}_{}_d{}", row.name, total_of(row.lengths), d),
                      // The plan states all pairs of queries with as many keys as the longest sequence has.
                      .flops = of_score * visited,
                      .dense_flops = of_score * dense,
                      .in_default = d == 64 && std::string_view(row.name) == "mixed",
                      .prepare = [&row, d](const Device& device) { return varlen_of(device, row, d); }});
    }
}

/// Attention of any lengths, heads and sizes; kv=0 stands for as many keys as queries.
Work random_of(const Device& device, const RandomShape& shape) {
  const DType dtype = dtype_named(shape.word("dtype"));
  const std::int64_t batch = shape.number("batch"), heads = shape.number("heads"), group = shape.number("group"), l = shape.number("q"), d = shape.number("d");
  const std::int64_t kv_len = shape.number("kv") == 0 ? l : shape.number("kv");
  const std::string& mask = shape.word("mask");
  constexpr std::int64_t kWindow = 256;
  const Dims queries{batch, heads * group, l, d}, keys{batch, heads, kv_len, d};
  Tensor q = numbers(queries, dtype, device, 1), k = numbers(keys, dtype, device, 2), v = numbers(keys, dtype, device, 3);
  attention::FlexOptions o{.enable_gqa = true};
  // Keys that a query attends to are a range of them.
  std::function<std::int64_t(std::int64_t)> first = [](std::int64_t) { return std::int64_t{0}; }, last = [=](std::int64_t) { return kv_len; };
  auto set = [&](const attention::MaskMod& mod) { o.block_mask = attention::create_block_mask(mod, {.q_len = l, .kv_len = kv_len, .device = device}); };
  if (mask == "causal" || mask == "window256") last = [=](std::int64_t i) { return std::min(i + 1, kv_len); };
  if (mask == "causal") set(attention::causal());
  if (mask == "window256") {
    first = [=](std::int64_t i) { return std::max<std::int64_t>(0, i - kWindow); };
    set(attention::sliding_window(kWindow));
  }
  if (mask == "document") {
    const std::int64_t each = (l + kDocuments - 1) / kDocuments;
    first = [=](std::int64_t i) { return i / each * each; };
    last = [=](std::int64_t i) { return std::min((i / each + 1) * each, kv_len); };
    set(attention::document(map([&](Expr i) { return floor_div(i, each); }, arange(0, static_cast<double>(l), 1, {.dtype = DType::i32, .device = device}))));
  }
  attention::FlexResult out{.out = empty(queries, {.dtype = dtype, .device = device})};
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) attention::flex_out(out, q, k, v, o, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    for (auto [b, h] : {std::pair(std::int64_t{0}, heads * group - 1), std::pair(batch - 1, heads * group / 2)}) {
      auto host = [b = b](const Tensor& t, std::int64_t head) { return t.select(0, b).select(0, head).to(DType::f32).to_host<float>(); };
      const std::vector<float> hq = host(q, h), hk = host(k, h / group), hv = host(v, h / group), got = host(out.out, h);
      for (std::int64_t i : {std::int64_t{0}, l / 2, l - 1}) {
        auto row = [&](const std::vector<float>& x) { return std::span(x).subspan(static_cast<std::size_t>(i * d), static_cast<std::size_t>(d)); };
        auto score = [&](double s, std::int64_t j) { return j >= first(i) && j < last(i) ? s : -1e300; };
        if (std::string wrong = check_row(row(hq), hk, hv, row(got), dtype, score); !wrong.empty())
          return fmt::format("matrix {}, head {}, row {}, {}", b, h, i, wrong);
      }
    }
    return {};
  };
  if (dtype == DType::f32) {
    HostNumbers a = host_numbers(q.numel()), b = host_numbers(k.numel()), c = host_numbers(v.numel()), result = host_numbers(q.numel());
    const Peer peer = blas::attention_peer(result->data(), a->data(), b->data(), c->data(), {batch, heads, group, l, kv_len, d, first, last});
    work.peers.push_back({peer.name, [a, b, c, result, run = peer.run](int reps) { run(reps); }});
  }
  std::string options = group > 1 ? ", enable_gqa=True" : "", masks;
  if (mask == "causal") options += ", is_causal=True";
  if (mask == "window256" || mask == "document") {
    options += ", attn_mask=m";
    masks = fmt::format(
        "; i, j = torch.arange({}, device=device)[:, None], torch.arange({}, device=device)[None]; m = {}", l, kv_len,
        mask == "document" ? fmt::format("i // {0} == j // {0}", (l + kDocuments - 1) / kDocuments) : fmt::format("(i >= j) & (i - j <= {})", kWindow));
  }
  add_torch_peer(
      work, device,
      fmt::format("q = torch.randn({0}, {1}, {2}, {3}, device=device).to({6}); k, v = [torch.randn({0}, {4}, {5}, {3}, device=device).to({6}) for _ in "
                  "range(2)]{7}",
                  batch, heads * group, l, d, heads, kv_len, torch_dtype(dtype), masks),
      fmt::format("torch.nn.functional.scaled_dot_product_attention(q, k, v{})", options), "sdpa");
  return work;
}

}  // namespace

void sweep_flex(SweptOps& ops) {
  ops.push_back({.name = "flex",
                 .parameters = {{.name = "dtype", .words = {"f32", "f16", "bf16"}},
                                {.name = "batch", .most = 64, .often_least = 0.3},
                                {.name = "heads", .most = 32},
                                {.name = "group", .most = 8, .often_least = 0.5},
                                {.name = "q", .most = 8192, .often_least = 0.15},
                                {.name = "kv", .least = 0, .most = 65536, .often_least = 0.6},
                                {.name = "d", .least = 8, .most = 256},
                                {.name = "mask", .words = {"none", "none", "causal", "window256", "document"}}},
                 .load =
                     [](const RandomShape& s) {
                       const auto q = static_cast<double>(s.number("q")), kv = s.number("kv") == 0 ? q : static_cast<double>(s.number("kv"));
                       const double heads = static_cast<double>(s.number("batch") * s.number("heads")), group = static_cast<double>(s.number("group"));
                       const auto d = static_cast<double>(s.number("d"));
                       // Twice for peers, and two threads' scores.
                       return Load{16 * heads * d * (group * q + kv) + 8 * q * kv, 4 * heads * group * q * kv * d};
                     },
                 .prepare = random_of,
                 .refuses =
                     [](const RandomShape& s) {
                       return s.word("mask") != "none" && s.number("kv") != 0
                                  ? std::string("kv must be 0, as many keys as queries, where a mask is given, got others")
                                  : std::string();
                     }});
}

void register_flex(Rows& rows) {
  register_few(rows);
  for (const Mod& mod : kMods)
    for (std::int64_t d : {64, 128})
      for (std::int64_t l : {512, 1024, 2048, 4096, 8192})
        for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
          const std::string_view name = mod.name;
          if (dtype != DType::f32 && (l != 2048 || (name != "none" && name != "causal"))) continue;
          double visited = 0;
          const std::int64_t blocks = l / 128;
          for (std::int64_t i = 0; i < blocks; ++i)
            for (std::int64_t j = 0; j < blocks; ++j) visited += !mod.visits || mod.visits(i, j, blocks);
          rows.push_back({.name = fmt::format("flex/{}/{}b1_h8_l{}_d{}", mod.name, dtype == DType::f32 ? "" : fmt::format("{}/", clutch::name(dtype)), l, d),
                          .visited = visited / static_cast<double>(blocks * blocks),
                          .in_default = dtype == DType::f32 && l == 2048 && d == 64,
                          .in_quick = dtype == DType::f32 && l == 512 && d == 64 && (name == "none" || name == "causal"),
                          .prepare = [&mod, l, d, dtype](const Device& device) {
                            return work_of(device, mod, {l, d, dtype});
                          }});
          if (dtype != DType::f32 || l > 4096) continue;
          Row back = rows.back();
          back.name += "/backward";
          back.in_quick = false, back.in_default = back.in_default && (name == "none" || name == "causal");
          back.prepare = [&mod, l, d, dtype](const Device& device) { return backward_of(device, mod, {l, d, dtype}); };
          rows.push_back(std::move(back));
        }
}

}  // namespace clutch::bench
