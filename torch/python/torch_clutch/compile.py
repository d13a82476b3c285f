# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="clutch"): ATen graphs by clutch's ops, which clutch::compile() records as graphs and replays.

Dynamo and AOTAutograd make graphs of ATen ops. Each is a function of clutch::compile(): the first call with tensors of a class records what its ops enqueue,
later ones replay that with their own tensors in the place of the recorded ones. With the backend "fused" of graphs clutch makes few launches of it.
"""
import logging
import threading
import weakref

import torch

from . import _callbacks, _dynamo_interface  # noqa: F401

log = logging.getLogger(__name__)

_C = torch.ops.clutch
_OPTIONS = {"graph": "", "warm_ups": 1, "max_classes": 32}
_COUNTS = ("calls", "captures", "replays", "eager_calls", "inline_calls", "recompiles", "failures")
_OF_CLASS = ("calls", "captures", "replays", "eager_calls", "nodes", "launches", "groups")

_regions = weakref.WeakValueDictionary()
_regions_made = 0


class Region:
    """A graph of ATen ops as a function of a list of tensors and whole numbers."""

    def __init__(self, function, what, options):
        global _regions_made
        self.function, self.what = function, what
        self.why = None
        self.plain_calls = 0
        self._arguments = threading.local()  # of the call that this thread records
        self._rests = []  # results that are no tensors, by the number that clutch keeps
        self.id = _C.make_compiled(f"torch.compile {_regions_made}: {what}", options["graph"], options["warm_ups"], options["max_classes"])
        self._number = _callbacks.add(_Weak(self))
        weakref.finalize(self, _let_go, self.id, self._number)
        _regions[_regions_made] = self
        _regions_made += 1
        self._boxed_call = True

    def __call__(self, args):
        values = list(args)
        args.clear()
        tensors, numbers = [], []
        for value in values:
            if isinstance(value, torch.Tensor):
                if value.device.type != "clutch" or value.layout != torch.strided or type(value) not in (torch.Tensor, torch.nn.Parameter):
                    return self._plain(values)
                tensors.append(value)
            elif isinstance(value, int):
                numbers.append(int(value))
            else:
                return self._plain(values)
        if self.why is not None or not tensors:
            return self._plain(values)
        self._arguments.values, self._arguments.records = values, False
        try:
            results, rest = _C.call_compiled(self.id, self._number, tensors, numbers)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:  # NotImplementedError, too
            if not self._arguments.records:
                raise
            # Nothing has run. An error that is the function's own is thrown again by it.
            self.why = str(error).splitlines()[0]
            log.warning("torch_clutch: a compiled part cannot be replayed: %s", self.why)
            return self._plain(values)
        finally:
            self._arguments.values = None
        if rest < 0:
            return self.function(*values)
        found = iter(results)
        return [next(found) if kept is _TENSOR else kept for kept in self._rests[rest]]

    def _plain(self, values):
        self.plain_calls += 1
        return self.function(*values)

    def _record(self, tensors):
        """Called by clutch with tensors that stand for those of the call."""
        self._arguments.records = True
        stand_ins = iter(tensors)
        results = self.function(*(next(stand_ins) if isinstance(v, torch.Tensor) else v for v in self._arguments.values))
        made = [r for r in results if isinstance(r, torch.Tensor)]
        if any(r.device.type != "clutch" for r in made):
            raise NotImplementedError("a result is not on the device, which a graph cannot record")
        self._rests.append([_TENSOR if isinstance(r, torch.Tensor) else r for r in results])
        return made, len(self._rests) - 1

    def report(self):
        counts, classes, texts = _C.explain_compiled(self.id)
        report = dict(what=self.what, **dict(zip(_COUNTS, counts)))
        report["plain_calls"], report["why"] = self.plain_calls, self.why or ""
        size = len(_OF_CLASS)
        report["classes"] = [dict(zip(_OF_CLASS, classes[i * size:(i + 1) * size]), eager=eager) for i, eager in enumerate(texts[1:])]
        report["text"] = texts[0]
        return report


class _Tensor:
    """Stands for a tensor among results."""


_TENSOR = _Tensor()


class _Weak:
    """Calls a region's _record() without keeping the region."""

    def __init__(self, region):
        self.region = weakref.ref(region)

    def __call__(self, tensors):
        return self.region()._record(tensors)


def _let_go(id, number):
    _C.drop_compiled(id)
    _callbacks.remove(number)


def compile_report():
    """A dict for each part that torch.compile(backend="clutch") has made, in order, while it lives: what it is ("forward", "backward" or "inference"), counts of
    calls, captures and replays, `plain_calls` that ran op by op, and its classes with their nodes, launches of a replay, and fused groups.
    """
    return [dict(number=i, **_regions[i].report()) for i in sorted(_regions.keys())]


def regions_compiled():
    """How many parts torch.compile(backend="clutch") has made in this process: backward counts apart."""
    return _regions_made


def _options_of(mode, options):
    """None where parts are to run op by op."""
    unknown = set(options or {}) - set(_OPTIONS)
    if unknown:
        raise ValueError(f'torch.compile(backend="clutch") has the options {", ".join(_OPTIONS)}, got {", ".join(sorted(unknown))}')
    if mode != "reduce-overhead" and not options:
        return None
    return _OPTIONS | (options or {})


def clutch(graph_module, inputs, *, mode=None, options=None):
    """The backend. mode="reduce-overhead" records and replays; so do options: `graph` (backend of graphs: "fused", "host", "native", "auto"), `warm_ups` (calls
    of each class of arguments that run op by op first), `max_classes` (kept for each part). Other modes run op by op.
    """
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    chosen = _options_of(mode, options)

    def compiler(what):
        def compile_part(compiled, example_inputs):
            return make_boxed_func(compiled.forward) if chosen is None else Region(compiled.forward, what, chosen)

        return compile_part

    return aot_autograd(fw_compiler=compiler("forward"), bw_compiler=compiler("backward"), inference_compiler=compiler("inference"),
                        keep_inference_input_mutations=True)(graph_module, inputs)
