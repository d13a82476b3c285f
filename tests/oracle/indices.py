# SPDX-License-Identifier: Apache-2.0
"""Functions with indices: segments, compressed rows, scatter and gather, groups."""

import math

import numpy as np
import torch

from common import DTYPES, EPS, FLOATS, INTEGERS, NAMES, case, compute_name
from tensors import unchanged

SEGMENT = "clutch/ops/segment.hpp"
SPARSE = "clutch/sparse.hpp"
SCATTER = "clutch/ops/scatter.hpp"
REDUCTIONS = ["sum", "prod", "amin", "amax", "mean"]


def offsets_of(c, segments, entries):
    cuts = np.sort(c.rng.integers(0, entries, size=segments + 1, endpoint=True))
    if c.chance(0.8):
        cuts[0], cuts[-1] = 0, entries
    return torch.from_numpy(cuts)


def index_dtype(c):
    return DTYPES[c.pick(["i32", "i64"])]


def combine(op, rows, initial=None, empty=None):
    """One segment in f64 from rows (n, ...), with the sum of magnitudes that its error is measured by."""
    n = rows.shape[0]
    if n == 0 and initial is None:
        value = {"sum": 0.0, "prod": 1.0, "amin": math.inf, "amax": -math.inf, "mean": math.nan}[op] if empty is None else empty
        full = torch.full(rows.shape[1:], value, dtype=torch.float64)
        return full, torch.zeros_like(full)
    if n == 0:
        full = torch.full(rows.shape[1:], initial, dtype=torch.float64)
        return full, torch.zeros_like(full)
    first = None if initial is None else torch.full((1, *rows.shape[1:]), initial, dtype=torch.float64)
    every = rows if first is None else torch.cat([first, rows])
    if op == "prod":
        result = every.prod(0)
        return result, result.abs()
    if op in ("amin", "amax"):
        result = getattr(every, op)(0)
        return result, torch.zeros_like(result)
    result, magnitude = every.sum(0), every.abs().sum(0)
    if op == "mean":
        # The initial value is in the sum and not in the count.
        result, magnitude = result / n, magnitude / n
    return result, magnitude


def kind_of(c, op, factors):
    """Whole numbers to 8 or unit-normal ones. Of many whole factors a product would pass f32's range, and be NaN or 0 by where a zero stands."""
    return c.pick(["normal", "small"]) if op != "prod" or factors <= 40 else "normal"


def stacked(parts, features):
    """Of no parts a tensor of none."""
    return torch.stack(parts) if parts else torch.zeros([0, *features], dtype=torch.float64)


def least_of(op, eps):
    """Products of many factors may be subnormal, where roundings are absolute."""
    return 0.0 if op != "prod" else 2.0**-126 if eps == EPS["f32"] else 2.0**-1022


def tolerance_of(op, counts, magnitude, eps):
    return torch.nan_to_num((counts + 3) * eps * magnitude, posinf=0.0, nan=0.0) + least_of(op, eps)


def gradients(op, data, result, grad, ties):
    """Of one segment: each entry's share. Ties of amin and amax: shared, or all to the first."""
    n = data.shape[0]
    if op == "sum":
        return grad.expand(data.shape)
    if op == "mean":
        return (grad / n).expand(data.shape)
    if op == "prod":
        others = torch.ones_like(data)
        for i in range(n):
            keep = [j for j in range(n) if j != i]
            others[i] = data[keep].prod(0)
        return grad * others
    same = (data == result) | (data.isnan() & result.isnan())
    if ties == "first":
        same = same & (same.long().cumsum(0) == 1)
    return grad * same / same.sum(0).clamp(min=1)


