# SPDX-License-Identifier: Apache-2.0
"""Numbers of devices."""
import torch


def index_of(device=None):
    """The number of a device given as a number, a string, a torch.device or nothing: the current one."""
    if device is None:
        return torch.ops.clutch.current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "clutch":
        raise ValueError(f"Expected a clutch device, but got: {device}")
    return torch.ops.clutch.current_device() if device.index is None else device.index
