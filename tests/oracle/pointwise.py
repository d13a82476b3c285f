# SPDX-License-Identifier: Apache-2.0
"""Functions of elements: addcdiv and addcmul, the named ones, lambdas and their derivatives."""

import math

import mpmath
import numpy as np
import torch

from common import DTYPES, EPS, FLOATS, INTEGERS, NAMES, case, compute_name, fma, longdouble, unit
from tensors import unchanged

EXPR = "clutch/expr.hpp"
MAP = "clutch/ops/map.hpp, Dtypes"
ADDC = "clutch/ops/addc.hpp, AddcOrder"


def computed(name):
    """In what a tensor of that dtype is traced."""
    return {"f64": "f64", "f32": "f32", "f16": "f32", "bf16": "f32", "i64": "i64", "bool": "bool"}.get(name, "i32")


def promoted(*names):
    order = ["bool", "i32", "i64", "f32", "f64"]
    return order[max(order.index(computed(n)) for n in names)]


def store(x, name):
    """A computed number as map stores it: integers and f64 go to f16 and bf16 by way of f32."""
    if name in ("f16", "bf16") and (x.dtype in (torch.float64, torch.int64)):
        x = x.to(torch.float32)
    return x.to(DTYPES[name])


def map_dtype(*tensors):
    """map's rule: PyTorch's result type, if it is traced as the tensors are together (a rank-0 i64 beside u8 is not)."""
    result, traced = result_dtype(*tensors), promoted(*(NAMES[t.dtype] for t in tensors))
    return result if result.is_floating_point or computed(NAMES[result]) == traced else DTYPES[traced]


def result_dtype(*tensors):
    """PyTorch's rule."""
    dims = [t for t in tensors if t.dim()]
    zero = [t for t in tensors if not t.dim()]
    a = b = None
    for t in dims:
        a = t.dtype if a is None else torch.promote_types(a, t.dtype)
    for t in zero:
        b = t.dtype if b is None else torch.promote_types(b, t.dtype)
    if a is None or b is None:
        return a or b
    return torch.result_type(torch.zeros(1, dtype=a), torch.zeros([], dtype=b))


# Elementary functions: (largest error in f32, in f64, exact value of longdouble or mpmath numbers).
ELEMENTARY = {
    "sqrt": (0.5, 0.5, np.sqrt, mpmath.sqrt), "rsqrt": (1.5, 1.5, lambda x: 1 / np.sqrt(x), None), "exp": (0.9, 0.9, np.exp, None), "exp2": (0.87, 0.9, np.exp2, None),
    "expm1": (1.33, 1.8, np.expm1, None), "log": (0.85, 0.9, np.log, None), "log2": (1.18, 0.95, np.log2, None), "log1p": (0.85, 0.9, np.log1p, None),
    "tanh": (1.41, 1.4, np.tanh, None), "sigmoid": (1.97, 1.9, lambda x: 1 / (1 + np.exp(-x)), None), "erf": (1.08, 1.1, None, mpmath.erf),
    "sin": (0.85, 0.9, np.sin, None), "cos": (0.85, 0.9, np.cos, None),
}


def exact_value(name, x):
    """Of a contiguous tensor, as longdouble."""
    _, _, wide, slow = ELEMENTARY[name]
    with np.errstate(all="ignore"):
        if name == "erf":
            flat = []
            for v in x.double().reshape(-1).tolist():
                flat.append(np.longdouble(v) if math.isnan(v) or math.isinf(v) or v == 0 else np.longdouble(mpmath.nstr(mpmath.mp.make_mpf(mpmath.erf(mpmath.mpf(v))._mpf_), 25)))
            result = np.array(flat, dtype=np.longdouble).reshape(x.shape)
            return np.where(np.isinf(result), np.sign(result), result)
        v = longdouble(x)
        if name in ("sin", "cos"):
            # The processor's own reduction of huge arguments is not exact.
            big = np.abs(v) > 1e5
            result = np.array(wide(np.where(big, 0, v)))
            f = mpmath.sin if name == "sin" else mpmath.cos
            for i in np.flatnonzero(big.reshape(-1) & np.isfinite(v.reshape(-1))):
                with mpmath.workprec(1200):
                    result.reshape(-1)[i] = np.longdouble(mpmath.nstr(f(mpmath.mpf(float(v.reshape(-1)[i]))), 25))
            return np.where(np.isfinite(v), result, np.longdouble(np.nan))
        return np.array(wide(v))


def forms(c, function, want_dtype, shape, **arguments):
    """The result of a random one of the forms: new, into `out`, in place."""
    form = c.pick(["new", "new", "out", "in_place"])
    first = "x" if "x" in arguments else "a"
    if form == "in_place":
        x = arguments[first]
        if NAMES[x.dtype] == NAMES[want_dtype] and list(x.shape) == list(shape) and not any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
            reply = c.call(function, back=[first], form=form, **arguments)
            unchanged(c, x, reply.back[first], MAP)
            return reply.back[first]
    if form == "out" and all(isinstance(v, torch.Tensor) for v in arguments.values()):
        out = c.tensor(shape, NAMES[want_dtype], "normal", expand=False)
        reply = c.call(function, back=["out"], form=form, out=out, **arguments)
        unchanged(c, out, reply.back["out"], MAP)
        return reply.back["out"]
    return c.call(function, **arguments)[0]


