# SPDX-License-Identifier: Apache-2.0
"""Tensors to and from other libraries by DLPack, as kDLOpenCL. PyTorch's own functions know no OpenCL memory."""
import ctypes

import torch

_NAME = b"dltensor"
_USED = b"used_dltensor"
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


def to_dlpack(tensor, host=False):
    """A capsule of the tensor's memory, without a copy; `host`: of a copy in host memory. Waits."""
    return _api.PyCapsule_New(torch.ops.clutch.to_dlpack(tensor.detach(), host), _NAME, None)


def from_dlpack(capsule, device=None):
    """The tensor of a capsule, or of an object with __dlpack__: OpenCL memory as it is, host memory copied to `device`."""
    if hasattr(capsule, "__dlpack__"):
        capsule = capsule.__dlpack__()
    if not _api.PyCapsule_IsValid(capsule, _NAME):
        raise ValueError("from_dlpack() takes a capsule named dltensor that nobody has used")
    index = torch.clutch._index(device)
    tensor = torch.ops.clutch.from_dlpack(_api.PyCapsule_GetPointer(capsule, _NAME), index)
    _api.PyCapsule_SetName(capsule, _USED)
    return tensor
