# SPDX-License-Identifier: Apache-2.0
"""Complex numbers and wide unsigned integers on the device."""

import pytest
import torch

import torch_clutch  # noqa: F401

COMPLEX = [torch.complex64, torch.complex128]


def numbers(dtype, seed, *shape):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_arithmetic_runs_on_the_device(dtype, native):
    a, b = numbers(dtype, 1, 5, 7), numbers(dtype, 2, 7)
    x, y = a.to("clutch"), b.to("clutch")
    for f in (lambda p, q: p + q, lambda p, q: p - q, lambda p, q: p * q, lambda p, q: p / q, lambda p, q: p * (2 - 1j), lambda p, q: torch.add(p, q, alpha=1 + 2j),
              lambda p, q: -p, lambda p, q: p.reciprocal(), lambda p, q: p.exp(), lambda p, q: p.abs(), lambda p, q: p.conj() * q, lambda p, q: p.conj_physical(),
              lambda p, q: p == q, lambda p, q: p != q, lambda p, q: p.sum(), lambda p, q: p.mean(0), lambda p, q: p.real * q.imag, lambda p, q: p * q.real,
              lambda p, q: torch.complex(p.real, q.imag.expand(5, 7)), lambda p, q: torch.full_like(p, 1 - 3j),
              lambda p, q: torch.where(p.real > 0, p, q), lambda p, q: p.clone().masked_fill_(p.imag < 0, 2j)):
        torch.testing.assert_close(f(x, y).cpu(), f(a, b))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_gradients(dtype, native):
    a, b = (numbers(dtype, seed, 4, 3).requires_grad_() for seed in (3, 4))
    x, y = (t.detach().to("clutch").requires_grad_() for t in (a, b))
    for p, q in ((a, b), (x, y)):
        (p * q.conj() / (q + 2)).abs().sum().backward()
    torch.testing.assert_close(x.grad.cpu(), a.grad)
    torch.testing.assert_close(y.grad.cpu(), b.grad)


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_wide_unsigned_integers(dtype, native):
    top = torch.iinfo(dtype).max
    a = torch.tensor([0, 1, 2, top, top // 2 + 1], dtype=dtype)
    x = a.to("clutch")
    turned = lambda t: torch.cat([t[1:], t[:1]])  # noqa: E731
    for f in (lambda t: t * t, lambda t: t == turned(t), lambda t: t & turned(t), lambda t: t.sort()[0], lambda t: t.float(), lambda t: t + 0.5, lambda t: t.clone().fill_(5),
              lambda t: t[torch.tensor([3, 0], device=t.device)], lambda t: t[:3].float().to(dtype), lambda t: t.sum()):
        got, want = f(x), f(a)
        assert got.dtype == want.dtype and got.cpu().tolist() == want.tolist()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_shifts(dtype, native):
    info = torch.iinfo(dtype)
    x = torch.tensor([info.min, info.max, 0, 1, 5, 100]).to(dtype).unsqueeze(1)
    counts = torch.tensor([0, 1, 3, info.bits - 1, info.bits, 100, *([-1] if info.min < 0 else [])], dtype=dtype)
    y, c = x.to("clutch"), counts.to("clutch")
    for got, wanted in [
        (y << c, x << counts),
        (y >> c, x >> counts),
        (y << 2, x << 2),
        (y >> 2, x >> 2),
        (torch.bitwise_left_shift(y, c), torch.bitwise_left_shift(x, counts)),
        (torch.bitwise_right_shift(y, c), torch.bitwise_right_shift(x, counts)),
        (y.clone().__ilshift__(3), x.clone().__ilshift__(3)),
        (y.clone().__irshift__(3), x.clone().__irshift__(3)),
    ]:
        assert got.dtype == wanted.dtype and torch.equal(got.cpu(), wanted)
