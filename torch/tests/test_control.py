# SPDX-License-Identifier: Apache-2.0
"""torch.cond, torch.while_loop and torch.clutch.switch: the device decides, in eager calls, captures and compiled functions."""
import pytest
import torch
from torch._higher_order_ops.while_loop import while_loop


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.fixture
def no_reads(monkeypatch):
    """A number of the device must not be read by the host while it holds."""
    allowed = []

    def checked(name):
        plain = getattr(torch.Tensor, name)

        def read(self):
            if not allowed and self.device.type == "clutch":
                raise AssertionError("a number was read by the host")
            return plain(self)

        monkeypatch.setattr(torch.Tensor, name, read)

    checked("__bool__"), checked("item")
    return allowed


def captured(step):
    """The step as a graph; it has run before."""
    stream = torch.Stream("clutch")
    torch.accelerator.synchronize()
    with stream:
        step()
    torch.accelerator.synchronize()
    graph = torch.clutch.Graph()
    with stream, graph:
        result = step()
    return graph, result


def after(graph, result):
    graph.replay()
    torch.accelerator.synchronize()
    return result.cpu()


def cube(x, y):
    return x * x * x, y + 1


def sine(x, y):
    return torch.sin(x), y * 2


@pytest.mark.parametrize("backend", ["host", "fused"])
def test_both_branches_after_one_capture(native, backend):
    x, y, flag = torch.randn(7, device="clutch"), torch.randn(3, 2, device="clutch"), torch.tensor(True, device="clutch")
    with torch.no_grad(), torch.clutch.graph_backend(backend):
        graph, result = captured(lambda: torch.cond(flag, cube, sine, (x, y)))
    assert graph.report()["backend"] == backend
    for value in (True, False, True):
        flag.fill_(value)
        x.uniform_()
        torch.accelerator.synchronize()
        graph.replay()
        torch.accelerator.synchronize()
        for got, wanted in zip(result, (cube if value else sine)(x, y)):
            assert torch.equal(got.cpu(), wanted.cpu())


def test_eager_calls_read_nothing(native, no_reads):
    x, y = torch.randn(7, device="clutch"), torch.randn(3, 2, device="clutch")
    for value in (True, False):
        flag = torch.tensor(value, device="clutch")
        got = torch.cond(flag, cube, sine, (x, y))
        no_reads.append(True)
        assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(got, (cube if value else sine)(x, y)))
        no_reads.clear()


def test_nested(native):
    outer, inner, x = (torch.tensor(v, device="clutch") for v in (True, True, 2.0))

    def decide():
        return torch.cond(outer, lambda v: torch.cond(inner, lambda v: v + 1, lambda v: v + 10, (v,)), lambda v: v * 100, (x,))

    with torch.no_grad():
        graph, result = captured(decide)
    for a, b, wanted in ((True, True, 3), (True, False, 12), (False, True, 200), (False, False, 200)):
        outer.fill_(a), inner.fill_(b)
        torch.accelerator.synchronize()
        assert after(graph, result).item() == wanted


def test_draws_happen_only_where_taken(native):
    flag, x = torch.tensor(False, device="clutch"), torch.zeros(4, device="clutch")

    def drawn(v):
        return v + torch.rand(4, device="clutch")

    torch.clutch.manual_seed_all(5)
    wanted = torch.rand(4, device="clutch").cpu()
    for value in (False, True):
        torch.clutch.manual_seed_all(5)
        flag.fill_(value)
        torch.cond(flag, drawn, lambda v: v.clone(), (x,))
        following = torch.rand(4, device="clutch").cpu()
        assert torch.equal(following, wanted) == (not value)


def test_gradients(native):
    def loss_of(flag, x, w):
        return torch.cond(flag, lambda x, w: (x @ w).sin(), lambda x, w: x @ w * 3 + x, (x, w)).square().sum()

    host = torch.randn(5, 5), torch.randn(5, 5)
    for value in (True, False):
        leaves = [t.to("clutch").requires_grad_() for t in host]
        loss_of(torch.tensor(value, device="clutch"), *leaves).backward()
        plain = [t.to("clutch").requires_grad_() for t in host]
        x, w = plain
        ((x @ w).sin() if value else x @ w * 3 + x).square().sum().backward()
        for a, b in zip(leaves, plain):
            assert torch.equal(a.grad.cpu(), b.grad.cpu())


def test_a_captured_step_with_gradients(native):
    flag, w = torch.tensor(True, device="clutch"), torch.randn(5, 5, device="clutch", requires_grad=True)
    x = torch.randn(3, 5, device="clutch")
    w.grad = torch.zeros_like(w)

    def step():
        w.grad.zero_()
        torch.cond(flag, lambda x, w: (x @ w).sin(), lambda x, w: x @ w * 3, (x, w)).square().sum().backward()
        return w.grad

    graph, _ = captured(step)
    for value in (False, True):
        flag.fill_(value)
        twin = w.detach().clone().requires_grad_()
        ((x @ twin).sin() if value else x @ twin * 3).square().sum().backward()
        torch.accelerator.synchronize()
        assert torch.equal(after(graph, w.grad), twin.grad.cpu())


