# SPDX-License-Identifier: Apache-2.0
"""Times steps of networks and single ops on `clutch` beside PyTorch's own CPU device, and writes the tables of docs/benchmarks.md.

  scripts/test --torch --bench [--ops] [--filter REGEX] [--pairs N] [--json FILE] [--update PAGE] [--list]
  scripts/test --torch --bench --from FILE.json... [--filter REGEX] [--update PAGE] [--json FILE]

A row is one case: medians of interleaved pairs, the ratio (CPU's time over clutch's, above 1 clutch wins) with its 95 % interval, and the ratio of the time
that all cores spent. PyTorch's threads sleep while they wait (OMP_WAIT_POLICY=passive unless it is set): on a machine with other work spinning ones are slow.
`first_step/gpt2` has no peer: see first_step.py.

  --ops     single ops, op_cases.py, in place of steps
  --json    what scripts/bench --json writes: scripts/bench --picture FILE.svg --from it draws the bars
  --from    takes rows from such files, later ones first, and times nothing
  --update  writes the tables of the page whose rows there are: of steps, of ops, or both; without it they are printed

A child does the work, and is started again behind a row that kills it. A row that fails is one in the JSON, too, and the exit status is 1.
"""
import argparse
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
import outcomes  # noqa: E402
import page  # noqa: E402

FIRST_STEP = "first_step/gpt2"
PEER = "torch's CPU"


