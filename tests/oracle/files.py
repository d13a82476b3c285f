# SPDX-License-Identifier: Apache-2.0
"""Files and what comes from other libraries: .npy by NumPy, safetensors by its own package, DLPack, kernels of the caller's."""

import io
import os
import tempfile

import numpy as np
import safetensors
import safetensors.torch
import torch

from common import DTYPES, FLOATS, INTEGERS, NAMES, PACKED_BITS, Packed, case

FILES = "clutch/files.hpp"
NPY = ["f64", "f32", "f16", "i8", "u8", "i16", "i32", "i64", "bool", "c64", "c128"]


def path_of(suffix):
    return os.path.join(tempfile.gettempdir(), f"oracle_{os.getpid()}{suffix}")


@case(40, covers=["save_npy", "load_npy", "read_npy"], sharp=True)
def npy(c):
    name = c.pick([n for n in NPY if c.traits["fp64"] or n not in ("f64", "c128")])
    x = c.tensor(c.shape(), name)
    path = path_of(".npy")
    c.call("save_npy", path=path, x=x)
    back = np.load(path)
    c.same(torch.from_numpy(np.array(back)), x.contiguous(), FILES + ", save_npy read by NumPy", f"{name}: ")
    c.same(c.call("load_npy", path=path)[0], x.contiguous(), FILES + ", load_npy", f"{name}: ")
    array = x.numpy()
    if c.chance(0.4):
        array = np.array(array, order="F")
    if c.chance(0.3) and array.dtype.itemsize > 1:
        array = array.astype(array.dtype.newbyteorder(">"))
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=c.pick([(1, 0), (2, 0), (3, 0)]))
    data = torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)
    c.same(c.call("read_npy", bytes=data)[0], x.contiguous(), FILES + ", read_npy of NumPy's bytes", f"{name}, {array.dtype}, Fortran {np.isfortran(array)}: ")
    os.remove(path)
    if c.chance(0.2):
        c.refused("invalid_dtype", "save_npy", FILES, path=path, x=torch.zeros(3, dtype=torch.bfloat16))
        c.refused("io", "load_npy", FILES, path=path)
        c.refused("io", "read_npy", FILES, bytes=data[: len(data) // 2] if array.size > 40 else torch.zeros(5, dtype=torch.uint8))


@case(30, covers=["save_safetensors", "load_safetensors"], sharp=True)
def safetensors_files(c):
    names = [n for n in DTYPES if n != "c128" and (c.traits["fp64"] or n != "f64")]
    tensors = [c.tensor(c.shape(elements=500), c.pick(names)) for _ in range(c.integer(1, 5))]
    path = path_of(".safetensors")
    c.call("save_safetensors", path=path, tensors=tensors)
    with safetensors.safe_open(path, framework="pt") as file:
        c.true(file.metadata() == {"note": "of the oracle"}, f"metadata {file.metadata()}", FILES + ", save_safetensors")
        for i, t in enumerate(tensors):
            c.same(file.get_tensor(f"t{i}"), t.contiguous(), FILES + ", save_safetensors read by safetensors", f"{NAMES[t.dtype]}: ")
    got = c.call("load_safetensors", path=path)
    for name, result in zip(got.values["names"], got.results):
        c.same(result, tensors[int(name[1:])].contiguous(), FILES + ", Safetensors::load", f"{name}: ")
    safetensors.torch.save_file({f"x{i}": t.contiguous() for i, t in enumerate(tensors)}, path, metadata={"a": "b"})
    got = c.call("load_safetensors", path=path)
    c.true(got.values["metadata"] == {"a": "b"} and len(got.results) == len(tensors), "metadata or tensors are missing", FILES)
    for name, result in zip(got.values["names"], got.results):
        c.same(result, tensors[int(name[1:])].contiguous(), FILES + ", Safetensors::load of safetensors' file", f"{name}: ")
    packed = [Packed(n, [8 * k], bytes(c.rng.integers(0, 255, size=bits * k, endpoint=True, dtype=np.uint8))) for n, bits in PACKED_BITS.items() for k in (1, 5)]
    c.call("save_safetensors", path=path, tensors=packed)
    got = c.call("load_safetensors", path=path)
    for name, result in zip(got.values["names"], got.results):
        p = packed[int(name[1:])]
        c.alike(result, p.shape, p.dtype, FILES)
        c.true(result.data == p.data, f"bytes of {p.dtype} differ", FILES)
    os.remove(path)


@case(20, covers=["dlpack"], sharp=True)
def dlpack(c):
    name = c.pick([n for n in DTYPES if c.traits["fp64"] or n not in ("f64", "c128")])
    x = c.tensor(c.shape(), name)
    for memory in ("device", "host"):
        for versioned in (0, 1):
            c.same(c.call("dlpack", x=x, memory=memory, versioned=versioned)[0], x.contiguous(), "clutch/dlpack.hpp", f"{name} through {memory} memory, versioned {versioned}: ")


@case(10, covers=["launch"], sharp=True)
def own_kernels(c):
    n = c.pick([1, 63, 64, 1000])
    # Whole numbers: a driver's own fma need not be exact.
    x, y = c.tensor([n], "f32", "small", strides=False), c.tensor([n], "f32", "small", strides=False)
    a = float(c.integer(-5, 5))
    c.same(c.call("launch", x=x, y=y, a=a)[0], a * x + y, "clutch/kernel.hpp, launch", "a x + y: ", zero_signs=False)
