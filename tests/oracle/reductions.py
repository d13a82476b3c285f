# SPDX-License-Identifier: Apache-2.0
"""Reductions, sums along a dimension, functions of rows."""

import math

import numpy as np
import torch

from common import DTYPES, EPS, FLOATS, INTEGERS, NAMES, case, compute_name, longdouble
from pointwise import store
from tensors import cast_reference, unchanged

REDUCE = "clutch/ops/reduce.hpp"


def growth(n):
    """Of sums of n elements, in eps: 38 for each power of 2048."""
    return 38 * max(0, math.ceil(math.log(max(n, 1), 2048) - 1e-12)) + 1


def pick_dims(c, rank):
    """Dimensions to reduce, as the call takes them and as PyTorch does; empty: all."""
    if rank == 0 or c.chance(0.25):
        return [], list(range(rank))
    count = c.integer(1, rank)
    dims = sorted(int(d) for d in c.rng.permutation(rank)[:count])
    return [d - rank if c.chance(0.4) else d for d in dims], dims


def count_of(shape, dims):
    return math.prod(shape[d] for d in dims)


def big_shape(c, **arguments):
    """Now and then a long line, of several blocks of 2048."""
    if c.chance(0.2):
        return [c.pick([1, 3]), c.pick([2048, 2049, 5000, 20000])][:: c.pick([1, -1])]
    return c.shape(**arguments)


@case(150, covers=["sum", "mean"])
def sums(c):
    function = c.pick(["sum", "mean"])
    name = c.floating() if c.chance(0.65) else c.pick(INTEGERS + ["bool"])
    x = c.tensor(big_shape(c), name, c.pick(["any", "normal", "moderate", "small"]) if name in FLOATS else "any")
    dims, axes = pick_dims(c, x.dim())
    keep = c.chance(0.4)
    n = count_of(x.shape, axes)
    got = c.call(function, x=x, dims=dims, keepdim=keep)[0]
    if name not in FLOATS and function == "sum":
        return c.same(got, torch.sum(x.long(), dim=axes, keepdim=keep) if axes else x.long().clone(), REDUCE + ", sums of integers i64", f"sum of {name}: ")
    want = DTYPES[name] if name in FLOATS else torch.float32
    at = x.double() if name in FLOATS else x.float().double()
    # The library's sum is taken in f32: partial ones may overflow where f64's do not.
    exact = (torch.sum(at, dim=axes, keepdim=keep) if axes else at.clone()) / (n if function == "mean" else 1)
    compute = compute_name(NAMES[want])
    tolerance = growth(n) * EPS[compute] * (torch.sum(at.abs(), dim=axes, keepdim=keep) if axes else at.abs()) / (n if function == "mean" else 1)
    tolerance = tolerance + (2 * EPS[compute] * exact.abs() if function == "mean" else 0)
    # Sums that may leave the compute type's range on their way are not compared.
    finite = torch.where(at.isfinite(), at.abs(), 0.0)
    over = (torch.sum(finite, dim=axes, keepdim=keep) if axes else finite) > torch.finfo(DTYPES[compute]).max / 2
    got, exact = torch.where(over, torch.zeros([], dtype=got.dtype), got), torch.where(over, 0.0, exact)
    c.alike(got, exact.shape, want, REDUCE + ", Dtypes")
    c.near(got, exact, torch.nan_to_num(tolerance), REDUCE + ", Accuracy", f"{function} of {name}, {n} elements: ")


