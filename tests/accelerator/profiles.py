# SPDX-License-Identifier: Apache-2.0
"""Profiles, and what names parts of a program in them."""
import os

import torch
from halves import row, temporary_file
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def ranges(done):
    return sorted((e for e in done.events() if e.is_user_annotation), key=lambda e: e.time_range.start)


@row("host")
def profiler(line):
    x = torch.ones(16)
    done = profile(activities=[ProfilerActivity.CPU])
    with record_function("before"):
        pass
    done.start()
    with record_function("within"):
        x + 1
    done.stop()
    with record_function("behind"):
        pass
    line("ranges between start and stop", [e.name for e in ranges(done)])
    line("it has ops, too", any(e.name == "aten::add" for e in done.events()))
    with temporary_file("trace.json") as path:
        done.export_chrome_trace(path)
        line("the trace is a file", os.path.getsize(path) > 100)


@row("host")
def profiler_schedule(line):
    def actions(made):
        return " ".join(made(step).name.lower() for step in range(12))

    line("wait 1, warmup 1, active 2", actions(schedule(wait=1, warmup=1, active=2)))
    line("twice, without the first 2", actions(schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=2)))
    line("no wait in the first cycle", actions(schedule(wait=3, warmup=0, active=1, skip_first_wait=1)))
    line.refused("nothing active", lambda: schedule(wait=0, warmup=0, active=0))


@row("host")
def nested_ranges(line):
    with profile(activities=[ProfilerActivity.CPU]) as done:
        with record_function("outer"):
            with record_function("one"):
                pass
            with record_function("two"):
                pass
    found = ranges(done)
    line("in the order of their begin", [e.name for e in found])
    a, b, c = (e.time_range for e in found)
    line("the outer one holds both", a.start <= b.start and b.end <= c.start and c.end <= a.end)