@case(100, covers=["segment_reduce"])
def segments(c):
    op = c.pick(REDUCTIONS)
    name = c.floating()
    eps = EPS[compute_name(name)]
    entries, count = c.pick([0, 1, 5, 33, 100, 300]), c.pick([0, 1, 2, 7, 40])
    features = c.shape(0, 2, elements=40, empty=0.03)
    data = c.tensor([entries] + features, name, c.pick(["normal", "small", "any"]) if op in ("amin", "amax") else kind_of(c, op, entries))
    offsets = offsets_of(c, count, entries)
    initial = c.pick([None, None, 0.5, -2.0, 0.0])
    arguments = dict(data=data, offsets=c.lay_out(offsets.to(index_dtype(c))), reduce=op)
    if initial is not None:
        arguments["initial"] = initial
    a = data.double()
    parts = [combine(op, a[offsets[i] : offsets[i + 1]], initial) for i in range(count)]
    exact, magnitude = (stacked([p[i] for p in parts], features) for i in (0, 1))
    counts = (offsets[1:] - offsets[:-1]).double().reshape([-1] + [1] * len(features))
    tolerance = tolerance_of(op, counts + 1, magnitude, eps)
    if c.chance(0.25):
        out = c.tensor([count] + features, name, "normal", expand=False)
        got = c.call("segment_reduce", back=["out"], out=out, **arguments).back["out"]
        unchanged(c, out, got, SEGMENT)
        return c.near(got, exact, tolerance, SEGMENT + ", Accuracy", f"{op} of {name} into out: ")
    grad = c.tensor([count] + features, name, "normal")
    got = c.call("segment_reduce", grad=grad, **arguments)
    c.near(got[0], exact, tolerance, SEGMENT + ", Accuracy, Empty segments, NaN", f"{op} of {name}, initial {initial}: ")
    if initial is not None:
        return
    want, bound = torch.zeros_like(a), torch.zeros_like(a)
    stored = got[0].double()
    for i in range(count):
        b, e = int(offsets[i]), int(offsets[i + 1])
        if e > b:
            want[b:e] = gradients(op, a[b:e], stored[i] if op in ("amin", "amax") else exact[i], grad[i].double(), "shared")
            # A product's gradient is the product of the others, which is that of all divided by the entry.
            bound[b:e] = (e - b + 4) * eps * want[b:e].abs() + least_of(op, eps) * (1 + grad[i].double().abs()) * (1 + 1 / a[b:e].abs())
    c.near(got[1], want, torch.nan_to_num(bound, posinf=0.0), SEGMENT + ", segment_reduce_backward: ties share evenly, prod right for zeros", f"gradient of {op} of {name}: ")