@case(160, covers=[n for n in ELEMENTARY], sharp=True)
def elementary(c):
    function = list(ELEMENTARY)[c.number % len(ELEMENTARY)]
    name = c.floating() if c.chance(0.85) else c.integers()
    elements = 200 if function in ("erf", "sin", "cos") else 3000
    x = c.tensor(c.shape(elements=elements), name)
    if c.chance(0.5) and name in FLOATS:
        x = c.lay_out((x.float() * 0.1).clamp(-50, 50).to(x.dtype)) if name != "f64" else c.lay_out((x * 0.1).clamp(-50, 50))
    compute = "f64" if name == "f64" else "f32"
    want = DTYPES[name if name in FLOATS else "f32"]
    got = forms(c, function, want, x.shape, x=x)
    at = x.contiguous() if name in FLOATS else x.contiguous().float()
    exact = exact_value(function, at)
    c.alike(got, x.shape, want, MAP)
    bound = ELEMENTARY[function][1 if compute == "f64" else 0]
    c.rounded(got, exact, bound, EXPR + ", largest errors in ulp", f"{function} of {name}: ", compute)


@case(60, covers=["pow"], sharp=True)
def powers(c):
    name = c.floating()
    shape = c.shape(elements=300)
    a, b = c.tensor(shape, name), c.tensor(c.broadcastable(shape), name)
    if c.chance(0.6):
        a, b = c.tensor(shape, name, "positive"), c.tensor(c.broadcastable(shape), name, c.pick(["normal", "small"]))
    got = forms(c, "pow", a.dtype, shape, a=a, b=b)
    x, y = (longdouble(t.expand(shape).contiguous() if name == "f64" else t.expand(shape).double()) for t in (a, b))
    with np.errstate(all="ignore"):
        exact = np.power(x, y)
    c.rounded(got, exact, 3 if name == "f64" else 1, EXPR + ", pow; ends are C99's", f"pow of {name}: ", compute_name(name))


@case(24, covers=[])
def powers_of_integers(c):
    """f32."""
    a, b = c.tensor([50], c.integers(), "small"), c.integer(-3, 4)
    got = c.call("pow", a=a, b=b)[0]
    c.alike(got, [50], torch.float32, "clutch/pointwise.hpp: pow of integers is f32")
    with np.errstate(all="ignore"):
        exact = np.power(longdouble(a.float()), np.longdouble(b))
    c.rounded(got, exact, 1, EXPR + ", pow")


EXACT = {
    "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "square": lambda x: x * x, "relu": lambda x: torch.where(x <= 0, torch.zeros_like(x), x),
    "reciprocal": lambda x: 1 / x, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "round": torch.round,
}


@case(150, covers=list(EXACT), sharp=True)
def exact_unary(c):
    function = list(EXACT)[c.number % len(EXACT)]
    name = c.floating() if c.chance(0.6) else c.integers()
    x = c.tensor(c.shape(), name)
    compute = computed(name)
    at = x.to(DTYPES[compute])
    if name in INTEGERS and function in ("reciprocal",):
        at, name = at.float(), "f32"
    if name in INTEGERS and function in ("floor", "ceil", "trunc", "round"):
        want = at
    else:
        want = EXACT[function](at)
    want = store(want, name)
    got = forms(c, function, want.dtype, x.shape, x=x)
    c.same(got, want, EXPR, f"{function} of {name}: ")


@case(40, covers=["bitwise_not", "logical_not", "isnan", "isinf", "isfinite"], sharp=True)
def predicates(c):
    function = c.pick(["bitwise_not", "logical_not", "isnan", "isinf", "isfinite"])
    name = c.pick(INTEGERS + ["bool"]) if function == "bitwise_not" else c.floating() if function != "logical_not" or c.chance(0.5) else c.pick(INTEGERS + ["bool"])
    x = c.tensor(c.shape(), name)
    want = getattr(torch, function)(x)
    c.same(forms(c, function, want.dtype, x.shape, x=x), want, EXPR, f"{function} of {name}: ")


COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
BITWISE = ["bitwise_and", "bitwise_or", "bitwise_xor"]
ARITHMETIC = ["add", "sub", "mul", "div", "minimum", "maximum"]


@case(200, covers=ARITHMETIC + COMPARISONS + LOGICAL + BITWISE, sharp=True)
def binary(c):
    functions = ARITHMETIC + ARITHMETIC + COMPARISONS + LOGICAL + BITWISE
    function = functions[c.number % len(functions)]
    names = FLOATS + INTEGERS if c.traits["fp64"] else FLOATS[1:] + INTEGERS
    if function in BITWISE:
        names = INTEGERS + ["bool"]
    elif function not in ARITHMETIC:
        names = names + ["bool"]
    a_name = c.pick(names)
    b_name = a_name if c.chance(0.5) else c.pick(names)
    shape = c.shape()
    a = c.tensor(shape if c.chance(0.7) else c.broadcastable(shape), a_name)
    b = c.tensor(c.broadcastable(shape) if c.chance(0.85) else [], b_name)
    shape = torch.broadcast_shapes(a.shape, b.shape)
    result = map_dtype(a, b)
    if c.chance(0.2) and function not in BITWISE + LOGICAL:
        # A number in the place of the second tensor: whole ones keep integers integer.
        whole = a_name in INTEGERS
        b = c.integer(0 if a_name == "u8" else -7, 7) if whole or c.chance(0.4) else c.pick([0.5, -3.25, 1e-3, 1e5, 0.1])
        a_name = NAMES[a.dtype]
        shape, result = a.shape, a.dtype if a_name != "bool" else torch.int64
        if a_name == "bool":
            return c.true(True, "", MAP)
        compute = computed(a_name)
        y = torch.tensor(b, dtype=torch.float64).to(DTYPES[compute])
    else:
        # Rank-0 floating tensors count by their kind, so they are computed in the result's compute type.
        compute = promoted(NAMES[a.dtype], NAMES[b.dtype])
        if result.is_floating_point:
            compute = compute_name(NAMES[result])
        y = b.to(DTYPES[compute])
    x = a.to(DTYPES[compute])
    if function == "div" and compute in ("i32", "i64", "bool"):
        x, y = a.to(torch.float32), (b.to(torch.float32) if isinstance(b, torch.Tensor) else torch.tensor(float(b)))
        result = torch.float32
    if function in ARITHMETIC:
        want = store(getattr(torch, function)(x, y) if function in ("minimum", "maximum") else {"add": x + y, "sub": x - y, "mul": x * y}[function] if function != "div" else x / y,
                     NAMES[result])
    elif function in COMPARISONS:
        want, result = getattr(torch, function)(x, y), torch.bool
    elif function in LOGICAL:
        want, result = getattr(torch, function)(x, y), torch.bool
    else:
        want = store(getattr(torch, function)(x, y), NAMES[result])
    got = forms(c, function, result, shape, a=a, b=b)
    c.same(got, want.expand(shape).contiguous(), MAP, f"{function}: ", zero_signs=function not in ("minimum", "maximum"))


