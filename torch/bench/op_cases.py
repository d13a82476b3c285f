# SPDX-License-Identifier: Apache-2.0
"""Single aten ops in float32, each at two sizes: one where calls cost, and one where the work does. Results are compared before they are timed."""
from typing import Callable, NamedTuple

import torch
import torch.nn.functional as F

from cases import Work


class Op(NamedTuple):
    family: str
    name: str
    prepare: Callable  # of the inputs: the call to time
    inputs: Callable  # of a size
    sizes: tuple
    check: Callable


OPS = []
NUMBERS = ((1_000,), (1_000_000,))
ROWS = ((64, 64), (2048, 512))
SQUARES = ((64,), (512,))


def equal(ours, theirs):
    """Nearly: sums have other orders."""
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), f"{len(ours)} results for {len(theirs)}"
        for a, b in zip(ours, theirs):
            equal(a, b)
        return
    ours, theirs = ours.detach().cpu(), theirs.detach()
    floating = theirs.is_floating_point() and theirs.numel()
    torch.testing.assert_close(ours, theirs, rtol=1e-4 if floating else 0, atol=1e-5 * max(1.0, theirs.abs().max().item()) if floating else 0)


def alike(ours, theirs):
    """Random numbers of one distribution."""
    a, b = ours.detach().cpu().double(), theirs.detach().double()
    assert a.shape == b.shape and a.isfinite().all(), f"{a.shape} for {b.shape}, or not finite"
    spread = 6 * (a.std() + b.std()) / a.numel() ** 0.5
    assert (a.mean() - b.mean()).abs() <= spread, f"mean {a.mean().item()} for {b.mean().item()}"


def family(family, inputs, sizes, check=equal):
    """Adds ops by name: functions of the inputs."""

    def add(inputs=inputs, sizes=sizes, check=check, prepared=False, **functions):
        for name, function in functions.items():
            prepare = function if prepared else lambda *given, function=function: lambda: function(*given)
            OPS.append(Op(family, name.removesuffix("_of"), prepare, inputs, sizes, check))

    return add


def gradient(function):
    """Backward alone, for all inputs of floats."""

    def prepare(*given):
        given = [t.detach().requires_grad_(t.is_floating_point()) for t in given]
        result = function(*given)
        grad = torch.cos(result.detach())
        wanted = [t for t in given if t.requires_grad]
        return lambda: torch.autograd.grad(result, wanted, grad, retain_graph=True)

    return prepare


def randn(*shape):
    return [torch.randn(shape)]


def positive(*shape):
    return [torch.rand(shape) + 0.1]


def several(count):
    return lambda *shape: [torch.randn(shape) for _ in range(count)]


def and_weights(*shape):
    return [torch.randn(shape), torch.rand(shape[-1]) + 0.5, torch.randn(shape[-1])]


def indexed(*shape):
    """Rows, and as many places among them."""
    return [torch.randn(shape), torch.randint(0, shape[0], (shape[0],))]


def gathered(*shape):
    return [torch.randn(shape), torch.randint(0, shape[0], shape)]


def labelled(*shape):
    return [torch.randn(shape), torch.randint(0, shape[1], (shape[0],))]


def chances(*shape):
    return [torch.randn(shape), torch.rand(shape)]