@case(70, covers=["spmm"])
def products_of_compressed_rows(c):
    op = c.pick(REDUCTIONS)
    name = c.floating()
    eps = EPS[compute_name(name)]
    m, k, n = c.pick([1, 3, 20]), c.pick([1, 5, 17]), c.pick([1, 3, 16, 33, 64])
    entries = c.pick([0, 1, 10, 60])
    if c.chance(0.15):
        # No rows, no columns (and so no entries), nothing beside.
        m, k, n, entries = c.pick([(0, k, n, entries), (m, 0, n, 0), (m, k, 0, entries), (0, 0, n, 0)])
    offsets = offsets_of(c, m, entries)
    columns = torch.from_numpy(np.asarray(c.rng.integers(0, max(k, 1), size=entries)))
    kind = kind_of(c, op, 2 * entries)
    values = c.tensor([entries], name, kind) if c.chance(0.8) else None
    b = c.tensor([k, n], name, kind)
    kinds = index_dtype(c)
    arguments = dict(offsets=offsets.to(kinds), columns=columns.to(kinds), values=values, width=k, b=b, reduce=op)
    v, d = (values.double() if values is not None else torch.ones(entries, dtype=torch.float64)), b.double()
    # Products are rounded before they are compared or multiplied; sums are chains of fma.
    rows = v[:, None] * d[columns]
    if op in ("amin", "amax") or op == "prod":
        rows = (v[:, None].to(DTYPES[compute_name(name)]) * d[columns].to(DTYPES[compute_name(name)])).double()
    parts = [combine(op, rows[offsets[i] : offsets[i + 1]], None, 0.0) for i in range(m)]
    exact, magnitude = (stacked([p[i] for p in parts], [n]) for i in (0, 1))
    counts = (offsets[1:] - offsets[:-1]).double()[:, None]
    tolerance = tolerance_of(op, 2 * counts, magnitude, eps)
    if c.chance(0.25):
        out = c.tensor([m, n], name, "normal", expand=False)
        got = c.call("spmm", back=["out"], out=out, **arguments).back["out"]
        unchanged(c, out, got, SEGMENT)
        return c.near(got, exact, tolerance, SPARSE + ", spmm", f"{op} of {name} into out: ")
    grad = c.tensor([m, n], name, "normal")
    got = c.call("spmm", grad=grad, **arguments)
    c.near(got[0], exact, tolerance, SPARSE + ", spmm, Empty rows: 0", f"{op} of {name}: ")
    # The size of a share's own rounding where it is a product that may be subnormal: that of its factor, the gradient.
    share, lost = torch.zeros_like(rows), torch.zeros_like(rows)
    for i in range(m):
        p, e = int(offsets[i]), int(offsets[i + 1])
        if e > p:
            share[p:e] = gradients(op, rows[p:e], exact[i], grad[i].double(), "first")
            lost[p:e] = least_of(op, eps) * grad[i].double().abs()
    want_values = (share * d[columns]).sum(1)
    size_values = (share * d[columns]).abs().sum(1)
    want_b, size_b, lost_b = torch.zeros_like(d), torch.zeros_like(d), torch.zeros_like(d)
    want_b.index_add_(0, columns, share * v[:, None])
    size_b.index_add_(0, columns, (share * v[:, None]).abs())
    lost_b.index_add_(0, columns, lost * v[:, None].abs())
    if op == "prod" and name != "f64" and float(size_values.sum()) > 2.0**120:
        return  # past f32
    if name in ("f16", "bf16") and op in ("amin", "amax"):
        # The result is rounded, so which entry gave it shows only in what is stored.
        return
    c.near(got[1], want_values, (n + 2 * entries + 8) * eps * size_values + (lost * d[columns].abs()).sum(1), SPARSE + ", spmm_backward", f"gradient of values, {op} of {name}: ")
    c.near(got[2], want_b, (3 * entries + 8) * eps * size_b + lost_b, SPARSE + ", spmm_backward", f"gradient of b, {op} of {name}: ")


def lines_of(index, dim):
    """For each element of the index its place in the result."""
    grids = list(torch.meshgrid(*[torch.arange(n) for n in index.shape], indexing="ij"))
    grids[dim] = index
    return grids


