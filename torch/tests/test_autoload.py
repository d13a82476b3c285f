# SPDX-License-Identifier: Apache-2.0
"""`import torch` works whatever is missing, and says why clutch is not there."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PLAIN = "import torch; print(hasattr(torch, 'clutch') and torch.clutch.is_available())"


def test_import_of_torch_registers_it(run_python):
    assert run_python(PLAIN).stdout.strip() == "True"


def test_off_switches(run_python):
    assert run_python(PLAIN, TORCH_CLUTCH="0").stdout.strip() == "False"
    assert run_python(PLAIN, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.strip() == "False"
    assert run_python("import torch_clutch\n" + PLAIN, TORCH_CLUTCH="0").stdout.strip() == "True"


OTHER = """
import torch, types
torch.version.cuda = '13.0'
torch.cuda.device_count = lambda: 1
import torch_clutch._registration as registration
registration._state.registered = False
registration.register = lambda: print('registered')
registration.autoload()
print(registration._state.why)
"""


def test_another_accelerator_has_precedence(run_python):
    ended = run_python(OTHER, TORCH_CLUTCH=None)
    assert "has the accelerator cuda" in ended.stdout and "registered" not in ended.stdout, ended.stderr
    assert "registered" in run_python(OTHER, TORCH_CLUTCH="1").stdout


def test_the_stand_in_says_why(run_python):
    ended = run_python("""
import torch
from torch_clutch import _registration
del torch.clutch  # which that import made
_registration.absent('of a reason')
print(torch.clutch.is_available(), torch.clutch.device_count())
for use in (lambda: torch.clutch.synchronize(), lambda: torch.clutch._lazy_init()):
    try: use()
    except (AttributeError, RuntimeError) as error: print(error)
""", TORCH_CLUTCH="0", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("False 0\ntorch.clutch has no synchronize") and ended.stdout.count("clutch is not available: of a reason") == 2


def test_without_library(run_python, tmp_path):
    ended = run_python("import torch; print(torch.ones(2).sum().item(), torch.clutch.is_available()); print(torch.clutch.why)",
                       TORCH_CLUTCH_LIBRARY=str(tmp_path / "nothing.so"))
    assert ended.returncode == 0 and ended.stdout.startswith("2.0 False") and "nothing.so" in ended.stdout


def test_without_devices(run_python):
    ended = run_python("""
import torch
print(torch.clutch.is_available(), torch.clutch.device_count(), torch.accelerator.is_available())
try:
    torch.ones(2, device='clutch')
except RuntimeError as error:
    print(error)
""", CLUTCH_VISIBLE_DEVICES="")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("False 0 False") and "clutch is not available" in ended.stdout


def test_without_drivers(run_python, tmp_path):
    ended = run_python("import torch; print(torch.clutch.is_available())\ntry: torch.ones(2, device='clutch')\nexcept RuntimeError as e: print(e)",
                       OCL_ICD_VENDORS=str(tmp_path), CLUTCH_LOG="off")
    assert ended.returncode == 0 and ended.stdout.startswith("False") and "clutch is not available" in ended.stdout


def shared_library(path, source):
    """Builds a shared library of C text, or skips the test where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)], input=source, text=True, check=True)
    return path


WHY = """
import torch
print(torch.ones(2).sum().item(), torch.clutch.is_available(), torch.accelerator.is_available())
try: torch.clutch._lazy_init()
except RuntimeError as error: print(error)
"""
# A driver that has no platforms.
FAILS = "int clIcdGetPlatformIDsKHR(unsigned n, void **p, unsigned *c) { return -1001; }\nvoid *clGetExtensionFunctionAddress(const char *n) { return clIcdGetPlatformIDsKHR; }"


@pytest.mark.parametrize("driver", ["no file", "no library", "no symbols", "an error"])
def test_with_a_broken_driver(driver, run_python, tmp_path):
    vendors, library = tmp_path / "vendors", tmp_path / "libdriver.so"
    vendors.mkdir()
    if driver == "no library":
        library.write_text("this is text\n")
    elif driver != "no file":
        shared_library(library, "int nothing(void) { return 0; }" if driver == "no symbols" else FAILS)
    (vendors / "broken.icd").write_text(f"{library}\n")
    ended = run_python(WHY, OCL_ICD_VENDORS=str(vendors), OCL_ICD_FILENAMES=None, CLUTCH_LOG="off")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("2.0 False False\nclutch is not available: no OpenCL device")


def test_with_a_broken_driver_beside_a_good_one(run_python, tmp_path):
    """The good one works."""
    system = Path(os.environ.get("OCL_ICD_VENDORS", "/etc/OpenCL/vendors"))
    good = sorted(system.glob("*.icd")) if system.is_dir() else []
    if not good:
        pytest.skip(f"no drivers are listed in {system}")
    for file in good:
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "broken.icd").write_text("/nonexistent/libdriver.so\n")
    ended = run_python("import torch; print(torch.ones(2, device='clutch').sum().item())", OCL_ICD_VENDORS=str(tmp_path))
    assert ended.returncode == 0 and ended.stdout.strip() == "2.0", ended.stderr


@pytest.mark.parametrize("loader", ["text", "without symbols"])
def test_without_a_loader(loader, run_python, tmp_path):
    """A libOpenCL.so.1 that cannot be loaded comes first, since the system's cannot be removed."""
    if loader == "text":
        (tmp_path / "libOpenCL.so.1").write_text("this is text\n")
    else:
        shared_library(tmp_path / "libOpenCL.so.1", "int nothing(void) { return 0; }")
    ended = run_python(WHY + "print(torch.clutch.why)\n", LD_LIBRARY_PATH=f"{tmp_path}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("2.0 False False\nclutch is not available: ImportError: ") and "libOpenCL.so.1" in ended.stdout


def test_a_bad_setting_is_told(run_python):
    ended = run_python("import torch; print(torch.clutch.is_available())\ntry: torch.ones(2, device='clutch')\nexcept RuntimeError as e: print(e)",
                       CLUTCH_NO_SUCH_SETTING="1")
    assert ended.returncode == 0 and "CLUTCH_NO_SUCH_SETTING" in ended.stdout


FORK = """
import os, torch
{before}
child = os.fork()
if child == 0:
    try:
        print('child', torch.ones(3, device='clutch').sum().item(), flush=True)
    except RuntimeError as error:
        print('refused', error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print('parent', torch.ones(2, device='clutch').sum().item())
"""


def test_fork_before_use(run_python):
    ended = run_python(FORK.format(before="torch.manual_seed(3)"))
    assert "child 3.0" in ended.stdout and "parent 2.0" in ended.stdout, ended.stdout + ended.stderr


def test_fork_after_use(run_python):
    ended = run_python(FORK.format(before="x = torch.ones(1, device='clutch')"))
    assert "refused" in ended.stdout and "spawn" in ended.stdout and "parent 2.0" in ended.stdout, ended.stdout + ended.stderr


def test_workers_of_a_data_loader(run_python):
    ended = run_python("""
import torch
x = torch.ones(1, device='clutch')
loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=2, num_workers=2, pin_memory=True)
print(sum(batch.to('clutch').sum().item() for batch in loader))
""")
    assert ended.stdout.strip() == "28.0", ended.stderr


@pytest.mark.skipif(os.environ.get("CLUTCH_STRICT") is not None, reason="the setting is the test's")
def test_strict_setting(run_python):
    ended = run_python("import torch; torch.ones(3, 3, device='clutch').cholesky_inverse()", CLUTCH_STRICT="host")
    assert "NotImplementedError" in ended.stderr and "aten::cholesky_inverse" in ended.stderr
