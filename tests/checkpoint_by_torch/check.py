# SPDX-License-Identifier: Apache-2.0
"""Reads FOLDER/ours by PyTorch's distributed checkpoint, compares with FOLDER/whole.safetensors, and writes FOLDER/theirs; compares the parts that
FOLDER/layouts lists with DTensors'. Use: check.py FOLDER"""
import json
import os
import sys
import warnings

import safetensors.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files

warnings.filterwarnings("ignore")


def same_bits(a, b):
    raw = lambda x: x.contiguous().reshape(-1).view(torch.uint8) if x.numel() else x
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(raw(a), raw(b))


def write(rank, folder, whole):
    """A rank of two that write DTensors, cut along their first dimension where they have one."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    # gloo has no 8-bit floats: those are whole.
    state = {
        name: distribute_tensor(x, mesh, [Shard(0) if x.dim() else Replicate()]) if x.element_size() > 1 else x for name, x in whole.items()
    }
    dcp.save(state, storage_writer=HuggingFaceStorageWriter(f"{folder}/theirs", save_distributed=True))
    dist.destroy_process_group()


def compare_parts(rank, folder):
    """A rank of a group that sends nothing: what it has of each DTensor."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.placement_types import _StridedShard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    with open(f"{folder}/layouts") as file:
        lines = [line for line in map(json.loads, file) if line["rank"] == rank]
    for world in (3, 4):
        if rank >= world:
            continue
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
        meshes = {}
        for line in lines:
            shape = tuple(line["mesh"])
            if torch.Size(shape).numel() != world:
                continue
            if shape not in meshes:
                meshes[shape] = init_device_mesh("cpu", shape)
            rows, columns = line["sizes"]
            whole = torch.arange(rows * columns).reshape(rows, columns)
            placements = [
                Replicate() if dim < 0 else Shard(dim) if factor == 1 else _StridedShard(dim, split_factor=factor) for dim, factor in line["placements"]
            ]
            part = distribute_tensor(whole, meshes[shape], placements, src_data_rank=None).to_local()
            wanted = whole[torch.tensor(line["entries"][0], dtype=torch.long)][:, torch.tensor(line["entries"][1], dtype=torch.long)]
            assert part.shape == wanted.shape and torch.equal(part, wanted), f"{line}: PyTorch has {part}"
        dist.destroy_process_group()


def main():
    folder = sys.argv[1]
    torch.multiprocessing.spawn(compare_parts, args=(folder,), nprocs=4)
    whole = safetensors.torch.load_file(f"{folder}/whole.safetensors")
    read = {name: torch.full_like(x.float(), 7).to(x.dtype) for name, x in whole.items()}
    dcp.load(read, storage_reader=HuggingFaceStorageReader(f"{folder}/ours"), no_dist=True)
    for name, x in whole.items():
        assert same_bits(read[name], x), f"PyTorch reads {name} otherwise: {read[name]} instead of {x}"
    os.makedirs(f"{folder}/joined")
    floats = {name: 1 for name, x in whole.items() if x.is_floating_point()}
    consolidate_safetensors_files(f"{folder}/floats", f"{folder}/joined", floats)
    joined = safetensors.torch.load_file(f"{folder}/joined/model-00001-of-00001.safetensors")
    for name in floats:
        assert same_bits(joined[name], whole[name]), f"PyTorch joins {name} otherwise: {joined[name]} instead of {whole[name]}"
    torch.multiprocessing.spawn(write, args=(folder, whole), nprocs=2)


if __name__ == "__main__":
    main()
