# SPDX-License-Identifier: Apache-2.0
"""Steps that are timed, and what makes them. A case makes the same work for `clutch` and for PyTorch's CPU device, compares their results, and gives both calls."""
import copy
import ctypes
import os
from typing import Callable, NamedTuple

import torch
import torch._dynamo
import torch.nn.functional as F

import networks

CASES = {}


class Work(NamedTuple):
    ours: Callable
    theirs: Callable
    what: str  # of the sizes


def case(name, target=None):
    """`target`: the ratio that the project wants."""

    def add(make):
        CASES[name] = (make, target)
        return make

    return add


def close(ours, theirs, rtol, atol):
    torch.testing.assert_close(ours.detach().cpu().float(), theirs.detach().float(), rtol=rtol, atol=atol)


def graphed(step):
    """The step as one call without Python in it; it has been called before, so that its kernels and states are there. Backends of graphs take turns at first: the
    call that is timed is of the one that was chosen.
    """
    stream = torch.Stream("clutch")
    torch.accelerator.synchronize()
    with stream:
        step()
    torch.accelerator.synchronize()
    graph = torch.clutch.Graph()
    with stream, graph:
        graph.result = step()
    for _ in range(64):
        graph.replay()
        torch.accelerator.synchronize()
        if "take turns" not in graph.report()["why"]:
            return graph
    raise RuntimeError(f"a graph must choose its backend within 64 replays, got {graph.report()['why']}")


# Training.
def trained(make_net, loss_of, inputs, way="eager", steps=3, rtol=2e-4):
    """A step of AdamW on both devices; their losses are compared over some steps. `way`: what clutch's is, "eager", a "graph", or "compiled" on both sides, by
    clutch's backend and by inductor.
    """
    torch.manual_seed(0)
    host = make_net()
    device = copy.deepcopy(host).to("clutch")
    calls, losses = {}, {}
    for net, where in ((device, "clutch"), (host, "cpu")):
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
        moved = [t.to(where) for t in inputs]

        def loss_now(net=net, moved=moved):
            return loss_of(net, *moved)

        if way == "compiled":
            torch._dynamo.config.allow_rnn = True
            loss_now = torch.compile(loss_now, fullgraph=True, **(dict(backend="clutch", options={"graph": "fused"}) if where == "clutch" else {}))

        def step(optimizer=optimizer, loss_now=loss_now):
            optimizer.zero_grad(set_to_none=way != "graph")
            loss = loss_now()
            loss.backward()
            optimizer.step()
            return loss

        losses[where] = [step().item() for _ in range(steps)]
        calls[where] = step
    torch.testing.assert_close(losses["clutch"], losses["cpu"], rtol=rtol, atol=2e-5)
    if way == "graph":
        graph = graphed(calls["clutch"])
        calls["clutch"] = graph.replay
        calls["graph"] = graph
    return calls


def gpt():
    return networks.Gpt(vocabulary=1024, width=384, heads=6, layers=6, length=256)


def gpt_train(way):
    tokens = torch.randint(0, 1024, (4, 257), generator=torch.Generator().manual_seed(1))
    calls = trained(gpt, networks.next_token_loss, [tokens], way)
    return Work(calls["clutch"], calls["cpu"], "GPT-2-like, 6 layers, 384 wide, 6 heads, vocabulary 1024, 4 x 256 tokens, AdamW fused" + BESIDE[way])


BESIDE = {"eager": "", "graph": ", a graph", "compiled": ", compiled; theirs compiled by inductor"}


@case("gpt_train/eager", 1.1)
def _():
    return gpt_train("eager")


@case("gpt_train/graph", 1.3)
def _():
    return gpt_train("graph")


@case("gpt_train/compiled")
def _():
    return gpt_train("compiled")