SYMBOLS = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y}


def arithmetic(symbol, a, b):
    """a, b: tensors, or numbers of C++ beside one. The value, one rounding, in the dtype that it is computed in; and the result's dtype."""
    tensors = [t for t in (a, b) if isinstance(t, torch.Tensor)]
    if len(tensors) == 2:
        result = map_dtype(a, b)
        compute = compute_name(NAMES[result]) if result.is_floating_point else promoted(NAMES[a.dtype], NAMES[b.dtype])
    else:
        number = next(t for t in (a, b) if not isinstance(t, torch.Tensor))
        result, compute = tensors[0].dtype, computed(NAMES[tensors[0].dtype])
        if isinstance(number, float) and not result.is_floating_point:
            result, compute = torch.float32, "f32"
    if symbol == "/" and compute not in ("f32", "f64"):
        result, compute = torch.float32, "f32"
    wide = DTYPES[compute]
    x, y = (t.to(wide) if isinstance(t, torch.Tensor) else torch.tensor(t, dtype=torch.float64 if isinstance(t, float) else torch.int64).to(wide) for t in (a, b))
    return SYMBOLS[symbol](x, y), result


def operator_dtypes(c):
    names = [n for n in FLOATS + INTEGERS if c.traits["fp64"] or n != "f64"]
    a = c.pick(names)
    return a, a if c.chance(0.5) else c.pick(names)


def a_number(c, name):
    """Whole, or not."""
    if c.chance(0.5):
        return c.integer(0 if name == "u8" else -7, 7)
    return c.pick([0.5, -3.25, 1e-3, 1e5, 0.1, 0.0, -0.0] + ([math.inf, -math.inf, math.nan] if name in FLOATS else []))


OPERATORS = ["- tensor"] + [form.format(symbol) for symbol in SYMBOLS for form in ("tensor {} tensor", "tensor {} number", "number {} tensor", "tensor {}= tensor", "tensor {}= number")]


@case(168, covers=OPERATORS, sharp=True)
def operators(c):
    from tensors import cast_reference

    source = "clutch/pointwise.hpp: operators are the named ops"
    function = OPERATORS[c.number % len(OPERATORS)]
    a_name, b_name = operator_dtypes(c)
    shape = c.shape()
    if function == "- tensor":
        x = c.tensor(shape, a_name)
        got = c.call(function, a=x)[0]
        return c.same(got, -x.contiguous(), source, f"{function} of {a_name}: ")
    left, symbol, right = function.split()
    in_place = symbol.endswith("=")
    symbol = symbol[0]
    a = c.tensor(shape if in_place or c.chance(0.7) else c.broadcastable(shape), a_name, expand=not in_place)
    b = c.tensor(c.broadcastable(shape) if c.chance(0.85) else [], b_name)
    if left == "number":
        a, b = a_number(c, b_name), c.tensor(shape, b_name)
    if right == "number":
        b = a_number(c, a_name)
    elif c.chance(0.15):
        # With itself.
        a, b = (a, a) if left == "tensor" else (a, b)
    value, result = arithmetic(symbol, a, b)
    what = f"{function} of {[NAMES[t.dtype] if isinstance(t, torch.Tensor) else t for t in (a, b)]}: "
    if in_place:
        # The result keeps a's dtype, also where PyTorch refuses to narrow it to integers.
        want = cast_reference(value, NAMES[a.dtype]) if a_name in INTEGERS else store(value, a_name)
        got = c.call(function, back=["a"], a=a, b=b)
        c.true(got.values["itself"], "the operator does not return its left side", source)
        c.same(got.back["a"], want.expand(a.shape).contiguous(), source, what)
        return unchanged(c, a, got.back["a"], source)
    got = c.call(function, a=a, b=b)[0]
    want = store(value, NAMES[result])
    c.same(got, want, source, what)
    if right == left == "tensor" and c.chance(0.2):
        c.refused("invalid_shape", function, source + ", Errors", a=torch.zeros(3), b=torch.zeros(4))


EXPRESSIONS = {
    **{f"expression {symbol}{e} expression": symbol for symbol in SYMBOLS for e in ("", "=")},
    **{f"expression {symbol} expression": function for symbol, function in {"<": torch.lt, "<=": torch.le, "==": torch.eq, "!=": torch.ne, ">": torch.gt, ">=": torch.ge}.items()},
    **{f"expression {symbol} expression": function for symbol, function in {"&": torch.bitwise_and, "|": torch.bitwise_or, "^": torch.bitwise_xor}.items()},
    "expression << expression": lambda x, y: x << (y & (x.element_size() * 8 - 1)), "expression >> expression": lambda x, y: x >> (y & (x.element_size() * 8 - 1)),
    "- expression": torch.neg, "~ expression": torch.bitwise_not, "! expression": torch.logical_not,
}


