# SPDX-License-Identifier: Apache-2.0
"""Two ways to do one thing, timed beside each other: in turns A B B A, so that whatever else the machine does meets both."""
import statistics
import time

import torch


def synchronize():
    torch.accelerator.synchronize()


class Took:
    """Seconds of the clock, and of all cores for this process: on a machine with other work the second one is what a way costs."""

    def __init__(self, clock, cores):
        self.clock, self.cores = clock, cores

    def __add__(self, other):
        return Took(self.clock + other.clock, self.cores + other.cores)


def took(call, times):
    synchronize()
    clock, cores = time.perf_counter(), time.process_time()
    for _ in range(times):
        call()
    synchronize()
    return Took((time.perf_counter() - clock) / times, (time.process_time() - cores) / times)


def times_for(call, least):
    """How many calls take at least that many seconds."""
    times = 1
    while True:
        passed = took(call, times).clock * times
        if passed >= least:
            return times
        times = max(times + 1, min(times * 10, int(times * 1.2 * least / max(passed, 1e-9))))


def interval(samples):
    """Where the median lies with 95 % confidence, by order statistics: no distribution is assumed. Both ends of the samples where these are fewer than 6."""
    ordered, n = sorted(samples), len(samples)
    # The largest k for which fewer than k of n fair coins fall to one side with at most 2.5 %.
    chance, below, k = 0.5**n, 0.0, 0
    while k < n // 2 and below + chance <= 0.025:
        below += chance
        k += 1
        chance *= (n - k + 1) / k
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]


def compare(ours, theirs, pairs=9, least=0.2, pause=0.01):
    """Medians of both, and of their ratio (theirs over ours: above 1 we win) with its interval; `noise_pct`: the scaled median deviation of ours."""
    counts = (times_for(ours, least), times_for(theirs, least))
    mine, other = [], []

    def timed(call, times):
        time.sleep(pause)  # threads that spin after their work come to rest
        return took(call, times)

    for _ in range(pairs):
        a = timed(ours, counts[0])
        b = timed(theirs, counts[1])
        b += timed(theirs, counts[1])
        a += timed(ours, counts[0])
        mine.append(a)
        other.append(b)

    def middle(of, what):
        return statistics.median(getattr(t, what) / 2 for t in of)

    ordinary = middle(mine, "clock")
    noise = 148.26 * statistics.median(abs(t.clock / 2 - ordinary) for t in mine) / ordinary
    ratios = [b.clock / a.clock for a, b in zip(mine, other)]
    low, high = interval(ratios)
    return dict(ours=ordinary, noise_pct=noise, theirs=middle(other, "clock"), ratio=statistics.median(ratios), low=low, high=high, pairs=pairs,
                ours_cores=middle(mine, "cores"), theirs_cores=middle(other, "cores"),
                cores_ratio=statistics.median(b.cores / max(a.cores, 1e-9) for a, b in zip(mine, other)))
