# SPDX-License-Identifier: Apache-2.0
"""2:4 matrices."""

import math

import numpy as np
import torch

from common import DTYPES, EPS, FLOATS, NAMES, case, compute_name
from linalg import ACTIVATIONS, added, epilogue, product
from tensors import unchanged

SPARSE = "clutch/ops/sparse24.hpp"
KINDS = ["f32", "f64", "f16", "bf16", "f8e4m3fn", "f8e5m2", "i8"]


def dtype_of(c, kinds=KINDS):
    return c.pick([n for n in kinds if c.traits["fp64"] or n != "f64"])


def numbers(t):
    return t.double().numpy() if t.dtype.itemsize > 1 or not t.dtype.is_floating_point else t.float().double().numpy()


def keep_quads(v):
    """Of each four along a row the two of largest magnitude; of equal ones the first, NaN before all."""
    m, k = v.shape
    keep = np.zeros(v.shape, dtype=bool)
    key = np.where(np.isnan(v), np.inf, np.abs(v))
    for g in range(0, k, 4):
        part = key[:, g : g + 4]
        nan = np.isnan(v[:, g : g + 4])
        for i in range(m):
            order = sorted(range(part.shape[1]), key=lambda j: (not nan[i, j], -part[i, j], j))
            keep[i, [g + j for j in order[:2]]] = True
    return keep


def keep_tiles(v, rule):
    """PyTorch's Python reference, tile by tile; edges as if followed by zeros that are not there."""
    m, k = v.shape
    keep = np.zeros(v.shape, dtype=bool)
    for r in range(0, m, 4):
        for g in range(0, k, 4):
            tile = v[r : r + 4, g : g + 4]
            rows, columns = tile.shape
            if rule == "causal1122":
                taken = [0] * 4
                for i in range(rows):
                    left = [1, 1, 2, 2][i]
                    order = sorted(range(columns), key=lambda j: (not np.isnan(tile[i, j]), -tile[i, j] if not np.isnan(tile[i, j]) else 0, j))
                    for j in order:
                        if left and taken[j] < 2:
                            keep[r + i, g + j] = True
                            taken[j] += 1
                            left -= 1
                continue
            value = np.abs(tile) if rule == "tile_magnitudes" else tile
            places = sorted(((i, j) for i in range(rows) for j in range(columns)),
                            key=lambda p: (not np.isnan(value[p]), -value[p] if not np.isnan(value[p]) else 0, p[0] * 4 + p[1]))
            in_row, in_column = [0] * 4, [0] * 4
            for i, j in places:
                if in_row[i] < 2 and in_column[j] < 2:
                    keep[r + i, g + j] = True
                    in_row[i] += 1
                    in_column[j] += 1
    return keep


def zeros_where(w, keep):
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[w.element_size()]
    return torch.where(keep, w.contiguous().view(bits), torch.zeros([], dtype=bits)).view(w.dtype)


