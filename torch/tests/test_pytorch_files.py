# SPDX-License-Identifier: Apache-2.0
"""The runner of PyTorch's own test files, on a checkout of one small file."""
import json
import os
import subprocess
import sys
from pathlib import Path

RUNNER = Path(__file__).with_name("pytorch_files.py")
FILE = """
import os
import time

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, run_tests


class TestSmall(TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ready = True

    def test_sum(self, device):
        self.assertTrue(self.ready)
        self.assertEqual(torch.ones(3, device=device).sum().item(), 3)

    def test_wrong(self, device):
        self.assertEqual(device.split(":")[0], "cpu")

    def test_raises(self, device):
        raise ValueError("as planned")

    def test_skipped(self, device):
        self.skipTest("as planned")

    def test_dies(self, device):
        if not device.startswith("cpu"):
            os.kill(os.getpid(), 9)

    def test_sleeps(self, device):
        time.sleep(60)


class TestOfTheHost(TestCase):
    def test_nothing(self):
        pass


instantiate_device_type_tests(TestSmall, globals())

if __name__ == "__main__":
    run_tests()
"""


def run(source, *arguments):
    environment = os.environ | {"CLUTCH_PYTORCH_SRC": str(source)}
    return subprocess.run([sys.executable, str(RUNNER), *arguments], env=environment, capture_output=True, text=True, timeout=300)


def test_outcomes_are_counted(tmp_path):
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_small.py").write_text(FILE)
    done = run(tmp_path, "test_small", "test_not_there", "--seconds", "3", "--out", str(tmp_path / "out"))
    rows = [line for line in done.stdout.splitlines() if line.startswith("| test_")]
    assert rows[0] == "| test_small | 1 | 1 | 1 | 1 | 1 | 1 | 3 | 3 | 33.3 % |", done.stdout + done.stderr
    assert "not in the checkout" in rows[1] and done.returncode == 1
    results = [json.loads(line) for line in open(tmp_path / "out" / "test_small.clutch.jsonl")]
    assert {r["test"].split("test_")[-1].split("_")[0] for r in results if r["outcome"] == "error"} == {"raises"}
    again = run(tmp_path, "test_small", "--seconds", "3", "--out", str(tmp_path / "out"))  # from the outcomes alone
    assert rows[0] in again.stdout
    fine = run(tmp_path, "test_small", "--only", "test_sum", "--out", str(tmp_path / "other"))
    assert "| 100.0 % |" in fine.stdout and fine.returncode == 0


def test_what_cannot_be_run_is_said(tmp_path):
    assert run("", "test_ops").returncode == 77
    assert "must be a checkout" in run(tmp_path / "nowhere").stdout and "SKIPPED" in run("").stdout
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_bad.py").write_text("import a_module_that_nobody_has\n")
    done = run(tmp_path, "test_bad", "--out", str(tmp_path / "out"))
    assert "does not load: ModuleNotFoundError" in done.stdout and done.returncode == 1
