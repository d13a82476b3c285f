# SPDX-License-Identifier: Apache-2.0
"""torch.nn.attention.flex_attention on clutch: the higher-order operator's forward and backward for the device.

Mods come as graphs; each is written as text (flex_program.py), which the extension interprets while clutch traces it. What has no word there falls to
PyTorch's dense formula, with all scores in memory.
"""
import importlib
import importlib.abc
import importlib.util
import math
import sys
import threading
import warnings
import weakref

import torch

from . import flex_program

_MODULE = "torch.nn.attention.flex_attention"
_LN2 = math.log(2)  # the operator's lse and largest score are base 2
_TOO_MANY = "a kernel must have at most"  # what clutch says where captured tensors take more arguments than there are
_WHOLE_BLOCK = 1 << 30  # block size of a mask that nobody gave

_programs = weakref.WeakKeyDictionary()  # of each mod: its program, or why it has none, by what it depends on


def _tensors(buffers):
    return [b for b in buffers if isinstance(b, torch.Tensor)]


def _program(module, bounds, buffers, is_score, backward):
    """A mod's text and the tensors that it reads: those that it captured, then those that are part of it. Errors: Unknown."""
    known = _programs.setdefault(module, {})
    key = (bounds, tuple((b.shape, b.dtype) if isinstance(b, torch.Tensor) else b for b in buffers), is_score, backward)
    if key not in known:
        try:
            text, added = flex_program.program(module, bounds, buffers, is_score)
            added = [t.to("clutch") for t in added]
            refusal = torch.ops.clutch.flex_refusal(text, _tensors(buffers) + added, is_score, backward) if text else ""
            known[key] = f"a mod ({refusal})" if refusal else (text, added)
        except flex_program.Unknown as why:
            known[key] = str(why)
    if isinstance(known[key], str):
        raise flex_program.Unknown(known[key])
    text, added = known[key]
    return text, _tensors(buffers) + added


def _call(q, k, score_mod, block_mask, score_buffers, mask_buffers, backward=False):
    """What flex and flex_backward of the extension take of the mods and the mask."""
    q_len, kv_len, counts, indices, full_counts, full_indices = block_mask[:6]
    q_block, kv_block = block_mask[10:12]
    bounds = (q.size(0), q.size(1), q.size(2), k.size(2))
    mask, mask_reads = _program(block_mask[-1], bounds, mask_buffers, False, backward)
    blocks = []
    if q_block < _WHOLE_BLOCK:
        blocks = [counts, indices] if full_counts is None else [counts, indices, full_counts, full_indices]
    blocks = [b.contiguous() for b in blocks]
    score, score_reads = _program(score_mod, bounds, score_buffers, True, backward)
    sizes = [min(q_len, q.size(2)), min(kv_len, k.size(2)), q_block, kv_block]
    return (score, score_reads, mask, mask_reads, blocks, sizes)


def _as_query(query, key, value):
    """Keys and values of the query's dtype: narrower ones are widened, exactly."""
    for t in (key, value):
        if t.dtype != query.dtype and t.element_size() >= query.element_size():
            raise flex_program.Unknown(f"{t.dtype} with queries of {query.dtype}")
    return key.to(query.dtype), value.to(query.dtype)


def _dense(why, implementation, *args):
    if isinstance(why, ValueError):
        if _TOO_MANY not in str(why):
            raise why
        why = "a mod that captures that many tensors"
    warnings.warn(f"flex_attention on clutch: {why} is not known there; all scores are kept in memory", stacklevel=3)
    return implementation(*args)


def register():
    from torch._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard

    hop = importlib.import_module("torch._higher_order_ops.flex_attention")  # the package has an operator of the same name

    @hop.flex_attention.py_impl(DispatchKey.PrivateUse1)
    def forward(query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers=(), mask_mod_other_buffers=()):
        try:
            call = _call(query, key, score_mod, block_mask, score_mod_other_buffers, mask_mod_other_buffers)
            out, lse, largest = torch.ops.clutch.flex(query, *_as_query(query, key, value), *call, scale)
        except (flex_program.Unknown, ValueError) as why:
            return _dense(why, hop.sdpa_dense, query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers, mask_mod_other_buffers)
        return out, lse / _LN2, largest / _LN2

    @hop.flex_attention_backward.py_impl(DispatchKey.PrivateUse1)
    def backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph, joint_graph, block_mask, scale, kernel_options,
                 score_mod_other_buffers, mask_mod_other_buffers):
        if grad_out is None:
            grad_out = torch.zeros_like(out)
        grad_lse = None if grad_logsumexp is None else grad_logsumexp.contiguous() / _LN2
        try:
            call = _call(query, key, fw_graph, block_mask, score_mod_other_buffers, mask_mod_other_buffers, backward=True)
            made = torch.ops.clutch.flex_backward(grad_out, grad_lse, query, *_as_query(query, key, value), out, logsumexp * _LN2, *call, scale)
        except (flex_program.Unknown, ValueError) as why:
            return _dense(why, hop.sdpa_dense_backward, query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph, joint_graph, block_mask, scale,
                          kernel_options, score_mod_other_buffers, mask_mod_other_buffers)
        of_q, of_k, of_v, captured = made
        captured = iter(captured)
        return of_q, of_k.to(key.dtype), of_v.to(value.dtype), tuple(next(captured) if isinstance(b, torch.Tensor) else None for b in score_mod_other_buffers)

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
