# SPDX-License-Identifier: Apache-2.0
"""What all cases share: the server's other end, random tensors, exact fma, and the checks.

A case is a function of a Case: it draws inputs from it, calls functions of the library, and compares what they give with PyTorch's or SciPy's results on the
CPU, within the bound that a public header states; each check names that header. Cases are written from include/clutch alone.
"""

import ctypes
import json
import math
import os
import subprocess
import threading
import zlib

import numpy as np
import torch

DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
    "f8e8m0fnu": torch.float8_e8m0fnu, "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool,
    "c64": torch.complex64, "c128": torch.complex128, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
PACKED_BITS = {"f6e2m3": 6, "f6e3m2": 6, "f4e2m1": 4}
FLOATS = ["f64", "f32", "f16", "bf16"]
INTEGERS = ["i8", "u8", "i16", "i32", "i64"]
UNSIGNED = {"u16": np.uint16, "u32": np.uint32, "u64": np.uint64}  # which PyTorch promotes with floats alone
EPS = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}  # half a unit in the last place of 1
DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
LEAST_EXPONENT = {"f64": -1022, "f32": -126, "f16": -14, "bf16": -126}


def name_of(t):
    return t.dtype if isinstance(t, Packed) else NAMES[t.dtype]


def compute_name(name):
    """The dtype that floats of this one are computed in."""
    return "f64" if name == "f64" else "f32"


class Packed:
    """A contiguous tensor of a dtype whose elements share bytes."""

    def __init__(self, dtype, sizes, data):
        self.dtype, self.shape, self.data = dtype, tuple(sizes), data


class Refusal(Exception):
    """An Error of the library."""

    def __init__(self, code, op, message):
        super().__init__(f"{op}: {message} [{code}]")
        self.code, self.op, self.message = code, op, message


class Difference(Exception):
    pass


class Died(Exception):
    """The server ended or did not answer."""


class Reply:
    def __init__(self, results, strides, back, values):
        self.results, self.strides, self.back, self.values = results, strides, back, values

    def __getitem__(self, i):
        return self.results[i]


def bytes_of(t):
    """The whole storage of a tensor."""
    storage = torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())
    return storage.numpy().tobytes()


def from_bytes(data, name, sizes):
    if name in PACKED_BITS:
        return Packed(name, sizes, bytes(data))
    if len(data) == 0:
        return torch.empty(sizes, dtype=DTYPES[name])
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(DTYPES[name]).reshape(sizes)


def flat_bits(t):
    """The elements as integers."""
    t = t.contiguous()
    if t.is_complex():
        t = torch.view_as_real(t)
    if t.dtype == torch.bool:
        return t.reshape(-1).view(torch.uint8)
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]
    return t.reshape(-1).view(width)


