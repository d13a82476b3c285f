# SPDX-License-Identifier: Apache-2.0
"""What the first step of GPT-2 spends on programs in a fresh process whose disk cache has them: a step's time less that of the first step of a second such model,
which computes the same with all programs at hand. Memory for both was touched before, so that no step waits for pages.

This file is the process; row() starts some.
"""
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

TARGET = 1.0  # seconds
WHAT = "seconds that the first step of GPT-2 (12 layers, 768 wide, 124 million numbers, 128 tokens, AdamW fused) spends on programs that the disk cache has"


class Programs(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("built", "loaded", "saved", "packed")]


def counts(library):
    programs = Programs()
    library.clutch_programs(ctypes.byref(programs))
    return {name: getattr(programs, name) for name, _ in Programs._fields_}


def main():
    import torch
    import torch_clutch  # noqa: F401

    import networks

    library = ctypes.CDLL(os.environ["TORCH_CLUTCH_OWN_CALLS"])

    def first_step():
        torch.manual_seed(0)
        net = networks.Gpt(50257, 768, 12, 12, 1024).to("clutch")
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
        tokens = torch.randint(0, 50257, (1, 129)).to("clutch")
        torch.accelerator.synchronize()
        start = time.perf_counter()
        loss = networks.next_token_loss(net, tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss = loss.item()
        torch.accelerator.synchronize()
        return time.perf_counter() - start, loss

    touched = [torch.zeros(1 << 26, device="clutch") for _ in range(12)]  # 3 GiB, which the allocator keeps
    del touched
    seconds, losses, programs = [], [], []
    for _ in range(2):
        took, loss = first_step()
        seconds.append(took)
        losses.append(loss)
        programs.append(counts(library))
    assert losses[0] == losses[1], f"both models must have one loss, got {losses}"
    assert programs[0] == programs[1], f"the second model must find all programs, got {programs}"
    print(json.dumps(dict(first=seconds[0], second=seconds[1], **programs[0])))


def fresh():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"a process of the first step ended by {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def row(processes=3):
    """The figures of that many processes, behind one that fills the cache."""
    cold = fresh()
    warm = [fresh() for _ in range(processes)]
    if any(one["built"] for one in warm):
        raise RuntimeError(f"the disk cache must have all programs, got {[one['built'] for one in warm]} that were built")
    seconds = sorted(one["first"] - one["second"] for one in warm)
    return dict(seconds=statistics.median(seconds), least=seconds[0], most=seconds[-1], first=statistics.median(one["first"] for one in warm), loaded=warm[0]["loaded"] + warm[0]["packed"],
                built_before=cold["built"])


if __name__ == "__main__":
    main()
