# SPDX-License-Identifier: Apache-2.0
"""How dynamo and inductor's device-agnostic parts ask about the device `clutch`. Imported with the compiler alone: dynamo takes a second to import."""
import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

_device = torch.clutch


class ClutchInterface(DeviceInterface):
    Event = torch.Event
    Stream = torch.Stream
    current_device = staticmethod(_device.current_device)
    set_device = staticmethod(_device.set_device)
    device_count = staticmethod(_device.device_count)
    is_available = staticmethod(_device.is_available)
    stream = staticmethod(_device.stream)
    current_stream = staticmethod(_device.current_stream)
    set_stream = staticmethod(_device.set_stream)
    synchronize = staticmethod(_device.synchronize)
    get_compute_capability = staticmethod(_device.get_device_capability)
    is_bf16_supported = staticmethod(_device.is_bf16_supported)
    memory_allocated = staticmethod(_device.memory_allocated)

    class Worker(DeviceInterface.Worker):
        set_device = staticmethod(_device.set_device)
        current_device = staticmethod(_device.current_device)
        get_device_properties = staticmethod(_device.get_device_properties)

    @staticmethod
    def _set_stream_by_id(stream_id, device_index, device_type):
        _device.set_stream(torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))

    @classmethod
    def get_device_properties(cls, device=None):
        return _device.get_device_properties(device)

    @staticmethod
    def exchange_device(device):
        former = _device.current_device()
        if device >= 0:
            _device.set_device(device)
        return former

    maybe_exchange_device = exchange_device

    @staticmethod
    def get_raw_stream(device_idx):
        return _device.current_stream(device_idx).stream_id

    @staticmethod
    def is_dtype_supported(dtype, including_emulation=False):
        return dtype in torch.accelerator.get_device_capability("clutch")["supported_dtypes"]

    @staticmethod
    def is_triton_capable(device=None):
        return False

    @classmethod
    def raise_if_triton_unavailable(cls, device=None):
        raise RuntimeError("the device clutch runs no Triton kernels; torch.compile(backend='clutch') compiles for it")


register_interface_for_device("clutch", ClutchInterface)