class Server:
    """The process that calls the library. It is started again when it dies."""

    def __init__(self, program, plant="", timeout=600):
        self.program, self.plant, self.timeout, self.process = program, plant, timeout, None
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("oracle: the server does not start")
        self.greeting = json.loads(line)

    def read(self, count):
        data = self.process.stdout.read(count)
        if len(data) != count:
            raise Died(self.end())
        return data

    def end(self):
        status = self.process.wait()
        self.start()
        return f"the server died with status {status}"

    def call(self, function, back, expects_error, arguments):
        tensors, storages, places, plain = {}, [], {}, {}

        def add(name, value):
            if value is None:
                return
            if isinstance(value, Packed):
                tensors[name] = {"storage": len(storages), "dtype": value.dtype, "sizes": list(value.shape), "strides": [], "offset": 0}
                storages.append(value.data)
            elif isinstance(value, torch.Tensor):
                key = (value.untyped_storage().data_ptr(), value.dtype) if value.untyped_storage().nbytes() else id(value)
                if key not in places:
                    places[key] = len(storages)
                    storages.append(bytes_of(value))
                tensors[name] = {"storage": places[key], "dtype": NAMES[value.dtype], "sizes": list(value.shape), "strides": list(value.stride()),
                                 "offset": value.storage_offset()}
            elif isinstance(value, (list, tuple)) and any(isinstance(v, (torch.Tensor, Packed)) for v in value):
                plain[name] = len(value)
                for i, v in enumerate(value):
                    add(f"{name}.{i}", v)
            elif isinstance(value, float) and not math.isfinite(value):
                plain[name] = repr(value)
            elif isinstance(value, (np.integer, np.floating)):
                plain[name] = value.item()
            else:
                plain[name] = list(value) if isinstance(value, torch.Size) else value

        for name, value in arguments.items():
            add(name, value)
        request = {"function": function, "arguments": plain, "storages": [len(s) for s in storages], "tensors": tensors, "back": list(back), "plant": self.plant,
                   "expects_error": expects_error}
        timer = threading.Timer(self.timeout, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            for s in storages:
                self.process.stdin.write(s)
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            if not line:
                raise Died(self.end())
            reply = json.loads(line)
            if not reply["ok"]:
                raise Refusal(reply["code"], reply["op"], reply["message"])
            results = [None if r is None else from_bytes(self.read(r["bytes"]), r["dtype"], r["sizes"]) for r in reply["results"]]
            strides = [None if r is None else r["strides"] for r in reply["results"]]
            returned = {}
            for name, count in zip(back, reply["back"]):
                spec, data = tensors[name], self.read(count)
                whole = from_bytes(data, spec["dtype"], [count // DTYPES[spec["dtype"]].itemsize])
                returned[name] = whole.as_strided(spec["sizes"], spec["strides"], spec["offset"])
            return Reply(results, strides, returned, reply["values"])
        except BrokenPipeError:
            raise Died(self.end()) from None
        finally:
            timer.cancel()


# Exact fused multiply-add.

_libm = ctypes.CDLL("libm.so.6")
_libm.fma.restype = ctypes.c_double
_libm.fma.argtypes = [ctypes.c_double] * 3


def fma32(a, b, c):
    """fma of f32 arrays: the product is exact in f64, and the sum is rounded to odd before it is rounded to f32."""
    a, b, c = (np.asarray(x, dtype=np.float32).astype(np.float64) for x in (a, b, c))
    with np.errstate(all="ignore"):
        p = a * b
        s = p + c
        bb = s - p
        error = (p - (s - bb)) + (c - bb)
        bits = s.view(np.int64) if s.ndim else np.asarray(s).view(np.int64)
        # An inexact sum whose last bit is even moves by one towards its error: the last bit becomes odd, which stands for "and a bit more".
        inexact = np.isfinite(s) & np.isfinite(error) & (error != 0) & (bits & 1 == 0)
        toward = np.where((error > 0) == (s > 0), 1, -1)
        odd = np.where(inexact, bits + toward, bits).view(np.float64)
        return odd.astype(np.float32)


def fma64(a, b, c):
    a, b, c = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (a, b, c)))
    return np.array([_libm.fma(x, y, z) for x, y, z in zip(a.ravel(), b.ravel(), c.ravel())], dtype=np.float64).reshape(a.shape)


def fma(a, b, c, name):
    """a b + c, rounded once to f32, or for "f64" to f64; of tensors or numbers."""
    f = fma64 if name == "f64" else fma32
    a, b, c = (x.double().numpy() if isinstance(x, torch.Tensor) else x for x in (a, b, c))
    return torch.from_numpy(np.array(f(a, b, c)))


def unit(x, name):
    """The unit in the last place of the format at |x|; x is f64 or wider."""
    x = np.abs(np.asarray(x))
    with np.errstate(all="ignore"):
        exponent = np.where(x > 0, np.frexp(np.where(np.isfinite(x), x, 1))[1] - 1, LEAST_EXPONENT[name])
    return np.ldexp(np.ones(x.shape, dtype=x.dtype if x.dtype == np.longdouble else np.float64),
                    np.maximum(exponent, LEAST_EXPONENT[name]) - DIGITS[name] + 1)


def longdouble(t):
    return t.double().numpy().astype(np.longdouble)


SPECIALS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, -math.inf, math.nan]