@case(40, covers=["prod"])
def products_of_elements(c):
    name = c.floating() if c.chance(0.6) else c.pick(INTEGERS + ["bool"])
    x = c.tensor(c.shape(elements=800), name, c.pick(["any", "small", "positive"]) if name in FLOATS else "any")
    dims, axes = pick_dims(c, x.dim())
    n = count_of(x.shape, axes)
    got = c.call("prod", x=x, dims=dims)[0]
    at = x.double() if name in FLOATS else x.long()
    for d in reversed(axes):
        at = torch.prod(at, dim=d)
    if name not in FLOATS:
        return c.same(got, at, REDUCE + ", integers accumulate in i64", f"prod of {name}: ")
    compute = compute_name(name)
    limits = torch.finfo(DTYPES[compute])
    # Partial products that leave the range may be 0, infinite or NaN in any order of the factors: those results are not compared.
    logs = x.double().abs().clamp(min=1e-300).log2()
    reach = torch.sum(logs.abs(), dim=axes) if axes else logs.abs()
    doubtful = (reach > (120 if compute == "f32" else 1000)) & ~torch.isnan(at)
    got, at = torch.where(doubtful, torch.zeros([], dtype=got.dtype), got), torch.where(doubtful, 0.0, at)
    c.near(got, at, torch.nan_to_num((n + 2) * EPS[compute] * at.abs()), REDUCE + ": one rounding for each factor", f"prod of {name}: ")


@case(100, covers=["amin", "amax", "any", "all", "argmin", "argmax"], sharp=True)
def selections(c):
    function = c.pick(["amin", "amax", "any", "all", "argmin", "argmax"])
    name = c.floating() if c.chance(0.6) else c.pick(INTEGERS + (["bool"] if function in ("any", "all") else []))
    x = c.tensor(big_shape(c, empty=0.05), name, c.pick(["any", "small"]))
    if function in ("argmin", "argmax"):
        d = None if c.chance(0.3) or x.dim() == 0 else c.integer(0, x.dim() - 1)
        dims, axes = ([], list(range(x.dim()))) if d is None else ([d], [d])
    else:
        dims, axes = pick_dims(c, x.dim())
    keep = c.chance(0.4)
    if count_of(x.shape, axes) == 0 and function not in ("any", "all"):
        return c.refused("invalid_argument", function, REDUCE + ", Empty: amin and amax are Errors", x=x, dims=dims)
    got = c.call(function, x=x, dims=dims, keepdim=keep)[0]
    if function in ("any", "all"):
        want = (x != 0)
        for d in reversed(axes):
            want = getattr(torch, function)(want, dim=d, keepdim=keep)
        return c.same(got, want.clone(), REDUCE + ", any counts NaN as true", f"{function} of {name}: ")
    if function in ("amin", "amax"):
        want = getattr(torch, function)(x, dim=axes, keepdim=keep) if axes else x.clone()
        return c.same(got, want, REDUCE + ", amin and amax give NaN if there is one", f"{function} of {name}: ", zero_signs=False)
    v = x.double().numpy() if name != "i64" else x.numpy()
    find = np.argmin if function == "argmin" else np.argmax
    want = np.asarray(find(v, axis=None if not dims else axes[0], keepdims=keep))
    c.same(got, torch.from_numpy(want.astype(np.int64)), REDUCE + ": the first of equal ones, the first NaN if there is one", f"{function} of {name}: ")


