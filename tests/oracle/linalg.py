# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues and products of matrices."""

import math

import numpy as np
import scipy.linalg
import torch

from common import DTYPES, EPS, FLOATS, NAMES, Refusal, case, compute_name, fma32, fma64, unit
from tensors import unchanged

EIGH = "clutch/ops/eigh.hpp"
MATMUL = "clutch/ops/matmul.hpp"
REAL = {"f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64", "f16": "f32", "bf16": "f32"}


def matrices(c, batch, n, name):
    """Symmetric or Hermitian ones in f64 or c128: random, of given spectra, with repeated eigenvalues, of low rank, diagonal, scaled."""
    complex_ = name.startswith("c")
    shape = list(batch) + [n, n]

    def normal():
        x = c.rng.standard_normal(shape)
        return x + 1j * c.rng.standard_normal(shape) if complex_ else x

    kind = c.integer(0, 6)
    if kind <= 1:
        a = normal()
        a = (a + np.conj(np.swapaxes(a, -1, -2))) / 2
    else:
        q = np.linalg.qr(normal())[0] if n and math.prod(shape) else normal()
        w = {2: c.rng.integers(-2, 3, size=list(batch) + [n]).astype(float), 3: np.where(c.rng.random(list(batch) + [n]) < 0.7, 0.0, 1.0),
             4: 10.0 ** c.rng.uniform(-8, 2, size=list(batch) + [n]), 5: np.ones(list(batch) + [n]), 6: c.rng.standard_normal(list(batch) + [n])}[kind]
        a = (q * w[..., None, :]) @ np.conj(np.swapaxes(q, -1, -2))
        if kind == 6:
            a = np.zeros_like(a)
            a[..., np.arange(n), np.arange(n)] = w
        a = (a + np.conj(np.swapaxes(a, -1, -2))) / 2
    scale = c.pick([1.0, 1.0, 1e-3, 1e6] if name in ("f16",) else [1.0, 1.0, 1e-12, 1e12, 1e-30 if name not in ("f64", "c128") else 1e-250, 1e18])
    if name == "f16":
        scale = 1.0
    return torch.from_numpy(np.array(a * scale)).to(DTYPES[name])


def frobenius(a):
    """Of each matrix, without under- or overflow."""
    if not a.numel():
        return torch.zeros(a.shape[:-2], dtype=torch.float64)
    top = a.abs().amax(dim=(-1, -2), keepdim=True).clamp(min=1e-300)
    return torch.linalg.matrix_norm(a / top) * top[..., 0, 0]


def whole(a, uplo):
    """The Hermitian matrix that the triangle stands for."""
    t = torch.tril(a, -1) if uplo == "lower" else torch.triu(a, 1)
    d = torch.diagonal(a, dim1=-2, dim2=-1)
    d = d.real.to(a.dtype) if a.is_complex() else d
    return t + t.mH + torch.diag_embed(d)


def spoil(c, a, uplo, name):
    """Junk in the triangle that is not read, and in the imaginary parts of the diagonal."""
    if a.shape[-1] < 2:
        return a
    other = torch.triu(torch.ones(a.shape[-2:], dtype=torch.bool), 1) if uplo == "lower" else torch.tril(torch.ones(a.shape[-2:], dtype=torch.bool), -1)
    return torch.where(other, torch.tensor(c.pick([math.nan, 1e3, math.inf]), dtype=a.dtype), a)


DRIVERS = ["automatic", "automatic", "closed", "jacobi_lanes", "jacobi_group", "qr_lanes", "qr_group", "device_wide", "jacobi_items", "qr_items", "host"]


