# SPDX-License-Identifier: Apache-2.0
"""Device memory: counters, limits, snapshots, pools, memory of the host."""
import gc
import pickle

import torch
from halves import kind, module, row, temporary_file

acc = torch.accelerator


def tensor(count):
    return torch.empty(count, dtype=torch.uint8, device=kind())


def ready():
    """The allocator is there, and nothing that a former half left."""
    gc.collect()
    tensor(1)
    acc.synchronize()


@row()
def memory_allocated(line):
    ready()
    before = acc.memory_allocated()
    x = tensor(4000)
    line("4000 bytes take", module().memory_allocated() - before)
    y = tensor(1)
    line("and one byte", acc.memory_allocated() - before)
    del x, y
    line("given back", acc.memory_allocated() - before)


@row()
def max_memory_allocated(line):
    ready()
    acc.reset_peak_memory_stats()
    line("reset: the peak is what is allocated", acc.max_memory_allocated() == acc.memory_allocated())
    before = acc.memory_allocated()
    x = tensor(8 << 20)
    del x
    line("peak above what was there, from 8 MiB on", acc.max_memory_allocated() - before >= 8 << 20)
    line("it stays while memory is given back", module().max_memory_allocated() > acc.memory_allocated())
    module().reset_peak_memory_stats()
    line("reset again", acc.max_memory_allocated() == acc.memory_allocated())


@row()
def memory_reserved(line):
    ready()
    acc.empty_cache()
    acc.reset_peak_memory_stats()
    before = acc.memory_reserved()
    line("no less than is allocated", before >= acc.memory_allocated())
    x = tensor(32 << 20)
    line("32 MiB take", module().memory_reserved() - before)
    del x
    line("the cache keeps it", acc.memory_reserved() - before)
    line("the peak", module().max_memory_reserved() - before)
    module().empty_cache()
    line("given back", acc.memory_reserved() - before)
    line("the peak stays", acc.max_memory_reserved() - before)
    acc.reset_peak_memory_stats()
    line("until it is reset", acc.max_memory_reserved() == acc.memory_reserved())


@row()
def accumulated_stats(line):
    ready()
    acc.reset_accumulated_memory_stats()

    def stats(*keys):
        now = acc.memory_stats()
        return [now[key] for key in keys]

    line("reset", stats("allocation.all.allocated", "allocation.all.freed", "num_ooms"))
    current = stats("allocation.all.current")
    x, y = tensor(10), tensor(20)
    del x, y
    line("two tensors came and went", stats("allocation.all.allocated", "allocation.all.freed"))
    line("as many as before are there", stats("allocation.all.current") == current)


@row()
def memory_stats(line):
    ready()
    stats = module().memory_stats()
    parts = {}
    for key in stats:
        if key == "num_oom_rejections":  # torch.cuda has it, torch.accelerator does not
            continue
        family, _, rest = key.partition(".")
        parts.setdefault(family, []).append(rest or "alone")
    for family, keys in parts.items():
        line(family, keys)
    line("they are sorted", list(stats) == sorted(acc.memory_stats()))
    line("allocated bytes are memory_allocated", stats["allocated_bytes.all.current"] == acc.memory_allocated())
    line("reserved bytes are memory_reserved", stats["reserved_bytes.all.current"] == acc.memory_reserved())
    line("requested bytes are no more", stats["requested_bytes.all.current"] <= stats["allocated_bytes.all.current"])


@row()
def memory_info(line):
    free, total = acc.get_memory_info()
    line("there is memory", total > 0)
    line("no more is free than there is", free <= total)


@row()
def memory_fraction(line):
    line.refused("1.5", lambda: module().set_per_process_memory_fraction(1.5))
    line.refused("-0.5", lambda: module().set_per_process_memory_fraction(-0.5))
    module().set_per_process_memory_fraction(0.25)
    line("set", module().get_per_process_memory_fraction())
    module().set_per_process_memory_fraction(1.0)
    line("set back", module().get_per_process_memory_fraction())


