# SPDX-License-Identifier: Apache-2.0
"""What each rank of test_distributed.py runs: `mpirun -np 2 python distributed_ranks.py FOLDER CASE...`. A rank writes how each case ended to FOLDER/rank<r>.json.
Results are compared with gloo's on the CPU from the same inputs: of two ranks a sum is one addition, so that floats are equal in all bits, too."""
import json
import os
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

CASES = {}
TIMEOUT = 120  # seconds of a call: kernels are built at their first use, and ranks wait for each other meanwhile


def case(f):
    CASES[f.__name__] = f
    return f


def rank():
    return dist.get_rank()


def values(*shape, dtype=torch.float32, seed=0, of=None):
    """This rank's numbers, or those of another one, on the CPU."""
    generator = torch.Generator().manual_seed(1000 * seed + (rank() if of is None else of))
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 100, shape, generator=generator).to(dtype)


def equal(a, b):
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            equal(x, y)
        return
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
    torch.testing.assert_close(a.cpu(), b.cpu(), rtol=0, atol=0, equal_nan=True)


def both(f):
    """f gives the same on clutch's device and on the CPU."""
    equal(f("clutch"), f("cpu"))


def raised(error, f, *parts):
    try:
        f()
    except error as e:
        for part in parts:
            assert part in str(e), (part, str(e))
        return
    raise AssertionError(f"no {error.__name__}")


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32, torch.int64]
SHAPES = [(5,), (3, 4), (), (0,), (17, 33)]


@case
def broadcast():
    for dtype in DTYPES:
        for shape in SHAPES:
            for root in (0, 1):

                def f(device):
                    x = values(*shape, dtype=dtype).to(device)
                    dist.broadcast(x, root)
                    return x

                both(f)
    for dtype in (torch.bool, torch.complex64, torch.int16, torch.float8_e4m3fn, torch.uint16):
        x = values(4, 3, dtype=torch.float32, of=rank()).to(dtype).to("clutch")
        dist.broadcast(x, 1)
        equal(x.view(torch.uint8), values(4, 3, dtype=torch.float32, of=1).to(dtype).view(torch.uint8))


@case
def all_reduce():
    ops = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
    for dtype in DTYPES:
        for op in ops + ([] if dtype.is_floating_point else [dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR]):
            for shape in SHAPES:

                def f(device):
                    x = values(*shape, dtype=dtype).to(device)
                    dist.all_reduce(x, op)
                    return x

                both(f)
    x = values(10, dtype=torch.complex64).to("clutch")
    dist.all_reduce(x)
    equal(x, values(10, dtype=torch.complex64, of=0) + values(10, dtype=torch.complex64, of=1))
    x = values(10, dtype=torch.bool).to("clutch")
    dist.all_reduce(x, dist.ReduceOp.MAX)
    equal(x, values(10, dtype=torch.bool, of=0) | values(10, dtype=torch.bool, of=1))


@case
def all_reduce_by_factors():
    total = values(1000, of=0) + values(1000, of=1)
    x = values(1000).to("clutch")
    dist.all_reduce(x, dist.ReduceOp.AVG)
    equal(x, total / 2)
    for factor in (0.25, torch.tensor(0.25)):
        x = values(1000).to("clutch")
        dist.all_reduce(x, dist._make_nccl_premul_sum(factor))
        equal(x, total * 0.25)


@case
def all_reduce_coalesced():
    def f(device):
        xs = [values(*shape, seed=i).to(device) for i, shape in enumerate(SHAPES)]
        dist.all_reduce_coalesced(xs)
        return xs

    both(f)
    xs = [values(3).to("clutch"), values(4, dtype=torch.int32).to("clutch")]  # which PyTorch's own function refuses
    dist.distributed_c10d._get_default_group().allreduce_coalesced(xs).wait()
    equal(xs, [values(3, of=0) + values(3, of=1), values(4, dtype=torch.int32, of=0) + values(4, dtype=torch.int32, of=1)])


@case
def reduce():
    for root in (0, 1):

        def f(device):
            x = values(7, 3).to(device)
            dist.reduce(x, root)
            return x if rank() == root else []

        both(f)


@case
def all_gather():
    for dtype in DTYPES:
        for shape in SHAPES:

            def f(device):
                outs = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(2)]
                dist.all_gather(outs, values(*shape, dtype=dtype).to(device))
                return outs

            both(f)
    # Of different sizes, which gloo does not have.
    outs = [torch.zeros(2 + 3 * r, 2, device="clutch") for r in range(2)]
    dist.all_gather(outs, values(2 + 3 * rank(), 2).to("clutch"))
    equal(outs, [values(2 + 3 * r, 2, of=r) for r in range(2)])