@case(110, covers=["eigh", "eigvalsh", "require_converged"])
def eigenvalues(c):
    name = c.pick([n for n in REAL if c.traits["fp64"] or n not in ("f64", "c128")])
    real = REAL[name]
    n = c.pick([0, 1, 2, 2, 3, 4, 5, 7, 8, 13, 16, 17, 24, 32, 33, 48, 70])
    batch = c.pick([[], [1], [3], [2, 3], [17], [0]]) if n <= 16 else c.pick([[], [2]])
    uplo = c.pick(["lower", "upper"])
    a = matrices(c, batch, n, name)
    if c.chance(0.5):
        a = spoil(c, a, uplo, name)
    a = c.lay_out(a)
    driver = c.pick(DRIVERS)
    first = c.integer(0, n) if c.chance(0.25) else 0
    count = c.integer(0, n - first) if c.chance(0.25) else -1
    phase = c.pick(["free", "positive"])
    arguments = dict(a=a, uplo=uplo, driver=driver, first=first, count=count, phase=phase)
    try:
        with_vectors = c.chance(0.75)
        if with_vectors and name in ("f32", "f64", "c64", "c128") and c.chance(0.25):
            k = n - first if count < 0 else count
            w, v = c.tensor(batch + [k], real, "normal", expand=False), c.tensor(batch + [n, k], name, "normal", expand=False)
            info, sweeps = c.tensor(batch, "i32", expand=False), c.tensor(batch, "i32", expand=False)
            back = c.call("eigh", back=["w", "v", "info", "sweeps"], w=w, v=v, info=info, sweeps=sweeps, **arguments).back
            for before, now in ((w, "w"), (v, "v"), (info, "info")):
                unchanged(c, before, back[now], EIGH)
            w, v, info = back["w"], back["v"], back["info"]
        elif with_vectors:
            reply = c.call("eigh", **arguments)
            w, v, info = reply[0], reply[1], reply[2]
        elif c.chance(0.3):
            k = n - first if count < 0 else count
            stored = name if name in ("f16", "bf16") else real
            w, info, sweeps = c.tensor(batch + [k], stored, "normal", expand=False), c.tensor(batch, "i32", expand=False), c.tensor(batch, "i32", expand=False)
            back = c.call("eigvalsh", back=["w", "info", "sweeps"], w=w, info=info, sweeps=sweeps, **arguments).back
            w, v, info = back["w"], None, back["info"]
        else:
            reply = c.call("eigvalsh", **arguments)
            w, v, info = reply[0], None, reply[1]
    except Refusal as refusal:
        # A driver may refuse sizes and dtypes; the automatic one takes all.
        if driver != "automatic" and refusal.code == "not_supported":
            return c.true(True, "", EIGH)
        raise
    end = n if count < 0 else first + count
    h = whole(a.to(torch.complex128 if a.is_complex() else torch.float64), uplo)
    size = frobenius(h)
    eps = EPS[real] * 2  # |.| <= 30 n eps |a| with LAPACK's eps, the distance of 1 to the next number
    store = 0.0 if name not in ("f16", "bf16") else EPS[name]
    least = 2.0**-25 if name == "f16" else 0.0  # half of the distance of subnormal numbers, to which results are rounded
    c.alike(w, batch + [end - first], REAL[name] if name not in ("f16", "bf16") else w.dtype, EIGH + ", Dtypes")
    c.same(info, torch.zeros(batch, dtype=torch.int32), EIGH + ": info is 0 where a matrix converged", f"info of {name}, n {n}, {driver}: ")
    if not h.numel():
        return
    exact = torch.linalg.eigvalsh(h)[..., first:end]
    # LAPACK on f64 is no exact reference for f64; both are within their bounds.
    c.within(w, exact, (60 * n * eps + 2 * store) * size[..., None].expand(exact.shape) + least, EIGH + ", Accuracy", f"eigenvalues of {name}, n {n}, {driver}: ")
    c.true(bool((w.double()[..., 1:] >= w.double()[..., :-1]).all()), "eigenvalues do not ascend", EIGH)
    if v is None or end == first:
        return
    u, x = v.to(h.dtype), w.double()
    residual = torch.linalg.matrix_norm(h @ u - u * x[..., None, :].to(h.dtype)) / size.clamp(min=1e-320)
    identity = torch.linalg.matrix_norm(u.mH @ u - torch.eye(end - first, dtype=h.dtype))
    bound = 30 * n * eps + 4 * n * store
    c.within(residual, torch.zeros_like(residual), bound + n * least / size.clamp(min=1e-300), EIGH + ", Accuracy: |a v - v w| <= 30 n eps |a|", f"residual of {name}, n {n}, {driver}, in units of |a|: ")
    c.within(identity, torch.zeros_like(identity), bound, EIGH + ", Accuracy: |v^H v - 1| <= 30 n eps", f"orthogonality of {name}, n {n}, {driver}: ")
    if phase == "positive":
        largest = u.abs() >= u.abs().amax(dim=-2, keepdim=True) * (1 - 1.1e-4 - 2 * store)
        positive = (u.real > 0) & (u.imag.abs() <= 1e-3) if h.is_complex() else u > 0
        c.true(bool((largest & positive).any(dim=-2).all()), "the largest component is not positive", EIGH + ", EighPhase")


