// SPDX-License-Identifier: Apache-2.0
// A transformer block of characters: steps of training, and decoding from a paged cache, both as captured graphs. A row's name says how many tokens one call
// takes; rows that end in "fused" replay by this backend, beside eager calls and compiled PyTorch.
#include "cases/networks.hpp"
#include "harness/bench.hpp"
#include "peers/torch.hpp"

#include <fmt/format.h>

#include <cmath>

namespace clutch::bench {

void register_networks(Rows& rows);

namespace {

constexpr cases::TransformerSize kSize{.batch = 8, .time = 256, .width = 256, .heads = 4};

/// The same block for PyTorch, with its fused optimizer.
std::string torch_block() {
  return fmt::format(R"(
import torch.nn as nn, torch.nn.functional as F
B, T, W, H, C = {}, {}, {}, {}, 17
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters, self.places = nn.Embedding(C, W), nn.Embedding(T, W)
        self.query, self.key, self.value, self.mixed = [nn.Linear(W, W) for _ in range(4)]
        self.norm1, self.norm2, self.norm3 = [nn.LayerNorm(W) for _ in range(3)]
        self.up, self.down, self.logits = nn.Linear(W, 4 * W), nn.Linear(4 * W, W), nn.Linear(W, C)
    def forward(self, tokens, places, attend):
        x = self.characters(tokens) + self.places(places)
        n = self.norm1(x)
        split = lambda t: t.view(t.shape[0], t.shape[1], H, W // H).transpose(1, 2)
        x = x + self.mixed(attend(split(self.query(n)), split(self.key(n)), split(self.value(n))).transpose(1, 2).reshape(x.shape))
        return self.logits(self.norm3(x + self.down(F.gelu(self.up(self.norm2(x))))))
net = Block().to(device)
)",
                     kSize.batch, kSize.time, kSize.width, kSize.heads);
}

/// Forward, backward and AdamW.
struct Training {
  cases::TransformerBlock net;
  optim::AdamW adamw;
  Graph graph;
  Tensor loss;
  Training(const Device& device, cases::Attends attends, const Stream& stream, const char* backend = "")
      : net(device, kSize, attends), adamw(net.param_list(), {.lr = 1e-3}), graph({.backend = backend}) {
    StreamGuard guard(stream);
    GraphCapture capture(graph, stream);
    step();
  }
  void step() {
    loss = net.loss_and_grads();
    adamw.step(net.grad_list());
  }
  /// Parameters, each after the other.
  std::vector<std::vector<std::uint8_t>> bits(const Stream& stream) const {
    std::vector<std::vector<std::uint8_t>> all;
    for (const Tensor& t : net.param_list()) all.push_back(t.to_bytes(stream));
    return all;
  }
};

constexpr const char* kTorchTraining = R"(
tokens, places, target = torch.randint(C, (B, T), device=device), torch.arange(T, device=device), torch.randint(C, (B * T,), device=device)
adamw = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
attend = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
def step(net=net):
    with torch.enable_grad():
        F.cross_entropy(net(tokens, places, attend).view(-1, C), target).backward()
    adamw.step()
    adamw.zero_grad()
)";

Work train(const Device& device) {
  const Stream stream = current_stream(device);
  auto fused = std::make_shared<Training>(device, cases::Attends::by_sdpa, stream),
       products = std::make_shared<Training>(device, cases::Attends::by_products, stream);
  auto replays = [=](const std::shared_ptr<Training>& t) {
    return [=](int reps) {
      for (int r = 0; r < reps; ++r) t->graph.replay(stream);
      stream.synchronize();
    };
  };
  replays(fused)(1);
  const double first = fused->loss.item(stream);
  Work work{.run = replays(fused)};
  work.check = [=]() -> std::string {
    replays(fused)(10);
    const double now = fused->loss.item(stream);
    return std::isfinite(now) && now < 0.9 * first ? "" : fmt::format("the loss goes from {} to {}", first, now);
  };
  work.peers.push_back({"by products", replays(products)});
  add_torch_peer(work, device, torch_block() + kTorchTraining, "step()", "step");
  return work;
}

/// The same step by the backend "fused"; each call of the peer is the step's eager calls.
Work train_fused(const Device& device) {
  const Stream stream = current_stream(device);
  auto ours = std::make_shared<Training>(device, cases::Attends::by_sdpa, stream, "fused"),
       eager = std::make_shared<Training>(device, cases::Attends::by_sdpa, stream);
  Work work;
  work.run = [=](int reps) {
    for (int r = 0; r < reps; ++r) ours->graph.replay(stream);
    stream.synchronize();
  };
  auto calls = [=](int reps) {
    const StreamGuard guard(stream);
    for (int r = 0; r < reps; ++r) eager->step();
    stream.synchronize();
  };
  work.peers.push_back({"eager", calls});
  // A replay and an eager step from the same state have the same bits.
  work.check = [=]() -> std::string {
    for (const auto& [name, t] : ours->net.params) copy_(eager->net.params.at(name), t, {}, stream);
    eager->adamw.load_state(ours->adamw.state(), stream);
    ours->graph.replay(stream);
    calls(1);
    return ours->bits(stream) == eager->bits(stream) ? "" : "a fused step differs from eager calls";
  };
  add_torch_peer(work, device, torch_block() + kTorchTraining, "step()", "step");
  add_torch_peer(work, device, torch_block() + kTorchTraining + "compiled = torch.compile(net)\n", "step(compiled)", "compiled");
  return work;
}

/// Each sequence's characters one after another, the likeliest next.
struct Decoding {
  cases::TransformerBlock net;
  attention::PagedCache cache;
  Tensor sequences, tokens, places, used, logits;
  Graph graph;
  static Tensor whole(const Device& device, double value) { return full({kSize.batch}, value, {.dtype = DType::i32, .device = device}); }
  Decoding(const Device& device, const Stream& stream, const char* backend = "")
      : net(device, kSize, cases::Attends::by_sdpa),
        cache({.pages = kSize.batch * 4,
               .page_size = 64,
               .max_batch = kSize.batch,
               .max_pages = 4,
               .heads = kSize.heads,
               .key_size = kSize.head(),
               .device = device},
              stream),
        sequences(arange(0, static_cast<double>(kSize.batch), 1, {.dtype = DType::i32, .device = device}, stream)),
        tokens(whole(device, 0)),
        places(whole(device, 0)),
        used(whole(device, 1)),
        graph({.backend = backend}) {
    for (std::int64_t n = 64; n <= kSize.time; n += 64)
      for (std::int64_t b = 0; b < kSize.batch; ++b) cache.reserve(b, n, stream);
    StreamGuard guard(stream);
    GraphCapture capture(graph, stream);
    step();
  }
  void step() {
    logits = net.decode(tokens, places, used, sequences, cache);
    copy_(tokens, argmax(logits, {.dims = {-1}}));
    add_(places, 1), add_(used, 1);
  }
  void begin(const Stream& stream) { fill_(tokens, 0, {}, stream), fill_(places, 0, {}, stream), fill_(used, 1, {}, stream); }
};

constexpr const char* kTorchDecoding = R"(
keys, values = [torch.zeros(B, H, T, W // H, device=device) for _ in range(2)]
places = torch.arange(T, device=device)
def decode(net=net):
    tokens = torch.zeros(B, 1, dtype=torch.long, device=device)
    for t in range(T):
        def attend(q, k, v):
            keys[:, :, t:t + 1], values[:, :, t:t + 1] = k, v
            return F.scaled_dot_product_attention(q, keys[:, :, :t + 1], values[:, :, :t + 1])
        tokens = net(tokens, places[t:t + 1], attend).argmax(-1)
)";
/// With all keys behind a mask, so that each step has the same shapes and one compiled graph takes all.
constexpr const char* kTorchCompiledDecoding = R"(
def token(tokens, place, allowed):
    def attend(q, k, v):
        keys.index_copy_(2, place, k), values.index_copy_(2, place, v)
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=allowed)
    return net(tokens, place, attend).argmax(-1)
compiled, masks = torch.compile(token), torch.ones(T, T, dtype=torch.bool, device=device).tril()
def decode_compiled():
    tokens = torch.zeros(B, 1, dtype=torch.long, device=device)
    for t in range(T):
        tokens = compiled(tokens, places[t:t + 1], masks[t:t + 1])
)";

