# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's analyzer says of each folder that flight_dumps wrote. Use: check.py FOLDER"""
import ast
import os
import pickle
import subprocess
import sys

# For each fault what the analyzer must find first: ranks that did not come, or its word for a difference (an all_to_all's totals have neither). None: nothing,
# since its format has no reduce op, no root, no rank's own part of a list, and no calls of one rank alone.
EXPECTED = {
    "none": None, "reduce": None, "root": None, "own_size": None, "failed": None, "timed_out": None, "wrapped": None,
    "message": ("tp1:p2p:0-1", "SIZE_OR_SYNTAX_MISMATCH"), "group_missing": ("tp1", {3}), "totals": ("0", "numel"), "late": ("0", {2}), "killed": ("0", {2}),
    "sizes": ("0", "SIZE_OR_SYNTAX_MISMATCH"), "list": ("0", "SIZE_OR_SYNTAX_MISMATCH"), "op": ("0", "COLLECTIVE_TYPE_MISMATCH"),
    "dtype": ("0", "COLLECTIVE_DTYPE_MISMATCH"), "state": ("0", "COLLECTIVE_STATE_MISMATCH"), "left_out": ("0", "COLLECTIVE_TYPE_MISMATCH"),
    "put_in": ("0", "COLLECTIVE_TYPE_MISMATCH"), "alone": ("0:p2p:0-2", {2}), "cycle": ("0:p2p:", None), "two_groups": ("t", None),
}
# The analyzer lines up the rings of ranks by the number of a record in its process, which is wrong where ranks make different numbers of calls. clutch-flight writes
# the dumps of all ranks so that this is right; those that each process writes by itself show the analyzer's fault.
NOT_ALIGNED = {"wrapped_alone"}


def analyzed(folder):
    output = os.path.join(folder, "database")
    command = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", "-p", "clutch_flight_", folder, "-o", output]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, f"{folder}: the analyzer must end with 0, got {ran.returncode}\n{ran.stdout}{ran.stderr}"
    with open(output, "rb") as file:
        _, database = pickle.load(file)
    return database


def main():
    work = sys.argv[1]
    folders = sorted(name for name in os.listdir(work) if os.path.isdir(os.path.join(work, name)))
    assert set(folders) == set(EXPECTED) | NOT_ALIGNED, folders
    for name in folders:
        database = analyzed(os.path.join(work, name))
        found = [c for c in database.collectives if not c.pass_check or c.missing_ranks]
        if name in NOT_ALIGNED:
            assert found, f"{name}: the analyzer lines up rings rightly now: say so in docs/flight.md"
            continue
        expected = EXPECTED[name]
        if expected is None:
            assert not found, f"{name}: {found[0]}"
            assert len(database.collectives) >= 30, len(database.collectives)
            continue
        assert found, f"{name}: nothing was found"
        group, what = expected
        first = found[0]
        assert first.pg_desc.startswith(group), f"{name}: {first}"
        if isinstance(what, set):
            assert first.missing_ranks == what, f"{name}: {first}"
        elif what == "numel":
            assert (first.input_numel, first.output_numel) == (100, 101), f"{name}: {first}"
        elif what is None:
            assert all(c.missing_ranks for c in found) and len(found) >= 2, f"{name}: {found}"
        else:
            kinds = {str(c.type_of_mismatch).split(",")[0].replace("Error type: ", "") for c in first.mismatch_collectives.values()}
            assert kinds == {what}, f"{name}: {kinds} {first}"
        frame = first.collective_frames[0]
        assert "flight" in frame["filename"] and frame["line"] > 0, frame
    # A dump is what pickle's own reader takes, and no more than a dict of plain values.
    with open(os.path.join(work, "none", "clutch_flight_1"), "rb") as file:
        dump = pickle.load(file)
    assert [ast.literal_eval(g["ranks"]) for g in dump["pg_config"].values()][0] == [0, 1, 2, 3]
    print(f"flight: PyTorch's analyzer finds {sum(1 for e in EXPECTED.values() if e)} planted faults in our dumps, and nothing in {sum(1 for e in EXPECTED.values() if not e)} sets"
          " without one that it could see")


main()
