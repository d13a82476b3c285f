# SPDX-License-Identifier: Apache-2.0
"""torch.compile with the backend `clutch`, as it is and by graphs: eager bits, however results live and inputs move."""
import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_clutch import compile as clutch_compile

MODES = [None, "reduce-overhead"]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.fixture
def replays(monkeypatch):
    """How many replays there were."""
    counted = []
    plain = clutch_compile.Replayed.replay
    monkeypatch.setattr(clutch_compile.Replayed, "replay", lambda self, values: counted.append(self) or plain(self, values))
    return counted


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 4)).to("clutch")


def trained(model, call, steps=8):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    torch.clutch.manual_seed_all(3)
    generator, losses = torch.Generator().manual_seed(1), []
    for _ in range(steps):
        x, labels = torch.randn(16, 8, generator=generator).to("clutch"), torch.randint(0, 4, (16,), generator=generator).to("clutch")
        optimizer.zero_grad()
        loss = F.cross_entropy(call(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [t.detach().cpu() for t in (*model.parameters(), *model.buffers())]


@pytest.mark.parametrize("mode", MODES)
def test_training(mode, native, replays):
    model = net()
    wanted, parameters = trained(model, model)
    model = net()
    got, others = trained(model, torch.compile(model, backend="clutch", mode=mode))
    assert got == wanted
    assert all(torch.equal(a, b) for a, b in zip(others, parameters))
    assert len(replays) == (0 if mode is None else 12)  # 6 of 8 steps, forward and backward


def test_results_outlive_the_next_call(native, replays):
    model = net().eval()
    call = torch.compile(model, backend="clutch", mode="reduce-overhead")
    inputs = [torch.randn(5, 8, device="clutch") for _ in range(6)]
    with torch.no_grad():
        kept = [call(x) for x in inputs]
        wanted = [model(x) for x in inputs]
    assert len(replays) == 4
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(kept, wanted))


def test_two_forwards_before_their_backwards(native, replays):
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to("clutch")
    twin = copy.deepcopy(model)
    call = torch.compile(model, backend="clutch", mode="reduce-overhead")
    for _ in range(6):
        x, y = torch.randn(4, 8, device="clutch"), torch.randn(4, 8, device="clutch")
        (call(x).sum() * 2 + call(y).square().sum()).backward()
        (twin(x).sum() * 2 + twin(y).square().sum()).backward()
    assert replays
    for a, b in zip(model.parameters(), twin.parameters()):
        assert torch.equal(a.grad.cpu(), b.grad.cpu())


def test_inputs_that_move_and_other_shapes(native, replays):
    def function(x, y):
        return (x * y).sum(-1), x + 1

    call = torch.compile(function, backend="clutch", mode="reduce-overhead", dynamic=False)
    fixed = torch.randn(6, 3, device="clutch")
    for step in range(14):
        x = fixed if step < 5 else torch.randn(6, 3, device="clutch")
        kept = torch.empty(100 + step, device="clutch")  # the next x lies elsewhere
        y = torch.randn(6, 3, device="clutch")
        for a, b in zip(call(x, y), function(x, y)):
            assert torch.equal(a.cpu(), b.cpu()), step
        del kept
    assert len(replays) >= 6
    wide = torch.randn(2, 9, device="clutch")
    assert torch.equal(call(wide, wide)[0].cpu(), function(wide, wide)[0].cpu())


def test_what_cannot_be_recorded_runs_as_it_is(replays, caplog):
    def function(x):
        return torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(3, device=x.device))

    call = torch.compile(function, backend="clutch", mode="reduce-overhead")
    for _ in range(5):
        x = torch.randn(3, 3, device="clutch")
        assert torch.equal(call(x).cpu(), function(x).cpu())
    assert not replays and "a graph cannot record" in caplog.text
