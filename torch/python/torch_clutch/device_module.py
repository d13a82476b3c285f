# SPDX-License-Identifier: Apache-2.0
"""torch.clutch: what PyTorch asks of a device's module, and what clutch has besides."""
import contextlib
from collections import namedtuple

import torch

from . import dlpack as _dlpack
from . import memory
from ._index import index_of as _index
from .control import max_iterations, switch  # noqa: F401
from .exported import save_exported  # noqa: F401
from .graphs import Graph, graph_backend, load_graph, make_graphed_callables, mark_kernels  # noqa: F401
from .memory import MemPool, get_per_process_memory_fraction, memory_snapshot, set_per_process_memory_fraction, use_mem_pool  # noqa: F401
from .selective_scan import selective_scan, use_selective_scan  # noqa: F401
from .warm_up import warm_up  # noqa: F401

_C = torch.ops.clutch

DeviceProperties = namedtuple("DeviceProperties", "name platform driver_version total_memory compute_units fp64 is_gpu")


def is_available():
    return device_count() > 0


def is_initialized():
    return not _is_in_bad_fork()


def _is_in_bad_fork():
    return _C.in_bad_fork()


def _lazy_init():
    if device_count() == 0:
        raise RuntimeError(f"clutch is not available: {_C.why_no_device()}")


def init():
    _lazy_init()


def device_count():
    return _C.device_count()


def current_device():
    return _C.current_device()


def set_device(device):
    _C.set_current_device(_index(device))


class device:
    """Makes a device the current one within a block."""

    def __init__(self, device):
        self.index = _index(device)

    def __enter__(self):
        self.former = current_device()
        _C.set_current_device(self.index)

    def __exit__(self, *_):
        _C.set_current_device(self.former)
        return False


class device_of(device):
    """Makes a tensor's device the current one within a block, if it is one of clutch's."""

    def __init__(self, tensor):
        super().__init__(tensor.device if tensor.device.type == "clutch" else None)


def get_device_name(device=None):
    return _C.device_name(_index(device))[0]


def get_device_properties(device=None):
    return DeviceProperties(*_C.device_name(_index(device)), *_C.device_facts(_index(device)))


def get_device_capability(device=None):
    return (3, 0)


def synchronize(device=None):
    torch.accelerator.synchronize(_index(device))


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]


def is_bf16_supported(including_emulation=True):
    return True


# Streams and events are PyTorch's own for accelerators.
Stream = torch.Stream
Event = torch.Event


def current_stream(device=None):
    return torch.accelerator.current_stream(_index(device))


def default_stream(device=None):
    return torch.Stream(stream_id=0, device_index=_index(device), device_type=torch._C._autograd.DeviceType.PrivateUse1.value)


def set_stream(stream):
    torch.accelerator.set_stream(stream)


@contextlib.contextmanager
def stream(wanted):
    if wanted is None:
        yield
    else:
        with wanted:
            yield


def is_current_stream_capturing():
    return _C.is_capturing()


# Random numbers.
def _generator(device=None):
    return _C.default_generator(_index(device))


def manual_seed(seed):
    _generator().manual_seed(int(seed))


def manual_seed_all(seed):
    seed = int(seed)
    _C.seed_default_generators(seed - (1 << 64) if seed >= 1 << 63 else seed)


def seed():
    return _generator().seed()


def initial_seed():
    return _generator().initial_seed()


def get_rng_state(device="clutch"):
    return _generator(device).get_state()


def get_rng_state_all():
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(state, device="clutch"):
    _generator(device).set_state(state)


def set_rng_state_all(states):
    for i, state in enumerate(states):
        set_rng_state(state, i)


# Memory.
def memory_stats(device=None):
    return torch.accelerator.memory_stats(_index(device))


def memory_allocated(device=None):
    return torch.accelerator.memory_allocated(_index(device))


def max_memory_allocated(device=None):
    return torch.accelerator.max_memory_allocated(_index(device))


def memory_reserved(device=None):
    return torch.accelerator.memory_reserved(_index(device))


def max_memory_reserved(device=None):
    return torch.accelerator.max_memory_reserved(_index(device))


def reset_peak_memory_stats(device=None):
    torch.accelerator.reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device=None):
    torch.accelerator.reset_accumulated_memory_stats(_index(device))


def mem_get_info(device=None):
    return torch.accelerator.get_memory_info(_index(device))


def empty_cache():
    torch.accelerator.empty_cache()


def record_memory_history(on=True):
    """Records allocations and frees, for dump_memory_snapshot()."""
    memory._record_memory_history("all" if on else None)


def dump_memory_snapshot(path):
    """Writes the allocator's state: a page to look at (.html), or the pickle of pytorch.org/memory_viz."""
    memory._dump_snapshot(path)


# What ran where.
def fallbacks(reasons=False):
    """How often each op ran on the CPU; with `reasons`, (times, why) of each."""
    calls = dict(_C.fallback_calls())
    if not reasons:
        return calls
    why = dict(_C.fallback_reasons())
    return {op: (count, why[op]) for op, count in calls.items()}


def reset_fallbacks():
    _C.reset_fallbacks()


@contextlib.contextmanager
def forbid_fallbacks(forbidden=True):
    """Within it an op that would run on the CPU is a NotImplementedError that names it, as with CLUTCH_STRICT=host."""
    former = _C.fallbacks_allowed()
    _C.allow_fallbacks(not forbidden)
    try:
        yield
    finally:
        _C.allow_fallbacks(former)


def ops(markdown=False):
    """The table of ops: (family, aten op, what of clutch computes it); with `markdown` as the table of docs/torch.md."""
    rows = [tuple(row.split("\t")) for row in _C.op_table()]
    if not markdown:
        return rows
    families = {}
    for family, aten, clutch in rows:
        families.setdefault(family, {}).setdefault(clutch, []).append(f"`{aten}`")
    lines = []
    for family, of in families.items():
        lines += ["", f"### {family[0].upper()}{family[1:]}", "", "| clutch | aten ops |", "|---|---|"]
        lines += [f"| {clutch} | {', '.join(dict.fromkeys(names))} |" for clutch, names in of.items()]
    return "\n".join(lines[1:]) + "\n"


def address_range():
    """Where the addresses of device memory lie: a fault of the host there is an access to memory of a device."""
    return _C.address_range()


def build_info():
    return _C.build_info()


to_dlpack = _dlpack.to_dlpack
from_dlpack = _dlpack.from_dlpack


# Tensor.storage_type() looks for PyTorch's classes of storages here.
globals().update({name: getattr(torch, name) for name in torch.storage._dtype_to_storage_type_map().values()})


def compile_report():
    """As torch_clutch.compile.compile_report(): what torch.compile(backend="clutch") has made."""
    from .compile import compile_report as report

    return report()