def options(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--pairs", type=int, help="of samples; 7, of ops 5")
    parser.add_argument("--least", type=float, help="seconds of one sample; 0.15, of ops 0.03")
    parser.add_argument("--seconds", type=int, default=240, help="for one row")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--from", dest="given", nargs="+", metavar="FILE")
    parser.add_argument("--update", metavar="PAGE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    asked.pairs = asked.pairs or (5 if asked.ops else 7)
    asked.least = asked.least or (0.03 if asked.ops else 0.15)
    return asked


def time_text(seconds):
    if seconds >= 0.9995:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 0.9995e-3 else f"{seconds * 1e6:.3g} us"


def ratio_text(ratio):
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:.0f}"


# ---- what the child does

def cases_of(asked):
    if asked.ops:
        import op_cases

        return op_cases.CASES
    import cases
    import first_step
    import network_cases  # noqa: F401, adds its own

    return cases.CASES | {FIRST_STEP: (None, first_step.TARGET)}


def first_step_row():
    import first_step

    got = first_step.row()
    print(f"{FIRST_STEP:34} {time_text(max(got['seconds'], 0)):>10} [{got['least']:.2f}, {got['most']:.2f}] s of the {got['first']:.2f} s of the first step, "
          f"{got['loaded']} programs loaded, of {first_step.TARGET:.0f} s", flush=True)
    return dict(real_time=max(got["seconds"], 0) * 1e9, cpu_time=0, noise_pct=0, what=first_step.WHAT, peers={}, **{k: got[k] for k in ("least", "most", "first", "loaded")})


def pair_row(name, make, target, asked):
    import torch

    import pairs

    torch.clutch.reset_fallbacks()
    work = make()
    row = pairs.compare(work.ours, work.theirs, pairs=asked.pairs, least=asked.least)
    peer = dict(real_time=row["theirs"] * 1e9, ratio=row["ratio"], low=row["low"], high=row["high"], cores_ratio=row["cores_ratio"])
    kept = dict(what=work.what, pairs=row["pairs"])
    notes = f"of {target}" if target else ""
    if torch.clutch.fallbacks():
        kept["fallbacks"] = torch.clutch.fallbacks()
        notes += f" CPU ops: {kept['fallbacks']}"
    if name == "add/own_call":
        kept["difference_us"] = (row["ours"] - row["theirs"]) / 200 * 1e6
        notes = f"{kept['difference_us']:.1f} us more a call, of 12"
    if asked.ops:
        import op_cases

        kept["family"] = op_cases.FAMILIES[name.split("/")[1]]
    print(f"{name:34} {time_text(row['ours']):>10} {time_text(row['theirs']):>10} {row['ratio']:6.2f}x [{row['low']:.2f}, {row['high']:.2f}] cores {row['cores_ratio']:5.2f}x "
          f"load {os.getloadavg()[0]:.1f} {notes}", flush=True)
    return dict(real_time=row["ours"] * 1e9, cpu_time=row["ours_cores"] * 1e9, noise_pct=row["noise_pct"], checked=True, peers={PEER: peer}, **kept)


def child(asked):
    import gc
    import warnings

    import torch
    import torch_clutch

    warnings.filterwarnings("ignore", category=UserWarning)
    chosen = {name: case for name, case in cases_of(asked).items() if re.search(asked.filter, name)}
    device, threads = torch.clutch.get_device_name(), torch.get_num_threads()
    done = outcomes.read(asked.child, "name")
    outcomes.limit_time()
    with open(asked.child, "a") as out:
        if not done:
            context = dict(library=f"torch_clutch {torch_clutch.__version__}", torch=torch.__version__,
                           devices=[dict(device=device, platform="torch_clutch", driver=f"torch {torch.__version__}")],
                           machine=platform.processor() or platform.machine(), threads=threads, date=time.strftime("%Y-%m-%d %H:%M"), build=torch.clutch.build_info())
            outcomes.end(out, dict(name="", context=context))
            print(f"{device}, torch {torch.__version__} on {threads} threads; clutch's time, torch's, their ratio with its 95 % interval, and that of all cores", flush=True)
        for name, (make, target) in chosen.items():
            if name in done:
                continue
            head = dict(name=name, run_type="iteration", device=device, time_unit="ns", load=os.getloadavg()[0], **(dict(target=target) if target else {}))
            outcomes.begin(out, head)
            signal.alarm(asked.seconds)
            try:
                row = head | (first_step_row() if name == FIRST_STEP else pair_row(name, make, target, asked))
            except (Exception, outcomes.Late) as error:  # the other rows go on
                why = f"{type(error).__name__}: {outcomes.short(str(error)) or f'more than {asked.seconds} s'}"
                print(f"{name:34} FAILED {why}", flush=True)
                row = failure(head, why)
            finally:
                signal.alarm(0)
            outcomes.end(out, row)
            if not asked.ops:  # whose memory is small
                gc.collect()
                torch.compiler.reset()
                torch.accelerator.synchronize()
                torch.accelerator.empty_cache()


def failure(head, why):
    return head | dict(error_occurred=True, error_message=why)


# ---- what the parent does

def measured(asked):
    """The context and rows of children."""
    handle, path = tempfile.mkstemp(suffix=".jsonl")
    os.close(handle)
    command = [sys.executable, __file__, "--child", path, *(["--ops"] if asked.ops else []), "--filter", asked.filter, "--pairs", str(asked.pairs), "--least", str(asked.least),
               "--seconds", str(asked.seconds)]
    before = -1
    while True:
        status = subprocess.run(command).returncode
        results = outcomes.read(path, "name")
        if status == 0 or len(results) == before:
            break
        before = len(results)
    os.unlink(path)
    if "" not in results:
        sys.exit(f"the benchmarks do not begin: exit status {status}")
    context = results.pop("")["context"] | dict(command=" ".join(sys.argv))
    for name, row in results.items():
        if row.get("outcome") == "crash":
            print(f"{name:34} FAILED {row['why']}")
            results[name] = failure({k: v for k, v in row.items() if k not in ("outcome", "why")}, row["why"])
    return context, list(results.values())


def read(paths):
    context, rows = {}, {}
    for path in paths:
        of = json.loads(Path(path).read_text())
        context = of["context"]
        rows |= {row["name"]: row for row in of["benchmarks"]}
    return context, list(rows.values())


def heading(context):
    return f"{context['date'].split()[0]}, {context['devices'][0]['device']}, PyTorch {context['torch'].split('+')[0]}, {context['threads']} threads."


def ratio_cell(row, shown=ratio_text):
    peer = row["peers"][PEER]
    return f"{shown(peer['ratio'])} [{shown(peer['low'])}, {shown(peer['high'])}]"


def steps_table(context, rows):
    lines, others = [], []
    for row in rows:
        target = f"{row['target']:g}" if row.get("target") else ""
        if row.get("error_occurred"):
            lines.append([f"`{row['name']}`", "", "", "failed", "", target])
        elif row["name"] == FIRST_STEP:
            others.append(f"`{row['name']}`: {row['what']}: {row['real_time'] * 1e-9:.2f} [{row['least']:.2f}, {row['most']:.2f}] (aim: at most {target}); "
                          f"{row['loaded']} programs are loaded, none is built, and the step takes {row['first']:.2f}.")
        elif row["name"] == "add/own_call":
            others.append(f"An eager `x + y` of 1,000 numbers takes {row['difference_us']:.1f} us more than clutch's own `add()` (aim: at most 12).")
        else:
            lines.append([f"`{row['name']}`", row["what"] + (f"; on the CPU: {', '.join(row['fallbacks'])}" if row.get("fallbacks") else ""), time_text(row["real_time"] * 1e-9),
                          ratio_cell(row), ratio_text(row["peers"][PEER]["cores_ratio"]), target])
    parts = [heading(context) + "\n"] + ([page.table(["row", "step", "clutch", "ratio", "cores", "aim"], lines)] if lines else []) + [f"{other}\n" for other in others]
    return "\n".join(parts)


def ops_table(context, rows):
    """A line an op, its two sizes side by side."""
    families, ratios = {}, {"small": [], "large": []}
    for row in rows:
        _, op, size = row["name"].split("/")
        cells = families.setdefault(row.get("family"), {}).setdefault(op, {})
        if row.get("error_occurred"):
            cells[size] = ["", "", "failed"]
            continue
        ratios[size].append(row["peers"][PEER]["ratio"])
        cells[size] = [row["what"], time_text(row["real_time"] * 1e-9), ratio_cell(row) + (", on the CPU" if row.get("fallbacks") else "")]
    lines = []
    for ops in families.values():
        for op, cells in ops.items():
            lines.append([f"`{op}`", *cells.get("small", [""] * 3), *cells.get("large", [""] * 3)])
    sums = [f"{name} sizes: {sum(r >= 1 for r in of)} of {len(of)} at least 1, geometric mean {ratio_text(math.exp(sum(map(math.log, of)) / len(of)))}"
            for name, of in ratios.items() if of]
    return f"{heading(context)} {'; '.join(sums).capitalize()}.\n\n" + page.table(["op", "small", "clutch", "ratio", "large", "clutch", "ratio"], lines)


def main(arguments=None):
    asked = options(arguments)
    if asked.list:
        return print("\n".join(name for name in cases_of(asked) if re.search(asked.filter, name)))
    if asked.child:
        return child(asked)
    context, rows = read(asked.given) if asked.given else measured(asked)
    rows = [row for row in rows if re.search(asked.filter, row["name"])]
    if asked.json:
        Path(asked.json).write_text(json.dumps(dict(context=context, benchmarks=rows), indent=1) + "\n")
    for name, make, of in (("torch steps", steps_table, [r for r in rows if not r["name"].startswith("op/")]), ("torch ops", ops_table, [r for r in rows if r["name"].startswith("op/")])):
        if of and asked.update:
            page.write(asked.update, name, make(context, of))
        elif of:
            print("\n" + make(context, of))
    failed = [row["name"] for row in rows if row.get("error_occurred")]
    return f"failed: {', '.join(failed)}" if failed else 0


if __name__ == "__main__":
    sys.exit(main())