@case(25, covers=[])
def eigenvalues_of_bad_matrices(c):
    """NaN and Inf stay in their matrix."""
    name = c.pick([n for n in ("f32", "f64", "c64") if c.traits["fp64"] or n != "f64"])
    n, batch = c.pick([1, 2, 3, 8, 20]), 5
    a = matrices(c, [batch], n, name)
    good = a.clone()
    bad = c.integer(0, batch - 1)
    i = c.integer(0, n - 1)
    a[bad, i, c.integer(0, i)] = c.pick([math.nan, math.inf, -math.inf])
    reply = c.call("eigh", a=c.lay_out(a))
    want = torch.zeros(batch, dtype=torch.int32)
    want[bad] = -1
    c.same(reply[2], want, EIGH + ": -1: NaN or Inf stands in the triangle", f"info of {name}: ")
    c.true(bool(reply[0][bad].isnan().all()) and bool(reply[1][bad].isnan().all()), "results of the bad matrix are not NaN", EIGH)
    others = [k for k in range(batch) if k != bad]
    clean = c.call("eigh", a=good)
    c.same(reply[0][others], clean[0][others], EIGH + ": a matrix's bits do not depend on its neighbours", "eigenvalues of the others: ")
    c.same(reply[1][others], clean[1][others], EIGH + ": a matrix's bits do not depend on its neighbours", "eigenvectors of the others: ")
    c.refused("not_converged", "require_converged", EIGH, info=reply[2])
    c.call("require_converged", info=clean[2])
    one = c.call("eigh", a=good[others[0]])
    c.same(one[0], clean[0][others[0]], EIGH + ": nor on the batch's size", "alone: ")


@case(25, covers=[])
def eigenvalues_relative(c):
    name = c.pick([n for n in ("f32", "f64") if c.traits["fp64"] or n != "f64"])
    n = c.pick([2, 3, 5, 8, 16])
    q = np.linalg.qr(c.rng.standard_normal([n, n]))[0]
    b = (q * np.linspace(1, 3, n)) @ q.T
    s = 1 / np.sqrt(np.diag(b))
    b = b * s[:, None] * s[None, :]
    reach = 12 if name == "f32" else 100
    d = 10.0 ** c.rng.uniform(-reach, 0, size=n)
    a = torch.from_numpy(b * d[:, None] * d[None, :]).to(DTYPES[name])
    w = c.call("eigh", a=a, accuracy="relative")[0].double()
    import mpmath
    with mpmath.workdps(260):
        m = mpmath.matrix([[mpmath.mpf(float(a[i, j] if i >= j else a[j, i])) for j in range(n)] for i in range(n)])
        exact = torch.tensor([float(x) for x in mpmath.eigsy(m, eigvals_only=True)], dtype=torch.float64).sort().values
    condition = float(np.linalg.cond(b))
    tolerance = 30 * n * 2 * EPS[name] * condition * exact
    if not (a[range(n), range(n)].double() >= torch.finfo(DTYPES[name]).tiny * float(a.abs().max())).all():
        return c.true(True, "", EIGH)
    c.within(w, exact, tolerance, EIGH + ", EighAccuracy::relative: |w - exact| <= 30 n eps cond(b) w", f"{name}, n {n}: ")