@case(140, covers=["scatter_reduce"])
def scatters(c):
    op = c.pick(REDUCTIONS)
    name = c.floating() if c.chance(0.7) else c.integers()
    floating = name in FLOATS
    rank = c.integer(1, 3)
    shape = [c.pick([1, 2, 5, 8, 17, 40]) for _ in range(rank)]
    dim = c.integer(0, rank - 1)
    src_shape = [n if d == dim and False else n for d, n in enumerate(shape)]
    src_shape[dim] = c.pick([0, 1, 3, 20, 70])
    index_shape = [n if c.chance(0.7) else c.integer(0, n) for n in src_shape]
    kind = c.pick(["normal", "small"]) if floating else "small"
    x, src = c.tensor(shape, name, kind, expand=False), c.tensor(src_shape, name, kind)
    if c.chance(0.35):
        # One index for each line, repeated over the other dimensions.
        line = torch.from_numpy(np.asarray(c.rng.integers(0, shape[dim], size=[index_shape[dim] if d == dim else 1 for d in range(rank)])))
        index = line.to(index_dtype(c)).expand(index_shape)
    else:
        index = c.lay_out(torch.from_numpy(np.asarray(c.rng.integers(0, shape[dim], size=index_shape))).to(index_dtype(c)))
    include = c.chance(0.6)
    arguments = dict(self=x, dim=dim - rank if c.chance(0.3) else dim, index=index, src=src, reduce=op, include_self=include)
    part = src[tuple(slice(0, n) for n in index_shape)]
    if not floating:
        want = torch.scatter_reduce(x.long(), dim, index.long().contiguous(), part.long().contiguous(), op, include_self=include)
        if op == "sum" or op == "prod":
            want = want.to(x.dtype)
        elif op == "mean":
            want = want.to(x.dtype)
        got = c.call("scatter_reduce", **arguments)[0]
        return c.same(got, want.to(x.dtype), SCATTER + ": integers wrap, means are rounded down", f"{op} of {name}: ")
    eps = EPS[compute_name(name)]
    counts = torch.scatter_reduce(torch.ones(shape, dtype=torch.float64), dim, index.long().contiguous(), torch.ones(index_shape, dtype=torch.float64), "sum")
    a = x.double()
    if op in ("amin", "amax") and not include:
        # PyTorch lets self share in ties by chance where it does not count: NaN does not.
        a = torch.where(counts > 1, math.nan, a)
    a, s = a.clone().requires_grad_(), src.double().clone().requires_grad_()
    result = torch.scatter_reduce(a, dim, index.long().contiguous(), s[tuple(slice(0, n) for n in index_shape)], op, include_self=include)
    exact = result.detach()
    magnitude = torch.scatter_reduce(a.detach().abs(), dim, index.long().contiguous(), part.double().abs(), op if op in ("sum", "mean", "prod") else "sum", include_self=include)
    tolerance = (counts + 3) * eps * magnitude if op in ("sum", "mean", "prod") else torch.zeros_like(exact)
    touched = counts > 1
    tolerance = torch.where(touched, tolerance, 0.0)
    if c.chance(0.3):
        got = c.call("scatter_reduce", back=["self"], in_place=True, **arguments).back["self"]
        unchanged(c, x, got, SCATTER)
        return c.near(got, exact, tolerance, SCATTER + ", Accuracy", f"{op} of {name} in place: ")
    grad = c.tensor(shape, name, "normal")
    got = c.call("scatter_reduce", grad=grad, **arguments)
    c.near(got[0], exact, tolerance, SCATTER + ", Accuracy", f"{op} of {name}: ")
    if op in ("amin", "amax", "mean", "sum") or (x != 0).all() and (part != 0).all():
        result.backward(grad.double())
        # A product's gradient is made of the other factors.
        n = float(counts.max())
        c.near(got[1], a.grad if a.grad is not None else torch.zeros_like(a), (2 * n + 8) * eps * a.grad.abs(), SCATTER + ", scatter_reduce_backward", f"gradient of self, {op} of {name}: ")
        c.near(got[2], s.grad, (2 * n + 8) * eps * s.grad.abs(), SCATTER + ", scatter_reduce_backward", f"gradient of src, {op} of {name}: ")


@case(20, covers=[])
def scatter_bad_indices(c):
    name = c.floating()
    x, src = c.tensor([5], name, "normal", expand=False), c.tensor([7], name, "normal", expand=False)
    index = torch.tensor([0, -1, 5, 2, 4, 2**31 - 1, -7])
    inside = (index >= 0) & (index < 5)
    got = c.call("scatter_reduce", self=x, dim=0, index=index.to(index_dtype(c)), src=src, reduce="amax")[0]
    want = torch.scatter_reduce(x, 0, index[inside], src[inside], "amax")
    c.same(got, want, SCATTER + ", Bad contents: left out", f"{name}: ", zero_signs=False)


