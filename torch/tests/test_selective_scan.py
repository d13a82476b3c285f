# SPDX-License-Identifier: Apache-2.0
"""torch.clutch.selective_scan against its formula in float64, and Mamba as transformers publishes it."""
import pytest
import torch

BATCH, CHANNELS, LENGTH, STATES = 2, 21, 35, 5


def inputs(dtype=torch.float32, options=("D", "z", "delta_bias"), length=LENGTH):
    torch.manual_seed(3)
    given = dict(u=torch.randn(BATCH, CHANNELS, length).to(dtype), delta=(torch.rand(BATCH, CHANNELS, length) - 2).to(dtype), A=-3 * torch.rand(CHANNELS, STATES),
                 B=torch.randn(BATCH, STATES, length).to(dtype), C=torch.randn(BATCH, STATES, length).to(dtype), D=torch.randn(CHANNELS),
                 z=torch.randn(BATCH, CHANNELS, length).to(dtype), delta_bias=0.1 * torch.randn(CHANNELS))
    return {k: t for k, t in given.items() if k in ("u", "delta", "A", "B", "C") or k in options}


def run(given, device, dtype=None, weight=None, **options):
    """y, the last state, and gradients of all inputs."""
    at = {k: t.to(device=device, dtype=dtype or t.dtype).detach().requires_grad_() for k, t in given.items()}
    y, state = torch.clutch.selective_scan(**at, delta_softplus=True, return_last_state=True, **options)
    weight = weight.to(device=device, dtype=y.dtype)
    ((y * weight).sum() + state.sum()).backward()
    return [y, state] + [t.grad for t in at.values()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("options", [(), ("D",), ("z", "delta_bias"), ("D", "z", "delta_bias")])
def test_the_formula(dtype, options):
    given, weight = inputs(dtype, options), torch.randn(BATCH, CHANNELS, LENGTH).to(dtype)
    for mine, exact in zip(run(given, "clutch", weight=weight), run(given, "cpu", torch.float64, weight=weight)):
        eps = torch.finfo(mine.dtype).eps / 2
        assert mine.device.type == "clutch"
        torch.testing.assert_close(mine.cpu().double(), exact, rtol=1.01 * eps, atol=2**-15 * float(exact.detach().abs().max()))


def test_strides_and_no_gradient():
    given = inputs()
    y = torch.clutch.selective_scan(**{k: t.to("clutch") for k, t in given.items()}, delta_softplus=True)
    apart = {k: t.to("clutch").transpose(0, -1).contiguous().transpose(0, -1) for k, t in given.items()}
    assert torch.equal(y, torch.clutch.selective_scan(**apart, delta_softplus=True))
    assert y.shape == given["u"].shape


def test_a_step_is_recorded():
    given = {k: t.to("clutch").requires_grad_() for k, t in inputs().items()}

    def step():
        y = torch.clutch.selective_scan(**given, delta_softplus=True)
        return (y, *torch.autograd.grad(y.square().sum(), list(given.values())))

    want = [t.clone() for t in step()]
    graph = torch.accelerator.Graph()
    with graph:
        got = step()
    graph.replay()
    for a, b in zip(got, want):
        assert torch.equal(a, b)


def test_compiled():
    given = {k: t.to("clutch").requires_grad_() for k, t in inputs().items()}
    compiled = torch.compile(lambda **inputs: torch.clutch.selective_scan(**inputs, delta_softplus=True), backend="aot_eager", fullgraph=True)
    got, want = compiled(**given), torch.clutch.selective_scan(**given, delta_softplus=True)
    assert torch.equal(got, want)
    for a, b in zip(torch.autograd.grad(got.sum(), list(given.values())), torch.autograd.grad(want.sum(), list(given.values()))):
        assert torch.equal(a, b)


def test_bad_input():
    given = {k: t.to("clutch") for k, t in inputs().items()}
    with pytest.raises((RuntimeError, ValueError), match="b must have the shape"):
        torch.clutch.selective_scan(**given | dict(B=given["B"][:, :, 1:]))
    with pytest.raises((RuntimeError, TypeError), match="must be f32, f16 or bf16"):
        torch.clutch.selective_scan(**{k: t.double() for k, t in given.items()})
