# SPDX-License-Identifier: Apache-2.0
"""Layers of networks by rows: softmax, norms, cross entropy; and embeddings."""

import math

import numpy as np
import torch

from common import DTYPES, EPS, NAMES, case, compute_name
from reductions import growth
from tensors import unchanged

NN = "clutch/nn.hpp"


def row_shape(c, **arguments):
    if c.chance(0.25):
        return [c.pick([1, 3]), c.pick([1000, 1024, 2048])]
    return c.shape(low=1, **arguments)


def logits(c, shape, name):
    """Unit normal, spread, shifted in common, with the largest numbers, or with infinities and NaN."""
    kind = c.integer(0, 6)
    if kind == 0:
        return c.tensor(shape, name, "any")
    x = c.values(shape, name, "normal")
    if kind == 1:
        x = (x.double() * 20).to(x.dtype)
    if kind == 2:
        x = (x.double() + c.pick([1e2, 1e4, -1e4, 1e30 if name in ("f32", "f64", "bf16") else 1e3])).to(x.dtype)
    if kind == 3 and x.numel():
        chosen = torch.from_numpy(np.asarray(c.rng.random(x.shape) < 0.3))
        x = torch.where(chosen, torch.tensor(c.pick([-math.inf, float(torch.finfo(x.dtype).max), float(torch.finfo(x.dtype).min)]), dtype=x.dtype), x)
    if kind == 4:
        x = torch.full(shape, c.pick([float(torch.finfo(x.dtype).max), float(torch.finfo(x.dtype).min), 0.0, 3e4]), dtype=x.dtype)
    return c.lay_out(x)


@case(120, covers=["softmax", "log_softmax", "softmax_backward", "log_softmax_backward"])
def softmaxes(c):
    name = c.floating()
    compute = compute_name(name)
    eps = EPS[compute]
    least = float(torch.finfo(DTYPES[compute]).tiny)
    log = c.chance(0.5)
    x = logits(c, row_shape(c), name)
    d = c.integer(0, x.dim() - 1)
    at = x.double()
    n = x.shape[d]
    exact = torch.softmax(at, d) if not log else torch.log_softmax(at, d)
    function = "log_softmax" if log else "softmax"
    if c.chance(0.3):
        out = c.tensor(x.shape, name, "normal", expand=False)
        got = c.call(function, back=["out"], x=x, out=out, dim=d).back["out"]
        unchanged(c, out, got, NN)
    else:
        got = c.call(function, x=x, dim=d - x.dim())[0]
    distance = torch.nan_to_num((at - at.amax(d, keepdim=True)).abs(), posinf=0.0) if n else at
    if log:
        # x - max is rounded once, the sum's logarithm has the sum's error.
        tolerance = eps * (2 * distance + 2 * torch.nan_to_num(exact.abs(), posinf=0.0) + 60)
        c.near(got, exact, tolerance, NN + ", log_softmax: x - max - log(sum e^x)", f"log_softmax of {name} along {d}: ")
    else:
        tolerance = exact * (distance + 46) * eps + least * eps * 2 + (2.0**-149 if compute == "f32" else 2.0**-1074)
        c.near(got, exact, torch.nan_to_num(tolerance), NN + ", softmax, Accuracy", f"softmax of {name} along {d}: ")
    if c.chance(0.5):
        return
    y = torch.softmax(c.tensor(x.shape, name, "normal").double(), d).to(x.dtype)
    if log:
        y = c.lay_out(y.double().clamp(min=1e-6).log().to(x.dtype))
    grad = c.tensor(x.shape, name, "normal")
    a, g = y.double(), grad.double()
    if log:
        exact = g - a.exp() * g.sum(d, keepdim=True)
        tolerance = eps * (g.abs() + a.exp() * (growth(n) + 4 + a.abs()) * g.abs().sum(d, keepdim=True)) + 2 * eps * exact.abs()
    else:
        exact = a * (g - (g * a).sum(d, keepdim=True))
        tolerance = eps * a.abs() * (3 * g.abs() + (growth(n) + 4) * (g * a).abs().sum(d, keepdim=True))
    got = c.call(function + "_backward", grad=grad, y=y, dim=d)[0]
    c.near(got, exact, tolerance, NN + ", gradients from the result", f"{function}_backward of {name} along {d}: ")