# Decoding: one token behind 240 others.
def decoding(make_net, dtype, is_graph, rtol, atol):
    torch.manual_seed(0)
    host = make_net().to(dtype).eval()
    device = copy.deepcopy(host).to("clutch")
    vocabulary = host.tokens.num_embeddings
    prompt = torch.randint(0, vocabulary, (1, 240))
    calls, logits = {}, {}
    for net, where in ((device, "clutch"), (host, "cpu")):
        with torch.no_grad():
            cache = net.cache(1)
            net(prompt.to(where), cache, torch.arange(240, device=where))
            token, at = prompt[:, :1].to(where), torch.tensor([240], device=where)

            def step(net=net, cache=cache, token=token, at=at):
                with torch.no_grad():
                    return net(token, cache, at)

            logits[where] = step()
        calls[where] = step
    close(logits["clutch"], logits["cpu"], rtol, atol)
    if is_graph:
        graph = graphed(calls["clutch"])
        graph.replay()
        torch.accelerator.synchronize()
        assert torch.equal(graph.result.cpu(), logits["clutch"].cpu())
        calls["clutch"], calls["graph"] = graph.replay, graph
    return calls


@case("gpt_decode/eager")
def _():
    calls = decoding(gpt, torch.float32, False, 1e-3, 1e-4)
    return Work(calls["clutch"], calls["cpu"], "GPT-2-like, one token behind 240, cache of 256, f32")


@case("gpt_decode/graph", 2)
def _():
    calls = decoding(gpt, torch.float32, True, 1e-3, 1e-4)
    return Work(calls["clutch"], calls["cpu"], "GPT-2-like, one token behind 240, cache of 256, f32, a graph")


def llama():
    return networks.Llama(vocabulary=8192, width=1024, heads=16, kv_heads=4, layers=8, inner=2816, length=256)


LLAMA = "Llama-like, 8 layers, 1024 wide, 16 heads of which 4 have keys, inner 2816, vocabulary 8192; one token behind 240, bf16"


@case("llama_decode_bf16/eager")
def _():
    calls = decoding(llama, torch.bfloat16, False, 0.05, 0.05)
    return Work(calls["clutch"], calls["cpu"], LLAMA)


@case("llama_decode_bf16/graph", 2)
def _():
    calls = decoding(llama, torch.bfloat16, True, 0.05, 0.05)
    return Work(calls["clutch"], calls["cpu"], LLAMA + ", a graph")


# flex_attention: ours beside PyTorch's, compiled for the CPU.
def flex(make_mod, make_mask, what):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.manual_seed(0)
    b, h, n, d = 1, 8, 1024, 64
    q, k, v = (torch.randn(b, h, n, d) for _ in range(3))
    compiled = torch.compile(flex_attention)
    calls, results = {}, {}
    for where in ("clutch", "cpu"):
        mod = make_mod(h, where) if make_mod else None
        mask = create_block_mask(make_mask, None, None, n, n, device=where) if make_mask else None
        moved = [t.to(where) for t in (q, k, v)]
        function = flex_attention if where == "clutch" else compiled

        def call(function=function, moved=moved, mod=mod, mask=mask):
            with torch.no_grad():
                return function(*moved, score_mod=mod, block_mask=mask)

        results[where] = call()
        calls[where] = call
    close(results["clutch"], results["cpu"], 1e-4, 1e-5)
    return Work(calls["clutch"], calls["cpu"], what + "; 8 heads, 1024 x 64, f32; theirs compiled by inductor")


