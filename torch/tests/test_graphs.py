# SPDX-License-Identifier: Apache-2.0
"""torch.accelerator.Graph: whole steps of training, with the bits of eager ones."""
import threading

import pytest
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(16, 32)
        self.qkv = torch.nn.Linear(32, 96)
        self.norm = torch.nn.LayerNorm(32)
        self.out = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 16))

    def forward(self, tokens):
        x = self.embed(tokens)
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, 4, 8).permute(2, 0, 3, 1, 4)
        x = x + torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, 32)
        return self.out(x)


def make():
    torch.manual_seed(0)
    net = Net().to("clutch")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, fused=True)
    tokens = torch.randint(0, 16, (4, 9)).to("clutch")
    torch.accelerator.synchronize()  # another stream goes on with them
    return net, optimizer, tokens


def step(net, optimizer, tokens):
    optimizer.zero_grad(set_to_none=False)
    logits = net(tokens[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss


@pytest.mark.parametrize("backend", ["host", "fused"])
def test_a_training_step_replayed_has_eager_bits(native, backend):
    net, optimizer, tokens = make()
    stream = torch.Stream("clutch")
    torch.clutch.manual_seed_all(1)
    with stream:
        eager = [step(net, optimizer, tokens).item() for _ in range(7)]
    wanted = [p.detach().cpu() for p in net.parameters()]

    net, optimizer, tokens = make()
    torch.clutch.manual_seed_all(1)
    with stream:
        replayed = [step(net, optimizer, tokens).item() for _ in range(2)]
    torch.accelerator.synchronize()
    graph = torch.clutch.Graph(backend=backend)
    with stream, graph:
        loss = step(net, optimizer, tokens)
    for _ in range(5):
        graph.replay()
        torch.accelerator.synchronize()
        replayed.append(loss.item())
    assert eager[-1] < 0.9 * eager[0]
    assert replayed == eager
    for a, b in zip(net.parameters(), wanted):
        assert torch.equal(a.detach().cpu(), b)
    report = graph.report()
    assert report["backend"] == backend and report["replays"] == 5 and report["nodes"] == len(graph.nodes())
    assert (report["launches"] < report["nodes"], report["groups"] > 0) == ((True, True) if backend == "fused" else (False, False))


def test_random_numbers_move_on():
    x = torch.empty(4, device="clutch")
    x.uniform_()
    torch.accelerator.synchronize()
    graph = torch.accelerator.Graph()
    with torch.Stream("clutch"), graph:
        x.uniform_()
    seen = []
    for _ in range(3):
        graph.replay()
        torch.accelerator.synchronize()
        seen.append(tuple(x.tolist()))
    assert len(set(seen)) == 3


def test_a_fallback_cannot_be_captured():
    x = torch.eye(3, device="clutch")
    torch.accelerator.synchronize()
    with pytest.raises(NotImplementedError, match="aten::linalg_cholesky_ex.L.*a graph cannot record"):
        with torch.Stream("clutch"), torch.accelerator.Graph():
            torch.linalg.cholesky(x)
    assert (x + 1).sum().item() == 12


def test_pools_modes_and_dumps(tmp_path):
    x = torch.ones(1000, device="clutch")
    (x * 2).add_(1)
    torch.accelerator.synchronize()
    first = torch.accelerator.Graph(keep_graph=True)
    first.enable_debug_mode()
    stream = torch.Stream("clutch")
    with stream, first:
        y = x * 2
    second = torch.accelerator.Graph(pool=first.pool(), capture_error_mode="relaxed")
    with stream, second:
        z = x + 1
    first.replay()
    torch.accelerator.synchronize()
    assert y[0].item() == 2
    second.replay()
    torch.accelerator.synchronize()
    assert z[0].item() == 2
    first.debug_dump(str(tmp_path / "graph.dot"))
    assert "digraph" in (tmp_path / "graph.dot").read_text()
    first.reset()


@pytest.mark.parametrize("mode", ["default", "global", "thread_local", "relaxed"])
def test_capture_modes(mode):
    x = torch.arange(6.0, device="clutch")
    graph, stream = torch.accelerator.Graph(capture_error_mode=mode), torch.Stream("clutch")
    (x * 2 + 1).sum()
    torch.accelerator.synchronize()
    with stream, graph:
        y = (x * 2 + 1).sum()
    x.fill_(3)
    graph.replay()
    torch.accelerator.synchronize()
    assert y.item() == 42


def test_another_thread_works_on_during_a_capture_of_this_one():
    """Its launches on its own stream are neither refused nor recorded."""
    x, other = torch.ones(8, device="clutch"), torch.ones(8, device="clutch")
    (x * 2).add_(1)
    torch.accelerator.synchronize()
    graph, seen = torch.accelerator.Graph(capture_error_mode="thread_local"), []

    def work():
        with torch.Stream("clutch"):
            seen.append(other.add_(1).sum().item())

    with torch.Stream("clutch"), graph:
        y = x * 2
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        z = y + 1
    assert seen == [16.0]
    graph.replay()
    torch.accelerator.synchronize()
    assert z.sum().item() == 24 and other.sum().item() == 16


def layers():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 4)).to("clutch")