@row()
def out_of_memory(line):
    ready()
    acc.empty_cache()
    before = acc.memory_stats()["num_ooms"]
    module().set_per_process_memory_fraction(0.01)
    end = "taken"
    try:
        tensor(module().get_device_properties(acc.current_device_index()).total_memory // 10)
    except RuntimeError as error:
        end = "out of memory" if isinstance(error, torch.OutOfMemoryError) else "another error"
    line("a tenth of the memory, of which a hundredth is allowed", end)
    line("counted", acc.memory_stats()["num_ooms"] - before)
    line("less is to be had", tensor(1000).numel())
    module().set_per_process_memory_fraction(1.0)


# PyTorch keeps what a text leaves out, of a refused one too: texts of large_segment_size_mb come last.
@row("host")
def allocator_settings(line):
    for text in (
            "max_split_size_mb:64", "expandable_segments:True", "garbage_collection_threshold:0.8", "roundup_power2_divisions:4",
            "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "roundup_power2_divisions:[1:2,4:0]", "max_split_size_mb:64,expandable_segments:False",
            " max_split_size_mb : 64 ,", "max_split_size_mb:20", "max_split_size_mb:19", "max_split_size_mb:1.5", "max_split_size_mb:", "max_split_size_mb",
            "max_non_split_rounding_mb:20", "max_non_split_rounding_mb:19", "expandable_segments:true", "expandable_segments:1", "no_such_key:1", ",max_split_size_mb:64",
            "garbage_collection_threshold:0", "garbage_collection_threshold:1", "garbage_collection_threshold:x", "roundup_power2_divisions:3", "roundup_power2_divisions:0",
            "roundup_power2_divisions:[3:1]", "roundup_power2_divisions:[256:1", "pinned_use_background_threads:yes", "pinned_use_background_threads:True",
            "large_segment_size_mb:10", "max_split_size_mb:25,large_segment_size_mb:30", "large_segment_size_mb:30,max_non_split_rounding_mb:25",
            "large_segment_size_mb:12,max_split_size_mb:15", "large_segment_size_mb:20,max_split_size_mb:20"):
        line.refused(text, lambda: torch._C._accelerator_setAllocatorSettings(text))
    torch._C._accelerator_setAllocatorSettings("max_split_size_mb:64")
    line("the text that was given last", torch._C._accelerator_getAllocatorSettings())
    torch._C._accelerator_setAllocatorSettings("large_segment_size_mb:20")


@row()
def memory_snapshot(line):
    ready()
    memory = module().memory
    memory._record_memory_history(clear_history=True)
    x, y = tensor(3000), tensor(5 << 20)
    sums = dict.fromkeys(("total", "allocated", "blocks"), 0)
    for segment in module().memory_snapshot():
        if segment["device"] == acc.current_device_index():
            sums["total"] += segment["total_size"]
            sums["allocated"] += segment["allocated_size"]
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    sums["blocks"] += block["size"]
                if block["requested_size"] == 3000:
                    line("a block of 3000 bytes has", block["size"])
            of_blocks = sum(block["size"] for block in segment["blocks"])
            if of_blocks != segment["total_size"]:
                line("blocks do not fill a segment of", segment["total_size"])
    line("segments are what is reserved", sums["total"] == acc.memory_reserved())
    line("blocks in use are what is allocated", sums["blocks"] == sums["allocated"] == acc.memory_allocated())
    del x, y
    memory._record_memory_history(enabled=None)
    tensor(3000)  # is not recorded
    actions = [entry["action"] for entry in memory._snapshot()["device_traces"][acc.current_device_index()] if entry["size"] == 3000]
    line("history of 3000 bytes: allocated, freed", [actions.count(name) for name in ("alloc", "free_requested", "free_completed")])
    with temporary_file("snapshot.pickle") as path:
        memory._dump_snapshot(path)
        with open(path, "rb") as file:
            line("the file is a pickle", file.read(1) == b"\x80")
        with open(path, "rb") as file:
            torch.cuda._memory_viz.segsum(pickle.load(file))  # PyTorch's viewer reads it


@row()
def mem_pool(line):
    ready()
    acc.empty_cache()
    before = acc.memory_reserved()

    def of_pool(pool):
        return sum(segment["allocated_size"] for segment in module().memory_snapshot() if tuple(segment["segment_pool_id"]) == tuple(pool.id))

    pool, other = module().MemPool(), module().MemPool()
    line("two pools are two", pool.id != other.id)
    with module().use_mem_pool(pool):
        x = tensor(3 << 20)
        with module().use_mem_pool(other):
            y = tensor(1 << 10)
    outside = tensor(4 << 20)
    line("allocated in the one and in the other", [of_pool(pool), of_pool(other)])
    line("the pool and the rest have memory of their own", acc.memory_reserved() - before >= 7 << 20)
    del x, y, outside, pool, other
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    line("behind their end all is given back", acc.memory_reserved() - before)


@row("host")
def graph_pool_handle(line):
    one, two = torch.cuda.graph_pool_handle(), torch.cuda.graph_pool_handle()  # it needs no device
    line("the first number", [one[0], two[0]])
    line("two handles are two", one[1] != two[1])


@row()
def host_memory(line):
    x = torch.arange(4.0).pin_memory()
    line("pinned, with the host", x.is_pinned() and not torch.arange(4.0).is_pinned())
    line("on the device", x.to(kind(), non_blocking=True) + 1)


@row()
def raw_memory(line):
    ready()
    before = acc.memory_allocated()
    memory = torch.UntypedStorage(1000, device=kind())
    line("1000 bytes take", acc.memory_allocated() - before)
    line("it has", memory.nbytes())
    x = torch.empty(0, device=kind()).set_(memory, 10, (10,))
    y = torch.empty(0, device=kind()).set_(memory, 19, (1,))
    x.fill_(2)
    line("the number at byte 76", y)
    del x, y, memory
    gc.collect()
    line("given back", acc.memory_allocated() - before)
