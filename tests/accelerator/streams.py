# SPDX-License-Identifier: Apache-2.0
"""Streams, which is current, their order, and events."""
import torch
from halves import in_thread, kind, last, module, of, row

acc = torch.accelerator


def here():
    return of(acc.current_device_index())


class Trail:
    """Names of what is current, as a half goes on."""

    def __init__(self, s, t):
        self.known = [("s", s), ("t", t), ("first", acc.current_stream())]
        self.names = []

    def note(self):
        now = acc.current_stream()
        self.names.append(next((name for name, stream in self.known if stream == now), "other"))


def default_stream(index=None):
    """A thread that did nothing yet has each device's default stream."""
    return in_thread(lambda: acc.current_stream(index if index is not None else acc.current_device_index()))


def work(times=5, start=1.0):
    x = torch.full((1 << 16,), start, device=kind())
    for _ in range(times):
        x = x + 1
    return x


@row()
def current_stream(line):
    first = acc.current_stream()
    line("at first the default one", first == default_stream() and module().current_stream() == first)
    s = torch.Stream(here())
    acc.set_stream(s)
    line("set", acc.current_stream() == s)
    line("another thread has the default one", default_stream() == first)
    before = acc.current_device_index()
    there = torch.Stream(of(last()))
    acc.set_stream(there)
    line("a stream's device is current with it", acc.current_device_index() == last())
    acc.set_stream(default_stream(last()))
    acc.set_stream(first)
    acc.set_device_index(before)
    line("set back", acc.current_stream() == first)


@row()
def stream_scope(line):
    s, t = torch.Stream(here()), torch.Stream(here())
    trail = Trail(s, t)
    with s:
        trail.note()
        with module().stream(t):
            trail.note()
        trail.note()
    trail.note()
    line("s, then t within it", trail.names)
    first = acc.current_stream()
    try:
        with s:
            raise KeyError("leaves the scope")
    except KeyError:
        line("the former one behind an exception", acc.current_stream() == first)


@row()
def stream_scope_reentrant(line):
    s, t = torch.Stream(here()), torch.Stream(here())
    trail = Trail(s, t)
    with s:
        with s:
            trail.note()
        trail.note()
    trail.note()
    line("s within s", trail.names)
    mixed = Trail(s, t)
    with s:
        with t:
            with s:
                mixed.note()
            mixed.note()
        mixed.note()
    mixed.note()
    line("s within t within s", mixed.names)


@row()
def stream_scope_device(line):
    first = acc.current_device_index()
    usual = acc.current_stream(last())
    s = torch.Stream(of(last()))
    with s:
        line("the stream's device is current", acc.current_device_index() == last())
        line("so is the stream", acc.current_stream() == s)
        line("a tensor is made there", torch.zeros(1, device=kind()).device.index == last())
    line("the former device is current again", acc.current_device_index() == first)
    line("the other device has its own stream again", acc.current_stream(last()) == usual)


@row()
def stream_query(line):
    s = torch.Stream(here())
    line("a new stream has nothing to do", s.query())
    with s:
        x = work()
    s.synchronize()
    line("nothing is left to do behind synchronize", s.query())
    with s:
        line("its work is done", x[:2])


@row()
def stream_identity(line):
    s, t = torch.Stream(here()), torch.Stream(of(last()))
    copy = torch.Stream(stream_id=s.stream_id, device_index=s.device_index, device_type=s.device_type)
    line("devices", [s.device == here(), t.device == of(last())])
    line("a copy is the same one", copy == s and copy.stream_id == s.stream_id)
    line("two streams are two", not (s == t))
    line("one of high priority is another one", not (torch.Stream(here(), priority=-1) == s))


@row()
def stream_wait(line):
    s, t = torch.Stream(here()), torch.Stream(here())
    with s:
        x = torch.full((1 << 16,), 1.0, device=kind())
        for _ in range(5):
            x = x * 2
    t.wait_event(s.record_event())
    with t:
        y = x + 1
    s.wait_stream(t)
    with s:
        z = y + x
    s.synchronize()
    line("32 + 1 and 33 + 32", [y[7].item(), z[7].item()])


@row()
def native_handle(line):
    s, t = torch.Stream(here()), torch.Stream(here())
    line("there is one", s.native_handle != 0)
    line("a stream's is the same again", s.native_handle == s.native_handle)
    line("another stream's is another one", s.native_handle != t.native_handle)


@row("cuda")
def external_stream(line):
    handle = torch.cuda.Stream().cuda_stream
    s = torch.cuda.get_stream_from_external(handle)
    line("its handle is the caller's", s.cuda_stream == torch.cuda.ExternalStream(handle).cuda_stream == handle)
    with torch.cuda.stream(s):
        line("it is current in a scope", torch.cuda.current_stream() == s)
        x = torch.ones(2, device="cuda") + 2
        s.synchronize()
        line("work on it", x)


@row()
def synchronize(line):
    s, t = torch.Stream(here()), torch.Stream(here())
    with s:
        x = work(5, 1.0)
    with t:
        y = work(5, 2.0)
    acc.synchronize()
    line("both streams are done", [s.query(), t.query()])
    line("the results of both", [x[0].item(), y[0].item()])
    module().synchronize(last())
    line("another device is waited for by name", torch.Stream(of(last())).query())


@row()
def event(line):
    never = torch.Event(here())
    line("an event that was not recorded is done", never.query())
    never.synchronize()
    s = torch.Stream(here())
    e = torch.Event(here())
    with s:
        x = torch.full((1 << 16,), 3.0, device=kind())
        e.record()
        for _ in range(5):
            x = x + 1
        e.record()
    e.synchronize()
    line("behind its wait it is done", e.query())
    acc.current_stream().wait_event(e)
    line("so is the work before its last record", x[:1])


@row()
def event_elapsed_time(line):
    start, end = torch.Event(here(), enable_timing=True), torch.Event(here(), enable_timing=True)
    line.refused("of an event that was not recorded", lambda: start.elapsed_time(end))
    start.record()
    work()
    end.record()
    end.synchronize()
    line("milliseconds are not negative", start.elapsed_time(end) >= 0)
    line("from an event to itself", start.elapsed_time(start))


@row("graph")
def is_capturing(line):
    s, t = torch.Stream(here()), torch.Stream(here())
    x = torch.ones(2, device=kind())
    x + 1
    acc.synchronize()
    graph = acc.Graph()
    line("before", s.is_capturing())
    with s, graph:
        line("within", [s.is_capturing(), t.is_capturing(), module().is_current_stream_capturing()])
        x + 1
    line("behind", s.is_capturing())
