# SPDX-License-Identifier: Apache-2.0
"""Devices, memory, streams, events, random numbers, copies."""
import copy
import io
import threading
import time

import pytest
import torch


def test_the_device_is_the_accelerator():
    assert torch.accelerator.current_accelerator().type == "clutch"
    assert torch.accelerator.device_count() == torch.clutch.device_count() >= 1
    properties = torch.clutch.get_device_properties()
    assert properties.name and properties.total_memory > 1 << 20
    with torch.clutch.device(0):
        assert torch.clutch.current_device() == 0
    with pytest.raises(RuntimeError, match="clutch:99 does not exist"):
        torch.empty(1, device="clutch:99")
    with pytest.raises(ValueError, match="Expected a clutch device"):
        torch.clutch.set_device("cpu")


def test_memory_is_counted_and_given_back():
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    before = torch.accelerator.memory_allocated()
    x = torch.empty(1 << 20, device="clutch")
    assert torch.accelerator.memory_allocated() - before == x.nbytes
    assert torch.accelerator.max_memory_allocated() >= before + x.nbytes
    assert torch.accelerator.memory_stats()["allocated_bytes.all.current"] == before + x.nbytes
    torch.accelerator.reset_accumulated_memory_stats()
    assert torch.accelerator.memory_stats()["allocated_bytes.all.allocated"] == 0
    del x
    assert torch.accelerator.memory_allocated() == before
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total


def test_addresses_are_unique_and_taken_again():
    x = torch.empty(1000, device="clutch")
    y = torch.empty(1000, device="clutch")
    assert abs(x.data_ptr() - y.data_ptr()) > x.nbytes
    assert x[10:].data_ptr() == x.data_ptr() + 40
    freed = y.data_ptr()
    del y
    assert torch.empty(1000, device="clutch").data_ptr() == freed


def test_a_read_by_the_host_faults_at_a_known_place(run_python):
    ended = run_python("""
import ctypes, faulthandler, torch, torch_clutch
x = torch.ones(4, device='clutch')
low, high = (int(part, 16) for part in torch.clutch.address_range().strip('[)').split(', '))
assert low <= x.data_ptr() < high
print('in range', flush=True)
ctypes.c_float.from_address(x.data_ptr()).value
""")
    assert ended.returncode == -11 and "in range" in ended.stdout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
                                   torch.bool, torch.complex64, torch.uint16, torch.float8_e4m3fn])
def test_copies_keep_bits(dtype):
    def bits(tensor):
        return tensor.contiguous().view(torch.uint8)

    x = torch.randint(0, 2, (3, 5, 7)).to(dtype)
    for view in (lambda t: t, lambda t: t.transpose(0, 2), lambda t: t[:, ::2, 1:], lambda t: t.permute(2, 0, 1)[1:]):
        assert torch.equal(bits(view(x.to("clutch")).cpu()), bits(view(x)))
        target, wanted = torch.zeros_like(x).to("clutch"), torch.zeros_like(x)
        view(target).copy_(view(x))
        view(wanted).copy_(view(x))
        assert torch.equal(bits(target.cpu()), bits(wanted))


def test_copies_that_overlap_and_convert():
    x = torch.arange(10.0)
    d = x.to("clutch")
    d[..., :3] = d[..., -3:]
    x[..., :3] = x[..., -3:].clone()
    assert torch.equal(d.cpu(), x)
    strided = torch.zeros(4, 4, device="clutch")[:, ::2]
    strided.copy_(torch.arange(8).view(4, 2))
    assert strided.cpu().tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert torch.arange(3.0, device="clutch").to(torch.int64).tolist() == [0, 1, 2]


def test_lazy_conjugate_and_minus():
    x = torch.randn(5, dtype=torch.complex64)
    assert torch.equal(x.to("clutch").conj().cpu(), x.conj().resolve_conj())
    assert torch.equal(x.to("clutch").conj().imag.cpu(), x.conj().imag.resolve_neg())
    y = torch.empty(5, dtype=torch.complex64, device="clutch")
    y.conj().copy_(x)
    assert torch.equal(y.cpu(), x.conj().resolve_conj())
    # An op of the CPU that is given lazy results as they are, and writes them.
    a, b = 2 * torch.eye(3, dtype=torch.complex64), torch.randn(5, 3, dtype=torch.complex64)
    for lazy in (lambda t: t.conj(), lambda t: t.conj().transpose(0, 1)):
        results = []
        for device in ("cpu", "clutch"):
            out = lazy(torch.zeros(lazy(b).shape, dtype=b.dtype, device=device))
            assert torch.linalg.solve_triangular(a.to(device), b.to(device), upper=True, left=False, out=out) is out
            results.append(out.cpu().resolve_conj())
        assert torch.equal(*results) and torch.equal(results[0], b / 2)


