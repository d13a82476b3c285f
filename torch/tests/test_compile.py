# SPDX-License-Identifier: Apache-2.0
"""torch.compile with the backend `clutch`, as it is and by graphs, fused ones too: eager bits, however results live and inputs move."""
import copy
import gc

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_clutch import compile as clutch_compile

GRAPHED = {"reduce-overhead": dict(mode="reduce-overhead"), "host": dict(options={"graph": "host"}), "fused": dict(options={"graph": "fused"})}
WAYS = {"plain": {}} | GRAPHED


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    gc.collect()


@pytest.fixture
def parts():
    """What has been compiled in the test, as torch.clutch.compile_report() gives it."""
    first = clutch_compile.regions_compiled()
    return lambda: [part for part in torch.clutch.compile_report() if part["number"] >= first]


def total(parts, what):
    return sum(part[what] for part in parts())


def fused_alone(parts):
    """Groups and launches of the parts that replay."""
    return sum(c["groups"] for part in parts() for c in part["classes"]), sum(c["launches"] for part in parts() for c in part["classes"]), sum(
        c["nodes"] for part in parts() for c in part["classes"])


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


@pytest.mark.parametrize("way", WAYS)
def test_training(way, native, parts):
    model = net()
    wanted, parameters = trained(model, model)
    model = net()
    got, others = trained(model, torch.compile(model, backend="clutch", **WAYS[way]))
    assert got == wanted
    assert all(torch.equal(a, b) for a, b in zip(others, parameters))
    assert total(parts, "replays") == (0 if way == "plain" else 12)  # 6 of 8 steps, forward and backward: the first one runs as it is, the second is recorded
    assert total(parts, "plain_calls") == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_pytorchs_own_backends(backend, native):
    model = net()
    wanted, parameters = trained(model, model)
    model = net()
    got, others = trained(model, torch.compile(model, backend=backend, fullgraph=True))
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)  # aot_eager takes some ops apart
    for a, b in zip(others, parameters):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
    if backend == "eager":
        assert got == wanted


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "clutch"])
def test_compiled_autograd(backend, native):
    """The backward is a graph of its own, with the hooks of parameters within."""
    calls = []

    def taken(graph, inputs):
        calls.append(len(list(graph.graph.nodes)))
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    results = []
    for compiled in (False, True):
        torch._dynamo.reset()
        model = net()
        model[0].weight.register_hook(lambda gradient: gradient * 0.5)
        for seed in range(3):
            x = torch.randn(16, 8, generator=torch.Generator().manual_seed(seed)).to("clutch")
            torch.clutch.manual_seed_all(seed)
            loss = model(x).square().mean()
            if compiled:
                with torch._dynamo.compiled_autograd._enable(torch.compile(backend=taken)):
                    loss.backward()
            else:
                loss.backward()
        results.append([p.grad.cpu() for p in model.parameters()])
    assert calls and max(calls) > 10
    for a, b in zip(*results):
        torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", ["aot_eager", "clutch"])
def test_compiled_autograd_of_a_compiled_step(backend, native):
    """By PyTorch's setting, for a backward() within what is compiled."""
    captures = torch._dynamo.utils.counters["compiled_autograd"]
    captures.clear()
    results = []
    for compiled in (False, True):
        torch._dynamo.reset()
        model = net()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)

        def step(x):
            loss = model(x).square().mean()
            loss.backward()
            return loss

        with torch._dynamo.config.patch(compiled_autograd=compiled):
            call = torch.compile(step, backend=backend) if compiled else step
            torch.clutch.manual_seed_all(3)
            losses = []
            for seed in range(6):
                optimizer.zero_grad()
                losses.append(call(torch.randn(16, 8, generator=torch.Generator().manual_seed(seed)).to("clutch")).item())
                optimizer.step()
        results.append(losses)
        assert (captures["captures"] > 0) == compiled
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)
    assert results[0][-1] < results[0][0]


@pytest.mark.parametrize("way", GRAPHED)
def test_results_outlive_the_next_call(way, native, parts):
    model = net().eval()
    call = torch.compile(model, backend="clutch", **GRAPHED[way])
    inputs = [torch.randn(5, 8, device="clutch") for _ in range(6)]
    with torch.no_grad():
        kept = [call(x) for x in inputs]
        wanted = [model(x) for x in inputs]
    assert total(parts, "replays") == 4
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(kept, wanted))