@case(88, covers=list(EXPRESSIONS), sharp=True)
def operators_of_expressions(c):
    function = list(EXPRESSIONS)[c.number % len(EXPRESSIONS)]
    wanted = EXPRESSIONS[function]
    left, symbol, _ = f"? {function}".split()[-3:]
    bits = symbol in ("&", "|", "^", "<<", ">>", "~")
    a_name, b_name = operator_dtypes(c)
    if bits:
        a_name = c.pick(INTEGERS + (["bool"] if symbol not in ("<<", ">>") else []))
        b_name = a_name
    shape = c.shape()
    a, b = c.tensor(shape, a_name), c.tensor(c.broadcastable(shape), b_name)
    what = f"{function} of {a_name} and {b_name}: "
    if left == "?":
        x = a.to(DTYPES[computed(a_name)])
        want = wanted(x)
        want = want if want.dtype == torch.bool else store(want, a_name)
        return c.same(c.call(function, a=a)[0], want, EXPR, what)
    if isinstance(wanted, str):
        value, result = arithmetic(wanted, a, b)
        want = store(value, NAMES[result])
    else:
        result = map_dtype(a, b)
        compute = DTYPES[compute_name(NAMES[result]) if result.is_floating_point else promoted(a_name, b_name)]
        want = wanted(*(t.to(compute).expand(torch.broadcast_shapes(a.shape, b.shape)) for t in (a, b)))
        want = want if want.dtype == torch.bool else store(want, NAMES[result])
    c.same(c.call(function, a=a, b=b)[0], want.contiguous(), EXPR, what)


@case(60, covers=["floor_divide", "trunc_divide", "remainder", "fmod"], sharp=True)
def integer_division(c):
    function = c.pick(["floor_divide", "trunc_divide", "remainder", "fmod"])
    a_name = c.integers()
    b_name = a_name if c.chance(0.7) else c.integers()
    shape = c.shape()
    a, b = c.tensor(shape, a_name), c.tensor(c.broadcastable(shape), b_name)
    compute = DTYPES[promoted(a_name, b_name)]
    x, y = (t.expand(shape).to(compute).numpy().astype(object) for t in (a, b))
    bits = 64 if compute == torch.int64 else 32

    def one(p, q):
        if q == 0:
            return 0
        floor = p // q
        trunc = abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
        r = {"floor_divide": floor, "trunc_divide": trunc, "remainder": p - floor * q, "fmod": p - trunc * q}[function]
        return (r + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)

    flat = [one(p, q) for p, q in zip(np.asarray(x).reshape(-1), np.asarray(y).reshape(-1))]
    result = map_dtype(a, b)
    want = torch.tensor(flat, dtype=torch.int64).reshape(shape).to(compute).to(result)
    got = forms(c, function, result, shape, a=a, b=b)
    c.same(got, want, EXPR + ", floor_div ... trunc_mod", f"{function}: ")
    c.refused("invalid_dtype", function, "clutch/pointwise.hpp: the division that rounds takes integers only", a=torch.ones(3), b=torch.ones(3))


def exact_others_of_integers(c, function, shape):
    """Whole numbers keep integers whole; they wrap."""
    name = c.integers() if function != "where" else c.pick(INTEGERS + ["bool"])
    wide = DTYPES[computed(name)]
    x, y = c.tensor(shape, name), c.tensor(c.broadcastable(shape), name)
    a, b = x.to(wide), y.to(wide)
    what = f"{function} of {name}: "
    if function == "add_scaled":
        alpha = c.integer(-5, 5)
        return c.same(c.call(function, a=x, b=y, alpha=alpha)[0], store(a + alpha * b, name), EXPR + ": integers wrap", what)
    if function == "where":
        condition = c.tensor(c.broadcastable(shape), c.pick(["bool", "u8", "i64"]))
        return c.same(c.call(function, condition=condition, a=x, b=y)[0], torch.where(condition != 0, x, y), EXPR + ", select", what)
    low, high = c.integer(-20, 5), c.integer(-5, 20)
    if function == "clamp_tensors":
        z = c.tensor(c.broadcastable(shape), name)
        return c.same(c.call("clamp", x=x, low=y, high=z)[0], store(torch.clamp(a, b, z.to(wide)), name), EXPR + ", clamp", what)
    c.same(c.call("clamp", x=x, low=low, high=high)[0], store(torch.clamp(a, low, high), name), EXPR + ", clamp", what)


