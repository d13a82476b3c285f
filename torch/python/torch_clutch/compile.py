# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="clutch"): ATen graphs by clutch's ops; with mode="reduce-overhead" they are recorded as graphs and replayed.

A compiled part runs as it is twice, is then recorded, and replayed where its inputs have the same shapes. Inputs that stay where they are (parameters, what
forward saved for backward) are read in place; others are copied to the graph's memory. Results are copies, so that they outlive the next call.
"""
import logging
import weakref

import torch

log = logging.getLogger(__name__)

_RUNS_BEFORE = 2  # kernels are built, and states made
_MOVES = 3  # so often may an input be elsewhere before it is copied


def _tensors_of_clutch(values):
    return all(isinstance(v, torch.Tensor) and v.device.type == "clutch" and v.layout == torch.strided for v in values)


class Replayed:
    """A graph of ATen ops as a function of a list of tensors. `returned`: how many of its results the caller gets; those behind are saved for backward."""

    def __init__(self, function, returned=None):
        self.function, self.returned = function, returned
        self.runs = self.moves = 0
        self.addresses = self.copied = None
        self.graph = self.why = None
        self.alive = []
        self._boxed_call = True

    def __call__(self, args):
        values = list(args)
        args.clear()
        if self.why is not None or torch.clutch.is_current_stream_capturing():
            return self.function(*values)
        if not _tensors_of_clutch(values):
            return self.function(*values)
        if self.graph is not None and self.fits(values):
            return self.replay(values)
        self.note(values)
        if self.graph is None and self.runs > _RUNS_BEFORE:
            return self.record(values)
        return self.function(*values)

    def note(self, values):
        """Which inputs are elsewhere than they were."""
        at = [v.data_ptr() for v in values]
        self.runs += 1
        if self.addresses is None:
            self.addresses, self.copied = at, [False] * len(at)
            return
        if self.graph is None:
            self.copied = [copied or a != b for copied, a, b in zip(self.copied, at, self.addresses)]
            return
        moved = [not copied and a != b for copied, a, b in zip(self.copied, at, self.addresses)]
        if any(moved) and not self.waits():
            self.moves += 1
            if self.moves >= _MOVES:  # recorded anew, by the next call
                self.copied = [a or b for a, b in zip(self.copied, moved)]
                self.graph, self.moves = None, 0

    def waits(self):
        """True while a backward is to come that needs what the last replay of forward saved."""
        self.alive = [ref for ref in self.alive if ref() is not None]
        return bool(self.alive)

    def fits(self, values):
        if self.waits():
            return False
        for value, place, copied in zip(values, self.places, self.copied):
            if value.shape != place.shape or value.stride() != place.stride() or value.dtype != place.dtype:
                return False
            if not copied and value.data_ptr() != place.data_ptr():
                return False
        return True

    def record(self, values):
        self.addresses = [v.data_ptr() for v in values]
        self.places = [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device).copy_(v) if copied else v.detach()
                       for v, copied in zip(values, self.copied)]
        torch.accelerator.synchronize()
        graph = torch.accelerator.Graph()
        try:
            with torch.Stream("clutch"), graph:
                self.results = list(self.function(*self.places))
        except (NotImplementedError, RuntimeError) as error:
            self.why = str(error).splitlines()[0]
            log.warning("torch_clutch: a compiled part cannot be replayed: %s", self.why)
            return self.function(*values)
        self.graph = graph
        return self.replay(values)

    def replay(self, values):
        for value, place, copied in zip(values, self.places, self.copied):
            if copied:
                place.copy_(value)
        self.graph.replay()
        results = []
        for i, result in enumerate(self.results):
            if not isinstance(result, torch.Tensor):
                results.append(result)
            elif self.returned is None or i < self.returned:
                results.append(result.clone())
            else:
                saved = result.detach()
                self.alive.append(weakref.ref(saved))
                results.append(saved)
        return results


def clutch(graph_module, inputs, *, mode=None, options=None):
    """The backend: `mode` is torch.compile's; other modes than reduce-overhead are as the default one."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def plain(compiled, example_inputs):
        return make_boxed_func(compiled.forward)

    if mode != "reduce-overhead":
        return aot_autograd(fw_compiler=plain, bw_compiler=plain)(graph_module, inputs)

    def forward(compiled, example_inputs):
        context = torch._guards.TracingContext.try_get()
        metadata = None if context is None else context.fw_metadata
        return plain(compiled, example_inputs) if metadata is None else Replayed(compiled.forward, metadata.num_forward_returns)

    def whole(compiled, example_inputs):
        return Replayed(compiled.forward)

    return aot_autograd(fw_compiler=forward, bw_compiler=whole, inference_compiler=whole)(graph_module, inputs)