@case
def all_gather_into_tensor():
    for shape in SHAPES[:2] + SHAPES[3:]:

        def f(device):
            out = torch.zeros(2 * shape[0], *shape[1:], device=device)
            dist.all_gather_into_tensor(out, values(*shape).to(device))
            return out

        both(f)
    stacked = torch.zeros(2, 3, 4, device="clutch")
    dist.all_gather_into_tensor(stacked, values(3, 4).to("clutch"))
    equal(stacked, torch.stack([values(3, 4, of=r) for r in range(2)]))


@case
def gather_and_scatter():
    for root in (0, 1):
        for shape in SHAPES:

            def gathered(device):
                outs = [torch.zeros(shape, device=device) for _ in range(2)] if rank() == root else None
                dist.gather(values(*shape).to(device), outs, root)
                return outs or []

            def scattered(device):
                out = torch.zeros(shape, device=device)
                dist.scatter(out, [values(*shape, seed=i).to(device) for i in range(2)] if rank() == root else None, root)
                return out

            both(gathered)
            both(scattered)


@case
def reduce_scatter():
    for dtype in DTYPES:

        def f(device):
            out = torch.zeros(3, 4, dtype=dtype, device=device)
            dist.reduce_scatter(out, [values(3, 4, dtype=dtype, seed=i).to(device) for i in range(2)])
            return out

        def one(device):
            out = torch.zeros(3, 4, dtype=dtype, device=device)
            dist.reduce_scatter_tensor(out, values(6, 4, dtype=dtype).to(device))
            return out

        both(f)
        both(one)
    out = torch.zeros(2 + 3 * rank(), device="clutch")
    dist.reduce_scatter(out, [values(2 + 3 * i, seed=i).to("clutch") for i in range(2)])
    equal(out, values(len(out), seed=rank(), of=0) + values(len(out), seed=rank(), of=1))


