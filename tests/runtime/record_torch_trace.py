#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_trace.pickle: what PyTorch allocates while it trains a small transformer on sequences of varying lengths.

PyTorch records histories of its CUDA allocator alone, which needs a GPU. So torch.profiler tells which allocations it makes on the CPU, in their order and with
their ops, and `Allocator` gives them the addresses of the CUDA allocator's default settings. The file has the format of torch.cuda.memory._dump_snapshot().
Use: record_torch_trace.py OUTPUT.pickle, with PyTorch (2.12.1 made the file that the tests read)
"""

import functools
import itertools
import pickle
import sys

import torch
import torch.nn.functional as F

MIB = 1 << 20
DEFAULT_POOL = (0, 0)


def train(steps=3, width=512, heads=8, layers=2, vocabulary=1024):
    """Steps of training on one or two sequences of other lengths each."""
    torch.manual_seed(1)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (part.view(b, t, heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, -1))
            scores = (q @ k.transpose(-1, -2) / (width // heads) ** 0.5).masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
            x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    net = torch.nn.Sequential(torch.nn.Embedding(vocabulary, width), *[Block() for _ in range(layers)], torch.nn.Linear(width, vocabulary))
    adam = torch.optim.AdamW(net.parameters(), fused=True)
    for step in range(steps):
        length = 65 + 173 * step % 384
        tokens = torch.randint(vocabulary, (1 + step % 2, length + 1))
        loss = F.cross_entropy(net(tokens[:, :-1]).reshape(-1, vocabulary), tokens[:, 1:].reshape(-1))
        adam.zero_grad()
        loss.backward()
        adam.step()


def allocations(work):
    """(address, bytes, op) of each allocation that `work` makes; bytes are negative where it is freed."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    found = []

    def visit(event, op):
        if event.tag == torch._C._profiler._EventType.Allocation:
            fields = event.extra_fields
            found.append((event.start_time_ns, len(found), fields.ptr, fields.alloc_size, op))
        elif event.tag == torch._C._profiler._EventType.TorchOp:
            op = event.name
        for child in event.children:
            visit(child, op)

    for root in profile.profiler.kineto_results.experimental_event_tree():
        visit(root, "python")
    return [event[2:] for event in sorted(found)]


class Allocator:
    """The CUDA allocator's default settings: sizes of 512 bytes, segments of 2 and 20 MiB, the smallest block that is large enough."""

    def __init__(self):
        self.segments, self.blocks, self.trace, self.time = {}, {}, [], itertools.count(0, 10)

    @staticmethod
    @functools.cache  # a pickle has the same object once
    def frames(op):
        allocator = {"filename": "c10/cuda/CUDACachingAllocator.cpp", "line": 1, "name": "CUDACachingAllocator::malloc"}
        return [allocator, {"filename": "", "line": 0, "name": op}] if op else []

    def note(self, action, address, size, op=None):
        self.trace.append({"action": action, "addr": address, "size": size, "stream": 0, "segment_pool_id": DEFAULT_POOL, "time_us": next(self.time),
                           "frames": self.frames(op)})

    def malloc(self, requested, op):
        size = max(512, -(-requested // 512) * 512)
        small = size <= MIB
        free = [(b["size"], a) for a, b in self.blocks.items() if not b["op"] and b["small"] == small and b["size"] >= size]
        if free:
            address = min(free)[1]
        else:
            whole = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            address = max((a + s["size"] for a, s in self.segments.items()), default=1 << 32) + 2 * MIB
            self.segments[address] = {"size": whole, "small": small}
            self.blocks[address] = {"size": whole, "small": small, "segment": address, "op": None}
            self.note("segment_alloc", address, whole)
        block = self.blocks[address]
        rest = block["size"] - size
        if rest >= 512 if small else rest > MIB:
            self.blocks[address + size] = dict(block, size=rest)
            block["size"] = size
        block.update(op=op, requested=requested)
        self.note("alloc", address, requested, op)
        return address

    def free(self, address):
        block = self.blocks[address]
        self.note("free_requested", address, block["requested"], block["op"])
        self.note("free_completed", address, block["requested"], block["op"])
        block["op"] = None
        near = sorted(a for a, b in self.blocks.items() if b["segment"] == block["segment"])
        for left, right in reversed(list(zip(near, near[1:]))):
            if address in (left, right) and not self.blocks[left]["op"] and not self.blocks[right]["op"]:
                self.blocks[left]["size"] += self.blocks.pop(right)["size"]
                address = left

    def snapshot(self):
        segments = []
        for address, segment in sorted(self.segments.items()):
            blocks = [dict(address=a, size=b["size"], requested_size=b["requested"] if b["op"] else 0, state="active_allocated" if b["op"] else "inactive",
                           frames=self.frames(b["op"]))
                      for a, b in sorted(self.blocks.items()) if b["segment"] == address]
            taken = [b for b in blocks if b["state"] != "inactive"]
            in_use = sum(b["size"] for b in taken)
            segments.append(dict(device=0, address=address, total_size=segment["size"], allocated_size=in_use, active_size=in_use,
                                 requested_size=sum(b["requested_size"] for b in taken), stream=0, segment_type="small" if segment["small"] else "large",
                                 segment_pool_id=DEFAULT_POOL, is_expandable=False, frames=[], blocks=blocks))
        return {"segments": segments, "device_traces": [self.trace], "allocator_settings": {}, "external_annotations": []}


def main():
    allocator, live = Allocator(), {}
    for address, size, op in allocations(train):
        if size > 0:
            live[address] = allocator.malloc(size, op)
        elif address in live:  # else it was there before
            allocator.free(live.pop(address))
    with open(sys.argv[1], "wb") as file:
        pickle.dump(allocator.snapshot(), file, protocol=4)
    reserved = sum(s["size"] for s in allocator.segments.values())
    print(f"{len(allocator.trace)} entries, {len(allocator.segments)} segments of {reserved} bytes in all")


main()