@case(60, covers=["add_scaled", "leaky_relu", "clamp", "where"], sharp=True)
def exact_others(c):
    function = c.pick(["add_scaled", "leaky_relu", "clamp", "clamp_tensors", "where"])
    name = c.floating()
    compute = compute_name(name)
    shape = c.shape()
    if c.chance(0.3) and function != "leaky_relu":
        return exact_others_of_integers(c, function, shape)
    x = c.tensor(shape, name)
    if function == "add_scaled":
        b, alpha = c.tensor(c.broadcastable(shape), name), c.pick([1.0, -0.5, 0.1, 3.7, 1e-4])
        rounded = float(np.float32(alpha)) if compute == "f32" else alpha
        want = store(fma(torch.tensor(rounded, dtype=torch.float64), b.double().expand(shape), x.double(), compute), name)
        if c.chance(0.4) and not any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
            got = c.call("add_scaled", back=["a"], form="in_place", a=x, b=b, alpha=alpha).back["a"]
        else:
            got = c.call("add_scaled", a=x, b=b, alpha=alpha)[0]
        return c.same(got, want, "clutch/pointwise.hpp: add_scaled, one fma", f"add_scaled of {name}: ")
    y = x.to(DTYPES[compute])
    if function == "leaky_relu":
        slope = c.pick([0.01, 0.2, -0.5, 1.5])
        want = torch.where(y > 0, y, y * torch.tensor(slope, dtype=y.dtype))
        return c.same(c.call("leaky_relu", x=x, slope=slope)[0], store(want, name), EXPR + ", leaky_relu as PyTorch", f"{name}: ")
    if function == "clamp":
        low, high = sorted([float(c.rng.standard_normal()), float(c.rng.standard_normal())], reverse=c.chance(0.2))
        want = torch.clamp(y, torch.tensor(low, dtype=y.dtype), torch.tensor(high, dtype=y.dtype))
        return c.same(c.call("clamp", x=x, low=low, high=high)[0], store(want, name), EXPR + ", clamp", f"{name}: ", zero_signs=False)
    if function == "clamp_tensors":
        low, high = c.tensor(c.broadcastable(shape), name), c.tensor(c.broadcastable(shape), name)
        want = torch.clamp(y, low.to(y.dtype), high.to(y.dtype))
        return c.same(c.call("clamp", x=x, low=low, high=high)[0], store(want, name), EXPR + ", clamp", f"{name}: ", zero_signs=False)
    condition = c.tensor(c.broadcastable(shape), c.pick(["bool", "u8", "i64"]))
    a, b = c.tensor(shape, name), c.tensor(c.broadcastable(shape), name)
    c.same(c.call("where", condition=condition, a=a, b=b)[0], torch.where(condition != 0, a, b), EXPR + ", select", f"where of {name}: ")


@case(60, covers=[], sharp=True)
def results_of_other_dtypes(c):
    """MapOptions::dtype: the traced value, cast once."""
    from tensors import cast_reference

    names = [n for n in FLOATS + INTEGERS + ["bool"] if c.traits["fp64"] or n != "f64"]
    a_name, b_name = operator_dtypes(c)
    dtype = c.pick(names)
    shape = c.shape()
    a, b = c.tensor(shape, a_name), c.tensor(c.broadcastable(shape), b_name)
    which = c.pick(list(SYMBOLS) + ["neg", "map", "lt"])
    if which in SYMBOLS:
        value, _ = arithmetic(which, a, b)
        got = c.call({"+": "add", "-": "sub", "*": "mul", "/": "div"}[which], a=a, b=b, dtype=dtype)[0]
    elif which == "neg":
        value = -a.to(DTYPES[computed(a_name)])
        got = c.call("neg", x=a, dtype=dtype)[0]
    elif which == "lt":
        compute = DTYPES[compute_name(NAMES[map_dtype(a, b)]) if map_dtype(a, b).is_floating_point else promoted(a_name, b_name)]
        value = a.to(compute) < b.to(compute)
        got = c.call("lt", a=a, b=b, dtype=dtype)[0]
    else:
        a, b = c.tensor(shape, "f32"), c.tensor(c.broadcastable(shape), "f32")
        value = lambda_of("chain", a, b.expand(shape))
        got = c.call("map", inputs=[a, b], dtype=dtype, **{"lambda": "chain"})[0]
    # Integers and f64 go to f16 and bf16 by way of f32.
    if dtype in ("f16", "bf16") and value.dtype in (torch.float64, torch.int64, torch.int32):
        value = cast_reference(value, "f32")
    c.same(got, cast_reference(value.contiguous(), dtype), MAP + ", MapOptions::dtype", f"{which} of {[a_name, b_name]} to {dtype}: ")


@case(30, covers=["foreach_map"], sharp=True)
def lists(c):
    """A lambda over lists of tensors is map's at each place; a list of single numbers goes with any shape."""
    which = c.pick(["chain", "select"])
    shapes = [c.shape(elements=400) for _ in range(c.integer(1, 6))]
    x = [c.tensor(s, "f32", "normal", expand=False) for s in shapes]
    single = c.chance(0.3) and any(t.numel() != 1 for t in x)
    y = [c.tensor([], "f32", "normal", strides=False) if single else c.tensor(s, "f32", "normal") for s in shapes]
    want = [lambda_of(which, a, b.expand(a.shape)) for a, b in zip(x, y)]
    if c.chance(0.5):
        back = c.call("foreach_map", back=[f"x.{i}" for i in range(len(x))], x=x, y=y, out=1, **{"lambda": which}).back
        got = [back[f"x.{i}"] for i in range(len(x))]
    else:
        got = list(c.call("foreach_map", x=x, y=y, **{"lambda": which}))
    for i, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        c.same(mine, theirs, "clutch/foreach.hpp, Determinism", f"place {i} of {len(x)}, {which}: ")


@case(40, covers=["silu", "softplus", "gelu"])
def activations(c):
    function = c.pick(["silu", "softplus", "gelu", "gelu_tanh"])
    name = c.floating()
    compute = compute_name(name)
    x = c.tensor(c.shape(elements=1500), name, c.pick(["normal", "moderate", "any", "small"]))
    at = x.contiguous().double()
    eps = EPS[compute]
    least = 2.0 ** (-149 if compute == "f32" else -1074)
    arguments = {}
    with np.errstate(all="ignore"):
        v = longdouble(at)
        if function == "silu":
            sigma = 1 / (1 + np.exp(-v))
            exact = np.where(np.isneginf(v), np.nan, v * sigma)
            tolerance = np.abs(exact) * (2 * 1.97 + 1.5) * eps + np.abs(v) * least + least
        elif function == "softplus":
            # PyTorch: beyond the threshold of 20 the number itself.
            exact = np.where(v >= 20, v, np.log1p(np.exp(np.minimum(v, 20))))
            tolerance = np.abs(exact) * 6 * eps + least
        else:
            form = "tanh" if function == "gelu_tanh" else "none"
            arguments["approximate"] = "tanh" if function == "gelu_tanh" else "erf"
            exact = longdouble(torch.nn.functional.gelu(at, approximate=form))
            # PyTorch's formula on infinities: inf (1 + 1) / 2, and -inf 0 = NaN.
            exact = np.where(np.isneginf(v), np.nan, exact)
            tolerance = np.where(np.isfinite(v), np.abs(v) * 12 * eps + least, 0)
    got = c.call("gelu" if function.startswith("gelu") else function, x=x, **arguments)[0]
    c.alike(got, x.shape, x.dtype, MAP)
    finite = np.isfinite(v)
    c.near(got, np.where(finite | np.isnan(exact) | np.isinf(exact), exact, 0), np.where(np.isfinite(exact), tolerance, 0), EXPR + ", with PyTorch's formulas", f"{function} of {name}: ")