@case
def coalesced():
    def f(device):
        sums = [values(4, seed=i).to(device) for i in range(3)]
        with dist._coalescing_manager():
            for x in sums:
                dist.all_reduce(x)
        return sums

    both(f)
    outs, parts = [torch.zeros(2 * n, 3, device="clutch") for n in (1, 4)], [torch.zeros(n, 3, device="clutch") for n in (1, 4)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for out in outs:
            dist.all_gather_into_tensor(out, values(len(out) // 2, 3, seed=len(out)).to("clutch"))
    manager.wait()
    equal(outs, [torch.cat([values(len(out) // 2, 3, seed=len(out), of=r) for r in range(2)]) for out in outs])
    with dist._coalescing_manager():
        for part in parts:
            dist.reduce_scatter_tensor(part, values(2 * len(part), 3, seed=len(part)).to("clutch"))
    for part in parts:
        total = values(2 * len(part), 3, seed=len(part), of=0) + values(2 * len(part), 3, seed=len(part), of=1)
        equal(part, total.chunk(2)[rank()])
    # Calls of one block, one by one.
    x, y = values(4).to("clutch"), torch.zeros(8, device="clutch")
    with dist._coalescing_manager(device=torch.device("clutch"), async_ops=True) as manager:
        dist.distributed_c10d._get_default_group().allreduce([x])
        dist.distributed_c10d._get_default_group()._allgather_base(y, values(4).to("clutch"))
    manager.wait()
    equal([x, y], [values(4, of=0) + values(4, of=1), torch.cat([values(4, of=0), values(4, of=1)])])


@case
def all_to_all():
    def single(device):
        out = torch.zeros(6, 3, device=device)
        dist.all_to_all_single(out, values(6, 3).to(device))
        return out

    both(single)
    sends = [[1, 3], [2, 4]]  # rows of each rank to each rank

    def splits(device):
        out = torch.zeros(sum(sends[r][rank()] for r in range(2)), 3, device=device)
        dist.all_to_all_single(out, values(sum(sends[rank()]), 3).to(device), [sends[r][rank()] for r in range(2)], sends[rank()])
        return out

    both(splits)
    outs = [torch.zeros(sends[r][rank()], 2, device="clutch") for r in range(2)]
    dist.all_to_all(outs, [values(n, 2, seed=i).to("clutch") for i, n in enumerate(sends[rank()])])
    equal(outs, [values(sends[r][rank()], 2, seed=rank(), of=r) for r in range(2)])
    # Splits on one rank alone.
    out = torch.zeros(4, device="clutch")
    dist.all_to_all_single(out, values(4).to("clutch"), *([[2, 2], [2, 2]] if rank() == 0 else []))
    equal(out, torch.cat([values(4, of=r).chunk(2)[rank()] for r in range(2)]))


@case
def messages():
    other = 1 - rank()

    def f(device):
        got = torch.zeros(5, device=device)
        if rank() == 0:
            dist.send(values(5).to(device), 1)
            dist.recv(got, 1)
        else:
            dist.recv(got, 0)
            dist.send(values(5).to(device), 0)
        return got

    both(f)
    # Both send before either receives, with tags in another order.
    sent = [dist.isend(values(3, seed=tag).to("clutch"), other, tag=tag) for tag in (1, 2)]
    got = {tag: torch.zeros(3, device="clutch") for tag in (2, 1)}
    for work in [dist.irecv(x, other, tag=tag) for tag, x in got.items()] + sent:
        work.wait()
    equal([got[1], got[2]], [values(3, seed=tag, of=other) for tag in (1, 2)])
    if rank() == 0:
        dist.send(values(4).to("clutch"), 1)
    else:
        x = torch.zeros(4, device="clutch")
        assert dist.recv(x) == 0
        equal(x, values(4, of=0))
    x = torch.zeros(4, device="clutch")
    ops = [dist.P2POp(dist.isend, values(4).to("clutch"), other), dist.P2POp(dist.irecv, x, other)]
    for work in dist.batch_isend_irecv(ops if rank() == 0 else ops[::-1]):
        work.wait()
    equal(x, values(4, of=other))


@case
def messages_to_oneself():
    group = dist.distributed_c10d._get_default_group()
    for seed in (1, 2):
        group.send([values(3, seed=seed).to("clutch")], rank(), 5)
    got = [torch.zeros(3, device="clutch") for _ in range(2)]
    for x in got:
        group.recv([x], rank(), 5).wait()
    equal(got, [values(3, seed=seed) for seed in (1, 2)])
    x, y = torch.zeros(4, device="clutch"), torch.zeros(4, device="clutch")
    ops = [dist.P2POp(dist.irecv, x, rank()), dist.P2POp(dist.irecv, y, 1 - rank())]
    ops += [dist.P2POp(dist.isend, values(4, seed=to).to("clutch"), to) for to in range(2)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    equal([x, y], [values(4, seed=rank()), values(4, seed=rank(), of=1 - rank())])


@case
def barrier():
    begin = time.monotonic()
    if rank() == 1:
        time.sleep(0.5)
    dist.barrier(device_ids=[0])
    dist.barrier()
    assert rank() == 1 or time.monotonic() - begin > 0.4


@case
def objects():
    mine = {"rank": rank(), "text": "x" * (10 + rank())}
    every = [None, None]
    dist.all_gather_object(every, mine)
    assert [x["rank"] for x in every] == [0, 1]
    group = dist.new_group(backend="clutch")
    list_of = [mine, None] if rank() == 0 else [None, None]
    dist.broadcast_object_list(list_of, 0, group=group)
    assert list_of[0]["rank"] == 0 and list_of[1] is None
    every = [None, None]
    dist.all_gather_object(every, mine, group=group)
    assert [len(x["text"]) for x in every] == [10, 11]


@case
def strides():
    x = values(6, 8).to("clutch")
    dist.all_reduce(x.t())
    total = values(6, 8, of=0) + values(6, 8, of=1)
    equal(x, total)
    dist.broadcast(x[1:5:2, ::3].mul_(rank() + 1), 1)
    total[1:5:2, ::3] *= 2
    equal(x[1:5:2, ::3], total[1:5:2, ::3])
    outs = [torch.zeros(8, 6, device="clutch").t() for _ in range(2)]
    dist.all_gather(outs, values(8, 6).to("clutch").t())
    equal(outs, [values(8, 6, of=r).t() for r in range(2)])
    out = torch.zeros(4, 6, device="clutch").t()
    dist.all_to_all_single(out, values(4, 6).to("clutch").t())
    equal(out, torch.cat([values(4, 6, of=r).t().chunk(2)[rank()] for r in range(2)]))


@case
def works():
    x = values(100).to("clutch")
    total = values(100, of=0) + values(100, of=1)
    work = dist.all_reduce(x, async_op=True)
    assert work.wait()
    equal(x, total)
    assert work.is_completed() and work.is_success()
    equal(work.result(), [total])
    assert work._get_duration() >= 0

    # A chain of futures on the device: what follows is in the order of streams.
    x = values(100).to("clutch")
    future = dist.all_reduce(x, async_op=True).get_future().then(lambda of: of.value()[0] * 2)
    equal(future.wait(), total * 2)

    # Calls beside each other, waited for in another order; the stream goes on meanwhile.
    xs = [values(1000, seed=i).to("clutch") for i in range(12)]
    begun = [dist.all_reduce(x, async_op=True) for x in xs]
    beside = torch.ones(64, 64, device="clutch") @ torch.ones(64, 64, device="clutch")
    for work in reversed(begun):
        work.wait()
    equal(xs, [values(1000, seed=i, of=0) + values(1000, seed=i, of=1) for i in range(12)])
    assert beside[0, 0].item() == 64
    work = dist.all_reduce(xs[0], async_op=True)
    work.wait(timeout=timedelta(seconds=20))
    assert work.is_completed()
    dist.all_reduce(xs[1], async_op=True).block_current_stream()
    equal(xs[1], 2 * (values(1000, seed=1, of=0) + values(1000, seed=1, of=1)))
    dist.all_reduce(xs[2], async_op=True).get_future_result().wait()

    # Memory of a tensor that is gone stays until the call ends.
    for i in range(20):
        dist.all_reduce(values(5000, seed=i).to("clutch"), async_op=True)
        torch.zeros(5000, device="clutch").fill_(7)
    dist.barrier()

    # On a stream of the caller's.
    side = torch.Stream(device="clutch")
    with side:
        y = values(50).to("clutch")
        dist.all_reduce(y)
        y = y * 3
    torch.accelerator.current_stream().wait_stream(side)
    equal(y, (values(50, of=0) + values(50, of=1)) * 3)


@case
def groups():
    alone = dist.new_group([rank()], use_local_synchronization=True)
    x = values(4).to("clutch")
    dist.all_reduce(x, group=alone)
    equal(x, values(4))
    both_ranks = dist.new_group([0, 1])
    dist.all_reduce(x, group=both_ranks)
    equal(x, values(4, of=0) + values(4, of=1))
    backward = dist.new_group([1, 0], sort_ranks=False)
    assert dist.get_rank(backward) == 1 - rank()
    outs = [torch.zeros(4, device="clutch") for _ in range(2)]
    dist.all_gather(outs, values(4).to("clutch"), group=backward)
    equal(outs, [values(4, of=1), values(4, of=0)])
    first = dist.new_group([0])
    if rank() == 0:
        dist.all_reduce(x, group=first)
    else:
        assert first == dist.GroupMember.NON_GROUP_MEMBER
    # Two groups of the same ranks, each in its own order.
    one, two = dist.new_group(), dist.new_group()
    a, b = values(8, seed=1).to("clutch"), values(8, seed=2).to("clutch")
    begun = [dist.all_reduce(of, group=group, async_op=True) for group, of in ([(one, a), (two, b)] if rank() == 0 else [(two, b), (one, a)])]
    for work in begun:
        work.wait()
    equal([a, b], [values(8, seed=s, of=0) + values(8, seed=s, of=1) for s in (1, 2)])
    for group in (both_ranks, one, two, alone):
        dist.destroy_process_group(group)


@case
def meshes():
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("clutch", (2, 1), mesh_dim_names=("data", "tensor"))
    x = values(4).to("clutch")
    dist.all_reduce(x, group=mesh.get_group("data"))
    equal(x, values(4, of=0) + values(4, of=1))
    dist.all_reduce(x, group=mesh["tensor"].get_group())
    equal(x, values(4, of=0) + values(4, of=1))
    assert list(mesh.get_coordinate()) == [rank(), 0]


@case
def mismatches():
    group = dist.new_group(backend="clutch")
    calls = [
        (lambda: dist.all_reduce(torch.ones(4 + rank(), device="clutch"), group=group, async_op=True), ("4 elements", "5 elements")),
        (lambda: dist.all_reduce(torch.ones(4, dtype=[torch.float32, torch.int32][rank()], device="clutch"), group=group, async_op=True), ("f32", "i32")),
        (lambda: dist.broadcast(torch.ones(4, device="clutch"), rank(), group=group, async_op=True), ("root 0", "root 1")),
        (
            lambda: dist.all_reduce(torch.ones(4, device="clutch"), [dist.ReduceOp.SUM, dist.ReduceOp.MAX][rank()], group=group, async_op=True),
            ("sum", "max"),
        ),
    ]
    for call, parts in calls:
        work = call()
        raised(dist.DistBackendError, lambda: work.wait(timeout=timedelta(seconds=20)), "different calls", *parts)
        assert work.is_completed() and not work.is_success()
        raised(dist.DistBackendError, work.wait)
        # The group and the stream can be used further.
        x = torch.ones(4, device="clutch")
        dist.all_reduce(x, group=group)
        equal(x, torch.full((4,), 2.0))


@case
def refusals():
    group = dist.distributed_c10d._get_default_group()
    x = torch.ones(4, device="clutch")
    raised(ValueError, lambda: dist.all_gather([torch.ones(4, device="clutch")], x), "each of 2 ranks", "got 1")
    raised(ValueError, lambda: dist.all_gather_into_tensor(torch.ones(7, device="clutch"), x), "2 times", "got 7")
    raised(ValueError, lambda: dist.reduce_scatter_tensor(x, torch.ones(7, device="clutch")), "2 times", "got 7")
    raised(ValueError, lambda: dist.all_to_all_single(x, x.clone(), [1, 2], [2, 2]), "add up to its 4 rows", "got 3")
    raised(ValueError, lambda: group.broadcast(x, 5).wait(), "rank below 2", "got 5")
    raised(ValueError, lambda: group.recv([x], rank(), 0), "must be sent before it is received")
    raised((TypeError, ValueError, RuntimeError), lambda: dist.all_reduce(x, dist.ReduceOp.BAND), "band")
    raised((TypeError, ValueError, RuntimeError), lambda: dist.all_gather_into_tensor(torch.ones(8, dtype=torch.int32, device="clutch"), x))
    # None of them was a call.
    dist.all_reduce(x)
    equal(x, torch.full((4,), 2.0))


@case
def captures():
    x = values(64).to("clutch")
    y = torch.zeros(64, device="clutch")
    dist.all_reduce(torch.zeros(64, device="clutch"))
    side = torch.Stream(device="clutch")
    side.wait_stream(torch.accelerator.current_stream())
    with side:
        graph = torch.accelerator.Graph()
        with graph:
            z = x * 2
            dist.all_reduce(z)
            y.copy_(z + 1)
        for seed in (1, 2):
            x.copy_(values(64, seed=seed))
            graph.replay()
            equal(y, (values(64, seed=seed, of=0) * 2 + values(64, seed=seed, of=1) * 2) + 1)
    torch.accelerator.synchronize()


# Layers above


def small_model(seed=0):
    torch.manual_seed(seed)
    nn = torch.nn
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4))


def batches(steps):
    """Those of both ranks: rank r has rows r * 8 to r * 8 + 7."""
    generator = torch.Generator().manual_seed(7)
    return [(torch.randn(16, 16, generator=generator), torch.randn(16, 4, generator=generator)) for _ in range(steps)]


def trained_alone(steps, make):
    model = small_model().to("clutch")
    optimizer = make(model.parameters())
    losses = []
    for x, target in batches(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x.to("clutch")), target.to("clutch"))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: p.detach().cpu() for name, p in model.state_dict().items()}


def my_rows(x):
    return x[rank() * 8 : rank() * 8 + 8].to("clutch")


def mean_of_ranks(number):
    total = torch.tensor([number])
    dist.all_reduce(total)
    return total.item() / 2


def compare_training(losses, state, steps, make):
    """As one process that has the batches of both ranks: within 1e-5, as gradients are added in another order."""
    wanted, wanted_state = trained_alone(steps, make)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(wanted), rtol=1e-5, atol=1e-6)
    for name, value in wanted_state.items():
        torch.testing.assert_close(state[name].cpu(), value, rtol=1e-4, atol=2e-5)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-2)


@case
def data_parallel():
    from torch.nn.parallel import DistributedDataParallel

    for arguments in ({"device_ids": [torch.device("clutch:0")]}, {"bucket_cap_mb": 0.001}, {"gradient_as_bucket_view": True, "static_graph": True}):
        model = DistributedDataParallel(small_model(seed=rank()).to("clutch"), **arguments)  # it begins with rank 0's
        optimizer = sgd(model.parameters())
        losses = []
        for x, target in batches(6):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(my_rows(x)), my_rows(target))
            loss.backward()
            optimizer.step()
            losses.append(mean_of_ranks(loss.item()))
        compare_training(losses, model.module.state_dict(), 6, sgd)


@case
def data_parallel_hooks():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.nn.parallel import DistributedDataParallel

    for hook, tolerance in ((default_hooks.allreduce_hook, 1e-4), (default_hooks.bf16_compress_hook, 3e-2), (default_hooks.fp16_compress_hook, 3e-2)):
        model = DistributedDataParallel(small_model().to("clutch"))
        model.register_comm_hook(None, hook)
        optimizer = sgd(model.parameters())
        for x, target in batches(3):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(my_rows(x)), my_rows(target)).backward()
            optimizer.step()
        _, wanted = trained_alone(3, sgd)
        for name, value in wanted.items():
            torch.testing.assert_close(model.module.state_dict()[name].cpu(), value, rtol=tolerance, atol=tolerance)
    # Without synchronization gradients are each rank's own.
    model = DistributedDataParallel(small_model().to("clutch"))
    with model.no_sync():
        model(my_rows(batches(1)[0][0])).sum().backward()
    gradient = next(model.parameters()).grad.cpu()
    every = [torch.zeros_like(gradient) for _ in range(2)]
    dist.all_gather(every, gradient)
    assert not torch.equal(*every)


@case
def batch_norms():
    """nn.SyncBatchNorm of both ranks is BatchNorm2d of one process that has both batches."""
    torch.manual_seed(2)
    alone = torch.nn.BatchNorm2d(6)
    torch.nn.init.normal_(alone.weight)
    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm2d(6)).to("clutch")
    model.load_state_dict(alone.state_dict())
    mine = values(3 + rank(), 6, 4, 5).mul(2).add(1)
    every = [values(3 + r, 6, 4, 5, of=r).mul(2).add(1) for r in range(2)]
    x, all_x = mine.to("clutch").requires_grad_(), torch.cat(every).requires_grad_()
    out, all_out = model(x), alone(all_x)
    factors = [values(*of.shape, seed=5, of=r) for r, of in enumerate(every)]
    (out * factors[rank()].to("clutch")).sum().backward()
    (all_out * torch.cat(factors)).sum().backward()
    rows = slice(0, 3) if rank() == 0 else slice(3, 7)
    for of, wanted in ((out, all_out[rows]), (x.grad, all_x.grad[rows]), (model.running_mean, alone.running_mean), (model.running_var, alone.running_var)):
        torch.testing.assert_close(of.detach().cpu(), wanted.detach(), rtol=1e-4, atol=1e-5)
    for of, wanted in ((model.weight.grad, alone.weight.grad), (model.bias.grad, alone.bias.grad)):
        dist.all_reduce(of)
        torch.testing.assert_close(of.cpu(), wanted, rtol=1e-4, atol=1e-4)


