# SPDX-License-Identifier: Apache-2.0
"""PyTorch on any OpenCL device: the backend `clutch`.

`import torch` loads it by itself, unless TORCH_CLUTCH=0 or another accelerator is there (TORCH_CLUTCH=1: even then).
`import torch_clutch` always registers it. torch.clutch is the device module.
"""
__version__ = "0.2.0"


def _autoload():
    """Entry point of the group torch.backends: must not raise, or `import torch` itself would fail."""
    from . import _registration

    _registration.autoload()


# Below the entry point, which the import of PyTorch calls.
import torch  # noqa: E402, F401

from . import _registration  # noqa: E402

# An explicit import asks for the backend. During `import torch` the entry point decides, after this module is loaded.
if not _registration.within_import_of_torch():
    _registration.register()