@case(30, covers=["eigh_backward", "require_gauge"])
def eigenvalue_gradients(c):
    name = c.pick([n for n in ("f32", "f64", "c64", "c128") if c.traits["fp64"] or n not in ("f64", "c128")])
    n, batch = c.pick([1, 2, 3, 7, 16]), c.pick([[], [3], [2, 2]])
    wide = torch.complex128 if name.startswith("c") else torch.float64
    q = c.rng.standard_normal(batch + [n, n]) + (1j * c.rng.standard_normal(batch + [n, n]) if name.startswith("c") else 0)
    a = torch.from_numpy(np.array(q)).to(wide)
    a = (a + a.mH) / 2 + torch.diag_embed(torch.arange(n, dtype=torch.float64) * 2).to(wide)
    w, v = torch.linalg.eigh(a)
    w, v = w.to(DTYPES[REAL[name]]), v.to(DTYPES[name])
    gw = c.tensor(batch + [n], REAL[name], "normal") if c.chance(0.7) else None
    gv = c.tensor(batch + [n, n], name, "normal") if c.chance(0.8) else None
    broadening = c.pick([0.0, 0.0, 1e-3])
    got = c.call("eigh_backward", w=w, v=v, grad_w=gw, grad_v=gv, broadening=broadening)
    x, u = w.double(), v.to(wide)
    m = u.mH @ gv.to(wide) if gv is not None else torch.zeros(batch + [n, n], dtype=wide)
    distance = x[..., None, :] - x[..., :, None]
    if broadening:
        inverse = distance / (distance**2 + float(np.float32(broadening)) ** 2 if REAL[name] == "f32" else distance**2 + broadening**2)
    else:
        inverse = torch.where(torch.eye(n, dtype=torch.bool), 0.0, 1 / distance)
    core = (m - m.mH) / 2 * inverse.to(wide)
    core = torch.where(torch.eye(n, dtype=torch.bool), 0.0, core)
    if gw is not None:
        core = core + torch.diag_embed(gw.double()).to(wide)
    exact = u @ core @ u.mH
    closest = float(inverse.abs().max()) if n > 1 else 1.0
    scale = (1 + closest) ** 2 * (1 + float(x.abs().max())) * (1 + (float(m.abs().max()) if gv is not None else 0) + (float(gw.abs().max()) if gw is not None else 0)) * n
    c.within(got[0], exact, torch.full(exact.shape, 40 * n * EPS[REAL[name]] * scale, dtype=torch.float64), EIGH + ", eigh_backward", f"gradient of {name}: ")
    gauge = m.diagonal(dim1=-2, dim2=-1).imag.abs().amax(-1) if m.is_complex() else torch.zeros(batch, dtype=torch.float64)
    c.near(got[1], gauge, torch.full(gauge.shape, 40 * n * EPS[REAL[name]] * (1 + (float(m.abs().max()) if gv is not None else 0))), EIGH + ", Gauge", f"gauge of {name}: ")
    if name.startswith("c") and gv is not None and float(gauge.max()) > 0.02:
        c.refused("invalid_argument", "require_gauge", EIGH, gauge=got[1])
    else:
        c.call("require_gauge", gauge=torch.zeros(batch, dtype=DTYPES[REAL[name]]))


def chain(a, b, name):
    """The contract's chain of fma over k, in f32 or f64 (NumPy); batches broadcast."""
    f = fma64 if name == "f64" else fma32
    shape = np.broadcast_shapes(a.shape[:-1] + (1,), b.shape[:-2] + (1, b.shape[-1]))
    s = np.zeros(shape, dtype=np.float64 if name == "f64" else np.float32)
    for k in range(a.shape[-1]):
        s = f(a[..., :, k, None], b[..., None, k, :], s)
    return s


def operands(c, name_a, name_b, vectors=True, elements=6000):
    """Shapes of a and b whose batch dimensions broadcast."""
    big = math.inf
    while big > elements:
        m, n, k = c.pick([0, 1, 2, 5, 16, 17, 33]), c.pick([0, 1, 3, 8, 16, 31, 64, 65]), c.pick([0, 1, 2, 7, 16, 33, 64, 100])
        m = m if c.chance(0.9) else 1
        batch = c.pick([[], [], [1], [3], [2, 3]])
        big = m * n * k * math.prod(batch)
    one_a = c.broadcastable(batch) if batch else []
    one_b = c.broadcastable(batch) if batch else []
    kind = c.pick(["normal", "small", "normal", "any"]) if name_a in FLOATS else "any"
    if vectors and not batch and c.chance(0.15):
        which = c.pick(["a", "b", "both"])
        a = c.tensor([k] if which in ("a", "both") else [m, k], name_a, kind)
        b = c.tensor([k] if which in ("b", "both") else [k, n], name_b, kind)
        return a, b
    return c.tensor(one_a + [m, k], name_a, kind), c.tensor(one_b + [k, n], name_b, kind)


def product(a, b, compute):
    """The product's chains, with PyTorch's rule for vectors."""
    x, y = (t.double().numpy() if compute == "f64" else t.float().numpy() for t in (a, b))
    s = chain(x[None, :] if x.ndim == 1 else x, y[:, None] if y.ndim == 1 else y, compute)
    if x.ndim == 1:
        s = s[..., 0, :]
    if y.ndim == 1:
        s = s[..., 0]
    return torch.from_numpy(np.array(s))


def added(beta, out, scaled, compute):
    """fma(beta, out, scaled); beta 0 reads nothing."""
    if not beta:
        return scaled
    f = fma64 if compute == "f64" else fma32
    rounded = beta if compute == "f64" else float(np.float32(beta))
    return torch.from_numpy(np.array(f(rounded, out.double().numpy() if compute == "f64" else out.float().numpy(), scaled.numpy())))