def trained_by(call, net, steps=6):
    """Losses and parameters of some steps of SGD in which `call` is the model."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.clutch.manual_seed_all(7)
    generator, losses = torch.Generator().manual_seed(1), []
    for _ in range(steps):
        x = torch.randn(16, 8, generator=generator).to("clutch")
        optimizer.zero_grad()
        loss = call(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in net.parameters()]


@pytest.mark.parametrize("backend", ["", "fused"])
def test_a_graphed_module_has_eager_bits(native, backend):
    wanted, parameters = trained_by(net := layers(), net)
    net = layers()
    graphed = torch.clutch.make_graphed_callables(net, (torch.randn(16, 8, device="clutch"),), backend=backend)
    assert graphed is net
    assert backend != "fused" or all(g.report()["groups"] > 0 for g in net.graphs)
    got, others = trained_by(graphed, net)
    assert got == wanted and len(set(got)) == len(got)
    assert all(torch.equal(a, b) for a, b in zip(others, parameters))
    # In evaluation it runs as before, with any batch.
    net.eval()
    assert net(torch.randn(3, 8, device="clutch")).shape == (3, 4)


def test_graphed_functions_share_a_pool_and_give_gradients_of_their_inputs(native):
    def first(x, y):
        return x * y, x.detach() + 1

    def second(z):
        return z.exp().sum()

    samples = [torch.randn(5, device="clutch", requires_grad=True) for _ in range(3)]
    one, two = torch.clutch.make_graphed_callables((first, second), ((samples[0], samples[1]), (samples[2],)))
    for seed in range(3):
        torch.manual_seed(seed)
        host = [torch.randn(5, requires_grad=True) for _ in range(2)]
        device = [t.detach().to("clutch").requires_grad_() for t in host]
        product, plus = one(*device)
        assert not plus.requires_grad and torch.equal(plus.cpu(), host[0].detach() + 1)
        two(product).backward()
        second(first(*host)[0]).backward()
        for a, b in zip(device, host):
            torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-6, atol=1e-6)


def test_what_cannot_be_graphed_says_so():
    x = torch.ones(3, device="clutch")
    with pytest.raises(TypeError, match="tensors alone"):
        torch.clutch.make_graphed_callables(lambda a, n: a * n, (x, 2))
    net = torch.nn.Linear(3, 3).to("clutch")
    net.register_forward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="no hooks"):
        torch.clutch.make_graphed_callables(net, (x,))
    graphed = torch.clutch.make_graphed_callables(lambda a: a + 1, (x,))
    with pytest.raises(TypeError, match="structure"):
        graphed(x, x)


def test_the_backend_of_graphs(tmp_path):
    x = torch.randn(8, device="clutch")
    (x * 2 + 1).tanh()
    torch.accelerator.synchronize()
    stream = torch.Stream("clutch")
    with torch.clutch.graph_backend("fused"):
        plain, ours = torch.accelerator.Graph(), torch.clutch.Graph()
    other = torch.clutch.Graph(backend="host")
    for graph in (plain, ours, other):
        with stream, graph:
            y = (x * 2 + 1).tanh()
        graph.replay()
        torch.accelerator.synchronize()
        assert torch.equal(y.cpu(), (x * 2 + 1).tanh().cpu())
    assert (ours.report()["launches"], ours.report()["groups"], other.report()["launches"]) == (1, 1, 3)
    assert {n["op"] for n in ours.nodes()} and all("why" in n for n in ours.nodes())
    ours.save(tmp_path / "graph.safetensors", {"x": x})
    assert (tmp_path / "graph.safetensors").stat().st_size > 0
    with pytest.raises(ValueError, match="must be used by a node"):
        ours.save(tmp_path / "other.safetensors", {"z": torch.ones(3, device="clutch")})
    with pytest.raises(ValueError, match="no-such-backend"):
        torch.clutch.Graph(backend="no-such-backend")


def test_annotations_name_nodes_of_forward_and_backward(native):
    net = torch.nn.Linear(4, 4, device="clutch")
    x = torch.ones(2, 4, device="clutch")
    net(x).sum().backward()
    graph = torch.clutch.Graph(enable_annotations=True)
    torch.accelerator.synchronize()
    with torch.Stream("clutch"):
        with graph:
            with torch.clutch.mark_kernels("forward"):
                loss = net(x).sum()
                with torch.clutch.mark_kernels({"str": "scale", "factor": 2}):
                    loss = loss * 2
            with torch.clutch.mark_kernels("backward"):
                loss.backward()
            x + 1
    names = [tuple(a["name"] for a in node["annotations"]) for node in graph.nodes()]
    assert ("forward",) in names and ("forward", "scale") in names and ("backward",) in names and names[-1] == ()
    assert set(names) == {("forward",), ("forward", "scale"), ("backward",), ()}
    assert next(n for n in graph.nodes() if len(n["annotations"]) == 2)["annotations"][1] == {"name": "scale", "factor": 2}


def test_graphs_take_other_tensors_and_numbers_and_come_back_from_files(native, tmp_path):
    x, w = torch.arange(4.0).to("clutch"), torch.ones(4, device="clutch")
    x * w, torch.add(x, w, alpha=3.0)
    graph = torch.clutch.Graph(backend="host")
    stream = torch.Stream("clutch")
    torch.accelerator.synchronize()
    with stream:
        with graph:
            y = x * w
            z = torch.addcmul(x, x, w, value=3.0)
    other = torch.full((4,), 2.0, device="clutch")
    graph.replay()
    torch.accelerator.synchronize()
    assert y.tolist() == [0, 1, 2, 3]
    graph.replay([(w, other)])
    torch.accelerator.synchronize()
    assert y.tolist() == [0, 2, 4, 6] and z.tolist() == [0, 7, 14, 21]
    graph.replay()
    torch.accelerator.synchronize()
    assert y.tolist() == [0, 1, 2, 3]
    graph.save(tmp_path / "graph.safetensors", {"x": x, "y": y})
    graph.rebind([(w, other)])
    graph.replay()
    torch.accelerator.synchronize()
    assert y.tolist() == [0, 2, 4, 6]
    node = next(i for i, n in enumerate(graph.nodes()) if any(a.get("value") == "3" for a in n["arguments"]))
    name = next(a["name"] for a in graph.nodes()[node]["arguments"] if a.get("value") == "3")
    graph.update(node, **{name: 5})
    graph.replay()
    torch.accelerator.synchronize()
    assert z.tolist() == [0, 11, 22, 33]
    with pytest.raises(ValueError):
        graph.rebind([(torch.ones(4, device="clutch"), other)])
    loaded = torch.clutch.load_graph(tmp_path / "graph.safetensors")
    loaded.tensors["x"].copy_(torch.arange(4.0) + 1)
    loaded.replay()
    torch.accelerator.synchronize()
    assert loaded.tensors["y"].tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeError):
        torch.clutch.load_graph(tmp_path / "none")