def whole(n):
    return [torch.randint(0, max(n // 10, 2), (n,))]


elementwise = family("element by element", randn, NUMBERS)
elementwise(inputs=several(2), add=torch.add, mul=torch.mul, maximum=torch.maximum, lt=torch.lt, atan2=torch.atan2, where=lambda x, y: torch.where(x > 0, x, y),
            add_=lambda x, y: x.add_(y, alpha=1e-6), lerp=lambda x, y: torch.lerp(x, y, 0.3))
elementwise(inputs=several(3), addcmul=lambda x, y, z: torch.addcmul(x, y, z, value=0.5))
elementwise(inputs=lambda n: [torch.randn(n), torch.rand(n) + 0.5], div=torch.div)
elementwise(inputs=positive, log=torch.log, sqrt=torch.sqrt, rsqrt=torch.rsqrt)
elementwise(abs=torch.abs, exp=torch.exp, sin=torch.sin, tanh=torch.tanh, sigmoid=torch.sigmoid, erf=torch.erf, pow=lambda x: torch.pow(x, 3), clamp=lambda x: x.clamp(-1, 1),
            masked_fill=lambda x: x.masked_fill(x > 1, 0.0), to_bfloat16=lambda x: x.to(torch.bfloat16), clone=torch.clone)

activations = family("activations", randn, NUMBERS)
activations(relu=F.relu, gelu=F.gelu, silu=F.silu, softplus=F.softplus, elu=F.elu, leaky_relu=F.leaky_relu)
activations(prepared=True, gelu_backward=gradient(F.gelu), silu_backward=gradient(F.silu))

reductions = family("reductions", randn, ROWS)
reductions(inputs=positive, sizes=NUMBERS, sum=torch.sum, norm=torch.linalg.vector_norm, max=torch.max)
reductions(inputs=positive, sum_rows=lambda x: x.sum(-1), sum_columns=lambda x: x.sum(0), mean=lambda x: x.mean(-1))
reductions(amax=lambda x: x.amax(-1), argmax=lambda x: x.argmax(-1), std=lambda x: x.std(-1), logsumexp=lambda x: x.logsumexp(-1), cumsum=lambda x: x.cumsum(-1),
           any=lambda x: (x > 3).any(-1))

rows = family("rows", randn, ROWS)
rows(softmax=lambda x: x.softmax(-1), log_softmax=lambda x: x.log_softmax(-1))
rows(prepared=True, softmax_backward=gradient(lambda x: x.softmax(-1)))
rows(inputs=and_weights, layer_norm=lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), rms_norm=lambda x, w, b: F.rms_norm(x, x.shape[-1:], w),
     batch_norm=lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True))
rows(inputs=and_weights, prepared=True, layer_norm_backward=gradient(lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b)))
rows(inputs=lambda n, c, s: [torch.randn(n, c, s), torch.rand(c), torch.randn(c)], sizes=((2, 16, 64), (16, 64, 1024)), group_norm=lambda x, w, b: F.group_norm(x, 8, w, b))


def of_linear(n):
    return [torch.randn(n, n), torch.randn(n, n) / n**0.5, torch.randn(n)]


def of_attention(heads, n, size):
    return [torch.randn(1, heads, n, size) for _ in range(3)]


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


products = family("products", lambda n: [torch.randn(n, n) for _ in range(2)], SQUARES)
products(mm=torch.mm)
products(inputs=lambda b, n: [torch.randn(b, n, n) for _ in range(2)], sizes=((8, 32), (32, 128)), bmm=torch.bmm)
products(inputs=lambda n: [torch.randn(n, n), torch.randn(n)], sizes=((64,), (2048,)), mv=torch.mv)
products(inputs=of_linear, linear=F.linear)
products(inputs=of_linear, prepared=True, linear_backward=gradient(F.linear))
products(inputs=of_attention, sizes=((2, 64, 32), (8, 512, 64)), attention=causal)
products(inputs=of_attention, sizes=((2, 64, 32), (8, 512, 64)), prepared=True, attention_backward=gradient(causal))
products(inputs=lambda b, c, n: [torch.randn(b, c, n, n), torch.randn(c, c, 3, 3) / (3 * c**0.5)], sizes=((1, 8, 16), (8, 32, 32)),
         conv2d=lambda x, w: F.conv2d(x, w, padding=1))

pooling = family("pooling", lambda b, c, n: [torch.randn(b, c, n, n)], ((1, 8, 16), (8, 64, 64)))
pooling(max_pool2d=lambda x: F.max_pool2d(x, 2), avg_pool2d=lambda x: F.avg_pool2d(x, 2))

layout = family("order in memory", randn, ROWS)
layout(transpose_contiguous=lambda x: x.t().contiguous(), flip=lambda x: x.flip(-1), roll=lambda x: x.roll(7, -1), tril=torch.tril, pad=lambda x: F.pad(x, (3, 5)))
layout(inputs=several(3), cat=lambda *t: torch.cat(t, -1), stack=lambda *t: torch.stack(t))

