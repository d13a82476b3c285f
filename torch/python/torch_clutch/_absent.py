# SPDX-License-Identifier: Apache-2.0
"""torch.clutch where the backend is not registered: each use says why."""
why = "it was not looked for"


def is_available():
    return False


def device_count():
    return 0


def is_initialized():
    return False


def _lazy_init():
    raise RuntimeError(f"clutch is not available: {why}")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"torch.clutch has no {name}: clutch is not available: {why}")
