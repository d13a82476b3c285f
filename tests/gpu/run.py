# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-run: runs the suite and the bench of a build on a device and writes what they gave into one file.

The file is the bench's JSON, which clutch-bench --compare reads, with four members more: "device" (what clutch-devices --json tells), "doctor" (its text), "suite"
(each test with its status, seconds and what it skipped or knows as a driver's bug) and "model" (rows of the bench beside what scripts/gpu-cost had estimated).
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

import cost_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTES = re.compile(r"^(?:skipped|xfail): .*", re.MULTILINE)


def devices(build, selector):
    """What clutch-devices tells of the devices, and which one the selector names; None if it names none."""
    told = subprocess.run([build / "clutch-devices", "--json"], env=dict(os.environ, CLUTCH_DEVICE=selector), stdout=subprocess.PIPE, text=True, check=True).stdout
    every = json.loads(told)
    return every, next((d for d in every["devices"] if every["default"] and d["selector"] == every["default"]), None)


def suite_of(junit):
    """Tests of a JUnit file that ctest wrote."""
    tests = []
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        status = {"run": "passed", "fail": "failed"}.get(case.get("status"), "not run")
        test = {"test": case.get("name"), "status": status, "seconds": round(float(case.get("time") or 0), 3)}
        said = "\n".join(text.text or "" for text in case.iter("system-out"))
        notes = sorted(set(NOTES.findall(said)))
        if notes:
            test["notes"] = notes
        if status == "failed":
            test["output"] = said[-4000:]
        tests.append(test)
    return tests


def commit():
    said = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    changed = subprocess.run(["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return "unknown" if said.returncode else said.stdout.strip() + ("-changed" if changed.stdout.strip() else "")


def peer_with_cuda():
    """A Python that has PyTorch with a GPU, for the bench's peers; None if there is none."""
    python = os.environ.get("CLUTCH_PEER_PYTHON") or "python3"
    found = subprocess.run([python, "-c", "import torch; assert torch.cuda.is_available()"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return python if found.returncode == 0 else None


def beside_model(device, benchmarks):
    """Rows of the bench beside the model's estimates, which are printed with their errors."""
    to_us = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
    rows = {b["name"]: b["real_time"] * to_us[b["time_unit"]] for b in benchmarks if b.get("real_time")}
    compared = cost_model.beside_measured(device, rows)
    for c in compared:
        print(f"model: {c['row']}: estimated {c['estimated_us']:g} us, measured {c['measured_us']:g} us ({100 * c['error']:+.0f} %), bound by {c['bound by']}")
    if not compared:
        known = ", ".join(cost_model.PROFILED)
        print(f"model: nothing to compare: it knows {known}, got '{device}'" if cost_model.machine_of(device) is None else "model: nothing to compare: the bench ran none of its rows")
    else:
        errors = sorted(abs(c["error"]) for c in compared)
        print(f"model: off by {100 * errors[len(errors) // 2]:.0f} % in the median and {100 * errors[-1]:.0f} % at most")
    return compared


def step(name, command, environment, log):
    """Runs a command, whose output goes into a file: whether it succeeded."""
    begin = time.time()
    print(f"{name}: {' '.join(map(str, command))}", flush=True)
    with open(log, "w", encoding="utf-8") as file:
        status = subprocess.run(command, env=dict(os.environ, **environment), stdout=file, stderr=subprocess.STDOUT).returncode
    print(f"{name}: {'passed' if status == 0 else f'FAILED with {status}, see {log}'}, {time.time() - begin:.0f} s", flush=True)
    return status == 0


def main():
    parser = argparse.ArgumentParser(prog="gpu-run")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    build = options.build.resolve()
    every, device = devices(build, options.device)
    if not device:
        names = ", ".join(f"{d['selector']} {d['type']} {d['name']}" for d in every["devices"]) or "none"
        print(f"gpu-run: --device must name a device of an OpenCL driver, got '{options.device}'; there are: {names}", file=sys.stderr)
        return 77
    today = datetime.date.today().isoformat()
    slug = re.sub(r"[^a-z0-9]+", "-", device["name"].lower()).strip("-")
    output = (options.output or build.parent / f"{slug}-{today}-{commit()}.json").resolve()
    logs = build / "gpu_run"
    logs.mkdir(exist_ok=True)
    print(f"{device['name']}, {device['platform']}, driver {device['driver']}", flush=True)

    ok = step("doctor", [build / "clutch-devices", "--doctor"], {"CLUTCH_DEVICE": device["selector"]}, logs / "doctor.log")
    junit = logs / "suite.xml"
    chosen = ["-R", "^(proof|proof_differential|math|optim|flex|eigh)$"] if options.quick else ["-LE", "nightly|ci|oclgrind"]
    ok &= step("suite", ["ctest", "--test-dir", build, "-j", str(os.cpu_count()), *chosen, "--no-tests=error", "--output-on-failure", "--test-output-size-passed", "1000000",
                         "--output-junit", junit], {"CLUTCH_TEST_DEVICES": device["selector"]}, logs / "suite.log")
    rows = logs / "bench.json"
    rows.unlink(missing_ok=True)
    peer = peer_with_cuda()
    ok &= step("bench", [build / "bench/clutch-bench", "--device", device["selector"], "--json", rows, *(["--quick"] if options.quick else [])],
               {"CLUTCH_PEER_PYTHON": peer} if peer else {}, logs / "bench.log")

    suite = suite_of(junit) if junit.exists() else []
    result = json.loads(rows.read_text()) if rows.exists() else {"context": {"library": every["library"]}, "benchmarks": []}
    result.update(device=device, doctor=(logs / "doctor.log").read_text(), suite=suite, model=beside_model(device["name"], result["benchmarks"]))
    output.write_text(json.dumps(result, indent=1) + "\n")
    failed = [test["test"] for test in suite if test["status"] == "failed"]
    print(f"{sum(test['status'] == 'passed' for test in suite)} tests passed, {len(failed)} failed{': ' if failed else ''}{' '.join(failed)}; {len(result['benchmarks'])} rows")
    print(f"wrote {output}: put it under bench/results/ and name it in its README")
    return not ok


if __name__ == "__main__":
    sys.exit(int(main()))
