# SPDX-License-Identifier: Apache-2.0
"""Pooling beside the CPU's, with gradients: padding, steps, dilation, ceil_mode, ties, NaN, -inf."""
import itertools

import pytest
import torch
from torch.nn import functional as F

BOUNDS = {torch.float32: 1e-6, torch.float64: 1e-14, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def both(f, x, bound):
    """f on both devices, with the gradient of its first result."""
    host, device = x.detach().clone().requires_grad_(), x.detach().to("clutch").requires_grad_()
    wanted, got = f(host), f(device)
    wanted, got = (r if isinstance(r, tuple) else (r,) for r in (wanted, got))
    grad = torch.randn(wanted[0].shape).to(x.dtype)
    wanted[0].backward(grad)
    got[0].backward(grad.to("clutch"))
    for a, b in zip(got, wanted):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=bound, atol=bound, equal_nan=True)
    bound = max(bound, BOUNDS[x.dtype])  # gradients of several windows add up
    torch.testing.assert_close(device.grad.cpu(), host.grad, rtol=bound, atol=4 * bound, equal_nan=True)


SIZES = [(2, 2, 0, 1), (3, 2, 1, 1), ((3, 2), (1, 3), (1, 0), (2, 1)), (3, 3, 0, 2), ((1, 4), None, (0, 2), 1)]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("size,step,pad,dilation", SIZES)
def test_max(size, step, pad, dilation, ceil, dtype, native):
    if dtype in (torch.float16, torch.bfloat16) and ceil:
        pytest.skip("once is enough")
    x = torch.randint(-4, 5, (2, 3, 9, 11)).to(dtype)  # ties
    both(lambda t: F.max_pool2d(t, size, step, pad, dilation, ceil, return_indices=True), x, 0)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("ceil,count_pad,divisor", list(itertools.product([False, True], [False, True], [None, 3])))
@pytest.mark.parametrize("size,step,pad", [s[:3] for s in SIZES])
def test_average(size, step, pad, ceil, count_pad, divisor, dtype, native):
    if dtype in (torch.float16, torch.bfloat16) and (ceil or divisor):
        pytest.skip("once is enough")
    both(lambda t: F.avg_pool2d(t, size, step, pad, ceil, count_pad, divisor), torch.randn(2, 3, 9, 11).to(dtype), BOUNDS[dtype])


def test_numbers_that_are_not_finite(native):
    x = torch.randn(1, 2, 6, 6)
    x[0, 0, 1, 1], x[0, 0, 3, 3], x[0, 1] = float("nan"), float("inf"), float("-inf")
    for args in ((2, 2), (3, 1, 1), (3, 2, 1, 2)):
        both(lambda t, args=args: F.max_pool2d(t, *args, return_indices=True), x, 0)
        if len(args) < 4:
            both(lambda t, args=args: F.avg_pool2d(t, *args), x, 1e-6)


def test_other_shapes(native):
    both(lambda t: F.max_pool2d(t, 2), torch.randn(3, 8, 8), 0)
    both(lambda t: F.avg_pool1d(t, 3, 2, 1), torch.randn(2, 3, 9), 1e-6)
    both(lambda t: F.max_pool1d(t, 3, 2, 1), torch.randn(2, 3, 9), 0)
    both(lambda t: F.max_pool2d(t.permute(0, 3, 1, 2), 3, 2, 1), torch.randn(2, 9, 8, 3), 0)
    both(lambda t: F.avg_pool2d(t[:, :, ::2], 2), torch.randn(2, 3, 16, 8), 1e-6)
    for size in (1, 2, (4, 2), (None, 1)):
        both(lambda t, size=size: F.adaptive_avg_pool2d(t, size), torch.randn(2, 3, 8, 4), 1e-6)
    both(lambda t: F.adaptive_avg_pool2d(t, 2), torch.randn(3, 8, 4), 1e-6)


def test_results_of_the_callers(native):
    x = torch.randn(1, 2, 6, 6)
    whole = torch.zeros(1, 2, 3, 3, 2, device="clutch")
    torch._C._nn.avg_pool2d(x.to("clutch"), 2, out=whole[..., 0])
    torch.testing.assert_close(whole[..., 0].cpu(), F.avg_pool2d(x, 2))
    assert whole[..., 1].abs().sum().item() == 0


def test_others_are_the_cpus():
    x = torch.randn(1, 2, 30, 30)
    torch.testing.assert_close(F.max_pool2d(x.to("clutch"), 9).cpu(), F.max_pool2d(x, 9))
    torch.testing.assert_close(F.adaptive_avg_pool2d(x.to("clutch"), 7).cpu(), F.adaptive_avg_pool2d(x, 7))
    assert len(torch.clutch.fallbacks()) == 2
    for bad in (lambda t: F.max_pool2d(t, 2, padding=2), lambda t: F.avg_pool2d(t, 40), lambda t: F.max_pool2d(t[0, 0], 2), lambda t: F.avg_pool2d(t, 2, divisor_override=0)):
        with pytest.raises(RuntimeError):
            bad(x.to("clutch"))


def test_graphs(native):
    x = torch.randn(2, 3, 8, 8, device="clutch")
    wanted = F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2)
    stream = torch.Stream("clutch")
    torch.accelerator.synchronize()
    graph = torch.accelerator.Graph()
    with stream, graph:
        got = F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2)
    graph.replay()
    torch.accelerator.synchronize()
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(got, wanted))