def flex_backward(make_mod, what):
    """Forward and backward under a causal mask. PyTorch has no flex backward for CPUs."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.manual_seed(0)
    b, h, n, d = 1, 8, 1024, 64
    values = [torch.randn(b, h, n, d) for _ in range(4)]
    calls, results = {}, {}

    def by_flex(q, k, v, mod=make_mod(h, "clutch") if make_mod else None, mask=create_block_mask(causal, None, None, n, n, device="clutch")):
        return flex_attention(q, k, v, score_mod=mod, block_mask=mask)

    def by_formula(q, k, v, mod=make_mod(h, "cpu") if make_mod else None):
        scores = q @ k.mT / d**0.5
        places = torch.arange(n)
        if mod:
            scores = mod(scores, None, torch.arange(h)[:, None, None], places[:, None], places)
        return torch.softmax(scores.masked_fill(places > places[:, None], float("-inf")), -1) @ v

    for where, function in (("clutch", by_flex), ("cpu", by_formula)):
        inputs, grad = [t.to(where).requires_grad_() for t in values[:3]], values[3].to(where)

        def call(function=function, inputs=inputs, grad=grad):
            return torch.autograd.grad(function(*inputs), inputs, grad)

        results[where] = call()
        calls[where] = call
    for ours, theirs in zip(results["clutch"], results["cpu"]):
        close(ours, theirs, 1e-3, 1e-4)
    return Work(calls["clutch"], calls["cpu"], what + ", forward and backward; 8 heads, 1024 x 64, f32; theirs is the formula with all scores, since flex has no backward there")


def causal(b, h, q, kv):
    return q >= kv


def alibi(heads, device):
    slopes = 2.0 ** -torch.arange(1, heads + 1, device=device, dtype=torch.float32)
    return lambda score, b, h, q, kv: score - slopes[h] * (q - kv)


@case("flex/causal", 2.5)
def _():
    return flex(None, causal, "flex_attention, causal mask, forward")


@case("flex/alibi", 2.5)
def _():
    return flex(alibi, causal, "flex_attention, alibi and causal mask, forward")


@case("flex_backward/causal")
def _():
    return flex_backward(None, "flex_attention, causal mask")


@case("flex_backward/alibi")
def _():
    return flex_backward(alibi, "flex_attention, alibi and causal mask")


# torch.compile: ours with fused graphs, beside PyTorch's code compiled for the CPU and beside our own ops.
class Epilogue(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear, self.norm, self.dropout = torch.nn.Linear(width, width), torch.nn.LayerNorm(width), torch.nn.Dropout(0.1)

    def forward(self, x, residual):
        return self.dropout(self.norm(F.gelu(self.linear(x)) + residual))


class Rows(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.m, self.b = torch.nn.Parameter(torch.randn(width)), torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.softmax(torch.relu(x) * self.m + self.b, -1)


def compiled(make_net, inputs, what, beside_own=False):
    """Forward in training, so that dropout draws; results are compared without it."""
    torch.manual_seed(0)
    host = make_net()
    calls, results = {}, {}
    for where, options in (("clutch", dict(backend="clutch", options={"graph": "fused"})), ("cpu", {})):
        own = beside_own and where == "cpu"
        net = copy.deepcopy(host).to("clutch" if own else where)
        moved = [t.to("clutch" if own else where) for t in inputs]
        call = net if own else torch.compile(net, **options)

        def run(call=call, moved=moved):
            with torch.no_grad():
                return call(*moved)

        net.eval()
        results[where] = run().cpu()
        net.train()
        for _ in range(3):
            run()
        calls[where] = run
    close(results["clutch"], results["cpu"], 1e-4, 1e-5)
    return Work(calls["clutch"], calls["cpu"], what + ("; theirs is ours without torch.compile" if beside_own else "; theirs compiled by inductor"))


def epilogue(beside_own):
    return compiled(lambda: Epilogue(768), [torch.randn(512, 768) for _ in range(2)], "dropout(layer_norm(gelu(x w + b) + residual)), 512 x 768, f32", beside_own)


@case("compiled/epilogue", 1.2)
def _():
    return epilogue(False)


@case("compiled/epilogue/own_ops", 1.5)
def _():
    return epilogue(True)


def softmax_rows(beside_own):
    return compiled(lambda: Rows(1024), [torch.randn(1024, 1024)], "softmax(relu(x) m + b), 1024 rows of 1024, f32", beside_own)


@case("compiled/softmax_rows", 1.3)
def _():
    return softmax_rows(False)


@case("compiled/softmax_rows/own_ops")
def _():
    return softmax_rows(True)


# Graphs.
@case("gcn/100k", 1.3)
def _():
    nodes, edges = 100_000, 1_000_000
    generator = torch.Generator().manual_seed(1)
    index = torch.randint(0, nodes, (2, edges), generator=generator)
    x, labels = torch.randn(nodes, 64, generator=generator), torch.randint(0, 16, (nodes,), generator=generator)
    weight = networks.edge_weights(index, nodes)

    def loss_of(net, x, index, weight, labels):
        return F.cross_entropy(net(x, index, weight), labels)

    calls = trained(lambda: networks.Gcn(64, 64, 16), loss_of, [x, index, weight, labels])
    return Work(calls["clutch"], calls["cpu"], "GCN, a step of training; 100,000 nodes, 10^6 edges, 64 features, 64 inner, 16 classes")


# Optimizers.
def adamw(shapes, what, is_graph=False):
    torch.manual_seed(0)
    values, grads = ([torch.randn(shape) for shape in shapes] for _ in range(2))
    calls, results = {}, {}
    for where in ("clutch", "cpu"):
        params = [v.to(where, copy=True).requires_grad_() for v in values]
        for p, g in zip(params, grads):
            p.grad = g.to(where, copy=True)
        optimizer = torch.optim.AdamW(params, lr=1e-3, fused=True)
        optimizer.step()
        results[where] = [params[0].detach().cpu().clone(), params[-1].detach().cpu().clone()]
        calls[where] = optimizer.step
    for a, b in zip(results["clutch"], results["cpu"]):
        close(a, b, 1e-6, 1e-7)
    if is_graph:
        graph = graphed(calls["clutch"])
        calls["clutch"] = graph.replay
    return Work(calls["clutch"], calls["cpu"], what)


def gpt2_shapes():
    """Those of GPT-2's 148 tensors."""
    w = 768
    block = [(w,), (w,), (w, 3 * w), (3 * w,), (w, w), (w,), (w,), (w,), (w, 4 * w), (4 * w,), (4 * w, w), (w,)]
    return [(50257, w), (1024, w)] + 12 * block + [(w,), (w,)]