@case(70, covers=["layer_norm", "rms_norm"])
def norms(c):
    name = c.floating()
    compute = compute_name(name)
    eps = EPS[compute]
    shape = row_shape(c, empty=0.04)
    rank = c.integer(1, len(shape))
    inner = shape[len(shape) - rank:]
    n = math.prod(inner)
    axes = list(range(len(shape) - rank, len(shape)))
    x = c.tensor(shape, name, "normal")
    if n == 0:
        function = c.pick(["layer_norm", "rms_norm"])
        got = c.call(function, x=x, grad=c.tensor(shape, name, "normal"), normalized_rank=rank)
        c.alike(got[0], shape, name, NN + f", {function} of rows of nothing")
        return c.alike(got[3 if function == "layer_norm" else 2], shape, name, NN + f", {function}_backward of rows of nothing")
    if c.chance(0.3):
        x = c.lay_out((x.double() * 3 + c.pick([1.0, -10.0])).to(x.dtype))
    weight = c.tensor(inner, name, "normal") if c.chance(0.6) else None
    bias = c.tensor(inner, name, "normal") if c.chance(0.5) else None
    grad = c.tensor(shape, name, "normal")
    stabilizer = c.pick([1e-5, 1e-3, 1e-6])
    a, g = x.double().clone().requires_grad_(), grad.double()
    w = weight.double().clone().requires_grad_() if weight is not None else None
    b = bias.double().clone().requires_grad_() if bias is not None else None
    K = growth(n) + 12
    rows = max(1, math.prod(shape) // n)
    if c.chance(0.5):
        mean = a.mean(dim=axes, keepdim=True)
        var = ((a - mean) ** 2).mean(dim=axes, keepdim=True)
        rstd = 1 / (var + stabilizer).sqrt()
        z = (a - mean) * rstd
        y = torch.nn.functional.layer_norm(a, inner, w, b, eps=stabilizer)
        got = c.call("layer_norm", x=x, weight=weight, bias=bias, grad=grad, normalized_rank=rank, eps=stabilizer)
        y.backward(g)
        # Of a mean that is large beside the deviations its rounding counts, by way of the deviations, too.
        offset = growth(n) * eps * a.detach().abs().mean(dim=axes, keepdim=True) + eps * (a.detach().abs() + mean.detach().abs())
        relative = K * eps + (offset * rstd.detach()) ** 2
        factor = w.detach().abs() if w is not None else torch.ones(inner, dtype=torch.float64)
        tolerance = factor * (offset * rstd.detach() + 2 * relative * z.detach().abs()) + eps * (y.detach().abs() + (b.detach().abs() if b is not None else 0))
        c.near(got[0], y.detach(), tolerance * 1.5, NN + ", layer_norm", f"layer_norm of {name}: ")
        c.alike(got[1], mean.shape, compute, NN + ", LayerNormResult")
        c.near(got[1], mean.detach(), offset.amax(dim=axes, keepdim=True) if x.numel() else offset.sum(dim=axes, keepdim=True), NN, "mean: ")
        c.near(got[2], rstd.detach(), relative.amax(dim=axes, keepdim=True) * rstd.detach() * 1.5, NN, "rstd: ")
        dz = (g * factor * (w.detach().sign() if w is not None else 1)).abs()
        scale = rstd.detach() * (dz + dz.mean(dim=axes, keepdim=True) + z.detach().abs() * (dz * z.detach().abs()).mean(dim=axes, keepdim=True))
        wobble = (offset * rstd.detach()).amax(dim=axes, keepdim=True) + K * eps
        c.near(got[3], a.grad, 3 * scale * wobble * (1 + z.detach().abs()) * 2, NN + ", layer_norm_backward", f"gradient of x, {name}: ")
        total = growth(rows) * eps + (wobble.max() if wobble.numel() else 0)
        if w is not None:
            c.near(got[4], w.grad, 3 * total * (g.abs() * (1 + z.detach().abs())).reshape([-1] + inner).sum(0), NN, f"gradient of weight, {name}: ")
        else:
            c.true(got[4] is None, "there is a gradient of a weight that is not there", NN)
        c.near(got[5], g.reshape([-1] + inner).sum(0), growth(rows) * eps * g.abs().reshape([-1] + inner).sum(0), NN, f"gradient of bias, {name}: ")
        return
    rrms = 1 / ((a * a).mean(dim=axes, keepdim=True) + stabilizer).sqrt()
    z = a * rrms
    y = z if w is None else z * w
    got = c.call("rms_norm", x=x, weight=weight, grad=grad, normalized_rank=rank, eps=stabilizer)
    y.backward(g)
    c.near(got[0], y.detach(), K * eps * y.detach().abs(), NN + ", rms_norm", f"rms_norm of {name}: ")
    c.near(got[1], rrms.detach(), K * eps * rrms.detach(), NN + ", RmsNormResult", "rrms: ")
    dz = (g if w is None else g * w.detach()).abs()
    scale = rrms.detach() * (dz + z.detach().abs() * (dz * z.detach().abs()).mean(dim=axes, keepdim=True))
    c.near(got[2], a.grad, 3 * K * eps * scale, NN + ", rms_norm_backward", f"gradient of x, {name}: ")
    if w is not None:
        c.near(got[3], w.grad, (growth(rows) + K + 2) * eps * (g * z.detach()).abs().reshape([-1] + inner).sum(0), NN, f"gradient of weight, {name}: ")


@case(100, covers=["cross_entropy"])
def cross_entropies(c):
    name = c.floating()
    compute = compute_name(name)
    eps = EPS[compute]
    classes = c.pick([1, 2, 3, 10, 65, 1000])
    rank = c.integer(0, 3)
    batch = [c.integer(0 if c.chance(0.1) else 1, 7) for _ in range(rank)]
    shape = batch[:1] + [classes] + batch[1:] if rank else [classes]
    d = 1 if rank else 0
    kind = c.integer(0, 3)
    x = c.values(shape, name, "normal")
    if kind == 1:
        x = (x.double() + c.pick([1e2, 1e4, -1e4])).to(x.dtype)
    elif kind == 2:
        x = torch.full(shape, c.pick([3e38 if name in ("f32", "f64", "bf16") else 6e4, -3e38 if name in ("f32", "f64", "bf16") else -6e4, 7.0]), dtype=x.dtype)
    elif kind == 3 and c.chance(0.5):
        chosen = torch.from_numpy(np.asarray(c.rng.random(x.shape) < 0.2))
        x = torch.where(chosen, torch.tensor(c.pick([-math.inf, math.inf, math.nan]), dtype=x.dtype), x)
    x = c.lay_out(x)
    smoothing = c.pick([0.0, 0.0, 0.1, 1.0])
    weight = c.tensor([classes], name, "positive") if c.chance(0.4) else None
    reduction = c.pick(["mean", "sum", "none"])
    probabilities = c.chance(0.25)
    ignore = c.pick([-100, 0, 1])
    if probabilities:
        target = torch.softmax(c.values(shape, name, "normal").double(), d).to(x.dtype)
        reference_target = target.double()
    else:
        target = torch.from_numpy(np.asarray(c.rng.integers(0, classes, size=batch)))
        if c.chance(0.4):
            target = torch.where(torch.from_numpy(np.asarray(c.rng.random(batch) < 0.3)), ignore, target)
        reference_target = target
        target = c.lay_out(target.to(DTYPES[c.pick(["i32", "i64"])]))
    a = x.double().clone().requires_grad_()
    w = weight.double() if weight is not None else None
    loss = torch.nn.functional.cross_entropy(a, reference_target, w, ignore_index=ignore if not probabilities else -100, reduction=reduction, label_smoothing=smoothing)
    grad = torch.from_numpy(np.asarray(c.rng.standard_normal(loss.shape))).to(x.dtype)
    got = c.call("cross_entropy", logits=x, target=target, weight=weight, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing, grad=grad)
    if x.numel() == 0 and rank and batch[0] == 0 and reduction == "mean":
        loss.sum()
    each = torch.nn.functional.cross_entropy(x.double(), reference_target, w, ignore_index=ignore if not probabilities else -100, reduction="none", label_smoothing=smoothing)
    top = float(torch.nan_to_num((x.double() - x.double().amax(d, keepdim=True)).abs(), posinf=0.0, nan=0.0).max()) if x.numel() else 0.0
    n = max(1, each.numel())
    heaviest = float(w.max()) if w is not None else 1.0
    tolerance = eps * (70 + growth(classes) + 6 * top) * heaviest * (classes * heaviest if smoothing or probabilities else 1)
    bound = tolerance if reduction != "sum" else tolerance * n
    if reduction == "mean" and w is not None:
        bound = tolerance * heaviest / max(float(w.min()), 1e-3)
    bound = bound + growth(n) * eps * (float(torch.nan_to_num(loss.detach().abs(), nan=0.0, posinf=0.0).max()) if loss.numel() else 0.0) * 2
    c.near(got[0], loss.detach(), torch.full(loss.shape, bound, dtype=torch.float64), NN + ", cross_entropy", f"loss of {name}, {reduction}: ")
    lse = torch.logsumexp(x.double(), d, keepdim=True)
    lse = torch.where((x == math.inf).any(d, keepdim=True) | (x == -math.inf).all(d, keepdim=True), math.nan, lse)
    c.near(got[1], lse, torch.nan_to_num((2 * lse.abs() + growth(classes) + 50) * eps, posinf=0.0), NN + ", CrossEntropyResult", "lse: ")
    if not torch.isfinite(x.double()).all() or not x.numel():
        return
    loss.backward(grad.double())
    if not torch.isfinite(a.grad).all():
        return
    scale = float(grad.double().abs().max()) * heaviest * (1 if reduction != "mean" else max(1.0, heaviest / max(float(w.min()) if w is not None else 1.0, 1e-3)))
    bound = eps * (100 + growth(classes) + 4 * top) * scale * (classes * heaviest if smoothing or probabilities else 1)
    c.near(got[2], a.grad, torch.full(a.shape, bound, dtype=torch.float64), NN + ", cross_entropy_backward", f"gradient of {name}, {reduction}: ")


@case(50, covers=["embedding", "embedding_backward"])
def embeddings(c):
    name = c.floating()
    compute = compute_name(name)
    rows, features = 0 if c.chance(0.1) else c.size(40), c.pick([0, 1, 3, 8, 33, 64, 100])
    weight = c.tensor([rows, features], name, "any")
    shape = c.shape(0, 3, elements=300) if rows else [0] + c.shape(0, 2, elements=300)
    index = c.lay_out(torch.from_numpy(np.asarray(c.rng.integers(0, max(rows, 1), size=shape))).to(DTYPES[c.pick(["i32", "i64"])]))
    if not rows:
        got = c.call("embedding", weight=weight, index=torch.tensor([0, 3]))[0]
        c.same(got, torch.full([2, features], math.nan, dtype=weight.dtype), NN + ", embedding, Bad contents", f"{name}, no rows: ")
        got = c.call("embedding_backward", grad=c.tensor([2, features], name, "normal"), index=torch.tensor([0, 3]), rows=0)[0]
        c.alike(got, [0, features], name, NN + ", embedding_backward: occurrences that are no row are left out")
    c.same(c.call("embedding", weight=weight, index=index)[0], torch.nn.functional.embedding(index.long(), weight), NN + ", embedding", f"{name}: ")
    bad = index.clone()
    if bad.numel():
        bad[(0,) * bad.dim()] = c.pick([-1, rows, rows + 5, 2**31 - 1])
        want = torch.nn.functional.embedding(index.long().contiguous(), weight).clone()
        want[(0,) * bad.dim()] = math.nan
        c.same(c.call("embedding", weight=weight, index=bad)[0], want, NN + ", embedding, Bad contents", f"{name}: ")
    grad = c.tensor(list(shape) + [features], name, "normal")
    padding = c.pick([-1, 0, rows - 1]) if rows else -1
    by_frequency = c.chance(0.3)
    w = torch.zeros([rows, features], dtype=torch.float64, requires_grad=True)
    torch.nn.functional.embedding(index.long(), w, padding_idx=padding if padding >= 0 else None, scale_grad_by_freq=by_frequency).backward(grad.double())
    got = c.call("embedding_backward", grad=grad, index=index, rows=rows, padding_index=padding, scale_by_frequency=by_frequency)[0]
    total = torch.zeros([rows, features], dtype=torch.float64)
    total.index_add_(0, index.reshape(-1).long(), grad.double().reshape(index.numel(), features).abs())
    c.near(got, w.grad, (index.numel() + 3) * EPS[compute] * total, NN + ", embedding_backward: summed in their order", f"gradient of {name}: ")
