# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch_clutch  # noqa: F401


sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))  # its networks are tested, too


@pytest.fixture(autouse=True)
def fresh_counts():
    torch.clutch.reset_fallbacks()
    torch.manual_seed(0)


@pytest.fixture
def native():
    """No op may run on the CPU."""
    with torch.clutch.forbid_fallbacks():
        yield


@pytest.fixture
def run_python():
    """Runs a program in a process of its own with other settings; gives what it printed and how it ended."""

    def run(program, **settings):
        environment = {k: v for k, v in (os.environ | settings).items() if v is not None}
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)

    return run
