# SPDX-License-Identifier: Apache-2.0
"""Compares the two halves of each row of docs/accelerator.md: what accelerator_rows prints and what PyTorch's calls give.

  run.py PROGRAM PAGE [--filter REGEX] [--plant] [--list]

PyTorch's half runs on the accelerator that PyTorch has: torch_clutch's where it is importable and TORCH_CLUTCH=1 is set, or there is no other one. Rows whose
calls need another device are named as not compared. The page has to name every public name of torch.accelerator, torch.cuda, torch.xpu and torch.mps, and no other.
With --plant a line of each of the program's cases is spoiled, which every row has to notice.
"""
import argparse
import importlib.util
import os
import re
import subprocess
import sys
import types

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import halves

for part in ("devices", "streams", "memory", "generators", "graphs", "profiles"):
    __import__(part)


def expanded(name):
    """torch.{cuda,xpu}.stream is torch.cuda.stream and torch.xpu.stream."""
    found = re.search(r"\{([^}]*)\}", name)
    if not found:
        return [name]
    return [one for choice in found[1].split(",") for one in expanded(name[: found.start()] + choice.strip() + name[found.end() :])]


def read_page(path):
    """Rows as (PyTorch's names, case or None, where PyTorch's half runs)."""
    rows, header = [], None
    with open(path) as page:
        for text in page:
            cells = [cell.strip() for cell in text.strip().strip("|").split("|")] if text.startswith("|") else None
            if cells is None:
                header = None
            elif header is None:
                header = cells
            elif not set(text.strip()) <= set("|-: "):
                if header[0] != "PyTorch":
                    continue
                names = [one for span in re.findall(r"`([^`]+)`", cells[0]) for one in expanded(span)]
                rows.append((names, cells[2].strip("`"), cells[3]) if header[2:3] == ["case"] else (names, None, None))
    return rows


def public_names():
    """What the page has to name."""
    import torch.mps.event
    import torch.mps.profiler

    names = set()
    for module in ("accelerator", "cuda", "xpu", "mps"):
        of = getattr(torch, module)
        names |= {f"torch.{module}.{name}" for name in of.__all__ if not isinstance(getattr(of, name, None), types.ModuleType)}
    for module in ("cuda.nvtx", "cuda.profiler", "mps.profiler"):
        of = torch
        for part in module.split("."):
            of = getattr(of, part)
        listed = getattr(of, "__all__", None) or [n for n, v in vars(of).items() if not n.startswith("_") and getattr(v, "__module__", "") == of.__name__]
        names |= {f"torch.{module}.{name}" for name in listed}
    for name in ("Stream", "Event", "Generator", "accelerator.Graph", "cuda.CUDAGraph", "cuda.GreenContext"):
        of = torch
        for part in name.split("."):
            of = getattr(of, part)
        names |= {f"torch.{name}.{member}" for member in vars(of) if not member.startswith("_")}
    return names


def exists(name):
    of, path = torch, "torch"
    for part in name.split(".")[1:]:
        path += "." + part
        if part.startswith("*"):
            return any(found.endswith(part[1:]) for found in dir(of))
        if not hasattr(of, part) and (not isinstance(of, types.ModuleType) or importlib.util.find_spec(path) is None):
            return False
        of = getattr(of, part) if hasattr(of, part) else importlib.import_module(path)
    return True


def faults_of_page(rows):
    named = [name for names, _, _ in rows for name in names]
    for name in sorted({name for name in named if named.count(name) > 1}):
        yield f"the page names {name} twice"
    for name in named:
        if not exists(name):
            yield f"the page names {name}, which PyTorch {torch.__version__} has not"
    patterns = [re.compile(re.escape(name).replace(r"\*", r"\w+") + "$") for name in named]
    for name in sorted(public_names()):
        if not any(pattern.match(name) for pattern in patterns):
            yield f"the page does not name {name}"
    for _, case, runs_on in rows:
        if case and case in halves.HALVES and halves.HALVES[case][0] != runs_on:
            yield f"the page says that PyTorch's half of {case} runs on {runs_on}, and it runs on {halves.HALVES[case][0]}"
    cases = {case for _, case, _ in rows if case}
    for case in sorted(cases ^ set(halves.HALVES)):
        yield f"{case} is a row without PyTorch's half, or a half without a row"


def can_run(runs_on):
    if runs_on == "host":
        return True
    if not torch.accelerator.is_available():
        return False
    return runs_on == "accelerator" or runs_on == halves.kind() or (runs_on == "graph" and has_graphs())


def has_graphs():
    try:
        torch.accelerator.Graph()
        return True
    except RuntimeError:
        return False


def half(name):
    lines = halves.Lines()
    end = ""
    try:
        halves.HALVES[name][1](lines)
    except Exception as error:
        end = f"  ended by: {type(error).__name__}: {error}\n"
    return f"{name}\n{lines.text}{end}"


def other_half(program, name):
    return subprocess.run([program, name], capture_output=True, text=True, timeout=600).stdout


def spoiled(text):
    """The last line's last character is another one."""
    return text[:-2] + ("x" if text[-2] != "x" else "y") + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("page")
    parser.add_argument("--filter", default="")
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    rows = read_page(options.page)
    cases = [case for _, case, _ in rows if case and re.search(options.filter, case)]
    if options.list:
        print("\n".join(f"{case:32} {halves.HALVES[case][0]}" for case in cases))
        return 0
    wrong = list(faults_of_page(rows))
    for text in wrong:
        print(f"accelerator: {text}")
    on = f"{halves.kind()} ({halves.module().get_device_name()})" if torch.accelerator.is_available() else "no accelerator"
    print(f"accelerator: PyTorch {torch.__version__} on {on}", flush=True)
    equal, left, different = {"accelerator": 0, "host": 0}, [], []
    for case in cases:
        runs_on = halves.HALVES[case][0]
        if not can_run(runs_on):
            left.append(f"{case} ({runs_on})")
            continue
        ours, theirs = other_half(options.program, case), half(case)
        if options.plant:
            ours = spoiled(ours)
        if ours == theirs:
            equal["host" if runs_on == "host" else "accelerator"] += 1
        else:
            different.append(case)
            if not options.plant:
                print(f"accelerator: clutch's half of\n{ours}PyTorch's half of\n{theirs}", flush=True)
    if options.plant:
        unnoticed = len(cases) - len(left) - len(different)
        print(f"accelerator: spoiled lines, {'every row noticed' if not unnoticed else f'{unnoticed} rows did not notice'}")
        return unnoticed > 0
    told = [f"{equal['accelerator']} rows equal on the accelerator, {equal['host']} on PyTorch alone"]
    if different:
        told.append(f"{len(different)} different: {' '.join(different)}")
    if left:
        told.append(f"{len(left)} not compared, whose calls need another device: {', '.join(left)}")
    print("accelerator: " + "; ".join(told))
    return bool(different or wrong)


if __name__ == "__main__":
    sys.exit(int(main()))