@case(20, covers=[])
def scatter_special_values(c):
    """NaN among the elements; infinities; all of integers' range."""
    name = c.floating()
    x, src = c.tensor([6, 9], name, "any", expand=False), c.tensor([11, 9], name, "any")
    op = c.pick(["amin", "amax"])
    index = torch.from_numpy(np.asarray(c.rng.integers(0, 6, size=[11, 9])))
    include = c.chance(0.5)
    got = c.call("scatter_reduce", self=x, dim=0, index=index, src=src, reduce=op, include_self=include)[0]
    want = torch.scatter_reduce(x.double(), 0, index, src.double(), op, include_self=include).to(x.dtype)
    c.same(got, want, SCATTER + ", NaN", f"{op} of {name}: ", zero_signs=False)
    if include:
        grad = c.tensor([6, 9], name, "normal")
        leaves = [t.double().requires_grad_() for t in (x, src)]
        torch.scatter_reduce(leaves[0], 0, index, leaves[1], op, include_self=include).backward(grad.double())
        made = c.call("scatter_reduce", self=x, dim=0, index=index, src=src, reduce=op, include_self=include, grad=grad)
        for i, m in enumerate(("self", "src")):
            c.near(made[1 + i], leaves[i].grad, 4 * EPS[compute_name(name)] * torch.nan_to_num(leaves[i].grad.abs()), SCATTER + ", scatter_reduce_backward", f"gradient of {m} by {op} of {name}: ")
    name = c.integers()
    x, src = c.values([6, 9], name, "wide"), c.values([11, 9], name, "wide")
    op = c.pick(["sum", "prod", "amin", "amax"])
    got = c.call("scatter_reduce", self=x, dim=0, index=index, src=src, reduce=op, include_self=include)[0]
    want = torch.scatter_reduce(x.long(), 0, index, src.long(), op, include_self=include).to(x.dtype)
    c.same(got, want, SCATTER + ", Dtypes: integers wrap", f"{op} of {name}: ")


@case(80, covers=["gather", "gather_backward", "index_select"], sharp=True)
def gathers(c):
    name = c.floating() if c.chance(0.6) else c.pick(INTEGERS + ["bool"])
    rank = c.integer(1, 4)
    shape = [c.pick([1, 2, 3, 9, 16]) for _ in range(rank)]
    dim = c.integer(0, rank - 1)
    x = c.tensor(shape, name)
    index_shape = [c.pick([0, 1, 5, 40]) if d == dim else n if c.chance(0.7) else c.integer(0, n) for d, n in enumerate(shape)]
    index = torch.from_numpy(np.asarray(c.rng.integers(0, shape[dim], size=index_shape)))
    kinds = index_dtype(c)
    want = torch.gather(x, dim, index)
    got = c.call("gather", x=x, dim=dim - rank if c.chance(0.3) else dim, index=c.lay_out(index.to(kinds)))[0]
    c.same(got, want, SCATTER + ", gather", f"gather of {name}: ")
    if index.numel():
        bad, spoiled = index.clone(), want.clone()
        bad.view(-1)[-1] = c.pick([-1, shape[dim], 2**31 - 1, -(2**31)])
        spoiled.view(-1)[-1] = math.nan if name in FLOATS else 0
        c.same(c.call("gather", x=x, dim=dim, index=bad.to(kinds))[0], spoiled, SCATTER + ", gather, Bad contents", f"{name}: ")
    line = torch.from_numpy(np.asarray(c.rng.integers(0, shape[dim], size=[c.pick([0, 1, 4, 33])])))
    c.same(c.call("index_select", x=x, dim=dim, index=c.lay_out(line.to(kinds)))[0], torch.index_select(x, dim, line), SCATTER + ", index_select", f"{name}: ")
    if name not in FLOATS:
        return
    grad = c.tensor(index_shape, name, "normal")
    zero = torch.zeros(shape, dtype=torch.float64)
    exact = zero.scatter_add(dim, index, grad.double())
    size = zero.scatter_add(dim, index, grad.double().abs())
    got = c.call("gather_backward", grad=grad, sizes=shape, dim=dim, index=index.to(kinds))[0]
    c.near(got, exact, (index.shape[dim] + 2) * EPS[compute_name(name)] * size, SCATTER + ", gather_backward", f"gradient of {name}: ")