@case(30, covers=["lerp"])
def interpolation(c):
    name = c.floating()
    compute = compute_name(name)
    shape = c.shape()
    start, end = c.tensor(shape, name, "moderate"), c.tensor(c.broadcastable(shape), name, "moderate")
    if c.chance(0.5):
        weight = c.pick([0.0, 0.25, 0.5, 0.75, 1.0, 0.1, 1.5, -0.5])
        w = torch.tensor(weight, dtype=torch.float64)
        w = w.float().double() if compute == "f32" else w
    else:
        weight = c.tensor(c.broadcastable(shape), name, "unit")
        w = weight.double()
    s, e = start.double(), end.double()
    exact = torch.where(w.abs() < 0.5, s + w * (e - s), e - (e - s) * (1 - w))
    tolerance = 4 * EPS[compute] * (s.abs() + e.abs()) * (1 + w.abs())
    c.near(c.call("lerp", start=start, end=end, weight=weight)[0], exact, tolerance.expand(exact.shape), EXPR + ", lerp", f"{name}: ")
    # At the ends it gives them.
    ends = c.call("lerp", start=start, end=end.expand(shape), weight=1.0)[0]
    c.same(ends, end.expand(shape).contiguous(), EXPR + ", lerp from the nearer end", "weight 1: ", zero_signs=False)


@case(120, covers=["addcdiv", "addcmul"], sharp=True)
def addc(c):
    function = c.pick(["addcdiv", "addcmul"])
    names = FLOATS if c.traits["fp64"] else FLOATS[1:]
    whole = function == "addcmul" and c.chance(0.25)
    if whole:
        kinds = [c.integers()] * 3 if c.chance(0.7) else [c.integers() for _ in range(3)]
    else:
        kinds = [c.pick(names)] * 3 if c.chance(0.7) else [c.pick(names + (["i32"] if i == 0 else [])) for i in range(3)]
    shape = c.shape()
    t = [c.tensor(shape if i == 0 or c.chance(0.5) else c.broadcastable(shape) if c.chance(0.8) else [], k) for i, k in enumerate(kinds)]
    order = c.pick(["fma_of_quotient", "product_first", "unfused"])
    value = float(c.pick([1, 2, -3, 7])) if whole else c.pick([1.0, 0.0, -0.5, 0.1, 2.75, 1e-3, -1e4])
    result = result_dtype(*t)
    name = NAMES[result]
    compute = "i64" if whole else compute_name(name)
    x, p, q = (u.to(result).to(DTYPES[compute]).expand(shape) for u in t)
    if whole:
        want = (x + int(value) * p * q).to(result)
    else:
        v = torch.tensor(value, dtype=torch.float64).to(DTYPES[compute])
        if function == "addcdiv":
            if order == "fma_of_quotient":
                want = fma(v, p / q, x, compute)
            elif order == "product_first":
                want = x + (v * p) / q
            else:
                want = x + v * (p / q)
        elif order == "fma_of_quotient":
            want = fma(p, q, x, compute) if value == 1 else fma(v, p * q, x, compute)
        elif order == "product_first":
            want = fma(v * p, q, x, compute)
        else:
            want = x + v * (p * q)
        want = store(want.to(DTYPES[compute]), name)
    form = c.pick(["new", "out", "in_place"])
    arguments = dict(t1=t[1], t2=t[2], value=value, order=order)
    if form == "in_place" and name == kinds[0] and not any(s == 0 and n > 1 for s, n in zip(t[0].stride(), shape)):
        got = c.call(function, back=["input"], input=t[0], form=form, **arguments).back["input"]
        unchanged(c, t[0], got, ADDC)
    elif form == "out":
        out = c.tensor(shape, name, "normal", expand=False)
        got = c.call(function, back=["out"], input=t[0], out=out, form=form, **arguments).back["out"]
        unchanged(c, out, got, ADDC)
    else:
        got = c.call(function, input=t[0], **arguments)[0]
    c.same(got, want, ADDC, f"{function} {order} of {kinds}: ")
    if order == "product_first" and not whole and function == "addcdiv" and len(set(kinds)) == 1:
        c.same(got, torch.addcdiv(t[0], t[1], t[2], value=value), "PyTorch's CPU bits are product_first", f"{function}: ")


def square_root(t):
    """Correctly rounded, which PyTorch's of f64 is not (sqrt(2) is one unit less)."""
    return t.sqrt() if t.requires_grad else torch.from_numpy(np.asarray(np.sqrt(t.numpy())))


