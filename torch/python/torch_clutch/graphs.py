# SPDX-License-Identifier: Apache-2.0
"""torch.clutch.Graph, and make_graphed_callables() for the device `clutch`: functions and modules whose forward and backward are replayed graphs."""
import contextlib
import json
import weakref

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

_C = torch.ops.clutch


@contextlib.contextmanager
def graph_backend(backend):
    """Graphs that this thread makes within the block replay by that backend of clutch: "fused", "host", "native", "auto" or a registered one."""
    former = _C.exchange_graph_backend(backend)
    try:
        yield
    finally:
        _C.exchange_graph_backend(former)


@contextlib.contextmanager
def mark_kernels(annotation):
    """Names what graphs record within the block, as torch.cuda's mark_kernels does: a text, or a dict with the name under "str" or "name" and other values.
    Nests. Kernels of backward() on other threads take the names of the thread that records. Graph.nodes(), dumps and saved graphs have them.
    """
    if isinstance(annotation, dict):
        values = dict(annotation)
        name = values.pop("str", None) or values.pop("name", "")
    else:
        name, values = annotation, {}
    _C.push_annotation(str(name), json.dumps(values) if values else "")
    try:
        yield
    finally:
        _C.pop_annotation()


class Graph(torch.accelerator.Graph):
    """torch.accelerator.Graph with what graphs of clutch have besides. `backend`: as graph_backend()'s; empty: the one of a block, else CLUTCH_GRAPH.
    `enable_annotations` is torch.cuda.graph's; names of mark_kernels() cost nothing here and are kept without it, too.
    """

    def __new__(cls, keep_graph=False, *, backend="", pool=None, capture_error_mode="default", enable_annotations=False):
        return super().__new__(cls, keep_graph, pool=pool, capture_error_mode=capture_error_mode)

    def __init__(self, keep_graph=False, *, backend="", pool=None, capture_error_mode="default", enable_annotations=False):
        with graph_backend(backend) if backend else contextlib.nullcontext():
            super().__init__(keep_graph, pool=pool, capture_error_mode=capture_error_mode)
        self._number = _C.last_graph()

    def report(self):
        """What a replay does: `nodes` that were captured, `launches` that run them, `groups` of nodes that are one launch, bytes of temporaries, and of what they
        would be without groups, `replays` so far, the backend and why it was chosen.
        """
        counts, texts = _C.graph_report(self._number)
        return dict(zip(("nodes", "launches", "groups", "reserved_bytes", "unfused_bytes", "replays", "backend", "why"), (*counts, *texts)))

    def nodes(self):
        """The recorded calls as dicts, in order: op, kernel, arguments, why each is in a group or not, and `annotations`: what mark_kernels() named it, outermost
        first, as dicts with a "name".
        """
        nodes = json.loads(_C.graph_text(self._number))["nodes"]
        for node in nodes:
            node["annotations"] = [{"name": label["name"], **json.loads(label["values"].get("values", "{}"))} for label in node.pop("labels", [])]
        return nodes

    def replay(self, pairs=()):
        """`pairs`: (captured tensor, other one), for this replay alone; see rebind(). Nothing is built."""
        if pairs:
            _C.graph_replay_with(self._number, *map(list, zip(*pairs)))
        else:
            super().replay()

    def rebind(self, pairs):
        """Puts other tensors in the place of captured ones from now on: inputs, outputs, weights. `pairs`: (captured tensor, other one), contiguous, of one dtype
        and shape. They refer to what was captured, however often it is called.
        """
        _C.graph_rebind(self._number, *map(list, zip(*pairs)))

    def update(self, node, **arguments):
        """Changes arguments of a recorded call, found by their names (nodes() has both): numbers, or tensors of the recorded dtype, sizes and strides."""
        numbers = {k: float(v) for k, v in arguments.items() if not isinstance(v, torch.Tensor)}
        tensors = {k: v for k, v in arguments.items() if isinstance(v, torch.Tensor)}
        _C.graph_update(self._number, node, [*numbers, *tensors], list(numbers.values()), list(tensors.values()))

    def save(self, path, tensors=None, *, binaries=False):
        """Writes the graph with what its memory holds now, for programs without Python: clutch::Graph::load(). `tensors`: dict of captured tensors by the names that
        they will have there; they must be contiguous. `binaries`: the device's binaries, too.
        """
        tensors = tensors or {}
        _C.graph_save(self._number, str(path), list(tensors), list(tensors.values()), binaries)


class LoadedGraph:
    """A saved graph with memory of its own. `tensors`: those that save() named; copy inputs into them, call replay(), read outputs from them. The file carries
    kernels: load none whose origin you do not trust. `backend`: as Graph's.
    """

    def __init__(self, path, *, backend=""):
        self._number, names, tensors = _C.graph_load(str(path), backend)
        self.tensors = dict(zip(names, tensors))
        weakref.finalize(self, _C.loaded_forget, self._number)

    def replay(self):
        _C.loaded_replay(self._number)


def load_graph(path, *, backend=""):
    """What Graph.save() wrote, as a LoadedGraph."""
    return LoadedGraph(path, backend=backend)


