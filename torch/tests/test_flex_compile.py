# SPDX-License-Identifier: Apache-2.0
"""flex_attention under torch.compile(backend="clutch"), op by op and by graphs: the bits of eager calls, forward and backward."""
import warnings

import pytest
import torch
import torch.nn.attention.flex_attention as flex
from torch import nn

from torch_clutch import compile as clutch_compile

WAYS = {
    "plain": {},
    "reduce-overhead": dict(mode="reduce-overhead"),
    "host": dict(options={"graph": "host"}),
    "native": dict(options={"graph": "native"}),
    "fused": dict(options={"graph": "fused"}),
}
HEADS, LENGTH, SIZE = 2, 48, 16


@pytest.fixture(autouse=True)
def no_dense_scores():
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*all scores are kept in memory.*")
        yield


def prefix_lm(length):
    return flex.or_masks(lambda b, h, q, kv: kv < length, lambda b, h, q, kv: q >= kv)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.into, self.out = nn.Linear(HEADS * SIZE, 3 * HEADS * SIZE), nn.Linear(HEADS * SIZE, 4)
        self.bias = nn.Parameter(torch.randn(HEADS, 2 * LENGTH - 1))
        self.rotated = nn.Parameter(torch.randn(2, HEADS, LENGTH, 4))

    def forward(self, x, block_mask):
        q, k, v = self.into(x).unflatten(-1, (3, HEADS, SIZE)).permute(2, 0, 3, 1, 4)
        bias, (ours, theirs) = self.bias, self.rotated.unbind()

        def mod(s, b, h, q, kv):
            return 5 * torch.tanh(s / 5) + bias[h, q - kv + LENGTH - 1] + torch.dot(ours[h, q], theirs[h, kv]) / 4

        return self.out(flex.flex_attention(q, k, v, score_mod=mod, block_mask=block_mask).transpose(1, 2).flatten(-2))


def trained(call, model, block_mask, steps=6):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    generator = torch.Generator().manual_seed(5)
    for _ in range(steps):
        x = torch.randn(3, LENGTH, HEADS * SIZE, generator=generator).to("clutch")
        optimizer.zero_grad()
        loss = call(x, block_mask).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in model.parameters()]


@pytest.mark.parametrize("way", WAYS)
def test_training(way):
    first = clutch_compile.regions_compiled()
    block_mask = flex.create_block_mask(prefix_lm(10), 1, 1, LENGTH, LENGTH, device="clutch", BLOCK_SIZE=16)
    model = Attention().to("clutch")
    wanted, parameters = trained(model, model, block_mask)
    assert wanted[-1] < wanted[0]
    model = Attention().to("clutch")
    torch.clutch.reset_fallbacks()
    with torch.clutch.forbid_fallbacks():
        got, others = trained(torch.compile(model, backend="clutch", fullgraph=True, **WAYS[way]), model, block_mask)
    torch.testing.assert_close(got, wanted, rtol=2e-6, atol=0)
    for a, b in zip(others, parameters):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=2e-6)
    parts = [part for part in torch.clutch.compile_report() if part["number"] >= first]
    assert sum(part["replays"] for part in parts) == (0 if way == "plain" else 8)  # 4 of 6 steps, forward and backward


@pytest.mark.parametrize("way", WAYS)
def test_masks_of_tensors_that_change(way):
    """Lengths are read when the kernel runs: a graph that was recorded sees later ones."""

    def attend(q, k, v, lengths):
        mask = flex.create_block_mask(lambda b, h, i, j: j < lengths[b], 2, 1, LENGTH, LENGTH, device="clutch", BLOCK_SIZE=16)
        return flex.flex_attention(q, k, v, block_mask=mask)

    call = torch.compile(attend, backend="clutch", **WAYS[way])
    for step in range(4):
        q, k, v = (torch.randn(2, HEADS, LENGTH, SIZE, device="clutch") for _ in range(3))
        lengths = torch.tensor([LENGTH - step, 7 * step + 1], device="clutch")
        allowed = (torch.arange(LENGTH) < lengths.cpu()[:, None])[:, None, None]
        wanted = torch.nn.functional.scaled_dot_product_attention(q.cpu(), k.cpu(), v.cpu(), attn_mask=allowed)
        torch.testing.assert_close(call(q, k, v, lengths).cpu(), wanted, rtol=0, atol=1e-5)


def test_numbers_that_a_mod_captured():
    """With sizes that vary a captured number is an argument of the graph."""

    def attend(q, k, v):
        window = q.size(2) // 3
        return flex.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where((i - j).abs() <= window, s, -float("inf")))

    call = torch.compile(attend, backend="clutch", dynamic=True)
    for length in (32, 45, 60):
        q, k, v = (torch.randn(1, HEADS, length, SIZE, device="clutch", requires_grad=True) for _ in range(3))
        call(q, k, v).sum().backward()
        i = torch.arange(length)
        allowed = (i[:, None] - i).abs() <= length // 3
        host = [t.detach().cpu().requires_grad_() for t in (q, k, v)]
        wanted = torch.nn.functional.scaled_dot_product_attention(*host, attn_mask=allowed)
        wanted.sum().backward()
        torch.testing.assert_close(call(q, k, v).detach().cpu(), wanted.detach(), rtol=0, atol=1e-5)
        for a, b in zip((q, k, v), host):
            torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=0, atol=3e-5)