@pytest.mark.parametrize("way", GRAPHED)
def test_two_forwards_before_their_backwards(way, native, parts):
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to("clutch")
    twin = copy.deepcopy(model)
    call = torch.compile(model, backend="clutch", **GRAPHED[way])
    for _ in range(6):
        x, y = torch.randn(4, 8, device="clutch"), torch.randn(4, 8, device="clutch")
        (call(x).sum() * 2 + call(y).square().sum()).backward()
        (twin(x).sum() * 2 + twin(y).square().sum()).backward()
    assert total(parts, "replays") == 20  # of 24, since both calls of a step are of one class
    for a, b in zip(model.parameters(), twin.parameters()):
        assert torch.equal(a.grad.cpu(), b.grad.cpu())


@pytest.mark.parametrize("way", GRAPHED)
def test_inputs_that_move_and_other_shapes(way, native, parts):
    def function(x, y):
        return (x * y).sum(-1), x + 1

    call = torch.compile(function, backend="clutch", **GRAPHED[way], dynamic=False)
    fixed = torch.randn(6, 3, device="clutch")
    for step in range(14):
        x = fixed if step < 5 else torch.randn(6, 3, device="clutch")
        kept = torch.empty(100 + step, device="clutch")  # the next x lies elsewhere
        y = torch.randn(6, 3, device="clutch")
        for a, b in zip(call(x, y), function(x, y)):
            assert torch.equal(a.cpu(), b.cpu()), step
        del kept
    assert total(parts, "replays") == 12
    wide = torch.randn(2, 9, device="clutch")
    assert torch.equal(call(wide, wide)[0].cpu(), function(wide, wide)[0].cpu())


def test_what_cannot_be_recorded_runs_as_it_is(parts, caplog):
    def function(x):
        return torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(3, device=x.device))

    call = torch.compile(function, backend="clutch", mode="reduce-overhead")
    for _ in range(5):
        x = torch.randn(3, 3, device="clutch")
        assert torch.equal(call(x).cpu(), function(x).cpu())
    assert total(parts, "replays") == 0 and total(parts, "plain_calls") == 4 and "a graph cannot record" in caplog.text
    assert "cholesky" in parts()[0]["why"]


class Epilogue(nn.Module):
    """dropout(layer_norm(gelu(x w + b) + residual))"""

    def __init__(self, width):
        super().__init__()
        self.linear, self.norm, self.dropout = nn.Linear(width, width), nn.LayerNorm(width), nn.Dropout(0.2)

    def forward(self, x, residual):
        return self.dropout(self.norm(F.gelu(self.linear(x)) + residual))


class Rows(nn.Module):
    """softmax(relu(x) m + b)"""

    def __init__(self, width):
        super().__init__()
        self.m, self.b = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))

    def forward(self, x, residual):
        return torch.softmax(torch.relu(x) * self.m + self.b, -1) * residual


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.1))

    def forward(self, x, residual):
        n, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, 3, 4, w // 4).permute(1, 2, 0, 3).unsqueeze(1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).squeeze(0).transpose(0, 1).reshape(n, w))
        return x + self.inner(x) * residual


