# SPDX-License-Identifier: Apache-2.0
"""torch.profiler with the device's kernels, which Kineto joins with PyTorch's ops."""
import json

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def step(x, w):
    with record_function("my step"):
        torch.nn.functional.gelu(x @ w).sum().backward()


@pytest.fixture
def tensors():
    made = [torch.randn(256, 256, device="clutch", requires_grad=True) for _ in range(2)]
    step(*made)
    torch.accelerator.synchronize()
    return made


def on_device(events, kind="kernel"):
    return [e for e in events if e.device_type == DeviceType.PrivateUse1 and e.activity_type == kind]


def test_kernels_belong_to_their_ops(tensors):
    with profile(activities=BOTH) as p:
        for _ in range(3):
            step(*tensors)
    events = p.events()
    kernels = on_device(events)
    by_op = {}
    for e in events:
        for kernel in e.kernels:
            by_op.setdefault(e.name, []).append(kernel.name)
    assert len(by_op["aten::mm"]) >= 9 and all(k.startswith("matmul") for k in by_op["aten::mm"])  # forward, and backward on another thread
    assert len(by_op["aten::gelu"]) == 3 and len(by_op["aten::gelu_backward"]) == 3
    assert len(kernels) == sum(len(k) for name, k in by_op.items() if name.startswith("aten::"))
    first, last = min(e.time_range.start for e in events), max(e.time_range.end for e in events)
    for kernel in kernels:
        assert first <= kernel.time_range.start <= kernel.time_range.end <= last and kernel.time_range.elapsed_us() > 0
    averages = {a.key: a for a in p.key_averages()}
    assert averages["aten::mm"].self_device_time_total > 0 and averages["aten::mm"].count >= 9
    assert averages["my step"].device_time_total > 0
    assert "Self CLUTCH" in p.key_averages().table(sort_by="self_device_time_total")


def test_kernels_come_after_the_calls_that_enqueue_them(tensors, tmp_path):
    with profile(activities=BOTH) as p:
        step(*tensors)
        tensors[0].detach().cpu()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.load(open(tmp_path / "trace.json"))["traceEvents"]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") == "privateuse1_runtime"}
    commands = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert commands and {e["cat"] for e in commands} >= {"kernel", "gpu_memcpy"}
    ops = {e["args"]["External id"]: e for e in events if e.get("cat") == "cpu_op"}
    for command in commands:
        call = calls[command["args"]["correlation"]]
        assert call["ts"] <= command["ts"] + 1 and call["pid"] != command["pid"]
        op = ops[call["args"]["External id"]]
        slack = 50  # us between the clocks
        assert op["tid"] == call["tid"] and op["ts"] - slack <= call["ts"] and call["ts"] + call["dur"] <= op["ts"] + op["dur"] + slack
    flows = [e for e in events if e.get("cat") == "ac2g"]
    assert len([e for e in flows if e["ph"] == "s"]) == len([e for e in flows if e["ph"] == "f"]) >= len(commands)
    kernel = next(e for e in commands if e["name"].startswith("matmul"))
    assert kernel["args"]["GFLOP/s"] > 0 and len(kernel["args"]["grid"]) == 3
    names = {e["args"]["name"] for e in events if e.get("name") == "process_name"}
    assert torch.clutch.get_device_name(0) in names


def test_memory(tensors):
    with profile(activities=BOTH, profile_memory=True) as p:
        held = torch.empty(1 << 20, device="clutch")
        gone = torch.empty(1 << 18, device="clutch")
        del gone
    assert held is not None
    averages = {a.key: a for a in p.key_averages()}
    assert averages["aten::empty"].device_memory_usage == (4 << 20) + (1 << 20)
    assert averages["[memory]"].device_memory_usage == -(1 << 20)


def test_graphs(tensors):
    x, w = (t.detach() for t in tensors)
    stream = torch.Stream("clutch")
    torch.accelerator.synchronize()
    graph = torch.accelerator.Graph()
    with profile(activities=BOTH), stream, graph:  # a profile of the recording leaves no trace in the graph
        torch.nn.functional.gelu(x @ w)
    with profile(activities=BOTH) as p:
        with record_function("replays"):
            for _ in range(2):
                graph.replay()
            torch.accelerator.synchronize()
    names = [e.name for e in on_device(p.events())]
    assert len(names) % 2 == 0 and sum(n.startswith("matmul") for n in names) >= 2 and sum(n.startswith("map") for n in names) == 2
    assert [e.name for e in on_device(p.events(), "gpu_user_annotation")] == ["replays"]


def test_schedules(tensors):
    counts = []
    with profile(activities=BOTH, schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=lambda p: counts.append(len(on_device(p.events())))) as p:
        for _ in range(8):
            step(*tensors)
            torch.accelerator.synchronize()
            p.step()
    assert len(counts) == 2 and counts[0] == counts[1] and counts[0] % 2 == 0


def test_without_the_device_nothing_of_it_is_recorded(tensors):
    with profile(activities=[ProfilerActivity.CPU]) as p:
        step(*tensors)
    assert not [e for e in p.events() if e.device_type == DeviceType.PrivateUse1]


def test_beside_a_profile_of_clutch(run_python, tmp_path):
    program = """
import torch
from torch.profiler import ProfilerActivity, profile
x = torch.ones(8, device="clutch")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as p:
    (x + 1).sum().item()
print(any(e.name == "aten::add" for e in p.events()), len([e for e in p.events() if e.activity_type == "kernel"]))
"""
    done = run_python(program, CLUTCH_PROFILE=str(tmp_path / "own.json"))
    assert done.returncode == 0 and done.stdout.split() == ["True", "0"] and (tmp_path / "own.json").exists(), done.stderr


def test_events_alone(tensors):
    """Without Kineto: times by events around each op."""
    with torch.autograd.profiler.profile(use_device="clutch", use_kineto=False) as p:
        step(*tensors)
    averages = {a.key: a for a in p.key_averages()}
    assert averages["aten::mm"].device_time_total > 0
