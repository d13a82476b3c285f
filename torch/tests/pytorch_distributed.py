# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own tests of torch.distributed, those that its wheel has, on two ranks with the backend `clutch`.

  pytorch_distributed.py [--only TEXT] [--seconds 60] [--out FILE]

They are written for CUDA and NCCL: within them `cuda` means `clutch:0`. mpirun starts both ranks, and again behind a test that fails or does not end. The
outcomes go to --out, a line of JSON a test; tests that are there are not run again.
"""
import argparse
import collections
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from datetime import timedelta
from pathlib import Path

MPIRUN = "mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none -np 2"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tests whose names have this text")
    parser.add_argument("--seconds", type=int, default=60, help="for one test")
    parser.add_argument("--out", default="", help="file of the outcomes")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


# ---- what a rank does


def cuda_is_clutch():
    import torch
    from torch.overrides import TorchFunctionMode

    home = torch.device("clutch", 0)

    def moved(of):
        if isinstance(of, torch.device) and of.type in ("cuda", "clutch"):
            return home
        return home if isinstance(of, str) and of.startswith("cuda") else of

    class Moves(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = {name: moved(of) for name, of in (kwargs or {}).items()}
            if isinstance(kwargs.get("device"), int):
                kwargs["device"] = home
            if function is torch.Tensor.to and len(args) > 1 and type(args[1]) is int:
                args = (args[0], home, *args[2:])
            return function(*(moved(of) for of in args), **kwargs)

    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 2
    torch.cuda.current_device = lambda: 0
    torch.cuda.set_device = lambda device: None
    for name in ("empty_cache", "manual_seed", "manual_seed_all", "memory_allocated", "Event", "stream"):
        setattr(torch.cuda, name, getattr(torch.clutch, name))
    torch.cuda.Stream = lambda *_, **__: torch.Stream(device=home)
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda._lazy_init = lambda: None
    torch.cuda.get_device_capability = lambda *_: (8, 0)
    torch.cuda.get_rng_state = lambda *_: torch.clutch.get_rng_state()
    torch.cuda.set_rng_state = lambda state, *_: torch.clutch.set_rng_state(state)
    torch.cuda.reset_peak_memory_stats = lambda *_: torch.clutch.reset_peak_memory_stats()
    torch.cuda.max_memory_allocated = lambda *_: torch.clutch.max_memory_allocated()
    torch.cuda.device = lambda *_: torch.clutch.device(0)
    torch.nn.parallel.distributed._get_device_index = lambda *_: 0
    torch.cuda.synchronize = lambda device=None: torch.clutch.synchronize()
    torch.cuda.current_stream = lambda device=None: torch.clutch.current_stream()
    torch.Tensor.cuda = lambda self, *_, **__: self.to(home)
    torch.nn.Module.cuda = lambda self, *_, **__: self.to(home)
    torch.Tensor.is_cuda = property(lambda self: self.device.type == "clutch")
    new_group = torch.distributed.new_group

    def of_clutch(*arguments, backend=None, **named):
        return new_group(*arguments, backend="clutch" if backend == "nccl" else backend, **named)

    torch.distributed.new_group = of_clutch
    init_process_group = torch.distributed.init_process_group
    torch.distributed.init_process_group = lambda backend=None, *arguments, **named: init_process_group(
        "cpu:gloo,clutch:clutch" if backend == "nccl" else backend, *arguments, **named
    )
    meshes = importlib.import_module("torch.distributed.device_mesh")
    init_device_mesh = meshes.init_device_mesh
    meshes.init_device_mesh = lambda device, *arguments, **named: init_device_mesh("clutch" if device == "cuda" else device, *arguments, **named)
    Moves().__enter__()


def child(asked):
    import torch  # before what asks which devices there are

    rank, folder = int(os.environ["OMPI_COMM_WORLD_RANK"]), Path(asked.child)
    done = json.loads((folder / "done.json").read_text())
    os.environ.update(BACKEND="nccl", WORLD_SIZE="2", RANK=str(rank), TEMP_DIR=str(folder))
    import torch.distributed as dist
    import torch.testing._internal.common_distributed as common

    cuda_is_clutch()
    common.TEST_CUDA = True
    import torch.testing._internal.distributed.distributed_test as own

    own.init_multigpu_helper = lambda *_: {0: [0], 1: [0]}

    class Tests(own.DistributedTest._DistTestBase, common.MultiProcessTestCase):
        world_size = 2

        def setUp(self):
            pass

        tearDown = setUp

        def _barrier(self, *_, **__):
            Tests.met += 1
            meeting.set(f"met/{Tests.met}/{rank}", "1")
            meeting.wait([f"met/{Tests.met}/{r}" for r in range(2)], timedelta(seconds=asked.seconds))

    skips = {skip.exit_code: skip.message for skip in common.TEST_SKIPS.values()}
    names = [name for name in unittest.defaultTestLoader.getTestCaseNames(Tests) if asked.only in name and name not in done]
    with open(folder / f"rank{rank}.jsonl", "a") as out:
        def say(**what):
            out.write(json.dumps(what) + "\n")
            out.flush()

        def both_go_on(name):
            """True where both ranks have failed, and neither keeps the other waiting."""
            (folder / f"failed_{name}_{rank}").touch()
            until = time.monotonic() + 5
            while not (folder / f"failed_{name}_{1 - rank}").exists():
                if time.monotonic() > until:
                    return False
                time.sleep(0.05)
            try:
                torch.accelerator.synchronize()
                dist.destroy_process_group()
                return True
            except BaseException:
                return False

        for name in names:
            say(test=name, outcome="begun")
            meeting = dist.FileStore(str(folder / f"meeting_{name}"), 2)
            Tests.met = 0
            test = Tests(name)
            test.rank, test.file_name = rank, str(folder / f"store_{name}")
            outcome, why, calls = "pass", "", 0
            try:
                dist.init_process_group(
                    "cpu:gloo,clutch:clutch", init_method=f"file://{test.file_name}", world_size=2, rank=rank, timeout=timedelta(seconds=asked.seconds * 3 // 4)
                )
                test._barrier()
                torch.testing._internal.common_utils.set_rng_seed()
                getattr(test, name)()
                torch.accelerator.synchronize()
                if dist.is_initialized():
                    test._barrier()
                calls = sum(
                    group._get_backend(torch.device("clutch"))._get_sequence_number_for_group()
                    for group in dist.distributed_c10d._world.pg_map
                    if torch.device("clutch") in group._device_types
                )
                if dist.is_initialized():
                    dist.destroy_process_group()
            except unittest.SkipTest as skip:
                outcome, why = "skip", str(skip)
            except SystemExit as end:
                outcome, why = ("skip", skips[end.code]) if end.code in skips else ("fail", f"exit status {end.code}")
            except BaseException as error:
                outcome, why = "fail", f"{type(error).__name__}: {error}\n{traceback.format_exc()[-3000:]}"
            say(test=name, outcome=outcome, why=why, calls=calls)
            if outcome == "skip" and dist.is_initialized():
                test._barrier()
                dist.destroy_process_group()
            if outcome == "fail" and not both_go_on(name):
                out.close()
                os._exit(3)


# ---- what the parent does


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def main(asked):
    out = Path(asked.out or tempfile.mkstemp(suffix=".jsonl")[1])
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_"))}
    environment |= {"POCL_MAX_PTHREAD_COUNT": "1", "POCL_DEVICES": "pthread", "OMP_NUM_THREADS": "1", "TORCH_CLUTCH_BLOCKING_WAIT": "1"}
    while True:
        done = {of["test"]: of for of in lines(out)}
        folder = Path(tempfile.mkdtemp())
        (folder / "test_dir").mkdir()
        (folder / "done.json").write_text(json.dumps(list(done)))
        command = [*MPIRUN.split(), sys.executable, __file__, "--child", str(folder), "--only", asked.only, "--seconds", str(asked.seconds)]
        with open(folder / "text", "w") as text:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=text, stderr=subprocess.STDOUT, start_new_session=True)
        ranks = [folder / f"rank{r}.jsonl" for r in range(2)]
        before, since, late = None, time.monotonic(), False
        while process.poll() is None and not late:
            time.sleep(0.2)
            now = [file.stat().st_size if file.exists() else 0 for file in ranks]
            if now != before:
                before, since = now, time.monotonic()
            late = time.monotonic() - since > asked.seconds + (60 if now == [0, 0] else 0)
        if late:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said = [{of["test"]: of for of in lines(file)} for file in ranks]
        names = dict.fromkeys(name for of in said for name in of)
        with open(out, "a") as file:
            for name in names:
                of = [one.get(name, {"outcome": "absent"}) for one in said]
                ended = [one for one in of if one["outcome"] not in ("begun", "absent")]
                worst = next((one for one in ended if one["outcome"] == "fail"), None) or (
                    {"outcome": "late" if late else "crash", "why": (folder / "text").read_text()[-2000:]} if len(ended) < 2 else ended[0]
                )
                file.write(json.dumps({"test": name, "outcome": worst["outcome"], "why": worst.get("why", ""), "calls": worst.get("calls", 0)}) + "\n")
        text = (folder / "text").read_text()
        shutil.rmtree(folder)
        if process.returncode == 0 and not late:
            break
        if not names:
            sys.exit(f"no test began:\n{text[-4000:]}")
    counts = collections.Counter(of["outcome"] for of in lines(out))
    print(f"{out}: " + ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common()))
    print(f"{sum(of['outcome'] == 'pass' and of['calls'] > 0 for of in lines(out))} of those that pass have calls of clutch's groups, the others of gloo's alone")
    for of in lines(out):
        if of["outcome"] not in ("pass", "skip"):
            print(f"{of['outcome']} {of['test']}: {of['why'].splitlines()[0] if of['why'] else ''}"[:300])


if __name__ == "__main__":
    asked = options()
    child(asked) if asked.child else main(asked)