@case(120, covers=["matmul"], sharp=True)
def products_of_matrices(c):
    name = c.floating()
    compute = compute_name(name)
    a, b = operands(c, name, name, elements=6000 if compute == "f32" else 3000)
    packed = b.dim() > 1 and c.chance(0.3)
    alpha = c.pick([1.0, 1.0, -0.5, 0.3])
    s = product(a, b, compute)
    rounded = alpha if compute == "f64" else float(np.float32(alpha))
    scaled = s * torch.tensor(rounded, dtype=s.dtype)
    into = a.dim() > 1 and b.dim() > 1 and c.chance(0.4)
    source = MATMUL + ", Determinism: one chain of fma in the order of k"
    if into:
        result = c.pick([name, name, "f32"]) if name in ("f16", "bf16") else name
        beta = c.pick([0.0, 1.0, -0.5, 0.3])
        out = c.tensor(list(s.shape), result, "normal", expand=False)
        want = added(beta, out, scaled, compute)
        got = c.call("matmul", back=["out"], a=a, b=b, out=out, alpha=alpha, beta=beta, packed=packed).back["out"]
        unchanged(c, out, got, MATMUL)
        return c.same(got, want.to(DTYPES[result]), source, f"{name} into {result}, alpha {alpha}, beta {beta}: ", zero_signs=False)
    dtype = c.pick([n for n in FLOATS if c.traits["fp64"] or n != "f64"]) if c.chance(0.3) else None
    got = c.call("matmul", a=a, b=b, alpha=alpha, packed=packed, **({"dtype": dtype} if dtype else {}))[0]
    c.same(got, scaled.to(DTYPES[dtype or name]), source, f"{name} to {dtype or name}, alpha {alpha}: ", zero_signs=False)


@case(50, covers=[], sharp=True)
def products_of_other_dtypes(c):
    kind = c.pick(["f8", "i8", "complex"])
    if kind == "f8":
        names = [c.pick(["f8e4m3fn", "f8e5m2"]) for _ in range(2)]
        a, b = operands(c, *names)
        got = c.call("matmul", a=a, b=b)[0]
        return c.same(got, product(a.float(), b.float(), "f32"), MATMUL + ", Dtypes: f8 in f32", f"{names}: ", zero_signs=False)
    if kind == "i8":
        names = [c.pick(["i8", "u8"]) for _ in range(2)]
        a, b = operands(c, *names)
        packed = b.dim() > 1 and c.chance(0.3)
        alpha = c.pick([1.0, 1.0, 3.0, -2.0])
        got = c.call("matmul", a=a, b=b, packed=packed, alpha=alpha)[0]
        want = torch.from_numpy(np.array(np.matmul(a.long().numpy(), b.long().numpy()))) * int(alpha)
        return c.same(got, want.to(torch.int32), MATMUL + ", integers are exact", f"{names}: ")
    name = c.pick([n for n in ("c64", "c128") if c.traits["fp64"] or n != "c128"])
    a, b = operands(c, name, name, elements=1500)
    got = c.call("matmul", a=a, b=b)[0]
    half = "f64" if name == "c128" else "f32"
    f = fma64 if half == "f64" else fma32
    x, y = a.numpy(), b.numpy()
    x, y = (x[None, :] if x.ndim == 1 else x), (y[:, None] if y.ndim == 1 else y)
    shape = np.broadcast_shapes(x.shape[:-1] + (1,), y.shape[:-2] + (1, y.shape[-1]))
    re = im = np.zeros(shape, dtype=np.float64 if half == "f64" else np.float32)
    for k in range(x.shape[-1]):
        p, q = x[..., :, k, None], y[..., None, k, :]
        re = f(p.imag, -q.imag, f(p.real, q.real, re))
        im = f(p.imag, q.real, f(p.real, q.imag, im))
    s = re + 1j * im if np.isfinite(re).all() and np.isfinite(im).all() else torch.complex(torch.from_numpy(np.array(re)), torch.from_numpy(np.array(im))).numpy()
    s = s[..., 0, :] if a.dim() == 1 else s
    s = s[..., 0] if b.dim() == 1 else s
    c.same(got, torch.from_numpy(np.array(s)).to(DTYPES[name]), MATMUL + ", Determinism: pairs of chains", f"{name}: ", zero_signs=False)


def epilogue(which, s, inputs, compute):
    """The epilogues of linalg_functions.cpp, one rounding each."""
    t = [x.to(s.dtype) for x in inputs]
    if which == "bias_relu":
        p = s + t[0]
        return torch.where(p <= 0, torch.zeros([], dtype=s.dtype), p)
    if which == "residual":
        return (s + t[0]) * 0.125 + t[1]
    i, j = torch.arange(s.shape[-2]).reshape(-1, 1), torch.arange(s.shape[-1])
    if which == "positions":
        return s + j.to(s.dtype) - i.to(s.dtype)
    return torch.where(i >= j, s, torch.zeros([], dtype=s.dtype))