class _Recorded:
    """Forward and backward of one callable, with the memory that they read and write."""

    def __init__(self, function, args):
        self.function, self.args = function, tuple(args)
        leaves, self.in_tree = tree_flatten(self.args)
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise TypeError("make_graphed_callables: sample_args must contain tensors alone: numbers would be recorded as they are")
        self.given = len(leaves)
        self.params = tuple(p for p in function.parameters() if p.requires_grad) if isinstance(function, torch.nn.Module) else ()
        if isinstance(function, torch.nn.Module):
            if any(b.requires_grad for b in function.buffers()):
                raise RuntimeError("make_graphed_callables: buffers of a module must not require gradients")
            hooks = (function._backward_hooks, function._forward_hooks, function._forward_pre_hooks)
            if any(hooks):
                raise RuntimeError("make_graphed_callables: a module must have no hooks; add them to the graphed one")
        self.inputs = (*leaves, *self.params)

    def call(self):
        outputs, tree = tree_flatten(self.function(*self.args))
        return tuple(outputs), tree

    def gradients(self, outputs, grads, allow_unused):
        wanted = tuple(o for o in outputs if o.requires_grad)
        of = tuple(i for i in self.inputs if i.requires_grad)
        if not wanted or not of:
            return (None,) * len(self.inputs)
        found = iter(torch.autograd.grad(wanted, of, grads, allow_unused=allow_unused))
        return tuple(next(found) if i.requires_grad else None for i in self.inputs)

    @staticmethod
    def grads_for(outputs):
        return tuple(torch.zeros_like(o) for o in outputs if o.requires_grad)

    def warm_up(self, times, allow_unused):
        for _ in range(times):
            outputs, _ = self.call()
            self.gradients(outputs, self.grads_for(outputs), allow_unused)

    def record_forward(self, pool, backend):
        self.forward = Graph(backend=backend, pool=pool)
        with self.forward:
            self.outputs, self.out_tree = self.call()

    def record_backward(self, pool, backend, allow_unused):
        self.out_grads = self.grads_for(self.outputs)
        torch.accelerator.synchronize()
        self.backward = Graph(backend=backend, pool=pool)
        with self.backward:
            self.in_grads = self.gradients(self.outputs, self.out_grads, allow_unused)
        self.outputs = tuple(o.detach() if isinstance(o, torch.Tensor) else o for o in self.outputs)

    def replayed(self, wants_grad):
        recorded = self

        class Replay(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                for place, value in zip(recorded.inputs[:recorded.given], inputs):
                    if place is not value:
                        place.data.copy_(value)
                recorded.forward.replay()
                outputs = tuple(o.detach() for o in recorded.outputs)
                ctx.mark_non_differentiable(*(o for o, wants in zip(outputs, wants_grad) if not wants))
                return outputs

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx, *grads):
                for place, value in zip(recorded.out_grads, (g for g, wants in zip(grads, wants_grad) if wants)):
                    place.copy_(value)
                recorded.backward.replay()
                return tuple(None if g is None else g.detach() for g in recorded.in_grads)

        def call(*args):
            leaves, tree = tree_flatten(args)
            if tree != recorded.in_tree:
                raise TypeError("a graphed callable takes arguments of the structure that it was recorded with")
            return tree_unflatten(list(Replay.apply(*leaves, *recorded.params)), recorded.out_tree)

        return call


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None, *, backend=""):
    """As torch.cuda.make_graphed_callables, on clutch: the same functions, of which forward and backward are graphs.

    A module is changed in place, and replays while its `training` is what it was here; it runs as before otherwise. Arguments have the shapes and dtypes of
    `sample_args`. Results and gradients lie in the graph's memory: the next call replaces them. Several callables are recorded in the order in which a
    step calls them, and their backwards in the reverse one, in one pool of memory. `backend`: as Graph's. A graphed module's attribute `graphs`, or a function's,
    has the graphs of forward and backward.
    """
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    all_of = [_Recorded(function, args) for function, args in zip(callables, sample_args, strict=True)]
    stream = torch.Stream("clutch")
    torch.accelerator.synchronize()
    with stream:
        for one in all_of:
            one.warm_up(num_warmup_iters, allow_unused_input)
        torch.accelerator.synchronize()
        for one in all_of:
            one.record_forward(pool, backend)
            pool = one.forward.pool()
        wants = [[isinstance(o, torch.Tensor) and o.requires_grad for o in one.outputs] for one in all_of]
        for one in reversed(all_of):
            one.record_backward(pool, backend, allow_unused_input)
    torch.accelerator.synchronize()
    made = []
    for one, wants_grad in zip(all_of, wants):
        call = one.replayed(wants_grad)
        if isinstance(one.function, torch.nn.Module):
            module, plain, training = one.function, one.function.forward, one.function.training

            def forward(*args, module=module, plain=plain, training=training, call=call):
                return call(*args) if module.training == training else plain(*args)

            module.forward = forward
            module.graphs = (one.forward, one.backward)
            made.append(module)
        else:
            call.graphs = (one.forward, one.backward)
            made.append(call)
    return made[0] if single else tuple(made)