def lambda_of(which, x, y):
    """The lambdas of pointwise_functions.cpp by PyTorch's own operations, one rounding each."""
    one = torch.ones_like(x)
    if which == "chain":
        return (x * y + 0.5) * x - y / (x * x + 1.0)
    if which == "select":
        return torch.where((x > y) & ~x.isnan(), x, y * 2.0)
    if which == "kinks":
        return torch.relu(x) + y.abs() + torch.maximum(x, y) + x.clamp(-1, 1) + torch.minimum(x, 0.25 * one) * square_root(y.abs() + 1)
    if which == "chain_of_elementary":
        return torch.exp(-x * x) * torch.sin(y) + torch.log1p(x.abs()) * torch.tanh(y) - torch.sigmoid(x + y)
    if which == "activations":
        g = torch.nn.functional
        return g.silu(x) + g.gelu(y) * g.softplus(x) - g.leaky_relu(y) + g.gelu(x, approximate="tanh")
    if which == "powers":
        return torch.pow(x.abs() + 0.5, y) + torch.rsqrt(x * x + 1) + torch.exp2(y) + torch.log2(y.abs() + 1) + torch.erf(x)
    if which == "lerp":
        return torch.lerp(x, y, 0.25) + torch.lerp(x, y, 0.75) + torch.reciprocal(x.abs() + 1) + torch.expm1(y) + torch.cos(x)
    if which == "opencl":
        return x * y + x
    raise ValueError(which)


@case(80, covers=["map", "map_out"], sharp=True)
def lambdas(c):
    name = c.floating()
    compute = compute_name(name)
    shape = c.shape()
    x, y = c.tensor(shape, name), c.tensor(c.broadcastable(shape), name)
    a, b = (t.to(DTYPES[compute]).expand(shape) for t in (x, y))
    which = c.pick(["chain", "select", "kinks", "opencl", "two_results", "param", "positions", "cast_f16", "cast_i8", "captured", "captured_positions"])
    source = EXPR + ": correctly rounded, never contracted"
    if which in ("chain", "select", "kinks", "opencl"):
        want = store(lambda_of(which, a, b), name)
        if c.chance(0.3):
            out = c.tensor(shape, name, "normal", expand=False)
            got = c.call("map_out", back=["outputs.0"], inputs=[x, y], outputs=[out], **{"lambda": which}).back["outputs.0"]
            unchanged(c, out, got, source)
        else:
            got = c.call("map", inputs=[x, y], **{"lambda": which})[0]
        # relu gives 0 for -0, min and max either zero: sums of these keep no sign.
        return c.same(got, want, source, f"{which} of {name}: ", zero_signs=which != "kinks")
    if which == "two_results":
        got = c.call("map", inputs=[x, y], **{"lambda": which})
        c.same(got[0], store(fma(a, b, torch.ones([], dtype=torch.float64), compute), name), source, "fma: ")
        return c.same(got[1], store(torch.maximum(a, b) - torch.minimum(a, b), name), source, "max - min: ", zero_signs=False)
    if which == "param":
        p, q = float(c.rng.standard_normal()), float(c.rng.standard_normal())
        want = a * torch.tensor(p, dtype=torch.float64).to(a.dtype) + b * torch.tensor(q, dtype=torch.float64).to(a.dtype)
        return c.same(c.call("map", inputs=[x, y], p=p, q=q, **{"lambda": which})[0], store(want, name), source, f"param of {name}: ")
    if which == "positions":
        shape = c.shape(1, 4)
        x = c.tensor(shape, name)
        a = x.to(DTYPES[compute])
        last = torch.arange(shape[-1]).expand(shape)
        first = torch.arange(shape[0]).reshape([-1] + [1] * (len(shape) - 1)).expand(shape)
        want = (a + (last * 2).to(a.dtype)) - first.to(a.dtype)
        return c.same(c.call("map", inputs=[x], **{"lambda": which})[0], store(want, name), source, f"positions of {name}: ")
    if which == "cast_f16":
        from tensors import cast_reference
        got = c.call("map", inputs=[x], **{"lambda": which})[0]
        # What is traced in f32 is not cast to it: the result has the inputs' dtype (map_dtype).
        want = cast_reference(x.to(torch.float32).contiguous(), "f16").float() * 3.0
        want = store(want, name) if name in ("f16", "bf16") else want
        return c.same(got, want, EXPR + ", cast: to f16 by way of f32", f"of {name}: ")
    if which == "cast_i8":
        from tensors import cast_reference
        got = c.call("map", inputs=[x], **{"lambda": which})[0]
        want = cast_reference(x.to(a.dtype), "i8").to(torch.int32) + 1
        return c.same(got.to(torch.int32), want.to(DTYPES[NAMES[got.dtype]]).to(torch.int32), EXPR + ", cast", f"of {name}: ")
    # Tables that are read at clamped places.
    rows, columns = c.integer(1, 9), c.integer(1, 12)
    table = c.tensor([rows, columns], name, "normal")
    t = table.to(DTYPES[compute])
    if which == "captured":
        shape = [c.integer(1, 20), columns]
        x, row = c.tensor(shape, name, "normal"), c.tensor([shape[0], 1], "i32", "small")
        at = row.clamp(0, rows - 1).long()
        want = x.to(t.dtype) * t[at.expand(shape), torch.arange(columns).expand(shape)] + t[at, 0]
        got = c.call("map", inputs=[x, row], table=table, **{"lambda": which})[0]
        return c.same(got, store(want, name), EXPR + ", Captured: indices are clamped", f"of {name}: ")
    shape = [c.integer(1, 3), c.integer(1, 12), c.integer(1, 12)]
    x = c.tensor(shape, name, "normal")
    i = torch.arange(shape[1]).reshape(-1, 1).expand(shape)
    j = torch.arange(shape[2]).expand(shape)
    want = x.to(t.dtype) * t[i.clamp(max=rows - 1), j.clamp(max=columns - 1)] + t[j.clamp(max=rows - 1), i.clamp(max=columns - 1)]
    c.same(c.call("map", inputs=[x], table=table, **{"lambda": which})[0], store(want, name), EXPR + ", Captured: indices are clamped", f"of {name}: ")