@case(60, covers=[], sharp=True)
def products_with_epilogues(c):
    name = c.floating()
    compute = compute_name(name)
    a, b = operands(c, name, name, vectors=False, elements=4000 if compute == "f32" else 2000)
    which = c.pick(["bias_relu", "residual", "positions", "causal"])
    s = product(a, b, compute)
    if s.dim() > 2 and which in ("positions", "causal"):
        which = "bias_relu"
    count = {"bias_relu": 1, "residual": 2}.get(which, 0)
    inputs = [c.tensor([s.shape[-1]] if i == 0 else c.broadcastable(list(s.shape)), name, "normal") for i in range(count)]
    alpha = c.pick([1.0, 1.0, -0.5, 0.3])
    s = s * torch.tensor(alpha, dtype=torch.float64).to(s.dtype)
    arguments = dict(a=a, b=b, epilogue=which, inputs=inputs, packed=c.chance(0.3), alpha=alpha)
    source, what = MATMUL + ", epilogues of the unrounded product", f"{which} of {name}, alpha {alpha}"
    if c.chance(0.4):
        # f(alpha a b + beta out, inputs ...)
        out, beta = c.tensor(list(s.shape), name, "normal", expand=False), c.pick([0.0, 0.0, 1.0, -0.5])
        got = c.call("matmul", back=["out"], out=out, beta=beta, **arguments).back["out"]
        unchanged(c, out, got, MATMUL)
        return c.same(got, epilogue(which, added(beta, out, s, compute), inputs, compute).to(DTYPES[name]), source, f"{what}, beta {beta}: ", zero_signs=False)
    dtype = c.pick([n for n in FLOATS if c.traits["fp64"] or n != "f64"]) if c.chance(0.3) else None
    got = c.call("matmul", **arguments, **({"dtype": dtype} if dtype else {}))[0]
    c.same(got, epilogue(which, s, inputs, compute).to(DTYPES[dtype or name]), source, f"{what} to {dtype}: ", zero_signs=False)


ACTIVATIONS = {"none": lambda x: x, "relu": torch.relu, "gelu": torch.nn.functional.gelu, "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
               "silu": torch.nn.functional.silu}


