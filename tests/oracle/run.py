# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of tests/oracle against the library on the default device.

  run.py --server build/release/tests/oracle_server [--seed N] [--filter REGEX] [--runs N] [--jobs N] [--case SEED:NAME:K] [--plant value|ulp] [--list]

Each job is a process with a server of its own, which takes a few runs of a case at a time; a run's inputs depend on its seed, name and number alone. Prints a line for each family, each difference with the command that repeats it, what the library refused and why, and a summary. Fails if anything differs.
With --plant the server gives wrong results on purpose, and every family has to notice.
"""

import argparse
import collections
import multiprocessing
import os
import pathlib
import re
import sys
import time
import traceback

os.environ.pop("OPENBLAS_CORETYPE", None)

import torch

import common

FAMILIES = os.environ.get("ORACLE_FAMILIES", "tensors number_types pointwise reductions layers indices linalg sparse24 attention optim random_numbers files").split()


RUNS_AT_ONCE = 8  # few, so that all jobs end at one time; not one, since runs of a case share programs

# Headers of what computes nothing.
NOT_COMPARED = {"allocator", "device", "error", "event", "export", "graph", "interop_cl", "kernel", "settings", "stream", "tune"}


# Members that compute no tensor: what a traced function or a tensor is made of, bits of numbers, bytes in the host's memory. backward() is called by map_backward.
HOST_MEMBERS = set("""backward body byte_offset capacity captured_count captured_tensor contains element_count floating_inputs from_bits impl input_count is_whole
literal node output_count output_dtype param_count param_value read_into result_count with_captured with_params""".split())


def members(text):
    """Names of the public member functions of classes and structs in a header's text, but of constructors and operators."""
    text = re.sub(r"//[^\n]*", "", text)
    for found in re.finditer(r"\b(class|struct) (?:CLUTCH_API )?(\w+)(?: final)?(?: : [^{;]*)?\s*\{", text):
        depth, at, body = 1, found.end(), ""
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            # What is inside of braces, bodies of functions and values of members, is left out.
            body += text[at] if depth == 1 and text[at] != "}" else ";" if depth == 1 else ""
            at += 1
        access = "private" if found[1] == "class" else "public"
        for part in re.split(r"\b(public|private|protected):", body):
            if part in ("public", "private", "protected"):
                access = part
            elif access == "public":
                yield from (name for name in re.findall(r"(?<![~:\w])(?<![:,] )([a-z]\w*)\(", part) if name not in (found[2], "operator", "noexcept", "requires", "explicit", "decltype"))


def uncalled_functions():
    """Public functions by the headers' text of which the server's sources do not speak. Out forms have the bits of what returns new tensors by tests/ops."""
    here = pathlib.Path(__file__).resolve().parent
    declared = set()
    for header in (here / "../../include/clutch").rglob("*.hpp"):
        if header.stem not in NOT_COMPARED:
            declared |= set(re.findall(r"CLUTCH_API [^;{(]*?(\w+)\(|CLUTCH_POINTWISE_[12]\((\w+)\)", header.read_text()))
            declared |= {(name, "") for name in members(header.read_text()) if name not in HOST_MEMBERS}
    names = {a or b for a, b in declared} - {"name", "expr_input", "matrix_dtype"}
    text = "".join(source.read_text() for source in here.glob("*.cpp"))
    of_ops = "".join(source.read_text() for source in (here / "../ops").rglob("*.cpp"))
    return sorted(n for n in names if not re.search(rf"\b{n}\b", text) and not (n.endswith("_out") and re.search(rf"\b{n}\(", of_ops)))


KINDS = {"Tensor": "tensor", "Scalar": "number", "Expr": "expression", "MaskMod": "mask"}


def uncalled_operators(functions):
    """Public operators by the headers' text that the server has no function for: it calls them by the kinds of their operands, as "number + tensor"."""
    declared = set()
    for header in (pathlib.Path(__file__).resolve().parent / "../../include/clutch").rglob("*.hpp"):
        for symbol, operands in re.findall(rf"^(?:CLUTCH_API |inline )(?:{'|'.join(KINDS)})&? operator([^\w\s(]+)\(([^)]*)\)", header.read_text(), re.MULTILINE):
            kinds = [KINDS[kind] for kind in re.findall(rf"\b({'|'.join(KINDS)})&", operands)]
            declared.add(f"{kinds[0]} {symbol} {kinds[1]}" if len(kinds) == 2 else f"{symbol} {kinds[0]}")
    return sorted(declared - functions)


def names_what_is_missing(message, greeting):
    """Whether a refusal names what the device lacks: fp64, or a quirk that it has."""
    quirks = re.findall(r"quirk (\w+)", message)
    has = {line.split(":")[0] for line in greeting["quirks"]}
    return all(quirk in has for quirk in quirks) if quirks else "fp64" in message and not greeting["fp64"]


