# SPDX-License-Identifier: Apache-2.0
"""Builds a model's kernels before its first step."""
import copy

import torch


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def warm_up(model, *inputs, backward=True, **named):
    """Runs a copy of the model once, forward and (unless told otherwise) backward, so that its kernels are built and kept on disk.

    Parameters, buffers, gradients and random numbers stay as they were. Returns the ops that ran on the CPU, with their counts.
    """
    clutch = torch.clutch
    before = clutch.fallbacks()
    with torch.random.fork_rng(devices=range(clutch.device_count()), device_type="clutch"), torch.enable_grad():
        twin = copy.deepcopy(model)
        outputs = twin(*inputs, **named)
        losses = [t.float().sum() for t in _tensors(outputs) if t.requires_grad]
        if backward and losses:
            torch.stack(losses).sum().backward()
    clutch.synchronize()
    return {op: count - before.get(op, 0) for op, count in clutch.fallbacks().items() if count > before.get(op, 0)}