def test_compiled_functions_have_both_branches(native):
    def function(x):
        return torch.cond(x.sum() > 0, lambda v: v.exp(), lambda v: v - 1, (x * 2,)) + 1

    call = torch.compile(function, backend="clutch", options={"graph": "fused", "warm_ups": 0})
    x = torch.rand(6, device="clutch")
    with torch.no_grad():
        for given in (x, -x, x, -x):
            assert torch.equal(call(given).cpu(), (((given * 2).exp() if given.sum() > 0 else given * 2 - 1) + 1).cpu())
    part = torch.clutch.compile_report()[-1]
    assert (part["captures"], part["replays"], part["plain_calls"]) == (1, 3, 0)


def test_strides_and_results_that_are_operands(native):
    x = torch.randn(3, 4, device="clutch")
    for value in (True, False):
        got = torch.ops.higher_order.cond(torch.tensor(value, device="clutch"), lambda v: (v.mT * 2,), lambda v: (v.mT + 1,), (x,))[0]
        assert got.stride() == (1, 4) and torch.equal(got.cpu(), (x.mT * 2 if value else x.mT + 1).cpu())
        got = torch.ops.higher_order.cond(torch.tensor(value, device="clutch"), lambda v: (v,), lambda v: (v * 0,), (x,))[0]
        assert got.data_ptr() != x.data_ptr() and torch.equal(got.cpu(), (x if value else x * 0).cpu())


def test_a_branch_of_the_cpu_is_decided_by_the_host():
    x = torch.eye(3, device="clutch") * 4

    def factor(v):
        return torch.linalg.cholesky(v).sum(-1)

    for value in (True, False):
        got = torch.cond(torch.tensor(value, device="clutch"), factor, lambda v: v.sum(-1), (x,))
        assert got.tolist() == [2 if value else 4] * 3
    flag = torch.tensor(True, device="clutch")
    with torch.no_grad(), pytest.raises((NotImplementedError, RuntimeError), match="cholesky"):
        stream = torch.Stream("clutch")
        torch.accelerator.synchronize()
        with stream, torch.clutch.Graph():
            torch.cond(flag, factor, lambda v: v.sum(-1), (x,))
    assert (x + 1).sum().item() == 21


def halve(count, x):
    return count + 1, x / 2


def large(count, x):
    return (x.max() > 1).all()


def host_loop(x):
    count = 0
    while x.max() > 1:
        count, x = count + 1, x / 2
    return count, x


def test_loops_of_the_device(native):
    x = torch.tensor([3.0, 9.0], device="clutch")
    zero = torch.zeros((), dtype=torch.int64, device="clutch")
    with torch.no_grad(), torch.clutch.max_iterations(9) as loops:
        graph, (count, result) = captured(lambda: while_loop(large, halve, (zero, x)))
    assert len(loops.iterations) == 2
    for values in ([3.0, 9.0], [0.5, 0.25], [300.0, 1.0]):
        x.copy_(torch.tensor(values))
        torch.accelerator.synchronize()
        graph.replay()
        torch.accelerator.synchronize()
        wanted = host_loop(torch.tensor(values))
        assert count.item() == wanted[0] == loops.iterations[-1].item()
        assert torch.equal(result.cpu(), wanted[1])


def test_eager_loops_with_a_bound_and_without(native, no_reads):
    x = torch.tensor([3.0, 9.0], device="clutch")
    zero = torch.zeros((), dtype=torch.int64, device="clutch")
    with torch.no_grad():
        with torch.clutch.max_iterations(10):
            count, result = while_loop(large, halve, (zero, x))
        no_reads.append(True)
        assert count.item() == 4 and result[1].item() == 9 / 16
        with torch.clutch.max_iterations(2) as loops:
            count, result = while_loop(large, halve, (zero, x))
        assert count.item() == 2 == loops.iterations[0].item()
        count, result = while_loop(large, halve, (zero, x))  # the host reads
        assert count.item() == 4


def test_a_captured_loop_must_have_a_bound(native):
    x, zero = torch.tensor([3.0, 9.0], device="clutch"), torch.zeros((), dtype=torch.int64, device="clutch")
    with torch.no_grad(), pytest.raises(RuntimeError, match="must have a bound"):
        captured(lambda: while_loop(large, halve, (zero, x)))
    assert x.sum().item() == 12
    with pytest.raises(ValueError, match="max_iterations"), torch.clutch.max_iterations(-1):
        pass


def test_switch(native):
    x, index = torch.randn(4, device="clutch"), torch.tensor(0, device="clutch")
    branches = [lambda v: v + 1, lambda v: v * 2, torch.exp]
    graph, result = captured(lambda: torch.clutch.switch(index, branches, (x,)))
    for at in (0, 2, 1, -3, 8):
        index.fill_(at)
        torch.accelerator.synchronize()
        assert torch.equal(after(graph, result), branches[min(max(at, 0), 2)](x).cpu()), at
    with pytest.raises(ValueError, match="at least one"):
        torch.clutch.switch(index, [])
    with pytest.raises(TypeError, match="device clutch"):
        torch.clutch.switch(index, branches, (torch.ones(2),))
    with pytest.raises(RuntimeError, match="no gradient"):
        torch.clutch.switch(index, branches, (x.clone().requires_grad_(),))
    with pytest.raises((ValueError, RuntimeError, NotImplementedError), match="branch|results"):
        torch.clutch.switch(index, [lambda v: v, lambda v: v[:2]], (x,))
    assert torch.equal((x + 0).cpu(), x.cpu())