@case(50, covers=["group_by"], sharp=True)
def groups(c):
    source = "clutch/ops/group.hpp"
    entries, count = c.pick([0, 1, 7, 64, 500, 5000]), c.pick([1, 2, 10, 300, 3000, 100000])
    index = torch.from_numpy(np.asarray(c.rng.integers(0, count, size=[entries])))
    if c.chance(0.4) and entries:
        chosen = torch.from_numpy(np.asarray(c.rng.random(entries) < 0.2))
        index = torch.where(chosen, c.pick([-1, count, 2**31 - 1]), index)
    got = c.call("group_by", index=c.lay_out(index.to(index_dtype(c))), groups=count)
    valid = (index >= 0) & (index < count)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(index[valid], minlength=count).cumsum(0)])
    c.same(got[0], offsets.int(), source + ": i32 below 2^31 entries", "offsets: ")
    c.alike(got[1], [entries], torch.int32, source)
    places = torch.arange(entries)[valid]
    order = places[torch.argsort(index[valid], stable=True)]
    c.same(got[1][: len(order)], order.int(), source + ": stably, the result is unique", "order: ")


SORT = "clutch/ops/sort.hpp"


@case(80, covers=["sort", "argsort", "topk", "kthvalue"], sharp=True)
def sorts(c):
    name = c.pick(FLOATS + INTEGERS + ["bool"])
    shape = c.shape(0, 4)
    if c.chance(0.3):
        shape = [c.integer(1, 3), c.pick([2047, 2049, 4097, 9000])]
    x = c.tensor(shape, name)
    rank = len(shape)
    dim = c.integer(-rank, rank - 1) if rank else c.pick([-1, 0])
    descending = c.chance(0.5)
    want = torch.sort(x, dim=dim, descending=descending, stable=True)
    got = c.call("sort", x=x, dim=dim, descending=descending)
    what = f"{name} {shape} along {dim}: "
    c.same(got[1], want.indices, SORT + ", Order", "indices of " + what)
    c.same(got[0], want.values, SORT + ", values keep their bits", "values of " + what)
    c.same(c.call("sort", x=x, dim=dim, descending=descending, argsort=True)[0], want.indices, SORT + ", argsort", what)
    n = shape[dim] if rank else 1
    k = c.pick([0, 1, n, c.integer(0, n)]) if rank else 1
    largest = c.chance(0.5)
    if k <= n:
        order = torch.sort(x, dim=dim, descending=largest, stable=True)
        first = [t.narrow(dim, 0, k) if rank else t for t in order]
        got = c.call("topk", x=x, k=k, dim=dim, largest=largest)
        c.same(got[0], first[0], SORT + ", topk: the first k elements of sort()", "values of topk of " + what)
        c.same(got[1], first[1], SORT + ", topk: the first k elements of sort()", "indices of topk of " + what)
        # What topk leaves open is which of equal elements it takes.
        if x.numel() and name != "bool":
            c.same(got[0].sort(dim).values, torch.topk(x, k, dim, largest=largest).values.sort(dim).values, SORT + ", topk", "topk of " + what, zero_signs=False)
        c.refused("invalid_argument", "topk", SORT + ", topk: k", x=x, k=n + 1, dim=dim, largest=largest)
    if n:
        kth, keepdim = c.integer(1, n), c.chance(0.5)
        got = c.call("kthvalue", x=x, k=kth, dim=dim, keepdim=keepdim)
        order = torch.sort(x, dim=dim, stable=True)
        for t, w in zip(got.results, order):
            w = (w.narrow(dim, kth - 1, 1) if keepdim else w.select(dim, kth - 1)) if rank else w
            c.same(t, w, SORT + ", kthvalue", f"kthvalue {kth} of " + what)
    c.refused("invalid_argument", "sort", SORT + ", Errors", x=x, dim=max(rank, 1))


NONZERO = "clutch/ops/nonzero.hpp"


