# SPDX-License-Identifier: Apache-2.0
"""torch.cond and torch.while_loop on clutch: the device decides, no predicate is read by the host, and graphs record all branches."""
import contextlib
import contextvars
import importlib

import torch
from torch.utils import _pytree as pytree

from . import _callbacks

_C = torch.ops.clutch
_bound = contextvars.ContextVar("max_iterations", default=None)


class Loops:
    """The loops of a block: a tensor of rank 0 for each, how many iterations it ran."""

    def __init__(self, bound):
        self.bound, self.iterations = bound, []


@contextlib.contextmanager
def max_iterations(bound):
    """Within the block torch.while_loop runs at most so many iterations, which are enqueued at once: the device skips those behind a loop's end, and the host
    reads no predicate. A captured loop must have a bound. Gives an object whose list `iterations` has a tensor for each loop: how many it ran; one that equals
    the bound may have been cut.
    """
    if not isinstance(bound, int) or bound < 0:
        raise ValueError(f"max_iterations must be a whole number of at least 0, got {bound!r}")
    loops = Loops(bound)
    token = _bound.set(loops)
    try:
        yield loops
    finally:
        _bound.reset(token)


def switch(index, branches, operands=()):
    """branches[index](*operands), for an index that is a tensor of one whole number on the device, which decides: branch 0 for a negative index, the last one for
    one past it. Branches give as many tensors, of the same shapes and dtypes. PyTorch 2.12 has no such operator; this one has no gradient and is not traced by
    torch.compile.
    """
    branches, operands = list(branches), tuple(operands)
    if not branches:
        raise ValueError("switch must have at least one branch, got none")
    if torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in pytree.tree_leaves(operands)):
        raise RuntimeError("switch has no gradient: use torch.no_grad(), or detach its operands")
    leaves, structure = pytree.tree_flatten(operands)
    if not isinstance(index, torch.Tensor) or not all(_ours(t) for t in (index, *leaves)):
        raise TypeError("switch takes an index and operands that are tensors of the device clutch")
    result = _Result()
    functions = [result.of(lambda *of, branch=branch: branch(*pytree.tree_unflatten(of, structure))) for branch in branches]
    with _callbacks.numbers_of(*functions) as numbers:
        return result.made(_C.switch_(index, numbers, leaves))


def _ours(value):
    return isinstance(value, torch.Tensor) and value.device.type == "clutch" and value.layout == torch.strided


class _Result:
    """How branches' results are structured: as the first one's."""

    def __init__(self):
        self.structure = self.leaves = None

    def of(self, function, operands=None):
        """What the extension calls: `function` with tensors, and with the operands that are none in their places."""

        def called(tensors):
            given = iter(tensors)
            arguments = tensors if operands is None else [next(given) if isinstance(o, torch.Tensor) else o for o in operands]
            leaves, structure = pytree.tree_flatten(function(*arguments))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            others = [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves]
            if not all(_ours(t) for t in tensors):
                raise NotImplementedError("a result of a branch is not a tensor of the device")
            if self.structure is None:
                self.structure, self.others = structure, others
            elif structure != self.structure or others != self.others:
                raise NotImplementedError("results of branches that differ in what is no tensor")
            return tensors, 0

        return called

    def made(self, tensors):
        found = iter(tensors)
        return pytree.tree_unflatten([next(found) if other is None else other[0] for other in self.others], self.structure)


def _by_host(error):
    """The device cannot skip something in a branch. Without a capture the host may read the predicate."""
    if torch.clutch.is_current_stream_capturing():
        raise error


def register():
    from torch._C import DispatchKey

    cond = importlib.import_module("torch._higher_order_ops.cond")
    loop = importlib.import_module("torch._higher_order_ops.while_loop")

    @cond.cond_op.py_impl(DispatchKey.PrivateUse1)
    def cond_of_clutch(pred, true_fn, false_fn, operands):
        tensors = [o for o in operands if isinstance(o, torch.Tensor)]
        if not isinstance(pred, torch.Tensor) or not all(_ours(t) for t in (pred, *tensors)):
            return cond.cond_op_dense(pred, true_fn, false_fn, operands)
        result = _Result()
        with _callbacks.numbers_of(result.of(true_fn, operands), result.of(false_fn, operands)) as (then, otherwise):
            try:
                return result.made(_C.cond(pred, then, otherwise, tensors))
            except NotImplementedError as error:
                _by_host(error)
        return cond.cond_op_dense(pred, true_fn, false_fn, operands)

    @loop.while_loop_op.py_impl(DispatchKey.PrivateUse1)
    def while_loop_of_clutch(cond_fn, body_fn, carried_inputs, additional_inputs, stack_output=False):
        loops = _bound.get()
        is_ours = all(_ours(t) for t in carried_inputs) and all(_ours(t) or not isinstance(t, torch.Tensor) for t in additional_inputs) and not stack_output
        if torch.clutch.is_current_stream_capturing():
            if stack_output or not is_ours:
                raise NotImplementedError("while_loop in a graph takes a state of tensors of the device alone, and has no gradient")
            if loops is None:
                raise RuntimeError("while_loop in a graph must have a bound: with torch.clutch.max_iterations(n)")
        if loops is None or not is_ours:
            return loop.while_loop_dense(cond_fn, body_fn, carried_inputs, additional_inputs, stack_output)
        operands = (*carried_inputs, *additional_inputs)
        tensors = [o for o in additional_inputs if isinstance(o, torch.Tensor)]

        def condition(given):
            again = cond_fn(*_filled(operands, given))
            if isinstance(again, bool):
                again = torch.full((), again, device=given[0].device)
            return [again], 0

        def body(given):
            return list(body_fn(*_filled(operands, given))), 0

        with _callbacks.numbers_of(condition, body) as (asked, run):
            try:
                state, iterations = _C.while_loop(asked, run, list(carried_inputs), tensors, loops.bound, carried_inputs[0].device.index)
            except NotImplementedError as error:
                _by_host(error)
                return loop.while_loop_dense(cond_fn, body_fn, carried_inputs, additional_inputs)
        loops.iterations.append(iterations)
        return tuple(state)


def _filled(operands, tensors):
    """Tensors in the places of operands that are tensors."""
    given = iter(tensors)
    return [next(given) if isinstance(o, torch.Tensor) else o for o in operands]
