# SPDX-License-Identifier: Apache-2.0
"""When and how the backend becomes PyTorch's device `clutch`."""
import atexit
import os
import sys
import types
from pathlib import Path

import torch

NAME = "clutch"
LIBRARY = "libtorch_clutch.so"

_state = types.SimpleNamespace(registered=False, why=None)


def within_import_of_torch():
    """PyTorch calls entry points at the end of its own import."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_import_device_backends":
            return True
        frame = frame.f_back
    return False


def other_accelerator():
    """The name of an accelerator that PyTorch would use without us; None if there is none. Starts no driver that forbids fork()."""
    if torch.backends.mps.is_built() and torch.backends.mps.is_available():
        return "mps"
    if torch.version.cuda is not None or torch.version.hip is not None:
        if torch.cuda.device_count() > 0:  # by NVML
            return "cuda"
    if torch.version.xpu is not None and torch.xpu.device_count() > 0:
        return "xpu"
    current = torch._C._get_privateuse1_backend_name()
    return None if current in ("privateuseone", NAME) else current


def autoload():
    wish = os.environ.get("TORCH_CLUTCH", "")
    if wish == "0":
        return
    try:
        if wish != "1":
            other = other_accelerator()
            if other is not None:
                return absent(f"this process has the accelerator {other}; TORCH_CLUTCH=1 or `import torch_clutch` takes clutch nevertheless")
        register()
    except Exception as error:  # whatever it is, `import torch` goes on
        absent(f"{type(error).__name__}: {error}")


def library_path():
    """Beside the package in a wheel; TORCH_CLUTCH_LIBRARY names the one of a build folder."""
    given = os.environ.get("TORCH_CLUTCH_LIBRARY")
    return Path(given) if given else Path(__file__).parent / LIBRARY


def absent(why):
    """Leaves a torch.clutch that says why the device is not there."""
    _state.why = why
    if not hasattr(torch, NAME):
        from . import _absent

        _absent.why = why
        torch.clutch = _absent
        sys.modules["torch.clutch"] = _absent


def register():
    if _state.registered:
        return
    former = torch._C._get_privateuse1_backend_name()
    if former not in ("privateuseone", NAME):
        raise RuntimeError(f"PyTorch has room for one device from outside, which is {former} in this process")
    try:
        torch.ops.load_library(str(library_path()))
    except OSError as error:
        raise ImportError(f"{LIBRARY} cannot be loaded (is an OpenCL loader, libOpenCL.so.1, installed?): {error}") from error
    torch.utils.rename_privateuse1_backend(NAME)
    from . import device_module

    if getattr(torch, NAME, None) is not device_module:
        if hasattr(torch, NAME):
            delattr(torch, NAME)
        torch._register_device_module(NAME, device_module)
    sys.modules["torch.clutch"] = device_module
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True)
    from . import _callbacks, control, distributed, flex, selective_scan, semi_structured

    _callbacks.register()
    control.register()
    distributed.register()
    flex.register()
    semi_structured.register()
    selective_scan.register()
    atexit.register(torch.ops.clutch.finish_all)
    _state.registered = True