@case(70, covers=["linear", "linear_backward", "matmul_backward"])
def layers(c):
    name = c.floating()
    compute = compute_name(name)
    eps = EPS[compute]
    features, outputs = c.pick([1, 7, 16, 33, 64]), c.pick([1, 5, 16, 40])
    batch = c.pick([[], [1], [9], [2, 17]])
    if c.chance(0.2):
        # No rows, no features, no outputs.
        features, outputs, batch = c.pick([(features, outputs, [0]), (features, outputs, [0, 3]), (features, outputs, [3, 0]), (0, outputs, batch), (features, 0, batch), (0, 0, batch)])
    x, weight = c.tensor(batch + [features], name, "normal"), c.tensor([outputs, features], name, "normal")
    bias = c.tensor([outputs], name, "normal") if c.chance(0.6) else None
    activation = c.pick(list(ACTIVATIONS))
    a, w = x.double().clone().requires_grad_(), weight.double().clone().requires_grad_()
    b = bias.double().clone().requires_grad_() if bias is not None else None
    y = ACTIVATIONS[activation](torch.nn.functional.linear(a, w, b))
    size = torch.nn.functional.linear(a.detach().abs(), w.detach().abs(), b.detach().abs() if b is not None else None)
    dtype = c.pick([n for n in FLOATS if c.traits["fp64"] or n != "f64"]) if c.chance(0.3) else name
    got = c.call("linear", x=x, weight=weight, bias=bias, activation=activation, packed=c.chance(0.3), **({"dtype": dtype} if dtype != name else {}))[0]
    c.alike(got, y.shape, dtype, MATMUL + ", LinearOptions::dtype")
    tolerance = ((features + 3) * 1.2 + 16) * eps * size
    c.near(got, y.detach(), tolerance, MATMUL + ", linear", f"linear of {name}, {activation}: ")
    grad = c.tensor(list(y.shape), name, "normal")
    y.backward(grad.double())
    got = c.call("linear_backward", grad=grad, x=x, weight=weight, bias=bias, activation=activation)
    g = grad.double().abs()
    # f16 and bf16: the derivative of the activation may be rounded to the gradient's dtype on its way.
    middle = EPS[name] if name in ("f16", "bf16") and activation != "none" else 0.0
    slope = 1.2 * g * (1 + (tolerance if activation != "none" else 0))
    rows = math.prod(batch)
    flat = lambda t: t.reshape(rows, t.shape[-1])
    kink = slope * 0
    if activation == "relu":
        # Next to the kink either side is right.
        near = torch.nn.functional.linear(x.double(), weight.double(), bias.double() if bias is not None else None).abs() <= tolerance
        kink = slope * near
    wx, ww = w.detach().abs(), a.detach().abs()
    c.near(got[0], a.grad, (outputs + 30) * (eps + middle) * (slope @ wx) + kink @ wx, MATMUL + ", linear_backward", f"gradient of x, {name}, {activation}: ")
    c.near(got[1], w.grad, (rows + 30) * (eps + middle) * (flat(slope).T @ flat(ww)) + flat(kink).T @ flat(ww), MATMUL + ", linear_backward", f"gradient of weight, {name}, {activation}: ")
    if b is not None:
        c.near(got[2], b.grad, (rows + 60) * (eps + middle) * flat(slope).sum(0) + flat(kink).sum(0), MATMUL + ", linear_backward", f"gradient of bias, {name}, {activation}: ")
    else:
        c.true(got[2] is None, "there is a gradient of a bias that is not there", MATMUL)
    p, q = operands(c, name, name, vectors=False, elements=3000)
    p, q = c.lay_out(c.values(p.shape, name, "normal")), c.lay_out(c.values(q.shape, name, "normal"))
    with_epilogue = c.chance(0.4)
    a, b = p.double().clone().requires_grad_(), q.double().clone().requires_grad_()
    y = a @ b
    inputs, extra = [], []
    if with_epilogue:
        inputs = [c.tensor([y.shape[-1]], name, "normal"), c.tensor(list(y.shape), name, "normal")]
        extra = [t.double().clone().requires_grad_() for t in inputs]
        y = (y + extra[0]) * 0.125 + extra[1]
    grad = c.tensor(list(y.shape), name, "normal")
    y.backward(grad.double())
    got = c.call("matmul_backward", grad=grad, a=p, b=q, **({"epilogue": "residual", "inputs": inputs} if with_epilogue else {}))
    g = grad.double().abs()
    middle = EPS[name] if name in ("f16", "bf16") else 0.0
    count = max(y.numel(), 1)

    def bound(t):
        return (y.shape[-1] + y.shape[-2] + math.prod(y.shape[:-2]) + 40) * (eps + middle) * t

    size_a, size_b = (g @ b.detach().abs().mT).sum_to_size(a.shape), (a.detach().abs().mT @ g).sum_to_size(b.shape)
    c.near(got[0], a.grad, bound(size_a), MATMUL + ", matmul_backward", f"gradient of a, {name}: ")
    c.near(got[1], b.grad, bound(size_b), MATMUL + ", matmul_backward", f"gradient of b, {name}: ")
    for i, t in enumerate(extra):
        c.near(got[2 + i], t.grad, bound(g.sum_to_size(t.shape)) + 60 * eps * g.sum_to_size(t.shape), MATMUL + ", matmul_backward", f"gradient of input {i}, {name}: ")


@case(40, covers=["scaled_matmul"], sharp=True)
def scaled_products(c):
    names = [c.pick(["f8e4m3fn", "f8e5m2"]) for _ in range(2)] if c.chance(0.8) else [c.pick(["f16", "bf16", "f32"])] * 2
    a, b = operands(c, *names, vectors=False)
    if names[0] in FLOATS:
        a, b = c.lay_out(c.values(a.shape, names[0], "normal")), c.lay_out(c.values(b.shape, names[1], "normal"))
    rows = c.chance(0.5)
    m, n = a.shape[-2], b.shape[-1]
    scale_a = c.tensor(list(a.shape[:-2]) + [m, 1] if rows else [1], "f32", "positive", expand=False)
    scale_b = c.tensor(list(b.shape[:-2]) + [1, n] if rows else [1], "f32", "positive", expand=False)
    s = product(a.float(), b.float(), "f32")
    bias = c.tensor([n], c.pick(["f32", "bf16"]), "normal") if c.chance(0.5) else None
    dtype = c.pick(["f32", "f16", "bf16"])
    scale = scale_a * scale_b
    want = torch.from_numpy(np.array(fma32(s.numpy(), scale.expand(s.shape).numpy(), bias.float().expand(s.shape).numpy() if bias is not None else np.float32(0))))
    got = c.call("scaled_matmul", a=a, b=b, scale_a=scale_a, scale_b=scale_b, bias=bias, dtype=dtype, packed=c.chance(0.3))[0]
    c.same(got, want.to(DTYPES[dtype]), MATMUL + ", scaled_matmul: fma(product, scale_a scale_b, bias), rounded once", f"{names} to {dtype}: ", zero_signs=False)


