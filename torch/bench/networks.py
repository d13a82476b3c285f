# SPDX-License-Identifier: Apache-2.0
"""The networks that are tested and timed: transformers like GPT-2 and Llama with caches, and graph convolutions. Nothing in them knows the device."""
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