def test_storages_views_and_resizing():
    x = torch.arange(24.0, device="clutch").view(2, 3, 4)
    assert x[:, 1:, ::2].transpose(0, 2).sum().item() == torch.arange(24.0).view(2, 3, 4)[:, 1:, ::2].sum().item()
    assert x.unfold(2, 2, 1).shape == (2, 3, 3, 2)
    y = torch.ones(4, device="clutch")
    y.resize_(8)
    assert y[:4].tolist() == [1, 1, 1, 1] and y.untyped_storage().nbytes() == 32
    out = torch.empty(0, device="clutch")
    torch.add(x, x, out=out)
    assert out.shape == x.shape
    assert torch.empty(0, device="clutch").data_ptr() == 0
    assert x.untyped_storage().device.type == "clutch"


def test_lazy_clones_have_memory_of_their_own_once_written():
    x = torch.arange(6.0, device="clutch")
    y, z = x._lazy_clone(), x._lazy_clone()
    assert (x + y).tolist() == [0, 2, 4, 6, 8, 10] and torch._C._is_cow_tensor(y)  # reading changes nothing
    y.add_(1)
    z[2:4].copy_(torch.tensor([8.0, 9.0]))
    w = x._lazy_clone()
    x.zero_()
    assert y.tolist() == [1, 2, 3, 4, 5, 6] and z.tolist() == [0, 1, 8, 9, 4, 5] and w.tolist() == [0, 1, 2, 3, 4, 5] and x.tolist() == [0] * 6
    assert not torch._C._is_cow_tensor(y) and not torch._C._is_cow_tensor(z)


def test_new_memory_is_filled_where_asked(native):
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.utils.deterministic.fill_uninitialized_memory
        for dtype in (torch.float32, torch.bfloat16):
            assert torch.empty(5, 3, dtype=dtype, device="clutch").isnan().all()
        assert torch.view_as_real(torch.empty(5, 3, dtype=torch.complex64, device="clutch"))[..., 0].isnan().all()
        for dtype in (torch.int64, torch.uint8, torch.int32):
            made = torch.empty_strided((4, 3), (1, 2), dtype=dtype, device="clutch")  # elements share memory
            assert made.cpu().eq(torch.iinfo(dtype).max).all()
        grown = torch.ones(3, device="clutch").resize_(8)
        assert grown[:3].tolist() == [1, 1, 1] and grown[3:].isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("batch,m,k,n", [(0, 2, 3, 4), (3, 0, 2, 4), (3, 2, 0, 4), (3, 2, 2, 0)])
def test_sums_of_products_without_elements(batch, m, k, n):
    c, a, b = torch.randn(m, n), torch.randn(batch, m, k), torch.randn(batch, k, n)
    ours = torch.addbmm(c.to("clutch"), a.to("clutch"), b.to("clutch"), beta=2)
    torch.testing.assert_close(ours.cpu(), torch.addbmm(c, a, b, beta=2))


def test_pickle_and_deepcopy():
    model = torch.nn.Linear(3, 3).to("clutch")
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["weight"].device.type == "clutch"
    assert torch.equal(loaded["weight"].cpu(), model.weight.detach().cpu())
    file.seek(0)
    assert torch.load(file, map_location="cpu")["bias"].device.type == "cpu"
    assert torch.equal(copy.deepcopy(model).weight.cpu(), model.weight.cpu())


def test_streams_and_events():
    stream = torch.Stream("clutch")
    start, end = (torch.Event("clutch", enable_timing=True) for _ in range(2))
    with stream:
        assert torch.accelerator.current_stream() == stream
        start.record()
        x = torch.ones(1 << 20, device="clutch") * 3
        end.record()
    torch.accelerator.current_stream().wait_event(end)
    end.synchronize()
    assert end.query() and start.elapsed_time(end) > 0
    assert (x + 1)[-1].item() == 4
    assert torch.accelerator.current_stream() != stream
    torch.accelerator.synchronize()
    assert stream.query()


