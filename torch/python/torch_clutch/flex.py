# SPDX-License-Identifier: Apache-2.0
"""torch.nn.attention.flex_attention on clutch: the higher-order operator's forward and backward for the device.

Mods come as graphs, those of dynamo (operator.add) or of ATen (aten.add.Tensor); each is written as text, which the extension interprets while
clutch traces it. What has no word there falls to PyTorch's dense formula, with all scores in memory.
"""
import importlib
import importlib.abc
import importlib.util
import math
import sys
import threading
import warnings

import torch

_MODULE = "torch.nn.attention.flex_attention"
_LN2 = math.log(2)  # the operator's lse and largest score are base 2
_WHOLE_BLOCK = 1 << 30  # block size of a mask that nobody gave

# Names of Python's and dynamo's operators that ATen has others for.
_SAME = {
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and_": "bitwise_and",
    "and": "bitwise_and",
    "or_": "bitwise_or",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "invert": "bitwise_not",
    "not_": "logical_not",
    "inv": "bitwise_not",
    "true_divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "negative": "neg",
    "absolute": "abs",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "min": "minimum",
    "max": "maximum",
    "getitem": "index",
    "mod_index": "index",
    "float": "to_float",
    "int": "to_int",
    "long": "to_int",
    "bool": "to_bool",
}
# Python's operators with the number first.
_SWAPPED = {"radd": "add", "rmul": "mul", "rtruediv": "div", "rfloordiv": "floor_divide", "rmod": "remainder", "rpow": "pow", "rand": "bitwise_and", "ror": "bitwise_or"}
_PASSED = {"view", "unsqueeze", "squeeze", "expand", "clone", "alias", "detach", "contiguous", "lift_fresh_copy", "reshape"}
_CONSTANTS = {"new_ones", "ones", "full", "new_full", "scalar_tensor"}


class _Unknown(Exception):
    """A mod has what clutch's flex has no word for."""


def _name(node):
    if isinstance(node.target, str):
        name = node.target
    elif hasattr(node.target, "_schema"):
        name = node.target._schema.name.split("::")[-1]
    else:
        name = node.target.__name__
    name = name.strip("_") if name.startswith("__") else name
    return _SAME.get(name, name)


def _conversion(args, kwargs):
    """to(dtype) and its like by the kind of the dtype."""
    dtype = next((a for a in (*args, *kwargs.values()) if isinstance(a, torch.dtype)), None)
    if dtype is None:
        raise _Unknown("a conversion without dtype")
    if dtype == torch.bool:
        return "to_bool"
    return "to_float" if dtype.is_floating_point else "to_int"


class _Writer:
    def __init__(self, inputs, buffers):
        self.inputs, self.buffers = inputs, buffers
        self.names = {}
        self.lines = []
        self.count = inputs
        self.known = set(torch.ops.clutch.flex_operations())

    def argument(self, value):
        if isinstance(value, torch.fx.Node):
            return self.names[value]
        if isinstance(value, bool):
            return f"i{int(value)}"
        if isinstance(value, int):
            return f"i{value}"
        if isinstance(value, float):
            return f"f{value!r}"
        raise _Unknown(f"an argument {type(value).__name__}")

    def line(self, op, arguments):
        if op not in self.known:
            raise _Unknown(f"the op {op}")
        self.lines.append(" ".join([op, *arguments]))
        self.count += 1
        return f"v{self.count - 1}"

    def write(self, graph_module):
        if not hasattr(graph_module, "graph"):
            raise _Unknown("a mod that was not traced")
        taken = 0
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                self.names[node] = f"v{taken}" if taken < self.inputs else f"b{taken - self.inputs}"
                taken += 1
            elif node.op == "get_attr":
                raise _Unknown("a tensor that is part of the mod")
            elif node.op == "output":
                value = node.args[0][0] if isinstance(node.args[0], (tuple, list)) else node.args[0]
                return self.names[value]
            else:
                self.names[node] = self.node(node)
        raise _Unknown("a mod without result")

    def node(self, node):
        name = _name(node)
        args = list(node.args)
        if name in _SWAPPED:
            name, args = _SWAPPED[name], args[::-1]
        if name in _PASSED:
            return self.argument(args[0])
        if name in _CONSTANTS:
            value = args[-1] if name in ("full", "new_full", "scalar_tensor") else 1
            if value is True or (value == 1 and node.kwargs.get("dtype") == torch.bool):
                return self.line("true", [])
            return self.argument(value)
        if name in ("to", "_to_copy", "type_as", "convert_element_type"):
            return self.line(_conversion(args[1:], node.kwargs), [self.argument(args[0])])
        if name == "index":
            at = args[1] if isinstance(args[1], (tuple, list)) else [args[1]]
            args = [args[0], *at]
        if name in ("add", "sub") and node.kwargs.get("alpha", 1) != 1:
            raise _Unknown("a factor of a sum")
        if name == "clamp":
            low = node.kwargs.get("min", args[1] if len(args) > 1 else None)
            high = node.kwargs.get("max", args[2] if len(args) > 2 else None)
            if low is None:
                return self.line("minimum", [self.argument(args[0]), self.argument(high)])
            if high is None:
                return self.line("maximum", [self.argument(args[0]), self.argument(low)])
            args = [args[0], low, high]
        return self.line(name, [self.argument(a) for a in args])


