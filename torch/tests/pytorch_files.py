# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own test files on `clutch` and on the CPU, and prints a table of both.

  pytorch_files.py [FILE ...] [--source FOLDER] [--seconds 60] [--only TEXT] [--slice K/N] [--out FOLDER]

--source is a checkout of PyTorch 2.12, CLUTCH_PYTORCH_SRC without it. Files are below its test/; without any those of FILES run. Of a file that has tests for each device these run, else all. A child
process does the work, each test for at most --seconds, and is started again behind a test that kills it. The outcomes go to --out, a line of
JSON a test; tests that are there are not run again. The share is of the tests that pass on the CPU and that PyTorch has for other devices, too. The exit status
is 1 where a test kills the process on clutch or the share is below 90 %, 77 without a checkout. --update [PAGE] runs nothing, and writes the outcomes of --out
into the table of docs/torch.md.

`openreg` stands for the tests of PyTorch's example of a backend, read with `clutch` where they say `openreg`, on two devices. The CPU has none of what they
test, so their share is of all but the skipped ones. Tests of flex_attention are for CUDA, XPU and the CPU by name: they are read with `clutch` among these, which
has gradients, and torch.compile() compiles for clutch there.
"""
import argparse
import collections
import functools
import importlib.machinery
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import outcomes
import results_page

FILES = ["test_ops", "test_torch", "test_autograd", "test_nn", "test_transformers", "test_optim", "test_foreach", "test_linalg", "test_accelerator",
         "inductor/test_flex_attention", "openreg"]
OPENREG = "cpp_extensions/open_registration_extension/torch_openreg/tests"
# What is read otherwise than it is written, by file.
FLEX_CPU = [(b'test_device[0] if HAS_GPU else "cuda"', b'test_device[0]')]
FLEX = [(b'device=test_device[0])\nclass', b'device="cpu")\nclass'), (b'test_device = ("cpu",)', b'test_device = ("clutch", "privateuse1")'), (b'SubstringSet(["cuda", "xpu"])', b'SubstringSet(["clutch"])'),
        (b"return item in self.items", b'return item.split(":")[0] in self.items'), (b'WithBackend("inductor")', b'WithBackend("clutch")')]
READ_AS = {"clutch": {"openreg": [(b"openreg", b"clutch")], "inductor/test_flex_attention": FLEX_CPU + FLEX}, "cpu": {"inductor/test_flex_attention": FLEX_CPU}}
DEVICES = {"clutch": "privateuse1", "cpu": "cpu"}  # by PyTorch's names of classes of tests
COLUMNS = ("pass", "fail", "error", "late", "crash", "skip")
LEAST = 0.9


def options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    # clutch itself refuses settings that it does not know.
    parser.add_argument("--source", default=os.environ.pop("CLUTCH_PYTORCH_SRC", ""))
    parser.add_argument("--seconds", type=int, default=60, help="for one test")
    parser.add_argument("--only", default="", help="tests whose names have this text")
    parser.add_argument("--slice", default="0/1", help="K/N: every N-th test from the K-th on")
    parser.add_argument("--out", default="", help="folder of the outcomes")
    parser.add_argument("--update", nargs="?", const=str(results_page.TORCH), metavar="PAGE", help="writes the page's table from --out")
    parser.add_argument("--note", help="of the rows that --update writes, such as `a tenth`; without it theirs stay")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def paths_of(asked, file):
    folder = Path(asked.source) / "test"
    return sorted((folder / OPENREG).glob("test_*.py")) if file == "openreg" else [folder / (file + ".py")]


# ---- what the child does

def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


class ReadAs(importlib.machinery.SourceFileLoader):
    """Reads a file of tests with some of its text replaced; `some`: of several files of which not all have it."""

    def __init__(self, name, path, replaced, some):
        super().__init__(name, path)
        self.replaced, self.some = replaced, some

    def get_data(self, path):
        data = super().get_data(path)
        if path != self.path:
            return data
        for text, by in self.replaced:
            if text not in data and not self.some:
                raise RuntimeError(f"{path} must have the text {text.decode()!r}, which is read as {by.decode()!r}")
            data = data.replace(text, by)
        return data


def by_clutch(compile_function):
    """torch.compile by clutch's backend, where the test names none or the inductor."""
    @functools.wraps(compile_function)
    def compiled(*args, backend="inductor", **kwargs):
        return compile_function(*args, backend="clutch" if backend == "inductor" else backend, **kwargs)

    return compiled