@case("adamw/gpt2", 1.25)
def _():
    return adamw(gpt2_shapes(), "AdamW fused, GPT-2's 148 tensors, 124 million numbers")


@case("adamw/1000", 20)
def _():
    return adamw([(64,)] * 1000, "AdamW fused, 1,000 tensors of 64 numbers")


@case("adamw/1000/graph")
def _():
    return adamw([(64,)] * 1000, "AdamW fused, 1,000 tensors of 64 numbers, a graph", True)


@case("eigh/8x8", 40)
def _():
    torch.manual_seed(0)
    a = torch.randn(100_000, 8, 8)
    a = a + a.mT
    moved = a.to("clutch")
    close(torch.linalg.eigh(moved)[0], torch.linalg.eigh(a)[0], 1e-4, 1e-4)
    return Work(lambda: torch.linalg.eigh(moved), lambda: torch.linalg.eigh(a), "linalg.eigh, 100,000 matrices of 8 x 8, f32, with vectors")


@case("add/1000")
def _():
    x = torch.randn(1000)
    moved = x.to("clutch")
    close(moved + moved, x + x, 0, 0)
    return Work(lambda: moved + moved, lambda: x + x, "x + y of 1,000 numbers, eager")


@case("add/own_call", None)
def _():
    """Beside clutch's own add(), called from C++ in this process: what PyTorch's dispatch and Python cost."""
    library = ctypes.CDLL(os.environ["TORCH_CLUTCH_OWN_CALLS"])
    library.clutch_adds.argtypes = [ctypes.c_int]
    moved = torch.randn(1000).to("clutch")

    def ours():
        for _ in range(200):
            moved + moved

    def own():
        assert library.clutch_adds(200) == 0

    return Work(ours, own, "200 calls; theirs is clutch's own add() of as many numbers from C++")
