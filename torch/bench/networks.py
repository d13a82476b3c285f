# SPDX-License-Identifier: Apache-2.0
"""The networks that are tested and timed: transformers like GPT-2, Llama, BERT, ViT and T5, Mamba, recurrent ones, and graph convolutions. Nothing in them knows
the device."""
import torch
import torch.nn.functional as F
from torch import nn


class Cache:
    """Keys and values of all layers at their places, in memory that stays: what a graph can record."""

    def __init__(self, layers, batch, heads, length, size, device, dtype=torch.float32):
        self.keys, self.values = ([torch.zeros(batch, heads, length, size, device=device, dtype=dtype) for _ in range(layers)] for _ in range(2))
        self.places = torch.arange(length, device=device)

    def put(self, layer, k, v, at):
        """Both with the new ones at the places `at`, and which of them each new one may see."""
        self.keys[layer].index_copy_(2, at, k)
        self.values[layer].index_copy_(2, at, v)
        return self.keys[layer], self.values[layer], self.places[None, :] <= at[:, None]


def attend(q, k, v, cache, layer, at, gqa=False):
    if cache is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=gqa)
    k, v, seen = cache.put(layer, k, v, at)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=gqa)


class Gpt(nn.Module):
    def __init__(self, vocabulary=64, width=32, heads=4, layers=2, length=16):
        super().__init__()
        self.heads = heads
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(dict(n1=nn.LayerNorm(width), qkv=nn.Linear(width, 3 * width), o=nn.Linear(width, width), n2=nn.LayerNorm(width),
                               up=nn.Linear(width, 4 * width), down=nn.Linear(4 * width, width))) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def cache(self, batch):
        weight = self.tokens.weight
        return Cache(len(self.blocks), batch, self.heads, self.places.num_embeddings, weight.size(1) // self.heads, weight.device, weight.dtype)

    def forward(self, tokens, cache=None, at=None):
        b, n = tokens.shape
        x = self.tokens(tokens) + self.places(torch.arange(n, device=tokens.device) if at is None else at)
        for layer, block in enumerate(self.blocks):
            q, k, v = block["qkv"](block["n1"](x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            x = x + block["o"](attend(q, k, v, cache, layer, at).transpose(1, 2).reshape(b, n, -1))
            x = x + block["down"](F.gelu(block["up"](block["n2"](x)), approximate="tanh"))
        return self.head(self.norm(x))


class Llama(nn.Module):
    """RMSNorm, rotary positions, grouped heads, SwiGLU."""

    def __init__(self, vocabulary=64, width=32, heads=4, kv_heads=2, layers=1, inner=64, length=16):
        super().__init__()
        self.heads, self.kv_heads, self.size, self.length = heads, kv_heads, width // heads, length
        self.tokens, self.norm, self.head = nn.Embedding(vocabulary, width), nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

        def plain(inputs, outputs):
            return nn.Linear(inputs, outputs, bias=False)

        self.blocks = nn.ModuleList(
            nn.ModuleDict(dict(n1=nn.RMSNorm(width), q=plain(width, width), k=plain(width, kv_heads * self.size), v=plain(width, kv_heads * self.size),
                               o=plain(width, width), n2=nn.RMSNorm(width), gate=plain(width, inner), up=plain(width, inner), down=plain(inner, width)))
            for _ in range(layers))

    def cache(self, batch):
        weight = self.tokens.weight
        return Cache(len(self.blocks), batch, self.kv_heads, self.length, self.size, weight.device, weight.dtype)

    def angles(self, at, dtype):
        half = self.size // 2
        angles = at[:, None] / 10000 ** (torch.arange(half, device=at.device) / half)
        return angles.cos().to(dtype), angles.sin().to(dtype)

    def forward(self, tokens, cache=None, at=None):
        b, n = tokens.shape
        x = self.tokens(tokens)
        cos, sin = self.angles(torch.arange(n, device=x.device) if at is None else at, x.dtype)

        def rotated(t):
            first, second = t.chunk(2, -1)
            return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)

        for layer, block in enumerate(self.blocks):
            y = block["n1"](x)
            q, k, v = (block[p](y).view(b, n, h, self.size).transpose(1, 2) for p, h in (("q", self.heads), ("k", self.kv_heads), ("v", self.kv_heads)))
            y = attend(rotated(q), rotated(k), v, cache, layer, at, gqa=True)
            x = x + block["o"](y.transpose(1, 2).reshape(b, n, -1))
            y = block["n2"](x)
            x = x + block["down"](F.silu(block["gate"](y)) * block["up"](y))
        return self.head(self.norm(x))


class Gcn(nn.Module):
    """Two graph convolutions by messages along edges, as torch_geometric computes them: gathered, weighted, added up."""

    def __init__(self, inputs, inner, classes):
        super().__init__()
        self.first, self.second = nn.Linear(inputs, inner), nn.Linear(inner, classes)

    def convolve(self, layer, x, edges, weight):
        x = layer(x)
        messages = x.index_select(0, edges[0]) * weight[:, None]
        return torch.zeros_like(x).index_add_(0, edges[1], messages)

    def forward(self, x, edges, weight):
        return self.convolve(self.second, F.relu(self.convolve(self.first, x, edges, weight)), edges, weight)


def edge_weights(edges, nodes):
    """1 / sqrt(degree of both ends)."""
    degree = torch.zeros(nodes, device=edges.device).index_add_(0, edges[1], torch.ones(edges.size(1), device=edges.device))
    scale = degree.clamp(min=1).rsqrt()
    return scale.index_select(0, edges[0]) * scale.index_select(0, edges[1])


def next_token_loss(net, tokens):
    return F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def heads_of(x, heads):
    """(batch, length, width) as (batch, heads, length, size)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merged(x):
    return x.transpose(1, 2).flatten(2)


class Encoder(nn.Module):
    """A block that attends to all that `mask` allows: BERT's, norms behind, or ViT's, norms in front."""

    def __init__(self, width, heads, inner, first):
        super().__init__()
        self.heads, self.first = heads, first
        self.n1, self.qkv, self.o = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.n2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, inner), nn.Linear(inner, width)

    def attended(self, x, mask):
        q, k, v = (heads_of(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        return self.o(merged(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))

    def fed(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x, mask=None):
        if self.first:
            x = x + self.attended(self.n1(x), mask)
            return x + self.fed(self.n2(x))
        x = self.n1(x + self.attended(x, mask))
        return self.n2(x + self.fed(x))


class Bert(nn.Module):
    """Words, places and segments; sequences are padded; the head says the words."""

    def __init__(self, vocabulary=64, width=32, heads=4, layers=2, inner=64, length=32):
        super().__init__()
        self.words, self.places, self.segments = nn.Embedding(vocabulary, width), nn.Embedding(length, width), nn.Embedding(2, width)
        self.norm, self.blocks = nn.LayerNorm(width), nn.ModuleList(Encoder(width, heads, inner, False) for _ in range(layers))
        self.dense, self.last, self.head = nn.Linear(width, width), nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, words, segments, real):
        places = torch.arange(words.size(1), device=words.device)
        x = self.norm(self.words(words) + self.places(places) + self.segments(segments))
        mask = real[:, None, None, :]
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.last(F.gelu(self.dense(x))))


class Vit(nn.Module):
    def __init__(self, image=32, patch=8, width=32, heads=4, layers=2, inner=64, classes=10):
        super().__init__()
        self.patches, self.first = nn.Conv2d(3, width, patch, patch), nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, (image // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(Encoder(width, heads, inner, True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.size(0), -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


class T5(nn.Module):
    """Encoder and decoder; scores have learned biases of distances, and are not scaled."""

    def __init__(self, vocabulary=64, width=32, heads=4, layers=2, inner=64, length=32, distances=16):
        super().__init__()
        self.heads, self.layers, self.length, self.distances = heads, layers, length, distances
        self.words, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary, bias=False)
        self.biases = nn.ModuleList(nn.Embedding(distances, heads) for _ in range(2))
        nn.init.normal_(self.words.weight, std=width**-0.5)

        def plain(inputs, outputs):
            return nn.Linear(inputs, outputs, bias=False)

        def attention():
            return nn.ModuleDict(dict(n=nn.RMSNorm(width), q=plain(width, width), k=plain(width, width), v=plain(width, width), o=plain(width, width)))

        def block(parts):
            return nn.ModuleDict(dict(parts, n=nn.RMSNorm(width), up=plain(width, inner), down=plain(inner, width)))

        self.encoder = nn.ModuleList(block(dict(own=attention())) for _ in range(layers))
        self.decoder = nn.ModuleList(block(dict(own=attention(), other=attention())) for _ in range(layers))
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        for of in (*self.encoder, *self.decoder):
            for part in (of["own"], *([of["other"]] if "other" in of else [])):
                nn.init.normal_(part["q"].weight, std=width**-0.5 / heads)

    def bias(self, side, queries, keys):
        """(1, heads, queries, keys): near ones one by one, far ones as one."""
        apart = (keys[None, :] - queries[:, None]).clamp(-(self.distances // 2), self.distances // 2 - 1) + self.distances // 2
        return self.biases[side](apart).permute(2, 0, 1)[None]

    def attended(self, part, x, k, v, bias):
        q = heads_of(part["q"](part["n"](x)), self.heads)
        return x + part["o"](merged(F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)))

    def keys(self, part, x):
        return (heads_of(part[name](x), self.heads) for name in ("k", "v"))

    def fed(self, block, x):
        return x + block["down"](F.relu(block["up"](block["n"](x))))

    def encoded(self, words):
        x, places = self.words(words), torch.arange(words.size(1), device=words.device)
        bias = self.bias(0, places, places)
        for block in self.encoder:
            x = self.attended(block["own"], x, *self.keys(block["own"], block["own"]["n"](x)), bias)
            x = self.fed(block, x)
        return self.norms[0](x)

    def cache(self, batch, encoded):
        """What decoding keeps: its own keys and values, and those of the encoder's result, which stay."""
        own = Cache(self.layers, batch, self.heads, self.length, encoded.size(-1) // self.heads, encoded.device, encoded.dtype)
        return own, [tuple(self.keys(block["other"], encoded)) for block in self.decoder]

    def decoded(self, words, encoded=None, cache=None, at=None):
        x = self.words(words)
        if cache is None:
            at = keys = torch.arange(words.size(1), device=words.device)
        else:
            keys = cache[0].places
        bias = self.bias(1, at, keys).masked_fill(keys[None, :] > at[:, None], float("-inf"))
        for layer, block in enumerate(self.decoder):
            k, v = self.keys(block["own"], block["own"]["n"](x))
            if cache is not None:
                k, v, _ = cache[0].put(layer, k, v, at)
            x = self.attended(block["own"], x, k, v, bias)
            x = self.attended(block["other"], x, *(self.keys(block["other"], encoded) if cache is None else cache[1][layer]), None)
            x = self.fed(block, x)
        return self.head(self.norms[1](x))

    def forward(self, source, target):
        return self.decoded(target, self.encoded(source))


class Translator(nn.Module):
    """nn.Transformer between embeddings and a head; sources are padded."""

    def __init__(self, vocabulary=64, width=32, heads=4, layers=2, inner=64):
        super().__init__()
        self.words, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.both = nn.Transformer(width, heads, layers, layers, inner, dropout=0.0, batch_first=True)

    def forward(self, source, target, missing, causal):
        y = self.both(self.words(source), self.words(target), tgt_mask=causal, src_key_padding_mask=missing, memory_key_padding_mask=missing, tgt_is_causal=True)
        return self.head(y)


class Mamba(nn.Module):
    """Layers of a short convolution and a selective scan: torch_clutch's function, which is its formula, a loop over the sequence, on devices that are not clutch's."""

    def __init__(self, vocabulary=64, width=32, states=8, layers=2, kernel=4):
        super().__init__()
        inner, rank = 2 * width, max(width // 16, 1)
        self.states, self.rank, self.inner, self.kernel = states, rank, inner, kernel
        self.words, self.norm, self.head = nn.Embedding(vocabulary, width), nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(dict(n=nn.RMSNorm(width), into=nn.Linear(width, 2 * inner, bias=False), conv=nn.Conv1d(inner, inner, kernel, groups=inner),
                               choose=nn.Linear(inner, rank + 2 * states, bias=False), step=nn.Linear(rank, inner), out=nn.Linear(inner, width, bias=False)))
            for _ in range(layers))
        self.rates = nn.ParameterList(torch.arange(1, states + 1).float().log().repeat(inner, 1) for _ in range(layers))
        self.skips = nn.ParameterList(torch.ones(inner) for _ in range(layers))

    def chosen(self, block, u):
        """Steps without their bias, B and C of (batch, length, inner)."""
        step, b, c = block["choose"](u).split([self.rank, self.states, self.states], -1)
        return F.linear(step, block["step"].weight), b, c

    def forward(self, words):
        x = self.words(words)
        for block, rates, skip in zip(self.blocks, self.rates, self.skips):
            u, z = block["into"](block["n"](x)).transpose(1, 2).chunk(2, 1)
            u = F.silu(block["conv"](F.pad(u, (self.kernel - 1, 0))))
            step, b, c = (t.transpose(1, 2) for t in self.chosen(block, u.transpose(1, 2)))
            y = torch.clutch.selective_scan(u, step, -rates.exp(), b, c, skip, z, block["step"].bias, True)
            x = x + block["out"](y.transpose(1, 2))
        return self.head(self.norm(x))

    def cache(self, batch):
        """What stays from word to word, of each layer: the last inputs of the convolution, and the scan's state."""
        like = self.words.weight
        return [(like.new_zeros(batch, self.inner, self.kernel), like.new_zeros(batch, self.inner, self.states)) for _ in self.blocks]

    def next(self, words, cache):
        """Logits behind one more word of each sequence, (batch, 1)."""
        x = self.words(words[:, 0])
        for block, rates, skip, (seen, state) in zip(self.blocks, self.rates, self.skips, cache):
            u, z = block["into"](block["n"](x)).chunk(2, -1)
            seen.copy_(torch.cat([seen[:, :, 1:], u[:, :, None]], 2))
            u = F.silu((seen * block["conv"].weight[:, 0]).sum(-1) + block["conv"].bias)
            step, b, c = self.chosen(block, u)
            step = F.softplus(step + block["step"].bias)
            state.copy_(state * torch.exp(step[:, :, None] * -rates.exp()) + (step * u)[:, :, None] * b[:, None, :])
            y = (state * c[:, None, :]).sum(-1) + skip * u
            x = x + block["out"](y * F.silu(z))
        return self.head(self.norm(x))


class Perceptron(nn.Sequential):
    def __init__(self, inputs=20, inner=64, classes=10):
        super().__init__(nn.Linear(inputs, inner), nn.BatchNorm1d(inner), nn.ReLU(), nn.Linear(inner, inner), nn.GELU(), nn.Linear(inner, classes))


class Recurrent(nn.Module):
    """Two layers in both directions, of `kind`: nn.LSTM or nn.GRU."""

    def __init__(self, kind, inputs=8, inner=16, classes=10):
        super().__init__()
        self.cells, self.head = kind(inputs, inner, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(2 * inner, classes)

    def forward(self, x):
        return self.head(self.cells(x)[0].mean(1))


def added_up(messages, at, like):
    return like.new_zeros(like.size(0), *messages.shape[1:]).index_add_(0, at, messages)


class Gat(nn.Module):
    """Two layers of messages that are weighted by the softmax over a node's edges, as torch_geometric's GATConv has them."""

    def __init__(self, inputs, inner, classes, heads=2):
        super().__init__()
        self.lines = nn.ModuleList([nn.Linear(inputs, heads * inner, bias=False), nn.Linear(heads * inner, heads * classes, bias=False)])
        self.sources, self.targets = (nn.ParameterList(0.1 * torch.randn(heads, size) for size in (inner, classes)) for _ in range(2))
        self.heads = heads

    def convolve(self, layer, x, edges):
        x = self.lines[layer](x).unflatten(-1, (self.heads, -1))
        source, target = ((x * of[layer]).sum(-1) for of in (self.sources, self.targets))
        scores = F.leaky_relu(source.index_select(0, edges[0]) + target.index_select(0, edges[1]), 0.2)
        most = scores.detach().new_full(source.shape, -1e30).scatter_reduce(0, edges[1][:, None].expand_as(scores), scores.detach(), "amax")
        weights = (scores - most.index_select(0, edges[1])).exp()
        sums = added_up(weights, edges[1], x)
        weights = weights / sums.index_select(0, edges[1])
        return added_up(x.index_select(0, edges[0]) * weights[..., None], edges[1], x)

    def forward(self, x, edges):
        return self.convolve(1, F.elu(self.convolve(0, x, edges).flatten(1)), edges).mean(1)


class Sage(nn.Module):
    """Two layers of a node and the mean of its neighbours, as torch_geometric's SAGEConv has them."""

    def __init__(self, inputs, inner, classes):
        super().__init__()
        self.own, self.others = (nn.ModuleList([nn.Linear(inputs, inner), nn.Linear(inner, classes)]) for _ in range(2))

    def convolve(self, layer, x, edges, degree):
        means = added_up(x.index_select(0, edges[0]), edges[1], x) / degree[:, None]
        return self.own[layer](x) + self.others[layer](means)

    def forward(self, x, edges, degree):
        return self.convolve(1, F.relu(self.convolve(0, x, edges, degree)), edges, degree)


class Gin(nn.Module):
    """Two layers of perceptrons of a node's sum with its neighbours, as torch_geometric's GINConv has them."""

    def __init__(self, inputs, inner, classes):
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(a, inner), nn.ReLU(), nn.Linear(inner, b)) for a, b in ((inputs, inner), (inner, classes)))

    def forward(self, x, edges):
        x = F.relu(self.nets[0](x + added_up(x.index_select(0, edges[0]), edges[1], x)))
        return self.nets[1](x + added_up(x.index_select(0, edges[0]), edges[1], x))


def degrees(edges, nodes):
    return torch.zeros(nodes, device=edges.device).index_add_(0, edges[1], torch.ones(edges.size(1), device=edges.device)).clamp(min=1)
