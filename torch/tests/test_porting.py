# SPDX-License-Identifier: Apache-2.0
"""What docs/torch.md says to who comes from CUDA: that each name is there, and how things behave."""
import re
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "torch.md"


def section():
    return PAGE.read_text().split("## Porting from CUDA\n")[1].split("\n## ")[0]


def test_each_name_is_there():
    text = section()
    names = set(re.findall(r"\btorch(?:\.\w+)+", text))
    assert len(names) > 40
    # Modules that nobody has imported yet are looked for as such.
    import torch.utils.cpp_extension  # noqa: F401

    missing = []
    for name in sorted(names):
        of = torch
        for part in name.split(".")[1:]:
            of = getattr(of, part, None) if part != "md" else of
        if of is None:
            missing.append(name)
    assert missing == []
    both = re.findall(r"`(\w+)`", text.split("names are the same:")[1].split("The others:")[0])
    assert len(both) > 20
    assert [name for name in both if not (hasattr(torch.cuda, name) and hasattr(torch.clutch, name))] == []


def test_devices():
    assert torch.accelerator.current_accelerator().type == "clutch" and torch.get_device_module() is torch.clutch
    assert torch.ones(2).clutch().is_clutch and not torch.ones(2).clutch().is_cuda and torch.nn.Linear(2, 2).clutch().weight.device.type == "clutch"
    assert {"name", "platform", "driver_version", "total_memory", "compute_units", "fp64", "is_gpu"} == set(torch.clutch.get_device_properties()._fields)


def test_pools_of_graphs():
    x, stream = torch.arange(4.0).clutch(), torch.Stream("clutch")
    _ = (x + 1) * 2
    torch.accelerator.synchronize()
    first = torch.accelerator.Graph()
    with stream, first:
        y = x + 1
    second = torch.accelerator.Graph(pool=first.pool())
    with stream, second:
        z = y * 2
    for graph in (first, second):
        graph.replay()
    torch.accelerator.synchronize()
    assert z.tolist() == [2, 4, 6, 8]


def test_mixed_precision():
    a = torch.ones(2, 2).clutch()
    with torch.amp.autocast("clutch"):
        assert (a @ a).dtype == torch.float16
    with torch.amp.autocast("clutch", dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16

    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="clutch", cast_inputs=torch.float32)
        def forward(ctx, x):
            assert not torch.is_autocast_enabled("clutch")
            return 2 * x

        @staticmethod
        @torch.amp.custom_bwd(device_type="clutch")
        def backward(ctx, grad):
            return 2 * grad

    x = torch.ones(3, dtype=torch.float16).clutch().requires_grad_()
    with torch.amp.autocast("clutch"):
        y = Double.apply(x)
    y.sum().backward()
    assert y.dtype == torch.float32 and x.grad.tolist() == [2, 2, 2]


def test_random_numbers():
    before = torch.clutch.get_rng_state()
    with torch.random.fork_rng(device_type="clutch"):
        torch.rand(3).clutch(), torch.rand(3, device="clutch")
    assert torch.equal(torch.clutch.get_rng_state(), before)
    draws = [torch.rand(3, device="clutch", generator=torch.Generator("clutch").manual_seed(7)).tolist() for _ in range(2)]
    assert draws[0] == draws[1]


def test_memory():
    left, total = torch.clutch.mem_get_info()
    assert 0 < left <= total
    former = torch.clutch.get_per_process_memory_fraction()
    torch.clutch.set_per_process_memory_fraction(0.0001)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 30, device="clutch")
    finally:
        torch.clutch.set_per_process_memory_fraction(former)
    pinned = torch.arange(5.0).pin_memory()
    assert pinned.is_pinned() and pinned.to("clutch", non_blocking=True).tolist() == [0, 1, 2, 3, 4]


def test_indices_out_of_range():
    x, far = torch.arange(4.0).clutch(), torch.tensor([1, 10]).clutch()
    for read in (x[far], x.index_select(0, far), x.gather(0, far)):
        assert read[0].item() == 1 and read[1].isnan().item()
    assert x.sum().item() == 6


def test_the_same_bits_without_a_setting():
    """Sums whose order decides: CUDA adds by atomics, and refuses when it is told to be deterministic."""
    values, at = torch.randn(100_000).clutch(), torch.randint(0, 7, (100_000,)).clutch()

    def sums():
        zero = torch.zeros(7, device="clutch")
        return [zero.index_add(0, at, values), zero.scatter_add(0, at, values), zero.index_put((at,), values, accumulate=True)]

    plain = [sums() for _ in range(3)]
    torch.use_deterministic_algorithms(True)
    try:
        plain.append(sums())
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(a, b) for other in plain[1:] for a, b in zip(plain[0], other))
