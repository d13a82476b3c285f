# SPDX-License-Identifier: Apache-2.0
"""torch.distributed on clutch's devices, by two ranks that mpirun starts: distributed_ranks.py."""
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch_clutch.distributed

sys.path.insert(0, str(Path(__file__).parent))
import distributed_ranks  # noqa: E402

RANKS = Path(__file__).with_name("distributed_ranks.py")
MPIRUN = "mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none"
pytestmark = [
    pytest.mark.skipif(not torch_clutch.distributed.is_available(), reason="built without libclutch_dist"),
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed"),
]


def mpirun(arguments, ranks=2, timeout=600, **settings):
    """Gives how it ended and what all ranks printed; ends all of them after the time-out."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_"))}
    environment |= {"POCL_MAX_PTHREAD_COUNT": "1", "POCL_DEVICES": "pthread", "OMP_NUM_THREADS": "1"} | settings
    command = [*MPIRUN.split(), "-np", str(ranks), sys.executable, *map(str, arguments)]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        text, _ = process.communicate(timeout=timeout)
        return process.returncode, text
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        return "killed", text


def run_ranks(program, tmp_path, **arguments):
    file = tmp_path / "program.py"
    file.write_text(program)
    return mpirun([file], **arguments)


ABOVE = ("data_parallel", "data_parallel_hooks", "batch_norms", "sharded_parallel", "sharded_parallel_in_bf16", "dtensors", "tensor_parallel", "tensor_parallel_attention", "functional", "ops_that_take_groups", "checkpoints")
COLLECTIVES = [name for name in distributed_ranks.CASES if name not in ABOVE]


class Runs:
    """A family of cases is one start of mpirun, at the first test that asks."""

    def __init__(self, folder):
        self.folder, self.of = folder, {}

    def ended(self, family, names, case):
        if family not in self.of:
            folder = self.folder / family
            folder.mkdir()
            code, text = mpirun([RANKS, folder, *names], timeout=1500, CHECKPOINT_FOLDER=str(self.folder))
            ranks = [json.loads(file.read_text()) if file.exists() else {} for file in (folder / f"rank{r}.json" for r in range(2))]
            self.of[family] = code, text, ranks
        code, text, ranks = self.of[family]
        for r, ended in enumerate(ranks):
            how = ended.get(case, f"it did not end (mpirun: {code})\n{text[-4000:]}")
            assert how == "passed", f"rank {r}: {how}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("case", COLLECTIVES)
def test_collectives(runs, case):
    runs.ended("collectives", COLLECTIVES, case)


@pytest.mark.parametrize("case", ABOVE)
def test_layers_above(runs, case):
    runs.ended("above", ABOVE, case)


def test_a_checkpoint_of_two_ranks_is_read_by_one_process(runs):
    import torch.distributed.checkpoint as checkpoint

    runs.ended("above", ABOVE, "checkpoints")
    read = {"sharded": torch.zeros(5, 7, device="clutch"), "plain": torch.zeros(6, dtype=torch.int64, device="clutch")}
    checkpoint.load(read, checkpoint_id=runs.folder / "tensors")
    assert torch.equal(read["sharded"].cpu(), torch.arange(35.0).reshape(5, 7)) and torch.equal(read["plain"].cpu(), torch.arange(6))
    model = distributed_ranks.small_model(9).to("clutch")
    state = {"model": model.state_dict()}
    checkpoint.load(state, checkpoint_id=runs.folder / "model")
    saved = torch.load(runs.folder / "saved.pt")
    for name, value in state["model"].items():
        assert torch.equal(value.cpu(), saved[name])


INIT = """
import sys, time
from datetime import timedelta
import torch
import torch.distributed as dist
"""


def test_without_a_backend_name(tmp_path):
    code, text = run_ranks(
        INIT
        + """
