# SPDX-License-Identifier: Apache-2.0
"""Programs of torch.export as saved graphs of clutch, which a program without Python loads and runs."""
import copy
import re

import torch
from torch.utils import _pytree as pytree

from .graphs import Graph

_UNUSED = re.compile(r"tensor '(.*?)' must be used by a node")


def save_exported(program, path, args=None, kwargs=None, *, device="clutch", backend="fused", binaries=False):
    """Records a program of torch.export on the device, and saves the graph: see clutch::Graph::load(). Waits.

    Inputs have the names of the program's, outputs "output0", "output1", ..., parameters and buffers those of the module ("state." before one that an input
    has). All are contiguous there. `args`, `kwargs`: of the shapes that the graph is for; by default the example inputs. A buffer that the program changes is
    changed at each run, and random numbers go on. `backend`: of the graph's replays; fused launches are in the file. `binaries`: as Graph.save().
    Returns a dict of what the file has by name: (shape, dtype). Inputs and parameters that the program does not read are not in it.
    Errors: those of the program's guards; NotImplementedError for ops that run on the CPU; RuntimeError for a read of the host.
    """
    if not isinstance(program, torch.export.ExportedProgram):
        raise TypeError(f"save_exported takes a program of torch.export, got {type(program).__name__}")
    if args is None and kwargs is None:
        if program.example_inputs is None:
            raise ValueError("save_exported: the program has no example inputs, so args must be given")
        args, kwargs = program.example_inputs
    device = torch.device(device)
    inputs, structure = pytree.tree_flatten((tuple(args or ()), dict(kwargs or {})))
    inputs = [_on(device, i) for i in inputs]
    module = _moved(program, device).module()
    args, kwargs = pytree.tree_unflatten(inputs, structure)
    stream = torch.Stream(device)
    with torch.no_grad():
        state = {name: t.detach().clone() for name, t in module.named_buffers()}
        torch.accelerator.synchronize(device)  # inputs and copies are there before the other stream reads and changes
        with stream:
            module(*args, **kwargs)  # builds kernels
        torch.accelerator.synchronize(device)
        for name, buffer in module.named_buffers():
            buffer.copy_(state[name])
        torch.accelerator.synchronize(device)
        graph = Graph(backend=backend)
        with stream, graph:
            outputs = [o for o in pytree.tree_leaves(module(*args, **kwargs)) if isinstance(o, torch.Tensor)]
            taken = {t.untyped_storage().data_ptr() for t in (*inputs, *module.parameters(), *module.buffers()) if isinstance(t, torch.Tensor)}
            outputs = [_own(o, taken) for o in outputs]
    named = {}
    for name, value in zip(program.graph_signature.user_inputs, inputs, strict=True):
        if isinstance(value, torch.Tensor):
            named[name] = value
    named |= {f"output{i}": o for i, o in enumerate(outputs)}
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        if value.is_contiguous():
            named[f"state.{name}" if name in named else name] = value.detach()
    torch.accelerator.synchronize(device)
    while True:
        try:
            graph.save(path, named, binaries=binaries)
            return {name: (tuple(t.shape), t.dtype) for name, t in named.items()}
        except ValueError as error:
            unused = _UNUSED.search(str(error))
            if unused is None or unused[1] not in named or unused[1].startswith("output"):
                raise
            del named[unused[1]]


def _on(device, value):
    return value.detach().to(device).contiguous().clone() if isinstance(value, torch.Tensor) else value


def _moved(program, device):
    tensors = [t for t in (*program.state_dict.values(), *program.constants.values()) if isinstance(t, torch.Tensor)]
    nodes = [v for n in program.graph.nodes for v in pytree.tree_leaves(n.meta.get("val")) if isinstance(v, torch.Tensor)]
    if all(t.device.type == device.type for t in (*tensors, *nodes)):
        return program
    from torch.export.passes import move_to_device_pass

    return move_to_device_pass(copy.deepcopy(program), str(device))


def _own(output, taken):
    """The output in memory that is its own, whole and contiguous."""
    storage = output.untyped_storage()
    if output.is_contiguous() and storage.nbytes() == output.nbytes and storage.data_ptr() not in taken:
        taken.add(storage.data_ptr())
        return output
    return output.clone(memory_format=torch.contiguous_format)
