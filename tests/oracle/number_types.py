# SPDX-License-Identifier: Apache-2.0
"""Unsigned integers of 16 to 64 bits beside NumPy's, and complex numbers beside PyTorch's in double."""

import numpy as np
import torch

from common import DTYPES, NAMES, UNSIGNED, case

TRACED = {"u16": np.int32, "u32": np.int64, "u64": np.uint64}
DTYPE = "clutch/dtype.hpp, u16, u32 and u64"
MAP = "clutch/ops/map.hpp, Dtypes"
COMPLEX = "clutch/complex.hpp"


def array(c, shape, name):
    info = np.iinfo(UNSIGNED[name])
    edges = np.array([0, 1, info.max, info.max - 1, info.max // 2, info.max // 2 + 1], dtype=np.uint64)
    wide = c.rng.integers(0, info.max, size=shape, endpoint=True, dtype=np.uint64) if c.chance(0.5) else c.rng.integers(0, 9, size=shape, dtype=np.uint64)
    return np.where(c.rng.random(shape) < 0.2, c.rng.choice(edges, size=shape), wide).astype(UNSIGNED[name])


def tensor(c, x):
    return c.lay_out(torch.from_numpy(np.array(x)))


@case(120, covers=[])
def unsigned_arithmetic(c):
    """By the type that the dtype is traced in, which wraps, and stored modulo the dtype's range."""
    name = c.pick(list(UNSIGNED))
    kind, traced = UNSIGNED[name], TRACED[name]
    shape = c.shape(elements=500)
    a, b = array(c, shape, name), array(c, shape, name)
    x, y = tensor(c, a), tensor(c, b)
    va, vb = a.astype(traced), b.astype(traced)
    with np.errstate(all="ignore"):
        divisor = np.where(vb == 0, np.ones_like(vb), vb)
        want = {
            "add": va + vb, "sub": va - vb, "mul": va * vb, "minimum": np.minimum(va, vb), "maximum": np.maximum(va, vb), "bitwise_and": va & vb, "bitwise_xor": va ^ vb,
            "floor_divide": np.where(vb == 0, np.zeros_like(va), va // divisor), "remainder": np.where(vb == 0, np.zeros_like(va), va % divisor),
            "lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b, "gt": a > b, "ge": a >= b,
        }
        which = c.pick(list(want))
        expected = want[which]
    expected = expected if expected.dtype == bool else expected.astype(kind)
    c.same(c.call(which, a=x, b=y)[0], torch.from_numpy(np.asarray(expected)), MAP, f"{which} of {name}: ")
    if a.size:
        total = np.zeros((), dtype=np.int64)
        with np.errstate(all="ignore"):
            total = a.astype(np.int64).sum(dtype=np.int64)
        c.same(c.call("sum", x=x)[0], torch.tensor(int(total), dtype=torch.int64), "clutch/ops/reduce.hpp: integers accumulate in i64, which wraps", name + ": ")
        for op, best in (("amin", a.min()), ("amax", a.max())):
            c.same(c.call(op, x=x)[0], torch.from_numpy(np.array(best)), "clutch/ops/reduce.hpp, amin and amax", name + ": ")


@case(120, covers=[])
def unsigned_casts(c):
    """Between all dtypes that NumPy has, where NumPy's answer is defined; floats out of range saturate."""
    name = c.pick(list(UNSIGNED))
    a = array(c, c.shape(elements=300), name)
    other = c.pick(["f64", "f32", "f16", "i8", "u8", "i16", "i32", "i64", "bool", "u16", "u32", "u64"])
    if other == "f64" and not c.traits["fp64"]:
        return
    of_other = {**UNSIGNED, "f64": np.float64, "f32": np.float32, "f16": np.float16, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
                "bool": np.bool_}[other]
    with np.errstate(all="ignore"):
        if other == "f16":  # NumPy goes by way of f64, which rounds twice from 2^53 on; all of those overflow
            want = a.astype(np.float64).astype(np.float16)
        else:
            want = a.astype(of_other)
    c.same(c.call("cast", x=tensor(c, a), dtype=other)[0], torch.from_numpy(np.asarray(want)), DTYPE, f"{name} to {other}: ")
    if other in ("f64", "f32", "f16"):
        top = int(np.iinfo(UNSIGNED[name]).max)
        values = c.values(c.shape(elements=300), other)
        exact = [0 if v != v or v <= 0 else min(int(v) if v != float("inf") else top, top) for v in values.double().reshape(-1).tolist()]
        want = torch.from_numpy(np.array(exact, dtype=np.uint64).astype(UNSIGNED[name]).reshape(values.shape))
        c.same(c.call("cast", x=c.lay_out(values), dtype=name)[0], want, "clutch/ops/copy.hpp: floats to integers saturate", f"{other} to {name}: ")
    else:
        values = torch.from_numpy(c.rng.integers(-2**63, 2**63 - 1, size=c.shape(elements=300), dtype=np.int64)).to(DTYPES[other]) if other != "bool" else c.values([40], "bool")
        want = torch.from_numpy(np.asarray(values.numpy().astype(UNSIGNED[name])))
        c.same(c.call("cast", x=c.lay_out(values), dtype=name)[0], want, DTYPE, f"{other} to {name}: ")


@case(40, covers=[])
def unsigned_order(c):
    name = c.pick(list(UNSIGNED))
    a = array(c, [c.integer(1, 3), c.pick([1, 5, 300, 3000])], name)
    descending = c.chance(0.5)
    reply = c.call("sort", x=tensor(c, a), dim=1, descending=descending)
    keys = a.max() - a if descending else a
    order = np.argsort(keys, axis=1, kind="stable")
    c.same(reply[0], torch.from_numpy(np.take_along_axis(a, order, 1)), "clutch/ops/sort.hpp", name + ": ")
    c.same(reply[1], torch.from_numpy(order.astype(np.int64)), "clutch/ops/sort.hpp, stable", name + ": ")


@case(80, covers=["real", "imag", "view_as_real", "view_as_complex", "complex", "conj", "map_complex", "map_complex_out"])
def complex_numbers(c):
    name = c.pick(["c64", "c128"] if c.traits["fp64"] else ["c64"])
    part = "f32" if name == "c64" else "f64"
    eps = float(torch.finfo(DTYPES[part]).eps)
    shape = c.shape(elements=300)
    x, y = c.tensor(shape, name, "moderate"), c.tensor(c.broadcastable(shape), name, "moderate")
    c.same(c.call("real", x=x)[0], x.real.contiguous(), COMPLEX)
    c.same(c.call("imag", x=x)[0], x.imag.contiguous(), COMPLEX)
    c.same(c.call("view_as_real", x=x)[0], torch.view_as_real(x).contiguous(), COMPLEX)
    c.same(c.call("conj", x=x, form=c.pick(["new", "out", "in_place"]))[0], x.conj_physical().contiguous(), COMPLEX)
    pairs = c.values(shape + [2], part)
    if pairs.numel():  # PyTorch's of nothing refuses strides
        c.same(c.call("view_as_complex", x=pairs)[0], torch.view_as_complex(pairs), COMPLEX)
    re, im = c.tensor(shape, part), c.tensor(c.broadcastable(shape), part)
    c.same(c.call("complex", re=re, im=im)[0], torch.complex(*(t.contiguous() for t in torch.broadcast_tensors(re, im))), COMPLEX)
    p, q = (t.to(torch.complex128) for t in torch.broadcast_tensors(x, y))
    size_p, size_q = p.abs().numpy(), q.abs().numpy()
    with np.errstate(all="ignore"):
        exact, bound = {
            "add": ((p + q), eps * (size_p + size_q)), "sub": ((p - q), eps * (size_p + size_q)), "mul": (p * q, 3 * eps * size_p * size_q),
            "div": (p / q, 8 * eps * size_p / size_q),
        }[which := c.pick(["add", "sub", "mul", "div"])]
    if which != "div" or bool((q != 0).all()):
        c.within(c.call(which, a=x, b=y)[0], exact.numpy(), bound + 1e-300, COMPLEX, f"{which} of {name}: ", dtype=DTYPES[name])
    c.within(c.call("abs", x=x)[0], x.to(torch.complex128).abs().numpy(), 3 * eps * x.to(torch.complex128).abs().numpy(), COMPLEX + ", abs", dtype=DTYPES[part])
    c.same(c.call("eq", a=x, b=y)[0], x == y, COMPLEX)
    form = c.pick(["map_complex", "map_complex_out"])
    out = c.tensor(shape, name, "small", expand=False)
    got = c.call(form, x=x, y=y)[0] if form == "map_complex" else c.call(form, back=["out"], out=out, x=x, y=y).back["out"]
    c.within(got, (p * q.conj() + 1j).numpy(), 4 * eps * (size_p * size_q + 1), COMPLEX + ", map_complex", dtype=DTYPES[name])
    total = x.to(torch.complex128).sum().numpy()
    c.within(c.call("sum", x=x)[0], total, 60 * eps * float(x.to(torch.complex128).abs().sum()) + 1e-300, COMPLEX + ", sum", dtype=DTYPES[name])
    filled = c.tensor(shape, name, "small", expand=False)
    reply = c.call("fill_", back=["self"], self=filled, value=1.5, imaginary=-2.25)
    c.same(reply.back["self"], torch.full(shape, 1.5 - 2.25j, dtype=DTYPES[name]), COMPLEX + ", fill_")