dist.init_process_group()
x = torch.ones(3, device="clutch")
dist.all_reduce(x)
assert x.tolist() == [2, 2, 2]
host = torch.ones(3)
dist.all_reduce(host)  # by gloo
assert host.tolist() == [2, 2, 2]
dist.barrier()
every = [None, None]
dist.all_gather_object(every, dist.get_rank())
assert every == [0, 1]
group = dist.new_group([0, 1])
dist.all_reduce(x, group=group)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3).to("clutch"))
model(x).sum().backward()
dist.destroy_process_group()
dist.init_process_group(backend="clutch")  # and once more
dist.all_reduce(x)
assert x.tolist() == [8, 8, 8]
print("right")
""",
        tmp_path,
    )
    assert code == 0 and text.count("right") == 2, text


def test_groups_are_split_from_one_with_a_device(tmp_path):
    code, text = run_ranks(
        INIT
        + """
dist.init_process_group("clutch", device_id=torch.device("clutch:0"))
rank = dist.get_rank()
mine = dist.split_group(split_ranks=[[0], [1]])
x = torch.full((3,), 1.0 + rank, device="clutch")
dist.all_reduce(x, group=mine)
assert x.tolist() == [1.0 + rank] * 3
first = dist.new_group([0])
both = dist.split_group(split_ranks=[[0, 1]])
dist.all_reduce(x, group=both)
assert x.tolist() == [3, 3, 3]
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("clutch", (2, 1), mesh_dim_names=("a", "b"))
dist.all_reduce(x, group=mesh.get_group("a"))
assert x.tolist() == [6, 6, 6]
print("right")
""",
        tmp_path,
    )
    assert code == 0 and text.count("right") == 2, text


def test_a_process_alone_is_one_rank(run_python):
    program = """
