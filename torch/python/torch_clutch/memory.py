# SPDX-License-Identifier: Apache-2.0
"""torch.clutch.memory: snapshots, pools and the limit, by the names of torch.cuda.memory."""
import contextlib
import os
import pickle
import tempfile

import torch

from ._index import index_of

_C = torch.ops.clutch


def set_per_process_memory_fraction(fraction, device=None):
    """Limits what clutch holds to a part of the device's memory, or of what the system leaves to the process; 1: no limit."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    _C.set_memory_fraction(fraction, index_of(device))


def get_per_process_memory_fraction(device=None):
    return _C.memory_fraction(index_of(device))


def _record_memory_history(enabled="all", *, max_entries=1000000, clear_history=False):
    """Records allocations and frees, for _snapshot(); enabled=None ends it."""
    _C.record_memory_history(enabled is not None, max_entries, clear_history)


def _dump_snapshot(filename="dump_snapshot.pickle"):
    """Writes the allocator's state: the pickle of pytorch.org/memory_viz, or a page to look at (.html)."""
    _C.dump_memory_snapshot(str(filename))


def _snapshot(device=None):
    """The allocator's state, of all devices, as torch.cuda.memory._snapshot() has it."""
    handle, path = tempfile.mkstemp(".pickle")
    os.close(handle)
    try:
        _dump_snapshot(path)
        with open(path, "rb") as file:
            return pickle.load(file)
    finally:
        os.remove(path)


def memory_snapshot(mempool_id=None):
    """Segments, of a pool or of all."""
    segments = _snapshot()["segments"]
    return segments if mempool_id is None else [s for s in segments if tuple(s["segment_pool_id"]) == tuple(mempool_id)]


class MemPool:
    """Segments of their own for what a thread allocates within use_mem_pool(); they are given back when the pool and its last tensor are gone."""

    def __init__(self, use_on_oom=False, no_split=False):
        self._drop = _C.drop_pool  # still there when the interpreter ends
        self._id = tuple(_C.make_pool(use_on_oom, no_split))

    @property
    def id(self):
        return self._id

    def snapshot(self):
        return memory_snapshot(self.id)

    def __del__(self):
        if hasattr(self, "_id"):
            self._drop(self._id[1])


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """What this thread allocates within the block comes from the pool; blocks nest."""
    _C.begin_pool(*pool.id)
    try:
        yield
    finally:
        _C.end_pool()