indexing = family("indexing", indexed, ((256, 16), (20_000, 64)))
indexing(index_select=lambda x, i: x.index_select(0, i), index=lambda x, i: x[i], embedding=lambda x, i: F.embedding(i, x),
         index_put_accumulate=lambda x, i: torch.index_put(x, (i,), x, accumulate=True))
indexing(prepared=True, embedding_backward=gradient(lambda x, i: F.embedding(i, x)))
indexing(inputs=gathered, gather=lambda x, i: x.gather(0, i))
indexing(inputs=randn, sizes=NUMBERS, masked_select=lambda x: x.masked_select(x > 0), nonzero=lambda x: (x > 1).nonzero())

scatters = family("scatters", indexed, ((256, 16), (20_000, 64)))
scatters(index_add=lambda x, i: torch.index_add(x, 0, i, x))
scatters(inputs=gathered, scatter_add=lambda x, i: torch.scatter_add(x, 0, i, x), scatter_reduce_amax=lambda x, i: torch.scatter_reduce(x, 0, i, x, "amax"))

order = family("order and search", randn, NUMBERS)
order(sort=lambda x: x.sort()[0], topk=lambda x: x.topk(50)[0])
order(sizes=ROWS, sort_rows=lambda x: x.sort(-1)[0], topk_rows=lambda x: x.topk(8)[0], kthvalue=lambda x: x.kthvalue(8)[0])
order(inputs=whole, unique=torch.unique, bincount=torch.bincount)
order(inputs=lambda n: [torch.randn(1000).sort()[0], torch.randn(n)], searchsorted=torch.searchsorted)

losses = family("losses", labelled, ROWS)
losses(cross_entropy=F.cross_entropy)
losses(prepared=True, cross_entropy_backward=gradient(F.cross_entropy))
losses(inputs=several(2), mse_loss=F.mse_loss, smooth_l1_loss=F.smooth_l1_loss)
losses(inputs=chances, binary_cross_entropy_with_logits=F.binary_cross_entropy_with_logits, kl_div=lambda x, y: F.kl_div(x.log_softmax(-1), y, reduction="batchmean"))

random = family("random numbers", randn, NUMBERS, alike)
random(rand=torch.rand_like, randn=torch.randn_like, dropout=lambda x: F.dropout(x.abs(), 0.1), bernoulli=lambda x: torch.empty_like(x).bernoulli_(0.3))


def optimizer(make):
    def prepare(*values):
        params = [t.detach().clone().requires_grad_() for t in values]
        for p in params:
            p.grad = torch.cos(p.detach())
        step = make(params)

        def call():
            step()
            return params

        return call

    return prepare


optimizers = family("optimizers, fused, 20 tensors", lambda n: [torch.randn(n) for _ in range(20)], ((1_000,), (100_000,)))
optimizers(prepared=True, SGD=optimizer(lambda params: torch.optim.SGD(params, lr=1e-3, momentum=0.9, fused=True).step),
           Adam=optimizer(lambda params: torch.optim.Adam(params, lr=1e-3, fused=True).step), AdamW=optimizer(lambda params: torch.optim.AdamW(params, lr=1e-3, fused=True).step),
           clip_grad_norm_=optimizer(lambda params: lambda: torch.nn.utils.clip_grad_norm_(params, 1.0)))


def size_text(size):
    return " x ".join(f"{n:,}" for n in size)


def made(op, size):
    torch.manual_seed(0)
    given = op.inputs(*size)
    calls = [op.prepare(*(t.to(where, copy=True) for t in given)) for where in ("clutch", "cpu")]
    op.check(*(call() for call in calls))
    return Work(*calls, size_text(size))


CASES = {}
for _op in OPS:
    for _place, _size in zip(("small", "large"), _op.sizes):
        CASES[f"op/{_op.name}/{_place}"] = (lambda op=_op, size=_size: made(op, size), None)
FAMILIES = {op.name: op.family for op in OPS}
assert len(FAMILIES) == len(OPS), "ops must have names of their own"