def _program(graph_module, inputs, buffers):
    """The text of a mod; empty for a score mod that changes nothing, and for a mask that holds everywhere."""
    writer = _Writer(inputs, buffers)
    result = writer.write(graph_module)
    if inputs == 5 and result == "v0":
        return ""
    if writer.lines and writer.lines[int(result[1:]) - inputs if result[0] == "v" else -1] == "true":
        return ""
    last = f"v{writer.count - 1}"
    if result != last or not writer.lines:
        writer.line("add", [result, "i0"])
    return "\n".join(writer.lines)


def _call(q, k, score_mod, block_mask, score_buffers, mask_buffers):
    """What flex and flex_backward of the extension take of the mods and the mask."""
    if not all(isinstance(b, torch.Tensor) for b in (*score_buffers, *mask_buffers)):
        raise _Unknown("numbers that a mod captured")
    q_len, kv_len, counts, indices, full_counts, full_indices = block_mask[:6]
    q_block, kv_block = block_mask[10:12]
    mask = _program(block_mask[-1], 4, mask_buffers)
    blocks = []
    if q_block < _WHOLE_BLOCK:
        blocks = [counts, indices] if full_counts is None else [counts, indices, full_counts, full_indices]
    blocks = [b.contiguous() for b in blocks]
    score = _program(score_mod, 5, score_buffers)
    sizes = [min(q_len, q.size(2)), min(kv_len, k.size(2)), q_block, kv_block]
    return (score, list(score_buffers), mask, list(mask_buffers), blocks, sizes)


def _dense(why, implementation, *args):
    warnings.warn(f"flex_attention on clutch: {why} is not known there; all scores are kept in memory", stacklevel=3)
    return implementation(*args)


def register():
    from torch._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard

    hop = importlib.import_module("torch._higher_order_ops.flex_attention")  # the package has an operator of the same name

    @hop.flex_attention.py_impl(DispatchKey.PrivateUse1)
    def forward(query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers=(), mask_mod_other_buffers=()):
        try:
            call = _call(query, key, score_mod, block_mask, score_mod_other_buffers, mask_mod_other_buffers)
        except _Unknown as why:
            return _dense(why, hop.sdpa_dense, query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers, mask_mod_other_buffers)
        out, lse, largest = torch.ops.clutch.flex(query, key, value, *call, scale)
        return out, lse / _LN2, largest / _LN2

    @hop.flex_attention_backward.py_impl(DispatchKey.PrivateUse1)
    def backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph, joint_graph, block_mask, scale, kernel_options,
                 score_mod_other_buffers, mask_mod_other_buffers):
        try:
            call = _call(query, key, fw_graph, block_mask, score_mod_other_buffers, mask_mod_other_buffers)
        except _Unknown as why:
            return _dense(why, hop.sdpa_dense_backward, query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph, joint_graph, block_mask, scale,
                          kernel_options, score_mod_other_buffers, mask_mod_other_buffers)
        if grad_out is None:
            grad_out = torch.zeros_like(out)
        grad_lse = None if grad_logsumexp is None else grad_logsumexp.contiguous() / _LN2
        of_q, of_k, of_v, captured = torch.ops.clutch.flex_backward(grad_out, grad_lse, query, key, value, out, logsumexp * _LN2, *call, scale)
        return of_q, of_k, of_v, tuple(captured)

    @hop.flex_attention.py_impl(DispatchKey.AutocastPrivateUse1)
    def autocast(query, key, value, *rest):
        dtype = torch.get_autocast_dtype("clutch")
        cast = [t.to(dtype) if t.is_floating_point() and t.dtype != torch.float64 else t for t in (query, key, value)]
        with _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.AutocastPrivateUse1)):
            return hop.flex_attention(*cast, *rest)

    if _MODULE in sys.modules:
        _admit(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Admission())


def _admit(module):
    """PyTorch 2.12 has a list of the devices that flex_attention is for: the device is added to it. What it says of eager calls is not true here."""
    check, warn = module._validate_device, module._warn_once
    call = threading.local()

    def validate(query, key, value):
        call.ours = query.device.type == "clutch"
        if not call.ours:
            check(query, key, value)

    def warn_once(warning_id, *args, **named):
        if warning_id != "flex_attention_performance" or not getattr(call, "ours", False):
            warn(warning_id, *args, **named)

    module._validate_device, module._warn_once = validate, warn_once


class _Admission(importlib.abc.MetaPathFinder):
    """Admits the device when the module is first imported, which costs seconds that `import torch` is not to take."""

    busy = False

    def find_spec(self, name, path, target=None):
        if name != _MODULE or self.busy:
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            _admit(module)

        spec.loader.exec_module = exec_module
        return spec
