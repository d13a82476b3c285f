# SPDX-License-Identifier: Apache-2.0
"""Which devices there are, which is current, what a device is."""
import torch
from halves import in_thread, kind, last, module, of, row

acc = torch.accelerator


@row()
def device_count(line):
    count = acc.device_count()
    line("there are devices", acc.is_available() and count > 0)
    line("they are as many as are listed", module().device_count() == count and module().is_available())
    line.refused("the device behind the last", lambda: torch.empty(1, device=of(count)))


@row()
def current_accelerator(line):
    device = acc.current_accelerator(check_available=True)
    line("a tensor of it is on the current device", device.index is None and torch.empty(1, device=device).device.index == acc.current_device_index())
    line("it is the default one", torch.empty(1, device=device).device.index == in_thread(acc.current_device_index))


@row()
def current_device(line):
    first = acc.current_device_index()
    acc.set_device_index(last())
    line("the last one is current", acc.current_device_index() == module().current_device() == last())
    line("a tensor is made there", torch.empty(1, device=kind()).device.index == last())
    line("another thread has the default one", in_thread(acc.current_device_index) == first)
    module().set_device(first)
    line("the first one is current again", acc.current_device_index() == first)


@row()
def device_scope(line):
    first, now = acc.current_device_index(), acc.current_device_index
    as_wanted = []
    with acc.device_index(last()):
        as_wanted.append(now() == last())
        with module().device(first):
            as_wanted.append(now() == first)
            with acc.device_index(None):
                as_wanted.append(now() == first)
        as_wanted.append(now() == last())
    as_wanted.append(now() == first)
    line("last, first, none named, last, first again", as_wanted)
    try:
        with acc.device_index(last()):
            raise KeyError("leaves the scope")
    except KeyError:
        line("the former one behind an exception", now() == first)


@row()
def device_of(line):
    first = acc.current_device_index()
    there = torch.zeros(2, device=of(last()))
    with module().device_of(there):
        line("the tensor's device is current", acc.current_device_index() == there.device.index)
    line("the default one is current again", acc.current_device_index() == first)


@row()
def default_device(line):
    first = acc.current_device_index()
    as_wanted = []
    with of(last()):
        as_wanted.append(torch.zeros(1).device == of(last()))
        with of(first):
            as_wanted.append(torch.zeros(1).device == of(first))
        as_wanted.append(torch.zeros(1).device == of(last()))
    with torch.device(kind()):
        as_wanted.append(torch.zeros(1).device == of(first))
    line("tensors of scopes: last, first, last, first", as_wanted)
    try:
        with of(last()):
            raise KeyError("leaves the scope")
    except KeyError:
        line("a tensor behind an exception is on the first", torch.zeros(1, device=kind()).device == of(first))
    torch.set_default_device(of(last()))
    line("set for the process: a tensor is on the last", torch.zeros(1).device == of(last()))
    line("it is the one that is told", torch.get_default_device() == of(last()))
    torch.set_default_device(None)
    line("reset: a tensor is on the first", torch.zeros(1, device=kind()).device == of(first))


@row()
def device_properties(line):
    facts = module().get_device_properties(acc.current_device_index())
    line("it has a name", len(module().get_device_name()) > 0 and facts.name == module().get_device_name())
    line("bytes of memory are positive", facts.total_memory > 0)
    units = next(getattr(facts, name) for name in ("compute_units", "multi_processor_count", "max_compute_units") if hasattr(facts, name))
    line("compute units are positive", units > 0)
    line("the last one has a name, too", len(module().get_device_name(last())) > 0)


# Of these clutch, CUDA and XPU have a name in common.
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.complex64: "c64", torch.complex128: "c128",
         torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64"}


@row()
def device_capability(line):
    supported = acc.get_device_capability()["supported_dtypes"]
    everywhere, holds, convertible = [], True, True
    one = torch.ones(1, device=kind())
    for dtype, name in NAMES.items():
        if dtype not in supported:
            continue
        if dtype not in (torch.float64, torch.complex128):
            everywhere.append(name)
        holds = holds and torch.empty(3, dtype=dtype, device=kind()).dtype == dtype
        there = one.to(dtype)
        convertible = convertible and (there.real if there.is_complex() else there).to(torch.float32).item() == 1
    line("dtypes of every device", everywhere)
    line("f64 and c128 go together", (torch.float64 in supported) == (torch.complex128 in supported))
    line("tensors of each can be made", holds)
    line("each has what f32 has", convertible)


@row()
def bf16(line):
    line("supported", module().is_bf16_supported())
    x = torch.full((2,), 1.5, dtype=torch.bfloat16, device=kind())
    line("1.5 * 1.5", (x * x).to(torch.float32))