def test_generators():
    g = torch.Generator("clutch").manual_seed(3)
    first = torch.randn(5, device="clutch", generator=g)
    state = g.get_state()
    second = torch.randn(5, device="clutch", generator=g)
    g.set_state(state)
    assert torch.equal(torch.randn(5, device="clutch", generator=g).cpu(), second.cpu()) and not torch.equal(first.cpu(), second.cpu())
    assert g.initial_seed() == 3 and g.device.type == "clutch"
    twin = g.clone_state()
    assert torch.equal(torch.rand(9, device="clutch", generator=g).cpu(), torch.rand(9, device="clutch", generator=twin).cpu())
    before = g.get_offset()
    torch.rand(64, device="clutch", generator=g)
    assert g.get_offset() == before + 4 * 16  # 16 blocks of four words
    torch.manual_seed(7)
    a = torch.rand(3, device="clutch")
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3, device="clutch").cpu(), a.cpu())
    with torch.random.fork_rng(device_type="clutch"):
        b = torch.rand(3, device="clutch")
    assert torch.equal(torch.rand(3, device="clutch").cpu(), b.cpu())
    state = torch.clutch.get_rng_state()
    c = torch.randint(0, 100, (8,), device="clutch")
    torch.clutch.set_rng_state(state)
    assert torch.equal(torch.randint(0, 100, (8,), device="clutch").cpu(), c.cpu())
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, device="clutch", generator=torch.Generator())


def test_distributions():
    n = 1 << 16
    for made, mean, deviation in (
        (torch.rand(n, device="clutch"), 0.5, 12**-0.5),
        (torch.randn(n, device="clutch"), 0, 1),
        (torch.empty(n, device="clutch").exponential_(2.0), 0.5, 0.5),
        (torch.empty(n, device="clutch").bernoulli_(0.3), 0.3, 0.21**0.5),
        (torch.empty(n, device="clutch").geometric_(0.25), 4, 12**0.5),
    ):
        made = made.double().cpu()
        assert abs(made.mean() - mean) < 5 * deviation / n**0.5
        assert abs(made.std() - deviation) < 0.05 * deviation


def test_copies_from_pinned_memory_do_not_wait(native):
    a = torch.rand(1200, 1200, device="clutch")
    numbers = torch.arange(1 << 20, dtype=torch.float32)

    def took(call):
        torch.accelerator.synchronize()
        start = time.perf_counter()
        call()
        between = time.perf_counter() - start
        torch.accelerator.synchronize()
        return between, time.perf_counter() - start

    def busy(host, non_blocking):
        x = a
        for _ in range(4):
            x = x @ a
        return host.to("clutch", non_blocking=non_blocking)

    busy(numbers.pin_memory(), True)
    kept = []
    returned, whole = took(lambda: kept.append(busy(numbers.pin_memory(), True)))  # nothing else holds the memory
    assert returned < whole / 2 and torch.equal(kept[0].cpu(), numbers)
    changed = numbers.clone()
    for host, non_blocking in ((changed, True), (changed.pin_memory(), False)):
        copy = busy(host, non_blocking)
        host.zero_()  # waited for
        assert torch.equal(copy.cpu(), numbers)
        changed.copy_(numbers)
    converted = busy(numbers.double(), False).float()
    assert torch.equal(converted.cpu(), numbers)


def test_flips_of_every_width(native):
    for dtype in (torch.bool, torch.uint8, torch.bfloat16, torch.float32, torch.int64, torch.complex64, torch.complex128):
        x = (torch.randn(3, 4, 5, dtype=torch.float64) * 3).to(dtype)
        for dims in ((0,), (1, 2), (-1,), (0, 1, 2)):
            for view in (x, x.transpose(0, 2), x[:, 1:, ::2]):
                assert torch.equal(view.to("clutch").flip(dims).cpu(), view.flip(dims))


def test_a_tensor_may_be_used_on_other_streams(native):
    x = torch.ones(1 << 16, device="clutch")
    side = torch.Stream("clutch")
    with side:
        y = x * 2
    x.record_stream(side)
    del x
    side.synchronize()
    assert y.sum().item() == 2 << 16


def test_pinned_memory():
    x = torch.ones(3).pin_memory()
    assert x.is_pinned() and not torch.ones(3).is_pinned()
    assert x.to("clutch", non_blocking=True).tolist() == [1, 1, 1]


def test_dlpack():
    x = torch.arange(6.0, device="clutch").view(2, 3)
    y = torch.clutch.from_dlpack(torch.clutch.to_dlpack(x))
    y += 1
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    host = torch.utils.dlpack.from_dlpack(torch.clutch.to_dlpack(x, host=True))
    assert host.device.type == "cpu" and torch.equal(host, x.cpu())
    assert torch.clutch.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(2))).device.type == "clutch"
    with pytest.raises(ValueError, match="dltensor"):
        torch.clutch.from_dlpack(object())


