# SPDX-License-Identifier: Apache-2.0
"""PyTorch on any OpenCL device: the backend `clutch`.

`import torch` loads it by itself, unless TORCH_CLUTCH=0 or another accelerator is there (TORCH_CLUTCH=1: even then).
`import torch_clutch` always registers it. torch.clutch is the device module.
"""
import torch

from . import _registration

__version__ = "0.2.0"


def _autoload():
    """Entry point of the group torch.backends: must not raise, or `import torch` itself would fail."""
    _registration.autoload()


# An explicit import asks for the backend. During `import torch` the entry point decides, after this module is loaded.
if not _registration.within_import_of_torch():
    _registration.register()
