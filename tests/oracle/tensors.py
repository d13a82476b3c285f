# SPDX-License-Identifier: Apache-2.0
"""Views, copies, casts, constants, promotion."""

import math

import numpy as np
import torch

from common import DTYPES, FLOATS, INTEGERS, NAMES, PACKED_BITS, UNSIGNED, Packed, case

TENSOR = "clutch/tensor.hpp"
COPY = "clutch/ops/copy.hpp, Accuracy"
ALL = list(DTYPES)


@case(40, covers=["slice", "select", "transpose", "mT", "expand", "unsqueeze", "squeeze", "as_strided", "reshape", "contiguous", "clone", "identity"], sharp=True)
def views(c):
    name = c.pick(ALL if c.traits["fp64"] else [n for n in ALL if n not in ("f64", "c128")])
    x = c.tensor(c.shape(2, 4, empty=0.15), name)
    rank = x.dim()
    d = c.integer(0, rank - 1)
    signed = d - rank if c.chance(0.5) else d
    n = x.shape[d]

    def check(function, want, **arguments):
        got = c.call(function, x=x, **arguments)
        c.same(got[0], want, TENSOR, f"{function}: ")
        return got

    facts = check("identity", x).values
    want = {"rank": x.dim(), "numel": x.numel(), "nbytes": x.numel() * x.element_size(), "contiguous": x.is_contiguous()}
    for fact, value in want.items():
        c.true(facts[fact] == value, f"{fact} is {facts[fact]}, PyTorch's {value}", TENSOR)
    if x.numel() == 1:
        value = x.real if x.is_complex() else x.float() if x.element_size() == 1 else x
        c.same(torch.tensor(float(facts["item"]), dtype=torch.float64), torch.tensor(float(value), dtype=torch.float64), TENSOR + ", item", "item: ")
    begin, step = c.integer(0, n), c.integer(1, 4)
    end = c.integer(begin, n)
    check("slice", x[(slice(None),) * d + (slice(begin, end, step),)], dim=signed, begin=begin, end=end, step=step)
    if n:
        index = c.integer(-n, n - 1)
        check("select", x.select(d, index), dim=signed, index=index)
    e = c.integer(0, rank - 1)
    check("transpose", x.transpose(d, e), dim0=signed, dim1=e)
    check("mT", x.mT)
    check("unsqueeze", x.unsqueeze(d), dim=d)
    check("squeeze", x.squeeze(d), dim=signed)
    lead = [c.integer(0, 3)] if c.chance(0.6) else []
    target = lead + [c.integer(0, 4) if k == 1 and c.chance(0.5) else (-1 if c.chance(0.3) else k) for k in x.shape]
    check("expand", x.expand(target), sizes=target)
    flat = [math.prod(x.shape[: d + 1]), -1] if x.numel() else [0, 5]
    got = check("reshape", x.reshape(flat), sizes=flat)
    check("contiguous", x)
    got = check("clone", x)
    c.true(not got.values["view"] or not x.numel(), "the clone shares its source's storage", TENSOR)
    if x.numel():
        sizes = [c.integer(1, 3), c.integer(1, 3)]
        reach = (x.numel() - 1) // 4
        base = c.lay_out(x.reshape(-1), strides=False).contiguous()
        strides, offset = [c.integer(0, max(0, reach // 2)), c.integer(0, max(0, reach // 2))], c.integer(0, reach)
        if offset + sum((s - 1) * t for s, t in zip(sizes, strides)) < base.numel():
            got = c.call("as_strided", x=base, sizes=sizes, strides=strides, offset=offset)
            c.same(got[0], base.as_strided(sizes, strides, offset), TENSOR, "as_strided: ")


@case(20, covers=[])
def views_refused(c):
    """What leaves the storage or the dimensions is an Error, byte arithmetic that wraps included."""
    x = c.tensor([2, 3, 4], c.pick(["f32", "i64", "u8"]), expand=False)
    total = 10**6
    kind = c.integer(0, 6)
    if kind == 0:
        c.refused("invalid_shape", "as_strided", TENSOR, x=x, sizes=[5], strides=[c.pick([1 << 60, 1 << 61, 1 << 62, (1 << 63) - 1])], offset=0)
    elif kind == 1:
        c.refused("invalid_shape", "as_strided", TENSOR, x=x, sizes=[total], strides=[1], offset=0)
    elif kind == 2:
        c.refused("invalid_argument", "transpose", TENSOR, x=x, dim0=0, dim1=c.pick([3, -4, 100]))
    elif kind == 3:
        c.refused("invalid_argument", "select", TENSOR, x=x, dim=1, index=c.pick([3, -4, 2**40]))
    elif kind == 4:
        c.refused("invalid_shape", "reshape", TENSOR, x=x, sizes=c.pick([[5, 5], [-1, 7]]))
    elif kind == 5:
        c.refused("invalid_shape", "expand", TENSOR, x=x, sizes=[2, 3, 5])
    else:
        huge = 2**63 - 1
        got = c.call("slice", x=x, dim=2, begin=1, end=4, step=huge)
        c.same(got[0], x[..., 1:2], TENSOR, "slice by the largest step: ")


@case(60, covers=["cat", "stack", "split", "split_copy", "foreach_copy_"], sharp=True)
def joins(c):
    """cat, stack and split of several dtypes, with strides, empty tensors and legacy ones of shape (0,)."""
    source = "clutch/ops/cat.hpp"
    plain = [n for n in ALL if n not in PACKED_BITS and (c.traits["fp64"] or n not in ("f64", "c128"))]
    f8 = [n for n in plain if n.startswith("f8")]
    name = c.pick(plain)
    rank = c.integer(1, 4)
    dim = c.integer(0, rank - 1)
    signed = dim - rank if c.chance(0.5) else dim
    base = [c.integer(1, 6) for _ in range(rank)]
    mixed = c.chance(0.3) and name not in f8 and name not in UNSIGNED
    parts = []
    for _ in range(c.integer(1, 5)):
        shape = [c.integer(0, 7) if d == dim else n for d, n in enumerate(base)]
        parts.append(c.tensor(shape, c.pick([n for n in plain if n not in f8 and n not in UNSIGNED]) if mixed else name))
    if c.chance(0.2):
        parts.insert(c.integer(0, len(parts)), c.tensor([0], name, strides=False))
    real = [p for p in parts if list(p.shape) != [0]] or parts
    want_dtype = parts[0].dtype
    for p in parts[1:]:
        want_dtype = torch.promote_types(want_dtype, p.dtype)
    want = torch.cat([p.to(want_dtype) if p.dtype != want_dtype else p for p in real], dim if real is not parts or rank == 1 or len(real[0].shape) > dim else 0)
    if not (want_dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64) and any(p.dtype.is_floating_point for p in parts)):
        c.same(c.call("cat", tensors=parts, dim=signed)[0], want, source + ", cat", f"{[str(p.dtype) for p in parts]} along {dim}: ")
    equal = [c.tensor(base, name) for _ in range(c.integer(1, 5))]
    at = c.integer(-rank - 1, rank)
    c.same(c.call("stack", tensors=equal, dim=at)[0], torch.stack(equal, at), source + ", stack", f"{name} at {at}: ")
    x = c.tensor(base, name)
    size = c.integer(1, 8)
    for i, (mine, theirs) in enumerate(zip(c.call("split", x=x, size=size, dim=signed), torch.split(x, size, dim), strict=True)):
        c.same(mine, theirs, source + ", split", f"part {i}: ")
    cut = sorted(c.integer(0, base[dim]) for _ in range(2))
    sizes = [cut[0], cut[1] - cut[0], base[dim] - cut[1]]
    for i, (mine, theirs) in enumerate(zip(c.call("split_copy", x=x, sizes=sizes, dim=signed), torch.split(x, sizes, dim), strict=True)):
        c.same(mine, theirs, source + ", split_copy", f"part {i} of {sizes}: ")
    targets = [c.tensor(e.shape, name, expand=False) for e in equal]
    back = c.call("foreach_copy_", back=[f"destinations.{i}" for i in range(len(equal))], destinations=targets, sources=equal).back
    for i, e in enumerate(equal):
        c.same(back[f"destinations.{i}"], e, source + ", foreach_copy_", f"{name}: ")


@case(20, covers=["write"], sharp=True)
def writes(c):
    """Tensor::write into tensors of any strides."""
    name = c.pick(ALL if c.traits["fp64"] else [n for n in ALL if n not in ("f64", "c128")])
    x = c.tensor(c.shape(0, 4), name, expand=False)
    given = c.tensor(x.shape, name, strides=False)
    c.same(c.call("write", back=["x"], x=x, **{"from": given}).back["x"], given, TENSOR + ", write", f"{name}: ")


@case(30, covers=["promote_types", "result_type", "broadcast_shapes"])
def promotion(c):
    source = "clutch/dtype.hpp and clutch/tensor.hpp, PyTorch's rules"
    wide = [n for n in ALL if not n.startswith("f8")]
    a, b = c.pick(wide), c.pick(wide)
    try:
        want = torch.promote_types(DTYPES[a], DTYPES[b])
    except RuntimeError:
        want = None
        c.refused("invalid_dtype", "promote_types", source, a=a, b=b)
    if want in NAMES:
        c.true(c.call("promote_types", a=a, b=b).values["dtype"] == NAMES[want], f"promote_types({a}, {b}) is not {want}", source)
    if c.traits["fp64"]:
        # Unsigned ones promote with floats alone.
        signed = [n for n in wide if n not in UNSIGNED]
        tensors = [torch.zeros([] if c.chance(0.4) else [2], dtype=DTYPES[c.pick(signed)]) for _ in range(c.integer(1, 4))]
        # PyTorch's rule over several: by dimensioned tensors first, then by rank-0 ones of a higher kind.
        want = tensors[0]
        dims = [t for t in tensors if t.dim()]
        zero = [t for t in tensors if not t.dim()]
        d = None
        for t in dims:
            d = t.dtype if d is None else torch.promote_types(d, t.dtype)
        z = None
        for t in zero:
            z = t.dtype if z is None else torch.promote_types(z, t.dtype)
        if d is None or z is None:
            want = d or z
        else:
            want = torch.result_type(torch.zeros(1, dtype=d), torch.zeros([], dtype=z))
        if want in NAMES:
            got = c.call("result_type", tensors=tensors).values["dtype"]
            c.true(got == NAMES[want], f"result_type of {[(NAMES[t.dtype], t.dim()) for t in tensors]} is {got}, not {want}", source)
    shape = c.shape(0, 5)
    shapes = [c.broadcastable(shape) for _ in range(3)]
    got = c.call("broadcast_shapes", count=3, **{f"shape{i}": s for i, s in enumerate(shapes)}).values["sizes"]
    c.true(got == list(torch.broadcast_shapes(*shapes)), f"broadcast of {shapes} is {got}", source)


def e8m0_reference(x):
    """Powers of two with the nearest magnitude, ties up; the sign is dropped."""
    v = np.abs(x.double().numpy())
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(v)
        code = exponent - 1 + 127 + (mantissa >= 0.75)
    code = np.where(v == 0, 0, np.clip(code, 0, 255))
    # As PyTorch: what is a subnormal f32 and more than 2^-127 goes up.
    code = np.where((v > 2.0**-127) & (v < 2.0**-126), 1, code)
    code = np.where(np.isfinite(v), code, 255)
    return torch.from_numpy(code.astype(np.uint8)).view(torch.float8_e8m0fnu)


def cast_reference(x, name, overflow="nonfinite"):
    """copy_'s rules."""
    dtype = DTYPES[name]
    if x.dtype == dtype:
        return x
    if x.is_complex() and name not in ("c64", "c128", "bool"):
        x = x.real
    if name == "bool":
        return (x.float() if x.dtype.itemsize == 1 and x.dtype.is_floating_point else x) != 0
    if name in INTEGERS and (x.dtype.is_floating_point):
        v = x.double()
        info = torch.iinfo(dtype)
        t = torch.nan_to_num(v.trunc(), nan=0.0, posinf=math.inf, neginf=-math.inf)
        inside = (t >= info.min) & (t <= float(info.max)) & (t < 2.0**63)
        exact = torch.where(inside, t, 0).to(torch.int64)
        exact = torch.where(t > info.max, info.max, exact) if name != "i64" else torch.where(t >= 2.0**63, info.max, exact)
        return torch.where(t < info.min, info.min, exact).to(dtype)
    if name in UNSIGNED and x.dtype.is_floating_point:
        t, most = np.nan_to_num(np.trunc(x.double().numpy()), nan=0.0), int(torch.iinfo(dtype).max)
        exact = np.where((t > 0) & (t < most), t, 0).astype(np.uint64)
        return torch.from_numpy(np.asarray(np.where(t >= most, np.uint64(most), exact))).to(dtype)
    if name in INTEGERS or name in UNSIGNED:
        return x.to(torch.int64).to(dtype)
    if name == "f8e8m0fnu":
        return e8m0_reference(x)
    if name in ("f16", "bf16", "f8e4m3fn", "f8e5m2", "f32"):
        return round_once(x, name, overflow)
    if x.dtype.itemsize == 1 and x.dtype.is_floating_point:
        x = x.float()
    return x.to(dtype)


def round_once(x, name, overflow="nonfinite"):
    """Nearest even from f64 or i64, once."""
    if x.dtype == torch.int64 and name == "f32":
        # NumPy's is one rounding, as the processor's instruction.
        return torch.from_numpy(np.asarray(x.numpy().astype(np.float32)))
    if x.dtype == torch.int64:
        # To odd in f64, so that the second rounding is right: 64 bits into 53 and a sticky one.
        v = x.numpy()
        f = np.asarray(v.astype(np.float64))
        with np.errstate(all="ignore"):
            back = np.where(np.abs(f) >= 2.0**63, 0, f).astype(np.int64)
        inexact = (np.abs(f) < 2.0**63) & (back != v)
        bits = f.view(np.int64).copy()
        away = np.where((np.sign(v - back) > 0) == (f > 0), 1, -1)
        bits = np.where(inexact & (bits & 1 == 0), bits + away, bits)
        d = torch.from_numpy(np.array(bits).view(np.float64))
    else:
        d = (x.float() if x.dtype.itemsize == 1 else x).double()
    digits, least, largest = {"f32": (24, -126, 3.4028234663852886e38), "f16": (11, -14, 65504.0), "bf16": (8, -126, 3.3895313892515355e38), "f8e4m3fn": (4, -6, 448.0),
                              "f8e5m2": (3, -14, 57344.0)}[name]
    v = d.numpy()
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.where(np.isfinite(v) & (v != 0), np.frexp(np.where(np.isfinite(v), v, 1))[1] - 1, least), least)
        quantum = np.ldexp(1.0, exponent - digits + 1)
        r = np.where(np.isfinite(v), np.rint(v / quantum) * quantum, v)
        past = np.abs(r) > largest
        if overflow == "saturate" and name.startswith("f8"):
            r = np.where(past, np.copysign(largest, r), r)
        else:
            r = np.where(past, math.nan if name == "f8e4m3fn" else np.copysign(np.inf, r), r)
    return torch.from_numpy(np.array(r)).to(DTYPES[name])


def castable(c, also=UNSIGNED):
    return c.pick([n for n in ALL if (c.traits["fp64"] or n not in ("f64", "c128")) and (n not in UNSIGNED or n in also)])


@case(150, covers=["cast", "to"], sharp=True)
def casts(c):
    a, b = castable(c, ()), castable(c)  # of unsigned ones: unsigned_casts
    x = c.tensor(c.shape(), a)
    overflow = c.pick(["nonfinite", "saturate"])
    want = cast_reference(x, b, overflow)
    c.same(c.call("cast", x=x, dtype=b, overflow=overflow)[0], want, COPY, f"{a} to {b}: ")
    c.same(c.call("to", x=x, dtype=b, overflow=overflow)[0], want, TENSOR, f"{a} to {b}: ")


@case(30, covers=[], sharp=True)
def casts_of_every_code(c):
    """All codes of the formats of up to 16 bits, and values between those of the small ones."""
    a = c.pick(["f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e8m0fnu", "i8", "u8", "i16"])
    b = castable(c)
    if DTYPES[a].itemsize == 2:
        x = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16)
    else:
        x = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    x = x.view(DTYPES[a])
    if not c.traits["denormals"] and a in ("f16", "bf16"):
        x = x[~((x.abs() < torch.finfo(x.dtype).tiny) & (x != 0))]
    c.same(c.call("cast", x=x, dtype=b)[0], cast_reference(x, b), COPY, f"{a} to {b}: ")