def load(asked, file):
    import torch
    import torch_clutch  # noqa: F401, before PyTorch lists the devices that it has tests for

    if asked.child == "clutch" and file.startswith("inductor/"):
        torch.compile = by_clutch(torch.compile)
    tests = []
    paths = paths_of(asked, file)
    for path in paths:
        sys.path[:0] = [str(path.parent), str(Path(asked.source) / "test")]
        sys.argv = [str(path)]
        replaced = READ_AS[asked.child].get(file)
        loader = ReadAs(path.stem, str(path), replaced, len(paths) > 1) if replaced else None
        spec = importlib.util.spec_from_file_location(path.stem, path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        try:
            spec.loader.exec_module(module)
        except unittest.SkipTest:  # what it tests is another backend's alone
            continue
        tests += tests_of(unittest.defaultTestLoader.loadTestsFromModule(module))
    return tests


def outcome_of(test):
    result = unittest.TestResult()
    test.run(result)
    for outcome, entries in (("fail", result.failures), ("error", result.errors)):
        if entries and entries[0][1].rstrip().endswith("Late"):
            raise outcomes.Late()
        if entries:
            return outcome, entries[0][1].strip().splitlines()[-1]
    if result.skipped:
        return "skip", result.skipped[0][1]
    if result.unexpectedSuccesses:
        return "fail", "an unexpected success"
    return "pass", ""


def child(asked):
    file = asked.files[0]
    done = outcomes.read(asked.out, "test")
    outcomes.limit_time()
    tests = load(asked, file)
    suffixes = {"CPU", "PRIVATEUSE1", "CLUTCH"}
    generic = [t for t in tests if file != "openreg" and any(type(t).__name__.endswith(s) for s in suffixes)]
    first, step = map(int, asked.slice.split("/"))
    open_class = None
    with open(asked.out, "a") as out:
        for i, test in enumerate(generic or tests):
            name = test.id()
            if i % step != first or asked.only not in name or name in done:
                continue
            outcomes.begin(out, {"test": name})
            signal.alarm(asked.seconds)
            try:
                if type(test) is not open_class:
                    if open_class is not None:
                        open_class.tearDownClass()
                    open_class = None
                    type(test).setUpClass()
                    open_class = type(test)
                outcome, why = outcome_of(test)
            except outcomes.Late:
                outcome, why = "late", f"more than {asked.seconds} s"
            except unittest.SkipTest as skipped:
                outcome, why = "skip", str(skipped)
            except Exception as error:
                outcome, why = "error", f"{type(error).__name__}: {error}"
            finally:
                signal.alarm(0)
            outcomes.end(out, {"test": name, "outcome": outcome, "why": outcomes.short(why)})


# ---- what the parent does

def name_of(test):
    """A test's name without that of its device."""
    return re.sub(r"(PRIVATEUSE1|CLUTCH|CPU)(?=\.)|_(privateuse1|clutch|cpu)(?=_|$)", "", test)


def for_devices(name, ours):
    """Whether PyTorch has the test for other devices than the CPU."""
    return name in ours and not (ours[name]["outcome"] == "skip" and ours[name]["why"].startswith("Only runs on cpu"))


def place_of(file, device, folder):
    return folder / f"{file.replace('/', '.')}.{device}.jsonl"


def read(path):
    return {name_of(test): r for test, r in outcomes.read(path, "test").items()}


def for_both(file, ours, of_cpu):
    """The names of tests that pass on the CPU, and of those of them that PyTorch has for other devices."""
    passed = [name for name, r in of_cpu.items() if r["outcome"] == "pass" or (file == "openreg" and r["outcome"] != "skip")]
    return passed, [name for name in passed if for_devices(name, ours)]


def update(asked, folder):
    counted = {}
    for path in sorted(folder.glob("*.clutch.jsonl")):
        file = path.name.removesuffix(".clutch.jsonl").replace(".", "/")
        ours, of_cpu = read(path), read(path if file == "openreg" else place_of(file, "cpu", folder))
        both = for_both(file, ours, of_cpu)[1]
        if not asked.files or file in asked.files:
            counted[file] = len(both), sum(ours[name]["outcome"] == "pass" for name in both)
    results_page.files(asked.update, counted, asked.note)


def run(file, device, asked, folder):
    """The tests' outcomes by name; None where the file does not load, and why."""
    out = str(place_of(file, device, folder))
    command = [sys.executable, __file__, file, "--child", device, "--source", asked.source, "--out", out, "--seconds", str(asked.seconds), "--only", asked.only, "--slice", asked.slice]
    environment = os.environ | {"PYTORCH_TESTING_DEVICE_ONLY_FOR": DEVICES[device], "PYTORCH_TESTING_DEVICE_FOR_CUSTOM": DEVICES[device], "PYTORCH_PRINT_REPRO_ON_FAILURE": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    if file == "openreg":
        environment["POCL_DEVICES"] = "pthread pthread"
    before = -1
    while True:
        done = subprocess.run(command, env=environment, cwd=Path(asked.source) / "test", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        results = outcomes.read(out, "test")
        if done.returncode == 0:
            return read(out), ""
        if len(results) == before:  # nothing was begun: it is the file
            lines = done.stderr.strip().splitlines()
            return None, lines[-1] if lines else f"exit status {done.returncode}"
        before = len(results)


def main(arguments=None):
    asked = options(arguments)
    if asked.child:
        return child(asked)
    if asked.update:
        return update(asked, Path(asked.out))
    files = asked.files or FILES
    if not asked.source:
        print("CLUTCH_PYTORCH_SRC names no checkout of PyTorch; SKIPPED, so none of these test files ran: " + ", ".join(files))
        return 77
    asked.source = str(Path(asked.source).resolve())
    if not (Path(asked.source) / "test").is_dir():
        print(f"the source must be a checkout of PyTorch, with a folder test; got {asked.source}")
        return 1
    folder = Path(asked.out or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    print("| file | " + " | ".join(COLUMNS) + " | pass on the CPU | of these for devices | share |\n|---|" + "---|" * (len(COLUMNS) + 3))
    bad = 0
    for file in files:
        paths = paths_of(asked, file)
        if not paths or not paths[0].exists():
            print(f"| {file} | " + " | ".join("" for _ in COLUMNS) + " | | | not in the checkout |")
            continue
        ours, why = run(file, "clutch", asked, folder)
        of_cpu, why_not = (ours, "") if file == "openreg" else run(file, "cpu", asked, folder)
        if ours is None or of_cpu is None:
            bad += 1
            print(f"| {file} | " + " | ".join("" for _ in COLUMNS) + f" | | | does not load: {why or why_not} |")
            continue
        counts = collections.Counter(r["outcome"] for r in ours.values())
        passed, both = for_both(file, ours, of_cpu)
        share = sum(ours[name]["outcome"] == "pass" for name in both) / len(both) if both else 1
        bad += counts["crash"] > 0 or share < LEAST
        print(f"| {file} | " + " | ".join(str(counts[o]) for o in COLUMNS) + f" | {len(passed)} | {len(both)} | {100 * share:.1f} % |", flush=True)
    print(f"outcomes: {folder}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
