# SPDX-License-Identifier: Apache-2.0
"""Convolutions of 1 to 3 dimensions, transposed ones and their gradients beside the CPU's."""
import copy
import itertools

import pytest
import torch
import torch.nn.functional as F

KINDS = [(dims, transposed) for dims in (1, 2, 3) for transposed in (False, True)]


def calls(dims, transposed):
    """The arguments of each call: kernels, strides, padding, dilation and groups in all combinations that PyTorch takes."""
    for kernel, stride, padding, dilation, groups in itertools.product((1, 2, 3), (1, 2, 3), (0, 1), (1, 2), (1, 2, 4)):
        if transposed and padding and kernel == 1:
            continue
        options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
        if transposed and stride > 1:
            options["output_padding"] = 1
        yield kernel, options


@pytest.mark.parametrize("dims,transposed", KINDS)
def test_convolutions_with_gradients(dims, transposed, native):
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{dims}d")
    count = 0
    for kernel, options in calls(dims, transposed):
        groups = options["groups"]
        x = torch.randn(2, 4, *(9, 8, 7)[:dims], requires_grad=True)
        weight = torch.randn(4 if transposed else 8, (8 if transposed else 4) // groups, *[kernel] * dims, requires_grad=True)
        bias = torch.randn(8, requires_grad=True) if count % 2 else None
        count += 1
        host = [x, weight, bias]
        device = [None if t is None else t.detach().to("clutch").requires_grad_() for t in host]
        wanted, got = function(*host, **options), function(*device, **options)
        torch.testing.assert_close(got.detach().cpu(), wanted.detach(), rtol=1e-4, atol=1e-5, msg=lambda text: f"{kernel} {options}: {text}")
        grad = torch.randn_like(wanted)
        wanted.backward(grad)
        got.backward(grad.to("clutch"))
        for a, b in zip(device, host):
            if a is not None:
                torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-4, atol=1e-4, msg=lambda text: f"{kernel} {options}: {text}")
    assert count > 80


@pytest.mark.parametrize("dtype,bound", [(torch.float64, 1e-12), (torch.float16, 5e-3), (torch.bfloat16, 4e-2)])
def test_dtypes(dtype, bound, native):
    """Beside f64: one rounding of the result, and of each gradient, whatever the dtype of sums is."""
    layer = torch.nn.Conv2d(4, 6, 3, padding=1).to(dtype)
    x = torch.randn(2, 4, 9, 8, dtype=dtype)
    exact, device = copy.deepcopy(layer).double(), copy.deepcopy(layer).to("clutch")
    inputs = x.double().clone().requires_grad_(), x.to("clutch").requires_grad_()
    grad = torch.randn(2, 6, 9, 8, dtype=dtype)
    exact(inputs[0]).backward(grad.double())
    device(inputs[1]).backward(grad.to("clutch"))
    pairs = [(inputs[1].grad, inputs[0].grad), *((p.grad, q.grad) for p, q in zip(device.parameters(), exact.parameters()))]
    for a, b in pairs:
        assert (a.cpu().double() - b).abs().max() <= bound * b.abs().max()


def test_a_batch_without_images_and_whole_numbers_go_to_the_cpu():
    weight = torch.ones(3, 2, 2, 2, device="clutch")
    assert F.conv2d(torch.empty(0, 2, 4, 4, device="clutch"), weight).shape == (0, 3, 3, 3)
    x = torch.ones(1, 2, 4, 4, device="clutch", dtype=torch.int64)
    assert (F.conv2d(x, weight.long()).cpu() == 8).all()
    assert torch.clutch.fallbacks() == {"aten::convolution_overrideable": 1}


def test_errors_are_pytorchs():
    with pytest.raises(RuntimeError, match="expected input.* to have 3 channels"):
        F.conv2d(torch.ones(1, 2, 4, 4, device="clutch"), torch.ones(1, 3, 2, 2, device="clutch"))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        F.conv2d(torch.ones(1, 1, 2, 2, device="clutch"), torch.ones(1, 1, 3, 3, device="clutch"))