@case(80, covers=["prune_2_4", "mask_2_4", "apply_mask", "is_2_4", "require_2_4"], sharp=True)
def pruning(c):
    name = dtype_of(c)
    m, k = c.pick([0, 1, 3, 4, 8, 17]), c.pick([0, 1, 3, 4, 8, 13, 32, 50])
    w = c.tensor([m, k], name, c.pick(["normal", "small", "any"]) if name != "i8" else "any")
    rule = c.pick(["groups", "tile_values", "tile_magnitudes", "causal1122"])
    v = numbers(w)
    keep = torch.from_numpy(keep_quads(v) if rule == "groups" else keep_tiles(v, rule))
    c.same(c.call("mask_2_4", w=w, rule=rule)[0], keep, SPARSE + ", PruneRule", f"mask by {rule} of {name}: ")
    pruned = c.call("prune_2_4", w=w, rule=rule)[0]
    c.same(pruned, zeros_where(w, keep), SPARSE + ", prune_2_4: numbers keep their bits", f"{rule} of {name}: ")
    mask = c.tensor([m, k], "bool")
    c.same(c.call("apply_mask", w=w, mask=mask)[0], zeros_where(w, mask), SPARSE + ", apply_mask", f"{name}: ")
    nonzero = torch.from_numpy(np.pad(v != 0, ((0, 0), (0, -k % 4)))).reshape(m, -(-k // 4), 4).sum(-1)
    fine = bool((nonzero <= 2).all())
    c.same(c.call("is_2_4", w=w)[0].reshape([]), torch.tensor(fine), SPARSE + ", is_2_4", f"{name}: ")
    if fine:
        c.call("require_2_4", w=w)
    else:
        c.refused("invalid_argument", "require_2_4", SPARSE, w=w)
    c.same(c.call("is_2_4", w=pruned)[0].reshape([]), torch.tensor(True), SPARSE + ", is_2_4", "what was pruned: ")


@case(20, covers=["to_bitmask", "from_bitmask"], sharp=True)
def bitmasks(c):
    m, k = 8 * c.integer(1, 5), 8 * c.integer(1, 6)
    mask = c.tensor([m, k], "bool", expand=False)
    tiles = mask.reshape(m // 8, 2, 4, k // 8, 2, 4).permute(0, 3, 1, 4, 2, 5).reshape(m // 8, k // 8, 4, 16)
    weights = 2 ** torch.arange(8)
    want = torch.stack([(tiles[..., :8] * weights).sum(-1), (tiles[..., 8:] * weights).sum(-1)], dim=-1).reshape(m // 8, k // 8, 8).to(torch.uint8)
    got = c.call("to_bitmask", mask=mask)[0]
    c.same(got, want, SPARSE + ", to_bitmask: four tiles of 4 x 4, two bytes each", "bits: ")
    c.same(c.call("from_bitmask", bits=want)[0], mask.contiguous(), SPARSE + ", from_bitmask", "mask: ")


def two_of_four(c, m, k, name, kind="normal"):
    """A 2:4 matrix, some quads of which have fewer than two numbers."""
    w = c.values([m, k], name, kind)
    keep = torch.from_numpy(keep_quads(np.asarray(c.rng.standard_normal([m, k]))))
    if c.chance(0.5):
        keep = keep & torch.from_numpy(np.asarray(c.rng.random([m, k]) < 0.8))
    return c.lay_out(zeros_where(w, keep))


PLACES = {0b0000: 0xE, 0b0001: 0xE, 0b0010: 0xE}


def nibble(mask):
    """PyTorch's metadata of a quad by which of its four numbers are not zero: places of the two kept."""
    kept = [j for j in range(4) if mask[j]]
    if len(kept) == 2:
        return kept[0] | kept[1] << 2
    m = [bool(x) for x in mask]
    # As sparse_semi_structured_from_dense_cutlass counts them.
    e0 = m[0] and m[1]
    e1 = not m[0] and m[1]
    e2 = not m[0] and not m[1]
    bit0, bit1, bit2 = e1, e2, e0 or e2 or m[3]
    bit3 = e1 or not m[1]
    return (int(bit0) | int(bit1) << 1) | (int(bit2) | int(bit3) << 1) << 2


@case(50, covers=["compress", "decompress"], sharp=True)
def compressing(c):
    name = dtype_of(c)
    m, k = c.pick([0, 1, 3, 8, 17]), c.pick([0, 1, 4, 6, 8, 32, 50, 64])
    w = two_of_four(c, m, k, name)
    got = c.call("compress", w=w)
    quads = -(-k // 4)
    c.same(got[2].reshape([]), torch.tensor(-1, dtype=torch.int32), SPARSE + ", info", f"{name}: ")
    c.alike(got[1], [m, -(-quads // 2)], torch.uint8, SPARSE + ", metadata")
    c.alike(got[0], [m, 2 * quads], DTYPES[name], SPARSE + ", values")
    padded = np.pad(numbers(w), ((0, 0), (0, -k % 4))).reshape(m, quads, 4)
    want = np.zeros([m, quads + quads % 2], dtype=np.int64)
    for i in range(m):
        for g in range(quads):
            want[i, g] = nibble(padded[i, g] != 0)
    meta = got[1].long()
    nibbles = torch.stack([meta & 15, meta >> 4], dim=-1).reshape(m, quads + quads % 2)[:, :quads]
    c.same(nibbles, torch.from_numpy(want[:, :quads]), SPARSE + ", metadata: the places that PyTorch takes", f"{name}: ")
    places = torch.stack([nibbles & 3, nibbles >> 2], dim=-1)
    values = torch.from_numpy(padded).gather(2, places)
    stored = numbers(got[0]).reshape(m, quads, 2)
    c.true(bool((torch.from_numpy(stored) == values).all()), "values are not those at the places", SPARSE + ", values")
    back = c.call("decompress", w=w)
    c.same(back[0], w.contiguous(), SPARSE + ", decompress", f"{name}: ", zero_signs=False)
    c.same(back[2], w.contiguous(), SPARSE + ", from values and metadata", f"{name}: ", zero_signs=False)
    mask = torch.zeros([m, quads * 4], dtype=torch.bool)
    mask.view(m, quads, 4).scatter_(2, places, True)
    c.same(back[1], mask[:, :k], SPARSE + ", mask_of", f"{name}: ")
    dense = c.tensor([m, k], name, "normal", expand=False)
    bad = numbers(dense) != 0
    counts = np.pad(bad, ((0, 0), (0, -k % 4))).reshape(-1, 4).sum(-1)
    first = int(np.flatnonzero(counts > 2)[0]) if (counts > 2).any() else -1
    c.same(c.call("compress", w=dense)[2].reshape([]), torch.tensor(first, dtype=torch.int32), SPARSE + ", info: the first quad that had more than two", f"{name}: ")


@case(16, covers=["to_cutlass", "from_cutlass"], sharp=True)
def cutlass(c):
    from torch.sparse._semi_structured_conversions import sparse_semi_structured_from_dense_cutlass

    name = c.pick(["f16", "bf16", "i8"])
    m, k = 32 * c.integer(1, 3), 64 * c.integer(1, 3)
    w = two_of_four(c, m, k, name)
    got = c.call("to_cutlass", w=w)
    values, metadata = sparse_semi_structured_from_dense_cutlass(w.contiguous())
    c.same(got[0], values.contiguous(), SPARSE + ", CutlassLayout as PyTorch's", f"values of {name}: ", zero_signs=False)
    c.same(got[1].reshape(metadata.shape), metadata.contiguous(), SPARSE + ", CutlassLayout as PyTorch's", f"metadata of {name}: ")
    c.same(c.call("from_cutlass", values=values.contiguous(), metadata=metadata.contiguous())[0], w.contiguous(), SPARSE + ", from_cutlass", f"{name}: ", zero_signs=False)


@case(80, covers=["sparse_matmul"], sharp=True)
def sparse_products(c):
    name = dtype_of(c)
    m, k, n = c.pick([0, 1, 3, 16, 33]), c.pick([0, 1, 4, 7, 16, 32, 64, 100]), c.pick([0, 1, 2, 8, 17, 40])
    if name == "f64":
        m, k, n = min(m, 16), min(k, 32), min(n, 17)
    transposed = c.chance(0.5)
    w = two_of_four(c, m, k, name, "small" if name == "i8" else "normal")
    other = c.pick(["i8", "u8"]) if name == "i8" else c.pick(["f8e4m3fn", "f8e5m2"]) if name.startswith("f8") else name
    batch = c.pick([[], [], [2]])
    b = c.tensor(batch + ([n, k] if transposed else [k, n]), other, "normal" if name != "i8" else "any")
    if name == "i8":
        x, y = w.long().numpy(), b.long().numpy()
        want = torch.from_numpy(np.array(y @ x.T if transposed else x @ y)).to(torch.int32)
        alpha = c.pick([1.0, 1.0, 3.0, -2.0])
        got = c.call("sparse_matmul", w=w, b=b, transposed=transposed, alpha=alpha)[0]
        return c.same(got, want * int(alpha), SPARSE + ", matmul", f"{name}, {other}, transposed {transposed}, alpha {alpha}: ")
    compute = compute_name(name)
    up = (lambda t: t.float()) if name.startswith("f8") else (lambda t: t)
    s = product(up(b), up(w).mT, compute) if transposed else product(up(w), up(b), compute)
    result = DTYPES["f32" if name.startswith("f8") else name]
    source = SPARSE + ", matmul: the bits of linalg::matmul of decompress(w)"
    alpha = c.pick([1.0, 1.0, -0.5, 0.3])
    s = s * torch.tensor(alpha, dtype=torch.float64).to(s.dtype)
    if c.chance(0.35) and not name.startswith("f8"):
        which = c.pick(["bias_relu", "residual"])
        inputs = [c.tensor([s.shape[-1]] if i == 0 else list(s.shape), name, "normal") for i in range(1 if which == "bias_relu" else 2)]
        want = epilogue(which, s, inputs, compute).to(result)
        if c.chance(0.4):
            out = c.tensor(list(s.shape), name, "normal", expand=False)
            got = c.call("sparse_matmul", back=["out"], w=w, b=b, out=out, transposed=transposed, epilogue=which, inputs=inputs, alpha=alpha).back["out"]
            unchanged(c, out, got, SPARSE)
        else:
            got = c.call("sparse_matmul", w=w, b=b, transposed=transposed, epilogue=which, inputs=inputs, alpha=alpha)[0]
        return c.same(got, want, source, f"{which} of {name}, transposed {transposed}, alpha {alpha}: ", zero_signs=False)
    what = f"{name}, transposed {transposed}, alpha {alpha}"
    if c.chance(0.3):
        beta = c.pick([0.0, 1.0, -0.5, 0.3])
        out = c.tensor(list(s.shape), NAMES[result], "normal", expand=False)
        want = added(beta, out, s, compute)
        got = c.call("sparse_matmul", back=["out"], w=w, b=b, out=out, transposed=transposed, alpha=alpha, beta=beta).back["out"]
        unchanged(c, out, got, SPARSE)
        return c.same(got, want.to(result), source, f"{what}, beta {beta}: ", zero_signs=False)
    dtype = c.pick([n for n in FLOATS if c.traits["fp64"] or n != "f64"]) if c.chance(0.3) else None
    got = c.call("sparse_matmul", w=w, b=b, transposed=transposed, alpha=alpha, **({"dtype": dtype} if dtype else {}))[0]
    c.same(got, s.to(DTYPES[dtype] if dtype else result), source, f"{what} to {dtype}: ", zero_signs=False)


@case(12, covers=[])
def products_of_what_is_not_2_4(c):
    name = c.pick(["f32", "f16", "bf16"])
    w = torch.ones([5, 8], dtype=DTYPES[name])
    b = c.tensor([8, 6], name, "normal")
    got = c.call("sparse_matmul", w=w, b=b)[0]
    c.same(got, torch.full([5, 6], math.nan, dtype=w.dtype), SPARSE + ", CompressOptions: NaN throughout", f"{name}: ")
    fine = c.call("sparse_matmul", w=w, b=b, strict=0)[0]
    kept = torch.zeros([5, 8], dtype=torch.float64)
    kept[:, [0, 1, 4, 5]] = 1
    c.near(fine, kept @ b.double(), 10 * EPS["f32"] * (kept @ b.double().abs()), SPARSE + ", CompressOptions: of four the first ones", f"{name}: ")
    whole = torch.ones([5, 8], dtype=torch.int8)
    got = c.call("sparse_matmul", w=whole, b=c.tensor([8, 6], "i8"))[0]
    c.same(got, torch.full([5, 6], -(2**31), dtype=torch.int32), SPARSE + ", CompressOptions: the least i32", "i8: ")


@case(30, covers=["sparse_scaled_matmul"], sharp=True)
def sparse_scaled_products(c):
    from common import fma32

    name = c.pick(["f8e4m3fn", "f8e5m2"])
    m, k, n = c.pick([0, 1, 5, 33]), c.pick([0, 4, 16, 50]), c.pick([0, 1, 8, 17])
    transposed = c.chance(0.5)
    w = two_of_four(c, m, k, name)
    b = c.tensor([n, k] if transposed else [k, n], c.pick(["f8e4m3fn", "f8e5m2"]), "normal")
    s = product(b.float(), w.float().mT, "f32") if transposed else product(w.float(), b.float(), "f32")
    rows = c.chance(0.5)
    if transposed:
        scale_b, scale_w = (c.tensor([n, 1], "f32", "positive", expand=False), c.tensor([1, m], "f32", "positive", expand=False)) if rows else (c.values([1], "f32", "positive"), c.values([1], "f32", "positive"))
    else:
        scale_w, scale_b = (c.tensor([m, 1], "f32", "positive", expand=False), c.tensor([1, n], "f32", "positive", expand=False)) if rows else (c.values([1], "f32", "positive"), c.values([1], "f32", "positive"))
    bias = c.tensor([s.shape[-1]], "f32", "normal") if c.chance(0.5) else None
    dtype = c.pick(["f32", "f16", "bf16"])
    scale = scale_w * scale_b
    want = torch.from_numpy(np.array(fma32(s.numpy(), scale.expand(s.shape).numpy(), bias.expand(s.shape).numpy() if bias is not None else np.float32(0))))
    got = c.call("sparse_scaled_matmul", w=w, b=b, scale_w=scale_w, scale_b=scale_b, bias=bias, dtype=dtype, transposed=transposed)[0]
    c.same(got, want.to(DTYPES[dtype]), SPARSE + ", scaled_matmul as linalg::scaled_matmul", f"{name} to {dtype}, transposed {transposed}: ", zero_signs=False)


@case(40, covers=["sparse_linear", "sparse_linear_backward"])
def sparse_layers(c):
    name = dtype_of(c, ["f32", "f64", "f16", "bf16"])
    eps = EPS[compute_name(name)]
    outputs, features, rows = c.pick([1, 4, 16, 33]), c.pick([0, 4, 8, 16, 50]), c.pick([0, 1, 7, 16])
    w = two_of_four(c, outputs, features, name)
    tiles = c.chance(0.4)
    if tiles:
        dense = c.values([outputs, features], name, "normal")
        w = zeros_where(dense, torch.from_numpy(keep_tiles(numbers(dense), "tile_magnitudes")))
    x = c.tensor([rows, features], name, "normal")
    bias = c.tensor([outputs], name, "normal") if c.chance(0.6) else None
    activation = c.pick(["none", "relu", "gelu", "silu"])
    a, d = x.double().clone().requires_grad_(), w.double().clone().requires_grad_()
    b = bias.double().clone().requires_grad_() if bias is not None else None
    y = ACTIVATIONS[activation](torch.nn.functional.linear(a, d, b))
    size = torch.nn.functional.linear(a.detach().abs(), d.detach().abs(), b.detach().abs() if b is not None else None)
    tolerance = ((features + 3) * 1.2 + 16) * eps * size
    got = c.call("sparse_linear", x=x, w=w, bias=bias, activation=activation)[0]
    c.near(got, y.detach(), tolerance, SPARSE + ", linear", f"{activation} of {name}: ")
    grad = c.tensor(list(y.shape), name, "normal")
    y.backward(grad.double())
    masked = c.chance(0.5)
    got = c.call("sparse_linear_backward", grad=grad, x=x, w=w, bias=bias, activation=activation, masked=masked, with_transposed=tiles)
    g = 1.2 * grad.double().abs()
    middle = EPS[name] if name in ("f16", "bf16") and activation != "none" else 0.0
    kink = g * 0
    if activation == "relu":
        kink = g * (torch.nn.functional.linear(x.double(), w.double(), bias.double() if bias is not None else None).abs() <= tolerance)
    c.near(got[0], a.grad, (outputs + 30) * (eps + middle) * (g @ d.detach().abs()) + kink @ d.detach().abs(), SPARSE + ", linear_backward", f"gradient of x, {name}, {activation}: ")
    want, bound = d.grad, (rows + 30) * (eps + middle) * (g.T @ a.detach().abs()) + kink.T @ a.detach().abs()
    if masked:
        kept = c.call("decompress", w=w)[1]
        want, bound = want * kept, bound * kept
    c.near(got[1], want, bound, SPARSE + ", LinearBackwardOptions::masked", f"gradient of w, {name}, {activation}, masked {masked}: ")
    if b is not None:
        c.near(got[2], b.grad, (rows + 60) * (eps + middle) * g.sum(0) + kink.sum(0), SPARSE + ", linear_backward", f"gradient of bias, {name}: ")