Work decode_by(const Device& device, const char* backend) {
  const Stream stream = current_stream(device);
  auto d = std::make_shared<Decoding>(device, stream, backend);
  Work work;
  work.run = [=](int reps) {
    for (int r = 0; r < reps; ++r) {
      d->begin(stream);
      for (std::int64_t t = 0; t < kSize.time; ++t) d->graph.replay(stream);
    }
    stream.synchronize();
  };
  auto eager = [=](int reps) {
    const StreamGuard guard(stream);
    const Tensor captured = d->logits;
    for (int r = 0; r < reps; ++r) {
      d->begin(stream);
      for (std::int64_t t = 0; t < kSize.time; ++t) d->step();
    }
    stream.synchronize();
    return std::exchange(d->logits, captured);
  };
  // Eager calls give the same bits, and have been everywhere.
  work.check = [=]() -> std::string {
    const std::vector<std::uint8_t> replayed = d->logits.to_bytes(stream);
    if (d->places.to_host<std::int32_t>(stream)[0] != kSize.time) return "not all places were decoded";
    return eager(1).to_bytes(stream) == replayed ? "" : "replays differ from eager calls";
  };
  work.peers.push_back({"eager", eager});
  add_torch_peer(work, device, torch_block() + kTorchDecoding, "decode()", "decode");
  if (*backend) add_torch_peer(work, device, torch_block() + kTorchDecoding + kTorchCompiledDecoding, "decode_compiled()", "compiled");
  return work;
}

}  // namespace

void register_networks(Rows& rows) {
  const double tokens = static_cast<double>(kSize.tokens()), width = static_cast<double>(kSize.width), weights = 12 * width * width + 17 * width;
  // Three products with each weight for one of the forward pass; causal attention is half of its square.
  // The products alone: the plans state layers and the optimizer, too.
  const double forward = tokens * (2 * weights + 2 * width * static_cast<double>(kSize.time));
  rows.push_back({.name = fmt::format("networks/transformer/train/{}_tokens", kSize.tokens()), .flops = 3 * forward, .prepare = train});
  rows.push_back({.name = fmt::format("networks/transformer/train/{}_tokens/fused", kSize.tokens()), .flops = 3 * forward, .prepare = train_fused});
  for (const char* backend : {"", "fused"})
    rows.push_back({.name = fmt::format("networks/transformer/decode/{}_tokens{}{}", kSize.tokens(), *backend ? "/" : "", backend),
                    .flops = forward,
                    .prepare = [=](const Device& device) { return decode_by(device, backend); }});
}

}  // namespace clutch::bench
