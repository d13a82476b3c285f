# SPDX-License-Identifier: Apache-2.0
"""Steps of training of all kinds of networks, and of decoding of those that generate: eager, as graphs, and compiled. Sizes are such that
a step takes a tenth of a second or less."""
import copy
import functools

import torch
import torch.nn.functional as F
from torch import nn

import networks
from cases import BESIDE, Work, case, close, graphed, trained

VOCABULARY = 1024
NODES, EDGES = 20_000, 200_000


def words(*shape):
    return torch.randint(1, VOCABULARY, shape)


def loss_of_words(logits, labels):
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


def plain_loss(net, *inputs):
    *given, labels = inputs
    return loss_of_words(net(*given), labels)


def llama():
    return lambda: networks.Llama(VOCABULARY, 256, 8, 2, 4, 704, 128), networks.next_token_loss, [words(4, 129)], \
        "Llama-like: 4 layers, 256 wide, 8 heads of which 2 have keys, 4 x 128 tokens"


def bert():
    real = torch.ones(4, 128, dtype=torch.bool)
    real[2:, 96:] = False
    x = words(4, 128)
    labels = x.masked_fill(~real, -100)
    return lambda: networks.Bert(VOCABULARY, 256, 8, 4, 1024, 128), plain_loss, [x, torch.zeros_like(x), real, labels], \
        "BERT-like: 4 layers, 256 wide, 8 heads, 4 x 128 tokens, half of the sequences padded"


def t5():
    y = words(4, 65)
    return lambda: networks.T5(VOCABULARY, 256, 8, 3, 1024, 128), plain_loss, [words(4, 128), y[:, :-1].contiguous(), y[:, 1:].contiguous()], \
        "T5-like: 3 and 3 layers, 256 wide, 8 heads, learned biases of distances, 4 x 128 tokens to 4 x 64"


def vit():
    return lambda: networks.Vit(64, 8, 192, 6, 6, 768, 10), plain_loss, [torch.randn(8, 3, 64, 64), torch.randint(0, 10, (8,))], \
        "ViT: 6 layers, 192 wide, 6 heads, 8 images of 64 x 64 in patches of 8 x 8"


def transformer():
    missing = torch.zeros(4, 128, dtype=torch.bool)
    missing[2:, 96:] = True
    y = words(4, 65)
    causal = nn.Transformer.generate_square_subsequent_mask(64)
    return lambda: networks.Translator(VOCABULARY, 256, 8, 3, 1024), plain_loss, [words(4, 128), y[:, :-1].contiguous(), missing, causal, y[:, 1:].contiguous()], \
        "nn.Transformer: 3 and 3 layers, 256 wide, 8 heads, padded sources of 4 x 128 tokens, targets of 4 x 64"


def mamba():
    return lambda: networks.Mamba(VOCABULARY, 128, 16, 2), networks.next_token_loss, [words(2, 65)], \
        "Mamba: 2 layers, 128 wide, 16 states, 2 x 64 tokens; theirs scans by PyTorch's ops in a loop over the sequence"


def mlp():
    return lambda: networks.Perceptron(256, 1024, 10), plain_loss, [torch.randn(256, 256), torch.randint(0, 10, (256,))], \
        "MLP: 256 to 1024 to 1024 to 10, batch norm, ReLU and GELU, batches of 256"


def recurrent(kind, name):
    return lambda: networks.Recurrent(kind, 32, 64, 10), plain_loss, [torch.randn(16, 32, 32), torch.randint(0, 10, (16,))], \
        f"{name}: 2 layers in both directions, 64 wide, 16 sequences of 32"


def graph_network(make, name, *more):
    edges = torch.randint(0, NODES, (2, EDGES))
    x, labels = torch.randn(NODES, 32), torch.randint(0, 8, (NODES,))
    return lambda: make(32, 32, 8), plain_loss, [x, edges, *(of(edges, NODES) for of in more), labels], f"{name}: {NODES:,} nodes, {EDGES:,} edges, 32 features, 32 inner, 8 classes"


TRAINED = {
    "llama": llama, "bert": bert, "t5": t5, "vit": vit, "transformer": transformer, "mamba": mamba, "mlp": mlp,
    "lstm": lambda: recurrent(nn.LSTM, "LSTM"), "gru": lambda: recurrent(nn.GRU, "GRU"),
    "gat": lambda: graph_network(networks.Gat, "GAT, 2 heads"), "graphsage": lambda: graph_network(networks.Sage, "GraphSAGE", networks.degrees),
    "gin": lambda: graph_network(networks.Gin, "GIN"),
}


def train(name, way):
    torch.manual_seed(0)
    make_net, loss_of, inputs, what = TRAINED[name]()
    calls = trained(make_net, loss_of, inputs, way)
    sizes, *remark = what.split("; ")
    return Work(calls["clutch"], calls["cpu"], "; ".join([f"{sizes}, AdamW fused{BESIDE[way]}", *remark]))


for _name in TRAINED:
    for _way in ("eager", "graph", *(["compiled"] if _name != "lstm" else [])):  # inductor has no LSTM of the CPU
        case(f"{_name}_train/{_way}")(functools.partial(train, _name, _way))


# Decoding. GPT's and Llama's are among cases.py.
def decoded(host, start, next_word, is_graph, what):
    """`start(net, device)`: what a sequence's beginning leaves; `next_word(net, *of it)`: logits of one more word."""
    host = host.eval()
    calls, logits = {}, {}
    for where in ("clutch", "cpu"):
        net = copy.deepcopy(host).to(where)
        with torch.no_grad():
            left = start(net, where)

        def step(net=net, left=left):
            with torch.no_grad():
                return next_word(net, *left)

        logits[where] = step()
        calls[where] = step
    close(logits["clutch"], logits["cpu"], 1e-3, 1e-4)
    if is_graph:
        graph = graphed(calls["clutch"])
        calls["clutch"] = graph.replay
    return Work(calls["clutch"], calls["cpu"], what + (", a graph" if is_graph else ""))


def t5_decode(is_graph):
    torch.manual_seed(0)
    source, target = words(1, 128), words(1, 101)

    def start(net, where):
        cache = net.cache(1, net.encoded(source.to(where)))
        net.decoded(target[:, :-1].to(where), cache=cache, at=torch.arange(100, device=where))
        return target[:, -1:].to(where), cache, torch.tensor([100], device=where)

    return decoded(networks.T5(VOCABULARY, 256, 8, 3, 1024, 128), start, lambda net, word, cache, at: net.decoded(word, cache=cache, at=at), is_graph,
                   "T5-like: one token behind 100 and a source of 128, 3 and 3 layers, 256 wide, f32")


def mamba_decode(is_graph):
    torch.manual_seed(0)
    prompt = words(1, 17)

    def start(net, where):
        cache, moved = net.cache(1), prompt.to(where)
        for i in range(16):
            net.next(moved[:, i:i + 1], cache)
        return moved[:, 16:], cache

    return decoded(networks.Mamba(VOCABULARY, 256, 16, 4), start, lambda net, word, cache: net.next(word, cache), is_graph,
                   "Mamba: one token, 4 layers, 256 wide, 16 states, by PyTorch's ops on both sides, f32")


for _name, _make in (("t5", t5_decode), ("mamba", mamba_decode)):
    for _way in ("eager", "graph"):
        case(f"{_name}_decode/{_way}")(functools.partial(_make, _way == "graph"))
