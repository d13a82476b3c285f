# SPDX-License-Identifier: Apache-2.0
"""Times steps of networks and single ops on `clutch` beside PyTorch's own CPU device: scripts/test --torch --bench [--filter REGEX] [--pairs N] [--json FILE] [--list]

A row is one case: medians of interleaved pairs, the ratio (CPU's time over clutch's, above 1 clutch wins) with its 95 % interval, and the ratio of the time
that all cores spent. PyTorch's threads sleep while they wait (OMP_WAIT_POLICY=passive unless it is set): on a machine with other work spinning ones are slow.
"""
import argparse
import gc
import json
import os
import platform
import re
import sys
import time

import torch
import torch_clutch  # noqa: F401

import cases
import pairs


def shown(seconds):
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def row_of(name, device, row):
    """A row of scripts/bench --json."""
    peer = dict(real_time=row["theirs"] * 1e9, ratio=row["ratio"], low=row["low"], high=row["high"], cores_ratio=row["cores_ratio"])
    kept = {key: row[key] for key in ("what", "target", "load", "pairs", "fallbacks", "difference_us") if row.get(key) is not None}
    return dict(name=name, run_type="iteration", real_time=row["ours"] * 1e9, cpu_time=row["ours_cores"] * 1e9, time_unit="ns", device=device,
                noise_pct=row["noise_pct"], checked=True, peers={"torch's CPU": peer}, **kept)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default="")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--least", type=float, default=0.2, help="seconds of one sample")
    parser.add_argument("--json")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = [name for name in cases.CASES if re.search(options.filter, name)]
    if options.list:
        return print("\n".join(chosen))
    device = torch.clutch.get_device_name()
    context = dict(library=f"torch_clutch {torch_clutch.__version__}", torch=torch.__version__,
                   devices=[dict(device=device, platform="torch_clutch", driver=f"torch {torch.__version__}")], machine=platform.processor() or platform.machine(),
                   threads=torch.get_num_threads(), date=time.strftime("%Y-%m-%d %H:%M"), build=torch.clutch.build_info(), command=" ".join(sys.argv))
    print(f"{device}, torch {context['torch']} on {context['threads']} threads; clutch's time, torch's, their ratio with its 95 % interval, and that of all cores", flush=True)
    rows, failed = [], []
    for name in chosen:
        make, target = cases.CASES[name]
        torch.clutch.reset_fallbacks()
        try:
            work = make()
            row = dict(name=name, load=os.getloadavg()[0], target=target, what=work.what,
                       **pairs.compare(work.ours, work.theirs, pairs=options.pairs, least=options.least))
        except Exception as error:  # the other rows go on
            failed.append(name)
            print(f"{name:24} FAILED {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
            continue
        row["fallbacks"] = torch.clutch.fallbacks()
        notes = f"of {target}" if target else ""
        if name == "add/own_call":
            row["difference_us"] = (row["ours"] - row["theirs"]) / 200 * 1e6
            notes = f"{row['difference_us']:.1f} us more a call, of 12"
        if row["fallbacks"]:
            notes += f" CPU ops: {row['fallbacks']}"
        print(f"{name:24} {shown(row['ours']):>10} {shown(row['theirs']):>10} {row['ratio']:6.2f}x [{row['low']:.2f}, {row['high']:.2f}] cores {row['cores_ratio']:5.2f}x load {row['load']:.1f} {notes}", flush=True)
        rows.append(row_of(name, device, row))
        del work
        gc.collect()
        torch.accelerator.empty_cache()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(context=context, benchmarks=rows), file, indent=1)
    return f"failed: {', '.join(failed)}" if failed else 0


if __name__ == "__main__":
    sys.exit(main())