@case
def sharded_parallel():
    from torch.distributed.fsdp import fully_shard

    model = small_model().to("clutch")
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer)
    fully_shard(model)
    optimizer = adamw(model.parameters())
    losses = []
    for x, target in batches(6):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(my_rows(x)), my_rows(target))
        loss.backward()
        optimizer.step()
        losses.append(mean_of_ranks(loss.item()))
    compare_training(losses, {name: value.full_tensor() for name, value in model.state_dict().items()}, 6, adamw)


@case
def sharded_parallel_in_bf16():
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    model = small_model().to("clutch")
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mp_policy=policy)
    optimizer = adamw(model.parameters())
    losses = []
    for x, target in batches(6):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(my_rows(x)).float(), my_rows(target))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        losses.append(mean_of_ranks(loss.item()))
    wanted, _ = trained_alone(6, adamw)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(wanted), rtol=2e-2, atol=2e-2)


@case
def dtensors():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("clutch", (2,))
    for shape in ((4, 6), (5, 3), (1, 7)):
        full = values(*shape, of=0)
        for source in (Replicate(), Shard(0), Shard(1)):
            for target in (Replicate(), Shard(0), Shard(1)):
                made = distribute_tensor(full.to("clutch"), mesh, [source]).redistribute(placements=[target])
                equal(made.full_tensor(), full)
        for target in (Replicate(), Shard(0), Shard(1)):
            made = DTensor.from_local(values(*shape).to("clutch"), mesh, [Partial()], run_check=False).redistribute(placements=[target])
            equal(made.full_tensor(), values(*shape, of=0) + values(*shape, of=1))
    a, b = values(8, 6, of=0), values(6, 10, of=0, seed=1)
    for pa in (Replicate(), Shard(0), Shard(1)):
        for pb in (Replicate(), Shard(0), Shard(1)):
            x = distribute_tensor(a.to("clutch"), mesh, [pa]).requires_grad_()
            y = distribute_tensor(b.to("clutch"), mesh, [pb]).requires_grad_()
            product = x @ y
            torch.testing.assert_close(product.full_tensor().detach().cpu(), a @ b, rtol=1e-5, atol=1e-5)
            product.sum().backward()
            torch.testing.assert_close(x.grad.full_tensor().cpu(), b.sum(1).expand(8, 6), rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(y.grad.full_tensor().cpu(), a.sum(0)[:, None].expand(6, 10), rtol=1e-5, atol=1e-5)
    x = distribute_tensor(values(6, 8, of=0).to("clutch"), mesh, [Shard(0)])
    torch.testing.assert_close(torch.softmax(x, 1).sum().full_tensor().cpu(), torch.tensor(6.0))
    torch.testing.assert_close(x.mean().full_tensor().cpu(), values(6, 8, of=0).mean())


@case
def tensor_parallel():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    class Perceptron(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

        def forward(self, x):
            return self.down(torch.relu(self.up(x)))

    torch.manual_seed(3)
    alone = Perceptron().to("clutch")
    torch.manual_seed(3)
    model = parallelize_module(Perceptron().to("clutch"), init_device_mesh("clutch", (2,)), {"up": ColwiseParallel(), "down": RowwiseParallel()})
    assert model.up.weight.to_local().shape == (16, 16) and model.down.weight.to_local().shape == (16, 16)
    optimizers = [sgd(alone.parameters()), sgd(model.parameters())]
    for x, _ in batches(4):
        losses = []
        for of, optimizer in zip((alone, model), optimizers):
            optimizer.zero_grad()
            loss = of(x.to("clutch")).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert abs(losses[0] - losses[1]) < 1e-5 * abs(losses[0]) + 1e-6, losses
    for name, value in alone.named_parameters():
        torch.testing.assert_close(model.get_parameter(name).full_tensor().cpu(), value.detach().cpu(), rtol=1e-4, atol=1e-5)


@case
def tensor_parallel_attention():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            nn = torch.nn
            self.embedding, self.norm = nn.Embedding(50, 32), nn.LayerNorm(32)
            self.q, self.k, self.v, self.o = (nn.Linear(32, 32, bias=False) for _ in range(4))
            self.head = nn.Linear(32, 50)

        def forward(self, tokens):
            x = self.embedding(tokens)
            y = self.norm(x)
            q, k, v = (f(y).unflatten(-1, (-1, 8)).transpose(1, 2) for f in (self.q, self.k, self.v))
            attended = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.head(x + self.o(attended.transpose(1, 2).flatten(2)))

    torch.manual_seed(4)
    alone = Block().to("clutch")
    torch.manual_seed(4)
    plan = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "q": ColwiseParallel(input_layouts=Shard(1)),
        "k": ColwiseParallel(input_layouts=Shard(1)),
        "v": ColwiseParallel(input_layouts=Shard(1)),
        "o": RowwiseParallel(output_layouts=Shard(1)),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    model = parallelize_module(Block().to("clutch"), init_device_mesh("clutch", (2,)), plan)
    tokens = torch.randint(0, 50, (2, 12), generator=torch.Generator().manual_seed(1)).to("clutch")
    optimizers = [sgd(alone.parameters()), sgd(model.parameters())]
    for _ in range(3):
        losses = []
        for of, optimizer in zip((alone, model), optimizers):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(of(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert abs(losses[0] - losses[1]) < 1e-5 * abs(losses[0]), losses
    for name, value in alone.named_parameters():
        torch.testing.assert_close(model.get_parameter(name).full_tensor().cpu(), value.detach().cpu(), rtol=1e-4, atol=1e-5)


@case
def ops_that_take_groups():
    """Callers' own ops with a ProcessGroup among their arguments: the tensor's device chooses the kernel, and the group's backend for that device does the rest."""
    import torch.distributed.tensor  # noqa: F401, PLC0415: it makes ProcessGroup a type of schemas

    asked = []

    def scaled_sum(name, x, group, factor):
        y = x * factor
        dist.all_reduce(y, group=group)
        asked.append((name, group._get_backend(x.device).name()))
        return y

    # A class of C++ in the schema, as c10d's own ops have it.
    library = torch.library.Library("clutch_test_boxed", "DEF")
    library.define("scaled_sum(Tensor x, __torch__.torch.classes.c10d.ProcessGroup group, float factor) -> Tensor")
    for name, key in (("clutch", "PrivateUse1"), ("cpu", "CPU")):
        library.impl("scaled_sum", lambda x, group, factor, name=name: scaled_sum(name, x, dist.ProcessGroup.unbox(group), factor), key)

    # An object of Python, with gradients.
    def product(x: torch.Tensor, group: dist.ProcessGroup, factor: float) -> torch.Tensor:
        return scaled_sum("cpu", x, group, factor)

    op = torch.library.custom_op("clutch_test::scaled_sum", product, mutates_args=(), device_types="cpu")
    op.register_kernel("clutch", lambda x, group, factor: scaled_sum("clutch", x, group, factor))

    def setup(ctx, inputs, output):
        _, ctx.group, ctx.factor = inputs

    op.register_autograd(lambda ctx, grad: (op(grad, ctx.group, ctx.factor), None, None), setup_context=setup)

    pair, alone = dist.group.WORLD, dist.new_subgroups(1)[0]
    for group in (pair, alone):
        both(lambda device: torch.ops.clutch_test_boxed.scaled_sum(values(5).to(device), group.boxed(), 0.5))
        both(lambda device: op(values(5).to(device), group, 0.5))

        def gradient(device):
            x = values(5).to(device).requires_grad_()
            torch.ops.clutch_test.scaled_sum(x, group, 0.5).square().sum().backward()
            return x.grad

        both(gradient)
    assert set(asked) == {("clutch", "clutch"), ("cpu", "gloo")}, asked
    raised(RuntimeError, lambda: torch.ops.clutch_test_boxed.scaled_sum(values(5).to("clutch"), 3, 0.5))


@case
def functional():
    import torch.distributed._functional_collectives as functional_collectives

    group = dist.distributed_c10d._get_default_group()
    x = values(4, 3).to("clutch")
    equal(functional_collectives.all_reduce(x, "sum", group) + 0, values(4, 3, of=0) + values(4, 3, of=1))
    equal(x, values(4, 3))
    equal(functional_collectives.all_gather_tensor(x, 0, group) + 0, torch.cat([values(4, 3, of=r) for r in range(2)]))
    equal(functional_collectives.all_gather_tensor(x, 1, group) + 0, torch.cat([values(4, 3, of=r) for r in range(2)], 1))
    equal(functional_collectives.reduce_scatter_tensor(x, "sum", 0, group) + 0, (values(4, 3, of=0) + values(4, 3, of=1)).chunk(2)[rank()])
    equal(functional_collectives.broadcast(x, 1, group) + 0, values(4, 3, of=1))
    moved = functional_collectives.all_to_all_single(x, [2, 2], [2, 2], group) + 0
    equal(moved, torch.cat([values(4, 3, of=r).chunk(2)[rank()] for r in range(2)]))
    pair = functional_collectives.all_reduce_coalesced([x, values(2).to("clutch")], "max", group)
    equal([pair[0] + 0, pair[1] + 0], [torch.maximum(values(4, 3, of=0), values(4, 3, of=1)), torch.maximum(values(2, of=0), values(2, of=1))])

    # Gradients.
    for f, gradient in (
        (functional_collectives.all_gather_tensor_autograd, lambda: torch.full((4, 3), 2.0)),
        (lambda of, dim, to: functional_collectives.reduce_scatter_tensor_autograd(of, "sum", dim, to), lambda: torch.ones(4, 3)),
    ):
        leaf = values(4, 3).to("clutch").requires_grad_()
        f(leaf, 0, group).sum().backward()
        equal(leaf.grad, gradient())
    leaf = values(4, 3).to("clutch").requires_grad_()
    weights = torch.arange(4.0)[:, None].expand(4, 3).contiguous() + 10 * rank()
    (functional_collectives.all_to_all_single_autograd(leaf, [2, 2], [2, 2], group) * weights.to("clutch")).sum().backward()
    of = [torch.arange(4.0)[:, None].expand(4, 3) + 10 * r for r in range(2)]
    equal(leaf.grad, torch.cat([of[r].chunk(2)[rank()] for r in range(2)]))
    leaf = values(4, 3).to("clutch").requires_grad_()
    from torch.distributed.nn.functional import all_reduce as differentiable

    differentiable(leaf).sum().backward()
    equal(leaf.grad, torch.full((4, 3), 2.0))


@case
def checkpoints():
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard, distribute_tensor

    folder = Path(os.environ["CHECKPOINT_FOLDER"])
    mesh = init_device_mesh("clutch", (2,))
    full = torch.arange(35.0).reshape(5, 7)
    checkpoint.save({"sharded": distribute_tensor(full.to("clutch"), mesh, [Shard(0)]), "plain": torch.arange(6, device="clutch")}, checkpoint_id=folder / "tensors")
    read = {"sharded": distribute_tensor(torch.zeros(5, 7, device="clutch"), mesh, [Shard(1)]), "plain": torch.zeros(6, dtype=torch.int64, device="clutch")}
    checkpoint.load(read, checkpoint_id=folder / "tensors")
    equal(read["sharded"].full_tensor(), full)
    equal(read["plain"], torch.arange(6))

    def made(seed):
        model = fully_shard(small_model(seed).to("clutch"))
        optimizer = adamw(model.parameters())
        x, target = batches(1)[0]
        torch.nn.functional.mse_loss(model(my_rows(x)), my_rows(target)).backward()
        optimizer.step()
        return model, optimizer

    model, optimizer = made(0)
    state, states = get_state_dict(model, optimizer)
    checkpoint.save({"model": state, "optimizer": states}, checkpoint_id=folder / "model")
    saved = {name: value.full_tensor().cpu() for name, value in model.state_dict().items()}
    other, other_optimizer = made(5)
    state, states = get_state_dict(other, other_optimizer)
    checkpoint.load({"model": state, "optimizer": states}, checkpoint_id=folder / "model")
    set_state_dict(other, other_optimizer, model_state_dict=state, optim_state_dict=states)
    for name, value in other.state_dict().items():
        equal(value.full_tensor(), saved[name])
    if rank() == 0:
        torch.save(saved, folder / "saved.pt")


def run(folder, names):
    ended = {}
    backend = os.environ.get("RANKS_BACKEND", "cpu:gloo,clutch:clutch")
    dist.init_process_group(backend or None, timeout=timedelta(seconds=TIMEOUT))
    store = dist.PrefixStore("cases", dist.distributed_c10d._get_default_store())
    for name in names:
        try:
            CASES[name]()
            torch.accelerator.synchronize()
            ended[name] = "passed"
        except BaseException:
            ended[name] = traceback.format_exc()
        (folder / f"rank{rank()}.json").write_text(json.dumps(ended))
        # All ranks go on together, also after one of them failed.
        store.set(f"{name}/{rank()}", "1")
        store.wait([f"{name}/{r}" for r in range(dist.get_world_size())], timedelta(seconds=3 * TIMEOUT))
    dist.destroy_process_group()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2:])