def test_autocast_and_scaler(native):
    model = torch.nn.Linear(8, 8).to("clutch")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("clutch", init_scale=256.0)
    with torch.autocast("clutch", torch.float16):
        y = model(torch.ones(2, 8, device="clutch"))
        assert y.dtype == torch.float16 and torch.nn.functional.softmax(y, -1).dtype == torch.float32
        loss = y.float().sum()
    before = model.weight.detach().clone()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.isfinite(model.weight).all() and not torch.equal(before, model.weight)
    model.weight.grad.fill_(float("inf"))
    kept = model.weight.detach().clone()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(kept, model.weight) and scaler.get_scale() == 128.0


def test_warm_up_changes_nothing():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).to("clutch")
    state = torch.clutch.get_rng_state()
    weights = model[0].weight.detach().clone()
    assert torch.clutch.warm_up(model, torch.ones(2, 4, device="clutch")) == {}
    assert torch.equal(weights, model[0].weight) and model[0].weight.grad is None
    assert torch.equal(torch.clutch.get_rng_state(), state)


def test_memory_snapshot(tmp_path):
    torch.clutch.record_memory_history()
    x = torch.ones(100, device="clutch")
    torch.clutch.dump_memory_snapshot(tmp_path / "memory.html")
    torch.clutch.record_memory_history(False)
    assert (tmp_path / "memory.html").stat().st_size > 1000 and x.sum().item() == 100


def test_memory_pools():
    def allocated(pool):
        return sum(segment["allocated_size"] for segment in pool.snapshot())

    pool = torch.clutch.MemPool()
    with torch.clutch.use_mem_pool(pool):
        x = torch.empty(1000, dtype=torch.uint8, device="clutch")
        thread = threading.Thread(target=lambda: torch.empty(1 << 21, dtype=torch.uint8, device="clutch"))
        thread.start()
        thread.join()
        peak = allocated(pool)
    outside = torch.empty(1000, dtype=torch.uint8, device="clutch")
    assert peak == allocated(pool) == 1024, "other threads allocate as ever"
    ident = pool.id
    del pool
    x.fill_(3)
    assert x.sum().item() == 3000 and outside.numel() == 1000, "a tensor outlives its pool"
    del x
    torch.accelerator.synchronize()
    torch.accelerator.empty_cache()
    assert torch.clutch.memory_snapshot(ident) == []
    with pytest.raises(RuntimeError, match="end_pool"):
        torch.ops.clutch.end_pool()


def test_memory_fraction():
    torch.clutch.set_per_process_memory_fraction(0.5)
    try:
        assert torch.clutch.get_per_process_memory_fraction() == torch.clutch.get_per_process_memory_fraction("clutch:0") == 0.5
        with pytest.raises(TypeError, match="float"):
            torch.clutch.set_per_process_memory_fraction(1)
        with pytest.raises(ValueError):
            torch.clutch.set_per_process_memory_fraction(1.5)
    finally:
        torch.clutch.set_per_process_memory_fraction(1.0)


def test_a_model_that_moves_keeps_its_parameters_and_shares_them():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
            self.head.weight = self.tokens.weight

    net = Tied()
    before = list(net.parameters())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)  # made before the model moves
    net.head.weight.grad = torch.ones(5, 3)
    net.to("clutch")
    assert net.head.weight is net.tokens.weight and [id(p) for p in net.parameters()] == [id(p) for p in before]
    assert net.head.weight.device.type == net.head.weight.grad.device.type == "clutch"
    wanted = net.head.weight.detach().cpu() - 0.5
    optimizer.step()
    assert torch.equal(net.tokens.weight.detach().cpu(), wanted)
    assert net.cpu().head.weight is net.tokens.weight and torch.equal(net.tokens.weight.detach(), wanted)
    x = torch.ones(2, device="clutch")
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = torch.ones(2, device="meta")


@pytest.mark.parametrize("inverse", [1.0, 0.3, 2.0**-16])
def test_gradients_are_unscaled_together(inverse, native):
    shapes = [(3,), (), (4, 5), (0,), (1000,)]
    grads = [torch.randn(s, dtype=d).to("clutch") for d in (torch.float32, torch.float16, torch.float64) for s in shapes]
    grads.append(torch.randn(6, 4).t().to("clutch"))
    scale, found = torch.tensor(inverse, device="clutch"), torch.zeros((), device="clutch")
    wanted = [g.cpu().clone() for g in grads]
    host_found = torch.zeros(())
    torch._amp_foreach_non_finite_check_and_unscale_(wanted, host_found, torch.tensor(inverse))
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
    assert found.item() == 0
    for a, b in zip(grads, wanted):
        assert torch.equal(a.cpu(), b)
    for bad in (float("inf"), float("nan")):
        found.zero_()
        grads[4][7] = bad
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
        assert found.item() == 1