@case(80, covers=["var", "norm", "logsumexp"])
def moments(c):
    function = c.pick(["var", "norm", "logsumexp"])
    name = c.floating()
    compute = compute_name(name)
    eps = EPS[compute]
    kind = c.pick(["normal", "moderate", "small"])
    x = c.tensor(big_shape(c, empty=0.1), name, kind)
    shift = c.pick([0.0, 0.0, 1e2, 1e4, 1e30]) if function == "logsumexp" else c.pick([0.0, 0.0, 100.0])
    if shift and name != "f16":
        x = c.lay_out((x.double() + shift).to(x.dtype))
    if function == "logsumexp" and c.chance(0.3) and x.numel():
        x = c.lay_out(torch.where(torch.from_numpy(np.asarray(c.rng.random(x.shape) < 0.3)), torch.tensor(c.pick([-math.inf, math.inf, math.nan, float(torch.finfo(x.dtype).max)]),
                                                                                              dtype=x.dtype), x))
    dims, axes = pick_dims(c, x.dim())
    n = count_of(x.shape, axes)
    keep = c.chance(0.4)
    at = x.double()
    if not axes:
        at, axes = at.reshape(list(at.shape) + [1]), [at.dim()]
        keep = False
    if function == "var":
        correction = c.pick([1.0, 0.0, 2.0, 0.5])
        got = c.call("var", x=x, dims=dims, keepdim=keep, correction=correction)[0]
        exact = torch.var(at, dim=axes, keepdim=keep, correction=correction)
        offset = growth(n) * eps * at.abs().mean(dim=axes, keepdim=keep)
        tolerance = (2 * growth(n) + 8) * eps * exact.abs() + 2 * offset**2 * (n / max(n - correction, 1e-300) if n > correction else 1)
        return c.near(got, exact, torch.nan_to_num(tolerance), REDUCE + ", var: two passes", f"var of {name}, correction {correction}: ")
    if function == "norm":
        p = c.pick([2.0, 1.0, math.inf, -math.inf, 0.0, 3.0, 0.5])
        if n == 0 and p < 0:
            return c.refused("invalid_argument", "norm", REDUCE + ", norm, Errors", x=x, dims=dims, keepdim=keep, p=p)
        got = c.call("norm", x=x, dims=dims, keepdim=keep, p=p)[0]
        # PyTorch has no largest magnitude of nothing.
        exact = torch.linalg.vector_norm(at, p if n else 2, dim=axes, keepdim=keep)
        if name == "f64" and n and p not in (0.0, math.inf, -math.inf):
            # PyTorch adds up one after another, with more than our bound.
            powers = np.sum(np.abs(longdouble(at)) ** p, axis=tuple(axes), keepdims=keep)
            exact = torch.from_numpy(np.asarray(powers ** (1 / np.longdouble(p))).astype(np.float64))
        factor = 0 if math.isinf(p) or p == 0 else max(1.0, 1 / p) * (growth(n) + 6)
        return c.near(got, exact, factor * eps * exact.abs(), REDUCE + ", norm", f"norm {p} of {name}: ")
    got = c.call("logsumexp", x=x, dims=dims, keepdim=keep)[0]
    exact = torch.logsumexp(at, dim=axes, keepdim=keep)
    tolerance = (2 * exact.abs() + growth(n) + 50) * eps
    c.near(got, exact, torch.nan_to_num(tolerance, posinf=0.0, neginf=0.0), REDUCE + ", logsumexp by way of the maximum; of nothing -inf as PyTorch", f"of {name}: ")