def steps_of(model, call, dtype, steps=5):
    """Losses, gradients of the inputs and parameters of some steps of training."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    torch.clutch.manual_seed_all(11)
    generator, seen = torch.Generator().manual_seed(2), []
    for _ in range(steps):
        x, residual = (torch.randn(12, 32, generator=generator).to("clutch", dtype).requires_grad_() for _ in range(2))
        optimizer.zero_grad()
        out = call(x, residual)
        out.float().square().mean().backward()
        optimizer.step()
        seen += [out.detach().cpu(), x.grad.cpu(), residual.grad.cpu()]
    return seen + [p.detach().cpu() for p in model.parameters()]


def test_attention_has_the_strides_that_were_traced(native):
    function = F.scaled_dot_product_attention
    for make in (lambda: torch.randn(2, 4, 5, 8, device="clutch"), lambda: torch.randn(2, 5, 4, 8, device="clutch").transpose(1, 2),
                 lambda: torch.randn(5, 2, 3, 4, 8, device="clutch")[:, :, 1].permute(1, 2, 0, 3)):
        q, k, v = (make().requires_grad_() for _ in range(3))
        out = function(q, k, v, is_causal=True)
        assert out.stride() == torch.empty_like(q).stride()
        grads = torch.autograd.grad(out.sum(), (q, k, v))
        assert all(g.stride() == torch.empty_like(x).stride() for g, x in zip(grads, (q, k, v)))
        host = [t.detach().cpu() for t in (q, k, v)]
        torch.testing.assert_close(out.cpu(), function(*host, is_causal=True), rtol=1e-5, atol=1e-5)
    narrow = torch.randn(2, 5, 4, 6, device="clutch").transpose(1, 2)
    assert function(q.detach(), k.detach(), narrow).stride() == (24, 6, 48, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("module", [Epilogue, Rows, Block])
def test_fused_steps_have_eager_bits(module, dtype, native, parts):
    torch.manual_seed(0)
    model = module(32).to("clutch", dtype)
    twin = copy.deepcopy(model)
    wanted = steps_of(twin, twin, dtype)
    got = steps_of(model, torch.compile(model, backend="clutch", fullgraph=True, **GRAPHED["fused"]), dtype)
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        assert torch.equal(a, b), i
    assert [part["what"] for part in parts()] == ["forward", "backward"] and total(parts, "replays") == 6
    groups, launches, nodes = fused_alone(parts)
    assert groups >= 1 and launches < nodes, [part["text"] for part in parts()]


def test_a_layer_is_compiled_once_for_all(native, parts):
    torch.manual_seed(0)
    layers = nn.ModuleList(Block(32) for _ in range(6)).to("clutch")
    twin = copy.deepcopy(layers)
    for layer in layers:
        layer.compile(backend="clutch", **GRAPHED["fused"])

    def run(layers):
        def call(x, residual):
            for layer in layers:
                x = layer(x, residual)
            return x

        return call

    wanted = steps_of(twin, run(twin), torch.float32, steps=3)
    got = steps_of(layers, run(layers), torch.float32, steps=3)
    assert all(torch.equal(a, b) for a, b in zip(got, wanted, strict=True))
    # One forward and one backward, each recorded once, replay for all six layers.
    assert [part["what"] for part in parts()] == ["forward", "backward"]
    assert [part["captures"] for part in parts()] == [1, 1]
    assert total(parts, "replays") == 2 * (3 * 6 - 2)


@pytest.mark.parametrize("way", GRAPHED)
def test_other_sizes_are_other_classes(way, native, parts):
    def function(x, scale):
        return (x * scale).relu().sum(-1) + x.shape[0]

    call = torch.compile(function, backend="clutch", dynamic=True, **GRAPHED[way])
    with torch.no_grad():
        for _ in range(3):
            for rows in (3, 7, 5):
                x, scale = torch.randn(rows, 8, device="clutch"), torch.randn(8, device="clutch")
                assert torch.equal(call(x, scale).cpu(), function(x, scale).cpu())
    assert len(parts()) == 1 and len(parts()[0]["classes"]) == 3 and total(parts, "captures") == 3 and total(parts, "replays") == 3


@pytest.mark.parametrize("way", GRAPHED)
def test_inputs_are_written(way, native, parts):
    def function(x, y):
        x.mul_(2).add_(y)
        y[1:].zero_()
        return x + y

    call = torch.compile(function, backend="clutch", **GRAPHED[way])
    with torch.no_grad():
        for _ in range(5):
            ours = [torch.randn(4, 3, device="clutch") for _ in range(2)]
            theirs = [t.clone() for t in ours]
            assert torch.equal(call(*ours).cpu(), function(*theirs).cpu())
            assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(ours, theirs))
    assert total(parts, "replays") == 3


@pytest.mark.parametrize("way", GRAPHED)
def test_arguments_that_share_memory_and_results_that_are_views(way, native):
    def function(x, y):
        return x, y[1:], (x + y).view(-1), (x * y).mT

    call = torch.compile(function, backend="clutch", **GRAPHED[way])
    with torch.no_grad():
        for step in range(8):
            x = torch.randn(3, 3, device="clutch")
            y = x if step % 2 else torch.randn(3, 3, device="clutch")
            got, wanted = call(x, y), function(x, y)
            for a, b in zip(got, wanted):
                assert a.stride() == b.stride() and torch.equal(a.cpu(), b.cpu())
            assert got[0] is x and got[1].data_ptr() == y[1:].data_ptr()


def test_writes_into_what_backward_needs_are_found(native):
    call = torch.compile(lambda x: x.exp(), backend="clutch", **GRAPHED["fused"])
    for step in range(4):
        x = torch.randn(4, device="clutch", requires_grad=True)
        y = call(x)
        if step != 2:
            y.sum().backward()
            assert torch.equal(x.grad.cpu(), y.detach().cpu())
            continue
        with torch.no_grad():
            y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_empty_and_strided_inputs(native):
    def function(x):
        return x * 2 + 1, x.sum()

    call = torch.compile(function, backend="clutch", dynamic=False, **GRAPHED["fused"])
    torch._dynamo.config.recompile_limit, former = 32, torch._dynamo.config.recompile_limit
    try:
        with torch.no_grad():
            for make in (lambda: torch.randn(4, 6, device="clutch")[:, ::2], lambda: torch.empty(0, 3, device="clutch"), lambda: torch.tensor(2.5, device="clutch"),
                         lambda: torch.randn(1, 3, device="clutch").expand(5, 3), lambda: torch.randn(2, 3, device="clutch").mT):
                for _ in range(4):
                    x = make()
                    for a, b in zip(call(x), function(x)):
                        assert a.stride() == b.stride() and torch.equal(a.cpu(), b.cpu())
    finally:
        torch._dynamo.config.recompile_limit = former


def test_host_reads_break_the_graph_or_run_plainly(parts):
    def function(x):
        y = x * 2
        return y[: int(y.abs().sum().item() >= 0) + 1] + 1

    call = torch.compile(function, backend="clutch", **GRAPHED["fused"])
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(4, device="clutch")
            assert torch.equal(call(x).cpu(), function(x).cpu())


def test_errors_of_the_function_are_its_own(native):
    def function(x, i):
        return x.index_select(0, i) * 2

    call = torch.compile(function, backend="clutch", **GRAPHED["fused"])
    x, i = torch.randn(4, device="clutch"), torch.tensor([1, 3], device="clutch")
    for _ in range(4):
        assert torch.equal(call(x, i).cpu(), function(x, i).cpu())
    with pytest.raises(Exception, match="got unknown|has the options"):
        torch.compile(lambda x: x + 1, backend="clutch", options={"unknown": 1})(x)
    with pytest.raises(Exception, match="no-such-backend"):
        torch.compile(lambda x: x + 2, backend="clutch", options={"graph": "no-such-backend"})(x)


def test_within_a_captured_graph(native, parts):
    model = Epilogue(32).to("clutch")
    call = torch.compile(model, backend="clutch", **GRAPHED["fused"])
    x, residual = (torch.randn(4, 32, device="clutch") for _ in range(2))
    with torch.no_grad():
        stream = torch.Stream("clutch")
        torch.accelerator.synchronize()
        with stream:
            call(x, residual)
        torch.accelerator.synchronize()
        graph = torch.clutch.Graph(backend="fused")
        with stream, graph:
            result = call(x, residual)
        for _ in range(3):
            x.uniform_()
            torch.accelerator.synchronize()
            state = torch.clutch.get_rng_state()
            graph.replay()
            torch.accelerator.synchronize()
            got = result.cpu()
            torch.clutch.set_rng_state(state)
            assert torch.equal(got, model(x, residual).cpu())
    assert total(parts, "inline_calls") == 1 and graph.report()["launches"] < graph.report()["nodes"]


def test_threads(native, parts):
    import threading

    call = torch.compile(lambda x: (x * 2).tanh() + x, backend="clutch", dynamic=False, **GRAPHED["fused"])
    # Dynamo compiles in one thread at a time: two at once may get programs of their own, or its error.
    with torch.no_grad():
        for _ in range(2):
            call(torch.randn(9, device="clutch"))
    torch.accelerator.synchronize()
    wrong = []

    def work(seed):
        stream = torch.Stream("clutch")
        with torch.no_grad(), stream:
            for i in range(20):
                x = torch.randn(9, generator=torch.Generator().manual_seed(seed * 100 + i)).to("clutch")
                if not torch.equal(call(x).cpu(), ((x * 2).tanh() + x).cpu()):
                    wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and total(parts, "replays") == 60


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "clutch"])
def test_streams_and_events_are_traced(backend, native):
    side = torch.Stream("clutch")

    def call(x):
        y, done = x * 2, torch.Event("clutch")
        with side:
            z = x + 1
            done.record(side)
        torch.accelerator.current_stream().wait_event(done)
        return y + z

    x = torch.arange(4.0).to("clutch")
    compiled = torch.compile(call, backend=backend, fullgraph=True)
    for _ in range(3):
        assert compiled(x).tolist() == [1, 4, 7, 10]


def test_dynamo_knows_the_device():
    import torch_clutch.compile  # noqa: F401
    from torch._dynamo.device_interface import get_interface_for_device

    of = get_interface_for_device("clutch")
    assert of.is_available() and of.device_count() == torch.clutch.device_count() and of.exchange_device(-1) == of.current_device() == 0
    assert of.is_dtype_supported(torch.bfloat16) and not of.is_triton_capable() and of.get_raw_stream(0) == 0
    assert of.get_device_properties("clutch").name == torch.clutch.get_device_name()
    before = of.memory_allocated()
    kept = torch.ones(1 << 16, device="clutch")
    assert of.memory_allocated() - before >= kept.nbytes
    side = torch.Stream("clutch")
    of._set_stream_by_id(side.stream_id, side.device_index, side.device_type)
    try:
        assert of.current_stream() == side
    finally:
        of.set_stream(torch.clutch.default_stream())
