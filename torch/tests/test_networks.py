# SPDX-License-Identifier: Apache-2.0
"""Training steps of whole networks beside the CPU's, and fused optimizers beside PyTorch's own."""
import copy
import inspect

import pytest
import torch
import torch.nn.functional as F
from networks import Gpt, Llama
from torch import nn


class Lstm(nn.Module):
    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.tokens, self.cells, self.head = nn.Embedding(64, 16), kind(16, 32, num_layers=2, batch_first=True), nn.Linear(32, 64)

    def forward(self, tokens):
        return self.head(self.cells(self.tokens(tokens))[0])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.tokens, self.layers, self.head = nn.Embedding(64, 32), nn.TransformerEncoder(layer, 2), nn.Linear(32, 64)

    def forward(self, tokens):
        return self.head(self.layers(self.tokens(tokens)))


NETS = {"gpt": Gpt, "llama": Llama, "lstm": Lstm, "gru": lambda: Lstm(nn.GRU), "encoder": Encoder}


@pytest.mark.parametrize("name", NETS)
def test_training_without_the_cpu_has_its_losses(name, native):
    torch.manual_seed(0)
    host = NETS[name]()
    device = copy.deepcopy(host).to("clutch")
    tokens = torch.randint(0, 64, (4, 17))
    losses = {}
    for net, where in ((host, "cpu"), (device, "clutch")):
        optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
        x = tokens.to(where)
        steps = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            steps.append(loss.item())
        losses[where] = torch.tensor(steps)
    assert losses["cpu"][-1] < 0.9 * losses["cpu"][0]
    torch.testing.assert_close(losses["clutch"], losses["cpu"], rtol=2e-4, atol=2e-5)


def test_graph_network(native):
    torch.manual_seed(0)
    nodes, edges = 30, 120
    index = torch.randint(0, nodes, (2, edges))
    x, w = torch.randn(nodes, 8), torch.randn(8, 8, requires_grad=True)

    def run(x, w, index):
        messages = (x @ w)[index[0]] if x.device.type == "cpu" else torch.index_select(x @ w, 0, index[0])
        sums = torch.zeros(nodes, 8, device=x.device).index_add(0, index[1], messages)
        degree = torch.zeros(nodes, device=x.device).scatter_add(0, index[1], torch.ones(edges, device=x.device))
        return (F.leaky_relu(sums / degree.clamp(min=1)[:, None])).log_softmax(-1)

    wanted = run(x, w, index)
    wanted.square().sum().backward()
    moved = w.detach().to("clutch").requires_grad_()
    got = run(x.to("clutch"), moved, index.to("clutch"))
    got.square().sum().backward()
    torch.testing.assert_close(got.cpu(), wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(moved.grad.cpu(), w.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [
    (torch.optim.Adam, dict(lr=0.1, weight_decay=0.01)),
    (torch.optim.Adam, dict(lr=0.1, amsgrad=True, maximize=True)),
    (torch.optim.AdamW, dict(lr=0.1, weight_decay=0.1)),
    (torch.optim.AdamW, dict(lr=torch.tensor(0.1), amsgrad=True)),
    (torch.optim.SGD, dict(lr=0.1)),
    (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01)),
    (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, maximize=True)),
    (torch.optim.Adagrad, dict(lr=0.1, lr_decay=0.01, weight_decay=0.01)),
], ids=lambda o: o[0].__name__)
def test_fused_steps(options, native):
    cls, kwargs = options
    assert "fused" in inspect.signature(cls).parameters
    params = {}
    for where in ("cpu", "clutch"):
        torch.manual_seed(0)
        params[where] = [nn.Parameter(torch.randn(shape, dtype=torch.float64 if where == "cpu" else torch.float64).to(torch.float32).to(where))
                         for shape in ((3, 4), (7,), (2, 2, 2))]
        mine = {k: (v.to(where) if isinstance(v, torch.Tensor) else v) for k, v in kwargs.items()}
        optimizer = cls(params[where], fused=where == "clutch", **mine)
        generator = torch.Generator().manual_seed(1)
        for _ in range(5):
            for p in params[where]:
                p.grad = torch.randn(p.shape, generator=generator).to(where)
            optimizer.step()
    for a, b in zip(params["clutch"], params["cpu"]):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=2e-5, atol=2e-6)


def test_eigh_with_gradients(native):
    a = torch.randn(5, 6, 6, dtype=torch.float64)
    a = (a + a.mT).requires_grad_()
    moved = a.detach().to("clutch").requires_grad_()
    w, v = torch.linalg.eigh(a)
    w2, v2 = torch.linalg.eigh(moved)
    torch.testing.assert_close(w2.cpu(), w, rtol=1e-12, atol=1e-12)
    (w.square().sum() + (v.abs() * torch.arange(6.0)).sum()).backward()
    (w2.square().sum() + (v2.abs() * torch.arange(6.0, device="clutch")).sum()).backward()
    torch.testing.assert_close(moved.grad.cpu(), a.grad, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(torch.linalg.eigvalsh(moved).cpu(), w.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gqa,mask,dropout", [(False, None, 0), (True, None, 0), (False, "bool", 0), (True, "float", 0), (False, None, 0.4)])
def test_attention(gqa, mask, dropout, native):
    q = torch.randn(2, 4, 33, 16)
    k, v = (torch.randn(2, 2 if gqa else 4, 33, 16) for _ in range(2))
    given = None if mask is None else torch.rand(33, 33) > 0.2 if mask == "bool" else torch.randn(2, 1, 33, 33)
    device = [t.to("clutch").requires_grad_() for t in (q, k, v)]
    out = F.scaled_dot_product_attention(*device, attn_mask=None if given is None else given.to("clutch"), enable_gqa=gqa, dropout_p=dropout)
    host = [t.clone().requires_grad_() for t in (q, k, v)]
    if dropout:
        # The weights that were kept, by values that are unit vectors; then the same numbers give the same result.
        torch.clutch.manual_seed_all(5)
        F.scaled_dot_product_attention(*device, dropout_p=dropout).sum().backward()
        first = device[2].grad.clone()
        device[2].grad = None
        torch.clutch.manual_seed_all(5)
        F.scaled_dot_product_attention(*device, dropout_p=dropout).sum().backward()
        assert torch.equal(first, device[2].grad)
        assert abs(out.mean().item() - F.scaled_dot_product_attention(*host).mean().item()) < 0.05
        return
    wanted = F.scaled_dot_product_attention(*host, attn_mask=given, enable_gqa=gqa)
    grad = torch.randn_like(wanted)
    torch.testing.assert_close(out.cpu(), wanted, rtol=1e-5, atol=4e-6)
    wanted.backward(grad)
    out.backward(grad.to("clutch"))
    for a, b in zip(device, host):
        torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-4, atol=1e-5)


def test_an_encoder_takes_a_batch_of_nothing():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to("clutch").eval()
    with torch.no_grad():
        assert layer(torch.rand(0, 4, 8, device="clutch")).shape == (0, 4, 8)