@case(40, covers=["reduce", "sum_to"])
def reductions_of_lambdas(c):
    name = c.floating()
    compute = compute_name(name)
    eps = EPS[compute]
    shape = big_shape(c, low=1, empty=0)
    if c.chance(0.3):
        x = c.tensor(shape, name, "normal")
        sizes = [1 if c.chance(0.5) else n for n in shape][c.integer(0, len(shape) - 1):]
        got = c.call("sum_to", x=x, sizes=sizes)[0]
        exact = x.double().sum_to_size(sizes)
        n = x.numel() // max(1, math.prod(sizes))
        return c.near(got, exact, growth(n) * eps * x.double().abs().sum_to_size(sizes), REDUCE + ", Accuracy", f"sum_to of {name}: ")
    x = c.tensor(shape, name, "normal")
    dims, axes = pick_dims(c, x.dim())
    n = count_of(shape, axes)
    op = c.pick(["sum", "mean", "min", "max"])
    at = x.double()
    if c.chance(0.5):
        y = c.tensor(c.broadcastable(shape), name, "normal")
        a = store((x.to(DTYPES[compute]) - y.to(DTYPES[compute])), compute)
        value = (a * a).double()
        arguments = dict(inputs=[x, y])
    else:
        at = x.to(DTYPES[compute])
        value = (at * 2.0 + torch.arange(shape[-1]).expand(shape).to(at.dtype)).double()
        arguments = dict(inputs=[x])
    exact = {"sum": torch.sum, "mean": torch.mean, "min": torch.amin, "max": torch.amax}[op](value, dim=axes)
    tolerance = growth(n) * eps * value.abs().sum(dim=axes) / (n if op == "mean" else 1) + 2 * eps * exact.abs() if op in ("sum", "mean") else torch.zeros_like(exact)
    if c.chance(0.4):
        exact, tolerance = exact * exact * 0.5, exact.abs() * tolerance + tolerance**2 + 2 * eps * exact * exact
        arguments.update(after="halved_square", accumulator=compute)
    if len(arguments["inputs"]) == 2 and c.chance(0.4):
        out = c.tensor(exact.shape, name, "normal", expand=False)
        reply = c.call("reduce", back=["out"], out=out, op=op, dims=dims, **arguments).back["out"]
        unchanged(c, out, reply, REDUCE)
        return c.near(reply, exact, tolerance, REDUCE + ", Accuracy", f"{op} of {name} into out: ")
    c.near(c.call("reduce", op=op, dims=dims, **arguments)[0], exact, tolerance, REDUCE + ", Accuracy", f"{op} of {name}: ")


@case(60, covers=[], sharp=True)
def reductions_with_options(c):
    """ReduceOptions::dtype and after: whole numbers, whose sums are exact."""
    function = c.pick(["sum", "mean", "prod", "amin", "amax", "any", "all", "var", "norm", "logsumexp"])
    names = [n for n in FLOATS if c.traits["fp64"] or n != "f64"]
    name = c.floating() if c.chance(0.7) else c.integers()
    x = c.tensor(big_shape(c, empty=0) if function != "prod" else c.shape(elements=50, empty=0), name, "small")
    if function == "prod":
        x = c.lay_out(x.clamp(-2, 2) if name != "u8" else x.clamp(0, 2))
    dims, axes = pick_dims(c, x.dim())
    n = count_of(x.shape, axes)
    keep = c.chance(0.4)
    at = x.double() if name != "i64" else torch.where((x.abs() > 9), x % 9, x).double()
    if name in INTEGERS:
        x = c.lay_out(torch.where(x.long().abs() > 9, x.long() % 9, x.long()).to(x.dtype))
        at = x.double()
    if not axes:
        at, axes, keep = at.reshape(list(at.shape) + [1]), [at.dim()], False
    compute = compute_name(name) if name in FLOATS else "f32"
    dtype = c.pick(names) if name in FLOATS or function in ("mean", "var", "norm", "logsumexp") else c.pick(names + INTEGERS)
    arguments = dict(x=x, dims=dims, keepdim=keep)
    if function == "prod":
        exact = at
        for d in reversed(sorted(axes)):
            exact = torch.prod(exact, dim=d, keepdim=keep)
        if name in FLOATS and bool((exact.abs() > 2.0**23).any()) or name in INTEGERS and bool((exact.abs() > 2.0**50).any()):
            return c.true(True, "", REDUCE)
    elif function in ("any", "all"):
        exact = at != 0
        for d in reversed(sorted(axes)):
            exact = getattr(torch, function)(exact, dim=d, keepdim=keep)
    elif function == "var":
        exact = torch.var(at, dim=axes, keepdim=keep)
    elif function == "norm":
        exact = torch.linalg.vector_norm(at, 2, dim=axes, keepdim=keep)
    else:
        exact = getattr(torch, function)(at, dim=axes, keepdim=keep)
    eps = EPS[compute]
    # Within this of the exact value before anything else is done with it.
    slack = {"mean": 2 * eps * exact, "var": (2 * growth(n) + 8) * eps * exact, "norm": (growth(n) + 6) * eps * exact, "logsumexp": (2 * exact.double().abs() + growth(n) + 50) * eps}.get(function)
    what = f"{function} of {name} to {dtype}"
    value = exact.to(DTYPES[compute] if name in FLOATS else torch.int64) if slack is None and function not in ("any", "all") else exact
    if c.chance(0.5) and function not in ("any", "all") and (name in FLOATS or slack is not None):
        arguments.update(after="halved_square", accumulator=compute)
        what += ", its halved square"
        if slack is None:
            value = value * value * 0.5
        else:
            slack = exact.abs() * slack.abs() + slack**2 + 2 * eps * exact * exact
            value = exact * exact * 0.5
    got = c.call(function, dtype=dtype, **arguments)[0]
    source = REDUCE + ", ReduceOptions"
    c.alike(got, value.shape, dtype, source, what + ": ")
    if slack is not None:
        return c.near(got, value, torch.nan_to_num(slack.abs()), source, what + ": ")
    if dtype in ("f16", "bf16") and value.dtype == torch.int64:
        value = cast_reference(value, "f32")
    c.same(got, cast_reference(value, dtype), source, what + ": ", zero_signs=False)