@case(60, covers=["nonzero", "nonzero_static", "count_nonzero", "masked_select"], sharp=True)
def found(c):
    name = c.pick(FLOATS + INTEGERS + ["bool", "c64"])
    shape = c.shape(0, 5)
    x = c.values(shape, name, c.pick(["any", "small"]))
    x = c.lay_out(torch.where(torch.from_numpy(np.asarray(c.rng.random(shape) < c.pick([0.1, 0.5, 0.9]))), x, torch.zeros([], dtype=x.dtype)))
    what = f"{name} {shape}: "
    want = torch.nonzero(x)
    c.same(c.call("nonzero", x=x)[0], want, NONZERO + ", nonzero", "nonzero of " + what)
    size, fill = c.pick([0, 1, len(want), len(want) + 5]), c.pick([-1, 0, 7])
    c.same(c.call("nonzero_static", x=x, size=size, fill_value=fill)[0], torch.nonzero_static(x, size=size, fill_value=fill), NONZERO + ", nonzero_static", what)
    if name != "c64":
        dims = [d for d in range(len(shape)) if c.chance(0.4)]
        c.same(c.call("count_nonzero", x=x, dims=dims)[0], torch.count_nonzero(x, dim=dims or None), NONZERO + ", count_nonzero", what)
    mask = c.lay_out(torch.from_numpy(np.asarray(c.rng.random(c.broadcastable(shape)) < 0.5)))
    y = c.tensor(c.broadcastable(shape), name)
    c.same(c.call("masked_select", x=y, mask=mask)[0], torch.masked_select(y, mask), NONZERO + ", masked_select", what)
    c.refused("invalid_dtype", "masked_select", NONZERO + ", masked_select", x=y, mask=mask.to(torch.uint8))


@case(60, covers=["unique", "unique_consecutive"], sharp=True)
def differing(c):
    name = c.pick(FLOATS + INTEGERS + ["bool"])
    x = c.tensor(c.shape(0, 3), name, c.pick(["any", "small"]))
    inverse, counts, consecutive = c.chance(0.6), c.chance(0.6), c.chance(0.4)
    f = torch.unique_consecutive if consecutive else torch.unique
    want = f(x, return_inverse=True, return_counts=True)
    got = c.call("unique", x=x, inverse=inverse, counts=counts, consecutive=consecutive)
    what = f"{name} {list(x.shape)}{' consecutive' if consecutive else ''}: "
    c.same(got[0], want[0], NONZERO + ", unique", "values of " + what, zero_signs=False)
    if inverse:
        # Which NaN is which PyTorch leaves open.
        nan = x.isnan() if name in FLOATS else torch.zeros(x.shape, dtype=torch.bool)
        c.same(torch.where(nan, 0, got[1]), torch.where(nan, 0, want[1]), NONZERO + ", unique", "inverse of " + what)
    if counts:
        c.same(got[1 + inverse], want[2], NONZERO + ", unique", "counts of " + what)


INDEX = "clutch/ops/index.hpp"


