# SPDX-License-Identifier: Apache-2.0
"""torch.distributed on clutch's devices: the backend `clutch`, by the groups of clutch::dist.

    mpirun -np 2 python -m training        # in which torch.distributed.init_process_group() needs no argument
"""
import atexit
import functools
import importlib
import os
import sys
import types
import zlib
from pathlib import Path

import torch

from . import _sharding
from ._registration import library_path

NAME = "clutch"
LIBRARY = "libtorch_clutch_dist.so"

_state = types.SimpleNamespace(registered=False, loaded=False, unhandled=False)


def is_available():
    """True where the package was built with libclutch_dist."""
    return torch.distributed.is_available() and (library_path().parent / LIBRARY).exists()


def register():
    """Makes the backend known to torch.distributed. No library is loaded before a group has it."""
    if _state.registered or not torch.distributed.is_available():
        return
    torch.distributed.Backend.register_backend(NAME, _create, extended_api=True, devices=[NAME])
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    rendezvous._rendezvous_handlers["env"] = functools.partial(_env_of_mpirun, rendezvous._rendezvous_handlers["env"])
    _keep_gloo(torch.distributed.distributed_c10d.BackendConfig)
    _complete(torch._C._distributed_c10d.Backend)
    _sharding.register()
    _state.registered = True


def _complete(backend):
    """Gives PyTorch's class of backends what split_group() asks of NCCL's and gloo's alone."""
    kind = backend.Options

    def copied(options, memo):
        made = kind(options.backend, options._timeout)
        made.group_name, made.global_ranks_in_group = options.group_name, options.global_ranks_in_group
        return made

    if not hasattr(kind, "__deepcopy__"):
        kind.__deepcopy__ = copied
    if not hasattr(backend, "options"):
        backend.options = property(lambda self: kind(self.name()))  # a split group has the timeout that its call states
    if not hasattr(backend, "perform_nocolor_split"):
        backend.perform_nocolor_split = lambda self, device: None  # ranks outside of a new group have nothing to do


def _keep_gloo(config):
    """A group without a backend's name has that of the accelerator alone, and takes gloo for its default one: so tensors of the CPU have gloo, too."""
    former = config.__init__

    def __init__(self, backend):
        former(self, backend)
        kinds = torch.distributed.Backend
        if str(backend) == kinds.UNDEFINED and NAME in self.device_backend_map and torch.distributed.is_gloo_available():
            self.device_backend_map = {"cpu": kinds(kinds.GLOO), **self.device_backend_map}

    config.__init__ = __init__


def set_environment():
    """Gives a process that mpirun started what env:// reads: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_PORT, and, where all ranks are on
    one host, MASTER_ADDR. What is set stays. init_process_group() calls it."""
    environ = os.environ
    for rank, size, local_rank, local_size in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ):
        if rank in environ and size in environ:
            break
    else:
        return
    if "RANK" not in environ and "WORLD_SIZE" not in environ:
        environ.update(RANK=environ[rank], WORLD_SIZE=environ[size])
        if local_rank in environ and local_size in environ:
            environ.setdefault("LOCAL_RANK", environ[local_rank])
            environ.setdefault("LOCAL_WORLD_SIZE", environ[local_size])
    if environ.get(local_size) == environ[size]:
        environ.setdefault("MASTER_ADDR", "127.0.0.1")
    # The same on all ranks, and another one for another mpirun of the host.
    job = environ.get("PMIX_NAMESPACE") or environ.get("OMPI_MCA_ess_base_jobid") or ""
    environ.setdefault("MASTER_PORT", str(10000 + zlib.crc32(job.encode()) % 20000))


def _env_of_mpirun(former, url, **arguments):
    set_environment()
    # What was missing in the environment is -1 here.
    place, _, query = url.partition("?")
    kept = [of for of in query.split("&") if of and not (of == "world_size=-1" and "WORLD_SIZE" in os.environ)]
    return former(place + ("?" + "&".join(kept) if kept else ""), **arguments)


def _load():
    if _state.loaded:
        return
    path = library_path().parent / LIBRARY
    if not path.exists():
        raise ImportError(f"{LIBRARY} must be beside {library_path()}: it is built where clutch has libclutch_dist, which needs MPI")
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        raise ImportError(f"{LIBRARY} cannot be loaded (is MPI installed?): {error}") from error
    _state.loaded = True
    former = sys.excepthook

    def excepthook(*of):
        _state.unhandled = True
        former(*of)

    sys.excepthook = excepthook
    atexit.register(_end)


def _end():
    """A rank that ends by an exception must not wait for the others, as MPI does at a process's end: mpirun ends them."""
    if _state.unhandled and int(os.environ.get("WORLD_SIZE", 1)) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def _create(options, backend_options):
    _load()
    ranks = list(options.global_ranks_in_group)
    everybody = torch.distributed.get_world_size() if torch.distributed.is_initialized() else options.group_size
    # A class of C++ alone: a group takes it, and gives it back as PyTorch's Backend.
    holder = torch._C._distributed_c10d.ProcessGroup(options.store, options.group_rank, options.group_size)
    torch.ops.clutch_dist.attach(
        holder.boxed(),
        ranks,
        not ranks or ranks == list(range(everybody)),
        int(options.timeout.total_seconds() * 1000),
        options.group_id,
        int(os.environ.get("TORCH_FR_BUFFER_SIZE", 2000)),
        os.environ.get("TORCH_CLUTCH_FLIGHT_FILE", ""),
    )
    return holder._get_backend(torch.device(NAME))


def dump_flight(path=None, format="pickle"):
    """Writes this rank's last calls to the file `path` with the rank behind it: for torch.distributed.flight_recorder.fr_trace and clutch-flight ("pickle"),
    or to read ("json"). Without a path to where PyTorch's own recorder writes: $TORCH_FR_DUMP_TEMP_FILE, or comm_lib_trace_rank_ in its cache."""
    if format not in ("pickle", "json"):
        raise ValueError(f"format must be 'pickle' or 'json', got {format!r}")
    if path is None:
        path = os.environ.get("TORCH_FR_DUMP_TEMP_FILE")
    if path is None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torch"
        cache.mkdir(parents=True, exist_ok=True)
        path = cache / "comm_lib_trace_rank_"
    _load()
    torch.ops.clutch_dist.dump_flight(str(path), format == "json")
