# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's halves of the rows share: the decorator `row`, lines, and the accelerator's device module."""
import os
import tempfile

import torch

HALVES = {}  # name: (where it runs, function)


def row(runs_on="accelerator"):
    """Enters a half of the row that is named as the function. `runs_on`: accelerator (whichever PyTorch has), graph (one with torch.accelerator.Graph), host
    (PyTorch without one), cuda, mps."""

    def enter(function):
        HALVES[function.__name__] = (runs_on, function)
        return function

    return enter


def text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, torch.Tensor):
        return text_of(value.tolist())
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(text_of(one) for one in value) + "]"
    return str(value)


class Lines:
    def __init__(self):
        self.text = ""

    def __call__(self, what, value):
        self.text += f"  {what}: {text_of(value)}\n"

    def refused(self, what, call):
        try:
            call()
            taken = True
        except (RuntimeError, ValueError, TypeError, AssertionError):
            taken = False
        self(what, "taken" if taken else "refused")


def kind():
    """cuda, xpu, mps or clutch."""
    return torch.accelerator.current_accelerator().type


def module():
    """torch.cuda, torch.xpu, torch.mps or torch.clutch: whose names the rows' calls have."""
    return torch.get_device_module(kind())


def of(index):
    return torch.device(kind(), index)


def last():
    return torch.accelerator.device_count() - 1


class temporary_file:
    """A path for a file of this process, which is removed at the end of the block."""

    def __init__(self, name):
        self.path = os.path.join(tempfile.gettempdir(), f"accelerator_rows_{os.getpid()}_{name}")

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        if os.path.exists(self.path):
            os.remove(self.path)


def in_thread(function):
    """What a function gives in another thread."""
    import threading

    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]