import torch
import torch.distributed as dist
dist.init_process_group("cpu:gloo,clutch:clutch", store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(3, device="clutch")
dist.all_reduce(x)
outs = [torch.zeros(3, device="clutch")]
dist.all_gather(outs, x)
assert outs[0].tolist() == [1, 1, 1]
print("right")
"""
    ended = run_python(program)
    assert ended.returncode == 0 and "right" in ended.stdout, ended.stderr


def test_ranks_without_mpirun_are_an_error(run_python):
    program = """
import torch
import torch.distributed as dist
dist.init_process_group("clutch", store=dist.HashStore(), rank=0, world_size=2)
"""
    ended = run_python(program, OMPI_COMM_WORLD_SIZE=None)
    assert ended.returncode != 0
    assert re.search(r"must have MPI's ranks, of which this is rank 0 of 1 \(mpirun starts more\), got rank 0 of 2", ended.stderr), ended.stderr


def test_no_mpi_is_loaded_before_a_group_is_made(run_python):
    program = """
import torch
assert torch.distributed.is_available() and "clutch" in torch.distributed.Backend.backend_list
torch.ones(2, device="clutch").sum().item()
assert "libmpi" not in open("/proc/self/maps").read()
print("right")
"""
    ended = run_python(program)
    assert "right" in ended.stdout, ended.stderr


def test_a_rank_that_does_not_come(tmp_path):
    code, text = run_ranks(
        INIT
        + """
dist.init_process_group("cpu:gloo,clutch:clutch", timeout=timedelta(seconds=30))
x = torch.ones(4, device="clutch")
dist.all_reduce(x)
group = dist.new_group(timeout=timedelta(seconds=2))
if dist.get_rank() == 0:
    work = dist.all_reduce(x, group=group, async_op=True)
    begin = time.monotonic()
    try:
        work.wait(timedelta(seconds=25))
    except dist.DistBackendError as error:
        assert time.monotonic() - begin < 20 and "waited 2000 ms for rank 1" in str(error), error
        print("timed out")
    try:
        dist.all_reduce(x, group=group)
    except dist.DistBackendError as error:
        assert "has failed" in str(error), error
        print("stays failed")
dist.barrier(group=dist.new_group(backend="gloo"))
y = torch.ones(4, device="clutch")
dist.all_reduce(y)  # another group goes on
assert y.tolist() == [2] * 4
print("right")
""",
        tmp_path,
    )
    assert code == 0 and text.count("right") == 2 and "timed out" in text and "stays failed" in text, text


def test_groups_behind_one_that_failed(tmp_path):
    """What a rank sent and nobody took does not come to the groups that are made later."""
    code, text = run_ranks(
        INIT
        + f"""
import os
for i in range(3):
    for part in ("failing", "right"):
        dist.init_process_group(
            "cpu:gloo,clutch:clutch",
            init_method=f"file://{tmp_path}/store_{{i}}_{{part}}",
            rank=int(os.environ["OMPI_COMM_WORLD_RANK"]),
            world_size=2,
            timeout=timedelta(seconds=30),
        )
        if part == "failing":
            group = dist.new_group(timeout=timedelta(seconds=2))
            if dist.get_rank() == 1:
                try:
                    dist.broadcast(torch.ones(4, device="clutch"), 0, group=group, async_op=True).wait(timedelta(seconds=20))
                except dist.DistBackendError as error:
                    assert "waited 2000 ms for rank 0" in str(error), error
        else:
            outs = [torch.zeros(2, dtype=torch.int64, device="clutch") for _ in range(2)]
            dist.all_gather(outs, torch.arange(2, device="clutch"))
            assert [x.tolist() for x in outs] == [[0, 1], [0, 1]]
        dist.barrier(group=dist.new_group(backend="gloo"))
        dist.destroy_process_group()
print("right")
""",
        tmp_path,
    )
    assert code == 0 and text.count("right") == 2, text


def test_blocking_waits_leave_streams_usable(tmp_path):
    code, text = run_ranks(
        INIT
        + """
dist.init_process_group("cpu:gloo,clutch:clutch", timeout=timedelta(seconds=30))
x = torch.ones(4, device="clutch")
try:
    dist.all_reduce(torch.ones(4 + dist.get_rank(), device="clutch"))
except dist.DistBackendError as error:
    assert "different calls" in str(error), error
    print("raised")
dist.all_reduce(x)
assert x.tolist() == [2] * 4
print("right")
""",
        tmp_path,
        TORCH_CLUTCH_BLOCKING_WAIT="1",
    )
    assert code == 0 and text.count("right") == 2 and text.count("raised") == 2, text


def test_an_exception_of_one_rank_ends_all(tmp_path):
    code, text = run_ranks(
        INIT
        + """
dist.init_process_group("clutch")
if dist.get_rank() == 1:
    raise ValueError("of rank 1")
x = torch.ones(4, device="clutch")
dist.all_reduce(x)
print(x)
time.sleep(100)
""",
        tmp_path,
        timeout=60,
    )
    assert code not in (0, "killed") and "ValueError: of rank 1" in text, (code, text)


def test_dumps_of_the_flight_recorder(tmp_path):
    pytest.importorskip("tabulate")
    program = (
        INIT
        + f"""
import torch_clutch.distributed
dist.init_process_group("cpu:gloo,clutch:clutch", timeout=timedelta(seconds=30))
x = torch.ones(4, device="clutch")
for _ in range(3):
    dist.all_reduce(x)
dist.all_gather_into_tensor(torch.empty(8, device="clutch"), x)
torch.accelerator.synchronize()  # a dump says how calls stand
torch_clutch.distributed.dump_flight("{tmp_path}/right_")
torch_clutch.distributed.dump_flight("{tmp_path}/text_", "json")
"""
    )
    code, text = run_ranks(program, tmp_path)
    assert code == 0, text
    for r in range(2):
        assert json.loads((tmp_path / f"text_{r}").read_text())["records"]
        with open(tmp_path / f"right_{r}", "rb") as file:
            dump = pickle.load(file)
        assert [entry["profiling_name"] for entry in dump["entries"]].count("gloo:all_reduce") == 3
    folder = tmp_path / "dumps"
    folder.mkdir()
    for r in range(2):
        shutil.move(tmp_path / f"right_{r}", folder / f"right_{r}")
    read = subprocess.run(
        [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", folder, "-p", "right_", "-o", tmp_path / "out.pickle"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert read.returncode == 0, read.stderr
    with open(tmp_path / "out.pickle", "rb") as file:
        _, database = pickle.load(file)
    assert len(database.collectives) >= 4
    assert not [call for call in database.collectives if call.missing_ranks or call.mismatch_collectives or call.type_of_mismatch]
