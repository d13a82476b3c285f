# SPDX-License-Identifier: Apache-2.0
"""Graphs, parts of a device, kernels of the caller's."""
import torch
from halves import in_thread, kind, module, row, temporary_file

acc = torch.accelerator


class Ready:
    """A tensor and a stream that are ready for a capture."""

    def __init__(self):
        self.stream = torch.Stream(kind())
        self.x = torch.ones(4, device=kind())
        self.x + 1  # builds what is captured
        acc.synchronize()

    def increment(self, graph):
        with self.stream, graph:
            self.x.add_(1)

    def value(self):
        acc.synchronize()
        return self.x[3].item()


@row("graph")
def graph(line):
    ready = Ready()
    g = acc.Graph()
    ready.increment(g)
    line("a capture runs nothing", ready.value())
    g.replay()
    g.replay()
    line("two replays", ready.value())
    ready.x.fill_(10)
    acc.synchronize()
    g.replay()
    line("with another value in the tensor", ready.value())


@row("graph")
def graph_begin_and_end(line):
    ready = Ready()
    g = acc.Graph()
    with ready.stream:
        g.capture_begin()
        line("it captures", ready.stream.is_capturing())
        ready.x.add_(2)
        g.capture_end()
    g.replay()
    line("replayed", ready.value())
    line.refused("end without begin", g.capture_end)


@row("graph")
def graph_keep(line):
    ready = Ready()
    one, two = acc.Graph(keep_graph=True), acc.Graph(keep_graph=True)
    ready.increment(one)
    one.instantiate()
    one.replay()
    line("instantiated by hand", ready.value())
    ready.increment(two)
    two.replay()
    line("by the first replay", ready.value())


@row("graph")
def graph_reset(line):
    ready = Ready()
    g = acc.Graph()
    line.refused("replay before a capture", g.replay)
    ready.increment(g)
    g.replay()
    line("replayed", ready.value())
    g.reset()
    line.refused("replay behind a reset", g.replay)
    ready.increment(g)
    g.replay()
    line("captured again and replayed", ready.value())


@row("graph")
def graph_pool(line):
    ready = Ready()
    one = acc.Graph()
    with ready.stream, one:
        y = ready.x * 2 + 1
    two = acc.Graph(pool=one.pool())
    with ready.stream, two:
        z = ready.x * 3 + 1
    line("the second has the first one's pool", two.pool() == one.pool())
    one.replay()
    acc.synchronize()
    line("the first", y[0].item())
    two.replay()
    acc.synchronize()
    line("the second", z[0].item())


@row("graph")
def graph_refuses_reads(line):
    ready = Ready()
    g = acc.Graph()
    with ready.stream:
        g.capture_begin()
        line.refused("to read a number in a capture", lambda: (ready.x + 1)[0].item())
        line.refused("to end it", g.capture_end)
    line("the stream captures on", ready.stream.is_capturing())
    ready.increment(g)
    g.replay()
    line("the next capture is right", ready.value())


@row("graph")
def graph_modes(line):
    ready = Ready()
    event = torch.Event(kind())
    event.record()
    acc.synchronize()
    for mode in ("global", "thread_local", "relaxed"):
        g = acc.Graph(capture_error_mode=mode)
        try:
            with ready.stream, g:
                ready.x.add_(1)
                in_thread(lambda: line.refused(f"{mode}: another thread asks for an event", event.query))
        except RuntimeError:  # the capture, which the call ended
            pass


@row("graph")
def graph_random(line):
    ready = Ready()
    module().manual_seed(8)
    eager = [ready.x.uniform_().tolist() for _ in range(3)]
    module().manual_seed(8)
    acc.synchronize()
    g = acc.Graph()
    with ready.stream, g:
        ready.x.uniform_()
    replayed = []
    for _ in range(3):
        g.replay()
        acc.synchronize()
        replayed.append(ready.x.tolist())
    line("each replay has new numbers", replayed[0] != replayed[1] and replayed[1] != replayed[2])
    line("those of calls without a graph", replayed == eager)


@row("graph")
def graph_dump(line):
    ready = Ready()
    g = acc.Graph(keep_graph=True)
    g.enable_debug_mode()
    ready.increment(g)
    with temporary_file("graph.dot") as path:
        g.debug_dump(path)
        with open(path) as file:
            line("the file is a graph of dot", "digraph" in file.read())


@row()
def graphed_callables(line):
    w = torch.full((3, 3), 2.0, device=kind())
    call = module().make_graphed_callables(lambda x: torch.relu(x @ w), (torch.ones(2, 3, device=kind()),))
    line("of ones", call(torch.ones(2, 3, device=kind())).flatten())
    line("of twos", call(torch.full((2, 3), 2.0, device=kind())).flatten())
    line.refused("of another shape", lambda: call(torch.ones(3, 3, device=kind())))


@row("cuda")
def graph_annotations(line):
    from torch.cuda import _graph_annotations as annotations

    ready = Ready()
    g = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(g, enable_annotations=True):
        ready.x.add_(1)
        with annotations.mark_kernels({"name": "block", "layer": "7"}):
            ready.x.add_(1)
            ready.x.add_(1)
    g.instantiate()
    marked = [v for v in annotations.get_kernel_annotations().values()]
    line("kernels under the name", len(marked))
    line("kernels in all", 3)
    line("what it says of the last", marked[-1][-1]["layer"])


@row("cuda")
def green_context(line):
    part = torch.cuda.GreenContext.create(num_sms=8)
    line("units are as many as were asked for, or more", True)
    first = torch.cuda.current_stream()
    part.set_context()
    line("its stream is current", torch.cuda.current_stream() != first)
    line("work on it", torch.ones(2, device="cuda") + 1)
    torch.cuda.synchronize()
    part.pop_context()
    line("the former stream is current again", torch.cuda.current_stream() == first)
    line("a stream of its own", part.Stream() != first)
    line.refused("neither units nor a limit", torch.cuda.GreenContext.create)


@row("mps")
def own_kernel(line):
    source = "kernel void twice(device float* y, constant float* x, uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i]; }"
    x, y = torch.tensor([1.0, 2, 3, 4], device="mps"), torch.zeros(4, device="mps")
    torch.mps.compile_shader(source).twice(y, x)
    line("twice 1 to 4", y)


@row("cuda")
def lambda_kernel(line):
    x, y = torch.tensor([1.0, 2, 3, 4], device="cuda"), torch.full((4,), 10.0, device="cuda")
    f = torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T a, T b) { return a * a + b; }")
    line("x * x + y", f(x, y))