def run_one(server, seed, name, number):
    """None, or what went wrong; refusals by their message."""
    function, _, _, _ = common.CASES[name]
    c = common.Case(server, seed, name, number)
    torch.manual_seed(c.integer(0, 2**31))
    try:
        function(c)
        return c, "passed", "" if c.checks else "it checked nothing"
    except common.Refusal as refusal:
        if refusal.code == "not_supported" and names_what_is_missing(refusal.message, server.greeting):
            return c, "skipped", str(refusal)
        return c, "failed", f"refused: {refusal}"
    except common.Difference as difference:
        return c, "failed", str(difference)
    except common.Died as died:
        return c, "broken", str(died)
    except Exception:
        return c, "broken", traceback.format_exc(limit=-4)


def told(call):
    function, arguments = call
    return f"  {function}({', '.join(f'{k} = {common.describe(v)}' for k, v in arguments.items())})"


def start_job(program, plant):
    global job_server
    job_server = common.Server(program, plant)


def run_some(task):
    """Some runs of a case: (number, outcome, text, the last call) of each, and the seconds that they took."""
    seed, name, numbers, stop_at_failure = task
    begin, results = time.time(), []
    for number in numbers:
        c, outcome, text = run_one(job_server, seed, name, number)
        last = told(c.calls[-1]) + "\n" if c.calls and outcome in ("failed", "broken") else ""
        results.append((number, outcome, text, last))
        if outcome == "failed" and stop_at_failure:
            break
    return name, len(numbers), results, time.time() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--seed", type=int, default=20230315)
    parser.add_argument("--filter", default="")
    parser.add_argument("--case", default="")
    parser.add_argument("--runs", type=int, default=10**6, help="at most so many runs of each case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--plant", default="", choices=["", "value", "ulp"])
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    for family in FAMILIES:
        __import__(family)

    server = common.Server(options.server, options.plant)
    functions = set(server.greeting["functions"])
    covered = set().union(*(set(covers) for _, _, covers, _ in common.CASES.values()))
    uncalled = uncalled_functions() + uncalled_operators(functions)
    uncovered = f"public functions that the server does not call: {uncalled}, functions without a case: {sorted(functions - covered)}, cases without a function: {sorted(covered - functions)}"
    if options.list:
        for name, (function, runs, covers, _) in common.CASES.items():
            print(f"{name:32} {runs:4} runs  {' '.join(covers)}")
        return 0
    print(f"oracle: {server.greeting['device']}, {server.greeting['platform']}, PyTorch {torch.__version__}, seed {options.seed}", flush=True)

    if options.case:
        seed, name, number = options.case.split(":")
        c, outcome, text = run_one(server, int(seed), name, int(number))
        for call in c.calls:
            print(told(call))
        print(f"{options.case}: {outcome} {text}")
        return outcome in ("failed", "broken")

    counts, refusals, unnoticed = collections.Counter(), collections.Counter(), []
    left, of_case, seconds, tasks = {}, collections.defaultdict(list), collections.Counter(), []
    for name, (function, runs, _, sharp) in common.CASES.items():
        if not re.search(options.filter, name) or (options.plant == "ulp" and not sharp):
            continue
        numbers = list(range(min(runs, options.runs)))
        left[name] = len(numbers)
        at_once = len(numbers) if options.plant else RUNS_AT_ONCE
        tasks += [(options.seed, name, numbers[i : i + at_once], bool(options.plant)) for i in range(0, len(numbers), at_once)]
    server.process.stdin.close()
    with multiprocessing.get_context("fork").Pool(options.jobs, start_job, (options.server, options.plant)) as jobs:
        for name, count, results, took in jobs.imap_unordered(run_some, tasks):
            of_case[name] += results
            seconds[name] += took
            left[name] -= count
            if left[name]:
                continue
            outcomes = collections.Counter(outcome for _, outcome, _, _ in of_case[name])
            for number, outcome, text, last in sorted(of_case[name]):
                if outcome == "skipped":
                    refusals[f"{name}: {text}"] += 1
                elif outcome in ("failed", "broken") and not (outcome == "failed" and options.plant):
                    print(f"{name}: case {number}, seed {options.seed}\n{last}  {text}\n  repeat with: scripts/test --oracle --case {options.seed}:{name}:{number}", flush=True)
                elif outcome == "passed" and text and not options.plant:
                    print(f"{name}: case {number}, seed {options.seed}: {text}")
                    outcomes["failed"] += 1
            if not options.plant:
                outcomes["failed"] += outcomes.pop("broken", 0)
            counts += outcomes
            if options.plant and not outcomes["failed"] and (outcomes["passed"] or outcomes["broken"]):
                unnoticed.append(name)
            print(f"{name:32} " + ", ".join(f"{outcomes[k]} {k}" for k in ("passed", "failed", "broken", "skipped") if outcomes[k]) + f"  {seconds[name]:.1f} s", flush=True)
    for text, count in sorted(refusals.items()):
        print(f"  skipped {count}: {text}")
    if options.plant:
        print(f"oracle: planted wrong results ({options.plant}): " + (f"not noticed by {' '.join(unnoticed)}" if unnoticed else "every case noticed"))
        return len(unnoticed) > 0
    print(f"oracle: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    incomplete = (covered != functions or uncalled) and not options.filter
    if incomplete:
        print(f"oracle: {uncovered}")
    return counts["failed"] > 0 or incomplete


if __name__ == "__main__":
    # The families register with the module they import, which is the one that this file imports, too.
    sys.exit(int(bool(main())))
