# SPDX-License-Identifier: Apache-2.0
"""A special number in one lane of a vector changes nothing in the others: drivers' own functions are not to be trusted there."""
import math

import pytest
import torch

UNARY = ["abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "digamma", "erf", "erfc", "exp", "exp2", "expm1", "floor", "frac", "lgamma",
         "log", "log10", "log1p", "log2", "logit", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
         "special.entr", "special.log_ndtr", "special.ndtr", "nn.functional.gelu", "nn.functional.silu", "nn.functional.softplus", "nn.functional.mish", "nn.functional.elu",
         "nn.functional.logsigmoid", "nn.functional.softsign", "nn.functional.hardswish"]
BINARY = ["atan2", "copysign", "fmod", "hypot", "remainder", "pow", "floor_divide", "div", "fmax", "fmin", "logaddexp", "logaddexp2", "nextafter", "xlogy",
          "special.xlog1py", "heaviside", "maximum", "minimum"]
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e-310, -1.0, 1.0, 1e300, -1e30, 1e30]


def function(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found


def exactly(name, a, b):
    """The CPU's result; of remainders Python's, since the CPU's of subnormal divisors are NaN."""
    if name not in ("fmod", "remainder"):
        return function(name)(a, b)

    def one(x, y):
        if y == 0 or math.isinf(x):
            return math.nan
        r = math.fmod(x, y)
        return r + y if name == "remainder" and r != 0 and (r < 0) != (y < 0) else r

    return torch.tensor([one(x, y) for x, y in zip(a.tolist(), b.tolist())], dtype=a.dtype)


def same(a, b):
    return (a == b) | (a.isnan() & b.isnan())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    f = function(name)
    x = torch.cat([torch.rand(120, dtype=dtype) * scale for scale in (1.0, 3.0, -1.0, 200.0)])
    plain = f(x.to("clutch")).cpu()
    for special in SPECIAL:
        for step in (1, 3, 7):
            mixed, kept = x.clone(), torch.ones(480, dtype=torch.bool)
            kept[step::8] = False
            mixed[step::8] = float(torch.tensor(special, dtype=torch.float64).to(dtype))
            got = f(mixed.to("clutch")).cpu()
            assert same(got, plain)[kept].all(), f"{name} beside {special}"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    f = function(name)
    x, y = (torch.randn(480, dtype=dtype) * scale for scale in (9, 3))
    plain = f(x.to("clutch"), y.to("clutch")).cpu()
    wanted = exactly(name, x, y)
    torch.testing.assert_close(plain, wanted, equal_nan=True, rtol=1e-5 if dtype == torch.float32 else 1e-13, atol=1e-6 if dtype == torch.float32 else 1e-14)
    for special in SPECIAL:
        for step in (1, 3, 7):
            for which in range(3):
                kept = torch.ones(480, dtype=torch.bool)
                kept[step::8] = False
                pair = [x.clone(), y.clone()]
                for k in range(2):
                    if which in (k, 2):
                        pair[k][step::8] = float(torch.tensor(special, dtype=torch.float64).to(dtype))
                got = f(pair[0].to("clutch"), pair[1].to("clutch")).cpu()
                assert same(got, plain)[kept].all(), f"{name} beside {special}"
                exact = exactly(name, *pair)
                torch.testing.assert_close(got[~kept], exact[~kept], equal_nan=True, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-7 if dtype == torch.float32 else 1e-15, msg=lambda m: f"{special}: {m}")
    for n in range(1, 9):  # and nothing behind the end
        torch.testing.assert_close(f(x[:n].to("clutch"), y[:n].to("clutch")).cpu(), plain[:n], equal_nan=True, rtol=0, atol=0)