@case(60, covers=["copy_"], sharp=True)
def copies(c):
    a, b = castable(c, ()), castable(c)
    destination = c.tensor(c.shape(0, 4), b, expand=False)
    source = c.tensor(c.broadcastable(list(destination.shape)), a, expand=False)
    got = c.call("copy_", back=["destination"], destination=destination, source=source)
    want = cast_reference(source, b).expand(destination.shape)
    c.same(got.back["destination"], want.contiguous(), COPY, f"{a} to {b}: ")
    unchanged(c, destination, got.back["destination"], COPY)


def unchanged(c, before, after, source):
    """What lies between a view's elements stays as it was."""
    mark = torch.zeros(before.untyped_storage().nbytes() // before.element_size(), dtype=torch.bool)
    if before.numel():
        mark.as_strided(before.shape, before.stride(), before.storage_offset()).fill_(True)
    b = torch.empty(0, dtype=before.dtype).set_(before.untyped_storage())
    a = torch.empty(0, dtype=after.dtype).set_(after.untyped_storage())
    c.same(a[~mark] if a.element_size() > 1 or a.dtype in (torch.uint8, torch.int8, torch.bool) else a.view(torch.uint8)[~mark],
           b[~mark] if b.element_size() > 1 or b.dtype in (torch.uint8, torch.int8, torch.bool) else b.view(torch.uint8)[~mark], source, "between the elements: ")


@case(20, covers=["encode_small_float", "decode_small_float"], sharp=True)
def small_floats(c):
    source = "clutch/dtype.hpp, encode_small_float and decode_small_float"
    if not c.traits["fp64"]:
        return c.true(True, "", source)
    name = c.pick(["f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e8m0fnu"])
    overflow = c.pick(["nonfinite", "saturate"])
    x = c.values([500], "f64")
    if c.chance(0.6):
        x = c.values([500], "f64", "normal") * 10.0 ** c.integer(-5, 5)
    codes = c.call("encode_small_float", x=x, dtype=name, overflow=overflow)[0]
    narrow = {1: torch.uint8, 2: torch.int16}[DTYPES[name].itemsize]
    c.same(codes.to(narrow).view(DTYPES[name]), cast_reference(x, name, overflow), source, f"{name}: ")
    every = torch.arange(256 if DTYPES[name].itemsize == 1 else 65536, dtype=torch.int32)
    got = c.call("decode_small_float", x=every, dtype=name)[0]
    c.same(got, every.to(narrow).view(DTYPES[name]).to(torch.float64) if DTYPES[name].itemsize == 2 else every.to(narrow).view(DTYPES[name]).float().double(), source)


@case(12, covers=[], sharp=True)
def packed_dtypes(c):
    """Packed tensors go through whole: clone, copy, text."""
    name = c.pick(list(PACKED_BITS))
    n = 8 * c.integer(0, 40)
    data = c.rng.integers(0, 255, size=n * PACKED_BITS[name] // 8, endpoint=True, dtype=np.uint8).tobytes()
    x = Packed(name, [n], data)
    for function in ("clone", "contiguous", "identity", "to"):
        got = c.call(function, x=x, **({"dtype": name} if function == "to" else {}))[0]
        c.alike(got, [n], name, COPY)
        c.true(got.data == data, f"{function} of {name} changes bytes", COPY)
    c.refused("invalid_dtype", "cast", COPY, x=x, dtype="f32")


@case(30, covers=["fill_", "full", "zeros", "empty"], sharp=True)
def constants(c):
    source = "clutch/ops/fill.hpp, fill_: copy_'s rules"
    name = castable(c)
    shape = c.shape()
    value = c.pick([0.0, -0.0, 1.0, -1.5, 3.7, 1e10, -1e10, 1e300, math.inf, -math.inf, math.nan, float(c.rng.standard_normal()), 2.0**63, 65519.999999, 448.1])
    if not c.traits["fp64"] and name == "f64":
        return
    want = cast_reference(torch.full(shape, value, dtype=torch.float64), name)
    c.same(c.call("full", sizes=shape, value=value, dtype=name)[0], want, source, f"full of {value} in {name}: ")
    x = c.tensor(shape, name, expand=False)
    got = c.call("fill_", back=["self"], self=x, value=value)
    c.same(got.back["self"], want, source, f"fill_ of {value} in {name}: ")
    unchanged(c, x, got.back["self"], source)
    c.same(c.call("zeros", sizes=shape, dtype=name)[0], cast_reference(torch.zeros(shape, dtype=torch.float64), name), TENSOR, "zeros: ")
    c.true(c.call("empty", sizes=shape, dtype=name).values["sizes"] == shape, "empty has another shape", TENSOR)


@case(30, covers=["arange", "arange_"], sharp=True)
def counting(c):
    from common import fma

    source = "clutch/ops/fill.hpp, arange_; clutch/tensor.hpp, arange"
    name = c.pick([n for n in FLOATS + INTEGERS if c.traits["fp64"] or n != "f64"])
    start, step = c.pick([0.0, 1.0, -3.0, 0.1, 7.9]), c.pick([1.0, 2.0, -1.0, 0.3, -2.5, 1e-3])
    if name in INTEGERS and abs(step) < 1:
        step = 1.0
    if name == "u8":
        start, step = abs(start), abs(step)
    n = c.pick([0, 1, 5, 64, 1000, 3001])

    def want(n):
        if name in INTEGERS:
            return (torch.arange(n, dtype=torch.int64) * int(step) + int(start)).to(DTYPES[name])
        compute = "f64" if name == "f64" else "f32"
        i = torch.arange(n, dtype=torch.float64)
        rounded = np.float64 if compute == "f64" else np.float32
        return fma(i, float(rounded(step)), float(rounded(start)), compute).to(DTYPES[name])

    x = c.tensor([n], name, expand=False)
    got = c.call("arange_", back=["self"], self=x, start=start, step=step)
    c.same(got.back["self"], want(n), source)
    unchanged(c, x, got.back["self"], source)
    if name in INTEGERS:
        end, count = int(start) + int(step) * n, n
    else:
        end = start + step * n * 1.000001
        count = math.ceil((end - start) / step)
    c.same(c.call("arange", start=start, end=float(end), step=step, dtype=name)[0], want(count), source)
