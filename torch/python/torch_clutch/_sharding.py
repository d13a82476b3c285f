# SPDX-License-Identifier: Apache-2.0
"""How DTensor shards ops that have a kernel of their own on clutch's devices, where PyTorch's CPU makes them of others."""
import importlib.abc
import importlib.machinery
import sys

import torch

TENSORS = "torch.distributed.tensor"


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls a function behind the import of a module, which is too long for who does not use it."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self.then()

        spec.loader.exec_module = exec_module
        return spec


def register():
    if TENSORS in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _WhenImported(TENSORS, _register))


def _register():
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding

    @register_sharding(torch.ops.aten.linear_backward.default)
    def linear_backward(input, grad_output, weight, output_mask):
        last = len(input.shape) - 1
        all_of = Replicate()
        # Placements of the gradients of input, weight and bias; of input, grad_output, weight.
        ways = [
            ([all_of] * 3, [all_of] * 3),
            ([Partial(), Shard(0), Shard(0)], [all_of, Shard(last), Shard(0)]),
            ([Shard(last), Shard(1), all_of], [Shard(last), all_of, Shard(1)]),
            ([Partial()] * 3, [all_of, Partial(), all_of]),
        ]
        ways += [([Shard(d), Partial(), Partial()], [Shard(d), Shard(d), all_of]) for d in range(last)]
        return [([p if asked else None for p, asked in zip(outputs, output_mask)], [*inputs, None]) for outputs, inputs in ways]