@case(24, covers=["evaluate"], sharp=True)
def lambdas_of_integers(c):
    """Integers wrap; and the host's evaluator has the kernels' bits."""
    name = c.integers()
    shape = c.shape()
    x, y = c.tensor(shape, name), c.tensor(shape, name)
    compute = DTYPES[computed(name)]
    bits = 64 if compute == torch.int64 else 32
    a, b = x.to(compute), y.to(compute)
    got = c.call("map", inputs=[x, y], **{"lambda": "bits"})[0]
    count = b & (bits - 1)
    want = ((a << count) ^ (a >> count)) + (~a & b)
    c.same(got, want.to(x.dtype), EXPR + ": the count is taken modulo the bits, >> keeps the sign", f"bits of {name}: ")
    kind = c.pick(["f32"] + (["f64"] if c.traits["fp64"] else []))
    p, q = c.tensor([60], kind), c.tensor([60], kind)
    if not c.traits["fp64"]:
        return
    which = c.pick(["chain", "chain_of_elementary", "activations", "powers", "lerp", "kinks"])
    got = c.call("evaluate", inputs=[p, q], **{"lambda": which})
    c.same(got[0].double(), got[1], EXPR + ", evaluate: the bits of the kernels", f"{which} of {kind}: ")


@case(40, covers=[])
def lambdas_of_elementary(c):
    name = c.floating()
    compute = compute_name(name)
    shape = c.shape(elements=1500)
    x, y = c.tensor(shape, name, "normal"), c.tensor(c.broadcastable(shape), name, "normal")
    which = c.pick(["chain_of_elementary", "activations", "powers", "lerp"])
    exact = lambda_of(which, x.double(), y.double().expand(shape))
    scale = 1 + exact.abs() + x.double().abs() * 4 + torch.exp2(y.double().abs()) * 4
    scale = scale * (1 + y.double().abs() * 4)
    c.near(c.call("map", inputs=[x, y], **{"lambda": which})[0], exact, (8 * EPS[compute] * scale).expand(shape), EXPR + ", largest errors in ulp", f"{which} of {name}: ")


@case(50, covers=["map_backward", "captured_backward"])
def lambda_gradients(c):
    name = c.floating()
    compute = compute_name(name)
    shape = c.shape(1, 3, elements=800, empty=0)
    if c.chance(0.6):
        x, y = c.tensor(shape, name, "normal"), c.tensor(c.broadcastable(shape), name, "normal")
        which = c.pick(["chain", "chain_of_elementary", "activations", "powers", "lerp", "kinks", "select", "opencl"])
        grad = c.tensor(shape, name, "normal")
        a, b = (t.double().clone().requires_grad_() for t in (x, y))
        lambda_of(which, a, b.expand(shape)).backward(grad.double())
        got = c.call("map_backward", inputs=[x, y], grads=[grad], **{"lambda": which})
        repeats = math.prod(shape) / max(1, y.numel())
        growth = (1 + x.double().abs().max() ** 2) * (1 + y.double().abs().max() ** 2) * torch.exp2(y.double().abs().max() + 1)
        scale = float(growth * grad.double().abs().max())
        for g, t, what in ((got[0], a, "x"), (got[1], b, "y")):
            count = 1 if what == "x" else repeats
            want = t.grad if t.grad is not None else torch.zeros_like(t)
            c.near(g, want, torch.full(want.shape, 60 * EPS[compute] * scale * max(1, count)), EXPR + ", derivatives are PyTorch's", f"{which} of {name}, gradient of {what}: ")
        return
    which = c.pick(["captured", "captured_positions", "captured_reversed"])
    rows, columns = c.integer(1, 9), c.integer(1, 12)
    table = c.tensor([rows, columns], name, "normal", expand=False)
    t = table.double().clone().requires_grad_()
    if which == "captured":
        shape = [c.integer(1, 20), columns]
        x, row = c.tensor(shape, name, "normal"), c.tensor([shape[0], 1], "i32", "small")
        at = row.clamp(0, rows - 1).long()
        want = x.double() * t[at.expand(shape), torch.arange(columns).expand(shape)] + t[at, 0]
        inputs = [x, row]
    else:
        shape = [c.integer(1, 3), c.integer(1, 12), c.integer(1, 12)]
        x = c.tensor(shape, name, "normal")
        i = torch.arange(shape[1]).reshape(-1, 1).expand(shape)
        j = torch.arange(shape[2]).expand(shape)
        if which == "captured_positions":
            want = x.double() * t[i.clamp(max=rows - 1), j.clamp(max=columns - 1)] + t[j.clamp(max=rows - 1), i.clamp(max=columns - 1)]
        else:
            want = x.double() * t[(rows - 1 - i).clamp(0, rows - 1), j.clamp(max=columns - 1)] + t[(i - j).clamp(0, rows - 1), j.clamp(max=columns - 1)]
        inputs = [x]
    grad = c.tensor(shape, name, "normal")
    want.backward(grad.double())
    got = c.call("captured_backward", inputs=inputs, grads=[grad], table=table, rows=rows, **{"lambda": which})[0]
    n = math.prod(shape)
    # Several reads of one tensor are added.
    bound = 4 * (n + 4) * EPS[compute] * float((grad.double().abs() * (1 + x.double().abs())).sum()) / max(1, n) ** 0.5
    c.near(got, t.grad, torch.full(t.shape, bound), "clutch/ops/reduce.hpp, captured_backward: summed in f32, rounded once", f"{which} of {name}: ")