class Case:
    """One run of a case: its random numbers, its calls and its checks."""

    def __init__(self, server, seed, name, number):
        self.server, self.seed, self.name, self.number = server, seed, name, number
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
        self.traits = server.greeting
        self.calls = []
        self.checks = 0

    # Random choices.

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def integer(self, low, high):
        """low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def size(self, largest=64):
        return min(largest, self.pick([1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 257, 511, 1000, 2049]))

    def shape(self, low=0, high=4, elements=5000, empty=0.08):
        """Sizes of a random rank; the last one may be large."""
        rank = self.integer(low, high)
        sizes = []
        for d in range(rank):
            sizes.append(self.size(33 if d + 1 < rank else 2049))
        while math.prod(sizes) > elements:
            d = int(np.argmax(sizes))
            sizes[d] = max(1, sizes[d] // 2)
        if rank and self.chance(empty):
            sizes[self.integer(0, rank - 1)] = 0
        return sizes

    def floating(self, dtypes=FLOATS):
        return self.pick([d for d in dtypes if d != "f64" or self.traits["fp64"]])

    def integers(self):
        return self.pick(INTEGERS)

    # Random tensors. Each may have any strides, an offset, and expanded dimensions.

    def values(self, shape, name, kind="any"):
        """A contiguous tensor. Kinds of floats: normal (unit normal), unit (in [-1, 1]), positive, small (integers to 8), wide (any finite number), any (all of
        these, often with special values), moderate (normal times 10^-2 to 10^2)."""
        dtype, rng = DTYPES[name], self.rng
        shape = list(shape)
        if name == "bool":
            return torch.from_numpy(np.asarray(rng.random(shape) < 0.5))
        if not dtype.is_floating_point and not dtype.is_complex:
            info = torch.iinfo(dtype)
            low, high = (info.min, info.max) if kind in ("any", "wide") and self.chance(0.5) else (max(info.min, -9), 9)
            of = np.uint64 if name == "u64" else np.int64
            return torch.from_numpy(np.asarray(rng.integers(low, high, size=shape, endpoint=True, dtype=of))).to(dtype)
        if name in ("c64", "c128"):
            half = "f32" if name == "c64" else "f64"
            return torch.complex(self.values(shape, half, kind), self.values(shape, half, kind))
        if kind == "any":
            kind, special = self.pick(["normal", "wide", "small", "moderate"]), self.chance(0.5)
        else:
            special = False
        if kind == "wide":
            low, high = (-30, 30) if name.startswith("f8") else (LEAST_EXPONENT[name] - (DIGITS[name] if self.traits["denormals"] else 0), -LEAST_EXPONENT[name])
            x = np.ldexp(rng.uniform(-2, 2, size=shape), rng.integers(low, high, size=shape, endpoint=True).astype(np.int32))
            limit = torch.finfo(dtype).max
            x = np.clip(x, -limit, limit)
            if not self.traits["denormals"] and name in DIGITS:
                x = np.where(np.abs(x) < np.ldexp(1.0, LEAST_EXPONENT[name]), 0.0, x)
        elif kind == "small":
            x = rng.integers(-8, 8, size=shape, endpoint=True).astype(np.float64)
        elif kind == "unit":
            x = rng.uniform(-1, 1, size=shape)
        elif kind == "positive":
            x = rng.uniform(0.05, 2, size=shape)
        elif kind == "moderate":
            x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-2, 2)
        else:
            x = rng.standard_normal(shape)
        x = np.asarray(x)
        if special and x.size:
            specials = SPECIALS + [torch.finfo(dtype).max, torch.finfo(dtype).min, torch.finfo(dtype).tiny, -torch.finfo(dtype).tiny]
            if self.traits["denormals"]:
                specials += [torch.finfo(dtype).smallest_normal / 2, -torch.finfo(dtype).smallest_normal / 8]
            chosen = rng.random(x.shape) < 0.2
            x = np.where(chosen, rng.choice(np.array(specials), size=x.shape), x)
        return torch.from_numpy(np.array(x)).to(dtype)

    def lay_out(self, t, strides=True):
        """An equal tensor in a storage of its own, permuted, with gaps and an offset; what lies between is junk. Dimensions of stride 0 stay so."""
        if not strides or self.chance(0.35):
            return t.clone(memory_format=torch.contiguous_format) if not any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape)) else t
        expanded = [s == 0 and n > 1 for s, n in zip(t.stride(), t.shape)]
        order = [d for d in range(t.dim()) if not expanded[d]]
        if self.chance(0.6):
            order = [order[i] for i in self.rng.permutation(len(order))]
        new, extent = [0] * t.dim(), 1
        for d in reversed(order):
            new[d] = extent * (self.pick([1, 1, 1, 2, 3]) if self.chance(0.5) else 1)
            extent = new[d] * max(1, t.shape[d]) + self.pick([0, 0, 1])
        offset = self.pick([0, 0, 1, 3, 4, 7])
        storage = self.junk(offset + extent + self.pick([0, 1, 5]), t.dtype)
        view = storage.as_strided(t.shape, new, offset)
        reduced = view
        source = t
        for d, e in enumerate(expanded):
            if e:
                reduced, source = reduced.narrow(d, 0, 1), source.narrow(d, 0, 1)
        reduced.copy_(source)
        return view

    def junk(self, count, dtype):
        if dtype == torch.bool:
            return torch.ones(count, dtype=dtype)
        if dtype.is_floating_point or dtype.is_complex:
            return torch.full([count], math.nan, dtype=torch.float32 if dtype.itemsize == 1 else dtype).to(dtype)
        return torch.full([count], 77, dtype=dtype)

    def tensor(self, shape, name, kind="any", strides=True, expand=True):
        """Random values in a random layout."""
        shape = list(shape)
        if strides and expand and shape and self.chance(0.12):
            base = list(shape)
            d = self.integer(0, len(shape) - 1)
            if base[d] > 1:
                base[d] = 1
            return self.lay_out(self.values(base, name, kind).expand(shape))
        return self.lay_out(self.values(shape, name, kind), strides)

    def broadcastable(self, shape):
        """A shape that broadcasts to that one."""
        if self.chance(0.5):
            return list(shape)
        sizes = [1 if self.chance(0.35) else n for n in shape]
        return sizes[self.integer(0, len(sizes)):] if self.chance(0.3) else sizes

    # Calls.

    def call(self, function, /, back=(), **arguments):
        self.calls.append((function, arguments))
        return self.server.call(function, back, False, arguments)

    def refused(self, code, function, source, /, **arguments):
        """The call is an Error of that code."""
        self.checks += 1
        self.calls.append((function, arguments))
        try:
            self.server.call(function, (), True, arguments)
        except Refusal as refusal:
            if refusal.code == code:
                return
            self.fail(f"the error is {refusal}, the contract says {code}", source)
        self.fail(f"no error, the contract says {code}", source)

    # Checks.

    def fail(self, text, source):
        raise Difference(f"{text}\n  contract: {source}")

    def true(self, condition, text, source):
        self.checks += 1
        if not condition:
            self.fail(text, source)

    def alike(self, got, sizes, dtype, source, what=""):
        self.checks += 1
        if got is None:
            self.fail(f"{what}there is no result", source)
        if name_of(got) != (dtype if isinstance(dtype, str) else NAMES[dtype]) or list(got.shape) != list(sizes):
            self.fail(f"{what}result is {name_of(got)} {tuple(got.shape)}, wanted {dtype if isinstance(dtype, str) else NAMES[dtype]} {tuple(sizes)}", source)

    def same(self, got, want, source, what="", zero_signs=True):
        """Equal bits; NaN equals NaN."""
        self.alike(got, want.shape, want.dtype, source, what)
        g, w = flat_bits(got), flat_bits(want)
        equal = g == w
        if got.dtype.is_floating_point or got.dtype.is_complex:
            gf, wf = (torch.view_as_real(t).reshape(-1) if t.is_complex() else t.contiguous().reshape(-1) for t in (got, want))
            gf, wf = (t.float() if t.element_size() == 1 else t for t in (gf, wf))
            equal = equal | (gf.isnan() & wf.isnan())
            if not zero_signs:
                equal = equal | ((gf == 0) & (wf == 0))
            if not self.traits["denormals"] and NAMES[got.dtype] in LEAST_EXPONENT:
                equal = equal | ((wf.abs() < torch.finfo(wf.dtype).tiny) & (gf.abs() <= torch.finfo(wf.dtype).tiny))
        self.report(equal.numpy(), got, want, source, what)

    def within(self, got, exact, tolerance, source, what="", dtype=None):
        """|got - exact| <= tolerance, in f64 or wider; NaN equals NaN, and what rounds to infinity may be it."""
        exact = exact.numpy() if isinstance(exact, torch.Tensor) else np.asarray(exact)
        tolerance = tolerance.numpy() if isinstance(tolerance, torch.Tensor) else np.asarray(tolerance)
        self.alike(got, exact.shape, dtype or got.dtype, source, what)
        if np.iscomplexobj(exact) or got.is_complex():
            g = got.to(torch.complex128).numpy()
            with np.errstate(all="ignore"):
                equal = (np.abs(g - exact) <= tolerance) | (np.isnan(g) & np.isnan(exact)) | (g == exact)
            return self.report(equal.reshape(-1), got, exact, source, what)
        wide = np.longdouble if exact.dtype == np.longdouble else np.float64
        g, exact, tolerance = got.double().numpy().astype(wide), exact.astype(wide), np.broadcast_to(tolerance, exact.shape).astype(wide)
        name = NAMES[got.dtype]
        with np.errstate(all="ignore"):
            equal = (np.abs(g - exact) <= tolerance) | (np.isnan(g) & np.isnan(exact)) | (g == exact)
            if name in DIGITS:
                largest = float(torch.finfo(got.dtype).max)
                past = np.abs(exact) + tolerance >= largest * (1 + EPS[name] / 2)
                equal |= past & (np.abs(g) >= largest * (1 - EPS[name])) & (np.sign(g) == np.sign(exact))
                if not self.traits["denormals"]:
                    least = np.ldexp(1.0, LEAST_EXPONENT[name])
                    equal |= (np.abs(exact) < least) & (np.abs(g) <= least)
        self.report(equal.reshape(-1), got, exact, source, what, tolerance)

    def rounded(self, got, exact, ulps, source, what="", compute=None):
        """Within so many units of the compute type, then rounded once to the result's dtype."""
        name = NAMES[got.dtype]
        compute = compute or compute_name(name)
        exact = exact.numpy() if isinstance(exact, torch.Tensor) else np.asarray(exact)
        tolerance = ulps * unit(exact, compute)
        if name != compute:
            with np.errstate(all="ignore"):
                tolerance = tolerance + 0.5 * unit(np.abs(exact) + tolerance, name)
        self.within(got, exact, tolerance, source, what)

    def near(self, got, exact, tolerance, source, what=""):
        """Within the tolerance in the compute type, then rounded once to the result's dtype."""
        name = NAMES[got.dtype]
        exact = exact.numpy() if isinstance(exact, torch.Tensor) else np.asarray(exact)
        tolerance = tolerance.numpy() if isinstance(tolerance, torch.Tensor) else np.asarray(tolerance)
        if np.iscomplexobj(exact):
            return self.within(got, exact, tolerance, source, what)
        with np.errstate(all="ignore"):
            self.within(got, exact, tolerance + 0.5 * unit(np.abs(exact) + np.nan_to_num(tolerance), name), source, what)

    def report(self, equal, got, want, source, what, tolerance=None):
        self.checks += 1
        if equal.all():
            return
        wrong = np.flatnonzero(~equal)
        want = want.reshape(-1) if isinstance(want, torch.Tensor) else np.asarray(want).reshape(-1)
        flat = got.reshape(-1)
        lines = []
        for i in wrong[:4]:
            bound = "" if tolerance is None else f", bound {float(np.asarray(tolerance).reshape(-1)[i]):.3g}"
            lines.append(f"    element {i} {tuple(int(k) for k in np.unravel_index(i, got.shape)) if got.dim() else ()}: got {show(flat[i])}, "
                         f"wanted {show(want[i])}{bound}")
        self.fail(f"{what}{len(wrong)} of {equal.size} elements differ\n" + "\n".join(lines), source)


def show(x):
    x = x.item() if isinstance(x, torch.Tensor) else x
    return f"{x:.17g}" if isinstance(x, (float, np.floating)) else str(x)


def describe(value):
    if isinstance(value, Packed):
        return f"{value.dtype} {value.shape}"
    if isinstance(value, torch.Tensor):
        text = f"{NAMES[value.dtype]} {tuple(value.shape)}"
        if not value.is_contiguous() or value.storage_offset():
            text += f" strides {tuple(value.stride())} offset {value.storage_offset()}"
        return text
    if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
        return "[" + ", ".join(describe(v) if v is not None else "none" for v in value) + "]"
    return repr(value)


CASES = {}


def case(runs, *, covers=(), sharp=False):
    """Registers a case: how many times it runs, which functions of the server it covers, and whether it notices 3 units in the last place."""

    def add(function):
        if function.__name__ in CASES:
            raise ValueError(f"two cases are called {function.__name__}")
        CASES[function.__name__] = (function, runs, list(covers), sharp)
        return function

    return add
