# SPDX-License-Identifier: Apache-2.0
"""Functions that the extension calls by number, through the op clutch::call_python."""
import contextlib
import itertools

import torch

_functions = {}
_numbers = itertools.count()
_library = None


def add(function):
    """The function's number. It takes a list of tensors and gives a list of tensors, and a number that the extension hands back."""
    number = next(_numbers)
    _functions[number] = function
    return number


def remove(number):
    _functions.pop(number, None)


@contextlib.contextmanager
def numbers_of(*functions):
    """The numbers of functions within a block."""
    numbers = [add(f) for f in functions]
    try:
        yield numbers
    finally:
        for number in numbers:
            remove(number)


def register():
    global _library
    _library = torch.library.Library("clutch", "IMPL")
    _library.impl("call_python", lambda function, tensors: _functions[function](tensors), "CompositeImplicitAutograd")