@case(100, covers=["index", "index_put"], sharp=True)
def by_tensors(c):
    name = c.pick(FLOATS + INTEGERS + ["bool", "c64"])
    shape = [max(1, n) for n in c.shape(1, 4, elements=2000, empty=0)]
    x = c.tensor(shape, name, expand=False)
    common = [c.integer(1, 4) for _ in range(c.integer(0, 2))] if c.chance(0.9) else [0, 2]
    tensors, whole, wild, d = [], [], c.chance(0.3) and name != "c64", 0
    while d < len(shape) and (not tensors or c.chance(0.75)):
        if c.chance(0.2) and not wild:
            covered = c.integer(1, len(shape) - d)
            sizes = shape[d : d + covered]
            # The count must be what the other indices broadcast with.
            mask = torch.zeros(sizes, dtype=torch.bool).reshape(-1)
            count = min(common[-1] if common else 1, mask.numel())
            if count != (common[-1] if common else 1):
                count = 1
            mask[torch.from_numpy(np.asarray(c.rng.permutation(mask.numel())[:count], dtype=np.int64))] = True
            tensors.append(c.lay_out(mask.reshape(sizes)))
            whole.append(0)
            d += covered
            continue
        if c.chance(0.3) and (tensors or d + 1 < len(shape)):
            whole.append(1)
        else:
            n = shape[d]
            t = torch.from_numpy(np.asarray(c.rng.integers(-n, n, size=c.broadcastable(common))))
            if wild and t.numel() and c.chance(0.5):
                t.reshape(-1)[0] = c.pick([n, -n - 1, 2**31 - 1, -(2**31)])
            tensors.append(c.lay_out(t.to(index_dtype(c))))
            whole.append(0)
        d += 1
    kept = iter(tensors)
    places = tuple(slice(None) if w else (lambda t: t if t.dtype == torch.bool else t.long())(next(kept)) for w in whole)
    # Out of range: taken from, or stored into, rows that are added for it.
    dims, d = [], 0
    for p in places:
        dims.append(d)
        d += p.dim() if isinstance(p, torch.Tensor) and p.dtype == torch.bool else 1
    padded, inside = x.clone(), list(places)
    for at, p in zip(dims, places):
        if isinstance(p, torch.Tensor) and p.dtype != torch.bool:
            extra = list(padded.shape)
            extra[at] = 1
            padded = torch.cat([padded, torch.full(extra, math.nan if name in FLOATS + ["c64"] else 0, dtype=x.dtype)], at)
    for k, (at, p) in enumerate(zip(dims, places)):
        if isinstance(p, torch.Tensor) and p.dtype != torch.bool:
            n = shape[at]
            inside[k] = torch.where((p < -n) | (p >= n), n, torch.where(p < 0, p + n, p))
        elif isinstance(p, torch.Tensor):
            grown = torch.zeros([padded.shape[at + i] for i in range(p.dim())], dtype=torch.bool)
            grown[tuple(slice(0, n) for n in p.shape)] = p
            inside[k] = grown
    # Tensor.__getitem__ would take an index of rank 0 as a number, whose dimension is gone before others are indexed.
    inside = [p if isinstance(p, torch.Tensor) else None for p in inside]
    want = torch.ops.aten.index(padded, inside)
    what = f"{name} {shape} by {[list(t.shape) for t in tensors]} {whole}: "
    c.same(c.call("index", x=x, indices=tensors, whole=whole)[0], want, INDEX + ", index", what)
    accumulate = c.chance(0.5) and name not in ("bool", "c64")
    values = c.tensor(c.broadcastable(list(want.shape)), name, "small")
    self = c.tensor(shape, name, "small", expand=False)
    grown = torch.zeros(padded.shape, dtype=x.dtype)
    grown[tuple(slice(0, n) for n in shape)] = self
    wide = torch.float64 if name in FLOATS else x.dtype
    numbers = torch.ops.aten.index(torch.arange(padded.numel()).reshape(padded.shape), inside).reshape(-1)
    flat, all_values = grown.reshape(-1).to(wide), values.expand(want.shape).reshape(-1).to(wide)
    if accumulate:
        flat = flat.index_put((numbers,), all_values, accumulate=True)
    else:
        # Which value holds where indices are repeated PyTorch leaves open: the last one, in order.
        for place, value in zip(numbers.tolist(), all_values):
            flat[place] = value
    stored = flat.reshape(grown.shape)[tuple(slice(0, n) for n in shape)].to(x.dtype)
    got = c.call("index_put", self=self, indices=tensors, whole=whole, values=values, accumulate=accumulate)[0]
    c.same(got, stored, INDEX + ", index_put", ("accumulated " if accumulate else "stored ") + what, zero_signs=False)
    returned = c.call("index_put", back=["self"], self=self, indices=tensors, whole=whole, values=values, accumulate=accumulate, in_place=True).back["self"]
    c.same(returned, stored, INDEX + ", index_put_", "in place " + what, zero_signs=False)