@case(40, covers=["selective_scan", "selective_scan_backward"])
def state_spaces(c):
    """Against the recurrence in float64, one element after another, and autograd's gradients of it."""
    source = "clutch/ops/selective_scan.hpp"
    name, shared = c.pick(["f32", "f16", "bf16"]), c.pick(["f32", "f16", "bf16"])
    batch, length, channels, states = c.integer(1, 3), c.integer(1, 40), c.integer(1, 40), c.pick([1, 3, 16, 17])

    def draw(sizes, dtype, low, high):
        return c.lay_out(torch.from_numpy(c.rng.uniform(low, high, sizes)).to(DTYPES[dtype]))

    softplus = c.chance(0.5)
    inputs = dict(x=draw([batch, length, channels], name, -1, 1), delta=draw([batch, length, channels], name, -4 if softplus else 0, 0.5),
                  a=draw([channels, states], "f32", -3, 0), b=draw([batch, length, states], shared, -1, 1), c=draw([batch, length, states], shared, -1, 1))
    for option, sizes, dtype in (("skip", [channels], "f32"), ("gate", [batch, length, channels], name), ("delta_bias", [channels], "f32"),
                                 ("initial_state", [batch, channels, states], "f32")):
        if c.chance(0.5):
            inputs[option] = draw(sizes, dtype, -0.3 if option == "delta_bias" else -1, 0 if option == "delta_bias" else 1)
    grad, grad_state = draw([batch, length, channels], name, -1, 1), draw([batch, channels, states], "f32", -1, 1) if c.chance(0.5) else None
    given = dict(grad_state=grad_state) if grad_state is not None else {}
    got = c.call("selective_scan", softplus=softplus, grad=grad, **inputs, **given)
    at = {k: v.double().requires_grad_() for k, v in inputs.items()}
    step = at["delta"] + at["delta_bias"] if "delta_bias" in at else at["delta"]
    step = torch.nn.functional.softplus(step) if softplus else step
    h = at.get("initial_state", torch.zeros(batch, channels, states, dtype=torch.float64))
    size, error, eps, ys, bounds = h.detach().abs(), torch.zeros_like(h), EPS["f32"], [], []
    for t in range(length):
        power = step[:, t, :, None] * at["a"]
        added = (step[:, t] * at["x"][:, t])[..., None] * at["b"][:, t, None, :]
        h = torch.exp(power) * h + added
        fade = torch.exp(power.detach())
        size = fade * size + added.detach().abs()
        error = fade * error + (2 * power.detach().abs() + 6) * eps * size
        ys.append((h * at["c"][:, t, None, :]).sum(-1))
        bounds.append(((error + (states + 4) * eps * h.detach().abs()) * at["c"].detach()[:, t, None, :].abs()).sum(-1))
    y, bound = torch.stack(ys, 1), torch.stack(bounds, 1)
    if "skip" in at:
        y = y + at["skip"] * at["x"]
        bound = bound + eps * (y.detach().abs() + (at["skip"] * at["x"]).detach().abs())
    if "gate" in at:
        weight = at["gate"] * torch.sigmoid(at["gate"])
        bound = bound * weight.detach().abs() + 6 * eps * (y * weight).detach().abs()
        y = y * weight
    c.near(got[0], y.detach(), bound + 2.0**-40, source + ", Accuracy", f"y of {name}, {shared}: ")
    c.near(got[1], h.detach(), error, source + ", Accuracy", "the state: ")
    total = (y * grad.double()).sum() + ((h * grad_state.double()).sum() if grad_state is not None else 0)
    names = ["x", "delta", "a", "b", "c"] + [k for k in ("skip", "gate", "delta_bias", "initial_state") if k in inputs]
    wanted = torch.autograd.grad(total, [at[k] for k in names], allow_unused=True)
    for k, mine, want in zip(names, got[2:], wanted):
        want = torch.zeros_like(at[k]) if want is None else want
        c.near(mine, want, 2.0**-15 * want.abs().max() + 2.0**-40, source + ", Accuracy of gradients", f"of {k}: ")