@case(40, covers=["quantized_matmul"], sharp=True)
def quantized_products(c):
    names = [c.pick(["i8", "u8"]) for _ in range(2)]
    a, b = operands(c, *names, vectors=False)
    m, n = a.shape[-2], b.shape[-1]
    rows = c.chance(0.4)
    shape_a, shape_b = ([m, 1] if rows else [1]), ([1, n] if rows else [1])
    scale_a, scale_b = c.tensor(shape_a, "f32", "positive", expand=False) if c.chance(0.8) else None, c.tensor(shape_b, "f32", "positive", expand=False) if c.chance(0.8) else None
    zero_a = c.tensor(shape_a, "i32", "small", expand=False) if c.chance(0.6) else None
    zero_b = c.tensor(shape_b, "i32", "small", expand=False) if c.chance(0.6) else None
    bias = c.tensor([n], "f32", "normal") if c.chance(0.5) else None
    x = np.matmul(a.long().numpy() - (zero_a.long().numpy() if zero_a is not None else 0), b.long().numpy() - (zero_b.long().numpy() if zero_b is not None else 0))
    scale = (scale_a.double() if scale_a is not None else torch.ones(1, dtype=torch.float64)) * (scale_b.double() if scale_b is not None else torch.ones(1, dtype=torch.float64))
    exact = torch.from_numpy(np.array(x)).double() * scale
    size = exact.abs() + (bias.double().abs() if bias is not None else 0)
    exact = exact + (bias.double() if bias is not None else 0)
    source = MATMUL + ", quantized_matmul"
    dtype = c.pick(["f32", "f16", "bf16", "i8", "u8"])
    arguments = dict(a=a, b=b, scale_a=scale_a, zero_a=zero_a, scale_b=scale_b, zero_b=zero_b, bias=bias, dtype=dtype)
    # r in f32: the product to f32, the scales' product, its product and sum.
    tolerance = 5 * EPS["f32"] * size
    if dtype in FLOATS:
        return c.near(c.call("quantized_matmul", **arguments)[0], exact, tolerance, source, f"{names} to {dtype}: ")
    scale_result = c.tensor([1], "f32", "positive", expand=False)
    zero_result = c.tensor([1], "i32", "small", expand=False)
    got = c.call("quantized_matmul", scale_result=scale_result, zero_result=zero_result, **arguments)[0]
    c.alike(got, exact.shape, dtype, source)
    info = torch.iinfo(DTYPES[dtype])
    low = ((exact - tolerance) / scale_result.double() * (1 - 2 * EPS["f32"] * torch.sign(exact))).round() + zero_result
    high = ((exact + tolerance) / scale_result.double() * (1 + 2 * EPS["f32"] * torch.sign(exact))).round() + zero_result
    fine = (got.double() >= torch.minimum(low, high).clamp(info.min, info.max)) & (got.double() <= torch.maximum(low, high).clamp(info.min, info.max))
    c.report(fine.reshape(-1).numpy(), got, ((exact / scale_result.double()).round() + zero_result).clamp(info.min, info.max), source + ": to nearest even and clamped", f"{names} to {dtype}: ")


@case(10, covers=[])
def products_of_large_matrices(c):
    """Past the tiles' sizes, by the componentwise bound."""
    name = c.floating()
    compute = compute_name(name)
    m, k, n = c.pick([1, 130, 257]), c.pick([300, 513, 1030]), c.pick([1, 129, 200])
    a, b = c.tensor([m, k], name, "normal", expand=False), c.tensor([k, n], name, "normal", expand=False)
    got = c.call("matmul", a=a, b=b)[0]
    c.near(got, a.double() @ b.double(), (k + 2) * EPS[compute] * (a.double().abs() @ b.double().abs()), MATMUL + ", Accuracy", f"{name}: ")
    p, q = c.values([m, k], "i8", "wide"), c.values([k, n], "u8", "wide")
    want = torch.from_numpy(np.array(np.matmul(p.long().numpy(), q.long().numpy()))).to(torch.int32)
    c.same(c.call("matmul", a=c.lay_out(p), b=c.lay_out(q))[0], want, MATMUL + ", integers are exact", "i8 u8: ")