@case(80, covers=["cumsum"])
def running_sums(c):
    source = "clutch/ops/cumsum.hpp"
    name = c.floating() if c.chance(0.7) else c.pick(INTEGERS + ["bool"])
    x = c.tensor(big_shape(c, low=1), name, c.pick(["any", "normal", "small"]) if name in FLOATS else "any")
    d = c.integer(0, x.dim() - 1)
    backward = c.chance(0.3)
    out = None
    want = x.dtype if name in FLOATS else torch.int64
    if c.chance(0.25):
        # To another dtype that is accumulated in the same type: whole numbers, whose sums are exact.
        x = c.tensor(list(x.shape), name, "small") if name != "bool" else x
        x = c.lay_out((x.long() % 5).to(x.dtype)) if name in INTEGERS else x
        dtype = c.pick([n for n in FLOATS if compute_name(n) == compute_name(name)] if name in FLOATS else INTEGERS)
        sums = x.to(DTYPES[compute_name(name)] if name in FLOATS else torch.int64)
        sums = torch.cumsum(sums.flip(d), d).flip(d) if backward else torch.cumsum(sums, d)
        got = c.call("cumsum", x=x, dim=d, reverse=backward, dtype=dtype)[0]
        return c.same(got, cast_reference(sums, dtype), source + ", CumsumOptions::dtype", f"of {name} to {dtype}: ", zero_signs=False)
    if name in FLOATS and c.chance(0.3):
        out = c.tensor(x.shape, name, "normal", expand=False)
    arguments = dict(x=x, dim=d - x.dim() if c.chance(0.5) else d, reverse=backward)
    if out is not None:
        got = c.call("cumsum", back=["out"], out=out, **arguments).back["out"]
        unchanged(c, out, got, source)
    else:
        got = c.call("cumsum", **arguments)[0]
    flip = (lambda t: t.flip(d)) if backward else (lambda t: t)
    if name not in FLOATS:
        return c.same(got, flip(torch.cumsum(flip(x.long()), dim=d)), source + ", accumulated in i64", f"of {name}: ")
    compute = compute_name(name)
    at = x.double()
    exact = flip(torch.cumsum(flip(at), dim=d))
    place = torch.arange(1, x.shape[d] + 1, dtype=torch.float64).reshape([-1 if k == d else 1 for k in range(x.dim())])
    total = flip(torch.cumsum(flip(at.abs()), dim=d))
    tolerance = (133 + flip(place.expand(x.shape)) / 2048) * EPS[compute] * total
    # Sums that may leave the compute type's range on their way are not compared.
    reach = flip(torch.cumsum(flip(torch.where(at.isfinite(), at.abs(), 0.0)), dim=d))
    doubtful = reach > torch.finfo(DTYPES[compute]).max / 2
    got, exact = torch.where(doubtful, torch.zeros([], dtype=got.dtype), got), torch.where(doubtful, 0.0, exact)
    c.alike(got, x.shape, want, source)
    c.near(got, exact, torch.nan_to_num(torch.where(doubtful, 0.0, tolerance), posinf=0.0), source + ", Accuracy", f"of {name} along {d}: ")


@case(50, covers=["rowwise", "rowwise_out"])
def rows(c):
    source = "clutch/ops/rowwise.hpp"
    name = c.floating()
    compute = compute_name(name)
    eps = EPS[compute]
    shape = big_shape(c, low=1, empty=0)
    dims, axes = pick_dims(c, len(shape))
    if not dims:
        dims = list(axes)
    n = count_of(shape, axes)
    x = c.tensor(shape, name, "moderate")
    at = x.double()
    slack = growth(n) * eps * at.abs().mean(dim=axes, keepdim=True)
    kinds = [c.pick([n for n in FLOATS if c.traits["fp64"] or n != "f64"]) for _ in range(3)] if c.chance(0.3) else []
    options = {f"dtype{i}": kind for i, kind in enumerate(kinds)}

    def of_kinds(got):
        for i, kind in enumerate(kinds):
            c.alike(got[i], got[i].shape, kind, source + ", RowwiseOptions::dtype")

    def near(i, got, exact, bound, label):
        # f64 goes to f16 and bf16 by way of f32 (map.hpp).
        by_f32 = EPS["f32"] * exact.abs() if kinds and kinds[i] in ("f16", "bf16") and compute == "f64" else 0
        return c.near(got[i], exact, bound + by_f32, source, label)

    if c.chance(0.4):
        w = c.tensor(c.broadcastable(shape), name, "normal")
        got = c.call("rowwise", inputs=[x, w], dims=dims, **options)
        of_kinds(got)
        b = w.double().expand(shape)
        total = (at * b).sum(dim=axes, keepdim=True)
        near(0, got, total, (growth(n) + 1) * eps * (at * b).abs().sum(dim=axes, keepdim=True), f"sum of {name}: ")
        negative = (b <= 0).sum(dim=axes, keepdim=True)
        near(1, got, 1.0 - 2.0 * (negative % 2).double(), torch.zeros_like(total), f"prod of {name}: ")
        return near(2, got, torch.amin(at, dim=axes, keepdim=True), torch.zeros_like(total), f"min of {name}: ")
    mean = at.mean(dim=axes, keepdim=True)
    top = (at - mean).abs().amax(dim=axes, keepdim=True)
    exact = (at - mean) / (top + 1)
    if c.chance(0.4):
        acc = compute
        outputs = [c.tensor(shape, name, "normal", expand=False), c.tensor(mean.shape, acc, "normal", expand=False), c.tensor(mean.shape, acc, "normal", expand=False)]
        reply = c.call("rowwise_out", back=["outputs.0", "outputs.1", "outputs.2"], inputs=[x], outputs=outputs, dims=dims)
        got = [reply.back[f"outputs.{i}"] for i in range(3)]
        for out, new in zip(outputs, got):
            unchanged(c, out, new, source)
    else:
        got = c.call("rowwise", inputs=[x], dims=dims, **options)
        of_kinds(got)
    tolerance = slack + eps * mean.abs()
    near(0, got, exact, 4 * eps * (exact.abs() + at.abs() / (top + 1)) + 2 * tolerance * (1 + exact.abs()), f"elements of {name}: ")
    near(1, got, mean, tolerance + eps * mean.abs(), f"mean of {name}: ")
    near(2, got, top, tolerance + 2 * eps * (top + at.abs().amax(dim=axes, keepdim=True)), f"largest of {name}: ")
